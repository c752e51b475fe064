"""What happens to a controller in tests, each in one call: the state after it."""

from tidegauge.impl.controller import brokers as brokers_
from tidegauge.impl.controller import requests
from tidegauge.impl.controller.configurations import ConfigChange, incremental_alter_configs, update_features
from tidegauge.impl.controller.features import ELR_VERSION, FeatureUpdate
from tidegauge.impl.controller.partition_change import ChangeRequest, Election
from tidegauge.impl.controller.partition_registration import PartitionRegistration
from tidegauge.impl.controller.records import TOPIC, ClearElrRecord, ConfigResource, RegisterBrokerRecord
from tidegauge.impl.controller.replay import replay_records
from tidegauge.impl.controller.replication_control import (
    MIN_IN_SYNC_REPLICAS,
    BrokerRegistration,
    ReplicationControl,
    change_partition,
)
from tidegauge.impl.controller.requests import Reassignment, alter_partition_reassignments
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.profiles import Profile
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.impl.topic_partition import TopicPartition

ALL = (1, 2, 3)
ZERO, TP = TopicPartition("t", 0), TopicPartition("t", 1)


def fence_broker(control: ReplicationControl, broker: int) -> ReplicationControl:
    """Its session ran out."""
    return replay_records(control, brokers_.broker_fenced(control, broker))


def unfence_broker(control: ReplicationControl, broker: int) -> ReplicationControl:
    """It caught up with the metadata."""
    return replay_records(control, brokers_.broker_unfenced(control, broker))


def begin_controlled_shutdown(control: ReplicationControl, broker: int) -> ReplicationControl:
    """It asks to leave."""
    return replay_records(control, brokers_.broker_in_controlled_shutdown(control, broker))


def register_broker(
    control: ReplicationControl, broker: int, epoch: int, *, previous_epoch: int = UNDEFINED
) -> ReplicationControl:
    """Another incarnation, whose broker epoch names it."""
    registration = RegisterBrokerRecord(broker, epoch, incarnation=epoch)
    return replay_records(control, brokers_.broker_registered(control, registration, previous_epoch))


def elect_leader(control: ReplicationControl, tp: TopicPartition, election: Election) -> tuple[ReplicationControl, int]:
    """The state after it, and its error."""
    records, error = requests.elect_leader(control, tp, election)
    return replay_records(control, records), error


def set_min_isr(control: ReplicationControl, min_isr: int) -> ReplicationControl:
    """The static configuration is another one, and ELRs are forgotten where they are kept."""
    control = control._replace(min_isr=min_isr)
    return replay_records(control, (ClearElrRecord(""),)) if control.profile.elr else control


def controller(profile: Profile, replicas: tuple[int, ...] = ALL, min_isr: int = 2) -> ReplicationControl:
    """Two partitions that all these have."""
    brokers = FrozenMap((b, BrokerRegistration(10 + b)) for b in ALL)
    partition = PartitionRegistration(replicas, replicas, replicas[0])
    return ReplicationControl(brokers, FrozenMap([(ZERO, partition), (TP, partition)]), profile, min_isr)


def reassigned(control: ReplicationControl, *replicas: int) -> ReplicationControl:
    """Partition 1 gets these."""
    records, errors = alter_partition_reassignments(control, (Reassignment(TP, replicas),))
    assert [error for _, error in errors] == [NONE]
    return replay_records(control, records)


def with_min_isr(control: ReplicationControl, value: str) -> ReplicationControl:
    """The topic gets this min.insync.replicas."""
    change = ConfigChange(ConfigResource(TOPIC, "t"), MIN_IN_SYNC_REPLICAS, value)
    return replay_records(control, incremental_alter_configs(control, (change,)).records)


def in_sync(control: ReplicationControl, *isr: int) -> ReplicationControl:
    """The ISR of partition 1 becomes this."""
    return replay_records(control, change_partition(control, TP, ChangeRequest(isr)))


def with_elr_level(control: ReplicationControl, level: int) -> ReplicationControl:
    """The feature is switched off or on."""
    update = FeatureUpdate(ELR_VERSION, level, upgrade=level > 0)
    records, error = update_features(control, update, control.features.metadata_version)
    assert error == NONE
    return replay_records(control, records)

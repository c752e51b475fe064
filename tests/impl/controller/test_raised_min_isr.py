"""F11: the controller makes an ELR by the min.insync.replicas it wrote, a leader commits by the one it has read."""

from tests.impl.controller.controls import fence_broker
from tidegauge.impl.controller.configurations import ConfigChange, incremental_alter_configs, update_features
from tidegauge.impl.controller.features import ELR_VERSION, FeatureUpdate
from tidegauge.impl.controller.partition_registration import PartitionRegistration, RecoveryState
from tidegauge.impl.controller.records import BROKER, TOPIC, ConfigResource
from tidegauge.impl.controller.replay import replay_records
from tidegauge.impl.controller.replication_control import (
    CLUSTER,
    MIN_IN_SYNC_REPLICAS,
    AlterPartition,
    BrokerRegistration,
    Proposal,
    ReplicationControl,
    alter_partition,
)
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import AlterPartitionRequest, Batch, BrokerState
from tidegauge.impl.profiles import ELR, Profile, Setup
from tidegauge.impl.replica import partition as partition_
from tidegauge.impl.replica.partition import make_leader
from tidegauge.impl.replica.partition_state import Partition
from tidegauge.impl.rules import FENCED_LEADER_EPOCH, NONE
from tidegauge.impl.storage.log import Log, append_as_follower
from tidegauge.impl.topic_partition import TopicPartition

TP = TopicPartition("t", 0)
TOPICS = ConfigResource(TOPIC, "t")
BROKERS = (1, 2)
METADATA = tuple(BrokerState(b, epoch=10 + b) for b in BROKERS)
NOW = 1_000_000


def high_watermark_and_election(known_min_isr: int) -> tuple[int, PartitionRegistration]:
    """Ten records that broker 2 has not fetched; min ISR is raised to 2, the leader proposes itself, and then stops."""
    setup = Setup(profile=ELR, min_insync_replicas=known_min_isr)
    log, _ = append_as_follower(setup, Log(), (Batch(0, 9, 0),), 0)
    leader, _ = make_leader(setup, Partition(1, log), 0, 0, BROKERS, BROKERS, METADATA, NOW)
    control = with_min_isr(controller(ELR), "2")
    leader = partition_.prepare_isr_shrink(leader, (2,))
    proposal = Proposal(TP, partition_.alter_partition_request(leader, own_epoch=11))
    records, result = alter_partition(control, AlterPartition(1, 11, (proposal,)))
    assert result.responses[0].error == NONE
    leader, _ = partition_.handle_alter_partition_response(setup, leader, leader.state, result.responses[0], METADATA, NOW)
    return leader.log.hw, fence_broker(replay_records(control, records), 1).partitions[TP]


def test_f11_a_leader_that_has_not_heard_of_a_higher_min_isr_commits_what_an_elr_member_lacks() -> None:
    """Broker 2 is elected cleanly; the leader's high watermark went to its log end, or stayed if it knew."""
    committed, after = high_watermark_and_election(known_min_isr=1)
    assert (committed, after.leader, after.recovery) == (10, 2, RecoveryState.RECOVERED)
    assert high_watermark_and_election(known_min_isr=2)[0] == 0


MENDED = ELR._replace(raised_min_isr_keeps_epoch=False)


def controller(profile: Profile) -> ReplicationControl:
    """Both in sync at min.insync.replicas 1."""
    registered = FrozenMap((b, BrokerRegistration(10 + b)) for b in BROKERS)
    return ReplicationControl(registered, FrozenMap([(TP, PartitionRegistration(BROKERS, BROKERS, 1))]), profile, min_isr=1)


def with_min_isr(control: ReplicationControl, value: str, resource: ConfigResource = TOPICS) -> ReplicationControl:
    """A resource gets this min.insync.replicas."""
    change = ConfigChange(resource, MIN_IN_SYNC_REPLICAS, value)
    return replay_records(control, incremental_alter_configs(control, (change,)).records)


def test_f11_repaired_a_raised_min_isr_gives_a_leader_epoch_and_who_has_not_read_it_proposes_in_vain() -> None:
    """In the epoch from before; as Kafka is the proposal is taken."""
    for profile, expected in ((ELR, NONE), (MENDED, FENCED_LEADER_EPOCH)):
        control = with_min_isr(controller(profile), "2")
        request = AlterPartition(1, 11, (Proposal(TP, AlterPartitionRequest(1, 0, 0, (1,))),))
        assert alter_partition(control, request).response.responses[0].error == expected
    partition = with_min_isr(controller(MENDED), "2").partitions[TP]
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch, partition.isr) == (1, 1, 1, BROKERS)


def test_f11_repaired_only_what_raises_it_gives_an_epoch() -> None:
    """For the topic or for all; not a lower one, and not where nobody leads."""

    def epoch(control: ReplicationControl) -> int:
        return control.partitions[TP].leader_epoch

    raised = with_min_isr(controller(MENDED), "2")
    assert epoch(with_min_isr(raised, "1")) == 1
    assert epoch(with_min_isr(with_min_isr(raised, "1"), "2")) == 2
    assert epoch(with_min_isr(raised, "3", CLUSTER)) == 1
    assert epoch(with_min_isr(controller(MENDED), "2", CLUSTER)) == 1
    leaderless = fence_broker(fence_broker(controller(MENDED), 2), 1)
    assert epoch(with_min_isr(leaderless, "2")) == epoch(leaderless)


def test_f11_repaired_enabling_elr_raises_it_where_a_leader_had_a_lower_one_of_its_own() -> None:
    """Brokers lose theirs with the feature: MaybeGenerateElrSafetyRecords."""
    off = controller(MENDED._replace(elr=False))._replace(min_isr=2)
    own = with_min_isr(off, "1", ConfigResource(BROKER, "1"))
    for control, epoch in ((own, 1), (off, 0)):
        records, error = update_features(control, FeatureUpdate(ELR_VERSION, 1), control.features.metadata_version)
        assert error == NONE
        assert replay_records(control, records).partitions[TP].leader_epoch == epoch

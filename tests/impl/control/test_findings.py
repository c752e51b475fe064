"""F4 to F8: what Kafka's controller does, and the same code with the switch of that finding off."""

from tests.impl.control.controls import fence_broker, register_broker, unfence_broker
from tidegauge.impl.control.broker_states import broker_registered
from tidegauge.impl.control.configurations import ConfigChange, incremental_alter_configs
from tidegauge.impl.control.heartbeats import BrokerHeartbeat, BrokerHeartbeatState, Heartbeats
from tidegauge.impl.control.partition_registration import PartitionRegistration
from tidegauge.impl.control.quorum_controller import QuorumController, process_broker_heartbeat
from tidegauge.impl.control.quorum_controller import register_broker as register
from tidegauge.impl.control.reassignments import Reassignment, alter_partition_reassignments
from tidegauge.impl.control.records import TOPIC, ConfigResource, RegisterBrokerRecord
from tidegauge.impl.control.replay import replayed
from tidegauge.impl.control.replication_control import MIN_IN_SYNC_REPLICAS, BrokerRegistration, ReplicationControl
from tidegauge.impl.control.topics import delete_topic
from tidegauge.impl.messages import UNKNOWN_SERVER_ERROR
from tidegauge.impl.profiles import ELR, Profile
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.impl.table import Table
from tidegauge.impl.topic_partition import TopicPartition

ALL = (1, 2, 3)
ZERO, TP = TopicPartition("t", 0), TopicPartition("t", 1)


def controller(profile: Profile, replicas: tuple[int, ...] = ALL) -> ReplicationControl:
    """Two partitions that everybody has, min.insync.replicas 2."""
    brokers = Table((b, BrokerRegistration(10 + b)) for b in ALL)
    partition = PartitionRegistration(replicas, replicas, replicas[0])
    return ReplicationControl(brokers, Table([(ZERO, partition), (TP, partition)]), profile, min_isr=2)


def reassigned(control: ReplicationControl, *replicas: int) -> ReplicationControl:
    """Partition 1 gets these."""
    records, errors = alter_partition_reassignments(control, (Reassignment(TP, replicas),))
    assert [error for _, error in errors] == [NONE]
    return replayed(control, records)


def with_min_isr(control: ReplicationControl, value: str) -> ReplicationControl:
    """The topic gets this min.insync.replicas."""
    change = ConfigChange(ConfigResource(TOPIC, "t"), MIN_IN_SYNC_REPLICAS, value)
    return replayed(control, incremental_alter_configs(control, (change,)).records)


def test_f4_a_replica_that_was_removed_is_elected_when_it_comes_back_empty() -> None:
    """Each half of the repair takes the ghost away."""
    lowered = reassigned(controller(ELR), 1)
    assert (lowered.partitions[TP].elr, lowered.partitions[TP].isr) == ((2, 3), (1,))
    raised = reassigned(lowered, *ALL)
    ghost = fence_broker(raised, 1).partitions[TP]
    assert (ghost.leader, ghost.isr) == (2, (2,))
    for repair in ({"elr_keeps_removed": False}, {"min_isr_by_partition_zero": False}):
        repaired = reassigned(reassigned(controller(ELR._replace(**repair)), 1), *ALL)
        assert repaired.partitions[TP].elr == ()
        assert fence_broker(repaired, 1).partitions[TP].leader == UNDEFINED


def test_f5_a_new_min_isr_while_nobody_leads_leaves_the_partition_without_a_leader() -> None:
    """Repaired, an ELR that is still needed stays, as KIP-966 has it."""

    def restarted(profile: Profile) -> PartitionRegistration:
        down = fence_broker(fence_broker(controller(profile, (1, 2)), 2), 1)
        assert down.partitions[TP].elr == (1, 2)
        return unfence_broker(unfence_broker(with_min_isr(down, "1"), 1), 2).partitions[TP]

    kafkas = restarted(ELR)
    assert (kafkas.leader, kafkas.isr, kafkas.elr, kafkas.last_known_elr) == (UNDEFINED, (), (), ())
    repaired = restarted(ELR._replace(min_isr_change_clears_elr=False))
    assert (repaired.leader, repaired.isr) == (1, (1,))
    enough = fence_broker(fence_broker(controller(ELR._replace(min_isr_change_clears_elr=False)), 3), 2)
    assert enough.partitions[TP].elr == (2,)
    assert with_min_isr(enough, "1").partitions[TP].elr == ()


def test_f6_a_stale_index_makes_every_registration_fail() -> None:
    """Killed, min.insync.replicas changed, topic deleted: the index still names the topic."""

    def registered(profile: Profile) -> int:
        control = with_min_isr(fence_broker(fence_broker(controller(profile), 3), 2), "1")
        control = replayed(control, delete_topic(control, "t").records)
        _, (_, error) = register(QuorumController(control), RegisterBrokerRecord(2, 0, incarnation=7))
        return error

    assert registered(ELR) == UNKNOWN_SERVER_ERROR
    assert registered(ELR._replace(indexes_go_stale=False)) == NONE


def test_f6_while_the_topic_is_there_a_partition_is_changed_twice() -> None:
    """Two records of one registration: the partition epoch grows by two."""
    control = with_min_isr(fence_broker(fence_broker(controller(ELR), 3), 2), "3")
    control = unfence_broker(control, 2)
    isr = control.partitions[TP]._replace(isr=(1, 2))
    control = control._replace(partitions=control.partitions.put(TP, isr))
    again = register_broker(control, 2, 22).partitions[TP]
    assert (again.partition_epoch - isr.partition_epoch, again.isr) == (2, (1,))
    assert len(broker_registered(control, RegisterBrokerRecord(2, 22, incarnation=22))) == 3


def test_f7_a_reassignment_that_is_taken_back_by_naming_the_old_replicas_never_completes() -> None:
    """Adding and removing are the same broker since KAFKA-19975; before, and repaired, it is complete at once."""
    for profile, stuck in (
        (ELR, ((3,), (3,))),
        (ELR._replace(reassignment_keeps_adding=False), ((), ())),
        (ELR._replace(completes_by_adding=False), ((), ())),
    ):
        under_way = reassigned(controller(profile, (1, 2)), 1, 3)
        assert under_way.partitions[TP].adding == (3,)
        back = reassigned(under_way, 1, 2).partitions[TP]
        assert (back.adding, back.removing) == stuck


def test_f8_one_heartbeat_unfences_and_reports_a_failed_directory() -> None:
    """ELR was switched on while nobody led. Both are decided from one state: a leader on the directory that failed."""

    def after(profile: Profile) -> PartitionRegistration:
        brokers = Table([(1, BrokerRegistration(11, fenced=True, directories=("1A", "1B")))])
        partition = PartitionRegistration((1,), (1,), UNDEFINED, directories=("1A",))
        control = ReplicationControl(brokers, Table([(ZERO, partition)]), profile)
        active = QuorumController(control, Heartbeats(Table([(1, BrokerHeartbeatState(fenced=True))])))
        beat = BrokerHeartbeat(1, 11, 5, offline=("1A",))
        return process_broker_heartbeat(active, beat)[0].control.partitions[ZERO]

    kafkas = after(ELR)
    assert (kafkas.leader, kafkas.isr) == (1, ())
    assert after(ELR._replace(heartbeat_in_one_pass=False)).leader == UNDEFINED

"""F4 to F8, F10 and F12: what Kafka's controller does, and the same code with the switch of that finding off."""

from tests.impl.controller.controls import (
    ALL,
    TP,
    ZERO,
    controller,
    fence_broker,
    in_sync,
    reassigned,
    register_broker,
    unfence_broker,
    with_min_isr,
)
from tidegauge.impl.controller.brokers import BrokerHeartbeat, BrokerHeartbeatState, Heartbeats, broker_registered
from tidegauge.impl.controller.configurations import ConfigChange
from tidegauge.impl.controller.features import Features
from tidegauge.impl.controller.partition_registration import PartitionRegistration, RecoveryState
from tidegauge.impl.controller.quorum_controller import QuorumController, process_broker_heartbeat
from tidegauge.impl.controller.quorum_controller import incremental_alter_configs as configure
from tidegauge.impl.controller.quorum_controller import register_broker as register
from tidegauge.impl.controller.records import BROKER, TOPIC, ConfigResource, RegisterBrokerRecord
from tidegauge.impl.controller.replay import replay_records
from tidegauge.impl.controller.replication_control import MIN_IN_SYNC_REPLICAS, BrokerRegistration, ReplicationControl
from tidegauge.impl.controller.requests import DirectoryAssignment, assign_replicas_to_dirs, delete_topic
from tidegauge.impl.errors import BROKER_ID_NOT_REGISTERED, UNKNOWN_SERVER_ERROR
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.profiles import ELR, ELR_REPAIRED, Profile
from tidegauge.impl.releases import profile_of_release
from tidegauge.impl.rules import NONE, UNDEFINED, UNKNOWN_TOPIC_OR_PARTITION


def test_nobody_configures_what_is_not_there() -> None:
    """Nothing is written; the default of the cluster is always there."""

    def error(kind: str, name: str) -> int:
        change = ConfigChange(ConfigResource(kind, name), MIN_IN_SYNC_REPLICAS, "1")
        asked = QuorumController(controller(ELR._replace(elr=False)))
        after, (records, error) = configure(asked, (change,))
        assert bool(records) == (error == NONE) == (after != asked)
        return error

    assert [error(TOPIC, "t"), error(BROKER, ""), error(BROKER, "3")] == [NONE] * 3
    assert error(TOPIC, "u") == UNKNOWN_TOPIC_OR_PARTITION
    assert error(BROKER, "4") == BROKER_ID_NOT_REGISTERED


def test_f4_a_replica_that_was_removed_is_elected_when_it_comes_back_empty() -> None:
    """Each half of the repair takes this ghost away."""
    lowered = reassigned(controller(ELR), 1)
    assert (lowered.partitions[TP].elr, lowered.partitions[TP].isr) == ((2, 3), (1,))
    raised = reassigned(lowered, *ALL)
    ghost = fence_broker(raised, 1).partitions[TP]
    assert (ghost.leader, ghost.isr) == (2, (2,))
    for repair in ({"elr_keeps_removed": False}, {"min_isr_by_partition_zero": False}):
        repaired = reassigned(reassigned(controller(ELR._replace(**repair)), 1), *ALL)
        assert repaired.partitions[TP].elr == ()
        assert fence_broker(repaired, 1).partitions[TP].leader == UNDEFINED


def test_f4_needs_no_second_partition() -> None:
    """The effective min ISR is that from before the change: who is removed with min ISR 3 is a ghost at once."""

    def lowered(**repair: bool) -> tuple[int, ...]:
        control = controller(ELR._replace(**repair), min_isr=3)
        alone = control._replace(partitions=control.partitions.without(ZERO))
        return reassigned(alone, 1, 2).partitions[TP].elr

    assert lowered() == (3,)
    assert lowered(min_isr_by_partition_zero=False) == (3,)
    assert lowered(elr_keeps_removed=False) == ()


def test_f4_a_ghost_keeps_the_only_replica_from_leading() -> None:
    """RF 1, killed and started again: it is in no ISR, and a last known leader is not elected beside an ELR."""

    def restarted(profile: Profile) -> int:
        lowered = reassigned(controller(profile), 1)
        killed = register_broker(fence_broker(lowered, 1), 1, 31)
        return unfence_broker(killed, 1).partitions[TP].leader

    assert restarted(ELR) == UNDEFINED
    assert restarted(ELR_REPAIRED) == 1


def test_f4_repaired_a_replica_that_is_being_added_may_be_eligible() -> None:
    """It came in by the ISR; were it left out, nobody would lead once the others are gone."""
    repaired = ELR._replace(elr_keeps_removed=False, min_isr_by_partition_zero=False)
    raised = reassigned(reassigned(controller(repaired), 1), *ALL)
    joined = raised.partitions[TP]._replace(isr=(1, 2))
    control = raised._replace(partitions=raised.partitions.put(TP, joined))
    gone = fence_broker(register_broker(control, 1, 77), 2)
    assert (gone.partitions[TP].adding, gone.partitions[TP].elr) == ((2, 3), (2,))
    assert unfence_broker(gone, 2).partitions[TP].leader == 2


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


def test_f5_repaired_nobody_stays_eligible_beside_a_leader_that_commits_alone() -> None:
    """An ELR that is kept over a lower min ISR ends with the election that meets it."""
    down = fence_broker(fence_broker(controller(ELR_REPAIRED, (1, 2)), 2), 1)
    kept = with_min_isr(down, "1")
    assert kept.partitions[TP].elr == (1, 2)
    led = unfence_broker(unfence_broker(kept, 1), 2)
    assert (led.partitions[TP].isr, led.partitions[TP].elr) == ((1,), ())
    assert fence_broker(led, 1).partitions[TP].leader == UNDEFINED


def test_f6_a_stale_index_makes_every_registration_fail() -> None:
    """Killed, min.insync.replicas changed, topic deleted: the index still names the topic."""

    def registered(profile: Profile) -> int:
        control = with_min_isr(fence_broker(fence_broker(controller(profile), 3), 2), "1")
        control = replay_records(control, delete_topic(control, "t").records)
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


def test_f6_an_entry_that_stood_there_twice_leaves_partition_0_behind() -> None:
    """Cleared, eligible again, no longer eligible: the index has partition 0, which was in nobody's ELR."""

    def left(profile: Profile) -> tuple[int, ...] | None:
        control = controller(profile)
        control = control._replace(partitions=control.partitions.put(ZERO, PartitionRegistration((1,), (1,), 1)))
        for isr in ((1, 2), (1,)):
            control = in_sync(control, *isr)
        control = with_min_isr(control, "3")
        for isr in ((1, 2), (1,), (1, 2)):
            control = in_sync(control, *isr)
        return control.brokers_to_elrs.get((2, "t"))

    assert left(ELR._replace(min_isr_by_partition_zero=False)) == (0,)
    assert left(ELR_REPAIRED) is None


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


def test_f7_since_4_3_a_reassignment_waits_for_those_it_adds_and_not_for_a_replica_that_lags() -> None:
    """KAFKA-19975, which made F7 one: 3 has joined, 1 lags. Up to 4.2 it waits for 1 as well."""

    def after(profile: Profile) -> PartitionRegistration:
        return in_sync(reassigned(controller(profile, (1, 2)), 1, 3), 2, 3).partitions[TP]

    complete, waits = after(ELR), after(ELR._replace(completes_by_adding=False))
    assert (complete.replicas, complete.isr, complete.adding) == ((1, 3), (3,), ())
    assert (waits.replicas, waits.isr, waits.adding) == ((1, 3, 2), (2, 3), (3,))


def test_f8_one_heartbeat_unfences_and_reports_a_failed_directory() -> None:
    """ELR was switched on while nobody led. Both are decided from one state: a leader on the directory that failed."""

    def after(profile: Profile) -> PartitionRegistration:
        brokers = FrozenMap([(1, BrokerRegistration(11, fenced=True, directories=("1A", "1B")))])
        partition = PartitionRegistration((1,), (1,), UNDEFINED, directories=("1A",))
        control = ReplicationControl(brokers, FrozenMap([(ZERO, partition)]), profile)
        active = QuorumController(control, Heartbeats(FrozenMap([(1, BrokerHeartbeatState(fenced=True))])))
        beat = BrokerHeartbeat(1, 11, 5, offline=("1A",))
        return process_broker_heartbeat(active, beat)[0].control.partitions[ZERO]

    kafkas = after(ELR)
    assert (kafkas.leader, kafkas.isr) == (1, ())
    assert after(ELR._replace(heartbeat_in_one_pass=False)).leader == UNDEFINED


def test_f10_a_replica_that_is_created_again_beside_a_missing_directory_is_elected() -> None:
    """Broker 2 stops cleanly and comes back cleanly, without the directory that the replica lay in."""

    def elected(profile: Profile) -> PartitionRegistration:
        control = controller(profile, (2, 1))._replace(features=Features(elr=1))
        brokers = FrozenMap((b, BrokerRegistration(10 + b, directories=(f"{b}A", f"{b}B"))) for b in ALL)
        lies = control.partitions[TP]._replace(directories=("2A", "1A"))
        control = control._replace(brokers=brokers, partitions=control.partitions.put(TP, lies))
        stopped = fence_broker(fence_broker(control, 2), 1)
        again = RegisterBrokerRecord(2, 32, incarnation=32, directories=("2B",))
        back = replay_records(stopped, broker_registered(stopped, again, previous_epoch=12))
        assert unfence_broker(back, 2).partitions[TP].leader == UNDEFINED
        empty = replay_records(back, assign_replicas_to_dirs(back, DirectoryAssignment(2, 32, "2B", TP)).records)
        return unfence_broker(unfence_broker(empty, 2), 1).partitions[TP]

    kafkas = elected(ELR)
    assert (kafkas.leader, kafkas.isr, kafkas.recovery) == (2, (2,), RecoveryState.RECOVERED)
    assert elected(profile_of_release("4.2.0")).leader == 1
    repaired = elected(ELR_REPAIRED)
    assert (repaired.leader, repaired.elr) == (1, ())


def test_f12_an_election_that_brings_in_the_last_replica_completes_nothing() -> None:
    """Both are down while the partition is reassigned to the first; it returns, and is all that is wanted."""
    for repaired in (False, True):
        control = controller(ELR._replace(completes_before_election=not repaired), (1, 2))
        down = fence_broker(fence_broker(control, 1), 2)
        asked = reassigned(down, 1)
        assert (asked.partitions[TP].removing, asked.partitions[TP].leader) == ((2,), UNDEFINED)
        back = unfence_broker(asked, 1).partitions[TP]
        assert (back.leader, back.isr) == (1, (1,))
        assert (back.replicas, back.removing) == (((1,), ()) if repaired else ((1, 2), (2,)))


def test_f12_repaired_who_is_removed_then_is_eligible_no_more() -> None:
    """Nor is it remembered, if ghosts are not kept; the leader epoch grows once."""
    control = controller(ELR_REPAIRED, (1, 2))
    asked = reassigned(fence_broker(fence_broker(control, 1), 2), 1)
    assert set(asked.partitions[TP].elr) == {1, 2}
    back = unfence_broker(asked, 1).partitions[TP]
    assert (back.replicas, back.isr, back.elr, back.last_known_elr) == ((1,), (1,), (), ())
    assert back.leader_epoch == asked.partitions[TP].leader_epoch + 1

"""F9 and F13: eligible leader replicas switched off and on while somebody is eligible, as Kafka is and repaired."""

from tests.impl.controller.controls import (
    TP,
    controller,
    fence_broker,
    in_sync,
    register_broker,
    unfence_broker,
    with_elr_level,
    with_min_isr,
)
from tidegauge.impl.controller.features import Features
from tidegauge.impl.controller.partition_registration import PartitionRegistration, RecoveryState
from tidegauge.impl.controller.replication_control import ReplicationControl
from tidegauge.impl.profiles import ELR, ELR_REPAIRED, Profile
from tidegauge.impl.rules import UNDEFINED


def one_of_two_left(profile: Profile) -> ReplicationControl:
    """Min ISR 2: broker 1 leads alone and commits nothing, broker 2 is eligible. Then the feature is switched off."""
    down = fence_broker(controller(profile, (1, 2))._replace(features=Features(elr=1)), 2)
    assert (down.partitions[TP].isr, down.partitions[TP].elr) == ((1,), (2,))
    return with_elr_level(down, 0)


def test_f9_an_elr_from_before_the_feature_was_switched_off_elects_who_lacks_what_was_committed_since() -> None:
    """With min ISR 1 broker 1 commits alone. A clean election follows, with the feature off or on again."""

    def elected(profile: Profile, level: int) -> PartitionRegistration:
        alone = with_elr_level(with_min_isr(one_of_two_left(profile), "1"), level)
        return fence_broker(unfence_broker(alone, 2), 1).partitions[TP]

    for level in (0, 1):
        kafkas = elected(ELR, level)
        assert (kafkas.leader, kafkas.isr, kafkas.recovery) == (2, (2,), RecoveryState.RECOVERED)
        assert elected(ELR_REPAIRED, level).leader == UNDEFINED


def test_f9_who_lost_its_log_while_the_feature_was_off_stays_eligible() -> None:
    """It registers without having stopped cleanly; with the feature off nobody looks at the ELRs."""

    def elected(profile: Profile) -> int:
        empty = unfence_broker(register_broker(one_of_two_left(profile), 2, 32), 2)
        return fence_broker(empty, 1).partitions[TP].leader

    assert elected(ELR) == 2
    assert elected(ELR_REPAIRED) == UNDEFINED


def both_gone(profile: Profile) -> ReplicationControl:
    """With the feature off: broker 1 is the last in the ISR, and is fenced."""
    control = controller(profile, (1, 2))._replace(features=Features(elr=1))
    down = fence_broker(fence_broker(with_elr_level(control, 0), 2), 1)
    assert (down.partitions[TP].leader, down.partitions[TP].isr) == (UNDEFINED, (1,))
    return down


def test_f13_switching_elr_on_forgets_whom_a_partition_without_leader_waits_for() -> None:
    """The last member registers without a clean stop; repaired it is elected as last known leader, which says so."""

    def returned(profile: Profile) -> PartitionRegistration:
        back = register_broker(with_elr_level(both_gone(profile), 1), 1, 31)
        assert (back.partitions[TP].isr, back.partitions[TP].elr) == ((), ())
        return unfence_broker(back, 1).partitions[TP]

    kafkas = returned(ELR)
    assert (kafkas.leader, kafkas.isr, kafkas.last_known_elr) == (UNDEFINED, (), ())
    repaired = returned(ELR_REPAIRED)
    assert (repaired.leader, repaired.isr, repaired.recovery) == (1, (1,), RecoveryState.RECOVERING)


def test_f13_switching_elr_off_forgets_an_elr_with_the_next_change() -> None:
    """Brokers 1 and 2 are eligible; 3, which is not, is unfenced first. Repaired, 1 leads when it is back."""

    def returned(profile: Profile) -> PartitionRegistration:
        control = controller(profile)._replace(features=Features(elr=1))
        down = fence_broker(fence_broker(in_sync(fence_broker(control, 3), 1, 2), 2), 1)
        assert (down.partitions[TP].isr, down.partitions[TP].elr) == ((), (1, 2))
        return unfence_broker(unfence_broker(with_elr_level(down, 0), 3), 1).partitions[TP]

    kafkas = returned(ELR)
    assert (kafkas.leader, kafkas.isr, kafkas.elr) == (UNDEFINED, (), ())
    repaired = returned(ELR_REPAIRED)
    assert (repaired.leader, repaired.isr, repaired.elr, repaired.recovery) == (1, (1,), (), RecoveryState.RECOVERED)


def test_f13_repaired_who_lost_its_log_is_eligible_no_more_while_the_feature_is_off() -> None:
    """It registers without a clean stop; the other is waited for still."""
    control = controller(ELR_REPAIRED, (1, 2))._replace(features=Features(elr=1))
    down = with_elr_level(fence_broker(fence_broker(control, 2), 1), 0)
    lost = register_broker(down, 1, 31)
    assert (down.partitions[TP].elr, lost.partitions[TP].elr) == ((1, 2), (2,))
    assert unfence_broker(lost, 1).partitions[TP].leader == UNDEFINED

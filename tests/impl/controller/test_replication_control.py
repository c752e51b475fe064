"""The controller: AlterPartition in Kafka's order, elections of every kind, epochs, eligible leader replicas."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.impl.controller import controls as c
from tidegauge.impl.controller.partition_change import ChangeRequest, Election, build_change
from tidegauge.impl.controller.partition_registration import PartitionRegistration, RecoveryState, merge_change
from tidegauge.impl.controller.records import TOPIC, ConfigResource
from tidegauge.impl.controller.replay import replay_records
from tidegauge.impl.controller.replication_control import (
    UNCLEAN_LEADER_ELECTION,
    AlterPartition,
    BrokerRegistration,
    Proposal,
    ReplicationControl,
    alter_partition,
    is_active,
)
from tidegauge.impl.errors import (
    ELECTION_NOT_NEEDED,
    ELIGIBLE_LEADERS_NOT_AVAILABLE,
    NOT_CONTROLLER,
    PREFERRED_LEADER_NOT_AVAILABLE,
    STALE_BROKER_EPOCH,
)
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import AlterPartitionRequest
from tidegauge.impl.profiles import FETCH_TRUNCATION, Profile
from tidegauge.impl.rules import (
    FENCED_LEADER_EPOCH,
    INELIGIBLE_REPLICA,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    NEW_LEADER_ELECTED,
    NONE,
    UNDEFINED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from tidegauge.impl.topic_partition import TopicPartition

TP = TopicPartition("t", 0)
ALL = (1, 2, 3)
LED = PartitionRegistration(ALL, ALL, 1, 5, 8)
WITH_ELR = FETCH_TRUNCATION._replace(elr=True)


def control(partition: PartitionRegistration = LED, **given: object) -> ReplicationControl:
    brokers = FrozenMap((b, BrokerRegistration(10 + b)) for b in ALL)
    return ReplicationControl(brokers, FrozenMap([(TP, partition)]))._replace(**given)  # type: ignore[arg-type]


def elr_control(partition: PartitionRegistration = LED, min_isr: int = 2) -> ReplicationControl:
    return control(partition, profile=WITH_ELR, min_isr=min_isr)


def proposed(
    isr: tuple[int, ...],
    leader_epoch: int = 5,
    partition_epoch: int = 8,
    epochs: tuple[int, ...] = (),
    sender: int = 1,
    recovery: RecoveryState = RecoveryState.RECOVERED,
    on: ReplicationControl | None = None,
) -> tuple[ReplicationControl, int]:
    request = AlterPartitionRequest(sender, leader_epoch, partition_epoch, isr, epochs)
    before = on or control()
    records, result = alter_partition(before, AlterPartition(sender, 10 + sender, (Proposal(TP, request, recovery),)))
    assert result.error == NONE
    return replay_records(before, records), result.responses[0].error


# AlterPartition


def test_a_sender_of_another_incarnation_is_refused_as_a_whole() -> None:
    """Older, newer, or not registered."""
    for sender, epoch in ((1, 10), (1, 12), (9, 19)):
        records, result = alter_partition(control(), AlterPartition(sender, epoch, ()))
        assert (records, result.error, result.responses) == ((), STALE_BROKER_EPOCH, ())


@pytest.mark.parametrize(
    ("isr", "leader_epoch", "partition_epoch", "sender", "error"),
    [
        ((9,), 6, 7, 2, NOT_CONTROLLER),
        ((9,), 5, 9, 2, NOT_CONTROLLER),
        ((9,), 4, 7, 2, FENCED_LEADER_EPOCH),
        ((9,), 5, 7, 2, INVALID_REQUEST),
        ((9,), 5, 7, 1, INVALID_UPDATE_VERSION),
        ((1, 9), 5, 8, 1, INVALID_REQUEST),
        ((1, 1), 5, 8, 1, INVALID_REQUEST),
        ((2, 3), 5, 8, 1, INVALID_REQUEST),
        ((1, 2), 5, 8, 1, NONE),
    ],
)
def test_a_proposal_is_judged_in_kafkas_order(
    isr: tuple[int, ...], leader_epoch: int, partition_epoch: int, sender: int, error: int
) -> None:
    """Each row is wrong in everything that comes after it, too."""
    after, seen = proposed(isr, leader_epoch, partition_epoch, sender=sender)
    assert seen == error
    assert error == NONE or after == control()


def test_a_member_must_be_there_in_the_incarnation_the_leader_means() -> None:
    """Registered, not fenced, not shutting down (KIP-841); the same broker epoch or none (KIP-903)."""
    assert proposed((1, 2), epochs=(11, 12))[1] == NONE
    assert proposed((1, 2), epochs=(UNDEFINED, UNDEFINED))[1] == NONE
    assert proposed((1, 2), epochs=(11, 5))[1] == INELIGIBLE_REPLICA
    for change in ({"fenced": True}, {"in_controlled_shutdown": True}):
        brokers = control().brokers.put(2, BrokerRegistration(12)._replace(**change))
        assert proposed((1, 2), on=control()._replace(brokers=brokers))[1] == INELIGIBLE_REPLICA
    gone = control()._replace(brokers=control().brokers.without(2))
    assert proposed((1, 2), on=gone)[1] == INELIGIBLE_REPLICA


def test_recovery_is_claimed_only_by_a_leader_alone_that_is_recovering() -> None:
    """RECOVERED cannot go back; a leader that joined with somebody has recovered."""
    recovering = control(LED._replace(isr=(1,), recovery=RecoveryState.RECOVERING))
    assert proposed((1, 2), on=recovering, recovery=RecoveryState.RECOVERING)[1] == INVALID_REQUEST
    assert proposed((1,), recovery=RecoveryState.RECOVERING)[1] == INVALID_REQUEST
    same, error = proposed((1,), on=recovering, recovery=RecoveryState.RECOVERING)
    assert (same, error) == (recovering, NONE)
    after, error = proposed((1, 2), on=recovering)
    assert error == NONE
    assert after.partitions[TP].recovery is RecoveryState.RECOVERED


def test_an_accepted_change_moves_the_partition_epoch_and_not_the_leader_epoch() -> None:
    """A shrink below MV 3.6 moved both; the same ISR again moves nothing."""
    assert proposed((1, 2))[0].partitions[TP] == LED._replace(isr=(1, 2), partition_epoch=9)
    assert proposed(ALL)[0] == control()
    older = control(profile=FETCH_TRUNCATION._replace(epoch_bump_on_shrink=True))
    assert proposed((1, 2), on=older)[0].partitions[TP] == LED._replace(isr=(1, 2), leader_epoch=6, partition_epoch=9)


def test_an_unknown_partition_and_a_change_that_moves_the_leader_are_said() -> None:
    """The leader that shuts down may still ask; the change is made and it learns that another one leads."""
    request = AlterPartitionRequest(1, 0, 0, (1,))
    for other, expected in (
        (TopicPartition("none", 0), UNKNOWN_TOPIC_ID),
        (TopicPartition("t", 9), UNKNOWN_TOPIC_OR_PARTITION),
    ):
        _, result = alter_partition(control(), AlterPartition(1, 11, (Proposal(other, request),)))
        assert result.responses[0].error == expected
    placed = control(LED._replace(directories=("1A", "2A", "3A")))
    failed = placed._replace(brokers=placed.brokers.put(1, BrokerRegistration(11, directories=("1B",))))
    after, error = proposed((1, 2), on=failed)
    assert error == NEW_LEADER_ELECTED
    assert after.partitions[TP].leader == 2


# Elections


def test_a_leader_that_is_fenced_hands_over_to_the_next_in_the_isr() -> None:
    """Both epochs grow; a follower that is fenced moves the partition epoch only."""
    assert c.fence_broker(control(), 1).partitions[TP] == PartitionRegistration(ALL, (2, 3), 2, 6, 9)
    assert c.fence_broker(control(), 3).partitions[TP] == LED._replace(isr=(1, 2), partition_epoch=9)
    assert c.begin_controlled_shutdown(control(), 1).partitions[TP].leader == 2


def test_the_last_member_stays_in_the_isr_without_a_leader_and_leads_again() -> None:
    """Nobody else is elected unless unclean election is enabled."""
    alone = control(LED._replace(isr=(1,)))
    fenced = c.fence_broker(alone, 1)
    assert fenced.partitions[TP] == LED._replace(isr=(1,), leader=UNDEFINED, leader_epoch=6, partition_epoch=9)
    assert c.unfence_broker(c.fence_broker(fenced, 2), 2).partitions[TP].leader == UNDEFINED
    assert c.unfence_broker(fenced, 1).partitions[TP] == LED._replace(isr=(1,), leader_epoch=7, partition_epoch=10)


def test_an_unclean_election_makes_the_leader_the_isr_and_says_recovering() -> None:
    """By the topic's setting at once, or by request."""
    alone = control(LED._replace(isr=(1,)))
    expected = PartitionRegistration(ALL, (2,), 2, 6, 9, RecoveryState.RECOVERING)
    assert c.fence_broker(alone._replace(unclean=True), 1).partitions[TP] == expected
    fenced = c.fence_broker(alone, 1)
    assert c.elect_leader(alone, TP, Election.UNCLEAN) == (alone, ELECTION_NOT_NEEDED)
    after, error = c.elect_leader(fenced, TP, Election.UNCLEAN)
    assert (error, after.partitions[TP].isr) == (NONE, (2,))
    nobody = c.fence_broker(c.fence_broker(fenced, 2), 3)
    assert c.elect_leader(nobody, TP, Election.UNCLEAN) == (nobody, ELIGIBLE_LEADERS_NOT_AVAILABLE)


def test_a_preferred_election_moves_to_the_first_replica_if_it_may_lead() -> None:
    """Otherwise nothing changes."""
    moved = control(LED._replace(leader=2))
    assert c.elect_leader(moved, TP, Election.PREFERRED)[0].partitions[TP] == LED._replace(leader_epoch=6, partition_epoch=9)
    assert c.elect_leader(control(), TP, Election.PREFERRED) == (control(), ELECTION_NOT_NEEDED)
    out = control(LED._replace(leader=2, isr=(2, 3)))
    assert c.elect_leader(out, TP, Election.PREFERRED) == (out, PREFERRED_LEADER_NOT_AVAILABLE)
    assert c.elect_leader(out, TopicPartition("none", 0), Election.PREFERRED)[1] == UNKNOWN_TOPIC_OR_PARTITION


def test_a_replica_that_is_taken_away_moves_the_leader_epoch() -> None:
    """Although the leader stays: a fetch of the old replica is fenced."""
    fewer = build_change(FETCH_TRUNCATION, LED, ChangeRequest((1, 2), replicas=(1, 2)), lambda _: True, 1)
    assert fewer is not None
    assert merge_change(LED, fewer) == PartitionRegistration((1, 2), (1, 2), 1, 6, 9)
    more = build_change(FETCH_TRUNCATION, LED, ChangeRequest(replicas=(1, 2, 3, 4)), lambda _: True, 1)
    assert more is not None
    assert merge_change(LED, more)[3:5] == (5, 9)


# Incarnations


def test_another_incarnation_leaves_every_isr_when_it_registers() -> None:
    """Since 4.0, clean or not; before, it stayed until it was fenced. The last member stays anyway."""
    after = c.register_broker(control(), 3, 23, previous_epoch=13)
    assert after.partitions[TP].isr == (1, 2)
    assert (after.brokers[3].epoch, after.brokers[3].fenced) == (23, True)
    older = control(profile=FETCH_TRUNCATION._replace(registration_leaves_isr=False))
    assert c.register_broker(older, 3, 23).partitions[TP] == LED
    alone = c.register_broker(control(LED._replace(isr=(1,))), 1, 21)
    assert alone.partitions[TP].isr == (1,)
    assert alone.partitions[TP].leader == UNDEFINED
    assert c.register_broker(control(), 9, 19).partitions[TP] == LED


# Eligible leader replicas


@pytest.mark.parametrize(("heeded", "leader"), [(False, UNDEFINED), (True, 2)])
def test_a_topics_own_unclean_election_counts_since_3_9(heeded: bool, leader: int) -> None:
    """KAFKA-12670: up to 3.8 the controller looked nothing up."""
    config = FrozenMap([(ConfigResource(TOPIC, TP.topic), FrozenMap([(UNCLEAN_LEADER_ELECTION, "true")]))])
    found = control(LED._replace(isr=(1,)), profile=FETCH_TRUNCATION._replace(unclean_by_config=heeded), configs=config)
    assert c.fence_broker(found, 1).partitions[TP].leader == leader


def test_below_min_isr_those_who_leave_stay_eligible() -> None:
    """At or above it the ELR is empty; back at it, it is cleared."""
    two = c.fence_broker(elr_control(), 3)
    assert (two.partitions[TP].isr, two.partitions[TP].elr) == ((1, 2), ())
    one = c.fence_broker(two, 2)
    assert (one.partitions[TP].isr, one.partitions[TP].elr) == ((1,), (2,))
    back, error = proposed((1, 3), partition_epoch=one.partitions[TP].partition_epoch, on=c.unfence_broker(one, 3))
    assert (error, back.partitions[TP].elr) == (NONE, ())


def test_with_elr_the_isr_may_become_empty_and_a_member_of_the_elr_is_elected() -> None:
    """It becomes the ISR; nothing is lost, so nothing is recovering."""
    empty = c.fence_broker(c.fence_broker(c.fence_broker(elr_control(), 3), 2), 1)
    partition = empty.partitions[TP]
    assert (partition.isr, partition.elr, partition.leader, partition.last_known_elr) == ((), (1, 2), UNDEFINED, (1,))
    assert c.unfence_broker(empty, 3).partitions[TP].leader == UNDEFINED
    led = c.unfence_broker(empty, 2).partitions[TP]
    assert (led.isr, led.elr, led.leader, led.recovery) == ((2,), (1,), 2, RecoveryState.RECOVERED)
    assert led.last_known_elr == ()


def test_in_4_0_the_last_known_leader_leads_though_it_is_fenced() -> None:
    """Whether it is live is asked, logged, and no condition (KAFKA-19522): elected as soon as anybody is unfenced."""
    silent = PartitionRegistration(ALL, (), UNDEFINED, 5, 8, last_known_elr=(1,))
    fenced = BrokerRegistration(11, fenced=True)

    def leader(back: int, profile: Profile) -> int:
        down = elr_control(silent)._replace(
            brokers=FrozenMap((b, fenced._replace(epoch=10 + b)) for b in ALL), profile=profile
        )
        return c.unfence_broker(down, back).partitions[TP].leader

    in_4_0 = WITH_ELR._replace(elects_fenced_last_known=True)
    assert [leader(back, in_4_0) for back in (1, 2)] == [1, 1]
    assert [leader(back, WITH_ELR) for back in (1, 2)] == [1, UNDEFINED]


def test_whether_the_last_known_leader_may_be_nobody() -> None:
    """Up to 4.1.0 it is noted when the ISR becomes empty, whoever led: the member was none that led, and -1 is noted."""
    silent = PartitionRegistration(ALL, (2,), UNDEFINED, 5, 8)

    def noted(partition: PartitionRegistration, isr: tuple[int, ...], notes_no_leader: bool) -> tuple[int, ...] | None:
        profile = WITH_ELR._replace(notes_no_leader=notes_no_leader)
        fields = build_change(profile, partition, ChangeRequest(isr=isr), lambda broker: broker in isr, 2)
        assert fields is not None
        return fields.last_known_elr

    assert [noted(silent, (), before) for before in (True, False)] == [(UNDEFINED,), None]
    led = silent._replace(leader=2)
    assert [noted(led, (), before) for before in (True, False)] == [(2,), (2,)]
    found = silent._replace(last_known_elr=(UNDEFINED,))
    assert [noted(found, (2,), before) for before in (True, False)] == [(), ()]


def test_a_broker_that_lost_data_is_eligible_no_more() -> None:
    """An unclean restart takes it out of the ELR; then only the last known leader is left, uncleanly."""
    empty = c.fence_broker(c.fence_broker(c.fence_broker(elr_control(), 3), 2), 1)
    clean = c.register_broker(empty, 2, 22, previous_epoch=12)
    assert clean.partitions[TP].elr == (1, 2)
    one = c.register_broker(empty, 2, 22)
    assert one.partitions[TP].elr == (1,)
    none = c.register_broker(one, 1, 21)
    assert none.partitions[TP].elr == ()
    assert c.unfence_broker(none, 2).partitions[TP].leader == UNDEFINED
    last = c.unfence_broker(none, 1).partitions[TP]
    assert (last.leader, last.isr, last.recovery) == (1, (1,), RecoveryState.RECOVERING)


def test_a_new_min_isr_forgets_every_elr() -> None:
    """ClearElrRecord: the partition epoch grows without a change record."""
    one = c.fence_broker(c.fence_broker(elr_control(), 3), 2)
    cleared = c.set_min_isr(one, 1).partitions[TP]
    assert (cleared.elr, cleared.partition_epoch) == ((), one.partitions[TP].partition_epoch + 1)
    assert c.set_min_isr(elr_control(), 3).partitions[TP] == LED
    assert c.set_min_isr(control(), 3).partitions[TP] == LED


class Controllers(RuleBasedStateMachine):
    """Brokers come, go and restart; leaders propose; operators elect."""

    def __init__(self) -> None:
        super().__init__()
        self.now = control()
        self.before = self.now

    def becomes(self, after: ReplicationControl) -> None:
        self.before, self.now = self.now, after

    @rule(on=st.booleans(), min_isr=st.integers(1, 3))
    def elr(self, on: bool, min_isr: int) -> None:
        if on:
            self.now = self.now._replace(profile=WITH_ELR, min_isr=min_isr)

    @rule(b=st.sampled_from(ALL))
    def fence(self, b: int) -> None:
        self.becomes(c.fence_broker(self.now, b))

    @rule(b=st.sampled_from(ALL))
    def unfence(self, b: int) -> None:
        self.becomes(c.unfence_broker(self.now, b))

    @rule(b=st.sampled_from(ALL), clean=st.booleans())
    def restart(self, b: int, clean: bool) -> None:
        epoch = self.now.brokers[b].epoch
        self.becomes(c.register_broker(self.now, b, epoch + 10, previous_epoch=epoch if clean else UNDEFINED))

    @rule(election=st.sampled_from((Election.PREFERRED, Election.UNCLEAN)))
    def elect(self, election: Election) -> None:
        self.becomes(c.elect_leader(self.now, TP, election)[0])

    @rule(isr=st.sets(st.sampled_from(ALL), min_size=1))
    def propose(self, isr: set[int]) -> None:
        partition = self.now.partitions[TP]
        if partition.leader == UNDEFINED:
            return
        request = AlterPartitionRequest(
            partition.leader, partition.leader_epoch, partition.partition_epoch, tuple(sorted(isr))
        )
        sent = AlterPartition(partition.leader, self.now.brokers[partition.leader].epoch, (Proposal(TP, request),))
        self.becomes(replay_records(self.now, alter_partition(self.now, sent).records))

    @invariant()
    def a_leader_is_an_active_member_of_the_isr(self) -> None:
        partition = self.now.partitions[TP]
        if partition.leader != UNDEFINED:
            assert partition.leader in partition.isr
            assert is_active(self.now, partition.leader)

    @invariant()
    def isr_and_elr_are_replicas_and_have_nothing_in_common(self) -> None:
        partition = self.now.partitions[TP]
        assert {*partition.isr, *partition.elr} <= set(ALL)
        assert not set(partition.isr) & set(partition.elr)
        assert partition.isr or self.now.profile.elr

    @invariant()
    def epochs_grow_by_steps(self) -> None:
        old, new = self.before.partitions[TP], self.now.partitions[TP]
        if old is new:
            return
        assert new.partition_epoch > old.partition_epoch
        assert new.leader_epoch - old.leader_epoch >= (new.leader != old.leader)

    @invariant()
    def an_election_outside_isr_and_elr_says_recovering(self) -> None:
        old, new = self.before.partitions[TP], self.now.partitions[TP]
        if new.leader != old.leader and new.leader not in {UNDEFINED, *old.isr, *old.elr}:
            assert new.recovery is RecoveryState.RECOVERING


TestControllers = Controllers.TestCase

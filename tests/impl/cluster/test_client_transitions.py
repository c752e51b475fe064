"""Clients of the played cluster: who is answered, when, and what is shown."""

from tests.impl.reached import reached
from tidegauge.impl.cluster.cluster import Bounds, Cluster, actions, step
from tidegauge.impl.errors import NOT_ENOUGH_REPLICAS_AFTER_APPEND
from tidegauge.impl.explorer.explore import find_violation
from tidegauge.impl.explorer.faults import FAULTS
from tidegauge.impl.explorer.invariants import violated
from tidegauge.impl.explorer.search import Violation
from tidegauge.impl.explorer.spec_view import view
from tidegauge.impl.rules import NONE, NOT_LEADER_OR_FOLLOWER

BOUNDS = Bounds(brokers=2, max_log=4, max_epoch=2, max_crashes=1, max_waiting=2)
FETCHED = (("SendFetch", 1), ("HandleFetch", 0, 1, 0), ("HandleFetchResponse", 1, 0), ("HandleFetch", 0, 1, 0))
"""The follower copies a record; its next request, which is sent at once, says so."""


def after(*labels: tuple[object, ...], bounds: Bounds = BOUNDS) -> Cluster:
    return reached(bounds, labels)


def reported(cluster: Cluster) -> set[tuple[object, ...]]:
    """What clients can be told now."""
    return {label for label in actions(cluster) if label[0] in ("AnswerProduce", "Read")}


def test_nobody_is_answered_before_the_high_watermark_has_passed_the_record() -> None:
    """Nor is anything shown."""
    assert reported(after(("LeaderAppend", 0))) == set()
    assert reported(after(("LeaderAppend", 0), *FETCHED[:3])) == set()


def test_what_is_committed_is_acknowledged_and_shown() -> None:
    """Once: an answered client waits no more. What is not committed is neither."""
    committed = after(("LeaderAppend", 0), *FETCHED, ("LeaderAppend", 0))
    assert reported(committed) == {("AnswerProduce", 0, 1, NONE), ("Read", 0, 1, 1)}
    answered = step(committed, ("AnswerProduce", 0, 1, NONE))
    assert reported(answered) == {("Read", 0, 1, 1)}
    assert answered.waiting == (((2, 0),), ())


def test_a_deposed_leader_answers_with_an_error() -> None:
    """As soon as it knows: until then its clients wait."""
    deposed = after(("LeaderAppend", 0), ("FenceBroker", 0, 1))
    assert reported(deposed) == set()
    assert reported(step(deposed, ("BecomeFollower", 0))) == {("AnswerProduce", 0, 1, NOT_LEADER_OR_FOLLOWER)}


def test_a_broker_that_dies_answers_nobody() -> None:
    """Its connections are gone."""
    crashed = after(("LeaderAppend", 0), *FETCHED, ("Crash", 0, 1, 1))
    assert crashed.waiting == ((), ())
    assert reported(crashed) == set()


def test_no_more_clients_wait_than_the_bound_says() -> None:
    """What is appended beyond that is nobody's."""
    assert after(*[("LeaderAppend", 0)] * 3).waiting == (((1, 0), (2, 0)), ())


def test_without_a_bound_there_are_no_clients() -> None:
    """Nobody waits, nobody is told anything, and views do not speak of them."""
    alone = after(("LeaderAppend", 0), *FETCHED, bounds=BOUNDS._replace(max_waiting=0))
    assert alone.waiting == ()
    assert reported(alone) == set()
    assert len(view(alone)) == 4
    assert view(after(("LeaderAppend", 0)))[4:] == ((((1, 0),), ()), ())


def test_a_broker_that_leads_no_more_reads_no_metadata_before_it_has_answered() -> None:
    """After another term its log may have another record where the one ended that somebody waits for."""
    deposed = after(("LeaderAppend", 0), ("ElectPreferred", 1), ("BecomeFollower", 0), ("ElectPreferred", 0))
    assert ("BecomeLeader", 0) not in actions(deposed)
    answered = step(deposed, ("AnswerProduce", 0, 1, NOT_LEADER_OR_FOLLOWER))
    assert answered.acked == ()
    assert ("BecomeLeader", 0) in actions(answered)


def test_too_few_in_sync_replicas_refuse_acks_all() -> None:
    """Below min.insync.replicas nothing is appended; what was before, and is committed, is answered with an error."""
    bounds = BOUNDS._replace(min_insync_replicas=2)
    committed = after(("LeaderAppend", 0), *FETCHED, bounds=bounds)
    alone = committed
    for label in (("FenceBroker", 1, -1), ("BecomeLeader", 0)):
        alone = step(alone, label)
    assert ("LeaderAppend", 0) in actions(committed)
    assert ("LeaderAppend", 0) not in actions(alone)
    assert reported(alone) == {("AnswerProduce", 0, 1, NOT_ENOUGH_REPLICAS_AFTER_APPEND), ("Read", 0, 1, 1)}


def test_what_was_acknowledged_is_held_by_who_may_lead() -> None:
    """And committed; a state where that is not so is told."""
    acked = step(after(("LeaderAppend", 0), *FETCHED), ("AnswerProduce", 0, 1, NONE))
    assert acked.acked == ((0, 0),)
    assert violated(acked) is None
    wrong = violated(acked._replace(acked=((1, 0),)))
    assert wrong == Violation("AckedIsCommitted", (), (1, 0), (0,))
    lacking = violated(acked._replace(acked=((1, 0),)), ("AckedCompleteness",))
    assert lacking == Violation("AckedCompleteness", (0,), (1, 0), (0,))


def test_with_acks_at_the_log_end_the_search_finds_a_record_that_a_leader_lacks() -> None:
    """A rule that lets the high watermark be the leader's own log end acknowledges too early."""
    bounds = Bounds(brokers=2, max_log=1, max_epoch=1, max_crashes=0, max_waiting=1)
    assert find_violation(bounds, invariants=("AckedIsCommitted", "AckedCompleteness")) is None
    found = find_violation(bounds, rules_override=FAULTS["hw-is-own-log-end"].rules, invariants=("AckedCompleteness",))
    assert found is not None
    assert [label[0] for label in found.labels] == ["LeaderAppend", "AnswerProduce"]

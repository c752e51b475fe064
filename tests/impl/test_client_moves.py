"""Clients of the played cluster: who is answered, when, and what is shown."""

import pytest

from impl.cluster import Bounds, Cluster, actions, initial, step
from impl.errors import UsageError
from impl.explore import explore
from impl.profiles import FETCH_TRUNCATION
from impl.rules import NONE, NOT_LEADER_OR_FOLLOWER

BOUNDS = Bounds(brokers=2, max_log=4, max_epoch=2, max_crashes=1, max_waiting=2)
FETCHED = (("SendFetch", 1), ("HandleFetch", 0, 1, 0), ("HandleFetchResponse", 1, 0), ("HandleFetch", 0, 1, 0))
"""The follower copies a record; its next request, which is sent at once, says so."""


def after(*labels: tuple[object, ...], bounds: Bounds = BOUNDS) -> Cluster:
    cluster = initial(bounds, FETCH_TRUNCATION)
    for label in labels:
        cluster = step(cluster, label)
    return cluster


def told(cluster: Cluster) -> set[tuple[object, ...]]:
    """What clients can be told now."""
    return {label for label in actions(cluster) if label[0] in ("AnswerProduce", "Read")}


def test_nobody_is_answered_before_the_high_watermark_has_passed_the_record() -> None:
    """Nor is anything shown."""
    assert told(after(("LeaderAppend", 0))) == set()
    assert told(after(("LeaderAppend", 0), *FETCHED[:3])) == set()


def test_what_is_committed_is_acknowledged_and_shown() -> None:
    """Once: an answered client waits no more. What is not committed is neither."""
    committed = after(("LeaderAppend", 0), *FETCHED, ("LeaderAppend", 0))
    assert told(committed) == {("AnswerProduce", 0, 1, NONE), ("Read", 0, 1, 1)}
    answered = step(committed, ("AnswerProduce", 0, 1, NONE))
    assert told(answered) == {("Read", 0, 1, 1)}
    assert answered.waiting == ((2,), ())


def test_a_deposed_leader_answers_with_an_error() -> None:
    """As soon as it knows: until then its clients wait."""
    deposed = after(("LeaderAppend", 0), ("FenceBroker", 0, 1))
    assert told(deposed) == set()
    assert told(step(deposed, ("BecomeFollower", 0))) == {("AnswerProduce", 0, 1, NOT_LEADER_OR_FOLLOWER)}


def test_a_broker_that_dies_answers_nobody() -> None:
    """Its connections are gone."""
    crashed = after(("LeaderAppend", 0), *FETCHED, ("Crash", 0, 1, 1))
    assert crashed.waiting == ((), ())
    assert told(crashed) == set()


def test_no_more_clients_wait_than_the_bound_says() -> None:
    """What is appended beyond that is nobody's."""
    assert after(*[("LeaderAppend", 0)] * 3).waiting == ((1, 2), ())


def test_without_a_bound_there_are_no_clients() -> None:
    """And with one the graph is not the specification's, so it is not explored."""
    alone = after(("LeaderAppend", 0), *FETCHED, bounds=BOUNDS._replace(max_waiting=0))
    assert alone.waiting == ()
    assert told(alone) == set()
    with pytest.raises(UsageError, match="clients"):
        explore(BOUNDS)

"""A truncation that needs no response as a step of the fetcher thread: what becomes of a late response, what it changes."""

import pytest

from tests.impl.reached import LEADERLESS, reached
from tidegauge.impl.cluster.cluster import Bounds, Cluster, Label, actions, step
from tidegauge.impl.explorer.explore import Graph, explore, find_violation
from tidegauge.impl.explorer.search import View
from tidegauge.impl.explorer.spec_view import TRUNCATING, view
from tidegauge.impl.profiles import HW_ONLY, Profile
from tidegauge.impl.releases import profile_named

AT_ONCE = Bounds(brokers=2, max_log=2, max_epoch=1, max_crashes=0)
IN_THREAD = AT_ONCE._replace(thread_truncates=True)
UNCHECKED = profile_named("fetch-truncation")._replace(response_epoch_checked=False)
LATE: tuple[Label, ...] = (
    ("LeaderAppend", 0),
    ("SendFetch", 1),
    ("FenceBroker", 1, -1),
    ("HandleFetch", 0, 1, 0),
    ("FenceBroker", 0, 0),
    ("BecomeLeader", 0),
    ("BecomeFollower", 1),
)
"""b1 leads on in a new epoch, and the record that b2 asked for in the last one is on its way."""


def log_ends(state: Cluster) -> tuple[int, ...]:
    return tuple(broker.partition.log.end for broker in state.brokers)


@pytest.mark.parametrize(
    "profile", [profile_named("kip279"), profile_named("kip320"), UNCHECKED], ids=lambda profile: profile.name
)
def test_a_late_response_is_dropped_until_the_thread_has_truncated(profile: Profile) -> None:
    """Kafka 3.4.0 and 3.6.2 on their own wire. Without the step it would be taken."""
    arrives: Label = ("HandleFetchResponse", 1, 0)
    assert log_ends(step(reached(AT_ONCE, LATE, profile), arrives)) == (1, 1)
    waits = reached(IN_THREAD, LATE, profile)
    assert view(waits)[0][1][4] == TRUNCATING
    assert not {("TruncateToHighWatermark", 1), ("SendFetch", 1)} & set(actions(waits))  # the thread waits
    dropped = step(waits, arrives)
    assert log_ends(dropped) == (1, 0)
    assert dropped.network[1][0] is None
    assert ("SendFetch", 1) not in actions(dropped)
    asks = step(dropped, ("TruncateToHighWatermark", 1))
    assert view(asks)[0][1][10][0] == (1, 1, 0, -1)
    assert log_ends(step(step(asks, ("HandleFetch", 0, 1, 0)), arrives)) == (1, 1)


def test_a_broker_may_be_elected_before_it_has_truncated() -> None:
    """hw-only: makeFollowers truncates before anything else can happen, the thread does not."""
    run: tuple[Label, ...] = (("LeaderAppend", 0), ("ElectPreferred", 1), ("BecomeFollower", 0))
    bounds = AT_ONCE._replace(max_epoch=2)
    at_once = reached(bounds, run, HW_ONLY)
    in_thread = reached(bounds._replace(thread_truncates=True), run, HW_ONLY)
    assert (log_ends(at_once), log_ends(in_thread)) == ((0, 0), (1, 0))
    elected = step(step(in_thread, ("ElectPreferred", 0)), ("BecomeLeader", 0))
    assert log_ends(elected) == (1, 0)
    assert log_ends(step(in_thread, ("TruncateToHighWatermark", 0))) == (0, 0)


def test_without_a_leader_no_thread_truncates() -> None:
    """hw-only: the partition is in no thread; makeFollowers truncates all the same."""
    bounds = AT_ONCE._replace(max_epoch=2, max_crashes=1)
    assert log_ends(reached(bounds, LEADERLESS, HW_ONLY)) == (1, 0)
    leaderless = reached(bounds._replace(thread_truncates=True), LEADERLESS, HW_ONLY)
    assert log_ends(leaderless) == (1, 1)
    assert view(leaderless)[0][1][4] == TRUNCATING
    assert ("TruncateToHighWatermark", 1) not in actions(leaderless)


def shown(graph: Graph) -> set[View]:
    """The states without what is in flight and without the step's own role."""
    return {
        (tuple((*b[:4], 2 if b[4] == TRUNCATING else b[4], *b[5:10]) for b in brokers), *rest)
        for brokers, *rest in graph.states
    }


@pytest.mark.parametrize("profile", [*map(profile_named, ("kip101", "kip279", "kip320", "fetch-truncation")), UNCHECKED])
@pytest.mark.parametrize(
    "bounds",
    [
        AT_ONCE,
        AT_ONCE._replace(max_log=1, max_epoch=2),
        pytest.param(AT_ONCE._replace(max_crashes=1), marks=pytest.mark.long),
    ],
)
def test_with_epochs_the_same_logs_and_high_watermarks_come(profile: Profile, bounds: Bounds) -> None:
    """So whatever holds of logs, high watermarks, ISRs, recorded log ends and the controller holds with it, too."""
    assert shown(explore(bounds._replace(thread_truncates=True), profile)) == shown(explore(bounds, profile))


def test_without_epochs_it_changes_what_can_be_lost_and_when() -> None:
    """hw-only loses committed records either way: after two steps more where the thread truncates, in logs of its own."""
    bounds = Bounds(2, 1, 3, 0)
    for thread, states in ((False, 11), (True, 13)):
        found = find_violation(bounds._replace(thread_truncates=thread), "hw-only", invariants=("LeaderCompleteness",))
        assert found is not None
        assert len(found.states) == states
    small = AT_ONCE._replace(max_log=1)
    assert not shown(explore(small._replace(thread_truncates=True), "hw-only")) <= shown(explore(small, "hw-only"))

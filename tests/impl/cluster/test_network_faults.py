"""Requests that arrive twice and lost disks: what they may do, what they may not, and that nobody has them unasked."""

import random
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.impl.reached import reached
from tidegauge.impl.cluster import controller
from tidegauge.impl.cluster.broker import EARLIER, REGISTERED
from tidegauge.impl.cluster.cluster import Bounds, Cluster, Label, actions, initial, step
from tidegauge.impl.cluster.transitions import Transition
from tidegauge.impl.explorer.explore import Walker, explore, find_violation
from tidegauge.impl.explorer.invariants import violated
from tidegauge.impl.explorer.spec_view import view
from tidegauge.impl.messages import AlterPartitionRequest
from tidegauge.impl.profiles import FETCH_TRUNCATION, Setup
from tidegauge.impl.releases import profile_named
from tidegauge.impl.rules import INELIGIBLE_REPLICA, NONE, UNDEFINED
from tidegauge.util.errors import UsageError

TWICE = Bounds(2, 2, 1, 1, 1, max_duplicates=9)
DISKS = Bounds(2, 2, 2, 2, 1, max_lost_disks=2)
WIDE = Bounds(3, 12, 12, 6, 3)


def walk(walker: Walker, seed: int, allowed: Callable[[Cluster, Transition], bool], steps: int = 250) -> Iterable[Cluster]:
    """The states of a random run that takes no step which is not allowed."""
    rng, state = random.Random(seed), walker.start
    for _ in range(steps):
        transitions = [transition for transition in walker.transitions(state) if allowed(state, transition)]
        if not transitions:
            return
        name = rng.choice(sorted({transition.label[0] for transition in transitions}))
        state = walker.take(state, rng.choice([transition for transition in transitions if transition.label[0] == name]))
        yield state


def test_without_a_bound_there_are_none() -> None:
    """The graph that equals the specification's has neither label, and its states have nothing to tell them apart by."""
    graph = explore(Bounds(2, 1, 1, 1))
    assert not {label[0] for label in graph.labels} & {"Duplicate", "HandleDuplicate", "LoseDisk"}
    start = initial(Bounds(2, 1, 1, 1), FETCH_TRUNCATION)
    assert (start.copies, start.controller.incarnations, start.brokers[0].incarnation) == ((), (), UNDEFINED)


@pytest.mark.parametrize("bounds", [TWICE, DISKS])
def test_a_graph_of_views_is_refused_with_them(bounds: Bounds) -> None:
    """Views do not show copies and broker epochs."""
    with pytest.raises(UsageError, match="expected no duplicates or lost disks"):
        explore(bounds)


def test_a_copy_is_handled_once_more_and_nobody_gets_the_response() -> None:
    """The leader records the old log end again; what is in flight stays as it is."""
    state = reached(
        TWICE,
        [
            ("LeaderAppend", 0),
            ("SendFetch", 1),
            ("Duplicate", 1, 0),
            ("HandleFetch", 0, 1, 0),
            ("HandleFetchResponse", 1, 0),
            ("HandleFetch", 0, 1, 0),
        ],
    )
    assert ("Duplicate", 1, 0) not in actions(state)
    late = ("HandleDuplicate", 0, 1, 0, 0, 0, -1)
    again = step(state, late)
    assert [r.log_end for r in state.brokers[0].partition.remotes] == [1]
    assert [r.log_end for r in again.brokers[0].partition.remotes] == [0]
    assert again.network == state.network
    assert again.brokers[0].partition.log.hw == state.brokers[0].partition.log.hw == 1
    assert late not in actions(again)


@pytest.mark.parametrize("crashed", [0, 1])
def test_a_copy_dies_with_either_end(crashed: int) -> None:
    """As every request in flight does."""
    state = reached(TWICE, [("SendFetch", 1), ("Duplicate", 1, 0), ("Crash", crashed, 0, 0)])
    assert state.copies == ((None, None), (None, None))
    assert state.duplicates == 1


def test_there_are_no_more_than_the_bounds_allow() -> None:
    """Copies and lost disks are counted over the whole run."""
    once = Bounds(2, 2, 1, 2, 1, max_duplicates=1, max_lost_disks=1)
    handled = reached(once, [("SendFetch", 1), ("Duplicate", 1, 0), ("HandleDuplicate", 0, 1, 0, 0, 0, -1)])
    assert ("Duplicate", 1, 0) not in actions(handled)
    lost = reached(
        once,
        [("LeaderAppend", 0), ("Crash", 0, 0, 1), ("LoseDisk", 0), ("FenceBroker", 0, 1), ("Restart", 0)],
    )
    assert lost.lost_disks == 1
    assert lost.brokers[0].partition.log.end == 0
    assert not [label for label in actions(lost) if label[0] == "LoseDisk"]


def test_an_epoch_request_may_arrive_twice_too() -> None:
    """The leader answers again, and nothing at either end changes."""
    labels: list[Label] = [
        ("LeaderAppend", 0),
        ("SendFetch", 1),
        ("HandleFetch", 0, 1, 0),
        ("HandleFetchResponse", 1, 0),
        ("ElectPreferred", 1),
        ("BecomeLeader", 1),
        ("ElectPreferred", 0),
        ("BecomeFollower", 1),
        ("HandleFetch", 0, 1, 0),
        ("LoseResponse", 1, 0),
        ("Duplicate", 1, 0),
    ]
    before = reached(TWICE._replace(max_epoch=2), labels, profile_named("kip320"))
    handled = step(before, ("HandleDuplicate", 0, 1, 0, 2, -1, 1))
    assert handled.brokers == before.brokers
    assert handled.network == before.network
    assert handled.copies == ((None, None), (None, None))


@given(st.integers(0, 2**32), st.sampled_from(["fetch-truncation", "repaired", "kip320"]))
@settings(max_examples=40)
def test_requests_that_arrive_twice_break_nothing(seed: int, profile: str) -> None:
    """A request of the current epoch and incarnation was true when it was sent, and its sender has not truncated since."""
    walker = Walker(WIDE._replace(max_duplicates=200), profile)
    for state in walk(walker, seed, lambda _state, _transition: True):
        assert violated(state) is None
        view(state)


@given(st.integers(0, 2**32), st.sampled_from(["fetch-truncation", "kip320"]))
@settings(max_examples=40)
def test_a_disk_lost_outside_the_isr_breaks_nothing(seed: int, profile: str) -> None:
    """The broker comes back empty under another broker epoch, and joins when it has everything."""
    walker = Walker(WIDE._replace(max_lost_disks=6), profile)

    def outside(state: Cluster, transition: Transition) -> bool:
        return transition.label[0] != "LoseDisk" or transition.actor not in state.controller.isr

    for state in walk(walker, seed, outside):
        assert violated(state) is None
        view(state)


def test_the_last_member_of_the_isr_loses_what_was_committed() -> None:
    """Nobody else may be elected, so it is, with an empty log: what ELR was made for (KIP-966)."""
    found = find_violation(DISKS, invariants=("LeaderCompleteness",))
    assert found is not None
    names = [label[0] for label in found.labels]
    assert names.count("LoseDisk") == 1
    assert names[-1] == "BecomeLeader"
    assert found.states[-1].controller.isr == (found.violation.brokers[0],)


def test_a_proposal_for_an_incarnation_that_is_gone_is_refused() -> None:
    """KIP-903: the follower was about to join, lost its disk and is back; the controller knows it is another one."""
    now = controller.Controller((0, 1), 0, 3, (0,), (0, 1), incarnations=(REGISTERED, REGISTERED))
    for reported, error in ((EARLIER, INELIGIBLE_REPLICA), (REGISTERED, NONE), (UNDEFINED, NONE)):
        request = AlterPartitionRequest(0, 3, 0, (0, 1), (REGISTERED, reported))
        assert controller.alter_partition(Setup(), now, request)[1].error == error
    uncounted = now._replace(incarnations=())
    request = AlterPartitionRequest(0, 3, 0, (0, 1), (REGISTERED, EARLIER))
    assert controller.alter_partition(Setup(), uncounted, request)[1].error == NONE


def test_without_that_check_an_empty_replica_joins() -> None:
    """The same run twice: a pending expansion outlives the disk of its member. Refused, it breaks nothing."""
    bounds = Bounds(2, 2, 2, 1, 1, max_lost_disks=1)
    labels: list[Label] = [
        ("FenceBroker", 1, -1),
        ("BecomeLeader", 0),
        ("LeaderAppend", 0),
        ("SendFetch", 1),
        ("HandleFetch", 0, 1, 0),
        ("HandleFetchResponse", 1, 0),
        ("HandleFetch", 0, 1, 1),
        ("Crash", 1, 0, 1),
        ("LoseDisk", 1),
        ("FenceBroker", 1, -1),
        ("Restart", 1),
        ("UnfenceBroker", 1, -1),
    ]
    state = reached(bounds, labels)
    assert state.committed == (0,)
    refused = step(state, ("AlterPartition", 0))
    assert refused.controller.isr == (0,)
    forgotten = state._replace(controller=state.controller._replace(incarnations=()))
    joined = step(forgotten, ("AlterPartition", 0))
    assert joined.controller.isr == (0, 1)
    violation = violated(joined)
    assert violation is not None
    assert violation.invariant == "IsrCompleteness"
    assert violated(refused) is None

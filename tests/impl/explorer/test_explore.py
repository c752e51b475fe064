"""Exploration: pinned sizes, shortest paths, and faults that are found."""

import inspect

import pytest

from tidegauge.impl import rules
from tidegauge.impl.cluster.cluster import Bounds, step
from tidegauge.impl.explorer.explore import explore, find_violation
from tidegauge.impl.explorer.faults import FAULTS, Fault
from tidegauge.impl.explorer.invariants import INVARIANTS
from tidegauge.impl.explorer.spec_view import view
from tidegauge.impl.releases import profile_named
from tidegauge.util.errors import UsageError

SMALL = Bounds(2, 2, 1, 1)
EPOCHS = Bounds(2, 1, 3, 0)
DEEP = Bounds(2, 2, 2, 0)


@pytest.mark.parametrize(
    ("bounds", "states", "transitions", "depth"),
    [(SMALL, 22_393, 106_606, 29), pytest.param(EPOCHS, 74_999, 361_579, 30, marks=pytest.mark.long)],
)
def test_a_graph_has_the_size_that_tlc_counts(bounds: Bounds, states: int, transitions: int, depth: int) -> None:
    """Pinned: states, distinct labelled transitions and depth of the models that TLC runs."""
    graph = explore(bounds)
    assert (len(graph.states), len(graph.edges), graph.depth) == (states, transitions, depth)
    assert len(set(graph.states)) == states
    assert len(set(graph.edges)) == transitions


def test_the_same_bounds_give_the_same_graph() -> None:
    """Order included."""
    assert explore(Bounds(2, 1, 1, 1)) == explore(Bounds(2, 1, 1, 1))


@pytest.mark.parametrize("bounds", [SMALL, pytest.param(Bounds(2, 1, 2, 1), marks=pytest.mark.long)])
def test_todays_kafka_holds_every_invariant(bounds: Bounds) -> None:
    """Within the bounds, in every state."""
    assert find_violation(bounds) is None


def test_truncating_to_the_own_high_watermark_loses_a_committed_record() -> None:
    """hw-only fails with leader completeness after ten steps, as KIP-101 says."""
    found = find_violation(EPOCHS, "hw-only", invariants=("LeaderCompleteness",))
    assert found is not None
    assert found.violation.invariant == "LeaderCompleteness"
    assert len(found.states) == 11


@pytest.mark.parametrize(("profile", "length"), [("kip101", 11), ("kip279", 13)])
def test_an_older_generation_keeps_a_member_without_committed_records(profile: str, length: int) -> None:
    """KIP-279: two elections nobody fetched between. KIP-320: a leader that has not heard of the next one responses."""
    found = find_violation(DEEP, profile)
    assert found is not None
    assert found.violation.invariant == "IsrCompleteness"
    assert len(found.states) == length


def test_kip_320_holds_every_invariant() -> None:
    """Within the bounds of its model, in every state; and its graph has the size that TLC counts."""
    bounds = Bounds(2, 1, 2, 0)
    assert find_violation(bounds, "kip320") is None
    graph = explore(bounds, "kip320")
    assert (len(graph.states), len(graph.edges), graph.depth) == (15_329, 68_674, 27)


def test_a_stale_response_truncates_committed_records_when_its_epoch_is_not_compared() -> None:
    """KAFKA-18991, as a switch of the profile: Kafka before 3.9.1 and 4.0.1."""
    unchecked = profile_named("fetch-truncation")._replace(response_epoch_checked=False)
    found = find_violation(EPOCHS, unchecked, invariants=("IsrCompleteness",))
    assert found is not None
    assert len(found.states) == 16


def test_without_partition_epochs_equal_metadata_is_read() -> None:
    """A profile that skips it is explored like one that does not: here every registration has the same epoch."""
    assert explore(Bounds(2, 1, 1, 0), "skips-equal") == explore(Bounds(2, 1, 1, 0))


def test_where_a_shrink_is_a_new_leader_epoch_epochs_stay_within_the_bounds() -> None:
    """KRaft below MV 3.6 (KAFKA-15021): the same leader, one epoch later; today the epoch stays."""

    def shrinks(profile: str) -> set[int]:
        graph = explore(Bounds(2, 1, 1, 1), profile)
        steps = ((graph.states[a][1], graph.labels[label], graph.states[b][1]) for a, label, b in graph.edges)
        assert max(state[1][1] for state in graph.states) == 1
        altered = ((before, after) for before, label, after in steps if label[0] == "AlterPartition")
        return {after[1] - before[1] for before, after in altered if after[2] < before[2]}

    assert shrinks("release-3.4.1") == {1}
    assert shrinks("fetch-truncation") == {0}


def test_a_path_can_be_replayed() -> None:
    """The labels of a run lead from its first state through all the others."""
    found = find_violation(SMALL, rules_override=FAULTS["no-divergence-check"].rules)
    assert found is not None
    state = found.states[0]
    for label, expected in zip(found.labels, found.states[1:], strict=True):
        state = step(state, label)
        assert view(state) == view(expected)


def test_an_unfinished_search_is_no_response() -> None:
    """Stopping early is an error, not a None."""
    with pytest.raises(UsageError, match="raise max_states"):
        find_violation(SMALL, max_states=100)


def test_an_unknown_profile_is_refused() -> None:
    """The error lists the known ones."""
    with pytest.raises(UsageError, match=r"fetch-truncation, .*hw-only"):
        explore(SMALL, "kip-1")


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_replaces_exactly_one_rule_by_one_of_the_same_shape(fault: Fault) -> None:
    """Same parameters in the same order, every other rule untouched."""
    changed = [name for name, rule in fault.rules._asdict().items() if rule.__code__ is not getattr(rules, name).__code__]
    assert changed == [fault.rule]
    wrong, right = getattr(fault.rules, fault.rule), getattr(rules, fault.rule)
    assert list(inspect.signature(wrong).parameters) == list(inspect.signature(right).parameters)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_breaks_what_it_says(fault: Fault) -> None:
    """A search finds the named invariant violated first; where none is named, none is."""
    found = find_violation(fault.bounds, rules_override=fault.rules)
    assert (found.violation.invariant if found else None) == fault.breaks


@pytest.mark.parametrize(
    ("invariant", "fault", "bounds"),
    [
        ("HwWithinLog", "hw-not-clamped", SMALL),
        ("LogMatchingBelowHw", "no-divergence-check", SMALL),
        ("LeaderCompleteness", "joins-one-low", SMALL),
        ("IsrCompleteness", "response-of-any-epoch", EPOCHS),
        ("NoFalseExposure", "follower-exposes-its-log", SMALL),
        ("EpochCacheWellFormed", "assign-never-evicts", SMALL),
        ("EpochsMonotone", "no-divergence-check", DEEP),
    ],
)
def test_an_invariant_catches_a_wrong_rule(invariant: str, fault: str, bounds: Bounds) -> None:
    """Asked alone, each invariant is violated by some fault."""
    found = find_violation(bounds, rules_override=FAULTS[fault].rules, invariants=(invariant,))
    assert found is not None
    assert found.violation.invariant == invariant


def test_the_isr_superset_catches_a_leader_that_forgot_a_member() -> None:
    """No rule decides it, so the state is made by hand: the leader's view of the ISR loses the follower."""
    graph_start = find_violation(SMALL, rules_override=FAULTS["hw-may-fall"].rules)
    assert graph_start is not None
    state = graph_start.states[0]
    leader = state.brokers[0]
    alone = leader.partition._replace(state=leader.partition.state._replace(isr=(0,)))
    violation = INVARIANTS["IsrSuperset"](state._replace(brokers=(leader._replace(partition=alone), state.brokers[1])))
    assert violation is not None
    assert violation.seen == (0,)
    assert INVARIANTS["IsrSuperset"](state) is None

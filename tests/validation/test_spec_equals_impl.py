"""spec = impl over whole bounded graphs, and what is said when it is not so."""

import pytest

from tidegauge.conformance.from_tlc.graph_comparison import Compared, compare, first_divergence
from tidegauge.impl.explorer.explore import Bounds, explore
from tidegauge.impl.explorer.faults import FAULTS

TINY = Compared("Small", "fetch-truncation", {"MaxLog": 1, "MaxCrash": 0})


@pytest.mark.tlc
def test_tlc_and_the_explorer_find_the_same_graph() -> None:
    """Both directions, every labelled transition."""
    found = compare(TINY)
    assert found.divergence is None
    assert found.transitions > 1000


@pytest.mark.tlc
def test_a_guard_removed_from_impl_is_told_as_a_first_divergence() -> None:
    """Without the divergence check the reader sees where, on which path, and what each side does."""
    fault = FAULTS["no-divergence-check"]
    reported = compare(TINY, fault.rules).divergence
    assert reported is not None
    assert reported.startswith("first divergence after ")
    assert "HandleFetch" in reported
    assert "spec: leads to" in reported
    assert "impl: leads to" in reported


def test_a_missing_transition_is_told_with_the_shortest_path() -> None:
    """One transition taken away from one side is the one that is told."""
    graph = explore(Bounds(2, 1, 1, 0), "fetch-truncation")
    edges = {(graph.states[source], graph.labels[label], graph.states[target]) for source, label, target in graph.edges}
    start = graph.states[0]
    gone = min((edge for edge in edges if edge[0] == start), key=lambda edge: edge[1])
    reported = first_divergence(start, edges, edges - {gone})
    assert reported.startswith("first divergence after 0 steps:")
    assert reported.count("impl: not possible") == 1
    with pytest.raises(ValueError, match="two that agree"):
        first_divergence(start, edges, edges)

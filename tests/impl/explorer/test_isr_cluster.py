"""ISR changes with their messages: the graph of spec/AlterPartition.tla, and what is found in it."""

import pytest

from tidegauge.conformance.from_tlc.graph_comparison import Compared, compare
from tidegauge.impl.explorer.describe import isr_label_text, isr_view_text
from tidegauge.impl.explorer.faults import FAULTS
from tidegauge.impl.explorer.isr_model import (
    IsrBounds,
    check_isr_completeness,
    check_isr_superset,
    explore_isr,
    initial_isr_cluster,
    isr_successors,
    isr_view,
    search_isr,
)
from tidegauge.impl.profiles import FETCH_TRUNCATION, SKIPS_EQUAL, Profile
from tidegauge.spec.tlc.graph import labelled_graph
from tidegauge.spec.tlc.models import find_model
from tidegauge.traces.from_model.impl_walks import isr_bounds_of

TWICE = IsrBounds(followers=2, max_end=1, max_partition_epoch=2, max_restarts=0)
TIGHT = {"MaxPartitionEpoch": 2}


@pytest.mark.tlc
@pytest.mark.parametrize(
    ("model", "profile", "constants", "states", "transitions"),
    [
        ("SkipsEqual", "skips-equal", {"MaxPartitionEpoch": 1}, 1_724, 10_953),
        ("AnyResponse", "skips-equal", {"MaxPartitionEpoch": 2, "MaxRestarts": 0}, 1_230, 8_091),
        ("EqualEpoch", "fetch-truncation", TIGHT, 1_410, 9_231),
        ("ProposalsEnd", "skips-equal", {}, 70, 274),
    ],
)
def test_the_graph_is_tlcs(model: str, profile: str, constants: dict[str, int], states: int, transitions: int) -> None:
    """Both ways; a leader that takes any response has the same one, so nothing is lost by never asking which it is."""
    found = compare(Compared(model, profile, constants))
    assert found.divergence is None, found.divergence
    assert (found.states, found.transitions) == (states, transitions)


@pytest.mark.tlc
def test_a_guard_taken_away_on_both_sides_is_the_same_graph_again() -> None:
    """A leader that does not count whom it has proposed, before 2.7; and it is not the graph of one that does."""
    model = find_model("ExpansionNotCounted")
    theirs = labelled_graph(model, MaxPartitionEpoch=2).edges()
    bounds = isr_bounds_of(model, MaxPartitionEpoch=2)
    assert _edges(bounds, SKIPS_EQUAL._replace(counts_maximal_isr=False)) == theirs
    assert _edges(bounds, SKIPS_EQUAL) != theirs


def _edges(bounds: IsrBounds, profile: Profile) -> set[tuple[object, ...]]:
    graph = explore_isr(initial_isr_cluster(bounds, profile))
    return {(graph.states[source], graph.labels[label], graph.states[target]) for source, label, target in graph.edges}


@pytest.mark.tlc
def test_a_wrong_rule_is_told_as_a_first_divergence() -> None:
    """A follower that joins one record early: where, on which path, and what each side does."""
    reported = compare(Compared("EqualEpoch", "fetch-truncation", TIGHT), FAULTS["joins-one-low"].rules).divergence
    assert reported is not None
    assert reported.startswith("first divergence after 4 steps:\n   1  LeaderAppend\n   2  ShrinkIsr without b2,b3\n")
    assert "HandleFetch of b2 proposing it for the ISR:\n  spec: not possible\n  impl: leads to" in reported


@pytest.mark.tlc
def test_the_repair_is_not_taken_for_kafka_as_it_is() -> None:
    """The two part at the metadata of a change that the leader knew from its response."""
    reported = compare(Compared("EqualEpoch", "skips-equal", TIGHT)).divergence
    assert reported is not None
    assert "\nReadMetadata up to record 1 of those not read:\n" in reported


def test_metadata_that_was_read_already_makes_a_leader_forget_its_proposal() -> None:
    """F3, in as many states as TLC needs: a member without the committed record that the leader does not count."""
    found = search_isr(initial_isr_cluster(isr_bounds_of(find_model("EqualEpoch")))).first_violation(check_isr_completeness)
    assert found is not None
    assert len(found.states) == find_model("EqualEpoch").length
    assert [label[0] for label in found.labels].count("ReadMetadata") == 1
    superset = search_isr(initial_isr_cluster(TWICE)).first_violation(check_isr_superset)
    assert superset is not None
    assert superset.violation.expected == (0, 1, 2)


def test_skipping_metadata_that_was_read_mends_it() -> None:
    """Nothing is found, also with a broker that comes back empty."""
    start = initial_isr_cluster(TWICE._replace(max_restarts=1), SKIPS_EQUAL)
    assert (
        search_isr(start).first_violation(lambda state: check_isr_completeness(state) or check_isr_superset(state)) is None
    )


def test_a_leader_that_does_not_count_whom_it_proposed_is_caught() -> None:
    """Before 2.7; in as many states as TLC needs."""
    model = find_model("ExpansionNotCounted")
    start = initial_isr_cluster(isr_bounds_of(model), SKIPS_EQUAL._replace(counts_maximal_isr=False))
    found = search_isr(start).first_violation(check_isr_completeness)
    assert found is not None
    assert len(found.states) == model.length


@pytest.mark.parametrize(("fault", "length"), [("joins-one-low", 7), ("lagging-members-do-not-count", 2)])
def test_isr_completeness_catches_a_wrong_rule(fault: str, length: int) -> None:
    """A rule replaced in the real code is a rule replaced here."""
    found = search_isr(initial_isr_cluster(TWICE, SKIPS_EQUAL, FAULTS[fault].rules)).first_violation(check_isr_completeness)
    assert found is not None
    assert len(found.states) == length


def test_the_pinned_counts_are_the_explorers() -> None:
    """States and depth in models.toml; a proposal that was given up may make one view of two states."""
    model = find_model("ProposalsEnd")
    graph = explore_isr(initial_isr_cluster(isr_bounds_of(model), SKIPS_EQUAL))
    assert (len(set(graph.states)), graph.depth) == (model.distinct, model.depth)


def test_a_label_leads_to_one_state() -> None:
    """From wherever the first thousand states are."""
    run = search_isr(initial_isr_cluster(TWICE))
    for source, *_ in run.transitions():
        if source == 1000:
            break
    for state in run.states[:1000]:
        labels = [label for label, _ in isr_successors(state)]
        assert len(labels) == len(set(labels))


def test_every_action_and_every_message_reads_as_a_sentence() -> None:
    """Also the clock's, which only the specification has."""
    graph = explore_isr(initial_isr_cluster(TWICE._replace(max_restarts=1)))
    said = {isr_label_text(label) for label in (*graph.labels, ("LagLimitPasses", 2))}
    assert len(said) == len(graph.labels) + 1
    assert {
        "LeaderAppend",
        "HandleFetch of b3 proposing it for the ISR, the response is lost",
        "ShrinkIsr without b2,b3",
        "HandleAlterPartition, the response is lost",
        "ReadMetadata up to record 2 of those not read",
        "RestartEmpty b2",
        "LagLimitPasses b3",
    } <= said
    shown = "\n".join(map(isr_view_text, graph.states))
    for line in (
        "under way    AlterPartition isr=b1,b2 partition_epoch=1 broker_epochs=(0, -1)",
        "under way    answer to b1,b2: isr=b1,b2 partition_epoch=2",
        "under way    answer to b1,b3: INELIGIBLE_REPLICA",
        "under way    nothing",
    ):
        assert line in shown
    start = isr_view(initial_isr_cluster(TWICE))
    assert isr_view_text((*start[:-1], 4)).splitlines()[2].endswith("caught up within the lag limit")


def test_kafka_as_it_is_is_what_is_explored_unless_said() -> None:
    """The default profile reads equal metadata."""
    assert initial_isr_cluster(TWICE).setup.profile == FETCH_TRUNCATION
    assert FETCH_TRUNCATION.reads_equal_partition_epoch
    assert not SKIPS_EQUAL.reads_equal_partition_epoch

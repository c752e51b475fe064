"""The controller with one partition and its brokers: the graph of spec/Controller.tla, and what is found in it."""

import pytest

from tidegauge.conformance.from_tlc.graph_comparison import COMPARED, Compared, compare, control_start_of
from tidegauge.impl.explorer.controller_model import (
    CONTROL_INVARIANTS,
    ControlBounds,
    control_successors,
    control_view,
    control_violation,
    explore_control,
    initial_control_cluster,
    search_control,
)
from tidegauge.impl.explorer.describe import control_label_text, control_view_text
from tidegauge.impl.profiles import ELR, ELR_REPAIRED, Profile, Rules
from tidegauge.spec.tlc.models import find_model, load_models
from tidegauge.traces.from_model.impl_walks import control_bounds_of, control_profile_of
from tidegauge.util.errors import SpecError

MODELS = [
    *(compared for compared in COMPARED if find_model(compared.model).module == "MCController"),
    Compared("OldElrElects", "elr", {"MaxPartitionEpoch": 2}),
    Compared("SwitchedOnLeaderless", "elr", {"MaxPartitionEpoch": 2, "MaxLog": 0}),
    Compared("CompletesLate", "elr", {"MaxLog": 0}),
    Compared("RepairedLateConfig", "elr", {"MaxPartitionEpoch": 2, "MaxStops": 0}),
    Compared("RepairedSwitchOn", "elr", {"MaxPartitionEpoch": 3}),
]
SIZES = {
    "GhostElr": (696, 2_350),
    "StaleIndex": (1_710, 5_878),
    "NeverCompletes": (419, 1_347),
    "FailedDirectoryLeads": (776, 1_899),
    "RaisedTooLate": (310, 766),
    "RepairedMinIsr": (884, 3_398),
    "OldElrElects": (936, 3_066),
    "SwitchedOnLeaderless": (420, 1_246),
    "CompletesLate": (101, 190),
    "RepairedLateConfig": (474, 1_291),
    "RepairedSwitchOn": (1_056, 3_311),
}
QUICK = ("GhostElr", "ForgottenElr", "StaleIndex", "NeverCompletes", "FailedDirectoryLeads", "RaisedTooLate")
TWO = ControlBounds((0, 1), 2)
REPAIRED = ELR_REPAIRED._replace(name="elr")


@pytest.mark.tlc
@pytest.mark.parametrize("compared", MODELS, ids=lambda compared: compared.model)
def test_the_graph_is_tlcs(compared: Compared) -> None:
    """Both ways, decided by the real controller; as Kafka is and repaired."""
    found = compare(compared)
    assert found.divergence is None, found.divergence
    assert (found.states, found.transitions) == SIZES[compared.model]


@pytest.mark.tlc
def test_the_repaired_controller_is_not_taken_for_kafkas(monkeypatch: pytest.MonkeyPatch) -> None:
    """A switch that is off on one side alone is found, on a shortest path."""
    monkeypatch.setattr("tidegauge.conformance.from_tlc.graph_comparison.control_profile_of", lambda _model: REPAIRED)
    reported = compare(Compared("NeverCompletes", "elr", {"MaxPartitionEpoch": 2, "MaxLog": 0})).divergence
    assert reported is not None
    assert reported.startswith("first divergence after 1 steps:\n   1  Reassign to b1,b3\n")
    assert "Reassign to b1,b2:\n  spec: leads to" in reported


def test_rules_are_none_of_its_business() -> None:
    """A fault of the rules would show nothing here."""
    with pytest.raises(SpecError, match="GhostElr: expected no other rules"):
        control_start_of(Compared("GhostElr", "elr", {}), Rules())


@pytest.mark.parametrize("name", QUICK)
def test_each_finding_breaks_what_its_model_says(name: str) -> None:
    """With that switch on and every other off, in as many states as TLC needs."""
    model = find_model(name)
    start = initial_control_cluster(control_bounds_of(model), control_profile_of(model))
    found = search_control(start).first_violation(lambda state: control_violation(state, (model.property,)))
    assert found is not None
    assert (found.violation.invariant, len(found.states)) == (model.property, model.length)


@pytest.mark.parametrize("name", [name for name in QUICK if name not in {"GhostElr", "RaisedTooLate"}])
def test_repaired_nothing_breaks_within_the_same_bounds(name: str) -> None:
    """Records left out. GhostElr and RaisedTooLate have larger models (RepairedReassignment, RepairedLateConfig)."""
    bounds = control_bounds_of(find_model(name))._replace(max_log=0, max_partition_epoch=2, unclean=False)
    assert search_control(initial_control_cluster(bounds, REPAIRED)).first_violation(control_violation) is None


def test_a_switch_is_a_constant_of_every_model_and_a_switch_of_the_profile() -> None:
    """Repaired turns them all off; KafkaElr has them all on, as the profile has."""
    assert control_profile_of(find_model("KafkaElr")) == ELR
    assert control_profile_of(find_model("RepairedMinIsr")) == REPAIRED
    off = [name for name in Profile._fields if getattr(ELR, name) != getattr(REPAIRED, name)]
    assert len(off) == 11
    assert all(getattr(ELR, name) for name in off)


def test_what_a_model_checks_is_checked_here() -> None:
    """Under the same names."""
    checked = {name for model in load_models() if model.module == "MCController" for name in model.config().checked}
    assert checked == set(CONTROL_INVARIANTS)


def test_the_pinned_counts_are_the_explorers() -> None:
    """States and depth in models.toml."""
    model = find_model("RepairedRevert")
    graph = explore_control(initial_control_cluster(control_bounds_of(model), control_profile_of(model)))
    assert (len(graph.states), graph.depth) == (model.distinct, model.depth)


def test_a_label_leads_to_one_state() -> None:
    """From wherever the first thousand states are; and nothing is asked for that changes nothing."""
    run = search_control(initial_control_cluster(TWO._replace(targets=((0,), (0, 1)), min_isrs=(1,), deletes=True)))
    for source, *_ in run.transitions():
        if source == 1000:
            break
    for state in run.states[:1000]:
        labels = [label for label, _ in control_successors(state)]
        assert len(labels) == len(set(labels))
        assert all(control_view(after) != control_view(state) for _, after in control_successors(state))


def test_every_action_and_every_state_reads_as_a_sentence() -> None:
    """Each label another text, none in numbers."""
    bounds = TWO._replace(
        brokers=3, targets=((0, 2),), min_isrs=(1,), deletes=True, unregisters=True, unclean=True, max_log=0
    )
    graphs = [
        explore_control(initial_control_cluster(bounds._replace(max_partition_epoch=2))),
        explore_control(
            initial_control_cluster(
                TWO._replace(disks_fail=True, max_partition_epoch=2, max_log=1, min_isrs=(1,), late_config=True)
            )
        ),
    ]
    labels = {label for graph in graphs for label in graph.labels}
    said = {control_label_text(label) for label in labels}
    assert len(said) == len(labels)
    assert {
        "LeaderAppend",
        "CatchUp b2",
        "Die b1 losing its disk",
        "Unfence b2 reporting that its directory failed",
        "Register b1 without the directory that failed",
        "Reassign to b1,b3",
        "SetMinIsr 1",
        "Unregister b2",
    } <= said
    shown = "\n".join(control_view_text(state) for graph in graphs for state in graph.states)
    for part in (
        "b1 died, fenced log=-",
        "b2 runs, unfenced, its directory failed log=-",
        "b2 runs, fenced, in another directory log=-",
        "index names a deleted topic",
        "min_isr=1, 2 as the leader knows",
        "partition    deleted; min_isr=0",
        "adding=b3 removing=b2",
        " last=b1",
        " recovering",
        "committed    0  stops=",
    ):
        assert part in shown, part

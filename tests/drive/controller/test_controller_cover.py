"""The cover of spec/Controller.tla on a controller under test: every step that the contract can give, and findings by
themselves."""

import pytest

from tidegauge.cli.main import main
from tidegauge.drive.controller.contract import ClusterOpening
from tidegauge.drive.controller.cover import MODELS, begin, cover_of
from tidegauge.drive.controller.findings import FINDINGS
from tidegauge.drive.controller.reference import reference
from tidegauge.drive.controller.steps import is_step
from tidegauge.drive.controller.walks import walks
from tidegauge.drive.runner.player import ReferenceNode, play
from tidegauge.impl.releases import profile_named
from tidegauge.spec.tlc.models import find_model
from tidegauge.traces.from_model.impl_walks import control_bounds_of

OPENING = ClusterOpening(30)
KAFKA, OLDER = profile_named("release-4.3.1"), profile_named("release-3.9.1")
QUICK = ("RepairedCompletion", "RepairedDisks", "RepairedReassignment", "RepairedFeature")
COVERS = {name: cover_of(name, KAFKA, OPENING) for name in QUICK}


@pytest.mark.parametrize("name", QUICK)
def test_a_path_begins_as_the_model_does_and_has_steps_of_the_contract(name: str) -> None:
    start = begin(control_bounds_of(find_model(name)))
    for case in COVERS[name].cases:
        assert case.path[: len(start)] == start
        assert len(case.path) > len(start)
        assert all(map(is_step, case.path))


@pytest.mark.parametrize("name", QUICK)
def test_every_step_of_the_graph_is_taken(name: str) -> None:
    assert COVERS[name].taken_edges == COVERS[name].steps > 0


def test_the_contract_of_an_older_release_has_not_all() -> None:
    """Up to 3.9 a session that is over is noticed at once, so nobody registers before; and ELR cannot be switched on."""
    older = cover_of("RepairedDisks", OLDER, ClusterOpening(21, 0))
    assert 0 < older.taken_edges < older.steps
    steps = {step[0] for case in (*older.cases, *walks(1, 20, OLDER, ClusterOpening(21, 0))) for step in case.path}
    assert "register" in steps
    assert "register_late" not in steps
    assert "register_late" in {step[0] for case in walks(1, 20, KAFKA, OPENING) for step in case.path}


def test_the_same_paths_come_again() -> None:
    assert cover_of("RepairedCompletion", KAFKA, OPENING) == COVERS["RepairedCompletion"]


@pytest.mark.parametrize(
    ("switch", "name"),
    [
        ("elr_keeps_removed", "RepairedReassignment"),
        ("min_isr_by_partition_zero", "RepairedReassignment"),
        ("completes_before_election", "RepairedCompletion"),
        ("heartbeat_in_one_pass", "RepairedDisks"),
        ("neglects_elr_when_off", "RepairedFeature"),
        ("recreated_stays_eligible", "RepairedDisks"),
        ("forgets_last_member", "RepairedFeature"),
    ],
)
def test_a_controller_with_a_finding_is_told_from_one_without(switch: str, name: str) -> None:
    """Nobody named its run: the graph has it."""
    assert switch in FINDINGS
    assert play(ReferenceNode(reference(KAFKA.switched({switch: False}))), COVERS[name].cases, reference(KAFKA)).differences


def test_a_graph_of_a_broker_is_refused_before_anything_is_started(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["drive", "--kafka", "4.3.1", "--controller", "--graph", "two"]) == 2
    assert f"expected a graph of the controller: {', '.join(MODELS)}; seen two" in capsys.readouterr().err

"""The cover of spec/Controller.tla on a controller under test: every step that the contract can give, and findings by
themselves."""

import pytest

from tidegauge.commands.main import main
from tidegauge.drive.controller.contract import Opening, is_step
from tidegauge.drive.controller.cover import MODELS, begin, cover, cover_of
from tidegauge.drive.controller.explain import FINDINGS
from tidegauge.drive.controller.player import ReferenceNode, play
from tidegauge.impl.explored.control_cluster import ControlBounds
from tidegauge.impl.releases import named
from tidegauge.spec.checker.models import find_model
from tidegauge.traces.model.bounds import control_bounds_of

OPENING = Opening(30)
KAFKA = named("release-4.3.1")
QUICK = ("RepairedCompletion", "RepairedDisks", "RepairedReassignment", "RepairedFeature")
COVERS = {name: cover_of(name, KAFKA, OPENING) for name in QUICK}
ORDERS = tuple(order for found in COVERS.values() for order in found.orders)


@pytest.mark.parametrize("name", QUICK)
def test_a_path_begins_as_the_model_does_and_has_steps_of_the_contract(name: str) -> None:
    start = begin(control_bounds_of(find_model(name)))
    for order in COVERS[name].orders:
        assert order.path[: len(start)] == start
        assert len(order.path) > len(start)
        assert all(map(is_step, order.path))


def test_steps_are_taken_but_for_those_that_the_contract_has_not() -> None:
    """A broker whose session is over and nobody has noticed registers; a second heartbeat ends a controlled shutdown."""
    small = ControlBounds((0, 1), 2, max_log=1, max_partition_epoch=1)
    found = cover(small, KAFKA, OPENING, "small")
    assert 0 < found.taken < found.steps
    still = cover(small._replace(max_stops=0), KAFKA, OPENING, "still")
    assert still.taken == still.steps > 0
    assert COVERS["RepairedCompletion"].taken == COVERS["RepairedCompletion"].steps


def test_the_same_paths_come_again() -> None:
    assert cover_of("RepairedCompletion", KAFKA, OPENING) == COVERS["RepairedCompletion"]


@pytest.mark.parametrize(
    "switch",
    [
        "elr_keeps_removed",
        "min_isr_by_partition_zero",
        "completes_before_election",
        "heartbeat_in_one_pass",
        "neglects_elr_when_off",
        "recreated_stays_eligible",
        "forgets_last_member",
    ],
)
def test_a_controller_with_a_finding_is_told_from_one_without(switch: str) -> None:
    """Nobody named its run: the graph has it."""
    assert switch in FINDINGS
    assert play(ReferenceNode(KAFKA.switched({switch: False})), ORDERS, KAFKA).differences


def test_a_graph_of_a_broker_is_refused_before_anything_is_started(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["drive", "--kafka", "4.3.1", "--controller", "--graph", "two"]) == 2
    assert f"expected a graph of the controller: {', '.join(MODELS)}; seen two" in capsys.readouterr().err

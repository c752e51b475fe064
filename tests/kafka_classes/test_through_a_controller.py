"""The histories of Kafka's controller classes, on an unmodified controller process: the classes, the process and the
reference do the same."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest

from tests.drive.kafka_broker.test_kafka_broker import build
from tests.kafka_classes.controller_paths import Translated, translated
from tests.kafka_classes.replay_controller import LATEST
from tidegauge.drive.controller.node import ControllerNode
from tidegauge.drive.controller.reference import reference
from tidegauge.drive.runner.player import ReferenceNode, play
from tidegauge.drive.runner.run import run
from tidegauge.impl.releases import profile_of_release

Table = Callable[[str], Iterator[dict[str, Any]]]

FEW = 60


def paths(table: Table, release: str, most: int | None = None) -> tuple[list[Translated], int]:
    """What the contract has of the sequences that begin as a process does, and how many steps those have."""
    alike = (one for one in table(f"controller_{release}") if one["init"]["feature"]["level"] == LATEST[release])
    sequences = list(islice(alike, most))
    found = [translated(one, profile_of_release(release)) for one in sequences]
    return [one for one in found if one is not None], sum(len(one["steps"]) for one in sequences)


@pytest.mark.parametrize("release", LATEST)
def test_the_contract_has_what_the_classes_were_asked(release: str, table: Table) -> None:
    """But for what the controller is asked of by nobody, and offsets between nothing and all."""
    found, steps = paths(table, release, FEW)
    assert len(found) == FEW
    assert sum(one.steps - one.left_out for one in found) > 0.95 * steps


@pytest.mark.parametrize("switch", ["elr_keeps_removed", "min_isr_change_clears_elr", "reassignment_keeps_adding"])
def test_a_controller_without_a_finding_is_told(switch: str, table: Table) -> None:
    found, _ = paths(table, "4.3.1", FEW)
    profile = profile_of_release("4.3.1")
    repaired = ReferenceNode(reference(profile.switched({switch: not getattr(profile, switch)})))
    assert play(repaired, [one.case for one in found], reference(profile)).differences


@pytest.mark.long
@pytest.mark.parametrize("release", LATEST)
def test_a_process_does_what_the_classes_did(release: str, table: Table) -> None:
    found, steps = paths(table, release)
    with ControllerNode(build(release)) as node:
        shown = run(node, [one.case for one in found], reference(profile_of_release(release)), log_lines=node.log_lines)
    taken, left_out = sum(one.steps for one in found), sum(one.left_out for one in found)
    print(f"{len(found):,} sequences, {taken - left_out:,} of {steps:,} steps, {shown.played.steps:,} on the process")
    assert [failure.text for failure in shown.failures] == []
    assert shown.not_again == 0
    assert shown.played.steps == sum(len(one.case.path) + 1 for one in found)

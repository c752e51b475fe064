"""What was recorded of two controllers is held against each other, as that of two brokers is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.drive.runner.test_compare import causes
from tidegauge.cli.main import main
from tidegauge.drive.contract import Report
from tidegauge.drive.controller.contract import ClusterOpening, ControllerCase
from tidegauge.drive.controller.findings import SHOWN_BY, finding_cases
from tidegauge.drive.controller.reference import reference
from tidegauge.drive.controller.steps import controller_capabilities
from tidegauge.drive.controller.transcript import CONTROLLER_FORMAT
from tidegauge.drive.runner.compare import compare, text_of
from tidegauge.drive.runner.player import ReferenceNode, play
from tidegauge.drive.runner.transcript import (
    CONTROLLER,
    Recorded,
    Recorder,
    TranscriptNode,
    place_named,
    place_of,
    read,
    write,
)
from tidegauge.impl.profiles import Profile
from tidegauge.impl.releases import profile_named

CASES = finding_cases(ClusterOpening(30))
KAFKA = profile_named("release-4.3.1")
CHANGED_IN_4_3 = {"KAFKA-19975", "apache/kafka#20716"}


def recorded_of(name: str) -> TranscriptNode[ControllerCase]:
    return read(place_named(name, CONTROLLER), CONTROLLER_FORMAT)


def did(does: Profile, expected: str = KAFKA.name) -> TranscriptNode[ControllerCase]:
    """What a controller that does this did on the scenarios, under the name of a release."""
    recorder = Recorder(CASES)
    play(ReferenceNode(reference(does)), CASES, reference(does), recorder)
    node = TranscriptNode(CONTROLLER_FORMAT, controller_capabilities("a controller"), expected)
    for one in recorder.recorded():
        node.add(one)
    return node


def planted(
    node: TranscriptNode[ControllerCase], name: str, change: Callable[[Report], dict[str, Any]]
) -> TranscriptNode[ControllerCase]:
    """The same with something else in the last report of a path."""
    other = TranscriptNode(CONTROLLER_FORMAT, node.capabilities, node.profile)
    for case, reports in node.recorded():
        last = {**reports[-1], **change(reports[-1])} if case.name == name else reports[-1]
        other.add(Recorded(case, (*reports[:-1], last)))
    return other


def test_two_releases_name_what_was_fixed_between_them() -> None:
    """From what unmodified controllers did, and nothing else remains."""
    found = compare(recorded_of("4.1.1"), recorded_of("4.3.1"))
    assert found.exit_code == 1
    assert found.steps > 6_000
    assert causes(found) == CHANGED_IN_4_3
    assert all(change.causes for change in found.changes)
    said = text_of(found)
    assert "apache/kafka#20716: 35 paths\n    35  first in assign_directory: partitions\n" in said
    assert "    ! partitions t-0 elr  none                      1,2\n" in said
    assert "KAFKA-19975: Kafka 4.1.1 (controller) has it. A reassignment waits for all replicas of its target" in said
    assert "Kafka 4.3.1 (controller) did so at metadata.version 30, its own" in said


def test_the_other_way_round_the_same_has_changed() -> None:
    there, back = (compare(recorded_of(a), recorded_of(b)) for a, b in (("4.1.1", "4.3.1"), ("4.3.1", "4.1.1")))
    assert causes(back) == CHANGED_IN_4_3
    shown = [{change.shown.case.path: change for change in found.changes} for found in (there, back)]
    assert shown[0].keys() == shown[1].keys()
    for path, change in shown[0].items():
        assert change.paths == shown[1][path].paths
        assert change.shown.expected["partitions"] == shown[1][path].shown.seen["partitions"]


def test_a_level_of_its_own_is_no_difference_and_any_other_is() -> None:
    one, other = recorded_of("4.3.1"), recorded_of("4.4.0")
    found = compare(one, other)
    assert found.exit_code == 0
    assert found.steps > 3_000
    assert "no difference" in text_of(found)
    found = compare(one, planted(other, "F5", lambda seen: {"features": {**seen["features"], "metadata.version": 31}}))
    assert [(change.causes, change.shown.fields) for change in found.changes] == [((), ("features",))]
    assert compare(one, TranscriptNode(CONTROLLER_FORMAT, controller_capabilities("nobody"), other.profile)).exit_code == 3


def test_what_no_known_switch_does_is_told_and_fails_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A controller that writes no leader at the end of F5."""
    right = did(KAFKA)
    wrong = planted(right, "F5", lambda seen: {"partitions": {**seen["partitions"], "t-0": {"leader": 7}}})
    for place, node in ((tmp_path / "right", right), (tmp_path / "wrong", wrong)):
        write(place, CONTROLLER_FORMAT, node.capabilities, node.profile, node.recorded())
    assert main(["drive", "--controller", "--compare", str(tmp_path / "right"), str(tmp_path / "wrong")]) == 1
    said = capsys.readouterr().out
    assert said.startswith("no known bug: 1 path\n     1  first in heartbeat: partitions\n")
    assert "same as   no known switch, alone or with another" in said
    assert main(["drive", "--controller", "--compare", str(tmp_path / "right"), str(tmp_path / "right")]) == 0


@pytest.mark.parametrize("name", ["F4", "F7", "F13"])
def test_a_switch_that_no_release_has_turned_is_named(name: str) -> None:
    """Held against the same profile: the finding that the one is mended in."""
    found = compare(did(KAFKA), did(KAFKA.switched({SHOWN_BY[name]: False})))
    assert found.exit_code == 1
    assert all(change.causes for change in found.changes)
    assert f"{name}: a controller does. {SHOWN_BY[name]}=off\n" in text_of(found)


def test_what_is_no_recorded_controller_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["drive", "--compare", "3.6.2", "4.3.1", "--controller"]) == 2
    there = "3.7.2, 3.8.1, 3.9.0, 3.9.1, 4.0.0, 4.0.1, 4.1.0, 4.1.1, 4.2.2, 4.3.1, 4.4.0"
    assert f"a release of {there}; seen '3.6.2'" in capsys.readouterr().err
    assert main(["drive", "--compare", str(place_of("4.1.1")), "4.3.1", "--controller"]) == 2
    assert "expected a line of a controller's transcript" in capsys.readouterr().err

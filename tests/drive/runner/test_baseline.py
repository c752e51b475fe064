"""Two builds on the same paths: the reference of two generations stands for them. No Java is needed for that."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.drive import stand_ins
from tidegauge.cli.main import main
from tidegauge.drive.broker.contract import BrokerCase
from tidegauge.drive.broker.reference import reference
from tidegauge.drive.broker.transcript import BROKER_FORMAT
from tidegauge.drive.controller import node as controller_node
from tidegauge.drive.controller.contract import ClusterOpening
from tidegauge.drive.kafka_broker import node as broker_node
from tidegauge.drive.kafka_process import builds
from tidegauge.drive.kafka_process.builds import KafkaBuild
from tidegauge.drive.paths.walks import STEPS_OF_A_WALK, walks
from tidegauge.drive.runner.baseline import changes_from, driven, markdown, write_junit
from tidegauge.drive.runner.compare import Comparison
from tidegauge.drive.runner.player import ReferenceNode
from tidegauge.impl.profiles import Profile
from tidegauge.impl.releases import profile_named

KAFKA = profile_named("4.3.1")
CASES = walks(1, 40, KAFKA)


def changes(before: Profile, after: Profile, cases: Sequence[BrokerCase] = CASES) -> Comparison[BrokerCase]:
    """What the second does otherwise than the first, held against 4.3.1."""
    did = driven(ReferenceNode(reference(before)), cases, reference(KAFKA), BROKER_FORMAT)
    return changes_from(did, ReferenceNode(reference(after)), reference(KAFKA))


def test_what_one_switch_changes_is_shrunk_and_named(tmp_path: Path) -> None:
    """As text for a pull request and as JUnit, which say the same."""
    found = changes(KAFKA, KAFKA.switched({"applies_diverging": True}))
    assert found.exit_code == 1
    assert {suspect.name for change in found.changes for bugs in change.causes for suspect in bugs} == {
        "applies_diverging=on"
    }
    shown = found.changes[0].shown
    assert shown.at == len(shown.case.path) < STEPS_OF_A_WALK
    text = markdown(found)
    assert text.startswith("### everything against everything (baseline)\n")
    assert "| applies_diverging=on |" in text
    assert f"DIFFERS after {shown.at} steps" in text
    write_junit(found, tmp_path / "x.xml", "tidegauge")
    failures = ElementTree.parse(tmp_path / "x.xml").findall(".//failure")
    assert [failure.get("message", "").partition(":")[0] for failure in failures] == ["applies_diverging=on"] * len(
        found.changes
    )


def test_two_that_do_the_same_do_not_differ_whatever_their_profile_says(tmp_path: Path) -> None:
    """Both have the same bug; the reference is only where paths come from."""
    same = KAFKA.switched({"applies_diverging": True})
    found = changes(same, same)
    assert found.exit_code == 0
    assert "No difference in" in markdown(found)
    write_junit(found, tmp_path / "x.xml", "tidegauge")
    assert not ElementTree.parse(tmp_path / "x.xml").findall(".//failure")


def test_a_baseline_that_is_not_its_profile_has_its_differences_shown_as_they_are() -> None:
    found = changes(KAFKA.switched({"applies_diverging": True}), KAFKA)
    assert found.exit_code == 1


def test_nothing_compared_is_nothing_decided(tmp_path: Path) -> None:
    found = changes(KAFKA, KAFKA, ())
    assert found.exit_code == 3
    assert "Nothing was compared." in markdown(found)
    write_junit(found, tmp_path / "x.xml", "tidegauge")
    assert ElementTree.parse(tmp_path / "x.xml").findall(".//skipped")


@pytest.mark.parametrize(("does", "code"), [("release-4.3.1", 0), ("release-3.9.0", 1)])
def test_the_command_takes_two_builds_through_the_same_paths(
    does: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(builds, "build_of", lambda named, *_: KafkaBuild(named, "4.3.1", ()))
    of = {"4.3.1": "release-4.3.1", "mine": does}
    monkeypatch.setattr(broker_node, "KafkaNode", lambda build: stand_ins.broker(of[build.version])(build))
    places = [tmp_path / "summary.md", tmp_path / "junit.xml"]
    command = ["drive", "--quiet", "--baseline", "4.3.1", "--kafka", "mine", "--walks", "30"]
    assert main([*command, "--summary", str(places[0]), "--junit", str(places[1])]) == code
    said = capsys.readouterr().out
    assert "Kafka 4.3.1 (baseline) and Kafka mine: " in said
    assert all(place.stat().st_size for place in places)


def test_the_command_takes_controllers_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(builds, "build_of", lambda named, *_: KafkaBuild(named, "4.3.1", ()))

    def started(build: KafkaBuild) -> AbstractContextManager[Any]:
        with stand_ins.controller("release-4.3.1" if build.version == "4.3.1" else "release-4.2.2")(build) as made:
            node: Any = made
            node.opening = lambda: ClusterOpening(30)
            node.possible = tuple
            return nullcontext(node)

    monkeypatch.setattr(controller_node, "ControllerNode", started)
    assert main(["drive", "--quiet", "--controller", "--baseline", "4.3.1", "--kafka", "mine", "--scenarios"]) == 1
    assert "KAFKA-19975" in capsys.readouterr().out


@pytest.mark.parametrize(
    "options",
    [
        ["--baseline", "4.3.1"],
        ["--summary", "x.md", "--kafka", "4.3.1"],
        ["--baseline", "4.3.1", "--kafka", "4.3.1", "--smoke"],
    ],
)
def test_a_baseline_goes_with_a_build_and_nothing_else(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["drive", "--quiet", *options]) == 2
    assert "expected --baseline BUILD with --kafka BUILD" in capsys.readouterr().err

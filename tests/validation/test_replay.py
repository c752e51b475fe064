"""A release that is played again is the same, or it is told where it is not."""

import sys
from pathlib import Path

import pytest

from tests.drive import stand_ins
from tidegauge.drive.broker.reference import reference
from tidegauge.drive.broker.steps import EVERYTHING
from tidegauge.drive.broker.transcript import BROKER_FORMAT
from tidegauge.drive.controller.contract import ClusterOpening
from tidegauge.drive.controller.findings import finding_cases
from tidegauge.drive.controller.reference import reference as controller_reference
from tidegauge.drive.controller.steps import controller_capabilities
from tidegauge.drive.controller.transcript import CONTROLLER_FORMAT
from tidegauge.drive.kafka_process.builds import KafkaBuild
from tidegauge.drive.paths.scenarios import ROUNDED, named_scenarios
from tidegauge.drive.runner.player import ReferenceNode, play
from tidegauge.drive.runner.transcript import BROKER, CONTROLLER, Recorder, place_of, read, write
from tidegauge.impl.releases import profile_named
from tidegauge.util.errors import UsageError
from validation.releases import replay as again

RELEASE = "4.3.1"
PROFILE = profile_named(f"release-{RELEASE}")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a broker and a controller of the release did, and both are started again."""
    cases = [one.case for one in named_scenarios(ROUNDED, PROFILE, EVERYTHING)]
    recorder = Recorder(cases)
    play(ReferenceNode(reference(PROFILE)), cases, reference(PROFILE), recorder)
    capabilities = EVERYTHING._replace(name=f"Kafka {RELEASE}")
    write(place_of(RELEASE, tmp_path), BROKER_FORMAT, capabilities, PROFILE.name, recorder.recorded())
    paths = finding_cases(ClusterOpening(30))
    of_paths = Recorder(paths)
    expected = controller_reference(PROFILE)
    play(ReferenceNode(expected), paths, expected, of_paths)
    place = place_of(RELEASE, tmp_path, CONTROLLER)
    node_capabilities = controller_capabilities(f"Kafka {RELEASE} (controller)")
    write(place, CONTROLLER_FORMAT, node_capabilities, PROFILE.name, of_paths.recorded())
    monkeypatch.setattr(again, "build_of", lambda release, _: KafkaBuild(release, release, ()))
    monkeypatch.setattr(again, "KafkaNode", stand_ins.broker(PROFILE.name))
    monkeypatch.setattr(again, "ControllerNode", stand_ins.controller(PROFILE.name))
    return tmp_path


def test_what_is_recorded_comes_again(folder: Path) -> None:
    """Both kinds, all paths, nothing otherwise."""
    found = dict(again.replays(RELEASE, None, folder))
    assert found[BROKER] == (len(read(place_of(RELEASE, folder), BROKER_FORMAT).cases), "")
    assert found[CONTROLLER] == (len(read(place_of(RELEASE, folder, CONTROLLER), CONTROLLER_FORMAT).cases), "")


def test_a_broker_that_is_not_the_same_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As between two releases: 3.9.1 does not round inside a batch, which 4.3.1 does."""
    monkeypatch.setattr(again, "KafkaNode", stand_ins.broker("release-3.9.1"))
    monkeypatch.setattr(again, "ControllerNode", stand_ins.controller("release-4.1.1"))
    found = dict(again.replays(RELEASE, None, folder))
    assert "with a difference" in found[BROKER].otherwise
    assert "KAFKA-19975" in found[CONTROLLER].otherwise


def test_a_path_that_ends_early_is_not_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that leaves out the last step of a path has said nothing else, and is not the same."""

    class Short(stand_ins.Broker):
        def play(self, cases, watch):  # type: ignore[no-untyped-def]
            super().play([case._replace(path=case.path[:-1]) for case in cases], watch)

    capabilities = EVERYTHING._replace(name=f"Kafka {RELEASE}")
    monkeypatch.setattr(again, "KafkaNode", lambda *_, **__: stand_ins.running(Short(reference(PROFILE), capabilities)))
    found = dict(again.replays(RELEASE, None, folder))
    assert found[BROKER].otherwise
    assert not found[CONTROLLER].otherwise


def test_the_command_says_each_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every release, every time; 1 where one of them was otherwise, 2 where nothing is recorded."""
    monkeypatch.setattr(again, "FOLDER", folder)
    monkeypatch.setattr(sys, "argv", ["again", RELEASE, "--times", "2"])
    assert again.main() == 0
    said = capsys.readouterr().out
    assert [f"{kind}, time {number}" in said for number in (1, 2) for kind in (BROKER, CONTROLLER)] == [True] * 4
    monkeypatch.setattr(again, "KafkaNode", stand_ins.broker("release-3.9.1"))
    assert again.main() == 1
    monkeypatch.setattr(sys, "argv", ["again", "1.0.0"])
    assert again.main() == 2
    with pytest.raises(UsageError, match="record it first"):
        dict(again.replays("1.0.0", None, folder))


def test_no_times_are_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Who plays nothing has shown nothing."""
    monkeypatch.setattr(sys, "argv", ["again", RELEASE, "--times", "0"])
    with pytest.raises(SystemExit) as ended:
        again.main()
    assert ended.value.code == 2
    assert "nothing would be played" in capsys.readouterr().err

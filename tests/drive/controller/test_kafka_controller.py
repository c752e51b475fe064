"""An unmodified controller is driven and conforms to its release; a finding is told; nothing is left of a killed run.
Needs Java, and the jars: from the cache, from $TIDEGAUGE_JARS/RELEASE, or by Maven."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import pytest

from tests.drive.kafka_broker.test_kafka_broker import build
from tests.drive.kafka_process.test_process import running_commands, soon
from tidegauge.drive.controller.findings import finding_cases
from tidegauge.drive.controller.node import ControllerNode
from tidegauge.drive.controller.reference import reference
from tidegauge.drive.controller.walks import walks
from tidegauge.drive.kafka_process import clock
from tidegauge.drive.runner.run import run
from tidegauge.impl.releases import RELEASE, profile_named

pytestmark = pytest.mark.long

SHOWN = {
    "4.3.1": {"F4", "F4-last-known", "F5", "F6", "F7", "F8", "F9", "F10", "F11", "F12", "F13"},
    "4.1.1": {"F4", "F4-last-known", "F5", "F6", "F8", "F9", "F11", "F12", "F13"},
    "4.0.1": {"F4", "F4-last-known", "F5", "F6", "F8", "F9", "F11", "F12", "F13"},
    "3.7.2": {"F7"},
}
NEW = "4.3.1"


def shown(notes: Iterable[str]) -> set[str]:
    """The findings that a run names as shown."""
    return {name for note in notes if note.startswith("shown: ") for name in note.removeprefix("shown: ").split(", ")}


@pytest.mark.parametrize("release", SHOWN)
def test_a_release_does_what_its_profile_says_and_shows_its_findings(release: str) -> None:
    profile = profile_named(f"{RELEASE}{release}")
    with ControllerNode(build(release)) as node:
        opening = node.opening()
        cases = (*finding_cases(opening), *walks(7, 12, profile, opening))
        found = run(node, cases, reference(profile))
    assert [failure.text for failure in found.failures] == []
    assert found.exit_code == 0
    assert shown(found.notes) == SHOWN[release]
    assert found.played.steps == sum(len(case.path) + 1 for case in cases)


def test_held_against_a_reference_without_a_finding_a_release_differs_and_the_finding_is_named() -> None:
    """In the controller's own words beside the path."""
    expected = profile_named(f"{RELEASE}{NEW}")._replace(elr_keeps_removed=False)
    with ControllerNode(build(NEW)) as node:
        f4 = [case for case in finding_cases(node.opening()) if case.name == "F4"]
        found = run(node, f4, reference(expected), log_lines=node.log_lines)
    (failure,) = found.failures
    assert found.exit_code == 1
    assert "F4: elr_keeps_removed=on" in failure.text
    assert "! partitions t-1 elr" in failure.text
    assert "  log       [" in failure.text
    assert failure.shown.at < len(f4[0].path)


def test_in_the_machines_own_time_a_session_is_over_by_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_compiler() -> NoReturn:
        raise clock.NoLibraryError("none")

    monkeypatch.setattr(clock, "build_library", no_compiler)
    profile = profile_named(f"{RELEASE}{NEW}")
    with ControllerNode(build(NEW)) as node:
        cases = [case for case in finding_cases(node.opening()) if case.name in {"F4", "F6"}]
        assert node.time == "the machine's"
        drawn = walks(7, 12, profile, node.opening())
        assert 0 < len(node.possible(drawn)) < len(drawn)
        found = run(node, cases, reference(profile))
    assert [failure.text for failure in found.failures] == []
    assert shown(found.notes) == {"F4", "F6"}


@pytest.mark.parametrize("seed", range(8))
def test_killed_at_any_moment_no_process_and_no_folder_is_left(seed: int, tmp_path: Path) -> None:
    place, rng = build(NEW).jars[0].parent, random.Random(seed)
    command = [sys.executable, "-m", "tidegauge", "drive", "--kafka", NEW, "--controller", "--jars", str(place)]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    driving = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(rng.uniform(0.5, 10.0))
    driving.send_signal(rng.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT)))
    driving.wait(60)
    assert soon(lambda: not any(str(tmp_path) in command for command in running_commands()))
    assert soon(lambda: not list(tmp_path.glob("tidegauge-kafka-*")))

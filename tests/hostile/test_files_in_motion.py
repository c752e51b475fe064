"""Files that change while they are read, and reports that two runs write: nothing is green over what was not read."""

import json
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from tests.hostile.conftest import ROOT, Run
from tests.processor_time import processor_time
from tidegauge.conformance.checking.check import Report, check
from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.traces.kafka_logs.parsing import lines
from tidegauge.traces.kafka_logs.parsing.lines import ByteRange
from tidegauge.traces.problems import Problem

CAPTURE = ROOT / "tidegauge" / "traces" / "captures" / "4.2.0" / "k-epoch-jump-control"
FIRST, LAST = "n1/server.log.gz", "n3/server.log.gz"


def rotated(log: Path) -> None:
    """Rename a log, as log4j2 does, and begin another."""
    log.replace(log.with_name("server.log.1.gz"))
    log.write_text("")


def truncated(log: Path) -> None:
    """Empty a log in its place, as logrotate's copytruncate does."""
    shutil.copyfile(log, log.with_name("server.log.1.gz"))
    log.write_text("")


def half(log: Path) -> None:
    log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])


def replaced_by_a_folder(log: Path) -> None:
    log.unlink()
    log.mkdir()


MOTIONS: dict[str, Callable[[Path], object]] = {
    "rotated": rotated,
    "truncated": truncated,
    "half": half,
    "deleted": Path.unlink,
    "a folder": replaced_by_a_folder,
}


@pytest.fixture(scope="module")
def whole() -> Report:
    return check([CAPTURE])


@pytest.mark.parametrize("motion", MOTIONS)
@pytest.mark.parametrize("name", [FIRST, LAST])
@pytest.mark.parametrize("opening", [0, 1])
def test_a_log_that_changes_while_it_is_read_is_not_whole(
    motion: str, name: str, opening: int, whole: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It changes before its content is opened for the first time, or the second."""
    shutil.copytree(CAPTURE, tmp_path / "logs")
    changing, openings, read = tmp_path / "logs" / name, count(), lines.pieces

    def pieces(path: Path, label: str, problems: list[Problem], part: ByteRange | None = None) -> Iterator[bytes]:
        if path == changing and next(openings) == opening:
            MOTIONS[motion](path)
        return read(path, label, problems, part)

    monkeypatch.setattr(lines, "pieces", pieces)
    report = check([tmp_path / "logs"])
    assert whole.verdict is Verdict.PASS
    assert (report.verdict is Verdict.PASS) == (report.events == whole.events)
    assert report.verdict is not Verdict.FAIL
    assert next(openings) > 0


def test_two_runs_into_one_folder_leave_the_reports_of_one_of_them(tmp_path: Path, command: Run) -> None:
    """Each file is written beside its place and put there whole."""
    other = ROOT / "tidegauge" / "traces" / "captures" / "4.2.0" / "k-epoch-jump"
    with ThreadPoolExecutor(2) as both:
        runs = [both.submit(command, "check", logs, "--out", "report", cwd=tmp_path) for logs in (CAPTURE, other)]
        assert sorted(run.result().returncode for run in runs) == [0, 1]
    written = json.loads((tmp_path / "report" / "check.json").read_text(encoding="utf-8"))
    assert written["verdict"] in ("PASS", "FAIL")
    assert (tmp_path / "report" / "index.html").read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert {path.name for path in (tmp_path / "report").iterdir()} == {"index.html", "check.json", "check.xml"}


@pytest.mark.long
def test_twenty_thousand_files_take_time_in_proportion(tmp_path: Path) -> None:
    """Half of them empty, half with a line, in the folders of a node. Each pair of files was compared once."""
    shutil.copytree(CAPTURE, tmp_path / "logs")
    for number in range(20_000):
        folder = tmp_path / "logs" / "n1" / f"d{number % 20}"
        folder.mkdir(exist_ok=True)
        line = "[2026-11-21 08:28:48,840] INFO [EventHandler] x (kafka.cluster.Partition)\n" if number % 2 else ""
        (folder / f"x{number}.log").write_text(line)
    with processor_time(60):
        report = check([tmp_path / "logs"])
    assert report.events == check([CAPTURE]).events

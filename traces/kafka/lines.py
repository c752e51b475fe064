"""Log files as lines: the envelope, compressed or not, half-written or not.

Rules of this file

1. A line is `[time] LEVEL [thread] message (logger)`. Kafka's default layout leaves out the thread; then it is empty, and
   the whole file counts as one thread. One line without a thread decides for the whole file.
2. What does not begin with a bracketed time continues the line before it (stack traces, configuration dumps); it is not
   read. Only the end of such a message has the logger, so a line without one that nothing continues was cut off.
3. A line number is the number in the uncompressed file.
4. A file never raises: what is empty, binary, half-written or unreadable becomes a Problem.
"""

import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

from tidegauge.traces.problems import Problem, shown

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_TIME = r"\[(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3,6})\] (?P<level>[A-Z]+) "
_REST = r"(?P<message>.*?)(?: \((?P<logger>[\w.$]+)\))?\s*"
_WITH_THREAD = re.compile(_TIME + r"\[(?P<thread>[^\]]*)\] " + _REST)
_WITHOUT_THREAD = re.compile(_TIME + r"(?P<thread>)" + _REST)
_PREFIXES = (
    "Broker id=|Partition |ReplicaFetcher replicaId=|ReplicaFetcherManager on |UnifiedLog partition=|LocalLog partition="
    "|LeaderEpochCache |QuorumController id=|Controller [0-9]"
)
_NO_THREAD = re.compile(rf"\[[\d\- :,]+\] [A-Z]+ (?!\[)|\[[\d\- :,]+\] [A-Z]+ \[(?:{_PREFIXES})")
"""A line that shows its layout to lack the thread: no bracket, or the bracket a message of Kafka begins with."""
_BEGINS = re.compile(r"\[\d{4}-\d\d-")


@dataclass(frozen=True, slots=True)
class Line:
    """`time` is in microseconds since 1970; brokers log in local time without a zone, so it is only good for one node."""

    file: str
    number: int
    time: int
    thread: str
    message: str
    logger: str

    @property
    def at(self) -> str:
        """Where it was read."""
        return f"{self.file}:{self.number}"


def microseconds(text: str) -> int:
    """`2026-11-21 08:27:15,637445` (4.x can print six digits, 3.x prints three) as microseconds since 1970."""
    when, _, fraction = text.partition(",")
    return _whole_seconds(when) + int(fraction.ljust(6, "0"))


@lru_cache(maxsize=1024)
def _whole_seconds(when: str) -> int:
    return (datetime.strptime(when, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


def clock(time: int) -> str:
    """The inverse of `microseconds`, in ISO form."""
    return (EPOCH + timedelta(microseconds=time)).strftime("%Y-%m-%dT%H:%M:%S.%f")


def read_lines(path: Path, label: str) -> tuple[list[Line], list[Problem]]:
    """The lines of one log file; `label` is the name of the file in `at` and in problems, without `.gz`."""
    content, problems = _content(path, label)
    if not content:
        if not problems:
            problems.append(
                Problem(
                    label,
                    None,
                    "log lines",
                    "an empty file",
                    "check that the logger was on; the other files are read without it",
                )
            )
        return [], problems
    if b"\0" in content[:4096]:
        problems.append(
            Problem(label, 1, "a text log", "a binary file", "a segment file is read under the name Kafka gave it")
        )
        return [], problems
    lines: list[Line] = []
    texts = content.decode("utf-8", errors="replace").removesuffix("\n").split("\n")
    envelope = _WITHOUT_THREAD if any(_NO_THREAD.match(text) for text in texts) else _WITH_THREAD
    for number, text in enumerate(texts, 1):
        found = envelope.fullmatch(text)
        continued = number < len(texts) and _BEGINS.match(texts[number]) is None
        line = _line(label, number, found) if found is not None and found["logger"] else None
        if line is not None:
            lines.append(line)
        elif (_BEGINS.match(text) and not continued) or "\0" in text or "\ufffd" in text:
            problems.append(
                Problem(
                    label,
                    number,
                    "[time] LEVEL [thread] message (logger)",
                    shown(text),
                    "the line is left out; a full disk or a copy that was truncated can cause this",
                    lost=1,
                )
            )
    if not lines and not problems:
        problems.append(
            Problem(
                label,
                1,
                "[time] LEVEL [thread] message (logger)",
                shown(content[:200].decode("utf-8", errors="replace")),
                "use the layout [%d] %p [%t] %m (%c)%n; see docs/kafka-logs.md",
            )
        )
    return lines, problems


def _line(label: str, number: int, found: re.Match[str]) -> Line | None:
    try:
        time = microseconds(found["time"])
    except ValueError:
        return None  # no such day
    return Line(label, number, time, found["thread"], found["message"], found["logger"].rpartition(".")[2])


def _content(path: Path, label: str) -> tuple[bytes, list[Problem]]:
    try:
        raw = path.read_bytes()
    except OSError as error:
        return b"", [Problem(label, None, "a readable file", str(error.strerror), "check the path and its permissions")]
    if path.suffix != ".gz":
        return raw, []
    try:
        return gzip.decompress(raw), []
    except (OSError, EOFError, zlib.error):
        unpacked = b"".join(_as_far_as_it_goes(raw))
        return unpacked, [
            Problem(
                label,
                None,
                "a whole gzip file",
                "one that ends early or is damaged",
                "copy it again; what could be unpacked is read",
            )
        ]


def _as_far_as_it_goes(raw: bytes) -> Iterator[bytes]:
    unpack = zlib.decompressobj(wbits=31)
    try:
        for start in range(0, len(raw), 4096):
            yield unpack.decompress(raw[start : start + 4096])
    except zlib.error:
        return


def incarnations(lines: list[Line]) -> list[list[Line]]:
    """The lines of one node split where a process begins: its first line is `Registered signal handlers`."""
    runs: list[list[Line]] = [[]]
    for line in lines:
        if line.message.startswith("Registered signal handlers") and runs[-1]:
            runs.append([])
        runs[-1].append(line)
    return [run for run in runs if run]

"""Log files as lines: compressed or not, half-written or not, in whatever layout (`layout/`).

Rules of this file

1. How a file is written is found by looking at its first thousand lines. `[time] LEVEL [thread] message (logger)` is the
   layout to have; Kafka's default layout leaves out the thread; then it is empty, and the whole file counts as one thread.
2. What does not begin as a line does continues the line before it (stack traces, configuration dumps); it is not read.
   Only the end of such a message has the logger, so a line without one that nothing continues was cut off.
3. A line number is the number in the uncompressed file.
4. A file never raises: what is empty, binary, half-written or unreadable becomes a Problem.
"""

import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from tidegauge.traces.kafka.layout.dates import EPOCH
from tidegauge.traces.kafka.layout.found import Layout, find
from tidegauge.traces.kafka.layout.prefixes import peel
from tidegauge.traces.problems import Problem, shown

SEE = "[time] LEVEL [thread] message (logger)"
_DIGIT = re.compile(r"\d")
_TEXT = re.compile(rb"[^\x01-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\xff]")


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


class LogFile(NamedTuple):
    """One file read; `sources` has the lines by who wrote them where the layout says so (docker compose, journald)."""

    label: str
    lines: list[Line]
    problems: list[Problem]
    layout: str = ""
    sources: dict[str, list[Line]] = {}  # noqa: RUF012


def clock(time: int) -> str:
    """Microseconds since 1970 in ISO form."""
    return (EPOCH + timedelta(microseconds=time)).strftime("%Y-%m-%dT%H:%M:%S.%f")


def read_lines(path: Path, label: str, given: str | None = None) -> LogFile:
    """The lines of one log file; `label` is its name in `at` and in problems, `given` its layout if it is known."""
    content, problems = _content(path, label)
    if not content:
        if not problems:
            do = "check that the logger was on; the other files are read without it"
            problems.append(Problem(label, None, "log lines", "an empty file", do))
        return LogFile(label, [], problems)
    if _binary(content):
        do = "a segment file is read under the name Kafka gave it"
        problems.append(Problem(label, 1, "a text log", "a binary file", do))
        return LogFile(label, [], problems)
    texts = _decoded(content).removesuffix("\n").split("\n")
    layout = find([text.rpartition("\0")[2] for text in texts[:2000]], given)
    if layout is None:
        seen = shown(next((text for text in texts if text.strip("\0 \r")), ""))
        do = "name its layout with --layout, or use [%d] %p [%t] %m (%c)%n; see docs/kafka-logs.md"
        problems.append(Problem(label, 1, SEE, seen, do))
        return LogFile(label, [], problems)
    numbers: Sequence[int] = range(1, len(texts) + 1)
    names: Sequence[str] = ()
    if layout.wrappers:
        positions, texts, names = peel(texts, layout.wrappers)
        numbers = [position + 1 for position in positions]
    lines, sources = _lines(label, layout, numbers, texts, names, problems)
    return LogFile(label, lines, problems, layout.name, sources)


def _lines(
    label: str,
    layout: Layout,
    numbers: Sequence[int],
    texts: Sequence[str],
    names: Sequence[str],
    problems: list[Problem],
) -> tuple[list[Line], dict[str, list[Line]]]:
    lines: list[Line] = []
    sources: dict[str, list[Line]] = {}
    entry, shape = layout.entry, ""
    for position, text in enumerate(texts):
        found = entry(text)
        if found is None:
            pieces = [piece for piece in text.removeprefix("\ufeff").split("\0") if piece.strip()]
            entries = [entry(piece) for piece in pieces]
            found = entries[-1] if entries else None
            torn = len(pieces) > 1 or "\ufffd" in text or (found is None and "\0" in text.strip("\0"))
            continued = position + 1 < len(texts) and not layout.begins(texts[position + 1])
            begins = layout.begins(text) or (shape != "" and _shape(text) == shape)
            if torn or (found is None and begins and not continued):
                do = "the line is left out; a full disk or a copy that was truncated can cause this"
                problems.append(Problem(label, numbers[position], SEE, shown(text), do, lost=1))
        if found is not None:
            shape = shape or _shape(text)
            line = Line(label, numbers[position], *found)
            lines.append(line)
            if names:
                sources.setdefault(names[position], []).append(line)
    return lines, sources


def _shape(text: str) -> str:
    """How a line begins, `[0000-00-`: one broken off within its date is not the rest of another. "" without a date."""
    shape = _DIGIT.sub("0", text[:9])
    return shape if shape.count("0") >= 4 else ""


def _decoded(content: bytes) -> str:
    """UTF-8, or UTF-16 with a byte order mark (a Windows shell's `>`)."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", errors="replace")
    return content.decode("utf-8-sig", errors="replace")


def _binary(content: bytes) -> bool:
    """More than a third of its beginning is no text. NUL alone does not make a file binary: a file that was truncated
    while it was written (logrotate's copytruncate) begins with a hole, one that a host's crash broke off ends with one."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return False
    head = content.replace(b"\0", b"")[:4096] if b"\0" in content[:4096] else content[:4096]
    return 3 * len(_TEXT.sub(b"", head)) >= max(1, len(head))


def _content(path: Path, label: str) -> tuple[bytes, list[Problem]]:
    try:
        raw = path.read_bytes()
    except OSError as error:
        return b"", [Problem(label, None, "a readable file", str(error.strerror), "check the path and its permissions")]
    if not raw.startswith(b"\x1f\x8b"):
        return raw, []
    try:
        return gzip.decompress(raw), []
    except (OSError, EOFError, zlib.error):
        unpacked = b"".join(_as_far_as_it_goes(raw))
        seen, do = "one that ends early or is damaged", "copy it again; what could be unpacked is read"
        return unpacked, [Problem(label, None, "a whole gzip file", seen, do)]


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

"""Read log files as lines: in blocks, compressed or not, half-written or not, in whatever layout.

A *piece* is bytes of any length, a *block* bytes up to a line break, of which there is one in memory at a time; a *text* is
a line of the file as it stands there, a `Line` one that the file's layout (layout.py) could take apart. What cannot be read
becomes a Problem in the list that the caller passes; `label` is the name of the file there. `behind` is the text after the
last one of a block, None at the end of the file.
"""

import os
import re
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from itertools import chain
from pathlib import Path
from sys import intern
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegauge.traces.kafka_logs.parsing.exports import MOST_DOCUMENTS, MOST_WRAPPED, may_be_restored, restored
from tidegauge.traces.kafka_logs.parsing.layout import DOCUMENTED, KAFKAS, Entry, Layout, Peeled, Peeler, find
from tidegauge.traces.kafka_logs.parsing.patterns import TABLE
from tidegauge.traces.kafka_logs.parsing.timestamps import EPOCH
from tidegauge.traces.problems import Problem, note, shown
from tidegauge.util.input_limits import (
    LineBound,
    UnpackingError,
    longest_line,
    packing_of,
    pieces_on_disk,
    size_on_disk,
    unpacked_as,
)

# Blocks of complete lines of a file, compressed or not: of a file of any size, one block is in memory.
#
# 1. A block ends with a line break, except for the last one. What cannot be read, or unpacked, becomes a Problem; what came
#    before it is read.
# 2. Most lines of a large file have no pattern for their logger. They are skipped as bytes, a block at a time. An incomplete
#    line, and the one after it, are never skipped: they show that lines are missing. Nor are the last ones of a process:
#    they show until when it logged.


BLOCK, SKIPPED_FROM = 4 << 20, 1 << 20
"""Bytes of a block, and of one of which lines are skipped."""
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
PROCESS_BEGINS, _FIRST_LOGGER = "Registered signal handlers", "Log4jControllerRegistration$"
"""How the line begins with which a process does, and the logger of the one that may stand shortly before it."""
NEAR_LINES = 5
"""Lines between the two lines that begin a process, at most."""
REPLACED = "one that was replaced or cut while it was read"
"""What is seen of a log that was rotated after it was divided into ranges."""
KNOWN = "|".join(sorted({re.escape(logger) for _, logger, _ in TABLE}))
"""A pattern for the loggers whose lines the reader knows."""


@dataclass
class ByteRange:
    """A part of a log, which another process may read: the lines that begin at the bytes from `begin` on, before `end`.

    `inode` is the number of the file that was divided. `behind` is the text after the lines, once they are read; None at the
    end of the file.
    """

    path: Path
    begin: int
    end: int
    inode: int
    behind: str | None = None

    def pieces(self, file: BinaryIO) -> Iterator[bytes]:
        """Yield the lines of the opened file in pieces of any length. Raises OSError for another file, or a shorter one."""
        status = os.fstat(file.fileno())
        # Rotated, or cut by `copytruncate`, since it was divided: its lines are elsewhere, or nowhere.
        if status.st_ino != self.inode or status.st_size < self.end:
            raise OSError(0, REPLACED)
        # The line that the first byte is in began before it, unless the byte before is a line break.
        if self.begin:
            file.seek(self.begin - 1)
            while (piece := file.readline(BLOCK)) and not piece.endswith(b"\n"):
                pass
        piece = b"\n"
        while piece and file.tell() < self.end:
            piece = file.read(min(BLOCK, self.end - file.tell()))
            yield piece
        # The last line may end behind the range.
        while piece and not piece.endswith(b"\n"):
            piece = file.readline(BLOCK)
            yield piece
        self.behind = file.readline(BLOCK).decode("utf-8", "replace") or None


def byte_ranges(path: Path, size: int, pattern: str | None = None) -> list[ByteRange]:
    """Return parts of about `size` bytes that read_range reads as read_lines does the whole; none where that is not so.

    They are of large plain text in a layout without wrappers; `pattern` is that layout if the user named it.
    """
    try:
        status = path.stat()
        with path.open("rb") as file:
            head = file.read(BLOCK)
    except OSError:
        return []
    # What is smaller may have to be restored, which takes the whole text; holes are not what a reader of bytes sees.
    is_small = status.st_size < 2 * size or status.st_size <= MOST_WRAPPED or size_on_disk(status) < status.st_size
    is_plain = packing_of(head) is None and encoding_of(head) == "utf-8" and not is_binary(head)
    if is_small or not is_plain or may_be_restored(head):
        return []
    layout = layout_of(_texts(head, begins=True), pattern)
    if layout is None or layout.wrappers:
        return []
    begins = range(0, status.st_size, size)
    return [ByteRange(path, begin, min(begin + size, status.st_size), status.st_ino) for begin in begins]


def blocks(path: Path, label: str, problems: list[Problem], part: ByteRange | None = None) -> Iterator[bytes]:
    """Yield the content of a log file, or of a part, in blocks: uncompressed, in UTF-8, without lines that are too long."""
    bound = LineBound()
    content_read = pieces(path, label, problems, part)
    for piece in _restored(_in_utf8(content_read)) if part is None else content_read:
        content = bound.feed(piece)
        note_long_lines(bound, label, problems)
        if content:
            yield content
    last_block = bound.end()
    note_long_lines(bound, label, problems)
    if last_block:
        yield last_block


def note_long_lines(bound: LineBound, label: str, problems: list[Problem]) -> None:
    """Note a problem for each line that `bound` left out because of its length since the last call."""
    for number in bound.dropped:
        expected, do = (
            f"lines of at most {longest_line():,} bytes",
            "the line is left out; --longest-line allows longer ones",
        )
        note(Problem(label, number, expected, "a longer one", do, lost=1), problems)
    bound.dropped.clear()


def encoding_of(content: bytes) -> str:
    """Return the name of a text's encoding: UTF-16 has a byte order mark, or every other byte of its first line is NUL."""
    if content.startswith(UTF_16):
        return "utf-16"
    # ASCII in UTF-16: little-endian has the NUL second, big-endian first.
    even, odd = content[:200:2], content[1:200:2]
    if len(odd) > 20 and not any(odd) and all(even):
        return "utf-16-le"
    return "utf-16-be" if len(odd) > 20 and not any(even) and all(odd) else "utf-8"


def _restored(content: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the content of a file; an export, or a text whose lines were wrapped, as it was before that (exports.py).

    Exports are restored up to MOST_DOCUMENTS bytes, wrapped texts up to MOST_WRAPPED.
    """
    first = next(content, b"")
    if is_binary(first):
        yield from chain([first], content)
        return
    largest = MOST_DOCUMENTS if may_be_restored(first) else MOST_WRAPPED
    pieces_read, size = [first], len(first)
    while size <= largest and (piece := next(content, b"")):
        pieces_read.append(piece)
        size += len(piece)
    # What is larger is read as it is: restoring needs the whole text in memory.
    yield restored(b"".join(pieces_read)) if size <= largest else b"".join(pieces_read)
    yield from content


def _in_utf8(content: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the pieces, those of a file in UTF-16 (a Windows shell's `>`, with a byte order mark) as UTF-8."""
    first = next(content, b"")
    encoding = encoding_of(first)
    if encoding == "utf-8":
        yield from chain([first], content)
        return
    # Blocks end at byte 0x0A, which in UTF-16 may be half a character.
    decoder = getincrementaldecoder(encoding)("replace")
    yield from (decoder.decode(piece).encode() for piece in chain([first], content))
    yield decoder.decode(b"", True).encode()


def pieces(path: Path, label: str, problems: list[Problem], part: ByteRange | None = None) -> Iterator[bytes]:
    """Yield the content of a file, or a part of it, uncompressed, in pieces of any length."""
    packing: str | None = None
    try:
        with path.open("rb") as file:
            following = pieces_on_disk(file, BLOCK) if part is None else part.pieces(file)
            first = next(following, b"")
            content = chain([first], following)
            packing = packing_of(first) if part is None else None
            yield from content if packing is None else unpacked_as(packing, content)
    except UnpackingError as error:
        do = "copy it again; what could be unpacked is read"
        problems.append(Problem(label, None, f"a complete {packing} file", str(error.strerror), do))
    except OSError as error:
        do = "judge a copy of it" if error.strerror == REPLACED else "check the path and its permissions"
        problems.append(Problem(label, None, READABLE, str(error.strerror), do))


Positions = npt.NDArray[np.intp]


def lines_matching(block: bytes, pattern: str) -> tuple[Positions, Positions, npt.NDArray[np.bool_]]:
    """Return the positions where the lines of a block begin and end, and which of them match `pattern` (RE2) anywhere."""
    data = np.frombuffer(block, dtype=np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    if not block.endswith(b"\n"):
        ends = np.append(ends, len(data))
    begins = np.concatenate(([0], ends[:-1] + 1))
    offsets = np.append(begins, len(data)).astype(np.int32)
    lines = pa.Array.from_buffers(pa.binary(), len(begins), [None, pa.py_buffer(offsets), pa.py_buffer(block)])
    return begins, ends, pc.match_substring_regex(lines, pattern).to_numpy(zero_copy_only=False)


def positions_read(block: bytes) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
    """Return the numbers (from 0) of the lines of a block that must be read, and the positions where they begin and end.

    They are those with a known logger, those that are not whole, the line after each of these, the first and the last
    one of the block, and those before the beginning of a process. The block has a layout of Kafka: `[time] .. (logger)`.
    """
    data = np.frombuffer(block, dtype=np.uint8)
    begins, ends, has_known_logger = lines_matching(block, KNOWN)
    last = data[np.maximum(ends - 1, 0)]
    # Files that were copied by way of Windows end their lines with CR LF.
    last = np.where(last == ord("\r"), data[np.maximum(ends - 2, 0)], last)
    whole = (data[begins] == ord("[")) & (last == ord(")"))
    must_be_read = has_known_logger | ~whole
    # An incomplete line may continue in the next one: that decides whether it was cut off (rule 2 of read_lines).
    must_be_read[1:] |= ~whole[:-1]
    # From the first line of a log on, and until the last one before another process begins, its process logged.
    must_be_read[:1] = must_be_read[-1:] = True
    for begin in re.finditer(PROCESS_BEGINS.encode(), block):
        number = int(np.searchsorted(ends, begin.start()))
        must_be_read[max(0, number - NEAR_LINES - 1) : number] = True
    numbers = np.flatnonzero(must_be_read)
    return numbers.tolist(), begins[numbers].tolist(), ends[numbers].tolist()


# Lines of a file in any layout (layout.py), complete or not.
#
# 1. The layout is found from the first thousand lines. `[time] LEVEL [thread] message (logger)` is the best; Kafka's default
#    layout lacks the thread: then it is empty, and the whole file counts as one thread.
# 2. Text that does not begin like a line continues the line before it (stack traces, configuration dumps); it is not read.
#    Only the end of such a message has the logger, so a line without one, and without a continuation, was cut off.
# 3. A line number is the number in the uncompressed file.
# 4. No file raises: an empty, binary, half-written or unreadable one becomes a Problem.


SEE = "[time] LEVEL [thread] message (logger)"
"""What problems say a line should look like."""
_DIGIT = re.compile(r"\d")
_TEXT = re.sub(rb"[\x01-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\xff]", b"", bytes(range(256)))
_NOT_ASCII = re.compile(rb"[\x80-\xff]+")


@dataclass(slots=True, unsafe_hash=True)
class Line:
    """A log line. `time` is in microseconds since 1970, of one node only: brokers log local time without a zone.

    A summary (selection.py) is a request of a session that asks for nothing that is read; it `summarizes` so many
    consecutive requests, itself and those before it. For any other line that is 0.
    """

    file: str
    number: int
    time: int
    thread: str
    message: str
    logger: str
    summarizes: int = 0

    @property
    def requests(self) -> int:
        """The number of requests of its session that the line stands for: 1 if it is no summary."""
        return max(1, self.summarizes)

    @property
    def at(self) -> str:
        """The file and the number of the line, as `server.log:17`."""
        return f"{self.file}:{self.number}"


Take = Callable[[Line], Line | None]
"""A function that selects what is read of a line: the line, one with a part of its message, or None for nothing."""


def everything(line: Line) -> Line | None:
    """Select every line."""
    return line


class LogFile(NamedTuple):
    """A file that was read; `sources` has the lines by writer if its wrapper names that (docker compose, journald).

    `layout` is the name of its layout, empty if none was found. If only a part of the logs is read, its lines are `selected`
    already, unless they are of several writers.
    """

    label: str
    lines: list[Line]
    problems: list[Problem]
    layout: str = ""
    sources: dict[str, list[Line]] = {}  # noqa: RUF012
    selected: bool = True


def clock(time: int) -> str:
    """Format microseconds since 1970 as ISO 8601."""
    second, micros = divmod(time, 1_000_000)
    return f"{_clock(second)}.{micros:06}"


@lru_cache(maxsize=1024)
def _clock(second: int) -> str:
    """Format seconds since 1970: most lines share theirs with the line before."""
    return (EPOCH + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%S")


READABLE = "a readable file"
"""What is expected, in the problem of a file that could not be read, or not to its end."""


def could_not_be_read(problems: Iterable[Problem]) -> bool:
    """Return whether a file could not be read for a reason that may be gone the next time."""
    return any(problem.expected == READABLE for problem in problems)


EMPTY = "an empty file"
"""What the problem of a file without content says: files.py looks for it."""


def read_lines(path: Path, label: str, pattern: str | None = None, take: Take = everything) -> LogFile:
    """Read the lines of a file that `take` selects; `pattern` is its layout if the user named it.

    `label` is the name of the file in `Line.file` and in problems.
    """
    problems: list[Problem] = []
    content = blocks(path, label, problems)
    first = next(content, b"")
    if not first:
        if not problems:
            do = "check that the logger was on; the other files are read without it"
            problems.append(Problem(label, None, "log lines", EMPTY, do))
        return LogFile(label, [], problems)
    if is_binary(first):
        do = "a segment file must keep the name that Kafka gave it"
        problems.append(Problem(label, 1, "a text log", "a binary file", do))
        return LogFile(label, [], problems)
    texts = _texts(first, begins=True)
    layout = layout_of(texts, pattern)
    if layout is None:
        seen = shown(next((text for text in texts if text.strip("\0 \r")), ""))
        do = "name its layout with --layout, or use [%d] %p [%t] %m (%c)%n; see docs/kafka-logs.md"
        problems.append(Problem(label, 1, SEE, seen, do))
        return LogFile(label, [], problems)
    reader = LineReader(label, layout, problems, take)
    if layout.wrappers:
        reader.read_wrapped(chain([first], content))
    else:
        reader.read_blocks(chain([first], content))
    return LogFile(label, reader.lines, problems, layout.name, reader.sources)


def read_range(part: ByteRange, label: str, pattern: str | None, take: Take) -> tuple[LogFile, int]:
    """Read a part of a log (byte_ranges) as `read_lines` reads the whole; return it, and how many lines it has.

    The numbers of its lines, in problems too, count from its own first line.
    """
    problems: list[Problem] = []
    layout = layout_of(_texts(next(pieces(part.path, label, problems), b""), begins=True), pattern)
    if layout is None:
        # It had one when the log was divided: the file was replaced, or cannot be read any more.
        if not problems:
            problems.append(Problem(label, None, READABLE, REPLACED, "judge a copy of it"))
        return LogFile(label, [], problems), 0
    reader = LineReader(label, layout, problems, take)
    lines = reader.read_blocks(blocks(part.path, label, problems, part), part)
    return LogFile(label, reader.lines, problems, layout.name), lines


def layout_of(texts: Sequence[str], pattern: str | None = None) -> Layout | None:
    """Find the layout of a file that begins with these texts; `pattern` is that of the user. None if there is none."""
    # A hole of NUL bytes may stand before a line.
    return find([text.rpartition("\0")[2] for text in texts[:2000]], pattern)


class LineReader:
    """Reads the lines of a file into `lines`, and by writer into `sources`, if wrappers name one."""

    def __init__(self, label: str, layout: Layout, problems: list[Problem], take: Take) -> None:
        """Begin a file: problems are appended to `problems`, and only lines that `take` selects are kept."""
        self.label, self.layout, self.problems, self.take = label, layout, problems, take
        self.lines: list[Line] = []
        self.sources: dict[str, list[Line]] = {}
        self._shape = ""
        """The shape of the first line that was read (see `_shape`)."""

    def read_blocks(self, content: Iterable[bytes], part: ByteRange | None = None) -> int:
        """Read the blocks of a file, or of a part of it; return the number of lines."""
        before = 0
        # Lines of loggers that the reader does not know are skipped, unless all lines are wanted.
        may_skip = self.layout.name in (DOCUMENTED, KAFKAS) and self.take is not everything
        # One block late: the first line of the next one tells whether the last line of this one is continued.
        waiting: bytes | None = None
        for block in chain(content, [None]):
            if waiting is not None:
                behind = None if part is None else part.behind
                if block is not None:
                    behind = block[: block.find(b"\n") + 1 or len(block)].decode("utf-8", "replace")
                # In a short log a line of any logger may be the only one that names the node.
                before += self.block(waiting, before, behind, fast=may_skip and len(waiting) >= SKIPPED_FROM)
            waiting = block
        return before

    def read_wrapped(self, content: Iterable[bytes]) -> None:
        """Read the blocks of a file whose lines are in wrappers."""
        # The parts of a container's line may have lines of other writers between them: the peeler puts them together.
        peeler, before, waiting = Peeler(self.layout.wrappers), 0, Peeled()
        for block in chain(content, [None]):
            texts = [] if block is None else _texts(block, begins=before == 0)
            peeled = peeler.end() if block is None else peeler.feed(texts)
            before += len(texts)
            if peeled.texts:
                self._read_peeled(waiting, peeled.texts[0])
                waiting = peeled
        self._read_peeled(waiting, None)
        for number in peeler.dropped:
            expected, do = f"lines of at most {longest_line():,} characters", "the line is left out"
            note(Problem(self.label, number, expected, "a longer one, in parts", do, lost=1), self.problems)
        # Only some wrappers name a writer.
        if set(self.sources) <= {""}:
            self.sources = {}

    def _read_peeled(self, peeled: Peeled, behind: str | None) -> None:
        """Read texts that the peeler has unwrapped; `behind` is the text after them, None at the end of the file."""
        self.read([position + 1 for position in peeled.positions], peeled.texts, peeled.sources, behind)

    def block(self, block: bytes, before: int, behind: str | None = None, *, fast: bool = False) -> int:
        """Read a block that comes after `before` lines of the file; return its number of lines.

        `behind` is the text after the block, None at the end of the file; `fast` skips lines of unknown loggers.
        """
        if fast:
            positions, begins, ends = positions_read(block)
            texts = [block[begin:end].decode("utf-8", "replace") for begin, end in zip(begins, ends, strict=True)]
            # The byte order mark of a file stands before its first line.
            if before == 0 and texts:
                texts[0] = texts[0].removeprefix("\ufeff")
            self.read([before + position + 1 for position in positions], texts, behind=behind)
            return block.count(b"\n")
        texts = _texts(block, begins=before == 0)
        self.read(range(before + 1, before + len(texts) + 1), texts, behind=behind)
        return len(texts)

    def read(
        self, numbers: Sequence[int], texts: Sequence[str], names: Sequence[str] = (), behind: str | None = None
    ) -> None:
        """Read texts at these line numbers; `names` are their writers, none if no wrapper names them.

        `behind` is the text after the last one, None at the end of the file: a text that it continues is not damaged.
        """
        split, label, take, lines = self.layout.entry, self.label, self.take, self.lines
        for position, text in enumerate(texts):
            entry = split(text)
            if entry is None:
                following = texts[position + 1] if position + 1 < len(texts) else behind
                entry = self._entry_of_odd(numbers[position], text, following)
                if entry is None:
                    continue
            self._shape = self._shape or _shape(text)
            time, thread, message, logger = entry
            if names:
                self.sources.setdefault(names[position], [])
            line = take(Line(label, numbers[position], time, intern(thread), message, intern(logger)))
            if line is not None:
                lines.append(line)
                if names:
                    self.sources[names[position]].append(line)

    def _entry_of_odd(self, number: int, text: str, following: str | None) -> Entry | None:
        """Return the entry of the line at the end of a text that does not match the layout; None if there is none.

        A line that is damaged is noted as a problem; text that continues the line before it is not. `following` is the text
        after it.
        """
        split, begins_line = self.layout.entry, self.layout.begins
        # NUL bytes are a hole: of a truncated file (copytruncate), or of a block that was not written before a crash.
        pieces = [piece for piece in text.removeprefix("\ufeff").split("\0") if piece.strip()]
        entries = [split(piece) for piece in pieces]
        last = entries[-1] if entries else None
        torn = len(pieces) > 1 or "\ufffd" in text or (last is None and "\0" in text.strip("\0"))
        # The first line of a message of several does not match the pattern, which ends on the last one: that is no damage.
        continued = following is not None and not begins_line(following)
        begins = begins_line(text) or (self._shape != "" and _shape(text) == self._shape)
        if torn or (last is None and begins and not continued):
            do = "the line is left out; a full disk or a copy that was truncated can cause this"
            note(Problem(self.label, number, SEE, shown(text), do, lost=1), self.problems)
        return last


def _texts(content: bytes, *, begins: bool) -> list[str]:
    """Return the lines of a block; `begins`: it is the first of its file, which may have a byte order mark."""
    text = content.decode("utf-8-sig" if begins else "utf-8", errors="replace")
    return text.removesuffix("\n").split("\n")


def _shape(text: str) -> str:
    """Return the first nine characters with 0 for each digit, `[0000-00-`; "" if they are no date.

    A line that was cut off within its date has the shape of the others, too.
    """
    shape = _DIGIT.sub("0", text[:9])
    return shape if shape.count("0") >= 4 else ""


def is_tar(content: bytes) -> bool:
    """Return whether a file begins as a tar does: with the header of its first file."""
    return content[257:262] == b"ustar"


def is_binary(content: bytes) -> bool:
    """Return whether a file that begins so is no text: more than a third is no character of one, or it is a tar."""
    if is_tar(content):
        return True
    # NUL alone makes no file binary: one that was truncated while it was written (logrotate's copytruncate) begins with a
    # hole, one that a crash of the host cut off ends with one.
    head = content.replace(b"\0", b"")[:4096] if b"\0" in content[:4096] else content[:4096]
    # What is written in Chinese or Korean has no other characters: it counts as text if it is UTF-8, which no segment is.
    with suppress(UnicodeDecodeError):
        getincrementaldecoder("utf-8")().decode(head)
        head = _NOT_ASCII.sub(b"x", head)
    return 3 * len(head.translate(None, _TEXT)) >= max(1, len(head))


def incarnations(lines: list[Line]) -> list[list[Line]]:
    """Split the lines of one node into those of each process.

    A process begins at `Registered signal handlers`, or at the line of Log4jControllerRegistration just before that.
    """
    runs: list[list[Line]] = [[]]
    for line in lines:
        if line.message.startswith(PROCESS_BEGINS):
            before = runs[-1][-NEAR_LINES:]
            # That line is printed as the first logger is made: from there on the lines belong to the new process.
            moved = next((len(before) - at for at, earlier in enumerate(before) if earlier.logger == _FIRST_LOGGER), 0)
            runs.append([runs[-1].pop() for _ in range(moved)][::-1])
        runs[-1].append(line)
    return [run for run in runs if run]


# Where lines are missing.


BEFORE_ALL_LINES, AFTER_ALL_LINES = (-1, -1), (1 << 60, 1 << 60)
"""Before the first line of a node, and after its last one."""

Spot = tuple[int, int]
"""(process run, index of the line)."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Lines of `logger` are missing at `node`, somewhere after `begin` and before `end`; `why` is the evidence.

    `times` are those of the lines at both ends (of a clock that was set back: the one to which it was), None where there is
    none.
    """

    node: int
    logger: str
    begin: Spot
    end: Spot
    times: tuple[int | None, int | None]
    why: str

    def __str__(self) -> str:
        """Return the gap as a report prints it: the logger, the node, between which times, and the evidence."""
        # [11:23]: the time of day to the millisecond, out of `2026-11-21T08:27:15.123456`.
        first, last = (None if time is None else clock(time)[11:23] for time in self.times)
        if first is None:
            when = "all the time" if last is None else f"before {last}"
        else:
            when = f"after {first}" if last is None else f"{first} to {last}"
        return f"{self.logger} of node {self.node}, {when}: {self.why}"

"""The bounds of what is taken from a file that somebody sent: whatever it is, memory and time have a limit.

Rules of this file

1. What is beyond a bound is a problem of that file, and the rest is read: functions here raise OSError with a reason, as an
   unreadable file does, or leave out a line and count it.
2. A bound is far above what Kafka and the writers of traces produce. Those that somebody may want to change are options of
   the command line; processes that are started inherit them as environment variables.
"""

import errno
import os
import stat
import zlib
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO

LONGEST_LINE = 1 << 20
LONGEST_LINE_VARIABLE = "TIDEGAUGE_LONGEST_LINE"
"""Bytes of a line: a longer one is a problem, and is passed over; and the environment variable that changes it."""

FOLLOW_LINKS_VARIABLE = "TIDEGAUGE_FOLLOW_LINKS"
"""The environment variable for --follow-links."""

MOST_RATIO, RATIO_FROM = 100, 16 << 20
"""How many times its packed bytes a gzip file may unpack to, and the bytes from which that counts. Logs reach 10 to 50."""

UNPACKED_AT_ONCE, LOOKED_AT = 4 << 20, 1 << 14


def longest_line() -> int:
    """Return the longest length of a line, in bytes."""
    given = os.environ.get(LONGEST_LINE_VARIABLE, "")
    return int(given) if given.isascii() and given.isdecimal() and int(given) else LONGEST_LINE


def follows_links() -> bool:
    """Return whether links that lead out of what was named are followed."""
    return os.environ.get(FOLLOW_LINKS_VARIABLE) == "1"


def read_regular(path: Path, most: int) -> bytes:
    """Read a whole file of at most so many bytes. Raises OSError for a larger one, a pipe or a device."""
    # O_NONBLOCK: to open a FIFO would wait for its writer. What was opened is looked at, and not what had the name before.
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:  # noqa: PTH123  a descriptor
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(0, "a pipe, a device or another thing that is no file", str(path))
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(0, f"more than {most:,} bytes", str(path))
    return content


def size_on_disk(status: os.stat_result) -> int:
    """Return the bytes of a file without its holes."""
    return min(status.st_size, getattr(status, "st_blocks", status.st_size) * 512)


def pieces_on_disk(file: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield the content of a file that was just opened, in pieces of at most `size` bytes, with its holes shortened.

    A sparse file of a few bytes on disk may have terabytes of NULs: a hole above the longest line is as long as a line that
    is just too long, which is what is reported of it.
    """
    descriptor, status = file.fileno(), os.fstat(file.fileno())
    if not hasattr(os, "SEEK_DATA") or not stat.S_ISREG(status.st_mode) or size_on_disk(status) == status.st_size:
        yield from iter(partial(file.read, size), b"")
        return
    at = 0
    while at < status.st_size:
        try:
            begin = os.lseek(descriptor, at, os.SEEK_DATA)
            end = os.lseek(descriptor, begin, os.SEEK_HOLE)
        except OSError as error:
            # ENXIO: no data follows. Any other error: the file system does not tell holes, and all of it is data.
            begin, end = (status.st_size if error.errno == errno.ENXIO else at), status.st_size
        hole = min(begin - at, longest_line() + 1)
        yield from (b"\0" * min(size, left) for left in range(hole, 0, -size))
        at = begin
        while at < end and (piece := os.pread(descriptor, min(size, end - at), at)):
            at += len(piece)
            yield piece
        # Nothing is there where data was: the file was cut meanwhile.
        if at < end:
            return


def has_long_line(path: Path) -> bool:
    """Return whether a file, of which no more than a few bytes are read, has a line that is too long."""
    longest, at = longest_line(), 0
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        while size - at > longest:
            # The last line break within the length that a line may have: nearly always it is in the last bytes of it.
            for window in (min(longest, LOOKED_AT), longest):
                file.seek(at + longest + 1 - window)
                end = file.read(window).rfind(b"\n") + 1
                if end:
                    break
            if not end:
                return True
            at += longest + 1 - window + end
    return False


class UnpackingError(OSError):
    """Data that is no gzip, or that unpacks to too much; the bytes before it were yielded."""


def unpacked(packed: Iterable[bytes]) -> Iterator[bytes]:
    """Unpack gzip, of one member or several, in pieces of at most UNPACKED_AT_ONCE bytes. Raises UnpackingError."""
    # wbits=31: with the header of gzip.
    unpack = zlib.decompressobj(wbits=31)
    packed_size = unpacked_size = 0
    try:
        for piece in packed:
            # Between members and behind the last one there may be NUL bytes: padding.
            raw = piece.lstrip(b"\0") if unpack.eof else piece
            packed_size += len(piece)
            while raw:
                if unpack.eof:
                    unpack = zlib.decompressobj(wbits=31)
                content = unpack.decompress(raw, UNPACKED_AT_ONCE)
                unpacked_size += len(content)
                raw = unpack.unused_data.lstrip(b"\0") if unpack.eof else unpack.unconsumed_tail
                if unpacked_size > RATIO_FROM and unpacked_size > MOST_RATIO * (packed_size - len(raw)):
                    raise UnpackingError(0, f"one that unpacks to more than {MOST_RATIO} times its size")
                yield content
    except zlib.error:
        raise UnpackingError(0, "one that ends early or is damaged") from None
    if not unpack.eof:
        raise UnpackingError(0, "one that ends early or is damaged")


def at_most(most: int, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the pieces. Raises ValueError where they have more bytes than that together."""
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > most:
            raise ValueError(f"more than {most:,} bytes")
        yield piece


class LineBound:
    """Takes bytes in pieces; hands on complete lines. A line above the longest length becomes an empty one.

    `dropped` has the numbers of such lines, the first being 1, since it was cleared last.
    """

    def __init__(self) -> None:
        """Begin before the first line."""
        self._longest = longest_line()
        self._left: list[bytes] = []
        self._waiting = 0
        self._lines = 0
        self._in_long_line = False
        self.dropped: list[int] = []

    def feed(self, piece: bytes) -> bytes:
        """Return the lines that are complete now."""
        end = piece.rfind(b"\n") + 1
        if not end:
            self._wait(piece)
            return b""
        first = piece.find(b"\n") + 1
        if self._in_long_line or self._waiting + first - 1 > self._longest:
            self.dropped.append(self._lines + 1)
            # An empty line has its place, so that the others keep their numbers.
            content = b"\n" + self._bounded(piece[first:end], self._lines + 1)
        else:
            content = b"".join([*self._left, self._bounded(piece[:end], self._lines)])
        self._left, self._waiting, self._in_long_line = [], 0, False
        self._lines += content.count(b"\n")
        if end < len(piece):
            self._wait(piece[end:])
        return content

    def end(self) -> bytes:
        """Return what waits for its end, empty if it is too long."""
        left, too_long = b"".join(self._left), self._in_long_line
        self._left, self._waiting, self._in_long_line = [], 0, False
        if too_long:
            self.dropped.append(self._lines + 1)
        return left

    def _wait(self, rest: bytes) -> None:
        self._waiting += len(rest)
        if self._in_long_line or self._waiting > self._longest:
            self._left, self._in_long_line = [], True
        else:
            self._left.append(rest)

    def _bounded(self, lines: bytes, before: int) -> bytes:
        """Empty the lines that are too long; `before` them there were so many lines."""
        kept, at, begin = [], 0, 0
        # A line break is looked for a whole length ahead: most lines are stepped over without a look.
        while len(lines) - at > self._longest:
            last = lines.rfind(b"\n", at, at + self._longest + 1)
            if last < 0:
                kept.append(lines[begin:at])
                self.dropped.append(before + lines.count(b"\n", 0, at) + 1)
                begin = at = lines.find(b"\n", at)
            at = last + 1 if last >= 0 else at + 1
        return b"".join([*kept, lines[begin:]]) if kept else lines

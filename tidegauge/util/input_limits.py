"""Read files that somebody sent within bounds: whatever they are, memory and time have a limit.

Rules of this file

1. What is beyond a bound is a problem of that file, and the rest is read: functions here raise OSError with a reason (and
   the errno 0), as an unreadable file does, or leave out a line and count it.
2. A bound is far above what Kafka and the writers of traces produce. Those that somebody may want to change are options of
   the command line; processes that are started inherit them as environment variables.
"""

import errno
import io
import os
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

LONGEST_LINE = 1 << 20
LONGEST_LINE_VARIABLE = "TIDEGAUGE_LONGEST_LINE"
"""Bytes of the longest line that is read, and the environment variable that changes that; a longer line is left out."""

FOLLOW_LINKS_VARIABLE = "TIDEGAUGE_FOLLOW_LINKS"
"""The environment variable for --follow-links."""

PACKINGS = {
    "gzip": (b"\x1f\x8b", ".gz"),
    "bzip2": (b"BZh", ".bz2"),
    "zstd": (b"\x28\xb5\x2f\xfd", ".zst"),
    "lz4": (b"\x04\x22\x4d\x18", ".lz4"),
    "xz": (b"\xfd7zXZ\x00", ".xz"),
}
"""How a file may be packed, with its first bytes and the end of its name."""

MOST_RATIO, RATIO_FROM = 100, 16 << 20
"""How many times its packed bytes a file may unpack to, and from how many unpacked bytes on. Logs reach 10 to 50."""

UNPACKED_AT_ONCE, UNPACKED_BY_ARROW = 4 << 20, 1 << 16
"""Bytes of the largest piece that is unpacked at once; Arrow gives nothing of a piece in which the file ends early."""

XZ_MEMORY = 80 << 20
"""Bytes that unpacking xz may take: xz -9 needs 65 MiB, and the head of a file may ask for 4 GiB."""

SEARCH_WINDOW = 1 << 14
"""Bytes that are read first to find a line break."""


def longest_line() -> int:
    """Return the bytes of the longest line that is read: the default, or what the environment variable says."""
    value = os.environ.get(LONGEST_LINE_VARIABLE, "")
    return int(value) if value.isascii() and value.isdecimal() and int(value) else LONGEST_LINE


def follows_links() -> bool:
    """Return whether links are followed that lead out of the directory that the user named (--follow-links)."""
    return os.environ.get(FOLLOW_LINKS_VARIABLE) == "1"


def read_regular(path: Path, most: int) -> bytes:
    """Read a whole file of at most so many bytes. Raises OSError for a larger one, a pipe or a device."""
    # O_NONBLOCK: opening a FIFO would wait for its writer. fstat is of the file that was opened, which may have been put in
    # the place of another after a look at its name.
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:  # noqa: PTH123  a descriptor
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(0, "a pipe, a device or another thing that is no file", str(path))
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(0, f"more than {most:,} bytes", str(path))
    return content


def size_on_disk(status: os.stat_result) -> int:
    """Return the bytes of a file without its holes, from its status."""
    # st_blocks counts blocks of 512 bytes (stat(2)), and does not exist on Windows.
    return min(status.st_size, getattr(status, "st_blocks", status.st_size) * 512)


def file_size(path: Path) -> int:
    """Return the bytes of a file without its holes; 0 if there is none any more: a log may be rotated away at any time."""
    try:
        return size_on_disk(path.stat())
    except OSError:
        return 0


def pieces_on_disk(file: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield the content of a file that was just opened, in pieces of at most `size` bytes, with its holes shortened.

    A sparse file of a few bytes on disk may have terabytes of NULs: a hole above the longest line is as long as a line that
    is just too long, which is what is reported of it.
    """
    descriptor, status = file.fileno(), os.fstat(file.fileno())
    # No holes, or none that can be found: read it as it is.
    if not hasattr(os, "SEEK_DATA") or not stat.S_ISREG(status.st_mode) or size_on_disk(status) == status.st_size:
        yield from iter(partial(file.read, size), b"")
        return
    at = 0
    while at < status.st_size:
        # The next stretch of data, from `begin` to `end`; before it is a hole.
        try:
            begin = os.lseek(descriptor, at, os.SEEK_DATA)
            end = os.lseek(descriptor, begin, os.SEEK_HOLE)
        except OSError as error:
            # ENXIO: no data follows. Any other error: the file system does not tell holes, and all of it is data.
            begin, end = (status.st_size if error.errno == errno.ENXIO else at), status.st_size
        hole = min(begin - at, longest_line() + 1)
        yield from (b"\0" * min(size, remaining) for remaining in range(hole, 0, -size))
        at = begin
        while at < end and (piece := os.pread(descriptor, min(size, end - at), at)):
            at += len(piece)
            yield piece
        # Nothing is there where data was: the file was cut meanwhile.
        if at < end:
            return


def has_long_line(path: Path) -> bool:
    """Return whether a file has a line that is too long; of most of it no more is read than a window with a line break."""
    longest, at = longest_line(), 0  # `at`: the beginning of a line
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        # What is left could still be a line that is too long.
        while size - at > longest:
            # The last line break within the length that a line may have: nearly always it is in the last bytes of it, so
            # these are read first, and all of it only if they have none.
            for window in (min(longest, SEARCH_WINDOW), longest):
                file.seek(at + longest + 1 - window)
                end = file.read(window).rfind(b"\n") + 1
                if end:
                    break
            if not end:
                return True
            at += longest + 1 - window + end
    return False


class UnpackingError(OSError):
    """Data that is not packed as it seems, or that unpacks to too much; what came before it was yielded."""


def packing_of(head: bytes) -> str | None:
    """Return how a file is packed that begins so; None if it is not."""
    return next((packing for packing, (magic, _) in PACKINGS.items() if head.startswith(magic)), None)


def without_packing(name: str) -> str:
    """Return the name of a file without the end that says how it is packed."""
    return next((name.removesuffix(end) for _, end in PACKINGS.values() if name.endswith(end)), name)


def is_named_packed(path: Path) -> bool:
    """Return whether the name of a file says that it is packed."""
    return without_packing(path.name) != path.name


def unpacked_as(packing: str, packed: Iterable[bytes]) -> Iterator[bytes]:
    """Unpack pieces of a packed file; yield at most UNPACKED_AT_ONCE bytes at a time. Raises UnpackingError."""
    if packing in ("gzip", "bzip2", "xz"):
        yield from unpacked(packed, packing)
        return
    # Long to import, and few logs are packed so.
    import pyarrow as pa  # noqa: PLC0415

    pieces, unpacked_size = _Pieces(packed), 0
    stream = pa.CompressedInputStream(pa.PythonFile(pieces, "r"), packing)
    while True:
        try:
            content = stream.read(UNPACKED_BY_ARROW)
        except (OSError, ValueError, MemoryError, pa.ArrowException):
            raise UnpackingError(0, "one that ends early or is damaged") from None
        if not content:
            return
        unpacked_size += len(content)
        if unpacked_size > RATIO_FROM and unpacked_size > MOST_RATIO * pieces.size_read:
            raise UnpackingError(0, f"one that unpacks to more than {MOST_RATIO} times its size")
        yield content


def unpacked_beginning(file: BinaryIO, most: int) -> bytes:
    """Return the beginning of an open file, unpacked; less than `most` bytes where the file is shorter, or damaged."""
    beginning = file.read(most)
    packing = packing_of(beginning)
    if packing is None:
        return beginning
    file.seek(0)
    content = b""
    with suppress(UnpackingError):
        for piece in unpacked_as(packing, iter(partial(file.read, UNPACKED_BY_ARROW), b"")):
            content += piece
            if len(content) >= most:
                break
    return content[:most]


class _Pieces(io.RawIOBase):
    """Pieces as a file; `size_read` is how many bytes of them were read."""

    def __init__(self, packed: Iterable[bytes]) -> None:
        """Begin before the first piece."""
        self._packed, self._left, self.size_read = iter(packed), b"", 0

    def readable(self) -> bool:
        """Return that it may be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Copy bytes into a buffer, as many as are at hand; return how many, 0 at the end."""
        self._left = self._left or next(self._packed, b"")
        content = self._left[: len(buffer)]
        self._left = self._left[len(content) :]
        buffer[: len(content)] = content
        self.size_read += len(content)
        return len(content)


def _decompressor_of(packing: str) -> tuple[Callable[[], Any], type[Exception]]:
    """Return what makes a decompressor of the standard library for gzip, bzip2 or xz, and the error that it raises."""
    if packing == "gzip":
        # wbits=31: with the header of gzip.
        return partial(zlib.decompressobj, wbits=31), zlib.error
    # Not every build of Python has these.
    try:
        if packing == "bzip2":
            import bz2  # noqa: PLC0415

            return bz2.BZ2Decompressor, OSError
        import lzma  # noqa: PLC0415
    except ImportError:
        raise UnpackingError(0, f"{packing}, which this build of Python cannot unpack") from None
    return partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, XZ_MEMORY), lzma.LZMAError


def unpacked(packed: Iterable[bytes], packing: str = "gzip") -> Iterator[bytes]:
    """Unpack pieces of a gzip, bzip2 or xz file, of one member or several; yield at most UNPACKED_AT_ONCE bytes at a time.

    Raises UnpackingError.
    """
    new_decompressor, damaged_error = _decompressor_of(packing)
    unpack = new_decompressor()
    packed_size = unpacked_size = 0
    for piece in packed:
        # Between members and behind the last one there may be NUL bytes: padding.
        raw = piece.lstrip(b"\0") if unpack.eof else piece
        packed_size += len(piece)
        # zlib's gives back what is beyond the bound of a call, the others keep it and need no input then.
        while raw or not (unpack.eof or getattr(unpack, "needs_input", True)):
            # The next member needs an object of its own.
            if unpack.eof:
                unpack = new_decompressor()
            try:
                content = unpack.decompress(raw, UNPACKED_AT_ONCE)
            except damaged_error:
                raise UnpackingError(0, "one that ends early or is damaged") from None
            unpacked_size += len(content)
            # What is left of the piece: after the end of a member, or beyond the bound of what is unpacked at once.
            raw = unpack.unused_data.lstrip(b"\0") if unpack.eof else getattr(unpack, "unconsumed_tail", b"")
            if unpacked_size > RATIO_FROM and unpacked_size > MOST_RATIO * (packed_size - len(raw)):
                raise UnpackingError(0, f"one that unpacks to more than {MOST_RATIO} times its size")
            yield content
    if not unpack.eof:
        raise UnpackingError(0, "one that ends early or is damaged")


def at_most(most: int, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the pieces. Raises ValueError as soon as they have more than `most` bytes together."""
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > most:
            raise ValueError(f"more than {most:,} bytes")
        yield piece


class LineBound:
    """Takes bytes in pieces that end anywhere; returns complete lines. A line that is too long becomes an empty one.

    `dropped` has the numbers of such lines, counted from 1; the caller clears it.
    """

    def __init__(self) -> None:
        """Begin before the first line."""
        self._longest = longest_line()
        # The unfinished line: its pieces, none if it is too long already, and its bytes so far.
        self._unfinished: list[bytes] = []
        self._unfinished_size = 0
        self._in_long_line = False
        self._lines = 0
        self.dropped: list[int] = []

    def feed(self, piece: bytes) -> bytes:
        """Take the next piece; return the lines that are complete now, with their line feeds."""
        end = piece.rfind(b"\n") + 1  # of the complete lines
        if not end:
            self._add_to_unfinished(piece)
            return b""
        # The first line is the rest of the unfinished one.
        first_end = piece.find(b"\n") + 1
        if self._in_long_line or self._unfinished_size + first_end - 1 > self._longest:
            self.dropped.append(self._lines + 1)
            # An empty line has its place, so that the others keep their numbers.
            content = b"\n" + self._bounded(piece[first_end:end], self._lines + 1)
        else:
            content = b"".join([*self._unfinished, self._bounded(piece[:end], self._lines)])
        self._unfinished, self._unfinished_size, self._in_long_line = [], 0, False
        self._lines += content.count(b"\n")
        if end < len(piece):
            self._add_to_unfinished(piece[end:])
        return content

    def end(self) -> bytes:
        """Return the unfinished last line, empty if it is too long or there is none."""
        line, too_long = b"".join(self._unfinished), self._in_long_line
        self._unfinished, self._unfinished_size, self._in_long_line = [], 0, False
        if too_long:
            self.dropped.append(self._lines + 1)
        return line

    def _add_to_unfinished(self, piece: bytes) -> None:
        """Keep a piece of the unfinished line; drop all of the line if it is too long by now."""
        self._unfinished_size += len(piece)
        if self._in_long_line or self._unfinished_size > self._longest:
            self._unfinished, self._in_long_line = [], True
        else:
            self._unfinished.append(piece)

    def _bounded(self, lines: bytes, lines_before: int) -> bytes:
        """Return complete lines with those emptied that are too long; `lines_before` them there were so many lines."""
        parts, at, begin = [], 0, 0  # `at`: the beginning of a line; `begin`: of what is not in `parts` yet
        # A line break is looked for a whole length ahead: most lines are stepped over without a look.
        while len(lines) - at > self._longest:
            last = lines.rfind(b"\n", at, at + self._longest + 1)
            # The line at `at` is too long: leave its text out, and go on at its line feed.
            if last < 0:
                parts.append(lines[begin:at])
                self.dropped.append(lines_before + lines.count(b"\n", 0, at) + 1)
                begin = at = lines.find(b"\n", at)
            at = last + 1 if last >= 0 else at + 1
        return b"".join([*parts, lines[begin:]]) if parts else lines

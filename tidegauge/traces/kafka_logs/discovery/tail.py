"""Follow the logs below a directory as they are written: what is new in each, in the order in which it was written."""

import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from io import FileIO
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from tidegauge.traces.kafka_logs.discovery.files import broker_logs_among, log_groups, stem
from tidegauge.traces.kafka_logs.parsing.layout import Layout
from tidegauge.traces.kafka_logs.parsing.lines import SEE, UTF_16, Line, Reader, everything, is_binary, layout_of, pieces
from tidegauge.traces.problems import Problem, shown

# A log that grows: `feed` it whatever has been written, in any pieces, and it gives the lines.
#
# Rules of this file
#
# 1. The lines are those that `read_lines` reads of the same bytes. A line waits for its end; one that is none by itself
#    waits for the next, which may go on with its message.
# 2. How a log is written is found by its first ENOUGH lines: of fewer the thread cannot be told from the message. They wait,
#    until the end if need be. The layout then stays, also in the files that take its place.
# 3. What a container wrote (docker, journald) is put together from parts that stand anywhere: that is not followed, nor is
#    UTF-16, nor what is binary. A Problem says so, once.


ENOUGH = 50
"""Lines by which a layout is known."""
LOOKED_AT = 1000
"""Lines in which a layout must show."""


class GrowingLog:
    """What has been read of one log called `label`."""

    def __init__(self, label: str, given: str | None = None) -> None:
        self.label = label
        self.layout: Layout | None = None
        self.problems: list[Problem] = []
        """New ones; whoever takes them clears it."""
        self.refused = False
        """Whether nothing of it can be read."""
        self._given = given
        self._left = b""
        self._before = 0
        self._reader: Reader | None = None

    def feed(self, data: bytes) -> list[Line]:
        """Read on."""
        content = self._left + data
        end = content.rfind(b"\n") + 1
        self._left = content[end:]
        return self._read(content[:end], ended=False)

    def next_file(self, label: str) -> list[Line]:
        """What follows is another file of this log, from its beginning."""
        lines = self.end()
        self.label, self._before, self._reader = label, 0, None
        return lines

    def end(self) -> list[Line]:
        """Nothing follows: a line that waits is all there is of it."""
        content, self._left = self._left, b""
        return self._read(content, ended=True)

    def _read(self, content: bytes, *, ended: bool) -> list[Line]:
        if not content or self.refused or not self._known(content, ended=ended) or self.layout is None:
            return []
        if self._reader is None:
            self._reader = Reader(self.label, self.layout, self.problems, everything)
        behind = None
        if not ended:
            last = content.rfind(b"\n", 0, len(content) - 1) + 1
            text = content[last:-1].decode("utf-8", "replace")
            if self.layout.entry(text) is None:
                content, self._left, behind = content[:last], content[last:] + self._left, text
        if content:
            self._before += self._reader.block(content, self._before, behind)
        lines, self._reader.lines = self._reader.lines, []
        return lines

    def _known(self, content: bytes, *, ended: bool) -> bool:
        """Whether the layout is known by now."""
        if self.layout is not None:
            return True
        if content.startswith(UTF_16) or is_binary(content):
            self._refuse("a text log in UTF-8", "another encoding, or a binary file")
            return False
        texts = content.decode("utf-8-sig", "replace").split("\n")
        if len(texts) <= ENOUGH and not ended and self._given is None:
            self._left = content + self._left
            return False
        layout = layout_of(texts, self._given)
        if layout is not None and layout.wrappers:
            self._refuse("a log as Kafka writes it", f"one that others wrote: {layout.name}")
            return False
        if layout is None and (ended or len(texts) > LOOKED_AT):
            self._refuse(SEE, shown(next((text for text in texts if text.strip("\0 \r")), "")))
            return False
        if layout is None:
            self._left = content + self._left
            return False
        self.layout = layout
        return True

    def _refuse(self, expected: str, seen: str) -> None:
        self.refused = True
        do = "it is not followed; judge it without --follow, or name its layout with --layout"
        self.problems.append(Problem(self.label, 1, expected, seen, do, lost=1))


# The logs below a directory as they are written: what is new in each, in the order in which it was written.
#
# Rules of this file
#
# 1. A log is its files one behind the other: rotated ones by the time of their first line, the one that is written to last.
# A file is known by its inode, whatever it is called by then, and is read to its end before the next one is begun.
# 2. A file that begins as one does that was read (`gzip` behind a rotation, a copy) is that one: it is not read again.
# 3. A log that was truncated (logrotate's `copytruncate`) is read from its beginning, when what was still to be read has
# been read from the copy that begins as it did. If there is none, a Problem says that lines may be lost.


PIECE = 1 << 18
"""Bytes that are read of one log before another may be behind it."""
HEAD = 512
"""Bytes at most by which the beginning of a file is known."""
HEADS = 1000
"""Files of a log whose beginnings are remembered."""
BEGINS = 1 << 16
"""Bytes in which its first time must show."""

Log = tuple[Path, str]
"""The folder of a log, and its name without what rotations add."""


class Piece(NamedTuple):
    """What is new in a log: of the file called `label`, `first` where that begins."""

    log: Log
    group: Path
    path: Path
    label: str
    data: bytes
    first: bool


@dataclass(eq=False)
class _File:
    path: Path
    label: str
    group: Path
    head: bytes
    opened: FileIO | None
    unpacked: Iterator[bytes] | None
    begun: bool = False
    ended: bool = False
    read: int = 0


@dataclass
class _Log:
    files: deque[_File] = field(default_factory=deque)
    heads: dict[bytes, None] = field(default_factory=dict)

    def know(self, file: "_File") -> None:
        """By its first line, as soon as that is whole."""
        if not file.head and (begin := _first_line(file)):
            file.head = _head(begin)
        if file.head:
            self.heads[file.head] = None
        if len(self.heads) > HEADS:
            del self.heads[next(iter(self.heads))]


class LogTails:
    """What has been read of the logs at `root`: a directory, or one log."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.problems: list[Problem] = []
        """New ones; whoever takes them clears it."""
        self._logs: dict[Log, _Log] = {}
        self._known: dict[tuple[int, int], bytes] = {}

    def look(self) -> list[Log]:
        """The logs that have more than was read."""
        for log in self._logs.values():
            for file in (*log.files,):
                self._turn(log, file)
        self._find()
        return [key for key, log in self._logs.items() if any(_more(file) for file in log.files)]

    def take(self, key: Log) -> Piece | None:
        """What comes next in a log."""
        log = self._logs[key]
        while log.files:
            file = log.files[0]
            log.know(file)
            data = _read(file) if file.head else b""
            if data:
                first, file.begun, file.read = not file.begun, True, file.read + len(data)
                return Piece(key, file.group, file.path, file.label, data, first)
            file.ended = file.opened is None
            if len(log.files) == 1:
                return None
            _close(log.files.popleft())
        return None

    def close(self) -> None:
        """Nothing is read any more."""
        for log in self._logs.values():
            for file in log.files:
                _close(file)

    def _find(self) -> None:
        """Files that were not there before."""
        found: dict[Log, list[tuple[bool, int, _File]]] = {}
        opened = {_ident(file) for log in self._logs.values() for file in log.files}
        every = set(opened)
        current: dict[Log, tuple[int, int]] = {}
        for group, paths in self._groups():
            taken = broker_logs_among(paths)
            for path in taken:
                with suppress(FileNotFoundError):
                    status = path.stat()
                    ident = status.st_dev, status.st_ino
                    every.add(ident)
                    name = stem(path, taken)
                    key = path.parent, name
                    if path.name == f"{name}.log":
                        current[key] = ident
                    if ident in self._known and (
                        ident in opened or path.suffix == ".gz" or self._known[ident] == _begin(path)
                    ):
                        continue
                    file, time = self._opened(group, path)
                    if file is None:
                        continue
                    self._known[ident] = file.head
                    log = self._logs.setdefault(key, _Log())
                    if file.head in log.heads:
                        _close(file)
                        continue
                    log.know(file)
                    found.setdefault(key, []).append((path.name == f"{name}.log", time, file))
        for key, files in found.items():
            log = self._logs[key]
            log.files.extend(file for _, _, file in sorted(files, key=lambda one: one[:2]))
            log.files = deque(sorted(log.files, key=lambda file: _ident(file) == current.get(key)))
        self._known = {ident: head for ident, head in self._known.items() if ident in every}

    def _groups(self) -> list[tuple[Path, list[Path]]]:
        if self.root.is_file():
            return [(self.root.parent, [self.root])]
        with suppress(FileNotFoundError):  # renamed while they are listed: the next look finds them
            return log_groups(self.root)
        return []

    def _opened(self, group: Path, path: Path) -> tuple[_File | None, int]:
        """The file, and the time of its first line; None as long as it has no whole line."""
        packed = path.suffix == ".gz"
        unpacked = pieces(path, self._label(group, path), self.problems) if packed else None
        opened = None if packed else path.open("rb", buffering=0)
        begin = next(pieces(path, "", []), b"")[:BEGINS] if opened is None else os.pread(opened.fileno(), BEGINS, 0)
        text = begin.lstrip(b"\0")
        if b"\n" not in text and (opened is not None or not text):
            if opened is not None:
                opened.close()
            return None, 0
        layout = layout_of(text.decode("utf-8", "replace").split("\n"))
        entries = () if layout is None else (layout.entry(one) for one in text.decode("utf-8", "replace").split("\n"))
        time = next((entry[0] for entry in entries if entry is not None), 0)
        return _File(path, self._label(group, path), group, _head(text), opened, unpacked), time

    def _label(self, group: Path, path: Path) -> str:
        folder = "" if group == self.root or self.root.is_file() else f"{group.name}/"
        return f"{folder}{path.relative_to(group).as_posix().removesuffix('.gz')}"

    def _turn(self, log: _Log, file: _File) -> None:
        """A file that was truncated begins again, behind what a copy of it has."""
        log.know(file)
        if file.opened is None or not file.begun:
            return
        number = file.opened.fileno()
        now = os.pread(number, BEGINS, 0)
        if os.fstat(number).st_size >= file.read and (now[:1] == b"\0" or _head(now) == file.head):
            return
        copy = self._copy(file)
        if copy is None:
            do = "lines may be lost that were written just before; rotate by renaming"
            self.problems.append(Problem(file.label, None, "a log that grows", "one that was truncated", do, lost=1))
        else:
            log.files.insert(log.files.index(file), copy)
        file.head, file.begun, file.read = b"", False, file.opened.seek(0)
        log.know(file)

    def _copy(self, file: _File) -> _File | None:
        """The copy that begins as a file did, read as far as that was."""
        for group, paths in self._groups():
            for path in paths if group == file.group else ():
                if path == file.path or path.parent != file.path.parent:
                    continue
                copy, _ = self._opened(group, path)
                if copy is not None and copy.head == file.head and _skip(copy, file.read):
                    copy.begun = True
                    return copy
                if copy is not None:
                    _close(copy)
        return None


def _head(text: bytes) -> bytes:
    return sha256(text[: text.find(b"\n") + 1 or HEAD][:HEAD]).digest()


def _begin(path: Path) -> bytes:
    with path.open("rb") as file:
        return _head(file.read(BEGINS).lstrip(b"\0"))


def _first_line(file: _File) -> bytes:
    """The beginning of a file; nothing as long as its first line goes on."""
    begin = b"" if file.opened is None else os.pread(file.opened.fileno(), BEGINS, 0)
    return begin if b"\n" in begin else b""


def _ident(file: _File) -> tuple[int, int]:
    status = file.path.stat() if file.opened is None and file.path.exists() else None
    status = os.fstat(file.opened.fileno()) if file.opened is not None else status
    return (0, 0) if status is None else (status.st_dev, status.st_ino)


def _more(file: _File) -> bool:
    if file.opened is None:
        return not file.ended
    return os.fstat(file.opened.fileno()).st_size > file.read and (file.head != b"" or _first_line(file) != b"")


def _read(file: _File) -> bytes:
    if file.opened is not None:
        return file.opened.read(PIECE) or b""
    return next(file.unpacked, b"") if file.unpacked is not None else b""


def _skip(file: _File, count: int) -> bool:
    """Whether a file is as long as that, and is now read from there."""
    if file.opened is not None:
        file.read = file.opened.seek(count)
        return os.fstat(file.opened.fileno()).st_size >= count
    left = b""
    while file.unpacked is not None and file.read < count:
        piece = next(file.unpacked, b"")
        if not piece:
            return False
        file.read += len(piece)
        left = piece[len(piece) - (file.read - count) :] if file.read > count else b""
    file.unpacked = chain([left], file.unpacked or ())
    return True


def _close(file: _File) -> None:
    if file.opened is not None:
        file.opened.close()

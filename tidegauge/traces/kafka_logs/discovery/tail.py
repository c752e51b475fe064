"""Follow logs while brokers write them, as `tail -F` does: files become logs (LogTails), bytes become lines (GrowingLog).

The caller asks LogTails which logs have unread bytes (`look`), takes a piece of one (`take`), and feeds it to the GrowingLog
of that log, which returns the lines that are complete. A *log* is a sequence of files: rotated ones, and the current one. A
*group* is the folder that makes logs those of one node. `label` is what reports call a file.
"""

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
from tidegauge.traces.kafka_logs.parsing.lines import (
    SEE,
    UTF_16,
    Line,
    LineReader,
    everything,
    is_binary,
    layout_of,
    note_long_lines,
    pieces,
)
from tidegauge.traces.problems import Problem, shown
from tidegauge.util.input_limits import LineBound, is_named_packed, without_packing

# The lines of a growing log.
#
# 1. The lines are those that `read_lines` reads of the same bytes. A line waits for its end; text that is no line by itself
#    waits for the next one, because it may continue the message before it.
# 2. The layout is found from the first ENOUGH lines: with fewer, a thread cannot be distinguished from the beginning of a
#    message. They wait, if need be until the end. The layout then holds for the whole log, also after a rotation.
# 3. The parts of one line of a container's log (docker, journald) may be far apart: such logs are not followed, nor are
#    UTF-16 and binary files. One Problem reports it.


ENOUGH = 50
"""Lines by which a layout is known."""
LOOKED_AT = 1000
"""Lines in which a layout must show."""
MOST_LOOKED_AT = 16 << 20
"""Bytes in which it must show."""


class GrowingLog:
    """The lines of one log called `label`, which is fed in pieces; `pattern` is that of --layout."""

    def __init__(self, label: str, pattern: str | None = None) -> None:
        """Begin with nothing read; the layout is found in the first lines."""
        self.label = label
        self.layout: Layout | None = None
        self.problems: list[Problem] = []
        """New problems; the caller clears the list."""
        self.refused = False
        """Whether nothing of it can be read."""
        self._pattern = pattern
        self._waiting = b""
        """Bytes that were fed, and wait for more."""
        self._bound = LineBound()
        self._before = 0
        """Lines of the current file that were read."""
        self._reader: LineReader | None = None

    def feed(self, data: bytes) -> list[Line]:
        """Read the next bytes; return the lines that are complete."""
        content = self._waiting + self._bound.feed(data)
        self._waiting = b""
        note_long_lines(self._bound, self.label, self.problems)
        return self._read(content, ended=False)

    def next_file(self, label: str) -> list[Line]:
        """Begin the next file of this log, called `label`; return the lines that waited in the one before: it has ended."""
        lines = self.end()
        self.label, self._before, self._reader, self._bound = label, 0, None, LineBound()
        return lines

    def end(self) -> list[Line]:
        """End the log; return the lines that waited for more."""
        content, self._waiting = self._waiting + self._bound.end(), b""
        note_long_lines(self._bound, self.label, self.problems)
        return self._read(content, ended=True)

    def _read(self, content: bytes, *, ended: bool) -> list[Line]:
        """Return the lines in `content`; `ended`: no more bytes follow, so that nothing has to wait for a next line."""
        if not content or self.refused or not self._has_layout(content, ended=ended) or self.layout is None:
            return []
        if self._reader is None:
            self._reader = LineReader(self.label, self.layout, self.problems, everything)
        # A text that is no entry may be the first half of a torn line or continue the message before it: only the next line
        # shows which, so it waits. `behind` shows the reader that the last line it gets is not the end.
        behind = None
        if not ended:
            last = content.rfind(b"\n", 0, len(content) - 1) + 1
            text = content[last:-1].decode("utf-8", "replace")
            if self.layout.entry(text) is None:
                content, self._waiting, behind = content[:last], content[last:], text
        if content:
            self._before += self._reader.block(content, self._before, behind)
        lines, self._reader.lines = self._reader.lines, []
        return lines

    def _has_layout(self, content: bytes, *, ended: bool) -> bool:
        """Find the layout if it is not known yet; return whether it is known now. If not, the bytes wait, or are refused."""
        if self.layout is not None:
            return True
        # A piece may end in the middle of a UTF-16 character: such files are read as a whole or not at all.
        if content.startswith(UTF_16) or is_binary(content):
            self._refuse("a text log in UTF-8", "another encoding, or a binary file")
            return False
        texts = content.decode("utf-8-sig", "replace").split("\n")
        if len(texts) <= ENOUGH and not ended and self._pattern is None:
            self._waiting = content
            return False
        layout = layout_of(texts, self._pattern)
        if layout is not None and layout.wrappers:
            self._refuse("a log as Kafka writes it", f"one that others wrote: {layout.name}")
            return False
        # A log may begin with a banner or a dump of the configuration, so it gets LOOKED_AT lines to show a layout.
        if layout is None and (ended or len(texts) > LOOKED_AT or len(content) > MOST_LOOKED_AT):
            self._refuse(SEE, shown(next((text for text in texts if text.strip("\0 \r")), "")))
            return False
        if layout is None:
            self._waiting = content
            return False
        self.layout = layout
        return True

    def _refuse(self, expected: str, seen: str) -> None:
        """Follow the file no further, with a problem that says why."""
        self.refused = True
        do = "it is not followed; judge it without --follow, or name its layout with --layout"
        self.problems.append(Problem(self.label, 1, expected, seen, do, lost=1))


# The files below a directory, while they grow and are rotated.
#
# 1. A log is a sequence of files: rotated ones by the time of their first line, then the current one. A file is identified
#    by its inode, because a rotation renames it, and is read to its end before the next one.
# 2. A file that begins like one that was read (a rotated file after `gzip`, a copy) is that file: it is not read again.
# 3. A log that was truncated (logrotate's `copytruncate`) is read from its beginning, after the rest of its old content was
#    read from the copy. If there is no copy, a Problem reports that lines may be lost.


PIECE = 1 << 18
"""Bytes that are read of one log before the next log has its turn."""
HEAD = 512
"""Bytes at most by which the beginning of a file is known."""
HEADS = 1000
"""Files of a log whose beginnings are remembered."""
BEGINS = 1 << 16
"""Bytes at the beginning of a file in which its first time must show."""

LogFile = tuple[Path, str]
"""The folder of a log, and its name without what rotations add."""


class Piece(NamedTuple):
    """New bytes of a log, from the file called `label`; `first` if they are the first ones of that file."""

    log: LogFile
    group: Path
    path: Path
    label: str
    data: bytes
    first: bool


@dataclass(eq=False)
class _File:
    """A file of a log: `opened`, or `unpacked` if it is packed. `head` is the hash of its first line, empty without one.

    `begun`: a piece of it was returned; `ended`: a packed one was read to its end; `read` are the bytes that were read.
    """

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
    """The files of a log that are not read to their end, in order, and the heads of all of its files, the oldest first."""

    files: deque[_File] = field(default_factory=deque)
    heads: dict[bytes, None] = field(default_factory=dict)

    def remember(self, file: "_File") -> None:
        """Remember a file by its first line, as soon as that is complete."""
        if not file.head and (begin := _with_first_line(file)):
            file.head = _head(begin)
        if file.head:
            self.heads[file.head] = None
        if len(self.heads) > HEADS:
            del self.heads[next(iter(self.heads))]


class LogTails:
    """The logs at `root`, a directory or one log, and how far each was read."""

    def __init__(self, root: Path) -> None:
        """Begin with no file opened."""
        self.root = root
        self.problems: list[Problem] = []
        """New problems; the caller clears the list."""
        self._logs: dict[LogFile, _Log] = {}
        self._heads: dict[tuple[int, int], bytes] = {}
        """By device and inode, the head of each file that is there."""

    def look(self) -> list[LogFile]:
        """Look for new files; return the logs that have unread bytes."""
        for log in self._logs.values():
            # A copy of the list: _restart_if_truncated may insert a file before this one.
            for file in (*log.files,):
                self._restart_if_truncated(log, file)
        self._find()
        return [key for key, log in self._logs.items() if any(_has_more(file) for file in log.files)]

    def take(self, key: LogFile) -> Piece | None:
        """Read the next piece of a log; None if there is nothing new."""
        log = self._logs[key]
        while log.files:
            file = log.files[0]
            log.remember(file)
            # Without a head it could not be recognised after a rotation.
            data = _read(file) if file.head else b""
            if data:
                first, file.begun, file.read = not file.begun, True, file.read + len(data)
                return Piece(key, file.group, file.path, file.label, data, first)
            file.ended = file.opened is None
            # The last file is the current one, which may grow; of one that was rotated nothing more comes.
            if len(log.files) == 1:
                return None
            _close(log.files.popleft())
        return None

    def close(self) -> None:
        """Close all files."""
        for log in self._logs.values():
            for file in log.files:
                _close(file)

    def _find(self) -> None:
        """Open the files that were not there at the last look, and put each into its log, in order."""
        # By log, each new file, after whether it is the current one and the time of its first line.
        new_files: dict[LogFile, list[tuple[bool, int, _File]]] = {}
        # The identities (device, inode) of files that are open, of all that are still there, and of each log's current file.
        opened = {_identity(file) for log in self._logs.values() for file in log.files}
        existing = set(opened)
        current: dict[LogFile, tuple[int, int]] = {}
        for group, paths in self._groups():
            paths_read = broker_logs_among(paths)
            for path in paths_read:
                with suppress(FileNotFoundError):
                    status = path.stat()
                    identity = status.st_dev, status.st_ino
                    existing.add(identity)
                    name = stem(path, paths_read)
                    key = path.parent, name
                    if path.name == f"{name}.log":
                        current[key] = identity
                    # Inodes are used again: a file with a known inode is the same one only if it begins the same.
                    if identity in self._heads and (
                        identity in opened or is_named_packed(path) or self._heads[identity] == _head_of(path)
                    ):
                        continue
                    file, time = self._opened(group, path)
                    if file is None:
                        continue
                    self._heads[identity] = file.head
                    log = self._logs.setdefault(key, _Log())
                    # Another inode with a head that was read: `gzip` wrote a new file of the same lines.
                    if file.head in log.heads:
                        _close(file)
                        continue
                    log.remember(file)
                    new_files.setdefault(key, []).append((path.name == f"{name}.log", time, file))
        for key, files in new_files.items():
            log = self._logs[key]
            log.files.extend(file for _, _, file in sorted(files, key=lambda entry: entry[:2]))
            # The current file comes last although its first line may be older than that of a file that was found late.
            log.files = deque(sorted(log.files, key=lambda file: _identity(file) == current.get(key)))
        self._heads = {identity: head for identity, head in self._heads.items() if identity in existing}

    def _groups(self) -> list[tuple[Path, list[Path]]]:
        """Return the files by group, as they are now: each look lists them anew."""
        if self.root.is_file():
            return [(self.root.parent, [self.root])]
        with suppress(FileNotFoundError):  # renamed while they are listed: the next look finds them
            return log_groups(self.root)
        return []

    def _opened(self, group: Path, path: Path) -> tuple[_File | None, int]:
        """Open a file; return it with the time of its first line, or None while it has no complete line."""
        packed = is_named_packed(path)
        unpacked = pieces(path, self._label(group, path), self.problems) if packed else None
        opened = None if packed else path.open("rb", buffering=0)
        begin = next(pieces(path, "", []), b"")[:BEGINS] if opened is None else os.pread(opened.fileno(), BEGINS, 0)
        text = begin.lstrip(b"\0")
        # A packed file is complete when it appears, so it needs no line break at its end.
        if b"\n" not in text and (opened is not None or not text):
            if opened is not None:
                opened.close()
            return None, 0
        lines = text.decode("utf-8", "replace").split("\n")
        layout = layout_of(lines)
        entries = () if layout is None else (layout.entry(line) for line in lines)
        time = next((entry[0] for entry in entries if entry is not None), 0)
        return _File(path, self._label(group, path), group, _head(text), opened, unpacked), time

    def _label(self, group: Path, path: Path) -> str:
        """Return what reports call a file: the group's folder, unless that is the root, and the path in it."""
        folder = "" if group == self.root or self.root.is_file() else f"{group.name}/"
        return f"{folder}{without_packing(path.relative_to(group).as_posix())}"

    def _restart_if_truncated(self, log: _Log, file: _File) -> None:
        """Begin a file again if it was truncated, after the rest of its old content in a copy (rule 3)."""
        log.remember(file)
        if file.opened is None or not file.begun:
            return
        descriptor = file.opened.fileno()
        begin = os.pread(descriptor, BEGINS, 0)
        # After `copytruncate` a writer without O_APPEND goes on at its old offset: the file begins with a hole of NUL bytes,
        # and what is new comes after what was read all the same.
        if os.fstat(descriptor).st_size >= file.read and (begin[:1] == b"\0" or _head(begin) == file.head):
            return
        copy = self._copy(file)
        if copy is None:
            do = "lines may be lost that were written just before; rotate by renaming"
            self.problems.append(Problem(file.label, None, "a log that grows", "one that was truncated", do, lost=1))
        else:
            log.files.insert(log.files.index(file), copy)
        file.head, file.begun, file.read = b"", False, file.opened.seek(0)
        log.remember(file)

    def _copy(self, file: _File) -> _File | None:
        """Open the copy that begins as a truncated file did, at the place up to which that was read; None without one."""
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
    """Return the hash of the first line of a text, of HEAD bytes at most: by it a file is known."""
    return sha256(text[: text.find(b"\n") + 1 or HEAD][:HEAD]).digest()


def _head_of(path: Path) -> bytes:
    """Return the head of a file that is not opened."""
    with path.open("rb") as file:
        return _head(file.read(BEGINS).lstrip(b"\0"))


def _with_first_line(file: _File) -> bytes:
    """Return the beginning of an opened file; nothing while its first line is incomplete."""
    begin = b"" if file.opened is None else os.pread(file.opened.fileno(), BEGINS, 0)
    return begin if b"\n" in begin else b""


def _identity(file: _File) -> tuple[int, int]:
    """Return device and inode of a file; (0, 0) if it is packed and gone.

    Those of an opened file stay when it is renamed or deleted; a packed one is looked up by its path.
    """
    status = file.path.stat() if file.opened is None and file.path.exists() else None
    status = os.fstat(file.opened.fileno()) if file.opened is not None else status
    return (0, 0) if status is None else (status.st_dev, status.st_ino)


def _has_more(file: _File) -> bool:
    """Return whether a file has bytes that were not read, and its first line is complete."""
    if file.opened is None:
        return not file.ended
    return os.fstat(file.opened.fileno()).st_size > file.read and (file.head != b"" or _with_first_line(file) != b"")


def _read(file: _File) -> bytes:
    """Read the next bytes of a file; nothing at its end."""
    if file.opened is not None:
        return file.opened.read(PIECE) or b""
    return next(file.unpacked, b"") if file.unpacked is not None else b""


def _skip(file: _File, count: int) -> bool:
    """Go to byte `count` of a file, plain or packed; return False if it is shorter."""
    if file.opened is not None:
        file.read = file.opened.seek(count)
        return os.fstat(file.opened.fileno()).st_size >= count
    # What of the last piece lies behind byte `count`: it is put back.
    unread = b""
    while file.unpacked is not None and file.read < count:
        piece = next(file.unpacked, b"")
        if not piece:
            return False
        file.read += len(piece)
        unread = piece[len(piece) - (file.read - count) :] if file.read > count else b""
    file.unpacked = chain([unread], file.unpacked or ())
    file.read = min(file.read, count)
    return True


def _close(file: _File) -> None:
    """Close a file that is opened; one that is unpacked closes itself."""
    if file.opened is not None:
        file.opened.close()

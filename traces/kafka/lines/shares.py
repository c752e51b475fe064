"""Logs taken apart into shares of their partitions, on disk: each file is read once, each share from lines of its own.

Rules of this file

1. What a share reads is what `Selection.line` takes of the logs, but for two things that keep it from growing with the
   partitions of others. Sessions that ask for none of its partitions only count their requests (counted.py). And the
   first and last lines of every process are in every share, without their text: they say from when to when it was heard.
2. For what a session asks, any request of it may say, in any file. One may ask for anything whose first request no log has,
   or that names a topic by an id that nobody explains.
3. A file that was not taken apart is read as it lies: one with the lines of several writers (docker compose, journald).
"""

import marshal
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from sys import intern
from typing import Any, NamedTuple

from tidegauge.traces.kafka.lines.counted import Chains
from tidegauge.traces.kafka.lines.lines import Line, LogFile, read_lines
from tidegauge.traces.kafka.lines.requests import is_request
from tidegauge.traces.kafka.lines.selection import Parts, Request, Selection

AT_ONCE = 500
"""Lines of a share that are written at once."""
_ALL, _FILE, _KNOWN = "all", "file", "known"
_BEGINS = "Registered signal handlers"


@dataclass
class Known:
    """What files told of all shares: names of topics, which loggers were heard (by file), for which shares sessions ask.

    `opened` are the sessions whose first request was seen, `anything` those that ask for nobody knows what.
    """

    names: dict[str, str] = field(default_factory=dict)
    heard: dict[str, dict[int | None, set[str]]] = field(default_factory=dict)
    asks: dict[int, set[int]] = field(default_factory=dict)
    opened: set[int] = field(default_factory=set)
    anything: set[int] = field(default_factory=set)

    def add(self, other: "Known") -> None:
        """What another file told."""
        self.names |= other.names
        self.heard |= other.heard
        self.opened |= other.opened
        self.anything |= other.anything
        for session, shares in other.asks.items():
            self.asks.setdefault(session, set()).update(shares)

    def asks_for(self, share: int, session: int) -> bool:
        """Whether a session may ask for partitions of a share."""
        sure = session in self.opened and session not in self.anything
        return not sure or share in self.asks.get(session, ())


class TakeApart(NamedTuple):
    """Takes one file apart; goes to other processes."""

    selection: Selection
    layout: str | None

    def __call__(self, path: Path) -> Known:
        """What it told."""
        place = _place(self.selection, path)
        place.mkdir()
        writer = _Writer(place, replace(self.selection, heard={}))
        file = read_lines(path, place.name, self.layout, writer.take)
        writer.end()
        if not file.sources:
            (place / _FILE).write_bytes(pickle.dumps(file))
        return writer.known


def take_apart(logs: Sequence[Path], selection: Selection, layout: str | None, over: Callable[..., Iterator[Known]]) -> None:
    """Put the logs share by share into the folder `selection.apart`; `over` is a map, over processes or not."""
    known = Known()
    for with_requests in (False, True):  # topics are named in other lines than requests, which name them by id
        some = [path for path in logs if ("request" in path.name) is with_requests]
        for one in over(TakeApart(replace(selection, names=dict(known.names)), layout), some):
            known.add(one)
    (Path(selection.apart) / _KNOWN).write_bytes(pickle.dumps(known))


def read_log(path: Path, label: str, layout: str | None, selection: Selection | None) -> LogFile:
    """A log as far as it is read: as it lies, or from what it was taken apart into."""
    if selection is None:
        return read_lines(path, label, layout)
    place = _place(selection, path)
    if not selection.apart or not (place / _FILE).exists():
        return read_lines(path, label, layout, selection.line)
    known = _known(selection.apart)
    selection.names.update(known.names)
    selection.heard[label] = known.heard.get(place.name, {})
    share = selection.share[0]
    lines = [_line(label, row) for row in _rows(place / str(share))]
    lines += _common(place, label, share, known)
    lines.sort(key=lambda line: line.number)
    file: LogFile = pickle.loads((place / _FILE).read_bytes())
    return file._replace(
        label=label,
        lines=lines,
        problems=[replace(problem, path=label) for problem in file.problems],
    )


class _Writer:
    """The lines of one file, on their way to the shares."""

    def __init__(self, place: Path, selection: Selection) -> None:
        self.place, self.selection = place, selection
        self.known = Known(selection.names, selection.heard)
        self._asked: dict[tuple[str, ...], set[int]] = {}
        self._waiting: dict[str, list[tuple[Any, ...]]] = {}
        self._last: tuple[Line, Parts] | None = None
        self._edges = 0

    def take(self, line: Line) -> None:
        """One line; none is kept here."""
        parts = self.selection.parts(line)
        if not parts.named and parts.rest is None:
            return
        if not is_request(line):
            first = self._last is None
            if line.message.startswith(_BEGINS):
                self._edge()
            self._last = (line, parts)
            if first:
                self._edge()
        if parts.request is not None:
            self._asks(parts.request, set(parts.named), parts.unnamed)
        for share, own in parts.named.items():
            self._put(str(share), _row(own))
        if parts.rest is not None:
            request = None if parts.request is None else tuple(parts.request)
            self._put(_ALL, (_row(parts.rest), tuple(parts.named), request))

    def end(self) -> None:
        """The file ends."""
        self._edge()
        for name in self._waiting:
            self._write(name)

    def _edge(self) -> None:
        """The last line so far is one that every share has, without its text where that is another's."""
        if self._last is not None and self._last[1].rest is None and self._last[0].number > self._edges:
            line, parts = self._last
            self._edges = line.number
            self._put(_ALL, ((line.number, line.time, "", "", "", 0), tuple(parts.named), None))

    def _asks(self, request: Request, shares: set[int], unnamed: bool) -> None:
        """What a request says of its session. Whoever opens one asks in the first request for all that it will stand for."""
        if request.epoch <= 0:
            self._asked.setdefault(request.counter, set()).update(shares)
            opened = request.opens
        else:
            opened = request.session if request.epoch == 1 and request.counter in self._asked else 0
            self.known.asks.setdefault(request.session, set()).update(shares)
            shares = self._asked.get(request.counter, set())
        if unnamed:
            self.known.anything |= {request.session, opened}
        if opened:
            self.known.opened.add(opened)
            self.known.asks.setdefault(opened, set()).update(shares)

    def _put(self, name: str, row: tuple[Any, ...]) -> None:
        waiting = self._waiting.setdefault(name, [])
        waiting.append(row)
        if len(waiting) == AT_ONCE:
            self._write(name)

    def _write(self, name: str) -> None:
        with (self.place / name).open("ab") as file:
            marshal.dump(self._waiting[name], file)
        self._waiting[name].clear()


def _row(line: Line) -> tuple[int, int, str, str, str, int]:
    return line.number, line.time, line.thread, line.message, line.logger, line.counted


def _line(label: str, row: tuple[int, int, str, str, str, int]) -> Line:
    number, time, thread, message, logger, counted = row
    return Line(label, number, time, intern(thread), message, intern(logger), counted)


def _rows(path: Path) -> Iterator[Any]:
    if not path.exists():
        return
    size = path.stat().st_size
    with path.open("rb") as file:
        while file.tell() < size:
            yield from marshal.load(file)


def _common(place: Path, label: str, share: int, known: Known) -> Iterator[Line]:
    """The lines for all shares, those of sessions that ask for nothing of this one counted."""
    chains = Chains()
    for row, its_own, request in _rows(place / _ALL):
        if request is None:
            if share not in its_own:
                yield _line(label, row)
            continue
        of = Request(*request)
        if of.epoch > 0 and not known.asks_for(share, of.session):
            yield from chains.add(_line(label, row), of)
            continue
        yield from chains.end(of.counter)
        if share not in its_own:
            yield _line(label, row)
    yield from chains.end_all()


def _place(selection: Selection, path: Path) -> Path:
    return Path(selection.apart) / sha256(str(path.absolute()).encode()).hexdigest()


@lru_cache(maxsize=1)
def _known(folder: str) -> Known:
    known: Known = pickle.loads((Path(folder) / _KNOWN).read_bytes())
    return known

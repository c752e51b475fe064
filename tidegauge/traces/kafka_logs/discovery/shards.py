"""Split logs into shards of their partitions, on disk: each file is read once, each shard from its own lines.

`split_logs` writes a folder for each log file, with a file of rows for each shard and one for all (`all`), and what the logs
showed together (LogFacts). `read_log` reads a log of one shard from there. A *row* is a line as a tuple, see `_row`.

Rules of this file

1. A shard has what `Selection.line` takes of the logs, except for two things, so that it does not grow with the partitions
   of others. Of sessions that ask for none of its partitions it has summaries only (SessionSummaries). And every shard has
   the first and last line of each process, without the text: for the times between which the process logged.
2. Any request of a session, in any file, may show what the session asks for. A session may ask for anything if no log has
   its first request, or if it has a topic id without a name.
3. A file with the lines of several writers or nodes (docker compose, a merged time line) is not split, and read as it is.
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

from tidegauge.traces.kafka_logs.discovery.selection import LineByShard, Selection, SessionRequest, SessionSummaries
from tidegauge.traces.kafka_logs.discovery.writers import own_id
from tidegauge.traces.kafka_logs.parsing.lines import Line, LogFile, read_lines
from tidegauge.traces.kafka_logs.parsing.request_log import is_request

AT_ONCE = 500
"""Lines of a shard that are written at once."""
_ALL, _FILE, _FACTS = "all", "file", "known"
"""Names of files in the folders: the rows for all shards, the LogFile without lines, and LogFacts."""
_PROCESS_BEGINS = "Registered signal handlers"


@dataclass
class LogFacts:
    """What files show to all shards: topic names by id, kinds of lines (by file), and for which shards sessions ask.

    `asks` has shards by session. `opened` are the sessions whose first request was read, `anything` those that may ask for
    any partition.
    """

    names: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, dict[int | None, set[str]]] = field(default_factory=dict)
    asks: dict[int, set[int]] = field(default_factory=dict)
    opened: set[int] = field(default_factory=set)
    anything: set[int] = field(default_factory=set)

    def add(self, other: "LogFacts") -> None:
        """Add what another file showed."""
        self.names |= other.names
        self.kinds |= other.kinds
        self.opened |= other.opened
        self.anything |= other.anything
        for session, shards in other.asks.items():
            self.asks.setdefault(session, set()).update(shards)

    def asks_for(self, shard: int, session: int) -> bool:
        """Return whether a session may ask for partitions of a shard (rule 2)."""
        # A session whose first request was not read may ask for anything: it counts for every shard.
        is_certain = session in self.opened and session not in self.anything
        return not is_certain or shard in self.asks.get(session, ())


class SplitLog(NamedTuple):
    """A function that splits one file; it can be sent to other processes."""

    selection: Selection
    layout: str | None

    def __call__(self, path: Path) -> LogFacts:
        """Write the lines of a file by shard to a folder of its own; return what it showed to all shards."""
        folder = _shard_folder(self.selection, path)
        folder.mkdir()
        writer = _Writer(folder, replace(self.selection, kinds={}))
        file = read_lines(path, folder.name, self.layout, writer.take)
        writer.end()
        # A file of several writers is not split (rule 3): without its LogFile `read_log` reads the file itself.
        if not file.sources and len(writer.nodes) < 2:
            (folder / _FILE).write_bytes(pickle.dumps(file))
        return writer.facts


def split_logs(
    logs: Sequence[Path], selection: Selection, layout: str | None, over: Callable[..., Iterator[LogFacts]]
) -> None:
    """Write the logs by shard to the folder `selection.shard_dir`.

    `over` is a function such as map: over(function, paths) yields the function of each path, in this process or in several.
    """
    facts = LogFacts()
    # Request logs last: they have topic ids only, the others names, too.
    for of_requests in (False, True):
        paths = [path for path in logs if ("request" in path.name) is of_requests]
        for file_facts in over(SplitLog(replace(selection, names=dict(facts.names)), layout), paths):
            facts.add(file_facts)
    (Path(selection.shard_dir) / _FACTS).write_bytes(pickle.dumps(facts))


def read_log(path: Path, label: str, layout: str | None, selection: Selection) -> LogFile:
    """Read the selected part of a log: from its shard if the logs were split, else from the file.

    `label` is what reports call it. What its lines showed to all shards goes to `selection`.
    """
    folder = _shard_folder(selection, path)
    if not selection.shard_dir or not (folder / _FILE).exists():
        return read_lines(path, label, layout, selection.line)
    facts = _facts(selection.shard_dir)
    selection.names.update(facts.names)
    selection.kinds[label] = facts.kinds.get(folder.name, {})
    shard = selection.shard[0]
    lines = [_line(label, row) for row in _rows(folder / str(shard))]
    lines += _lines_for_all(folder, label, shard, facts)
    lines.sort(key=lambda line: line.number)
    # Lines come from the shard; problems and layout of the file are the same for all.
    file: LogFile = pickle.loads((folder / _FILE).read_bytes())
    return file._replace(
        label=label,
        lines=lines,
        problems=[replace(problem, path=label) for problem in file.problems],
    )


class _Writer:
    """Writes the lines of one file to the files of the shards, in its folder."""

    def __init__(self, folder: Path, selection: Selection) -> None:
        """Begin a file; its rows wait in memory until there are AT_ONCE of a shard."""
        self.folder, self.selection = folder, selection
        # The same dicts, not copies: the selection adds to them what each line shows (Selection.by_shard).
        self.facts = LogFacts(selection.names, selection.kinds)
        self._asks_at_opening: dict[tuple[str, ...], set[int]] = {}
        """By counter (SessionRequest), the shards that its full fetches ask for, which open sessions."""
        self._waiting: dict[str, list[tuple[Any, ...]]] = {}
        """By name of the file, the rows that are not written yet."""
        self._last: tuple[Line, LineByShard] | None = None
        """The last line that is no request."""
        self._last_edge = 0
        """The number of the last line that `_edge` wrote."""
        self.nodes: set[int] = set()
        """The nodes that lines name as their own."""

    def take(self, line: Line) -> None:
        """Write a line to the shards that read it; it is a `Take` that selects nothing, so that no line stays in memory."""
        if (node := own_id(line.message)) is not None:
            self.nodes.add(node)
        by_shard = self.selection.by_shard(line)
        if not by_shard.named and by_shard.rest is None:
            return
        if not is_request(line):
            is_first = self._last is None
            # The first and the last line of a process bound the time in which it logged, which every shard needs.
            if line.message.startswith(_PROCESS_BEGINS):
                self._edge()
            self._last = (line, by_shard)
            if is_first:
                self._edge()
        if by_shard.request is not None:
            self._note_session(by_shard.request, set(by_shard.named), by_shard.unnamed)
        for shard, own in by_shard.named.items():
            self._put(str(shard), _row(own))
        if by_shard.rest is not None:
            request = None if by_shard.request is None else tuple(by_shard.request)
            self._put(_ALL, (_row(by_shard.rest), tuple(by_shard.named), request))

    def end(self) -> None:
        """End the file: write what waits."""
        self._edge()
        for name in self._waiting:
            self._write(name)

    def _edge(self) -> None:
        """Write the last line so far to every shard that does not have it, without its text."""
        if self._last is None:
            return
        line, by_shard = self._last
        # With a `rest` every shard has the line itself.
        if by_shard.rest is None and line.number > self._last_edge:
            self._last_edge = line.number
            self._put(_ALL, ((line.number, line.time, "", "", "", 0), tuple(by_shard.named), None))

    def _note_session(self, request: SessionRequest, shards: set[int], unnamed: bool) -> None:
        """Note in `facts` for which shards the session of a request asks; `unnamed`: the request has unknown topic ids."""
        # The first request, with epoch 0, asks for everything that its session, which the response opens, stands for.
        if request.epoch <= 0:
            self._asks_at_opening.setdefault(request.counter, set()).update(shards)
            opened = request.opens
        else:
            # A sender learns the session id from the response: its second request is the first that has it.
            opened = request.session if request.epoch == 1 and request.counter in self._asks_at_opening else 0
            self.facts.asks.setdefault(request.session, set()).update(shards)
            shards = self._asks_at_opening.get(request.counter, set())
        # Partitions by a topic id that no line has named so far: they may be of any shard.
        if unnamed:
            self.facts.anything |= {request.session, opened}
        if opened:
            self.facts.opened.add(opened)
            self.facts.asks.setdefault(opened, set()).update(shards)

    def _put(self, name: str, row: tuple[Any, ...]) -> None:
        """Add a row to the file `name`; AT_ONCE rows are written together."""
        waiting = self._waiting.setdefault(name, [])
        waiting.append(row)
        if len(waiting) == AT_ONCE:
            self._write(name)

    def _write(self, name: str) -> None:
        """Append the rows that wait for the file `name` to it."""
        with (self.folder / name).open("ab") as file:
            marshal.dump(self._waiting[name], file)
        self._waiting[name].clear()


def _row(line: Line) -> tuple[int, int, str, str, str, int]:
    """Return a line as a tuple that marshal can write; its file is known."""
    return line.number, line.time, line.thread, line.message, line.logger, line.summarizes


def _line(label: str, row: tuple[int, int, str, str, str, int]) -> Line:
    """Return the line of a row; `label` is its file."""
    number, time, thread, message, logger, summarizes = row
    return Line(label, number, time, intern(thread), message, intern(logger), summarizes)


def _rows(path: Path) -> Iterator[Any]:
    """Yield the rows that were written to a file, in order; none if there is no file."""
    if not path.exists():
        return
    size = path.stat().st_size
    with path.open("rb") as file:
        while file.tell() < size:
            yield from marshal.load(file)


def _lines_for_all(folder: Path, label: str, shard: int, facts: LogFacts) -> Iterator[Line]:
    """Yield the lines of a log that all shards read, with summaries of the sessions that ask for nothing of this one."""
    chains = SessionSummaries()
    # `owners` are shards that have a row of their own of the line; `request` is that of the line, if it is a fetch.
    for row, owners, request in _rows(folder / _ALL):
        if request is None:
            if shard not in owners:
                yield _line(label, row)
            continue
        session_request = SessionRequest(*request)
        if session_request.epoch > 0 and not facts.asks_for(shard, session_request.session):
            yield from chains.add(_line(label, row), session_request)
            continue
        yield from chains.end(session_request.counter)
        if shard not in owners:
            yield _line(label, row)
    yield from chains.end_all()


def _shard_folder(selection: Selection, path: Path) -> Path:
    """Return the folder that has the rows of a log file by shard, named after the hash of its path."""
    return Path(selection.shard_dir) / sha256(str(path.absolute()).encode()).hexdigest()


@lru_cache(maxsize=1)
def _facts(folder: str) -> LogFacts:
    """Return what all logs showed that `split_logs` wrote to a folder."""
    facts: LogFacts = pickle.loads((Path(folder) / _FACTS).read_bytes())
    return facts

"""Split logs into shards of their partitions, on disk: each file is read once, each shard from its own lines.

`split_logs` writes a folder for each log file, in it one for each range of its bytes, with a file of rows for each shard and
one for all (`all`); and what the logs showed together (LogFacts). `read_log` reads a log of one shard from there. A *row* is
a line as a tuple, see `_row`. The processes that split and read may be of several machines that share the folder.

Rules of this file

1. A shard has what `Selection.by_shard` makes of the logs, except for two things, so that it does not grow with the
   partitions of others. Of sessions that ask for none of its partitions it has summaries only (SessionSummaries). And every
   shard has, without their text, the first and last lines of each process, for the times between which it logged, and those
   that name its node, its cluster and the ids of topics.
2. Any request of a session, in any file, may show what the session asks for. A session may ask for anything if no log has
   its first request, or if it has a topic id without a name.
3. A file with the lines of several writers or nodes (docker compose, a merged time line) is not split, and read as it is.
4. A range may be split twice at the same time, as Spark does: its folder appears at once, when all is in it, and is not made
   again by the next run.
"""

import marshal
import os
import pickle
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from sys import intern
from typing import Any, NamedTuple
from uuid import uuid4

from tidegauge.traces.kafka_logs.discovery.selection import LineByShard, Selection, SessionRequest, SessionSummaries
from tidegauge.traces.kafka_logs.discovery.writers import NAMING_TOPICS, is_brokers, named_cluster, named_topic, own_id
from tidegauge.traces.kafka_logs.parsing.lines import (
    NEAR_LINES,
    PROCESS_BEGINS,
    ByteRange,
    Line,
    LogFile,
    byte_ranges,
    could_not_be_read,
    read_lines,
    read_range,
)
from tidegauge.traces.kafka_logs.parsing.request_log import is_request
from tidegauge.traces.problems import Problem, note
from tidegauge.util.input_limits import file_size

AT_ONCE = 500
"""Lines of a shard that are written at once."""
OF_A_RANGE = 32_000_000
"""Bytes of a log that a process splits at a time."""
_ALL, _FILE, _FACTS = "all", "file", "known"
"""Names of files in the folders: the rows for all shards; the LogFile without lines, the number of lines, and the names of
the files with rows; the LogFacts of a range, or of all."""


@dataclass
class LogFacts:
    """What files show to all shards: topic names by id, kinds of lines (by file), and for which shards sessions ask.

    `parts` is into how many ranges each file was split, by its folder. `asks` has shards by session. `opened` are the
    sessions whose first request was read, `anything` those that may ask for any partition. `nodes` are those that lines name
    as their own, by folder of a file; the files in `unsplit` have lines of several writers.
    """

    names: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, dict[int | None, set[str]]] = field(default_factory=dict)
    asks: dict[int, set[int]] = field(default_factory=dict)
    opened: set[int] = field(default_factory=set)
    anything: set[int] = field(default_factory=set)
    nodes: dict[str, set[int]] = field(default_factory=dict)
    parts: Counter[str] = field(default_factory=Counter)
    unsplit: set[str] = field(default_factory=set)

    def add(self, other: "LogFacts") -> None:
        """Add what another file, or another range of one, showed."""
        self.names |= other.names
        for file, kinds_by_shard in other.kinds.items():
            of_file = self.kinds.setdefault(file, {})
            for kinds_shard, kinds in kinds_by_shard.items():
                of_file.setdefault(kinds_shard, set()).update(kinds)
        for file, nodes in other.nodes.items():
            self.nodes.setdefault(file, set()).update(nodes)
        self.unsplit |= other.unsplit
        self.parts += other.parts
        self.opened |= other.opened
        self.anything |= other.anything
        for session, shards in other.asks.items():
            self.asks.setdefault(session, set()).update(shards)

    def asks_for(self, shard: int, session: int) -> bool:
        """Return whether a session may ask for partitions of a shard (rule 2)."""
        # A session whose first request was not read may ask for anything: it counts for every shard.
        is_certain = session in self.opened and session not in self.anything
        return not is_certain or shard in self.asks.get(session, ())


class _Part(NamedTuple):
    """A file, or a range of its bytes, the `number`-th (from 0)."""

    path: Path
    number: int = 0
    range: ByteRange | None = None
    size: int = 0
    """Its bytes when it was found: a log may be rotated away meanwhile."""


class SplitLog(NamedTuple):
    """A function that splits one file, or a range of it; it can be sent to other processes."""

    selection: Selection
    layout: str | None

    def __call__(self, part: _Part) -> LogFacts:
        """Write the lines by shard to a folder of their own; return what they showed to all shards."""
        folder = _shard_folder(self.selection, part.path)
        done = folder / str(part.number)
        # A run that was interrupted has split it; what that could not read may be readable now.
        if done.exists():
            file, _, _ = pickle.loads((done / _FILE).read_bytes())
            if not could_not_be_read(file.problems):
                earlier: LogFacts = pickle.loads((done / _FACTS).read_bytes())
                return earlier
            rmtree(done)
        unfinished = folder / f".{part.number}.{uuid4().hex}"
        unfinished.mkdir(parents=True)
        writer = _Writer(unfinished, replace(self.selection, kinds={}))
        if part.range is None:
            read = read_lines(part.path, folder.name, self.layout, writer.take), 0
        else:
            read = read_range(part.range, folder.name, self.layout, writer.take)
        writer.end()
        unsplit = {folder.name} if read[0].sources else set()
        nodes, parts = {folder.name: writer.edges.nodes}, Counter({folder.name: 1})
        facts = replace(writer.facts, nodes=nodes, unsplit=unsplit, parts=parts)
        (unfinished / _FILE).write_bytes(pickle.dumps((*read, writer.names)))
        (unfinished / _FACTS).write_bytes(pickle.dumps(facts))
        try:
            unfinished.rename(done)
        # Another process was sooner (rule 4).
        except OSError:
            rmtree(unfinished)
            if not done.exists():
                raise
        return facts


def split_logs(
    logs: Sequence[Path],
    selection: Selection,
    layout: str | None,
    over: Callable[..., Iterator[LogFacts]],
    progress: Callable[[int], None] = lambda _size: None,
) -> None:
    """Write the logs by shard to the folder `selection.shard_dir`.

    `over` is a function such as map: over(function, parts) yields the function of each part, in this process or in several.
    `progress` is called with the bytes of each part, as they are on disk, once it is written.
    """
    facts = LogFacts()
    # Request logs last: they have topic ids only, the others names, too.
    for of_requests in (False, True):
        paths = [path for path in logs if ("request" in path.name) is of_requests]
        parts = [part for path in paths for part in _parts(path, layout)]
        split = SplitLog(replace(selection, names=dict(facts.names)), layout)
        for part, facts_of_part in zip(parts, over(split, parts), strict=True):
            facts.add(facts_of_part)
            progress(part.size)
    facts.unsplit |= {file for file, nodes in facts.nodes.items() if len(nodes) > 1}
    (Path(selection.shard_dir) / _FACTS).write_bytes(pickle.dumps(facts))


def _parts(path: Path, layout: str | None) -> list[_Part]:
    """Return the ranges of a large log, or the whole of a log."""
    ranges = byte_ranges(path, OF_A_RANGE, layout)
    return [_Part(path, number, part, part.end - part.begin) for number, part in enumerate(ranges)] or [
        _Part(path, size=file_size(path))
    ]


def read_log(path: Path, label: str, layout: str | None, selection: Selection) -> LogFile:
    """Read the selected part of a log: from its shard if the logs were split, else from the file.

    `label` is what reports call it. What its lines showed to all shards goes to `selection`.
    """
    folder = _shard_folder(selection, path)
    facts = _facts(selection.shard_dir) if selection.shard_dir else LogFacts()
    if folder.name in facts.unsplit:
        return _read_unselected(path, label, layout)
    # Without a folder the file is new: it was not there when the logs were split.
    if not selection.shard_dir or not folder.exists():
        return _read_selected(path, label, layout, selection)
    selection.names.update(facts.names)
    selection.kinds[label] = facts.kinds.get(folder.name, {})
    shard, chains = selection.shard[0], SessionSummaries()
    file, lines, problems, before = LogFile(label, [], []), list[Line](), list[Problem](), 0
    # What was removed meanwhile is an error of its own: a shard without some of its lines would be judged, and kept.
    for part in (folder / str(number) for number in range(facts.parts[folder.name])):
        # Lines come from the shard; problems and layout are the same for all.
        read, number_of_lines, names = pickle.loads((part / _FILE).read_bytes())
        file = read if before == 0 else file
        if str(shard) in names:
            lines += [_line(label, row, before) for row in _rows(part / str(shard))]
        if _ALL in names:
            lines += _lines_for_all(part, label, shard, facts, chains, before)
        for problem in read.problems:
            note(_problem_behind(problem, label, before), problems)
        before += number_of_lines
    lines += chains.end_all()
    lines.sort(key=lambda line: line.number)
    return file._replace(label=label, lines=lines, problems=problems)


def _problem_behind(problem: Problem, label: str, before: int) -> Problem:
    """Return the problem of a range for the file that reports call `label`; `before` the range are so many lines."""
    line = None if problem.line is None else problem.line + before
    return replace(problem, path=label, line=line, until=None if problem.until is None else problem.until + before)


def _read_selected(path: Path, label: str, layout: str | None, selection: Selection) -> LogFile:
    """Read the selected part of a log from the file, of several writers the whole."""
    selected = _Selected(selection)
    file = read_lines(path, label, layout, selected.part)
    if file.sources or len(selected.edges.nodes) > 1:
        return _read_unselected(path, label, layout)
    return file._replace(lines=selected.with_edges(file.lines))


def _read_unselected(path: Path, label: str, layout: str | None) -> LogFile:
    """Read the whole of a log of several writers: any line may tell whose the others are (select_lines)."""
    return read_lines(path, label, layout)._replace(selected=False)


def select_lines(lines: Iterable[Line], selection: Selection) -> list[Line]:
    """Return the selected part of the lines of one node."""
    selected = _Selected(selection)
    return selected.with_edges([part for line in lines if (part := selected.part(line)) is not None])


class _Selected:
    """The selected part of the lines of one node in a file."""

    def __init__(self, selection: Selection) -> None:
        """Begin before the first line."""
        self.selection, self.edges, self._at_edges = selection, _Edges(), list[_Edge]()

    def part(self, line: Line) -> Line | None:
        """Return the part of a line that is read, None if there is none."""
        by_shard = self.selection.by_shard(line)
        self._at_edges += self.edges.feed(line, by_shard)
        return by_shard.named.get(self.selection.shard[0], by_shard.rest)

    def with_edges(self, lines: list[Line]) -> list[Line]:
        """Return the parts of all lines, and the edges among those that are not read."""
        edges = [*self._at_edges, *self.edges.end_file()]
        lines += [line for line, shards in edges if self.selection.shard[0] not in shards]
        return sorted(lines, key=lambda line: line.number)


_Edge = tuple[Line, Collection[int]]
"""A line at the edge of a process, without its text, and the shards that have the line itself."""


class _Edges:
    """What every shard needs of the lines of others (rule 1): when a process logged, and of which node and cluster."""

    def __init__(self) -> None:
        """Begin a file."""
        self._near: deque[tuple[Line, LineByShard]] = deque(maxlen=NEAR_LINES + 1)
        """The last lines."""
        self._names: dict[str, tuple[Line, LineByShard] | None] = {}
        """By text, the last line that names the node, its cluster, or a topic by its id; None if that is the first one."""
        self.nodes: set[int] = set()
        """The nodes that lines name as their own."""
        self._of_broker = False
        """Whether a line was of a logger that only brokers have."""
        self._last = 0
        """The number of the last line at an edge."""

    def feed(self, line: Line, by_shard: LineByShard) -> list[_Edge]:
        """Note a line; return those before it if it begins a process, the first, and those that first show whose it is."""
        node = own_id(line.message)
        if node is not None:
            self.nodes.add(node)
        # Network threads write requests, often to a file of their own: those show nothing of a process's end.
        if is_request(line) or by_shard.of_another_time:
            return []
        edges = self.end() if line.message.startswith(PROCESS_BEGINS) else []
        is_first = not self._near
        self._near.append((line, by_shard))
        if is_first:
            edges += self.end()
        if not self._of_broker and is_brokers([line]):
            self._of_broker = True
            edges.append((_line_without_text(line), by_shard.named))
        name = _name_in(line, node)
        if name in self._names:
            self._names[name] = (line, by_shard)
        elif name:
            edges.append((_line_without_text(line, name), by_shard.named))
            self._names[name] = None
        return edges

    def end(self) -> list[_Edge]:
        """Return the last lines so far that not every shard has."""
        edges: list[_Edge] = [
            (_line_without_text(line), by_shard.named)
            for line, by_shard in self._near
            # With a `rest` every shard has the line itself.
            if by_shard.rest is None and line.number > self._last
        ]
        self._last = max((line.number for line, _ in self._near), default=0)
        return edges

    def end_file(self) -> list[_Edge]:
        """Return the last lines of the file, and the last one with each name: two ids of a topic may follow each other."""
        return self.end() + [
            (_line_without_text(last[0], name), last[1].named) for name, last in self._names.items() if last is not None
        ]


def _name_in(line: Line, node: int | None) -> str:
    """Return the text of a line that names the same cluster, or topic with its id, or `node`, and says nothing else."""
    named = named_topic(line.message) if line.logger in NAMING_TOPICS else None
    if named is not None:
        return "topic {} with topic ID {}".format(*named)
    cluster = named_cluster(line)
    if cluster is not None:
        return f"Cluster ID = {cluster}"
    return "" if node is None else f"[Broker id={node}]"


def _line_without_text(line: Line, message: str = "") -> Line:
    """Return a line that shows when its logger wrote it, and perhaps of which node."""
    return Line(line.file, line.number, line.time, "", message, line.logger)


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
        self.edges = _Edges()

    @property
    def names(self) -> frozenset[str]:
        """The files that have rows."""
        return frozenset(self._waiting)

    def take(self, line: Line) -> None:
        """Write a line to the shards that read it; it is a `Take` that selects nothing, so that no line stays in memory."""
        by_shard = self.selection.by_shard(line)
        self._put_edges(self.edges.feed(line, by_shard))
        if by_shard.request is not None:
            self._note_session(by_shard.request, set(by_shard.named), by_shard.unnamed)
        for shard, own in by_shard.named.items():
            self._put(str(shard), _row(own))
        if by_shard.rest is not None:
            request = None if by_shard.request is None else tuple(by_shard.request)
            self._put(_ALL, (_row(by_shard.rest), tuple(by_shard.named), request))

    def end(self) -> None:
        """End the file: write what waits."""
        self._put_edges(self.edges.end_file())
        for name in self._waiting:
            self._write(name)

    def _put_edges(self, edges: Iterable[_Edge]) -> None:
        """Write lines at the edges of processes to every shard that has not the line itself."""
        for line, shards in edges:
            self._put(_ALL, (_row(line), tuple(shards), None))

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


def _line(label: str, row: tuple[int, int, str, str, str, int], before: int) -> Line:
    """Return the line of a row; `label` is its file, `before` the number of lines before its range."""
    number, time, thread, message, logger, summarizes = row
    return Line(label, before + number, time, intern(thread), message, intern(logger), summarizes)


def _rows(path: Path) -> Iterator[Any]:
    """Yield the rows that were written to a file, in order."""
    size = path.stat().st_size
    with path.open("rb") as file:
        while file.tell() < size:
            yield from marshal.load(file)


def _lines_for_all(
    folder: Path, label: str, shard: int, facts: LogFacts, chains: SessionSummaries, before: int
) -> Iterator[Line]:
    """Yield the lines of a range that all shards read, with summaries of the sessions that ask for nothing of this one.

    `chains` are those of its file, `before` is the number of lines before the range.
    """
    # `owners` are shards that have a row of their own of the line; `request` is that of the line, if it is a fetch.
    for row, owners, request in _rows(folder / _ALL):
        if request is None:
            if shard not in owners:
                yield _line(label, row, before)
            continue
        session_request = SessionRequest(*request)
        if session_request.epoch > 0 and not facts.asks_for(shard, session_request.session):
            yield from chains.add(_line(label, row, before), session_request)
            continue
        yield from chains.end(session_request.counter)
        if shard not in owners:
            yield _line(label, row, before)


def _shard_folder(selection: Selection, path: Path) -> Path:
    """Return the folder that has the rows of a log file by shard, named after the hash of its path."""
    return Path(selection.shard_dir) / sha256(os.fsencode(path.absolute())).hexdigest()


@lru_cache(maxsize=1)
def _facts(folder: str) -> LogFacts:
    """Return what all logs showed that `split_logs` wrote to a folder."""
    facts: LogFacts = pickle.loads((Path(folder) / _FACTS).read_bytes())
    return facts

"""Traces as lines of JSON, the format that third parties write and read.

Rules of this file

1. A trace begins with its Config line; the event lines below belong to it. An event line that names a `trace` belongs to
   the trace of that name, so one file may hold several traces in turn.
2. No line costs another: a line that cannot be read is a Problem and is counted, and reading goes on. A field that cannot be
   read is left out of its event, which stays.
3. Fields that this version does not know are kept in `unknown` and written back.
4. A newer major version of the schema is refused for the whole file: reading half of it would judge half of it.

The *envelope* of a line is its keys that are no fields of the event. A *problem* is what could not be read, or what is
missing: `lost` counts the lines that it costs. `do` says what to do about it. `EVENTS` and `FIELDS` of the schema say which
fields an event may have, and how their values read (their *kind*). `seq` numbers the events of a node.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from tidegauge.traces import schema
from tidegauge.traces.problems import Problem, lost, note, shown
from tidegauge.traces.schema import EVENTS, FIELDS, LARGEST, VERSION, Config, Event, FieldKind, Trace, is_int
from tidegauge.util.input_limits import LineBound, longest_line, pieces_on_disk

ENVELOPE = ("v", "trace", "tp", "node", "seq", "event", "time", "corr", "at")
"""Keys of an event line that are not fields of the event, in the order in which they are written."""
PIECE = 1 << 20
"""Bytes that are read at a time."""
SNIFFED = 4096
"""Bytes at the beginning of a file in which a NUL shows that it is binary."""


class NdjsonReading(NamedTuple):
    """The traces of a file, and its problems.

    `damaged`: for each trace that a lost line may have belonged to, how many of its events were read before that line.
    """

    traces: list[Trace]
    problems: list[Problem]
    damaged: Mapping[str, int] = MappingProxyType({})

    @property
    def events(self) -> int:
        """The number of events that were read."""
        return sum(len(trace.events) for trace in self.traces)

    @property
    def lost(self) -> int:
        """The number of lines of an event or a config that could not be read."""
        return lost(self.problems)


# ---------------------------------------------------------------------------------------------------------------------
# Writing


def write(traces: Iterable[Trace], path: str | Path) -> None:
    """Write `traces` to `path`, one after the other."""
    # A text that is no valid Unicode, as of a file's name, is written with backslashes.
    with Path(path).open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as out:
        for trace in traces:
            out.writelines(f"{line}\n" for line in lines(trace))


def lines(trace: Trace) -> Iterator[str]:
    """Yield the lines of one trace: its Config, then its events."""
    head: dict[str, Any] = {"v": VERSION, "trace": trace.name, "tp": trace.tp, "event": "Config"}
    yield _json(head | schema.as_json(trace.config))
    for event in trace.events:
        yield _json(_line(event))


def _line(event: Event) -> dict[str, Any]:
    """Return an event as the object that is written: version and node first, then the event with its fields."""
    line: dict[str, Any] = {"v": VERSION, "node": event.node}
    if event.seq is not None:
        line["seq"] = event.seq
    line["event"] = event.event
    line |= event.fields
    # Without those that the event does not have; what this version does not know comes last.
    line |= {key: value for key, value in (("time", event.time), ("corr", event.corr), ("at", event.at)) if value}
    return line | dict(event.unknown)


def _json(value: Mapping[str, Any]) -> str:
    """Return a JSON object as one line, without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# ---------------------------------------------------------------------------------------------------------------------
# Reading


def read(path: str | Path, name: str | None = None) -> NdjsonReading:
    """Read everything that can be read from the file at `path`, which Problems call `name` (as the path when None)."""
    called = str(path) if name is None else name
    reader = LineReader(called)
    try:
        with Path(path).open("rb") as file:
            for piece in pieces_on_disk(file, PIECE):
                reader.feed(piece)
                if reader.stopped:
                    break
    except OSError as error:
        return NdjsonReading([], [Problem(called, None, "a readable file", error.strerror or str(error), "check the path")])
    return _reading(reader)


def read_bytes(data: bytes, path: str) -> NdjsonReading:
    """Read from bytes, which Problems call `path`."""
    reader = LineReader(path)
    reader.feed(data)
    return _reading(reader)


def _reading(reader: "LineReader") -> NdjsonReading:
    """End the file of a reader, and return what it has read."""
    reader.end()
    return NdjsonReading(reader.traces(), reader.problems, reader.damaged)


class LineReader:
    """Reads bytes that arrive in pieces of any size, line by line, into the traces that the file holds.

    It has `stopped` at a binary file or a newer schema, of which nothing more is read. `current` is the name of the trace
    that the next event line belongs to, None where its Config line was wrong.
    """

    def __init__(self, path: str) -> None:
        """Begin a file, which Problems call `path`."""
        self.path = path
        self.problems: list[Problem] = []
        self.stopped = False
        self.bytes = 0
        self.lines = 0
        # Keeps the beginning of a line until its end comes, and drops lines that are too long.
        self.bound = LineBound()
        self.blank = True  # nothing but blank lines so far
        # By the name of a trace: topic-partition, config and events; how many events `take_traces` has returned; how many
        # lines the file had lost before it began; and how many events it had before a line was lost.
        self.open: dict[str, tuple[str, Config, list[Event]]] = {}
        self.handed: dict[str, int] = {}
        self.losses_before: dict[str, int] = {}
        self.damaged: dict[str, int] = {}
        self.current: str | None = None
        self.last_seq: dict[tuple[str, int], int] = {}  # by trace and node
        self.losses = 0  # lines lost so far

    def traces(self) -> list[Trace]:
        """Return the traces read so far, without the events that `take_traces` has returned."""
        return [Trace(name, tp, config, tuple(events)) for name, (tp, config, events) in self.open.items()]

    def take_traces(self) -> list[Trace]:
        """Return the events of each trace read since the last call, and forget them."""
        new = [Trace(name, tp, config, tuple(events)) for name, (tp, config, events) in self.open.items() if events]
        for trace in new:
            self.handed[trace.name] = self.handed.get(trace.name, 0) + len(trace.events)
            self.open[trace.name][2].clear()
        return new

    def feed(self, data: bytes) -> None:
        """Read more bytes. A line without its end waits for the next ones."""
        # JSON text has no NUL byte: it escapes control characters. Only the first SNIFFED bytes of a file are looked at.
        if b"\0" in data[: max(SNIFFED - self.bytes, 0)]:
            do = "give NDJSON (.ndjson), or Parquet with the suffix .parquet"
            self.problem(None, "lines of JSON", "a binary file", do)
            self.stopped, self.blank = True, False
        self.bytes += len(data)
        # Whole lines only: the last one may go on in the next piece, which may begin in the middle of a character.
        complete = self.bound.feed(data)
        # Blank lines are counted at once: a file may have a hundred million of them. A dropped line looks blank.
        if not complete.strip() and not self.bound.dropped:
            self.lines += complete.count(b"\n")
            return
        for line in complete.split(b"\n")[:-1]:
            self.line(line, last=False)

    def end(self) -> None:
        """End the file: what waits is its last line, complete or not."""
        self.line(self.bound.end(), last=True)
        if self.blank:
            self.problem(None, "a Config line and events", "an empty file", "check that the source wrote anything")

    def next_file(self) -> None:
        """Go on with another file, or with this one from its beginning: its lines follow those read so far."""
        # What waits is the last line of the old file, without its end.
        if unended := self.bound.end():
            self.line(unended, last=True)
        self.bytes = self.lines = 0
        self.bound = LineBound()

    def line(self, raw: bytes, last: bool) -> None:
        """Read the next line of the file; `last`: it is the last one, and may lack its end."""
        self.lines += 1
        # LineBound has emptied a line that is too long, and put its number into `dropped`.
        if self.bound.dropped and self.bound.dropped[0] == self.lines and not self.stopped:
            del self.bound.dropped[0]
            self.blank = False
            expected, do = (
                f"lines of at most {longest_line():,} bytes",
                "the line is left out; --longest-line allows longer ones",
            )
            self.problem(self.lines, expected, "a longer one", do, lost=1)
        elif raw.strip() and not self.stopped:
            self.blank = False
            self.stopped = not self.take(self.lines, raw, last)

    def problem(self, number: int | None, expected: str, seen: str, do: str, lost: int = 0) -> None:
        """Note a problem with a line, or with the file (None). `lost`: how many lines it costs."""
        note(Problem(self.path, number, expected, seen, do, lost), self.problems)
        self.losses += lost

    def take(self, number: int, raw: bytes, last: bool) -> bool:
        """Read line `number`, its text `raw`; return False when the rest of the file must not be read."""
        try:
            line = json.loads(raw)
        except (ValueError, RecursionError) as error:
            do = "the writer was cut off: the line is left out" if last else "the line is left out"
            reason = error.msg if isinstance(error, json.JSONDecodeError) else "not UTF-8 text or nested too deep"
            self.problem(number, "one JSON object", f"{shown(raw.decode('utf-8', 'replace'))} ({reason})", do, lost=1)
            return True
        if not isinstance(line, dict):
            self.problem(number, "one JSON object", shown(line), "write one object per line; the line is left out", lost=1)
            return True
        # Writers may leave the version out.
        version = line.get("v", VERSION)
        if not is_int(version) or version < 1:
            self.problem(number, f'"v": {VERSION}', f'"v": {shown(version)}', "the line is left out", lost=1)
            return True
        # In a newer version any line may mean something else (rule 4).
        if version > VERSION:
            do = "update tidegauge, or write the older version; the rest of the file is not read"
            self.problem(number, f"schema version {VERSION} or older", f"version {version}", do, lost=1)
            return False
        if line.get("event") == "Config":
            self.config(number, line)
        else:
            self.event(number, line)
        return True

    def config(self, number: int, line: dict[str, Any]) -> None:
        """Begin the trace of a Config line, or note the problem with it."""
        name = line.get("trace", "")
        # A trace without a name is called by its place in the file.
        name = name if isinstance(name, str) and name else f"trace-{len(self.open) + 1}"
        fault = schema.fault(line)
        # Event lines refer to traces by name, so that two traces must not share one.
        if name in self.open:
            fault = ("a trace name used once", f"{shown(name)} again")
        if fault is not None:
            self.problem(number, *fault, "correct the Config line; the events below it are left out", lost=1)
            # The events below would otherwise count as events of the trace before.
            self.current = None
            return
        # The topic-partition.
        tp = line.get("tp", "")
        self.open[name] = (tp if isinstance(tp, str) else "", schema.from_json(line, ENVELOPE), [])
        self.current = name
        self.losses_before[name] = self.losses

    def event(self, number: int, line: dict[str, Any]) -> None:
        """Add the event of a line to its trace, without fields that are wrong; or note the problem with the line."""
        name = line.get("trace", self.current)
        if not isinstance(name, str) or name not in self.open:
            # Without a trace name the line belongs to the Config above it; with one, to the Config of that name.
            named = "trace" in line
            expected = "the name of a trace with a Config line" if named else "a Config line before the first event"
            seen = shown(line["trace"]) if named else shown(line["event"]) if "event" in line else 'a line without "event"'
            self.problem(number, expected, seen, "the line is left out", lost=1)
            return
        _, config, events = self.open[name]
        kind, node = line.get("event"), line.get("node")
        if not isinstance(kind, str) or kind not in EVENTS:
            do = "see the events in docs/traces.md; the line is left out"
            self.problem(number, "the name of an event", f'"event": {shown(kind)}', do, lost=1)
            return
        if not is_int(node) or (node not in config.nodes and node != config.controller):
            allowed = ", ".join(map(str, (*config.nodes, *([] if config.controller is None else [config.controller]))))
            self.problem(number, f'"node" to be one of {allowed}', shown(node), "the line is left out", lost=1)
            return
        # The fields of this event, and keys that this version does not know for it.
        fields: dict[str, Any] = {}
        unknown: dict[str, Any] = {}
        for key, value in line.items():
            if key in EVENTS[kind].fields:
                fault = _field_fault(key, value, config)
                if fault is None:
                    fields[key] = _frozen(value)
                else:
                    self.problem(number, f'"{key}" to be {fault}', shown(value), "the field is left out, its event is kept")
            elif key not in ENVELOPE:
                unknown[key] = value
        seq = self.sequence(number, name, node, kind, line.get("seq"))
        text = {key: str(line[key]) for key in ("time", "corr") if line.get(key) is not None}
        # A lost line may have been an event of any trace that had begun, so what follows in this one is uncertain.
        if self.losses > self.losses_before[name]:
            self.damaged.setdefault(name, self.handed.get(name, 0) + len(events))
        # The place that the line names, as its source had it; else its own.
        at = line.get("at") or f"{self.path}:{number}"
        events.append(Event(node, kind, fields, seq, text.get("time"), text.get("corr"), str(at), unknown))

    def sequence(self, number: int, trace: str, node: int, kind: str, seq: Any) -> int | None:
        """Return the `seq` of an event, None if it has none; note a problem if it does not follow the node's last one.

        The event is one of type `kind` of a node in a trace, on line `number`.
        """
        if seq is None:
            return None
        if not is_int(seq):
            self.problem(number, '"seq" to be an integer', shown(seq), "the field is left out, its event is kept")
            return None
        before = self.last_seq.get((trace, node))
        self.last_seq[trace, node] = seq
        # A process that starts counts from 0 again.
        if before is not None and seq != before + 1 and kind != "Start":
            do = "events of this node are missing or out of order: the judge starts this node anew here"
            self.problem(number, f'"seq": {before + 1} at node {node}', f'"seq": {seq}', do)
        return int(seq)


def _field_fault(key: str, value: Any, config: Config) -> str | None:
    """Return what the value of the field `key` should have been, or None if it is right for a trace of this config."""
    # Any field may be known to be undefined.
    if value is None:
        return None
    kind = FIELDS[key].kind
    # True is an int in Python: without this branch it would pass as an offset of 1.
    if kind is FieldKind.BOOL:
        return None if isinstance(value, bool) else "true, false or null"
    if kind is FieldKind.INT:
        return None if is_int(value) and -1 <= value < LARGEST else "an integer from -1 to 2^62 - 1, or null"
    nodes = config.nodes
    if kind is FieldKind.NODE:
        return None if is_int(value) and value in nodes else f"one of the nodes {list(config.nodes)}, or null"
    if kind is FieldKind.NODES:
        right = isinstance(value, list) and all(is_int(node) and node in nodes for node in value)
        return None if right else f"a list of the nodes {list(config.nodes)}, or null"
    # An epoch cache is left.
    right = isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(is_int(n) and -1 <= n < LARGEST for n in pair) for pair in value
    )
    return None if right else "a list of [epoch, start offset], or null"


def _frozen(value: Any) -> Any:
    """Return nested lists as nested tuples, any other value as it is: an event must not change."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value

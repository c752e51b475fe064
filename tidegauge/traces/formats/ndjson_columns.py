"""NDJSON to columns: as traces.formats.ndjson and traces.columns together, fast where a file is large and in order.

Rules of this file

1. The result is what `to_columns(read(path).traces)` gives, config by config. A test compares the two readers.
2. It is all or nothing: a file with anything but what the schema has, or with a gap in `seq`, is left to
   `traces.formats.ndjson`, which reads line by line and reports what is wrong.
3. msgspec structs made of the schema check what concerns one line (decision 11). Each event is a struct of its fields: a
   value of another type or out of range is refused, a field of another event or an unknown one is skipped. What concerns
   more than one line is checked here: one object a line, the trace's own name, `seq`.
4. A field that is left out is UNKNOWN, null is -1. No field has the value of UNKNOWN.

A *batch* is the traces of a file that share a config. A *table* is the columns of the distinct lines of a batch, a row each;
an event is then the number of its row. Whatever is unexpected raises UnexpectedLineError, and the file is left to the other
reader. `Columns` are arrays with a value per event (traces.columns): its type's code, its node's position in the config, and
its fields; `Distinct` is a table and the row of each event. `seq` numbers the events of a node.
"""

import json
import mmap
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import chain, count, pairwise
from operator import attrgetter, or_
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np

from tidegauge.traces import schema
from tidegauge.traces.columns import UNKNOWN, Columns, Distinct, Ints, mask, positions, to_columns
from tidegauge.traces.formats import ndjson
from tidegauge.traces.schema import EVENTS, FIELDS, GAPS, LARGEST, VERSION, WHOLE, Config, FieldKind, Trace
from tidegauge.util.input_limits import has_long_line

BLOCK = 2**19
"""Bytes that become structs and then columns at a time: they stay in the processor's cache in between."""

SHORTEST_LINE = 8
"""Bytes of a line on average: an event takes more to write."""

LINES_PER_DISTINCT = 2
"""How often the lines of a file must recur, on average, for it to be worth looking them up."""

Span = tuple[int, int]
"""The first byte of some traces, and the first byte after them."""


class TraceBatch(NamedTuple):
    """The traces of a file that share a config. `numbered` counts their events that have a `seq`, which is no column."""

    stored: Columns | Distinct
    config: Config
    numbered: int


class UnexpectedLineError(ValueError):
    """A line is not exactly as the schema has it: the file is left to the reader that goes line by line."""


def read_at_once(data: bytes) -> list[TraceBatch] | None:
    """Return a batch for each config in the bytes of a file; None if they hold anything unexpected."""
    if not data.endswith(b"\n"):
        data += b"\n"
    try:
        # Raises for what is no UTF-8; to ask for ASCII is far cheaper, and most files are.
        if not data.isascii():
            data.decode()
        traces = _traces(data)
        breaks = np.frombuffer(data, np.uint8) == ord("\n")
        # The position of each line's end takes eight bytes of memory: too much for a file of nothing but line breaks.
        if SHORTEST_LINE * np.count_nonzero(breaks) > len(data):
            return None
        ends = np.flatnonzero(breaks)
        return [_read_batch(data, ends, batch) for batch in _by_config(traces)]
    except (UnexpectedLineError, UnicodeDecodeError):
        return None


def spans(path: Path, least: int) -> list[Span]:
    """Split a file between its traces, without reading it into memory. Each span but the last has `least` bytes or more.

    Returns no spans for a file with one span, an unexpected Config line or a trace that is named by its place in the file.
    """
    # Where the spans end; the first begins at 0.
    ends = [0]
    # A file with a line that is too long is left to the reader that goes line by line.
    if has_long_line(path):
        return []
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            traces = _traces(data)
        except UnexpectedLineError:
            return []
        for number, trace in enumerate(traces, 1):
            # A trace without a name is called by its place in the file, and who reads a span does not know its place.
            if trace.name == f"trace-{number}":
                return []
            # The span has reached its size, or the file ends.
            if trace.last - ends[-1] >= least or trace.last == len(data):
                ends.append(trace.last)
    return list(pairwise(ends)) if len(ends) > 2 else []


def read_span(path: Path, span: Span | None) -> bytes:
    """Return the bytes of a span of a file, or of the whole file when None."""
    if span is None:
        return path.read_bytes()
    with path.open("rb") as file:
        file.seek(span[0])
        return file.read(span[1] - span[0])


# ---------------------------------------------------------------------------------------------------------------------
# Config lines

_NAMED = re.compile(rb'([^\n]*?"trace"[ \t]*:[ \t]*")([^"\\\x00-\x1f]*)("[^\n]*)')
"""A Config line split around its name: the Config lines of a source differ only in that, so one of them is parsed."""

_NAMED_AGAIN = re.compile(rb'"trace"|\\')
"""In the text behind a name: another name that would count instead, or an escape that could hide one."""


class _Trace(NamedTuple):
    """A trace by its Config line, and the bytes [first, last) of the event lines below it."""

    config: Config
    name: str
    tp: str
    first: int
    last: int


def _traces(data: "bytes | mmap.mmap") -> list[_Trace]:
    """Return the traces of a file, found by their Config lines.

    Raises UnexpectedLineError where a Config line is wrong, or an event comes before the first one.
    """
    traces: list[_Trace] = []
    # By the text of a Config line before and behind its name: the config, and the topic-partition.
    configs: dict[tuple[bytes, bytes], tuple[Config, str]] = {}
    names: set[str] = set()
    # A search for the word is far cheaper than parsing every line: Config lines are few.
    at = data.find(b'"Config"')
    while at >= 0:
        # The line around the word, without its end.
        first, last = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
        if last < 0:
            raise UnexpectedLineError("the file ends in a Config line")
        at = data.find(b'"Config"', last)
        named = _NAMED.fullmatch(data, first, last)
        before, name_bytes, after = named.groups() if named else (data[first:last], b"", b"")
        name = name_bytes.decode() or f"trace-{len(traces) + 1}"
        # A pair: the config and the topic-partition.
        config = configs.get((before, after))
        if config is None:
            line = _config_line(data[first:last])
            if line is None:  # an event that has "Config" in one of its texts
                continue
            # The name as JSON has it, which an escape or a second "trace" may make another.
            json_name = line.get("trace")
            if isinstance(json_name, str) and json_name and json_name != name:
                raise UnexpectedLineError("a Config line names its trace in a way of its own")
            tp = line.get("tp", "")
            config = schema.from_json(line, ndjson.ENVELOPE), tp if isinstance(tp, str) else ""
            # A second "trace", or an escape, would be the name of every other line with the same text around the first.
            if not _NAMED_AGAIN.search(after):
                configs[before, after] = config
        # A problem, which the other reader reports with its line.
        if name in names:
            raise UnexpectedLineError("two traces have one name")
        names.add(name)
        # The lines of the trace before end here.
        if traces:
            traces[-1] = traces[-1]._replace(last=first)
        elif data[:first].strip():
            raise UnexpectedLineError("an event comes before the first Config line")
        # Up to the end of the file, until another Config line comes.
        traces.append(_Trace(config[0], name, config[1], last + 1, len(data)))
    if not traces:
        raise UnexpectedLineError("the file has no Config line")
    return traces


def _config_line(raw: bytes) -> dict[str, Any] | None:
    """Parse a line with the word "Config"; None if it is no Config line. Raises UnexpectedLineError for a wrong one."""
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise UnexpectedLineError("a line that may be a Config line is no JSON") from error
    if not isinstance(line, dict) or line.get("event") != "Config":
        return None
    version = line.get("v", VERSION)
    # True equals 1 in Python.
    if version is True or version != VERSION or schema.fault(line) is not None:
        raise UnexpectedLineError("a Config line is wrong, or of another version")
    return line


def _by_config(traces: Sequence[_Trace]) -> list[list[_Trace]]:
    """Group the traces that have the same config, in order: each group becomes a batch."""
    # Configs that were parsed once are one object, so most of them are compared without their text.
    keys: dict[int, str] = {}
    batches: dict[str, list[_Trace]] = {}
    for trace in traces:
        config = trace.config
        # The text of the config, made once for each object.
        key = keys.get(id(config)) or keys.setdefault(id(config), json.dumps(schema.as_json(config), sort_keys=True))
        batches.setdefault(key, []).append(trace)
    return list(batches.values())


# ---------------------------------------------------------------------------------------------------------------------
# The event lines of traces that share a config


def _read_batch(data: bytes, ends: Ints, traces: Sequence[_Trace]) -> TraceBatch:
    """Read the events of `traces`, which share a config, from the bytes of a file, whose lines end at `ends`."""
    config = traces[0].config
    # The judge must know where a trace has gaps, which this reader does not keep.
    if config.extra.get(WHOLE) is False or config.extra.get(GAPS):
        raise UnexpectedLineError("a trace has gaps")
    text = b"".join(data[trace.first : trace.last] for trace in traces)
    # How many lines each trace has: those whose ends lie in its bytes.
    counts = np.diff(np.searchsorted(ends, [(trace.first, trace.last) for trace in traces])).ravel()
    if not counts.sum():
        return TraceBatch(to_columns([Trace(t.name, t.tp, t.config, ()) for t in traces], config), config, 0)
    # Traces of a model repeat a few thousand lines millions of times: each is parsed once, and is a row of the table.
    # Where they do not repeat, every line is a row: slice(None) takes all rows as they are.
    # `rows` leads from events to rows of the table.
    distinct, rows = _distinct_lines(text) or (text, slice(None))
    table = _EventTable(distinct.count(b"\n"), config)
    # msgspec reads objects wherever they begin: only with one object a line is the count of lines the count of events.
    if not distinct.startswith(b"{") or not distinct.endswith(b"}\n") or distinct.count(b"}\n{") != table.lines - 1:
        raise UnexpectedLineError("a line is not one object")
    for block in _blocks(distinct):
        table.add(block)
    if table.filled != table.lines:
        raise UnexpectedLineError("an object has more than one line")
    # The number of each event's trace, and where each trace begins.
    number, starts = np.repeat(np.arange(len(traces)), counts), np.concatenate(([0], np.cumsum(counts)))
    # `seq` of each event is checked here, and is no column.
    columns, seq = table.columns(starts), table.seq[rows]
    # The number of the trace that each event names: it must be the one that the event stands in.
    named = table.named_traces({trace.name: place for place, trace in enumerate(traces)})[rows]
    if not ((named == _UNNAMED) | (named == number)).all():
        raise UnexpectedLineError("an event names another trace than the one it is in")
    _check_sequence(columns.event[rows], columns.node[rows], seq, number)
    stored = columns if isinstance(rows, slice) else Distinct(columns, rows)
    return TraceBatch(stored, config, int((seq >= 0).sum()))


def _blocks(text: bytes) -> Iterator[bytes]:
    """Split text into whole lines, about BLOCK bytes at a time."""
    begin = 0
    while begin < len(text):
        end = text.find(b"\n", begin + BLOCK) + 1 or len(text)
        yield text[begin:end]
        begin = end


def _distinct_lines(text: bytes) -> tuple[bytes, Ints] | None:
    """Return the distinct lines, in the order of their first occurrence, and the number of each line among them.

    None, where lines do not recur often enough for it to be worth it: looked at after each block.
    """
    # A line that is looked up for the first time gets the next number.
    numbers: defaultdict[bytes, int] = defaultdict(count().__next__)
    rows: list[Ints] = []
    lines = 0
    for block in _blocks(text):
        texts = block.split(b"\n")[:-1]
        lines += len(texts)
        rows.append(np.fromiter(map(numbers.__getitem__, texts), np.int64, len(texts)))
        if len(numbers) * LINES_PER_DISTINCT > lines:
            return None
    return b"\n".join((*numbers, b"")), np.concatenate(rows)


def _check_sequence(event: Ints, node: Ints, seq: Ints, trace: Ints) -> None:
    """Raise UnexpectedLineError unless `seq` begins with 0 or 1 and grows by one at each node of each trace.

    At a Start it may begin anew. The arrays have a value per event: its code, the position of its node, its `seq`, negative
    if it has none, and the number of its trace.
    """
    rows = np.flatnonzero(seq >= 0)
    # Sorted by trace, then by node, then as in the file: neighbours are consecutive events of one node, but where one ends.
    rows = rows[np.lexsort((rows, node[rows], trace[rows]))]
    seq = seq[rows]
    # For each event but the first: whether it is of the same node and trace as the one before it.
    follows = (np.diff(trace[rows]) == 0) & (np.diff(node[rows]) == 0)
    begins = np.isin(seq, (0, 1))
    anew = (event[rows[1:]] == EVENTS["Start"].code) & begins[1:]
    # The first event of all begins; each other one follows the one before it, or is the first of a node and begins.
    if not begins[:1].all() or not np.where(follows, anew | (np.diff(seq) == 1), begins[1:]).all():
        raise UnexpectedLineError("seq does not count on")


# ---------------------------------------------------------------------------------------------------------------------
# One line

_Number = Annotated[int, msgspec.Meta(ge=-1, lt=LARGEST)]
_Node = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]
_TYPES: dict[FieldKind, Any] = {
    FieldKind.INT: _Number | None,
    FieldKind.BOOL: bool | None,
    FieldKind.NODE: _Node | None,
    FieldKind.NODES: tuple[_Node, ...] | None,
    FieldKind.EPOCHS: tuple[tuple[_Number, _Number], ...] | None,
}
_ENVELOPE: list[Any] = [
    ("node", _Node),
    ("v", Annotated[int, msgspec.Meta(ge=VERSION, le=VERSION)], VERSION),
    ("seq", Annotated[int, msgspec.Meta(ge=0, lt=LARGEST)] | None, UNKNOWN),
    ("trace", str, None),
]


class _EventStruct(NamedTuple):
    """A type of event as it is parsed, with its fields by kind."""

    struct: type[Any]
    code: int
    numbers: tuple[str, ...]
    """fields whose values go to columns as they are"""
    nodes: tuple[str, ...]
    """fields that name nodes"""
    epochs: bool
    """whether it may have an epoch cache"""
    values: Callable[[Any], tuple[int | None, ...]]
    """an object of the struct -> its seq, its node, and the values of `numbers`"""


def _event_struct(name: str) -> _EventStruct:
    """Return the struct into which msgspec parses lines of the event `name`, and its fields by kind."""
    fields = EVENTS[name].fields

    def of_kind(*kinds: FieldKind) -> tuple[str, ...]:
        """Return the fields of these kinds, kind by kind."""
        return tuple(field for kind in kinds for field in fields if FIELDS[field].kind is kind)

    # (name, type, default): a field that a line leaves out is UNKNOWN.
    members = [*_ENVELOPE, *((field, _TYPES[FIELDS[field].kind], UNKNOWN) for field in fields)]
    numbers = of_kind(FieldKind.INT, FieldKind.BOOL)
    return _EventStruct(
        # An event is never part of a cycle, so the collector of cycles need not visit it.
        msgspec.defstruct(name, members, tag_field="event", tag=name, gc=False),
        EVENTS[name].code,
        numbers,
        of_kind(FieldKind.NODE, FieldKind.NODES),
        bool(of_kind(FieldKind.EPOCHS)),
        attrgetter("seq", "node", *numbers),
    )


_STRUCTS = {event.struct: event for event in map(_event_struct, EVENTS)}
_DECODER = msgspec.json.Decoder(reduce(or_, _STRUCTS))

_UNNAMED, _OTHER = -1, -2
"""In place of the number of a trace: a line names none, or one that the batch does not have."""


class _NodePositions(dict[Any, int]):
    """What columns hold for the value of a field that names nodes: a node's position, the mask of a tuple of nodes."""

    def __init__(self, config: Config) -> None:
        """Begin with the nodes of a config, none (null), and UNKNOWN for a field that is left out."""
        super().__init__({UNKNOWN: UNKNOWN, None: -1} | {node: at for at, node in enumerate(config.nodes)})

    def __missing__(self, nodes: object) -> int:
        """Return the mask of a tuple of nodes that is not in the dict yet, and keep it.

        Raises KeyError for a node that the config lacks.
        """
        if not isinstance(nodes, tuple):
            raise KeyError(nodes)
        self[nodes] = mask(self[node] for node in nodes)
        return self[nodes]


class _EventTable:
    """Columns of a known number of lines, a row each, filled block by block.

    `filled` rows have values. `names` and `caches` have (row, value) of the lines that name a trace, or have an epoch cache.
    """

    def __init__(self, lines: int, config: Config) -> None:
        """Make columns for so many lines, empty yet."""
        self.filled, self.lines = 0, lines
        self.node_fields, self.positions = _NodePositions(config), positions(config)
        self.event, self.node, self.seq = (np.empty(lines, np.int64) for _ in range(3))
        self.ints: dict[str, Ints] = {}
        self.names: list[tuple[int, str]] = []
        self.caches: list[tuple[int, tuple[tuple[int, int], ...]]] = []

    def add(self, text: bytes) -> None:
        """Parse the next lines. Raises UnexpectedLineError where one of them is not as the schema has it."""
        try:
            events = _DECODER.decode_lines(text)
            begin, self.filled = self.filled, self.filled + len(events)
            if self.filled > self.lines:
                raise UnexpectedLineError("a line has more than one object")
            self.names += [(row, event.trace) for row, event in enumerate(events, begin) if event.trace is not None]
            structs = [*map(type, events)]
            # msgspec has chosen the struct by the name of the event.
            codes = np.fromiter((_STRUCTS[struct].code for struct in structs), np.int64, len(events))
            self.event[begin : self.filled] = codes
            # Lines of one type of event have the same fields: each field is filled for all of them at once.
            for kind in map(_STRUCTS.__getitem__, dict.fromkeys(structs)):
                places = np.flatnonzero(codes == kind.code)
                self._fill(begin + places, [events[place] for place in places.tolist()], kind)
        except (msgspec.DecodeError, RecursionError, KeyError) as error:
            raise UnexpectedLineError(str(error)) from error

    def _fill(self, rows: Ints, events: Sequence[Any], kind: _EventStruct) -> None:
        """Write parsed events, all of type `kind`, to these rows of the table."""
        # A column for each of `seq`, the node and the fields in `kind.numbers`.
        seq, node, *numbers = _numbers([*map(kind.values, events)]).T
        self.seq[rows] = seq
        # The node of an event may be the controller, which `positions` has; fields name brokers only (`node_fields`).
        self.node[rows] = np.fromiter(map(self.positions.__getitem__, node.tolist()), np.int64, len(events))
        for name, column in zip(kind.numbers, numbers, strict=True):
            self._fill_column(name, rows, column)
        for name in kind.nodes:
            values = map(self.node_fields.__getitem__, map(attrgetter(name), events))
            self._fill_column(name, rows, np.fromiter(values, np.int64, len(events)))
        # An absent cache is UNKNOWN, a number, and null is None.
        if kind.epochs:
            caches = zip(rows.tolist(), [event.epochs for event in events], strict=True)
            self.caches += [(row, epochs) for row, epochs in caches if isinstance(epochs, tuple)]

    def _fill_column(self, name: str, rows: Ints, column: Ints) -> None:
        """Write the values of a field to these rows."""
        if name not in self.ints:
            # to_columns makes no column for a field that no event has.
            if (column == UNKNOWN).all():
                return
            self.ints[name] = np.full(self.lines, UNKNOWN)
        self.ints[name][rows] = column

    def named_traces(self, numbers: dict[str, int]) -> Ints:
        """Return the number of the trace that each line names, _UNNAMED or _OTHER; `numbers` has them by name."""
        named = np.full(self.lines, _UNNAMED)
        for row, name in self.names:
            named[row] = numbers.get(name, _OTHER)
        return named

    def columns(self, trace_starts: Ints) -> Columns:
        """Return the columns of all lines, with `trace_starts` as given."""
        # In the order of the rows: they were added by type of event.
        caches = sorted(self.caches)
        # The number of pairs of row i is lengths[i + 1], so that the sum up to i is where its pairs begin.
        lengths = np.zeros(self.lines + 1, np.int64)
        at = np.array([row for row, _ in caches], np.int64)
        lengths[at + 1] = [len(epochs) for _, epochs in caches]
        reported = np.zeros(self.lines, np.bool_)
        reported[at] = True
        return Columns(
            trace_starts=trace_starts,
            event=self.event,
            node=self.node,
            ints=self.ints,
            epochs_reported=reported,
            epochs_at=np.cumsum(lengths),
            epochs=np.array([number for _, epochs in caches for pair in epochs for number in pair], np.int64),
        )


def _numbers(rows: Sequence[tuple[int | None, ...]]) -> Ints:
    """Return tuples of equal length as rows of an array; truth values become 0 and 1, None becomes -1."""
    flat = chain.from_iterable(rows)
    # Value by value, without an object for each row: fast, but fromiter takes no None.
    try:
        numbers = np.fromiter(flat, np.int64, len(rows) * len(rows[0]))
    except TypeError:  # a null, which is rare: most events never look for one
        numbers = np.array([-1 if value is None else value for row in rows for value in row], np.int64)
    return numbers.reshape(len(rows), -1)

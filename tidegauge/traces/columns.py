"""Traces as columns, which the judge reads and a Parquet row group holds.

`Columns.ints` has one int64 array per field that at least one event has; UNKNOWN marks an absent field, -1 one that is known
to be undefined. Nodes are positions in `Config.nodes` (a controller that is no broker is the position after the last), sets
of nodes are bit masks. `epochs` holds the pairs of the only field that has a list of pairs, flattened; row i owns the pairs
`epochs_at[i]` to `epochs_at[i + 1]`, and has the field only if `epochs_reported[i]`. `missing` is empty if no line is
missing; else it has, for each event, whether lines of its node are missing before it or after it.

Row i of all columns is event i. A *position* is the index of a node in `Config.nodes`. A *table* is Columns with a row per
distinct event. An `Event` has its node id, the name of its type, the `fields` that its source reports (by name), and `seq`,
its number among the events of its node, None if the source gives none. A field has a *kind*: a number, a node, a list of
nodes, a list of (epoch, start offset) pairs.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegauge.traces.schema import EVENTS, FIELDS, MISSING_AHEAD, MISSING_BEHIND, WHOLE, Config, Event, FieldKind, Trace

UNKNOWN = -(2**62)
INT_FIELDS = tuple(name for name, field in FIELDS.items() if field.kind is not FieldKind.EPOCHS)
_INT_FIELDS = frozenset(INT_FIELDS)
_CODES = {name: event.code for name, event in EVENTS.items()}

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Columns:
    """`trace_starts` has one entry per trace and one more: trace t owns the rows trace_starts[t] to trace_starts[t+1]."""

    trace_starts: Ints
    event: Ints
    node: Ints
    ints: Mapping[str, Ints]
    epochs_reported: NDArray[np.bool_]
    epochs_at: Ints
    epochs: Ints
    missing: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.event)


def to_columns(traces: Sequence[Trace], config: Config, *, counted: bool = False) -> Columns:
    """Return the columns of `traces`, which share `config`.

    `counted`: the reader has numbered the events itself, so that no missing lines need be looked for.
    """
    events = [event for trace in traces for event in trace.events]
    # Where each trace begins among them, and at last their number.
    starts = np.cumsum([0, *(len(trace.events) for trace in traces)], dtype=np.int64)
    position = positions(config)
    # Each dict of fields is encoded once and is one row until the end: most events of broker logs share theirs.
    shared = {id(event.fields): event.fields for event in events}
    row_by_id = dict(zip(shared, range(len(shared)), strict=True))
    row_of = np.array([row_by_id[id(event.fields)] for event in events], dtype=np.int64)
    distinct = list(shared.values())
    # The rows that have the same names of fields are encoded together, a column at a time: there are few such sets of names.
    by_names: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for row, fields in enumerate(distinct):
        by_names[tuple(fields)].append(row)
    encoded: dict[str, Ints] = {}
    for names, rows in by_names.items():
        at = np.array(rows)
        # `values`: those of one field, row by row.
        for name, values in zip(names, zip(*[distinct[row].values() for row in rows], strict=True), strict=False):
            if name in _INT_FIELDS:
                if name not in encoded:
                    encoded[name] = np.full(len(distinct), UNKNOWN, np.int64)
                encoded[name][at] = _encoded(name, values, position)
    # From a value per distinct dict to a value per event, in the order of the schema.
    ints = {name: encoded[name][row_of] for name in INT_FIELDS if name in encoded}
    # The epoch caches, of distinct fields and then of events: a list of pairs, None where none is reported.
    distinct_caches = [fields.get("epochs") for fields in distinct]
    caches = [distinct_caches[row] for row in row_of.tolist()]
    return Columns(
        trace_starts=starts,
        event=np.array([_CODES[event.event] for event in events], dtype=np.int64),
        node=np.array([position[event.node] for event in events], dtype=np.int64),
        ints=ints,
        epochs_reported=np.array([cache is not None for cache in caches], dtype=np.bool_),
        epochs_at=np.cumsum([0, *(len(cache or ()) for cache in caches)], dtype=np.int64),
        epochs=np.array([number for cache in caches for pair in cache or () for number in pair], dtype=np.int64),
        missing=np.zeros(0, np.int64) if counted else missing_lines(traces, config),
    )


def missing_lines(traces: Sequence[Trace], config: Config) -> Ints:
    """Return for each event a mask of MISSING_AHEAD and MISSING_BEHIND; an empty array if no line is missing anywhere.

    The `seq` of a node grows by one, and may begin anew at its Start. If the config says that a trace need not be whole,
    lines may also be missing where no number shows it: at the beginning and end of a node and of each of its processes.
    """
    missing = np.zeros(sum(len(trace.events) for trace in traces), np.int64)
    first_row = 0
    for trace in traces:
        gaps = Gaps(config)
        for row, event in enumerate(trace.events, first_row):
            lost, row_before = gaps.take(row, event)
            # A gap lies between two events of the node: it is ahead of this one and behind the other.
            if lost:
                missing[row] |= MISSING_AHEAD
                if row_before is not None:
                    missing[row_before] |= MISSING_BEHIND
        for row in gaps.ends():
            missing[row] |= MISSING_BEHIND
        first_row += len(trace.events)
    return missing if missing.any() else missing[:0]


class Gaps:
    """Finds missing lines of one trace, event by event."""

    def __init__(self, config: Config) -> None:
        """Begin a trace, which is `whole` unless its config says that lines may be missing where no number shows it."""
        self.whole = config.extra.get(WHOLE) is not False
        self._last: dict[int, tuple[int, int | None]] = {}  # node -> row and `seq` of its last event

    def take(self, row: int, event: Event) -> tuple[bool, int | None]:
        """Return whether lines of its node are missing before an event, and the row of that node's event before it.

        The row is None for the first event of a node. `row` is that of the event.
        """
        last = self._last.get(event.node)
        self._last[event.node] = row, event.seq
        # A process that starts may count anew, from 0 or from 1.
        anew = event.event == "Start" and event.seq in (0, 1)
        # A node counts from 0 or 1: a higher number shows that its first lines are missing.
        if last is None:
            return not self.whole or (event.seq or 0) > 1, None
        last_row, last_seq = last
        # Without numbers nothing shows a gap: there is none if the config says that the trace is whole.
        if event.seq is None or last_seq is None:
            return not self.whole, last_row
        # If the trace need not be whole, lines of the process before may be missing although the count begins anew.
        return event.seq != last_seq + 1 and not (anew and self.whole), last_row

    def ends(self) -> list[int]:
        """Return the rows after which lines are missing if the trace ends here: the last ones of nodes, if not whole."""
        return [] if self.whole else [row for row, _ in self._last.values()]


def positions(config: Config) -> dict[int, int]:
    """Return node id -> position; that of a controller that is no broker comes after those of the brokers."""
    position = {node: index for index, node in enumerate(config.nodes)}
    if config.controller is not None:
        position.setdefault(config.controller, len(config.nodes))
    return position


def _encoded(name: str, values: Sequence[Any], position: Mapping[int, int]) -> Ints | list[int]:
    """Return values of the field `name` as columns hold them: nodes as positions, lists of nodes as masks, None as -1."""
    kind = FIELDS[name].kind
    if kind is FieldKind.NODE:
        return [-1 if value is None else position[value] for value in values]
    if kind is FieldKind.NODES:
        return [-1 if value is None else mask(position[node] for node in value) for value in values]
    if None not in values:
        return np.array(values, np.int64)
    return [-1 if value is None else int(value) for value in values]


def mask(positions: Iterable[int]) -> int:
    """Return a set of positions as a bit mask."""
    bits = 0
    for index in positions:
        bits |= 1 << index
    return bits


# Traces whose events recur, as one table of distinct events and the row of each event.
#
# Millions of interleavings of a model consist of a few hundred distinct events. One number per event is faster to read than
# its columns, and the table stays in the processor's cache while the judge looks events up in it.
#
# Rules
#
# 1. `Distinct.table` is Columns with one row per distinct event, except for its trace_starts: like those of the expanded
#    columns they are positions in `rows`.
# 2. `expanded()` gives the plain Columns, equal in every value.


@dataclass(frozen=True)
class Distinct:
    """Event i of the traces is row rows[i] of the table; `missing` as in Columns, event by event."""

    table: Columns
    rows: Ints
    missing: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.rows)

    def expanded(self) -> Columns:
        """Return columns with one row per event."""
        table, rows = self.table, self.rows
        # How many pairs the epoch cache of each row of the table has.
        counts = np.diff(table.epochs_at)
        # Most events have no epoch cache: pairs are gathered for those that have one.
        longer = rows[counts[rows] > 0]
        at = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(counts[rows], out=at[1:])
        return Columns(
            trace_starts=table.trace_starts,
            event=table.event[rows],
            node=table.node[rows],
            ints={name: column[rows] for name, column in table.ints.items()},
            epochs_reported=table.epochs_reported[rows],
            epochs_at=at,
            epochs=table.epochs.reshape(-1, 2)[ranges(table.epochs_at[longer], counts[longer])].ravel(),
            missing=self.missing,
        )


def table_of(stored: Columns | Distinct) -> tuple[Columns, Ints | None]:
    """Return the table of the events, and the row of each event in it; None for plain columns, whose row i is event i."""
    return (stored.table, stored.rows) if isinstance(stored, Distinct) else (stored, None)


def with_starts(table: Columns, starts: Ints) -> Columns:
    """Return the table with `starts` as its trace_starts."""
    return replace(table, trace_starts=starts)


def ranges(first: Ints, counts: Ints) -> Ints:
    """Return the numbers first[0], first[0]+1, ... (counts[0] of them), then those from first[1] on, and so forth."""
    # Run i ends at ends[i] of the result: what is added to the index there is first[i] less where the run begins.
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    numbers: Ints = np.arange(total, dtype=np.int64) + np.repeat(first - (ends - counts), counts)
    return numbers


def table_as_json(table: Columns) -> dict[str, Any]:
    """Return a table as JSON: a list of numbers for each column, and in `epochs` a list of pairs or null for each event."""
    pairs = table.epochs.reshape(-1, 2).tolist()
    at = table.epochs_at.tolist()
    epochs = [pairs[at[i] : at[i + 1]] if reported else None for i, reported in enumerate(table.epochs_reported.tolist())]
    ints = {name: column.tolist() for name, column in table.ints.items()}
    return {"event": table.event.tolist(), "node": table.node.tolist(), **ints, "epochs": epochs}


def table_from_json(value: Mapping[str, Any]) -> Columns:
    """Return the table that `table_as_json` has written.

    Raises ValueError, TypeError, KeyError or OverflowError for any other value.
    """
    event, epochs = np.array(value["event"], dtype=np.int64), value["epochs"]
    ints = {name: np.array(value[name], dtype=np.int64) for name in INT_FIELDS if name in value}
    node = np.array(value["node"], dtype=np.int64)
    if event.ndim != 1 or any(column.shape != event.shape for column in (node, *ints.values())) or len(epochs) != len(event):
        raise ValueError("columns of different lengths")
    return Columns(
        trace_starts=np.zeros(1, dtype=np.int64),  # no traces: those are of the rows that refer to the table
        event=event,
        node=node,
        ints=ints,
        epochs_reported=np.array([pairs is not None for pairs in epochs], dtype=np.bool_),
        epochs_at=np.cumsum([0, *(len(pairs or ()) for pairs in epochs)], dtype=np.int64),
        epochs=np.array([pair for pairs in epochs for pair in pairs or ()], dtype=np.int64).reshape(-1, 2).ravel(),
    )

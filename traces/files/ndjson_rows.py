"""Lines of events to columns: what the types of their fields can say about them is said by structs made of the schema.

Rules of this file

1. Each event is a msgspec struct of the fields that it may tell. What has another type or is out of range is refused; fields
   of other events and unknown ones are passed over.
2. A field that is left out is UNKNOWN, null is -1. No field has the value of UNKNOWN.
3. Nodes are those of the config.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import chain
from operator import attrgetter, or_
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np

from tidegauge.traces.columns import UNKNOWN, Columns, Ints, mask, positions
from tidegauge.traces.schema import EVENTS, FIELDS, LARGEST, VERSION, Config, FieldKind

_Number = Annotated[int, msgspec.Meta(ge=-1, lt=LARGEST)]
_Node = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]
_KINDS: dict[FieldKind, Any] = {
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


class _Kind(NamedTuple):
    """An event as it is read: `values` are its seq, its node and the `numbers`, which go to columns as they stand."""

    struct: type[Any]
    code: int
    numbers: tuple[str, ...]
    nodes: tuple[str, ...]
    epochs: bool
    values: Callable[[Any], tuple[int | None, ...]]


def _kind(name: str) -> _Kind:
    fields = EVENTS[name].fields
    members = [*_ENVELOPE, *((field, _KINDS[FIELDS[field].kind], UNKNOWN) for field in fields)]
    of: dict[FieldKind, tuple[str, ...]] = {
        kind: tuple(field for field in fields if FIELDS[field].kind is kind) for kind in FieldKind
    }
    numbers = (*of[FieldKind.INT], *of[FieldKind.BOOL])
    return _Kind(
        # who is never part of a cycle need not be looked at by the collector of cycles
        msgspec.defstruct(name, members, tag_field="event", tag=name, gc=False),
        EVENTS[name].code,
        numbers,
        (*of[FieldKind.NODE], *of[FieldKind.NODES]),
        bool(of[FieldKind.EPOCHS]),
        attrgetter("seq", "node", *numbers),
    )


_EVENTS = {kind.struct: kind for kind in map(_kind, EVENTS)}
_DECODER = msgspec.json.Decoder(reduce(or_, _EVENTS))


class UnlikeError(ValueError):
    """A line is not as the schema has it."""


class _Places(dict[Any, int]):
    """What a field that names nodes becomes, by its value; KeyError where the config has no such node."""

    def __init__(self, config: Config) -> None:
        super().__init__({UNKNOWN: UNKNOWN, None: -1} | {node: at for at, node in enumerate(config.nodes)})

    def __missing__(self, members: object) -> int:
        if not isinstance(members, tuple):
            raise KeyError(members)
        self[members] = mask(self[node] for node in members)
        return self[members]


class Rows:
    """Columns of so many lines, filled from their beginning. `names` are the traces that lines name, by row."""

    def __init__(self, lines: int, config: Config) -> None:
        self.taken, self.lines = 0, lines
        self.places, self.positions = _Places(config), positions(config)
        self.event, self.node, self.seq = (np.empty(lines, np.int64) for _ in range(3))
        self.ints: dict[str, Ints] = {}
        self.names: list[tuple[int, str]] = []
        self.caches: list[tuple[int, tuple[tuple[int, int], ...]]] = []

    def take(self, text: bytes) -> None:
        """The next lines. UnlikeError where one of them is not as the schema has it."""
        try:
            self._take(_DECODER.decode_lines(text))
        except (msgspec.DecodeError, RecursionError, KeyError) as error:
            raise UnlikeError(str(error)) from error

    def _take(self, events: Sequence[Any]) -> None:
        begin, self.taken = self.taken, self.taken + len(events)
        if self.taken > self.lines:
            raise UnlikeError(f"expected {self.lines} objects, saw more")
        self.names += [(row, event.trace) for row, event in enumerate(events, begin) if event.trace is not None]
        kinds = [*map(type, events)]
        codes = np.fromiter((_EVENTS[kind].code for kind in kinds), np.int64, len(events))
        self.event[begin : self.taken] = codes
        for kind in map(_EVENTS.__getitem__, dict.fromkeys(kinds)):
            places = np.flatnonzero(codes == kind.code)
            self._alike(begin + places, [events[place] for place in places.tolist()], kind)

    def _alike(self, rows: Ints, events: Sequence[Any], kind: _Kind) -> None:
        """Lines of one event."""
        seq, node, *numbers = _numbers([*map(kind.values, events)]).T
        self.seq[rows] = seq
        self.node[rows] = np.fromiter(map(self.positions.__getitem__, node.tolist()), np.int64, len(events))
        for name, column in zip(kind.numbers, numbers, strict=True):
            self._column(name, rows, column)
        for name in kind.nodes:
            values = map(self.places.__getitem__, map(attrgetter(name), events))
            self._column(name, rows, np.fromiter(values, np.int64, len(events)))
        if kind.epochs:
            found = zip(rows.tolist(), [event.epochs for event in events], strict=True)
            self.caches += [(row, epochs) for row, epochs in found if isinstance(epochs, tuple)]

    def _column(self, name: str, rows: Ints, column: Ints) -> None:
        """A field of these rows; there is no column of what no line tells."""
        if name not in self.ints:
            if (column == UNKNOWN).all():
                return
            self.ints[name] = np.full(self.lines, UNKNOWN)
        self.ints[name][rows] = column

    def columns(self, trace_starts: Ints) -> Columns:
        """All of them."""
        caches = sorted(self.caches)
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
    """Numbers and truth values, as many in each row; null becomes -1."""
    flat = chain.from_iterable(rows)
    try:
        found = np.fromiter(flat, np.int64, len(rows) * len(rows[0]))
    except TypeError:
        found = np.array([-1 if value is None else value for row in rows for value in row], np.int64)
    return found.reshape(len(rows), -1)

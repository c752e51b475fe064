"""NDJSON to columns: as traces.files.ndjson and traces.columns together, fast where a file is large and in order.

Rules of this file

1. What comes out is what `to_columns(read(path).traces)` gives, config by config. A test holds the two ways together.
2. It is all or nothing: whatever is not as the schema has it is left to `traces.files.ndjson`, which reads line by line and
   says what is wrong. So are a null for a set or a list, and a number that does not count on.
"""

import json
import re
from collections.abc import Sequence
from functools import cache
from io import BytesIO
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow.json import ParseOptions, ReadOptions, read_json

from tidegauge.traces import configs
from tidegauge.traces.columns import INT_FIELDS, UNKNOWN, Columns, Ints, positions, to_columns
from tidegauge.traces.files import ndjson
from tidegauge.traces.schema import EVENTS, FIELDS, GAPS, LARGEST, VERSION, WHOLE, Config, FieldKind, Trace

BLOCK = 2**24
"""Bytes Arrow reads at a time; a longer line is left to the slow way."""

UNDEFINED = b":%d" % UNKNOWN
"""Stands for null, which the schema tells from a field left out and Arrow does not. No field has this value."""

PAIR = 2

_KINDS = {
    FieldKind.INT: pa.int64(),
    FieldKind.BOOL: pa.bool_(),
    FieldKind.NODE: pa.int64(),
    FieldKind.NODES: pa.list_(pa.int64()),
    FieldKind.EPOCHS: pa.list_(pa.list_(pa.int64())),
}
_ENVELOPE = {"v": pa.int64(), "trace": pa.string(), "node": pa.int64(), "seq": pa.int64(), "event": pa.string()}
_PARSING = ParseOptions(
    explicit_schema=pa.schema({**_ENVELOPE, **{name: _KINDS[field.kind] for name, field in FIELDS.items()}}),
    unexpected_field_behavior="ignore",
)

_NAMED = re.compile(rb'([^\n]*?"trace"[ \t]*:[ \t]*")([^"\\\x00-\x1f]*)("[^\n]*)')
"""A Config line cut around its name: all Config lines of a source say the same but for that, and are parsed once."""

_ANOTHER = re.compile(rb'"trace"|\\')


class Block(NamedTuple):
    """The traces of a file that share a config. `numbered` of their events tell `seq`, which is no column."""

    columns: Columns
    config: Config
    numbered: int


class _Head(NamedTuple):
    """A Config line: what it says, and the bytes of the event lines below it."""

    config: Config
    name: str
    tp: str
    first: int
    last: int


def read_at_once(data: bytes) -> list[Block] | None:
    """The traces of a file that holds nothing unexpected, those with the same config together; None for any other."""
    if not data.endswith(b"\n"):
        data += b"\n"
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            return None
    heads = _heads(data)
    if not heads:
        return None
    keys: dict[int, str] = {}
    groups: dict[str, list[_Head]] = {}
    for head in heads:
        key = keys.get(id(head.config)) or keys.setdefault(id(head.config), _key(head.config))
        groups.setdefault(key, []).append(head)
    batches = [_read(data, group) for group in groups.values()]
    found = [batch for batch in batches if batch is not None]
    return found if len(found) == len(batches) else None


def _key(config: Config) -> str:
    return json.dumps(configs.as_json(config), sort_keys=True)


def _heads(data: bytes) -> list[_Head]:
    """The Config lines; none if one of them is not as it should be, or events stand before the first."""
    lines: list[tuple[int, int, str]] = []
    said: list[tuple[Config, str]] = []
    known: dict[tuple[bytes, bytes], tuple[Config, str]] = {}
    names: set[str] = set()
    at = data.find(b'"Config"')
    while at >= 0:
        first, last = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
        at = data.find(b'"Config"', last)
        named = _NAMED.fullmatch(data, first, last)
        before, name, after = named.groups() if named else (data[first:last], b"", b"")
        text = name.decode() or f"trace-{len(lines) + 1}"
        config = known.get((before, after))
        if config is None:
            is_config, config, own = _head(data[first:last])
            if not is_config:
                continue
            if config is None or (own is not None and own != text):
                return []
            if not _ANOTHER.search(after):
                known[before, after] = config
        if text in names:
            return []
        names.add(text)
        lines.append((first, last + 1, text))
        said.append(config)
    if not lines or data[: lines[0][0]].strip():
        return []
    ends = [*(line[0] for line in lines[1:]), len(data)]
    return [
        _Head(config, name, tp, below, end) for (_, below, name), (config, tp), end in zip(lines, said, ends, strict=True)
    ]


def _head(raw: bytes) -> tuple[bool, tuple[Config, str] | None, str | None]:
    """Whether a line is a Config line; its config and topic-partition if all is well; the name it gives its trace."""
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        return True, None, None
    if not isinstance(line, dict) or line.get("event") != "Config":
        return False, None, None
    version = line.get("v", VERSION)
    if version is True or version != VERSION or configs.fault(line) is not None:
        return True, None, None
    name, tp = line.get("trace"), line.get("tp", "")
    own = name if isinstance(name, str) and name else None
    return True, (configs.from_json(line, ndjson.ENVELOPE), tp if isinstance(tp, str) else ""), own


def _read(data: bytes, heads: Sequence[_Head]) -> Block | None:
    """The events below `heads`, which share a config; None if any of them is not as the schema has it."""
    text = b"".join(data[head.first : head.last] for head in heads)
    text = text.replace(b":null", UNDEFINED).replace(b": null", UNDEFINED)
    counts = [data.count(b"\n", head.first, head.last) for head in heads]
    lines = sum(counts)
    if lines == 0:
        return Block(
            to_columns([Trace(head.name, head.tp, head.config, ()) for head in heads], heads[0].config), heads[0].config, 0
        )
    # Arrow takes objects as they come: only with one object a line is the count of lines the count of events
    if text.count(b"\n{") + text.startswith(b"{") != lines or text.count(b"}\n") != lines:
        return None
    try:
        table = read_json(BytesIO(text), ReadOptions(use_threads=False, block_size=BLOCK), _PARSING).combine_chunks()
    except pa.ArrowInvalid:
        return None
    if heads[0].config.extra.get(WHOLE) is False or heads[0].config.extra.get(GAPS):
        return None
    trace = np.repeat(np.arange(len(heads)), counts)
    found = _columns(table, heads[0].config, np.cumsum([0, *counts], dtype=np.int64)) if len(table) == lines else None
    if found is None or not _own_names(table, heads, trace) or not _in_sequence(table, found, trace):
        return None
    return Block(found, heads[0].config, int(_valid(table["seq"]).sum()))


def _columns(table: pa.Table, config: Config, trace_starts: Ints) -> Columns | None:
    """Columns if every value is one that the schema allows."""
    ids = [*positions(config)]
    code, node = _index(table["event"], [*EVENTS]), _index(table["node"], ids)
    if code is None or node is None or pc.any(pc.not_equal(table["v"], VERSION)).as_py():
        return None
    event = np.array([one.code for one in EVENTS.values()], dtype=np.int64)[code]
    ints: dict[str, Ints] = {}
    for name in INT_FIELDS:
        values = _values(table[name], FIELDS[name].kind, [*config.nodes])
        if values is None:
            return None
        values[~_carries(name)[code]] = UNKNOWN
        if (values != UNKNOWN).any():
            ints[name] = values
    reported = _valid(table["epochs"])
    pairs = table["epochs"].combine_chunks()
    numbers = _ints(pairs.flatten().flatten())
    if (pc.list_value_length(pairs.flatten()).to_numpy(zero_copy_only=False) != PAIR).any() or not _in_range(numbers):
        return None
    lengths = pc.fill_null(pc.list_value_length(pairs), 0).to_numpy().astype(np.int64)
    if reported[~_carries("epochs")[code]].any():
        return None
    return Columns(
        trace_starts=trace_starts,
        event=event,
        node=node,
        ints=ints,
        epochs_reported=reported,
        epochs_at=np.cumsum([0, *lengths], dtype=np.int64),
        epochs=numbers,
    )


def _values(column: pa.ChunkedArray, kind: FieldKind, nodes: list[int]) -> Ints | None:
    """A field as integers, UNKNOWN where it is not told; None if one is out of range."""
    reported = _valid(column)
    out = np.full(len(column), UNKNOWN, dtype=np.int64)
    if not reported.any():
        return out
    if kind is FieldKind.NODES:
        lists = column.combine_chunks()
        members = _index(lists.flatten(), nodes)
        if members is None:
            return None
        out[reported] = 0
        np.bitwise_or.at(out, pc.list_parent_indices(lists).to_numpy(), np.left_shift(1, members))
        return out
    found = _ints(pc.drop_null(column))
    undefined = found == UNKNOWN
    right = _index(pa.array(found[~undefined]), nodes) if kind is FieldKind.NODE else found[~undefined]
    if right is None or not _in_range(right):
        return None
    out[reported] = -1
    out[np.flatnonzero(reported)[~undefined]] = right
    return out


def _in_range(numbers: Ints) -> bool:
    return not len(numbers) or bool(numbers.min() >= -1 and numbers.max() < LARGEST)


def _own_names(table: pa.Table, heads: Sequence[_Head], trace: Ints) -> bool:
    """Whether the lines that name a trace name the one they stand in."""
    names = pa.array([head.name for head in heads]).take(pa.array(trace))
    return pc.all(pc.equal(table["trace"], names)).as_py() is not False


def _in_sequence(table: pa.Table, columns: Columns, trace: Ints) -> bool:
    """Whether `seq` begins with 0 or 1 and counts on at each node of each trace, but for a Start, which may begin anew."""
    rows = np.flatnonzero(_valid(table["seq"]))
    rows = rows[np.lexsort((rows, columns.node[rows], trace[rows]))]
    seq = pc.fill_null(table["seq"], 0).to_numpy()[rows]
    follows = (np.diff(trace[rows]) == 0) & (np.diff(columns.node[rows]) == 0)
    anew = (columns.event[rows[1:]] == EVENTS["Start"].code) & np.isin(seq[1:], (0, 1))
    begins = np.isin(seq, (0, 1))
    return bool((follows & (anew | (np.diff(seq) == 1)) | ~follows & begins[1:]).all() and begins[:1].all())


@cache
def _carries(name: str) -> NDArray[np.bool_]:
    """Which event, in the order of EVENTS, may tell a field."""
    return np.array([name in event.fields for event in EVENTS.values()], dtype=np.bool_)


def _valid(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    return np.asarray(pc.is_valid(column), dtype=np.bool_)


def _index(column: pa.ChunkedArray | pa.Array, among: list[int] | list[str]) -> Ints | None:
    """Each value's place in `among`; None if one is not there."""
    places = pc.index_in(column, value_set=pa.array(among, column.type))
    return None if places.null_count else np.asarray(places, dtype=np.int64)


def _ints(column: pa.ChunkedArray | pa.Array) -> Ints:
    return np.asarray(column.cast(pa.int64()), dtype=np.int64)

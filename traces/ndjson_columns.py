"""NDJSON to columns: as traces.ndjson and traces.columns together, fast where a file is large and in order.

Rules of this file

1. What comes out is what `to_columns(read(path).traces)` gives, config by config. A test holds the two ways together.
2. The fast way is all or nothing: whatever it does not expect, the slow way reads, and says what is wrong.
"""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from traces import configs, ndjson
from traces.columns import INT_FIELDS, Columns, to_columns
from traces.problems import Problem
from traces.schema import EVENTS, FIELDS, VERSION, Config, Kind, Trace

if TYPE_CHECKING:
    from traces.ndjson_kernel import Out

FAST_FROM = 4_000_000
"""Bytes from which the fast way pays for the time it takes to load the compiler."""


_NAMED = re.compile(rb'([^\n]*?"trace"[ \t]*:[ \t]*")([^"\\\x00-\x1f]*)("[^\n]*)')
"""A Config line cut around its name: all Config lines of a source say the same but for that, and are parsed once."""

_ANOTHER = re.compile(rb'"trace"|\\')


class Batch(NamedTuple):
    """The traces of a file that share a config: their columns, and (name, topic-partition) of each."""

    columns: Columns
    config: Config
    names: Sequence[tuple[str, str]]


class _Head(NamedTuple):
    """A Config line: what it says, and the bytes of the event lines below it."""

    config: Config
    name: str
    tp: str
    first: int
    last: int


def read_columns(path: str | Path, fast_from: int = FAST_FROM) -> tuple[list[Batch], list[Problem]]:
    """Everything that can be read from the file at `path`, as columns."""
    try:
        data = Path(path).read_bytes()
    except OSError:
        return [], ndjson.read(path).problems
    batches = fast_batches(data) if len(data) >= fast_from else None
    if batches is not None:
        return batches, []
    reading = ndjson.read_bytes(data, str(path))
    return batches_of(reading.traces), reading.problems


def batches_of(traces: Iterable[Trace]) -> list[Batch]:
    """Traces as columns, those with the same config together."""
    groups: dict[str, list[Trace]] = {}
    for trace in traces:
        groups.setdefault(_key(trace.config), []).append(trace)
    return [
        Batch(to_columns(group, group[0].config), group[0].config, [(trace.name, trace.tp) for trace in group])
        for group in groups.values()
    ]


def fast_batches(data: bytes) -> list[Batch] | None:
    """The batches of a file that holds nothing unexpected; None for any other."""
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
    batches = [_scanned(data, group) for group in groups.values()]
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


def _scanned(data: bytes, heads: Sequence[_Head]) -> Batch | None:
    from traces import ndjson_kernel as kernel  # noqa: PLC0415  needs the compiler

    config = heads[0].config
    ids = [*config.nodes]
    if config.controller is not None and config.controller not in ids:
        ids.append(config.controller)
    encoded = [head.name.encode() for head in heads]
    segments = kernel.Segments(
        first=np.array([head.first for head in heads], dtype=np.int64),
        last=np.array([head.last for head in heads], dtype=np.int64),
        name=np.frombuffer(b"".join(encoded), np.uint8),
        name_at=np.cumsum([0, *map(len, encoded)], dtype=np.int64),
    )
    rows = sum(data.count(b"\n", head.first, head.last) for head in heads)
    pairs = sum(head.last - head.first for head in heads) // len("[0,0]")
    out = kernel.Out(
        event=np.empty(rows, dtype=np.int64),
        node=np.empty(rows, dtype=np.int64),
        ints=np.empty((len(INT_FIELDS), rows), dtype=np.int64),
        told=np.zeros(len(INT_FIELDS), dtype=np.bool_),
        epochs_told=np.zeros(rows, dtype=np.bool_),
        epochs_at=np.zeros(rows + 1, dtype=np.int64),
        epochs=np.empty(2 * pairs, dtype=np.int64),
        trace_starts=np.zeros(len(heads) + 1, dtype=np.int64),
    )
    keys = [*INT_FIELDS, "epochs", *ndjson.ENVELOPE]
    kinds = {
        **{name: _KINDS[field.kind] for name, field in FIELDS.items()},
        **dict.fromkeys(ndjson.ENVELOPE, "SKIPPED"),
        "v": "VERSION",
        "trace": "NAME",
        "node": "AT_NODE",
        "seq": "SEQ",
        "event": "EVENT",
    }
    read = kernel.scan(
        np.frombuffer(data, np.uint8),
        segments,
        np.array(ids, dtype=np.int64),
        len(config.nodes),
        kernel.words({key: place for place, key in enumerate(keys)}),
        np.array([getattr(kernel, kinds[key]) for key in keys], dtype=np.int64),
        kernel.words({name: event.code for name, event in EVENTS.items()}),
        _allowed(),
        out,
    )
    return None if read < 0 else Batch(_columns(out, read), config, [(head.name, head.tp) for head in heads])


_KINDS = {Kind.INT: "SCALAR", Kind.BOOL: "BOOL", Kind.NODE: "NODE", Kind.NODES: "NODES", Kind.EPOCHS: "EPOCHS"}


def _allowed() -> "np.typing.NDArray[np.bool_]":
    """Which event may tell which field; the last two columns are `epochs`, and whether `seq` may start anew."""
    allowed = np.zeros((max(event.code for event in EVENTS.values()) + 1, len(INT_FIELDS) + 2), dtype=np.bool_)
    for name, event in EVENTS.items():
        allowed[event.code, :-1] = [field in event.fields for field in (*INT_FIELDS, "epochs")]
        allowed[event.code, -1] = name == "Start"
    return allowed


def _columns(out: "Out", rows: int) -> Columns:
    return Columns(
        trace_starts=out.trace_starts,
        event=out.event[:rows],
        node=out.node[:rows],
        ints={name: out.ints[at, :rows] for at, name in enumerate(INT_FIELDS) if out.told[at]},
        epochs_told=out.epochs_told[:rows],
        epochs_at=out.epochs_at[: rows + 1],
        epochs=out.epochs[: 2 * out.epochs_at[rows]],
    )

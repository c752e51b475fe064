"""NDJSON to columns: as traces.files.ndjson and traces.columns together, fast where a file is large and in order.

Rules of this file

1. What comes out is what `to_columns(read(path).traces)` gives, config by config. A test holds the two ways together.
2. It is all or nothing: whatever is not as the schema has it is left to `traces.files.ndjson`, which reads line by line and
   says what is wrong. So is a number that does not count on.
3. What one line says is asked in `traces.files.ndjson_rows`, of lines that recur once; here, what concerns more than one:
   one object a line, the trace's own name, `seq`.
"""

import json
import mmap
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tidegauge.traces import configs
from tidegauge.traces.columns import Columns, Ints, to_columns
from tidegauge.traces.files import ndjson
from tidegauge.traces.files.distinct import Distinct
from tidegauge.traces.files.ndjson_rows import Rows, UnlikeError
from tidegauge.traces.files.recurring_lines import recurring
from tidegauge.traces.schema import EVENTS, GAPS, VERSION, WHOLE, Config, Trace

BLOCK = 2**19
"""Bytes that become structs and then columns at a time: they stay in the processor's cache in between."""

NEWLINE = ord("\n")

_NAMED = re.compile(rb'([^\n]*?"trace"[ \t]*:[ \t]*")([^"\\\x00-\x1f]*)("[^\n]*)')
"""A Config line cut around its name: all Config lines of a source say the same but for that, and are parsed once."""

_ANOTHER = re.compile(rb'"trace"|\\')


UNNAMED, OTHER = -1, -2
"""In place of the number of a trace: a line names none, or one that is not there."""


Span = tuple[int, int]
"""The first byte of some traces, and the first behind them."""


class Block(NamedTuple):
    """The traces of a file that share a config. `numbered` of their events tell `seq`, which is no column."""

    stored: Columns | Distinct
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
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == NEWLINE)
    batches = [_read(data, ends, group) for group in groups.values()]
    found = [batch for batch in batches if batch is not None]
    return found if len(found) == len(batches) else None


def _key(config: Config) -> str:
    return json.dumps(configs.as_json(config), sort_keys=True)


def spans(path: Path, least: int) -> list[Span]:
    """A file cut between its traces, into pieces of at least so many bytes but for the last; none where a Config line is not
    as it should be, or a trace is called by its place in the file, for it has no name. The file is not kept in memory.
    """
    ends = [0]
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for number, head in enumerate(_heads(data), 1):
            if head.name == f"trace-{number}":
                return []
            if head.last - ends[-1] >= least or head.last == len(data):
                ends.append(head.last)
    return list(pairwise(ends)) if len(ends) > 2 else []


def bytes_of(path: Path, span: Span | None) -> bytes:
    """What is there of a file, or all of it."""
    if span is None:
        return path.read_bytes()
    with path.open("rb") as file:
        file.seek(span[0])
        return file.read(span[1] - span[0])


def _heads(data: "bytes | mmap.mmap") -> list[_Head]:
    """The Config lines; none if one of them is not as it should be, or events stand before the first."""
    lines: list[tuple[int, int, str]] = []
    said: list[tuple[Config, str]] = []
    known: dict[tuple[bytes, bytes], tuple[Config, str]] = {}
    names: set[str] = set()
    at = data.find(b'"Config"')
    while at >= 0:
        first, last = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
        if last < 0:
            return []
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


def _read(data: bytes, ends: Ints, heads: Sequence[_Head]) -> Block | None:
    """The events below `heads`, which share a config; None if any of them is not as the schema has it.

    `ends`: where the lines of the data end.
    """
    config = heads[0].config
    if config.extra.get(WHOLE) is False or config.extra.get(GAPS):
        return None
    text = b"".join(data[head.first : head.last] for head in heads)
    counts = np.diff(np.searchsorted(ends, [(head.first, head.last) for head in heads])).ravel()
    lines = int(counts.sum())
    if lines == 0:
        return Block(to_columns([Trace(head.name, head.tp, head.config, ()) for head in heads], config), config, 0)
    different, at = recurring(_blocks(text)) or (text, slice(None))
    rows = Rows(different.count(b"\n"), config)
    # msgspec takes objects as they come: only with one object a line is the count of lines the count of events
    if not different.startswith(b"{") or not different.endswith(b"}\n") or different.count(b"}\n{") != rows.lines - 1:
        return None
    try:
        for block in _blocks(different):
            rows.take(block)
    except UnlikeError:
        return None
    if rows.taken != rows.lines:
        return None
    trace, starts = np.repeat(np.arange(len(heads)), counts), np.concatenate(([0], np.cumsum(counts)))
    table, seq = rows.columns(starts), rows.seq[at]
    if not _in_their_traces(rows, heads, at, trace) or not _in_sequence(table.event[at], table.node[at], seq, trace):
        return None
    return Block(table if isinstance(at, slice) else Distinct(table, at), config, int((seq >= 0).sum()))


def _blocks(text: bytes) -> Iterator[bytes]:
    """Whole lines, about BLOCK bytes at a time."""
    begin = 0
    while begin < len(text):
        end = text.find(b"\n", begin + BLOCK) + 1 or len(text)
        yield text[begin:end]
        begin = end


def _in_their_traces(rows: Rows, heads: Sequence[_Head], at: Ints | slice, trace: Ints) -> bool:
    """Whether lines that name a trace stand in it."""
    numbers = {head.name: number for number, head in enumerate(heads)}
    named = np.full(rows.taken, UNNAMED)
    for row, name in rows.names:
        named[row] = numbers.get(name, OTHER)
    return bool(((named[at] == UNNAMED) | (named[at] == trace)).all())


def _in_sequence(event: Ints, node: Ints, seq: Ints, trace: Ints) -> bool:
    """Whether `seq` begins with 0 or 1 and counts on at each node of each trace, but for a Start, which may begin anew."""
    rows = np.flatnonzero(seq >= 0)
    rows = rows[np.lexsort((rows, node[rows], trace[rows]))]
    seq = seq[rows]
    follows = (np.diff(trace[rows]) == 0) & (np.diff(node[rows]) == 0)
    anew = (event[rows[1:]] == EVENTS["Start"].code) & np.isin(seq[1:], (0, 1))
    begins = np.isin(seq, (0, 1))
    return bool((follows & (anew | (np.diff(seq) == 1)) | ~follows & begins[1:]).all() and begins[:1].all())

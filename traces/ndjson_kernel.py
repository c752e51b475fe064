"""Lines of events straight into columns: the part of reading NDJSON that runs as machine code.

Rules of this file

1. It reads what a writer of traces writes: flat objects of numbers, truth values, null, strings and lists of integers.
   At anything else it stops and says so; then traces.ndjson reads the file, slower, and says what is wrong. So this file
   never judges an input, and what it does read it reads as traces.ndjson does.
2. Every index is below the length of its array: a line ends with a line feed, which no loop passes.
3. Only traces.ndjson_columns imports this file, and only for large input: it needs the compiler.
"""

from collections.abc import Callable
from typing import NamedTuple, ParamSpec, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from traces.columns import UNKNOWN

P = ParamSpec("P")
R = TypeVar("R")
Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]

SCALAR, BOOL, NODE, NODES, EPOCHS, VERSION, NAME, SEQ, AT_NODE, EVENT, SKIPPED = range(11)
"""What stands behind a key."""

LINE_FEED, QUOTE, COMMA, COLON, OPEN, CLOSE, OPEN_LIST, CLOSE_LIST, BACKSLASH, MINUS, ZERO, NINE = (
    ord(character) for character in '\n",:{}[]\\-09'
)
TABLE = 1024
"""Places in the hash table of words, so many that known words hardly share one; a power of two."""

MOST_DIGITS = 18
MOST_KEYS = 64


def _compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Machine code, kept between processes where a cache can be written (inside a zip there is none)."""
    try:
        return cast(Callable[P, R], numba.njit(cache=True)(function))
    except RuntimeError:
        return cast(Callable[P, R], numba.njit(function))


class Words(NamedTuple):
    """Known words: `place` maps a hash to a word (-1 none); its text is text[at[w]:at[w + 1]], its meaning value[w]."""

    place: Ints
    text: Bytes
    at: Ints
    value: Ints


class Segments(NamedTuple):
    """The event lines of each trace: data[first[t]:last[t]], and the name of the trace."""

    first: Ints
    last: Ints
    name: Bytes
    name_at: Ints


class Out(NamedTuple):
    """Room for the result: a row of `ints` per field, a column per line."""

    event: Ints
    node: Ints
    ints: Ints
    told: Flags
    epochs_told: Flags
    epochs_at: Ints
    epochs: Ints
    trace_starts: Ints


def word_hash(text: bytes) -> int:
    """The place of a word by its length and three of its bytes: known words are few, and compared byte by byte anyway."""
    last = len(text) - 1
    return (len(text) * 37 + text[0] * 5 + text[len(text) // 2] * 67 + text[last] * 131) & (TABLE - 1)


def words(meanings: dict[str, int]) -> Words:
    """A table of known words; those that share a place stand behind each other."""
    place = np.full(2 * TABLE, -1, dtype=np.int64)
    encoded = [word.encode() for word in meanings]
    for number, word in enumerate(encoded):
        free = word_hash(word)
        while place[free] >= 0:
            free += 1
        place[free] = number
    at = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return Words(place, np.frombuffer(b"".join(encoded), np.uint8), at, np.array(list(meanings.values()), np.int64))


FALSE = 2**62 + 1
TRUE = 2**62 + 2
NULL = 2**62 + 3
"""What `_scalar` gives for the three words: above every integer it reads."""


@_compiled
def _blank(data: Bytes, i: int) -> int:
    """The first byte from i on that is no blank; a line feed is none."""
    while data[i] == 32 or data[i] == 9 or data[i] == 13:
        i += 1
    return i


@_compiled
def _word(data: Bytes, i: int, known: Words) -> tuple[int, int]:
    """The meaning of the string that begins at i (-1 unknown), and where it ended (-1: not plain)."""
    first = i
    while data[i] != QUOTE:
        if data[i] == BACKSLASH or data[i] < 32:
            return -1, -1
        i += 1
    length = i - first
    if length == 0:
        return -1, i + 1
    place = (
        length * 37 + np.int64(data[first]) * 5 + np.int64(data[first + length // 2]) * 67 + np.int64(data[i - 1]) * 131
    ) & (TABLE - 1)
    while known.place[place] >= 0:
        word = known.place[place]
        if known.at[word + 1] - known.at[word] == length:
            same = True
            for k in range(length):
                if known.text[known.at[word] + k] != data[first + k]:
                    same = False
                    break
            if same:
                return known.value[word], i + 1
        place += 1
    return -1, i + 1


@_compiled
def _same_name(data: Bytes, i: int, name: Bytes, first: int, last: int) -> int:
    """Where the string at i ended, if it is this name; else -1."""
    if data[i] != QUOTE:
        return -1
    for k in range(first, last):
        i += 1
        if data[i] != name[k] or data[i] == BACKSLASH or data[i] < 32:
            return -1
    return i + 2 if data[i + 1] == QUOTE else -1


@_compiled
def _ended(byte: int) -> bool:
    return byte == COMMA or byte == CLOSE or byte == CLOSE_LIST or byte == 32 or byte == 9 or byte == 13


@_compiled
def _scalar(data: Bytes, i: int) -> tuple[int, int]:
    """An integer, or TRUE, FALSE, NULL, and where it ended; (UNKNOWN, -1) if it is neither."""
    first = i
    if data[i] == MINUS:
        i += 1
    value = 0
    digits = i
    while ZERO <= data[i] <= NINE:
        value = value * 10 + (np.int64(data[i]) - ZERO)  # type: ignore[assignment]
        i += 1
        if i - digits > MOST_DIGITS:
            return UNKNOWN, -1
    if i > digits:
        if not _ended(data[i]) or (data[digits] == ZERO and i > digits + 1):
            return UNKNOWN, -1
        return (-value if digits > first else value), i
    if digits == first:
        if data[i] == 110 and data[i + 1] == 117 and data[i + 2] == 108 and data[i + 3] == 108 and _ended(data[i + 4]):
            return NULL, i + 4
        if data[i] == 116 and data[i + 1] == 114 and data[i + 2] == 117 and data[i + 3] == 101 and _ended(data[i + 4]):
            return TRUE, i + 4
        if (
            data[i] == 102
            and data[i + 1] == 97
            and data[i + 2] == 108
            and data[i + 3] == 115
            and data[i + 4] == 101
            and _ended(data[i + 5])
        ):
            return FALSE, i + 5
    return UNKNOWN, -1


@_compiled
def _escaped(byte: int) -> bool:
    """What may stand behind a backslash, code points aside: one of \"\\/bfnrt."""
    plain = byte == QUOTE or byte == BACKSLASH or byte == 47
    return plain or byte == 98 or byte == 102 or byte == 110 or byte == 114 or byte == 116


@_compiled
def _digits(data: Bytes, i: int) -> int:
    """Where the digits that begin at i end; -1 if there is none."""
    first = i
    while ZERO <= data[i] <= NINE:
        i += 1
    return i if i > first else -1


@_compiled
def _skip_number(data: Bytes, i: int) -> int:
    """Where a number of any length, with a fraction or an exponent, ended; -1 if there is none."""
    if data[i] == MINUS:
        i += 1
    first, i = i, _digits(data, i)
    if i < 0 or (data[first] == ZERO and i > first + 1):
        return -1
    if data[i] == 46:
        i = _digits(data, i + 1)
        if i < 0:
            return -1
    if data[i] == 101 or data[i] == 69:
        i += 2 if data[i + 1] == 43 or data[i + 1] == MINUS else 1
        i = _digits(data, i)
        if i < 0:
            return -1
    return i if _ended(data[i]) else -1


@_compiled
def _skip(data: Bytes, i: int) -> int:
    """Where a string, a number or a word ended; -1 if it is none, or holds an escaped code point."""
    if data[i] != QUOTE:
        value, end = _scalar(data, i)
        return end if value != UNKNOWN else _skip_number(data, i)
    i += 1
    while data[i] != QUOTE:
        if data[i] < 32:
            return -1
        if data[i] == BACKSLASH:
            i += 1
            if not _escaped(data[i]):
                return -1
        i += 1
    return i + 1


@_compiled
def _position(ids: Ints, value: int) -> int:
    for position in range(len(ids)):
        if ids[position] == value:
            return position
    return -1


@_compiled
def _nodes(data: Bytes, i: int, ids: Ints) -> tuple[int, int]:
    """A list of node ids as a mask."""
    if data[i] != OPEN_LIST:
        value, i = _scalar(data, i)
        return -1, (i if value == NULL else -1)
    mask = 0
    i = _blank(data, i + 1)
    if data[i] == CLOSE_LIST:
        return mask, i + 1
    while True:
        value, i = _scalar(data, i)
        if i < 0 or _position(ids, value) < 0:
            return mask, -1
        mask |= 1 << _position(ids, value)
        i = _blank(data, i)
        if data[i] == CLOSE_LIST:
            return mask, i + 1
        if data[i] != COMMA:
            return mask, -1
        i = _blank(data, i + 1)


@_compiled
def _pairs(data: Bytes, i: int, epochs: Ints, pairs: int) -> tuple[int, int]:
    """Append a list of pairs; the number of pairs there are then, -1 for null."""
    if data[i] != OPEN_LIST:
        value, i = _scalar(data, i)
        return -1, (i if value == NULL else -1)
    i = _blank(data, i + 1)
    if data[i] == CLOSE_LIST:
        return pairs, i + 1
    while True:
        if data[i] != OPEN_LIST:
            return pairs, -1
        for part in range(2):
            value, i = _scalar(data, _blank(data, i + 1))
            if i < 0 or value < -1 or value > 2**62:
                return pairs, -1
            epochs[2 * pairs + part] = value
            i = _blank(data, i)
            if data[i] != (COMMA if part == 0 else CLOSE_LIST):
                return pairs, -1
        pairs += 1
        i = _blank(data, i + 1)
        if data[i] == CLOSE_LIST:
            return pairs, i + 1
        if data[i] != COMMA:
            return pairs, -1
        i = _blank(data, i + 1)


@_compiled
def scan(
    data: Bytes,
    segments: Segments,
    ids: Ints,
    brokers: int,
    keys: Words,
    kinds: Ints,
    events: Words,
    allowed: Flags,
    out: Out,
) -> int:
    """Read all segments into `out`; the number of events, or -1 at the first line that is not plain.

    `ids` are the nodes of the Config, the first `brokers` of them brokers. `keys` give the number of a field, or of an
    envelope key behind the fields; `kinds` what stands behind each.
    """
    fields = out.ints.shape[0]
    scratch = np.zeros(fields, dtype=np.int64)
    told_here = np.zeros(MOST_KEYS, dtype=np.int64)
    last_seq = np.full(len(ids), UNKNOWN, dtype=np.int64)
    row = 0
    pairs = 0
    for trace in range(len(segments.first)):
        last_seq[:] = UNKNOWN
        i = segments.first[trace]
        while i < segments.last[trace]:
            i = _blank(data, i)
            if data[i] == LINE_FEED:
                i += 1
                continue
            if data[i] != OPEN:
                return -1
            i = _blank(data, i + 1)
            present = 0
            code, node, seq, line_pairs, epochs_told = -1, -1, UNKNOWN, pairs, False
            while True:
                if data[i] != QUOTE:
                    return -1
                key, i = _word(data, i + 1, keys)
                if i < 0:
                    return -1
                kind = SKIPPED if key < 0 else kinds[key]
                if kind < EPOCHS:
                    if present == MOST_KEYS:
                        return -1
                    told_here[present] = key
                    present += 1
                i = _blank(data, i)
                if data[i] != COLON:
                    return -1
                i = _blank(data, i + 1)
                if kind == EVENT:
                    if data[i] != QUOTE:
                        return -1
                    code, i = _word(data, i + 1, events)
                    if i < 0 or code < 0:
                        return -1
                elif kind == NAME:
                    i = _same_name(data, i, segments.name, segments.name_at[trace], segments.name_at[trace + 1])
                    if i < 0:
                        return -1
                elif kind == SKIPPED:
                    i = _skip(data, i)
                    if i < 0:
                        return -1
                elif kind == NODES:
                    scratch[key], i = _nodes(data, i, ids[:brokers])
                    if i < 0:
                        return -1
                elif kind == EPOCHS:
                    if epochs_told:
                        return -1
                    before = pairs
                    pairs, i = _pairs(data, i, out.epochs, pairs)
                    if i < 0:
                        return -1
                    epochs_told = pairs >= before
                    pairs = max(pairs, before)
                else:
                    value, i = _scalar(data, i)
                    if i < 0 or (value == UNKNOWN):
                        return -1
                    if kind == BOOL:
                        if value != NULL and value != TRUE and value != FALSE:
                            return -1
                        scratch[key] = -1 if value == NULL else value - FALSE
                    elif value == TRUE or value == FALSE:
                        return -1
                    elif kind == SCALAR:
                        if value != NULL and value < -1:
                            return -1
                        scratch[key] = -1 if value == NULL else value
                    elif kind == NODE:
                        scratch[key] = -1 if value == NULL else _position(ids[:brokers], value)
                        if value != NULL and scratch[key] < 0:
                            return -1
                    elif kind == AT_NODE:
                        node = -1 if value == NULL else _position(ids, value)
                    elif kind == SEQ:
                        seq = UNKNOWN if value == NULL else value
                    elif value != 1:  # the version
                        return -1
                i = _blank(data, i)
                if data[i] == CLOSE:
                    break
                if data[i] != COMMA:
                    return -1
                i = _blank(data, i + 1)
            i = _blank(data, i + 1)
            if data[i] != LINE_FEED or code < 0 or node < 0:
                return -1
            i += 1
            if seq != UNKNOWN:
                if last_seq[node] != UNKNOWN and seq != last_seq[node] + 1 and not allowed[code, fields + 1]:
                    return -1
                last_seq[node] = seq
            out.event[row] = code
            out.node[row] = node
            for at in range(present):
                field = told_here[at]
                if allowed[code, field]:
                    if not out.told[field]:
                        out.told[field] = True
                        out.ints[field, :] = UNKNOWN
                    out.ints[field, row] = scratch[field]
            if not epochs_told or not allowed[code, fields]:
                pairs, epochs_told = line_pairs, False
            out.epochs_told[row] = epochs_told
            row += 1
            out.epochs_at[row] = pairs
        out.trace_starts[trace + 1] = row
    return row

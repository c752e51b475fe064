"""The judge asked about one event at a time, and its memory as bytes in between.

Rules of this file

1. What can no longer matter is forgotten before a memory is saved (conformance.kernel.memory), so the same knowledge is the
   same bytes. What a run counts is not part of it.
2. A memory that does not fit into bytes is not saved; whoever asks goes without it.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegauge.conformance.kernel import state as s
from tidegauge.traces.columns import UNKNOWN

Bytes = NDArray[np.int8]
Table = NDArray[np.int64]
"""Rows of numbers."""

FREE, UNKNOWN_BYTE, LARGEST = -1, -128, 127
WORD = 8


class Judge(NamedTuple):
    """What the kernel's functions take: its table, the columns of all events, one row and its span, no final states."""

    st: s.State
    columns: tuple[Any, ...]
    event: s.Ints
    node: s.Ints
    reported: NDArray[np.bool_]
    pairs_at: s.Ints
    pairs: s.Ints
    row: s.Ints
    missing: s.Ints
    span: s.Ints
    final: NDArray[np.int64]
    caches: NDArray[np.int64]


def judge_from(st: s.State, inputs: tuple[Any, ...]) -> Judge:
    """A judge with this table, to be asked about the rows of these columns (conformance.judging.judge.frozen_inputs)."""
    columns, event, node, reported, pairs_at, pairs, _, _, _ = inputs
    brokers, room = int(st[s.OPTION, s.BROKERS]), int(st[s.WHOLE, s.ROOM])
    none, caches = np.zeros((0, brokers, len(s.FINAL)), np.int64), np.zeros((0, brokers, room, 2), np.int64)
    row, span = np.zeros(1, np.int64), np.array([0, 1], np.int64)
    return Judge(st, columns, event, node, reported, pairs_at, pairs, row, inputs[7], span, none, caches)


def ask(run: Any, judge: Judge, number: int) -> None:
    """The judge reads one event."""
    judge.row[0] = number
    run(
        judge.st,
        judge.columns,
        judge.event,
        judge.node,
        judge.reported,
        judge.pairs_at,
        judge.pairs,
        judge.row,
        judge.missing,
        judge.span,
        judge.final,
        judge.caches,
    )


def spans_of(st: s.State) -> Table:
    """The cells that are the memory of the judge: rows, and how many columns of each."""
    whole = st[s.WHOLE].tolist()
    room, past, n = whole[s.ROOM], whole[s.PAST], int(st[s.OPTION, s.BROKERS])
    parts = (
        (s.WHOLE, 1, s.NOW),
        (s.REPLICAS, n, s.REPLICA),
        (whole[s.AT_PAIRS], n * n, s.PAIR),
        (whole[s.AT_LOGS], 2 * (n + past), room + 1),
        (whole[s.AT_REGISTRATIONS], past, s.R_REPLICAS + 1),
        (whole[s.AT_TERMS], past, s.TERM_COLUMNS),
    )
    return np.array([(first + i, width) for first, rows, width in parts for i in range(rows)], np.int64)


def empty_memories(spans: Table, count: int) -> Bytes:
    """Room for so many. They are compared as words of eight bytes, so the last word is filled up."""
    return np.zeros((count, -(-int(spans[:, 1].sum()) // WORD) * WORD), np.int8)


def restore(st: s.State, spans: Table, memory: Bytes) -> None:
    """The judge knows again what it knew; nothing has failed."""
    at = 0
    for i in range(len(spans)):
        row = spans[i, 0]
        for k in range(spans[i, 1]):
            value = memory[at]
            st[row, k] = UNKNOWN if value == UNKNOWN_BYTE else value
            at += 1
    st[s.WHOLE, s.FAILED] = 0
    st[s.WHOLE, s.FAILURES] = 0
    st[s.WHOLE, s.OVERFLOW] = 0


def save(st: s.State, spans: Table, memory: Bytes) -> bool:
    """Write down what the judge knows; False where a value is too large for a byte."""
    at = 0
    for i in range(len(spans)):
        row = spans[i, 0]
        for k in range(spans[i, 1]):
            value = st[row, k]
            if value == UNKNOWN:
                memory[at] = UNKNOWN_BYTE
            elif -LARGEST <= value <= LARGEST:
                memory[at] = value
            else:
                return False
            at += 1
    return True


def mixed(h: int, value: int) -> int:
    """One round of a hash in 63 bits, so that compiled and interpreted numbers agree."""
    h = (h ^ value) * 0x1E3779B97F4A7C15 & 0x7FFFFFFFFFFFFFFF
    return h ^ h >> 32


def remembered(rows: Table, at: s.Ints, count: int) -> int:
    """The number of the row that stands behind the last: that of the same row before, or its own. `at`: a hash table."""
    h = 0
    for k in range(rows.shape[1]):
        h = mixed(h, int(rows[count, k]))
    slot = h % len(at)
    while at[slot] != FREE:
        other = at[slot]
        same = True
        for k in range(rows.shape[1]):
            if rows[other, k] != rows[count, k]:
                same = False
                break
        if same:
            return int(other)
        slot = (slot + 1) % len(at)
    at[slot] = count
    return count

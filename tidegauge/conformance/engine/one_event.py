"""Judge one event at a time, with the judge's memory as bytes in between.

`st` is the kernel's table (judge.state). The memory is the part of it that says what is known of the partition: the tallies
and failures are not part of it. There are two ways to write it: `save` and `restore` copy all cells, also those not in use,
so that every memory is of one length; `pack` and `unpack` leave out the room after the last registration, term and entry
of a log. A byte is the value of a cell, UNKNOWN_BYTE for UNKNOWN.

Rules of this file

1. In packed bytes counts come first and give the length of the rest. So two memories are the same exactly when their bytes
   are, if the table was made canonical before (conformance.judge.compaction).
2. Cells that `unpack` does not write keep the values of another memory. The kernel does not read them: it leaves them as
   they are between traces, too (conformance.judge.state.forget).
3. Rows are packed whole, and a value that is too large for a byte is noticed at the end: only loops without an exit become
   vector instructions. A memory with such a value is not kept, and the caller must do without it.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegauge.conformance.judge import state as s
from tidegauge.traces.columns import UNKNOWN

MemoryBytes = NDArray[np.int8]
MemoryTable = NDArray[np.int64]
"""Rows of numbers."""

FREE = -1
"""A slot of a hash table that is not in use."""
UNKNOWN_BYTE, LARGEST = -128, 127
"""The byte of an UNKNOWN value; the largest absolute value that a byte of a memory can have."""
WORD = 8
"""Bytes of a word, by which memories are compared."""


class Judge(NamedTuple):
    """Arguments of the kernel (judge.kernel.judge_traces), in its order: one row of the events is judged as a trace.

    `st` is its table. `columns` to `pairs` are the columns of all events: the fields, the kind of event, the node, and the
    epoch caches: whether one is reported, where its (epoch, start offset) pairs begin, the pairs. `row` has the number of
    the row to judge, `missing` as in traces.columns.Columns, `span` is (0, 1): one trace of one event. `final` and `caches`
    are empty: no last states are kept.
    """

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
    """Make a judge with this table for single rows of these columns (conformance.engine.judge.frozen_inputs)."""
    columns, event, node, reported, pairs_at, pairs, _, missing, _ = inputs  # not the rows, and the starts of traces
    brokers, room = int(st[s.OPTION, s.BROKERS]), int(st[s.PARTITION, s.CACHE_ROOM])
    no_states, no_caches = np.zeros((0, brokers, len(s.FINAL)), np.int64), np.zeros((0, brokers, room, 2), np.int64)
    row, span = np.zeros(1, np.int64), np.array([0, 1], np.int64)
    return Judge(st, columns, event, node, reported, pairs_at, pairs, row, missing, span, no_states, no_caches)


def judge_event(run: Any, judge: Judge, number: int) -> None:
    """Judge the event in row `number` of the judge's columns with the kernel `run` (judge.kernel.judge_traces)."""
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


def spans_of(st: s.State) -> MemoryTable:
    """Return the cells that are the memory of the judge, all room included: pairs of a row and how many columns of it."""
    scalars = st[s.PARTITION].tolist()
    room, past, n = scalars[s.CACHE_ROOM], scalars[s.PAST_ROOM], int(st[s.OPTION, s.BROKERS])
    # Each part: its first row, how many rows it has, and how many columns of them are memory.
    parts = (
        (s.PARTITION, 1, s.NOW),
        (s.REPLICAS, n, s.REPLICA),
        (scalars[s.AT_PAIRS], n * n, s.PAIR),
        (scalars[s.AT_LOGS], 2 * (n + past), room + 1),
        (scalars[s.AT_REGISTRATIONS], past, s.R_REPLICAS + 1),
        (scalars[s.AT_TERMS], past, s.TERM_COLUMNS),
    )
    return np.array([(first + i, width) for first, rows, width in parts for i in range(rows)], np.int64)


def empty_memories(spans: MemoryTable, count: int) -> MemoryBytes:
    """Make room for so many memories as `save` writes them, each padded to words of eight bytes."""
    return np.zeros((count, -(-int(spans[:, 1].sum()) // WORD) * WORD), np.int8)


def restore(st: s.State, spans: MemoryTable, memory: MemoryBytes) -> None:
    """Copy a memory that `save` wrote back into the table, and clear the marks of failures; `spans`: see spans_of."""
    at = 0
    for i in range(len(spans)):
        row = spans[i, 0]
        for k in range(spans[i, 1]):
            value = memory[at]
            st[row, k] = UNKNOWN if value == UNKNOWN_BYTE else value
            at += 1
    st[s.PARTITION, s.FAILED] = 0
    st[s.PARTITION, s.FAILURES] = 0
    st[s.PARTITION, s.OVERFLOW] = 0


def save(st: s.State, spans: MemoryTable, memory: MemoryBytes) -> bool:
    """Copy the cells of `spans` (spans_of) from the table to bytes; return False if a value is too large for a byte."""
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


def mix(h: int, value: int) -> int:
    """Mix a value into a hash of 63 bits, so that compiled and interpreted numbers agree."""
    # Python's numbers do not overflow, machine numbers do: the mask makes both give the same bits.
    h = (h ^ value) * 0x1E3779B97F4A7C15 & 0x7FFFFFFFFFFFFFFF
    return h ^ h >> 32


def intern_memory(rows: MemoryTable, at: s.Ints, count: int) -> int:
    """Return the number of a row before row `count` that is equal to it; else enter `count` and return it.

    `at` is a hash table of the numbers of rows, by content, with open addressing: FREE where a slot is not in use.
    """
    h = 0
    for k in range(rows.shape[1]):
        h = mix(h, int(rows[count, k]))
    slot = h % len(at)
    while at[slot] != FREE:
        other = at[slot]
        same = True  # equal hashes are not enough: the rows are compared
        for k in range(rows.shape[1]):
            if rows[other, k] != rows[count, k]:
                same = False
                break
        if same:
            return int(other)
        slot = (slot + 1) % len(at)
    at[slot] = count
    return count


def transfer_row(st: s.State, row: int, first: int, width: int, memory: MemoryBytes, at: int, write: bool) -> int:
    """Copy `width` cells of a row, from column `first` on, to the memory at byte `at` (`write`), or from there back.

    Return the largest absolute value that was written, 0 for none.
    """
    cells, written = st[row, first : first + width], memory[at : at + width]
    largest = 0
    if write:
        for k in range(width):
            value = cells[k]
            largest = max(largest, abs(0 if value == UNKNOWN else value))
            written[k] = UNKNOWN_BYTE if value == UNKNOWN else min(max(value, -LARGEST), LARGEST)
    else:
        for k in range(width):
            cells[k] = UNKNOWN if written[k] == UNKNOWN_BYTE else written[k]
    return largest


def transfer_table(st: s.State, memory: MemoryBytes, begin: int, write: bool) -> int:
    """Copy what is in use of the table to the memory from byte `begin` on (`write`), or from there back.

    Return where the memory ends, or -1 if a value is too large for a byte.
    """
    n, room = st[s.OPTION, s.BROKERS], st[s.PARTITION, s.CACHE_ROOM]
    largest = transfer_row(st, s.PARTITION, 0, s.NOW, memory, begin, write)
    # The counts of registrations and terms are in this first row: when reading, they are known from here on.
    at = begin + s.NOW
    # Each part: its first row, how many rows of it are in use, and their columns.
    for first, rows, width in (
        (s.REPLICAS, n, s.REPLICA),
        (st[s.PARTITION, s.AT_PAIRS], n * n, s.PAIR),
        (st[s.PARTITION, s.AT_REGISTRATIONS], st[s.PARTITION, s.REGISTRATIONS], s.R_REPLICAS + 1),
        (st[s.PARTITION, s.AT_TERMS], st[s.PARTITION, s.TERMS], s.TERM_COLUMNS),
    ):
        for row in range(first, first + rows):
            largest = max(largest, transfer_row(st, row, 0, width, memory, at, write))
            at += width
    for log in range(n + st[s.PARTITION, s.TERMS]):
        # Logs of replicas come first, then those of terms. An unknown cache, which is negative, has no entries to copy.
        cached = max(st[s.REPLICAS + log, s.CACHED] if log < n else st[st[s.PARTITION, s.AT_TERMS] + log - n, s.T_CACHED], 0)
        # A log is two rows, epochs and start offsets, with one more cell after the room for entries.
        for row in range(st[s.PARTITION, s.AT_LOGS] + 2 * log, st[s.PARTITION, s.AT_LOGS] + 2 * log + 2):
            largest = max(largest, transfer_row(st, row, 0, cached, memory, at, write))
            largest = max(largest, transfer_row(st, row, room, 1, memory, at + cached, write))
            at += cached + 1
    return at if largest <= LARGEST else -1


def pack(st: s.State, memory: MemoryBytes, begin: int) -> int:
    """Copy the table to a memory from byte `begin` on. Return where the next word begins, or -1 if a value is too large."""
    at = transfer_table(st, memory, begin, True)  # to the memory
    if at < 0:
        return -1
    # Memories are compared word by word, so the rest of the last word must not differ.
    while at % WORD != 0:
        memory[at] = 0
        at += 1
    return at


def unpack(st: s.State, memory: MemoryBytes, begin: int) -> None:
    """Copy the memory at byte `begin`, which `pack` wrote, back to the table, and clear the marks of failures."""
    transfer_table(st, memory, begin, False)  # from the memory
    st[s.PARTITION, s.FAILED] = 0
    st[s.PARTITION, s.FAILURES] = 0
    st[s.PARTITION, s.OVERFLOW] = 0

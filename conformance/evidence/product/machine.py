"""The product of an automaton and the judge, breadth first; compiled, or interpreted where the graph is tiny.

Rules of this file

1. A state of the product is (state of the automaton, memory of the judge). The kernel judges one event at a time; its memory
   is saved, after what can no longer matter was forgotten (conformance.kernel.memory), and restored cell by cell.
2. What the judge makes of an event depends on its memory alone, so it is asked once for each memory and event.
3. Tables have the room they are given: a search that runs out of it returns, is given more, and goes on.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegauge.conformance.kernel.rule_ids import RULES
from tidegauge.conformance.kernel.state import FAILED, FAILURES, OVERFLOW, TALLIES, UNDECIDED_COUNT, WHOLE, State
from tidegauge.traces.columns import UNKNOWN

Ints = NDArray[np.int64]
Bytes = NDArray[np.int8]
Table = NDArray[np.int64]
"""Rows of numbers."""

DONE, FULL, TOO_LARGE = range(3)
FREE, UNKNOWN_BYTE, LARGEST = -1, -128, 127
REJECTED = -1

# Columns of a pair of the product, of what was asked, and places in `at`
STATE, MEMORY, CAME_FROM, BY = range(4)
ASKED_OF, ASKED, AFTER, BROKE, OPEN = range(5)
NEXT, PAIRS, MEMORIES, VERDICTS = range(4)


class Judge(NamedTuple):
    """What the kernel's functions take: its table, the columns of all events, one row and its span, no final states."""

    st: State
    columns: tuple[Any, ...]
    event: Ints
    node: Ints
    reported: NDArray[np.bool_]
    pairs_at: Ints
    pairs: Ints
    row: Ints
    missing: Ints
    span: Ints
    final: NDArray[np.int64]
    caches: NDArray[np.int64]


class Tables(NamedTuple):
    """What was found: memories as bytes, pairs in the order they were found, verdicts; and a hash table for each.

    `spans` says which cells are the memory: so many from the beginning of a row. `at_end[m]`: the rules that fail where a
    trace ends with memory m, as a bit mask.
    """

    spans: Table
    memory: Bytes
    memory_at: Ints
    at_end: Ints
    pair: Table
    pair_at: Ints
    verdict: Table
    verdict_at: Ints


def restore(st: State, spans: Table, memory: Bytes) -> None:
    """The judge knows again what it knew; nothing has failed, nothing is undecided."""
    at = 0
    for i in range(len(spans)):
        row = spans[i, 0]
        for k in range(spans[i, 1]):
            value = memory[at]
            st[row, k] = UNKNOWN if value == UNKNOWN_BYTE else value
            at += 1
    st[WHOLE, FAILED] = 0
    st[WHOLE, FAILURES] = 0
    st[WHOLE, OVERFLOW] = 0


def save(st: State, spans: Table, memory: Bytes) -> bool:
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
    """One round of a hash in 31 bits, so that compiled and interpreted numbers agree."""
    return (h * 1000003 ^ (value & 0x7FFFFFFF)) & 0x7FFFFFFF


def remembered(tables: Tables, count: int) -> int:
    """The number of the memory that stands behind the last: that of the same memory before, or its own."""
    h = 0
    for k in range(tables.memory.shape[1]):
        h = mixed(h, int(tables.memory[count, k]))
    slot = (h ^ h >> 15) % len(tables.memory_at)
    while tables.memory_at[slot] != FREE:
        other = tables.memory_at[slot]
        same = True
        for k in range(tables.memory.shape[1]):
            if tables.memory[other, k] != tables.memory[count, k]:
                same = False
                break
        if same:
            return int(other)
        slot = (slot + 1) % len(tables.memory_at)
    tables.memory_at[slot] = count
    return count


def place(rows: Table, at: Ints, count: int, one: int, two: int) -> int:
    """Where (one, two) begins a row; it is entered as row `count` where none does."""
    h = mixed(mixed(int(one), int(two)), int(one) >> 7)
    slot = (h ^ h >> 15) % len(at)
    while at[slot] != FREE:
        row = at[slot]
        if rows[row, 0] == one and rows[row, 1] == two:
            return int(row)
        slot = (slot + 1) % len(at)
    at[slot] = count
    rows[count, 0] = one
    rows[count, 1] = two
    return count


def entered_again(tables: Tables, at: Ints) -> None:
    """Fill hash tables that were made anew."""
    for m in range(at[MEMORIES]):
        remembered(tables, m)
    for p in range(at[PAIRS]):
        place(tables.pair, tables.pair_at, p, tables.pair[p, 0], tables.pair[p, 1])
    for q in range(at[VERDICTS]):
        place(tables.verdict, tables.verdict_at, q, tables.verdict[q, 0], tables.verdict[q, 1])


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


def nothing_undecided(st: State) -> None:
    """Count anew which checks cannot be decided."""
    for r in range(RULES):
        st[TALLIES + r, UNDECIDED_COUNT] = 0


def undecided_rules(st: State) -> int:
    """The rules with such a check, as a bit mask."""
    mask = 0
    for r in range(RULES):
        if st[TALLIES + r, UNDECIDED_COUNT] > 0:
            mask |= 1 << r
    return mask


def search(
    run: Any, tidy: Any, end: Any, judge: Judge, first: Ints, symbol: Ints, target: Ints, tables: Tables, at: Ints
) -> int:
    """Walk the product from where the last call stopped; an event that breaks a rule leads nowhere."""
    st = judge.st
    while at[NEXT] < at[PAIRS]:
        p = at[NEXT]
        state, memory = tables.pair[p, STATE], tables.pair[p, MEMORY]
        room = first[state + 1] - first[state] + 1
        if (
            at[PAIRS] + room > len(tables.pair)
            or at[MEMORIES] + room > len(tables.memory)
            or at[VERDICTS] + room > len(tables.verdict)
        ):
            return FULL
        for e in range(first[state], first[state + 1]):
            q = place(tables.verdict, tables.verdict_at, at[VERDICTS], memory, symbol[e])
            if q == at[VERDICTS]:
                at[VERDICTS] += 1
                restore(st, tables.spans, tables.memory[memory])
                nothing_undecided(st)
                ask(run, judge, symbol[e])
                tables.verdict[q, BROKE] = st[WHOLE, FAILED]
                tables.verdict[q, OPEN] = undecided_rules(st)
                tidy(st)
                new = at[MEMORIES]
                if st[WHOLE, OVERFLOW] != 0 or not save(st, tables.spans, tables.memory[new]):
                    return TOO_LARGE
                tables.verdict[q, AFTER] = remembered(tables, new)
                if tables.verdict[q, AFTER] == new:
                    at[MEMORIES] += 1
                    st[WHOLE, FAILED] = 0
                    end(st)
                    tables.at_end[new] = st[WHOLE, FAILED]
            if tables.verdict[q, BROKE] == 0:
                there = place(tables.pair, tables.pair_at, at[PAIRS], target[e], tables.verdict[q, AFTER])
                if there == at[PAIRS]:
                    at[PAIRS] += 1
                    tables.pair[there, CAME_FROM] = p
                    tables.pair[there, BY] = symbol[e]
        at[NEXT] += 1
    return DONE


def offer(run: Any, judge: Judge, spans: Table, memory: Bytes, into: Table) -> None:
    """What the judge makes of each event after each memory: REJECTED, or the rules it leaves undecided as a bit mask."""
    st = judge.st
    for m in range(len(memory)):
        for number in range(into.shape[1]):
            restore(st, spans, memory[m])
            ask(run, judge, number)
            if st[WHOLE, FAILED] != 0:
                into[m, number] = REJECTED
            else:
                restore(st, spans, memory[m])
                nothing_undecided(st)
                ask(run, judge, number)
                into[m, number] = undecided_rules(st)


def counted(into: Table, decided: Ints, states: Ints, begin: Ints, allowed: NDArray[np.bool_], counts: Table) -> None:
    """Add up what was offered where the automaton does not allow it: rejected, left open, passed.

    `states[begin[m]:begin[m + 1]]` are the automaton's states with memory m; `decided[x]` are the rules that some right
    event of the kind of x decides.
    """
    for m in range(len(into)):
        for number in range(into.shape[1]):
            outcome = 0
            if into[m, number] != REJECTED:
                outcome = 1 if into[m, number] & decided[number] else 2
            for at in range(begin[m], begin[m + 1]):
                if not allowed[states[at], number]:
                    counts[number, outcome] += 1

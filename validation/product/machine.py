"""The product of an automaton and the judge, breadth first; compiled, or interpreted where the graph is tiny.

Rules of this file

1. A state of the product is (state of the automaton, memory of the judge). The kernel judges one event at a time; its memory
   is saved and restored (conformance.kernel.one_event).
2. What the judge makes of an event depends on its memory alone, so it is asked once for each memory and event.
3. Tables have the room they are given: a search that runs out of it returns, is given more, and goes on.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegauge.conformance.kernel.one_event import FREE, Bytes, Judge, Table, ask, mixed, remembered, restore, save
from tidegauge.conformance.kernel.rule_ids import RULES
from tidegauge.conformance.kernel.state import FAILED, OVERFLOW, TALLIES, UNDECIDED_COUNT, WHOLE, Ints, State

DONE, FULL, TOO_LARGE = range(3)
REJECTED = -1

# Columns of a pair of the product, of what was asked, and places in `at`
STATE, MEMORY, CAME_FROM, BY = range(4)
ASKED_OF, ASKED, AFTER, BROKE, OPEN = range(5)
NEXT, PAIRS, MEMORIES, VERDICTS = range(4)


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


def place(rows: Table, at: Ints, count: int, one: int, two: int) -> int:
    """Where (one, two) begins a row; it is entered as row `count` where none does."""
    slot = mixed(mixed(0, int(one)), int(two)) % len(at)
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
        remembered(tables.memory.view(np.int64), tables.memory_at, m)
    for p in range(at[PAIRS]):
        place(tables.pair, tables.pair_at, p, tables.pair[p, 0], tables.pair[p, 1])
    for q in range(at[VERDICTS]):
        place(tables.verdict, tables.verdict_at, q, tables.verdict[q, 0], tables.verdict[q, 1])


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
                tables.verdict[q, AFTER] = remembered(tables.memory.view(np.int64), tables.memory_at, new)
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

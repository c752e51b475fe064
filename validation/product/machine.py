"""The product of an automaton and the judge, breadth first; compiled, or interpreted where the graph is tiny.

Rules of this file

1. A state of the product is (state of the automaton, memory of the judge). The kernel judges one event at a time; its memory
   is saved and restored (conformance.engine.one_event).
2. What the judge makes of an event depends on its memory alone, so each memory judges each event once.
3. Tables have the room they are given: a search that runs out of it returns, gets more, and continues.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegauge.conformance.engine.one_event import (
    FREE,
    Judge,
    MemoryBytes,
    MemoryTable,
    intern_memory,
    judge_event,
    mix,
    restore,
    save,
)
from tidegauge.conformance.judge.fields import RULES
from tidegauge.conformance.judge.state import FAILED, OVERFLOW, PARTITION, TALLIES, UNDECIDED_COUNT, Ints, State

DONE, FULL, TOO_LARGE = range(3)
REJECTED = -1

# Columns of a pair of the product
STATE, MEMORY, CAME_FROM, BY = range(4)
# Columns of a verdict: the memory, the event, the memory after it, the rules that fail, the rules left undecided
ASKED_OF, ASKED, AFTER, BROKE, OPEN = range(5)
# Places of the cursor `at`: the next pair to visit, and how many pairs, memories and verdicts there are
NEXT, PAIRS, MEMORIES, VERDICTS = range(4)


class Tables(NamedTuple):
    """Memories as bytes, pairs in the order of their discovery, verdicts; and a hash table (`.._slots`) for each.

    `spans` are the cells of the judge's table that are its memory: so many from the beginning of a row. `at_end[m]`: the
    rules that fail where a trace ends with memory m, as a bit mask.
    """

    spans: MemoryTable
    memory: MemoryBytes
    memory_slots: Ints
    at_end: Ints
    pair: MemoryTable
    pair_slots: Ints
    verdict: MemoryTable
    verdict_slots: Ints


def find_or_add(rows: MemoryTable, slots: Ints, count: int, first: int, second: int) -> int:
    """Return the row that begins with (first, second); row `count` becomes that row if there is none."""
    slot = mix(mix(0, int(first)), int(second)) % len(slots)
    while slots[slot] != FREE:
        row = slots[slot]
        if rows[row, 0] == first and rows[row, 1] == second:
            return int(row)
        slot = (slot + 1) % len(slots)
    slots[slot] = count
    rows[count, 0] = first
    rows[count, 1] = second
    return count


def rehash(tables: Tables, at: Ints) -> None:
    """Fill hash tables that were emptied because they grew."""
    for m in range(at[MEMORIES]):
        intern_memory(tables.memory.view(np.int64), tables.memory_slots, m)
    for p in range(at[PAIRS]):
        find_or_add(tables.pair, tables.pair_slots, p, tables.pair[p, 0], tables.pair[p, 1])
    for q in range(at[VERDICTS]):
        find_or_add(tables.verdict, tables.verdict_slots, q, tables.verdict[q, 0], tables.verdict[q, 1])


def clear_undecided(st: State) -> None:
    """Start a new count of undecided checks."""
    for r in range(RULES):
        st[TALLIES + r, UNDECIDED_COUNT] = 0


def undecided_rules(st: State) -> int:
    """Return the rules with an undecided check since the last clear, as a bit mask."""
    mask = 0
    for r in range(RULES):
        if st[TALLIES + r, UNDECIDED_COUNT] > 0:
            mask |= 1 << r
    return mask


def search(
    run: Any, tidy: Any, end: Any, judge: Judge, first: Ints, symbol: Ints, target: Ints, tables: Tables, at: Ints
) -> int:
    """Walk the product from where the last call stopped; an event that breaks a rule leads nowhere.

    `run`, `tidy`, `end`: the kernel's judging of one event, its normal form of a memory, its checks at the end of a trace.
    `first`, `symbol`, `target`: the automaton. Returns DONE, FULL (more room, then call again) or TOO_LARGE.
    """
    st = judge.st
    while at[NEXT] < at[PAIRS]:
        p = at[NEXT]
        state, memory = tables.pair[p, STATE], tables.pair[p, MEMORY]
        # Each transition of this state may add one row to each table. To check that before the pair is begun means
        # that a pair is never left half done.
        room = first[state + 1] - first[state] + 1
        if (
            at[PAIRS] + room > len(tables.pair)
            or at[MEMORIES] + room > len(tables.memory)
            or at[VERDICTS] + room > len(tables.verdict)
        ):
            return FULL
        for e in range(first[state], first[state + 1]):
            q = find_or_add(tables.verdict, tables.verdict_slots, at[VERDICTS], memory, symbol[e])
            if q == at[VERDICTS]:
                # This memory has not judged this event yet, in whatever state of the automaton.
                at[VERDICTS] += 1
                restore(st, tables.spans, tables.memory[memory])
                clear_undecided(st)
                judge_event(run, judge, symbol[e])
                tables.verdict[q, BROKE] = st[PARTITION, FAILED]
                tables.verdict[q, OPEN] = undecided_rules(st)
                # Without the normal form the memories of one knowledge would be many, and the product infinite.
                tidy(st)
                new = at[MEMORIES]
                if st[PARTITION, OVERFLOW] != 0 or not save(st, tables.spans, tables.memory[new]):
                    return TOO_LARGE
                tables.verdict[q, AFTER] = intern_memory(tables.memory.view(np.int64), tables.memory_slots, new)
                if tables.verdict[q, AFTER] == new:
                    at[MEMORIES] += 1
                    # A trace may end anywhere: check each new memory as if it ended here.
                    st[PARTITION, FAILED] = 0
                    end(st)
                    tables.at_end[new] = st[PARTITION, FAILED]
            if tables.verdict[q, BROKE] == 0:
                there = find_or_add(tables.pair, tables.pair_slots, at[PAIRS], target[e], tables.verdict[q, AFTER])
                if there == at[PAIRS]:
                    at[PAIRS] += 1
                    # Breadth first: the first way to a pair is a shortest one.
                    tables.pair[there, CAME_FROM] = p
                    tables.pair[there, BY] = symbol[e]
        at[NEXT] += 1
    return DONE


def offer(run: Any, judge: Judge, spans: MemoryTable, memory: MemoryBytes, into: MemoryTable) -> None:
    """Judge each event after each memory: REJECTED, or the rules that it leaves undecided as a bit mask, in `into`."""
    st = judge.st
    for m in range(len(memory)):
        for number in range(into.shape[1]):
            restore(st, spans, memory[m])
            judge_event(run, judge, number)
            if st[PARTITION, FAILED] != 0:
                into[m, number] = REJECTED
            else:
                # Most are rejected, so only the others pay for a count of undecided checks from zero.
                restore(st, spans, memory[m])
                clear_undecided(st)
                judge_event(run, judge, number)
                into[m, number] = undecided_rules(st)


def count_outcomes(
    into: MemoryTable, decided: Ints, states: Ints, begin: Ints, allowed: NDArray[np.bool_], counts: MemoryTable
) -> None:
    """Add up the candidates that the automaton does not allow: rejected, left open, accepted.

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

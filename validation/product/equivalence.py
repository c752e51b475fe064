"""Memories that the judge cannot tell apart are asked about once: what it makes of an offer to one it makes of it to all.

Rules of this file

1. The first memory of a group is asked about every offer, by a kernel that notes what it reads (validation.product
   .reads). A memory that has the same values in those cells takes the same way through the kernel: it is of the group.
2. Which cells were read differs from group to group; what was read once is looked up under all sets of cells seen so far.
"""

from typing import Any, NamedTuple

import numpy as np

from tidegauge.conformance.kernel.one_event import FREE, Bytes, Judge, Table, ask, mixed, restore
from tidegauge.conformance.kernel.state import FAILED, WHOLE, Ints, State
from validation.product.machine import DONE, FULL, nothing_undecided, undecided_rules

REFUSED, LEFT_OPEN, LET_PASS = range(3)
"""What becomes of an offer: rejected at once; a check is open that right events of its kind decide; nothing is noticed."""

# Places in `at`
NEXT, GROUPS, SETS = range(3)


class Groups(NamedTuple):
    """The group of each memory so far; the first memory of each group, which set of cells it was read in, its outcomes.

    `cells[s]` are the `many[s]` places in a memory that set s holds. `slot`: a hash table of groups.
    """

    of: Ints
    first: Ints
    by: Ints
    outcome: Bytes
    cells: Table
    many: Ints
    slot: Ints


def room_for(memories: int, offers: int, groups: int, sets: int, width: int) -> Groups:
    """Empty tables."""
    return Groups(
        np.zeros(memories, np.int64),
        np.zeros(groups, np.int64),
        np.zeros(groups, np.int64),
        np.zeros((groups, offers), np.int8),
        np.zeros((sets, width), np.int64),
        np.zeros(sets, np.int64),
        np.full(2 * groups + 1, FREE, np.int64),
    )


def hashed(memory: Bytes, m: int, cells: Table, s: int, count: int) -> int:
    """A number that memories have in common which agree in set s."""
    h = int(s)
    for k in range(count):
        h = mixed(h, int(memory[m, cells[s, k]]))
    return h


def group_of(groups: Groups, memory: Bytes, m: int, sets: int) -> int:
    """The group whose first memory agrees with m in all that was read; FREE where there is none."""
    for s in range(sets):
        count = groups.many[s]
        at = hashed(memory, m, groups.cells, s, count) % len(groups.slot)
        while groups.slot[at] != FREE:
            g = groups.slot[at]
            if groups.by[g] == s:
                same, other = True, groups.first[g]
                for k in range(count):
                    cell = groups.cells[s, k]
                    if memory[m, cell] != memory[other, cell]:
                        same = False
                        break
                if same:
                    return int(g)
            at = (at + 1) % len(groups.slot)
    return FREE


def entered(groups: Groups, memory: Bytes, g: int) -> None:
    """Group g can be found by its first memory."""
    s = groups.by[g]
    at = hashed(memory, groups.first[g], groups.cells, s, groups.many[s]) % len(groups.slot)
    while groups.slot[at] != FREE:
        at = (at + 1) % len(groups.slot)
    groups.slot[at] = g


def set_read(st: State, spans: Table, groups: Groups, sets: int) -> int:
    """The number of the set of cells that were read since notes were cleared, which it clears; a new one comes last."""
    count = at = 0
    half = st.shape[0] // 2
    for i in range(len(spans)):
        row = half + spans[i, 0]
        for k in range(spans[i, 1]):
            if st[row, k] != 0:
                st[row, k] = 0
                groups.cells[sets, count] = at
                count += 1
            at += 1
    groups.many[sets] = count
    for s in range(sets):
        same = groups.many[s] == count
        k = 0
        while same and k < count:
            same = groups.cells[s, k] == groups.cells[sets, k]
            k += 1
        if same:
            return s
    return sets


def asked_once(
    run: Any, judge: Judge, spans: Table, memory: Bytes, numbers: Ints, decided: Ints, groups: Groups, at: Ints
) -> int:
    """Find the group of each memory from where the last call stopped; `decided[x]`: the rules that decide offer x."""
    st = judge.st
    while at[NEXT] < len(memory):
        m = at[NEXT]
        g = group_of(groups, memory, m, at[SETS])
        if g == FREE:
            g = at[GROUPS]
            if g == len(groups.first) or at[SETS] == len(groups.many):
                return FULL
            for x in range(len(numbers)):
                restore(st, spans, memory[m])
                nothing_undecided(st)
                ask(run, judge, numbers[x])
                if st[WHOLE, FAILED] != 0:
                    groups.outcome[g, x] = REFUSED
                else:
                    groups.outcome[g, x] = LEFT_OPEN if undecided_rules(st) & decided[numbers[x]] else LET_PASS
            s = set_read(st, spans, groups, at[SETS])
            if s == at[SETS]:
                at[SETS] += 1
            groups.first[g] = m
            groups.by[g] = s
            at[GROUPS] += 1
            entered(groups, memory, g)
        groups.of[m] = g
        at[NEXT] += 1
    return DONE


def larger(groups: Groups, memory: Bytes, at: Ints) -> Groups:
    """Twice the room."""
    doubled = {
        name: np.concatenate((getattr(groups, name), np.zeros_like(getattr(groups, name))))
        for name in ("first", "by", "outcome", "cells", "many")
    }
    made = groups._replace(**doubled, slot=np.full(2 * len(doubled["first"]) + 1, FREE, np.int64))
    for g in range(at[GROUPS]):
        entered(made, memory, g)
    return made

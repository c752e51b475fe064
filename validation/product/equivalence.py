"""Memories that the judge cannot distinguish are asked about once: a candidate has the same outcome after each of them.

Rules of this file

1. The first memory of a group judges every candidate, by a kernel that notes what it reads (product.access_trace). A memory
   with the same values in those cells takes the same way through the kernel: it belongs to the group.
2. Which cells are read differs from group to group; a memory is looked up under all sets of cells seen so far.
"""

from typing import Any, NamedTuple

import numpy as np

from tidegauge.conformance.engine.one_event import FREE, Judge, MemoryBytes, MemoryTable, judge_event, mix, restore
from tidegauge.conformance.judge.state import FAILED, PARTITION, Ints, State
from validation.product.machine import DONE, FULL, clear_undecided, undecided_rules

REFUSED, LEFT_OPEN, ACCEPTED = range(3)
"""The outcome of a candidate: rejected at once; a check is open that right events of its kind decide; nothing noticed."""

# Places of the cursor `at`: the next memory, and how many groups and sets of cells there are
NEXT, GROUPS, SETS = range(3)


class Groups(NamedTuple):
    """The group of each memory; of each group its first memory, the set of cells it was read in, its outcomes.

    `cells[s, :many[s]]` are the places of a memory in set s. `slots`: a hash table of groups.
    """

    group: Ints
    first: Ints
    cell_set: Ints
    outcome: MemoryBytes
    cells: MemoryTable
    many: Ints
    slots: Ints


def empty_groups(memories: int, candidates: int, groups: int, sets: int, width: int) -> Groups:
    """Return empty tables with room for so many of each; `width` is the size of a memory."""
    return Groups(
        np.zeros(memories, np.int64),
        np.zeros(groups, np.int64),
        np.zeros(groups, np.int64),
        np.zeros((groups, candidates), np.int8),
        np.zeros((sets, width), np.int64),
        np.zeros(sets, np.int64),
        np.full(2 * groups + 1, FREE, np.int64),
    )


def hash_in_set(memory: MemoryBytes, m: int, cells: MemoryTable, s: int, count: int) -> int:
    """Return a hash of the cells of set s: equal for memories that agree in them."""
    h = int(s)
    for k in range(count):
        h = mix(h, int(memory[m, cells[s, k]]))
    return h


def group_of(groups: Groups, memory: MemoryBytes, m: int, sets: int) -> int:
    """Return the group whose first memory agrees with m in all cells that were read; FREE if there is none."""
    for s in range(sets):
        count = groups.many[s]
        at = hash_in_set(memory, m, groups.cells, s, count) % len(groups.slots)
        while groups.slots[at] != FREE:
            g = groups.slots[at]
            # A group that was read in another set of cells may be in this slot by chance: it compares other cells.
            if groups.cell_set[g] == s:
                same, other = True, groups.first[g]
                for k in range(count):
                    cell = groups.cells[s, k]
                    if memory[m, cell] != memory[other, cell]:
                        same = False
                        break
                if same:
                    return int(g)
            at = (at + 1) % len(groups.slots)
    return FREE


def add_slot(groups: Groups, memory: MemoryBytes, g: int) -> None:
    """Enter group g into the hash table, by its first memory."""
    s = groups.cell_set[g]
    at = hash_in_set(memory, groups.first[g], groups.cells, s, groups.many[s]) % len(groups.slots)
    while groups.slots[at] != FREE:
        at = (at + 1) % len(groups.slots)
    groups.slots[at] = g


def take_cells_read(st: State, spans: MemoryTable, groups: Groups, sets: int) -> int:
    """Return the number of the set of cells that the kernel has noted, and clear its notes; a new set comes last.

    Notes are in the lower half of the judge's table, at the row and column of the cell.
    """
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


def ask_each_group(
    run: Any, judge: Judge, spans: MemoryTable, memory: MemoryBytes, numbers: Ints, decided: Ints, groups: Groups, at: Ints
) -> int:
    """Find the group of each memory from where the last call stopped; judge the candidates `numbers` once per group.

    `decided[x]`: the rules that right events of the kind of x decide. Returns DONE, or FULL: more room, then call again.
    """
    st = judge.st
    while at[NEXT] < len(memory):
        m = at[NEXT]
        g = group_of(groups, memory, m, at[SETS])
        if g == FREE:
            g = at[GROUPS]
            if g == len(groups.first) or at[SETS] == len(groups.many):
                return FULL
            # The notes add up over all candidates: what none of them read cannot change the outcome of any.
            for x in range(len(numbers)):
                restore(st, spans, memory[m])
                clear_undecided(st)
                judge_event(run, judge, numbers[x])
                if st[PARTITION, FAILED] != 0:
                    groups.outcome[g, x] = REFUSED
                else:
                    groups.outcome[g, x] = LEFT_OPEN if undecided_rules(st) & decided[numbers[x]] else ACCEPTED
            s = take_cells_read(st, spans, groups, at[SETS])
            if s == at[SETS]:
                at[SETS] += 1
            groups.first[g] = m
            groups.cell_set[g] = s
            at[GROUPS] += 1
            add_slot(groups, memory, g)
        groups.group[m] = g
        at[NEXT] += 1
    return DONE


def doubled(groups: Groups, memory: MemoryBytes, at: Ints) -> Groups:
    """Return the groups with twice the room."""
    larger = {
        name: np.concatenate((getattr(groups, name), np.zeros_like(getattr(groups, name))))
        for name in ("first", "cell_set", "outcome", "cells", "many")
    }
    grown = groups._replace(**larger, slots=np.full(2 * len(larger["first"]) + 1, FREE, np.int64))
    for g in range(at[GROUPS]):
        add_slot(grown, memory, g)
    return grown

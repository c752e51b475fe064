"""Known transitions as a double array (Aoe, 1989): one memory access each, and no search.

The states, symbols and effects are those of conformance.engine.transitions, which has the transitions in a hash table.

Rules of this file

1. State s has a base; its transition on symbol a is in the cell base[s] + a, which also holds the symbol. No two states
   have the same base, so the symbol shows that the cell is this state's. State 0 has base 0.
2. A cell is one number: the base of the next state, the effect, the symbol.
3. Where a transition is unknown, the state of the trace is returned, and conformance.engine.transitions goes on from there.

Over a model's walks this follows a transition in 16 ns where the hash table takes 52 (38 million events, one busy core).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tidegauge.conformance.engine import transitions
from tidegauge.conformance.engine.one_event import FREE, MemoryTable
from tidegauge.conformance.engine.transitions import KEY, TO
from tidegauge.conformance.judge import state as s

SYMBOL_BITS, EFFECT_BITS = 20, 16
SYMBOL, EFFECT = (1 << SYMBOL_BITS) - 1, (1 << EFFECT_BITS) - 1
BASE_AT = SYMBOL_BITS + EFFECT_BITS
"""A cell, from its lowest bit: the symbol; from bit SYMBOL_BITS on the effect; from BASE_AT on the next state's base."""

KNOWN = -1
"""The place of the first unknown transition of a trace that has none."""

PATIENCE = 200
"""After so many tries in vain for one state, the next state begins its search where this one ended."""


def place(first: s.Ints, symbols: s.Ints, order: s.Ints, base: s.Ints, used: s.Ints, claimed: s.Ints) -> None:
    """Give states bases, in this order, as long as there is room: the first at which all their cells are free.

    The transitions of state s are on `symbols[first[s]:first[s + 1]]`, sorted. By cell, `used` is 1 where it has a
    transition, `claimed` 1 where it is a base. These two and `base`, by state, are written; a state without room keeps what
    `base` had for it (FREE).
    """
    low, before = 0, 0  # where the search for a base begins; how many transitions the state before has
    for state in order:
        begin, end = first[state], first[state + 1]
        # A state with fewer transitions than the one before may fit into gaps that those left.
        if end - begin != before:
            low, before = 0, end - begin
        at = low
        last = len(used) - 1 - symbols[end - 1]  # the last base with which the largest symbol has a cell
        while at <= last and not is_free(at, symbols[begin:end], used, claimed):
            at += 1
        if at - low > PATIENCE:
            low = at  # for the next state
        if at <= last:  # there is a base
            base[state] = at
            claimed[at] = 1
            for k in range(begin, end):
                used[at + symbols[k]] = 1


def is_free(at: int, symbols: s.Ints, used: s.Ints, claimed: s.Ints) -> bool:
    """Return whether a state with transitions on these symbols can have the base `at`: their cells and the base are free.

    `used` and `claimed` as in `place`.
    """
    k = 0
    while k < len(symbols) and used[at + symbols[k]] == 0:
        k += 1
    return k == len(symbols) and claimed[at] == 0


def walk(
    cells: s.Ints, state_at: s.Ints, end: int, rows: s.Ints, starts: s.Ints, times: s.Ints, places: s.Ints, states: s.Ints
) -> None:
    """Follow all traces: count each effect, and note the first unknown transition of each trace and the state before it.

    `cells` and `state_at` are those of KnownTransitions, `end` is the symbol of the end of a trace. Event i is the symbol
    `rows[i]`; a trace begins at `starts`. Written are `times`, how often each effect occurred, and by trace `places`, the
    event of the first unknown transition, and `states`, the state before it.
    """
    traces = len(starts) - 1
    # Two traces at a time: while one waits for its cell from memory, the processor goes on with the other.
    for t in range(0, traces - 1, 2):
        i, j = starts[t], starts[t + 1]
        shorter = min(j - i, starts[t + 2] - j)  # the events of the shorter trace of the two
        base, other_base, k = 0, 0, 0  # both traces begin in state 0, whose base is 0
        while k < shorter:
            cell, other_cell = cells[base + rows[i + k]], cells[other_base + rows[j + k]]
            # The cell of another state, or a free one: the transition is unknown (rule 1).
            if cell & SYMBOL != rows[i + k] or other_cell & SYMBOL != rows[j + k]:
                break
            times[cell >> SYMBOL_BITS & EFFECT] += 1
            times[other_cell >> SYMBOL_BITS & EFFECT] += 1
            base, other_base, k = cell >> BASE_AT, other_cell >> BASE_AT, k + 1
        # The rest of the longer one, the ends, or the unknown transition.
        walk_on(cells, state_at, end, rows, starts, times, places, states, t, i + k, base)
        walk_on(cells, state_at, end, rows, starts, times, places, states, t + 1, j + k, other_base)
    if traces % 2 == 1:  # the last trace has no other beside it
        walk_on(cells, state_at, end, rows, starts, times, places, states, traces - 1, starts[traces - 1], 0)


def walk_on(
    cells: s.Ints,
    state_at: s.Ints,
    end: int,
    rows: s.Ints,
    starts: s.Ints,
    times: s.Ints,
    places: s.Ints,
    states: s.Ints,
    trace: int,
    place: int,
    base: int,
) -> None:
    """Follow the rest of a trace from event `place` and the state with this `base`; its end is one more transition.

    Stop at the first unknown transition, and note its place and state. The other arguments are those of `walk`.
    """
    upto = starts[trace + 1]
    while place <= upto:
        symbol = rows[place] if place < upto else end
        cell = cells[base + symbol]
        if cell & SYMBOL != symbol:
            places[trace], states[trace] = place, state_at[base]
            return
        times[cell >> SYMBOL_BITS & EFFECT] += 1
        base, place = cell >> BASE_AT, place + 1


# The transitions of an automaton that are known so far, put into a double array.
#
# A state for which there is no base, and an effect whose number does not fit into a cell, are left out: such a
# transition is looked up in the hash table. Where symbols do not fit into cells the array is empty.


CELLS_PER_TRANSITION = 2
"""Cells to begin with for each transition. The array ends after the last base, and nearly all cells up to there are used."""


class KnownTransitions(NamedTuple):
    """The cells of the array, and, by cell, the state whose base it is (0 where it is no base)."""

    cells: s.Ints
    state_at: s.Ints


NOTHING_KNOWN = KnownTransitions(np.zeros(0, np.int64), np.zeros(0, np.int64))


def known_by_now(
    transition: MemoryTable, symbols: int, states: int, most: int, place: Callable[..., None]
) -> KnownTransitions:
    """Put the transitions learnt so far into a double array; NOTHING_KNOWN where that would take more than `most` bytes.

    `transition` is the hash table of transitions.Automaton: its KEY is state * symbols + symbol, its TO the next state above
    the bits of the effect. `symbols` and `states` are how many there are. `place` is the function of this file, compiled or
    not.
    """
    entries = transition[transition[:, TO] >= 0]  # neither FREE nor LEFT
    entries = entries[np.argsort(entries[:, KEY])]  # by state, then by symbol
    # Columns of the transitions: the state before, the symbol, the state after, the effect.
    state, symbol = np.divmod(entries[:, KEY], symbols)
    next_state, effect = entries[:, TO] >> transitions.EFFECT_BITS, entries[:, TO] & transitions.EFFECT
    room = CELLS_PER_TRANSITION * len(entries) + symbols  # cells
    first_entry = np.searchsorted(state, np.arange(states + 1))  # by state
    # The symbol SYMBOL, all bits 1, would look like the one in a free cell (-1).
    too_large = symbols > SYMBOL or len(KnownTransitions._fields) * room * entries.itemsize > most
    if too_large or first_entry[1] == 0:  # without a transition of state 0 no trace can begin in the array
        return NOTHING_KNOWN
    transitions_of = np.diff(first_entry)  # by state, how many it has
    busiest_first = np.argsort(transitions_of, kind="stable")[::-1]
    others = busiest_first[(transitions_of[busiest_first] > 0) & (busiest_first != 0)]
    base = np.full(states, FREE)  # by state
    # By cell, 1 where it has a transition, and 1 where it is a base.
    used, claimed = np.zeros(room, np.int64), np.zeros(room, np.int64)
    # State 0 has base 0, so it is placed first. Then those with most transitions: they are hardest to fit between others.
    place(first_entry, symbol, np.concatenate(([0], others)), base, used, claimed)
    cells = np.full(base.max() + symbols, FREE)
    # A state has no base where there was no room for it, or no transition from it is known. A transition from or to such a
    # state, or with too large an effect, is left to the hash table.
    fits = (base[state] >= 0) & (base[next_state] >= 0) & (effect <= EFFECT)
    packed = base[next_state] << BASE_AT | effect << SYMBOL_BITS | symbol
    cells[(base[state] + symbol)[fits]] = packed[fits]
    state_at = np.zeros_like(cells)
    based = np.flatnonzero(base != FREE)
    state_at[base[based]] = based
    return KnownTransitions(cells, state_at)

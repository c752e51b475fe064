"""The transitions of an automaton that are known so far, as a double array (conformance.kernel.double_array).

Rule of this file: a state that finds no base, and an effect whose number does not fit into a cell, are left out: such a
transition is looked up in the hash table. Where symbols do not fit into cells the array is empty: the last one would look
like a free cell.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tidegauge.conformance.kernel import double_array, transitions
from tidegauge.conformance.kernel import state as s
from tidegauge.conformance.kernel.one_event import FREE, Table
from tidegauge.conformance.kernel.transitions import KEY, TO

ROOM = 2
"""Cells to begin with for each transition. The array ends after the last base, and nearly all cells up to there are used."""


class Known(NamedTuple):
    """The cells of the array, and the state whose base each cell is."""

    cells: s.Ints
    state_at: s.Ints


NOTHING_KNOWN = Known(np.zeros(0, np.int64), np.zeros(0, np.int64))


def known_by_now(transition: Table, symbols: int, states: int, most: int, place: Callable[..., None]) -> Known:
    """Put the known transitions into a double array; NOTHING_KNOWN where that would take more than `most` bytes.

    `place`: conformance.kernel.double_array.place, compiled or not.
    """
    known = transition[transition[:, TO] >= 0]
    known = known[np.argsort(known[:, KEY])]
    state, symbol = np.divmod(known[:, KEY], symbols)
    to, effect = known[:, TO] >> transitions.EFFECT_BITS, known[:, TO] & transitions.EFFECT
    room = ROOM * len(known) + symbols
    first = np.searchsorted(state, np.arange(states + 1))
    too_large = symbols > double_array.SYMBOL or len(Known._fields) * room * known.itemsize > most
    if too_large or first[1] == 0:  # without a transition of state 0 no trace can begin in the array
        return NOTHING_KNOWN
    many = np.argsort(np.diff(first), kind="stable")[::-1]
    many = many[(np.diff(first)[many] > 0) & (many != 0)]
    base = np.full(states, FREE)
    # State 0 has base 0, so it is placed first. Then those with most transitions: they are hardest to fit between others.
    order = np.concatenate(([0], many))
    place(first, symbol, order, base, *(np.zeros(room, np.int64) for _ in range(2)))
    cells = np.full(base.max() + symbols, FREE)
    fits = (base[state] >= 0) & (base[to] >= 0) & (effect <= double_array.EFFECT)
    packed = base[to] << double_array.BASE_AT | effect << double_array.SYMBOL_BITS | symbol
    cells[(base[state] + symbol)[fits]] = packed[fits]
    state_at = np.zeros_like(cells)
    based = np.flatnonzero(base != FREE)
    state_at[base[based]] = based
    return Known(cells, state_at)

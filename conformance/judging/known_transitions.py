"""The transitions of an automaton that are known by now, put into a double array (conformance.kernel.double_array).

Rule of this file: what finds no base, or has too many effects before it for a cell, is left out. It is then unknown, and
nothing else. Where symbols are too many for cells, nothing is known: the last one would look like a free cell.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tidegauge.conformance.kernel import double_array, transitions
from tidegauge.conformance.kernel import state as s
from tidegauge.conformance.kernel.one_event import FREE, Table
from tidegauge.conformance.kernel.transitions import KEY, TO

ROOM = 2
"""Cells that there may be for each transition: nearly all of them are taken in the end."""


class Known(NamedTuple):
    """The cells, and the state whose base a cell is."""

    cells: s.Ints
    state_at: s.Ints


NOTHING_KNOWN = Known(np.zeros(0, np.int64), np.zeros(0, np.int64))


def known_by_now(transition: Table, symbols: int, states: int, most: int, place: Callable[..., None]) -> Known:
    """What is known of so many states on so many symbols; nothing where that would take more than `most` bytes.

    `place`: conformance.kernel.double_array.place, compiled or not.
    """
    known = transition[transition[:, TO] >= 0]
    known = known[np.argsort(known[:, KEY])]
    state, symbol = np.divmod(known[:, KEY], symbols)
    to, effect = known[:, TO] >> transitions.EFFECT_BITS, known[:, TO] & transitions.EFFECT
    room = ROOM * len(known) + symbols
    first = np.searchsorted(state, np.arange(states + 1))
    too_large = symbols > double_array.SYMBOL or len(Known._fields) * room * known.itemsize > most
    if too_large or first[1] == 0:  # or nothing is known of how a trace begins
        return NOTHING_KNOWN
    many = np.argsort(np.diff(first), kind="stable")[::-1]
    many = many[(np.diff(first)[many] > 0) & (many != 0)]
    base = np.full(states, FREE)
    order = np.concatenate(([0], many))  # state 0 has base 0, so it comes first
    place(first, symbol, order, base, *(np.zeros(room, np.int64) for _ in range(2)))
    cells = np.full(base.max() + symbols, FREE)
    fits = (base[state] >= 0) & (base[to] >= 0) & (effect <= double_array.EFFECT)
    said = base[to] << double_array.BASE_AT | effect << double_array.SYMBOL_BITS | symbol
    cells[(base[state] + symbol)[fits]] = said[fits]
    state_at = np.zeros_like(cells)
    based = np.flatnonzero(base != FREE)
    state_at[base[based]] = based
    return Known(cells, state_at)

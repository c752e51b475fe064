"""The transitions of an automaton that are known by now, put into a double array (conformance.kernel.double_array).

Rule of this file: what finds no base, or is too large for a cell, is left out. It is then unknown, and nothing else.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tidegauge.conformance.kernel.double_array import BASE_AT, EFFECT, SYMBOL, SYMBOL_BITS
from tidegauge.conformance.kernel.one_event import FREE, Table
from tidegauge.conformance.kernel.state import Ints
from tidegauge.conformance.kernel.transitions import EFFECT as ALL_EFFECTS
from tidegauge.conformance.kernel.transitions import EFFECT_BITS, KEY, TO

ROOM = 2
"""Cells that there may be for each transition: nearly all of them are taken in the end."""


class Known(NamedTuple):
    """The cells, and the state whose base a cell is."""

    cells: Ints
    state_at: Ints


NOTHING_KNOWN = Known(np.zeros(0, np.int64), np.zeros(0, np.int64))


def known_by_now(transition: Table, symbols: int, states: int, most: int, place: Callable[..., None]) -> Known:
    """What is known of so many states on so many symbols; nothing where that would take more than `most` bytes.

    `place`: conformance.kernel.double_array.place, compiled or not.
    """
    known = transition[transition[:, TO] >= 0]
    known = known[np.argsort(known[:, KEY])]
    state, symbol = np.divmod(known[:, KEY], symbols)
    to, effect = known[:, TO] >> EFFECT_BITS, known[:, TO] & ALL_EFFECTS
    room = ROOM * len(known) + symbols
    first = np.searchsorted(state, np.arange(states + 1))
    if len(Known._fields) * room * known.itemsize > most or first[1] == 0:  # or nothing is known of how a trace begins
        return NOTHING_KNOWN
    many = np.argsort(np.diff(first), kind="stable")[::-1]
    many = many[(np.diff(first)[many] > 0) & (many != 0)]
    base = np.full(states, FREE)
    order = np.concatenate(([0], many))  # state 0 has base 0, so it comes first
    place(first, symbol, order, base, *(np.zeros(room, np.int64) for _ in range(2)))
    cells = np.full(base.max() + symbols, FREE)
    fits = (base[state] >= 0) & (base[to] >= 0) & (effect <= EFFECT) & (symbol < SYMBOL)
    cells[(base[state] + symbol)[fits]] = (base[to] << BASE_AT | effect << SYMBOL_BITS | symbol)[fits]
    state_at = np.zeros_like(cells)
    based = np.flatnonzero(base != FREE)
    state_at[base[based]] = based
    return Known(cells, state_at)

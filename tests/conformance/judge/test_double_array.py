"""A double array leads where a search would, and says where nothing is known."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegauge.conformance.engine import double_array
from tidegauge.conformance.engine.double_array import NOTHING_KNOWN, KnownTransitions, known_by_now
from tidegauge.conformance.engine.one_event import FREE
from tidegauge.conformance.engine.transitions import EFFECT_BITS, LEFT
from tidegauge.traces.columns import Ints

STATES, SYMBOLS, EFFECTS = 9, 6, 4
END = SYMBOLS - 1
PLENTY = 1 << 20

Transitions = dict[tuple[int, int], tuple[int, int] | None]
"""Where a state leads on a symbol, and the effect; None where no transition can lead."""

_to = st.one_of(st.none(), st.tuples(st.integers(0, STATES - 1), st.integers(0, EFFECTS - 1)))
some = st.dictionaries(st.tuples(st.integers(0, STATES - 1), st.integers(0, SYMBOLS - 1)), _to, max_size=40)
traces = st.lists(st.lists(st.integers(0, SYMBOLS - 2), max_size=7), min_size=1, max_size=7)


class Walked(NamedTuple):
    """How often each effect occurred; at which event of all, and in which state, each trace was unknown."""

    times: Counter[int]
    unknown: list[tuple[int, int] | None]


def table_of(known: Transitions) -> Ints:
    """As transitions are kept, with slots that are free."""
    rows = [(FREE, FREE)]
    for (state, symbol), to in known.items():
        rows.append((state * SYMBOLS + symbol, LEFT if to is None else to[0] << EFFECT_BITS | to[1]))
    return np.array(rows, np.int64)


def searched(known: Transitions, runs: Sequence[Sequence[int]]) -> Walked:
    """The same by a dictionary."""
    found, at = Walked(Counter(), []), 0
    for run in runs:
        state, unknown = 0, None
        for place, symbol in enumerate((*run, END), at):
            to = known.get((state, symbol))
            if to is None:
                unknown = (place, state)
                break
            state = to[0]
            found.times[to[1]] += 1
        found.unknown.append(unknown)
        at += len(run)
    return found


def walked(array: KnownTransitions, runs: Sequence[Sequence[int]]) -> Walked:
    starts = np.cumsum([0, *map(len, runs)])
    rows = np.array([symbol for run in runs for symbol in run], np.int64)
    times, states = np.zeros(EFFECTS, np.int64), np.zeros(len(runs), np.int64)
    places = np.full(len(runs), double_array.KNOWN)
    double_array.walk(*array, END, rows, starts, times, places, states)
    found = zip(places.tolist(), states.tolist(), strict=True)
    unknown = [None if at == double_array.KNOWN else (at, state) for at, state in found]
    return Walked(Counter({effect: int(n) for effect, n in enumerate(times) if n}), unknown)


def array_of(known: Transitions, most: int = PLENTY) -> KnownTransitions:
    return known_by_now(table_of(known), SYMBOLS, STATES, most, double_array.place)


def closed(known: Transitions) -> Transitions:
    """Where the end of a trace leads back to state 0, and every state that is led to has a transition of its own."""
    ends: Transitions = {(state, END): (0, state % EFFECTS) for state in range(STATES)}
    return {**known, **ends}


@given(some, traces)
def test_it_leads_where_a_search_would(known: Transitions, runs: list[list[int]]) -> None:
    assert walked(array_of(closed(known)), runs) == searched(closed(known), runs)


@given(some, traces)
def test_what_is_known_of_nobody_is_known_to_nobody(known: Transitions, runs: list[list[int]]) -> None:
    """A state of which no transition is known has no base: who would come to it is unknown one event earlier."""
    array = array_of(known)
    begins = any(state == 0 and to is not None for (state, _), to in known.items())
    assert (array is not NOTHING_KNOWN) == begins
    based = {state for (state, _), to in known.items() if to is not None}
    seen: Transitions = {at: to for at, to in known.items() if to is not None and to[0] in based}
    if begins:
        assert walked(array, runs) == searched(seen, runs)


@given(some)
def test_no_two_states_share_a_cell_or_a_base(known: Transitions) -> None:
    whole = closed(known)
    array = array_of(whole)
    there = sum(to is not None for to in whole.values())
    assert np.count_nonzero(array.cells != FREE) == there
    bases = [array.cells[END] >> double_array.BASE_AT]
    bases += [cell >> double_array.BASE_AT for cell in array.cells[array.cells != FREE]]
    assert {int(array.state_at[base]) for base in bases} == {0} | {to[0] for to in whole.values() if to is not None}


@pytest.mark.parametrize(("room", "placed"), [(3 * SYMBOLS, 3), (3 * SYMBOLS - 1, 2)])
def test_who_finds_no_place_has_no_base(room: int, placed: int) -> None:
    first, symbols = np.arange(0, STATES * SYMBOLS + 1, SYMBOLS), np.tile(np.arange(SYMBOLS), STATES)
    base = np.full(STATES, FREE)
    double_array.place(first, symbols, np.arange(STATES), base, *(np.zeros(room, np.int64) for _ in range(2)))
    assert base.tolist() == [*(SYMBOLS * n for n in range(placed)), *[FREE] * (STATES - placed)]


def test_it_has_a_bound() -> None:
    known = closed({})
    cells = double_array.CELLS_PER_TRANSITION * len(known) + SYMBOLS
    assert array_of(known, 2 * 8 * cells) is not NOTHING_KNOWN
    assert array_of(known, 2 * 8 * cells - 1) is NOTHING_KNOWN


def test_what_is_too_large_for_a_cell_is_unknown() -> None:
    known = closed({(0, 0): (1, double_array.EFFECT + 1), (0, 1): (1, 2)})
    assert walked(array_of(known), [[0], [1]]).unknown == [(0, 0), None]


@pytest.mark.parametrize(("symbols", "known"), [(double_array.SYMBOL, True), (double_array.SYMBOL + 1, False)])
def test_where_symbols_are_too_many_nothing_is_known(symbols: int, known: bool) -> None:
    """The last one would be found in every free cell."""
    table = np.array([(0, 1 << EFFECT_BITS), (symbols, 0)], np.int64)
    array = known_by_now(table, symbols, 2, 1 << 30, double_array.place)
    assert (array is not NOTHING_KNOWN) == known
    assert all(cell & double_array.SYMBOL != symbols - 1 for cell in np.unique(array.cells))

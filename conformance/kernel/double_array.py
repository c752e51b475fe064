"""The transitions that are known by now as a double array (Aoe, 1989): one look-up each, with nothing to search.

Rules of this file

1. State s has a base; its transition on symbol a stands in the cell base[s] + a, and says the symbol. No two states have the
   same base, so that says whose it is, too. State 0 has base 0.
2. A cell is one number: the base of the next state, the effect, the symbol.
3. Where something is unknown, it is said in which state a trace was, and it goes on from there another way.
"""

from tidegauge.conformance.kernel import state as s

SYMBOL_BITS, EFFECT_BITS = 20, 16
SYMBOL, EFFECT = (1 << SYMBOL_BITS) - 1, (1 << EFFECT_BITS) - 1
BASE_AT = SYMBOL_BITS + EFFECT_BITS

KNOWN = -1
"""The place of what is unknown in a trace, where nothing is."""

PATIENCE = 200
"""How many places are looked at in vain before others begin behind them: few are free there."""


def place(first: s.Ints, symbols: s.Ints, order: s.Ints, base: s.Ints, used: s.Ints, claimed: s.Ints) -> None:
    """Give states bases, in this order, as long as there is room: the first at which all their cells are free.

    The transitions of state s are on `symbols[first[s]:first[s + 1]]`, in order. Who has fewer than the one before begins to
    look anew, for gaps. `used` says of each place whether it is somebody's cell, `claimed` whether it is a base.
    """
    low, before = 0, 0
    for state in order:
        begin, end = first[state], first[state + 1]
        if end - begin != before:
            low, before = 0, end - begin
        at = low
        last = len(used) - 1 - symbols[end - 1]
        while at <= last and not is_free(at, symbols[begin:end], used, claimed):
            at += 1
        if at - low > PATIENCE:
            low = at
        if at <= last:
            base[state] = at
            claimed[at] = 1
            for k in range(begin, end):
                used[at + symbols[k]] = 1


def is_free(at: int, symbols: s.Ints, used: s.Ints, claimed: s.Ints) -> bool:
    """Whether a state with these symbols can have this base."""
    k = 0
    while k < len(symbols) and used[at + symbols[k]] == 0:
        k += 1
    return k == len(symbols) and claimed[at] == 0


def walk(
    cells: s.Ints, state_at: s.Ints, end: int, rows: s.Ints, starts: s.Ints, times: s.Ints, places: s.Ints, states: s.Ints
) -> None:
    """Follow all traces: how often each effect occurred, and the event that is unknown in a trace and the state before it.

    Two of them side by side: while one waits for a cell, the other goes on. `state_at`: whose a base is.
    """
    traces = len(starts) - 1
    for t in range(0, traces - 1, 2):
        i, j = starts[t], starts[t + 1]
        both = min(j - i, starts[t + 2] - j)
        one, other, k = 0, 0, 0
        while k < both:
            cell, twin = cells[one + rows[i + k]], cells[other + rows[j + k]]
            if cell & SYMBOL != rows[i + k] or twin & SYMBOL != rows[j + k]:
                break
            times[cell >> SYMBOL_BITS & EFFECT] += 1
            times[twin >> SYMBOL_BITS & EFFECT] += 1
            one, other, k = cell >> BASE_AT, twin >> BASE_AT, k + 1
        walk_on(cells, state_at, end, rows, starts, times, places, states, t, i + k, one)
        walk_on(cells, state_at, end, rows, starts, times, places, states, t + 1, j + k, other)
    if traces % 2 == 1:
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
    """The rest of a trace, and its end."""
    upto = starts[trace + 1]
    while place <= upto:
        symbol = rows[place] if place < upto else end
        cell = cells[base + symbol]
        if cell & SYMBOL != symbol:
            places[trace], states[trace] = place, state_at[base]
            return
        times[cell >> SYMBOL_BITS & EFFECT] += 1
        base, place = cell >> BASE_AT, place + 1

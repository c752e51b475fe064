"""The judge as an automaton that is built as far as traces lead through it: what it made of an event, it will make again.

Rules of this file

1. A state is what the judge knows (conformance.kernel.one_event); state 0 knows nothing. A symbol is an event of the table,
   or the end of a trace, which leads back to state 0. The judge is asked once for each state and symbol; what it adds to
   the counts, the effect, is kept with the transition.
2. Where a rule fails, or the memory is not to be kept, there is no transition: the trace is left to the kernel as a whole,
   and what it had counted is taken back.
3. No memory is kept in which the kernel might begin to forget (conformance.kernel.superseded): it has a larger table when it
   judges a trace by itself, and would forget later.
4. Tables have the room they are given: who runs out of it returns, is given more, and goes on where it was.
5. What is known is followed elsewhere (conformance.kernel.double_array); here, traces of which something is unknown.
"""

from typing import Any, NamedTuple

from tidegauge.conformance.kernel import state as s
from tidegauge.conformance.kernel.one_event import FREE, WORD, Bytes, Judge, Table, ask
from tidegauge.conformance.kernel.packed import pack, unpack
from tidegauge.conformance.kernel.pools import Pool, has_room, met, met_again
from tidegauge.conformance.kernel.rule_ids import RULES

DONE, FULL = range(2)
LEFT = -2
"""Where a transition would lead that there is none of; FREE where nobody has asked."""

# Columns of a transition, and places in `at`
KEY, TO = range(2)
NEXT, TRANSITIONS, MEMORIES, EFFECTS, ALLOWED, LARGEST_MEMORY = range(6)
"""Which of the wanted traces is followed, how many there are of the others; how many transitions there may be, and words in
a memory."""

SPREAD = 0x1E3779B97F4A7C15
"""Odd, and without a pattern: products with it differ in their middle bits."""

EFFECT_BITS = 24
EFFECT = (1 << EFFECT_BITS) - 1
"""The bits of `TO` that number the effect; the state stands above them."""
COUNTED = (s.HELD_COUNT, s.UNDECIDED_COUNT, s.MISSING)
"""What an effect says of a rule: how many checks held, how many are undecided, and what they lack."""
SAYS = len(COUNTED) + 1
"""Words of an effect for each rule that it says anything of: the rule, and these."""
KEPT_PAST = 16
"""Registrations and terms that there is room for in a memory,"""
MOST_PAST_KEPT = 12
"""and how many it may hold to be kept: an event adds two at most, so none ever meets a full table."""


class Automaton(NamedTuple):
    """Transitions as a hash table, memories and effects; `memory` are the words of the memories as bytes."""

    transition: Table
    memories: Pool
    memory: Bytes
    effects: Pool


def slot_of(transition: Table, key: int) -> int:
    """Where the transition stands, or would."""
    slot = (int(key) * SPREAD >> 32) & (len(transition) - 1)
    while transition[slot, KEY] != key and transition[slot, KEY] != FREE:
        slot = (slot + 1) & (len(transition) - 1)
    return slot


def entered_again(before: Table, automaton: Automaton, at: s.Ints) -> None:
    """Fill hash tables that were made anew; `before` are the transitions so far."""
    for i in range(len(before)):
        if before[i, KEY] != FREE:
            slot = slot_of(automaton.transition, before[i, KEY])
            automaton.transition[slot, KEY] = before[i, KEY]
            automaton.transition[slot, TO] = before[i, TO]
    met_again(automaton.memories, at[MEMORIES])
    met_again(automaton.effects, at[EFFECTS])


def said_of(st: s.State, effects: Pool, row: int) -> int:
    """Write down as that row what was counted, and count anew; where the row ends. Most events are checked by few rules."""
    at = effects.starts[row]
    for r in range(RULES):
        tally = s.TALLIES + r
        if st[tally, s.HELD_COUNT] | st[tally, s.UNDECIDED_COUNT] | st[tally, s.MISSING] != 0:
            effects.words[at] = r
            for k in COUNTED:
                at += 1
                effects.words[at] = st[tally, k]
            at += 1
            st[tally, s.HELD_COUNT] = 0
            st[tally, s.UNDECIDED_COUNT] = 0
            st[tally, s.MISSING] = 0
    return int(at)


def to_be_kept(st: s.State) -> bool:
    """Whether nothing failed and nothing was, or will at the next event be, forgotten for want of room."""
    if st[s.WHOLE, s.FAILED] != 0 or st[s.WHOLE, s.OVERFLOW] != 0:
        return False
    return bool(st[s.WHOLE, s.REGISTRATIONS] <= MOST_PAST_KEPT and st[s.WHOLE, s.TERMS] <= MOST_PAST_KEPT)


def learnt(
    run: Any, forgets: Any, ends: Any, judge: Judge, automaton: Automaton, at: s.Ints, memory: int, symbol: int
) -> int:
    """Ask the judge what the symbol does after a memory: where the transition leads and its effect, or LEFT."""
    st, memories, effects = judge.st, automaton.memories, automaton.effects
    unpack(st, automaton.memory, memories.starts[memory] * WORD)
    row = at[EFFECTS]
    if symbol == len(judge.event):
        ends(st)
    else:
        ask(run, judge, symbol)
        forgets(st)
    effects.starts[row + 1] = said_of(st, effects, row)
    if not to_be_kept(st):
        return LEFT
    after = 0
    if symbol != len(judge.event):
        end = pack(st, automaton.memory, memories.starts[at[MEMORIES]] * WORD)
        if end < 0:
            return LEFT
        memories.starts[at[MEMORIES] + 1] = end // WORD
        after = met(memories, at[MEMORIES])
        if after == at[MEMORIES]:
            at[MEMORIES] += 1
    effect = met(effects, row)
    if effect == row:
        at[EFFECTS] += 1
    return after << EFFECT_BITS | effect


def is_full(automaton: Automaton, at: s.Ints) -> bool:
    """Whether there may be no room for one more transition, memory and effect."""
    return not (
        2 * at[TRANSITIONS] < len(automaton.transition)
        and has_room(automaton.memories, at[MEMORIES], at[LARGEST_MEMORY])
        and has_room(automaton.effects, at[EFFECTS], SAYS * RULES)
    )


def take_back(transition: Table, symbols: int, rows: s.Ints, begin: int, upto: int, times: s.Ints) -> None:
    """The transitions from the beginning of a trace have not been taken."""
    state = 0
    for i in range(begin, upto):
        to = transition[slot_of(transition, state * symbols + rows[i]), TO]
        times[to & EFFECT] -= 1
        state = to >> EFFECT_BITS


def follow(
    run: Any,
    forgets: Any,
    ends: Any,
    judge: Judge,
    automaton: Automaton,
    at: s.Ints,
    rows: s.Ints,
    starts: s.Ints,
    wanted: s.Ints,
    places: s.Ints,
    states: s.Ints,
    times: s.Ints,
    left: s.Ints,
) -> int:
    """Follow the traces that are `wanted`, from their `places` on, where they are in these `states`: how often each effect
    occurred, and which of them are `left` to the kernel.
    """
    transition, end = automaton.transition, len(judge.event)
    while at[NEXT] < len(wanted):
        t = wanted[at[NEXT]]
        i, state, upto = places[t], states[t], starts[t + 1]
        while i <= upto:
            symbol = rows[i] if i < upto else end
            key = state * (end + 1) + symbol
            slot = slot_of(transition, key)
            if transition[slot, KEY] == FREE and at[TRANSITIONS] < at[ALLOWED]:
                if is_full(automaton, at):
                    places[t], states[t] = i, state
                    return FULL
                transition[slot, TO] = learnt(run, forgets, ends, judge, automaton, at, state, symbol)
                transition[slot, KEY] = key
                at[TRANSITIONS] += 1
            to = transition[slot, TO]
            if to < 0:
                take_back(transition, end + 1, rows, starts[t], i, times)
                left[t] = 1
                break
            times[to & EFFECT] += 1
            state = to >> EFFECT_BITS
            i += 1
        at[NEXT] += 1
    return DONE

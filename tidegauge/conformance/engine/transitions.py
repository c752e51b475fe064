"""Transitions of the automaton: what the judge made of an event after a memory, remembered."""

from typing import Any, NamedTuple

from tidegauge.conformance.engine.one_event import (
    FREE,
    WORD,
    Judge,
    MemoryBytes,
    MemoryTable,
    judge_event,
    mix,
    pack,
    unpack,
)
from tidegauge.conformance.judge import state as s
from tidegauge.conformance.judge.fields import RULES

# Pools of rows of words of any length, each distinct row stored once.
#
# Rule of this file: equal hashes are not enough, rows are compared word by word.


class Pool(NamedTuple):
    """Row i is `words[starts[i]:starts[i + 1]]`; a hash table of them, as large as a power of two."""

    words: s.Ints
    starts: s.Ints
    slots: s.Ints


def intern_row(pool: Pool, row: int) -> int:
    """Return the number of an earlier row equal to `row`, which was written after the last one; else `row`, now stored."""
    words, starts = pool.words, pool.starts
    new = words[starts[row] : starts[row + 1]]
    h = 0
    for k in range(len(new)):
        h = mix(h, int(new[k]))
    mask = len(pool.slots) - 1
    slot = h & mask
    while pool.slots[slot] != FREE:
        other = pool.slots[slot]
        if equal_rows(new, words[starts[other] : starts[other + 1]]):
            return int(other)
        slot = (slot + 1) & mask
    pool.slots[slot] = row
    return row


def equal_rows(row: s.Ints, other: s.Ints) -> bool:
    """Return whether two rows are equal."""
    if len(row) != len(other):
        return False
    k = 0
    while k < len(row) and row[k] == other[k]:
        k += 1
    return k == len(row)


def rehash_rows(pool: Pool, rows: int) -> None:
    """Fill a new hash table with the first rows."""
    for row in range(rows):
        intern_row(pool, row)


def has_room(pool: Pool, rows: int, most: int) -> bool:
    """Return whether there is room for one more row of at most so many words."""
    return bool(rows + 1 < len(pool.starts) and pool.starts[rows] + most <= len(pool.words))


# The judge as an automaton that is built as far as traces lead through it, as RE2 builds its DFA.
#
# 1. A state is a memory of the judge (conformance.engine.one_event); in state 0 nothing is known. A symbol is an event of
# the table, or the end of a trace, which leads back to state 0. The judge is applied once for each state and symbol; what it
# adds to the tallies, the effect, is stored with the transition.
# 2. Where a rule fails, or a memory cannot be kept, there is no transition: the whole trace is left to the kernel, and the
# effects counted for it so far are taken back.
# 3. No memory is kept in which the kernel might begin to compact (conformance.judge.compaction): when it judges a trace by
# itself it has a larger table, and would compact later.
# 4. Tables have fixed room: `follow` returns FULL when it needs more, and continues where it was when it is called again.
# 5. Known transitions are followed by conformance.engine.double_array; here, traces with unknown ones.


DONE, FULL = range(2)
LEFT = -2
"""The target of a transition that does not exist (rule 2); FREE: not learnt yet."""

# Columns of a transition, and places in `at`
KEY, TO = range(2)
NEXT, TRANSITIONS, MEMORIES, EFFECTS, ALLOWED, LARGEST_MEMORY = range(6)
"""The position among the wanted traces; counts of the three tables; how many transitions there may be; words of a memory."""

SPREAD = 0x1E3779B97F4A7C15
"""Odd, and without a pattern: products with it differ in their middle bits."""

EFFECT_BITS = 24
EFFECT = (1 << EFFECT_BITS) - 1
"""The bits of TO with the number of the effect; the state is in the bits above."""
COUNTED = (s.HELD_COUNT, s.UNDECIDED_COUNT, s.MISSING)
"""An effect on a rule: how many checks held, how many are undecided, and the fields that they lack."""
SAYS = len(COUNTED) + 1
"""Words of an effect for each rule that it changes: the rule, and these counts."""
KEPT_PAST = 16
"""Registrations and terms that there is room for in a memory,"""
MOST_PAST_KEPT = 12
"""and how many it may hold to be kept: an event adds two at most, so none ever meets a full table."""


class Automaton(NamedTuple):
    """Transitions as a hash table, memories and effects; `memory` are the words of the memories as bytes."""

    transition: MemoryTable
    memories: Pool
    memory: MemoryBytes
    effects: Pool


def slot_of(transition: MemoryTable, key: int) -> int:
    """Return the slot of a transition, or the one where it belongs."""
    slot = (int(key) * SPREAD >> 32) & (len(transition) - 1)
    while transition[slot, KEY] != key and transition[slot, KEY] != FREE:
        slot = (slot + 1) & (len(transition) - 1)
    return slot


def rehash_transitions(before: MemoryTable, automaton: Automaton, at: s.Ints) -> None:
    """Fill new hash tables; `before`: the transitions so far."""
    for i in range(len(before)):
        # A slot depends on the size of the table: each transition gets a new one.
        if before[i, KEY] != FREE:
            slot = slot_of(automaton.transition, before[i, KEY])
            automaton.transition[slot, KEY] = before[i, KEY]
            automaton.transition[slot, TO] = before[i, TO]
    rehash_rows(automaton.memories, at[MEMORIES])
    rehash_rows(automaton.effects, at[EFFECTS])


def drain_tallies(st: s.State, effects: Pool, row: int) -> int:
    """Move what an event added to the tallies into a row of the effects. Return where the row ends.

    The row has SAYS words for each rule that the event changed: the rule, then its counts.
    """
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


def may_keep(st: s.State) -> bool:
    """Return whether nothing failed, and nothing was or will at the next event be removed for want of room."""
    if st[s.PARTITION, s.FAILED] != 0 or st[s.PARTITION, s.OVERFLOW] != 0:
        return False
    # Nearly full is too full: the kernel, which has more room, would compact later than the automaton (rule 3).
    return bool(st[s.PARTITION, s.REGISTRATIONS] <= MOST_PAST_KEPT and st[s.PARTITION, s.TERMS] <= MOST_PAST_KEPT)


def learn_transition(
    run: Any, forgets: Any, ends: Any, judge: Judge, automaton: Automaton, at: s.Ints, memory: int, symbol: int
) -> int:
    """Judge a symbol after a memory. Return the state and effect of the transition, or LEFT."""
    st, memories, effects = judge.st, automaton.memories, automaton.effects
    unpack(st, automaton.memory, memories.starts[memory] * WORD)
    row = at[EFFECTS]
    if symbol == len(judge.event):  # the end of the trace
        ends(st)
    else:
        judge_event(run, judge, symbol)
        forgets(st)
    effects.starts[row + 1] = drain_tallies(st, effects, row)
    if not may_keep(st):
        return LEFT
    # After the end of a trace the next one begins with no knowledge: state 0.
    after = 0
    if symbol != len(judge.event):
        end = pack(st, automaton.memory, memories.starts[at[MEMORIES]] * WORD)
        if end < 0:
            return LEFT
        memories.starts[at[MEMORIES] + 1] = end // WORD
        # The row was written after the last one; it counts only if no memory is equal to it.
        after = intern_row(memories, at[MEMORIES])
        if after == at[MEMORIES]:
            at[MEMORIES] += 1
    effect = intern_row(effects, row)
    if effect == row:
        at[EFFECTS] += 1
    return after << EFFECT_BITS | effect


def is_full(automaton: Automaton, at: s.Ints) -> bool:
    """Return whether there may be no room for one more transition, memory and effect."""
    return not (
        2 * at[TRANSITIONS] < len(automaton.transition)
        and has_room(automaton.memories, at[MEMORIES], at[LARGEST_MEMORY])
        and has_room(automaton.effects, at[EFFECTS], SAYS * RULES)
    )


def take_back(transition: MemoryTable, symbols: int, rows: s.Ints, begin: int, upto: int, times: s.Ints) -> None:
    """Take back the effects counted from the beginning of a trace."""
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
    """Follow the traces that are `wanted`, from their `places` on, where they are in these `states`.

    `times`: how often each effect occurred; `left`: the traces that are left to the kernel. Returns DONE or FULL.
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
                # Before the transition is begun, so that it is never left half done.
                if is_full(automaton, at):
                    places[t], states[t] = i, state
                    return FULL
                transition[slot, TO] = learn_transition(run, forgets, ends, judge, automaton, at, state, symbol)
                transition[slot, KEY] = key
                at[TRANSITIONS] += 1
            to = transition[slot, TO]
            # A rule fails here, or the memory is too large: the kernel judges the whole trace, and counts all of it.
            if to < 0:
                take_back(transition, end + 1, rows, starts[t], i, times)
                left[t] = 1
                break
            times[to & EFFECT] += 1
            state = to >> EFFECT_BITS
            i += 1
        at[NEXT] += 1
    return DONE

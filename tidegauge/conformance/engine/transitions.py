"""Transitions of the lazy automaton (conformance.engine.lazy_automaton): learnt from the kernel once, then looked up.

A state is a memory of the judge: what it knows of a partition, as bytes (conformance.engine.one_event). A symbol is an event
of a table, as its row, or the end of a trace: the number after the last row. A transition has a KEY, state * symbols +
symbol, and a target TO: the next state, and the effect, which is what the event adds to the tallies. Functions here are
compiled by Numba, so the counts that they share are in one array, `at`, by the names NEXT to LARGEST_MEMORY.
"""

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

# Pools of rows of words of any length, each distinct row stored once. A caller writes a row after the last one, and
# `intern_row` says whether it is new.
#
# Rule of this part: equal hashes are not enough, rows are compared word by word.


class Pool(NamedTuple):
    """Row i is `words[starts[i]:starts[i + 1]]`; `slots` is a hash table of the numbers of rows, of a power of two."""

    words: s.Ints
    starts: s.Ints
    slots: s.Ints


def intern_row(pool: Pool, row: int) -> int:
    """Return the number of an earlier row equal to row number `row`; else enter that in the hash table and return it."""
    words, starts = pool.words, pool.starts
    new = words[starts[row] : starts[row + 1]]
    h = 0
    for k in range(len(new)):
        h = mix(h, int(new[k]))
    mask = len(pool.slots) - 1  # the number of slots is a power of two
    slot = h & mask
    while pool.slots[slot] != FREE:
        other = pool.slots[slot]
        if equal_rows(new, words[starts[other] : starts[other + 1]]):
            return int(other)
        slot = (slot + 1) & mask
    pool.slots[slot] = row
    return row


def equal_rows(row: s.Ints, other: s.Ints) -> bool:
    """Return whether two rows of words are equal."""
    if len(row) != len(other):
        return False
    k = 0
    while k < len(row) and row[k] == other[k]:
        k += 1
    return k == len(row)


def rehash_rows(pool: Pool, rows: int) -> None:
    """Enter the first `rows` rows in a pool's hash table, which is empty."""
    for row in range(rows):
        intern_row(pool, row)


def has_room(pool: Pool, rows: int, most: int) -> bool:
    """Return whether a pool of so many rows has room for one more, of at most `most` words.

    The last of its `starts` is where the last row ends: it begins none.
    """
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

KEY, TO = range(2)
"""Columns of a transition."""
NEXT, TRANSITIONS, MEMORIES, EFFECTS, ALLOWED, LARGEST_MEMORY = range(6)
"""Places in `at`: the position among the wanted traces; how many rows of the three tables are in use; how many transitions
there may be; the most words of a memory."""

SPREAD = 0x1E3779B97F4A7C15
"""A multiplier for hashes. Odd, and without a pattern: products with it differ in their middle bits."""

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
    """Transitions as a hash table with columns KEY and TO, memories and effects.

    `memory` are the same words as `memories.words`, seen as bytes.
    """

    transition: MemoryTable
    memories: Pool
    memory: MemoryBytes
    effects: Pool


def slot_of(transition: MemoryTable, key: int) -> int:
    """Return the slot of the transition with this key or, if there is none, the free one where it belongs."""
    slot = (int(key) * SPREAD >> 32) & (len(transition) - 1)
    while transition[slot, KEY] != key and transition[slot, KEY] != FREE:
        slot = (slot + 1) & (len(transition) - 1)
    return slot


def rehash_transitions(before: MemoryTable, automaton: Automaton, at: s.Ints) -> None:
    """Fill the new, empty hash tables of a larger automaton; `before` are the transitions so far."""
    for i in range(len(before)):
        # A slot depends on the size of the table: each transition gets a new one.
        if before[i, KEY] != FREE:
            slot = slot_of(automaton.transition, before[i, KEY])
            automaton.transition[slot, KEY] = before[i, KEY]
            automaton.transition[slot, TO] = before[i, TO]
    rehash_rows(automaton.memories, at[MEMORIES])
    rehash_rows(automaton.effects, at[EFFECTS])


def drain_tallies(st: s.State, effects: Pool, row: int) -> int:
    """Move what an event added to the tallies into row number `row` of the effects. Return where its words end.

    The row has SAYS words for each rule that the event changed: the rule, then its counts. The tallies are 0 after that.
    """
    at = effects.starts[row]
    for r in range(RULES):
        tally = s.TALLIES + r
        # A rule of which no check failed, since then there is no transition: the other counts are the effect.
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
    """Return whether the memory may be a state: no rule failed, and no want of room removes anything now or next."""
    if st[s.PARTITION, s.FAILED] != 0 or st[s.PARTITION, s.OVERFLOW] != 0:
        return False
    # Nearly full is too full: the kernel, which has more room, would compact later than the automaton (rule 3).
    return bool(st[s.PARTITION, s.REGISTRATIONS] <= MOST_PAST_KEPT and st[s.PARTITION, s.TERMS] <= MOST_PAST_KEPT)


def learn_transition(
    run: Any, forgets: Any, ends: Any, judge: Judge, automaton: Automaton, at: s.Ints, memory: int, symbol: int
) -> int:
    """Judge a symbol after a memory. Return the TO of the transition, or LEFT if there is none (rule 2).

    `run`, `forgets` and `ends` are the functions of compiled.Kernel: judge an event, forget what can no longer matter, and
    check the end of a trace.
    """
    st, memories, effects = judge.st, automaton.memories, automaton.effects
    unpack(st, automaton.memory, memories.starts[memory] * WORD)
    row = at[EFFECTS]  # behind the effects so far: it counts only if no effect is equal to it
    if symbol == len(judge.event):  # the end of the trace
        ends(st)
    else:
        judge_event(run, judge, symbol)
        forgets(st)
    # Before LEFT is returned, so that the tallies are 0 again.
    effects.starts[row + 1] = drain_tallies(st, effects, row)
    if not may_keep(st):
        return LEFT
    # After the end of a trace the next one begins with no knowledge: state 0.
    after = 0
    if symbol != len(judge.event):
        end = pack(st, automaton.memory, memories.starts[at[MEMORIES]] * WORD)
        if end < 0:  # a value is too large for a byte
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
    # At most half of the slots for transitions are used, so that a search in the hash table ends soon.
    return not (
        2 * at[TRANSITIONS] < len(automaton.transition)
        and has_room(automaton.memories, at[MEMORIES], at[LARGEST_MEMORY])
        and has_room(automaton.effects, at[EFFECTS], SAYS * RULES)
    )


def take_back(transition: MemoryTable, symbols: int, rows: s.Ints, begin: int, upto: int, times: s.Ints) -> None:
    """Take back the effects of a trace that were counted for the events from `begin` up to, without, `upto`.

    They are looked up again, from state 0 on. `symbols` is the number of symbols, `rows` and `times` as in `follow`.
    """
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
    """Follow the traces with the numbers `wanted`; return DONE, or FULL if a table must grow before this is called again.

    Event i of the traces is the symbol `rows[i]`; a trace begins at `starts`. `places` and `states` are, by trace, the event
    to go on from and the state there. Counted are `times`, how often each effect occurred, and marked with 1 in `left` the
    traces that are left to the kernel. `run`, `forgets` and `ends` as in `learn_transition`.
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
                # Asked before the transition is learnt, so that none is left half done.
                if is_full(automaton, at):
                    places[t], states[t] = i, state
                    return FULL
                transition[slot, TO] = learn_transition(run, forgets, ends, judge, automaton, at, state, symbol)
                transition[slot, KEY] = key
                at[TRANSITIONS] += 1
            to = transition[slot, TO]
            # LEFT (a rule fails here, or the memory is too large), or FREE (no more may be learnt): the kernel judges the
            # whole trace, and counts all of it.
            if to < 0:
                take_back(transition, end + 1, rows, starts[t], i, times)
                left[t] = 1
                break
            times[to & EFFECT] += 1
            state = to >> EFFECT_BITS
            i += 1
        at[NEXT] += 1
    return DONE

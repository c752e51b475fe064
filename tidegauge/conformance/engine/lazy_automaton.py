"""An automaton for traces of few different events, built as far as they lead through it (as RE2's lazy DFA).

Private to conformance.engine.adaptive_judge, which decides when it pays. A state of the automaton is a memory: what the
judge knows of the partition, as bytes. A symbol is an event, as a row of one table. A transition is learnt by asking the
kernel: it leads to the memory after the event, and has an effect, what the event adds to the tallies of the rules.

Memories, transitions and effects are arrays with fixed room (transitions.Automaton); `_at` counts what is in them, by the
names NEXT, TRANSITIONS, MEMORIES, .. of conformance.engine.transitions. Memories and effects are each a Pool: rows of words
of different lengths, end to end (row i is `words[starts[i]:starts[i + 1]]`), and a hash table of the rows' numbers, `slots`.

Rules of this file

1. It counts what the kernel counts: each transition was computed by the kernel once, and a trace that lacks one is judged
   by the kernel from its beginning (conformance.engine.transitions).
2. It learns no more transitions than it is allowed, and no more than fit into MOST_BYTES with the memories they lead to. All
   other traces are left to the kernel.
3. Tables that are full are doubled.
4. The known transitions are put into a double array (conformance.engine.double_array) again and again: as soon as
   those that the array lacks have cost as much as making a new one.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from tidegauge.conformance.engine import compiled, double_array, transitions
from tidegauge.conformance.engine.double_array import NOTHING_KNOWN, KnownTransitions, known_by_now
from tidegauge.conformance.engine.judge import (
    Failure,
    Judgement,
    RuleTally,
    add_tallies,
    frozen,
    frozen_inputs,
    judge_with,
    options_of,
)
from tidegauge.conformance.engine.machine_code import numba, types
from tidegauge.conformance.engine.one_event import FREE, WORD, Judge, empty_memories, judge_from, pack, spans_of
from tidegauge.conformance.engine.transitions import (
    ALLOWED,
    COUNTED,
    EFFECTS,
    FULL,
    KEPT_PAST,
    LARGEST_MEMORY,
    MEMORIES,
    NEXT,
    SAYS,
    TRANSITIONS,
    Automaton,
    Pool,
    intern_row,
)
from tidegauge.conformance.judge import compaction, fields
from tidegauge.conformance.judge import kernel as judge_kernel
from tidegauge.conformance.judge import state as s
from tidegauge.conformance.judge.events import lifecycle
from tidegauge.conformance.judge.fields import RULE_IDS
from tidegauge.traces.columns import Columns, Distinct, ranges, to_columns, with_starts
from tidegauge.traces.from_model.behaviour import config_for
from tidegauge.traces.schema import Config

CACHE_ROOM = 8
"""Entries of an epoch cache that a memory has room for."""
MOST_BYTES = 1 << 28
"""Bytes that memories and transitions may take up."""
FIRST_TRANSITIONS, FIRST_MEMORIES, FIRST_EFFECTS = 1 << 20, 1 << 18, 1 << 8
"""Rows for which there is room at first, a power of two each; of the rows for transitions half are used."""
FIRST_WORDS = 1 << 23
"""The words of all memories for which there is room at first: 25 to 35 a memory for a model of two brokers."""
ALL = 1 << 62
"""Transitions that may be learnt: as many as there are."""

WORTH = 4
"""Transitions that are looked up in the hash table in the time in which one is put into a double array."""


class Execution(NamedTuple):
    """The functions that are called here, compiled or not: the kernel's, two of `transitions`, two of `double_array`.

    `follow` leads traces through the hash table and learns, `walk` through the double array, which `place` builds.
    """

    kernel: compiled.Kernel
    follow: Any
    rehash_transitions: Any
    place: Any
    walk: Any


class LazyAutomaton:
    """A judge of traces whose events are rows of one table; it learns transitions with each `judge`."""

    def __init__(self, table: Columns, config: Config, execution: Execution | None = None, most: int = MOST_BYTES) -> None:
        """Begin with one state, a judge that has read nothing; the automaton may take `most` bytes.

        Without an `execution` its functions are compiled, or loaded.
        """
        self.config = config
        options = options_of(table, config)
        # Where kinds of events are not reported, the end of a trace makes more unknown (judge.unobserved): no symbol does.
        self.applies = options[s.UNOBSERVED] == 0
        # An event at a time: the end of a piece is not the end of the trace.
        options[s.PIECEWISE] = 1
        # The kernel's table with room for one failure: after a failure there is no transition.
        st = s.allocate(options, CACHE_ROOM, 1, KEPT_PAST)
        s.forget(st, 0)  # as at the beginning of a trace, of any number
        self._judge = judge_from(st, frozen_inputs(table, None, np.zeros(0, np.int64)))
        self._most = most
        self._at = np.zeros(LARGEST_MEMORY + 1, np.int64)
        self._at[MEMORIES] = 1  # state 0
        # In words: what a memory takes if all its room is in use, and one to spare.
        self._at[LARGEST_MEMORY] = empty_memories(spans_of(st), 1).shape[1] // WORD + 1
        self._automaton = _automaton(
            _no_transitions(FIRST_TRANSITIONS),
            _empty_pool(max(FIRST_WORDS, int(self._at[LARGEST_MEMORY])), FIRST_MEMORIES),
            # An effect has at most SAYS words for each rule.
            _empty_pool(FIRST_EFFECTS * SAYS * len(RULE_IDS), FIRST_EFFECTS),
        )
        # State 0 is the memory of a judge that has read nothing; every trace begins there.
        memories = self._automaton.memories
        memories.starts[1] = pack(st, self._automaton.memory, 0) // WORD  # `pack` returns a byte, row 1 begins at a word
        intern_row(memories, 0)
        self._is_closed = False
        self._left = 0
        # The double array, the transitions that were learnt when it was made, and the events looked up elsewhere since.
        self._double_array = NOTHING_KNOWN
        self._in_double_array = self._looked_up = 0
        self._execution = execution or compiled_for(self._judge, self._automaton)

    @property
    def transitions(self) -> int:
        """The number of transitions that were learnt."""
        return int(self._at[TRANSITIONS])

    @property
    def memories(self) -> int:
        """The number of states so far."""
        return int(self._at[MEMORIES])

    @property
    def bytes(self) -> int:
        """The bytes that states and transitions take up."""
        return _bytes_of(self._automaton, self._double_array)

    @property
    def is_closed(self) -> bool:
        """Whether there is no room to learn more transitions."""
        return self._is_closed

    @property
    def left(self) -> int:
        """The number of events that the last `judge` left to the kernel."""
        return self._left

    def judge(self, distinct: Distinct, allowed: int = ALL) -> Judgement:
        """Judge all traces, as the kernel would; learn transitions until there are `allowed`, those of earlier calls too."""
        at, starts = self._at, distinct.table.trace_starts
        traces = len(starts) - 1
        at[ALLOWED], at[NEXT] = 0 if self._is_closed else allowed, 0
        # By trace: 1 where it is left to the kernel; the event that is next, and the state before it.
        left = np.zeros(traces, np.int64)
        # In the beginning the first event, and state 0, in which nothing is known.
        places, states = starts[:-1].copy(), np.zeros(traces, np.int64)
        times = np.zeros(self._most_effects, np.int64)  # how often each effect occurred
        rows, frozen_starts = frozen(np.ascontiguousarray(distinct.rows)), frozen(starts)
        # First the double array, which is three times as fast, then the hash table for what it lacks.
        if len(self._double_array.cells):
            places[:] = double_array.KNOWN
            self._execution.walk(*self._double_array, len(distinct.table), rows, frozen_starts, times, places, states)
        # What follows the first unknown transition of a trace is followed in the hash table.
        wanted = np.flatnonzero(places != double_array.KNOWN)
        self._looked_up += int((starts[wanted + 1] - places[wanted]).sum())
        arguments = rows, frozen_starts, wanted, places, states
        while (
            len(wanted)  # Numba takes a millisecond to find out what it is handed, as long as tens of thousands of events
            and self._execution.follow(*self._execution.kernel, self._judge, self._automaton, at, *arguments, times, left)
            == FULL
        ):
            self._grow()
            # There may be room for more effects now.
            times = np.concatenate((times, np.zeros(self._most_effects - len(times), np.int64)))
        # Make the double array anew if it lacks transitions, and looking these up has cost as much by now (rule 4).
        if self.transitions > self._in_double_array and self._looked_up > WORTH * self.transitions:
            self._looked_up, self._in_double_array = 0, self.transitions
            symbols = len(self._judge.event) + 1  # the events of the table, and the end of a trace
            bytes_left = self._most - _bytes_of(self._automaton)
            self._double_array = known_by_now(
                self._automaton.transition, symbols, self.memories, bytes_left, self._execution.place
            )
        tallies = self._counted(times)
        failures: tuple[Failure, ...] = ()
        left_out = self._left = 0
        # Traces in which a rule fails, or whose memory is too large: the kernel judges them from their beginning.
        if left.any():
            left_traces, among_all = _some_traces(distinct, np.flatnonzero(left))
            self._left = len(left_traces)
            by_kernel = judge_with(self._execution.kernel.judge, left_traces, self.config)
            tallies = {rule: add_tallies(tallies[rule], by_kernel.tallies[rule]) for rule in RULE_IDS}
            failures, left_out = tuple(map(among_all, by_kernel.failures)), by_kernel.failures_left_out
        return Judgement(len(distinct), traces, tallies, failures, left_out)

    @property
    def _most_effects(self) -> int:
        """The length of an array that counts effects by their numbers: at least the effects that there is room for."""
        return len(self._automaton.effects.starts)

    def _counted(self, times: s.Ints) -> dict[str, RuleTally]:
        """Return the tallies of all rules; `times`: how often each effect occurred. No effect has a failure.

        An effect is a row of words (transitions.drain_tallies): for each rule that it changes SAYS of them.
        """
        held, undecided, missing = ([0] * len(RULE_IDS) for _ in COUNTED)  # by rule; `missing` is a bit mask of fields
        effects = self._automaton.effects
        for effect in np.flatnonzero(times).tolist():
            count, words = int(times[effect]), effects.words[effects.starts[effect] : effects.starts[effect + 1]]
            for rule, effect_held, effect_undecided, missing_fields in words.reshape(-1, SAYS).tolist():
                held[rule] += count * effect_held
                undecided[rule] += count * effect_undecided
                missing[rule] |= missing_fields
        return {
            rule: RuleTally(held[r], failed=0, undecided=undecided[r], missing=fields.names(missing[r]))
            for r, rule in enumerate(RULE_IDS)
        }

    def _grow(self) -> None:
        """Double the tables that are full, and fill their hash tables anew."""
        before, at = self._automaton, self._at
        # At most half of the slots for transitions are used (transitions.is_full).
        transition = _no_transitions(len(before.transition) * (2 if 2 * at[TRANSITIONS] >= len(before.transition) else 1))
        memories = _larger(before.memories, int(at[MEMORIES]), int(at[LARGEST_MEMORY]))
        effects = _larger(before.effects, int(at[EFFECTS]), SAYS * len(RULE_IDS))
        larger = _automaton(transition, memories, effects)
        # Where there is no room for larger ones, what is known stays in use and no more is learnt.
        if _bytes_of(larger, self._double_array) > self._most:
            self._is_closed, at[ALLOWED] = True, 0
        else:
            self._automaton = larger
            self._execution.rehash_transitions(before.transition, larger, at)


def _automaton(transition: s.Ints, memories: Pool, effects: Pool) -> Automaton:
    """Return an automaton of these tables; its `memory` shows the words of the memories as bytes, without a copy."""
    return Automaton(transition, memories, memories.words.view(np.int8), effects)


def _empty_pool(words: int, rows: int) -> Pool:
    """Return an empty pool (rows of different lengths, end to end) with room for `rows` rows of `words` words together."""
    return Pool(np.zeros(words, np.int64), np.zeros(rows + 1, np.int64), _free_slots(rows))


def _larger(pool: Pool, rows: int, most: int) -> Pool:
    """Return a pool with room for one more row of at most `most` words, after the `rows` in use: what is full is doubled.

    The slots of its hash table are free: the caller enters the rows again.
    """
    words, starts = pool.words, pool.starts
    if starts[rows] + most > len(words):
        words = np.concatenate((words, np.zeros_like(words)))
    if rows + 1 == len(starts):
        starts = np.concatenate((starts, np.zeros(len(starts) - 1, np.int64)))
    return Pool(words, starts, _free_slots(len(starts) - 1))


def _bytes_of(automaton: Automaton, in_double_array: KnownTransitions = NOTHING_KNOWN) -> int:
    """Return the bytes of an automaton and a double array, without its effects, which are few."""
    return sum(table.nbytes for table in (automaton.transition, *automaton.memories, *in_double_array))


def _no_transitions(slots: int) -> s.Ints:
    """Return a hash table of transitions with so many slots, all free; its two columns are KEY and TO of `transitions`."""
    return np.full((slots, 2), FREE, np.int64)


def _free_slots(rows: int) -> s.Ints:
    """Return the hash table of a pool with room for `rows` rows: two slots a row, all free."""
    return np.full(2 * rows, FREE, np.int64)


def _some_traces(distinct: Distinct, wanted: s.Ints) -> tuple[Distinct, Callable[[Failure], Failure]]:
    """Return the traces with the numbers `wanted`, and a function that gives a failure in them its place among all."""
    starts = distinct.table.trace_starts
    first_events, lengths = starts[wanted], np.diff(starts)[wanted]
    new_starts = np.concatenate(([0], np.cumsum(lengths)))

    def among_all(failure: Failure) -> Failure:
        """Return a failure in the chosen traces by its trace and row among all."""
        row = int(first_events[failure.trace]) + failure.row - int(new_starts[failure.trace])
        return replace(failure, trace=int(wanted[failure.trace]), row=row)

    rows = distinct.rows[ranges(first_events, lengths)]  # of the table: one for each event of the wanted traces
    return Distinct(with_starts(distinct.table, new_starts), rows), among_all


INTERPRETED = Execution(
    compiled.Kernel(judge_kernel.judge_traces, compaction.forget_consumed, lifecycle.logs_agree),
    transitions.follow,
    transitions.rehash_transitions,
    double_array.place,
    double_array.walk,
)


def compiled_for(judge: Judge, automaton: Automaton) -> Execution:
    """Return the functions of an Execution as machine code for arguments of the types that these have."""
    type_of: Any = numba.typeof
    return _compiled(type_of(judge), type_of(automaton))


def is_ready() -> bool:
    """Return whether the machine code is compiled already: whether a file on disk holds that of `follow`."""
    directory = compiled.cache_directory()
    return directory is not None and any(directory.glob(f"*.{transitions.follow.__name__}-*.nbc"))


def is_loaded() -> bool:
    """Return whether this process has loaded the machine code."""
    return _compiled.cache_info().currsize > 0


def prepare() -> None:
    """Load the machine code, or compile it."""
    # Machine code is made for types, which are the same for all automata: one without events is enough.
    config = config_for(2)
    LazyAutomaton(to_columns([], config), config)


@cache
def _compiled(judge: Any, automaton: Any) -> Execution:
    """Compile, or load, the functions of an Execution for these Numba types of judge and automaton."""
    twins, ints, table = compiled.twins_of(compiled.AUTOMATON, **compiled.UNCOUNTED), types.int64[::1], types.int64[:, ::1]
    # Each function with the types of its arguments, in their order. A COLUMN is a read-only array.
    follow_types: Any = (*compiled.by_address(), judge, automaton, ints, compiled.COLUMN, compiled.COLUMN, *(ints,) * 5)
    machine_code = [
        compiled.cached_on_disk(
            partial(compiled.jit, compiled.with_globals(function, twins), arguments, **compiled.UNCOUNTED)
        )
        for function, arguments in (
            (transitions.follow, follow_types),
            (transitions.rehash_transitions, (table, automaton, ints)),
            (double_array.place, (ints,) * 6),
            (double_array.walk, (ints, ints, types.int64, compiled.COLUMN, compiled.COLUMN, ints, ints, ints)),
        )
    ]
    # Not `tidy`: it also clears unused rows and entries, which a memory leaves out anyway (one_event.pack).
    return Execution(compiled.kernel()._replace(forget=compiled.alone(compaction.forget_consumed)), *machine_code)

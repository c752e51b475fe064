"""Judging traces of few different events by an automaton that is built as far as they lead through it (as RE2's lazy DFA).

Rules of this file

1. It judges what the kernel judges and counts what the kernel counts: each transition was asked of the kernel once, and a
   trace that no transitions lead through is judged by the kernel as a whole (conformance.kernel.transitions).
2. Tables that are full are doubled; from MOST_BYTES of memories on no more are taken up.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types

from tidegauge.conformance.judging.judge import Failure, Judgement, RuleTally, frozen, frozen_inputs, judge_with
from tidegauge.conformance.judging.options import options_of
from tidegauge.conformance.judging.verdicts import added
from tidegauge.conformance.kernel import fields, judge_kernel, memory, transitions, whole
from tidegauge.conformance.kernel.compiled import (
    AUTOMATON,
    COLUMN,
    Kernel,
    by_address,
    cache_directory,
    jit,
    kept,
    kernel,
    twins_of,
    with_globals,
)
from tidegauge.conformance.kernel.one_event import FREE, Judge, empty_memories, judge_from, remembered, save, spans_of
from tidegauge.conformance.kernel.rule_ids import RULE_IDS
from tidegauge.conformance.kernel.state import GOES_ON, UNSEEN, Ints, allocate, forget
from tidegauge.conformance.kernel.transitions import (
    CLOSED,
    COUNTED,
    EFFECTS,
    FULL,
    KEPT_PAST,
    LANES,
    MEMORIES,
    STATE,
    TRANSITIONS,
    Automaton,
)
from tidegauge.traces.columns import Columns, to_columns
from tidegauge.traces.files.distinct import Distinct, ranges, with_starts
from tidegauge.traces.model.behaviour import config_for
from tidegauge.traces.schema import Config

ROOM = 8
"""Entries of a log that a memory has room for."""
MOST_BYTES = 1 << 28
"""What memories may take up."""
FIRST_TRANSITIONS, FIRST_MEMORIES, FIRST_EFFECTS = 1 << 20, 1 << 18, 1 << 8
"""What there is room for at first. Transitions are a power of two."""


class Execution(NamedTuple):
    """The kernel and the functions of conformance.kernel.transitions that drive it."""

    kernel: Kernel
    begin: Any
    follow: Any
    entered_again: Any


class LazyAutomaton:
    """What the judge makes of traces whose events are rows of one table; it learns with each `judge`."""

    def __init__(self, table: Columns, config: Config, execution: Execution | None = None, most: int = MOST_BYTES) -> None:
        self.config = config
        options = options_of(table, config)
        self.applies = options[UNSEEN] == 0  # else the end of a trace asks for more than what is known then
        options[GOES_ON] = 1
        st = allocate(options, ROOM, 1, KEPT_PAST)
        forget(st, 0)
        self._judge = judge_from(st, frozen_inputs(table, None, np.zeros(0, np.int64)))
        spans = spans_of(st)
        self._most = most // empty_memories(spans, 1).nbytes
        self._automaton = Automaton(
            transition=_free(FIRST_TRANSITIONS),
            spans=spans,
            memory=empty_memories(spans, min(FIRST_MEMORIES, self._most)),
            memory_at=_slots(FIRST_MEMORIES),
            effect=np.zeros((FIRST_EFFECTS, len(COUNTED) * len(RULE_IDS)), np.int64),
            effect_at=_slots(FIRST_EFFECTS),
        )
        save(st, spans, self._automaton.memory[0])
        remembered(self._automaton.memory.view(np.int64), self._automaton.memory_at, 0)
        self._at = np.zeros(CLOSED + 1, np.int64)
        self._at[MEMORIES] = 1
        self._lanes = np.zeros((LANES, STATE + 1), np.int64)
        self._execution = execution or compiled_for(self._judge, self._automaton)

    @property
    def transitions(self) -> int:
        """How often the judge was asked."""
        return int(self._at[TRANSITIONS])

    @property
    def memories(self) -> int:
        """The states so far."""
        return int(self._at[MEMORIES])

    @property
    def bytes(self) -> int:
        """What they take up."""
        return self.memories * int(self._automaton.memory.shape[1])

    def judge(self, given: Distinct) -> Judgement:
        """Judge all traces; the same as the kernel would say."""
        starts = given.table.trace_starts
        left, times = np.zeros(len(starts) - 1, np.int64), np.zeros(len(self._automaton.effect), np.int64)
        inputs = frozen(np.ascontiguousarray(given.rows)), frozen(starts)
        self._execution.begin(self._lanes, self._at, inputs[1])
        while (
            self._execution.follow(
                *self._execution.kernel, self._judge, self._automaton, self._at, self._lanes, *inputs, times, left
            )
            == FULL
        ):
            self._grow()
            times = np.concatenate((times, np.zeros(len(self._automaton.effect) - len(times), np.int64)))
        tallies = self._counted(times)
        failures: tuple[Failure, ...] = ()
        left_out = 0
        if left.any():
            rest, others = _only(given, np.flatnonzero(left))
            by_kernel = judge_with(self._execution.kernel.judge, rest, self.config)
            tallies = {rule: added(tallies[rule], by_kernel.tallies[rule]) for rule in RULE_IDS}
            failures, left_out = tuple(map(others, by_kernel.failures)), by_kernel.failures_left_out
        return Judgement(len(given), len(starts) - 1, tallies, failures, left_out)

    def _counted(self, times: Ints) -> dict[str, RuleTally]:
        occurred = np.flatnonzero(times)
        effects = self._automaton.effect[occurred].reshape(-1, len(RULE_IDS), len(COUNTED))
        held, undecided = (np.einsum("e,er->r", times[occurred], effects[:, :, k]).tolist() for k in (0, 1))
        missing = np.bitwise_or.reduce(effects[:, :, 2], axis=0).tolist()
        return {rule: RuleTally(held[r], 0, undecided[r], fields.names(missing[r])) for r, rule in enumerate(RULE_IDS)}

    def _grow(self) -> None:
        """Twice the room for what is full, transitions at the half, and hash tables filled anew."""
        before, at = self._automaton, self._at
        memory, effect = before.memory, before.effect
        transition = _free(len(before.transition) * (2 if 2 * at[TRANSITIONS] >= len(before.transition) else 1))
        if at[MEMORIES] == len(memory):
            room = min(2 * len(memory), self._most)
            at[CLOSED] = room == len(memory)
            memory = np.concatenate((memory, empty_memories(before.spans, room - len(memory))))
        if at[EFFECTS] == len(effect):
            effect = np.concatenate((effect, np.zeros_like(effect)))
        self._automaton = Automaton(transition, before.spans, memory, _slots(len(memory)), effect, _slots(len(effect)))
        self._execution.entered_again(before.transition, self._automaton, at)


def _free(rows: int) -> Ints:
    return np.full((rows, 2), FREE, np.int64)


def _slots(rows: int) -> Ints:
    return np.full(2 * rows + 1, FREE, np.int64)


def _only(given: Distinct, wanted: Ints) -> tuple[Distinct, Callable[[Failure], Failure]]:
    """Some of the traces, and where a failure of theirs is among all."""
    starts = given.table.trace_starts
    first, lengths = starts[wanted], np.diff(starts)[wanted]
    begin = np.concatenate(([0], np.cumsum(lengths)))

    def among_all(failure: Failure) -> Failure:
        row = int(first[failure.trace]) + failure.row - int(begin[failure.trace])
        return replace(failure, trace=int(wanted[failure.trace]), row=row)

    return Distinct(with_starts(given.table, begin), given.rows[ranges(first, lengths)]), among_all


INTERPRETED = Execution(
    Kernel(judge_kernel.judge_traces, memory.tidy, whole.logs_agree),
    transitions.begin,
    transitions.follow,
    transitions.entered_again,
)


def compiled_for(judge: Judge, automaton: Automaton) -> Execution:
    """The same as machine code."""
    type_of: Any = numba.typeof
    return _compiled(type_of(judge), type_of(automaton))


def is_ready() -> bool:
    """Whether the machine code need not be made first."""
    directory = cache_directory()
    return directory is not None and any(directory.glob(f"*.{transitions.follow.__name__}-*.nbc"))


def prepare() -> None:
    """Make or load the machine code."""
    config = config_for(2)
    LazyAutomaton(to_columns([], config), config)


@cache
def _compiled(judge: Any, automaton: Any) -> Execution:
    twins, ints, table = twins_of(AUTOMATON), types.int64[::1], types.int64[:, ::1]
    follow: Any = (*by_address(), judge, automaton, ints, table, COLUMN, COLUMN, ints, ints)
    made = [
        kept(partial(jit, with_globals(function, twins), said))
        for function, said in (
            (transitions.begin, (table, ints, COLUMN)),
            (transitions.follow, follow),
            (transitions.entered_again, (table, automaton, ints)),
        )
    ]
    return Execution(kernel(), *made)

"""Judges every behaviour of a bounded model.

Rules of this file

1. Soundness: where no pair of the product breaks a rule, and none does at the end of a trace, no behaviour of any length of
   this model raises an alarm.
2. A rule that breaks is shown by a shortest trace.
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidegauge.conformance.engine.judge import TooLargeError
from tidegauge.conformance.engine.one_event import FREE, MemoryTable, empty_memories, judge_event, save, spans_of
from tidegauge.conformance.judge.fields import RULE_IDS
from tidegauge.conformance.judge.state import FAILED, PARTITION, Ints
from tidegauge.traces.schema import Config, Event
from validation.product import machine
from validation.product.automaton import Automaton
from validation.product.executions import Machine, judge_of, machine_for
from validation.product.machine import (
    ASKED,
    ASKED_OF,
    BROKE,
    BY,
    CAME_FROM,
    DONE,
    FULL,
    MEMORIES,
    MEMORY,
    PAIRS,
    STATE,
    VERDICTS,
    Tables,
)

FIRST_ROOM = 1 << 16
"""Rows that a table begins with."""


@dataclass(frozen=True)
class Broken:
    """Rules that a right behaviour breaks, and a shortest trace that does."""

    rules: tuple[str, ...]
    events: tuple[Event, ...]


@dataclass(frozen=True)
class Walked:
    """The product of a model and the judge: its size, how often which rules break, and the first time of each."""

    automaton: Automaton
    config: Config
    room: int
    tables: Tables
    pairs: MemoryTable
    memories: int
    verdicts: MemoryTable
    transitions: int
    broken: Counter[tuple[str, ...]]
    first: tuple[Broken, ...]
    seconds: float
    notes: bool

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that some right behaviour breaks; where there is none, none of any length raises an alarm."""
        return tuple(sorted({rule for rules in self.broken for rule in rules}))


def machine_of(automaton: Automaton, config: Config, room: int) -> Machine:
    """Return the machine as machine code, for walks of a model and of the same model with parts left out."""
    judge = judge_of((*automaton.events, *automaton.initial), config, room)
    return machine_for(judge, _tables(spans_of(judge.st)))


def walk(automaton: Automaton, config: Config, room: int, machine: Machine | None = None, *, notes: bool = False) -> Walked:
    """Walk the whole product; with `notes` by the kernel that notes what it reads.

    `room`: how many entries of a log, registrations and terms the judge can remember. `machine`: another one than a freshly
    compiled one. Raises TooLargeError.
    """
    begin = time.process_time()
    judge = judge_of((*automaton.events, *automaton.initial), config, room, notes)
    tables = _tables(spans_of(judge.st))
    compiled = machine or machine_for(judge, tables, notes)
    run, tidy, end = compiled.kernel
    # The columns hold the automaton's events first, then the initial ones, which every trace begins with.
    for number in range(len(automaton.events), len(automaton.events) + len(automaton.initial)):
        judge_event(run, judge, number)
    if judge.st[PARTITION, FAILED] != 0:
        raise ValueError(f"expected initial events that break no rule, seen {rules_in(int(judge.st[PARTITION, FAILED]))}")
    tidy(judge.st)
    save(judge.st, tables.spans, tables.memory[0])
    at = np.array([0, 1, 1, 0], np.int64)  # pair 0 is (state 0, memory 0): nothing but the initial events
    compiled.rehash(tables, at)
    while True:
        ended = compiled.search(run, tidy, end, judge, automaton.first, automaton.symbol, automaton.target, tables, at)
        if ended == DONE:
            break
        if ended != FULL:
            raise TooLargeError(f"expected at most {room} epochs and registrations and numbers below 128; seen more")
        tables = _doubled(tables, at)
        compiled.rehash(tables, at)
    return _summary(automaton, config, room, tables, at, time.process_time() - begin, notes)


def _tables(spans: MemoryTable) -> Tables:
    return Tables(
        spans,
        empty_memories(spans, FIRST_ROOM),
        _slots(FIRST_ROOM),
        np.zeros(FIRST_ROOM, np.int64),
        np.zeros((FIRST_ROOM, BY + 1), np.int64),
        _slots(FIRST_ROOM),
        np.zeros((FIRST_ROOM, machine.OPEN + 1), np.int64),
        _slots(FIRST_ROOM),
    )


def _slots(rows: int) -> Ints:
    return np.full(2 * rows + 1, FREE, np.int64)


def _doubled(tables: Tables, at: Ints) -> Tables:
    """Return tables with twice the room where they are more than half full, and empty hash tables."""
    used = {"memory": at[MEMORIES], "at_end": at[MEMORIES], "pair": at[PAIRS], "verdict": at[VERDICTS]}
    rows = tables._asdict()
    for name, count in used.items():
        if 2 * count > len(rows[name]):
            rows[name] = np.concatenate((rows[name], np.zeros_like(rows[name])))
    slots = {f"{name}_slots": _slots(len(rows[name])) for name in ("memory", "pair", "verdict")}
    return Tables(**{**rows, **slots})


def _summary(
    automaton: Automaton, config: Config, room: int, tables: Tables, at: Ints, seconds: float, notes: bool
) -> Walked:
    """Count the rules that right behaviours break, with a shortest trace for each set of rules.

    A verdict belongs to a memory and an event. A broken one counts once for each pair of the product that has this memory
    and whose automaton allows this event: other pairs with the same memory do not.
    """
    pairs, verdicts = tables.pair[: at[PAIRS]], tables.verdict[: at[VERDICTS]]
    broken: Counter[tuple[str, ...]] = Counter()
    first: dict[tuple[str, ...], Broken] = {}

    def add(rules: tuple[str, ...], pair: int, last: Sequence[Event]) -> None:
        broken[rules] += 1
        if rules not in first:
            first[rules] = Broken(rules, (*automaton.initial, *shortest(automaton, pairs, pair), *last))

    # Few verdicts break a rule, but there are millions of pairs: filter the pairs by memory before looking at each.
    wrong = {(int(row[ASKED_OF]), int(row[ASKED])): int(row[BROKE]) for row in verdicts[verdicts[:, BROKE] != 0]}
    broken_memories = np.unique(verdicts[verdicts[:, BROKE] != 0, ASKED_OF])
    for pair in np.flatnonzero(np.isin(pairs[:, MEMORY], broken_memories)).tolist():
        state, memory = (int(value) for value in pairs[pair, : MEMORY + 1])
        for symbol in automaton.symbol[automaton.first[state] : automaton.first[state + 1]].tolist():
            if (memory, symbol) in wrong:
                add(rules_in(wrong[memory, symbol]), pair, (automaton.events[symbol],))
    # A trace may also end in a pair: rules about the end of a trace have no event of their own.
    for pair in np.flatnonzero(tables.at_end[pairs[:, MEMORY]]).tolist():
        add(rules_in(int(tables.at_end[pairs[pair, MEMORY]])), pair, ())
    transitions = int(np.diff(automaton.first)[pairs[:, STATE]].sum())
    return Walked(
        automaton,
        config,
        room,
        tables,
        pairs,
        int(at[MEMORIES]),
        verdicts,
        transitions,
        broken,
        tuple(first.values()),
        seconds,
        notes,
    )


def soundness(walked: Walked) -> str:
    """Return one line about right behaviours."""
    rules = f"{', '.join(walked.rules)} break" if walked.rules else "no rule breaks"
    return (
        f"{walked.automaton.states:,} states of the automaton, {walked.memories:,} memories of the judge, "
        f"{len(walked.pairs):,} pairs, {walked.transitions:,} transitions: {rules}"
    )


def rules_in(mask: int) -> tuple[str, ...]:
    """Return the rules of a bit mask."""
    return tuple(rule for at, rule in enumerate(RULE_IDS) if mask >> at & 1)


def shortest(automaton: Automaton, pairs: MemoryTable, pair: int) -> list[Event]:
    """Return the events of a shortest behaviour to a pair, after the initial ones."""
    events: list[Event] = []
    while pair != 0:
        events.append(automaton.events[int(pairs[pair, BY])])
        pair = int(pairs[pair, CAME_FROM])
    return events[::-1]

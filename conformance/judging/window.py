"""The last events of a trace that goes on, and the judge's table in front of them: what shows late is judged again.

Rules of this file

1. Some events change what was to be made of earlier ones: a number shows that lines are missing behind one, an option
   shows in the first event of its kind (conformance.judging.options), a table is too small. Then the window is judged
   again.
2. What lies in front of the window stands. Of it the table is kept, and what a report tells.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tidegauge.conformance.judging.explain import TraceRow
from tidegauge.conformance.judging.judge import (
    COMPILE_FROM,
    LOAD_FROM,
    MOST_ROOM,
    PAST,
    ROOM,
    Failure,
    TooLargeError,
    execution,
    failure_of,
    frozen,
    frozen_inputs,
    grown,
    more_room,
)
from tidegauge.conformance.judging.options import options_of
from tidegauge.conformance.judging.replay import replica_of
from tidegauge.conformance.judging.unknown_caches import MOST, TRUNCATING, UndecidedTruncation, undecided_truncation
from tidegauge.conformance.kernel.judge_kernel import judge_traces
from tidegauge.conformance.kernel.rule_ids import RULES
from tidegauge.conformance.kernel.state import (
    AT_FAILURES,
    FAILED,
    FAILURES,
    GOES_ON,
    OPTION,
    OVERFLOW,
    WHOLE,
    State,
    allocate,
    forget,
)
from tidegauge.traces.columns import Columns, positions, to_columns
from tidegauge.traces.schema import MISSING_BEHIND, Event, Trace

NOTHING = np.zeros((0, 0, 0), np.int64), np.zeros((0, 0, 0, 0), np.int64)
"""No last state is asked for while a trace goes on."""


class Kept(NamedTuple):
    """An event; whether lines of its node are missing beside it; the epoch that its node asked with last."""

    event: Event
    missing: int
    latest: int | None


class Found(NamedTuple):
    """What came up while events were judged, by the rows of the trace."""

    failures: list[Failure]
    truncations: list[UndecidedTruncation]

    def and_(self, more: "Found") -> "Found":
        """Both."""
        return Found([*self.failures, *more.failures], [*self.truncations, *more.truncations])


class Window:
    """The last events of a trace. `now` is the table behind them; `past` came up in front of them, `recent` in them."""

    def __init__(self, trace: Trace) -> None:
        self.trace = replace(trace, events=())
        self.earlier = 0
        """Events in front of the window."""
        self.kept: list[Kept] = []
        options = options_of(to_columns([self.trace], trace.config), trace.config)
        options[GOES_ON] = 1
        self.base = allocate(options, ROOM, RULES, PAST)
        forget(self.base, 0)
        self.now = self.base.copy()
        self.past = self.recent = Found([], [])
        self._run: Callable[..., None] = judge_traces
        self._looks = LOAD_FROM

    @property
    def events(self) -> int:
        """Events of the trace so far."""
        return self.earlier + len(self.kept)

    def take(self, kept: Sequence[Kept], again: bool) -> None:
        """Judge the events that come next; with `again` those before them, too."""
        row = self.events
        self.kept.extend(kept)
        if self.events >= self._looks:  # machine code is loaded where it is kept: nobody waits for the compiler here
            self._run, self._looks = execution(min(self.events, COMPILE_FROM - 1)), 2 * self._looks
        columns, trace = self._columns(kept)
        if not self._learns(columns) and not again:
            found = self._judged(self.now, kept, row, columns, trace)
            if self.now[WHOLE, OVERFLOW] == 0:
                self.recent = self.recent.and_(found)
                return
        self.judge_again()

    def judge_again(self) -> None:
        """Judge the window from its beginning."""
        self.now, self.recent = self.anew(self.kept)

    def anew(self, kept: Sequence[Kept]) -> tuple[State, Found]:
        """The table behind events that begin where the window does, and what came up in them."""
        columns, trace = self._columns(kept)
        while True:
            st = self.base.copy()
            found = self._judged(st, kept, self.earlier, columns, trace)
            if st[WHOLE, OVERFLOW] == 0:
                return st, found
            room, past = more_room(st)
            if room > MOST_ROOM:
                raise TooLargeError(f"expected at most {MOST_ROOM} leader epochs in one epoch cache, saw more")
            self.base = grown(self.base, room, past)

    def lose(self, row: int) -> bool:
        """Lines are missing behind this event; False where it is kept no longer."""
        if row < self.earlier:
            return False
        self.kept[row - self.earlier] = lost_behind(self.kept[row - self.earlier])
        return True

    def forget(self, gone: int) -> None:
        """Keep so many events less."""
        self.base, found = self.anew(self.kept[:gone])
        both = self.past.and_(found)
        self.past = Found(list(firsts(both.failures)), both.truncations[: MOST + 1])
        del self.kept[:gone]
        self.earlier += gone
        self.recent = Found(
            [one for one in self.recent.failures if one.row >= self.earlier],
            [one for one in self.recent.truncations if one.row >= self.earlier],
        )

    def place(self, failure: Failure) -> tuple[TraceRow, Failure] | None:
        """Where it stands among the events that are kept; None where it stands in front of them."""
        row = failure.row - self.earlier
        if row < 0:
            return None
        columns, trace = self._columns(self.kept)
        return TraceRow(columns, trace.config, 0, row, (trace,), "", self.base.copy(), self.earlier), replace(
            failure, row=row
        )

    def _learns(self, columns: Columns) -> bool:
        """Whether new events show an option that was off when others were judged. What was shown once stays."""
        shown = np.array(options_of(columns, self.trace.config))
        new = bool((shown > self.base[OPTION, : len(shown)]).any())
        for st in (self.base, self.now):
            st[OPTION, : len(shown)] = np.maximum(st[OPTION, : len(shown)], shown)
        return new

    def _judged(self, st: State, kept: Sequence[Kept], row: int, columns: Columns, trace: Trace) -> Found:
        """Take events into a table, the first of which is this row of the trace; stop to see what truncations find there."""
        inputs, at, last = frozen_inputs(columns, None, columns.missing)[:-1], 0, len(kept)
        found = Found([], [])
        for stop in (*(k for k, one in enumerate(kept) if one.event.event in TRUNCATING), last):
            self._run(st, *inputs, frozen(np.array([at, stop])), *NOTHING)
            found.failures.extend(failures_of(st, row))
            if stop < last:
                event, replica = kept[stop].event, replica_of(st, positions(trace.config)[kept[stop].event.node])
                truncation = undecided_truncation(0, row + stop, event, row + stop, replica, kept[stop].latest)
                found.truncations.extend([truncation] if truncation is not None else [])
            at = stop
        return found

    def _columns(self, kept: Sequence[Kept]) -> tuple[Columns, Trace]:
        trace = replace(self.trace, events=tuple(one.event for one in kept))
        missing = np.array([one.missing for one in kept], np.int64)
        return replace(to_columns([trace], trace.config), missing=missing if missing.any() else missing[:0]), trace


def lost_behind(kept: Kept) -> Kept:
    """The event, with lines missing behind it."""
    return kept._replace(missing=kept.missing | MISSING_BEHIND)


def failures_of(st: State, row: int) -> list[Failure]:
    """The failures in a table whose row 0 is this one of the trace. It forgets them, so that later ones are told too."""
    first, count = int(st[WHOLE, AT_FAILURES]), int(st[WHOLE, FAILURES])
    failures = [failure_of(one) for one in st[first : first + count, :6].tolist()]
    st[WHOLE, FAILURES] = st[WHOLE, FAILED] = 0
    return [replace(one, row=one.row + row) for one in failures]


def firsts(failures: Iterable[Failure]) -> Iterator[Failure]:
    """The first failure of each rule, in the order of the rows."""
    seen: set[str] = set()
    for failure in sorted(failures, key=lambda one: one.row):
        if failure.rule not in seen:
            seen.add(failure.rule)
            yield failure

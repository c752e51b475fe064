"""Follow NDJSON that grows: a file or standard input, read in pieces that may end anywhere.

A failure is published as news (follow.loop) as soon as its event was judged; a report can be made at any time. `st` is the
judge's table of integers (judge.state), which has all that it knows of a trace so far. A row is the number of an event in
its trace, from 0.

Rules of this file

1. The report is the one that `check` gives on the same bytes, as far as that can be known (GrowingTrace). It has no
   page: the events of the traces are not kept.
2. Memory does not grow with a trace: kept are its table, its last events, its first problems, and the explanations that a
   report has. It grows with the number of traces.
3. A trace that cannot be judged stops no other: it is set aside, and its events are counted as lost.
4. A file that was replaced is read to its end before the new one. A file that was truncated is read from its beginning.
"""

import os
import select
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import FileIO
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tidegauge.conformance.checking.check import (
    CheckOptions,
    Report,
    checked_input,
    overall_verdict,
    unknown_profile_problem,
    worst_first,
)
from tidegauge.conformance.checking.inputs import InputFindings
from tidegauge.conformance.checking.rules_outside_kernel import (
    COMPARED,
    MOST_SEARCHED,
    TRUNCATING,
    UNKNOWN_CACHES_RULE,
    LatestEpochs,
    Numbers,
    UndecidedTruncation,
    can_explain,
    find_explaining_cache,
    undecided_truncation,
    with_numbers,
    with_truncations,
)
from tidegauge.conformance.checking.situations import Seen, Situation, add, situations
from tidegauge.conformance.checking.verdicts import LostDisk, log_gaps, lost_disk_notes, rule_verdicts, undecide_after_loss
from tidegauge.conformance.engine.judge import (
    COMPILE_FROM,
    LOAD_FROM,
    MOST_ROOM,
    PAST_AT_FIRST,
    ROOM_AT_FIRST,
    Failure,
    Judgement,
    TooLargeError,
    execution,
    failure_of,
    frozen,
    frozen_inputs,
    grown,
    judgement_of,
    more_room,
    options_of,
    total_tallies,
)
from tidegauge.conformance.explain.explain import Explanation, TraceRow, explain_at
from tidegauge.conformance.explain.replay import comparison_text, replica_of
from tidegauge.conformance.follow.loop import PROBLEMS, Alarm, Publish, Source, Withdrawn
from tidegauge.conformance.judge import state as s
from tidegauge.conformance.judge.events.lifecycle import logs_agree
from tidegauge.conformance.judge.fields import RULES
from tidegauge.conformance.judge.kernel import judge_traces
from tidegauge.conformance.judge.unobserved import forget_unobserved
from tidegauge.traces.columns import Columns, Gaps, positions, to_columns
from tidegauge.traces.formats.ndjson import LineReader
from tidegauge.traces.problems import Problem
from tidegauge.traces.schema import MISSING, MISSING_AHEAD, MISSING_BEHIND, Config, Event, Trace

# One trace that grows: at any time the verdict that `check` gives on the events so far.
#
#     | folded into `base`           | window, kept as events                     | next events
#     | first_row events, not kept   | 512 to 1,024 events, may be judged again   |
#                                    ^ base: the judge's table here               ^ now: the table here
#
# Rules of this part
#
# 1. Some events change how earlier ones must be judged: a number shows that lines are missing before it, an option of the
#    judge shows in the first event of its kind (conformance.engine.judge), a table becomes too small. Then the window is
#    judged again. What is before the window stands.
# 2. Where lines may be missing without a number that shows it, a node without an event in a whole window is taken to have
#    ended there: that decides less, and makes nothing fail.
# 3. A failure is news once. It is withdrawn when later lines show that missing lines may explain it.


WINDOW = 512
"""Events that are kept at least, and twice as many at most."""
NO_LAST_STATES = np.zeros((0, 0, 0), np.int64), np.zeros((0, 0, 0, 0), np.int64)
"""Arguments of the kernel for the last states of traces: none are wanted while a trace goes on."""


class WindowEvent(NamedTuple):
    """An event in the window.

    `missing` has the bits MISSING_AHEAD and MISSING_BEHIND where lines of its node are missing before and after it; `latest`
    is the last epoch in its node's cache before it (LatestEpochs).
    """

    event: Event
    missing: int
    latest: int | None


class Findings(NamedTuple):
    """Failures, and truncations that the kernel left undecided, by the rows of the trace."""

    failures: list[Failure]
    truncations: list[UndecidedTruncation]

    def plus(self, more: "Findings") -> "Findings":
        """Return these findings, then more."""
        return Findings([*self.failures, *more.failures], [*self.truncations, *more.truncations])


class GrowingTrace:
    """A trace that is judged as its events come: `take` judges the next ones, `judgement` is that of all so far."""

    def __init__(self, trace: Trace) -> None:
        """Begin with the name and config of a trace, and none of its events."""
        self.name = trace.name
        self.damaged: int | None = None
        """The row of the first event after a line that could not be read."""
        self.window = Window(trace)
        self._numbers = Numbers(trace.name)
        self._gaps = Gaps(trace.config)
        self._latest_epochs = LatestEpochs()
        self._reported: set[tuple[str, int]] = set()
        """The failures that were news and were not withdrawn, by rule and row."""

    @property
    def event_count(self) -> int:
        """Events so far."""
        return self.window.event_count

    def take(self, events: Iterable[Event]) -> tuple[list[Failure], list[tuple[str, int]]]:
        """Judge the next events; return the new failures, and the (rule, row) of those that are withdrawn."""
        # The row of the first new event; whether an event in the window was marked; the new events.
        first_new, window_changed, new_events = self.event_count, False, list[WindowEvent]()
        for row, event in enumerate(events, first_new):
            self._numbers.take(row, event)
            # Whether lines of the node are missing before this event, and the row of the node's event before the gap.
            lines_missing, before = self._gaps.take(row, event)
            if lines_missing and before is not None and before >= first_new:
                new_events[before - first_new] = with_lines_missing_after(new_events[before - first_new])
            elif lines_missing and before is not None:
                # The gap begins after an event that was judged already, as if nothing were missing there.
                window_changed = self.window.mark_missing_after(before) or window_changed
            latest_epoch = self._latest_epochs.latest(event)
            new_events.append(WindowEvent(event, MISSING_AHEAD if lines_missing else 0, latest_epoch))
        self.window.take(new_events, window_changed)
        failures = {(failure.rule, failure.row): failure for failure in self._failures()}
        news = [failure for key, failure in failures.items() if key not in self._reported]
        # A failure before the window cannot be judged again: that it is not among `failures` withdraws nothing.
        withdrawn = [key for key in sorted(self._reported) if key not in failures and key[1] >= self.window.first_row]
        self._reported = set(failures)
        return news, withdrawn

    def shrink_window(self) -> None:
        """Drop all but the last WINDOW events, once there are more than twice as many."""
        surplus = len(self.window.events) - WINDOW
        # Not at each event: the events that are dropped are judged once more.
        if surplus <= WINDOW:
            return
        end = self.window.first_row + surplus
        # Rule 2 of this part: a node whose last event leaves the window is taken to have ended there.
        marked = [self.window.mark_missing_after(row) for row in self._gaps.ends() if row < end]
        self.window.drop_first(surplus)
        # The table after the window was made without the marks.
        if any(marked):
            self.window.judge_again()

    def judgement(self) -> Judgement:
        """Return the judgement on the trace as if it ended here."""
        st, findings = self._as_if_ended()
        findings = findings.plus(Findings(_failures_at_end(st, self.event_count - 1), []))
        # The counts are in the table. Then the failures, SEQ-01, the truncations with an unknown cache, the lost line.
        judgement = judgement_of(self.event_count, 1, st, *NO_LAST_STATES)  # of one trace
        # The table has counted a failing trace each time that failures were taken out of it; it is one trace.
        tallies = {rule: replace(tally, failed_traces=min(tally.failed, 1)) for rule, tally in judgement.tallies.items()}
        judgement = replace(judgement, tallies=tallies, failures=tuple(firsts(findings.failures)), failures_left_out=0)
        judgement = with_truncations(with_numbers(judgement, [self._numbers], [0]), findings.truncations)
        return judgement if self.damaged is None else undecide_after_loss(judgement, self.damaged, self.name)

    def explained(self, failure: Failure) -> Explanation | None:
        """Return the explanation of a failure; None if its event is no longer in the window."""
        located = self.window.locate(failure)
        return None if located is None else explain_at(*located)

    def at(self, failure: Failure) -> str:
        """Return where the event of a failure was read, or its number if that is not known."""
        row = failure.row - self.window.first_row
        return (self.window.events[row].event.at if row >= 0 else "") or f"event {failure.row + 1}"

    def _as_if_ended(self) -> tuple[s.State, Findings]:
        """Return a copy of the judge's table, and the findings, as they are if no node logs anything more.

        Lines may then be missing after the last event of a node (rule 2 of this part).
        """
        window, ends = self.window, [row for row in self._gaps.ends() if row >= self.window.first_row]
        if not ends:
            return window.now.copy(), window.past.plus(window.recent)
        events = [*window.events]
        for row in ends:
            events[row - window.first_row] = with_lines_missing_after(events[row - window.first_row])
        st, findings = window.judged_from_base(events)
        return st, window.past.plus(findings)

    def _failures(self) -> list[Failure]:
        """Return all failures that are certain so far: of the kernel, of SEQ-01, of truncations that no cache explains.

        After a line that could not be read (`damaged`) none is certain.
        """
        window, first_of_sequence = self.window, self._numbers.first
        # Judging the window again costs time: only failures in it can become undecided by what may be missing at the end.
        findings = self._as_if_ended()[1] if window.recent.failures else window.past.plus(window.recent)
        failures = [*findings.failures]
        if findings.truncations and can_explain():
            unexplained = [
                truncation
                for truncation in findings.truncations[:MOST_SEARCHED]
                if find_explaining_cache(truncation) is None
            ]
            # Expected at least 1 cache that explains it, seen 0.
            failures += [Failure(0, truncation.row, UNKNOWN_CACHES_RULE, COMPARED, 1, 0) for truncation in unexplained]
        if first_of_sequence is not None:
            failures.append(first_of_sequence)
        return [failure for failure in failures if self.damaged is None or failure.row < self.damaged]


def _failures_at_end(st: s.State, row: int) -> list[Failure]:
    """Make the checks at the end of a trace, as judge_traces does; return what fails, at `row`, the last of the trace."""
    st[s.PARTITION, s.NOW] = 0  # failures are recorded at this row, to which `_take_failures` adds `row`
    if st[s.OPTION, s.UNOBSERVED] != 0:
        for b in range(st[s.OPTION, s.BROKERS]):
            forget_unobserved(st, b)
    logs_agree(st)
    return _take_failures(st, row)


class Window:
    """The last events of a trace, which may have to be judged again.

    `base` and `now` are the judge's tables before and after them, `past` and `recent` the findings before them and in them.
    """

    def __init__(self, trace: Trace) -> None:
        """Begin with a judge that has read nothing of this trace."""
        self.trace = replace(trace, events=())
        self.first_row = 0
        """The row of the trace at which the window begins."""
        self.events: list[WindowEvent] = []
        options = options_of(to_columns([self.trace], trace.config), trace.config)
        # The end of what has arrived is not the end of the trace.
        options[s.PIECEWISE] = 1
        self.base = s.allocate(options, ROOM_AT_FIRST, RULES, PAST_AT_FIRST)
        s.forget(self.base, 0)
        self.now = self.base.copy()
        self.past = self.recent = Findings([], [])
        self._run: Callable[..., None] = judge_traces
        self._choose_again_at = LOAD_FROM
        """The number of events at which the faster of two kernels is chosen again: interpreted, or as machine code."""

    @property
    def event_count(self) -> int:
        """Events of the trace so far."""
        return self.first_row + len(self.events)

    def take(self, events: Sequence[WindowEvent], changed: bool) -> None:
        """Judge the next events and add them to the window; if that has `changed`, judge its other events again, too."""
        row = self.event_count
        self.events.extend(events)
        if self.event_count >= self._choose_again_at:
            # Machine code is loaded if it is cached. Compiling would hold up the news for a minute: never here, as one
            # event less than COMPILE_FROM is not enough for it.
            self._run = execution(min(self.event_count, COMPILE_FROM - 1))
            self._choose_again_at *= 2
        columns, trace = self._columns(events)
        # Otherwise the window has to be judged again, since its events were judged by other options, or as if complete.
        if not self._new_options(columns) and not changed:
            findings = self._judge_into(self.now, events, row, columns, trace)
            if self.now[s.PARTITION, s.OVERFLOW] == 0:
                self.recent = self.recent.plus(findings)
                return
        # Or the table was too small, and has dropped something.
        self.judge_again()

    def judge_again(self) -> None:
        """Judge all events of the window again, from the table before them."""
        self.now, self.recent = self.judged_from_base(self.events)

    def judged_from_base(self, events: Sequence[WindowEvent]) -> tuple[s.State, Findings]:
        """Judge events from the beginning of the window on; return a new table after them and the findings in them.

        If a table is too small, `base` is replaced by a larger one. Raises TooLargeError for a trace that fits into none.
        """
        columns, trace = self._columns(events)
        while True:
            st = self.base.copy()
            findings = self._judge_into(st, events, self.first_row, columns, trace)
            if st[s.PARTITION, s.OVERFLOW] == 0:
                return st, findings
            room, past = more_room(st)
            if room > MOST_ROOM:
                raise TooLargeError(f"expected at most {MOST_ROOM} leader epochs in one epoch cache, seen more")
            self.base = grown(self.base, room, past)

    def mark_missing_after(self, row: int) -> bool:
        """Note that lines are missing after this event; return False if it is kept no longer."""
        if row < self.first_row:
            return False
        self.events[row - self.first_row] = with_lines_missing_after(self.events[row - self.first_row])
        return True

    def drop_first(self, count: int) -> None:
        """Fold the first `count` events into `base`, and their findings into `past`."""
        self.base, findings = self.judged_from_base(self.events[:count])
        past = self.past.plus(findings)
        # A report shows the first failure of each rule, searches some truncations for a cache and says whether there are
        # more, for which one more is enough. The tallies are in the table.
        self.past = Findings(list(firsts(past.failures)), past.truncations[: MOST_SEARCHED + 1])
        del self.events[:count]
        self.first_row += count
        self.recent = Findings(
            [failure for failure in self.recent.failures if failure.row >= self.first_row],
            [truncation for truncation in self.recent.truncations if truncation.row >= self.first_row],
        )

    def locate(self, failure: Failure) -> tuple[TraceRow, Failure] | None:
        """Return the row of a failure with the window as columns, and the failure by that row; None if it is before them."""
        row = failure.row - self.first_row
        if row < 0:
            return None
        columns, trace = self._columns(self.events)
        begun, earlier = self.base.copy(), self.first_row  # what the judge knew before the window, after so many events
        place = TraceRow(columns, trace.config, 0, row, (trace,), begun=begun, earlier=earlier)
        return place, replace(failure, row=row)

    def _new_options(self, columns: Columns) -> bool:
        """Switch on the judge's options that new events show; return whether one was off when the others were judged."""
        shown = np.array(options_of(columns, self.trace.config))  # numbers, 0 where an option is off
        has_new = bool((shown > self.base[s.OPTION, : len(shown)]).any())
        # The larger number: an option that older events have shown stays on.
        for st in (self.base, self.now):
            st[s.OPTION, : len(shown)] = np.maximum(st[s.OPTION, : len(shown)], shown)
        return has_new

    def _judge_into(self, st: s.State, events: Sequence[WindowEvent], row: int, columns: Columns, trace: Trace) -> Findings:
        """Judge events, the first of which is this row of the trace, in table `st`; return the findings in them.

        `columns` and `trace` are made from the events (`_columns`).
        """
        # All arguments of the kernel but the starts of traces, which are those of each run.
        inputs, begin, end = frozen_inputs(columns, None, columns.missing)[:-1], 0, len(events)
        findings = Findings([], [])
        # The run stops before each truncation: what its replica's epoch cache holds then is gone after it.
        for stop in (*(at for at, entry in enumerate(events) if entry.event.event in TRUNCATING), end):
            self._run(st, *inputs, frozen(np.array([begin, stop])), *NO_LAST_STATES)
            findings.failures.extend(_take_failures(st, row))
            if stop < end:
                event, replica = events[stop].event, replica_of(st, positions(trace.config)[events[stop].event.node])
                # There is one trace: the row of an event is its number, too.
                truncation = undecided_truncation(
                    trace=0, row=row + stop, event=event, at=row + stop, replica=replica, latest=events[stop].latest
                )
                findings.truncations.extend([truncation] if truncation is not None else [])
            begin = stop
        return findings

    def _columns(self, events: Sequence[WindowEvent]) -> tuple[Columns, Trace]:
        """Return events of the window as columns that know where lines are missing, and as a trace."""
        trace = replace(self.trace, events=tuple(entry.event for entry in events))
        missing = np.array([entry.missing for entry in events], np.int64)
        return replace(to_columns([trace], trace.config), missing=missing if missing.any() else missing[:0]), trace


def with_lines_missing_after(entry: WindowEvent) -> WindowEvent:
    """Return the event marked as one after which lines of its node are missing."""
    return entry._replace(missing=entry.missing | MISSING_BEHIND)


def firsts(failures: Iterable[Failure]) -> Iterator[Failure]:
    """Yield the first failure of each rule, in the order of the rows."""
    rules: set[str] = set()
    for failure in sorted(failures, key=lambda failure: failure.row):
        if failure.rule not in rules:
            rules.add(failure.rule)
            yield failure


def _take_failures(st: s.State, row: int) -> list[Failure]:
    """Remove the failures from a table, and return them; `row` is the row of the trace that is row 0 in the table."""
    first, count = int(st[s.PARTITION, s.AT_FAILURES]), int(st[s.PARTITION, s.FAILURES])
    # Rows of six columns, F_TRACE to F_ACTUAL.
    failures = [failure_of(failure_row) for failure_row in st[first : first + count, :6].tolist()]
    # A table holds the first failure of each rule. Taken out, the next one of the rule is recorded, too: it is news again.
    st[s.PARTITION, s.FAILURES] = st[s.PARTITION, s.FAILED] = 0
    return [replace(failure, row=failure.row + row) for failure in failures]


PIECE = 1 << 18
"""Bytes that are judged at once: a thousand lines, some tenths of a second."""


class NdjsonSource(Source):
    """The judge of one growing source called `name`; a subclass polls, and calls `feed` and `next_file`."""

    def __init__(self, name: str, how: CheckOptions, publish: Publish) -> None:
        """Begin with no trace; `how` are the options of the command, `publish` gets each piece of news."""
        super().__init__(publish)
        self.name = name
        self.how = how
        self.traces: dict[str, GrowingTrace] = {}
        self.notes: list[str] = []
        self._reader = LineReader(name)
        self._set_aside: dict[str, Problem] = {}
        """Traces that cannot be judged, each with the reason; its lost events are counted there."""
        self._problems: list[Problem] = []
        self._more_problems = self._more_lost = 0
        """Problems beyond the first ones, which are not kept, and the events that were lost with them."""
        self._missing: list[str] = []
        self._lost_disks: list[LostDisk] = []
        self._situations: dict[Situation, Seen] = {}
        self._explained: dict[tuple[str, str, int], Explanation] = {}
        """By trace, rule and row: an explanation is made when its failure is news, while the events are there."""
        self._begin = time.perf_counter()

    def feed(self, data: bytes) -> None:
        """Judge the lines that are complete with these bytes; an unfinished line waits for its rest."""
        self._reader.feed(data)
        self._judge_new_events()
        # Binary data, or a newer schema: nothing after it can be read either.
        self.ended = self.ended or self._reader.stopped

    def next_file(self, note: str) -> None:
        """Go on at the beginning of a file, the old one or another; `note`, which is published, says why."""
        self._reader.next_file()
        self.notes.append(note)
        self.publish(note)
        self._judge_new_events()

    def end(self) -> None:
        """Judge the unfinished last line as it is."""
        self._reader.end()
        self._judge_new_events()

    def report(self) -> Report:
        """Report as `check` does on the bytes read so far."""
        judgements = {name: trace.judgement() for name, trace in self.traces.items()}
        problems = [*self._problems, *self._set_aside.values()]
        if self._more_problems:
            seen, do = f"{self._more_problems:,} more problems", "see above: each was printed as it was met"
            problems.append(Problem(self.name, None, "what can be read", seen, do, lost=self._more_lost))
        findings = InputFindings(problems, self.notes, missing=self._missing)
        checked = checked_input(self.name, "NDJSON", findings, list(judgements.values()))
        # Only if the command counts situations.
        profiles = {trace.window.trace.config.profile for trace in self.traces.values() if self.how.situations}
        inputs = (replace(checked, situations=self._situations, profiles=frozenset(profiles)),)
        failures = [(name, failure) for name, judgement in judgements.items() for failure in judgement.failures]
        explanations = (self._explanation(name, failure) for name, failure in worst_first(failures)[: self.how.explained])
        notes = chain.from_iterable(judgement.notes for judgement in judgements.values())
        return Report(
            inputs=inputs,
            verdict=overall_verdict(inputs),
            rules=rule_verdicts(total_tallies(judgements.values())),
            explanations=tuple(explanation for explanation in explanations if explanation is not None),
            failures=len(failures),
            seconds=time.perf_counter() - self._begin,
            notes=(*self.notes, *lost_disk_notes(self._lost_disks), *notes),
        )

    def _judge_new_events(self) -> None:
        """Publish new problems, and judge the events that the reader has completed."""
        for problem in self._reader.problems:
            self.publish(problem)
            # Memory does not grow with bad input (rule 2): each problem is printed, the first ones are kept.
            if len(self._problems) < PROBLEMS:
                self._problems.append(problem)
            else:
                self._more_problems, self._more_lost = self._more_problems + 1, self._more_lost + problem.lost
        self._reader.problems.clear()
        for trace in self._reader.take_traces():
            self._judge(trace)

    def _judge(self, trace: Trace) -> None:
        """Judge new events of a trace, of which `trace` has no others; publish what fails, and what is withdrawn."""
        name = trace.name
        # A new trace: it is judged from here on, or set aside.
        if name not in self.traces and name not in self._set_aside:
            config = trace.config if self.how.profile is None else replace(trace.config, profile=self.how.profile)
            problem = self._refusal(config)
            if problem is not None:
                self._set_aside[name] = problem
                self.publish(problem)
            else:
                self.traces[name] = GrowingTrace(replace(trace, config=config))
                self._missing += [gap for gap in config.extra.get(MISSING, ()) if gap not in self._missing]
        # Of one that was set aside the events are only counted.
        if name in self._set_aside:
            problem = self._set_aside[name]
            self._set_aside[name] = replace(problem, lost=problem.lost + len(trace.events))
            return
        self._lost_disks += [(event.node, event.at) for event in trace.events if event.event == "LoseDisk"]
        growing = self.traces[name]
        if self.how.situations:
            self._count_situations(trace, growing.event_count)
        growing.damaged = self._reader.damaged.get(name)  # known before the events after the line are judged
        try:
            failures, withdrawn = growing.take(trace.events)
        # One such trace stops no other (rule 3); the others keep their tables.
        except TooLargeError as error:
            expected, seen = "a trace that can be judged", f"{name}: {error}"
            problem = Problem(self.name, None, expected, seen, "split it", lost=growing.event_count)
            self._set_aside[name] = problem
            del self.traces[name]
            self.publish(problem)
            return
        for rule, row in withdrawn:
            self._explained.pop((name, rule, row), None)
            self.publish(Withdrawn(name, rule, f"event {row + 1}"))
        for failure in failures:
            self.publish(self._alarm(growing, failure))
        # Only now: an explanation needs the events.
        growing.shrink_window()

    def _count_situations(self, trace: Trace, before: int) -> None:
        """Count the situations of new events of a trace that had so many before."""

        def place(row: int) -> str:
            """Return where the new event in a row was read, or its number in the trace."""
            return trace.events[row].at or f"{trace.name or self.name}, event {before + row + 1:,}"

        add(self._situations, situations(to_columns([trace], trace.config, counted=True), place))

    def _refusal(self, config: Config) -> Problem | None:
        """Return the reason why a trace with this config cannot be followed, None if it can."""
        # Gaps are given as rows between which lines are missing: that is known only of a trace that was read to its end.
        if log_gaps(config):
            expected, seen = "a trace that goes on", "a Config with the gaps of a complete one"
            return Problem(self.name, None, expected, seen, "judge the complete trace, without --follow")
        return unknown_profile_problem(self.name, config, events=0)  # they are counted as they come

    def _alarm(self, trace: GrowingTrace, failure: Failure) -> Alarm:
        """Return the news of a failure; make its explanation if the report has room for one or its rule has none yet."""
        config = trace.window.trace.config
        actual, expected = comparison_text(failure, config)
        key = trace.name, failure.rule, failure.row
        first_of_rule = all(rule != failure.rule for _, rule, _ in self._explained)
        if len(self._explained) < self.how.explained or first_of_rule:
            explanation = trace.explained(failure)
            if explanation is not None:
                self._explained[key] = replace(explanation, path=self.name)
        at, explanation = trace.at(failure), self._explained.get(key)
        return Alarm(trace.name, failure.rule, at, failure.compared, expected, actual, explanation)

    def _explanation(self, name: str, failure: Failure) -> Explanation | None:
        """Return the explanation that was published or, if there was none, one made now; None if its event is gone."""
        printed = self._explained.get((name, failure.rule, failure.row))
        explanation = self.traces[name].explained(failure) if printed is None else None
        return printed if explanation is None else replace(explanation, path=self.name)


class NdjsonFile(NdjsonSource):
    """A file that grows, also if it is rotated or truncated."""

    def __init__(self, path: str, how: CheckOptions, publish: Publish) -> None:
        """Open the file at its beginning."""
        super().__init__(path, how, publish)
        self._file = Path(path).open("rb", buffering=0)  # noqa: SIM115  another one may take its place

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Close the file that is open at the end."""
        try:
            yield
        finally:
            self._file.close()

    def poll(self) -> bool:
        """Judge the next piece of the file or, at its end, turn to the file that took its place; return False if neither."""
        if self._read_piece():
            return True
        replacement = self._replacement()
        if replacement is not None:
            # Its writer may have written more between the read above and the rename.
            while self._read_piece():
                pass
            self._file.close()
            self._file = replacement
            self.next_file(f"{self.name}: another file is in its place; it is read from its beginning")
            return True
        # Shorter than what was read: copytruncate of logrotate, or a writer that began again.
        if os.fstat(self._file.fileno()).st_size < self._file.tell():
            self._file.seek(0)
            self.next_file(f"{self.name}: the file was truncated; it is read from its beginning, lines may be lost")
            return True
        return False

    def _read_piece(self) -> bool:
        """Judge the next piece of the file; return False at its end."""
        data = self._file.read(PIECE)
        if data:
            self.feed(data)
            self.arrived()
        return bool(data)

    def _replacement(self) -> FileIO | None:
        """Open the file of this name if it is another one by now; return None if not, or if there is none (a rotation)."""
        try:
            if os.path.samestat(Path(self.name).stat(), os.fstat(self._file.fileno())):
                return None
            return Path(self.name).open("rb", buffering=0)
        except FileNotFoundError:
            return None


class StandardInput(NdjsonSource):
    """Standard input, until the other side closes it."""

    def __init__(self, how: CheckOptions, publish: Publish) -> None:
        """Begin with nothing read; the arguments are those of NdjsonSource."""
        super().__init__("stdin", how, publish)

    def poll(self) -> bool:
        """Judge the next piece of standard input, or note its end; return False if there is nothing to read now."""
        descriptor = sys.stdin.fileno()
        readable, _, _ = select.select([descriptor], [], [], 0)
        if not readable:
            return False
        data = os.read(descriptor, PIECE)
        if data:
            self.feed(data)
            self.arrived()
        # Nothing to read from what is readable: the other side has closed it.
        else:
            self.ended = True
        return True

    def wait(self, seconds: float) -> None:
        """Wait until there is something to read: a writer that waits for the pipe is not kept waiting."""
        select.select([sys.stdin.fileno()], [], [], seconds)

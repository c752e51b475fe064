"""One report of many windows of broker logs, in which each event counts once.

    window 1   |--------------------|
    window 2              |--------------------|
                          ^ counted ^   new    ^

Rules of this file

1. An event counts in the first window that ends after it. The next window begins before it and contains what led there; the
   events that were counted are judged once more alone, and their tallies subtracted.
2. Memory grows with partitions and rules, and not with the number of windows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from tidegauge.conformance.checking.check import CheckedInput, JudgedBatch, checked_input, judge_batch
from tidegauge.conformance.checking.inputs import LOGS, InputFindings
from tidegauge.conformance.checking.uncertain_failures import LostDisk, lost_disk_notes, lost_disks
from tidegauge.conformance.engine.judge import Failure, Judgement, RuleTally, add_tallies, total_tallies
from tidegauge.conformance.follow.ndjson import PROBLEMS
from tidegauge.traces.columns import to_columns
from tidegauge.traces.kafka_logs import Capture
from tidegauge.traces.kafka_logs.correlation.coverage import NodeCoverage
from tidegauge.traces.problems import Problem
from tidegauge.traces.schema import Trace


class FailureKey(NamedTuple):
    """What a failure has in common with the same failure in another window."""

    rule: str
    trace: str
    at: str
    time: str | None


class PastWindows:
    """The windows before the current one; `standing` has the first failure of each rule in each trace."""

    def __init__(self, path: str, profile: str | None) -> None:
        self.path = path
        self.profile = profile
        self.count = 0
        self.standing: dict[tuple[str, str], FailureKey] = {}
        self._tallies: dict[str, RuleTally] = {}
        self._events = 0
        self._traces: dict[str, None] = {}
        self._problems: dict[Problem, None] = {}
        self._missing: dict[str, None] = {}
        self._notes: dict[str, None] = {}
        self._lost_disks: dict[LostDisk, None] = {}
        self._lives: dict[int, NodeCoverage] = {}

    def add(
        self,
        captures: Sequence[Capture],
        window: Sequence[JudgedBatch],
        failures: Iterable[FailureKey],
        counted: Mapping[int, str],
    ) -> None:
        """Add a window that has ended; its `failures` stand; `counted` is the time up to which events of each node count."""
        new_events = _new_events(window, counted)
        self._tallies = self._tallies_with(window, counted)
        self._events += sum(new_events.values())
        self._traces |= dict.fromkeys(new_events)
        for key in failures:
            self.standing.setdefault((key.rule, key.trace), key)
        self._notes = _capped(dict.fromkeys(self.notes(captures, window)))
        self._lost_disks = _capped(self._lost_disks_with(window))
        self._problems = _capped(self._problems | _problems(captures))
        self._missing = _capped(self._missing | _gaps(captures))
        self._lives = self._lives_with(captures)
        self.count += 1

    def input(
        self, captures: Sequence[Capture], window: Sequence[JudgedBatch], counted: Mapping[int, str], lines: int
    ) -> CheckedInput:
        """Make the input of a report in which `window` is the last one. Without windows before it, it is that of `check`."""
        findings = InputFindings(list(self._problems | _problems(captures)))
        if not self.count:
            # One window is the whole of the logs: the report can say what `check` says.
            findings.covered = [str(life) for capture in captures for life in capture.coverage]
            doubts = (doubt.missing for result in window for doubt in result.batch.doubts)
            findings.missing = [*dict.fromkeys([*(gap for capture in captures for gap in capture.missing), *doubts])]
            return checked_input(self.path, LOGS, findings, [result.judgement for result in window])
        new_events = _new_events(window, counted)
        judgement = Judgement(
            self._events + sum(new_events.values()),
            len(self._traces | new_events),
            self._with_standing_failures(self._tallies_with(window, counted), window),
            (),
        )
        findings.covered = [str(life) for _, life in sorted(self._lives_with(captures).items())]
        windows = (
            f"what was before each of {self.count + 1:,} windows: the logs were judged by {lines:,} to {2 * lines:,} lines "
            "at a time; check without --follow reads them whole"
        )
        findings.missing = [*(self._missing | _gaps(captures)), windows]
        return checked_input(self.path, LOGS, findings, [judgement])

    def notes(self, captures: Sequence[Capture], window: Sequence[JudgedBatch]) -> list[str]:
        """List how files were read, and the judge's notes, up to this window."""
        read = [f"{self.path}: {note}" for capture in captures for note in capture.summary.notes()]
        judged_so = [note for result in window for note in result.judgement.notes]
        return [*dict.fromkeys([*self._notes, *read, *lost_disk_notes(self._lost_disks_with(window)), *judged_so])]

    def _lost_disks_with(self, window: Iterable[JudgedBatch]) -> dict[LostDisk, None]:
        """Return the lost disks of past windows and of this one, each once."""
        lost = dict(self._lost_disks)
        for batch in (result.batch for result in window):
            lost |= dict.fromkeys(lost_disks(batch.stored, batch.config, batch.traces, batch.source))
        return lost

    def _tallies_with(self, window: Sequence[JudgedBatch], counted: Mapping[int, str]) -> dict[str, RuleTally]:
        """Add the tallies of a window, without those of the events that were counted before."""
        counted_again = total_tallies(result.judgement for result in self._counted_part(window, counted))
        of_window = total_tallies(result.judgement for result in window)
        # A tally has no events in it: what was counted before can only be subtracted.
        new = {rule: _difference(tally, counted_again[rule]) for rule, tally in of_window.items()}
        return {rule: add_tallies(self._tallies.get(rule, RuleTally()), tally) for rule, tally in new.items()}

    def _counted_part(self, window: Sequence[JudgedBatch], counted: Mapping[int, str]) -> Iterator[JudgedBatch]:
        """Judge the beginnings of traces that were counted before, alone."""
        problems: list[Problem] = []
        for batch in (result.batch for result in window):
            traces = tuple(
                replace(trace, events=trace.events[: _counted_events(trace, counted)]) for trace in batch.traces or ()
            )
            if any(trace.events for trace in traces):
                doubts = tuple(doubt for doubt in batch.doubts if doubt.first < len(traces[0].events))
                columns = to_columns(traces, batch.config)
                beginning = replace(batch, traces=traces, stored=columns, doubts=doubts)
                yield from judge_batch(beginning, self.path, self.profile, problems)

    def _with_standing_failures(
        self, tallies: Mapping[str, RuleTally], window: Iterable[JudgedBatch]
    ) -> dict[str, RuleTally]:
        """Return the tallies with failures for exactly those rules that have failures that stand."""
        # The tallies do not say it: a failure that was withdrawn later was counted with its window, and one that stands may
        # have been subtracted as counted.
        standing = {*self.standing, *((key.rule, key.trace) for key, _, _ in failures_of(window))}
        failed = {rule: sum(1 for failing, _ in standing if failing == rule) for rule in tallies}
        return {
            rule: replace(tally, failed=max(tally.failed, failed[rule]) if failed[rule] else 0, failed_traces=failed[rule])
            for rule, tally in tallies.items()
        }

    def _lives_with(self, captures: Iterable[Capture]) -> dict[int, NodeCoverage]:
        """Return from when to when each node logged, with the smallest share that a window has."""
        lives = dict(self._lives)
        for life in (life for capture in captures for life in capture.coverage):
            before = lives.get(life.node, life)
            lives[life.node] = replace(life, first=before.first, share=min(before.share, life.share))
        return lives


def failures_of(window: Iterable[JudgedBatch]) -> Iterator[tuple[FailureKey, JudgedBatch, Failure]]:
    """Yield the failures of a window."""
    for result in window:
        for failure in result.judgement.failures:
            traces = result.batch.traces or ()
            first = sum(len(before.events) for before in traces[: failure.trace])
            event = traces[failure.trace].events[failure.row - first]
            yield FailureKey(failure.rule, traces[failure.trace].name, event.at, event.time), result, failure


def _new_events(window: Iterable[JudgedBatch], counted: Mapping[int, str]) -> dict[str, int]:
    """Count, by trace, the events that no window before has counted."""
    traces = [trace for result in window for trace in result.batch.traces or ()]
    return {trace.name: len(trace.events) - _counted_events(trace, counted) for trace in traces}


def _counted_events(trace: Trace, counted: Mapping[int, str]) -> int:
    """Count the events of a trace that were counted in windows before."""
    # By time and node, since windows share no row numbers; the log lines of one node are in the order of their times.
    return sum(1 for event in trace.events if event.time is not None and event.time <= counted.get(event.node, ""))


def _problems(captures: Iterable[Capture]) -> dict[Problem, None]:
    return dict.fromkeys(problem for capture in captures for problem in capture.problems)


def _gaps(captures: Iterable[Capture]) -> dict[str, None]:
    """List what is missing between the lines of a window: a gap at its beginning or end is where the window was cut."""
    return dict.fromkeys(str(gap) for capture in captures for gap in capture.gaps if None not in gap.times)


def _capped(entries: Mapping[Any, None]) -> dict[Any, None]:
    """Keep the first PROBLEMS entries (rule 2)."""
    return dict.fromkeys([*entries][:PROBLEMS])


def _difference(tally: RuleTally, counted: RuleTally) -> RuleTally:
    """Subtract the tally of events that were counted before."""
    # Not below 0: judged alone, events may pass that are undecided in the window, where later lines count too.
    return replace(
        tally,
        held=max(0, tally.held - counted.held),
        failed=max(0, tally.failed - counted.failed),
        undecided=max(0, tally.undecided - counted.undecided),
        after_loss=max(0, tally.after_loss - counted.after_loss),
    )

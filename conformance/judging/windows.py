"""What the windows of logs that grow come to, one behind the other: one report, of which each event counts once.

Rules of this file

1. An event counts in the first window that ends behind it. The next window begins in front of it and knows what led there;
   what it checks of the events that have counted is judged alone, and taken off.
2. What is kept grows with partitions and rules, and not with the windows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from tidegauge.conformance.judging.check import CheckedInput, JudgedBatch, checked_input, judge_batch
from tidegauge.conformance.judging.environment import LostDisk, lost_disk_notes, lost_disks
from tidegauge.conformance.judging.follow import PROBLEMS
from tidegauge.conformance.judging.inputs import LOGS, InputFindings
from tidegauge.conformance.judging.judge import Failure, Judgement, RuleTally
from tidegauge.conformance.judging.verdicts import add_tallies, total_tallies
from tidegauge.traces.columns import to_columns
from tidegauge.traces.kafka import Capture
from tidegauge.traces.kafka.between.coverage import Life
from tidegauge.traces.problems import Problem
from tidegauge.traces.schema import Trace


class Key(NamedTuple):
    """What makes a failure the same in another window."""

    rule: str
    trace: str
    at: str
    time: str | None


class Windows:
    """The windows that have gone by; `stand` has the first failure of each rule in each trace."""

    def __init__(self, path: str, profile: str | None) -> None:
        self.path = path
        self.profile = profile
        self.count = 0
        self.stand: dict[tuple[str, str], Key] = {}
        self._tallies: dict[str, RuleTally] = {}
        self._events = 0
        self._traces: dict[str, None] = {}
        self._problems: dict[Problem, None] = {}
        self._missing: dict[str, None] = {}
        self._notes: dict[str, None] = {}
        self._lost: dict[LostDisk, None] = {}
        self._lives: dict[int, Life] = {}

    def add(
        self, captures: Sequence[Capture], now: Sequence[JudgedBatch], keys: Iterable[Key], counted: Mapping[int, str]
    ) -> None:
        """One more; these failures of it stand. Windows before counted up to the times in `counted`, by node."""
        fresh = _fresh(now, counted)
        self._tallies = self._with(now, counted)
        self._events += sum(fresh.values())
        self._traces |= dict.fromkeys(fresh)
        for key in keys:
            self.stand.setdefault((key.rule, key.trace), key)
        self._notes = _some(dict.fromkeys(self.notes(captures, now)))
        self._lost = _some(self._lost_by(now))
        self._problems = _some(self._problems | _problems(captures))
        self._missing = _some(self._missing | _gaps(captures))
        self._lives = self._lives_with(captures)
        self.count += 1

    def input(
        self, captures: Sequence[Capture], now: Sequence[JudgedBatch], counted: Mapping[int, str], lines: int
    ) -> CheckedInput:
        """The input of a report, if this is the last one: with no window before it, that of `check`."""
        found = InputFindings(list(self._problems | _problems(captures)))
        if not self.count:
            found.covered = [str(life) for one in captures for life in one.lives]
            doubts = (doubt.missing for one in now for doubt in one.batch.doubts)
            found.missing = [*dict.fromkeys([*(said for one in captures for said in one.missing), *doubts])]
            return checked_input(self.path, LOGS, found, [one.judgement for one in now])
        fresh = _fresh(now, counted)
        judgement = Judgement(
            self._events + sum(fresh.values()), len(self._traces | fresh), self._failing(self._with(now, counted), now), ()
        )
        found.covered = [str(life) for _, life in sorted(self._lives_with(captures).items())]
        windows = (
            f"what was before each of {self.count + 1:,} windows: the logs were judged by {lines:,} to {2 * lines:,} lines "
            "at a time; check without --follow reads them whole"
        )
        found.missing = [*(self._missing | _gaps(captures)), windows]
        return checked_input(self.path, LOGS, found, [judgement])

    def notes(self, captures: Sequence[Capture], now: Sequence[JudgedBatch]) -> list[str]:
        """How files were read, and what is said beside verdicts, with those of this window."""
        notes = [f"{self.path}: {note}" for one in captures for note in one.summary.notes()]
        of_judge = [note for one in now for note in one.judgement.notes]
        return [*dict.fromkeys([*self._notes, *notes, *lost_disk_notes(self._lost_by(now)), *of_judge])]

    def _lost_by(self, now: Iterable[JudgedBatch]) -> dict[LostDisk, None]:
        lost = dict(self._lost)
        for one in now:
            lost |= dict.fromkeys(lost_disks(one.batch.stored, one.batch.config, one.batch.traces, one.batch.source))
        return lost

    def _with(self, now: Sequence[JudgedBatch], counted: Mapping[int, str]) -> dict[str, RuleTally]:
        """The tallies with those of one more window, as far as it is new."""
        again = total_tallies(one.judgement for one in self._again(now, counted))
        of = total_tallies(one.judgement for one in now)
        fresh = {rule: _without(tally, again[rule]) for rule, tally in of.items()}
        return {rule: add_tallies(self._tallies.get(rule, RuleTally()), tally) for rule, tally in fresh.items()}

    def _again(self, now: Sequence[JudgedBatch], counted: Mapping[int, str]) -> Iterator[JudgedBatch]:
        """The beginnings that have counted, judged alone."""
        problems: list[Problem] = []
        for one in now:
            traces = tuple(replace(trace, events=trace.events[: _old(trace, counted)]) for trace in one.batch.traces or ())
            if any(trace.events for trace in traces):
                doubts = tuple(doubt for doubt in one.batch.doubts if doubt.first < len(traces[0].events))
                columns = to_columns(traces, one.batch.config)
                batch = replace(one.batch, traces=traces, stored=columns, doubts=doubts)
                yield from judge_batch(batch, self.path, self.profile, problems)

    def _failing(self, tallies: Mapping[str, RuleTally], now: Iterable[JudgedBatch]) -> dict[str, RuleTally]:
        """The tallies with failures where, and only where, there are some that stand."""
        stand = {*self.stand, *((key.rule, key.trace) for key, _, _ in failures_of(now))}
        failed = {rule: sum(1 for of, _ in stand if of == rule) for rule in tallies}
        return {
            rule: replace(tally, failed=max(tally.failed, failed[rule]) if failed[rule] else 0, failed_traces=failed[rule])
            for rule, tally in tallies.items()
        }

    def _lives_with(self, captures: Iterable[Capture]) -> dict[int, Life]:
        """From when to when each node was heard, and the least share of a window."""
        lives = dict(self._lives)
        for life in (life for one in captures for life in one.lives):
            before = lives.get(life.node, life)
            lives[life.node] = replace(life, first=before.first, share=min(before.share, life.share))
        return lives


def failures_of(now: Iterable[JudgedBatch]) -> Iterator[tuple[Key, JudgedBatch, Failure]]:
    """The failures of a window."""
    for one in now:
        for failure in one.judgement.failures:
            traces = one.batch.traces or ()
            first = sum(len(before.events) for before in traces[: failure.trace])
            event = traces[failure.trace].events[failure.row - first]
            yield Key(failure.rule, traces[failure.trace].name, event.at, event.time), one, failure


def _fresh(now: Iterable[JudgedBatch], counted: Mapping[int, str]) -> dict[str, int]:
    """By trace, the events that no window before has counted."""
    traces = [trace for one in now for trace in one.batch.traces or ()]
    return {trace.name: len(trace.events) - _old(trace, counted) for trace in traces}


def _old(trace: Trace, counted: Mapping[int, str]) -> int:
    """How many of its events windows before have counted."""
    return sum(1 for event in trace.events if event.time is not None and event.time <= counted.get(event.node, ""))


def _problems(captures: Iterable[Capture]) -> dict[Problem, None]:
    return dict.fromkeys(problem for one in captures for problem in one.problems)


def _gaps(captures: Iterable[Capture]) -> dict[str, None]:
    """What is missing between the lines of a window."""
    return dict.fromkeys(str(gap) for one in captures for gap in one.gaps if None not in gap.times)


def _some(kept: Mapping[Any, None]) -> dict[Any, None]:
    """The first of them."""
    return dict.fromkeys([*kept][:PROBLEMS])


def _without(one: RuleTally, two: RuleTally) -> RuleTally:
    """The tally without what has counted before."""
    return replace(
        one,
        held=max(0, one.held - two.held),
        failed=max(0, one.failed - two.failed),
        undecided=max(0, one.undecided - two.undecided),
        after_loss=max(0, one.after_loss - two.after_loss),
    )

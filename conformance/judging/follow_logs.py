"""Broker logs that grow: `feed` them as they are written, `look` says what is new, `report` is there at the end.

Rules of this file

1. Judged are the lines that are held (traces/kafka/growth.py), each time from nothing: what `check` says of logs that begin there.
   That may be less than it says of all of them, and never more.
2. A failure is news once. It is withdrawn when two looks in a row do not see it any more: later lines show that it may be for
   want of lines. One look may come when a node's lines were read and another's, as old, were not. When the window has gone
   on it stands.
3. An event counts in the first window that ends behind it.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from tidegauge.conformance.judging.check import (
    How,
    Input,
    Judged,
    Report,
    explained,
    input_of,
    judged,
    of_all,
    worst_first,
)
from tidegauge.conformance.judging.environment import Lost, lost_disks, warnings
from tidegauge.conformance.judging.events import words
from tidegauge.conformance.judging.explain import Explanation
from tidegauge.conformance.judging.follow import PROBLEMS, Alarm, News, Withdrawn
from tidegauge.conformance.judging.inputs import LOGS, Found, InputBatch, captured
from tidegauge.conformance.judging.judge import Failure, Judgement, RuleTally
from tidegauge.conformance.judging.verdicts import added, rule_verdicts, total
from tidegauge.traces.columns import to_columns
from tidegauge.traces.kafka import Capture
from tidegauge.traces.kafka.between.coverage import Life
from tidegauge.traces.kafka.growth import LINES, Growth
from tidegauge.traces.kafka.lines.tails import Log, Piece
from tidegauge.traces.problems import Problem
from tidegauge.traces.schema import Event, Trace


class Key(NamedTuple):
    """What makes a failure the same in another window."""

    rule: str
    trace: str
    at: str
    time: str | None


@dataclass
class _Past:
    """What the windows before have come to."""

    tallies: dict[str, RuleTally] = field(default_factory=dict)
    events: int = 0
    traces: set[str] = field(default_factory=set)
    problems: dict[Problem, None] = field(default_factory=dict)
    missing: dict[str, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    lost: dict[Lost, None] = field(default_factory=dict)
    lives: dict[int, Life] = field(default_factory=dict)
    stand: dict[Key, None] = field(default_factory=dict)


class FollowLogs:
    """What has been read of the logs at one path."""

    def __init__(self, path: Path, how: How, lines: int = LINES) -> None:
        self.path = path
        self.how = how
        self.windows = 0
        """Windows that have gone by."""
        self._growth = Growth(path, how.layout, lines)
        self._past = _Past()
        self._known: dict[Key, None] = {}
        self._missed: set[Key] = set()
        self._explained: dict[Key, Explanation] = {}
        self._begin = time.perf_counter()

    @property
    def held(self) -> int:
        """Lines that are held."""
        return self._growth.held

    def reached(self, log: Log) -> int:
        """Up to when a log has been read, on its clock."""
        return self._growth.reached(log)

    def feed(self, piece: Piece) -> list[News]:
        """Read on; a window that is full is judged."""
        self._growth.feed(piece)
        news = self._problems()
        if self._growth.full:
            captures = self._growth.look()
            judged_now = self._judged(captures)
            news += self._news(judged_now)
            self._go_on(captures, judged_now)
        return news

    def look(self) -> list[News]:
        """Judge what there is so far."""
        return list(self._news(self._judged(self._growth.look())))

    def end(self) -> list[News]:
        """Nothing follows: a line that waits is all there is of it."""
        self._growth.end()
        return [*self._problems(), *self.look()]

    def report(self) -> Report:
        """What `check` says of what was read, or less."""
        captures = self._growth.whole()
        now = self._judged(captures)
        stand = dict.fromkeys([*self._past.stand, *(key for key, _, _ in _failures(now))])
        one = self._input(captures, now, stand)
        said = [key for key in self._known if key not in stand]
        return Report(
            inputs=(one,),
            verdict=of_all((one,)),
            rules=one.rules,
            explanations=tuple(self._explanations(now, stand)),
            failures=len({(key.rule, key.trace) for key in stand}),
            seconds=time.perf_counter() - self._begin,
            notes=(*self._notes(captures, now), *(_undecided(key) for key in said)),
            judged=tuple(now) if not self.windows else (),
        )

    def _judged(self, captures: Sequence[Capture]) -> list[Judged]:
        batches = (batch for one in captures for batch in captured(one, self._name(one)))
        problems: list[Problem] = []
        return [one for batch in batches for one in judged(batch, str(self.path), self.how.profile, problems)]

    def _name(self, capture: Capture) -> str:
        return f"{self.path} ({capture.cluster})" if capture.cluster else str(self.path)

    def _problems(self) -> list[News]:
        news: list[News] = [*self._growth.news]
        self._growth.news.clear()
        return news

    def _news(self, now: Sequence[Judged]) -> Iterator[News]:
        found = {key: (one, failure) for key, one, failure in _failures(now)}
        failing = {(key.rule, key.trace) for key in found}
        missed = {key for key in self._known if (key.rule, key.trace) not in failing}
        for key in [key for key in self._known if key in missed & self._missed]:
            del self._known[key]
            self._explained.pop(key, None)
            if key not in self._past.stand:
                yield Withdrawn(key.trace, key.rule, key.at)
        self._missed = missed
        for key, (one, failure) in found.items():
            if key not in self._known and key not in self._past.stand:
                yield self._alarm(key, one, failure)
            self._known[key] = None

    def _alarm(self, key: Key, one: Judged, failure: Failure) -> Alarm:
        if len(self._explained) < self.how.explained or all(key.rule != rule for rule, *_ in self._explained):
            alone = replace(one, judgement=replace(one.judgement, failures=(failure,)))
            self._explained.update((key, explanation) for explanation in explained([alone], 1))
        config = one.batch.config
        expected, actual = (words(failure.compared, value, config) for value in (failure.expected, failure.actual))
        return Alarm(key.trace, key.rule, key.at, failure.compared, expected, actual, self._explained.get(key))

    def _go_on(self, captures: list[Capture], now: Sequence[Judged]) -> None:
        """This window has gone by."""
        past = self._past
        self._add(past.tallies, now)
        past.events += sum(self._fresh(now).values())
        past.traces.update(self._fresh(now))
        past.stand |= {key: None for key in self._known if key not in self._missed}
        past.problems |= dict.fromkeys([problem for one in captures for problem in one.problems])
        past.missing |= dict.fromkeys(self._gaps(captures))
        past.notes |= dict.fromkeys(self._notes(captures, now))
        past.lives = self._lives(captures)
        for kept in (past.problems, past.missing, past.notes):
            while len(kept) > PROBLEMS:
                del kept[next(reversed(kept))]
        self._known = {key: None for key in self._known if key in self._missed}
        self._growth.forget(captures)
        self.windows += 1

    def _add(self, tallies: dict[str, RuleTally], now: Sequence[Judged]) -> None:
        """What was checked of the events that no window before has counted."""
        for rule, tally in total(one.judgement for one in now).items():
            tallies[rule] = added(tallies.get(rule, RuleTally()), tally)
        if self.windows:
            for rule, tally in total(one.judgement for one in self._counted(now)).items():
                tallies[rule] = _without(tallies[rule], tally)

    def _counted(self, now: Sequence[Judged]) -> Iterator[Judged]:
        """The beginnings that windows before have counted, judged alone."""
        problems: list[Problem] = []
        for one in now:
            traces = tuple(replace(trace, events=trace.events[: self._old(trace)]) for trace in one.batch.traces or ())
            if any(trace.events for trace in traces):
                doubts = tuple(doubt for doubt in one.batch.doubts if doubt.first < len(traces[0].events))
                columns = to_columns(traces, one.batch.config)
                batch: InputBatch = replace(one.batch, traces=traces, columns=columns, doubts=doubts)
                yield from judged(batch, str(self.path), self.how.profile, problems)

    def _old(self, trace: Trace) -> int:
        """How many of its events windows before have counted."""
        return sum(1 for event in trace.events if self._is_old(event))

    def _is_old(self, event: Event) -> bool:
        until = self._growth.counted.get(event.node)
        return until is not None and event.time is not None and event.time <= until

    def _fresh(self, now: Sequence[Judged]) -> Mapping[str, int]:
        """By trace, the events that no window before has counted."""
        traces = [trace for one in now for trace in one.batch.traces or ()]
        return {trace.name: len(trace.events) - self._old(trace) for trace in traces}

    def _input(self, captures: Sequence[Capture], now: Sequence[Judged], stand: Iterable[Key]) -> Input:
        past, found = self._past, Found([problem for one in captures for problem in one.problems])
        found.covered = [str(life) for one in captures for life in one.lives]
        found.missing = [said for one in captures for said in one.missing]
        for one in now:
            found.missing += [doubt.missing for doubt in one.batch.doubts if doubt.missing not in found.missing]
        one_input = input_of(str(self.path), LOGS, found, [one.judgement for one in now])
        if not self.windows:
            return one_input
        tallies = dict(past.tallies)
        self._add(tallies, now)
        fresh = self._fresh(now)
        traces = {key.trace: key for key in stand}
        by_rule: dict[str, set[str]] = {}
        for key in stand:
            by_rule.setdefault(key.rule, set()).add(key.trace)
        for rule, tally in tallies.items():
            failed = len(by_rule.get(rule, ()))
            tallies[rule] = replace(tally, failed=max(tally.failed, failed) if failed else 0, failed_traces=failed)
        judgement = Judgement(past.events + sum(fresh.values()), len(past.traces | set(fresh) | set(traces)), tallies, ())
        found.problems = list(past.problems | dict.fromkeys(found.problems))
        found.covered = [str(life) for _, life in sorted(self._lives(captures).items())]
        found.missing = [*past.missing, *self._gaps(captures), self._windows()]
        return input_of(str(self.path), LOGS, found, [judgement])

    def _windows(self) -> str:
        return (
            f"what was before each of {self.windows + 1:,} windows: the logs were judged by {self._growth.lines:,} to "
            f"{2 * self._growth.lines:,} lines at a time; check without --follow reads them whole"
        )

    def _gaps(self, captures: Iterable[Capture]) -> list[str]:
        """What is missing between the lines of a window."""
        return [str(gap) for one in captures for gap in one.gaps if None not in gap.times]

    def _lives(self, captures: Iterable[Capture]) -> dict[int, Life]:
        """From when to when each node was heard, and the least share of a window."""
        lives = dict(self._past.lives)
        for life in (life for one in captures for life in one.lives):
            before = lives.get(life.node, life)
            lives[life.node] = replace(life, first=before.first, share=min(before.share, life.share))
        return lives

    def _notes(self, captures: Sequence[Capture], now: Sequence[Judged]) -> list[str]:
        lost = self._past.lost
        for one in now:
            lost |= dict.fromkeys(lost_disks(one.batch.columns, one.batch.config, one.batch.traces, one.batch.source))
        notes = [f"{self._name(one)}: {note}" for one in captures for note in one.summary.notes()]
        of_judge = [note for one in now for note in one.judgement.notes]
        return [*dict.fromkeys([*self._past.notes, *notes, *warnings(lost), *of_judge])]

    def _explanations(self, now: Sequence[Judged], stand: Iterable[Key]) -> Iterator[Explanation]:
        if not self.windows:
            yield from explained(now, self.how.explained)
            return
        keys = [(key, Failure(0, 0, key.rule, "", 0, 0)) for key in stand if key in self._explained]
        yield from (self._explained[key] for key, _ in worst_first(keys)[: self.how.explained])


def _failures(now: Iterable[Judged]) -> Iterator[tuple[Key, Judged, Failure]]:
    for one in now:
        for failure in one.judgement.failures:
            trace = (one.batch.traces or ())[failure.trace]
            first = sum(len(before.events) for before in (one.batch.traces or ())[: failure.trace])
            event = trace.events[failure.row - first]
            yield Key(failure.rule, trace.name, event.at, event.time), one, failure


def _without(one: RuleTally, two: RuleTally) -> RuleTally:
    """The tally without what was counted before."""
    return replace(
        one,
        held=max(0, one.held - two.held),
        failed=max(0, one.failed - two.failed),
        undecided=max(0, one.undecided - two.undecided),
        after_loss=max(0, one.after_loss - two.after_loss),
    )


def _undecided(key: Key) -> str:
    return (
        f"{key.rule} at {key.at} of {key.trace} was said, and is undecided in the report: the logs end while brokers run, and "
        "what they had still to say may explain it"
    )

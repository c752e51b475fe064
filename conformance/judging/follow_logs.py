"""Broker logs that grow: `feed` them as they are written, `look` says what is new, `report` is there at the end.

Rules of this file

1. Judged are the lines that are held (traces/kafka/growth.py), each time from nothing: what `check` says of logs that begin
   there. That may be less than it says of all of them, and never more.
2. A failure is news once. It is withdrawn when two looks in a row do not see it any more: later lines show that it may be
   for want of lines. One look may come when a node's lines were read and another's, as old, were not. When the window has
   gone on it stands.
3. The report is strict at its end: what brokers that run had still to say may explain a failure, also one that was news.
"""

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tidegauge.conformance.judging.check import (
    CheckOptions,
    JudgedBatch,
    Report,
    explain_failures,
    judge_batch,
    overall_verdict,
    worst_first,
)
from tidegauge.conformance.judging.events import value_text
from tidegauge.conformance.judging.explain import Explanation
from tidegauge.conformance.judging.follow import Alarm, News, Withdrawn
from tidegauge.conformance.judging.inputs import capture_batches
from tidegauge.conformance.judging.judge import Failure
from tidegauge.conformance.judging.windows import Key, Windows, failures_of
from tidegauge.traces.kafka import Capture
from tidegauge.traces.kafka.growth import LINES, Growth
from tidegauge.traces.kafka.lines.tails import Log, Piece
from tidegauge.traces.problems import Problem


class FollowLogs:
    """What has been read of the logs at one path."""

    def __init__(self, path: Path, how: CheckOptions, lines: int = LINES) -> None:
        self.path = path
        self.how = how
        self.windows = Windows(str(path), how.profile)
        self._growth = Growth(path, how.layout, lines)
        self._known: dict[Key, None] = {}
        self._missed: set[Key] = set()
        self._before: dict[Key, None] = {}
        """What was known in the window before: it stands, and is not news again."""
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
        """Read on."""
        self._growth.feed(piece)
        return self._problems()

    def go_on(self, more: Collection[Log]) -> list[News]:
        """Judge a window that is full; of these logs there is more."""
        news: list[News] = []
        if self._growth.full(more):
            captures = self._growth.look()
            now = self._judged(captures)
            news += self._news(now)
            stands = {key: None for key in self._known if key not in self._missed}
            self.windows.add(captures, now, stands, self._growth.counted)
            self._before, self._known = stands, {key: None for key in self._known if key in self._missed}
            self._growth.forget(captures)
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
        one = self.windows.input(captures, now, self._growth.counted, self._growth.lines)
        stand = {(key.rule, key.trace) for key, _, _ in failures_of(now)} | {*self.windows.stand}
        said = [_undecided(key) for key in self._known if (key.rule, key.trace) not in stand]
        return Report(
            inputs=(one,),
            verdict=overall_verdict((one,)),
            rules=one.rules,
            explanations=tuple(self._explanations(now)),
            failures=len(stand),
            seconds=time.perf_counter() - self._begin,
            notes=(*self.windows.notes(captures, now), *said),
        )

    def _judged(self, captures: Sequence[Capture]) -> list[JudgedBatch]:
        problems: list[Problem] = []
        batches = (batch for one in captures for batch in capture_batches(one, str(self.path)))
        return [one for batch in batches for one in judge_batch(batch, str(self.path), self.how.profile, problems)]

    def _problems(self) -> list[News]:
        news: list[News] = [*self._growth.news]
        self._growth.news.clear()
        return news

    def _news(self, now: Sequence[JudgedBatch]) -> Iterator[News]:
        found = {key: (one, failure) for key, one, failure in failures_of(now)}
        failing = {(key.rule, key.trace) for key in found}
        missed = {key for key in self._known if (key.rule, key.trace) not in failing}
        for key in [key for key in self._known if key in missed & self._missed]:
            del self._known[key]
            self._explained.pop(key, None)
            if key not in self._before:
                yield Withdrawn(key.trace, key.rule, key.at)
        self._missed = missed
        for key, (one, failure) in found.items():
            if key not in self._known and key not in self._before:
                yield self._alarm(key, one, failure)
            self._known[key] = None

    def _alarm(self, key: Key, one: JudgedBatch, failure: Failure) -> Alarm:
        if len(self._explained) < self.how.explained or all(key.rule != rule for rule, *_ in self._explained):
            alone = replace(one, judgement=replace(one.judgement, failures=(failure,)))
            self._explained.update((key, explanation) for explanation in explain_failures([alone], 1))
        config = one.batch.config
        expected, actual = (value_text(failure.compared, value, config) for value in (failure.expected, failure.actual))
        return Alarm(key.trace, key.rule, key.at, failure.compared, expected, actual, self._explained.get(key))

    def _explanations(self, now: Sequence[JudgedBatch]) -> Iterator[Explanation]:
        """With no window before this one those of `check`; else those that were given."""
        if not self.windows.count:
            yield from explain_failures(now, self.how.explained)
            return
        stand = {*self.windows.stand.values(), *(key for key, _, _ in failures_of(now))}
        given = [(key, Failure(0, 0, key.rule, "", 0, 0)) for key in self._explained if key in stand]
        yield from (self._explained[key] for key, _ in worst_first(given)[: self.how.explained])


def _undecided(key: Key) -> str:
    return (
        f"{key.rule} at {key.at} of {key.trace} was said, and is undecided in the report: the logs end while brokers run, "
        "and what they had still to say may explain it"
    )

"""Broker logs that grow, in a directory: their last lines are judged again and again.

Rules of this file

1. The lines of the window (traces/kafka_logs/growing_capture.py) are judged each time from nothing: the verdict is the one
   that `check` gives on logs that begin there. That may be less than it says of complete logs, and never more.
2. A failure is news once. It is withdrawn when two judgements in a row do not have it: later lines show that missing lines
   may explain it. One judgement is not enough: it may come when some lines of one node were read and those of another, as
   old, were not. When the window has moved on, a failure stands.
3. The report is strict at its end: lines that running brokers have not written yet may explain a failure, also one that was
   news.
"""

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from tidegauge.conformance.checking.check import (
    CheckOptions,
    JudgedBatch,
    Report,
    explain_failures,
    judge_batch,
    overall_verdict,
    worst_first,
)
from tidegauge.conformance.checking.inputs import capture_batches
from tidegauge.conformance.engine.judge import Failure
from tidegauge.conformance.explain.events import value_text
from tidegauge.conformance.explain.explain import Explanation
from tidegauge.conformance.follow.log_windows import FailureKey, PastWindows, failures_of
from tidegauge.conformance.follow.loop import Alarm, Publish, Source, Withdrawn
from tidegauge.traces.kafka_logs import Capture
from tidegauge.traces.kafka_logs.discovery.tail import LogFile, LogTails
from tidegauge.traces.kafka_logs.growing_capture import LINES, GrowingCapture
from tidegauge.traces.problems import Problem

SMALL, ENOUGH = 1 << 14, 100
"""Brokers that write all the time deliver pieces of few bytes, one after the other: after so many of fewer bytes than SMALL
the lines so far are judged."""
JUDGE_EVERY = 0.5
"""Seconds between two judgements; at least as long as one takes."""


class BrokerLogs(Source):
    """The logs at one path, a directory or one log, with at least `lines` lines in a window."""

    def __init__(self, path: Path, how: CheckOptions, publish: Publish, lines: int = LINES) -> None:
        super().__init__(publish)
        self.path = path
        self.how = how
        self.past = PastWindows(str(path), how.profile)
        self._tails = LogTails(path)
        self._growth = GrowingCapture(path, how.layout, lines)
        self._unread: list[LogFile] = []
        self._small_pieces = 0
        self._unjudged = False
        self._judged_at = time.monotonic()
        self._judging_took = 0.0
        self._reported: dict[FailureKey, None] = {}
        self._missed: set[FailureKey] = set()
        self._reported_before: dict[FailureKey, None] = {}
        """Failures that were reported in the last window: they stand, and are not news again."""
        self._explained: dict[FailureKey, Explanation] = {}
        self._begin = time.perf_counter()

    @property
    def line_count(self) -> int:
        """Lines in memory."""
        return self._growth.held

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Close the logs at the end."""
        with closing(self._tails):
            yield

    def poll(self) -> bool:
        """Read a piece or, when all logs were read to their ends, judge the window if it is time."""
        # Reading has precedence, so that the window is current; but brokers that never pause must not put off judging.
        if self._small_pieces < ENOUGH and self.read_piece():
            return True
        self._small_pieces, self._unread = 0, []
        begin = time.monotonic()
        # A window is judged from nothing each time, so never more often than half of the time.
        if not self._unjudged or begin - self._judged_at < max(JUDGE_EVERY, self._judging_took):
            return False
        self.judge()
        self._judged_at, self._unjudged = time.monotonic(), False
        self._judging_took = self._judged_at - begin
        return True

    def read_piece(self) -> bool:
        """Read a piece of the log that is furthest behind; return False if all logs were read to their ends."""
        self._unread = self._unread or self._tails.look()
        if not self._unread:
            return False
        # The log that was read least far in time comes first, so that nodes stay abreast in the window.
        piece = self._tails.take(min(self._unread, key=self._growth.reached))
        if piece is not None:
            self._growth.feed(piece)
            self._publish_problems()
        self._small_pieces = 0 if piece is not None and len(piece.data) >= SMALL else self._small_pieces + 1
        self._unjudged = True
        self.arrived()
        self._unread = self._tails.look()
        self._begin_window_if_full(self._unread)
        return True

    def judge(self) -> None:
        """Judge the window as it is."""
        self._publish_changes(self._judged(self._growth.look()))

    def end(self) -> None:
        """Judge the unfinished lines as they are."""
        self._growth.end()
        self._publish_problems()
        self.judge()

    def report(self) -> Report:
        """Report as `check` does on the lines read so far, or less."""
        captures = self._growth.whole()
        window = self._judged(captures)
        logs = self.past.input(captures, window, self._growth.judged_until, self._growth.lines)
        # The end of the logs is judged as it is: a failure near it may be undecided now (rule 3).
        standing = {(key.rule, key.trace) for key, _, _ in failures_of(window)} | {*self.past.standing}
        undecided = [
            f"{key.rule} at {key.at} of {key.trace} was reported, and is undecided in the report: the logs end while "
            "brokers run, and lines that are not written yet may explain it"
            for key in self._reported
            if (key.rule, key.trace) not in standing
        ]
        return Report(
            inputs=(logs,),
            verdict=overall_verdict((logs,)),
            rules=logs.rules,
            explanations=tuple(self._explanations(window)),
            failures=len(standing),
            seconds=time.perf_counter() - self._begin,
            notes=(*self.past.notes(captures, window), *undecided),
        )

    def _begin_window_if_full(self, unread: Collection[LogFile]) -> None:
        """Begin a new window when this one is full; `unread` are the logs of which there is more."""
        if not self._growth.full(unread):
            return
        captures = self._growth.look()
        window = self._judged(captures)
        self._publish_changes(window)
        standing = {key: None for key in self._reported if key not in self._missed}
        self.past.add(captures, window, standing, self._growth.judged_until)
        # Its lines stay for one more window: a failure that the last judgement missed may come back, or be withdrawn.
        self._reported_before, self._reported = standing, {key: None for key in self._reported if key in self._missed}
        self._growth.forget(captures)

    def _judged(self, captures: Sequence[Capture]) -> list[JudgedBatch]:
        """Judge the traces of captures."""
        problems: list[Problem] = []
        path = str(self.path)
        batches = (batch for capture in captures for batch in capture_batches(capture, path))
        return [result for batch in batches for result in judge_batch(batch, path, self.how.profile, problems)]

    def _publish_problems(self) -> None:
        """Publish the problems of reading, each once."""
        for problems in (self._tails.problems, self._growth.news):
            for problem in problems:
                self.publish(problem)
            problems.clear()

    def _publish_changes(self, window: Sequence[JudgedBatch]) -> None:
        """Publish new failures, and those that two judgements in a row missed."""
        failures = {key: (result, failure) for key, result, failure in failures_of(window)}
        # The same rule at another event counts as the same failure: with more lines another event may be the first.
        failing = {(key.rule, key.trace) for key in failures}
        missed = {key for key in self._reported if (key.rule, key.trace) not in failing}
        for key in [key for key in self._reported if key in missed & self._missed]:
            del self._reported[key]
            self._explained.pop(key, None)
            if key not in self._reported_before:
                self.publish(Withdrawn(key.trace, key.rule, key.at))
        self._missed = missed
        for key, (result, failure) in failures.items():
            if key not in self._reported and key not in self._reported_before:
                self.publish(self._alarm(key, result, failure))
            self._reported[key] = None

    def _alarm(self, key: FailureKey, result: JudgedBatch, failure: Failure) -> Alarm:
        """Return the news of a failure, with an explanation if the report has room for one or its rule has none yet."""
        # As many explanations as a report has, and in any case the first of each rule.
        if len(self._explained) < self.how.explained or all(key.rule != rule for rule, *_ in self._explained):
            alone = replace(result, judgement=replace(result.judgement, failures=(failure,)))
            self._explained.update((key, explanation) for explanation in explain_failures([alone], 1))
        config = result.batch.config
        expected, actual = (value_text(failure.compared, value, config) for value in (failure.expected, failure.actual))
        return Alarm(key.trace, key.rule, key.at, failure.compared, expected, actual, self._explained.get(key))

    def _explanations(self, window: Sequence[JudgedBatch]) -> Iterator[Explanation]:
        """Yield the explanations of `check` or, after the first window, the printed ones: the lines are gone."""
        if not self.past.count:
            yield from explain_failures(window, self.how.explained)
            return
        standing = {*self.past.standing.values(), *(key for key, _, _ in failures_of(window))}
        printed = [(key, Failure(0, 0, key.rule, "", 0, 0)) for key in self._explained if key in standing]
        yield from (self._explained[key] for key, _ in worst_first(printed)[: self.how.explained])

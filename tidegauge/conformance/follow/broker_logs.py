"""Follow broker logs that grow, in a directory: their last lines are judged again and again.

A window is the last lines of all logs, some ten thousand, that are in memory. It is judged as often as there is time; when
it is full, the next window begins before its end. A capture is the traces of one cluster that the lines of a window give; it
says from when to when each node logged (`coverage`) and where lines are missing (`gaps`, `missing`). A failure is published
as news, may be withdrawn, and stands once its window is past.

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
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from tidegauge.conformance.checking.check import (
    CheckedInput,
    CheckOptions,
    JudgedBatch,
    Report,
    checked_input,
    explain_failures,
    judge_batch,
    overall_verdict,
    worst_first,
)
from tidegauge.conformance.checking.inputs import LOGS, InputFindings, capture_batches
from tidegauge.conformance.checking.situations import Seen, Situation, add, situations
from tidegauge.conformance.checking.verdicts import LostDisk, lost_disk_notes, lost_disks
from tidegauge.conformance.engine.judge import Failure, Judgement, RuleTally, add_tallies, total_tallies
from tidegauge.conformance.explain.explain import Explanation
from tidegauge.conformance.explain.replay import comparison_text
from tidegauge.conformance.follow.loop import PROBLEMS, Alarm, Publish, Source, StoryLine, Withdrawn
from tidegauge.story.reading import text_files
from tidegauge.story.sentences import entry_sentence, loss_sentence
from tidegauge.story.story import Story, happened, story_of
from tidegauge.traces.columns import to_columns
from tidegauge.traces.kafka_logs import Capture
from tidegauge.traces.kafka_logs.correlation.log_coverage import NodeCoverage
from tidegauge.traces.kafka_logs.discovery.tail import LogFile, LogTails
from tidegauge.traces.kafka_logs.growing_capture import LINES, GrowingCapture
from tidegauge.traces.problems import Problem
from tidegauge.traces.schema import Trace

# One report of many windows of broker logs, in which each event counts once.
#
#     window 1   |--------------------|
#     window 2              |--------------------|
#                           ^ counted ^   new    ^
#
# Rules of this part
#
# 1. An event counts in the first window that ends after it. The next window begins before it and contains what led there;
# the events that were counted are judged once more alone, and their tallies subtracted.
# 2. Memory grows with partitions and rules, and not with the number of windows.


class FailureKey(NamedTuple):
    """What a failure has in common with the same failure in another window: rule, trace, where and when its event was."""

    rule: str
    trace: str
    at: str
    time: str | None


class PastWindows:
    """What is kept of the windows before the current one for the report.

    In its methods `captures` and `window` are the current window's, read and judged; `counted` is, by node, the time up to
    which events were counted in past windows. Dicts whose values are None are sets that keep their order.
    """

    def __init__(self, path: str, how: CheckOptions) -> None:
        """Begin with no window. `how` are the options of the command."""
        self.path = path
        self.how = how
        self.count = 0
        """How many windows were judged for the last time."""
        self.standing: dict[tuple[str, str], FailureKey] = {}
        """By (rule, trace), the first failure that stands."""
        # Of all past windows; what is the same in several is there once.
        self._tallies: dict[str, RuleTally] = {}
        self._events = 0
        self._traces: dict[str, None] = {}
        self._problems: dict[Problem, None] = {}
        self._missing: dict[str, None] = {}
        self._notes: dict[str, None] = {}
        self._lost_disks: dict[LostDisk, None] = {}
        self._lives: dict[int, NodeCoverage] = {}
        self._situations: dict[Situation, Seen] = {}

    def add(
        self,
        captures: Sequence[Capture],
        window: Sequence[JudgedBatch],
        failures: Iterable[FailureKey],
        counted: Mapping[int, str],
    ) -> None:
        """Add the current window, which has ended, to the past ones; its `failures` stand."""
        new_events = _new_events(window, counted)  # by trace, how many
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
        self._situations = self._situations_with(window, counted)
        self.count += 1

    def input(
        self,
        captures: Sequence[Capture],
        window: Sequence[JudgedBatch],
        counted: Mapping[int, str],
        lines: int,
        unjudged: Iterable[Problem],
    ) -> CheckedInput:
        """Return the input for a report in which `window` is the last one; without past windows it is that of `check`.

        `lines` is the number of lines that a window has at least; `unjudged` has the traces of any window that could not be
        judged.
        """
        findings = InputFindings(problems=[*(self._problems | _problems(captures)), *unjudged])
        checked = self._input(captures, window, counted, lines, findings)
        profiles = {result.batch.config.profile for result in window if self.how.situations}
        return replace(checked, situations=self._situations_with(window, counted), profiles=frozenset(profiles))

    def _input(
        self,
        captures: Sequence[Capture],
        window: Sequence[JudgedBatch],
        counted: Mapping[int, str],
        lines: int,
        findings: InputFindings,
    ) -> CheckedInput:
        """Return the input without situations: the past windows, and this one without the events that were counted there.

        `findings` has the problems; what was covered and what is missing is added.
        """
        if not self.count:
            # One window is the whole of the logs: the report can say what `check` says.
            findings.covered = [str(life) for capture in captures for life in capture.coverage]
            doubts = (doubt.missing for result in window for doubt in result.batch.doubts)
            findings.missing = [*dict.fromkeys([*(gap for capture in captures for gap in capture.missing), *doubts])]
            return checked_input(self.path, LOGS, findings, [result.judgement for result in window])
        new_events = _new_events(window, counted)
        judgement = Judgement(
            events=self._events + sum(new_events.values()),
            traces=len(self._traces | new_events),
            tallies=self._with_standing_failures(self._tallies_with(window, counted), window),
            failures=(),  # they are in the report: the input has only the counts
        )
        findings.covered = [str(life) for _, life in sorted(self._lives_with(captures).items())]
        windows = (
            f"what was before each of {self.count + 1:,} windows: the logs were judged by {lines:,} to {2 * lines:,} lines "
            "at a time; check without --follow reads them whole"
        )
        findings.missing = [*(self._missing | _gaps(captures)), windows]
        return checked_input(self.path, LOGS, findings, [judgement])

    def notes(self, captures: Sequence[Capture], window: Sequence[JudgedBatch]) -> list[str]:
        """List notes of past windows and of this one, each once: how files were read, lost disks, those of the judge."""
        of_reading = [f"{self.path}: {note}" for capture in captures for note in capture.summary.notes()]
        of_judge = [note for result in window for note in result.judgement.notes]
        return [*dict.fromkeys([*self._notes, *of_reading, *lost_disk_notes(self._lost_disks_with(window)), *of_judge])]

    def _lost_disks_with(self, window: Iterable[JudgedBatch]) -> dict[LostDisk, None]:
        """Return the lost disks of past windows and of this one, each once, as the keys of a dict."""
        disks = dict(self._lost_disks)
        for batch in (result.batch for result in window):
            disks |= dict.fromkeys(lost_disks(batch.stored, batch.config, batch.traces, batch.source))
        return disks

    def _tallies_with(self, window: Sequence[JudgedBatch], counted: Mapping[int, str]) -> dict[str, RuleTally]:
        """Return the tallies of past windows and of this one, without those of events that were counted before."""
        counted_again = total_tallies(result.judgement for result in self._counted_part(window, counted))
        of_window = total_tallies(result.judgement for result in window)
        # A tally has no events in it: what was counted before can only be subtracted.
        new = {rule: _difference(tally, counted_again[rule]) for rule, tally in of_window.items()}
        return {rule: add_tallies(self._tallies.get(rule, RuleTally()), tally) for rule, tally in new.items()}

    def _counted_part(self, window: Sequence[JudgedBatch], counted: Mapping[int, str]) -> Iterator[JudgedBatch]:
        """Judge the beginnings of a window's traces, whose events were counted before, by themselves; yield the results."""
        problems: list[Problem] = []  # left out: judging the whole window met them, too
        for batch in (result.batch for result in window):
            traces = tuple(
                replace(trace, events=trace.events[: _counted_events(trace, counted)]) for trace in batch.traces or ()
            )
            if any(trace.events for trace in traces):
                # Of the gaps those that begin in the beginning; a trace with gaps is a batch of its own (capture_batches).
                doubts = tuple(doubt for doubt in batch.doubts if doubt.first < len(traces[0].events))
                columns = to_columns(traces, batch.config)
                beginning = replace(batch, traces=traces, stored=columns, doubts=doubts)
                yield from judge_batch(beginning, self.path, self.how.profile, problems)

    def _situations_with(self, window: Sequence[JudgedBatch], counted: Mapping[int, str]) -> dict[Situation, Seen]:
        """Return the situations of past windows and of this one's new events; none if the command does not count them."""
        seen = dict(self._situations)
        for batch in (result.batch for result in window if self.how.situations):
            traces = tuple(
                replace(trace, events=trace.events[_counted_events(trace, counted) :]) for trace in batch.traces or ()
            )
            # `counted`: their numbers are the reader's own, and begin in the middle of a count.
            new = replace(batch, traces=traces, stored=to_columns(traces, batch.config, counted=True))
            add(seen, situations(new.stored, new.place))
        return seen

    def _with_standing_failures(
        self, tallies: Mapping[str, RuleTally], window: Iterable[JudgedBatch]
    ) -> dict[str, RuleTally]:
        """Return the tallies with failures for exactly those rules that have failures that stand, or are in `window`."""
        # The tallies do not say it: a failure that was withdrawn later was counted with its window, and one that stands may
        # have been subtracted as counted.
        standing = {*self.standing, *((key.rule, key.trace) for key, _, _ in failures_of(window))}
        failed_traces = {rule: sum(1 for failing, _ in standing if failing == rule) for rule in tallies}
        # In each trace in which a rule fails at least one of its checks has failed.
        failed = {rule: max(tally.failed, failed_traces[rule]) for rule, tally in tallies.items() if failed_traces[rule]}
        return {
            rule: replace(tally, failed=failed.get(rule, 0), failed_traces=failed_traces[rule])
            for rule, tally in tallies.items()
        }

    def _lives_with(self, captures: Iterable[Capture]) -> dict[int, NodeCoverage]:
        """Return by node from when to when it logged, with the smallest share of that which any window has covered."""
        lives = dict(self._lives)
        for life in (life for capture in captures for life in capture.coverage):
            before = lives.get(life.node, life)
            lives[life.node] = replace(life, first=before.first, share=min(before.share, life.share))
        return lives


def failures_of(window: Iterable[JudgedBatch]) -> Iterator[tuple[FailureKey, JudgedBatch, Failure]]:
    """Yield the failures of a judged window, each with its key and the batch that it is in."""
    for result in window:
        for failure in result.judgement.failures:
            traces = result.batch.traces or ()
            first_row = sum(len(trace.events) for trace in traces[: failure.trace])  # of the failing trace in the columns
            event = traces[failure.trace].events[failure.row - first_row]
            yield FailureKey(failure.rule, traces[failure.trace].name, event.at, event.time), result, failure


def _new_events(window: Iterable[JudgedBatch], counted: Mapping[int, str]) -> dict[str, int]:
    """Count, by name of the trace, the events of a window that no past window has counted."""
    traces = [trace for result in window for trace in result.batch.traces or ()]
    return {trace.name: len(trace.events) - _counted_events(trace, counted) for trace in traces}


def _counted_events(trace: Trace, counted: Mapping[int, str]) -> int:
    """Count the events of a trace, its first ones, that were counted in past windows."""
    # By time and node, since windows share no row numbers; the log lines of one node are in the order of their times. They
    # are its first events: a window overlaps with the one before at its beginning.
    return sum(1 for event in trace.events if event.time is not None and event.time <= counted.get(event.node, ""))


def _problems(captures: Iterable[Capture]) -> dict[Problem, None]:
    """Return the problems of a window, each once, as the keys of a dict."""
    return dict.fromkeys(problem for capture in captures for problem in capture.problems)


def _gaps(captures: Iterable[Capture]) -> dict[str, None]:
    """Return what is missing between the lines of a window, each once, as the keys of a dict."""
    # A gap without a time at one side is where the window begins or ends: nothing need be missing there.
    return dict.fromkeys(str(gap) for capture in captures for gap in capture.gaps if None not in gap.times)


def _capped(entries: Mapping[Any, None]) -> dict[Any, None]:
    """Return the first PROBLEMS entries: memory does not grow with the number of windows."""
    return dict.fromkeys([*entries][:PROBLEMS])


def _difference(tally: RuleTally, counted: RuleTally) -> RuleTally:
    """Return the tally of a rule without that of the events that were counted before (`counted`)."""
    # Not below 0: counted alone, events may have decided a check that the whole window leaves undecided.
    return replace(
        tally,
        held=max(0, tally.held - counted.held),
        failed=max(0, tally.failed - counted.failed),
        undecided=max(0, tally.undecided - counted.undecided),
        after_loss=max(0, tally.after_loss - counted.after_loss),
    )


SMALL, ENOUGH = 1 << 14, 100
"""Brokers that write all the time deliver pieces of few bytes, one after the other: after so many of fewer bytes than SMALL
the lines so far are judged."""
JUDGE_EVERY = 0.5
"""Seconds between two judgements; at least as long as one takes."""


class BrokerLogs(Source):
    """The logs at one path, a directory or one log, with at least `lines` lines in a window."""

    def __init__(self, path: Path, how: CheckOptions, publish: Publish, lines: int = LINES) -> None:
        """Begin with nothing read and nothing judged."""
        super().__init__(publish)
        self.path = path
        self.how = how
        self.past = PastWindows(str(path), how)
        self._tails = LogTails(path)
        self._story = StoryNews(path)
        self._growth = GrowingCapture(path, how.layout, lines)
        self._unread: list[LogFile] = []
        """Logs that have more to read."""
        self._small_pieces = 0
        """How many pieces in a row were small: what is left to read comes as fast as it is written."""
        self._unjudged = False
        """Whether lines were read since the last judgement."""
        self._judged_at = time.monotonic()
        self._judging_took = 0.0
        self._reported: dict[FailureKey, None] = {}
        """Failures of this window that were news and were not withdrawn."""
        self._missed: set[FailureKey] = set()
        """Failures that the last judgement did not find again: one that is missed twice is withdrawn."""
        self._reported_before: dict[FailureKey, None] = {}
        """Failures that were reported in the last window: they stand, and are not news again."""
        self._unjudged_traces: dict[str, Problem] = {}
        """By its name, the problem of each trace of any window that could not be judged."""
        self._explained: dict[FailureKey, Explanation] = {}
        self._begin = time.perf_counter()

    @property
    def line_count(self) -> int:
        """Lines in memory."""
        return self._growth.lines_in_memory

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Close the logs when the block ends."""
        with closing(self._tails):
            yield

    def poll(self) -> bool:
        """Read a piece or, when all logs were read to their ends, judge the window if it is time; else return False."""
        # Reading has precedence, so that the window is current; but brokers that never pause must not put off judging.
        if self._small_pieces < ENOUGH and self.read_piece():
            return True
        self._small_pieces, self._unread = 0, []
        begin = time.monotonic()
        # A window is judged from nothing each time, so judging never takes up more than half of the time.
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
        # Which logs have more by now: a full window waits for those that lag behind.
        self._unread = self._tails.look()
        self._begin_window_if_full(self._unread)
        return True

    def judge(self) -> None:
        """Judge the window as it is; publish what changed, and what happened."""
        self._publish_changes(self._judged(self._growth.look()))
        for news in self._story.look():
            self.publish(StoryLine(news))

    def end(self) -> None:
        """Judge the window with the unfinished last lines as they are."""
        self._growth.end()
        self._publish_problems()
        self.judge()

    def report(self) -> Report:
        """Return the report of `check` on the lines read so far, as far as the windows allow (rule 1)."""
        captures = self._growth.whole()
        window = self._judged(captures)
        unjudged = self._unjudged_traces.values()
        logs = self.past.input(captures, window, self._growth.judged_until, self._growth.lines, unjudged)  # the only input
        # The end of the logs is judged as it is: a failure near it may be undecided now (rule 3).
        standing = {(key.rule, key.trace) for key, _, _ in failures_of(window)} | {*self.past.standing}
        undecided = [
            f"{key.rule} at {key.at} of {key.trace} was reported, and is undecided in the report: the logs end while "
            "brokers run, and lines that are not written yet may explain it"
            for key in self._reported
            if (key.rule, key.trace) not in standing
        ]
        story = self._story.story()
        untold = (
            () if story else ("what happened is not said of logs of more than 64 MB that grow: tidegauge check DIR says it",)
        )
        report = Report(
            inputs=(logs,),
            verdict=overall_verdict((logs,)),
            rules=logs.rules,
            explanations=tuple(self._explanations(window)),
            failures=len(standing),
            seconds=time.perf_counter() - self._begin,
            notes=(*self.past.notes(captures, window), *undecided, *untold),
        )
        return report.with_story(story) if story else report

    def _begin_window_if_full(self, unread: Collection[LogFile]) -> None:
        """Begin a new window when this one is full; `unread` are the logs of which there is more."""
        if not self._growth.full(unread):
            return
        captures = self._growth.look()
        window = self._judged(captures)
        self._publish_changes(window)
        standing = {key: None for key in self._reported if key not in self._missed}  # those that this judgement has, too
        self.past.add(captures, window, standing, self._growth.judged_until)
        # Its lines stay for one more window: a failure that the last judgement missed may come back, or be withdrawn.
        self._reported_before, self._reported = standing, {key: None for key in self._reported if key in self._missed}
        self._growth.forget(captures)

    def _judged(self, captures: Sequence[Capture]) -> list[JudgedBatch]:
        """Judge the traces of a window's captures from nothing; return the batches with their judgements.

        Publish each trace that cannot be judged, once.
        """
        problems: list[Problem] = []
        path = str(self.path)
        batches = (batch for capture in captures for batch in capture_batches(capture, path))
        window = [result for batch in batches for result in judge_batch(batch, path, self.how.profile, problems)]
        for problem in problems:
            is_new = problem.path not in self._unjudged_traces
            if is_new and len(self._unjudged_traces) == PROBLEMS:
                continue
            if is_new:
                self.publish(problem)
            # Of a trace that grows: more events are lost than at the last look.
            self._unjudged_traces[problem.path] = problem
        return window

    def _publish_problems(self) -> None:
        """Publish the problems of reading, each once."""
        for problems in (self._tails.problems, self._growth.news):
            for problem in problems:
                self.publish(problem)
            problems.clear()

    def _publish_changes(self, window: Sequence[JudgedBatch]) -> None:
        """Publish failures that are new in a judged window, and withdraw those that two judgements in a row do not have."""
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
        """Return the news of a failure; make its explanation if the report has room for one or its rule has none yet."""
        if len(self._explained) < self.how.explained or all(key.rule != explained.rule for explained in self._explained):
            # Its batch as if nothing else failed in it: that yields the one explanation.
            alone = replace(result, judgement=replace(result.judgement, failures=(failure,)))
            self._explained.update((key, explanation) for explanation in explain_failures([alone], most=1))
        config = result.batch.config
        actual, expected = comparison_text(failure, config)
        return Alarm(key.trace, key.rule, key.at, failure.compared, expected, actual, self._explained.get(key))

    def _explanations(self, window: Sequence[JudgedBatch]) -> Iterator[Explanation]:
        """Yield the explanations of `check` or, after the first window, those that were published: the lines are gone."""
        if not self.past.count:
            yield from explain_failures(window, self.how.explained)
            return
        standing = {*self.past.standing.values(), *(key for key, _, _ in failures_of(window))}
        # `worst_first` sorts failures and looks at their rules only: each explanation gets one with nothing else in it.
        published = [(key, Failure(0, 0, key.rule, "", 0, 0)) for key in self._explained if key in standing]
        yield from (self._explained[key] for key, _ in worst_first(published)[: self.how.explained])


# ---------------------------------------------------------------------------------------------------------------------
# The story of logs while they grow: each thing that happened is said once, a loss again when more is known of it.
#
# The files are read anew each time, whole: lines of INFO go at 100 MB/s. Larger logs are left to `tidegauge check`, for a
# report that comes after SIGTERM must come within seconds.


MOST_BYTES = 64 << 20
"""Of all logs: they are read in half a second."""


class StoryNews:
    """The sentences about what happened in the logs at one path, each published once."""

    def __init__(self, path: Path) -> None:
        """Begin with nothing published."""
        self.path = path
        self._published: dict[tuple[object, ...], str] = {}
        """By what identifies it, each entry and loss that was published: a loss with its last sentence, an entry with ""."""

    def story(self) -> Story | None:
        """Read the story of the logs as they are now; return None if they are larger than MOST_BYTES."""
        size = 0
        for path, _ in text_files(self.path, []):  # what cannot be read is said by whoever judges the logs
            # A log that is rotated may be gone since the folder was listed.
            with suppress(OSError):
                size += path.stat().st_size
        return story_of([self.path]) if size <= MOST_BYTES else None

    def look(self) -> Iterator[str]:
        """Read the logs; yield the sentences about what happened, and about losses, that were not published before."""
        story = self.story()
        if story is None:
            return
        for entry in filter(happened, story.entries):
            where = f"{entry.partition}: " if entry.partition else ""
            key = (entry.kind, entry.partition, entry.node, entry.sources[0])
            # What later lines add to an entry is in the report.
            if key not in self._published:
                self._published[key] = ""
                yield f"{where}{entry_sentence(entry)} [{entry.sources[0]}]"
        yield from self._losses(story)

    def _losses(self, story: Story) -> Iterator[str]:
        """Yield each loss that is new, or of which more is known than when it was printed."""
        for loss in story.losses:
            key = (loss.partition, loss.generation, loss.why, loss.order)
            sentence = loss_sentence(loss)
            if self._published.get(key) != sentence:
                self._published[key] = sentence
                yield sentence
                if loss.do is not None:
                    yield f"  Do: {loss.do}."

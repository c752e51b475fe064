"""NDJSON that grows: a file or standard input, read in pieces that may end anywhere.

Rules of this file

1. The report is the one that `check` gives on the same bytes, as far as that can be known (growing_trace.py). It has no
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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import FileIO
from itertools import chain
from pathlib import Path

from tidegauge.conformance.checking.check import (
    CheckOptions,
    Report,
    checked_input,
    overall_verdict,
    unknown_profile_problem,
    worst_first,
)
from tidegauge.conformance.checking.inputs import InputFindings
from tidegauge.conformance.checking.verdicts import LostDisk, log_gaps, lost_disk_notes, rule_verdicts
from tidegauge.conformance.engine.judge import Failure, TooLargeError, total_tallies
from tidegauge.conformance.explain.explain import Explanation
from tidegauge.conformance.explain.replay import comparison_text
from tidegauge.conformance.follow.growing_trace import GrowingTrace
from tidegauge.conformance.follow.loop import PROBLEMS, Alarm, Publish, Source, Withdrawn
from tidegauge.traces.formats.ndjson import LineReader
from tidegauge.traces.problems import Problem
from tidegauge.traces.schema import MISSING, Config, Trace

PIECE = 1 << 18
"""Bytes that are judged at once: a thousand lines, some tenths of a second."""


class NdjsonSource(Source):
    """The judge of one growing source called `name`; a subclass polls, and calls `feed` and `next_file`."""

    def __init__(self, name: str, how: CheckOptions, publish: Publish) -> None:
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
        self._missing: list[str] = []
        self._lost_disks: list[LostDisk] = []
        self._explained: dict[tuple[str, str, int], Explanation] = {}
        """By trace, rule and row: an explanation is made when its failure is news, while the events are there."""
        self._begin = time.perf_counter()

    def feed(self, data: bytes) -> None:
        """Judge what was read; an unfinished line waits for its rest."""
        self._reader.feed(data)
        self._judge_new_events()
        # Binary data, or a newer schema: nothing after it can be read either.
        self.ended = self.ended or self._reader.stopped

    def next_file(self, note: str) -> None:
        """Go on at the beginning of a file; `note` says why."""
        self._reader.next_file()
        self.notes.append(note)
        self.publish(note)
        self._judge_new_events()

    def end(self) -> None:
        """Judge the unfinished line as it is."""
        self._reader.end()
        self._judge_new_events()

    def report(self) -> Report:
        """Report as `check` does on the bytes read so far."""
        judgements = {name: trace.judgement() for name, trace in self.traces.items()}
        problems = [*self._problems, *self._set_aside.values()]
        if self._more_problems:
            seen, do = f"{self._more_problems:,} more problems", "see above: each was printed as it was met"
            problems.append(Problem(self.name, None, "what can be read", seen, do, self._more_lost))
        findings = InputFindings(problems, self.notes, missing=self._missing)
        inputs = (checked_input(self.name, "NDJSON", findings, list(judgements.values())),)
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
        """Judge new events of a trace."""
        name = trace.name
        if name not in self.traces and name not in self._set_aside:
            config = trace.config if self.how.profile is None else replace(trace.config, profile=self.how.profile)
            problem = self._refusal(config)
            if problem is not None:
                self._set_aside[name] = problem
                self.publish(problem)
            else:
                self.traces[name] = GrowingTrace(replace(trace, config=config))
                self._missing += [gap for gap in config.extra.get(MISSING, ()) if gap not in self._missing]
        if name in self._set_aside:
            problem = self._set_aside[name]
            self._set_aside[name] = replace(problem, lost=problem.lost + len(trace.events))
            return
        self._lost_disks += [(event.node, event.at) for event in trace.events if event.event == "LoseDisk"]
        growing = self.traces[name]
        growing.damaged = self._reader.damaged.get(name)
        try:
            failures, withdrawn = growing.take(trace.events)
        # One such trace stops no other (rule 3); the others keep their tables.
        except TooLargeError as error:
            expected, seen = "a trace that can be judged", f"{name}: {error}"
            problem = Problem(self.name, None, expected, seen, "split it", growing.event_count)
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

    def _refusal(self, config: Config) -> Problem | None:
        """Return the reason why a trace cannot be followed, if there is one."""
        # Gaps are given as rows between which lines are missing: that is known only of a trace that was read to its end.
        if log_gaps(config):
            expected, seen = "a trace that goes on", "a Config with the gaps of a complete one"
            return Problem(self.name, None, expected, seen, "judge the complete trace, without --follow")
        return unknown_profile_problem(self.name, config, 0)

    def _alarm(self, trace: GrowingTrace, failure: Failure) -> Alarm:
        """Return the news of a failure, with an explanation if the report has room for one or its rule has none yet."""
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
        """Return the explanation that was printed or, if there was none, one made now."""
        printed = self._explained.get((name, failure.rule, failure.row))
        explanation = self.traces[name].explained(failure) if printed is None else None
        return printed if explanation is None else replace(explanation, path=self.name)


class NdjsonFile(NdjsonSource):
    """A file that grows, also if it is rotated or truncated."""

    def __init__(self, path: str, how: CheckOptions, publish: Publish) -> None:
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
        """Judge the next piece, or turn to the file that took the place of this one."""
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
        """Open the file of this name if it is another one by now; during a rotation there is none."""
        try:
            if os.path.samestat(Path(self.name).stat(), os.fstat(self._file.fileno())):
                return None
            return Path(self.name).open("rb", buffering=0)
        except FileNotFoundError:
            return None


class StandardInput(NdjsonSource):
    """Standard input, until the other side closes it."""

    def __init__(self, how: CheckOptions, publish: Publish) -> None:
        super().__init__("stdin", how, publish)

    def poll(self) -> bool:
        """Judge the next piece."""
        descriptor = sys.stdin.fileno()
        if not select.select([descriptor], [], [], 0)[0]:
            return False
        data = os.read(descriptor, PIECE)
        if data:
            self.feed(data)
            self.arrived()
        else:
            self.ended = True
        return True

    def wait(self, seconds: float) -> None:
        """Wait until there is something to read: a writer that waits for the pipe is not kept waiting."""
        select.select([sys.stdin.fileno()], [], [], seconds)

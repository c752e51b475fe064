"""NDJSON that grows: `feed` it whatever has been written, in any pieces, and it says what is new; `report` at the end.

Rules of this file

1. The report is the one that `check` gives on the same bytes, as far as that can be known (conformance.judging.followed). It
   has no traces behind it: their events are not kept.
2. What is held does not grow with a trace: its table and its last events, the first problems, explanations as many as are
   asked for beside the first of each rule. It grows with the number of traces.
3. One trace that cannot be judged stops no other: it is set aside, and its events are counted as lost.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeAlias

from tidegauge.conformance.judging.check import (
    CheckOptions,
    Report,
    checked_input,
    overall_verdict,
    unknown_profile_problem,
    worst_first,
)
from tidegauge.conformance.judging.environment import LostDisk, lost_disk_notes
from tidegauge.conformance.judging.events import value_text
from tidegauge.conformance.judging.explain import Explanation, what_failed
from tidegauge.conformance.judging.followed import Followed
from tidegauge.conformance.judging.inputs import InputFindings
from tidegauge.conformance.judging.judge import Failure, TooLargeError
from tidegauge.conformance.judging.partial import log_gaps
from tidegauge.conformance.judging.verdicts import rule_verdicts, total_tallies
from tidegauge.traces.files.ndjson import LineReader
from tidegauge.traces.problems import Problem
from tidegauge.traces.schema import MISSING, Config, Trace

PROBLEMS = 1000
"""Problems that are kept; later ones are counted."""


@dataclass(frozen=True)
class Alarm:
    """A failure that is news: in the words of a report where it is the first of its rule in its trace."""

    trace: str
    rule: str
    at: str
    compared: str
    expected: str
    actual: str
    explanation: Explanation | None = None

    def __str__(self) -> str:
        if self.explanation is None:
            said = f"{self.compared} {self.expected}, actual {self.compared} {self.actual}"
            return f"{self.rule:<10}at {self.at} of {self.trace}: expected {said}"
        return "\n".join((f"{self.rule:<10}{self.explanation.means}", *what_failed(self.explanation)))


@dataclass(frozen=True)
class Withdrawn:
    """A failure that was news, and may be for want of lines that later ones show to be missing."""

    trace: str
    rule: str
    at: str

    def __str__(self) -> str:
        return f"{self.rule:<10}withdrawn at {self.at} of {self.trace}: lines are missing there"


News: TypeAlias = Alarm | Withdrawn | Problem | str
"""A `str` says why a file is read from its beginning."""


class Follow:
    """What has been read of one growing source called `name`."""

    def __init__(self, name: str, how: CheckOptions) -> None:
        self.name = name
        self.how = how
        self.traces: dict[str, Followed] = {}
        self.notes: list[str] = []
        self._reader = LineReader(name)
        self._aside: dict[str, Problem] = {}
        self._problems: list[Problem] = []
        self._more = self._more_lost = 0
        self._missing: list[str] = []
        self._lost: list[LostDisk] = []
        self._explained: dict[tuple[str, str, int], Explanation] = {}
        self._begin = time.perf_counter()

    @property
    def stopped(self) -> bool:
        """Whether nothing that follows can be read: it is binary, or of a newer schema."""
        return self._reader.stopped

    def feed(self, data: bytes) -> list[News]:
        """Read on; the beginning of a line waits for the rest of it."""
        self._reader.feed(data)
        return list(self._news())

    def next_file(self, note: str) -> list[News]:
        """What follows is read from the beginning of a file again; `note` says why."""
        self._reader.next_file()
        self.notes.append(note)
        return [note, *self._news()]

    def end(self) -> list[News]:
        """Nothing follows: a line that waits is all there is of it."""
        self._reader.end()
        return list(self._news())

    def report(self) -> Report:
        """What `check` says of what was read."""
        judgements = {name: trace.judgement() for name, trace in self.traces.items()}
        problems = [*self._problems, *self._aside.values()]
        if self._more:
            do = "they were said as they were met"
            problems.append(
                Problem(self.name, None, "what can be read", f"{self._more:,} more problems", do, self._more_lost)
            )
        found = InputFindings(problems, self.notes, missing=self._missing)
        inputs = (checked_input(self.name, "NDJSON", found, list(judgements.values())),)
        failures = [(name, failure) for name, one in judgements.items() for failure in one.failures]
        explanations = (self._explanation(name, failure) for name, failure in worst_first(failures)[: self.how.explained])
        return Report(
            inputs=inputs,
            verdict=overall_verdict(inputs),
            rules=rule_verdicts(total_tallies(judgements.values())),
            explanations=tuple(one for one in explanations if one is not None),
            failures=len(failures),
            seconds=time.perf_counter() - self._begin,
            notes=(
                *self.notes,
                *lost_disk_notes(self._lost),
                *chain.from_iterable(one.notes for one in judgements.values()),
            ),
        )

    def _news(self) -> Iterator[News]:
        for problem in self._reader.problems:
            yield problem
            self._keep(problem)
        self._reader.problems.clear()
        for trace in self._reader.taken():
            yield from self._taken(trace)

    def _keep(self, problem: Problem) -> None:
        if len(self._problems) < PROBLEMS:
            self._problems.append(problem)
        else:
            self._more, self._more_lost = self._more + 1, self._more_lost + problem.lost

    def _taken(self, trace: Trace) -> Iterator[News]:
        """New events of a trace."""
        name = trace.name
        if name not in self.traces and name not in self._aside:
            config = trace.config if self.how.profile is None else replace(trace.config, profile=self.how.profile)
            refused = self._refused(config)
            if refused is None:
                self.traces[name] = Followed(replace(trace, config=config))
                self._missing += [said for said in config.extra.get(MISSING, ()) if said not in self._missing]
            else:
                self._aside[name] = refused
                yield refused
        if name in self._aside:
            self._aside[name] = replace(self._aside[name], lost=self._aside[name].lost + len(trace.events))
            return
        self._lost += [(one.node, one.at) for one in trace.events if one.event == "LoseDisk"]
        followed = self.traces[name]
        followed.damaged = self._reader.damaged.get(name)
        try:
            failures, gone = followed.take(trace.events)
        except TooLargeError as error:
            do = "split it"
            self._aside[name] = Problem(
                self.name, None, "a trace that can be judged", f"{name}: {error}", do, followed.events
            )
            del self.traces[name]
            yield self._aside[name]
            return
        for rule, row in gone:
            self._explained.pop((name, rule, row), None)
            yield Withdrawn(name, rule, f"event {row + 1}")
        yield from (self._alarm(followed, failure) for failure in failures)
        followed.forget()

    def _refused(self, config: Config) -> Problem | None:
        """Why a trace cannot be followed."""
        if log_gaps(config):
            do = "judge the trace when it is whole, without --follow"
            return Problem(self.name, None, "a trace that goes on", "a Config with gaps in a whole one", do)
        return unknown_profile_problem(self.name, config, 0)

    def _alarm(self, trace: Followed, failure: Failure) -> Alarm:
        config = trace.window.trace.config
        expected, actual = (value_text(failure.compared, value, config) for value in (failure.expected, failure.actual))
        key = trace.name, failure.rule, failure.row
        if len(self._explained) < self.how.explained or all(rule != failure.rule for _, rule, _ in self._explained):
            explanation = trace.explained(failure)
            if explanation is not None:
                self._explained[key] = replace(explanation, path=self.name)
        return Alarm(
            trace.name, failure.rule, trace.at(failure), failure.compared, expected, actual, self._explained.get(key)
        )

    def _explanation(self, name: str, failure: Failure) -> Explanation | None:
        """The explanation of a failure as it was given, or as it can be given now."""
        given = self._explained.get((name, failure.rule, failure.row))
        now = self.traces[name].explained(failure) if given is None else None
        return given if now is None else replace(now, path=self.name)

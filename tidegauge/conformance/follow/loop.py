"""`check --follow`: one loop over a source that grows, whatever the source is.

A Source reads what is followed and judges it. It publishes news: a failure, a failure that is withdrawn, something that
happened, bad input, or a note.

    poll: read and judge what came, publish the news -> ... -> at the end, or at Ctrl-C, the report

Rules of this file

1. A signal (Ctrl-C, SIGTERM) ends the loop between two polls: what was read has been judged by then, and the report is
   complete. A second signal interrupts at once.
2. A source publishes its news itself, as soon as it knows them: on Spark a batch may be committed only after that.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from tidegauge.conformance.checking.check import Report
from tidegauge.conformance.explain.explain import Explanation, what_failed
from tidegauge.traces.problems import Problem
from tidegauge.util.interrupts import noted_interrupts
from tidegauge.util.untrusted_text import visible

POLL = 0.2
"""Seconds between two polls of a source that has nothing new."""
PROBLEMS = 1000
"""Problems that are kept; later ones are counted."""


class FailureNews:
    """News about a rule that fails."""


@dataclass(frozen=True)
class Alarm(FailureNews):
    """A new failure: its trace, its rule, where its event was read, what was compared, and both values as text.

    The first of each rule, and as many as a report explains, have an explanation, and are shown by it.
    """

    trace: str
    rule: str
    at: str
    compared: str
    expected: str
    actual: str
    explanation: Explanation | None = None

    def __str__(self) -> str:
        if self.explanation is None:
            values = f"{self.compared} {self.expected}, actual {self.compared} {self.actual}"
            return f"{self.rule:<10}at {self.at} of {self.trace}: expected {values}"
        return explained_text(self.rule, self.explanation)


@dataclass(frozen=True)
class Withdrawn(FailureNews):
    """A published failure, by its event at `at`, that is withdrawn: lines turned out to be missing, and may explain it."""

    trace: str
    rule: str
    at: str

    def __str__(self) -> str:
        return f"{self.rule:<10}withdrawn at {self.at} of {self.trace}: lines are missing there"


def explained_text(rule: str, explanation: Explanation) -> str:
    """Return the lines of a failure as the report has them: what it means, and what was expected where."""
    return "\n".join(map(visible, (f"{rule:<10}{explanation.means}", *what_failed(explanation))))


@dataclass(frozen=True)
class StoryLine:
    """A sentence about something that happened, or a loss, as log lines tell it: it is no verdict."""

    sentence: str

    def __str__(self) -> str:
        return visible(self.sentence)


News: TypeAlias = FailureNews | StoryLine | Problem | str
"""A failure, what happened, bad input, or (as a string) a note on what the source does."""
Publish: TypeAlias = Callable[[News], None]


def publisher(say: Callable[[str], None], note: Callable[[str], None]) -> Publish:
    """Return a function that passes the text of news on: failures and what happened to `say`, all others to `note`."""

    def publish(news: News) -> None:
        """Pass the text of a piece of news to the function of its kind."""
        (say if isinstance(news, FailureNews | StoryLine) else note)(str(news))

    return publish


REPORT_BEGINS = StoryLine(f"--- report on all that was read {'-' * 40}")
"""Published after the last news, before the report is printed."""


class Source(ABC):
    """What is followed, with the judge of what came from it; `follow` calls `poll` and `wait`, then `end` and `report`."""

    def __init__(self, publish: Publish) -> None:
        """Begin to follow; `publish` is called with each piece of news."""
        self._publish = publish
        self.has_news = False
        """Whether a failure, or something that happened, was published."""
        self.ended = False
        """Nothing more can come: standard input was closed, or the rest cannot be read."""
        self.interrupted = False
        """A signal ended the loop."""
        self.last_arrival = time.monotonic()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold what is needed to read, such as open files or a query, while the block runs."""
        yield

    def publish(self, news: News) -> None:
        """Pass on a piece of news."""
        self.has_news |= isinstance(news, FailureNews | StoryLine)
        self._publish(news)

    @abstractmethod
    def poll(self) -> bool:
        """Read and judge a piece of what came; return False if there is nothing to do until more comes."""

    def wait(self, seconds: float) -> None:
        """Wait for more to come, so many seconds at most."""
        time.sleep(seconds)

    @abstractmethod
    def end(self) -> None:
        """Judge what waits for more to come, such as an unfinished line, as it is."""

    @abstractmethod
    def report(self) -> Report:
        """Return the report on everything that was judged."""

    def arrived(self) -> None:
        """Note that something came: the time without arrivals begins anew."""
        self.last_arrival = time.monotonic()


def follow(source: Source, idle: float | None) -> Report:
    """Judge what comes until nothing came for `idle` seconds (None: however long), the source ends, or a signal arrives.

    Return the report on all of it.
    """
    with noted_interrupts() as signals:
        with source.reading():
            while not signals and not source.ended:
                # As long as there is more, neither idle time nor waiting: a source that lags must catch up.
                if source.poll():
                    continue
                if idle is not None and time.monotonic() - source.last_arrival >= idle:
                    break
                source.wait(POLL if idle is None else min(POLL, idle))
            # Still inside `reading`: the rest is read from the open files.
            source.end()
        source.interrupted = bool(signals)
        # The report has what was news already: without a line between them all of it looks as if it were said twice.
        if source.has_news:
            source.publish(REPORT_BEGINS)
        return source.report()

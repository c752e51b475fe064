"""One run of the drive door: paths are played, what differs is sorted by kind, shrunk, explained and told.

Rule of this file: what does not come again on a new partition is counted beside the differences: a broker that is not the
same twice is not driven, and the run fails.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tidegauge.drive.broker.contract import BrokerCase
from tidegauge.drive.broker.coverage import Count, counting, coverage_lines
from tidegauge.drive.contract import Node, Watch
from tidegauge.drive.runner.explain import Suspect, decisions, explained_by, explanations
from tidegauge.drive.runner.grouping import shrunk_kinds
from tidegauge.drive.runner.player import Difference, Played, play, reference
from tidegauge.drive.runner.shrink import shrunk
from tidegauge.drive.runner.summary import summary
from tidegauge.drive.runner.text import story
from tidegauge.impl.profiles import Profile

SAMPLE = 20
"""How many differences of a kind a known bug is asked to explain."""

LOGGED = 12
"""How many lines of its log are told."""


class Failure(NamedTuple):
    """A kind of difference: the shortest path that shows it, how many paths do, the known bugs that do the same."""

    shown: Difference
    paths: int
    same: tuple[tuple[Suspect, ...], ...]
    text: str


@dataclass(frozen=True)
class Run:
    """What a run has shown."""

    name: str
    profile: str
    played: Played
    seconds: float
    failures: tuple[Failure, ...]
    not_again: int
    coverage: tuple[str, ...] = ()
    count: Count = field(default_factory=Counter)

    @property
    def exit_code(self) -> int:
        """0 conforms, 1 differs, 3 nothing was compared."""
        return self.played.exit_code


def run(
    node: Node,
    cases: Sequence[BrokerCase],
    profile: Profile,
    coverage: Sequence[str] = (),
    recorder: Watch | None = None,
    echo: Callable[[str], None] = lambda _: None,
    log_lines: Callable[[BrokerCase], Sequence[str]] = lambda _: (),
) -> Run:
    """Play the orders on a broker and tell what differs. `log_lines`: what it has logged while an order was played last."""
    count: Count = Counter()
    capabilities = node.capabilities
    began = time.monotonic()
    played = play(node, cases, reference(profile, counting(count)), recorder)
    seconds = time.monotonic() - began
    failures, not_again = failures_of(node, played.differences, profile, echo, log_lines)
    return Run(capabilities.name, profile.name, played, seconds, tuple(failures), not_again, tuple(coverage), count)


def failures_of(
    node: Node,
    differences: Sequence[Difference],
    profile: Profile,
    echo: Callable[[str], None] = lambda _: None,
    log_lines: Callable[[BrokerCase], Sequence[str]] = lambda _: (),
) -> tuple[list[Failure], int]:
    """The kinds of differences, most frequent first, shrunk and told; and how many did not come again."""
    failures, not_again = [], 0
    reports = node.capabilities.reports
    for shown, alike in shrunk_kinds(differences, lambda found: shrunk(node, found, reference(profile)), echo):
        if shown is None:
            not_again += 1
            continue
        found = explanations(shown, profile, reports)
        same = tuple(explained_by(found, alike[:SAMPLE], profile, reports))
        text = story(shown, decisions(shown, profile), same, reports)
        text += "".join(f"\n  log       {line}" for line in log_lines(shown.case)[-LOGGED:])
        failures.append(Failure(shown, len(alike), same, text))
    return failures, not_again


def text_of(run: Run) -> str:
    """The whole run as text: failures, coverage, verdict."""
    lines = []
    for failure in run.failures:
        lines += [failure.text, f"  seen on   {failure.paths:,} paths", ""]
    if run.not_again:
        lines.append(
            f"{run.not_again} kinds of differences did not come again on a new partition: the broker is not the same twice"
        )
    lines += [*run.coverage, *coverage_lines(run.count)]
    return "\n".join([*lines, *summary(run.name, run.profile, run.played, run.seconds)])

"""A transcript against any profile or fault: what a broker did, without the broker.

Rule of this file: paths that differ are sorted by the known bugs that explain them, so that a release of Kafka names its
switches by itself.
"""

import time
from collections import Counter
from dataclasses import dataclass

from tidegauge.conformance.judging.verdicts import CONFORMS, FAILS, UNDECIDED
from tidegauge.drive.bugs.known import bug_named
from tidegauge.drive.player import Played, play, reference
from tidegauge.drive.reporting.explain import Suspect, decisions, explanations
from tidegauge.drive.reporting.text import story
from tidegauge.drive.transcript import TranscriptNode
from tidegauge.impl.releases import named

UNEXPLAINED = "no known bug"
MOST = 60
"""How many paths are explained."""


@dataclass(frozen=True)
class Rechecked:
    """How a transcript compares; `causes` counts paths by what explains them."""

    name: str
    against: str
    played: Played
    seconds: float
    causes: tuple[tuple[str, int], ...]
    first: str

    @property
    def exit_code(self) -> int:
        """0 the same, 1 different, 3 nothing was compared."""
        if self.played.differences:
            return FAILS
        return CONFORMS if self.played.steps else UNDECIDED


def recheck(node: TranscriptNode, profile: str | None = None, fault: str | None = None) -> Rechecked:
    """Hold a transcript against a generation, by default the one whose paths it has; `fault` puts a known bug in."""
    expected = named(profile or node.profile)
    start = bug_named(fault)._replace(right=expected).start() if fault else reference(expected)
    began = time.monotonic()
    played = play(node, node.orders, start)
    seconds = time.monotonic() - began
    causes: Counter[str] = Counter()
    first = ""
    for found in sorted(played.differences, key=lambda difference: difference.at)[: 0 if fault else MOST]:
        same = explanations(found, expected, node.capabilities.reports, pairs=False)
        causes[_named(same)] += 1
        if not first and found.fields != ("step",):
            first = story(found, decisions(found, expected), same, node.capabilities.reports)
    against = f"{expected.name} with {fault}" if fault else expected.name
    return Rechecked(node.capabilities.name, against, played, seconds, tuple(causes.most_common()), first)


def _named(same: list[tuple[Suspect, ...]]) -> str:
    return ", or ".join(bug.name for bugs in same for bug in bugs) or UNEXPLAINED


def text_of(found: Rechecked) -> str:
    """The comparison as text."""
    lines = [found.first, ""] if found.first else []
    lines += [f"{paths:>6,} paths as with {cause}" for cause, paths in found.causes]
    played, differ = found.played, len(found.played.differences)
    lines.append(
        f"{found.name} against {found.against}: {differ:,} of {played.orders:,} paths differ; {played.steps:,} steps in "
        f"{found.seconds:.1f} s"
    )
    return "\n".join(lines)

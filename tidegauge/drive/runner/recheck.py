"""A transcript against any profile or fault: what a node did, without the node."""

import time
from collections import Counter
from typing import Any, Generic, NamedTuple

from tidegauge.drive.contract import CaseT
from tidegauge.drive.runner.differences import PlayResult
from tidegauge.drive.runner.player import play
from tidegauge.drive.runner.report import explanations, story
from tidegauge.drive.runner.transcript import TranscriptNode
from tidegauge.impl.releases import profile_named

MOST_EXPLAINED = 60
"""How many paths are explained."""


class Recheck(NamedTuple, Generic[CaseT]):
    """A transcript against a generation. `causes`: paths by what explains them; `first`: the shortest difference as text."""

    name: str
    against: str
    played: PlayResult[CaseT]
    seconds: float
    causes: tuple[tuple[str, int], ...]
    first: str

    @property
    def exit_code(self) -> int:
        """0 the same, 1 different, 3 nothing was compared."""
        return self.played.exit_code


def recheck(node: TranscriptNode[CaseT], profile: str | None = None, fault: str | None = None) -> Recheck[CaseT]:
    """Compare a transcript with a generation, by default the one whose paths it has; `fault` puts a known bug in.

    Paths that differ are counted by the known bugs that explain them, so that a release of Kafka names its switches by
    itself.
    """
    right: Any = node.format.reference(profile_named(profile or node.profile))
    reference = right.with_fault(fault) if fault else right
    began = time.monotonic()
    played = play(node, node.cases, reference)
    seconds = time.monotonic() - began
    causes: Counter[str] = Counter()
    first = ""
    reported = node.capabilities.reports
    # With a fault the differences are those of the fault, and nothing is to be explained.
    shortest = () if fault else sorted(played.differences, key=lambda difference: difference.at)[:MOST_EXPLAINED]
    for difference in shortest:
        same = explanations(difference, right, reported, pairs=right.tries_pairs)
        causes[", or ".join(" with ".join(map(right.suspect_label, bugs)) for bugs in same) or right.unexplained] += 1
        # A path of another generation may have a step that this one cannot be given: that shows nothing about the node.
        if not first and difference.fields != ("step",):
            first = story(difference, right, same, reported)
    against = f"{right.profile.name} with {fault}" if fault else right.profile.name
    return Recheck(node.capabilities.name, against, played, seconds, tuple(causes.most_common()), first)


def text_of(result: Recheck[CaseT]) -> str:
    """Return the comparison as text."""
    lines = [result.first, ""] if result.first else []
    lines += [f"{paths:>6,} paths as with {cause}" for cause, paths in result.causes]
    played, differ = result.played, len(result.played.differences)
    lines.append(
        f"{result.name} against {result.against}: {differ:,} of {played.cases:,} paths differ; {played.steps:,} steps in "
        f"{result.seconds:.1f} s"
    )
    return "\n".join(lines)

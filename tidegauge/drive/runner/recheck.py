"""Compare a transcript with the reference of any profile, or of one with a fault: the node that was recorded is not needed.

A transcript has the paths that a node was taken through, and its reports. A profile is one generation of the protocol. The
paths stay those of the profile that the node was recorded with.
"""

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
"""For how many paths that differ the known bugs are tried, the shortest first."""


class Recheck(NamedTuple, Generic[CaseT]):
    """The result of `recheck`.

    `name` is that of the node, `against` says what it was compared with. `causes`: pairs of what explains a difference, in
    words, and the number of paths, most first. `first`: the shortest difference as text, "" if there is none to show.
    """

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
    """Compare a transcript with the reference of a profile, by default of the one whose paths it has.

    `fault` names a known bug to put into that reference. Without a fault the paths that differ are counted by the known bugs
    that explain them: a release of Kafka against the newest profile then names the switches in which it is older.
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
        explained_by = explanations(difference, right, reported, pairs=right.tries_pairs)
        labels = (" with ".join(map(right.suspect_label, bugs)) for bugs in explained_by)
        causes[", or ".join(labels) or right.unexplained] += 1
        # "step" stands for a step that this generation cannot be given, on a path of another generation. That shows nothing
        # about the node.
        if not first and difference.fields != ("step",):
            first = story(difference, right, explained_by, reported)
    against = f"{right.profile.name} with {fault}" if fault else right.profile.name
    return Recheck(node.capabilities.name, against, played, seconds, tuple(causes.most_common()), first)


def text_of(result: Recheck[CaseT]) -> str:
    """Return the result as text: the shortest difference, the causes with their numbers of paths, how many paths differ."""
    lines = [result.first, ""] if result.first else []
    lines += [f"{paths:>6,} paths as with {cause}" for cause, paths in result.causes]
    played, differing = result.played, len(result.played.differences)
    lines.append(
        f"{result.name} against {result.against}: {differing:,} of {played.cases:,} paths differ; {played.steps:,} steps in "
        f"{result.seconds:.1f} s"
    )
    return "\n".join(lines)

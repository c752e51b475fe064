"""A controller's transcript against any profile: what it did, without it.

Rule of this file: paths that differ are sorted by the switches that explain them, so that a release names its switches
by itself.
"""

import time
from collections import Counter
from typing import NamedTuple

from tidegauge.conformance.judging.verdicts import CONFORMS, FAILS, UNDECIDED
from tidegauge.drive.controller.explain import explanations
from tidegauge.drive.controller.player import Played, play
from tidegauge.drive.controller.text import story
from tidegauge.drive.controller.transcript import TranscriptNode
from tidegauge.impl.releases import named

UNEXPLAINED = "no known switch"
MOST = 60
"""How many paths are explained."""


class Rechecked(NamedTuple):
    """How a transcript compares; `causes` counts paths by what explains them, `first` tells the shortest."""

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


def recheck(node: TranscriptNode, profile: str | None = None) -> Rechecked:
    """Hold a transcript against a generation, by default the one whose paths it has."""
    expected = named(profile or node.profile)
    began = time.monotonic()
    played = play(node, node.orders, expected)
    seconds = time.monotonic() - began
    causes: Counter[str] = Counter()
    first = ""
    for found in sorted(played.differences, key=lambda difference: difference.at)[:MOST]:
        same = explanations(found, expected)
        causes[", or ".join(" with ".join(map(str, switches)) for switches in same) or UNEXPLAINED] += 1
        first = first or story(found, same)
    return Rechecked(node.name, expected.name, played, seconds, tuple(causes.most_common()), first)


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

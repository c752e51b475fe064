"""A controller's transcript against any profile: what it did, without it.

Rule of this file: paths that differ are sorted by the switches that explain them, so that a release names its switches
by itself.
"""

import time
from collections import Counter

from tidegauge.drive.controller.contract import ControllerCase
from tidegauge.drive.controller.explain import explanations
from tidegauge.drive.controller.player import play
from tidegauge.drive.controller.text import story
from tidegauge.drive.controller.transcript import TranscriptNode
from tidegauge.drive.runner.rechecked import MOST, Rechecked
from tidegauge.impl.releases import profile_named

UNEXPLAINED = "no known switch"


def recheck(node: TranscriptNode, profile: str | None = None) -> Rechecked[ControllerCase]:
    """Hold a transcript against a generation, by default the one whose paths it has."""
    expected = profile_named(profile or node.profile)
    began = time.monotonic()
    played = play(node, node.cases, expected)
    seconds = time.monotonic() - began
    causes: Counter[str] = Counter()
    first = ""
    for found in sorted(played.differences, key=lambda difference: difference.at)[:MOST]:
        same = explanations(found, expected)
        causes[", or ".join(" with ".join(map(str, switches)) for switches in same) or UNEXPLAINED] += 1
        first = first or story(found, same)
    return Rechecked(node.name, expected.name, played, seconds, tuple(causes.most_common()), first)

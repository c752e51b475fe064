"""A transcript against any profile or fault: what a broker did, without the broker.

Rule of this file: paths that differ are sorted by the known bugs that explain them, so that a release of Kafka names its
switches by itself.
"""

import time
from collections import Counter

from tidegauge.drive.broker.contract import BrokerCase
from tidegauge.drive.broker.known_bugs import bug_named
from tidegauge.drive.broker.transcript import TranscriptNode
from tidegauge.drive.runner.explain import Suspect, decisions, explanations
from tidegauge.drive.runner.player import play, reference
from tidegauge.drive.runner.rechecked import MOST, Rechecked
from tidegauge.drive.runner.text import story
from tidegauge.impl.releases import profile_named

UNEXPLAINED = "no known bug"


def recheck(node: TranscriptNode, profile: str | None = None, fault: str | None = None) -> Rechecked[BrokerCase]:
    """Hold a transcript against a generation, by default the one whose paths it has; `fault` puts a known bug in."""
    expected = profile_named(profile or node.profile)
    start = bug_named(fault)._replace(right=expected).start() if fault else reference(expected)
    began = time.monotonic()
    played = play(node, node.cases, start)
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

"""Two controllers that were driven, to be compared.

Rule of this file: each runs at the metadata.version that is its release's own, and that alone is no difference: both are
told as at the first's, until a step changes it. What a level decides would be a difference that no switch explains.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidegauge.drive.broker.findings import Finding
from tidegauge.drive.contract import Report
from tidegauge.drive.controller.contract import ControllerCase, Difference, fields_that_differ
from tidegauge.drive.controller.explain import FINDINGS, explanations
from tidegauge.drive.controller.player import Under
from tidegauge.drive.controller.text import story
from tidegauge.drive.controller.transcript import TranscriptNode, read
from tidegauge.drive.runner.causes import Between, Cause
from tidegauge.drive.runner.compare import Compared, compared
from tidegauge.drive.runner.explain import Suspect
from tidegauge.drive.runner.shipped import CONTROLLER, place_named, profile_of
from tidegauge.drive.runner.transcript import Recorded
from tidegauge.impl.profiles import Profile
from validation.releases.controllers import findings

LEVEL = "metadata.version"


def recorded_of(name: str) -> TranscriptNode:
    """A transcript: a file, or that of a release that is shipped."""
    return read(place_named(name, CONTROLLER))


def compare(first: TranscriptNode, second: TranscriptNode) -> Compared[ControllerCase]:
    """Hold what two controllers did against each other."""
    names, profiles = (first.name, second.name), (profile_of(first), profile_of(second))
    ours, theirs = _level(first), _level(second)
    if ours is None or theirs is None:
        return compared(first, second, BetweenControllers(names, profiles, None))
    return compared(first, _at(ours, second, theirs), BetweenControllers(names, profiles, theirs))


def _level(node: TranscriptNode) -> int | None:
    """The one that it was opened with; none if there are several."""
    levels = {case.opening.metadata_version for case in node.cases}
    return levels.pop() if len(levels) == 1 else None


def _at(level: int, node: TranscriptNode, own: int) -> TranscriptNode:
    moved = TranscriptNode(node.name, node.profile)
    for case, reports in node.recorded():
        opening = case.opening._replace(metadata_version=level)
        moved.add(Recorded(case._replace(opening=opening), tuple(_moved(seen, own, level) for seen in reports)))
    return moved


def _moved(seen: Report, own: int, level: int) -> Report:
    features = seen["features"]
    return {**seen, "features": {**features, LEVEL: level}} if features[LEVEL] == own else seen


@dataclass(frozen=True)
class BetweenControllers(Between[ControllerCase]):
    """`level`: the second's own."""

    level: int | None

    def differing(self, one: Report, other: Report) -> tuple[str, ...]:
        """Both report every field."""
        return fields_that_differ(one, other)

    def findings(self) -> Sequence[Finding]:
        """Those of controllers."""
        return [*findings().values()]

    def reported(self, profile: Profile, case: ControllerCase) -> Iterator[Report]:
        """Step by step."""
        under = Under(case.opening, profile)
        yield under.report()
        yield from map(under.given, case.path)

    def explanations(self, found: Difference, profile: Profile) -> Sequence[Cause]:
        """Switches, alone or in pairs."""
        return [
            tuple(Suspect(FINDINGS[one.switch], one.turned, {one.switch: one.value}, {}) for one in switches)
            for switches in explanations(found, profile)
        ]

    def story(self, found: Difference, causes: Sequence[Cause]) -> str:
        """With the level that the second was at."""
        text, level = story(found, causes, names=self.names), self.level
        if level in (None, found.case.opening.metadata_version):
            return text
        return f"{text}\n  {self.names[1]} did so at {LEVEL} {level}, its own"

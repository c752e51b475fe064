"""Two brokers that were driven, to be compared.

Rule of this file: in a field either broker may say more than the other; what one does not know is not compared.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidegauge.drive.broker.contract import BrokerCase
from tidegauge.drive.broker.findings import Finding, findings
from tidegauge.drive.broker.state import report
from tidegauge.drive.broker.transcript import TranscriptNode, read
from tidegauge.drive.contract import Report
from tidegauge.drive.runner.causes import Between, Cause
from tidegauge.drive.runner.compare import Compared, compared
from tidegauge.drive.runner.explain import decisions, explanations
from tidegauge.drive.runner.player import Difference, differences, given, reference
from tidegauge.drive.runner.shipped import BROKER, place_named, profile_of
from tidegauge.drive.runner.text import story
from tidegauge.impl.profiles import Profile


def recorded_of(name: str) -> TranscriptNode:
    """A transcript: a file, or that of a release that is shipped."""
    return read(place_named(name, BROKER))


def compare(first: TranscriptNode, second: TranscriptNode) -> Compared[BrokerCase]:
    """Hold what two brokers did against each other."""
    names = first.capabilities.name, second.capabilities.name
    reports = first.capabilities.reports & second.capabilities.reports
    return compared(first, second, BetweenBrokers(names, (profile_of(first), profile_of(second)), reports))


@dataclass(frozen=True)
class BetweenBrokers(Between[BrokerCase]):
    """`reports`: which fields both report."""

    reports: frozenset[str]

    def differing(self, one: Report, other: Report) -> tuple[str, ...]:
        """Whichever of the two says more."""
        also = differences(other, one, self.reports)
        return tuple(field for field in differences(one, other, self.reports) if field in also)

    def findings(self) -> Sequence[Finding]:
        """Those of brokers."""
        return findings()

    def reported(self, profile: Profile, case: BrokerCase) -> Iterator[Report]:
        """A step that the profile has no place for gets an error."""
        held = reference(profile)(case.opening)
        yield report(held)
        for taken in case.path:
            held, said = given(held, taken)
            yield said

    def explanations(self, found: Difference, profile: Profile) -> Sequence[Cause]:
        """One bug alone: pairs are many."""
        return explanations(found, profile, self.reports, pairs=False)

    def story(self, found: Difference, causes: Sequence[Cause]) -> str:
        """With what the second's reference decides."""
        return story(found, decisions(found, self.profiles[1]), causes, self.reports, self.names)

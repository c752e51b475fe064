"""Two brokers that were driven, to be compared.

Rule of this file: in a field either broker may say more than the other; what one does not know is not compared.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidegauge.drive.contract import Order, Report
from tidegauge.drive.held import report
from tidegauge.drive.player import Difference, differences, given, reference
from tidegauge.drive.reporting.explain import decisions, explanations
from tidegauge.drive.reporting.text import story
from tidegauge.drive.runs.causes import Between, Cause
from tidegauge.drive.runs.compare import Compared, compared
from tidegauge.drive.runs.findings import Finding, findings
from tidegauge.drive.runs.shipped import BROKER, place_named, profile_of
from tidegauge.drive.transcript import TranscriptNode, read
from tidegauge.impl.profiles import Profile


def recorded_of(name: str) -> TranscriptNode:
    """A transcript: a file, or that of a release that is shipped."""
    return read(place_named(name, BROKER))


def compare(first: TranscriptNode, second: TranscriptNode) -> Compared[Order]:
    """Hold what two brokers did against each other."""
    names = first.capabilities.name, second.capabilities.name
    reports = first.capabilities.reports & second.capabilities.reports
    return compared(first, second, BetweenBrokers(names, (profile_of(first), profile_of(second)), reports))


@dataclass(frozen=True)
class BetweenBrokers(Between[Order]):
    """`reports`: which fields both report."""

    reports: frozenset[str]

    def differing(self, one: Report, other: Report) -> tuple[str, ...]:
        """Whichever of the two says more."""
        also = differences(other, one, self.reports)
        return tuple(field for field in differences(one, other, self.reports) if field in also)

    def findings(self) -> Sequence[Finding]:
        """Those of brokers."""
        return findings()

    def reported(self, profile: Profile, order: Order) -> Iterator[Report]:
        """A step that the profile has no place for gets an error."""
        held = reference(profile)(order.opening)
        yield report(held)
        for taken in order.path:
            held, said = given(held, taken)
            yield said

    def explanations(self, found: Difference, profile: Profile) -> Sequence[Cause]:
        """One bug alone: pairs are many."""
        return explanations(found, profile, self.reports, pairs=False)

    def story(self, found: Difference, causes: Sequence[Cause]) -> str:
        """With what the second's reference decides."""
        return story(found, decisions(found, self.profiles[1]), causes, self.reports, self.names)

"""Why two brokers do not do the same: the known bugs that one of them has.

Rules of this file

1. Where their profiles differ, a bug explains a difference when the reference that is like one of them, but for the other's
   switches of that bug, does what the other did, and nothing else before. One bug is looked for first, then two together.
2. Otherwise any known bug that makes the one's profile do what the other did; looked for on the shortest difference of a
   kind, for there are many.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from tidegauge.drive.contract import Report
from tidegauge.drive.held import report
from tidegauge.drive.player import Difference, differences, given, reference
from tidegauge.drive.reporting.explain import Suspect, explanations
from tidegauge.drive.reporting.kinds import kinds_of
from tidegauge.drive.runs.findings import Finding, findings
from tidegauge.impl.profiles import Profile

Cause = tuple[Suspect, ...]
"""Bugs that explain a difference together."""


def differing(one: Report, other: Report, reports: frozenset[str]) -> tuple[str, ...]:
    """The reported fields in which two brokers differ, whichever of them says more."""
    also = differences(other, one, reports)
    return tuple(field for field in differences(one, other, reports) if field in also)


class Between(NamedTuple):
    """Two brokers: their names, what they do by their profiles, and which fields both report. A difference between them
    expects what the first did, and sees what the second did."""

    names: tuple[str, str]
    profiles: tuple[Profile, Profile]
    reports: frozenset[str]

    def causes_of(self, found: Sequence[Difference]) -> list[tuple[Cause, ...]]:
        """What explains each difference; nothing for one that no known bug does."""
        apart = [one for one in findings() if one.is_in(self.profiles[0]) != one.is_in(self.profiles[1])]
        causes = [self._turned(difference, apart) for difference in found]
        left = [difference for difference, cause in zip(found, causes, strict=True) if not cause]
        others = {}
        for kind, alike in kinds_of(left).items():
            others[kind] = self._known(min(alike, key=lambda difference: difference.at))
        kinds = {id(one): others[kind] for kind, alike in kinds_of(left).items() for one in alike}
        return [cause or kinds[id(one)] for one, cause in zip(found, causes, strict=True)]

    def _turned(self, found: Difference, apart: Sequence[Finding]) -> tuple[Cause, ...]:
        for size in (1, 2):
            explain = [some for some in combinations(apart, size) if self._explains(some, found)]
            if explain:
                return tuple(tuple(map(self._suspect, some)) for some in explain)
        return ()

    def _explains(self, some: Sequence[Finding], found: Difference) -> bool:
        switches = {name for finding in some for name in finding.has}
        for mine, other, did in ((*self.profiles, found.seen), (*self.profiles[::-1], found.expected)):
            changed = mine.switched({name: getattr(other, name) for name in switches})
            if self._as_changed(found, mine, changed, did):
                return True
        return False

    def _as_changed(self, found: Difference, mine: Profile, changed: Profile, did: Report) -> bool:
        """Whether two profiles do the same before the step that differs, and the second does there what a broker did."""
        one, other = reference(mine)(found.order.opening), reference(changed)(found.order.opening)
        said, says = report(one), report(other)
        for taken in found.order.path:
            if differing(said, says, self.reports):
                return False
            (one, said), (other, says) = given(one, taken), given(other, taken)
        return not differing(says, did, self.reports)

    def _suspect(self, finding: Finding) -> Suspect:
        has = self.names[0 if finding.is_in(self.profiles[0]) else 1]
        return Suspect(finding.name, f"{has} has it. {finding.says}".rstrip(), dict(finding.has), {})

    def _known(self, found: Difference) -> tuple[Cause, ...]:
        turned = found._replace(expected=found.seen, seen=found.expected)
        # who does as the profile says has no bug to be named
        for name, profile, one in zip(self.names, self.profiles[::-1], (turned, found), strict=True):
            same = explanations(one, profile, self.reports, pairs=False)
            if same and not self._as_changed(one, profile, profile, one.seen):
                return tuple(tuple(bug._replace(says=f"{name} does. {bug.says}") for bug in bugs) for bugs in same)
        return ()

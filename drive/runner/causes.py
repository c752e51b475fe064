"""Why two brokers, or two controllers, do not do the same: the known bugs that one of them has.

Rules of this file

1. Where their profiles differ, a bug explains a difference when the reference that is like one of them, but for the other's
   switches of that bug, does what the other did, and nothing else before. One bug is looked for first, then two together.
2. Otherwise any known bug that makes the one's profile do what the other did; looked for on the shortest difference of a
   kind, for there are many.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Generic

from tidegauge.drive.broker.findings import Finding
from tidegauge.drive.contract import CaseT, Report
from tidegauge.drive.runner.differences import Difference
from tidegauge.drive.runner.explain import Suspect
from tidegauge.drive.runner.grouping import kinds_of
from tidegauge.impl.profiles import Profile

Cause = tuple[Suspect, ...]
"""Bugs that explain a difference together."""


@dataclass(frozen=True)
class Between(ABC, Generic[CaseT]):
    """Two that were driven: their names, and what they do by their profiles. A difference between them expects what the
    first did, and sees what the second did."""

    names: tuple[str, str]
    profiles: tuple[Profile, Profile]

    @abstractmethod
    def differing(self, one: Report, other: Report) -> tuple[str, ...]:
        """The reported fields in which the two differ."""

    @abstractmethod
    def findings(self) -> Sequence[Finding]:
        """What a release may do and another does not."""

    @abstractmethod
    def reported(self, profile: Profile, case: CaseT) -> Iterator[Report]:
        """What the reference of a profile reports on a path: after its opening, then after each step."""

    @abstractmethod
    def explanations(self, found: Difference[CaseT], profile: Profile) -> Sequence[Cause]:
        """The known bugs that make the reference of a profile do what was seen."""

    @abstractmethod
    def story(self, found: Difference[CaseT], causes: Sequence[Cause]) -> str:
        """A difference as text."""

    def causes_of(self, found: Sequence[Difference[CaseT]]) -> list[tuple[Cause, ...]]:
        """What explains each difference; nothing for one that no known bug does. An order ends at its difference."""
        apart = [one for one in self.findings() if one.is_in(self.profiles[0]) != one.is_in(self.profiles[1])]
        causes = [self._turned(difference, apart) for difference in found]
        left = [difference for difference, cause in zip(found, causes, strict=True) if not cause]
        others = {}
        for kind, alike in kinds_of(left).items():
            others[kind] = self._known(min(alike, key=lambda difference: difference.at))
        kinds = {id(one): others[kind] for kind, alike in kinds_of(left).items() for one in alike}
        return [cause or kinds[id(one)] for one, cause in zip(found, causes, strict=True)]

    def _turned(self, found: Difference[CaseT], apart: Sequence[Finding]) -> tuple[Cause, ...]:
        for size in (1, 2):
            explain = [some for some in combinations(apart, size) if self._explains(some, found)]
            if explain:
                return tuple(tuple(map(self._suspect, some)) for some in explain)
        return ()

    def _explains(self, some: Sequence[Finding], found: Difference[CaseT]) -> bool:
        switches = {name for finding in some for name in finding.has}
        for mine, other, did in ((*self.profiles, found.seen), (*self.profiles[::-1], found.expected)):
            changed = mine.switched({name: getattr(other, name) for name in switches})
            if self._as_changed(found, mine, changed, did):
                return True
        return False

    def _as_changed(self, found: Difference[CaseT], mine: Profile, changed: Profile, did: Report) -> bool:
        """Whether two profiles do the same before the step that differs, and the second does there what was done."""
        both = zip(self.reported(mine, found.case), self.reported(changed, found.case), strict=True)
        for at, (said, says) in enumerate(both):
            if at == found.at:
                return not self.differing(says, did)
            if self.differing(said, says):
                return False
        return False

    def _suspect(self, finding: Finding) -> Suspect:
        has = self.names[0 if finding.is_in(self.profiles[0]) else 1]
        return Suspect(finding.name, f"{has} has it. {finding.says}".rstrip(), dict(finding.has), {})

    def _known(self, found: Difference[CaseT]) -> tuple[Cause, ...]:
        turned = found._replace(expected=found.seen, seen=found.expected)
        # who does as the profile says has no bug to be named
        for name, profile, one in zip(self.names, self.profiles[::-1], (turned, found), strict=True):
            same = self.explanations(one, profile)
            if same and not self._as_changed(one, profile, profile, one.seen):
                return tuple(tuple(bug._replace(says=f"{name} does. {bug.says}") for bug in bugs) for bugs in same)
        return ()

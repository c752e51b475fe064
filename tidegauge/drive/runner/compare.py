"""Compare two transcripts: what changed from one node to the other, without either node."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Generic, NamedTuple

from tidegauge.drive.contract import CaseT, Path, Report
from tidegauge.drive.runner.differences import Difference, by_kind
from tidegauge.drive.runner.reference_interface import Finding, Reference, Suspect
from tidegauge.drive.runner.report import SuspectedBugs, explanations, story
from tidegauge.drive.runner.transcript import TranscriptNode
from tidegauge.impl.profiles import Profile
from tidegauge.impl.releases import profile_named
from tidegauge.util.errors import CONFORMS, FAILS, UNDECIDED

UNEXPLAINED = "no known bug"

Prefix = tuple[Any, Path]
"""An opening and the first steps of a path."""


class Change(NamedTuple, Generic[CaseT]):
    """First differences that have the same causes.

    `paths`: how many paths of the first node have one; `after`: the same by step and fields; `shown`: the shortest. It
    expects what the first node did and sees what the second did.
    """

    causes: tuple[SuspectedBugs, ...]
    paths: int
    after: tuple[tuple[str, int], ...]
    shown: Difference[CaseT]


class Comparison(NamedTuple, Generic[CaseT]):
    """The changes from the first node to the second: those that no known bug explains, then those that most paths show.

    `steps` counts distinct ones: paths that begin alike share them.
    """

    pair: "NodePair[CaseT]"
    steps: int
    changes: tuple[Change[CaseT], ...]

    @property
    def exit_code(self) -> int:
        """0 the same, 1 different, 3 nothing was compared."""
        if self.changes:
            return FAILS
        return CONFORMS if self.steps else UNDECIDED


def compare(first: TranscriptNode[CaseT], second: TranscriptNode[CaseT]) -> Comparison[CaseT]:
    """Compare what two nodes did, as far as they were taken through the same steps, also where their paths then part."""
    comparable, note = first.format.comparable(first, second)
    pair = NodePair(
        (first.capabilities.name, second.capabilities.name),
        (first.format.reference(profile_named(first.profile)), first.format.reference(profile_named(second.profile))),
        first.capabilities.reports & second.capabilities.reports,
        note,
    )
    theirs = {prefix: seen for case in comparable.cases for prefix, seen in _reports(comparable, case)}
    steps: set[Prefix] = set()
    differences: dict[Prefix, Difference[CaseT]] = {}
    paths: Counter[Prefix] = Counter()
    for case in first.cases:
        for prefix, ours in _reports(first, case):
            if prefix not in theirs:
                break
            steps.add(prefix)
            fields = pair.differing(ours, theirs[prefix])
            if fields:
                # What comes after the first difference of a path follows from it.
                path = prefix[1]
                differences[prefix] = Difference(case._replace(path=path), len(path), fields, ours, theirs[prefix])
                paths[prefix] += 1
                break
    step_count = sum(bool(path) for _, path in steps)
    return Comparison(pair, step_count, tuple(_changes(differences, paths, pair)))


def _reports(node: TranscriptNode[CaseT], case: CaseT) -> Iterator[tuple[Prefix, Report]]:
    return (((case.opening, case.path[:at]), seen) for at, seen in enumerate(node.reports(case)))


def _changes(
    differences: Mapping[Prefix, Difference[CaseT]], paths: Mapping[Prefix, int], pair: "NodePair[CaseT]"
) -> list[Change[CaseT]]:
    """Group first differences by the bugs that explain them.

    Both mappings are by the prefix up to the difference; `paths`: how many paths begin so.
    """
    alike: defaultdict[tuple[tuple[str, ...], ...], list[Prefix]] = defaultdict(list)
    causes: dict[tuple[tuple[str, ...], ...], tuple[SuspectedBugs, ...]] = {}
    for prefix, explained in zip(differences, pair.causes_of([*differences.values()]), strict=True):
        names = tuple(tuple(suspect.name for suspect in bugs) for bugs in explained)
        causes[names] = explained
        alike[names].append(prefix)
    changes = []
    for names, prefixes in alike.items():
        after: Counter[str] = Counter()
        for prefix in prefixes:
            difference = differences[prefix]
            after[f"{difference.after}: {', '.join(difference.fields)}"] += paths[prefix]
        shown = min((differences[prefix] for prefix in prefixes), key=lambda difference: difference.at)
        changes.append(Change(causes[names], after.total(), tuple(after.most_common()), shown))
    return sorted(changes, key=lambda change: (bool(change.causes), -change.paths))


@dataclass(frozen=True)
class NodePair(Generic[CaseT]):
    """Two nodes that were driven: their names, the references of their profiles, the fields that both report.

    A difference between them expects what the first did, and sees what the second did.
    """

    names: tuple[str, str]
    references: tuple[Reference[CaseT, Any], Reference[CaseT, Any]]
    reported: frozenset[str]
    note: Callable[[Difference[CaseT]], str]
    """Returns what is written after the text of a difference."""

    @property
    def _profiles(self) -> tuple[Profile, Profile]:
        """Return the profiles of the first and of the second node."""
        return self.references[0].profile, self.references[1].profile

    def differing(self, first: Report, second: Report) -> tuple[str, ...]:
        """Return the fields in which two reports differ, whichever of the two nodes reports more."""
        # A reference says all there is, of two nodes either may report more than the other: what only one of them knows
        # is not compared.
        differences = self.references[0].differences
        also = differences(second, first, self.reported)
        return tuple(field for field in differences(first, second, self.reported) if field in also)

    def causes_of(self, all_differences: Sequence[Difference[CaseT]]) -> list[tuple[SuspectedBugs, ...]]:
        """Return what explains each difference, () where nothing known does; a case ends at its difference."""
        # A finding can explain a difference only if one of the two profiles has it and the other has not.
        findings_between = [
            finding for finding in self.references[0].findings() if len(set(map(finding.is_in, self._profiles))) == 2
        ]
        causes = [self._switched_findings(difference, findings_between) for difference in all_differences]
        # No finding tells the two profiles apart there. All known bugs are many, so they are tried on the shortest of a
        # kind alone.
        unexplained = by_kind([difference for difference, cause in zip(all_differences, causes, strict=True) if not cause])
        cause_by_kind = {
            kind: self._known_bugs(min(alike, key=lambda difference: difference.at)) for kind, alike in unexplained.items()
        }
        return [
            cause or cause_by_kind[difference.after, difference.fields]
            for difference, cause in zip(all_differences, causes, strict=True)
        ]

    def _switched_findings(self, difference: Difference[CaseT], has: Sequence[Finding]) -> tuple[SuspectedBugs, ...]:
        """Return the findings that one of the profiles has that explain a difference: alone, else two together."""
        for size in (1, 2):
            explain = [some for some in combinations(has, size) if self._explains(some, difference)]
            if explain:
                return tuple(tuple(map(self._suspect, some)) for some in explain)
        return ()

    def _explains(self, findings: Sequence[Finding], difference: Difference[CaseT]) -> bool:
        """Return whether one node's reference, with the other profile's values for the switches of some findings, does what
        the other node did, and nothing else before.
        """
        switches = {name for finding in findings for name in finding.has}
        first, second = self.references
        for mine, other, observed in ((first, second, difference.seen), (second, first, difference.expected)):
            changed = mine.with_bugs([Suspect("", "", {name: getattr(other.profile, name) for name in switches})])
            if self._does_as_changed(difference, mine, changed, observed):
                return True
        return False

    def _does_as_changed(
        self, difference: Difference[CaseT], mine: Reference[CaseT, Any], changed: Reference[CaseT, Any], observed: Report
    ) -> bool:
        """Return whether two references agree before the step that differs, and `changed` does there what was `observed`."""
        for at, (own_report, changed_report) in enumerate(
            zip(mine.reports(difference.case), changed.reports(difference.case), strict=True)
        ):
            if at == difference.at:
                return not self.differing(changed_report, observed)
            if self.differing(own_report, changed_report):
                return False
        return False

    def _suspect(self, finding: Finding) -> Suspect:
        has = self.names[0 if finding.is_in(self._profiles[0]) else 1]
        return Suspect(finding.name, f"{has} has it. {finding.says}".rstrip(), dict(finding.has))

    def _known_bugs(self, difference: Difference[CaseT]) -> tuple[SuspectedBugs, ...]:
        """Return the known bugs that make one node's reference do what the other node did."""
        # Which of the two is wrong is not known: the second may have a bug, or the first.
        reverse = difference._replace(expected=difference.seen, seen=difference.expected)
        for name, reference, directed in zip(self.names, self.references[::-1], (reverse, difference), strict=True):
            same = explanations(directed, reference, self.reported, pairs=reference.tries_pairs)
            # A node that does what its own profile does has no bug.
            if same and not self._does_as_changed(directed, reference, reference, directed.seen):
                return tuple(tuple(bug._replace(says=f"{name} does. {bug.says}") for bug in bugs) for bugs in same)
        return ()

    def story(self, change: Change[CaseT]) -> str:
        """Return the shortest difference of a change as text, with what the second's reference decides."""
        text = story(change.shown, self.references[1], change.causes, self.reported, self.names)
        return text + self.note(change.shown)


def text_of(comparison: Comparison[Any]) -> str:
    """Return what has changed, each with its shortest path and both reports side by side; then how much was compared."""
    lines, pair = [], comparison.pair
    for change in comparison.changes:
        names = ", or ".join(" with ".join(suspect.name for suspect in bugs) for bugs in change.causes) or UNEXPLAINED
        lines += [f"{names}: {_counted(change.paths)}", *(f"{paths:>6,}  first in {place}" for place, paths in change.after)]
        lines += [pair.story(change), ""]
    differ = sum(change.paths for change in comparison.changes)
    lines.append(
        f"{pair.names[0]} and {pair.names[1]}: {comparison.steps:,} steps that both were given, "
        f"{f'{_counted(differ)} with a difference' if differ else 'no difference'}"
    )
    return "\n".join(lines)


def _counted(paths: int) -> str:
    return f"{paths:,} path{'s' if paths != 1 else ''}"

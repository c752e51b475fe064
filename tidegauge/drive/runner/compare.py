"""Compare two transcripts: what changed from one node to the other, without either node.

A transcript has the paths that a node was taken through, and its reports. Both nodes are compared where they were given the
same steps after the same opening, up to the first report that differs. First differences with the same causes are one
change; causes are known bugs and switches that would make one node do what the other did. A finding is what some release may
do and another does not, as values of switches.
"""

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
    """Compare what two nodes reported after the steps that both were given, also where their paths part later."""
    # The second transcript, as it can be compared with the first, and what is noted after a difference.
    comparable, note = first.format.comparable(first, second)
    pair = NodePair(
        (first.capabilities.name, second.capabilities.name),
        (first.format.reference(profile_named(first.profile)), first.format.reference(profile_named(second.profile))),
        first.capabilities.reports & second.capabilities.reports,
        note,
    )
    second_reports = {prefix: report for case in comparable.cases for prefix, report in _reports(comparable, case)}
    compared: set[Prefix] = set()
    differences: dict[Prefix, Difference[CaseT]] = {}
    paths: Counter[Prefix] = Counter()
    for case in first.cases:
        for prefix, report in _reports(first, case):
            if prefix not in second_reports:
                break
            compared.add(prefix)
            other_report = second_reports[prefix]
            fields = pair.differing(report, other_report)
            if fields:
                # What comes after the first difference of a path follows from it.
                path = prefix[1]
                differences[prefix] = Difference(case._replace(path=path), len(path), fields, report, other_report)
                paths[prefix] += 1
                break
    # The report after an opening is compared, but an opening is no step.
    step_count = sum(bool(path) for _, path in compared)
    return Comparison(pair, step_count, tuple(_changes(differences, paths, pair)))


def _reports(node: TranscriptNode[CaseT], case: CaseT) -> Iterator[tuple[Prefix, Report]]:
    """Yield what a node reported on a case, each report with the steps before it: none for the first, of the opening."""
    return (((case.opening, case.path[:at]), report) for at, report in enumerate(node.reports(case)))


def _changes(
    differences: Mapping[Prefix, Difference[CaseT]], paths: Mapping[Prefix, int], pair: "NodePair[CaseT]"
) -> list[Change[CaseT]]:
    """Group first differences by the bugs that explain them; unexplained ones first, then by how many paths show them.

    Both mappings are by the prefix up to the difference; `paths`: how many paths begin so.
    """
    # By the names of the bugs: a Suspect has mappings and is no key.
    alike: defaultdict[tuple[tuple[str, ...], ...], list[Prefix]] = defaultdict(list)
    causes_by_names: dict[tuple[tuple[str, ...], ...], tuple[SuspectedBugs, ...]] = {}
    for prefix, causes in zip(differences, pair.causes_of([*differences.values()]), strict=True):
        names = tuple(tuple(suspect.name for suspect in bugs) for bugs in causes)
        causes_by_names[names] = causes
        alike[names].append(prefix)
    changes = []
    for names, prefixes in alike.items():
        after: Counter[str] = Counter()
        for prefix in prefixes:
            difference = differences[prefix]
            after[f"{difference.after}: {', '.join(difference.fields)}"] += paths[prefix]
        shown = min((differences[prefix] for prefix in prefixes), key=lambda difference: difference.at)
        changes.append(Change(causes_by_names[names], after.total(), tuple(after.most_common()), shown))
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
        """Return the fields, of those that both nodes report, in which two reports differ."""
        # Inside a field `Reference.differences` demands all that its first report has, and ignores what only the second
        # has. Of two nodes either may report more than the other, so only what differs both ways round counts.
        differences = self.references[0].differences
        reverse = differences(second, first, self.reported)
        return tuple(field for field in differences(first, second, self.reported) if field in reverse)

    def causes_of(self, all_differences: Sequence[Difference[CaseT]]) -> list[tuple[SuspectedBugs, ...]]:
        """Return the causes of each difference, in the same order, () where nothing known explains it.

        Each element of the causes explains the difference by itself: one bug, or two together. The case of each difference
        ends with the step that differs.
        """
        # A finding can explain a difference only if one of the two profiles has it and the other has not.
        findings_between = [
            finding for finding in self.references[0].findings() if len(set(map(finding.is_in, self._profiles))) == 2
        ]
        causes = [self._switched_findings(difference, findings_between) for difference in all_differences]
        # Where no finding explains it, any known bug may. They are many, so they are tried only on the shortest difference
        # of each kind.
        unexplained = by_kind([difference for difference, cause in zip(all_differences, causes, strict=True) if not cause])
        causes_by_kind = {
            kind: self._known_bugs(min(alike, key=lambda difference: difference.at)) for kind, alike in unexplained.items()
        }
        return [
            cause or causes_by_kind[difference.after, difference.fields]
            for difference, cause in zip(all_differences, causes, strict=True)
        ]

    def _switched_findings(self, difference: Difference[CaseT], findings: Sequence[Finding]) -> tuple[SuspectedBugs, ...]:
        """Return those of the findings that explain a difference: every one that does alone, else every pair that does.

        `findings`: those that exactly one of the two profiles has.
        """
        for size in (1, 2):
            explaining = [subset for subset in combinations(findings, size) if self._explains(subset, difference)]
            if explaining:
                return tuple(tuple(map(self._suspect, subset)) for subset in explaining)
        return ()

    def _explains(self, findings: Sequence[Finding], difference: Difference[CaseT]) -> bool:
        """Return whether the switches of some findings explain a difference.

        They do if one node's reference, with the other profile's values of these switches, does what the other node did at
        the step that differs, and what it does without them before.
        """
        switches = {name for finding in findings for name in finding.has}
        first, second = self.references
        # The first node's reference with the second's switches has to do what the second did (`seen`), or the reverse.
        for reference, other, observed in ((first, second, difference.seen), (second, first, difference.expected)):
            switched = reference.with_bugs([Suspect("", "", {name: getattr(other.profile, name) for name in switches})])
            if self._first_differs_there(difference, reference, switched, observed):
                return True
        return False

    def _first_differs_there(
        self,
        difference: Difference[CaseT],
        reference: Reference[CaseT, Any],
        switched: Reference[CaseT, Any],
        observed: Report,
    ) -> bool:
        """Return whether two references agree before the step that differs, and `switched` reports `observed` after it."""
        for at, (report, switched_report) in enumerate(
            zip(reference.reports(difference.case), switched.reports(difference.case), strict=True)
        ):
            if at == difference.at:
                return not self.differing(switched_report, observed)
            if self.differing(report, switched_report):
                return False
        return False

    def _suspect(self, finding: Finding) -> Suspect:
        """Return a finding as a suspect whose sentence names the node that has it."""
        owner = self.names[0 if finding.is_in(self._profiles[0]) else 1]
        return Suspect(finding.name, f"{owner} has it. {finding.says}".rstrip(), dict(finding.has))

    def _known_bugs(self, difference: Difference[CaseT]) -> tuple[SuspectedBugs, ...]:
        """Return the known bugs that make one node's reference do what the other node did, () if there are none."""
        # Which of the two is wrong is not known. First: the first node has a bug that the second's reference has not; then
        # the other way round. `directed` expects what the right node did, and sees what the one with the bug did.
        reverse = difference._replace(expected=difference.seen, seen=difference.expected)
        for name, reference, directed in zip(self.names, self.references[::-1], (reverse, difference), strict=True):
            causes = explanations(directed, reference, self.reported, pairs=reference.tries_pairs)
            # A node that does what the right reference does has no bug: the reference is compared with itself before the
            # step that differs, and with what was seen after it.
            if causes and not self._first_differs_there(directed, reference, reference, directed.seen):
                return tuple(tuple(bug._replace(says=f"{name} does. {bug.says}") for bug in bugs) for bugs in causes)
        return ()

    def story(self, change: Change[CaseT]) -> str:
        """Return the shortest difference of a change as text, with the rules that the second node's reference applied."""
        text = story(change.shown, self.references[1], change.causes, self.reported, self.names)
        return text + self.note(change.shown)


def causes_text(change: Change[Any]) -> str:
    """Return the names of the known bugs and switches that explain a change, or that none does."""
    return ", or ".join(" with ".join(suspect.name for suspect in bugs) for bugs in change.causes) or UNEXPLAINED


def text_of(comparison: Comparison[Any]) -> str:
    """Return a comparison as text: each change with its shortest path and both reports; then how much was compared."""
    lines, pair = [], comparison.pair
    for change in comparison.changes:
        lines += [f"{causes_text(change)}: {_paths_text(change.paths)}"]
        lines += [f"{paths:>6,}  first in {place}" for place, paths in change.after]
        lines += [pair.story(change), ""]
    differing = sum(change.paths for change in comparison.changes)
    lines.append(
        f"{pair.names[0]} and {pair.names[1]}: {comparison.steps:,} steps that both were given, "
        f"{f'{_paths_text(differing)} with a difference' if differing else 'no difference'}"
    )
    return "\n".join(lines)


def _paths_text(count: int) -> str:
    """Return a number of paths in words: 1 path, 2 paths."""
    return f"{count:,} path{'s' if count != 1 else ''}"

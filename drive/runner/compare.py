"""What changed between two brokers, or two controllers: what was recorded of one against what was recorded of the other,
without either.

Rule of this file: a step is compared where both were taken through the same steps up to it, also where their paths then
part. On a path its first difference counts: what comes after it follows from it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Generic, NamedTuple

from tidegauge.conformance.judging.verdicts import CONFORMS, FAILS, UNDECIDED
from tidegauge.drive.contract import CaseT, Path, Report
from tidegauge.drive.runner.causes import Between, Cause
from tidegauge.drive.runner.differences import Difference
from tidegauge.drive.runner.transcript import RecordedNode

UNEXPLAINED = "no known bug"

Prefix = tuple[Any, Path]
"""An opening and the steps that were given so far."""


class Change(NamedTuple, Generic[CaseT]):
    """First differences that have the same causes. `paths`: how many paths of the first have one; `after`: the same
    by the step and the fields; `shown` is the shortest, it expects what the first did and sees what the second did."""

    causes: tuple[Cause, ...]
    paths: int
    after: tuple[tuple[str, int], ...]
    shown: Difference[CaseT]


class Compared(NamedTuple, Generic[CaseT]):
    """What has changed from the first to the second: what no known bug explains, then what most paths show.
    `steps` are distinct ones: paths that begin alike share them."""

    between: Between[CaseT]
    steps: int
    changes: tuple[Change[CaseT], ...]

    @property
    def exit_code(self) -> int:
        """0 the same, 1 different, 3 nothing was compared."""
        if self.changes:
            return FAILS
        return CONFORMS if self.steps else UNDECIDED


def compared(first: RecordedNode[CaseT], second: RecordedNode[CaseT], between: Between[CaseT]) -> Compared[CaseT]:
    """Hold what two did against each other, as far as they were taken through the same steps."""
    theirs = {prefix: seen for case in second.cases for prefix, seen in _reports(second, case)}
    steps: set[Prefix] = set()
    found: dict[Prefix, Difference[CaseT]] = {}
    paths: Counter[Prefix] = Counter()
    for case in first.cases:
        for prefix, ours in _reports(first, case):
            if prefix not in theirs:
                break
            steps.add(prefix)
            fields = between.differing(ours, theirs[prefix])
            if fields:
                path = prefix[1]
                found[prefix] = Difference(case._replace(path=path), len(path), fields, ours, theirs[prefix])
                paths[prefix] += 1
                break
    taken = sum(bool(path) for _, path in steps)
    return Compared(between, taken, tuple(_changes(found, paths, between)))


def _reports(node: RecordedNode[CaseT], case: CaseT) -> Iterator[tuple[Prefix, Report]]:
    return (((case.opening, case.path[:at]), seen) for at, seen in enumerate(node.reports(case)))


def _changes(
    found: Mapping[Prefix, Difference[CaseT]], paths: Mapping[Prefix, int], between: Between[CaseT]
) -> list[Change[CaseT]]:
    alike: defaultdict[tuple[tuple[str, ...], ...], list[Prefix]] = defaultdict(list)
    causes: dict[tuple[tuple[str, ...], ...], tuple[Cause, ...]] = {}
    explained = between.causes_of(list(found.values()))
    for prefix, why in zip(found, explained, strict=True):
        names = tuple(tuple(suspect.name for suspect in cause) for cause in why)
        causes[names] = why
        alike[names].append(prefix)
    changes = []
    for names, prefixes in alike.items():
        after: Counter[str] = Counter()
        for prefix in prefixes:
            after[_place(found[prefix])] += paths[prefix]
        shown = min((found[prefix] for prefix in prefixes), key=lambda difference: difference.at)
        changes.append(Change(causes[names], after.total(), tuple(after.most_common()), shown))
    return sorted(changes, key=lambda change: (bool(change.causes), -change.paths))


def _place(found: Difference[CaseT]) -> str:
    return f"{found.after}: {', '.join(found.fields)}"


def text_of(found: Compared[Any]) -> str:
    """What has changed, each with its shortest path and both reports side by side; then how much was compared."""
    lines, between = [], found.between
    for change in found.changes:
        names = ", or ".join(" with ".join(one.name for one in cause) for cause in change.causes) or UNEXPLAINED
        lines += [f"{names}: {_counted(change.paths)}", *(f"{many:>6,}  first in {place}" for place, many in change.after)]
        lines += [between.story(change.shown, change.causes), ""]
    differ = sum(change.paths for change in found.changes)
    lines.append(
        f"{between.names[0]} and {between.names[1]}: {found.steps:,} steps that both were given, "
        f"{f'{_counted(differ)} with a difference' if differ else 'no difference'}"
    )
    return "\n".join(lines)


def _counted(paths: int) -> str:
    return f"{paths:,} path{'s' if paths != 1 else ''}"

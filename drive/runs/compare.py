"""What changed between two brokers: what was recorded of one against what was recorded of the other, without either.

Rules of this file

1. A step is compared where both were taken through the same steps up to it, also where their paths then part. On a path
   its first difference counts: what comes after it follows from it.
2. In a field either broker may say more than the other; what one does not know is not compared.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path as File
from typing import NamedTuple

from tidegauge.conformance.judging.verdicts import CONFORMS, FAILS, UNDECIDED
from tidegauge.drive.contract import Opening, Order, Path, Report
from tidegauge.drive.player import Difference
from tidegauge.drive.reporting.explain import decisions
from tidegauge.drive.reporting.text import story
from tidegauge.drive.runs.causes import Between, Cause, differing
from tidegauge.drive.runs.shipped import place_of, profile_of, releases
from tidegauge.drive.transcript import TranscriptNode, read
from tidegauge.impl.errors import UsageError

UNEXPLAINED = "no known bug"

Prefix = tuple[Opening, Path]
"""A partition and the steps that it was given so far."""


class Change(NamedTuple):
    """First differences that have the same causes. `paths`: how many paths of the first broker have one; `after`: the same
    by the step and the fields; `shown` is the shortest, it expects what the first did and sees what the second did."""

    causes: tuple[Cause, ...]
    paths: int
    after: tuple[tuple[str, int], ...]
    shown: Difference


class Compared(NamedTuple):
    """What has changed from the first broker to the second: what no known bug explains, then what most paths show.
    `steps` are distinct ones: paths that begin alike share them."""

    between: Between
    steps: int
    changes: tuple[Change, ...]

    @property
    def exit_code(self) -> int:
        """0 the same, 1 different, 3 nothing was compared."""
        if self.changes:
            return FAILS
        return CONFORMS if self.steps else UNDECIDED


def recorded_of(name: str) -> TranscriptNode:
    """A transcript: a file, or that of a release that is shipped. Raises UsageError with the releases there are."""
    if not File(name).is_file() and name not in releases():
        raise UsageError(
            f"compare: expected a transcript, or a release of {', '.join(releases())}; seen {name!r}; choose one of those"
        )
    return read(File(name) if File(name).is_file() else place_of(name))


def compare(first: TranscriptNode, second: TranscriptNode) -> Compared:
    """Hold what two brokers did against each other, as far as they were taken through the same steps."""
    between = Between(
        (first.capabilities.name, second.capabilities.name),
        (profile_of(first), profile_of(second)),
        first.capabilities.reports & second.capabilities.reports,
    )
    theirs = {prefix: seen for order in second.orders for prefix, seen in _reports(second, order)}
    steps: set[Prefix] = set()
    found: dict[Prefix, Difference] = {}
    paths: Counter[Prefix] = Counter()
    for order in first.orders:
        for prefix, ours in _reports(first, order):
            if prefix not in theirs:
                break
            steps.add(prefix)
            fields = differing(ours, theirs[prefix], between.reports)
            if fields:
                found[prefix] = Difference(Order(*prefix), len(prefix[1]), fields, ours, theirs[prefix])
                paths[prefix] += 1
                break
    taken = sum(bool(path) for _, path in steps)
    return Compared(between, taken, tuple(_changes(found, paths, between)))


def _reports(node: TranscriptNode, order: Order) -> Iterator[tuple[Prefix, Report]]:
    return (((order.opening, order.path[:at]), seen) for at, seen in enumerate(node.reports(order)))


def _changes(found: Mapping[Prefix, Difference], paths: Mapping[Prefix, int], between: Between) -> list[Change]:
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


def _place(found: Difference) -> str:
    return f"{found.after}: {', '.join(found.fields)}"


def text_of(compared: Compared) -> str:
    """What has changed, each with its shortest path and both reports side by side; then how much was compared."""
    lines, between = [], compared.between
    for change in compared.changes:
        names = ", or ".join(" with ".join(one.name for one in cause) for cause in change.causes) or UNEXPLAINED
        lines += [f"{names}: {_counted(change.paths)}", *(f"{many:>6,}  first in {place}" for place, many in change.after)]
        why = decisions(change.shown, between.profiles[1])
        lines += [story(change.shown, why, change.causes, between.reports, between.names), ""]
    differ = sum(change.paths for change in compared.changes)
    lines.append(
        f"{between.names[0]} and {between.names[1]}: {compared.steps:,} steps that both were given, "
        f"{f'{_counted(differ)} with a difference' if differ else 'no difference'}"
    )
    return "\n".join(lines)


def _counted(paths: int) -> str:
    return f"{paths:,} path{'s' if paths != 1 else ''}"

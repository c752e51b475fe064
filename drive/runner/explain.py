"""Which known bugs make the reference do what a node did."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from tidegauge.drive.contract import CaseT
from tidegauge.drive.runner.differences import Difference
from tidegauge.drive.runner.reference import Reference, Suspect

Explanation = tuple[Suspect, ...]
"""Bugs that explain a difference together: one, or two."""


def explanations(
    found: Difference[CaseT], reference: Reference[CaseT, Any], reported: frozenset[str], *, pairs: bool = True
) -> list[Explanation]:
    """Return the known bugs that do the same: those that do alone, else pairs unless `pairs` is off."""
    known = list(reference.suspects())
    each: list[Explanation] = [(suspect,) for suspect in known]
    alone = [bugs for bugs in each if does_the_same(found, reference, bugs, reported)]
    if alone or not pairs:
        return alone
    return [two for two in combinations(known, 2) if _fit(*two) and does_the_same(found, reference, two, reported)]


def explain_most(
    explained: Sequence[Explanation],
    alike: Sequence[Difference[CaseT]],
    reference: Reference[CaseT, Any],
    reported: frozenset[str],
) -> list[Explanation]:
    """Of the explanations of one difference return those that explain most of its kind."""
    if len(explained) < 2:
        return [*explained]
    counts = [sum(does_the_same(one, reference, bugs, reported) for one in alike) for bugs in explained]
    return [bugs for bugs, count in zip(explained, counts, strict=True) if count == max(counts)]


def _fit(one: Suspect, other: Suspect) -> bool:
    if one.wrong_step is not None and other.wrong_step is not None:
        return False
    return not (one.switches.keys() & other.switches.keys() or one.rules.keys() & other.rules.keys())


def does_the_same(
    found: Difference[CaseT], reference: Reference[CaseT, Any], bugs: Sequence[Suspect], reported: frozenset[str]
) -> bool:
    """Return whether the reference with bugs reports what the node reported at the step that differs, and what the right
    one reports at every step before.
    """
    wrong, case = reference.with_bugs(bugs), found.case
    right_state, state = reference.opened(case.opening), wrong.opened(case.opening)
    seen = wrong.report(state)
    for at, step in enumerate(case.path[: found.at], start=1):
        state, seen = wrong.take_or_refuse(state, step)
        if at < found.at:
            # The node did what the right reference does up to here: a bug that shows earlier is another one.
            right_state, expected = reference.take(right_state, step)
            if reference.differences(expected, seen, reported):
                return False
    return not reference.differences(seen, found.seen, reported)

"""Differences in words: a difference as text, and the known bugs that explain it."""

import operator
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from tidegauge.conformance.judge.rulebook import known_bugs
from tidegauge.drive.contract import CaseT
from tidegauge.drive.runner.differences import Difference
from tidegauge.drive.runner.reference_interface import Reference, Suspect
from tidegauge.impl.errors import ERROR_NAMES
from tidegauge.util.untrusted_text import visible

SuspectedBugs = tuple[Suspect, ...]
"""Bugs that explain a difference together: one, or two."""


def explanations(
    difference: Difference[CaseT], reference: Reference[CaseT, Any], reported: frozenset[str], *, pairs: bool = True
) -> list[SuspectedBugs]:
    """Return the known bugs that do the same: those that do alone, else pairs unless `pairs` is off."""
    suspects = list(reference.suspects())
    each: list[SuspectedBugs] = [(suspect,) for suspect in suspects]
    alone = [bugs for bugs in each if does_the_same(difference, reference, bugs, reported)]
    if alone or not pairs:
        return alone
    return [
        pair for pair in combinations(suspects, 2) if _fit(*pair) and does_the_same(difference, reference, pair, reported)
    ]


class Explained(NamedTuple):
    """Explanations of a difference, each alone; and on how many paths of a sample of its kind they explain that one, too."""

    by: tuple[SuspectedBugs, ...]
    paths: int
    sample: int

    @property
    def is_whole(self) -> bool:
        """Whether they explain all of the sample. A bug that does not is one with the same effect on a short path."""
        return self.paths == self.sample


def explain_most(
    explained: Sequence[SuspectedBugs],
    alike: Sequence[Difference[CaseT]],
    reference: Reference[CaseT, Any],
    reported: frozenset[str],
) -> Explained:
    """Return those explanations of one difference that explain most of its kind."""
    counts = [sum(does_the_same(difference, reference, bugs, reported) for difference in alike) for bugs in explained]
    most = max(counts, default=0)
    return Explained(tuple(bugs for bugs, count in zip(explained, counts, strict=True) if count == most), most, len(alike))


def _fit(first: Suspect, second: Suspect) -> bool:
    """Return whether a node can have both bugs: they change different things."""
    if first.wrong_step is not None and second.wrong_step is not None:
        return False
    return not (first.switches.keys() & second.switches.keys() or first.rules.keys() & second.rules.keys())


def does_the_same(
    difference: Difference[CaseT], reference: Reference[CaseT, Any], bugs: Sequence[Suspect], reported: frozenset[str]
) -> bool:
    """Return whether the reference with bugs differs as the node does."""
    return differs_so(difference, reference, reference.with_bugs(bugs), reported)


def accepting(difference: Difference[CaseT], reference: Reference[CaseT, Any], reported: frozenset[str]) -> tuple[str, ...]:
    """Return the generations by whose rules the node is right up to the step that differs, and at it; the nearest first."""
    profiles = [
        other.profile for other in reference.other_generations() if differs_so(difference, reference, other, reported)
    ]
    profiles.sort(key=lambda profile: sum(map(operator.ne, profile, reference.profile)))
    return tuple(profile.name for profile in profiles)


def differs_so(
    difference: Difference[CaseT], reference: Reference[CaseT, Any], wrong: Reference[CaseT, Any], reported: frozenset[str]
) -> bool:
    """Return whether another reference reports what the node reported at the step that differs, and what the right one
    reports at every step before.
    """
    case = difference.case
    right_state, state = reference.opened(case.opening), wrong.opened(case.opening)
    seen = wrong.report(state)
    for at, step in enumerate(case.path[: difference.at], start=1):
        state, seen = wrong.take_or_refuse(state, step)
        if at < difference.at:
            # The node did what the right reference does up to here: a bug that shows earlier is another one.
            right_state, expected = reference.take(right_state, step)
            if reference.differences(expected, seen, reported):
                return False
    return not reference.differences(seen, difference.seen, reported)


BUGS_NAMED = 4
"""How many known bugs are named; there may be many that look alike on a short path."""

NAMES = ("expected", "seen")


def story(
    difference: Difference[CaseT],
    reference: Reference[CaseT, Any],
    same: Explained | Sequence[SuspectedBugs],
    reported: frozenset[str],
    names: tuple[str, str] = NAMES,
    log: Sequence[str] = (),
    accepted: Sequence[str] = (),
) -> str:
    """Return one difference as text: the path, both reports, the rules, the known bugs.

    `same`: the known bugs that do the same, and on how many paths of its kind; `names`: the headings of the two reports;
    `log`: lines that the node has logged about it; `accepted`: the generations that do it, too.
    """
    lines = [f"DIFFERS after {difference.at} steps, in {', '.join(difference.fields)}"]
    lines.append(f"  {reference.opening_text(difference.case.opening)}")
    lines += [
        f"  {at:>2}  {reference.step_text(step)}" for at, step in enumerate(difference.case.path[: difference.at], start=1)
    ]
    lines += reference.side_by_side(difference, reported, names)
    sentence = None if difference.step is None else reference.step_sentence(difference.step)
    if sentence is not None:
        lines.append(f"  {sentence}")
    rules = (f"  rule      {line}" for line in dict.fromkeys(reference.decision_texts(difference)))
    lines += [line for rule in rules for line in rule.split("\n")]
    explained = same if isinstance(same, Explained) else Explained(tuple(same), 1, 1)
    head = "same as   " if explained.is_whole or not explained.by else "similar   "
    lines += [f"  {head}{line}" for line in _same_as(explained.by, reference)]
    if explained.by and not explained.is_whole:
        lines.append(f"            on {explained.paths} of {explained.sample} such paths: another bug, or not the only one")
    lines += [f"  accepted  by --profile {' or '.join(accepted[:BUGS_NAMED])}"] if accepted else []
    lines += [f"  log       {line}" for line in log]
    return "\n".join(map(visible, lines))


def _same_as(same: Sequence[SuspectedBugs], reference: Reference[Any, Any]) -> Iterator[str]:
    """Yield a line for each of the first few explanations."""
    if not same:
        yield f"{reference.unexplained}, alone or with another"
    for bugs in same[:BUGS_NAMED]:
        yield " with ".join(map(str, bugs)) + _sentence(bugs)
    if len(same) > BUGS_NAMED:
        yield f"and {len(same) - BUGS_NAMED} more"


def _sentence(bugs: Sequence[Suspect]) -> str:
    """Return what the first bug of the catalog does that one of these resembles."""
    # A fault's sentence ends with the bug that it resembles, in brackets (`known_bugs` of drive/broker).
    resembled = [bug.says for bug in known_bugs().values() if any(f"({bug.name})" in suspect.says for suspect in bugs)]
    return "".join(f". {sentence}" for sentence in resembled[:1])


def value_text(value: Any) -> str:
    """Return a value as short as JSON allows."""
    match value:
        case None:
            return "none"
        case True | False:
            return "yes" if value else "no"
        case dict():
            return " ".join(f"{key}={_inner_text(key, inner)}" for key, inner in value.items()) or "none"
        case tuple() | list() if value and isinstance(value[0], tuple | list):
            return "[" + " ".join(value_text(inner) for inner in value) + "]"
        case tuple() | list():
            return ",".join(map(value_text, value)) or "none"
        case _:
            return str(value)


def _inner_text(key: str, value: Any) -> str:
    # Who has looked up a wrong code sees which one it is.
    name = ERROR_NAMES.get(value) if key == "error" and value and isinstance(value, int) else None
    return f"{value}({name})" if name else value_text(value)

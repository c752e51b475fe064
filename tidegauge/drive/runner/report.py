"""Differences in words: a difference as text, and the known bugs that explain it.

A bug explains a difference if the reference with the bug put in (`Reference.with_bugs`) reports at that step what the node
reported, and before it what the right reference reports. `reported` is everywhere the set of fields that the node reports:
no others are compared. A suspect is a known bug that is tried.
"""

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
    """Return the known bugs that explain a difference: each one that does alone; if none does, each pair that does.

    With `pairs` off no pairs are tried. Returns [] if nothing explains it.
    """
    suspects = list(reference.suspects())
    single: list[SuspectedBugs] = [(suspect,) for suspect in suspects]
    alone = [bugs for bugs in single if does_the_same(difference, reference, bugs, reported)]
    if alone or not pairs:
        return alone
    return [
        pair
        for pair in combinations(suspects, 2)
        if _can_be_combined(*pair) and does_the_same(difference, reference, pair, reported)
    ]


class Explained(NamedTuple):
    """What explains a kind of difference, and how well.

    Each of `causes` alone explains the difference that is shown, and `paths` of a sample of `sample` differences alike.
    """

    causes: tuple[SuspectedBugs, ...]
    paths: int
    sample: int

    @property
    def is_whole(self) -> bool:
        """Whether they explain the whole sample. A bug that explains a part has the same effect on a short path."""
        return self.paths == self.sample


def explain_most(
    explained: Sequence[SuspectedBugs],
    alike: Sequence[Difference[CaseT]],
    reference: Reference[CaseT, Any],
    reported: frozenset[str],
) -> Explained:
    """Return those of the explanations of one difference that explain the largest number of the differences alike.

    `explained`: what `explanations` has returned for the one; `alike`: a sample of its kind.
    """
    counts = [sum(does_the_same(difference, reference, bugs, reported) for difference in alike) for bugs in explained]
    most = max(counts, default=0)
    causes = tuple(bugs for bugs, count in zip(explained, counts, strict=True) if count == most)
    return Explained(causes, most, len(alike))


def _can_be_combined(first: Suspect, second: Suspect) -> bool:
    """Return whether a node can have both bugs: they change no switch and no rule both, and one step at most is wrong."""
    if first.wrong_step is not None and second.wrong_step is not None:
        return False
    return not (first.switches.keys() & second.switches.keys() or first.rules.keys() & second.rules.keys())


def does_the_same(
    difference: Difference[CaseT], reference: Reference[CaseT, Any], bugs: Sequence[Suspect], reported: frozenset[str]
) -> bool:
    """Return whether these bugs, all put into the reference, explain a difference (see the top of the file)."""
    return differs_so(difference, reference, reference.with_bugs(bugs), reported)


def accepting(difference: Difference[CaseT], reference: Reference[CaseT, Any], reported: frozenset[str]) -> tuple[str, ...]:
    """Return the names of other generations that explain a difference: by their rules the node is right.

    Those with the fewest other switches come first.
    """
    profiles = [
        other.profile for other in reference.other_generations() if differs_so(difference, reference, other, reported)
    ]
    # A profile is a tuple of its switches, so this counts those that are not equal.
    profiles.sort(key=lambda profile: sum(map(operator.ne, profile, reference.profile)))
    return tuple(profile.name for profile in profiles)


def differs_so(
    difference: Difference[CaseT], reference: Reference[CaseT, Any], wrong: Reference[CaseT, Any], reported: frozenset[str]
) -> bool:
    """Return whether `wrong` reports what the node reported at the step that differs, and what the right reference reports
    at every step before.

    `wrong` is the reference with a bug put in, or that of another generation.
    """
    case = difference.case
    right_state, wrong_state = reference.opened(case.opening), wrong.opened(case.opening)
    # If the opening itself differs, at 0, no step is taken below.
    wrong_report = wrong.report(wrong_state)
    for at, step in enumerate(case.path[: difference.at], start=1):
        wrong_state, wrong_report = wrong.take_or_refuse(wrong_state, step)
        if at < difference.at:
            # The node did what the right reference does up to here: a bug that shows earlier is another one.
            right_state, expected = reference.take(right_state, step)
            if reference.differences(expected, wrong_report, reported):
                return False
    return not reference.differences(wrong_report, difference.seen, reported)


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

    `same`: the known bugs that explain it, a sequence where no other paths of its kind were tried; `names`: the headings of
    the expected and the seen report; `log`: lines that the node has logged about it; `accepted`: the names of other
    generations by whose rules the node is right.
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
    # Each rule once, though it may have been applied several times; its text may have several lines.
    rules = (f"  rule      {line}" for line in dict.fromkeys(reference.decision_texts(difference)))
    lines += [line for rule in rules for line in rule.split("\n")]
    explained = same if isinstance(same, Explained) else Explained(tuple(same), paths=1, sample=1)
    # A bug that explains only some of the sample is not the one, or not alone.
    head = "same as   " if explained.is_whole or not explained.causes else "similar   "
    lines += [f"  {head}{line}" for line in _cause_lines(explained.causes, reference)]
    if explained.causes and not explained.is_whole:
        lines.append(f"            on {explained.paths} of {explained.sample} such paths: another bug, or not the only one")
    lines += [f"  accepted  by --profile {' or '.join(accepted[:BUGS_NAMED])}"] if accepted else []
    lines += [f"  log       {line}" for line in log]
    return "\n".join(map(visible, lines))


def _cause_lines(causes: Sequence[SuspectedBugs], reference: Reference[Any, Any]) -> Iterator[str]:
    """Yield a line for each of the first few causes, then one that counts the rest; without a cause one that says so."""
    if not causes:
        yield f"{reference.unexplained}, alone or with another"
    for bugs in causes[:BUGS_NAMED]:
        yield " with ".join(map(str, bugs)) + _resembled_sentence(bugs)
    if len(causes) > BUGS_NAMED:
        yield f"and {len(causes) - BUGS_NAMED} more"


def _resembled_sentence(bugs: Sequence[Suspect]) -> str:
    """Return ". " and the sentence of the first bug of the catalog that one of these resembles, "" if none resembles one."""
    # The sentence of a suspect names the bug that it resembles in brackets (drive/broker/known_bugs.py).
    resembled = [bug.says for bug in known_bugs().values() if any(f"({bug.name})" in suspect.says for suspect in bugs)]
    return "".join(f". {sentence}" for sentence in resembled[:1])


def value_text(value: Any) -> str:
    """Return a value of a report on one line for a reader: null and nothing are "none", lists have commas or brackets."""
    match value:
        case None:
            return "none"
        case True | False:
            return "yes" if value else "no"
        case dict():
            return " ".join(f"{key}={_inner_text(key, inner)}" for key, inner in value.items()) or "none"
        # A list of lists: each inner one has commas, so blanks stand between them.
        case tuple() | list() if value and isinstance(value[0], tuple | list):
            return "[" + " ".join(value_text(inner) for inner in value) + "]"
        case tuple() | list():
            return ",".join(map(value_text, value)) or "none"
        case _:
            return str(value)


def _inner_text(key: str, value: Any) -> str:
    """Return a value inside an object as text; an error code other than 0 has its name in brackets: 6(NAME)."""
    name = ERROR_NAMES.get(value) if key == "error" and value and isinstance(value, int) else None
    return f"{value}({name})" if name else value_text(value)

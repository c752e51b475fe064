"""Differences in words: a difference as text, the known bugs that explain it, annotations for CI."""

import json
import os
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

from tidegauge.conformance.judge.rulebook import known_bugs
from tidegauge.drive.contract import CaseT
from tidegauge.drive.runner.differences import Difference
from tidegauge.drive.runner.reference import Reference, Suspect

# A difference as text: every step, what was expected and what was seen side by side, the rules, the known bugs.


# Which known bugs make the reference do what a node did.


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


FEW = 4
"""How many known bugs are told; there may be many that look alike on a short path."""

NAMES = ("expected", "seen")


def story(
    found: Difference[CaseT],
    reference: Reference[CaseT, Any],
    same: Sequence[Explanation],
    reported: frozenset[str],
    names: tuple[str, str] = NAMES,
    log: Sequence[str] = (),
) -> str:
    """Return the whole story of one difference. `same`: the known bugs that do the same; `names` stand above the two sides;
    `log`: what the node has logged about it.
    """
    lines = [f"DIFFERS after {found.at} steps, in {', '.join(found.fields)}"]
    lines.append(f"  {reference.opening_text(found.case.opening)}")
    lines += [f"  {at:>2}  {reference.step_text(step)}" for at, step in enumerate(found.case.path[: found.at], start=1)]
    lines += reference.side_by_side(found, reported, names)
    sentence = None if found.step is None else reference.step_sentence(found.step)
    if sentence is not None:
        lines.append(f"  {sentence}")
    lines += [f"  rule      {line}" for line in dict.fromkeys(reference.decision_texts(found))]
    lines += [f"  same as   {line}" for line in _same_as(same, reference)]
    lines += [f"  log       {line}" for line in log]
    return "\n".join(lines)


def _same_as(same: Sequence[Explanation], reference: Reference[Any, Any]) -> Iterator[str]:
    if not same:
        yield f"{reference.unexplained}, alone or with another"
    for bugs in same[:FEW]:
        yield " with ".join(map(str, bugs)) + _sentence(bugs)
    if len(same) > FEW:
        yield f"and {len(same) - FEW} more"


def _sentence(bugs: Sequence[Suspect]) -> str:
    """Return what the first bug of the catalog does that one of these resembles."""
    known = [bug.says for bug in known_bugs().values() if any(f"({bug.name})" in one.says for one in bugs)]
    return "".join(f". {sentence}" for sentence in known[:1])


def value_text(value: Any) -> str:
    """Return a value as short as JSON allows."""
    match value:
        case None:
            return "none"
        case True | False:
            return "yes" if value else "no"
        case dict():
            return " ".join(f"{key}={value_text(inner)}" for key, inner in value.items()) or "none"
        case tuple() | list() if value and isinstance(value[0], tuple | list):
            return "[" + " ".join(value_text(inner) for inner in value) + "]"
        case tuple() | list():
            return ",".join(map(value_text, value)) or "none"
        case _:
            return str(value)


# A run where many look at it: annotations on GitHub, and a badge.


BADGE_COLORS = {0: ("conforms", "brightgreen"), 1: ("differs", "red")}
"""By exit code: what a badge says, and its color."""


def on_github() -> bool:
    """Whether a workflow of GitHub runs this: it sets the variable in every step."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def annotations(name: str, stories: Sequence[str]) -> list[str]:
    """A workflow command per story: the run's page shows it as an error. What would end the command is escaped."""
    return [f"::error title={_property(f'{name} {story.splitlines()[0]}')}::{_data(story)}" for story in stories]


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def badge(exit_code: int, profile: str, steps: int) -> str:
    """The JSON of an endpoint badge of shields.io, schema version 1."""
    says, color = BADGE_COLORS.get(exit_code, ("undecided", "lightgrey"))
    message = f"{says} ({profile}, {steps:,} steps)"
    return json.dumps({"schemaVersion": 1, "label": "tidegauge", "message": message, "color": color}, indent=1) + "\n"

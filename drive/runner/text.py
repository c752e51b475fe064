"""A difference as text: every step, what was expected and what was seen side by side, the rules, the known bugs."""

from collections.abc import Iterator, Sequence
from typing import Any

from tidegauge.conformance.judging.rulebook import known_bugs
from tidegauge.drive.contract import CaseT
from tidegauge.drive.runner.differences import Difference
from tidegauge.drive.runner.explain import Explanation
from tidegauge.drive.runner.reference import Reference, Suspect

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

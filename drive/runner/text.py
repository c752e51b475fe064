"""A difference as a scenario: every step, what was expected and what was seen side by side, the rules, the known bugs."""

from collections.abc import Iterator, Sequence
from typing import Any

from tidegauge.conformance.judging.rulebook import actions, known_bugs
from tidegauge.drive.broker.contract import BY_PEER, STEPS, action_of
from tidegauge.drive.contract import Step
from tidegauge.drive.runner.explain import Decision, Suspect
from tidegauge.drive.runner.player import Difference

WIDEST = 100
FEW = 4
"""How many known bugs are told; there may be many that look alike on a short path."""


def step_text(step: Step) -> str:
    """A step on one line; what is none, or nothing, is left out."""
    name, *arguments = step
    named = zip(STEPS[name].takes, arguments, strict=True)
    return " ".join((name, *(f"{field}={value_text(value)}" for field, value in named if value not in (None, ()))))


def value_text(value: Any) -> str:
    """A value as short as JSON allows."""
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


def story(
    found: Difference,
    why: Sequence[Decision],
    does_the_same: Sequence[tuple[Suspect, ...]],
    reported: frozenset[str],
    names: tuple[str, str] = ("expected", "seen"),
) -> str:
    """The whole story of one difference; `names` is what stands above the two sides."""
    taken = found.step
    lines = [f"DIFFERS after {found.at} steps, in {', '.join(found.fields)}"]
    members = ",".join(map(str, (1, *found.case.opening.peers)))
    lines.append(f"  replicas {members}, broker 1 under test; min.insync.replicas {found.case.opening.min_insync_replicas}")
    lines += [f"  {at:>2}  {step_text(one)}" for at, one in enumerate(found.case.path[: found.at], start=1)]
    lines += _side_by_side(found, reported, names)
    if taken is not None:
        action = actions().get(action_of(taken))
        if action is not None:
            lines.append(f"  {action.name}: {action.sentence} {action.kafka}")
    lines += [f"  rule      {line}" for line in dict.fromkeys(map(_decision_text, why))]
    lines += [f"  same as   {line}" for line in _suspects_text(does_the_same)]
    return "\n".join(lines)


def _side_by_side(found: Difference, reported: frozenset[str], names: tuple[str, str]) -> Iterator[str]:
    texts = {field: field_text(field, value) for field, value in found.expected.items() if field in reported}
    width = min(WIDEST, max(map(len, (names[0], *texts.values()))))
    yield f"      {'':<10}{names[0]:<{width}}  {names[1]}"
    for field, text in texts.items():
        mark = "!" if field in found.fields else " "
        yield f"    {mark} {field:<10}{text:<{width}}  {field_text(field, found.seen.get(field))}"


def field_text(field: str, value: Any) -> str:
    """A field of a report on one line."""
    if field in BY_PEER and isinstance(value, dict):
        return "; ".join(f"to {peer}: {value_text(one)}" for peer, one in value.items()) or "none"
    return value_text(value)


def _decision_text(decision: Decision) -> str:
    given = ", ".join(value_text(argument) for argument in decision.arguments)
    tail = " ".join(filter(None, (", ".join(decision.ids), decision.kafka)))
    return f"{decision.rule}({given}) = {value_text(decision.result)}   {tail}".rstrip()


def _suspects_text(found: Sequence[tuple[Suspect, ...]]) -> Iterator[str]:
    if not found:
        yield "no known bug, alone or with another"
    for bugs in found[:FEW]:
        yield " with ".join(map(str, bugs)) + _sentences(bugs)
    if len(found) > FEW:
        yield f"and {len(found) - FEW} more"


def _sentences(bugs: Sequence[Suspect]) -> str:
    known = [bug.says for bug in known_bugs().values() if any(f"({bug.name})" in one.says for one in bugs)]
    return "".join(f". {sentence}" for sentence in known[:1])

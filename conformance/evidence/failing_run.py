"""The run in which a model fails, step by step: what `tidegauge model` shows when that is not the failure that is pinned."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from tidegauge.impl.explored.describe import label_text, view_text
from tidegauge.spec.checker.behaviour import failing_behaviour, view_of
from tidegauge.spec.checker.models import Comparison
from tidegauge.spec.checker.transcript import TlcStep
from tidegauge.spec.errors import SpecError


def failing_run(comparison: Comparison) -> Iterator[str]:
    """The first state, then each step with the lines of the state that it changed; nothing if TLC shows no run.

    TLC names actions without their arguments: where the states have views, they are walked again for them.
    """
    found = comparison.result
    if not found.counterexample:
        return
    try:
        run = failing_behaviour(comparison.model, found)
    except SpecError:
        texts = [_text(step) for step in found.counterexample]
        yield from _steps(texts, [step.action or "goes on as before" for step in found.counterexample[1:]])
    else:
        yield from _steps([view_text(state) for state in run.states], [label_text(label) for label in run.labels])
    yield f"{found.property or found.outcome.value} fails in the last state"


def _steps(states: Sequence[str], labels: Sequence[str]) -> Iterator[str]:
    yield from (f"      {line}" for line in states[0].splitlines())
    for number, (label, (before, after)) in enumerate(zip(labels, pairwise(states), strict=True), 1):
        yield f"{number:>4}  {label}"
        known = set(before.splitlines())
        yield from (f"      {line}" for line in after.splitlines() if line not in known)


def _text(step: TlcStep) -> str:
    """A state as a view, or variable by variable where it has none."""
    try:
        return view_text(view_of(step.state))
    except (KeyError, TypeError, ValueError, AttributeError):
        return _variables(step.state)


def _variables(state: Mapping[str, Any]) -> str:
    return "\n".join(f"{name} = {value}" for name, value in state.items())

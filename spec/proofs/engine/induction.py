"""An invariant as conjuncts that hold for all values of their variables, and that every step keeps."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import z3

from tidegauge.spec.proofs.engine.paths import Path

Function = Callable[..., Any]


@dataclass(frozen=True)
class Conjunct:
    """One statement for all values of its variables, and the terms that bring it up."""

    name: str
    variables: str
    holds: Function
    triggers: Function


def assume_all(path: Path, state: Any, conjuncts: Iterable[Conjunct]) -> None:
    """Every conjunct, with its triggers."""
    for conjunct in conjuncts:
        variables = z3.Ints(conjunct.variables)
        for trigger in conjunct.triggers(state, *variables):
            path.forall(variables, conjunct.holds(state, *variables), *trigger)


def prove_all(path: Path, state: Any, conjuncts: Iterable[Conjunct]) -> None:
    """Every conjunct, for arbitrary values of its variables."""
    for conjunct in conjuncts:
        values = [path.integer(f"{conjunct.name}:{v}", show=False) for v in conjunct.variables.split()]
        path.goal(conjunct.name, conjunct.holds(state, *values))

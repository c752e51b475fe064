"""Systems of the proofs on plain values, the code of an invariant's conjuncts run on them, and runs that need a premise.

Every premise is needed: a `PremiseRun` is a short run on plain values that loses committed data without it.
"""

import types
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, Generic, TypeVar

from tidegauge.spec.proofs.engine.induction import Conjunct, Function

PlainStep = tuple[Any, ...]
"""A step of a plain system: the name of its method, and the arguments."""

P = TypeVar("P", bound="PlainSystem")


class PlainSystem(ABC):
    """A system on plain values with a method for each step; one that its guard forbids returns False and does nothing."""

    def __init__(self, without: str = "") -> None:
        self.without = without
        """The premise that its steps do not keep, "" for none."""

    @abstractmethod
    def lost(self) -> list[str]:
        """Return a sentence for each piece of committed data that is lost."""

    def effects(self) -> tuple[object, ...]:
        """Return what a step may make otherwise without a premise, although it is possible with it."""
        return ()


def perform(system: PlainSystem, step: PlainStep) -> bool:
    """Take a step; return whether it was possible."""
    name, *arguments = step
    return bool(getattr(system, name)(*arguments))


@dataclass(frozen=True)
class PremiseRun(ABC, Generic[P]):
    """A premise, and the steps that lose committed data without it."""

    premise: str
    steps: tuple[PlainStep, ...]

    @abstractmethod
    def begin(self, without: str = "") -> P:
        """Return the system before the first step; its steps do not keep the premise `without`."""

    @property
    def breach(self) -> int:
        """The index of the step that needs the premise. Raises ValueError when none does."""
        free, guarded = self.begin(self.premise), self.begin()
        for number, step in enumerate(self.steps):
            # With the premise the step is refused, or it is possible and does something else.
            if perform(free, step) != perform(guarded, step) or free.effects() != guarded.effects():
                return number
        raise ValueError(f"expected a step that needs that {self.premise}; seen none in {self.steps}")

    def lines(self, sentences: Iterable[str], lost: Iterable[str]) -> list[str]:
        """Return the sentences of the steps with numbers, mark the one that needs the premise, and add what is lost."""
        numbered = [f"{number:>2}  {sentence}" for number, sentence in enumerate(sentences, 1)]
        numbered[self.breach] += "   <- needs the premise"
        return [*numbered, *(f"lost: {loss}" for loss in lost)]


def broken_conjuncts(conjuncts: Iterable[Conjunct], state: Any, values: Mapping[str, Iterable[int]]) -> set[str]:
    """Return the names of the conjuncts that a plain state breaks, for `values` of each variable."""
    return {
        conjunct.name
        for conjunct in conjuncts
        if not all(
            on_plain_values(conjunct.holds)(state, *row)
            for row in product(*(values[variable] for variable in conjunct.variables.split()))
        )
    }


class PlainConnectives:
    """The connectives of z3 on plain values."""

    And = staticmethod(lambda *parts: all(parts))
    Or = staticmethod(lambda *parts: any(parts))
    Not = staticmethod(lambda part: not part)
    Implies = staticmethod(lambda left, right: not left or right)
    If = staticmethod(lambda test, yes, no: yes if test else no)


@cache
def on_plain_values(function: Function) -> Function:
    """Return a function on the same code object, and on those of the functions it calls, with plain connectives for z3's."""
    overlay: dict[str, Any] = {"__builtins__": __builtins__, "z3": PlainConnectives}
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        # Functions that a conjunct calls are lifted, too; anything else that it names is an error there, not a guess.
        if isinstance(value, types.FunctionType):
            overlay[name] = on_plain_values(value)
        elif isinstance(value, int):
            overlay[name] = value
    # Defaults and closures are left behind: a conjunct depends on its arguments and on global names only.
    return types.FunctionType(function.__code__, overlay)

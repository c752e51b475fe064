"""Proofs by induction over the steps of a system, for any number of brokers, epochs and offsets.

Rules of this file

1. A state is a bundle of uninterpreted functions (epoch -> leader; broker, offset -> record; ...), so nothing bounds how
   many there are of each. A step makes the functions of the next state.
2. An invariant is a tuple of conjuncts. `Induction.lemmas` are the whole proof: the invariant holds at the start, every step
   keeps it, and the claims follow from it.
3. The same conjuncts run on plain values, from the same code objects: what is tested on small systems is what is proved.
4. Every premise is needed: a `PremiseRun` is a short run on plain values that loses committed data without it.
"""

import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from itertools import product
from typing import Any, Generic, TypeVar

import z3

from tidegauge.spec.proofs.engine.paths import ProofPath

Function = Callable[..., Any]
Lemma = Callable[[ProofPath, int], None]
S = TypeVar("S")


@dataclass(frozen=True)
class Conjunct:
    """One statement for all values of its variables; `triggers` lists the terms at which the solver uses it."""

    name: str
    variables: str
    holds: Function
    triggers: Function


@dataclass(frozen=True)
class Induction(Generic[S]):
    """An invariant, the steps that keep it, and the claims that follow from it."""

    any_state: Callable[[], S]
    """makes a state about which nothing is known"""
    bounds: Callable[[S], Any]
    """states what holds of the numbers of every state"""
    conjuncts: tuple[Conjunct, ...]
    start: Callable[[ProofPath], S]
    steps: tuple[Callable[[ProofPath, S], S], ...]
    claims: tuple[Callable[[ProofPath, S], None], ...]

    @property
    def lemmas(self) -> tuple[Lemma, ...]:
        """The proof, lemma by lemma."""

        def initially(path: ProofPath, _: int) -> None:
            prove_all(path, self.start(path), self.conjuncts)

        return (initially, *map(self.keeps, self.steps), *map(self._follows, self.claims))

    def assumed(self, path: ProofPath) -> S:
        """Return any state in which the invariant holds."""
        state = self.any_state()
        # Bounds are instances of conjuncts, or no step can break them. Without triggers the solver always has them.
        path.assume(self.bounds(state))
        for conjunct in self.conjuncts:
            variables = z3.Ints(conjunct.variables)
            # One statement per trigger: z3 uses a quantified statement only for terms that match its pattern.
            for trigger in conjunct.triggers(state, *variables):
                path.forall(variables, conjunct.holds(state, *variables), *trigger)
        return state

    def keeps(self, step: Callable[[ProofPath, S], S], conjuncts: Iterable[Conjunct] | None = None) -> Lemma:
        """Return the lemma that a step keeps the invariant, or only some `conjuncts` of it."""

        def lemma(path: ProofPath, _: int = 0) -> None:
            prove_all(path, step(path, self.assumed(path)), self.conjuncts if conjuncts is None else conjuncts)

        lemma.__name__ = f"{step.__name__}_keeps_it"
        return lemma

    def _follows(self, claim: Callable[[ProofPath, S], None]) -> Lemma:
        def lemma(path: ProofPath, _: int) -> None:
            claim(path, self.assumed(path))

        lemma.__name__ = claim.__name__
        return lemma


def prove_all(path: ProofPath, state: Any, conjuncts: Iterable[Conjunct]) -> None:
    """Set every conjunct as a goal, for arbitrary values of its variables."""
    for conjunct in conjuncts:
        values = [path.integer(f"{conjunct.name}:{v}", show=False) for v in conjunct.variables.split()]
        path.goal(conjunct.name, conjunct.holds(state, *values))


# ---------------------------------------------------------------------------------------------------------------------
# Symbolic states and how steps change them


def symbolic_state(kind: type[S], numbers: Collection[str], truths: Collection[str], arity: Mapping[str, int]) -> S:
    """Return a state of the dataclass `kind`: `numbers` are integers, every other field is a function of integers.

    `truths` names the functions that give truth values, `arity` those with more than one argument.
    """
    integer, truth = z3.IntSort(), z3.BoolSort()
    members: dict[str, Any] = {}
    for field in fields(kind):  # type: ignore[arg-type]  # every state is a dataclass
        name = field.name
        if name in numbers:
            # One name is one term in z3: what a step chooses must not be the number that the state has already.
            members[name] = z3.Int(f"the {name}")
        else:
            members[name] = z3.Function(name, *[integer] * arity.get(name, 1), truth if name in truths else integer)
    return kind(**members)


def any_set(name: str) -> Any:
    """Return an arbitrary set of brokers, as the function that says who is in it."""
    return z3.Function(name, z3.IntSort(), z3.BoolSort())


def changed(function: Function, *key: Any, to: Any) -> Function:
    """Return the function that gives `to` for the arguments `key` and is `function` elsewhere."""

    def after(*arguments: Any) -> Any:
        equal = [argument == value for argument, value in zip(arguments, key, strict=True)]
        return z3.If(equal[0] if len(equal) == 1 else z3.And(*equal), to, function(*arguments))

    return after


def is_epoch(s: Any, e: Any) -> Any:
    """State that a leader, or nobody, has been elected for epoch e."""
    return z3.And(e >= 0, e <= s.current)


# The code of an invariant's conjuncts on plain values, and runs that show what each premise is good for.


PlainStep = tuple[Any, ...]
"""A step of a plain system: the name of its method, and the arguments."""

P = TypeVar("P", bound="PlainSystem")


class PlainSystem:
    """A system on plain values with a method for each step; one that its guard forbids returns False and does nothing."""

    def __init__(self, without: str = "") -> None:
        self.without = without
        """The premise that its steps do not keep, "" for none."""

    def lost(self) -> list[str]:
        """Return a sentence for each piece of committed data that is lost."""
        raise NotImplementedError

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

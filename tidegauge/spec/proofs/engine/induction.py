"""Proofs by induction over the steps of a system, for any number of brokers, epochs and offsets.

Rules of this file

1. A state is a bundle of uninterpreted functions (epoch -> leader; broker, offset -> record; ...), so nothing bounds how
   many there are of each. A step makes the functions of the next state.
2. An invariant is a tuple of conjuncts. `Induction.lemmas` are the whole proof: the invariant holds at the start, every step
   keeps it, and the claims follow from it.
3. The same conjuncts run on plain values, from the same code objects (validation.premises): what is tested on small systems
   is what is proved.

Terms: a *path* (`ProofPath`) is one run of a lemma; it collects assumptions and goals, which z3 proves afterwards. A *step*
is a function of a path and a state; it returns the next state, and assumes on the path what must hold for the step to
happen. A *claim* sets goals about a state. A *lemma* is a function of a path and a size, which only the bounded lemmas use.
A *trigger* is a list of terms (z3: a pattern): the solver uses a statement about all integers only where it meets all these
terms.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

import z3

from tidegauge.spec.proofs.engine.paths import ProofPath

Function = Callable[..., Any]
Lemma = Callable[[ProofPath, int], None]
S = TypeVar("S")


@dataclass(frozen=True)
class Conjunct:
    """One statement of an invariant, for all values of its variables."""

    name: str
    variables: str
    """names of the integers it is about, divided by spaces"""
    holds: Function
    """state, *variables -> the statement"""
    triggers: Function
    """state, *variables -> a list of triggers, each a list of terms: any of them makes the solver use the statement"""


@dataclass(frozen=True)
class Induction(Generic[S]):
    """An invariant, the steps that keep it, and the claims that follow from it."""

    any_state: Callable[[], S]
    """makes a state about which nothing is known"""
    bounds: Callable[[S], Any]
    """states what holds of the numbers of every state"""
    conjuncts: tuple[Conjunct, ...]
    start: Callable[[ProofPath], S]
    """makes the first state"""
    steps: tuple[Callable[[ProofPath, S], S], ...]
    claims: tuple[Callable[[ProofPath, S], None], ...]

    @property
    def lemmas(self) -> tuple[Lemma, ...]:
        """The proof as lemmas: the invariant holds at the start, each step keeps it, each claim follows from it."""

        def initially(path: ProofPath, _: int) -> None:
            """Prove that the invariant holds in the first state."""
            prove_all(path, self.start(path), self.conjuncts)

        return (initially, *map(self.keeps, self.steps), *map(self._follows, self.claims))

    def assumed(self, path: ProofPath) -> S:
        """Return an arbitrary state, and assume on the path that the invariant holds in it."""
        state = self.any_state()
        # The bounds assume nothing more: each is an instance of a conjunct, or no step can break it. They are stated once
        # more because a statement without variables needs no trigger: the solver always has it.
        path.assume(self.bounds(state))
        for conjunct in self.conjuncts:
            variables = z3.Ints(conjunct.variables)  # from their names, divided by spaces
            # One statement per trigger: z3 uses a quantified statement only for terms that match its pattern.
            for trigger in conjunct.triggers(state, *variables):
                path.forall(variables, conjunct.holds(state, *variables), *trigger)
        return state

    def keeps(self, step: Callable[[ProofPath, S], S], conjuncts: Iterable[Conjunct] | None = None) -> Lemma:
        """Return the lemma that a step keeps the invariant: after it the `conjuncts` hold (all of them when None)."""

        def lemma(path: ProofPath, _: int = 0) -> None:
            """Take the step from any state in which the invariant holds, and set the conjuncts as goals after it."""
            prove_all(path, step(path, self.assumed(path)), self.conjuncts if conjuncts is None else conjuncts)

        lemma.__name__ = f"{step.__name__}_keeps_it"
        return lemma

    def _follows(self, claim: Callable[[ProofPath, S], None]) -> Lemma:
        """Return the lemma that a claim follows from the invariant alone."""

        def lemma(path: ProofPath, _: int) -> None:
            """Set the goals of the claim about any state in which the invariant holds."""
            claim(path, self.assumed(path))

        lemma.__name__ = claim.__name__
        return lemma


def prove_all(path: ProofPath, state: Any, conjuncts: Iterable[Conjunct]) -> None:
    """Set every conjunct as a goal of the path, for arbitrary values of its variables: proved for them, it holds for all."""
    for conjunct in conjuncts:
        values = [path.integer(f"{conjunct.name}:{v}", show=False) for v in conjunct.variables.split()]
        path.goal(conjunct.name, conjunct.holds(state, *values))


# ---------------------------------------------------------------------------------------------------------------------
# Symbolic states and how steps change them


def symbolic_state(kind: type[S], numbers: Collection[str], truths: Collection[str], arity: Mapping[str, int]) -> S:
    """Return a state about which nothing is known: an instance of the dataclass `kind` with a z3 symbol for each field.

    The fields in `numbers` become integers, every other field a function of integers. It gives a truth value if `truths`
    names it, else an integer. `arity` has the number of arguments of the functions with more than one.
    """
    integer, truth = z3.IntSort(), z3.BoolSort()
    members: dict[str, Any] = {}
    for field in fields(kind):  # type: ignore[arg-type]  # every state is a dataclass
        name = field.name
        if name in numbers:
            # z3 identifies terms by name: an integer of the same name that a step makes would be this very number.
            members[name] = z3.Int(f"the {name}")
        else:
            members[name] = z3.Function(name, *[integer] * arity.get(name, 1), truth if name in truths else integer)
    return kind(**members)


def any_set(name: str) -> Any:
    """Return an arbitrary set of brokers, as the function that says who is in it."""
    return z3.Function(name, z3.IntSort(), z3.BoolSort())


def changed(function: Function, *key: Any, to: Any) -> Function:
    """Return the function that gives `to` for the arguments `key` and is `function` elsewhere: a step changes a state so."""

    def after(*arguments: Any) -> Any:
        """Return the new value at these arguments, as a z3 term."""
        equal = [argument == value for argument, value in zip(arguments, key, strict=True)]
        return z3.If(equal[0] if len(equal) == 1 else z3.And(*equal), to, function(*arguments))

    return after


def is_epoch(s: Any, e: Any) -> Any:
    """State that a leader, or nobody, has been elected for epoch e."""
    return z3.And(e >= 0, e <= s.current)

"""Every step keeps the invariant of `invariant.py`, it holds at the start, and who is elected holds everything committed."""

from collections.abc import Callable
from dataclasses import replace

import z3

from tidegauge.spec.proofs.eligible.invariant import INVARIANT
from tidegauge.spec.proofs.eligible.leader_steps import LEADER_STEPS
from tidegauge.spec.proofs.eligible.registration import NOBODY, State, any_state
from tidegauge.spec.proofs.eligible.steps import CONTROLLER_STEPS, Step
from tidegauge.spec.proofs.engine.induction import assume_all, prove_all
from tidegauge.spec.proofs.engine.paths import Path

STEPS: tuple[Step, ...] = (*CONTROLLER_STEPS, *LEADER_STEPS)


def assumed(path: Path) -> State:
    """Any state in which every conjunct holds."""
    s = any_state()
    path.assume(z3.And(s.current >= 0, s.minimum_version <= s.version, s.first(s.current) <= s.version))
    assume_all(path, s, INVARIANT)
    return s


def keeps(step: Step) -> Callable[[Path, int], None]:
    """The lemma that a step keeps the invariant."""

    def lemma(path: Path, _: int) -> None:
        prove_all(path, step(path, assumed(path)), INVARIANT)

    lemma.__name__ = f"{step.__name__}_keeps_it"
    return lemma


def initially(path: Path, _: int) -> None:
    """One version: every replica is in the ISR and holds what is committed, nothing."""
    s, first = any_state(), path.integer("first", low=0)
    zero, no = z3.IntVal(0), z3.BoolVal(False)
    path.assume(s.replica(first))
    start = replace(
        s,
        current=zero,
        version=zero,
        minimum_version=zero,
        elr=lambda _b: no,
        isr=lambda _v, b: s.replica(b),
        leader=lambda _e: first,
        first=lambda _e: zero,
        learned=lambda _b: z3.IntVal(NOBODY),
        begun=lambda _e: no,
        joins=lambda _e: z3.IntVal(NOBODY),
        blocked=lambda _e: no,
        whole=lambda _b: z3.BoolVal(True),
    )
    prove_all(path, start, INVARIANT)


def a_leader_is_whole(path: Path, _: int) -> None:
    """The claim: whoever is elected cleanly holds everything that is committed, and is a replica."""
    s = assumed(path)
    leader = s.leader(s.current)
    path.assume(leader != NOBODY)
    path.goal("the latest leader holds everything committed", s.whole(leader))
    path.goal("the latest leader is a replica", s.replica(leader))


LEMMAS: tuple[Callable[[Path, int], None], ...] = (initially, *map(keeps, STEPS), a_leader_is_whole)

"""What the controller does with a registration: steps that write a version. Each makes its ELR by the rule."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import z3

from tidegauge.spec.proofs.eligible.registration import NOBODY, Premise, State, eligible
from tidegauge.spec.proofs.engine.induction import Function
from tidegauge.spec.proofs.engine.paths import Path

Step = Callable[[Path, State], State]


def no_broker(_: Any) -> Any:
    """None of them."""
    return z3.BoolVal(False)


def below(path: Path, size: Any, minimum: Any, premise: Premise, name: str) -> Any:
    """Whether an ISR is too small, by whatever number of replicas caps min ISR: Kafka counts those of another partition."""
    path.premises.add(premise)
    if premise in path.dropped:
        return z3.BoolVal(True)
    return path.call("under_min_isr", size, minimum, path.integer(f"{name}_cap", low=1))


def _version(path: Path, s: State, isr: Function, elr: Function, size: Any) -> State:
    """One more version. An eligible replica outside the ISR makes the ISR smaller than the replicas."""
    new, replicas, b = s.version + 1, path.integer("replicas", low=1), z3.Int("b")
    for trigger in (s.elr(b), s.isr(s.version, b)):
        path.forall([b], z3.Implies(z3.And(elr(b), s.replica(b)), size < replicas), trigger)
    return replace(
        s,
        version=new,
        elr=elr,
        isr=lambda v, b: z3.If(v == new, isr(b), s.isr(v, b)),
        size=lambda v: z3.If(v == new, size, s.size(v)),
        replicas=lambda v: z3.If(v == new, replicas, s.replicas(v)),
        minimum_at=lambda v: z3.If(v == new, s.minimum, s.minimum_at(v)),
    )


def _epoch(s: State, leader: Any) -> State:
    """The version just written begins an epoch."""
    new = s.current + 1
    return replace(
        s,
        current=new,
        leader=lambda e: z3.If(e == new, leader, s.leader(e)),
        first=lambda e: z3.If(e == new, s.version, s.first(e)),
        last=lambda e: z3.If(e == s.current, s.version - 1, s.last(e)),
    )


def change(path: Path, s: State, stays: Function, out: Function, lost: Any) -> State:
    """Some leave the ISR, and the leader may change: it stays, or another eligible broker is elected, or nobody.

    `out` are replicas no longer; `lost` has come back without its log. Neither stays in the ISR.
    """
    size = path.integer("size", low=0)
    path.assume(size <= s.size(s.version))

    def isr(b: Any) -> Any:
        return z3.And(s.isr(s.version, b), stays(b), z3.Not(out(b)), b != lost)

    small = below(path, size, s.minimum, Premise.ELIGIBLE_BELOW_MIN_ISR, "change")
    path.premises |= {Premise.REMOVED_LEAVES, Premise.LOST_LEAVES}

    def elr(b: Any) -> Any:
        removed = z3.BoolVal(False) if Premise.REMOVED_LEAVES in path.dropped else out(b)
        empty = z3.BoolVal(False) if Premise.LOST_LEAVES in path.dropped else b == lost
        was = z3.Or(s.elr(b), s.isr(s.version, b))
        return z3.And(small, was, z3.Not(isr(b)), z3.Not(removed), z3.Not(empty))

    leader = s.leader(s.current)
    if path.decide(z3.And(leader != NOBODY, isr(leader))) and path.decide(path.boolean("keeps_its_leader")):
        return _version(path, s, isr, elr, size)
    chosen = path.integer("chosen", low=NOBODY)
    if path.decide(z3.Or(chosen == NOBODY, isr(chosen))):
        return _epoch(_version(path, s, isr, elr, size), chosen)
    path.assume(elr(chosen), Premise.ELECT_ELIGIBLE)
    again = below(path, z3.IntVal(1), s.minimum, Premise.ELECTION_LOOKS_AGAIN, "election")

    def others(b: Any) -> Any:
        return z3.And(again, elr(b), b != chosen)

    return _epoch(_version(path, s, lambda b: b == chosen, others, z3.IntVal(1)), chosen)


def fence(path: Path, s: State) -> State:
    """Brokers leave the ISR: fenced, shut down, or by the wish of the leader; or nobody does, and there is an election."""
    stays = z3.Function("stays", z3.IntSort(), z3.BoolSort())
    return change(path, s, stays, no_broker, z3.IntVal(NOBODY))


def reassign(path: Path, s: State) -> State:
    """Replicas are removed, and delete their logs; others are added."""
    stays, out, added = (z3.Function(name, z3.IntSort(), z3.BoolSort()) for name in ("stays", "out", "added"))
    after = change(path, s, stays, out, z3.IntVal(NOBODY))
    return replace(
        after,
        replica=lambda b: z3.Or(z3.And(s.replica(b), z3.Not(out(b))), z3.And(added(b), z3.Not(out(b)))),
        whole=lambda b: z3.And(s.whole(b), z3.Not(out(b))),
    )


def come_back(path: Path, s: State) -> State:
    """A broker comes back without its log, or without a part of it. It knows every leader that was elected before."""
    lost = path.integer("lost", low=0)
    leaves = path.decide(eligible(s, lost))
    after = change(path, s, lambda _: z3.BoolVal(True), no_broker, lost) if leaves else s
    return replace(
        after,
        whole=lambda b: z3.And(s.whole(b), b != lost),
        learned=lambda b: z3.If(b == lost, after.current, s.learned(b)),
        fit=lambda e: z3.And(s.fit(e), s.joins(e) != lost),
    )


def accept(path: Path, s: State) -> State:
    """A proposal is taken: one more member."""
    epoch = path.integer("epoch")
    joins = s.joins(epoch)
    path.assume(z3.And(s.begun(epoch), joins != NOBODY, z3.Not(s.isr(s.version, joins))))
    path.assume(z3.And(epoch == s.current, s.known(epoch) == s.version), Premise.KNOWS_THE_LATEST)
    path.assume(s.fit(epoch), Premise.NO_OLD_INCARNATION)
    size = s.size(s.version) + 1
    small = below(path, size, s.minimum, Premise.ELIGIBLE_BELOW_MIN_ISR, "change")

    def elr(b: Any) -> Any:
        return z3.And(small, s.elr(b), b != joins)

    return _version(path, s, lambda b: z3.Or(s.isr(s.version, b), b == joins), elr, size)


def set_minimum(path: Path, s: State) -> State:
    """min.insync.replicas becomes another one."""
    minimum = path.integer("minimum", low=1)
    small = below(path, s.size(s.version), minimum, Premise.CHANGE_LOOKS_AGAIN, "change")
    return replace(s, minimum=minimum, minimum_version=s.version, elr=lambda b: z3.And(small, s.elr(b)))


CONTROLLER_STEPS: tuple[Step, ...] = (fence, reassign, come_back, accept, set_minimum)

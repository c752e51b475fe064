"""What brokers do by a registration: they learn of leaders, ISRs and min ISR, propose who joins, fetch and commit."""

from dataclasses import replace
from typing import Any

import z3

from tidegauge.spec.proofs.eligible.registration import NOBODY, Premise, State, counted, last_version, leading
from tidegauge.spec.proofs.eligible.steps import Step
from tidegauge.spec.proofs.engine.paths import Path


def a_leader(path: Path, s: State) -> Any:
    """An epoch whose leader leads, deposed or not."""
    epoch = path.integer("epoch")
    path.assume(leading(s, epoch))
    return epoch


def learn(path: Path, s: State) -> State:
    """A broker learns of any later epoch; its leader begins to lead, with any version of it."""
    b, epoch = path.integer("learner", low=0), path.integer("epoch")
    path.assume(z3.And(s.learned(b) < epoch, epoch <= s.current, epoch >= 0))
    learned = replace(s, learned=lambda x: z3.If(x == b, epoch, s.learned(x)))
    if not path.decide(s.leader(epoch) == b):
        return learned
    version = path.integer("version")
    path.assume(z3.And(s.first(epoch) <= version, version <= last_version(s, epoch)))
    return replace(
        learned,
        begun=lambda e: z3.Or(e == epoch, s.begun(e)),
        known=lambda e: z3.If(e == epoch, version, s.known(e)),
        known_minimum=lambda e: z3.If(e == epoch, s.minimum_at(version), s.known_minimum(e)),
        joins=lambda e: z3.If(e == epoch, NOBODY, s.joins(e)),
        blocked=lambda e: z3.Or(z3.And(e >= 0, e < epoch), s.blocked(e)),
        witness=lambda e: z3.If(z3.And(e >= 0, e < epoch, z3.Not(s.blocked(e))), b, s.witness(e)),
    )


def hear_isr(path: Path, s: State) -> State:
    """A leader hears of a later ISR of its epoch, by a response or by metadata, and gives up what it has proposed."""
    epoch, version = a_leader(path, s), path.integer("version")
    path.assume(z3.And(s.known(epoch) < version, version <= last_version(s, epoch)))
    path.premises.add(Premise.ISR_WITH_MIN_ISR)
    made_by = s.known_minimum(epoch) if Premise.ISR_WITH_MIN_ISR in path.dropped else s.minimum_at(version)
    return replace(
        s,
        known=lambda e: z3.If(e == epoch, version, s.known(e)),
        known_minimum=lambda e: z3.If(e == epoch, made_by, s.known_minimum(e)),
        joins=lambda e: z3.If(e == epoch, NOBODY, s.joins(e)),
    )


def hear_minimum(path: Path, s: State) -> State:
    """A leader hears of the min ISR of now."""
    epoch = a_leader(path, s)
    path.assume(s.known(epoch) >= s.minimum_version, Premise.MIN_ISR_IN_ORDER)
    return replace(s, known_minimum=lambda e: z3.If(e == epoch, s.minimum, s.known_minimum(e)))


def propose(path: Path, s: State) -> State:
    """The latest leader proposes a replica for the ISR. What a deposed one proposes is refused."""
    epoch, joins = a_leader(path, s), path.integer("joins", low=0)
    path.assume(z3.And(epoch == s.current, s.joins(epoch) == NOBODY, s.replica(joins)))
    path.assume(s.whole(joins), Premise.JOINS_WHOLE)
    return replace(
        s,
        joins=lambda e: z3.If(e == epoch, joins, s.joins(e)),
        fit=lambda e: z3.Or(e == epoch, s.fit(e)),
    )


def catch_up(path: Path, s: State) -> State:
    """A follower of the latest leader fetches all that it has."""
    epoch, follower = a_leader(path, s), path.integer("follower", low=0)
    path.assume(z3.And(epoch == s.current, s.learned(follower) == epoch))
    gets = s.whole(s.leader(epoch))
    return replace(s, whole=lambda b: z3.Or(s.whole(b), z3.And(b == follower, gets)))


def commit(path: Path, s: State) -> State:
    """A leader commits something new: everybody it waits for has it, and nobody else."""
    epoch, b = a_leader(path, s), z3.Int("b")
    known = s.known(epoch)
    too_few = path.call("under_min_isr", s.size(known), s.known_minimum(epoch), s.replicas(known))
    path.assume(z3.Not(too_few), Premise.COMMIT_ON_MIN_ISR)
    fetches = z3.Implies(counted(s, epoch, b), s.learned(b) == epoch)
    path.forall([b], fetches, s.learned(b))
    return replace(s, whole=lambda x: z3.And(s.whole(x), counted(s, epoch, x)))


LEADER_STEPS: tuple[Step, ...] = (learn, hear_isr, hear_minimum, propose, catch_up, commit)

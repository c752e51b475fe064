"""Steps of the brokers: they learn of leaders, ISRs and min ISR, propose new ISR members, fetch and commit."""

from dataclasses import replace
from typing import Any

import z3

from tidegauge.spec.proofs.eligible.registration import (
    NOBODY,
    ElectionPremise,
    RegistrationState,
    last_version,
    leads_now,
    waits_for,
)
from tidegauge.spec.proofs.engine.induction import changed
from tidegauge.spec.proofs.engine.paths import ProofPath


def any_leader(path: ProofPath, s: RegistrationState) -> Any:
    """Return an epoch whose leader leads, deposed or not."""
    epoch = path.integer("epoch")
    path.assume(leads_now(s, epoch))
    return epoch


def learn(path: ProofPath, s: RegistrationState) -> RegistrationState:
    """Let a broker learn of any later epoch; its leader begins to lead, with any version of it."""
    b, epoch = path.integer("learner", low=0), path.integer("epoch")
    path.assume(z3.And(s.learned(b) < epoch, epoch <= s.current, epoch >= 0))
    learned = replace(s, learned=changed(s.learned, b, to=epoch))
    if not path.decide(s.leader(epoch) == b):
        return learned
    version = path.integer("version")
    path.assume(z3.And(s.first(epoch) <= version, version <= last_version(s, epoch)))
    return replace(
        learned,
        begun=lambda e: z3.Or(e == epoch, s.begun(e)),
        known=changed(s.known, epoch, to=version),
        known_minimum=changed(s.known_minimum, epoch, to=s.minimum_at(version)),
        joins=changed(s.joins, epoch, to=NOBODY),
        # The new leader fetches no more in the epochs before; one of those that waits for it can commit nothing new.
        blocked=lambda e: z3.Or(z3.And(e >= 0, e < epoch), s.blocked(e)),
        witness=lambda e: z3.If(z3.And(e >= 0, e < epoch, z3.Not(s.blocked(e))), b, s.witness(e)),
    )


def hear_isr(path: ProofPath, s: RegistrationState) -> RegistrationState:
    """Let a leader learn of a later ISR of its epoch, by a response or by metadata; it gives up its own proposal."""
    epoch, version = any_leader(path, s), path.integer("version")
    path.assume(z3.And(s.known(epoch) < version, version <= last_version(s, epoch)))
    made_by = s.known_minimum(epoch) if path.drops(ElectionPremise.ISR_WITH_MIN_ISR) else s.minimum_at(version)
    return replace(
        s,
        known=changed(s.known, epoch, to=version),
        known_minimum=changed(s.known_minimum, epoch, to=made_by),
        joins=changed(s.joins, epoch, to=NOBODY),
    )


def hear_minimum(path: ProofPath, s: RegistrationState) -> RegistrationState:
    """Let a leader learn of the latest min ISR."""
    epoch = any_leader(path, s)
    path.assume(s.known(epoch) >= s.minimum_version, ElectionPremise.MIN_ISR_IN_ORDER)
    return replace(s, known_minimum=changed(s.known_minimum, epoch, to=s.minimum))


def propose(path: ProofPath, s: RegistrationState) -> RegistrationState:
    """Let the latest leader propose a replica for the ISR. The proposal of a deposed one is refused."""
    epoch, joins = any_leader(path, s), path.integer("joins", low=0)
    path.assume(z3.And(epoch == s.current, s.joins(epoch) == NOBODY, s.replica(joins)))
    path.assume(s.whole(joins), ElectionPremise.JOINS_WHOLE)
    return replace(
        s,
        joins=changed(s.joins, epoch, to=joins),
        fit=lambda e: z3.Or(e == epoch, s.fit(e)),
    )


def catch_up(path: ProofPath, s: RegistrationState) -> RegistrationState:
    """Let a follower of the latest leader fetch all that the leader has."""
    epoch, follower = any_leader(path, s), path.integer("follower", low=0)
    path.assume(z3.And(epoch == s.current, s.learned(follower) == epoch))
    gets = s.whole(s.leader(epoch))
    return replace(s, whole=lambda b: z3.Or(s.whole(b), z3.And(b == follower, gets)))


def commit(path: ProofPath, s: RegistrationState) -> RegistrationState:
    """Let a leader commit a new record that exactly the brokers it waits for have."""
    epoch, b = any_leader(path, s), z3.Int("b")
    known = s.known(epoch)
    too_few = path.call("under_min_isr", s.size(known), s.known_minimum(epoch), s.replicas(known))
    path.assume(z3.Not(too_few), ElectionPremise.COMMIT_ON_MIN_ISR)
    fetches = z3.Implies(waits_for(s, epoch, b), s.learned(b) == epoch)
    # A broker that has learned of a later leader fetches from this one no more, so the high watermark cannot pass it.
    path.forall([b], fetches, s.learned(b))
    return replace(s, whole=lambda x: z3.And(s.whole(x), waits_for(s, epoch, x)))


LEADER_STEPS = (learn, hear_isr, hear_minimum, propose, catch_up, commit)

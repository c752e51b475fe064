"""The steps of a registration: those of the controller, nearly all of which write a version, and those of the brokers.

A step takes a path, the run of the lemma that the step keeps the invariant, and a state `s`; it returns the next state. What
it leaves open is a fresh integer or set on the path: a broker, an epoch, a version. It assumes what must hold for the step
to happen. `path.call` runs a rule of `impl.rules`; `path.decide` forks the lemma by a condition. An assumption with an
`ElectionPremise` can be dropped, to show that it is needed; `path.drops` returns whether it is dropped.

A version is what one record of the metadata log made of the registration. A set of brokers is a function from a broker to
the formula that it is in the set. The ELR is the eligible leader replicas (KIP-966). `RegistrationState` describes the
members of a state: `s.whole(b)`, broker b's log holds everything committed; `s.learned(b)`, the latest epoch it has learned;
`s.known(e)`, the version that the leader of epoch e knows, and `s.known_minimum(e)` the min ISR; `s.joins(e)`, whom it has
proposed for the ISR, NOBODY for none; `s.fit(e)`, that broker has not come back without its log since; `s.first(e)` and
`s.last(e)`, the versions of epoch e; `s.blocked(e)`, a later leader has begun, `s.witness(e)`. NOBODY also stands for no
leader.

`replace` of a state sets some members anew: `changed(f, *arguments, to=value)` is f with another value at one place, a
lambda one that differs at many. `path.forall(variables, formula, trigger)` assumes a statement about all integers; the
solver uses it where the trigger, a term, occurs.
"""

from dataclasses import replace
from typing import Any

import z3

from tidegauge.spec.proofs.eligible.invariant import (
    ELECTION_INVARIANT,
    NOBODY,
    ElectionPremise,
    RegistrationState,
    any_registration,
    electable,
    last_version,
    leads_now,
    waits_for,
)
from tidegauge.spec.proofs.engine.induction import Function, Induction, any_set, changed
from tidegauge.spec.proofs.engine.paths import ProofPath

# Brokers: they learn of leaders, ISRs and min ISR, propose new ISR members, fetch and commit.


def any_leader(path: ProofPath, s: RegistrationState) -> Any:
    """Return an arbitrary epoch whose leader has begun and has learned of no later one, deposed or not."""
    epoch = path.integer("epoch")
    path.assume(leads_now(s, epoch))
    return epoch


def learn(path: ProofPath, s: RegistrationState) -> RegistrationState:
    """Let a broker learn of any later epoch than it knows; if it is the leader, it begins, with any version of the epoch."""
    b, epoch = path.integer("learner", low=0), path.integer("epoch")
    path.assume(z3.And(s.learned(b) < epoch, epoch <= s.current, epoch >= 0))
    learned = replace(s, learned=changed(s.learned, b, to=epoch))
    if not path.decide(s.leader(epoch) == b):
        return learned
    # A leader may begin with any version of its epoch: metadata may show it the last of several changes.
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
    # Topic configurations and partition changes come in one log, but a broker applies them in two steps (F11): without the
    # premise it may know the new ISR with its old min ISR.
    minimum = s.known_minimum(epoch) if path.drops(ElectionPremise.ISR_WITH_MIN_ISR) else s.minimum_at(version)
    return replace(
        s,
        known=changed(s.known, epoch, to=version),
        known_minimum=changed(s.known_minimum, epoch, to=minimum),
        joins=changed(s.joins, epoch, to=NOBODY),
    )


def hear_minimum(path: ProofPath, s: RegistrationState) -> RegistrationState:
    """Let a leader learn of the latest min ISR."""
    epoch = any_leader(path, s)
    # It knows a version not older than the latest at the time when the min ISR was written.
    path.assume(s.known(epoch) >= s.minimum_version, ElectionPremise.MIN_ISR_IN_ORDER)
    return replace(s, known_minimum=changed(s.known_minimum, epoch, to=s.minimum))


def propose(path: ProofPath, s: RegistrationState) -> RegistrationState:
    """Let the latest leader propose a replica for the ISR; that of a deposed leader is refused and left out."""
    epoch, joins = any_leader(path, s), path.integer("joins", low=0)
    path.assume(z3.And(epoch == s.current, s.joins(epoch) == NOBODY, s.replica(joins)))
    # Kafka's leader proposes who has reached its high watermark and its epoch start (Partition#isFollowerInSync).
    path.assume(s.whole(joins), ElectionPremise.JOINS_WHOLE)
    return replace(s, joins=changed(s.joins, epoch, to=joins), fit=lambda e: z3.Or(e == epoch, s.fit(e)))


def catch_up(path: ProofPath, s: RegistrationState) -> RegistrationState:
    """Let a follower of the latest leader fetch all that the leader has: it is whole if the leader is."""
    epoch, follower = any_leader(path, s), path.integer("follower", low=0)
    path.assume(z3.And(epoch == s.current, s.learned(follower) == epoch))
    gets = s.whole(s.leader(epoch))
    return replace(s, whole=lambda b: z3.Or(s.whole(b), z3.And(b == follower, gets)))


def commit(path: ProofPath, s: RegistrationState) -> RegistrationState:
    """Let a leader commit a new record that exactly the brokers it waits for have: every other broker is whole no more."""
    epoch, b = any_leader(path, s), z3.Int("b")
    version = s.known(epoch)
    too_few = path.call("under_min_isr", s.size(version), s.known_minimum(epoch), s.replicas(version))
    # By what the leader knows, which may be old.
    path.assume(z3.Not(too_few), ElectionPremise.COMMIT_ON_MIN_ISR)
    fetches = z3.Implies(waits_for(s, epoch, b), s.learned(b) == epoch)
    # A broker that has learned of a later leader fetches from this one no more, so the high watermark cannot pass it.
    path.forall([b], fetches, s.learned(b))
    return replace(s, whole=lambda x: z3.And(s.whole(x), waits_for(s, epoch, x)))


LEADER_STEPS = (learn, hear_isr, hear_minimum, propose, catch_up, commit)


# The controller: a step that changes the registration writes a version of it, with the ELR that follows from the rule.


def no_broker(_: Any) -> Any:
    """Return false for every broker: the empty set of brokers."""
    return z3.BoolVal(False)


def below_min_isr(path: ProofPath, size: Any, minimum: Any, premise: ElectionPremise, name: str) -> Any:
    """State that an ISR of `size` members is below the min ISR `minimum`, by the rule; always true without the `premise`.

    Without it the controller is one that does not look at min ISR here. `name` is that of the use, for the fresh number of
    replicas.
    """
    if path.drops(premise):
        return z3.BoolVal(True)
    # Any number of replicas may cap min ISR: Kafka takes it from before the change, or from another partition.
    return path.call("under_min_isr", size, minimum, path.integer(f"{name}_cap", low=1))


def _version(path: ProofPath, s: RegistrationState, isr: Function, elr: Function, size: Any) -> RegistrationState:
    """Return the state with one more version: this ISR and its size, this ELR, any number of replicas."""
    new, replicas, b = s.version + 1, path.integer("replicas", low=1), z3.Int("b")
    # Sizes are numbers of their own, so this has to be assumed: a replica in the ELR is outside the ISR, which is therefore
    # smaller than the set of replicas.
    for trigger in (s.elr(b), s.isr(s.version, b)):
        path.forall([b], z3.Implies(z3.And(elr(b), s.replica(b)), size < replicas), trigger)
    return replace(
        s,
        version=new,
        elr=elr,
        isr=lambda v, b: z3.If(v == new, isr(b), s.isr(v, b)),
        size=changed(s.size, new, to=size),
        replicas=changed(s.replicas, new, to=replicas),
        minimum_at=changed(s.minimum_at, new, to=s.minimum),
    )


def _epoch(s: RegistrationState, leader: Any) -> RegistrationState:
    """Return the state with one epoch more, whose first version is the one just written; `leader` may be NOBODY."""
    new = s.current + 1
    return replace(
        s,
        current=new,
        leader=changed(s.leader, new, to=leader),
        first=changed(s.first, new, to=s.version),
        last=changed(s.last, s.current, to=s.version - 1),
    )


def change_registration(
    path: ProofPath, s: RegistrationState, stays: Function, out: Function, lost: Any
) -> RegistrationState:
    """Remove members from the ISR; the leader stays, or another eligible broker is elected, or nobody.

    `stays` is the set of members that are not removed, `out` the set of brokers that are replicas no longer, `lost` a broker
    that has come back without its log, or NOBODY. Neither `out` nor `lost` stays in the ISR.
    """
    size = path.integer("size", low=0)
    # All that is known of counting: removing members makes no ISR larger.
    path.assume(size <= s.size(s.version))

    def isr(b: Any) -> Any:
        """State that b is in the new ISR."""
        return z3.And(s.isr(s.version, b), stays(b), z3.Not(out(b)), b != lost)

    # Whether the new ISR is below min ISR: only then there is an ELR.
    small = below_min_isr(path, size, s.minimum, ElectionPremise.ELIGIBLE_BELOW_MIN_ISR, "change")
    # Without these premises such brokers stay in the ELR.
    keeps_removed, keeps_lost = path.drops(ElectionPremise.REMOVED_LEAVES), path.drops(ElectionPremise.LOST_LEAVES)

    def elr(b: Any) -> Any:
        """State that b is in the new ELR: below min ISR, whoever was in ISR or ELR and is in the ISR no more."""
        removed = z3.BoolVal(False) if keeps_removed else out(b)
        without_log = z3.BoolVal(False) if keeps_lost else b == lost
        was_eligible = z3.Or(s.elr(b), s.isr(s.version, b))
        return z3.And(small, was_eligible, z3.Not(isr(b)), z3.Not(removed), z3.Not(without_log))

    leader = s.leader(s.current)
    # The leader may stay if it is in the ISR; the controller may also elect another one (a preferred leader).
    if path.decide(z3.And(leader != NOBODY, isr(leader))) and path.decide(path.boolean("keeps_its_leader")):
        return _version(path, s, isr, elr, size)
    chosen = path.integer("chosen", low=NOBODY)
    # Elected from the ISR, or nobody: ISR and ELR stay as they are.
    if path.decide(z3.Or(chosen == NOBODY, isr(chosen))):
        return _epoch(_version(path, s, isr, elr, size), chosen)
    # Elected from the ELR: the new leader is the whole ISR, and the ELR is made once more for an ISR of one.
    path.assume(elr(chosen), ElectionPremise.ELECT_ELIGIBLE)
    still_small = below_min_isr(path, z3.IntVal(1), s.minimum, ElectionPremise.ELECTION_LOOKS_AGAIN, "election")

    def others(b: Any) -> Any:
        """State that b stays in the ELR after the election."""
        return z3.And(still_small, elr(b), b != chosen)

    return _epoch(_version(path, s, lambda b: b == chosen, others, z3.IntVal(1)), chosen)


def fence(path: ProofPath, s: RegistrationState) -> RegistrationState:
    """Remove any members from the ISR, or none: fenced, shut down, or as the leader proposed; there may be an election."""
    stays = any_set("stays")
    return change_registration(path, s, stays, no_broker, z3.IntVal(NOBODY))


def reassign(path: ProofPath, s: RegistrationState) -> RegistrationState:
    """Reassign the partition: remove any replicas, which delete their logs, and add any others."""
    stays, out, added = (any_set(name) for name in ("stays", "out", "added"))
    after = change_registration(path, s, stays, out, z3.IntVal(NOBODY))
    return replace(
        after,
        replica=lambda b: z3.Or(z3.And(s.replica(b), z3.Not(out(b))), z3.And(added(b), z3.Not(out(b)))),
        whole=lambda b: z3.And(s.whole(b), z3.Not(out(b))),
    )


def come_back(path: ProofPath, s: RegistrationState) -> RegistrationState:
    """Let a broker come back without its log, or without a part of it."""
    lost = path.integer("lost", low=0)
    # The controller takes a broker that may be elected out of the ISR and the ELR first, by a version of its own.
    leaves = path.decide(electable(s, lost))
    after = change_registration(path, s, lambda _: z3.BoolVal(True), no_broker, lost) if leaves else s
    return replace(
        after,
        whole=lambda b: z3.And(s.whole(b), b != lost),
        # It stays fenced until it has read the metadata log up to its registration, so it knows every leader elected before.
        learned=changed(s.learned, lost, to=after.current),
        fit=lambda e: z3.And(s.fit(e), s.joins(e) != lost),
    )


def accept(path: ProofPath, s: RegistrationState) -> RegistrationState:
    """Let the controller accept a leader's proposal: the ISR has one more member, which leaves the ELR."""
    epoch = path.integer("epoch")
    joins = s.joins(epoch)
    path.assume(z3.And(s.begun(epoch), joins != NOBODY, z3.Not(s.isr(s.version, joins))))
    path.assume(z3.And(epoch == s.current, s.known(epoch) == s.version), ElectionPremise.KNOWS_THE_LATEST)
    path.assume(s.fit(epoch), ElectionPremise.NO_OLD_INCARNATION)
    size = s.size(s.version) + 1
    small = below_min_isr(path, size, s.minimum, ElectionPremise.ELIGIBLE_BELOW_MIN_ISR, "change")

    def elr(b: Any) -> Any:
        """State that b stays in the ELR: only while the new ISR is below min ISR."""
        return z3.And(small, s.elr(b), b != joins)

    return _version(path, s, lambda b: z3.Or(s.isr(s.version, b), b == joins), elr, size)


def set_minimum(path: ProofPath, s: RegistrationState) -> RegistrationState:
    """Change min.insync.replicas to any number; the ELR is emptied if the ISR is not below it. No version is written."""
    minimum = path.integer("minimum", low=1)
    small = below_min_isr(path, s.size(s.version), minimum, ElectionPremise.CHANGE_LOOKS_AGAIN, "change")
    return replace(s, minimum=minimum, minimum_version=s.version, elr=lambda b: z3.And(small, s.elr(b)))


CONTROLLER_STEPS = (fence, reassign, come_back, accept, set_minimum)


# The proof about elections: every step keeps the invariant, and whoever is elected holds everything committed.


def new_registration(path: ProofPath) -> RegistrationState:
    """Return the first state: one version; every replica is in the ISR and holds everything committed, which is nothing."""
    s, first = any_registration(), path.integer("first", low=0)
    zero, no = z3.IntVal(0), z3.BoolVal(False)
    path.assume(s.replica(first))
    # Any other member may be anything, as the size of the ISR, min ISR, and what leaders know that have not begun.
    return replace(
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


def a_leader_is_whole(path: ProofPath, s: RegistrationState) -> None:
    """Claim that whoever is elected cleanly holds everything that is committed, and is a replica."""
    leader = s.leader(s.current)
    # In an epoch without a leader nobody was elected, and there is nothing to claim.
    path.assume(leader != NOBODY)
    path.goal("the latest leader holds everything committed", s.whole(leader))
    path.goal("the latest leader is a replica", s.replica(leader))


CLEAN_ELECTION = Induction(
    any_state=any_registration,
    bounds=lambda s: z3.And(s.current >= 0, s.minimum_version <= s.version, s.first(s.current) <= s.version),
    conjuncts=ELECTION_INVARIANT,
    start=new_registration,
    steps=(*CONTROLLER_STEPS, *LEADER_STEPS),
    claims=(a_leader_is_whole,),
)

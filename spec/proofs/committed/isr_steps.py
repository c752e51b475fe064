"""Steps of an ISR change: a leader proposes it, the controller takes or refuses it, the leader learns of it, in any order.

AlterPartition and its response may be in flight for any time. A leader has one change in flight, and gives it up when it
learns of a newer ISR; the request it sent may still arrive at the controller. Deposed leaders propose, too.
"""

from dataclasses import replace
from typing import Any

import z3

from tidegauge.spec.proofs.committed.cluster import (
    ACCEPTED,
    NONE,
    REFUSED,
    SENT,
    ClusterState,
    CommittedPremise,
    leads,
)
from tidegauge.spec.proofs.committed.steps import any_broker
from tidegauge.spec.proofs.engine.induction import Function, any_set, changed
from tidegauge.spec.proofs.engine.paths import ProofPath


def _propose(s: ClusterState, epoch: Any, members: Function) -> ClusterState:
    return replace(
        s,
        proposed=lambda e, b: z3.If(e == epoch, members(b), s.proposed(e, b)),
        status=changed(s.status, epoch, to=SENT),
    )


def _any_leader_without_proposal(path: ProofPath, s: ClusterState) -> Any:
    """Return an epoch whose leader leads, deposed or not, and has no change in flight."""
    epoch = path.integer("epoch")
    path.assume(z3.And(leads(s, epoch), s.status(epoch) == NONE))
    return epoch


def propose_shrink(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let a leader propose an ISR without some of the others."""
    epoch, stays = _any_leader_without_proposal(path, s), any_set("stays")
    path.assume(stays(s.leader(epoch)))
    return _propose(s, epoch, lambda b: z3.And(s.view(epoch, b), stays(b)))


def propose_expand(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let a leader propose an ISR with one more member, by the rule."""
    epoch, joins = _any_leader_without_proposal(path, s), any_broker(path, s, "joins")
    hw = 0 if path.drops(CommittedPremise.JOIN_AT_HIGH_WATERMARK) else s.hw(s.leader(epoch))
    start = 0 if path.drops(CommittedPremise.JOIN_AT_EPOCH_START) else s.start(epoch)
    path.assume(path.call("may_join_isr", s.remote(epoch, joins), hw, start))
    return _propose(s, epoch, lambda b: z3.Or(s.view(epoch, b), b == joins))


def _with_isr(s: ClusterState, members: Function) -> ClusterState:
    """Let the controller change the ISR of the latest epoch."""
    now, version = s.current, s.version(s.current) + 1
    return replace(
        s,
        isr=lambda e, b: z3.If(e == now, members(b), s.isr(e, b)),
        version=changed(s.version, now, to=version),
        image=lambda e, v, b: z3.If(z3.And(e == now, v == version), members(b), s.image(e, v, b)),
    )


def accept(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let the controller take an ISR change: the one in flight, or one that its leader has given up since."""
    epoch, version = path.integer("epoch"), path.integer("version", low=0)
    path.assume(z3.And(epoch == s.current, version == s.version(s.current)), CommittedPremise.CHANGE_KNOWS_THE_LATEST)
    if path.decide(z3.And(s.begun(epoch), s.status(epoch) == SENT, version == s.known_version(epoch))):
        b = z3.Int("b")
        no_old = z3.Implies(s.proposed(epoch, b), z3.Not(s.gone(b)))
        # KIP-903: the request names the broker epoch of each member, and the controller knows the latest.
        if not path.drops(CommittedPremise.NO_OLD_INCARNATION):
            path.forall([b], no_old, s.proposed(epoch, b))
            path.forall([b], no_old, s.gone(b))
        taken = _with_isr(s, lambda b: s.proposed(epoch, b))
        return replace(taken, status=changed(s.status, epoch, to=ACCEPTED))
    # The state keeps no proposal that was given up, so its members are arbitrary. With the premise this path is impossible:
    # the version a leader knows is never above the controller's.
    given_up = any_set("given_up")
    path.assume(z3.And(s.begun(epoch), version < s.known_version(epoch)))
    return _with_isr(s, given_up)


def refuse(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let the controller refuse an ISR change, for any reason."""
    epoch = path.integer("epoch")
    path.assume(s.status(epoch) == SENT)
    return replace(s, status=changed(s.status, epoch, to=REFUSED))


def hear_refusal(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let a leader learn that its change was refused; it has the ISR it knew before."""
    epoch = path.integer("epoch")
    path.assume(z3.And(leads(s, epoch), s.status(epoch) == REFUSED))
    return replace(s, status=changed(s.status, epoch, to=NONE))


def hear_isr(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let a leader learn of any later ISR of its epoch, by the response to its change or by metadata."""
    epoch, version = path.integer("epoch"), path.integer("version")
    path.assume(z3.And(leads(s, epoch), s.known_version(epoch) < version, version <= s.version(epoch)))
    return replace(
        s,
        known_version=changed(s.known_version, epoch, to=version),
        view=lambda e, b: z3.If(e == epoch, s.image(e, version, b), s.view(e, b)),
        status=changed(s.status, epoch, to=NONE),
    )


def remove(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let the controller itself take brokers but the leader out of the ISR: it fenced them, or they registered anew."""
    stays = any_set("stays")
    path.assume(stays(s.leader(s.current)))
    return _with_isr(s, lambda b: z3.And(s.isr(s.current, b), stays(b)))


ISR_STEPS = (propose_shrink, propose_expand, accept, refuse, hear_refusal, hear_isr, remove)

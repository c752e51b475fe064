"""How the ISR changes: a leader asks for it, the controller takes or refuses it, the leader hears of it, all in any order.

AlterPartition and its response are in flight as long as they like. A leader has one change on its way, and gives it up when
it hears of a newer ISR: what it asked for then still arrives at the controller. Deposed leaders propose, too.
"""

from dataclasses import replace
from typing import Any

import z3

from tidegauge.spec.proofs.committed.cluster import ACCEPTED, NONE, REFUSED, SENT, Premise, State, leading
from tidegauge.spec.proofs.committed.steps import Step, a_broker
from tidegauge.spec.proofs.engine.induction import Function
from tidegauge.spec.proofs.engine.paths import Path


def _asks_for(s: State, epoch: Any, members: Function) -> State:
    return replace(
        s,
        proposed=lambda e, b: z3.If(e == epoch, members(b), s.proposed(e, b)),
        status=lambda e: z3.If(e == epoch, SENT, s.status(e)),
    )


def _a_leader_free_to_ask(path: Path, s: State) -> Any:
    """An epoch whose leader leads, deposed or not, and has no change on its way."""
    epoch = path.integer("epoch")
    path.assume(z3.And(leading(s, epoch), s.status(epoch) == NONE))
    return epoch


def propose_shrink(path: Path, s: State) -> State:
    """A leader asks for an ISR without some of the others."""
    epoch = _a_leader_free_to_ask(path, s)
    stays = z3.Function("stays", z3.IntSort(), z3.BoolSort())
    path.assume(stays(s.leader(epoch)))
    return _asks_for(s, epoch, lambda b: z3.And(s.view(epoch, b), stays(b)))


def propose_expand(path: Path, s: State) -> State:
    """A leader asks for an ISR with one more, by the rule."""
    epoch, joins = _a_leader_free_to_ask(path, s), a_broker(path, s, "joins")
    path.premises |= {Premise.JOIN_AT_HIGH_WATERMARK, Premise.JOIN_AT_EPOCH_START}
    hw = 0 if Premise.JOIN_AT_HIGH_WATERMARK in path.dropped else s.hw(s.leader(epoch))
    start = 0 if Premise.JOIN_AT_EPOCH_START in path.dropped else s.start(epoch)
    path.assume(path.call("may_join_isr", s.remote(epoch, joins), hw, start))
    return _asks_for(s, epoch, lambda b: z3.Or(s.view(epoch, b), b == joins))


def _with_isr(s: State, members: Function) -> State:
    """The controller changes the ISR of the latest epoch."""
    now, version = s.current, s.version(s.current) + 1
    return replace(
        s,
        isr=lambda e, b: z3.If(e == now, members(b), s.isr(e, b)),
        version=lambda e: z3.If(e == now, version, s.version(e)),
        image=lambda e, v, b: z3.If(z3.And(e == now, v == version), members(b), s.image(e, v, b)),
    )


def accept(path: Path, s: State) -> State:
    """The controller takes an ISR change: the one that is on its way, or one that its leader has given up since."""
    epoch, version = path.integer("epoch"), path.integer("version", low=0)
    path.assume(z3.And(epoch == s.current, version == s.version(s.current)), Premise.CHANGE_KNOWS_THE_LATEST)
    if path.decide(z3.And(s.begun(epoch), s.status(epoch) == SENT, version == s.known_version(epoch))):
        b = z3.Int("b")
        no_old = z3.Implies(s.proposed(epoch, b), z3.Not(s.gone(b)))
        path.premises.add(Premise.NO_OLD_INCARNATION)
        if Premise.NO_OLD_INCARNATION not in path.dropped:
            path.forall([b], no_old, s.proposed(epoch, b))
            path.forall([b], no_old, s.gone(b))
        taken = _with_isr(s, lambda b: s.proposed(epoch, b))
        return replace(taken, status=lambda e: z3.If(e == epoch, ACCEPTED, s.status(e)))
    given_up = z3.Function("given_up", z3.IntSort(), z3.BoolSort())
    path.assume(z3.And(s.begun(epoch), version < s.known_version(epoch)))
    return _with_isr(s, given_up)


def refuse(path: Path, s: State) -> State:
    """The controller refuses an ISR change, for whatever reason."""
    epoch = path.integer("epoch")
    path.assume(s.status(epoch) == SENT)
    return replace(s, status=lambda e: z3.If(e == epoch, REFUSED, s.status(e)))


def hear_refusal(path: Path, s: State) -> State:
    """A leader hears that its change was refused, and has the ISR it knew before."""
    epoch = path.integer("epoch")
    path.assume(z3.And(leading(s, epoch), s.status(epoch) == REFUSED))
    return replace(s, status=lambda e: z3.If(e == epoch, NONE, s.status(e)))


def hear_isr(path: Path, s: State) -> State:
    """A leader hears of any later ISR of its epoch, by the response to its change or by metadata."""
    epoch, version = path.integer("epoch"), path.integer("version")
    path.assume(z3.And(leading(s, epoch), s.known_version(epoch) < version, version <= s.version(epoch)))
    return replace(
        s,
        known_version=lambda e: z3.If(e == epoch, version, s.known_version(e)),
        view=lambda e, b: z3.If(e == epoch, s.image(e, version, b), s.view(e, b)),
        status=lambda e: z3.If(e == epoch, NONE, s.status(e)),
    )


def remove(path: Path, s: State) -> State:
    """The controller itself takes brokers out of the ISR, and leaves the leader: it fences them, or they registered anew."""
    stays = z3.Function("stays", z3.IntSort(), z3.BoolSort())
    path.assume(stays(s.leader(s.current)))
    return _with_isr(s, lambda b: z3.And(s.isr(s.current, b), stays(b)))


ISR_STEPS: tuple[Step, ...] = (propose_shrink, propose_expand, accept, refuse, hear_refusal, hear_isr, remove)

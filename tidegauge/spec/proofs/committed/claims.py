"""The proof that committed data is safe: every step of the cluster keeps the invariant, and the claims follow from it."""

from dataclasses import replace

import z3

from tidegauge.spec.proofs.committed.cluster import NONE, ClusterState, any_cluster
from tidegauge.spec.proofs.committed.invariant import COMMITTED_INVARIANT
from tidegauge.spec.proofs.committed.steps import DISK_STEPS, ISR_STEPS, LOG_STEPS, any_broker
from tidegauge.spec.proofs.engine.induction import Induction
from tidegauge.spec.proofs.engine.paths import ProofPath


def new_cluster(path: ProofPath) -> ClusterState:
    """Return the first state: empty logs, nothing learned, everybody in the ISR of epoch 0."""
    s, first = any_cluster(), path.integer("first")
    zero, no = z3.IntVal(0), z3.BoolVal(False)
    path.assume(z3.And(s.brokers > 0, first >= 0, first < s.brokers))
    return replace(
        s,
        current=zero,
        leader=lambda _e: first,
        isr=lambda _e, _b: z3.BoolVal(True),
        version=lambda _e: zero,
        image=lambda _e, _v, _b: z3.BoolVal(True),
        known_version=lambda _e: z3.IntVal(-1),
        status=lambda _e: z3.IntVal(NONE),
        known=lambda _b: z3.IntVal(-1),
        gone=lambda _b: no,
        log_start=lambda _b: zero,
        log_end=lambda _b: zero,
        begun=lambda _e: no,
        hist_end=lambda _e: zero,
        remote=lambda _e, _r: zero,
        asked=lambda _e, _r: zero,
        shown=lambda _e: zero,
        committed=lambda _e: zero,
        capped=lambda _e: no,
        hw=lambda _b: zero,
    )


def committed_data_is_safe(path: ProofPath, s: ClusterState) -> None:
    """Claim that committed data lies in every later leader's past and on every ISR member."""
    e, f, o, r = path.integer("epoch", 0), path.integer("later"), path.integer("offset", 0), any_broker(path, s, "member")
    path.assume(z3.And(e <= s.current, o < s.committed(e)))
    # The invariant reaches a member by one conjunct if it is in the ISR since e, by another if it joined later, and by a
    # third if it has asked for less: each is easy for the solver on a path of its own.
    path.decide(s.isr(e, r))
    path.decide(s.asked(e, r) >= s.committed(e))
    later = z3.And(s.begun(f), e < f)
    path.goal("every later leader began with it", z3.Implies(later, z3.And(o < s.start(f), s.hist(f, o) == s.hist(e, o))))
    member = s.isr(s.current, r)
    path.goal("every ISR member has it", z3.Implies(member, z3.And(o < s.log_end(r), s.record(r, o) == s.hist(e, o))))


def what_is_shown_is_safe(path: ProofPath, s: ClusterState) -> None:
    """Claim that all below any broker's high watermark is committed, lies in each later leader's past and on the ISR."""
    broker, offset = any_broker(path, s, "shows"), path.integer("offset", 0)
    later, member = path.integer("later"), any_broker(path, s, "member")
    path.assume(offset < s.hw(broker))
    # The epoch in which some leader reached this high watermark.
    epoch = s.origin(broker)
    # Each branch is a path of its own for the solver (committed_data_is_safe).
    path.decide(s.isr(epoch, member))
    path.decide(s.asked(epoch, member) >= s.committed(epoch))
    path.goal("it is committed", z3.And(epoch <= s.current, offset < s.committed(epoch)))
    leads_later = z3.And(s.begun(later), epoch < later)
    began_with_it = z3.And(offset < s.start(later), s.hist(later, offset) == s.record(broker, offset))
    path.goal("every later leader began with it", z3.Implies(leads_later, began_with_it))
    has_it = z3.And(offset < s.log_end(member), s.record(member, offset) == s.record(broker, offset))
    path.goal("every ISR member has it", z3.Implies(s.isr(s.current, member), has_it))


COMMITTED_DATA = Induction(
    any_state=any_cluster,
    bounds=lambda s: z3.And(s.brokers > 0, s.current >= 0),
    conjuncts=COMMITTED_INVARIANT,
    start=new_cluster,
    steps=(*LOG_STEPS, *ISR_STEPS, *DISK_STEPS),
    claims=(committed_data_is_safe, what_is_shown_is_safe),
)

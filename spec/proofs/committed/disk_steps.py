"""Steps that change a log besides fetching: restarts, lost tails, deleted records, a reset to the leader's log start."""

from dataclasses import replace

import z3

from tidegauge.impl.rules import RESET_TO_LEADER_START
from tidegauge.spec.proofs.committed.cluster import ClusterState, CommittedPremise, leads
from tidegauge.spec.proofs.committed.steps import any_broker, any_follower, checkpoint
from tidegauge.spec.proofs.engine.induction import changed
from tidegauge.spec.proofs.engine.paths import ProofPath


def restart(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let a follower restart with its whole log and the high watermark it last wrote to disk."""
    b = any_broker(path, s, "restarts")
    path.assume(z3.Or(s.known(b) < 0, s.leader(s.known(b)) != b), CommittedPremise.RESTART_LEADS_LATER)
    loaded = checkpoint(path, s, b, s.log_end(b))
    return replace(s, hw=changed(s.hw, b, to=loaded))


def lose_tail(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let a broker restart without its last records: as another broker, with any prefix of the log.

    Where the controller does not take it out of the ISR when it registers (4.0.0 and later: KAFKA-18106), the new
    incarnation takes the old one's place in the ISR.
    """
    b, new = any_broker(path, s, "restarts"), s.brokers
    path.assume(z3.Not(s.isr(s.current, b)), CommittedPremise.LEFT_ISR_FIRST)
    end, no = path.integer("left"), z3.BoolVal(False)
    path.assume(z3.And(s.log_start(b) <= end, end <= s.log_end(b)))
    loaded = checkpoint(path, s, b, end)
    in_isr = s.isr(s.current, b)  # only without the premise: the new incarnation is then a member with less of the log
    return replace(
        s,
        brokers=s.brokers + 1,
        isr=lambda e, x: z3.If(x == new, z3.And(e == s.current, in_isr), s.isr(e, x)),
        image=lambda e, v, x: z3.If(x == new, z3.And(e == s.current, in_isr), s.image(e, v, x)),
        view=lambda e, x: z3.If(x == new, no, s.view(e, x)),
        proposed=lambda e, x: z3.If(x == new, no, s.proposed(e, x)),
        known=changed(s.known, new, to=s.known(b)),
        gone=lambda x: z3.If(x == new, no, z3.Or(x == b, s.gone(x))),
        log_start=changed(s.log_start, new, to=s.log_start(b)),
        log_end=changed(s.log_end, new, to=end),
        record=lambda x, o: z3.If(x == new, s.record(b, o), s.record(x, o)),
        remote=lambda e, x: z3.If(x == new, 0, s.remote(e, x)),
        asked=lambda e, x: z3.If(x == new, 0, s.asked(e, x)),
        hw=changed(s.hw, new, to=loaded),
        origin=changed(s.origin, new, to=s.origin(b)),
    )


def delete(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let a broker move its log start: by retention, DeleteRecords, or because its leader's has moved."""
    b, start = any_broker(path, s, "deletes"), path.integer("start")
    path.assume(z3.And(s.log_start(b) < start, start <= s.log_end(b)))
    path.assume(start <= s.hw(b), CommittedPremise.DELETE_BELOW_HIGH_WATERMARK)
    return replace(
        s,
        log_start=changed(s.log_start, b, to=start),
        deleted=lambda e: z3.If(z3.And(leads(s, e), s.leader(e) == b), start, s.deleted(e)),
    )


def reset(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let a follower whose log ends below its leader's log start begin there. UnifiedLog#truncateFullyAndStartAt.

    The response may be old, and the log start in it too.
    """
    f, epoch = any_follower(path, s)
    leader_start, leader_end = path.integer("leader_start", low=0), path.integer("leader_end")
    path.assume(z3.And(leader_start <= s.deleted(epoch), leader_start <= leader_end, leader_end <= s.hist_end(epoch)))
    kind, target = path.call("out_of_range_reset", leader_start, leader_end, s.log_end(f))
    # The two other cases of the rule truncate at the leader's end, which `truncate` covers, or do nothing.
    if kind != RESET_TO_LEADER_START:
        return s
    return replace(
        s,
        log_start=changed(s.log_start, f, to=target),
        log_end=changed(s.log_end, f, to=target),
        # A log has all the records it ever had: those below its new start are the leader's.
        record=lambda x, o: z3.If(z3.And(x == f, o < target), s.hist(epoch, o), s.record(x, o)),
        hw=changed(s.hw, f, to=target),
        origin=changed(s.origin, f, to=s.shown_from(epoch)),
    )


DISK_STEPS = (restart, lose_tail, delete, reset)

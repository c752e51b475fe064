"""What happens to a log besides fetching: restarts, lost tails, deleted records, a reset to the leader's log start."""

from dataclasses import replace

import z3

from tidegauge.impl.rules import RESET_TO_LEADER_START
from tidegauge.spec.proofs.committed.cluster import Premise, State, leading
from tidegauge.spec.proofs.committed.steps import Step, a_broker, a_follower, checkpoint
from tidegauge.spec.proofs.engine.paths import Path


def restart(path: Path, s: State) -> State:
    """A follower restarts with its log whole and the high watermark it last wrote to disk."""
    b = a_broker(path, s, "restarts")
    path.assume(z3.Or(s.known(b) < 0, s.leader(s.known(b)) != b), Premise.RESTART_LEADS_LATER)
    loaded = checkpoint(path, s, b, s.log_end(b))
    return replace(s, hw=lambda x: z3.If(x == b, loaded, s.hw(x)))


def lose_tail(path: Path, s: State) -> State:
    """A broker restarts without its last records: as another broker, with any prefix of the log.

    Where the controller does not take it out of the ISR when it registers (4.0.0 and later: KAFKA-18106), the new
    incarnation stands in the ISR where the old one stood.
    """
    b, new = a_broker(path, s, "restarts"), s.brokers
    path.assume(z3.Not(s.isr(s.current, b)), Premise.LEFT_ISR_FIRST)
    end, no = path.integer("left"), z3.BoolVal(False)
    path.assume(z3.And(s.log_start(b) <= end, end <= s.log_end(b)))
    loaded = checkpoint(path, s, b, end)
    stands_in = s.isr(s.current, b)
    return replace(
        s,
        brokers=s.brokers + 1,
        isr=lambda e, x: z3.If(x == new, z3.And(e == s.current, stands_in), s.isr(e, x)),
        image=lambda e, v, x: z3.If(x == new, z3.And(e == s.current, stands_in), s.image(e, v, x)),
        view=lambda e, x: z3.If(x == new, no, s.view(e, x)),
        proposed=lambda e, x: z3.If(x == new, no, s.proposed(e, x)),
        known=lambda x: z3.If(x == new, s.known(b), s.known(x)),
        gone=lambda x: z3.If(x == new, no, z3.Or(x == b, s.gone(x))),
        log_start=lambda x: z3.If(x == new, s.log_start(b), s.log_start(x)),
        log_end=lambda x: z3.If(x == new, end, s.log_end(x)),
        record=lambda x, o: z3.If(x == new, s.record(b, o), s.record(x, o)),
        remote=lambda e, x: z3.If(x == new, 0, s.remote(e, x)),
        asked=lambda e, x: z3.If(x == new, 0, s.asked(e, x)),
        hw=lambda x: z3.If(x == new, loaded, s.hw(x)),
        origin=lambda x: z3.If(x == new, s.origin(b), s.origin(x)),
    )


def delete(path: Path, s: State) -> State:
    """A broker moves its log start: by retention, DeleteRecords, or because its leader's has moved."""
    b, start = a_broker(path, s, "deletes"), path.integer("start")
    path.assume(z3.And(s.log_start(b) < start, start <= s.log_end(b)))
    path.assume(start <= s.hw(b), Premise.DELETE_BELOW_HIGH_WATERMARK)
    return replace(
        s,
        log_start=lambda x: z3.If(x == b, start, s.log_start(x)),
        deleted=lambda e: z3.If(z3.And(leading(s, e), s.leader(e) == b), start, s.deleted(e)),
    )


def reset(path: Path, s: State) -> State:
    """A follower whose log ends below its leader's log start drops it and starts there. UnifiedLog#truncateFullyAndStartAt.

    The response may be old, its log start with it. The two other cases of the rule truncate at the leader's end or do
    nothing.
    """
    f, epoch = a_follower(path, s)
    leader_start, leader_end = path.integer("leader_start", low=0), path.integer("leader_end")
    path.assume(z3.And(leader_start <= s.deleted(epoch), leader_start <= leader_end, leader_end <= s.hist_end(epoch)))
    kind, target = path.call("out_of_range_reset", leader_start, leader_end, s.log_end(f))
    if kind != RESET_TO_LEADER_START:
        return s
    return replace(
        s,
        log_start=lambda x: z3.If(x == f, target, s.log_start(x)),
        log_end=lambda x: z3.If(x == f, target, s.log_end(x)),
        record=lambda x, o: z3.If(z3.And(x == f, o < target), s.hist(epoch, o), s.record(x, o)),
        hw=lambda x: z3.If(x == f, target, s.hw(x)),
        origin=lambda x: z3.If(x == f, s.shown_from(epoch), s.origin(x)),
    )


DISK_STEPS: tuple[Step, ...] = (restart, lose_tail, delete, reset)

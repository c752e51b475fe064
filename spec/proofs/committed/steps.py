"""What brokers do with their logs, and what they and the controller do with leadership: steps of the cluster."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import z3

from tidegauge.spec.proofs.committed.cluster import NONE, Premise, State, counted, leading
from tidegauge.spec.proofs.engine.paths import Path
from tidegauge.spec.proofs.engine.symbolic import AnySeq, higher

Step = Callable[[Path, State], State]


def a_broker(path: Path, s: State, name: str) -> Any:
    """Any broker."""
    broker = path.integer(name)
    path.assume(z3.And(broker >= 0, broker < s.brokers))
    return broker


def a_follower(path: Path, s: State) -> tuple[Any, Any]:
    """A follower in an epoch whose leader has begun; that leader may have learned of a later epoch since."""
    f, epoch = a_broker(path, s, "follower"), path.integer("epoch")
    path.assume(z3.And(s.begun(epoch), s.known(f) == epoch, s.leader(epoch) != f))
    return f, epoch


def elect(path: Path, s: State) -> State:
    """The controller elects an ISR member for the next epoch, and may drop others from the ISR."""
    chosen = a_broker(path, s, "chosen")
    path.assume(s.isr(s.current, chosen), Premise.ELECT_FROM_ISR)
    left, r = z3.Function("left", z3.IntSort(), z3.BoolSort()), z3.Int("r")
    path.assume(left(chosen))
    path.forall([r], z3.Implies(z3.And(left(r), r != chosen), s.isr(s.current, r)), left(r))
    new = s.current + 1
    return replace(
        s,
        current=new,
        leader=lambda e: z3.If(e == new, chosen, s.leader(e)),
        isr=lambda e, b: z3.If(e == new, left(b), s.isr(e, b)),
        version=lambda e: z3.If(e == new, 0, s.version(e)),
        image=lambda e, v, b: z3.If(e == new, left(b), s.image(e, v, b)),
    )


def checkpoint(path: Path, s: State, b: Any, log_end: Any) -> Any:
    """The high watermark of a broker that may have restarted: one it once had or none, within its log.

    A checkpoint below the log start is raised to it, so it says no less than the log start.
    """
    loaded = path.integer("checkpointed")
    path.assume(z3.And(s.log_start(b) <= loaded, loaded <= s.hw(b)))
    return path.call("follower_high_watermark", loaded, s.log_start(b), log_end)


def learn(path: Path, s: State) -> State:
    """A broker learns of any epoch later than the one it knows; its leader begins to lead, with any ISR of that epoch.

    It may have restarted before, as a leader too: its high watermark is then the checkpoint. Kafka 4.3.1 forgets the
    recorded log ends only when the broker did not lead before (Replica#resetReplicaState, `isNewLeader`), whatever other
    leader there was in between; here every new epoch begins without them.
    """
    b, epoch = a_broker(path, s, "learner"), path.integer("epoch")
    path.assume(z3.And(s.known(b) < epoch, epoch <= s.current, epoch >= 0))
    path.premises.add(Premise.FORGET_LOG_ENDS)
    hw = checkpoint(path, s, b, s.log_end(b))
    learned = replace(s, known=lambda x: z3.If(x == b, epoch, s.known(x)), hw=lambda x: z3.If(x == b, hw, s.hw(x)))
    if not path.decide(s.leader(epoch) == b):
        return learned
    version = path.integer("version", low=0)
    path.assume(version <= s.version(epoch))
    last = s.known(b)
    was_leader = z3.And(last >= 0, s.leader(last) == b)
    as_kafka = z3.BoolVal(Premise.FORGET_LOG_ENDS in path.dropped)
    forgets = path.call("forgets_log_ends", last, epoch, was_leader, as_kafka)

    def earlier(e: Any) -> Any:
        return z3.And(e >= 0, e < epoch)

    def lowers(e: Any) -> Any:
        return z3.And(earlier(e), s.isr(e, b), s.leader(e) != b, z3.Or(z3.Not(s.capped(e)), s.asked(e, b) <= s.cap(e)))

    def led(e: Any) -> Any:
        return z3.And(earlier(e), s.leader(e) == b)

    return replace(
        learned,
        begun=lambda e: z3.Or(e == epoch, s.begun(e)),
        start=lambda e: z3.If(e == epoch, s.log_end(b), s.start(e)),
        hist=lambda e, o: z3.If(e == epoch, s.record(b, o), s.hist(e, o)),
        hist_end=lambda e: z3.If(e == epoch, s.log_end(b), s.hist_end(e)),
        known_version=lambda e: z3.If(e == epoch, version, s.known_version(e)),
        view=lambda e, r: z3.If(e == epoch, s.image(e, version, r), s.view(e, r)),
        remote=lambda e, r: z3.If(z3.And(e == epoch, z3.Not(forgets)), s.remote(last, r), s.remote(e, r)),
        deleted=lambda e: z3.If(e == epoch, s.log_start(b), s.deleted(e)),
        shown=lambda e: z3.If(e == epoch, hw, s.shown(e)),
        shown_from=lambda e: z3.If(e == epoch, s.origin(b), s.shown_from(e)),
        capped=lambda e: z3.Or(earlier(e), s.capped(e)),
        cap=lambda e: z3.If(lowers(e), s.asked(e, b), z3.If(led(e), s.committed(e), s.cap(e))),
        witness=lambda e: z3.If(z3.Or(lowers(e), led(e)), b, s.witness(e)),
    )


def append(path: Path, s: State) -> State:
    """A leader, deposed or not, appends a record of its epoch."""
    epoch = path.integer("epoch")
    path.assume(leading(s, epoch))
    b, end = s.leader(epoch), s.hist_end(epoch)
    return replace(
        s,
        record=lambda x, o: z3.If(z3.And(x == b, o == s.log_end(b)), epoch, s.record(x, o)),
        log_end=lambda x: z3.If(x == b, s.log_end(b) + 1, s.log_end(x)),
        hist=lambda e, o: z3.If(z3.And(e == epoch, o == end), epoch, s.hist(e, o)),
        hist_end=lambda e: z3.If(e == epoch, end + 1, s.hist_end(e)),
    )


def truncate(path: Path, s: State) -> State:
    """A follower truncates its log where it and its leader differ, or anywhere above that.

    The response may be old: the leader's log has only grown since, and with records of its epoch, which the follower's
    records at a difference are not. It was made for this log: a follower has one fetch in flight.
    """
    f, epoch = a_follower(path, s)
    target = path.integer("target", low=0)
    differs = z3.Or(target >= s.hist_end(epoch), s.record(f, target) != s.hist(epoch, target))
    path.assume(z3.And(target < s.log_end(f), differs))
    lowered = path.call("high_watermark_after_truncation", s.hw(f), target)
    start = z3.If(target < s.log_start(f), target, s.log_start(f))
    return replace(
        s,
        log_start=lambda x: z3.If(x == f, start, s.log_start(x)),
        log_end=lambda x: z3.If(x == f, target, s.log_end(x)),
        hw=lambda x: z3.If(x == f, lowered, s.hw(x)),
    )


def ask(path: Path, s: State) -> State:
    """A follower whose log is a prefix of its leader's sends a fetch at its end.

    A fetch at another end or of another past is answered as diverging, whenever it arrives: nothing is recorded.
    """
    f, epoch = a_follower(path, s)
    end = s.log_end(f)
    last_agrees = z3.Or(end == 0, s.record(f, end - 1) == s.hist(epoch, end - 1))
    path.assume(z3.And(end <= s.hist_end(epoch), last_agrees))
    highest = higher(s.asked(epoch, f), end)
    return replace(s, asked=lambda e, r: z3.If(z3.And(e == epoch, r == f), highest, s.asked(e, r)))


def serve(path: Path, s: State) -> State:
    """A leader, deposed or not, records a fetch: the last one, an old one or one twice, whatever its sender does now."""
    f, epoch, offset = a_broker(path, s, "follower"), path.integer("epoch"), path.integer("offset", low=0)
    path.assume(z3.And(leading(s, epoch), s.leader(epoch) != f, offset <= s.asked(epoch, f)))
    return replace(s, remote=lambda e, r: z3.If(z3.And(e == epoch, r == f), offset, s.remote(e, r)))


def take(path: Path, s: State) -> State:
    """A follower takes records for the end it asked at, perhaps long after they left: any that the leader has had.

    The high watermark in the response is one the leader had then: any that is not above its last. A follower whose log
    starts above it stays at its log start, where its high watermark was before.
    """
    f, epoch = a_follower(path, s)
    end, new_end, reported = s.log_end(f), path.integer("new_end"), path.integer("reported", low=0)
    path.assume(z3.And(end <= s.asked(epoch, f), end <= new_end, new_end <= s.hist_end(epoch), reported <= s.shown(epoch)))
    followed = path.call("follower_high_watermark", reported, s.log_start(f), new_end)
    origin = z3.If(reported < s.log_start(f), s.origin(f), s.shown_from(epoch))
    return replace(
        s,
        hw=lambda x: z3.If(x == f, followed, s.hw(x)),
        origin=lambda x: z3.If(x == f, origin, s.origin(x)),
        record=lambda x, o: z3.If(z3.And(x == f, o >= end), s.hist(epoch, o), s.record(x, o)),
        log_end=lambda x: z3.If(x == f, new_end, s.log_end(x)),
    )


def _counts(path: Path, s: State, e: Any, r: Any) -> Any:
    """Whom the leader of epoch e waits for: its maximal ISR."""
    path.premises |= {Premise.COUNT_WHO_IS_TO_JOIN, Premise.COUNT_WHO_IS_TO_LEAVE}
    if Premise.COUNT_WHO_IS_TO_JOIN in path.dropped:
        return s.view(e, r)
    if Premise.COUNT_WHO_IS_TO_LEAVE in path.dropped:
        return z3.If(s.status(e) == NONE, s.view(e, r), s.proposed(e, r))
    return counted(s, e, r)


def commit(path: Path, s: State) -> State:
    """A leader, deposed or not, raises its high watermark by the rule, over everybody who may be in the ISR.

    Whether the ISR is too small for min.insync.replicas is left open: then the rule lets the high watermark stand.
    """
    epoch = path.integer("epoch")
    path.assume(leading(s, epoch))
    waits, r = z3.Function("waits", z3.IntSort(), z3.BoolSort()), z3.Int("r")
    path.premises.add(Premise.COMMIT_NEEDS_ALL)
    counts = waits(r) == z3.And(_counts(path, s, epoch, r), r != s.leader(epoch))
    if Premise.COMMIT_NEEDS_ALL not in path.dropped:
        path.forall([r], counts, waits(r))
        path.forall([r], counts, s.view(epoch, r))
        path.forall([r], counts, s.proposed(epoch, r))
    leos = AnySeq(path, lambda i: s.remote(epoch, i), s.brokers)
    b, too_few = s.leader(epoch), z3.Bool("too_few")
    others = AnySeq(path, waits, s.brokers)
    hw = path.call("leader_high_watermark", s.hw(b), s.hist_end(epoch), leos, others, too_few)
    if not path.decide(hw > s.hw(b)):
        return s
    return replace(
        s,
        committed=lambda e: z3.If(e == epoch, hw, s.committed(e)),
        hw=lambda x: z3.If(x == b, hw, s.hw(x)),
        origin=lambda x: z3.If(x == b, epoch, s.origin(x)),
        shown=lambda e: z3.If(e == epoch, hw, s.shown(e)),
        shown_from=lambda e: z3.If(e == epoch, epoch, s.shown_from(e)),
    )

"""Steps of the cluster that concern leadership and fetching."""

from dataclasses import replace
from typing import Any

import z3

from tidegauge.spec.proofs.committed.cluster import NONE, ClusterState, CommittedPremise, in_maximal_isr, leads
from tidegauge.spec.proofs.engine.induction import any_set, changed
from tidegauge.spec.proofs.engine.paths import ProofPath
from tidegauge.spec.proofs.engine.symbolic import AnySeq, higher


def any_broker(path: ProofPath, s: ClusterState, name: str) -> Any:
    """Return any broker."""
    broker = path.integer(name)
    path.assume(z3.And(broker >= 0, broker < s.brokers))
    return broker


def any_follower(path: ProofPath, s: ClusterState) -> tuple[Any, Any]:
    """Return a follower and its epoch, whose leader has begun; that leader may have learned of a later epoch since."""
    f, epoch = any_broker(path, s, "follower"), path.integer("epoch")
    path.assume(z3.And(s.begun(epoch), s.known(f) == epoch, s.leader(epoch) != f))
    return f, epoch


def elect(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let the controller elect an ISR member for the next epoch; it may remove others from the ISR."""
    chosen = any_broker(path, s, "chosen")
    path.assume(s.isr(s.current, chosen), CommittedPremise.ELECT_FROM_ISR)
    left, r = any_set("left"), z3.Int("r")
    path.assume(left(chosen))
    path.forall([r], z3.Implies(z3.And(left(r), r != chosen), s.isr(s.current, r)), left(r))
    new = s.current + 1
    return replace(
        s,
        current=new,
        leader=changed(s.leader, new, to=chosen),
        isr=lambda e, b: z3.If(e == new, left(b), s.isr(e, b)),
        version=changed(s.version, new, to=0),
        image=lambda e, v, b: z3.If(e == new, left(b), s.image(e, v, b)),
    )


def checkpoint(path: ProofPath, s: ClusterState, b: Any, log_end: Any) -> Any:
    """Return the high watermark of a broker that may have restarted: any that it once had, within its log."""
    # A checkpoint below the log start is raised to it (UnifiedLog#updateHighWatermark), so nothing lower has to be tried.
    loaded = path.integer("checkpointed")
    path.assume(z3.And(s.log_start(b) <= loaded, loaded <= s.hw(b)))
    return path.call("follower_high_watermark", loaded, s.log_start(b), log_end)


def learn(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let a broker learn of any epoch later than the one it knows; its leader begins to lead, with any ISR of that epoch.

    It may have restarted before, also as a leader: its high watermark is then the checkpoint.
    """
    b, epoch = any_broker(path, s, "learner"), path.integer("epoch")
    path.assume(z3.And(s.known(b) < epoch, epoch <= s.current, epoch >= 0))
    hw = checkpoint(path, s, b, s.log_end(b))
    learned = replace(s, known=changed(s.known, b, to=epoch), hw=changed(s.hw, b, to=hw))
    if not path.decide(s.leader(epoch) == b):
        return learned
    version = path.integer("version", low=0)
    path.assume(version <= s.version(epoch))
    last = s.known(b)
    was_leader = z3.And(last >= 0, s.leader(last) == b)
    # Kafka 4.3.1 forgets the recorded log ends only if the broker did not lead before (Replica#resetReplicaState,
    # `isNewLeader`), even where another broker led in between (F2); with the premise every new epoch begins without them.
    as_kafka = z3.BoolVal(path.drops(CommittedPremise.FORGET_LOG_ENDS))
    forgets = path.call("forgets_log_ends", last, epoch, was_leader, as_kafka)

    def earlier(e: Any) -> Any:
        return z3.And(e >= 0, e < epoch)

    # b sends no more fetches in the epochs before: their leaders cannot commit beyond what it has asked for there.
    def lowers(e: Any) -> Any:
        return z3.And(earlier(e), s.isr(e, b), s.leader(e) != b, z3.Or(z3.Not(s.capped(e)), s.asked(e, b) <= s.cap(e)))

    def led(e: Any) -> Any:
        return z3.And(earlier(e), s.leader(e) == b)

    return replace(
        learned,
        begun=lambda e: z3.Or(e == epoch, s.begun(e)),
        start=changed(s.start, epoch, to=s.log_end(b)),
        hist=lambda e, o: z3.If(e == epoch, s.record(b, o), s.hist(e, o)),
        hist_end=changed(s.hist_end, epoch, to=s.log_end(b)),
        known_version=changed(s.known_version, epoch, to=version),
        view=lambda e, r: z3.If(e == epoch, s.image(e, version, r), s.view(e, r)),
        remote=lambda e, r: z3.If(z3.And(e == epoch, z3.Not(forgets)), s.remote(last, r), s.remote(e, r)),
        deleted=changed(s.deleted, epoch, to=s.log_start(b)),
        shown=changed(s.shown, epoch, to=hw),
        shown_from=changed(s.shown_from, epoch, to=s.origin(b)),
        capped=lambda e: z3.Or(earlier(e), s.capped(e)),
        cap=lambda e: z3.If(lowers(e), s.asked(e, b), z3.If(led(e), s.committed(e), s.cap(e))),
        witness=lambda e: z3.If(z3.Or(lowers(e), led(e)), b, s.witness(e)),
    )


def append(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let a leader, deposed or not, append a record of its epoch."""
    epoch = path.integer("epoch")
    path.assume(leads(s, epoch))
    b, end = s.leader(epoch), s.hist_end(epoch)
    return replace(
        s,
        record=changed(s.record, b, s.log_end(b), to=epoch),
        log_end=changed(s.log_end, b, to=s.log_end(b) + 1),
        hist=changed(s.hist, epoch, end, to=epoch),
        hist_end=changed(s.hist_end, epoch, to=end + 1),
    )


def truncate(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let a follower truncate its log where it and its leader differ, or anywhere above that.

    It was made for this log: a follower has one fetch in flight.
    """
    f, epoch = any_follower(path, s)
    target = path.integer("target", low=0)
    # The response may be old. The leader's log has only grown since, by records of its epoch, and the follower's record at
    # a difference is not of that epoch: where they differed they differ still.
    differs = z3.Or(target >= s.hist_end(epoch), s.record(f, target) != s.hist(epoch, target))
    path.assume(z3.And(target < s.log_end(f), differs))
    lowered = path.call("high_watermark_after_truncation", s.hw(f), target)
    start = z3.If(target < s.log_start(f), target, s.log_start(f))
    return replace(
        s,
        log_start=changed(s.log_start, f, to=start),
        log_end=changed(s.log_end, f, to=target),
        hw=changed(s.hw, f, to=lowered),
    )


def ask(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let a follower whose log is a prefix of its leader's send a fetch at its end.

    Any other fetch gets a diverging response whenever it arrives, and nothing is recorded.
    """
    f, epoch = any_follower(path, s)
    end = s.log_end(f)
    last_agrees = z3.Or(end == 0, s.record(f, end - 1) == s.hist(epoch, end - 1))
    path.assume(z3.And(end <= s.hist_end(epoch), last_agrees))
    highest = higher(s.asked(epoch, f), end)
    return replace(s, asked=changed(s.asked, epoch, f, to=highest))


def serve(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let a leader, deposed or not, record a fetch: the last one, an old one or one twice, whatever its sender does now."""
    f, epoch, offset = any_broker(path, s, "follower"), path.integer("epoch"), path.integer("offset", low=0)
    path.assume(z3.And(leads(s, epoch), s.leader(epoch) != f, offset <= s.asked(epoch, f)))
    return replace(s, remote=changed(s.remote, epoch, f, to=offset))


def take(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let a follower take records at the end where it asked, perhaps long after they were sent: any that the leader has had.

    The high watermark in the response is one the leader had then: any that is not above its last.
    """
    f, epoch = any_follower(path, s)
    end, new_end, reported = s.log_end(f), path.integer("new_end"), path.integer("reported", low=0)
    path.assume(z3.And(end <= s.asked(epoch, f), end <= new_end, new_end <= s.hist_end(epoch), reported <= s.shown(epoch)))
    followed = path.call("follower_high_watermark", reported, s.log_start(f), new_end)
    # A follower whose log starts above it stays at its log start, where its high watermark was before.
    origin = z3.If(reported < s.log_start(f), s.origin(f), s.shown_from(epoch))
    return replace(
        s,
        hw=changed(s.hw, f, to=followed),
        origin=changed(s.origin, f, to=origin),
        record=lambda x, o: z3.If(z3.And(x == f, o >= end), s.hist(epoch, o), s.record(x, o)),
        log_end=changed(s.log_end, f, to=new_end),
    )


def _counts(path: ProofPath, s: ClusterState, e: Any, r: Any) -> Any:
    """State that the leader of epoch e waits for r: r is in its maximal ISR."""
    if path.drops(CommittedPremise.COUNT_WHO_IS_TO_JOIN):
        return s.view(e, r)
    if path.drops(CommittedPremise.COUNT_WHO_IS_TO_LEAVE):
        return z3.If(s.status(e) == NONE, s.view(e, r), s.proposed(e, r))
    return in_maximal_isr(s, e, r)


def commit(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let a leader, deposed or not, raise its high watermark by the rule, over everybody who may be in the ISR.

    Whether the ISR is too small for min.insync.replicas is left open: if it is, the rule does not raise the high watermark.
    """
    epoch = path.integer("epoch")
    path.assume(leads(s, epoch))
    waits, r = any_set("waits"), z3.Int("r")
    counts = waits(r) == z3.And(_counts(path, s, epoch, r), r != s.leader(epoch))
    if not path.drops(CommittedPremise.COMMIT_NEEDS_ALL):
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
        committed=changed(s.committed, epoch, to=hw),
        hw=changed(s.hw, b, to=hw),
        origin=changed(s.origin, b, to=epoch),
        shown=changed(s.shown, epoch, to=hw),
        shown_from=changed(s.shown_from, epoch, to=epoch),
    )


LOG_STEPS = (elect, learn, append, truncate, ask, serve, take, commit)

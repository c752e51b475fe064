"""The steps of the cluster: of brokers and their logs, of the ISR, and of leadership.

A step takes a path, the run of the lemma that the step keeps the invariant, and a state `s`; it returns the next state. What
it leaves open is a fresh integer or set on the path: a broker, an epoch, an offset. It assumes what must hold for the step
to happen. `path.call` runs a rule of `impl.rules`; `path.decide` forks the lemma by a condition. A step that does not happen
returns `s`. An assumption with a `CommittedPremise` can be dropped, to show that it is needed; `path.drops` returns whether
it is dropped.

`ClusterState` describes the members of a state. The ones read most: `s.known(b)`, the latest epoch that broker b has
learned; `s.hist(e, o)`, the epoch of the record at o in the log of epoch e's leader, which ends at `s.hist_end(e)`;
`s.asked(e, b)`, the highest log end at which b has fetched in e; `s.remote(e, b)`, what the leader of e has recorded of it;
`s.view(e, b)`, b is in the ISR that this leader knows, and `s.proposed(e, b)` in the one that it asks for; `s.status(e)`,
what has become of that request. `s.shown` is the high watermark of an epoch's leader, `s.deleted` its log start, and
`s.shown_from` the epoch in which the former was reached, `s.origin(b)` that in which b's was. `s.cap(e)` bounds what the
leader of e can still commit, as `s.witness(e)`, a broker it needs, has moved on.

The members are functions. `replace` of a state sets some of them anew: `changed(f, *arguments, to=value)` is f with another
value at one place, a lambda one that differs at many. `path.forall(variables, formula, trigger)` assumes a statement about
all integers; the solver uses it where the trigger, a term, occurs.
"""

from dataclasses import replace
from typing import Any

import z3

from tidegauge.impl.rules import NONE as NO_ERROR
from tidegauge.impl.rules import RESET_TO_LEADER_START
from tidegauge.spec.proofs.committed.invariant import (
    ACCEPTED,
    COMMITTED_INVARIANT,
    NONE,
    REFUSED,
    SENT,
    ClusterState,
    CommittedPremise,
    any_cluster,
    in_maximal_isr,
    leads,
)
from tidegauge.spec.proofs.engine.induction import Function, Induction, any_set, changed, is_epoch
from tidegauge.spec.proofs.engine.paths import ProofPath
from tidegauge.spec.proofs.engine.symbolic import AnySeq, higher

# Leadership and fetching.


def any_broker(path: ProofPath, s: ClusterState, name: str) -> Any:
    """Return an arbitrary broker of the state, called `name` in counter-models."""
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
    # Who is left in the ISR: an arbitrary set, limited below.
    new_isr, r = any_set("left"), z3.Int("r")
    # The leader is in every ISR of its epoch; any of the others may leave it with the election.
    path.assume(new_isr(chosen))
    path.forall([r], z3.Implies(z3.And(new_isr(r), r != chosen), s.isr(s.current, r)), new_isr(r))
    new = s.current + 1
    return replace(
        s,
        current=new,
        leader=changed(s.leader, new, to=chosen),
        isr=lambda e, b: z3.If(e == new, new_isr(b), s.isr(e, b)),
        version=changed(s.version, new, to=0),  # the first version of the epoch's ISR
        image=lambda e, v, b: z3.If(e == new, new_isr(b), s.image(e, v, b)),
    )


def checkpoint(path: ProofPath, s: ClusterState, b: Any, log_end: Any) -> Any:
    """Return the high watermark that broker b has after a restart with this log end, or without one.

    Any that it once had may stand in the checkpoint file; the rule clamps it into the log.
    """
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
    # One metadata publish may carry several changes of a partition, of which a broker sees the last: its leader may begin
    # with any version.
    version = path.integer("version", low=0)
    path.assume(version <= s.version(epoch))
    # The epoch it knew before.
    last = s.known(b)
    was_leader = z3.And(last >= 0, s.leader(last) == b)
    # Kafka 4.3.1 forgets the recorded log ends only if the broker did not lead before (Replica#resetReplicaState,
    # `isNewLeader`), even where another broker led in between (F2); with the premise every new epoch begins without them.
    as_kafka = z3.BoolVal(path.drops(CommittedPremise.FORGET_LOG_ENDS))
    forgets = path.call("forgets_log_ends", last, epoch, was_leader, as_kafka)

    def earlier(e: Any) -> Any:
        """State that e is an epoch before the one that begins."""
        return z3.And(e >= 0, e < epoch)

    def lowers(e: Any) -> Any:
        """State that b, an ISR member, lowers what e's leader can commit, to the highest offset that b asked for in epoch e.

        It sends no more in e, and no other member has bounded e below that.
        """
        return z3.And(earlier(e), s.isr(e, b), s.leader(e) != b, z3.Or(z3.Not(s.capped(e)), s.asked(e, b) <= s.cap(e)))

    def led(e: Any) -> Any:
        """State that b led the earlier epoch e: it commits nothing more in it."""
        return z3.And(earlier(e), s.leader(e) == b)

    # The new leader's log becomes the history of the epoch; the epochs before it that need this broker are capped.
    return replace(
        learned,
        begun=lambda e: z3.Or(e == epoch, s.begun(e)),
        start=changed(s.start, epoch, to=s.log_end(b)),
        hist=lambda e, o: z3.If(e == epoch, s.record(b, o), s.hist(e, o)),
        hist_end=changed(s.hist_end, epoch, to=s.log_end(b)),
        known_version=changed(s.known_version, epoch, to=version),
        view=lambda e, r: z3.If(e == epoch, s.image(e, version, r), s.view(e, r)),
        # Not forgotten: those of the epoch that it knew before.
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
    # A deposed leader appends until it learns of the later epoch: nothing else can stop it.
    b, end = s.leader(epoch), s.hist_end(epoch)
    # To the log of the broker and to the history of the epoch, which are equal while it leads.
    return replace(
        s,
        record=changed(s.record, b, s.log_end(b), to=epoch),
        log_end=changed(s.log_end, b, to=s.log_end(b) + 1),
        hist=changed(s.hist, epoch, end, to=epoch),
        hist_end=changed(s.hist_end, epoch, to=end + 1),
    )


def truncate(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let a follower truncate its log where it and its leader differ, or at any offset above that.

    The response was made for a request of epoch `sent`. One of the follower's present epoch was made for its present log: a
    follower has one fetch in flight.
    """
    f, epoch = any_follower(path, s)
    target, sent = path.integer("target", low=0), path.integer("sent", low=0)
    # A fetcher thread that has other partitions lives on over a change of leader, so the response to an old request arrives
    # if the broker that led then leads again.
    path.assume(z3.And(s.begun(sent), sent <= epoch, s.leader(sent) == s.leader(epoch)))
    checked = not path.drops(CommittedPremise.RESPONSE_OF_ITS_EPOCH)
    offset = s.log_end(f)  # any: a follower whose log has ended elsewhere drops the response
    # True: the follower's entry is ready. A response that it drops changes nothing.
    if not path.decide(path.call("accepts_fetch_response", offset, epoch, True, offset, sent, checked)):
        return s
    # The response may be old. The leader's log has only grown since, by records of its epoch, and the follower's record at
    # a difference is not of that epoch: where they differed they differ still.
    differs = z3.Or(target >= s.hist_end(sent), s.record(f, target) != s.hist(sent, target))
    path.assume(z3.And(target < s.log_end(f), differs))
    lowered = path.call("high_watermark_after_truncation", s.hw(f), target)
    # A truncation below the log start leaves an empty log.
    start = z3.If(target < s.log_start(f), target, s.log_start(f))
    return replace(
        s,
        log_start=changed(s.log_start, f, to=start),
        log_end=changed(s.log_end, f, to=target),
        hw=changed(s.hw, f, to=lowered),
    )


def ask(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let a follower whose log is a prefix of its leader's send a fetch at its log end.

    Any other fetch gets a diverging response whenever it arrives, and nothing is recorded.
    """
    f, epoch = any_follower(path, s)
    end = s.log_end(f)
    # By log matching, logs that agree on the last record of one of them agree on all below it.
    last_agrees = z3.Or(end == 0, s.record(f, end - 1) == s.hist(epoch, end - 1))
    path.assume(z3.And(end <= s.hist_end(epoch), last_agrees))
    # An older request with a lower offset may still arrive after this one, so the highest is kept.
    highest = higher(s.asked(epoch, f), end)
    return replace(s, asked=changed(s.asked, epoch, f, to=highest))


def serve(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let a leader, deposed or not, record the fetch offset of a request as the log end of its sender.

    The request may be the last one, an old one, or one that arrives twice, whatever its sender does now. It was sent in
    epoch `sent`: perhaps an earlier one that this broker led.
    """
    f, epoch, offset = any_broker(path, s, "follower"), path.integer("epoch"), path.integer("offset", low=0)
    sent = path.integer("sent")
    # Any offset at which it once asked: requests arrive late, twice and out of order.
    path.assume(z3.And(leads(s, epoch), s.leader(epoch) != f, offset <= s.asked(sent, f)))
    path.assume(z3.And(is_epoch(s, sent), sent <= epoch, s.leader(sent) == s.leader(epoch)))
    fences = not path.drops(CommittedPremise.REQUEST_OF_ITS_EPOCH)
    # True: the broker leads. A request that it refuses changes nothing.
    if path.decide(path.call("request_error", sent, epoch, True, fences) != NO_ERROR):
        return s
    # Where the record before the offset is another by now, the response says that the logs diverge.
    same = s.hist(sent, offset - 1) == s.hist(epoch, offset - 1)
    path.assume(z3.Or(offset == 0, z3.And(offset <= s.hist_end(epoch), same)))
    return replace(s, remote=changed(s.remote, epoch, f, to=offset))


def take(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let a follower append the records of a fetch response, which may have been in flight for any time.

    They are records of the leader's log from the follower's log end on, up to any end. The high watermark in the response is
    one that the leader had then: any that is not above its last.
    """
    f, epoch = any_follower(path, s)
    end, new_end, reported = s.log_end(f), path.integer("new_end"), path.integer("reported", low=0)
    # Any response in this epoch to a fetch at the follower's log end, with any number of records.
    path.assume(z3.And(end <= s.asked(epoch, f), end <= new_end, new_end <= s.hist_end(epoch), reported <= s.shown(epoch)))
    followed = path.call("follower_high_watermark", reported, s.log_start(f), new_end)
    # A follower whose log starts above the reported high watermark is clamped to its log start: that was reached before.
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
    # PendingExpandIsr#maximalIsr has the new member at once, PendingShrinkIsr#maximalIsr the leaving one until the
    # controller has taken it out.
    if path.drops(CommittedPremise.COUNT_WHO_IS_TO_JOIN):
        return s.view(e, r)
    if path.drops(CommittedPremise.COUNT_WHO_IS_TO_LEAVE):
        return z3.If(s.status(e) == NONE, s.view(e, r), s.proposed(e, r))
    return in_maximal_isr(s, e, r)


def commit(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let a leader, deposed or not, raise its high watermark to what everybody has who may be in the ISR, by the rule.

    Whether the ISR is too small for min.insync.replicas is left open: if it is, the rule does not raise the high watermark.
    Without the premise COMMIT_NEEDS_ALL the leader waits for an arbitrary set.
    """
    epoch = path.integer("epoch")
    path.assume(leads(s, epoch))
    # The other brokers that the leader waits for.
    waits, r = any_set("waits"), z3.Int("r")
    # The leader counts its own log end without a fetch (Partition#maybeIncrementLeaderHW).
    counts = waits(r) == z3.And(_counts(path, s, epoch, r), r != s.leader(epoch))
    if not path.drops(CommittedPremise.COMMIT_NEEDS_ALL):
        path.forall([r], counts, waits(r))
        path.forall([r], counts, s.view(epoch, r))
        path.forall([r], counts, s.proposed(epoch, r))
    b, too_few = s.leader(epoch), z3.Bool("too_few")
    # The sequences that the rule reads, one value per broker: its recorded log end, and whether it counts.
    leos = AnySeq(path, lambda i: s.remote(epoch, i), s.brokers)
    others = AnySeq(path, waits, s.brokers)
    hw = path.call("leader_high_watermark", s.hw(b), s.hist_end(epoch), leos, others, too_few)
    # A high watermark that stays commits nothing.
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


# Steps that change a log besides fetching: restarts, lost tails, deleted records, a reset to the leader's log start.


def restart(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let a follower restart with its whole log and a high watermark from its checkpoint.

    The broker is no leader: by the premise one that restarts leads only in a later epoch (`learn`).
    """
    b = any_broker(path, s, "restarts")
    path.assume(z3.Or(s.known(b) < 0, s.leader(s.known(b)) != b), CommittedPremise.RESTART_LEADS_LATER)
    # Its checkpoint may be older than the high watermark that it had.
    loaded = checkpoint(path, s, b, s.log_end(b))
    return replace(s, hw=changed(s.hw, b, to=loaded))


def lose_tail(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let a broker restart without its last records: as another broker, with any prefix of the log.

    Where the controller does not take it out of the ISR when it registers (4.0.0 and later: KAFKA-18106), the new
    incarnation takes the old one's place in the ISR.
    """
    b, new = any_broker(path, s, "restarts"), s.brokers  # the new incarnation gets the next number
    path.assume(z3.Not(s.isr(s.current, b)), CommittedPremise.LEFT_ISR_FIRST)
    end, no = path.integer("left"), z3.BoolVal(False)
    # Records above the last flush may be lost with a crash, so any prefix may be left.
    path.assume(z3.And(s.log_start(b) <= end, end <= s.log_end(b)))
    loaded = checkpoint(path, s, b, end)
    in_isr = s.isr(s.current, b)  # only without the premise: the new incarnation is then a member with less of the log
    # The new incarnation knows, and has in its log, what the old one did; no leader has recorded or counts it.
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
    """Let a broker raise its log start: by retention, DeleteRecords, or because its leader's log start has moved."""
    b, start = any_broker(path, s, "deletes"), path.integer("start")
    path.assume(z3.And(s.log_start(b) < start, start <= s.log_end(b)))
    path.assume(start <= s.hw(b), CommittedPremise.DELETE_BELOW_HIGH_WATERMARK)
    # Where b leads, its log start is also what it reports to followers.
    return replace(
        s,
        log_start=changed(s.log_start, b, to=start),
        deleted=lambda e: z3.If(z3.And(leads(s, e), s.leader(e) == b), start, s.deleted(e)),
    )


def reset(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let a follower whose log ends below its leader's log start drop it and begin there.
    UnifiedLog#truncateFullyAndStartAt.

    The response may be old, and the log start in it too.
    """
    f, epoch = any_follower(path, s)
    leader_start, leader_end = path.integer("leader_start", low=0), path.integer("leader_end")
    path.assume(z3.And(leader_start <= s.deleted(epoch), leader_start <= leader_end, leader_end <= s.hist_end(epoch)))
    # The leader's offsets are its responses to ListOffsets.
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
        # Raised, or lowered, to the new log start, which the leader's high watermark had reached.
        hw=changed(s.hw, f, to=target),
        origin=changed(s.origin, f, to=s.shown_from(epoch)),
    )


DISK_STEPS = (restart, lose_tail, delete, reset)


# ISR changes: a leader proposes one, the controller takes or refuses it, the leader learns of it, in any order.
#
# AlterPartition and its response may be in flight for any time. A leader has one change in flight, and gives it up when it
# learns of a newer ISR; the request it sent may still arrive at the controller. Deposed leaders propose, too.


def _propose(s: ClusterState, epoch: Any, members: Function) -> ClusterState:
    """Return the state in which the leader of an epoch has sent a request for the ISR `members`, a set of brokers."""
    return replace(
        s, proposed=lambda e, b: z3.If(e == epoch, members(b), s.proposed(e, b)), status=changed(s.status, epoch, to=SENT)
    )


def _any_leader_without_proposal(path: ProofPath, s: ClusterState) -> Any:
    """Return an epoch whose leader leads, deposed or not, and has no change in flight."""
    epoch = path.integer("epoch")
    path.assume(z3.And(leads(s, epoch), s.status(epoch) == NONE))
    return epoch


def propose_shrink(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let a leader propose an ISR without some of its other members."""
    epoch, stays = _any_leader_without_proposal(path, s), any_set("stays")
    path.assume(stays(s.leader(epoch)))
    # Any of the others may leave: who is caught up depends on time, of which the proof knows nothing.
    return _propose(s, epoch, lambda b: z3.And(s.view(epoch, b), stays(b)))


def propose_expand(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let a leader propose an ISR with one more member, which the rule `may_join_isr` admits."""
    epoch, joins = _any_leader_without_proposal(path, s), any_broker(path, s, "joins")
    # Without a premise the rule gets 0, which every replica has reached.
    hw = 0 if path.drops(CommittedPremise.JOIN_AT_HIGH_WATERMARK) else s.hw(s.leader(epoch))
    start = 0 if path.drops(CommittedPremise.JOIN_AT_EPOCH_START) else s.start(epoch)
    # The leader knows only the log end that it has recorded, which may be old.
    path.assume(path.call("may_join_isr", s.remote(epoch, joins), hw, start))
    return _propose(s, epoch, lambda b: z3.Or(s.view(epoch, b), b == joins))


def _with_isr(s: ClusterState, members: Function) -> ClusterState:
    """Return the state in which the controller has written a new version of the latest epoch's ISR, the set `members`."""
    now, version = s.current, s.version(s.current) + 1
    return replace(
        s,
        isr=lambda e, b: z3.If(e == now, members(b), s.isr(e, b)),
        version=changed(s.version, now, to=version),
        image=lambda e, v, b: z3.If(z3.And(e == now, v == version), members(b), s.image(e, v, b)),
    )


def accept(path: ProofPath, s: ClusterState) -> ClusterState:
    """Let the controller accept an ISR change: the one in flight, or one that its leader has given up since.

    `version` is the one that the leader knew when it sent the change.
    """
    epoch, version = path.integer("epoch"), path.integer("version", low=0)
    path.assume(z3.And(epoch == s.current, version == s.version(s.current)), CommittedPremise.CHANGE_KNOWS_THE_LATEST)
    if path.decide(z3.And(s.begun(epoch), s.status(epoch) == SENT, version == s.known_version(epoch))):
        # The change in flight.
        b = z3.Int("b")
        no_old = z3.Implies(s.proposed(epoch, b), z3.Not(s.gone(b)))
        # KIP-903: the request names the broker epoch of each member, and the controller knows the latest.
        if not path.drops(CommittedPremise.NO_OLD_INCARNATION):
            path.forall([b], no_old, s.proposed(epoch, b))
            path.forall([b], no_old, s.gone(b))
        accepted = _with_isr(s, lambda b: s.proposed(epoch, b))
        return replace(accepted, status=changed(s.status, epoch, to=ACCEPTED))
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
    """Let a leader learn of any later ISR of its epoch, by the response to its change or by metadata.

    It then has no change in flight any more: it gives up its own proposal for the newer ISR.
    """
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


# The proof that committed data is safe: every step of the cluster keeps the invariant, and the claims follow from it.


def new_cluster(path: ProofPath) -> ClusterState:
    """Return the first state: empty logs, no epoch learned, every broker in the ISR of epoch 0, any of them elected."""
    s, first = any_cluster(), path.integer("first")
    zero, no = z3.IntVal(0), z3.BoolVal(False)
    path.assume(z3.And(s.brokers > 0, first >= 0, first < s.brokers))
    # Any other member may be anything: records of empty logs, histories of epochs that have not begun.
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
    # The record at o, which the leader of epoch e has committed; f is a later epoch, r a broker.
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

"""Events at a leader, except fetches: append, ISR proposals and their responses, produce responses, consumer reads.

Rules of this file

1. A proposal counts for the high watermark from the moment it is made: the maximal ISR.
2. A response to a client is judged by the high watermark that the leader has at that moment.

`st` is the judge's table (conformance.judge.state): row REPLICAS + b is the replica of broker b, which reports the event;
PENDING there is its proposal without a response, a bit mask, 0 without one. Row `p` is what is in flight between a follower
`f` and leader b, and what b recorded of it (REMOTE is its LEO). An ISR is a bit mask. UNKNOWN: no event shows the value.
OLD_KIND and MORE_OVERTAKEN are a request that another overtook, and whether there are more. LAG_RULE is 1 where a replica
outside the ISR may hold the high watermark back for a while, as in brokers' logs and on their disks. `decide(st, rule, ok,
field, expected, actual)` counts a check as held or failed, `undecided(st, rule, missing)` one that lacks the fields in the
bit mask `missing`.
"""

from tidegauge.conformance.judge import fields as field
from tidegauge.conformance.judge import state as s
from tidegauge.conformance.judge.elections import read_min_isr
from tidegauge.conformance.judge.events.leader_hw import advance, is_stale, size_of, under_min
from tidegauge.conformance.judge.events.roles import check_registered
from tidegauge.conformance.judge.field_groups import Records, ReportedLog
from tidegauge.conformance.judge.fields import RULE
from tidegauge.conformance.judge.in_flight import HANDLED, agree_if_known
from tidegauge.conformance.judge.lineage import cache_assign
from tidegauge.conformance.judge.log_checks import (
    acts_on,
    alive,
    cache_in_order,
    hw_unmoved,
    hw_within_log,
    leo_becomes,
    leo_unmoved,
    log_unmoved,
    responds,
)
from tidegauge.conformance.judge.tally import as_expected, decide, same, undecided
from tidegauge.conformance.judge.terms import acknowledge
from tidegauge.impl.rules import GIVEN_UP, NONE, may_join_isr, proposal_after
from tidegauge.traces.columns import UNKNOWN


def leader_append(
    st: s.State, b: int, epoch: int, data: Records, acks: int, before: ReportedLog, after: ReportedLog
) -> None:
    """Judge LeaderAppend: leader b appends records of its own epoch at its LEO (APPEND-01). UnifiedLog#appendAsLeader.

    `epoch` is the leader epoch that the event reports, `acks` what the producer asked for (-1 is acks=all).
    """
    alive(st, b)
    log_unmoved(st, b, before)
    enough_in_sync(st, b, acks)
    own = st[s.REPLICAS + b, s.EPOCH]
    if epoch != UNKNOWN and own != UNKNOWN:
        as_expected(st, RULE.APPEND_01, field.LEADER_EPOCH, own, epoch)
    if st[s.REPLICAS + b, s.ROLE] != UNKNOWN:
        decide(
            st, RULE.APPEND_01, st[s.REPLICAS + b, s.ROLE] == s.LEADING, field.ROLE, s.LEADING, st[s.REPLICAS + b, s.ROLE]
        )
    if data.epoch != UNKNOWN:
        same(st, RULE.APPEND_01, field.REC_EPOCH, own, data.epoch, 1 << field.LEADER_EPOCH)
    same(st, RULE.APPEND_01, field.REC_BASE, st[s.REPLICAS + b, s.LEO], data.base, 1 << field.LEO)
    cache_assign(st, b, data.epoch if data.epoch != UNKNOWN else own, data.base)
    leo_becomes(st, b, RULE.APPEND_01, data.end, after.leo, 1 << field.REC_END)
    cache_in_order(st, b)
    advance(st, b, after.hw, 1)
    hw_within_log(st, b)


def enough_in_sync(st: s.State, b: int, acks: int) -> None:
    """Check APPEND-03: acks=all needs min.insync.replicas members in the committed ISR. Partition#appendRecordsToLeader."""
    isr = st[s.REPLICAS + b, s.ISR]
    if UNKNOWN in (acks, isr):
        undecided(st, RULE.APPEND_03, 1 << field.ACKS | 1 << field.ISR)
    elif acks == -1 and read_min_isr(st, b) == UNKNOWN:
        undecided(st, RULE.APPEND_03, 1 << field.MIN_ISR)
    # A broker's log does not show when the leader reads a smaller ISR, so the ISR of this append is not certain there.
    elif acks == -1 and st[s.OPTION, s.LAG_RULE] == 0:
        short = under_min(st, b, isr)
        if short == UNKNOWN:
            undecided(st, RULE.APPEND_03, 1 << field.REPLICAS)
        else:
            min_isr, members = read_min_isr(st, b), size_of(isr, st[s.OPTION, s.BROKERS])
            decide(st, RULE.APPEND_03, short == 0, field.IN_SYNC, min_isr, members)


# ---------------------------------------------------------------------------------------------------------------------
# In-sync replicas


def propose(st: s.State, b: int, isr: int) -> None:
    """Check ISR-03: one proposal at a time, and only a leader's; then `isr` is what leader b proposes."""
    pending = st[s.REPLICAS + b, s.PENDING]
    # A leader that forgets a proposal (finding F3) may make another one. AlterPartitionManager sends one at a time
    # even so, but the controller may have accepted the first, so its members go on counting.
    erased = st[s.REPLICAS + b, s.ERASED] == 1
    if pending == UNKNOWN:
        undecided(st, RULE.ISR_03, 1 << field.ISR)
    else:
        role = st[s.REPLICAS + b, s.ROLE]
        if role in (s.LEADING, UNKNOWN):
            decide(st, RULE.ISR_03, pending == 0 or erased, field.PENDING_ISR, 0, pending)
        else:
            decide(st, RULE.ISR_03, False, field.ROLE, s.LEADING, role)
    st[s.REPLICAS + b, s.PENDING] = isr | pending if erased and UNKNOWN not in (isr, pending) else isr
    st[s.REPLICAS + b, s.ERASED] = 0
    st[s.REPLICAS + b, s.PROPOSED] = isr


def expand_isr(st: s.State, b: int, f: int, isr: int, remote_leo: int, broker_epoch: int) -> None:
    """Check ISR-01: the proposal `isr` adds replica f only, and f has caught up (Partition#isFollowerInSync).

    `remote_leo` is f's LEO as the event reports it, `broker_epoch` that of the process of f that is to join.
    """
    alive(st, b)
    hw, epoch_start = st[s.REPLICAS + b, s.HW], st[s.REPLICAS + b, s.EPOCH_START]
    # Older leaders let a replica join that has the high watermark, wherever the leader epoch begins.
    if not s.has_switch(st, s.JOIN_NEEDS_EPOCH_START, b):
        epoch_start = 0
    joins = remote_leo if remote_leo != UNKNOWN else st[s.pair(st, f, b), s.REMOTE]
    if UNKNOWN in (hw, epoch_start, joins):
        undecided(st, RULE.ISR_01, 1 << field.REMOTE_LEO | 1 << field.HW | 1 << field.EPOCH_START)
    elif may_join_isr(joins, hw, epoch_start):
        decide(st, RULE.ISR_01, True, field.REMOTE_LEO, joins, joins)
    # Only a log end that the event itself reports can fail; one recorded earlier may be outdated.
    elif remote_leo != UNKNOWN:
        decide(st, RULE.ISR_01, False, field.REMOTE_LEO, max(hw, epoch_start), joins)
    else:
        undecided(st, RULE.ISR_01, 1 << field.REMOTE_LEO)
    # The fetch with which the replica catches up makes the leader propose it (Partition#updateFollowerFetchState,
    # #maybeExpandIsr), so its LEO is that of a fetch. In a broker's log the line of the proposal comes before the fetch's.
    if remote_leo != UNKNOWN and st[s.OPTION, s.LAG_RULE] == 0:
        own = st[s.REPLICAS + b, s.EPOCH] if s.has_switch(st, s.FENCING, f) else UNKNOWN
        log_end_was_fetched(st, s.pair(st, f, b), f, own, remote_leo)
    old = st[s.REPLICAS + b, s.ISR]
    if old != UNKNOWN and isr != UNKNOWN:
        decide(st, RULE.ISR_01, isr == old | 1 << f and old >> f & 1 == 0, field.ISR, old | 1 << f, isr)
    propose(st, b, isr)
    st[s.REPLICAS + b, s.PROPOSED_BROKER_EPOCH] = broker_epoch


def log_end_was_fetched(st: s.State, p: int, f: int, own: int, remote_leo: int) -> None:
    """Check ISR-01: f joins with a LEO from which it fetched: that of the fetch in flight, or the one recorded last.

    `own` is the leader epoch that the fetch in flight must have; UNKNOWN where requests have none.
    """
    kind, recorded = st[p, s.KIND], st[p, s.REMOTE]
    # Nothing to compare with. A request that was overtaken may have been handled too, and its offset recorded.
    if recorded == UNKNOWN or st[p, s.OLD_KIND] in (s.REQUEST, UNKNOWN) or st[p, s.MORE_OVERTAKEN] == 1:
        return
    if st[s.PARTITION, s.OBSERVED] >> f & 1 == 0:  # a follower without events may have sent anything
        return
    if kind == s.REQUEST:
        # A fetch of another leader epoch is refused, and records nothing.
        at_hand = st[p, s.REQ_OFFSET] if agree_if_known(st[p, s.REQ_EPOCH], own) else recorded
        if at_hand != UNKNOWN:
            decide(st, RULE.ISR_01, remote_leo in (at_hand, recorded), field.REMOTE_LEO, at_hand, remote_leo)
        return
    # The fetch in flight was handled already, so the LEO is the recorded one, unless fetches may be missing or repeated.
    # STALE_LEO is what b had recorded before it was elected again: to count that still is F2, and does not break ISR-01.
    one_at_a_time = st[s.OPTION, s.DUPLICATES] == 0 and st[s.OPTION, s.REPORTS_SEND_FETCH] == 1
    if one_at_a_time and (kind == s.NOTHING or kind in HANDLED) and remote_leo != st[p, s.STALE_LEO]:
        decide(st, RULE.ISR_01, remote_leo == recorded, field.REMOTE_LEO, recorded, remote_leo)


def shrink_isr(st: s.State, b: int, isr: int, leo: int, hw: int) -> None:
    """Check ISR-02: in the proposal `isr` the leader stays, and a member that is removed has not reached the log end."""
    alive(st, b)
    leo_unmoved(st, b, leo, field.LEO)
    hw_unmoved(st, b, hw, field.HW)
    old, end = st[s.REPLICAS + b, s.ISR], st[s.REPLICAS + b, s.LEO]
    if UNKNOWN in (old, isr, end):
        undecided(st, RULE.ISR_02, 1 << field.ISR | 1 << field.LEO)
    else:
        n = st[s.OPTION, s.BROKERS]
        decide(st, RULE.ISR_02, isr >> b & 1 == 1 and isr | old == old and isr != old, field.ISR, old, isr)
        for r in range(n):
            if old >> r & 1 == 1 and isr >> r & 1 == 0 and r != b:
                remote = st[s.pair(st, r, b), s.REMOTE]
                # A leader that forgets LEOs of earlier epochs (F2 repaired) removes a member that has not fetched since.
                if remote == UNKNOWN or (remote == end and is_stale(st, b, r)):
                    undecided(st, RULE.ISR_02, 1 << field.REMOTE_LEO)
                else:
                    decide(st, RULE.ISR_02, remote != end, field.REMOTE_LEO, end - 1, remote)
    propose(st, b, isr)


def handle_alter_partition_response(
    st: s.State, b: int, isr: int, partition_epoch: int, error: int, hw_before: int, hw: int
) -> None:
    """Judge the response to a proposal, with the ISR and partition epoch in it, or an error.

    Partition#handleAlterPartitionUpdate, #handleAlterPartitionError.
    """
    alive(st, b)
    hw_unmoved(st, b, hw_before, field.HW_BEFORE)
    # With the error unknown the proposal may be committed, given up or still pending.
    if error == UNKNOWN:
        st[s.REPLICAS + b, s.PENDING] = UNKNOWN
        st[s.REPLICAS + b, s.ISR] = UNKNOWN
        st[s.REPLICAS + b, s.PARTITION_EPOCH] = UNKNOWN
        advance(st, b, hw, UNKNOWN)
    elif error == NONE:
        acts_on(st, b, partition_epoch)
        # A response that does not report the ISR has committed the proposal in flight.
        if isr < 0:
            isr = UNKNOWN if st[s.REPLICAS + b, s.PENDING] == 0 else st[s.REPLICAS + b, s.PENDING]
        # In brokers' logs the line of the registration may come later.
        elif st[s.OPTION, s.LAG_RULE] == 0 and st[s.REPLICAS + b, s.EPOCH] != UNKNOWN:
            check_registered(st, st[s.REPLICAS + b, s.EPOCH], isr, st[s.REPLICAS + b, s.EPOCH])
        st[s.REPLICAS + b, s.ISR] = isr
        st[s.REPLICAS + b, s.PENDING] = 0
        advance(st, b, hw, 1)
    else:
        pending, proposed = st[s.REPLICAS + b, s.PENDING], st[s.REPLICAS + b, s.PROPOSED]
        # After an erased proposal several count: the response may be to any of them.
        if isr >= 0 and pending != UNKNOWN and (pending in (0, proposed) or pending | isr != pending):
            as_expected(st, RULE.ISR_03, field.ISR, pending, isr)
        # Other errors leave it pending, since the controller may have committed it (rules.proposal_after).
        if proposal_after(error) == GIVEN_UP:
            st[s.REPLICAS + b, s.PENDING] = 0
        hw_unmoved(st, b, hw, field.HW)
    hw_within_log(st, b)


# ---------------------------------------------------------------------------------------------------------------------
# Clients


def produce_ack(st: s.State, b: int, acks: int, end: int, epoch: int, error: int) -> None:
    """Check ACK-01: an acks=all produce is answered once the high watermark has passed it; and by a leader (ACK-02).

    `end` is the offset after its records, `epoch` their leader epoch.
    """
    responds(st, b, error)
    acknowledged_by_leader(st, b, acks, error)
    # Only an acknowledgement of acks=all promises that the record is committed.
    if error != NONE or acks != -1 or end == UNKNOWN:
        # Undecided only where it may be one: an error or other acks promise nothing.
        if error in (NONE, UNKNOWN) and acks in (-1, UNKNOWN):
            undecided(st, RULE.ACK_01, 1 << field.ACKS | 1 << field.ERROR | 1 << field.REC_END)
        return
    hw = st[s.REPLICAS + b, s.HW]
    if hw == UNKNOWN:
        undecided(st, RULE.ACK_01, 1 << field.HW)
    else:
        decide(st, RULE.ACK_01, hw >= end, field.HW, end, hw)
    # An acknowledged record is a promise: every later leader and member of the ISR must have it (DATA-03).
    acknowledge(st, b, end, epoch)


def acknowledged_by_leader(st: s.State, b: int, acks: int, error: int) -> None:
    """Check ACK-02: a broker that was deposed answers waiting producers NOT_LEADER_OR_FOLLOWER. DelayedProduce#tryComplete.

    It does so before it reads more metadata (#completeDelayedOperationsWhenNotPartitionLeader): all it remembers is where
    the records ended, and another leader's may stand there by then.
    """
    role = st[s.REPLICAS + b, s.ROLE]
    # With other acks nobody waits for a high watermark.
    if acks not in (-1, UNKNOWN):
        return
    if error not in (NONE, UNKNOWN):
        if acks == -1 and role == s.FOLLOWING:
            decide(st, RULE.ACK_02, True, field.ERROR, error, error)
        return
    # A broker's log has its line when the response is sent: it may have led when it decided.
    late = st[s.OPTION, s.LAG_RULE] == 1 and role != s.LEADING
    if late or UNKNOWN in (error, acks, role):
        undecided(st, RULE.ACK_02, 1 << field.ACKS | 1 << field.ERROR | 1 << field.LEADER_EPOCH)
    else:
        decide(st, RULE.ACK_02, role == s.LEADING, field.ROLE, s.LEADING, role)


def consumer_read(st: s.State, b: int, bound: int, end: int) -> None:
    """Check READ-01: no consumer is shown a record at or above the high watermark.

    `bound` is the offset up to which the broker let it read, `end` the one after the records that it got.
    """
    alive(st, b)
    # The response may report the bound up to which it read, or only the end of its records.
    shown = bound if bound != UNKNOWN else end
    hw = st[s.REPLICAS + b, s.HW]
    if UNKNOWN in (hw, shown):
        undecided(st, RULE.READ_01, 1 << field.HW | 1 << field.BOUND)
    else:
        decide(st, RULE.READ_01, shown <= hw, field.BOUND, hw, shown)
    if end != UNKNOWN and bound != UNKNOWN:
        decide(st, RULE.READ_01, end <= bound, field.REC_END, bound, end)

"""Roles: metadata makes a replica leader or follower.

Rule of this file: a Kafka broker that restarts replays old metadata and logs itself as leader or follower of past epochs.
Until it has caught up with the controller such a role is noted, but opens no term, and its high watermark is not judged.

    controller   epoch 3: b2 leads                                          (latest)
    b1           Start    BecomeLeader epoch 1   BecomeLeader epoch 2   BecomeFollower epoch 3
                          replayed               replayed               caught up

`st` is the judge's table (conformance.judge.state): row REPLICAS + b is the replica of broker b, which reports the event;
the row of a pair, s.pair(st, r, b), has what leader b recorded of follower r. A term is a leader epoch of one leader, with
the log that it was elected with. An ISR is a bit mask. UNKNOWN: no event shows the value; it is below every number. -1:
there is none.
"""

from tidegauge.conformance.judge import fields as field
from tidegauge.conformance.judge import state as s
from tidegauge.conformance.judge.elections import assigned_in, was_registered
from tidegauge.conformance.judge.events.leader_hw import advance
from tidegauge.conformance.judge.field_groups import ReportedLog
from tidegauge.conformance.judge.fields import RULE
from tidegauge.conformance.judge.lineage import cache_assign, cache_latest
from tidegauge.conformance.judge.log_checks import (
    acts_on,
    alive,
    cache_in_order,
    hw_unmoved,
    hw_within_log,
    leo_unmoved,
    log_unmoved,
    set_hw,
    set_leo,
    take_first_log_start,
)
from tidegauge.conformance.judge.tally import as_expected, decide, same, undecided
from tidegauge.conformance.judge.terms import check_one_leader, close_term, forget_appends, open_term
from tidegauge.impl.rules import forgets_log_ends
from tidegauge.traces.columns import UNKNOWN


def forget_log_ends(st: s.State, b: int, value: int) -> None:
    """Set the log ends that leader b recorded of its followers to `value`: -1 (they have not fetched yet) or UNKNOWN.

    With each log end goes the epoch before it (REMOTE_EPOCH), and what mark_log_ends_stale set aside before (STALE_LEO).
    """
    n = st[s.OPTION, s.BROKERS]
    # Without events of fetches no log end that is recorded later is seen.
    if st[s.OPTION, s.REPORTS_HANDLE_FETCH] == 0:
        value = UNKNOWN
    for r in range(n):
        st[s.pair(st, r, b), s.REMOTE] = value
        st[s.pair(st, r, b), s.REMOTE_EPOCH] = value
        st[s.pair(st, r, b), s.STALE_LEO] = value


def mark_log_ends_stale(st: s.State, b: int) -> None:
    """Set the log ends that leader b recorded aside as STALE_LEO: a new leader epoch forgets them.

    By STALE_LEO the judge notices a leader that still counts them (finding F2).
    """
    for r in range(st[s.OPTION, s.BROKERS]):
        p = s.pair(st, r, b)
        leo = st[p, s.REMOTE]
        st[p, s.REMOTE] = -1
        st[p, s.REMOTE_EPOCH] = -1
        if st[s.OPTION, s.REPORTS_HANDLE_FETCH] == 0:
            st[p, s.REMOTE] = UNKNOWN
            st[p, s.REMOTE_EPOCH] = UNKNOWN
        st[p, s.STALE_LEO] = leo


def check_metadata(st: s.State, b: int, epoch: int, leader: int, isr: int) -> None:
    """Check EPOCH-03, EPOCH-04 and CTRL-03: the metadata that replica b acts on is not older than before, and registered.

    `epoch`, `leader` and `isr` are those of the metadata.
    """
    old = st[s.REPLICAS + b, s.EPOCH]
    if old != UNKNOWN:
        decide(st, RULE.EPOCH_03, epoch >= old, field.LEADER_EPOCH, old, epoch)
    forgotten = epoch <= st[s.PARTITION, s.FORGOTTEN_UPTO]
    if leader != UNKNOWN and forgotten:
        undecided(st, RULE.EPOCH_04, 1 << field.LEADER)
    elif leader != UNKNOWN:
        check_one_leader(st, epoch, leader)
    check_registered(st, epoch, isr, old)


def check_registered(st: s.State, epoch: int, isr: int, old: int) -> None:
    """Check CTRL-03: the controller has registered this ISR in this leader epoch.

    `old` is the leader epoch of the broker before, UNKNOWN where nothing was known of it.
    """
    forgotten = epoch <= st[s.PARTITION, s.FORGOTTEN_UPTO]
    latest = st[s.PARTITION, s.C_EPOCH]
    controller_observed = st[s.PARTITION, s.OBSERVED] >> st[s.OPTION, s.BROKERS] & 1 == 1
    first = st[s.PARTITION, s.FIRST_EPOCH]
    # From before the first registration of the trace, or from a controller whose events the trace does not have.
    if UNKNOWN in (latest, first) or epoch < first or forgotten or not controller_observed:
        undecided(st, RULE.CTRL_03, 1 << field.LEADER_EPOCH)
    # No registration has this epoch yet: the broker has made it up.
    elif epoch > latest:
        decide(st, RULE.CTRL_03, False, field.LEADER_EPOCH, latest, epoch)
    # Without the ISR, only the leader epoch can be compared, and that is registered.
    elif UNKNOWN in (isr, st[s.PARTITION, s.C_ISR]):
        decide(st, RULE.CTRL_03, True, field.LEADER_EPOCH, epoch, epoch)
    else:
        registered = was_registered(st, epoch, isr)
        # A broker of which nothing was known may act on a change from before the trace, so only a later one can fail.
        if registered == 1 or (registered == 0 and old != UNKNOWN):
            decide(st, RULE.CTRL_03, registered == 1, field.ISR, st[s.PARTITION, s.C_ISR], isr)
        else:
            undecided(st, RULE.CTRL_03, 1 << field.ISR)


def update_assignment(st: s.State, b: int, epoch: int, partition_epoch: int, isr: int) -> None:
    """Set the replicas as leader b knows them, by the metadata that it acts on. Partition#updateAssignmentAndIsr."""
    replicas = assigned_in(st, epoch, partition_epoch, isr)
    st[s.REPLICAS + b, s.ASSIGNED] = replicas
    if replicas == UNKNOWN:
        return
    # Kafka drops what the leader recorded of replicas that are assigned no more.
    for r in range(st[s.OPTION, s.BROKERS]):
        if replicas >> r & 1 == 0:
            # -1: nothing is recorded of it; without events of fetches it is not seen what is recorded later.
            value = -1 if st[s.OPTION, s.REPORTS_HANDLE_FETCH] == 1 else UNKNOWN
            st[s.pair(st, r, b), s.REMOTE] = value
            st[s.pair(st, r, b), s.REMOTE_EPOCH] = value


def become_leader(
    st: s.State,
    b: int,
    epoch: int,
    partition_epoch: int,
    isr: int,
    epoch_start: int,
    before: ReportedLog,
    after: ReportedLog,
) -> None:
    """Judge BecomeLeader, in a new leader epoch or with a change of the ISR in the same one. Partition#makeLeader.

    `epoch_start` is the LEO at which the leader epoch begins, as the event reports it.
    """
    alive(st, b)
    log_unmoved(st, b, before)
    leo_unmoved(st, b, after.leo, field.LEO)
    old, role = st[s.REPLICAS + b, s.EPOCH], st[s.REPLICAS + b, s.ROLE]
    # A line of BecomeLeader has the epoch start. A replayed role is reported without it, in an epoch the controller is past.
    replay = (
        epoch_start == UNKNOWN and st[s.REPLICAS + b, s.FRESH] == 1 and UNKNOWN not in (epoch, st[s.PARTITION, s.C_EPOCH])
    )
    replay = replay and epoch < st[s.PARTITION, s.C_EPOCH]
    if epoch != UNKNOWN:
        check_metadata(st, b, epoch, b, isr)
    first = old == UNKNOWN and epoch_start != UNKNOWN and epoch_start == st[s.REPLICAS + b, s.LEO]
    pending = pending_after_metadata(st, b, epoch, partition_epoch, isr, first)
    acts_on(st, b, partition_epoch)
    st[s.REPLICAS + b, s.EPOCH] = epoch
    st[s.REPLICAS + b, s.ROLE] = s.LEADING
    st[s.REPLICAS + b, s.LEADER] = b
    st[s.REPLICAS + b, s.ISR] = isr
    st[s.REPLICAS + b, s.PENDING] = pending
    st[s.REPLICAS + b, s.ERASED] = pending not in (0, UNKNOWN)
    st[s.REPLICAS + b, s.MORE_ROUNDS] = 0
    st[s.REPLICAS + b, s.HW_MOVED] = -1
    update_assignment(st, b, epoch, partition_epoch, isr)
    # A leader that is first observed in the middle of its epoch was elected before: what it recorded since is unknown.
    begun = old == UNKNOWN and (epoch_start == UNKNOWN or epoch_start < st[s.REPLICAS + b, s.LEO])
    if replay or begun or epoch == UNKNOWN:
        st[s.REPLICAS + b, s.EPOCH_START] = st[s.REPLICAS + b, s.LEO] if replay else epoch_start
        close_term(st, b)
        forget_appends(st, b)  # what it appends now belongs to no term
        if epoch == UNKNOWN or cache_latest(st, b) < epoch:
            st[s.REPLICAS + b, s.CACHED] = UNKNOWN
    if replay:
        # Its ISR is out of date, so HW-03 cannot be checked; that nothing lowers the high watermark can.
        if UNKNOWN not in (st[s.REPLICAS + b, s.HW], after.hw):
            decide(st, RULE.HW_04, after.hw >= st[s.REPLICAS + b, s.HW], field.HW, st[s.REPLICAS + b, s.HW], after.hw)
        set_hw(st, b, after.hw)
        hw_within_log(st, b)
        return
    st[s.REPLICAS + b, s.FRESH] = 0
    if begun or epoch == UNKNOWN:
        forget_log_ends(st, b, UNKNOWN)
        advance(st, b, after.hw, UNKNOWN)
        hw_within_log(st, b)
        return
    if old == UNKNOWN or epoch > old:
        elected(st, b, old, epoch, role, epoch_start)
    elif epoch == old and UNKNOWN not in (epoch_start, st[s.REPLICAS + b, s.EPOCH_START]):
        # Metadata within a leader epoch leaves its start where it was (Partition#makeLeader, isNewLeaderEpoch).
        as_expected(st, RULE.EPOCH_01, field.EPOCH_START, st[s.REPLICAS + b, s.EPOCH_START], epoch_start)
    advance(st, b, after.hw, 1)
    hw_within_log(st, b)


def pending_after_metadata(st: s.State, b: int, epoch: int, partition_epoch: int, isr: int, first: bool) -> int:
    """Return what is left of b's proposal when metadata makes it leader, a bit mask; 0: nothing, UNKNOWN: it may be either.

    Only metadata that it knew already leaves a proposal.
    """
    pending, old = st[s.REPLICAS + b, s.PENDING], st[s.REPLICAS + b, s.PARTITION_EPOCH]
    # `first`: b is first observed as it is elected, before it can propose anything.
    if first or pending == 0:
        return 0
    # A new leader epoch ends every proposal of the one before.
    if epoch != st[s.REPLICAS + b, s.EPOCH] and UNKNOWN not in (epoch, st[s.REPLICAS + b, s.EPOCH]):
        return 0
    # The ISR that it read has every member that it proposed.
    if UNKNOWN not in (pending, isr) and pending | isr == isr:
        return 0
    if UNKNOWN in (old, partition_epoch):
        return UNKNOWN
    # Metadata with a partition epoch that the leader knew says nothing about its proposal, which the controller may still
    # commit. A leader that erases it counts too few members (finding F3; Partition#makeLeader does, in all releases).
    return int(pending) if partition_epoch == old else 0


def elected(st: s.State, b: int, old: int, epoch: int, role: int, epoch_start: int) -> None:
    """Judge a new leader epoch of b (EPOCH-01): it starts at b's LEO. Reset what b recorded of its followers, open a term.

    `old` and `role` are b's leader epoch and role before; `epoch_start` is what the event reports.
    """
    leo = st[s.REPLICAS + b, s.LEO]
    same(st, RULE.EPOCH_01, field.EPOCH_START, leo, epoch_start, 1 << field.LEO)
    if leo == UNKNOWN:
        set_leo(st, b, epoch_start)
    st[s.REPLICAS + b, s.EPOCH_START] = st[s.REPLICAS + b, s.LEO]
    cache_assign(st, b, epoch, st[s.REPLICAS + b, s.LEO])
    cache_in_order(st, b)
    # A leader resets its records only if it did not lead before (Replica#resetReplicaState, finding F2). With its last role
    # unknown it is open whether it did.
    if UNKNOWN in (role, old):
        forget_log_ends(st, b, UNKNOWN)
    elif forgets_log_ends(old, epoch, role == s.LEADING, s.has_switch(st, s.KEEPS_REMOTE_LEO, b)):
        mark_log_ends_stale(st, b)
    close_term(st, b)
    open_term(st, b)


def become_follower(
    st: s.State,
    b: int,
    leader: int,
    epoch: int,
    partition_epoch: int,
    before: ReportedLog,
    after: ReportedLog,
    log_start: int,
) -> None:
    """Judge BecomeFollower: log and HW stay as they are. Partition#makeFollower."""
    alive(st, b)
    log_unmoved(st, b, before)
    leo_unmoved(st, b, after.leo, field.LEO)
    hw_unmoved(st, b, after.hw, field.HW)
    take_first_log_start(st, b, log_start)
    old = st[s.REPLICAS + b, s.EPOCH]
    if epoch != UNKNOWN:
        check_metadata(st, b, epoch, leader, UNKNOWN)
    if leader == b:  # a broker cannot follow itself
        decide(st, RULE.EPOCH_04, False, field.LEADER, UNKNOWN, leader)
    acts_on(st, b, partition_epoch)
    # It has caught up with the controller: what follows is no replay.
    if st[s.PARTITION, s.C_EPOCH] == UNKNOWN or epoch >= st[s.PARTITION, s.C_EPOCH]:
        st[s.REPLICAS + b, s.FRESH] = 0
    # Within a leader epoch the fetcher is not restarted (KAFKA-13790): a truncation in progress goes on.
    if epoch == UNKNOWN or epoch != old:
        st[s.REPLICAS + b, s.MORE_ROUNDS] = 0
        st[s.REPLICAS + b, s.HW_MOVED] = -1
    st[s.REPLICAS + b, s.ROLE] = s.FOLLOWING
    st[s.REPLICAS + b, s.LEADER] = leader
    st[s.REPLICAS + b, s.EPOCH] = epoch
    st[s.REPLICAS + b, s.ISR] = 0
    st[s.REPLICAS + b, s.PENDING] = 0
    close_term(st, b)
    forget_log_ends(st, b, -1)
    hw_within_log(st, b)

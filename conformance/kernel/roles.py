"""Roles: metadata makes a replica leader or follower.

Rule of this file: a restarting Kafka broker replays old metadata and logs itself as leader or follower of epochs long past.
Until it has caught up with the controller such a role is learned but opens no term and judges no high watermark.
"""

from tidegauge.conformance.kernel import fields as field
from tidegauge.conformance.kernel import state as s
from tidegauge.conformance.kernel.elections import assigned_in, was_registered
from tidegauge.conformance.kernel.groups import Log
from tidegauge.conformance.kernel.leader_hw import advance
from tidegauge.conformance.kernel.lineage import cache_assign, cache_latest
from tidegauge.conformance.kernel.log_checks import (
    acts_on,
    alive,
    cache_in_order,
    found,
    hw_unmoved,
    leo_unmoved,
    log_start_unmoved,
    set_hw,
    set_leo,
    within,
)
from tidegauge.conformance.kernel.rule_ids import RULE
from tidegauge.conformance.kernel.tally import as_expected, decide, same, undecided
from tidegauge.conformance.kernel.terms import one_leader, open_term
from tidegauge.impl.rules import forgets_log_ends
from tidegauge.traces.columns import UNKNOWN


def forget_recorded(st: s.State, b: int, value: int) -> None:
    """What b recorded of the others becomes `value`: UNDEFINED before their first fetch, or UNKNOWN."""
    n = st[s.OPTION, s.BROKERS]
    if st[s.OPTION, s.REPORTS_HANDLE_FETCH] == 0:
        value = UNKNOWN
    for r in range(n):
        st[s.pair(st, r, b), s.REMOTE] = value
        st[s.pair(st, r, b), s.REMOTE_EPOCH] = value
        st[s.pair(st, r, b), s.KEPT_LEO] = value


def set_recorded_aside(st: s.State, b: int) -> None:
    """What b recorded of the others must not count any more; a leader that counts it is known by it (finding F2)."""
    for r in range(st[s.OPTION, s.BROKERS]):
        p = s.pair(st, r, b)
        leo = st[p, s.REMOTE]
        st[p, s.REMOTE] = -1
        st[p, s.REMOTE_EPOCH] = -1
        if st[s.OPTION, s.REPORTS_HANDLE_FETCH] == 0:
            st[p, s.REMOTE] = UNKNOWN
            st[p, s.REMOTE_EPOCH] = UNKNOWN
        st[p, s.KEPT_LEO] = leo


def metadata_of(st: s.State, b: int, epoch: int, leader: int, isr: int) -> None:
    """EPOCH-03, EPOCH-04, CTRL-03: the metadata a replica acts on is not older than what it had, and was registered."""
    old = st[s.REPLICAS + b, s.EPOCH]
    if old != UNKNOWN:
        decide(st, RULE.EPOCH_03, epoch >= old, field.LEADER_EPOCH, old, epoch)
    forgotten = epoch <= st[s.WHOLE, s.FORGOTTEN_UPTO]
    if leader != UNKNOWN and forgotten:
        undecided(st, RULE.EPOCH_04, 1 << field.LEADER)
    elif leader != UNKNOWN:
        one_leader(st, epoch, leader)
    latest = st[s.WHOLE, s.C_EPOCH]
    heard = st[s.WHOLE, s.HEARD] >> st[s.OPTION, s.BROKERS] & 1 == 1
    first = st[s.WHOLE, s.FIRST_EPOCH]
    if UNKNOWN in (latest, first) or epoch < first or forgotten or not heard:
        undecided(st, RULE.CTRL_03, 1 << field.LEADER_EPOCH)
    elif epoch > latest:
        decide(st, RULE.CTRL_03, False, field.LEADER_EPOCH, latest, epoch)
    elif UNKNOWN in (isr, st[s.WHOLE, s.C_ISR]):
        decide(st, RULE.CTRL_03, True, field.LEADER_EPOCH, epoch, epoch)
    else:
        registered = was_registered(st, epoch, isr)
        if registered == 1 or (registered == 0 and old != UNKNOWN):
            decide(st, RULE.CTRL_03, registered == 1, field.ISR, st[s.WHOLE, s.C_ISR], isr)
        else:
            undecided(st, RULE.CTRL_03, 1 << field.ISR)


def assign(st: s.State, b: int, epoch: int, partition_epoch: int, isr: int) -> None:
    """The replicas as this leader knows them from now on; what it recorded of others is gone. #updateAssignmentAndIsr."""
    replicas = assigned_in(st, epoch, partition_epoch, isr)
    st[s.REPLICAS + b, s.ASSIGNED] = replicas
    if replicas == UNKNOWN:
        return
    for r in range(st[s.OPTION, s.BROKERS]):
        if replicas >> r & 1 == 0:
            value = -1 if st[s.OPTION, s.REPORTS_HANDLE_FETCH] == 1 else UNKNOWN
            st[s.pair(st, r, b), s.REMOTE] = value
            st[s.pair(st, r, b), s.REMOTE_EPOCH] = value


def become_leader(
    st: s.State, b: int, epoch: int, partition_epoch: int, isr: int, epoch_start: int, before: Log, after: Log
) -> None:
    """Partition#makeLeader, for a new leader epoch or for news about the ISR in the same one."""
    alive(st, b)
    found(st, b, before)
    leo_unmoved(st, b, after.leo, field.LEO)
    old, role = st[s.REPLICAS + b, s.EPOCH], st[s.REPLICAS + b, s.ROLE]
    replay = epoch_start == UNKNOWN and st[s.REPLICAS + b, s.FRESH] == 1 and UNKNOWN not in (epoch, st[s.WHOLE, s.C_EPOCH])
    replay = replay and epoch < st[s.WHOLE, s.C_EPOCH]
    if epoch != UNKNOWN:
        metadata_of(st, b, epoch, b, isr)
    first = old == UNKNOWN and epoch_start != UNKNOWN and epoch_start == st[s.REPLICAS + b, s.LEO]
    pending = pending_after(st, b, epoch, partition_epoch, isr, first)
    acts_on(st, b, partition_epoch)
    st[s.REPLICAS + b, s.EPOCH] = epoch
    st[s.REPLICAS + b, s.ROLE] = s.LEADING
    st[s.REPLICAS + b, s.LEADER] = b
    st[s.REPLICAS + b, s.ISR] = isr
    st[s.REPLICAS + b, s.PENDING] = pending
    st[s.REPLICAS + b, s.MORE_ROUNDS] = 0
    st[s.REPLICAS + b, s.HW_MOVED] = -1
    assign(st, b, epoch, partition_epoch, isr)
    # who is first heard of in the middle of an epoch began to lead before
    begun = old == UNKNOWN and (epoch_start == UNKNOWN or epoch_start < st[s.REPLICAS + b, s.LEO])
    if replay or begun or epoch == UNKNOWN:
        st[s.REPLICAS + b, s.EPOCH_START] = st[s.REPLICAS + b, s.LEO] if replay else epoch_start
        st[s.REPLICAS + b, s.TERM] = -1
        if epoch == UNKNOWN or cache_latest(st, b) < epoch:
            st[s.REPLICAS + b, s.CACHED] = UNKNOWN
    if replay:
        # its ISR is of the past, so the rule that moves the high watermark is not asked; that nothing lowers it is
        if UNKNOWN not in (st[s.REPLICAS + b, s.HW], after.hw):
            decide(st, RULE.HW_04, after.hw >= st[s.REPLICAS + b, s.HW], field.HW, st[s.REPLICAS + b, s.HW], after.hw)
        set_hw(st, b, after.hw)
        within(st, b)
        return
    st[s.REPLICAS + b, s.FRESH] = 0
    if begun or epoch == UNKNOWN:
        forget_recorded(st, b, UNKNOWN)
        advance(st, b, after.hw, UNKNOWN)
        within(st, b)
        return
    if old == UNKNOWN or epoch > old:
        elected(st, b, old, epoch, role, epoch_start)
    elif epoch == old and UNKNOWN not in (epoch_start, st[s.REPLICAS + b, s.EPOCH_START]):
        # news within an epoch leave its start where it was (Partition#makeLeader)
        as_expected(st, RULE.EPOCH_01, field.EPOCH_START, st[s.REPLICAS + b, s.EPOCH_START], epoch_start)
    advance(st, b, after.hw, 1)
    within(st, b)


def pending_after(st: s.State, b: int, epoch: int, partition_epoch: int, isr: int, first: bool) -> int:
    """What is left of a proposal when b hears that it leads: nothing, but metadata that it had before says nothing of it.

    A leader that erases its proposal over such metadata counts too few (finding F3): it counts until the controller has gone
    on (Partition#makeLeader, all releases). Who is heard of first where an epoch begins has none.
    """
    pending, old = st[s.REPLICAS + b, s.PENDING], st[s.REPLICAS + b, s.PARTITION_EPOCH]
    if first or pending == 0:
        return 0
    if epoch != st[s.REPLICAS + b, s.EPOCH] and UNKNOWN not in (epoch, st[s.REPLICAS + b, s.EPOCH]):
        return 0
    if UNKNOWN not in (pending, isr) and pending | isr == isr:
        return 0
    if UNKNOWN in (old, partition_epoch):
        return UNKNOWN
    return int(pending) if partition_epoch == old else 0


def elected(st: s.State, b: int, old: int, epoch: int, role: int, epoch_start: int) -> None:
    """A new leader epoch: EPOCH-01, what was recorded of the others, a new term."""
    leo = st[s.REPLICAS + b, s.LEO]
    same(st, RULE.EPOCH_01, field.EPOCH_START, leo, epoch_start, 1 << field.LEO)
    if leo == UNKNOWN:
        set_leo(st, b, epoch_start)
    st[s.REPLICAS + b, s.EPOCH_START] = st[s.REPLICAS + b, s.LEO]
    cache_assign(st, b, epoch, st[s.REPLICAS + b, s.LEO])
    cache_in_order(st, b)
    # who may have led before may have kept what it recorded (Replica#resetReplicaState): neither can be said
    if UNKNOWN in (role, old):
        forget_recorded(st, b, UNKNOWN)
    elif forgets_log_ends(old, epoch, role == s.LEADING, st[s.OPTION, s.KEEPS_REMOTE_LEO] == 1):
        set_recorded_aside(st, b)
    open_term(st, b)


def become_follower(
    st: s.State, b: int, leader: int, epoch: int, partition_epoch: int, before: Log, after: Log, log_start: int
) -> None:
    """Partition#makeFollower: log and HW stay as they are."""
    alive(st, b)
    found(st, b, before)
    leo_unmoved(st, b, after.leo, field.LEO)
    hw_unmoved(st, b, after.hw, field.HW)
    log_start_unmoved(st, b, log_start)
    old = st[s.REPLICAS + b, s.EPOCH]
    if epoch != UNKNOWN:
        metadata_of(st, b, epoch, leader, UNKNOWN)
    if leader == b:
        decide(st, RULE.EPOCH_04, False, field.LEADER, UNKNOWN, leader)  # who follows itself denies that it leads
    acts_on(st, b, partition_epoch)
    if st[s.WHOLE, s.C_EPOCH] == UNKNOWN or epoch >= st[s.WHOLE, s.C_EPOCH]:
        st[s.REPLICAS + b, s.FRESH] = 0
    # within an epoch the fetcher is not restarted (KAFKA-13790), so what it is about to ask stays
    if epoch == UNKNOWN or epoch != old:
        st[s.REPLICAS + b, s.MORE_ROUNDS] = 0
        st[s.REPLICAS + b, s.HW_MOVED] = -1
    st[s.REPLICAS + b, s.ROLE] = s.FOLLOWING
    st[s.REPLICAS + b, s.LEADER] = leader
    st[s.REPLICAS + b, s.EPOCH] = epoch
    st[s.REPLICAS + b, s.ISR] = 0
    st[s.REPLICAS + b, s.PENDING] = 0
    st[s.REPLICAS + b, s.TERM] = -1
    forget_recorded(st, b, -1)
    within(st, b)

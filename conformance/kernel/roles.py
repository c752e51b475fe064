"""Roles: metadata makes a replica leader or follower.

Rule of this file: a restarting Kafka broker replays old metadata and logs itself as leader or follower of epochs long past.
Until it has caught up with the controller such a role is learned but opens no term and judges no high watermark.
"""

from tidegauge.conformance.kernel import fields as field
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
from tidegauge.conformance.kernel.rule_ids import CTRL_03, EPOCH_01, EPOCH_03, EPOCH_04, HW_04
from tidegauge.conformance.kernel.state import (
    ASSIGNED,
    BROKERS,
    C_EPOCH,
    C_ISR,
    CACHED,
    EPOCH,
    EPOCH_START,
    FIRST_EPOCH,
    FOLLOWING,
    FORGOTTEN_UPTO,
    FRESH,
    HEARD,
    HW,
    HW_MOVED,
    ISR,
    KEEPS_REMOTE_LEO,
    KEPT_LEO,
    LEADER,
    LEADING,
    LEO,
    MORE_ROUNDS,
    OPTION,
    PARTITION_EPOCH,
    PENDING,
    REMOTE,
    REMOTE_EPOCH,
    REPLICAS,
    REPORTS_HANDLE_FETCH,
    ROLE,
    TERM,
    WHOLE,
    State,
    pair,
)
from tidegauge.conformance.kernel.tally import as_expected, decide, same, undecided
from tidegauge.conformance.kernel.terms import one_leader, open_term
from tidegauge.impl.rules import forgets_log_ends
from tidegauge.traces.columns import UNKNOWN


def forget_recorded(st: State, b: int, value: int) -> None:
    """What b recorded of the others becomes `value`: UNDEFINED before their first fetch, or UNKNOWN."""
    n = st[OPTION, BROKERS]
    if st[OPTION, REPORTS_HANDLE_FETCH] == 0:
        value = UNKNOWN
    for r in range(n):
        st[pair(st, r, b), REMOTE] = value
        st[pair(st, r, b), REMOTE_EPOCH] = value
        st[pair(st, r, b), KEPT_LEO] = value


def set_recorded_aside(st: State, b: int) -> None:
    """What b recorded of the others must not count any more; a leader that counts it is known by it (finding F2)."""
    for r in range(st[OPTION, BROKERS]):
        p = pair(st, r, b)
        leo = st[p, REMOTE]
        st[p, REMOTE] = -1
        st[p, REMOTE_EPOCH] = -1
        if st[OPTION, REPORTS_HANDLE_FETCH] == 0:
            st[p, REMOTE] = UNKNOWN
            st[p, REMOTE_EPOCH] = UNKNOWN
        st[p, KEPT_LEO] = leo


def metadata_of(st: State, b: int, epoch: int, leader: int, isr: int) -> None:
    """EPOCH-03, EPOCH-04, CTRL-03: the metadata a replica acts on is not older than what it had, and was registered."""
    old = st[REPLICAS + b, EPOCH]
    if old != UNKNOWN:
        decide(st, EPOCH_03, epoch >= old, field.LEADER_EPOCH, old, epoch)
    forgotten = epoch <= st[WHOLE, FORGOTTEN_UPTO]
    if leader != UNKNOWN and forgotten:
        undecided(st, EPOCH_04, 1 << field.LEADER)
    elif leader != UNKNOWN:
        one_leader(st, epoch, leader)
    latest = st[WHOLE, C_EPOCH]
    heard = st[WHOLE, HEARD] >> st[OPTION, BROKERS] & 1 == 1
    first = st[WHOLE, FIRST_EPOCH]
    if UNKNOWN in (latest, first) or epoch < first or forgotten or not heard:
        undecided(st, CTRL_03, 1 << field.LEADER_EPOCH)
    elif epoch > latest:
        decide(st, CTRL_03, False, field.LEADER_EPOCH, latest, epoch)
    elif UNKNOWN in (isr, st[WHOLE, C_ISR]):
        decide(st, CTRL_03, True, field.LEADER_EPOCH, epoch, epoch)
    else:
        registered = was_registered(st, epoch, isr)
        if registered == 1 or (registered == 0 and old != UNKNOWN):
            decide(st, CTRL_03, registered == 1, field.ISR, st[WHOLE, C_ISR], isr)
        else:
            undecided(st, CTRL_03, 1 << field.ISR)


def assign(st: State, b: int, epoch: int, partition_epoch: int, isr: int) -> None:
    """The replicas as this leader knows them from now on; what it recorded of others is gone. #updateAssignmentAndIsr."""
    replicas = assigned_in(st, epoch, partition_epoch, isr)
    st[REPLICAS + b, ASSIGNED] = replicas
    if replicas == UNKNOWN:
        return
    for r in range(st[OPTION, BROKERS]):
        if replicas >> r & 1 == 0:
            value = -1 if st[OPTION, REPORTS_HANDLE_FETCH] == 1 else UNKNOWN
            st[pair(st, r, b), REMOTE] = value
            st[pair(st, r, b), REMOTE_EPOCH] = value


def become_leader(
    st: State, b: int, epoch: int, partition_epoch: int, isr: int, epoch_start: int, before: Log, after: Log
) -> None:
    """Partition#makeLeader, for a new leader epoch or for news about the ISR in the same one."""
    alive(st, b)
    found(st, b, before)
    leo_unmoved(st, b, after.leo, field.LEO)
    old, role = st[REPLICAS + b, EPOCH], st[REPLICAS + b, ROLE]
    replay = epoch_start == UNKNOWN and st[REPLICAS + b, FRESH] == 1 and UNKNOWN not in (epoch, st[WHOLE, C_EPOCH])
    replay = replay and epoch < st[WHOLE, C_EPOCH]
    if epoch != UNKNOWN:
        metadata_of(st, b, epoch, b, isr)
    first = old == UNKNOWN and epoch_start != UNKNOWN and epoch_start == st[REPLICAS + b, LEO]
    pending = pending_after(st, b, epoch, partition_epoch, isr, first)
    acts_on(st, b, partition_epoch)
    st[REPLICAS + b, EPOCH] = epoch
    st[REPLICAS + b, ROLE] = LEADING
    st[REPLICAS + b, LEADER] = b
    st[REPLICAS + b, ISR] = isr
    st[REPLICAS + b, PENDING] = pending
    st[REPLICAS + b, MORE_ROUNDS] = 0
    st[REPLICAS + b, HW_MOVED] = -1
    assign(st, b, epoch, partition_epoch, isr)
    # who is first heard of in the middle of an epoch began to lead before
    begun = old == UNKNOWN and (epoch_start == UNKNOWN or epoch_start < st[REPLICAS + b, LEO])
    if replay or begun or epoch == UNKNOWN:
        st[REPLICAS + b, EPOCH_START] = st[REPLICAS + b, LEO] if replay else epoch_start
        st[REPLICAS + b, TERM] = -1
        if epoch == UNKNOWN or cache_latest(st, b) < epoch:
            st[REPLICAS + b, CACHED] = UNKNOWN
    if replay:
        # its ISR is of the past, so the rule that moves the high watermark is not asked; that nothing lowers it is
        if UNKNOWN not in (st[REPLICAS + b, HW], after.hw):
            decide(st, HW_04, after.hw >= st[REPLICAS + b, HW], field.HW, st[REPLICAS + b, HW], after.hw)
        set_hw(st, b, after.hw)
        within(st, b)
        return
    st[REPLICAS + b, FRESH] = 0
    if begun or epoch == UNKNOWN:
        forget_recorded(st, b, UNKNOWN)
        advance(st, b, after.hw, UNKNOWN)
        within(st, b)
        return
    if old == UNKNOWN or epoch > old:
        elected(st, b, old, epoch, role, epoch_start)
    elif epoch == old and UNKNOWN not in (epoch_start, st[REPLICAS + b, EPOCH_START]):
        # news within an epoch leave its start where it was (Partition#makeLeader)
        as_expected(st, EPOCH_01, field.EPOCH_START, st[REPLICAS + b, EPOCH_START], epoch_start)
    advance(st, b, after.hw, 1)
    within(st, b)


def pending_after(st: State, b: int, epoch: int, partition_epoch: int, isr: int, first: bool) -> int:
    """What is left of a proposal when b hears that it leads: nothing, but metadata that it had before says nothing of it.

    A leader that erases its proposal over such metadata counts too few (finding F3): it counts until the controller has gone
    on (Partition#makeLeader, all releases). Who is heard of first where an epoch begins has none.
    """
    pending, old = st[REPLICAS + b, PENDING], st[REPLICAS + b, PARTITION_EPOCH]
    if first or pending == 0:
        return 0
    if epoch != st[REPLICAS + b, EPOCH] and UNKNOWN not in (epoch, st[REPLICAS + b, EPOCH]):
        return 0
    if UNKNOWN not in (pending, isr) and pending | isr == isr:
        return 0
    if UNKNOWN in (old, partition_epoch):
        return UNKNOWN
    return int(pending) if partition_epoch == old else 0


def elected(st: State, b: int, old: int, epoch: int, role: int, epoch_start: int) -> None:
    """A new leader epoch: EPOCH-01, what was recorded of the others, a new term."""
    leo = st[REPLICAS + b, LEO]
    same(st, EPOCH_01, field.EPOCH_START, leo, epoch_start, 1 << field.LEO)
    if leo == UNKNOWN:
        set_leo(st, b, epoch_start)
    st[REPLICAS + b, EPOCH_START] = st[REPLICAS + b, LEO]
    cache_assign(st, b, epoch, st[REPLICAS + b, LEO])
    cache_in_order(st, b)
    # who may have led before may have kept what it recorded (Replica#resetReplicaState): neither can be said
    if UNKNOWN in (role, old):
        forget_recorded(st, b, UNKNOWN)
    elif forgets_log_ends(old, epoch, role == LEADING, st[OPTION, KEEPS_REMOTE_LEO] == 1):
        set_recorded_aside(st, b)
    open_term(st, b)


def become_follower(
    st: State, b: int, leader: int, epoch: int, partition_epoch: int, before: Log, after: Log, log_start: int
) -> None:
    """Partition#makeFollower: log and HW stay as they are."""
    alive(st, b)
    found(st, b, before)
    leo_unmoved(st, b, after.leo, field.LEO)
    hw_unmoved(st, b, after.hw, field.HW)
    log_start_unmoved(st, b, log_start)
    old = st[REPLICAS + b, EPOCH]
    if epoch != UNKNOWN:
        metadata_of(st, b, epoch, leader, UNKNOWN)
    if leader == b:
        decide(st, EPOCH_04, False, field.LEADER, UNKNOWN, leader)  # who follows itself denies that it leads
    acts_on(st, b, partition_epoch)
    if st[WHOLE, C_EPOCH] == UNKNOWN or epoch >= st[WHOLE, C_EPOCH]:
        st[REPLICAS + b, FRESH] = 0
    # within an epoch the fetcher is not restarted (KAFKA-13790), so what it is about to ask stays
    if epoch == UNKNOWN or epoch != old:
        st[REPLICAS + b, MORE_ROUNDS] = 0
        st[REPLICAS + b, HW_MOVED] = -1
    st[REPLICAS + b, ROLE] = FOLLOWING
    st[REPLICAS + b, LEADER] = leader
    st[REPLICAS + b, EPOCH] = epoch
    st[REPLICAS + b, ISR] = 0
    st[REPLICAS + b, PENDING] = 0
    st[REPLICAS + b, TERM] = -1
    forget_recorded(st, b, -1)
    within(st, b)

"""What a source does not report may have happened all the same: whatever it would have changed becomes unknown.

Rules of this file

1. A kind of event that the source never reports may happen between any two events of its node; which of the judge's values
   that touches is said here, once. OPTION UNSEEN holds those kinds, as aspects.
2. Where lines of a node are missing, any event may have happened there, and nobody knows what the node sent: until its next
   event it counts as a node that reports nothing.
3. A node that was not heard of yet, or from which no line follows, is no different.
"""

from tidegauge.conformance.kernel import state as s
from tidegauge.conformance.kernel.log_checks import set_hw
from tidegauge.conformance.kernel.roles import forget_recorded
from tidegauge.traces.columns import UNKNOWN


def hear(st: s.State, node: int) -> None:
    """A node reports an event; what it had in flight before the first one, nobody knows.

    A broker whose life began in the trace and that has sent this node nothing has nothing in flight to it all the same.
    """
    if st[s.WHOLE, s.HEARD] >> node & 1 == 0:
        st[s.WHOLE, s.HEARD] |= 1 << node
        if node < st[s.OPTION, s.BROKERS]:
            for other in range(st[s.OPTION, s.BROKERS]):
                st[s.pair(st, node, other), s.KIND] = UNKNOWN
                if st[s.REPLICAS + other, s.RESTARTED] != 0 or st[s.pair(st, other, node), s.KIND] != s.NOTHING:
                    st[s.pair(st, other, node), s.KIND] = UNKNOWN


def lose(st: s.State, node: int) -> None:
    """Lines of a node are missing here."""
    st[s.WHOLE, s.HEARD] &= ~(1 << node)
    n = st[s.OPTION, s.BROKERS]
    if node >= n:
        changed = st[s.WHOLE, s.C_MIN_ISR] != UNKNOWN
        for k in range(s.C_LEADER, s.REGISTRATIONS):
            st[s.WHOLE, k] = UNKNOWN
        if changed:  # it is that of the Config no more, and may have changed again
            st[s.WHOLE, s.C_MIN_ISR] = -1
        st[s.WHOLE, s.FIRST_EPOCH] = UNKNOWN
        st[s.WHOLE, s.COMPLETE_FROM] = 1
        st[s.WHOLE, s.ELECTIONS_UNSEEN] = 1
        for b in range(n):
            st[s.REPLICAS + b, s.FENCED] = UNKNOWN
            st[s.REPLICAS + b, s.LOST] = UNKNOWN
        return
    for k in range(s.REPLICA):
        st[s.REPLICAS + node, k] = UNKNOWN
    st[s.WHOLE, s.DELETIONS_UNSEEN] = 1
    for other in range(n):
        in_flight_unknown(st, s.pair(st, node, other))
        st[s.pair(st, other, node), s.KIND] = UNKNOWN
    forget_recorded(st, node, UNKNOWN)


def in_flight_unknown(st: s.State, p: int) -> None:
    """Whatever a follower asked may be under way."""
    st[p, s.KIND] = UNKNOWN
    st[p, s.OLD_KIND] = UNKNOWN
    st[p, s.FORGOTTEN] = 1


def unseen(st: s.State, b: int) -> None:
    """Between two events of broker b, whatever its source does not report may have happened."""
    kinds = st[s.OPTION, s.UNSEEN]
    if kinds & s.UNSEEN_STARTS:
        heard = st[s.WHOLE, s.HEARD]
        lose(st, b)
        st[s.WHOLE, s.HEARD] = heard
        return
    if kinds & s.UNSEEN_STOPS:
        st[s.REPLICAS + b, s.UP] = UNKNOWN
    role = st[s.REPLICAS + b, s.ROLE]
    if kinds & s.UNSEEN_ROLES:
        unseen_role(st, b)
        role = UNKNOWN
    if kinds & s.UNSEEN_APPENDS and role != s.FOLLOWING:
        unseen_log(st, b)
    if kinds & s.UNSEEN_SENDS:
        st[s.REPLICAS + b, s.MORE_ROUNDS] = UNKNOWN
        st[s.REPLICAS + b, s.HW_MOVED] = UNKNOWN
    if kinds & s.UNSEEN_FETCHES and role != s.FOLLOWING:
        forget_recorded(st, b, UNKNOWN)
        set_hw(st, b, UNKNOWN)
    if kinds & s.UNSEEN_RESPONSES and role != s.LEADING:
        unseen_log(st, b)
        st[s.REPLICAS + b, s.LOG_START] = UNKNOWN
        st[s.REPLICAS + b, s.MORE_ROUNDS] = UNKNOWN
        st[s.REPLICAS + b, s.HW_MOVED] = UNKNOWN
    if kinds & s.UNSEEN_PROPOSALS:
        st[s.REPLICAS + b, s.PENDING] = UNKNOWN
        st[s.REPLICAS + b, s.PROPOSED] = UNKNOWN
    if kinds & s.UNSEEN_COMMITS and role != s.FOLLOWING:
        st[s.REPLICAS + b, s.ISR] = UNKNOWN
        st[s.REPLICAS + b, s.PENDING] = UNKNOWN
        st[s.REPLICAS + b, s.PARTITION_EPOCH] = UNKNOWN
        set_hw(st, b, UNKNOWN)
    if kinds & s.UNSEEN_LOG_STARTS:
        st[s.WHOLE, s.DELETIONS_UNSEEN] = 1
        st[s.REPLICAS + b, s.LOG_START] = UNKNOWN
        st[s.REPLICAS + b, s.CACHED] = UNKNOWN
        set_hw(st, b, UNKNOWN)


def unseen_role(st: s.State, b: int) -> None:
    """It may lead or follow anybody by now."""
    for k in (
        s.ROLE,
        s.EPOCH,
        s.LEADER,
        s.EPOCH_START,
        s.ISR,
        s.PENDING,
        s.MORE_ROUNDS,
        s.HW_MOVED,
        s.PARTITION_EPOCH,
        s.CACHED,
    ):
        st[s.REPLICAS + b, k] = UNKNOWN
    st[s.REPLICAS + b, s.TERM] = -1
    set_hw(st, b, UNKNOWN)
    forget_recorded(st, b, UNKNOWN)


def unseen_log(st: s.State, b: int) -> None:
    """Its log may have grown or been truncated."""
    st[s.REPLICAS + b, s.LEO] = UNKNOWN
    st[s.REPLICAS + b, s.CACHED] = UNKNOWN
    set_hw(st, b, UNKNOWN)


def addressed_to_nobody(st: s.State, b: int) -> None:
    """An event of b that does not say whom it concerns: what it did to the log, and to what is in flight, is unknown."""
    unseen_log(st, b)
    for k in (s.LOG_START, s.MORE_ROUNDS, s.HW_MOVED, s.PENDING, s.PROPOSED):
        st[s.REPLICAS + b, k] = UNKNOWN
    for other in range(st[s.OPTION, s.BROKERS]):
        in_flight_unknown(st, s.pair(st, b, other))
        st[s.pair(st, other, b), s.KIND] = UNKNOWN
    forget_recorded(st, b, UNKNOWN)

"""What a source does not report may have happened all the same: whatever it would have changed becomes unknown.

Rules of this file

1. A kind of event that the source never reports may happen between any two events of its node; which of the judge's values
   that touches is said here, once. OPTION UNSEEN holds those kinds, as aspects.
2. Where lines of a node are missing, any event may have happened there, and nobody knows what the node sent: until its next
   event it counts as a node that reports nothing.
3. A node that was not heard of yet, or from which no line follows, is no different.
"""

from tidegauge.conformance.kernel.log_checks import set_hw
from tidegauge.conformance.kernel.roles import forget_recorded
from tidegauge.conformance.kernel.state import (
    BROKERS,
    C_LEADER,
    C_MIN_ISR,
    CACHED,
    COMPLETE_FROM,
    DELETIONS_UNSEEN,
    ELECTIONS_UNSEEN,
    EPOCH,
    EPOCH_START,
    FENCED,
    FIRST_EPOCH,
    FOLLOWING,
    FORGOTTEN,
    HEARD,
    HW_MOVED,
    ISR,
    KIND,
    LEADER,
    LEADING,
    LEO,
    LOG_START,
    LOST,
    MORE_ROUNDS,
    NOTHING,
    OLD_KIND,
    OPTION,
    PARTITION_EPOCH,
    PENDING,
    PROPOSED,
    REGISTRATIONS,
    REPLICA,
    REPLICAS,
    RESTARTED,
    ROLE,
    TERM,
    UNSEEN,
    UNSEEN_APPENDS,
    UNSEEN_COMMITS,
    UNSEEN_FETCHES,
    UNSEEN_LOG_STARTS,
    UNSEEN_PROPOSALS,
    UNSEEN_RESPONSES,
    UNSEEN_ROLES,
    UNSEEN_SENDS,
    UNSEEN_STARTS,
    UNSEEN_STOPS,
    UP,
    WHOLE,
    State,
    pair,
)
from tidegauge.traces.columns import UNKNOWN


def hear(st: State, node: int) -> None:
    """A node reports an event; what it had in flight before the first one, nobody knows.

    A broker whose life began in the trace and that has sent this node nothing has nothing in flight to it all the same.
    """
    if st[WHOLE, HEARD] >> node & 1 == 0:
        st[WHOLE, HEARD] |= 1 << node
        if node < st[OPTION, BROKERS]:
            for other in range(st[OPTION, BROKERS]):
                st[pair(st, node, other), KIND] = UNKNOWN
                if st[REPLICAS + other, RESTARTED] != 0 or st[pair(st, other, node), KIND] != NOTHING:
                    st[pair(st, other, node), KIND] = UNKNOWN


def lose(st: State, node: int) -> None:
    """Lines of a node are missing here."""
    st[WHOLE, HEARD] &= ~(1 << node)
    n = st[OPTION, BROKERS]
    if node >= n:
        changed = st[WHOLE, C_MIN_ISR] != UNKNOWN
        for k in range(C_LEADER, REGISTRATIONS):
            st[WHOLE, k] = UNKNOWN
        if changed:  # it is that of the Config no more, and may have changed again
            st[WHOLE, C_MIN_ISR] = -1
        st[WHOLE, FIRST_EPOCH] = UNKNOWN
        st[WHOLE, COMPLETE_FROM] = 1
        st[WHOLE, ELECTIONS_UNSEEN] = 1
        for b in range(n):
            st[REPLICAS + b, FENCED] = UNKNOWN
            st[REPLICAS + b, LOST] = UNKNOWN
        return
    for k in range(REPLICA):
        st[REPLICAS + node, k] = UNKNOWN
    st[WHOLE, DELETIONS_UNSEEN] = 1
    for other in range(n):
        in_flight_unknown(st, pair(st, node, other))
        st[pair(st, other, node), KIND] = UNKNOWN
    forget_recorded(st, node, UNKNOWN)


def in_flight_unknown(st: State, p: int) -> None:
    """Whatever a follower asked may be under way."""
    st[p, KIND] = UNKNOWN
    st[p, OLD_KIND] = UNKNOWN
    st[p, FORGOTTEN] = 1


def unseen(st: State, b: int) -> None:
    """Between two events of broker b, whatever its source does not report may have happened."""
    kinds = st[OPTION, UNSEEN]
    if kinds & UNSEEN_STARTS:
        heard = st[WHOLE, HEARD]
        lose(st, b)
        st[WHOLE, HEARD] = heard
        return
    if kinds & UNSEEN_STOPS:
        st[REPLICAS + b, UP] = UNKNOWN
    role = st[REPLICAS + b, ROLE]
    if kinds & UNSEEN_ROLES:
        unseen_role(st, b)
        role = UNKNOWN
    if kinds & UNSEEN_APPENDS and role != FOLLOWING:
        unseen_log(st, b)
    if kinds & UNSEEN_SENDS:
        st[REPLICAS + b, MORE_ROUNDS] = UNKNOWN
        st[REPLICAS + b, HW_MOVED] = UNKNOWN
    if kinds & UNSEEN_FETCHES and role != FOLLOWING:
        forget_recorded(st, b, UNKNOWN)
        set_hw(st, b, UNKNOWN)
    if kinds & UNSEEN_RESPONSES and role != LEADING:
        unseen_log(st, b)
        st[REPLICAS + b, LOG_START] = UNKNOWN
        st[REPLICAS + b, MORE_ROUNDS] = UNKNOWN
        st[REPLICAS + b, HW_MOVED] = UNKNOWN
    if kinds & UNSEEN_PROPOSALS:
        st[REPLICAS + b, PENDING] = UNKNOWN
        st[REPLICAS + b, PROPOSED] = UNKNOWN
    if kinds & UNSEEN_COMMITS and role != FOLLOWING:
        st[REPLICAS + b, ISR] = UNKNOWN
        st[REPLICAS + b, PENDING] = UNKNOWN
        st[REPLICAS + b, PARTITION_EPOCH] = UNKNOWN
        set_hw(st, b, UNKNOWN)
    if kinds & UNSEEN_LOG_STARTS:
        st[WHOLE, DELETIONS_UNSEEN] = 1
        st[REPLICAS + b, LOG_START] = UNKNOWN
        st[REPLICAS + b, CACHED] = UNKNOWN
        set_hw(st, b, UNKNOWN)


def unseen_role(st: State, b: int) -> None:
    """It may lead or follow anybody by now."""
    for k in (ROLE, EPOCH, LEADER, EPOCH_START, ISR, PENDING, MORE_ROUNDS, HW_MOVED, PARTITION_EPOCH, CACHED):
        st[REPLICAS + b, k] = UNKNOWN
    st[REPLICAS + b, TERM] = -1
    set_hw(st, b, UNKNOWN)
    forget_recorded(st, b, UNKNOWN)


def unseen_log(st: State, b: int) -> None:
    """Its log may have grown or been truncated."""
    st[REPLICAS + b, LEO] = UNKNOWN
    st[REPLICAS + b, CACHED] = UNKNOWN
    set_hw(st, b, UNKNOWN)


def addressed_to_nobody(st: State, b: int) -> None:
    """An event of b that does not say whom it concerns: what it did to the log, and to what is in flight, is unknown."""
    unseen_log(st, b)
    for k in (LOG_START, MORE_ROUNDS, HW_MOVED, PENDING, PROPOSED):
        st[REPLICAS + b, k] = UNKNOWN
    for other in range(st[OPTION, BROKERS]):
        in_flight_unknown(st, pair(st, b, other))
        st[pair(st, other, b), KIND] = UNKNOWN
    forget_recorded(st, b, UNKNOWN)

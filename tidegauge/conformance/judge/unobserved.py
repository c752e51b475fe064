"""Unobserved events: what a source does not report may have happened, so whatever it would have changed becomes unknown.

Rules of this file

1. A kind of event that the source never reports may happen between any two events of its node. The option UNOBSERVED has
   those kinds; forget_unobserved makes the columns unknown that an event of such a kind changes.
2. Where lines of a node are missing, any event may have happened, and what the node sent is unknown: until its next event
   it is a node that was not observed (OBSERVED).

       b2  SendFetch 5   ... lines missing ...   SendFetch 7      b2's log, role and requests are unknown at 7;
       b1                HandleFetch 6                            FETCH-04 is undecided here: b2 may have sent it

3. A node before its first event, or after its last one in a trace with missing lines, is no different.

`st` is the judge's table (conformance.judge.state), `b` the number of a broker; a node is a broker, or the controller, whose
number is that of the brokers. Bit `node` of OBSERVED is 1 while the events of that node are known. Row s.pair(st, f, b) is
what is in flight between follower f and leader b: its KIND, and OLD_KIND of a request that another overtook. A *term* is a
leader epoch of one leader (terms.py). The columns are described in state.py.
"""

from tidegauge.conformance.judge import state as s
from tidegauge.conformance.judge.elections import MAY_HAVE_CHANGED
from tidegauge.conformance.judge.events.roles import forget_log_ends
from tidegauge.conformance.judge.log_checks import set_hw
from tidegauge.conformance.judge.terms import close_term, forget_appends
from tidegauge.traces.columns import UNKNOWN


def node_observed(st: s.State, node: int) -> None:
    """Note that a node reports an event; at the first one, or the first after missing lines, what is in flight is unknown.

    That is what is in flight from it to each broker, and from each broker to it.
    """
    if st[s.PARTITION, s.OBSERVED] >> node & 1 == 0:
        st[s.PARTITION, s.OBSERVED] |= 1 << node
        if node < st[s.OPTION, s.BROKERS]:
            for other in range(st[s.OPTION, s.BROKERS]):
                st[s.pair(st, node, other), s.KIND] = UNKNOWN
                # A broker whose first process started in the trace reports all it sends: nothing sent, nothing in flight.
                if st[s.REPLICAS + other, s.RESTARTED] != 0 or st[s.pair(st, other, node), s.KIND] != s.NOTHING:
                    st[s.pair(st, other, node), s.KIND] = UNKNOWN


def lines_missing(st: s.State, node: int) -> None:
    """Make unknown what events in missing lines of a node, the controller or a broker, may have changed."""
    st[s.PARTITION, s.OBSERVED] &= ~(1 << node)
    n = st[s.OPTION, s.BROKERS]
    # The controller's lines: its registration (the columns up to REGISTRATIONS), and which brokers it fences.
    if node >= n:
        changed = st[s.PARTITION, s.C_MIN_ISR] not in (UNKNOWN, MAY_HAVE_CHANGED)
        for k in range(s.C_LEADER, s.REGISTRATIONS):
            st[s.PARTITION, k] = UNKNOWN
        # A first change may be among them, or another one.
        st[s.PARTITION, s.C_MIN_ISR] = -1 if changed else MAY_HAVE_CHANGED
        st[s.PARTITION, s.FIRST_EPOCH] = UNKNOWN
        # The registrations of the next epoch that is seen may be incomplete (elections.first_epoch).
        st[s.PARTITION, s.COMPLETE_FROM] = 1
        st[s.PARTITION, s.ELECTIONS_UNOBSERVED] = 1
        for b in range(n):
            st[s.REPLICAS + b, s.FENCED] = UNKNOWN
            st[s.REPLICAS + b, s.LOST] = UNKNOWN
        return
    # From here on a broker's lines: its own columns, and what is in flight from and to it.
    forget_appends(st, node)
    # Kept: in leader epochs up to this one it was elected before it lost its disk, so they are no terms (terms.open_term).
    lost_upto = st[s.REPLICAS + node, s.LOST_UPTO]
    for k in range(s.REPLICA):
        st[s.REPLICAS + node, k] = UNKNOWN
    st[s.REPLICAS + node, s.LOST_UPTO] = lost_upto
    st[s.REPLICAS + node, s.MIN_ISR_READ] = MAY_HAVE_CHANGED
    st[s.PARTITION, s.DELETIONS_UNOBSERVED] = 1
    for other in range(n):
        in_flight_unknown(st, s.pair(st, node, other))
        # What others sent is known; only whether this broker handled it is not.
        st[s.pair(st, other, node), s.KIND] = UNKNOWN
    forget_log_ends(st, node, UNKNOWN)


def in_flight_unknown(st: s.State, p: int) -> None:
    """Note that any request, and any number of overtaken ones, may be in flight in row `p`, from a follower to a leader.

    MORE_OVERTAKEN: there may be others than the one that OLD_KIND is about.
    """
    st[p, s.KIND] = UNKNOWN
    st[p, s.OLD_KIND] = UNKNOWN
    st[p, s.MORE_OVERTAKEN] = 1


def forget_unobserved(st: s.State, b: int) -> None:
    """Make unknown what events of kinds that the source never reports may have changed since the last event of broker b.

    The option UNOBSERVED has those kinds as bits; each branch is what events of its kind change.
    """
    kinds = st[s.OPTION, s.UNOBSERVED]
    # A restart changes all that missing lines may change. But the other events of b are reported, so it stays observed.
    if kinds & s.UNOBSERVED_STARTS:
        observed = st[s.PARTITION, s.OBSERVED]
        lines_missing(st, b)
        st[s.PARTITION, s.OBSERVED] = observed
        return
    # The Start after an unreported stop is reported, and resets the rest.
    if kinds & s.UNOBSERVED_STOPS:
        st[s.REPLICAS + b, s.UP] = UNKNOWN
    role = st[s.REPLICAS + b, s.ROLE]
    if kinds & s.UNOBSERVED_ROLES:
        unseen_role(st, b)
        role = UNKNOWN
    # Only a leader appends, handles fetches and commits an ISR; only a follower takes responses over.
    if kinds & s.UNOBSERVED_APPENDS and role != s.FOLLOWING:
        log_unknown(st, b)
    # The next request ends a round of truncation (in_flight.next_round): it may have left. MORE_ROUNDS is 1 while a round is
    # not ended, HW_MOVED has the HW from before a response moved it.
    if kinds & s.UNOBSERVED_SENDS:
        st[s.REPLICAS + b, s.MORE_ROUNDS] = UNKNOWN
        st[s.REPLICAS + b, s.HW_MOVED] = UNKNOWN
    # A fetch that is handled records the follower's log end, and may advance the high watermark.
    if kinds & s.UNOBSERVED_FETCHES and role != s.FOLLOWING:
        forget_log_ends(st, b, UNKNOWN)
        set_hw(st, b, UNKNOWN)
    # A response that is taken over moves log end, high watermark and log start, or begins or ends a round of truncation.
    if kinds & s.UNOBSERVED_RESPONSES and role != s.LEADING:
        log_unknown(st, b)
        st[s.REPLICAS + b, s.LOG_START] = UNKNOWN
        st[s.REPLICAS + b, s.MORE_ROUNDS] = UNKNOWN
        st[s.REPLICAS + b, s.HW_MOVED] = UNKNOWN
    if kinds & s.UNOBSERVED_PROPOSALS:
        st[s.REPLICAS + b, s.PENDING] = UNKNOWN
        st[s.REPLICAS + b, s.PROPOSED] = UNKNOWN
    # A smaller committed ISR may advance the high watermark.
    if kinds & s.UNOBSERVED_COMMITS and role != s.FOLLOWING:
        st[s.REPLICAS + b, s.ISR] = UNKNOWN
        st[s.REPLICAS + b, s.PENDING] = UNKNOWN
        st[s.REPLICAS + b, s.PARTITION_EPOCH] = UNKNOWN
        set_hw(st, b, UNKNOWN)
    # A higher log start removes entries of the cache and lifts a lower high watermark.
    if kinds & s.UNOBSERVED_LOG_STARTS:
        st[s.PARTITION, s.DELETIONS_UNOBSERVED] = 1
        st[s.REPLICAS + b, s.LOG_START] = UNKNOWN
        st[s.REPLICAS + b, s.CACHED] = UNKNOWN
        set_hw(st, b, UNKNOWN)


def unseen_role(st: s.State, b: int) -> None:
    """Make the role of b unknown, and what depends on it: it may lead, or follow any broker, in any leader epoch."""
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
    close_term(st, b)
    forget_appends(st, b)
    set_hw(st, b, UNKNOWN)
    forget_log_ends(st, b, UNKNOWN)


def log_unknown(st: s.State, b: int) -> None:
    """Make the log of b unknown: it may have grown or been truncated."""
    st[s.REPLICAS + b, s.LEO] = UNKNOWN
    st[s.REPLICAS + b, s.CACHED] = UNKNOWN
    set_hw(st, b, UNKNOWN)


def forget_peers(st: s.State, b: int) -> None:
    """Make unknown what an event of b that does not report its peer may have changed.

    That is b's log and proposal, what it recorded of followers, and what is in flight from and to it.
    """
    log_unknown(st, b)
    for k in (s.LOG_START, s.MORE_ROUNDS, s.HW_MOVED, s.PENDING, s.PROPOSED):
        st[s.REPLICAS + b, k] = UNKNOWN
    for other in range(st[s.OPTION, s.BROKERS]):
        in_flight_unknown(st, s.pair(st, b, other))
        st[s.pair(st, other, b), s.KIND] = UNKNOWN
    forget_log_ends(st, b, UNKNOWN)

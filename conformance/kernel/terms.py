"""Who led which epoch with which log, and what was committed and acknowledged in it.

Rules of this file

1. A term is one leader epoch of one leader: the log it was elected with, and how far its high watermark and its acks=all
   responses went. Its own records follow its election log.
2. A later leader must hold what an earlier one committed. Terms are compared pairwise, whenever either side learns
   something: the order in which a trace tells concurrent events of two brokers makes no difference.
3. An unclean election (or one nobody can call clean) between two terms ends the claim of the earlier one.
4. A term carries the claims of those before it that are forgotten (conformance.kernel.superseded), and counts them all.
"""

from tidegauge.conformance.kernel import fields as field
from tidegauge.conformance.kernel.elections import elections_reported, leader_of, unclean_between
from tidegauge.conformance.kernel.lineage import agree_until, same_or_unknown, snapshot
from tidegauge.conformance.kernel.memory import in_order
from tidegauge.conformance.kernel.rule_ids import DATA_01, DATA_03, EPOCH_04
from tidegauge.conformance.kernel.state import (
    BROKERS,
    CACHED,
    DELETED,
    EPOCH,
    FAILED_COUNT,
    FORGOTTEN_UPTO,
    HELD_COUNT,
    LEO,
    OPTION,
    PAST,
    R_EPOCH,
    R_ISR,
    R_LEADER,
    R_PARTITION_EPOCH,
    R_REPLICAS,
    R_UNCLEAN,
    REGISTRATIONS,
    REPLICAS,
    T_ACKED,
    T_CACHED,
    T_COMMITTED,
    T_EPOCH,
    T_LEADER,
    T_LEO,
    T_PAST_ACKED,
    T_PAST_ACKS,
    T_PAST_COMMITS,
    T_PAST_COMMITTED,
    TALLIES,
    TERM,
    TERM_COLUMNS,
    TERMS,
    UNCLEAN,
    UNDECIDED_COUNT,
    WHOLE,
    State,
    registration,
    term,
)
from tidegauge.conformance.kernel.superseded import room_for_a_registration, room_for_a_term
from tidegauge.conformance.kernel.tally import counted_again, decide, undecided
from tidegauge.traces.columns import UNKNOWN


def register(st: State, epoch: int, leader: int, isr: int, partition_epoch: int, replicas: int) -> None:
    """Remember that `leader` leads `epoch`; the ISR is UNKNOWN if the controller left it out, -1 if a replica spoke.

    Registrations are a set in the order of what they say: who looks for an epoch need not look at all others.
    """
    room_for_a_registration(st)
    if st[WHOLE, REGISTRATIONS] == st[WHOLE, PAST]:
        return
    n = st[WHOLE, REGISTRATIONS]
    row, at = registration(st, n), n
    st[row, R_EPOCH] = epoch
    st[row, R_LEADER] = leader
    st[row, R_ISR] = isr
    st[row, R_PARTITION_EPOCH] = partition_epoch
    st[row, R_REPLICAS] = replicas
    st[row, R_UNCLEAN] = 1 if epoch == st[WHOLE, UNCLEAN] else 0
    while at > 0:
        order = in_order(st, registration(st, at - 1), row)
        if order == 0:
            return
        if order < 0:
            break
        at -= 1
    if at < n:
        for k in range(R_EPOCH, R_REPLICAS + 1):
            value = st[row, k]
            for i in range(n, at, -1):
                st[registration(st, i), k] = st[registration(st, i - 1), k]
            st[registration(st, at), k] = value
    st[WHOLE, REGISTRATIONS] = n + 1


def one_leader(st: State, epoch: int, leader: int) -> None:
    """EPOCH-04: a leader epoch has one leader, whoever tells of it; what is new is remembered."""
    known = leader_of(st, epoch, leader)
    if known == UNKNOWN:
        register(st, epoch, leader, -1, UNKNOWN, UNKNOWN)
    else:
        decide(st, EPOCH_04, known == leader, field.LEADER, known, leader)


def open_term(st: State, b: int) -> None:
    """Replica b, whose epoch and log are up to date, begins to lead: DATA-01 and DATA-03 against the terms before."""
    st[REPLICAS + b, TERM] = -1
    if st[REPLICAS + b, EPOCH] <= st[WHOLE, FORGOTTEN_UPTO]:
        return
    room_for_a_term(st)
    t = st[WHOLE, TERMS]
    st[WHOLE, TERMS] = t + 1
    st[REPLICAS + b, TERM] = t
    for k in range(TERM_COLUMNS):
        st[term(st, t), k] = 0
    st[term(st, t), T_EPOCH] = st[REPLICAS + b, EPOCH]
    st[term(st, t), T_LEADER] = b
    st[term(st, t), T_LEO] = st[REPLICAS + b, LEO]
    st[term(st, t), T_CACHED] = st[REPLICAS + b, CACHED]
    snapshot(st, b, t)
    for earlier in range(t - 1, -1, -1):  # the latest leader claims most
        kept(st, earlier, t, T_COMMITTED, DATA_01)
        kept_of_the_past(st, earlier, t, T_PAST_COMMITTED, T_PAST_COMMITS, DATA_01)
        kept(st, earlier, t, T_ACKED, DATA_03)
        kept_of_the_past(st, earlier, t, T_PAST_ACKED, T_PAST_ACKS, DATA_03)


def term_of(st: State, leader: int, epoch: int) -> int:
    """The term of a leader in an epoch; UNDEFINED when the trace has not told of its election."""
    for t in range(st[WHOLE, TERMS] - 1, -1, -1):
        if st[term(st, t), T_EPOCH] == epoch and st[term(st, t), T_LEADER] == leader:
            return t
    return -1


def commit(st: State, b: int, end: int) -> None:
    """Leader b has shown a high watermark of `end`."""
    t = st[REPLICAS + b, TERM]
    if t >= 0 and end > st[term(st, t), T_COMMITTED]:
        st[term(st, t), T_COMMITTED] = end
        later_terms(st, t, T_COMMITTED, DATA_01)


def acknowledge(st: State, b: int, end: int) -> None:
    """Leader b has acknowledged an acks=all record that ends at `end`."""
    t = st[REPLICAS + b, TERM]
    if t >= 0 and end > st[term(st, t), T_ACKED]:
        st[term(st, t), T_ACKED] = end
        later_terms(st, t, T_ACKED, DATA_03)


def later_terms(st: State, t: int, claim: int, rule: int) -> None:
    """Hold a grown claim of term t against every later term already seen."""
    for later in range(st[WHOLE, TERMS]):
        if st[term(st, later), T_EPOCH] > st[term(st, t), T_EPOCH]:
            kept(st, t, later, claim, rule)


def kept(st: State, earlier: int, later: int, claim: int, rule: int) -> None:
    """DATA-01, DATA-03: the later leader was elected with everything the earlier one claims."""
    if st[term(st, earlier), T_EPOCH] >= st[term(st, later), T_EPOCH]:
        return
    if unclean_between(st, int(st[term(st, earlier), T_EPOCH]), int(st[term(st, later), T_EPOCH])):
        return
    end = st[term(st, earlier), claim]
    if end == 0:
        return
    leo = st[term(st, later), T_LEO]
    if not elections_reported(st, st[term(st, earlier), T_EPOCH], st[term(st, later), T_EPOCH]):
        undecided(st, rule, 1 << field.CLEAN)
    elif leo == UNKNOWN:
        undecided(st, rule, 1 << field.LEO)
    elif leo < end:
        decide(st, rule, False, field.LEO, end, leo)
    elif st[term(st, earlier), T_CACHED] == UNKNOWN or st[term(st, later), T_CACHED] == UNKNOWN:
        undecided(st, rule, 1 << field.EPOCHS)
    else:
        start, n = int(st[WHOLE, DELETED]), st[OPTION, BROKERS]
        same = agree_until(
            st, n + earlier, st[term(st, earlier), T_CACHED], n + later, st[term(st, later), T_CACHED], start, end
        )
        same_or_unknown(st, rule, field.LEO, end, same)


def kept_of_the_past(st: State, carrier: int, later: int, claim: int, times: int, rule: int) -> None:
    """The same for what the earlier term claims for those that are forgotten: asked once, counted for each of them."""
    n = st[term(st, carrier), times]
    if n > 0:
        row = TALLIES + rule
        held, failed, undecidable = st[row, HELD_COUNT], st[row, FAILED_COUNT], st[row, UNDECIDED_COUNT]
        kept(st, carrier, later, claim, rule)
        counted_again(st, rule, n - 1, held, failed, undecidable)

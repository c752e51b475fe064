"""Who led which epoch with which log, and what was committed and acknowledged in it.

Rules of this file

1. A term is one leader epoch of one leader: the log it was elected with, and how far its high watermark and its acks=all
   responses went. Its own records follow its election log.
2. A later leader must hold what an earlier one committed. Terms are compared pairwise, whenever either side learns
   something: the order in which a trace tells concurrent events of two brokers makes no difference.
3. An unclean election (or one nobody can call clean) between two terms ends the claim of the earlier one.
"""

from tidegauge.conformance.kernel import fields as field
from tidegauge.conformance.kernel.lineage import agree_until, same_or_unknown, snapshot
from tidegauge.conformance.kernel.memory import registrations_once
from tidegauge.conformance.kernel.rule_ids import DATA_01, DATA_03, EPOCH_04
from tidegauge.conformance.kernel.state import (
    BROKERS,
    C_EPOCH,
    CACHED,
    COMPLETE_FROM,
    DELETED,
    EPOCH,
    FIRST_EPOCH,
    LEO,
    OPTION,
    OVERFLOW,
    R_EPOCH,
    R_ISR,
    R_LEADER,
    R_PARTITION_EPOCH,
    R_REPLICAS,
    R_UNCLEAN,
    REGISTRATIONS,
    REPLICAS,
    ROOM,
    T_ACKED,
    T_CACHED,
    T_COMMITTED,
    T_EPOCH,
    T_LEADER,
    T_LEO,
    TERM,
    TERMS,
    UNCLEAN,
    WHOLE,
    State,
    registration,
    term,
)
from tidegauge.conformance.kernel.tally import decide, undecided
from tidegauge.traces.columns import UNKNOWN


def register(st: State, epoch: int, leader: int, isr: int, partition_epoch: int, replicas: int) -> None:
    """Remember that `leader` leads `epoch`; the ISR is UNKNOWN if the controller left it out, -1 if a replica spoke."""
    if st[WHOLE, REGISTRATIONS] == st[WHOLE, ROOM]:
        registrations_once(st)
        # where little was said twice, more room is cheaper than to look for it each time
        if 4 * st[WHOLE, REGISTRATIONS] > 3 * st[WHOLE, ROOM]:
            st[WHOLE, OVERFLOW] = 1
            return
    n = st[WHOLE, REGISTRATIONS]
    st[registration(st, n), R_EPOCH] = epoch
    st[registration(st, n), R_LEADER] = leader
    st[registration(st, n), R_ISR] = isr
    st[registration(st, n), R_PARTITION_EPOCH] = partition_epoch
    st[registration(st, n), R_REPLICAS] = replicas
    st[registration(st, n), R_UNCLEAN] = 1 if epoch == st[WHOLE, UNCLEAN] else 0
    st[WHOLE, REGISTRATIONS] = n + 1


def leader_of(st: State, epoch: int) -> int:
    """Leader of an epoch as far as the trace has told: UNKNOWN, UNDEFINED (leaderless), or a broker."""
    for i in range(st[WHOLE, REGISTRATIONS] - 1, -1, -1):
        if st[registration(st, i), R_EPOCH] == epoch and st[registration(st, i), R_LEADER] != UNKNOWN:
            return int(st[registration(st, i), R_LEADER])
    return UNKNOWN


def one_leader(st: State, epoch: int, leader: int) -> None:
    """EPOCH-04: a leader epoch has one leader, whoever tells of it; what is new is remembered."""
    known = leader_of(st, epoch)
    if known == UNKNOWN:
        register(st, epoch, leader, -1, UNKNOWN, UNKNOWN)
    else:
        decide(st, EPOCH_04, known == leader, field.LEADER, known, leader)


def was_registered(st: State, epoch: int, isr: int) -> int:
    """Whether the controller registered this ISR in this leader epoch: 1, 0, or UNKNOWN."""
    found = 0
    for i in range(st[WHOLE, REGISTRATIONS]):
        if st[registration(st, i), R_EPOCH] == epoch:
            if st[registration(st, i), R_ISR] == isr:
                return 1
            if st[registration(st, i), R_ISR] == UNKNOWN:
                found = UNKNOWN
    return found


def assigned_in(st: State, epoch: int, partition_epoch: int, isr: int) -> int:
    """The replicas in the registration that a leader acts on; UNKNOWN where several may be meant, and differ."""
    replicas = UNKNOWN
    for i in range(st[WHOLE, REGISTRATIONS]):
        row = registration(st, i)
        known = st[row, R_PARTITION_EPOCH]
        if st[row, R_EPOCH] != epoch or st[row, R_ISR] == -1:
            continue
        alike = isr == UNKNOWN or st[row, R_ISR] in (isr, UNKNOWN)
        if known == partition_epoch if UNKNOWN not in (known, partition_epoch) else alike:
            if replicas not in (UNKNOWN, st[row, R_REPLICAS]):
                return UNKNOWN
            replicas = st[row, R_REPLICAS]
    return int(replicas)


def led_between(st: State, broker: int, after: int, before: int) -> int:
    """Whether another broker led an epoch above `after` and below `before`: 1 yes, 0 no, UNKNOWN."""
    unknown = 0
    for epoch in range(after + 1, before):
        leader = leader_of(st, epoch)
        if leader == UNKNOWN:
            unknown += 1
        elif leader not in (-1, broker):
            return 1
    return UNKNOWN if unknown > 0 else 0


def open_term(st: State, b: int) -> None:
    """Replica b, whose epoch and log are up to date, begins to lead: DATA-01 and DATA-03 against the terms before."""
    t = st[WHOLE, TERMS]
    if t == st[WHOLE, ROOM]:
        st[WHOLE, OVERFLOW] = 1
        return
    st[WHOLE, TERMS] = t + 1
    st[REPLICAS + b, TERM] = t
    st[term(st, t), T_EPOCH] = st[REPLICAS + b, EPOCH]
    st[term(st, t), T_LEADER] = b
    st[term(st, t), T_LEO] = st[REPLICAS + b, LEO]
    st[term(st, t), T_CACHED] = st[REPLICAS + b, CACHED]
    st[term(st, t), T_COMMITTED] = 0
    st[term(st, t), T_ACKED] = 0
    snapshot(st, b, t)
    for earlier in range(t - 1, -1, -1):  # the latest leader claims most
        kept(st, earlier, t, T_COMMITTED, DATA_01)
        kept(st, earlier, t, T_ACKED, DATA_03)


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


def unclean_between(st: State, after: int, upto: int) -> bool:
    """Whether an election above epoch `after` up to `upto` was unclean. Any of them, not the latest alone: the terms of two
    brokers are held against each other whenever one of them is heard, and later elections may have been reported by then."""
    if st[WHOLE, UNCLEAN] <= after:
        return False
    for i in range(st[WHOLE, REGISTRATIONS] - 1, -1, -1):
        if st[registration(st, i), R_UNCLEAN] == 1 and after < st[registration(st, i), R_EPOCH] <= upto:
            return True
    return False


def elections_reported(st: State, after: int, upto: int) -> bool:
    """Whether the controller told every election above epoch `after` up to `upto`: else one of them may be unclean."""
    latest, first = st[WHOLE, C_EPOCH], st[WHOLE, FIRST_EPOCH]
    return bool(UNKNOWN not in (latest, first) and first <= after + 1 and upto <= latest)


def first_epoch(st: State, epoch: int) -> None:
    """Remember from which leader epoch on all registrations are known; that of an epoch seen in the middle is not."""
    if st[WHOLE, FIRST_EPOCH] == UNKNOWN or epoch < st[WHOLE, FIRST_EPOCH]:
        st[WHOLE, FIRST_EPOCH] = epoch + st[WHOLE, COMPLETE_FROM]
    st[WHOLE, COMPLETE_FROM] = 0

"""What can no longer matter is forgotten, and what is left stands in one form.

Rules of this file

1. Nothing here changes what the judge makes of any event that follows: conformance/evidence/product walks all
   behaviours of bounded models over memories that have been through here.
2. Two memories that are the same to every later event should be the same numbers: then a judge that reads for ever comes
   back to where it was, and what it can remember of a bounded model is finite.
"""

from tidegauge.conformance.kernel.state import (
    ANS_BASE,
    ANS_DIV_END,
    ANS_DIV_EPOCH,
    ANS_END,
    ANS_ERROR,
    ANS_HW,
    ANS_LOG_START,
    ANS_LOW_HW,
    ANS_REC_EPOCH,
    ANS_TERM,
    BROKERS,
    CACHED,
    DATA,
    DIVERGED,
    EITHER,
    EPOCH_RESPONSE,
    EPOCH_START,
    HELD,
    KIND,
    LEADING,
    MORE_ROUNDS,
    NOTHING,
    OLD_EPOCH,
    OLD_KIND,
    OLD_LAST,
    OLD_OFFSET,
    OPTION,
    PAST,
    R_EPOCH,
    R_REPLICAS,
    REFUSED,
    REGISTRATIONS,
    REPLICAS,
    REQ_EPOCH,
    REQ_LAST,
    REQ_OFFSET,
    ROLE,
    ROOM,
    T_CACHED,
    TERM_COLUMNS,
    TERMS,
    WHOLE,
    State,
    epochs_row,
    pair,
    registration,
    starts_row,
    term,
)
from tidegauge.traces.columns import UNKNOWN


def tidy(st: State) -> None:
    """Forget what can no longer matter, and what stands behind the last registration, term or entry."""
    logs_in_one_form(st)
    registrations_in_one_form(st)
    settle(st)


def settle(st: State) -> None:
    """Forget what can no longer matter."""
    n = st[OPTION, BROKERS]
    for b in range(n):
        # only a leader asks where its epoch started, and it learns that when it is elected
        if st[REPLICAS + b, ROLE] not in (LEADING, UNKNOWN):
            st[REPLICAS + b, EPOCH_START] = UNKNOWN
        for leader in range(n):
            in_flight(st, pair(st, b, leader), st[REPLICAS + b, MORE_ROUNDS] != 0)


def logs_in_one_form(st: State) -> None:
    """Behind the last entry of a log, and behind the last term, there is nothing."""
    n, room = st[OPTION, BROKERS], st[WHOLE, ROOM]
    for log in range(n + st[WHOLE, PAST]):
        cached = 0
        if log < n:
            cached = st[REPLICAS + log, CACHED]
        elif log - n < st[WHOLE, TERMS]:
            cached = st[term(st, log - n), T_CACHED]
        else:
            for k in range(TERM_COLUMNS):
                st[term(st, log - n), k] = 0
            st[epochs_row(st, log), room] = 0
            st[starts_row(st, log), room] = 0
        for k in range(max(cached, 0), room):
            st[epochs_row(st, log), k] = 0
            st[starts_row(st, log), k] = 0


def registrations_in_one_form(st: State) -> None:
    """Behind the last registration there is nothing."""
    for i in range(st[WHOLE, REGISTRATIONS], st[WHOLE, PAST]):
        for k in range(R_EPOCH, R_REPLICAS + 1):
            st[registration(st, i), k] = 0


def in_order(st: State, one: int, two: int) -> int:
    """-1 where registration `one` stands before `two`, 1 where it stands behind, 0 where they say the same."""
    for k in range(R_EPOCH, R_REPLICAS + 1):
        if st[one, k] != st[two, k]:
            return -1 if st[one, k] < st[two, k] else 1
    return 0


def in_flight(st: State, p: int, asks_again: bool) -> None:
    """A request that was taken over says nothing more, nor a response of another kind than the one in flight.

    `asks_again`: TRUNC-02 will hold the next request against the epoch that the last one asked about.
    """
    kind = st[p, KIND]
    if kind in (NOTHING, EITHER):
        st[p, REQ_EPOCH] = UNKNOWN
        st[p, REQ_OFFSET] = UNKNOWN
        if not asks_again:
            st[p, REQ_LAST] = UNKNOWN
    if kind != HELD:
        st[p, ANS_LOW_HW] = UNKNOWN
    if kind != DATA:
        st[p, ANS_HW] = UNKNOWN
        st[p, ANS_BASE] = UNKNOWN
        st[p, ANS_END] = UNKNOWN
        st[p, ANS_REC_EPOCH] = UNKNOWN
        st[p, ANS_TERM] = -1
    if kind not in (DATA, DIVERGED):
        st[p, ANS_LOG_START] = UNKNOWN
    if kind not in (DIVERGED, EPOCH_RESPONSE):
        st[p, ANS_DIV_EPOCH] = UNKNOWN
        st[p, ANS_DIV_END] = UNKNOWN
    if kind not in (REFUSED, EPOCH_RESPONSE):
        st[p, ANS_ERROR] = UNKNOWN
    if st[p, OLD_KIND] == NOTHING:
        st[p, OLD_EPOCH] = UNKNOWN
        st[p, OLD_OFFSET] = UNKNOWN
        st[p, OLD_LAST] = UNKNOWN

"""What can no longer matter is forgotten, and what is left stands in one form.

Rules of this file

1. Nothing here changes what the judge makes of any event that follows: validation/product walks all
   behaviours of bounded models over memories that have been through here.
2. Two memories that are the same to every later event should be the same numbers: then a judge that reads for ever comes
   back to where it was, and what it can remember of a bounded model is finite.
"""

from tidegauge.conformance.kernel import state as s
from tidegauge.traces.columns import UNKNOWN


def tidy(st: s.State) -> None:
    """Forget what can no longer matter, and what stands behind the last registration, term or entry."""
    logs_in_one_form(st)
    registrations_in_one_form(st)
    settle(st)


def settle(st: s.State) -> None:
    """Forget what can no longer matter."""
    n = st[s.OPTION, s.BROKERS]
    for b in range(n):
        # only a leader asks where its epoch started, and it learns that when it is elected
        if st[s.REPLICAS + b, s.ROLE] not in (s.LEADING, UNKNOWN):
            st[s.REPLICAS + b, s.EPOCH_START] = UNKNOWN
        for leader in range(n):
            in_flight(st, s.pair(st, b, leader), st[s.REPLICAS + b, s.MORE_ROUNDS] != 0)


def logs_in_one_form(st: s.State) -> None:
    """Behind the last entry of a log, and behind the last term, there is nothing."""
    n, room = st[s.OPTION, s.BROKERS], st[s.WHOLE, s.ROOM]
    for log in range(n + st[s.WHOLE, s.PAST]):
        cached = 0
        if log < n:
            cached = st[s.REPLICAS + log, s.CACHED]
        elif log - n < st[s.WHOLE, s.TERMS]:
            cached = st[s.term(st, log - n), s.T_CACHED]
        else:
            for k in range(s.TERM_COLUMNS):
                st[s.term(st, log - n), k] = 0
            st[s.epochs_row(st, log), room] = 0
            st[s.starts_row(st, log), room] = 0
        for k in range(max(cached, 0), room):
            st[s.epochs_row(st, log), k] = 0
            st[s.starts_row(st, log), k] = 0


def registrations_in_one_form(st: s.State) -> None:
    """Behind the last registration there is nothing."""
    for i in range(st[s.WHOLE, s.REGISTRATIONS], st[s.WHOLE, s.PAST]):
        for k in range(s.R_EPOCH, s.R_REPLICAS + 1):
            st[s.registration(st, i), k] = 0


def in_order(st: s.State, one: int, two: int) -> int:
    """-1 where registration `one` stands before `two`, 1 where it stands behind, 0 where they say the same."""
    for k in range(s.R_EPOCH, s.R_REPLICAS + 1):
        if st[one, k] != st[two, k]:
            return -1 if st[one, k] < st[two, k] else 1
    return 0


def in_flight(st: s.State, p: int, asks_again: bool) -> None:
    """A request that was taken over says nothing more, nor a response of another kind than the one in flight.

    `asks_again`: TRUNC-02 will hold the next request against the epoch that the last one asked about.
    """
    kind = st[p, s.KIND]
    if kind in (s.NOTHING, s.EITHER):
        st[p, s.REQ_EPOCH] = UNKNOWN
        st[p, s.REQ_OFFSET] = UNKNOWN
        if not asks_again:
            st[p, s.REQ_LAST] = UNKNOWN
    if kind != s.HELD:
        st[p, s.ANS_LOW_HW] = UNKNOWN
    if kind != s.DATA:
        st[p, s.ANS_HW] = UNKNOWN
        st[p, s.ANS_BASE] = UNKNOWN
        st[p, s.ANS_END] = UNKNOWN
        st[p, s.ANS_REC_EPOCH] = UNKNOWN
        st[p, s.ANS_TERM] = -1
    if kind not in (s.DATA, s.DIVERGED):
        st[p, s.ANS_LOG_START] = UNKNOWN
    if kind not in (s.DIVERGED, s.EPOCH_RESPONSE):
        st[p, s.ANS_DIV_EPOCH] = UNKNOWN
        st[p, s.ANS_DIV_END] = UNKNOWN
    if kind not in (s.REFUSED, s.EPOCH_RESPONSE):
        st[p, s.ANS_ERROR] = UNKNOWN
    if st[p, s.OLD_KIND] == s.NOTHING:
        st[p, s.OLD_EPOCH] = UNKNOWN
        st[p, s.OLD_OFFSET] = UNKNOWN
        st[p, s.OLD_LAST] = UNKNOWN

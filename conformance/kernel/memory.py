"""The table in a canonical form: what can no longer matter is UNKNOWN, and cells that are not in use are 0.

Rules of this file

1. Nothing here changes how the judge decides on any later event: validation/product walks all behaviours of
   bounded models over tables that were made canonical here.
2. Two tables that are the same to every later event should be the same numbers. Then the number of states of the judge over
   a bounded model is finite, and an endless run comes back to states it was in (conformance.kernel.transitions).
"""

from tidegauge.conformance.kernel import state as s
from tidegauge.traces.columns import UNKNOWN


def tidy(st: s.State) -> None:
    """Forget what can no longer matter, and clear what is after the last registration, term or entry."""
    clear_unused_entries(st)
    for i in range(st[s.PARTITION, s.REGISTRATIONS], st[s.PARTITION, s.PAST_ROOM]):
        for k in range(s.R_EPOCH, s.R_REPLICAS + 1):
            st[s.registration(st, i), k] = 0
    forget_consumed(st)


def forget_consumed(st: s.State) -> None:
    """Forget what can no longer matter."""
    n = st[s.OPTION, s.BROKERS]
    for b in range(n):
        # Only a leader is asked where its epoch started, and it learns that when it is elected.
        if st[s.REPLICAS + b, s.ROLE] not in (s.LEADING, UNKNOWN):
            st[s.REPLICAS + b, s.EPOCH_START] = UNKNOWN
        for leader in range(n):
            forget_consumed_request(st, s.pair(st, b, leader), st[s.REPLICAS + b, s.MORE_ROUNDS] != 0)


def clear_unused_entries(st: s.State) -> None:
    """Clear what is after the last entry of a log, and after the last term."""
    n, room = st[s.OPTION, s.BROKERS], st[s.PARTITION, s.CACHE_ROOM]
    for log in range(n + st[s.PARTITION, s.PAST_ROOM]):
        cached = 0
        if log < n:
            cached = st[s.REPLICAS + log, s.CACHED]
        elif log - n < st[s.PARTITION, s.TERMS]:
            cached = st[s.term(st, log - n), s.T_CACHED]
        else:
            for k in range(s.TERM_COLUMNS):
                st[s.term(st, log - n), k] = 0
            st[s.epochs_row(st, log), room] = 0
            st[s.starts_row(st, log), room] = 0
        for k in range(max(cached, 0), room):
            st[s.epochs_row(st, log), k] = 0
            st[s.starts_row(st, log), k] = 0


def compare_registrations(st: s.State, one: int, two: int) -> int:
    """Return -1 where registration `one` sorts before `two`, 1 where it sorts after it, 0 where they are equal."""
    for k in range(s.R_EPOCH, s.R_REPLICAS + 1):
        if st[one, k] != st[two, k]:
            return -1 if st[one, k] < st[two, k] else 1
    return 0


def forget_consumed_request(st: s.State, p: int, asks_again: bool) -> None:
    """Forget the fields of a request that was answered, and those of a response of another kind than the one in flight.

    `asks_again`: TRUNC-02 will compare the next request with the epoch that the last one asked about.
    """
    kind = st[p, s.KIND]
    # Once a response was taken over the next request starts anew; of an AMBIGUOUS one no field is compared.
    if kind in (s.NOTHING, s.AMBIGUOUS):
        st[p, s.REQ_EPOCH] = UNKNOWN
        st[p, s.REQ_OFFSET] = UNKNOWN
        if not asks_again:
            st[p, s.REQ_LAST] = UNKNOWN
    if kind != s.DELAYED:
        st[p, s.DELAYED_HW] = UNKNOWN
    if kind != s.DATA:
        st[p, s.RES_HW] = UNKNOWN
        st[p, s.RES_BASE] = UNKNOWN
        st[p, s.RES_END] = UNKNOWN
        st[p, s.RES_REC_EPOCH] = UNKNOWN
        st[p, s.RES_TERM] = -1
    # Which fields a kind of response has is read off where it is taken over: handle_fetch_response and
    # handle_diverging_response for DATA and DIVERGED, handle_epoch_response for EPOCH_RESPONSE and REFUSED.
    if kind not in (s.DATA, s.DIVERGED):
        st[p, s.RES_LOG_START] = UNKNOWN
    if kind not in (s.DIVERGED, s.EPOCH_RESPONSE):
        st[p, s.RES_DIV_EPOCH] = UNKNOWN
        st[p, s.RES_DIV_END] = UNKNOWN
    if kind not in (s.REFUSED, s.EPOCH_RESPONSE):
        st[p, s.RES_ERROR] = UNKNOWN
    if st[p, s.OLD_KIND] == s.NOTHING:
        st[p, s.OLD_EPOCH] = UNKNOWN
        st[p, s.OLD_OFFSET] = UNKNOWN
        st[p, s.OLD_LAST] = UNKNOWN

"""The judge: one function over columns.

Rules of this file

1. It calls one function per event, and names the fields each event may tell in the order of that function's parameters;
   `c[FIELD][i]` is UNKNOWN where the source is silent.
2. The same text runs uncompiled (explanation, small inputs) and compiled (conformance/kernel/compiled.py).
3. Nothing is allocated per event.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from conformance.kernel.controller import alter_partition, change_partition
from conformance.kernel.cuts import (
    handle_diverging_response,
    handle_epoch_response,
    handle_out_of_range,
    truncate_to_high_watermark,
)
from conformance.kernel.fields import (
    ACKS,
    ALTER_PARTITION,
    ANSWER_FETCH,
    BECOME_FOLLOWER,
    BECOME_LEADER,
    BOUND,
    CHANGE_PARTITION,
    CLEAN,
    COMPLETED,
    CRASH,
    DIV_END,
    DIV_EPOCH,
    EPOCH_CACHE_ENTRY,
    EPOCH_START,
    ERROR,
    EXPAND_ISR,
    HANDLE_ALTER_PARTITION_RESPONSE,
    HANDLE_DIVERGING_RESPONSE,
    HANDLE_EPOCH_REQUEST,
    HANDLE_EPOCH_RESPONSE,
    HANDLE_FETCH,
    HANDLE_FETCH_ERROR,
    HANDLE_FETCH_RESPONSE,
    HANDLE_OUT_OF_RANGE,
    HW,
    HW_BEFORE,
    ISR,
    LEADER,
    LEADER_APPEND,
    LEADER_END,
    LEADER_EPOCH,
    LEADER_START,
    LEO,
    LEO_BEFORE,
    LIVE,
    LOG_START,
    LOG_START_MOVED,
    OBSERVE,
    PARTITION_EPOCH,
    PEER,
    PRODUCE_ACK,
    READ,
    REC_BASE,
    REC_END,
    REC_EPOCH,
    REMOTE_LEO,
    REQ_EPOCH,
    REQ_LAST_EPOCH,
    REQ_OFFSET,
    RES_HW,
    RES_LOG_START,
    SEND_EPOCH_REQUEST,
    SEND_FETCH,
    SHRINK_ISR,
    START,
    STOP,
    TARGET,
    TRUNCATE_TO_HIGH_WATERMARK,
)
from conformance.kernel.follower import handle_fetch_error, handle_fetch_response, send_epoch_request, send_fetch
from conformance.kernel.leader import (
    consumer_read,
    expand_isr,
    handle_alter_partition_response,
    leader_append,
    produce_ack,
    shrink_isr,
)
from conformance.kernel.life import epoch_cache_entry, log_start_moved, observe, start, stop
from conformance.kernel.log_checks import learn, nobody
from conformance.kernel.roles import become_follower, become_leader
from conformance.kernel.serving import answer_fetch, handle_epoch_request, handle_fetch
from conformance.kernel.state import (
    BROKERS,
    FINAL,
    GOES_ON,
    HEARD,
    NOW,
    OPTION,
    OVERFLOW,
    REPLICAS,
    WHOLE,
    Ints,
    State,
    epochs_row,
    forget,
    starts_row,
)
from conformance.kernel.whole import logs_agree

Columns: TypeAlias = tuple[Ints, ...]
Flags: TypeAlias = NDArray[np.bool_]
Final: TypeAlias = np.ndarray[tuple[int, int, int], np.dtype[np.int64]]
Caches: TypeAlias = np.ndarray[tuple[int, int, int, int], np.dtype[np.int64]]


def judge_traces(
    st: State,
    c: Columns,
    event: Ints,
    node: Ints,
    told: Flags,
    pairs_at: Ints,
    pairs: Ints,
    rows: Ints,
    trace_starts: Ints,
    final: Final,
    caches: Caches,
) -> None:
    """Judge every trace from nothing; `final` and `caches` take the last state of as many traces as they have room for.

    Event `at` is row `rows[at]` of the columns, or row `at` where `rows` is empty (traces.distinct).
    """
    n = st[OPTION, BROKERS]
    for t in range(len(trace_starts) - 1):
        if st[OPTION, GOES_ON] == 0:
            forget(st, t)
            listen(st, node, rows, trace_starts[t], trace_starts[t + 1])
        for at in range(trace_starts[t], trace_starts[t + 1]):
            st[WHOLE, NOW] = at
            i = rows[at] if len(rows) > 0 else at
            b = node[i]
            code = event[i]
            peer = c[PEER][i]
            if code == CHANGE_PARTITION:
                change_partition(
                    st, c[LEADER][i], c[LEADER_EPOCH][i], c[PARTITION_EPOCH][i], c[ISR][i], c[LIVE][i], c[CLEAN][i]
                )
            elif code == ALTER_PARTITION:
                alter_partition(st, peer, c[LEADER_EPOCH][i], c[ISR][i], c[ERROR][i])
            elif b < 0 or b >= n:
                continue
            elif code == START:
                own = pairs[2 * pairs_at[i] : 2 * pairs_at[i + 1]]
                start(st, b, c[CLEAN][i], c[LEO][i], c[HW][i], c[LOG_START][i], told[i], own)
            elif code == STOP:
                stop(st, b, 1)
            elif code == CRASH:
                stop(st, b, 0)
            elif code == LEADER_APPEND:
                leader_append(
                    st,
                    b,
                    c[LEADER_EPOCH][i],
                    c[REC_BASE][i],
                    c[REC_END][i],
                    c[REC_EPOCH][i],
                    c[LEO_BEFORE][i],
                    c[HW_BEFORE][i],
                    c[LEO][i],
                    c[HW][i],
                )
            elif code == BECOME_LEADER:
                become_leader(
                    st,
                    b,
                    c[LEADER_EPOCH][i],
                    c[ISR][i],
                    c[EPOCH_START][i],
                    c[LEO_BEFORE][i],
                    c[HW_BEFORE][i],
                    c[LEO][i],
                    c[HW][i],
                )
            elif code == BECOME_FOLLOWER:
                become_follower(
                    st,
                    b,
                    c[LEADER][i],
                    c[LEADER_EPOCH][i],
                    c[LEO_BEFORE][i],
                    c[HW_BEFORE][i],
                    c[LEO][i],
                    c[HW][i],
                    c[LOG_START][i],
                )
            elif code == SHRINK_ISR:
                shrink_isr(st, b, c[ISR][i], c[LEO][i], c[HW][i])
            elif code == HANDLE_ALTER_PARTITION_RESPONSE:
                handle_alter_partition_response(st, b, c[ISR][i], c[ERROR][i], c[HW_BEFORE][i], c[HW][i])
            elif code == LOG_START_MOVED:
                log_start_moved(st, b, c[LOG_START][i], c[HW][i])
            elif code == EPOCH_CACHE_ENTRY:
                epoch_cache_entry(st, b, c[LEADER_EPOCH][i], c[EPOCH_START][i])
            elif code == OBSERVE:
                own = pairs[2 * pairs_at[i] : 2 * pairs_at[i + 1]]
                observe(st, b, c[LEO][i], c[HW][i], c[LOG_START][i], told[i], own)
            elif code == PRODUCE_ACK:
                produce_ack(st, b, c[ACKS][i], c[REC_END][i], c[ERROR][i])
            elif code == READ:
                consumer_read(st, b, c[BOUND][i], c[REC_END][i])
            elif code == TRUNCATE_TO_HIGH_WATERMARK:
                truncate_to_high_watermark(st, b, c[TARGET][i], c[LEO_BEFORE][i], c[HW_BEFORE][i], c[LEO][i], c[HW][i])
            elif peer < 0 or peer >= n or peer == b:
                nobody(st, code, peer)
                learn(st, b, c[LEO][i], c[HW][i])
            elif code == SEND_FETCH:
                send_fetch(st, b, peer, c[REQ_EPOCH][i], c[REQ_OFFSET][i], c[REQ_LAST_EPOCH][i])
            elif code == HANDLE_FETCH:
                handle_fetch(
                    st,
                    b,
                    peer,
                    c[REQ_EPOCH][i],
                    c[REQ_OFFSET][i],
                    c[REQ_LAST_EPOCH][i],
                    c[ERROR][i],
                    c[RES_HW][i],
                    c[DIV_EPOCH][i],
                    c[DIV_END][i],
                    c[REC_BASE][i],
                    c[REC_END][i],
                    c[REC_EPOCH][i],
                    c[REMOTE_LEO][i],
                    c[LEO_BEFORE][i],
                    c[HW_BEFORE][i],
                    c[LEO][i],
                    c[HW][i],
                )
            elif code == HANDLE_FETCH_RESPONSE:
                own = pairs[2 * pairs_at[i] : 2 * pairs_at[i + 1]]
                handle_fetch_response(
                    st,
                    b,
                    peer,
                    c[REQ_EPOCH][i],
                    c[REQ_OFFSET][i],
                    c[ERROR][i],
                    c[RES_HW][i],
                    c[RES_LOG_START][i],
                    c[REC_BASE][i],
                    c[REC_END][i],
                    c[REC_EPOCH][i],
                    c[LEO_BEFORE][i],
                    c[HW_BEFORE][i],
                    c[LEO][i],
                    c[HW][i],
                    c[LOG_START][i],
                    told[i],
                    own,
                )
            elif code == HANDLE_DIVERGING_RESPONSE:
                handle_diverging_response(
                    st,
                    b,
                    peer,
                    c[REQ_EPOCH][i],
                    c[REQ_OFFSET][i],
                    c[ERROR][i],
                    c[DIV_EPOCH][i],
                    c[DIV_END][i],
                    c[TARGET][i],
                    c[COMPLETED][i],
                    c[LEO_BEFORE][i],
                    c[HW_BEFORE][i],
                    c[LEO][i],
                    c[HW][i],
                )
            elif code == EXPAND_ISR:
                expand_isr(st, b, peer, c[ISR][i], c[REMOTE_LEO][i])
            elif code == HANDLE_OUT_OF_RANGE:
                handle_out_of_range(
                    st,
                    b,
                    peer,
                    c[REQ_EPOCH][i],
                    c[REQ_OFFSET][i],
                    c[LEADER_START][i],
                    c[LEADER_END][i],
                    c[TARGET][i],
                    c[LEO_BEFORE][i],
                    c[HW_BEFORE][i],
                    c[LEO][i],
                    c[HW][i],
                    c[LOG_START][i],
                )
            elif code == ANSWER_FETCH:
                answer_fetch(
                    st,
                    b,
                    peer,
                    c[REQ_EPOCH][i],
                    c[REQ_OFFSET][i],
                    c[REQ_LAST_EPOCH][i],
                    c[ERROR][i],
                    c[RES_HW][i],
                    c[DIV_EPOCH][i],
                    c[DIV_END][i],
                    c[REC_BASE][i],
                    c[REC_END][i],
                    c[REC_EPOCH][i],
                )
            elif code == HANDLE_FETCH_ERROR:
                handle_fetch_error(st, b, peer)
            elif code == SEND_EPOCH_REQUEST:
                send_epoch_request(st, b, peer, c[REQ_EPOCH][i], c[REQ_LAST_EPOCH][i])
            elif code == HANDLE_EPOCH_REQUEST:
                handle_epoch_request(
                    st, b, peer, c[REQ_EPOCH][i], c[REQ_LAST_EPOCH][i], c[ERROR][i], c[DIV_EPOCH][i], c[DIV_END][i]
                )
            elif code == HANDLE_EPOCH_RESPONSE:
                handle_epoch_response(
                    st,
                    b,
                    peer,
                    c[REQ_EPOCH][i],
                    c[REQ_LAST_EPOCH][i],
                    c[ERROR][i],
                    c[DIV_EPOCH][i],
                    c[DIV_END][i],
                    c[TARGET][i],
                    c[COMPLETED][i],
                    c[LEO_BEFORE][i],
                    c[HW_BEFORE][i],
                    c[LEO][i],
                    c[HW][i],
                )
        logs_agree(st)
        if st[WHOLE, OVERFLOW] == 1:
            return
        if t < len(final):
            keep(st, t, final, caches)


def listen(st: State, node: Ints, rows: Ints, first: int, last: int) -> None:
    """Who tells anything: what a silent broker sent or answered nobody can know."""
    heard = 0
    for at in range(first, last):
        heard |= 1 << (node[rows[at]] if len(rows) > 0 else node[at])
    st[WHOLE, HEARD] = heard


def keep(st: State, t: int, final: Final, caches: Caches) -> None:
    """The last state of trace t."""
    for b in range(st[OPTION, BROKERS]):
        for k in range(len(FINAL)):
            final[t, b, k] = st[REPLICAS + b, FINAL[k]]
        for k in range(final[t, b, len(FINAL) - 1]):
            caches[t, b, k, 0] = st[epochs_row(st, b), k]
            caches[t, b, k, 1] = st[starts_row(st, b), k]

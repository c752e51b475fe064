"""The judge: one loop over the columns of events.

Rules of this file

1. Each event has one function, which gets the fields that the event may report, those that belong together as one group
   (conformance.judge.field_groups); `c[FIELD][i]` is UNKNOWN where the source does not report the field. `st` is the table
   of what is known of the partition, and of the results (conformance.judge.state).
2. The same text runs interpreted (explanations, small inputs) and compiled (conformance/engine/compiled.py).
3. Nothing is allocated per event.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tidegauge.conformance.judge import fields as field
from tidegauge.conformance.judge import state as s
from tidegauge.conformance.judge.elections import read_config, set_min_isr
from tidegauge.conformance.judge.events.controller import (
    alter_partition,
    change_partition,
    fence_broker,
    register_broker,
    unfence_broker,
    unknown_broker,
)
from tidegauge.conformance.judge.events.follower import handle_fetch_error, handle_fetch_response, send_fetch
from tidegauge.conformance.judge.events.leader import (
    consumer_read,
    expand_isr,
    handle_alter_partition_response,
    leader_append,
    produce_ack,
    shrink_isr,
)
from tidegauge.conformance.judge.events.lifecycle import (
    copy_final_state,
    delete_replica,
    epoch_cache_entry,
    hw_checkpoint,
    log_start_moved,
    logs_agree,
    lose_disk,
    observe,
    start,
    stop,
)
from tidegauge.conformance.judge.events.roles import become_follower, become_leader
from tidegauge.conformance.judge.events.serving import answer_fetch, handle_fetch
from tidegauge.conformance.judge.events.truncation import (
    handle_diverging_response,
    handle_epoch_response,
    handle_offsets_for_leader_epoch_request,
    handle_out_of_range,
    send_offsets_for_leader_epoch_request,
    truncate_to_high_watermark,
)
from tidegauge.conformance.judge.field_groups import (
    Columns,
    assignment_of,
    log_after,
    log_before,
    records_of,
    request_of,
    response_of,
    truncation_of,
)
from tidegauge.conformance.judge.log_checks import alive, believe, fail_peer
from tidegauge.conformance.judge.unobserved import forget_peers, forget_unobserved, lines_missing, node_observed
from tidegauge.traces.columns import UNKNOWN
from tidegauge.traces.schema import MISSING_AHEAD, MISSING_BEHIND

Flags: TypeAlias = NDArray[np.bool_]


def judge_traces(
    st: s.State,
    c: Columns,
    event: s.Ints,
    node: s.Ints,
    reported: Flags,
    pairs_at: s.Ints,
    pairs: s.Ints,
    rows: s.Ints,
    missing: s.Ints,
    trace_starts: s.Ints,
    final: s.Final,
    caches: s.Caches,
) -> None:
    """Judge every trace from an empty state; copy the last state of the first `len(final)` traces into `final` and `caches`.

    Trace t has the events from `trace_starts[t]` to before `trace_starts[t + 1]`. Event `at` is row `rows[at]` of the
    columns, or row `at` where `rows` is empty (traces.columns). Row i of the columns has the fields `c[FIELD][i]`, the code
    `event[i]` and the node `node[i]`: a broker below BROKERS, else the controller. `reported[i]` says whether it reports
    entries of an epoch cache: the numbers from `pairs[2 * pairs_at[i]]` to before `pairs[2 * pairs_at[i + 1]]`, epoch and
    start offset in turn. `missing` is empty, or has flags for every event: whether lines of its node are missing before or
    after it.

    PIECEWISE: the traces are pieces of one, whose state goes on. UNOBSERVED has the kinds of events that the source does not
    report.
    """
    n = st[s.OPTION, s.BROKERS]
    for t in range(len(trace_starts) - 1):
        if st[s.OPTION, s.PIECEWISE] == 0:
            s.forget(st, t)
        for at in range(trace_starts[t], trace_starts[t + 1]):
            st[s.PARTITION, s.NOW] = at
            i = rows[at] if len(rows) > 0 else at
            b = node[i]
            code = event[i]
            if len(missing) > 0 and missing[at] & MISSING_AHEAD:
                lines_missing(st, b)
            node_observed(st, b)
            if st[s.OPTION, s.UNOBSERVED] != 0 and b < n:
                forget_unobserved(st, b)
            peer = c[field.PEER][i]
            if code == field.CHANGE_PARTITION:
                change_partition(
                    st,
                    c[field.LEADER][i],
                    c[field.LEADER_EPOCH][i],
                    c[field.PARTITION_EPOCH][i],
                    c[field.ISR][i],
                    c[field.LIVE][i],
                    c[field.CLEAN][i],
                    assignment_of(c, i),
                )
            elif code == field.ALTER_PARTITION:
                alter_partition(
                    st, peer, c[field.LEADER_EPOCH][i], c[field.PARTITION_EPOCH][i], c[field.ISR][i], c[field.ERROR][i]
                )
            elif code in (field.REGISTER_BROKER, field.FENCE_BROKER, field.UNFENCE_BROKER):
                if 0 <= peer < n:
                    if code == field.REGISTER_BROKER:
                        register_broker(st, peer, c[field.BROKER_EPOCH][i], c[field.CLEAN][i])
                    elif code == field.FENCE_BROKER:
                        fence_broker(st, peer)
                    else:
                        unfence_broker(st, peer)
                elif peer == UNKNOWN:
                    # 1: it was a registration.
                    unknown_broker(st, int(code == field.REGISTER_BROKER))
            elif code == field.SET_MIN_ISR:
                set_min_isr(st, c[field.MIN_ISR][i])
            elif b >= n:  # an event of the controller that is judged as part of another
                pass
            elif code == field.READ_CONFIG:
                read_config(st, b, c[field.MIN_ISR][i])
            elif code == field.START:
                # The entries of an epoch cache that the event reports: epoch and start offset in turn.
                own = pairs[2 * pairs_at[i] : 2 * pairs_at[i + 1]]
                start(st, b, c[field.CLEAN][i], c[field.LEO][i], c[field.HW][i], c[field.LOG_START][i], reported[i], own)
            elif code == field.LOSE_DISK:
                lose_disk(st, b)
            elif code == field.DELETE_REPLICA:
                delete_replica(st, b)
            elif code == field.STOP:
                # 1: in order; a crash, below, is not.
                stop(st, b, 1)
            elif code == field.CRASH:
                stop(st, b, 0)
            elif code == field.LEADER_APPEND:
                leader_append(
                    st, b, c[field.LEADER_EPOCH][i], records_of(c, i), c[field.ACKS][i], log_before(c, i), log_after(c, i)
                )
            elif code == field.BECOME_LEADER:
                become_leader(
                    st,
                    b,
                    c[field.LEADER_EPOCH][i],
                    c[field.PARTITION_EPOCH][i],
                    c[field.ISR][i],
                    c[field.EPOCH_START][i],
                    log_before(c, i),
                    log_after(c, i),
                )
            elif code == field.BECOME_FOLLOWER:
                become_follower(
                    st,
                    b,
                    c[field.LEADER][i],
                    c[field.LEADER_EPOCH][i],
                    c[field.PARTITION_EPOCH][i],
                    log_before(c, i),
                    log_after(c, i),
                    c[field.LOG_START][i],
                )
            elif code == field.SHRINK_ISR:
                shrink_isr(st, b, c[field.ISR][i], c[field.LEO][i], c[field.HW][i])
            elif code == field.HANDLE_ALTER_PARTITION_RESPONSE:
                handle_alter_partition_response(
                    st,
                    b,
                    c[field.ISR][i],
                    c[field.PARTITION_EPOCH][i],
                    c[field.ERROR][i],
                    c[field.HW_BEFORE][i],
                    c[field.HW][i],
                )
            elif code == field.LOG_START_MOVED:
                log_start_moved(st, b, c[field.LOG_START][i], c[field.HW][i])
            elif code == field.EPOCH_CACHE_ENTRY:
                epoch_cache_entry(st, b, c[field.LEADER_EPOCH][i], c[field.EPOCH_START][i])
            elif code == field.OBSERVE:
                own = pairs[2 * pairs_at[i] : 2 * pairs_at[i + 1]]
                observe(st, b, c[field.LEO][i], c[field.HW][i], c[field.LOG_START][i], reported[i], own)
            elif code == field.HW_CHECKPOINT:
                hw_checkpoint(st, b, c[field.HW][i])
            elif code == field.PRODUCE_ACK:
                produce_ack(st, b, c[field.ACKS][i], c[field.REC_END][i], c[field.REC_EPOCH][i], c[field.ERROR][i])
            elif code == field.READ:
                consumer_read(st, b, c[field.BOUND][i], c[field.REC_END][i])
            elif code == field.TRUNCATE_TO_HIGH_WATERMARK:
                truncate_to_high_watermark(st, b, c[field.TARGET][i], log_before(c, i), log_after(c, i))
            # The events below concern another broker. Without it they cannot be judged, but a peer that is none is a fault.
            elif peer < 0 or peer >= n or peer == b:
                alive(st, b)
                fail_peer(st, code, peer)
                forget_peers(st, b)
                believe(st, b, c[field.LEO][i], c[field.HW][i])
            elif code == field.SEND_FETCH:
                send_fetch(st, b, peer, c[field.REQ_EPOCH][i], c[field.REQ_OFFSET][i], c[field.REQ_LAST_EPOCH][i])
            elif code == field.HANDLE_FETCH:
                handle_fetch(
                    st,
                    b,
                    peer,
                    request_of(c, i),
                    response_of(c, i),
                    records_of(c, i),
                    c[field.REMOTE_LEO][i],
                    c[field.REQ_BROKER_EPOCH][i],
                    log_before(c, i),
                    log_after(c, i),
                )
            elif code == field.HANDLE_FETCH_RESPONSE:
                own = pairs[2 * pairs_at[i] : 2 * pairs_at[i + 1]]
                handle_fetch_response(
                    st,
                    b,
                    peer,
                    request_of(c, i),
                    response_of(c, i),
                    records_of(c, i),
                    log_before(c, i),
                    log_after(c, i),
                    c[field.LOG_START][i],
                    reported[i],
                    own,
                )
            elif code == field.HANDLE_DIVERGING_RESPONSE:
                handle_diverging_response(
                    st, b, peer, request_of(c, i), response_of(c, i), truncation_of(c, i), log_before(c, i), log_after(c, i)
                )
            elif code == field.EXPAND_ISR:
                expand_isr(st, b, peer, c[field.ISR][i], c[field.REMOTE_LEO][i], c[field.BROKER_EPOCH][i])
            elif code == field.HANDLE_OUT_OF_RANGE:
                handle_out_of_range(
                    st,
                    b,
                    peer,
                    request_of(c, i),
                    c[field.LEADER_START][i],
                    c[field.LEADER_END][i],
                    c[field.TARGET][i],
                    log_before(c, i),
                    log_after(c, i),
                    c[field.LOG_START][i],
                )
            elif code == field.ANSWER_FETCH:
                answer_fetch(st, b, peer, request_of(c, i), response_of(c, i), records_of(c, i))
            elif code == field.HANDLE_FETCH_ERROR:
                handle_fetch_error(st, b, peer)
            elif code == field.SEND_EPOCH_REQUEST:
                send_offsets_for_leader_epoch_request(st, b, peer, c[field.REQ_EPOCH][i], c[field.REQ_LAST_EPOCH][i])
            elif code == field.HANDLE_EPOCH_REQUEST:
                handle_offsets_for_leader_epoch_request(st, b, peer, request_of(c, i), response_of(c, i))
            elif code == field.HANDLE_EPOCH_RESPONSE:
                handle_epoch_response(
                    st, b, peer, request_of(c, i), response_of(c, i), truncation_of(c, i), log_before(c, i), log_after(c, i)
                )
            if len(missing) > 0 and missing[at] & MISSING_BEHIND:
                lines_missing(st, b)
        if st[s.OPTION, s.PIECEWISE] == 0:
            # The trace ends here: events that the source does not report may have happened since the last ones.
            if st[s.OPTION, s.UNOBSERVED] != 0:
                for b in range(n):
                    forget_unobserved(st, b)
            logs_agree(st)
        if st[s.PARTITION, s.OVERFLOW] != 0:  # the caller starts again with a larger table
            return
        if t < len(final):
            copy_final_state(st, t, final, caches)

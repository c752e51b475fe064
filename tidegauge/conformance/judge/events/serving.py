"""Fetches at a leader: which it refuses, what it answers at once or later, what it records of the follower.

`st` is the judge's table (conformance.judge.state): row REPLICAS + b is leader b, which reports the event, and row `p` what
is in flight between it and follower `f`: REQ_.. is the request, RES_.. the response, REMOTE the log end that b recorded of
f. UNKNOWN: no event shows the value; it is below every number. -1 is null, or none. `decide(st, rule, ok, field, expected,
actual)` counts a check as held or failed, `undecided(st, rule, missing)` one that lacks the fields in the bit mask
`missing`.

Rules of fencing: requests that a broker refuses, by leader epoch, role, assignment and broker epoch of the sender

1. The leader epoch decides first, then the role, then whether the sender is a replica, then its broker epoch (KIP-903).
2. Whether the sender is a replica, or an older process of one, may be UNKNOWN: then a response that either case allows is
   right.

Rules of fetches: the request, the response, and the log end that the leader records

1. A fetch is served when its error is NONE or OFFSET_OUT_OF_RANGE, or when no error is reported and the response has a
   value that a refusal does not have. Null is none: a refusal has null in every field.
2. A response is a read when it has records, even an empty batch, or reports that nothing diverges; it is diverging when it
   has a diverging epoch. One without either is as the rule expects, and unknown where the rule lacks an input.

Rules of responses that leave later than their fetch was handled: DelayedFetch waits for records or a higher high watermark

    b1   HandleFetch 5, recorded, HW 3                                AnswerFetch 5..7, HW 6
         DELAYED in the purgatory     appends, fetches: HW 3 -> 6     read again: DelayedFetch#onComplete

1. The log is read again as the fetch completes, so the response has the leader's values of that time. The leader may have
   been deposed by then.
2. A response whose fetch was not seen handled is accepted as it is, and is in flight from here on.
"""

from tidegauge.conformance.judge import fields as field
from tidegauge.conformance.judge import state as s
from tidegauge.conformance.judge.events.leader_hw import advance, is_stale
from tidegauge.conformance.judge.field_groups import Records, ReportedLog, ReportedResponse, Request
from tidegauge.conformance.judge.fields import RULE
from tidegauge.conformance.judge.in_flight import FIRST, agree_if_known, copy_kind, request_handled, restore_pair
from tidegauge.conformance.judge.lineage import epoch_at, inputs_missing
from tidegauge.conformance.judge.log_checks import hw_unmoved, hw_within_log, leo_unmoved, log_unmoved, responds
from tidegauge.conformance.judge.tally import decide, failed, same, undecided
from tidegauge.impl.rules import DIVERGING as DIVERGES
from tidegauge.impl.rules import (
    FENCED_LEADER_EPOCH,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    OUT_OF_RANGE,
    READ,
    UNKNOWN_LEADER_EPOCH,
    fetch_decision,
    fetch_error,
)
from tidegauge.traces.columns import UNKNOWN

# Fencing.


def is_assigned(st: s.State, b: int, f: int) -> int:
    """Return whether leader b counts f as a replica: 1, 0, or UNKNOWN."""
    assigned, registered = st[s.REPLICAS + b, s.ASSIGNED], st[s.PARTITION, s.C_REPLICAS]
    # Every broker is a replica all the time.
    if st[s.OPTION, s.REASSIGNED] == 0:
        return 1
    if assigned == UNKNOWN:
        return UNKNOWN
    # A broker's log does not show when it reads a new assignment: it may use either.
    if st[s.OPTION, s.LAG_RULE] == 1 and registered != UNKNOWN and (assigned ^ registered) >> f & 1 == 1:
        return UNKNOWN
    return int(assigned >> f & 1)


def check_fencing(st: s.State, b: int, f: int, epoch: int, error: int, assigned: int, older_process: int) -> None:
    """Check FENCE-01 and FENCE-02: broker b rightly serves, or refuses with `error`, a request of f of leader epoch `epoch`.

    `assigned`: whether its sender is a replica; `older_process`: whether it is a process that a later one has replaced,
    which is refused too (KIP-903). 1, 0 or UNKNOWN.
    """
    role, own = st[s.REPLICAS + b, s.ROLE], st[s.REPLICAS + b, s.EPOCH]
    served, fences = error in (NONE, OFFSET_OUT_OF_RANGE), s.has_switch(st, s.FENCING, f)
    if served and role != UNKNOWN:
        decide(st, RULE.FENCE_02, role == s.LEADING, field.ERROR, NOT_LEADER_OR_FOLLOWER, error)
    if role == UNKNOWN or (fences and UNKNOWN in (epoch, own)):
        undecided(st, RULE.FENCE_01, 1 << field.REQ_EPOCH)
        return
    # Other errors (storage, topic ids) refuse for reasons that the trace does not show.
    if not served and error not in (NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH):
        return
    expected = fetch_error(epoch, own, role == s.LEADING, assigned != 0, fences and role != s.NO_ROLE)
    if assigned == UNKNOWN and expected == NONE:
        undecided(st, RULE.FENCE_01, 1 << field.REPLICAS)
        return
    # A partition of a broker that has just started has leader epoch -1 (Partition#leaderEpoch): every epoch is newer.
    if role == s.NO_ROLE and error == UNKNOWN_LEADER_EPOCH:
        expected = error
    if expected == NONE and error == NOT_LEADER_OR_FOLLOWER and older_process != 0:
        if older_process == UNKNOWN:
            undecided(st, RULE.FENCE_01, 1 << field.REQ_BROKER_EPOCH)
            return
        expected = error  # Replica#updateFetchStateOrThrow
    # Without a leader epoch in the request any refusal of a broker that does not lead is right.
    if not fences and role != s.LEADING and not served:
        expected = error
    decide(st, RULE.FENCE_01, served if expected == NONE else error == expected, field.ERROR, expected, error)


def is_older_process(st: s.State, f: int, p: int, process: int) -> int:
    """Return whether a request comes from an older process of f than the latest that the leader accepted: 1, 0, UNKNOWN.

    `process` is the broker epoch in the request.
    """
    latest = st[p, s.REMOTE_BROKER_EPOCH]
    if UNKNOWN not in (process, latest):
        return 1 if process < latest else 0
    # The first process of f runs: there is no older one.
    return 0 if st[s.REPLICAS + f, s.RESTARTED] == 0 else UNKNOWN


# Fetches.


def check_decision(st: s.State, b: int, f: int, p: int, error: int, div_epoch: int, div_end: int, records_from: int) -> int:
    """Check FETCH-05: the response is READ, DIVERGING or OUT_OF_RANGE as the rule decides. Return which it was.

    It is the response to the request in row `p`; `records_from` is the offset of its first record, below 0 where none is
    reported.
    """
    # -1 in a field of the divergence is null: the response has none.
    reported = READ if records_from >= 0 or div_epoch == -1 or div_end == -1 else UNKNOWN
    if error == OFFSET_OUT_OF_RANGE:
        reported = OUT_OF_RANGE
    elif div_epoch not in (UNKNOWN, -1) or div_end not in (UNKNOWN, -1):
        reported = DIVERGES
    n, leo, log_start = st[s.REPLICAS + b, s.CACHED], st[s.REPLICAS + b, s.LEO], st[s.REPLICAS + b, s.LOG_START]
    offset = st[p, s.REQ_OFFSET]
    last = st[p, s.REQ_LAST] if s.has_switch(st, s.TRUNCATION_ON_FETCH, f) else -1
    if UNKNOWN in (n, leo, log_start, offset, last):
        undecided(st, RULE.FETCH_05, inputs_missing(n, leo, log_start, offset, last))
        return reported
    expected, epoch, end = fetch_decision(
        s.entries(st, s.epochs_row(st, b), n), s.entries(st, s.starts_row(st, b), n), log_start, leo, offset, last
    )
    # An out-of-range fetch would have reported its error: if the rule expects one here, what happened stays unknown.
    if reported == UNKNOWN:
        undecided(st, RULE.FETCH_05, 1 << field.DIV_EPOCH | 1 << field.DIV_END)
        return UNKNOWN if expected == OUT_OF_RANGE else int(expected)
    if OUT_OF_RANGE in (expected, reported):
        expected_error = OFFSET_OUT_OF_RANGE if expected == OUT_OF_RANGE else NONE
        reported_error = OFFSET_OUT_OF_RANGE if reported == OUT_OF_RANGE else NONE
        decide(st, RULE.FETCH_05, expected == reported, field.ERROR, expected_error, reported_error)
    elif expected == reported and expected == DIVERGES and agree_if_known(div_end, end):
        decide(st, RULE.FETCH_05, agree_if_known(div_epoch, epoch), field.DIV_EPOCH, epoch, div_epoch)
    elif expected != reported:
        expected_kind = s.DIVERGED if expected == DIVERGES else s.DATA
        failed(st, RULE.FETCH_05, field.RESPONSE, expected_kind, s.DATA if expected_kind == s.DIVERGED else s.DIVERGED)
    else:
        decide(st, RULE.FETCH_05, expected == READ or div_end == end, field.DIV_END, end, div_end)
    return reported


def handle_fetch(
    st: s.State,
    b: int,
    f: int,
    request: Request,
    response: ReportedResponse,
    data: Records,
    remote_leo: int,
    process: int,
    before: ReportedLog,
    after: ReportedLog,
) -> None:
    """Judge a fetch of follower f at leader b. ReplicaManager#fetchMessages, Partition#fetchRecords.

    `remote_leo` is the LEO of f that b reports to have recorded afterwards, `process` the broker epoch in the request.
    """
    responds(st, b, response.error)
    log_unmoved(st, b, before)
    leo_unmoved(st, b, after.leo, field.LEO)
    p = s.pair(st, f, b)
    repeated = FIRST
    if st[s.OPTION, s.DUPLICATES] == 1 and st[s.OPTION, s.REPORTS_SEND_FETCH] == 1:
        repeated = copy_kind(st, p, request.epoch, request.offset, request.last_epoch, s.REQUEST)
    other = request_handled(st, p, f, s.REQUEST, request, repeated != FIRST)
    fetch_answered(st, b, f, p, response, data, remote_leo, process, after.hw)
    # The follower may take the response to another request; where requests repeat and no SendFetch is reported, always.
    if other or (st[s.OPTION, s.DUPLICATES] == 1 and st[s.OPTION, s.REPORTS_SEND_FETCH] == 0):
        st[p, s.KIND] = s.AMBIGUOUS
    # The leader records a request that arrives twice, but its response goes to a closed connection (judge.in_flight).
    if repeated != FIRST:
        restore_pair(st, p, repeated)


def fetch_answered(
    st: s.State, b: int, f: int, p: int, response: ReportedResponse, data: Records, remote_leo: int, process: int, hw: int
) -> None:
    """Judge the response to the request in row p, and what the leader recorded of follower f.

    `remote_leo` is the LEO of f that b reports to have recorded, `process` the broker epoch in the request, `hw` b's HW
    after.
    """
    epoch, error = st[p, s.REQ_EPOCH], response.error
    # The recorded LEO has become the fetch offset, so the fetch was read, even if its response leaves later.
    recorded = remote_leo >= 0 and remote_leo == st[p, s.REQ_OFFSET] and st[p, s.REMOTE] not in (UNKNOWN, remote_leo)
    has_body = recorded or response.hw >= 0 or data.base >= 0 or response.div_epoch >= 0 or response.div_end >= 0
    # A refusal has no body: a response with one was served (Partition#fetchRecords throws before it reads).
    if error == UNKNOWN and has_body:
        error = NONE
    if error == UNKNOWN:
        undecided(st, RULE.FENCE_01, 1 << field.ERROR)
        forget_response(st, b, p, remote_leo, hw)
        return
    check_fencing(st, b, f, epoch, error, is_assigned(st, b, f), is_older_process(st, f, p, process))
    if error not in (NONE, OFFSET_OUT_OF_RANGE):
        st[p, s.KIND] = s.REFUSED
        st[p, s.RES_ERROR] = error
        hw_unmoved(st, b, hw, field.HW)
        return
    st[p, s.REMOTE_BROKER_EPOCH] = process if process == UNKNOWN else max(process, st[p, s.REMOTE_BROKER_EPOCH])
    # Only a read is recorded: any offset from 0 on says that there were records.
    records_from = 0 if recorded else data.base
    reported = check_decision(st, b, f, p, error, response.div_epoch, response.div_end, records_from)
    if reported == UNKNOWN:
        forget_response(st, b, p, remote_leo, hw)
        return
    # Only a read is recorded: a diverging or out-of-range fetch has left Partition#fetchRecords before that.
    if reported == READ:
        fetch_read(st, b, f, p, response.hw, response.log_start, data, remote_leo, hw)
        return
    # A LEO that was not recorded again shows whether the leader still has the one from before its election (F2).
    if remote_leo == -1 and is_stale(st, b, f):
        st[p, s.REMOTE_EPOCH] = -1
    elif remote_leo >= 0 and st[p, s.REMOTE] == -1 and remote_leo == st[p, s.STALE_LEO]:
        decide(st, RULE.HW_08, False, field.REMOTE_LEO, -1, remote_leo)
    elif remote_leo != UNKNOWN:
        same(st, RULE.FETCH_07, field.REMOTE_LEO, st[p, s.REMOTE], remote_leo, 1 << field.REMOTE_LEO)
    if remote_leo != UNKNOWN:
        st[p, s.REMOTE] = remote_leo
    hw_unmoved(st, b, hw, field.HW)
    check_response_log_start(st, b, response.log_start)
    st[p, s.KIND] = s.OUT_OF_RANGE if reported == OUT_OF_RANGE else s.DIVERGED
    st[p, s.RES_DIV_EPOCH] = response.div_epoch
    st[p, s.RES_DIV_END] = response.div_end
    st[p, s.RES_LOG_START] = response.log_start if response.log_start >= 0 else st[s.REPLICAS + b, s.LOG_START]


def forget_response(st: s.State, b: int, p: int, remote_leo: int, hw: int) -> None:
    """Make unknown what became of the fetch in row `p` at leader b: it may have been recorded.

    `remote_leo` is the follower's recorded LEO afterwards, `hw` b's HW, as the event reports them.
    """
    # The same LEO, recorded in this epoch, is current whether or not this fetch recorded it again.
    same_as_before = (
        remote_leo != UNKNOWN and remote_leo == st[p, s.REMOTE] and st[p, s.REMOTE_EPOCH] == st[s.REPLICAS + b, s.EPOCH]
    )
    st[p, s.KIND] = UNKNOWN
    st[p, s.REMOTE] = remote_leo
    st[p, s.REMOTE_EPOCH] = st[p, s.REMOTE_EPOCH] if same_as_before else UNKNOWN
    st[p, s.REMOTE_BROKER_EPOCH] = UNKNOWN
    advance(st, b, hw, UNKNOWN)
    hw_within_log(st, b)


def fetch_read(
    st: s.State, b: int, f: int, p: int, res_hw: int, log_start: int, data: Records, remote_leo: int, hw: int
) -> None:
    """Check FETCH-06, FETCH-07 and FETCH-08 on a read: its records, the recorded offset, the HW in the response.

    `res_hw` and `log_start` are those of the response, `remote_leo` and `hw` what leader b has afterwards.
    """
    offset = st[p, s.REQ_OFFSET]
    check_records(st, b, offset, data)
    if res_hw >= 0:
        same(st, RULE.FETCH_08, field.RES_HW, st[s.REPLICAS + b, s.HW], res_hw, 1 << field.HW)
    check_response_log_start(st, b, log_start)
    same(st, RULE.FETCH_07, field.REMOTE_LEO, offset, remote_leo, 1 << field.REQ_OFFSET)
    before, was_stale = st[p, s.REMOTE], is_stale(st, b, f)
    after = remote_leo if remote_leo != UNKNOWN else offset
    st[p, s.REMOTE] = after
    st[p, s.REMOTE_EPOCH] = st[s.REPLICAS + b, s.EPOCH]
    st[p, s.KIND] = s.DATA if res_hw >= 0 else s.DELAYED
    st[p, s.DELAYED_HW] = st[s.REPLICAS + b, s.HW]
    st[p, s.RES_HW] = res_hw
    st[p, s.RES_LOG_START] = log_start if log_start >= 0 else st[s.REPLICAS + b, s.LOG_START]
    st[p, s.RES_BASE] = data.base
    st[p, s.RES_END] = data.end
    st[p, s.RES_REC_EPOCH] = data.epoch
    st[p, s.RES_TERM] = st[s.REPLICAS + b, s.TERM]
    # Partition#updateFollowerFetchState tries to advance the high watermark only if the recorded LEO has changed. A leader
    # that forgets LEOs of earlier epochs sees a change where this one sees none.
    trigger = UNKNOWN
    if UNKNOWN not in (before, after) and not (was_stale and before == after):
        trigger = 1 if before != after else 0
    advance(st, b, hw, trigger)
    hw_within_log(st, b)


def check_response_log_start(st: s.State, b: int, log_start: int) -> None:
    """Check FETCH-08: the log start in a response is the leader's. Partition#readRecords."""
    # In a broker's log the line of LogStartMoved may come after the response: another thread writes it.
    if log_start >= 0 and st[s.OPTION, s.LAG_RULE] == 0:
        same(st, RULE.FETCH_08, field.RES_LOG_START, st[s.REPLICAS + b, s.LOG_START], log_start, 1 << field.LOG_START)


def check_records(st: s.State, b: int, offset: int, data: Records) -> None:
    """Check FETCH-06: the records in a response start at the fetch offset and are in the leader's log."""
    base, end, rec_epoch = data.base, data.end, data.epoch
    if base < 0:
        undecided(st, RULE.FETCH_06, 1 << field.REC_BASE)
        return
    same(st, RULE.FETCH_06, field.REC_BASE, offset, base, 1 << field.REQ_OFFSET)
    if end != UNKNOWN and st[s.REPLICAS + b, s.LEO] != UNKNOWN:
        leo = st[s.REPLICAS + b, s.LEO]
        decide(st, RULE.FETCH_06, base <= end <= leo, field.REC_END, base if end < base else leo, end)
    n = st[s.REPLICAS + b, s.CACHED]
    if end > base and rec_epoch >= 0 and n != UNKNOWN:
        same(st, RULE.FETCH_06, field.REC_EPOCH, epoch_at(st, b, n, end - 1), rec_epoch, 1 << field.EPOCHS)


# Responses that leave later.


def answer_fetch(st: s.State, b: int, f: int, request: Request, response: ReportedResponse, data: Records) -> None:
    """Judge AnswerFetch, a response that leaves later: its HW is one that b had since the fetch was recorded (FETCH-08)."""
    responds(st, b, response.error)
    p = s.pair(st, f, b)
    kind = st[p, s.KIND]
    same_request = agree_if_known(request.epoch, st[p, s.REQ_EPOCH]) and agree_if_known(request.offset, st[p, s.REQ_OFFSET])
    # A response was reported already, or f has sent another request since: it does not take this response over.
    if kind not in (UNKNOWN, s.DELAYED, s.REQUEST, s.ORPHANED) or not same_request:
        return
    leads = st[s.REPLICAS + b, s.ROLE] == s.LEADING and agree_if_known(st[s.REPLICAS + b, s.EPOCH], request.epoch)
    error, res_hw, div_epoch, div_end = response.error, response.hw, response.div_epoch, response.div_end
    if error == UNKNOWN and (data.base >= 0 or div_epoch >= 0 or div_end >= 0):
        error = NONE
    # A fetch that a deposed leader reads again is refused (Partition#fetchRecords).
    if error == NONE and data.end > data.base >= 0 and st[s.REPLICAS + b, s.ROLE] != UNKNOWN:
        decide(st, RULE.FENCE_02, st[s.REPLICAS + b, s.ROLE] == s.LEADING, field.ERROR, NOT_LEADER_OR_FOLLOWER, error)
    # Within one leader epoch the high watermark only rises. After another election no bounds are known.
    if kind == s.DELAYED and leads and error == NONE and res_hw >= 0:
        low, high = st[p, s.DELAYED_HW], st[s.REPLICAS + b, s.HW]
        if UNKNOWN in (low, high):
            undecided(st, RULE.FETCH_08, 1 << field.HW)
        else:
            decide(st, RULE.FETCH_08, low <= res_hw <= high, field.RES_HW, low if res_hw < low else high, res_hw)
    if kind != s.DELAYED:
        st[p, s.REQ_EPOCH] = request.epoch
        st[p, s.REQ_OFFSET] = request.offset
        st[p, s.REQ_LAST] = request.last_epoch
    if error not in (NONE, UNKNOWN):
        st[p, s.KIND] = s.OUT_OF_RANGE if error == OFFSET_OUT_OF_RANGE else s.REFUSED
        return
    if div_epoch not in (UNKNOWN, -1) or div_end not in (UNKNOWN, -1):
        if leads:
            check_decision(st, b, f, p, NONE, div_epoch, div_end, data.base)
        st[p, s.KIND] = s.DIVERGED
        st[p, s.RES_DIV_EPOCH] = div_epoch
        st[p, s.RES_DIV_END] = div_end
        st[p, s.RES_LOG_START] = response.log_start if response.log_start >= 0 else st[s.REPLICAS + b, s.LOG_START]
        return
    # Neither records nor a divergence is reported: it may be either.
    if data.base < 0 and div_epoch != -1 and div_end != -1:
        st[p, s.KIND] = UNKNOWN
        return
    if leads:
        check_records(st, b, st[p, s.REQ_OFFSET], data)
    st[p, s.KIND] = s.DATA
    st[p, s.RES_HW] = res_hw
    st[p, s.RES_LOG_START] = response.log_start if response.log_start >= 0 else st[s.REPLICAS + b, s.LOG_START]
    st[p, s.RES_BASE] = data.base
    st[p, s.RES_END] = data.end
    st[p, s.RES_REC_EPOCH] = data.epoch
    st[p, s.RES_TERM] = st[s.REPLICAS + b, s.TERM] if leads else -1

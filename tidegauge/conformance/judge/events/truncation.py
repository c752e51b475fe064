"""Events that truncate or reset a follower's log.

Rules of this file

1. A truncation has one cause: a diverging response, an epoch response, an out-of-range reset, or a log without epochs.
2. The offset is decided by the truncation table (rules.truncation_target), from the leader's (epoch, end offset) and the
   follower's own cache.

`st` is the judge's table (conformance.judge.state): row REPLICAS + b is the replica of broker b, which reports the event,
and row `p` what is in flight between a follower and a leader: REQ_.. is the request, RES_.. the response. (div_epoch,
div_end) is where the logs diverge, or where an epoch ends, by the response. UNKNOWN: no event shows the value. `decide(st,
rule, ok, field, expected, actual)` counts a check as held or failed, `as_expected` compares two values, `same` too, if the
expected one is known; `undecided(st, rule, missing)` counts a check that lacks the fields in the bit mask `missing`.

OffsetsForLeaderEpoch: a follower asks where an epoch ends, the leader answers, the follower truncates (KIP-101, KIP-279).
Request and response (an epoch response) are compared as those of fetches are (conformance.judge.in_flight).
"""

from tidegauge.conformance.judge import fields as field
from tidegauge.conformance.judge import state as s
from tidegauge.conformance.judge.events.follower import check_accepted, check_leader_followed, not_from_leader
from tidegauge.conformance.judge.events.serving import check_fencing
from tidegauge.conformance.judge.field_groups import ReportedLog, ReportedResponse, Request, Truncation
from tidegauge.conformance.judge.fields import RULE
from tidegauge.conformance.judge.in_flight import (
    FIRST,
    agree_if_known,
    carries_no_error,
    copy_kind,
    request_handled,
    request_sent,
    response_in_flight,
    restore_pair,
    same_as_sent,
)
from tidegauge.conformance.judge.lineage import cache_latest, cache_truncate, inputs_missing, set_log_start, truncate_fork
from tidegauge.conformance.judge.log_checks import (
    alive,
    cache_in_order,
    hw_becomes,
    hw_within_log,
    leo_becomes,
    log_unmoved,
    set_hw,
)
from tidegauge.conformance.judge.tally import as_expected, decide, same, undecided
from tidegauge.impl.rules import (
    NONE,
    RESET_TO_LEADER_START,
    accepts_epoch_response,
    end_offset_for,
    high_watermark_after_truncation,
    out_of_range_reset,
    truncation_target,
)
from tidegauge.traces.columns import UNKNOWN


def truncate(
    st: s.State, b: int, offset: int, div_epoch: int, div_end: int, truncated: Truncation, after: ReportedLog
) -> None:
    """Check TRUNC-01 by the truncation table, and TRUNC-03 and HW-07 on the log that the truncation leaves (`after`).

    `offset` is the fetch offset of the request that (div_epoch, div_end) answers.
    """
    target, completed = truncated.target, truncated.completed
    n, before = st[s.REPLICAS + b, s.CACHED], st[s.REPLICAS + b, s.LEO]
    if UNKNOWN in (n, before, offset, div_epoch, div_end):
        missing = inputs_missing(n, before, 0, offset, 0)
        if UNKNOWN in (div_epoch, div_end):
            missing |= 1 << field.DIV_EPOCH | 1 << field.DIV_END
        undecided(st, RULE.TRUNC_01, missing)
    else:
        _row, expected, expected_completed = truncation_target(
            s.entries(st, s.epochs_row(st, b), n), s.entries(st, s.starts_row(st, b), n), before, offset, div_epoch, div_end
        )
        as_expected(st, RULE.TRUNC_01, field.TARGET, expected, target)
        if completed != UNKNOWN:
            decide(
                st,
                RULE.TRUNC_01,
                expected_completed == (completed == 1),
                field.COMPLETED,
                1 if expected_completed else 0,
                completed,
            )
        if target == UNKNOWN:
            target = expected
        if completed == UNKNOWN:
            completed = 1 if expected_completed else 0
    truncate_at(st, b, target, after)
    # Row T4 of the table (KIP-279): the follower lacks the leader's epoch, truncates to its own earlier one and asks again.
    st[s.REPLICAS + b, s.MORE_ROUNDS] = UNKNOWN if completed == UNKNOWN else 1 - completed


def truncate_at(st: s.State, b: int, target: int, after: ReportedLog) -> None:
    """Check TRUNC-03 and HW-07: LEO and HW are lowered to the target. UnifiedLog#truncateTo.

    The last argument of each check is the bit mask of the fields that would decide it where something is unknown.
    """
    before = st[s.REPLICAS + b, s.LEO]
    # UNKNOWN is below every number, so the minimum with it is UNKNOWN.
    leo_becomes(st, b, RULE.TRUNC_03, min(before, target), after.leo, 1 << field.TARGET | 1 << field.LEO_BEFORE)
    old = st[s.REPLICAS + b, s.HW]
    lowered = high_watermark_after_truncation(old, target)
    hw_becomes(st, b, RULE.HW_07, lowered, after.hw, 1 << field.TARGET | 1 << field.HW_BEFORE)
    cache_truncate(st, b, target)
    # A target below the log start drops the whole log, which begins again there (UnifiedLog#truncateFullyAndStartAt).
    if target != UNKNOWN and st[s.REPLICAS + b, s.LOG_START] > target:
        st[s.REPLICAS + b, s.LOG_START] = target
    elif target == UNKNOWN and st[s.REPLICAS + b, s.LOG_START] > 0:
        set_log_start(st, b, UNKNOWN)
    cache_in_order(st, b)
    hw_within_log(st, b)


def handle_diverging_response(
    st: s.State,
    b: int,
    leader: int,
    request: Request,
    response: ReportedResponse,
    truncated: Truncation,
    before: ReportedLog,
    after: ReportedLog,
) -> None:
    """Judge a truncation by a diverging fetch response. AbstractFetcherThread#truncateOnFetchResponse."""
    alive(st, b)
    log_unmoved(st, b, before)
    p = s.pair(st, b, leader)
    epoch, offset, div_epoch, div_end = request.epoch, request.offset, response.div_epoch, response.div_end
    carries_no_error(st, response.error)
    # Fields of the request that the follower does not report are those of the request in flight.
    if st[p, s.KIND] in (s.DIVERGED, s.DELAYED):
        epoch = st[p, s.REQ_EPOCH] if epoch == UNKNOWN else epoch
        offset = st[p, s.REQ_OFFSET] if offset == UNKNOWN else offset
    check_accepted(st, b, leader, epoch, offset)
    if response_in_flight(st, p, leader, s.DIVERGED, epoch, offset, False):
        same_as_sent(st, field.DIV_EPOCH, st[p, s.RES_DIV_EPOCH], div_epoch)
        same_as_sent(st, field.DIV_END, st[p, s.RES_DIV_END], div_end)
        div_epoch = st[p, s.RES_DIV_EPOCH] if div_epoch == UNKNOWN else div_epoch
        div_end = st[p, s.RES_DIV_END] if div_end == UNKNOWN else div_end
    no_hw_from_diverging(st, b, after.hw)
    truncate(st, b, offset, div_epoch, div_end, truncated, after)
    st[p, s.KIND] = s.NOTHING


def no_hw_from_diverging(st: s.State, b: int, hw: int) -> None:
    """Check HW-06: only the truncation offset is taken over from a diverging response, not its HW (KAFKA-14704).

    `hw` is b's HW after the truncation.
    """
    # The HW may be reported to move with the truncation, which raises none, or by the event before it. HW_MOVED is b's HW
    # from before the last response moved it, -1 if none did. A rise that failed here is b's HW for the rules after it.
    moved, old = st[s.REPLICAS + b, s.HW_MOVED], st[s.REPLICAS + b, s.HW]
    if UNKNOWN not in (hw, old) and hw > old:
        decide(st, RULE.HW_06, False, field.HW, old, hw)
        set_hw(st, b, hw)
    elif moved == UNKNOWN:
        undecided(st, RULE.HW_06, 1 << field.HW)
    else:
        decide(st, RULE.HW_06, moved == -1, field.HW, moved, old)


def truncate_to_high_watermark(st: s.State, b: int, target: int, before: ReportedLog, after: ReportedLog) -> None:
    """Judge TruncateToHighWatermark by TRUNC-05: only a follower without epochs truncates to its HW.

    AbstractFetcherThread#truncateToHighWatermark.
    """
    alive(st, b)
    log_unmoved(st, b, before)
    n, old = st[s.REPLICAS + b, s.CACHED], st[s.REPLICAS + b, s.HW]
    # With truncation on fetch a follower that has epochs learns from the response where to truncate.
    if s.has_switch(st, s.TRUNCATION_ON_FETCH, b) and n == UNKNOWN:
        undecided(st, RULE.TRUNC_05, 1 << field.EPOCHS)
    elif s.has_switch(st, s.TRUNCATION_ON_FETCH, b):
        decide(st, RULE.TRUNC_05, n == 0, field.ENTRIES, 0, n)
    if target != UNKNOWN:
        same(st, RULE.TRUNC_05, field.TARGET, old, target, 1 << field.HW)
    else:
        target = old
    # A leader that truncates loses records that others have copied from it; a target at its log end removes none.
    role = st[s.REPLICAS + b, s.ROLE]
    if UNKNOWN not in (role, target) and target < st[s.REPLICAS + b, s.LEO]:
        decide(st, RULE.TRUNC_05, role == s.FOLLOWING, field.ROLE, s.FOLLOWING, role)
    truncate_at(st, b, target, after)


def handle_out_of_range(
    st: s.State,
    b: int,
    leader: int,
    request: Request,
    leader_start: int,
    leader_end: int,
    target: int,
    before: ReportedLog,
    after: ReportedLog,
    log_start: int,
) -> None:
    """Judge HandleOutOfRange by OOR-01: the three cases of an out-of-range reset.

    `leader_start` and `leader_end` are the offsets that the follower asked its leader for, `target` the one at which it goes
    on, `log_start` its log start afterwards. AbstractFetcherThread#fetchOffsetAndTruncate.
    """
    alive(st, b)
    log_unmoved(st, b, before)
    p, epoch, offset = s.pair(st, b, leader), request.epoch, request.offset
    # Fields of the request that the follower does not report are those of the request in flight.
    if st[p, s.KIND] in (s.OUT_OF_RANGE, s.DELAYED):
        epoch = st[p, s.REQ_EPOCH] if epoch == UNKNOWN else epoch
        offset = st[p, s.REQ_OFFSET] if offset == UNKNOWN else offset
    check_accepted(st, b, leader, epoch, offset)
    response_in_flight(st, p, leader, s.OUT_OF_RANGE, epoch, offset, False)
    st[p, s.KIND] = s.NOTHING
    own_end = st[s.REPLICAS + b, s.LEO]
    if UNKNOWN in (leader_start, leader_end, own_end):
        undecided(st, RULE.OOR_01, 1 << field.LEADER_START | 1 << field.LEADER_END | 1 << field.LEO)
        set_hw(st, b, after.hw)
        leo_becomes(st, b, RULE.OOR_01, UNKNOWN, after.leo, 1 << field.LEADER_END)
        set_log_start(st, b, log_start)
        st[s.REPLICAS + b, s.CACHED] = UNKNOWN
        return
    case, expected = out_of_range_reset(leader_start, leader_end, own_end)
    if target != UNKNOWN:
        as_expected(st, RULE.OOR_01, field.TARGET, expected, target)
    # Only a log that is wholly below the leader's start is dropped (UnifiedLog#truncateFullyAndStartAt).
    if case == RESET_TO_LEADER_START:
        leo_becomes(st, b, RULE.OOR_01, expected, after.leo, 0)
        hw_becomes(st, b, RULE.OOR_01, expected, after.hw, 0)
        set_log_start(st, b, expected)
        st[s.REPLICAS + b, s.CACHED] = 0
        truncate_fork(st, b, 0)
        if log_start != UNKNOWN:
            as_expected(st, RULE.OOR_01, field.LOG_START, expected, log_start)
    else:
        old = st[s.REPLICAS + b, s.HW]
        leo_becomes(st, b, RULE.OOR_01, expected, after.leo, 0)
        hw_becomes(st, b, RULE.OOR_01, high_watermark_after_truncation(old, expected), after.hw, 1 << field.HW_BEFORE)
        cache_truncate(st, b, expected)
        # The leader ends below this log's start: the whole log is dropped (UnifiedLog#truncateTo).
        if log_start != UNKNOWN:
            set_log_start(st, b, log_start)
        elif st[s.REPLICAS + b, s.LOG_START] > expected:
            set_log_start(st, b, expected)
    hw_within_log(st, b)


# OffsetsForLeaderEpoch.


def send_offsets_for_leader_epoch_request(st: s.State, b: int, leader: int, epoch: int, last: int) -> None:
    """Judge SendEpochRequest: b asks where its latest epoch ends. AbstractFetcherThread#fetchTruncatingPartitions."""
    alive(st, b)
    check_leader_followed(st, b, leader, epoch)
    same(st, RULE.FETCH_02, field.REQ_LAST_EPOCH, cache_latest(st, b), last, 1 << field.EPOCHS)
    request_sent(st, b, leader, s.EPOCH_REQUEST, epoch, UNKNOWN, last)


def handle_offsets_for_leader_epoch_request(
    st: s.State, b: int, f: int, request: Request, response: ReportedResponse
) -> None:
    """Judge HandleEpochRequest at leader b by EPOCH-05: where the epoch that follower f asks about ends.

    Partition#lastOffsetForLeaderEpoch.
    """
    alive(st, b)
    p = s.pair(st, f, b)
    # Such a request has no offset, whatever the event has in that field.
    request = Request(request.epoch, UNKNOWN, request.last_epoch)
    # A second arrival of a request is judged as if it were in flight; restore_pair then puts back what is.
    repeated = FIRST
    if st[s.OPTION, s.DUPLICATES] == 1 and st[s.OPTION, s.REPORTS_SEND_EPOCH_REQUEST] == 1:
        repeated = copy_kind(st, p, request.epoch, UNKNOWN, request.last_epoch, s.EPOCH_REQUEST)
    other = request_handled(st, p, f, s.EPOCH_REQUEST, request, repeated != FIRST)
    epoch, last = st[p, s.REQ_EPOCH], st[p, s.REQ_LAST]
    error, div_epoch, div_end = response.error, response.div_epoch, response.div_end
    # A refusal has null in both fields, and so has a response about an epoch that the leader does not know.
    if error == UNKNOWN and div_end >= 0:
        error = NONE
    # Unlike a fetch it changes nothing at the leader: Partition#lastOffsetForLeaderEpoch only reads.
    st[p, s.KIND] = UNKNOWN if error == UNKNOWN else s.EPOCH_RESPONSE if error == NONE else s.REFUSED
    st[p, s.RES_ERROR] = error
    st[p, s.RES_DIV_EPOCH] = div_epoch
    st[p, s.RES_DIV_END] = div_end
    if other or (st[s.OPTION, s.DUPLICATES] == 1 and st[s.OPTION, s.REPORTS_SEND_EPOCH_REQUEST] == 0):
        st[p, s.KIND] = s.AMBIGUOUS
    # After AMBIGUOUS is set: the response to a copy changes nothing of what is in flight.
    if repeated != FIRST:
        restore_pair(st, p, repeated)
    if error == UNKNOWN:
        undecided(st, RULE.EPOCH_05, 1 << field.ERROR)
        return
    # The leader looks at the leader epoch alone, not at who asks: as if a replica asked, and not an older process of it.
    check_fencing(st, b, f, epoch, error, 1, 0)
    n, leo = st[s.REPLICAS + b, s.CACHED], st[s.REPLICAS + b, s.LEO]
    if error != NONE:
        return
    if UNKNOWN in (n, leo, last):
        undecided(st, RULE.EPOCH_05, inputs_missing(n, leo, 0, 0, last))
        return
    expected_epoch, expected_end = end_offset_for(
        s.entries(st, s.epochs_row(st, b), n), s.entries(st, s.starts_row(st, b), n), leo, last
    )
    # KIP-101 responds with an end offset alone; the epoch came with KIP-279 (2.0).
    if not s.has_switch(st, s.EPOCH_IN_RESPONSE, f):
        expected_epoch = -1
    as_expected(st, RULE.EPOCH_05, field.DIV_END, expected_end, div_end)
    as_expected(st, RULE.EPOCH_05, field.DIV_EPOCH, expected_epoch, div_epoch)


def check_epoch_response_accepted(st: s.State, b: int, leader: int, epoch: int) -> None:
    """Check FETCH-09: b takes an epoch response from the leader that it follows, for the leader epoch it is in (KAFKA-7786).

    `epoch` is the current leader epoch in the request.
    """
    role, own = st[s.REPLICAS + b, s.ROLE], st[s.REPLICAS + b, s.EPOCH]
    if UNKNOWN in (role, own, epoch):
        undecided(st, RULE.FETCH_09, 1 << field.REQ_EPOCH)
        return
    follows = role == s.FOLLOWING and agree_if_known(st[s.REPLICAS + b, s.LEADER], leader)
    accepted = accepts_epoch_response(own, follows, epoch, s.has_switch(st, s.EPOCH_RESPONSES_CHECKED, b))
    if not follows:
        not_from_leader(st, b, leader)
    else:
        decide(st, RULE.FETCH_09, accepted, field.REQ_EPOCH, own, epoch)


def handle_epoch_response(
    st: s.State,
    b: int,
    leader: int,
    request: Request,
    response: ReportedResponse,
    truncated: Truncation,
    before: ReportedLog,
    after: ReportedLog,
) -> None:
    """Judge a truncation by an epoch response. AbstractFetcherThread#truncateToEpochEndOffsets."""
    alive(st, b)
    log_unmoved(st, b, before)
    p = s.pair(st, b, leader)
    in_flight, epoch = st[p, s.KIND], request.epoch
    error, div_epoch, div_end = response.error, response.div_epoch, response.div_end
    if epoch == UNKNOWN and in_flight in (s.EPOCH_RESPONSE, s.REFUSED):
        epoch = st[p, s.REQ_EPOCH]
    check_epoch_response_accepted(st, b, leader, epoch)
    if error == UNKNOWN and (div_end >= 0 or in_flight == s.EPOCH_RESPONSE):
        error = NONE
    elif error == UNKNOWN and in_flight != s.REFUSED:
        # Null in both fields: a refusal, or a response about an epoch that the leader does not know. It is open which.
        div_epoch, div_end = UNKNOWN, UNKNOWN
    refused = error not in (NONE, UNKNOWN) or (error == UNKNOWN and in_flight == s.REFUSED)
    if response_in_flight(st, p, leader, s.REFUSED if refused else s.EPOCH_RESPONSE, epoch, UNKNOWN, True):
        same_as_sent(st, field.REQ_LAST_EPOCH, st[p, s.REQ_LAST], request.last_epoch)
        same_as_sent(st, field.ERROR, st[p, s.RES_ERROR], error)
        same_as_sent(st, field.DIV_EPOCH, st[p, s.RES_DIV_EPOCH], div_epoch)
        same_as_sent(st, field.DIV_END, st[p, s.RES_DIV_END], div_end)
    st[p, s.KIND] = s.NOTHING
    if not refused:
        # The table uses the fetch offset only for a response without an end (row T1), and no event shows it.
        offset = 0 if div_end >= 0 else UNKNOWN
        truncate(st, b, offset, div_epoch, div_end, truncated, after)

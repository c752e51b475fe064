"""Events at a follower: it sends fetches and takes their responses over.

Rule of this file: it takes over only a response that the leader gave, and only for the offset (and, since KAFKA-18991, the
epoch) at which it is (AbstractFetcherThread#processFetchRequest).

`st` is the judge's table (conformance.judge.state): row REPLICAS + b is the replica of broker b, the follower that reports
the event; row `p` is what is in flight between it and its leader, the RES_.. columns what the leader sent. `t` is the number
of a term, a leader epoch of one leader. UNKNOWN: no event shows the value. `decide(st, rule, ok, field, expected, actual)`
counts a check as held or failed, `same` compares a value with the expected one, `undecided` counts a check that lacks fields
(a mask).
"""

from tidegauge.conformance.judge import fields as field
from tidegauge.conformance.judge import state as s
from tidegauge.conformance.judge.field_groups import Records, ReportedLog, ReportedResponse, Request
from tidegauge.conformance.judge.fields import RULE
from tidegauge.conformance.judge.in_flight import (
    agree_if_known,
    carries_no_error,
    request_sent,
    response_in_flight,
    same_as_sent,
)
from tidegauge.conformance.judge.lineage import (
    cache_assign,
    cache_latest,
    cache_raise,
    copy_entries,
    fork_end,
    set_log_start,
)
from tidegauge.conformance.judge.log_checks import alive, cache_in_order, hw_becomes, hw_within_log, leo_becomes, log_unmoved
from tidegauge.conformance.judge.tally import as_expected, decide, failed, same, undecided
from tidegauge.conformance.judge.terms import term_of
from tidegauge.impl.rules import accepts_fetch_response, batches_accepted, follower_high_watermark, initial_fetch_offset
from tidegauge.traces.columns import UNKNOWN


def check_leader_followed(st: s.State, b: int, leader: int, epoch: int) -> None:
    """Check FETCH-03: follower b sends a request to the leader that it follows, with the leader epoch that it is in."""
    role = st[s.REPLICAS + b, s.ROLE]
    if role == UNKNOWN:
        undecided(st, RULE.FETCH_03, 1 << field.LEADER)
    else:
        decide(st, RULE.FETCH_03, role == s.FOLLOWING, field.ROLE, s.FOLLOWING, role)
        if role == s.FOLLOWING:
            same(st, RULE.FETCH_03, field.PEER, st[s.REPLICAS + b, s.LEADER], leader, 1 << field.LEADER)
            same(st, RULE.FETCH_03, field.REQ_EPOCH, st[s.REPLICAS + b, s.EPOCH], epoch, 1 << field.LEADER_EPOCH)


def send_fetch(st: s.State, b: int, leader: int, epoch: int, offset: int, last: int) -> None:
    """Judge SendFetch: the request has the follower's log end (FETCH-01) and its last epoch (FETCH-02).

    `last` is the lastFetchedEpoch of the request. RemoteLeaderEndPoint#buildFetch.
    """
    alive(st, b)
    check_leader_followed(st, b, leader, epoch)
    leo, n = st[s.REPLICAS + b, s.LEO], st[s.REPLICAS + b, s.CACHED]
    initial = leo
    # Without epochs a new follower starts, and truncates, at its high watermark (ReplicaManager#initialFetchOffset). Where
    # the cache or the high watermark is unknown, a fetch below the log end may be such a start.
    if n == 0 and leo != UNKNOWN and st[s.REPLICAS + b, s.HW] != UNKNOWN:
        initial = initial_fetch_offset(s.entries(st, s.epochs_row(st, b), 0), leo, st[s.REPLICAS + b, s.HW])
    if offset == initial and offset != UNKNOWN:
        decide(st, RULE.FETCH_01, True, field.REQ_OFFSET, offset, offset)
    elif n in (UNKNOWN, 0) and UNKNOWN in (n, st[s.REPLICAS + b, s.HW]) and UNKNOWN not in (offset, leo) and offset < leo:
        undecided(st, RULE.FETCH_01, 1 << field.EPOCHS | 1 << field.HW)
    else:
        same(st, RULE.FETCH_01, field.REQ_OFFSET, leo, offset, 1 << field.LEO)
    # Before IBP 2.7-IV1 a fetch has no lastFetchedEpoch; one that is reported all the same is judged by the rule.
    if s.has_switch(st, s.TRUNCATION_ON_FETCH, b) or last != UNKNOWN:
        same(st, RULE.FETCH_02, field.REQ_LAST_EPOCH, cache_latest(st, b), last, 1 << field.EPOCHS)
    request_sent(st, b, leader, s.REQUEST, epoch, offset, last)


# ---------------------------------------------------------------------------------------------------------------------
# Taking a response over


def check_accepted(st: s.State, b: int, leader: int, epoch: int, offset: int) -> None:
    """Check FETCH-09: the response is for the offset, and the epoch, at which the follower is."""
    role, leo, own = st[s.REPLICAS + b, s.ROLE], st[s.REPLICAS + b, s.LEO], st[s.REPLICAS + b, s.EPOCH]
    if UNKNOWN in (role, leo, own, offset, epoch):
        undecided(st, RULE.FETCH_09, 1 << field.REQ_OFFSET | 1 << field.REQ_EPOCH | 1 << field.LEO)
        return
    ready = role == s.FOLLOWING and agree_if_known(st[s.REPLICAS + b, s.LEADER], leader)
    ok = accepts_fetch_response(leo, own, ready, offset, epoch, s.has_switch(st, s.RESPONSE_EPOCH_CHECKED, b))
    # One fault is named: another sender than its leader, else the offset of the request, else its epoch.
    if not ready:
        not_from_leader(st, b, leader)
    elif offset == leo:
        decide(st, RULE.FETCH_09, ok, field.REQ_EPOCH, own, epoch)
    else:
        decide(st, RULE.FETCH_09, ok, field.REQ_OFFSET, leo, offset)


def not_from_leader(st: s.State, b: int, leader: int) -> None:
    """Fail FETCH-09 for a response from `leader` to a broker that does not follow, or that follows another."""
    if st[s.REPLICAS + b, s.ROLE] != s.FOLLOWING:
        failed(st, RULE.FETCH_09, field.ROLE, s.FOLLOWING, st[s.REPLICAS + b, s.ROLE])
    else:
        failed(st, RULE.FETCH_09, field.PEER, st[s.REPLICAS + b, s.LEADER], leader)


def handle_fetch_response(
    st: s.State,
    b: int,
    leader: int,
    request: Request,
    response: ReportedResponse,
    data: Records,
    before: ReportedLog,
    after: ReportedLog,
    log_start: int,
    reported: bool,
    pairs: s.Ints,
) -> None:
    """Judge HandleFetchResponse: follower b appends the records, then takes over the high watermark, then the log start.

    `request` is what it had asked for, `response` and `data` what the leader answered, as far as b reports them. `log_start`
    is its log start afterwards; if `reported`, `pairs` are the epochs of the records: epoch and first offset, in turn.
    ReplicaFetcherThread#processPartitionData.
    """
    alive(st, b)
    log_unmoved(st, b, before)
    p = s.pair(st, b, leader)
    epoch, offset, res_hw, res_log_start = request.epoch, request.offset, response.hw, response.log_start
    carries_no_error(st, response.error)
    kind = st[p, s.KIND]
    # Fields of the request that the follower does not report are those of the request in flight.
    if kind in (s.DATA, s.DELAYED, s.DIVERGED):
        epoch = st[p, s.REQ_EPOCH] if epoch == UNKNOWN else epoch
        offset = st[p, s.REQ_OFFSET] if offset == UNKNOWN else offset
    check_accepted(st, b, leader, epoch, offset)
    # With fencing (KIP-320) the response is of the leader epoch that the request names.
    t = term_of(st, leader, epoch) if s.has_switch(st, s.FENCING, b) else -1
    # KAFKA-14704: a follower that takes the high watermark, or records, from a response that shows where the logs diverge.
    # Its truncation is an event of its own (HandleDivergingResponse), so the response stays in flight below.
    if kind == s.DIVERGED:
        moved = st[s.REPLICAS + b, s.HW] != UNKNOWN and after.hw not in (UNKNOWN, st[s.REPLICAS + b, s.HW])
        empty = data.base < 0 or data.end in (UNKNOWN, data.base)
        if moved or empty:
            decide(st, RULE.HW_06, not moved, field.HW, st[s.REPLICAS + b, s.HW], after.hw)
        else:
            failed(st, RULE.HW_06, field.REC_END, data.base, data.end)
        log_start_as_sent(st, p, res_log_start)
        res_log_start = st[p, s.RES_LOG_START] if res_log_start < 0 else res_log_start
    elif response_in_flight(st, p, leader, s.DATA, epoch, offset, False):
        same_as_sent(st, field.RES_HW, st[p, s.RES_HW], res_hw)
        log_start_as_sent(st, p, res_log_start)
        same_as_sent(st, field.REC_BASE, st[p, s.RES_BASE], data.base)
        same_as_sent(st, field.REC_END, st[p, s.RES_END], data.end)
        if data.end > data.base >= 0:
            same_as_sent(st, field.REC_EPOCH, st[p, s.RES_REC_EPOCH], data.epoch)
        res_hw = st[p, s.RES_HW] if res_hw == UNKNOWN else res_hw
        res_log_start = st[p, s.RES_LOG_START] if res_log_start < 0 else res_log_start
        data = Records(
            st[p, s.RES_BASE] if data.base == UNKNOWN else data.base,
            st[p, s.RES_END] if data.end == UNKNOWN else data.end,
            st[p, s.RES_REC_EPOCH] if data.epoch == UNKNOWN else data.epoch,
        )
        # Without fencing the leader may have answered a request of another leader epoch: the records are of its own term.
        if not s.has_switch(st, s.FENCING, b):
            t = st[p, s.RES_TERM]
    # A response of row T4 asks for another round (KIP-279): records taken over before it would be appended above a fork.
    if st[s.REPLICAS + b, s.MORE_ROUNDS] == 1:
        decide(st, RULE.TRUNC_02, False, field.COMPLETED, 1, 0)
        st[s.REPLICAS + b, s.MORE_ROUNDS] = 0
    append_fetched(st, b, t, data, after.leo, reported, pairs)
    follow_hw(st, b, res_hw, after.hw)
    raise_log_start(st, b, res_log_start, log_start)
    # A diverging response is consumed by the truncation that follows.
    if kind != s.DIVERGED:
        st[p, s.KIND] = s.NOTHING
    hw_within_log(st, b)


def log_start_as_sent(st: s.State, p: int, log_start: int) -> None:
    """Check FETCH-10: the log start is taken over as the leader sent it.

    It is not checked in brokers' logs (LAG_RULE), where the line of a log start may be late.
    """
    if log_start >= 0 and st[s.OPTION, s.LAG_RULE] == 0:
        same_as_sent(st, field.RES_LOG_START, st[p, s.RES_LOG_START], log_start)


def append_fetched(st: s.State, b: int, t: int, data: Records, leo: int, reported: bool, pairs: s.Ints) -> None:
    """Check APPEND-02: fetched records go to the follower's log end, none of an epoch above its own (KAFKA-18723).

    `t` is the term whose log the records come from, -1 where that is unknown; `leo` the log end that b reports afterwards.
    If `reported`, `pairs` are the epochs of the records: epoch and first offset, in turn.
    """
    before, base, end, rec_epoch = st[s.REPLICAS + b, s.LEO], data.base, data.end, data.epoch
    if reported:
        # The event reports the epochs of its records, as pairs of epoch and first offset.
        for i in range(len(pairs) // 2):
            cache_assign(st, b, pairs[2 * i], pairs[2 * i + 1])
        if len(pairs) > 0 and rec_epoch != UNKNOWN and st[s.REPLICAS + b, s.CACHED] != UNKNOWN:
            as_expected(st, RULE.EPOCH_02, field.REC_EPOCH, cache_latest(st, b), rec_epoch)
    # Which records there were is not reported: only the log end shows something.
    if base < 0 or end < 0:
        undecided(st, RULE.APPEND_02, 1 << field.REC_BASE | 1 << field.REC_END)
        if not reported and (leo == UNKNOWN or leo != before):
            epochs_of_records(st, b, t, before, leo, rec_epoch)
        leo_becomes(st, b, RULE.APPEND_02, UNKNOWN, leo, 1 << field.REC_END)
        return
    if end > base:
        if before != UNKNOWN:
            decide(st, RULE.APPEND_02, base >= before, field.REC_BASE, before, base)
        own = st[s.REPLICAS + b, s.EPOCH]
        if s.has_switch(st, s.BATCH_EPOCH_FILTER, b) and rec_epoch != UNKNOWN and own != UNKNOWN:
            # Row LEOS serves as a list of one epoch here, as batches_accepted takes it.
            st[s.LEOS, 0] = rec_epoch
            decide(st, RULE.APPEND_02, batches_accepted(s.entries(st, s.LEOS, 1), own) == 1, field.REC_EPOCH, own, rec_epoch)
        if not reported:
            epochs_of_records(st, b, t, base, end, rec_epoch)
    leo_becomes(st, b, RULE.APPEND_02, end if end > base else before, leo, 1 << field.LEO)
    cache_in_order(st, b)


def epochs_of_records(st: s.State, b: int, t: int, base: int, end: int, rec_epoch: int) -> None:
    """Add the epochs of the records [base, end), of which the last has `rec_epoch`, to the follower's cache.

    `t`: the term whose log the records come from, -1 where that is unknown. The log of a term is fixed, so it can be read
    here although its leader may have moved on since the response left.
    """
    latest = cache_latest(st, b)
    if rec_epoch != UNKNOWN and end - base == 1:
        cache_assign(st, b, rec_epoch, base)
    # Epochs never decrease along a log without a fork: if the last record has the latest epoch, all have.
    elif latest != UNKNOWN and rec_epoch == latest and (t < 0 or fork_end(st, st[s.OPTION, s.BROKERS] + t) <= base):
        return
    elif t >= 0 and UNKNOWN not in (base, end, st[s.term(st, t), s.T_CACHED]):
        copy_entries(st, st[s.OPTION, s.BROKERS] + t, st[s.term(st, t), s.T_CACHED], b, base, end)
    # Where the source reports each entry that is added, records of unknown epochs add none.
    elif st[s.OPTION, s.REPORTS_CACHE_ENTRIES] == 0:
        st[s.REPLICAS + b, s.CACHED] = UNKNOWN


def follow_hw(st: s.State, b: int, res_hw: int, hw: int) -> None:
    """Check HW-05: b's HW becomes that of the response, `res_hw`, clamped into its log; `hw` is what b reports."""
    before, leo, log_start = st[s.REPLICAS + b, s.HW], st[s.REPLICAS + b, s.LEO], st[s.REPLICAS + b, s.LOG_START]
    expected = UNKNOWN
    # An unknown log start may have lifted the value, unless it is the one that the clamp from above alone gives.
    if res_hw >= 0 and leo != UNKNOWN and (log_start != UNKNOWN or hw == min(res_hw, leo)):
        expected = follower_high_watermark(res_hw, max(log_start, 0), leo)
    hw_becomes(st, b, RULE.HW_05, expected, hw, 1 << field.RES_HW | 1 << field.LEO | 1 << field.LOG_START)
    after = st[s.REPLICAS + b, s.HW]
    if UNKNOWN in (before, after):
        st[s.REPLICAS + b, s.HW_MOVED] = UNKNOWN
    elif after != before:
        st[s.REPLICAS + b, s.HW_MOVED] = before


def raise_log_start(st: s.State, b: int, res_log_start: int, log_start: int) -> None:
    """Check LOG-03: the log start of the response, `res_log_start`, is taken over, upwards only; `log_start` is b's then.

    UnifiedLog#maybeIncrementLogStartOffset.
    """
    old, hw = st[s.REPLICAS + b, s.LOG_START], st[s.REPLICAS + b, s.HW]
    expected = UNKNOWN
    if UNKNOWN not in (old, hw) and res_log_start >= 0:
        # A log start above the high watermark is refused.
        expected = max(old, res_log_start) if res_log_start <= hw else old
    same(st, RULE.LOG_03, field.LOG_START, expected, log_start, 1 << field.RES_LOG_START | 1 << field.LOG_START)
    log_start = expected if log_start == UNKNOWN else log_start
    # A log start that may have moved may have taken entries of the cache with it.
    if log_start == UNKNOWN:
        st[s.REPLICAS + b, s.CACHED] = UNKNOWN
    elif log_start != old:
        cache_raise(st, b, log_start)
    set_log_start(st, b, log_start)


def handle_fetch_error(st: s.State, b: int, leader: int) -> None:
    """Judge HandleFetchError: follower b consumes an error response of its leader; its log stays as it is."""
    alive(st, b)
    st[s.pair(st, b, leader), s.KIND] = s.NOTHING

"""Events at a follower: fetches leave, answers are taken over.

Rule of this file: only a response the leader gave is taken over, and only for the offset (and, since KAFKA-18991, the epoch)
the follower stands at (AbstractFetcherThread#processFetchRequest).
"""

from tidegauge.conformance.kernel import fields as field
from tidegauge.conformance.kernel import state as s
from tidegauge.conformance.kernel.flight import as_answered, ask, fits, given, without_error
from tidegauge.conformance.kernel.forks import fork_end
from tidegauge.conformance.kernel.groups import Log, Records, Request, Response
from tidegauge.conformance.kernel.lineage import cache_assign, cache_latest, cache_raise, copy_entries, starts_at
from tidegauge.conformance.kernel.log_checks import alive, cache_in_order, found, hw_becomes, leo_becomes, within
from tidegauge.conformance.kernel.rule_ids import RULE
from tidegauge.conformance.kernel.tally import as_expected, decide, same, undecided
from tidegauge.conformance.kernel.terms import term_of
from tidegauge.impl.rules import accepts_fetch_response, batches_accepted, follower_high_watermark, initial_fetch_offset
from tidegauge.traces.columns import UNKNOWN


def follows(st: s.State, b: int, leader: int, epoch: int) -> None:
    """FETCH-03: a request goes to the leader the follower follows, in the epoch it knows."""
    role = st[s.REPLICAS + b, s.ROLE]
    if role == UNKNOWN:
        undecided(st, RULE.FETCH_03, 1 << field.LEADER)
    else:
        decide(st, RULE.FETCH_03, role == s.FOLLOWING, field.ROLE, s.FOLLOWING, role)
        if role == s.FOLLOWING:
            same(st, RULE.FETCH_03, field.PEER, st[s.REPLICAS + b, s.LEADER], leader, 1 << field.LEADER)
            same(st, RULE.FETCH_03, field.REQ_EPOCH, st[s.REPLICAS + b, s.EPOCH], epoch, 1 << field.LEADER_EPOCH)


def send_fetch(st: s.State, b: int, leader: int, epoch: int, offset: int, last: int) -> None:
    """RemoteLeaderEndPoint#buildFetch: the request says where the follower's log ends and with which epoch."""
    alive(st, b)
    follows(st, b, leader, epoch)
    leo, n = st[s.REPLICAS + b, s.LEO], st[s.REPLICAS + b, s.CACHED]
    initial = leo
    # without epochs a new follower starts, and truncates, at its high watermark (ReplicaManager#initialFetchOffset)
    if n == 0 and leo != UNKNOWN and st[s.REPLICAS + b, s.HW] != UNKNOWN:
        initial = initial_fetch_offset(s.entries(st, s.epochs_row(st, b), 0), leo, st[s.REPLICAS + b, s.HW])
    if offset == initial and offset != UNKNOWN:
        decide(st, RULE.FETCH_01, True, field.REQ_OFFSET, offset, offset)
    elif n in (UNKNOWN, 0) and UNKNOWN in (n, st[s.REPLICAS + b, s.HW]) and UNKNOWN not in (offset, leo) and offset < leo:
        undecided(st, RULE.FETCH_01, 1 << field.EPOCHS | 1 << field.HW)
    else:
        same(st, RULE.FETCH_01, field.REQ_OFFSET, leo, offset, 1 << field.LEO)
    # before IBP 2.7-IV1 a fetch carries no lastFetchedEpoch; one that is reported all the same is held to the rule
    if st[s.OPTION, s.TRUNCATION_ON_FETCH] == 1 or last != UNKNOWN:
        same(st, RULE.FETCH_02, field.REQ_LAST_EPOCH, cache_latest(st, b), last, 1 << field.EPOCHS)
    ask(st, b, leader, s.REQUEST, epoch, offset, last)


# ---------------------------------------------------------------------------------------------------------------------
# Taking a response over


def accepted(st: s.State, b: int, leader: int, epoch: int, offset: int) -> None:
    """FETCH-09: the response is for the offset, and the epoch, at which the follower stands."""
    role, leo, own = st[s.REPLICAS + b, s.ROLE], st[s.REPLICAS + b, s.LEO], st[s.REPLICAS + b, s.EPOCH]
    if UNKNOWN in (role, leo, own, offset, epoch):
        undecided(st, RULE.FETCH_09, 1 << field.REQ_OFFSET | 1 << field.REQ_EPOCH | 1 << field.LEO)
        return
    ready = role == s.FOLLOWING and fits(st[s.REPLICAS + b, s.LEADER], leader)
    ok = accepts_fetch_response(leo, own, ready, offset, epoch, st[s.OPTION, s.RESPONSE_EPOCH_CHECKED] == 1)
    if offset == leo:
        decide(st, RULE.FETCH_09, ok, field.REQ_EPOCH, own, epoch)
    else:
        decide(st, RULE.FETCH_09, ok, field.REQ_OFFSET, leo, offset)


def handle_fetch_response(
    st: s.State,
    b: int,
    leader: int,
    asked: Request,
    response: Response,
    data: Records,
    before: Log,
    after: Log,
    log_start: int,
    reported: bool,
    pairs: s.Ints,
) -> None:
    """ReplicaFetcherThread#processPartitionData: append, then the high watermark, then the log start."""
    alive(st, b)
    found(st, b, before)
    p = s.pair(st, b, leader)
    epoch, offset, res_hw, res_log_start = asked.epoch, asked.offset, response.hw, response.log_start
    without_error(st, response.error)
    kind = st[p, s.KIND]
    if kind in (s.DATA, s.HELD, s.DIVERGED):
        epoch = st[p, s.REQ_EPOCH] if epoch == UNKNOWN else epoch
        offset = st[p, s.REQ_OFFSET] if offset == UNKNOWN else offset
    accepted(st, b, leader, epoch, offset)
    t = term_of(st, leader, epoch) if st[s.OPTION, s.FENCING] == 1 else -1
    if kind == s.DIVERGED:
        moved = st[s.REPLICAS + b, s.HW] != UNKNOWN and after.hw not in (UNKNOWN, st[s.REPLICAS + b, s.HW])
        empty = data.base < 0 or data.end in (UNKNOWN, data.base)
        decide(st, RULE.HW_06, not moved and empty, field.HW, st[s.REPLICAS + b, s.HW], after.hw)
        start_as_answered(st, p, res_log_start)
        res_log_start = st[p, s.ANS_LOG_START] if res_log_start < 0 else res_log_start
    elif given(st, p, leader, s.DATA, epoch, offset, False):
        as_answered(st, field.RES_HW, st[p, s.ANS_HW], res_hw)
        start_as_answered(st, p, res_log_start)
        as_answered(st, field.REC_BASE, st[p, s.ANS_BASE], data.base)
        as_answered(st, field.REC_END, st[p, s.ANS_END], data.end)
        if data.end > data.base >= 0:
            as_answered(st, field.REC_EPOCH, st[p, s.ANS_REC_EPOCH], data.epoch)
        res_hw = st[p, s.ANS_HW] if res_hw == UNKNOWN else res_hw
        res_log_start = st[p, s.ANS_LOG_START] if res_log_start < 0 else res_log_start
        data = Records(
            st[p, s.ANS_BASE] if data.base == UNKNOWN else data.base,
            st[p, s.ANS_END] if data.end == UNKNOWN else data.end,
            st[p, s.ANS_REC_EPOCH] if data.epoch == UNKNOWN else data.epoch,
        )
        if st[s.OPTION, s.FENCING] == 0:
            t = st[p, s.ANS_TERM]
    # a row T4 response asks for another round (KIP-279): records before it would be appended above a fork
    if st[s.REPLICAS + b, s.MORE_ROUNDS] == 1:
        decide(st, RULE.TRUNC_02, False, field.COMPLETED, 1, 0)
        st[s.REPLICAS + b, s.MORE_ROUNDS] = 0
    append_answered(st, b, t, data, after.leo, reported, pairs)
    follow_hw(st, b, res_hw, after.hw)
    raise_log_start(st, b, res_log_start, log_start)
    if kind != s.DIVERGED:
        st[p, s.KIND] = s.NOTHING
    within(st, b)


def start_as_answered(st: s.State, p: int, log_start: int) -> None:
    """FETCH-10: the log start is taken over as it was answered; in brokers' logs the lines of the leader may be late."""
    if log_start >= 0 and st[s.OPTION, s.LAG_RULE] == 0:
        as_answered(st, field.RES_LOG_START, st[p, s.ANS_LOG_START], log_start)


def append_answered(st: s.State, b: int, t: int, data: Records, leo: int, reported: bool, pairs: s.Ints) -> None:
    """APPEND-02: answered records go to the follower's log end, none of an epoch above its own (KAFKA-18723)."""
    before, base, end, rec_epoch = st[s.REPLICAS + b, s.LEO], data.base, data.end, data.epoch
    if reported:
        for i in range(len(pairs) // 2):
            cache_assign(st, b, pairs[2 * i], pairs[2 * i + 1])
        if len(pairs) > 0 and rec_epoch != UNKNOWN and st[s.REPLICAS + b, s.CACHED] != UNKNOWN:
            as_expected(st, RULE.EPOCH_02, field.REC_EPOCH, cache_latest(st, b), rec_epoch)
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
        if st[s.OPTION, s.BATCH_EPOCH_FILTER] == 1 and rec_epoch != UNKNOWN and own != UNKNOWN:
            st[s.LEOS, 0] = rec_epoch
            decide(st, RULE.APPEND_02, batches_accepted(s.entries(st, s.LEOS, 1), own) == 1, field.REC_EPOCH, own, rec_epoch)
        if not reported:
            epochs_of_records(st, b, t, base, end, rec_epoch)
    leo_becomes(st, b, RULE.APPEND_02, end if end > base else before, leo, 1 << field.LEO)
    cache_in_order(st, b)


def epochs_of_records(st: s.State, b: int, t: int, base: int, end: int, rec_epoch: int) -> None:
    """Where new epochs begin in the records [base, end), of which the last has `rec_epoch`.

    The log of a leader's term is fixed: it answers even when that leader has moved on since. Where nobody is fenced the
    term is not that of the request's epoch but the one in which the leader answered.
    """
    latest = cache_latest(st, b)
    if rec_epoch != UNKNOWN and end - base == 1:
        cache_assign(st, b, rec_epoch, base)
    elif latest != UNKNOWN and rec_epoch == latest and (t < 0 or fork_end(st, st[s.OPTION, s.BROKERS] + t) <= base):
        return
    elif t >= 0 and UNKNOWN not in (base, end, st[s.term(st, t), s.T_CACHED]):
        copy_entries(st, st[s.OPTION, s.BROKERS] + t, st[s.term(st, t), s.T_CACHED], b, base, end)
    elif st[s.OPTION, s.REPORTS_CACHE_ENTRIES] == 0:
        st[s.REPLICAS + b, s.CACHED] = UNKNOWN


def follow_hw(st: s.State, b: int, res_hw: int, hw: int) -> None:
    """HW-05: the leader's value, clamped into the follower's log."""
    before, leo, log_start = st[s.REPLICAS + b, s.HW], st[s.REPLICAS + b, s.LEO], st[s.REPLICAS + b, s.LOG_START]
    expected = UNKNOWN
    if res_hw >= 0 and leo != UNKNOWN and (log_start != UNKNOWN or hw == min(res_hw, leo)):
        expected = follower_high_watermark(res_hw, max(log_start, 0), leo)
    hw_becomes(st, b, RULE.HW_05, expected, hw, 1 << field.RES_HW | 1 << field.LEO | 1 << field.LOG_START)
    after = st[s.REPLICAS + b, s.HW]
    if UNKNOWN in (before, after):
        st[s.REPLICAS + b, s.HW_MOVED] = UNKNOWN
    elif after != before:
        st[s.REPLICAS + b, s.HW_MOVED] = before


def raise_log_start(st: s.State, b: int, res_log_start: int, log_start: int) -> None:
    """LOG-03: the leader's log start, upwards only and not above the HW. UnifiedLog#maybeIncrementLogStartOffset."""
    old, hw = st[s.REPLICAS + b, s.LOG_START], st[s.REPLICAS + b, s.HW]
    expected = UNKNOWN
    if UNKNOWN not in (old, hw) and res_log_start >= 0:
        expected = max(old, res_log_start) if res_log_start <= hw else old
    same(st, RULE.LOG_03, field.LOG_START, expected, log_start, 1 << field.RES_LOG_START | 1 << field.LOG_START)
    log_start = expected if log_start == UNKNOWN else log_start
    if log_start == UNKNOWN:
        st[s.REPLICAS + b, s.CACHED] = UNKNOWN
    elif log_start != old:
        cache_raise(st, b, log_start)
    starts_at(st, b, log_start)


def handle_fetch_error(st: s.State, b: int, leader: int) -> None:
    """An error response is consumed; the log stays as it is."""
    alive(st, b)
    st[s.pair(st, b, leader), s.KIND] = s.NOTHING

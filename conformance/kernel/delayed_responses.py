"""Responses that leave later than their fetch was handled: DelayedFetch waits for records or a higher high watermark.

    b1   HandleFetch 5, recorded, HW 3                                AnswerFetch 5..7, HW 6
         DELAYED in the purgatory     appends, fetches: HW 3 -> 6     read again: DelayedFetch#onComplete

Rules of this file

1. The log is read again as the fetch completes, so the response has the leader's values of that time. The leader may have
   been deposed by then.
2. A response whose fetch was not seen handled is accepted as it is, and is in flight from here on.
"""

from tidegauge.conformance.kernel import fields as field
from tidegauge.conformance.kernel import state as s
from tidegauge.conformance.kernel.flight import agree_if_known
from tidegauge.conformance.kernel.groups import Records, Request, Response
from tidegauge.conformance.kernel.log_checks import alive
from tidegauge.conformance.kernel.rule_ids import RULE
from tidegauge.conformance.kernel.serving import check_decision, check_records
from tidegauge.conformance.kernel.tally import decide, undecided
from tidegauge.impl.rules import (
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
)
from tidegauge.traces.columns import UNKNOWN


def answer_fetch(st: s.State, b: int, f: int, asked: Request, response: Response, data: Records) -> None:
    """Judge AnswerFetch: the HW in the response is one that the leader had since the fetch was recorded (FETCH-08)."""
    alive(st, b)
    p = s.pair(st, f, b)
    kind = st[p, s.KIND]
    this_one = agree_if_known(asked.epoch, st[p, s.REQ_EPOCH]) and agree_if_known(asked.offset, st[p, s.REQ_OFFSET])
    # A response was reported already, or the follower has sent another request: this one is not taken over.
    if kind not in (UNKNOWN, s.DELAYED, s.REQUEST, s.ORPHANED) or not this_one:
        return
    leads = st[s.REPLICAS + b, s.ROLE] == s.LEADING and agree_if_known(st[s.REPLICAS + b, s.EPOCH], asked.epoch)
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
            decide(st, RULE.FETCH_08, low <= res_hw <= high, field.RES_HW, high, res_hw)
    if kind != s.DELAYED:
        st[p, s.REQ_EPOCH] = asked.epoch
        st[p, s.REQ_OFFSET] = asked.offset
        st[p, s.REQ_LAST] = asked.last_epoch
    if error not in (NONE, UNKNOWN):
        st[p, s.KIND] = s.OUT_OF_RANGE if error == OFFSET_OUT_OF_RANGE else s.REFUSED
        return
    if div_epoch not in (UNKNOWN, -1) or div_end not in (UNKNOWN, -1):
        if leads:
            check_decision(st, b, p, NONE, div_epoch, div_end, data.base)
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

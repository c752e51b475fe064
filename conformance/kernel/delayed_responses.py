"""Responses that left later than their fetch was handled: DelayedFetch waits for records or a high watermark.

Rules of this file

1. A delayed fetch is read again as it completes (DelayedFetch#onComplete): what it names is the leader's then, which
   may have been deposed meanwhile.
2. A response whose fetch nobody was seen to handle is taken as it is: what it says is in flight from here on.
"""

from tidegauge.conformance.kernel import fields as field
from tidegauge.conformance.kernel import state as s
from tidegauge.conformance.kernel.flight import fits
from tidegauge.conformance.kernel.groups import Records, Request, Response
from tidegauge.conformance.kernel.log_checks import alive
from tidegauge.conformance.kernel.rule_ids import RULE
from tidegauge.conformance.kernel.serving import decision, records
from tidegauge.conformance.kernel.tally import decide, undecided
from tidegauge.impl.rules import (
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
)
from tidegauge.traces.columns import UNKNOWN


def answer_fetch(st: s.State, b: int, f: int, asked: Request, response: Response, data: Records) -> None:
    """A delayed fetch is answered: DelayedFetch reads again, so the HW is one the leader had meanwhile (FETCH-08)."""
    alive(st, b)
    p = s.pair(st, f, b)
    kind = st[p, s.KIND]
    this_one = fits(asked.epoch, st[p, s.REQ_EPOCH]) and fits(asked.offset, st[p, s.REQ_OFFSET])
    if kind not in (UNKNOWN, s.HELD, s.REQUEST, s.ADRIFT) or not this_one:
        return
    leads = st[s.REPLICAS + b, s.ROLE] == s.LEADING and fits(st[s.REPLICAS + b, s.EPOCH], asked.epoch)
    error, res_hw, div_epoch, div_end = response.error, response.hw, response.div_epoch, response.div_end
    if error == UNKNOWN and (data.base >= 0 or div_epoch >= 0 or div_end >= 0):
        error = NONE
    # what a leader that was deposed reads is refused (Partition#fetchRecords)
    if error == NONE and data.end > data.base >= 0 and st[s.REPLICAS + b, s.ROLE] != UNKNOWN:
        decide(st, RULE.FENCE_02, st[s.REPLICAS + b, s.ROLE] == s.LEADING, field.ERROR, NOT_LEADER_OR_FOLLOWER, error)
    # a delayed fetch is read again (DelayedFetch#onComplete), and the leader may have been deposed or elected again since
    if kind == s.HELD and leads and error == NONE and res_hw >= 0:
        low, high = st[p, s.ANS_LOW_HW], st[s.REPLICAS + b, s.HW]
        if UNKNOWN in (low, high):
            undecided(st, RULE.FETCH_08, 1 << field.HW)
        else:
            decide(st, RULE.FETCH_08, low <= res_hw <= high, field.RES_HW, high, res_hw)
    if kind != s.HELD:
        st[p, s.REQ_EPOCH] = asked.epoch
        st[p, s.REQ_OFFSET] = asked.offset
        st[p, s.REQ_LAST] = asked.last_epoch
    if error not in (NONE, UNKNOWN):
        st[p, s.KIND] = s.RANGE if error == OFFSET_OUT_OF_RANGE else s.REFUSED
        return
    if div_epoch not in (UNKNOWN, -1) or div_end not in (UNKNOWN, -1):
        if leads:
            decision(st, b, p, NONE, div_epoch, div_end, data.base)
        st[p, s.KIND] = s.DIVERGED
        st[p, s.ANS_DIV_EPOCH] = div_epoch
        st[p, s.ANS_DIV_END] = div_end
        st[p, s.ANS_LOG_START] = response.log_start if response.log_start >= 0 else st[s.REPLICAS + b, s.LOG_START]
        return
    if data.base < 0 and div_epoch != -1 and div_end != -1:
        st[p, s.KIND] = UNKNOWN
        return
    if leads:
        records(st, b, st[p, s.REQ_OFFSET], data)
    st[p, s.KIND] = s.DATA
    st[p, s.ANS_HW] = res_hw
    st[p, s.ANS_LOG_START] = response.log_start if response.log_start >= 0 else st[s.REPLICAS + b, s.LOG_START]
    st[p, s.ANS_BASE] = data.base
    st[p, s.ANS_END] = data.end
    st[p, s.ANS_REC_EPOCH] = data.epoch
    st[p, s.ANS_TERM] = st[s.REPLICAS + b, s.TERM] if leads else -1

"""Responses that left later than their fetch was handled: DelayedFetch waits for records or a high watermark.

Rules of this file

1. A delayed fetch is read again as it completes (DelayedFetch#onComplete): what it names is the leader's then, which
   may have been deposed meanwhile.
2. A response whose fetch nobody was seen to handle is taken as it is: what it says is in flight from here on.
"""

from tidegauge.conformance.kernel import fields as field
from tidegauge.conformance.kernel.flight import fits
from tidegauge.conformance.kernel.groups import Records, Request, Response
from tidegauge.conformance.kernel.log_checks import alive
from tidegauge.conformance.kernel.rule_ids import FENCE_02, FETCH_08
from tidegauge.conformance.kernel.serving import decision, records
from tidegauge.conformance.kernel.state import (
    ADRIFT,
    ANS_BASE,
    ANS_DIV_END,
    ANS_DIV_EPOCH,
    ANS_END,
    ANS_HW,
    ANS_LOG_START,
    ANS_LOW_HW,
    ANS_REC_EPOCH,
    ANS_TERM,
    DATA,
    DIVERGED,
    EPOCH,
    HELD,
    HW,
    KIND,
    LEADING,
    LOG_START,
    RANGE,
    REFUSED,
    REPLICAS,
    REQ_EPOCH,
    REQ_LAST,
    REQ_OFFSET,
    REQUEST,
    ROLE,
    TERM,
    State,
    pair,
)
from tidegauge.conformance.kernel.tally import decide, undecided
from tidegauge.impl.rules import (
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
)
from tidegauge.traces.columns import UNKNOWN


def answer_fetch(st: State, b: int, f: int, asked: Request, response: Response, data: Records) -> None:
    """A delayed fetch is answered: DelayedFetch reads again, so the HW is one the leader had meanwhile (FETCH-08)."""
    alive(st, b)
    p = pair(st, f, b)
    kind = st[p, KIND]
    this_one = fits(asked.epoch, st[p, REQ_EPOCH]) and fits(asked.offset, st[p, REQ_OFFSET])
    if kind not in (UNKNOWN, HELD, REQUEST, ADRIFT) or not this_one:
        return
    leads = st[REPLICAS + b, ROLE] == LEADING and fits(st[REPLICAS + b, EPOCH], asked.epoch)
    error, res_hw, div_epoch, div_end = response.error, response.hw, response.div_epoch, response.div_end
    if error == UNKNOWN and (data.base >= 0 or div_epoch >= 0 or div_end >= 0):
        error = NONE
    # what a leader that was deposed reads is refused (Partition#fetchRecords)
    if error == NONE and data.end > data.base >= 0 and st[REPLICAS + b, ROLE] != UNKNOWN:
        decide(st, FENCE_02, st[REPLICAS + b, ROLE] == LEADING, field.ERROR, NOT_LEADER_OR_FOLLOWER, error)
    # a delayed fetch is read again (DelayedFetch#onComplete), and the leader may have been deposed or elected again since
    if kind == HELD and leads and error == NONE and res_hw >= 0:
        low, high = st[p, ANS_LOW_HW], st[REPLICAS + b, HW]
        if UNKNOWN in (low, high):
            undecided(st, FETCH_08, 1 << field.HW)
        else:
            decide(st, FETCH_08, low <= res_hw <= high, field.RES_HW, high, res_hw)
    if kind != HELD:
        st[p, REQ_EPOCH] = asked.epoch
        st[p, REQ_OFFSET] = asked.offset
        st[p, REQ_LAST] = asked.last_epoch
    if error not in (NONE, UNKNOWN):
        st[p, KIND] = RANGE if error == OFFSET_OUT_OF_RANGE else REFUSED
        return
    if div_epoch not in (UNKNOWN, -1) or div_end not in (UNKNOWN, -1):
        if leads:
            decision(st, b, p, NONE, div_epoch, div_end, data.base)
        st[p, KIND] = DIVERGED
        st[p, ANS_DIV_EPOCH] = div_epoch
        st[p, ANS_DIV_END] = div_end
        st[p, ANS_LOG_START] = response.log_start if response.log_start >= 0 else st[REPLICAS + b, LOG_START]
        return
    if data.base < 0 and div_epoch != -1 and div_end != -1:
        st[p, KIND] = UNKNOWN
        return
    if leads:
        records(st, b, st[p, REQ_OFFSET], data)
    st[p, KIND] = DATA
    st[p, ANS_HW] = res_hw
    st[p, ANS_LOG_START] = response.log_start if response.log_start >= 0 else st[REPLICAS + b, LOG_START]
    st[p, ANS_BASE] = data.base
    st[p, ANS_END] = data.end
    st[p, ANS_REC_EPOCH] = data.epoch
    st[p, ANS_TERM] = st[REPLICAS + b, TERM] if leads else -1

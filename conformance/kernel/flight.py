"""What is in flight between a follower and its leader: sent, handled, answered, taken over.

Rules of this file

1. Request and answer travel through `pair`: what the follower sent is what the leader handles, what the leader answered
   is what the follower takes over. A field one side does not tell is filled in from the other.
2. One request is in flight at a time. Those that it overtook, or whose sender has died, may still arrive, once each: one is
   remembered, that there are more is remembered too.
3. Where it is open which request was handled, so is whose response the follower gets.
"""

from tidegauge.conformance.kernel import fields as field
from tidegauge.conformance.kernel.groups import Request
from tidegauge.conformance.kernel.rule_ids import FETCH_04, FETCH_10, TRUNC_02
from tidegauge.conformance.kernel.state import (
    ADRIFT,
    DATA,
    DIVERGED,
    EITHER,
    EPOCH_REQUEST,
    EPOCH_RESPONSE,
    FORGOTTEN,
    HEARD,
    HELD,
    HW_MOVED,
    KIND,
    MORE_ROUNDS,
    NOTHING,
    OLD_EPOCH,
    OLD_KIND,
    OLD_LAST,
    OLD_OFFSET,
    OPTION,
    RANGE,
    REFUSED,
    REPLICAS,
    REPORTS_HANDLE_EPOCH_REQUEST,
    REPORTS_HANDLE_FETCH,
    REPORTS_SEND_EPOCH_REQUEST,
    REPORTS_SEND_FETCH,
    REQ_EPOCH,
    REQ_LAST,
    REQ_OFFSET,
    REQUEST,
    WHOLE,
    State,
    pair,
)
from tidegauge.conformance.kernel.tally import as_expected, decide, undecided
from tidegauge.impl.rules import NONE
from tidegauge.traces.columns import UNKNOWN

ANSWERED = (HELD, DATA, DIVERGED, RANGE, REFUSED, EPOCH_RESPONSE, EITHER)
"""What a request has become that the leader has handled."""


def fits(reported: int, known: int) -> bool:
    """Two values agree as far as they are known."""
    return UNKNOWN in (reported, known) or reported == known


def matches(st: State, p: int, at_epoch: int, at_offset: int, at_last: int, epoch: int, offset: int, last: int) -> bool:
    """Whether a request could be the one whose epoch, offset and last epoch stand in those columns."""
    return fits(epoch, st[p, at_epoch]) and fits(offset, st[p, at_offset]) and fits(last, st[p, at_last])


def overtake(st: State, p: int) -> None:
    """A request that nobody was seen to handle may still arrive after the next one has left."""
    if st[p, KIND] in (REQUEST, EPOCH_REQUEST):
        if st[p, OLD_KIND] in (REQUEST, EPOCH_REQUEST):
            st[p, FORGOTTEN] = 1
        st[p, OLD_KIND] = st[p, KIND]
        st[p, OLD_EPOCH] = st[p, REQ_EPOCH]
        st[p, OLD_OFFSET] = st[p, REQ_OFFSET]
        st[p, OLD_LAST] = st[p, REQ_LAST]


def next_round(st: State, b: int, p: int, last: int) -> None:
    """TRUNC-02: after a truncation that was not complete, the next request asks about a lower epoch."""
    if st[REPLICAS + b, MORE_ROUNDS] == 1:
        before = st[p, REQ_LAST]
        if UNKNOWN in (last, before):
            undecided(st, TRUNC_02, 1 << field.REQ_LAST_EPOCH)
        else:
            decide(st, TRUNC_02, last < before, field.REQ_LAST_EPOCH, before - 1, last)
    st[REPLICAS + b, MORE_ROUNDS] = 0
    st[REPLICAS + b, HW_MOVED] = -1


def ask(st: State, b: int, leader: int, kind: int, epoch: int, offset: int, last: int) -> None:
    """The request is in flight, in place of what was."""
    p = pair(st, b, leader)
    next_round(st, b, p, last)
    overtake(st, p)
    st[p, KIND] = kind
    st[p, REQ_EPOCH] = epoch
    st[p, REQ_OFFSET] = offset
    st[p, REQ_LAST] = last


def request_handled(st: State, p: int, f: int, sent: int, asked: Request, again: bool) -> bool:
    """FETCH-04: the leader handles the request that is in flight, or one that another has overtaken.

    A follower that tells nothing of its own, as when one broker's log is all there is, may have sent anything; and nobody
    knows which of them it is when it may have come `again`. Returns whether the follower may get the response to another.
    """
    kind, epoch, offset, last = st[p, KIND], asked.epoch, asked.offset, asked.last_epoch
    current = kind == sent and matches(st, p, REQ_EPOCH, REQ_OFFSET, REQ_LAST, epoch, offset, last)
    overtaken = fits(sent, st[p, OLD_KIND]) and matches(st, p, OLD_EPOCH, OLD_OFFSET, OLD_LAST, epoch, offset, last)
    older = overtaken or st[p, FORGOTTEN] == 1
    reports = REPORTS_SEND_FETCH if sent == REQUEST else REPORTS_SEND_EPOCH_REQUEST
    compared = field.REQ_OFFSET if sent == REQUEST else field.REQ_LAST_EPOCH
    unheard = kind == UNKNOWN or st[WHOLE, HEARD] >> f & 1 == 0 or st[OPTION, reports] == 0
    unknown = not current and (st[p, OLD_KIND] == UNKNOWN or (st[p, FORGOTTEN] == 1 and not overtaken))
    if again or unheard or unknown:
        undecided(st, FETCH_04, 1 << compared)
    elif sent == REQUEST:
        expected = st[p, REQ_OFFSET] if kind == sent else -1
        decide(st, FETCH_04, current or overtaken, compared, expected, offset)
    else:
        expected = st[p, REQ_LAST] if kind == sent else -1
        decide(st, FETCH_04, current or overtaken, compared, expected, last)
    said = UNKNOWN not in (epoch, last) and (sent == EPOCH_REQUEST or offset != UNKNOWN)
    sure = current and (said or not older)
    other = current and not sure
    if other:
        st[p, FORGOTTEN] = 1
    elif not current:
        other = kind in (REQUEST, EPOCH_REQUEST) or (kind in ANSWERED and not unheard)
        if overtaken:
            st[p, OLD_KIND] = NOTHING
        if kind in (REQUEST, EPOCH_REQUEST):
            overtake(st, p)
    st[p, REQ_EPOCH] = st[p, REQ_EPOCH] if sure and epoch == UNKNOWN else epoch
    st[p, REQ_OFFSET] = st[p, REQ_OFFSET] if sure and offset == UNKNOWN else offset
    st[p, REQ_LAST] = st[p, REQ_LAST] if sure and last == UNKNOWN else last
    return bool(other)


def given(st: State, p: int, leader: int, kind: int, epoch: int, offset: int, asks_for_an_end: bool) -> bool:
    """FETCH-10, first half: a response of this kind to this request is in flight. True when its content can be compared."""
    seen = st[p, KIND]
    reports = REPORTS_HANDLE_EPOCH_REQUEST if asks_for_an_end else REPORTS_HANDLE_FETCH
    if seen in (UNKNOWN, HELD, ADRIFT, EITHER) or st[WHOLE, HEARD] >> leader & 1 == 0 or st[OPTION, reports] == 0:
        undecided(st, FETCH_10, 1 << field.RES_HW)
        return False
    if seen != kind:
        decide(st, FETCH_10, False, field.IN_FLIGHT, seen, kind)
        return False
    same_request = fits(epoch, st[p, REQ_EPOCH]) and fits(offset, st[p, REQ_OFFSET])
    decide(st, FETCH_10, same_request, field.REQ_OFFSET, st[p, REQ_OFFSET], offset)
    return same_request


def without_error(st: State, error: int) -> None:
    """FETCH-10: only a response without an error has records or a divergence to take over."""
    if error not in (NONE, UNKNOWN):
        decide(st, FETCH_10, False, field.ERROR, NONE, error)


def as_answered(st: State, fieldno: int, answered: int, taken: int) -> None:
    """FETCH-10, second half: a value is taken over as it was answered."""
    if UNKNOWN not in (answered, taken):
        as_expected(st, FETCH_10, fieldno, answered, taken)

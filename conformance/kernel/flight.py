"""What is in flight between a follower and its leader: sent, handled, answered, taken over.

Rules of this file

1. Request and answer travel through `pair`: what the follower sent is what the leader handles, what the leader answered
   is what the follower takes over. A field one side does not tell is filled in from the other.
2. One request is in flight at a time. Those that it overtook, or whose sender has died, may still arrive, once each: one is
   remembered, that there are more is remembered too.
3. Where it is open which request was handled, so is whose response the follower gets.
"""

from tidegauge.conformance.kernel import fields as field
from tidegauge.conformance.kernel import state as s
from tidegauge.conformance.kernel.groups import Request
from tidegauge.conformance.kernel.rule_ids import RULE
from tidegauge.conformance.kernel.tally import as_expected, decide, undecided
from tidegauge.impl.rules import NONE
from tidegauge.traces.columns import UNKNOWN

ANSWERED = (s.HELD, s.DATA, s.DIVERGED, s.RANGE, s.REFUSED, s.EPOCH_RESPONSE, s.EITHER)
"""What a request has become that the leader has handled."""


def fits(reported: int, known: int) -> bool:
    """Two values agree as far as they are known."""
    return UNKNOWN in (reported, known) or reported == known


def matches(st: s.State, p: int, at_epoch: int, at_offset: int, at_last: int, epoch: int, offset: int, last: int) -> bool:
    """Whether a request could be the one whose epoch, offset and last epoch stand in those columns."""
    return fits(epoch, st[p, at_epoch]) and fits(offset, st[p, at_offset]) and fits(last, st[p, at_last])


def overtake(st: s.State, p: int) -> None:
    """A request that nobody was seen to handle may still arrive after the next one has left."""
    if st[p, s.KIND] in (s.REQUEST, s.EPOCH_REQUEST):
        if st[p, s.OLD_KIND] in (s.REQUEST, s.EPOCH_REQUEST):
            st[p, s.FORGOTTEN] = 1
        st[p, s.OLD_KIND] = st[p, s.KIND]
        st[p, s.OLD_EPOCH] = st[p, s.REQ_EPOCH]
        st[p, s.OLD_OFFSET] = st[p, s.REQ_OFFSET]
        st[p, s.OLD_LAST] = st[p, s.REQ_LAST]


def next_round(st: s.State, b: int, p: int, last: int) -> None:
    """TRUNC-02: after a truncation that was not complete, the next request asks about a lower epoch."""
    if st[s.REPLICAS + b, s.MORE_ROUNDS] == 1:
        before = st[p, s.REQ_LAST]
        if UNKNOWN in (last, before):
            undecided(st, RULE.TRUNC_02, 1 << field.REQ_LAST_EPOCH)
        else:
            decide(st, RULE.TRUNC_02, last < before, field.REQ_LAST_EPOCH, before - 1, last)
    st[s.REPLICAS + b, s.MORE_ROUNDS] = 0
    st[s.REPLICAS + b, s.HW_MOVED] = -1


def ask(st: s.State, b: int, leader: int, kind: int, epoch: int, offset: int, last: int) -> None:
    """The request is in flight, in place of what was."""
    p = s.pair(st, b, leader)
    next_round(st, b, p, last)
    overtake(st, p)
    st[p, s.KIND] = kind
    st[p, s.REQ_EPOCH] = epoch
    st[p, s.REQ_OFFSET] = offset
    st[p, s.REQ_LAST] = last


def request_handled(st: s.State, p: int, f: int, sent: int, asked: Request, again: bool) -> bool:
    """FETCH-04: the leader handles the request that is in flight, or one that another has overtaken.

    A follower that tells nothing of its own, as when one broker's log is all there is, may have sent anything; and nobody
    knows which of them it is when it may have come `again`. Returns whether the follower may get the response to another.
    """
    kind, epoch, offset, last = st[p, s.KIND], asked.epoch, asked.offset, asked.last_epoch
    current = kind == sent and matches(st, p, s.REQ_EPOCH, s.REQ_OFFSET, s.REQ_LAST, epoch, offset, last)
    overtaken = fits(sent, st[p, s.OLD_KIND]) and matches(st, p, s.OLD_EPOCH, s.OLD_OFFSET, s.OLD_LAST, epoch, offset, last)
    older = overtaken or st[p, s.FORGOTTEN] == 1
    reports = s.REPORTS_SEND_FETCH if sent == s.REQUEST else s.REPORTS_SEND_EPOCH_REQUEST
    compared = field.REQ_OFFSET if sent == s.REQUEST else field.REQ_LAST_EPOCH
    unheard = kind == UNKNOWN or st[s.WHOLE, s.HEARD] >> f & 1 == 0 or st[s.OPTION, reports] == 0
    unknown = not current and (st[p, s.OLD_KIND] == UNKNOWN or (st[p, s.FORGOTTEN] == 1 and not overtaken))
    if again or unheard or unknown:
        undecided(st, RULE.FETCH_04, 1 << compared)
    elif sent == s.REQUEST:
        expected = st[p, s.REQ_OFFSET] if kind == sent else -1
        decide(st, RULE.FETCH_04, current or overtaken, compared, expected, offset)
    else:
        expected = st[p, s.REQ_LAST] if kind == sent else -1
        decide(st, RULE.FETCH_04, current or overtaken, compared, expected, last)
    said = UNKNOWN not in (epoch, last) and (sent == s.EPOCH_REQUEST or offset != UNKNOWN)
    sure = current and (said or not older)
    other = current and not sure
    if other:
        st[p, s.FORGOTTEN] = 1
    elif not current:
        other = kind in (s.REQUEST, s.EPOCH_REQUEST) or (kind in ANSWERED and not unheard)
        if overtaken:
            st[p, s.OLD_KIND] = s.NOTHING
        if kind in (s.REQUEST, s.EPOCH_REQUEST):
            overtake(st, p)
    st[p, s.REQ_EPOCH] = st[p, s.REQ_EPOCH] if sure and epoch == UNKNOWN else epoch
    st[p, s.REQ_OFFSET] = st[p, s.REQ_OFFSET] if sure and offset == UNKNOWN else offset
    st[p, s.REQ_LAST] = st[p, s.REQ_LAST] if sure and last == UNKNOWN else last
    return bool(other)


def given(st: s.State, p: int, leader: int, kind: int, epoch: int, offset: int, asks_for_an_end: bool) -> bool:
    """FETCH-10, first half: a response of this kind to this request is in flight. True when its content can be compared."""
    seen = st[p, s.KIND]
    reports = s.REPORTS_HANDLE_EPOCH_REQUEST if asks_for_an_end else s.REPORTS_HANDLE_FETCH
    if (
        seen in (UNKNOWN, s.HELD, s.ADRIFT, s.EITHER)
        or st[s.WHOLE, s.HEARD] >> leader & 1 == 0
        or st[s.OPTION, reports] == 0
    ):
        undecided(st, RULE.FETCH_10, 1 << field.RES_HW)
        return False
    if seen != kind:
        decide(st, RULE.FETCH_10, False, field.IN_FLIGHT, seen, kind)
        return False
    same_request = fits(epoch, st[p, s.REQ_EPOCH]) and fits(offset, st[p, s.REQ_OFFSET])
    decide(st, RULE.FETCH_10, same_request, field.REQ_OFFSET, st[p, s.REQ_OFFSET], offset)
    return same_request


def without_error(st: s.State, error: int) -> None:
    """FETCH-10: only a response without an error has records or a divergence to take over."""
    if error not in (NONE, UNKNOWN):
        decide(st, RULE.FETCH_10, False, field.ERROR, NONE, error)


def as_answered(st: s.State, fieldno: int, answered: int, taken: int) -> None:
    """FETCH-10, second half: a value is taken over as it was answered."""
    if UNKNOWN not in (answered, taken):
        as_expected(st, RULE.FETCH_10, fieldno, answered, taken)

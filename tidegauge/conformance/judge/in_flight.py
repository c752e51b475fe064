"""Requests and responses in flight between a follower and its leader: sent, duplicated, handled, answered, taken over.

`st` is the judge's table (conformance.judge.state). Its row `p` is a follower and its leader: KIND says what is in flight
between them, REQ_.. has the fields of the request, RES_.. those of the response, OLD_.. the request that another overtook.
`b` is the broker that reports the event, `f` a follower. Of a request, `epoch` is the current leader epoch in it, `offset`
the fetch offset, `last` the last fetched epoch, or the epoch that OffsetsForLeaderEpoch asks about. UNKNOWN: no event shows
it. Of the values of KIND, REQUEST is a fetch and EPOCH_REQUEST one for OffsetsForLeaderEpoch, not handled yet; ORPHANED: the
leader went down, so what became of the request is open; AMBIGUOUS: several were handled, and it is open whose response
arrives. Bit b of OBSERVED is 1 while events of broker b are known, the option REPORTS_.. 0 if the source has none of a kind.

Rules of this file

1. A request and its response are one row of the table (state.pair): the leader handles what the follower sent, the
   follower takes over what the leader answered. A field that one side does not report is filled in from the other.
2. One request is in flight at a time. Requests that it overtook, or whose sender has died, may still arrive, once each:
   the latest of them is kept (OLD_), and whether there are more (MORE_OVERTAKEN).

       follower   fetch at 5 ----x (connection lost)     fetch at 5, again --->     OLD_: the first, KIND: the second
       leader                         ...the first may arrive here, or later, or never

3. Where it is open which request was handled, it is open too whose response the follower gets.

Rules of requests that arrive more than once, in traces whose config allows it (DUPLICATES)

1. A request that is not in flight may be the late copy of any earlier one: FETCH-04 is undecided.
2. The response to a copy goes to a connection that its sender has closed. So a late copy changes nothing of the pair but
   what the leader recorded.
3. A copy cannot be told from the request in flight when their fields are the same: it is open which of the two responses
   the follower gets.
"""

from tidegauge.conformance.judge import fields as field
from tidegauge.conformance.judge import state as s
from tidegauge.conformance.judge.field_groups import Request
from tidegauge.conformance.judge.fields import RULE
from tidegauge.conformance.judge.tally import as_expected, decide, failed, undecided
from tidegauge.impl.rules import NONE
from tidegauge.traces.columns import UNKNOWN

HANDLED = (s.DELAYED, s.DATA, s.DIVERGED, s.OUT_OF_RANGE, s.REFUSED, s.EPOCH_RESPONSE, s.AMBIGUOUS)
"""Kinds of a request that the leader has handled."""


def agree_if_known(value: int, other: int) -> bool:
    """Return whether two values are equal, or may be: one of them is UNKNOWN."""
    return UNKNOWN in (value, other) or value == other


def matches(st: s.State, p: int, at_epoch: int, at_offset: int, at_last: int, epoch: int, offset: int, last: int) -> bool:
    """Return whether a request could be the one that row `p` has in the columns `at_..` (REQ_.. or OLD_..)."""
    return (
        agree_if_known(epoch, st[p, at_epoch])
        and agree_if_known(offset, st[p, at_offset])
        and agree_if_known(last, st[p, at_last])
    )


def overtake(st: s.State, p: int) -> None:
    """Keep the request in flight, unless an event has handled it, as an overtaken one: it may arrive after the next one."""
    if st[p, s.KIND] in (s.REQUEST, s.EPOCH_REQUEST):
        # There is room for one. Of a second only that it exists is kept: a request that fits neither is then no failure.
        if st[p, s.OLD_KIND] in (s.REQUEST, s.EPOCH_REQUEST):
            st[p, s.MORE_OVERTAKEN] = 1
        st[p, s.OLD_KIND] = st[p, s.KIND]
        st[p, s.OLD_EPOCH] = st[p, s.REQ_EPOCH]
        st[p, s.OLD_OFFSET] = st[p, s.REQ_OFFSET]
        st[p, s.OLD_LAST] = st[p, s.REQ_LAST]


def next_round(st: s.State, b: int, p: int, last: int) -> None:
    """Check TRUNC-02: after a truncation that was not completed, the next request has a lower last epoch (KIP-279).

    Then note that follower b has sent it: no round of truncation is left over, and no response has moved its HW since.
    """
    if st[s.REPLICAS + b, s.MORE_ROUNDS] == 1:
        before = st[p, s.REQ_LAST]
        if UNKNOWN in (last, before):
            undecided(st, RULE.TRUNC_02, 1 << field.REQ_LAST_EPOCH)
        else:
            # The highest value that would be right is expected.
            decide(st, RULE.TRUNC_02, last < before, field.REQ_LAST_EPOCH, before - 1, last)
    st[s.REPLICAS + b, s.MORE_ROUNDS] = 0
    st[s.REPLICAS + b, s.HW_MOVED] = -1


def request_sent(st: s.State, b: int, leader: int, kind: int, epoch: int, offset: int, last: int) -> None:
    """Put a request of follower b in flight, in place of the one before, which it overtakes.

    `kind` is REQUEST, a fetch, or EPOCH_REQUEST, an OffsetsForLeaderEpoch request.
    """
    p = s.pair(st, b, leader)
    next_round(st, b, p, last)
    overtake(st, p)
    st[p, s.KIND] = kind
    st[p, s.REQ_EPOCH] = epoch
    st[p, s.REQ_OFFSET] = offset
    st[p, s.REQ_LAST] = last


def request_handled(st: s.State, p: int, f: int, sent: int, request: Request, may_repeat: bool) -> bool:
    """Check FETCH-04: the leader handles the request of follower f that is in flight, or one that another has overtaken.

    `sent` is the kind of the request: REQUEST or EPOCH_REQUEST. `may_repeat`: it may be a second arrival of a request, and
    then it is open which. Returns whether the response that the follower gets may be that to another request.
    """
    kind, epoch, offset, last = st[p, s.KIND], request.epoch, request.offset, request.last_epoch
    # Which request it can be: the one in flight, the overtaken one that is kept, or one that is older still.
    current = kind == sent and matches(st, p, s.REQ_EPOCH, s.REQ_OFFSET, s.REQ_LAST, epoch, offset, last)
    overtaken = agree_if_known(sent, st[p, s.OLD_KIND]) and matches(
        st, p, s.OLD_EPOCH, s.OLD_OFFSET, s.OLD_LAST, epoch, offset, last
    )
    older = overtaken or st[p, s.MORE_OVERTAKEN] == 1
    reports = s.REPORTS_SEND_FETCH if sent == s.REQUEST else s.REPORTS_SEND_EPOCH_REQUEST
    compared = field.REQ_OFFSET if sent == s.REQUEST else field.REQ_LAST_EPOCH
    # Without events of the follower (a trace of one broker's log, or lines missing) it may have sent anything.
    unobserved = kind == UNKNOWN or st[s.PARTITION, s.OBSERVED] >> f & 1 == 0 or st[s.OPTION, reports] == 0
    # Of still older requests only their existence is known: one that fits neither of the two may be any of them.
    unknown = not current and (st[p, s.OLD_KIND] == UNKNOWN or (st[p, s.MORE_OVERTAKEN] == 1 and not overtaken))
    if may_repeat or unobserved or unknown:
        undecided(st, RULE.FETCH_04, 1 << compared)
    # No request of its kind is in flight.
    elif kind != sent and not overtaken:
        failed(st, RULE.FETCH_04, field.IN_FLIGHT, sent, kind)
    else:
        compare_request(st, RULE.FETCH_04, p, request, current or overtaken)
    # A request with all its fields, or the only one there is, is surely the one in flight. Without its fields it may just as
    # well be an older one: then the one in flight may still arrive, and which of the two responses is taken is open.
    complete = UNKNOWN not in (epoch, last) and (sent == s.EPOCH_REQUEST or offset != UNKNOWN)
    sure = current and (complete or not older)
    other = current and not sure
    if other:
        st[p, s.MORE_OVERTAKEN] = 1
    elif not current:
        # Another request was handled than the one in flight, which is still under way or has a response under way: the
        # follower may get either response.
        other = kind in (s.REQUEST, s.EPOCH_REQUEST) or (kind in HANDLED and not unobserved)
        if overtaken:
            st[p, s.OLD_KIND] = s.NOTHING
        if kind in (s.REQUEST, s.EPOCH_REQUEST):
            overtake(st, p)
    # The response is compared with the request that was handled, so its fields replace those of the one that was sent.
    st[p, s.REQ_EPOCH] = st[p, s.REQ_EPOCH] if sure and epoch == UNKNOWN else epoch
    st[p, s.REQ_OFFSET] = st[p, s.REQ_OFFSET] if sure and offset == UNKNOWN else offset
    st[p, s.REQ_LAST] = st[p, s.REQ_LAST] if sure and last == UNKNOWN else last
    return bool(other)


def compare_request(st: s.State, rule: int, p: int, request: Request, ok: bool) -> None:
    """Count whether `rule` holds for a request that a leader handles (`ok`), with the first field in which it differs.

    It is compared with the request in flight in row `p`.
    """
    if not agree_if_known(request.epoch, st[p, s.REQ_EPOCH]):
        decide(st, rule, ok, field.REQ_EPOCH, st[p, s.REQ_EPOCH], request.epoch)
    elif not agree_if_known(request.last_epoch, st[p, s.REQ_LAST]):
        decide(st, rule, ok, field.REQ_LAST_EPOCH, st[p, s.REQ_LAST], request.last_epoch)
    else:
        decide(st, rule, ok, field.REQ_OFFSET, st[p, s.REQ_OFFSET], request.offset)


def response_in_flight(st: s.State, p: int, leader: int, kind: int, epoch: int, offset: int, asks_for_an_end: bool) -> bool:
    """Check the first half of FETCH-10: a response of this kind to this request is in flight from the leader.

    `asks_for_an_end`: the request is one for OffsetsForLeaderEpoch. Returns whether row `p` has the content of the response,
    with which the caller compares what the follower took over.
    """
    in_flight = st[p, s.KIND]
    reports = s.REPORTS_HANDLE_EPOCH_REQUEST if asks_for_an_end else s.REPORTS_HANDLE_FETCH
    # No event of the leader shows what it answered, or it is open to which request.
    if (
        in_flight in (UNKNOWN, s.DELAYED, s.ORPHANED, s.AMBIGUOUS)
        or st[s.PARTITION, s.OBSERVED] >> leader & 1 == 0
        or st[s.OPTION, reports] == 0
    ):
        undecided(st, RULE.FETCH_10, 1 << field.RES_HW)
        return False
    # Nothing in flight, or a response of another kind: the follower made this one up, or took one over twice.
    if in_flight != kind:
        decide(st, RULE.FETCH_10, False, field.RESPONSE, in_flight, kind)
        return False
    same_request = agree_if_known(epoch, st[p, s.REQ_EPOCH]) and agree_if_known(offset, st[p, s.REQ_OFFSET])
    # A failure names the first field in which the request differs.
    if agree_if_known(epoch, st[p, s.REQ_EPOCH]):
        decide(st, RULE.FETCH_10, same_request, field.REQ_OFFSET, st[p, s.REQ_OFFSET], offset)
    else:
        failed(st, RULE.FETCH_10, field.REQ_EPOCH, st[p, s.REQ_EPOCH], epoch)
    return same_request


def carries_no_error(st: s.State, error: int) -> None:
    """Check FETCH-10: only a response without an error has records or a divergence to take over.

    `error` is the error code of the response that the follower took over; if NONE or UNKNOWN, nothing is counted.
    """
    if error not in (NONE, UNKNOWN):
        decide(st, RULE.FETCH_10, False, field.ERROR, NONE, error)


def same_as_sent(st: s.State, fieldno: int, sent: int, taken_over: int) -> None:
    """Check the second half of FETCH-10: the follower takes a value of the response over as the leader sent it.

    `fieldno` is the position of the field with the value; where either side is UNKNOWN nothing is counted.
    """
    if UNKNOWN not in (sent, taken_over):
        as_expected(st, RULE.FETCH_10, fieldno, sent, taken_over)


FIRST, AGAIN, LATE = range(3)
"""A request as it was sent; one with the fields of the request that was handled last; any other."""


def copy_kind(st: s.State, p: int, epoch: int, offset: int, last: int, sent: int) -> int:
    """Return which arrival of a request of kind `sent` a leader handles: FIRST, AGAIN or LATE.

    For a copy (AGAIN, LATE) row `p` is saved, so that restore_pair can undo what judging the copy changes in it.
    """
    kind = st[p, s.KIND]
    # The leader went down with the request unanswered: it may arrive at the next process for the first time.
    may_be_orphan = kind == s.ORPHANED and agree_if_known(sent, st[p, s.OLD_KIND])
    # Nothing is known of what is in flight: it is judged as a first arrival, and so is the orphan.
    if kind == UNKNOWN or (may_be_orphan and matches(st, p, s.OLD_EPOCH, s.OLD_OFFSET, s.OLD_LAST, epoch, offset, last)):
        return FIRST
    same_fields = matches(st, p, s.REQ_EPOCH, s.REQ_OFFSET, s.REQ_LAST, epoch, offset, last)
    if kind == sent and same_fields:
        return FIRST
    # The columns before REMOTE are what is in flight.
    for k in range(s.REMOTE):
        st[s.SAVED_PAIR, k] = st[p, k]
    # Its response is in flight, so this is the same request once more; else an older one arrives late.
    served = kind == s.EPOCH_RESPONSE if sent == s.EPOCH_REQUEST else kind in (s.DELAYED, s.DATA, s.DIVERGED, s.OUT_OF_RANGE)
    answered = served or kind == s.REFUSED
    return AGAIN if answered and same_fields else LATE


def restore_pair(st: s.State, p: int, repeated: int) -> None:
    """Restore row `p` after a copy was judged as if it were in flight; `repeated` is what copy_kind returned.

    Of a copy that cannot be told from the request in flight (AGAIN) the row has either response: which of the two arrives is
    open, and the caller has set KIND to AMBIGUOUS, but where the follower is not observed.
    """
    # There, of two responses nobody takes a refusal over: it can only get the first one, so the row has that again.
    # The columns from REMOTE on are what the leader recorded of its follower, which a copy does change: these stay.
    if repeated == LATE or (repeated == AGAIN and st[p, s.KIND] == s.REFUSED):
        for k in range(s.REMOTE):
            st[p, k] = st[s.SAVED_PAIR, k]
    # The overtaken request, whatever its fields, may still arrive: the copy was not that.
    if repeated == AGAIN:
        st[p, s.OLD_KIND] = st[s.SAVED_PAIR, s.OLD_KIND]

"""Requests that arrive more than once, in traces whose source says that this happens.

Rules of this file

1. A request that is not in flight may be the late copy of an earlier one, even of one that was overtaken: nobody can
   tell, so FETCH-04 is left undecided.
2. What a copy is answered goes to a connection that its sender gave up. So a late copy leaves what is known of the pair as
   it was, but for what the leader recorded.
3. A copy that says what the request in flight says cannot be told from it: which of the two responses the follower gets is
   open, and the content of both is free.
"""

from tidegauge.conformance.kernel import state as s
from tidegauge.conformance.kernel.flight import fits, matches
from tidegauge.traces.columns import UNKNOWN

FIRST, AGAIN, LATE = range(3)
"""A request as it was sent; one with the words of the request that was handled last; any other."""


def repetition(st: s.State, p: int, epoch: int, offset: int, last: int, sent: int) -> int:
    """What a request of kind `sent` may be that a leader handles; the pair is kept until `put_back` for all but FIRST."""
    kind = st[p, s.KIND]
    adrift = kind == s.ADRIFT and fits(sent, st[p, s.OLD_KIND])
    if kind == UNKNOWN or (adrift and matches(st, p, s.OLD_EPOCH, s.OLD_OFFSET, s.OLD_LAST, epoch, offset, last)):
        return FIRST
    same_words = matches(st, p, s.REQ_EPOCH, s.REQ_OFFSET, s.REQ_LAST, epoch, offset, last)
    if kind == sent and same_words:
        return FIRST
    for k in range(s.REMOTE):
        st[s.KEPT, k] = st[p, k]
    served = kind == s.EPOCH_RESPONSE if sent == s.EPOCH_REQUEST else kind in (s.HELD, s.DATA, s.DIVERGED, s.RANGE)
    answered = served or kind == s.REFUSED
    return AGAIN if answered and same_words else LATE


def put_back(st: s.State, p: int, repeated: int) -> None:
    """A copy has been judged: what stays of it in the pair."""
    if repeated == LATE or (repeated == AGAIN and st[p, s.KIND] == s.REFUSED):
        for k in range(s.REMOTE):
            st[p, k] = st[s.KEPT, k]
    if repeated == AGAIN:
        st[p, s.OLD_KIND] = st[s.KEPT, s.OLD_KIND]

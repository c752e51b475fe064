"""Requests that arrive more than once, in traces whose config allows it (DUPLICATES).

Rules of this file

1. A request that is not in flight may be the late copy of any earlier one: FETCH-04 is undecided.
2. The response to a copy goes to a connection that its sender has closed. So a late copy changes nothing of the pair but
   what the leader recorded.
3. A copy cannot be told from the request in flight when their fields are the same: it is open which of the two responses the
   follower gets.
"""

from tidegauge.conformance.kernel import state as s
from tidegauge.conformance.kernel.flight import agree_if_known, matches
from tidegauge.traces.columns import UNKNOWN

FIRST, AGAIN, LATE = range(3)
"""A request as it was sent; one with the fields of the request that was handled last; any other."""


def copy_kind(st: s.State, p: int, epoch: int, offset: int, last: int, sent: int) -> int:
    """Return which arrival of a request of kind `sent` a leader handles; all but FIRST save the pair for restore_pair."""
    kind = st[p, s.KIND]
    adrift = kind == s.ORPHANED and agree_if_known(sent, st[p, s.OLD_KIND])
    if kind == UNKNOWN or (adrift and matches(st, p, s.OLD_EPOCH, s.OLD_OFFSET, s.OLD_LAST, epoch, offset, last)):
        return FIRST
    same_words = matches(st, p, s.REQ_EPOCH, s.REQ_OFFSET, s.REQ_LAST, epoch, offset, last)
    if kind == sent and same_words:
        return FIRST
    for k in range(s.REMOTE):
        st[s.SAVED_PAIR, k] = st[p, k]
    served = kind == s.EPOCH_RESPONSE if sent == s.EPOCH_REQUEST else kind in (s.DELAYED, s.DATA, s.DIVERGED, s.OUT_OF_RANGE)
    answered = served or kind == s.REFUSED
    return AGAIN if answered and same_words else LATE


def restore_pair(st: s.State, p: int, repeated: int) -> None:
    """Restore the pair after a copy was judged as if it were in flight."""
    # The columns from REMOTE on are the leader's records of its follower: these stay.
    if repeated == LATE or (repeated == AGAIN and st[p, s.KIND] == s.REFUSED):
        for k in range(s.REMOTE):
            st[p, k] = st[s.SAVED_PAIR, k]
    if repeated == AGAIN:
        st[p, s.OLD_KIND] = st[s.SAVED_PAIR, s.OLD_KIND]

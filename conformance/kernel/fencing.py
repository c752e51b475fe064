"""Fencing: requests that a broker refuses, by leader epoch, role, assignment and broker epoch of the sender.

Rules of this file

1. The leader epoch decides first, then the role, then whether the sender is a replica, then its broker epoch (KIP-903).
2. Whether the sender is a replica, or an older process of one, may be UNKNOWN: then a response that either case allows is
   right.
"""

from tidegauge.conformance.kernel import fields as field
from tidegauge.conformance.kernel import state as s
from tidegauge.conformance.kernel.rule_ids import RULE
from tidegauge.conformance.kernel.tally import decide, undecided
from tidegauge.impl.rules import (
    FENCED_LEADER_EPOCH,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_LEADER_EPOCH,
    fetch_error,
)
from tidegauge.traces.columns import UNKNOWN


def is_assigned(st: s.State, b: int, f: int) -> int:
    """Return whether leader b counts f as a replica: 1, 0, or UNKNOWN."""
    known, registered = st[s.REPLICAS + b, s.ASSIGNED], st[s.PARTITION, s.C_REPLICAS]
    if st[s.OPTION, s.REASSIGNED] == 0:
        return 1
    if known == UNKNOWN:
        return UNKNOWN
    # A broker's log does not show when it reads a new assignment: it may use either.
    if st[s.OPTION, s.LAG_RULE] == 1 and registered != UNKNOWN and (known ^ registered) >> f & 1 == 1:
        return UNKNOWN
    return int(known >> f & 1)


def check_fencing(st: s.State, b: int, epoch: int, error: int, assigned: int, older_process: int) -> None:
    """Check FENCE-01 and FENCE-02: a response, or the refusal, to a request of this leader epoch.

    `assigned`: whether its sender is a replica; `older_process`: whether it is a process that a later one has replaced,
    which is refused too (KIP-903). 1, 0 or UNKNOWN.
    """
    role, own = st[s.REPLICAS + b, s.ROLE], st[s.REPLICAS + b, s.EPOCH]
    served = error in (NONE, OFFSET_OUT_OF_RANGE)
    if served and role != UNKNOWN:
        decide(st, RULE.FENCE_02, role == s.LEADING, field.ERROR, NOT_LEADER_OR_FOLLOWER, error)
    if role == UNKNOWN or (st[s.OPTION, s.FENCING] == 1 and UNKNOWN in (epoch, own)):
        undecided(st, RULE.FENCE_01, 1 << field.REQ_EPOCH)
        return
    # Other errors (storage, topic ids) refuse for reasons that the trace does not show.
    if not served and error not in (NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH):
        return
    expected = fetch_error(epoch, own, role == s.LEADING, assigned != 0, st[s.OPTION, s.FENCING] == 1 and role != s.NO_ROLE)
    if assigned == UNKNOWN and expected == NONE:
        undecided(st, RULE.FENCE_01, 1 << field.REPLICAS)
        return
    # A partition of a broker that has just started has leader epoch -1 (Partition#leaderEpoch): every epoch is newer.
    if role == s.NO_ROLE and error == UNKNOWN_LEADER_EPOCH:
        expected = error
    if expected == NONE and error == NOT_LEADER_OR_FOLLOWER and older_process != 0:
        if older_process == UNKNOWN:
            undecided(st, RULE.FENCE_01, 1 << field.REQ_BROKER_EPOCH)
            return
        expected = error  # Replica#updateFetchStateOrThrow
    # Without a leader epoch in the request any refusal of a broker that does not lead is right.
    if st[s.OPTION, s.FENCING] == 0 and role != s.LEADING and not served:
        expected = error
    decide(st, RULE.FENCE_01, served if expected == NONE else error == expected, field.ERROR, expected, error)


def is_older_process(st: s.State, f: int, p: int, process: int) -> int:
    """Return whether a request comes from an older process of f than the latest that the leader accepted: 1, 0, UNKNOWN."""
    latest = st[p, s.REMOTE_BROKER_EPOCH]
    if UNKNOWN not in (process, latest):
        return 1 if process < latest else 0
    return 0 if st[s.REPLICAS + f, s.RESTARTED] == 0 else UNKNOWN

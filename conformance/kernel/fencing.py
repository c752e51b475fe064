"""Who is answered: requests of another leader epoch, to no leader, of no replica, of a process that has gone.

Rules of this file

1. The leader epoch decides first, then the role, then whether the sender is a replica, then its broker epoch (KIP-903).
2. Whether the sender is a replica, or such a process, may be UNKNOWN: then no response is wrong that one of the two allows.
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
    """Whether leader b counts f as a replica: 1, 0, or UNKNOWN. It may have read the latest change."""
    known, registered = st[s.REPLICAS + b, s.ASSIGNED], st[s.WHOLE, s.C_REPLICAS]
    if st[s.OPTION, s.REASSIGNED] == 0:
        return 1
    if known == UNKNOWN:
        return UNKNOWN
    if st[s.OPTION, s.LAG_RULE] == 1 and registered != UNKNOWN and (known ^ registered) >> f & 1 == 1:
        return UNKNOWN
    return int(known >> f & 1)


def fenced(st: s.State, b: int, epoch: int, error: int, assigned: int, older_process: int) -> None:
    """FENCE-01, FENCE-02: who may be answered. A request of a process that has gone is refused too (KIP-903).

    `assigned` and `older_process` are whether its sender is a replica, and such a process: 1, 0, or UNKNOWN.
    """
    role, own = st[s.REPLICAS + b, s.ROLE], st[s.REPLICAS + b, s.EPOCH]
    served = error in (NONE, OFFSET_OUT_OF_RANGE)
    if served and role != UNKNOWN:
        decide(st, RULE.FENCE_02, role == s.LEADING, field.ERROR, NOT_LEADER_OR_FOLLOWER, error)
    if role == UNKNOWN or (st[s.OPTION, s.FENCING] == 1 and UNKNOWN in (epoch, own)):
        undecided(st, RULE.FENCE_01, 1 << field.REQ_EPOCH)
        return
    if not served and error not in (NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH):
        return
    expected = fetch_error(epoch, own, role == s.LEADING, assigned != 0, st[s.OPTION, s.FENCING] == 1 and role != s.NO_ROLE)
    if assigned == UNKNOWN and expected == NONE:
        undecided(st, RULE.FENCE_01, 1 << field.REPLICAS)
        return
    if role == s.NO_ROLE and error == UNKNOWN_LEADER_EPOCH:
        expected = error  # a partition of a broker just started has leader epoch -1: Partition#leaderEpoch
    if expected == NONE and error == NOT_LEADER_OR_FOLLOWER and older_process != 0:
        if older_process == UNKNOWN:
            undecided(st, RULE.FENCE_01, 1 << field.REQ_BROKER_EPOCH)
            return
        expected = error  # Replica#updateFetchStateOrThrow
    if st[s.OPTION, s.FENCING] == 0 and role != s.LEADING and not served:
        expected = error  # without epochs in requests there is nothing to tell the refusals apart
    decide(st, RULE.FENCE_01, served if expected == NONE else error == expected, field.ERROR, expected, error)


def older(st: s.State, f: int, p: int, process: int) -> int:
    """Whether a request comes from a process of f that is older than one the leader has heard of: 1, 0, or UNKNOWN."""
    latest = st[p, s.PROCESS]
    if UNKNOWN not in (process, latest):
        return 1 if process < latest else 0
    return 0 if st[s.REPLICAS + f, s.RESTARTED] == 0 else UNKNOWN

"""What was registered: who leads which leader epoch with which ISR, and which elections nobody can call clean.

Rules of this file

1. It is asked, and changes nothing but the epoch from which on all is known.
2. Registrations stand in the order of their leader epochs, and mostly the latest are asked for: they are looked at first.
"""

from tidegauge.conformance.kernel import state as s
from tidegauge.traces.columns import UNKNOWN


def registered_upto(st: s.State, epoch: int) -> int:
    """How many registrations are of leader epochs up to this one."""
    count = st[s.WHOLE, s.REGISTRATIONS]
    while count > 0 and st[s.registration(st, count - 1), s.R_EPOCH] > epoch:
        count -= 1
    return int(count)


def leader_of(st: s.State, epoch: int, broker: int) -> int:
    """Leader of an epoch as far as the trace has told: UNKNOWN, UNDEFINED (leaderless), or a broker.

    Where it has told of several, one that is not `broker`.
    """
    found = UNKNOWN
    for i in range(registered_upto(st, epoch) - 1, -1, -1):
        row = s.registration(st, i)
        if st[row, s.R_EPOCH] != epoch:
            break
        if found in (UNKNOWN, broker) and st[row, s.R_LEADER] != UNKNOWN:
            found = st[row, s.R_LEADER]
    return int(found)


def was_registered(st: s.State, epoch: int, isr: int) -> int:
    """Whether the controller registered this ISR in this leader epoch: 1, 0, or UNKNOWN."""
    found = 0
    for i in range(registered_upto(st, epoch) - 1, -1, -1):
        row = s.registration(st, i)
        if st[row, s.R_EPOCH] != epoch:
            break
        if st[row, s.R_ISR] == isr:
            return 1
        if st[row, s.R_ISR] == UNKNOWN:
            found = UNKNOWN
    return found


def assigned_in(st: s.State, epoch: int, partition_epoch: int, isr: int) -> int:
    """The replicas in the registration that a leader acts on; UNKNOWN where several may be meant, and differ."""
    replicas = UNKNOWN
    for i in range(registered_upto(st, epoch) - 1, -1, -1):
        row = s.registration(st, i)
        known = st[row, s.R_PARTITION_EPOCH]
        if st[row, s.R_EPOCH] != epoch:
            break
        if st[row, s.R_ISR] == -1:
            continue
        alike = isr == UNKNOWN or st[row, s.R_ISR] in (isr, UNKNOWN)
        if known == partition_epoch if UNKNOWN not in (known, partition_epoch) else alike:
            if replicas not in (UNKNOWN, st[row, s.R_REPLICAS]):
                return UNKNOWN
            replicas = st[row, s.R_REPLICAS]
    return int(replicas)


def led_between(st: s.State, broker: int, after: int, before: int) -> int:
    """Whether another broker led an epoch above `after` and below `before`: 1 yes, 0 no, UNKNOWN."""
    found = 0
    for epoch in range(after + 1, before):
        leader = leader_of(st, epoch, broker)
        if leader == UNKNOWN:
            found = UNKNOWN
        elif leader not in (-1, broker):
            return 1
    return found


def first_epoch(st: s.State, epoch: int) -> None:
    """Remember from which leader epoch on all registrations are known; that of an epoch seen in the middle is not."""
    if st[s.WHOLE, s.FIRST_EPOCH] == UNKNOWN or epoch < st[s.WHOLE, s.FIRST_EPOCH]:
        st[s.WHOLE, s.FIRST_EPOCH] = epoch + st[s.WHOLE, s.COMPLETE_FROM]
    st[s.WHOLE, s.COMPLETE_FROM] = 0


def unclean_between(st: s.State, after: int, upto: int) -> bool:
    """Whether an election above epoch `after` up to `upto` was unclean. Any of them, not the latest alone: the terms of two
    brokers are held against each other whenever one of them is heard, and later elections may have been reported by then."""
    if st[s.WHOLE, s.UNCLEAN] <= after:
        return False
    for i in range(registered_upto(st, upto) - 1, -1, -1):
        row = s.registration(st, i)
        if st[row, s.R_EPOCH] <= after:
            break
        if st[row, s.R_UNCLEAN] == 1:
            return True
    return False


def elections_reported(st: s.State, after: int, upto: int) -> bool:
    """Whether the controller told every election above epoch `after` up to `upto`: else one of them may be unclean."""
    latest, first = st[s.WHOLE, s.C_EPOCH], st[s.WHOLE, s.FIRST_EPOCH]
    return bool(UNKNOWN not in (latest, first) and first <= after + 1 and upto <= latest)

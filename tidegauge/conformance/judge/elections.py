"""Queries about registrations: who leads which leader epoch with which ISR, and which elections may have been unclean.

A registration is a row of the judge's table `st` (conformance.judge.state): a leader epoch with its leader, ISR, partition
epoch and replicas, as the controller registered it. If only a replica has reported it, its ISR is -1. A set of brokers is a
bit mask. UNKNOWN: no event shows the value. -1 (UNDEFINED): there is none, as the leader of a leaderless epoch.

Rules of this file

1. Registrations are only read here; terms.py adds them.
2. Registrations are sorted by their leader epochs, and mostly the latest are wanted: they are looked at first.

Rules of min.insync.replicas, which may change: as the controller has written it, and as each broker has read it

1. As long as no event reports a change it is that of the Config of the trace, for every node.
2. The controller fills the ELR by what it has written; a leader's high watermark waits for what it has read. After a
   change it is unknown which value a broker uses, until it reports that it has read the new one (ReadConfig).
3. In C_MIN_ISR (the controller's) and MIN_ISR_READ (a broker's) UNKNOWN means that no change was reported, or that it
   has not been read since; -1 means that it was changed, or read, and no event shows to what; MAY_HAVE_CHANGED means that
   lines are missing, among which a first change may be, or what was read of one.
"""

from tidegauge.conformance.judge import state as s
from tidegauge.traces.columns import UNKNOWN

MAY_HAVE_CHANGED = -2
"""A value of C_MIN_ISR and MIN_ISR_READ (rule 3)."""


def registered_upto(st: s.State, epoch: int) -> int:
    """Return how many registrations are of leader epochs up to `epoch`: the last of them is that number less one."""
    count = st[s.PARTITION, s.REGISTRATIONS]
    while count > 0 and st[s.registration(st, count - 1), s.R_EPOCH] > epoch:
        count -= 1
    return int(count)


def leader_of(st: s.State, epoch: int, broker: int) -> int:
    """Return the leader of an epoch as far as the trace has reported it: UNKNOWN, -1 (leaderless), or a broker.

    `broker` is the one that the caller expects. Where the trace has reported several, the result is another one: the caller
    sees that `broker` is not the only one.
    """
    leader = UNKNOWN
    for i in range(registered_upto(st, epoch) - 1, -1, -1):
        row = s.registration(st, i)
        if st[row, s.R_EPOCH] != epoch:
            break
        if leader in (UNKNOWN, broker) and st[row, s.R_LEADER] != UNKNOWN:
            leader = st[row, s.R_LEADER]
    return int(leader)


def was_registered(st: s.State, epoch: int, isr: int) -> int:
    """Return whether the controller registered this ISR (a bit mask) in this leader epoch: 1, 0, or UNKNOWN."""
    registered = 0
    for i in range(registered_upto(st, epoch) - 1, -1, -1):
        row = s.registration(st, i)
        if st[row, s.R_EPOCH] != epoch:
            break
        if st[row, s.R_ISR] == isr:
            return 1
        if st[row, s.R_ISR] == UNKNOWN:
            registered = UNKNOWN
    return registered


def assigned_in(st: s.State, epoch: int, partition_epoch: int, isr: int) -> int:
    """Return the replicas in the registration that a leader acts on, by the epochs and the ISR that it reports.

    UNKNOWN where none fits, or where several fit and have different replicas.
    """
    replicas = UNKNOWN
    for i in range(registered_upto(st, epoch) - 1, -1, -1):
        row = s.registration(st, i)
        registered_epoch = st[row, s.R_PARTITION_EPOCH]
        if st[row, s.R_EPOCH] != epoch:
            break
        if st[row, s.R_ISR] == -1:  # a replica reported it, which does not know the assignment
            continue
        alike = isr == UNKNOWN or st[row, s.R_ISR] in (isr, UNKNOWN)
        # The registration is the one with this partition epoch where both have one, else the one with this ISR.
        if registered_epoch == partition_epoch if UNKNOWN not in (registered_epoch, partition_epoch) else alike:
            if replicas not in (UNKNOWN, st[row, s.R_REPLICAS]):
                return UNKNOWN
            replicas = st[row, s.R_REPLICAS]
    return int(replicas)


def led_between(st: s.State, broker: int, after: int, before: int) -> int:
    """Return whether another broker than `broker` led a leader epoch above `after` and below `before`: 1, 0 or UNKNOWN."""
    led = 0
    for epoch in range(after + 1, before):
        leader = leader_of(st, epoch, broker)
        if leader == UNKNOWN:
            led = UNKNOWN
        elif leader not in (-1, broker):
            return 1
    return led


def first_epoch(st: s.State, epoch: int) -> None:
    """Lower FIRST_EPOCH, from which leader epoch on all registrations are known, to `epoch`, which the controller reports.

    COMPLETE_FROM is 1 where registrations of the next epoch seen may be missing: then they are complete from the one after.
    """
    if st[s.PARTITION, s.FIRST_EPOCH] == UNKNOWN or epoch < st[s.PARTITION, s.FIRST_EPOCH]:
        st[s.PARTITION, s.FIRST_EPOCH] = epoch + st[s.PARTITION, s.COMPLETE_FROM]
    st[s.PARTITION, s.COMPLETE_FROM] = 0


def unclean_between(st: s.State, after: int, upto: int) -> bool:
    """Return whether any election above epoch `after` up to `upto` was unclean, or may have been (R_UNCLEAN)."""
    # UNCLEAN, the latest unclean election, is not enough: two terms are compared whenever one is reported, and by then
    # elections after both may have been reported.
    if st[s.PARTITION, s.UNCLEAN] <= after:
        return False
    for i in range(registered_upto(st, upto) - 1, -1, -1):
        row = s.registration(st, i)
        if st[row, s.R_EPOCH] <= after:
            break
        if st[row, s.R_UNCLEAN] == 1:
            return True
    return False


def elections_reported(st: s.State, after: int, upto: int) -> bool:
    """Return whether every election above epoch `after` up to `upto` is reported: else one of them may be unclean."""
    # The controller's registrations are known from `first` on, up to the latest leader epoch.
    latest, first = st[s.PARTITION, s.C_EPOCH], st[s.PARTITION, s.FIRST_EPOCH]
    return bool(UNKNOWN not in (latest, first) and first <= after + 1 and upto <= latest)


# min.insync.replicas.


def set_min_isr(st: s.State, min_isr: int) -> None:
    """Note that the controller has changed min.insync.replicas; UNKNOWN: the event does not show to what.

    A broker that has not read this value may use either, until it reports what it reads.
    """
    st[s.PARTITION, s.C_MIN_ISR] = min_isr if min_isr != UNKNOWN else -1
    for r in range(st[s.OPTION, s.BROKERS]):
        if st[s.REPLICAS + r, s.MIN_ISR_READ] != min_isr:
            st[s.REPLICAS + r, s.MIN_ISR_READ] = UNKNOWN


def read_config(st: s.State, b: int, min_isr: int) -> None:
    """Note that broker b has read min.insync.replicas; UNKNOWN: the event does not show the value."""
    st[s.REPLICAS + b, s.MIN_ISR_READ] = min_isr if min_isr != UNKNOWN else -1
    # A value that the controller was not seen to write: a SetMinIsr is missing, and others may have followed it.
    unchanged = st[s.PARTITION, s.C_MIN_ISR] in (UNKNOWN, MAY_HAVE_CHANGED)
    if unchanged and min_isr != UNKNOWN and min_isr != st[s.OPTION, s.MIN_ISR]:
        st[s.PARTITION, s.C_MIN_ISR] = -1


def written_min_isr(st: s.State) -> int:
    """Return the min.insync.replicas that the controller uses; UNKNOWN where no event shows it."""
    value = st[s.PARTITION, s.C_MIN_ISR]
    # No change was reported so far: the topic has the value of the Config. Below 0: a change is missing (read_config).
    if value == UNKNOWN:
        return int(st[s.OPTION, s.MIN_ISR])
    return int(value) if value >= 0 else UNKNOWN


def read_min_isr(st: s.State, b: int) -> int:
    """Return the min.insync.replicas that broker b uses; UNKNOWN where no event shows it."""
    value, written = st[s.REPLICAS + b, s.MIN_ISR_READ], st[s.PARTITION, s.C_MIN_ISR]
    # Neither was a change reported: the topic has the value of the Config. So it has for a broker all of whose lines are
    # there, whatever the controller's lack: it would have reported what it read.
    if (value == UNKNOWN and written in (UNKNOWN, MAY_HAVE_CHANGED)) or (value == MAY_HAVE_CHANGED and written == UNKNOWN):
        return int(st[s.OPTION, s.MIN_ISR])
    return int(value) if value >= 0 else UNKNOWN

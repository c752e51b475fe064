"""Logs as epoch runs: the epoch cache of a replica, and the logs that leaders were elected with.

`st` is the judge's table (conformance.judge.state). A log has a number: `b` below the number of brokers is the replica of
broker b, and higher ones are the logs that leaders were elected with, one per term. UNKNOWN: no event shows the value; it is
below every number. CACHED, or `n`, is the number of entries of a cache, CACHE_ROOM how many the table has room for. Entry i
is the epoch in cell i of the log's row of epochs, and the offset where it begins in cell i of its row of starts.

Rules of this file

1. impl.rules decides which entries an operation keeps; here they are moved.
2. A cache of unknown content has length UNKNOWN; every operation leaves it so, except an event that reports it whole.
3. Records of one epoch have one writer, so two logs that agree on the epoch of an offset agree on the record there.

Rules of forks: the offsets of records whose epochs the epoch cache of their log has lost

1. A record of a lower epoch after records of higher ones evicts their entries (LeaderEpochFileCache#assign):

       offset      0   1   2   3   4                              cache before   0@0  2@2
       epoch       0   0   2   2   1  <- appended at 4            cache after    0@0  1@4     lost: offsets 2 and 3

   The broker still answers from that cache, but it does not show the epochs of the records from the first evicted entry to
   the appended record. Only generations before KIP-320 let that happen.
2. What an unclean restart makes of such a log depends on where recovery begins: LogSegment#recover adds the epochs above
   the latest as it reads them. So the cache is unknown until an event reports it.
"""

from tidegauge.conformance.judge import fields as field
from tidegauge.conformance.judge import state as s
from tidegauge.conformance.judge.fields import RULE
from tidegauge.conformance.judge.tally import decide, undecided
from tidegauge.impl.rules import (
    assign_keeps,
    count_at_most,
    latest_epoch,
    truncate_from_end_keeps,
    truncate_from_start_covers,
)
from tidegauge.traces.columns import UNKNOWN

# Forks of a log. The two offsets of one stand in the cells behind the room for entries.


def fork_start(st: s.State, log: int) -> int:
    """Return the first offset whose record's epoch is lost; not below `fork_end` where there is none."""
    return int(st[s.epochs_row(st, log), st[s.PARTITION, s.CACHE_ROOM]])


def fork_end(st: s.State, log: int) -> int:
    """Return the offset after the last record whose epoch is lost; 0 where the log never forked."""
    return int(st[s.starts_row(st, log), st[s.PARTITION, s.CACHE_ROOM]])


def fork(st: s.State, log: int, start: int, end: int) -> None:
    """Widen the fork of a log, or begin one: the epochs of the records in [start, end) are lost."""
    forked = fork_end(st, log) > 0
    st[s.epochs_row(st, log), st[s.PARTITION, s.CACHE_ROOM]] = min(start, fork_start(st, log)) if forked else start
    st[s.starts_row(st, log), st[s.PARTITION, s.CACHE_ROOM]] = max(end, fork_end(st, log))


def truncate_fork(st: s.State, log: int, end: int) -> None:
    """Shorten the fork of a log that now ends at `end`; 0 as its end where nothing of it is left."""
    if fork_end(st, log) > end:
        st[s.starts_row(st, log), st[s.PARTITION, s.CACHE_ROOM]] = end if end > fork_start(st, log) else 0


def copy_fork(st: s.State, log: int, to: int) -> None:
    """Copy the fork of log number `log` to log number `to`, which holds the same records."""
    st[s.epochs_row(st, to), st[s.PARTITION, s.CACHE_ROOM]] = fork_start(st, log)
    st[s.starts_row(st, to), st[s.PARTITION, s.CACHE_ROOM]] = fork_end(st, log)


def reload_fork(st: s.State, b: int, leo: int) -> None:
    """Make the cache of b unknown after an unclean stop, if its log forked (rule 2 of forks); the log now ends at `leo`."""
    if fork_end(st, b) > 0:
        st[s.REPLICAS + b, s.CACHED] = UNKNOWN
        if leo != UNKNOWN:
            fork(st, b, fork_start(st, b), leo)


def cache_latest(st: s.State, b: int) -> int:
    """Return the latest epoch in the cache of replica b; UNKNOWN if the cache is unknown."""
    n = st[s.REPLICAS + b, s.CACHED]
    if n == UNKNOWN:
        return UNKNOWN
    return latest_epoch(s.entries(st, s.epochs_row(st, b), n))


def cache_assign(st: s.State, b: int, epoch: int, start: int) -> None:
    """Append an entry to the cache of replica b: `epoch` begins at offset `start`. LeaderEpochFileCache#assign.

    With an unknown epoch or start the cache becomes unknown.
    """
    n = st[s.REPLICAS + b, s.CACHED]
    if n == UNKNOWN:
        return
    if epoch == UNKNOWN or start == UNKNOWN:
        st[s.REPLICAS + b, s.CACHED] = UNKNOWN
        return
    keeps = assign_keeps(s.entries(st, s.epochs_row(st, b), n), s.entries(st, s.starts_row(st, b), n), epoch, start)
    if keeps < 0:  # the cache has this entry
        return
    # The caller judges again with a larger table.
    if keeps >= st[s.PARTITION, s.CACHE_ROOM]:
        st[s.PARTITION, s.OVERFLOW] |= s.LOGS_FULL
        return
    # A lower epoch at a higher offset evicts the entries of higher ones, though their records stay in the log.
    if keeps < n and st[s.epochs_row(st, b), n - 1] > epoch:
        fork(st, b, st[s.starts_row(st, b), keeps], start)
    st[s.epochs_row(st, b), keeps] = epoch
    st[s.starts_row(st, b), keeps] = start
    st[s.REPLICAS + b, s.CACHED] = keeps + 1


def cache_truncate(st: s.State, b: int, end: int) -> None:
    """Remove entries of b's cache that start at or after `end`, where its log now ends; if UNKNOWN, the cache becomes so.

    LeaderEpochFileCache#truncateFromEnd.
    """
    n = st[s.REPLICAS + b, s.CACHED]
    if end != UNKNOWN:
        truncate_fork(st, b, end)
    if n == UNKNOWN:
        return
    if end == UNKNOWN:
        st[s.REPLICAS + b, s.CACHED] = UNKNOWN
    else:
        st[s.REPLICAS + b, s.CACHED] = truncate_from_end_keeps(s.entries(st, s.starts_row(st, b), n), end)


def cache_raise(st: s.State, b: int, start: int) -> None:
    """Remove entries of b's cache before a new log start, but for the last one of them, which then begins at that start.

    LeaderEpochFileCache#truncateFromStart.
    """
    n = st[s.REPLICAS + b, s.CACHED]
    if n == UNKNOWN:
        return
    covers = truncate_from_start_covers(s.entries(st, s.starts_row(st, b), n), start)
    # No entry begins at or below the new start: none is removed.
    if covers == 0:
        return
    # `covers` counts the entries up to the one that covers the new start: that one stays and begins there.
    for i in range(covers - 1, n):
        st[s.epochs_row(st, b), i - covers + 1] = st[s.epochs_row(st, b), i]
        st[s.starts_row(st, b), i - covers + 1] = st[s.starts_row(st, b), i]
    st[s.starts_row(st, b), 0] = start
    st[s.REPLICAS + b, s.CACHED] = n - covers + 1


def epoch_at(st: s.State, log: int, n: int, offset: int) -> int:
    """Return the epoch of the record at `offset` by the first n entries of log number `log`.

    UNKNOWN below the first entry, and in a fork.
    """
    begun = count_at_most(s.entries(st, s.starts_row(st, log), n), offset)
    if begun == 0 or fork_start(st, log) <= offset < fork_end(st, log):
        return UNKNOWN
    return int(st[s.epochs_row(st, log), begun - 1])


def next_start(st: s.State, log: int, n: int, offset: int, end: int) -> int:
    """Return the first start above `offset` of the first n entries of a log; `end` where that is lower or there is none."""
    begun = count_at_most(s.entries(st, s.starts_row(st, log), n), offset)
    if begun == n or st[s.starts_row(st, log), begun] > end:
        return end
    return int(st[s.starts_row(st, log), begun])


def agree_until(st: s.State, first: int, first_cached: int, second: int, second_cached: int, start: int, end: int) -> int:
    """Return the first offset in [start, end) where two logs have records of different epochs; `end` without one.

    `first` and `second` are the numbers of the logs, the `.._cached` how many entries their caches have.
    """
    at = start
    while at < end:
        first_epoch = epoch_at(st, first, first_cached, at)
        second_epoch = epoch_at(st, second, second_cached, at)
        # Where one of the logs does not show the epoch nothing is known to differ.
        if first_epoch != second_epoch and first_epoch != UNKNOWN and second_epoch != UNKNOWN:
            return at
        # Within one entry of both caches all records have these two epochs: go to where the next entry of either begins.
        at = min(next_start(st, first, first_cached, at, end), next_start(st, second, second_cached, at, end))
    return end


def copy_entries(st: s.State, log: int, n: int, follower: int, base: int, end: int) -> None:
    """Append to the follower's cache the epochs that the first `n` entries of log number `log` show in [base, end).

    Where they show none (epoch_at), the follower's cache becomes unknown.
    """
    at = base
    while at < end:
        cache_assign(st, follower, epoch_at(st, log, n, at), at)
        at = next_start(st, log, n, at, end)


def same_or_unknown(st: s.State, rule: int, end: int, same: int) -> None:
    """Check by `rule` that two logs have the same records up to `end`; `same` is up to where they do, at most `end`."""
    # Below a log start that is not reported, records may differ that retention has deleted from one of the two logs.
    if same < end and not deletions_known(st):
        undecided(st, rule, 1 << field.LOG_START)
    else:
        decide(st, rule, same >= end, field.AGREE, end, same)


def has_entry(st: s.State, b: int, epoch: int, start: int) -> bool:
    """Return whether the cache of replica b, whose length is known, has an entry with this epoch and start."""
    for i in range(st[s.REPLICAS + b, s.CACHED]):
        if st[s.epochs_row(st, b), i] == epoch and st[s.starts_row(st, b), i] == start:
            return True
    return False


def check_order(st: s.State, b: int) -> None:
    """Check EPOCH-02: epochs and starts of b's cache, which is known, rise strictly, and none starts above the log end."""
    n = st[s.REPLICAS + b, s.CACHED]
    epochs, starts = s.epochs_row(st, b), s.starts_row(st, b)
    for i in range(1, n):
        if st[epochs, i] <= st[epochs, i - 1]:
            decide(st, RULE.EPOCH_02, False, field.LEADER_EPOCH, st[epochs, i - 1] + 1, st[epochs, i])
            return
        if st[starts, i] <= st[starts, i - 1]:
            decide(st, RULE.EPOCH_02, False, field.EPOCH_START, st[starts, i - 1] + 1, st[starts, i])
            return
    leo = st[s.REPLICAS + b, s.LEO]
    # An empty cache, or an unknown log end, is in order: compared with itself.
    last = st[starts, n - 1] if n > 0 and leo != UNKNOWN else leo
    decide(st, RULE.EPOCH_02, last <= leo, field.EPOCH_START, leo, last)


def copy_log_to_term(st: s.State, b: int, term: int) -> None:
    """Copy the epoch cache of replica b to the log of term number `term`: the log that b is elected with."""
    log = st[s.OPTION, s.BROKERS] + term
    for i in range(st[s.REPLICAS + b, s.CACHED]):
        st[s.epochs_row(st, log), i] = st[s.epochs_row(st, b), i]
        st[s.starts_row(st, log), i] = st[s.starts_row(st, b), i]
    copy_fork(st, b, log)


def set_log_start(st: s.State, b: int, log_start: int) -> None:
    """Set the log start of replica b, known or not.

    A record that was deleted from one log may differ from the same record in another: a follower that fetches below the log
    start finds no epoch to compare (spec/LogStartMovement.tla, MCLogStartMovement/DeletedDiffers.cfg). So records below
    DELETED_UPTO are never compared.
    """
    st[s.REPLICAS + b, s.LOG_START] = log_start
    if log_start == UNKNOWN:
        st[s.PARTITION, s.DELETIONS_UNOBSERVED] = 1
    elif log_start > st[s.PARTITION, s.DELETED_UPTO]:
        st[s.PARTITION, s.DELETED_UPTO] = log_start


def deletions_known(st: s.State) -> bool:
    """Return whether DELETED_UPTO, below which records may be deleted, is right: no log start is or was unknown."""
    for b in range(st[s.OPTION, s.BROKERS]):
        if st[s.REPLICAS + b, s.LOG_START] == UNKNOWN:
            return False
    return bool(st[s.PARTITION, s.DELETIONS_UNOBSERVED] == 0)


def inputs_missing(cached: int, leo: int, log_start: int, offset: int, last: int) -> int:
    """Return a bit mask of the fields that would have given the arguments that are UNKNOWN.

    They are the inputs of a look-up in an epoch cache: its length, log end, log start, fetch offset and last fetched epoch.
    """
    missing = 0
    if cached == UNKNOWN:
        missing |= 1 << field.EPOCHS
    if leo == UNKNOWN:
        missing |= 1 << field.LEO
    if log_start == UNKNOWN:
        missing |= 1 << field.LOG_START
    if offset == UNKNOWN:
        missing |= 1 << field.REQ_OFFSET
    if last == UNKNOWN:
        missing |= 1 << field.REQ_LAST_EPOCH
    return missing

"""Logs as epoch runs: the epoch cache of a replica, and the logs that leaders were elected with.

Rules of this file

1. Which entries an operation keeps is decided by impl.rules; here they are moved.
2. A cache of unknown content has length UNKNOWN; every operation leaves it so, except one that tells it whole.
3. Records of one epoch have one writer, so two logs that agree on the epoch of an offset agree on the record there.
4. What a cache says of records is not asked where the log forked (conformance.kernel.forks).
"""

from tidegauge.conformance.kernel import fields as field
from tidegauge.conformance.kernel.forks import copy_fork, fork, fork_end, fork_start, truncate_fork
from tidegauge.conformance.kernel.state import (
    BROKERS,
    CACHED,
    DELETED,
    DELETIONS_UNSEEN,
    LEO,
    LOG_START,
    LOGS_FULL,
    OPTION,
    OVERFLOW,
    REPLICAS,
    ROOM,
    WHOLE,
    State,
    entries,
    epochs_row,
    starts_row,
)
from tidegauge.conformance.kernel.tally import decide, undecided
from tidegauge.impl.rules import (
    assign_keeps,
    count_at_most,
    latest_epoch,
    truncate_from_end_keeps,
    truncate_from_start_covers,
)
from tidegauge.traces.columns import UNKNOWN


def cache_latest(st: State, b: int) -> int:
    """Latest epoch in the cache of replica b, or UNKNOWN."""
    n = st[REPLICAS + b, CACHED]
    if n == UNKNOWN:
        return UNKNOWN
    return latest_epoch(entries(st, epochs_row(st, b), n))


def cache_assign(st: State, b: int, epoch: int, start: int) -> None:
    """LeaderEpochFileCache#assign; with an unknown epoch or start the cache becomes unknown."""
    n = st[REPLICAS + b, CACHED]
    if n == UNKNOWN:
        return
    if epoch == UNKNOWN or start == UNKNOWN:
        st[REPLICAS + b, CACHED] = UNKNOWN
        return
    keeps = assign_keeps(entries(st, epochs_row(st, b), n), entries(st, starts_row(st, b), n), epoch, start)
    if keeps < 0:
        return
    if keeps >= st[WHOLE, ROOM]:
        st[WHOLE, OVERFLOW] |= LOGS_FULL
        return
    if keeps < n and st[epochs_row(st, b), n - 1] > epoch:
        fork(st, b, st[starts_row(st, b), keeps], start)
    st[epochs_row(st, b), keeps] = epoch
    st[starts_row(st, b), keeps] = start
    st[REPLICAS + b, CACHED] = keeps + 1


def cache_truncate(st: State, b: int, end: int) -> None:
    """LeaderEpochFileCache#truncateFromEnd."""
    n = st[REPLICAS + b, CACHED]
    if end != UNKNOWN:
        truncate_fork(st, b, end)
    if n == UNKNOWN:
        return
    if end == UNKNOWN:
        st[REPLICAS + b, CACHED] = UNKNOWN
    else:
        st[REPLICAS + b, CACHED] = truncate_from_end_keeps(entries(st, starts_row(st, b), n), end)


def cache_raise(st: State, b: int, start: int) -> None:
    """LeaderEpochFileCache#truncateFromStart."""
    n = st[REPLICAS + b, CACHED]
    if n == UNKNOWN:
        return
    covers = truncate_from_start_covers(entries(st, starts_row(st, b), n), start)
    if covers == 0:
        return
    for i in range(covers - 1, n):
        st[epochs_row(st, b), i - covers + 1] = st[epochs_row(st, b), i]
        st[starts_row(st, b), i - covers + 1] = st[starts_row(st, b), i]
    st[starts_row(st, b), 0] = start
    st[REPLICAS + b, CACHED] = n - covers + 1


def epoch_at(st: State, row: int, n: int, offset: int) -> int:
    """Epoch of the record at `offset` in the first n entries of a row, UNKNOWN below them and where the log forked."""
    known = count_at_most(entries(st, starts_row(st, row), n), offset)
    if known == 0 or fork_start(st, row) <= offset < fork_end(st, row):
        return UNKNOWN
    return int(st[epochs_row(st, row), known - 1])


def next_start(st: State, row: int, n: int, offset: int, end: int) -> int:
    """The first entry start above `offset`, at most `end`."""
    known = count_at_most(entries(st, starts_row(st, row), n), offset)
    if known == n or st[starts_row(st, row), known] > end:
        return end
    return int(st[starts_row(st, row), known])


def agree_until(st: State, one: int, one_cached: int, two: int, two_cached: int, start: int, end: int) -> int:
    """The first offset in [start, end) where two logs hold records of different epochs; `end` when there is none."""
    at = start
    while at < end:
        first = epoch_at(st, one, one_cached, at)
        second = epoch_at(st, two, two_cached, at)
        if first != second and first != UNKNOWN and second != UNKNOWN:
            return at
        at = min(next_start(st, one, one_cached, at, end), next_start(st, two, two_cached, at, end))
    return end


def copy_entries(st: State, log: int, n: int, follower: int, base: int, end: int) -> None:
    """Assign to the follower's cache the epochs that the first n entries of another log give the records [base, end)."""
    at = base
    while at < end:
        cache_assign(st, follower, epoch_at(st, log, n, at), at)
        at = next_start(st, log, n, at, end)


def same_or_unknown(st: State, rule: int, fieldno: int, end: int, same: int) -> None:
    """Two logs hold the same records up to `end`, of which they do up to `same`: else retention may have deleted some."""
    if same < end and not deletions_known(st):
        undecided(st, rule, 1 << field.LOG_START)
    else:
        decide(st, rule, same >= end, fieldno, end, same)


def has_entry(st: State, b: int, epoch: int, start: int) -> bool:
    """Whether a known cache says this already."""
    for i in range(st[REPLICAS + b, CACHED]):
        if st[epochs_row(st, b), i] == epoch and st[starts_row(st, b), i] == start:
            return True
    return False


def well_formed(st: State, b: int) -> bool:
    """Epochs and starts of a known cache rise strictly, and no entry starts above the log end."""
    n = st[REPLICAS + b, CACHED]
    for i in range(1, n):
        if (
            st[epochs_row(st, b), i] <= st[epochs_row(st, b), i - 1]
            or st[starts_row(st, b), i] <= st[starts_row(st, b), i - 1]
        ):
            return False
    leo = st[REPLICAS + b, LEO]
    return bool(n == 0 or leo == UNKNOWN or st[starts_row(st, b), n - 1] <= leo)


def snapshot(st: State, b: int, term: int) -> None:
    """Copy the cache of replica b to the row of a term."""
    row = st[OPTION, BROKERS] + term
    for i in range(st[REPLICAS + b, CACHED]):
        st[epochs_row(st, row), i] = st[epochs_row(st, b), i]
        st[starts_row(st, row), i] = st[starts_row(st, b), i]
    copy_fork(st, b, row)


def starts_at(st: State, b: int, log_start: int) -> None:
    """The log start of replica b, known or not.

    A record that was deleted somewhere may differ from one that is kept: a follower that fetches from behind the log start
    finds no epoch to compare (spec/LogStartMovement.tla, MCLogStartMovement/DeletedDiffers.cfg).
    """
    st[REPLICAS + b, LOG_START] = log_start
    if log_start == UNKNOWN:
        st[WHOLE, DELETIONS_UNSEEN] = 1
    elif log_start > st[WHOLE, DELETED]:
        st[WHOLE, DELETED] = log_start


def deletions_known(st: State) -> bool:
    """Whether DELETED is right: no log start was ever unknown."""
    for b in range(st[OPTION, BROKERS]):
        if st[REPLICAS + b, LOG_START] == UNKNOWN:
            return False
    return bool(st[WHOLE, DELETIONS_UNSEEN] == 0)


def inputs_missing(cached: int, leo: int, log_start: int, offset: int, last: int) -> int:
    """The fields behind those inputs of a look-up in the cache that are unknown."""
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

"""Forks of a log: the offsets of records whose epochs its epoch cache has lost.

Rules of this file

1. A record of a lower epoch after records of higher ones evicts their entries (LeaderEpochFileCache#assign):

       offset      0   1   2   3   4                              cache before   0@0  2@2
       epoch       0   0   2   2   1  <- appended at 4            cache after    0@0  1@4     lost: offsets 2 and 3

   The broker still answers from that cache, but it does not show the epochs of the records from the first evicted entry to
   the appended record. Only generations before KIP-320 let that happen.
2. What an unclean restart makes of such a log depends on where recovery begins: LogSegment#recover adds the epochs above
   the latest as it reads them. So the cache is unknown until an event reports it.
"""

from tidegauge.conformance.kernel import state as s
from tidegauge.traces.columns import UNKNOWN


def fork_start(st: s.State, log: int) -> int:
    """Return the first offset whose record's epoch is lost; not below `fork_end` where there is none."""
    return int(st[s.epochs_row(st, log), st[s.PARTITION, s.CACHE_ROOM]])


def fork_end(st: s.State, log: int) -> int:
    """Return the offset after the last record whose epoch is lost; 0 where the log never forked."""
    return int(st[s.starts_row(st, log), st[s.PARTITION, s.CACHE_ROOM]])


def fork(st: s.State, log: int, start: int, end: int) -> None:
    """Note that the epochs of the records in [start, end) are lost too."""
    forked = fork_end(st, log) > 0
    st[s.epochs_row(st, log), st[s.PARTITION, s.CACHE_ROOM]] = min(start, fork_start(st, log)) if forked else start
    st[s.starts_row(st, log), st[s.PARTITION, s.CACHE_ROOM]] = max(end, fork_end(st, log))


def truncate_fork(st: s.State, log: int, end: int) -> None:
    """Shorten the fork of a log that now ends at `end`."""
    if fork_end(st, log) > end:
        st[s.starts_row(st, log), st[s.PARTITION, s.CACHE_ROOM]] = end if end > fork_start(st, log) else 0


def copy_fork(st: s.State, log: int, to: int) -> None:
    """Copy the fork to another log that holds the same records."""
    st[s.epochs_row(st, to), st[s.PARTITION, s.CACHE_ROOM]] = fork_start(st, log)
    st[s.starts_row(st, to), st[s.PARTITION, s.CACHE_ROOM]] = fork_end(st, log)


def reload_fork(st: s.State, b: int, leo: int) -> None:
    """Make the cache of replica b unknown after an unclean stop, if its log forked: see rule 2."""
    if fork_end(st, b) > 0:
        st[s.REPLICAS + b, s.CACHED] = UNKNOWN
        if leo != UNKNOWN:
            fork(st, b, fork_start(st, b), leo)

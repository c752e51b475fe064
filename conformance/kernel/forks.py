"""Where a log forked: the offsets whose records its epoch cache says nothing of any more.

Rules of this file

1. A record of a lower epoch behind records of higher ones evicts their entries (LeaderEpochFileCache#assign). The cache
   goes on answering, and is what the broker answers from; but the epochs of the records from the first evicted entry up
   to that record are no longer in it. Only generations before KIP-320 let that happen.
2. What an unclean restart makes of such a log depends on where recovery begins: LogSegment#recover adds the epochs above
   the latest as it meets them. So the cache is unknown until it is told.
"""

from tidegauge.conformance.kernel import state as s
from tidegauge.traces.columns import UNKNOWN


def fork_start(st: s.State, log: int) -> int:
    """The first offset whose record's epoch is lost; not below `fork_end` where there is none."""
    return int(st[s.epochs_row(st, log), st[s.WHOLE, s.ROOM]])


def fork_end(st: s.State, log: int) -> int:
    """The offset behind the last of them; 0 where the log never forked."""
    return int(st[s.starts_row(st, log), st[s.WHOLE, s.ROOM]])


def fork(st: s.State, log: int, start: int, end: int) -> None:
    """The epochs of the records in [start, end) are lost too."""
    forked = fork_end(st, log) > 0
    st[s.epochs_row(st, log), st[s.WHOLE, s.ROOM]] = min(start, fork_start(st, log)) if forked else start
    st[s.starts_row(st, log), st[s.WHOLE, s.ROOM]] = max(end, fork_end(st, log))


def truncate_fork(st: s.State, log: int, end: int) -> None:
    """The log now ends at `end`."""
    if fork_end(st, log) > end:
        st[s.starts_row(st, log), st[s.WHOLE, s.ROOM]] = end if end > fork_start(st, log) else 0


def copy_fork(st: s.State, log: int, to: int) -> None:
    """Another log holds the same records."""
    st[s.epochs_row(st, to), st[s.WHOLE, s.ROOM]] = fork_start(st, log)
    st[s.starts_row(st, to), st[s.WHOLE, s.ROOM]] = fork_end(st, log)


def reload_fork(st: s.State, b: int, leo: int) -> None:
    """Replica b was loaded after it had not stopped in order: see rule 2."""
    if fork_end(st, b) > 0:
        st[s.REPLICAS + b, s.CACHED] = UNKNOWN
        if leo != UNKNOWN:
            fork(st, b, fork_start(st, b), leo)

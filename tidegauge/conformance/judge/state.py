"""What the judge knows of one partition while it reads a trace: one integer table and the names of its rows and columns.

Rules of this file

1. UNKNOWN: nothing was observed yet, so any value is possible. UNDEFINED (-1) is a value: known to be absent.
2. A replica's log is its epoch cache and its end. Log b is that of replica b; logs from `brokers` on are those that leaders
   were elected with, one per term. A log has two rows, its epochs and their start offsets. After the room for entries, each
   has one more cell: the first and last offset of the records whose epochs the cache has lost (conformance.judge.lineage).
3. Everything is in one two-dimensional array: a call passes one pointer, and a trace is forgotten by overwriting a few rows.
   Where the rows begin whose number depends on the run, the AT_ scalars give.
4. Sizes are fixed for a run. A trace that needs more sets a bit of OVERFLOW, and the caller starts again with more room.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tidegauge.conformance.judge.fields import RULES
from tidegauge.traces.columns import UNKNOWN

Ints = NDArray[np.int64]
State: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.int64]]
Final: TypeAlias = np.ndarray[tuple[int, int, int], np.dtype[np.int64]]
Caches: TypeAlias = np.ndarray[tuple[int, int, int, int], np.dtype[np.int64]]

# Columns of row REPLICAS + b
(
    UP,  # 1 while it runs, 0 when it is down, ABSENT when its broker runs without it
    ROLE,
    EPOCH,
    LEADER,
    LEO,
    HW,
    LOG_START,
    CACHED,  # how many entries its epoch cache has
    EPOCH_START,  # the offset at which its leader epoch began
    ISR,  # the committed ISR as this leader knows it
    PENDING,  # the ISR it has proposed and has no response to; 0 when there is none
    PROPOSED,  # its last proposal, whatever became of it
    HIGHEST_HW,  # no checkpoint may hold more: its highest HW since it was first loaded; UNKNOWN once the HW was unknown
    MORE_ROUNDS,  # 1 after a truncation that was not completed, until the next request
    HW_MOVED,  # its HW before data of a response moved it, UNDEFINED when no response did since the last request
    FRESH,  # 1 from Start to the first role
    TERM,  # its row in `terms` while it leads, else UNDEFINED
    STOPPED,  # 1 after an orderly stop
    PARTITION_EPOCH,  # the latest it acts on
    RESTARTED,  # 1 when an earlier process of it may have sent something, 0 when its first process started in the trace
    ASSIGNED,  # the replicas as this leader knows them
    PROPOSED_BROKER_EPOCH,  # the broker epoch of the member that its last proposal adds
    BROKER_EPOCH,  # what its broker registered with last
    FENCED,  # 1 while the controller fences its broker
    LOST,  # 1 since it may lack what it had, until it joins an ISR; REGISTERED when the controller knows
    LOST_UPTO,  # the last leader epoch that anybody had reported when it lost its disk; UNKNOWN while it has not
    ERASED,  # 1 while PENDING has a proposal that metadata erased which it knew already (finding F3)
    MIN_ISR_READ,  # min.insync.replicas as it has read it since that changed; marks for unknown values: elections.py
) = range(28)
REPLICA = 28

NO_ROLE, LEADING, FOLLOWING = 0, 1, 2

REGISTERED = 2
ABSENT = 2

# Columns of row pair(follower, leader): what is in flight, and what the leader recorded
(
    KIND,  # what is in flight: NOTHING and its successors below
    REQ_EPOCH,  # the current leader epoch in the request
    REQ_OFFSET,
    REQ_LAST,  # the last fetched epoch, or the epoch that OffsetsForLeaderEpoch asks about
    OLD_KIND,  # a request that another overtook before any leader was seen to handle it; NOTHING when there is none
    OLD_EPOCH,
    OLD_OFFSET,
    OLD_LAST,
    MORE_OVERTAKEN,  # 1 when still older ones may arrive
    RES_HW,
    DELAYED_HW,  # the leader's HW when the fetch was recorded
    RES_DIV_EPOCH,  # where the logs diverge, or the answer to OffsetsForLeaderEpoch: an epoch and its end
    RES_DIV_END,
    RES_BASE,  # its records: from here to before RES_END, the last of them of RES_REC_EPOCH
    RES_END,
    RES_REC_EPOCH,
    RES_ERROR,
    RES_LOG_START,
    RES_TERM,  # the term of the leader when it answered, UNDEFINED when that is not known
    REMOTE,  # LEO the leader recorded for the follower
    REMOTE_EPOCH,  # the leader epoch in which it did
    STALE_LEO,  # what it recorded before it was elected again, and was to forget
    REMOTE_BROKER_EPOCH,  # the highest broker epoch of the follower that it has accepted
) = range(23)
PAIR = 23

NOTHING, REQUEST, DELAYED, DATA, DIVERGED, OUT_OF_RANGE, REFUSED, EPOCH_REQUEST, EPOCH_RESPONSE, ORPHANED, AMBIGUOUS = range(
    11
)
"""What is in flight between a follower and a leader. DELAYED: the fetch is recorded, its response leaves later
(DelayedFetch). ORPHANED: the leader, or its replica, is gone, so the request (now the overtaken one) may still be handled,
may have been answered without an event, or is gone. AMBIGUOUS: several requests were handled, and it is open whose response
arrives."""

# Columns of row PARTITION
(
    C_LEADER,
    C_EPOCH,
    C_PARTITION_EPOCH,
    C_ISR,
    C_ELIGIBLE,  # the ELR that was reported, or the members that left the ISR while it was below min ISR: KIP-966
    C_ELR,  # the ELR where it was reported
    C_REPLICAS,  # the assignment
    C_MIN_ISR,  # min.insync.replicas since it changed; marks for unknown values: elections.py
    REGISTRATIONS,
    FIRST_EPOCH,  # lowest leader epoch that was registered in the trace
    TERMS,
    UNCLEAN,  # highest leader epoch of an unclean (or undecidable) election, UNDEFINED without one
    DELETED_UPTO,  # the highest log start that was reported: records below it may be gone
    OBSERVED,  # bit mask of the nodes whose events are known up to here
    COMPLETE_FROM,  # 1 while the registrations of the next leader epoch may not all be known
    ELECTIONS_UNOBSERVED,  # 1 when an election may have been missed
    DELETIONS_UNOBSERVED,  # 1 when a log start may have moved without an event
    FORGOTTEN_UPTO,  # up to this leader epoch registrations may be forgotten: nothing is known of what is not there
    NOW,  # the row that is judged
    TRACE,
    FAILED,  # bit mask of the rules that failed in this trace
    FAILURES,
    OVERFLOW,  # bit mask: LOGS_FULL, PAST_FULL
    CACHE_ROOM,  # entries a log may have
    PAST_ROOM,  # how many registrations and terms there may be
    FAILURES_ROOM,
    AT_PAIRS,
    AT_LOGS,
    AT_REGISTRATIONS,
    AT_TERMS,
    AT_FAILURES,
) = range(31)

LOGS_FULL, PAST_FULL = 1, 2

# Columns of row registration(i): a leader epoch as the controller registered it, or as a replica reported it
R_EPOCH, R_LEADER, R_ISR, R_PARTITION_EPOCH, R_UNCLEAN, R_REPLICAS = range(6)
"""R_UNCLEAN: 1 where the election of the epoch was unclean, or may have been."""

# Columns of row term(i): a leader's term; its log is log brokers + i
(
    T_EPOCH,
    T_LEADER,
    T_LEO,  # where the log that it was elected with ended
    T_CACHED,  # how many entries the epoch cache of that log has
    T_COMMITTED,  # the highest high watermark that the leader had in the term; 0 without one
    T_ACKED,  # the end of what it has acknowledged of it with acks=all; 0 without any
    T_PAST_COMMITTED,  # what forgotten terms committed; this one was elected with all of it
    T_PAST_COMMITS,  # how many of them
    T_PAST_ACKED,  # the same of what they acknowledged
    T_PAST_ACKS,
    T_END,  # where its own records ended when it ceased to lead; UNDEFINED as long as it leads on
) = range(11)
TERM_COLUMNS = 11

# Columns of row OPTION: what holds for all traces of a run. A switch of the profiles is the bit mask of who has it
(
    BROKERS,
    MIN_ISR,
    LAG_RULE,
    TRUNCATION_ON_FETCH,
    FENCING,
    RESPONSE_EPOCH_CHECKED,
    BATCH_EPOCH_FILTER,
    JOIN_NEEDS_EPOCH_START,
    BLOCKS_UNDER_MIN_ISR,
    KEEPS_REMOTE_LEO,
    EPOCH_IN_RESPONSE,
    DUPLICATES,  # a request may arrive more than once
    REPORTS_CACHE_ENTRIES,  # the source reports EpochCacheEntry, so a record of unknown epoch adds none
    REPORTS_SEND_FETCH,  # what the source can report: SendFetch
    REPORTS_HANDLE_FETCH,  # HandleFetch
    REPORTS_ISR_PROPOSALS,  # ExpandIsr, and with it ShrinkIsr
    REPORTS_SEND_EPOCH_REQUEST,  # SendEpochRequest
    REPORTS_HANDLE_EPOCH_REQUEST,  # HandleEpochRequest
    EPOCH_RESPONSES_CHECKED,
    ELR,
    PIECEWISE,  # a trace is judged piece by piece: nothing is forgotten in between
    ELECTIONS_CLEAN,  # the source states that no election was unclean, though it reports none
    GUARDS_PARTITION_EPOCH,
    UNOBSERVED,  # the kinds of events that the source does not report, as UNOBSERVED_ bits
    REPORTS_FENCING,  # FenceBroker and UnfenceBroker, both
    REASSIGNED,  # the assignment is not all brokers all the time
) = range(26)

UNOBSERVED_STARTS = 1
UNOBSERVED_STOPS = 2
UNOBSERVED_ROLES = 4
UNOBSERVED_APPENDS = 8
UNOBSERVED_SENDS = 16
UNOBSERVED_FETCHES = 32
UNOBSERVED_RESPONSES = 64
UNOBSERVED_PROPOSALS = 128
UNOBSERVED_COMMITS = 256
UNOBSERVED_LOG_STARTS = 512

# Columns of a failure
F_TRACE, F_ROW, F_RULE, F_FIELD, F_EXPECTED, F_ACTUAL = range(6)

# Columns of row TALLIES + rule
HELD_COUNT, FAILED_COUNT, UNDECIDED_COUNT, MISSING, FAILED_TRACES = range(5)

# Columns of a replica that are copied at the end of a trace
FINAL = (LEO, HW, LOG_START, CACHED)

# Rows
MOST_BROKERS = 61
PARTITION, OPTION, LEOS, COUNTED, SAVED_PAIR = range(5)
"""The partition; the options of the run; inputs of the leader's rule (two rows); a pair while a duplicate is judged."""
TALLIES = 5
REPLICAS = TALLIES + RULES
SIZED = REPLICAS + MOST_BROKERS
"""The first row whose number depends on the run: see the AT_ scalars."""
WIDTH = 72
"""Nine cache lines: an even number of lines would put the first columns of all rows into the same few cache sets."""
MOST_PAST = 256
"""The most registrations and terms that a table has room for. A leader epoch of one leader is a term."""


def allocate(options: Sequence[int], room: int, failures: int, past: int) -> State:
    """Make a table with room for `room` cache entries, `past` registrations and terms, and `failures` first failures.

    `options` are the values of row OPTION, by its columns.
    """
    n = options[BROKERS]
    # Rows of each kind whose number depends on the run. A log has two; each broker has a log, and each term.
    sizes = (
        (AT_PAIRS, n * n),
        (AT_LOGS, 2 * (n + past)),
        (AT_REGISTRATIONS, past),
        (AT_TERMS, past),
        (AT_FAILURES, failures),
    )
    # A row is as wide as the widest kind, or as a log: its entries and its fork. `room` is a power of two, so 8 cells more
    # make an odd number of cache lines (WIDTH).
    st = np.zeros((SIZED + sum(size for _, size in sizes), max(WIDTH, room + 8)), np.int64)
    at = SIZED
    for scalar, size in sizes:
        st[PARTITION, scalar] = at
        at += size
    st[PARTITION, CACHE_ROOM] = room
    st[PARTITION, PAST_ROOM] = past
    st[PARTITION, FAILURES_ROOM] = failures
    st[OPTION, : len(options)] = options
    return st


def has_switch(st: State, switch: int, b: int) -> bool:
    """Return whether broker b has a switch of the profiles; `switch` is its column in row OPTION."""
    return bool(st[OPTION, switch] >> b & 1 == 1)


def pair(st: State, follower: int, leader: int) -> int:
    """Return the row of what is in flight between a follower and a leader, and of what the leader recorded of it."""
    return int(st[PARTITION, AT_PAIRS] + follower * st[OPTION, BROKERS] + leader)


def epochs_row(st: State, log: int) -> int:
    """Return the row of the epochs of the entries of log number `log` (rule 2)."""
    return int(st[PARTITION, AT_LOGS] + 2 * log)


def starts_row(st: State, log: int) -> int:
    """Return the row of the offsets at which the epochs of log number `log` start (rule 2)."""
    return int(st[PARTITION, AT_LOGS] + 2 * log + 1)


def registration(st: State, at: int) -> int:
    """Return the row of registration number `at`: a leader epoch with its leader and ISR, sorted by epoch."""
    return int(st[PARTITION, AT_REGISTRATIONS] + at)


def term(st: State, at: int) -> int:
    """Return the row of term number `at`: one leader epoch of one leader."""
    return int(st[PARTITION, AT_TERMS] + at)


def entries(st: State, row: int, n: int) -> Sequence[int]:
    """Return the first n values of a row, such as the epochs of a log, as the functions of impl.rules take them."""
    return st[row, :n]  # type: ignore[return-value]


def flags(st: State, row: int, n: int) -> Sequence[bool]:
    """Return the first n values of a row, 0 or 1 each, typed as the truth values that impl.rules takes."""
    return st[row, :n]  # type: ignore[return-value]


def forget(st: State, trace: int) -> None:
    """Make everything unknown: the trace with number `trace` begins."""
    n = st[OPTION, BROKERS]
    for b in range(n):
        for k in range(REPLICA):
            st[REPLICAS + b, k] = UNKNOWN
        # The cells behind the room for entries: no record's epoch is lost (rule 2).
        st[epochs_row(st, b), st[PARTITION, CACHE_ROOM]] = 0
        st[starts_row(st, b), st[PARTITION, CACHE_ROOM]] = 0
    for row in range(st[PARTITION, AT_PAIRS], st[PARTITION, AT_PAIRS] + n * n):
        for k in range(PAIR):
            st[row, k] = UNKNOWN
    # The columns before REGISTRATIONS are what the controller has registered.
    for k in range(REGISTRATIONS):
        st[PARTITION, k] = UNKNOWN
    # Nothing registered, no node observed, nothing missed so far.
    for k in (REGISTRATIONS, OBSERVED, COMPLETE_FROM, ELECTIONS_UNOBSERVED, DELETIONS_UNOBSERVED):
        st[PARTITION, k] = 0
    st[PARTITION, FIRST_EPOCH] = UNKNOWN
    st[PARTITION, TERMS] = 0
    # -1: below every leader epoch, so there was no unclean election, and no registration was forgotten.
    st[PARTITION, UNCLEAN] = -1
    st[PARTITION, DELETED_UPTO] = 0
    st[PARTITION, FORGOTTEN_UPTO] = -1
    st[PARTITION, TRACE] = trace
    st[PARTITION, FAILED] = 0

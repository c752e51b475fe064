"""Events of a broker's life: it is loaded, it stops, its log start moves, an entry joins its cache.

Rules of this file

1. A broker that starts knows no metadata: leader epoch UNDEFINED, no role, nothing recorded, nothing sent.
2. A disk that is lost is no broken rule. The log is empty from there on, and only what becomes of that is judged: who is
   elected with it, and what of the records that were acknowledged is left.
"""

from tidegauge.conformance.kernel import fields as field
from tidegauge.conformance.kernel.flight import overtake
from tidegauge.conformance.kernel.forks import reload_fork
from tidegauge.conformance.kernel.lineage import (
    cache_assign,
    cache_latest,
    cache_raise,
    cache_truncate,
    has_entry,
    starts_at,
)
from tidegauge.conformance.kernel.log_checks import alive, cache_in_order, set_hw, set_leo, within
from tidegauge.conformance.kernel.roles import forget_recorded
from tidegauge.conformance.kernel.rule_ids import (
    EPOCH_02,
    HW_10,
    LIFE_01,
    LOAD_01,
    LOAD_02,
    LOG_01,
)
from tidegauge.conformance.kernel.state import (
    ADRIFT,
    BROKERS,
    CACHED,
    EPOCH,
    EPOCH_REQUEST,
    EPOCH_START,
    FRESH,
    HELD,
    HIGHEST_HW,
    HW,
    HW_MOVED,
    ISR,
    KIND,
    LEADER,
    LEO,
    LOG_START,
    LOGS_FULL,
    LOST,
    MORE_ROUNDS,
    NO_ROLE,
    NOTHING,
    OLD_KIND,
    OPTION,
    OVERFLOW,
    PARTITION_EPOCH,
    PENDING,
    REPLICAS,
    REQUEST,
    RESTARTED,
    ROLE,
    ROOM,
    STOPPED,
    TERM,
    UP,
    WHOLE,
    Ints,
    State,
    epochs_row,
    pair,
    starts_row,
)
from tidegauge.conformance.kernel.tally import as_expected, decide, undecided
from tidegauge.impl.rules import high_watermark_after_log_start
from tidegauge.traces.columns import UNKNOWN


def idle(st: State, b: int) -> None:
    """The process of b is gone: no role, nothing recorded. What it sent may still arrive.

    A response may have left without a line in the leader's log, so what a request to b came to is unknown. If it is handled
    after all, it says what was sent.
    """
    n = st[OPTION, BROKERS]
    st[REPLICAS + b, ROLE] = NO_ROLE
    st[REPLICAS + b, EPOCH] = -1
    st[REPLICAS + b, LEADER] = -1
    st[REPLICAS + b, EPOCH_START] = -1
    st[REPLICAS + b, ISR] = 0
    st[REPLICAS + b, PENDING] = 0
    st[REPLICAS + b, MORE_ROUNDS] = 0
    st[REPLICAS + b, HW_MOVED] = -1
    st[REPLICAS + b, TERM] = -1
    st[REPLICAS + b, PARTITION_EPOCH] = UNKNOWN
    forget_recorded(st, b, -1)
    for other in range(n):
        overtake(st, pair(st, b, other))
        st[pair(st, b, other), KIND] = NOTHING
        asked = pair(st, other, b)
        if st[asked, KIND] in (REQUEST, EPOCH_REQUEST):
            overtake(st, asked)
            st[asked, KIND] = ADRIFT
        # a purgatory dies with its broker, but the response may have left before without a line
        elif st[asked, KIND] == HELD:
            st[asked, KIND] = UNKNOWN


def stop(st: State, b: int, orderly: int) -> None:
    """Stop and Crash."""
    if st[REPLICAS + b, UP] != UNKNOWN:
        decide(st, LIFE_01, st[REPLICAS + b, UP] == 1, field.RUNNING, 1, st[REPLICAS + b, UP])
    idle(st, b)
    st[REPLICAS + b, UP] = 0
    st[REPLICAS + b, STOPPED] = orderly


def empty(st: State, b: int) -> None:
    """Nothing is left of the log of b, nor of its checkpoints."""
    cache_truncate(st, b, 0)
    starts_at(st, b, 0)
    set_leo(st, b, 0)
    set_hw(st, b, 0)
    st[REPLICAS + b, CACHED] = 0
    st[REPLICAS + b, HIGHEST_HW] = 0
    st[REPLICAS + b, STOPPED] = 0
    st[REPLICAS + b, LOST] = 1


def delete_replica(st: State, b: int) -> None:
    """The partition is assigned to b no more: its log goes with it. ReplicaManager#stopPartitions."""
    idle(st, b)
    empty(st, b)
    st[REPLICAS + b, UP] = 0


def start(st: State, b: int, clean: int, leo: int, hw: int, log_start: int, reported: bool, pairs: Ints) -> None:
    """Start: LOAD-01 against what the broker had, LOAD-02 for its epoch cache."""
    if st[REPLICAS + b, UP] != UNKNOWN:
        decide(st, LIFE_01, st[REPLICAS + b, UP] == 0, field.RUNNING, 0, st[REPLICAS + b, UP])
    before, highest = st[REPLICAS + b, LEO], st[REPLICAS + b, HIGHEST_HW]
    had, stopped = st[REPLICAS + b, HW], st[REPLICAS + b, STOPPED]
    if before != UNKNOWN and leo != UNKNOWN:
        decide(st, LOAD_01, leo == before if clean == 1 else leo <= before, field.LEO, before, leo)
    # an orderly stop writes the checkpoint (ReplicaManager#shutdown), so nothing older can be read
    if clean == 1 and stopped == 1 and UNKNOWN not in (had, hw):
        decide(st, LOAD_01, hw <= had, field.HW, had, hw)
    if highest != UNKNOWN and hw != UNKNOWN:
        decide(st, LOAD_01, hw <= highest, field.HW, highest, hw)
    idle(st, b)
    begins(st, b)
    if clean == 0:
        st[REPLICAS + b, LOST] = 1
    st[REPLICAS + b, UP] = 1
    st[REPLICAS + b, FRESH] = 1
    st[REPLICAS + b, STOPPED] = 0
    # a checkpoint above the log's end is loaded as that end, and stays on disk as it is
    if highest == UNKNOWN and (clean == 1 or (hw != UNKNOWN and hw < leo)):
        st[REPLICAS + b, HIGHEST_HW] = hw
    if leo != UNKNOWN:
        cache_truncate(st, b, leo)
    elif clean != 1:
        st[REPLICAS + b, CACHED] = UNKNOWN
    # LogLoader#recoverLog rebuilds the cache from the batches only after an unclean stop
    if clean != 1:
        reload_fork(st, b, leo)
    if log_start != UNKNOWN:
        starts_at(st, b, log_start)
        cache_raise(st, b, log_start)
    elif st[REPLICAS + b, LOG_START] != 0:
        starts_at(st, b, UNKNOWN)
        st[REPLICAS + b, CACHED] = UNKNOWN
    set_leo(st, b, leo)
    set_hw(st, b, hw)
    if reported:
        compare_cache(st, b, LOAD_02, pairs)
    elif leo == UNKNOWN:
        st[REPLICAS + b, CACHED] = UNKNOWN
    within(st, b)
    cache_in_order(st, b)


def begins(st: State, b: int) -> None:
    """Whether this is the first process of b: then nothing that an earlier one sent is under way."""
    first = UNKNOWN == st[REPLICAS + b, UP] == st[REPLICAS + b, RESTARTED]
    st[REPLICAS + b, RESTARTED] = 0 if first else 1
    if first:
        for other in range(st[OPTION, BROKERS]):
            st[pair(st, b, other), OLD_KIND] = NOTHING


def compare_cache(st: State, b: int, rule: int, pairs: Ints) -> None:
    """Judge a cache that was told whole against the one the events made, and go on from what was told."""
    n = len(pairs) // 2
    if n > st[WHOLE, ROOM]:
        st[WHOLE, OVERFLOW] |= LOGS_FULL
        return
    had = st[REPLICAS + b, CACHED]
    if had != UNKNOWN:
        i = 0
        while i < min(had, n) and st[epochs_row(st, b), i] == pairs[2 * i] and st[starts_row(st, b), i] == pairs[2 * i + 1]:
            i += 1
        if i == min(had, n):
            decide(st, rule, had == n, field.ENTRIES, had, n)
        elif st[epochs_row(st, b), i] != pairs[2 * i]:
            decide(st, rule, False, field.LEADER_EPOCH, st[epochs_row(st, b), i], pairs[2 * i])
        else:
            decide(st, rule, False, field.EPOCH_START, st[starts_row(st, b), i], pairs[2 * i + 1])
    for i in range(n):
        st[epochs_row(st, b), i] = pairs[2 * i]
        st[starts_row(st, b), i] = pairs[2 * i + 1]
    st[REPLICAS + b, CACHED] = n


def log_start_moved(st: State, b: int, log_start: int, hw: int) -> None:
    """UnifiedLog#maybeIncrementLogStartOffset: up, and never above the high watermark."""
    alive(st, b)
    if log_start == UNKNOWN:
        st[REPLICAS + b, LOG_START] = UNKNOWN
        st[REPLICAS + b, CACHED] = UNKNOWN
        return
    old = st[REPLICAS + b, LOG_START]
    if old != UNKNOWN:
        decide(st, LOG_01, log_start >= old, field.LOG_START, old, log_start)
    starts_at(st, b, log_start)
    cache_raise(st, b, log_start)
    if st[REPLICAS + b, HW] != UNKNOWN:
        lifted = high_watermark_after_log_start(st[REPLICAS + b, HW], log_start)
        as_expected(st, HW_10, field.HW, lifted, hw if hw != UNKNOWN else st[REPLICAS + b, HW])
    if hw != UNKNOWN:
        set_hw(st, b, hw)
    within(st, b)


def epoch_cache_entry(st: State, b: int, epoch: int, epoch_start: int) -> None:
    """EPOCH-02: an entry has a higher epoch than the last, and does not start below it."""
    alive(st, b)
    n = st[REPLICAS + b, CACHED]
    latest = cache_latest(st, b)
    if n != UNKNOWN and has_entry(st, b, epoch, epoch_start):
        decide(st, EPOCH_02, True, field.LEADER_EPOCH, epoch, epoch)  # made by an append that is reported already
        return
    if latest == UNKNOWN or epoch == UNKNOWN or epoch_start == UNKNOWN:
        undecided(st, EPOCH_02, 1 << field.EPOCHS)
    elif n > 0 and epoch == latest:
        as_expected(st, EPOCH_02, field.EPOCH_START, st[starts_row(st, b), n - 1], epoch_start)
    elif n > 0 and epoch_start < st[starts_row(st, b), n - 1]:
        decide(st, EPOCH_02, False, field.EPOCH_START, st[starts_row(st, b), n - 1], epoch_start)
    else:
        decide(st, EPOCH_02, epoch > latest, field.LEADER_EPOCH, latest + 1, epoch)
    cache_assign(st, b, epoch, epoch_start)


def checkpointed(st: State, b: int, hw: int) -> None:
    """HW-10: what goes to disk is a high watermark that the replica had."""
    alive(st, b)
    highest = st[REPLICAS + b, HIGHEST_HW]
    if UNKNOWN in (hw, highest):
        undecided(st, HW_10, 1 << field.HW)
    else:
        decide(st, HW_10, hw <= highest, field.HW, highest, hw)

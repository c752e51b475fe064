"""Events of a broker's life: it is loaded, it stops, its log start moves, an entry joins its cache.

Rules of this file

1. A broker that starts knows no metadata: leader epoch UNDEFINED, no role, nothing recorded, nothing sent.
2. A disk that is lost is no broken rule. The log is empty from there on, and only what becomes of that is judged: who is
   elected with it, and what of the records that were acknowledged is left.
"""

from tidegauge.conformance.kernel import fields as field
from tidegauge.conformance.kernel import state as s
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
from tidegauge.conformance.kernel.rule_ids import RULE
from tidegauge.conformance.kernel.tally import as_expected, decide, undecided
from tidegauge.impl.rules import high_watermark_after_log_start
from tidegauge.traces.columns import UNKNOWN


def idle(st: s.State, b: int) -> None:
    """The process of b is gone: no role, nothing recorded. What it sent may still arrive.

    A response may have left without a line in the leader's log, so what a request to b came to is unknown. If it is handled
    after all, it says what was sent.
    """
    n = st[s.OPTION, s.BROKERS]
    st[s.REPLICAS + b, s.ROLE] = s.NO_ROLE
    st[s.REPLICAS + b, s.EPOCH] = -1
    st[s.REPLICAS + b, s.LEADER] = -1
    st[s.REPLICAS + b, s.EPOCH_START] = -1
    st[s.REPLICAS + b, s.ISR] = 0
    st[s.REPLICAS + b, s.PENDING] = 0
    st[s.REPLICAS + b, s.MORE_ROUNDS] = 0
    st[s.REPLICAS + b, s.HW_MOVED] = -1
    st[s.REPLICAS + b, s.TERM] = -1
    st[s.REPLICAS + b, s.PARTITION_EPOCH] = UNKNOWN
    forget_recorded(st, b, -1)
    for other in range(n):
        overtake(st, s.pair(st, b, other))
        st[s.pair(st, b, other), s.KIND] = s.NOTHING
        asked = s.pair(st, other, b)
        if st[asked, s.KIND] in (s.REQUEST, s.EPOCH_REQUEST):
            overtake(st, asked)
            st[asked, s.KIND] = s.ADRIFT
        # a purgatory dies with its broker, but the response may have left before without a line
        elif st[asked, s.KIND] == s.HELD:
            st[asked, s.KIND] = UNKNOWN


def stop(st: s.State, b: int, orderly: int) -> None:
    """Stop and Crash."""
    if st[s.REPLICAS + b, s.UP] != UNKNOWN:
        decide(st, RULE.LIFE_01, st[s.REPLICAS + b, s.UP] == 1, field.RUNNING, 1, st[s.REPLICAS + b, s.UP])
    idle(st, b)
    st[s.REPLICAS + b, s.UP] = 0
    st[s.REPLICAS + b, s.STOPPED] = orderly


def empty(st: s.State, b: int) -> None:
    """Nothing is left of the log of b, nor of its checkpoints."""
    cache_truncate(st, b, 0)
    starts_at(st, b, 0)
    set_leo(st, b, 0)
    set_hw(st, b, 0)
    st[s.REPLICAS + b, s.CACHED] = 0
    st[s.REPLICAS + b, s.HIGHEST_HW] = 0
    st[s.REPLICAS + b, s.STOPPED] = 0
    st[s.REPLICAS + b, s.LOST] = 1


def delete_replica(st: s.State, b: int) -> None:
    """The partition is assigned to b no more: its log goes with it. ReplicaManager#stopPartitions."""
    idle(st, b)
    empty(st, b)
    st[s.REPLICAS + b, s.UP] = 0


def start(st: s.State, b: int, clean: int, leo: int, hw: int, log_start: int, reported: bool, pairs: s.Ints) -> None:
    """Start: LOAD-01 against what the broker had, LOAD-02 for its epoch cache."""
    if st[s.REPLICAS + b, s.UP] != UNKNOWN:
        decide(st, RULE.LIFE_01, st[s.REPLICAS + b, s.UP] == 0, field.RUNNING, 0, st[s.REPLICAS + b, s.UP])
    before, highest = st[s.REPLICAS + b, s.LEO], st[s.REPLICAS + b, s.HIGHEST_HW]
    had, stopped = st[s.REPLICAS + b, s.HW], st[s.REPLICAS + b, s.STOPPED]
    if before != UNKNOWN and leo != UNKNOWN:
        decide(st, RULE.LOAD_01, leo == before if clean == 1 else leo <= before, field.LEO, before, leo)
    # an orderly stop writes the checkpoint (ReplicaManager#shutdown), so nothing older can be read
    if clean == 1 and stopped == 1 and UNKNOWN not in (had, hw):
        decide(st, RULE.LOAD_01, hw <= had, field.HW, had, hw)
    if highest != UNKNOWN and hw != UNKNOWN:
        decide(st, RULE.LOAD_01, hw <= highest, field.HW, highest, hw)
    idle(st, b)
    begins(st, b)
    if clean == 0:
        st[s.REPLICAS + b, s.LOST] = 1
    st[s.REPLICAS + b, s.UP] = 1
    st[s.REPLICAS + b, s.FRESH] = 1
    st[s.REPLICAS + b, s.STOPPED] = 0
    # a checkpoint above the log's end is loaded as that end, and stays on disk as it is
    if highest == UNKNOWN and (clean == 1 or (hw != UNKNOWN and hw < leo)):
        st[s.REPLICAS + b, s.HIGHEST_HW] = hw
    if leo != UNKNOWN:
        cache_truncate(st, b, leo)
    elif clean != 1:
        st[s.REPLICAS + b, s.CACHED] = UNKNOWN
    # LogLoader#recoverLog rebuilds the cache from the batches only after an unclean stop
    if clean != 1:
        reload_fork(st, b, leo)
    if log_start != UNKNOWN:
        starts_at(st, b, log_start)
        cache_raise(st, b, log_start)
    elif st[s.REPLICAS + b, s.LOG_START] != 0:
        starts_at(st, b, UNKNOWN)
        st[s.REPLICAS + b, s.CACHED] = UNKNOWN
    set_leo(st, b, leo)
    set_hw(st, b, hw)
    if reported:
        compare_cache(st, b, RULE.LOAD_02, pairs)
    elif leo == UNKNOWN:
        st[s.REPLICAS + b, s.CACHED] = UNKNOWN
    within(st, b)
    cache_in_order(st, b)


def begins(st: s.State, b: int) -> None:
    """Whether this is the first process of b: then nothing that an earlier one sent is under way."""
    first = UNKNOWN == st[s.REPLICAS + b, s.UP] == st[s.REPLICAS + b, s.RESTARTED]
    st[s.REPLICAS + b, s.RESTARTED] = 0 if first else 1
    if first:
        for other in range(st[s.OPTION, s.BROKERS]):
            st[s.pair(st, b, other), s.OLD_KIND] = s.NOTHING


def compare_cache(st: s.State, b: int, rule: int, pairs: s.Ints) -> None:
    """Judge a cache that was told whole against the one the events made, and go on from what was told."""
    n = len(pairs) // 2
    if n > st[s.WHOLE, s.ROOM]:
        st[s.WHOLE, s.OVERFLOW] |= s.LOGS_FULL
        return
    had = st[s.REPLICAS + b, s.CACHED]
    if had != UNKNOWN:
        i = 0
        while (
            i < min(had, n) and st[s.epochs_row(st, b), i] == pairs[2 * i] and st[s.starts_row(st, b), i] == pairs[2 * i + 1]
        ):
            i += 1
        if i == min(had, n):
            decide(st, rule, had == n, field.ENTRIES, had, n)
        elif st[s.epochs_row(st, b), i] != pairs[2 * i]:
            decide(st, rule, False, field.LEADER_EPOCH, st[s.epochs_row(st, b), i], pairs[2 * i])
        else:
            decide(st, rule, False, field.EPOCH_START, st[s.starts_row(st, b), i], pairs[2 * i + 1])
    for i in range(n):
        st[s.epochs_row(st, b), i] = pairs[2 * i]
        st[s.starts_row(st, b), i] = pairs[2 * i + 1]
    st[s.REPLICAS + b, s.CACHED] = n


def log_start_moved(st: s.State, b: int, log_start: int, hw: int) -> None:
    """UnifiedLog#maybeIncrementLogStartOffset: up, and never above the high watermark."""
    alive(st, b)
    if log_start == UNKNOWN:
        st[s.REPLICAS + b, s.LOG_START] = UNKNOWN
        st[s.REPLICAS + b, s.CACHED] = UNKNOWN
        return
    old = st[s.REPLICAS + b, s.LOG_START]
    if old != UNKNOWN:
        decide(st, RULE.LOG_01, log_start >= old, field.LOG_START, old, log_start)
    starts_at(st, b, log_start)
    cache_raise(st, b, log_start)
    if st[s.REPLICAS + b, s.HW] != UNKNOWN:
        lifted = high_watermark_after_log_start(st[s.REPLICAS + b, s.HW], log_start)
        as_expected(st, RULE.HW_10, field.HW, lifted, hw if hw != UNKNOWN else st[s.REPLICAS + b, s.HW])
    if hw != UNKNOWN:
        set_hw(st, b, hw)
    within(st, b)


def epoch_cache_entry(st: s.State, b: int, epoch: int, epoch_start: int) -> None:
    """EPOCH-02: an entry has a higher epoch than the last, and does not start below it."""
    alive(st, b)
    n = st[s.REPLICAS + b, s.CACHED]
    latest = cache_latest(st, b)
    if n != UNKNOWN and has_entry(st, b, epoch, epoch_start):
        decide(st, RULE.EPOCH_02, True, field.LEADER_EPOCH, epoch, epoch)  # made by an append that is reported already
        return
    if latest == UNKNOWN or epoch == UNKNOWN or epoch_start == UNKNOWN:
        undecided(st, RULE.EPOCH_02, 1 << field.EPOCHS)
    elif n > 0 and epoch == latest:
        as_expected(st, RULE.EPOCH_02, field.EPOCH_START, st[s.starts_row(st, b), n - 1], epoch_start)
    elif n > 0 and epoch_start < st[s.starts_row(st, b), n - 1]:
        decide(st, RULE.EPOCH_02, False, field.EPOCH_START, st[s.starts_row(st, b), n - 1], epoch_start)
    else:
        decide(st, RULE.EPOCH_02, epoch > latest, field.LEADER_EPOCH, latest + 1, epoch)
    cache_assign(st, b, epoch, epoch_start)


def checkpointed(st: s.State, b: int, hw: int) -> None:
    """HW-10: what goes to disk is a high watermark that the replica had."""
    alive(st, b)
    highest = st[s.REPLICAS + b, s.HIGHEST_HW]
    if UNKNOWN in (hw, highest):
        undecided(st, RULE.HW_10, 1 << field.HW)
    else:
        decide(st, RULE.HW_10, hw <= highest, field.HW, highest, hw)

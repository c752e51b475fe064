"""Events of a broker's lifecycle: it is loaded, it stops, its log start moves, an entry is added to its epoch cache.

Rules of this file

1. A broker that starts knows no metadata: leader epoch UNDEFINED, no role, nothing recorded, nothing sent.
2. A lost disk breaks no rule. The log is empty afterwards, and the consequences are judged: the replica may not be elected
   as if it had its records (CTRL-07), and acknowledged records must still be on the others (DATA-03).

Rules of snapshots of a log (Observe): it is as the events before have made it

1. While a broker runs its high watermark on disk may be an earlier one; after an orderly stop it is the last one.
2. A member of the ISR has every acknowledged record, as far as every election is known to be clean.

`st` is the judge's table (conformance.judge.state): row REPLICAS + b is the replica of broker b, which reports the event.
Where an event reports an epoch cache, `reported` is True and `pairs` are its entries: epoch and start offset, in turn.
UNKNOWN: no event shows the value; it is below every number. -1 (UNDEFINED): there is none. `decide(st, rule, ok, field,
expected, actual)` counts a check as held or failed, `undecided(st, rule, missing)` one that lacks the fields in the bit mask
`missing`.
"""

from tidegauge.conformance.judge import fields as field
from tidegauge.conformance.judge import state as s
from tidegauge.conformance.judge.elections import elections_reported
from tidegauge.conformance.judge.events.roles import forget_log_ends
from tidegauge.conformance.judge.fields import RULE
from tidegauge.conformance.judge.in_flight import overtake
from tidegauge.conformance.judge.lineage import (
    agree_until,
    cache_assign,
    cache_latest,
    cache_raise,
    cache_truncate,
    has_entry,
    reload_fork,
    same_or_unknown,
    set_log_start,
)
from tidegauge.conformance.judge.log_checks import alive, cache_in_order, hw_within_log, set_hw, set_leo
from tidegauge.conformance.judge.tally import as_expected, counted_again, decide, undecided
from tidegauge.conformance.judge.terms import close_term
from tidegauge.impl.rules import high_watermark_after_log_start
from tidegauge.traces.columns import UNKNOWN


def process_gone(st: s.State, b: int) -> None:
    """Reset what the process of b had: its role, what it recorded, its connections. What it sent may still arrive.

    Of a replica that is deleted while b runs on the same is gone.
    """
    n = st[s.OPTION, s.BROKERS]
    close_term(st, b)
    st[s.REPLICAS + b, s.ROLE] = s.NO_ROLE
    st[s.REPLICAS + b, s.EPOCH] = -1
    st[s.REPLICAS + b, s.LEADER] = -1
    st[s.REPLICAS + b, s.EPOCH_START] = -1
    st[s.REPLICAS + b, s.ISR] = 0
    st[s.REPLICAS + b, s.PENDING] = 0
    st[s.REPLICAS + b, s.MORE_ROUNDS] = 0
    st[s.REPLICAS + b, s.HW_MOVED] = -1
    # Its next process begins without metadata, so the first that it reads can be older than nothing: EPOCH-06 is open there.
    st[s.REPLICAS + b, s.PARTITION_EPOCH] = UNKNOWN
    forget_log_ends(st, b, -1)
    for other in range(n):
        # A request that b sent may be handled after its death; nobody takes the response over.
        overtake(st, s.pair(st, b, other))
        st[s.pair(st, b, other), s.KIND] = s.NOTHING
        to_this_broker = s.pair(st, other, b)
        # A request to b may be lost, may have been answered without a line in b's log, or waits in a socket until b is back.
        if st[to_this_broker, s.KIND] in (s.REQUEST, s.EPOCH_REQUEST):
            overtake(st, to_this_broker)
            st[to_this_broker, s.KIND] = s.ORPHANED
        # A purgatory dies with its broker, but the response may have left before, without a line.
        elif st[to_this_broker, s.KIND] == s.DELAYED:
            st[to_this_broker, s.KIND] = UNKNOWN


def stop(st: s.State, b: int, orderly: int) -> None:
    """Judge Stop (`orderly` 1) and Crash (0): a broker that stops was running (LIFE-01)."""
    if st[s.REPLICAS + b, s.UP] != UNKNOWN:
        decide(st, RULE.LIFE_01, st[s.REPLICAS + b, s.UP] == 1, field.RUNNING, 1, st[s.REPLICAS + b, s.UP])
    process_gone(st, b)
    st[s.REPLICAS + b, s.UP] = 0
    st[s.REPLICAS + b, s.STOPPED] = orderly


def lose_disk(st: s.State, b: int) -> None:
    """Take over LoseDisk: the log of b is empty, and so are its checkpoints; no rule is broken by that (rule 2)."""
    cache_truncate(st, b, 0)
    set_log_start(st, b, 0)
    set_leo(st, b, 0)
    set_hw(st, b, 0)
    st[s.REPLICAS + b, s.CACHED] = 0
    st[s.REPLICAS + b, s.HIGHEST_HW] = 0
    st[s.REPLICAS + b, s.STOPPED] = 0
    st[s.REPLICAS + b, s.LOST] = 1
    # The last registration has the highest leader epoch that anybody has reported, maybe not b itself.
    for i in range(st[s.PARTITION, s.REGISTRATIONS]):
        st[s.REPLICAS + b, s.LOST_UPTO] = st[s.registration(st, i), s.R_EPOCH]


def delete_replica(st: s.State, b: int) -> None:
    """Take over DeleteReplica: broker b runs on, is no replica any more and has no log. It breaks no rule.

    ReplicaManager#stopPartitions.
    """
    # For this partition it is as if the process had ended and come back without its disk: no role, nothing recorded, and it
    # is open what becomes of requests in flight.
    process_gone(st, b)
    lose_disk(st, b)
    st[s.REPLICAS + b, s.UP] = s.ABSENT


def start(st: s.State, b: int, clean: int, leo: int, hw: int, log_start: int, reported: bool, pairs: s.Ints) -> None:
    """Judge Start: LOAD-01 against the log that the broker had, LOAD-02 for its epoch cache.

    `clean` is 1 where the process before it shut down cleanly. Log end, high watermark and log start are as they were
    loaded.
    """
    if st[s.REPLICAS + b, s.UP] != UNKNOWN:
        decide(st, RULE.LIFE_01, st[s.REPLICAS + b, s.UP] != 1, field.RUNNING, 0, st[s.REPLICAS + b, s.UP])
    before, highest = st[s.REPLICAS + b, s.LEO], st[s.REPLICAS + b, s.HIGHEST_HW]
    hw_before, stopped = st[s.REPLICAS + b, s.HW], st[s.REPLICAS + b, s.STOPPED]
    # Records that were not flushed may be lost in a crash, but none can be added (LogLoader#load).
    if before != UNKNOWN and leo != UNKNOWN:
        decide(st, RULE.LOAD_01, leo == before if clean == 1 else leo <= before, field.LEO, before, leo)
    # An orderly stop writes the checkpoint (ReplicaManager#shutdown), so nothing older can be read.
    if clean == 1 and stopped == 1 and UNKNOWN not in (hw_before, hw):
        decide(st, RULE.LOAD_01, hw <= hw_before, field.HW, hw_before, hw)
    if highest != UNKNOWN and hw != UNKNOWN:
        decide(st, RULE.LOAD_01, hw <= highest, field.HW, highest, hw)
    process_gone(st, b)
    begins(st, b)
    # After an unclean stop records of which b was in the ISR may be missing: it must not be elected as eligible (KIP-966).
    if clean == 0:
        st[s.REPLICAS + b, s.LOST] = 1
    st[s.REPLICAS + b, s.UP] = 1
    st[s.REPLICAS + b, s.FRESH] = 1
    st[s.REPLICAS + b, s.STOPPED] = 0
    # A checkpoint above the end of the log is loaded as that end and stays on disk, so the HW alone does not show it.
    if highest == UNKNOWN and (clean == 1 or (hw != UNKNOWN and hw < leo)):
        st[s.REPLICAS + b, s.HIGHEST_HW] = hw
    if leo != UNKNOWN:
        cache_truncate(st, b, leo)
    elif clean != 1:
        st[s.REPLICAS + b, s.CACHED] = UNKNOWN
    # LogLoader#recoverLog rebuilds the cache from the batches only after an unclean stop.
    if clean != 1:
        reload_fork(st, b, leo)
    if log_start != UNKNOWN:
        set_log_start(st, b, log_start)
        cache_raise(st, b, log_start)
    # A log start at 0 has not moved without an event.
    elif st[s.REPLICAS + b, s.LOG_START] != 0:
        set_log_start(st, b, UNKNOWN)
        st[s.REPLICAS + b, s.CACHED] = UNKNOWN
    set_leo(st, b, leo)
    set_hw(st, b, hw)
    if reported:
        compare_cache(st, b, RULE.LOAD_02, pairs)
    elif leo == UNKNOWN:
        st[s.REPLICAS + b, s.CACHED] = UNKNOWN
    hw_within_log(st, b)
    cache_in_order(st, b)


def begins(st: s.State, b: int) -> None:
    """Note whether this is the first process of b: then nothing that an earlier one sent is in flight."""
    # Nothing was known of b before: it neither ran nor stopped in this trace.
    first = UNKNOWN == st[s.REPLICAS + b, s.UP] == st[s.REPLICAS + b, s.RESTARTED]
    st[s.REPLICAS + b, s.RESTARTED] = 0 if first else 1
    if first:
        for other in range(st[s.OPTION, s.BROKERS]):
            st[s.pair(st, b, other), s.OLD_KIND] = s.NOTHING


def compare_cache(st: s.State, b: int, rule: int, pairs: s.Ints) -> None:
    """Check by `rule` a cache that is reported whole against the one that the events made; go on with the reported one."""
    n = len(pairs) // 2
    # The caller judges again with a larger table.
    if n > st[s.PARTITION, s.CACHE_ROOM]:
        st[s.PARTITION, s.OVERFLOW] |= s.LOGS_FULL
        return
    entries_before = st[s.REPLICAS + b, s.CACHED]
    if entries_before != UNKNOWN:
        i = 0
        while (
            i < min(entries_before, n)
            and st[s.epochs_row(st, b), i] == pairs[2 * i]
            and st[s.starts_row(st, b), i] == pairs[2 * i + 1]
        ):
            i += 1
        # The first difference is reported: a missing or additional entry, else its epoch, else its start.
        if i == min(entries_before, n):
            decide(st, rule, entries_before == n, field.ENTRIES, entries_before, n)
        elif st[s.epochs_row(st, b), i] != pairs[2 * i]:
            decide(st, rule, False, field.LEADER_EPOCH, st[s.epochs_row(st, b), i], pairs[2 * i])
        else:
            decide(st, rule, False, field.EPOCH_START, st[s.starts_row(st, b), i], pairs[2 * i + 1])
    for i in range(n):
        st[s.epochs_row(st, b), i] = pairs[2 * i]
        st[s.starts_row(st, b), i] = pairs[2 * i + 1]
    st[s.REPLICAS + b, s.CACHED] = n


def log_start_moved(st: s.State, b: int, log_start: int, hw: int) -> None:
    """Judge LogStartMoved: a log start moves only up (LOG-01). UnifiedLog#maybeIncrementLogStartOffset.

    `hw` is the high watermark that the event reports afterwards.
    """
    alive(st, b)
    if log_start == UNKNOWN:
        st[s.REPLICAS + b, s.LOG_START] = UNKNOWN
        st[s.REPLICAS + b, s.CACHED] = UNKNOWN
        return
    old = st[s.REPLICAS + b, s.LOG_START]
    if old != UNKNOWN:
        decide(st, RULE.LOG_01, log_start >= old, field.LOG_START, old, log_start)
    set_log_start(st, b, log_start)
    cache_raise(st, b, log_start)
    if st[s.REPLICAS + b, s.HW] != UNKNOWN:
        # UnifiedLog#updateLogStartOffset lifts a high watermark that the log start has passed.
        lifted = high_watermark_after_log_start(st[s.REPLICAS + b, s.HW], log_start)
        as_expected(st, RULE.HW_10, field.HW, lifted, hw if hw != UNKNOWN else st[s.REPLICAS + b, s.HW])
    if hw != UNKNOWN:
        set_hw(st, b, hw)
    hw_within_log(st, b)


def epoch_cache_entry(st: s.State, b: int, epoch: int, epoch_start: int) -> None:
    """Judge EpochCacheEntry by EPOCH-02: an added entry has a higher epoch than the last, and does not start below it."""
    alive(st, b)
    n = st[s.REPLICAS + b, s.CACHED]
    latest = cache_latest(st, b)
    if n != UNKNOWN and has_entry(st, b, epoch, epoch_start):
        # Another thread may write the line: the append that added the entry is reported already.
        decide(st, RULE.EPOCH_02, True, field.LEADER_EPOCH, epoch, epoch)
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


def hw_checkpoint(st: s.State, b: int, hw: int) -> None:
    """Judge HwCheckpoint by HW-10: a checkpointed high watermark is at most the highest that the replica had."""
    alive(st, b)
    highest = st[s.REPLICAS + b, s.HIGHEST_HW]
    if UNKNOWN in (hw, highest):
        undecided(st, RULE.HW_10, 1 << field.HW)
    else:
        decide(st, RULE.HW_10, hw <= highest, field.HW, highest, hw)


# Snapshots of a log.


def observe(st: s.State, b: int, leo: int, hw: int, log_start: int, reported: bool, pairs: s.Ints) -> None:
    """Judge Observe, a snapshot of b's log on disk: it is the log that the events have made (LOG-02)."""
    if st[s.REPLICAS + b, s.LEO] != UNKNOWN and leo != UNKNOWN:
        as_expected(st, RULE.LOG_02, field.LEO, st[s.REPLICAS + b, s.LEO], leo)
    if st[s.REPLICAS + b, s.LOG_START] != UNKNOWN and log_start != UNKNOWN:
        as_expected(st, RULE.LOG_02, field.LOG_START, st[s.REPLICAS + b, s.LOG_START], log_start)
    # After an orderly stop the checkpoint is the last high watermark; at any other time it may be older.
    if hw != UNKNOWN and st[s.REPLICAS + b, s.STOPPED] == 1 and st[s.REPLICAS + b, s.HW] != UNKNOWN:
        as_expected(st, RULE.LOG_02, field.HW, st[s.REPLICAS + b, s.HW], hw)
    elif UNKNOWN not in (hw, st[s.REPLICAS + b, s.HIGHEST_HW]):
        decide(st, RULE.LOG_02, hw <= st[s.REPLICAS + b, s.HIGHEST_HW], field.HW, st[s.REPLICAS + b, s.HIGHEST_HW], hw)
    if leo != UNKNOWN:
        set_leo(st, b, leo)
    if log_start != UNKNOWN:
        set_log_start(st, b, log_start)
    # Of a broker that runs this is the checkpoint, not its high watermark.
    if hw != UNKNOWN and st[s.REPLICAS + b, s.HW] == UNKNOWN and st[s.REPLICAS + b, s.UP] != 1:
        set_hw(st, b, hw)
    if reported:
        # A leader whose cache lacks the epoch that it leads in breaks EPOCH-01, every other difference LOG-02.
        compare_cache(st, b, RULE.EPOCH_01 if lacks_own_epoch(st, b, pairs) else RULE.LOG_02, pairs)
        cache_in_order(st, b)
    if st[s.PARTITION, s.C_ISR] != UNKNOWN and st[s.PARTITION, s.C_ISR] >> b & 1 == 1:
        acked_records_present(st, b)


def lacks_own_epoch(st: s.State, b: int, pairs: s.Ints) -> bool:
    """Return whether a leader's reported cache (`pairs`) lacks the epoch that it leads in, which it had (KAFKA-7415)."""
    n, epoch = st[s.REPLICAS + b, s.CACHED], st[s.REPLICAS + b, s.EPOCH]
    if st[s.REPLICAS + b, s.ROLE] != s.LEADING or epoch == UNKNOWN or n == UNKNOWN or n == 0:
        return False
    return bool(st[s.epochs_row(st, b), n - 1] == epoch and (len(pairs) == 0 or pairs[-2] != epoch))


def acked_records_present(st: s.State, b: int) -> None:
    """Check DATA-03 on a snapshot of b, a member of the ISR: it has what every term has acknowledged."""
    row = s.TALLIES + RULE.DATA_03
    for t in range(st[s.PARTITION, s.TERMS]):
        holds_acked(st, b, t, st[s.term(st, t), s.T_ACKED])
        # Claims of removed terms are compared once and counted for each of them (conformance.judge.compaction).
        past = st[s.term(st, t), s.T_PAST_ACKS]
        if past > 0:
            held_before, failed_before, undecided_before = (
                st[row, s.HELD_COUNT],
                st[row, s.FAILED_COUNT],
                st[row, s.UNDECIDED_COUNT],
            )
            holds_acked(st, b, t, st[s.term(st, t), s.T_PAST_ACKED])
            counted_again(st, RULE.DATA_03, past - 1, held_before, failed_before, undecided_before)


def holds_acked(st: s.State, b: int, t: int, end: int) -> None:
    """Check DATA-03: replica b has the log of term number `t` up to `end`, which was acknowledged."""
    # Nothing was acknowledged, or an unclean election has given it up since.
    if end == 0 or st[s.term(st, t), s.T_EPOCH] < st[s.PARTITION, s.UNCLEAN]:
        return
    leo, cached = st[s.REPLICAS + b, s.LEO], st[s.REPLICAS + b, s.CACHED]
    if not elections_reported(st, st[s.term(st, t), s.T_EPOCH], st[s.PARTITION, s.C_EPOCH]):
        undecided(st, RULE.DATA_03, 1 << field.CLEAN)
    elif leo != UNKNOWN and leo < end:
        decide(st, RULE.DATA_03, False, field.LEO, end, leo)
    elif leo == UNKNOWN or cached == UNKNOWN or st[s.term(st, t), s.T_CACHED] == UNKNOWN:
        undecided(st, RULE.DATA_03, 1 << field.LEO | 1 << field.EPOCHS)
    else:
        # Log n + t is the one that the leader of term t was elected with.
        n = st[s.OPTION, s.BROKERS]
        upto = agree_until(st, n + t, st[s.term(st, t), s.T_CACHED], b, cached, int(st[s.PARTITION, s.DELETED_UPTO]), end)
        same_or_unknown(st, RULE.DATA_03, end, upto)


# The end of a trace: checks that the order of concurrent events could disturb earlier, and the copied last state.


def logs_agree(st: s.State) -> None:
    """Check DATA-02 at the end of a trace: every two logs have the same records below both high watermarks."""
    n = st[s.OPTION, s.BROKERS]
    # After an unclean election only members of the ISR are compared: a replica that has not fetched since still has the high
    # watermark, and records, of the time before.
    for a in range(n):
        for b in range(a + 1, n):
            both = 1 << a | 1 << b
            unclean = st[s.PARTITION, s.UNCLEAN] >= 0
            if not unclean or (st[s.PARTITION, s.C_ISR] != UNKNOWN and st[s.PARTITION, s.C_ISR] & both == both):
                pair_agrees(st, a, b)


def pair_agrees(st: s.State, a: int, b: int) -> None:
    """Check DATA-02 for replicas a and b: their logs have the same records below both high watermarks."""
    hw_a, hw_b = st[s.REPLICAS + a, s.HW], st[s.REPLICAS + b, s.HW]
    if (hw_a == UNKNOWN and st[s.REPLICAS + a, s.LEO] == UNKNOWN) or (
        hw_b == UNKNOWN and st[s.REPLICAS + b, s.LEO] == UNKNOWN
    ):  # no event of this replica: not even an undecided check
        return
    if UNKNOWN in (hw_a, hw_b):
        undecided(st, RULE.DATA_02, 1 << field.HW)
        return
    # Only what both call committed must be the same.
    end = min(hw_a, hw_b)
    start = int(st[s.PARTITION, s.DELETED_UPTO])
    if end <= start:
        return
    if UNKNOWN in (st[s.REPLICAS + a, s.CACHED], st[s.REPLICAS + b, s.CACHED]):
        undecided(st, RULE.DATA_02, 1 << field.EPOCHS)
        return
    upto = agree_until(st, a, st[s.REPLICAS + a, s.CACHED], b, st[s.REPLICAS + b, s.CACHED], start, end)
    # An unclean election that the trace does not show may have made the logs differ.
    unseen = st[s.PARTITION, s.C_EPOCH] == UNKNOWN or st[s.PARTITION, s.ELECTIONS_UNOBSERVED] == 1
    if upto < end and unseen and st[s.OPTION, s.ELECTIONS_CLEAN] == 0:
        undecided(st, RULE.DATA_02, 1 << field.CLEAN)
    else:
        same_or_unknown(st, RULE.DATA_02, end, upto)


def copy_final_state(st: s.State, t: int, final: s.Final, caches: s.Caches) -> None:
    """Copy the state of the replicas at the end of trace number `t`.

    `final[t, b]` gets the columns FINAL of replica b, and `caches[t, b, k]` epoch and start of entry k of its cache.
    """
    for b in range(st[s.OPTION, s.BROKERS]):
        for k in range(len(s.FINAL)):
            final[t, b, k] = st[s.REPLICAS + b, s.FINAL[k]]
        # The last column of FINAL is the number of entries in the cache.
        for k in range(final[t, b, len(s.FINAL) - 1]):
            caches[t, b, k, 0] = st[s.epochs_row(st, b), k]
            caches[t, b, k, 1] = st[s.starts_row(st, b), k]

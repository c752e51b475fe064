"""UnifiedLog as a value: batches, log start, high watermark, epoch cache; and how LogLoader loads it after a restart.

A function takes a `Log` and returns the changed one, with a second result where Kafka's method has one. `setup` has the
switches of a release and the rules, which make every decision. `end` is the log end offset (LEO), exclusive; `start` is the
log start. A segment is named by its base offset. The *position* of a high watermark is the segment it lies in
(`hw_segment`, Kafka's LogOffsetMetadata): it is looked up when it is needed, and UNDEFINED while only the offset is known.
"""

from itertools import pairwise
from typing import NamedTuple

from tidegauge.impl.errors import (
    CorruptRecordError,
    IllegalArgumentError,
    OffsetOutOfRangeError,
    OffsetsOutOfOrderError,
    UnexpectedAppendOffsetError,
)
from tidegauge.impl.messages import Batch, Producer, Transaction
from tidegauge.impl.profiles import Setup
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.storage import epoch_cache
from tidegauge.impl.storage.epoch_cache import EpochCache

# The sizes of batches on disk and on the wire, all records alike: sizes decide what fits, contents decide nothing here.


BATCH_OVERHEAD = 61
"""Bytes of an empty record batch v2 (DefaultRecordBatch.RECORD_BATCH_OVERHEAD)."""

RECORD_BYTES = 10
"""Bytes of a record, unless a test or a broker has another size."""


def bytes_of(batches: tuple[Batch, ...], record_bytes: int) -> int:
    """Return the bytes that batches take on disk, where every record takes `record_bytes`."""
    return sum(BATCH_OVERHEAD + record_bytes * (batch.last - batch.base + 1) for batch in batches)


# UnifiedLog as a value: batches, log start, high watermark, epoch cache.
#
# Rules of this part
#
# 1. A batch is (base, last, epoch), both offsets inclusive, and the transaction it belongs to, which only readers of
#    committed transactions look at; record contents do not matter to the protocol. Batches are the unit of appends, reads
#    and truncates.
# 2. `end` (LEO) is kept, not derived: a truncation inside a batch drops the whole batch and still leaves the log end at the
#    truncation.
# 3. Every decision comes from `setup.rules`. Functions return the new log, and a result where Kafka's method has one.
# 4. Source: org.apache.kafka.storage.internals.log.UnifiedLog, LocalLog, LogLoader.


class Log(NamedTuple):
    """One replica's log. `segments` are the base offsets of its segments; the first is where local data begins.

    `hw_segment` is the segment the high watermark was last found in, UNDEFINED while only its offset is known.
    """

    start: int = 0
    end: int = 0
    hw: int = 0
    batches: tuple[Batch, ...] = ()
    cache: EpochCache = EpochCache()
    segments: tuple[int, ...] = (0,)
    recovery_point: int = 0
    hw_segment: int = UNDEFINED


class AppendInfo(NamedTuple):
    """LogAppendInfo: offsets of the first and last record appended, epoch of the last batch; nothing appended: -1."""

    first: int = UNDEFINED
    last: int = UNDEFINED
    last_epoch: int = UNDEFINED
    batches: int = 0


def latest_epoch(setup: Setup, log: Log) -> int:
    """Return the last epoch in the cache, UNDEFINED for none. UnifiedLog#latestEpoch."""
    return epoch_cache.latest_epoch(setup, log.cache)


def end_offset_for_epoch(setup: Setup, log: Log, requested: int) -> tuple[int, int]:
    """Return (epoch, end offset), both UNDEFINED when there is no answer. UnifiedLog#endOffsetForEpoch."""
    return epoch_cache.end_offset_for(setup, log.cache, log.end, requested)


# ---------------------------------------------------------------------------------------------------------------------
# Appends


def _append(setup: Setup, log: Log, batches: tuple[Batch, ...]) -> Log:
    """Append batches to the log, and their epochs to its cache. UnifiedLog#append."""
    cache = log.cache
    for batch in batches:
        try:
            cache = epoch_cache.assign(setup, cache, batch.epoch, batch.base)
        except IllegalArgumentError as refused:
            # Kafka tells the cache of each batch before it writes any, so the entries of the earlier ones stay.
            raise IllegalArgumentError(str(refused), left_behind=log._replace(cache=cache)) from refused
    return log._replace(cache=cache, batches=log.batches + batches, end=batches[-1].last + 1)


def assign_epoch_start_offset(setup: Setup, log: Log, epoch: int, start: int) -> Log:
    """Record in the cache that `epoch` starts at offset `start`. UnifiedLog#assignEpochStartOffset."""
    return log._replace(cache=epoch_cache.assign(setup, log.cache, epoch, start))


def append_as_leader(
    setup: Setup,
    log: Log,
    records: int,
    epoch: int,
    transaction: Transaction | None = None,
    producer: Producer | None = None,
) -> tuple[Log, AppendInfo]:
    """Append one batch of `records` records at the end, stamped with `epoch`. UnifiedLog#appendAsLeader."""
    batch = Batch(log.end, log.end + records - 1, epoch, transaction, producer)
    return _append(setup, log, (batch,)), AppendInfo(batch.base, batch.last, epoch, 1)


def without_later_epochs(setup: Setup, batches: tuple[Batch, ...], leader_epoch: int) -> tuple[Batch, ...]:
    """Return the batches before the first whose epoch is later than `leader_epoch`, that of the fetch (KAFKA-18723).

    UnifiedLog#analyzeAndValidateRecords. A release without that change takes all.
    """
    if not setup.profile.batch_epoch_filter:
        return batches
    return batches[: setup.rules.batches_accepted([b.epoch for b in batches], leader_epoch)]


def append_as_follower(
    setup: Setup, log: Log, batches: tuple[Batch, ...], leader_epoch: int, *, last_is_corrupt: bool = False
) -> tuple[Log, AppendInfo]:
    """Append batches that were fetched from the leader in `leader_epoch`. UnifiedLog#appendAsFollower.

    Only the last offsets must increase, and a gap above the log end is accepted: compaction leaves such batches.
    `last_is_corrupt`: the checksum of the last batch does not match. Batches of a later epoch than `leader_epoch` are left
    out. Raises CorruptRecordError, OffsetsOutOfOrderError or UnexpectedAppendOffsetError.
    """
    received = batches
    batches = without_later_epochs(setup, batches, leader_epoch)
    if not batches:
        return log, AppendInfo()
    # Validation stops at the first batch of a later epoch, so the last batch is read only if none was left out.
    if last_is_corrupt and batches == received:
        raise CorruptRecordError(f"batch at {batches[-1].base}: expected a matching checksum; seen another")
    for previous, batch in pairwise(batches):
        if batch.last <= previous.last:
            raise OffsetsOutOfOrderError(f"last offsets: expected increasing; seen {previous.last} then {batch.last}")
    first = batches[0].base
    if first < log.end:
        raise UnexpectedAppendOffsetError(f"first offset of an append: expected >= {log.end}; seen {first}")
    return _append(setup, log, batches), AppendInfo(first, batches[-1].last, batches[-1].epoch, len(batches))


# ---------------------------------------------------------------------------------------------------------------------
# Reads


def read(log: Log, offset: int, bound: int, max_records: int) -> tuple[Batch, ...]:
    """Read whole batches of one segment: from the one that contains `offset`, none that starts at or above `bound`.

    UnifiedLog#read. `bound` is the end of what the reader may see. The read ends `max_records` above `offset`, but the first
    batch always comes back, however large (`minOneMessage`). Raises OffsetOutOfRangeError.
    """
    lowest = max(log.start, log.segments[0])
    if offset < lowest or offset > log.end:
        raise OffsetOutOfRangeError(f"fetch offset: expected in [{lowest}, {log.end}]; seen {offset}")
    readable = [batch for batch in log.batches if batch.last >= offset and batch.base < bound]
    if not readable or offset >= bound:
        return ()
    # A read ends with its segment: a fetch response is a slice of one file.
    later_segments = [base for base in log.segments if base > readable[0].base]
    if later_segments:
        readable = [batch for batch in readable if batch.base < later_segments[0]]
    fitting = [batch for batch in readable if batch.last < offset + max_records]
    return tuple(fitting or readable[:1])


# ---------------------------------------------------------------------------------------------------------------------
# Truncation


def truncate_to(setup: Setup, log: Log, offset: int) -> tuple[Log, bool]:
    """Truncate everything at and above `offset`; also return whether anything was truncated. UnifiedLog#truncateTo."""
    if offset < 0:
        raise IllegalArgumentError(f"truncation offset: expected >= 0; seen {offset}")
    # KAFKA-10706: else an epoch without records stays in the cache, and the follower offers it to the leader for ever.
    if offset >= log.end and not setup.profile.truncation_clears_cache:
        return log, False
    if offset >= log.end:
        return log._replace(cache=epoch_cache.truncate_from_end(setup, log.cache, log.end)), False
    # Everything local is above the target: Kafka starts anew there rather than leave an empty first segment.
    if offset < log.segments[0]:
        return truncate_fully_and_start_at(log, offset), True
    segments = tuple(base for base in log.segments if base <= offset)
    return log._replace(
        start=min(offset, log.start),
        end=offset,
        # Before 2.4 a truncation left the high watermark where it was.
        hw=setup.rules.high_watermark_after_truncation(log.hw, offset) if setup.profile.truncation_lowers_hw else log.hw,
        # A high watermark that comes down to the new log end has its position: the segment written to.
        hw_segment=segments[-1] if log.hw >= offset else log.hw_segment,
        batches=tuple(batch for batch in log.batches if batch.last < offset),
        cache=epoch_cache.truncate_from_end(setup, log.cache, offset),
        segments=segments,
        recovery_point=min(log.recovery_point, offset),
    ), True


def truncate_fully_and_start_at(log: Log, offset: int, log_start: int | None = None) -> Log:
    """Drop all records and go on at `offset`, with an empty log. UnifiedLog#truncateFullyAndStartAt.

    `log_start` None: the log starts at `offset`, too. Below it, what lies between is in remote storage. The high watermark
    may rise.
    """
    start = offset if log_start is None else log_start
    return log._replace(
        start=start,
        end=offset,
        hw=max(offset, start),
        # At the new log end its position is known.
        hw_segment=offset if start <= offset else UNDEFINED,
        batches=(),
        cache=epoch_cache.clear_and_flush(log.cache),
        segments=(offset,),
        recovery_point=min(log.recovery_point, offset),
    )


# ---------------------------------------------------------------------------------------------------------------------
# High watermark and log start


def active_segment(log: Log) -> int:
    """Return the base offset of the segment that is written to."""
    return log.segments[-1]


def segment_of(log: Log, offset: int) -> int:
    """Return the base offset of the segment that holds `offset`; below all of them, of the first one."""
    return max((base for base in log.segments if base <= offset), default=log.segments[0])


def batch_base_at(log: Log, offset: int) -> int | None:
    """Return the offset that a look-up of the position of `offset` gives: the base of the batch that holds it.

    UnifiedLog#maybeConvertToOffsetMetadata since KAFKA-17803 (4.0.0). In a gap it is the base of the next batch, behind all
    batches the log end; None where the segments do not reach.
    """
    # The log start does not matter: LocalLog, which looks it up, knows its segments alone.
    if not log.segments[0] <= offset <= log.end:
        return None
    return next((b.base for b in log.batches if b.last >= offset), log.end)


def locate_high_watermark(setup: Setup, log: Log) -> Log:
    """Look up the position of the high watermark if only its offset is known.

    Since KAFKA-17803 (`hw_rounded_to_batches`) the look-up returns the base of the batch that holds the offset, and so moves
    the high watermark there. UnifiedLog#fetchHighWatermarkMetadata: called before every comparison, snapshot, and read that
    the high watermark bounds.
    """
    # A position that is known is kept; only a look-up returns the base of the batch, and so moves the high watermark.
    if not setup.profile.hw_rounded_to_batches or log.hw_segment != UNDEFINED:
        return log
    hw = batch_base_at(log, log.hw)
    if hw is None:
        return log
    return log._replace(hw=hw, hw_segment=segment_of(log, hw))


def update_high_watermark(setup: Setup, log: Log, hw: int) -> Log:
    """Set the high watermark to `hw`, clamped into the log; it may fall. UnifiedLog#updateHighWatermark."""
    clamped = setup.rules.follower_high_watermark(hw, log.start, log.end)
    # The position is known at the log end, unless an `hw` below the start of an empty log was raised there.
    located = clamped == log.end and hw >= log.start
    return log._replace(hw=clamped, hw_segment=active_segment(log) if located else UNDEFINED)


def maybe_increment_high_watermark(setup: Setup, log: Log, hw: int, *, located: bool = False) -> tuple[Log, int | None]:
    """Raise the high watermark to `hw`, never lower it. UnifiedLog#maybeIncrementHighWatermark.

    Also return the old value, None if nothing was set. `located`: the caller knows the position of `hw`. The same offset on
    a newer segment is set, too, so that a reader bounded by it does not read the old segment. Raises IllegalArgumentError
    above the log end.
    """
    if hw > log.end:
        raise IllegalArgumentError(f"high watermark: expected <= log end {log.end}; seen {hw}")
    log = locate_high_watermark(setup, log)
    segment = segment_of(log, hw) if located else UNDEFINED
    newer_segment = UNDEFINED not in {segment, log.hw_segment} and log.hw_segment < segment
    if hw > log.hw or (hw == log.hw and newer_segment):
        return log._replace(hw=hw, hw_segment=segment), log.hw
    return log, None


def maybe_increment_log_start(setup: Setup, log: Log, start: int) -> tuple[Log, bool]:
    """Raise the log start to `start`, never lower it; also return whether it changed. Raises OffsetOutOfRangeError.

    UnifiedLog#maybeIncrementLogStartOffset. Segments below it stay until retention deletes them.
    """
    # Records above the high watermark may still be truncated, so they must not be deleted first.
    if start > log.hw:
        raise OffsetOutOfRangeError(f"log start: expected <= high watermark {log.hw}; seen {start}")
    if start <= log.start:
        return log, False
    raised = log._replace(
        start=start,
        hw=setup.rules.high_watermark_after_log_start(log.hw, start),
        recovery_point=max(log.recovery_point, start),
        cache=epoch_cache.truncate_from_start(setup, log.cache, start),
    )
    return raised, True


# ---------------------------------------------------------------------------------------------------------------------
# Segments


def roll(log: Log, first: int = 0) -> Log:
    """Start a new segment at the log end, or at `first` above it, unless the active one starts there. UnifiedLog#roll.

    A high watermark at the log end moves to the new segment (KAFKA-9196); its position is known from then on.
    """
    base = max(first, log.end)
    rolled = log._replace(hw=min(log.hw, log.end), hw_segment=base if log.hw >= log.end else log.hw_segment)
    return rolled if active_segment(log) == base else rolled._replace(segments=(*log.segments, base))


def delete_old_segments(log: Log) -> tuple[Log, int]:
    """Drop segments that lie wholly below the log start; also return how many. UnifiedLog#deleteOldSegments."""
    count = sum(1 for base in log.segments[1:] if base <= log.start)
    remaining = log.segments[count:]
    return log._replace(segments=remaining, batches=tuple(b for b in log.batches if b.base >= remaining[0])), count


# A log after a restart: LogLoader, and the part of LogManager and Partition that applies checkpoints.
#
# Rules of this part
#
# 1. A crash loses the unflushed tail and every queued write; the batches that stay are handed in with the log.
# 2. Checkpoints may be older than the log. They are never trusted above what the log holds.
# 3. Source: org.apache.kafka.storage.internals.log.LogLoader, LogManager#loadLog, Partition#createLog.


def flush(log: Log, offset: int | None = None) -> Log:
    """Flush everything below `offset` (None: the log end) to disk: raise the recovery point. UnifiedLog#flush."""
    return log._replace(recovery_point=max(log.recovery_point, log.end if offset is None else offset))


def flush_cache(log: Log) -> Log:
    """Run the write of the epoch cache that waits for the scheduler, if one does."""
    return log._replace(cache=epoch_cache.flush(log.cache))


def lose_tail(log: Log, flushed_end: int) -> Log:
    """Drop the batches that reach `flushed_end` or beyond: only what lies below it was flushed before the crash."""
    return log._replace(batches=tuple(batch for batch in log.batches if batch.last < flushed_end))


def load(setup: Setup, log: Log, *, log_start: int = 0, recovery_point: int = 0, clean: bool = False) -> Log:
    """Load the log of a process that starts, from what is on disk and its checkpoints. LogLoader#load.

    `log` has the batches and the file of the epoch cache that are on disk; `log_start` and `recovery_point` were
    checkpointed; `clean`: the process before it shut down in order. The log end is that of the last batch. The high
    watermark starts at the log start. The cache is truncated to the log at both ends, so an epoch in which nothing was
    written is forgotten.
    """
    cache = epoch_cache.reload(setup, log.cache)
    if not clean:
        first_recovered = segment_of(log, recovery_point)
        # LogSegment#recover adds only epochs above the latest one, so a wrong entry on disk is not corrected here.
        for batch in log.batches:
            if batch.base >= first_recovered and batch.epoch > epoch_cache.latest_epoch(setup, cache):
                cache = epoch_cache.assign(setup, cache, batch.epoch, batch.base)
    active = active_segment(log)
    end = max((b.last + 1 for b in log.batches if b.base >= active), default=active)
    start = max(log_start, log.segments[0])
    # After a clean shutdown all is on disk, however old the checkpoint is.
    flushed_to = end if clean else min(recovery_point, end)
    loaded = log._replace(end=end, start=start, recovery_point=max(start, flushed_to))
    # Everything is older than the checkpointed log start, which can be ahead of an unflushed log: begin again there.
    if end < log_start:
        cache = epoch_cache.clear_and_flush(cache)
        loaded = loaded._replace(end=log_start, batches=(), segments=(log_start,), recovery_point=log_start)
    cache = epoch_cache.truncate_from_end(setup, cache, loaded.end)
    cache = epoch_cache.truncate_from_start(setup, cache, log_start)
    return loaded._replace(cache=cache, hw=loaded.start, hw_segment=UNDEFINED)


def apply_checkpoint(setup: Setup, log: Log, checkpointed_hw: int) -> Log:
    """Set the high watermark of a log that was just loaded to the checkpointed one, clamped. Partition#createLog."""
    return update_high_watermark(setup, log, checkpointed_hw)

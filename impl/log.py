"""UnifiedLog as a value: batches, log start, high watermark, epoch cache.

Rules of this file

1. A batch is (base, last, epoch), both offsets inclusive; record contents do not matter to the protocol. Batches are the
   unit of appends, reads and cuts.
2. `end` (LEO) is kept, not derived: a cut inside a batch drops the whole batch and still leaves the log end at the cut.
3. Every decision comes from `setup.rules`. Functions return the new log, and a result where Kafka's method has one.
4. Source: org.apache.kafka.storage.internals.log.UnifiedLog, LocalLog, LogLoader.
"""

from itertools import pairwise
from typing import NamedTuple

from impl import epoch_cache
from impl.epoch_cache import EpochCache
from impl.errors import (
    IllegalArgumentError,
    OffsetOutOfRangeError,
    OffsetsOutOfOrderError,
    UnexpectedAppendOffsetError,
)
from impl.profiles import Setup
from impl.rules import UNDEFINED


class Batch(NamedTuple):
    """Offsets of the first and last record, and the leader epoch stamped by the leader that wrote it."""

    base: int
    last: int
    epoch: int


class Log(NamedTuple):
    """One replica's log. `segments` are the base offsets of its segments; the first is where local data begins."""

    start: int = 0
    end: int = 0
    hw: int = 0
    batches: tuple[Batch, ...] = ()
    cache: EpochCache = EpochCache()
    segments: tuple[int, ...] = (0,)
    recovery_point: int = 0


class AppendInfo(NamedTuple):
    """LogAppendInfo: offsets of the first and last record appended, epoch of the last batch; nothing appended: -1."""

    first: int = UNDEFINED
    last: int = UNDEFINED
    last_epoch: int = UNDEFINED
    batches: int = 0


def latest_epoch(setup: Setup, log: Log) -> int:
    """Last epoch in the cache, UNDEFINED for none. UnifiedLog#latestEpoch."""
    return epoch_cache.latest_epoch(setup, log.cache)


def end_offset_for_epoch(setup: Setup, log: Log, requested: int) -> tuple[int, int]:
    """(epoch, end offset), both UNDEFINED when there is no answer. UnifiedLog#endOffsetForEpoch."""
    return epoch_cache.end_offset_for(setup, log.cache, log.end, requested)


# ---------------------------------------------------------------------------------------------------------------------
# Appends


def _written(setup: Setup, log: Log, batches: tuple[Batch, ...]) -> Log:
    cache = log.cache
    for batch in batches:
        try:
            cache = epoch_cache.assign(setup, cache, batch.epoch, batch.base)
        except IllegalArgumentError as refused:
            # The cache learns of each batch before anything is written: UnifiedLog#append
            raise IllegalArgumentError(str(refused), left_behind=log._replace(cache=cache)) from refused
    return log._replace(cache=cache, batches=log.batches + batches, end=batches[-1].last + 1)


def assign_epoch_start_offset(setup: Setup, log: Log, epoch: int, start: int) -> Log:
    """UnifiedLog#assignEpochStartOffset."""
    return log._replace(cache=epoch_cache.assign(setup, log.cache, epoch, start))


def append_as_leader(setup: Setup, log: Log, records: int, epoch: int) -> tuple[Log, AppendInfo]:
    """Append one batch of `records` records at the end, stamped with `epoch`. UnifiedLog#appendAsLeader."""
    batch = Batch(log.end, log.end + records - 1, epoch)
    return _written(setup, log, (batch,)), AppendInfo(batch.base, batch.last, epoch, 1)


def append_as_follower(setup: Setup, log: Log, batches: tuple[Batch, ...], leader_epoch: int) -> tuple[Log, AppendInfo]:
    """Append batches as a leader stamped them. UnifiedLog#appendAsFollower.

    Only the last offsets must increase, and a gap above the log end is accepted: compaction leaves such batches.
    """
    if setup.profile.batch_epoch_filter:
        batches = batches[: setup.rules.batches_accepted([b.epoch for b in batches], leader_epoch)]
    if not batches:
        return log, AppendInfo()
    for previous, batch in pairwise(batches):
        if batch.last <= previous.last:
            raise OffsetsOutOfOrderError(f"last offsets: expected increasing; seen {previous.last} then {batch.last}")
    first = batches[0].base
    if first < log.end:
        raise UnexpectedAppendOffsetError(f"first offset of an append: expected >= {log.end}; seen {first}")
    return _written(setup, log, batches), AppendInfo(first, batches[-1].last, batches[-1].epoch, len(batches))


# ---------------------------------------------------------------------------------------------------------------------
# Reads


def read(log: Log, offset: int, bound: int, max_records: int) -> tuple[Batch, ...]:
    """Whole batches of one segment from the one that contains `offset`, none that starts at or above `bound`.

    At least one batch comes back when there is one, however large: `minOneMessage`. UnifiedLog#read.
    """
    if offset < log.start or offset > log.end:
        raise OffsetOutOfRangeError(f"fetch offset: expected in [{log.start}, {log.end}]; seen {offset}")
    wanted = [b for b in log.batches if b.last >= offset and b.base < bound]
    if not wanted or offset >= bound:
        return ()
    later = [base for base in log.segments if base > wanted[0].base]
    if later:
        wanted = [b for b in wanted if b.base < later[0]]
    taken = [b for b in wanted if b.last < offset + max_records]
    return tuple(taken or wanted[:1])


# ---------------------------------------------------------------------------------------------------------------------
# Truncation


def truncate_to(setup: Setup, log: Log, offset: int) -> tuple[Log, bool]:
    """Cut everything at and above `offset`; whether anything was cut. UnifiedLog#truncateTo.

    A cut at or above the log end still removes cache entries there (KAFKA-10706): an entry without records would be
    offered to the leader for ever.
    """
    if offset < 0:
        raise IllegalArgumentError(f"truncation offset: expected >= 0; seen {offset}")
    if offset >= log.end:
        return log._replace(cache=epoch_cache.truncate_from_end(setup, log.cache, log.end)), False
    if offset < log.segments[0]:
        return truncate_fully_and_start_at(log, offset), True
    start = min(offset, log.start)
    return log._replace(
        start=start,
        end=offset,
        hw=setup.rules.high_watermark_after_truncation(log.hw, offset),
        batches=tuple(b for b in log.batches if b.last < offset),
        cache=epoch_cache.truncate_from_end(setup, log.cache, offset),
        segments=tuple(base for base in log.segments if base <= offset),
        recovery_point=min(log.recovery_point, offset),
    ), True


def truncate_fully_and_start_at(log: Log, offset: int, log_start: int | None = None) -> Log:
    """Drop everything and go on at `offset`. UnifiedLog#truncateFullyAndStartAt. The high watermark may rise."""
    return log._replace(
        start=offset if log_start is None else log_start,
        end=offset,
        hw=offset,
        batches=(),
        cache=epoch_cache.clear_and_flush(log.cache),
        segments=(offset,),
        recovery_point=min(log.recovery_point, offset),
    )


# ---------------------------------------------------------------------------------------------------------------------
# High watermark and log start


def update_high_watermark(setup: Setup, log: Log, hw: int) -> Log:
    """Take over a value, clamped into the log; it may fall. UnifiedLog#updateHighWatermark."""
    return log._replace(hw=setup.rules.follower_high_watermark(hw, log.start, log.end))


def maybe_increment_high_watermark(log: Log, hw: int) -> Log:
    """Raise to `hw` or leave alone. UnifiedLog#maybeIncrementHighWatermark."""
    if hw > log.end:
        raise IllegalArgumentError(f"high watermark: expected <= log end {log.end}; seen {hw}")
    return log._replace(hw=hw) if hw > log.hw else log


def maybe_increment_log_start(setup: Setup, log: Log, start: int) -> Log:
    """Raise the log start to `start`. UnifiedLog#maybeIncrementLogStartOffset tests the high watermark first."""
    if start > log.hw:
        raise OffsetOutOfRangeError(f"log start: expected <= high watermark {log.hw}; seen {start}")
    if start <= log.start:
        return log
    return log._replace(
        start=start,
        hw=max(log.hw, start),
        recovery_point=max(log.recovery_point, start),
        cache=epoch_cache.truncate_from_start(setup, log.cache, start),
    )


# ---------------------------------------------------------------------------------------------------------------------
# Disk


def flush_cache(log: Log) -> Log:
    """The scheduler runs the queued write of the epoch cache."""
    return log._replace(cache=epoch_cache.flush(log.cache))


def load(setup: Setup, log: Log, checkpointed_hw: int) -> Log:
    """What a restarted broker finds: the batches on disk, the cache's file cut to them, the checkpointed HW clamped.

    LogLoader#load cuts the cache at both ends, so an epoch its leader never wrote in is forgotten. Partition#createLog
    applies the high watermark checkpoint.
    """
    cache = epoch_cache.reload(setup, log.cache)
    for batch in log.batches:  # LogSegment#recover adds only epochs above the latest
        if batch.epoch > epoch_cache.latest_epoch(setup, cache):
            cache = epoch_cache.assign(setup, cache, batch.epoch, batch.base)
    cache = epoch_cache.truncate_from_end(setup, cache, log.end)
    cache = epoch_cache.truncate_from_start(setup, cache, log.start)
    return update_high_watermark(setup, log._replace(cache=cache, hw=log.start), checkpointed_hw)



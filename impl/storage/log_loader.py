"""What a log is after a restart: LogLoader, and the part of LogManager and Partition that applies checkpoints.

Rules of this file

1. A crash loses the unflushed tail and every queued write; the batches that stay are handed in with the log.
2. Checkpoints may be older than the log. They are never trusted above what the log holds.
3. Source: org.apache.kafka.storage.internals.log.LogLoader, LogManager#loadLog, Partition#createLog.
"""

from tidegauge.impl.profiles import Setup
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.storage import epoch_cache
from tidegauge.impl.storage import log as log_
from tidegauge.impl.storage.log import Log


def flush(log: Log, offset: int | None = None) -> Log:
    """Flush everything below `offset`, or below the log end, to disk. UnifiedLog#flush."""
    return log._replace(recovery_point=max(log.recovery_point, log.end if offset is None else offset))


def flush_cache(log: Log) -> Log:
    """Run the queued write of the epoch cache."""
    return log._replace(cache=epoch_cache.flush(log.cache))


def lose_tail(log: Log, kept: int) -> Log:
    """Drop the batches that reach `kept`: nothing from there on was flushed."""
    return log._replace(batches=tuple(batch for batch in log.batches if batch.last < kept))


def load(setup: Setup, log: Log, *, log_start: int = 0, recovery_point: int = 0, clean: bool = False) -> Log:
    """Build the log from disk and checkpoints. The high watermark starts at the log start. LogLoader#load.

    What was never written is gone: the end is that of the last batch, and an epoch its leader never wrote in is forgotten,
    because the cache is truncated to the log at both ends.
    """
    cache = epoch_cache.reload(setup, log.cache)
    if not clean:
        recovered = log_.segment_of(log, recovery_point)
        # LogSegment#recover adds only epochs above the latest one, so a wrong entry on disk is not corrected here.
        for batch in log.batches:
            if batch.base >= recovered and batch.epoch > epoch_cache.latest_epoch(setup, cache):
                cache = epoch_cache.assign(setup, cache, batch.epoch, batch.base)
    active = log_.active_segment(log)
    end = max((b.last + 1 for b in log.batches if b.base >= active), default=active)
    start = max(log_start, log.segments[0])
    loaded = log._replace(end=end, start=start, recovery_point=max(start, min(recovery_point, end)))
    # Everything is older than the checkpointed log start, which can be ahead of an unflushed log: begin again there.
    if end < log_start:
        cache = epoch_cache.clear_and_flush(cache)
        loaded = loaded._replace(end=log_start, batches=(), segments=(log_start,), recovery_point=log_start)
    cache = epoch_cache.truncate_from_end(setup, cache, loaded.end)
    cache = epoch_cache.truncate_from_start(setup, cache, log_start)
    return loaded._replace(cache=cache, hw=loaded.start, hw_segment=UNDEFINED)


def apply_checkpoint(setup: Setup, log: Log, checkpointed_hw: int) -> Log:
    """Take over the checkpointed high watermark, clamped. Partition#createLog."""
    return log_.update_high_watermark(setup, log, checkpointed_hw)

"""LeaderEpochFileCache as a value: for each leader epoch the offset of its first record, in memory and on disk.

Rules of this file

1. Two copies are kept: memory, which answers, and disk, which survives a crash. `assign` and `clear_and_flush` write at
   once; a truncation is written later by the scheduler (KAFKA-16541, 3.8), so a crash in between brings entries back.
2. Which entries stay is decided by impl.rules, called through `setup.rules`; here the entries are taken and put.
3. Source: org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache.
"""

from typing import NamedTuple

from tidegauge.impl.errors import IllegalArgumentError
from tidegauge.impl.profiles import Setup
from tidegauge.impl.rules import UNDEFINED


class EpochEntries(NamedTuple):
    """Epochs and the offsets of their first records, both strictly increasing."""

    epochs: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()

    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Return the entries as (epoch, start) pairs."""
        return tuple(zip(self.epochs, self.starts, strict=True))


EMPTY = EpochEntries()


class EpochCache(NamedTuple):
    """Memory, disk, and whether a write from memory to disk waits for the scheduler."""

    memory: EpochEntries = EMPTY
    disk: EpochEntries = EMPTY
    queued: bool = False

    @property
    def epochs(self) -> tuple[int, ...]:
        """Epochs in memory."""
        return self.memory.epochs

    @property
    def starts(self) -> tuple[int, ...]:
        """Start offsets in memory."""
        return self.memory.starts


def _write_through(cache: EpochCache, memory: EpochEntries) -> EpochCache:
    """Replace the entries in memory and on disk at once; a queued write stays queued."""
    return EpochCache(memory, memory, cache.queued)


def _store_truncation(setup: Setup, cache: EpochCache, memory: EpochEntries) -> EpochCache:
    """Replace the entries in memory by those that a truncation leaves; write them now, or queue the write."""
    # Since KAFKA-16541 the fsync is left to the scheduler; a crash before it brings the entries back.
    if setup.profile.cache_truncation_queued:
        return EpochCache(memory, cache.disk, queued=True)
    return _write_through(cache, memory)


def _with_entry(setup: Setup, memory: EpochEntries, epoch: int, start: int) -> EpochEntries:
    """Return the entries with (epoch, start) added and those evicted that contradict it. LeaderEpochFileCache#assign.

    The result is `memory` itself if the entry is there already. Raises IllegalArgumentError for a negative number.
    """
    if epoch < 0 or start < 0:
        raise IllegalArgumentError(f"epoch cache entry: expected epoch and start offset >= 0; seen ({epoch}, {start})")
    keeps = setup.rules.assign_keeps(memory.epochs, memory.starts, epoch, start)
    if keeps == UNDEFINED:
        return memory
    # Before KAFKA-7415 only an entry of a later epoch at no lower offset was added; any other conflict was only logged.
    if keeps < len(memory.epochs) and not setup.profile.strict_cache:
        if not (epoch > memory.epochs[-1] and start >= memory.starts[-1]):
            return memory
        keeps = len(memory.epochs)
    return EpochEntries((*memory.epochs[:keeps], epoch), (*memory.starts[:keeps], start))


def assign(setup: Setup, cache: EpochCache, epoch: int, start: int) -> EpochCache:
    """Record that `epoch` starts at `start`. LeaderEpochFileCache#assign(int, long)."""
    memory = _with_entry(setup, cache.memory, epoch, start)
    return cache if memory is cache.memory else _write_through(cache, memory)


def assign_all(setup: Setup, cache: EpochCache, entries: tuple[tuple[int, int], ...]) -> EpochCache:
    """Record several (epoch, start) entries with one write, which happens even if all are there already.

    LeaderEpochFileCache#assign(List).
    """
    memory = cache.memory
    for epoch, start in entries:
        memory = _with_entry(setup, memory, epoch, start)
    return _write_through(cache, memory) if entries else cache


def truncate_from_end(setup: Setup, cache: EpochCache, end: int) -> EpochCache:
    """Forget entries that start at or above `end`. LeaderEpochFileCache#truncateFromEnd(AsyncFlush)."""
    memory = cache.memory
    keeps = setup.rules.truncate_from_end_keeps(memory.starts, end)
    if keeps == len(memory.starts):
        return cache
    return _store_truncation(setup, cache, EpochEntries(memory.epochs[:keeps], memory.starts[:keeps]))


def truncate_from_start(setup: Setup, cache: EpochCache, start: int) -> EpochCache:
    """Forget the epochs that end at or below a new log start. LeaderEpochFileCache#truncateFromStart(AsyncFlush).

    The epoch of the record at the log start stays; its entry now begins there.
    """
    memory = cache.memory
    covers = setup.rules.truncate_from_start_covers(memory.starts, start)
    if covers == 0:
        return cache
    return _store_truncation(setup, cache, EpochEntries(memory.epochs[covers - 1 :], (start, *memory.starts[covers:])))


def clear(cache: EpochCache) -> EpochCache:
    """Empty the memory, not the file. LeaderEpochFileCache#clear."""
    return cache._replace(memory=EMPTY)


def clear_and_flush(cache: EpochCache) -> EpochCache:
    """Empty memory and file. LeaderEpochFileCache#clearAndFlush."""
    return _write_through(cache, EMPTY)


def flush(cache: EpochCache) -> EpochCache:
    """Run the queued write: memory as it is now goes to disk. LeaderEpochFileCache#writeToFile."""
    return EpochCache(cache.memory, cache.memory, queued=False) if cache.queued else cache


def reload(setup: Setup, cache: EpochCache) -> EpochCache:
    """Load the cache from its file after a restart; a queued write is lost.

    Entries are assigned one by one, as LeaderEpochFileCache's constructor does, so those that contradict others go.
    """
    memory = EMPTY
    for epoch, start in cache.disk.pairs():
        memory = _with_entry(setup, memory, epoch, start)
    return EpochCache(memory, cache.disk, queued=False)


def latest_epoch(setup: Setup, cache: EpochCache) -> int:
    """Return the last cached epoch, UNDEFINED for none. LeaderEpochFileCache#latestEpoch."""
    return setup.rules.latest_epoch(cache.epochs)


def end_offset_for(setup: Setup, cache: EpochCache, log_end: int, requested: int) -> tuple[int, int]:
    """Return (epoch, end offset) for a requested epoch, both UNDEFINED for no answer. LeaderEpochFileCache#endOffsetFor.

    The epoch is the largest cached one that is not above the requested one.
    """
    # Before KAFKA-7415 an epoch below the first entry had no answer.
    if not setup.profile.strict_cache and cache.epochs and requested < cache.epochs[0]:
        return UNDEFINED, UNDEFINED
    return setup.rules.end_offset_for(cache.epochs, cache.starts, log_end, requested)


def epoch_for_offset(setup: Setup, cache: EpochCache, offset: int) -> int:
    """Return the epoch of an offset, UNDEFINED below the first entry. LeaderEpochFileCache#epochForOffset."""
    return setup.rules.epoch_for_offset(cache.epochs, cache.starts, offset)


def previous_epoch(cache: EpochCache, epoch: int | None = None) -> int:
    """Return the last cached epoch below `epoch` (None: the latest), else UNDEFINED. LeaderEpochFileCache#previousEpoch."""
    if epoch is None:
        return cache.epochs[-2] if len(cache.epochs) > 1 else UNDEFINED
    return max((e for e in cache.epochs if e < epoch), default=UNDEFINED)


def next_epoch(cache: EpochCache, epoch: int) -> int:
    """Return the first cached epoch above `epoch`, UNDEFINED for none. LeaderEpochFileCache#nextEpoch."""
    return min((e for e in cache.epochs if e > epoch), default=UNDEFINED)


def earliest_entry(cache: EpochCache) -> tuple[int, int] | None:
    """Return the first entry as (epoch, start), None for an empty cache. LeaderEpochFileCache#earliestEntry."""
    return cache.memory.pairs()[0] if cache.epochs else None


def implied_cache(epochs: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Return the (epoch, start) entries that the records of a log imply: one wherever the epoch changes.

    `epochs` has the epoch of each record by offset, UNDEFINED for a record that was deleted.
    """
    changes = ((epoch, offset) for offset, epoch in enumerate(epochs) if offset == 0 or epochs[offset - 1] != epoch)
    return tuple((epoch, start) for epoch, start in changes if epoch != UNDEFINED)

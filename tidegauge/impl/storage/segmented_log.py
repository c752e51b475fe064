"""A log with its files: rolling, look-up through the index, retention, recovery.

A `SegmentedLog` is a `Log` of impl.storage.log (offsets and batches) together with a `LogSegment` for each of its segments:
batches with their sizes, and a sparse offset index. A *position* is a number of bytes from the start of a segment's file.
The last segment is the active one.

Rules of this file

1. impl.storage.log decides what a log holds; here its batches lie in segments. Both agree after every step: same bases and
   batches.
2. A segment is deleted from the oldest on, only below the high watermark, and never the last one while it is empty.
3. What is deleted raises the log start; a tiered log keeps it, its older part is in remote storage.
4. `size_of` gives a batch's bytes, `now` is a clock in ms.
5. A truncation drops the whole batch that holds the offset. An index has an entry for a batch that comes when more than
   index.interval.bytes were appended since the last entry.
6. Source: org.apache.kafka.storage.internals.log.UnifiedLog#maybeRoll, #deleteOldSegments, LocalLog.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import NamedTuple

from tidegauge.impl.errors import IllegalArgumentError, InvalidOffsetError
from tidegauge.impl.messages import Batch
from tidegauge.impl.profiles import Setup
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.storage import log as log_
from tidegauge.impl.storage.log import AppendInfo, Log

# LogSegment: batches of one file with their index, and when it is time for the next file.
#
# Rules of this part
#
# 1. Recovery builds the index anew from the batches.
# 2. Sizes come with the batches: this file does not know what a record takes.
# 3. Source: org.apache.kafka.storage.internals.log.LogSegment.


# OffsetIndex: a sparse map from offsets to positions in a segment.
#
# Rules of this part
#
# 1. An entry says: the batch whose last offset this is starts at that position. Offsets increase.
# 2. A look-up gives the largest entry at or below the target, the start of the segment for none: the rest is scanned.
# 3. An entry takes 8 bytes: the offset relative to the segment's base, and the position, both 32 bits.
# 4. Source: org.apache.kafka.storage.internals.log.OffsetIndex, AbstractIndex.


ENTRY_BYTES = 8
LARGEST_RELATIVE_OFFSET = (1 << 31) - 1


class OffsetPosition(NamedTuple):
    """An offset and where the scan for it begins."""

    offset: int
    position: int


class OffsetIndex(NamedTuple):
    """The index of the segment that begins at `base`."""

    base: int
    max_bytes: int = 10 << 20
    entries: tuple[OffsetPosition, ...] = ()

    @property
    def is_full(self) -> bool:
        """AbstractIndex#isFull: the segment rolls."""
        return len(self.entries) >= self.max_bytes // ENTRY_BYTES


def can_append_offset(index: OffsetIndex, offset: int) -> bool:
    """Return whether an offset's distance from the base of the segment fits into an int. AbstractIndex#canAppendOffset."""
    return 0 <= offset - index.base <= LARGEST_RELATIVE_OFFSET


def append_entry(index: OffsetIndex, offset: int, position: int) -> OffsetIndex:
    """Add an entry: the batch whose last offset is `offset` begins at `position`. OffsetIndex#append.

    Raises IllegalArgumentError for a full index or an offset out of reach, InvalidOffsetError for one that does not rise.
    """
    if index.is_full:
        raise IllegalArgumentError(f"offset index: expected room for one more entry; seen {len(index.entries)}, full")
    if not can_append_offset(index, offset):
        raise IllegalArgumentError(f"index offset: expected in 32 bits above {index.base}; seen {offset}")
    if index.entries and offset <= index.entries[-1].offset:
        raise InvalidOffsetError(f"index offset: expected > {index.entries[-1].offset}; seen {offset}")
    return index._replace(entries=(*index.entries, OffsetPosition(offset, position)))


def lookup(index: OffsetIndex, target: int) -> OffsetPosition:
    """Return the last entry at or below offset `target`, where a scan for it begins; else the segment's start.

    OffsetIndex#lookup.
    """
    count = bisect_right(index.entries, target, key=lambda entry: entry.offset)
    return index.entries[count - 1] if count else OffsetPosition(index.base, 0)


def truncate_index(index: OffsetIndex, offset: int) -> OffsetIndex:
    """Drop the entries at and above `offset`. OffsetIndex#truncateTo."""
    return index._replace(entries=index.entries[: bisect_left(index.entries, offset, key=lambda entry: entry.offset)])


class LogConfig(NamedTuple):
    """The settings of one topic's log, under their topic names."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3_600_000
    index_interval_bytes: int = 4096
    segment_index_bytes: int = 10 << 20
    retention_bytes: int = -1
    retention_ms: int = 7 * 24 * 3_600_000


class SizedBatch(NamedTuple):
    """A batch, its bytes on disk, and the time of its newest record."""

    batch: Batch
    size: int
    timestamp: int = 0


class LogSegment(NamedTuple):
    """One segment. `first_timestamp` UNDEFINED: nothing was appended, so its age counts from `created_ms`."""

    offsets: OffsetIndex
    batches: tuple[SizedBatch, ...] = ()
    bytes_since_last_index_entry: int = 0
    created_ms: int = 0
    first_timestamp: int = UNDEFINED

    @property
    def base(self) -> int:
        """Offset of its first record."""
        return self.offsets.base

    @property
    def size(self) -> int:
        """Bytes of its batches."""
        return sum(b.size for b in self.batches)

    @property
    def largest_timestamp(self) -> int:
        """LogSegment#largestTimestamp: of the records, else of the file."""
        return max((b.timestamp for b in self.batches), default=self.created_ms)


def new_segment(config: LogConfig, base: int, now: int) -> LogSegment:
    """Create an empty segment whose first record will have offset `base`."""
    return LogSegment(OffsetIndex(base, config.segment_index_bytes), created_ms=now)


def should_roll(config: LogConfig, segment: LogSegment, batches: tuple[SizedBatch, ...], now: int) -> bool:
    """Return whether `batches`, which are about to be appended, need a new segment. LogSegment#shouldRoll.

    They do because of the segment's size or age, a full index, or offsets too far above its base.
    """
    newest = max(b.timestamp for b in batches)
    # Age is counted in record time once there is a record, so that replicas roll alike whenever they copied it.
    age = now - segment.created_ms if segment.first_timestamp == UNDEFINED else newest - segment.first_timestamp
    return (
        segment.size > config.segment_bytes - sum(b.size for b in batches)
        or (segment.size > 0 and age > config.segment_ms)
        or segment.offsets.is_full
        or not can_append_offset(segment.offsets, batches[-1].batch.last)
    )


def append_batches(config: LogConfig, segment: LogSegment, batches: tuple[SizedBatch, ...]) -> LogSegment:
    """Append batches, with an index entry before each for which one is due (rule 5). LogSegment#append."""
    index, unindexed_bytes, position = segment.offsets, segment.bytes_since_last_index_entry, segment.size
    for batch in batches:
        # The entry is made before the batch is added: it names the position where this batch starts.
        if unindexed_bytes > config.index_interval_bytes:
            index, unindexed_bytes = append_entry(index, batch.batch.last, position), 0
        position += batch.size
        unindexed_bytes += batch.size
    return segment._replace(
        offsets=index,
        batches=segment.batches + batches,
        bytes_since_last_index_entry=unindexed_bytes,
        first_timestamp=batches[0].timestamp if segment.first_timestamp == UNDEFINED else segment.first_timestamp,
    )


def rebuild_index(config: LogConfig, segment: LogSegment) -> LogSegment:
    """Return the segment with its index built anew from its batches, as after a crash. LogSegment#recover."""
    empty = new_segment(config, segment.base, segment.created_ms)
    return append_batches(config, empty, segment.batches) if segment.batches else empty


def translate_offset(segment: LogSegment, offset: int) -> tuple[Batch, int, int] | None:
    """Return (batch, its position, number of batches scanned) for the first batch that reaches `offset`.

    LogSegment#translateOffset: the index gives the position where the scan begins. None: no batch of the segment does.
    """
    scan_start, position, scanned = lookup(segment.offsets, offset).position, 0, 0
    for sized in segment.batches:
        if position >= scan_start:
            scanned += 1
            if sized.batch.last >= offset:
                return sized.batch, position, scanned
        position += sized.size
    return None


def truncate_segment(segment: LogSegment, offset: int) -> LogSegment:
    """Truncate at `offset`. LogSegment#truncateTo: a segment that becomes empty also forgets its first timestamp."""
    remaining = tuple(b for b in segment.batches if b.batch.last < offset)
    if len(remaining) == len(segment.batches):
        return segment
    return segment._replace(
        offsets=truncate_index(segment.offsets, offset),
        batches=remaining,
        bytes_since_last_index_entry=0,
        first_timestamp=segment.first_timestamp if remaining else UNDEFINED,
    )


SizeOf = Callable[[Batch], int]


class SegmentedLog(NamedTuple):
    """A log, its settings and its segments, oldest first."""

    log: Log
    config: LogConfig
    segments: tuple[LogSegment, ...]
    tiered: bool = False

    @property
    def size(self) -> int:
        """UnifiedLog#size: bytes of all local segments."""
        return sum(s.size for s in self.segments)


def empty_log(config: LogConfig, now: int, *, tiered: bool = False) -> SegmentedLog:
    """Create a new log."""
    return SegmentedLog(Log(), config, (new_segment(config, 0, now),), tiered)


# ---------------------------------------------------------------------------------------------------------------------
# Appends


def append_as_leader(
    setup: Setup, log: SegmentedLog, records: int, epoch: int, size_of: SizeOf, now: int
) -> tuple[SegmentedLog, AppendInfo]:
    """Append one batch of `records` records, stamped with leader epoch `epoch`. UnifiedLog#appendAsLeader."""
    appended, info = log_.append_as_leader(setup, log.log, records, epoch)
    return _append(setup, log, appended.batches[len(log.log.batches) :], size_of, now), info


def append_as_follower(
    setup: Setup, log: SegmentedLog, batches: tuple[Batch, ...], leader_epoch: int, size_of: SizeOf, now: int
) -> tuple[SegmentedLog, AppendInfo]:
    """Append batches that were fetched in `leader_epoch`. UnifiedLog#appendAsFollower.

    Batches that the log leaves out, as being of a later epoch, roll no segment.
    """
    appended, info = log_.append_as_follower(setup, log.log, batches, leader_epoch)
    accepted = appended.batches[len(log.log.batches) :]
    return (_append(setup, log, accepted, size_of, now) if accepted else log), info


def _append(setup: Setup, log: SegmentedLog, batches: tuple[Batch, ...], size_of: SizeOf, now: int) -> SegmentedLog:
    """Append batches to the active segment, or to a new one if they do not fit into it. UnifiedLog#append, #maybeRoll.

    The log has accepted the batches already: `log.log` is still the log without them.
    """
    sized = tuple(SizedBatch(b, size_of(b), now) for b in batches)
    # The new segment starts at the first batch, which after compaction may be above the log end.
    if should_roll(log.config, log.segments[-1], sized, now):
        log = roll(log, now, batches[0].base)
    # With the highest of their own epochs as leader epoch none of them is left out a second time.
    written, _ = log_.append_as_follower(setup, log.log, batches, leader_epoch=max(b.epoch for b in batches))
    active = append_batches(log.config, log.segments[-1], sized)
    return log._replace(log=written, segments=(*log.segments[:-1], active))


def roll(log: SegmentedLog, now: int, first: int = 0) -> SegmentedLog:
    """Start a new segment at the log end, or at offset `first` if that is above it. UnifiedLog#roll."""
    rolled = log_.roll(log.log, first)
    fresh = new_segment(log.config, log_.active_segment(rolled), now)
    # An empty active segment that starts there already is replaced, so that its age begins anew.
    before = log.segments if fresh.base > log.segments[-1].base else log.segments[:-1]
    return log._replace(log=rolled, segments=(*before, fresh))


# ---------------------------------------------------------------------------------------------------------------------
# Reads and truncates


def find_position(log: SegmentedLog, offset: int) -> tuple[int, int] | None:
    """Return (segment base, position) of the first batch that reaches `offset`. LogSegments#floorSegment.

    None: the offset is behind all batches, or below the first segment.
    """
    if offset < log.segments[0].base:
        return None
    floor = max(i for i, s in enumerate(log.segments) if s.base <= offset)
    for segment in log.segments[floor:]:
        located = translate_offset(segment, offset)
        # A segment whose last batches were compacted away may not reach so far: the next one does.
        if located is not None:
            _, position, _ = located
            return segment.base, position
    return None


def truncate_to(setup: Setup, log: SegmentedLog, offset: int, now: int) -> tuple[SegmentedLog, bool]:
    """Truncate the log and its segments at `offset`; also return whether anything was truncated. UnifiedLog#truncateTo."""
    truncated, was_truncated = log_.truncate_to(setup, log.log, offset)
    return _with_truncated_log(log, truncated, now), was_truncated


def truncate_fully_and_start_at(log: SegmentedLog, offset: int, now: int, log_start: int | None = None) -> SegmentedLog:
    """Drop all records and go on at `offset`, in one empty segment. UnifiedLog#truncateFullyAndStartAt.

    The log starts at `log_start`, at `offset` if that is None.
    """
    fresh = log_.truncate_fully_and_start_at(log.log, offset, log_start)
    return log._replace(log=fresh, segments=(new_segment(log.config, offset, now),))


def _with_truncated_log(log: SegmentedLog, truncated: Log, now: int) -> SegmentedLog:
    """Replace `log.log` by `truncated`, and truncate the segments likewise."""
    # A truncation below the first segment starts a segment that was not there before.
    segment_at = {s.base: s for s in log.segments}
    remaining = (segment_at.get(base) or new_segment(log.config, base, now) for base in truncated.segments)
    return log._replace(log=truncated, segments=tuple(truncate_segment(s, truncated.end) for s in remaining))


# ---------------------------------------------------------------------------------------------------------------------
# Retention


def delete_records(setup: Setup, log: SegmentedLog, offset: int) -> SegmentedLog:
    """Raise the log start to `offset`; segments below it go with the next retention pass."""
    raised, _ = log_.maybe_increment_log_start(setup, log.log, offset)
    return log._replace(log=raised)


def delete_old_segments(setup: Setup, log: SegmentedLog, now: int) -> tuple[SegmentedLog, int]:
    """Delete segments by log start, then by size, then by age; also return how many. UnifiedLog#deleteOldSegments."""
    before = len(log.segments)
    rolled = 0
    for count_breaching in (_breaching_log_start, _breaching_size, _breaching_age):
        count = count_breaching(log, now)
        # A log never is without a segment: the active one is rolled before it goes.
        if count == len(log.segments):
            log, rolled = roll(log, now), rolled + 1
        log = _without_oldest(setup, log, count)
    return log, before + rolled - len(log.segments)


def _count_deletable(log: SegmentedLog, condition: Callable[[LogSegment, int], bool]) -> int:
    """Return how many of the oldest segments may be deleted, one after the other. UnifiedLog#deletableSegments.

    Each has to lie below the high watermark, must not be the last one while that is empty, and has to meet `condition`,
    which is called with the segment and the offset at which it ends.
    """
    count = 0
    for segment, following in zip(log.segments, (*log.segments[1:], None), strict=True):
        end = log.log.end if following is None else following.base
        last_and_empty = following is None and not segment.batches
        if log.log.hw < end or last_and_empty or not condition(segment, end):
            break
        count += 1
    return count


def _breaching_log_start(log: SegmentedLog, _now: int) -> int:
    """Return how many of the oldest segments end at or below the log start; the active one stays.

    UnifiedLog#deleteLogStartOffsetBreachedSegments.
    """
    return min(_count_deletable(log, lambda _, end: end <= log.log.start), len(log.segments) - 1)


def _breaching_size(log: SegmentedLog, _now: int) -> int:
    """Return how many of the oldest segments retention.bytes deletes. UnifiedLog#deleteRetentionSizeBreachedSegments.

    A segment goes if the log without it still has at least that size.
    """
    if log.config.retention_bytes < 0:
        return 0
    surplus = log.size - log.config.retention_bytes

    def leaves_surplus(segment: LogSegment, _end: int) -> bool:
        """Return whether the log is still above its size limit without this segment and those asked about before."""
        nonlocal surplus
        surplus -= segment.size
        return surplus >= 0

    return _count_deletable(log, leaves_surplus)


def _breaching_age(log: SegmentedLog, now: int) -> int:
    """Return how many of the oldest segments have only records older than retention.ms.

    UnifiedLog#deleteRetentionMsBreachedSegments.
    """
    if log.config.retention_ms < 0:
        return 0
    return _count_deletable(log, lambda segment, _: now - segment.largest_timestamp > log.config.retention_ms)


def _without_oldest(setup: Setup, log: SegmentedLog, count: int) -> SegmentedLog:
    """Delete the `count` oldest segments; the log start follows, unless their records are in remote storage as well."""
    if count == 0:
        return log
    segments = log.segments[count:]
    first = segments[0].base
    remaining = log.log._replace(
        segments=log.log.segments[count:], batches=tuple(b for b in log.log.batches if b.base >= first)
    )
    if not log.tiered:
        remaining, _ = log_.maybe_increment_log_start(setup, remaining, first)
    return log._replace(log=remaining, segments=segments)


# ---------------------------------------------------------------------------------------------------------------------
# Restart


def recover(setup: Setup, log: SegmentedLog, torn: int, now: int, *, log_start: int = 0) -> SegmentedLog:
    """Load the log after a crash, with its indexes built anew. LogLoader#load.

    `torn` is how many batches at the end were written in part: they are dropped. `log_start` is the checkpointed one.
    """
    active = log.segments[-1]
    whole = active._replace(batches=active.batches[: max(0, len(active.batches) - torn)])
    batches = tuple(b.batch for s in (*log.segments[:-1], whole) for b in s.batches)
    loaded = log_.load(setup, log.log._replace(batches=batches), log_start=log_start)
    segment_at = {s.base: s for s in (*log.segments[:-1], whole)}
    segments = (segment_at.get(base) or new_segment(log.config, base, now) for base in loaded.segments)
    return log._replace(log=loaded, segments=tuple(rebuild_index(log.config, s) for s in segments))

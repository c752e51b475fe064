"""A log with its files: rolling, look-up through the index, retention, recovery.

Rules of this file

1. impl.storage.log decides what a log holds; here its batches lie in segments. Both agree after every step: same bases and
   batches.
2. A segment is deleted from the oldest on, only below the high watermark, and never the last one while it is empty.
3. What is deleted raises the log start; a tiered log keeps it, its older part is in remote storage.
4. `size_of` gives a batch's bytes, `now` is a clock in ms.
5. Source: org.apache.kafka.storage.internals.log.UnifiedLog#maybeRoll, #deleteOldSegments, LocalLog.
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
# 1. One index entry is made when more than index.interval.bytes were appended since the last: for the batch that comes then.
# 2. A truncation takes the whole batch that holds the offset. Recovery builds the index anew from the batches.
# 3. Sizes come with the batches: this file does not know what a record takes.
# 4. Source: org.apache.kafka.storage.internals.log.LogSegment.


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
    """Return whether the offset fits in 32 bits above the base. AbstractIndex#canAppendOffset."""
    return 0 <= offset - index.base <= LARGEST_RELATIVE_OFFSET


def append_entry(index: OffsetIndex, offset: int, position: int) -> OffsetIndex:
    """Add an entry. OffsetIndex#append."""
    if index.is_full:
        raise IllegalArgumentError(f"offset index: expected room for one more entry; seen {len(index.entries)}, full")
    if not can_append_offset(index, offset):
        raise IllegalArgumentError(f"index offset: expected in 32 bits above {index.base}; seen {offset}")
    if index.entries and offset <= index.entries[-1].offset:
        raise InvalidOffsetError(f"index offset: expected > {index.entries[-1].offset}; seen {offset}")
    return index._replace(entries=(*index.entries, OffsetPosition(offset, position)))


def lookup(index: OffsetIndex, target: int) -> OffsetPosition:
    """Return where to begin scanning for `target`. OffsetIndex#lookup."""
    count = bisect_right(index.entries, target, key=lambda entry: entry.offset)
    return index.entries[count - 1] if count else OffsetPosition(index.base, 0)


def truncate_index(index: OffsetIndex, offset: int) -> OffsetIndex:
    """Drop entries at and above `offset`. OffsetIndex#truncateTo."""
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
    """Create an empty segment."""
    return LogSegment(OffsetIndex(base, config.segment_index_bytes), created_ms=now)


def should_roll(config: LogConfig, segment: LogSegment, batches: tuple[SizedBatch, ...], now: int) -> bool:
    """Return whether `batches` need a new segment: size, age, full index, offsets out of reach. LogSegment#shouldRoll."""
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
    """Append, making an index entry where one is due. LogSegment#append."""
    index, since, position = segment.offsets, segment.bytes_since_last_index_entry, segment.size
    for batch in batches:
        # The entry is made before the batch is added: it names the position where this batch starts.
        if since > config.index_interval_bytes:
            index, since = append_entry(index, batch.batch.last, position), 0
        position += batch.size
        since += batch.size
    first = segment.first_timestamp if segment.first_timestamp != UNDEFINED else batches[0].timestamp
    return segment._replace(
        offsets=index, batches=segment.batches + batches, bytes_since_last_index_entry=since, first_timestamp=first
    )


def rebuild_index(config: LogConfig, segment: LogSegment) -> LogSegment:
    """Build the index from the batches. LogSegment#recover."""
    empty = new_segment(config, segment.base, segment.created_ms)
    return append_batches(config, empty, segment.batches) if segment.batches else empty


def translate_offset(segment: LogSegment, offset: int) -> tuple[Batch, int, int] | None:
    """Return the first batch that reaches `offset`, its position and the number of batches scanned. None: there is none.

    LogSegment#translateOffset: the index gives the position where the scan begins.
    """
    begin, position, scanned = lookup(segment.offsets, offset).position, 0, 0
    for sized in segment.batches:
        if position >= begin:
            scanned += 1
            if sized.batch.last >= offset:
                return sized.batch, position, scanned
        position += sized.size
    return None


def truncate_segment(segment: LogSegment, offset: int) -> LogSegment:
    """Truncate at `offset`; an empty segment is as good as new. LogSegment#truncateTo."""
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
    """Append as leader. UnifiedLog#appendAsLeader."""
    appended, info = log_.append_as_leader(setup, log.log, records, epoch)
    return _appended(setup, log, appended.batches[len(log.log.batches) :], size_of, now), info


def append_as_follower(
    setup: Setup, log: SegmentedLog, batches: tuple[Batch, ...], leader_epoch: int, size_of: SizeOf, now: int
) -> tuple[SegmentedLog, AppendInfo]:
    """Append fetched batches; batches that are refused roll nothing. UnifiedLog#appendAsFollower."""
    appended, info = log_.append_as_follower(setup, log.log, batches, leader_epoch)
    new = appended.batches[len(log.log.batches) :]
    return (_appended(setup, log, new, size_of, now) if new else log), info


def _appended(setup: Setup, log: SegmentedLog, batches: tuple[Batch, ...], size_of: SizeOf, now: int) -> SegmentedLog:
    """Append batches to the active segment, or to a new one if they do not fit into it. UnifiedLog#append, #maybeRoll."""
    sized = tuple(SizedBatch(b, size_of(b), now) for b in batches)
    # The new segment starts at the first batch, which after compaction may be above the log end.
    if should_roll(log.config, log.segments[-1], sized, now):
        log = roll(log, now, batches[0].base)
    written, _ = log_.append_as_follower(setup, log.log, batches, max(b.epoch for b in batches))
    active = append_batches(log.config, log.segments[-1], sized)
    return log._replace(log=written, segments=(*log.segments[:-1], active))


def roll(log: SegmentedLog, now: int, first: int = 0) -> SegmentedLog:
    """Start a new segment at the log end, or above it at `first`. UnifiedLog#roll.

    An empty segment that starts there already is made anew; one that starts below stays, empty.
    """
    rolled = log_.roll(log.log, first)
    fresh = new_segment(log.config, log_.active_segment(rolled), now)
    before = log.segments if fresh.base > log.segments[-1].base else log.segments[:-1]
    return log._replace(log=rolled, segments=(*before, fresh))


# ---------------------------------------------------------------------------------------------------------------------
# Reads and truncates


def find_position(log: SegmentedLog, offset: int) -> tuple[int, int] | None:
    """Return (segment, position) of the batch that reaches `offset`, found through the index. LogSegments#floorSegment.

    None: the log does not reach so far, or is older than its first segment.
    """
    if offset < log.segments[0].base:
        return None
    floor = max(i for i, s in enumerate(log.segments) if s.base <= offset)
    for segment in log.segments[floor:]:
        batch = translate_offset(segment, offset)
        # A segment whose last batches were compacted away may not reach so far: the next one does.
        if batch is not None:
            _, position, _ = batch
            return segment.base, position
    return None


def truncate_to(setup: Setup, log: SegmentedLog, offset: int, now: int) -> tuple[SegmentedLog, bool]:
    """Truncate the log and its segments. UnifiedLog#truncateTo."""
    truncated, did = log_.truncate_to(setup, log.log, offset)
    return _with(log, truncated, now), did


def truncate_fully_and_start_at(log: SegmentedLog, offset: int, now: int, log_start: int | None = None) -> SegmentedLog:
    """Drop everything and go on at `offset`. UnifiedLog#truncateFullyAndStartAt."""
    fresh = log_.truncate_fully_and_start_at(log.log, offset, log_start)
    return log._replace(log=fresh, segments=(new_segment(log.config, offset, now),))


def _with(log: SegmentedLog, truncated: Log, now: int) -> SegmentedLog:
    """Return the segments of a log that was truncated."""
    segment_at = {s.base: s for s in log.segments}
    remaining = (segment_at.get(base) or new_segment(log.config, base, now) for base in truncated.segments)
    return log._replace(log=truncated, segments=tuple(truncate_segment(s, truncated.end) for s in remaining))


# ---------------------------------------------------------------------------------------------------------------------
# Retention


def delete_records(setup: Setup, log: SegmentedLog, offset: int) -> SegmentedLog:
    """Raise the log start to `offset`; its segments go with the next retention pass."""
    raised, _ = log_.maybe_increment_log_start(setup, log.log, offset)
    return log._replace(log=raised)


def delete_old_segments(setup: Setup, log: SegmentedLog, now: int) -> tuple[SegmentedLog, int]:
    """Delete by log start, then by size, then by age; also return how many went. UnifiedLog#deleteOldSegments."""
    before = len(log.segments)
    rolled = 0
    for doomed in (_breaching_log_start, _breaching_size, _breaching_age):
        count = doomed(log, now)
        # A log never is without a segment: the active one is rolled before it goes.
        if count == len(log.segments):
            log, rolled = roll(log, now), rolled + 1
        log = _without_oldest(setup, log, count)
    return log, before + rolled - len(log.segments)


def _deletable(log: SegmentedLog, condition: Callable[[LogSegment, int], bool]) -> int:
    """Return how many of the oldest segments may go: below the high watermark, no empty last one. #deletableSegments."""
    count = 0
    for segment, following in zip(log.segments, (*log.segments[1:], None), strict=True):
        end = log.log.end if following is None else following.base
        last_and_empty = following is None and not segment.batches
        if log.log.hw < end or last_and_empty or not condition(segment, end):
            break
        count += 1
    return count


def _breaching_log_start(log: SegmentedLog, _now: int) -> int:
    return min(_deletable(log, lambda _, end: end <= log.log.start), len(log.segments) - 1)


def _breaching_size(log: SegmentedLog, _now: int) -> int:
    """Segments go while what is left is still at least retention.bytes. UnifiedLog#deleteRetentionSizeBreachedSegments."""
    if log.config.retention_bytes < 0:
        return 0
    surplus = log.size - log.config.retention_bytes

    def fits(segment: LogSegment, _end: int) -> bool:
        """Return whether the log is still above its size limit without this segment."""
        nonlocal surplus
        surplus -= segment.size
        return surplus >= 0

    return _deletable(log, fits)


def _breaching_age(log: SegmentedLog, now: int) -> int:
    if log.config.retention_ms < 0:
        return 0
    return _deletable(log, lambda segment, _: now - segment.largest_timestamp > log.config.retention_ms)


def _without_oldest(setup: Setup, log: SegmentedLog, count: int) -> SegmentedLog:
    """Delete the oldest segments; the log start follows, unless their records are in remote storage as well."""
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
    """Recover after a crash that tore the last `torn` batches: they are dropped, indexes are rebuilt. LogLoader#load."""
    active = log.segments[-1]
    whole = active._replace(batches=active.batches[: max(0, len(active.batches) - torn)])
    batches = tuple(b.batch for s in (*log.segments[:-1], whole) for b in s.batches)
    loaded = log_.load(setup, log.log._replace(batches=batches), log_start=log_start)
    segment_at = {s.base: s for s in (*log.segments[:-1], whole)}
    segments = (segment_at.get(base) or new_segment(log.config, base, now) for base in loaded.segments)
    return log._replace(log=loaded, segments=tuple(rebuild_index(log.config, s) for s in segments))

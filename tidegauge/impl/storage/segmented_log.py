"""A log with its files: rolling, look-up through the index, retention, recovery.

Rules of this file

1. impl.storage.log decides what a log holds; here its batches lie in segments. Both agree after every step: same bases and
   batches.
2. A segment is deleted from the oldest on, only below the high watermark, and never the last one while it is empty.
3. What is deleted raises the log start; a tiered log keeps it, its older part is in remote storage.
4. `size_of` gives a batch's bytes, `now` is a clock in ms.
5. Source: org.apache.kafka.storage.internals.log.UnifiedLog#maybeRoll, #deleteOldSegments, LocalLog.
"""

from collections.abc import Callable
from typing import NamedTuple

from tidegauge.impl.messages import Batch
from tidegauge.impl.profiles import Setup
from tidegauge.impl.storage import log as log_
from tidegauge.impl.storage import log_segment
from tidegauge.impl.storage.log import AppendInfo, Log
from tidegauge.impl.storage.log_segment import LogConfig, LogSegment, SizedBatch

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
    return SegmentedLog(Log(), config, (log_segment.new_segment(config, 0, now),), tiered)


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
    sized = tuple(SizedBatch(b, size_of(b), now) for b in batches)
    # The new segment starts at the first batch, which after compaction may be above the log end.
    if log_segment.should_roll(log.config, log.segments[-1], sized, now):
        log = roll(log, now, batches[0].base)
    written, _ = log_.append_as_follower(setup, log.log, batches, max(b.epoch for b in batches))
    active = log_segment.append_batches(log.config, log.segments[-1], sized)
    return log._replace(log=written, segments=(*log.segments[:-1], active))


def roll(log: SegmentedLog, now: int, first: int = 0) -> SegmentedLog:
    """Start a new segment at the log end, or above it at `first`. UnifiedLog#roll.

    An empty segment that starts there already is made anew; one that starts below stays, empty.
    """
    rolled = log_.roll(log.log, first)
    fresh = log_segment.new_segment(log.config, log_.active_segment(rolled), now)
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
        position = log_segment.translate_offset(segment, offset)
        if position is not None:
            return segment.base, position[1]
    return None


def truncate_to(setup: Setup, log: SegmentedLog, offset: int, now: int) -> tuple[SegmentedLog, bool]:
    """Truncate the log and its segments. UnifiedLog#truncateTo."""
    truncated, did = log_.truncate_to(setup, log.log, offset)
    return _with(log, truncated, now), did


def truncate_fully_and_start_at(log: SegmentedLog, offset: int, now: int, log_start: int | None = None) -> SegmentedLog:
    """Drop everything and go on at `offset`. UnifiedLog#truncateFullyAndStartAt."""
    fresh = log_.truncate_fully_and_start_at(log.log, offset, log_start)
    return log._replace(log=fresh, segments=(log_segment.new_segment(log.config, offset, now),))


def _with(log: SegmentedLog, truncated: Log, now: int) -> SegmentedLog:
    """Return the segments of a log that was truncated."""
    segment_at = {s.base: s for s in log.segments}
    remaining = (segment_at.get(base) or log_segment.new_segment(log.config, base, now) for base in truncated.segments)
    return log._replace(log=truncated, segments=tuple(log_segment.truncate_segment(s, truncated.end) for s in remaining))


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


def recover(
    setup: Setup, log: SegmentedLog, torn: int, now: int, *, log_start: int = 0, recovery_point: int = 0
) -> SegmentedLog:
    """Recover after a crash that tore the last `torn` batches: they are dropped, indexes are rebuilt. LogLoader#load."""
    active = log.segments[-1]
    whole = active._replace(batches=active.batches[: max(0, len(active.batches) - torn)])
    batches = tuple(b.batch for s in (*log.segments[:-1], whole) for b in s.batches)
    loaded = log_.load(setup, log.log._replace(batches=batches), log_start=log_start, recovery_point=recovery_point)
    segment_at = {s.base: s for s in (*log.segments[:-1], whole)}
    segments = (segment_at.get(base) or log_segment.new_segment(log.config, base, now) for base in loaded.segments)
    return log._replace(log=loaded, segments=tuple(log_segment.rebuild_index(log.config, s) for s in segments))

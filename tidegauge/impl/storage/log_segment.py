"""LogSegment: batches of one file with their index, and when it is time for the next file.

Rules of this file

1. One index entry is made when more than index.interval.bytes were appended since the last: for the batch that comes then.
2. A truncation takes the whole batch that holds the offset. Recovery builds the index anew from the batches.
3. Sizes come with the batches: this file does not know what a record takes.
4. Source: org.apache.kafka.storage.internals.log.LogSegment.
"""

from typing import NamedTuple

from tidegauge.impl.messages import Batch
from tidegauge.impl.replica_settings import DEFAULTS, ReplicaSettings
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.storage import offset_index
from tidegauge.impl.storage.offset_index import OffsetIndex


class LogConfig(NamedTuple):
    """The settings of one topic's log, under their topic names."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3_600_000
    index_interval_bytes: int = 4096
    segment_index_bytes: int = 10 << 20
    retention_bytes: int = -1
    retention_ms: int = 7 * 24 * 3_600_000


def config_of(settings: ReplicaSettings = DEFAULTS) -> LogConfig:
    """Return the log settings of a topic that has none of its own."""
    return LogConfig(
        settings.number("log.segment.bytes"),
        settings.number("log.roll.ms"),
        settings.number("log.index.interval.bytes"),
        settings.number("log.index.size.max.bytes"),
        settings.number("log.retention.bytes"),
        settings.number("log.retention.ms"),
    )


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
        or not offset_index.can_append_offset(segment.offsets, batches[-1].batch.last)
    )


def append_batches(config: LogConfig, segment: LogSegment, batches: tuple[SizedBatch, ...]) -> LogSegment:
    """Append, making an index entry where one is due. LogSegment#append."""
    index, since, position = segment.offsets, segment.bytes_since_last_index_entry, segment.size
    for batch in batches:
        # The entry is made before the batch is added: it names the position where this batch starts.
        if since > config.index_interval_bytes:
            index, since = offset_index.append_entry(index, batch.batch.last, position), 0
        position += batch.size
        since += batch.size
    first = segment.first_timestamp if segment.first_timestamp != UNDEFINED else batches[0].timestamp
    return segment._replace(
        offsets=index,
        batches=segment.batches + batches,
        bytes_since_last_index_entry=since,
        first_timestamp=first,
    )


def rebuild_index(config: LogConfig, segment: LogSegment) -> LogSegment:
    """Build the index from the batches. LogSegment#recover."""
    empty = new_segment(config, segment.base, segment.created_ms)
    return append_batches(config, empty, segment.batches) if segment.batches else empty


def translate_offset(segment: LogSegment, offset: int) -> tuple[Batch, int, int] | None:
    """Return the first batch that reaches `offset`, its position and the number of batches scanned. None: there is none.

    LogSegment#translateOffset: the index gives the position where the scan begins.
    """
    begin, position, scanned = offset_index.lookup(segment.offsets, offset).position, 0, 0
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
        offsets=offset_index.truncate_index(segment.offsets, offset),
        batches=remaining,
        bytes_since_last_index_entry=0,
        first_timestamp=segment.first_timestamp if remaining else UNDEFINED,
    )

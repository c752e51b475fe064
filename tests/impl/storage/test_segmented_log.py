"""Segments, the sparse index, retention, recovery."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tidegauge.impl.errors import IllegalArgumentError, InvalidOffsetError, UnexpectedAppendOffsetError
from tidegauge.impl.messages import Batch
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica_settings import DEFAULTS
from tidegauge.impl.storage import log as log_
from tidegauge.impl.storage import segmented_log
from tidegauge.impl.storage import segmented_log as s
from tidegauge.impl.storage.segmented_log import (
    LogConfig,
    OffsetIndex,
    OffsetPosition,
    SegmentedLog,
    SizedBatch,
    new_segment,
)

SETUP = Setup()
SMALL = LogConfig(segment_bytes=300, index_interval_bytes=100, retention_ms=-1)


def size_of(batch: Batch) -> int:
    return 10 * (batch.last - batch.base + 1)


def appended(log: SegmentedLog, *records: int, now: int = 0) -> SegmentedLog:
    for n in records:
        log, _ = s.append_as_leader(SETUP, log, n, 1, size_of, now)
    return log


def bases(log: SegmentedLog) -> list[int]:
    return [segment.base for segment in log.segments]


def committed(log: SegmentedLog) -> SegmentedLog:
    return log._replace(log=log_.update_high_watermark(SETUP, log.log, log.log.end))


# The index


def test_a_look_up_finds_the_largest_entry_at_or_below() -> None:
    """Below the first, the start of the segment."""
    index = segmented_log.append_entry(segmented_log.append_entry(OffsetIndex(100), 110, 40), 120, 80)
    found = [segmented_log.lookup(index, target) for target in (100, 109, 110, 119, 120, 999)]
    assert found == [(100, 0), (100, 0), (110, 40), (110, 40), (120, 80), (120, 80)]


def test_an_index_refuses_what_kafka_refuses() -> None:
    """No room; out of reach of 32 bits; not above the last entry."""
    one = segmented_log.append_entry(OffsetIndex(100, max_bytes=8), 110, 0)
    assert one.is_full
    with pytest.raises(IllegalArgumentError, match="full"):
        segmented_log.append_entry(one, 120, 1)
    for offset in (99, 100 + (1 << 31)):
        with pytest.raises(IllegalArgumentError, match="32 bits"):
            segmented_log.append_entry(OffsetIndex(100), offset, 0)
    with pytest.raises(InvalidOffsetError):
        segmented_log.append_entry(one._replace(max_bytes=80), 110, 1)


@given(st.lists(st.integers(1, 5), max_size=20), st.integers(0, 120))
def test_a_truncated_index_answers_below_the_truncation_as_before(steps: list[int], truncated: int) -> None:
    """And has no entry at or above it."""
    index = OffsetIndex(0)
    for number in range(1, len(steps) + 1):
        index = segmented_log.append_entry(index, sum(steps[:number]), number)
    shorter = segmented_log.truncate_index(index, truncated)
    assert all(entry.offset < truncated for entry in shorter.entries)
    assert all(segmented_log.lookup(shorter, t) == segmented_log.lookup(index, t) for t in range(truncated))


def test_an_entry_is_made_when_enough_bytes_came_since_the_last() -> None:
    """For the batch that comes then, with the position it starts at."""
    log = appended(s.empty_log(SMALL._replace(segment_bytes=10_000), 0), 5, 5, 1, 5, 5, 1)
    entries = log.segments[0].offsets.entries
    assert entries[0] == OffsetPosition(15, 110)


# Rolling


def test_a_segment_rolls_before_it_would_grow_too_large() -> None:
    """Exactly full is not too large."""
    log = appended(s.empty_log(SMALL, 0), 15, 15)
    assert bases(log) == [0]
    assert bases(appended(log, 1)) == [0, 30]


def test_a_segment_rolls_by_age_when_it_is_not_empty() -> None:
    """Its age counts from its first record's time; an empty one has none to roll for."""
    aging = SMALL._replace(segment_ms=100)
    empty = s.empty_log(aging, 0)
    first = appended(empty, 1, now=500)
    assert bases(first) == [0]
    assert bases(appended(first, 1, now=600)) == [0]
    assert bases(appended(first, 1, now=601)) == [0, 1]


def test_a_segment_rolls_when_its_index_is_full_or_cannot_reach() -> None:
    """Kafka keeps offsets relative to the base in 32 bits."""
    log = appended(s.empty_log(SMALL._replace(segment_index_bytes=8, segment_bytes=10_000), 0), 11, 1, 1)
    assert bases(log) == [0, 12]
    far = Batch(1 << 31, 1 << 31, 1)
    gap, _ = s.append_as_follower(SETUP, appended(s.empty_log(SMALL, 0), 1), (far,), 1, size_of, 0)
    assert bases(gap) == [0, 1 << 31]
    only, _ = s.append_as_follower(SETUP, s.empty_log(SMALL, 0), (far,), 1, size_of, 0)
    assert bases(only) == [0, 1 << 31]
    assert bases(s.roll(s.empty_log(SMALL, 0), 5)) == [0]


def test_a_refused_append_rolls_nothing() -> None:
    """It is judged before the segment is chosen; skipped batches write nothing either."""
    log = appended(s.empty_log(SMALL, 0), 15, 15)
    with pytest.raises(UnexpectedAppendOffsetError):
        s.append_as_follower(SETUP, log, (Batch(5, 6, 1),), 1, size_of, 0)
    assert s.append_as_follower(SETUP, log, (Batch(30, 31, 9),), 1, size_of, 0)[0] == log


# Look-up and truncates


def test_a_batch_is_found_through_the_index() -> None:
    """Its segment and position; in a gap the next one; none above the end or before the first segment."""
    log = appended(s.empty_log(SMALL, 0), 11, 1, 1, 17, 5)
    assert [s.find_position(log, o) for o in (0, 10, 11, 12, 13, 30, 34, 35)] == [
        (0, 0),
        (0, 0),
        (0, 110),
        (0, 120),
        (0, 130),
        (30, 0),
        (30, 0),
        None,
    ]
    found = segmented_log.translate_offset(log.segments[0], 13)
    assert found is not None
    assert found[2] < len(log.segments[0].batches)
    later = s.truncate_fully_and_start_at(log, 50, 0)
    assert s.find_position(later, 49) is None


def test_a_truncation_drops_segments_and_the_entries_above_it() -> None:
    """A truncation below the first segment starts anew there."""
    log = appended(s.empty_log(SMALL, 0), 11, 1, 1, 17, 5)
    truncated, did = s.truncate_to(SETUP, log, 12, 0)
    assert did
    assert (bases(truncated), truncated.log.end, truncated.segments[0].offsets.entries) == (
        [0],
        12,
        (OffsetPosition(11, 110),),
    )
    assert truncated.segments[0].bytes_since_last_index_entry == 0
    same, did = s.truncate_to(SETUP, log, 99, 0)
    assert (same, did) == (log, False)
    later = s.truncate_fully_and_start_at(log, 50, 7)
    again, _ = s.truncate_to(SETUP, appended(later, 3), 40, 7)
    assert (bases(again), again.log.start, again.log.end) == ([40], 40, 40)


# Retention


def test_retention_by_size_keeps_at_least_that_much() -> None:
    """The oldest go, below the high watermark only; the log start follows."""
    log = appended(s.empty_log(SMALL._replace(retention_bytes=500), 0), 30, 30, 30)
    assert s.delete_old_segments(SETUP, log, 0) == (log, 0)
    shorter, deleted = s.delete_old_segments(SETUP, committed(log), 0)
    assert (deleted, bases(shorter), shorter.log.start) == (1, [30, 60], 30)
    assert s.delete_old_segments(SETUP, shorter, 0)[1] == 0


def test_retention_by_age_may_empty_a_log() -> None:
    """A new segment is rolled first, so that one stays."""
    log = committed(appended(s.empty_log(SMALL._replace(retention_ms=1000), 0), 30, 30))
    assert s.delete_old_segments(SETUP, log, 1000)[1] == 0
    emptied, deleted = s.delete_old_segments(SETUP, log, 1001)
    assert (deleted, bases(emptied), emptied.log.start, emptied.log.end) == (2, [60], 60, 60)
    assert s.delete_old_segments(SETUP, emptied, 9999)[1] == 0


def test_deleted_records_go_with_whole_segments() -> None:
    """The log start moves at once, the segments later; the last one stays."""
    log = s.delete_records(SETUP, committed(appended(s.empty_log(SMALL, 0), 30, 30, 5)), 45)
    assert (log.log.start, bases(log)) == (45, [0, 30, 60])
    after, deleted = s.delete_old_segments(SETUP, log, 0)
    assert (deleted, bases(after), after.log.start) == (1, [30, 60], 45)
    everything = s.delete_records(SETUP, log, 65)
    assert bases(s.delete_old_segments(SETUP, everything, 0)[0]) == [60]


def test_a_tiered_log_keeps_its_start() -> None:
    """What is deleted here is in remote storage."""
    tiered = s.empty_log(SMALL._replace(retention_bytes=0), 0, tiered=True)
    log, deleted = s.delete_old_segments(SETUP, committed(appended(tiered, 30, 30)), 0)
    assert (deleted, log.log.start, bases(log)) == (2, 0, [60])


# Restart


def test_a_crash_that_tears_the_last_batch_loses_it() -> None:
    """The rest is there, with an index built anew."""
    log = appended(s.empty_log(SMALL, 0), 11, 1, 1, 17, 5, 5)
    after = s.recover(SETUP, log, 1, 0)
    assert (after.log.end, bases(after)) == (35, [0, 30])
    assert after.segments[0] == log.segments[0]
    assert list(after.log.cache.epochs) == [1]
    old = s.recover(SETUP, log, 0, 9, log_start=70)
    assert (bases(old), old.log.start, old.log.end) == ([70], 70, 70)
    assert s.recover(SETUP, log, 9, 0).log.end == 30


def test_a_log_begins_with_the_defaults_of_a_broker() -> None:
    """And a new segment with what it is given."""
    sizes = ("log.segment.bytes", "log.roll.ms", "log.index.interval.bytes", "log.index.size.max.bytes")
    assert LogConfig(*(DEFAULTS.number(name) for name in (*sizes, "log.retention.bytes", "log.retention.ms"))) == LogConfig()
    assert new_segment(SMALL, 5, 7).largest_timestamp == 7
    assert segmented_log.rebuild_index(SMALL, new_segment(SMALL, 5, 7)) == new_segment(SMALL, 5, 7)
    assert segmented_log.should_roll(SMALL, new_segment(SMALL, 0, 0), (SizedBatch(Batch(0, 0, 0), 301),), 0)


class SegmentedLogs(RuleBasedStateMachine):
    """Appends, truncates, retention, crashes: files and log never disagree, and every batch is found where it lies."""

    def __init__(self) -> None:
        super().__init__()
        self.log = s.empty_log(SMALL._replace(retention_bytes=600), 0)
        self.epoch = 0

    @rule(records=st.integers(1, 25))
    def append(self, records: int) -> None:
        self.log, _ = s.append_as_leader(SETUP, self.log, records, self.epoch, size_of, 0)

    @rule(gap=st.integers(0, 40), records=st.integers(1, 5))
    def replicate(self, gap: int, records: int) -> None:
        first = self.log.log.end + gap
        batch = Batch(first, first + records - 1, self.epoch)
        self.log, _ = s.append_as_follower(SETUP, self.log, (batch,), self.epoch, size_of, 0)

    @rule()
    def elect(self) -> None:
        self.epoch += 1

    @rule(share=st.floats(0, 1))
    def commit(self, share: float) -> None:
        hw = int(self.log.log.end * share)
        self.log = self.log._replace(log=log_.update_high_watermark(SETUP, self.log.log, hw))

    @rule(back=st.integers(0, 60))
    def truncated(self, back: int) -> None:
        self.log, _ = s.truncate_to(SETUP, self.log, max(0, self.log.log.end - back), 0)

    @rule()
    def roll(self) -> None:
        self.log = s.roll(self.log, 0)

    @rule()
    def retain(self) -> None:
        self.log, _ = s.delete_old_segments(SETUP, self.log, 0)

    @precondition(lambda self: self.log.log.start < self.log.log.hw)
    @rule()
    def delete(self) -> None:
        self.log = s.delete_records(SETUP, self.log, self.log.log.hw)

    @rule(torn=st.integers(0, 2))
    def crash(self, torn: int) -> None:
        self.log = s.recover(SETUP, self.log, torn, 0, log_start=self.log.log.start)

    @invariant()
    def the_files_hold_the_log(self) -> None:
        assert tuple(segment.base for segment in self.log.segments) == self.log.log.segments
        assert tuple(b.batch for segment in self.log.segments for b in segment.batches) == self.log.log.batches

    @invariant()
    def every_offset_is_found(self) -> None:
        for segment in self.log.segments:
            position = 0
            for sized in segment.batches:
                assert s.find_position(self.log, sized.batch.last) == (segment.base, position)
                position += sized.size

    @invariant()
    def no_index_entry_lies(self) -> None:
        for segment in self.log.segments:
            starts = {sum(b.size for b in segment.batches[:i]): b.batch.last for i, b in enumerate(segment.batches)}
            assert all(starts[entry.position] == entry.offset for entry in segment.offsets.entries)

    @invariant()
    def bounds_hold(self) -> None:
        log = self.log.log
        assert log.segments[0] <= log.start <= log.end
        assert all(segment.size <= 300 for segment in self.log.segments)


TestSegmentedLogs = SegmentedLogs.TestCase

"""UnifiedLog as a value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegauge.impl.errors import (
    CorruptRecordError,
    IllegalArgumentError,
    OffsetOutOfRangeError,
    OffsetsOutOfOrderError,
    UnexpectedAppendOffsetError,
)
from tidegauge.impl.messages import Batch
from tidegauge.impl.profiles import FETCH_TRUNCATION, Setup
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.storage import epoch_cache
from tidegauge.impl.storage import log as l
from tidegauge.impl.storage.log import AppendInfo, Log

SETUP = Setup()
UNFILTERED = Setup(profile=FETCH_TRUNCATION._replace(batch_epoch_filter=False))


def written(*batches: tuple[int, int, int]) -> Log:
    log, _ = l.append_as_follower(SETUP, Log(), tuple(Batch(*batch) for batch in batches), 99)
    return log


FIVES = written((0, 4, 0), (5, 9, 1), (10, 14, 1))


def test_a_leader_stamps_its_epoch() -> None:
    """One batch at the log end, its epoch in the cache."""
    log, info = l.append_as_leader(SETUP, FIVES, 3, 4)
    assert (info, log.end) == (AppendInfo(15, 17, 4, 1), 18)
    assert log.cache.memory.pairs()[-1] == (4, 15)


def test_a_follower_stops_at_the_first_batch_of_a_later_epoch() -> None:
    """Everything from there on is skipped, even of an older epoch (KAFKA-18723)."""
    batches = (Batch(15, 15, 2), Batch(16, 16, 3), Batch(17, 17, 2))
    log, info = l.append_as_follower(SETUP, FIVES, batches, 2)
    assert (log.end, info.batches) == (16, 1)
    log, info = l.append_as_follower(UNFILTERED, FIVES, batches[:2], 2)
    assert log.end == 17


def test_a_skipped_batch_may_be_corrupt() -> None:
    """A checksum is looked at only in what is appended."""
    batches = (Batch(15, 15, 2), Batch(16, 16, 3))
    log, _ = l.append_as_follower(SETUP, FIVES, batches, 2, last_is_corrupt=True)
    assert log.end == 16
    with pytest.raises(CorruptRecordError):
        l.append_as_follower(SETUP, FIVES, batches, 3, last_is_corrupt=True)


def test_an_append_below_the_end_or_out_of_order_is_refused() -> None:
    """Only the last offsets must rise; a gap is accepted."""
    with pytest.raises(UnexpectedAppendOffsetError):
        l.append_as_follower(SETUP, FIVES, (Batch(14, 16, 1),), 1)
    with pytest.raises(OffsetsOutOfOrderError):
        l.append_as_follower(SETUP, FIVES, (Batch(15, 19, 1), Batch(16, 18, 1)), 1)
    log, _ = l.append_as_follower(SETUP, FIVES, (Batch(20, 22, 1), Batch(21, 25, 1)), 1)
    assert log.end == 26


def test_a_refused_epoch_leaves_the_cache_of_the_batches_before_it() -> None:
    """The cache learns of each batch before anything is written."""
    with pytest.raises(IllegalArgumentError) as thrown:
        l.append_as_follower(SETUP, FIVES, (Batch(15, 15, 2), Batch(16, 16, -1)), 9)
    left = thrown.value.left_behind
    assert left.end == 15
    assert left.cache.memory.pairs()[-1] == (2, 15)


def test_a_truncation_inside_a_batch_drops_it_and_keeps_the_truncation_as_log_end() -> None:
    """The next append then starts at the leader's batch base."""
    log, truncated = l.truncate_to(SETUP, FIVES._replace(hw=12), 12)
    assert truncated
    assert (log.end, log.hw, log.batches[-1]) == (12, 12, Batch(5, 9, 1))


def test_a_truncation_at_the_end_only_removes_entries_without_records() -> None:
    """An entry that starts at the log end goes (KAFKA-10706), nothing else changes."""
    elected = l.assign_epoch_start_offset(SETUP, FIVES, 7, 15)
    log, truncated = l.truncate_to(SETUP, elected, 15)
    assert not truncated
    assert log.cache.memory == FIVES.cache.memory
    assert log.batches == FIVES.batches


def test_a_full_truncation_may_raise_the_high_watermark() -> None:
    """Log start, high watermark and end are all where it starts again."""
    log = l.truncate_fully_and_start_at(FIVES, 40)
    assert (log.start, log.hw, log.end, log.batches, log.cache.epochs) == (40, 40, 40, (), ())


def test_a_truncation_below_the_first_segment_is_a_full_one() -> None:
    """UnifiedLog#truncateTo below the base of the first local segment."""
    log = l.truncate_fully_and_start_at(FIVES, 40)
    log, _ = l.truncate_to(SETUP, log, 30)
    assert (log.start, log.hw, log.end, log.segments) == (30, 30, 30, (30,))


def test_a_truncation_at_the_first_segments_base_is_not_a_full_one() -> None:
    """It empties the log all the same, but the cache's file is written later."""
    log, truncated = l.truncate_to(SETUP, FIVES, 0)
    assert truncated
    assert (log.start, log.end, log.batches, log.cache.epochs) == (0, 0, (), ())
    assert log.cache.disk == FIVES.cache.memory
    assert l.truncate_fully_and_start_at(FIVES, 0).cache.disk.epochs == ()


def test_the_same_high_watermark_is_set_again_on_a_newer_segment() -> None:
    """KAFKA-9196: otherwise a reader bounded by it looks at the old segment. Only where both segments are known."""
    rolled = FIVES._replace(hw=15, hw_segment=0, segments=(0, 15))
    moved, old = l.maybe_increment_high_watermark(SETUP, rolled, 15, located=True)
    assert (moved.hw_segment, old) == (15, 15)
    assert l.maybe_increment_high_watermark(SETUP, moved, 15, located=True) == (moved, None)
    assert l.maybe_increment_high_watermark(SETUP, rolled, 15) == (rolled, None)
    unknown = rolled._replace(hw_segment=UNDEFINED)
    older = Setup(profile=FETCH_TRUNCATION._replace(hw_rounded_to_batches=False))
    assert l.maybe_increment_high_watermark(older, unknown, 15, located=True) == (unknown, None)


def test_a_newer_segment_does_not_lower_the_high_watermark() -> None:
    """Whatever segment it was last found in."""
    stale = FIVES._replace(hw=15, hw_segment=0, segments=(0, 10))
    assert l.maybe_increment_high_watermark(SETUP, stale, 12, located=True) == (stale, None)


def test_a_look_up_rounds_the_high_watermark_to_a_batch() -> None:
    """In 4.x an offset inside a batch becomes its base: the high watermark falls (KAFKA-17803)."""
    log = l.update_high_watermark(SETUP, FIVES, 7)
    assert l.locate_high_watermark(SETUP, log).hw == 5
    older = Setup(profile=FETCH_TRUNCATION._replace(hw_rounded_to_batches=False))
    assert l.locate_high_watermark(older, log).hw == 7


def test_a_segment_that_is_rolled_again_tells_the_position_of_the_high_watermark() -> None:
    """So a gap behind it does not move it, as it moves one of which only the offset is known."""
    log, _ = l.maybe_increment_high_watermark(SETUP, written((0, 4, 0)), 5)
    rolled = l.roll(l.roll(log)._replace(hw_segment=UNDEFINED))
    assert rolled.segments == (0, 5)
    gap, _ = l.append_as_follower(SETUP, rolled, (Batch(8, 9, 0),), 0)
    assert l.locate_high_watermark(SETUP, gap).hw == 5
    assert l.locate_high_watermark(SETUP, gap._replace(hw_segment=UNDEFINED)).hw == 8


def test_a_high_watermark_raised_to_the_start_of_an_empty_log_is_only_an_offset() -> None:
    """A gap behind it moves it; at the log end by its own value it has a position."""
    empty = l.truncate_fully_and_start_at(Log(), 5)
    for value, hw in ((3, 8), (5, 5)):
        updated = l.update_high_watermark(SETUP, empty, value)
        gap, _ = l.append_as_follower(SETUP, updated, (Batch(8, 9, 0),), 0)
        assert l.locate_high_watermark(SETUP, gap).hw == hw


def test_the_log_start_may_not_pass_the_high_watermark() -> None:
    """It is tested before whether the log start would move at all."""
    log = l.update_high_watermark(SETUP, FIVES, 10)
    with pytest.raises(OffsetOutOfRangeError):
        l.maybe_increment_log_start(SETUP, log, 11)
    moved, _ = l.maybe_increment_log_start(SETUP, log, 6)
    assert (moved.start, moved.cache.memory.pairs()) == (6, ((1, 6),))


def test_a_read_returns_whole_batches_and_at_least_one() -> None:
    """However small the limit, the batch that holds the offset comes back."""
    assert l.read(FIVES, 7, 15, 1) == (Batch(5, 9, 1),)
    assert l.read(FIVES, 7, 15, 99) == (Batch(5, 9, 1), Batch(10, 14, 1))
    assert l.read(FIVES, 15, 15, 99) == ()
    with pytest.raises(OffsetOutOfRangeError):
        l.read(FIVES, 16, 16, 99)


def test_a_read_stops_before_the_batch_that_would_pass_its_limit() -> None:
    """Counted from the offset that is asked."""
    assert l.read(FIVES, 5, 15, 10) == (Batch(5, 9, 1), Batch(10, 14, 1))
    assert l.read(FIVES, 5, 15, 9) == (Batch(5, 9, 1),)


def test_a_read_at_its_bound_is_empty_even_inside_a_batch() -> None:
    """Where the high watermark is not rounded: what begins below it is read, an offset at it waits."""
    assert l.read(FIVES, 11, 12, 99) == (Batch(10, 14, 1),)
    assert l.read(FIVES, 12, 12, 99) == ()


def test_a_position_is_found_wherever_the_segments_reach() -> None:
    """In a gap it is that of the next batch; below the log start too (seen on UnifiedLog of 4.1.1)."""
    raised = written((0, 4, 0), (10, 14, 1))._replace(start=3)
    assert [l.batch_base_at(raised, offset) for offset in (-1, 2, 3, 7, 10, 15, 16)] == [None, 0, 0, 10, 10, 15, None]


def test_a_high_watermark_that_the_log_start_has_passed_is_rounded_again() -> None:
    """As UnifiedLog of 4.1.1 does, where DeleteRecords ends inside a batch: each raise to 6 is one from 5."""
    log = l.update_high_watermark(SETUP, written((0, 4, 0), (5, 9, 0), (10, 14, 0)), 8)
    log, _ = l.maybe_increment_log_start(SETUP, log, 7)
    raises = []
    for hw in (5, 6, 6):
        log, old = l.maybe_increment_high_watermark(SETUP, log, hw)
        raises.append((log.hw, old))
    assert raises == [(5, None), (6, 5), (6, 5)]


def test_a_read_stays_in_one_segment() -> None:
    """A roll bounds what one response carries."""
    rolled, _ = l.append_as_leader(SETUP, l.roll(FIVES), 2, 1)
    assert l.read(rolled, 12, 17, 99) == (Batch(10, 14, 1),)


def test_a_restart_forgets_an_epoch_without_records() -> None:
    """A leader that never wrote loses its entry: the cache is truncated at the log end when it is loaded."""
    elected = l.assign_epoch_start_offset(SETUP, FIVES, 7, 15)
    assert l.load(SETUP, elected).cache.memory == FIVES.cache.memory


def test_a_restart_takes_the_checkpointed_high_watermark_clamped() -> None:
    """Never above the log end, never below the log start."""
    loaded = l.load(SETUP, FIVES)
    assert [l.apply_checkpoint(SETUP, loaded, hw).hw for hw in (0, 7, 99)] == [0, 7, 15]


def test_a_log_older_than_its_start_checkpoint_begins_again_there() -> None:
    """Everything is dropped when the log ends before the checkpointed log start."""
    loaded = l.load(SETUP, FIVES, log_start=20)
    assert (loaded.start, loaded.end, loaded.hw, loaded.segments) == (20, 20, 20, (20,))


def test_a_high_watermark_above_the_log_end_is_refused() -> None:
    """Nobody may expose what is not there."""
    with pytest.raises(IllegalArgumentError, match="log end 15; seen 16"):
        l.maybe_increment_high_watermark(SETUP, FIVES, 16)


def test_a_high_watermark_outside_the_local_log_is_not_looked_up() -> None:
    """Its segment went to remote storage: the offset stays as it is."""
    remote = FIVES._replace(hw=3, segments=(5,))
    assert l.locate_high_watermark(SETUP, remote) == remote


def test_segments_below_the_log_start_are_deleted() -> None:
    """Those whose successor starts at or below it; the active one stays, whatever the log start."""
    rolled = l.roll(written((0, 4, 0)), 5)
    rolled, _ = l.append_as_leader(SETUP, rolled, 5, 1)
    rolled = l.roll(rolled)._replace(hw=10)
    assert rolled.segments == (0, 5, 10)
    for start, segments in ((4, (0, 5, 10)), (5, (5, 10)), (10, (10,))):
        raised, _ = l.maybe_increment_log_start(SETUP, rolled, start)
        kept, deleted = l.delete_old_segments(raised)
        assert (kept.segments, deleted) == (segments, 3 - len(segments))
        assert all(batch.base >= segments[0] for batch in kept.batches)
    assert l.roll(rolled).segments == rolled.segments


def test_what_was_flushed_is_recovered_and_no_further() -> None:
    """The recovery point is the log end after a flush, the offset flushed to, never below what it was."""
    flushed = l.flush(FIVES, 10)
    assert [flushed.recovery_point, l.flush(flushed, 5).recovery_point, l.flush(flushed).recovery_point] == [
        10,
        10,
        15,
    ]
    truncated, _ = l.truncate_to(SETUP, FIVES, 5)
    assert truncated.cache.disk != truncated.cache.memory
    assert l.flush_cache(truncated).cache.disk == truncated.cache.memory


def test_recovery_adds_the_epochs_that_the_cache_file_lacks() -> None:
    """Only after a crash, and only from the segment of the recovery point on."""
    lost = FIVES._replace(cache=epoch_cache.clear_and_flush(FIVES.cache))
    assert l.load(SETUP, lost).cache.memory.pairs() == ((0, 0), (1, 5))
    assert l.load(SETUP, lost, clean=True).cache.memory.pairs() == ()
    rolled = lost._replace(segments=(0, 10))
    assert l.load(SETUP, rolled, recovery_point=10).cache.memory.pairs() == ((1, 10),)


@given(st.lists(st.integers(1, 3), max_size=8), st.integers(0, 30), st.integers(0, 30))
def test_a_truncation_keeps_the_high_watermark_in_the_log(sizes: list[int], hw: int, target: int) -> None:
    """Log start <= high watermark <= log end after any truncation."""
    log = Log()
    for epoch, size in enumerate(sizes):
        log, _ = l.append_as_leader(SETUP, log, size, epoch // 2)
    log, _ = l.truncate_to(SETUP, l.update_high_watermark(SETUP, log, hw), target)
    assert log.start <= log.hw <= log.end
    assert all(start < max(log.end, 1) for start in log.cache.starts)


def test_an_offset_before_every_segment_belongs_to_the_first() -> None:
    """It is out of range there; whoever waits for it must not be told that it lies in the newest."""
    log = Log(segments=(5, 8))
    assert [l.segment_of(log, offset) for offset in (3, 5, 7, 8, 20)] == [5, 5, 5, 8, 8]

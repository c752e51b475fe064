"""LeaderEpochFileCache as a value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegauge.impl.errors import IllegalArgumentError
from tidegauge.impl.profiles import FETCH_TRUNCATION, Setup
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.storage import epoch_cache as ec
from tidegauge.impl.storage.epoch_cache import EpochCache, EpochEntries

SETUP = Setup()
AT_ONCE = Setup(profile=FETCH_TRUNCATION._replace(cache_truncation_queued=False))
ENTRIES = EpochEntries((2, 4, 7), (10, 20, 35))
CACHE = EpochCache(ENTRIES, ENTRIES)


@pytest.mark.parametrize(
    ("epoch", "start", "expected"),
    [
        (7, 35, ((2, 10), (4, 20), (7, 35))),
        (7, 40, ((2, 10), (4, 20), (7, 35))),
        (7, 30, ((2, 10), (4, 20), (7, 30))),
        (9, 50, ((2, 10), (4, 20), (7, 35), (9, 50))),
        (9, 35, ((2, 10), (4, 20), (9, 35))),
        (9, 15, ((2, 10), (9, 15))),
        (5, 60, ((2, 10), (4, 20), (5, 60))),
        (3, 12, ((2, 10), (3, 12))),
    ],
)
def test_assign_evicts_what_conflicts(epoch: int, start: int, expected: tuple[tuple[int, int], ...]) -> None:
    """Entries whose epoch or start is not below the new one go; the file follows at once."""
    cache = ec.assign(SETUP, CACHE, epoch, start)
    assert cache.memory.pairs() == expected
    assert cache.disk == cache.memory


@pytest.mark.parametrize(
    ("end", "expected"),
    [(50, 3), (36, 3), (35, 2), (34, 2), (20, 1), (10, 0), (0, 0), (-1, 3)],
)
def test_truncating_the_end_removes_entries_at_and_above(end: int, expected: int) -> None:
    """An entry at the truncation goes too (KAFKA-10706); a negative offset truncates nothing."""
    assert len(ec.truncate_from_end(SETUP, CACHE, end).epochs) == expected


@pytest.mark.parametrize(
    ("start", "expected"),
    [(5, ((2, 10), (4, 20), (7, 35))), (11, ((2, 11), (4, 20), (7, 35))), (20, ((4, 20), (7, 35))), (60, ((7, 60),))],
)
def test_truncating_the_start_raises_the_entry_that_covers_it(start: int, expected: tuple[tuple[int, int], ...]) -> None:
    """The last entry at or below a new log start is kept with its start raised."""
    assert ec.truncate_from_start(SETUP, CACHE, start).memory.pairs() == expected


def test_a_crash_brings_back_what_a_queued_truncation_removed() -> None:
    """Since KAFKA-16541 the file is written later: a crash before that finds the old entries."""
    truncated = ec.truncate_from_end(SETUP, CACHE, 20)
    assert truncated.queued
    assert ec.reload(SETUP, truncated).memory == ENTRIES
    assert ec.reload(SETUP, ec.flush(truncated)).memory == truncated.memory


def test_what_was_written_is_not_queued_any_more() -> None:
    """Neither after the scheduler ran nor after a restart; nothing queued, nothing changes."""
    truncated = ec.truncate_from_end(SETUP, CACHE, 20)
    assert [ec.flush(truncated).queued, ec.reload(SETUP, truncated).queued] == [False, False]
    assert ec.flush(CACHE) == CACHE


def test_assigning_nothing_writes_nothing() -> None:
    """Entries handed in together are written once, needed or not; no entries leave a queued file alone."""
    truncated = ec.truncate_from_end(SETUP, CACHE, 20)
    assert ec.assign_all(SETUP, truncated, ()) == truncated
    assert ec.assign_all(SETUP, truncated, ((2, 10),)).disk == truncated.memory


def test_before_that_change_a_truncation_was_written_at_once() -> None:
    """With the older switch nothing is queued and nothing comes back."""
    truncated = ec.truncate_from_end(AT_ONCE, CACHE, 20)
    assert not truncated.queued
    assert ec.reload(AT_ONCE, truncated).memory == truncated.memory


def test_clearing_memory_leaves_the_file() -> None:
    """clear is undone by a reload, clear_and_flush is not."""
    assert ec.reload(SETUP, ec.clear(CACHE)).memory == ENTRIES
    assert ec.reload(SETUP, ec.clear_and_flush(CACHE)).memory == EpochEntries()


def test_the_neighbours_of_an_epoch_are_those_in_the_cache() -> None:
    """Before and after it, whether it is there or not; without an epoch, before the latest."""
    assert [ec.previous_epoch(CACHE, epoch) for epoch in (2, 3, 4, 7, 9)] == [UNDEFINED, 2, 2, 4, 7]
    assert [ec.next_epoch(CACHE, epoch) for epoch in (1, 2, 4, 5, 7)] == [2, 4, 7, 7, UNDEFINED]
    assert ec.previous_epoch(CACHE) == 4
    assert ec.previous_epoch(EpochCache(EpochEntries((2,), (10,)))) == UNDEFINED
    assert [ec.earliest_entry(CACHE), ec.earliest_entry(EpochCache())] == [(2, 10), None]


def test_an_offset_has_the_epoch_of_the_last_entry_at_or_below_it() -> None:
    assert [ec.epoch_for_offset(SETUP, CACHE, offset) for offset in (9, 10, 19, 20, 99)] == [UNDEFINED, 2, 2, 4, 7]


@pytest.mark.parametrize(("epoch", "start"), [(-1, 0), (0, -1)])
def test_negative_entries_are_refused(epoch: int, start: int) -> None:
    """A batch without an epoch, or a negative offset, is an IllegalArgumentException."""
    with pytest.raises(IllegalArgumentError, match="seen"):
        ec.assign(SETUP, CACHE, epoch, start)


OPERATIONS = st.one_of(
    st.tuples(st.just("assign"), st.integers(0, 9), st.integers(0, 40)),
    st.tuples(st.just("end"), st.integers(-1, 40), st.just(0)),
    st.tuples(st.just("start"), st.integers(0, 40), st.just(0)),
    st.tuples(st.sampled_from(["flush", "reload"]), st.just(0), st.just(0)),
)


@given(st.lists(OPERATIONS, max_size=30))
def test_a_cache_rises_strictly_in_epochs_and_starts(operations: list[tuple[str, int, int]]) -> None:
    """Whatever is done to it, in memory and on disk."""
    cache = EpochCache()
    for name, first, second in operations:
        match name:
            case "assign":
                cache = ec.assign(SETUP, cache, first, second)
            case "end":
                cache = ec.truncate_from_end(SETUP, cache, first)
            case "start":
                cache = ec.truncate_from_start(SETUP, cache, first)
            case "flush":
                cache = ec.flush(cache)
            case _:
                cache = ec.reload(SETUP, cache)
        for entries in (cache.memory, cache.disk):
            assert list(entries.epochs) == sorted(set(entries.epochs))
            assert list(entries.starts) == sorted(set(entries.starts))

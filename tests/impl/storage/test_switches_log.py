"""What each switch of a profile changes in logs and caches."""

from tests.impl.switches import LOG, TODAY, led, without
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.storage import epoch_cache
from tidegauge.impl.storage import log as log_
from tidegauge.impl.storage.epoch_cache import EpochCache, EpochEntries


def test_before_kafka_7415_conflicts_in_the_cache_were_ignored() -> None:
    """Only a later epoch at no lower offset was added; below the first entry nothing was known."""
    setup, cache = without(strict_cache=False), EpochCache(EpochEntries((2, 4), (10, 20)))
    for epoch, start in ((3, 30), (5, 15), (4, 5)):
        assert epoch_cache.assign(setup, cache, epoch, start) == cache
    added = epoch_cache.assign(setup, cache, 5, 20)
    assert added.memory.pairs() == ((2, 10), (4, 20), (5, 20))
    assert epoch_cache.end_offset_for(setup, cache, 50, 1) == (UNDEFINED, UNDEFINED)
    assert epoch_cache.end_offset_for(setup, cache, 50, 2) == (2, 20)
    assert epoch_cache.end_offset_for(setup, EpochCache(), 0, 1) == (UNDEFINED, UNDEFINED)
    assert epoch_cache.assign(setup, EpochCache(), 3, 0).memory.pairs() == ((3, 0),)
    assert epoch_cache.end_offset_for(TODAY, cache, 50, 1) == (1, 10)


def test_before_kafka_7415_a_new_leader_did_not_mark_its_epoch() -> None:
    """S5: asked for the epoch before its own it has no response, and the follower truncates at its high watermark."""
    assert led(without(strict_cache=False)).log.cache.epochs == (0, 1)
    assert led(TODAY).log.cache.epochs == (0, 1, 2)


def test_a_truncation_that_truncates_nothing_once_kept_the_cache() -> None:
    """KAFKA-10706."""
    marked = log_.assign_epoch_start_offset(TODAY, LOG, 5, 10)
    assert log_.truncate_to(TODAY, marked, 10)[0].cache.epochs == (0, 1)
    older = without(truncation_clears_cache=False)
    assert log_.truncate_to(older, marked, 10) == (marked, False)
    assert log_.truncate_to(older, marked, 5)[0].end == 5


def test_a_truncation_once_left_the_high_watermark_above_the_log() -> None:
    """Up to 2.3, until the next response."""
    high = log_.update_high_watermark(TODAY, LOG, 10)
    assert [log_.truncate_to(s, high, 5)[0].hw for s in (TODAY, without(truncation_lowers_hw=False))] == [5, 10]

"""What each switch of a profile changes at a follower."""

import pytest

from tests.impl.switches import LOG, TODAY, without
from tidegauge.impl.errors import FatalExitError, UnexpectedAppendOffsetError
from tidegauge.impl.fetch import fetcher_thread as t
from tidegauge.impl.fetch.fetcher_thread import BrokerEndPoint, FetcherThread, InitialFetchState, PartitionResponse
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import Batch, FetchResponse, FetchResponseInFlight, ListOffsets
from tidegauge.impl.profiles import KIP320, Setup
from tidegauge.impl.releases import profile_of_release
from tidegauge.impl.replica import fetcher as f
from tidegauge.impl.replica.fetcher import Fetcher, PartitionFetchState
from tidegauge.impl.rules import FENCED_LEADER_EPOCH, NONE, UNDEFINED
from tidegauge.impl.storage import log as log_
from tidegauge.impl.storage.epoch_cache import EpochCache, EpochEntries
from tidegauge.impl.storage.log import Log
from tidegauge.impl.topic_partition import TopicPartition


def test_where_a_follower_starts_changed() -> None:
    """Its log end in 0.11, its high watermark up to 2.7, then its log end if the cache knows an epoch."""
    starts = [
        f.initial_fetch_offset(Setup(profile=profile_of_release(r)), LOG) for r in ("0.10.2", "0.11.0", "1.1.0", "2.8.0")
    ]
    assert starts == [5, 10, 5, 10]


def test_without_a_response_0_11_truncate_at_its_high_watermark_of_now() -> None:
    """Later releases truncate where the entry began, which then was the high watermark of its creation."""
    moved = Fetcher(log_.update_high_watermark(TODAY, LOG, 8), PartitionFetchState(5, 4, truncating=True))
    for release, end in (("0.11.0", 8), ("1.1.0", 5)):
        setup = Setup(profile=profile_of_release(release))
        entry = f.truncate_to_epoch_end_offset(setup, moved, 4, NONE, UNDEFINED, UNDEFINED).entry
        assert entry is not None
        assert entry.fetch_offset == end
        alone = f.truncate_to_high_watermark(setup, moved).entry
        assert alone is not None
        assert alone.fetch_offset == end


def test_an_epoch_below_the_own_cache_was_once_truncated_at_the_leaders_offset() -> None:
    """2.0.0 looked it up in vain (KAFKA-7415): its own first entry, at 5, was no bound."""
    log = Log(5, 12, 5, (Batch(5, 11, 3),), EpochCache(EpochEntries((3,), (5,)), EpochEntries((3,), (5,))), (5,))
    for setup, offset in ((Setup(profile=profile_of_release("2.0.0")), 8), (Setup(profile=profile_of_release("2.0.1")), 5)):
        fetcher = f.add_partition(setup, Fetcher(log), 4, 5)
        truncated = f.truncate_to_epoch_end_offset(setup, fetcher, 4, NONE, 2, 8)
        assert [call.offset for call in truncated.calls] == [offset]


def test_an_epoch_response_of_another_epoch_was_once_taken() -> None:
    """KAFKA-7786."""
    entry = Fetcher(LOG, PartitionFetchState(5, 4, truncating=True))
    late = [
        f.truncate_to_epoch_end_offset(Setup(profile=profile), entry, 3, NONE, 0, 3).log.end
        for profile in (KIP320, KIP320._replace(epoch_responses_checked=False))
    ]
    assert late == [10, 3]


def test_a_fenced_response_of_an_older_epoch_once_failed_the_partition() -> None:
    """Up to 2.4."""
    entry = Fetcher(LOG, PartitionFetchState(10, 4, 1))
    fenced = FetchResponseInFlight(3, 10, FetchResponse(FENCED_LEADER_EPOCH))
    for by_epoch in (True, False):
        setup = without(fences_by_epoch=by_epoch, response_epoch_checked=False)
        assert f.process_fetch_response(setup, entry, fenced).failed is not by_epoch


def test_an_unexpected_error_once_ended_the_thread() -> None:
    """KIP-461: now one partition fails."""
    wrong = FetchResponseInFlight(4, 10, FetchResponse(NONE, 9, 0, (Batch(3, 4, 4),)))
    entry = Fetcher(LOG, PartitionFetchState(10, 4, 1))
    setup = without(fails_partitions=False)
    with pytest.raises(UnexpectedAppendOffsetError):
        f.process_fetch_response(setup, entry, wrong)
    tp = TopicPartition("t", 0)
    logs, leader = FrozenMap([(tp, LOG)]), BrokerEndPoint(1)
    thread = t.add_partitions(setup, FetcherThread(leader, 0), logs, {tp: InitialFetchState(leader, 4, 10)}, {}).thread
    requests = t.build_fetch(thread, logs, 2, 0)
    done = t.process_fetch_response(
        setup, thread, logs, requests, FrozenMap([(tp, PartitionResponse(wrong.response))]), 0, 1000
    )
    assert done.thread.dead
    assert done.logs == logs
    negative = Fetcher(LOG, PartitionFetchState(-5, 4, truncating=True))
    assert f.truncate_to_high_watermark(TODAY, negative).failed
    with pytest.raises(Exception, match="truncation offset"):
        f.truncate_to_high_watermark(setup, negative)


def test_a_follower_ahead_of_its_leader_once_ended_the_broker() -> None:
    """Up to 2.0.0, if unclean election was disabled for the topic; enabled, it truncated."""
    old = Setup(profile=profile_of_release("2.0.0"))
    ahead = Fetcher(LOG, PartitionFetchState(10, 4, truncating=False))
    with pytest.raises(FatalExitError, match="the broker exits"):
        f.fetch_offset_and_truncate(old, ahead, 4, ListOffsets(0, 7))
    enabled = old._replace(unclean_leader_election_enable=True)
    for setup in (enabled, Setup(profile=profile_of_release("2.0.1"))):
        assert f.fetch_offset_and_truncate(setup, ahead, 4, ListOffsets(0, 7)).log.end == 7
    assert f.fetch_offset_and_truncate(old, ahead, 4, ListOffsets(0, 12)).log.end == 10


def test_a_diverging_response_once_raised_the_high_watermark_first() -> None:
    """S9, KAFKA-14704: records of the wrong lineage could be read until the truncation."""
    entry = Fetcher(LOG, PartitionFetchState(10, 4, 1))
    diverging = FetchResponseInFlight(4, 10, FetchResponse(NONE, 9, 0, (), 0, 5))
    today = f.process_fetch_response(TODAY, entry, diverging)
    older = f.process_fetch_response(without(applies_diverging=True, truncation_lowers_hw=False), entry, diverging)
    assert (today.log.hw, older.log.hw) == (5, 9)
    assert (today.log.end, older.log.end) == (5, 5)
    failing = FetchResponseInFlight(4, 10, FetchResponse(NONE, 2, 7, (), 0, 5))
    assert f.process_fetch_response(without(applies_diverging=True), entry, failing).log.end == 10


def test_an_empty_response_once_erased_the_last_fetched_epoch() -> None:
    """S11, KAFKA-15510: a divergence after it was not noticed."""
    entry = Fetcher(LOG, PartitionFetchState(10, 4, 1))
    empty = FetchResponseInFlight(4, 10, FetchResponse(NONE, 9, 0))
    epochs = [f.process_fetch_response(s, entry, empty).entry for s in (TODAY, without(keeps_last_epoch=False))]
    assert [e and e.last_fetched_epoch for e in epochs] == [1, UNDEFINED]


def test_a_back_off_that_ran_out_once_stayed_over() -> None:
    """Before 4.0 a truncation did not start it again."""
    tp = TopicPartition("t", 0)
    logs, leader = FrozenMap([(tp, LOG)]), BrokerEndPoint(1)
    thread = t.add_partitions(TODAY, FetcherThread(leader, 0), logs, {tp: InitialFetchState(leader, 4, 10)}, {}).thread
    thread = t.delay_partitions(thread, (tp,), 0, 1000)
    diverging = FrozenMap([(tp, PartitionResponse(FetchResponse(NONE, diverging_epoch=0, diverging_end=5)))])
    for restarts in (True, False):
        setup = without(delay_restarts=restarts)
        done = t.process_fetch_response(setup, thread, logs, t.build_fetch(thread, logs, 2, 1500), diverging, 1500, 1000)
        assert (tp in t.build_fetch(done.thread, done.logs, 2, 1600)) is not restarts

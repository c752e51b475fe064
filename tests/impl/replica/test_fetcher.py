"""The follower's side of a fetch."""

import pytest

from tidegauge.impl.errors import KAFKA_STORAGE_ERROR, IllegalStateError, UnexpectedAppendOffsetError
from tidegauge.impl.messages import Batch, FetchResponse, FetchResponseInFlight, ListOffsets
from tidegauge.impl.profiles import FETCH_TRUNCATION, HW_ONLY, Setup
from tidegauge.impl.replica import fetcher as f
from tidegauge.impl.replica.fetcher import Fetcher, PartitionFetchState, TruncationCall
from tidegauge.impl.rules import FENCED_LEADER_EPOCH, NONE, OFFSET_OUT_OF_RANGE, UNDEFINED, UNKNOWN_LEADER_EPOCH
from tidegauge.impl.storage.log import (
    Log,
    append_as_follower,
    assign_epoch_start_offset,
    truncate_fully_and_start_at,
    update_high_watermark,
)

SETUP = Setup()
BY_REQUEST = Setup(profile=FETCH_TRUNCATION._replace(truncation_on_fetch=False))
TO_HW = Setup(profile=HW_ONLY)
WRITTEN, _ = append_as_follower(SETUP, Log(), (Batch(0, 4, 0), Batch(5, 6, 1), Batch(7, 8, 3)), 9)
LOG = update_high_watermark(SETUP, WRITTEN, 5)
READY = Fetcher(LOG, PartitionFetchState(9, 4, 3))


def respond(
    response: FetchResponse, offset: int = 9, epoch: int = 4, offsets: ListOffsets | None = None
) -> FetchResponseInFlight:
    return FetchResponseInFlight(epoch, offset, response, offsets)


DATA = FetchResponse(NONE, 9, 0, (Batch(9, 9, 4),))


def test_a_new_entry_fetches_from_its_log_end_when_the_cache_knows_an_epoch() -> None:
    """Otherwise it first truncates, to its high watermark if nothing can be asked."""
    start = f.initial_fetch_offset(SETUP, LOG)
    assert f.add_partition(SETUP, Fetcher(LOG), 4, start).entry == PartitionFetchState(9, 4, 3)
    empty = f.add_partition(SETUP, Fetcher(Log()), 4, f.initial_fetch_offset(SETUP, Log()))
    assert empty.entry == PartitionFetchState(0, 4, truncating=True)
    assert f.maybe_truncate_alone(SETUP, empty).entry == PartitionFetchState(0, 4)


def test_before_kip_101_a_follower_truncates_at_its_own_high_watermark() -> None:
    """Records above it go, committed or not."""
    entry = f.add_partition(TO_HW, Fetcher(LOG), 4, f.initial_fetch_offset(TO_HW, LOG))
    truncated = f.maybe_truncate_alone(TO_HW, entry)
    assert (truncated.log.end, truncated.calls) == (5, (TruncationCall(5, True),))


def test_an_entry_of_the_same_epoch_is_left_alone() -> None:
    """Adding it again changes neither offset nor delay."""
    delayed = f.delay(READY)
    assert f.add_partition(SETUP, delayed, 4, 2) == delayed
    added = f.add_partition(SETUP, delayed, 5, 9).entry
    assert added is not None
    assert not added.delayed


def test_a_negative_offset_asks_the_leader() -> None:
    """With its response the entry is reset; without one the error goes to the caller and the failed mark is gone."""
    reset = f.add_partition(SETUP, Fetcher(LOG), 4, UNDEFINED, ListOffsets(0, 20))
    assert reset.entry == PartitionFetchState(9, 4, 3, lag=11)
    with pytest.raises(IllegalStateError) as thrown:
        f.add_partition(SETUP, Fetcher(LOG, failed=True), 4, UNDEFINED)
    assert not thrown.value.left_behind.failed


def test_a_response_appends_then_moves_the_high_watermark_then_the_log_start() -> None:
    """The high watermark is clamped to what was just appended."""
    after = f.process_fetch_response(SETUP, READY, respond(FetchResponse(NONE, 99, 7, (Batch(9, 9, 4),))))
    assert (after.log.end, after.log.hw, after.log.start) == (10, 10, 7)
    assert after.entry == PartitionFetchState(10, 4, 4, lag=89)


@pytest.mark.parametrize(("offset", "epoch"), [(8, 4), (9, 3), (9, 5)])
def test_a_response_to_another_request_is_dropped(offset: int, epoch: int) -> None:
    """Another offset, or another epoch since KAFKA-18991."""
    assert f.process_fetch_response(SETUP, READY, respond(DATA, offset, epoch)) == READY
    older = Setup(profile=FETCH_TRUNCATION._replace(response_epoch_checked=False))
    assert (f.process_fetch_response(older, READY, respond(DATA, offset, epoch)) == READY) == (offset != 9)


def test_a_response_finds_a_delayed_or_truncating_entry_not_ready() -> None:
    """It is dropped without a word."""
    for entry in (READY.entry, None):
        busy = READY._replace(entry=entry and entry._replace(delayed=True))
        assert f.process_fetch_response(SETUP, busy, respond(DATA)) == busy


def test_a_diverging_response_only_truncations() -> None:
    """Its high watermark and log start are not looked at (KAFKA-14704)."""
    after = f.process_fetch_response(SETUP, READY, respond(FetchResponse(NONE, 9, 3, (), 2, 8)))
    assert (after.log.end, after.log.hw, after.log.start) == (7, 5, 0)
    assert after.calls == (TruncationCall(7, False),)
    assert after.entry == PartitionFetchState(7, 4, 1)


def test_truncation_by_request_goes_on_until_an_epoch_is_shared() -> None:
    """Row T4 stays Truncating and asks again; with truncation on fetch the next fetch asks (KIP-279)."""
    start = f.add_partition(BY_REQUEST, Fetcher(LOG), 4, 5)
    assert f.epoch_to_ask(BY_REQUEST, start) == 3
    once = f.truncate_to_epoch_end_offset(BY_REQUEST, start, 4, NONE, 2, 8)
    assert once.entry == PartitionFetchState(7, 4, 1, truncating=True)
    assert f.epoch_to_ask(BY_REQUEST, once) == 1
    twice = f.truncate_to_epoch_end_offset(BY_REQUEST, once, 4, NONE, 0, 5)
    assert twice.entry == PartitionFetchState(5, 4, 0)


def test_an_epoch_response_of_another_epoch_is_dropped() -> None:
    """The entry was made anew while the request was on its way (KAFKA-7786)."""
    start = f.add_partition(BY_REQUEST, Fetcher(LOG), 4, 5)
    assert f.truncate_to_epoch_end_offset(BY_REQUEST, start, 3, FENCED_LEADER_EPOCH, -1, -1) == start
    assert f.truncate_to_epoch_end_offset(BY_REQUEST, start, 4, FENCED_LEADER_EPOCH, -1, -1).failed
    assert f.truncate_to_epoch_end_offset(BY_REQUEST, start, 4, UNKNOWN_LEADER_EPOCH, -1, -1) == f.delay(start)


def test_a_fenced_entry_fails_until_new_metadata() -> None:
    """Any other error only delays it."""
    fenced = f.process_fetch_response(SETUP, READY, respond(FetchResponse(FENCED_LEADER_EPOCH)))
    assert (fenced.entry, fenced.failed) == (None, True)
    assert f.process_fetch_response(SETUP, READY, respond(FetchResponse(KAFKA_STORAGE_ERROR))) == f.delay(READY)
    assert f.build_fetch(1, f.delay(READY)) is None
    assert f.expire_delay(f.delay(READY)) == READY


def test_a_failed_append_fails_the_partition_and_a_corrupt_one_delays_it() -> None:
    """KIP-461: only this partition stops."""
    wrong = respond(FetchResponse(NONE, 9, 0, (Batch(3, 4, 4),)))
    assert f.process_fetch_response(SETUP, READY, wrong).failed
    assert f.process_fetch_response(SETUP, READY, respond(DATA), corrupt=True) == f.delay(READY)


@pytest.mark.parametrize(("offsets", "end", "start", "lag"), [((0, 6), 6, 0, 0), ((12, 20), 12, 12, 8), ((0, 20), 9, 0, 11)])
def test_out_of_range_has_three_cases(offsets: tuple[int, int], end: int, start: int, lag: int) -> None:
    """The leader ends below, begins above, or neither."""
    out = respond(FetchResponse(OFFSET_OUT_OF_RANGE), offsets=ListOffsets(*offsets))
    after = f.process_fetch_response(SETUP, READY, out)
    assert after.entry is not None
    assert (after.log.end, after.log.start, after.entry.lag) == (end, start, lag)


def test_a_fenced_list_offsets_fails_in_the_current_epoch_and_is_retried_at_once_otherwise() -> None:
    """Kafka's inverted answer of onPartitionFenced: no delay in that branch."""
    fenced = ListOffsets(0, 20, FENCED_LEADER_EPOCH)
    out = respond(FetchResponse(OFFSET_OUT_OF_RANGE), offsets=fenced)
    assert f.process_fetch_response(SETUP, READY, out).failed
    older = respond(FetchResponse(OFFSET_OUT_OF_RANGE), epoch=UNDEFINED, offsets=fenced)
    assert f.process_fetch_response(SETUP, READY, older) == READY
    unknown = out._replace(offsets=ListOffsets(0, 20, latest_error=UNKNOWN_LEADER_EPOCH))
    assert f.process_fetch_response(SETUP, READY, unknown) == f.delay(READY)


def test_a_request_says_where_the_entry_stands() -> None:
    """Offset, epochs, and the follower's own log start."""
    assert f.build_fetch(1, READY) == (1, 4, 9, 3, 0, UNDEFINED)


def test_an_entry_without_records_is_offered_once() -> None:
    """A former leader's empty epoch is removed by the truncation that its own log end is the response to (KAFKA-10706)."""
    led = Fetcher(assign_epoch_start_offset(SETUP, LOG, 5, 9), PartitionFetchState(9, 6, 5))
    after = f.process_fetch_response(SETUP, led, respond(FetchResponse(NONE, 9, 0, (), 3, 9), epoch=6))
    assert after.entry == PartitionFetchState(9, 6, 3)


@pytest.mark.parametrize(
    ("start", "held", "received", "starts_again"),
    [
        (7, (), ((5, 9, 1), (10, 14, 1)), True),
        (7, (), ((5, 7, 1),), True),
        (12, (), ((5, 9, 1), (10, 14, 1)), True),
        (10, (), ((5, 9, 1),), False),
        (5, ((5, 6, 1),), ((5, 9, 1),), False),
    ],
)
def test_only_an_empty_log_that_starts_inside_what_was_fetched_starts_again(
    start: int, held: tuple[tuple[int, int, int], ...], received: tuple[tuple[int, int, int], ...], starts_again: bool
) -> None:
    """KAFKA-6975: at the base of the first batch; a log with records, or one that starts above it all, refuses."""
    log = truncate_fully_and_start_at(Log(), start)
    if held:
        log, _ = append_as_follower(SETUP, log, tuple(Batch(*b) for b in held), 1)
    batches = tuple(Batch(*b) for b in received)
    if not starts_again:
        with pytest.raises(UnexpectedAppendOffsetError):
            f.append_records_to_follower(SETUP, log, batches, 1)
        return
    written, info = f.append_records_to_follower(SETUP, log, batches, 1)
    assert (written.start, written.end, written.batches) == (5, batches[-1].last + 1, batches)
    assert info.first == 5

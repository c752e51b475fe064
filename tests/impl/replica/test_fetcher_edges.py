"""A fetcher without an entry, answers that are fenced, and resets without offsets: what the truth tables do not reach."""

import pytest

from tidegauge.impl.messages import Batch, FetchResponse, FetchResponseInFlight, ListOffsets
from tidegauge.impl.profiles import FETCH_TRUNCATION, Setup
from tidegauge.impl.replica import fetcher as f
from tidegauge.impl.replica.fetcher import Fetcher, PartitionFetchState
from tidegauge.impl.rules import FENCED_LEADER_EPOCH, NONE, OFFSET_OUT_OF_RANGE, UNDEFINED, UNKNOWN_LEADER_EPOCH
from tidegauge.impl.storage.log import Log, append_as_follower

SETUP = Setup()
LOG, _ = append_as_follower(SETUP, Log(), (Batch(0, 4, 0), Batch(5, 6, 1), Batch(7, 8, 3)), 9)
READY = Fetcher(LOG, PartitionFetchState(9, 4, 3))
NOBODY = Fetcher(LOG)
LATE = FetchResponseInFlight(4, 9, FetchResponse(NONE, 9, 0, (Batch(9, 9, 4),)))


def test_a_fetcher_without_an_entry_does_nothing() -> None:
    """The partition was removed while a response was on its way: nothing is asked, truncated, taken or failed."""
    assert f.epoch_to_ask(SETUP, NOBODY) == UNDEFINED
    assert f.maybe_truncate_alone(SETUP, NOBODY) == NOBODY
    assert f.truncate_to_high_watermark(SETUP, NOBODY) == NOBODY
    assert f.truncate_to_epoch_end_offset(SETUP, NOBODY, 4, NONE, 1, 7) == NOBODY
    assert f.build_fetch(1, NOBODY) is None
    assert not f.accepts(SETUP, None, LATE)
    assert f.process_fetch_response(SETUP, NOBODY, LATE) == NOBODY
    assert f.on_partition_fenced(SETUP, NOBODY, 4) == (NOBODY, False)


@pytest.mark.parametrize("asked_in", [4, 3])
def test_a_fenced_epoch_response_waits_only_if_the_thread_has_moved_on(asked_in: int) -> None:
    """Fenced in the current epoch the partition fails; in an older one (taken before KAFKA-7786) it backs off."""
    setup = Setup(profile=FETCH_TRUNCATION._replace(epoch_responses_checked=False))
    after = f.truncate_to_epoch_end_offset(setup, READY, asked_in, FENCED_LEADER_EPOCH, UNDEFINED, UNDEFINED)
    if asked_in == 4:
        assert (after.entry, after.failed) == (None, True)
    else:
        assert after == f.delay(READY)
        assert after.entry is not None
        assert after.entry.delayed


def test_who_is_fenced_in_its_own_epoch_has_not_moved_on() -> None:
    """The partition leaves the thread, and nothing is left to wait; in an older epoch it stays as it was."""
    assert f.on_partition_fenced(SETUP, READY, 4) == (f.mark_failed(READY), False)
    assert f.on_partition_fenced(SETUP, READY, 3) == (READY, True)


@pytest.mark.parametrize("asked_in", [4, 3])
def test_a_fenced_fetch_response_waits_only_if_the_thread_has_moved_on(asked_in: int) -> None:
    """The same for a fetch; a response of another epoch was taken before KAFKA-18991."""
    setup = Setup(profile=FETCH_TRUNCATION._replace(response_epoch_checked=False))
    after = f.process_fetch_response(setup, READY, FetchResponseInFlight(asked_in, 9, FetchResponse(FENCED_LEADER_EPOCH)))
    if asked_in == 4:
        assert (after.entry, after.failed) == (None, True)
    else:
        assert after == f.delay(READY)


@pytest.mark.parametrize(
    "offsets", [ListOffsets(0, 5, latest_error=UNKNOWN_LEADER_EPOCH), ListOffsets(0, 12, UNKNOWN_LEADER_EPOCH), None]
)
def test_a_reset_without_offsets_backs_off(offsets: ListOffsets | None) -> None:
    """Without both a response and no error nothing is truncated."""
    out = FetchResponseInFlight(4, 9, FetchResponse(OFFSET_OUT_OF_RANGE), offsets)
    assert f.process_fetch_response(SETUP, READY, out) == f.delay(READY)


def test_a_follower_ahead_of_its_leader_does_not_ask_for_the_earliest_offset() -> None:
    """So it cannot fail: the two look-ups have errors of their own."""
    out = FetchResponseInFlight(4, 9, FetchResponse(OFFSET_OUT_OF_RANGE), ListOffsets(0, 5, UNKNOWN_LEADER_EPOCH))
    assert f.process_fetch_response(SETUP, READY, out).log.end == 5


def test_a_reset_that_is_fenced_in_an_older_epoch_is_tried_again_at_once() -> None:
    """Kafka's polarity is the other way round here: no back-off where the thread has moved on, one after a failure."""
    setup = Setup(profile=FETCH_TRUNCATION._replace(response_epoch_checked=False))
    fenced = ListOffsets(0, 5, latest_error=FENCED_LEADER_EPOCH)
    older = FetchResponseInFlight(3, 9, FetchResponse(OFFSET_OUT_OF_RANGE), fenced)
    assert f.process_fetch_response(setup, READY, older) == READY
    current = f.process_fetch_response(setup, READY, older._replace(request_epoch=4))
    assert (current.entry, current.failed) == (None, True)


def test_a_reset_to_what_no_log_can_be_backs_off() -> None:
    """An error of the log is no failure there: Kafka catches whatever the reset throws."""
    out = FetchResponseInFlight(4, 9, FetchResponse(OFFSET_OUT_OF_RANGE), ListOffsets(0, -1))
    after = f.process_fetch_response(SETUP, READY, out)
    assert after == f.delay(READY)


def test_going_back_to_truncating_never_goes_forward() -> None:
    """AbstractFetcherThread#markPartitionsForTruncation: at most where it fetches, and its last epoch is forgotten."""
    for offset, expected in ((5, 5), (20, 9)):
        entry = f.mark_for_truncation(READY, offset).entry
        assert entry == PartitionFetchState(expected, 4, UNDEFINED, truncating=True)
    assert f.mark_for_truncation(NOBODY, 5) == NOBODY


def test_a_back_off_ends_and_a_removed_partition_has_none() -> None:
    """Removing also takes the mark of a failure away."""
    assert f.expire_delay(f.delay(READY)) == READY
    assert f.delay(NOBODY) == f.expire_delay(NOBODY) == NOBODY
    assert f.remove_partition(READY) == f.remove_partition(f.mark_failed(READY)) == NOBODY


def test_a_response_that_does_not_start_at_the_log_end_fails_the_partition() -> None:
    """ReplicaFetcherThread#processPartitionData: offset mismatch."""
    ahead = READY._replace(entry=PartitionFetchState(8, 4, 3))
    response = FetchResponseInFlight(4, 8, FetchResponse(NONE, 9, 0))
    assert f.process_fetch_response(SETUP, ahead, response).failed


def test_what_a_failed_append_leaves_behind_stays() -> None:
    """The epoch cache learns of each batch before anything is written: the first one's epoch stays, its records do not."""
    batches = (Batch(9, 9, 4), Batch(10, 10, -2))
    after = f.process_fetch_response(SETUP, READY, FetchResponseInFlight(4, 9, FetchResponse(NONE, 9, 0, batches)))
    assert after.failed
    assert after.log.end == 9
    assert after.log.cache.memory.pairs() == ((0, 0), (1, 5), (3, 7), (4, 9))

"""Many partitions in one fetcher thread: order, back-off, throttling, whole passes."""

import pytest

from tidegauge.impl.errors import KAFKA_STORAGE_ERROR, IllegalStateError
from tidegauge.impl.fetch import fetcher_thread as t
from tidegauge.impl.fetch.fetcher_thread import (
    BrokerEndPoint,
    EpochEndOffset,
    FetcherEntry,
    FetcherThread,
    InitialFetchState,
    PartitionResponse,
    Pass,
)
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import Batch, FetchResponse, ListOffsets
from tidegauge.impl.profiles import FETCH_TRUNCATION, Setup
from tidegauge.impl.replica.fetcher import PartitionFetchState
from tidegauge.impl.rules import FENCED_LEADER_EPOCH, NONE, OFFSET_OUT_OF_RANGE, UNDEFINED
from tidegauge.impl.storage.log import RECORD_BYTES, Log, append_as_follower, bytes_of
from tidegauge.impl.topic_partition import TopicPartition

SETUP = Setup()
BY_REQUEST = Setup(profile=FETCH_TRUNCATION._replace(truncation_on_fetch=False))
LEADER = BrokerEndPoint(7, "b7", 9092)
TPS = tuple(TopicPartition("t", n) for n in range(3))
LOG, _ = append_as_follower(SETUP, Log(), (Batch(0, 4, 0), Batch(5, 9, 1)), 9)
LOGS = FrozenMap((tp, LOG) for tp in TPS)
BACKOFF = 1000


def added(setup: Setup = SETUP, logs: t.Logs = LOGS, offset: int = 10) -> Pass:
    initial = {tp: InitialFetchState(LEADER, 3, offset, "id") for tp in TPS}
    return t.add_partitions(setup, FetcherThread(LEADER, 0), logs, initial, {})


def asked(done: Pass, now: int = 0) -> FrozenMap[TopicPartition, t.FetchRequest]:
    return t.build_fetch(done.thread, done.logs, 1, now, broker_epoch=5)


def processed(done: Pass, responses: dict[TopicPartition, PartitionResponse], now: int = 0, setup: Setup = SETUP) -> Pass:
    return t.process_fetch_response(
        setup, done.thread, done.logs, asked(done, now), FrozenMap(responses.items()), now, BACKOFF
    )


DATA = PartitionResponse(FetchResponse(NONE, 12, 0, (Batch(10, 11, 3),)))
EMPTY = PartitionResponse(FetchResponse(NONE, 10, 0))


def test_a_partition_with_data_goes_to_the_end_and_one_with_nothing_new_stays() -> None:
    """Round robin: the next request starts with who got nothing. A first response sets the lag, so it moves too."""
    start = processed(added(), dict.fromkeys(TPS, EMPTY))
    assert list(start.thread.entries) == list(TPS)
    after = processed(start, {TPS[0]: DATA, TPS[1]: EMPTY, TPS[2]: EMPTY})
    assert list(asked(after)) == [TPS[1], TPS[2], TPS[0]]
    assert asked(after)[TPS[0]] == (1, 3, 12, 3, 0, 5)
    assert after.thread.entries[TPS[0]].topic_id == "id"


def test_an_error_backs_off_and_the_entry_is_asked_for_again_when_it_is_over() -> None:
    """At its end it stands, and an error during back-off would not lengthen it."""
    after = processed(added(), {TPS[0]: PartitionResponse(FetchResponse(KAFKA_STORAGE_ERROR))})
    assert list(asked(after, 999)) == [TPS[1], TPS[2]]
    assert list(asked(after, 1000)) == [TPS[1], TPS[2], TPS[0]]
    assert t.delay_partitions(after.thread, (TPS[0],), 500, BACKOFF) == after.thread
    assert t.delay_partitions(after.thread, (TopicPartition("u", 0),), 500, BACKOFF) == after.thread


def test_a_request_that_fails_backs_all_entries_off() -> None:
    """Network errors have no partition."""
    thread = t.request_failed(added().thread, 0, BACKOFF)
    assert not t.build_fetch(thread, LOGS, 1, 999)
    assert len(t.build_fetch(thread, LOGS, 1, 1000)) == 3


def test_requests_and_received_bytes_are_counted() -> None:
    """A request that failed is one too. Of a response counts what was appended; nothing asked, nothing counted."""
    after = processed(added(), {TPS[0]: DATA, TPS[1]: EMPTY, TPS[2]: PartitionResponse(FetchResponse(KAFKA_STORAGE_ERROR))})
    assert after.thread.requests == 1
    assert after.thread.bytes == bytes_of(DATA.response.records, RECORD_BYTES) == 61 + 2 * 10
    assert t.request_failed(after.thread, 5, BACKOFF).requests == 2
    behind = PartitionResponse(FetchResponse(OFFSET_OUT_OF_RANGE), ListOffsets(20, 30))
    assert processed(added(), {TPS[0]: behind}).thread.bytes == 0


def test_a_response_nobody_asked_for_is_dropped() -> None:
    """The fetch session has no request for it."""
    start = added()
    empty: FrozenMap[TopicPartition, t.FetchRequest] = FrozenMap()
    assert t.process_fetch_response(SETUP, start.thread, LOGS, empty, FrozenMap([(TPS[0], DATA)]), 0, BACKOFF) == start
    after = processed(start, {TopicPartition("u", 0): DATA})
    assert (after.thread.entries, after.logs, after.failed) == (start.thread.entries, start.logs, start.failed)


def test_truncations_come_after_all_responses_and_keep_the_place() -> None:
    """AbstractFetcherThread#truncateOnFetchResponse runs when every partition was processed."""
    diverging = PartitionResponse(FetchResponse(NONE, diverging_epoch=0, diverging_end=5))
    after = processed(added(), {TPS[0]: diverging, TPS[1]: DATA})
    assert after.logs[TPS[0]].end == 5
    assert list(after.thread.entries) == [TPS[0], TPS[2], TPS[1]]


def test_a_truncation_starts_a_back_off_that_ran_out_again() -> None:
    """Since 4.0 the entry that replaces it computes its due time anew, although it is in use."""
    delayed = t.delay_partitions(added().thread, (TPS[0],), 0, BACKOFF)
    start = Pass(delayed, LOGS)
    after = processed(start, {TPS[0]: PartitionResponse(FetchResponse(NONE, diverging_epoch=0, diverging_end=5))}, now=1500)
    assert TPS[0] not in asked(after, 2499)
    assert TPS[0] in asked(after, 2500)


def test_a_fenced_partition_leaves_and_the_others_go_on() -> None:
    """It is reported as failed."""
    after = processed(added(), {TPS[1]: PartitionResponse(FetchResponse(FENCED_LEADER_EPOCH)), TPS[2]: DATA})
    assert after.failed == {TPS[1]}
    assert list(after.thread.entries) == [TPS[0], TPS[2]]


def test_an_out_of_range_response_resets_its_partition() -> None:
    """With what ListOffsets said; it goes to the end."""
    out = PartitionResponse(FetchResponse(OFFSET_OUT_OF_RANGE), ListOffsets(20, 30))
    after = processed(added(), {TPS[0]: out})
    assert (after.logs[TPS[0]].start, after.logs[TPS[0]].end) == (20, 20)
    assert list(after.thread.entries)[-1] == TPS[0]
    assert after.thread.entries[TPS[0]].state.lag == 10


def test_a_throttled_partition_is_left_out_unless_it_is_in_sync() -> None:
    """Only while the quota is exceeded."""
    start = processed(added(), {TPS[0]: EMPTY, TPS[1]: PartitionResponse(FetchResponse(NONE, 15, 0))})
    throttled = frozenset(TPS)
    assert t.is_in_sync(start.thread.entries[TPS[0]])
    assert set(t.build_fetch(start.thread, LOGS, 1, 0, throttled=throttled, quota_exceeded=True)) == {TPS[0]}
    assert set(t.build_fetch(start.thread, LOGS, 1, 0, throttled=throttled)) == set(TPS)
    some = t.build_fetch(start.thread, LOGS, 1, 0, throttled=frozenset({TPS[1]}), quota_exceeded=True)
    assert set(some) == {TPS[0], TPS[2]}


def test_adding_again_in_the_same_epoch_keeps_state_and_back_off() -> None:
    """A new epoch ends both."""
    delayed = t.delay_partitions(added().thread, (TPS[0],), 0, BACKOFF)
    same = t.add_partitions(SETUP, delayed, LOGS, {TPS[0]: InitialFetchState(LEADER, 3, 2)}, {}).thread
    assert same.entries[TPS[0]] == delayed.entries[TPS[0]]
    new = t.add_partitions(SETUP, delayed, LOGS, {TPS[0]: InitialFetchState(LEADER, 4, 10)}, {}).thread
    assert new.entries[TPS[0]] == FetcherEntry(PartitionFetchState(10, 4, 1))


def test_a_negative_offset_needs_the_leaders_offsets() -> None:
    """Without them the error goes to the caller, and the caller still has what it had."""
    initial = {TPS[0]: InitialFetchState(LEADER, 3, UNDEFINED)}
    with pytest.raises(IllegalStateError):
        t.add_partitions(SETUP, FetcherThread(LEADER, 0), LOGS, initial, {})
    done = t.add_partitions(SETUP, FetcherThread(LEADER, 0), LOGS, initial, {TPS[0]: ListOffsets(0, 4)})
    assert done.logs[TPS[0]].end == 4


def test_truncation_rounds_ask_who_has_a_cache_and_truncate_who_has_none() -> None:
    """maybeTruncate: answers first, then entries that need none; errors back off and stay Truncating."""
    logs = LOGS.put(TPS[2], Log())
    start = added(BY_REQUEST, logs, offset=0)
    requests = t.epochs_to_ask(BY_REQUEST, start.thread, logs, 0)
    assert requests == FrozenMap([(TPS[0], (3, 1)), (TPS[1], (3, 1))])
    responses = FrozenMap([(TPS[0], EpochEndOffset(NONE, 0, 5)), (TPS[1], EpochEndOffset(KAFKA_STORAGE_ERROR))])
    after = t.maybe_truncate(BY_REQUEST, start.thread, logs, requests, responses, 0, BACKOFF)
    states = {tp: (e.state.fetch_offset, e.at(0).truncating, e.at(0).delayed) for tp, e in after.thread.entries.items()}
    assert states == {TPS[0]: (5, False, False), TPS[1]: (0, True, True), TPS[2]: (0, False, False)}
    gone = t.remove_partitions(start.thread, frozenset({TPS[0]}))
    late = t.maybe_truncate(BY_REQUEST, gone, logs, requests, FrozenMap([(TPS[0], EpochEndOffset(NONE, 0, 5))]), 0, BACKOFF)
    assert late.logs[TPS[0]] == LOG


def test_a_late_epoch_response_does_not_lengthen_a_back_off() -> None:
    """An error while the partition already waits changes nothing."""
    start = added(BY_REQUEST, offset=0)
    requests = t.epochs_to_ask(BY_REQUEST, start.thread, LOGS, 0)
    waiting = t.delay_partitions(start.thread, TPS, 0, BACKOFF)
    failed = FrozenMap([(TPS[0], EpochEndOffset(KAFKA_STORAGE_ERROR))])
    assert t.maybe_truncate(BY_REQUEST, waiting, LOGS, requests, failed, 500, BACKOFF) == Pass(waiting, LOGS)


def test_a_fenced_epoch_response_fails_its_partition() -> None:
    """In the epoch it was asked in."""
    start = added(BY_REQUEST, offset=0)
    requests = t.epochs_to_ask(BY_REQUEST, start.thread, LOGS, 0)
    fenced = FrozenMap([(TPS[0], EpochEndOffset(FENCED_LEADER_EPOCH))])
    assert t.maybe_truncate(BY_REQUEST, start.thread, LOGS, requests, fenced, 0, BACKOFF).failed == {TPS[0]}


def test_an_epoch_response_nobody_asked_for_ends_the_thread() -> None:
    """IllegalStateException outside any partition: DeadThreadCount."""
    start = added(BY_REQUEST)
    none: FrozenMap[TopicPartition, tuple[int, int]] = FrozenMap()
    after = t.maybe_truncate(
        BY_REQUEST, start.thread, LOGS, none, FrozenMap([(TPS[0], EpochEndOffset(NONE, 0, 5))]), 0, BACKOFF
    )
    assert after.thread.dead
    assert after.thread.name == "ReplicaFetcherThread-0-7"


def test_a_topic_id_is_replaced_and_nothing_else() -> None:
    """maybeUpdateTopicIds keeps position and state."""
    thread = t.update_topic_ids(added().thread, {"t": "new", "u": "other"})
    assert {e.topic_id for e in thread.entries.values()} == {"new"}
    assert [e.state for e in thread.entries.values()] == [e.state for e in added().thread.entries.values()]
    assert t.update_topic_ids(thread, {}) == thread

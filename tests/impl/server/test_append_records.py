"""Produce requests: acks, errors per partition, waiting for the in-sync replicas."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.impl.brokers import ALL, BATCH_OF_ONE, NOW, OTHER, SETUP, TP, asked, broker, change, follower, leading, responses
from tidegauge.impl.errors import (
    CORRUPT_MESSAGE,
    INVALID_REQUIRED_ACKS,
    INVALID_TOPIC_EXCEPTION,
    KAFKA_STORAGE_ERROR,
    MESSAGE_TOO_LARGE,
    NOT_ENOUGH_REPLICAS,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    RECORD_LIST_TOO_LARGE,
    REQUEST_TIMED_OUT,
)
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import FetchParams, PartitionAppend, ProducedBatch, ProduceResponse
from tidegauge.impl.profiles import FETCH_TRUNCATION, Setup
from tidegauge.impl.replica.partition import maybe_shrink_isr
from tidegauge.impl.replica.partition_state import PartitionState
from tidegauge.impl.rules import NONE, NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION
from tidegauge.impl.server import purgatory
from tidegauge.impl.server.client_requests import append_records, fetch_messages
from tidegauge.impl.server.replica_manager import (
    BrokerTopicStats,
    ReplicaManager,
    TopicStats,
    mark_events,
    mark_offline,
    online_partition,
    take_responses,
    with_partition,
)
from tidegauge.impl.server.role_changes import make_followers, stop_partitions
from tidegauge.impl.topic_partition import TopicPartition

ONE = ProducedBatch(1)


def produced(manager: ReplicaManager, acks: int, *tps: TopicPartition, setup: Setup = SETUP) -> ReplicaManager:
    return append_records(setup, manager, 7, acks, 1000, FrozenMap((tp, ONE) for tp in tps or (TP,)), NOW)


def fetched(manager: ReplicaManager, replica: int, offset: int, setup: Setup = SETUP) -> ReplicaManager:
    request = 100 + replica
    return fetch_messages(setup, manager, request, follower(replica, 0), FrozenMap([(TP, asked(replica, offset))]), NOW)


def reported(manager: ReplicaManager, tp: TopicPartition = TP) -> PartitionAppend:
    (response,) = [a for a in responses(manager) if isinstance(a, ProduceResponse)]
    return response.responses[tp]


@pytest.mark.parametrize("acks", [-2, 2, 32_767])
def test_other_acks_append_nothing(acks: int) -> None:
    """INVALID_REQUIRED_ACKS for every partition."""
    before = leading()
    after = produced(before, acks)
    assert reported(after).error == INVALID_REQUIRED_ACKS
    assert take_responses(after)[0] == before


def test_acks_1_is_answered_after_the_local_append() -> None:
    """With the offset of its first record and the log start."""
    after = produced(leading(), 1)
    assert reported(after) == PartitionAppend(NONE, 10, 0)
    assert not after.produces


def test_acks_0_is_not_answered_and_a_failure_closes_the_connection() -> None:
    """The only way to tell a producer that does not listen; what came of the append does not leave the broker."""
    done, failed = PartitionAppend(NONE, 10, 0), PartitionAppend(UNKNOWN_TOPIC_OR_PARTITION)
    assert responses(produced(leading(), 0)) == (ProduceResponse(7, FrozenMap([(TP, done)]), sent=False),)
    closed = ProduceResponse(7, FrozenMap([(OTHER, failed)]), sent=False, closes_connection=True)
    assert responses(produced(leading(), 0, OTHER)) == (closed,)


def test_acks_all_waits_until_the_high_watermark_has_passed_the_records() -> None:
    """Both followers have to fetch from behind them; nobody's acknowledgement is counted."""
    after = produced(leading(), -1)
    assert not responses(after)
    assert list(after.produces) == [7]
    after = fetched(after, 2, 11)
    assert 7 in after.produces
    after = fetched(after, 3, 11)
    assert reported(after) == PartitionAppend(NONE, 10, 0)
    assert not after.produces


def test_a_leader_alone_answers_acks_all_at_once() -> None:
    """Its append moved the high watermark."""
    after = produced(leading(isr=(1,)), -1)
    assert reported(after).error == NONE
    assert not after.produces


def test_an_acknowledged_offset_lies_below_the_high_watermark() -> None:
    """An isr that shrinks on proposal still counts: the wait goes on until the controller agrees."""
    waiting = produced(leading(isr=(1, 2)), -1)
    partition = online_partition(waiting, TP)
    assert partition is not None
    shrinking = maybe_shrink_isr(SETUP, partition, NOW + 60_000)
    waiting = with_partition(waiting, TP, shrinking)
    assert purgatory.check_produces(SETUP, waiting, TP).produces
    committed = with_partition(
        waiting, TP, shrinking._replace(state=PartitionState((1,)), log=shrinking.log._replace(hw=11))
    )
    assert reported(purgatory.check_produces(SETUP, committed, TP)).error == NONE


def test_too_few_in_sync_replicas_refuse_acks_all_and_take_acks_1() -> None:
    """NOT_ENOUGH_REPLICAS, nothing appended. min.insync.replicas is capped by the replicas (an older release: not)."""
    setup = Setup(min_insync_replicas=2)
    refused = produced(leading(isr=(1,), setup=setup), -1, setup=setup)
    assert reported(refused) == PartitionAppend(NOT_ENOUGH_REPLICAS, log_start=0)
    assert not refused.produces
    assert reported(produced(leading(isr=(1,), setup=setup), 1, setup=setup)).error == NONE


def test_an_isr_that_shrank_after_the_append_is_said() -> None:
    """NOT_ENOUGH_REPLICAS_AFTER_APPEND, where the high watermark could move (before KAFKA-15583)."""
    setup = Setup(min_insync_replicas=2, profile=FETCH_TRUNCATION._replace(blocks_under_min_isr=False))
    waiting = produced(leading(isr=(1, 2), setup=setup), -1, setup=setup)
    partition = online_partition(waiting, TP)
    assert partition is not None
    shrunk = partition._replace(state=PartitionState((1,)), log=partition.log._replace(hw=11))
    after = purgatory.check_produces(setup, with_partition(waiting, TP, shrunk), TP)
    assert reported(after).error == NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_a_wait_ends_at_its_deadline() -> None:
    """REQUEST_TIMED_OUT for the partitions that still wait; the records stay."""
    waiting = produced(leading(), -1)
    assert purgatory.expire_requests(SETUP, waiting, NOW + 999) == waiting
    after = purgatory.expire_requests(SETUP, waiting, NOW + 1000)
    assert reported(after) == PartitionAppend(REQUEST_TIMED_OUT, 10, 0)
    assert not after.produces


def test_a_request_that_has_no_time_does_not_wait() -> None:
    """A timeout of 0 that cannot be answered has timed out when it would begin to wait."""
    after = append_records(SETUP, leading(), 7, -1, 0, FrozenMap([(TP, ONE)]), NOW)
    assert reported(after) == PartitionAppend(REQUEST_TIMED_OUT, 10, 0)
    assert not after.produces


def test_deadlines_end_requests_in_their_order() -> None:
    """Not in the order in which they came."""
    manager = append_records(SETUP, leading(), 1, -1, 2000, FrozenMap([(TP, ONE)]), NOW)
    manager = append_records(SETUP, manager, 2, -1, 1000, FrozenMap([(TP, ONE)]), NOW)
    assert [a.request for a in responses(purgatory.expire_requests(SETUP, manager, NOW + 2000))] == [2, 1]


def test_an_append_that_raises_the_high_watermark_looks_at_produces_before_fetches() -> None:
    """ReplicaManager's own order; a follower's fetch that raises it has the other one."""
    consumer = FetchParams(max_wait_ms=500)
    waiting = fetch_messages(SETUP, leading(), 1, consumer, FrozenMap([(TP, asked(-1, 0))]), NOW)
    waiting = append_records(SETUP, waiting, 2, -1, 1000, FrozenMap([(TP, ONE)]), NOW)
    partition = online_partition(waiting, TP)
    assert partition is not None
    alone = with_partition(waiting, TP, partition._replace(state=PartitionState((1,)), remotes=()))
    after = append_records(SETUP, alone, 3, 1, 1000, FrozenMap([(TP, ONE)]), NOW)
    assert [a.request for a in responses(after)] == [3, 2, 1]


def test_a_leader_that_steps_down_answers_what_waits() -> None:
    """NOT_LEADER_OR_FOLLOWER: the records may survive or not."""
    waiting = produced(leading(), -1)
    after = make_followers(SETUP, waiting, FrozenMap([(TP, change(2, 3, partition_epoch=2))]), NOW).manager
    assert reported(after).error == NOT_LEADER_OR_FOLLOWER


def test_a_partition_that_leaves_answers_what_waits_for_it_alone() -> None:
    """UNKNOWN_TOPIC_OR_PARTITION; a request for another partition goes on waiting."""
    waiting = produced(leading(TP, OTHER), -1)
    waiting = append_records(SETUP, waiting, 8, -1, 1000, FrozenMap([(OTHER, ONE)]), NOW)
    after = stop_partitions(SETUP, waiting, FrozenMap([(TP, True)]), NOW)
    assert reported(after).error == UNKNOWN_TOPIC_OR_PARTITION
    assert list(after.produces) == [8]


def test_partitions_of_one_request_fail_one_by_one() -> None:
    """The good one is appended and waited for; each other one has its own error."""
    manager = leading(TP, OTHER, TopicPartition("followed", 0))
    manager = mark_offline(manager, OTHER)
    followed = TopicPartition("followed", 0)
    manager = make_followers(SETUP, manager, FrozenMap([(followed, change(2, 3, partition_epoch=2))]), NOW).manager
    manager = manager._replace(known=frozenset({TopicPartition("elsewhere", 0)}))
    names = (TP, OTHER, followed, TopicPartition("elsewhere", 0), TopicPartition("none", 0))
    after = produced(manager, -1, *names, TopicPartition("__consumer_offsets", 1))
    assert not responses(after)
    after = fetched(fetched(after, 2, 11), 3, 11)
    assert [reported(after, tp).error for tp in names] == [
        NONE,
        KAFKA_STORAGE_ERROR,
        NOT_LEADER_OR_FOLLOWER,
        NOT_LEADER_OR_FOLLOWER,
        UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert reported(after, TopicPartition("__consumer_offsets", 1)).error == INVALID_TOPIC_EXCEPTION


def test_a_request_in_which_everything_failed_does_not_wait() -> None:
    """ReplicaManager#delayedProduceRequestRequired."""
    assert reported(produced(broker(), -1), TP).error == UNKNOWN_TOPIC_OR_PARTITION


def test_only_a_coordinator_writes_internal_topics() -> None:
    """With internalTopicsAllowed the partition is looked at as any other."""
    tp = TopicPartition("__transaction_state", 0)
    done = append_records(SETUP, leading(tp), 7, 1, 0, FrozenMap([(tp, ONE)]), NOW, internal_topics_allowed=True)
    assert reported(done, tp).error == NONE


def test_bad_batches_are_refused_one_by_one() -> None:
    """Too large for a message, a wrong checksum, too large for a segment. Leadership is tested first."""
    cases = (
        ({"message.max.bytes": 70}, ONE, MESSAGE_TOO_LARGE),
        ({}, ProducedBatch(1, corrupt=True), CORRUPT_MESSAGE),
        ({"log.segment.bytes": 70}, ONE, RECORD_LIST_TOO_LARGE),
        ({"message.max.bytes": 71, "log.segment.bytes": 71}, ONE, NONE),
    )
    for given_, batch, error in cases:
        before = leading(**given_)
        after = append_records(SETUP, before, 7, 1, 0, FrozenMap([(TP, batch)]), NOW)
        assert reported(after).error == error
        assert error == NONE or take_responses(after)[0]._replace(stats=before.stats) == before
    refused = append_records(SETUP, broker(TP), 7, 1, 0, FrozenMap([(TP, ProducedBatch(1, corrupt=True))]), NOW)
    assert reported(refused).error == NOT_LEADER_OR_FOLLOWER


def test_what_is_produced_is_counted() -> None:
    """Requests per partition, bytes and messages that were appended; of the errors only a lack of replicas."""
    setup = Setup(min_insync_replicas=2)
    manager = produced(leading(TP, setup=setup), 1, TP, OTHER)
    assert manager.stats.all_topics == (2, 0, BATCH_OF_ONE, 1, 0, 0)
    assert manager.stats.topics[TP.topic].bytes_in == BATCH_OF_ONE
    refused = produced(leading(isr=(1,), setup=setup), -1, setup=setup)
    assert refused.stats.all_topics == (1, 1, 0, 0, 0, 0)
    large = produced(leading(**{"message.max.bytes": BATCH_OF_ONE - 1}), 1)
    assert large.stats.all_topics == (1, 0, 0, 0, BATCH_OF_ONE, 0)


def test_a_topic_is_counted_for_itself_and_in_all() -> None:
    """Two topics: each has its own, all topics have both."""
    stats = mark_events(BrokerTopicStats(), "a", bytes_in=70, messages_in=1)
    stats = mark_events(stats, "b", bytes_in=80)
    assert (stats.topics["a"].bytes_in, stats.topics["b"].bytes_in) == (70, 80)
    assert stats.all_topics == TopicStats(bytes_in=150, messages_in=1)
    assert stats.topics["b"].messages_in == 0


@given(st.lists(st.tuples(st.sampled_from((2, 3)), st.integers(0, 14)), max_size=12), st.integers(1, 4))
def test_every_produce_is_answered_once_and_only_for_committed_records(fetches: list[tuple[int, int]], batches: int) -> None:
    """Whatever the followers ask and in what order; the deadline answers the rest."""
    manager = leading()
    for number in range(batches):
        manager = append_records(SETUP, manager, number, -1, 1000, FrozenMap([(TP, ONE)]), NOW)
    for replica, offset in fetches:
        manager = fetched(manager, replica, min(offset, 10 + batches))
    partition = online_partition(manager, TP)
    assert partition is not None
    for response in responses(manager):
        if isinstance(response, ProduceResponse):
            assert response.responses[TP].base_offset < partition.log.hw
    ended = responses(purgatory.expire_requests(SETUP, manager, NOW + 1000))
    produces = sorted(a.request for a in ended if isinstance(a, ProduceResponse))
    assert produces == list(range(batches))
    assert set(partition.state.isr) <= set(ALL)

"""Fetch requests: isolation, limits, what is answered at once, what wakes a fetch that waits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.impl.brokers import BATCH_OF_ONE, NOW, OTHER, SETUP, TP, asked, change, follower, leading, responses
from tidegauge.impl.errors import INCONSISTENT_TOPIC_ID, KAFKA_STORAGE_ERROR, OFFSET_MOVED_TO_TIERED_STORAGE
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import (
    FUTURE_LOCAL_REPLICA,
    Batch,
    FetchedPartitions,
    FetchParams,
    FetchResponse,
    Isolation,
    PartitionFetch,
    PartitionRead,
    ProducedBatch,
)
from tidegauge.impl.rules import (
    FENCED_LEADER_EPOCH,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    UNDEFINED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from tidegauge.impl.server import purgatory
from tidegauge.impl.server.client_requests import append_records, fetch_messages
from tidegauge.impl.server.read_from_log import RACK_AWARE
from tidegauge.impl.server.replica_manager import ReplicaManager, mark_offline, online_partition, with_partition
from tidegauge.impl.server.role_changes import make_followers, stop_partitions
from tidegauge.impl.storage import log as log_
from tidegauge.impl.topic_partition import TopicPartition

CONSUMER = FetchParams(max_wait_ms=500)


def fetched(
    manager: ReplicaManager, params: FetchParams, fetch: PartitionFetch | None = None, tp: TopicPartition = TP
) -> ReplicaManager:
    return fetch_messages(SETUP, manager, 1, params, FrozenMap([(tp, fetch or asked(params.replica_id, 10))]), NOW)


def read(manager: ReplicaManager, tp: TopicPartition = TP) -> PartitionRead:
    (received,) = responses(manager)
    assert isinstance(received, FetchedPartitions)
    return received.reads[tp]


def appended(manager: ReplicaManager, records: int = 1, tp: TopicPartition = TP) -> ReplicaManager:
    """Produced with acks = 0, whose response (nothing) is taken away."""
    after = append_records(SETUP, manager, 9, 0, 0, FrozenMap([(tp, ProducedBatch(records))]), NOW)
    return after._replace(answered=tuple(a for a in after.answered if a.request != 9))


@pytest.mark.parametrize(
    ("params", "isolation"),
    [
        (FetchParams(0), Isolation.LOG_END),
        (FetchParams(3), Isolation.LOG_END),
        (FetchParams(FUTURE_LOCAL_REPLICA), Isolation.LOG_END),
        (FetchParams(-1), Isolation.HIGH_WATERMARK),
        (FetchParams(-1, read_committed=True), Isolation.TXN_COMMITTED),
        (FetchParams(-2), Isolation.HIGH_WATERMARK),
    ],
)
def test_followers_read_to_the_log_end_and_consumers_do_not(params: FetchParams, isolation: Isolation) -> None:
    """Broker 0 is a broker."""
    assert params.isolation is isolation


def test_a_consumer_sees_nothing_above_the_high_watermark_and_no_error() -> None:
    """Between the bound and the log end the response is empty."""
    manager = appended(leading())
    assert read(fetched(manager, FetchParams(2, max_wait_ms=0))).records == (Batch(10, 10, 2),)
    assert read(fetched(manager, CONSUMER._replace(max_wait_ms=0))).response == FetchResponse(NONE, 0, 0)
    at_end = read(fetched(manager, CONSUMER._replace(max_wait_ms=0), asked(-1, 12)))
    assert at_end.response.error == OFFSET_OUT_OF_RANGE


def test_what_is_answered_at_once() -> None:
    """No wait allowed, nothing asked, bytes, an error, a divergence. An empty read alone waits."""
    manager = leading()
    assert fetched(manager, follower(2)).fetches
    assert responses(fetched(manager, follower(2, wait=0)))
    assert responses(fetch_messages(SETUP, manager, 1, follower(2), FrozenMap(), NOW)) == (
        FetchedPartitions(1, FrozenMap()),
    )
    assert responses(fetched(appended(manager), follower(2)))
    assert responses(fetched(manager, follower(2), asked(2, 10, epoch=1)))
    assert read(fetched(manager, follower(2), asked(2, 8, last=0))).response.diverging_end == 5


def test_min_bytes_are_counted_over_all_partitions() -> None:
    """Below them the fetch waits although there is data."""
    manager = appended(leading(TP, OTHER))
    both = FrozenMap([(TP, asked(2, 10)), (OTHER, asked(2, 10))])
    params = follower(2, min_bytes=2 * BATCH_OF_ONE)
    waiting = fetch_messages(SETUP, manager, 1, params, both, NOW)
    assert waiting.fetches
    assert responses(appended(waiting, tp=OTHER))


def test_max_bytes_take_whole_batches_and_at_least_one() -> None:
    """KIP-74: the first batch comes however large; after it, only what fits, over all partitions."""
    manager = appended(appended(leading(TP, OTHER)), tp=OTHER)
    manager = appended(manager)
    both = FrozenMap([(TP, asked(2, 10, max_bytes=1)), (OTHER, asked(2, 10))])
    params = follower(2)._replace(max_bytes=1)
    received = fetch_messages(SETUP, manager, 1, params, both, NOW)
    assert [len(read(received, tp).records) for tp in (TP, OTHER)] == [1, 0]
    roomy = fetch_messages(SETUP, manager, 1, follower(2)._replace(max_bytes=2 * BATCH_OF_ONE), both, NOW)
    assert [len(read(roomy, tp).records) for tp in (TP, OTHER)] == [1, 1]
    one = asked(2, 10, max_bytes=2 * BATCH_OF_ONE - 1)
    assert len(read(fetched(manager, follower(2), one)).records) == 1


@pytest.mark.parametrize(
    ("tp", "error"),
    [(TopicPartition("none", 0), UNKNOWN_TOPIC_OR_PARTITION), (TopicPartition("known", 0), NOT_LEADER_OR_FOLLOWER)],
)
def test_a_partition_that_is_not_here_is_unknown_or_elsewhere(tp: TopicPartition, error: int) -> None:
    """The metadata cache decides which."""
    manager = leading()._replace(known=frozenset({TopicPartition("known", 0)}))
    assert read(fetched(manager, follower(2), asked(2, 10), tp), tp).response.error == error


def test_an_offline_partition_and_another_topic_id_are_errors() -> None:
    """KAFKA_STORAGE_ERROR, INCONSISTENT_TOPIC_ID."""
    assert read(fetched(mark_offline(leading(), TP), follower(2))).response.error == KAFKA_STORAGE_ERROR
    other = asked(2, 10)._replace(topic_id="other")
    assert read(fetched(leading(), follower(2), other)).response.error == INCONSISTENT_TOPIC_ID
    same = asked(2, 10)._replace(topic_id="id-t")
    assert read(fetched(leading(), follower(2, wait=0), same)).response.error == NONE


def test_an_append_wakes_a_follower_that_waits() -> None:
    """Its response has the records and the high watermark of now; its state was updated by the first read only."""
    waiting = fetched(leading(isr=(1, 2)), follower(2))
    after = appended(waiting)
    assert read(after).records == (Batch(10, 10, 2),)
    assert read(after).response.hw == 10
    assert not after.fetches
    partition = online_partition(after, TP)
    assert partition is not None
    assert partition.remotes[0].last_fetch_time == NOW


def test_a_high_watermark_that_moves_wakes_a_consumer_and_no_follower() -> None:
    """A follower's bound is the log end (KAFKA-9952)."""
    manager = appended(leading(isr=(1, 2)))
    waiting = fetch_messages(SETUP, manager, 1, CONSUMER, FrozenMap([(TP, asked(-1, 0))]), NOW)
    waiting = fetch_messages(SETUP, waiting, 3, follower(3), FrozenMap([(TP, asked(3, 11))]), NOW)
    assert list(waiting.fetches) == [1, 3]
    after = fetch_messages(SETUP, waiting, 2, follower(2), FrozenMap([(TP, asked(2, 11))]), NOW)
    assert list(after.fetches) == [3, 2]
    assert read(after).records == (Batch(0, 4, 0), Batch(5, 9, 1), Batch(10, 10, 2))


def test_a_fetch_that_cannot_wait_leaves_the_others_alone() -> None:
    """Above its bound it is answered at once, although another one for the partition is fenced by now, unnoticed."""
    waiting = fetched(appended(leading()), follower(2), asked(2, 11))
    partition = online_partition(waiting, TP)
    assert partition is not None
    waiting = with_partition(waiting, TP, partition._replace(leader_epoch=3))
    above = FrozenMap([(TP, asked(-1, 11, epoch=3))])
    after = fetch_messages(SETUP, waiting, 3, CONSUMER, above, NOW)
    assert [a.request for a in responses(after)] == [3]
    assert list(after.fetches) == [1]


def test_what_a_partition_wakes_is_read_before_the_next_partition() -> None:
    """The consumer gets what the first partition's high watermark lets through, not yet the second's."""
    manager = appended(appended(leading(TP, OTHER, isr=(1, 2))), tp=OTHER)
    both = FrozenMap([(TP, asked(-1, 10)), (OTHER, asked(-1, 10))])
    for tp in (TP, OTHER):
        manager = fetched(manager, follower(2, wait=0), asked(2, 10), tp)._replace(answered=())
    waiting = fetch_messages(SETUP, manager, 1, CONSUMER, both, NOW)
    followed = FrozenMap([(TP, asked(2, 11)), (OTHER, asked(2, 11))])
    after = fetch_messages(SETUP, waiting, 2, follower(2), followed, NOW)
    assert [len(read(after, tp).records) for tp in (TP, OTHER)] == [1, 0]


def test_a_batch_that_is_cut_off_counts_with_its_bytes() -> None:
    """A read is a slice of the file: its end may lie inside a batch, which then is in no client's records."""
    manager = appended(appended(appended(leading(TP, OTHER))), tp=OTHER)
    limit = 2 * BATCH_OF_ONE - 1
    both = FrozenMap([(TP, asked(2, 10, max_bytes=limit)), (OTHER, asked(2, 10))])
    waiting = fetch_messages(SETUP, manager, 1, follower(2, min_bytes=limit + BATCH_OF_ONE), both, NOW)
    assert [len(read(waiting, tp).records) for tp in (TP, OTHER)] == [1, 1]
    assert fetch_messages(SETUP, manager, 1, follower(2, min_bytes=limit + BATCH_OF_ONE + 1), both, NOW).fetches


def test_the_deadline_answers_with_what_there_is() -> None:
    """Nothing, too."""
    waiting = fetched(leading(), follower(2))
    assert purgatory.check_fetches(SETUP, waiting, OTHER, NOW) == waiting
    assert purgatory.expire_requests(SETUP, waiting, NOW + 499) == waiting
    after = purgatory.expire_requests(SETUP, waiting, NOW + 500)
    assert read(after).response == FetchResponse(NONE, 0, 0)
    assert not after.fetches


def test_reads_are_counted() -> None:
    """Once for each partition, whether it is here or not, and again when what waited is read."""
    waiting = fetched(leading(), follower(2))
    assert waiting.stats.all_topics.total_fetch_requests == 1
    assert purgatory.expire_requests(SETUP, waiting, NOW + 500).stats.all_topics.total_fetch_requests == 2
    both = FrozenMap([(TP, asked(2, 10)), (OTHER, asked(2, 10))])
    stats = fetch_messages(SETUP, leading(), 1, follower(2), both, NOW).stats
    assert stats.all_topics.total_fetch_requests == 2
    assert sum(topic.total_fetch_requests for topic in stats.topics.values()) == 2


def test_a_role_change_completes_a_fetch_that_waits() -> None:
    """Cases A and B: not leader any more; not hosted any more."""
    waiting = fetched(leading(), follower(2))
    stepped = make_followers(SETUP, waiting, FrozenMap([(TP, change(2, 3, partition_epoch=2))]), NOW).manager
    assert read(stepped).response.error == FENCED_LEADER_EPOCH
    stopped = stop_partitions(SETUP, waiting, FrozenMap([(TP, True)]), NOW)
    assert read(stopped).response.error == UNKNOWN_TOPIC_OR_PARTITION
    plain = fetched(leading(), follower(2), asked(2, 10, epoch=UNDEFINED))
    gone = make_followers(SETUP, plain, FrozenMap([(TP, change(2, 3, partition_epoch=2))]), NOW).manager
    assert read(gone).response.error == NOT_LEADER_OR_FOLLOWER


def test_a_truncated_leader_a_rolled_segment_and_a_divergence_complete() -> None:
    """Cases F and H of DelayedFetch."""
    big = follower(2, min_bytes=1 << 20)
    waiting = fetched(appended(leading()), big, asked(2, 10, last=2))
    assert waiting.fetches
    partition = online_partition(waiting, TP)
    assert partition is not None
    truncated, _ = log_.truncate_to(SETUP, partition.log, 5)
    after = purgatory.check_all(SETUP, with_partition(waiting, TP, partition._replace(log=truncated)), TP, NOW)
    assert responses(after)
    rolled = with_partition(waiting, TP, partition._replace(log=log_.roll(partition.log)))
    assert read(purgatory.check_all(SETUP, rolled, TP, NOW)).records == (Batch(10, 10, 2),)
    throttled = rolled._replace(throttled=frozenset({TP}))
    assert responses(purgatory.check_all(SETUP, throttled, TP, NOW))  # in the ISR: not throttled
    other = log_.truncate_to(SETUP, partition.log, 10)[0]
    rewritten, _ = log_.append_as_leader(SETUP, other, 1, 4)
    diverged = with_partition(waiting, TP, partition._replace(log=rewritten))
    assert responses(purgatory.check_all(SETUP, diverged, TP, NOW))


def test_data_on_an_older_segment_is_answered_however_little_it_is() -> None:
    """Below minBytes the fetch would wait, but the segment it stands in will not grow any more."""
    manager = appended(leading())
    partition = online_partition(manager, TP)
    assert partition is not None
    rolled = appended(with_partition(manager, TP, partition._replace(log=log_.roll(partition.log))))
    done = fetched(rolled, follower(2, min_bytes=1 << 20))
    assert read(done).records == (Batch(10, 10, 2),)
    assert not done.fetches


def test_a_leader_that_no_longer_knows_the_followers_epoch_completes() -> None:
    """Case H: its cache was emptied by a full truncation."""
    waiting = fetched(leading(), follower(2), asked(2, 10, last=1))
    partition = online_partition(waiting, TP)
    assert partition is not None
    emptied = partition._replace(log=log_.truncate_fully_and_start_at(partition.log, 10))
    assert responses(purgatory.check_all(SETUP, with_partition(waiting, TP, emptied), TP, NOW))


def test_a_throttled_follower_outside_the_isr_gets_nothing_and_waits_on() -> None:
    """ReplicaManager#shouldLeaderThrottle; one in the ISR is never held back."""
    manager = appended(leading(isr=(1, 2)))._replace(throttled=frozenset({TP}))
    held = fetched(manager, follower(3))
    assert held.fetches
    assert appended(held).fetches
    assert read(fetched(manager, follower(3, wait=0))).records == ()
    assert read(fetched(manager, follower(2))).records


def test_an_offset_in_remote_storage_is_said_to_a_follower() -> None:
    """Only where the partition is tiered, and only above the log start."""
    manager = leading()
    partition = online_partition(manager, TP)
    assert partition is not None
    short = partition.log._replace(segments=(5, 10), batches=partition.log.batches[1:], start=2)
    manager = with_partition(manager, TP, partition._replace(log=short))
    tiered = manager._replace(tiered=frozenset({TP}))
    errors = [
        read(fetched(m, params, asked(params.replica_id, offset))).response.error
        for m, params, offset in (
            (manager, follower(2), 3),
            (tiered, follower(2), 3),
            (tiered, follower(2), 1),
            (tiered, CONSUMER, 3),
        )
    ]
    assert errors == [OFFSET_OUT_OF_RANGE, OFFSET_MOVED_TO_TIERED_STORAGE, OFFSET_OUT_OF_RANGE, OFFSET_OUT_OF_RANGE]


def test_a_consumer_is_sent_to_the_replica_in_its_rack() -> None:
    """KIP-392: in the ISR, holding the offset, the most caught up; never away from a leader in the rack."""
    manager = appended(leading(**{"replica.selector.class": RACK_AWARE}))
    manager = fetched(fetched(manager, follower(2, 0), asked(2, 10)), follower(3, 0), asked(3, 11))
    manager = manager._replace(answered=())
    near = CONSUMER._replace(rack="b")
    assert read(fetched(manager, near, asked(-1, 5))).preferred_read_replica == 3
    assert read(fetched(manager, near, asked(-1, 5))).response == FetchResponse(NONE, 10, 0)
    here = CONSUMER._replace(rack="a")
    assert read(fetched(manager, here, asked(-1, 5))).preferred_read_replica is None
    assert read(fetched(manager, CONSUMER._replace(rack="c"), asked(-1, 5))).preferred_read_replica is None
    assert read(fetched(manager, CONSUMER, asked(-1, 5))).preferred_read_replica is None
    assert read(fetched(leading(), near._replace(max_wait_ms=0), asked(-1, 0))).preferred_read_replica is None


def test_a_consumer_that_says_where_it_stands_may_read_from_a_follower() -> None:
    """Without client metadata it is sent away."""
    manager = make_followers(SETUP, leading(), FrozenMap([(TP, change(2, 3, partition_epoch=2))]), NOW).manager
    fetch = asked(-1, 0, epoch=3)
    near = CONSUMER._replace(rack="b", max_wait_ms=0)
    assert read(fetched(manager, near, fetch)).response.error == NONE
    assert read(fetched(manager, CONSUMER, fetch)).response.error == NOT_LEADER_OR_FOLLOWER


@given(
    st.lists(
        st.one_of(st.tuples(st.just("append"), st.integers(1, 3)), st.tuples(st.just("fetch"), st.integers(10, 20))),
        max_size=12,
    ),
    st.integers(0, 300),
)
def test_every_fetch_is_answered_once(steps: list[tuple[str, int]], min_bytes: int) -> None:
    """Whatever is appended and asked meanwhile; a response before the deadline has enough bytes, or is an error."""
    manager, asked_for = leading(), 0
    for number, (what, value) in enumerate(steps):
        if what == "append":
            manager = appended(manager, value)
            continue
        asked_for += 1
        params = follower(2, min_bytes=min_bytes)
        manager = fetch_messages(SETUP, manager, number + 1000, params, FrozenMap([(TP, asked(2, value))]), NOW)
    for received in responses(manager):
        assert isinstance(received, FetchedPartitions)
        response = received.reads[TP].response
        size = sum(61 + 10 * (b.last - b.base + 1) for b in response.records)
        assert size >= min_bytes or response.error != NONE
    ended = purgatory.expire_requests(SETUP, manager, NOW + 500)
    assert len(responses(ended)) == asked_for
    assert not ended.fetches

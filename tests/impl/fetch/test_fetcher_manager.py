"""Fetcher threads: who takes which partition, and when a thread starts and stops."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tidegauge.impl.fetch import fetcher_manager as m
from tidegauge.impl.fetch.fetcher_manager import FetcherManager
from tidegauge.impl.fetch.fetcher_thread import (
    BrokerEndPoint,
    InitialFetchState,
    PartitionResponse,
    build_fetch,
    process_fetch_response,
)
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import Batch, FetchResponse
from tidegauge.impl.profiles import Setup
from tidegauge.impl.rules import FENCED_LEADER_EPOCH, NONE
from tidegauge.impl.storage.log import Log, append_as_follower
from tidegauge.impl.topic_partition import TopicPartition, fetcher_id, java_abs, java_hash, to_int32
from tidegauge.util.errors import UsageError

SETUP = Setup()
LOG, _ = append_as_follower(SETUP, Log(), (Batch(0, 4, 0), Batch(5, 9, 1)), 9)
TPS = tuple(TopicPartition(topic, n) for topic in ("orders", "payments") for n in range(4))
LOGS = FrozenMap((tp, LOG) for tp in TPS)
B1, B2 = BrokerEndPoint(1, "one", 9092), BrokerEndPoint(2, "two", 9092)


def add(manager: FetcherManager, leader: BrokerEndPoint, epoch: int, *tps: TopicPartition) -> FetcherManager:
    initial = {tp: InitialFetchState(leader, epoch, 10) for tp in tps}
    return m.add_fetcher_for_partitions(SETUP, manager, LOGS, initial)[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [("", 0), ("abc", 96_354), ("polygenelubricants", -2_147_483_648), ("\u00e9", 233), ("\U0001f600", 1_772_899)],
)
def test_a_topic_is_hashed_as_java_does(text: str, value: int) -> None:
    """String#hashCode over UTF-16 code units, 32 bits wrapping around."""
    assert java_hash(text) == value


def test_the_smallest_int_has_no_absolute_value() -> None:
    """Utils#abs gives 0; 31 times a hash wraps around first."""
    assert fetcher_id(TopicPartition("polygenelubricants", 0), 7) == 0
    assert (java_abs(-5), java_abs(-(1 << 31)), to_int32(1 << 31)) == (5, 0, -(1 << 31))
    assert fetcher_id(TopicPartition("abc", 2), 100) == (31 * 96_354 + 2) % 100


@given(st.text(max_size=20), st.integers(0, 10_000), st.integers(1, 64))
def test_a_fetcher_id_is_one_of_the_threads(topic: str, partition: int, fetchers: int) -> None:
    """Whatever the topic is called."""
    assert 0 <= fetcher_id(TopicPartition(topic, partition), fetchers) < fetchers


def test_partitions_of_one_leader_are_spread_over_its_threads() -> None:
    """One thread per (broker, fetcher id)."""
    manager = add(FetcherManager(num_fetchers=2), B1, 3, *TPS[:4])
    manager = add(manager, B2, 3, *TPS[4:])
    assert set(manager.threads) == {(1, 0), (1, 1), (2, 0), (2, 1)}
    for tp in TPS:
        key = m.thread_of(manager, tp)
        assert key is not None
        assert key[1] == fetcher_id(tp, 2)
    assert m.thread_of(manager, TopicPartition("none", 0)) is None


def test_a_thread_is_used_again_only_if_its_leader_listens_where_it_did() -> None:
    """Another host or port: the old thread goes, with everything it held."""
    manager = add(FetcherManager(), B1, 3, *TPS[:2])
    assert set(add(manager, B1, 3, TPS[2]).threads[1, 0].entries) == set(TPS[:3])
    moved = add(manager, B1._replace(port=9093), 3, TPS[2])
    assert set(moved.threads[1, 0].entries) == {TPS[2]}
    assert moved.threads[1, 0].leader.port == 9093


def test_a_thread_without_partitions_stops_at_the_next_metadata_change() -> None:
    """Not when its last partition leaves."""
    manager = add(FetcherManager(), B1, 3, TPS[0])
    emptied, entries = m.remove_fetcher_for_partitions(manager, frozenset(TPS))
    assert [tp for tp, _ in entries.items()] == [TPS[0]]
    assert list(emptied.threads) == [(1, 0)]
    assert not m.shutdown_idle_fetcher_threads(emptied).threads


def test_resizing_adds_every_partition_again_from_where_it_was() -> None:
    """Its back-off is forgotten, its failed mark would be too; the same size changes nothing."""
    manager = add(FetcherManager(), B1, 3, *TPS)
    same, _ = m.resize_thread_pool(SETUP, manager, LOGS, 1)
    assert same == manager
    wider, logs = m.resize_thread_pool(SETUP, manager, LOGS, 3)
    assert logs == LOGS
    assert {tp for t in wider.threads.values() for tp in t.entries} == set(TPS)
    assert all(fetcher_id(tp, 3) == key[1] for key, t in wider.threads.items() for tp in t.entries)
    narrow, _ = m.resize_thread_pool(SETUP, wider, LOGS, 1)
    assert set(narrow.threads) == {(1, 0)}
    with pytest.raises(UsageError, match="at least 1; seen 0"):
        m.resize_thread_pool(SETUP, manager, LOGS, 0)


def test_a_failed_partition_is_forgotten_when_it_is_added_or_removed() -> None:
    """KIP-461: until then nothing happens to it."""
    manager = add(FetcherManager(), B1, 3, TPS[0])
    asked = build_fetch(manager.threads[1, 0], LOGS, 5, 0)
    responses = FrozenMap([(TPS[0], PartitionResponse(FetchResponse(FENCED_LEADER_EPOCH)))])
    done = process_fetch_response(SETUP, manager.threads[1, 0], LOGS, asked, responses, 0, 1000)
    failed = m.mark_partitions_failed(m.after_pass(manager, (1, 0), done), frozenset({TPS[1]}))
    assert failed.failed == {TPS[0], TPS[1]}
    assert m.failed_partitions_count(failed) == 2
    assert add(failed, B1, 4, TPS[0]).failed == {TPS[1]}
    assert m.remove_fetcher_for_partitions(failed, frozenset(TPS))[0].failed == frozenset()


def test_lag_is_the_leaders_high_watermark_minus_the_fetch_offset() -> None:
    """MaxLag over all threads; unknown until the first response."""
    manager = add(FetcherManager(), B1, 3, TPS[0])
    assert (m.max_lag(manager), m.consumer_lag(manager, TPS[0]), m.consumer_lag(manager, TPS[1])) == (0, None, None)
    asked = build_fetch(manager.threads[1, 0], LOGS, 5, 0)
    responses = FrozenMap([(TPS[0], PartitionResponse(FetchResponse(NONE, 25, 0, (Batch(10, 19, 3),))))])
    manager = m.after_pass(
        manager, (1, 0), process_fetch_response(SETUP, manager.threads[1, 0], LOGS, asked, responses, 0, 1000)
    )
    assert (m.max_lag(manager), m.consumer_lag(manager, TPS[0])) == (5, 5)
    assert m.dead_thread_count(manager) == 0
    dead = manager._replace(threads=manager.threads.put((1, 0), manager.threads[1, 0]._replace(dead=True)))
    assert m.dead_thread_count(dead) == 1


def test_a_new_topic_id_reaches_every_thread() -> None:
    """AbstractFetcherManager#maybeUpdateTopicIds."""
    manager = m.update_topic_ids(add(FetcherManager(num_fetchers=2), B1, 3, *TPS), {"orders": "x"})
    entry = m.entry_of(manager, TPS[0])
    other = m.entry_of(manager, TPS[4])
    assert entry is not None
    assert other is not None
    assert (entry.topic_id, other.topic_id) == ("x", None)


class Managers(RuleBasedStateMachine):
    """Partitions come, go, move between leaders, fail; the pool is resized."""

    def __init__(self) -> None:
        super().__init__()
        self.manager = FetcherManager(num_fetchers=2)
        self.expected: dict[TopicPartition, BrokerEndPoint] = {}
        self.epoch = 0

    @rule(tps=st.sets(st.sampled_from(TPS), min_size=1), leader=st.sampled_from((B1, B2)))
    def become_follower(self, tps: set[TopicPartition], leader: BrokerEndPoint) -> None:
        self.epoch += 1
        self.manager, _ = m.remove_fetcher_for_partitions(self.manager, frozenset(tps))
        self.manager = add(self.manager, leader, self.epoch, *sorted(tps))
        self.expected |= dict.fromkeys(tps, leader)

    @rule(tps=st.sets(st.sampled_from(TPS)))
    def stop(self, tps: set[TopicPartition]) -> None:
        self.manager, _ = m.remove_fetcher_for_partitions(self.manager, frozenset(tps))
        self.expected = {tp: leader for tp, leader in self.expected.items() if tp not in tps}

    @rule(size=st.integers(1, 4))
    def resize(self, size: int) -> None:
        self.manager, _ = m.resize_thread_pool(SETUP, self.manager, LOGS, size)

    @rule(tp=st.sampled_from(TPS))
    def fenced(self, tp: TopicPartition) -> None:
        key = m.thread_of(self.manager, tp)
        if key is None:
            return
        thread = self.manager.threads[key]
        responses = FrozenMap([(tp, PartitionResponse(FetchResponse(FENCED_LEADER_EPOCH)))])
        done = process_fetch_response(SETUP, thread, LOGS, build_fetch(thread, LOGS, 5, 0), responses, 0, 1000)
        self.manager = m.after_pass(self.manager, key, done)
        self.expected.pop(tp)

    @rule()
    def idle(self) -> None:
        self.manager = m.shutdown_idle_fetcher_threads(self.manager)

    @invariant()
    def every_partition_is_in_the_thread_its_name_says(self) -> None:
        held = [(tp, key) for key, thread in self.manager.threads.items() for tp in thread.entries]
        assert dict(held) == {
            tp: (leader.broker_id, fetcher_id(tp, self.manager.num_fetchers)) for tp, leader in self.expected.items()
        }
        assert len(held) == len(dict(held))
        assert not self.manager.failed & dict(held).keys()


TestManagers = Managers.TestCase

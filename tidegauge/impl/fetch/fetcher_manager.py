"""The fetcher threads of a broker: AbstractFetcherManager and ReplicaFetcherManager as a value.

Rules of this file

1. One thread per (source broker, fetcher id). The fetcher id comes from topic and partition, so a partition always meets
   the same thread of a broker until the number of fetchers changes.
2. A thread whose leader moved to another host or port is shut down with all its entries; only what is added now is taken
   over (an article keys the map by the whole end point).
3. A partition that failed is in no thread. Only adding or removing it clears the mark (KIP-461).
4. Source: kafka.server.AbstractFetcherManager, kafka.server.ReplicaFetcherManager, kafka.server.FailedPartitions.
"""

from collections.abc import Mapping
from typing import NamedTuple

from tidegauge.impl.fetch import fetcher_thread as thread_
from tidegauge.impl.fetch.fetcher_thread import BrokerEndPoint, FetcherEntry, FetcherThread, InitialFetchState, Logs, Pass
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import ListOffsets
from tidegauge.impl.profiles import Setup
from tidegauge.impl.topic_partition import TopicPartition, fetcher_id
from tidegauge.util.errors import UsageError

BrokerIdAndFetcherId = tuple[int, int]


class FetcherManager(NamedTuple):
    """`num_fetchers` is num.replica.fetchers."""

    num_fetchers: int = 1
    threads: FrozenMap[BrokerIdAndFetcherId, FetcherThread] = FrozenMap()
    failed: frozenset[TopicPartition] = frozenset()


def thread_of(manager: FetcherManager, tp: TopicPartition) -> BrokerIdAndFetcherId | None:
    """Return the key of the thread that holds the partition."""
    return next((key for key, thread in manager.threads.items() if tp in thread.entries), None)


def entry_of(manager: FetcherManager, tp: TopicPartition) -> FetcherEntry | None:
    """Return the partition's entry, in whichever thread it is."""
    key = thread_of(manager, tp)
    return None if key is None else manager.threads[key].entries[tp]


# ---------------------------------------------------------------------------------------------------------------------
# Partitions come and go


def add_fetcher_for_partitions(
    setup: Setup,
    manager: FetcherManager,
    logs: Logs,
    added: Mapping[TopicPartition, InitialFetchState],
    offsets: Mapping[TopicPartition, ListOffsets] | None = None,
) -> tuple[FetcherManager, Logs]:
    """Hand partitions to the threads of their leaders, starting those that are missing.

    AbstractFetcherManager#addFetcherForPartitions. `offsets` answers ListOffsets for negative initial offsets.
    """
    groups: dict[tuple[BrokerEndPoint, int], dict[TopicPartition, InitialFetchState]] = {}
    for tp, initial in added.items():
        groups.setdefault((initial.leader, fetcher_id(tp, manager.num_fetchers)), {})[tp] = initial
    threads = manager.threads
    for (leader, number), group in groups.items():
        key = (leader.broker_id, number)
        thread = threads.get(key)
        # Another host or port is another connection: the old thread is shut down with all its entries.
        if thread is None or thread.leader != leader:
            thread = FetcherThread(leader, number)
        done = thread_.add_partitions(setup, thread, logs, group, offsets or {})
        threads, logs = threads.put(key, done.thread), done.logs
    return manager._replace(threads=threads, failed=manager.failed - added.keys()), logs


def remove_fetcher_for_partitions(
    manager: FetcherManager, removed: frozenset[TopicPartition]
) -> tuple[FetcherManager, FrozenMap[TopicPartition, FetcherEntry]]:
    """Take partitions out of all threads; the entries they had. AbstractFetcherManager#removeFetcherForPartitions."""
    entries = [(tp, entry) for thread in manager.threads.values() for tp, entry in thread.entries.items() if tp in removed]
    threads = FrozenMap((key, thread_.remove_partitions(thread, removed)) for key, thread in manager.threads.items())
    return manager._replace(threads=threads, failed=manager.failed - removed), FrozenMap(entries)


def mark_partitions_failed(manager: FetcherManager, failed: frozenset[TopicPartition]) -> FetcherManager:
    """Mark partitions failed that could not become followers, without a thread having had them."""
    return manager._replace(failed=manager.failed | failed)


def shutdown_idle_fetcher_threads(manager: FetcherManager) -> FetcherManager:
    """Stop threads without entries, after each metadata change. AbstractFetcherManager#shutdownIdleFetcherThreads."""
    return manager._replace(threads=FrozenMap((k, t) for k, t in manager.threads.items() if len(t.entries)))


def close_all_fetchers(manager: FetcherManager) -> FetcherManager:
    """Stop all threads at shutdown. AbstractFetcherManager#closeAllFetchers."""
    return manager._replace(threads=FrozenMap())


def resize_thread_pool(setup: Setup, manager: FetcherManager, logs: Logs, size: int) -> tuple[FetcherManager, Logs]:
    """Change num.replica.fetchers: every entry is removed and added again from its fetch offset.

    AbstractFetcherManager#resizeThreadPool. The state is decided anew and a back-off is forgotten.
    """
    if size < 1:
        raise UsageError(f"num.replica.fetchers: expected at least 1; seen {size}; raise it")
    again: dict[TopicPartition, InitialFetchState] = {}
    for thread in manager.threads.values():
        for tp, entry in thread.entries.items():
            state = entry.state
            again[tp] = InitialFetchState(thread.leader, state.current_leader_epoch, state.fetch_offset, entry.topic_id)
    # Fetcher ids are hashes modulo the number of threads, so every partition may belong to another thread now.
    if size != manager.num_fetchers:
        emptied, _ = remove_fetcher_for_partitions(manager, frozenset(again))
        threads = FrozenMap((k, t) for k, t in emptied.threads.items() if k[1] < size)
        resized = manager._replace(num_fetchers=size, threads=threads)
        manager, logs = add_fetcher_for_partitions(setup, resized, logs, again)
    return shutdown_idle_fetcher_threads(manager), logs


def update_topic_ids(manager: FetcherManager, topic_ids: Mapping[str, str | None]) -> FetcherManager:
    """Pass changed topic ids on to all threads. AbstractFetcherManager#maybeUpdateTopicIds."""
    return manager._replace(
        threads=FrozenMap((k, thread_.update_topic_ids(t, topic_ids)) for k, t in manager.threads.items())
    )


def after_pass(manager: FetcherManager, key: BrokerIdAndFetcherId, done: Pass) -> FetcherManager:
    """Take over the outcome of one thread's pass."""
    return manager._replace(threads=manager.threads.put(key, done.thread), failed=manager.failed | done.failed)


# ---------------------------------------------------------------------------------------------------------------------
# Metrics


def max_lag(manager: FetcherManager) -> int:
    """Return MaxLag: the largest known lag, 0 for none."""
    return max((e.state.lag or 0 for t in manager.threads.values() for e in t.entries.values()), default=0)


def consumer_lag(manager: FetcherManager, tp: TopicPartition) -> int | None:
    """Return ConsumerLag: the leader's high watermark minus the fetch offset, None while unknown."""
    entry = entry_of(manager, tp)
    return None if entry is None else entry.state.lag


def dead_thread_count(manager: FetcherManager) -> int:
    """Return DeadThreadCount."""
    return sum(thread.dead for thread in manager.threads.values())


def failed_partitions_count(manager: FetcherManager) -> int:
    """Return FailedPartitionsCount."""
    return len(manager.failed)

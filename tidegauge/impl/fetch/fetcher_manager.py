"""The fetcher threads of a broker: AbstractFetcherManager and ReplicaFetcherManager as a value.

A thread has an *entry* for each of its partitions (impl.fetch.fetcher_thread). Logs are handed in and handed back. The last
part is the move of a replica to another log directory (ReplicaAlterLogDirsThread): the *future* log is filled from the
*current* one, as a follower's from its leader's, and then takes its place. A future replica is a `Fetcher`, a log with its
entry (impl.replica.fetcher).

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
from tidegauge.impl.messages import FUTURE_LOCAL_REPLICA, FetchResponseInFlight, ListOffsets
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica import fetcher as fetcher_
from tidegauge.impl.replica import partition as partition_
from tidegauge.impl.replica.fetcher import Fetcher, PartitionFetchState, remove_partition
from tidegauge.impl.replica.partition_state import Partition
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.storage.log import Log
from tidegauge.impl.topic_partition import TopicPartition, fetcher_id
from tidegauge.util.errors import UsageError

BrokerIdAndFetcherId = tuple[int, int]


class FetcherManager(NamedTuple):
    """`num_fetchers` is num.replica.fetchers."""

    num_fetchers: int = 1
    threads: FrozenMap[BrokerIdAndFetcherId, FetcherThread] = FrozenMap()
    failed: frozenset[TopicPartition] = frozenset()


def thread_of(manager: FetcherManager, tp: TopicPartition) -> BrokerIdAndFetcherId | None:
    """Return the key of the thread that has the partition, None if no thread has it."""
    return next((key for key, thread in manager.threads.items() if tp in thread.entries), None)


def entry_of(manager: FetcherManager, tp: TopicPartition) -> FetcherEntry | None:
    """Return the partition's entry, in whichever thread it is; None if no thread has the partition."""
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
    """Add partitions to the threads of their leaders, starting those that are missing; also return the changed logs.

    AbstractFetcherManager#addFetcherForPartitions. `offsets` are the leaders' answers to ListOffsets, for partitions added
    with a negative offset.
    """
    # By thread: the partitions that it gets.
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
    """Take partitions out of all threads; also return the entries they had.

    AbstractFetcherManager#removeFetcherForPartitions. They are not marked failed any more.
    """
    entries = [(tp, entry) for thread in manager.threads.values() for tp, entry in thread.entries.items() if tp in removed]
    threads = FrozenMap((key, thread_.remove_partitions(thread, removed)) for key, thread in manager.threads.items())
    return manager._replace(threads=threads, failed=manager.failed - removed), FrozenMap(entries)


def mark_partitions_failed(manager: FetcherManager, failed: frozenset[TopicPartition]) -> FetcherManager:
    """Mark partitions as failed which no thread has had: those that could not become followers."""
    return manager._replace(failed=manager.failed | failed)


def shutdown_idle_fetcher_threads(manager: FetcherManager) -> FetcherManager:
    """Remove the threads without entries, after a metadata change. AbstractFetcherManager#shutdownIdleFetcherThreads."""
    return manager._replace(threads=FrozenMap((k, t) for k, t in manager.threads.items() if len(t.entries)))


def resize_thread_pool(setup: Setup, manager: FetcherManager, logs: Logs, size: int) -> tuple[FetcherManager, Logs]:
    """Change num.replica.fetchers to `size`: every partition is removed, and added again at its fetch offset.

    AbstractFetcherManager#resizeThreadPool. Whether it has to truncate is decided anew, and a back-off is forgotten. Also
    return the changed logs. Raises UsageError.
    """
    if size < 1:
        raise UsageError(f"num.replica.fetchers: expected at least 1; seen {size}; raise it")
    initial_states: dict[TopicPartition, InitialFetchState] = {}
    for thread in manager.threads.values():
        for tp, entry in thread.entries.items():
            epoch, offset = entry.state.current_leader_epoch, entry.state.fetch_offset
            initial_states[tp] = InitialFetchState(thread.leader, epoch, offset, entry.topic_id)
    # Fetcher ids are hashes modulo the number of threads, so every partition may belong to another thread now.
    if size != manager.num_fetchers:
        emptied, _ = remove_fetcher_for_partitions(manager, frozenset(initial_states))
        threads = FrozenMap(((leader, number), t) for (leader, number), t in emptied.threads.items() if number < size)
        resized = manager._replace(num_fetchers=size, threads=threads)
        manager, logs = add_fetcher_for_partitions(setup, resized, logs, initial_states)
    return shutdown_idle_fetcher_threads(manager), logs


def update_topic_ids(manager: FetcherManager, topic_ids: Mapping[str, str | None]) -> FetcherManager:
    """Pass changed topic ids, by topic name, on to all threads. AbstractFetcherManager#maybeUpdateTopicIds."""
    return manager._replace(
        threads=FrozenMap((k, thread_.update_topic_ids(t, topic_ids)) for k, t in manager.threads.items())
    )


def after_pass(manager: FetcherManager, key: BrokerIdAndFetcherId, done: Pass) -> FetcherManager:
    """Store the outcome of a pass of the thread with this key: the thread, and the partitions that failed."""
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


# ---------------------------------------------------------------------------------------------------------------------
# Moving a replica to another log directory: the future replica and the thread that fills it.
#
# Rules of this part
#
# 1. It is the follower's fetch loop against the broker's own log, which may be that of a follower: leadership is not
#    needed, the leader epoch is still compared. Truncation is always by OffsetsForLeaderEpoch, never on fetch.
# 2. It starts at the future log's high watermark. When both logs end at the same offset the future one takes the place of
#    the current one.
# 3. One partition at a time is filled, the first by name; it goes on until it is done or has to wait.
# 4. A truncation of the current log sends the future replica back to truncating
#    (impl.replica.fetcher:mark_for_truncation).
# 5. Source: kafka.server.ReplicaAlterLogDirsThread, LocalLeaderEndPoint; Partition#maybeReplaceCurrentWithFutureReplica.


def _without_truncation_on_fetch(setup: Setup) -> Setup:
    """Switch truncation on fetch off: LocalLeaderEndPoint#isTruncationOnFetchSupported is false in every release."""
    return setup._replace(profile=setup.profile._replace(truncation_on_fetch=False, offsets_for_leader_epoch=True))


def start_future_replica(setup: Setup, current: Partition, future: Log) -> Fetcher:
    """Begin to fill a future log, or go on after a restart, at its high watermark. ReplicaManager#alterReplicaLogDirs."""
    return fetcher_.add_partition(_without_truncation_on_fetch(setup), Fetcher(future), current.leader_epoch, future.hw)


def maybe_truncate_future(setup: Setup, future: Fetcher, current: Partition) -> Fetcher:
    """Truncate the future log, if it has to be: where the current log says that its last epoch ends.

    A future log without epochs is truncated at the entry's offset. AbstractFetcherThread#maybeTruncate.
    """
    setup = _without_truncation_on_fetch(setup)
    requested_epoch = fetcher_.epoch_to_ask(setup, future)
    entry = future.entry
    if requested_epoch == UNDEFINED or entry is None:
        return fetcher_.maybe_truncate_alone(setup, future)
    epoch = entry.current_leader_epoch
    error, response_epoch, end = partition_.last_offset_for_leader_epoch(
        setup, current, epoch, requested_epoch, only_leader=False
    )
    return fetcher_.truncate_to_epoch_end_offset(setup, future, epoch, error, response_epoch, end)


def fetch_future(setup: Setup, future: Fetcher, current: Partition, now: int, max_records: int) -> Fetcher:
    """Fetch from the current log, up to its end, and append to the future log, if its entry is ready to fetch.

    ReplicaAlterLogDirsThread#processPartitionData.
    """
    setup = _without_truncation_on_fetch(setup)
    request = fetcher_.build_fetch(FUTURE_LOCAL_REPLICA, future)
    if request is None:
        return future
    # No metadata cache is read: a future replica joins no ISR.
    _, response = partition_.fetch_records(setup, current, request, (), now, max_records, only_leader=False)
    offsets = ListOffsets(current.log.start, current.log.end)
    in_flight = FetchResponseInFlight(request.current_leader_epoch, request.fetch_offset, response, offsets)
    return fetcher_.process_fetch_response(setup, future, in_flight)


def maybe_replace_current(future: Fetcher, current: Partition) -> tuple[Fetcher, Partition, bool]:
    """Let the future log take the current one's place once both end at the same offset; the thread then drops the partition.

    Partition#maybeReplaceCurrentWithFutureReplica. Return (future, current, whether it was replaced).
    """
    # Equal ends are enough: the future log was truncated to the current one and only copies from it.
    if future.entry is None or future.entry.truncating or future.log.end != current.log.end:
        return future, current, False
    return remove_partition(future), current._replace(log=future.log), True


def select_partition_to_fetch(
    entries: Mapping[TopicPartition, PartitionFetchState], in_progress: TopicPartition | None
) -> TopicPartition | None:
    """Return the future replica to fetch for next: `in_progress` while it is ready, else the first ready one by name.

    ReplicaAlterLogDirsThread#selectPartitionToFetch. None: none is ready.
    """
    ready = sorted(tp for tp, entry in entries.items() if entry.ready_for_fetch)
    # One partition at a time, to the end: filling several at once would only delay the first replacement.
    if in_progress in ready:
        return in_progress
    return ready[0] if ready else None

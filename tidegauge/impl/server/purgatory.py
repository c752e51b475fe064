"""Requests that wait: when they are checked again, and how they end.

Rules of this file

1. Requests wait under the key of each partition. A higher high watermark or low watermark has all of a partition's checked,
   an append its fetches, the end of a leadership its produces and fetches.
2. A request ends once: when it is complete, or at its deadline.
3. Source: org.apache.kafka.server.purgatory.DelayedOperationPurgatory, kafka.cluster.DelayedOperations.
"""

from typing import TypeVar

from tidegauge.impl.fetch.fetcher_thread import Logs
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import ClientResponse, FetchedPartitions
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica import partition
from tidegauge.impl.replica.partition_state import Partition
from tidegauge.impl.server import delayed_operations as delete_
from tidegauge.impl.server import delayed_operations as produce_
from tidegauge.impl.server.delayed_operations import is_satisfied
from tidegauge.impl.server.read_from_log import FetchProgress, read_next
from tidegauge.impl.server.replica_manager import (
    DelayedDeleteRecords,
    DelayedFetch,
    DelayedProduce,
    ReplicaManager,
    online_partition,
    with_logs,
)
from tidegauge.impl.topic_partition import TopicPartition

DelayedOperation = TypeVar("DelayedOperation", DelayedProduce, DelayedFetch, DelayedDeleteRecords)


def send_response(manager: ReplicaManager, answered: ClientResponse) -> ReplicaManager:
    """Record a response that leaves the broker."""
    return manager._replace(answered=(*manager.answered, answered))


def high_watermark_incremented(before: Partition, after: Partition) -> bool:
    """Return whether a leader's step lets delayed operations be checked. Partition#tryCompleteDelayedRequests."""
    return after.log.hw > before.log.hw


def low_watermark_incremented(manager: ReplicaManager, before: Partition, after: Partition) -> bool:
    """Return whether a follower's fetch raised the low watermark. Partition#updateFollowerFetchState."""
    # The low watermark is computed over all replicas, so Kafka does it only while a DeleteRecords waits.
    if not manager.deletes or not after.is_leader:
        return False
    return partition.low_watermark(after, manager.metadata) > partition.low_watermark(before, manager.metadata)


def check_produces(setup: Setup, manager: ReplicaManager, tp: TopicPartition) -> ReplicaManager:
    """Check the produces that wait for `tp`."""
    for request, waiting in manager.produces.items():
        if tp not in waiting.statuses:
            continue
        delayed = produce_.check_produce(setup, manager, waiting)
        if produce_.is_produce_complete(delayed):
            manager = send_response(
                manager._replace(produces=manager.produces.without(request)), produce_.produce_response(delayed)
            )
        else:
            manager = manager._replace(produces=manager.produces.put(request, delayed))
    return manager


def check_fetches(setup: Setup, manager: ReplicaManager, tp: TopicPartition, now: int) -> ReplicaManager:
    """Check the fetches that wait for `tp`."""
    for request, delayed in manager.fetches.items():
        # Completing one fetch may complete another one of this loop: its read can raise the high watermark.
        if request in manager.fetches and tp in delayed.statuses:
            manager, satisfied = is_satisfied(setup, manager, delayed)
            if satisfied:
                manager = complete_fetch(setup, manager, delayed, now)
    return manager


def check_deletes(manager: ReplicaManager, tp: TopicPartition) -> ReplicaManager:
    """Check the DeleteRecords that wait for `tp`."""
    for request, waiting in manager.deletes.items():
        if tp not in waiting.statuses:
            continue
        delayed = delete_.check_delete_records(manager, waiting)
        if delete_.is_delete_records_complete(delayed):
            manager = send_response(
                manager._replace(deletes=manager.deletes.without(request)), delete_.delete_records_response(delayed)
            )
        else:
            manager = manager._replace(deletes=manager.deletes.put(request, delayed))
    return manager


def watch_produce(setup: Setup, manager: ReplicaManager, delayed: DelayedProduce, now: int) -> ReplicaManager:
    """Add a produce; it ends at once if it is complete or has no time. DelayedOperationPurgatory#tryCompleteElseWatch."""
    delayed = produce_.check_produce(setup, manager, delayed)
    if produce_.is_produce_complete(delayed) or delayed.deadline <= now:
        return send_response(manager, produce_.produce_response(delayed))
    return manager._replace(produces=manager.produces.put(delayed.request, delayed))


def watch_delete(manager: ReplicaManager, delayed: DelayedDeleteRecords, now: int) -> ReplicaManager:
    """Add a DeleteRecords, likewise."""
    delayed = delete_.check_delete_records(manager, delayed)
    if delete_.is_delete_records_complete(delayed) or delayed.deadline <= now:
        return send_response(manager, delete_.delete_records_response(delayed))
    return manager._replace(deletes=manager.deletes.put(delayed.request, delayed))


def watch_fetch(setup: Setup, manager: ReplicaManager, delayed: DelayedFetch, now: int) -> ReplicaManager:
    """Add a fetch, likewise; others that wait for its partitions are not checked."""
    manager, satisfied = is_satisfied(setup, manager, delayed)
    if satisfied or delayed.deadline <= now:
        return complete_fetch(setup, manager, delayed, now)
    return manager._replace(fetches=manager.fetches.put(delayed.request, delayed))


def check_after_append(
    setup: Setup, manager: ReplicaManager, tp: TopicPartition, now: int, *, hw_incremented: bool
) -> ReplicaManager:
    """Check what waits after the append of a produce request. ReplicaManager#addCompletePurgatoryAction."""
    # Without a new high watermark only followers can have something new: the records above it.
    if not hw_incremented:
        return check_fetches(setup, manager, tp, now)
    return check_deletes(check_fetches(setup, check_produces(setup, manager, tp), tp, now), tp)


def check_all(setup: Setup, manager: ReplicaManager, tp: TopicPartition, now: int) -> ReplicaManager:
    """Check everything that waits for `tp`: fetches, produces, deletes. DelayedOperations#checkAndCompleteAll."""
    return check_deletes(check_produces(setup, check_fetches(setup, manager, tp, now), tp), tp)


def check_when_not_leader(setup: Setup, manager: ReplicaManager, tp: TopicPartition, now: int) -> ReplicaManager:
    """Check produces and fetches when the role is gone. #completeDelayedOperationsWhenNotPartitionLeader."""
    return check_fetches(setup, check_produces(setup, manager, tp), tp, now)


def with_fetched_logs(setup: Setup, manager: ReplicaManager, changed: Logs, now: int) -> ReplicaManager:
    """Store the logs of a fetcher thread's pass; a changed high watermark wakes the fetches that wait here.

    ReplicaFetcherThread#doWork, ReplicaManager#completeDelayedFetchRequests: a follower serves consumers, too (KIP-392).
    """
    before, manager = manager, with_logs(manager, changed)
    for tp in changed:
        old, new = online_partition(before, tp), online_partition(manager, tp)
        if old is not None and new is not None and old.log.hw != new.log.hw:
            manager = check_fetches(setup, manager, tp, now)
    return manager


def complete_fetch(setup: Setup, manager: ReplicaManager, delayed: DelayedFetch, now: int) -> ReplicaManager:
    """Read again and respond. DelayedFetch#onComplete."""
    reading = FetchProgress(delayed.params.max_bytes)
    for tp, status in delayed.statuses.items():
        manager, reading = read_next(setup, manager, delayed.params, reading, tp, status.fetch, now, from_purgatory=True)
    manager = manager._replace(fetches=manager.fetches.without(delayed.request))
    done = FrozenMap((tp, read.partition) for tp, read in reading.reads.items())
    return send_response(manager, FetchedPartitions(delayed.request, done))


def expire_requests(setup: Setup, manager: ReplicaManager, now: int) -> ReplicaManager:
    """End every request whose deadline has come, the earliest first; each kind has a timer of its own."""
    for produce in _overdue(manager.produces, now):
        manager = send_response(
            manager._replace(produces=manager.produces.without(produce.request)), produce_.produce_response(produce)
        )
    for fetch in _overdue(manager.fetches, now):
        manager = complete_fetch(setup, manager, fetch, now)
    for delete in _overdue(manager.deletes, now):
        manager = send_response(
            manager._replace(deletes=manager.deletes.without(delete.request)), delete_.delete_records_response(delete)
        )
    return manager


def _overdue(waiting: FrozenMap[int, DelayedOperation], now: int) -> list[DelayedOperation]:
    return sorted((delayed for delayed in waiting.values() if delayed.deadline <= now), key=lambda delayed: delayed.deadline)

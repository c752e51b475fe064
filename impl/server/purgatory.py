"""Requests that wait: when they are looked at again, and how they end.

Rules of this file

1. A partition is watched by key. A high watermark or a low watermark that moved looks at everything, an append at its
   fetches, the end of a leadership at its produces and fetches.
2. A request ends once: when it is complete, or at its deadline.
3. Source: org.apache.kafka.server.purgatory.DelayedOperationPurgatory, kafka.cluster.DelayedOperations.
"""

from tidegauge.impl.client_messages import ClientResponse, FetchedPartitions
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica import isr
from tidegauge.impl.replica.partition_state import Partition
from tidegauge.impl.server import delayed_delete_records as delete_
from tidegauge.impl.server import delayed_produce as produce_
from tidegauge.impl.server.delayed_fetch import is_satisfied
from tidegauge.impl.server.read_from_log import read_from_log
from tidegauge.impl.server.replica_manager import ReplicaManager
from tidegauge.impl.server.waiting import DelayedFetch
from tidegauge.impl.table import Table
from tidegauge.impl.topic_partition import TopicPartition


def respond(manager: ReplicaManager, answered: ClientResponse) -> ReplicaManager:
    """Something leaves the broker."""
    return manager._replace(answered=(*manager.answered, answered))


def high_watermark_incremented(before: Partition, after: Partition) -> bool:
    """Whether a step of a leader lets delayed operations be looked at: makeLeader, a follower's fetch, an ISR commit.

    Partition#tryCompleteDelayedRequests.
    """
    return after.log.hw > before.log.hw


def low_watermark_incremented(manager: ReplicaManager, before: Partition, after: Partition) -> bool:
    """Whether a follower's fetch raised it; only asked while a DeleteRecords waits. Partition#updateFollowerFetchState."""
    if not manager.deletes or not after.is_leader:
        return False
    return isr.low_watermark(after, manager.metadata) > isr.low_watermark(before, manager.metadata)


def check_produces(setup: Setup, manager: ReplicaManager, tp: TopicPartition) -> ReplicaManager:
    """Look at the produces that wait for `tp`."""
    for request, waiting in manager.produces.items():
        if tp not in waiting.statuses:
            continue
        delayed = produce_.checked(setup, manager, waiting)
        if produce_.is_complete(delayed):
            manager = respond(manager._replace(produces=manager.produces.without(request)), produce_.respond(delayed))
        else:
            manager = manager._replace(produces=manager.produces.put(request, delayed))
    return manager


def check_fetches(setup: Setup, manager: ReplicaManager, tp: TopicPartition, now: int) -> ReplicaManager:
    """Look at the fetches that wait for `tp`."""
    for request, delayed in manager.fetches.items():
        if request in manager.fetches and tp in delayed.statuses:
            manager, satisfied = is_satisfied(setup, manager, delayed)
            if satisfied:
                manager = _complete_fetch(setup, manager, delayed, now)
    return manager


def check_deletes(manager: ReplicaManager, tp: TopicPartition) -> ReplicaManager:
    """Look at the DeleteRecords that wait for `tp`."""
    for request, waiting in manager.deletes.items():
        if tp not in waiting.statuses:
            continue
        delayed = delete_.checked(manager, waiting)
        if delete_.is_complete(delayed):
            manager = respond(manager._replace(deletes=manager.deletes.without(request)), delete_.respond(delayed))
        else:
            manager = manager._replace(deletes=manager.deletes.put(request, delayed))
    return manager


def check_all(setup: Setup, manager: ReplicaManager, tp: TopicPartition, now: int) -> ReplicaManager:
    """Look at everything that waits for `tp`. DelayedOperations#checkAndCompleteAll: fetches, produces, deletes."""
    return check_deletes(check_produces(setup, check_fetches(setup, manager, tp, now), tp), tp)


def check_when_not_leader(setup: Setup, manager: ReplicaManager, tp: TopicPartition, now: int) -> ReplicaManager:
    """The role is gone. ReplicaManager#completeDelayedOperationsWhenNotPartitionLeader: produces and fetches only."""
    return check_fetches(setup, check_produces(setup, manager, tp), tp, now)


def _complete_fetch(setup: Setup, manager: ReplicaManager, delayed: DelayedFetch, now: int) -> ReplicaManager:
    fetches = Table((tp, status.fetch) for tp, status in delayed.statuses.items())
    manager, reads = read_from_log(setup, manager, delayed.params, fetches, now, from_purgatory=True)
    manager = manager._replace(fetches=manager.fetches.without(delayed.request))
    return respond(manager, FetchedPartitions(delayed.request, Table((tp, r.partition) for tp, r in reads.items())))


def expire(setup: Setup, manager: ReplicaManager, now: int) -> ReplicaManager:
    """End every request whose deadline has come."""
    for fetch in manager.fetches.values():
        if fetch.deadline <= now:
            manager = _complete_fetch(setup, manager, fetch, now)
    for produce in manager.produces.values():
        if produce.deadline <= now:
            manager = manager._replace(produces=manager.produces.without(produce.request))
            manager = respond(manager, produce_.respond(produce))
    for delete in manager.deletes.values():
        if delete.deadline <= now:
            manager = manager._replace(deletes=manager.deletes.without(delete.request))
            manager = respond(manager, delete_.respond(delete))
    return manager

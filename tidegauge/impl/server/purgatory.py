"""Requests that wait: when they are checked again, and how they end.

A *delayed* operation (`DelayedProduce`, `DelayedFetch`, `DelayedDeleteRecords`) is a request that cannot be answered yet,
with a *status* for each of its partitions: what it waits for there. For a produce and a DeleteRecords the status also has
the partition's response, with the error REQUEST_TIMED_OUT as long as it waits (`acks_pending`). To *check* an operation is
Kafka's tryComplete: it is answered if it is complete. Functions take the broker's `ReplicaManager` and return the changed
one; `now` and a `deadline` are times on its clock in ms.

Rules of this file

1. A request waits for each of its partitions. A higher high watermark or low watermark has all of a partition's checked,
   an append its fetches, the end of a leadership its produces and fetches.
2. A request ends once: when it is complete, or at its deadline.
3. Source: org.apache.kafka.server.purgatory.DelayedOperationPurgatory, kafka.cluster.DelayedOperations.
"""

from typing import TypeVar

from tidegauge.impl.errors import KAFKA_STORAGE_ERROR, REQUEST_TIMED_OUT
from tidegauge.impl.fetch.fetcher_thread import Logs
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import (
    ClientResponse,
    DeleteRecordsResponse,
    FetchedPartitions,
    FetchParams,
    Isolation,
    PartitionAppend,
    PartitionDelete,
    ProduceResponse,
)
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica import partition as partition_
from tidegauge.impl.replica.partition_state import Partition
from tidegauge.impl.rules import NONE, NOT_LEADER_OR_FOLLOWER, UNDEFINED, UNKNOWN_TOPIC_OR_PARTITION
from tidegauge.impl.server import replica_manager as manager_
from tidegauge.impl.server.read_from_log import FetchProgress, read_next, should_leader_throttle
from tidegauge.impl.server.replica_manager import DelayedDeleteRecords, DelayedFetch, DelayedProduce, ReplicaManager
from tidegauge.impl.storage import log as log_
from tidegauge.impl.storage.producer_state import read_bound
from tidegauge.impl.topic_partition import TopicPartition

# Delayed operations: fetches, produces and DeleteRecords that wait in a purgatory, and when each is complete.


# A fetch that waits for data.
#
# Rules of this part
#
# 1. Any one partition completes the whole fetch: not readable any more, its offset above the bound or on an older segment,
#    diverging. Otherwise the bytes of all partitions together have to reach minBytes.
# 2. A high watermark that moves does not wake a follower: its bound is the log end (KAFKA-9952).
# 3. On completion everything is read again, and the follower's state is not updated a second time.
# 4. Source: kafka.server.DelayedFetch#tryComplete, cases A to H.


COMPLETES = -1
"""In place of a number of bytes: the partition completes the fetch, whatever the others have."""


def is_satisfied(setup: Setup, manager: ReplicaManager, delayed: DelayedFetch) -> tuple[ReplicaManager, bool]:
    """Return whether a fetch that waits is answered now. DelayedFetch#tryComplete.

    It is if one partition completes it, or all together have minBytes. The manager changes where a high watermark has to be
    looked up, which may round it to a batch.
    """
    available = 0
    for tp, status in delayed.statuses.items():
        manager, size = _available_bytes(setup, manager, delayed.params, tp, status)
        if size == COMPLETES:
            return manager, True
        available += size
    return manager, available >= delayed.params.min_bytes


def _available_bytes(
    setup: Setup, manager: ReplicaManager, params: FetchParams, tp: TopicPartition, status: manager_.FetchStatus
) -> tuple[ReplicaManager, int]:
    """Return the bytes that a partition has ready for a waiting fetch, or COMPLETES.

    `status` is where the fetch stood when it was read. The letters are the cases in the comment of DelayedFetch#tryComplete.
    """
    partition, request = manager_.online_partition(manager, tp), status.fetch.request
    if partition is None:
        return manager, COMPLETES  # B, C, D: the partition is gone, or its log directory failed
    # No epoch is asked for: only the errors of a request in that leader epoch matter.
    error, _, _ = partition_.last_offset_for_leader_epoch(
        setup, partition, request.current_leader_epoch, UNDEFINED, only_leader=params.only_leader
    )
    if error != NONE:
        return manager, COMPLETES  # A, E: it does not lead any more, or is in another leader epoch
    partition = partition._replace(log=log_.locate_high_watermark(setup, partition.log))
    manager = manager_.with_partition(manager, tp, partition)
    log = partition.log
    bound = read_bound(log, params.isolation)
    if status.offset > bound:
        return manager, COMPLETES  # F: the leader was truncated
    # 2.4 and 2.5 woke followers to pass a new high watermark on; that doubled the fetch rate (KAFKA-9952).
    if setup.profile.hw_wakes_followers and params.is_from_follower and log.hw > status.hw:
        return manager, COMPLETES
    throttled = should_leader_throttle(manager, params, tp)
    size = 0
    if status.offset < bound and not throttled:
        if status.segment < _bound_segment(partition, params):
            return manager, COMPLETES  # F: behind the segment that is written to
        readable = tuple(b for b in log.batches if status.offset <= b.base < bound)
        size = min(manager_.size_in_bytes(manager, readable), status.fetch.max_bytes)
    return manager, COMPLETES if _has_diverged(setup, partition, status) else size  # H


def _bound_segment(partition: Partition, params: FetchParams) -> int:
    """Return the base offset of the segment in which a read of these parameters' isolation ends."""
    log = partition.log
    if params.isolation is Isolation.LOG_END:
        return log_.active_segment(log)
    # Where the position of the high watermark is known, its segment is.
    if params.isolation is Isolation.TXN_COMMITTED or log.hw_segment == UNDEFINED:
        return log_.segment_of(log, read_bound(log, params.isolation))
    return log.hw_segment


def _has_diverged(setup: Setup, partition: Partition, status: manager_.FetchStatus) -> bool:
    """Return whether the leader's log no longer contains what the follower has fetched (case H of DelayedFetch)."""
    request = status.fetch.request
    if request.last_fetched_epoch == UNDEFINED or not setup.profile.truncation_on_fetch:
        return False
    epoch, end = log_.end_offset_for_epoch(setup, partition.log, request.last_fetched_epoch)
    # The leader does not know the follower's epoch at all.
    if UNDEFINED in {epoch, end}:
        return True
    return epoch < request.last_fetched_epoch or end < request.fetch_offset


# A produce that waits for the in-sync replicas.
#
# Rules of this part
#
# 1. A partition stops waiting when it is answered: gone, not led here any more, or its high watermark has reached the
#    required offset. The request is answered when no partition waits, or at its deadline.
# 2. The high watermark alone decides, not the log end of any replica (as an article has it).
# 3. Source: kafka.server.DelayedProduce (org.apache.kafka.server.purgatory since 4.3).


def delayed_produce(
    request: int, deadline: int, appended: FrozenMap[TopicPartition, tuple[PartitionAppend, int]]
) -> DelayedProduce:
    """Make the delayed operation of a produce request: partitions that were appended to wait, failed ones have their error.

    `appended` has the response and the last offset appended by partition.
    """
    return DelayedProduce(
        request, deadline, FrozenMap((tp, _produce_status(response, last)) for tp, (response, last) in appended.items())
    )


def _produce_status(response: PartitionAppend, last: int) -> manager_.ProduceStatus:
    """Return the status of a partition: one that waits has REQUEST_TIMED_OUT as its error, should the deadline come."""
    if response.error != NONE:
        return manager_.ProduceStatus(last + 1, response, acks_pending=False)
    return manager_.ProduceStatus(last + 1, response._replace(error=REQUEST_TIMED_OUT), acks_pending=True)


def check_produce(setup: Setup, manager: ReplicaManager, delayed: DelayedProduce) -> DelayedProduce:
    """Return a produce with each waiting partition checked: it gets its response if it is committed or failed by now.

    DelayedProduce#tryComplete.
    """
    statuses = delayed.statuses
    for tp, status in statuses.items():
        if not status.acks_pending:
            continue
        is_committed, error = _reached(setup, manager, tp, status.required)
        if is_committed or error != NONE:
            response = status.response._replace(error=error)
            statuses = statuses.put(tp, manager_.ProduceStatus(status.required, response, acks_pending=False))
    return delayed._replace(statuses=statuses)


def _reached(setup: Setup, manager: ReplicaManager, tp: TopicPartition, required: int) -> tuple[bool, int]:
    """Return (whether the high watermark has reached the required offset, error); any error ends the wait."""
    partition = manager_.online_partition(manager, tp)
    if partition is None:
        return False, manager_.partition_error(manager, tp)
    return partition_.check_enough_replicas_reach_offset(manager_.topic_setup(setup, manager, tp), partition, required)


def is_produce_complete(delayed: DelayedProduce) -> bool:
    """Return whether no partition of a produce waits any more."""
    return not any(status.acks_pending for status in delayed.statuses.values())


def produce_response(delayed: DelayedProduce) -> ProduceResponse:
    """Build the response; partitions that still wait, at the deadline, have timed out. DelayedProduce#onComplete."""
    return ProduceResponse(delayed.request, FrozenMap((tp, s.response) for tp, s in delayed.statuses.items()))


# A DeleteRecords that waits until no living replica has what is deleted.
#
# Rules of this part
#
# 1. A partition stops waiting when its low watermark, the least log start of the leader and the living replicas, has reached
#    the offset asked for, or when it cannot be asked any more. Followers raise their log start with the leader's answers.
# 2. One that is not hosted any more is unknown, whatever the metadata cache says of it: unlike in the request itself.
# 3. A change of role does not end the wait: the deadline does, or a look for another reason.
# 4. Source: kafka.server.DelayedDeleteRecords.


Deleted = FrozenMap[TopicPartition, tuple[PartitionDelete, int]]
"""Per partition: its response, and the requested offset."""


def delayed_delete_records(request: int, deadline: int, deleted: Deleted) -> DelayedDeleteRecords:
    """Make the delayed operation of a DeleteRecords request: partitions that were truncated wait, failed ones do not."""
    return DelayedDeleteRecords(
        request, deadline, FrozenMap((tp, _delete_status(response, offset)) for tp, (response, offset) in deleted.items())
    )


def _delete_status(response: PartitionDelete, required: int) -> manager_.DeleteRecordsStatus:
    """Return the status of a partition: one that waits has REQUEST_TIMED_OUT as its error, should the deadline come."""
    if response.error != NONE:
        return manager_.DeleteRecordsStatus(required, response, acks_pending=False)
    return manager_.DeleteRecordsStatus(required, response._replace(error=REQUEST_TIMED_OUT), acks_pending=True)


def check_delete_records(manager: ReplicaManager, delayed: DelayedDeleteRecords) -> DelayedDeleteRecords:
    """Return a DeleteRecords with each waiting partition checked: it gets its response once the low watermark is there.

    DelayedDeleteRecords#tryComplete. An error also ends the wait.
    """
    statuses = delayed.statuses
    for tp, status in statuses.items():
        error, low_watermark = _low_watermark(manager, tp)
        if status.acks_pending and (error != NONE or low_watermark >= status.required):
            statuses = statuses.put(
                tp, manager_.DeleteRecordsStatus(status.required, PartitionDelete(error, low_watermark), acks_pending=False)
            )
    return delayed._replace(statuses=statuses)


def _low_watermark(manager: ReplicaManager, tp: TopicPartition) -> tuple[int, int]:
    """Return (error, low watermark), the lowest log start of the partition's live replicas; UNDEFINED with an error.

    DelayedDeleteRecords#tryComplete.
    """
    partition = manager_.online_partition(manager, tp)
    if partition is None:
        # The request itself would consult the metadata cache here; the delayed operation does not.
        return KAFKA_STORAGE_ERROR if tp in manager.hosted else UNKNOWN_TOPIC_OR_PARTITION, UNDEFINED
    if not partition.is_leader:
        return NOT_LEADER_OR_FOLLOWER, UNDEFINED
    return NONE, partition_.low_watermark(partition, manager.metadata)


def is_delete_records_complete(delayed: DelayedDeleteRecords) -> bool:
    """Return whether no partition of a DeleteRecords waits any more."""
    return not any(status.acks_pending for status in delayed.statuses.values())


def delete_records_response(delayed: DelayedDeleteRecords) -> DeleteRecordsResponse:
    """Build the response; partitions that still wait, at the deadline, have timed out. DelayedDeleteRecords#onComplete."""
    return DeleteRecordsResponse(delayed.request, FrozenMap((tp, s.response) for tp, s in delayed.statuses.items()))


DelayedOperation = TypeVar("DelayedOperation", DelayedProduce, DelayedFetch, DelayedDeleteRecords)


def send_response(manager: ReplicaManager, response: ClientResponse) -> ReplicaManager:
    """Record a response as one that leaves the broker: it is added to `answered`."""
    return manager._replace(answered=(*manager.answered, response))


def high_watermark_incremented(before: Partition, after: Partition) -> bool:
    """Return whether a step raised the high watermark, so that delayed operations have to be checked.

    Partition#tryCompleteDelayedRequests.
    """
    return after.log.hw > before.log.hw


def low_watermark_incremented(manager: ReplicaManager, before: Partition, after: Partition) -> bool:
    """Return whether a follower's fetch raised the low watermark of its partition. Partition#updateFollowerFetchState."""
    # The low watermark is computed over all replicas, so Kafka does it only while a DeleteRecords waits.
    if not manager.deletes or not after.is_leader:
        return False
    return partition_.low_watermark(after, manager.metadata) > partition_.low_watermark(before, manager.metadata)


def check_produces(setup: Setup, manager: ReplicaManager, tp: TopicPartition) -> ReplicaManager:
    """Check the produces that wait for `tp`: those that are complete are answered and removed."""
    for request, waiting in manager.produces.items():
        if tp not in waiting.statuses:
            continue
        delayed = check_produce(setup, manager, waiting)
        if is_produce_complete(delayed):
            manager = send_response(manager._replace(produces=manager.produces.without(request)), produce_response(delayed))
        else:
            manager = manager._replace(produces=manager.produces.put(request, delayed))
    return manager


def check_fetches(setup: Setup, manager: ReplicaManager, tp: TopicPartition, now: int) -> ReplicaManager:
    """Check the fetches that wait for `tp`: those that are satisfied are read again, answered and removed."""
    for delayed in manager.fetches.values():
        if tp in delayed.statuses:
            manager, satisfied = is_satisfied(setup, manager, delayed)
            if satisfied:
                manager = complete_fetch(setup, manager, delayed, now)
    return manager


def check_deletes(manager: ReplicaManager, tp: TopicPartition) -> ReplicaManager:
    """Check the DeleteRecords that wait for `tp`: those that are complete are answered and removed."""
    for request, waiting in manager.deletes.items():
        if tp not in waiting.statuses:
            continue
        delayed = check_delete_records(manager, waiting)
        if is_delete_records_complete(delayed):
            manager = send_response(
                manager._replace(deletes=manager.deletes.without(request)), delete_records_response(delayed)
            )
        else:
            manager = manager._replace(deletes=manager.deletes.put(request, delayed))
    return manager


def watch_produce(setup: Setup, manager: ReplicaManager, delayed: DelayedProduce, now: int) -> ReplicaManager:
    """Let a produce wait, or answer it if it is complete or its deadline has come.

    DelayedOperationPurgatory#tryCompleteElseWatch.
    """
    delayed = check_produce(setup, manager, delayed)
    if is_produce_complete(delayed) or delayed.deadline <= now:
        return send_response(manager, produce_response(delayed))
    return manager._replace(produces=manager.produces.put(delayed.request, delayed))


def watch_delete(manager: ReplicaManager, delayed: DelayedDeleteRecords, now: int) -> ReplicaManager:
    """Let a DeleteRecords wait, or answer it if it is complete or its deadline has come. #tryCompleteElseWatch."""
    delayed = check_delete_records(manager, delayed)
    if is_delete_records_complete(delayed) or delayed.deadline <= now:
        return send_response(manager, delete_records_response(delayed))
    return manager._replace(deletes=manager.deletes.put(delayed.request, delayed))


def watch_fetch(setup: Setup, manager: ReplicaManager, delayed: DelayedFetch, now: int) -> ReplicaManager:
    """Let a fetch wait, or answer it if it is satisfied or its deadline has come. #tryCompleteElseWatch.

    Other fetches that wait for its partitions are not checked.
    """
    manager, satisfied = is_satisfied(setup, manager, delayed)
    if satisfied or delayed.deadline <= now:
        return complete_fetch(setup, manager, delayed, now)
    return manager._replace(fetches=manager.fetches.put(delayed.request, delayed))


def check_after_append(
    setup: Setup, manager: ReplicaManager, tp: TopicPartition, now: int, *, hw_incremented: bool
) -> ReplicaManager:
    """Check what waits for `tp` after a produce request has appended to it. ReplicaManager#addCompletePurgatoryAction."""
    # Without a new high watermark only followers can have something new: the records above it.
    if not hw_incremented:
        return check_fetches(setup, manager, tp, now)
    return check_deletes(check_fetches(setup, check_produces(setup, manager, tp), tp, now), tp)


def check_all(setup: Setup, manager: ReplicaManager, tp: TopicPartition, now: int) -> ReplicaManager:
    """Check everything that waits for `tp`: fetches, produces, deletes. DelayedOperations#checkAndCompleteAll."""
    return check_deletes(check_produces(setup, check_fetches(setup, manager, tp, now), tp), tp)


def check_when_not_leader(setup: Setup, manager: ReplicaManager, tp: TopicPartition, now: int) -> ReplicaManager:
    """Check the produces and fetches that wait for `tp` once this broker does not lead it, which ends them with an error.

    ReplicaManager#completeDelayedOperationsWhenNotPartitionLeader.
    """
    return check_fetches(setup, check_produces(setup, manager, tp), tp, now)


def with_fetched_logs(setup: Setup, manager: ReplicaManager, changed: Logs, now: int) -> ReplicaManager:
    """Store the logs that a fetcher thread has changed; where a high watermark changed, check the fetches that wait.

    ReplicaFetcherThread#doWork, ReplicaManager#completeDelayedFetchRequests: a follower serves consumers, too (KIP-392).
    """
    before, manager = manager, manager_.with_logs(manager, changed)
    for tp in changed:
        old, new = manager_.online_partition(before, tp), manager_.online_partition(manager, tp)
        if old is not None and new is not None and old.log.hw != new.log.hw:
            manager = check_fetches(setup, manager, tp, now)
    return manager


def complete_fetch(setup: Setup, manager: ReplicaManager, delayed: DelayedFetch, now: int) -> ReplicaManager:
    """End a fetch that waits: read its partitions again, respond, and remove it. DelayedFetch#onComplete."""
    reading = FetchProgress(delayed.params.max_bytes)
    for tp, status in delayed.statuses.items():
        manager, reading = read_next(setup, manager, delayed.params, reading, tp, status.fetch, now, from_purgatory=True)
    manager = manager._replace(fetches=manager.fetches.without(delayed.request))
    done = FrozenMap((tp, read.partition) for tp, read in reading.reads.items())
    return send_response(manager, FetchedPartitions(delayed.request, done))


def expire_requests(setup: Setup, manager: ReplicaManager, now: int) -> ReplicaManager:
    """Answer every request whose deadline has come, the earliest first, kind by kind: each kind has its own timer."""
    for produce in _overdue(manager.produces, now):
        manager = send_response(
            manager._replace(produces=manager.produces.without(produce.request)), produce_response(produce)
        )
    for fetch in _overdue(manager.fetches, now):
        manager = complete_fetch(setup, manager, fetch, now)
    for delete in _overdue(manager.deletes, now):
        manager = send_response(
            manager._replace(deletes=manager.deletes.without(delete.request)), delete_records_response(delete)
        )
    return manager


def _overdue(waiting: FrozenMap[int, DelayedOperation], now: int) -> list[DelayedOperation]:
    """Return the operations whose deadline has come, the earliest first."""
    return sorted((delayed for delayed in waiting.values() if delayed.deadline <= now), key=lambda delayed: delayed.deadline)

"""Delayed operations: fetches, produces and DeleteRecords that wait in a purgatory, and when each is complete."""

from tidegauge.impl.errors import KAFKA_STORAGE_ERROR, REQUEST_TIMED_OUT
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import (
    DeleteRecordsResponse,
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
from tidegauge.impl.server.read_from_log import should_leader_throttle
from tidegauge.impl.server.replica_manager import (
    DelayedDeleteRecords,
    DelayedFetch,
    DelayedProduce,
    DeleteRecordsStatus,
    FetchStatus,
    ProduceStatus,
    ReplicaManager,
    online_partition,
    partition_error,
    size_in_bytes,
    topic_setup,
    with_partition,
)
from tidegauge.impl.storage import log as log_
from tidegauge.impl.storage.producer_state import read_bound
from tidegauge.impl.topic_partition import TopicPartition

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
"""The partition completes the fetch whatever the others have."""


def is_satisfied(setup: Setup, manager: ReplicaManager, delayed: DelayedFetch) -> tuple[ReplicaManager, bool]:
    """Return whether the fetch is answered now; looking a high watermark up may change the manager."""
    available = 0
    for tp, status in delayed.statuses.items():
        manager, size = _available(setup, manager, delayed.params, tp, status)
        if size == COMPLETES:
            return manager, True
        available += size
    return manager, available >= delayed.params.min_bytes


def _available(
    setup: Setup, manager: ReplicaManager, params: FetchParams, tp: TopicPartition, status: FetchStatus
) -> tuple[ReplicaManager, int]:
    """Return the bytes that a partition has ready, or COMPLETES. The letters are the cases of DelayedFetch#tryComplete."""
    partition, request = online_partition(manager, tp), status.fetch.request
    if partition is None:
        return manager, COMPLETES  # B, C, D
    error, _, _ = partition_.last_offset_for_leader_epoch(
        setup, partition, request.current_leader_epoch, UNDEFINED, only_leader=params.only_leader
    )
    if error != NONE:
        return manager, COMPLETES  # A, E
    partition = partition._replace(log=log_.locate_high_watermark(setup, partition.log))
    manager = with_partition(manager, tp, partition)
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
        between = tuple(b for b in log.batches if status.offset <= b.base < bound)
        size = min(size_in_bytes(manager, between), status.fetch.max_bytes)
    return manager, COMPLETES if _has_diverged(setup, partition, status) else size  # H


def _bound_segment(partition: Partition, params: FetchParams) -> int:
    """Return the segment in which a read of this isolation ends."""
    log = partition.log
    if params.isolation is Isolation.LOG_END:
        return log_.active_segment(log)
    if params.isolation is Isolation.TXN_COMMITTED or log.hw_segment == UNDEFINED:
        return log_.segment_of(log, read_bound(log, params.isolation))
    return log.hw_segment


def _has_diverged(setup: Setup, partition: Partition, status: FetchStatus) -> bool:
    """Return whether the leader's log no longer contains what the follower has fetched (case H)."""
    request = status.fetch.request
    if request.last_fetched_epoch == UNDEFINED or not setup.profile.truncation_on_fetch:
        return False
    epoch, end = log_.end_offset_for_epoch(setup, partition.log, request.last_fetched_epoch)
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
    """Make the delayed operation: an appended partition waits, REQUEST_TIMED_OUT prepared; a failed one has its error."""
    return DelayedProduce(
        request, deadline, FrozenMap((tp, _produce_status(response, last)) for tp, (response, last) in appended.items())
    )


def _produce_status(response: PartitionAppend, last: int) -> ProduceStatus:
    if response.error != NONE:
        return ProduceStatus(last + 1, response, acks_pending=False)
    return ProduceStatus(last + 1, response._replace(error=REQUEST_TIMED_OUT), acks_pending=True)


def check_produce(setup: Setup, manager: ReplicaManager, delayed: DelayedProduce) -> DelayedProduce:
    """Check every partition that still waits. DelayedProduce#tryComplete."""
    statuses = delayed.statuses
    for tp, status in statuses.items():
        if not status.acks_pending:
            continue
        done, error = _reached(setup, manager, tp, status.required)
        if done or error != NONE:
            response = status.response._replace(error=error)
            statuses = statuses.put(tp, ProduceStatus(status.required, response, acks_pending=False))
    return delayed._replace(statuses=statuses)


def _reached(setup: Setup, manager: ReplicaManager, tp: TopicPartition, required: int) -> tuple[bool, int]:
    """Return whether the high watermark has reached the required offset, and the error that ends the wait."""
    partition = online_partition(manager, tp)
    if partition is None:
        return False, partition_error(manager, tp)
    return partition_.check_enough_replicas_reach_offset(topic_setup(setup, manager, tp), partition, required)


def is_produce_complete(delayed: DelayedProduce) -> bool:
    """Return whether no partition waits."""
    return not any(status.acks_pending for status in delayed.statuses.values())


def produce_response(delayed: DelayedProduce) -> ProduceResponse:
    """Build the response: at the deadline, partitions that still wait have timed out. DelayedProduce#onComplete."""
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
    """Make the delayed operation: a truncated partition waits, REQUEST_TIMED_OUT prepared; a failed one has its error."""
    return DelayedDeleteRecords(
        request, deadline, FrozenMap((tp, _delete_status(response, offset)) for tp, (response, offset) in deleted.items())
    )


def _delete_status(response: PartitionDelete, required: int) -> DeleteRecordsStatus:
    if response.error != NONE:
        return DeleteRecordsStatus(required, response, acks_pending=False)
    return DeleteRecordsStatus(required, response._replace(error=REQUEST_TIMED_OUT), acks_pending=True)


def check_delete_records(manager: ReplicaManager, delayed: DelayedDeleteRecords) -> DelayedDeleteRecords:
    """Check every partition that still waits. DelayedDeleteRecords#tryComplete."""
    statuses = delayed.statuses
    for tp, status in statuses.items():
        error, low_watermark = _low_watermark(manager, tp)
        if status.acks_pending and (error != NONE or low_watermark >= status.required):
            statuses = statuses.put(
                tp, DeleteRecordsStatus(status.required, PartitionDelete(error, low_watermark), acks_pending=False)
            )
    return delayed._replace(statuses=statuses)


def _low_watermark(manager: ReplicaManager, tp: TopicPartition) -> tuple[int, int]:
    partition = online_partition(manager, tp)
    if partition is None:
        # The request itself would consult the metadata cache here; the delayed operation does not.
        return KAFKA_STORAGE_ERROR if tp in manager.hosted else UNKNOWN_TOPIC_OR_PARTITION, UNDEFINED
    if not partition.is_leader:
        return NOT_LEADER_OR_FOLLOWER, UNDEFINED
    return NONE, partition_.low_watermark(partition, manager.metadata)


def is_delete_records_complete(delayed: DelayedDeleteRecords) -> bool:
    """Return whether no partition waits."""
    return not any(status.acks_pending for status in delayed.statuses.values())


def delete_records_response(delayed: DelayedDeleteRecords) -> DeleteRecordsResponse:
    """Build the response: at the deadline, partitions that still wait have timed out. DelayedDeleteRecords#onComplete."""
    return DeleteRecordsResponse(delayed.request, FrozenMap((tp, s.response) for tp, s in delayed.statuses.items()))

"""A DeleteRecords that waits until no living replica has what is deleted.

Rules of this file

1. A partition stops waiting when its low watermark, the least log start of the leader and the living replicas, has reached
   the offset asked for, or when it cannot be asked any more. Followers raise their log start with the leader's answers.
2. One that is not hosted any more is unknown, whatever the metadata cache says of it: unlike in the request itself.
3. A change of role does not end the wait: the deadline does, or a look for another reason.
4. Source: kafka.server.DelayedDeleteRecords.
"""

from tidegauge.impl.client_messages import DeleteRecordsResponse, PartitionDelete
from tidegauge.impl.error_codes import KAFKA_STORAGE_ERROR, REQUEST_TIMED_OUT
from tidegauge.impl.replica import isr
from tidegauge.impl.rules import NONE, NOT_LEADER_OR_FOLLOWER, UNDEFINED, UNKNOWN_TOPIC_OR_PARTITION
from tidegauge.impl.server.replica_manager import ReplicaManager, online_partition
from tidegauge.impl.server.waiting import DelayedDeleteRecords, DeleteRecordsStatus
from tidegauge.impl.table import Table
from tidegauge.impl.topic_partition import TopicPartition

Deleted = Table[TopicPartition, tuple[PartitionDelete, int]]
"""Per partition: its response, and the requested offset."""


def delayed_delete_records(request: int, deadline: int, deleted: Deleted) -> DelayedDeleteRecords:
    """Make the delayed operation: a truncated partition waits, REQUEST_TIMED_OUT prepared; a failed one has its error."""
    return DelayedDeleteRecords(
        request, deadline, Table((tp, _delete_status(response, offset)) for tp, (response, offset) in deleted.items())
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
    return NONE, isr.low_watermark(partition, manager.metadata)


def is_delete_records_complete(delayed: DelayedDeleteRecords) -> bool:
    """Return whether no partition waits."""
    return not any(status.acks_pending for status in delayed.statuses.values())


def delete_records_response(delayed: DelayedDeleteRecords) -> DeleteRecordsResponse:
    """Build the response: at the deadline, partitions that still wait have timed out. DelayedDeleteRecords#onComplete."""
    return DeleteRecordsResponse(delayed.request, Table((tp, s.response) for tp, s in delayed.statuses.items()))

"""DeleteRecords requests: raise the log start at the leader, and wait for the followers.

Rules of this file

1. Partitions are independent: one may fail while others are truncated. An offset of -1 stands for the high watermark.
2. The response waits if the low watermark of any partition that was truncated is below what was asked for.
3. Source: kafka.server.ReplicaManager#deleteRecords, #deleteRecordsOnLocalLog, #delayedDeleteRecordsRequired.
"""

from tidegauge.impl.client_messages import INTERNAL_TOPICS, DeleteRecordsResponse, PartitionDelete
from tidegauge.impl.error_codes import INVALID_TOPIC_EXCEPTION
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica import isr
from tidegauge.impl.replica import partition as partition_
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.impl.server import purgatory
from tidegauge.impl.server.delayed_delete_records import Deleted, delayed_delete_records
from tidegauge.impl.server.replica_manager import ReplicaManager, online_partition, partition_error, with_partition
from tidegauge.impl.table import Table
from tidegauge.impl.topic_partition import TopicPartition


def delete_records(
    setup: Setup,
    manager: ReplicaManager,
    request: int,
    timeout_ms: int,
    offsets: Table[TopicPartition, int],
    now: int,
    *,
    internal_topics_allowed: bool = False,
) -> ReplicaManager:
    """Handle DeleteRecords; the response is in `answered`, now or later. ReplicaManager#deleteRecords."""
    deleted: Deleted = Table()
    for tp, offset in offsets.items():
        manager, response, requested = _delete(setup, manager, tp, offset, internal_topics_allowed)
        deleted = deleted.put(tp, (response, requested))
    if not any(r.error == NONE and r.low_watermark < requested for r, requested in deleted.values()):
        reported = Table((tp, response) for tp, (response, _) in deleted.items())
        return purgatory.send_response(manager, DeleteRecordsResponse(request, reported))
    return purgatory.watch_delete(manager, delayed_delete_records(request, now + timeout_ms, deleted), now)


def _delete(
    setup: Setup, manager: ReplicaManager, tp: TopicPartition, offset: int, internal_topics_allowed: bool
) -> tuple[ReplicaManager, PartitionDelete, int]:
    if tp.topic in INTERNAL_TOPICS and not internal_topics_allowed:
        return manager, PartitionDelete(INVALID_TOPIC_EXCEPTION), UNDEFINED
    partition = online_partition(manager, tp)
    if partition is None:
        return manager, PartitionDelete(partition_error(manager, tp)), UNDEFINED
    after, error, requested = partition_.delete_records(setup, partition, offset)
    if error != NONE:
        return manager, PartitionDelete(error), UNDEFINED
    low_watermark = isr.low_watermark(after, manager.metadata)
    return with_partition(manager, tp, after), PartitionDelete(NONE, low_watermark), requested

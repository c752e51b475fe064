"""Requests about offsets, answered at once: ListOffsets and OffsetsForLeaderEpoch, partition by partition.

Rules of this file

1. Nothing is changed by them: not the ISR, not the high watermark, nothing that waits.
2. A consumer's isolation says how far it may read; a broker is told the log end. A debugging replica may ask a follower.
3. Source: kafka.server.ReplicaManager#fetchOffset (ListOffsets from v5 on), #lastOffsetForLeaderEpoch.
"""

from tidegauge.impl import messages
from tidegauge.impl.errors import INVALID_TOPIC_EXCEPTION
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica import partition as partition_
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.impl.server import purgatory
from tidegauge.impl.server.purgatory import Deleted, delayed_delete_records
from tidegauge.impl.server.replica_manager import ReplicaManager, online_partition, partition_error, with_partition
from tidegauge.impl.topic_partition import TopicPartition


def list_offsets(
    setup: Setup,
    manager: ReplicaManager,
    replica_id: int,
    partitions: FrozenMap[TopicPartition, messages.ListOffsetsPartition],
    *,
    read_committed: bool = False,
) -> FrozenMap[TopicPartition, messages.ListedOffset]:
    """Answer ListOffsets; a replica id of UNDEFINED is a consumer's. ReplicaManager#fetchOffset."""
    isolation = messages.Isolation.TXN_COMMITTED if read_committed else messages.Isolation.HIGH_WATERMARK
    if replica_id != UNDEFINED:
        isolation = messages.Isolation.LOG_END
    only_leader = replica_id != messages.DEBUGGING_REPLICA
    return FrozenMap(
        (tp, _listed(setup, manager, tp, requested, isolation, only_leader)) for tp, requested in partitions.items()
    )


def _listed(
    setup: Setup,
    manager: ReplicaManager,
    tp: TopicPartition,
    requested: messages.ListOffsetsPartition,
    isolation: messages.Isolation,
    only_leader: bool,
) -> messages.ListedOffset:
    """Look the requested offset of one partition up."""
    partition = online_partition(manager, tp)
    if partition is None:
        return messages.ListedOffset(partition_error(manager, tp))
    return partition_.fetch_offset_for_timestamp(
        setup, partition, requested.spec, requested.current_leader_epoch, isolation, only_leader
    )


def last_offset_for_leader_epoch(
    setup: Setup, manager: ReplicaManager, partitions: FrozenMap[TopicPartition, messages.OffsetsForLeaderEpochRequest]
) -> FrozenMap[TopicPartition, tuple[int, int, int]]:
    """Answer OffsetsForLeaderEpoch with error, epoch and end offset of each. Only a leader answers."""
    return FrozenMap((tp, _end_of_epoch(setup, manager, tp, requested)) for tp, requested in partitions.items())


def _end_of_epoch(
    setup: Setup, manager: ReplicaManager, tp: TopicPartition, requested: messages.OffsetsForLeaderEpochRequest
) -> tuple[int, int, int]:
    """Return (error, epoch, end offset) of one partition."""
    partition = online_partition(manager, tp)
    if partition is None:
        return partition_error(manager, tp), UNDEFINED, UNDEFINED
    return partition_.last_offset_for_leader_epoch(setup, partition, requested.current_leader_epoch, requested.leader_epoch)


# DeleteRecords requests: raise the log start at the leader, and wait for the followers.
#
# Rules of this part
#
# 1. Partitions are independent: one may fail while others are truncated. An offset of -1 stands for the high watermark.
# 2. The response waits if the low watermark of any partition that was truncated is below what was asked for.
# 3. Source: kafka.server.ReplicaManager#deleteRecords, #deleteRecordsOnLocalLog, #delayedDeleteRecordsRequired.


def delete_records(
    setup: Setup,
    manager: ReplicaManager,
    request: int,
    timeout_ms: int,
    offsets: FrozenMap[TopicPartition, int],
    now: int,
    *,
    internal_topics_allowed: bool = False,
) -> ReplicaManager:
    """Handle DeleteRecords; the response is in `answered`, now or later. ReplicaManager#deleteRecords."""
    deleted: Deleted = FrozenMap()
    for tp, offset in offsets.items():
        manager, response, requested = _delete(setup, manager, tp, offset, internal_topics_allowed)
        deleted = deleted.put(tp, (response, requested))
    if not any(r.error == NONE and r.low_watermark < requested for r, requested in deleted.values()):
        reported = FrozenMap((tp, response) for tp, (response, _) in deleted.items())
        return purgatory.send_response(manager, messages.DeleteRecordsResponse(request, reported))
    return purgatory.watch_delete(manager, delayed_delete_records(request, now + timeout_ms, deleted), now)


def _delete(
    setup: Setup, manager: ReplicaManager, tp: TopicPartition, offset: int, internal_topics_allowed: bool
) -> tuple[ReplicaManager, messages.PartitionDelete, int]:
    """Delete in one partition; return its response, and the offset that the low watermark has to reach."""
    if tp.topic in messages.INTERNAL_TOPICS and not internal_topics_allowed:
        return manager, messages.PartitionDelete(INVALID_TOPIC_EXCEPTION), UNDEFINED
    partition = online_partition(manager, tp)
    if partition is None:
        return manager, messages.PartitionDelete(partition_error(manager, tp)), UNDEFINED
    after, error, requested = partition_.delete_records(setup, partition, offset)
    if error != NONE:
        return manager, messages.PartitionDelete(error), UNDEFINED
    low_watermark = partition_.low_watermark(after, manager.metadata)
    return with_partition(manager, tp, after), messages.PartitionDelete(NONE, low_watermark), requested

"""Requests about offsets, answered at once: ListOffsets and OffsetsForLeaderEpoch, partition by partition.

Rules of this file

1. Nothing is changed by them: not the ISR, not the high watermark, nothing that waits.
2. A consumer's isolation says how far it may read; a broker is told the log end. A debugging replica may ask a follower.
3. Source: kafka.server.ReplicaManager#fetchOffset (ListOffsets from v5 on), #lastOffsetForLeaderEpoch.
"""

from tidegauge.impl.client_messages import DEBUGGING_REPLICA, Isolation, ListedOffset, ListOffsetsPartition
from tidegauge.impl.messages import OffsetsForLeaderEpochRequest
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica import partition as partition_
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.server.replica_manager import ReplicaManager, online_partition, partition_error
from tidegauge.impl.table import Table
from tidegauge.impl.topic_partition import TopicPartition


def list_offsets(
    setup: Setup,
    manager: ReplicaManager,
    replica_id: int,
    partitions: Table[TopicPartition, ListOffsetsPartition],
    *,
    read_committed: bool = False,
) -> Table[TopicPartition, ListedOffset]:
    """Answer ListOffsets; a replica id of UNDEFINED is a consumer's. ReplicaManager#fetchOffset."""
    isolation = Isolation.TXN_COMMITTED if read_committed else Isolation.HIGH_WATERMARK
    if replica_id != UNDEFINED:
        isolation = Isolation.LOG_END
    only_leader = replica_id != DEBUGGING_REPLICA
    return Table(
        (tp, _listed(setup, manager, tp, requested, isolation, only_leader)) for tp, requested in partitions.items()
    )


def _listed(
    setup: Setup,
    manager: ReplicaManager,
    tp: TopicPartition,
    requested: ListOffsetsPartition,
    isolation: Isolation,
    only_leader: bool,
) -> ListedOffset:
    partition = online_partition(manager, tp)
    if partition is None:
        return ListedOffset(partition_error(manager, tp))
    return partition_.fetch_offset_for_timestamp(
        setup, partition, requested.spec, requested.current_leader_epoch, isolation, only_leader
    )


def last_offset_for_leader_epoch(
    setup: Setup, manager: ReplicaManager, partitions: Table[TopicPartition, OffsetsForLeaderEpochRequest]
) -> Table[TopicPartition, tuple[int, int, int]]:
    """Answer OffsetsForLeaderEpoch with error, epoch and end offset of each. Only a leader answers."""
    return Table((tp, _end_of_epoch(setup, manager, tp, requested)) for tp, requested in partitions.items())


def _end_of_epoch(
    setup: Setup, manager: ReplicaManager, tp: TopicPartition, requested: OffsetsForLeaderEpochRequest
) -> tuple[int, int, int]:
    partition = online_partition(manager, tp)
    if partition is None:
        return partition_error(manager, tp), UNDEFINED, UNDEFINED
    return partition_.last_offset_for_leader_epoch(setup, partition, requested.current_leader_epoch, requested.leader_epoch)

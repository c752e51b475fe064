"""Requests at a broker: Produce, ListOffsets, OffsetsForLeaderEpoch, DeleteRecords, Fetch.

A function that handles a request takes the broker's `ReplicaManager` and returns the changed one. `request` is the number of
the request, by which its response is found in `answered`, now or, if the request waits (impl.server.purgatory), later.
`now` is the broker's clock in ms. ListOffsets and OffsetsForLeaderEpoch change nothing, and return their responses.

Rules of produce requests

1. An acks other than -1, 0, 1 appends nothing. Otherwise partitions are independent: one may fail while others are written.
2. acks = 1 is answered after the local append, acks = 0 never, acks = -1 when the high watermark has passed the records.
3. Source: kafka.server.ReplicaManager#appendRecords, #appendToLocalLog, #addCompletePurgatoryAction; KafkaApis.
"""

from tidegauge.impl import errors, messages
from tidegauge.impl.errors import INVALID_TOPIC_EXCEPTION
from tidegauge.impl.fetch.fetch_session import Fetches
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import (
    INTERNAL_TOPICS,
    Batch,
    FetchedPartitions,
    FetchParams,
    PartitionAppend,
    ProducedBatch,
    ProduceResponse,
)
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica import partition as partition_
from tidegauge.impl.replica.partition_state import Partition
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.impl.server import purgatory
from tidegauge.impl.server.purgatory import Deleted, delayed_delete_records, delayed_produce
from tidegauge.impl.server.read_from_log import FetchProgress, LogReadResult, read_next
from tidegauge.impl.server.replica_manager import (
    DelayedFetch,
    ReplicaManager,
    count_events,
    online_partition,
    partition_error,
    size_in_bytes,
    topic_setup,
    with_partition,
)
from tidegauge.impl.topic_partition import TopicPartition

VALID_ACKS = frozenset({-1, 0, 1})

PRODUCER_ERRORS = frozenset(
    {
        errors.OUT_OF_ORDER_SEQUENCE_NUMBER,
        errors.DUPLICATE_SEQUENCE_NUMBER,
        errors.INVALID_PRODUCER_EPOCH,
        errors.UNKNOWN_PRODUCER_ID,
    }
)
COUNTED_AS_FAILED = PRODUCER_ERRORS | {errors.NOT_ENOUGH_REPLICAS}
"""Errors that Kafka counts as failed, and answers with the log start: the others are common. #processFailedRecord."""

ProducedBatches = FrozenMap[TopicPartition, ProducedBatch]
AppendResults = FrozenMap[TopicPartition, tuple[PartitionAppend, int]]
"""Per partition: its response, and the last offset appended."""


def append_records(
    setup: Setup,
    manager: ReplicaManager,
    request: int,
    acks: int,
    timeout_ms: int,
    produced: ProducedBatches,
    now: int,
    *,
    internal_topics_allowed: bool = False,
) -> ReplicaManager:
    """Handle a produce request, one batch for each partition in `produced`. ReplicaManager#appendRecords.

    `acks` -1 is all. `internal_topics_allowed`: a coordinator of this broker sends it.
    """
    if acks not in VALID_ACKS:
        refused = FrozenMap((tp, PartitionAppend(errors.INVALID_REQUIRED_ACKS)) for tp in produced)
        return purgatory.send_response(manager, ProduceResponse(request, refused))
    manager, appended, hw_raised = append_to_local_log(setup, manager, acks, produced, now, internal_topics_allowed)
    manager = _respond_or_wait(setup, manager, request, acks, now + timeout_ms, appended, now)
    for tp, (response, _) in appended.items():
        if response.error == NONE:
            # After the response is sent or delayed, so that a request can be completed by its own append.
            manager = purgatory.check_after_append(setup, manager, tp, now, hw_incremented=tp in hw_raised)
    return manager


def _respond_or_wait(
    setup: Setup, manager: ReplicaManager, request: int, acks: int, deadline: int, appended: AppendResults, now: int
) -> ReplicaManager:
    """Send the response to a produce request, or let the request wait in the purgatory until `deadline`.

    `appended` has the response and the last offset appended by partition.
    """
    failed = [response.error != NONE for response, _ in appended.values()]
    # One appended partition is enough to wait (ReplicaManager#delayedProduceRequestRequired).
    if acks == -1 and not all(failed):
        return purgatory.watch_produce(setup, manager, delayed_produce(request, deadline, appended), now)
    responses = FrozenMap((tp, response) for tp, (response, _) in appended.items())
    # With acks=0 there is no response, but the connection of a failed request is closed (KafkaApis#handleProduceRequest).
    closes_connection = acks == 0 and any(failed)
    response = ProduceResponse(request, responses, sent=acks != 0, closes_connection=closes_connection)
    return purgatory.send_response(manager, response)


def append_to_local_log(
    setup: Setup, manager: ReplicaManager, acks: int, produced: ProducedBatches, now: int, internal_topics_allowed: bool
) -> tuple[ReplicaManager, AppendResults, frozenset[TopicPartition]]:
    """Append each produced batch to its partition, if it is led here. ReplicaManager#appendToLocalLog.

    Return (manager, response and last offset appended by partition, partitions whose high watermark rose by the append).
    """
    appended: AppendResults = FrozenMap()
    hw_raised: frozenset[TopicPartition] = frozenset()
    for tp, batch in produced.items():
        manager = count_events(manager, tp, total_produce_requests=1)
        error = _topic_error(manager, tp, internal_topics_allowed)
        before = online_partition(manager, tp)
        # UNDEFINED below: nothing was appended, so there is no last offset.
        if error != NONE or before is None:
            appended = appended.put(tp, (PartitionAppend(error), UNDEFINED))
            continue
        after, error, info = partition_.append_records_to_leader(
            topic_setup(setup, manager, tp),
            before,
            batch.records,
            acks,
            manager.metadata,
            now,
            batch.transaction,
            batch.producer,
        )
        # Kafka validates the records before the producer's sequence, so a bad batch hides a producer error. Other errors,
        # of the partition, come first.
        if error == NONE or error in PRODUCER_ERRORS:
            error = _batch_error(manager, batch) or error
            if error == errors.MESSAGE_TOO_LARGE:
                manager = count_events(manager, tp, bytes_rejected=_size(manager, batch))
        if error in COUNTED_AS_FAILED:
            manager = count_events(manager, tp, failed_produce_requests=1)
            appended = appended.put(tp, (PartitionAppend(error, log_start=before.log.start), UNDEFINED))
            continue
        if error != NONE:
            appended = appended.put(tp, (PartitionAppend(error), UNDEFINED))
            continue
        manager = with_partition(manager, tp, after)
        manager = count_events(manager, tp, bytes_in=_size(manager, batch), messages_in=batch.records)
        hw_raised |= {tp} if after.log.hw > before.log.hw else frozenset()
        appended = appended.put(tp, (PartitionAppend(NONE, info.first, after.log.start), info.last))
    return manager, appended, hw_raised


def _size(manager: ReplicaManager, batch: ProducedBatch) -> int:
    """Return the bytes of a produced batch, which do not depend on its offsets."""
    return size_in_bytes(manager, (Batch(0, batch.records - 1, 0),))


def _topic_error(manager: ReplicaManager, tp: TopicPartition, internal_topics_allowed: bool) -> int:
    """Return the error of a produce to a partition that may not be written by clients, or is not online here; else NONE."""
    if tp.topic in INTERNAL_TOPICS and not internal_topics_allowed:
        return errors.INVALID_TOPIC_EXCEPTION
    return partition_error(manager, tp)


def _batch_error(manager: ReplicaManager, batch: ProducedBatch) -> int:
    """Return the error of a batch that is too large or corrupt, else NONE. UnifiedLog#analyzeAndValidateRecords.

    The order is Kafka's: message.max.bytes, then the checksum, then segment.bytes.
    """
    size = _size(manager, batch)
    if size > manager.settings.number("message.max.bytes"):
        return errors.MESSAGE_TOO_LARGE
    if batch.corrupt:
        return errors.CORRUPT_MESSAGE
    return errors.RECORD_LIST_TOO_LARGE if size > manager.settings.number("log.segment.bytes") else NONE


# ---------------------------------------------------------------------------------------------------------------------
# Requests about offsets, answered at once: ListOffsets and OffsetsForLeaderEpoch, partition by partition.
#
# Rules of this part
#
# 1. Nothing is changed by them: not the ISR, not the high watermark, nothing that waits.
# 2. A consumer's isolation says how far it may read; a broker is told the log end. A debugging replica may ask a follower.
# 3. Source: kafka.server.ReplicaManager#fetchOffset (ListOffsets from v5 on), #lastOffsetForLeaderEpoch.


def list_offsets(
    setup: Setup,
    manager: ReplicaManager,
    replica_id: int,
    partitions: FrozenMap[TopicPartition, messages.ListOffsetsPartition],
    *,
    read_committed: bool = False,
) -> FrozenMap[TopicPartition, messages.ListedOffset]:
    """Handle ListOffsets: return the response of each partition. ReplicaManager#fetchOffset.

    A `replica_id` of UNDEFINED is a consumer's, whose isolation says how far it may read; a broker may read to the log end.
    """
    isolation = messages.Isolation.TXN_COMMITTED if read_committed else messages.Isolation.HIGH_WATERMARK
    if replica_id != UNDEFINED:
        isolation = messages.Isolation.LOG_END
    # A debugging replica may ask a follower.
    only_leader = replica_id != messages.DEBUGGING_REPLICA
    return FrozenMap(
        (tp, _listed_offset(setup, manager, tp, requested, isolation, only_leader)) for tp, requested in partitions.items()
    )


def _listed_offset(
    setup: Setup,
    manager: ReplicaManager,
    tp: TopicPartition,
    requested: messages.ListOffsetsPartition,
    isolation: messages.Isolation,
    only_leader: bool,
) -> messages.ListedOffset:
    """Return one partition of a ListOffsets response: the requested offset, as far as `isolation` reaches, or an error."""
    partition = online_partition(manager, tp)
    if partition is None:
        return messages.ListedOffset(partition_error(manager, tp))
    return partition_.fetch_offset_for_timestamp(
        setup, partition, requested.spec, requested.current_leader_epoch, isolation, only_leader
    )


def last_offset_for_leader_epoch(
    setup: Setup, manager: ReplicaManager, partitions: FrozenMap[TopicPartition, messages.OffsetsForLeaderEpochRequest]
) -> FrozenMap[TopicPartition, tuple[int, int, int]]:
    """Handle OffsetsForLeaderEpoch: return (error, epoch, end offset) of each partition. Only a leader answers.

    ReplicaManager#lastOffsetForLeaderEpoch.
    """
    return FrozenMap((tp, _end_of_epoch(setup, manager, tp, requested)) for tp, requested in partitions.items())


def _end_of_epoch(
    setup: Setup, manager: ReplicaManager, tp: TopicPartition, requested: messages.OffsetsForLeaderEpochRequest
) -> tuple[int, int, int]:
    """Return (error, epoch, end offset) of one partition for OffsetsForLeaderEpoch; UNDEFINED where there is none."""
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
    """Handle DeleteRecords: raise log starts to `offsets`, -1 for the high watermark. ReplicaManager#deleteRecords.

    The request waits until the low watermark, the lowest log start of all live replicas, has reached each offset.
    """
    deleted: Deleted = FrozenMap()
    for tp, offset in offsets.items():
        manager, response, requested = _delete(setup, manager, tp, offset, internal_topics_allowed)
        deleted = deleted.put(tp, (response, requested))
    # No partition has to wait for a follower: each has failed, or its low watermark is there already.
    if not any(r.error == NONE and r.low_watermark < requested for r, requested in deleted.values()):
        responses = FrozenMap((tp, response) for tp, (response, _) in deleted.items())
        return purgatory.send_response(manager, messages.DeleteRecordsResponse(request, responses))
    return purgatory.watch_delete(manager, delayed_delete_records(request, now + timeout_ms, deleted), now)


def _delete(
    setup: Setup, manager: ReplicaManager, tp: TopicPartition, offset: int, internal_topics_allowed: bool
) -> tuple[ReplicaManager, messages.PartitionDelete, int]:
    """Raise the log start of one partition, if it is led here and may be written by clients.

    Return (manager, response of the partition, offset that its low watermark has to reach).
    """
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


# ---------------------------------------------------------------------------------------------------------------------
# Fetch requests: read, answer at once or wait.
#
# Rules of this part
#
# 1. Six conditions answer at once: no wait allowed, nothing asked, enough bytes, an error, a divergence, a preferred
#    replica. "Nothing was read" is none of them (an article of Kafka 2.5 lists four, that among them).
# 2. What the read of a partition did to its ISR and high watermark wakes what waits before the next partition is read.
# 3. Source: kafka.server.ReplicaManager#fetchMessages, KafkaApis#handleFetchRequest.


def fetch_messages(
    setup: Setup, manager: ReplicaManager, request: int, params: FetchParams, fetches: Fetches, now: int
) -> ReplicaManager:
    """Handle a fetch of a follower or consumer: answer it at once, or let it wait. ReplicaManager#fetchMessages."""
    reading = FetchProgress(params.max_bytes)
    for tp, fetch in fetches.items():
        before = online_partition(manager, tp)
        manager, reading = read_next(setup, manager, params, reading, tp, fetch, now)
        manager = _check_after_fetch(setup, before, manager, tp, now)
    if is_immediate(params, reading.reads):
        done = FetchedPartitions(request, FrozenMap((tp, read.partition) for tp, read in reading.reads.items()))
        return purgatory.send_response(manager, done)
    statuses = FrozenMap((tp, read.status) for tp, read in reading.reads.items())
    return purgatory.watch_fetch(setup, manager, DelayedFetch(request, now + params.max_wait_ms, params, statuses), now)


def is_immediate(params: FetchParams, reads: FrozenMap[TopicPartition, LogReadResult]) -> bool:
    """Return whether a fetch with these results is answered at once, rather than waits for minBytes.

    It is if it may not wait, names no partition or has read enough, or for an error, a divergence or a preferred replica.
    """
    partitions = [read.partition for read in reads.values()]
    readable = sum(read.size for read in reads.values())
    return (
        params.max_wait_ms <= 0
        or not reads
        or readable >= params.min_bytes
        or any(p.response.error != NONE for p in partitions)
        or any(p.response.is_diverging for p in partitions)
        or any(p.preferred_read_replica is not None for p in partitions)
    )


def _check_after_fetch(
    setup: Setup, before: Partition | None, manager: ReplicaManager, tp: TopicPartition, now: int
) -> ReplicaManager:
    """Check the requests that wait for `tp` if a follower's fetch has raised its high or low watermark.

    Partition#updateFollowerFetchState. `before` is the partition before the fetch, None if it was not online.
    """
    after = online_partition(manager, tp)
    if before is None or after is None:
        return manager
    if purgatory.high_watermark_incremented(before, after) or purgatory.low_watermark_incremented(manager, before, after):
        return purgatory.check_all(setup, manager, tp, now)
    return manager

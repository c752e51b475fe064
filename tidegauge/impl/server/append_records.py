"""Produce requests: which acks are valid, what each partition is told, and when a response has to wait.

Rules of this file

1. An acks other than -1, 0, 1 appends nothing. Otherwise partitions are independent: one may fail while others are written.
2. acks = 1 is answered after the local append, acks = 0 never, acks = -1 when the high watermark has passed the records.
3. Source: kafka.server.ReplicaManager#appendRecords, #appendToLocalLog, #addCompletePurgatoryAction; KafkaApis.
"""

from tidegauge.impl import errors
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import INTERNAL_TOPICS, Batch, PartitionAppend, ProducedBatch, ProduceResponse
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica import partition as partition_
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.impl.server import purgatory
from tidegauge.impl.server.purgatory import delayed_produce
from tidegauge.impl.server.replica_manager import (
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
    """Handle a produce request; the response is in `answered`, now or later. ReplicaManager#appendRecords."""
    if acks not in VALID_ACKS:
        refused = FrozenMap((tp, PartitionAppend(errors.INVALID_REQUIRED_ACKS)) for tp in produced)
        return purgatory.send_response(manager, ProduceResponse(request, refused))
    manager, appended, moved = append_to_local_log(setup, manager, acks, produced, now, internal_topics_allowed)
    manager = _respond_or_wait(setup, manager, request, acks, now + timeout_ms, appended, now)
    for tp, (response, _) in appended.items():
        if response.error == NONE:
            # After the response is sent or delayed, so that a request can be completed by its own append.
            manager = purgatory.check_after_append(setup, manager, tp, now, hw_incremented=tp in moved)
    return manager


def _respond_or_wait(
    setup: Setup, manager: ReplicaManager, request: int, acks: int, deadline: int, appended: AppendResults, now: int
) -> ReplicaManager:
    """Send the response, or let the request wait in the purgatory until `deadline`."""
    failed = [response.error != NONE for response, _ in appended.values()]
    # One appended partition is enough to wait (ReplicaManager#delayedProduceRequestRequired).
    if acks == -1 and not all(failed):
        return purgatory.watch_produce(setup, manager, delayed_produce(request, deadline, appended), now)
    responses = FrozenMap((tp, response) for tp, (response, _) in appended.items())
    # With acks=0 there is no response, but the connection of a failed request is closed (KafkaApis#handleProduceRequest).
    return purgatory.send_response(manager, ProduceResponse(request, responses, acks != 0, acks == 0 and any(failed)))


def append_to_local_log(
    setup: Setup, manager: ReplicaManager, acks: int, produced: ProducedBatches, now: int, internal_topics_allowed: bool
) -> tuple[ReplicaManager, AppendResults, frozenset[TopicPartition]]:
    """Append to each partition led here; also return whose high watermark advanced. ReplicaManager#appendToLocalLog."""
    appended: AppendResults = FrozenMap()
    moved: frozenset[TopicPartition] = frozenset()
    for tp, batch in produced.items():
        manager = count_events(manager, tp, total_produce_requests=1)
        error = _refusal(manager, tp, internal_topics_allowed)
        before = online_partition(manager, tp)
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
        # Kafka validates the records before the producer's sequence, so a bad batch hides a producer error.
        if error == NONE or error in PRODUCER_ERRORS:
            error = _bad_batch(manager, batch) or error
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
        moved |= {tp} if after.log.hw > before.log.hw else frozenset()
        appended = appended.put(tp, (PartitionAppend(NONE, info.first, after.log.start), info.last))
    return manager, appended, moved


def _size(manager: ReplicaManager, batch: ProducedBatch) -> int:
    return size_in_bytes(manager, (Batch(0, batch.records - 1, 0),))


def _refusal(manager: ReplicaManager, tp: TopicPartition, internal_topics_allowed: bool) -> int:
    if tp.topic in INTERNAL_TOPICS and not internal_topics_allowed:
        return errors.INVALID_TOPIC_EXCEPTION
    return partition_error(manager, tp)


def _bad_batch(manager: ReplicaManager, batch: ProducedBatch) -> int:
    """Return the error of a batch: message.max.bytes, then checksum, then segment.bytes. #analyzeAndValidateRecords.

    Leadership and min.insync.replicas are tested before the records are read.
    """
    size = _size(manager, batch)
    if size > manager.settings.number("message.max.bytes"):
        return errors.MESSAGE_TOO_LARGE
    if batch.corrupt:
        return errors.CORRUPT_MESSAGE
    return errors.RECORD_LIST_TOO_LARGE if size > manager.settings.number("log.segment.bytes") else NONE

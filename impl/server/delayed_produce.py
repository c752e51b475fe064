"""A produce that waits for the in-sync replicas.

Rules of this file

1. A partition stops waiting when it is answered: gone, not led here any more, or its high watermark has reached the
   required offset. The request is answered when no partition waits, or at its deadline.
2. Nobody's log end is looked at: the high watermark alone decides (an article compares it with the log end).
3. Source: kafka.server.DelayedProduce (org.apache.kafka.server.purgatory since 4.3).
"""

from tidegauge.impl.client_messages import PartitionAppend, ProduceResponse
from tidegauge.impl.error_codes import REQUEST_TIMED_OUT
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica import isr
from tidegauge.impl.rules import NONE
from tidegauge.impl.server.replica_manager import ReplicaManager, online_partition, partition_error, topic_setup
from tidegauge.impl.server.waiting import DelayedProduce, ProduceStatus
from tidegauge.impl.table import Table
from tidegauge.impl.topic_partition import TopicPartition


def delayed_produce(
    request: int, deadline: int, appended: Table[TopicPartition, tuple[PartitionAppend, int]]
) -> DelayedProduce:
    """Make the delayed operation: an appended partition waits, REQUEST_TIMED_OUT prepared; a failed one has its error."""
    return DelayedProduce(
        request, deadline, Table((tp, _produce_status(response, last)) for tp, (response, last) in appended.items())
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
    partition = online_partition(manager, tp)
    if partition is None:
        return False, partition_error(manager, tp)
    return isr.check_enough_replicas_reach_offset(topic_setup(setup, manager, tp), partition, required)


def is_produce_complete(delayed: DelayedProduce) -> bool:
    """Return whether no partition waits."""
    return not any(status.acks_pending for status in delayed.statuses.values())


def produce_response(delayed: DelayedProduce) -> ProduceResponse:
    """Build the response: at the deadline, partitions that still wait have timed out. DelayedProduce#onComplete."""
    return ProduceResponse(delayed.request, Table((tp, s.response) for tp, s in delayed.statuses.items()))

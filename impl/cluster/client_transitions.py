"""Clients of the played cluster: produces with acks=all that wait for the in-sync replicas, and consumers that read.

Rules of this file

1. Nothing here is enabled without a bound for it (`Bounds.max_waiting`): spec/Replication.tla has no clients, only what a
   high watermark exposes. spec/Acks.tla has them.
2. With clients every record a leader appends is a produce with acks=all, and is refused where that is. It is answered as a
   DelayedProduce is: when the high watermark has passed it, or with an error once the broker does not lead. A broker that
   dies answers nobody.
3. A broker that leads no more reads no metadata before it has answered whoever waits at it: both happen under
   ReplicaManager's replicaStateChangeLock (#completeDelayedOperationsWhenNotPartitionLeader). It has to: a DelayedProduce
   knows where its record ended, not which it was, and after another term its log may have another one there.
4. A consumer is shown what Partition#fetchRecords reads for it, from the log start to the high watermark.
"""

from collections.abc import Iterator

from tidegauge.impl.client_messages import Isolation
from tidegauge.impl.cluster.broker import Broker
from tidegauge.impl.cluster.transitions import AwaitedRecord, BoundedModel, Transition, collect_transitions
from tidegauge.impl.messages import FetchRequest
from tidegauge.impl.replica import isr, partition
from tidegauge.impl.rules import NONE, UNDEFINED

AwaitedRecords = tuple[AwaitedRecord, ...]
"""The records that a broker's clients wait for, oldest first."""


@collect_transitions
def client_transitions(model: BoundedModel, b: int, broker: Broker, waiting: AwaitedRecords) -> Iterator[Transition]:
    """Find AnswerProduce, Read: they read the broker and the produces that wait at it."""
    setup, now = model.setup, broker.partition
    for at, (end, epoch) in enumerate(waiting):
        reached, error = isr.check_enough_replicas_reach_offset(setup, now, end)
        if reached or error != NONE:
            acked = (end - 1, epoch) if error == NONE else None
            yield Transition(("AnswerProduce", b, end, error), b, waiting=(*waiting[:at], *waiting[at + 1 :]), acked=acked)
    if broker.leads:
        request = FetchRequest(UNDEFINED, UNDEFINED, now.log.start, UNDEFINED)
        _, response = partition.fetch_records(
            setup, now, request, (), 0, model.bounds.max_log, isolation=Isolation.HIGH_WATERMARK, update=False
        )
        if response.records:
            yield Transition(("Read", b, response.hw, response.records[-1].last + 1), b)


def may_read_metadata(broker: Broker, waiting: AwaitedRecords) -> bool:
    """Return whether no client waits for this broker to report that it leads no more."""
    return broker.leads or not waiting

"""The ISR changes that a broker proposes, and what the controller's responses do to it.

Rules of this file

1. Every partition led here is looked at each replica.lag.time.max.ms / 2; what a look proposes is a pending state, which the
   caller sends to the controller (impl.replica.partition.alter_partition_request).
2. A response counts while its proposal is pending: as an expansion or a shrink, as failed if it is an error or stale.
3. Source: kafka.server.ReplicaManager#maybeShrinkIsr, kafka.cluster.Partition#submitAlterPartition, AlterPartitionListener.
"""

from tidegauge.impl.messages import AlterPartitionResponse
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica import partition
from tidegauge.impl.replica.partition_state import Partition, PartitionState
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.impl.server import purgatory
from tidegauge.impl.server.replica_manager import IsrUpdates, ReplicaManager, online_partition, topic_setup, with_partition
from tidegauge.impl.topic_partition import TopicPartition


def maybe_shrink_isrs(setup: Setup, manager: ReplicaManager, now: int) -> ReplicaManager:
    """Propose smaller ISRs for all partitions that are online. ReplicaManager#maybeShrinkIsr."""
    for tp, hosted in manager.hosted.items():
        if not hosted.offline:
            manager = with_partition(manager, tp, partition.maybe_shrink_isr(setup, hosted.partition, now))
    return manager


def handle_isr_response(
    setup: Setup,
    manager: ReplicaManager,
    tp: TopicPartition,
    proposed: PartitionState,
    response: AlterPartitionResponse,
    now: int,
) -> tuple[ReplicaManager, bool]:
    """Handle the controller's response to a proposal; also return whether the request must be sent again."""
    before = online_partition(manager, tp)
    if before is None:
        return manager, False
    after, again = partition.handle_alter_partition_response(
        topic_setup(setup, manager, tp), before, proposed, response, manager.metadata, now
    )
    manager = with_partition(manager, tp, after)
    manager = manager._replace(isr_updates=_counted(manager.isr_updates, before, after, proposed, response))
    if purgatory.high_watermark_incremented(before, after):
        manager = purgatory.check_all(setup, manager, tp, now)
    return manager, again


def _counted(
    counts: IsrUpdates, before: Partition, after: Partition, proposed: PartitionState, response: AlterPartitionResponse
) -> IsrUpdates:
    if before.state != proposed:
        return counts
    # A response without error that leaves the proposal pending was stale: Kafka marks it as a failed update.
    if response.error != NONE or after.state == proposed:
        return counts._replace(failed=counts.failed + 1)
    if proposed.adding != UNDEFINED:
        return counts._replace(expands=counts.expands + 1)
    return counts._replace(shrinks=counts.shrinks + 1)

"""The high watermark and the in-sync replicas at a leader.

Rules of this file

1. The high watermark moves when the log grew, when a follower's recorded end changed, when the ISR was committed, and on
   becoming leader: never by time alone. Callers of `maybe_increment_leader_hw` are those places.
2. One proposal is pending at a time; only the controller's response or new metadata ends it.
3. `now` is the leader's clock in ms, `metadata` its metadata cache: both are handed in.
4. Source: kafka.cluster.Partition.
"""

from tidegauge.impl.error_codes import NOT_ENOUGH_REPLICAS_AFTER_APPEND
from tidegauge.impl.messages import AlterPartitionRequest, AlterPartitionResponse, Metadata
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica import replica as replica_
from tidegauge.impl.replica.partition_state import Partition, PartitionState, remote
from tidegauge.impl.rules import COMMITTED, GIVEN_UP, NONE, NOT_LEADER_OR_FOLLOWER, SENT_AGAIN, UNDEFINED
from tidegauge.impl.storage import log as log_

# ---------------------------------------------------------------------------------------------------------------------
# High watermark


def is_isr_eligible(setup: Setup, partition: Partition, broker_id: int, metadata: Metadata) -> bool:
    """Return whether a replica may join: not fenced or shutting down (KIP-841), same incarnation (KIP-903).

    Partition#isReplicaIsrEligible.
    """
    entry = remote(partition, broker_id)
    broker = next((b for b in metadata if b.broker_id == broker_id), None)
    if setup.profile.eligibility == "alive":
        return entry is not None and broker is not None and broker.epoch is not None
    if entry is None or broker is None or broker.fenced or broker.shutting_down:
        return False
    if setup.profile.eligibility == "unfenced":
        return True
    # No fetch of this leader epoch yet, or no incarnation is alive: nothing to compare.
    if entry.broker_epoch is None or broker.epoch is None:
        return False
    # UNDEFINED is a follower that does not send its broker epoch (before Fetch version 15): it cannot be fenced by it.
    return entry.broker_epoch in {UNDEFINED, broker.epoch}


def is_under_min_isr(setup: Setup, partition: Partition) -> bool:
    """Partition#isUnderMinIsr."""
    return partition.is_leader and setup.rules.under_min_isr(
        len(partition.state.isr), setup.min_insync_replicas, _cap(setup, partition)
    )


def is_at_min_isr(setup: Setup, partition: Partition) -> bool:
    """Whether one member less would be too few. Partition#isAtMinIsr."""
    effective = min(setup.min_insync_replicas, _cap(setup, partition))
    return partition.is_leader and len(partition.state.isr) == effective


def _cap(setup: Setup, partition: Partition) -> int:
    """Return the upper bound of min.insync.replicas: the number of replicas since KAFKA-15583. Partition#effectiveMinIsr."""
    return len(partition.remotes) + 1 if setup.profile.blocks_under_min_isr else setup.min_insync_replicas


def maybe_increment_leader_hw(setup: Setup, partition: Partition, metadata: Metadata, now: int) -> Partition:
    """Raise the high watermark to the lowest log end that counts. Partition#maybeIncrementLeaderHW."""
    too_few = setup.profile.blocks_under_min_isr and is_under_min_isr(setup, partition)
    # A proposed member may already be in the controller's ISR and be elected next, so it holds the high watermark back
    # (2.7).
    maximal = partition.state.maximal_isr if setup.profile.counts_maximal_isr else partition.state.isr
    log, all_count = partition.log, not setup.profile.counts_only_eligible
    # Kafka returns before it looks the position up, so a blocked high watermark is not rounded to its batch either.
    if not too_few:
        log = log_.locate_high_watermark(setup, log)
    counted = [
        setup.rules.counts_for_high_watermark(
            r.broker_id in maximal,
            replica_.is_caught_up(setup, r, log.end, now),
            all_count or is_isr_eligible(setup, partition, r.broker_id, metadata),
        )
        for r in partition.remotes
    ]
    hw = setup.rules.leader_high_watermark(log.hw, log.end, [r.log_end for r in partition.remotes], counted, too_few)
    if hw != log.hw:
        log = log._replace(hw=hw, hw_segment=log_.segment_of(log, hw))
    return partition._replace(log=log)


def check_enough_replicas_reach_offset(setup: Setup, partition: Partition, required: int) -> tuple[bool, int]:
    """Return whether an acks=all produce is answered, and its error. Partition#checkEnoughReplicasReachOffset."""
    if not partition.is_leader:
        return False, NOT_LEADER_OR_FOLLOWER
    if partition.log.hw < required:
        return False, NONE
    # The records are committed in any case; the error only says that fewer replicas hold them than were asked for.
    members = len(partition.state.maximal_isr)
    if setup.rules.under_min_isr(members, setup.min_insync_replicas, _cap(setup, partition)):
        return True, NOT_ENOUGH_REPLICAS_AFTER_APPEND
    return True, NONE


def low_watermark(partition: Partition, metadata: Metadata) -> int:
    """Return the lowest log start among the leader and the replicas that are alive. Partition#lowWatermarkIfLeader."""
    alive = {b.broker_id for b in metadata if b.epoch is not None}
    return min([partition.log.start, *(r.log_start for r in partition.remotes if r.broker_id in alive)])


# ---------------------------------------------------------------------------------------------------------------------
# In-sync replicas


def maybe_expand_isr(setup: Setup, partition: Partition, broker_id: int, metadata: Metadata) -> Partition:
    """Propose to add a replica that has caught up. Partition#maybeExpandIsr."""
    entry = remote(partition, broker_id)
    # One proposal at a time: the controller compares partition epochs, so a second one would be refused anyway.
    if entry is None or partition.state.is_inflight or broker_id in partition.state.isr:
        return partition
    if setup.profile.join_needs_epoch_start and partition.epoch_start == UNDEFINED:
        # Leader again in an epoch in which it followed: Partition#isFollowerInSync has nothing to compare with.
        return partition
    epoch_start = partition.epoch_start if setup.profile.join_needs_epoch_start else 0
    if not setup.rules.may_join_isr(entry.log_end, partition.log.hw, epoch_start):
        return partition
    if not is_isr_eligible(setup, partition, broker_id, metadata):
        return partition
    return partition._replace(state=PartitionState(partition.state.isr, adding=broker_id))


def out_of_sync_replicas(setup: Setup, partition: Partition, now: int) -> tuple[int, ...]:
    """Return the ISR members that have not caught up in time. Partition#getOutOfSyncReplicas."""
    if not partition.is_leader or partition.state.is_inflight:
        return ()
    candidates = [b for b in partition.state.isr if b != partition.broker_id]
    return tuple(b for b in candidates if not _in_sync(setup, partition, b, now))


def _in_sync(setup: Setup, partition: Partition, broker_id: int, now: int) -> bool:
    entry = remote(partition, broker_id)
    return entry is not None and replica_.is_caught_up(setup, entry, partition.log.end, now)


def prepare_isr_shrink(partition: Partition, out_of_sync: tuple[int, ...]) -> Partition:
    """Propose an ISR without `out_of_sync`. Partition#prepareIsrShrink."""
    return partition._replace(state=PartitionState(partition.state.isr, removing=out_of_sync))


def maybe_shrink_isr(setup: Setup, partition: Partition, now: int) -> Partition:
    """Check for lagging members, every replica.lag.time.max.ms / 2. Partition#maybeShrinkIsr."""
    out_of_sync = out_of_sync_replicas(setup, partition, now)
    return prepare_isr_shrink(partition, out_of_sync) if out_of_sync else partition


def alter_partition_request(partition: Partition, own_epoch: int = UNDEFINED) -> AlterPartitionRequest:
    """Build the request of a pending proposal, with each member's broker epoch. Partition#submitAlterPartition."""
    proposed = partition.state.proposed_isr
    known = {r.broker_id: r.broker_epoch for r in partition.remotes} | {partition.broker_id: own_epoch}
    epochs = tuple(UNDEFINED if (epoch := known.get(b)) is None else epoch for b in proposed)
    return AlterPartitionRequest(partition.broker_id, partition.leader_epoch, partition.partition_epoch, proposed, epochs)


def handle_alter_partition_response(
    setup: Setup,
    partition: Partition,
    proposed: PartitionState,
    response: AlterPartitionResponse,
    metadata: Metadata,
    now: int,
) -> tuple[Partition, bool]:
    """Handle the controller's response; also return whether to send the request again. #handleAlterPartitionUpdate, #Error.

    "Is it the proposed state" is equality by content, so an identical proposal sent again is matched by the old response.
    """
    # Metadata of a new leader epoch has replaced the proposal meanwhile.
    if partition.state != proposed:
        return partition, False
    outcome = setup.rules.proposal_after(response.error)
    if outcome == GIVEN_UP:
        return partition._replace(state=PartitionState(partition.state.isr)), False
    if outcome != COMMITTED:
        return partition, outcome == SENT_AGAIN
    # Newer metadata was read before this response arrived: what it commits is in that metadata, or has been changed since.
    if response.leader_epoch != partition.leader_epoch or response.partition_epoch < partition.partition_epoch:
        return partition, False
    committed = partition._replace(state=PartitionState(response.isr), partition_epoch=response.partition_epoch)
    # A smaller ISR may let the high watermark advance. 2.7 to 3.0 waited for the next fetch (KAFKA-13091).
    if not setup.profile.hw_after_isr_response:
        return committed, False
    return maybe_increment_leader_hw(setup, committed, metadata, now), False

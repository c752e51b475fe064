"""Partition: one replica as its broker sees it, and everything a leader does.

Rules of this file

1. Functions take the partition and return the changed one. An error a request is answered with is a code in the answer.
2. The committed ISR changes only when the controller says so. A proposal makes the state pending; while it is pending the
   maximal ISR decides: an expansion counts at once, a shrink counts late.
3. `now` is the leader's clock in ms, `metadata` its metadata cache: both are handed in.
4. Source: kafka.cluster.Partition.
"""

from typing import NamedTuple

from impl import log as log_
from impl import replica as replica_
from impl.errors import OffsetOutOfRangeError, UnexpectedAppendOffsetError
from impl.log import AppendInfo, Batch, Log
from impl.messages import (
    INELIGIBLE_REPLICA,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    NEW_LEADER_ELECTED,
    NOT_ENOUGH_REPLICAS,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    OPERATION_NOT_ATTEMPTED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    AlterPartitionRequest,
    AlterPartitionResponse,
    FetchRequest,
    FetchResponse,
    Metadata,
)
from impl.profiles import Setup
from impl.replica import Replica
from impl.rules import (
    DIVERGING,
    FENCED_LEADER_EPOCH,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    OUT_OF_RANGE,
    UNDEFINED,
    UNKNOWN_LEADER_EPOCH,
)

WAITS_FOR_METADATA = frozenset({
    UNKNOWN_TOPIC_OR_PARTITION,
    INVALID_REQUEST,
    FENCED_LEADER_EPOCH,
    INVALID_UPDATE_VERSION,
    NEW_LEADER_ELECTED,
    UNKNOWN_TOPIC_ID,
})
"""AlterPartition errors that leave a proposal pending until new metadata arrives."""


class PartitionState(NamedTuple):
    """CommittedPartitionState, PendingExpandIsr (`adding`), PendingShrinkIsr (`removing`)."""

    isr: tuple[int, ...] = ()
    adding: int = UNDEFINED
    removing: tuple[int, ...] = ()

    @property
    def is_inflight(self) -> bool:
        """A proposal waits for the controller."""
        return self.adding != UNDEFINED or bool(self.removing)

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """Every replica that may be in the ISR as far as this leader knows."""
        return self.isr if self.adding == UNDEFINED else (*self.isr, self.adding)

    @property
    def proposed_isr(self) -> tuple[int, ...]:
        """What the controller is asked for, in order of broker id."""
        return tuple(sorted(b for b in self.maximal_isr if b not in self.removing))


class Partition(NamedTuple):
    """The defaults are those of a partition object that has seen no metadata."""

    broker_id: int
    log: Log = Log()
    leader_id: int = UNDEFINED
    leader_epoch: int = UNDEFINED
    partition_epoch: int = 0
    epoch_start: int = UNDEFINED
    state: PartitionState = PartitionState()
    remotes: tuple[Replica, ...] = ()

    @property
    def is_leader(self) -> bool:
        """Partition#isLeader."""
        return self.leader_id == self.broker_id


def remote(partition: Partition, broker_id: int) -> Replica | None:
    """The entry for another replica, None when it is not assigned."""
    return next((r for r in partition.remotes if r.broker_id == broker_id), None)


# ---------------------------------------------------------------------------------------------------------------------
# Roles


def make_leader(
    setup: Setup,
    partition: Partition,
    leader_epoch: int,
    partition_epoch: int,
    isr: tuple[int, ...],
    assignment: tuple[int, ...],
    metadata: Metadata,
    now: int,
) -> tuple[Partition, bool]:
    """Metadata names this broker leader; whether it was none before. Partition#makeLeader.

    Nothing is truncated and the high watermark stays: an uncommitted tail may still be committed.
    """
    if partition_epoch < partition.partition_epoch:
        return partition, False
    was_leader = partition.is_leader
    known = {r.broker_id: r for r in partition.remotes}
    remotes = tuple(known.get(b, Replica(b)) for b in assignment if b != partition.broker_id)
    log, epoch_start = partition.log, partition.epoch_start
    if leader_epoch > partition.leader_epoch:
        epoch_start = log.end
        log = log_.assign_epoch_start_offset(setup, log, leader_epoch, epoch_start)
        remotes = tuple(replica_.reset(setup, r, now, log.end, not was_leader, r.broker_id in isr) for r in remotes)
    led = partition._replace(
        log=log,
        leader_id=partition.broker_id,
        leader_epoch=max(leader_epoch, partition.leader_epoch),
        partition_epoch=partition_epoch,
        epoch_start=epoch_start,
        state=PartitionState(isr),
        remotes=remotes,
    )
    return maybe_increment_leader_hw(setup, led, metadata, now), not was_leader


def make_follower(partition: Partition, leader_id: int, leader_epoch: int, partition_epoch: int) -> tuple[Partition, bool]:
    """Metadata names another leader, or none; whether the leader epoch grew. Partition#makeFollower.

    Only then are fetchers restarted (KAFKA-13790): the leader's id does not matter.
    """
    if partition_epoch < partition.partition_epoch:
        return partition, False
    followed = Partition(partition.broker_id, partition.log, leader_id, leader_epoch, partition_epoch)
    return followed, leader_epoch > partition.leader_epoch


# ---------------------------------------------------------------------------------------------------------------------
# High watermark


def is_isr_eligible(partition: Partition, broker_id: int, metadata: Metadata) -> bool:
    """Partition#isReplicaIsrEligible: not fenced, not shutting down (KIP-841), same incarnation (KIP-903)."""
    entry = remote(partition, broker_id)
    broker = next((b for b in metadata if b.broker_id == broker_id), None)
    if entry is None or broker is None or broker.fenced or broker.shutting_down:
        return False
    if entry.broker_epoch is None or broker.epoch is None:
        return False
    return entry.broker_epoch in {UNDEFINED, broker.epoch}


def is_under_min_isr(setup: Setup, partition: Partition) -> bool:
    """Partition#isUnderMinIsr."""
    return partition.is_leader and setup.rules.under_min_isr(
        len(partition.state.isr), setup.min_insync_replicas, len(partition.remotes) + 1
    )


def maybe_increment_leader_hw(setup: Setup, partition: Partition, metadata: Metadata, now: int) -> Partition:
    """Partition#maybeIncrementLeaderHW."""
    too_few = setup.profile.blocks_under_min_isr and is_under_min_isr(setup, partition)
    maximal, log = partition.state.maximal_isr, partition.log
    if not too_few:
        log = log_.locate_high_watermark(setup, log)
    counted = [
        setup.rules.counts_for_high_watermark(
            r.broker_id in maximal,
            replica_.is_caught_up(setup, r, log.end, now),
            is_isr_eligible(partition, r.broker_id, metadata),
        )
        for r in partition.remotes
    ]
    hw = setup.rules.leader_high_watermark(log.hw, log.end, [r.log_end for r in partition.remotes], counted, too_few)
    if hw != log.hw:
        log = log._replace(hw=hw, hw_segment=log_.segment_of(log, hw))
    return partition._replace(log=log)


def check_enough_replicas_reach_offset(setup: Setup, partition: Partition, required: int) -> tuple[bool, int]:
    """Whether an acks=all produce is answered, and with what. Partition#checkEnoughReplicasReachOffset."""
    if not partition.is_leader:
        return False, NOT_LEADER_OR_FOLLOWER
    if partition.log.hw < required:
        return False, NONE
    members = len(partition.state.maximal_isr)
    if setup.rules.under_min_isr(members, setup.min_insync_replicas, len(partition.remotes) + 1):
        return True, NOT_ENOUGH_REPLICAS_AFTER_APPEND
    return True, NONE


def low_watermark(partition: Partition, metadata: Metadata) -> int:
    """The lowest log start among the leader and the replicas that are alive. Partition#lowWatermarkIfLeader."""
    alive = {b.broker_id for b in metadata if b.epoch is not None}
    return min([partition.log.start, *(r.log_start for r in partition.remotes if r.broker_id in alive)])


def delete_records(setup: Setup, partition: Partition, offset: int) -> tuple[Partition, int, int]:
    """Raise the log start on request; UNDEFINED means up to the high watermark. Partition#deleteRecordsOnLeader.

    The partition, an error code, and the offset that was requested.
    """
    if not partition.is_leader:
        return partition, NOT_LEADER_OR_FOLLOWER, UNDEFINED
    requested = partition.log.hw if offset == UNDEFINED else offset
    if requested < 0:
        return partition, OFFSET_OUT_OF_RANGE, requested
    try:
        log, _ = log_.maybe_increment_log_start(setup, partition.log, requested)
    except OffsetOutOfRangeError:
        return partition, OFFSET_OUT_OF_RANGE, requested
    return partition._replace(log=log), NONE, requested


# ---------------------------------------------------------------------------------------------------------------------
# Appends


def append_records_to_leader(
    setup: Setup, partition: Partition, records: int, acks: int, metadata: Metadata, now: int
) -> tuple[Partition, int, AppendInfo]:
    """A produce request: the partition, an error code, what was appended. Partition#appendRecordsToLeader."""
    if not partition.is_leader:
        return partition, NOT_LEADER_OR_FOLLOWER, AppendInfo()
    if acks == -1 and is_under_min_isr(setup, partition):
        return partition, NOT_ENOUGH_REPLICAS, AppendInfo()
    log, info = log_.append_as_leader(setup, partition.log, records, partition.leader_epoch)
    return maybe_increment_leader_hw(setup, partition._replace(log=log), metadata, now), NONE, info


def append_records_to_follower(
    setup: Setup, log: Log, batches: tuple[Batch, ...], leader_epoch: int, *, last_is_corrupt: bool = False
) -> tuple[Log, AppendInfo]:
    """Partition#appendRecordsToFollowerOrFutureReplica.

    An empty log whose start lies inside what was fetched starts again at the first batch's base (KAFKA-6975).
    """
    try:
        return log_.append_as_follower(setup, log, batches, leader_epoch, last_is_corrupt=last_is_corrupt)
    except UnexpectedAppendOffsetError:
        accepted = log_.without_later_epochs(setup, batches, leader_epoch)
        first, last = accepted[0].base, accepted[-1].last
        if log.end != log.start or not first < log.end <= last:
            raise
        return log_.append_as_follower(setup, log_.truncate_fully_and_start_at(log, first), batches, leader_epoch)


# ---------------------------------------------------------------------------------------------------------------------
# Fetch


def _check_request(setup: Setup, partition: Partition, current_leader_epoch: int, *, only_leader: bool = True) -> int:
    if setup.profile.fencing:
        error = setup.rules.check_leader_epoch(current_leader_epoch, partition.leader_epoch)
        if error != NONE:
            return error
    return NONE if partition.is_leader or not only_leader else NOT_LEADER_OR_FOLLOWER


def last_offset_for_leader_epoch(
    setup: Setup, partition: Partition, current_leader_epoch: int, requested: int, *, only_leader: bool = True
) -> tuple[int, int, int]:
    """OffsetsForLeaderEpoch: (error, epoch, end offset). Partition#lastOffsetForLeaderEpoch."""
    error = _check_request(setup, partition, current_leader_epoch, only_leader=only_leader)
    if error != NONE:
        return error, UNDEFINED, UNDEFINED
    return NONE, *log_.end_offset_for_epoch(setup, partition.log, requested)


def fetch_records(
    setup: Setup,
    partition: Partition,
    request: FetchRequest,
    metadata: Metadata,
    now: int,
    max_records: int,
    *,
    up_to_hw: bool = False,
    update: bool = True,
) -> tuple[Partition, FetchResponse]:
    """A fetch: fencing, divergence, read; from a follower also its state, ISR, high watermark. Partition#fetchRecords.

    The answer carries the high watermark from before this fetch counted, so a follower learns the effect of its own
    fetch one answer later. A diverging fetch changes nothing at the leader. `up_to_hw` is a consumer's isolation;
    `update` is off when a delayed fetch is read again.
    """
    error = _check_fetch(setup, partition, request)
    if error != NONE:
        return partition, FetchResponse(error)
    log = partition.log
    asked = request.last_fetched_epoch if setup.profile.truncation_on_fetch else UNDEFINED
    decision, epoch, end = setup.rules.fetch_decision(
        log.cache.epochs, log.cache.starts, log.start, log.end, request.fetch_offset, asked
    )
    if decision == OUT_OF_RANGE:
        return partition, FetchResponse(OFFSET_OUT_OF_RANGE)
    if decision == DIVERGING:
        return partition, FetchResponse(NONE, log.hw, log.start, (), epoch, end)
    located = log_.locate_high_watermark(setup, log) if up_to_hw else log
    try:
        records = log_.read(located, request.fetch_offset, located.hw if up_to_hw else log.end, max_records)
    except OffsetOutOfRangeError:
        return partition, FetchResponse(OFFSET_OUT_OF_RANGE)
    after = partition._replace(log=located)
    if request.is_from_follower and update:
        after, error = update_follower_fetch_state(setup, after, request, log.end, metadata, now)
    if error != NONE:
        return partition, FetchResponse(error)
    return after, FetchResponse(NONE, log.hw, log.start, records)


def _check_fetch(setup: Setup, partition: Partition, request: FetchRequest) -> int:
    error = _check_request(setup, partition, request.current_leader_epoch)
    if error != NONE or not request.is_from_follower or remote(partition, request.replica_id) is not None:
        return error
    return NOT_LEADER_OR_FOLLOWER if request.current_leader_epoch == UNDEFINED else UNKNOWN_LEADER_EPOCH


def update_follower_fetch_state(
    setup: Setup, partition: Partition, request: FetchRequest, leader_end: int, metadata: Metadata, now: int
) -> tuple[Partition, int]:
    """Record the fetch, then maybe expand the ISR, then maybe raise the HW. Partition#updateFollowerFetchState.

    The order matters: an expansion proposed by this very fetch already holds the high watermark back.
    """
    entry = remote(partition, request.replica_id)
    if entry is None:
        return partition, NOT_LEADER_OR_FOLLOWER
    alive = next((b.epoch for b in metadata if b.broker_id == request.replica_id), None)
    if UNDEFINED not in {request.replica_epoch, alive} and alive is not None and request.replica_epoch < alive:
        return partition, NOT_LEADER_OR_FOLLOWER
    found = log_.found_at(partition.log, request.fetch_offset) if setup.profile.hw_rounded_to_batches else None
    offset = request.fetch_offset if found is None else found
    updated = replica_.update_fetch_state(
        setup, entry, offset, request.log_start, now, leader_end, request.replica_epoch
    )
    partition = partition._replace(remotes=tuple(updated if r is entry else r for r in partition.remotes))
    partition = maybe_expand_isr(setup, partition, request.replica_id, metadata)
    if updated.log_end != entry.log_end:
        partition = maybe_increment_leader_hw(setup, partition, metadata, now)
    return partition, NONE


# ---------------------------------------------------------------------------------------------------------------------
# In-sync replicas


def maybe_expand_isr(setup: Setup, partition: Partition, broker_id: int, metadata: Metadata) -> Partition:
    """Propose to add a replica that has caught up. Partition#maybeExpandIsr."""
    entry = remote(partition, broker_id)
    if entry is None or partition.state.is_inflight or broker_id in partition.state.isr:
        return partition
    if setup.profile.join_needs_epoch_start and partition.epoch_start == UNDEFINED:
        return partition  # leader again in an epoch it followed in: Partition#isFollowerInSync has nothing to compare with
    epoch_start = partition.epoch_start if setup.profile.join_needs_epoch_start else 0
    if not setup.rules.may_join_isr(entry.log_end, partition.log.hw, epoch_start):
        return partition
    if not is_isr_eligible(partition, broker_id, metadata):
        return partition
    return partition._replace(state=PartitionState(partition.state.isr, adding=broker_id))


def out_of_sync_replicas(setup: Setup, partition: Partition, now: int) -> tuple[int, ...]:
    """ISR members that have not caught up in time. Partition#getOutOfSyncReplicas."""
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
    """The periodic check, every replica.lag.time.max.ms / 2. Partition#maybeShrinkIsr."""
    out_of_sync = out_of_sync_replicas(setup, partition, now)
    return prepare_isr_shrink(partition, out_of_sync) if out_of_sync else partition


def alter_partition_request(partition: Partition, own_epoch: int = UNDEFINED) -> AlterPartitionRequest:
    """What a pending proposal asks the controller, with each member's broker epoch. Partition#submitAlterPartition."""
    proposed = partition.state.proposed_isr
    known = {r.broker_id: r.broker_epoch for r in partition.remotes} | {partition.broker_id: own_epoch}
    epochs = tuple(UNDEFINED if known.get(b) is None else known[b] for b in proposed)
    return AlterPartitionRequest(
        partition.broker_id, partition.leader_epoch, partition.partition_epoch, proposed, epochs
    )


def handle_alter_partition_response(
    setup: Setup,
    partition: Partition,
    proposed: PartitionState,
    response: AlterPartitionResponse,
    metadata: Metadata,
    now: int,
) -> tuple[Partition, bool]:
    """The controller's answer; whether the same request must be sent again. Partition#handleAlterPartitionUpdate, #Error.

    "Is it the proposed state" is equality by content, so an identical proposal sent again is matched by the old answer.
    """
    if partition.state != proposed:
        return partition, False
    if response.error in {OPERATION_NOT_ATTEMPTED, INELIGIBLE_REPLICA}:
        return partition._replace(state=PartitionState(partition.state.isr)), False
    if response.error in WAITS_FOR_METADATA:
        return partition, False
    if response.error != NONE:
        return partition, True
    if response.leader_epoch != partition.leader_epoch or response.partition_epoch < partition.partition_epoch:
        return partition, False
    committed = partition._replace(state=PartitionState(response.isr), partition_epoch=response.partition_epoch)
    return maybe_increment_leader_hw(setup, committed, metadata, now), False

"""Partition: role changes, appends and fetches at one replica.

A leader's `remotes` are what it remembers of each other replica: above all the *recorded* log end, the offset of its last
fetch. A *proposal* is an ISR that the leader asks the controller for (AlterPartition); it is the pending part of
`partition.state` until the response, and the *maximal* ISR includes a member that it adds.

Rules of this file

1. Functions take the partition and return the changed one. An error a request is answered with is a code in the response.
2. `now` is the leader's clock in ms, `metadata` its metadata cache: both are handed in. `setup` has the rules and the
   switches of a release: a branch on `setup.profile` is where releases differ.
3. The high watermark moves when the log grew, when a recorded log end changed, when an ISR was committed, and on becoming
   leader: never by time alone.
4. Source: kafka.cluster.Partition.
"""

from tidegauge.impl import messages
from tidegauge.impl.errors import NOT_ENOUGH_REPLICAS, OFFSET_NOT_AVAILABLE, OffsetOutOfRangeError
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica import partition_state as replica_
from tidegauge.impl.replica.partition_state import Partition, PartitionState, Replica, remote
from tidegauge.impl.rules import (
    COMMITTED,
    DIVERGING,
    GIVEN_UP,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    OUT_OF_RANGE,
    SENT_AGAIN,
    UNDEFINED,
)
from tidegauge.impl.storage import epoch_cache, producer_state
from tidegauge.impl.storage import log as log_
from tidegauge.impl.storage.log import AppendInfo
from tidegauge.impl.storage.producer_state import read_bound

# ---------------------------------------------------------------------------------------------------------------------
# High watermark


def is_isr_eligible(setup: Setup, partition: Partition, broker_id: int, metadata: messages.BrokerStates) -> bool:
    """Return whether a replica may join the ISR, as far as the metadata cache says. Partition#isReplicaIsrEligible.

    It must be alive; since KIP-841 not fenced or shutting down; since KIP-903 the incarnation (broker epoch) that fetched.
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
    """Return whether this leader's committed ISR is smaller than min.insync.replicas. Partition#isUnderMinIsr."""
    return partition.is_leader and setup.rules.under_min_isr(
        len(partition.state.isr), setup.min_insync_replicas, _most_required(setup, partition)
    )


def is_at_min_isr(setup: Setup, partition: Partition) -> bool:
    """Return whether one member less would be too few. Partition#isAtMinIsr."""
    effective = min(setup.min_insync_replicas, _most_required(setup, partition))
    return partition.is_leader and len(partition.state.isr) == effective


def _most_required(setup: Setup, partition: Partition) -> int:
    """Return how many in-sync replicas can be required at most. Partition#effectiveMinIsr.

    Since KAFKA-15583 (3.7) that is the number of replicas; before, min.insync.replicas itself.
    """
    return len(partition.remotes) + 1 if setup.profile.blocks_under_min_isr else setup.min_insync_replicas


def maybe_increment_leader_hw(setup: Setup, partition: Partition, metadata: messages.BrokerStates, now: int) -> Partition:
    """Raise the leader's high watermark to the lowest log end that counts. Partition#maybeIncrementLeaderHW.

    Its own log end counts, and the recorded log end of each replica that rules.counts_for_high_watermark says.
    """
    too_few = setup.profile.blocks_under_min_isr and is_under_min_isr(setup, partition)
    # A proposed member may already be in the controller's ISR and be elected next, so it holds the high watermark back
    # (2.7).
    maximal = partition.state.maximal_isr if setup.profile.counts_maximal_isr else partition.state.isr
    # Before KAFKA-15021 (3.6) a replica outside the ISR counted whether it was eligible or not.
    log, eligibility_ignored = partition.log, not setup.profile.counts_only_eligible
    # Kafka returns before it looks the position up, so a blocked high watermark is not rounded to its batch either.
    if not too_few:
        log = log_.locate_high_watermark(setup, log)
    counted = [
        setup.rules.counts_for_high_watermark(
            r.broker_id in maximal,
            replica_.is_caught_up(setup, r, log.end, now),
            eligibility_ignored or is_isr_eligible(setup, partition, r.broker_id, metadata),
        )
        for r in partition.remotes
    ]
    hw = setup.rules.leader_high_watermark(log.hw, log.end, [r.log_end for r in partition.remotes], counted, too_few)
    if hw != log.hw:
        log = log._replace(hw=hw, hw_segment=log_.segment_of(log, hw))
    return partition._replace(log=log)


def check_enough_replicas_reach_offset(setup: Setup, partition: Partition, required: int) -> tuple[bool, int]:
    """Return (whether the records of an acks=all produce are committed, error). Partition#checkEnoughReplicasReachOffset.

    `required` is the offset where its records end. The produce is answered unless this is (False, NONE).
    """
    members = len(partition.state.maximal_isr)
    too_few = setup.rules.under_min_isr(members, setup.min_insync_replicas, _most_required(setup, partition))
    return setup.rules.produce_response(partition.log.hw, required, partition.is_leader, too_few)


def low_watermark(partition: Partition, metadata: messages.BrokerStates) -> int:
    """Return the lowest log start among the leader and the replicas that are alive. Partition#lowWatermarkIfLeader."""
    alive = {b.broker_id for b in metadata if b.epoch is not None}
    return min([partition.log.start, *(r.log_start for r in partition.remotes if r.broker_id in alive)])


# ---------------------------------------------------------------------------------------------------------------------
# In-sync replicas


def maybe_expand_isr(setup: Setup, partition: Partition, broker_id: int, metadata: messages.BrokerStates) -> Partition:
    """Propose to add the replica on `broker_id` to the ISR if it has caught up and is eligible. Partition#maybeExpandIsr."""
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
    """Return the ISR members that have not caught up within replica.lag.time.max.ms. Partition#getOutOfSyncReplicas."""
    # While a proposal is pending there can be no second one, so nobody is looked for.
    if not partition.is_leader or partition.state.is_inflight:
        return ()
    followers = [b for b in partition.state.isr if b != partition.broker_id]
    return tuple(b for b in followers if not _is_in_sync(setup, partition, b, now))


def _is_in_sync(setup: Setup, partition: Partition, broker_id: int, now: int) -> bool:
    """Return whether a replica is assigned and has caught up in time."""
    entry = remote(partition, broker_id)
    return entry is not None and replica_.is_caught_up(setup, entry, partition.log.end, now)


def prepare_isr_shrink(partition: Partition, out_of_sync: tuple[int, ...]) -> Partition:
    """Propose an ISR without `out_of_sync`. Partition#prepareIsrShrink."""
    return partition._replace(state=PartitionState(partition.state.isr, removing=out_of_sync))


def maybe_shrink_isr(setup: Setup, partition: Partition, now: int) -> Partition:
    """Propose an ISR without the members that lag, if any. Partition#maybeShrinkIsr, every replica.lag.time.max.ms / 2."""
    out_of_sync = out_of_sync_replicas(setup, partition, now)
    return prepare_isr_shrink(partition, out_of_sync) if out_of_sync else partition


def alter_partition_request(partition: Partition, own_epoch: int = UNDEFINED) -> messages.AlterPartitionRequest:
    """Build the request of a pending proposal, with each member's broker epoch. Partition#submitAlterPartition.

    `own_epoch` is the leader's broker epoch; a follower's is that of its last fetch, UNDEFINED before one.
    """
    proposed = partition.state.proposed_isr
    broker_epochs = {r.broker_id: r.broker_epoch for r in partition.remotes} | {partition.broker_id: own_epoch}
    epochs = tuple(UNDEFINED if (epoch := broker_epochs.get(b)) is None else epoch for b in proposed)
    return messages.AlterPartitionRequest(
        partition.broker_id, partition.leader_epoch, partition.partition_epoch, proposed, epochs
    )


def handle_alter_partition_response(
    setup: Setup,
    partition: Partition,
    proposed: PartitionState,
    response: messages.AlterPartitionResponse,
    metadata: messages.BrokerStates,
    now: int,
) -> tuple[Partition, bool]:
    """Handle the controller's response to the proposal `proposed`; also return whether to send the request again.

    Partition#handleAlterPartitionUpdate, #handleAlterPartitionError. States are compared by content, so an old response also
    matches an identical proposal that was made later.
    """
    # Metadata has replaced the proposal meanwhile, of a new leader epoch or of this one (F3).
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


# ---------------------------------------------------------------------------------------------------------------------
# Roles


def make_leader(
    setup: Setup,
    partition: Partition,
    leader_epoch: int,
    partition_epoch: int,
    isr: tuple[int, ...],
    assignment: tuple[int, ...],
    metadata: messages.BrokerStates,
    now: int,
) -> tuple[Partition, bool]:
    """Apply metadata that names this broker leader; also return whether it became leader by it. Partition#makeLeader.

    `assignment` are the broker ids of all replicas. Nothing is truncated and the high watermark stays: an uncommitted tail
    may still be committed. The leader's pending proposal is dropped, even by metadata that it has read already (finding F3).
    """
    # Metadata of an older partition epoch arrived late.
    if partition_epoch < partition.partition_epoch:
        return partition, False
    was_leader = partition.is_leader
    is_known = was_leader and (leader_epoch, partition_epoch) == (partition.leader_epoch, partition.partition_epoch)
    if is_known and not setup.profile.reads_equal_partition_epoch:
        return partition, False
    # What is remembered of a replica that stays assigned is kept; a new one begins without anything.
    remote_of = {r.broker_id: r for r in partition.remotes}
    remotes = tuple(remote_of.get(b, Replica(b)) for b in assignment if b != partition.broker_id)
    # Kafka updates the assignment before it notices that the log is missing, and sets the leader after that.
    if not partition.has_log:
        return partition._replace(state=PartitionState(isr), remotes=remotes), False
    log, epoch_start = partition.log, partition.epoch_start
    # The same epoch again must not move the epoch start, or followers in sync with it would have to catch up again.
    if leader_epoch > partition.leader_epoch:
        epoch_start = log.end
        if setup.profile.strict_cache:
            log = log_.assign_epoch_start_offset(setup, log, leader_epoch, epoch_start)
        # Finding F2: a leader that is elected again keeps log ends which another leader may have truncated since.
        forgets = setup.rules.forgets_log_ends(
            partition.leader_epoch, leader_epoch, was_leader, setup.profile.keeps_remote_leo
        )
        remotes = tuple(
            replica_.reset_replica_state(r, now, log.end, forgets=forgets, in_isr=r.broker_id in isr) for r in remotes
        )
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
    """Apply metadata that names another leader (or UNDEFINED: none). Partition#makeFollower.

    Also return whether the fetcher has to be restarted: if the leader epoch grew, whatever the leader's id is
    (KAFKA-13790), and if there is a log. What the broker remembered as a leader is forgotten.
    """
    # Metadata of an older partition epoch arrived late.
    if partition_epoch < partition.partition_epoch:
        return partition, False
    has_log = partition.has_log
    followed = Partition(partition.broker_id, partition.log, leader_id, leader_epoch, partition_epoch, has_log=has_log)
    return followed, has_log and leader_epoch > partition.leader_epoch


# ---------------------------------------------------------------------------------------------------------------------
# Appends and deletes


def append_records_to_leader(
    setup: Setup,
    partition: Partition,
    records: int,
    acks: int,
    metadata: messages.BrokerStates,
    now: int,
    transaction: messages.Transaction | None = None,
    producer: messages.Producer | None = None,
) -> tuple[Partition, int, AppendInfo]:
    """Append a produced batch of `records` records; return (partition, error code, what was appended).

    Partition#appendRecordsToLeader. `acks` -1 is all. `producer` is None for one that is not idempotent.
    """
    if not partition.is_leader:
        return partition, NOT_LEADER_OR_FOLLOWER, AppendInfo()
    if acks == -1 and is_under_min_isr(setup, partition):
        return partition, NOT_ENOUGH_REPLICAS, AppendInfo()
    log, duplicate = partition.log, None
    if producer is not None:
        error, duplicate = producer_state.check_sequence(setup, log.batches, producer, records)
        if error != NONE:
            return partition, error, AppendInfo()
    # A batch that was sent again: UnifiedLog#append leaves the log alone and reports the offsets of the first copy.
    if duplicate is not None:
        info = AppendInfo(duplicate.base, duplicate.last, duplicate.epoch, 0)
    else:
        log, info = log_.append_as_leader(setup, log, records, partition.leader_epoch, transaction, producer)
    return maybe_increment_leader_hw(setup, partition._replace(log=log), metadata, now), NONE, info


def delete_records(setup: Setup, partition: Partition, offset: int) -> tuple[Partition, int, int]:
    """Raise the leader's log start to `offset`. Partition#deleteRecordsOnLeader.

    Return (partition, error code, requested offset): an `offset` of UNDEFINED requests the high watermark.
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
# Fetch


def _serves(partition: Partition, *, only_leader: bool) -> bool:
    """Return whether the replica serves a request of the right epoch: it has a log, and the role that is required.

    Partition#getLocalLog. Not `only_leader`: a follower serves the request, too.
    """
    return partition.has_log and (partition.is_leader or not only_leader)


def last_offset_for_leader_epoch(
    setup: Setup, partition: Partition, current_leader_epoch: int, requested: int, *, only_leader: bool = True
) -> tuple[int, int, int]:
    """Handle OffsetsForLeaderEpoch: return (error, epoch, end offset). Partition#lastOffsetForLeaderEpoch.

    `requested` is the epoch whose end is asked for, `current_leader_epoch` the one that the sender is in.
    """
    serves = _serves(partition, only_leader=only_leader)
    error = setup.rules.request_error(current_leader_epoch, partition.leader_epoch, serves, setup.profile.fencing)
    if error != NONE:
        return error, UNDEFINED, UNDEFINED
    epoch, end = log_.end_offset_for_epoch(setup, partition.log, requested)
    return NONE, epoch if setup.profile.epoch_in_response else UNDEFINED, end


def fetch_offset_for_timestamp(
    setup: Setup,
    partition: Partition,
    spec: messages.OffsetSpec,
    current_leader_epoch: int,
    isolation: messages.Isolation,
    only_leader: bool,
) -> messages.ListedOffset:
    """Handle ListOffsets: return the offset that `spec` names. Partition#fetchOffsetForTimestamp.

    `isolation` says how far the requester may read, and so what the latest offset is. Not `only_leader`: a follower answers,
    too.
    """
    serves = _serves(partition, only_leader=only_leader)
    error = setup.rules.request_error(current_leader_epoch, partition.leader_epoch, serves, setup.profile.fencing)
    if error != NONE:
        return messages.ListedOffset(error)
    log, cache = partition.log, partition.log.cache
    if spec is messages.OffsetSpec.LATEST:
        # KIP-207: this high watermark may be lower than the previous leader's, so a consumer would see its latest offset
        # fall.
        lags = isolation is not messages.Isolation.LOG_END and partition.epoch_start > log.hw
        if lags and setup.profile.latest_needs_hw:
            return messages.ListedOffset(OFFSET_NOT_AVAILABLE)
        return messages.ListedOffset(NONE, read_bound(log, isolation), partition.leader_epoch)
    if spec is messages.OffsetSpec.EARLIEST:
        epoch, start = epoch_cache.earliest_entry(cache) or (UNDEFINED, UNDEFINED)
        # An entry that begins behind the log start does not say the epoch of the record there.
        return messages.ListedOffset(NONE, log.start, epoch if start <= log.start else UNDEFINED)
    # EARLIEST_LOCAL: what lies before the first local segment is in remote storage (KIP-405).
    local = max(log.start, log.segments[0])
    return messages.ListedOffset(NONE, local, epoch_cache.epoch_for_offset(setup, cache, local))


def fetch_records(
    setup: Setup,
    partition: Partition,
    request: messages.FetchRequest,
    metadata: messages.BrokerStates,
    now: int,
    max_records: int,
    *,
    isolation: messages.Isolation = messages.Isolation.LOG_END,
    update: bool = True,
    only_leader: bool = True,
) -> tuple[Partition, messages.FetchResponse]:
    """Serve a fetch: fence, find divergence, read, and update a follower's state. Partition#fetchRecords.

    The response carries the high watermark from before this fetch counted, so a follower learns the effect of its own
    fetch one response later. A diverging fetch changes nothing at the leader. `isolation` is where the read ends: for a
    follower at the log end. Not `update`: a delayed fetch is read again, and its follower's state was updated before. Not
    `only_leader`: a consumer may read from a follower (KIP-392).
    """
    # None for a consumer, and for a follower that the leader does not have among the replicas.
    entry = remote(partition, request.replica_id)
    error = setup.rules.fetch_error(
        request.current_leader_epoch,
        partition.leader_epoch,
        _serves(partition, only_leader=only_leader),
        entry is not None or not request.is_from_follower,
        setup.profile.fencing,
    )
    if error != NONE:
        return partition, messages.FetchResponse(error)
    log = partition.log
    last_fetched_epoch = request.last_fetched_epoch if setup.profile.truncation_on_fetch else UNDEFINED
    # Before KAFKA-12996 a fetch below the log start could be answered as diverging.
    start = log.start if setup.profile.out_of_range_first else 0
    decision, epoch, end = setup.rules.fetch_decision(
        log.cache.epochs, log.cache.starts, start, log.end, request.fetch_offset, last_fetched_epoch
    )
    if decision == OUT_OF_RANGE:
        return partition, messages.FetchResponse(OFFSET_OUT_OF_RANGE)
    if decision == DIVERGING:
        return partition, messages.FetchResponse(NONE, log.hw, log.start, (), epoch, end)
    # A read that the high watermark bounds looks its position up, which may move it to the base of a batch.
    located = log if isolation is messages.Isolation.LOG_END else log_.locate_high_watermark(setup, log)
    try:
        records = log_.read(located, request.fetch_offset, read_bound(located, isolation), max_records)
    except OffsetOutOfRangeError:
        return partition, messages.FetchResponse(OFFSET_OUT_OF_RANGE)
    # The response below keeps log.hw from before the update:
    #     fetch n     offset 5: the leader records 5, the high watermark becomes 5; the response has the old one
    #     fetch n+1   its response carries 5
    after = partition._replace(log=located)
    if entry is not None and update:
        after, error = update_follower_fetch_state(setup, after, entry, request, log.end, metadata, now)
    if error != NONE:
        return partition, messages.FetchResponse(error)
    return after, messages.FetchResponse(NONE, log.hw, log.start, records)


def update_follower_fetch_state(
    setup: Setup,
    partition: Partition,
    entry: Replica,
    request: messages.FetchRequest,
    leader_end: int,
    metadata: messages.BrokerStates,
    now: int,
) -> tuple[Partition, int]:
    """Record a follower's fetch, then maybe expand the ISR, then maybe raise the HW. Partition#updateFollowerFetchState.

    `entry` is the follower's among `partition.remotes`, `leader_end` the leader's log end. Also return an error code. The
    order matters: an expansion proposed by this very fetch already holds the high watermark back.
    """
    live_epoch = next((b.epoch for b in metadata if b.broker_id == request.replica_id), None)
    both_defined = UNDEFINED not in {request.replica_epoch, live_epoch}
    # KIP-903: an older incarnation may have lost its disk since; its fetch must not move the recorded log end.
    if setup.profile.rejects_stale_fetch and both_defined and live_epoch is not None and request.replica_epoch < live_epoch:
        return partition, NOT_LEADER_OR_FOLLOWER
    # A position look-up of the fetch offset returns the base of its batch (KAFKA-17803).
    batch_base = log_.batch_base_at(partition.log, request.fetch_offset) if setup.profile.hw_rounded_to_batches else None
    offset = request.fetch_offset if batch_base is None else batch_base
    updated = replica_.update_fetch_state(setup, entry, offset, request.log_start, now, leader_end, request.replica_epoch)
    partition = partition._replace(remotes=tuple(updated if r is entry else r for r in partition.remotes))
    partition = maybe_expand_isr(setup, partition, request.replica_id, metadata)
    # An unchanged log end cannot raise the high watermark, and the look-up of its position is not free.
    if updated.log_end != entry.log_end:
        partition = maybe_increment_leader_hw(setup, partition, metadata, now)
    return partition, NONE

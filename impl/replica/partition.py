"""Partition: role changes, appends and fetches at one replica.

Rules of this file

1. Functions take the partition and return the changed one. An error a request is answered with is a code in the response.
2. `now` is the leader's clock in ms, `metadata` its metadata cache: both are handed in.
3. Source: kafka.cluster.Partition.
"""

from tidegauge.impl.client_messages import Isolation, ListedOffset, OffsetSpec
from tidegauge.impl.error_codes import NOT_ENOUGH_REPLICAS, OFFSET_NOT_AVAILABLE
from tidegauge.impl.errors import OffsetOutOfRangeError, UnexpectedAppendOffsetError
from tidegauge.impl.messages import FetchRequest, FetchResponse, Metadata
from tidegauge.impl.profiles import Setup
from tidegauge.impl.records import Batch, Producer, Transaction
from tidegauge.impl.replica import replica as replica_
from tidegauge.impl.replica.isr import is_under_min_isr, maybe_expand_isr, maybe_increment_leader_hw
from tidegauge.impl.replica.partition_state import Partition, PartitionState, remote
from tidegauge.impl.replica.replica import Replica
from tidegauge.impl.rules import (
    DIVERGING,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    OUT_OF_RANGE,
    UNDEFINED,
)
from tidegauge.impl.storage import epoch_cache, producer_sequences
from tidegauge.impl.storage import log as log_
from tidegauge.impl.storage.log import AppendInfo, Log
from tidegauge.impl.storage.producer_state import read_bound

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
    """Apply metadata that names this broker leader; also return whether it was none before. Partition#makeLeader.

    Nothing is truncated and the high watermark stays: an uncommitted tail may still be committed. The leader's pending
    proposal is dropped, even by metadata that it has read already (finding F3).
    """
    if partition_epoch < partition.partition_epoch:
        return partition, False
    was_leader = partition.is_leader
    again = was_leader and (leader_epoch, partition_epoch) == (partition.leader_epoch, partition.partition_epoch)
    if again and not setup.profile.reads_equal_partition_epoch:
        return partition, False
    known = {r.broker_id: r for r in partition.remotes}
    remotes = tuple(known.get(b, Replica(b)) for b in assignment if b != partition.broker_id)
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
    """Apply metadata that names another leader, or none; also return whether the leader epoch grew. Partition#makeFollower.

    Only then are fetchers restarted (KAFKA-13790), whatever the leader's id. Without a log none is.
    """
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
    metadata: Metadata,
    now: int,
    transaction: Transaction | None = None,
    producer: Producer | None = None,
) -> tuple[Partition, int, AppendInfo]:
    """Handle a produce request; return partition, error code and what was appended. Partition#appendRecordsToLeader."""
    if not partition.is_leader:
        return partition, NOT_LEADER_OR_FOLLOWER, AppendInfo()
    if acks == -1 and is_under_min_isr(setup, partition):
        return partition, NOT_ENOUGH_REPLICAS, AppendInfo()
    log, written = partition.log, None
    if producer is not None:
        error, written = producer_sequences.check_sequence(setup, log.batches, producer, records)
        if error != NONE:
            return partition, error, AppendInfo()
    # A batch that was sent again: UnifiedLog#append leaves the log alone and reports the offsets of the first copy.
    if written is not None:
        info = AppendInfo(written.base, written.last, written.epoch, 0)
    else:
        log, info = log_.append_as_leader(setup, log, records, partition.leader_epoch, transaction, producer)
    return maybe_increment_leader_hw(setup, partition._replace(log=log), metadata, now), NONE, info


def append_records_to_follower(
    setup: Setup, log: Log, batches: tuple[Batch, ...], leader_epoch: int, *, last_is_corrupt: bool = False
) -> tuple[Log, AppendInfo]:
    """Append fetched batches. Partition#appendRecordsToFollowerOrFutureReplica.

    An empty log whose start lies inside what was fetched starts again at the first batch's base (KAFKA-6975).
    """
    try:
        return log_.append_as_follower(setup, log, batches, leader_epoch, last_is_corrupt=last_is_corrupt)
    except UnexpectedAppendOffsetError:
        accepted = log_.without_later_epochs(setup, batches, leader_epoch)
        first, last = accepted[0].base, accepted[-1].last
        # After DeleteRecords or a reset the start may be inside a batch, which the leader sends whole. Only an empty log
        # can begin there.
        if log.end != log.start or not first < log.end <= last:
            raise
        return log_.append_as_follower(setup, log_.truncate_fully_and_start_at(log, first), batches, leader_epoch)


def delete_records(setup: Setup, partition: Partition, offset: int) -> tuple[Partition, int, int]:
    """Raise the log start; return partition, error code and requested offset. Partition#deleteRecordsOnLeader.

    `offset` UNDEFINED stands for the high watermark.
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
    """Return whether a request of the right epoch is served: role and log. Partition#getLocalLog."""
    return partition.has_log and (partition.is_leader or not only_leader)


def last_offset_for_leader_epoch(
    setup: Setup, partition: Partition, current_leader_epoch: int, requested: int, *, only_leader: bool = True
) -> tuple[int, int, int]:
    """Answer OffsetsForLeaderEpoch with (error, epoch, end offset). Partition#lastOffsetForLeaderEpoch."""
    serves = _serves(partition, only_leader=only_leader)
    error = setup.rules.request_error(current_leader_epoch, partition.leader_epoch, serves, setup.profile.fencing)
    if error != NONE:
        return error, UNDEFINED, UNDEFINED
    epoch, end = log_.end_offset_for_epoch(setup, partition.log, requested)
    return NONE, epoch if setup.profile.epoch_in_response else UNDEFINED, end


def fetch_offset_for_timestamp(
    setup: Setup, partition: Partition, spec: OffsetSpec, current_leader_epoch: int, isolation: Isolation, only_leader: bool
) -> ListedOffset:
    """Answer ListOffsets, up to where this requester may read. Partition#fetchOffsetForTimestamp."""
    serves = _serves(partition, only_leader=only_leader)
    error = setup.rules.request_error(current_leader_epoch, partition.leader_epoch, serves, setup.profile.fencing)
    if error != NONE:
        return ListedOffset(error)
    log, cache = partition.log, partition.log.cache
    if spec is OffsetSpec.LATEST:
        # KIP-207: this high watermark may be lower than the previous leader's, so a consumer would see its latest offset
        # fall.
        lags = isolation is not Isolation.LOG_END and partition.epoch_start > log.hw
        if lags and setup.profile.latest_needs_hw:
            return ListedOffset(OFFSET_NOT_AVAILABLE)
        return ListedOffset(NONE, read_bound(log, isolation), partition.leader_epoch)
    if spec is OffsetSpec.EARLIEST:
        first = epoch_cache.earliest_entry(cache)
        return ListedOffset(NONE, log.start, first[0] if first is not None and first[1] <= log.start else UNDEFINED)
    local = max(log.start, log.segments[0])
    return ListedOffset(NONE, local, epoch_cache.epoch_for_offset(setup, cache, local))


def fetch_records(
    setup: Setup,
    partition: Partition,
    request: FetchRequest,
    metadata: Metadata,
    now: int,
    max_records: int,
    *,
    isolation: Isolation = Isolation.LOG_END,
    update: bool = True,
    only_leader: bool = True,
) -> tuple[Partition, FetchResponse]:
    """Serve a fetch: fence, find divergence, read, and update a follower's state. Partition#fetchRecords.

    The response carries the high watermark from before this fetch counted, so a follower learns the effect of its own
    fetch one response later. A diverging fetch changes nothing at the leader. A follower reads to the log end;
    `update` is off when a delayed fetch is read again, `only_leader` when a consumer may read from a follower (KIP-392).
    """
    entry = remote(partition, request.replica_id)
    error = setup.rules.fetch_error(
        request.current_leader_epoch,
        partition.leader_epoch,
        _serves(partition, only_leader=only_leader),
        entry is not None or not request.is_from_follower,
        setup.profile.fencing,
    )
    if error != NONE:
        return partition, FetchResponse(error)
    log = partition.log
    asked = request.last_fetched_epoch if setup.profile.truncation_on_fetch else UNDEFINED
    # Before KAFKA-12996 a fetch below the log start could be answered as diverging.
    start = log.start if setup.profile.out_of_range_first else 0
    decision, epoch, end = setup.rules.fetch_decision(
        log.cache.epochs, log.cache.starts, start, log.end, request.fetch_offset, asked
    )
    if decision == OUT_OF_RANGE:
        return partition, FetchResponse(OFFSET_OUT_OF_RANGE)
    if decision == DIVERGING:
        return partition, FetchResponse(NONE, log.hw, log.start, (), epoch, end)
    located = log if isolation is Isolation.LOG_END else log_.locate_high_watermark(setup, log)
    try:
        records = log_.read(located, request.fetch_offset, read_bound(located, isolation), max_records)
    except OffsetOutOfRangeError:
        return partition, FetchResponse(OFFSET_OUT_OF_RANGE)
    # The response below keeps log.hw from before the update:
    #     fetch n     offset 5: the leader records 5, the high watermark becomes 5; the response has the old one
    #     fetch n+1   its response carries 5
    after = partition._replace(log=located)
    if entry is not None and update:
        after, error = update_follower_fetch_state(setup, after, entry, request, log.end, metadata, now)
    if error != NONE:
        return partition, FetchResponse(error)
    return after, FetchResponse(NONE, log.hw, log.start, records)


def update_follower_fetch_state(
    setup: Setup,
    partition: Partition,
    entry: Replica,
    request: FetchRequest,
    leader_end: int,
    metadata: Metadata,
    now: int,
) -> tuple[Partition, int]:
    """Record the fetch, then maybe expand the ISR, then maybe raise the HW. Partition#updateFollowerFetchState.

    The order matters: an expansion proposed by this very fetch already holds the high watermark back.
    """
    alive = next((b.epoch for b in metadata if b.broker_id == request.replica_id), None)
    known = UNDEFINED not in {request.replica_epoch, alive}
    # KIP-903: an older incarnation may have lost its disk since; its fetch must not move the recorded log end.
    if setup.profile.rejects_stale_fetch and known and alive is not None and request.replica_epoch < alive:
        return partition, NOT_LEADER_OR_FOLLOWER
    found = log_.batch_base_at(partition.log, request.fetch_offset) if setup.profile.hw_rounded_to_batches else None
    offset = request.fetch_offset if found is None else found
    updated = replica_.update_fetch_state(setup, entry, offset, request.log_start, now, leader_end, request.replica_epoch)
    partition = partition._replace(remotes=tuple(updated if r is entry else r for r in partition.remotes))
    partition = maybe_expand_isr(setup, partition, request.replica_id, metadata)
    # An unchanged log end cannot raise the high watermark, and the look-up of its position is not free.
    if updated.log_end != entry.log_end:
        partition = maybe_increment_leader_hw(setup, partition, metadata, now)
    return partition, NONE

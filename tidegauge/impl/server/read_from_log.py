"""What a fetch reads, partition by partition.

`read_next` reads one partition of a fetch and adds the result to its `FetchProgress`. The result has the response, and a
`FetchStatus`: where the log stood, in case the fetch has to wait. `now` is the broker's clock in ms.

Rules of this file

1. Partitions are read in the order of the request. Each takes from what is left of maxBytes; until something was read, one
   batch comes back however large (KIP-74), afterwards only what fits. What is read is a slice of the file: where a batch is
   cut off at its end, the client leaves that out, but its bytes count.
2. The first read updates what the leader knows of the follower, in Partition#fetchRecords, partition by partition (an
   article of Kafka 2.5 has a second pass after all reads). A read from the purgatory updates nothing.
3. Source: kafka.server.ReplicaManager#readFromLog, #findPreferredReadReplica; RackAwareReplicaSelector.
"""

from typing import NamedTuple

from tidegauge.impl.errors import INCONSISTENT_TOPIC_ID, OFFSET_MOVED_TO_TIERED_STORAGE
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import Batch, FetchParams, FetchResponse, Isolation, PartitionFetch, PartitionRead
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica import partition as partition_
from tidegauge.impl.replica.fetcher import is_in_remote_storage
from tidegauge.impl.replica.partition_state import Partition
from tidegauge.impl.rules import NONE, OFFSET_OUT_OF_RANGE
from tidegauge.impl.server import replica_manager as manager_
from tidegauge.impl.server.replica_manager import ReplicaManager
from tidegauge.impl.storage import log as log_
from tidegauge.impl.storage.producer_state import aborted_transactions, last_stable_offset
from tidegauge.impl.topic_partition import TopicPartition

EVERYTHING = 1 << 62
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
"""The replica.selector.class that sends a consumer to a replica in its rack (KIP-392)."""


class LogReadResult(NamedTuple):
    """One partition as it was read: the response, the position of a waiting fetch, the bytes that were read."""

    partition: PartitionRead
    status: manager_.FetchStatus
    size: int


class FetchProgress(NamedTuple):
    """A fetch whose partitions are being read: the rest of maxBytes, and the results so far."""

    left: int
    reads: FrozenMap[TopicPartition, LogReadResult] = FrozenMap()


def read_next(
    setup: Setup,
    manager: ReplicaManager,
    params: FetchParams,
    reading: FetchProgress,
    tp: TopicPartition,
    fetch: PartitionFetch,
    now: int,
    *,
    from_purgatory: bool = False,
) -> tuple[ReplicaManager, FetchProgress]:
    """Read the next partition `tp` of a fetch, and add it to the fetch's progress. ReplicaManager#readFromLog.

    `from_purgatory`: the fetch has waited and is read again, which updates nothing of the follower.
    """
    manager = manager_.count_events(manager, tp, total_fetch_requests=1)
    manager, read = _read(setup, manager, params, tp, fetch, now, update=not from_purgatory)
    # KIP-74: a batch above the limits must not stop a fetch for ever, so the first one always fits.
    at_least_one = not any(earlier.size for earlier in reading.reads.values())
    throttled = should_leader_throttle(manager, params, tp)
    limit = min(fetch.max_bytes, reading.left)
    fitting, size = ((), 0) if throttled else _fitting(manager, read.records, limit, at_least_one=at_least_one)
    read = _with_transactions(manager, params, tp, read._replace(response=read.response._replace(records=fitting)))
    reads = reading.reads.put(tp, LogReadResult(read, _status(manager, tp, fetch), size))
    return manager, FetchProgress(max(0, reading.left - size), reads)


def _with_transactions(
    manager: ReplicaManager, params: FetchParams, tp: TopicPartition, read: PartitionRead
) -> PartitionRead:
    """Add the last stable offset and the aborted transactions to what was read, for a reader of committed transactions."""
    partition = manager_.online_partition(manager, tp)
    if params.isolation is not Isolation.TXN_COMMITTED or partition is None or read.response.error != NONE:
        return read
    log = partition.log
    return read._replace(last_stable=last_stable_offset(log), aborted=aborted_transactions(log, read.records))


def should_leader_throttle(manager: ReplicaManager, params: FetchParams, tp: TopicPartition) -> bool:
    """Return whether the leader's quota holds a fetch back: that of a follower outside the ISR, of a throttled partition.

    ReplicaManager#shouldLeaderThrottle.
    """
    if not params.is_from_follower or tp not in manager.throttled:
        return False
    hosted = manager.hosted.get(tp)
    return hosted is None or params.replica_id not in hosted.partition.state.isr


def _fitting(
    manager: ReplicaManager, batches: tuple[Batch, ...], limit: int, *, at_least_one: bool
) -> tuple[tuple[Batch, ...], int]:
    """Return the batches that fit into `limit` bytes, and how many bytes are read. LogSegment#read.

    `at_least_one`: the first batch fits, however large. A batch that is cut off at the limit is not returned, but its bytes
    up to the limit count.
    """
    if at_least_one:
        limit = max(limit, manager_.size_in_bytes(manager, batches[:1]))
    size = 0
    for count, batch in enumerate(batches):
        size += manager_.size_in_bytes(manager, (batch,))
        # The slice of the file ends inside this batch. Nothing is sent if not even the first one is whole.
        if size > limit:
            return batches[:count], limit if count else 0
    return batches, size


def _status(manager: ReplicaManager, tp: TopicPartition, fetch: PartitionFetch) -> manager_.FetchStatus:
    """Return where a fetch stands in the log of a partition: while it waits, later states of the log are compared with it.

    That is the base of the batch at its offset, the segment of that, and the high watermark.
    """
    hosted = manager.hosted.get(tp)
    offset = fetch.request.fetch_offset
    # No log to look it up in. The fetch has an error then, and does not wait.
    if hosted is None:
        return manager_.FetchStatus(fetch, offset, offset)
    log = hosted.partition.log
    batch_base = log_.batch_base_at(log, offset)
    # An offset that the segments do not reach stands for itself.
    position = offset if batch_base is None else batch_base
    return manager_.FetchStatus(fetch, position, log_.segment_of(log, position), log.hw)


def _read(
    setup: Setup,
    manager: ReplicaManager,
    params: FetchParams,
    tp: TopicPartition,
    fetch: PartitionFetch,
    now: int,
    *,
    update: bool,
) -> tuple[ReplicaManager, PartitionRead]:
    """Read one partition of a fetch without regard to sizes; `update`: record what the fetch says about the follower.

    The result may instead be an error, or the replica to which a consumer is sent.
    """
    error = manager_.partition_error(manager, tp)
    if error != NONE:
        return manager, PartitionRead(FetchResponse(error))
    hosted = manager.hosted[tp]
    if fetch.topic_id is not None and hosted.topic_id not in {None, fetch.topic_id}:
        return manager, PartitionRead(FetchResponse(INCONSISTENT_TOPIC_ID))
    before = hosted.partition
    preferred = find_preferred_read_replica(manager, before, params, fetch.request.fetch_offset, now)
    # The consumer is sent to another replica, and gets no records here (KIP-392).
    if preferred is not None:
        return manager, PartitionRead(FetchResponse(NONE, before.log.hw, before.log.start), preferred)
    after, response = partition_.fetch_records(
        manager_.topic_setup(setup, manager, tp),
        before,
        fetch.request,
        manager.metadata,
        now,
        max_records=EVERYTHING,
        isolation=params.isolation,
        update=update,
        only_leader=params.only_leader,
    )
    manager = manager_.with_partition(manager, tp, after)
    # Only a follower is told to build its state from remote storage (KIP-405); a consumer's fetch reads from there.
    if response.error == OFFSET_OUT_OF_RANGE and params.isolation is Isolation.LOG_END:
        log = after.log
        if tp in manager.tiered and is_in_remote_storage(log, fetch.request.fetch_offset):
            response = FetchResponse(OFFSET_MOVED_TO_TIERED_STORAGE, log.hw, log.start)
    return manager, PartitionRead(response)


def find_preferred_read_replica(
    manager: ReplicaManager, partition: Partition, params: FetchParams, offset: int, now: int
) -> int | None:
    """Return the id of a replica in the consumer's rack that holds `offset`; None: it reads here (KIP-392).

    ReplicaManager#findPreferredReadReplica. The leader is preferred when it is in that rack. Of several replicas it is the
    one with the highest log end, then the one that caught up last, then the highest id.
    """
    if params.rack is None or not partition.is_leader or manager.settings["replica.selector.class"] != RACK_AWARE:
        return None
    # The leader itself is in that rack.
    if manager.racks.get(manager.broker_id) == params.rack:
        return None
    # In the order in which they are preferred, the best one last.
    candidates = [
        (replica.log_end, replica.last_caught_up_time - now, replica.broker_id)
        for replica in partition.remotes
        if replica.broker_id in partition.state.isr and replica.log_start <= offset <= replica.log_end
        if manager.racks.get(replica.broker_id) == params.rack
    ]
    _, _, broker = max(candidates, default=(0, 0, None))
    return broker

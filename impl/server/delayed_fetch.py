"""A fetch that waits for data.

Rules of this file

1. Any one partition completes the whole fetch: not readable any more, its offset above the bound or on an older segment,
   diverging. Otherwise the bytes of all partitions together have to reach minBytes.
2. A high watermark that moves does not wake a follower: its bound is the log end (KAFKA-9952).
3. On completion everything is read again, and the follower's state is not updated a second time.
4. Source: kafka.server.DelayedFetch#tryComplete, cases A to H.
"""

from tidegauge.impl.client_messages import FetchParams, Isolation
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica import partition as partition_
from tidegauge.impl.replica.partition_state import Partition
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.impl.server.read_from_log import should_leader_throttle
from tidegauge.impl.server.replica_manager import ReplicaManager, online_partition, size_in_bytes, with_partition
from tidegauge.impl.server.waiting import DelayedFetch, FetchStatus
from tidegauge.impl.storage import log as log_
from tidegauge.impl.storage.producer_state import read_bound
from tidegauge.impl.topic_partition import TopicPartition

COMPLETES = -1
"""The partition completes the fetch whatever the others have."""


def is_satisfied(setup: Setup, manager: ReplicaManager, delayed: DelayedFetch) -> tuple[ReplicaManager, bool]:
    """Return whether the fetch is answered now; looking a high watermark up may change the manager."""
    available = 0
    for tp, status in delayed.statuses.items():
        manager, size = _available(setup, manager, delayed.params, tp, status)
        if size == COMPLETES:
            return manager, True
        available += size
    return manager, available >= delayed.params.min_bytes


def _available(
    setup: Setup, manager: ReplicaManager, params: FetchParams, tp: TopicPartition, status: FetchStatus
) -> tuple[ReplicaManager, int]:
    """Return the bytes that a partition has ready, or COMPLETES. The letters are the cases of DelayedFetch#tryComplete."""
    partition, request = online_partition(manager, tp), status.fetch.request
    if partition is None:
        return manager, COMPLETES  # B, C, D
    error, _, _ = partition_.last_offset_for_leader_epoch(
        setup, partition, request.current_leader_epoch, UNDEFINED, only_leader=params.only_leader
    )
    if error != NONE:
        return manager, COMPLETES  # A, E
    partition = partition._replace(log=log_.locate_high_watermark(setup, partition.log))
    manager = with_partition(manager, tp, partition)
    log = partition.log
    bound = read_bound(log, params.isolation)
    if status.offset > bound:
        return manager, COMPLETES  # F: the leader was truncated
    # 2.4 and 2.5 woke followers to pass a new high watermark on; that doubled the fetch rate (KAFKA-9952).
    if setup.profile.hw_wakes_followers and params.is_from_follower and log.hw > status.hw:
        return manager, COMPLETES
    throttled = should_leader_throttle(manager, params, tp)
    size = 0
    if status.offset < bound and not throttled:
        if status.segment < _bound_segment(partition, params):
            return manager, COMPLETES  # F: behind the segment that is written to
        between = tuple(b for b in log.batches if status.offset <= b.base < bound)
        size = min(size_in_bytes(manager, between), status.fetch.max_bytes)
    return manager, COMPLETES if _has_diverged(setup, partition, status) else size  # H


def _bound_segment(partition: Partition, params: FetchParams) -> int:
    """Return the segment in which a read of this isolation ends."""
    log = partition.log
    if params.isolation is Isolation.LOG_END:
        return log_.active_segment(log)
    if params.isolation is Isolation.TXN_COMMITTED or log.hw_segment == UNDEFINED:
        return log_.segment_of(log, read_bound(log, params.isolation))
    return log.hw_segment


def _has_diverged(setup: Setup, partition: Partition, status: FetchStatus) -> bool:
    """Return whether the leader's log no longer contains what the follower has fetched (case H)."""
    request = status.fetch.request
    if request.last_fetched_epoch == UNDEFINED or not setup.profile.truncation_on_fetch:
        return False
    epoch, end = log_.end_offset_for_epoch(setup, partition.log, request.last_fetched_epoch)
    if UNDEFINED in {epoch, end}:
        return True
    return epoch < request.last_fetched_epoch or end < request.fetch_offset

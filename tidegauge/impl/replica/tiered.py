"""Offsets that are only in remote storage: the leader's response and the follower's restart behind it.

Rules of this file

1. A log whose start lies below its first local segment keeps the older part in remote storage. What is there is handed
   in: impl has no storage.
2. A follower begins after the remote segment that holds the offset below the leader's first local one, with that segment's
   epochs: nothing is copied.
3. Source: kafka.server.ReplicaManager#handleOffsetOutOfRangeError, kafka.server.TierStateMachine (KIP-405).
"""

from typing import NamedTuple

from tidegauge.impl.errors import RemoteStorageError
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica.fetcher import Fetcher, PartitionFetchState
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.storage import epoch_cache
from tidegauge.impl.storage import log as log_
from tidegauge.impl.storage.log import Log


class RemoteSegment(NamedTuple):
    """A remote segment, last offset inclusive, and the epochs of the log up to its end."""

    base: int
    last: int
    epochs: tuple[tuple[int, int], ...]


class LeaderOffsets(NamedTuple):
    """The leader's responses: its log start, its first local offset with the epoch of that, its log end.

    `previous` is its OffsetsForLeaderEpoch response for the epoch before, (epoch, end).
    """

    log_start: int
    earliest_local: int
    earliest_local_epoch: int
    log_end: int
    previous: tuple[int, int] = (UNDEFINED, UNDEFINED)


def is_in_remote_storage(log: Log, offset: int) -> bool:
    """Return whether an offset is below the first local segment and not below the log start."""
    return log.start <= offset < log.segments[0]


def target_epoch(leader: LeaderOffsets) -> int:
    """Return the epoch of the last offset that is not local at the leader. TierStateMachine#buildRemoteLogAuxState."""
    if leader.earliest_local_epoch == 0:
        return 0
    epoch, end = leader.previous
    # The offset belongs to the previous epoch if that one reaches it; otherwise the first local epoch began before it.
    return epoch if end > leader.earliest_local - 1 else leader.earliest_local_epoch


def start_after_remote_storage(
    setup: Setup,
    fetcher: Fetcher,
    leader_epoch: int,
    leader: LeaderOffsets,
    segments: tuple[RemoteSegment, ...],
    *,
    enabled: bool = True,
) -> Fetcher:
    """Begin after remote storage. TierStateMachine#start; the caller delays the partition when this raises."""
    if not enabled:
        raise RemoteStorageError("remote storage: expected to be enabled here as at the leader; seen disabled")
    epoch, wanted = target_epoch(leader), leader.earliest_local - 1
    segment = next((s for s in segments if s.base <= wanted <= s.last and _epoch_at(setup, s, wanted) == epoch), None)
    if segment is None:
        raise RemoteStorageError(f"remote segment: expected one with offset {wanted} in epoch {epoch}; seen none")
    next_offset = segment.last + 1
    log = log_.truncate_fully_and_start_at(fetcher.log, next_offset, leader.log_start)
    cache = epoch_cache.assign_all(setup, log.cache, tuple(e for e in segment.epochs if e[1] < next_offset))
    log = log._replace(cache=epoch_cache.truncate_from_start(setup, cache, leader.log_start))
    entry = PartitionFetchState(next_offset, leader_epoch, log_.latest_epoch(setup, log), lag=leader.log_end - next_offset)
    return fetcher._replace(log=log, entry=entry)


def _epoch_at(setup: Setup, segment: RemoteSegment, offset: int) -> int:
    epochs, starts = [e for e, _ in segment.epochs], [s for _, s in segment.epochs]
    return setup.rules.epoch_for_offset(epochs, starts, offset)

"""Offsets in remote storage: what the leader says, where the follower begins."""

import pytest

from tidegauge.impl.errors import RemoteStorageError
from tidegauge.impl.messages import Batch
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica import fetcher as t
from tidegauge.impl.replica.fetcher import Fetcher, LeaderOffsets, PartitionFetchState, RemoteSegment
from tidegauge.impl.storage.log import Log, append_as_follower

SETUP = Setup()
SEGMENTS = (RemoteSegment(0, 9, ((0, 0),)), RemoteSegment(10, 19, ((0, 0), (2, 15))))
LEADER = LeaderOffsets(log_start=3, earliest_local=20, earliest_local_epoch=3, log_end=50, previous=(2, 20))
LOG, _ = append_as_follower(SETUP, Log(), (Batch(0, 1, 0),), 9)


def test_an_offset_below_the_first_local_segment_is_remote() -> None:
    """Not below the log start."""
    log = Log(start=5, end=30, segments=(20,))
    assert [t.is_in_remote_storage(log, offset) for offset in (4, 5, 19, 20)] == [False, True, True, False]


@pytest.mark.parametrize(
    ("leader", "epoch"),
    [
        (LEADER, 2),
        (LEADER._replace(previous=(2, 19)), 3),
        (LEADER._replace(earliest_local_epoch=0), 0),
    ],
)
def test_the_epoch_of_the_last_remote_offset(leader: LeaderOffsets, epoch: int) -> None:
    """The epoch before, if it reaches there; else the first local one's; epoch 0 has none before it."""
    assert t.target_epoch(leader) == epoch


def test_a_follower_begins_behind_the_remote_segment_with_its_epochs() -> None:
    """Log start and epochs are the leader's, the high watermark is the new start."""
    after = t.start_after_remote_storage(SETUP, Fetcher(LOG, PartitionFetchState(2, 7, 0)), 7, LEADER, SEGMENTS)
    assert after.entry == PartitionFetchState(20, 7, 2, lag=30)
    log = after.log
    assert (log.start, log.end, log.hw, log.segments) == (3, 20, 20, (20,))
    assert log.cache.memory.pairs() == ((0, 3), (2, 15))


def test_without_a_segment_or_remote_storage_nothing_changes() -> None:
    """RemoteStorageException: the caller delays the partition."""
    before = Fetcher(LOG, PartitionFetchState(2, 7, 0))
    other_epoch = LEADER._replace(previous=(1, 20))
    with pytest.raises(RemoteStorageError, match="offset 19 in epoch 1; seen none"):
        t.start_after_remote_storage(SETUP, before, 7, other_epoch, SEGMENTS)
    with pytest.raises(RemoteStorageError, match="seen disabled"):
        t.start_after_remote_storage(SETUP, before, 7, LEADER, SEGMENTS, enabled=False)

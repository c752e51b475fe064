"""ListOffsets and OffsetsForLeaderEpoch at a broker: who may ask, and up to where it is told."""

import pytest

from tests.impl.brokers import NOW, OTHER, SETUP, TP, asked, broker, change, follower, leading
from tidegauge.impl.errors import KAFKA_STORAGE_ERROR, OFFSET_NOT_AVAILABLE
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import (
    DEBUGGING_REPLICA,
    ListedOffset,
    ListOffsetsPartition,
    OffsetsForLeaderEpochRequest,
    OffsetSpec,
    Transaction,
)
from tidegauge.impl.profiles import FETCH_TRUNCATION, Setup
from tidegauge.impl.rules import (
    FENCED_LEADER_EPOCH,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    UNDEFINED,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from tidegauge.impl.server.client_requests import fetch_messages, last_offset_for_leader_epoch, list_offsets
from tidegauge.impl.server.replica_manager import ReplicaManager, mark_offline, online_partition, with_partition
from tidegauge.impl.server.role_changes import make_followers
from tidegauge.impl.storage import log as log_
from tidegauge.impl.topic_partition import TopicPartition

CONSUMER = UNDEFINED


def listed(
    manager: ReplicaManager,
    spec: OffsetSpec,
    replica: int = CONSUMER,
    *,
    epoch: int = UNDEFINED,
    tp: TopicPartition = TP,
    setup: Setup = SETUP,
    committed: bool = False,
) -> ListedOffset:
    requested = FrozenMap([(tp, ListOffsetsPartition(spec, epoch))])
    return list_offsets(setup, manager, replica, requested, read_committed=committed)[tp]


def caught_up() -> ReplicaManager:
    """Everybody has the ten records: the high watermark is the epoch start."""
    manager = leading()
    for replica in (2, 3):
        manager = fetch_messages(SETUP, manager, replica, follower(replica, 0), FrozenMap([(TP, asked(replica, 10))]), NOW)
    return manager


def test_a_new_leader_has_no_latest_offset_for_consumers_until_its_high_watermark_reaches_its_epoch_start() -> None:
    """KIP-207: they might go back. Brokers are told the log end; before 2.2 everybody was told something."""
    assert listed(leading(), OffsetSpec.LATEST) == ListedOffset(OFFSET_NOT_AVAILABLE)
    assert listed(leading(), OffsetSpec.LATEST, committed=True) == ListedOffset(OFFSET_NOT_AVAILABLE)
    assert listed(leading(), OffsetSpec.LATEST, 2) == ListedOffset(NONE, 10, 2)
    assert listed(leading(), OffsetSpec.EARLIEST) == ListedOffset(NONE, 0, 0)
    older = Setup(profile=FETCH_TRUNCATION._replace(latest_needs_hw=False))
    assert listed(leading(), OffsetSpec.LATEST, setup=older) == ListedOffset(NONE, 0, 2)
    assert listed(caught_up(), OffsetSpec.LATEST) == ListedOffset(NONE, 10, 2)


def test_the_latest_offset_is_as_far_as_the_requester_may_read() -> None:
    """High watermark, last stable offset, log end."""
    manager = caught_up()
    partition = online_partition(manager, TP)
    assert partition is not None
    log, _ = log_.append_as_leader(SETUP, partition.log, 2, 2, Transaction(7))
    log, _ = log_.append_as_leader(SETUP, log, 2, 2)
    manager = with_partition(manager, TP, partition._replace(log=log._replace(hw=12)))
    assert listed(manager, OffsetSpec.LATEST).offset == 12
    assert listed(manager, OffsetSpec.LATEST, committed=True).offset == 10
    assert listed(manager, OffsetSpec.LATEST, 2, committed=True).offset == 14


def test_the_earliest_offset_is_the_log_start_and_the_local_one_where_segments_begin() -> None:
    """With the epoch that the cache has there, if it reaches so far down."""
    manager = caught_up()
    partition = online_partition(manager, TP)
    assert partition is not None
    log, _ = log_.maybe_increment_log_start(SETUP, partition.log, 6)
    raised = with_partition(manager, TP, partition._replace(log=log))
    assert listed(raised, OffsetSpec.EARLIEST) == ListedOffset(NONE, 6, 1)
    assert listed(raised, OffsetSpec.EARLIEST_LOCAL) == ListedOffset(NONE, 6, 1)
    tiered = with_partition(manager, TP, partition._replace(log=partition.log._replace(segments=(5,))))
    assert listed(tiered, OffsetSpec.EARLIEST_LOCAL) == ListedOffset(NONE, 5, 1)
    entries = partition.log.cache.memory._replace(epochs=(1,), starts=(5,))
    no_epoch = partition.log._replace(cache=partition.log.cache._replace(memory=entries))
    assert (
        listed(with_partition(manager, TP, partition._replace(log=no_epoch)), OffsetSpec.EARLIEST).leader_epoch == UNDEFINED
    )


@pytest.mark.parametrize(("epoch", "error"), [(1, FENCED_LEADER_EPOCH), (2, NONE), (3, UNKNOWN_LEADER_EPOCH)])
def test_a_requester_in_another_epoch_is_fenced(epoch: int, error: int) -> None:
    """By either request, whatever it asks for."""
    for spec in OffsetSpec:
        assert listed(caught_up(), spec, epoch=epoch).error == error
    requested = FrozenMap([(TP, OffsetsForLeaderEpochRequest(epoch, 1))])
    assert last_offset_for_leader_epoch(SETUP, caught_up(), requested)[TP][0] == error


def test_only_a_leader_answers_but_for_debugging() -> None:
    """A follower has no epoch start, so it has a latest offset: its high watermark."""
    following = make_followers(SETUP, broker(TP), FrozenMap([(TP, change(2, 3))]), NOW).manager
    assert listed(following, OffsetSpec.LATEST).error == NOT_LEADER_OR_FOLLOWER
    assert listed(following, OffsetSpec.LATEST, DEBUGGING_REPLICA) == ListedOffset(NONE, 10, 3)
    requested = FrozenMap([(TP, OffsetsForLeaderEpochRequest(3, 1))])
    assert last_offset_for_leader_epoch(SETUP, following, requested)[TP][0] == NOT_LEADER_OR_FOLLOWER


def test_partitions_are_independent() -> None:
    """One that is not here is unknown or led elsewhere, one in an offline directory a storage error."""
    manager = mark_offline(leading(TP, OTHER), OTHER)
    nowhere, elsewhere = TopicPartition("none", 0), TopicPartition("known", 0)
    manager = manager._replace(known=frozenset({elsewhere}))
    tps = {TP: NONE, OTHER: KAFKA_STORAGE_ERROR, nowhere: UNKNOWN_TOPIC_OR_PARTITION, elsewhere: NOT_LEADER_OR_FOLLOWER}
    found = list_offsets(SETUP, manager, 2, FrozenMap((tp, ListOffsetsPartition(OffsetSpec.LATEST)) for tp in tps))
    assert {tp: offset.error for tp, offset in found.items()} == tps
    ends = last_offset_for_leader_epoch(
        SETUP, manager, FrozenMap((tp, OffsetsForLeaderEpochRequest(UNDEFINED, 0)) for tp in tps)
    )
    assert {tp: end[0] for tp, end in ends.items()} == tps
    assert ends[TP] == (NONE, 0, 5)

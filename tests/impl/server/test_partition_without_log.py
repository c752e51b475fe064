"""A partition that is hosted and has no log: how it comes to that, what it responds, how it ends.

Broker 1 has two log directories: A, which failed, and B. Whether a replica of its lies in A it cannot look up.
"""

import pytest

from tests.impl.brokers import ALL, NOW, OTHER, SETUP, TP, asked, broker, change, responses
from tidegauge.impl.controller.partition_registration import LOST, UNASSIGNED
from tidegauge.impl.errors import KAFKA_STORAGE_ERROR
from tidegauge.impl.fetch import fetcher_manager as fetchers_
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import (
    DEBUGGING_REPLICA,
    DeleteRecordsResponse,
    FetchedPartitions,
    FetchParams,
    ListOffsetsPartition,
    OffsetsForLeaderEpochRequest,
    OffsetSpec,
    ProducedBatch,
    ProduceResponse,
)
from tidegauge.impl.rules import (
    FENCED_LEADER_EPOCH,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    UNDEFINED,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from tidegauge.impl.server import role_changes as r
from tidegauge.impl.server.client_requests import (
    append_records,
    delete_records,
    fetch_messages,
    last_offset_for_leader_epoch,
    list_offsets,
)
from tidegauge.impl.server.replica_manager import (
    ReplicaManager,
    high_watermarks,
    leader_count,
    mark_offline,
    offline_replica_count,
    online_partition,
    partition_count,
    partition_error,
)
from tidegauge.impl.server.role_changes import LeaderAndIsrRequest, PartitionChange, become_leader_or_follower
from tidegauge.impl.topic_partition import TopicPartition

ANY_REPLICA = FetchParams(max_wait_ms=0, rack="a")
"""A consumer that may read from followers (KIP-392)."""


def delta(manager: ReplicaManager, *changes: tuple[TopicPartition, PartitionChange]) -> r.RoleChangeResult:
    return r.apply_delta(SETUP, manager, FrozenMap(changes), NOW)


def half_broken(*tps: TopicPartition) -> ReplicaManager:
    return broker(*tps)._replace(online_dirs=frozenset("B"), offline_dirs=frozenset("A"))


def placed(directory: str | None, leader: int = 2, epoch: int = 4, partition_epoch: int = 1) -> PartitionChange:
    return change(leader, epoch, partition_epoch=partition_epoch)._replace(directory=directory, topic_id="id-t")


def without_log() -> ReplicaManager:
    """Broker 1 follows broker 2 in epoch 4, and its replica lies in A."""
    return delta(half_broken(), (TP, placed("A"))).manager


@pytest.mark.parametrize(
    ("directory", "error"),
    [
        ("B", NONE),
        (UNASSIGNED, NONE),
        (None, NONE),
        ("A", NOT_LEADER_OR_FOLLOWER),
        (LOST, NOT_LEADER_OR_FOLLOWER),
        ("one that was taken out of log.dirs", NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_a_new_partition_gets_no_log_where_it_may_have_one_in_a_failed_directory(directory: str | None, error: int) -> None:
    """Partition#createLogInAssignedDirectoryId: the directory is online, or nobody has been told of one yet."""
    after = delta(half_broken(), (TP, placed(directory)))
    partition = online_partition(after.manager, TP)
    assert partition is not None
    assert (after.errors[TP], partition.has_log) == (error, error == NONE)
    assert (fetchers_.entry_of(after.manager.fetchers, TP) is not None) is (error == NONE)
    whole = delta(broker()._replace(online_dirs=frozenset("B")), (TP, placed(directory)))
    assert whole.errors[TP] == NONE


def test_a_log_that_is_there_is_kept_whatever_the_directories_are() -> None:
    """Nothing has to be made."""
    after = delta(half_broken(TP), (TP, placed("A")))
    assert after.errors[TP] == NONE
    assert fetchers_.entry_of(after.manager.fetchers, TP) is not None


def test_it_follows_and_fetches_nothing() -> None:
    """Partition#makeFollower has taken leader and epochs over before the log is missed; the partition is failed then."""
    manager = without_log()
    partition = online_partition(manager, TP)
    assert partition is not None
    assert (partition.leader_id, partition.leader_epoch, partition.partition_epoch) == (2, 4, 1)
    assert manager.fetchers.failed == {TP}
    assert not manager.fetchers.threads
    assert partition_error(manager, TP) == NONE
    assert (partition_count(manager), offline_replica_count(manager), leader_count(manager)) == (1, 0, 0)
    assert high_watermarks(manager) == FrozenMap()


@pytest.mark.parametrize(
    ("epoch", "error"),
    [(3, FENCED_LEADER_EPOCH), (5, UNKNOWN_LEADER_EPOCH), (4, NOT_LEADER_OR_FOLLOWER), (UNDEFINED, NOT_LEADER_OR_FOLLOWER)],
)
def test_who_may_ask_a_follower_is_refused_after_the_epochs(epoch: int, error: int) -> None:
    """Partition#getLocalLog. With a log the same requests are served."""
    manager, whole = without_log(), delta(broker(TP), (TP, placed("A"))).manager
    fetch = asked(UNDEFINED, 0, epoch=epoch)
    spec = ListOffsetsPartition(OffsetSpec.LATEST, epoch)

    def seen(on: ReplicaManager) -> tuple[int, int]:
        (fetched,) = responses(fetch_messages(SETUP, on, 7, ANY_REPLICA, FrozenMap([(TP, fetch)]), NOW))
        assert isinstance(fetched, FetchedPartitions)
        listed = list_offsets(SETUP, on, DEBUGGING_REPLICA, FrozenMap([(TP, spec)]))
        return fetched.reads[TP].response.error, listed[TP].error

    assert seen(manager) == (error, error)
    assert seen(whole) == ((NONE, NONE) if error == NOT_LEADER_OR_FOLLOWER else (error, error))


def test_requests_to_a_leader_are_refused_as_by_any_follower() -> None:
    """Produce, DeleteRecords, OffsetsForLeaderEpoch."""
    manager = without_log()
    produced = append_records(SETUP, manager, 7, 1, 1000, FrozenMap([(TP, ProducedBatch(1))]), NOW)
    deleted = delete_records(SETUP, manager, 8, 1000, FrozenMap([(TP, 0)]), NOW)
    (of_produce,), (of_delete,) = responses(produced), responses(deleted)
    assert isinstance(of_produce, ProduceResponse)
    assert isinstance(of_delete, DeleteRecordsResponse)
    assert of_produce.responses[TP].error == of_delete.responses[TP].error == NOT_LEADER_OR_FOLLOWER
    ends = last_offset_for_leader_epoch(SETUP, manager, FrozenMap([(TP, OffsetsForLeaderEpochRequest(4, 1))]))
    assert ends[TP] == (NOT_LEADER_OR_FOLLOWER, UNDEFINED, UNDEFINED)


def test_the_next_metadata_takes_it_offline() -> None:
    """It tells of no directory, and the partition is new no more: LogManager#getOrCreateLog throws a storage error."""
    after = delta(without_log(), (TP, placed(None, epoch=5, partition_epoch=2)))
    assert after.errors[TP] == KAFKA_STORAGE_ERROR
    assert (partition_error(after.manager, TP), offline_replica_count(after.manager)) == (KAFKA_STORAGE_ERROR, 1)
    assert after.manager.fetchers.failed == {TP}
    assert delta(after.manager, (TP, placed("B", epoch=6, partition_epoch=3))).errors == FrozenMap()


def test_an_assignment_to_another_failed_directory_leaves_it_without() -> None:
    """It is told of, and not online: nothing is tried."""
    after = delta(without_log(), (TP, placed("C", epoch=5, partition_epoch=2)))
    assert after.errors[TP] == NOT_LEADER_OR_FOLLOWER
    partition = online_partition(after.manager, TP)
    assert partition is not None
    assert (partition.leader_epoch, partition.has_log) == (5, False)


def test_a_leader_without_a_log_ends_the_delta() -> None:
    """ReplicaManager#applyLocalLeadersDelta catches storage errors only: who stands behind it is left as it was.

    The image has their registrations all the same, so they hear nothing until their next change.
    """
    last = TopicPartition("v", 0)
    changes = ((TP, placed("A", leader=1)), (OTHER, change(1, 4)), (last, change(2, 4)))
    after = delta(half_broken(OTHER, last), *changes)
    assert after.failed
    assert list(after.errors.items()) == [(TP, NOT_LEADER_OR_FOLLOWER)]
    partitions = [online_partition(after.manager, tp) for tp in (TP, OTHER, last)]
    assert [p is not None and (p.is_leader, p.leader_epoch) for p in partitions] == [(False, UNDEFINED)] * 3
    first = partitions[0]
    assert first is not None
    assert (first.state.isr, [replica.broker_id for replica in first.remotes]) == (ALL, [2, 3])
    assert delta(after.manager, *changes).errors == FrozenMap()
    again = delta(after.manager, (OTHER, change(1, 4, partition_epoch=2)))
    assert (again.errors[OTHER], leader_count(again.manager)) == (NONE, 1)


def test_a_failed_directory_keeps_its_partitions_and_another_topic_of_the_name_is_new() -> None:
    """Offline, a partition has its epochs and nothing else; deleted, it stays. ReplicaManager#getOrCreatePartition."""
    offline = mark_offline(delta(half_broken(), (TP, placed("B"))).manager, TP)
    kept = offline.hosted[TP].partition
    assert (kept.has_log, kept.leader_id, kept.leader_epoch, kept.partition_epoch) == (False, UNDEFINED, 4, 1)
    deleted = delta(offline, (TP, placed("B", partition_epoch=2)._replace(replicas=(2, 3)))).manager
    assert partition_error(deleted, TP) == KAFKA_STORAGE_ERROR
    created = delta(deleted, (TP, placed("B", epoch=0)._replace(topic_id="another")))
    partition = online_partition(created.manager, TP)
    assert partition is not None
    assert (created.errors[TP], partition.has_log, partition.leader_epoch) == (NONE, True, 0)


def lisr(manager: ReplicaManager, state: PartitionChange) -> tuple[ReplicaManager, int]:
    after, response = become_leader_or_follower(SETUP, manager, LeaderAndIsrRequest(9, 1, FrozenMap([(TP, state)])), NOW)
    return after, response.errors[TP]


def test_zookeeper_a_refused_partition_has_no_log_until_it_is_assigned() -> None:
    """ReplicaManager#becomeLeaderOrFollower makes the object first; the log comes with a role."""
    refused, error = lisr(broker(), change(2, 4)._replace(replicas=(2, 3)))
    partition = online_partition(refused, TP)
    assert partition is not None
    assert (error, partition.has_log, high_watermarks(refused)) == (UNKNOWN_TOPIC_OR_PARTITION, False, FrozenMap())
    (fetched,) = responses(
        fetch_messages(SETUP, refused, 7, ANY_REPLICA, FrozenMap([(TP, asked(UNDEFINED, 0, epoch=UNDEFINED))]), NOW)
    )
    assert isinstance(fetched, FetchedPartitions)
    assert fetched.reads[TP].response.error == NOT_LEADER_OR_FOLLOWER
    assert high_watermarks(lisr(refused, change(2, 4))[0]) == FrozenMap([(TP, 0)])


@pytest.mark.parametrize(("is_new", "error"), [(True, NONE), (False, KAFKA_STORAGE_ERROR)])
@pytest.mark.parametrize("leader", [1, 2, 7])
def test_zookeeper_a_failed_directory_refuses_what_is_not_new(is_new: bool, error: int, leader: int) -> None:
    """As leader, as follower, and where the leader is not alive and only the log is made."""
    after, seen = lisr(half_broken(), change(leader, 4)._replace(is_new=is_new))
    assert (seen, partition_error(after, TP)) == (error, error)
    assert (TP in high_watermarks(after)) is (error == NONE)

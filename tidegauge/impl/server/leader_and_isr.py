"""LeaderAndIsr and StopReplica: what a controller of the ZooKeeper era tells a broker (gone in 4.0).

Rules of this file

1. The whole request is refused for a stale broker epoch, then for a stale controller epoch. Only then is the controller
   epoch remembered; after that each partition has its own response.
2. Per partition, in order: offline, topic id, leader epoch, whether this broker is a replica at all.
3. Leaders first, then followers. A partition that is refused as not assigned is nevertheless hosted, without a log.
4. Source: KafkaApis#handleLeaderAndIsrRequest, ReplicaManager#becomeLeaderOrFollower, #stopReplicas.
"""

from typing import NamedTuple

from tidegauge.impl.errors import INCONSISTENT_TOPIC_ID, KAFKA_STORAGE_ERROR, STALE_BROKER_EPOCH, STALE_CONTROLLER_EPOCH
from tidegauge.impl.fetch import fetcher_manager as fetchers_
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.profiles import Setup
from tidegauge.impl.rules import FENCED_LEADER_EPOCH, NONE, UNDEFINED, UNKNOWN_TOPIC_OR_PARTITION
from tidegauge.impl.server.replica_manager import Hosted, ReplicaManager, partition_error, without_log
from tidegauge.impl.server.role_changes import (
    PartitionChange,
    PartitionChanges,
    make_followers,
    make_leaders,
    stop_partitions,
)
from tidegauge.impl.topic_partition import TopicPartition

EPOCH_DURING_DELETE = -2
"""LeaderAndIsr.EPOCH_DURING_DELETE: a topic that is deleted is stopped in any epoch."""


class LeaderAndIsrRequest(NamedTuple):
    """`kraft`: the sender is a KRaft controller during migration, which may repeat an epoch."""

    controller_id: int
    controller_epoch: int
    states: PartitionChanges
    broker_epoch: int = UNDEFINED
    kraft: bool = False


class LeaderAndIsrResponse(NamedTuple):
    """An error for the whole request, or one per partition; which partitions changed role (onLeadershipChange)."""

    error: int
    errors: FrozenMap[TopicPartition, int] = FrozenMap()
    leaders: tuple[TopicPartition, ...] = ()
    followers: tuple[TopicPartition, ...] = ()


class StopReplicaState(NamedTuple):
    """One partition of a StopReplica request."""

    leader_epoch: int
    delete: bool = False


class StopReplicaRequest(NamedTuple):
    """Partitions this broker does not hold any more, or holds without serving them."""

    controller_id: int
    controller_epoch: int
    states: FrozenMap[TopicPartition, StopReplicaState]
    broker_epoch: int = UNDEFINED


def _stale(manager: ReplicaManager, broker_epoch: int, controller_epoch: int) -> int:
    """Return the error of a stale request: broker epoch first, then controller epoch. KafkaApis#isBrokerEpochStale."""
    # A higher broker epoch is no error: the registration reached the controller before this broker heard of it.
    if broker_epoch != UNDEFINED and broker_epoch < manager.broker_epoch:
        return STALE_BROKER_EPOCH
    return STALE_CONTROLLER_EPOCH if controller_epoch < manager.controller_epoch else NONE


def become_leader_or_follower(
    setup: Setup, manager: ReplicaManager, request: LeaderAndIsrRequest, now: int
) -> tuple[ReplicaManager, LeaderAndIsrResponse]:
    """Handle LeaderAndIsr. ReplicaManager#becomeLeaderOrFollower."""
    error = _stale(manager, request.broker_epoch, request.controller_epoch)
    if error != NONE:
        return manager, LeaderAndIsrResponse(error)
    manager = manager._replace(controller_epoch=request.controller_epoch)
    errors: FrozenMap[TopicPartition, int] = FrozenMap()
    accepted: PartitionChanges = FrozenMap()
    for tp, state in request.states.items():
        manager = _hosted(manager, tp)
        error, is_new = _judged(manager, tp, state, kraft=request.kraft)
        errors = errors.put(tp, error)
        if is_new:
            accepted = accepted.put(tp, state)
        if error == NONE:
            manager = _with_topic_id(manager, tp, state.topic_id)
    led = make_leaders(
        setup, manager, FrozenMap((tp, s) for tp, s in accepted.items() if s.leader == manager.broker_id), now
    )
    followed = make_followers(
        setup, led.manager, FrozenMap((tp, s) for tp, s in accepted.items() if s.leader != manager.broker_id), now
    )
    for tp, error in (*led.errors.items(), *followed.errors.items()):
        errors = errors.put(tp, error)
    manager = followed.manager._replace(checkpointing=True)
    manager = manager._replace(fetchers=fetchers_.shutdown_idle_fetcher_threads(manager.fetchers))
    return manager, LeaderAndIsrResponse(NONE, errors, led.changed, followed.changed)


def _hosted(manager: ReplicaManager, tp: TopicPartition) -> ReplicaManager:
    """Host a partition that is not hosted yet; it has no log. ReplicaManager#getOrCreatePartition."""
    if tp in manager.hosted:
        return manager
    return manager._replace(hosted=manager.hosted.put(tp, Hosted(without_log(manager))))


def _judged(manager: ReplicaManager, tp: TopicPartition, state: PartitionChange, *, kraft: bool) -> tuple[int, bool]:
    """Return (error, whether the state is applied)."""
    partition, topic_id, offline, _ = manager.hosted[tp]
    if offline:
        return KAFKA_STORAGE_ERROR, False
    # A topic that was created again under the same name: its epochs cannot be compared with the old one's (KIP-516).
    if None not in {state.topic_id, topic_id} and state.topic_id != topic_id:
        return INCONSISTENT_TOPIC_ID, False
    epoch = partition.leader_epoch
    if state.leader_epoch > epoch or (kraft and state.leader_epoch == epoch):
        if manager.broker_id not in state.replicas:
            return UNKNOWN_TOPIC_OR_PARTITION, False
        return NONE, True
    # An equal epoch is stale, unless the request is there to give an older log its topic id.
    only_topic_id = state.leader_epoch == epoch and state.topic_id != topic_id
    return (NONE if only_topic_id else STALE_CONTROLLER_EPOCH), False


def _with_topic_id(manager: ReplicaManager, tp: TopicPartition, topic_id: str | None) -> ReplicaManager:
    """Give the log its topic id; a follower's entry gets it, too. ReplicaManager#updateTopicIdForFollowers."""
    hosted = manager.hosted[tp]
    if hosted.topic_id == topic_id:
        return manager
    return manager._replace(
        hosted=manager.hosted.put(tp, hosted._replace(topic_id=topic_id or hosted.topic_id)),
        fetchers=fetchers_.update_topic_ids(manager.fetchers, {tp.topic: topic_id}),
    )


def stop_replicas(
    setup: Setup, manager: ReplicaManager, request: StopReplicaRequest, now: int
) -> tuple[ReplicaManager, LeaderAndIsrResponse]:
    """Handle StopReplica; a partition that is not hosted is stopped without error. ReplicaManager#stopReplicas."""
    error = _stale(manager, request.broker_epoch, request.controller_epoch)
    if error != NONE:
        return manager, LeaderAndIsrResponse(error)
    manager = manager._replace(controller_epoch=request.controller_epoch)
    errors: FrozenMap[TopicPartition, int] = FrozenMap()
    stopped: FrozenMap[TopicPartition, bool] = FrozenMap()
    for tp, state in request.states.items():
        error = _stop_error(manager, tp, state)
        errors = errors.put(tp, error)
        if error == NONE:
            stopped = stopped.put(tp, state.delete)
    return stop_partitions(setup, manager, stopped, now), LeaderAndIsrResponse(NONE, errors)


def _stop_error(manager: ReplicaManager, tp: TopicPartition, state: StopReplicaState) -> int:
    """Return the error of a StopReplica request for one partition: a storage error, then a stale leader epoch."""
    hosted = manager.hosted.get(tp)
    if hosted is None:
        return NONE
    if partition_error(manager, tp) != NONE:
        return KAFKA_STORAGE_ERROR
    if state.leader_epoch in {UNDEFINED, EPOCH_DURING_DELETE} or state.leader_epoch >= hosted.partition.leader_epoch:
        return NONE
    return FENCED_LEADER_EPOCH

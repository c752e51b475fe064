"""What a metadata update makes of the partitions of a broker: leaders, followers, or nothing any more.

Metadata comes from the metadata log (KRaft, `apply_delta`), or from a controller of the ZooKeeper era in the requests
LeaderAndIsr and StopReplica. Either way it is a `PartitionChange` for each partition, and the changes of one update are a
batch: the result has the broker's `ReplicaManager` after it, the partitions whose role changed, and an error code for each.
Fetchers of a partition stop as its role changes: before it is a leader, and just after it is another's follower. A partition
that is new gets a log with its role; if a log directory is offline it may stay without one, or go offline. At the end of the
file are the ISRs that this broker proposes as a leader. `now` is the broker's clock in ms.
"""

from typing import NamedTuple

from tidegauge.impl.controller.partition_registration import UNASSIGNED
from tidegauge.impl.errors import INCONSISTENT_TOPIC_ID, KAFKA_STORAGE_ERROR, STALE_BROKER_EPOCH, STALE_CONTROLLER_EPOCH
from tidegauge.impl.fetch import fetcher_manager as fetchers_
from tidegauge.impl.fetch.fetcher_thread import InitialFetchState
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import AlterPartitionResponse
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica import fetcher as fetcher_
from tidegauge.impl.replica import partition
from tidegauge.impl.replica import partition as partition_
from tidegauge.impl.replica.partition_state import Partition, PartitionState
from tidegauge.impl.rules import FENCED_LEADER_EPOCH, NONE, NOT_LEADER_OR_FOLLOWER, UNDEFINED, UNKNOWN_TOPIC_OR_PARTITION
from tidegauge.impl.server import purgatory
from tidegauge.impl.server import replica_manager as manager_
from tidegauge.impl.server.replica_manager import (
    Hosted,
    IsrUpdates,
    ReplicaManager,
    online_partition,
    partition_error,
    topic_setup,
    with_partition,
    without_log,
)
from tidegauge.impl.topic_partition import TopicPartition

# The log of a partition with a new role: whether it gets one depends on the broker's log directories (KIP-858).
#
# Rules of this part
#
# 1. Only a partition that has no log asks. While every directory is online it gets one.
# 2. While one is offline, the log may lie there. Where metadata assigns a directory that is not online, none is made, and
#    the partition goes on without one. Otherwise only a new partition gets a log; another goes offline.
# 3. Source: Partition#createLogInAssignedDirectoryId, LogManager#getOrCreateLog. Before 3.7 no directory was assigned.


def creation_error(manager: ReplicaManager, partition: Partition, directory: str | None, *, is_new: bool) -> int:
    """Return an error code that says whether a partition gets a log with its role. Partition#createLogInAssignedDirectoryId.

    NONE: it has one from now on. NOT_LEADER_OR_FOLLOWER: it goes on without. KAFKA_STORAGE_ERROR: it goes offline.
    `directory` is the one that metadata assigns, None where it assigns none; `is_new`: nobody had this partition before.
    """
    if partition.has_log or not manager.offline_dirs:
        return NONE
    if directory not in {None, UNASSIGNED, *manager.online_dirs}:
        return NOT_LEADER_OR_FOLLOWER
    # The log of an older partition may lie in the directory that is offline.
    return NONE if is_new else KAFKA_STORAGE_ERROR


# Role changes: metadata makes a broker's partition a leader or a follower, or takes it away.
#
# Rules of this part
#
# 1. Fetchers of a partition stop before it becomes a leader or goes, and just after it becomes a follower; they start last.
# 2. ZooKeeper: a follower whose leader is not alive changes nothing but gets a log (KAFKA-1647). KRaft: it becomes follower
#    all the same, so a leader that was deposed steps down, and fetches when the leader is known.
# 3. Nothing is truncated here since 0.11; the fetcher does it.
# 4. Source: kafka.server.ReplicaManager#makeLeaders, #makeFollowers, #stopPartitions, #applyDelta.


class PartitionChange(NamedTuple):
    """The metadata of one partition: LeaderAndIsrPartitionState, PartitionRegistration.

    `directory` is what it assigns to this broker's replica where it tells of it: with the first registration, and with those
    that assign another one (LocalReplicaChanges#directoryIds). `is_new`: nobody had this partition object before; where
    KRaft tells of the partition the broker sees for itself.
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    replicas: tuple[int, ...]
    topic_id: str | None = None
    directory: str | None = None
    is_new: bool = False


PartitionChanges = FrozenMap[TopicPartition, PartitionChange]


class RoleChangeResult(NamedTuple):
    """The outcome of a batch: the manager, the partitions that changed role, an error code for each partition.

    `failed`: an exception ended it, and the partitions after that one were not processed.
    """

    manager: ReplicaManager
    changed: tuple[TopicPartition, ...] = ()
    errors: FrozenMap[TopicPartition, int] = FrozenMap()
    failed: bool = False


def make_leaders(setup: Setup, manager: ReplicaManager, changes: PartitionChanges, now: int) -> RoleChangeResult:
    """Stop the fetchers of all changed partitions, then make this broker the leader of each.

    ReplicaManager#makeLeaders, #applyLocalLeadersDelta.
    """
    fetchers, _ = fetchers_.remove_fetcher_for_partitions(manager.fetchers, frozenset(changes))
    done = RoleChangeResult(manager._replace(fetchers=fetchers))
    for tp, change in changes.items():
        done = _make_leader(setup, done, tp, change, now)
        # Kafka catches only a storage error per partition: the exception for one without a log ends the whole batch.
        if done.failed:
            break
    return done


def _make_leader(
    setup: Setup, done: RoleChangeResult, tp: TopicPartition, change: PartitionChange, now: int
) -> RoleChangeResult:
    """Make this broker the leader of one partition; add that to `done`, the outcome of the batch so far."""
    manager, changed, errors, _ = done
    before, error = _with_log(setup, manager, tp, change)
    # Its log directory is offline: so is the partition from now on.
    if error == KAFKA_STORAGE_ERROR:
        return RoleChangeResult(manager_.mark_offline(manager, tp), changed, errors.put(tp, error))
    after, became_leader = partition_.make_leader(
        manager_.topic_setup(setup, manager, tp),
        before,
        change.leader_epoch,
        change.partition_epoch,
        change.isr,
        change.replicas,
        manager.metadata,
        now,
    )
    manager = manager_.with_partition(manager, tp, after)
    if purgatory.high_watermark_incremented(before, after):
        manager = purgatory.check_all(setup, manager, tp, now)
    # Kafka throws here for a partition without a log, and nobody catches it but the end of the batch (make_leaders).
    failed = error == NOT_LEADER_OR_FOLLOWER
    return RoleChangeResult(manager, (*changed, tp) if became_leader else changed, errors.put(tp, error), failed)


def _with_log(setup: Setup, manager: ReplicaManager, tp: TopicPartition, change: PartitionChange) -> tuple[Partition, int]:
    """Return a partition that is about to change its role, with a log if it gets one, and the error of `creation_error`."""
    partition = manager_.online_partition(manager, tp) or manager_.without_log(manager)
    partition = ready_for_metadata(setup, partition)
    # Its log directory fails as soon as it is used.
    if tp in manager.broken:
        return partition, KAFKA_STORAGE_ERROR
    # Partition#makeLeader and #makeFollower ignore older metadata, so no log is created for it.
    if change.partition_epoch < partition.partition_epoch:
        return partition, NONE
    error = creation_error(manager, partition, change.directory, is_new=change.is_new)
    return partition._replace(has_log=error == NONE), error


def ready_for_metadata(setup: Setup, partition: Partition) -> Partition:
    """Return the partition as the role change has to see it: before KAFKA-13790 (3.3) it compared no partition epochs.

    With an undefined one no metadata is too old.
    """
    return partition if setup.profile.guards_partition_epoch else partition._replace(partition_epoch=UNDEFINED)


def restarts_fetcher(setup: Setup, before: Partition, after: Partition) -> bool:
    """Return whether metadata that changes a follower from `before` to `after` restarts its fetcher.

    Partition#makeFollower, as it changed over the releases.
    """
    has_other_leader = before.leader_id != after.leader_id
    match setup.profile.fetcher_restart:
        case "leader":
            return has_other_leader
        # An epoch in between was missed, in which another may have led (KAFKA-7164).
        case "leader-or-jump":
            return has_other_leader or after.leader_epoch > before.leader_epoch + 1
        case "leader-or-epoch":
            return has_other_leader or after.leader_epoch != before.leader_epoch
        # "epoch", since KAFKA-13790 (3.3).
        case _:
            return after.leader_epoch > before.leader_epoch


def make_followers(setup: Setup, manager: ReplicaManager, changes: PartitionChanges, now: int) -> RoleChangeResult:
    """Make this broker a follower in each partition, by a LeaderAndIsr request. ReplicaManager#makeFollowers.

    The result's `changed` are the partitions whose fetchers were restarted.
    """
    restarted: list[TopicPartition] = []
    errors: FrozenMap[TopicPartition, int] = FrozenMap()
    for tp, change in changes.items():
        before, error = _with_log(setup, manager, tp, change)
        errors = errors.put(tp, error)
        if error == KAFKA_STORAGE_ERROR:
            manager = manager_.mark_offline(manager, tp)
        elif change.leader not in manager.live:
            # KAFKA-1647: the log is created even so, or a high watermark checkpoint would lose the partition's entry.
            manager = manager_.with_partition(
                manager, tp, (manager_.online_partition(manager, tp) or before)._replace(has_log=before.has_log)
            )
        else:
            manager, restarts = _make_follower(setup, manager, tp, before, change)
            restarted += [tp] if restarts else []
    # Fetchers stop only after the roles have changed, and a leader that steps down must not answer produces in between:
    #     role changes -> old fetchers stop -> delayed requests complete -> new fetchers start
    fetchers, _ = fetchers_.remove_fetcher_for_partitions(manager.fetchers, frozenset(restarted))
    manager = manager._replace(fetchers=fetchers)
    for tp in restarted:
        manager = purgatory.check_when_not_leader(setup, manager, tp, now)
    if not manager.shutting_down:
        manager = _start_fetchers(setup, manager, tuple(restarted))
    return RoleChangeResult(manager, tuple(restarted), errors)


def _make_follower(
    setup: Setup, manager: ReplicaManager, tp: TopicPartition, before: Partition, change: PartitionChange
) -> tuple[ReplicaManager, bool]:
    """Make this broker a follower in one partition, as it is `before`; also return whether its fetcher is restarted."""
    after, _ = partition_.make_follower(before, change.leader, change.leader_epoch, change.partition_epoch)
    # Metadata of an older partition epoch changes nothing.
    if after is before:
        return manager, False
    return manager_.with_partition(manager, tp, after), restarts_fetcher(setup, before, after)


def _start_fetchers(setup: Setup, manager: ReplicaManager, tps: tuple[TopicPartition, ...]) -> ReplicaManager:
    """Add partitions to the fetcher threads of their leaders, those whose leader is alive."""
    added: dict[TopicPartition, InitialFetchState] = {}
    for tp in tps:
        hosted = manager.hosted[tp]
        leader = manager.live.get(hosted.partition.leader_id)
        if leader is not None:
            offset = fetcher_.initial_fetch_offset(setup, hosted.partition.log)
            added[tp] = InitialFetchState(leader, hosted.partition.leader_epoch, offset, hosted.topic_id)
    fetchers, changed = fetchers_.add_fetcher_for_partitions(setup, manager.fetchers, manager_.online_logs(manager), added)
    return manager_.with_logs(manager._replace(fetchers=fetchers), changed)


def stop_partitions(
    setup: Setup, manager: ReplicaManager, stopped: FrozenMap[TopicPartition, bool], now: int
) -> ReplicaManager:
    """Stop to fetch partitions, and delete those whose value in `stopped` is true. ReplicaManager#stopPartitions."""
    fetchers, _ = fetchers_.remove_fetcher_for_partitions(manager.fetchers, frozenset(stopped))
    # A partition that is offline stays so: its log cannot be deleted.
    deleted = tuple(tp for tp, delete in stopped.items() if delete and manager_.online_partition(manager, tp) is not None)
    manager = manager._replace(fetchers=fetchers, hosted=manager.hosted.without(*deleted))
    # Nothing else would complete the requests that wait for them.
    for tp in stopped:
        manager = purgatory.check_when_not_leader(setup, manager, tp, now)
    return manager


# ---------------------------------------------------------------------------------------------------------------------
# KRaft


def apply_delta(setup: Setup, manager: ReplicaManager, changes: PartitionChanges, now: int) -> RoleChangeResult:
    """Apply the registrations that changed in the metadata log: first deletions, then leaders, then followers.

    ReplicaManager#applyDelta. No controller or broker epoch is compared: the metadata log has an order. A registration of
    which only the ISR changed comes here, too.
    """
    # True: stopped, and deleted as well.
    deleted = FrozenMap(
        (tp, True) for tp, c in changes.items() if manager.broker_id not in c.replicas and tp in manager.hosted
    )
    manager = stop_partitions(setup, manager, deleted, now)
    local = [(tp, c) for tp, c in changes.items() if manager.broker_id in c.replicas and _is_news(manager, tp, c)]
    # An offline partition that gets this far has another topic id, so it is new, too (ReplicaManager#getOrCreatePartition).
    local = [(tp, c._replace(is_new=manager_.online_partition(manager, tp) is None)) for tp, c in local]
    manager = _with_registrations(manager, local)._replace(checkpointing=True)
    led = make_leaders(setup, manager, FrozenMap((tp, c) for tp, c in local if c.leader == manager.broker_id), now)
    # The exception that ended the leaders ends the whole update: no follower is made.
    if led.failed:
        return led
    followed = _apply_local_followers(
        setup, led.manager, FrozenMap((tp, c) for tp, c in local if c.leader != manager.broker_id), now
    )
    manager = followed.manager
    manager = manager._replace(fetchers=fetchers_.shutdown_idle_fetcher_threads(manager.fetchers))
    errors = FrozenMap((*led.errors.items(), *followed.errors.items()))
    return RoleChangeResult(manager, (*led.changed, *followed.changed), errors)


def _is_news(manager: ReplicaManager, tp: TopicPartition, change: PartitionChange) -> bool:
    """Return whether a registration is another one than the last one read. TopicDelta#localChanges.

    Registrations of one topic are told apart by partition epoch: the one of the last registration counts
    (`Hosted.registered`), not the one in the partition, which the response to the leader's own proposal may have raised. An
    offline partition has no news: it stays so until a restart (ReplicaManager#getOrCreatePartition).
    """
    hosted = manager.hosted.get(tp)
    if hosted is None or hosted.topic_id != change.topic_id:
        return True
    return not (hosted.offline or hosted.registered == change.partition_epoch)


def _with_registrations(manager: ReplicaManager, changes: list[tuple[TopicPartition, PartitionChange]]) -> ReplicaManager:
    """Note topic id and partition epoch of the changed registrations, and host the partitions that are new."""
    for tp, change in changes:
        hosted = manager_.Hosted(manager_.without_log(manager)) if change.is_new else manager.hosted[tp]
        hosted = hosted._replace(topic_id=change.topic_id, registered=change.partition_epoch)
        manager = manager._replace(hosted=manager.hosted.put(tp, hosted))
    return manager


def _apply_local_followers(setup: Setup, manager: ReplicaManager, changes: PartitionChanges, now: int) -> RoleChangeResult:
    """Make this broker a follower in each partition, by the metadata log. ReplicaManager#applyLocalFollowersDelta.

    The result's `changed` are the partitions whose fetchers were restarted.
    """
    restarted: list[TopicPartition] = []
    stopped: list[TopicPartition] = []
    errors: FrozenMap[TopicPartition, int] = FrozenMap()
    for tp, change in changes.items():
        before, error = _with_log(setup, manager, tp, change)
        errors = errors.put(tp, error)
        if error == KAFKA_STORAGE_ERROR:
            manager, restarts = manager_.mark_offline(manager, tp), False
        else:
            manager, restarts = _make_follower(setup, manager, tp, before, change)
        if error != NONE:
            manager = manager._replace(fetchers=fetchers_.mark_partitions_failed(manager.fetchers, frozenset({tp})))
            continue
        # During a controlled shutdown the replica has left the ISR on purpose: fetching again would let it rejoin.
        leaves = change.leader == UNDEFINED or manager.broker_id not in change.isr
        if manager.shutting_down and leaves:
            stopped.append(tp)
        elif restarts:
            restarted.append(tp)
    fetchers, _ = fetchers_.remove_fetcher_for_partitions(manager.fetchers, frozenset((*stopped, *restarted)))
    # Unlike with ZooKeeper, fetchers start before delayed requests are completed.
    manager = _start_fetchers(setup, manager._replace(fetchers=fetchers), tuple(restarted))
    for tp in (*stopped, *restarted):
        manager = purgatory.check_when_not_leader(setup, manager, tp, now)
    return RoleChangeResult(manager, tuple(restarted), errors)


# LeaderAndIsr and StopReplica: what a controller of the ZooKeeper era tells a broker (gone in 4.0).
#
# Rules of this part
#
# 1. The whole request is refused for a stale broker epoch, then for a stale controller epoch. Only then is the controller
#    epoch remembered; after that each partition has its own response.
# 2. Per partition, in order: offline, topic id, leader epoch, whether this broker is a replica at all.
# 3. Leaders first, then followers. A partition that is refused as not assigned is nevertheless hosted, without a log.
# 4. Source: KafkaApis#handleLeaderAndIsrRequest, ReplicaManager#becomeLeaderOrFollower, #stopReplicas.


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


def _stale_error(manager: ReplicaManager, broker_epoch: int, controller_epoch: int) -> int:
    """Return the error of a controller's request if it is stale, else NONE: broker epoch first, then controller epoch.

    KafkaApis#isBrokerEpochStale. A broker epoch of UNDEFINED is not compared.
    """
    # A higher broker epoch is no error: the registration reached the controller before this broker heard of it.
    if broker_epoch != UNDEFINED and broker_epoch < manager.broker_epoch:
        return STALE_BROKER_EPOCH
    return STALE_CONTROLLER_EPOCH if controller_epoch < manager.controller_epoch else NONE


def become_leader_or_follower(
    setup: Setup, manager: ReplicaManager, request: LeaderAndIsrRequest, now: int
) -> tuple[ReplicaManager, LeaderAndIsrResponse]:
    """Handle LeaderAndIsr: check each partition, then make leaders, then followers. ReplicaManager#becomeLeaderOrFollower.

    A partition that this broker is not a replica of is hosted all the same, without a log.
    """
    error = _stale_error(manager, request.broker_epoch, request.controller_epoch)
    if error != NONE:
        return manager, LeaderAndIsrResponse(error)
    manager = manager._replace(controller_epoch=request.controller_epoch)
    errors: FrozenMap[TopicPartition, int] = FrozenMap()
    accepted: PartitionChanges = FrozenMap()
    for tp, state in request.states.items():
        manager = _with_hosted(manager, tp)
        error, is_applied = _check_state(manager, tp, state, kraft=request.kraft)
        errors = errors.put(tp, error)
        if is_applied:
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


def _with_hosted(manager: ReplicaManager, tp: TopicPartition) -> ReplicaManager:
    """Host a partition that is not hosted yet; it has no log. ReplicaManager#getOrCreatePartition."""
    if tp in manager.hosted:
        return manager
    return manager._replace(hosted=manager.hosted.put(tp, Hosted(without_log(manager))))


def _check_state(manager: ReplicaManager, tp: TopicPartition, state: PartitionChange, *, kraft: bool) -> tuple[int, bool]:
    """Check one partition of a LeaderAndIsr request; return (error, whether its leader and ISR are applied).

    `kraft`: the sender is a KRaft controller during migration, which may repeat a leader epoch.
    """
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
    """Give a hosted partition its topic id, and its entry in a fetcher thread, too. #updateTopicIdForFollowers.

    A request without topic id takes away the entry's, not the partition's.
    """
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
    """Handle StopReplica: stop each partition that has no error, and delete it if asked to. ReplicaManager#stopReplicas.

    A partition that is not hosted is stopped without error.
    """
    error = _stale_error(manager, request.broker_epoch, request.controller_epoch)
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
    """Return the error of a StopReplica request for one partition: a storage error, else a stale leader epoch, else NONE.

    UNDEFINED and EPOCH_DURING_DELETE are never stale.
    """
    hosted = manager.hosted.get(tp)
    if hosted is None:
        return NONE
    if partition_error(manager, tp) != NONE:
        return KAFKA_STORAGE_ERROR
    if state.leader_epoch in {UNDEFINED, EPOCH_DURING_DELETE} or state.leader_epoch >= hosted.partition.leader_epoch:
        return NONE
    return FENCED_LEADER_EPOCH


# ---------------------------------------------------------------------------------------------------------------------
# The ISR changes that a broker proposes, and what the controller's responses do to it.
#
# Rules of this part
#
# 1. Every partition led here is looked at each replica.lag.time.max.ms / 2; what a look proposes is a pending state, which
#    the caller sends to the controller (impl.replica.partition.alter_partition_request).
# 2. A response counts while its proposal is pending: as an expansion or a shrink, as failed if it is an error or stale.
# 3. Source: kafka.server.ReplicaManager#maybeShrinkIsr, kafka.cluster.Partition#submitAlterPartition,
#    AlterPartitionListener.


def maybe_shrink_isrs(setup: Setup, manager: ReplicaManager, now: int) -> ReplicaManager:
    """Propose an ISR without the members that lag, for every online partition led here. ReplicaManager#maybeShrinkIsr."""
    for tp, hosted in manager.hosted.items():
        if not hosted.offline:
            manager = with_partition(manager, tp, partition.maybe_shrink_isr(setup, hosted.partition, now))
    return manager


def handle_isr_response(
    setup: Setup,
    manager: ReplicaManager,
    tp: TopicPartition,
    proposed: PartitionState,
    response: AlterPartitionResponse,
    now: int,
) -> tuple[ReplicaManager, bool]:
    """Handle the controller's response to a proposed ISR of `tp`; also return whether the request must be sent again.

    `proposed` is the partition's state when the proposal was made.
    """
    before = online_partition(manager, tp)
    # The partition has left this broker, or its log directory has failed.
    if before is None:
        return manager, False
    after, again = partition.handle_alter_partition_response(
        topic_setup(setup, manager, tp), before, proposed, response, manager.metadata, now
    )
    manager = with_partition(manager, tp, after)
    manager = manager._replace(isr_updates=_count_update(manager.isr_updates, before, after, proposed, response))
    if purgatory.high_watermark_incremented(before, after):
        manager = purgatory.check_all(setup, manager, tp, now)
    return manager, again


def _count_update(
    counts: IsrUpdates, before: Partition, after: Partition, proposed: PartitionState, response: AlterPartitionResponse
) -> IsrUpdates:
    """Return the counts after a response to the proposal `proposed`: it is an expansion, a shrink, or a failed update.

    `before` and `after` are the partition before and after the response was handled.
    """
    # The proposal was replaced by metadata meanwhile: its response counts as nothing.
    if before.state != proposed:
        return counts
    # A response without error that leaves the proposal pending was stale: Kafka marks it as a failed update.
    if response.error != NONE or after.state == proposed:
        return counts._replace(failed=counts.failed + 1)
    if proposed.adding != UNDEFINED:
        return counts._replace(expands=counts.expands + 1)
    return counts._replace(shrinks=counts.shrinks + 1)

"""What metadata makes of a broker's partitions: leaders, followers, nothing any more.

Rules of this file

1. Fetchers of a partition stop before its role changes, and start after it: nothing is appended in between.
2. ZooKeeper: a follower whose leader is not alive changes nothing but gets a log (KAFKA-1647). KRaft: it becomes follower
   all the same, so a leader that was deposed steps down, and fetches when the leader is known.
3. Nothing is truncated here since 0.11; the fetcher does it (an article copies the older comment).
4. Source: kafka.server.ReplicaManager#makeLeaders, #makeFollowers, #stopPartitions, #applyDelta.
"""

from typing import NamedTuple

from tidegauge.impl.fetching import fetcher_manager as fetchers_
from tidegauge.impl.fetching.fetcher_thread import InitialFetchState
from tidegauge.impl.messages import KAFKA_STORAGE_ERROR
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica import fetcher as fetcher_
from tidegauge.impl.replica import partition as partition_
from tidegauge.impl.replica.partition_state import Partition
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.impl.server import purgatory
from tidegauge.impl.server.replica_manager import (
    ReplicaManager,
    logs,
    mark_offline,
    online,
    topic_setup,
    with_logs,
    with_partition,
)
from tidegauge.impl.table import Table
from tidegauge.impl.topic_partition import TopicPartition


class PartitionChange(NamedTuple):
    """What metadata says about one partition: LeaderAndIsrPartitionState, PartitionRegistration."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    replicas: tuple[int, ...]
    topic_id: str | None = None


Changes = Table[TopicPartition, PartitionChange]


class Transition(NamedTuple):
    """What came of a batch: the manager, the partitions that changed role, an error code for each partition."""

    manager: ReplicaManager
    changed: tuple[TopicPartition, ...] = ()
    errors: Table[TopicPartition, int] = Table()


def make_leaders(setup: Setup, manager: ReplicaManager, changes: Changes, now: int) -> Transition:
    """Stop the fetchers of all, then Partition#makeLeader each. ReplicaManager#makeLeaders, #applyLocalLeadersDelta."""
    fetchers, _ = fetchers_.remove_fetcher_for_partitions(manager.fetchers, frozenset(changes))
    done = Transition(manager._replace(fetchers=fetchers))
    for tp, change in changes.items():
        done = _make_leader(setup, done, tp, change, now)
    return done


def _make_leader(setup: Setup, done: Transition, tp: TopicPartition, change: PartitionChange, now: int) -> Transition:
    manager, changed, errors = done
    if tp in manager.broken:
        return Transition(mark_offline(manager, tp), changed, errors.put(tp, KAFKA_STORAGE_ERROR))
    before = _partition(setup, manager, tp)
    after, was_new = partition_.make_leader(
        topic_setup(setup, manager, tp),
        before,
        change.leader_epoch,
        change.partition_epoch,
        change.isr,
        change.replicas,
        manager.metadata,
        now,
    )
    manager = with_partition(manager, tp, after)
    if purgatory.high_watermark_incremented(before, after):
        manager = purgatory.check_all(setup, manager, tp, now)
    return Transition(manager, (*changed, tp) if was_new else changed, errors.put(tp, NONE))


def _partition(setup: Setup, manager: ReplicaManager, tp: TopicPartition) -> Partition:
    """The partition, created if it is new; before KAFKA-13790 no partition epoch was too old."""
    partition = online(manager, tp) or Partition(manager.broker_id)
    if setup.profile.guards_partition_epoch:
        return partition
    return partition._replace(partition_epoch=min(partition.partition_epoch, UNDEFINED))


def restarts_fetcher(setup: Setup, before: Partition, after: Partition) -> bool:
    """Whether a follower's fetcher starts anew. Partition#makeFollower, as it changed over the releases."""
    other_leader = before.leader_id != after.leader_id
    match setup.profile.fetcher_restart:
        case "leader":
            return other_leader
        case "leader-or-jump":
            return other_leader or after.leader_epoch > before.leader_epoch + 1  # KAFKA-7164
        case "leader-or-epoch":
            return other_leader or after.leader_epoch != before.leader_epoch
        case _:
            return after.leader_epoch > before.leader_epoch


def make_followers(setup: Setup, manager: ReplicaManager, changes: Changes, now: int) -> Transition:
    """ReplicaManager#makeFollowers, the ordered steps: roles, fetchers stop, what waits is completed, fetchers start."""
    restarted: list[TopicPartition] = []
    errors: Table[TopicPartition, int] = Table()
    for tp, change in changes.items():
        errors = errors.put(tp, KAFKA_STORAGE_ERROR if tp in manager.broken else NONE)
        before = _partition(setup, manager, tp)
        if tp in manager.broken:
            manager = mark_offline(manager, tp)
        elif change.leader not in manager.live:
            manager = with_partition(manager, tp, online(manager, tp) or before)
        else:
            manager, restarts = _make_follower(setup, manager, tp, before, change)
            restarted += [tp] if restarts else []
    fetchers, _ = fetchers_.remove_fetcher_for_partitions(manager.fetchers, frozenset(restarted))
    manager = manager._replace(fetchers=fetchers)
    for tp in restarted:
        manager = purgatory.check_when_not_leader(setup, manager, tp, now)
    if not manager.shutting_down:
        manager = _start_fetchers(setup, manager, tuple(restarted))
    return Transition(manager, tuple(restarted), errors)


def _make_follower(
    setup: Setup, manager: ReplicaManager, tp: TopicPartition, before: Partition, change: PartitionChange
) -> tuple[ReplicaManager, bool]:
    after, _ = partition_.make_follower(before, change.leader, change.leader_epoch, change.partition_epoch)
    if after is before:
        return manager, False  # an older partition epoch
    return with_partition(manager, tp, after), restarts_fetcher(setup, before, after)


def _start_fetchers(setup: Setup, manager: ReplicaManager, tps: tuple[TopicPartition, ...]) -> ReplicaManager:
    added: dict[TopicPartition, InitialFetchState] = {}
    for tp in tps:
        hosted = manager.hosted[tp]
        leader = manager.live.get(hosted.partition.leader_id)
        if leader is not None:
            offset = fetcher_.initial_fetch_offset(setup, hosted.partition.log)
            added[tp] = InitialFetchState(leader, hosted.partition.leader_epoch, offset, hosted.topic_id)
    fetchers, changed = fetchers_.add_fetcher_for_partitions(setup, manager.fetchers, logs(manager), added)
    return with_logs(manager._replace(fetchers=fetchers), changed)


def stop_partitions(setup: Setup, manager: ReplicaManager, stopped: Table[TopicPartition, bool], now: int) -> ReplicaManager:
    """Stop fetching; where the value is true, the log goes too. ReplicaManager#stopPartitions.

    What waits for a partition that left is completed: nothing will come for it any more.
    """
    fetchers, _ = fetchers_.remove_fetcher_for_partitions(manager.fetchers, frozenset(stopped))
    gone = tuple(tp for tp, deleted in stopped.items() if deleted)
    manager = manager._replace(fetchers=fetchers, hosted=manager.hosted.without(*gone))
    for tp in stopped:
        manager = purgatory.check_when_not_leader(setup, manager, tp, now)
    return manager


# ---------------------------------------------------------------------------------------------------------------------
# KRaft


def apply_delta(setup: Setup, manager: ReplicaManager, changes: Changes, now: int) -> Transition:
    """Every partition whose registration changed. ReplicaManager#applyDelta: deletes, leaders, followers, idle threads.

    No controller or broker epoch is compared: the metadata log has an order. An ISR change alone comes here too. What the
    image has already, by its partition epoch, is no change, whatever the leader has proposed since: TopicDelta#localChanges.
    """
    gone = Table((tp, True) for tp, c in changes.items() if manager.broker_id not in c.replicas and tp in manager.hosted)
    manager = stop_partitions(setup, manager, gone, now)
    mine = [(tp, c) for tp, c in changes.items() if manager.broker_id in c.replicas and _is_news(manager, tp, c)]
    manager = _registered(manager, mine)
    led = make_leaders(setup, manager, Table((tp, c) for tp, c in mine if c.leader == manager.broker_id), now)
    followed = _apply_local_followers(
        setup, led.manager, Table((tp, c) for tp, c in mine if c.leader != manager.broker_id), now
    )
    manager = followed.manager
    manager = manager._replace(fetchers=fetchers_.shutdown_idle_fetcher_threads(manager.fetchers), checkpointing=True)
    errors = Table((*led.errors.items(), *followed.errors.items()))
    return Transition(manager, (*led.changed, *followed.changed), errors)


def _is_news(manager: ReplicaManager, tp: TopicPartition, change: PartitionChange) -> bool:
    hosted = manager.hosted.get(tp)
    return hosted is None or not (hosted.offline or hosted.registered == change.partition_epoch)


def _registered(manager: ReplicaManager, mine: list[tuple[TopicPartition, PartitionChange]]) -> ReplicaManager:
    for tp, change in mine:
        manager = with_partition(manager, tp, online(manager, tp) or Partition(manager.broker_id))
        hosted = manager.hosted[tp]
        hosted = hosted._replace(topic_id=change.topic_id, registered=change.partition_epoch)
        manager = manager._replace(hosted=manager.hosted.put(tp, hosted))
    return manager


def _apply_local_followers(setup: Setup, manager: ReplicaManager, changes: Changes, now: int) -> Transition:
    """ReplicaManager#applyLocalFollowersDelta: fetchers start before what waits is completed, unlike with ZooKeeper."""
    restarted: list[TopicPartition] = []
    stopped: list[TopicPartition] = []
    errors: Table[TopicPartition, int] = Table()
    for tp, change in changes.items():
        errors = errors.put(tp, KAFKA_STORAGE_ERROR if tp in manager.broken else NONE)
        if tp in manager.broken:
            manager = mark_offline(manager, tp)
            manager = manager._replace(fetchers=fetchers_.mark_failed(manager.fetchers, frozenset({tp})))
            continue
        manager, restarts = _make_follower(setup, manager, tp, _partition(setup, manager, tp), change)
        leaves = change.leader == UNDEFINED or manager.broker_id not in change.isr
        if manager.shutting_down and leaves:
            stopped.append(tp)
        elif restarts:
            restarted.append(tp)
    fetchers, _ = fetchers_.remove_fetcher_for_partitions(manager.fetchers, frozenset((*stopped, *restarted)))
    manager = _start_fetchers(setup, manager._replace(fetchers=fetchers), tuple(restarted))
    for tp in (*stopped, *restarted):
        manager = purgatory.check_when_not_leader(setup, manager, tp, now)
    return Transition(manager, tuple(restarted), errors)

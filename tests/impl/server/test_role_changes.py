"""What metadata makes of a broker: KRaft deltas, and the requests of a ZooKeeper controller."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.impl.brokers import ALL, NOW, OTHER, SETUP, TP, broker, change, leading, responses
from tidegauge.impl.errors import INCONSISTENT_TOPIC_ID, KAFKA_STORAGE_ERROR, STALE_BROKER_EPOCH, STALE_CONTROLLER_EPOCH
from tidegauge.impl.fetch import fetcher_manager as fetchers_
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import ProducedBatch, ProduceResponse
from tidegauge.impl.profiles import FETCH_TRUNCATION, Setup
from tidegauge.impl.replica.partition_state import PartitionState
from tidegauge.impl.rules import FENCED_LEADER_EPOCH, NONE, NOT_LEADER_OR_FOLLOWER, UNDEFINED, UNKNOWN_TOPIC_OR_PARTITION
from tidegauge.impl.server import role_changes as r
from tidegauge.impl.server.client_requests import append_records
from tidegauge.impl.server.replica_manager import (
    ReplicaManager,
    high_watermarks,
    leader_count,
    mark_offline,
    offline_replica_count,
    online_partition,
    partition_count,
    under_replicated_partitions,
    with_partition,
)
from tidegauge.impl.server.role_changes import (
    EPOCH_DURING_DELETE,
    LeaderAndIsrRequest,
    PartitionChange,
    StopReplicaRequest,
    StopReplicaState,
    become_leader_or_follower,
    stop_replicas,
)
from tidegauge.impl.storage.log import Log
from tidegauge.impl.topic_partition import TopicPartition


def delta(
    manager: ReplicaManager, *changes: tuple[TopicPartition, PartitionChange], setup: Setup = SETUP
) -> r.RoleChangeResult:
    return r.apply_delta(setup, manager, FrozenMap(changes), NOW)


def lisr(manager: ReplicaManager, *changes: tuple[TopicPartition, PartitionChange], **given: int) -> ReplicaManager:
    return become_leader_or_follower(SETUP, manager, LeaderAndIsrRequest(9, 1, FrozenMap(changes), **given), NOW)[0]


def test_metadata_that_the_image_has_already_is_no_change() -> None:
    """A leader's own proposal stays, although it would forget it if the same registration reached the partition (F3)."""
    led = delta(broker(TP), (TP, change(1, 2, (1, 2)))).manager
    partition = online_partition(led, TP)
    assert partition is not None
    proposing = with_partition(led, TP, partition._replace(state=PartitionState((1, 2), adding=3)))
    again = delta(proposing, (TP, change(1, 2, (1, 2))))
    assert again.manager == proposing
    newer = delta(proposing, (TP, change(1, 2, (1, 2), partition_epoch=2))).manager
    assert not newer.hosted[TP].partition.state.is_inflight


def errors(manager: ReplicaManager, *changes: tuple[TopicPartition, PartitionChange], kraft: bool = False) -> list[int]:
    request = LeaderAndIsrRequest(9, 1, FrozenMap(changes), kraft=kraft)
    _, response = become_leader_or_follower(SETUP, manager, request, NOW)
    return list(response.errors.values())


def epoch_of(manager: ReplicaManager, tp: TopicPartition = TP) -> int:
    partition = online_partition(manager, tp)
    assert partition is not None
    return partition.leader_epoch


# KRaft


def test_a_delta_makes_leaders_and_followers_and_forgets_the_rest() -> None:
    """New partitions get a log; one this broker is no replica of any more is deleted."""
    start = broker(TP)
    gone = TopicPartition("gone", 0)
    after = delta(
        delta(start, (gone, change(1, 0))).manager,
        (TP, change(1, 2)),
        (OTHER, change(2, 4)),
        (gone, change(2, 1, partition_epoch=2)._replace(replicas=(2, 3))),
    )
    assert set(after.manager.hosted) == {TP, OTHER}
    assert list(after.errors.items()) == [(TP, NONE), (OTHER, NONE)]
    assert after.changed == (TP, OTHER)
    assert fetchers_.thread_of(after.manager.fetchers, OTHER) == (2, 0)
    assert fetchers_.thread_of(after.manager.fetchers, TP) is None
    assert after.manager.checkpointing
    assert (leader_count(after.manager), partition_count(after.manager)) == (1, 2)


def test_a_follower_fetches_from_its_log_end_or_truncates_first() -> None:
    """With an epoch cache at the log end, Fetching; an empty one at the high watermark, Truncating."""
    after = delta(broker(TP), (TP, change(2, 4)), (OTHER, change(3, 4))).manager
    known, new = fetchers_.entry_of(after.fetchers, TP), fetchers_.entry_of(after.fetchers, OTHER)
    assert known is not None
    assert new is not None
    assert (known.state.fetch_offset, known.state.truncating, known.state.current_leader_epoch) == (10, False, 4)
    assert (new.state.fetch_offset, new.state.truncating) == (0, True)


def test_a_leader_that_is_deposed_by_a_dead_leader_steps_down() -> None:
    """KRaft: it follows nobody, and fetches when the leader is back in a newer epoch."""
    led = leading()
    for leader in (UNDEFINED, 7):
        after = delta(led, (TP, change(leader, 3, partition_epoch=2))).manager
        partition = online_partition(after, TP)
        assert partition is not None
        assert (partition.leader_id, partition.leader_epoch) == (leader, 3)
        assert not after.fetchers.threads


def test_an_isr_change_alone_restarts_no_fetcher() -> None:
    """The leader epoch did not grow: the entry keeps its place, the partition epoch is new."""
    before = delta(broker(TP), (TP, change(2, 4))).manager
    after = delta(before, (TP, change(2, 4, (2, 3), 2)))
    assert after.manager.fetchers == before.fetchers
    assert after.changed == ()
    partition = online_partition(after.manager, TP)
    assert partition is not None
    assert partition.partition_epoch == 2
    older = delta(after.manager, (TP, change(3, 5, partition_epoch=1)))
    assert older.manager.hosted[TP].partition == after.manager.hosted[TP].partition


def test_a_broker_that_shuts_down_stops_fetching_what_it_left() -> None:
    """Out of the ISR, or without a leader; as a member it goes on."""
    before = delta(broker(TP), (TP, change(2, 4)))
    leaving = before.manager._replace(shutting_down=True)
    assert fetchers_.entry_of(delta(leaving, (TP, change(2, 4, (2, 3), 2))).manager.fetchers, TP) is None
    assert fetchers_.entry_of(delta(leaving, (TP, change(UNDEFINED, 5, ALL, 2))).manager.fetchers, TP) is None
    assert fetchers_.entry_of(delta(leaving, (TP, change(3, 5, ALL, 2))).manager.fetchers, TP) is not None


def test_a_broken_log_directory_takes_its_partition_offline() -> None:
    """The follower is failed too; the next delta leaves it alone."""
    manager = broker(TP)._replace(broken=frozenset({TP, OTHER}))
    after = delta(manager, (TP, change(1, 2)), (OTHER, change(2, 2)))
    assert list(after.errors.values()) == [KAFKA_STORAGE_ERROR] * 2
    assert after.manager.fetchers.failed == {OTHER}
    assert offline_replica_count(after.manager) == 2
    assert list(delta(after.manager, (TP, change(1, 3, partition_epoch=2))).errors) == []
    assert high_watermarks(after.manager) == FrozenMap()


def test_what_waits_is_answered_when_the_leader_steps_down() -> None:
    """A produce with acks=all: NOT_LEADER_OR_FOLLOWER."""
    waiting = append_records(SETUP, leading(), 7, -1, 1000, FrozenMap([(TP, ProducedBatch(1))]), NOW)
    (response,) = responses(delta(waiting, (TP, change(2, 3, partition_epoch=2))).manager)
    assert isinstance(response, ProduceResponse)
    assert response.responses[TP].error == NOT_LEADER_OR_FOLLOWER


def test_a_leader_alone_commits_its_tail_and_answers() -> None:
    """makeLeader moves the high watermark, which completes what waits."""
    waiting = append_records(SETUP, leading(), 7, -1, 1000, FrozenMap([(TP, ProducedBatch(1))]), NOW)
    after = delta(waiting, (TP, change(1, 2, (1,), 2))).manager
    assert len(responses(after)) == 1
    assert high_watermarks(after)[TP] == 11
    assert under_replicated_partitions(after) == 1


@pytest.mark.parametrize(
    ("rule_", "expected"),
    [
        ("leader", [False, False, False, True]),
        ("leader-or-jump", [False, False, True, True]),
        ("leader-or-epoch", [False, True, True, True]),
        ("epoch", [False, True, True, False]),
    ],
)
def test_what_restarts_a_fetcher_changed_over_the_releases(rule_: str, expected: list[bool]) -> None:
    """The same change; the next epoch of the same leader; one epoch missed (KAFKA-7164); another leader, same epoch."""
    setup = Setup(profile=FETCH_TRUNCATION._replace(fetcher_restart=rule_))
    before = delta(broker(TP), (TP, change(2, 4))).manager
    changes = [change(2, 4, ALL, 2), change(2, 5, ALL, 2), change(2, 6, ALL, 2), change(3, 4, ALL, 2)]
    assert [TP in delta(before, (TP, c), setup=setup).changed for c in changes] == expected


def test_before_kafka_13790_older_metadata_was_taken_over() -> None:
    """There was no partition epoch to compare."""
    setup = Setup(profile=FETCH_TRUNCATION._replace(guards_partition_epoch=False))
    before = delta(broker(TP), (TP, change(2, 4, ALL, 5))).manager
    assert epoch_of(delta(before, (TP, change(2, 6, ALL, 4))).manager) == 4
    assert epoch_of(delta(before, (TP, change(2, 6, ALL, 4)), setup=setup).manager) == 6


# ZooKeeper


def test_a_stale_sender_is_refused_as_a_whole() -> None:
    """Its broker epoch first, then its controller epoch; an unknown or newer broker epoch passes."""
    manager = broker(TP)._replace(controller_epoch=5)
    states = FrozenMap([(TP, change(1, 2))])

    def error(controller_epoch: int, broker_epoch: int) -> int:
        request = LeaderAndIsrRequest(9, controller_epoch, states, broker_epoch)
        after, response = become_leader_or_follower(SETUP, manager, request, NOW)
        assert response.error == NONE or after == manager
        return response.error

    assert [error(4, 10), error(4, 11), error(5, 11), error(6, 12), error(6, UNDEFINED)] == [
        STALE_BROKER_EPOCH,
        STALE_CONTROLLER_EPOCH,
        NONE,
        NONE,
        NONE,
    ]


def test_each_partition_is_judged_in_kafkas_order() -> None:
    """Offline; topic id; epoch; whether this broker is a replica."""
    tps = [TopicPartition("t", n) for n in range(6)]
    manager = lisr(broker(), *((tp, change(2, 4)._replace(topic_id="x")) for tp in tps))
    manager = mark_offline(manager, tps[0])
    elsewhere = change(2, 5, partition_epoch=2)._replace(replicas=(2, 3))
    assert errors(
        manager,
        (tps[0], change(1, 5)._replace(topic_id="y")),
        (tps[1], elsewhere._replace(topic_id="y")),
        (tps[2], elsewhere),
        (tps[3], change(1, 3)),
        (tps[4], change(1, 4)._replace(topic_id="x")),
        (tps[5], change(1, 5, partition_epoch=2)),
    ) == [
        KAFKA_STORAGE_ERROR,
        INCONSISTENT_TOPIC_ID,
        UNKNOWN_TOPIC_OR_PARTITION,
        STALE_CONTROLLER_EPOCH,
        STALE_CONTROLLER_EPOCH,
        NONE,
    ]


def test_the_same_epoch_again_is_stale_unless_it_brings_a_topic_id_or_kraft_sends_it() -> None:
    """A topic id reaches log and fetcher; state and epoch stay."""
    before = lisr(broker(), (TP, change(2, 4)))
    assert errors(before, (TP, change(2, 4))) == [STALE_CONTROLLER_EPOCH]
    assert errors(before, (TP, change(2, 4)), kraft=True) == [NONE]
    after = lisr(before, (TP, change(2, 4)._replace(topic_id="new")))
    entry = fetchers_.entry_of(after.fetchers, TP)
    assert entry is not None
    assert (after.hosted[TP].topic_id, entry.topic_id) == ("new", "new")
    assert errors(after, (TP, change(2, 4))) == [NONE]


def test_a_refused_partition_is_hosted_from_then_on() -> None:
    """Kafka makes the object before it looks at the replicas."""
    after = lisr(broker(), (TP, change(2, 4)._replace(replicas=(2, 3))))
    assert epoch_of(after) == UNDEFINED
    assert after.controller_epoch == 1


def test_a_dead_leader_changes_nothing_but_makes_the_log() -> None:
    """The response is NONE, no fetcher starts, and the old role stays: with ZooKeeper a leader does not step down."""
    led = leading(OTHER)
    after, response = become_leader_or_follower(
        SETUP,
        led,
        LeaderAndIsrRequest(9, 1, FrozenMap([(TP, change(7, 4)), (OTHER, change(7, 4, partition_epoch=2))])),
        NOW,
    )
    assert list(response.errors.values()) == [NONE, NONE]
    assert not after.fetchers.threads
    partition = online_partition(after, OTHER)
    assert partition is not None
    assert partition.is_leader
    assert (epoch_of(after), epoch_of(after, OTHER)) == (UNDEFINED, 2)


def test_a_broker_that_shuts_down_becomes_follower_and_fetches_nothing() -> None:
    """makeFollowers leaves out the last step."""
    after = lisr(broker(TP)._replace(shutting_down=True), (TP, change(2, 4)))
    assert epoch_of(after) == 4
    assert not after.fetchers.threads


def test_leaders_stop_fetching_and_idle_threads_stop() -> None:
    """The response says who changed role."""
    before = lisr(broker(TP), (TP, change(2, 4)))
    request = LeaderAndIsrRequest(9, 1, FrozenMap([(TP, change(1, 5, partition_epoch=2))]))
    after, response = become_leader_or_follower(SETUP, before, request, NOW)
    assert not after.fetchers.threads
    assert (response.leaders, response.followers) == ((TP,), ())
    again = LeaderAndIsrRequest(9, 1, FrozenMap([(TP, change(1, 6, (1, 2), 3))]))
    assert become_leader_or_follower(SETUP, after, again, NOW)[1].leaders == ()


def test_a_storage_error_is_answered_for_its_partition() -> None:
    """As leader and as follower; the other partitions go on."""
    broken = broker(TP)._replace(broken=frozenset({TP, OTHER}))
    fine = TopicPartition("fine", 0)
    assert errors(broken, (TP, change(1, 2)), (OTHER, change(2, 2)), (fine, change(2, 2))) == [
        KAFKA_STORAGE_ERROR,
        KAFKA_STORAGE_ERROR,
        NONE,
    ]


def test_stop_replica_compares_epochs_unless_the_topic_is_deleted() -> None:
    """An older epoch is fenced, -2 and -1 pass, an unknown partition has nothing to stop."""
    manager = lisr(broker(TP), (TP, change(2, 4)), (OTHER, change(2, 4)))

    def stopped(
        state: StopReplicaState, tp: TopicPartition = TP, on: ReplicaManager = manager
    ) -> tuple[ReplicaManager, int]:
        after, response = stop_replicas(SETUP, on, StopReplicaRequest(9, 1, FrozenMap([(tp, state)])), NOW)
        return after, response.errors[tp]

    assert stopped(StopReplicaState(3, delete=True)) == (manager, FENCED_LEADER_EPOCH)
    for epoch in (4, 5, EPOCH_DURING_DELETE, UNDEFINED):
        after, error = stopped(StopReplicaState(epoch, delete=True))
        assert (error, list(after.hosted)) == (NONE, [OTHER])
        assert fetchers_.entry_of(after.fetchers, TP) is None
    kept, error = stopped(StopReplicaState(4))
    assert (error, set(kept.hosted)) == (NONE, {TP, OTHER})
    assert stopped(StopReplicaState(4), TopicPartition("none", 0)) == (manager, NONE)
    assert stopped(StopReplicaState(4), TP, mark_offline(manager, TP))[1] == KAFKA_STORAGE_ERROR
    stale = StopReplicaRequest(9, 0, FrozenMap())
    assert stop_replicas(SETUP, manager, stale, NOW)[1].error == STALE_CONTROLLER_EPOCH


class Brokers(RuleBasedStateMachine):
    """Deltas in the order of a metadata log, with one partition that breaks."""

    def __init__(self) -> None:
        super().__init__()
        self.manager = broker()
        self.latest: dict[TopicPartition, PartitionChange] = {}

    @rule(
        tp=st.sampled_from((TP, OTHER)),
        leader=st.sampled_from((UNDEFINED, 1, 2, 3, 7)),
        bumps=st.booleans(),
        isr=st.sets(st.sampled_from(ALL), min_size=1),
    )
    def changes(self, tp: TopicPartition, leader: int, bumps: bool, isr: set[int]) -> None:
        old = self.latest.get(tp, PartitionChange(UNDEFINED, 0, ALL, 0, ALL))
        bumps = bumps or leader != old.leader
        new = PartitionChange(leader, old.leader_epoch + bumps, tuple(sorted(isr)), old.partition_epoch + 1, ALL)
        self.latest[tp] = new
        self.manager = delta(self.manager, (tp, new)).manager

    @rule(tp=st.sampled_from((TP, OTHER)))
    def leaves(self, tp: TopicPartition) -> None:
        old = self.latest.pop(tp, None)
        if old is not None:
            self.manager = delta(self.manager, (tp, old._replace(replicas=(2, 3)))).manager

    @rule()
    def breaks(self) -> None:
        self.manager = self.manager._replace(broken=frozenset({OTHER}))

    @invariant()
    def the_broker_is_what_metadata_says(self) -> None:
        offline = {tp for tp, hosted in self.manager.hosted.items() if hosted.offline}
        assert set(self.manager.hosted) == set(self.latest) | offline
        for tp, change_ in self.latest.items():
            partition = online_partition(self.manager, tp)
            fetches = fetchers_.thread_of(self.manager.fetchers, tp)
            if partition is None:
                assert fetches is None
                continue
            assert (partition.leader_id, partition.leader_epoch) == (change_.leader, change_.leader_epoch)
            assert partition.partition_epoch == change_.partition_epoch
            assert fetches == ((change_.leader, 0) if change_.leader in (2, 3) else None)
            assert isinstance(partition.log, Log)

    @invariant()
    def nobody_fetches_for_nothing(self) -> None:
        assert all(len(thread.entries) for thread in self.manager.fetchers.threads.values())


TestBrokers = Brokers.TestCase

"""Whole brokers and a controller: what was acknowledged stays, whatever is delayed, fenced or elected."""

from collections import Counter

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.impl.brokers import OTHER, broker
from tidegauge.impl.controller.brokers import broker_fenced, broker_unfenced
from tidegauge.impl.controller.partition_registration import PartitionRegistration
from tidegauge.impl.controller.replay import replay_records
from tidegauge.impl.controller.replication_control import (
    AlterPartition,
    BrokerRegistration,
    Proposal,
    ReplicationControl,
    alter_partition,
)
from tidegauge.impl.fetch import fetch_session as s
from tidegauge.impl.fetch import fetcher_manager as fetchers_
from tidegauge.impl.fetch import fetcher_thread as t
from tidegauge.impl.fetch.fetch_session import FetchSessionCache, FetchSessionHandler, SessionFetch
from tidegauge.impl.fetch.fetcher_thread import BrokerEndPoint, FetcherThread, PartitionResponse
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import (
    BrokerState,
    FetchedPartitions,
    FetchParams,
    FetchRequest,
    ListOffsets,
    PartitionFetch,
    PartitionRead,
    ProducedBatch,
    ProduceResponse,
)
from tidegauge.impl.profiles import REPAIRED, Setup
from tidegauge.impl.replica import partition as partition_
from tidegauge.impl.replica.partition_state import Partition
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.impl.server import purgatory
from tidegauge.impl.server.client_requests import append_records, fetch_messages
from tidegauge.impl.server.replica_manager import (
    ReplicaManager,
    follower_fetch,
    follower_params,
    online_logs,
    online_partition,
    take_responses,
    with_partition,
)
from tidegauge.impl.server.role_changes import PartitionChange, apply_delta
from tidegauge.impl.storage.log import Log
from tidegauge.impl.topic_partition import TopicPartition

SETUP = Setup(profile=REPAIRED, replica_lag_time_max_ms=1000)
TP = TopicPartition("t", 0)
ALL = (1, 2, 3)
BROKERS = st.sampled_from(ALL)


def epoch_at(log: Log, offset: int) -> int:
    return next((b.epoch for b in log.batches if b.base <= offset <= b.last), UNDEFINED)


class Together(RuleBasedStateMachine):
    """Metadata reaches each broker when it does; a fetch is one pass of one thread; time goes on in steps.

    A leader has room for one fetch session, so two followers take it from each other.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now, self.requests = 1_000_000, 0
        self.control = ReplicationControl(
            FrozenMap((b, BrokerRegistration(10 + b)) for b in ALL), FrozenMap([(TP, PartitionRegistration(ALL, ALL, 1))])
        )
        self.managers = {b: ReplicaManager(b, broker_epoch=10 + b) for b in ALL}
        self.handlers: dict[tuple[int, fetchers_.BrokerIdAndFetcherId], FetchSessionHandler] = {}
        self.sessions = {b: FetchSessionCache(max_entries=1) for b in ALL}
        self.acknowledged: dict[int, int] = {}
        self.answered: Counter[int] = Counter()
        self.asked: set[int] = set()
        for b in ALL:
            self.publish(b)

    def partition(self, b: int) -> Partition:
        return online_partition(self.managers[b], TP) or Partition(b)

    def becomes(self, b: int, manager: ReplicaManager) -> None:
        manager, responses = take_responses(manager)
        self.managers[b] = manager
        for received in responses:
            if not isinstance(received, ProduceResponse):
                continue
            self.answered[received.request] += 1
            response = received.responses[TP]
            if response.error == NONE:
                offset = response.base_offset
                self.acknowledged[offset] = epoch_at(self.partition(b).log, offset)

    @rule(b=BROKERS)
    def publish(self, b: int) -> None:
        """The metadata of now reaches a broker, several changes in one."""
        registered = self.control.partitions[TP]
        manager = self.managers[b]._replace(
            metadata=tuple(BrokerState(n, fenced=r.fenced, epoch=r.epoch) for n, r in self.control.brokers.items()),
            live=FrozenMap((n, BrokerEndPoint(n)) for n in ALL),
        )
        if TP in manager.hosted and registered.partition_epoch <= self.partition(b).partition_epoch:
            self.managers[b] = manager
            return
        change = PartitionChange(registered.leader, registered.leader_epoch, registered.isr, registered.partition_epoch, ALL)
        self.becomes(b, apply_delta(SETUP, manager, FrozenMap([(TP, change)]), self.now).manager)

    @rule(b=BROKERS, records=st.integers(1, 3))
    def produce(self, b: int, records: int) -> None:
        self.requests += 1
        self.asked.add(self.requests)
        batch = FrozenMap([(TP, ProducedBatch(records))])
        self.becomes(b, append_records(SETUP, self.managers[b], self.requests, -1, 5000, batch, self.now))

    @rule(b=BROKERS)
    def fetch(self, b: int) -> None:
        """One pass of each fetcher thread: truncate, ask, process."""
        for key, thread in self.managers[b].fetchers.threads.items():
            manager = self.managers[b]
            none: FrozenMap[TopicPartition, t.EpochEndOffset] = FrozenMap()
            done = t.maybe_truncate(SETUP, thread, online_logs(manager), FrozenMap(), none, self.now, 100)
            asked = t.build_fetch(done.thread, done.logs, b, self.now, broker_epoch=10 + b)
            session, request = s.build_session_fetch(
                self.handlers.get((b, key), FetchSessionHandler()), follower_fetch(manager, asked)
            )
            if request is not None:
                session, responses = self.serve(key[0], session, request, manager)
                in_session = FrozenMap((tp, fetch.request) for tp, fetch in session.partitions.items())
                done = t.process_fetch_response(SETUP, done.thread, done.logs, in_session, responses, self.now, 100)
            self.handlers[b, key] = session
            manager = manager._replace(fetchers=fetchers_.after_pass(manager.fetchers, key, done))
            self.becomes(b, purgatory.with_fetched_logs(SETUP, manager, done.logs, self.now))

    def serve(
        self, leader: int, session: FetchSessionHandler, request: SessionFetch, manager: ReplicaManager
    ) -> tuple[FetchSessionHandler, FrozenMap[TopicPartition, PartitionResponse]]:
        """A fetch in its session: what the leader has nothing new to say about is not in the response."""
        self.requests += 1
        self.sessions[leader], context = s.new_context(self.sessions[leader], request, self.now)
        reads: FrozenMap[TopicPartition, PartitionRead] = FrozenMap()
        if context.error == NONE:
            params = follower_params(manager)._replace(max_wait_ms=0)
            serving = fetch_messages(SETUP, self.managers[leader], self.requests, params, context.fetches, self.now)
            (fetched,) = [a for a in serving.answered if isinstance(a, FetchedPartitions)]
            self.becomes(leader, serving)
            reads = fetched.reads
        self.sessions[leader], received = s.update_and_generate_response(
            self.sessions[leader], context, reads, self.now, is_follower=True
        )
        session, taken_over = s.handle_response(session, received)
        log = self.partition(leader).log
        offsets = ListOffsets(log.start, log.end)
        reported = received.reads.items() if taken_over else ()
        return session, FrozenMap((tp, PartitionResponse(read.response, offsets)) for tp, read in reported)

    @rule(b=BROKERS)
    def shrink(self, b: int) -> None:
        if self.partition(b).is_leader:
            self.managers[b] = with_partition(
                self.managers[b], TP, partition_.maybe_shrink_isr(SETUP, self.partition(b), self.now)
            )

    @rule(b=BROKERS)
    def alter_partition(self, b: int) -> None:
        """A pending proposal reaches the controller, and the response the leader."""
        before = self.partition(b)
        if not before.is_leader or not before.state.is_inflight:
            return
        request = partition_.alter_partition_request(before, 10 + b)
        records, result = alter_partition(self.control, AlterPartition(b, 10 + b, (Proposal(TP, request),)))
        assert result.error == NONE
        self.control = replay_records(self.control, records)
        after, _ = partition_.handle_alter_partition_response(
            SETUP, before, before.state, result.responses[0], self.managers[b].metadata, self.now
        )
        manager = with_partition(self.managers[b], TP, after)
        if purgatory.high_watermark_incremented(before, after):
            manager = purgatory.check_all(SETUP, manager, TP, self.now)
        self.becomes(b, manager)

    @rule(b=BROKERS)
    def fence(self, b: int) -> None:
        self.control = replay_records(self.control, broker_fenced(self.control, b))

    @rule(b=BROKERS)
    def unfence(self, b: int) -> None:
        self.control = replay_records(self.control, broker_unfenced(self.control, b))

    @rule(ms=st.sampled_from((1, 500, 2000)))
    def time(self, ms: int) -> None:
        self.now += ms
        for b in ALL:
            self.becomes(b, purgatory.expire_requests(SETUP, self.managers[b], self.now))

    @invariant()
    def the_leader_has_what_was_acknowledged(self) -> None:
        registered = self.control.partitions[TP]
        for b in ALL:
            partition = self.partition(b)
            if partition.is_leader and partition.leader_epoch == registered.leader_epoch:
                held = {offset: epoch_at(partition.log, offset) for offset in self.acknowledged}
                assert held == self.acknowledged

    @invariant()
    def logs_agree_below_both_high_watermarks(self) -> None:
        first, *others = (self.partition(b).log for b in ALL)
        for other in others:
            shared = min(first.hw, other.hw)
            assert [epoch_at(first, o) for o in range(shared)] == [epoch_at(other, o) for o in range(shared)]

    @invariant()
    def every_request_is_answered_at_most_once(self) -> None:
        waiting = {r for m in self.managers.values() for r in m.produces}
        assert all(count == 1 for count in self.answered.values())
        assert self.asked == self.answered.keys() | waiting

    @invariant()
    def one_thread_follows_the_leader(self) -> None:
        for b in ALL:
            partition, thread = self.partition(b), fetchers_.thread_of(self.managers[b].fetchers, TP)
            assert thread in {None, (partition.leader_id, 0)}
            assert not partition.is_leader or thread is None


TestTogether = Together.TestCase


def test_a_record_is_replicated_acknowledged_and_survives_its_leader() -> None:
    """Produce, two passes of each follower, the leader is fenced, the next one has the record."""
    run = Together()
    run.produce(1, 2)
    assert not run.acknowledged
    for _ in range(3):
        run.fetch(2)
        run.fetch(3)
    assert run.acknowledged == {0: 0}
    run.fence(1)
    for b in ALL:
        run.publish(b)
    assert run.partition(2).is_leader
    run.the_leader_has_what_was_acknowledged()
    assert isinstance(run.managers[1].fetchers.threads[2, 0], FetcherThread)
    run.produce(2, 1)
    run.time(2000)
    run.shrink(2)
    run.alter_partition(2)
    for _ in range(3):
        run.fetch(1)
        run.fetch(3)
    assert run.acknowledged == {0: 0, 2: 1}


def test_a_broker_fetches_with_its_own_settings() -> None:
    """maxWait, minBytes, maxBytes for the request, fetchSize and topic id for each partition."""
    given_ = {"replica.fetch.wait.max.ms": 50, "replica.fetch.min.bytes": 3, "replica.fetch.max.bytes": 7}
    manager = broker(OTHER, **given_, **{"replica.fetch.response.max.bytes": 9})
    assert follower_params(manager) == FetchParams(1, 50, 3, 9)
    request = FetchRequest(1, 2, 10, 1)
    assert follower_fetch(manager, FrozenMap([(OTHER, request)])) == FrozenMap([(OTHER, PartitionFetch(request, 7, "id-u"))])


def test_the_machine_notices_a_loss() -> None:
    """A leader that lost its log is not let through."""
    run = Together()
    run.produce(1, 2)
    for _ in range(3):
        run.fetch(2)
        run.fetch(3)
    run.managers[1] = with_partition(run.managers[1], TP, run.partition(1)._replace(log=Log()))
    try:
        run.the_leader_has_what_was_acknowledged()
    except AssertionError:
        return
    raise AssertionError("a lost record was not noticed")

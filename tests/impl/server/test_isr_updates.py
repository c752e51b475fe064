"""ISR proposals of a whole broker, what comes of them, and min.insync.replicas per topic."""

from tests.impl.brokers import NOW, OTHER, SETUP, TP, asked, broker, change, follower, leading, responses
from tidegauge.impl.errors import NOT_ENOUGH_REPLICAS
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import AlterPartitionResponse, FetchedPartitions, FetchParams, ProducedBatch, ProduceResponse
from tidegauge.impl.replica.partition_state import PartitionState
from tidegauge.impl.rules import INELIGIBLE_REPLICA, NONE
from tidegauge.impl.server import purgatory
from tidegauge.impl.server.client_requests import append_records, fetch_messages
from tidegauge.impl.server.replica_manager import (
    IsrUpdates,
    ReplicaManager,
    at_min_isr_partition_count,
    mark_offline,
    online_logs,
    under_min_isr_partition_count,
)
from tidegauge.impl.server.role_changes import handle_isr_response, make_followers, maybe_shrink_isrs
from tidegauge.impl.topic_partition import TopicPartition

LATER = NOW + 60_000


def responded(manager: ReplicaManager, response: AlterPartitionResponse, proposed: PartitionState) -> ReplicaManager:
    return handle_isr_response(SETUP, manager, TP, proposed, response, LATER)[0]


def produced(manager: ReplicaManager, acks: int, tp: TopicPartition = TP) -> ReplicaManager:
    return append_records(SETUP, manager, 7, acks, 1000, FrozenMap([(tp, ProducedBatch(1))]), NOW)


def test_the_periodic_look_proposes_for_every_partition_that_is_online() -> None:
    """Nobody has fetched for longer than replica.lag.time.max.ms."""
    shrinking = maybe_shrink_isrs(SETUP, mark_offline(leading(TP, OTHER), OTHER), LATER)
    assert [hosted.partition.state.removing for hosted in shrinking.hosted.values()] == [(2, 3), ()]


def test_responses_are_counted_while_their_proposal_is_pending() -> None:
    """As shrunk or expanded, or as failed: an error, or a response of another epoch."""
    shrinking = maybe_shrink_isrs(SETUP, leading(), LATER)
    proposed = shrinking.hosted[TP].partition.state
    shrunk = responded(shrinking, AlterPartitionResponse(NONE, 2, 2, (1,)), proposed)
    assert (shrunk.isr_updates, shrunk.hosted[TP].partition.state.isr) == (IsrUpdates(shrinks=1), (1,))
    assert responded(shrunk, AlterPartitionResponse(NONE, 2, 2, (1,)), proposed) == shrunk
    for response in (AlterPartitionResponse(INELIGIBLE_REPLICA), AlterPartitionResponse(NONE, 1, 2, (1,))):
        assert responded(shrinking, response, proposed).isr_updates == IsrUpdates(failed=1)
    expanding = fetch_messages(SETUP, shrunk, 2, follower(2, 0), FrozenMap([(TP, asked(2, 10))]), LATER)
    proposed = expanding.hosted[TP].partition.state
    grown = responded(expanding, AlterPartitionResponse(NONE, 2, 3, (1, 2)), proposed)
    assert grown.isr_updates == IsrUpdates(expands=1, shrinks=1)
    assert responded(mark_offline(expanding, TP), AlterPartitionResponse(NONE), proposed).isr_updates == IsrUpdates(
        shrinks=1
    )


def test_a_shrink_that_is_committed_completes_what_waits() -> None:
    """The high watermark no longer waits for the others."""
    shrinking = maybe_shrink_isrs(SETUP, produced(leading(), -1), LATER)
    proposed = shrinking.hosted[TP].partition.state
    shrunk = responded(shrinking, AlterPartitionResponse(NONE, 2, 2, (1,)), proposed)
    assert [response.request for response in responses(shrunk)] == [7]


def test_a_topic_may_have_a_min_insync_replicas_of_its_own() -> None:
    """The broker's holds for the others."""
    manager = leading(TP, OTHER, isr=(1, 2))._replace(min_insync_replicas=FrozenMap([("t", 3)]))
    for tp, error in ((TP, NOT_ENOUGH_REPLICAS), (OTHER, NONE)):
        answered = produced(manager, -1, tp)
        errors = [a.responses[tp].error for a in responses(answered) if isinstance(a, ProduceResponse)]
        assert errors == ([error] if error else [])
    assert under_min_isr_partition_count(SETUP, manager) == 1
    assert at_min_isr_partition_count(SETUP, manager) == 0
    at_two = manager._replace(min_insync_replicas=FrozenMap([("t", 2)]))
    assert (under_min_isr_partition_count(SETUP, at_two), at_min_isr_partition_count(SETUP, at_two)) == (0, 1)


def test_a_high_watermark_that_a_follower_learns_wakes_the_fetches_that_wait_there() -> None:
    """A consumer in its rack reads from it (KIP-392); a pass that moves nothing wakes nobody."""
    following = make_followers(SETUP, broker(TP), FrozenMap([(TP, change(2, 3))]), NOW).manager
    log = online_logs(following)[TP]._replace(hw=5)
    following = purgatory.with_fetched_logs(SETUP, following, FrozenMap([(TP, log)]), NOW)
    consumer = FetchParams(max_wait_ms=500, rack="a")
    waiting = fetch_messages(SETUP, following, 1, consumer, FrozenMap([(TP, asked(-1, 5, epoch=3))]), NOW)
    assert list(purgatory.with_fetched_logs(SETUP, waiting, FrozenMap([(TP, log)]), NOW).fetches) == [1]
    woken = purgatory.with_fetched_logs(SETUP, waiting, FrozenMap([(TP, log._replace(hw=10))]), NOW)
    (response,) = responses(woken)
    assert isinstance(response, FetchedPartitions)
    assert [batch.base for batch in response.reads[TP].records] == [5]

"""The edges of the ISR's rules that no history of Kafka's own classes reaches."""

import pytest

from tidegauge.impl.errors import NOT_ENOUGH_REPLICAS_AFTER_APPEND
from tidegauge.impl.messages import AlterPartitionResponse, Batch, BrokerState
from tidegauge.impl.profiles import FETCH_TRUNCATION, Setup
from tidegauge.impl.replica import partition as p
from tidegauge.impl.replica.partition_state import Partition, PartitionState
from tidegauge.impl.rules import INELIGIBLE_REPLICA, NONE, NOT_LEADER_OR_FOLLOWER, UNDEFINED
from tidegauge.impl.storage.log import Log, append_as_follower

SETUP = Setup()
ALL = (0, 1, 2)
METADATA = tuple(BrokerState(b, epoch=10 + b) for b in ALL)
NOW = 1_000_000
LOG, _ = append_as_follower(SETUP, Log(), (Batch(0, 4, 0), Batch(5, 9, 1)), 9)


def led(members: tuple[int, ...] = ALL, setup: Setup = SETUP) -> Partition:
    return p.make_leader(setup, Partition(0, LOG), 2, 1, members, ALL, METADATA, NOW)[0]


def with_remote(partition: Partition, broker: int, **changed: object) -> Partition:
    remotes = tuple(r._replace(**changed) if r.broker_id == broker else r for r in partition.remotes)  # type: ignore[arg-type]
    return partition._replace(remotes=remotes)


@pytest.mark.parametrize(
    ("broker", "metadata", "eligible"),
    [
        (1, METADATA, True),
        (3, (*METADATA, BrokerState(3, epoch=13)), False),
        (1, METADATA[2:], False),
        (1, (BrokerState(1, fenced=True, epoch=11),), False),
        (1, (BrokerState(1, shutting_down=True, epoch=11),), False),
        (1, (BrokerState(1, epoch=12),), False),
        (1, (BrokerState(1, epoch=None),), False),
    ],
)
def test_who_may_count_and_join(broker: int, metadata: tuple[BrokerState, ...], eligible: bool) -> None:
    """An assigned replica whose broker is known, unfenced, not shutting down, in the incarnation that fetched."""
    partition = with_remote(led(), 1, broker_epoch=11)
    assert p.is_isr_eligible(SETUP, partition, broker, metadata) is eligible


@pytest.mark.parametrize(("seen", "eligible"), [(None, False), (UNDEFINED, True), (11, True), (10, False)])
def test_the_incarnation_that_fetched_counts(seen: int | None, eligible: bool) -> None:
    """Before the first fetch it is unknown; a fetch of a version without it says -1, which passes (KIP-903)."""
    assert p.is_isr_eligible(SETUP, with_remote(led(), 1, broker_epoch=seen), 1, METADATA) is eligible


@pytest.mark.parametrize(
    ("broker", "epoch", "eligible"), [(1, 11, True), (3, 13, False), (1, None, False), (2, None, False)]
)
def test_before_kip_841_any_alive_replica_was_eligible(broker: int, epoch: int | None, eligible: bool) -> None:
    """Fenced or not, in whatever incarnation, if the metadata cache knew it alive and it was assigned."""
    older = Setup(profile=FETCH_TRUNCATION._replace(eligibility="alive"))
    known = (BrokerState(broker, fenced=True, epoch=epoch),)
    assert p.is_isr_eligible(older, led(), broker, known) is eligible
    assert not p.is_isr_eligible(older, led(), broker, ())


def test_an_unknown_replica_does_not_join() -> None:
    """Only assigned replicas are looked at."""
    partition = led((0,))
    assert p.maybe_expand_isr(SETUP, partition, 7, METADATA) == partition


def test_without_the_epoch_start_the_high_watermark_alone_decides() -> None:
    """KAFKA-7128: before it, a follower with an empty log joined a leader whose high watermark was 0."""
    older = Setup(profile=FETCH_TRUNCATION._replace(join_needs_epoch_start=False, eligibility="alive"))
    fresh = p.make_leader(SETUP, Partition(0, LOG), 2, 1, (0, 1), ALL, METADATA, NOW)[0]
    at_zero = with_remote(fresh, 2, log_end=0, broker_epoch=12)
    assert fresh.log.hw == 0
    assert p.maybe_expand_isr(older, at_zero, 2, METADATA).state.adding == 2
    assert not p.maybe_expand_isr(SETUP, at_zero, 2, METADATA).state.is_inflight
    never_fetched = with_remote(fresh, 2, log_end=UNDEFINED, broker_epoch=12)
    assert not p.maybe_expand_isr(older, never_fetched, 2, METADATA).state.is_inflight
    again = at_zero._replace(epoch_start=UNDEFINED)
    assert p.maybe_expand_isr(older, again, 2, METADATA).state.adding == 2
    assert not p.maybe_expand_isr(SETUP, again, 2, METADATA).state.is_inflight


def test_only_a_leader_finds_anybody_lagging() -> None:
    """A follower knows no other replica's log end."""
    lagging = SETUP._replace(replica_lag_time_max_ms=-1)
    partition = led()
    assert p.out_of_sync_replicas(lagging, partition, NOW) == (1, 2)
    assert p.out_of_sync_replicas(lagging, partition._replace(leader_id=1), NOW) == ()
    assert p.out_of_sync_replicas(lagging, p.prepare_isr_shrink(partition, (2,)), NOW) == ()


def test_a_member_that_is_not_assigned_is_out_of_sync() -> None:
    """After a reassignment the ISR may name a replica the leader no longer has an entry for."""
    partition = led()._replace(state=PartitionState((0, 1, 2, 8)))
    assert p.out_of_sync_replicas(SETUP, partition, NOW) == (8,)


def test_min_isr_is_capped_by_the_replicas_where_it_blocks() -> None:
    """KAFKA-15583: configured above the replication factor it asks for every replica, no more."""
    wide = SETUP._replace(min_insync_replicas=5)
    assert not p.is_under_min_isr(wide, led(ALL, wide))
    assert p.is_under_min_isr(wide, led((0, 1), wide))
    older = wide._replace(profile=FETCH_TRUNCATION._replace(blocks_under_min_isr=False))
    assert p.is_under_min_isr(older, led(ALL, older))


@pytest.mark.parametrize(
    ("members", "hw", "answered"),
    [
        (ALL, 9, (False, NONE)),
        (ALL, 10, (True, NONE)),
        ((0,), 10, (True, NOT_ENOUGH_REPLICAS_AFTER_APPEND)),
    ],
)
def test_a_produce_is_answered_when_the_high_watermark_has_passed_it(
    members: tuple[int, ...], hw: int, answered: tuple[bool, int]
) -> None:
    """Not by log ends; and with an error if the maximal ISR is too small by then."""
    setup = SETUP._replace(min_insync_replicas=2)
    partition = led()._replace(state=PartitionState(members), log=LOG._replace(hw=hw))
    assert p.check_enough_replicas_reach_offset(setup, partition, 10) == answered
    joining = partition._replace(state=PartitionState((0,), adding=1))
    assert p.check_enough_replicas_reach_offset(setup, joining, hw) == (True, NONE)
    follower = partition._replace(leader_id=1)
    assert p.check_enough_replicas_reach_offset(setup, follower, 10) == (False, NOT_LEADER_OR_FOLLOWER)


def test_the_low_watermark_is_that_of_the_replicas_alive() -> None:
    """A broker that is gone does not hold deletions back; one that is fenced does."""
    partition = with_remote(with_remote(led()._replace(log=LOG._replace(start=6)), 1, log_start=2), 2, log_start=4)
    fenced = (BrokerState(1, fenced=True, epoch=11), *METADATA[2:])
    gone = (BrokerState(1, epoch=None), *METADATA[2:])
    assert [p.low_watermark(partition, m) for m in (METADATA, fenced, gone, ())] == [2, 2, 4, 6]


def test_a_response_to_another_proposal_is_dropped() -> None:
    """Metadata was faster: the state is not the proposed one any more."""
    pending = p.prepare_isr_shrink(led(), (2,))
    response = AlterPartitionResponse(NONE, 2, 2, (0, 1))
    moved = led()
    assert p.handle_alter_partition_response(SETUP, moved, pending.state, response, METADATA, NOW) == (moved, False)


def test_a_committed_isr_is_not_asked_for_again() -> None:
    """No resend after a response, whatever it says about other epochs; the state is what the controller has."""
    pending = p.prepare_isr_shrink(led(), (2,))
    response = AlterPartitionResponse(NONE, 2, 2, (0, 1))
    committed, again = p.handle_alter_partition_response(SETUP, pending, pending.state, response, METADATA, NOW)
    assert (committed.state, committed.partition_epoch, again) == (PartitionState((0, 1)), 2, False)
    for stale in (response._replace(leader_epoch=1), response._replace(partition_epoch=0)):
        assert p.handle_alter_partition_response(SETUP, pending, pending.state, stale, METADATA, NOW) == (
            pending,
            False,
        )
    refused = AlterPartitionResponse(INELIGIBLE_REPLICA)
    assert not p.handle_alter_partition_response(SETUP, pending, pending.state, refused, METADATA, NOW)[1]
    older = SETUP._replace(profile=FETCH_TRUNCATION._replace(hw_after_isr_response=False))
    committed, again = p.handle_alter_partition_response(older, pending, pending.state, response, METADATA, NOW)
    assert (committed.state, again) == (PartitionState((0, 1)), False)

"""Roles, fetches, ISR and high watermark at one replica: the behaviours the protocol rests on."""

import pytest

from tidegauge.impl.errors import REQUEST_TIMED_OUT
from tidegauge.impl.messages import (
    AlterPartitionResponse,
    Batch,
    BrokerState,
    FetchRequest,
    FetchResponse,
    Isolation,
    ListedOffset,
    OffsetSpec,
    Producer,
)
from tidegauge.impl.profiles import FETCH_TRUNCATION, KIP320, Setup
from tidegauge.impl.replica import partition as p
from tidegauge.impl.replica.partition_state import Partition, PartitionState
from tidegauge.impl.rules import (
    FENCED_LEADER_EPOCH,
    INELIGIBLE_REPLICA,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    UNDEFINED,
    UNKNOWN_LEADER_EPOCH,
)
from tidegauge.impl.storage.log import Log
from tidegauge.impl.storage.log import append_as_follower as append

SETUP = Setup()
ALL = (0, 1, 2)
METADATA = tuple(BrokerState(b, epoch=10 + b) for b in ALL)
NOW = 1_000_000


def led(epoch: int = 2, members: tuple[int, ...] = ALL, log: Log | None = None, setup: Setup = SETUP) -> Partition:
    if log is None:
        log, _ = append(SETUP, Log(), (Batch(0, 4, 0), Batch(5, 9, 1)), 9)
    partition, _ = p.make_leader(setup, Partition(0, log), epoch, 1, members, ALL, METADATA, NOW)
    return partition


def fetched(partition: Partition, follower: int, offset: int, setup: Setup = SETUP) -> tuple[Partition, FetchResponse]:
    """A fetch of a follower whose last record is of epoch 1, or that stands where the new epoch starts."""
    request = FetchRequest(follower, partition.leader_epoch, offset, UNDEFINED, 0, 10 + follower)
    return p.fetch_records(setup, partition, request, METADATA, NOW, 100)


def test_a_new_leader_marks_its_epoch_and_keeps_its_tail() -> None:
    """Nothing is truncated, and the high watermark waits for every member."""
    partition = led()
    assert (partition.log.end, partition.log.hw, partition.epoch_start) == (10, 0, 10)
    assert partition.log.cache.memory.pairs()[-1] == (2, 10)


def test_a_replica_without_a_log_gets_no_role_and_no_fetcher() -> None:
    """KAFKA-13790: an epoch that grew restarts fetchers, of logs that are there."""
    without = Partition(0, has_log=False)
    assert p.make_leader(SETUP, without, 2, 1, ALL, ALL, METADATA, NOW)[1] is False
    assert [p.make_follower(one, 1, 2, 1)[1] for one in (without, Partition(0))] == [False, True]


@pytest.mark.parametrize(("batches", "epoch"), [((), UNDEFINED), ((Batch(0, 4, 3), Batch(5, 9, 4)), 3)])
def test_an_earliest_offset_has_the_epoch_of_its_cache_entry(batches: tuple[Batch, ...], epoch: int) -> None:
    """UnifiedLog#fetchOffsetByTimestamp. Without records there is none."""
    assert listed(OffsetSpec.EARLIEST, append(SETUP, Log(), batches, 9)[0]) == ListedOffset(NONE, 0, epoch)


def test_the_earliest_local_offset_is_that_of_the_first_segment() -> None:
    """What lies before it is in remote storage. UnifiedLog#fetchOffsetByTimestamp."""
    log, _ = append(SETUP, Log(), (Batch(0, 4, 3), Batch(5, 9, 4)), 9)
    assert listed(OffsetSpec.EARLIEST_LOCAL, log._replace(segments=(0, 5))) == ListedOffset(NONE, 0, 3)
    assert listed(OffsetSpec.EARLIEST_LOCAL, log._replace(segments=(5,))) == ListedOffset(NONE, 5, 4)


def listed(spec: OffsetSpec, log: Log) -> ListedOffset:
    """What a consumer that reads from a follower is told."""
    follower = Partition(0, log, 1, 9)
    return p.fetch_offset_for_timestamp(SETUP, follower, spec, UNDEFINED, Isolation.HIGH_WATERMARK, only_leader=False)


def test_only_a_leader_is_at_the_minimum_of_its_isr() -> None:
    """Partition#isAtMinIsr: a follower remembers no ISR to count."""
    setup = SETUP._replace(min_insync_replicas=2)
    counts = [p.is_at_min_isr(setup, led(members=members, setup=setup)) for members in ((0,), (0, 1), ALL)]
    assert counts == [False, True, False]
    assert not p.is_at_min_isr(setup, Partition(0, state=PartitionState((0,))))


def test_a_batch_that_is_sent_again_is_no_batch_appended() -> None:
    """UnifiedLog#append leaves the log alone, and says where the batch stands."""
    once, error, first = p.append_records_to_leader(SETUP, led(), 2, 1, METADATA, NOW, producer=Producer(7, 0, 0))
    twice, again, info = p.append_records_to_leader(SETUP, once, 2, 1, METADATA, NOW, producer=Producer(7, 0, 0))
    assert (error, again, first.batches, twice.log) == (NONE, NONE, 1, once.log)
    assert info == first._replace(batches=0)


def test_a_leader_alone_in_the_isr_commits_its_tail_at_once() -> None:
    """ISR = {self}: the high watermark jumps to the log end, unless that is under min ISR."""
    assert led(members=(0,)).log.hw == 10
    assert led(members=(0,), setup=SETUP._replace(min_insync_replicas=2)).log.hw == 0
    older = SETUP._replace(min_insync_replicas=2, profile=FETCH_TRUNCATION._replace(blocks_under_min_isr=False))
    assert led(members=(0,), setup=older).log.hw == 10


def test_older_metadata_is_skipped_and_equal_metadata_is_not() -> None:
    """Only a lower partition epoch is refused: an equal one still erases a pending proposal (finding F3)."""
    pending = p.prepare_isr_shrink(led(), (2,))
    older, _ = p.make_leader(SETUP, pending, 2, 0, ALL, ALL, METADATA, NOW)
    assert older == pending
    equal, _ = p.make_leader(SETUP, pending, 2, 1, ALL, ALL, METADATA, NOW)
    assert not equal.state.is_inflight


def test_a_follower_takes_equal_metadata_and_restarts_only_for_a_new_epoch() -> None:
    """KAFKA-13790: an ISR change is a new partition epoch of the same leader epoch; older metadata changes nothing."""
    follower, grew = p.make_follower(led(), 1, 3, 2)
    assert (follower.leader_id, follower.leader_epoch, grew) == (1, 3, True)
    assert p.make_follower(follower, 2, 3, 2) == (follower._replace(leader_id=2), False)
    assert p.make_follower(follower, 2, 4, 1) == (follower, False)


def test_before_truncation_on_fetch_a_leader_does_not_look_at_the_last_fetched_epoch() -> None:
    """It came with Fetch version 12; a leader of KIP-320 reads."""
    request = FetchRequest(1, 2, 5, 0)
    responses = [p.fetch_records(s, led(setup=s), request, METADATA, NOW, 9)[1] for s in (SETUP, Setup(profile=KIP320))]
    assert [a.records for a in responses] == [(Batch(5, 9, 1),), (Batch(5, 9, 1),)]
    request = FetchRequest(1, 2, 7, 0)
    responses = [p.fetch_records(s, led(setup=s), request, METADATA, NOW, 9)[1] for s in (SETUP, Setup(profile=KIP320))]
    assert [a.is_diverging for a in responses] == [True, False]


def test_a_leader_that_is_elected_again_keeps_recorded_ends_unless_that_is_repaired() -> None:
    """Finding F2: the ends recorded in an earlier epoch still count, in every release up to 4.3.1."""
    partition, _ = fetched(led(), 1, 10)
    again, _ = p.make_leader(SETUP, partition, 4, 2, ALL, ALL, METADATA, NOW)
    assert [r.log_end for r in again.remotes] == [10, UNDEFINED]
    repaired = Setup(profile=FETCH_TRUNCATION._replace(keeps_remote_leo=False))
    reset, _ = p.make_leader(repaired, partition, 4, 2, ALL, ALL, METADATA, NOW)
    assert [r.log_end for r in reset.remotes] == [UNDEFINED, UNDEFINED]


def test_records_are_deleted_up_to_the_high_watermark() -> None:
    """At the leader; -1 stands for the high watermark. What was asked for is told back where it was found out."""
    partition = led(members=(0,))
    for offset, start in ((7, 7), (UNDEFINED, 10), (0, 0)):
        deleted, error, requested = p.delete_records(SETUP, partition, offset)
        assert (deleted.log.start, error, requested) == (start, NONE, start)
    for offset in (11, -2):
        assert p.delete_records(SETUP, partition, offset) == (partition, OFFSET_OUT_OF_RANGE, offset)
    follower, _ = p.make_follower(partition, 1, 3, 2)
    assert p.delete_records(SETUP, follower, 7) == (follower, NOT_LEADER_OR_FOLLOWER, UNDEFINED)


def test_a_response_carries_the_high_watermark_from_before_the_fetch() -> None:
    """A follower learns what its own fetch did one response later."""
    partition, _ = fetched(led(members=(0, 1)), 1, 10)
    assert partition.log.hw == 10
    _, response = fetched(led(members=(0, 1)), 1, 10)
    assert response.hw == 0


def test_a_diverging_fetch_is_not_counted() -> None:
    """KAFKA-13141: the leader's view of the follower stays as it was."""
    partition = led()
    request = FetchRequest(1, 2, 8, 0, 0, 11)
    after, response = p.fetch_records(SETUP, partition, request, METADATA, NOW, 100)
    assert (response.diverging_epoch, response.diverging_end) == (0, 5)
    assert after == partition


def test_epochs_are_compared_before_leadership() -> None:
    """Older is fenced, newer unknown, equal at a follower is not leader."""
    follower, _ = p.make_follower(led(), 1, 3, 2)
    errors = [
        p.fetch_records(SETUP, follower, FetchRequest(2, epoch, 0, UNDEFINED), METADATA, NOW, 1)[1].error
        for epoch in (2, 3, 4, UNDEFINED)
    ]
    assert errors == [FENCED_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER]


def test_a_broker_that_is_not_assigned_is_an_unknown_epoch() -> None:
    """With an epoch in its request; without one it is told to look elsewhere."""
    errors = [
        p.fetch_records(SETUP, led(), FetchRequest(7, epoch, 0, UNDEFINED), METADATA, NOW, 1)[1].error
        for epoch in (2, UNDEFINED)
    ]
    assert errors == [UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER]


def test_a_fetch_of_an_older_incarnation_is_refused_and_changes_nothing() -> None:
    """KIP-903: its broker epoch is below the one in the metadata cache."""
    partition = led()
    request = FetchRequest(1, 2, 10, UNDEFINED, 0, replica_epoch=3)
    assert p.fetch_records(SETUP, partition, request, METADATA, NOW, 1) == (
        partition,
        FetchResponse(NOT_LEADER_OR_FOLLOWER),
    )


def test_a_follower_joins_at_the_epoch_start_not_at_the_high_watermark() -> None:
    """KAFKA-7128: at offset 5 it has passed the high watermark, but not what an earlier leader may have committed."""
    partition = led(members=(0, 2))
    below, _ = fetched(partition, 1, 5)
    assert not below.state.is_inflight
    reached, _ = fetched(partition, 1, 10)
    assert reached.state == PartitionState((0, 2), adding=1)
    older = Setup(profile=FETCH_TRUNCATION._replace(join_needs_epoch_start=False))
    assert fetched(partition, 1, 5, older)[0].state.adding == 1


def test_an_expansion_holds_the_high_watermark_at_once_and_a_shrink_late() -> None:
    """The maximal ISR decides while a proposal is pending."""
    joining, _ = fetched(led(members=(0,)), 1, 10)
    written, _, _ = p.append_records_to_leader(SETUP, joining, 3, 1, METADATA, NOW + 40_000)
    assert (joining.log.hw, written.log.hw) == (10, 10)
    partition, _ = fetched(led(members=(0, 1)), 1, 5)
    shrinking = p.maybe_shrink_isr(SETUP, partition, NOW + 40_000)
    assert shrinking.state.proposed_isr == (0,)
    assert p.maybe_increment_leader_hw(SETUP, shrinking, METADATA, NOW + 40_000).log.hw == 5


def test_the_controllers_response_commits_or_takes_back() -> None:
    """Committed raises the high watermark; a fenced member takes the proposal back; metadata errors wait."""
    partition, _ = fetched(led(members=(0, 1)), 1, 5)
    shrinking = p.maybe_shrink_isr(SETUP, partition, NOW + 40_000)
    done = AlterPartitionResponse(NONE, 2, 2, (0,))
    committed, again = p.handle_alter_partition_response(SETUP, shrinking, shrinking.state, done, METADATA, NOW + 80_000)
    assert (committed.state, committed.log.hw, again) == (PartitionState((0,)), 10, False)
    refused = AlterPartitionResponse(INELIGIBLE_REPLICA)
    back, again = p.handle_alter_partition_response(SETUP, shrinking, shrinking.state, refused, METADATA, NOW)
    assert (back.state, again) == (PartitionState((0, 1)), False)
    for error, again in ((FENCED_LEADER_EPOCH, False), (REQUEST_TIMED_OUT, True)):
        response = AlterPartitionResponse(error)
        after = p.handle_alter_partition_response(SETUP, shrinking, shrinking.state, response, METADATA, NOW)
        assert after == (shrinking, again)

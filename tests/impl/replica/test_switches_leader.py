"""What each switch of a profile changes at a leader."""

import pytest

from tests.impl.brokers import NOW, TP, asked, follower, leading, responses
from tests.impl.switches import METADATA, TODAY, fetched, led, without, written
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import AlterPartitionResponse, BrokerState, FetchRequest
from tidegauge.impl.replica import partition as p
from tidegauge.impl.replica.partition_state import PartitionState
from tidegauge.impl.rules import NONE, NOT_LEADER_OR_FOLLOWER, OFFSET_OUT_OF_RANGE, UNDEFINED
from tidegauge.impl.server.client_requests import fetch_messages


def test_an_epoch_response_once_had_no_epoch() -> None:
    """KIP-101 gave the end alone."""
    responses_ = [p.last_offset_for_leader_epoch(s, led(s), 2, 0) for s in (TODAY, without(epoch_in_response=False))]
    assert responses_ == [(NONE, 0, 5), (NONE, UNDEFINED, 5)]


def test_out_of_range_was_once_tested_after_divergence() -> None:
    """KAFKA-12996: a follower below the log start was sent to truncate, and failed on the log start that came along."""
    leader = led(TODAY)
    low = leader._replace(log=leader.log._replace(start=7, hw=10))
    request = FetchRequest(1, 2, 6, 0)
    results = [p.fetch_records(s, low, request, METADATA, NOW, 9)[1] for s in (TODAY, without(out_of_range_first=False))]
    assert [r.error for r in results] == [OFFSET_OUT_OF_RANGE, NONE]
    assert results[1].is_diverging
    below = p.fetch_records(without(out_of_range_first=False), low, request._replace(last_fetched_epoch=1), METADATA, NOW, 9)
    assert below[1].error == OFFSET_OUT_OF_RANGE


def test_a_fetch_at_the_first_offset_is_in_range_and_one_below_is_not() -> None:
    """In every release, also with an epoch that this leader never had."""
    gap = led(TODAY, written((0, 4, 0), (5, 9, 3)), epoch=5)
    for setup in (TODAY, without(out_of_range_first=False)):
        results = [
            p.fetch_records(setup, gap, FetchRequest(1, 5, offset, last), METADATA, NOW, 9)[1]
            for offset, last in ((0, UNDEFINED), (0, 2), (-1, 2))
        ]
        assert [(r.error, r.is_diverging) for r in results] == [(NONE, False), (NONE, True), (OFFSET_OUT_OF_RANGE, False)]


def test_a_fetch_inside_a_batch_counts_as_far_as_the_batchs_base() -> None:
    """KAFKA-17803: since 4.0 it is what the look-up found; before, what was asked."""
    ends = [fetched(s, led(s), 7).remotes[0].log_end for s in (TODAY, without(hw_rounded_to_batches=False))]
    assert ends == [5, 7]


def test_a_stale_incarnation_was_once_heard() -> None:
    """KIP-903."""
    fetch = FetchRequest(1, 2, 10, UNDEFINED, 0, 3)
    errors = [
        p.fetch_records(s, led(s), fetch, METADATA, NOW, 9)[1].error for s in (TODAY, without(rejects_stale_fetch=False))
    ]
    assert errors == [NOT_LEADER_OR_FOLLOWER, NONE]


@pytest.mark.parametrize(
    ("eligibility", "joins"), [("alive", [True, True]), ("unfenced", [False, True]), ("incarnation", [False, False])]
)
def test_who_may_join_the_isr_grew_stricter(eligibility: str, joins: list[bool]) -> None:
    """A fenced broker; one whose incarnation the leader has not seen."""
    setup = without(eligibility=eligibility)
    known = led(setup, members=(0,))
    fenced = (BrokerState(1, fenced=True, epoch=11),)
    other = (BrokerState(1, epoch=50),)
    partition = fetched(setup, known, 8)
    assert [p.is_isr_eligible(setup, partition, 1, m) for m in (fenced, other)] == joins
    assert not p.is_isr_eligible(setup, partition, 9, METADATA)
    assert not p.is_isr_eligible(setup, partition, 1, ())


def test_min_isr_was_once_not_capped_by_the_replicas() -> None:
    """Configured above the replication factor, nobody could produce with acks=all."""
    for blocks, under in ((True, False), (False, True)):
        setup = without(blocks_under_min_isr=blocks)._replace(min_insync_replicas=5)
        assert p.is_under_min_isr(setup, led(setup, members=(0, 1, 2))) is under


def test_a_pending_expansion_once_did_not_hold_the_high_watermark_back() -> None:
    """Before the maximal ISR of 2.7."""
    for counts, hw in ((True, 5), (False, 10)):
        setup = without(counts_maximal_isr=counts)
        pending = led(setup, members=(0,))._replace(state=PartitionState((0,), adding=1))
        remotes = tuple(r._replace(log_end=5) for r in pending.remotes)
        pending = pending._replace(remotes=remotes, log=pending.log._replace(hw=5))
        assert p.maybe_increment_leader_hw(setup, pending, METADATA, NOW + 60_000).log.hw == hw


def test_a_fenced_replica_once_held_the_high_watermark_back() -> None:
    """KAFKA-15021: outside the ISR, caught up a moment ago, not eligible."""
    fenced = (BrokerState(1, fenced=True, epoch=11), *METADATA[2:])
    for only_eligible, hw in ((True, 10), (False, 8)):
        setup = without(counts_only_eligible=only_eligible)
        partition = led(setup, members=(0,))
        remotes = tuple(r._replace(log_end=8, last_caught_up_time=NOW) for r in partition.remotes[:1])
        partition = partition._replace(remotes=remotes, log=partition.log._replace(hw=5, hw_segment=UNDEFINED))
        assert p.maybe_increment_leader_hw(setup, partition, fenced, NOW).log.hw == hw


def test_a_committed_isr_once_left_the_high_watermark_where_it_was() -> None:
    """KAFKA-13091: 2.7 to 3.0."""
    for tries, hw in ((True, 10), (False, 0)):
        setup = without(hw_after_isr_response=tries)
        shrinking = p.prepare_isr_shrink(led(setup, written((0, 9, 0))), (1,))
        response = AlterPartitionResponse(NONE, 2, 2, (0,))
        done, _ = p.handle_alter_partition_response(setup, shrinking, shrinking.state, response, METADATA, NOW + 60_000)
        assert done.log.hw == hw


def test_metadata_a_leader_has_read_makes_it_forget_what_it_proposed() -> None:
    """In every release; finding F3. Whoever is no leader yet, or leads in another epoch, has not read it."""
    for again, proposed in ((True, PartitionState((0,))), (False, PartitionState((0,), adding=1))):
        setup = without(reads_equal_partition_epoch=again)
        proposing = led(setup, members=(0,))._replace(state=PartitionState((0,), adding=1))
        read, was_new = p.make_leader(setup, proposing, 2, 1, (0,), (0, 1, 2), METADATA, NOW)
        assert (read.state, was_new) == (proposed, False)
        for epoch, partition_epoch in ((3, 1), (2, 2)):
            newer, _ = p.make_leader(setup, proposing, epoch, partition_epoch, (0,), (0, 1, 2), METADATA, NOW)
            assert newer.state == PartitionState((0,))


def test_a_high_watermark_once_woke_waiting_followers() -> None:
    """2.4 and 2.5."""
    for wakes in (True, False):
        setup = without(hw_wakes_followers=wakes)
        manager = leading(isr=(1, 2), setup=setup)
        waiting = fetch_messages(setup, manager, 3, follower(3), FrozenMap([(TP, asked(3, 10))]), NOW)
        after = fetch_messages(setup, waiting, 2, follower(2), FrozenMap([(TP, asked(2, 10))]), NOW)
        assert [a.request for a in responses(after)] == ([3] if wakes else [])

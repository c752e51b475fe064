"""What each switch of a profile changes, and how each generation loses or keeps what was committed."""

from typing import NamedTuple

import pytest

from impl import epoch_cache, isr
from impl import fetcher as f
from impl import fetcher_thread as t
from impl import log as log_
from impl import partition as p
from impl.cluster import Bounds, initial
from impl.epoch_cache import Entries, EpochCache
from impl.errors import FatalExitError, UnexpectedAppendOffsetError, UsageError
from impl.fetch_messages import fetch_messages
from impl.fetch_state import Fetcher, PartitionFetchState
from impl.fetcher_thread import Answer, BrokerEndPoint, FetcherThread, InitialFetchState
from impl.log import Batch, Log, append_as_follower
from impl.messages import AlterPartitionResponse, BrokerState, FetchAnswer, FetchRequest, FetchResponse, ListOffsets
from impl.partition_state import Partition, PartitionState
from impl.profiles import FETCH_TRUNCATION, HW_ONLY, KIP101, KIP279, KIP320, Profile, Setup
from impl.releases import of_release
from impl.rules import (
    FENCED_LEADER_EPOCH,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    UNDEFINED,
    UNKNOWN_LEADER_EPOCH,
)
from impl.table import Table
from impl.topic_partition import TopicPartition
from tests.impl.brokers import NOW, TP, answers, asked, follower, leading

METADATA = tuple(BrokerState(b, epoch=10 + b) for b in range(3))
TODAY = Setup()


def without(**switches: object) -> Setup:
    return Setup(profile=FETCH_TRUNCATION._replace(**switches))  # type: ignore[arg-type]


def written(*batches: tuple[int, int, int], hw: int = 0) -> Log:
    log, _ = append_as_follower(TODAY, Log(), tuple(Batch(*b) for b in batches), 99)
    return log_.update_high_watermark(TODAY, log, hw)


LOG = written((0, 4, 0), (5, 9, 1), hw=5)


def led(setup: Setup, log: Log = LOG, epoch: int = 2, members: tuple[int, ...] = (0, 1)) -> Partition:
    return p.make_leader(setup, Partition(0, log), epoch, 1, members, (0, 1, 2), METADATA, NOW)[0]


def fetched(setup: Setup, partition: Partition, offset: int, broker: int = 1, broker_epoch: int = 11) -> Partition:
    request = FetchRequest(broker, 2, offset, UNDEFINED, 0, broker_epoch)
    return p.fetch_records(setup, partition, request, METADATA, NOW, 100)[0]


# Logs and caches


def test_before_kafka_7415_conflicts_in_the_cache_were_ignored() -> None:
    """Only a later epoch at no lower offset was added; below the first entry nothing was known."""
    setup, cache = without(strict_cache=False), EpochCache(Entries((2, 4), (10, 20)))
    for epoch, start in ((3, 30), (5, 15), (4, 5)):
        assert epoch_cache.assign(setup, cache, epoch, start) == cache
    added = epoch_cache.assign(setup, cache, 5, 20)
    assert added.memory.pairs() == ((2, 10), (4, 20), (5, 20))
    assert epoch_cache.end_offset_for(setup, cache, 50, 1) == (UNDEFINED, UNDEFINED)
    assert epoch_cache.end_offset_for(TODAY, cache, 50, 1) == (1, 10)


def test_before_kafka_7415_a_new_leader_did_not_mark_its_epoch() -> None:
    """S5: asked for the epoch before its own it has no answer, and the follower cuts at its high watermark."""
    assert led(without(strict_cache=False)).log.cache.epochs == (0, 1)
    assert led(TODAY).log.cache.epochs == (0, 1, 2)


def test_a_cut_that_cuts_nothing_once_kept_the_cache() -> None:
    """KAFKA-10706."""
    marked = log_.assign_epoch_start_offset(TODAY, LOG, 5, 10)
    assert log_.truncate_to(TODAY, marked, 10)[0].cache.epochs == (0, 1)
    assert log_.truncate_to(without(cut_clears_cache=False), marked, 10)[0] == marked


def test_a_cut_once_left_the_high_watermark_above_the_log() -> None:
    """Up to 2.3, until the next answer."""
    high = log_.update_high_watermark(TODAY, LOG, 10)
    assert [log_.truncate_to(s, high, 5)[0].hw for s in (TODAY, without(cut_lowers_hw=False))] == [5, 10]


# Leaders


def test_an_epoch_answer_once_had_no_epoch() -> None:
    """KIP-101 gave the end alone."""
    answers_ = [p.last_offset_for_leader_epoch(s, led(s), 2, 0) for s in (TODAY, without(answers_epoch=False))]
    assert answers_ == [(NONE, 0, 5), (NONE, UNDEFINED, 5)]


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
    assert [isr.is_isr_eligible(setup, partition, 1, m) for m in (fenced, other)] == joins
    assert not isr.is_isr_eligible(setup, partition, 9, METADATA)
    assert not isr.is_isr_eligible(setup, partition, 1, ())


def test_min_isr_was_once_not_capped_by_the_replicas() -> None:
    """Configured above the replication factor, nobody could produce with acks=all."""
    for blocks, under in ((True, False), (False, True)):
        setup = without(blocks_under_min_isr=blocks)._replace(min_insync_replicas=5)
        assert isr.is_under_min_isr(setup, led(setup, members=(0, 1, 2))) is under


def test_a_pending_expansion_once_did_not_hold_the_high_watermark_back() -> None:
    """Before the maximal ISR of 2.7."""
    for counts, hw in ((True, 5), (False, 10)):
        setup = without(counts_maximal_isr=counts)
        pending = led(setup, members=(0,))._replace(state=PartitionState((0,), adding=1))
        remotes = tuple(r._replace(log_end=5) for r in pending.remotes)
        pending = pending._replace(remotes=remotes, log=pending.log._replace(hw=5))
        assert isr.maybe_increment_leader_hw(setup, pending, METADATA, NOW + 60_000).log.hw == hw


def test_a_fenced_replica_once_held_the_high_watermark_back() -> None:
    """KAFKA-15021: outside the ISR, caught up a moment ago, not eligible."""
    fenced = (BrokerState(1, fenced=True, epoch=11), *METADATA[2:])
    for only_eligible, hw in ((True, 10), (False, 8)):
        setup = without(counts_only_eligible=only_eligible)
        partition = led(setup, members=(0,))
        remotes = tuple(r._replace(log_end=8, last_caught_up_time=NOW) for r in partition.remotes[:1])
        partition = partition._replace(remotes=remotes, log=partition.log._replace(hw=5, hw_segment=UNDEFINED))
        assert isr.maybe_increment_leader_hw(setup, partition, fenced, NOW).log.hw == hw


def test_a_committed_isr_once_left_the_high_watermark_where_it_was() -> None:
    """KAFKA-13091: 2.7 to 3.0."""
    for tries, hw in ((True, 10), (False, 0)):
        setup = without(hw_after_isr_answer=tries)
        shrinking = isr.prepare_isr_shrink(led(setup, written((0, 9, 0))), (1,))
        response = AlterPartitionResponse(NONE, 2, 2, (0,))
        done, _ = isr.handle_alter_partition_response(setup, shrinking, shrinking.state, response, METADATA, NOW + 60_000)
        assert done.log.hw == hw


def test_a_high_watermark_once_woke_waiting_followers() -> None:
    """2.4 and 2.5."""
    for wakes in (True, False):
        setup = without(hw_wakes_followers=wakes)
        manager = leading(isr=(1, 2), setup=setup)
        waiting = fetch_messages(setup, manager, 3, follower(3), Table([(TP, asked(3, 10))]), NOW)
        after = fetch_messages(setup, waiting, 2, follower(2), Table([(TP, asked(2, 10))]), NOW)
        assert [a.request for a in answers(after)] == ([3] if wakes else [])


# Followers


def test_where_a_follower_starts_changed() -> None:
    """Its log end in 0.11, its high watermark up to 2.7, then its log end if the cache knows an epoch."""
    starts = [f.initial_fetch_offset(Setup(profile=of_release(r)), LOG) for r in ("0.10.2", "0.11.0", "1.1.0", "2.8.0")]
    assert starts == [5, 10, 5, 10]


def test_without_an_answer_0_11_cut_at_its_high_watermark_of_now() -> None:
    """Later releases cut where the entry began, which then was the high watermark of its creation."""
    moved = Fetcher(log_.update_high_watermark(TODAY, LOG, 8), PartitionFetchState(5, 4, truncating=True))
    for release, end in (("0.11.0", 8), ("1.1.0", 5)):
        setup = Setup(profile=of_release(release))
        entry = f.truncate_to_epoch_end_offset(setup, moved, 4, NONE, UNDEFINED, UNDEFINED).entry
        assert entry is not None
        assert entry.fetch_offset == end
        alone = f.truncate_to_high_watermark(setup, moved).entry
        assert alone is not None
        assert alone.fetch_offset == end


def test_an_epoch_answer_of_another_epoch_was_once_taken() -> None:
    """KAFKA-7786."""
    entry = Fetcher(LOG, PartitionFetchState(5, 4, truncating=True))
    late = [
        f.truncate_to_epoch_end_offset(Setup(profile=profile), entry, 3, NONE, 0, 3).log.end
        for profile in (KIP320, KIP320._replace(epoch_answers_checked=False))
    ]
    assert late == [10, 3]


def test_a_fenced_answer_of_an_older_epoch_once_failed_the_partition() -> None:
    """Up to 2.4."""
    entry = Fetcher(LOG, PartitionFetchState(10, 4, 1))
    fenced = FetchAnswer(3, 10, FetchResponse(FENCED_LEADER_EPOCH))
    for by_epoch in (True, False):
        setup = without(fences_by_epoch=by_epoch, answer_epoch_checked=False)
        assert f.process_fetch_answer(setup, entry, fenced).failed is not by_epoch


def test_an_unexpected_error_once_ended_the_thread() -> None:
    """KIP-461: now one partition fails."""
    wrong = FetchAnswer(4, 10, FetchResponse(NONE, 9, 0, (Batch(3, 4, 4),)))
    entry = Fetcher(LOG, PartitionFetchState(10, 4, 1))
    setup = without(fails_partitions=False)
    with pytest.raises(UnexpectedAppendOffsetError):
        f.process_fetch_answer(setup, entry, wrong)
    tp = TopicPartition("t", 0)
    logs, leader = Table([(tp, LOG)]), BrokerEndPoint(1)
    thread = t.add_partitions(setup, FetcherThread(leader, 0), logs, {tp: InitialFetchState(leader, 4, 10)}, {}).thread
    questions = t.build_fetch(thread, logs, 2, 0)
    done = t.process_fetch_response(setup, thread, logs, questions, Table([(tp, Answer(wrong.response))]), 0, 1000)
    assert done.thread.dead
    assert done.logs == logs
    negative = Fetcher(LOG, PartitionFetchState(-5, 4, truncating=True))
    assert f.truncate_to_high_watermark(TODAY, negative).failed
    with pytest.raises(Exception, match="truncation offset"):
        f.truncate_to_high_watermark(setup, negative)


def test_a_follower_ahead_of_its_leader_once_ended_the_broker() -> None:
    """Up to 2.0.0, if unclean election was disabled for the topic; enabled, it truncated."""
    old = Setup(profile=of_release("2.0.0"))
    ahead = Fetcher(LOG, PartitionFetchState(10, 4, truncating=False))
    with pytest.raises(FatalExitError, match="the broker exits"):
        f.fetch_offset_and_truncate(old, ahead, 4, ListOffsets(0, 7))
    enabled = old._replace(unclean_leader_election_enable=True)
    for setup in (enabled, Setup(profile=of_release("2.0.1"))):
        assert f.fetch_offset_and_truncate(setup, ahead, 4, ListOffsets(0, 7)).log.end == 7
    assert f.fetch_offset_and_truncate(old, ahead, 4, ListOffsets(0, 12)).log.end == 10


def test_a_diverging_answer_once_raised_the_high_watermark_first() -> None:
    """S9, KAFKA-14704: records of the wrong lineage could be read until the cut."""
    entry = Fetcher(LOG, PartitionFetchState(10, 4, 1))
    diverging = FetchAnswer(4, 10, FetchResponse(NONE, 9, 0, (), 0, 5))
    today = f.process_fetch_answer(TODAY, entry, diverging)
    older = f.process_fetch_answer(without(applies_diverging=True, cut_lowers_hw=False), entry, diverging)
    assert (today.log.hw, older.log.hw) == (5, 9)
    assert (today.log.end, older.log.end) == (5, 5)
    failing = FetchAnswer(4, 10, FetchResponse(NONE, 2, 7, (), 0, 5))
    assert f.process_fetch_answer(without(applies_diverging=True), entry, failing).log.end == 10


def test_an_empty_answer_once_erased_the_last_fetched_epoch() -> None:
    """S11, KAFKA-15510: a divergence after it was not noticed."""
    entry = Fetcher(LOG, PartitionFetchState(10, 4, 1))
    empty = FetchAnswer(4, 10, FetchResponse(NONE, 9, 0))
    epochs = [f.process_fetch_answer(s, entry, empty).entry for s in (TODAY, without(keeps_last_epoch=False))]
    assert [e and e.last_fetched_epoch for e in epochs] == [1, UNDEFINED]


def test_a_back_off_that_ran_out_once_stayed_over() -> None:
    """Before 4.0 a truncation did not start it again."""
    tp = TopicPartition("t", 0)
    logs, leader = Table([(tp, LOG)]), BrokerEndPoint(1)
    thread = t.add_partitions(TODAY, FetcherThread(leader, 0), logs, {tp: InitialFetchState(leader, 4, 10)}, {}).thread
    thread = t.delay_partitions(thread, (tp,), 0, 1000)
    diverging = Table([(tp, Answer(FetchResponse(NONE, diverging_epoch=0, diverging_end=5)))])
    for restarts in (True, False):
        setup = without(delay_restarts=restarts)
        done = t.process_fetch_response(setup, thread, logs, t.build_fetch(thread, logs, 2, 1500), diverging, 1500, 1000)
        assert (tp in t.build_fetch(done.thread, done.logs, 2, 1600)) is not restarts


# Generations: the histories that made each KIP necessary


class Followed(NamedTuple):
    """What following a leader came to: the follower's log, and the error that stopped it."""

    log: Log
    error: int = NONE


def follow(profile: Profile, leader: Partition, log: Log, epoch: int, *, rounds: int = 9) -> Followed:
    """A follower that was told `epoch`: truncation rounds, then one fetch with everything there is."""
    setup = Setup(profile=profile)
    fetcher = f.add_partition(setup, Fetcher(log), epoch, f.initial_fetch_offset(setup, log))
    for _ in range(rounds):
        fetcher = f.maybe_truncate_alone(setup, fetcher)
        epoch_asked = f.epoch_to_ask(setup, fetcher)
        if epoch_asked != UNDEFINED:
            error, found, end = p.last_offset_for_leader_epoch(setup, leader, epoch, epoch_asked)
            if error != NONE:
                return Followed(fetcher.log, error)
            fetcher = f.truncate_to_epoch_end_offset(setup, fetcher, epoch, NONE, found, end)
            continue
        request = f.build_fetch(1, fetcher)
        assert request is not None
        leader, response = p.fetch_records(setup, leader, request._replace(replica_epoch=11), METADATA, NOW, 99)
        offsets = ListOffsets(leader.log.start, leader.log.end)
        answer = FetchAnswer(epoch, request.fetch_offset, response, offsets)
        fetcher = f.process_fetch_answer(setup, fetcher, answer)
        if response.error != NONE and fetcher.entry is not None and fetcher.entry.delayed:
            return Followed(fetcher.log, response.error)
    return Followed(fetcher.log)


def epochs(log: Log) -> list[int]:
    return [b.epoch for b in log.batches for _ in range(b.base, b.last + 1)]


GENERATIONS = (HW_ONLY, KIP101, KIP279, KIP320, FETCH_TRUNCATION)


def leader_of(profile: Profile, log: Log, epoch: int, records: int) -> Partition:
    """Broker 0 leads `epoch` and writes."""
    setup = Setup(profile=profile)
    partition, _ = p.make_leader(setup, Partition(0, log), epoch, 1, (0, 1), (0, 1, 2), METADATA, NOW)
    if records:
        partition, _, _ = p.append_records_to_leader(setup, partition, records, 1, METADATA, NOW)
    return partition


def test_s1_truncation_to_the_high_watermark_loses_an_acknowledged_record() -> None:
    """KIP-101: the follower's high watermark lags; it cuts what it shares with the leader, which then dies."""
    cut: dict[str, int] = {}
    for profile in GENERATIONS:
        leader = leader_of(profile, written((0, 0, 0), (1, 1, 0), hw=2), 0, 0)
        setup = Setup(profile=profile)
        log = written((0, 0, 0), (1, 1, 0), hw=1)
        fetcher = f.add_partition(setup, Fetcher(log), 0, f.initial_fetch_offset(setup, log))
        cut[profile.name] = f.maybe_truncate_alone(setup, fetcher).log.end
        assert epochs(follow(profile, leader, log, 0).log) == [0, 0]
    assert cut == {"hw-only": 1, "kip101": 2, "kip279": 2, "kip320": 2, "fetch-truncation": 2}


def test_s2_a_lost_tail_leaves_two_logs_that_differ_for_ever() -> None:
    """KIP-101: nothing above the high watermark, so nothing is cut; the same offset holds two records."""
    forked = {}
    for profile in GENERATIONS:
        leader = leader_of(profile, written((0, 0, 0), hw=1), 1, 1)
        after = follow(profile, leader, written((0, 0, 0), (1, 1, 0), hw=2), 1)
        forked[profile.name] = epochs(after.log) != epochs(leader.log)
    assert forked == {"hw-only": True, "kip101": False, "kip279": False, "kip320": False, "fetch-truncation": False}


def test_s3_a_fast_fail_over_forks_until_the_answer_has_an_epoch() -> None:
    """KIP-279: the leader never saw epoch 2, and answers where its own epoch 3 begins."""
    forked = {}
    for profile in GENERATIONS[1:]:
        leader = leader_of(profile, written((0, 3, 1), (4, 6, 1)), 3, 2)
        after = follow(profile, leader, written((0, 3, 1), (4, 6, 2)), 3)
        forked[profile.name] = epochs(after.log) != epochs(leader.log)
    assert forked == {"kip101": True, "kip279": False, "kip320": False, "fetch-truncation": False}


def test_s4_interleaved_lineages_need_rounds() -> None:
    """KIP-279: ask again below what is not shared; KIP-101 stops after the first answer."""
    forked = {}
    for profile in GENERATIONS[1:]:
        leader = leader_of(profile, written((0, 4, 0), (5, 7, 2)), 4, 4)
        after = follow(profile, leader, written((0, 4, 0), (5, 6, 1), (7, 8, 3)), 4)
        forked[profile.name] = epochs(after.log) != epochs(leader.log)
    assert forked == {"kip101": True, "kip279": False, "kip320": False, "fetch-truncation": False}


def test_s8_a_leader_of_an_older_epoch_misleads_who_is_not_fenced() -> None:
    """KIP-320: it has not heard of epoch 3; fenced followers are told so and wait."""
    results = {}
    for profile in GENERATIONS[2:]:
        leader = leader_of(profile, written((0, 9, 1), (10, 11, 1)), 1, 0)._replace(leader_epoch=1)
        after = follow(profile, leader, written((0, 9, 1), (10, 11, 2), hw=12), 3)
        results[profile.name] = (after.error, epochs(after.log)[10:])
    assert results["kip320"] == (UNKNOWN_LEADER_EPOCH, [2, 2])
    assert results["fetch-truncation"] == (UNKNOWN_LEADER_EPOCH, [2, 2])
    assert results["kip279"] == (NONE, [2, 2])
    assert epochs(written((0, 9, 1), (10, 11, 1)))[10:] == [1, 1]


def test_the_explored_cluster_has_no_slot_for_epoch_requests() -> None:
    """Those generations are refused there, with what to use instead."""
    for profile in (KIP101, KIP279, KIP320):
        with pytest.raises(UsageError, match=r"step impl\.fetcher_thread"):
            initial(Bounds(2, 1, 1, 0), profile)

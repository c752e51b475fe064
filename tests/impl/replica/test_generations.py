"""How each generation loses or keeps what was committed: the histories that made each KIP necessary."""

from typing import NamedTuple

from tests.impl.brokers import NOW
from tests.impl.switches import METADATA, written
from tidegauge.impl.messages import FetchResponseInFlight, ListOffsets
from tidegauge.impl.profiles import FETCH_TRUNCATION, HW_ONLY, KIP101, KIP279, KIP320, Profile, Setup
from tidegauge.impl.replica import fetcher as f
from tidegauge.impl.replica import partition as p
from tidegauge.impl.replica.fetcher import Fetcher
from tidegauge.impl.replica.partition_state import Partition
from tidegauge.impl.rules import NONE, UNDEFINED, UNKNOWN_LEADER_EPOCH
from tidegauge.impl.storage.log import Log


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
        in_flight = FetchResponseInFlight(epoch, request.fetch_offset, response, offsets)
        fetcher = f.process_fetch_response(setup, fetcher, in_flight)
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
    """KIP-101: the follower's high watermark lags; it truncates what it shares with the leader, which then dies."""
    truncated: dict[str, int] = {}
    for profile in GENERATIONS:
        leader = leader_of(profile, written((0, 0, 0), (1, 1, 0), hw=2), 0, 0)
        setup = Setup(profile=profile)
        log = written((0, 0, 0), (1, 1, 0), hw=1)
        fetcher = f.add_partition(setup, Fetcher(log), 0, f.initial_fetch_offset(setup, log))
        truncated[profile.name] = f.maybe_truncate_alone(setup, fetcher).log.end
        assert epochs(follow(profile, leader, log, 0).log) == [0, 0]
    assert truncated == {"hw-only": 1, "kip101": 2, "kip279": 2, "kip320": 2, "fetch-truncation": 2}


def test_s2_a_lost_tail_leaves_two_logs_that_differ_for_ever() -> None:
    """KIP-101: nothing above the high watermark, so nothing is truncated; the same offset holds two records."""
    forked = {}
    for profile in GENERATIONS:
        leader = leader_of(profile, written((0, 0, 0), hw=1), 1, 1)
        after = follow(profile, leader, written((0, 0, 0), (1, 1, 0), hw=2), 1)
        forked[profile.name] = epochs(after.log) != epochs(leader.log)
    assert forked == {"hw-only": True, "kip101": False, "kip279": False, "kip320": False, "fetch-truncation": False}


def test_s3_a_fast_fail_over_forks_until_the_response_has_an_epoch() -> None:
    """KIP-279: the leader never saw epoch 2, and answers where its own epoch 3 begins."""
    forked = {}
    for profile in GENERATIONS[1:]:
        leader = leader_of(profile, written((0, 3, 1), (4, 6, 1)), 3, 2)
        after = follow(profile, leader, written((0, 3, 1), (4, 6, 2)), 3)
        forked[profile.name] = epochs(after.log) != epochs(leader.log)
    assert forked == {"kip101": True, "kip279": False, "kip320": False, "fetch-truncation": False}


def test_s4_interleaved_lineages_need_rounds() -> None:
    """KIP-279: ask again below what is not shared; KIP-101 stops after the first response."""
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

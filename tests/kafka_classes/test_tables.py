"""The implementation does, step by step, what Kafka's released classes did."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest

from tests.kafka_classes import (
    replay_controller,
    replay_epoch_cache,
    replay_follower_fetcher,
    replay_leader_partition,
    replay_replica_manager,
    replay_unified_log,
)
from tests.kafka_classes.replay import Replay, run
from tidegauge.impl.explorer.faults import FAULTS
from tidegauge.impl.profiles import Profile, Rules

Table = Callable[[str], Iterator[dict[str, Any]]]

REPLAYS: dict[str, Callable[[Rules], Replay]] = {
    "epoch_cache_4.1.1": replay_epoch_cache.replay_with,
    "epoch_cache_3.4.1": replay_epoch_cache.replay_with,
    "unified_log_4.1.1": replay_unified_log.replay_with,
    "unified_log_start_4.1.1": replay_unified_log.replay_with,
    "follower_fetcher_4.1.1": replay_follower_fetcher.replay_with,
    "leader_partition_4.1.1": replay_leader_partition.replay_with,
    "replica_manager_4.1.1": replay_replica_manager.replay_with,
    "controller_4.1.1": replay_controller.replay_with,
    "controller_4.3.1": replay_controller.replay_with,
}

# Steps compared and what was left out, in the tables that come with the project. Reasons: EXCLUDED of each replay.
BUNDLED: dict[str, tuple[int, dict[str, int]]] = {
    "epoch_cache_4.1.1": (54_015, {}),
    "epoch_cache_3.4.1": (13_542, {}),
    "unified_log_4.1.1": (33_102, {}),
    "unified_log_start_4.1.1": (6_070, {}),
    "follower_fetcher_4.1.1": (18_061, {}),
    "leader_partition_4.1.1": (40_189, {"currentLeaderEpoch -1": 54}),
    "replica_manager_4.1.1": (36_964, {}),
    "controller_4.1.1": (55_768, {}),
    "controller_4.3.1": (55_647, {}),
}


@pytest.mark.parametrize("name", REPLAYS)
def test_every_step_is_what_kafka_did(name: str, table: Table, bundled: bool) -> None:
    """Every step of every sequence leaves the state, the result and the error that Kafka's class left."""
    tally = run(table(name), REPLAYS[name](Rules()))
    print(f"{name}: {tally.sequences:,} sequences, {tally.steps:,} steps, excluded {dict(tally.excluded)}")
    assert not tally.disagreements, "\n".join(map(str, tally.disagreements[:5]))
    assert tally.steps > 0
    if bundled:
        assert (tally.steps, dict(tally.excluded)) == BUNDLED[name]


def test_every_exclusion_has_a_reason() -> None:
    """What is left out is named once, with why."""
    left_out = {what for _, counts in BUNDLED.values() for what in counts}
    assert left_out == set(replay_leader_partition.EXCLUDED)
    assert all(len(reason) > 20 for reason in replay_leader_partition.EXCLUDED.values())


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("epoch_cache_4.1.1", "entry-at-the-truncation-stays"),
        ("epoch_cache_3.4.1", "assign-never-evicts"),
        ("unified_log_4.1.1", "hw-survives-truncation"),
        ("unified_log_4.1.1", "hw-not-clamped"),
        ("follower_fetcher_4.1.1", "truncates-at-the-leaders-end"),
        ("follower_fetcher_4.1.1", "truncates-one-high"),
        ("follower_fetcher_4.1.1", "response-of-any-epoch"),
        ("follower_fetcher_4.1.1", "any-response"),
        ("follower_fetcher_4.1.1", "follower-exposes-its-log"),
        ("leader_partition_4.1.1", "no-divergence-check"),
        ("leader_partition_4.1.1", "diverging-end-one-high"),
        ("leader_partition_4.1.1", "never-fenced"),
        ("leader_partition_4.1.1", "older-epochs-pass"),
        ("leader_partition_4.1.1", "joins-at-hw"),
        ("leader_partition_4.1.1", "lagging-members-do-not-count"),
        ("leader_partition_4.1.1", "hw-by-majority"),
        ("replica_manager_4.1.1", "never-fenced"),
        ("replica_manager_4.1.1", "no-divergence-check"),
        ("replica_manager_4.1.1", "joins-at-hw"),
        ("replica_manager_4.1.1", "hw-by-majority"),
    ],
)
def test_a_wrong_rule_disagrees_with_kafka(name: str, fault: str, table: Table) -> None:
    """With one rule replaced by a wrong one, the same replay reports where it parts from Kafka."""
    tally = run(islice(table(name), 500), REPLAYS[name](FAULTS[fault].rules))
    assert tally.disagreements
    assert "as Kafka has it" in str(tally.disagreements[0])


@pytest.mark.parametrize("release", ["4.1.1", "4.3.1"])
@pytest.mark.parametrize(
    "switch",
    [
        "registration_leaves_isr",
        "elr_keeps_removed",
        "min_isr_by_partition_zero",
        "min_isr_change_clears_elr",
        "indexes_go_stale",
        "completes_by_adding",
        "reassignment_keeps_adding",
        "completes_before_election",
        "heartbeat_in_one_pass",
        "neglects_elr_when_off",
        "raised_min_isr_keeps_epoch",
        "assigns_dirs_without_elr",
    ],
)
def test_a_controller_with_another_switch_is_not_that_release(switch: str, release: str, table: Table) -> None:
    """What a finding repairs, and what a release changed, is seen in the histories; F7's list also where it does no harm."""

    def turned(profile: Profile) -> Profile:
        return profile._replace(**{switch: not getattr(profile, switch)})

    tally = run(islice(table(f"controller_{release}"), 200), replay_controller.replay_as(turned))
    assert tally.disagreements


def test_every_operation_of_the_controller_is_replayed(table: Table) -> None:
    """None is left out, and each kind of change is there."""
    seen = {step["op"] for sequence in islice(table("controller_4.3.1"), 200) for step in sequence["steps"]}
    assert seen == set(replay_controller.OPERATIONS)

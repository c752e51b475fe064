"""The implementation does, step by step, what Kafka's released classes did."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from impl.faults import FAULTS
from impl.profiles import Rules
from tests.kafka_classes import replay_epoch_cache, replay_follower_fetcher, replay_unified_log
from tests.kafka_classes.replay import Replay, run

Table = Callable[[str], Iterator[dict[str, Any]]]

REPLAYS: dict[str, Callable[[Rules], Replay]] = {
    "epoch_cache_4.1.1": replay_epoch_cache.replay_with,
    "epoch_cache_3.4.1": replay_epoch_cache.replay_with,
    "unified_log_4.1.1": replay_unified_log.replay_with,
    "follower_fetcher_4.1.1": replay_follower_fetcher.replay_with,
}


@pytest.mark.parametrize("name", REPLAYS)
def test_every_step_is_what_kafka_did(name: str, table: Table) -> None:
    """Every step of every sequence leaves the state, the result and the error that Kafka's class left."""
    tally = run(table(name), REPLAYS[name](Rules()))
    print(f"{name}: {tally.sequences:,} sequences, {tally.steps:,} steps, excluded {dict(tally.excluded)}")
    assert tally.steps > 0
    assert not tally.disagreements, "\n".join(map(str, tally.disagreements[:5]))


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("epoch_cache_4.1.1", "entry-at-the-cut-stays"),
        ("epoch_cache_3.4.1", "assign-never-evicts"),
        ("unified_log_4.1.1", "hw-survives-truncation"),
        ("unified_log_4.1.1", "hw-not-clamped"),
        ("follower_fetcher_4.1.1", "cut-at-the-leaders-end"),
        ("follower_fetcher_4.1.1", "cut-one-high"),
        ("follower_fetcher_4.1.1", "answer-of-any-epoch"),
        ("follower_fetcher_4.1.1", "any-answer"),
        ("follower_fetcher_4.1.1", "follower-exposes-its-log"),
    ],
)
def test_a_wrong_rule_disagrees_with_kafka(name: str, fault: str, table: Table) -> None:
    """With one rule replaced by a wrong one, the same replay reports where it parts from Kafka."""
    tally = run(table(name), REPLAYS[name](FAULTS[fault].rules))
    assert tally.disagreements
    assert "as Kafka has it" in str(tally.disagreements[0])

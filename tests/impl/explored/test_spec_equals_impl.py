"""The specification and the implementation are the same labelled graph."""

import re
from collections.abc import Mapping

import pytest

from tidegauge.conformance.evidence.spec_equals_impl import Compared, compare
from tidegauge.impl.explored.faults import FAULTS
from tidegauge.impl.profiles import Rules
from tidegauge.spec.checker.models import find_model


@pytest.mark.tlc
def test_every_transition_of_the_specification_is_one_of_the_implementation_and_back() -> None:
    """The whole graph of the small model, both directions."""
    equality = compare(Compared("Small", "fetch-truncation", {}))
    assert equality.divergence is None, equality.divergence
    assert (equality.states, equality.transitions) == (22_393, 106_606)


@pytest.mark.tlc
@pytest.mark.parametrize(
    ("model", "profile", "states", "transitions"),
    [("Kip101", "kip101", 22_442, 102_121), ("Kip279", "kip279", 22_313, 101_641), ("Kip320", "kip320", 15_329, 68_674)],
)
def test_generations_that_ask_for_epoch_ends_are_the_same_graph(
    model: str, profile: str, states: int, transitions: int
) -> None:
    """Three leader epochs, one record: rounds, refusals and stale responses. Longer logs fork, and the spec has no cache."""
    equality = compare(Compared(model, profile, {"MaxLog": 1, "MaxEpoch": 2}))
    assert equality.divergence is None, equality.divergence
    assert (equality.states, equality.transitions) == (states, transitions)


@pytest.mark.tlc
@pytest.mark.parametrize(
    "compared",
    [
        Compared("LateDivergingDropped", "fetch-truncation", {}, "SeedLateDiverging"),
        Compared("MissedEpochRepaired", "repaired", {}, "SeedMissedEpoch"),
        Compared("Interleaved", "kip320", {}, "SeedInterleaved"),
    ],
    ids=lambda compared: compared.model,
)
def test_models_that_start_deep_are_the_same_graph(compared: Compared) -> None:
    """Also with three brokers: the implementation goes where the model starts, and from there it is the same graph."""
    equality = compare(compared)
    assert equality.divergence is None, equality.divergence
    assert equality.states == find_model(compared.model).distinct


@pytest.mark.tlc
def test_from_a_deep_start_a_difference_is_seen() -> None:
    """From where an epoch was missed, a leader that keeps what it recorded goes elsewhere than one that forgets it."""
    equality = compare(Compared("MissedEpochRepaired", "fetch-truncation", {}, "SeedMissedEpoch"))
    assert equality.divergence is not None
    assert "BecomeLeader" in equality.divergence


@pytest.mark.tlc
@pytest.mark.parametrize(("model", "transitions"), [("MovingStart", 59_384), ("MovingStartTwo", 155_844)])
def test_log_starts_that_move_are_the_same_graph(model: str, transitions: int) -> None:
    """Also with a crash, and with two records deleted."""
    equality = compare(Compared(model, "fetch-truncation", {}))
    assert equality.divergence is None, equality.divergence
    assert (equality.states, equality.transitions) == (find_model(model).distinct, transitions)


@pytest.mark.tlc
def test_a_log_start_in_the_wrong_place_is_a_difference() -> None:
    """A follower that starts again at the leader's end is seen where it does so."""
    tight = {"MaxCrash": 0, "MaxLog": 2}
    equality = compare(Compared("MovingStart", "fetch-truncation", tight), FAULTS["starts-at-the-leaders-end"].rules)
    assert equality.divergence is not None
    assert "HandleOutOfRange" in equality.divergence


@pytest.mark.tlc
@pytest.mark.parametrize(
    ("model", "tight", "states", "transitions"),
    [
        ("Kip966MinIsrOne", {"MaxEpoch": 1}, 7_714, 37_725),
        ("OnMinIsr", {"MaxEpoch": 1}, 7_472, 35_119),
        ("LastKnownLoses", {"MaxLog": 0, "MaxEpoch": 2}, 8_117, 43_141),
        ("UncleanLoses", {"MaxLog": 0, "MaxEpoch": 2}, 8_161, 43_315),
    ],
)
def test_with_elr_it_is_the_same_graph(model: str, tight: Mapping[str, int], states: int, transitions: int) -> None:
    """One replica may commit alone; logs that lose nothing; who led last, or anybody, elected when nobody else may be."""
    equality = compare(Compared(model, "elr", tight))
    assert equality.divergence is None, equality.divergence
    assert (equality.states, equality.transitions) == (states, transitions)


@pytest.mark.tlc
def test_with_elr_a_high_watermark_that_does_not_wait_is_seen() -> None:
    """A leader that moves it below min.insync.replicas: the first place where the graphs part is its append."""
    transitions = Rules()._replace(under_min_isr=lambda _members, _min_isr, _replicas: False)
    divergence = compare(Compared("Kip966", "elr", {"MaxEpoch": 0, "MaxCrash": 0}), transitions).divergence
    assert divergence is not None
    assert re.search(r"\n(LeaderAppend|BecomeLeader) b1:\n", divergence), divergence


@pytest.mark.tlc
def test_a_generation_is_not_taken_for_another() -> None:
    """The graph of kip320 is not that of kip279: a response of another epoch tells them apart."""
    equality = compare(Compared("Kip320", "kip279", {"MaxLog": 1, "MaxEpoch": 1}))
    assert equality.divergence is not None
    assert "HandleEpoch" in equality.divergence or "HandleFetch" in equality.divergence


@pytest.mark.tlc
@pytest.mark.parametrize(("fault", "said"), [("no-divergence-check", "HandleFetch"), ("hw-is-own-log-end", "LeaderAppend")])
def test_a_guard_taken_from_the_implementation_is_reported(fault: str, said: str) -> None:
    """The first state where they part is told, with the way to it."""
    tight = {"MaxLog": 1, "MaxEpoch": 1, "MaxCrash": 0}
    equality = compare(Compared("Small", "fetch-truncation", tight), FAULTS[fault].rules)
    assert equality.divergence is not None
    assert "first divergence after" in equality.divergence
    assert said in equality.divergence

"""The specification and the implementation are the same labelled graph."""

import pytest

from conformance.spec_equals_impl import Compared, compare
from impl.faults import FAULTS
from spec.models import find_model


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
    """Three leader epochs, one record: rounds, refusals and stale answers. Longer logs fork, and the spec has no cache."""
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
def test_a_generation_is_not_taken_for_another() -> None:
    """The graph of kip320 is not that of kip279: an answer of another epoch tells them apart."""
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

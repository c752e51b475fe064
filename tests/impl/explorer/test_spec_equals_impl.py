"""The specification and the implementation are the same labelled graph.

The graphs here are of a second or two; the tests marked `long` take the bounds of the models.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from tidegauge.conformance.from_tlc.graph_comparison import Compared, compare, compared_of
from tidegauge.impl.explorer.faults import FAULTS
from tidegauge.impl.profiles import Rules
from tidegauge.spec.tlc.models import find_model
from tidegauge.traces.from_model.impl_walks import bounds_of


@pytest.mark.long
@pytest.mark.tlc
def test_every_transition_of_the_specification_is_one_of_the_implementation_and_back() -> None:
    """The whole graph of the small model, both directions."""
    equality = compare(Compared("Small", "fetch-truncation", {}))
    assert equality.divergence is None, equality.divergence
    assert (equality.states, equality.transitions) == (22_393, 106_606)


@pytest.mark.tlc
@pytest.mark.parametrize(
    ("model", "profile", "epochs", "states", "transitions"),
    [
        ("Kip101", "kip101", 1, 2_064, 8_090),
        ("Kip279", "kip279", 1, 2_064, 8_090),
        ("Kip320", "kip320", 1, 1_854, 7_334),
        pytest.param("Kip101", "kip101", 2, 22_442, 102_121, marks=pytest.mark.long),
        pytest.param("Kip279", "kip279", 2, 22_313, 101_641, marks=pytest.mark.long),
        pytest.param("Kip320", "kip320", 2, 15_329, 68_674, marks=pytest.mark.long),
    ],
)
def test_generations_that_ask_for_epoch_ends_are_the_same_graph(
    model: str, profile: str, epochs: int, states: int, transitions: int
) -> None:
    """2 or 3 leader epochs, one record: rounds, refusals, late responses. Longer logs fork, and the spec has no cache."""
    equality = compare(Compared(model, profile, {"MaxLog": 1, "MaxEpoch": epochs}))
    assert equality.divergence is None, equality.divergence
    assert (equality.states, equality.transitions) == (states, transitions)


@pytest.mark.tlc
@pytest.mark.parametrize(
    ("model", "profile", "tight", "states", "transitions"),
    [
        ("ThreadKip320", "kip320", {"MaxEpoch": 1}, 1_862, 7_356),
        ("ThreadHwOnly", "hw-only", {"MaxEpoch": 1}, 2_036, 7_761),
        pytest.param("ThreadHwOnly", "hw-only", {"MaxEpoch": 1, "MaxCrash": 1}, 7_764, 32_304, marks=pytest.mark.long),
        pytest.param(
            "ThreadKip279", "kip279", {"MaxLog": 1, "MaxEpoch": 1, "MaxCrash": 1}, 7_171, 30_951, marks=pytest.mark.long
        ),
        pytest.param("ThreadSmall", "fetch-truncation", {"MaxEpoch": 1, "MaxLog": 1}, 5_823, 25_419, marks=pytest.mark.long),
        pytest.param("ThreadKip320", "kip320", {}, 15_366, 68_840, marks=pytest.mark.long),
    ],
)
def test_where_the_fetcher_thread_truncates_it_is_the_same_graph(
    model: str, profile: str, tight: Mapping[str, int], states: int, transitions: int
) -> None:
    """A truncation that needs no response as a step of its own: with epochs, without, and today."""
    equality = compare(Compared(model, profile, tight))
    assert equality.divergence is None, equality.divergence
    assert (equality.states, equality.transitions) == (states, transitions)


@pytest.mark.tlc
@pytest.mark.parametrize(
    ("model", "tight", "states", "transitions"),
    [
        ("MixedTruncation", {"MaxEpoch": 1, "MaxCrash": 0}, 1_834, 7_298),
        ("MixedFencing", {"MaxEpoch": 1}, 1_854, 7_334),
        ("MixedRounds", {"MaxEpoch": 1}, 2_064, 8_090),
    ],
)
def test_releases_side_by_side_are_the_same_graph(
    model: str, tight: Mapping[str, int], states: int, transitions: int
) -> None:
    """Each broker with its own profile, which the sets of the cfg say."""
    equality = compare(replace(compared_of(find_model(model)), constants=tight))
    assert equality.divergence is None, equality.divergence
    assert (equality.states, equality.transitions) == (states, transitions)


@pytest.mark.tlc
def test_releases_the_other_way_round_are_another_graph() -> None:
    """The specification says of which broker a switch is."""
    reported = compare(Compared("MixedTruncation", "1=fetch-truncation,2=kip320", {"MaxEpoch": 1, "MaxCrash": 0})).divergence
    assert reported is not None
    assert "BecomeFollower b1" in reported


@pytest.mark.tlc
def test_an_implementation_that_truncates_as_it_becomes_follower_is_another_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the step in the specification alone they part where the role is taken."""
    at_once = bounds_of(find_model("Kip320"), MaxEpoch=1)
    monkeypatch.setattr("tidegauge.conformance.from_tlc.graph_comparison.bounds_of", lambda _model, **_constants: at_once)
    equality = compare(Compared("ThreadKip320", "kip320", {"MaxEpoch": 1}))
    assert equality.divergence is not None
    assert "BecomeFollower b2" in equality.divergence


@pytest.mark.tlc
@pytest.mark.parametrize(
    "compared",
    [
        Compared("LateDivergingDropped", "fetch-truncation", {}, "SeedLateDiverging"),
        pytest.param(Compared("MissedEpochRepaired", "repaired", {}, "SeedMissedEpoch"), marks=pytest.mark.long),
        pytest.param(Compared("Interleaved", "kip320", {}, "SeedInterleaved"), marks=pytest.mark.long),
        pytest.param(
            Compared("KeepingLateDivergingDropped", "fetch-truncation", {}, "SeedLateDiverging"), marks=pytest.mark.long
        ),
        pytest.param(Compared("OldRequest", "repaired", {}, "SeedOldRequest"), marks=pytest.mark.long),
    ],
    ids=lambda compared: compared.model,
)
def test_models_that_start_deep_are_the_same_graph(compared: Compared) -> None:
    """Also with three brokers: the implementation goes where the model starts, and from there it is the same graph."""
    equality = compare(compared)
    assert equality.divergence is None, equality.divergence
    assert equality.states == find_model(compared.model).distinct


@pytest.mark.tlc
@pytest.mark.parametrize(
    ("tight", "states", "transitions"),
    [
        ({"MaxCrash": 0, "MaxEpoch": 0}, 362, 1_310),
        pytest.param({}, find_model("KeepingSmall").distinct, 114_923, marks=pytest.mark.long),
    ],
)
def test_on_a_network_that_keeps_it_is_the_same_graph(tight: Mapping[str, int], states: int, transitions: int) -> None:
    """Requests that were given up are handled later, outlive their senders, and die with the leader."""
    equality = compare(Compared("KeepingSmall", "fetch-truncation", tight))
    assert equality.divergence is None, equality.divergence
    assert (equality.states, equality.transitions) == (states, transitions)


@pytest.mark.long
@pytest.mark.tlc
def test_an_implementation_that_answers_older_epochs_is_another_graph() -> None:
    """From where an old request is under way: the leader records what it should refuse."""
    compared = Compared("OldRequest", "repaired", {}, "SeedOldRequest")
    equality = compare(compared, FAULTS["older-epochs-pass"].rules)
    assert equality.divergence is not None
    assert "HandleFetch b1 <- b2" in equality.divergence


@pytest.mark.long
@pytest.mark.tlc
def test_from_a_deep_start_a_difference_is_seen() -> None:
    """From where an epoch was missed, a leader that keeps what it recorded goes elsewhere than one that forgets it."""
    equality = compare(Compared("MissedEpochRepaired", "fetch-truncation", {}, "SeedMissedEpoch"))
    assert equality.divergence is not None
    assert "BecomeLeader" in equality.divergence


@pytest.mark.tlc
@pytest.mark.parametrize(
    ("model", "tight", "states", "transitions"),
    [
        ("MovingStart", {"MaxEpoch": 0}, 808, 2_763),
        pytest.param("MovingStart", {}, find_model("MovingStart").distinct, 59_384, marks=pytest.mark.long),
        pytest.param("MovingStartTwo", {}, find_model("MovingStartTwo").distinct, 155_844, marks=pytest.mark.long),
    ],
)
def test_log_starts_that_move_are_the_same_graph(
    model: str, tight: Mapping[str, int], states: int, transitions: int
) -> None:
    """Also with a crash, and with two records deleted."""
    equality = compare(Compared(model, "fetch-truncation", tight))
    assert equality.divergence is None, equality.divergence
    assert (equality.states, equality.transitions) == (states, transitions)


@pytest.mark.tlc
def test_a_log_start_in_the_wrong_place_is_a_difference() -> None:
    """A follower that starts again at the leader's end is seen where it does so."""
    tight = {"MaxCrash": 0, "MaxLog": 2, "MaxEpoch": 0}
    equality = compare(Compared("MovingStart", "fetch-truncation", tight), FAULTS["starts-at-the-leaders-end"].rules)
    assert equality.divergence is not None
    assert "HandleOutOfRange" in equality.divergence


@pytest.mark.tlc
@pytest.mark.parametrize(
    ("model", "tight", "states", "transitions"),
    [
        ("Kip966MinIsrOne", {"MaxEpoch": 0}, 555, 1_960),
        ("OnMinIsr", {"MaxEpoch": 0}, 609, 2_019),
        ("LastKnownLoses", {"MaxLog": 0, "MaxEpoch": 1}, 2_046, 9_482),
        ("UncleanLoses", {"MaxLog": 0, "MaxEpoch": 1}, 2_046, 9_482),
        pytest.param("Kip966MinIsrOne", {"MaxEpoch": 1}, 7_714, 37_725, marks=pytest.mark.long),
        pytest.param("OnMinIsr", {"MaxEpoch": 1}, 7_472, 35_119, marks=pytest.mark.long),
        pytest.param("LastKnownLoses", {"MaxLog": 0, "MaxEpoch": 2}, 8_117, 43_141, marks=pytest.mark.long),
        pytest.param("UncleanLoses", {"MaxLog": 0, "MaxEpoch": 2}, 8_149, 43_279, marks=pytest.mark.long),
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

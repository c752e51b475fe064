"""Runs that TLC finds: counterexamples and simulations, step by step runs of the implementation."""

import pytest

from tidegauge.impl.cluster.cluster import Bounds
from tidegauge.impl.explorer.explore import Walker
from tidegauge.spec.tlc.graph import Behaviour, counterexample, simulate
from tidegauge.spec.tlc.models import find_model
from tidegauge.util.errors import SpecError

BEYOND = {"MaxLog": 9, "MaxEpoch": 7, "MaxCrash": 2}


@pytest.fixture(scope="module")
def simulated() -> list[Behaviour]:
    return simulate(find_model("Small"), 8, steps=30, seed=5, brokers=3, **BEYOND)


@pytest.mark.tlc
def test_a_simulated_run_is_a_run_of_the_implementation(simulated: list[Behaviour]) -> None:
    """Three brokers, bounds that nobody explores: each label leads where TLC says, and some run passes the small bounds."""
    walker = Walker(Bounds(3, BEYOND["MaxLog"], BEYOND["MaxEpoch"], BEYOND["MaxCrash"]))
    for run in simulated:
        cluster = walker.start
        assert walker.view(cluster) == run.states[0]
        for label, state in zip(run.labels, run.states[1:], strict=True):
            cluster = dict(walker.successors(cluster))[label]
            assert walker.view(cluster) == state
    assert max(run.states[-1][1][1] for run in simulated) > 1


@pytest.mark.tlc
def test_the_same_seed_simulates_the_same_and_another_does_not(simulated: list[Behaviour]) -> None:
    """As many runs as asked for, each as long, none twice."""
    model = find_model("Small")
    assert simulate(model, 8, steps=30, seed=5, brokers=3, **BEYOND) == simulated
    assert simulate(model, 8, steps=30, seed=6, brokers=3, **BEYOND) != simulated
    assert [len(run.labels) for run in simulated] == [30] * 8
    assert len(set(simulated)) == 8
    assert all(run.tlc.startswith("TLC2 Version") for run in simulated)


@pytest.mark.tlc
def test_what_cannot_be_simulated_is_an_error() -> None:
    """A bound that is not there, and a bound that TLC does not take."""
    with pytest.raises(SpecError, match=r"expected a constant, one of .*; seen MaxLogs"):
        simulate(find_model("Small"), 1, steps=3, seed=0, MaxLogs=1)
    with pytest.raises(SpecError, match="expected TLC to simulate, seen error"):
        simulate(find_model("Small"), 1, steps=3, seed=0, brokers=4)


@pytest.mark.parametrize("name", ["EqualEpoch", "KafkaAsItIs", "UncleanElection"])
def test_a_model_without_views_is_refused(name: str) -> None:
    """Other modules and other next-state relations have no labels that a trace could be made of."""
    with pytest.raises(SpecError, match=r"expected SPECIFICATION MCSpec of MCReplication, .*, seen \w+ of MC"):
        counterexample(find_model(name))


@pytest.mark.tlc
def test_a_model_that_holds_has_no_counterexample() -> None:
    """The error says how it ended."""
    with pytest.raises(SpecError, match="expected a safety failure to show, seen success"):
        counterexample(find_model("Interleaved"))

"""The explorer's bounds are those that a model's cfg states."""

import pytest

from tidegauge.impl.cluster.transitions import Bounds
from tidegauge.impl.explorer import isr_model
from tidegauge.spec.tlc.models import find_model, load_models
from tidegauge.traces.from_model.impl_walks import bounds_of, isr_bounds_of
from tidegauge.util.errors import SpecError


def test_bounds_are_the_constants_unless_narrowed() -> None:
    """Brokers, log, epochs, crashes, records in a response; and log starts where they move."""
    assert bounds_of(find_model("Small")) == Bounds(2, 2, 1, 1, 1)
    assert bounds_of(find_model("Small"), MaxLog=1) == Bounds(2, 1, 1, 1, 1)
    assert bounds_of(find_model("MovingStart")).max_start == find_model("MovingStart").config().number("MaxStart") > 0


@pytest.mark.parametrize("name", ["ThreadSmall", "ThreadKip320", "ThreadHwOnly"])
def test_the_fetcher_thread_truncates_where_a_cfg_says_so(name: str) -> None:
    """By what it puts in; the models without that have no such step."""
    assert bounds_of(find_model(name)).thread_truncates
    assert not bounds_of(find_model(name.removeprefix("Thread"))).thread_truncates


def test_with_clients_as_many_may_wait_as_there_can_be_records() -> None:
    """MCAcks has one producer for each record."""
    bounds = bounds_of(find_model("AcksAll"), MaxLog=1)
    assert (bounds.max_waiting, bounds.min_insync_replicas) == (1, find_model("AcksAll").config().number("MinIsr"))


@pytest.mark.parametrize(("name", "resort"), [("Kip966", ""), ("LastKnownLoses", "last-known"), ("UncleanLoses", "anybody")])
def test_with_elr_a_cfg_says_who_leads_when_nobody_may(name: str, resort: str) -> None:
    """Its SPECIFICATION does, and whether logs lose their ends is an operator it puts in."""
    bounds = bounds_of(find_model(name))
    assert (bounds.last_resort, bounds.loses_tails) == (resort, "SurvivesCrash" in find_model(name).config().substitutions)


def test_isr_changes_have_bounds_of_their_own() -> None:
    """Followers, log ends, partition epochs, restarts."""
    assert isr_bounds_of(find_model("SkipsEqual")) == isr_model.IsrBounds(2, 1, 3, 1)
    assert isr_bounds_of(find_model("ProposalsEnd"), MaxEnd=2) == isr_model.IsrBounds(1, 2, 2, 0)


def test_a_model_of_another_system_is_refused() -> None:
    """With what its cfg does not have."""
    model = next(model for model in load_models() if model.module == "MCAlterPartition")
    with pytest.raises(SpecError, match=rf"{model.name}\.cfg: expected a set for the constant Broker"):
        bounds_of(model)

"""The specification and the implementation are the same labelled graph."""

import pytest

from conformance.spec_equals_impl import Compared, compare
from impl.faults import FAULTS


@pytest.mark.tlc
def test_every_transition_of_the_specification_is_one_of_the_implementation_and_back() -> None:
    """The whole graph of the small model, both directions."""
    equality = compare(Compared("Small", "fetch-truncation", {}))
    assert equality.divergence is None, equality.divergence
    assert (equality.states, equality.transitions) == (22_393, 106_606)


@pytest.mark.tlc
@pytest.mark.parametrize(("fault", "said"), [("no-divergence-check", "HandleFetch"), ("hw-is-own-log-end", "LeaderAppend")])
def test_a_guard_taken_from_the_implementation_is_reported(fault: str, said: str) -> None:
    """The first state where they part is told, with the way to it."""
    tight = {"MaxLog": 1, "MaxEpoch": 1, "MaxCrash": 0}
    equality = compare(Compared("Small", "fetch-truncation", tight), FAULTS[fault].rules)
    assert equality.divergence is not None
    assert "first divergence after" in equality.divergence
    assert said in equality.divergence

"""Schedules drawn by hypothesis over the whole cluster: after every step every invariant holds.

Rules of this file

1. A step draws an action first, then one of its moves, so that a crash is as likely as a fetch. A failure prints the
   steps, and the blob that replays them.
2. A wrong rule goes through the same machine, with one invariant, and has to be caught. Those runs are derandomized: they
   draw the same schedules every time.
"""

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tidegauge.impl.cluster.cluster import Bounds
from tidegauge.impl.explorer.explore import Walker
from tidegauge.impl.explorer.faults import FAULTS
from tidegauge.impl.explorer.invariants import INVARIANTS, violated

FAR = Bounds(brokers=3, max_log=6, max_epoch=6, max_crashes=3, max_fetch=2)
NEAR = Bounds(brokers=2, max_log=3, max_epoch=3, max_crashes=2)


class Schedules(RuleBasedStateMachine):
    """A walk through the cluster."""

    walker = Walker(FAR)
    asked: tuple[str, ...] = tuple(INVARIANTS)

    def __init__(self) -> None:
        super().__init__()
        self.state = self.walker.start

    @precondition(lambda self: self.walker.transitions(self.state))
    @rule(data=st.data())
    def act(self, data: st.DataObject) -> None:
        transitions = {transition.label: transition for transition in self.walker.transitions(self.state)}
        action = data.draw(st.sampled_from(sorted({label[0] for label in transitions})))
        label = data.draw(st.sampled_from([label for label in transitions if label[0] == action]))
        self.state = self.walker.take(self.state, transitions[label])

    @rule()
    def rest(self) -> None:
        """Nothing happens: within its bounds a cluster may come to an end."""

    @invariant()
    def holds(self) -> None:
        violation = violated(self.state, self.asked)
        assert violation is None, f"{violation}"


class Today(Schedules):
    """Every state is one of the specification, too: impl.explorer.spec_view refuses the others."""

    @invariant()
    def is_a_state_of_the_specification(self) -> None:
        self.walker.view(self.state)


class Repaired(Today):
    """A leader elected again forgets what it recorded."""

    walker = Walker(FAR, "repaired")


SCHEDULES = settings(max_examples=settings.default.max_examples // 3, stateful_step_count=50)
TestToday = Today.TestCase
TestToday.settings = SCHEDULES
TestRepaired = Repaired.TestCase
TestRepaired.settings = SCHEDULES


CAUGHT = {
    "HwWithinLog": "hw-not-clamped",
    "LogMatchingBelowHw": "no-divergence-check",
    "LeaderCompleteness": "hw-is-own-log-end",
    "IsrCompleteness": "joins-at-epoch-start",
    "NoFalseExposure": "follower-exposes-its-log",
    "EpochCacheWellFormed": "assign-never-evicts",
}
"""Invariant -> a wrong rule that breaks it within some hundred schedules. What is too rare for that, epochs that fall along
a log and a leader's ISR that lost a member, tests/impl/explorer/test_explore.py finds by searching all of them."""


@pytest.mark.parametrize("invariant_", CAUGHT)
def test_a_wrong_rule_is_caught_by_the_invariant(invariant_: str) -> None:
    """Asked alone."""
    walker = Walker(NEAR, rules=FAULTS[CAUGHT[invariant_]].rules)
    wrong = type("Wrong", (Schedules,), {"walker": walker, "asked": (invariant_,)})
    once = settings(
        max_examples=500, stateful_step_count=50, derandomize=True, database=None, phases=[Phase.generate], print_blob=False
    )
    with pytest.raises(AssertionError, match=f"invariant='{invariant_}'"):
        run_state_machine_as_test(wrong, settings=once)  # type: ignore[no-untyped-call]

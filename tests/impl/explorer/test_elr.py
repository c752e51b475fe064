"""Eligible leader replicas (KIP-966) in the explored cluster: who may lead, and what a log that lost its end may cost."""

import pytest

from tests.impl.reached import reached
from tidegauge.impl.cluster.cluster import Bounds, Label, initial, step
from tidegauge.impl.cluster.controller import Controller
from tidegauge.impl.cluster.transitions import ANYBODY, LAST_KNOWN
from tidegauge.impl.explorer.explore import Walker, explore, find_violation
from tidegauge.impl.explorer.invariants import INVARIANTS, violated
from tidegauge.impl.explorer.spec_view import view
from tidegauge.impl.profiles import ELR, Rules
from tidegauge.impl.rules import UNDEFINED

TWO = Bounds(2, 1, 1, 1, min_insync_replicas=2, loses_tails=True)
ALONE = TWO._replace(min_insync_replicas=1)
"""One replica may commit alone."""

JOINING: list[Label] = [
    ("FenceElr", 1, -1),
    ("BecomeLeader", 0),
    ("SendFetch", 1),
    ("HandleFetch", 0, 1, 1),
    ("CrashAndLose", 1, 0, 0),
    ("Register", 1, -1),
    ("UnfenceElr", 1, -1),
]
"""b1 proposes b2 for the ISR, and b2 is another incarnation when the controller hears of it."""


@pytest.mark.parametrize("bounds", [TWO, ALONE, TWO._replace(loses_tails=False)])
def test_every_invariant_holds(bounds: Bounds) -> None:
    """Any stop may lose any end of a log, and whoever may be elected from the ISR or the ELR has what was committed."""
    assert find_violation(bounds, "elr") is None


def test_a_high_watermark_that_moves_below_min_isr_passes_an_eligible_replica() -> None:
    """KAFKA-15583: after four states, as in MCELR/NoMinIsr.cfg."""
    transitions = Rules()._replace(under_min_isr=lambda _members, _min_isr, _replicas: False)
    found = find_violation(TWO._replace(max_epoch=2), "elr", transitions)
    assert found is not None
    assert (found.violation.invariant, len(found.states)) == ("ElectableCompleteness", 4)


@pytest.mark.parametrize(("last_resort", "action"), [(LAST_KNOWN, "ElectLastKnown"), (ANYBODY, "ElectAnybody")])
def test_a_last_resort_is_taken_when_nobody_may_be_elected(last_resort: str, action: str) -> None:
    """Both brokers lost their logs, so nobody is left; without a last resort nobody is elected then."""
    bounds = Bounds(2, 0, 2, 2, min_insync_replicas=2, loses_tails=True)
    graph = explore(bounds._replace(last_resort=last_resort), "elr")
    taken = [(graph.states[a][1], graph.states[b][1]) for a, label, b in graph.edges if graph.labels[label][0] == action]
    assert taken
    for (leader, epoch, isr, live, elr, last, *_), (elected, next_epoch, alone, *_) in taken:
        assert (leader, isr, elr & live, next_epoch) == (UNDEFINED, 0, 0, epoch + 1)
        assert alone == 1 << elected
        assert live >> elected & 1
        assert action == "ElectAnybody" or elected == last
    without = explore(bounds, "elr")
    assert action not in {label[0] for label in without.labels}


def test_a_last_resort_may_lose_what_was_committed() -> None:
    """That is why it is the last one."""
    run: list[Label] = [
        ("LeaderAppend", 0),
        ("SendFetch", 1),
        ("HandleFetch", 0, 1, 0),
        ("HandleFetchResponse", 1, 0),
        ("HandleFetch", 0, 1, 0),
        ("CrashAndLose", 0, 0, 0),
        ("CrashAndLose", 1, 0, 0),
        ("Register", 1, -1),
        ("Register", 0, -1),
        ("UnfenceElr", 0, -1),
        ("ElectLastKnown", 0),
    ]
    state = reached(Bounds(2, 1, 3, 2, min_insync_replicas=2, loses_tails=True, last_resort=LAST_KNOWN), run, ELR)
    assert state.committed == (0,)
    violation = violated(state)
    assert violation is not None
    assert (violation.invariant, violation.brokers) == ("ElectableCompleteness", (0,))


def test_a_stop_is_clean_until_the_broker_is_back() -> None:
    """What it had below its high watermark is there; it comes back out of the ISR, and eligible."""
    stopped = reached(TWO, [("Stop", 1)], ELR)
    assert (stopped.crashes, stopped.brokers[1].stopped_cleanly) == (1, True)
    back = step(stopped, ("Register", 1, -1))
    assert (back.controller.isr, back.controller.elr, back.controller.live) == ((0,), (1,), (0,))
    assert not back.brokers[1].stopped_cleanly
    lost = reached(TWO, [("CrashAndLose", 1, 0, 0), ("Register", 1, -1)], ELR)
    assert (lost.controller.isr, lost.controller.elr) == ((0,), ())


def test_a_proposal_of_a_broker_that_registered_again_is_refused() -> None:
    """KIP-903: its broker epoch is not the one that was sent. Forgotten, an empty replica would join."""
    state = reached(TWO._replace(max_epoch=2), JOINING, ELR)
    assert view(state)[1][4:] == (0, UNDEFINED, 0, (0b10, 0))
    refused = step(state, ("AlterPartitionElr", 0))
    assert refused.controller.isr == (0,)
    assert not refused.brokers[0].partition.state.is_inflight
    uncounted = state._replace(controller=state.controller._replace(incarnations=()))
    assert step(uncounted, ("AlterPartitionElr", 0)).controller.isr == (0, 1)


def test_three_brokers_keep_what_was_committed() -> None:
    """Walks beyond what can be explored; a log that lost its end is filled again before it counts."""
    walker = Walker(Bounds(3, 8, 8, 4, 4, min_insync_replicas=2, loses_tails=True), "elr")
    state = walker.start
    for number in range(400):
        transitions = walker.transitions(state)
        state = walker.take(state, transitions[(number * 7919) % len(transitions)]) if transitions else walker.start
        assert violated(state) is None


@pytest.mark.parametrize(
    ("invariant", "image"),
    [
        ("ElrIsApart", Controller((0, 1), 0, 1, (0,), (0, 1), elr=(0, 1))),
        ("ElrIsApart", Controller((0, 1), 0, 1, (0, 1), (0, 1), elr=(1,))),
        ("ElectsWhomItCan", Controller((0, 1), UNDEFINED, 1, (), (0, 1), elr=(1,))),
        ("ElectsWhomItCan", Controller((0, 1), UNDEFINED, 1, (0,), (0, 1))),
        ("LeaderIsLive", Controller((0, 1), 1, 1, (1,), (0,), elr=(0,))),
        ("LastLeaderIsLast", Controller((0, 1), 0, 1, (0,), (0, 1), elr=(1,), last_known_elr=(1,))),
    ],
)
def test_an_invariant_catches_a_registration_that_no_change_makes(invariant: str, image: Controller) -> None:
    """Made by hand: impl.controller.partition_change never does."""
    state = initial(TWO, ELR)
    assert INVARIANTS[invariant](state) is None
    violation = INVARIANTS[invariant](state._replace(controller=image))
    assert violation is not None
    assert violation.invariant == invariant

"""Traces against the spec by TLC."""

import random
from dataclasses import replace

import pytest

from tidegauge.impl.cluster.cluster import Bounds
from tidegauge.impl.explorer.explore import Walker
from tidegauge.spec.tlc.graph import Behaviour
from tidegauge.spec.tlc.models import find_model
from tidegauge.util.errors import SpecError
from validation.trace_validation import (
    NONE,
    UNKNOWN,
    StepObservation,
    observe_behaviour,
    validate_traces,
)

SMALL = find_model("Small")

# A record is appended, fetched and committed; then leadership moves.
GOLDEN = [
    StepObservation("LeaderAppend", 0, leo=1, hw=0),
    StepObservation("SendFetch", 1, leo=0),
    StepObservation("HandleFetch", 0, peer=1, leo=1, hw=0),
    StepObservation("HandleFetchResponse", 1, peer=0, leo=1, hw=0),
    StepObservation("HandleFetch", 0, peer=1, leo=1, hw=1),
    StepObservation("HandleFetchResponse", 1, peer=0, leo=1, hw=0),
    StepObservation("ElectPreferred", NONE, peer=1, epoch=1, leader=1),
    StepObservation("BecomeLeader", 1, leo=1, hw=0, epoch=1, role=1),
]


def changed(at: int, **fields: int) -> list[StepObservation]:
    return [*GOLDEN[:at], replace(GOLDEN[at], **fields), *GOLDEN[at + 1 :]]  # type: ignore[arg-type]


@pytest.mark.tlc
def test_a_golden_trace_is_accepted_and_each_mutant_rejected_where_it_lies() -> None:
    """One changed value, one dropped event, two swapped events: each is rejected at the first step that cannot be."""
    mutants = {
        0: changed(0, leo=2),
        4: changed(4, hw=0),
        5: changed(5, hw=1),
        7: changed(7, hw=1),
        1: [GOLDEN[0], *GOLDEN[2:]],
        3: [*GOLDEN[:3], GOLDEN[4], GOLDEN[3], *GOLDEN[5:]],
        6: changed(6, epoch=2),
    }
    verdicts = validate_traces([GOLDEN, *mutants.values()], SMALL).verdicts
    assert verdicts[0] == (True, len(GOLDEN))
    assert [(verdict.accepted, verdict.matched) for verdict in verdicts[1:]] == [(False, at) for at in mutants]


@pytest.mark.tlc
def test_what_is_unknown_is_left_open() -> None:
    """A trace that tells only which actions happened is accepted, with peers and all values open."""
    blind = [StepObservation(observation.action, observation.node) for observation in GOLDEN]
    assert validate_traces([blind], SMALL).verdicts == ((True, len(GOLDEN)),)
    assert blind[2].peer == UNKNOWN


@pytest.mark.tlc
def test_the_profile_decides(hw_only_loss: Behaviour) -> None:
    """The run in which hw-only loses a committed record is a behaviour of hw-only and not of fetch-truncation."""
    found = hw_only_loss
    trace = observe_behaviour(found.states, found.labels, ["leo", "hw", "epoch", "leader", "role"])
    assert validate_traces([trace], find_model("HwOnly")).verdicts[0].accepted
    rejected = validate_traces([trace], SMALL).verdicts[0]
    assert not rejected.accepted
    assert found.labels[rejected.matched] == ("BecomeFollower", 1)


# What MCReplication/MissedEpoch.cfg finds: b3 leads an epoch that b1 never reads and b2 truncates its log there; b1, leader
# again, still counts b2's log end from before.
MISSED = [
    StepObservation("LeaderAppend", 0, leo=1, hw=0),
    StepObservation("SendFetch", 1),
    StepObservation("HandleFetch", 0, peer=1),
    StepObservation("HandleFetchResponse", 1, peer=0, leo=1),
    StepObservation("HandleFetch", 0, peer=1, hw=0),
    StepObservation("ElectPreferred", NONE, peer=2, epoch=1, leader=2),
    StepObservation("BecomeLeader", 2, leo=0, epoch=1),
    StepObservation("BecomeFollower", 1, epoch=1, leader=2),
    StepObservation("HandleFetch", 2, peer=1),
    StepObservation("HandleDivergingResponse", 1, peer=2, leo=0),
    StepObservation("FenceBroker", NONE, peer=2, epoch=2, leader=0),
    StepObservation("BecomeLeader", 0, leo=1, hw=1, epoch=2),
]


@pytest.mark.tlc
def test_the_repair_forbids_the_run_of_the_missed_epoch() -> None:
    """Kafka as it is commits the record in the last step; a leader that forgets its followers cannot."""
    as_it_is, repaired = find_model("MissedEpochFromInit"), find_model("RepairedFromInit")
    assert validate_traces([MISSED], as_it_is, brokers=3).verdicts == ((True, len(MISSED)),)
    assert validate_traces([MISSED], repaired, brokers=3).verdicts == ((False, len(MISSED) - 1),)


def test_what_is_no_observation_is_refused() -> None:
    """Unknown actions, unknown fields, no traces and too many brokers are errors that say what was expected."""
    with pytest.raises(SpecError, match=r"one of AlterPartition, .*; seen 'LeaderApend'"):
        validate_traces([[StepObservation("LeaderApend", 0)]], SMALL)
    with pytest.raises(SpecError, match="seen lso"):
        observe_behaviour([], [], ["lso"])
    with pytest.raises(SpecError, match="at least one trace"):
        validate_traces([], SMALL)
    with pytest.raises(SpecError, match=r"1 to 3 brokers.*seen 4"):
        validate_traces([GOLDEN], SMALL, brokers=4)


@pytest.mark.tlc
def test_walks_of_the_implementation_are_behaviours_of_the_spec() -> None:
    """Random runs of three brokers, beyond any bound that is explored whole, fit the spec in all that is seen of them."""
    chance = random.Random(18991)
    walker = Walker(Bounds(3, 5, 6, 2))
    traces = []
    for _ in range(40):
        cluster = walker.start
        states, labels = [walker.view(cluster)], []
        for _ in range(30):
            label, cluster = chance.choice(walker.successors(cluster))
            labels.append(label)
            states.append(walker.view(cluster))
        traces.append(observe_behaviour(states, labels, ["leo", "hw", "epoch", "leader", "role"]))
    verdicts = validate_traces(traces, SMALL, brokers=3).verdicts
    assert all(verdict.accepted for verdict in verdicts)

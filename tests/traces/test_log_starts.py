"""Log starts that move, as events: told where they are not 0, and judged."""

from dataclasses import replace

import pytest

from tidegauge.conformance.engine.judge import judge
from tidegauge.impl.cluster.cluster import Bounds, Label, initial, step
from tidegauge.impl.explorer.explore import Graph, explore
from tidegauge.impl.explorer.spec_view import view
from tidegauge.impl.profiles import FETCH_TRUNCATION
from tidegauge.traces.columns import to_columns
from tidegauge.traces.from_model.behaviour import events_of_step, numbered, trace_of_path
from tidegauge.traces.schema import EVENTS, Event, Trace

BOUNDS = Bounds(brokers=2, max_log=2, max_epoch=2, max_crashes=1, max_start=2)

ELECTED: tuple[Label, ...] = (
    ("LeaderAppend", 0),
    ("FenceBroker", 0, 1),
    ("BecomeLeader", 1),
    ("LeaderAppend", 1),
    ("BecomeFollower", 0),
    ("DeleteRecords", 1, 1),
)
"""b1 holds a record of epoch 0 where b2, the leader of epoch 1, has committed and deleted one of its own."""


def played(*labels: Label) -> Trace:
    states = [initial(BOUNDS, FETCH_TRUNCATION)]
    for label in labels:
        states.append(step(states[-1], label))
    return trace_of_path([view(state) for state in states], labels, name="x")


def failing(trace: Trace) -> set[str]:
    return {failure.rule for failure in judge(to_columns([trace], trace.config), trace.config).failures}


def last(trace: Trace, name: str) -> Event:
    return [event for event in trace.events if event.event == name][-1]


@pytest.fixture(scope="module")
def graph() -> Graph:
    return explore(Bounds(2, 1, 1, 0, max_start=1))


def test_a_log_start_that_moves_is_told_with_the_high_watermark() -> None:
    """By whoever moves it."""
    event = played(*ELECTED).events[-1]
    assert (event.node, event.event, event.fields) == (2, "LogStartMoved", {"log_start": 1, "hw": 1})


def test_a_response_tells_the_leaders_log_start_and_the_follower_its_own() -> None:
    """Taken over by a follower whose fetch was in range."""
    trace = played(*ELECTED, ("HandleFetch", 1, 0, 0), ("HandleFetchResponse", 0, 1))
    assert last(trace, "HandleFetch").fields["res_log_start"] == 1
    taken = last(trace, "HandleFetchResponse").fields
    assert (taken["res_log_start"], taken["log_start"], taken["hw"]) == (1, 1, 1)
    assert failing(trace) == set()


def test_a_reset_and_a_restart_tell_the_log_start() -> None:
    """To the leader's start when the follower is before it; from disk it is what it was."""
    behind = (*ELECTED[:4], ("LeaderAppend", 1), ELECTED[4], ("DeleteRecords", 1, 2))
    trace = played(*behind, ("HandleFetch", 1, 0, 0), ("HandleOutOfRange", 0, 1))
    reset = last(trace, "HandleOutOfRange").fields
    assert (reset["leader_start"], reset["target"], reset["log_start"], reset["hw"]) == (2, 2, 2, 2)
    assert failing(trace) == set()
    back = (("Crash", 1, 2, 2), ("FenceBroker", 1, -1), ("Restart", 1))
    start = last(played(*behind, *back), "Start").fields
    assert (start["log_start"], start["leo"], start["epochs"]) == (2, 2, ())


def test_every_step_has_events_of_the_schema_and_0_is_not_told(graph: Graph) -> None:
    """A log start is told where it is not 0, or where all of the log is told; nothing is silent but a lost response."""
    moved = 0
    for src, label, dst in graph.edges:
        for event in events_of_step(graph.states[src], graph.labels[label], graph.states[dst]):
            assert set(event.fields) <= set(EVENTS[event.event].fields)
            assert event.event == "Start" or event.fields.get("log_start") != 0
            assert event.fields.get("res_log_start") != 0
            moved += event.event == "LogStartMoved"
    assert moved > 100


def test_the_judge_promises_nothing_of_what_was_deleted() -> None:
    """The later leader has another record where the earlier one deleted what it had committed; untold, it is a loss."""
    elected = (("HandleFetch", 1, 0, 1), ("AlterPartition", 1), ("ElectPreferred", 0), ("BecomeLeader", 0))
    trace = played(*ELECTED, *elected)
    assert failing(trace) == set()
    untold = replace(trace, events=numbered([event for event in trace.events if event.event != "LogStartMoved"]))
    assert "DATA-01" in failing(untold)


@pytest.mark.parametrize(("reported", "rule"), [({"log_start": 2}, "HW-10"), ({"log_start": 0}, "LOG-01")])
def test_a_log_start_that_cannot_be_is_rejected(reported: dict[str, int], rule: str) -> None:
    """Above the high watermark, or back."""
    trace = played(*ELECTED)
    wrong = Event(2, "LogStartMoved", {**trace.events[-1].fields, **reported})
    assert rule in failing(replace(trace, events=(*trace.events, wrong)))

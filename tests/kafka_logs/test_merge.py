"""Nodes are put in one order by causality, not by their clocks."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tidegauge.traces.kafka_logs import Capture, read
from tidegauge.traces.kafka_logs.capture import shipped
from tidegauge.traces.kafka_logs.correlation.merge import merge
from tidegauge.traces.kafka_logs.nodes.logged_broker import LoggedStep
from tidegauge.traces.schema import Event, Trace

HOUR = 3_600_000_000


def step(node: int, name: str, index: int, time: int, **fields: object) -> LoggedStep:
    return LoggedStep(node, "alpha-0", name, dict(fields), f"n{node}:{index}", time, (0, index, 0, 0))


def test_a_fetch_is_sent_before_it_is_handled_whatever_the_clocks_say() -> None:
    """The leader's clock is an hour behind: cause first all the same."""
    sent, handled = step(2, "SendFetch", 1, HOUR), step(1, "HandleFetch", 1, 5)
    sent.provides += ("fetch",)
    handled.depends_on += ("fetch",)
    merged = merge([handled, sent])
    assert merged.steps == (sent, handled)
    assert (merged.ties, merged.dropped) == (1, 0)


def test_steps_of_one_node_stay_in_their_order_whatever_their_times() -> None:
    """A line of another thread may stand a little back."""
    first, second = step(1, "LeaderAppend", 1, 9), step(1, "LeaderAppend", 2, 5)
    assert merge([second, first]).steps == (first, second)


def test_what_nothing_ties_goes_by_time_and_then_by_node() -> None:
    """So the same logs always give the same trace."""
    late, early, twin = step(1, "LeaderAppend", 1, 9), step(2, "SendFetch", 1, 5), step(3, "SendFetch", 1, 5)
    assert merge([late, twin, early]).steps == (early, twin, late)


def test_a_circle_is_broken_and_counted() -> None:
    """Two nodes that each wait for the other's later step."""
    one, two = step(1, "HandleFetch", 1, 1), step(1, "AnswerFetch", 2, 2)
    three, four = step(2, "HandleFetchResponse", 1, 1), step(2, "SendFetch", 2, 2)
    four.provides += ("sent",)
    one.depends_on += ("sent",)
    two.provides += ("answered",)
    three.depends_on += ("answered",)
    merged = merge([one, two, three, four])
    assert merged.dropped == 1
    assert sorted(map(id, merged.steps)) == sorted(map(id, (one, two, three, four)))
    assert merged.steps.index(one) < merged.steps.index(two)


def test_an_end_comes_after_all_that_it_depends_on_and_counts_each() -> None:
    """The end of a process is tied to each of its requests; of a circle, what was done before still comes before it."""
    ends, handled = step(2, "Crash", 1, 1), [step(1, "ProduceAck", index, index) for index in (1, 2, 3)]
    for one in handled:
        one.provides += ("handled",)
    ends.depends_on += ("handled",)
    merged = merge([ends, *handled])
    assert (merged.steps, merged.ties, merged.concurrent) == ((*handled, ends), 3, 0)
    ends.provides += ("ended",)
    handled[2].depends_on += ("ended",)
    merged = merge([ends, *handled])
    assert (merged.steps, merged.ties) == ((*handled[:2], ends, handled[2]), 4)
    assert (merged.dropped, merged.concurrent) == (1, 0)


def test_a_commit_and_a_loss_that_nothing_ties_are_counted_as_concurrent() -> None:
    """An acknowledgement at one node, a truncation at another: the order shown is one of two."""
    ack, truncated = step(1, "ProduceAck", 1, 1), step(2, "HandleDivergingResponse", 1, 2)
    assert merge([ack, truncated]).concurrent == 1
    ack.provides += ("told",)
    truncated.depends_on += ("told",)
    assert merge([ack, truncated]).concurrent == 0


@pytest.mark.parametrize("by", [HOUR, -HOUR])
def test_a_wrong_clock_changes_no_cause(
    by: int, capture: Callable[[str], Capture], shifted: Callable[[str, str, int], Path]
) -> None:
    """One broker an hour off: the same events, the same order on every node, the same matches, no tie lost."""
    straight = capture("4.2.0/b-kill-leader")
    crooked = read(shifted("4.2.0/b-kill-leader", "n2", by))
    assert crooked.summary.ties_dropped == 0
    assert crooked.summary.fetches_matched == straight.summary.fetches_matched
    for one, other in zip(straight.traces, crooked.traces, strict=True):
        for node in (1, 2, 3, 100):
            assert _reported(one, node) == _reported(other, node)


def _reported(trace: Trace, node: int) -> list[tuple[str, object, str]]:
    return [(e.event, e.fields, e.at) for e in trace.events if e.node == node]


def test_leader_epochs_are_given_before_they_are_taken(capture: Callable[[str], Capture]) -> None:
    """No broker takes a role of a partition epoch the controller has not set yet, and none is set twice."""
    for name in shipped():
        for trace in capture(name).traces:
            given: list[object] = []
            for event in trace.events:
                if event.event == "ChangePartition":
                    assert event.fields["partition_epoch"] not in given
                    given.append(event.fields["partition_epoch"])
                elif event.event in ("BecomeLeader", "BecomeFollower"):
                    assert event.fields["partition_epoch"] in given, event.at


def test_the_same_logs_give_the_same_trace(capture: Callable[[str], Capture]) -> None:
    """Event by event."""

    def reported(one: Capture) -> list[tuple[Event, ...]]:
        return [trace.events for trace in one.traces]

    assert reported(read(shipped()["4.2.0/d-unclean"])) == reported(capture("4.2.0/d-unclean"))


@pytest.mark.parametrize("name", sorted(shipped()))
def test_no_tie_is_dropped_and_no_response_unexplained(name: str, capture: Callable[[str], Capture]) -> None:
    """In a capture of real brokers the known order never contradicts itself."""
    summary = capture(name).summary
    assert (summary.ties_dropped, summary.unexplained) == (0, 0)
    assert summary.ties > 400
    assert [p for p in capture(name).problems if p.seen != "an empty file"] == []

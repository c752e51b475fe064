"""What the judge says of the captures: the broken brokers are named, the others are not accused."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tidegauge.conformance.engine.judge import Judgement, judge
from tidegauge.traces.columns import to_columns
from tidegauge.traces.kafka_logs import Capture, read
from tidegauge.traces.kafka_logs.capture import shipped
from tidegauge.traces.schema import Trace

HOUR = 3_600_000_000
Shift = Callable[[str, str, int], Path]
BROKEN = {
    # KAFKA-14704: a diverging response moves the high watermark
    "3.4.0/b-kill-leader": {("alpha-0", "HW-06")},
    # the high watermark rises over a replica that has not fetched in this leader epoch, and committed data is lost
    "4.2.0/k-epoch-jump": {("alpha-0", "HW-08"), ("alpha-0", "DATA-01"), ("alpha-0", "DATA-03")},
    # KAFKA-14139: the last member of the ISR is elected with a disk that is empty
    "3.9.1/m-lost-disk": {("alpha-0", "DATA-01"), ("alpha-0", "DATA-03")},
    # F4: replicas that were removed stay eligible, and an empty one is elected
    "4.3.1/l-ghost-elr": {("alpha-1", rule) for rule in ("CTRL-06", "CTRL-07", "DATA-01", "DATA-03")},
}


def judged(trace: Trace) -> Judgement:
    return judge(to_columns([trace], trace.config), trace.config)


def broken(capture: Capture) -> set[tuple[str, str]]:
    """(topic-partition, rule) of everything that failed."""
    return {(trace.tp, rule) for trace in capture.traces for rule, tally in judged(trace).tallies.items() if tally.failed}


@pytest.mark.parametrize("name", sorted(shipped()))
def test_a_capture_breaks_exactly_the_rules_its_broker_breaks(name: str, capture: Callable[[str], Capture]) -> None:
    """Those that are broken and no others; and the conforming ones were really checked."""
    assert broken(capture(name)) == BROKEN.get(name, set())
    held = {rule for trace in capture(name).traces for rule, tally in judged(trace).tallies.items() if tally.held}
    assert {"HW-01", "HW-05", "FETCH-01", "FETCH-04", "EPOCH-03", "ACK-01"} <= held


def test_fetches_that_are_alike_share_their_fields_and_have_the_columns_of_copies(capture: Callable[[str], Capture]) -> None:
    """An idle replica's fetches are most of a log."""
    for trace in capture("4.2.0/a-steady").traces:
        events = [replace(event, fields=dict(event.fields)) for event in trace.events]
        assert len({id(event.fields) for event in trace.events}) < len(events)
        shared, copied = (to_columns([one], one.config) for one in (trace, replace(trace, events=tuple(events))))
        assert shared.ints.keys() == copied.ints.keys()
        assert all(np.array_equal(column, copied.ints[name]) for name, column in shared.ints.items())
        for name in ("event", "node", "epochs_reported", "epochs_at", "epochs"):
            assert np.array_equal(getattr(shared, name), getattr(copied, name))


def test_14704_is_found_at_the_line_of_broker_1(capture: Callable[[str], Capture]) -> None:
    """The first failure is the event that took the high watermark of a diverging response."""
    alpha = next(trace for trace in capture("3.4.0/b-kill-leader").traces if trace.tp == "alpha-0")
    first = judged(alpha).failures[0]
    event = alpha.events[first.row]
    assert (first.rule, event.node, event.event, event.at) == ("HW-06", 1, "HandleFetchResponse", "n1/server.log:719")


def test_the_epoch_jump_is_found_where_broker_1_becomes_leader(capture: Callable[[str], Capture]) -> None:
    """HW-08 at the BecomeLeader of epoch 2; the data is missed when broker 2 becomes leader."""
    alpha = next(trace for trace in capture("4.2.0/k-epoch-jump").traces if trace.tp == "alpha-0")
    at = {failure.rule: alpha.events[failure.row].at for failure in judged(alpha).failures}
    assert at["HW-08"] == "n1/server.log:132"
    assert at["DATA-01"] == "n2/server.log:540"


def test_the_ghost_elr_is_found_where_the_controller_keeps_it(capture: Callable[[str], Capture]) -> None:
    """CTRL-06 when the replicas are removed, CTRL-07 when they come back; the loss when the empty one becomes leader."""
    alpha = next(trace for trace in capture("4.3.1/l-ghost-elr").traces if trace.tp == "alpha-1")
    failures = judged(alpha).failures
    assert [(failure.rule, alpha.events[failure.row].at) for failure in failures] == [
        ("CTRL-06", "n100/server.log:257"),
        ("CTRL-07", "n100/server.log:339"),
        ("DATA-01", "n2/server.log:755"),
        ("DATA-03", "n2/server.log:755"),
    ]
    assert [(failure.expected, failure.actual) for failure in failures[2:]] == [(45, 0), (45, 0)]


CLOCKS = [
    case
    for name in ("3.4.0/b-kill-leader", "4.2.0/k-epoch-jump", "4.2.0/d-unclean", "4.2.0/a-steady")
    for node in ("n1", "n2", "n3", "n100")
    for case in ((name, node, HOUR), (name, node, -HOUR))
]


@pytest.mark.parametrize(("name", "node", "by"), CLOCKS)
def test_the_verdict_does_not_hang_on_clocks(name: str, node: str, by: int, shifted: Shift) -> None:
    """Another causally correct order of the same logs breaks the same rules."""
    assert broken(read(shifted(name, node, by))) == BROKEN.get(name, set())

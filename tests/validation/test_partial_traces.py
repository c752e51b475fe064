"""Right traces with parts left out never fail: what is absent is unknown."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegauge.conformance.checking.rules_outside_kernel import judge_sequence
from tidegauge.conformance.engine.judge import Judgement, judge
from tidegauge.traces.columns import to_columns
from tidegauge.traces.formats import ndjson
from tidegauge.traces.schema import EVENTS, Trace
from validation import partial_traces
from validation.golden import DIRECTORY
from validation.partial_traces import ONE_BY_ONE

UNCOMPILED = 10**9


@cache
def right_traces() -> tuple[Trace, ...]:
    """The golden traces that break no rule."""
    traces = [ndjson.read(path).traces[0] for path in sorted(DIRECTORY.glob("*.ndjson"))]
    return tuple(trace for trace in traces if "breaks" not in trace.config.extra)


def judged(*traces: Trace) -> Judgement:
    columns = to_columns(traces, traces[0].config)
    return judge_sequence(judge(columns, traces[0].config, compile_from=UNCOMPILED), traces, columns)


def by_config(left: Iterator[tuple[str, Trace]]) -> Iterator[list[tuple[str, Trace]]]:
    groups: dict[str, list[tuple[str, Trace]]] = {}
    for what, trace in left:
        groups.setdefault(repr(trace.config), []).append((what, trace))
    yield from groups.values()


@pytest.mark.parametrize("leave_out", ONE_BY_ONE, ids=lambda function: function.__name__)
def test_no_single_omission_makes_a_right_trace_fail(leave_out: partial_traces.LeaveOut) -> None:
    """Every value, field, kind, node and line of every golden trace, one by one."""
    wrong = []
    for trace in right_traces():
        for group in by_config(leave_out(trace)):
            failures = judged(*(one for _, one in group)).failures
            wrong += [f"{trace.name} without {group[failure.trace][0]}: {failure.rule}" for failure in failures]
    assert wrong == []


def test_a_change_of_min_insync_replicas_may_be_among_missing_lines_of_the_controller() -> None:
    """Nor does a broker report it before the controller uses it: SetMinIsr and both ReadConfig are missing."""
    trace = next(trace for trace in right_traces() if trace.name == "golden/raised-too-late-repaired")
    rows = [row for row, event in enumerate(trace.events) if event.event in ("SetMinIsr", "ReadConfig")][:3]
    assert [trace.events[row].event for row in rows] == ["SetMinIsr", "ReadConfig", "ReadConfig"]
    assert judged(partial_traces.lines_left_out(trace, rows)).failures == ()


@given(data=st.data())
def test_no_set_of_omissions_makes_a_right_trace_fail(data: st.DataObject) -> None:
    """Fields, lines, nodes and kinds together."""
    trace = data.draw(st.sampled_from(right_traces()))
    fields = sorted({(event.event, name) for event in trace.events for name in event.fields})
    left = partial_traces.fields_left_out(trace, data.draw(st.sets(st.sampled_from(fields), max_size=len(fields))))
    nodes = sorted({event.node for event in trace.events})
    left = partial_traces.nodes_left_out(left, data.draw(st.sets(st.sampled_from(nodes), max_size=2)))
    if data.draw(st.booleans()):
        left = partial_traces.kinds_left_out(left, data.draw(st.sets(st.sampled_from(sorted(EVENTS)), max_size=4)))
    if data.draw(st.booleans()):
        left = partial_traces.lines_left_out(left, data.draw(st.sets(st.integers(0, len(trace.events)))))
    assert judged(left).failures == ()


def test_what_is_left_out_undeclared_is_found() -> None:
    """A judge that forgave everything would pass the tests above: undeclared, and without a gap in the numbers, it fails."""
    trace = next(trace for trace in right_traces() if trace.name == "golden/commit")
    events = tuple(event for event in trace.events if event.event != "SendFetch")
    undeclared = replace(trace, events=partial_traces.renumbered(events))
    assert {failure.rule for failure in judged(undeclared).failures} == {"FETCH-04"}

"""Runs of spec/AlterPartition.tla as traces, where TLC's runs end too early to show it."""

from dataclasses import replace

import pytest

from tidegauge.conformance.engine.judge import judge
from tidegauge.impl.rules import INELIGIBLE_REPLICA
from tidegauge.spec.tlc.models import find_model
from tidegauge.spec.tlc.tlc import run_tlc
from tidegauge.traces.columns import to_columns
from tidegauge.traces.from_model.isr_changes import trace_of_isr_changes
from tidegauge.traces.schema import Trace


def failing(trace: Trace) -> set[str]:
    return {failure.rule for failure in judge(to_columns([trace], trace.config), trace.config).failures}


@pytest.mark.tlc
def test_a_refusal_names_what_was_proposed() -> None:
    """It carries no ISR, so the leader can only say which proposal it gives up; the judge compares the two."""
    model = find_model("ReachRefused")
    steps = run_tlc(model.module, model.config().text()).counterexample
    last = steps[-1]
    asked = last.state["channel"]["asked"]
    given_up = {**last.state, "channel": {"type": "nothing"}, "pending": frozenset()}
    trace = trace_of_isr_changes((*steps, replace(last, action="HandleAlterPartitionResponse", state=given_up)), "t", "s")
    reported = trace.events[-1]
    assert (reported.event, reported.fields["error"]) == ("HandleAlterPartitionResponse", INELIGIBLE_REPLICA)
    assert len(reported.fields["isr"]) == len(asked)
    assert failing(trace) == set()
    another = replace(reported, fields={**reported.fields, "isr": (1,)})
    assert failing(replace(trace, events=(*trace.events[:-1], another))) == {"ISR-03"}

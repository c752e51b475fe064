"""The judge and TLC about the same traces."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tidegauge.spec.tlc.models import find_model
from tidegauge.traces.formats import ndjson
from tidegauge.traces.from_model.behaviour import numbered
from tidegauge.traces.schema import Event, Trace
from tidegauge.util.errors import SpecError
from validation.golden import DIRECTORY
from validation.tlc_oracle import CASES, FORKED, OracleCase, Ruling, oracle_rulings, reported, rulings, table, unexplained
from validation.trace_mutants import CHANGED, SWAPPED, TraceMutant
from validation.trace_validation import TlcVerdict, validate_events

TWO, HW_ONLY = CASES[0], CASES[-1]


def golden(profile: str) -> list[Trace]:
    read = [trace for path in sorted(DIRECTORY.glob("*.ndjson")) for trace in ndjson.read(path).traces]
    return [trace for trace in read if trace.config.profile == profile]


@pytest.mark.tlc
def test_the_oracle_decides_golden_traces_as_their_names_say() -> None:
    """Stories can be told by the spec, runs of faulty variants cannot, and the judge rejects what TLC rejects."""
    ruled = rulings(TWO, golden("fetch-truncation"))
    assert len(ruled) > 20
    assert all(one.accepted is not bool(one.rules) for one in ruled)
    assert [one.accepted for one in ruled] == [not one.name.startswith("golden/fails") for one in ruled]
    assert all(0 < one.matched < len(one.trace.events) for one in ruled if not one.accepted)


@pytest.mark.tlc
def test_where_the_profile_breaks_a_rule_they_differ_and_the_reason_is_named() -> None:
    """hw-only loses committed records: its spec tells such a run, the judge rejects it, and that is explained."""
    ruled = rulings(HW_ONLY, golden("hw-only"))
    assert all(one.accepted and one.rules == ("DATA-01",) for one in ruled)
    assert not unexplained(ruled)
    assert {one.why for one in ruled} == {"the profile breaks DATA-01"}


@pytest.mark.tlc
def test_a_sample_is_agreed_upon() -> None:
    """Right traces of two cases are accepted by both, most mutants rejected by both, and nothing is left to explain."""
    ruled = list(oracle_rulings(40, seed=3, cases=(TWO, HW_ONLY)))
    assert len(ruled) == 80
    right = [one for one in ruled if one.mutant is None]
    assert len(right) == 40
    assert all(one.accepted for one in right)
    assert sum(not one.accepted and bool(one.rules) for one in ruled) >= 30
    assert [one.says for one in unexplained(ruled)] == []


@pytest.mark.tlc
def test_what_is_not_told_is_open_and_nodes_are_told_in_any_order_that_their_messages_allow() -> None:
    """Fields left out, a line of another node inside a step, an end inside a step; no message is read before it left."""
    trace = next(trace for trace in golden("fetch-truncation") if trace.name == "golden/lost-response")
    reported_by = [(event.node, event.event) for event in trace.events]
    assert reported_by[5:11] == [
        (1, "LeaderAppend"),
        (2, "SendFetch"),
        (1, "HandleFetch"),
        (2, "HandleFetchResponse"),
        (2, "SendFetch"),
        (1, "HandleFetch"),
    ]
    again = Event(1, "LeaderAppend", {"leader_epoch": 0, "rec_base": 1, "rec_end": 2})

    def of(change: Callable[[list[Event]], list[Event]]) -> Trace:
        return replace(trace, events=numbered(change(list(trace.events))))

    right = (
        of(lambda events: [replace(event, fields={}) for event in events]),
        of(lambda events: [*events[:9], again, events[9]]),
        of(lambda events: events[:9]),
    )
    wrong = (
        of(lambda events: [*events[:5], *events[6:8], events[5]]),
        of(lambda events: [*events[:9], events[10], events[9]]),
        of(lambda events: [*events[:9], replace(again, fields={**again.fields, "leo_before": 0})]),
        of(lambda events: [*events[:9], replace(again, fields={**again.fields, "target": 2})]),
    )
    asked = validate_events([reported(one) for one in (*right, *wrong)], find_model("Small"), brokers=2).verdicts
    assert asked[:3] == tuple(TlcVerdict(True, len(one.events)) for one in right)
    assert asked[3:] == tuple(TlcVerdict(False, matched) for matched in (6, 9, 9, 9))


def ruling(rules: tuple[str, ...], accepted: bool, mutant: TraceMutant | None = None, case: OracleCase = TWO) -> Ruling:
    trace = next(trace for trace in golden("fetch-truncation") if trace.name == "golden/commit")
    return Ruling(case, trace.name, mutant, rules, accepted, 3, trace)


def test_a_difference_that_nothing_explains_is_told() -> None:
    """A right trace that one side or both reject, a rule that is no known hole, another field: each stays a finding."""
    trace = ruling((), True).trace
    free = TraceMutant(CHANGED, "5 HandleFetch error 0 to 1", trace)
    odd = TraceMutant(CHANGED, "5 HandleFetch res_hw 0 to 1", trace)
    swapped = TraceMutant(SWAPPED, "1 Start with Start", trace)
    ruled = [
        ruling((), True),
        ruling(("HW-02",), True),
        ruling((), False),
        ruling((), False, odd),
        ruling(("HW-02",), False),
        ruling(("HW-08",), True),
        ruling(("HW-08",), True, case=CASES[1]),
        ruling((), False, free),
        ruling((), False, swapped),
        ruling(("HW-02",), False, odd),
    ]
    assert unexplained(ruled) == ruled[1:6]
    lines = table(ruled).splitlines()
    assert [line.split()[-2:] for line in lines if line[0] != " "] == [["1", "0"], ["1", "1"], ["3", "0"], ["1", "3"]]
    assert sum("NOT EXPLAINED" in line for line in lines) == 3
    assert "the judge accepts, TLC rejects event 4, " in ruled[2].says


def test_only_a_request_after_a_reload_is_explained_by_a_fork() -> None:
    """The broker took a record of an epoch below its latest and came back; its request is what TLC refuses."""
    took = [Event(2, "HandleFetchResponse", {"peer": 1, "rec_epoch": epoch}) for epoch in (1, 0)]
    loaded, asks = Event(2, "Start", {"clean": False}), Event(2, "SendEpochRequest", {"peer": 1, "req_last_epoch": 1})

    def why(*events: Event) -> str | None:
        trace = Trace("forked", "model-0", ruling((), True).trace.config, events)
        return Ruling(CASES[-2], "forked", None, (), False, len(events) - 1, trace).why

    assert why(*took, loaded, asks) == FORKED
    assert why(*took[::-1], loaded, asks) is None
    assert why(*took, asks) is None
    assert why(loaded, *took, asks) is None
    assert why(*took, loaded, replace(asks, node=1)) is None
    assert why(*took, asks, loaded) is None


def test_what_cannot_be_asked_is_refused() -> None:
    """No traces, a trace without events, more brokers than the module names."""
    with pytest.raises(SpecError, match="seen none"):
        validate_events([], find_model("Small"), brokers=2)
    with pytest.raises(SpecError, match="seen none"):
        validate_events([[]], find_model("Small"), brokers=2)
    with pytest.raises(SpecError, match="1 to 3 brokers"):
        validate_events([reported(ruling((), True).trace)], find_model("Small"), brokers=4)

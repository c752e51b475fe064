"""Because of what data is lost: the record, who held it, who lost it, who was elected without it; and nothing else."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest

from tests.conformance.hand import FORKED, TWO, bent, reported
from tidegauge.conformance.checking.check import check
from tidegauge.conformance.engine.judge import judge
from tidegauge.conformance.explain.causes import TRUNCATES
from tidegauge.conformance.explain.explain import Explanation, explain, explanation_text
from tidegauge.conformance.explain.root_cause import has_root_cause
from tidegauge.conformance.play.scenario import BROKEN, read, run_scenario
from tidegauge.conformance.play.scenario import shipped as scenarios
from tidegauge.traces.columns import to_columns
from tidegauge.traces.kafka_logs.capture import shipped
from tidegauge.traces.schema import Event, Trace
from validation.golden import DIRECTORY

BROKEN_SCENARIOS = [path.stem for path in scenarios() if read(path).expected == BROKEN]


def explained(trace: Trace) -> dict[str, Explanation]:
    """Every failure of a trace, by its rule."""
    columns = to_columns([trace], trace.config)
    return {one.rule: explain(columns, trace.config, one, [trace]) for one in judge(columns, trace.config).failures}


@cache
def scenario(stem: str) -> dict[str, Explanation]:
    return explained(run_scenario(next(path for path in scenarios() if path.stem == stem)).trace)


@cache
def capture(name: str) -> dict[str, Explanation]:
    return {one.rule.id: one for one in check([shipped()[name]]).explanations}


def because(one: Explanation) -> list[str]:
    return [cause.says for cause in one.because]


def test_an_acknowledged_record_that_is_gone() -> None:
    """4.2.0, a missed epoch: written, truncated by n2, promised by n1 alone, acknowledged, n1 dies, n2 is elected."""
    lost = capture("4.2.0/k-epoch-jump")["DATA-03"]
    assert lost.means == (
        "The record at offset 1 of alpha-0 was acknowledged to producers and is gone after n2 became leader of epoch 3."
    )
    assert [(cause.says, cause.at) for cause in lost.because] == [
        ("n1 appended offset 1 in epoch 0.", "n1/server.log:112"),
        ("n2 truncated its log from 2 to 1 (HandleDivergingResponse): offset 1 is gone there.", "n2/server.log:217"),
        (
            "n1, leader of epoch 2, raised its high watermark to 2: offset 1 was then on n1; not on n2, n3.",
            "n1/server.log:132",
        ),
        ("n1 acknowledged it to a producer with acks=all.", "n1/request.log:52"),
        ("n1, which holds it, crashed.", "n1/server.log:138"),
        ("The controller elected n2 for epoch 3 cleanly, with the ISR {n2}.", "n100/server.log:482"),
        ("n2 became leader of epoch 3: its log ends at 1.", "n2/server.log:540"),
        ("n1 truncated its log from 2 to 1 (HandleDivergingResponse): offset 1 is gone there.", "n1/server.log:236"),
    ]


def test_lost_records_are_explained_first() -> None:
    """What users lose stands in front of the rule that was broken first."""
    assert list(capture("4.2.0/k-epoch-jump")) == ["DATA-03", "DATA-01", "HW-08"]


def test_a_high_watermark_over_a_replica_that_truncated() -> None:
    """The same capture, the step that did it: the last fetch of n2 was counted before n3 led."""
    raised = capture("4.2.0/k-epoch-jump")["HW-08"]
    assert raised.means.startswith(
        "n1, leader of epoch 2, has the high watermark 2 where the rules allow 1 at most. The leader "
    )
    assert because(raised)[:4] == [
        "The last fetch of n2 that n1 counted was for offset 2 in leader epoch 0.",
        "n3 became leader of epoch 1.",
        "n2 truncated its log from 2 to 1 (HandleDivergingResponse).",
        "n1 took the high watermark 2: offset 1 was then on n1; not on n2, n3.",
    ]


def test_a_high_watermark_from_a_diverging_response() -> None:
    """KAFKA-14704: what the follower had, what it was sent, what it took, and what it truncated of that."""
    taken = capture("3.4.0/b-kill-leader")["HW-06"]
    truncated = "n1 truncated its log from 68 to 62 (HandleDivergingResponse)."
    assert taken.means.startswith("n1, follower of epoch 1, has the high watermark 68 where the rules allow 48 at most. ")
    assert [(cause.says, cause.at) for cause in taken.because] == [
        ("n1's high watermark became 48 (Start).", "n1/server.log:705"),
        ("The response of n2 carried the high watermark 87.", "n1/server.log:719"),
        ("n1 took the high watermark 68: offset 67 was then on n1; not on n2, n3.", "n1/server.log:719"),
        (f"{truncated} The records at offsets 62 to 67 had been below the high watermark 68.", "n1/server.log:729"),
    ]


def test_a_truncation_at_the_own_high_watermark() -> None:
    """Before KIP-101: both had the record, the follower truncates it, its leader dies, it is elected."""
    assert because(scenario("010_hw_only_loses_committed")["DATA-01"]) == [
        "n1 appended offset 1 in epoch 0.",
        "n1, leader of epoch 0, raised its high watermark to 2: offset 1 was then on n1, n2.",
        "n2 truncated its log from 2 to 1 (TruncateToHighWatermark): offset 1 is gone there.",
        "n1, which holds it, crashed.",
        "The controller elected n2 for epoch 3 cleanly, with the ISR {n2}.",
        "n2 became leader of epoch 3: its log ends at 1.",
    ]


def test_a_record_in_the_place_of_another() -> None:
    """KIP-101's epochs alone: two fast elections leave two branches, and both replicas promise theirs."""
    found = scenario("100_fast_leader_changes_fork")
    assert found["DATA-01"].means == (
        "The record at offset 0 of model-0 was committed by n1, but n2, leader of epoch 3, has another one there "
        "(epoch 1 instead of 0)."
    )
    assert "n2 appended offset 0 in epoch 1." in because(found["DATA-01"])
    assert found["DATA-02"].means == (
        "The record at offset 0 of model-0 is not the same on n1 (epoch 0) and n2 (epoch 1), and both call it committed."
    )
    assert because(found["DATA-02"]) == [
        "n1 appended offset 0 in epoch 0.",
        "n2 appended offset 0 in epoch 1.",
        "n1 took the high watermark 1: it calls it committed.",
        "n2 took the high watermark 1: it calls it committed.",
    ]


def test_a_snapshot_that_the_events_did_not_make() -> None:
    """LOG-02: what was found, and the event that made it otherwise."""
    events = (*FORKED, reported(1, "Observe", leo=7))
    found = explained(Trace("t", "t-0", TWO, events))["LOG-02"]
    made = found.because[0]
    assert found.means.startswith(
        f"n1 has the log end 7, where its events made it {events[made.number - 1].fields['leo']}. "
    )
    assert found.because[-1].says == "n1 has the log end 7 (Observe)."


@pytest.mark.parametrize("stem", BROKEN_SCENARIOS)
def test_every_loss_of_a_scenario_has_its_causes(stem: str) -> None:
    """Written first, the election without it at the end, all in the order of the trace."""
    for one in scenario(stem).values():
        assert [cause.number for cause in one.because] == sorted(cause.number for cause in one.because)
        if one.rule.id == "DATA-01":
            assert " appended offset " in one.because[0].says
            assert any(" became leader of epoch " in cause.says for cause in one.because)


def all_explained() -> Iterator[tuple[Explanation, Trace]]:
    for path in scenarios():
        if read(path).expected == BROKEN:
            trace = run_scenario(path).trace
            yield from ((one, trace) for one in explained(trace).values())
    for path in sorted(DIRECTORY.glob("fails-*.ndjson")):
        report = check([path])
        yield from ((one, report.judged[0].batch.traces[0]) for one in report.explanations if report.judged[0].batch.traces)


def test_a_cause_says_what_its_event_tells() -> None:
    """A truncation is one and has the log ends that are said; a cause names its node; a crash is a crash."""
    seen = 0
    for one, trace in all_explained():
        assert has_root_cause(one.rule.id) or not one.because
        for cause in one.because:
            event = trace.events[cause.number - 1]
            seen += agrees(cause.says, event)
        assert one.means in explanation_text(one)
    assert seen > 50


def agrees(says: str, event: Event) -> bool:
    """Whether a sentence and the event it names say the same; asserts that they do."""
    fields = event.fields
    if " truncated its log from " in says:
        assert event.event in TRUNCATES
        before, after = says.partition(" from ")[2].split(" (")[0].split(" to ")
        assert fields.get("leo", int(after)) == int(after)
        assert fields.get("leo_before", int(before)) == int(before)
    elif " lost the disk with its log, " in says:
        assert event.event == "LoseDisk"
    elif " deleted its log as a replica no more, " in says:
        assert event.event == "DeleteReplica"
    elif " acknowledged it to a producer" in says:
        assert event.event == "ProduceAck"
    elif " crashed." in says:
        assert event.event == "Crash"
    elif " appended offset " in says:
        offset = int(says.partition(" offset ")[2].split()[0])
        assert event.event == "LeaderAppend"
        assert fields["rec_base"] <= offset < fields["rec_end"]
    elif " became leader of epoch " in says:
        assert (event.event, fields["leader_epoch"]) == (
            "BecomeLeader",
            int(says.partition("epoch ")[2].split(":")[0].rstrip(".")),
        )
    elif " raised its high watermark to " in says or " took the high watermark " in says:
        assert f"watermark {'to ' if 'raised' in says else ''}{fields['hw']}" in says
    elif " had the high watermark " in says:
        assert f"watermark {fields['hw_before']}" in says
    elif says.startswith("The controller elected"):
        assert event.event == "ChangePartition"
        assert f"elected n{fields['leader']} for epoch {fields['leader_epoch']}" in says
    else:
        assert event.event in ("HandleFetch", "Start", "HandleFetchResponse", "BecomeLeader"), says
    return True


def test_what_the_trace_does_not_show_is_not_said() -> None:
    """Without log ends and records nobody can say who held what: the rule stays undecided, or has no causes."""
    trace = run_scenario(next(path for path in scenarios() if path.stem == "010_hw_only_loses_committed")).trace
    hidden = {"leo", "leo_before", "rec_base", "rec_end", "target", "epoch_start", "remote_leo", "epochs", "req_offset"}
    blind = tuple(
        replace(event, fields={name: value for name, value in event.fields.items() if name not in hidden})
        for event in trace.events
    )
    assert "DATA-01" not in explained(replace(trace, events=blind))
    mute = tuple(event for event in trace.events if event.event not in ("ChangePartition", "Crash"))
    assert all(one.because == () for rule, one in explained(replace(trace, events=mute)).items() if rule == "DATA-01")


def test_only_the_rules_about_data_have_causes() -> None:
    """A rule about a request says what it means all the same."""
    wrong = explained(Trace("t", "t-0", TWO, bent(FORKED, -2, target=1)))
    one = next(iter(wrong.values()))
    assert one.because == ()
    assert one.means.endswith(one.rule.means)

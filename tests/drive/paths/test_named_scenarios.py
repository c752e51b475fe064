"""Scenarios that are named: F1, F2 and F3 by the rules of each release, and what the judge says of the runs."""

import re
import sys
from itertools import groupby
from pathlib import Path

import pytest

from tests.drive.paths.test_scenario_paths import ADAPTER
from tidegauge.cli.main import main
from tidegauge.conformance.engine.judge import judge
from tidegauge.conformance.play.scenario import DIRECTORY
from tidegauge.drive.broker.reference import reference
from tidegauge.drive.broker.steps import EVERYTHING
from tidegauge.drive.broker.transcript import BROKER_FORMAT
from tidegauge.drive.kafka_broker.node import CAN
from tidegauge.drive.paths.scenarios import ROUNDED, Named, named_scenarios, shown_text
from tidegauge.drive.runner.player import ReferenceNode, play
from tidegauge.drive.runner.transcript import Recorder, places, profile_of, read, release_of
from tidegauge.impl.explorer import isr_model
from tidegauge.impl.explorer.isr_model import IsrBounds
from tidegauge.impl.explorer.search import Violation
from tidegauge.impl.profiles import Profile
from tidegauge.impl.releases import parse_release, profile_named
from tidegauge.impl.rules import NONE, OFFSET_OUT_OF_RANGE
from tidegauge.traces.columns import to_columns
from tidegauge.traces.formats import ndjson
from tidegauge.traces.from_model.isr_changes import steps_of, trace_of_isr_changes
from tidegauge.traces.schema import Trace
from tidegauge.util.errors import UsageError

KAFKA = EVERYTHING._replace(can=CAN)
SERVED = [sys.executable, "-m", "tidegauge.drive.transports.serve"]

BROKEN = {
    ("F1", "release-3.4.0"): {"FETCH-09", "DATA-01"},
    ("F1", "release-4.0.0"): {"FETCH-09", "DATA-01"},
    ("F1", "release-4.0.1"): set(),
    ("F1", "release-4.4.0"): set(),
    ("F2", "release-3.4.0"): {"HW-08", "DATA-01", "DATA-03"},
    ("F2", "release-4.4.0"): {"HW-08", "DATA-01", "DATA-03"},
    ("F2", "repaired"): set(),
    ("F3", "release-3.4.0"): {"HW-02", "HW-03", "DATA-01"},
    ("F3", "release-4.4.0"): {"HW-02", "HW-03", "DATA-01"},
    ("F3", "skips-equal"): set(),
}
"""Which rules the run of a finding breaks, by generation: none where it is fixed."""


def _one(name: str, profile: Profile) -> tuple[Named, Trace]:
    (found,) = named_scenarios(name, profile, KAFKA)
    assert found.trace is not None
    return found, found.trace


def _broken(trace: Trace) -> set[str]:
    return {failure.rule for failure in judge(to_columns([trace], trace.config), trace.config).failures}


@pytest.mark.parametrize(("name", "generation"), BROKEN)
def test_a_finding_breaks_rules_where_it_is_and_none_where_it_is_fixed(name: str, generation: str) -> None:
    assert _broken(_one(name, profile_named(generation))[1]) == BROKEN[name, generation]


@pytest.mark.parametrize(("name", "generation"), BROKEN)
def test_the_broker_of_the_trace_is_the_one_that_is_driven(name: str, generation: str) -> None:
    """Log ends and high watermarks in the same order; the model of F3 ends before the election that its path goes on to."""
    profile = profile_named(generation)
    one, trace = _one(name, profile)
    recorder = Recorder([one.case])
    assert play(ReferenceNode(reference(profile)), [one.case], reference(profile), recorder).differences == ()
    ((_, reports),) = recorder.recorded()
    node = [event.fields for event in trace.events if event.node == 1]
    for field in ("leo", "hw"):
        driven = [value for value, _ in groupby(report[field] for report in reports)]
        reported = [value for value, _ in groupby(fields[field] for fields in node if field in fields)]
        assert reported == (driven[: len(reported)] if name == "F3" else driven)


def test_a_run_of_the_explorer_is_told_as_tlcs_run_is() -> None:
    """F3 as TLC found it, taken step by step in the reference: the same events."""
    (shipped,) = ndjson.read(DIRECTORY / "models" / "equal-epoch.ndjson").traces
    labels = (
        ("LeaderAppend",),
        ("HandleFetch", 1, 0, 0),
        ("ShrinkIsr", 0b100),
        ("HandleAlterPartition", 0),
        ("HandleAlterPartitionResponse",),
        ("HandleFetch", 2, 1, 1),
        ("HandleFetch", 1, 0, 0),
        ("HandleAlterPartition", 1),
        ("ReadMetadata", 1),
    )
    states = [isr_model.initial_isr_cluster(IsrBounds(2, 1, 2, 0))]
    for label in labels:
        states.append(dict(isr_model.isr_successors(states[-1]))[label])
    reported = trace_of_isr_changes([*steps_of(states, labels)], "equal-epoch", "impl")
    assert [(e.node, e.event, e.fields) for e in reported.events] == [(e.node, e.event, e.fields) for e in shipped.events]


def test_a_refused_proposal_is_told_too() -> None:
    """A member that came back as another incarnation: INELIGIBLE_REPLICA."""
    start = isr_model.initial_isr_cluster(IsrBounds(1, 1, 3, 1))
    refusal, answered = Violation("refused", (), (), ()), ("HandleAlterPartitionResponse",)
    wanted = isr_model.search_isr(start).first_violation(lambda s: refusal if isr_model.isr_view(s)[3][:1] == (3,) else None)
    assert wanted is not None
    after = dict(isr_model.isr_successors(wanted.states[-1]))[answered]
    reported = trace_of_isr_changes([*steps_of((*wanted.states, after), (*wanted.labels, answered))], "refused", "impl")
    assert [e.fields["error"] for e in reported.events if e.event == "HandleAlterPartitionResponse"][-1] == 107


def test_the_command_shows_each_step_and_what_the_judge_says(capsys: pytest.CaptureFixture[str]) -> None:
    """The reference behind stdio has F2, as every release has: no step differs, and the run is rejected."""
    as_kafka = ["--profile", "fetch-truncation"]
    assert main(["drive", "--quiet", *as_kafka, "--scenario", "F2", "--", *SERVED, *as_kafka]) == 0
    said = capsys.readouterr().out
    assert re.search(r"5  metadata leader=1 leader_epoch=2 .*\n +produced \[0,0\]; hw 0 -> 1;", said)
    assert "the judge rejects this run: HW-08, DATA-01, DATA-03" in said
    assert "scenarios: 1, as 1 brokers see them" in said
    assert "as Kafka 4.3.1 does, this broker may lose acknowledged records (F2, F3)" in said
    assert main(["drive", "--quiet", "--scenario", "F1", "--", *SERVED]) == 0
    assert "the judge accepts this run" in capsys.readouterr().out


@pytest.mark.parametrize("expected", ["safe", "fetch-truncation", "release-4.3.1"])
def test_a_broker_with_the_repairs_conforms_and_its_runs_pass_the_judge(
    expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both ways in agree: what drive accepts is what the judge accepts."""
    assert main(["drive", "--quiet", "--profile", expected, "--scenario", "F2", "--scenario", "F3", "--", *SERVED]) == 0
    said = capsys.readouterr().out
    assert said.count("the judge accepts this run") == 2
    assert ("better than Kafka 4.3.1: F2, F3, KAFKA-17803 repaired" in said) == (expected != "safe")
    assert "may lose" not in said


def test_a_broker_that_differs_is_no_witness(capsys: pytest.CaptureFixture[str]) -> None:
    name = "020_forked_log_is_truncated_on_fetch"
    assert main(["drive", "--quiet", "--scenario", name, "--", sys.executable, str(ADAPTER), "--bug"]) == 1
    said = capsys.readouterr().out
    assert "the broker differs; the judge is not asked" in said
    assert "the judge rejects" not in said
    assert "the judge accepts" not in said


def test_what_a_broker_said_once_is_told_once() -> None:
    profile = profile_named("release-4.3.1")
    one, _ = _one("F3", profile)
    recorder = Recorder([one.case])
    play(ReferenceNode(reference(profile)), [one.case], reference(profile), recorder)
    text = shown_text(one, recorder.recorded()[0].reports, "a broker")
    assert text.count("produced [0,0]") == 1
    assert "4  metadata leader=1 leader_epoch=0 partition_epoch=2 isr=1\n        nothing changes" in text


@pytest.mark.parametrize(
    ("name", "generation", "said"),
    [
        ("F99", "release-4.3.1", "seen 'F99'"),
        ("170_removed_replica_is_elected_empty", "release-4.3.1", "the whole controller"),
        ("060_lagging_follower_leaves_and_rejoins_isr", "release-4.3.1", "does not promise `lag`"),
        ("kip101", "release-4.3.1", "can happen under"),
    ],
)
def test_what_cannot_be_shown_is_said(name: str, generation: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        named_scenarios(name, profile_named(generation), KAFKA)


def test_a_file_of_ones_own_is_named_by_its_place(tmp_path: Path) -> None:
    own, text = tmp_path / "own.txt", (DIRECTORY / "160_lost_disk_of_the_last_member_loses_committed.txt").read_text("utf-8")
    own.write_text(text, encoding="utf-8")
    assert [one.broker for one in named_scenarios(str(own), profile_named("release-4.3.1"), EVERYTHING)] == ["b2"]
    own.write_text(text.replace("# Source: ", "# under-test: b1\n# Source: "), encoding="utf-8")
    with pytest.raises(UsageError, match="keeps its disk"):
        named_scenarios(str(own), profile_named("release-4.3.1"), EVERYTHING)


@pytest.mark.parametrize(("generation", "seen"), [("release-3.9.1", [0, 3, 5]), ("release-4.0.0", [0, 3, 0, 5])])
def test_a_high_watermark_inside_a_batch_falls_below_the_log_start_since_4_0(generation: str, seen: list[int]) -> None:
    """And a deletion that was done before is refused."""
    profile = profile_named(generation)
    (one,) = named_scenarios(ROUNDED, profile, KAFKA)
    recorder = Recorder([one.case])
    assert play(ReferenceNode(reference(profile)), [one.case], reference(profile), recorder).differences == ()
    ((_, reports),) = recorder.recorded()
    assert [hw for hw, _ in groupby(report["hw"] for report in reports)] == seen
    assert any(report["hw"] < report["log_start"] for report in reports) == (seen == [0, 3, 0, 5])
    deleted = one.case.path.index(("delete_records", 3)) + 1
    assert reports[deleted]["result"] == {"error": OFFSET_OUT_OF_RANGE if seen == [0, 3, 0, 5] else NONE}
    assert "it has no cluster; the judge is not asked" in shown_text(one, reports, "a broker")


def test_recorded_releases_have_it_since_4_0_and_no_other_profile_explains_it() -> None:
    """What unmodified brokers did: KAFKA-17803."""
    (one,) = named_scenarios(ROUNDED, profile_named("release-4.3.1"), KAFKA)
    for node in (read(place, BROKER_FORMAT) for place in places()):
        rounded = parse_release(release_of(node)) >= (4, 0)
        assert (0 in [report["hw"] for report in node.reports(one.case)[4:]]) == rounded, node.capabilities.name
        without = profile_of(node)._replace(hw_rounded_to_batches=not rounded)
        assert play(node, [one.case], reference(profile_of(node))).differences == ()
        assert [found.fields for found in play(node, [one.case], reference(without)).differences] == [("hw",)]


def test_a_broker_that_is_given_batches_of_one_record_cannot_show_it() -> None:
    with pytest.raises(UsageError, match="does not promise `batches`"):
        named_scenarios(ROUNDED, profile_named("release-4.3.1"), KAFKA._replace(can=KAFKA.can - {"batches"}))


def test_a_path_that_goes_another_way_than_its_cluster_is_not_judged() -> None:
    one, _ = _one("F2", profile_named("release-4.3.1"))
    reports = [{"leo": 0}] * (len(one.case.path) + 1)
    assert "goes another way; the judge is not asked" in shown_text(one._replace(trace=None), reports, "a broker")

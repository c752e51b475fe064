"""`tidegauge check`: what a path holds is seen by its content, bad input is set aside and named, exit codes tell."""

import gzip
import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.conformance.hand import COPIED, FORKED, TWO, bent, change, lead, reported, start
from tidegauge.conformance.checking.check import CheckOptions, check
from tidegauge.conformance.checking.verdicts import Verdict, rule_verdicts, run_verdict, verdict_of
from tidegauge.conformance.engine.judge import RuleTally, judge, total_tallies
from tidegauge.conformance.explain.explain import STEPS, explain, explanation_text
from tidegauge.conformance.judge.fields import RULE_IDS
from tidegauge.conformance.judge.rulebook import known_bugs, rulebook
from tidegauge.conformance.play.directives import Player
from tidegauge.conformance.play.scenario import DIRECTORY as SCENARIOS
from tidegauge.conformance.play.scenario import read
from tidegauge.conformance.report.html import page
from tidegauge.conformance.report.json_report import as_json
from tidegauge.conformance.report.junit import write_junit
from tidegauge.conformance.report.text import as_text
from tidegauge.traces.columns import to_columns
from tidegauge.traces.formats import ndjson, parquet
from tidegauge.traces.from_model.behaviour import numbered
from tidegauge.traces.kafka_logs.capture import shipped
from tidegauge.traces.kafka_logs.discovery.selection import Selection
from tidegauge.traces.schema import Event, Trace
from tidegauge.util.errors import UsageError
from validation.golden import DIRECTORY

LINES = DIRECTORY / "diverging-truncation.ndjson"
WRONG = DIRECTORY / "fails-hw-is-own-log-end.ndjson"


def written(path: Path, *runs: Sequence[Event]) -> Path:
    ndjson.write([Trace(f"run-{at}", "t-0", TWO, numbered(events)) for at, events in enumerate(runs)], path)
    return path


def test_a_correct_trace_conforms() -> None:
    """Verdict PASS, exit code 0, nothing to explain."""
    report = check([LINES])
    assert (report.verdict, report.exit_code, report.explanations) == (Verdict.PASS, 0, ())
    assert [(one.kind, one.traces) for one in report.inputs] == [("NDJSON", 1)]


def test_a_wrong_trace_fails_and_is_explained_with_its_line() -> None:
    """Exit code 1; the explanation names file and line, expected and actual value; no known bug did this."""
    report = check([WRONG])
    assert (report.verdict, report.exit_code) == (Verdict.FAIL, 1)
    assert [one.rule.id for one in report.explanations] == ["HW-03", "HW-02"]
    first = report.explanations[1]
    assert first.at == f"{WRONG}:7"
    assert (first.compared, first.expected, first.actual) == ("hw", "undefined (-1)", "1")
    assert first.bugs == ()
    shown = explanation_text(first)
    assert "expected  hw undefined (-1)" in shown
    assert "n1   leader" in shown


def test_several_inputs_are_judged_together() -> None:
    """One verdict over all; each input is counted on its own."""
    report = check([LINES, WRONG])
    assert report.verdict is Verdict.FAIL
    assert report.events == sum(one.events for one in report.inputs) == 13 + 6


def test_one_input_does_not_make_another_one_good(tmp_path: Path) -> None:
    """Each input has its verdict; where one decides nothing, neither do all together."""
    trace = Trace("t", "t-0", TWO, (Event(1, "HwCheckpoint", {}),))
    ndjson.write([trace], tmp_path / "t.ndjson")
    report = check([LINES, tmp_path / "t.ndjson"])
    assert [one.verdict for one in report.inputs] == [Verdict.PASS, Verdict.INCONCLUSIVE]
    assert (report.verdict, report.exit_code) == (Verdict.INCONCLUSIVE, 3)
    assert check([LINES, WRONG]).inputs[0].verdict is Verdict.PASS


def test_a_bad_line_is_named_and_the_rest_is_judged(tmp_path: Path) -> None:
    """Exit code 2: what could be read conforms, but not all of it could be read."""
    path = written(tmp_path / "t.ndjson", COPIED)
    lines = path.read_text(encoding="utf-8").splitlines()
    lines.insert(4, '{"node": 1, "event": ')
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    report = check([path])
    assert report.exit_code == 2
    assert report.verdict is Verdict.INCONCLUSIVE
    assert [(problem.line, problem.lost) for problem in report.problems] == [(5, 1)]
    assert report.events == len(COPIED)


@pytest.mark.parametrize(
    ("content", "said"),
    [(b'{"node": 1, "event": \n', "1 event could not be read"), (None, "1 input could not be read")],
    ids=["a line", "a file"],
)
def test_nothing_is_green_where_something_could_not_be_read(tmp_path: Path, content: bytes | None, said: str) -> None:
    """Neither the last line nor JSON, JUnit and the page; the rules hold in what was read, and that is said."""
    right = written(tmp_path / "t.ndjson", COPIED)
    assert check([right]).verdict is Verdict.PASS
    if content is None:
        (tmp_path / "u.ndjson").write_bytes(b"\x00")
    else:
        right.write_bytes(right.read_bytes() + content)
    report = check(sorted(tmp_path.iterdir()))
    assert (report.verdict, report.exit_code) == (Verdict.INCONCLUSIVE, 2)
    last = as_text(report).splitlines()[-1]
    assert last.startswith("INCONCLUSIVE")
    assert said in last
    assert as_json(report)["verdict"] == "INCONCLUSIVE"
    write_junit(report, tmp_path / "junit.xml")
    assert ElementTree.parse(tmp_path / "junit.xml").getroot().findall(".//error")
    assert page(report).count('class="badge pass"') == 0
    assert page(check([LINES])).count('class="badge pass"') == 1


@pytest.mark.parametrize("content", [b"", b"\x00\x01\x02", b"PAR1 and no more", b"[1, 2]\n"])
def test_rubbish_is_bad_input_and_no_traceback(tmp_path: Path, content: bytes) -> None:
    """Exit code 2 and at least one problem that names the file."""
    path = tmp_path / "rubbish"
    path.write_bytes(content)
    report = check([path])
    assert report.exit_code == 2
    assert report.verdict is Verdict.SUITE_ERROR
    assert all(problem.path.startswith(str(path)) for problem in report.problems)
    assert report.problems


def test_a_path_that_does_not_exist_is_bad_input(tmp_path: Path) -> None:
    """Exit code 2, not an exception."""
    assert check([tmp_path / "nothing"]).exit_code == 2


def test_an_unknown_profile_is_bad_input(tmp_path: Path) -> None:
    """The message says which profiles there are."""
    trace = Trace("t", "t-0", replace(TWO, profile="tomorrow"), COPIED)
    ndjson.write([trace], tmp_path / "t.ndjson")
    report = check([tmp_path / "t.ndjson"])
    assert report.exit_code == 2
    assert "fetch-truncation" in str(report.problems[0])
    assert check([tmp_path / "t.ndjson"], CheckOptions("fetch-truncation")).exit_code == 0


def test_parquet_and_lines_say_the_same(tmp_path: Path) -> None:
    """The same traces in both formats give the same tallies, but for the numbers only lines carry."""
    path = written(tmp_path / "t.ndjson", COPIED, FORKED, bent(COPIED, 5, hw=1))
    traces = ndjson.read(path).traces
    parquet.write(to_columns(traces, TWO), TWO, tmp_path / "t.parquet")
    one, two = check([path]), check([tmp_path / "t.parquet"])
    assert two.inputs[0].kind == "Parquet"
    assert [r.tally for r in one.rules if r.rule.id != "SEQ-01"] == [r.tally for r in two.rules if r.rule.id != "SEQ-01"]
    assert [e.rule.id for e in one.explanations] == [e.rule.id for e in two.explanations]
    assert two.explanations[0].event.fields == traces[2].events[5].fields


def test_a_directory_of_traces_is_judged_unless_it_has_logs(tmp_path: Path) -> None:
    """As each of its files is; what a writer leaves beside them is none."""
    wrong, right = DIRECTORY / "fails-hw-not-clamped.ndjson", DIRECTORY / "append.ndjson"
    folder = tmp_path / "traces"
    folder.mkdir()
    (trace,) = ndjson.read(wrong).traces
    parquet.write(to_columns([trace], trace.config), trace.config, folder / "part-0.parquet")
    shutil.copy(right, folder)
    (folder / "_SUCCESS").touch()
    (folder / "._part-0.parquet").write_bytes(b"rubbish")
    report, alone = check([folder]), check([folder / "part-0.parquet", folder / "append.ndjson"])
    assert [(one.kind, one.verdict, one.events) for one in report.inputs] == [
        ("NDJSON", Verdict.PASS, alone.inputs[1].events),
        ("Parquet", Verdict.FAIL, alone.inputs[0].events),
    ]
    assert [one.path for one in report.inputs] == [str(folder / "append.ndjson"), str(folder / "part-0.parquet")]
    with pytest.raises(UsageError, match=r"part-0|append.ndjson: expected broker logs to select topics"):
        check([folder], CheckOptions(selection=Selection(frozenset({"alpha"}))))
    shutil.copytree(shipped()["3.4.0/b-kill-leader"] / "n1", folder / "n1")
    assert [one.kind for one in check([folder]).inputs] == ["broker logs"]


def test_a_source_that_tells_nothing_decides_nothing(tmp_path: Path) -> None:
    """Exit code 3."""
    trace = Trace("t", "t-0", TWO, (Event(1, "HwCheckpoint", {}), Event(2, "HwCheckpoint", {})))
    ndjson.write([trace], tmp_path / "t.ndjson")
    report = check([tmp_path / "t.ndjson"])
    assert (report.verdict, report.exit_code) == (Verdict.INCONCLUSIVE, 3)


def test_a_directory_of_broker_logs_is_judged() -> None:
    """Kafka 3.4.0 takes the high watermark of a diverging response over (KAFKA-14704), and the log line is named."""
    report = check([shipped()["3.4.0/b-kill-leader"]])
    assert [rule.rule.id for rule in report.rules if rule.verdict is Verdict.FAIL] == ["HW-06"]
    assert report.inputs[0].kind == "broker logs"
    first = report.explanations[0]
    assert first.at.startswith("n1/server.log:")
    assert ("KAFKA-14704", known_bugs()["KAFKA-14704"].says) in first.bugs


def test_an_explanation_shows_what_concerns_it() -> None:
    """At most STEPS events before the failing one, of its node, its peer and the controller, the failing one last."""
    columns = to_columns([Trace("t", "t-0", TWO, FORKED)], TWO)
    wrong = to_columns([Trace("t", "t-0", TWO, bent(FORKED, -2, target=1))], TWO)
    failure = judge(wrong, TWO).failures[0]
    explanation = explain(wrong, TWO, failure)
    assert len(explanation.steps) <= STEPS + 1
    assert explanation.event.event == "HandleDivergingResponse"
    assert explanation.before.replicas[0].leo == 1
    assert explanation.steps[-1].after.replicas[0].leo == 0
    assert len(columns) == len(wrong)


# ---------------------------------------------------------------------------------------------------------------------
# Verdicts and the rulebook


@pytest.mark.parametrize(
    ("tally", "verdict"),
    [
        (RuleTally(), Verdict.NOT_EXERCISED),
        (RuleTally(undecided=1, missing=("hw",)), Verdict.INCONCLUSIVE),
        (RuleTally(held=1, undecided=5), Verdict.PASS),
        (RuleTally(held=9, failed=1), Verdict.FAIL),
    ],
)
def test_the_verdict_on_a_rule(tally: RuleTally, verdict: Verdict) -> None:
    """One failure fails it, one success passes it, silence is not success."""
    assert verdict_of(tally) is verdict


def test_a_should_rule_does_not_fail_a_run() -> None:
    """It is reported as failed, and the run passes on its other rules."""
    rules = rule_verdicts({rule: RuleTally(held=1) for rule in RULE_IDS} | {"HW-01": RuleTally(failed=1)})
    assert run_verdict(rules, 1) is Verdict.FAIL
    eased = [replace(r, rule=replace(r.rule, level="SHOULD")) if r.rule.id == "HW-01" else r for r in rules]
    assert run_verdict(eased, 1) is Verdict.PASS


def test_a_run_without_events_is_an_error() -> None:
    """It has shown nothing."""
    assert run_verdict(rule_verdicts(total_tallies([])), 0) is Verdict.SUITE_ERROR


def test_the_rulebook_has_a_row_for_every_rule_and_no_other() -> None:
    """Ids, levels and sentences come from catalog.toml."""
    assert set(rulebook()) == set(RULE_IDS)
    assert {rule.level for rule in rulebook().values()} <= {"MUST", "SHOULD"}
    assert all(rule.sentence.endswith(".") and rule.kafka for rule in rulebook().values())


def test_gzipped_logs_are_read_like_plain_ones(tmp_path: Path) -> None:
    """A capture whose logs were packed gives the same verdicts."""
    source = shipped()["3.4.0/b-kill-leader"]
    copy = tmp_path / "packed"
    shutil.copytree(source, copy)
    for path in copy.rglob("*.log"):
        if path.parent.name in {"n1", "n2", "n3"}:
            with gzip.open(f"{path}.gz", "wb") as out:
                out.write(path.read_bytes())
            path.unlink()
    assert [r.tally for r in check([copy]).rules] == [r.tally for r in check([source]).rules]


def test_a_lost_disk_is_reported_and_breaks_nothing(tmp_path: Path) -> None:
    """Exit code 0 and a warning, as columns too; what is lost with it is another matter."""
    lost = (*COPIED, reported(2, "Crash"), reported(2, "LoseDisk"), start(2))
    report = check([written(tmp_path / "run.ndjson", lost)])
    assert (report.verdict, report.exit_code) == (Verdict.PASS, 0)
    (note,) = report.notes
    assert note.startswith(f"node 2 lost its disk (1 replica, {tmp_path / 'run.ndjson'}:15)")
    elected = (*lost, reported(1, "Crash"), change(2, 1, (2,), (2,)), lead(2, 1, (2,)))
    assert check([written(tmp_path / "elected.ndjson", elected)]).verdict is Verdict.FAIL


def test_a_source_that_names_no_profile_is_held_to_a_safe_brokers(tmp_path: Path) -> None:
    """Unless it says that it is Kafka. A leader that keeps old log ends fails HW-08 as Kafka; HW-03, too, as any other."""
    player = Player()
    for block in read(SCENARIOS / "042_missed_epoch_acknowledges_and_loses.txt").transcript.blocks:
        player.run(block.command)
    assert player.session is not None
    ndjson.write([player.session.trace("f2")], tmp_path / "f2.ndjson")
    lines = (tmp_path / "f2.ndjson").read_text(encoding="utf-8").splitlines()
    config = json.loads(lines[0])
    broken = {}
    for name, more in (("kafka", {"release": "4.3.1"}), ("own", {}), ("named", {"profile": "fetch-truncation"})):
        own = {key: value for key, value in config.items() if key != "profile"}
        place = tmp_path / f"{name}.ndjson"
        place.write_text("\n".join([json.dumps({**own, **more}), *lines[1:], ""]), encoding="utf-8")
        report = check([place])
        broken[name] = {verdict.rule.id for verdict in report.rules if verdict.tally.failed}
    assert broken["kafka"] == broken["named"]
    assert "HW-08" in broken["kafka"]
    assert broken["own"] == broken["kafka"] | {"HW-03"}


def test_an_isr_may_be_empty_only_where_eligible_replicas_are_reported(tmp_path: Path) -> None:
    """A safe broker may have KIP-966 or not; who reports none has none."""
    config = {"v": 1, "trace": "t", "tp": "t-0", "event": "Config", "nodes": [1, 2], "controller": 100}
    change = {"v": 1, "node": 100, "event": "ChangePartition"}
    first = {**change, "leader": 1, "leader_epoch": 0, "partition_epoch": 0, "isr": [1]}
    empty = {**change, "leader": None, "leader_epoch": 1, "partition_epoch": 1, "isr": []}
    for elr, failed in ((None, True), ([1], False)):
        place = tmp_path / f"{failed}.ndjson"
        events = [first, empty if elr is None else {**empty, "elr": elr}]
        place.write_text("".join(json.dumps(line) + "\n" for line in (config, *events)), encoding="utf-8")
        report = check([place])
        assert ("CTRL-05" in {verdict.rule.id for verdict in report.rules if verdict.tally.failed}) == failed


def test_lines_in_no_known_layout_are_one_problem_and_not_taken_for_json(tmp_path: Path) -> None:
    path = tmp_path / "pasted.txt"
    path.write_text("it said\n[Partition x-0 broker=1] Shrinking ISR from 1,2 to 1 (kafka.cluster.Partition)\nand then\n")
    report = check([path])
    assert [(problem.line, problem.expected) for problem in report.problems] == [(None, "a layout of log lines")]
    assert report.inputs[0].kind == "broker logs"
    # Neither is what no line of is a whole one of Kafka's, whatever the story reads in it.
    path.write_text("it said\nExiting because log truncation is not allowed for partition x-0, current leader's latest\n")
    report = check([path])
    assert [(problem.line, problem.expected) for problem in report.problems] == [(None, "a trace or a broker's log")]
    assert report.inputs[0].kind == "text"
    path.write_text('{"v"\nnothing that Kafka prints\n')
    assert [problem.expected for problem in check([path]).problems] == ["one JSON object"] * 2

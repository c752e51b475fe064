"""The reports: the same verdicts for people, programs and CI, and a page that needs nothing but itself."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from tidegauge import __suite__, __version__
from tidegauge.conformance.checking.check import Report, check, merge_shares
from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.conformance.judge.fields import RULE_IDS
from tidegauge.conformance.report.json_report import as_json, json_text, schema_text, write_json
from tidegauge.conformance.report.junit import write_junit
from tidegauge.conformance.report.text import as_text
from tidegauge.traces.kafka_logs.capture import shipped
from validation.golden import DIRECTORY


@pytest.fixture(scope="module")
def report() -> Report:
    return check([DIRECTORY / "fails-no-divergence-check.ndjson", DIRECTORY / "commit.ndjson"])


def test_the_text_begins_with_what_is_broken_and_ends_with_the_verdict(report: Report) -> None:
    """What it means stands in the first line, what failed in the last; rules that hold are counted."""
    lines = as_text(report).splitlines()
    assert lines[0].startswith("FETCH-05  n2 HandleFetch: ")
    assert lines[0].endswith(report.explanations[0].rule.means)
    assert lines[-1].startswith("FAIL: broken: FETCH-05 (2 traces, ")
    held = sum(rule.verdict is Verdict.PASS for rule in report.rules)
    silent = sum(rule.verdict is Verdict.NOT_EXERCISED for rule in report.rules)
    assert f"{held} rules hold, {silent} rules were not called for by any event; --all lists them" in lines


def test_rules_that_hold_fold(report: Report) -> None:
    """A rule has a line of its own where it failed or is undecided, those that failed first; or all have one."""
    for everything in (False, True):
        lines = as_text(report, everything=everything).splitlines()
        own = [
            rule.verdict
            for rule in report.rules
            if any(re.match(rf"{rule.rule.id} +{rule.verdict.value}", x) for x in lines)
        ]
        shown = [rule.verdict for rule in report.rules if everything or rule.verdict in (Verdict.FAIL, Verdict.INCONCLUSIVE)]
        assert own == shown
    first = next(line for line in lines if re.match(r"[A-Z]+-\d+ +[A-Z]+  ", line))
    assert first.split()[1] == "FAIL"


def test_colour_is_asked_for(report: Report) -> None:
    """No escape codes unless wanted."""
    assert "\x1b[" not in as_text(report)
    assert "\x1b[31;1mFAIL" in as_text(report, colour=True)


def test_json_has_all_rules_and_reads_back(report: Report, tmp_path: Path) -> None:
    """One entry per rule, counts as numbers, explanations as data."""
    write_json(report, tmp_path / "r.json")
    data = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert data == json.loads(json.dumps(as_json(report)))
    assert [rule["rule"] for rule in data["rules"]] == list(RULE_IDS)
    assert data["exit_code"] == 1
    assert list(data)[:6] == ["version", "tool", "verdict", "exit_code", "failures", "explanations"]
    assert data["explanations"][0]["means"] == report.explanations[0].means
    assert data["explanations"][0]["rule"] == "FETCH-05"
    assert data["explanations"][0]["at"].endswith(".ndjson:13")


def test_junit_has_a_suite_per_input(report: Report, tmp_path: Path) -> None:
    """In it a case per rule and one for the input; failures explained, undecided and uncalled rules skipped."""
    write_junit(report, tmp_path / "r.xml")
    root = ElementTree.parse(tmp_path / "r.xml").getroot()
    assert [suite.attrib["name"] for suite in root] == [one.path for one in report.inputs]
    for suite, broken in zip(root, (["FETCH-05"], []), strict=True):
        cases = suite.findall("testcase")
        assert len(cases) == int(suite.attrib["tests"]) == len(RULE_IDS) + 1
        failed = [case for case in cases if case.find("failure") is not None]
        assert [case.attrib["name"] for case in failed] == broken
        assert all("expected" in case.findtext("failure", "") for case in failed)
        assert int(suite.attrib["failures"]) == len(broken)
        assert int(suite.attrib["skipped"]) == sum(case.find("skipped") is not None for case in cases)
    assert {name: root.attrib[name] for name in ("failures", "errors")} == {"failures": "1", "errors": "0"}
    assert __version__ in root.attrib["name"]


def test_an_input_without_events_is_an_error_for_ci(tmp_path: Path) -> None:
    """In its own suite; the others are what they were."""
    write_junit(check([DIRECTORY / "commit.ndjson", tmp_path / "nothing"]), tmp_path / "r.xml")
    root = ElementTree.parse(tmp_path / "r.xml").getroot()
    assert [suite.attrib["errors"] for suite in root] == ["0", "1"]
    assert "a readable file" in root[1].find("testcase/error").attrib["message"]  # type: ignore[union-attr]


# ---------------------------------------------------------------------------------------------------------------------
# The published schema of the JSON report


def strict(schema: Any) -> Any:
    """The schema with every key named: what is written and not said there is a fault of the schema."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {"additionalProperties": False} if "properties" in schema and "event" not in schema["properties"] else {}
    return {key: strict(value) for key, value in schema.items()} | closed


VALIDATOR = jsonschema.Draft202012Validator(strict(json.loads(schema_text())))


LOGS = shipped()["3.4.0/b-kill-leader"]
KINDS = [*sorted(DIRECTORY.glob("fails-*.ndjson"))[:5], DIRECTORY / "commit.ndjson", LOGS, Path("nothing")]


@pytest.mark.parametrize("path", KINDS, ids=lambda path: path.name)
def test_every_report_is_as_its_schema_says(path: Path) -> None:
    """Of traces and logs, right and wrong, and of nothing at all; with the version of the tool."""
    data = json.loads(json_text(check([path])))
    VALIDATOR.validate(data)
    assert data["tool"] == {"name": "tidegauge", "version": __version__, "suite": __suite__}


def test_what_depends_on_the_order_of_lines_is_counted_by_rule() -> None:
    """Where another order would break the rule. In all shares together it is the same; traces have an order."""
    report = check([LOGS])
    (logs,) = report.inputs
    depends, checks = logs.depends_on_order["HW-02"]
    assert 0 < depends < checks
    assert any(
        line.startswith("depends on") and f"HW-02 {depends} of {checks}" in line for line in as_text(report).splitlines()
    )
    assert json.loads(json_text(report))["parts"][0]["depends_on_order"]["HW-02"] == {"depends": depends, "checks": checks}
    assert merge_shares([logs, logs]).depends_on_order["HW-02"] == (2 * depends, 2 * checks)
    assert check([DIRECTORY / "commit.ndjson"]).inputs[0].depends_on_order == {}


@pytest.mark.parametrize(
    ("key", "value"), [("version", 2), ("verdict", "GOOD"), ("exit_code", 4), ("tool", {}), ("events", -1), ("rules", None)]
)
def test_what_is_no_report_is_not_valid(key: str, value: object, report: Report) -> None:
    data = json.loads(json_text(report))
    VALIDATOR.validate(data)
    assert not VALIDATOR.is_valid(data | {key: value})
    del data[key]
    assert not VALIDATOR.is_valid(data)

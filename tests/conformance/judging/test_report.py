"""The reports: the same verdicts for people, programs and CI, and a page that needs nothing but itself."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tidegauge.conformance.evidence.golden import DIRECTORY
from tidegauge.conformance.judging.check import Report, check
from tidegauge.conformance.judging.report import as_json, as_text, write_html, write_json, write_junit
from tidegauge.conformance.judging.report.html import page
from tidegauge.conformance.kernel.rule_ids import RULE_IDS


@pytest.fixture(scope="module")
def report() -> Report:
    return check([DIRECTORY / "fails-no-divergence-check.ndjson", DIRECTORY / "commit.ndjson"])


def test_the_text_ends_with_the_verdict_and_names_the_broken_rule(report: Report) -> None:
    """What failed stands in the last line, its sentence above, and every exercised rule has a line."""
    lines = as_text(report).splitlines()
    assert lines[-1].startswith("FAIL: broken: FETCH-05 (2 traces, ")
    for rule in report.rules:
        exercised = rule.verdict.value != "NOT EXERCISED"
        assert any(line.startswith(rule.rule.id) for line in lines) is exercised
    assert any(line.startswith("not exercised: ") for line in lines)


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
    assert data["explanations"][0]["rule"] == "FETCH-05"
    assert data["explanations"][0]["at"].endswith(".ndjson:13")


def test_junit_counts_what_ci_shows(report: Report, tmp_path: Path) -> None:
    """A case per rule and one for the input; failures explained, undecided and uncalled rules skipped."""
    write_junit(report, tmp_path / "r.xml")
    suite = ElementTree.parse(tmp_path / "r.xml").getroot()[0]
    cases = suite.findall("testcase")
    assert len(cases) == int(suite.attrib["tests"]) == len(RULE_IDS) + 1
    failed = [case for case in cases if case.find("failure") is not None]
    assert [case.attrib["name"] for case in failed] == ["FETCH-05"]
    assert int(suite.attrib["failures"]) == 1
    assert "expected" in failed[0].findtext("failure", "")
    assert int(suite.attrib["skipped"]) == sum(case.find("skipped") is not None for case in cases)


def test_the_page_needs_nothing_from_outside(report: Report, tmp_path: Path) -> None:
    """No link, no request, no other file; style, script and data are in it."""
    write_html(report, tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert not re.search(r"(?:src|href)\s*=", text)
    assert set(re.findall(r"https?://[^\s\"'<>]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in text
    assert "prefers-color-scheme: dark" in text
    for key in ("ArrowLeft", "ArrowRight"):
        assert key in text


def test_the_page_holds_the_failures_as_data(report: Report) -> None:
    """What the script draws can be read back: states before and after each step."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page(report), re.DOTALL)
    assert found is not None
    failures = json.loads(found.group(1).replace("<\\/", "</"))
    assert [failure["rule"] for failure in failures] == [one.rule.id for one in report.explanations]
    last = failures[0]["steps"][-1]["after"]["replicas"]
    assert len(last) == 2
    assert {"leo", "hw", "epochs", "role"} <= set(last[0])


def test_text_from_a_trace_cannot_break_the_page(tmp_path: Path) -> None:
    """A trace name is foreign text: it is escaped in every report."""
    lines = (DIRECTORY / "fails-no-divergence-check.ndjson").read_text(encoding="utf-8").splitlines()
    lines[0] = lines[0].replace("golden/fails-no-divergence-check", "</script><b>\\u0001&")
    path = tmp_path / "x&<y>.ndjson"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    seen = check([path])
    text = page(seen)
    assert "</script><b>" not in text
    assert "x&<y>" not in text.split('id="data"')[0]
    write_junit(seen, tmp_path / "r.xml")
    assert ElementTree.parse(tmp_path / "r.xml").getroot().tag == "testsuites"

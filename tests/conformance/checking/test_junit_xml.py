"""JUnit XML of suites and cases, as CI servers read it."""

from pathlib import Path
from xml.etree import ElementTree

from tidegauge.util.junit import JUnitCase, JUnitOutcome, JUnitSuite, write_junit_xml

CASES = (
    JUnitCase("c", "passes", seconds=0.5),
    JUnitCase("c", "fails", JUnitOutcome.FAILURE, "expected 1, seen 2", "line 1\nline 2"),
    JUnitCase("c", "breaks", JUnitOutcome.ERROR, "no such jar"),
    JUnitCase("c", "is skipped", JUnitOutcome.SKIPPED, "nothing to check"),
)


def test_counts_of_suites_and_of_the_run(tmp_path: Path) -> None:
    suites = [JUnitSuite("one", CASES, {"seed": "7"}, "bad line", 1.25), JUnitSuite("two", CASES[:1])]
    write_junit_xml(tmp_path / "r.xml", "run", suites)
    root = ElementTree.parse(tmp_path / "r.xml").getroot()
    assert root.attrib == {"name": "run", "tests": "5", "failures": "1", "errors": "1", "skipped": "1"}
    assert [(suite.get("name"), suite.get("tests"), suite.get("time")) for suite in root] == [
        ("one", "4", "1.250"),
        ("two", "1", None),
    ]
    assert [case[0].tag for case in root[0].findall("testcase") if len(case)] == ["failure", "error", "skipped"]
    assert root[0].findtext("testcase/failure") == "line 1\nline 2"
    assert root[0].find("properties/property").attrib == {"name": "seed", "value": "7"}  # type: ignore[union-attr]
    assert root[0].findtext("system-err") == "bad line"


def test_what_xml_cannot_hold_is_escaped(tmp_path: Path) -> None:
    write_junit_xml(tmp_path / "r.xml", "a\x01b", [JUnitSuite("\ud800<&>", [JUnitCase("c", "\t\x7f")])])
    root = ElementTree.parse(tmp_path / "r.xml").getroot()
    assert root.get("name") == "a\\x01b"
    assert root[0].get("name") == "\\ud800<&>"

"""JUnit XML, as CI servers read it: suites of cases, each of which passed, failed, broke or was skipped."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from xml.etree import ElementTree

from tidegauge.util.foreign_text import visible, visible_lines


class JUnitOutcome(Enum):
    """What came of a case that did not pass; the value is the name of its element."""

    FAILURE = "failure"
    ERROR = "error"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class JUnitCase:
    """One test case. `message` is one line, `details` the text of the element; a case without an `outcome` passed."""

    classname: str
    name: str
    outcome: JUnitOutcome | None = None
    message: str = ""
    details: str = ""
    seconds: float | None = None


@dataclass(frozen=True)
class JUnitSuite:
    """One test suite; `stderr` is what was wrong with its input."""

    name: str
    cases: Sequence[JUnitCase]
    properties: Mapping[str, str] = field(default_factory=dict)
    stderr: str = ""
    seconds: float | None = None


def write_junit_xml(path: Path, name: str, suites: Sequence[JUnitSuite], seconds: float | None = None) -> None:
    """Write the suites of a run called `name`. Counts are those of the cases, of the run those of all suites."""
    root = ElementTree.Element("testsuites", name=visible(name))
    _set_totals(root, [case for suite in suites for case in suite.cases], seconds)
    root.extend(map(_suite_element, suites))
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _suite_element(suite: JUnitSuite) -> ElementTree.Element:
    element = ElementTree.Element("testsuite", name=visible(suite.name))
    _set_totals(element, suite.cases, suite.seconds)
    if suite.properties:
        properties = ElementTree.SubElement(element, "properties")
        for name, value in suite.properties.items():
            ElementTree.SubElement(properties, "property", name=visible(name), value=visible(value))
    for case in suite.cases:
        attributes = {"classname": visible(case.classname), "name": visible(case.name)} | _time(case.seconds)
        case_element = ElementTree.SubElement(element, "testcase", attributes)
        if case.outcome is not None:
            outcome = ElementTree.SubElement(case_element, case.outcome.value, message=visible(case.message))
            outcome.text = visible_lines(case.details) or None
    # The schema of JUnit asks for this order: properties, cases, what was printed.
    if suite.stderr:
        ElementTree.SubElement(element, "system-err").text = visible_lines(suite.stderr)
    return element


def _set_totals(element: ElementTree.Element, cases: Sequence[JUnitCase], seconds: float | None) -> None:
    counts = {"tests": len(cases)}
    for plural, outcome in (
        ("failures", JUnitOutcome.FAILURE),
        ("errors", JUnitOutcome.ERROR),
        ("skipped", JUnitOutcome.SKIPPED),
    ):
        counts[plural] = sum(case.outcome is outcome for case in cases)
    element.attrib.update({name: str(count) for name, count in counts.items()} | _time(seconds))


def _time(seconds: float | None) -> dict[str, str]:
    return {} if seconds is None else {"time": f"{seconds:.3f}"}

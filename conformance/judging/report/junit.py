"""A report for CI: a suite per input, in it a case per rule, and one for whether the input was whole.

A rule nobody exercised, or nobody could decide, is skipped, and so is the other when something is missing. An input of which
nothing was judged is an error.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree as Xml

from tidegauge.conformance.judging.check import Input, Report
from tidegauge.conformance.judging.explain import Explanation, text
from tidegauge.conformance.judging.tool import tool_version
from tidegauge.conformance.judging.verdicts import Verdict
from tidegauge.traces.problems import Problem

OPEN = (Verdict.INCONCLUSIVE, Verdict.NOT_EXERCISED)


def write_junit(report: Report, path: str | Path) -> None:
    """Write the report as JUnit XML."""
    root = Xml.Element("testsuites", name=f"tidegauge {tool_version()} check", time=f"{report.seconds:.3f}")
    root.extend([_suite(one, [e for e in report.explanations if e.path == one.path]) for one in report.inputs])
    for count in ("tests", "failures", "errors", "skipped"):
        root.set(count, str(sum(int(suite.attrib[count]) for suite in root)))
    Xml.indent(root)
    Xml.ElementTree(root).write(Path(path), encoding="utf-8", xml_declaration=True)


def _suite(one: Input, explanations: Iterable[Explanation]) -> Xml.Element:
    suite = Xml.Element("testsuite", name=_legal(one.path))
    explained = {explanation.rule.id: explanation for explanation in reversed(list(explanations))}
    for rule in one.rules:
        case = Xml.SubElement(suite, "testcase", classname=f"tidegauge.{rule.rule.level}", name=rule.rule.id)
        if rule.verdict is Verdict.FAIL:
            failure = Xml.SubElement(case, "failure", message=_legal(f"{rule.rule.sentence} {rule.says}"))
            if rule.rule.id in explained:
                failure.text = _legal(text(explained[rule.rule.id]))
        elif rule.verdict in OPEN:
            Xml.SubElement(case, "skipped", message=_legal(f"{rule.verdict.value}: {rule.says}"))
    whole = Xml.SubElement(suite, "testcase", classname="tidegauge.input", name="whole")
    if not one.events:
        Xml.SubElement(whole, "error", message=_legal(f"no event was judged: {_said(one.problems) or 'nothing is there'}"))
    elif one.missing:
        Xml.SubElement(whole, "skipped", message=_legal(f"INCONCLUSIVE: missing: {'; '.join(one.missing)}"))
    if one.problems:
        Xml.SubElement(suite, "system-err").text = _legal("\n".join(map(str, one.problems)))
    suite.set("tests", str(len(suite.findall("testcase"))))
    for count, found in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(count, str(len(suite.findall(f"testcase/{found}"))))
    return suite


def _said(problems: Iterable[Problem]) -> str:
    return "; ".join(map(str, problems))


_ILLEGAL = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _legal(words: str) -> str:
    """XML has no place for control characters and halves of surrogate pairs, and a log line may hold some."""
    return _ILLEGAL.sub("?", words)

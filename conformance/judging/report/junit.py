"""A report for CI: one test case per rule, and one for whether the input was whole. A rule nobody exercised, or nobody could
decide, is skipped, and so is the other when something is missing."""

from pathlib import Path
from xml.etree import ElementTree as Xml

from tidegauge.conformance.judging.check import Report
from tidegauge.conformance.judging.explain import text
from tidegauge.conformance.judging.verdicts import Verdict


def write_junit(report: Report, path: str | Path) -> None:
    """Write the report as JUnit XML."""
    suite = Xml.Element(
        "testsuite",
        name="tidegauge check",
        tests=str(len(report.rules) + 1),
        failures=str(sum(rule.verdict is Verdict.FAIL for rule in report.rules)),
        errors=str(int(report.verdict is Verdict.SUITE_ERROR)),
        skipped=str(
            sum(rule.verdict in (Verdict.INCONCLUSIVE, Verdict.NOT_EXERCISED) for rule in report.rules)
            + bool(report.missing)
        ),
        time=f"{report.seconds:.3f}",
    )
    explained = {explanation.rule.id: explanation for explanation in reversed(report.explanations)}
    for rule in report.rules:
        case = Xml.SubElement(suite, "testcase", classname=f"tidegauge.{rule.rule.level}", name=rule.rule.id)
        if rule.verdict is Verdict.FAIL:
            failure = Xml.SubElement(case, "failure", message=f"{rule.rule.sentence} {rule.says}")
            if rule.rule.id in explained:
                failure.text = _legal(text(explained[rule.rule.id]))
        elif rule.verdict in (Verdict.INCONCLUSIVE, Verdict.NOT_EXERCISED):
            Xml.SubElement(case, "skipped", message=f"{rule.verdict.value}: {rule.says}")
    whole = Xml.SubElement(suite, "testcase", classname="tidegauge.input", name="whole")
    if report.missing:
        Xml.SubElement(whole, "skipped", message=_legal(f"INCONCLUSIVE: missing: {'; '.join(report.missing)}"))
    if report.problems:
        out = Xml.SubElement(suite, "system-err")
        out.text = _legal("\n".join(map(str, report.problems)))
    root = Xml.Element("testsuites")
    root.append(suite)
    Xml.indent(root)
    Xml.ElementTree(root).write(Path(path), encoding="utf-8", xml_declaration=True)


def _legal(words: str) -> str:
    """XML has no place for control characters, and a log line may hold some."""
    return "".join(c if c in "\n\t" or c >= " " else "?" for c in words)

"""A report for CI: a suite per input, in it a case per rule, and a case `whole` for the input itself.

A rule that no event exercised, or that could not be decided, is skipped; so is the case `whole` of an input that lacks
something. An input without a judged event, or with an event that could not be read, is an error.
"""

from collections.abc import Iterable
from pathlib import Path

from tidegauge.conformance.checking.check import CheckedInput, Report
from tidegauge.conformance.checking.verdicts import RuleVerdict, Verdict
from tidegauge.conformance.explain.explain import Explanation, explanation_text
from tidegauge.traces.problems import lost
from tidegauge.util.junit import JUnitCase, JUnitOutcome, JUnitSuite, write_junit_xml
from tidegauge.util.untrusted_text import visible
from tidegauge.util.version import TOOL


def write_junit(report: Report, path: str | Path) -> None:
    """Write the report as JUnit XML."""
    suites = [
        _suite(checked, [explanation for explanation in report.explanations if explanation.path == checked.path])
        for checked in report.inputs
    ]
    write_junit_xml(Path(path), f"{TOOL} check", suites, report.seconds)


def _suite(checked: CheckedInput, explanations: Iterable[Explanation]) -> JUnitSuite:
    """Return the suite of an input: a case per rule, and the case `whole`."""
    # A rule may be explained more than once; reversed, the first explanation wins: that of its first failure in the input.
    explained = {explanation.rule.id: explanation for explanation in reversed(list(explanations))}
    cases = [_rule_case(rule, explained.get(rule.rule.id)) for rule in checked.rules]
    problems = [visible(str(problem)) for problem in checked.problems]
    # The case `whole`: passed, unless something was not read or is missing.
    outcome, message = None, ""
    if not checked.events:
        outcome, message = JUnitOutcome.ERROR, f"no event was judged: {'; '.join(problems) or 'nothing is there'}"
    elif lost(checked.problems):
        outcome, message = JUnitOutcome.ERROR, f"not everything could be read: {'; '.join(problems)}"
    elif checked.missing:
        # Not a failure: no rule is known to be broken. But a green case would claim that everything was seen.
        outcome, message = JUnitOutcome.SKIPPED, f"INCONCLUSIVE: missing: {'; '.join(checked.missing)}"
    cases.append(JUnitCase("tidegauge.input", "whole", outcome, message))
    return JUnitSuite(checked.path, cases, stderr="\n".join(problems))


def _rule_case(rule: RuleVerdict, explanation: Explanation | None) -> JUnitCase:
    """Return the case of a rule; `explanation` is that of its first failure, None if it has none in the report."""
    classname = f"tidegauge.{rule.rule.level}"
    if rule.verdict is Verdict.FAIL:
        message = f"{rule.rule.sentence} {rule.says}"
        details = "" if explanation is None else explanation_text(explanation)
        return JUnitCase(classname, rule.rule.id, JUnitOutcome.FAILURE, message, details)
    if rule.verdict in (Verdict.INCONCLUSIVE, Verdict.NOT_EXERCISED):
        return JUnitCase(classname, rule.rule.id, JUnitOutcome.SKIPPED, f"{rule.verdict.value}: {rule.says}")
    return JUnitCase(classname, rule.rule.id)

"""One report from several: of shares of one input, or of several inputs."""

from collections.abc import Sequence

from tidegauge.conformance.judging.check import EXPLAINED_FAILURES, CheckedInput, Report, overall_verdict
from tidegauge.conformance.judging.explain import Explanation
from tidegauge.conformance.judging.verdicts import RuleVerdict, add_tallies, rule_verdicts, run_verdict

MANY = 1000
"""Problems, and lines about what is missing, that one input keeps of all its shares."""


def merge_reports(reports: Sequence[Report], explained: int = EXPLAINED_FAILURES) -> Report:
    """Merge reports on different inputs."""
    inputs = tuple(checked for report in reports for checked in report.inputs)
    return Report(
        inputs=inputs,
        verdict=overall_verdict(inputs),
        rules=_rules([report.rules for report in reports]),
        explanations=_first_of_each_rule([explanation for report in reports for explanation in report.explanations])[
            :explained
        ],
        failures=sum(report.failures for report in reports),
        seconds=max((report.seconds for report in reports), default=0.0),
        notes=tuple(dict.fromkeys(note for report in reports for note in report.notes)),
        judged=tuple(judged for report in reports for judged in report.judged),
    )


def merge_shares(shares: Sequence[CheckedInput]) -> CheckedInput:
    """Merge shares of one input. Every share reads the same files, so a problem that all of them met is reported once."""
    rules = _rules([share.rules for share in shares])
    events = sum(share.events for share in shares)
    with_events = [share for share in shares if share.events] or list(shares)
    # A share without events would miss the whole data path, which another share may have.
    missing = tuple(dict.fromkeys(line for share in with_events for line in share.missing))
    # A line ends with the percentage that is covered, which may differ by share: node and period come before the comma.
    covered = {line.rpartition(",")[0]: line for share in reversed(with_events) for line in share.covered}
    return CheckedInput(
        path=shares[0].path,
        kind=shares[0].kind,
        traces=sum(share.traces for share in shares),
        events=events,
        problems=tuple(dict.fromkeys(problem for share in shares for problem in share.problems))[:MANY],
        covered=tuple(sorted(covered.values())),
        missing=missing[:MANY],
        rules=rules,
        verdict=run_verdict(rules, events, whole=not missing),
    )


def _rules(parts: Sequence[Sequence[RuleVerdict]]) -> tuple[RuleVerdict, ...]:
    tallies = {verdict.rule.id: verdict.tally for verdict in parts[0]}
    for part in parts[1:]:
        tallies = {verdict.rule.id: add_tallies(tallies[verdict.rule.id], verdict.tally) for verdict in part}
    return rule_verdicts(tallies)


def _first_of_each_rule(explanations: Sequence[Explanation]) -> tuple[Explanation, ...]:
    # Reversed, so that the first one of a rule overwrites the later ones.
    firsts = list({explanation.rule.id: explanation for explanation in reversed(explanations)}.values())[::-1]
    return (*firsts, *(explanation for explanation in explanations if explanation not in firsts))

"""What was judged apart as one report: of one input if the parts are shares of it, of several if they are inputs."""

from collections.abc import Sequence

from tidegauge.conformance.judging.check import EXPLAINED_FAILURES, CheckedInput, Report, overall_verdict
from tidegauge.conformance.judging.explain import Explanation
from tidegauge.conformance.judging.verdicts import RuleVerdict, add_tallies, rule_verdicts, run_verdict

MANY = 1000
"""Notes and problems of one input that are kept when shares are put together."""


def merge_reports(reports: Sequence[Report], explained: int = EXPLAINED_FAILURES) -> Report:
    """One report of several."""
    inputs = tuple(one for report in reports for one in report.inputs)
    return Report(
        inputs=inputs,
        verdict=overall_verdict(inputs),
        rules=_rules([report.rules for report in reports]),
        explanations=_first_of_each_rule([one for report in reports for one in report.explanations])[:explained],
        failures=sum(report.failures for report in reports),
        seconds=max((report.seconds for report in reports), default=0.0),
        notes=tuple(dict.fromkeys(note for report in reports for note in report.notes)),
        judged=tuple(one for report in reports for one in report.judged),
    )


def merge_shares(shares: Sequence[CheckedInput]) -> CheckedInput:
    """The input of which these are shares: what each found in the same files is said once."""
    rules = _rules([share.rules for share in shares])
    events = sum(share.events for share in shares)
    with_events = [share for share in shares if share.events] or list(shares)
    missing = tuple(dict.fromkeys(said for share in with_events for said in share.missing))
    covered = {said.rpartition(",")[0]: said for share in reversed(with_events) for said in share.covered}
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
    tallies = {one.rule.id: one.tally for one in parts[0]}
    for part in parts[1:]:
        tallies = {one.rule.id: add_tallies(tallies[one.rule.id], one.tally) for one in part}
    return rule_verdicts(tallies)


def _first_of_each_rule(explanations: Sequence[Explanation]) -> tuple[Explanation, ...]:
    firsts = list({one.rule.id: one for one in reversed(explanations)}.values())[::-1]
    return (*firsts, *(one for one in explanations if one not in firsts))

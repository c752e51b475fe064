"""A path as it went on the broker under test: each step, what it changed, and the judge's verdict on the run."""

from collections.abc import Iterator, Sequence

from tidegauge.conformance.engine.judge import judge
from tidegauge.conformance.explain.explain import explain
from tidegauge.drive.broker.contract import REPORTED, BrokerCase
from tidegauge.drive.broker.reference import field_text, step_text
from tidegauge.drive.contract import Report
from tidegauge.drive.paths.scenarios import Named
from tidegauge.traces.columns import to_columns
from tidegauge.traces.schema import Trace

ALWAYS_NEW = ("result", "produced", "fetched")
"""Fields that are about one step only; the others are reported when they change."""


def shown_text(scenario: Named, reports: Sequence[Report], broker: str) -> str:
    """Return the whole report; `reports` begins with that of the opening, and ends where the broker differed."""
    lines = [
        f"{scenario.name}: {scenario.claim}",
        f"  {scenario.broker} is {broker}, broker 1 of the steps; n1, n2, .. are b1, b2, ..",
    ]
    lines += steps_text(scenario.case, reports)
    # The trace is the cluster's, with the driven broker in it only as long as no step differs.
    if len(reports) <= len(scenario.case.path):
        lines.append(
            f"  left out: {len(scenario.case.path) + 1 - len(reports)} steps, for the broker differs; the judge is not asked"
        )
    elif scenario.trace is None:
        lines.append(f"  No step differs, but {scenario.unjudged}; the judge is not asked")
    else:
        lines += ["  No step differs: this is the run of the cluster, with that broker in it.", *judged_text(scenario.trace)]
    return "\n".join([*lines, ""])


def steps_text(case: BrokerCase, reports: Sequence[Report]) -> list[str]:
    """Return a line for each step that was played, and one for what changed."""
    lines = []
    for at, (step, before, after) in enumerate(zip(case.path, reports, reports[1:], strict=False), start=1):
        lines += [f"  {at:>2}  {step_text(step)}", f"        {'; '.join(_changes(before, after)) or 'nothing changes'}"]
    return lines


def _changes(before: Report, after: Report) -> Iterator[str]:
    """Yield what a step changed, a text per field; of the fields about one step, what they have."""
    for field in REPORTED:
        if field not in after:
            continue
        now = after[field]
        if field in ALWAYS_NEW:
            if now:
                yield f"{field} {field_text(field, now)}"
        elif field not in before or before[field] != now:
            was = f"{field_text(field, before[field])} -> " if field in before else ""
            yield f"{field} {was}{field_text(field, now)}"


def judged_text(trace: Trace) -> list[str]:
    """Return which rules the run breaks, at which event, and what led there."""
    columns = to_columns([trace], trace.config)
    judgement = judge(columns, trace.config)
    if not judgement.failures:
        return ["the judge accepts this run: no rule is broken"]
    lines = [f"the judge rejects this run: {', '.join(failure.rule for failure in judgement.failures)}"]
    for failure in judgement.failures:
        explanation = explain(columns, trace.config, failure, [trace])
        lines.append(f"  {failure.rule:<9} at n{explanation.event.node} {explanation.event.event}: {explanation.means}")
        lines += [f"            {cause.number:>4}  {cause.says}" for cause in explanation.because]
    return lines

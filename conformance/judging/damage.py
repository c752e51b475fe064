"""Failures behind a lost line. What the line would have told, nobody knows: so nobody knows whether a rule is broken.

Rules of this file

1. A failure in front of the first lost line of its trace stands: the judge reads in order, and looks at nothing later.
2. Any other counts as undecided, is not explained, and keeps its rule, and the run, from passing.
"""

from dataclasses import replace

from tidegauge.conformance.judging.judge import Judgement, RuleTally


def undecide_after_loss(judgement: Judgement, row: int, name: str) -> Judgement:
    """The judgement on one trace called `name` that lost a line in front of its event number `row`, counted from 0."""
    behind = {failure.rule for failure in judgement.failures if failure.row >= row}
    if not behind:
        return judgement
    tallies = {rule: _undecided(tally) if rule in behind else tally for rule, tally in judgement.tallies.items()}
    rules = ", ".join(rule for rule in tallies if rule in behind)
    note = f"{name}: a line in front of its event {row + 1} was lost; what fails from there on is undecided: {rules}"
    return replace(
        judgement,
        tallies=tallies,
        failures=tuple(failure for failure in judgement.failures if failure.rule not in behind),
        notes=(*judgement.notes, note),
    )


def _undecided(tally: RuleTally) -> RuleTally:
    return replace(tally, failed=0, failed_traces=0, after_loss=tally.failed)

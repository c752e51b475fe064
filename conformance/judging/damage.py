"""Failures after a lost line: without what that line reported, nobody knows whether a rule is broken.

Rules of this file

1. A failure before the first lost line of its trace counts: the judge reads in order, and looks at nothing later.
2. Any other counts as undecided, is not explained, and keeps its rule, and the run, from passing.
"""

from dataclasses import replace

from tidegauge.conformance.judging.judge import Judgement, RuleTally


def undecide_after_loss(judgement: Judgement, row: int, name: str) -> Judgement:
    """Return the judgement on a trace called `name` that lost a line before its event number `row`, counted from 0."""
    # Any failed rule is undecided as a whole: a tally does not say which of its failed checks came after the loss.
    after_loss = {failure.rule for failure in judgement.failures if failure.row >= row}
    if not after_loss:
        return judgement
    tallies = {rule: _undecided(tally) if rule in after_loss else tally for rule, tally in judgement.tallies.items()}
    rules = ", ".join(rule for rule in tallies if rule in after_loss)
    note = f"{name}: a line in front of its event {row + 1} was lost; what fails from there on is undecided: {rules}"
    return replace(
        judgement,
        tallies=tallies,
        failures=tuple(failure for failure in judgement.failures if failure.rule not in after_loss),
        notes=(*judgement.notes, note),
    )


def _undecided(tally: RuleTally) -> RuleTally:
    return replace(tally, failed=0, failed_traces=0, after_loss=tally.failed)

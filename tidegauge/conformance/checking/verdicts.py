"""From tallies to verdicts.

Rules of this file

1. One failed check fails its rule. A rule that held at least once and never failed passes, and says how often it could
   not be decided. A rule that was never decided is inconclusive and names the fields that would have decided it.
2. A check that failed after a lost line fails nothing, but its rule does not pass.
3. A run fails when a MUST rule fails. A run in which nothing was decided, or a check failed after a lost line, has not
   passed. Nor has a run over incomplete logs, or with anything that could not be read: nobody has checked what is not there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from tidegauge.conformance.engine.judge import RuleTally
from tidegauge.conformance.judge.fields import RULE_IDS
from tidegauge.conformance.judge.rulebook import Rule, rulebook


class Verdict(Enum):
    """The verdict on a rule, or on a run."""

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    NOT_EXERCISED = "NOT EXERCISED"
    SUITE_ERROR = "SUITE ERROR"


@dataclass(frozen=True)
class RuleVerdict:
    """One line of a report."""

    rule: Rule
    verdict: Verdict
    tally: RuleTally

    @property
    def says(self) -> str:
        """The counts in words, and what was missing."""
        t = self.tally
        parts = [f"{t.held:,} held"] if t.held else []
        if t.failed:
            parts.append(f"{t.failed:,} failed in {t.failed_traces:,} trace{'s' if t.failed_traces != 1 else ''}")
        if t.after_loss:
            parts.append(f"{t.after_loss:,} failed after a line was lost")
        if t.undecided:
            parts.append(f"{t.undecided:,} undecided for want of {', '.join(t.missing) or 'an observation'}")
        return ", ".join(parts) or "no event calls for it"


def verdict_of(tally: RuleTally) -> Verdict:
    """Return the verdict on one rule."""
    if tally.failed:
        return Verdict.FAIL
    # Before PASS: a check that failed after a lost line may be a real failure.
    if tally.after_loss:
        return Verdict.INCONCLUSIVE
    if tally.held:
        return Verdict.PASS
    return Verdict.INCONCLUSIVE if tally.undecided else Verdict.NOT_EXERCISED


def rule_verdicts(tallies: Mapping[str, RuleTally]) -> tuple[RuleVerdict, ...]:
    """Return the verdicts on all rules, in the order of the rulebook."""
    rules = rulebook()
    return tuple(RuleVerdict(rules[rule], verdict_of(tallies[rule]), tallies[rule]) for rule in RULE_IDS)


DATA_PATH = ("HW-", "FETCH-", "APPEND-")
"""Rules about what a broker does with records, by the beginning of their ids."""


def decides_data_path(tallies: Mapping[str, RuleTally]) -> bool:
    """Return whether at least one check of what a broker does with records was decided."""
    return any(tally.held or tally.failed for rule, tally in tallies.items() if rule.startswith(DATA_PATH))


def run_verdict(verdicts: Iterable[RuleVerdict], events: int, whole: bool = True) -> Verdict:
    """Return the verdict on a run; `whole` is false if its source is known to lack something, or was not read as a whole."""
    verdicts = tuple(verdicts)
    seen = {v.verdict for v in verdicts if v.rule.level == "MUST" or v.verdict is not Verdict.FAIL}
    # A run without events would pass every MUST rule and has checked nothing.
    if events == 0:
        return Verdict.SUITE_ERROR
    if Verdict.FAIL in seen:
        return Verdict.FAIL
    if not whole or any(v.tally.after_loss for v in verdicts):
        return Verdict.INCONCLUSIVE
    return Verdict.PASS if Verdict.PASS in seen else Verdict.INCONCLUSIVE

"""From tallies to verdicts; and which failures may come from what was not read, so that they are set aside.

A tally (engine.judge.RuleTally) counts the checks of a rule that held, failed, or could not be decided. A judgement has the
tallies of all rules and the first failures. A lost line could not be read; a gap is a stretch of a broker's log of which
lines are missing.

Rules of this file

1. One failed check fails its rule. A rule that held at least once and never failed passes, and says how often it could
   not be decided. A rule that was never decided is inconclusive and names the fields that would have decided it.
2. A check that failed after a lost line fails nothing, but its rule does not pass.
3. A run fails when a MUST rule fails. A run in which nothing was decided, or a check failed after a lost line, has not
   passed. Nor has a run over incomplete logs, or with anything that could not be read: nobody has checked what is not there.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from tidegauge.conformance.engine.judge import Failure, Judgement, RuleTally, judge
from tidegauge.conformance.judge.fields import LOSE_DISK, RULE_IDS
from tidegauge.conformance.judge.rulebook import Rule, rulebook
from tidegauge.traces.columns import Columns, Distinct, table_of, to_columns
from tidegauge.traces.schema import GAPS, Config, Trace


class Verdict(Enum):
    """The verdict on a rule, or on a run."""

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    NOT_EXERCISED = "NOT EXERCISED"
    SUITE_ERROR = "SUITE ERROR"


@dataclass(frozen=True)
class RuleVerdict:
    """The verdict on a rule, and the tally that it comes from."""

    rule: Rule
    verdict: Verdict
    tally: RuleTally

    @property
    def says(self) -> str:
        """The counts in words, and what was missing."""
        tally = self.tally
        parts = [f"{tally.held:,} held"] if tally.held else []
        if tally.failed:
            parts.append(
                f"{tally.failed:,} failed in {tally.failed_traces:,} trace{'s' if tally.failed_traces != 1 else ''}"
            )
        if tally.after_loss:
            parts.append(f"{tally.after_loss:,} failed after a line was lost")
        if tally.undecided:
            parts.append(f"{tally.undecided:,} undecided for want of {', '.join(tally.missing) or 'an observation'}")
        return ", ".join(parts) or "no event calls for it"


def verdict_of(tally: RuleTally) -> Verdict:
    """Return the verdict that a tally gives its rule (rules 1 and 2)."""
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
    """Return the verdict on a run over so many events (rule 3).

    `whole` is false if the source is known to lack something, or was not read as a whole.
    """
    verdicts = tuple(verdicts)
    # A SHOULD or MAY rule that fails is reported, and neither fails a run nor lets it pass.
    counting = {rule.verdict for rule in verdicts if rule.rule.level == "MUST" or rule.verdict is not Verdict.FAIL}
    # A run without events would pass every MUST rule and has checked nothing.
    if events == 0:
        return Verdict.SUITE_ERROR
    if Verdict.FAIL in counting:
        return Verdict.FAIL
    if not whole or any(rule.tally.after_loss for rule in verdicts):
        return Verdict.INCONCLUSIVE
    return Verdict.PASS if Verdict.PASS in counting else Verdict.INCONCLUSIVE


# Failures that may be the fault of what was not read: after lost lines, in gaps of logs, on lost disks.

# Failures after a lost line: without what that line reported, nobody knows whether a rule is broken.
#
# Rules of this part
#
# 1. A failure before the first lost line of its trace counts: the judge reads in order, and looks at nothing later.
# 2. Any other counts as undecided, is not explained, and keeps its rule, and the run, from passing.


def undecide_after_loss(judgement: Judgement, row: int, name: str) -> Judgement:
    """Return the judgement on one trace without the failures that a lost line may explain; a note names their rules.

    The trace is called `name`; the line was lost before its event number `row`, counted from 0.
    """
    # A rule whose first failure came after the loss is undecided as a whole. One that failed before it has failed: a tally
    # does not say which of its further failed checks came after the loss.
    after_loss = {failure.rule for failure in judgement.failures if failure.row >= row}
    if not after_loss:
        return judgement
    tallies = {rule: _undecided(tally) if rule in after_loss else tally for rule, tally in judgement.tallies.items()}
    rules = ", ".join(rule for rule in tallies if rule in after_loss)
    note = f"{name}: a line before its event {row + 1} was lost; these rules fail after it and are undecided: {rules}"
    return replace(
        judgement,
        tallies=tallies,
        failures=tuple(failure for failure in judgement.failures if failure.rule not in after_loss),
        notes=(*judgement.notes, note),
    )


def _undecided(tally: RuleTally) -> RuleTally:
    """Return the tally with its failed checks counted as failed after a loss."""
    return replace(tally, failed=0, failed_traces=0, after_loss=tally.failed)


# Failures in logs with missing lines: which of them are certain.
#
# 1. Between two gaps the logs are complete. Each such stretch is judged again by itself, so that all knowledge comes from
# it: what fails there too is broken, whatever the missing lines held.
# 2. Every other failure may come from the gap: it is undecided, and the note names the lines that would have decided it.
# 3. A gap is detected when something does not fit, some events late: so a stretch begins and ends some events away from it.


MARGIN = 24
"""Events on either side of a gap that belong to no stretch: requests were in flight there."""
LEAST = 4
"""Events of the shortest stretch that is judged: a shorter one decides nothing."""


@dataclass(frozen=True)
class LogGap:
    """Lines are missing between two events of a trace, counted from 0; `missing` says which."""

    first: int
    last: int
    missing: str


def log_gaps(config: Config) -> tuple[LogGap, ...]:
    """Return the gaps that a Config names."""
    return tuple(LogGap(*gap) for gap in config.extra.get(GAPS, ()))


def with_gaps(config: Config, doubts: Sequence[LogGap]) -> Config:
    """Return the Config with these gaps, if there are any."""
    gaps = [[doubt.first, doubt.last, doubt.missing] for doubt in doubts]
    return replace(config, extra={**config.extra, GAPS: gaps}) if gaps else config


def gapless_stretches(doubts: Sequence[LogGap], events: int) -> Iterator[tuple[int, int]]:
    """Yield the stretches of a trace of so many events in which logs are complete: (first event, one after the last).

    `doubts` are its gaps. A stretch keeps MARGIN events away from each.
    """
    begin = 0  # of the next stretch
    for doubt in sorted(doubts, key=lambda gap: (gap.first, gap.last)):
        if doubt.first - MARGIN - begin >= LEAST:
            yield begin, doubt.first - MARGIN
        # Gaps may overlap: one that begins earlier may end later.
        begin = max(begin, doubt.last + MARGIN)
    if events - begin >= LEAST:
        yield begin, events


def keep_certain_failures(judgement: Judgement, trace: Trace, config: Config, doubts: Sequence[LogGap]) -> Judgement:
    """Return the judgement on one trace with only those failures that no missing line explains; `doubts` are its gaps.

    The others are counted as failed after a loss; for each rule without a certain failure a note names what is missing.
    """
    if not doubts or not judgement.failures:
        return judgement
    certain: dict[str, Failure] = {}  # by rule, its first failure in a stretch
    counts: dict[str, int] = {}  # by rule, its failed checks in all stretches
    # Each stretch is judged from an unknown state: a failure there rests on no event before the gap.
    for first, end in gapless_stretches(doubts, len(trace.events)):
        piece = replace(trace, events=trace.events[first:end])
        of_piece = judge(to_columns([piece], config), config)
        for failure in of_piece.failures:
            certain.setdefault(failure.rule, replace(failure, row=failure.row + first))
            counts[failure.rule] = counts.get(failure.rule, 0) + of_piece.tallies[failure.rule].failed
    # Only rules that fail in the whole trace: what fails in a stretch alone may come from what the stretch does not know.
    failed = {failure.rule for failure in judgement.failures}
    tallies = {
        rule: _certain(tally, counts.get(rule, 0)) if rule in failed else tally for rule, tally in judgement.tallies.items()
    }
    notes = tuple(_note(failure, trace, doubts) for failure in judgement.failures if failure.rule not in certain)
    failures = tuple(
        sorted((failure for rule, failure in certain.items() if rule in failed), key=lambda failure: failure.row)
    )
    return replace(judgement, tallies=tallies, failures=failures, notes=(*judgement.notes, *notes))


def _certain(tally: RuleTally, failed: int) -> RuleTally:
    """Return the tally of one trace with only `failed` certain failures, the others counted as failed after a loss."""
    return replace(tally, failed=failed, failed_traces=min(1, failed), after_loss=max(0, tally.failed - failed))


def _note(failure: Failure, trace: Trace, doubts: Sequence[LogGap]) -> str:
    """Name the lines that would have decided a failure: of the gap that ends last of those begun by it, or the first gap.

    A failure before any gap may come from the first one: a gap is detected some events late.
    """
    before = [doubt for doubt in doubts if doubt.first <= failure.row]
    nearest = max(before, key=lambda gap: gap.last) if before else min(doubts, key=lambda gap: gap.first)
    where = trace.events[failure.row].at or f"event {failure.row + 1} of {trace.name}"
    return f"{failure.rule} fails at {where}, which may be only because this is missing: {nearest.missing}"


# Lost disks get a note: no broker is at fault, and no rule is about them.


LostDisk = tuple[int, str]
"""The node that lost its disk, and where that was read."""


def lost_disks(
    stored: Columns | Distinct, config: Config, traces: tuple[Trace, ...] | None, source: str
) -> Iterator[LostDisk]:
    """Yield each LoseDisk event of a batch, one per replica: its node, and the place where it was read.

    `traces` are the events that the columns were made from, if they are there; `source` is the place of an event that does
    not name its own.
    """
    events = None if traces is None else [event for trace in traces for event in trace.events]
    nodes = [*config.nodes, *([] if config.controller is None else [config.controller])]
    # `rows` numbers the table's rows in the order of the events; None where the table has them in that order itself.
    table, rows = table_of(stored)
    loses_disk = table.event == LOSE_DISK  # by row of the table
    if not loses_disk.any():
        return
    for number in np.flatnonzero(loses_disk if rows is None else loses_disk[rows]).tolist():
        at = source if events is None else events[number].at
        yield nodes[int(table.node[number if rows is None else rows[number]])], at or source


def lost_disk_notes(lost: Iterable[LostDisk]) -> Iterator[str]:
    """Yield a note for each node that lost a disk, with the number of its replicas and the first place."""
    by_node: dict[int, list[str]] = {}
    for node, at in lost:
        by_node.setdefault(node, []).append(at)
    for node, places in sorted(by_node.items()):
        replicas = "1 replica" if len(places) == 1 else f"{len(places):,} replicas"
        yield f"node {node} lost its disk ({replicas}, {places[0]}): no rule is broken by that, only by what follows from it"

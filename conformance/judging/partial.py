"""Failures in logs that lines are missing from: which of them are certain.

Rules of this file

1. Between two gaps the logs are complete. Each such stretch is judged again from nothing, so that all knowledge comes from
   it: what fails there too is broken, whatever the missing lines held.
2. Every other failure may come from the gap: it is undecided, and the note names the lines that would have decided it.
3. A gap is detected when something does not fit, some events late: so a stretch begins and ends some events away from it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tidegauge.conformance.judging.judge import Failure, Judgement, RuleTally, judge
from tidegauge.traces.columns import to_columns
from tidegauge.traces.schema import GAPS, Config, Trace

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
    """Yield the stretches in which logs are complete: (first event, one after the last)."""
    at = 0
    for doubt in sorted(doubts, key=lambda gap: (gap.first, gap.last)):
        if doubt.first - MARGIN - at >= LEAST:
            yield at, doubt.first - MARGIN
        at = max(at, doubt.last + MARGIN)
    if events - at >= LEAST:
        yield at, events


def keep_certain_failures(judgement: Judgement, trace: Trace, config: Config, doubts: Sequence[LogGap]) -> Judgement:
    """Return the judgement on one trace with only those failures that no missing line explains."""
    if not doubts or not judgement.failures:
        return judgement
    kept: dict[str, Failure] = {}
    counts: dict[str, int] = {}
    for first, end in gapless_stretches(doubts, len(trace.events)):
        piece = replace(trace, events=trace.events[first:end])
        again = judge(to_columns([piece], config), config)
        for failure in again.failures:
            kept.setdefault(failure.rule, replace(failure, row=failure.row + first))
            counts[failure.rule] = counts.get(failure.rule, 0) + again.tallies[failure.rule].failed
    # Only rules that fail in the whole trace: what a stretch alone breaks may come of what it does not know.
    failed = {failure.rule for failure in judgement.failures}
    tallies = {
        rule: _certain(tally, counts.get(rule, 0)) if rule in failed else tally for rule, tally in judgement.tallies.items()
    }
    notes = tuple(_note(failure, trace, doubts) for failure in judgement.failures if failure.rule not in kept)
    failures = tuple(sorted((failure for rule, failure in kept.items() if rule in failed), key=lambda failure: failure.row))
    return replace(judgement, tallies=tallies, failures=failures, notes=(*judgement.notes, *notes))


def _certain(tally: RuleTally, failed: int) -> RuleTally:
    return replace(tally, failed=failed, failed_traces=min(1, failed), after_loss=max(0, tally.failed - failed))


def _note(failure: Failure, trace: Trace, doubts: Sequence[LogGap]) -> str:
    """Name the lines that would have decided a failure: of the gap that ends last before it, or else of the first gap."""
    before = [doubt for doubt in doubts if doubt.first <= failure.row]
    nearest = max(before, key=lambda gap: gap.last) if before else min(doubts, key=lambda gap: gap.first)
    where = trace.events[failure.row].at or f"event {failure.row + 1} of {trace.name}"
    return f"{failure.rule} fails at {where}, which may be for want of {nearest.missing}"

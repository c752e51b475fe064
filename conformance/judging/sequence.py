"""SEQ-01: the numbers of a node's events. Columns do not carry them, so this is judged on events.

A node counts from any number, by one, and may begin again from 0 or 1 when it starts. A number that does not follow shows
that lines are missing: no broker has broken a rule, so it is counted as lost, and the run has not passed. An event that is
reported twice under one number does break the rule.
"""

from collections.abc import Sequence
from dataclasses import replace

from tidegauge.conformance.judging.judge import Failure, Judgement, RuleTally
from tidegauge.traces.columns import Columns
from tidegauge.traces.schema import Event, Trace

RULE = "SEQ-01"
SHOWN = 5
"""Gaps that notes name; the others are counted."""


class Numbers:
    """The numbers of one trace, event by event: how often they held, failed or showed a gap; the first failure and gaps."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.held = self.failed = self.lost = 0
        self.first: Failure | None = None
        self.notes: list[str] = []
        self._last: dict[int, Event] = {}

    def take(self, row: int, event: Event) -> None:
        """Check the next event, in this row of the trace."""
        if event.seq is None:
            return
        before = self._last.get(event.node)
        self._last[event.node] = event
        number = None if before is None else before.seq
        if before is None or number is None or event.seq == number + 1 or (event.event == "Start" and event.seq in (0, 1)):
            self.held += 1
        elif event.seq == number and (event.event, event.fields) == (before.event, before.fields):
            self.failed += 1
            self.first = self.first or Failure(0, row, RULE, "seq", number + 1, event.seq)
        else:
            self.lost += 1
            if len(self.notes) < SHOWN:
                where = event.at or f"event {row + 1} of {self.name}"
                self.notes.append(
                    f"node {event.node}: lines are missing in front of {where}: seq {event.seq} follows {number}"
                )


def judge_sequence(judgement: Judgement, traces: Sequence[Trace], columns: Columns) -> Judgement:
    """Return the judgement with SEQ-01 added."""
    numbers = [Numbers(trace.name) for trace in traces]
    for trace_numbers, trace in zip(numbers, traces, strict=True):
        for row, event in enumerate(trace.events):
            trace_numbers.take(row, event)
    return with_numbers(judgement, numbers, columns.trace_starts.tolist())


def with_numbers(judgement: Judgement, numbers: Sequence[Numbers], starts: Sequence[int]) -> Judgement:
    """Return the judgement with SEQ-01 added, from the numbers of its traces, which begin at the rows `starts`."""
    failures = [replace(one.first, trace=at, row=starts[at] + one.first.row) for at, one in enumerate(numbers) if one.first]
    held, failed, lost = (sum(getattr(of_trace, count) for of_trace in numbers) for count in ("held", "failed", "lost"))
    notes = [note for of_trace in numbers for note in of_trace.notes][:SHOWN]
    if lost > SHOWN:
        notes.append(f"and {lost - SHOWN} more gaps")
    tally = RuleTally(held, failed, 0, (), len(failures), after_loss=lost)
    merged = sorted((*judgement.failures, *failures), key=lambda failure: (failure.trace, failure.row))
    tallies = {**judgement.tallies, RULE: tally}
    return replace(judgement, tallies=tallies, failures=tuple(merged), notes=(*judgement.notes, *notes))

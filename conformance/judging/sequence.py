"""SEQ-01: the numbers of a node's events. Columns do not carry them, so this is judged on events.

A node counts from any number, by one, and may begin anew when it starts. A number that does not follow says that lines are
missing: that breaks no rule of a broker, so it is counted as lost, and the run has not passed. An event that is reported
twice under one number does break the rule.
"""

from collections.abc import Sequence
from dataclasses import replace

from tidegauge.conformance.judging.judge import Failure, Judgement, RuleTally
from tidegauge.traces.columns import Columns
from tidegauge.traces.schema import Event, Trace

RULE = "SEQ-01"
SHOWN = 5
"""Gaps named in notes; the others are counted."""


def judge_sequence(judgement: Judgement, traces: Sequence[Trace], columns: Columns) -> Judgement:
    """The judgement with SEQ-01 added."""
    held = failed = lost = 0
    notes: list[str] = []
    failures: list[Failure] = []
    for at, trace in enumerate(traces):
        last: dict[int, Event] = {}
        first = int(columns.trace_starts[at])
        found: Failure | None = None
        for row, event in enumerate(trace.events, first):
            if event.seq is None:
                continue
            before = last.get(event.node)
            last[event.node] = event
            number = None if before is None else before.seq
            if (
                before is None
                or number is None
                or event.seq == number + 1
                or (event.event == "Start" and event.seq in (0, 1))
            ):
                held += 1
            elif event.seq == number and (event.event, event.fields) == (before.event, before.fields):
                failed += 1
                found = found or Failure(at, row, RULE, "seq", number + 1, event.seq)
            else:
                lost += 1
                where = event.at or f"event {row + 1 - first} of {trace.name}"
                notes.append(f"node {event.node}: lines are missing in front of {where}: seq {event.seq} follows {number}")
        failures += [found] if found else []
    if len(notes) > SHOWN:
        notes = [*notes[:SHOWN], f"and {len(notes) - SHOWN} more gaps"]
    tally = RuleTally(held, failed, 0, (), len(failures), after_loss=lost)
    merged = sorted((*judgement.failures, *failures), key=lambda failure: (failure.trace, failure.row))
    tallies = {**judgement.tallies, RULE: tally}
    return replace(judgement, tallies=tallies, failures=tuple(merged), notes=(*judgement.notes, *notes))

"""SEQ-01: the numbers of a node's events. Columns do not carry them, so this is judged on events.

A node counts from any number, by one, and may begin anew when it starts.
"""

from collections.abc import Sequence
from dataclasses import replace

from tidegauge.conformance.judging.judge import Failure, Judgement, RuleTally
from tidegauge.traces.columns import Columns
from tidegauge.traces.schema import Trace

RULE = "SEQ-01"


def judge_sequence(judgement: Judgement, traces: Sequence[Trace], columns: Columns) -> Judgement:
    """The judgement with SEQ-01 added."""
    held = failed = 0
    failures: list[Failure] = []
    for at, trace in enumerate(traces):
        last: dict[int, int] = {}
        first = int(columns.trace_starts[at])
        found: Failure | None = None
        for row, event in enumerate(trace.events, first):
            if event.seq is None:
                continue
            before = last.get(event.node)
            last[event.node] = event.seq
            if before is None or event.seq == before + 1 or (event.event == "Start" and event.seq in (0, 1)):
                held += 1
                continue
            failed += 1
            found = found or Failure(at, row, RULE, "seq", before + 1, event.seq)
        failures += [found] if found else []
    tally = RuleTally(held, failed, 0, (), len(failures))
    merged = sorted((*judgement.failures, *failures), key=lambda failure: (failure.trace, failure.row))
    return replace(judgement, tallies={**judgement.tallies, RULE: tally}, failures=tuple(merged))

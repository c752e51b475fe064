"""Validate traces of schema v1 against the spec: TLC decides which of them the spec can produce. The oracle of the judge.

Rules of this file

1. TraceEvents.tla defines the events of a step. Nothing here knows an action: an event is a node, a name and numbers.
2. All traces go into one prefix tree and one run: a common prefix is tried once, so a mutant of a trace costs no more than
   the events after the change.
3. The furthest event that was reached is reported, so a rejected trace shows where.
"""

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tidegauge.spec.checker.models import Model
from tidegauge.spec.checker.tlc import Limits, TlcOutcome, run_tlc
from tidegauge.spec.errors import SpecError
from tidegauge.spec.validation.trace_validation import TlcVerdict, Validation, trace_config

EventValue = int | tuple[tuple[int, int], ...]
"""A number, a bit mask, or the entries of an epoch cache."""


class Reported(NamedTuple):
    """An event as TraceEvents.tla reads it: the number of its node, its name, its fields."""

    node: int
    event: str
    fields: Mapping[str, EventValue]


class _Tree:
    """A prefix tree with nodes from 1; `paths` has, for each trace, the node that each of its events leads to."""

    def __init__(self, traces: Sequence[Sequence[Reported]]) -> None:
        self.events: dict[str, int] = {}
        self.children: list[dict[int, int]] = [{}]
        self.paths = [self._path(trace) for trace in traces]

    def _path(self, trace: Sequence[Reported]) -> list[int]:
        path: list[int] = []
        node = 1
        for reported in trace:
            number = self.events.setdefault(_record(reported), len(self.events) + 1)
            following = self.children[node - 1].get(number)
            if following is None:
                self.children.append({})
                following = self.children[node - 1][number] = len(self.children)
            node = following
            path.append(node)
        return path

    def module(self, truncations: bool) -> str:
        events = ",\n".join(f"  {event}" for event in self.events)
        children = ",\n".join("  {" + ", ".join(f"<<{e}, {n}>>" for e, n in c.items()) + "}" for c in self.children)
        return (
            f"---- MODULE TraceTree ----\nEXTENDS Integers\nEvents == <<\n{events}\n>>\nChildren == <<\n{children}\n>>\n"
            f"TruncatesAtHighWatermark == {str(truncations).upper()}\n====\n"
        )


def _record(reported: Reported) -> str:
    fields = ", ".join(f"{name} |-> {_value(value)}" for name, value in sorted(reported.fields.items()))
    return f'[node |-> {reported.node}, event |-> "{reported.event}", fields |-> {f"[{fields}]" if fields else "<<>>"}]'


def _value(value: EventValue) -> str:
    if isinstance(value, tuple):
        return "<<" + ", ".join(f"<<{epoch}, {start}>>" for epoch, start in value) + ">>"
    return str(value)


def validate_events(
    traces: Sequence[Sequence[Reported]], model: Model, *, brokers: int, max_fetch: int = 1, limits: Limits | None = None
) -> Validation:
    """Ask TLC which traces the spec can produce under the profile of `model`. Raises SpecError when TLC has no verdict.

    `max_fetch`: records in one response, at most. `matched` in a verdict counts events.
    """
    if not traces or not all(traces):
        raise SpecError("expected traces with events to validate, seen none: leave empty ones out")
    tree = _Tree(traces)
    reached: set[int] = set()
    started = time.monotonic()
    result = run_tlc(
        "TraceEvents",
        trace_config(model, brokers, MaxFetch=max_fetch).text(),
        extra_modules={"TraceTree.tla": tree.module("TruncateOnBecomeFollower" in model.config().substitutions)},
        limits=limits,
        on_line=lambda line: reached.add(int(line.strip("<> "))),
    )
    if result.outcome is not TlcOutcome.SUCCESS:
        raise SpecError(f"expected TLC to try the traces, seen {result.outcome.value}: {result.message}")
    verdicts = tuple(TlcVerdict(path[-1] in reached, sum(node in reached for node in path)) for path in tree.paths)
    return Validation(verdicts, sum(map(len, traces)), time.monotonic() - started)

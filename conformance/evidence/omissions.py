"""Right traces with parts left out: no rule may fail, since what is absent is unknown.

Rules of this file

1. A part is a value, a field (everywhere, or in one kind of event), a kind of event, a node, or a line: one of them, every
   one in turn. Sets of them are drawn by hypothesis (tests), or at random for
   many interleavings (conformance.evidence.absent).
2. A kind that is left out is declared in `reports`. A node that is left out is not: nothing is expected of a silent node. A
   line that is left out shows as a gap in the numbers; where none would show, the Config says `"whole": false`.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from tidegauge.conformance.judging.options import REPORTS
from tidegauge.traces.schema import EVENTS, WHOLE, Config, Event, Trace

Left = tuple[str, Trace]
"""What was left out, and the trace without it."""


def without_values(trace: Trace) -> Iterator[Left]:
    """Each value of each event."""
    for at, event in enumerate(trace.events):
        for name in event.fields:
            events = (*trace.events[:at], _less(event, {name}), *trace.events[at + 1 :])
            yield f"{name} of event {at + 1}, {event.event}", replace(trace, events=events)


def without_fields(trace: Trace) -> Iterator[Left]:
    """Each field, everywhere and in one kind of event."""
    kinds = sorted({event.event for event in trace.events})
    for name in sorted({name for event in trace.events for name in event.fields}):
        yield f"{name} everywhere", fields_left_out(trace, {(kind, name) for kind in kinds})
        for kind in kinds:
            if any(event.event == kind and name in event.fields for event in trace.events):
                yield f"{name} of every {kind}", fields_left_out(trace, {(kind, name)})


def without_kinds(trace: Trace) -> Iterator[Left]:
    """Each kind of event."""
    for kind in sorted({event.event for event in trace.events}):
        yield f"every {kind}", kinds_left_out(trace, {kind})


def without_nodes(trace: Trace) -> Iterator[Left]:
    """Each node, the controller too."""
    for node in sorted({event.node for event in trace.events}):
        yield f"node {node}", nodes_left_out(trace, {node})


def without_lines(trace: Trace) -> Iterator[Left]:
    """Each line."""
    for at, event in enumerate(trace.events):
        yield f"line {at + 1}, {event.event}", lines_left_out(trace, {at})


ALWAYS_REPORTED = frozenset({"LoseDisk", "DeleteReplica"})
"""What has to be reported where it happens, whatever `reports` says (docs/traces.md): nothing else says so."""

LeaveOut = Callable[[Trace], Iterator[Left]]
ONE_BY_ONE: Sequence[LeaveOut] = (
    without_values,
    without_fields,
    without_kinds,
    without_nodes,
    without_lines,
)


def fields_left_out(trace: Trace, names: Collection[tuple[str, str]]) -> Trace:
    """Without these fields, each named with its kind of event."""
    events = tuple(_less(event, {name for kind, name in names if kind == event.event}) for event in trace.events)
    return replace(trace, events=events)


def kinds_left_out(trace: Trace, kinds: Collection[str]) -> Trace:
    """As a source writes it that does not report these kinds, and says so; it numbers what it writes."""
    left_out = set(kinds) - ALWAYS_REPORTED
    reports = [kind for kind in EVENTS if kind not in left_out]
    kept = tuple(event for event in trace.events if event.event not in left_out)
    return replace(trace, config=_with(trace.config, REPORTS, reports), events=renumbered(kept))


def nodes_left_out(trace: Trace, nodes: Collection[int]) -> Trace:
    """Without everything that these nodes report."""
    return replace(trace, events=tuple(event for event in trace.events if event.node not in nodes))


def lines_left_out(trace: Trace, rows: Collection[int]) -> Trace:
    """Without these lines."""
    kept = tuple(event for at, event in enumerate(trace.events) if at not in rows)
    return replace(trace, config=_with(trace.config, WHOLE, False), events=kept)


def renumbered(events: Sequence[Event]) -> tuple[Event, ...]:
    """Without the gaps that left-out kinds make; a node begins anew where it did."""
    counts: dict[int, int] = {}
    out: list[Event] = []
    for event in events:
        seq = 0 if event.event == "Start" else counts.get(event.node, 0)
        counts[event.node] = seq + 1
        out.append(replace(event, seq=seq))
    return tuple(out)


def _less(event: Event, names: Collection[str]) -> Event:
    return replace(event, fields={name: value for name, value in event.fields.items() if name not in names})


def _with(config: Config, key: str, value: object) -> Config:
    return replace(config, extra={**config.extra, key: value})

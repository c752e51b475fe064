"""Right traces with parts left out: no rule may fail, since what is absent is unknown.

Rules of this file

1. A part is a value, a field (everywhere, or in one kind of event), a kind of event, a node, or a line: one of them, every
   one in turn. Hypothesis draws sets of them (tests); validation.partial_traces_random does so in many interleavings,
   validation.product.partial_traces leaves a field, a kind or a node out of every behaviour of a bounded model.
2. A kind that is left out is declared in `reports`. A node that is left out is not: nothing is expected of a silent node. A
   line that is left out shows as a gap in the numbers; where none would show, the Config says `"whole": false`.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from tidegauge.conformance.engine.judge import REPORTS
from tidegauge.traces.schema import EVENTS, WHOLE, Config, Event, Trace

Left = tuple[str, Trace]
"""What was left out, and the trace without it."""


def without_values(trace: Trace) -> Iterator[Left]:
    """Leave out each value of each event in turn."""
    for at, event in enumerate(trace.events):
        for name in event.fields:
            events = (*trace.events[:at], _less(event, {name}), *trace.events[at + 1 :])
            yield f"{name} of event {at + 1}, {event.event}", replace(trace, events=events)


def without_fields(trace: Trace) -> Iterator[Left]:
    """Leave out each field in turn, everywhere and in one kind of event."""
    return ((what, left_out(trace, omission)) for what, omission in of_fields(trace.events))


def without_kinds(trace: Trace) -> Iterator[Left]:
    """Leave out each kind of event in turn."""
    return ((what, left_out(trace, omission)) for what, omission in of_kinds(trace.events))


def without_nodes(trace: Trace) -> Iterator[Left]:
    """Leave out each node in turn, the controller too."""
    return ((what, left_out(trace, omission)) for what, omission in of_nodes(trace.events))


def without_lines(trace: Trace) -> Iterator[Left]:
    """Leave out each line in turn."""
    for at, event in enumerate(trace.events):
        yield f"line {at + 1}, {event.event}", lines_left_out(trace, {at})


ALWAYS_REPORTED = frozenset({"LoseDisk", "DeleteReplica"})
"""Events that must be reported where they happen, whatever `reports` lists (docs/traces.md): no other event implies them."""

LeaveOut = Callable[[Trace], Iterator[Left]]
ONE_BY_ONE: Sequence[LeaveOut] = (
    without_values,
    without_fields,
    without_kinds,
    without_nodes,
    without_lines,
)


class Omission(NamedTuple):
    """What a source never reports: fields, each named with its kind of event, kinds that it does not report, nodes."""

    fields: Collection[tuple[str, str]] = ()
    kinds: Collection[str] = ()
    nodes: Collection[int] = ()

    def left_of(self, event: Event) -> Event | None:
        """Return what is left of an event; None if all of it is left out."""
        if event.event in self._unreported or event.node in self.nodes:
            return None
        return _less(event, {name for kind, name in self.fields if kind == event.event})

    def config(self, config: Config) -> Config:
        """Return the Config of such a source: it lists the kinds that it reports if it omits some."""
        if not self.kinds:
            return config
        return _with(config, REPORTS, [kind for kind in EVENTS if kind not in self._unreported])

    @property
    def _unreported(self) -> frozenset[str]:
        return frozenset(self.kinds) - ALWAYS_REPORTED


NOTHING = Omission()
"""Everything is reported."""


def left_out(trace: Trace, omission: Omission) -> Trace:
    """Return the trace as such a source writes it; it numbers its lines, but for silent nodes."""
    events = tuple(left for event in trace.events if (left := omission.left_of(event)) is not None)
    return replace(trace, config=omission.config(trace.config), events=renumbered(events) if omission.kinds else events)


def of_fields(events: Sequence[Event]) -> Iterator[tuple[str, Omission]]:
    """Yield an omission of each field of these events, everywhere and in one kind of event."""
    there = sorted({(name, event.event) for event in events for name in event.fields})
    for name in dict.fromkeys(name for name, _ in there):
        kinds = [kind for field, kind in there if field == name]
        yield f"{name} everywhere", Omission(fields={(kind, name) for kind in kinds})
        yield from ((f"{name} of every {kind}", Omission(fields={(kind, name)})) for kind in kinds)


def of_kinds(events: Sequence[Event]) -> Iterator[tuple[str, Omission]]:
    """Yield an omission of each kind of these events."""
    return ((f"every {kind}", Omission(kinds={kind})) for kind in sorted({event.event for event in events}))


def of_nodes(events: Sequence[Event]) -> Iterator[tuple[str, Omission]]:
    """Yield an omission of each node of these events, the controller too."""
    return ((f"node {node}", Omission(nodes={node})) for node in sorted({event.node for event in events}))


def fields_left_out(trace: Trace, names: Collection[tuple[str, str]]) -> Trace:
    """Return the trace without these fields, each named with its kind of event."""
    return left_out(trace, Omission(fields=names))


def kinds_left_out(trace: Trace, kinds: Collection[str]) -> Trace:
    """Return the trace as a source writes it that does not report these kinds, declares that, and numbers its lines."""
    return left_out(trace, Omission(kinds=kinds))


def nodes_left_out(trace: Trace, nodes: Collection[int]) -> Trace:
    """Return the trace without the events of these nodes."""
    return left_out(trace, Omission(nodes=nodes))


def lines_left_out(trace: Trace, rows: Collection[int]) -> Trace:
    """Return the trace without these lines."""
    events = tuple(event for at, event in enumerate(trace.events) if at not in rows)
    # At the end of a node no number shows a missing line: the Config must say that there may be some.
    return replace(trace, config=_with(trace.config, WHOLE, False), events=events)


def renumbered(events: Sequence[Event]) -> tuple[Event, ...]:
    """Renumber the events without the gaps of left-out kinds; a node restarts its numbers where it did before."""
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

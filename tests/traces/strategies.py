"""Any trace schema v1 allows: every event with any part of its fields told."""

from typing import Any

from hypothesis import strategies as st

from tidegauge.traces.schema import EVENTS, FIELDS, Config, Event, FieldKind, Trace

NODES = (1, 2, 7)
CONTROLLER = 100
CONFIG = Config(nodes=NODES, controller=CONTROLLER, source="hypothesis")

numbers = st.integers(-1, 2**62 - 1)
node_ids = st.sampled_from(NODES)


def values(kind: FieldKind) -> st.SearchStrategy[Any]:
    reported = {
        FieldKind.INT: st.one_of(st.integers(-1, 5), numbers),
        FieldKind.BOOL: st.booleans(),
        FieldKind.NODE: node_ids,
        FieldKind.NODES: st.lists(node_ids, unique=True, max_size=3).map(lambda nodes: tuple(sorted(nodes))),
        FieldKind.EPOCHS: st.lists(st.tuples(numbers, numbers), max_size=3).map(tuple),
    }[kind]
    return st.one_of(st.none(), reported) if kind is not FieldKind.EPOCHS else reported


@st.composite
def events(draw: st.DrawFn) -> Event:
    name = draw(st.sampled_from(sorted(EVENTS)))
    known = EVENTS[name].fields
    reported = draw(st.lists(st.sampled_from(known), unique=True)) if known else ()
    fields = {field: draw(values(FIELDS[field].kind)) for field in reported}
    return Event(node=draw(st.sampled_from((*NODES, CONTROLLER))), event=name, fields=fields)


traces = st.lists(events(), min_size=1, max_size=8).map(lambda found: Trace("", "topic-0", CONFIG, tuple(found)))


def named(found: list[Trace]) -> list[Trace]:
    return [Trace(f"t{i}", trace.tp, trace.config, trace.events) for i, trace in enumerate(found)]


trace_lists = st.lists(traces, min_size=1, max_size=4).map(named)

"""Traces made from others by a few changes each: what a search tries, where no test and no run gets to a line of the judge.

Rules of this file

1. A child is its parent with one to four changes. Each is a fault or a silence that somebody planted: a value, a field, a
   line, a kind of event, a node or the Config is another or missing, a part of another trace stands in it, an event that
   the source did not tell is told, or a response leaves later than its fetch was recorded.
2. A child claims to be neither right nor wrong. What the judge says of it is pinned, and read where it changes.
3. Every choice comes from the random numbers that are handed in.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tests.mutation.kernel_runs import other_config
from tidegauge.traces.from_model.behaviour import numbered
from tidegauge.traces.schema import EVENTS, FIELDS, Event, FieldKind, Trace
from validation.partial_traces import kinds_left_out, lines_left_out, nodes_left_out

LONGEST = 90
"""Events of a child at most."""
RESPONSE = ("res_hw", "res_log_start", "rec_base", "rec_end", "rec_epoch", "div_epoch", "div_end", "error")

Change = Callable[[Trace, Trace, random.Random], Trace]


def child(parent: Trace, other: Trace, rng: random.Random) -> Trace:
    """The parent with some changes; parts of `other` may come into it."""
    made = parent
    for _ in range(rng.choice((1, 1, 2, 2, 3, 4))):
        if not made.events:
            return parent
        made = rng.choice(CHANGES)(made, other, rng)
    gaps = any(event.seq is not None for event in made.events) and made.config.extra.get("whole") is False
    events = made.events[:LONGEST]
    return replace(made, events=events if gaps else numbered(events))


def value(name: str, trace: Trace, rng: random.Random) -> object:
    """A value for a field: one that an event of the trace tells, or a neighbour of it, or another of its kind."""
    kind, config = FIELDS[name].kind, trace.config
    given = [event.fields[name] for event in trace.events if event.fields.get(name) is not None]
    if kind is FieldKind.BOOL:
        return rng.random() < 0.5
    if kind is FieldKind.NODE:
        return rng.choice((*config.nodes, None))
    if kind is FieldKind.NODES:
        return tuple(node for node in config.nodes if rng.random() < 0.6)
    if kind is FieldKind.EPOCHS:
        return _epochs(given, rng)
    alike = [number for event in trace.events for number in event.fields.values() if type(number) is int]
    number: int = rng.choice(given or alike or [0]) if rng.random() < 0.7 else rng.choice(alike or [0])
    chosen = rng.choice((number, number, number + 1, max(number - 1, 0), 0, None))
    return rng.choice((0, 3, 6, 74, 1)) if name == "error" and chosen is not None else chosen


def _epochs(given: Sequence[Any], rng: random.Random) -> tuple[tuple[int, int], ...]:
    pairs = list(rng.choice(given)) if given and rng.random() < 0.7 else []
    if pairs and rng.random() < 0.5:
        at = rng.randrange(len(pairs))
        epoch, start = pairs[at]
        pairs[at] = (max(epoch + rng.choice((-1, 0, 1)), 0), max(start + rng.choice((-1, 0, 1)), 0))
    if rng.random() < 0.4:
        epoch, start = pairs[-1] if pairs else (-1, 0)
        pairs.append((epoch + rng.choice((1, 1, 2)), start + rng.choice((0, 1, 2)) * bool(pairs)))
    elif pairs and rng.random() < 0.3:
        pairs.pop(rng.randrange(len(pairs)))
    return tuple((int(epoch), int(start)) for epoch, start in pairs)


def _with(trace: Trace, at: int, **more: object) -> Trace:
    event = trace.events[at]
    changed = replace(event, fields={**event.fields, **more})
    return replace(trace, events=(*trace.events[:at], changed, *trace.events[at + 1 :]))


def _value_changed(trace: Trace, _: Trace, rng: random.Random) -> Trace:
    at = rng.randrange(len(trace.events))
    names = list(trace.events[at].fields)
    if not names:
        return trace
    name = rng.choice(names)
    return _with(trace, at, **{name: value(name, trace, rng)})


def _field_added(trace: Trace, _: Trace, rng: random.Random) -> Trace:
    at = rng.randrange(len(trace.events))
    names = [name for name in EVENTS[trace.events[at].event].fields if name not in trace.events[at].fields]
    if not names:
        return trace
    name = rng.choice(names)
    return _with(trace, at, **{name: value(name, trace, rng)})


def _fields_silent(trace: Trace, _: Trace, rng: random.Random) -> Trace:
    at = rng.randrange(len(trace.events))
    kind, names = trace.events[at].event, list(trace.events[at].fields)
    if not names:
        return trace
    gone = set(rng.sample(names, rng.randint(1, min(3, len(names)))))
    everywhere = rng.random() < 0.3

    def less(number: int, event: Event) -> Event:
        if number != at and not (everywhere and event.event == kind):
            return event
        return replace(event, fields={name: given for name, given in event.fields.items() if name not in gone})

    return replace(trace, events=tuple(less(number, event) for number, event in enumerate(trace.events)))


def _event_gone(trace: Trace, _: Trace, rng: random.Random) -> Trace:
    at = rng.randrange(len(trace.events))
    upto = at + rng.choice((1, 1, 1, 2, 4))
    return replace(trace, events=(*trace.events[:at], *trace.events[upto:]))


def _shortened(trace: Trace, _: Trace, rng: random.Random) -> Trace:
    return replace(trace, events=trace.events[: rng.randint(1, len(trace.events))])


def _repeated(trace: Trace, _: Trace, rng: random.Random) -> Trace:
    event, at = rng.choice(trace.events), rng.randint(0, len(trace.events))
    return replace(trace, events=(*trace.events[:at], event, *trace.events[at:]))


def _moved(trace: Trace, _: Trace, rng: random.Random) -> Trace:
    events = list(trace.events)
    event = events.pop(rng.randrange(len(events)))
    events.insert(rng.randint(0, len(events)), event)
    return replace(trace, events=tuple(events))


def _event_added(trace: Trace, _: Trace, rng: random.Random) -> Trace:
    kind = rng.choice(list(EVENTS))
    config, at = trace.config, rng.randint(0, len(trace.events))
    if EVENTS[kind].who == "controller" and config.controller is None:
        return trace
    node = config.controller if EVENTS[kind].who == "controller" else rng.choice(config.nodes)
    alike = [event for event in trace.events if event.event == kind]
    fields = dict(rng.choice(alike).fields) if alike and rng.random() < 0.5 else {}
    given = rng.choice((0.3, 0.7, 1.0))
    for name in EVENTS[kind].fields:
        if name == "peer" or (name not in fields and rng.random() < given):
            fields[name] = value(name, trace, rng)
    event = Event(node if node is not None else config.nodes[0], kind, fields)
    return replace(trace, events=(*trace.events[:at], event, *trace.events[at:]))


def _spliced(trace: Trace, other: Trace, rng: random.Random) -> Trace:
    """A part of another trace of the same brokers."""
    if other.config.nodes != trace.config.nodes or other.config.controller != trace.config.controller or not other.events:
        return trace
    at, first = rng.randint(0, len(trace.events)), rng.randrange(len(other.events))
    count = rng.choice((1, 2, 5, len(other.events)))
    rest = trace.events[at:] if rng.random() < 0.7 else ()
    return replace(trace, events=(*trace.events[:at], *other.events[first : first + count], *rest))


def _delayed(trace: Trace, _: Trace, rng: random.Random) -> Trace:
    """A response leaves later than its fetch was recorded, and is told in part."""
    handled = [at for at, event in enumerate(trace.events) if event.event == "HandleFetch"]
    if not handled:
        return trace
    at = rng.choice(handled)
    event = trace.events[at]
    recorded = {name: given for name, given in event.fields.items() if name not in RESPONSE or name == "error"}
    if rng.random() < 0.4:
        recorded = {**recorded, "rec_base": event.fields.get("rec_base"), "rec_end": event.fields.get("rec_base")}
    allowed = EVENTS["AnswerFetch"].fields
    silent = rng.choice((0.0, 0.0, 0.3))
    said = {name: given for name, given in event.fields.items() if name in allowed and rng.random() >= silent}
    said["peer"] = event.fields.get("peer")
    later = at + 1 + rng.choice((0, 0, 1, 2, 4))
    response = Event(event.node, "AnswerFetch", said)
    held = (replace(event, fields=recorded),) if rng.random() < 0.8 else ()
    events = (*trace.events[:at], *held, *trace.events[at + 1 : later], response, *trace.events[later:])
    return replace(trace, events=events)


def _lines_missing(trace: Trace, _: Trace, rng: random.Random) -> Trace:
    count = min(len(trace.events), rng.randint(1, 3))
    whole = replace(trace, events=numbered(trace.events))
    return lines_left_out(whole, set(rng.sample(range(len(trace.events)), count)))


def _kinds_missing(trace: Trace, _: Trace, rng: random.Random) -> Trace:
    kinds = sorted({event.event for event in trace.events})
    return kinds_left_out(trace, set(rng.sample(kinds, min(len(kinds), rng.randint(1, 2)))))


def _unreported(trace: Trace, _: Trace, rng: random.Random) -> Trace:
    """The Config says that some kinds are not reported, whether or not they are."""
    gone = set(rng.sample(sorted(EVENTS), rng.randint(1, 3)))
    return _configured(trace, reports=[kind for kind in EVENTS if kind not in gone])


def _configured(trace: Trace, **extra: object) -> Trace:
    return replace(trace, config=replace(trace.config, extra={**trace.config.extra, **extra}))


def _node_missing(trace: Trace, _: Trace, rng: random.Random) -> Trace:
    return nodes_left_out(trace, {rng.choice(sorted({event.node for event in trace.events}))})


def _brokers_exchanged(trace: Trace, _: Trace, rng: random.Random) -> Trace:
    """From some event on one broker is named where the other is."""
    if len(trace.config.nodes) < 2:
        return trace
    one, two = rng.sample(trace.config.nodes, 2)
    names, since = {one: two, two: one}, rng.randrange(len(trace.events))

    def renamed(name: str, given: Any) -> object:
        kind = FIELDS[name].kind
        if kind is FieldKind.NODE:
            return names.get(given, given)
        if kind is FieldKind.NODES and given is not None:
            return tuple(node for node in trace.config.nodes if node in {names.get(node, node) for node in given})
        return given

    def event_of(event: Event) -> Event:
        fields = {name: renamed(name, given) for name, given in event.fields.items()}
        return replace(event, node=names.get(event.node, event.node), fields=fields)

    return replace(trace, events=(*trace.events[:since], *map(event_of, trace.events[since:])))


def _other_config(trace: Trace, _: Trace, rng: random.Random) -> Trace:
    return replace(trace, config=other_config(trace.config, rng))


CHANGES: Sequence[Change] = (
    *(_value_changed,) * 5,
    *(_field_added,) * 2,
    *(_fields_silent,) * 4,
    *(_event_added,) * 4,
    *(_delayed,) * 2,
    *(_spliced,) * 2,
    _event_gone,
    _shortened,
    _repeated,
    _moved,
    _lines_missing,
    _kinds_missing,
    _unreported,
    _node_missing,
    _brokers_exchanged,
    _other_config,
)
"""Changes, as often as they are tried."""

"""Traces in the Informal Trace Format of Apalache and Quint (ADR 15), for the viewers that read it.

Rules of this file

1. A state follows each event; the first one, before all events, is empty. It holds the event (node, action, fields) and what
   each node last reported. A node that has not reported a value is no key of the map.
2. Null, known to be undefined, is -1, as in columns. Integers are `#bigint`, so that no reader rounds them.
3. The format is one way: what it has no place for (sequence numbers, gaps) stays in NDJSON.

ITF writes integers, sets, tuples and maps as objects: {"#bigint": "7"}, {"#set": [...]}, {"#tup": [...]}, {"#map": [[key,
value]]}.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tidegauge.traces.schema import FIELDS, Event, FieldKind, Trace
from tidegauge.util.version import TOOL

SUFFIX = ".itf.json"
REPORTED = ("leader_epoch", "leo", "hw", "log_start", "epochs", "isr")
"""Fields that are values of the node after its event; each is a variable, a map from nodes."""
VARIABLES = ("node", "action", "fields", *REPORTED)


def write(trace: Trace, path: Path) -> None:
    """Write one trace to `path`, each state on a line, one at a time: all states together take many times the trace."""
    meta = {"format": "ITF", "format-description": "https://apalache-mc.org/docs/adr/015adr-trace.html"}
    meta |= {"description": f"{trace.name} {trace.tp}".strip(), "source": TOOL}
    with path.open("w", encoding="utf-8", newline="\n") as out:
        out.write(f'{{"#meta":{_json(meta)},"params":[],"vars":{_json(VARIABLES)},"states":[')
        out.writelines(f"{',' if index else ''}\n{_json(state)}" for index, state in enumerate(_states(trace)))
        out.write("\n]}\n")


def _states(trace: Trace) -> Iterator[dict[str, Any]]:
    """Yield the state before all events, and then one after each event."""
    # Field -> node -> the value that the node has reported last.
    reported: dict[str, dict[int, Any]] = {name: {} for name in REPORTED}
    # The empty state, as if an event Init of no node (-1) had led to it.
    yield _state(0, Event(-1, "Init", {}), reported)
    for index, event in enumerate(trace.events, 1):
        for name in REPORTED:
            if name in event.fields:
                reported[name][event.node] = _value(name, event.fields[name])
        yield _state(index, event, reported)


def _state(index: int, event: Event, reported: Mapping[str, Mapping[int, Any]]) -> dict[str, Any]:
    """Return a state: the event with its fields, and for each field of REPORTED a map from nodes to their values."""
    meta = {"index": index} | {key: value for key, value in (("at", event.at), ("time", event.time)) if value}
    fields = {name: _value(name, value) for name, value in event.fields.items()}
    maps = {name: {"#map": [[_integer(node), value] for node, value in reported[name].items()]} for name in REPORTED}
    return {"#meta": meta, "node": _integer(event.node), "action": event.event, "fields": fields, **maps}


def _value(name: str, value: Any) -> Any:
    """Return the value of the event field `name` as ITF writes it; None, known to be undefined, is -1 or empty."""
    # A node is an integer too; a truth value that is undefined is -1.
    match FIELDS[name].kind:
        case FieldKind.BOOL if value is not None:
            return value
        case FieldKind.NODES:
            return {"#set": [_integer(node) for node in value or ()]}
        case FieldKind.EPOCHS:
            return [{"#tup": [_integer(epoch), _integer(start)]} for epoch, start in value or ()]
        case _:
            return _integer(value)


def _integer(value: int | None) -> dict[str, str]:
    """Return an integer of ITF; None is -1."""
    return {"#bigint": str(-1 if value is None else value)}


def _json(value: Any) -> str:
    """Return a value as JSON without spaces."""
    return json.dumps(value, separators=(",", ":"))

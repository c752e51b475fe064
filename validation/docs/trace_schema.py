"""The schema as others read it: traces/schema.json and the tables in docs/traces.md, made from traces.schema.

`python -m validation.docs.trace_schema` writes both files of a checkout anew; a test keeps them equal to what this makes.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tidegauge.traces.schema import (
    EVENTS,
    FIELDS,
    GAPS,
    LARGEST,
    MISSING,
    MOST_MEMBERS,
    MOST_NODES,
    VERSION,
    WHOLE,
    EventType,
    FieldKind,
)
from validation.docs.tables import code, table, write_both

CARRIED = "carried, not judged"
"""How a field is marked that an event may tell and no rule reads."""

ROOT = Path(__file__).resolve().parents[2]
SCHEMA_FILE = ROOT / "tidegauge" / "traces" / "schema.json"
PAGE = ROOT / "docs" / "traces.md"
MAKER = "validation.docs.trace_schema"

_NODE = {"type": "integer"}
_INT = {"type": "integer", "minimum": -1, "exclusiveMaximum": LARGEST}
_TYPES: Mapping[FieldKind, dict[str, Any]] = {
    FieldKind.INT: {**_INT, "type": ["integer", "null"]},
    FieldKind.BOOL: {"type": ["boolean", "null"]},
    FieldKind.NODE: {**_NODE, "type": ["integer", "null"]},
    FieldKind.NODES: {"type": ["array", "null"], "items": _NODE},
    FieldKind.EPOCHS: {"type": ["array", "null"], "items": {"type": "array", "items": _INT, "minItems": 2, "maxItems": 2}},
}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of one line."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Tidegauge trace schema v{VERSION}: one line of NDJSON",
        "description": "A trace is a Config line and the event lines below it. A field that is absent is unknown, a field "
        "that is null is known to be undefined. Unknown fields are kept.",
        "type": "object",
        "required": ["v", "event"],
        "properties": {
            "v": {"const": VERSION, "description": "major version of the schema"},
            "trace": {"type": "string", "description": "name of the trace; absent: that of the Config line above"},
            "tp": {"type": "string", "description": "topic-partition"},
            "event": {"enum": ["Config", *EVENTS]},
            "time": {"description": "when the source says it happened; never used to order events"},
            "corr": {"description": "correlation id, or what stands for it"},
            "at": {"type": "string", "description": "where it was read, such as n1/server.log:116"},
        },
        "allOf": [_when("Config", _config()), *(_when(name, _event(event)) for name, event in EVENTS.items())],
    }


def _when(event: str, then: dict[str, Any]) -> dict[str, Any]:
    return {"if": {"properties": {"event": {"const": event}}, "required": ["event"]}, "then": then}


def _config() -> dict[str, Any]:
    return {
        "required": ["nodes"],
        "properties": {
            "nodes": {"type": "array", "items": _NODE, "minItems": 1, "maxItems": MOST_NODES, "uniqueItems": True},
            "min_isr": {"type": "integer", "minimum": 1, "maximum": MOST_MEMBERS, "description": "min.insync.replicas"},
            "profile": {"type": "string", "description": "generation of the protocol"},
            "lag_rule": {"type": "boolean", "description": "whether a replica outside the ISR may hold the HW back"},
            "reports": {"type": "array", "items": {"enum": [*EVENTS]}, "description": "the kinds of event it can report"},
            "duplicates": {"type": "boolean", "description": "whether the network may deliver one request twice"},
            WHOLE: {"type": "boolean", "description": "false: lines may be missing where no number shows it"},
            GAPS: {
                "type": "array",
                "items": {"type": "array", "prefixItems": [_NODE, _NODE, {"type": "string"}], "minItems": 3, "maxItems": 3},
                "description": "between which events of the trace lines are missing, and what is missing",
            },
            MISSING: {"type": "array", "items": {"type": "string"}, "description": "what the source as a whole lacks"},
            "unclean_elections": {"type": "boolean", "description": "false: no election was unclean, though none is told"},
            "controller": {"type": ["integer", "null"], "description": "node id of the controller"},
            "source": {"type": "string", "description": "what wrote the trace"},
        },
    }


def _event(event: EventType) -> dict[str, Any]:
    seq = {"type": "integer", "description": "counts the events of a node from its Start on, without gaps"}
    reported = {name: {**_TYPES[FIELDS[name].kind], "description": _says(event, name)} for name in event.fields}
    return {"required": ["node"], "properties": {"node": _NODE, "seq": seq, **reported}}


def _says(event: EventType, name: str) -> str:
    return f"{FIELDS[name].says} ({CARRIED})" if name in event.carried else FIELDS[name].says


def event_table() -> str:
    """Return the events as a Markdown table."""
    rows = (
        (f"`{name}`", str(e.code), e.who, code(one for one in e.fields if one not in e.carried), code(e.carried))
        for name, e in EVENTS.items()
    )
    return table(("event", "code", "reported by", "fields", CARRIED), rows)


def field_table() -> str:
    """Return the fields as a Markdown table."""
    return table(("field", "value", "meaning"), ((f"`{name}`", one.kind.value, one.says) for name, one in FIELDS.items()))


def tables() -> dict[str, str]:
    """Return the tables of the page by name."""
    return {"events": event_table(), "fields": field_table()}


if __name__ == "__main__":
    write_both(SCHEMA_FILE, json_schema(), PAGE, tables(), MAKER)

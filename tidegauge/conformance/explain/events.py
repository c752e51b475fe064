"""Turns rows of columns into events, and events and their values into words.

Rules of this file

1. `event_at` is the inverse of traces.columns.to_columns for one row, so that an event of Parquet reads like a line.
2. Values are words only here and in impl.explorer.describe: node ids, sets of nodes, error names, "undefined" for -1.
"""

from collections.abc import Sequence
from typing import Any

from tidegauge.conformance.engine.judge import known
from tidegauge.conformance.judge.state import FOLLOWING, LEADING, NO_ROLE
from tidegauge.impl.errors import ERROR_NAMES
from tidegauge.traces.columns import INT_FIELDS, Columns
from tidegauge.traces.schema import EVENTS, FIELDS, Config, Event, FieldKind

_NAMES = {event.code: name for name, event in EVENTS.items()}
IN_FLIGHT = (
    "nothing",
    "a request",
    "a recorded fetch whose response was not reported",
    "records",
    "a diverging response",
    "an out-of-range response",
    "an error",
    "an epoch request",
    "an epoch response",
    "a request whose leader went down",
    "one of several responses",
)
_ROLES = {NO_ROLE: "no role", LEADING: "leader", FOLLOWING: "follower"}


def event_at(columns: Columns, row: int, config: Config, at: str = "") -> Event:
    """Return the event in a row of columns; `at` is where it was read."""
    reported = {name: known(int(columns.ints[name][row])) for name in INT_FIELDS if name in columns.ints}
    fields = {name: _decoded(name, value, config) for name, value in reported.items() if value is not None}
    # An empty cache that was reported differs from one that was not: the pairs alone do not show it.
    if columns.epochs_reported[row]:
        flat = columns.epochs[2 * columns.epochs_at[row] : 2 * columns.epochs_at[row + 1]].tolist()
        fields["epochs"] = tuple(zip(flat[::2], flat[1::2], strict=True))
    return Event(_node(int(columns.node[row]), config) or 0, _NAMES[int(columns.event[row])], fields, at=at)


def _node(position: int, config: Config) -> int | None:
    """Return the node id at a position: a broker, the controller after the last broker, or None below 0."""
    # The position after the last broker is the controller's (traces.columns.positions).
    if position < 0:
        return None
    return config.nodes[position] if position < len(config.nodes) else config.controller


def _decoded(name: str, value: int, config: Config) -> Any:
    """Return the value of a field as an event has it: node ids instead of positions and masks."""
    kind = FIELDS[name].kind
    if kind is FieldKind.NODE:
        return _node(value, config)
    if kind is FieldKind.NODES:
        return node_ids(value, config)
    if kind is FieldKind.BOOL:
        return bool(value)
    return value


def node_ids(mask: int, config: Config) -> tuple[int, ...]:
    """Return the node ids in a mask."""
    return tuple(node for at, node in enumerate(config.nodes) if mask >= 0 and mask >> at & 1)


def value_text(compared: str, value: int | None, config: Config) -> str:
    """Format a value that a check compared."""
    if value is None:
        return "unknown"
    if compared == "running":
        return "running" if value == 1 else "not running"
    if compared == "role":
        return _ROLES.get(value, str(value))
    if compared == "in flight":
        return IN_FLIGHT[value]
    if compared == "error":
        return f"{value} ({ERROR_NAMES[value]})" if value in ERROR_NAMES else str(value)
    # The other names compare the judge's own values, which have no kind in the schema.
    if compared in FIELDS:
        kind = FIELDS[compared].kind
        if kind is FieldKind.NODES:
            return "{" + ", ".join(map(str, node_ids(value, config))) + "}"
        if kind is FieldKind.NODE:
            node = _node(value, config)
            return "none" if node is None else f"node {node}"
        if kind is FieldKind.BOOL:
            return "true" if value else "false"
    return "undefined (-1)" if value == -1 else str(value)


def event_text(event: Event) -> str:
    """Format an event and its fields in one line."""
    return f"n{event.node} {event.event}" + "".join(f" {name}={_plain(value)}" for name, value in event.fields.items())


def _plain(value: Any) -> str:
    """Format a value of an event in one word."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ",".join(_plain(part) for part in value) + "]"
    return str(value)

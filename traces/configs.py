"""A Config as JSON: the same keys in a Config line and in the metadata of a Parquet file."""

from collections.abc import Mapping
from typing import Any

from tidegauge.traces.problems import shown
from tidegauge.traces.schema import GAPS, MISSING, Config

KEYS = ("nodes", "min_isr", "profile", "lag_rule", "controller", "source")
"""The keys of this version; `Config.extra` keeps any others."""

MOST_NODES = 61
"""Sets of nodes are bit masks in an int64, the controller has a position too, and UNKNOWN is no mask."""

MOST_MEMBERS = 2**31 - 1
"""min.insync.replicas is an INT, at least 1 (LogConfig)."""


def as_json(config: Config) -> dict[str, Any]:
    """Return the keys of this version, then the others. A config without a controller has no such key."""
    known = {key: getattr(config, key) for key in KEYS}
    if config.controller is None:
        del known["controller"]
    return {**known, "nodes": list(config.nodes), **{key: value for key, value in config.extra.items() if key not in KEYS}}


def from_json(line: Mapping[str, Any], envelope: tuple[str, ...] = ()) -> Config:
    """Return the Config in `line`, in which `fault` has found none; the keys in `envelope` do not belong to it."""
    known = {key: line[key] for key in KEYS if key in line}
    extra = {key: value for key, value in line.items() if key not in KEYS and key not in envelope}
    return Config(**{**known, "nodes": tuple(line["nodes"])}, extra=extra)


def fault(line: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return what the first wrong key should have been, and what it is; None if there is none."""
    nodes = line.get("nodes")
    if not isinstance(nodes, list) or not nodes or not all(map(is_int, nodes)) or len(set(nodes)) != len(nodes):
        return '"nodes" to be a list of different node ids', shown(nodes)
    if len(nodes) > MOST_NODES:
        return f"at most {MOST_NODES} nodes", str(len(nodes))
    for key, right, name in (
        ("min_isr", lambda value: is_int(value) and 1 <= value <= MOST_MEMBERS, f"an integer from 1 to {MOST_MEMBERS}"),
        ("profile", lambda value: isinstance(value, str), "a text"),
        ("lag_rule", lambda value: isinstance(value, bool), "true or false"),
        ("controller", lambda value: value is None or is_int(value), "a node id"),
        ("source", lambda value: isinstance(value, str), "a text"),
        (MISSING, _texts, "a list of texts"),
        (GAPS, _gaps, "a list of [event, event, what is missing]"),
    ):
        if key in line and not right(line[key]):
            return f'"{key}" to be {name}', shown(line[key])
    return None


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _gaps(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(gap, list) and len(gap) == 3 and all(map(is_int, gap[:2])) and isinstance(gap[2], str) for gap in value
    )


def is_int(value: object) -> bool:
    """Return whether a value is an integer and no truth value."""
    return isinstance(value, int) and not isinstance(value, bool)

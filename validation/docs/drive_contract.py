"""The contract of a broker as others read it: drive/schema.json and the tables in docs/drive.md.

`python -m validation.docs.drive_contract` writes both files of a checkout anew; a test keeps them equal to what this makes.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tidegauge.drive.broker.contract import (
    ARGUMENT_TYPES,
    COMMITTED,
    EARLIEST,
    EXTRAS,
    LATEST,
    REPORTED,
    STANDINGS,
    VERSION,
)
from tidegauge.drive.broker.steps import STEPS
from tidegauge.drive.contract import LARGEST
from validation.docs.tables import code, table, write_both

ROOT = Path(__file__).resolve().parents[2]
SCHEMA_FILE = ROOT / "tidegauge" / "drive" / "schema.json"
PAGE = ROOT / "docs" / "drive.md"
MAKER = "validation.docs.drive_contract"

_INT = {"type": "integer", "exclusiveMinimum": -LARGEST, "exclusiveMaximum": LARGEST}


def _list(items: Any, length: int | None = None, *, null: bool = False) -> dict[str, Any]:
    size = {} if length is None else {"minItems": length, "maxItems": length}
    return {"type": ["array", "null"] if null else "array", "items": items, **size}


def _object(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "required": [*fields], "properties": fields}


_KINDS: Mapping[str, dict[str, Any]] = {
    "integer": _INT,
    "integers": _list(_INT),
    "boolean": {"type": "boolean"},
    "which": {"enum": [EARLIEST, LATEST, COMMITTED]},
    "standing": {"enum": [*STANDINGS]},
    "records": _list(_list(_INT, 3)),
    "pair": _list(_INT, 2, null=True),
}


def _kind(name: str) -> dict[str, Any]:
    return _KINDS[ARGUMENT_TYPES.get(name, "integer")]


def json_schema() -> dict[str, Any]:
    """Return the schema of what a driven program reads ($defs/given) and what it writes ($defs/handshake, $defs/report)."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Tidegauge drive contract v{VERSION}: one line of NDJSON",
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in ("given", "handshake", "report")],
        "$defs": {"given": {"oneOf": [_opening(), *map(_step, STEPS)]}, "handshake": _handshake(), "report": _report()},
    }


def _opening() -> dict[str, Any]:
    return _object(p=_INT, step={"const": "open"}, broker=_INT, peers=_list(_INT), min_insync_replicas=_INT)


def _step(name: str) -> dict[str, Any]:
    takes = {field: _kind(field) for field in STEPS[name].takes}
    return {**_object(p=_INT, step={"const": name}, **takes), "description": STEPS[name].says}


def _handshake() -> dict[str, Any]:
    words = _list({"enum": [*STEPS, *EXTRAS]})
    return _object(contract={"const": VERSION}, name={"type": "string"}, can=words, reports=_list({"enum": [*REPORTED]}))


def _report() -> dict[str, Any]:
    fetch = _object(current_leader_epoch=_INT, fetch_offset=_INT, last_fetched_epoch=_INT, log_start=_INT)
    epoch = _object(current_leader_epoch=_INT, leader_epoch=_INT)
    proposal = _object(isr=_list(_INT), leader_epoch=_INT, partition_epoch=_INT)
    results = dict.fromkeys(field for shape in STEPS.values() for field in shape.result)
    properties = {field: _kind(field) for field in results}
    result = {"type": ["object", "null"], "required": ["error"], "properties": properties}
    fetched = {**result, "properties": {field: _kind(field) for field in STEPS["fetch"].result}}
    fields: dict[str, dict[str, Any]] = {
        "result": result,
        "requests": {"type": "object", "additionalProperties": {"anyOf": [fetch, epoch]}},
        "proposal": {"anyOf": [{"type": "null"}, proposal]},
        "produced": _list(_list(_INT, 2)),
        "fetched": {"type": "object", "additionalProperties": fetched},
        "leo": _INT,
        "hw": _INT,
        "log_start": _INT,
        "ends": _list(_list(_INT, 2)),
    }
    described = {name: {**fields[name], "description": REPORTED[name]} for name in REPORTED}
    return {"type": "object", "required": ["p"], "properties": {"p": _INT, **described}}


def step_table() -> str:
    """Return the steps as a Markdown table."""
    rows = ((f"`{name}`", code(one.takes), code(one.result), one.says) for name, one in STEPS.items())
    return table(("step", "takes", "`result`", "says"), rows)


def report_table() -> str:
    """Return the fields of a report as a Markdown table."""
    return table(("field", "says"), ((f"`{name}`", says) for name, says in REPORTED.items()))


def extra_table() -> str:
    """Return the optional abilities of a broker as a Markdown table."""
    return table(("word", "what it promises"), ((f"`{name}`", says) for name, says in EXTRAS.items()))


def tables() -> dict[str, str]:
    """Return the tables of the page by name."""
    return {"steps": step_table(), "reports": report_table(), "extras": extra_table()}


if __name__ == "__main__":
    write_both(SCHEMA_FILE, json_schema(), PAGE, tables(), MAKER)

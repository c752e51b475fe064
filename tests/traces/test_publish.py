"""What is published says what the code does."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given

from tests.traces.strategies import trace_lists
from tidegauge.traces.formats import ndjson
from tidegauge.traces.schema import Trace
from validation.docs import trace_schema
from validation.docs.tables import page_with, schema_text

ROOT = Path(__file__).resolve().parents[2]
VALIDATOR = jsonschema.Draft202012Validator(trace_schema.json_schema())


def test_the_json_schema_in_the_repository_is_the_one_made_from_the_code() -> None:
    """Else: python -m validation.docs.trace_schema."""
    assert (ROOT / "tidegauge" / "traces" / "schema.json").read_text(encoding="utf-8") == schema_text(
        trace_schema.json_schema()
    )


def test_the_tables_in_the_page_are_made_from_the_code() -> None:
    """Else: python -m validation.docs.trace_schema."""
    page = (ROOT / "docs" / "traces.md").read_text(encoding="utf-8")
    assert page_with(trace_schema.tables(), trace_schema.MAKER, page) == page
    assert "| `HandleFetch` | 5 | leader |" in page


def test_the_example_in_the_page_is_read_without_a_problem_and_valid() -> None:
    page = (ROOT / "docs" / "traces.md").read_text(encoding="utf-8")
    example = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert example
    found = ndjson.read_bytes(example[1].encode(), "docs/traces.md")
    assert found.problems == []
    assert found.events == 18
    for line in example[1].splitlines():
        VALIDATOR.validate(json.loads(line))


@given(trace_lists)
def test_every_line_that_is_written_is_valid(traces: list[Trace]) -> None:
    for trace in traces:
        for line in ndjson.lines(trace):
            VALIDATOR.validate(json.loads(line))


@pytest.mark.parametrize(
    "line",
    [
        {"v": 2, "event": "Config", "nodes": [1]},
        {"v": 1, "event": "Config", "nodes": []},
        {"v": 1, "event": "Config"},
        {"v": 1, "event": "Reboot", "node": 1},
        {"v": 1, "event": "Crash"},
        {"v": 1, "event": "HwCheckpoint", "node": 1, "hw": "5"},
        {"v": 1, "event": "HwCheckpoint", "node": 1, "hw": -2},
        {"v": 1, "event": "HwCheckpoint", "node": 1, "hw": 2**62},
        {"v": 1, "event": "Start", "node": 1, "epochs": [[0]]},
        {"event": "Crash", "node": 1},
    ],
)
def test_what_the_reader_refuses_is_not_valid(line: dict[str, Any]) -> None:
    assert not VALIDATOR.is_valid(line)


def test_an_unknown_field_is_valid() -> None:
    VALIDATOR.validate({"v": 1, "event": "Crash", "node": 1, "rack": "r1"})

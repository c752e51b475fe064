"""A trace in ITF is, for an independent reader, what the trace reports."""

import json
from pathlib import Path
from typing import Any

import pytest

from tidegauge.conformance.checking.convert import convert
from tidegauge.traces.formats import ndjson
from tidegauge.traces.formats.itf import REPORTED
from tidegauge.traces.kafka_logs.capture import shipped
from tidegauge.traces.schema import FIELDS as KINDS
from tidegauge.traces.schema import Config, Event, FieldKind, Trace

itf_py = pytest.importorskip("itf_py")

CAPTURE = shipped()["3.4.0/b-kill-leader"]


def read(path: Path) -> Any:
    return itf_py.trace_from_json(json.loads(path.read_text(encoding="utf-8")))


def expected(name: str, value: object) -> object:
    """What a value is in TLA+; null is -1, or nothing in it."""
    kind = KINDS[name].kind
    if kind is FieldKind.NODES:
        return frozenset(value or ())
    if kind is FieldKind.EPOCHS:
        return [tuple(-1 if part is None else part for part in entry) for entry in value or ()]
    return -1 if value is None else value


def check_states(trace: Trace, found: Any) -> None:
    assert found.vars == list(found.states[0].values)
    assert len(found.states) == len(trace.events) + 1
    reported: dict[str, dict[int, object]] = {name: {} for name in REPORTED}
    assert all(found.states[0].values[name] == {} for name in REPORTED)
    for event, state in zip(trace.events, found.states[1:], strict=True):
        fields = {name: expected(name, value) for name, value in event.fields.items()}
        for name in reported.keys() & fields.keys():
            reported[name][event.node] = fields[name]
        assert (state.values["node"], state.values["action"]) == (event.node, event.event)
        assert state.values["fields"]._asdict() == fields
        assert {name: dict(state.values[name]) for name in REPORTED} == reported
        assert state.meta.get("at", "") == event.at


def test_a_capture_is_a_file_per_partition_with_all_that_was_reported(tmp_path: Path) -> None:
    convert(CAPTURE, tmp_path / "run.ndjson")
    convert(CAPTURE, tmp_path / "run.itf.json")
    traces = ndjson.read(tmp_path / "run.ndjson").traces
    files = [tmp_path / f"run{'' if number == 1 else f'.{number}'}.itf.json" for number in range(1, len(traces) + 1)]
    assert sorted(tmp_path.glob("*.itf.json")) == sorted(files)
    for trace, file in zip(traces, files, strict=True):
        check_states(trace, read(file))
    assert sum(len(trace.events) for trace in traces) > 800


def test_a_value_of_each_kind_and_a_second_trace(tmp_path: Path) -> None:
    """Undefined, empty, larger than a double holds; the second trace is another file."""
    events = (
        Event(1, "Start", {"clean": False, "leo": 2**60 + 1, "hw": 0, "epochs": ((0, 0), (2, 5))}),
        Event(1, "BecomeFollower", {"leader": None, "leader_epoch": 3}),
        Event(2, "BecomeLeader", {"isr": (1, 2), "leader_epoch": 3, "epoch_start": None}),
        Event(2, "Start", {"epochs": ()}),
    )
    traces = [Trace(name, "t-0", Config((1, 2)), events[: 4 - less]) for less, name in enumerate(("whole", "short"))]
    ndjson.write(traces, tmp_path / "two.ndjson")
    assert convert(tmp_path / "two.ndjson", tmp_path / "two.itf.json").traces == 2
    traces = ndjson.read(tmp_path / "two.ndjson").traces
    check_states(traces[0], read(tmp_path / "two.itf.json"))
    check_states(traces[1], read(tmp_path / "two.2.itf.json"))
    assert read(tmp_path / "two.2.itf.json").meta["description"] == "short t-0"

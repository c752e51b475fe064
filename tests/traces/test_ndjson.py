"""NDJSON: what is written is read back, and no bad line costs a good one."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.traces.strategies import CONFIG, trace_lists
from tidegauge.traces.formats import ndjson
from tidegauge.traces.schema import Config, Event, Trace

CONFIG_LINE = json.dumps({"v": 1, "event": "Config", "trace": "t", "tp": "a-0", "nodes": [1, 2], "controller": 100})


def read(*lines: str | bytes) -> ndjson.NdjsonReading:
    data = b"\n".join(line.encode() if isinstance(line, str) else line for line in lines) + b"\n"
    return ndjson.read_bytes(data, "f.ndjson")


def event(**keys: Any) -> str:
    return json.dumps({"v": 1, "node": 1, "event": "HwCheckpoint", **keys})


def reported(trace: Trace) -> list[tuple[int, str, Any]]:
    return [(e.node, e.event, e.fields) for e in trace.events]


@given(trace_lists)
def test_what_is_written_is_read_back(traces: list[Trace]) -> None:
    text = "".join(f"{line}\n" for trace in traces for line in ndjson.lines(trace))
    found = ndjson.read_bytes(text.encode(), "f.ndjson")
    assert found.problems == []
    assert [(t.name, t.tp, t.config) for t in found.traces] == [(t.name, t.tp, t.config) for t in traces]
    assert [reported(t) for t in found.traces] == [reported(t) for t in traces]


def test_a_file_holds_several_traces(tmp_path: Path) -> None:
    traces = [Trace(name, "a-0", CONFIG, (Event(1, "Crash", {}),)) for name in ("x", "y")]
    ndjson.write(traces, tmp_path / "two.ndjson")
    assert [t.name for t in ndjson.read(tmp_path / "two.ndjson").traces] == ["x", "y"]


def test_an_event_that_names_its_trace_goes_there() -> None:
    """Lines of two traces may alternate."""
    other = CONFIG_LINE.replace('"t"', '"u"')
    found = read(CONFIG_LINE, other, event(hw=1, trace="t"), event(hw=2))
    assert [reported(t) for t in found.traces] == [[(1, "HwCheckpoint", {"hw": 1})], [(1, "HwCheckpoint", {"hw": 2})]]


def test_absent_and_null_stay_apart() -> None:
    """Absent is unknown, null is known to be undefined."""
    found = read(CONFIG_LINE, event(hw=None), event())
    assert [e.fields for e in found.traces[0].events] == [{"hw": None}, {}]


def test_unknown_fields_are_kept_and_written_back() -> None:
    line = event(hw=3, rack="r1", crc=[1, 2])
    trace = read(CONFIG_LINE, line).traces[0]
    assert trace.events[0].unknown == {"rack": "r1", "crc": [1, 2]}
    assert json.loads(list(ndjson.lines(trace))[1]).items() >= json.loads(line).items()


def test_unknown_keys_of_a_config_are_kept() -> None:
    trace = read(CONFIG_LINE[:-1] + ',"release":"3.6.1"}').traces[0]
    assert trace.config == Config(nodes=(1, 2), controller=100, extra={"release": "3.6.1"})
    assert json.loads(next(ndjson.lines(trace)))["release"] == "3.6.1"


BAD_LINES = {
    "truncated": b'{"v":1,"node":1,"event":"HwCh',
    "no object": b"[1, 2]",
    "not text": b'{"node": "\xff\xfe"}',
    "unknown event": event(event="Reboot"),
    "no event": b'{"v":1,"node":1}',
    "unknown node": event(node=9),
    "node of the wrong type": event(node="1"),
    "unknown trace": event(trace="nobody"),
    "trace of the wrong type": event(trace=["t"]),
    "version of the wrong type": event(v="one"),
    "nested too deep": b"[" * 100_000,
}


@pytest.mark.parametrize("bad", BAD_LINES.values(), ids=BAD_LINES.keys())
def test_a_bad_line_is_a_problem_and_costs_no_other(bad: str | bytes) -> None:
    found = read(CONFIG_LINE, event(hw=1), bad, event(hw=2))
    assert [e.fields for e in found.traces[0].events] == [{"hw": 1}, {"hw": 2}]
    assert [(p.path, p.line, p.lost) for p in found.problems] == [("f.ndjson", 3, 1)]
    assert found.events + found.lost == 3


BAD_FIELDS = {
    "text for an integer": {"hw": "5"},
    "fraction": {"hw": 1.5},
    "true for an integer": {"hw": True},
    "too large": {"hw": 2**62},
    "below -1": {"hw": -2},
}


@pytest.mark.parametrize("bad", BAD_FIELDS.values(), ids=BAD_FIELDS.keys())
def test_a_bad_field_is_left_out_and_its_event_kept(bad: dict[str, Any]) -> None:
    found = read(CONFIG_LINE, event(**bad))
    assert [e.fields for e in found.traces[0].events] == [{}]
    assert [p.lost for p in found.problems] == [0]
    assert str(next(iter(bad.values()))).strip('"') in found.problems[0].seen


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("BecomeLeader", {"isr": 3}),
        ("BecomeLeader", {"isr": [1, 9]}),
        ("BecomeFollower", {"leader": 9}),
        ("Start", {"clean": 1}),
        ("Start", {"epochs": [[0]]}),
        ("Start", {"epochs": {"0": 0}}),
    ],
)
def test_fields_of_every_kind_are_checked(name: str, bad: dict[str, Any]) -> None:
    found = read(CONFIG_LINE, event(event=name, **bad))
    assert [e.fields for e in found.traces[0].events] == [{}]
    assert len(found.problems) == 1


def test_a_gap_in_seq_is_a_problem_and_the_events_stay() -> None:
    found = read(CONFIG_LINE, event(seq=0), event(seq=1), event(seq=3), event(seq=4))
    assert [e.seq for e in found.traces[0].events] == [0, 1, 3, 4]
    assert [(p.line, p.seen) for p in found.problems] == [(4, '"seq": 3')]


def test_seq_starts_anew_with_the_node_and_is_counted_per_node() -> None:
    lines = [event(seq=5), event(seq=0, node=2), event(seq=6), event(seq=0, event="Start"), event(seq=1)]
    assert read(CONFIG_LINE, *lines).problems == []


def test_a_newer_major_version_is_refused() -> None:
    found = read(CONFIG_LINE, event(hw=1), event(v=2), event(hw=2))
    assert found.events == 1
    assert [(p.line, p.expected, p.seen) for p in found.problems] == [(3, "schema version 1 or older", "version 2")]
    assert "update tidegauge" in found.problems[0].do


@pytest.mark.parametrize(
    "bad",
    [
        "{}",
        '{"nodes":[]}',
        '{"nodes":[1,1]}',
        '{"nodes":[1],"min_isr":"2"}',
        '{"nodes":[1],"min_isr":0}',
        '{"nodes":[1],"min_isr":4294967296}',
        '{"nodes":[1],"lag_rule":1}',
    ],
)
def test_events_below_a_bad_config_are_counted_as_lost(bad: str) -> None:
    found = read(json.dumps({"event": "Config", **json.loads(bad)}), event(), event(), CONFIG_LINE, event())
    assert found.events == 1
    assert found.lost == 3


def test_an_event_before_any_config_is_a_problem() -> None:
    found = read(event(), CONFIG_LINE)
    assert found.problems[0].expected == "a Config line before the first event"


@pytest.mark.parametrize(
    ("data", "seen"), [(b"", "an empty file"), (b" \n\n", "an empty file"), (b"PAR1\0\0", "a binary file")]
)
def test_a_file_that_is_no_ndjson_is_one_problem(data: bytes, seen: str) -> None:
    found = ndjson.read_bytes(data, "f")
    assert found.traces == []
    assert [p.seen for p in found.problems] == [seen]


def test_a_missing_file_is_a_problem(tmp_path: Path) -> None:
    assert ndjson.read(tmp_path / "none.ndjson").problems[0].seen == "No such file or directory"


@given(st.binary(max_size=400))
def test_no_bytes_make_the_reader_raise(data: bytes) -> None:
    found = ndjson.read_bytes(data, "f")
    assert found.traces or found.problems


@given(trace_lists, st.data())
def test_truncating_a_file_anywhere_loses_at_most_the_line_that_was_truncated(
    traces: list[Trace], data: st.DataObject
) -> None:
    text = "".join(f"{line}\n" for trace in traces for line in ndjson.lines(trace)).encode()
    torn = text[: data.draw(st.integers(1, len(text)))]
    found = ndjson.read_bytes(torn, "f")
    whole = torn.count(b"\n")
    assert found.events + len(found.traces) >= whole
    assert found.lost <= 1

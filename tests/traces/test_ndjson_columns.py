"""The fast way of reading NDJSON reads what the slow way reads, or leaves the file to it."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.traces.strategies import CONFIG, trace_lists
from traces import ndjson
from traces.ndjson_columns import Batch, batches_of, fast_batches, read_columns
from traces.schema import Config, Event, Trace

pytest.importorskip("numba")


def same(one: list[Batch], other: list[Batch]) -> bool:
    return len(one) == len(other) and all(
        a.config == b.config
        and list(a.names) == list(b.names)
        and a.columns.ints.keys() == b.columns.ints.keys()
        and all(np.array_equal(a.columns.ints[name], b.columns.ints[name]) for name in a.columns.ints)
        and all(
            np.array_equal(getattr(a.columns, name), getattr(b.columns, name))
            for name in ("trace_starts", "event", "node", "epochs_told", "epochs_at", "epochs")
        )
        for a, b in zip(one, other, strict=True)
    )


def written(traces: list[Trace]) -> bytes:
    return "".join(f"{line}\n" for trace in traces for line in ndjson.lines(trace)).encode()


def slow(data: bytes) -> list[Batch]:
    return batches_of(ndjson.read_bytes(data, "f").traces)


HEAD = b'{"v":1,"event":"Config","trace":"t","nodes":[1,2],"controller":100}\n'


@given(trace_lists)
def test_both_ways_read_the_same(traces: list[Trace]) -> None:
    small = [Trace(t.name, t.tp, t.config, tuple(e for e in t.events if plain(e))) for t in traces]
    found = fast_batches(written(small))
    assert found is not None
    assert same(found, slow(written(small)))


def plain(event: Event) -> bool:
    """Integers of 19 digits are left to the slow way."""
    return all(len(number) < 19 for number in digits(event))


def digits(event: Event) -> list[str]:
    return "".join(c if c.isdigit() else " " for c in json.dumps(event.fields)).split()


@settings(max_examples=300)
@given(trace_lists, st.data())
def test_a_changed_byte_is_read_alike_or_left_to_the_slow_way(traces: list[Trace], data: st.DataObject) -> None:
    """Whatever the fast way accepts, the slow way accepts without a problem and reads alike."""
    text = bytearray(written(traces))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at] = data.draw(st.one_of(st.sampled_from(b'0123456789-"{}[]:,\\ \nntf.eE'), st.integers(0, 255)))
    found = fast_batches(bytes(text))
    if found is not None:
        assert ndjson.read_bytes(bytes(text), "f").problems == []
        assert same(found, slow(bytes(text)))


PLAIN = {
    "blanks": b' { "v" : 1 ,\t"node": 1 , "event" : "HwCheckpoint" , "hw" : 5 } \r\n\n',
    "null": b'{"node":1,"event":"BecomeFollower","leader":null,"isr":null}\n{"node":1,"event":"Start","epochs":null}\n',
    "unknown fields": b'{"node":1,"event":"Crash","rack":"r\\"1\\n","load":1.5e-3,"up":true,"more":null}\n',
    "a field of another event": b'{"node":1,"event":"Crash","hw":5}\n',
    "fields before the event": b'{"hw":5,"leo":7,"event":"Observe","epochs":[[0,0],[3,5]],"node":2}\n',
    "sets": b'{"node":100,"event":"ChangePartition","isr":[2,1],"live":[],"clean":false}\n',
    "own name": b'{"node":1,"event":"Crash","trace":"t"}\n',
    "time": b'{"node":1,"event":"Crash","time":"2026-01-01","corr":17,"at":"x:1"}\n',
    "a key twice": b'{"node":1,"event":"HwCheckpoint","hw":5,"hw":6}\n',
    "no line feed at the end": b'{"node":1,"event":"Crash"}',
    "two events": b'{"node":1,"seq":4,"event":"Crash"}\n{"node":1,"seq":0,"event":"Start"}\n',
    "beyond ASCII": '{"node":1,"event":"Crash","rack":"Köln"}\n'.encode(),
}


@pytest.mark.parametrize("lines", PLAIN.values(), ids=PLAIN.keys())
def test_plain_lines_are_read_fast(lines: bytes) -> None:
    found = fast_batches(HEAD + lines)
    assert found is not None
    assert same(found, slow(HEAD + lines))


LEFT = {
    "a gap in seq": b'{"node":1,"seq":1,"event":"Crash"}\n{"node":1,"seq":3,"event":"Crash"}\n',
    "an unknown event": b'{"node":1,"event":"Reboot"}\n',
    "an unknown node": b'{"node":9,"event":"Crash"}\n',
    "no node": b'{"event":"Crash"}\n',
    "a fraction": b'{"node":1,"event":"HwCheckpoint","hw":1.5}\n',
    "below -1": b'{"node":1,"event":"HwCheckpoint","hw":-2}\n',
    "a leading zero": b'{"node":1,"event":"HwCheckpoint","hw":05}\n',
    "19 digits": b'{"node":1,"event":"HwCheckpoint","hw":1000000000000000000}\n',
    "true for a number": b'{"node":1,"event":"HwCheckpoint","hw":true}\n',
    "a number for true": b'{"node":1,"event":"Start","clean":1}\n',
    "an unknown member": b'{"node":1,"event":"ShrinkIsr","isr":[1,9]}\n',
    "a pair of three": b'{"node":1,"event":"Start","epochs":[[1,2,3]]}\n',
    "a newer version": b'{"v":2,"node":1,"event":"Crash"}\n',
    "another trace": b'{"trace":"u","node":1,"event":"Crash"}\n',
    "cut short": b'{"node":1,"event":"Cra',
    "a nested value": b'{"node":1,"event":"Crash","more":{"a":1}}\n',
    "no UTF-8": b'{"node":1,"event":"Crash","rack":"\xff"}\n',
    "a name twice": HEAD,
    "a bad config": b'{"event":"Config","nodes":[]}\n',
}


@pytest.mark.parametrize("lines", LEFT.values(), ids=LEFT.keys())
def test_everything_else_is_left_to_the_slow_way(lines: bytes) -> None:
    assert fast_batches(HEAD + lines) is None


def test_events_before_a_config_are_left_to_the_slow_way() -> None:
    assert fast_batches(b'{"node":1,"event":"Crash"}\n' + HEAD) is None


def test_traces_of_different_configs_come_apart() -> None:
    other = Config(nodes=(4, 5), controller=9)
    traces = [Trace(f"t{i}", "a-0", other if i % 2 else CONFIG, ()) for i in range(4)]
    found = fast_batches(written(traces))
    assert found is not None
    assert [[name for name, _ in batch.names] for batch in found] == [["t0", "t2"], ["t1", "t3"]]
    assert same(found, slow(written(traces)))


def test_a_large_file_with_a_bad_line_is_read_with_its_problem(tmp_path: Path) -> None:
    path = tmp_path / "f.ndjson"
    path.write_bytes(HEAD + b'{"node":1,"event":"Crash"}\nbroken\n')
    batches, problems = read_columns(path, fast_from=0)
    assert len(batches[0].columns) == 1
    assert [problem.line for problem in problems] == [3]


def test_a_missing_file_is_a_problem(tmp_path: Path) -> None:
    assert read_columns(tmp_path / "none")[1][0].expected == "a readable file"

"""The way at once of reading NDJSON reads what the slow way reads, or leaves the file to it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.traces.strategies import CONFIG, trace_lists
from tidegauge.traces.columns import Columns, Distinct, to_columns
from tidegauge.traces.formats import ndjson, ndjson_columns
from tidegauge.traces.formats.ndjson_columns import TraceBatch
from tidegauge.traces.schema import Config, Trace


def same(one: list[TraceBatch], other: list[TraceBatch]) -> bool:
    return len(one) == len(other) and all(
        a.config == b.config and a.numbered == b.numbered and alike(columns(a), columns(b))
        for a, b in zip(one, other, strict=True)
    )


def columns(block: TraceBatch) -> Columns:
    """One row per event."""
    return block.stored.expanded() if isinstance(block.stored, Distinct) else block.stored


def alike(one: Columns, other: Columns) -> bool:
    return (
        one.ints.keys() == other.ints.keys()
        and all(np.array_equal(one.ints[name], other.ints[name]) for name in one.ints)
        and all(
            np.array_equal(getattr(one, name), getattr(other, name))
            for name in ("trace_starts", "event", "node", "epochs_reported", "epochs_at", "epochs")
        )
    )


def read_at_once(data: bytes) -> list[TraceBatch] | None:
    """At once, whether lines that recur are looked up or not: it makes no difference."""
    found = [read_with(data, recurs) for recurs in (1, ndjson_columns.LINES_PER_DISTINCT, 1 << 62)]
    assert len({one is None for one in found}) == 1
    assert found[0] is None or all(same(found[0], one or []) for one in found[1:])
    return found[0]


def read_with(data: bytes, recurs: int) -> list[TraceBatch] | None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ndjson_columns, "LINES_PER_DISTINCT", recurs)
        return ndjson_columns.read_at_once(data)


def written(traces: list[Trace]) -> bytes:
    return "".join(f"{line}\n" for trace in traces for line in ndjson.lines(trace)).encode()


def slow(data: bytes) -> list[TraceBatch]:
    groups: dict[str, list[Trace]] = {}
    for trace in ndjson.read_bytes(data, "f").traces:
        groups.setdefault(repr(trace.config), []).append(trace)
    return [
        TraceBatch(
            to_columns(group, group[0].config),
            group[0].config,
            sum(event.seq is not None for trace in group for event in trace.events),
        )
        for group in groups.values()
    ]


HEAD = b'{"v":1,"event":"Config","trace":"t","nodes":[1,2],"controller":100}\n'


@given(trace_lists)
def test_both_ways_read_the_same(traces: list[Trace]) -> None:
    found = read_at_once(written(traces))
    assert found is not None
    assert same(found, slow(written(traces)))


@settings(max_examples=300)
@given(trace_lists, st.data())
def test_a_changed_byte_is_read_alike_or_left_to_the_slow_way(traces: list[Trace], data: st.DataObject) -> None:
    """Whatever the way at once accepts, the slow way accepts without a problem and reads alike."""
    text = bytearray(written(traces))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at] = data.draw(st.one_of(st.sampled_from(b'0123456789-"{}[]:,\\ \nntf.eE'), st.integers(0, 255)))
    found = read_at_once(bytes(text))
    if found is not None:
        assert ndjson.read_bytes(bytes(text), "f").problems == []
        assert same(found, slow(bytes(text)))


PLAIN = {
    "blanks": b'{ "v" : 1 ,\t"node": 1 , "event" : "HwCheckpoint" , "hw" : 5 }\n',
    "null": b'{"node":1,"event":"BecomeFollower","leader":null,"leader_epoch": null}\n',
    "a key twice": b'{"node":1,"event":"HwCheckpoint","hw":5,"hw":6}\n',
    "a set that is undefined": b'{"node":100,"event":"ChangePartition","isr":null}\n',
    "an undefined cache": b'{"node":1,"event":"Start","epochs":null,"clean":null,"seq":null}\n',
    "unknown fields": b'{"node":1,"event":"Crash","rack":"r\\"1\\n","load":1.5e-3,"up":true,"more":null}\n',
    "a nested value": b'{"node":1,"event":"Crash","more":{"a":1}}\n',
    "19 digits": b'{"node":1,"event":"HwCheckpoint","hw":1000000000000000000}\n',
    "a field of another event": b'{"node":1,"event":"Crash","hw":5}\n',
    "fields before the event": b'{"hw":5,"leo":7,"event":"Observe","epochs":[[0,0],[3,5]],"node":2}\n',
    "sets": b'{"node":100,"event":"ChangePartition","isr":[2,1],"live":[],"clean":false}\n',
    "own name": b'{"node":1,"event":"Crash","trace":"t"}\n',
    "time": b'{"node":1,"event":"Crash","time":"2026-01-01","corr":17,"at":"x:1"}\n',
    "no line feed at the end": b'{"node":1,"event":"Crash"}',
    "two events": b'{"node":1,"seq":1,"event":"Crash"}\n{"node":1,"seq":0,"event":"Start"}\n',
    "beyond ASCII": '{"node":1,"event":"Crash","rack":"Köln"}\n'.encode(),
}


@pytest.mark.parametrize("lines", PLAIN.values(), ids=PLAIN.keys())
def test_plain_lines_are_read_fast(lines: bytes) -> None:
    found = read_at_once(HEAD + lines)
    assert found is not None
    assert same(found, slow(HEAD + lines))


LEFT = {
    "a gap in seq": b'{"node":1,"seq":1,"event":"Crash"}\n{"node":1,"seq":3,"event":"Crash"}\n',
    "a start with a number of its own": b'{"node":1,"seq":1,"event":"Crash"}\n{"node":1,"seq":9,"event":"Start"}\n',
    "an unknown event": b'{"node":1,"event":"Reboot"}\n',
    "an unknown node": b'{"node":9,"event":"Crash"}\n',
    "no node": b'{"event":"Crash"}\n',
    "a fraction": b'{"node":1,"event":"HwCheckpoint","hw":1.5}\n',
    "below -1": b'{"node":1,"event":"HwCheckpoint","hw":-2}\n',
    "a leading zero": b'{"node":1,"event":"HwCheckpoint","hw":05}\n',
    "beyond 2^62": b'{"node":1,"event":"HwCheckpoint","hw":4611686018427387904}\n',
    "beyond int64": b'{"node":1,"event":"HwCheckpoint","hw":9223372036854775808}\n',
    "a fraction that is none": b'{"node":1,"event":"HwCheckpoint","hw":1.0}\n',
    "no trace": b'{"node":1,"event":"Crash","trace":null}\n',
    "no version": b'{"node":1,"event":"Crash","v":null}\n',
    "true for a version": b'{"node":1,"event":"Crash","v":true}\n',
    "no number": b'{"node":1,"event":"Crash","seq":"1"}\n',
    "a negative number": b'{"node":1,"event":"Crash","seq":-1}\n',
    "the controller as a peer": b'{"node":1,"event":"SendFetch","peer":100}\n',
    "an event twice": b'{"node":1,"event":"Crash","event":"Stop"}\n',
    "an event over two lines beside two on one": b'{"node":1,"event":"Crash"}{"x":\n{"y":1},"node":1,"event":"Crash"}\n',
    "an empty line": b'{"node":1,"event":"Crash"}\n\n{"node":1,"event":"Crash"}\n',
    "two events on a line": b'{"node":1,"event":"Crash"}{"node":1,"event":"Crash"}\n',
    "an event on two lines": b'{"node":1,\n"event":"Crash"}\n',
    "true for a number": b'{"node":1,"event":"HwCheckpoint","hw":true}\n',
    "a number for true": b'{"node":1,"event":"Start","clean":1}\n',
    "an unknown member": b'{"node":1,"event":"ShrinkIsr","isr":[1,9]}\n',
    "a pair of three": b'{"node":1,"event":"Start","epochs":[[1,2,3]]}\n',
    "a newer version": b'{"v":2,"node":1,"event":"Crash"}\n',
    "another trace": b'{"trace":"u","node":1,"event":"Crash"}\n',
    "cut short": b'{"node":1,"event":"Cra',
    "no UTF-8": b'{"node":1,"event":"Crash","rack":"\xff"}\n',
    "a name twice": HEAD,
    "a bad config": b'{"event":"Config","nodes":[]}\n',
}


@pytest.mark.parametrize("lines", LEFT.values(), ids=LEFT.keys())
def test_everything_else_is_left_to_the_slow_way(lines: bytes) -> None:
    assert read_at_once(HEAD + lines) is None


def test_events_before_a_config_are_left_to_the_slow_way() -> None:
    assert read_at_once(b'{"node":1,"event":"Crash"}\n' + HEAD) is None


def test_traces_of_different_configs_come_apart() -> None:
    other = Config(nodes=(4, 5), controller=9)
    traces = [Trace(f"t{i}", "a-0", other if i % 2 else CONFIG, ()) for i in range(4)]
    found = read_at_once(written(traces))
    assert found is not None
    assert [batch.config for batch in found] == [CONFIG, other]
    assert same(found, slow(written(traces)))

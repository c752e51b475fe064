"""Parquet: columns come back as they were, whatever is wrong with a file is a Problem."""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from tests.traces.strategies import CONFIG, trace_lists
from tidegauge.traces.columns import UNKNOWN, Columns, to_columns
from tidegauge.traces.formats import parquet
from tidegauge.traces.schema import Event, Trace


def same(one: Columns, other: Columns) -> bool:
    names = ("trace_starts", "event", "node", "epochs_reported", "epochs_at", "epochs")
    return one.ints.keys() == other.ints.keys() and all(
        np.array_equal(a, b)
        for a, b in (
            *((getattr(one, name), getattr(other, name)) for name in names),
            *((one.ints[name], other.ints[name]) for name in one.ints),
        )
    )


def some(traces: int, events: int = 3) -> Columns:
    found = [
        Trace("", "", CONFIG, tuple(Event(1, "HwCheckpoint", {"hw": t * 10 + e}) for e in range(events)))
        for t in range(traces)
    ]
    return to_columns(found, CONFIG)


@settings(max_examples=50, deadline=None)
@given(trace_lists)
def test_columns_come_back_as_they_were(traces: list[Trace]) -> None:
    columns = to_columns(traces, CONFIG)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.parquet"
        parquet.write(columns, CONFIG, path)
        found, config = parquet.read_row_group(path, 0)
    assert config == CONFIG
    assert same(found, columns)


def test_a_row_group_holds_whole_traces(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    parquet.write(some(traces=10), CONFIG, path, row_group=7)
    groups = parquet.row_groups(path)
    assert [(g.rows, g.first_trace, g.traces) for g in groups] == [(6, t, 2) for t in range(0, 10, 2)]
    found, _ = parquet.read_row_group(path, 3)
    assert found.trace_starts.tolist() == [0, 3, 6]
    assert found.ints["hw"].tolist() == [60, 61, 62, 70, 71, 72]


def test_a_trace_longer_than_a_row_group_stands_alone(tmp_path: Path) -> None:
    parquet.write(some(traces=3, events=9), CONFIG, tmp_path / "f.parquet", row_group=4)
    assert [g.rows for g in parquet.row_groups(tmp_path / "f.parquet")] == [9, 9, 9]


def test_same_columns_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        parquet.write(some(traces=5), CONFIG, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_only_told_fields_have_a_column(tmp_path: Path) -> None:
    parquet.write(some(traces=1), CONFIG, tmp_path / "f.parquet")
    assert pq.read_schema(tmp_path / "f.parquet").names == ["trace", "event", "node", "hw"]


def foreign(path: Path, **columns: pa.Array) -> None:
    """A file as another tool might write it: our metadata, its own types."""
    ours = path.with_suffix(".ours")
    parquet.write(some(traces=1), CONFIG, ours)
    table = pa.table(columns).replace_schema_metadata(pq.read_schema(ours).metadata)
    pq.write_table(table, path, compression="zstd")


def test_nulls_and_narrow_integers_of_another_writer_are_read(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    foreign(
        path,
        trace=pa.array([0, 0, 1], pa.int16()),
        event=pa.array([25, 20, 25], pa.int8()),
        node=pa.array([0, 1, 0], pa.int8()),
        hw=pa.array([5, None, -1], pa.int32()),
        epochs=pa.array([None, "[[0,0],[2,7]]", None]),
        their_own=pa.array(["a", "b", "c"]),
    )
    found, _ = parquet.read_row_group(path, 0)
    assert found.ints["hw"].tolist() == [5, UNKNOWN, -1]
    assert found.trace_starts.tolist() == [0, 2, 3]
    assert (found.epochs_reported.tolist(), found.epochs.tolist()) == ([False, True, False], [0, 0, 2, 7])


def distinct(path: Path, rows: list[int], starts: list[int], **changed: Any) -> None:
    """A file in the distinct layout: four events, of which the traces are made."""
    events = (
        Event(1, "HwCheckpoint", {"hw": 5}),
        Event(2, "Start", {"leo": 3, "epochs": ((0, 0), (4, 2))}),
        Event(2, "Start", {"epochs": ()}),
        Event(7, "Crash", {}),
    )
    table = to_columns([Trace("", "", CONFIG, events)], CONFIG)
    table = replace(table, **changed)
    with parquet.DistinctWriter(path, CONFIG, table) as out:
        out.write(np.array(rows), np.array(starts))


def test_the_distinct_layout_gives_the_same_columns_as_the_wide_one(tmp_path: Path) -> None:
    distinct(tmp_path / "d", [0, 1, 1, 3, 2, 0, 1], [0, 3, 3, 5, 7])
    found, config = parquet.read_row_group(tmp_path / "d", 0)
    assert found.trace_starts.tolist() == [0, 3, 5, 7]
    parquet.write(found, config, tmp_path / "w")
    again, _ = parquet.read_row_group(tmp_path / "w", 0)
    assert same(found, again)
    assert found.ints["hw"].tolist() == [5, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, 5, UNKNOWN]
    assert found.epochs.tolist() == [0, 0, 4, 2] * 3
    assert found.epochs_reported.tolist() == [False, True, True, False, True, False, True]


@pytest.mark.parametrize("row", [-1, 4])
def test_a_row_outside_the_table_is_a_problem(tmp_path: Path, row: int) -> None:
    distinct(tmp_path / "d", [0, row], [0, 2])
    with pytest.raises(parquet.Unreadable, match="expected rows from 0 to 3") as refused:
        parquet.read_row_group(tmp_path / "d", 0)
    assert refused.value.problem.lost == 2


@pytest.mark.parametrize(
    ("column", "numbers", "expected"),
    [
        ("event", [25, 20, 99, 22], "event codes"),
        ("node", [0, 1, 1, 9], "nodes as positions"),
        ("node", [0], "table of events"),
    ],
)
def test_a_table_that_does_not_fit_is_a_problem(tmp_path: Path, column: str, numbers: list[int], expected: str) -> None:
    distinct(tmp_path / "d", [0], [0, 1], **{column: np.array(numbers)})
    with pytest.raises(parquet.Unreadable, match=expected):
        parquet.row_groups(tmp_path / "d")


BAD = {
    "an event code out of range": {"event": [25, 99]},
    "an event code of 0": {"event": [0, 25]},
    "a node out of range": {"node": [0, 4]},
    "a negative node": {"node": [-1, 0]},
    "a peer out of range": {"peer": [0, 17]},
    "a peer below -1": {"peer": [0, -5]},
    "the controller as a peer": {"peer": [0, 3]},
    "traces out of order": {"trace": [1, 0]},
    "a gap between traces": {"trace": [0, 2]},
    "a row without a trace": {"trace": [0, None]},
    "a column of text": {"hw": ["1", "x"]},
    "epochs that are no JSON": {"epochs": ["[[0,", ""]},
    "epochs that are no pairs": {"epochs": ["[1,2]", ""]},
    "epochs too large": {"epochs": ["[[0,99999999999999999999]]", ""]},
    "epochs beyond every number": {"epochs": ["[[1e999,0]]", ""]},
    "epochs in fractions": {"epochs": ["[[0.5,1]]", ""]},
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_a_bad_row_group_is_a_problem_with_its_events_counted(tmp_path: Path, bad: dict[str, list[object]]) -> None:
    good = {"trace": [0, 0], "event": [25, 25], "node": [0, 0], "hw": [1, 2]}
    foreign(tmp_path / "f.parquet", **{name: pa.array(values) for name, values in (good | bad).items()})
    with pytest.raises(parquet.Unreadable) as refused:
        parquet.read_row_group(tmp_path / "f.parquet", 0)
    assert refused.value.problem.lost == 2
    assert refused.value.problem.path.endswith("f.parquet#0")


def test_a_damaged_page_is_found_by_its_checksum(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    parquet.write(some(traces=1000), CONFIG, path)
    data = bytearray(path.read_bytes())
    column = pq.read_metadata(path).row_group(0).column(3)
    data[column.dictionary_page_offset + column.total_compressed_size - 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(parquet.Unreadable, match="row group 0 is left out, with its 3000 events"):
        parquet.read_row_group(path, 0)


def test_a_column_of_another_type_than_the_schema_has_is_a_problem(tmp_path: Path) -> None:
    """Arrow would end the process over it: whichever byte of the footer says so."""
    path = tmp_path / "f.parquet"
    parquet.write(some(traces=1), CONFIG, path)
    data, found = path.read_bytes(), 0
    for at in range(len(data) - 8 - int.from_bytes(data[-8:-4], "little"), len(data) - 8):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x1E]) + data[at + 1 :])
        if _types_differ(path):
            found += 1
            with pytest.raises(parquet.Unreadable, match="as in the schema"):
                parquet.row_groups(path)
            with pytest.raises(parquet.Unreadable, match="as in the schema"):
                parquet.read_row_group(path, 0)
    assert found > 3


def _types_differ(path: Path) -> bool:
    try:
        with parquet.Reader(path):
            metadata = pq.read_metadata(path)
        group, schema = metadata.row_group(0), metadata.schema
        return any(group.column(at).physical_type != schema.column(at).physical_type for at in range(group.num_columns))
    except (parquet.Unreadable, IndexError, RuntimeError, OSError):  # another fault of the footer
        return False


@pytest.mark.parametrize("data", [b"", b"PAR1", b"not parquet at all", b"PAR1" + b"\0" * 100 + b"PAR1"])
def test_a_file_that_is_no_parquet_is_a_problem(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "f").write_bytes(data)
    with pytest.raises(parquet.Unreadable, match="expected a Parquet file"):
        parquet.row_groups(tmp_path / "f")


def test_a_column_whose_name_is_no_text_is_a_problem(tmp_path: Path) -> None:
    parquet.write(some(traces=1), CONFIG, tmp_path / "f")
    written = (tmp_path / "f").read_bytes()
    (tmp_path / "f").write_bytes(written.replace(b"trace", b"\xd2race"))
    with pytest.raises(parquet.Unreadable, match="expected a Parquet file"):
        parquet.row_groups(tmp_path / "f")


def test_a_missing_file_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(parquet.Unreadable, match="expected a Parquet file"):
        parquet.row_groups(tmp_path / "none")


def test_a_file_cut_short_is_a_problem(tmp_path: Path) -> None:
    parquet.write(some(traces=9), CONFIG, tmp_path / "f")
    (tmp_path / "g").write_bytes((tmp_path / "f").read_bytes()[:-20])
    with pytest.raises(parquet.Unreadable):
        parquet.row_groups(tmp_path / "g")


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, "the metadata key 'tidegauge'"),
        ({"tidegauge": "x"}, "a version and a config"),
        ({"tidegauge": '{"v":2,"config":{"nodes":[1]}}'}, "schema version 1 or older"),
        ({"tidegauge": '{"v":1,"config":{"nodes":7}}'}, '"nodes" to be a list'),
    ],
)
def test_metadata_that_does_not_fit_is_a_problem(tmp_path: Path, metadata: dict[str, str], expected: str) -> None:
    table = pa.table({"trace": [0], "event": [25], "node": [0]}).replace_schema_metadata(metadata)
    pq.write_table(table, tmp_path / "f")
    with pytest.raises(parquet.Unreadable, match=expected):
        parquet.row_groups(tmp_path / "f")


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    foreign(tmp_path / "f", trace=pa.array([0]), event=pa.array([25]))
    with pytest.raises(parquet.Unreadable, match="seen no node"):
        parquet.row_groups(tmp_path / "f")

"""Parquet files that are small and would take all memory: bounded before it is taken."""

import json
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.hostile.conftest import ROOT, Run
from tidegauge.traces.columns import INT_FIELDS, to_columns
from tidegauge.traces.formats import ndjson, parquet
from tidegauge.traces.formats.parquet import EPOCHS, METADATA, Reader, Unreadable
from tidegauge.traces.formats.parquet_metadata import Chunk, read_footer

(TRACE,) = ndjson.read(ROOT / "tidegauge" / "traces" / "golden" / "append.ndjson").traces
ROWS = 2_000_000
LONG = "[[0,0]" + " " * 150_000_000 + "]"
CACHE = json.dumps([[0, 0]] * 4000)


def write(path: Path, rows: int = 2, metadata: Mapping[str, Any] | None = None, codec: str = "zstd", **columns: Any) -> None:
    """Write a file of one trace that has these columns."""
    source = path.with_name("source.parquet")
    parquet.write(to_columns([TRACE], TRACE.config), TRACE.config, source)
    head = json.loads(pq.read_metadata(source).metadata[METADATA])
    given = {"trace": np.zeros(rows, np.int32), "event": np.full(rows, 3), "node": np.zeros(rows, np.int64), **columns}
    table = pa.table({name: pa.array(values) for name, values in given.items()})
    table = table.replace_schema_metadata({METADATA: json.dumps({**head, **(metadata or {})})})
    pq.write_table(table, path, compression=codec, row_group_size=rows, write_statistics=["trace"])


def repeated(text: str, rows: int) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text]))


BOMBS: dict[str, tuple[Callable[[Path], None], str]] = {
    "a text of 150 MB": (
        lambda path: write(path, epochs=[LONG, ""]),
        "pages of epochs that unpack to at most 67,108,864 bytes",
    ),
    "texts of 150 MB": (
        lambda path: write(path, 300, epochs=[LONG[: 500_000 + at] for at in range(300)]),
        "pages of epochs that unpack to at most",
    ),
    "a text longer than a line": (lambda path: write(path, epochs=[LONG[:2_000_000], ""]), "epochs as JSON pairs"),
    "a cache in each of many rows": (
        lambda path: write(path, ROWS, epochs=repeated(CACHE, ROWS)),
        "epoch caches of at most 402,653,184 bytes in memory, seen 128,000,000,000",
    ),
    "rows without end": (
        lambda path: write(path, ROWS, **{name: np.zeros(ROWS, np.int8) for name in INT_FIELDS}),
        "a row group of at most 402,653,184 bytes in memory",
    ),
    "lists without end": (
        lambda path: write(path, event=pa.ListArray.from_arrays(pa.array([0, 1, ROWS]), pa.array(np.zeros(ROWS, np.int64)))),
        "columns of numbers or texts, seen lists or structs in event",
    ),
    "lists in the metadata": (
        lambda path: write(path, metadata={"x": [[]] * 4_100_000}),
        "metadata of at most 67,108,864 bytes, with at most 4,000,000 lists",
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_a_problem(name: str, tmp_path: Path, command: Run) -> None:
    made, problem = BOMBS[name]
    made(tmp_path / "t.parquet")
    ended = command("check", "t.parquet", cwd=tmp_path)
    assert ended.returncode == 2, ended.stderr
    assert problem in ended.stdout


@pytest.mark.parametrize("codec", ["none", "snappy"])
def test_as_many_rows_as_a_small_file_may_have(codec: str, tmp_path: Path, command: Run) -> None:
    """Narrow, so that they are widened besides."""
    columns = {name: np.zeros(1, np.int32) for name in INT_FIELDS}
    rows = parquet.LARGEST_GROUP // 8 // (len(columns) + 3)
    write(tmp_path / "t.parquet", rows, codec=codec, **{name: np.zeros(rows, np.int32) for name in columns})
    ended = command("check", "t.parquet", cwd=tmp_path)
    assert f"{rows:,} events" in ended.stdout, ended.stderr


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "lz4"])
def test_the_metadata_are_those_that_arrow_reads(codec: str, version: Any, tmp_path: Path) -> None:
    """Of an honest writer, whose footer says the sizes of pages, with the headers."""
    numbers = {"a": [1, 2, None] * 9000, "i": np.arange(27_000, dtype=np.int32), "b": [True, False, None] * 9000}
    table = pa.table({EPOCHS: [f"{n}" for n in range(27_000)], "x": [1.5] * 27_000, **numbers})
    path = tmp_path / "t.parquet"
    pq.write_table(
        table, path, compression=codec, data_page_version=version, data_page_size=4096, row_group_size=20_000,
        write_page_checksum=True,
    )  # fmt: skip
    metadata = pq.read_metadata(path)
    with path.open("rb") as file:
        groups = read_footer(file)
        assert len(groups) == metadata.num_row_groups == 2
        for index, group in enumerate(groups):
            theirs = metadata.row_group(index)
            assert (group.rows, len(group.chunks)) == (theirs.num_rows, theirs.num_columns)
            for at, chunk in enumerate(group.chunks):
                column = theirs.column(at)
                begins = {column.data_page_offset, column.dictionary_page_offset} - {None}
                assert (chunk.path, chunk.physical_type) == (column.path_in_schema, column.physical_type)
                assert (chunk.begin, chunk.packed_bytes) == (min(begins), column.total_compressed_size)
                if column.physical_type in ("INT32", "INT64"):
                    assert (chunk.least, chunk.largest) == (column.statistics.min, column.statistics.max)
                sizes = list(chunk.pages(file))
                headers = chunk.packed_bytes - sum(size.packed for size in sizes)
                assert len(sizes) > (chunk.path != "b")
                assert headers > 0
                assert chunk.unpacked_bytes(file) + headers == column.total_uncompressed_size


def test_metadata_that_contradict_the_schema_are_a_problem(tmp_path: Path, command: Run) -> None:
    """pyarrow aborts the process where it is asked for the metadata of a column of numbers that has sizes of texts."""
    path = tmp_path / "t.parquet"
    write(path, epochs=["", ""])
    content = path.read_bytes()
    # The end of parquet.thrift's SchemaElement of `node`: INT64 is 2, INT32 1; then its metadata have another type.
    assert content.count(b"\x15\x04\x25\x02\x18\x04node") == 1
    path.write_bytes(content.replace(b"\x15\x04\x25\x02\x18\x04node", b"\x15\x02\x25\x02\x18\x04node"))
    ended = command("check", "t.parquet", cwd=tmp_path)
    assert ended.returncode == 2, ended.stderr
    assert "column node of type INT32, as in the schema, seen INT64" in ended.stdout
    # The same for the texts: what their metadata say of sizes is nothing that a column of truth values may have.
    path.write_bytes(content.replace(b"\x15\x0c\x25\x02\x18\x06epochs", b"\x15\x00\x25\x02\x18\x06epochs"))
    ended = command("check", "t.parquet", cwd=tmp_path)
    assert ended.returncode == 2, ended.stderr


def test_a_codec_that_does_not_exist_is_a_problem(tmp_path: Path, command: Run) -> None:
    """pyarrow aborts the process where its metadata are asked for such a codec."""
    path = tmp_path / "t.parquet"
    write(path, codec="gzip")
    content = path.read_bytes()
    # The end of parquet.thrift's ColumnMetaData#codec (field 4, an i32, GZIP is 2), then the head of #num_values.
    assert content.count(b"\x15\x04\x16") >= 3
    path.write_bytes(content.replace(b"\x15\x04\x16", b"\x15\x22\x16"))
    ended = command("check", "t.parquet", cwd=tmp_path)
    assert ended.returncode == 2, ended.stderr
    assert "a readable row group" in ended.stdout


def test_an_index_outside_of_its_dictionary_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow takes the indices of a column as the file has them."""
    write(tmp_path / "t.parquet", 3, epochs=repeated(CACHE, 3))
    wrong = pa.DictionaryArray.from_arrays(pa.array([0, 0, 1], pa.int32()), pa.array([CACHE]), safe=False)
    with Reader(tmp_path / "t.parquet") as reader:
        table = reader._read(0, reader._names)
        column = table.schema.get_field_index(EPOCHS)
        monkeypatch.setattr(reader, "_read", lambda *_: table.set_column(column, EPOCHS, wrong))
        with pytest.raises(Unreadable, match=r"epochs as JSON pairs of integers, seen .*indices"):
            reader.read(0)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x15\x00",
        b"\xff" * 40,
        b"\x15\x00\x15\x00\x15\x01\x00",  # a page of -1 bytes
        b"\x1c" * 40,  # structs in structs
        b"\x19\xfc" + b"\xff" * 8 + b"\x01",  # a list of 2^63 structs
        b"\x18\xff\xff\xff\xff\x7f\x00",  # a text of 32 GB
        b"\x15\x00\x15\x00\x15\x00\x00" * 70_000,  # pages without content
    ],
)
def test_what_is_no_page_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"page|structs|list|field"):
        assert Chunk("a", "INT64", 0, len(data) or 9).unpacked_bytes(BytesIO(data)) < 0


@pytest.mark.parametrize("data", [b"\x19\xfc\x80\x80\x80\x02" + b"\x00" * (1 << 22), b"\x55\x02" + b"\x15\x02" * (1 << 22)])
def test_metadata_of_many_values_are_refused(data: bytes) -> None:
    """Structs without fields, a byte each, and fields: both would take a minute for each hundred megabytes."""
    file = BytesIO(b"PAR1" + data + len(data).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(ValueError, match="fields and elements of lists: more than 3,000,000"):
        read_footer(file)


def test_the_footer_of_a_changed_file_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    for rows in (2, 5):
        write(path, rows)
        assert [group.rows for group in parquet.row_groups(path)] == [rows]


def test_right_files_of_other_writers_are_read(tmp_path: Path) -> None:
    """Compressed, with epoch caches."""
    write(tmp_path / "t.parquet", 3, epochs=repeated(CACHE, 3))
    with Reader(tmp_path / "t.parquet") as reader:
        columns = reader.read(0)
    assert columns.epochs_at.tolist() == [0, 4000, 8000, 12000]
    write(tmp_path / "t.parquet", epochs=["[[0,0],[1,7]]", ""])
    with Reader(tmp_path / "t.parquet") as reader:
        assert reader.read(0).epochs.tolist() == [0, 0, 1, 7]
    write(tmp_path / "t.parquet", epochs=["[[0,0]", ""])
    with Reader(tmp_path / "t.parquet") as reader, pytest.raises(Unreadable, match="epochs as JSON pairs"):
        reader.read(0)

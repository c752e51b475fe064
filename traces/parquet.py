"""Traces as Parquet: what millions of interleavings are stored in, and what the judge reads fastest.

Rules of this file

1. A file has one Config, in its metadata, and one column per field that an event of the file tells. Rows are events.
2. A row group holds whole traces: it can be judged alone. The column `trace` numbers the traces of a file from 0.
3. No column is nullable. UNKNOWN (-2**62) stands for what an event does not tell: decoding nulls costs nine times as much
   as decoding the number. Columns are dictionary encoded int64, uncompressed: a page is then decoded straight into the
   array the judge reads. A file from elsewhere may be nullable, narrower, compressed: it is read all the same, slower.
4. `epochs`, the one list, is JSON text, empty where it is not told: a file has few different ones, and they are parsed
   once per row group.
5. Page checksums are written and verified. Nothing a file holds can make an index leave its array: codes of events and
   positions of nodes are checked here, once.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from traces import configs
from traces.columns import INT_FIELDS, UNKNOWN, Columns, Ints
from traces.problems import Problem, shown
from traces.schema import EVENTS, FIELDS, VERSION, Config, Kind

ROW_GROUP = 262_144
"""Events per row group: a worker holds about 60 MB of columns at a time, whatever the file's size."""

METADATA = b"tidegauge"
KEYS = ("trace", "event", "node")
EPOCHS = "epochs"
EPOCHS_TYPE = pa.dictionary(pa.int32(), pa.string())
LAST_CODE = max(event.code for event in EVENTS.values())
NODE_FIELDS = tuple(name for name, field in FIELDS.items() if field.kind is Kind.NODE)


class Unreadable(ValueError):  # noqa: N818 - it says what the file is; `problem` says why
    """A file or row group that cannot be read."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


@dataclass(frozen=True)
class RowGroup:
    """Where one row group is and how much it holds; its traces are numbered from `first_trace` in their file."""

    path: str
    index: int
    rows: int
    first_trace: int
    traces: int


# ---------------------------------------------------------------------------------------------------------------------
# Writing


class Writer:
    """A Parquet file that takes chunks of traces; each chunk becomes one row group or several."""

    def __init__(self, path: str | Path, config: Config, fields: Sequence[str], row_group: int = ROW_GROUP) -> None:
        self.fields = tuple(name for name in INT_FIELDS if name in fields)
        self.with_epochs = EPOCHS in fields
        self.row_group = row_group
        self.traces = 0
        self.rows = 0
        columns = [pa.field("trace", pa.int32(), nullable=False)]
        columns += [pa.field(name, pa.int64(), nullable=False) for name in ("event", "node", *self.fields)]
        columns += [pa.field(EPOCHS, EPOCHS_TYPE, nullable=False)] if self.with_epochs else []
        head = {"v": VERSION, "unknown": UNKNOWN, "config": configs.as_json(config)}
        self.schema = pa.schema(columns, metadata={METADATA: json.dumps(head)})
        self._out = pq.ParquetWriter(
            str(path),
            self.schema,
            compression="none",
            use_dictionary=True,
            write_statistics=["trace"],  # all a reader asks of the footer, which is read once per task
            write_page_checksum=True,
            store_schema=True,
        )

    def write(self, columns: Columns) -> None:
        """Append the traces of `columns`, numbered on."""
        for first, last in _cuts(columns.trace_starts, self.row_group):
            self._write(columns, first, last)

    def _write(self, columns: Columns, first: int, last: int) -> None:
        begin, end = int(columns.trace_starts[first]), int(columns.trace_starts[last])
        lengths = np.diff(columns.trace_starts[first : last + 1])
        lengths = lengths[lengths > 0]  # a trace without events has no row to number
        if len(lengths) == 0:
            return
        number = np.repeat(np.arange(self.traces, self.traces + len(lengths), dtype=np.int32), lengths)
        arrays = [number, columns.event[begin:end], columns.node[begin:end]]
        for name in self.fields:
            told = columns.ints.get(name)
            arrays.append(np.full(end - begin, UNKNOWN, dtype=np.int64) if told is None else told[begin:end])
        table: list[Any] = [pa.array(array) for array in arrays]
        if self.with_epochs:
            table.append(_epochs_as_text(columns, begin, end))
        batch = pa.table(table, schema=self.schema)
        self._out.write_table(batch, row_group_size=end - begin)
        self.traces += len(lengths)
        self.rows += end - begin

    def close(self) -> None:
        """Write the footer."""
        self._out.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def write(columns: Columns, config: Config, path: str | Path, row_group: int = ROW_GROUP) -> None:
    """Write `columns` to a file of their own."""
    fields = (*columns.ints, EPOCHS) if columns.epochs_told.any() else tuple(columns.ints)
    with Writer(path, config, fields, row_group) as out:
        out.write(columns)


def _cuts(starts: Ints, most: int) -> Iterator[tuple[int, int]]:
    """Ranges of whole traces with at most `most` rows each; a longer trace stands alone."""
    first, traces = 0, len(starts) - 1
    while first < traces:
        last = int(np.searchsorted(starts, starts[first] + most, side="right")) - 1
        last = min(max(last, first + 1), traces)
        yield first, last
        first = last


def _epochs_as_text(columns: Columns, begin: int, end: int) -> pa.DictionaryArray:
    told = columns.epochs_told[begin:end]
    which = np.where(told, np.int32(1), np.int32(0))
    codes = {b"": 1}
    texts = ["", "[]"]
    at = 2 * columns.epochs_at[begin : end + 1]
    for row in np.flatnonzero(told & (at[1:] > at[:-1])):
        pairs = columns.epochs[at[row] : at[row + 1]]
        code = which[row] = codes.setdefault(pairs.tobytes(), len(texts))
        if code == len(texts):
            texts.append(json.dumps(pairs.reshape(-1, 2).tolist(), separators=(",", ":")))
    return pa.DictionaryArray.from_arrays(pa.array(which), pa.array(texts, pa.string()))


# ---------------------------------------------------------------------------------------------------------------------
# Reading


class Reader:
    """An open Parquet file of traces. Whatever is wrong with it raises Unreadable, here or when a row group is read."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        try:
            metadata = pq.read_metadata(self.path, memory_map=True)
            self._in = pq.ParquetFile(
                self.path,
                metadata=metadata,
                memory_map=True,
                pre_buffer=False,
                read_dictionary=[EPOCHS] if EPOCHS in metadata.schema.names else None,
                page_checksum_verification=True,
            )
        except (OSError, pa.ArrowException) as error:
            raise self._unreadable("a Parquet file", _reason(error), "check that it was written to its end") from error
        self.config = self._config()
        names = self._in.schema_arrow.names
        missing = [key for key in KEYS if key not in names]
        if missing:
            raise self._unreadable(
                f"the columns {', '.join(KEYS)}", f"no {', '.join(missing)}", "write it with tidegauge convert"
            )
        self._names = [*KEYS, *(name for name in (*INT_FIELDS, EPOCHS) if name in names)]

    def row_groups(self) -> list[RowGroup]:
        """The row groups, in order."""
        return [self._row_group(index) for index in range(self._in.metadata.num_row_groups)]

    def read(self, index: int) -> Columns:
        """The columns of row group `index`."""
        try:
            table = self._in.read_row_group(index, columns=self._names, use_threads=False)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise self._bad_group(index, "a readable row group", _reason(error)) from error
        try:
            ints = {name: _int64(table.column(name)) for name in self._names if name not in ("trace", EPOCHS)}
            number = _number(table.column("trace"))
        except (ValueError, pa.ArrowException) as error:
            raise self._bad_group(index, "columns of integers", _reason(error)) from error
        event, node = ints.pop("event"), ints.pop("node")
        self._check(index, event, node, ints)
        starts = self._starts(index, number)
        told, at, pairs = self._epochs(index, table)
        return Columns(starts, event, node, ints, told, at, pairs)

    def close(self) -> None:
        """Let go of the file."""
        self._in.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _config(self) -> Config:
        text = (self._in.schema_arrow.metadata or {}).get(METADATA)
        if text is None:
            raise self._unreadable("the metadata key 'tidegauge'", "none", "write it with tidegauge convert")
        try:
            head = json.loads(text)
            version, line = head["v"], head["config"]
            fault = configs.fault(line)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._unreadable("a version and a config in its metadata", shown(text), "write it anew") from error
        if not configs.is_int(version) or version > VERSION:
            do = "update tidegauge, or write the older version"
            raise self._unreadable(f"schema version {VERSION} or older", f"version {shown(version)}", do)
        if fault is not None:
            raise self._unreadable(*fault, "correct the config in the metadata")
        return configs.from_json(line)

    def _row_group(self, index: int) -> RowGroup:
        group = self._in.metadata.row_group(index)
        position = self._in.schema_arrow.names.index("trace")
        statistics = group.column(position).statistics
        if statistics is None or not statistics.has_min_max:
            number = _number(self._in.read_row_group(index, columns=["trace"], use_threads=False).column("trace"))
            first, last = (int(number[0]), int(number[-1])) if len(number) else (0, -1)
        else:
            first, last = statistics.min, statistics.max
        return RowGroup(self.path, index, group.num_rows, first, last - first + 1)

    def _starts(self, index: int, number: Any) -> Ints:
        if len(number) == 0:
            return np.zeros(1, dtype=np.int64)
        steps = np.diff(number)
        if len(steps) and (steps.min() < 0 or steps.max() > 1):
            raise self._bad_group(index, "traces numbered one after the other", "a gap or a step back")
        return np.concatenate(([0], np.flatnonzero(steps) + 1, [len(number)]))

    def _check(self, index: int, event: Ints, node: Ints, ints: dict[str, Ints]) -> None:
        if len(event) == 0:
            return
        if event.min() < 1 or event.max() > LAST_CODE:
            raise self._bad_group(index, f"event codes from 1 to {LAST_CODE}", f"{event.min()} to {event.max()}")
        nodes = len(self.config.nodes)
        if node.min() < 0 or node.max() > nodes:
            raise self._bad_group(index, f"nodes as positions from 0 to {nodes}", f"{node.min()} to {node.max()}")
        for name in NODE_FIELDS:
            if name in ints and (ints[name].max() > nodes or ((ints[name] < -1) & (ints[name] != UNKNOWN)).any()):
                raise self._bad_group(index, f"{name} as a position from -1 to {nodes}, or unknown", "another number")

    def _epochs(self, index: int, table: pa.Table) -> tuple[Any, Ints, Ints]:
        rows = table.num_rows
        if EPOCHS not in self._names or rows == 0:
            return np.zeros(rows, dtype=np.bool_), np.zeros(rows + 1, dtype=np.int64), np.zeros(0, dtype=np.int64)
        column = table.column(EPOCHS).combine_chunks()
        if not pa.types.is_dictionary(column.type) or not pa.types.is_string(column.type.value_type):
            raise self._bad_group(index, "epochs as text", str(column.type))
        texts = column.dictionary.to_pylist()
        try:
            caches = [_pairs(text) for text in texts]
        except (ValueError, TypeError) as error:
            raise self._bad_group(index, "epochs as JSON pairs of integers", _reason(error)) from error
        caches.append(None)  # one more, for null
        which = column.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)
        told = np.array([cache is not None for cache in caches], dtype=np.bool_).take(which)
        counts = np.array([len(cache or ()) for cache in caches], dtype=np.int64)
        at = np.zeros(rows + 1, dtype=np.int64)
        np.cumsum(counts.take(which), out=at[1:])
        flat = np.array([pair for cache in caches for pair in cache or ()], dtype=np.int64).reshape(-1, 2)
        first = np.cumsum(counts) - counts
        longer = which[counts.take(which) > 0]
        return told, at, flat[ranges(first[longer], counts[longer])].ravel()

    def _unreadable(self, expected: str, seen: str, do: str) -> Unreadable:
        return Unreadable(Problem(self.path, None, expected, seen, do))

    def _bad_group(self, index: int, expected: str, seen: str) -> Unreadable:
        rows = self._in.metadata.row_group(index).num_rows
        do = f"row group {index} is left out, with its {rows} events"
        return Unreadable(Problem(f"{self.path}#{index}", None, expected, seen, do, lost=rows))


def row_groups(path: str | Path) -> list[RowGroup]:
    """The row groups of the file at `path`."""
    with Reader(path) as reader:
        return reader.row_groups()


def read_row_group(path: str | Path, index: int) -> tuple[Columns, Config]:
    """One row group, and the config of its file."""
    with Reader(path) as reader:
        return reader.read(index), reader.config


def ranges(first: Ints, counts: Ints) -> Ints:
    """The numbers first[0], first[0]+1, ... (counts[0] of them), then those from first[1] on, and so forth."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    numbers: Ints = np.arange(total, dtype=np.int64) + np.repeat(first - (ends - counts), counts)
    return numbers


def _int64(column: pa.ChunkedArray) -> Ints:
    """A column as the judge reads it: the decoded page itself where it is int64 without nulls."""
    if column.null_count:
        column = column.cast(pa.int64()).fill_null(UNKNOWN)
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    numbers: Ints = array.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return numbers


def _number(column: pa.ChunkedArray) -> Any:
    if column.null_count:
        raise ValueError("a row without a trace number")
    return column.combine_chunks().cast(pa.int32()).to_numpy(zero_copy_only=False)


def _pairs(text: str | None) -> list[tuple[int, int]] | None:
    if not text:
        return None
    pairs = [(int(epoch), int(start)) for epoch, start in json.loads(text)]
    if any(not -1 <= number < -UNKNOWN for pair in pairs for number in pair):
        raise ValueError(f"a number outside -1 to 2^62 - 1 in {shown(text)}")
    return pairs


def _reason(error: Exception) -> str:
    return shown(str(error).splitlines()[0] if str(error) else type(error).__name__)

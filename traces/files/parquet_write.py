"""Writing traces as Parquet, wide or distinct (traces.files.parquet_layout)."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidegauge.traces import configs
from tidegauge.traces.columns import INT_FIELDS, UNKNOWN, Columns, Ints
from tidegauge.traces.files.distinct import table_as_json
from tidegauge.traces.files.parquet_layout import EPOCHS, EPOCHS_TYPE, METADATA, ROW, ROW_GROUP, TRACE
from tidegauge.traces.schema import VERSION, Config


class _File:
    """A Parquet file to which whole traces are written, numbered from 0."""

    def __init__(self, path: str | Path, config: Config, columns: Sequence[pa.Field], **metadata: Any) -> None:
        head = {"v": VERSION, "unknown": UNKNOWN, "config": configs.as_json(config), **metadata}
        fields = [pa.field(TRACE, pa.int32(), nullable=False), *columns]
        self.schema = pa.schema(fields, metadata={METADATA: json.dumps(head)})
        self.traces = 0
        self.rows = 0
        self._out = pq.ParquetWriter(
            str(path),
            self.schema,
            compression="none",
            use_dictionary=True,
            write_statistics=[TRACE],  # the reader needs no other, and reads the footer once per task
            write_page_checksum=True,
            store_schema=True,
        )

    def row_group(self, lengths: Ints, columns: Sequence[pa.Array]) -> None:
        """Write one row group: the traces of these lengths, and the columns after that of their numbers."""
        lengths = lengths[lengths > 0]  # a trace without events has no row to number
        rows = int(lengths.sum())
        if rows:
            number = np.repeat(np.arange(self.traces, self.traces + len(lengths), dtype=np.int32), lengths)
            self._out.write_table(pa.table([pa.array(number), *columns], schema=self.schema), row_group_size=rows)
            self.traces += len(lengths)
            self.rows += rows

    def close(self) -> None:
        """Write the footer."""
        self._out.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Writer(_File):
    """The wide layout, with columns for `fields`."""

    def __init__(self, path: str | Path, config: Config, fields: Sequence[str], row_group: int = ROW_GROUP) -> None:
        self.fields = tuple(name for name in INT_FIELDS if name in fields)
        self.with_epochs = EPOCHS in fields
        self.most_rows = row_group
        columns = [pa.field(name, pa.int64(), nullable=False) for name in ("event", "node", *self.fields)]
        columns += [pa.field(EPOCHS, EPOCHS_TYPE, nullable=False)] if self.with_epochs else []
        super().__init__(path, config, columns)

    def write(self, columns: Columns) -> None:
        """Append the traces of `columns`, in as many row groups as it takes."""
        for first, last in _groups(columns.trace_starts, self.most_rows):
            begin, end = int(columns.trace_starts[first]), int(columns.trace_starts[last])
            arrays: list[Any] = [pa.array(columns.event[begin:end]), pa.array(columns.node[begin:end])]
            for name in self.fields:
                reported = columns.ints.get(name)
                unknown = np.full(end - begin, UNKNOWN, dtype=np.int64) if reported is None else reported[begin:end]
                arrays.append(pa.array(unknown))
            if self.with_epochs:
                arrays.append(_epochs_as_text(columns, begin, end))
            self.row_group(np.diff(columns.trace_starts[first : last + 1]), arrays)


class DistinctWriter(_File):
    """The distinct layout, for events of `table`."""

    def __init__(self, path: str | Path, config: Config, table: Columns) -> None:
        columns = [pa.field(ROW, pa.int64(), nullable=False)]
        super().__init__(path, config, columns, events=table_as_json(table))

    def write(self, rows: Ints, starts: Ints) -> None:
        """Append one row group: trace t is rows[starts[t]:starts[t + 1]]."""
        self.row_group(np.diff(starts), [pa.array(rows)])


def write(columns: Columns, config: Config, path: str | Path, row_group: int = ROW_GROUP) -> None:
    """Write `columns` to a file."""
    fields = (*columns.ints, EPOCHS) if columns.epochs_reported.any() else tuple(columns.ints)
    with Writer(path, config, fields, row_group) as out:
        out.write(columns)


def _groups(starts: Ints, most: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of whole traces with at most `most` rows each; a longer trace is a range of its own."""
    first, traces = 0, len(starts) - 1
    while first < traces:
        last = int(np.searchsorted(starts, starts[first] + most, side="right")) - 1
        last = min(max(last, first + 1), traces)
        yield first, last
        first = last


def _epochs_as_text(columns: Columns, begin: int, end: int) -> pa.DictionaryArray:
    reported = columns.epochs_reported[begin:end]
    which = np.where(reported, np.int32(1), np.int32(0))
    codes = {b"": 1}
    texts = ["", "[]"]
    at = 2 * columns.epochs_at[begin : end + 1]
    for row in np.flatnonzero(reported & (at[1:] > at[:-1])):
        pairs = columns.epochs[at[row] : at[row + 1]]
        code = which[row] = codes.setdefault(pairs.tobytes(), len(texts))
        if code == len(texts):
            texts.append(json.dumps(pairs.reshape(-1, 2).tolist(), separators=(",", ":")))
    return pa.DictionaryArray.from_arrays(pa.array(which), pa.array(texts, pa.string()))

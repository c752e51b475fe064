"""Traces as Parquet: what millions of interleavings are stored in, and what the judge reads fastest.

A row is an event, and a row group holds whole traces. The *wide* layout has a column per field; the *distinct* one has a
*table* of distinct events in the metadata, and the one column `row` (both described below). Numbers are as in
traces.columns: nodes are positions in the config, sets of nodes masks, absent fields UNKNOWN. `trace_starts` has the row
where each trace begins, and the end. A *chunk* is a column of a row group. An epoch cache is pairs (epoch, start offset), of
which row i owns those from `epochs_at[i]` to `epochs_at[i + 1]`. Arrow is asked for no metadata of columns: `read_footer`
reads them as `GroupMetadata` (rows, chunks), and each chunk has the sizes of its pages.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidegauge.traces import schema
from tidegauge.traces.columns import (
    INT_FIELDS,
    UNKNOWN,
    Columns,
    Distinct,
    Ints,
    ranges,
    table_as_json,
    table_from_json,
    with_starts,
)
from tidegauge.traces.formats.parquet_metadata import GroupMetadata, read_footer
from tidegauge.traces.problems import Problem, shown
from tidegauge.traces.schema import EVENTS, FIELDS, VERSION, Config, FieldKind
from tidegauge.util.files import version_of_status
from tidegauge.util.input_limits import longest_line

# The layout of a file.
#
# 1. A file has one Config, in its metadata. Rows are events; a row group holds whole traces, so it can be judged alone. The
#    column `trace` numbers the traces of a file from 0.
# 2. There are two layouts. Wide: one column for each field that an event of the file has. Distinct: the metadata lists the
# distinct events (traces.columns), and the one column `row` has the row of each event in that list.
# 3. No column is nullable. UNKNOWN (-2**62) stands for an absent field: decoding nulls costs nine times as much as decoding
# numbers. Columns are dictionary encoded int64, uncompressed: a page is then decoded straight into the
# array the judge reads.
# 4. `epochs`, the only list, is JSON text, empty where it is absent: a file has few distinct ones, and each is parsed once
# per row group.


ROW_GROUP = 262_144
"""Events per row group: a worker holds about 60 MB of columns at a time, whatever the file's size."""

METADATA = b"tidegauge"
"""Key of the metadata, whose value is JSON: v, config, and in the distinct layout events."""

TRACE = "trace"
ROW = "row"
EPOCHS = "epochs"
EPOCHS_TYPE = pa.dictionary(pa.int32(), pa.string())


# Writing traces as Parquet, wide or distinct.


class _File:
    """A Parquet file to which whole traces are written, numbered from 0."""

    def __init__(self, path: str | Path, config: Config, columns: Sequence[pa.Field], **metadata: Any) -> None:
        """Begin a file whose traces share a config; `metadata` goes into its footer beside that."""
        head = {"v": VERSION, "unknown": UNKNOWN, "config": schema.as_json(config), **metadata}
        # `columns` come after that of the trace numbers, which every layout has.
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
        """Write one row group: traces of these `lengths`, in rows, with these `columns` beside that of their numbers."""
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
        """Return the file, which the block writes to."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Write the footer."""
        self.close()


class Writer(_File):
    """A file in the wide layout."""

    def __init__(self, path: str | Path, config: Config, fields: Sequence[str], row_group: int = ROW_GROUP) -> None:
        """Begin a file with columns for these fields of events, and at most `row_group` rows in a row group."""
        self.fields = tuple(name for name in INT_FIELDS if name in fields)
        self.with_epochs = EPOCHS in fields
        self.max_rows = row_group
        columns = [pa.field(name, pa.int64(), nullable=False) for name in ("event", "node", *self.fields)]
        columns += [pa.field(EPOCHS, EPOCHS_TYPE, nullable=False)] if self.with_epochs else []
        super().__init__(path, config, columns)

    def write(self, columns: Columns) -> None:
        """Append the traces of `columns`, in as many row groups as it takes."""
        for first, last in _groups(columns.trace_starts, self.max_rows):
            begin, end = int(columns.trace_starts[first]), int(columns.trace_starts[last])
            arrays: list[Any] = [pa.array(columns.event[begin:end]), pa.array(columns.node[begin:end])]
            for name in self.fields:
                column = columns.ints.get(name)
                # A field that none of these traces has is a column of the file all the same.
                values = np.full(end - begin, UNKNOWN, dtype=np.int64) if column is None else column[begin:end]
                arrays.append(pa.array(values))
            if self.with_epochs:
                arrays.append(_epochs_as_text(columns, begin, end))
            self.row_group(np.diff(columns.trace_starts[first : last + 1]), arrays)


class DistinctWriter(_File):
    """A file in the distinct layout."""

    def __init__(self, path: str | Path, config: Config, table: Columns) -> None:
        """Begin a file whose events are rows of `table`."""
        columns = [pa.field(ROW, pa.int64(), nullable=False)]
        super().__init__(path, config, columns, events=table_as_json(table))

    def write(self, rows: Ints, starts: Ints) -> None:
        """Append one row group: `rows` of the table, of which trace t has rows[starts[t]:starts[t + 1]]."""
        self.row_group(np.diff(starts), [pa.array(rows)])


def write(columns: Columns, config: Config, path: str | Path, row_group: int = ROW_GROUP) -> None:
    """Write `columns` to a file in the wide layout, with at most `row_group` rows in a row group."""
    fields = (*columns.ints, EPOCHS) if columns.epochs_reported.any() else tuple(columns.ints)
    with Writer(path, config, fields, row_group) as out:
        out.write(columns)


def _groups(starts: Ints, max_rows: int) -> Iterator[tuple[int, int]]:
    """Yield [first, last) of the traces of each row group: at most `max_rows` rows, or one trace that has more.

    `starts` are trace_starts.
    """
    first, traces = 0, len(starts) - 1
    while first < traces:
        # The last trace start that is not more than `max_rows` behind.
        last = int(np.searchsorted(starts, starts[first] + max_rows, side="right")) - 1
        # At least one trace, and no more than there are. A trace is never split: a row group must be judged alone.
        last = min(max(last, first + 1), traces)
        yield first, last
        first = last


def _epochs_as_text(columns: Columns, begin: int, end: int) -> pa.DictionaryArray:
    """Return the epoch caches of the rows [begin, end) as JSON texts, "" where none is reported; each text is there once."""
    reported = columns.epochs_reported[begin:end]
    # The number of each row's text: of the first two, none reported and an empty cache; others are added.
    which = np.where(reported, np.int32(1), np.int32(0))
    texts = ["", "[]"]
    # The number of a text by the bytes of its pairs, so that a cache becomes text only once; the empty one is 1.
    codes = {b"": 1}
    at = 2 * columns.epochs_at[begin : end + 1]  # a pair is two numbers
    # Rows with a cache that has pairs; a code that is the number of texts is a new one.
    for row in np.flatnonzero(reported & (at[1:] > at[:-1])):
        pairs = columns.epochs[at[row] : at[row + 1]]
        code = which[row] = codes.setdefault(pairs.tobytes(), len(texts))
        if code == len(texts):
            texts.append(json.dumps(pairs.reshape(-1, 2).tolist(), separators=(",", ":")))
    return pa.DictionaryArray.from_arrays(pa.array(which), pa.array(texts, pa.string()))


# Reading.
#
# 1. A file from elsewhere may be nullable, narrower, compressed, with other columns besides: it is read all the same, but
#    slower.
# 2. Page checksums are verified. No content of a file can make an index leave its array: codes of events, positions of nodes
#    and rows of the table are checked here, once.
# 3. Every fault raises Unreadable; its problem says what is wrong, where, and how many events it costs.


__all__ = [
    "ROW_GROUP",
    "DistinctWriter",
    "Reader",
    "RowGroup",
    "Unreadable",
    "Writer",
    "read_row_group",
    "row_groups",
    "write",
]

LARGEST_GROUP, MOST_RATIO = 384 << 20, 100
"""A row group may take so many bytes in memory, or so many times the size of its file: ours take five times that."""

LARGEST_TEXTS = 64 << 20
"""Bytes of the texts of a row group: those of epoch caches, each of which may be as long as a line of NDJSON."""
LARGEST_HEAD, MOST_LISTS = 64 << 20, 4_000_000
"""Bytes of the JSON in the metadata, and the lists and objects in it: an empty one of two bytes takes 64 in memory."""

KEYS = (TRACE, "event", "node")
"""Columns that a file in the wide layout must have."""
LAST_CODE = max(event.code for event in EVENTS.values())
NODE_FIELDS = tuple(name for name, field in FIELDS.items() if field.kind is FieldKind.NODE)


class Unreadable(ValueError):  # noqa: N818 - the name states what the file is; `problem` has the reason
    """A file or row group that cannot be read."""

    def __init__(self, problem: Problem) -> None:
        """Take the problem, whose text becomes the message."""
        super().__init__(str(problem))
        self.problem = problem


@dataclass(frozen=True)
class RowGroup:
    """The place and size of one row group; its traces are numbered from `first_trace` in their file."""

    path: str
    index: int
    rows: int
    first_trace: int
    traces: int


class Reader:
    """An open Parquet file of traces. Faults raise Unreadable, here or when a row group is read.

    `opened` opens a file that has no local path; it is read in few large pieces, because each is a request. Row groups are
    numbered by `index`, from 0.
    """

    def __init__(self, path: str | Path, opened: Callable[[], pa.NativeFile] | None = None) -> None:
        """Open a file, and read its footer, config and table of events. Raises Unreadable."""
        self.path = str(path)
        self._opened: Callable[[], Any] = opened if opened is not None else partial(Path(path).open, "rb")
        try:
            source = self.path if opened is None else opened()
            metadata = pq.read_metadata(source, memory_map=True)
            self._in = pq.ParquetFile(
                source,
                metadata=metadata,
                memory_map=True,
                pre_buffer=opened is not None,  # large pieces; what is mapped needs none
                # Epoch caches as numbers and a list of distinct texts, so that each text is parsed once.
                read_dictionary=[EPOCHS] if EPOCHS in metadata.schema.names else None,
                page_checksum_verification=True,
            )
        except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
            raise self._unreadable("a Parquet file", _reason(error), "check that it was written to its end") from error
        # What the footer says is compared with the schema before Arrow reads a row group by it (parquet_metadata, rule 1).
        self._groups = self._footer(metadata.num_row_groups, opened)
        self._schema = self._in.schema_arrow  # kept, because pyarrow parses it anew at each access
        self.config, events = self._head()
        # The columns to read: those that the layout needs, and the fields that the file has; others are left alone.
        names = self._schema.names
        needed = KEYS if events is None else (TRACE, ROW)
        missing = [key for key in needed if key not in names]
        if missing:
            do = "write it with tidegauge convert"
            raise self._unreadable(f"the columns {', '.join(needed)}", f"no {', '.join(missing)}", do)
        optional = (*INT_FIELDS, EPOCHS) if events is None else ()
        self._names = [*needed, *(name for name in optional if name in names)]
        # Refused, as one row of a nested column may have any number of values, which the bounds do not count.
        nested = [name for name in self._names if pa.types.is_nested(self._schema.field(name).type)]
        if nested:
            raise self._unreadable("columns of numbers or texts", f"lists or structs in {nested[0]}", "write it anew")
        # The table of the distinct layout, None in the wide one.
        self._table = None if events is None else self._events(events)

    def row_groups(self) -> list[RowGroup]:
        """Return the row groups, in order."""
        return [self._row_group(index) for index in range(len(self._groups))]

    def read(self, index: int) -> Columns:
        """Read the columns of row group `index`."""
        stored = self.read_as_stored(index)
        return stored.expanded() if isinstance(stored, Distinct) else stored

    def read_as_stored(self, index: int) -> Columns | Distinct:
        """Read row group `index` in the layout of the file: columns, or the rows of the table. Raises Unreadable."""
        table = self._read(index, self._names)
        # The columns of numbers: of fields, or `row`; and the trace number of each row.
        try:
            ints = {name: _int64(table.column(name)) for name in self._names if name not in (TRACE, EPOCHS)}
            number = _number(table.column(TRACE))
        except (ValueError, pa.ArrowException) as error:
            raise self._bad_group(index, "columns of integers", _reason(error)) from error
        starts = self._starts(index, number)
        # The distinct layout: numbers of rows, which must lie in the table.
        if self._table is not None:
            rows, size = ints[ROW], len(self._table)
            if len(rows) and int(rows.view(np.uint64).max()) >= size:  # as unsigned, a negative number is large
                raise self._bad_group(index, f"rows from 0 to {size - 1}", f"{rows.min()} to {rows.max()}")
            self._refuse_epochs(index, int(np.diff(self._table.epochs_at)[rows].sum()))
            return Distinct(with_starts(self._table, starts), rows)
        # The wide layout: the other columns of numbers are fields.
        event, node = ints.pop("event"), ints.pop("node")
        wrong = self._wrong(event, node, ints)
        if wrong is not None:
            raise self._bad_group(index, *wrong)
        return Columns(starts, event, node, ints, *self._epochs(index, table))

    def close(self) -> None:
        """Close the file."""
        self._in.close(force=True)  # also the file that `opened` returned

    def __enter__(self) -> Self:
        """Return the reader, which the block reads with."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close the file."""
        self.close()

    def _footer(self, expected: int, opened: Callable[[], Any] | None) -> tuple[GroupMetadata, ...]:
        """Return what the footer says of the row groups. Raises Unreadable, also if there are not as many as `expected`."""
        try:
            # Of a file of this machine the footer is remembered; one at a URI has no version that could be compared.
            if opened is None:
                groups = _footer_of_version(self.path, version_of_status(Path(self.path).stat()))
            else:
                with opened() as file:
                    groups = read_footer(file)
        except (OSError, ValueError) as error:
            raise self._unreadable("the metadata of row groups", _reason(error), "write it anew") from error
        if len(groups) != expected:
            raise self._unreadable(f"{expected} row groups, as Arrow reads", f"{len(groups)}", "write it anew")
        return groups

    def _head(self) -> tuple[Config, Any]:
        """Return the config in the metadata, and the JSON of the table, None in the wide layout. Raises Unreadable."""
        text = (self._schema.metadata or {}).get(METADATA)
        if text is None:
            raise self._unreadable("the metadata key 'tidegauge'", "none", "write it with tidegauge convert")
        # Before it is parsed: parsed JSON takes many times the memory of its text.
        if len(text) > LARGEST_HEAD or text.count(b"[") + text.count(b"{") > MOST_LISTS:
            expected = f"metadata of at most {LARGEST_HEAD:,} bytes, with at most {MOST_LISTS:,} lists"
            raise self._unreadable(expected, f"{len(text):,} bytes", "write the wide layout, of events and not of a table")
        try:
            head = json.loads(text)
            version, line, events = head["v"], head["config"], head.get("events")
            fault = schema.fault(line)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._unreadable("a version and a config in its metadata", shown(text), "write it anew") from error
        if not schema.is_int(version) or version > VERSION:
            do = "update tidegauge, or write the older version"
            raise self._unreadable(f"schema version {VERSION} or older", f"version {shown(version)}", do)
        if fault is not None:
            raise self._unreadable(*fault, "correct the config in the metadata")
        return schema.from_json(line), events

    def _events(self, value: Any) -> Columns:
        """Return the table of distinct events from its JSON. Raises Unreadable."""
        try:
            table = table_from_json(value)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise self._unreadable("a table of events in its metadata", _reason(error), "write it anew") from error
        wrong = self._wrong(table.event, table.node, table.ints)
        if wrong is not None:
            raise self._unreadable(*wrong, "write it anew")
        return table

    def _row_group(self, index: int) -> RowGroup:
        """Return the place and size of a row group, from the footer where that has the least and largest trace number.

        The numbers of its traces ascend without a gap, which is checked when the group is read.
        """
        group = self._group(index)
        trace = group.chunk(TRACE)
        # The footer of another writer may lack the least and largest number: then the column itself is read.
        if trace is None or trace.least is None or trace.largest is None:
            number = _number(self._read(index, [TRACE]).column(TRACE))
            first, last = (int(number[0]), int(number[-1])) if len(number) else (0, -1)  # no rows: no traces
        else:
            first, last = trace.least, trace.largest
        return RowGroup(self.path, index, group.rows, first, last - first + 1)

    def _read(self, index: int, names: Sequence[str]) -> pa.Table:
        """Read columns of a row group. Raises Unreadable for one that is damaged or does not fit into memory."""
        group = self._group(index)
        size, bound = 8 * group.rows * len(names), self._max_bytes  # a number takes eight bytes
        # By the number of rows, and below by the pages: either may be large where the other is small.
        if size > bound:
            raise self._bad_group(index, f"a row group of at most {bound:,} bytes in memory", f"one of {size:,}")
        try:
            self._refuse_packed(index, group, names)
            return self._in.read_row_group(index, columns=names, use_threads=False)
        except Unreadable:
            raise
        except (OSError, ValueError, MemoryError, pa.ArrowException) as error:
            raise self._bad_group(index, "a readable row group", _reason(error)) from error

    @property
    def _max_bytes(self) -> int:
        """The bytes that a row group may take in memory; the size of a file at a URI is not looked at."""
        return max(LARGEST_GROUP, MOST_RATIO * Path(self.path).stat().st_size if "://" not in self.path else 0)

    def _refuse_packed(self, index: int, group: GroupMetadata, names: Sequence[str]) -> None:
        """Raise Unreadable if the pages of one of these columns unpack to more bytes than a row group may take."""
        with self._opened() as file:
            for chunk in group.chunks:
                if chunk.path not in names:
                    continue
                # Of pages that are said to be uncompressed, too: what the metadata say of a codec need not be true.
                size, bound = chunk.unpacked_bytes(file), self._max_bytes
                # The number of rows says nothing of the length of texts; what is stored unpacked may be as long as it is.
                if chunk.path == EPOCHS:
                    bound = max(LARGEST_TEXTS, chunk.packed_bytes)
                if size > bound:
                    expected = f"pages of {chunk.path} that unpack to at most {bound:,} bytes"
                    raise self._bad_group(index, expected, f"{size:,}")

    def _group(self, index: int) -> GroupMetadata:
        """Return the metadata of a row group. Raises Unreadable if its columns are not those of the schema."""
        group, schema = self._groups[index], self._in.metadata.schema
        if len(group.chunks) != len(schema):
            raise self._bad_group(index, f"{len(schema)} columns, as in the schema", f"{len(group.chunks)}")
        # If a column has another type here than in the schema, Arrow would abort the process.
        for position, chunk in enumerate(group.chunks):
            column = schema.column(position)
            if column.physical_type != chunk.physical_type:
                expected = f"column {column.name} of type {column.physical_type}, as in the schema"
                raise self._bad_group(index, expected, chunk.physical_type)
        return group

    def _starts(self, index: int, number: Any) -> Ints:
        """Return the trace_starts of a row group, from the trace `number` of each row. Raises Unreadable."""
        if len(number) == 0:
            return np.zeros(1, dtype=np.int64)
        changes = np.flatnonzero(number[1:] != number[:-1])
        # A trace in two pieces would be judged as two traces.
        if (number[changes + 1] - number[changes] != 1).any():
            raise self._bad_group(index, "traces numbered one after the other", "a gap or a step back")
        return np.concatenate(([0], changes + 1, [len(number)]))

    def _wrong(self, event: Ints, node: Ints, ints: Mapping[str, Ints]) -> tuple[str, str] | None:
        """Return what the numbers of some events should have been, and what was seen; None if all are right."""
        # The judge uses these numbers as indexes of its arrays, in compiled code that checks none.
        if len(event) == 0:
            return None
        # Codes begin at 1. A node may be the controller, whose position is after the last broker's; a field may not.
        if event.min() < 1 or event.max() > LAST_CODE:
            return f"event codes from 1 to {LAST_CODE}", f"{event.min()} to {event.max()}"
        nodes = len(self.config.nodes)
        if node.min() < 0 or node.max() > nodes:
            return f"nodes as positions from 0 to {nodes}", f"{node.min()} to {node.max()}"
        for name in NODE_FIELDS:
            if name in ints and (ints[name].max() >= nodes or ((ints[name] < -1) & (ints[name] != UNKNOWN)).any()):
                return f"{name} as a position from -1 to {nodes - 1}, or unknown", "another number"
        return None

    def _epochs(self, index: int, table: pa.Table) -> tuple[Any, Ints, Ints]:
        """Return `epochs_reported`, `epochs_at` and `epochs` of Columns for a row group; equal caches are parsed once."""
        rows = table.num_rows
        if EPOCHS not in self._names or rows == 0:
            return np.zeros(rows, dtype=np.bool_), np.zeros(rows + 1, dtype=np.int64), np.zeros(0, dtype=np.int64)
        column = table.column(EPOCHS).combine_chunks()
        if not pa.types.is_dictionary(column.type) or not pa.types.is_string(column.type.value_type):
            raise self._bad_group(index, "epochs as text", str(column.type))
        try:
            # Arrow does not check the indices into a dictionary that a file has.
            column.validate(full=True)
            caches = [_pairs(text) for text in _texts(column.dictionary)]
        except (ValueError, TypeError, RecursionError) as error:  # of JSON, of its shape, of its depth
            raise self._bad_group(index, "epochs as JSON pairs of integers", _reason(error)) from error
        # The number of each row's cache; the last one, which is none, is that of rows with null.
        caches.append(None)
        which = column.indices.fill_null(len(caches) - 1).to_numpy(zero_copy_only=False)
        # By row, from what is known of each distinct cache: whether it is reported, and how many pairs it has.
        reported = np.array([cache is not None for cache in caches], dtype=np.bool_).take(which)
        counts = np.array([0 if cache is None else len(cache) for cache in caches], dtype=np.int64)
        at = np.zeros(rows + 1, dtype=np.int64)
        np.cumsum(counts.take(which), out=at[1:])
        # The pairs of the distinct caches, one cache after the other, and where each begins.
        flat = np.concatenate([_NO_PAIRS, *(cache for cache in caches if cache is not None)])
        first = np.cumsum(counts) - counts
        # Only rows that have pairs: most have none.
        with_pairs = which[counts.take(which) > 0]
        self._refuse_epochs(index, int(at[-1]))
        return reported, at, flat[ranges(first[with_pairs], counts[with_pairs])].ravel()

    def _refuse_epochs(self, index: int, pairs: int) -> None:
        """Raise Unreadable if so many pairs take too much memory: a cache is repeated for each row that has it.

        A pair is two numbers of eight bytes.
        """
        if 16 * pairs > self._max_bytes:
            raise self._bad_group(index, f"epoch caches of at most {self._max_bytes:,} bytes in memory", f"{16 * pairs:,}")

    def _unreadable(self, expected: str, seen: str, do: str) -> Unreadable:
        """Return the error of the file as a whole."""
        return Unreadable(Problem(self.path, None, expected, seen, do))

    def _bad_group(self, index: int, expected: str, seen: str) -> Unreadable:
        """Return the error of one row group, whose events are lost."""
        rows = self._groups[index].rows
        do = f"row group {index} is left out, with its {rows} events"
        return Unreadable(Problem(f"{self.path}#{index}", None, expected, seen, do, lost=rows))


@lru_cache(maxsize=2)
def _footer_of_version(path: str, version: tuple[int, ...]) -> tuple[GroupMetadata, ...]:
    """Read the footer of a file, once for each version of it (size and times). Raises ValueError if it has changed
    meanwhile.

    A worker opens a file for each of its tasks, and a large footer takes seconds.
    """
    with Path(path).open("rb") as file:
        if version_of_status(os.fstat(file.fileno())) != version:
            raise ValueError("a file that was changed meanwhile")
        return read_footer(file)


def row_groups(path: str | Path) -> list[RowGroup]:
    """Return the row groups of the file at `path`."""
    with Reader(path) as reader:
        return reader.row_groups()


def read_row_group(path: str | Path, index: int) -> tuple[Columns, Config]:
    """Read one row group, and the config of its file."""
    with Reader(path) as reader:
        return reader.read(index), reader.config


def _int64(column: pa.ChunkedArray) -> Ints:
    """Return a column as the judge reads it: the decoded page itself if that is int64 without nulls. Raises for texts."""
    # A file of another writer may have null where ours has UNKNOWN.
    if column.null_count:
        column = column.cast(pa.int64()).fill_null(UNKNOWN)
    # One piece, as a rule, is not copied.
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    numbers: Ints = array.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return numbers


def _number(column: pa.ChunkedArray) -> Any:
    """Return the trace number of each row. Raises ValueError where one is null."""
    if column.null_count:
        raise ValueError("a row without a trace number")
    return column.combine_chunks().cast(pa.int32()).to_numpy(zero_copy_only=False)


_NO_PAIRS: Ints = np.zeros((0, 2), dtype=np.int64)


def _texts(dictionary: Any) -> Iterator[str | None]:
    """Yield the texts of an array of Arrow one by one. Raises ValueError for one that is longer than a line may be."""
    lengths = pc.binary_length(dictionary)
    if (pc.max(lengths).as_py() or 0) > longest_line():
        raise ValueError(f"a text of more than {longest_line():,} bytes")
    yield from (text.as_py() for text in dictionary)


def _pairs(text: str | None) -> Ints | None:
    """Parse the JSON of an epoch cache into rows of epoch and start offset; None for "" and null.

    Raises ValueError, TypeError or RecursionError for any other text.
    """
    if not text:
        return None
    pairs = [(epoch, start) for epoch, start in json.loads(text)]
    # JSON has fractions, infinities and true: none of them is a number here.
    if any(type(number) is not int for pair in pairs for number in pair):
        raise ValueError(f"what is no integer in {shown(text)}")
    if any(not -1 <= number < -UNKNOWN for pair in pairs for number in pair):
        raise ValueError(f"a number outside -1 to 2^62 - 1 in {shown(text)}")
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _reason(error: Exception) -> str:
    """Return the first line of an error's message, or its class where it has none, as a problem quotes it."""
    return shown(str(error).splitlines()[0] if str(error) else type(error).__name__)

"""Files of other hands through `tidegauge check`: lines of JSON and wide Parquet, and where the time goes.

The same runs of the reference in each. Lines carry a time, as they do elsewhere, so none of them recurs. Foreign Parquet is
what a library writes unless it is told otherwise: nullable columns, null for what is not known, compressed. Ours has none of
that; docs/traces.md says why.
"""

import statistics
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.baselines import on_one_core
from benchmarks.measure import Report, parser
from benchmarks.profiling import Function, spent
from benchmarks.runs import repeated, runs_of
from tidegauge.conformance.checking.check import CheckOptions, check
from tidegauge.conformance.checking.check import Report as Judged
from tidegauge.conformance.checking.sharded import check_in_parallel
from tidegauge.conformance.engine.compiled import compiled
from tidegauge.traces.columns import UNKNOWN, to_columns
from tidegauge.traces.formats import ndjson, parquet
from tidegauge.traces.schema import Trace

BROKERS, LENGTH = 3, 100
LARGER = 8
"""How many times as long the file is that two processes share: what they take to begin is a second."""
JUDGING = Function("judging/judge.py", "judge")
LINES = {
    "parsing": Function("~", "<method 'decode_lines' of 'msgspec.json.Decoder' objects>"),
    "reading": Function("files/ndjson_columns.py", "read_at_once"),
    "judging": JUDGING,
}
ROWS = {
    "parsing": Function("parquet/core.py", "read_row_group"),
    "reading": Function("files/parquet.py", "read_as_stored"),
    "judging": JUDGING,
}
"""Stage -> the function it is in, msgspec's or Arrow's; reading is parsing and what follows until there are columns."""


def as_foreign(ours: Path, path: Path) -> None:
    """The same file with null for what is not known, as a library writes it."""
    with pq.ParquetFile(ours) as source:
        head = source.schema_arrow
        types = [pa.string() if pa.types.is_dictionary(field.type) else field.type for field in head]
        schema = pa.schema(list(zip(head.names, types, strict=True)), metadata=head.metadata)
        with pq.ParquetWriter(path, schema) as out:
            for group in range(source.num_row_groups):
                table = source.read_row_group(group)
                columns = [_with_nulls(column.cast(to)) for column, to in zip(table.columns, types, strict=True)]
                out.write_table(pa.table(columns, schema=schema), row_group_size=table.num_rows)


def _with_nulls(column: pa.ChunkedArray) -> pa.ChunkedArray:
    unknown = "" if pa.types.is_string(column.type) else UNKNOWN
    return pc.if_else(pc.equal(column, unknown), pa.scalar(None, column.type), column)


def timed(trace: Trace, time: int) -> Trace:
    """The trace once more, at another time."""
    events = tuple(replace(event, time=f"{time}.{at:04}") for at, event in enumerate(trace.events))
    return replace(trace, name=f"{trace.name}-{time}", events=events)


def conforms(found: Judged, path: Path, events: int) -> None:
    """A file that does not would be another measurement."""
    if found.exit_code or found.events != events:
        raise SystemExit(f"{path}: expected {events:,} events that conform, seen {found.events:,}: {found.verdict}")


def checked(report: Report, kind: str, path: Path, events: int, stages: Mapping[str, Function], repetitions: int) -> None:
    """The whole of `tidegauge check`, and its stages."""

    def run() -> None:
        conforms(check([path]), path, events)

    run()
    report.time(kind, events, "events", run, repetitions)
    taken = [spent(run, stages) for _ in range(repetitions)]
    for stage, seconds in (
        ("parsing", [one["parsing"] for one in taken]),
        ("making columns", [one["reading"] - one["parsing"] for one in taken]),
        ("judging", [one["judging"] for one in taken]),
        ("the rest", [one[""] - one["reading"] - one["judging"] for one in taken]),
    ):
        report.add(f"{kind}: {stage}", events, "events", seconds)
    whole, size = statistics.median(one[""] for one in taken), path.stat().st_size / events
    report.notes.append(f"{kind}: {size:,.0f} bytes per event; its stages are of {whole:.2f} s under the profiler")


def side_by_side(report: Report, path: Path, events: int, repetitions: int) -> None:
    """A large file, by one process and by two."""

    def by_one() -> None:
        conforms(check([path]), path, events)

    def by_two() -> None:
        conforms(check_in_parallel([path], CheckOptions(), 2), path, events)

    one = report.time("large NDJSON", events, "events", by_one, repetitions)
    two = report.time("large NDJSON, two processes", events, "events", by_two, repetitions)
    report.ratio("two processes, times one: large NDJSON", two.rate / one.rate, 1.5)


def main() -> int:
    options = parser(__doc__ or "")
    options.add_argument("--times", type=int, default=100, help="how often the runs are repeated (default 100)")
    options.add_argument("--repetitions", type=int, default=3)
    arguments = options.parse_args()
    report = Report("Files of other hands, through tidegauge check")
    traces, config = runs_of(BROKERS, LENGTH, arguments.seed)
    columns = repeated(to_columns(traces, config), arguments.times)
    compiled()
    with tempfile.TemporaryDirectory() as scratch:
        lines, ours, foreign = (Path(scratch) / name for name in ("runs.ndjson", "ours.parquet", "foreign.parquet"))
        often = LARGER * arguments.times
        ndjson.write((timed(trace, time) for time in range(often) for trace in traces), lines)
        side_by_side(report, lines, LARGER * len(columns), arguments.repetitions)
        on_one_core(report)
        ndjson.write((timed(trace, time) for time in range(arguments.times) for trace in traces), lines)
        parquet.write(columns, config, ours)
        as_foreign(ours, foreign)
        for kind, path, stages in (
            ("NDJSON", lines, LINES),
            ("foreign Parquet", foreign, ROWS),
            ("our Parquet", ours, ROWS),
        ):
            checked(report, kind, path, len(columns), stages, arguments.repetitions)
    report.notes.append(
        f"{len(traces)} runs of {LENGTH} steps, {arguments.times} times: they compress better than others do"
    )
    return report.finish(arguments)


if __name__ == "__main__":
    sys.exit(main())

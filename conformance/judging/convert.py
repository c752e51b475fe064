"""Kafka broker logs, NDJSON and Parquet into NDJSON or Parquet.

NDJSON keeps everything a trace says. Parquet holds the columns that the judge reads: names, times and the places where
events were read stay behind, and one file has one config.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tidegauge.conformance.judging.check import Found, InputBatch, read
from tidegauge.conformance.judging.events import event_at
from tidegauge.impl.errors import UsageError
from tidegauge.traces.files import ndjson, parquet
from tidegauge.traces.problems import Problem
from tidegauge.traces.schema import Trace


@dataclass(frozen=True)
class Converted:
    """What was written, and what was wrong with the source."""

    traces: int
    events: int
    problems: tuple[Problem, ...]


def convert(source: Path, target: Path, layout: str | None = None) -> Converted:
    """Read `source` (broker logs in `layout`, if it is given), write `target`.

    Raises UsageError when Parquet cannot hold what the source says.
    """
    found = Found()
    batches = list(read(source, found, layout)[1])
    if target.suffix == ".parquet":
        if len(batches) > 1 and any(batch.config != batches[0].config for batch in batches):
            raise UsageError(
                f"convert: expected traces with one config for {target}, seen {len(batches)}; "
                "write NDJSON, or convert them apart"
            )
        if batches:
            fields = {name for batch in batches for name in batch.columns.ints} | {"epochs"}
            with parquet.Writer(target, batches[0].config, tuple(fields)) as out:
                for batch in batches:
                    out.write(batch.columns)
    else:
        ndjson.write((trace for batch in batches for trace in _traces(batch)), target)
    traces = sum(len(batch.columns.trace_starts) - 1 for batch in batches)
    return Converted(traces, sum(len(batch.columns) for batch in batches), tuple(found.problems))


def _traces(batch: InputBatch) -> Iterator[Trace]:
    """The traces of a batch; those of Parquet are read back from the columns."""
    if batch.traces is not None:
        yield from batch.traces
        return
    starts = batch.columns.trace_starts.tolist()
    for number, (begin, end) in enumerate(pairwise(starts)):
        events = tuple(event_at(batch.columns, row, batch.config) for row in range(begin, end))
        yield Trace(f"{batch.source}, trace {number}", "", batch.config, events)

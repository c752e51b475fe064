"""Kafka broker logs, NDJSON and Parquet into NDJSON or Parquet.

NDJSON keeps everything a trace says. Parquet holds the columns that the judge reads: names, times and the places where
events were read stay behind, and one file has one config.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tidegauge.conformance.judging.events import event_at
from tidegauge.conformance.judging.inputs import InputBatch, opened, read
from tidegauge.impl.errors import UsageError
from tidegauge.traces.files import ndjson, parquet
from tidegauge.traces.files.replacing import replacing, writable
from tidegauge.traces.problems import Problem
from tidegauge.traces.schema import Trace


@dataclass(frozen=True)
class Converted:
    """What was written, and what was wrong with the source."""

    traces: int
    events: int
    problems: tuple[Problem, ...]


def convert(path: str | Path, target: Path, layout: str | None = None) -> Converted:
    """Read `path` (broker logs in `layout`, if it is given; `-` is standard input), write `target` if there is an event.

    Raises UsageError when Parquet cannot hold what the source says, or the target cannot be written.
    """
    writable(target)
    problems: list[Problem] = []
    batches: list[InputBatch] = []
    with opened(path) as source:
        for _, _, of_part, found in read(source, layout):
            batches += of_part
            problems += found.problems
        events = sum(len(batch.columns) for batch in batches)
        if events:
            _write(batches, target)
    traces = sum(len(batch.columns.trace_starts) - 1 for batch in batches)
    return Converted(traces, events, tuple(problems))


def _write(batches: Sequence[InputBatch], target: Path) -> None:
    if target.suffix != ".parquet":
        with replacing(target) as file:
            ndjson.write((trace for batch in batches for trace in _traces(batch)), file)
        return
    configs = {repr(batch.config) for batch in batches}
    if len(configs) > 1:
        raise UsageError(
            f"convert: expected traces with one config for {target}, seen {len(configs)}; "
            "write NDJSON, or convert them apart"
        )
    fields = {name for batch in batches for name in batch.columns.ints} | {"epochs"}
    with replacing(target) as file, parquet.Writer(file, batches[0].config, tuple(fields)) as out:
        for batch in batches:
            out.write(batch.columns)


def _traces(batch: InputBatch) -> Iterator[Trace]:
    """The traces of a batch; those of Parquet are read back from the columns."""
    if batch.traces is not None:
        yield from batch.traces
        return
    starts = batch.columns.trace_starts.tolist()
    for number, (begin, end) in enumerate(pairwise(starts)):
        events = tuple(event_at(batch.columns, row, batch.config) for row in range(begin, end))
        yield Trace(f"{batch.source}, trace {number}", "", batch.config, events)

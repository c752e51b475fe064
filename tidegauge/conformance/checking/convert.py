"""Convert Kafka broker logs, NDJSON or Parquet into NDJSON, Parquet or ITF (the trace format of Apalache and Quint).

Rules of this file

1. The verdict on the output is the one on the source: what the source lacks, and where, is written with it.
2. NDJSON keeps everything in a trace except numbers that the reader of logs gave itself: they prove nothing.
3. Parquet holds the columns that the judge reads, without names, topic ids, times and the places where events were read; a
   file has one config, and no line of its traces is missing.
4. ITF has one trace to a file: the second one of `name.itf.json` is `name.2.itf.json`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from tidegauge.conformance.checking.inputs import InputBatch, open_input, read_input
from tidegauge.conformance.checking.verdicts import LogGap, with_gaps
from tidegauge.conformance.explain.replay import event_at
from tidegauge.traces.formats import itf, ndjson, parquet
from tidegauge.traces.problems import Problem
from tidegauge.traces.schema import MISSING, TOPIC_ID, Config, Trace
from tidegauge.util.errors import UsageError
from tidegauge.util.files import refuse_unnamed, replacing, writable


@dataclass(frozen=True)
class Converted:
    """The size of what was written, and what was wrong with the source."""

    traces: int
    events: int
    problems: tuple[Problem, ...]


def convert(path: str | Path, target: str | Path, layout: str | None = None) -> Converted:
    """Read `path` (`-` is standard input) and write `target` if there is an event.

    `layout` is the log4j2 pattern of broker logs, None to find it.

    Raises UsageError when Parquet cannot hold what the source says, or the target cannot be written.
    """
    writable(target)
    # Of a large file the names of traces, which NDJSON and ITF keep, come only with its lines.
    batches, problems = read_whole(path, layout, by_line=Path(target).suffix != ".parquet")
    events = sum(len(batch.columns) for batch in batches)
    if events:
        _write(batches, Path(target))
    traces = sum(len(batch.columns.trace_starts) - 1 for batch in batches)
    return Converted(traces, events, tuple(problems))


def read_whole(path: str | Path, layout: str | None = None, by_line: bool = False) -> tuple[list[InputBatch], list[Problem]]:
    """Return the batches that a path holds, and what was wrong with it. The batches' configs say what the source lacks.

    With `by_line` large NDJSON is read line by line, too: its columns have no names of traces and no places of events.
    """
    problems: list[Problem] = []
    batches: list[InputBatch] = []
    refuse_unnamed(path)
    with open_input(path) as source:
        for _, _, part_batches, findings in read_input(source, layout):
            # Read to the end first: the findings are complete only then.
            in_part = list(part_batches)
            if by_line:
                # `InputBatch.by_line` is there where NDJSON was read as columns.
                in_part = [b for batch in in_part for b in ([batch] if batch.by_line is None else batch.by_line())]
            batches += [replace(batch, config=_lacking(batch.config, findings.missing)) for batch in in_part]
            problems += findings.problems
    return batches, problems


def _write(batches: Sequence[InputBatch], target: Path) -> None:
    """Write batches to `target`: ITF, Parquet or, for any other suffix, NDJSON.

    Raises UsageError if Parquet cannot hold them.
    """
    # A file of ITF holds one trace (rule 4).
    if target.name.endswith(itf.SUFFIX):
        for number, trace in enumerate((trace for batch in batches for trace in traces_of(batch)), 1):
            with replacing(_part(target, number)) as file:
                itf.write(trace, file)
        return
    if target.suffix != ".parquet":
        with replacing(target) as file:
            ndjson.write((trace for batch in batches for trace in traces_of(batch)), file)
        return
    if any(_gaps(batch) or batch.columns.missing.any() for batch in batches):
        raise UsageError(
            f"convert: {target}: Parquet holds no gaps: expected traces without missing lines, seen gaps; write NDJSON"
        )
    configs = {repr(batch.config) for batch in batches}
    if len(configs) > 1:
        raise UsageError(
            f"convert: {target}: expected traces with one config, which is all that Parquet holds, seen {len(configs)}; "
            "write NDJSON, or convert them one by one"
        )
    # The schema of a Parquet file is fixed before its first row group: a column for each field that any batch has.
    fields = {name for batch in batches for name in batch.columns.ints} | {"epochs"}
    with replacing(target) as file, parquet.Writer(file, batches[0].config, tuple(fields)) as out:
        for batch in batches:
            out.write(batch.columns)


def _part(target: Path, number: int) -> Path:
    """Return the ITF file of trace `number`, counted from 1: the target, or the target with the number in its name."""
    return target if number == 1 else target.with_name(f"{target.name.removesuffix(itf.SUFFIX)}.{number}{itf.SUFFIX}")


def traces_of(batch: InputBatch) -> Iterator[Trace]:
    """Yield the traces of a batch; those of Parquet are read back from its columns."""
    if batch.traces is not None:
        for trace in batch.traces:
            # The config of a batch has what its traces have in common: all but their topic ids.
            of_topic = {key: value for key, value in trace.config.extra.items() if key == TOPIC_ID}
            extra = {**batch.config.extra, **of_topic}
            config = with_gaps(replace(batch.config, extra=extra), _gaps(batch))
            # Numbers that the reader of logs gave itself are left out (rule 2).
            events = (replace(event, seq=None) for event in trace.events) if batch.counted else trace.events
            yield replace(trace, config=config, events=tuple(events))
        return
    starts = batch.columns.trace_starts.tolist()
    for number, (begin, end) in enumerate(pairwise(starts)):
        # Parquet has no names of traces: they are called by their place in it.
        events = tuple(event_at(batch.columns, row, batch.config) for row in range(begin, end))
        yield Trace(f"{batch.source}, trace {number}", "", batch.config, events)


def _lacking(config: Config, missing: Sequence[str]) -> Config:
    """Return the config with `missing`, what its source lacks, under MISSING."""
    return replace(config, extra={**config.extra, MISSING: list(missing)}) if missing else config


def _gaps(batch: InputBatch) -> Sequence[LogGap]:
    """Return the gaps in a batch; after a line that could not be read, the rest of its trace is one gap.

    A trace with gaps, or with a lost line, is a batch of its own (inputs.trace_batches). `batch.damaged` is the row before
    which that line was lost, None if none was.
    """
    if batch.damaged is None:
        return batch.doubts
    return (*batch.doubts, LogGap(batch.damaged - 1, len(batch.columns), "a line that could not be read"))

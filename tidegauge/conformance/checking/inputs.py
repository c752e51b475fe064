"""Read what a path holds into batches of traces that the judge can take.

A path holds parts, one for each cluster or file of traces. A part yields its batches as they are read; its findings
(problems, what is missing) are complete after the last one. A batch is some traces with one config: as columns, a row per
event (traces.columns), and, where they were read as such, as events.

Rules of this file

1. Content decides what a file is, not its name: one that begins like Parquet is Parquet, one whose lines are a broker's is a
   log, nearly everything else is NDJSON. A directory is a set of broker logs, or of files of traces by their endings.
2. A large NDJSON file is read as columns; `by_line` reads it again line by line, to give the line of a failure.
3. Bad input never stops the rest: it is set aside and reported with file and line.
"""

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from tidegauge.conformance.checking.verdicts import LogGap, log_gaps
from tidegauge.traces import kafka_logs
from tidegauge.traces.columns import Columns, Distinct, table_of, to_columns
from tidegauge.traces.formats import ndjson
from tidegauge.traces.formats.ndjson_columns import Span, read_at_once, read_span
from tidegauge.traces.kafka_logs.discovery.files import logs_in
from tidegauge.traces.kafka_logs.discovery.identify import LOGS as KINDS_OF_LOGS
from tidegauge.traces.kafka_logs.discovery.identify import identify
from tidegauge.traces.kafka_logs.discovery.selection import Selection
from tidegauge.traces.kafka_logs.parsing.lines import Gap
from tidegauge.traces.problems import Problem
from tidegauge.traces.schema import MISSING, TOPIC_ID, Config, Trace
from tidegauge.util.errors import UsageError
from tidegauge.util.files import elsewhere
from tidegauge.util.input_limits import has_long_line

LOGS = "broker logs"
HEAD = 65_536
"""Bytes at the beginning of a file by which it is taken for NDJSON or not."""
AT_ONCE_FROM = 4_000_000
"""Bytes from which NDJSON is read as columns; a smaller file takes less than a second line by line."""


@dataclass(frozen=True)
class InputBatch:
    """Traces with one config as columns.

    `stored` has each event as a row, or as a row of a table of distinct events. `traces` are the events they were made from,
    None for Parquet and for NDJSON that was read as columns. Of the latter `numbered` events have a sequence number that
    follows, and `by_line` reads the traces again line by line. `damaged` is the row before which the one trace of the batch
    lost a line; `doubts` are the gaps in its logs. `counted`: the reader has numbered the events itself, so that their
    numbers prove nothing.
    """

    source: str
    stored: Columns | Distinct
    config: Config
    traces: tuple[Trace, ...] | None = None
    numbered: int = 0
    by_line: Callable[[], Iterator["InputBatch"]] | None = field(default=None, repr=False, compare=False)
    damaged: int | None = None
    doubts: tuple[LogGap, ...] = ()
    counted: bool = False

    @cached_property
    def columns(self) -> Columns:
        """One row per event."""
        return self.stored.expanded() if isinstance(self.stored, Distinct) else self.stored

    def place(self, row: int) -> str:
        """Return where the event of a row was read, or which of its trace's events it is."""
        starts = table_of(self.stored)[0].trace_starts
        number = int(starts.searchsorted(row, side="right")) - 1  # of its trace
        at = row - int(starts[number])
        if self.traces is None:
            return f"{self.source}, trace {number + 1:,}, event {at + 1:,}"
        trace = self.traces[number]
        return trace.events[at].at or f"{trace.name or self.source}, event {at + 1:,}"


@dataclass
class InputFindings:
    """Everything about a path but its batches; complete once all batches have been read.

    `problems` are what is wrong with it, `notes` how it was read; `covered`, `missing`, `checks` and `gaps` as in
    `CheckedInput`.
    """

    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    covered: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    checks: Mapping[tuple[str, bool], int] = field(default_factory=dict)
    gaps: tuple[tuple[str, Gap], ...] = ()


class InputSource(NamedTuple):
    """A file or directory, and what reports call it."""

    path: Path
    name: str


TRACES = (".parquet", ".ndjson", ".ndjson.gz")
"""How files of traces end in a directory of them."""
STDIN = "-"
"""The path that is standard input."""


@contextmanager
def open_input(path: str | PathLike[str]) -> Iterator[InputSource]:
    """Provide the source that a path of the command line names. Raises UsageError where there is none."""
    is_stdin = str(path) == STDIN
    if not is_stdin and not Path(path).is_fifo():
        yield InputSource(Path(path), str(path))
        return
    if is_stdin and sys.stdin is None:
        raise UsageError("-: expected standard input, seen that it is closed; name a file, or give the input by a pipe")
    # A pipe is copied into a file: its kind is known only after its beginning was read, and it may be read twice.
    with tempfile.TemporaryDirectory(prefix="tidegauge-stdin-") as folder, ExitStack() as stack:
        copied = Path(folder) / ("stdin" if is_stdin else Path(path).name)
        source = sys.stdin.buffer if is_stdin else stack.enter_context(Path(path).open("rb"))
        with copied.open("wb") as out:
            shutil.copyfileobj(source, out)
        yield InputSource(copied, copied.name)


class InputPart(NamedTuple):
    """What a path holds of one cluster, or a file of traces in it. `name` and `kind` are for reports."""

    name: str
    kind: str
    batches: Iterator[InputBatch]
    findings: InputFindings


class NotSeparableError(Exception):
    """A span of an NDJSON file cannot be judged without the rest of the file."""


def is_ndjson(path: Path) -> bool:
    """Return whether a path is an NDJSON file: a file that is neither Parquet nor a broker log."""
    return path.is_file() and not is_parquet(path) and not kafka_logs.is_log(path) and kafka_logs.dump_kind(path) is None


def read_input(
    source: InputSource, layout: str | None = None, selection: Selection | None = None, span: Span | None = None
) -> Iterator[InputPart]:
    """Yield what a path holds: a part for each file of traces in a directory, or for each cluster of logs, or one.

    `layout` is the pattern that broker logs are written in, `selection` the part of them that is read, `span` the part of an
    NDJSON file. Raises NotSeparableError, at any time, if the span cannot be judged without the rest. Input of another kind
    is a part without batches, and a problem.
    """
    path, findings = source.path, InputFindings()
    if trace_files := _traces_in(path):
        for file in trace_files:
            yield from read_input(InputSource(file, f"{source.name}/{file.name}"), layout, selection)
    elif path.is_dir():
        yield from _logs(source, layout, selection)
    elif selection is None and is_parquet(path):
        yield InputPart(source.name, "Parquet", _lacking(_parquet(source, findings.problems), findings), findings)
    elif path.is_file() and (layout is not None or kafka_logs.is_log(path) or kafka_logs.dump_kind(path) is not None):
        yield from _logs(source, layout, selection)
    # Topics and times are read off log lines; a selection that was silently ignored would judge too much.
    elif selection is not None and path.exists():
        raise UsageError(f"{source.name}: expected broker logs to select topics or times from, seen another kind of input")
    # From here on: input that cannot be judged, each kind with what to do instead; and last NDJSON, or nothing at the path.
    elif uri := elsewhere(source.name):
        do = "add --spark to have it read, or copy it"
        findings.problems.append(Problem(uri, None, "a path of this machine", "a URI", do))
        yield InputPart(uri, "URI", iter(()), findings)
    elif path.is_file() and identify(path, source.name).kind in KINDS_OF_LOGS:
        do = "name it with --layout to have the file judged; the story reads its lines without one"
        findings.problems.append(Problem(source.name, None, "a layout of log lines", "lines of a broker in none", do))
        yield InputPart(source.name, LOGS, iter(()), findings)
    elif path.is_file() and not _may_be_ndjson(path):
        do = "the story has what its lines say, if anything; give the broker's log itself to have it judged"
        findings.problems.append(Problem(source.name, None, "a trace or a broker's log", "another file", do))
        yield InputPart(source.name, "text", iter(()), findings)
    else:
        yield InputPart(source.name, "NDJSON", _lacking(_ndjson(source, findings.problems, span), findings), findings)


def _traces_in(path: Path) -> list[Path]:
    """Return the files of traces in a directory, as Spark writes them; none if it has broker logs, or is no directory."""
    if not path.is_dir():
        return []
    try:
        files = [file for file in path.iterdir() if file.name.endswith(TRACES) and file.is_file()]
    # The reader of logs says what is wrong with the directory.
    except OSError:
        return []
    # Spark's own files begin with a dot or an underscore.
    return [] if not files or logs_in(path) else sorted(file for file in files if not file.name.startswith((".", "_")))


def _may_be_ndjson(path: Path) -> bool:
    """Return whether a file may be NDJSON: it is empty, packed by gzip, unreadable, or has a line that begins with {."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
    # The reader of NDJSON says what is wrong with it.
    except OSError:
        return True
    is_gzip = head.startswith(b"\x1f\x8b")
    return not head.strip() or is_gzip or any(line.lstrip()[:1] == b"{" for line in head.split(b"\n"))


def is_parquet(path: Path) -> bool:
    """Return whether a file begins with the magic number of Parquet."""
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError:
        return False


def _lacking(batches: Iterator[InputBatch], findings: InputFindings) -> Iterator[InputBatch]:
    """Yield the batches; add what their configs and their gaps say is missing to the findings, each line once."""
    for batch in batches:
        findings.missing += [line for line in batch.config.extra.get(MISSING, ()) if line not in findings.missing]
        findings.missing += [doubt.missing for doubt in batch.doubts if doubt.missing not in findings.missing]
        yield batch


def _ndjson(source: InputSource, problems: list[Problem], span: Span | None) -> Iterator[InputBatch]:
    """Yield the batches of an NDJSON file: as columns if it is large and each line is as expected, else line by line.

    Problems are appended to `problems`; a `span` is read as columns or not at all.
    """
    path, name = source
    large = span is not None or (path.is_file() and path.stat().st_size >= AT_ONCE_FROM and not has_long_line(path))
    columns_batches = read_at_once(read_span(path, span)) if large else None
    # None: the file is small or has a long line, or some line is not as expected. Only reading line by line shows which one,
    # and what is lost with it.
    if columns_batches is None:
        if span is not None:
            raise NotSeparableError
        reading = ndjson.read(path, name)
        problems.extend(reading.problems)
        yield from trace_batches(reading.traces, name, reading.damaged)
        return

    def by_line(config: Config) -> Iterator[InputBatch]:
        """Read the file again, line by line; return the batches of the traces with this config."""
        # A span does not know the numbers of its lines: those before it were not counted. The caller judges the whole file.
        if span is not None:
            raise NotSeparableError
        traces = [trace for trace in ndjson.read(path, name).traces if trace.config == config]
        return _batches(traces, name)

    for batch in columns_batches:
        read_again = partial(by_line, batch.config)
        yield InputBatch(name, batch.stored, batch.config, numbered=batch.numbered, by_line=read_again)


def trace_batches(traces: Sequence[Trace], source: str, damaged: Mapping[str, int]) -> Iterator[InputBatch]:
    """Yield the batches of traces; `damaged` is, by name of a trace, the row before which it lost a line."""
    # Names of traces that are a batch of their own, for a lost line or a gap: InputBatch.damaged and .doubts are about one.
    alone = {trace.name for trace in traces if trace.name in damaged or log_gaps(trace.config)}
    yield from _batches([trace for trace in traces if trace.name not in alone], source)
    for trace in traces:
        # A trace of which every line was lost has no event, and is a batch all the same.
        if trace.name in alone and (trace.events or trace.name in damaged):
            columns, doubts = to_columns([trace], trace.config), log_gaps(trace.config)
            yield InputBatch(source, columns, trace.config, (trace,), damaged=damaged.get(trace.name), doubts=doubts)


def part_of_traces(traces: Sequence[Trace]) -> InputPart:
    """Return traces that a caller has in memory as a part."""
    findings = InputFindings()
    return InputPart("traces", "traces", _lacking(trace_batches(traces, "traces", damaged={}), findings), findings)


def _logs(source: InputSource, layout: str | None, selection: Selection | None) -> Iterator[InputPart]:
    """Yield a part for each cluster whose broker logs lie at a path."""
    # Reading notes in a selection what the lines showed: each path begins with none of that.
    for capture in kafka_logs.read_all(source.path, layout, None if selection is None else selection.fresh_copy()):
        name = f"{source.name} ({capture.cluster})" if capture.cluster else source.name
        findings = InputFindings(
            problems=list(capture.problems),
            notes=[f"{name}: {note}" for note in capture.summary.notes()],
            covered=[str(node_coverage) for node_coverage in capture.coverage],
            missing=list(capture.missing),
            checks=capture.summary.checks,
            gaps=tuple((capture.cluster, gap) for gap in capture.gaps),
        )
        yield InputPart(name, LOGS, capture_batches(capture, name), findings)


def capture_batches(capture: kafka_logs.Capture, name: str) -> Iterator[InputBatch]:
    """Yield the batches of a capture, the traces of one cluster's logs; a trace with gaps is a batch of its own.

    `capture.uncertain` has, by the name of a trace, each gap with the numbers of the two events between which it lies.
    """
    yield from _batches([trace for trace in capture.traces if not capture.uncertain.get(trace.name)], name, counted=True)
    for trace in capture.traces:
        doubts = tuple(LogGap(first, last, str(gap)) for (first, last), gap in capture.uncertain.get(trace.name, ()))
        if doubts and trace.events:
            columns = to_columns([trace], trace.config, counted=True)
            yield InputBatch(name, columns, trace.config, (trace,), doubts=doubts, counted=True)


def _batches(traces: Sequence[Trace], source: str, counted: bool = False) -> Iterator[InputBatch]:
    """Yield a batch for all traces whose configs differ in the topic id at most, which no rule reads.

    Traces with entries of epoch caches are a batch of their own. `counted` as in InputBatch.
    """
    by_config: dict[str, list[Trace]] = {}
    for trace in traces:
        by_config.setdefault(repr(trace.config), []).append(trace)
    batches: dict[tuple[str, bool], list[Trace]] = {}
    for group in by_config.values():
        # A topic with entries of epoch caches is not put together with one without: the source of that one may not report
        # them, and a batch has one set of options (engine.judge.options_of).
        cache_entries = any(event.event == "EpochCacheEntry" for trace in group for event in trace.events)
        batches.setdefault((repr(_without_topic(group[0].config)), cache_entries), []).extend(group)
    for group in batches.values():
        if any(trace.events for trace in group):
            same = all(trace.config == group[0].config for trace in group)
            config = group[0].config if same else _without_topic(group[0].config)
            yield InputBatch(source, to_columns(group, config, counted=counted), config, tuple(group), counted=counted)


def _without_topic(config: Config) -> Config:
    """Return the config without the topic id."""
    return replace(config, extra={key: value for key, value in config.extra.items() if key != TOPIC_ID})


def _parquet(source: InputSource, problems: list[Problem]) -> Iterator[InputBatch]:
    """Yield a batch for each row group of a Parquet file that can be read; append what cannot be read to `problems`."""
    from tidegauge.traces.formats.parquet import Reader, Unreadable  # noqa: PLC0415  slow to load, and few need it

    path, name = source
    try:
        with Reader(path) as reader:
            for group in range(len(reader.row_groups())):
                try:
                    columns = reader.read_as_stored(group)
                # Row groups are independent: the others can still be judged.
                except Unreadable as error:
                    problems.append(error.problem)
                    continue
                yield InputBatch(f"{name}: row group {group}", columns, reader.config)
    except Unreadable as error:
        problems.append(error.problem)

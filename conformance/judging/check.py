"""check(paths): judge whatever the paths hold, and report.

Rules of this file

1. What a path is, its content decides: a directory is a set of broker logs, a file that begins like Parquet is Parquet,
   one whose lines are a broker's is a log, everything else is NDJSON.
2. A large NDJSON file is judged as columns; where something failed it is read again line by line, to say where.
3. Bad input never stops the rest: it is set aside, counted and reported with file and line. What fails behind a lost line
   is undecided (conformance.judging.damage).
4. Exit codes: 1 a MUST rule fails; else 2 some input was bad; else 3 nothing could be decided, or not everything; else 0.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tidegauge.conformance.judging.damage import set_aside
from tidegauge.conformance.judging.explain import Explanation, explain
from tidegauge.conformance.judging.judge import Failure, Judgement, RuleTally, judge
from tidegauge.conformance.judging.partial import Doubt, standing
from tidegauge.conformance.judging.progress import Echo
from tidegauge.conformance.judging.sequence import RULE as SEQUENCE
from tidegauge.conformance.judging.sequence import judge_sequence
from tidegauge.conformance.judging.unknown_caches import RULE as UNKNOWN_CACHES
from tidegauge.conformance.judging.unknown_caches import judge_unknown_caches
from tidegauge.conformance.judging.verdicts import (
    RuleVerdict,
    Verdict,
    decides_data_path,
    rule_verdicts,
    run_verdict,
    total,
)
from tidegauge.impl.errors import TidegaugeError
from tidegauge.impl.releases import named
from tidegauge.traces import kafka
from tidegauge.traces.columns import Columns, to_columns
from tidegauge.traces.files import ndjson
from tidegauge.traces.files.ndjson_columns import read_at_once
from tidegauge.traces.files.parquet import Reader, Unreadable
from tidegauge.traces.problems import Problem, lost
from tidegauge.traces.schema import Config, Trace

CONFORMS, FAILS, BAD, UNDECIDED = 0, 1, 2, 3
EXPLAINED = 10
"""Failures explained in a report; the others are counted."""

LOGS = "broker logs"
AT_ONCE_FROM = 4_000_000
"""Bytes from which NDJSON is read as columns; less is read line by line in a second."""


@dataclass(frozen=True)
class InputBatch:
    """Traces with one config as columns; `traces` where there are lines behind them.

    Lines read at once have `numbered` of them in sequence, and `by_line` reads them again one by one. A trace that lost a
    line stands alone, and `damaged` is the row in front of which it did. So does one with `doubts`: logs that lines are
    missing from. Events that a reader has `counted` itself have numbers that say nothing.
    """

    source: str
    columns: Columns
    config: Config
    traces: tuple[Trace, ...] | None = None
    numbered: int = 0
    by_line: Callable[[], Iterator["InputBatch"]] | None = field(default=None, repr=False, compare=False)
    damaged: int | None = None
    doubts: tuple[Doubt, ...] = ()
    counted: bool = False


@dataclass
class Found:
    """What comes up while a path is read, besides its batches: all of it is there when these have been taken.

    `problems` are what is wrong with it, `notes` how it was read; `covered` and `missing` as in `Input`.
    """

    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    covered: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Judged:
    """A batch with what the judge says about it."""

    batch: InputBatch
    judgement: Judgement


@dataclass(frozen=True)
class Input:
    """One path: what it is, and how much of it was read."""

    path: str
    kind: str
    traces: int
    events: int
    problems: tuple[Problem, ...]
    covered: tuple[str, ...] = ()
    """Which part of the life of each node was heard, where a source says so."""
    missing: tuple[str, ...] = ()
    """What would have to be added for a verdict on everything that happened."""


@dataclass(frozen=True)
class Report:
    """The response to `tidegauge check`."""

    inputs: tuple[Input, ...]
    verdict: Verdict
    rules: tuple[RuleVerdict, ...]
    explanations: tuple[Explanation, ...]
    failures: int
    seconds: float
    notes: tuple[str, ...] = ()
    judged: tuple[Judged, ...] = field(default=(), repr=False)

    @property
    def events(self) -> int:
        """Events judged."""
        return sum(one.events for one in self.inputs)

    @property
    def traces(self) -> int:
        """Traces judged."""
        return sum(one.traces for one in self.inputs)

    @property
    def missing(self) -> tuple[str, ...]:
        """What the inputs lack."""
        return tuple(said for one in self.inputs for said in one.missing)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything that was wrong with the input."""
        return tuple(problem for one in self.inputs for problem in one.problems)

    @property
    def lost(self) -> int:
        """Events that could not be read."""
        return lost(self.problems)

    @property
    def exit_code(self) -> int:
        """0 conforms, 1 a rule fails, 2 bad input, 3 nothing could be decided."""
        if self.verdict is Verdict.FAIL:
            return FAILS
        if self.lost or any(not one.events for one in self.inputs):
            return BAD
        return CONFORMS if self.verdict is Verdict.PASS else UNDECIDED


def check(
    paths: Sequence[str | Path],
    profile: str | None = None,
    explained: int = EXPLAINED,
    echo: Echo = lambda _line: None,
    layout: str | None = None,
) -> Report:
    """Judge the traces in `paths`; `profile` replaces the one their configs name, `layout` is the pattern of broker logs."""
    begin = time.perf_counter()
    inputs: list[Input] = []
    kept: list[Judged] = []
    judgements: list[Judgement] = []
    notes: list[str] = []
    for path in paths:
        found = Found()
        kind, batches = read(Path(path), found, layout)
        traces = events = 0
        before = len(judgements)
        for one in (one for batch in batches for one in _judged(batch, profile, found.problems)):
            judgements.append(replace(one.judgement, failures=(), final=()))
            traces += one.judgement.traces
            events += one.judgement.events
            if one.batch.traces is not None or (
                one.judgement.failures and sum(len(k.judgement.failures) for k in kept) < explained
            ):
                kept.append(one)
            echo(f"{path}: {traces:,} traces, {events:,} events judged")
        if found.covered and events and not decides_data_path(total(judgements[before:])):
            found.missing.append("the data path: no rule about what a broker does with records could be decided")
        notes += found.notes
        inputs.append(
            Input(str(path), kind, traces, events, tuple(found.problems), tuple(found.covered), tuple(found.missing))
        )
    rules = rule_verdicts(total(judgements))
    return Report(
        inputs=tuple(inputs),
        verdict=run_verdict(rules, sum(one.events for one in inputs), whole=not any(one.missing for one in inputs)),
        rules=rules,
        explanations=tuple(_explained(kept, explained)),
        failures=sum(tally.failed_traces for j in judgements for tally in j.tallies.values()),
        seconds=time.perf_counter() - begin,
        notes=(*notes, *(note for j in judgements for note in j.notes)),
        judged=tuple(kept),
    )


def _judged(batch: InputBatch, profile: str | None, problems: list[Problem]) -> Iterator[Judged]:
    config = batch.config if profile is None else replace(batch.config, profile=profile)
    try:
        named(config.profile)
    except TidegaugeError as error:
        problems.append(
            Problem(
                batch.source, None, "a profile this version knows", str(error), "name one with --profile", len(batch.columns)
            )
        )
        return
    batch = replace(batch, config=config)
    judgement = judge(batch.columns, config, final=0 if batch.traces is None else len(batch.traces))
    if batch.traces is not None:
        if not batch.counted:
            judgement = judge_sequence(judgement, batch.traces, batch.columns)
        judgement = judge_unknown_caches(judgement, batch.traces, batch.columns, config)
        if batch.damaged is not None:
            judgement = set_aside(judgement, batch.damaged, batch.traces[0].name)
        if batch.doubts:
            judgement = standing(judgement, batch.traces[0], config, batch.doubts)
    elif batch.by_line is not None:
        if judgement.failures or judgement.tallies[UNKNOWN_CACHES].undecided:
            for again in batch.by_line():
                yield from _judged(again, profile, problems)
            return
        judgement = replace(judgement, tallies=judgement.tallies | {SEQUENCE: RuleTally(batch.numbered, 0, 0, (), 0)})
    yield Judged(batch, judgement)


def _explained(judged: Sequence[Judged], most: int) -> Iterator[Explanation]:
    """One failure per rule first, then the rest, in the order they were found."""
    found = [(one, failure) for one in judged for failure in one.judgement.failures]
    seen: set[str] = set()
    firsts: list[tuple[Judged, Failure]] = []
    others: list[tuple[Judged, Failure]] = []
    for pair in found:
        (others if pair[1].rule in seen else firsts).append(pair)
        seen.add(pair[1].rule)
    for one, failure in (firsts + others)[:most]:
        batch = one.batch
        yield explain(batch.columns, batch.config, failure, batch.traces, batch.source)


# ---------------------------------------------------------------------------------------------------------------------
# Reading


def read(path: Path, found: Found, layout: str | None = None) -> tuple[str, Iterator[InputBatch]]:
    """What a path holds: the kind of source, and its batches; what else comes up goes to `found`.

    `layout` is the pattern broker logs are written in.
    """
    if path.is_dir():
        return LOGS, _logs(path, found, layout)
    if is_parquet(path):
        return "Parquet", _parquet(path, found.problems)
    if path.is_file() and (layout is not None or kafka.is_log(path)):
        return LOGS, _logs(path, found, layout)
    return "NDJSON", _ndjson(path, found.problems)


def is_parquet(path: Path) -> bool:
    """A Parquet file begins with its magic number."""
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError:
        return False


def _ndjson(path: Path, problems: list[Problem]) -> Iterator[InputBatch]:
    large = path.is_file() and path.stat().st_size >= AT_ONCE_FROM
    found = read_at_once(path.read_bytes()) if large else None
    if found is None:
        reading = ndjson.read(path)
        problems.extend(reading.problems)
        yield from _batches([trace for trace in reading.traces if trace.name not in reading.damaged], str(path))
        for trace in reading.traces:
            if trace.name in reading.damaged:
                columns = to_columns([trace], trace.config)
                yield InputBatch(str(path), columns, trace.config, (trace,), damaged=reading.damaged[trace.name])
        return

    def by_line(config: Config) -> Iterator[InputBatch]:
        traces = [trace for trace in ndjson.read(path).traces if trace.config == config]
        return _batches(traces, str(path))

    for batch in found:
        yield InputBatch(str(path), batch.columns, batch.config, None, batch.numbered, partial(by_line, batch.config))


def _logs(path: Path, found: Found, layout: str | None) -> Iterator[InputBatch]:
    capture = kafka.read(path, layout)
    found.problems += capture.problems
    found.notes += [f"{path}: {note}" for note in capture.summary.notes()]
    found.covered += [str(life) for life in capture.lives]
    found.missing += capture.missing
    yield from _batches([trace for trace in capture.traces if not capture.doubts.get(trace.name)], str(path), counted=True)
    for trace in capture.traces:
        doubts = tuple(Doubt(*rows, str(gap)) for rows, gap in capture.doubts.get(trace.name, ()))
        if doubts and trace.events:
            columns = to_columns([trace], trace.config)
            yield InputBatch(str(path), columns, trace.config, (trace,), doubts=doubts, counted=True)


def _batches(traces: Sequence[Trace], source: str, counted: bool = False) -> Iterator[InputBatch]:
    """Traces that share a config are judged together."""
    groups: dict[str, list[Trace]] = {}
    for trace in traces:
        groups.setdefault(repr(trace.config), []).append(trace)
    for group in groups.values():
        if any(trace.events for trace in group):
            yield InputBatch(source, to_columns(group, group[0].config), group[0].config, tuple(group), counted=counted)


def _parquet(path: Path, problems: list[Problem]) -> Iterator[InputBatch]:
    try:
        with Reader(path) as reader:
            for group in range(len(reader.row_groups())):
                try:
                    columns = reader.read(group)
                except Unreadable as error:
                    problems.append(error.problem)
                    continue
                yield InputBatch(f"{path}: row group {group}", columns, reader.config)
    except Unreadable as error:
        problems.append(error.problem)

"""The work of a Spark task: read row groups, judge them in place, write atomically. Nothing here knows Spark.

In: a `Task`, which is a run of row groups of one Parquet file. Out: a `ResultRow` per row group. A *fingerprint* is a hash;
that of a file stands for its path, its content, and the judge with its options. A *tally* is the counts of one rule's
checks. A *situation* is what an event was about, for a report on coverage (conformance.checking.situations). *Malformed* is
what cannot be read or judged. A `RowGroup` is its place in a file (`index`, from 0) and its size (`rows`, which are events,
and `traces`); its traces are numbered from `first_trace` in the file.
"""

import hashlib
import os
import resource
import sys
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tidegauge.conformance.checking.situations import situations
from tidegauge.conformance.checking.verdicts import lost_disks
from tidegauge.conformance.engine.adaptive_judge import AdaptiveJudge
from tidegauge.conformance.engine.judge import Judgement, TooLargeError
from tidegauge.spark_check.result_row import FailureRow, ProblemRow, ResultRow, SituationRow, TallyRow, record_batch
from tidegauge.spark_check.storage import PIECE, AnyPath, open_parquet, to_path
from tidegauge.traces.columns import Columns, Distinct, Ints, table_of
from tidegauge.traces.formats.parquet import RowGroup, Unreadable
from tidegauge.traces.problems import Problem
from tidegauge.traces.schema import Config
from tidegauge.util.errors import UsageError
from tidegauge.util.files import version_of_status
from tidegauge.util.version import PACKAGE_VERSION

# Atomic writes of tasks, which may run several times and on several machines at once.
#
# `util.files` is for one process at a time: its names are those of process ids, and machines share these.


@contextmanager
def atomic_write(path: AnyPath) -> Iterator[Path]:
    """Give the block a file of this machine to write to; when the block ends without an error, it becomes `path`."""
    # Hidden, and never the same for two attempts: Spark may run a task twice at once (speculation).
    name = f".{path.name}.{uuid.uuid4().hex}"
    # On this machine the file is written beside its place and renamed, at once.
    if isinstance(path, Path):
        unfinished = path.with_name(name)
        try:
            yield unfinished
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
        return
    # To another file system it is copied when it is complete.
    with tempfile.TemporaryDirectory(prefix="tidegauge-attempt-") as scratch:
        yield Path(scratch) / path.name
        # A copy is visible before it is complete, so it too gets a name of its own first.
        copied = path.with_name(name)
        try:
            copied.put(Path(scratch) / path.name)
            copied.replace(path)
        finally:
            copied.unlink(missing_ok=True)


def remove_leftovers(folder: AnyPath, names: str) -> None:
    """Remove files that killed attempts of `atomic_write` left; `names` is a pattern of the names they were to get."""
    # The hidden name ends in a UUID, 32 hexadecimal digits.
    for unfinished in folder.glob(f".{names}.{'?' * 32}"):
        unfinished.unlink(missing_ok=True)


# Tasks.
#
# 1. A task is a run of row groups of one file. They are read and judged one at a time, so a worker holds one row group,
#    whatever the task's or the file's size.
# 2. Each row group gives exactly one row: judged, or malformed with the problem. Nothing is dropped, so rows reconcile with
#    the footers of the files.
# 3. With a directory for results, a task writes its rows there under a name of its own, completely or not at all: row
#    groups that have a row there are not judged again. The name distinguishes versions of the input, judges and profiles.


FAILURES_KEPT = 20
"""First failures kept per row group; all are counted."""

TASK_EVENTS = 8_000_000
"""Events per task where there are plenty: a tenth of a second of judging at least, against some ten ms of scheduling."""


@dataclass(frozen=True)
class Task:
    """Row groups of one file, whose version is `fingerprint`; `profile` replaces the one that its config names.

    `situations`: whether those of the events are counted, for a report on coverage.
    """

    fingerprint: str
    groups: tuple[RowGroup, ...]
    profile: str | None = None
    situations: bool = False

    @property
    def path(self) -> str:
        """The path of the file that all its row groups are in."""
        return self.groups[0].path

    @property
    def name(self) -> str:
        """The name of its file of results: the fingerprint, and the numbers of the first and the last row group."""
        return f"{self.fingerprint}-{self.groups[0].index:06}-{self.groups[-1].index:06}.parquet"


def file_fingerprint(path: str | AnyPath, judge: str) -> str:
    """Return a hash of a file, its path and its content, and of the `judge` (judge_fingerprint).

    The content is read once for each version that a process sees: a result must not outlive what it is about, and size and
    time of change stay the same where a file is damaged in place, or written by rsync, tar or touch -r.
    """
    file = to_path(path)
    text = f"{file.absolute()}\0{_content_hash(file.absolute(), file.stat())}\0{judge}"
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def version_of(path: str | AnyPath) -> str:
    """Return a hash of a file's path, size and times: a cheaper fingerprint, for runs that keep no results."""
    file = to_path(path)
    return hashlib.sha256(repr((str(file.absolute()), *version_of_status(file.stat()))).encode()).hexdigest()[:16]


_hashes: dict[str, tuple[tuple[int, ...], str]] = {}
"""By path: the version of a file that was read, and the hash of its content."""


def _content_hash(file: AnyPath, status: Any) -> str:
    """Return the SHA-256 of a file, computed anew only when its size or time has changed; `status` is its os.stat_result."""
    version = version_of_status(status)
    hashed_version, digest = _hashes.get(str(file), (None, ""))
    if hashed_version != version:
        hashed = hashlib.sha256()
        try:
            with file.open("rb") if isinstance(file, Path) else file.opened() as content:
                while piece := content.read(PIECE):
                    hashed.update(piece)
        # Gone since it was listed: the caller leaves it out.
        except FileNotFoundError:
            raise
        except OSError:
            # The content cannot be read. The task that judges the file meets the same error and reports it, and a row with
            # a problem is not kept; so any hash will do here.
            hashed.update(repr(version).encode())
        digest = hashed.hexdigest()
        _hashes[str(file)] = (version, digest)
    return digest


def judge_fingerprint(profile: str | None = None, *, situations: bool = False) -> str:
    """Return a hash of the judge: its version, its text, the profile it judges by if one is named, and what it counts."""
    text = f"{PACKAGE_VERSION}\0{kernel_fingerprint()}\0{profile}\0{situations}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def kernel_fingerprint() -> str:
    """Return a hash of the text of the judge's kernel and rules."""
    from tidegauge.conformance.engine.compiled import text_fingerprint  # noqa: PLC0415  (imports the compiler)

    return text_fingerprint()


def tasks_of(
    mark: str, groups: Iterable[RowGroup], events: int, profile: str | None = None, *, situations: bool = False
) -> list[Task]:
    """Split the row groups of one file into tasks of at least `events` events each, but for the last.

    `mark` is the fingerprint of the file; `profile` and `situations` go into each task.
    """
    tasks: list[Task] = []
    # The row groups of the next task.
    run: list[RowGroup] = []
    for group in groups:
        run.append(group)
        if sum(member.rows for member in run) >= events:
            tasks.append(Task(mark, tuple(run), profile, situations))
            run = []
    return [*tasks, Task(mark, tuple(run), profile, situations)] if run else tasks


def run_task(task: Task, results: str | None) -> Iterator[ResultRow]:
    """Judge the row groups of a task and yield a row for each; then write the rows into the directory `results`, if any.

    The file is written only after the last row was taken.
    """
    rows = []
    for row in _rows(task):
        rows.append(row)
        yield row
    # A row group that could not be read is tried again by the next run: the reason may have been this machine.
    judged = [row for row in rows if row.problem is None]
    if results is not None and judged:
        store(judged, to_path(results) / task.name)


def store(rows: list[ResultRow], path: AnyPath) -> None:
    """Write rows to `path`, completely or not at all."""
    with atomic_write(path) as unfinished:
        pq.write_table(pa.Table.from_batches([record_batch(rows)]), unfinished)


def _rows(task: Task) -> Iterator[ResultRow]:
    """Judge the row groups of a task one by one, and yield a row for each, also for a damaged one."""
    # Its footer was read on the driver, but the file may have changed, or be out of this worker's reach.
    try:
        opened = open_parquet(task.path)
    except Unreadable as error:
        for group in task.groups:
            yield _malformed(task, group, error.problem)
        return
    with opened:
        config = opened.config if task.profile is None else replace(opened.config, profile=task.profile)
        for group in task.groups:
            started = time.perf_counter()
            try:
                # In the layout of the file: the automaton looks up rows of the distinct layout by number, not expanded.
                columns = opened.read_as_stored(group.index)
                # compile_from 0: the compiled kernel judges every row group, however few its events: it is loaded anyway.
                judgement = _judge_of_process().judge(columns, config, compile_from=0)
            except Unreadable as error:
                yield _malformed(task, group, error.problem)
            # A row group that cannot be judged is counted as malformed: totals must reconcile with the footers.
            except (TooLargeError, UsageError) as error:  # UsageError: a profile that this version does not know
                where, do = f"{task.path}#{group.index}", "change that, or judge it by another --profile"
                yield _malformed(task, group, Problem(where, None, "traces that can be judged", str(error), do))
            else:
                yield _judged(task, group, columns, config, judgement, time.perf_counter() - started)


@cache
def _judge_of_process() -> AdaptiveJudge:
    """Return the one judge of this process, which keeps its automaton from task to task."""
    return AdaptiveJudge()


def trace_starts(columns: Columns | Distinct) -> Ints:
    """Return the numbers of the rows at which traces begin, and at last the number of all rows."""
    return table_of(columns)[0].trace_starts


def _judged(
    task: Task, group: RowGroup, columns: Columns | Distinct, config: Config, judgement: Judgement, seconds: float
) -> ResultRow:
    """Return the result row of a row group that was judged, in so many `seconds`."""
    starts = trace_starts(columns)
    return _row(
        task,
        group,
        events=judgement.events,
        traces=judgement.traces,
        # The nodes without the places. None: of the events only the columns are here.
        lost_disks=tuple(node for node, _ in lost_disks(columns, config, None, task.path)),
        # A rule that no event called for has no row: most row groups exercise a fraction of the rules.
        tallies=tuple(
            TallyRow.from_tally(rule, tally)
            for rule, tally in judgement.tallies.items()
            if tally.held or tally.failed or tally.undecided
        ),
        failures=tuple(
            # A judgement counts traces and rows from the start of the row group.
            FailureRow(
                group.first_trace + failure.trace,
                failure.row - int(starts[failure.trace]),
                failure.rule,
                failure.compared,
                failure.expected,
                failure.actual,
            )
            for failure in judgement.failures[:FAILURES_KEPT]
        ),
        situations=tuple(_situations(task, group, columns, config)) if task.situations else (),
        seconds=seconds,
    )


def _situations(task: Task, group: RowGroup, columns: Columns | Distinct, config: Config) -> Iterator[SituationRow]:
    """Yield the situations in a row group, for the coverage of the model; `place` names an event by its number."""
    from tidegauge.conformance.checking.inputs import InputBatch  # noqa: PLC0415  (imports the readers of logs)

    place = InputBatch(f"{task.path}: row group {group.index}", columns, config).place
    for situation, seen in situations(columns, place).items():
        yield SituationRow(situation.action, situation.outcomes, seen.times, seen.first)


def _malformed(task: Task, group: RowGroup, problem: Problem) -> ResultRow:
    """Return the result row of a row group that could not be read or judged: all its events count as malformed."""
    return _row(
        task,
        group,
        malformed_events=group.rows,
        malformed_traces=group.traces,
        problem=ProblemRow(problem.path, problem.expected, problem.seen, problem.do),
    )


def _row(task: Task, group: RowGroup, **parts: Any) -> ResultRow:
    """Return the result row of a row group: `parts` are fields of ResultRow, every other count or list is empty."""
    # ru_maxrss is in bytes on macOS and in kilobytes on Linux.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    nothing = {
        "events": 0,
        "traces": 0,
        "malformed_events": 0,
        "malformed_traces": 0,
        "problem": None,
        "lost_disks": (),
        "tallies": (),
        "failures": (),
        "situations": (),
        "seconds": 0.0,
    }
    return ResultRow(
        **nothing | parts,
        path=task.path,
        fingerprint=task.fingerprint,
        row_group=group.index,
        worker=os.getpid(),
        peak_bytes=peak,
    )


def unreadable_row(path: str, fingerprint: str, problem: Problem) -> ResultRow:
    """Return the one result row of a file whose footer cannot be read, so that no row group of it is known."""
    no_group = RowGroup(path, index=-1, rows=0, first_trace=0, traces=0)
    return _malformed(Task(fingerprint, (no_group,)), no_group, problem)

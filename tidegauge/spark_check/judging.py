"""Judge Parquet files of any number on Spark, and combine and reconcile the results of the workers.

In: paths, and perhaps a directory of results. Out: a `SparkRun`, with a `ResultRow` per row group, and its `Totals`. A
*footer* is the metadata at the end of a Parquet file, with the number of events of each row group. A *mark* is the
fingerprint of a file, which stands for its path, its content and the judge (spark_check.worker). A *resumed* row group has a
row in the directory of results from an earlier run, and is not judged again. A *task* is a run of row groups of one file
that a worker judges one after the other. A `RowGroup` is its place (`index`, from 0) and its size (`rows`, which are events,
and `traces`).
"""

import io
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tidegauge.conformance.engine.adaptive_judge import COMPILE_FROM, prepare
from tidegauge.conformance.engine.judge import RuleTally, add_tallies
from tidegauge.spark_check.result_row import ARROW_SCHEMA, ResultRow
from tidegauge.spark_check.session import cores, session, task_failures
from tidegauge.spark_check.storage import AnyPath, open_parquet, to_path, writable_directory
from tidegauge.spark_check.worker import (
    TASK_EVENTS,
    Task,
    file_fingerprint,
    judge_fingerprint,
    remove_leftovers,
    run_task,
    tasks_of,
    version_of,
)
from tidegauge.traces.formats.parquet import RowGroup, Unreadable
from tidegauge.traces.problems import Problem
from tidegauge.traces.schema import Config

# The totals of all row groups.


@dataclass(frozen=True)
class Totals:
    """`events_in` and `traces_in` come from the footers of the files, the other counts from the workers."""

    files: int
    unreadable_files: int
    row_groups: int
    resumed_row_groups: int
    events_in: int
    traces_in: int
    events_judged: int
    traces_judged: int
    events_malformed: int
    traces_malformed: int
    rules: Mapping[str, RuleTally]
    failures: tuple[Mapping[str, Any], ...]
    problems: tuple[str, ...]
    peak_bytes: int
    seconds: float = field(compare=False)

    @property
    def reconciles(self) -> bool:
        """Whether every event and trace of the footers was judged or is counted as malformed."""
        return (
            self.events_in == self.events_judged + self.events_malformed
            and self.traces_in == self.traces_judged + self.traces_malformed
        )

    @property
    def failed_rules(self) -> tuple[str, ...]:
        """The rules that fail somewhere."""
        return tuple(rule for rule, total in self.rules.items() if total.failed)


def sum_rules(rows: Iterable[ResultRow]) -> dict[str, RuleTally]:
    """Return the sum of the rows' tallies for each rule that any of them has."""
    sums: dict[str, RuleTally] = {}
    for row in rows:
        for tally in row.tallies:
            sums[tally.rule] = add_tallies(sums.get(tally.rule, RuleTally()), tally.tally())
    return dict(sorted(sums.items()))


# A run over any number of files.
#
# 1. Events and traces are counted from the footers before anything is judged; Totals.reconciles compares them with the rows.
# 2. A file that cannot be read is a problem, the others are judged.
# 3. With a directory for results, row groups that have a row there are not judged again: an interrupted run goes on where it
#    was. A file whose content changed since has another fingerprint and is judged again.


if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASKS_PER_CORE = 4
"""Fewest tasks per core, so that a slow task does not leave the other cores idle for long."""

FEWEST_EVENTS = 250_000
"""Fewest events in a task: a smaller one would take longer to schedule than to judge."""

FAILURES_KEPT = 100
"""First failures in Totals; all are counted, and the results have all that the workers kept."""


@dataclass(frozen=True)
class FileHead:
    """The footer of a file."""

    config: Config
    groups: tuple[RowGroup, ...]


@dataclass(frozen=True)
class SparkRun:
    """The result of judging files on Spark."""

    files: tuple[str, ...]
    heads: Mapping[str, FileHead]
    """path -> footer, of the files that can be read"""
    unreadable: Mapping[str, Problem]
    """path -> problem, of the others"""
    rows: Sequence[ResultRow]
    """one per row group, in the order of the files"""
    resumed: int
    """how many of the rows were read from the directory of results"""
    seconds: float

    def totals(self) -> Totals:
        """Add up the counts of all files."""
        groups = [group for head in self.heads.values() for group in head.groups]
        rows = self.rows
        return Totals(
            files=len(self.files),
            unreadable_files=len(self.unreadable),
            row_groups=len(groups),
            resumed_row_groups=self.resumed,
            events_in=sum(group.rows for group in groups),
            traces_in=sum(group.traces for group in groups),
            events_judged=sum(row.events for row in rows),
            traces_judged=sum(row.traces for row in rows),
            events_malformed=sum(row.malformed_events for row in rows),
            traces_malformed=sum(row.malformed_traces for row in rows),
            rules=sum_rules(rows),
            failures=tuple({"path": row.path, **asdict(failure)} for row in rows for failure in row.failures)[
                :FAILURES_KEPT
            ],
            problems=tuple(map(str, (*self.unreadable.values(), *(row.to_problem() for row in rows if row.problem)))),
            peak_bytes=max((row.peak_bytes for row in rows), default=0),
            seconds=self.seconds,
        )


def judge_on_spark(
    paths: Sequence[str | AnyPath],
    master: str = "local[2]",
    results: str | AnyPath | None = None,
    spark: "SparkSession | None" = None,
) -> Totals:
    """Judge the row groups of `paths`, files or directories of .parquet files, and return the totals.

    `results` is a directory to leave rows in, and to resume from. `spark` is a session to use; without one, a session on
    `master` is made.
    """
    with ExitStack() as stack:
        running = spark if spark is not None else stack.enter_context(session(master))
        return judge_files(running, files_in(paths), results).totals()


def files_in(paths: Iterable[str | AnyPath]) -> list[str]:
    """Return the paths of the files, and of the .parquet files in the directories, each once."""
    return [str(file) for file in paths_in(paths)]


def paths_in(paths: Iterable[str | AnyPath]) -> list[AnyPath]:
    """Return the files, and the .parquet files in the directories, each once, as path objects.

    A file at a URI that comes from a listing has the status that the listing gave.
    """
    by_name: dict[str, AnyPath] = {}
    for path in map(to_path, paths):
        inside = path.glob("*.parquet") if path.is_dir() else [path]
        # Sorted within a directory; the order of `paths` stays.
        by_name |= sorted((str(file.absolute()), file.absolute()) for file in inside)
    return list(by_name.values())


def judge_files(
    spark: "SparkSession",
    files: Sequence[str],
    results: str | AnyPath | None = None,
    profile: str | None = None,
    *,
    situations: bool = False,
) -> SparkRun:
    """Judge the row groups of files that have no row in `results` yet. Raises SparkFailed when a task cannot be done.

    `profile` replaces the one that files name. `situations`: whether those of the events are counted, for a report on
    coverage.
    """
    started = time.perf_counter()
    target = None if results is None else writable_directory(results)
    # The footers, of which the driver reads no more than that.
    heads: dict[str, FileHead] = {}
    unreadable: dict[str, Problem] = {}
    for path in files:
        try:
            heads[path] = _head(path)
        except Unreadable as error:
            unreadable[path] = error.problem
    judge = judge_fingerprint(profile, situations=situations)
    # Fingerprints by content need every file read once more, as long as judging it: only for results that are kept, in
    # tasks.
    if target is None or not heads:
        marks = {path: version_of(path) for path in heads}
    else:
        with task_failures(results):
            files_and_marks = spark.sparkContext.parallelize(list(heads), len(heads)).map(
                lambda path: (path, file_fingerprint(path, judge))
            )
            marks = dict(files_and_marks.collect())
    # The rows of these files that earlier runs have left; a row group is named by its file's mark and its index.
    wanted = {(marks[path], group.index) for path, head in heads.items() for group in head.groups}
    rows = [] if target is None else [row for row in stored(target) if (row.fingerprint, row.row_group) in wanted]
    resumed = {(row.fingerprint, row.row_group) for row in rows}
    # Tasks for the other row groups, of about `task_events` events each.
    task_events = _task_size(sum(group.rows for head in heads.values() for group in head.groups), cores(spark))
    tasks: list[Task] = []
    for path, head in heads.items():
        left = [group for group in head.groups if (marks[path], group.index) not in resumed]
        tasks += tasks_of(marks[path], left, task_events, profile, situations=situations)
    if tasks:
        # Few events are judged sooner than the automaton is compiled.
        if sum(group.rows for task in tasks for group in task.groups) >= COMPILE_FROM:
            # Before the workers are forked: their daemon loads the automaton that is kept on disk by then.
            prepare()
        place = None if target is None else str(target)
        # Not as a data source: planning one starts two more Python processes.
        with task_failures(results):
            rows += spark.sparkContext.parallelize(tasks, len(tasks)).flatMap(lambda task: run_task(task, place)).collect()
    if target is not None:
        # Every task has ended: what is left under a hidden name belongs to an attempt that was killed.
        for mark in marks.values():
            remove_leftovers(target, f"{mark}-*")
    # In the order of the files that were named, whatever the tasks' order.
    order = {path: at for at, path in enumerate(files)}
    rows.sort(key=lambda row: (order[row.path], row.row_group))
    return SparkRun(tuple(files), heads, unreadable, rows, len(resumed), time.perf_counter() - started)


def _head(path: str) -> FileHead:
    """Read the footer of a file. Raises Unreadable."""
    with open_parquet(path) as opened:
        return FileHead(opened.config, tuple(opened.row_groups()))


def _task_size(events: int, at_once: int) -> int:
    """Return about how many events a task has, when there are so many in all and `at_once` tasks run at a time."""
    # TASKS_PER_CORE tasks for each core, none of more than TASK_EVENTS. Not below FEWEST_EVENTS, even if some cores then
    # have nothing to do.
    return max(FEWEST_EVENTS, min(TASK_EVENTS, events // (TASKS_PER_CORE * at_once)))


def stored(results: AnyPath) -> list[ResultRow]:
    """Return the rows that earlier runs left in a directory of results, one for each row group."""
    # Two runs that were interrupted at different places may both have a row group.
    rows = {(row.fingerprint, row.row_group): row for row in rows_in(results.glob("*.parquet"))}
    return list(rows.values())


def rows_in(paths: Iterable[AnyPath]) -> Iterator[ResultRow]:
    """Yield the rows of files of results, each of which a task has written."""
    for path in paths:
        # A file that is damaged, or that another version of Tidegauge wrote, has no rows: its row groups are judged again.
        try:
            table = pq.read_table(io.BytesIO(path.read_bytes()))
        except (OSError, pa.ArrowException):
            continue
        if table.schema.equals(ARROW_SCHEMA):
            yield from map(ResultRow.from_dict, table.to_pylist())

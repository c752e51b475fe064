"""What a worker does: read row groups and judge them in place. Nothing here knows Spark.

Rules of this file

1. A task is a run of row groups of one file. They are read and judged one at a time, so a worker holds one row group,
   whatever the task's or the file's size.
2. Each row group gives exactly one row: judged, or malformed with the problem. Nothing is dropped, so rows reconcile with
   the footers of the files.
3. With a directory for results, a task leaves its rows there under a name of its own, whole or not at all: what stands
   there need not be judged again. The name says which version of the input, which judge, by which profile. What could not
   be read leaves no row: it may have been this machine's doing, and is tried again.
"""

import hashlib
import os
import resource
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tidegauge.conformance.judging.environment import lost_disks
from tidegauge.conformance.judging.judge import Judgement, TooLargeError
from tidegauge.conformance.judging.recurring import Recurring
from tidegauge.conformance.judging.tool import tool_version
from tidegauge.impl.errors import UsageError
from tidegauge.spark_check.attempts import attempt
from tidegauge.spark_check.place import AnyPath, at, reader
from tidegauge.traces.columns import Columns, Ints
from tidegauge.traces.files.distinct import Distinct, table_of
from tidegauge.traces.files.parquet import RowGroup, Unreadable
from tidegauge.traces.problems import Problem
from tidegauge.traces.schema import Config

FAILURES_KEPT = 20
"""First failures kept per row group; all are counted."""

TASK_EVENTS = 8_000_000
"""Events per task where there are plenty: a tenth of a second of judging at least, against some ten ms of scheduling."""

TALLY = pa.struct(
    [
        ("rule", pa.string()),
        ("held", pa.int64()),
        ("failed", pa.int64()),
        ("undecided", pa.int64()),
        ("failed_traces", pa.int64()),
        ("missing", pa.list_(pa.string())),
    ]
)
FAILURE = pa.struct(
    [
        ("trace", pa.int64()),
        ("event", pa.int64()),
        ("rule", pa.string()),
        ("compared", pa.string()),
        ("expected", pa.int64()),
        ("actual", pa.int64()),
    ]
)
PROBLEM = pa.struct([("path", pa.string()), ("expected", pa.string()), ("seen", pa.string()), ("do", pa.string())])
RESULT = pa.schema(
    [
        ("path", pa.string()),
        ("fingerprint", pa.string()),
        ("row_group", pa.int32()),
        ("events", pa.int64()),
        ("traces", pa.int64()),
        ("malformed_events", pa.int64()),
        ("malformed_traces", pa.int64()),
        ("problem", PROBLEM),
        ("lost_disks", pa.list_(pa.int32())),
        ("tallies", pa.list_(TALLY)),
        ("failures", pa.list_(FAILURE)),
        ("seconds", pa.float64()),
        ("worker", pa.int32()),
        ("peak_bytes", pa.int64()),
    ]
)
"""One row per row group. `trace` counts from the start of the file, `event` from the start of its trace. `lost_disks` are
the nodes that report one."""


@dataclass(frozen=True)
class Task:
    """Row groups of one file, of which `fingerprint` says which version; `profile` replaces the one its config names."""

    fingerprint: str
    groups: tuple[RowGroup, ...]
    profile: str | None = None

    @property
    def path(self) -> str:
        """The file."""
        return self.groups[0].path

    @property
    def name(self) -> str:
        """A file name for the results: tells tasks of all files and versions apart."""
        return f"{self.fingerprint}-{self.groups[0].index:06}-{self.groups[-1].index:06}.parquet"


def fingerprint(path: str | AnyPath, judge: str) -> str:
    """Stands for one version of one file (its path, size and time of change) and for the `judge` that is asked about it."""
    file = at(path)
    status = file.stat()
    text = f"{file.absolute()}\0{status.st_size}\0{status.st_mtime_ns}\0{judge}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def judge_by(profile: str | None = None) -> str:
    """Stands for the judge of this version, by a profile if one is named."""
    text = f"{tool_version()}\0{kernel_text()}\0{profile}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def kernel_text() -> str:
    """Stands for the text of the judge's kernel and rules."""
    from tidegauge.conformance.kernel.compiled import text_fingerprint  # noqa: PLC0415  (imports the compiler)

    return text_fingerprint()


def tasks_of(mark: str, groups: Iterable[RowGroup], events: int, profile: str | None = None) -> list[Task]:
    """The row groups of the file that `mark` is the fingerprint of, in runs of about `events` events."""
    tasks: list[Task] = []
    run: list[RowGroup] = []
    for group in groups:
        run.append(group)
        if sum(member.rows for member in run) >= events:
            tasks.append(Task(mark, tuple(run), profile))
            run = []
    return [*tasks, Task(mark, tuple(run), profile)] if run else tasks


def run_task(task: Task, results: str | None) -> Iterator[dict[str, Any]]:
    """Judge the row groups of `task`, one row each; leave the rows in the directory `results`."""
    rows = []
    for row in _rows(task):
        rows.append(row)
        yield row
    judged = [row for row in rows if row["problem"] is None]
    if results is not None and judged:
        store(judged, at(results) / task.name)


def batch(rows: Sequence[dict[str, Any]]) -> pa.RecordBatch:
    """Rows in the form of RESULT."""
    return pa.RecordBatch.from_pylist(list(rows), schema=RESULT)


def store(rows: Sequence[dict[str, Any]], path: AnyPath) -> None:
    """Write rows to `path`, whole or not at all."""
    with attempt(path) as unfinished:
        pq.write_table(pa.Table.from_batches([batch(rows)]), unfinished)


def _rows(task: Task) -> Iterator[dict[str, Any]]:
    try:
        opened = reader(task.path)
    except Unreadable as error:
        for group in task.groups:
            yield _malformed(task, group, error.problem)
        return
    with opened:
        config = opened.config if task.profile is None else replace(opened.config, profile=task.profile)
        for group in task.groups:
            started = time.perf_counter()
            try:
                columns = opened.read_as_stored(group.index)
                found = _recurring().judge(columns, config, compile_from=0)
            except Unreadable as error:
                yield _malformed(task, group, error.problem)
            except (TooLargeError, UsageError) as error:  # UsageError: a profile that this version does not know
                where, do = f"{task.path}#{group.index}", "change that, or judge it by another --profile"
                yield _malformed(task, group, Problem(where, None, "traces that can be judged", str(error), do))
            else:
                seconds = time.perf_counter() - started
                yield _judged(task, group, found, seconds) | _places(task, group, columns, config, found)


@cache
def _recurring() -> Recurring:
    """The judge of this process, which remembers from task to task."""
    return Recurring()


def starts_of(columns: Columns | Distinct) -> Ints:
    """Where the traces begin."""
    return table_of(columns)[0].trace_starts


def _judged(task: Task, group: RowGroup, found: Judgement, seconds: float) -> dict[str, Any]:
    tallies = [
        {
            "rule": rule,
            "held": tally.held,
            "failed": tally.failed,
            "undecided": tally.undecided,
            "failed_traces": tally.failed_traces,
            "missing": list(tally.missing),
        }
        for rule, tally in found.tallies.items()
        if tally.held or tally.failed or tally.undecided
    ]
    counts = {"events": found.events, "traces": found.traces, "malformed_events": 0, "malformed_traces": 0}
    return _row(task, group) | counts | {"problem": None, "tallies": tallies, "seconds": seconds}


def _places(task: Task, group: RowGroup, columns: Columns | Distinct, config: Config, found: Judgement) -> dict[str, Any]:
    """What happened where: the first failures, and who lost a disk."""
    starts = starts_of(columns)
    failures = [
        {
            "trace": group.first_trace + failure.trace,
            "event": failure.row - int(starts[failure.trace]),
            "rule": failure.rule,
            "compared": failure.compared,
            "expected": failure.expected,
            "actual": failure.actual,
        }
        for failure in found.failures[:FAILURES_KEPT]
    ]
    lost = [node for node, _ in lost_disks(columns, config, None, task.path)]
    return {"failures": failures, "lost_disks": lost}


def _malformed(task: Task, group: RowGroup, problem: Problem) -> dict[str, Any]:
    counts = {"events": 0, "traces": 0, "malformed_events": group.rows, "malformed_traces": group.traces}
    said = {"path": problem.path, "expected": problem.expected, "seen": problem.seen, "do": problem.do}
    nothing = {"tallies": [], "failures": [], "lost_disks": [], "seconds": 0.0}
    return _row(task, group) | counts | nothing | {"problem": said}


def unreadable(path: str, mark: str, problem: Problem) -> dict[str, Any]:
    """The row of a file of which not even the row groups are known."""
    nothing = RowGroup(path, -1, 0, 0, 0)
    return _malformed(Task(mark, (nothing,)), nothing, problem)


def problem_of(row: Mapping[str, Any]) -> Problem:
    """What was wrong with a row group that is malformed."""
    return Problem(line=None, lost=row["malformed_events"], **row["problem"])


def _row(task: Task, group: RowGroup) -> dict[str, Any]:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    mine = {"worker": os.getpid(), "peak_bytes": peak}
    return {"path": task.path, "fingerprint": task.fingerprint, "row_group": group.index, **mine}

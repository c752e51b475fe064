"""Judge Parquet files of any number on Spark, and add up what the workers found.

Rules of this file

1. What comes in is counted from the footers before anything is judged; Totals.reconciles holds it against what came back.
2. A file that cannot be read is a problem, the others are judged.
3. With a directory for results, row groups whose rows stand there already are not judged again: an interrupted run goes
   on where it was. A file that changed since has another fingerprint and is judged anew.
"""

import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from tidegauge.spark_check.session import cores, session
from tidegauge.spark_check.totals import Totals, sum_rules
from tidegauge.spark_check.work import RESULT, TASK_EVENTS, Task, fingerprint, run_task, tasks_of
from tidegauge.traces.files.parquet import RowGroup, Unreadable, row_groups

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASKS_PER_CORE = 4
"""At least so many, so that a slow task does not leave the other cores idle for long,"""

FEWEST_EVENTS = 250_000
"""but none smaller than this: it would take longer to schedule than to judge."""

FAILURES_KEPT = 100
"""First failures returned; all are counted, and all that workers kept stand in the results."""


def judge_on_spark(
    paths: Sequence[str | Path],
    master: str = "local[2]",
    results: str | Path | None = None,
    spark: "SparkSession | None" = None,
) -> Totals:
    """Judge the row groups of `paths`, files or directories of .parquet files; leave rows in the directory `results`."""
    with ExitStack() as stack:
        running = spark if spark is not None else stack.enter_context(session(master))
        return _judge(running, files_in(paths), None if results is None else Path(results))


def files_in(paths: Iterable[str | Path]) -> list[str]:
    """The files, and the .parquet files of the directories, each once."""
    found: list[str] = []
    for path in map(Path, paths):
        inside = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        found.extend(str(file.absolute()) for file in inside)
    return list(dict.fromkeys(found))


def _judge(spark: "SparkSession", files: Sequence[str], results: Path | None) -> Totals:
    started = time.perf_counter()
    groups: dict[str, list[RowGroup]] = {}
    problems: list[str] = []
    for path in files:
        try:
            groups[path] = row_groups(path)
        except Unreadable as error:
            problems.append(str(error))
    wanted = {(fingerprint(path), group.index) for path in groups for group in groups[path]}
    done = [] if results is None else [row for row in stored(results) if (row["fingerprint"], row["row_group"]) in wanted]
    known = {(row["fingerprint"], row["row_group"]) for row in done}
    events = sum(group.rows for path in groups for group in groups[path])
    size = max(FEWEST_EVENTS, min(TASK_EVENTS, events // (TASKS_PER_CORE * cores(spark))))
    tasks: list[Task] = []
    for path, found in groups.items():
        mark = fingerprint(path)
        tasks += tasks_of(path, [group for group in found if (mark, group.index) not in known], size)
    rows = list(done)
    if tasks:
        if results is not None:
            results.mkdir(parents=True, exist_ok=True)
        target = None if results is None else str(results.absolute())
        # plain tasks: planning the same as a data source starts two Python processes first
        rows += spark.sparkContext.parallelize(tasks, len(tasks)).flatMap(lambda task: run_task(task, target)).collect()
    rows.sort(key=lambda row: (files.index(row["path"]), row["row_group"]))
    return Totals(
        files=len(files),
        unreadable_files=len(files) - len(groups),
        row_groups=len(wanted),
        resumed_row_groups=len(done),
        events_in=events,
        traces_in=sum(group.traces for path in groups for group in groups[path]),
        events_judged=sum(row["events"] for row in rows),
        traces_judged=sum(row["traces"] for row in rows),
        events_malformed=sum(row["malformed_events"] for row in rows),
        traces_malformed=sum(row["malformed_traces"] for row in rows),
        rules=sum_rules(rows),
        failures=tuple({"path": row["path"], **failure} for row in rows for failure in row["failures"])[:FAILURES_KEPT],
        problems=(*problems, *(row["problem"] for row in rows if row["problem"])),
        peak_bytes=max((row["peak_bytes"] for row in rows), default=0),
        seconds=time.perf_counter() - started,
    )


def stored(results: Path) -> list[dict[str, Any]]:
    """The rows an earlier run left, each row group once."""
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for path in sorted(results.glob("*.parquet")):
        for row in pq.read_table(path, schema=RESULT).to_pylist():
            rows[row["fingerprint"], row["row_group"]] = row
    return list(rows.values())

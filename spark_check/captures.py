"""Judges the paths of `tidegauge check --spark`: the report is that of one process.

Rules of this file

1. The row groups of Parquet files are tasks, in runs; of anything else each capture is a task.
2. A capture is a directory that holds the logs of a cluster. A directory of captures, however deep, is its captures.
3. A task reads its input by its path: the workers must see the same files.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tidegauge.conformance.judging.check import CheckOptions, Report, check
from tidegauge.conformance.judging.inputs import is_parquet
from tidegauge.conformance.judging.merged import merge_reports
from tidegauge.impl.errors import UsageError
from tidegauge.spark_check.arrow_path import ArrowPath
from tidegauge.spark_check.errors import task_failures
from tidegauge.spark_check.judging import files_in, judge_files
from tidegauge.spark_check.place import AnyPath, to_path
from tidegauge.spark_check.reports import report_of
from tidegauge.spark_check.session import session
from tidegauge.traces.kafka.lines.files import log_files

LOGS = ("logs", "log")
"""Folders of a node that may hold its logs."""


def check_on_spark(
    paths: Sequence[str | AnyPath], how: CheckOptions, master: str = "local[*]", results: str | AnyPath | None = None
) -> Report:
    """Judge the Parquet files and the captures below `paths`; rows about Parquet are left in `results`, and found there."""
    given = [to_path(path) for path in paths]
    of_parquet = [path for path in given if holds_parquet(path)]
    files = files_in(of_parquet)
    captures = [
        str(capture.absolute()) for path in given if path not in of_parquet for capture in captures_in(_on_disk(path))
    ]
    if files and how.selection is not None:
        raise UsageError(f"{files[0]}: expected broker logs to select topics or times from, seen Parquet")
    reports = []
    with session(master) as spark:
        if files:
            reports.append(report_of(judge_files(spark, files, results, how.profile), how))
        if captures:
            with task_failures(None):
                tasks = spark.sparkContext.parallelize(captures, len(captures))
                reports += tasks.map(lambda path: judge_capture(path, how)).collect()
    return merge_reports(reports, how.explained)


def holds_parquet(path: AnyPath) -> bool:
    """Return whether a path is a Parquet file, or a directory with .parquet files in it."""
    if path.is_dir():
        return any(path.glob("*.parquet"))
    return is_parquet(path) if isinstance(path, Path) else path.name.endswith(".parquet")


def _on_disk(path: AnyPath) -> Path:
    if isinstance(path, ArrowPath):
        seen = "none" if path.exists() else "nothing of that name"
        do = "what is no Parquet is taken from a path that every worker can open"
        raise UsageError(f"{path}: expected Parquet files, seen {seen}; {do}")
    return path


def judge_capture(path: str, how: CheckOptions) -> Report:
    """Return the report on one capture, without the traces: they would be sent to the driver."""
    return replace(check([path], how), judged=())


def captures_in(path: Path) -> Iterator[Path]:
    """Yield the directories that hold the logs of a cluster; the path itself if there is none in it."""
    below = list(_captures(path)) if path.is_dir() else []
    yield from below or [path]


def _captures(folder: Path) -> Iterator[Path]:
    inside = sorted(sub for sub in folder.iterdir() if sub.is_dir())
    node_folders = [folder, *inside, *(sub / name for sub in inside for name in LOGS)]
    if any(log_files(node_folder) for node_folder in node_folders if node_folder.is_dir()):
        yield folder
        return
    for sub in inside:
        yield from _captures(sub)

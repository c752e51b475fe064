"""Captures judged on Spark, one task per capture: the report is the one that `check` gives of them all.

Rules of this file

1. A capture is a directory that holds the logs of a cluster. A directory of captures, however deep, is its captures.
2. A task reads its capture from where it lies: the workers must see the same files.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tidegauge.conformance.judging.check import How, Report, check
from tidegauge.conformance.judging.side_by_side import merged
from tidegauge.spark_check.session import session
from tidegauge.traces.kafka.lines.files import log_files

LOGS = ("logs", "log")
"""Folders of a node that its logs may lie in."""


def check_on_spark(paths: Sequence[str | Path], how: How, master: str = "local[*]") -> Report:
    """Judge the captures below `paths`, each in a task of its own."""
    captures = [str(capture.absolute()) for path in paths for capture in captures_in(Path(path))]
    with session(master) as spark:
        reports = spark.sparkContext.parallelize(captures, len(captures)).map(lambda path: judged(path, how)).collect()
    return merged(reports, how.explained)


def judged(path: str, how: How) -> Report:
    """The report on one capture; what was read stays where it was judged."""
    return replace(check([path], how), judged=())


def captures_in(path: Path) -> Iterator[Path]:
    """The directories that hold the logs of a cluster; the path itself if there is none below it."""
    below = list(_captures(path)) if path.is_dir() else []
    yield from below or [path]


def _captures(folder: Path) -> Iterator[Path]:
    inside = sorted(sub for sub in folder.iterdir() if sub.is_dir())
    of_nodes = [folder, *inside, *(sub / name for sub in inside for name in LOGS)]
    if any(log_files(one) for one in of_nodes if one.is_dir()):
        yield folder
        return
    for sub in inside:
        yield from _captures(sub)

"""The judge as a Spark data source: one row per row group, judged where it is read.

    register(spark)
    spark.read.format("tidegauge").load("walks").createTempView("judged")    # a file, a directory, a glob, a list of them
    spark.sql("SELECT t.rule, sum(t.failed) FROM judged LATERAL VIEW explode(tallies) AS t GROUP BY t.rule")
    spark.readStream.format("tidegauge").option("results", "judged").load("walks")   # a directory that grows

Rules of this file

1. Spark distributes tasks, not rows: a partition is a run of row groups, read with pyarrow in the worker. Rows that pass
   through the JVM cost several times the judging.
2. The driver reads footers only.
3. A stream is read from the log of what arrived, so a batch that Spark runs again has the same files. Row groups that have
   a row in `results` are not judged again: that row is read.
4. A version of a file arrives once, under its fingerprint; a file that is replaced by a changed one arrives again.
5. A position in the log of arrivals is an offset of the stream. It is returned only after everything before it is on the
   disk. A line that was incomplete when its writer was killed has no position yet: the next writer removes it.
6. One process writes at a time. It keeps a fingerprint for each arrival in memory, and nothing else that grows.

A *mark* is the fingerprint of a file, which stands for its path, its content and the judge (spark_check.worker). An
*arrival* is a version of a file that was seen in the directory. A *position* is an offset in bytes in the log of arrivals, a
line of JSON each. A *look* is one listing of the directory. The *judge* is given by its fingerprint, a string. A *task* is a
run of row groups of one file that a worker judges; a row (`ResultRow`) is the result of one row group.
"""

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from tidegauge.spark_check.judging import files_in, paths_in, rows_in
from tidegauge.spark_check.result_row import SQL_SCHEMA, ResultRow, record_batch
from tidegauge.spark_check.storage import AnyPath, ArrowPath, local_path, open_parquet, to_path
from tidegauge.spark_check.worker import (
    TASK_EVENTS,
    Task,
    file_fingerprint,
    judge_fingerprint,
    run_task,
    tasks_of,
    unreadable_row,
    version_of,
)
from tidegauge.traces.formats.parquet import RowGroup, Unreadable
from tidegauge.util.errors import TidegaugeError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


FOLLOWED = "followed"
"""The folder in a directory of results that holds how far a stream has come."""
AT_ONCE = 256
"""Files that arrive with one look: their failures are published before the next ones are read."""


class Arrival(NamedTuple):
    """A version of a file that was seen in the directory; a line of the log."""

    path: str
    mark: str


class Arrivals:
    """The log of arrivals at `path`: its `end`, a position, and the `marks` of all arrivals."""

    def __init__(self, path: Path) -> None:
        """Read the log of arrivals that an earlier run has left, if there is one."""
        self.path = path
        self.end = 0
        self.marks: set[str] = set()
        if path.exists():
            with path.open("rb") as lines:
                for line in lines:
                    # A line without its end was torn by a kill: no position after it was returned.
                    if line.endswith(b"\n"):
                        self.end += len(line)
                        self.marks.add(_arrival(line).mark)

    def look(self, files: Iterable[AnyPath], judge: str, max_new: int = AT_ONCE) -> int:
        """Add those of the listed `files` that have not arrived in this version, `max_new` at most; return the new end."""
        new: dict[str, Arrival] = {}
        for path in files:
            # Enough for one batch: the others arrive with the next look.
            if len(new) == max_new:
                break
            try:
                mark = file_fingerprint(path, judge)
            except FileNotFoundError:  # gone since it was listed
                continue
            if mark not in self.marks:
                new[mark] = Arrival(str(path), mark)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if new:
            self._append(new.values())
            self.marks |= new.keys()
        self.path.touch()  # last_look must change even when nothing has arrived
        return self.end

    def between(self, start: int, end: int) -> list[Arrival]:
        """Return the arrivals between two positions. Raises TidegaugeError for a position that this log never returned."""
        if not start <= end <= self.end:
            raise TidegaugeError(
                f"{self.path}: expected the log of what arrived to reach {max(start, end)}, seen its end at {self.end}; "
                f"remove {self.path.parent} to begin again; what has been judged is not judged again"
            )
        if start == end:
            return []
        with self.path.open("rb") as log:
            log.seek(start)
            return [_arrival(line) for line in log.read(end - start).splitlines()]

    def _append(self, arrivals: Iterable[Arrival]) -> None:
        """Write arrivals to the log, and wait until they are on disk."""
        data = b"".join(json.dumps(arrival).encode() + b"\n" for arrival in arrivals)
        with self.path.open("ab") as log:
            # Removes the torn line of a killed writer; otherwise the first new line would continue it.
            log.truncate(self.end)
            log.write(data)
            log.flush()
            # Spark commits the position to its checkpoint: after a power failure it would ask for lines that are gone.
            os.fsync(log.fileno())
        self.end += len(data)


def log_in(results: str | Path) -> Path:
    """Return the path of the log of arrivals in a directory of results."""
    return Path(results) / FOLLOWED / "arrivals"


def last_look(results: str | Path) -> int:
    """Return when the log of arrivals in `results` was last written, in ns; each look changes it; 0 before the first."""
    log = log_in(results)
    return log.stat().st_mtime_ns if log.exists() else 0


def _arrival(line: bytes) -> Arrival:
    """Return the arrival of a line of the log."""
    return Arrival(*json.loads(line))


# ---------------------------------------------------------------------------------------------------------------------
# The data source


class JudgeSource(DataSource):
    """The data source that spark.read.format("tidegauge") names. Its options, all strings:

    `path`, a file, directory or glob, for a stream a directory; `paths`, a JSON list of them, which load([..]) makes;
    `results`, a directory for the rows; `profile`, which replaces the one that files name; `situations`, "true" to count
    those of the events (conformance.checking.situations). For a stream also `judge` (spark_check.worker.judge_fingerprint).
    """

    @classmethod
    def name(cls) -> str:
        """Return the name that format(...) takes."""
        return "tidegauge"

    def schema(self) -> str:
        """Return the columns of a ResultRow, in Spark's DDL."""
        return SQL_SCHEMA

    def reader(self, schema: StructType) -> "JudgeReader":  # noqa: ARG002
        """Return the reader of all row groups of the files that the options name; reads their footers.

        Spark's `schema` is that of `schema()`, as a user can name no other columns.
        """
        places = [*json.loads(self.options.get("paths", "[]")), *filter(None, [self.options.get("path")])]
        files = [file for place in places for file in files_named(place)]
        profile = self.options.get("profile")
        counts, results = _counts_situations(self.options), self.options.get("results")
        judge = judge_fingerprint(profile, situations=counts)
        parts: list[Task | list[ResultRow]] = []
        # A file that is named twice is judged once.
        for path in dict.fromkeys(files):
            # Only results that are kept need a mark by content, for which the file must be read.
            mark = file_fingerprint(path, judge) if results else version_of(path)
            try:
                parts += tasks_of(mark, _row_groups(path), TASK_EVENTS, profile, situations=counts)
            except Unreadable as error:
                parts.append([unreadable_row(path, mark, error.problem)])
        return JudgeReader(parts, results)

    def streamReader(self, schema: StructType) -> "JudgeStream":  # noqa: ARG002, N802
        """Return the reader of a stream for these options."""
        return JudgeStream(dict(self.options))


class JudgeReader(DataSourceReader):
    """The reader of a batch query. A part becomes a partition: a task to run, or rows that are known already."""

    def __init__(self, parts: "list[Task | list[ResultRow]]", results: str | None) -> None:
        """Take the parts, and the directory in which tasks leave their rows, if any."""
        self.parts, self.results = parts, results

    def partitions(self) -> list[InputPartition]:
        """Return one partition per task, and one for each file that cannot be read: its row says why."""
        return [InputPartition(part) for part in self.parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition, in a worker: its row groups are judged here."""
        yield from _rows_of(partition.value, self.results)


class JudgeStream(DataSourceStreamReader):
    """The reader of a streaming query over files that arrive in a directory. Its cached properties stay on the driver."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """Check the options of the stream. Raises UsageError."""
        if "results" not in options:
            raise UsageError("format('tidegauge'): expected the option results of a stream, seen none; name a directory")
        self.path, self.results = options["path"], str(local_path(options["results"], "the results of a stream").absolute())
        self.profile, self.situations = options.get("profile"), _counts_situations(options)
        self._judge = options.get("judge")

    @cached_property
    def judge(self) -> str:
        """The fingerprint of the judge, given as an option or computed."""
        return self._judge or judge_fingerprint(self.profile, situations=self.situations)

    @cached_property
    def arrivals(self) -> Arrivals:
        """The log of what arrived."""
        return Arrivals(log_in(self.results))

    @cached_property
    def finished(self) -> dict[str, list[AnyPath]]:
        """The files of results that were there before this stream began, by the mark in their name (Task.name)."""
        files: dict[str, list[AnyPath]] = defaultdict(list)
        for path in to_path(self.results).glob("*.parquet"):
            files[path.name.partition("-")[0]].append(path)
        return files

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Return the position before the first arrival."""
        return {"position": 0}

    def latestOffset(self) -> dict[str, int]:  # type: ignore[override]  # noqa: N802  as Spark 4.0 has it, and later ones take it
        """Look at the directory; return the position after everything that has arrived."""
        return {"position": self.arrivals.look(paths_in([self.path]), self.judge)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """Return the partitions of a batch: the files that arrived between two positions (JudgeReader says what one is)."""
        arrived = self.arrivals.between(start["position"], end["position"])
        return [InputPartition(part) for arrival in arrived for part in self._parts(arrival)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition, in a worker: its row groups are judged here."""
        yield from _rows_of(partition.value, self.results)

    def _parts(self, arrival: Arrival) -> Iterator[Task | list[ResultRow]]:
        """Yield the rows of an arrived file that an earlier run judged, if any, then tasks for its other row groups."""
        path, mark = arrival
        try:
            if file_fingerprint(path, self.judge) != mark:
                return  # the file was replaced: its new version arrives by itself
            groups = _row_groups(path)
        except FileNotFoundError:
            return  # the file was removed since it arrived
        except Unreadable as error:
            # One row all the same: the file has arrived, and the report counts it.
            yield [unreadable_row(path, mark, error.problem)]
            return
        judged = {row.row_group: row for row in rows_in(self.finished.get(mark, ())) if row.fingerprint == mark}
        if judged:
            yield list(judged.values())
        left = [group for group in groups if group.index not in judged]
        yield from tasks_of(mark, left, TASK_EVENTS, self.profile, situations=self.situations)


def _counts_situations(options: Mapping[str, str]) -> bool:
    """Return whether the option `situations` is "true"."""
    return options.get("situations", "").lower() == "true"


def files_named(place: str) -> list[str]:
    """Return the Parquet files that a path, a URI, a directory or a glob names. Raises UsageError where there is none."""
    path = to_path(place)
    # A file or directory of exactly that name comes before a glob: a name may have a * in it.
    if path.exists():
        files = files_in([path])
    elif isinstance(path, ArrowPath):
        # In a store of objects the last part may be a pattern.
        directory, _, pattern = place.rpartition("/")
        files = [str(file) for file in to_path(directory).glob(pattern)]
    else:
        # Path.glob takes no absolute pattern.
        files = files_in(sorted(glob(place, recursive=True)))  # noqa: PTH207
    if not files:
        raise UsageError(
            f"{place}: expected Parquet files, a directory of them or a pattern of names; seen none; check the path"
        )
    return files


def _rows_of(part: "Task | list[ResultRow]", results: str | None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part, each as a record batch: of a task they are judged now, and left in `results` if given."""
    for row in run_task(part, results) if isinstance(part, Task) else part:
        yield record_batch([row])


def _row_groups(path: str) -> list[RowGroup]:
    """Return the row groups of a file, from its footer. Raises Unreadable."""
    with open_parquet(path) as opened:
        return opened.row_groups()


def register(spark: "SparkSession") -> None:
    """Register the data source with a session, which then knows format("tidegauge")."""
    spark.dataSource.register(JudgeSource)

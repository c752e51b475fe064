"""The judge as a Spark data source: one row per row group, judged where it is read.

    register(spark)
    spark.read.format("tidegauge").load("walks.parquet").createTempView("judged")
    spark.sql("SELECT t.rule, sum(t.failed) FROM judged LATERAL VIEW explode(tallies) AS t GROUP BY t.rule")

Rules of this file

1. Spark distributes tasks, not rows: a partition is a run of row groups, read with pyarrow in the worker. Rows that pass
   through the JVM cost several times the judging.
2. The driver reads footers only.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from spark_check.work import Task, run_task, tasks_of
from traces.parquet import RowGroup, row_groups

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASK_EVENTS = 2_000_000
"""Events per task where there are plenty: a fraction of a second of judging against some ten ms of scheduling."""

SCHEMA = """
    path string, fingerprint string, row_group int, events bigint, traces bigint,
    malformed_events bigint, malformed_traces bigint, problem string,
    tallies array<struct<rule: string, held: bigint, failed: bigint, undecided: bigint, failed_traces: bigint,
                         missing: array<string>>>,
    failures array<struct<trace: bigint, event: bigint, rule: string, compared: string, expected: bigint, actual: bigint>>,
    seconds double, worker int, peak_bytes bigint
"""


class JudgeSource(DataSource):
    """format("tidegauge"). Options: `path` a file, or `tasks` (JSON) what was planned elsewhere; `results` a directory."""

    @classmethod
    def name(cls) -> str:
        """What stands in format(...)."""
        return "tidegauge"

    def schema(self) -> str:
        """One row per row group."""
        return SCHEMA

    def reader(self, schema: StructType) -> "JudgeReader":  # noqa: ARG002
        """The reader for these options."""
        options = self.options
        if "tasks" in options:
            return JudgeReader(tasks_from_json(options["tasks"]), options.get("results"))
        path = options["path"]
        return JudgeReader(tasks_of(path, row_groups(path), TASK_EVENTS), options.get("results"))


class JudgeReader(DataSourceReader):
    """Hands each task to a worker."""

    def __init__(self, tasks: list[Task], results: str | None) -> None:
        self.tasks = tasks
        self.results = results

    def partitions(self) -> list[InputPartition]:
        """One partition per task."""
        return [InputPartition(task) for task in self.tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Judge the row groups of a partition."""
        yield from run_task(partition.value, self.results)


def register(spark: "SparkSession") -> None:
    """Make format("tidegauge") known to a session."""
    spark.dataSource.register(JudgeSource)


def tasks_as_json(tasks: list[Task]) -> str:
    """Tasks as an option, which is text."""
    return json.dumps([asdict(task) for task in tasks])


def tasks_from_json(text: str) -> list[Task]:
    """The tasks in an option."""
    found: list[dict[str, Any]] = json.loads(text)
    return [Task(task["fingerprint"], tuple(RowGroup(**group) for group in task["groups"])) for task in found]

"""The judge as a Spark data source: one row per row group, judged where it is read.

    register(spark)
    spark.read.format("tidegauge").load("walks.parquet").createTempView("judged")
    spark.sql("SELECT t.rule, sum(t.failed) FROM judged LATERAL VIEW explode(tallies) AS t GROUP BY t.rule")

Rules of this file

1. Spark distributes tasks, not rows: a partition is a run of row groups, read with pyarrow in the worker. Rows that pass
   through the JVM cost several times the judging.
2. The driver reads footers only.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from tidegauge.spark_check.work import TASK_EVENTS, Task, batch, run_task, tasks_of
from tidegauge.traces.files.parquet import row_groups

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = """
    path string, fingerprint string, row_group int, events bigint, traces bigint,
    malformed_events bigint, malformed_traces bigint,
    problem struct<path: string, expected: string, seen: string, do: string>, lost_disks array<int>,
    tallies array<struct<rule: string, held: bigint, failed: bigint, undecided: bigint, failed_traces: bigint,
                         missing: array<string>>>,
    failures array<struct<trace: bigint, event: bigint, rule: string, compared: string, expected: bigint, actual: bigint>>,
    seconds double, worker int, peak_bytes bigint
"""


class JudgeSource(DataSource):
    """format("tidegauge"). Options: `path` a file, `results` a directory for the rows."""

    @classmethod
    def name(cls) -> str:
        """What stands in format(...)."""
        return "tidegauge"

    def schema(self) -> str:
        """One row per row group."""
        return SCHEMA

    def reader(self, schema: StructType) -> "JudgeReader":  # noqa: ARG002
        """The reader for these options."""
        path = self.options["path"]
        return JudgeReader(tasks_of(path, row_groups(path), TASK_EVENTS), self.options.get("results"))


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
        for row in run_task(partition.value, self.results):
            yield batch([row])


def register(spark: "SparkSession") -> None:
    """Make format("tidegauge") known to a session."""
    spark.dataSource.register(JudgeSource)

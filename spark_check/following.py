"""`check --spark --follow`: a directory in which Parquet files arrive, judged as they do. The report at the end.

Rules of this file

1. Spark's checkpoint and the log of what arrived stand in the directory of results. A command that was killed goes on from
   there: nothing is lost, what was judged is not judged again, what may not have been said is said.
2. The report is made of what stands in the results, by the run that `check --spark` makes: it is the same.
3. Whoever ends it waits for the batch that has begun. What nobody has looked at by then waits for the same command.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tidegauge.conformance.judging.check import CheckOptions, Report
from tidegauge.impl.errors import UsageError
from tidegauge.spark_check.arrivals import FOLLOWED, Arrivals, last_look, log_in
from tidegauge.spark_check.errors import task_failures
from tidegauge.spark_check.judging import files_in, run
from tidegauge.spark_check.news import Broken, Tallied
from tidegauge.spark_check.place import AnyPath, at, on_a_path
from tidegauge.spark_check.reports import report_of
from tidegauge.spark_check.result_row import ResultRow
from tidegauge.spark_check.session import session
from tidegauge.spark_check.work import fingerprint, judge_by
from tidegauge.spec.interrupts import noted_interrupts
from tidegauge.traces.files.replacing import directory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LOOK = "1 second"
"""Between two looks at the directory."""
POLL = 0.1
"""Seconds between two looks at who wants the end."""

BEGUN = 5
"""Times that a query is begun: Spark gives its Python process on the driver ten seconds, too little on a busy machine."""

Say: TypeAlias = Callable[[str], None]


@dataclass
class Batches:
    """What Spark gives each batch to."""

    tallied: Tallied
    say: Say
    note: Say
    ended: int = 0
    failed: Exception | None = None

    def take(self, batch: "DataFrame", _number: int) -> None:
        """Say what is news. A batch that fails is not committed: Spark is to see that, and who waits for the query."""
        try:
            # one action: each would judge anew
            for news in self.tallied.take(ResultRow.from_dict(row.asDict(recursive=True)) for row in batch.collect()):
                (self.say if isinstance(news, Broken) else self.note)(str(news))
        except Exception as error:
            self.failed = error
            raise
        self.ended += 1


def follow_on_spark(
    path: str | Path, how: CheckOptions, master: str, results: str | Path, idle: float | None, say: Say, note: Say
) -> Report:
    """Judge what arrives until nothing came for `idle` seconds, or a signal. `say` is told what fails, `note` the rest."""
    folder, target = at(path), on_a_path(results, "--results of what is followed")
    _refuse(folder, target)
    with session(master) as spark:
        return followed(spark, folder, how, directory(target).absolute(), idle, say, note)


def followed(
    spark: "SparkSession", folder: AnyPath, how: CheckOptions, results: Path, idle: float | None, say: Say, note: Say
) -> Report:
    """The same in a session that runs."""
    judge = judge_by(how.profile)
    with noted_interrupts() as asked:
        with task_failures(results), _quiet():
            batches = Batches(Tallied(how), say, note)
            before, query = last_look(results), _query(spark, folder, results, how, judge, batches)
            since, begun = time.monotonic(), 1
            while not asked and not (idle is not None and time.monotonic() - since >= idle):
                if not _goes_on(query, batches, again=begun < BEGUN and last_look(results) == before):
                    begun, query = begun + 1, _query(spark, folder, results, how, judge, batches)
                if query.status["isDataAvailable"] or last_look(results) == before:
                    since = time.monotonic()
            _stop(query, batches)
        files = files_in([folder])
        marks = Arrivals(log_in(results)).marks
        looked_at = [file for file in files if fingerprint(file, judge) in marks] if asked else files
        report = report_of(run(spark, looked_at, results, how.profile), how)
    left = len(files) - len(looked_at)
    notes = (f"{left:,} files came that were not judged; the same command goes on with them",) if left else ()
    return replace(report, notes=(*report.notes, *notes))


@contextmanager
def _quiet() -> Iterator[None]:
    """What a batch fails with is raised; Py4J need not print it as well."""
    log = logging.getLogger("py4j.clientserver")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)


def _refuse(folder: AnyPath, results: Path) -> None:
    """Raise UsageError for what cannot be followed."""
    if not folder.is_dir():
        seen = "a file" if folder.exists() else "nothing of that name"
        raise UsageError(f"{folder}: expected a directory that Parquet files are renamed into, seen {seen}")
    if results.absolute() == folder.absolute():
        raise UsageError(f"{folder}: expected --results in another directory, seen it in the one that is followed")
    inside = sorted(one.name for one in folder.iterdir() if not one.name.startswith("."))
    if inside and not any(name.endswith(".parquet") for name in inside):
        raise UsageError(
            f"{folder}: expected Parquet files, which alone are followed on Spark, or nothing yet, seen {inside[0]}; "
            "follow one file of NDJSON without --spark, or have it converted (tidegauge convert) and renamed into place"
        )


def _query(
    spark: "SparkSession", folder: AnyPath, results: Path, how: CheckOptions, judge: str, batches: Batches
) -> "StreamingQuery":
    from tidegauge.spark_check.source import register  # noqa: PLC0415  it needs PySpark

    register(spark)
    options = {"path": str(folder.absolute()), "results": str(results), "judge": judge}
    if how.profile is not None:
        options["profile"] = how.profile
    rows = spark.readStream.format("tidegauge").options(**options).load()
    checkpoint = (results / FOLLOWED / "checkpoint").as_uri()
    written = rows.writeStream.foreachBatch(batches.take).option("checkpointLocation", checkpoint)
    return written.trigger(processingTime=LOOK).start()


def _goes_on(query: "StreamingQuery", batches: Batches, again: bool = False) -> bool:
    """Wait a moment. Raises what the query failed with; False if it is to begin `again`."""
    from pyspark.errors import StreamingQueryException  # noqa: PLC0415  optional

    try:
        query.awaitTermination(POLL)  # type: ignore[arg-type]  # it takes fractions of a second
    except StreamingQueryException as error:
        if not again:
            raise (batches.failed or error) from error
        return False
    return True


def _stop(query: "StreamingQuery", batches: Batches) -> None:
    """When the batch that has begun has ended."""
    before = batches.ended
    while query.isActive and query.status["isTriggerActive"] and batches.ended == before:
        _goes_on(query, batches)
    query.stop()

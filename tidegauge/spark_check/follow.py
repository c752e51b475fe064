"""`check --spark --follow`: a directory in which Parquet files arrive, judged as they do, and the report at the end.

Rules of this file

1. Spark's checkpoint and the log of arrivals are in the directory of results. A command that was killed goes on from there:
   no file is lost, none is judged again, and news that may not have been printed are printed again.
2. The report is made from the results, by the run that `check --spark` makes: it is the same.
3. At the end the batch that has begun is finished. Files that arrived after the last look are left to the next run.
4. Memory between batches is a tally per rule, however many files came.

A *batch* is the row groups that one trigger of the Spark query judges. *News* is what is printed while the command runs: a
failure, a problem, or how much was judged. The *log of arrivals* lists the files that have come (spark_check.source); a
*look* is one listing of the directory. `how` are the options of the check: `how.profile` replaces the profile that files
name, `how.situations` asks to count situations for coverage. A *tally* is the counts of one rule's checks. A row
(`ResultRow`) is the result of one row group: tallies by rule, first failures, and a problem where it could not be judged.

`follow` runs the loop: within `source.reading()` it calls `poll` and `wait` until nothing has arrived (`arrived()`) for the
idle time, or a signal has come (`interrupted`); then `end` and `report`.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tidegauge.conformance.checking.check import CheckOptions, Report
from tidegauge.conformance.engine.judge import RuleTally, add_tallies, judge
from tidegauge.conformance.explain.explain import Explanation, explain
from tidegauge.conformance.follow.loop import FailureNews, News, Publish, Source, explained_text, follow, publisher
from tidegauge.spark_check.check import report_of
from tidegauge.spark_check.judging import files_in, judge_files, sum_rules
from tidegauge.spark_check.result_row import ResultRow
from tidegauge.spark_check.session import session, task_failures
from tidegauge.spark_check.source import FOLLOWED, Arrivals, last_look, log_in
from tidegauge.spark_check.storage import AnyPath, local_path, open_parquet, to_path
from tidegauge.spark_check.worker import file_fingerprint, judge_fingerprint
from tidegauge.traces.formats.parquet import Unreadable
from tidegauge.util.errors import UsageError
from tidegauge.util.files import directory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

TRIGGER = "1 second"
"""Between two looks of Spark at the directory."""
STARTS = 5
"""Times that a query is started: Spark gives its Python process on the driver ten seconds, too little on a busy machine."""


def follow_on_spark(
    path: str | Path,
    how: CheckOptions,
    master: str,
    results: str | Path,
    idle: float | None,
    say: Callable[[str], None],
    note: Callable[[str], None],
) -> Report:
    """Judge the Parquet files that arrive in the directory `path` until none came for `idle` seconds, or until a signal.

    `idle` None: only a signal ends it. `results` is the directory for rows, checkpoint and log of arrivals. `say` prints
    failures, `note` all other news. Raises UsageError for what cannot be followed.
    """
    folder, target = to_path(path), local_path(results, "--results of what is followed")
    _check_folders(folder, target)
    with session(master) as spark:
        source = ParquetArrivals(spark, folder, how, directory(target).absolute(), publisher(say, note))
        return follow(source, idle)


def _check_folders(folder: AnyPath, results: Path) -> None:
    """Raise UsageError for a `folder` that cannot be followed, or for a directory of results that is the same."""
    if not folder.is_dir():
        seen = "a file" if folder.exists() else "nothing of that name"
        raise UsageError(f"{folder}: expected a directory that Parquet files are renamed into, seen {seen}")
    if results.absolute() == folder.absolute():
        raise UsageError(
            f"{folder}: expected --results in another directory, seen the directory that is followed; name another"
        )
    inside = sorted(file.name for file in folder.iterdir() if not file.name.startswith("."))
    # An empty directory is fine: files may arrive later. One with other files is probably the wrong one.
    if inside and not any(name.endswith(".parquet") for name in inside):
        raise UsageError(
            f"{folder}: expected Parquet files, the only ones that are followed on Spark, or nothing yet, seen {inside[0]}; "
            "follow one file of NDJSON without --spark, or convert it (tidegauge convert) and rename it into place"
        )


class ParquetArrivals(Source):
    """A directory of Parquet files, which a query of Structured Streaming reads and judges in batches."""

    def __init__(self, spark: "SparkSession", folder: AnyPath, how: CheckOptions, results: Path, publish: Publish) -> None:
        """Keep what the query needs; `results` is the directory for rows, `publish` is called with each piece of news."""
        super().__init__(publish)
        self.spark = spark
        self.folder = folder
        self.how = how
        self.results = results
        self.judge = judge_fingerprint(how.profile, situations=how.situations)
        self._tally = RunningTally(how)
        self._batches_ended = 0
        self._batch_failure: Exception | None = None
        self._starts = 0
        self._last_look_before = 0
        self._query: StreamingQuery

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Start the query, for the block in which the loop of `follow` polls it. Raises SparkFailed if it fails for good."""
        with task_failures(self.results), _silent_py4j():
            self._last_look_before = last_look(self.results)
            self._start_query()
            self.arrived()
            yield

    def poll(self) -> bool:
        """Note an arrival if Spark has files to judge. Return False: Spark judges them itself, nothing is read here."""
        # Until Spark's first look at the directory nobody knows whether something came, so the time idle must not begin.
        if self._query.status["isDataAvailable"] or not self._has_looked():
            self.arrived()
        return False

    def wait(self, seconds: float) -> None:
        """Wait so many seconds for the query; start it again if it failed before its first look at the directory.

        Only then, and STARTS times in all: the reason is a machine that was too busy to start the query in time.
        """
        self._wait(seconds, may_restart=self._starts < STARTS and not self._has_looked())

    def _wait(self, seconds: float, *, may_restart: bool) -> None:
        """Wait so many seconds; if the query fails meanwhile, start it again (`may_restart`) or raise the reason."""
        from pyspark.errors import StreamingQueryException  # noqa: PLC0415  optional

        # Returns after these seconds while the query runs; raises when it has failed.
        try:
            self._query.awaitTermination(seconds)  # type: ignore[arg-type]  # it takes fractions of a second
        except StreamingQueryException as error:
            # What the batch raised is the reason; the error of the query only quotes it.
            if not may_restart:
                raise (self._batch_failure or error) from error
            self._start_query()

    def end(self) -> None:
        """Stop the query after the batch that has begun, if one has."""
        before = self._batches_ended
        # While a batch is being judged, and until it has ended.
        while self._query.isActive and self._query.status["isTriggerActive"] and self._batches_ended == before:
            self._wait(0.1, may_restart=False)
        self._query.stop()

    def report(self) -> Report:
        """Return the report on all files of the directory; those not judged yet are judged now, but not after a signal."""
        files = files_in([self.folder])
        marks = Arrivals(log_in(self.results)).marks
        # After a signal nobody wants to wait for files that arrived since the last look.
        looked_at = [file for file in files if file_fingerprint(file, self.judge) in marks] if self.interrupted else files
        report = report_of(
            judge_files(self.spark, looked_at, self.results, self.how.profile, situations=self.how.situations), self.how
        )
        # A note if files are left, which only a signal leaves.
        left = len(files) - len(looked_at)
        notes = (f"{left:,} files came that were not judged; the same command goes on with them",) if left else ()
        return replace(report, notes=(*report.notes, *notes))

    def _has_looked(self) -> bool:
        """Return whether Spark has listed the directory since this command started."""
        return last_look(self.results) != self._last_look_before

    def _start_query(self) -> None:
        """Start the streaming query, which calls `_take` with the rows of each batch."""
        from tidegauge.spark_check.source import register  # noqa: PLC0415  it needs PySpark

        self._starts += 1
        register(self.spark)
        options = {"path": str(self.folder.absolute()), "results": str(self.results), "judge": self.judge}
        if self.how.profile is not None:
            options["profile"] = self.how.profile
        if self.how.situations:
            options["situations"] = "true"
        rows = self.spark.readStream.format("tidegauge").options(**options).load()
        checkpoint = (self.results / FOLLOWED / "checkpoint").as_uri()
        written = rows.writeStream.foreachBatch(self._take).option("checkpointLocation", checkpoint)
        self._query = written.trigger(processingTime=TRIGGER).start()

    def _take(self, batch: "DataFrame", _number: int) -> None:
        """Publish what is news in the rows of a batch, in a thread of Spark, which commits the batch afterwards.

        An exception is raised, so that Spark commits nothing, and kept for the loop, which has no other way to see it.
        """
        try:
            # One action of Spark only, the collect: each one would judge the files again.
            for news in self._tally.take(ResultRow.from_dict(row.asDict(recursive=True)) for row in batch.collect()):
                self.publish(news)
        except Exception as error:
            self._batch_failure = error
            raise
        self._batches_ended += 1


@contextmanager
def _silent_py4j() -> Iterator[None]:
    """Keep Py4J from logging the exceptions of a batch while the block runs: the loop raises them."""
    log = logging.getLogger("py4j.clientserver")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)


@dataclass(frozen=True)
class RowGroupFailure(FailureNews):
    """A rule that fails in so many traces of a row group; the first time with an explanation, as the report has it."""

    rule: str
    where: str
    traces: int
    explanation: Explanation | None = None

    def __str__(self) -> str:
        """Return the failure as it is printed: a line, or the explanation in several."""
        if self.explanation is None:
            return f"{self.rule:<10}fails in {self.traces:,} traces of {self.where}"
        return explained_text(self.rule, self.explanation)


@dataclass
class RunningTally:
    """What was judged so far: how much, and the tally of each rule."""

    how: CheckOptions
    files: int = 0
    traces: int = 0
    events: int = 0
    rules: dict[str, RuleTally] = field(default_factory=dict)

    def take(self, rows: Iterable[ResultRow]) -> Iterator[News]:
        """Add the rows of a batch; yield what is news in them, and at last the totals so far."""
        rows = sorted(rows, key=lambda row: (row.path, row.row_group))
        # A batch of files that were all removed meanwhile is no news.
        if not rows:
            return
        for row in rows:
            if row.problem:
                yield row.to_problem()
            # Before the row is added: a rule that fails for the first time is explained.
            yield from self._failures(row)
            tallies = sum_rules([row])
            self.rules |= {rule: add_tallies(self.rules.get(rule, RuleTally()), tally) for rule, tally in tallies.items()}
        # A fingerprint is that of a file.
        self.files += len({row.fingerprint for row in rows})
        self.traces += sum(row.traces for row in rows)
        self.events += sum(row.events for row in rows)
        broken = [rule for rule, tally in sorted(self.rules.items()) if tally.failed]
        so_far = f"{self.files:,} files, {self.traces:,} traces, {self.events:,} events judged"
        yield f"{so_far}; broken: {', '.join(broken)}" if broken else so_far

    def _failures(self, row: ResultRow) -> Iterator[RowGroupFailure]:
        """Yield the rules that fail in a row group, with an explanation where the rule has failed in no earlier one."""
        failing = {tally.rule: tally.failed_traces for tally in row.tallies if tally.failed}
        # Rules that have not failed before.
        new_rules = [rule for rule in failing if not self.rules.get(rule, RuleTally()).failed]
        explained = _explained(row, new_rules, self.how) if new_rules else {}
        for rule, traces in failing.items():
            yield RowGroupFailure(rule, row.where, traces, explained.get(rule))


def _explained(row: ResultRow, rules: Iterable[str], how: CheckOptions) -> dict[str, Explanation]:
    """Judge a row group once more, on the driver, and return an explanation of the first failure of each of these rules.

    Workers send counts and no events, and an explanation needs the events.
    """
    try:
        with open_parquet(row.path) as opened:
            config = opened.config if how.profile is None else replace(opened.config, profile=how.profile)
            columns = opened.read(row.row_group)
    except Unreadable:
        # The file was replaced or removed since it was judged: the failure is published without an explanation.
        return {}
    # Reversed, so that the first failure of each rule is the one that stays.
    failures = {failure.rule: failure for failure in reversed(judge(columns, config).failures)}
    return {rule: explain(columns, config, failures[rule], source=row.where) for rule in rules if rule in failures}

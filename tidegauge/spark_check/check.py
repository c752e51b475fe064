"""`check --spark`: the report that one process would give, from inputs that were judged on Spark.

In: paths of Parquet files and of captures, and the options of `tidegauge check`. Out: a `Report`. A *capture* is a directory
with the logs of a cluster's nodes. A *row* (`ResultRow`) is what a worker made of one row group of a Parquet file: counts of
checks per rule (a *tally*), first failures, and a problem where it could not be judged. A *run* (`SparkRun`) has all rows;
`run.heads` has the footer of each file by its path, `run.unreadable` the problem of each other file, `run.resumed` is how
many rows an earlier run had left. `how` (`CheckOptions`) are the options of the check: `how.profile` replaces the profile
that files name, `how.explained` is how many failures to explain, `how.situations` whether to count situations for coverage.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cache, partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tidegauge.conformance.checking.check import (
    CheckedInput,
    CheckOptions,
    JudgedBatch,
    Report,
    check_in_worker,
    explain_failures,
    merge_reports,
    overall_verdict,
    report_without_failures,
)
from tidegauge.conformance.checking.inputs import LOGS, InputBatch, is_parquet
from tidegauge.conformance.checking.situations import added
from tidegauge.conformance.checking.verdicts import lost_disk_notes, rule_verdicts, run_verdict
from tidegauge.conformance.engine.judge import RuleTally, add_tallies, judge
from tidegauge.conformance.judge.fields import RULE_IDS
from tidegauge.spark_check.judging import SparkRun, files_in, judge_files, sum_rules
from tidegauge.spark_check.result_row import ResultRow
from tidegauge.spark_check.session import is_local, session, task_failures
from tidegauge.spark_check.storage import (
    AnyPath,
    ArrowPath,
    copy_files,
    is_file_name,
    open_parquet,
    to_path,
    writable_directory,
)
from tidegauge.spark_check.worker import atomic_write, file_fingerprint, judge_fingerprint, remove_leftovers
from tidegauge.traces.kafka_logs.discovery.files import log_files
from tidegauge.traces.kafka_logs.discovery.folders import FolderWalk
from tidegauge.traces.kafka_logs.parsing.lines import could_not_be_read
from tidegauge.traces.problems import Problem
from tidegauge.traces.schema import MISSING
from tidegauge.util.errors import UsageError
from tidegauge.util.files import remove_unused, working_directory
from tidegauge.util.input_limits import follows_links, longest_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The report on Parquet files that were judged on Spark.
#
# 1. The report is the one of one process: the same rules, inputs and explanations, in the same order.
# 2. Workers return counts. Row groups whose failures are explained are judged once more on the driver: they are few.


_NO_CHECKS = rule_verdicts({rule: RuleTally() for rule in RULE_IDS})


def report_of(run: SparkRun, how: CheckOptions) -> Report:
    """Return the report on a run over Parquet files; `how` are the options of the check."""
    inputs = tuple(_input(run, path, how) for path in run.files)
    # The tally of each rule over all inputs; an input has a verdict for each rule.
    tallies = {rule: RuleTally() for rule in RULE_IDS}
    for checked_input in inputs:
        tallies = {verdict.rule.id: add_tallies(tallies[verdict.rule.id], verdict.tally) for verdict in checked_input.rules}
    judged = tuple(_failing(run.rows, how))
    # Nodes whose disks lost records, each with the row group that shows it.
    lost = [(node, row.where) for row in run.rows for node in row.lost_disks]
    resumed = [f"{run.resumed:,} of {len(run.rows):,} row groups had been judged before"] if run.resumed else []
    return Report(
        inputs=inputs,
        verdict=overall_verdict(inputs),
        rules=rule_verdicts(tallies),
        explanations=tuple(explain_failures(judged, how.explained)),
        failures=sum(tally.failed_traces for tally in tallies.values()),
        seconds=run.seconds,
        notes=(*lost_disk_notes(lost), *resumed),
    )


def _input(run: SparkRun, path: str, how: CheckOptions) -> CheckedInput:
    """Return what the report says of the Parquet file `path`, from the rows of its row groups."""
    # Its footer could not be read: an input with a problem, and nothing judged.
    if path not in run.heads:
        return CheckedInput(path, "Parquet", traces=0, events=0, problems=(run.unreadable[path],), rules=_NO_CHECKS)
    rows = [row for row in run.rows if row.path == path]
    config = run.heads[path].config
    # What the source says that it lacks as a whole.
    missing = tuple(config.extra.get(MISSING, ()))
    # Rows have only the rules that events called for; a report has all.
    rules = rule_verdicts({rule: RuleTally() for rule in RULE_IDS} | sum_rules(rows))
    events = sum(row.events for row in rows)
    problems = tuple(row.to_problem() for row in rows if row.problem)
    return CheckedInput(
        path=path,
        kind="Parquet",
        traces=sum(row.traces for row in rows),
        events=events,
        problems=problems,
        missing=missing,
        rules=rules,
        verdict=run_verdict(rules, events, whole=not missing and not problems),
        situations=added(row.seen for row in rows),
        profiles=frozenset({how.profile or config.profile}) if how.situations else frozenset(),
    )


def _failing(rows: Sequence[ResultRow], how: CheckOptions) -> Iterator[JudgedBatch]:
    """Judge the first row groups with failures again, until there are as many failures as the options want explained.

    An explanation needs the events, which the workers have not sent.
    """
    explained = 0
    for row in rows:
        if row.failures and explained < how.explained:
            with open_parquet(row.path) as opened:
                config = opened.config if how.profile is None else replace(opened.config, profile=how.profile)
                batch = InputBatch(row.where, opened.read(row.row_group), config)
            judgement = judge(batch.columns, config)
            explained += len(judgement.failures)
            yield JudgedBatch(batch, judgement, row.path)


# The paths of `tidegauge check --spark`.
#
# 1. The row groups of Parquet files are tasks, in runs; of anything else each capture is a task. A large one is first split,
#    each range of bytes a task, then each share of its partitions is one (conformance.checking.sharded).
# 2. A capture is a directory that holds the logs of a cluster. A directory of captures, however deep, is its captures.
# 3. A task reads its input by its path: the workers must see the same files. The split logs are in the directory of results,
#    or on the disk of the one machine of a local master; without either a large capture is one task, too.
# 4. A share without a failure is kept in the directory of results, and not judged again; until all are, what is split, too.
# 5. Readers of logs open paths. What lies at a URI is first copied to where split logs are, each file a task, and judged
#    there: copying takes a small part of the time that judging does. A report names the URI.


LOG_FOLDERS = ("logs", "log")
"""Folders of a node that may hold its logs."""
KEPT, SPLIT, COPIED = ".share", ".split", ".copied-"
"""How files with the results of a share end; how names of folders begin with split logs, and with copied ones."""
DEEPEST = 8
"""Folders below a capture whose files a kept result depends on: more than any reader goes down."""


def check_on_spark(
    paths: Sequence[str | AnyPath], how: CheckOptions, master: str = "local[*]", results: str | AnyPath | None = None
) -> Report:
    """Judge the Parquet files and the captures below `paths` on the Spark master.

    `results` is a directory for the rows about Parquet, and for shares of large captures: row groups and shares that are
    there already are not judged again.
    """
    inputs = [to_path(path) for path in paths]
    # Those that are Parquet files or directories of them, and the files.
    parquet_inputs = [path for path in inputs if holds_parquet(path)]
    files = files_in(parquet_inputs)
    # Each other input is a capture, or a directory of captures.
    others = [path for path in inputs if path not in parquet_inputs]
    for path in others:
        if isinstance(path, ArrowPath) and not path.exists():
            raise UsageError(f"{path}: expected Parquet files or broker logs, seen nothing of that name")
    # A selection of topics or times is made while logs are read.
    if files and how.selection is not None:
        raise UsageError(f"{files[0]}: expected broker logs to select topics or times from, seen Parquet")
    reports = []
    with session(master) as spark:
        if files:
            run = judge_files(spark, files, results, how.profile, situations=how.situations)
            reports.append(report_of(run, how))
        place = _shared_directory(spark, results) if others else None
        with task_failures(results if place is not None else None), ExitStack() as copies:
            keeps = results is not None and isinstance(to_path(results), Path)
            # Named twice, an input is judged once.
            on_disk = {
                path: copies.enter_context(_on_disk(spark, path, place, keeps=keeps)) for path in dict.fromkeys(others)
            }
            # By the path of each capture, what reports call it.
            captures: dict[str, str] = {}
            for path, local in on_disk.items():
                inside, beside = captures_in(local.absolute())
                captures |= {str(capture): _name(capture, local.absolute(), path) for capture in inside}
                if beside:
                    unread = CheckedInput(str(path), LOGS, 0, 0, tuple(beside), rules=_NO_CHECKS)
                    reports.append(report_without_failures([unread], ()))
            of_large = _judge_in_shares(spark, [*captures], how, place, keeps=keeps) if place is not None else {}
            whole = [path for path in captures if path not in of_large]
            judged = [*of_large.values(), *_tasks(spark, partial(check_in_worker, how=how), whole)]
            # The longest first: one path may begin as another does.
            copied = sorted(((path, name) for path, name in captures.items() if path != name), reverse=True)
            reports += [_renamed(report, copied) if copied else report for report in judged]
    return merge_reports(reports, how.explained)


def _name(capture: Path, on_disk: Path, source: AnyPath) -> str:
    """Return the path of a capture, or where it lies at the URI that was copied to `on_disk`."""
    if isinstance(source, Path) or capture == on_disk:
        return str(capture if isinstance(source, Path) else source)
    return str(source / capture.relative_to(on_disk).as_posix())


def _renamed(report: Report, names: Sequence[tuple[str, str]]) -> Report:
    """Return a report that calls captures by their `names`: pairs of path and name."""

    def name(text: str) -> str:
        """Return a text with the names of captures."""
        for path, own in names:
            text = text.replace(path, own)
        return text

    inputs = [
        replace(
            checked,
            path=name(checked.path),
            problems=tuple(replace(problem, path=name(problem.path)) for problem in checked.problems),
        )
        for checked in report.inputs
    ]
    explanations = [replace(explanation, path=name(explanation.path)) for explanation in report.explanations]
    notes = tuple(name(text) for text in report.notes)
    return replace(report, inputs=tuple(inputs), explanations=tuple(explanations), notes=notes)


def _tasks(spark: "SparkSession", function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    """Yield the function of each item, a task each."""
    yield from spark.sparkContext.parallelize(items, len(items)).map(function).collect() if items else ()


def _shared_directory(spark: "SparkSession", results: str | AnyPath | None) -> Path | None:
    """Return a directory that all workers see: that of the results, or of this machine if it runs the tasks; else None."""
    target = None if results is None else writable_directory(results)
    if isinstance(target, Path):
        return target.absolute()
    return Path(tempfile.gettempdir()) if is_local(str(spark.sparkContext.master)) else None


def _judge_in_shares(
    spark: "SparkSession", captures: Sequence[str], how: CheckOptions, place: Path, *, keeps: bool
) -> dict[str, Report]:
    """Return the report on each large capture by its path, judged in shares; the split logs are in a folder in `place`.

    If `place` keeps results, shares that it has are not judged again.
    """
    # Of Parquet, and of small captures, nothing is judged in shares.
    from tidegauge.conformance.checking.sharded import check_in_shares, share_count  # noqa: PLC0415

    reports = {}
    for path, count in ((path, count) for path in captures if (count := share_count(path)) > 1):
        of_path = f"logs-{_hash(os.fsencode(path))}-"
        target = place / f"{of_path}{_fingerprint(spark, path, count, how)}" if keeps else None
        earlier: dict[int, Report] = {}
        if target is not None:
            target.mkdir(exist_ok=True)
            # What a run has split that was killed before the logs grew is of no use any more.
            for other in place.glob(f"{of_path}*/{SPLIT}"):
                if other.parent != target:
                    remove_unused(other)
            shares = ((number, _kept_share(target / f"{number}{KEPT}")) for number in range(count))
            earlier = {number: report for number, report in shares if report is not None}
        with working_directory(target or place, SPLIT, keeps=keeps) as folder:
            # No other run has the folder, so what is unfinished in `target` belongs to one that was killed.
            if target is not None and folder.parent == target and folder.name == SPLIT:
                remove_leftovers(target, f"*{KEPT}")
            check_one = partial(_check_and_keep, target=target)
            report = check_in_shares(path, count, how, partial(_tasks, spark), str(folder), check_one, earlier)
        before = (f"{len(earlier):,} of {count:,} shares had been judged before",) if earlier else ()
        reports[path] = replace(report, notes=(*report.notes, *before))
    return reports


def _fingerprint(spark: "SparkSession", path: str, count: int, how: CheckOptions) -> str:
    """Return a hash of the files of a capture, of the options, and of the judge."""
    walk = FolderWalk(Path(path))
    folders = [files for _, files in walk.below(DEEPEST)] if Path(path).is_dir() else [[Path(path)]]
    judge = judge_fingerprint(how.profile, situations=how.situations)
    contents = sorted(mark for marks in _tasks(spark, partial(_fingerprints, judge=judge), folders) for mark in marks)
    options = how.layout, None if how.selection is None else how.selection.chosen, count, longest_line(), follows_links()
    return _hash(repr((contents, options, _reader_text())).encode())


@cache
def _reader_text() -> str:
    """Return a hash of the code of this package, which reads the logs: of the judge alone `judge_fingerprint` is one."""
    return _hash(b"".join(path.read_bytes() for path in sorted(Path(__file__).parents[1].rglob("*.py"))))


def _hash(content: bytes) -> str:
    """Return a hash for a name."""
    return hashlib.sha256(content).hexdigest()[:16]


def _fingerprints(files: Sequence[Path], judge: str) -> list[str]:
    """Return the fingerprints of files, in a worker: each file is read as a whole."""
    return [file_fingerprint(str(file), judge) for file in files if file.is_file()]


def _check_and_keep(path: str | PathLike[str], how: CheckOptions, target: Path | None) -> Report:
    """Check the share of a capture that is selected; write the result to the folder `target` if no rule fails."""
    report = check_in_worker(path, how)
    number = how.selection.shard[0] if how.selection is not None else 0
    # A failure is explained by its events, which are not kept. What could not be read may be readable next time.
    unread = any(could_not_be_read(checked.problems) for checked in report.inputs)
    if target is not None and not report.failures and not unread:
        # The name of a file may be no UTF-8, which MessagePack has not: then it is judged again.
        with suppress(UnicodeEncodeError):
            content = msgspec.msgpack.encode((report.inputs, report.notes))
            with atomic_write(target / f"{number}{KEPT}") as unfinished:
                unfinished.write_bytes(content)
    return report


def _kept_share(path: Path) -> Report | None:
    """Return the report on a share that an earlier run has left; None without one, or if it is damaged."""
    try:
        inputs, notes = msgspec.msgpack.decode(path.read_bytes(), type=tuple[tuple[CheckedInput, ...], tuple[str, ...]])
    except (OSError, msgspec.MsgspecError):
        return None
    return report_without_failures(inputs, notes)


def holds_parquet(path: AnyPath) -> bool:
    """Return whether a path is a Parquet file, or a directory with .parquet files in it."""
    if path.is_dir():
        return any(path.glob("*.parquet"))
    # A file of this machine is known by its first bytes; one at a URI by its name, which costs no request.
    return is_parquet(path) if isinstance(path, Path) else path.name.endswith(".parquet")


@contextmanager
def _on_disk(spark: "SparkSession", source: AnyPath, place: Path | None, *, keeps: bool) -> Iterator[Path]:
    """Yield the path of an input that is no Parquet: its own, or for a URI that of its copy in `place`.

    The block's end removes the copy. If `place` keeps results, a run that fails leaves it, and the next one copies the rest.
    """
    if isinstance(source, Path):
        yield source
        return
    if place is None:
        raise UsageError(f"{source}: expected --results DIR at a path of all workers, to which logs are copied, seen none")
    with working_directory(place, f"{COPIED}{_hash(str(source).encode())}", keeps=keeps) as folder:
        # The names of traces begin with that of the source; a bucket itself has none, and a URI may have any.
        target = folder / (source.name if is_file_name(source.name) else "bucket")
        copy_files(source, target, partial(_tasks, spark))
        yield target


def captures_in(path: Path) -> tuple[list[Path], list[Problem]]:
    """Return the directories at or below a path that hold the logs of a cluster; the path itself if there is none.

    And what beside them was not read, a link or a folder: it may be one, too.
    """
    walk = FolderWalk(path)
    captures = list(_captures(path, walk)) if path.is_dir() else []
    # A capture says itself what in it is not read.
    beside = [
        problem
        for below, problem in walk.left_out.items()
        if not any((path / below).is_relative_to(capture) for capture in captures)
    ]
    return (captures, beside) if captures else ([path], [])


def _captures(folder: Path, walk: FolderWalk) -> Iterator[Path]:
    """Yield each capture in a folder: the folder itself if a node's log is in it, in a folder of it, or in a "logs" there.

    `walk` lists folders and remembers what it has seen. Below a capture nothing else is looked for.
    """
    inside = sorted(walk.folders(folder))
    node_folders = [folder, *inside, *(sub / name for sub in inside for name in LOG_FOLDERS)]
    if any(log_files(node_folder, walk, by_content=True) for node_folder in node_folders if node_folder.is_dir()):
        yield folder
        return
    for sub in inside:
        yield from _captures(sub, walk)

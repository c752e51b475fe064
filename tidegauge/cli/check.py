"""tidegauge check: options, the choice of a way to judge, and what is printed and written.

The input is judged in one of three ways: complete inputs in processes of this machine, inputs on Spark (--spark), and an
input that grows (--follow, with or without --spark). All give a `Report`. `aside` prints to standard error, `echo` to
standard output, `silent` nothing. The packages are imported where they are used: --help must not wait for them. A *bundle*
is one file with parts of logs, which `opened` unpacks: it gives the paths to judge instead, and which part of the logs
(`selection`) the bundle was made of. A *situation* is what an event was about, counted for a report on coverage.
"""

import argparse
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tidegauge.cli import recordings
from tidegauge.cli.options import (
    add_bounds,
    add_layout,
    add_profile,
    add_selection,
    add_spark,
    chosen_master,
    chosen_profile,
    chosen_selection,
    seconds,
)
from tidegauge.cli.terminal import aside, colour, echo, silent
from tidegauge.util.errors import CONFORMS, UsageError
from tidegauge.util.files import elsewhere


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tidegauge check` to its parser."""
    parser.add_argument(
        "path",
        nargs="*",
        help="NDJSON or Parquet file, a Kafka broker log, a directory of logs, log directories or traces, or a bundle of "
        "`tidegauge bundle`; - is standard input; with --spark, traces and logs may also be at a URI (s3://BUCKET/KEY)",
    )
    add_profile(parser, "judge by this profile instead of the one that the trace names", by_broker=True)
    add_layout(parser)
    add_selection(parser)
    add_bounds(parser)
    add_spark(parser, "judge on Spark: Parquet files by their row groups, broker logs by captures, large ones by partitions")
    recordings.add_results(
        parser,
        "; with --spark: keep the results of Parquet files and of large logs in a directory (of Parquet alone, without "
        "--follow, also at a URI), from which the same command resumes after an interruption",
    )
    _follow_arguments(parser)
    recordings.add_coverage(parser, "--coverage", "also write to FILE which parts of the model the traces have exercised")
    parser.add_argument("--out", metavar="DIR", help="also write index.html, check.json and check.xml (JUnit) to DIR")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--json-schema", action="store_true", help="print the JSON Schema of the JSON report, judge nothing")
    parser.add_argument("--all", action="store_true", help="also list the rules that passed or were not exercised")


def run(args: argparse.Namespace) -> int:
    """Judge traces: NDJSON, Parquet, or directories of Kafka broker logs or of segment files."""
    with ExitStack() as stack:
        return _run(args, stack)


def _run(args: argparse.Namespace, stack: ExitStack) -> int:
    """Check the arguments, judge, and print or write the report; return the exit code. `stack` keeps opened inputs."""
    from tidegauge.bundle.reading import BundledPath, opened
    from tidegauge.conformance.checking.check import CheckOptions
    from tidegauge.conformance.checking.inputs import open_input
    from tidegauge.conformance.checking.sharded import check_in_parallel
    from tidegauge.conformance.engine.precompile import LISTENER
    from tidegauge.conformance.report.json_report import json_text, schema_text, write_json
    from tidegauge.conformance.report.text import as_text
    from tidegauge.story.story import story_of
    from tidegauge.traces.kafka_logs.discovery.identify import files_at
    from tidegauge.util.files import directory, is_uri, replacing, writable

    if args.json_schema:
        echo(schema_text().rstrip())
        return CONFORMS
    if not args.path:
        raise UsageError("check: expected a path, seen none; name a file or a directory, or - for standard input")
    # Before the work: a directory that cannot be written must not cost an hour of judging. Not with --follow alone, which
    # refuses --out (_source_of): then none must be made.
    out = directory(args.out) if args.out and (args.spark or not args.follow) else None
    # Progress is for a person, not for the log of a CI job.
    watched = sys.stderr.isatty() and not args.quiet
    paths, selection = (args.path, None) if args.follow else stack.enter_context(opened(args.path))
    if not args.follow and not args.spark:
        # Of a pipe a copy is made: it is read twice, by the judge and by the story of what happened.
        sources = [(path, stack.enter_context(open_input(path))) for path in paths]
        paths = [BundledPath(str(copy.path), copy.name) if copy.path != Path(path) else path for path, copy in sources]
    # What the user selects, else the part of the logs that a bundle says.
    selected = chosen_selection(args) or selection
    # --results has the coverage too, but with --spark, where it is a directory of rows.
    how = CheckOptions(
        chosen_profile(args), args.layout, selected, situations=bool(args.coverage or (args.results and not args.spark))
    )
    for place in args.coverage:
        writable(place)
    # On Spark it is a directory, which may be at a URI.
    if args.results and not args.spark:
        writable(args.results)
    if args.until_idle and not args.follow:
        raise UsageError("check: expected --until-idle with --follow, seen it alone; add --follow or leave --until-idle out")
    # That the judge is compiled is announced even where nobody watches: it explains in a log why the first run takes longer.
    LISTENER.announcement, LISTENER.progress = silent if args.quiet else aside, aside if watched else silent
    # Failures are printed as they come; with --json the output is the report alone, so they go to standard error.
    try:
        if args.follow:
            report = _followed(args, how, aside if args.json else echo, silent if args.quiet else aside)
        elif args.spark:
            from tidegauge.spark_check.check import check_on_spark

            report = check_on_spark(args.path, how, chosen_master(args), args.results)
        else:
            report = check_in_parallel(paths, how, args.processes, aside if watched else silent)
    except KeyboardInterrupt:
        # Ctrl-C also ends a compilation that goes on in the background.
        LISTENER.give_up()
        raise
    # The story of what happened, apart from the judging: no verdict and no exit code depends on it. A growing trace and what
    # is at a URI have none; for growing logs the report has it already.
    if not args.follow:
        report = report.with_story(story_of([path for path in paths if not is_uri(str(path))], selection=how.selection))
    # Which files the report is about. A path that grows or that Spark reads is not looked into a second time.
    if not args.follow and not args.spark:
        report = replace(report, files=tuple(files_at(paths)))
    echo(json_text(report) if args.json else as_text(report, colour=colour(), everything=args.all))
    if out is not None:
        # Imported only here: the template engine and the XML library take a tenth of a second to load.
        from tidegauge.conformance.report.html import write_html
        from tidegauge.conformance.report.junit import write_junit

        for name, write in (("check.json", write_json), ("check.xml", write_junit), ("index.html", write_html)):
            # Written beside its place and renamed; a link of that name is replaced, not followed.
            with replacing(out / name, follow=False) as file:
                write(report, file)
        # With --json the output is the report alone.
        if not args.json:
            echo(f"reports: {out / 'index.html'}, check.json, check.xml")
    if args.coverage or (args.results and not args.spark):
        from tidegauge.conformance.report.results import results_of_check, write_results
        from tidegauge.drive.coverage import brief_json, exercised_by_check

        exercised = exercised_by_check(", ".join(args.path), report)
        if args.coverage:
            recordings.report_coverage(exercised, args.coverage, aside if args.json else echo)
        if args.results and not args.spark:
            made = results_of_check(report, args.target or ", ".join(args.path))
            write_results(made._replace(coverage=brief_json(exercised)), args.results)
    return report.exit_code


# --follow, --until-idle: an input is judged as it grows (conformance/follow, on Spark spark_check/follow.py).


if TYPE_CHECKING:
    from tidegauge.conformance.checking.check import CheckOptions, Report
    from tidegauge.conformance.follow.loop import Publish, Source

STDIN = "-"
LOG_OPTIONS = {"layout": "--layout", "topic": "--topic", "partition": "--partition", "begin": "--from", "end": "--to"}
"""Options of `check` that are about broker logs."""
COMPLETE_INPUT_OPTIONS = {"out": "--out", **LOG_OPTIONS, "processes": "--processes"}
"""Options of `check` that need an input that is complete; broker logs take --layout all the same."""


def _follow_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --follow and --until-idle."""
    parser.add_argument(
        "--follow",
        action="store_true",
        help="judge an NDJSON file, standard input (-) or a directory of broker logs as they grow; with --spark, a "
        "directory in which Parquet files arrive. Failures are printed as soon as they are known, the report at the end "
        "(after Ctrl-C, or when standard input ends)",
    )
    parser.add_argument(
        "--until-idle", type=seconds, metavar="SECONDS", help="with --follow: end when nothing has arrived for this long"
    )


def _followed(
    args: argparse.Namespace, how: "CheckOptions", say: Callable[[str], None], note: Callable[[str], None]
) -> "Report":
    """Follow the input that grows until it ends, and return the report. `say` prints failures, `note` all other news."""
    if args.spark:
        return _on_spark(args, how, say, note)
    from tidegauge.conformance.follow.loop import follow, publisher

    return follow(_source_of(args, how, publisher(say, note)), args.until_idle)


def _on_spark(
    args: argparse.Namespace, how: "CheckOptions", say: Callable[[str], None], note: Callable[[str], None]
) -> "Report":
    """Follow a directory on Spark and return the report. Raises UsageError for options that do not go with that.

    `say` prints failures, `note` all other news.
    """
    if len(args.path) != 1:
        raise UsageError(f"check --spark --follow: expected one directory, seen {len(args.path)} paths")
    for name, option in LOG_OPTIONS.items():
        if getattr(args, name):
            raise UsageError(
                f"check --spark --follow: expected no {option}, which is for broker logs; follow those without --spark"
            )
    if not args.results:
        raise UsageError("check --spark --follow: expected --results DIR, seen none; name a directory for the results")
    from tidegauge.spark_check.follow import follow_on_spark

    return follow_on_spark(args.path[0], how, chosen_master(args), args.results, args.until_idle, say, note)


def _source_of(args: argparse.Namespace, how: "CheckOptions", publish: "Publish") -> "Source":
    """Return the source to follow, made for the one path: standard input, broker logs or a file of NDJSON.

    `publish` is called with each piece of news. Raises UsageError for what cannot be followed.
    """
    from tidegauge.conformance.checking.inputs import is_parquet
    from tidegauge.conformance.follow.broker_logs import BrokerLogs
    from tidegauge.conformance.follow.ndjson import NdjsonFile, StandardInput
    from tidegauge.traces.kafka_logs import is_log

    if len(args.path) != 1:
        raise UsageError(f"check --follow: expected one path, or - for standard input, seen {len(args.path)} paths")
    (path,) = args.path
    if uri := elsewhere(path):
        raise UsageError(
            f"check --follow: {uri}: expected a path of this machine, seen a URI; "
            "add --spark to follow Parquet where it lies"
        )
    # A file that begins with Parquet's magic bytes is no log, whatever its name.
    broker_logs = path != STDIN and (Path(path).is_dir() or (not is_parquet(Path(path)) and is_log(Path(path))))
    for name, option in COMPLETE_INPUT_OPTIONS.items():
        if getattr(args, name) and not (broker_logs and name == "layout"):
            raise UsageError(
                f"check --follow: expected no {option}, which needs a complete input; run check without --follow"
            )
    if path == STDIN:
        return StandardInput(how, publish)
    if broker_logs:
        return BrokerLogs(Path(path), how, publish)
    if is_parquet(Path(path)):
        raise UsageError(
            f"check --follow: {path}: expected NDJSON or broker logs, seen a Parquet file; "
            "run check without --follow, again each time the file has grown"
        )
    return NdjsonFile(str(path), how, publish)

"""tidegauge check."""

import argparse
import sys

from tidegauge.commands import follow, masters, profiles, selections
from tidegauge.commands.layouts import layout_argument
from tidegauge.commands.terminal import aside, colour, echo, silent
from tidegauge.conformance.judging.verdicts import CONFORMS
from tidegauge.impl.errors import UsageError


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "path",
        nargs="*",
        help="NDJSON or Parquet file, a Kafka broker log, or a directory of logs or log directories; - is standard input; "
        "with --spark Parquet files may lie at a URI (s3://BUCKET/KEY)",
    )
    profiles.arguments(parser, "judge by this profile instead of the one the trace names")
    layout_argument(parser)
    selections.arguments(parser)
    masters.arguments(parser, "judge on Spark: Parquet files by their row groups, broker logs by captures")
    parser.add_argument(
        "--results",
        metavar="DIR",
        help="with --spark: leave what is judged of Parquet files there, a directory or, without --follow, a URI; the "
        "same command goes on where it was interrupted",
    )
    follow.arguments(parser)
    parser.add_argument("--out", metavar="DIR", help="also write index.html, check.json and check.xml (JUnit) there")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--json-schema", action="store_true", help="print the JSON Schema of that report, judge nothing")
    parser.add_argument("--all", action="store_true", help="list the rules that passed or were not exercised, too")


def run(args: argparse.Namespace) -> int:
    """Judge traces: NDJSON or Parquet files, or directories of Kafka broker logs or of their segments."""
    from tidegauge.conformance.judging.check import CheckOptions
    from tidegauge.conformance.judging.report.html import write_html
    from tidegauge.conformance.judging.report.json_report import json_text, schema_text, write_json
    from tidegauge.conformance.judging.report.junit import write_junit
    from tidegauge.conformance.judging.report.text import as_text
    from tidegauge.conformance.judging.side_by_side import check_in_parallel
    from tidegauge.traces.files.replacing import directory, replacing

    if args.json_schema:
        echo(schema_text().rstrip())
        return CONFORMS
    if not args.path:
        raise UsageError("check: expected a path, seen none; name a file or a directory, or - for standard input")
    out = directory(args.out) if args.out else None
    seen = sys.stderr.isatty() and not args.quiet
    how = CheckOptions(profiles.chosen(args), args.layout, selections.chosen(args))
    if args.results and not args.spark:
        raise UsageError("check: expected --results with --spark, seen it without")
    if args.until_idle and not args.follow:
        raise UsageError("check: expected --until-idle with --follow, seen it without")
    if args.follow:
        report = follow.followed(args, how, aside if args.json else echo, silent if args.quiet else aside)
    elif args.spark:
        from tidegauge.spark_check.captures import check_on_spark

        report = check_on_spark(args.path, how, masters.chosen(args), args.results)
    else:
        report = check_in_parallel(args.path, how, args.processes, aside if seen else silent)
    echo(json_text(report) if args.json else as_text(report, colour=colour(), everything=args.all))
    if out is not None:
        for name, write in (("check.json", write_json), ("check.xml", write_junit), ("index.html", write_html)):
            with replacing(out / name) as file:
                write(report, file)
        if not args.json:
            echo(f"reports: {out / 'index.html'}, check.json, check.xml")
    return report.exit_code

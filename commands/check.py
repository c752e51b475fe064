"""tidegauge check."""

import argparse
import json
from pathlib import Path

from tidegauge.commands import profiles
from tidegauge.commands.layouts import layout_argument
from tidegauge.commands.terminal import aside, colour, echo, silent


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "path", nargs="+", help="NDJSON or Parquet file, a Kafka broker log, or a directory of logs or log directories"
    )
    profiles.arguments(parser, "judge by this profile instead of the one the trace names")
    layout_argument(parser)
    parser.add_argument("--out", metavar="DIR", help="also write index.html, check.json and check.xml (JUnit) there")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--all", action="store_true", help="list the rules that passed or were not exercised, too")


def run(args: argparse.Namespace) -> int:
    """Judge traces: NDJSON or Parquet files, or directories of Kafka broker logs or of their segments."""
    from tidegauge.conformance.judging.check import check
    from tidegauge.conformance.judging.report.html import write_html
    from tidegauge.conformance.judging.report.json_report import as_json, write_json
    from tidegauge.conformance.judging.report.junit import write_junit
    from tidegauge.conformance.judging.report.text import as_text

    echo_to = silent if args.quiet or args.json else aside
    report = check(args.path, profiles.chosen(args), echo=echo_to, layout=args.layout)
    if args.out:
        out = Path(args.out)
        out.mkdir(parents=True, exist_ok=True)
        write_json(report, out / "check.json")
        write_junit(report, out / "check.xml")
        write_html(report, out / "index.html")
    if args.json:
        echo(json.dumps(as_json(report), indent=2, ensure_ascii=False))
    else:
        echo(as_text(report, colour=colour(), everything=args.all))
        if args.out:
            echo(f"reports: {out / 'index.html'}, check.json, check.xml")
    return report.exit_code

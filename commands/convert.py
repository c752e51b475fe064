"""tidegauge convert."""

import argparse

from tidegauge.commands.layouts import layout_argument
from tidegauge.commands.terminal import aside, echo
from tidegauge.conformance.judging.verdicts import BAD, CONFORMS


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("source", help="NDJSON or Parquet file, Kafka broker log, or directory of them; - is standard input")
    parser.add_argument("target", help="file to write: NAME.parquet is Parquet, anything else NDJSON")
    layout_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Turn Kafka broker logs, NDJSON or Parquet into NDJSON or Parquet.

    What cannot be read is left out and said, with exit code 2; without any event the target stays what it was.
    """
    from tidegauge.conformance.judging.convert import convert
    from tidegauge.traces.problems import lost

    converted = convert(args.source, args.target, args.layout)
    for problem in converted.problems:
        aside(str(problem))
    if not converted.events:
        aside(f"{args.target}: not written, no event could be read; see what is expected above")
        return BAD
    echo(f"{args.target}: {converted.traces:,} traces, {converted.events:,} events, {len(converted.problems):,} problems")
    return BAD if lost(converted.problems) else CONFORMS

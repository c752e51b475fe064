"""tidegauge convert."""

import argparse
from pathlib import Path

from tidegauge.commands.layouts import layout_argument
from tidegauge.commands.terminal import BAD, CONFORMS, echo


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("source", help="NDJSON or Parquet file, a Kafka broker log, or a directory of them")
    parser.add_argument("target", help="file to write: NAME.parquet is Parquet, anything else NDJSON")
    layout_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Turn Kafka broker logs, NDJSON or Parquet into NDJSON or Parquet."""
    from tidegauge.conformance.judging.convert import convert

    converted = convert(Path(args.source), Path(args.target), args.layout)
    for problem in converted.problems:
        echo(str(problem))
    echo(f"{args.target}: {converted.traces:,} traces, {converted.events:,} events, {len(converted.problems):,} problems")
    return BAD if not converted.events else CONFORMS

"""tidegauge convert."""

import argparse

from tidegauge.cli.options import add_bounds, add_layout
from tidegauge.cli.terminal import aside, echo
from tidegauge.util.errors import BAD, CONFORMS
from tidegauge.util.foreign_text import visible


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "source", help="NDJSON or Parquet file, Kafka broker log, or a directory of these; - is standard input"
    )
    parser.add_argument(
        "target",
        help="the file to write: .parquet is Parquet, .itf.json ITF (a file per trace), all else NDJSON",
    )
    add_layout(parser)
    add_bounds(parser)


def run(args: argparse.Namespace) -> int:
    """Turn Kafka broker logs, NDJSON or Parquet into NDJSON, Parquet, or ITF for viewers of Apalache and Quint.

    Lines that cannot be read are left out and reported, with exit code 2. If no event can be read, no file is written.
    """
    from tidegauge.conformance.checking.convert import convert
    from tidegauge.traces.problems import counted, lost

    converted = convert(args.source, args.target, args.layout)
    for problem in converted.problems:
        aside(visible(str(problem)))
    if not converted.events:
        aside(f"{args.target}: not written, because no event could be read; the lines above say what was expected")
        return BAD
    sizes = {"trace": converted.traces, "event": converted.events, "problem": len(converted.problems)}
    echo(f"{args.target}: {', '.join(counted(size, noun) for noun, size in sizes.items())}")
    return BAD if lost(converted.problems) else CONFORMS

"""tidegauge bundle."""

import argparse
from pathlib import Path

from tidegauge.cli.options import add_bounds, add_parts, chosen_selection
from tidegauge.cli.terminal import aside, echo
from tidegauge.util.errors import BAD, CONFORMS, UsageError


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("path", nargs="+", help="a log file, or a directory of logs or log directories")
    parser.add_argument("--out", metavar="FILE", default="bundle.tar.gz", help="the file to write (default: bundle.tar.gz)")
    parser.add_argument(
        "--redact",
        action="store_true",
        help="replace hosts, addresses, topics, client ids, groups, users, racks and directories, each name by the same "
        "one everywhere, and leave out lines that no reader reads",
    )
    add_parts(parser)
    add_bounds(parser)


def run(args: argparse.Namespace) -> int:
    """Cut what a verdict and a story need into one file, which check and story read. Records lose what they contain."""
    from tidegauge.bundle.cutting import write_bundle
    from tidegauge.traces.problems import counted
    from tidegauge.util.files import replacing
    from tidegauge.util.foreign_text import visible

    missing = [path for path in args.path if not Path(path).exists()]
    if missing:
        raise UsageError(f"bundle: expected a file or a directory, seen none at {missing[0]}; check the path")
    with replacing(args.out) as target:
        contents = write_bundle([Path(path) for path in args.path], target, chosen_selection(args), args.redact)
        size = target.stat().st_size
    for problem in contents.problems:
        aside(visible(str(problem)))
    for left_out in () if args.quiet else contents.left_out:
        aside(visible(f"left out: {left_out}"))
    lines = f"{contents.kept:,} of {counted(contents.lines, 'line')}"
    echo(
        f"{args.out}: {counted(contents.files, 'file')}, {lines}, {size:,} bytes"
        + (", names replaced" if args.redact else "")
    )
    return CONFORMS if contents.files else BAD

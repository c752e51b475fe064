"""tidegauge scenario."""

import argparse

from tidegauge.cli.terminal import echo
from tidegauge.conformance.checking.verdicts import CONFORMS, FAILS


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("file", nargs="*", help="scenario files (default: all that are shipped)")
    parser.add_argument(
        "--rewrite", action="store_true", help="write what happens into the files; a file that changes counts as failed"
    )
    parser.add_argument("--trace", metavar="DIR", help="also write each run to DIR as a trace, NAME.ndjson")


def run(args: argparse.Namespace) -> int:
    """Play scenarios and compare what happens with what their files expect."""
    from tidegauge.conformance.repl.scenario import rewrite, run_scenario, shipped, summary
    from tidegauge.traces.formats.ndjson import write
    from tidegauge.util.files import directory

    folder = directory(args.trace) if args.trace else None
    done = []
    for path in args.file or shipped():
        one = run_scenario(path)
        done.append(one)
        if folder is not None:
            write([one.trace], folder / f"{one.scenario.path.stem}.ndjson")
        if args.rewrite and rewrite(one):
            echo(f"{path}: rewritten, review the difference")
        elif not one.passed:
            echo(one.diff)
        elif not args.quiet:
            echo(f"{one.scenario.path.stem}: {one.scenario.expected}; {one.judge_says}")
    echo(summary(done))
    return CONFORMS if all(one.passed for one in done) else FAILS

"""tidegauge scenario."""

import argparse

from tidegauge.cli.terminal import echo
from tidegauge.util.errors import CONFORMS, FAILS


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
        scenario_run = run_scenario(path)
        done.append(scenario_run)
        if folder is not None:
            write([scenario_run.trace], folder / f"{scenario_run.scenario.path.stem}.ndjson")
        # A file that had to be changed has not passed: somebody must review the difference first.
        if args.rewrite and rewrite(scenario_run):
            echo(f"{path}: rewritten, review the difference")
        elif not scenario_run.passed:
            echo(scenario_run.diff)
        elif not args.quiet:
            echo(f"{scenario_run.scenario.path.stem}: {scenario_run.scenario.expected}; {scenario_run.judge_says}")
    echo(summary(done))
    return CONFORMS if all(scenario_run.passed for scenario_run in done) else FAILS

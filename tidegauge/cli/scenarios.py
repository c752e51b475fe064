"""tidegauge scenario, tidegauge play: a small cluster of the reference.

A *scenario* is a file of commands to such a cluster with what happens after each; its header claims what it shows. Played
again, the same must happen.
"""

import argparse
import sys
from pathlib import Path

from tidegauge.cli.terminal import echo
from tidegauge.util.errors import CONFORMS, FAILS, UsageError


def scenario_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tidegauge scenario` to its parser."""
    parser.add_argument("file", nargs="*", help="scenario files, or names of shipped ones (default: all of these)")
    parser.add_argument(
        "--rewrite", action="store_true", help="write what happens into the files; a file that changes counts as failed"
    )
    parser.add_argument("--trace", metavar="DIR", help="also write each run to DIR as a trace, NAME.ndjson")


def scenario_command(args: argparse.Namespace) -> int:
    """Play scenarios and compare what happens with what their files expect."""
    from tidegauge.conformance.play.scenario import files_named, rewrite, run_scenario, shipped, summary
    from tidegauge.traces.formats.ndjson import write
    from tidegauge.util.files import directory

    # A name is that of a file or of shipped scenarios; any other is refused below. Without names, all that are shipped.
    places = [place for name in args.file for place in files_named(name) or [name]] or shipped()
    unknown = [place for place in places if not Path(place).exists()]
    if unknown:
        raise UsageError(
            f"scenario: expected a file, or a name that `tidegauge scenario` lists; seen {unknown[0]}; check the name"
        )
    folder = directory(args.trace) if args.trace else None
    runs, rewritten = [], 0
    for path in places:
        scenario_run = run_scenario(path)
        runs.append(scenario_run)
        if folder is not None:
            write([scenario_run.trace], folder / f"{scenario_run.scenario.path.stem}.ndjson")
        # A file that had to be changed has not passed: somebody must review the difference first.
        if args.rewrite and rewrite(scenario_run):
            rewritten += 1
            echo(f"{path}: rewritten, review the difference")
        elif not scenario_run.passed:
            echo(scenario_run.diff)
        elif not args.quiet:
            echo(f"{scenario_run.scenario.path.stem}: {scenario_run.scenario.expected}; {scenario_run.judge_says}")
    echo(summary(runs, rewritten))
    return CONFORMS if all(scenario_run.passed for scenario_run in runs) else FAILS


def play_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tidegauge play` to its parser."""
    parser.add_argument("--save", metavar="FILE", help="write the session to FILE as a transcript")


def play_command(args: argparse.Namespace) -> int:
    """Play with a small cluster by hand: write, fetch, crash, elect, show."""
    from tidegauge.conformance.play.scenario import play, render
    from tidegauge.util.files import replacing, writable

    if args.save:
        writable(args.save)

    def prompt() -> None:
        """Ask for a command, if a person types them."""
        if sys.stdin.isatty():
            print("> ", end="", flush=True)

    transcript = play(sys.stdin, echo, prompt)
    if args.save:
        with replacing(args.save) as file:
            file.write_text(render(transcript), encoding="utf-8")
        echo(f"saved in {args.save}; add a claim to turn it into a scenario")
    return CONFORMS

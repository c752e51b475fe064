"""tidegauge recheck, tidegauge coverage: what earlier runs have written is read again.

Also the options by which other commands write coverage and results. *Coverage* is which parts of the model a run exercised.
*Results* is a JSON file with the verdicts on one target, from which a table of several targets is made.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tidegauge.cli.options import add_profile, chosen_profile
from tidegauge.cli.terminal import aside, echo, silent
from tidegauge.util.errors import CONFORMS
from tidegauge.util.files import writable

if TYPE_CHECKING:
    from tidegauge.drive.coverage import Exercised


def recheck_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tidegauge recheck` to its parser."""
    parser.add_argument("file", nargs="+", help="transcripts written by `tidegauge drive --record`")
    add_profile(parser, "the profile to compare with (default: the one they were recorded with)")
    parser.add_argument("--fault", metavar="NAME", help="compare with a reference that has this known bug")


def recheck_command(args: argparse.Namespace) -> int:
    """Compare transcripts of driven brokers with a profile or a fault, without starting the brokers."""
    from tidegauge.drive.broker.transcript import BROKER_FORMAT
    from tidegauge.drive.controller.transcript import CONTROLLER_FORMAT
    from tidegauge.drive.runner.recheck import recheck, text_of
    from tidegauge.drive.runner.transcript import read

    code, progress = CONFORMS, silent if args.quiet else aside
    for name in args.file:
        progress(name)
        rechecked = recheck(read(Path(name), BROKER_FORMAT, CONTROLLER_FORMAT), chosen_profile(args), args.fault)
        echo(text_of(rechecked))
        code = max(code, rechecked.exit_code)
    return code


WRITES = "a page if FILE ends in .html, else JSON"


def coverage_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tidegauge coverage` to its parser."""
    parser.add_argument("file", nargs="+", help="JSON that check or drive wrote with --coverage or --results")
    add_coverage(parser, "--out", "write the sum to FILE")


def coverage_command(args: argparse.Namespace) -> int:
    """Add up which parts of the model several runs and logs have exercised, and list those that none of them has."""
    from tidegauge.drive.coverage import read_exercised

    for place in args.coverage:
        writable(place)
    # The first becomes the sum of all.
    exercised, *others = [read_exercised(Path(file)) for file in args.file]
    for other in others:
        exercised.add(other)
    report_coverage(exercised, args.coverage)
    return CONFORMS


def add_coverage(parser: argparse.ArgumentParser, option: str, says: str) -> None:
    """Add the option, which may be repeated, that names a file to write coverage to; `says` begins its help text."""
    parser.add_argument(
        option, dest="coverage", action="append", default=[], metavar="FILE", help=f"{says}: {WRITES}; may be repeated"
    )


def report_coverage(exercised: "Exercised", places: list[str], say: Callable[[str], None] = echo) -> None:
    """Print, with `say`, which parts of the model were exercised and which not, and write that to the files `places`."""
    from tidegauge.drive.coverage import coverage_of, coverage_text, write_coverage

    coverage = coverage_of(exercised)
    say(coverage_text(coverage))
    for place in places:
        write_coverage(coverage, place)


def add_results(parser: argparse.ArgumentParser, more: str = "") -> None:
    """Add --results and --target; `more` ends the help text of --results."""
    parser.add_argument(
        "--results", metavar="FILE", help=f"write the results to FILE as JSON, for a table of several targets{more}"
    )
    parser.add_argument(
        "--target", metavar="NAME@VERSION", default="", help="with --results: the name and version of what was tested"
    )

"""tidegauge coverage."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tidegauge.cli.terminal import echo
from tidegauge.util.errors import CONFORMS
from tidegauge.util.files import writable

if TYPE_CHECKING:
    from tidegauge.drive.paths.coverage import Exercised

WRITES = "a page if FILE ends in .html, else JSON"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("file", nargs="+", help="JSON that --coverage of check or drive wrote, or --results")
    add_coverage(parser, "--out", "write the sum to FILE")


def run(args: argparse.Namespace) -> int:
    """Add up what several runs and logs have exercised of the model, and list what none of them has."""
    from tidegauge.drive.paths.coverage import read_exercised

    for place in args.coverage:
        writable(place)
    first, *others = [read_exercised(Path(file)) for file in args.file]
    for other in others:
        first.add(other)
    report(first, args.coverage)
    return CONFORMS


def add_coverage(parser: argparse.ArgumentParser, option: str, says: str) -> None:
    """Add the option that names files for coverage."""
    parser.add_argument(
        option, dest="coverage", action="append", default=[], metavar="FILE", help=f"{says}: {WRITES}; may be repeated"
    )


def report(exercised: "Exercised", places: list[str], say: Callable[[str], None] = echo) -> None:
    """Print what was exercised and what was not, and write it to files."""
    from tidegauge.drive.paths.coverage import coverage_of, coverage_text, write_coverage

    coverage = coverage_of(exercised)
    say(coverage_text(coverage))
    for place in places:
        write_coverage(coverage, place)


def add_results(parser: argparse.ArgumentParser, more: str = "") -> None:
    """Add the options of an artefact of results."""
    parser.add_argument(
        "--results", metavar="FILE", help=f"write the results to FILE, an artefact for a table of many{more}"
    )
    parser.add_argument(
        "--target", metavar="NAME@VERSION", default="", help="with --results: what the target is called there"
    )

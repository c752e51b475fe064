"""tidegauge play."""

import argparse
import sys

from tidegauge.cli.terminal import echo
from tidegauge.util.errors import CONFORMS


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--save", metavar="FILE", help="write the session to FILE as a transcript")


def run(args: argparse.Namespace) -> int:
    """Play with a small cluster by hand: write, fetch, crash, elect, show."""
    from tidegauge.conformance.repl.scenario import play, render
    from tidegauge.util.files import replacing, writable

    if args.save:
        writable(args.save)

    def prompt() -> None:
        if sys.stdin.isatty():
            print("> ", end="", flush=True)

    transcript = play(sys.stdin, echo, prompt)
    if args.save:
        with replacing(args.save) as file:
            file.write_text(render(transcript), encoding="utf-8")
        echo(f"saved in {args.save}; add a claim to turn it into a scenario")
    return CONFORMS

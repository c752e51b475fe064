"""tidegauge play."""

import argparse
import sys

from tidegauge.commands.terminal import echo
from tidegauge.conformance.judging.verdicts import CONFORMS


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--save", metavar="FILE", help="write the session to FILE as a transcript")


def run(args: argparse.Namespace) -> int:
    """Play with a small cluster by hand: write, fetch, crash, elect, show."""
    from tidegauge.conformance.play.scenario import play
    from tidegauge.conformance.play.transcript import render
    from tidegauge.traces.files.replacing import replacing, writable

    if args.save:
        writable(args.save)

    def prompt() -> None:
        if sys.stdin.isatty():
            print("> ", end="", flush=True)

    transcript = play(sys.stdin, echo, prompt)
    if args.save:
        with replacing(args.save) as file:
            file.write_text(render(transcript), encoding="utf-8")
        echo(f"saved in {args.save}; add a claim to make it a scenario")
    return CONFORMS

"""tidegauge play."""

import argparse
import sys
from pathlib import Path

from tidegauge.commands.terminal import CONFORMS, echo


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--save", metavar="FILE", help="keep the session as a transcript")


def run(args: argparse.Namespace) -> int:
    """Play with a small cluster by hand: write, fetch, crash, elect, show."""
    from tidegauge.conformance.play.scenario import play
    from tidegauge.conformance.play.transcript import render

    def prompt() -> None:
        if sys.stdin.isatty():
            print("> ", end="", flush=True)

    transcript = play(sys.stdin, echo, prompt)
    if args.save:
        Path(args.save).write_text(render(transcript), encoding="utf-8")
        echo(f"saved in {args.save}; give it a claim and it is a scenario")
    return CONFORMS

"""Tidegauge tells whether a broker's high watermark can be trusted.

The command line: it parses arguments and runs a command of `commands`. Exit codes: 0 conforms, 1 a rule fails, 2 bad usage
or bad input, 3 nothing could be decided.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import Protocol

from tidegauge.commands import bugs, check, checkout, conformance, convert, doctor, generate, model, play, prove, scenario
from tidegauge.commands.terminal import BAD, CONFORMS, INTERRUPTED, aside
from tidegauge.impl.errors import TidegaugeError
from tidegauge.spec.errors import SpecError

EXTRAS = {"z3": "proofs", "pyspark": "spark", "pandas": "spark", "google_crc32c": "segments"}
"""Which extra of the distribution brings a package that not everybody needs."""


class Command(Protocol):
    """A module of `commands`."""

    @property
    def arguments(self) -> Callable[[argparse.ArgumentParser], None]:
        """Say what it takes."""

    @property
    def run(self) -> Callable[[argparse.Namespace], int]:
        """Do it; the exit code."""


COMMANDS: dict[str, Command] = {
    "model": model,
    "prove": prove,
    "check": check,
    "convert": convert,
    "generate": generate,
    "bugs": bugs,
    "conformance": conformance,
    "scenario": scenario,
    "play": play,
    "doctor": doctor,
}


def parser() -> argparse.ArgumentParser:
    """Every command with its arguments."""
    top = argparse.ArgumentParser(
        prog="tidegauge",
        description="Tells whether a broker's high watermark can be trusted.",
        epilog="exit codes: 0 conforms, 1 a rule fails, 2 bad usage or bad input, 3 nothing could be decided",
    )
    top.add_argument("--version", action="version", version=f"tidegauge {checkout.version()}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        doc = (command.run.__doc__ or "").strip()
        added = commands.add_parser(name, help=doc.splitlines()[0].rstrip("."), description=doc)
        added.set_defaults(run=command.run)
        added.add_argument("--quiet", action="store_true", help="no progress, only results")
        command.arguments(added)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the `tidegauge` command."""
    args = parser().parse_args(argv)
    try:
        return int(args.run(args))
    except (TidegaugeError, SpecError) as problem:
        aside(f"tidegauge: {problem}")
        return BAD
    except ModuleNotFoundError as missing:
        extra = EXTRAS.get((missing.name or "").split(".")[0])
        if extra is None:
            raise
        aside(f"tidegauge: expected package {missing.name}, seen none; run: pip install 'tidegauge[{extra}]'")
        return BAD
    except KeyboardInterrupt:
        aside("tidegauge: interrupted; what was printed so far stands, nothing else was decided")
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CONFORMS

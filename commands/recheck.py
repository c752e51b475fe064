"""tidegauge recheck."""

import argparse
from pathlib import Path

from tidegauge.commands import profiles
from tidegauge.commands.terminal import aside, echo, silent
from tidegauge.impl.errors import UsageError


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("file", nargs="+", help="transcripts that `tidegauge drive --record` wrote")
    profiles.arguments(parser, "the generation it is held against (default: the one it was recorded with)")
    parser.add_argument("--fault", metavar="NAME", help="hold a reference with this known bug against it")


def run(args: argparse.Namespace) -> int:
    """Hold transcripts of driven brokers against a profile or a fault, without the brokers."""
    from tidegauge.drive.broker.transcript import read
    from tidegauge.drive.controller.transcript import is_transcript
    from tidegauge.drive.runner.recheck import recheck
    from tidegauge.drive.runner.rechecked import text_of

    code, progress = 0, silent if args.quiet else aside
    for name in args.file:
        progress(name)
        if is_transcript(Path(name)):
            code = max(code, _controller(args, Path(name)))
            continue
        found = recheck(read(Path(name)), profiles.chosen(args), args.fault)
        echo(text_of(found))
        code = max(code, found.exit_code)
    return code


def _controller(args: argparse.Namespace, place: Path) -> int:
    """The same with what a controller did."""
    from tidegauge.drive.controller.recheck import recheck
    from tidegauge.drive.controller.transcript import read
    from tidegauge.drive.runner.rechecked import text_of

    if args.fault:
        raise UsageError(f"--fault: expected a broker's transcript; seen a controller's, {place}; leave --fault out")
    found = recheck(read(place), profiles.chosen(args))
    echo(text_of(found))
    return found.exit_code

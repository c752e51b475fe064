"""tidegauge recheck."""

import argparse
from pathlib import Path

from tidegauge.commands.options import add_profile, chosen_profile
from tidegauge.commands.terminal import aside, echo, silent
from tidegauge.impl.errors import UsageError


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("file", nargs="+", help="transcripts written by `tidegauge drive --record`")
    add_profile(parser, "the profile to compare with (default: the one it was recorded with)")
    parser.add_argument("--fault", metavar="NAME", help="compare with a reference that has this known bug")


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
        found = recheck(read(Path(name)), chosen_profile(args), args.fault)
        echo(text_of(found))
        code = max(code, found.exit_code)
    return code


def _controller(args: argparse.Namespace, place: Path) -> int:
    from tidegauge.drive.controller.recheck import recheck
    from tidegauge.drive.controller.transcript import read
    from tidegauge.drive.runner.rechecked import text_of

    if args.fault:
        raise UsageError(f"--fault: expected a broker's transcript; seen a controller's, {place}; leave --fault out")
    found = recheck(read(place), chosen_profile(args))
    echo(text_of(found))
    return found.exit_code

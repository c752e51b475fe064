"""tidegauge recheck."""

import argparse
from pathlib import Path

from tidegauge.cli.options import add_profile, chosen_profile
from tidegauge.cli.terminal import aside, echo, silent


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("file", nargs="+", help="transcripts written by `tidegauge drive --record`")
    add_profile(parser, "the profile to compare with (default: the one they were recorded with)")
    parser.add_argument("--fault", metavar="NAME", help="compare with a reference that has this known bug")


def run(args: argparse.Namespace) -> int:
    """Compare transcripts of driven brokers with a profile or a fault, without starting the brokers."""
    from tidegauge.drive.broker.transcript import BROKER_FORMAT
    from tidegauge.drive.controller.transcript import CONTROLLER_FORMAT
    from tidegauge.drive.runner.recheck import recheck, text_of
    from tidegauge.drive.runner.transcript import read

    code, progress = 0, silent if args.quiet else aside
    for name in args.file:
        progress(name)
        rechecked = recheck(read(Path(name), BROKER_FORMAT, CONTROLLER_FORMAT), chosen_profile(args), args.fault)
        echo(text_of(rechecked))
        code = max(code, rechecked.exit_code)
    return code

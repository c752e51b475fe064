"""--profile NAME or --release 3.4.1: which generation of the protocol a command works with.

Rules of this file

1. A release is a profile with every switch as that release had it (`impl.releases`); it is called `release-3.4.1`, and a
   trace that was made or judged by it may name it so.
2. A release nobody made is refused, with those there are.
"""

import argparse

from tidegauge.impl.errors import UsageError
from tidegauge.impl.releases import of_release

LINES = (
    ("0.10.2", "0.11.0"),
    ("1.0", "1.1"),
    tuple(f"2.{minor}" for minor in range(9)),
    tuple(f"3.{minor}" for minor in range(10)),
    tuple(f"4.{minor}" for minor in range(5)),
)
"""The release lines of Kafka whose switches are known, by major version; each has patch releases: 3.4 has 3.4.1."""


def arguments(parser: argparse.ArgumentParser, says: str, default: str | None = None) -> None:
    """Take one of the two."""
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--profile", default=default, help=says)
    either.add_argument("--release", metavar="VERSION", help="the profile of a release of Kafka, such as 3.4.1")


def chosen(args: argparse.Namespace) -> str | None:
    """The name of the profile that was asked for, if any was. Raises UsageError for a release there is none of."""
    if args.release is None:
        return None if args.profile is None else str(args.profile)
    return of_release(_known(args.release)).name


def _known(release: str) -> str:
    known = [line for lines in LINES for line in lines]
    for line in known:
        patch = release.removeprefix(line)
        if release.startswith(line) and (not patch or (patch[0] == "." and patch[1:].isdecimal() and patch.isascii())):
            return release
    raise UsageError(
        f"--release: expected a release of {', '.join(known)}, or a patch release of one such as 3.4.1; "
        f"seen {release!r}; choose one of those"
    )

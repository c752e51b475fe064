"""Options that several commands share: how they are declared, and the values they stand for."""

import argparse
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tidegauge.impl.releases import profile_of_release, profiles_named
from tidegauge.util.errors import UsageError
from tidegauge.util.input_limits import FOLLOW_LINKS_VARIABLE, LONGEST_LINE, LONGEST_LINE_VARIABLE

if TYPE_CHECKING:
    from tidegauge.traces.kafka_logs.discovery.selection import Selection

LARGEST_NUMBER = 2**63 - 1
"""The largest seed that NumPy accepts."""
EXAMPLE_LAYOUT = "[%d] %p [%t] %m (%c)%n"
ALL_CORES = True
"""The value of --spark without a master. Not a string: argparse parses a string default as if a user had typed it."""
MASTERS = ("local", "spark://", "yarn", "k8s://")
"""How the name of a master begins (Spark, Submitting Applications, Master URLs)."""
RELEASE_LINES = (
    ("0.10.2", "0.11.0"),
    ("1.0", "1.1"),
    tuple(f"2.{minor}" for minor in range(9)),
    tuple(f"3.{minor}" for minor in range(10)),
    tuple(f"4.{minor}" for minor in range(5)),
)
"""The release lines of Kafka whose switches are known, by major version; each has patch releases: 3.4 has 3.4.1."""


# Types: argparse refuses what they raise for, with exit code 2.


def positive(text: str) -> int:
    """Parse a whole number from 1 on."""
    return _whole_number(text, 1)


def natural(text: str) -> int:
    """Parse a whole number from 0 on."""
    return _whole_number(text, 0)


def _whole_number(text: str, least: int) -> int:
    """Parse a whole number of at least `least`. Raises ArgumentTypeError."""
    try:
        number = int(text)
    except ValueError:
        # No number at all: too small, so that it is refused below with the same message.
        number = least - 1
    if not least <= number <= LARGEST_NUMBER:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least {least}, seen {text!r}")
    return number


def seconds(text: str) -> float:
    """Parse a number of seconds, more than 0. Raises ArgumentTypeError."""
    try:
        number = float(text)
    except ValueError:
        # No number: NaN fails the comparison below.
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number of seconds greater than 0, seen {text!r}")
    return number


def add_profile(parser: argparse.ArgumentParser, help_text: str, *, by_broker: bool = False) -> None:
    """Add --profile and --release, of which one may be given. `by_broker`: --release may be given for each broker."""
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--profile", help=help_text)
    release_text = "take the profile of this Kafka release, such as 3.4.1"
    if by_broker:
        release_text += (
            "; 1=3.9.1 is for broker 1 alone; may be repeated, once per broker and once without an id for all others"
        )
    # Without `by_broker` the last one counts, as with any option.
    either.add_argument("--release", metavar="VERSION", action="append" if by_broker else "store", help=release_text)


def chosen_profile(args: argparse.Namespace) -> str | None:
    """Return the name of the profile that --profile or --release names, None if neither was given.

    A release is a profile with every switch as that release had it (`impl.releases`); it is called `release-3.4.1`. Raises
    UsageError for an unknown release.
    """
    # `profiles_named` refuses unknown names. (): which brokers there are is not known here, so none must have a profile.
    if args.release is None:
        return None if args.profile is None else profiles_named(args.profile, ()).name
    # One release for all brokers; a list where each broker may have its own (add_profile, `by_broker`).
    if isinstance(args.release, str):
        return _release_profile(args.release)
    return profiles_named(",".join(map(_release_profile, args.release)), ()).name


def _release_profile(text: str) -> str:
    """Return the name of a release's profile; for "1=3.4.1", where 1 is a broker's id, with "1=" before it."""
    # `node` and `equals` are empty where the text has no broker's id.
    node, equals, release = text.rpartition("=")
    lines = [line for lines_of_major in RELEASE_LINES for line in lines_of_major]
    for line in lines:
        # 3.4 and 3.4.1, but not 3.40: that would be another release line.
        patch = release.removeprefix(line)
        numbered = patch[:1] == "." and patch[1:].isdecimal() and patch.isascii()
        if release.startswith(line) and (not patch or numbered):
            return f"{node}{equals}{profile_of_release(release).name}"
    raise UsageError(
        f"--release: expected one of {', '.join(lines)}, or a patch release of one of them, such as 3.4.1; "
        f"seen {release!r}; choose one of those"
    )


def add_layout(parser: argparse.ArgumentParser) -> None:
    """Add --layout."""
    example = EXAMPLE_LAYOUT.replace("%", "%%")
    parser.add_argument(
        "--layout",
        metavar="PATTERN",
        help=f"the log4j2 pattern of the broker logs, such as '{example}' (default: detected from the first lines)",
    )


def add_bounds(parser: argparse.ArgumentParser) -> None:
    """Add --longest-line and --follow-links, which hold for the processes that the command starts as well."""
    parser.add_argument(
        "--longest-line",
        type=positive,
        metavar="BYTES",
        help=f"skip longer lines, and report each as a problem (default {LONGEST_LINE:,})",
    )
    parser.add_argument("--follow-links", action="store_true", help="also follow links that lead out of a named directory")


@contextmanager
def chosen_bounds(args: argparse.Namespace) -> Iterator[None]:
    """Set environment variables within the block to what the options of add_bounds say, if the command has them.

    Environment variables, because processes that the command starts inherit them.
    """
    # Most commands have none of these options.
    longest = getattr(args, "longest_line", None)
    variables = {} if longest is None else {LONGEST_LINE_VARIABLE: str(longest)}
    variables |= {FOLLOW_LINKS_VARIABLE: "1"} if getattr(args, "follow_links", False) else {}
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def add_parts(parser: argparse.ArgumentParser, scope: str = "") -> None:
    """Add --topic, --partition, --from and --to.

    `scope` begins their help texts: the inputs that they are for, where a command also takes others.
    """
    parser.add_argument("--topic", action="append", default=[], help=f"{scope}read this topic; may be repeated")
    parser.add_argument(
        "--partition",
        action="append",
        default=[],
        metavar="TOPIC-N",
        help=f"{scope}read this partition; may be repeated",
    )
    parser.add_argument(
        "--from", dest="begin", metavar="TIME", help=f"{scope}read from this time on, such as 2026-11-21T08:27:15"
    )
    parser.add_argument("--to", dest="end", metavar="TIME", help=f"{scope}read up to this time")


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add --topic, --partition, --from, --to and --processes."""
    add_parts(parser, "broker logs only: ")
    parser.add_argument(
        "--processes",
        type=positive,
        help="number of processes that judge large logs and large NDJSON files in parallel (default: one per core)",
    )


def chosen_selection(args: argparse.Namespace) -> "Selection | None":
    """Return which topics, partitions and times of broker logs to read, None for everything.

    Raises UsageError for a malformed time or partition.
    """
    from tidegauge.traces.kafka_logs.discovery.selection import selection_of

    return selection_of(args.topic, args.partition, args.begin, args.end)


def add_spark(parser: argparse.ArgumentParser, help_text: str) -> None:
    """Add --spark [MASTER]; its value is None if it was not given, ALL_CORES without a master."""
    parser.add_argument(
        "--spark",
        nargs="?",
        const=ALL_CORES,
        type=_master,
        metavar="MASTER",
        help=f"{help_text}; spark://HOST:PORT, yarn, k8s://... or local[N] (default: all cores of this machine)",
    )


def _master(text: str) -> str:
    """Return the name of a Spark master. Raises ArgumentTypeError for any other word, such as a path behind --spark."""
    if not text.startswith(MASTERS):
        raise argparse.ArgumentTypeError(
            f"expected a master such as spark://host:7077, local[2], yarn or k8s://..., seen {text!r}; "
            "to use this machine, put --spark last"
        )
    return text


def chosen_master(args: argparse.Namespace) -> str:
    """Return the master that was given; without one this machine, with as many cores as --processes has."""
    return f"local[{getattr(args, 'processes', None) or '*'}]" if args.spark is ALL_CORES else str(args.spark)

"""tidegauge probe: a running broker is checked from outside, by client requests to topics that the probe makes."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tidegauge.cli import recordings
from tidegauge.cli.options import natural, seconds
from tidegauge.cli.terminal import aside, echo, silent
from tidegauge.util.errors import UsageError

if TYPE_CHECKING:
    from tidegauge.drive.probe.run import ProbeRun

SECONDS = 10.0
PATIENCE = 1.5
"""The time to wait until a topic is created or deleted, as a multiple of the time to wait for a response."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tidegauge probe` to its parser."""
    parser.add_argument("place", nargs="?", metavar="HOST:PORT", help="the address of a broker")
    parser.add_argument("--list", action="store_true", help="list the checks and connect to nothing")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="ID",
        help="run a check, a group (fencing), a pattern ('*.unknown-*') or the checks of a rule (FENCE-01); may be repeated",
    )
    parser.add_argument(
        "--seed", type=natural, metavar="N", help="seed of the topics' names (default: a new one, which is printed)"
    )
    parser.add_argument(
        "--json", metavar="FILE", help="write every check to FILE, with its requests and responses in hex and decoded"
    )
    parser.add_argument("--junit", metavar="FILE", help="write the verdicts to FILE as JUnit XML")
    recordings.add_results(parser)
    parser.add_argument(
        "--command-config",
        metavar="FILE",
        help="a file with security options of Kafka's clients: security.protocol, sasl.jaas.config, ssl.truststore.location "
        "(PEM), and others",
    )
    parser.add_argument(
        "--follow-metadata",
        action="store_true",
        help="also connect and log in to other hosts that the broker names in Metadata, unless the address is link-local",
    )
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=SECONDS,
        help=f"seconds to wait for a response, and half as long again for a topic (default {SECONDS:g})",
    )


def run(args: argparse.Namespace) -> int:
    """Send client requests to a running broker of any make, and check its responses against Kafka's rules."""
    import secrets

    from tidegauge.drive.probe.report import check_list
    from tidegauge.drive.probe.run import InterruptedRunError, probe, select_checks
    from tidegauge.drive.probe.security import NO_SECURITY, secured, security_in, staying_with
    from tidegauge.util.files import writable
    from tidegauge.util.interrupts import interruptible

    checks = select_checks(args.only)
    if args.list:
        echo(check_list(checks))
        return 0
    place = _place(args.place)
    security = security_in(args.command_config) if args.command_config else NO_SECURITY
    for file in filter(None, (args.json, args.junit, args.results)):
        writable(file)
    # New names each time: topics that an earlier run left behind must not be met again.
    seed = secrets.randbits(32) if args.seed is None else args.seed
    # Ctrl-C waits for a safe point, where the probe calls `heed`: the topics of the probe must be removed.
    with interruptible() as heed:
        # `dial` connects to the broker, and to no other host unless --follow-metadata allows it.
        dial = staying_with(place[0], secured(args.timeout, security), follow_metadata=args.follow_metadata)
        settings = {"patience": PATIENCE * args.timeout, "follow_metadata": args.follow_metadata}
        # Of the two functions that print, the first gets progress and the second warnings, which --quiet does not silence.
        try:
            results = probe(dial, place, seed, checks, silent if args.quiet else aside, aside, heed, **settings)
        except InterruptedRunError as ended:
            # The checks that were made keep their verdicts, and are reported before the command ends.
            _report(ended.run, args)
            raise
    _report(results, args)
    return results.exit_code


def _report(results: "ProbeRun", args: argparse.Namespace) -> None:
    """Print the results, and write the files that the options name: --json, --junit, --results."""
    from tidegauge.conformance.report.results import write_results
    from tidegauge.drive.probe.report import probe_json, probe_results, probe_text, write_probe_junit
    from tidegauge.util.files import replacing
    from tidegauge.util.version import TOOL

    echo(probe_text(results))
    if args.json:
        with replacing(args.json) as file:
            Path(file).write_text(probe_json(results, TOOL), encoding="utf-8")
    if args.junit:
        with replacing(args.junit) as file:
            write_probe_junit(results, Path(file), TOOL)
    if args.results:
        write_results(probe_results(results, args.target), args.results)


def _place(text: str | None) -> tuple[str, int]:
    """Split HOST:PORT into host and port; an IPv6 address is in brackets. Raises UsageError."""
    host, _, port = (text or "").rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise UsageError(f"probe: expected HOST:PORT, such as localhost:9092; seen {text or 'nothing'}")
    return host.removeprefix("[").removesuffix("]"), int(port)

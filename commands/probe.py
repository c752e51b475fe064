"""tidegauge probe."""

import argparse
import secrets
from pathlib import Path

from tidegauge.commands.counts import natural, seconds
from tidegauge.commands.terminal import aside, echo, silent
from tidegauge.impl.errors import UsageError

SECONDS = 10.0


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("place", nargs="?", metavar="HOST:PORT", help="a broker that listens without TLS and SASL")
    parser.add_argument("--list", action="store_true", help="list the checks, ask nobody")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="ID",
        help="a check, a group such as fencing, a pattern such as '*.unknown-*', or a rule such as FENCE-01; repeatable",
    )
    parser.add_argument("--seed", type=natural, metavar="N", help="seed of the topics' names (default: a new one, printed)")
    parser.add_argument("--json", metavar="FILE", help="write every check with what was sent and received, in hex and words")
    parser.add_argument("--junit", metavar="FILE", help="write the verdicts as JUnit XML")
    parser.add_argument(
        "--timeout", type=seconds, default=SECONDS, help=f"how long a response may take, in seconds (default {SECONDS:g})"
    )


def run(args: argparse.Namespace) -> int:
    """Ask a running broker, of any make, what a client may ask, and hold its responses against Kafka's rules."""
    from tidegauge.conformance.judging.tool import tool_version
    from tidegauge.drive.probe.connection import tcp
    from tidegauge.drive.probe.report import check_list, probe_json, probe_text, write_probe_junit
    from tidegauge.drive.probe.run import probe, select_checks
    from tidegauge.spec.interrupts import interruptible
    from tidegauge.traces.files.replacing import replacing, writable

    checks = select_checks(args.only)
    if args.list:
        echo(check_list(checks))
        return 0
    place = _place(args.place)
    for file in filter(None, (args.json, args.junit)):
        writable(file)
    seed = secrets.randbits(32) if args.seed is None else args.seed
    with interruptible() as heed:
        found = probe(tcp(args.timeout), place, seed, checks, silent if args.quiet else aside, aside, heed)
    tool = f"tidegauge {tool_version()}"
    echo(probe_text(found))
    if args.json:
        with replacing(args.json) as file:
            Path(file).write_text(probe_json(found, tool), encoding="utf-8")
    if args.junit:
        with replacing(args.junit) as file:
            write_probe_junit(found, Path(file), tool)
    return found.exit_code


def _place(text: str | None) -> tuple[str, int]:
    """Host and port, an IPv6 address in brackets."""
    host, _, port = (text or "").rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise UsageError(f"probe: expected HOST:PORT, such as localhost:9092; seen {text or 'nothing'}")
    return host.removeprefix("[").removesuffix("]"), int(port)

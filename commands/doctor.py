"""tidegauge doctor."""

import argparse
import sys

from tidegauge.commands.terminal import echo
from tidegauge.conformance.judging.verdicts import BAD, CONFORMS


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "--logging", metavar="RELEASE", help="instead: the lines that switch on what logs of Kafka 4.x or 3.x must hold"
    )


def run(args: argparse.Namespace) -> int:
    """Say what this machine has of what Tidegauge needs."""
    if args.logging is not None:
        from tidegauge.traces.kafka.lines.loggers import configuration

        for line in configuration(args.logging):
            echo(line)
        return CONFORMS

    from tidegauge.conformance.doctor import Finding, examine
    from tidegauge.drive.kafka_process.jars import find_maven

    maven = find_maven()
    fetches = "tidegauge drive --kafka without --jars; it fetches the jars of a release"
    waits = (
        "lag times of tidegauge drive --kafka, which are not given without it, and the time of --controller, which waits "
        "for every expiry then; install gcc or clang"
    )
    findings = (
        *examine(),
        Finding("Maven", maven is not None, maven or "no mvn on PATH", fetches),
        # elsewhere no library can be preloaded, whatever is installed
        *([Finding("C compiler", *_compiles(), waits)] if sys.platform == "linux" else []),
    )
    for finding in findings:
        echo(f"{'found  ' if finding.found else 'MISSING'}  {finding.name}: {finding.says}")
        if not finding.found:
            echo(f"         needed for: {finding.needed_for}")
    return CONFORMS if all(finding.found for finding in findings) else BAD


def _compiles() -> tuple[bool, str]:
    """Whether the library that moves the clocks of a driven process is there or can be built, and what says so."""
    from tidegauge.drive.kafka_process.clock import NoLibraryError, build_library

    try:
        return True, f"clock.c is compiled, {build_library()}"
    except NoLibraryError as problem:
        return False, str(problem)

"""tidegauge doctor."""

import argparse
import sys

from tidegauge.commands.terminal import echo
from tidegauge.conformance.judging.verdicts import BAD, CONFORMS


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--logging",
        metavar="RELEASE",
        help="instead: print the logging configuration that a cluster of Kafka 4.x or 3.x needs",
    )


def run(args: argparse.Namespace) -> int:
    """Show which of the programs and packages that Tidegauge can use are on this machine."""
    if args.logging is not None:
        from tidegauge.traces.kafka.lines.loggers import configuration

        for line in configuration(args.logging):
            echo(line)
        return CONFORMS

    from tidegauge.conformance.doctor import Finding, examine
    from tidegauge.drive.kafka_process.jars import find_maven

    maven = find_maven()
    fetches = "tidegauge drive --kafka without --jars: Maven fetches the jars of a release"
    waits = (
        "tidegauge drive --kafka, which cannot report lag times without it, and --controller, which then waits in real time "
        "for everything that expires; install gcc or clang"
    )
    findings = (
        *examine(),
        Finding("Maven", maven is not None, maven or "no mvn on PATH", fetches),
        # On other systems no library can be preloaded, whatever is installed.
        *([Finding("C compiler", *_compiles(), waits)] if sys.platform == "linux" else []),
    )
    for finding in findings:
        echo(f"{'found  ' if finding.found else 'MISSING'}  {finding.name}: {finding.says}")
        if not finding.found:
            echo(f"         needed for: {finding.needed_for}")
    return CONFORMS if all(finding.found for finding in findings) else BAD


def _compiles() -> tuple[bool, str]:
    """Return whether the library that moves the clock of a driven process is there or can be compiled, and a message."""
    from tidegauge.drive.kafka_process.clock import NoLibraryError, build_library

    try:
        return True, f"clock.c is compiled, {build_library()}"
    except NoLibraryError as problem:
        return False, str(problem)

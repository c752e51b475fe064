"""tidegauge doctor."""

import argparse

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

    from tidegauge.conformance.job.doctor import Finding, examine
    from tidegauge.drive.kafka.jars import find_maven

    maven = find_maven()
    wanted = "tidegauge drive --kafka without --jars; it fetches the jars of a release"
    findings = (*examine(), Finding("Maven", maven is not None, maven or "no mvn on PATH", wanted))
    for finding in findings:
        echo(f"{'found  ' if finding.found else 'MISSING'}  {finding.name}: {finding.says}")
        if not finding.found:
            echo(f"         needed for: {finding.needed_for}")
    return CONFORMS if all(finding.found for finding in findings) else BAD

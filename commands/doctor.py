"""tidegauge doctor."""

import argparse

from tidegauge.commands.terminal import BAD, CONFORMS, echo


def arguments(_parser: argparse.ArgumentParser) -> None:
    """What the command takes: nothing."""


def run(_args: argparse.Namespace) -> int:
    """Say what this machine has of what Tidegauge needs."""
    from tidegauge.conformance.job.doctor import examine

    findings = examine()
    for finding in findings:
        echo(f"{'found  ' if finding.found else 'MISSING'}  {finding.name}: {finding.says}")
        if not finding.found:
            echo(f"         needed for: {finding.needed_for}")
    return CONFORMS if all(finding.found for finding in findings) else BAD

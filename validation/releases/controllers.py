"""Records controllers of releases, and counts the paths on which each shows a finding (docs/kafka-releases.md).

Rules of this file

1. A release shows a finding on a path where the reference without that finding does something else than the controller did.
   That reference has the finding's switches as in elr-repaired, and all others as in the release.
2. A finding with a scenario is shown if one of its scenarios shows it: before 4.3 the lists of F7 are written
   as in later releases, and do no harm.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tidegauge.drive.controller.contract import ControllerCase
from tidegauge.drive.controller.cover import cover_of
from tidegauge.drive.controller.findings import FINDINGS, SAYS, SHOWN_BY, controller_findings, finding_cases
from tidegauge.drive.controller.node import ControllerNode
from tidegauge.drive.controller.reference import reference
from tidegauge.drive.controller.transcript import CONTROLLER_FORMAT
from tidegauge.drive.controller.walks import walks
from tidegauge.drive.kafka_process.builds import build_of
from tidegauge.drive.runner.differences import PlayResult
from tidegauge.drive.runner.player import play
from tidegauge.drive.runner.run import run, text_of
from tidegauge.drive.runner.transcript import CONTROLLER, Recorder, TranscriptNode, place_of, profile_of, read, write
from tidegauge.impl.releases import RELEASE, Release, profile_named
from validation.releases.columns import Column
from validation.releases.switches_read import switches_read

WALKS, SEED = 150, 1

GRAPHS = ("RepairedCompletion", "RepairedDisks", "RepairedReassignment", "RepairedFeature")
"""Whose covers are recorded: the other three have twice as many paths (docs/drive.md)."""

FIRST: Release = (3, 7)
"""The oldest release whose controller is played: an older one takes no BrokerRegistration that names directories."""

Read = Mapping[ControllerCase, frozenset[str]]
"""The switches that the reference reads on each path."""


def played_and_read(node: TranscriptNode[ControllerCase]) -> tuple[PlayResult[ControllerCase], Read]:
    """Play the paths on the release's own profile; return the result, and which of its switches were read on each."""
    profile = profile_of(node)
    # Not while playing: `play` takes the steps that paths begin with once, so only the first path would have their reads.
    reads = dict(zip(node.cases, switches_read(node.cases, profile, reference), strict=True))
    return play(node, node.cases, reference(profile)), reads


def paths_that_show(finding: str, node: TranscriptNode[ControllerCase], reads: Read) -> int:
    """Return on how many paths a controller differs from the reference without a finding; 0 if no scenario shows it."""
    profile, right = profile_of(node), controller_findings()[finding].right
    without = profile.switched(right)
    # The release does not have the finding.
    if without == profile:
        return 0
    own = [case for case in node.cases if case.name in SHOWN_BY and FINDINGS[SHOWN_BY[case.name]] == finding]
    if own and not play(node, own, reference(without)).differences:
        return 0
    # Where the reference reads none of the switches it does the same without the finding: no need to play.
    cases = [case for case in node.cases if reads[case] & right.keys()]
    return len(play(node, cases, reference(without)).differences)


def column(place: Path) -> Column:
    """Return a controller's column; a finding that no path shows has an empty cell."""
    node = read(place, CONTROLLER_FORMAT)
    played, reads = played_and_read(node)
    return {
        "paths": f"{played.cases:,}",
        "steps": f"{played.steps:,}",
        "paths that differ from its own profile": f"{len(played.differences):,}",
        **{finding: paths_that_show(finding, node, reads) or None for finding in controller_findings()},
    }


def sentences(table: Sequence[Sequence[str]]) -> list[str]:
    """Return a sentence for each row that docs/findings.md does not explain."""
    return [f"* **{row[0]}** {SAYS[row[0]]}" for row in table if row[0] in SAYS]


def record(release: str, jars: Path | None, folder: Path) -> tuple[bool, str]:
    """Play a release on an unmodified controller and record it; return whether it follows its profile, and a text."""
    profile = profile_named(f"{RELEASE}{release}")
    began = time.monotonic()
    with ControllerNode(build_of(release, jars)) as node:
        opening = node.opening()
        covers = (case for name in GRAPHS for case in cover_of(name, profile, opening).cases)
        cases = node.possible((*finding_cases(opening), *covers, *walks(SEED, WALKS, profile, opening)))
        recorder = Recorder(cases)
        shown = run(node, cases, reference(profile), (), recorder, log_lines=node.log_lines)
        place = place_of(release, folder, CONTROLLER)
        write(place, CONTROLLER_FORMAT, node.capabilities, profile.name, recorder.recorded())
    return not shown.played.differences, f"{text_of(shown)} ({time.monotonic() - began:.0f} s)"

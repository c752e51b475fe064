"""Which release's controller shows which finding: the second table of docs/kafka-releases.md, and what it is made of.

Rules of this file

1. A release shows a finding on a path where the reference without that finding does something else than the controller did;
   without it a controller is as in elr-repaired, in that finding's switches alone.
2. A finding with a scenario is shown if one of its scenarios shows it: before 4.3 the lists of F7 are written as
   they are since, and nothing comes of it.
"""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from tidegauge.conformance.judging.rulebook import known_bugs
from tidegauge.drive.broker.findings import Finding
from tidegauge.drive.contract import Report
from tidegauge.drive.controller import transcript
from tidegauge.drive.controller.contract import ControllerCase
from tidegauge.drive.controller.cover import cover_of
from tidegauge.drive.controller.explain import FINDINGS
from tidegauge.drive.controller.node import ControllerNode
from tidegauge.drive.controller.player import play
from tidegauge.drive.controller.run import run, scenarios, text_of
from tidegauge.drive.controller.scenarios import SHOWN_BY
from tidegauge.drive.controller.transcript import TranscriptNode
from tidegauge.drive.controller.walks import walks
from tidegauge.drive.kafka_process.jars import jars_of
from tidegauge.drive.profile_reads import watched
from tidegauge.drive.runner.differences import Played
from tidegauge.drive.runner.shipped import CONTROLLER, place_of, profile_of
from tidegauge.drive.runner.transcript import Recorder
from tidegauge.impl.profiles import ELR_REPAIRED
from tidegauge.impl.releases import RELEASE, Release, profile_named
from validation.releases.columns import Column

WALKS, SEED = 150, 1

GRAPHS = ("RepairedCompletion", "RepairedDisks", "RepairedReassignment", "RepairedFeature")
"""Whose covers are recorded: the other three have twice as many paths (docs/drive.md)."""

FIRST: Release = (3, 7)
"""The oldest release whose controller is played: an older one takes no BrokerRegistration that names directories."""

SAYS: Mapping[str, str] = {
    "KAFKA-19975": "A reassignment waits for all replicas of its target, not for those it adds. Fixed in 4.3.0.",
    "KAFKA-15665": "A reassignment that leaves fewer replicas completes though not all of them are in sync. Fixed in 3.8.0.",
    "apache/kafka#20716": "AssignReplicasToDirs forgets the ELR of a partition. Fixed in 4.3.0.",
    "KAFKA-18106": "Another incarnation of a broker registers and stays in every ISR. Fixed in 4.0.0.",
    "KAFKA-16952": "A broker that registers again as the same incarnation gets a new broker epoch. Fixed in 3.9.0.",
    "KAFKA-12670": "A topic's unclean.leader.election.enable is not heeded. Fixed in 3.9.0.",
    "KAFKA-17793": "A broker that is fenced is replaced at once by one that registers with its id. Changed in 4.0.0.",
    "KAFKA-19130": "After a failover a broker that was fenced and restarts is refused for a session. Fixed in 4.1.0.",
    "KAFKA-19522": "The last known leader is elected though it is fenced. Fixed in 4.1.0.",
    "apache/kafka#20629": "A partition without leader whose ISR becomes empty has the last known leader -1. Fixed in 4.1.1.",
}
"""What is no finding of docs/findings.md."""


def findings() -> dict[str, Finding]:
    """What a controller may do and another does not, by its name: every switch of FINDINGS against elr-repaired."""
    says = {**{bug.name: bug.says for bug in known_bugs().values()}, **SAYS}
    found = {}
    for finding in FINDINGS.values():
        right = {name: getattr(ELR_REPAIRED, name) for name, of in FINDINGS.items() if of == finding}
        found[finding] = Finding(finding, says.get(finding, ""), {name: not value for name, value in right.items()}, right)
    return found


Read = Mapping[ControllerCase, frozenset[str]]
"""The switches that the reference reads on each path."""


def played_and_read(node: TranscriptNode) -> tuple[Played[ControllerCase], Read]:
    """The paths played on the release's own profile, and which of its switches were read on each."""
    profile, names = watched(profile_of(node))
    read: defaultdict[ControllerCase, frozenset[str]] = defaultdict(frozenset)

    def note(number: int, _at: int, _seen: Report) -> bool:
        read[node.cases[number]] |= names
        names.clear()
        return True

    return play(node, node.cases, profile, note), read


def paths_that_show(finding: str, node: TranscriptNode, read: Read) -> int:
    """On how many paths a controller did what the reference without a finding does not; 0 where no scenario shows it."""
    profile, right = profile_of(node), findings()[finding].right
    without = profile.switched(right)
    if without == profile:
        return 0
    own = [case for case in node.cases if case.name in SHOWN_BY and FINDINGS[SHOWN_BY[case.name]] == finding]
    if own and not play(node, own, without).differences:
        return 0
    return len(play(node, [case for case in node.cases if read[case] & right.keys()], without).differences)


def column(place: Path) -> Column:
    """What stands in a controller's column; nothing for a finding that no path shows."""
    node = transcript.read(place)
    played, read = played_and_read(node)
    return {
        "paths": f"{played.cases:,}",
        "steps": f"{played.steps:,}",
        "paths that differ from its own profile": f"{len(played.differences):,}",
        **{finding: paths_that_show(finding, node, read) or None for finding in findings()},
    }


def sentences(table: Sequence[Sequence[str]]) -> list[str]:
    """What the rows are that docs/findings.md does not tell."""
    return [f"* **{row[0]}** {SAYS[row[0]]}" for row in table if row[0] in SAYS]


def record(release: str, jars: Path | None, folder: Path) -> tuple[bool, str]:
    """Play a release on an unmodified controller and record it; whether it does what its profile says, and a text."""
    profile = profile_named(f"{RELEASE}{release}")
    began = time.monotonic()
    with ControllerNode(release, jars_of(release, jars)) as node:
        opening = node.opening()
        covers = (case for name in GRAPHS for case in cover_of(name, profile, opening).cases)
        cases = node.possible((*scenarios(opening), *covers, *walks(SEED, WALKS, profile, opening)))
        recorder = Recorder(cases)
        shown = run(node, cases, profile, recorder, log_lines=node.log_lines)
        transcript.write(place_of(release, folder, CONTROLLER), node.name, profile.name, recorder.recorded())
    return not shown.played.differences, f"{text_of(shown)} ({time.monotonic() - began:.0f} s)"

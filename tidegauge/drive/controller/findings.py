"""The findings about controllers: the switches of a profile that a controller reads, and the finding behind each."""

from collections.abc import Mapping

from tidegauge.conformance.judge.rulebook import known_bugs
from tidegauge.drive.runner.reference import Finding
from tidegauge.impl.profiles import ELR_REPAIRED

FINDINGS: Mapping[str, str] = {
    "elr_keeps_removed": "F4",
    "min_isr_by_partition_zero": "F4",
    "min_isr_change_clears_elr": "F5",
    "indexes_go_stale": "F6",
    "reassignment_keeps_adding": "F7",
    "completes_by_adding": "KAFKA-19975",
    "fewer_wait_for_all": "KAFKA-15665",
    "heartbeat_in_one_pass": "F8",
    "neglects_elr_when_off": "F9",
    "recreated_stays_eligible": "F10",
    "assigns_dirs_without_elr": "apache/kafka#20716",
    "raised_min_isr_keeps_epoch": "F11",
    "completes_before_election": "F12",
    "forgets_last_member": "F13",
    "registration_leaves_isr": "KAFKA-18106",
    "amends_registration": "KAFKA-16952",
    "unclean_by_config": "KAFKA-12670",
    "fenced_has_session": "KAFKA-17793",
    "failover_renews_fenced": "KAFKA-19130",
    "elects_fenced_last_known": "KAFKA-19522",
    "notes_no_leader": "apache/kafka#20629",
}
"""The switches of a profile that a controller reads, and what docs/findings.md or the tracker calls them. What a feature
level decides (impl.controller.features.in_force) is no switch here."""

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
"""Sentences about the issues among them that are no finding of docs/findings.md."""


def controller_findings() -> dict[str, Finding]:
    """Return what a controller may do and another does not, by its name: every switch of FINDINGS against elr-repaired."""
    sentences = {**{bug.name: bug.says for bug in known_bugs().values()}, **SAYS}
    findings = {}
    for finding in FINDINGS.values():
        right = {name: getattr(ELR_REPAIRED, name) for name, shown in FINDINGS.items() if shown == finding}
        findings[finding] = Finding(
            finding, sentences.get(finding, ""), {name: not value for name, value in right.items()}, right
        )
    return findings

"""The findings about controllers: the switches of a profile that a controller reads, with the finding behind each, and the
findings as paths, as docs/findings.md has their runs.

A finding is something that controllers of some releases do, mostly a bug: F4 to F13 of docs/findings.md, or an issue. A path
is steps of the controller's contract (steps.py), each a tuple of a name and arguments; some functions here make them. F11 is
shown by half: what its leader commits needs a log.
"""

from collections.abc import Mapping

from tidegauge.conformance.judge.rulebook import known_bugs
from tidegauge.drive.contract import Path, Step
from tidegauge.drive.controller.contract import ALL, ClusterOpening, ControllerCase
from tidegauge.drive.runner.reference_interface import Finding
from tidegauge.impl.controller.records import TOPIC
from tidegauge.impl.controller.replication_control import MIN_IN_SYNC_REPLICAS
from tidegauge.impl.profiles import ELR_REPAIRED, Profile

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
    """Return every finding by its name: all its switches at the value that the profile elr-repaired does not have."""
    sentences = {**{bug.name: bug.says for bug in known_bugs().values()}, **SAYS}
    findings = {}
    for finding in FINDINGS.values():
        # A finding may be several switches.
        right = {switch: getattr(ELR_REPAIRED, switch) for switch, name in FINDINGS.items() if name == finding}
        switched = {switch: not value for switch, value in right.items()}
        findings[finding] = Finding(finding, sentences.get(finding, ""), switched, right)
    return findings


def is_left_unnoticed(profile: Profile) -> bool:
    """Return whether a session can be over for a while before the controller notices it.

    Not up to 3.9: there the controller checks when a session ends (path_cluster.py). The profile has no switch for that. But
    since 4.0 a fenced broker has a session, too (KAFKA-17793), so that switch tells the releases apart.
    """
    return profile.fenced_has_session


def registers(broker: int, *, new: bool = True, clean: bool = False, directories: str = "A") -> Step:
    """Return the step in which a broker registers, with one letter for each of its log directories.

    `new`: as a new incarnation; `clean`: after a clean shutdown.
    """
    return ("register", broker, new, clean, directories)


def beats(broker: int, *, fence: bool = False, shut_down: bool = False, offline: str = "", offset: int = ALL) -> Step:
    """Return a heartbeat of a broker, by default one that has read all metadata and wants nothing.

    `offline`: the letters of its log directories that have failed; `offset`: of the metadata that it has read.
    """
    # 0: with the broker's own broker epoch.
    return ("heartbeat", broker, 0, offset, fence, shut_down, offline)


def up(*brokers: int) -> Path:
    """Return the steps by which brokers register and are unfenced, one broker after the other."""
    return tuple(step for broker in brokers for step in (registers(broker), beats(broker)))


def topic(*assignment: tuple[int, ...], min_isr: int = 2) -> Step:
    """Return the creation of topic t, with these replicas for each of its partitions."""
    return ("create_topic", "t", assignment, ((MIN_IN_SYNC_REPLICAS, str(min_isr)),))


def min_isr(value: int) -> Step:
    """Return the step that sets min.insync.replicas of topic t."""
    return ("configure", TOPIC, "t", MIN_IN_SYNC_REPLICAS, str(value))


def fenced(broker: int) -> Step:
    """Return the heartbeat in which a broker asks to be fenced."""
    return beats(broker, fence=True)


SWITCH_OFF: Step = ("update_feature", "elr", 0, False)
SWITCH_ON: Step = ("update_feature", "elr", 1, True)

SCENARIOS: Mapping[str, Path] = {
    # Partition 1 is lowered to one replica and raised again: 2 and 3 are empty, in the ELR, and elected cleanly.
    "F4": (
        *up(1, 2, 3),
        topic((1, 2, 3), (1, 2, 3)),
        ("reassign", "t", 1, (1,)),
        ("reassign", "t", 1, (1, 2, 3)),
        ("session_expires", 1),
    ),
    # The same ghosts keep the only replica from leading after an unclean restart.
    "F4-last-known": (
        *up(1, 2, 3),
        topic((2, 3, 1), (1, 2, 3)),
        ("reassign", "t", 1, (1,)),
        ("session_expires", 1),
        registers(1),
        beats(1),
    ),
    # Everybody is down, min.insync.replicas is lowered, everybody comes back: nobody leads.
    "F5": (*up(1, 2), topic((1, 2)), fenced(2), fenced(1), min_isr(1), beats(1), beats(2)),
    # The index of a broker that was eligible outlives the topic: each of its registrations makes the controller resign.
    "F6": (
        *up(1, 2, 3),
        topic((1, 2)),
        ("session_expires", 2),
        min_isr(1),
        ("delete_topic", "t"),
        registers(2),
        registers(2),
        registers(2),
    ),
    # A reassignment is taken back by naming the old replicas, and never completes; cancelling it works.
    "F7": (
        *up(1, 2, 3),
        registers(4),
        topic((1, 2, 3)),
        ("reassign", "t", 0, (1, 2, 4)),
        ("reassign", "t", 0, (1, 2, 3)),
        ("alter_partition", 1, 0, "t", 0, 0, 2, (1, 2), False),
        ("alter_partition", 1, 0, "t", 0, 0, 3, (1, 2, 3), False),
        ("reassign", "t", 0, None),
    ),
    # A heartbeat unfences a broker and says that its directory has failed: it is elected there.
    "F8": (
        SWITCH_OFF,
        registers(1, directories="AB"),
        beats(1),
        ("create_topic", "t", ((1,),), ()),
        ("assign_directory", 1, 0, "t", 0, "A"),
        fenced(1),
        SWITCH_ON,
        beats(1, offline="A"),
    ),
    # An ELR from before the feature was switched off elects.
    "F9": (*up(1, 2), topic((1, 2)), fenced(2), SWITCH_OFF, min_isr(1), SWITCH_ON, fenced(1), beats(2)),
    # A replica is created again, empty, in another directory, and stays eligible.
    "F10": (
        *up(1, 2),
        topic((2, 1)),
        ("session_expires", 2),
        fenced(1),
        registers(2, clean=True, directories="B"),
        ("assign_directory", 2, 0, "t", 0, "B"),
        beats(2),
    ),
    # A leader that may not have read a higher min.insync.replicas shrinks its ISR, and is not refused.
    "F11": (*up(1, 2), topic((1, 2), min_isr=1), min_isr(2), ("alter_partition", 1, 0, "t", 0, 0, 0, (1,), False)),
    # An election brings in the last replica that a reassignment waits for, and completes nothing.
    "F12": (*up(1, 2), topic((1, 2)), fenced(1), fenced(2), ("reassign", "t", 0, (1,)), beats(1)),
    # ELR is switched on while nobody leads: the last member is forgotten with nobody to wait for.
    "F13": (
        SWITCH_OFF,
        *up(1, 2),
        topic((1, 2)),
        fenced(2),
        fenced(1),
        SWITCH_ON,
        beats(2),
        ("session_expires", 1),
        registers(1),
        beats(1),
    ),
}
"""By finding."""

SHOWN_BY: Mapping[str, str] = {
    "F4": "elr_keeps_removed",
    "F4-last-known": "elr_keeps_removed",
    "F5": "min_isr_change_clears_elr",
    "F6": "indexes_go_stale",
    "F7": "reassignment_keeps_adding",
    "F8": "heartbeat_in_one_pass",
    "F9": "neglects_elr_when_off",
    "F10": "recreated_stays_eligible",
    "F11": "raised_min_isr_keeps_epoch",
    "F12": "completes_before_election",
    "F13": "forgets_last_member",
}
"""By path of SCENARIOS, the switch of the profile without which the reference does something else on it."""


def finding_cases(opening: ClusterOpening) -> tuple[ControllerCase, ...]:
    """Return the findings' paths as cases with their names; without ELR in the opening those that may be played so."""

    def wants_elr(name: str) -> bool:
        """Return whether a path switches ELR on or off, or shows its finding without ELR, too, where it is harmless."""
        # The path of F11 shows its switch without ELR, too, where no record can be lost by it. Those of F4 and F5 show
        # nothing then: they are played.
        return name == "F11" or any(step[0] == "update_feature" for step in SCENARIOS[name])

    return tuple(
        ControllerCase(opening, path, name) for name, path in SCENARIOS.items() if opening.elr > 0 or not wants_elr(name)
    )

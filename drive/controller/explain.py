"""Which known differences between controllers make the reference do what a controller did.

Rule of this file: a switch explains a difference when the reference with it reports what was reported at every step of the
path up to there. One alone is looked for first, then two together.
"""

from collections.abc import Mapping
from itertools import combinations
from typing import NamedTuple

from tidegauge.drive.controller.contract import Difference, fields_that_differ
from tidegauge.drive.controller.player import Under
from tidegauge.impl.profiles import Profile

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
level decides (impl.control.features.profile_in_force) is no switch here."""


class Suspect(NamedTuple):
    """A switch with another value."""

    switch: str
    value: bool

    @property
    def turned(self) -> str:
        """The switch with that value."""
        return f"{self.switch}={'on' if self.value else 'off'}"

    def __str__(self) -> str:
        return f"{FINDINGS[self.switch]}: {self.turned}"


def explanations(found: Difference, profile: Profile) -> list[tuple[Suspect, ...]]:
    """The switches that do the same: those that do alone, else pairs."""
    suspects = [Suspect(switch, not getattr(profile, switch)) for switch in FINDINGS]
    for many in (1, 2):
        same = [some for some in combinations(suspects, many) if does_the_same(found, profile, some)]
        if same:
            return same
    return []


def switched(profile: Profile, switches: tuple[Suspect, ...]) -> Profile:
    """The profile with these switches."""
    return profile.switched({suspect.switch: suspect.value for suspect in switches})


def does_the_same(found: Difference, profile: Profile, switches: tuple[Suspect, ...]) -> bool:
    """Whether the reference with these switches does what the controller did, up to the step that differs."""
    right, wrong = Under(found.case.opening, profile), Under(found.case.opening, switched(profile, switches))
    for taken in found.case.path[: found.at - 1]:
        if fields_that_differ(right.given(taken), wrong.given(taken)):
            return False
    if found.step is None:
        return not fields_that_differ(wrong.report(), found.seen)
    return not fields_that_differ(wrong.given(found.step), found.seen)

"""What each release of Kafka did: the switches of impl.profiles, from 0.10.2 on.

Rules of this file

1. `SINCE` is the table: for each switch its values, each with the first release that has it. A fix that was ported back has
   a row for the patch release, and one for the release after it that was out already and lacked it.
2. A release runs with the metadata version (or inter-broker protocol) that is its own default.
3. `epoch_bump_on_shrink` is the KRaft controller's, which is there since 2.8.
4. Source: tags of apache/kafka, and the released sources of 3.9 to 4.3; issue numbers stand with the switches. 4.4.0 came
   without its sources: its classes were compared with those of 4.3.1, and none of what is switched here has changed.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tidegauge.impl.profiles import PROFILES, UNSAFE, WITHOUT, Profile
from tidegauge.util.errors import UsageError

Release = tuple[int, ...]

RELEASE = "release-"
"""What the name of a release's profile begins with: release-3.4.1."""

FIRST_RELEASE: Release = (0, 10, 2)
LAST_RELEASE: Release = (4, 4)
EVERY_RELEASE: Release = (0,)

_FALSE_UNTIL: Mapping[str, Release] = MappingProxyType(
    {
        "truncation_on_fetch": (2, 8),
        "offsets_for_leader_epoch": (0, 11),
        "fencing": (2, 1),
        "join_needs_epoch_start": (2, 0, 1),
        "blocks_under_min_isr": (3, 7),
        "cache_truncation_queued": (3, 8),
        "hw_rounded_to_batches": (4, 0),
        "guards_partition_epoch": (3, 3),
        "strict_cache": (2, 0, 1),
        "epoch_in_response": (2, 0),
        "epoch_responses_checked": (2, 1, 1),
        "fences_by_epoch": (2, 5),
        "fails_partitions": (2, 3),
        "truncation_clears_cache": (2, 6, 1),
        "truncation_lowers_hw": (2, 4),
        "delay_restarts": (4, 0),
        "counts_maximal_isr": (2, 7),
        "counts_only_eligible": (3, 6),
        "rejects_stale_fetch": (3, 7),
        "latest_needs_hw": (2, 2),
        "registration_leaves_isr": (4, 0),
        "elr": (4, 1),
        "fewer_wait_for_all": (3, 8),
        "amends_registration": (3, 9),
        "unclean_by_config": (3, 9),
        "fenced_has_session": (4, 0),
    }
)

SINCE: Mapping[str, tuple[tuple[Release, bool | str], ...]] = MappingProxyType(
    {
        **{name: ((EVERY_RELEASE, False), (release, True)) for name, release in _FALSE_UNTIL.items()},
        "response_epoch_checked": ((EVERY_RELEASE, False), ((3, 9, 1), True), ((4, 0, 0), False), ((4, 0, 1), True)),
        "batch_epoch_filter": ((EVERY_RELEASE, False), ((3, 9, 1), True), ((4, 0, 0), False), ((4, 0, 1), True)),
        "keeps_remote_leo": ((EVERY_RELEASE, True),),
        "reads_equal_partition_epoch": ((EVERY_RELEASE, True),),
        "elr_keeps_removed": ((EVERY_RELEASE, True),),
        "min_isr_by_partition_zero": ((EVERY_RELEASE, True),),
        "min_isr_change_clears_elr": ((EVERY_RELEASE, True),),
        "indexes_go_stale": ((EVERY_RELEASE, True),),
        "completes_by_adding": ((EVERY_RELEASE, True), ((3, 8), False), ((4, 3), True)),
        "reassignment_keeps_adding": ((EVERY_RELEASE, True),),
        "completes_before_election": ((EVERY_RELEASE, True),),
        "heartbeat_in_one_pass": ((EVERY_RELEASE, True),),
        "neglects_elr_when_off": ((EVERY_RELEASE, True),),
        "recreated_stays_eligible": ((EVERY_RELEASE, True),),
        "raised_min_isr_keeps_epoch": ((EVERY_RELEASE, True),),
        "forgets_last_member": ((EVERY_RELEASE, True),),
        "assigns_dirs_without_elr": ((EVERY_RELEASE, True), ((4, 3), False)),
        "failover_renews_fenced": ((EVERY_RELEASE, False), ((4, 0), True), ((4, 1), False)),
        "elects_fenced_last_known": ((EVERY_RELEASE, True), ((4, 1), False)),
        "notes_no_leader": ((EVERY_RELEASE, True), ((4, 1, 1), False)),
        "fetcher_restart": (
            (EVERY_RELEASE, "leader"),
            ((2, 0, 1), "leader-or-jump"),
            ((2, 1), "leader-or-epoch"),
            ((3, 3), "epoch"),
        ),
        "initial_offset": ((EVERY_RELEASE, "hw"), ((0, 11), "log-end"), ((1, 1), "hw"), ((2, 8), "log-end-or-hw")),
        "exits_out_of_range": ((EVERY_RELEASE, True), ((2, 0, 1), False)),
        "applies_diverging": ((EVERY_RELEASE, False), ((2, 8), True), ((3, 4, 1), False)),
        "out_of_range_first": ((EVERY_RELEASE, False), ((2, 7, 2), True), ((2, 8, 0), False), ((2, 8, 1), True)),
        "keeps_last_epoch": ((EVERY_RELEASE, True), ((3, 5, 1), False), ((3, 7), True)),
        "hw_after_isr_response": ((EVERY_RELEASE, True), ((2, 7), False), ((3, 1), True)),
        "eligibility": ((EVERY_RELEASE, "alive"), ((3, 3), "unfenced"), ((3, 5), "incarnation")),
        "unknown_producer": ((EVERY_RELEASE, "out-of-order"), ((1, 0), "unknown"), ((2, 5), "taken")),
        "old_batch_is_duplicate": ((EVERY_RELEASE, False), ((1, 0), True), ((1, 0, 2), False)),
        "hw_wakes_followers": ((EVERY_RELEASE, False), ((2, 4), True), ((2, 6), False)),
        "epoch_bump_on_shrink": ((EVERY_RELEASE, False), ((2, 8), True), ((3, 6), False)),
    }
)
"""Switch -> (first release, value), ascending."""


def parse_release(text: str) -> Release:
    """Parse a release such as 0.10.2, 3.6.1 or 4.0. Raises UsageError."""
    parts = text.split(".")
    if not all(part.isdecimal() and part.isascii() for part in parts) or not 2 <= len(parts) <= 4:
        raise UsageError(f"release: expected numbers such as 3.6.1; seen {text!r}; write the release as numbers")
    version = tuple(int(part) for part in parts)
    if version < FIRST_RELEASE or version[:2] > LAST_RELEASE:
        raise UsageError(
            f"release: expected one from {_text(FIRST_RELEASE)} to {_text(LAST_RELEASE)}; seen {text!r}; choose one of those"
        )
    return version


def profile_of_release(text: str) -> Profile:
    """Return the profile of a release, named `release-<release>`."""
    version = parse_release(text)
    switches: dict[str, Any] = {
        name: [value for since, value in rows if since <= version][-1] for name, rows in SINCE.items()
    }
    return Profile(name=f"{RELEASE}{text}", **switches)


def profile_named(name: str) -> Profile:
    """Return the profile called `name`: a generation, or a release, or one of them with bugs repaired. Raises UsageError."""
    generation, without, bugs = name.partition(WITHOUT)
    if without:
        profile = profile_named(generation)
        # The names of issues have a hyphen of their own: the name is compared whole.
        repaired = profile.without([bug for bug in UNSAFE.values() if f"-{bug}-" in f"-{bugs}-"])
        if repaired.name != name:
            raise UsageError(
                f"profile: expected after {generation}{WITHOUT} what {generation} has of {', '.join(UNSAFE.values())}, in "
                f"this order, with a hyphen between; seen {name!r}; write the name so"
            )
        return repaired
    if name.startswith(RELEASE):
        return profile_of_release(name.removeprefix(RELEASE))
    if name not in PROFILES:
        raise UsageError(
            f"profile: expected one of {', '.join(PROFILES)}, or {RELEASE} and a release such as 3.4.1; "
            f"seen {name!r}; choose one of those"
        )
    return PROFILES[name]


def _text(version: Release) -> str:
    return ".".join(map(str, version))

"""What each release of Kafka did: the switches of impl.profiles, from 0.10.2 on; and profiles by their names.

A *switch* is one respect in which releases differ, a *profile* a value for each (impl.profiles). A profile is a
*generation*, one of PROFILES, or that of a release. Names: `kip101`, `release-4.3.1` or `4.3.1`; with switches changed,
`4.3.1+keeps_remote_leo=off`; with known bugs repaired, `4.3.1-without-F2`. A cluster of mixed releases is named
`1=3.9.1,2=4.3.1`, by broker id.

Rules of this file

1. `SINCE` is the table: for each switch its values, each with the first release that has it. A fix that was ported back has
   a row for the patch release, and one for the release after it that was out already and lacked it.
2. A release runs with the metadata version (or inter-broker protocol) that is its own default.
3. `epoch_bump_on_shrink` is the KRaft controller's, which is there since 2.8.
4. Source: tags of apache/kafka, and the released sources of 3.9 to 4.3; issue numbers stand with the switches. 4.4.0 came
   without its sources: its classes were compared with those of 4.3.1, and none of what is switched here has changed.
"""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from tidegauge.impl.profiles import CHANGED, PROFILES, UNSAFE, WITHOUT, ClusterProfiles, Profile, switch_text
from tidegauge.util.errors import UsageError

Release = tuple[int, ...]

RELEASE = "release-"
"""What the name of a release's profile begins with: release-3.4.1."""

FIRST_RELEASE: Release = (0, 10, 2)
LAST_RELEASE: Release = (4, 4)
EVERY_RELEASE: Release = (0,)

SHOWN_NEAR = 3
"""How many names are shown that a wrong one may have meant."""

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


class ComparedRelease(NamedTuple):
    """The release whose profile a build is expected to have; `note` says why, where its version does not name it."""

    release: str
    note: str = ""


_NUMBERS = re.compile(r"v?([0-9]{1,9})\.([0-9]{1,9})(?:\.([0-9]{1,9}))?")
_CONFLUENT_SUFFIXES, CONFLUENT_AHEAD, CONFLUENT_FIRST = ("-ccs", "-ce"), 4, (7, 0)
"""How versions of Confluent's builds end. From 7.0 on they are four major versions ahead: 7.9.1-ccs is Kafka 3.9."""


def release_of_version(version: str) -> ComparedRelease:
    """Return the release that a build is compared with, by its version: of 4.4.0-SNAPSHOT, 3.9.0.redhat-00001, 7.9.1-ccs.

    A version without numbers, or later than every known release, is compared with the newest release.
    """
    numbers, newest = _NUMBERS.match(version), _text(LAST_RELEASE)
    if numbers is None:
        return ComparedRelease(newest, f"{version} has no number: compared with {newest}, the newest release that is known")
    release: Release = tuple(int(number) for number in numbers.groups() if number is not None)
    note = ""
    if any(suffix in version for suffix in _CONFLUENT_SUFFIXES) and release >= CONFLUENT_FIRST:
        release = (release[0] - CONFLUENT_AHEAD, *release[1:])
        note = f"{version} is Confluent's build of Kafka {_text(release[:2])}: compared with {_text(release)}"
    # 0.10.2.1 is a patch release, while the fourth number of a later version is its vendor's.
    if release[0] == 0:
        return ComparedRelease(version)
    if release[:2] > LAST_RELEASE:
        return ComparedRelease(
            newest, f"{version} is later than {newest}, the newest release that is known: compared with that"
        )
    return ComparedRelease(_text(release), note)


def profile_of_release(text: str) -> Profile:
    """Return the profile of a release such as "3.6.1", named `release-3.6.1`. Raises UsageError."""
    version = parse_release(text)
    # The rows of a switch ascend, so the last row up to the release has its value.
    switches: dict[str, Any] = {
        name: [value for since, value in rows if since <= version][-1] for name, rows in SINCE.items()
    }
    return Profile(name=f"{RELEASE}{text}", **switches)


def profile_named(name: str) -> Profile:
    """Return the profile called `name`. Raises UsageError.

    It is a generation, or a release (`release-4.3.1` or `4.3.1`); or one of them with switches changed
    (`4.3.1+keeps_remote_leo=off`), or with bugs repaired (`release-4.3.1-without-F2`).
    """
    generation, without, bugs = name.partition(WITHOUT)
    if without:
        profile = profile_named(generation)
        # The names of issues have a hyphen of their own: the name is compared whole.
        repaired = profile.without([bug for bug in UNSAFE.values() if f"-{bug}-" in f"-{bugs}-"])
        if repaired.name != f"{profile.name}{WITHOUT}{bugs}":
            raise UsageError(
                f"profile: expected after {generation}{WITHOUT} what {generation} has of {', '.join(UNSAFE.values())}, in "
                f"this order, with a hyphen between; seen {name!r}; write the name so"
            )
        return repaired
    # Of several changes the last one is taken off, and the rest of the name is read in the same way.
    unchanged, change = _last_change(name)
    if change is not None:
        return profile_named(unchanged).with_switch(*change)
    if name.startswith(RELEASE):
        return profile_of_release(name.removeprefix(RELEASE))
    if name in PROFILES:
        return PROFILES[name]
    if name[:1].isdecimal():
        return profile_of_release(name)
    raise UsageError(
        f"profile: expected one of {', '.join(PROFILES)}, or {RELEASE} and a release such as 3.4.1, or one of these with a "
        f"switch changed, such as 4.3.1+keeps_remote_leo=off; seen {name!r}; choose one of those"
    )


_BY_BROKER = re.compile(r"([0-9]{1,10})=(.*)", re.DOTALL)
"""A broker's own profile in the name of a cluster's: 1=3.9.1."""


def profiles_named(name: str, nodes: Sequence[int]) -> ClusterProfiles:
    """Return the profiles of a cluster whose broker ids are `nodes`, by the cluster's name. Raises UsageError.

    The name has parts with commas between them. A part such as `1=3.9.1` is the profile of broker 1. A part without an id is
    the profile of the controller, and of every broker that no part names. If there is no such part, every broker has to be
    named, and the controller has the profile of the first part. Eligible leader replicas are decided by the metadata
    version, so all brokers and the controller get the same value of `elr`.
    """
    own: dict[int, Profile] = {}
    default: Profile | None = None
    for part in name.split(","):
        by_broker = _BY_BROKER.fullmatch(part)
        # A second part for the same broker, or a second one for all others.
        is_second = default is not None if by_broker is None else int(by_broker[1]) in own
        if is_second:
            raise UsageError(
                f"profile: expected one for each broker, and one for all others; seen two in {name!r}; leave one out"
            )
        if by_broker is None:
            default = profile_named(part)
        else:
            own[int(by_broker[1])] = profile_named(by_broker[2])
    missing = [str(node) for node in nodes if node not in own]
    if default is None and missing:
        raise UsageError(
            f"profile: expected one for each of the brokers {', '.join(map(str, nodes))}; seen in {name!r} none for "
            f"{', '.join(missing)}; name it, or add one without an id for all others"
        )
    # Without a default every broker is named, so that this is the controller's profile alone.
    for_others = default or next(iter(own.values()))
    brokers = [own.get(node, for_others) for node in nodes]
    # The brokers' ELR counts only where all of them have it: the metadata version is that of the oldest.
    controller = default or for_others._replace(elr=all(profile.elr for profile in brokers))
    if not own:
        return ClusterProfiles(controller.name, controller, tuple(brokers))
    with_same_elr = tuple(profile._replace(elr=controller.elr) for profile in brokers)
    return ClusterProfiles(name, controller, with_same_elr)


def names_brokers(name: str) -> bool:
    """Return whether a name is that of a cluster with a profile per broker: 1=3.9.1,2=4.3.1."""
    return "," in name or _BY_BROKER.fullmatch(name) is not None


def profile_names(name: str) -> Iterator[str]:
    """Yield the names of the profiles in a cluster's name: 3.9.1 and 4.3.1 for 1=3.9.1,2=4.3.1."""
    for part in name.split(","):
        by_broker = _BY_BROKER.fullmatch(part)
        yield part if by_broker is None else by_broker[2]


@cache
def profile_of_node(name: str, node: int) -> Profile:
    """Return the profile of the broker with id `node`, by the cluster's name; the other brokers do not matter for it."""
    return profiles_named(name, (node,)).brokers[0]


def _last_change(name: str) -> tuple[str, tuple[str, bool | str] | None]:
    """Split the last changed switch off a profile's name: return (the name before it, (switch, value)).

    `4.3.1+elr=on` and `4.3.1+elr` change a switch, `4.3.1-elr` switches one off. A name without a change is (name, None).
    """
    for switch in SINCE:
        # Words of other names have hyphens between them as well: only the name of a switch at the end is one.
        if name.endswith(f"-{switch}"):
            return name.removesuffix(f"-{switch}"), (switch, switch_value(switch, "off"))
    before, plus, change = name.rpartition(CHANGED)
    if not plus:
        return name, None
    switch, equals, text = change.partition("=")
    return before, (switch, switch_value(switch, text if equals else "on"))


def switch_value(switch: str, text: str) -> bool | str:
    """Parse the value of a switch: on, off, or its text. Raises UsageError for a wrong name or value."""
    values = {switch_text(value): value for value in switch_values(switch)}
    if text not in values:
        raise UsageError(f"profile: expected {switch}= and one of {', '.join(values)}; seen {text!r}; choose one of those")
    return values[text]


def switch_values(switch: str) -> Iterator[bool | str]:
    """Yield the values that a switch can have. Raises UsageError for a name that no switch has."""
    if switch not in SINCE:
        near = difflib.get_close_matches(switch, SINCE, SHOWN_NEAR)
        raise UsageError(
            f"profile: expected after + the name of a switch, as tidegauge/impl/profiles.py lists them; seen {switch!r}; "
            + (f"is it {' or '.join(near)}?" if near else "write it as it is there")
        )
    values = dict.fromkeys(value for _, value in SINCE[switch])
    # A bool may be switched to a value that no release has.
    yield from (True, False) if isinstance(next(iter(values)), bool) else values


def _text(version: Release) -> str:
    """Format a release as text: 3.6.1."""
    return ".".join(map(str, version))

"""Short paths that distinguish: for each switch of a profile and each known bug one on which a broker that has it differs.

A cover takes each local step of the *expected* model once. It need not show the state that a broker does not report, such as
a peer's log end. So these paths are played as well, and the suspects that none distinguishes are named.

Rules of this file

1. distinguishing.json.gz has the paths by suspect (`Reference.suspects`), shrunk; validation.docs.distinguishing makes it.
2. Whether a path distinguishes is computed for the profile and the capabilities of a run: the file only has the candidates.
3. `OUT_OF_REACH` has the switches that no path of the contract can show, with the reason. A suspect that is in no list and
   not in the file is a controller's.
"""

import gzip
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from tidegauge.drive.broker.applied_rules import counting
from tidegauge.drive.broker.contract import BrokerCase, Opening
from tidegauge.drive.broker.reference import BrokerReference, reference
from tidegauge.drive.contract import Capabilities, Report, frozen
from tidegauge.drive.runner.reference import Suspect
from tidegauge.impl.profiles import CHANGED, WITHOUT, Profile
from tidegauge.impl.releases import profile_named

LAG_TIME = "nobody who is behind has caught up in time"

OUT_OF_REACH: Mapping[str, str] = MappingProxyType(
    {
        "counts_only_eligible": LAG_TIME,
        "delay_restarts": "back-off has no length",
        "cache_truncation_queued": "no path ends the process before the cache is written",
        "unknown_producer": "no producer has sequences",
        "old_batch_is_duplicate": "no producer has sequences",
    }
)
"""Switches that no path of the contract tells, or one value of a switch, and why."""

OUT_OF_REACH_IN_KAFKA: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        LAG_TIME: (
            "ReplicaState#isCaughtUp",
            "Replica#updateFetchStateOrThrow",
            "Partition#maybeIncrementLeaderHW",
            "Partition#shouldWaitForReplicaToJoinIsr",
        ),
        "back-off has no length": ("AbstractFetcherThread#delayPartitions",),
        # A peer's fetch that waits is answered as soon as its leader is none, so before its log is truncated.
        "no consumer waits at a follower": ("DelayedFetch#tryComplete",),
    }
)
"""By reason, Kafka's methods of which a change in that regard is not seen."""

WITHOUT_EFFECT = frozenset({"fetcher_restart", "epoch_responses_checked", "fences_by_epoch"})
"""Switches that have an effect in generations that truncate by epoch responses alone: the file has no path for them."""

SAMPLE = 300
"""How many of a run's other paths are tried for what no path of the file tells."""


class TellingPaths(NamedTuple):
    """Paths that tell, by suspect, and the suspects that no path of a run tells."""

    by_suspect: Mapping[str, BrokerCase]
    unseen: tuple[str, ...]

    @property
    def cases(self) -> list[BrokerCase]:
        """Return the paths, each once."""
        return list(dict.fromkeys(self.by_suspect.values()))


@cache
def recorded_paths() -> Mapping[str, BrokerCase]:
    """Return the paths of the file, by suspect."""
    text = gzip.decompress(files(__package__).joinpath("distinguishing.json.gz").read_bytes())
    recorded = json.loads(text)
    return MappingProxyType({name: BrokerCase(Opening(*frozen(opening)), frozen(path)) for name, opening, path in recorded})


def telling_paths(profile: Profile, capabilities: Capabilities, others: Sequence[BrokerCase] = ()) -> TellingPaths:
    """Return for each suspect of a profile a path that tells, as far as a broker can be given one.

    `others`: the other paths of the run, some of which are tried where the file has none.
    """
    right = reference(profile)
    possible = [case for case in dict.fromkeys(recorded_paths().values()) if right.can_be_given(case, capabilities)]
    more = others[:: max(1, len(others) // SAMPLE)]
    by_suspect: dict[str, BrokerCase] = {}
    unseen = []
    for suspect in right.suspects():
        switch = switch_of(suspect.name)
        own = [case for name, case in recorded_paths().items() if switch_of(name) == switch and case in possible]
        if not own and not _is_of_brokers(switch):
            continue
        # Where no path of the contract can tell none is looked for.
        tried = () if why_unseen(suspect.name) else (*own, *possible, *more)
        found = next((case for case in tried if distinguishes(case, right, suspect, capabilities.reports)), None)
        if found is None:
            unseen.append(suspect.name)
        else:
            by_suspect[suspect.name] = found
    return TellingPaths(by_suspect, tuple(unseen))


def switch_of(suspect: str) -> str:
    """Return the name of a suspect without the value that its switch has; that of a bug is the whole."""
    return suspect.partition("=")[0]


def why_unseen(suspect: str) -> str:
    """Return why no path of the contract tells a suspect; empty if one may."""
    return OUT_OF_REACH.get(suspect, OUT_OF_REACH.get(switch_of(suspect), ""))


def _is_of_brokers(switch: str) -> bool:
    return switch in OUT_OF_REACH or switch in WITHOUT_EFFECT or any(switch_of(name) == switch for name in recorded_paths())


class PlayedPath(NamedTuple):
    """What the right broker reports on a path, and the switches and rules that it asks for meanwhile."""

    reports: tuple[Report, ...]
    asked: frozenset[str]


class _WatchedProfile:
    """A profile that notes which of its switches are read."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self.asked: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.asked.add(name)
        return getattr(self._profile, name)


@lru_cache(maxsize=1 << 12)
def _played(case: BrokerCase, right: BrokerReference) -> PlayedPath:
    profile, applied = _WatchedProfile(right.profile), Counter[tuple[str, str]]()
    watched = replace(right, profile=cast("Profile", profile), rules=counting(applied))
    reports = tuple(watched.reports(case))
    return PlayedPath(reports, frozenset({*profile.asked, *(rule for rule, _ in applied)}))


def distinguishes(case: BrokerCase, right: BrokerReference, suspect: Suspect, reported: frozenset[str]) -> bool:
    """Return whether a broker with a bug reports something else on a path than the right one, which has no bug."""
    expected = _played(case, right)
    # Of what nobody asks for, another value changes nothing.
    if suspect.wrong_step is None and expected.asked.isdisjoint((*suspect.switches, *suspect.rules)):
        return False
    wrong = right.with_bugs([suspect]).reports(case)
    return any(right.differences(report, seen, reported) for report, seen in zip(expected.reports, wrong, strict=True))


# A profile with switches changed: what they are told from.


def changed_switches(profile: Profile) -> Iterator[Suspect]:
    """Yield the switches that the name of a profile changes, each as a bug: what a broker does that has it as before.

    `says` is the name of the profile without the changes.
    """
    generation, *changes = profile.name.partition(WITHOUT)[0].split(CHANGED)
    before = profile_named(generation)
    for change in changes:
        name = change.partition("=")[0]
        if getattr(before, name) != getattr(profile, name):
            yield Suspect(change, before.name, {name: getattr(before, name)})


def change_lines(profile: Profile, cases: Sequence[BrokerCase], reported: frozenset[str]) -> list[str]:
    """Return how many of the paths tell each changed switch from what it was, a line each."""
    right, lines = reference(profile), []
    for change in changed_switches(profile):
        many = sum(distinguishes(case, right, change, reported) for case in cases)
        lines.append(f"{change.name}: told from {change.says} on {many:,} of {len(cases):,} short paths")
    return lines

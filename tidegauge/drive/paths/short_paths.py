"""The paths that are played besides a cover: those on which a suspect shows, and requests that must be refused.

A suspect is a bug that a broker may have: another value of a switch of the profile, a wrong rule, or a wrong step. A path
tells it if the reports of a broker that has it differ there from those of the right one. For each suspect there is a short
path that tells it. A cover takes each local step of the *expected* model once: it need not show the state that a broker does
not report, such as a peer's log end. The suspects that no path tells are named in the report. Of a Suspect `name` is a bug's
or "switch=value"; `switches` (wrong values by name), `rules` (wrong rules by name) and `wrong_step` are what it is made of.

Rules of this file

1. distinguishing.json.gz has the paths by suspect (`Reference.suspects`), shrunk; validation.docs.distinguishing makes it.
2. Whether a path distinguishes is computed for the profile and the capabilities of a run: the file only has the candidates.
3. `OUT_OF_REACH` has the switches that no path of the contract can show, with the reason. A suspect that is in no list and
   not in the file is a controller's.
"""

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from importlib.resources import files
from itertools import product
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from tidegauge.drive.broker.applied_rules import counting
from tidegauge.drive.broker.contract import BROKER, COMMITTED, EARLIEST, LATEST, STANDINGS, BrokerCase, Opening
from tidegauge.drive.broker.reference import BrokerReference, is_possible, missing_capability, reference, take_step
from tidegauge.drive.broker.state import opened
from tidegauge.drive.broker.steps import action_of
from tidegauge.drive.contract import Capabilities, Path, Report, Step, frozen
from tidegauge.drive.runner.reference_interface import Suspect
from tidegauge.impl.errors import UNKNOWN_SERVER_ERROR
from tidegauge.impl.profiles import CHANGED, WITHOUT, Profile
from tidegauge.impl.releases import profile_named
from tidegauge.impl.rules import (
    FENCED_LEADER_EPOCH,
    INELIGIBLE_REPLICA,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    NEW_LEADER_ELECTED,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    OPERATION_NOT_ATTEMPTED,
    UNDEFINED,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from tidegauge.util.errors import TidegaugeError

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
"""Suspects (switches, or one value of a switch) that no path of the contract tells, and why."""

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
    """Return the paths of distinguishing.json.gz, by the name of the suspect that they tell."""
    text = gzip.decompress(files(__package__).joinpath("distinguishing.json.gz").read_bytes())
    recorded = json.loads(text)
    return MappingProxyType({name: BrokerCase(Opening(*frozen(opening)), frozen(path)) for name, opening, path in recorded})


def telling_paths(profile: Profile, capabilities: Capabilities, others: Sequence[BrokerCase] = ()) -> TellingPaths:
    """Return for each suspect of a profile a path that tells it, if there is one that a broker can be given.

    `capabilities`: the steps that the broker can be given, and the fields that it reports. `others`: the other paths of the
    run, of which a sample is tried where the file has none.
    """
    right = reference(profile)
    possible = [case for case in dict.fromkeys(recorded_paths().values()) if right.can_be_given(case, capabilities)]
    # About SAMPLE of them, spread evenly.
    sample = others[:: max(1, len(others) // SAMPLE)]
    by_suspect: dict[str, BrokerCase] = {}
    unseen = []
    for suspect in right.suspects():
        switch = switch_of(suspect.name)
        # The recorded paths of any value of the same switch.
        own = [case for name, case in recorded_paths().items() if switch_of(name) == switch and case in possible]
        # A suspect of controllers shows on no path of a broker, and is not named as unseen: rule 3 of this file.
        if not own and not _is_of_brokers(switch):
            continue
        # First the recorded paths of this switch, then all recorded ones, then a sample of the run's. None are tried where
        # no path of the contract can tell the suspect.
        candidates = () if why_unseen(suspect.name) else (*own, *possible, *sample)
        path = next((case for case in candidates if distinguishes(case, right, suspect, capabilities.reports)), None)
        if path is None:
            unseen.append(suspect.name)
        else:
            by_suspect[suspect.name] = path
    return TellingPaths(by_suspect, tuple(unseen))


def switch_of(suspect: str) -> str:
    """Return the switch in the name of a suspect, `switch=value`; a name without a value is returned as it is."""
    return suspect.partition("=")[0]


def why_unseen(suspect: str) -> str:
    """Return why no path of the contract tells a suspect; empty if one may."""
    return OUT_OF_REACH.get(suspect, OUT_OF_REACH.get(switch_of(suspect), ""))


def _is_of_brokers(switch: str) -> bool:
    """Return whether a switch, or a bug by its name, is about brokers; all others are about controllers."""
    return switch in OUT_OF_REACH or switch in WITHOUT_EFFECT or any(switch_of(name) == switch for name in recorded_paths())


class ExpectedReports(NamedTuple):
    """What the right broker reports on a path, and the names of the switches and rules that it uses meanwhile."""

    reports: tuple[Report, ...]
    dependencies: frozenset[str]


class _WatchedProfile:
    """A profile that records which of its switches are read."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self.switches_read: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.switches_read.add(name)
        return getattr(self._profile, name)


@lru_cache(maxsize=1 << 12)
def _expected_reports(case: BrokerCase, right: BrokerReference) -> ExpectedReports:
    """Return the reports of the right broker on a path, and the switches and rules that they depend on."""
    profile, applied_rules = _WatchedProfile(right.profile), Counter[tuple[str, str]]()
    watched = replace(right, profile=cast("Profile", profile), rules=counting(applied_rules))
    reports = tuple(watched.reports(case))
    return ExpectedReports(reports, frozenset({*profile.switches_read, *(rule for rule, _ in applied_rules)}))


def distinguishes(case: BrokerCase, right: BrokerReference, suspect: Suspect, reported: frozenset[str]) -> bool:
    """Return whether a path tells a suspect: a broker that has it reports something else there than the right one.

    `reported`: the fields that the broker under test reports, which alone are compared.
    """
    expected = _expected_reports(case, right)
    # A switch or a rule that the path does not use makes no difference there. This saves most of the work. What a wrong step
    # uses is not known.
    if suspect.wrong_step is None and expected.dependencies.isdisjoint((*suspect.switches, *suspect.rules)):
        return False
    wrong_reports = right.with_bugs([suspect]).reports(case)
    pairs = zip(expected.reports, wrong_reports, strict=True)
    return any(right.differences(report, wrong_report, reported) for report, wrong_report in pairs)


# A profile with switches changed, such as a release's with one switch of a later one: does a run show the change?


def changed_switches(profile: Profile) -> Iterator[Suspect]:
    """Yield the switches that the name of a profile changes, each as the suspect that still has the value before the change.

    A changed name is such as release-4.3.1+keeps_remote_leo=off. A suspect's `says` is the name without the changes.
    """
    generation, *changes = profile.name.partition(WITHOUT)[0].split(CHANGED)
    before = profile_named(generation)
    for change in changes:
        name = change.partition("=")[0]
        if getattr(before, name) != getattr(profile, name):
            yield Suspect(change, before.name, {name: getattr(before, name)})


def change_lines(profile: Profile, cases: Sequence[BrokerCase], reported: frozenset[str]) -> list[str]:
    """Return a line for each changed switch: on how many of the paths it differs from its value before the change.

    `reported`: the fields that the broker under test reports.
    """
    right, lines = reference(profile), []
    for change in changed_switches(profile):
        count = sum(distinguishes(case, right, change, reported) for case in cases)
        lines.append(f"{change.name}: told from {change.says} on {count:,} of {len(cases):,} short paths")
    return lines


# ---------------------------------------------------------------------------------------------------------------------
# Requests that must be refused, and responses with errors: what a cover does not play, since a model's brokers send none.
#
# Each path is one of a few beginnings, one such step, and a step that shows whether it has left something behind. An
# argument takes every kind of value: epochs before, at and after the leader's, offsets below, at and beyond every end.
#
# The steps used here, a name with its arguments; UNDEFINED (-1) stands for none:
#
#     metadata: leader, leader epoch, partition epoch, ISR
#     append: acks, 1 or -1 (all)
#     fetch: peer, current leader epoch, fetch offset, last fetched epoch, whether the peer may join the ISR
#     fetch_ineligible: the same, with the reason why the peer may not join
#     offsets_for_leader_epoch: current leader epoch, leader epoch
#     list_offsets: current leader epoch, which offset
#     delete_records: the offset to delete up to
#     lose_response: the leader that it is lost from
#     fetch_response: leader, error, high watermark, log start, records, diverging (epoch, end), (earliest, latest) offset
#     alter_partition_response: error, partition epoch, ISR
#     crash: high watermark of the checkpoint, log end that is left


IN_SYNC, OUTSIDE = 2, 3
"""The peers: one in the ISR, and one outside."""
OPENING = Opening((IN_SYNC, OUTSIDE))
EPOCH = 3
"""The leader epoch of each beginning; its log has records of 1 and of 3, and 0 and 2 never were."""

LEADS: Path = (
    ("metadata", BROKER, 1, 0, (BROKER, IN_SYNC)),
    ("append", 1),
    ("append", 1),
    ("fetch", IN_SYNC, 1, 1, 1, True),
    ("metadata", BROKER, EPOCH, 1, (BROKER, IN_SYNC)),
    ("append", 1),
)
PROPOSES: Path = (*LEADS, ("fetch", IN_SYNC, EPOCH, 3, 3, True), ("fetch", OUTSIDE, EPOCH, 3, 3, True))
NOT_PROPOSED: Path = (*LEADS, ("append", 1), ("fetch", IN_SYNC, EPOCH, 3, 3, True))
COMMITS: Step = ("alter_partition_response", NONE, 5, (BROKER, IN_SYNC, OUTSIDE))
FOLLOWS: Path = (
    ("metadata", IN_SYNC, EPOCH, 0, (BROKER, IN_SYNC)),
    ("fetch_response", IN_SYNC, NONE, 1, 0, ((0, 0, 1), (1, 1, EPOCH)), None, None),
)
STARTS_ANEW: Path = (
    *FOLLOWS,
    ("fetch_response", IN_SYNC, OFFSET_OUT_OF_RANGE, UNDEFINED, UNDEFINED, (), None, (5, 9)),
    ("fetch_response", IN_SYNC, NONE, 6, 5, ((5, 5, EPOCH),), None, None),
)

EPOCHS = (UNDEFINED, EPOCH - 1, EPOCH, EPOCH + 1)
OFFSETS = (UNDEFINED, 0, 1, 2, 3, 4, 9)
ANY_EPOCHS = (UNDEFINED, 0, 1, 2, 3, 4)

FETCH_ERRORS = (
    UNKNOWN_TOPIC_OR_PARTITION,
    NOT_LEADER_OR_FOLLOWER,
    FENCED_LEADER_EPOCH,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_TOPIC_ID,
)
PROPOSAL_ERRORS = (
    UNKNOWN_TOPIC_OR_PARTITION,
    INVALID_REQUEST,
    OPERATION_NOT_ATTEMPTED,
    FENCED_LEADER_EPOCH,
    INVALID_UPDATE_VERSION,
    UNKNOWN_TOPIC_ID,
    INELIGIBLE_REPLICA,
    NEW_LEADER_ELECTED,
    UNKNOWN_SERVER_ERROR,
)
"""What a controller may respond to a proposal with. Partition#handleAlterPartitionError."""


def refusals(profile: Profile, capabilities: Capabilities) -> list[BrokerCase]:
    """Return the paths of this part that a broker of this generation, with these capabilities, can be given."""
    return [case for cases in refusals_by_action(profile, capabilities).values() for case in cases]


def refusals_by_action(profile: Profile, capabilities: Capabilities) -> Mapping[str, Sequence[BrokerCase]]:
    """Return the same paths by the action of the step that is refused."""
    # Each as (beginning, step, last step). The last step is one whose report depends on what the step may have left behind.
    parts = (
        *((LEADS, step, ("metadata", BROKER, EPOCH, 2, (BROKER, IN_SYNC))) for step in _requests()),
        *((FOLLOWS, step, ("append", 1)) for step in _requests_to_a_follower()),
        *((FOLLOWS, step, ("lose_response", IN_SYNC)) for step in _responses()),
        *((STARTS_ANEW, step, ("lose_response", IN_SYNC)) for step in _truncations_around_a_first_segment()),
        *((PROPOSES, step, ("append", 1)) for step in _proposal_responses()),
        *(((*PROPOSES, ("append", -1)), step, ("append", 1)) for step in _proposal_responses()),
        *((NOT_PROPOSED, step, ("fetch", OUTSIDE, EPOCH, 3, 3, True)) for step in _ineligible_fetches()),
        *((beginning, step, ("metadata", BROKER, EPOCH + 1, 2, (BROKER, IN_SYNC))) for beginning, step in _crashes()),
        # Metadata that is older than the response to a proposal.
        *(((*PROPOSES, COMMITS), step, ("append", 1)) for step in _old_metadata()),
    )
    # Dicts whose values are None are sets that keep their order.
    by_action: defaultdict[str, dict[BrokerCase, None]] = defaultdict(dict)
    for beginning, step, last in parts:
        case = _path_with(profile, capabilities, beginning, step, last)
        if case is not None:
            by_action[action_of(step)][case] = None
    return {action: tuple(cases) for action, cases in by_action.items()}


def _requests() -> Iterator[Step]:
    """Yield requests to a leader, with epochs and offsets below, at and above its own."""
    yield from (("fetch", IN_SYNC, *values, True) for values in product(EPOCHS, OFFSETS, ANY_EPOCHS))
    yield from (("offsets_for_leader_epoch", *values) for values in product(EPOCHS, ANY_EPOCHS))
    yield from (("list_offsets", *values) for values in product(EPOCHS, (EARLIEST, LATEST, COMMITTED)))
    # -1 stands for the high watermark (DeleteRecordsRequest.HIGH_WATERMARK), -2 for nothing.
    yield from (("delete_records", offset) for offset in (UNDEFINED - 1, *OFFSETS))


def _requests_to_a_follower() -> Iterator[Step]:
    """Yield requests that a follower must refuse: each kind with each leader epoch, at offset 1, which its log has."""
    yield from (("fetch", OUTSIDE, epoch, 1, 1, True) for epoch in EPOCHS)
    yield from (("offsets_for_leader_epoch", epoch, 1) for epoch in EPOCHS)
    yield from (("list_offsets", *values) for values in product(EPOCHS, (LATEST, COMMITTED)))
    yield from (("append", 1), ("delete_records", 1))


def _responses() -> Iterator[Step]:
    """Yield fetch responses to a follower: errors, out of range, diverging, and high watermarks and log starts."""
    head, nothing = ("fetch_response", IN_SYNC), ((), None, None)  # no records, no diverging epoch, no offsets
    offsets, epochs = OFFSETS[1:], ANY_EPOCHS[1:]  # without UNDEFINED
    yield from ((*head, error, UNDEFINED, UNDEFINED, *nothing) for error in FETCH_ERRORS)
    # Earliest and latest offset of the leader: below the follower's log, within it, at its end and beyond it.
    bounds = [(earliest, latest) for earliest, latest in product(offsets, offsets) if earliest <= latest]
    out_of_range = (*head, OFFSET_OUT_OF_RANGE, UNDEFINED, UNDEFINED, (), None)
    yield from ((*out_of_range, earliest_and_latest) for earliest_and_latest in bounds)
    # A diverging epoch and its end; with a high watermark that is at the log's start, or beyond any end.
    yield from ((*head, NONE, hw, 0, (), diverging, None) for hw in (0, 9) for diverging in product(epochs, offsets))
    yield from ((*head, NONE, hw, log_start, *nothing) for hw, log_start in product(offsets, (0, 1, 2)))


def _crashes() -> Iterator[tuple[Path, Step]]:
    """Yield (beginning, crash), where the crash loses records below the checkpointed high watermark.

    That happens where the checkpoint was flushed to the disk before the records were.
    """
    offsets = OFFSETS[1:]
    losses = ((hw, log_end) for hw, log_end in product(offsets, offsets) if log_end < hw)
    yield from ((beginning, ("crash", *loss)) for loss in losses for beginning in (PROPOSES, FOLLOWS))


def _truncations_around_a_first_segment() -> Iterator[Step]:
    """Yield diverging responses to a follower whose log starts at 5: an epoch ends below the log start, or at it.

    Its log has one record (STARTS_ANEW), so a truncation to there leaves none.
    """
    ends = product((EPOCH - 1, EPOCH), (0, 4, 5))
    yield from (("fetch_response", IN_SYNC, NONE, 6, 0, (), diverging, None) for diverging in ends)


def _ineligible_fetches() -> Iterator[Step]:
    """Yield fetches of peers that may not join the ISR, for each reason, at offsets up to the leader's log end."""
    # As (fetch offset, last fetched epoch).
    positions, peers = ((2, 3), (3, EPOCH), (4, EPOCH)), (IN_SYNC, OUTSIDE)
    yield from (
        ("fetch_ineligible", peer, EPOCH, *position, standing)
        for peer, position, standing in product(peers, positions, STANDINGS)
    )


def _old_metadata() -> Iterator[Step]:
    """Yield metadata with partition epochs before, at and after 5, that of the response to the proposal (COMMITS)."""
    yield from (
        ("metadata", leader, epoch, partition_epoch, (BROKER, IN_SYNC))
        for leader, epoch, partition_epoch in product((BROKER, IN_SYNC), (EPOCH, EPOCH + 1), (4, 5, 6))
    )


def _proposal_responses() -> Iterator[Step]:
    """Yield responses to the pending proposal: every error, and each ISR at epochs around the broker's."""
    yield from (("alter_partition_response", error, UNDEFINED, ()) for error in PROPOSAL_ERRORS)
    # Before, at and after the broker's partition epoch, which is 1.
    members = ((BROKER,), (BROKER, IN_SYNC), (BROKER, IN_SYNC, OUTSIDE))
    yield from (("alter_partition_response", NONE, epoch, isr) for epoch, isr in product((0, 1, 2), members))


def _path_with(profile: Profile, capabilities: Capabilities, beginning: Path, step: Step, last: Step) -> BrokerCase | None:
    """Return the path of a beginning, a step and a last step; without the last one if the broker cannot be given it.

    Returns None if it cannot be given the others: the path is for the sake of `step`.
    """
    state, path = opened(OPENING, profile), []
    for index, path_step in enumerate((*beginning, step, last)):
        # `step` has the index len(beginning), `last` the one after it.
        is_last = index > len(beginning)
        if not is_possible(state, path_step) or missing_capability(capabilities, state, path_step) is not None:
            if not is_last:
                return None
            break
        try:
            state, _ = take_step(state, path_step)
        # Where Kafka's code throws, the contract does not say what a broker does.
        except TidegaugeError:
            return None
        path.append(path_step)
    return BrokerCase(OPENING, tuple(path))

"""Requests that must be refused, and responses with errors: what a cover does not play, since a model's brokers send none.

Each path is one of a few beginnings, one such step, and a step that shows whether it has left something behind. An argument
takes every kind of value: epochs before, at and after the leader's, offsets below, at and beyond every end.
"""

from collections.abc import Iterator
from itertools import product

from tidegauge.drive.broker.contract import BROKER, COMMITTED, EARLIEST, LATEST, STANDINGS, BrokerCase, Opening
from tidegauge.drive.broker.reference import is_possible, missing_capability, take_step
from tidegauge.drive.broker.state import opened
from tidegauge.drive.contract import Capabilities, Path, Step
from tidegauge.impl.profiles import Profile
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

IN_SYNC, OUTSIDE = 2, 3
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
)
"""What a controller may respond to a proposal with. Partition#handleAlterPartitionError."""


def refusals(profile: Profile, capabilities: Capabilities) -> list[BrokerCase]:
    """Return the paths that a broker of this generation can be given, each as far as it can."""
    drawn = (
        *((LEADS, step, ("metadata", BROKER, EPOCH, 2, (BROKER, IN_SYNC))) for step in _requests()),
        *((FOLLOWS, step, ("append", 1)) for step in _requests_to_a_follower()),
        *((FOLLOWS, step, ("lose_response", IN_SYNC)) for step in _responses()),
        *((STARTS_ANEW, step, ("lose_response", IN_SYNC)) for step in _truncations_around_a_first_segment()),
        *((PROPOSES, step, ("append", 1)) for step in _proposal_responses()),
        *(((*PROPOSES, ("append", -1)), step, ("append", 1)) for step in _proposal_responses()),
        *((NOT_PROPOSED, step, ("fetch", OUTSIDE, EPOCH, 3, 3, True)) for step in _fetches_of_who_may_not_join()),
        # Metadata that is older than the response to a proposal.
        *(((*PROPOSES, COMMITS), step, ("append", 1)) for step in _old_metadata()),
    )
    cases = (_path_with(profile, capabilities, beginning, step, last) for beginning, step, last in drawn)
    return [case for case in dict.fromkeys(cases) if case is not None]


def _requests() -> Iterator[Step]:
    yield from (("fetch", IN_SYNC, *values, True) for values in product(EPOCHS, OFFSETS, ANY_EPOCHS))
    yield from (("offsets_for_leader_epoch", *values) for values in product(EPOCHS, ANY_EPOCHS))
    yield from (("list_offsets", *values) for values in product(EPOCHS, (EARLIEST, LATEST, COMMITTED)))
    # -1 is the high watermark (DeleteRecordsRequest.HIGH_WATERMARK), -2 is nothing.
    yield from (("delete_records", offset) for offset in (UNDEFINED - 1, *OFFSETS))


def _requests_to_a_follower() -> Iterator[Step]:
    yield from (("fetch", OUTSIDE, epoch, 1, 1, True) for epoch in EPOCHS)
    yield from (("offsets_for_leader_epoch", epoch, 1) for epoch in EPOCHS)
    yield from (("list_offsets", *values) for values in product(EPOCHS, (LATEST, COMMITTED)))
    yield from (("append", 1), ("delete_records", 1))


def _responses() -> Iterator[Step]:
    head, nothing = ("fetch_response", IN_SYNC), ((), None, None)
    yield from ((*head, error, UNDEFINED, UNDEFINED, *nothing) for error in FETCH_ERRORS)
    # Offsets of the leader below the log, within it, at its end and beyond it.
    bounds = [(earliest, latest) for earliest, latest in product(OFFSETS[1:], OFFSETS[1:]) if earliest <= latest]
    out = (*head, OFFSET_OUT_OF_RANGE, UNDEFINED, UNDEFINED, (), None)
    yield from ((*out, offsets) for offsets in bounds)
    yield from (
        (*head, NONE, hw, 0, (), diverging, None) for hw in (0, 9) for diverging in product(ANY_EPOCHS[1:], OFFSETS[1:])
    )
    yield from ((*head, NONE, hw, start, *nothing) for hw, start in product(OFFSETS[1:], (0, 1, 2)))


def _truncations_around_a_first_segment() -> Iterator[Step]:
    ends = product((EPOCH - 1, EPOCH), (0, 4, 5))
    yield from (("fetch_response", IN_SYNC, NONE, 6, 0, (), diverging, None) for diverging in ends)


def _fetches_of_who_may_not_join() -> Iterator[Step]:
    offsets, peers = ((2, 3), (3, EPOCH), (4, EPOCH)), (IN_SYNC, OUTSIDE)
    yield from (
        ("fetch_ineligible", peer, EPOCH, *where, standing) for peer, where, standing in product(peers, offsets, STANDINGS)
    )


def _old_metadata() -> Iterator[Step]:
    yield from (
        ("metadata", leader, epoch, partition_epoch, (BROKER, IN_SYNC))
        for leader, epoch, partition_epoch in product((BROKER, IN_SYNC), (EPOCH, EPOCH + 1), (4, 5, 6))
    )


def _proposal_responses() -> Iterator[Step]:
    yield from (("alter_partition_response", error, UNDEFINED, ()) for error in PROPOSAL_ERRORS)
    # Before, at and after the broker's partition epoch, which is 1.
    members = ((BROKER,), (BROKER, IN_SYNC), (BROKER, IN_SYNC, OUTSIDE))
    yield from (("alter_partition_response", NONE, epoch, isr) for epoch, isr in product((0, 1, 2), members))


def _path_with(profile: Profile, capabilities: Capabilities, beginning: Path, step: Step, last: Step) -> BrokerCase | None:
    """Return a path as far as a broker can be given it; None if it cannot be given the step that it is for."""
    state, path = opened(OPENING, profile), []
    for at, one in enumerate((*beginning, step, last)):
        wanted = at <= len(beginning)
        if not is_possible(state, one) or missing_capability(capabilities, state, one) is not None:
            if wanted:
                return None
            break
        try:
            state, _ = take_step(state, one)
        # Where Kafka's code throws the contract expects nothing.
        except TidegaugeError:
            return None
        path.append(one)
    return BrokerCase(OPENING, tuple(path))

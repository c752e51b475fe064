"""Which refusal of a fetch is right, by the role of the broker, the leader epoch of the request, and the generation."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.conformance.hand import TWO, change, follow, judged, lead, reported, start
from tidegauge.impl.errors import INCONSISTENT_TOPIC_ID
from tidegauge.impl.rules import (
    FENCED_LEADER_EPOCH,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from tidegauge.traces.schema import Event

STARTED = (start(1), start(2))
ROLES: dict[str, Sequence[Event]] = {
    "starting": STARTED,
    "follower": (*STARTED, change(2, 1, (1, 2)), lead(2, 1, (1, 2)), follow(1, 2, 1)),
    "leader": (*STARTED, change(1, 1, (1, 2)), lead(1, 1, (1, 2)), follow(2, 1, 1)),
}
REFUSALS = (OFFSET_OUT_OF_RANGE, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH)
OTHER = (UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID)


def right(role: str, epoch: int, error: int, fencing: bool) -> bool:
    """Whether a broker in leader epoch 1 may answer a fetch of this epoch so."""
    if role == "leader":
        compared = {0: FENCED_LEADER_EPOCH, 1: OFFSET_OUT_OF_RANGE, 2: UNKNOWN_LEADER_EPOCH}
        return error == (compared[epoch] if fencing else OFFSET_OUT_OF_RANGE)
    if error == OFFSET_OUT_OF_RANGE:
        return False
    if role == "starting":  # it has no leader epoch yet: any is newer
        return not fencing or error in (NOT_LEADER_OR_FOLLOWER, UNKNOWN_LEADER_EPOCH)
    compared = {0: FENCED_LEADER_EPOCH, 1: NOT_LEADER_OR_FOLLOWER, 2: UNKNOWN_LEADER_EPOCH}
    return not fencing or error == compared[epoch]


@pytest.mark.parametrize(("profile", "fencing"), [("fetch-truncation", True), ("kip320", True), ("kip279", False)])
@pytest.mark.parametrize("epoch", [0, 1, 2])
@pytest.mark.parametrize("role", ROLES)
def test_a_refusal_is_that_of_the_role_and_the_epoch(role: str, epoch: int, profile: str, fencing: bool) -> None:
    for error in (*REFUSALS, *OTHER):
        refused = reported(1, "HandleFetch", peer=2, req_epoch=epoch, req_offset=0, req_last_epoch=-1, error=error)
        found = judged((*ROLES[role], refused), replace(TWO, profile=profile))
        failing = {failure.rule for failure in found.failures} & {"FENCE-01", "FENCE-02"}
        assert bool(failing) == (error not in OTHER and not right(role, epoch, error, fencing)), (error, failing)


@pytest.mark.parametrize("error", [NONE, *REFUSALS, *OTHER])
def test_only_who_has_a_replica_is_running(error: int) -> None:
    """A broker may answer before it makes the replica, about a deleted topic of the same name too, or loads its log."""
    answered = reported(1, "HandleFetch", peer=2, req_epoch=0, req_offset=0, req_last_epoch=-1, error=error)
    failing = {failure.rule for failure in judged((answered, start(1), start(2))).failures}
    assert ("LIFE-01" in failing) == (error not in (NOT_LEADER_OR_FOLLOWER, UNKNOWN_LEADER_EPOCH, *OTHER))

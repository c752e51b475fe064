"""Registration, elections, and the controller's judgement of AlterPartition."""

import pytest

from impl import controller as c
from impl.controller import Controller
from impl.messages import (
    INELIGIBLE_REPLICA,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    NOT_CONTROLLER,
    AlterPartitionRequest,
)
from impl.rules import FENCED_LEADER_EPOCH, NONE, UNDEFINED

ALL = (0, 1, 2)
START = Controller(ALL, 0, 5, ALL, ALL, partition_epoch=8)


def test_fencing_the_leader_elects_the_first_live_member_in_order() -> None:
    """It leaves the ISR, both epochs grow by one."""
    assert c.fence_broker(START, 0, False, ALL) == Controller(ALL, 1, 6, (1, 2), (1, 2), 9)
    assert c.fence_broker(START, 0, False, (2, 1, 0)).leader == 2


def test_fencing_a_follower_leaves_the_leader_epoch() -> None:
    """A plain ISR change moves the partition epoch only."""
    assert c.fence_broker(START, 2, False, ALL) == Controller(ALL, 0, 5, (0, 1), (0, 1), 9)


def test_the_last_member_stays_in_the_isr_without_a_leader() -> None:
    """Nobody else may lead; when it is back it is elected again."""
    alone = START._replace(isr=(0,))
    fenced = c.fence_broker(alone, 0, False, ALL)
    assert (fenced.leader, fenced.leader_epoch, fenced.isr) == (UNDEFINED, 6, (0,))
    back = c.unfence_broker(fenced, 0)
    assert (back.leader, back.leader_epoch, back.live) == (0, 7, ALL)
    assert c.unfence_broker(fenced._replace(live=(1,)), 2).leader == UNDEFINED


def test_a_broker_that_comes_back_at_once_leads_again_only_if_it_is_alone() -> None:
    """Its session was lost for a moment: others in the ISR go first."""
    assert c.fence_broker(START, 0, True, ALL) == Controller(ALL, 1, 6, (1, 2), ALL, 9)
    assert c.fence_broker(START._replace(isr=(0,)), 0, True, ALL) == Controller(ALL, 0, 6, (0,), ALL, 9)


def test_a_preferred_election_needs_a_live_member() -> None:
    """Otherwise nothing changes."""
    assert c.elect_preferred(START, 1) == START._replace(leader=1, leader_epoch=6, partition_epoch=9)
    assert c.elect_preferred(START, 0) is START
    assert c.elect_preferred(START._replace(isr=(0, 2)), 1) == START._replace(isr=(0, 2))
    assert c.elect_preferred(START._replace(live=(0, 2)), 1) == START._replace(live=(0, 2))


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (AlterPartitionRequest(0, 6, 8, (0, 1)), NOT_CONTROLLER),
        (AlterPartitionRequest(0, 5, 9, (0, 1)), NOT_CONTROLLER),
        (AlterPartitionRequest(1, 4, 7, (0, 9)), FENCED_LEADER_EPOCH),
        (AlterPartitionRequest(1, 5, 7, (0, 9)), INVALID_REQUEST),
        (AlterPartitionRequest(0, 5, 7, (0, 9)), INVALID_UPDATE_VERSION),
        (AlterPartitionRequest(0, 5, 8, (0, 9)), INVALID_REQUEST),
        (AlterPartitionRequest(0, 5, 8, (0, 0)), INVALID_REQUEST),
        (AlterPartitionRequest(0, 5, 8, (1, 2)), INVALID_REQUEST),
        (AlterPartitionRequest(0, 5, 8, (0, 2)), INELIGIBLE_REPLICA),
    ],
)
def test_a_proposal_is_checked_in_kafkas_order(request_: AlterPartitionRequest, error: int) -> None:
    """The first thing wrong decides the error, whatever else is wrong too; broker 2 is fenced here."""
    registered = START._replace(live=(0, 1))
    after, response = c.alter_partition(registered, request_)
    assert response.error == error
    assert after == registered


def test_a_good_proposal_is_committed_and_a_repeated_one_changes_nothing() -> None:
    """The answer carries the state of the registration either way."""
    after, response = c.alter_partition(START, AlterPartitionRequest(0, 5, 8, (0, 2)))
    assert after == START._replace(isr=(0, 2), partition_epoch=9)
    assert response == (NONE, 5, 9, (0, 2))
    assert c.alter_partition(START, AlterPartitionRequest(0, 5, 8, ALL))[0] == START

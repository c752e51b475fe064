"""Registration, elections, and the controller's judgement of AlterPartition."""

import pytest

from tidegauge.impl.cluster import controller as c
from tidegauge.impl.cluster.controller import Controller
from tidegauge.impl.errors import NOT_CONTROLLER
from tidegauge.impl.messages import AlterPartitionRequest
from tidegauge.impl.profiles import ELR, Setup
from tidegauge.impl.rules import (
    FENCED_LEADER_EPOCH,
    INELIGIBLE_REPLICA,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    NONE,
    UNDEFINED,
)

ALL = (0, 1, 2)
SETUP = Setup()
WITH_ELR = Setup(profile=ELR, min_insync_replicas=2)
START = Controller(ALL, 0, 5, ALL, ALL, partition_epoch=8)


def test_fencing_the_leader_elects_the_first_live_member_in_order() -> None:
    """It leaves the ISR, both epochs grow by one."""
    assert c.fence_broker(SETUP, START, 0, False, ALL) == Controller(ALL, 1, 6, (1, 2), (1, 2), 9)
    assert c.fence_broker(SETUP, START, 0, False, (2, 1, 0)).leader == 2


def test_fencing_a_follower_leaves_the_leader_epoch() -> None:
    """A plain ISR change moves the partition epoch only."""
    assert c.fence_broker(SETUP, START, 2, False, ALL) == Controller(ALL, 0, 5, (0, 1), (0, 1), 9)


def test_the_last_member_stays_in_the_isr_without_a_leader() -> None:
    """Nobody else may lead; when it is back it is elected again."""
    alone = START._replace(isr=(0,))
    fenced = c.fence_broker(SETUP, alone, 0, False, ALL)
    assert (fenced.leader, fenced.leader_epoch, fenced.isr) == (UNDEFINED, 6, (0,))
    back = c.unfence_broker(SETUP, fenced, 0, ALL)
    assert (back.leader, back.leader_epoch, back.live) == (0, 7, ALL)
    assert c.unfence_broker(SETUP, fenced._replace(live=(1,)), 2, ALL).leader == UNDEFINED


def test_a_broker_that_comes_back_at_once_leads_again_only_if_it_is_alone() -> None:
    """Its session was lost for a moment: others in the ISR go first."""
    assert c.fence_broker(SETUP, START, 0, True, ALL) == Controller(ALL, 1, 6, (1, 2), ALL, 9)
    assert c.fence_broker(SETUP, START._replace(isr=(0,)), 0, True, ALL) == Controller(ALL, 0, 6, (0,), ALL, 9)


def test_a_preferred_election_needs_a_live_member() -> None:
    """Otherwise nothing changes."""
    assert c.elect_preferred(SETUP, START, (1, 0, 2)) == START._replace(leader=1, leader_epoch=6, partition_epoch=9)
    assert c.elect_preferred(SETUP, START, ALL) is START
    assert c.elect_preferred(SETUP, START._replace(isr=(0, 2)), (1, 0, 2)) == START._replace(isr=(0, 2))
    assert c.elect_preferred(SETUP, START._replace(live=(0, 2)), (1, 0, 2)) == START._replace(live=(0, 2))


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
    after, response = c.alter_partition(SETUP, registered, request_)
    assert response.error == error
    assert after == registered


def test_a_good_proposal_is_committed_and_a_repeated_one_changes_nothing() -> None:
    """The response carries the state of the registration either way."""
    after, response = c.alter_partition(SETUP, START, AlterPartitionRequest(0, 5, 8, (0, 2)))
    assert after == START._replace(isr=(0, 2), partition_epoch=9)
    assert response == (NONE, 5, 9, (0, 2))
    assert c.alter_partition(SETUP, START, AlterPartitionRequest(0, 5, 8, ALL))[0] == START


# ---------------------------------------------------------------------------------------------------------------------
# With ELR


def test_with_elr_who_leaves_a_small_isr_stays_eligible() -> None:
    """The ISR may become empty; a proposal that fills it again ends that."""
    two = c.fence_broker(WITH_ELR, START, 2, False, ALL)
    assert (two.isr, two.elr) == ((0, 1), ())
    one = c.fence_broker(WITH_ELR, two, 1, False, ALL)
    assert (one.leader, one.isr, one.elr) == (0, (0,), (1,))
    none = c.fence_broker(WITH_ELR, one, 0, False, ALL)
    assert (none.leader, none.isr, none.elr, none.last_known_elr) == (UNDEFINED, (), (0, 1), (0,))
    led = c.unfence_broker(WITH_ELR, none, 1, ALL)
    assert (led.leader, led.isr, led.elr, led.last_known_elr) == (1, (1,), (0,), ())
    request = AlterPartitionRequest(1, led.leader_epoch, led.partition_epoch, (1, 2))
    full = c.alter_partition(WITH_ELR, led._replace(live=(1, 2)), request)[0]
    assert (full.isr, full.elr) == ((1, 2), ())


def test_a_registration_takes_out_of_the_isr_and_after_an_unclean_stop_out_of_the_elr() -> None:
    """KAFKA-18106: also while the session before it still counts."""
    small = START._replace(isr=(0,), elr=(1,))
    assert c.register_broker(WITH_ELR, small, 1, True, ALL).elr == (1,)
    assert c.register_broker(WITH_ELR, small, 1, False, ALL).elr == ()
    clean, unclean = (c.register_broker(WITH_ELR, small, 0, how, ALL) for how in (True, False))
    assert (clean.leader, clean.isr, clean.elr, clean.live) == (1, (1,), (0,), (1, 2))
    assert (unclean.leader, unclean.isr, unclean.elr) == (1, (1,), ())


def test_a_broker_that_comes_back_at_once_is_elected_from_the_elr_in_one_epoch() -> None:
    """Alone it leads again: nobody read that there was no leader in between."""
    alone = START._replace(isr=(0,))
    back = c.fence_broker(WITH_ELR, alone, 0, True, ALL)
    assert (back.leader, back.leader_epoch, back.partition_epoch, back.isr, back.elr) == (0, 6, 9, (0,), ())


def test_the_last_resorts_are_elections_of_their_own() -> None:
    """Nobody is in the ISR nor eligible: who led last if it is live (KAFKA-19522), or anybody who is."""
    nobody = START._replace(leader=UNDEFINED, isr=(), live=(0, 2), last_known_elr=(2,))
    assert c.unfence_broker(WITH_ELR, nobody, 1, ALL).leader == UNDEFINED
    last = c.elect_last_known(WITH_ELR, nobody)
    assert (last.leader, last.isr, last.last_known_elr) == (2, (2,), ())
    fenced = nobody._replace(live=(0, 1))
    assert c.elect_last_known(WITH_ELR, fenced) is fenced
    assert c.elect_anybody(WITH_ELR, nobody, (2, 0, 1)).leader == 2
    assert c.elect_anybody(WITH_ELR, nobody, (1, 0, 2)).leader == 0

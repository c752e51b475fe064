"""Brokers and messages under the whole controller: what reaches whom, and what belongs to which life of a topic."""

import pytest

from tidegauge.impl.cluster.transitions import Label
from tidegauge.impl.controller.replication_control import min_isr
from tidegauge.impl.explorer.cluster_under_controller import (
    ControlledCluster,
    controlled_successors,
    initial_controlled_cluster,
    take_label,
)
from tidegauge.impl.explorer.controller_model import FAILED_STILL, MENDED, NAME, ControlBounds, control_violation
from tidegauge.impl.profiles import ELR, ELR_REPAIRED, Profile
from tidegauge.impl.rules import FENCED_LEADER_EPOCH, INELIGIBLE_REPLICA, INVALID_UPDATE_VERSION, NONE, UNDEFINED

THREE = ControlBounds((0, 1, 2), 3)
TWO_DIRECTORIES = ControlBounds((0, 1), 2, disks_fail=True)


def run(*labels: Label, bounds: ControlBounds = THREE, profile: Profile = ELR) -> ControlledCluster:
    """The state after these labels, with clients."""
    return follow(initial_controlled_cluster(bounds, profile, clients=True), *labels)


def follow(state: ControlledCluster, *labels: Label) -> ControlledCluster:
    """The state some labels later."""
    for label in labels:
        after = take_label(state, label)
        assert after is not None, f"{label}: expected one of {enabled(state)}"
        state = after
    return state


def enabled(state: ControlledCluster) -> set[Label]:
    return {label for label, _ in controlled_successors(state)}


def copied(f: int) -> tuple[Label, ...]:
    """A follower of the first broker copies what there is, and says so."""
    once: tuple[Label, ...] = (("HandleFetch", 0, f, 0), ("HandleFetchResponse", f, 0))
    return ("SendFetch", f), *once, *once


WRITTEN: tuple[Label, ...] = (("LeaderAppend", 0), *copied(1), *copied(2), ("AnswerProduce", 0, 1, NONE))


def test_everybody_knows_the_first_registration() -> None:
    """Nobody has news, and who is no replica has no role."""
    state = run(bounds=ControlBounds((0, 1), 3))
    assert state.held == (0, 0, UNDEFINED)
    assert state.cluster.brokers[0].leads
    assert not {label[0] for label in enabled(state)} & {"BecomeLeader", "BecomeFollower", "DeleteReplica", "ReadConfig"}


@pytest.mark.parametrize(("profile", "leader", "broken"), [(ELR, 1, True), (ELR_REPAIRED, UNDEFINED, False)])
def test_a_ghost_is_elected_empty(profile: Profile, leader: int, broken: bool) -> None:
    """F4 from end to end: reassigned away and back, then the leader stops. Repaired nobody is elected."""
    reassigned: tuple[Label, ...] = (
        *WRITTEN,
        ("Reassign", (0,)),
        *((name, b) for b, name in enumerate(("BecomeLeader", "DeleteReplica", "DeleteReplica"))),
        ("Reassign", (0, 1, 2)),
        *((name, b) for b, name in enumerate(("BecomeLeader", "BecomeFollower", "BecomeFollower"))),
        ("ShutDown", 0),
    )
    state = run(*reassigned, bounds=THREE._replace(partition_zero=3), profile=profile)
    assert state.cluster.controller.leader == leader
    assert state.cluster.acked == ((0, 0),)
    assert [len(log) for log in state.control.logs] == [1, 0, 0]
    assert (control_violation(state.control, ("LeaderCompleteness",)) is not None) is broken


def test_a_replica_that_is_removed_is_deleted_when_its_broker_hears_of_it() -> None:
    """One that hears only that it is a replica again keeps its log: it is the same topic id."""
    removed = run(*WRITTEN, ("Reassign", (0,)))
    heard = follow(removed, ("DeleteReplica", 1))
    assert (heard.held, len(heard.control.logs[1])) == ((0, UNDEFINED, 0), 0)
    back = follow(removed, ("Reassign", (0, 1, 2)))
    assert ("DeleteReplica", 2) not in enabled(back)
    assert len(follow(back, ("BecomeFollower", 2)).control.logs[2]) == 1
    assert follow(heard, ("Reassign", (0, 1, 2)), ("BecomeFollower", 1)).held == (0, 0, 0)


def test_a_topic_that_is_created_again_is_another_one() -> None:
    """Its name and number are the same, its topic id is not: nothing of the first life counts, or reaches the second."""
    deleted = run(*WRITTEN, ("Delete",))
    assert (deleted.cluster.committed, deleted.cluster.acked) == ((), ())
    assert take_label(deleted, ("Reassign", (0,))) is None
    again = follow(deleted, ("Create", (1, 2)), ("DeleteReplica", 0), ("DeleteReplica", 1), ("BecomeLeader", 1))
    assert (again.topic_id, again.held) == (1, (UNDEFINED, 1, 0))
    assert again.cluster.controller.leader_epoch == 0
    assert ("BecomeFollower", 2) not in enabled(again)
    follower = follow(again, ("DeleteReplica", 2), ("BecomeFollower", 2))
    assert (follower.held, follower.control.logs) == ((UNDEFINED, 1, 1), ((), (), ()))
    assert take_label(follower, ("Create", (0,))) is None


def test_a_fetch_of_another_life_is_not_served() -> None:
    """The leader of the first life has not heard that it is over; the request names the second, and is sent again."""
    moved: tuple[Label, ...] = (("Delete",), ("DeleteReplica", 1), ("Create", (0, 1)), ("BecomeFollower", 1))
    state = run(*moved)
    assert state.cluster.network[1][0] is not None
    assert not any(label[:3] == ("HandleFetch", 0, 1) for label in enabled(state))
    ready = follow(state, ("DeleteReplica", 0), ("BecomeLeader", 0))
    assert ("HandleFetch", 0, 1, 0) in enabled(follow(ready, ("SendFetch", 1)))


def test_who_has_one_partition_zero_or_two_directories_creates_no_topic_again() -> None:
    """Where its replicas would lie, and how many partition 0 has, is not known then."""
    for bounds in (THREE._replace(partition_zero=3), TWO_DIRECTORIES):
        assert take_label(run(("Delete",), bounds=bounds), ("Create", (0, 1))) is None


def test_min_isr_is_read_with_a_new_leader_epoch_at_the_latest() -> None:
    """Not with the response to a proposal, which says nothing of it: F11."""
    raised = run(("LeaderAppend", 0), ("SetMinIsr", 2), bounds=ControlBounds((0, 1), 2, min_isr=1))
    assert min_isr(raised.control.control, NAME) == 2
    assert raised.cluster.model.setup.min_insync_replicas == 1
    assert follow(raised, ("ReadConfig", 0)).control.known_min_isr == 2
    shrunk = follow(raised, ("ShrinkIsr", 0, 2), ("AlterPartition", 0, NONE), ("BecomeLeader", 0))
    assert (shrunk.control.known_min_isr, shrunk.cluster.brokers[0].partition.log.hw) == (1, 1)
    elected = follow(shrunk, ("AnswerProduce", 0, 1, NONE), ("ShutDown", 0), ("BecomeLeader", 1))
    assert elected.control.known_min_isr == 2
    assert control_violation(elected.control, ("LeaderCompleteness",)) is not None


def test_a_proposal_of_another_partition_epoch_or_incarnation_is_refused() -> None:
    """The controller's own checks: an image that the leader has not read, and a member that has registered again."""
    shrinks = run(*copied(1), ("LeaderAppend", 0), ("ShrinkIsr", 0, 4))
    assert ("AlterPartition", 0, INVALID_UPDATE_VERSION) in enabled(follow(shrinks, ("Fence", 1)))
    assert ("AlterPartition", 0, FENCED_LEADER_EPOCH) in enabled(follow(shrinks, ("Fence", 0)))
    reborn = follow(shrinks, ("Die", 1, 1), ("Register", 1, 0))
    assert ("AlterPartition", 0, INVALID_UPDATE_VERSION) in enabled(reborn)
    fenced = run(("LeaderAppend", 0), ("Fence", 1), ("BecomeLeader", 0), *copied(1)[:2], ("HandleFetchResponse", 1, 0))
    joins = follow(fenced, ("HandleFetch", 0, 1, 1))
    refused = follow(joins, ("AlterPartition", 0, INELIGIBLE_REPLICA))
    assert not refused.cluster.brokers[0].partition.state.is_inflight


def test_a_directory_that_fails_takes_the_replica_and_leaves_the_broker() -> None:
    """It runs, has no role, and gets none before it registers without that directory."""
    state = run(("FailDirectory", 1), ("BecomeLeader", 0), bounds=TWO_DIRECTORIES)
    assert (state.cluster.brokers[1].up, state.held[1]) == (True, UNDEFINED)
    assert not any(label in enabled(state) for label in (("BecomeFollower", 1), ("BecomeLeader", 1)))
    back = follow(state, ("ShutDown", 1), ("Register", 1, 1), ("Unfence", 1, 0), ("BecomeFollower", 1))
    assert back.held[1] == 0


def test_a_directory_that_is_failed_still_leaves_a_replica_without_a_log() -> None:
    """Its broker runs and is active; the replica has no role, and who stopped in order is believed no more."""
    offline = run(("FailDirectory", 1), ("BecomeLeader", 0), bounds=TWO_DIRECTORIES)
    assert not offline.cluster.brokers[1].partition.has_log
    failed = follow(offline, ("ShutDown", 1))
    assert not any(label[0] == "Register" and label[2] == FAILED_STILL for label in enabled(failed))
    back = follow(failed, ("Register", 1, FAILED_STILL), ("Unfence", 1, 0))
    assert (back.cluster.brokers[1].up, back.cluster.brokers[1].partition.has_log, back.held[1]) == (True, False, UNDEFINED)
    assert back.control.partition is not None
    assert 1 not in {*back.control.partition.isr, *back.control.partition.elr}
    assert not any(label in enabled(back) for label in (("BecomeFollower", 1), ("BecomeLeader", 1)))
    mended = follow(back, ("ShutDown", 1), ("Register", 1, MENDED), ("Unfence", 1, 0), ("BecomeFollower", 1))
    assert (mended.cluster.brokers[1].partition.has_log, mended.held[1]) == (True, 0)


def test_what_an_unclean_election_gives_up_nobody_was_promised() -> None:
    """The record is acknowledged on two, who are both gone for good when the third is elected."""
    bounds = THREE._replace(unclean=True, min_isr=1)
    alone = run(
        *(("LeaderAppend", 0), ("ShrinkIsr", 0, 6), ("AlterPartition", 0, NONE), ("BecomeLeader", 0)),
        ("AnswerProduce", 0, 1, NONE),
        bounds=bounds,
    )
    assert alone.cluster.acked == ((0, 0),)
    lost = follow(alone, ("Fence", 0))
    assert lost.cluster.controller.leader in {1, 2}
    assert (lost.cluster.acked, lost.cluster.committed) == ((), ())
    assert control_violation(lost.control, ("LeaderCompleteness",)) is None

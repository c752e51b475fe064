"""When a reassignment is complete, what it leaves, and what taking it back leaves.

The tables have the cases of Kafka's PartitionReassignmentReplicasTest and PartitionReassignmentRevertTest, and more.
"""

import pytest

from tidegauge.impl.controller.partition_change import Revert, complete_reassignment, revert
from tidegauge.impl.controller.partition_registration import PartitionRegistration, RecoveryState
from tidegauge.impl.controller.records import PartitionChangeRecord
from tidegauge.impl.controller.replay import replay_records
from tidegauge.impl.controller.replication_control import BrokerRegistration, ReplicationControl
from tidegauge.impl.controller.requests import Reassignment, alter_partition_reassignments
from tidegauge.impl.errors import INVALID_REPLICA_ASSIGNMENT, NO_REASSIGNMENT_IN_PROGRESS
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.profiles import ELR, Profile
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.impl.topic_partition import TopicPartition

Ids = tuple[int, ...]

ADDS = ELR
ALL = ELR._replace(completes_by_adding=False)
ONLY_ADDS = ELR._replace(fewer_wait_for_all=False)
TP = TopicPartition("t", 0)


def partition(replicas: Ids, isr: Ids, adding: Ids = (), removing: Ids = ()) -> PartitionRegistration:
    return PartitionRegistration(replicas, isr, isr[0] if isr else UNDEFINED, adding=adding, removing=removing)


@pytest.mark.parametrize(
    ("profile", "replicas", "isr", "adding", "removing", "left"),
    [
        # nothing is under way: nothing changes, whoever is in sync
        (ADDS, (1, 2), (1,), (), (), None),
        (ALL, (1, 2), (1, 2), (), (), None),
        # one is added: it has to be in sync, and since 4.3 nobody else
        (ADDS, (1, 2, 3), (1, 2), (3,), (), None),
        (ADDS, (1, 2, 3), (3,), (3,), (), ((1, 2, 3), (3,))),
        (ALL, (1, 2, 3), (1, 3), (3,), (), None),
        (ALL, (1, 2, 3), (1, 2, 3), (3,), (), ((1, 2, 3), (1, 2, 3))),
        # one for another: the new one in sync, the old one out
        (ADDS, (1, 3, 2), (1, 2), (3,), (2,), None),
        (ADDS, (1, 3, 2), (2, 3), (3,), (2,), ((1, 3), (3,))),
        (ALL, (1, 3, 2), (2, 3), (3,), (2,), None),
        (ALL, (1, 3, 2), (1, 2, 3), (3,), (2,), ((1, 3), (1, 3))),
        # fewer than before: all who stay have to be in sync
        (ADDS, (1, 2, 3), (1, 3), (), (3,), None),
        (ADDS, (1, 2, 3), (1, 2, 3), (), (3,), ((1, 2), (1, 2))),
        (ADDS, (1, 4, 2, 3), (4, 2), (4,), (2, 3), None),
        (ADDS, (1, 4, 2, 3), (1, 4), (4,), (2, 3), ((1, 4), (1, 4))),
        # up to 3.7 only those that are added, if there is somebody at all
        (ONLY_ADDS, (1, 2, 3), (1, 3), (), (3,), ((1, 2), (1,))),
        (ONLY_ADDS, (1, 4, 2, 3), (4, 2), (4,), (2, 3), ((1, 4), (4,))),
        (ONLY_ADDS, (1, 2, 3), (3,), (), (3,), None),
        # as many are added as are removed: those who stay need not be in sync
        (ADDS, (1, 4, 5, 2, 3), (4, 5), (4, 5), (2, 3), ((1, 4, 5), (4, 5))),
        # nobody would be in sync, or nobody would be left
        (ADDS, (1, 2), (2,), (), (2,), None),
        (ADDS, (1, 2), (), (), (2,), None),
        (ADDS, (1, 2), (1, 2), (), (1, 2), None),
    ],
)
def test_a_reassignment_is_complete_when_enough_is_in_sync(
    profile: Profile, replicas: Ids, isr: Ids, adding: Ids, removing: Ids, left: tuple[Ids, Ids] | None
) -> None:
    """None: it goes on, or there is none. Complete, nobody is added or removed any more."""
    target = partition(replicas, isr, adding, removing)
    after = complete_reassignment(profile, target)
    if left is None:
        assert after == target
    else:
        assert (after.replicas, after.isr, after.adding, after.removing) == (*left, (), ())
        assert after == target._replace(replicas=left[0], isr=left[1], adding=(), removing=())


@pytest.mark.parametrize(
    ("replicas", "isr", "adding", "removing", "back"),
    [
        ((3, 2, 1), (3, 2), (), (), Revert((3, 2, 1), (3, 2), unclean=False)),
        ((3, 2, 1), (3, 2), (), (2, 1), Revert((3, 2, 1), (3, 2), unclean=False)),
        ((4, 5, 3, 2, 1), (4, 5, 2), (4, 5), (), Revert((3, 2, 1), (2,), unclean=False)),
        ((4, 5, 3, 2, 1), (4, 5, 2), (4, 5), (2,), Revert((3, 2, 1), (2,), unclean=False)),
        ((4, 5, 3, 2, 1), (4, 5), (4, 5), (2,), Revert((3, 2, 1), (3,), unclean=True)),
        ((3, 2, 1), (), (3,), (), Revert((2, 1), (2,), unclean=True)),
        ((2, 1), (2,), (2, 1), (), Revert((), (), unclean=True)),
    ],
)
def test_taken_back_the_replicas_from_before_are_left(
    replicas: Ids, isr: Ids, adding: Ids, removing: Ids, back: Revert
) -> None:
    """Who was added goes, who was to be removed stays; with nobody in sync the first of them has to do."""
    assert revert(partition(replicas, isr, adding, removing)) == back


def cancelled(control: ReplicationControl) -> tuple[tuple[object, ...], int]:
    records, errors = alter_partition_reassignments(control, (Reassignment(TP, None),))
    return records, dict(errors)[TP]


def under_way(*, unclean: bool, profile: Profile = ELR) -> ReplicationControl:
    """1 2 is reassigned to 3, which alone is in sync by now."""
    brokers = FrozenMap((b, BrokerRegistration(10 + b)) for b in (1, 2, 3))
    moved = PartitionRegistration((3, 1, 2), (3,), 3, adding=(3,), removing=(1, 2))
    return ReplicationControl(brokers, FrozenMap([(TP, moved)]), profile, 2, unclean=unclean)


def test_taken_back_with_nobody_in_sync_it_needs_unclean_election_and_is_no_unclean_election() -> None:
    """Whoever joins may lack records and leads, and nothing is marked RECOVERING: as in Kafka, it is in the target's ISR."""
    assert cancelled(under_way(unclean=False)) == ((), INVALID_REPLICA_ASSIGNMENT)
    for profile in (ELR, ELR._replace(elr=False)):
        control = under_way(unclean=True, profile=profile)
        records, error = cancelled(control)
        assert error == NONE
        (record,) = records
        assert isinstance(record, PartitionChangeRecord)
        assert (record.fields.leader, record.fields.isr, record.fields.recovery) == (1, (1,), None)
        after = replay_records(control, (record,)).partitions[TP]
        assert (after.replicas, after.isr, after.leader, after.recovery) == ((1, 2), (1,), 1, RecoveryState.RECOVERED)


def test_what_is_not_under_way_is_not_taken_back() -> None:
    """Nor is anything written."""
    still = under_way(unclean=True)
    done = still._replace(partitions=FrozenMap([(TP, partition((1, 2), (1, 2)))]))
    assert cancelled(done) == ((), NO_REASSIGNMENT_IN_PROGRESS)
    none = still._replace(partitions=FrozenMap([(TP, partition((3,), (3,), adding=(3,)))]))
    assert cancelled(none) == ((), INVALID_REPLICA_ASSIGNMENT)

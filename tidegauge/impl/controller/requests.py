"""Requests to the controller about topics: creation, deletion, reassignments, elections."""

from collections.abc import Mapping
from typing import NamedTuple

from tidegauge.impl import errors as errors_
from tidegauge.impl.controller import records as records_
from tidegauge.impl.controller import replication_control as control_
from tidegauge.impl.controller.configurations import clear_elr_records
from tidegauge.impl.controller.partition_change import ChangeRequest, Election, revert
from tidegauge.impl.controller.partition_registration import (
    MIGRATING,
    PartitionRegistration,
    directory_of,
    is_online,
    is_reassigning,
)
from tidegauge.impl.controller.records import ControllerRecord, ControllerResult
from tidegauge.impl.controller.replication_control import ReplicationControl
from tidegauge.impl.rules import NONE, NOT_LEADER_OR_FOLLOWER, UNDEFINED, UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION
from tidegauge.impl.topic_partition import TopicPartition

# Where the replicas of a partition shall be: AlterPartitionReassignments, and the directories that brokers assign.
#
# See ReplicationControlManager#alterPartitionReassignments, #handleAssignReplicasToDirs.


class Reassignment(NamedTuple):
    """One partition of an AlterPartitionReassignments request; no replicas cancel what is under way."""

    tp: TopicPartition
    replicas: tuple[int, ...] | None


def assignment_error(control: ReplicationControl, replicas: tuple[int, ...]) -> int:
    """Return the error of an assignment that is empty, unregistered or repeated. #validateManualPartitionAssignment."""
    all_registered = all(b in control.brokers for b in replicas)
    return (
        NONE if replicas and all_registered and len(set(replicas)) == len(replicas) else errors_.INVALID_REPLICA_ASSIGNMENT
    )


def alter_partition_reassignments(
    control: ReplicationControl, reassignments: tuple[Reassignment, ...], *, allow_rf_change: bool = True
) -> ControllerResult[tuple[tuple[TopicPartition, int], ...]]:
    """Change each partition on its own; the response has its error."""
    records: list[ControllerRecord] = []
    errors: list[tuple[TopicPartition, int]] = []
    for target in reassignments:
        try:
            result = _alter_one(control, target, allow_rf_change=allow_rf_change)
        # The election asks for the directory of a broker that is no replica: one removed before is still in the ELR (F4).
        except errors_.IllegalArgumentError:
            result = ControllerResult((), errors_.UNKNOWN_SERVER_ERROR)
        records += result.records
        errors.append((target.tp, result.response))
    return ControllerResult(tuple(records), tuple(errors))


def _alter_one(control: ReplicationControl, target: Reassignment, *, allow_rf_change: bool) -> ControllerResult[int]:
    """Begin, change or cancel the reassignment of one partition."""
    if target.tp not in control.partitions:
        return ControllerResult((), UNKNOWN_TOPIC_OR_PARTITION)
    if target.replicas is None:
        return cancel_partition_reassignment(control, target.tp)
    return change_partition_reassignment(control, target.tp, target.replicas, allow_rf_change=allow_rf_change)


def cancel_partition_reassignment(control: ReplicationControl, tp: TopicPartition) -> ControllerResult[int]:
    """Go back to the replicas of before the reassignment. #cancelPartitionReassignment.

    Where none of them is in sync, one that may lack records joins the ISR, which unclean.leader.election.enable must allow.
    Nothing marks the partition RECOVERING: PartitionChangeBuilder#electAnyLeader finds that replica in the target's ISR.
    """
    if not is_reassigning(control.partitions[tp]):
        return ControllerResult((), errors_.NO_REASSIGNMENT_IN_PROGRESS)
    back = revert(control.partitions[tp])
    if not back.replicas or (back.unclean and not control_.unclean_enabled(control, tp.topic)):
        return ControllerResult((), errors_.INVALID_REPLICA_ASSIGNMENT)
    request = ChangeRequest(
        back.isr, control_.election_by_config(control, tp.topic), replicas=back.replicas, adding=(), removing=()
    )
    return ControllerResult(control_.change_partition(control, tp, request), NONE)


def change_partition_reassignment(
    control: ReplicationControl, tp: TopicPartition, target: tuple[int, ...], *, allow_rf_change: bool
) -> ControllerResult[int]:
    """Start a reassignment: target replicas first, then those to be removed. #changePartitionReassignment."""
    partition = control.partitions[tp]
    if assignment_error(control, target) != NONE:
        return ControllerResult((), errors_.INVALID_REPLICA_ASSIGNMENT)
    staying = ({*partition.replicas, *partition.adding}) - set(partition.removing)
    if not allow_rf_change and len(staying) != len(target):
        return ControllerResult((), errors_.INVALID_REPLICATION_FACTOR)
    removing = tuple(sorted(set(partition.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(partition.replicas)))
    # Finding F7: where this reassignment adds or removes no replica, Kafka keeps the list of the one before.
    keeps = control.profile.reassignment_keeps_adding
    request = ChangeRequest(
        replicas=(*target, *removing),
        adding=None if keeps and not adding else adding,
        removing=None if keeps and not removing else removing,
    )
    return ControllerResult(control_.change_partition(control, tp, request), NONE)


class DirectoryAssignment(NamedTuple):
    """One partition of an AssignReplicasToDirs request."""

    broker_id: int
    broker_epoch: int
    directory: str
    tp: TopicPartition


def assign_replicas_to_dirs(control: ReplicationControl, assignment: DirectoryAssignment) -> ControllerResult[int]:
    """Assign a replica to a directory; in an offline one it leaves the ISR. #handleAssignReplicasToDirs."""
    broker = assignment.broker_id
    registration, partition = control.brokers.get(broker), control.partitions.get(assignment.tp)
    if not control.features.has_directories:
        return ControllerResult((), errors_.UNSUPPORTED_VERSION)
    if registration is None or registration.epoch != assignment.broker_epoch:
        return ControllerResult((), errors_.STALE_BROKER_EPOCH)
    if partition is None:
        topic_exists = control_.has_topic(control, assignment.tp.topic)
        return ControllerResult((), UNKNOWN_TOPIC_OR_PARTITION if topic_exists else UNKNOWN_TOPIC_ID)
    if broker not in partition.replicas:
        return ControllerResult((), NOT_LEADER_OR_FOLLOWER)
    profile = control.profile._replace(elr=False) if control.profile.assigns_dirs_without_elr else None
    # A broker moves a log only between directories that it can read; otherwise it creates it anew, empty. Kafka keeps such
    # a replica eligible (finding F10).
    keeps_log = control.profile.recreated_stays_eligible or is_online(
        directory_of(partition, broker), registration.directories
    )
    created = frozenset[int]() if keeps_log else frozenset({broker})
    request = ChangeRequest(directory=(broker, assignment.directory), unclean_shutdown=created)
    records = control_.change_partition(control, assignment.tp, request, profile=profile)
    if not is_online(assignment.directory, registration.directories):
        records += control_.generate_leader_and_isr_updates(control, (assignment.tp,), remove=broker)
    return ControllerResult(records, NONE)


# Topics that are created with an assignment, and deleted.
#
# See ReplicationControlManager#createTopics, #deleteTopics.


def create_topic(
    control: ReplicationControl, topic: str, assignment: tuple[tuple[int, ...], ...], configs: Mapping[str, str]
) -> ControllerResult[int]:
    """Create a topic: the active replicas are the ISR, the first of them leads. ReplicationControlManager#createTopic."""
    if control_.has_topic(control, topic):
        return ControllerResult((), errors_.TOPIC_ALREADY_EXISTS)
    partitions: list[records_.PartitionRecord] = []
    for number, replicas in enumerate(assignment):
        isr = tuple(b for b in replicas if control_.is_active(control, b))
        if assignment_error(control, replicas) != NONE or not isr or len(replicas) != len(assignment[0]):
            return ControllerResult((), errors_.INVALID_REPLICA_ASSIGNMENT)
        named = tuple(control_.default_directory(control, b) for b in replicas) if control.features.has_directories else ()
        # Empty stands for MIGRATING everywhere, so that equal registrations are equal values (rule 3 of their file).
        directories = named if set(named) != {MIGRATING} else ()
        partition = PartitionRegistration(replicas, isr, isr[0], directories=directories)
        partitions.append(records_.PartitionRecord(TopicPartition(topic, number), partition))
    own = tuple(
        records_.ConfigRecord(records_.ConfigResource(records_.TOPIC, topic), key, value) for key, value in configs.items()
    )
    return ControllerResult((records_.TopicRecord(topic), *own, *clear_elr_records(control, own), *partitions), NONE)


def delete_topic(control: ReplicationControl, topic: str) -> ControllerResult[int]:
    """Delete a topic. ReplicationControlManager#deleteTopic."""
    if not control_.has_topic(control, topic):
        return ControllerResult((), UNKNOWN_TOPIC_ID)
    return ControllerResult((records_.RemoveTopicRecord(topic),), NONE)


# Elections that are asked for, and the periodic tasks that ask for them.
#
# See ReplicationControlManager#electLeaders, #maybeBalancePartitionLeaders, #maybeElectUncleanLeaders.


def elect_leader(control: ReplicationControl, tp: TopicPartition, election: Election) -> ControllerResult[int]:
    """Elect a leader of one partition, PREFERRED or UNCLEAN. ReplicationControlManager#electLeader."""
    partition = control.partitions.get(tp)
    if partition is None:
        return ControllerResult((), UNKNOWN_TOPIC_OR_PARTITION)
    preferred = election is Election.PREFERRED
    # An unclean election is for a partition without a leader alone: it may lose records.
    is_needed = partition.leader != partition.replicas[0] if preferred else partition.leader == UNDEFINED
    if not is_needed:
        return ControllerResult((), errors_.ELECTION_NOT_NEEDED)
    records = control_.change_partition(control, tp, ChangeRequest(election=election))
    if records:
        return ControllerResult(records, NONE)
    return ControllerResult(
        (), errors_.PREFERRED_LEADER_NOT_AVAILABLE if preferred else errors_.ELIGIBLE_LEADERS_NOT_AVAILABLE
    )


def elect_leaders(
    control: ReplicationControl, election: Election, tps: tuple[TopicPartition, ...] | None = None
) -> ControllerResult[tuple[tuple[TopicPartition, int], ...]]:
    """Elect leaders; `tps` None is every partition, and those that need no election are left out of the response then."""
    records: list[ControllerRecord] = []
    errors: list[tuple[TopicPartition, int]] = []
    for tp in control.partitions if tps is None else tps:
        result = elect_leader(control, tp, election)
        records += result.records
        if tps is not None or result.response != errors_.ELECTION_NOT_NEEDED:
            errors.append((tp, result.response))
    return ControllerResult(tuple(records), tuple(errors))


def balance_leaders(control: ReplicationControl) -> ControllerResult[None]:
    """Elect first replicas that do not lead. #maybeTriggerLeaderChangeForPartitionsWithoutPreferredLeader."""
    records: list[ControllerRecord] = []
    for tp, partition in control.partitions.items():
        if partition.leader != partition.replicas[0]:
            records += control_.change_partition(control, tp, ChangeRequest(election=Election.PREFERRED))
    return ControllerResult(tuple(records), None)


def elect_unclean_leaders(control: ReplicationControl) -> ControllerResult[None]:
    """Elect where there is no leader and it is enabled. #maybeTriggerUncleanLeaderElectionForLeaderlessPartitions."""
    records: list[ControllerRecord] = []
    for tp in control_.with_no_leader(control):
        if control_.unclean_enabled(control, tp.topic):
            records += elect_leader(control, tp, Election.UNCLEAN).records
    return ControllerResult(tuple(records), None)

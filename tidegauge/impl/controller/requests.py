"""Requests to the controller about topics: creation, deletion, reassignments, elections.

A function reads the controller's state and returns a `ControllerResult`: the records that the request writes, and its
response, an error code or one for each partition. A request with an error writes nothing for its partition. Methods named
without a class are those of org.apache.kafka.controller.ReplicationControlManager. Names such as F4 are findings of
docs/findings.md; a switch of the profile repairs each.
"""

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
    """Return the error of an assignment that is empty, or names an unregistered broker or one twice; else NONE.

    #validateManualPartitionAssignment.
    """
    all_registered = all(b in control.brokers for b in replicas)
    is_valid = replicas and all_registered and len(set(replicas)) == len(replicas)
    return NONE if is_valid else errors_.INVALID_REPLICA_ASSIGNMENT


def alter_partition_reassignments(
    control: ReplicationControl, reassignments: tuple[Reassignment, ...], *, allow_rf_change: bool = True
) -> ControllerResult[tuple[tuple[TopicPartition, int], ...]]:
    """Handle AlterPartitionReassignments, each partition on its own; the response has the error of each.

    #alterPartitionReassignments. Without `allow_rf_change` the number of replicas must stay.
    """
    records: list[ControllerRecord] = []
    errors: list[tuple[TopicPartition, int]] = []
    for reassignment in reassignments:
        try:
            result = _alter_one(control, reassignment, allow_rf_change=allow_rf_change)
        # The election asks for the directory of a broker that is no replica: one removed before is still in the ELR (F4).
        except errors_.IllegalArgumentError:
            result = ControllerResult((), errors_.UNKNOWN_SERVER_ERROR)
        records += result.records
        errors.append((reassignment.tp, result.response))
    return ControllerResult(tuple(records), tuple(errors))


def _alter_one(control: ReplicationControl, reassignment: Reassignment, *, allow_rf_change: bool) -> ControllerResult[int]:
    """Begin, change or, if it names no replicas, cancel the reassignment of one partition."""
    tp, replicas = reassignment
    if tp not in control.partitions:
        return ControllerResult((), UNKNOWN_TOPIC_OR_PARTITION)
    if replicas is None:
        return cancel_partition_reassignment(control, tp)
    return change_partition_reassignment(control, tp, replicas, allow_rf_change=allow_rf_change)


def cancel_partition_reassignment(control: ReplicationControl, tp: TopicPartition) -> ControllerResult[int]:
    """Cancel the reassignment of a partition: go back to its replicas of before. #cancelPartitionReassignment.

    Where none of them is in sync, one that may lack records joins the ISR, which unclean.leader.election.enable must allow.
    Nothing marks the partition RECOVERING: PartitionChangeBuilder#electAnyLeader finds that replica in the target's ISR.
    """
    if not is_reassigning(control.partitions[tp]):
        return ControllerResult((), errors_.NO_REASSIGNMENT_IN_PROGRESS)
    reverted = revert(control.partitions[tp])
    if not reverted.replicas or (reverted.unclean and not control_.unclean_enabled(control, tp.topic)):
        return ControllerResult((), errors_.INVALID_REPLICA_ASSIGNMENT)
    request = ChangeRequest(
        reverted.isr, control_.election_by_config(control, tp.topic), replicas=reverted.replicas, adding=(), removing=()
    )
    return ControllerResult(control_.change_partition(control, tp, request), NONE)


def change_partition_reassignment(
    control: ReplicationControl, tp: TopicPartition, target: tuple[int, ...], *, allow_rf_change: bool
) -> ControllerResult[int]:
    """Start a reassignment of a partition to the replicas `target`, or change it. #changePartitionReassignment.

    Until it completes, the partition's replicas are the target and those to be removed, in this order. Without
    `allow_rf_change` the number of replicas must stay.
    """
    partition = control.partitions[tp]
    if assignment_error(control, target) != NONE:
        return ControllerResult((), errors_.INVALID_REPLICA_ASSIGNMENT)
    # The replicas that there would be once the reassignment of now, if there is one, completes.
    staying = ({*partition.replicas, *partition.adding}) - set(partition.removing)
    if not allow_rf_change and len(staying) != len(target):
        return ControllerResult((), errors_.INVALID_REPLICATION_FACTOR)
    removing = tuple(sorted(set(partition.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(partition.replicas)))
    # Finding F7: where this reassignment adds or removes no replica, Kafka keeps the list of the one before (None).
    keeps_list = control.profile.reassignment_keeps_adding
    request = ChangeRequest(
        replicas=(*target, *removing),
        adding=None if keeps_list and not adding else adding,
        removing=None if keeps_list and not removing else removing,
    )
    return ControllerResult(control_.change_partition(control, tp, request), NONE)


class DirectoryAssignment(NamedTuple):
    """One partition of an AssignReplicasToDirs request."""

    broker_id: int
    broker_epoch: int
    directory: str
    tp: TopicPartition


def assign_replicas_to_dirs(control: ReplicationControl, assignment: DirectoryAssignment) -> ControllerResult[int]:
    """Note in which log directory a broker has its replica of a partition. #handleAssignReplicasToDirs.

    In a directory that is offline the replica leaves the ISR.
    """
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
    # Up to 4.2 this request forgets the ELR, as if the feature were off.
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
    """Create a topic: the active replicas are the ISR, the first of them leads. ReplicationControlManager#createTopic.

    `assignment` has the replicas of each partition by number, `configs` the topic's configurations by key. Every partition
    needs the same number of replicas, and one of them active.
    """
    if control_.has_topic(control, topic):
        return ControllerResult((), errors_.TOPIC_ALREADY_EXISTS)
    partitions: list[records_.PartitionRecord] = []
    for number, replicas in enumerate(assignment):
        isr = tuple(b for b in replicas if control_.is_active(control, b))
        if assignment_error(control, replicas) != NONE or not isr or len(replicas) != len(assignment[0]):
            return ControllerResult((), errors_.INVALID_REPLICA_ASSIGNMENT)
        named = tuple(control_.default_directory(control, b) for b in replicas) if control.features.has_directories else ()
        # Empty stands for MIGRATING everywhere, so that equal registrations are equal values.
        directories = named if set(named) != {MIGRATING} else ()
        partition = PartitionRegistration(replicas, isr, isr[0], directories=directories)
        partitions.append(records_.PartitionRecord(TopicPartition(topic, number), partition))
    resource = records_.ConfigResource(records_.TOPIC, topic)
    config_records = tuple(records_.ConfigRecord(resource, key, value) for key, value in configs.items())
    records = (*config_records, *clear_elr_records(control, config_records), *partitions)
    return ControllerResult((records_.TopicRecord(topic), *records), NONE)


def delete_topic(control: ReplicationControl, topic: str) -> ControllerResult[int]:
    """Delete a topic. ReplicationControlManager#deleteTopic."""
    if not control_.has_topic(control, topic):
        return ControllerResult((), UNKNOWN_TOPIC_ID)
    return ControllerResult((records_.RemoveTopicRecord(topic),), NONE)


# Elections that are asked for, and the periodic tasks that ask for them.
#
# See ReplicationControlManager#electLeaders, #maybeBalancePartitionLeaders, #maybeElectUncleanLeaders.


def elect_leader(control: ReplicationControl, tp: TopicPartition, election: Election) -> ControllerResult[int]:
    """Elect a leader of one partition, by a PREFERRED or UNCLEAN election. ReplicationControlManager#electLeader."""
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
    """Handle ElectLeaders: elect a leader of each partition in `tps`; the response has the error of each. #electLeaders.

    `tps` None is every partition; those that need no election are left out of the response then.
    """
    records: list[ControllerRecord] = []
    errors: list[tuple[TopicPartition, int]] = []
    for tp in control.partitions if tps is None else tps:
        result = elect_leader(control, tp, election)
        records += result.records
        if tps is not None or result.response != errors_.ELECTION_NOT_NEEDED:
            errors.append((tp, result.response))
    return ControllerResult(tuple(records), tuple(errors))


def balance_leaders(control: ReplicationControl) -> ControllerResult[None]:
    """Elect the first replica of each partition that it does not lead, if it may lead (a periodic task of the controller).

    #maybeTriggerLeaderChangeForPartitionsWithoutPreferredLeader.
    """
    records: list[ControllerRecord] = []
    for tp, partition in control.partitions.items():
        if partition.leader != partition.replicas[0]:
            records += control_.change_partition(control, tp, ChangeRequest(election=Election.PREFERRED))
    return ControllerResult(tuple(records), None)


def elect_unclean_leaders(control: ReplicationControl) -> ControllerResult[None]:
    """Elect a leader uncleanly for each partition that has none, if its topic allows it (a periodic task of the controller).

    #maybeTriggerUncleanLeaderElectionForLeaderlessPartitions.
    """
    records: list[ControllerRecord] = []
    for tp in control_.with_no_leader(control):
        if control_.unclean_enabled(control, tp.topic):
            records += elect_leader(control, tp, Election.UNCLEAN).records
    return ControllerResult(tuple(records), None)

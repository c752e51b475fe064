"""Where the replicas of a partition shall be: AlterPartitionReassignments, and the directories that brokers assign.

Source: ReplicationControlManager#alterPartitionReassignments, #handleAssignReplicasToDirs.
"""

from typing import NamedTuple

from tidegauge.impl.control.partition_change import ChangeRequest
from tidegauge.impl.control.partition_reassignment import revert
from tidegauge.impl.control.partition_registration import directory_of, is_online, is_reassigning
from tidegauge.impl.control.records import ControllerRecord, ControllerResult
from tidegauge.impl.control.replication_control import (
    ReplicationControl,
    change_partition,
    election_by_config,
    generate_leader_and_isr_updates,
    has_topic,
    unclean_enabled,
)
from tidegauge.impl.error_codes import (
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR,
    NO_REASSIGNMENT_IN_PROGRESS,
    STALE_BROKER_EPOCH,
    UNKNOWN_SERVER_ERROR,
    UNSUPPORTED_VERSION,
)
from tidegauge.impl.errors import IllegalArgumentError
from tidegauge.impl.rules import NONE, NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION
from tidegauge.impl.topic_partition import TopicPartition


class Reassignment(NamedTuple):
    """One partition of an AlterPartitionReassignments request; no replicas cancel what is under way."""

    tp: TopicPartition
    replicas: tuple[int, ...] | None


def assignment_error(control: ReplicationControl, replicas: tuple[int, ...]) -> int:
    """Return the error of an assignment that is empty, unregistered or repeated. #validateManualPartitionAssignment."""
    known = all(b in control.brokers for b in replicas)
    return NONE if replicas and known and len(set(replicas)) == len(replicas) else INVALID_REPLICA_ASSIGNMENT


def alter_partition_reassignments(
    control: ReplicationControl, asked: tuple[Reassignment, ...], *, allow_rf_change: bool = True
) -> ControllerResult[tuple[tuple[TopicPartition, int], ...]]:
    """Change each partition on its own; the response has its error."""
    records: list[ControllerRecord] = []
    errors: list[tuple[TopicPartition, int]] = []
    for target in asked:
        try:
            result = _alter_one(control, target, allow_rf_change=allow_rf_change)
        # The election asks for the directory of a broker that is no replica: one removed before is still in the ELR (F4).
        except IllegalArgumentError:
            result = ControllerResult((), UNKNOWN_SERVER_ERROR)
        records += result.records
        errors.append((target.tp, result.response))
    return ControllerResult(tuple(records), tuple(errors))


def _alter_one(control: ReplicationControl, target: Reassignment, *, allow_rf_change: bool) -> ControllerResult[int]:
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
        return ControllerResult((), NO_REASSIGNMENT_IN_PROGRESS)
    back = revert(control.partitions[tp])
    if not back.replicas or (back.unclean and not unclean_enabled(control, tp.topic)):
        return ControllerResult((), INVALID_REPLICA_ASSIGNMENT)
    request = ChangeRequest(back.isr, election_by_config(control, tp.topic), replicas=back.replicas, adding=(), removing=())
    return ControllerResult(change_partition(control, tp, request), NONE)


def change_partition_reassignment(
    control: ReplicationControl, tp: TopicPartition, target: tuple[int, ...], *, allow_rf_change: bool
) -> ControllerResult[int]:
    """Start a reassignment: target replicas first, then those to be removed. #changePartitionReassignment."""
    partition = control.partitions[tp]
    if assignment_error(control, target) != NONE:
        return ControllerResult((), INVALID_REPLICA_ASSIGNMENT)
    staying = ({*partition.replicas, *partition.adding}) - set(partition.removing)
    if not allow_rf_change and len(staying) != len(target):
        return ControllerResult((), INVALID_REPLICATION_FACTOR)
    removing = tuple(sorted(set(partition.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(partition.replicas)))
    # Finding F7: where this reassignment adds or removes no replica, Kafka keeps the list of the one before.
    keeps = control.profile.reassignment_keeps_adding
    request = ChangeRequest(
        replicas=(*target, *removing),
        adding=None if keeps and not adding else adding,
        removing=None if keeps and not removing else removing,
    )
    return ControllerResult(change_partition(control, tp, request), NONE)


class DirectoryAssignment(NamedTuple):
    """One partition of an AssignReplicasToDirs request."""

    broker_id: int
    broker_epoch: int
    directory: str
    tp: TopicPartition


def assign_replicas_to_dirs(control: ReplicationControl, asked: DirectoryAssignment) -> ControllerResult[int]:
    """Assign a replica to a directory; in an offline one it leaves the ISR. #handleAssignReplicasToDirs."""
    broker = asked.broker_id
    registration, partition = control.brokers.get(broker), control.partitions.get(asked.tp)
    if not control.features.has_directories:
        return ControllerResult((), UNSUPPORTED_VERSION)
    if registration is None or registration.epoch != asked.broker_epoch:
        return ControllerResult((), STALE_BROKER_EPOCH)
    if partition is None:
        known = has_topic(control, asked.tp.topic)
        return ControllerResult((), UNKNOWN_TOPIC_OR_PARTITION if known else UNKNOWN_TOPIC_ID)
    if broker not in partition.replicas:
        return ControllerResult((), NOT_LEADER_OR_FOLLOWER)
    profile = control.profile._replace(elr=False) if control.profile.assigns_dirs_without_elr else None
    # A broker moves a log only between directories that it can read; otherwise it creates it anew, empty. Kafka keeps such
    # a replica eligible (finding F10).
    keeps_log = control.profile.recreated_stays_eligible or is_online(
        directory_of(partition, broker), registration.directories
    )
    created = frozenset[int]() if keeps_log else frozenset({broker})
    request = ChangeRequest(directory=(broker, asked.directory), unclean_shutdown=created)
    records = change_partition(control, asked.tp, request, profile=profile)
    if not is_online(asked.directory, registration.directories):
        records += generate_leader_and_isr_updates(control, (asked.tp,), remove=broker)
    return ControllerResult(records, NONE)

"""Elections that are asked for, and the periodic tasks that ask for them.

Source: ReplicationControlManager#electLeaders, #maybeBalancePartitionLeaders, #maybeElectUncleanLeaders.
"""

from tidegauge.impl.control.partition_change import ChangeRequest, Election
from tidegauge.impl.control.records import ControllerRecord, ControllerResult
from tidegauge.impl.control.replication_control import ReplicationControl, change_partition, unclean_enabled, with_no_leader
from tidegauge.impl.error_codes import ELECTION_NOT_NEEDED, ELIGIBLE_LEADERS_NOT_AVAILABLE, PREFERRED_LEADER_NOT_AVAILABLE
from tidegauge.impl.rules import NONE, UNDEFINED, UNKNOWN_TOPIC_OR_PARTITION
from tidegauge.impl.topic_partition import TopicPartition


def elect_leader(control: ReplicationControl, tp: TopicPartition, election: Election) -> ControllerResult[int]:
    """Elect a leader of one partition, PREFERRED or UNCLEAN. ReplicationControlManager#electLeader."""
    partition = control.partitions.get(tp)
    if partition is None:
        return ControllerResult((), UNKNOWN_TOPIC_OR_PARTITION)
    preferred = election is Election.PREFERRED
    if partition.leader == partition.replicas[0] if preferred else partition.leader != UNDEFINED:
        return ControllerResult((), ELECTION_NOT_NEEDED)
    records = change_partition(control, tp, ChangeRequest(election=election))
    if records:
        return ControllerResult(records, NONE)
    return ControllerResult((), PREFERRED_LEADER_NOT_AVAILABLE if preferred else ELIGIBLE_LEADERS_NOT_AVAILABLE)


def elect_leaders(
    control: ReplicationControl, election: Election, tps: tuple[TopicPartition, ...] | None = None
) -> ControllerResult[tuple[tuple[TopicPartition, int], ...]]:
    """Elect leaders; `tps` None is every partition, and those that need no election are left out of the response then."""
    records: list[ControllerRecord] = []
    errors: list[tuple[TopicPartition, int]] = []
    for tp in control.partitions if tps is None else tps:
        result = elect_leader(control, tp, election)
        records += result.records
        if tps is not None or result.response != ELECTION_NOT_NEEDED:
            errors.append((tp, result.response))
    return ControllerResult(tuple(records), tuple(errors))


def balance_leaders(control: ReplicationControl) -> ControllerResult[None]:
    """Elect first replicas that do not lead. #maybeTriggerLeaderChangeForPartitionsWithoutPreferredLeader."""
    records: list[ControllerRecord] = []
    for tp, partition in control.partitions.items():
        if partition.leader != partition.replicas[0]:
            records += change_partition(control, tp, ChangeRequest(election=Election.PREFERRED))
    return ControllerResult(tuple(records), None)


def elect_unclean_leaders(control: ReplicationControl) -> ControllerResult[None]:
    """Elect where there is no leader and it is enabled. #maybeTriggerUncleanLeaderElectionForLeaderlessPartitions."""
    records: list[ControllerRecord] = []
    for tp in with_no_leader(control):
        if unclean_enabled(control, tp.topic):
            records += elect_leader(control, tp, Election.UNCLEAN).records
    return ControllerResult(tuple(records), None)

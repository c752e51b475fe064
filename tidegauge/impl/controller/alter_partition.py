"""AlterPartition: the checks of a proposed ISR in Kafka's order, the first thing wrong decides, and what a good one makes.

Rules of this file

1. The sender's broker epoch stands for the whole request, everything else for one partition.
2. Source: org.apache.kafka.controller.ReplicationControlManager#alterPartition, #validateAlterPartitionData.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from tidegauge.impl import rules
from tidegauge.impl.controller.partition_change import ChangeRequest
from tidegauge.impl.controller.partition_registration import PartitionRegistration, RecoveryState, merge_change
from tidegauge.impl.controller.records import ControllerResult, PartitionChangeRecord
from tidegauge.impl.controller.replication_control import (
    ReplicationControl,
    change_partition,
    election_by_config,
    has_topic,
    is_active,
)
from tidegauge.impl.errors import NOT_CONTROLLER, STALE_BROKER_EPOCH
from tidegauge.impl.messages import AlterPartitionRequest, AlterPartitionResponse
from tidegauge.impl.topic_partition import TopicPartition

Eligible = Callable[[int, int], bool]
"""Whether a broker may be in the ISR, given the broker epoch that the leader means: UNDEFINED, or KIP-903."""


def validate_proposal(
    partition: PartitionRegistration,
    sender: int,
    proposal: AlterPartitionRequest,
    eligible: Eligible,
    recovery: RecoveryState = RecoveryState.RECOVERED,
) -> int:
    """Return the error code for a proposal of `sender`, NONE when the ISR may become that."""
    if proposal.leader_epoch > partition.leader_epoch or proposal.partition_epoch > partition.partition_epoch:
        # Another controller made a change that this one does not know: the broker shall look for the active one.
        return NOT_CONTROLLER
    if proposal.leader_epoch < partition.leader_epoch:
        return rules.FENCED_LEADER_EPOCH
    # Epochs are compared first: a deposed leader learns that it is fenced rather than that its request is wrong.
    if sender != partition.leader:
        return rules.INVALID_REQUEST
    if proposal.partition_epoch < partition.partition_epoch:
        return rules.INVALID_UPDATE_VERSION
    members = set(proposal.isr)
    if len(members) != len(proposal.isr) or not members <= set(partition.replicas) or partition.leader not in members:
        return rules.INVALID_REQUEST
    # After an unclean election the leader alone is in the ISR until it reports RECOVERED; it cannot go back.
    if recovery is RecoveryState.RECOVERING and (len(members) > 1 or partition.recovery is RecoveryState.RECOVERED):
        return rules.INVALID_REQUEST
    epochs = proposal.isr_epochs or (rules.UNDEFINED,) * len(proposal.isr)
    return rules.NONE if all(map(eligible, proposal.isr, epochs)) else rules.INELIGIBLE_REPLICA


class Proposal(NamedTuple):
    """A leader's proposal for one partition."""

    tp: TopicPartition
    isr: AlterPartitionRequest
    recovery: RecoveryState = RecoveryState.RECOVERED


class AlterPartition(NamedTuple):
    """The request of a leader: its broker epoch, and what it proposes."""

    broker_id: int
    broker_epoch: int
    proposals: tuple[Proposal, ...]


class AlterPartitionResult(NamedTuple):
    """An error for the whole request, or a response for each proposal."""

    error: int
    responses: tuple[AlterPartitionResponse, ...] = ()


def alter_partition(control: ReplicationControl, request: AlterPartition) -> ControllerResult[AlterPartitionResult]:
    """Handle AlterPartition of a leader. ReplicationControlManager#alterPartition."""
    sender = control.brokers.get(request.broker_id)
    if sender is None or sender.epoch != request.broker_epoch:
        return ControllerResult((), AlterPartitionResult(STALE_BROKER_EPOCH))
    results = [_alter_one(control, request.broker_id, proposal) for proposal in request.proposals]
    records = tuple(record for result in results for record in result.records)
    return ControllerResult(records, AlterPartitionResult(rules.NONE, tuple(result.response for result in results)))


def _alter_one(control: ReplicationControl, sender: int, proposal: Proposal) -> ControllerResult[AlterPartitionResponse]:
    """Decide a proposal; return its records and the response for its partition."""
    partition = control.partitions.get(proposal.tp)
    if partition is None:
        topic_exists = has_topic(control, proposal.tp.topic)
        return _refused(rules.UNKNOWN_TOPIC_OR_PARTITION if topic_exists else rules.UNKNOWN_TOPIC_ID)
    error = validate_proposal(partition, sender, proposal.isr, partial(_is_eligible, control), proposal.recovery)
    if error != rules.NONE:
        return _refused(error)
    request = ChangeRequest(proposal.isr.isr, election_by_config(control, proposal.tp.topic), proposal.recovery)
    records = change_partition(control, proposal.tp, request)
    after = merge_change(partition, records[0].fields) if records else partition
    if after.leader != sender:
        # A completed reassignment may have moved leadership away: the change is made all the same.
        return _refused(rules.NEW_LEADER_ELECTED, records)
    response = AlterPartitionResponse(rules.NONE, after.leader_epoch, after.partition_epoch, after.isr)
    return ControllerResult(records, response)


def _refused(error: int, records: tuple[PartitionChangeRecord, ...] = ()) -> ControllerResult[AlterPartitionResponse]:
    return ControllerResult(records, AlterPartitionResponse(error))


def _is_eligible(control: ReplicationControl, broker: int, epoch: int) -> bool:
    """Return whether a broker may join: not fenced or shutting down (KIP-841), the right incarnation (KIP-903)."""
    return is_active(control, broker) and epoch in {rules.UNDEFINED, control.brokers[broker].epoch}

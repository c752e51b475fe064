"""What the controller answers to a proposed ISR: the checks in Kafka's order, the first thing wrong decides.

Source: org.apache.kafka.controller.ReplicationControlManager#validateAlterPartitionData.
"""

from collections.abc import Callable

from tidegauge.impl.control.partition_change import PartitionRegistration, RecoveryState
from tidegauge.impl.messages import NOT_CONTROLLER, AlterPartitionRequest
from tidegauge.impl.rules import (
    FENCED_LEADER_EPOCH,
    INELIGIBLE_REPLICA,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    NONE,
    UNDEFINED,
)

Eligible = Callable[[int, int], bool]
"""Whether a broker may be in the ISR, given the broker epoch that the leader means: UNDEFINED, or KIP-903."""


def validate(
    partition: PartitionRegistration,
    sender: int,
    proposal: AlterPartitionRequest,
    eligible: Eligible,
    recovery: RecoveryState = RecoveryState.RECOVERED,
) -> int:
    """The error code for a proposal of `sender`, NONE when the ISR may become that."""
    if proposal.leader_epoch > partition.leader_epoch or proposal.partition_epoch > partition.partition_epoch:
        return NOT_CONTROLLER  # another controller made a change this one does not know
    if proposal.leader_epoch < partition.leader_epoch:
        return FENCED_LEADER_EPOCH
    if sender != partition.leader:
        return INVALID_REQUEST
    if proposal.partition_epoch < partition.partition_epoch:
        return INVALID_UPDATE_VERSION
    members = set(proposal.isr)
    if len(members) != len(proposal.isr) or not members <= set(partition.replicas) or partition.leader not in members:
        return INVALID_REQUEST
    if recovery is RecoveryState.RECOVERING and (len(members) > 1 or partition.recovery is RecoveryState.RECOVERED):
        return INVALID_REQUEST
    epochs = proposal.isr_epochs or (UNDEFINED,) * len(proposal.isr)
    return NONE if all(map(eligible, proposal.isr, epochs)) else INELIGIBLE_REPLICA

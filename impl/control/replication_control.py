"""ReplicationControlManager: broker registrations, AlterPartition, what happens to partitions when brokers come and go.

Rules of this file

1. The sender's broker epoch stands for the whole of an AlterPartition, everything else for one partition: that is
   impl.control.alter_partition.
2. A broker that is fenced, shuts down, or comes back as another incarnation leaves every ISR. Coming back only looks at
   partitions without a leader.
3. Source: org.apache.kafka.controller.ReplicationControlManager, ClusterControlManager, BrokersToIsrs.
"""

from functools import partial
from typing import NamedTuple

from tidegauge.impl.control.alter_partition import validate
from tidegauge.impl.control.partition_change import (
    Acceptable,
    ChangeRequest,
    Election,
    PartitionRegistration,
    RecoveryState,
    build,
    clear_elr,
)
from tidegauge.impl.messages import AlterPartitionRequest, AlterPartitionResponse
from tidegauge.impl.profiles import FETCH_TRUNCATION, Profile
from tidegauge.impl.rules import NEW_LEADER_ELECTED, NONE, UNDEFINED, UNKNOWN_TOPIC_OR_PARTITION
from tidegauge.impl.table import Table
from tidegauge.impl.topic_partition import TopicPartition

STALE_BROKER_EPOCH = 77
ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
PREFERRED_LEADER_NOT_AVAILABLE = 80
ELECTION_NOT_NEEDED = 84


class BrokerRegistration(NamedTuple):
    """One incarnation of a broker. `offline_dirs`: partitions whose log directory failed there."""

    epoch: int
    fenced: bool = False
    in_controlled_shutdown: bool = False
    offline_dirs: frozenset[TopicPartition] = frozenset()


class ReplicationControl(NamedTuple):
    """The controller. `unclean`: unclean.leader.election.enable."""

    brokers: Table[int, BrokerRegistration] = Table()
    partitions: Table[TopicPartition, PartitionRegistration] = Table()
    profile: Profile = FETCH_TRUNCATION
    min_isr: int = 1
    unclean: bool = False


def is_active(control: ReplicationControl, broker: int) -> bool:
    """Registered, not fenced, not shutting down. ClusterControlManager#isActive."""
    registration = control.brokers.get(broker)
    return registration is not None and not registration.fenced and not registration.in_controlled_shutdown


def acceptable_for(control: ReplicationControl, tp: TopicPartition, but: int = UNDEFINED) -> Acceptable:
    """Who may lead `tp`; `but` is on its way out."""

    def acceptable(broker: int) -> bool:
        return broker != but and is_active(control, broker) and tp not in control.brokers[broker].offline_dirs

    return acceptable


def _changed(
    control: ReplicationControl, tp: TopicPartition, request: ChangeRequest, but: int = UNDEFINED
) -> ReplicationControl:
    partition = control.partitions[tp]
    if control.unclean and request.election is Election.ONLINE:
        request = request._replace(election=Election.UNCLEAN)
    after = build(control.profile, partition, request, acceptable_for(control, tp, but), control.min_isr)
    return control if after is partition else control._replace(partitions=control.partitions.put(tp, after))


# ---------------------------------------------------------------------------------------------------------------------
# AlterPartition


class AlterPartition(NamedTuple):
    """The request of a leader: its broker epoch, and what it proposes for each partition."""

    broker_id: int
    broker_epoch: int
    partitions: Table[TopicPartition, AlterPartitionRequest]
    recovery: RecoveryState = RecoveryState.RECOVERED


def alter_partition(
    control: ReplicationControl, request: AlterPartition
) -> tuple[ReplicationControl, int, Table[TopicPartition, AlterPartitionResponse]]:
    """The controller, an error for the whole request, a response per partition. ReplicationControlManager#alterPartition."""
    sender = control.brokers.get(request.broker_id)
    responses: Table[TopicPartition, AlterPartitionResponse] = Table()
    if sender is None or sender.epoch != request.broker_epoch:
        return control, STALE_BROKER_EPOCH, responses
    for tp, proposal in request.partitions.items():
        control, response = _alter_one(control, tp, request.broker_id, proposal, request.recovery)
        responses = responses.put(tp, response)
    return control, NONE, responses


def _alter_one(
    control: ReplicationControl, tp: TopicPartition, sender: int, proposal: AlterPartitionRequest, recovery: RecoveryState
) -> tuple[ReplicationControl, AlterPartitionResponse]:
    partition = control.partitions.get(tp)
    if partition is None:
        return control, AlterPartitionResponse(UNKNOWN_TOPIC_OR_PARTITION)
    error = validate(partition, sender, proposal, partial(_is_eligible, control), recovery)
    if error != NONE:
        return control, AlterPartitionResponse(error)
    control = _changed(control, tp, ChangeRequest(proposal.isr, recovery=recovery))
    after = control.partitions[tp]
    if after.leader != partition.leader:
        return control, AlterPartitionResponse(NEW_LEADER_ELECTED)
    return control, AlterPartitionResponse(NONE, after.leader_epoch, after.partition_epoch, after.isr)


def _is_eligible(control: ReplicationControl, broker: int, epoch: int) -> bool:
    """Not fenced or shutting down (KIP-841), and the incarnation the leader means (KIP-903)."""
    return is_active(control, broker) and epoch in {UNDEFINED, control.brokers[broker].epoch}


# ---------------------------------------------------------------------------------------------------------------------
# Brokers


def register_broker(
    control: ReplicationControl, broker: int, epoch: int, *, previous_epoch: int = UNDEFINED
) -> ReplicationControl:
    """Another incarnation, fenced at first. ClusterControlManager#registerBroker.

    Clean if and only if it names the epoch it was stopped in. Since 4.0 it leaves every ISR before its registration is
    written, so an old proposal can not bring it back (KAFKA-18106); a broker that did not stop cleanly is in no ELR.
    """
    known = control.brokers.get(broker)
    if known is not None and control.profile.registration_leaves_isr:
        clean = previous_epoch == known.epoch
        lost = frozenset() if clean else frozenset({broker})
        control = _without(control, broker, lost)
    return control._replace(brokers=control.brokers.put(broker, BrokerRegistration(epoch, fenced=True)))


def fence_broker(control: ReplicationControl, broker: int) -> ReplicationControl:
    """Its session ran out. ReplicationControlManager#handleBrokerFenced."""
    registration = control.brokers[broker]._replace(fenced=True)
    return _without(control._replace(brokers=control.brokers.put(broker, registration)), broker)


def begin_controlled_shutdown(control: ReplicationControl, broker: int) -> ReplicationControl:
    """It asks to leave. ReplicationControlManager#handleBrokerInControlledShutdown."""
    registration = control.brokers[broker]._replace(in_controlled_shutdown=True)
    return _without(control._replace(brokers=control.brokers.put(broker, registration)), broker)


def log_dir_failed(control: ReplicationControl, broker: int, tps: frozenset[TopicPartition]) -> ReplicationControl:
    """It leaves the ISR of the partitions that lay there. ReplicationControlManager#handleDirectoriesOffline."""
    known = control.brokers[broker]
    registration = known._replace(offline_dirs=known.offline_dirs | tps)
    return _without(control._replace(brokers=control.brokers.put(broker, registration)), broker, only=tps)


def unfence_broker(control: ReplicationControl, broker: int) -> ReplicationControl:
    """It caught up with the metadata: partitions without a leader may get one. #handleBrokerUnfenced."""
    registration = control.brokers[broker]._replace(fenced=False, in_controlled_shutdown=False)
    control = control._replace(brokers=control.brokers.put(broker, registration))
    for tp, partition in control.partitions.items():
        if partition.leader == UNDEFINED and broker in partition.replicas:
            control = _changed(control, tp, ChangeRequest())
    return control


def _without(
    control: ReplicationControl,
    broker: int,
    lost: frozenset[int] = frozenset(),
    only: frozenset[TopicPartition] | None = None,
) -> ReplicationControl:
    """It leaves every ISR, and ELR when it lost data. ReplicationControlManager#generateLeaderAndIsrUpdates."""
    for tp, partition in control.partitions.items():
        if only is not None and tp not in only:
            continue
        if broker not in {*partition.isr, *(partition.elr if lost else ())}:
            continue
        isr = tuple(b for b in partition.isr if b != broker)
        control = _changed(control, tp, ChangeRequest(isr, unclean_shutdown=lost), but=broker)
    return control


# ---------------------------------------------------------------------------------------------------------------------
# Requests


def elect_leader(control: ReplicationControl, tp: TopicPartition, election: Election) -> tuple[ReplicationControl, int]:
    """ElectLeaders, PREFERRED or UNCLEAN. ReplicationControlManager#electLeader."""
    partition = control.partitions.get(tp)
    if partition is None:
        return control, UNKNOWN_TOPIC_OR_PARTITION
    has_preferred = partition.leader == partition.replicas[0]
    if has_preferred if election is Election.PREFERRED else partition.leader != UNDEFINED:
        return control, ELECTION_NOT_NEEDED
    after = _changed(control, tp, ChangeRequest(election=election))
    if after is not control:
        return after, NONE
    preferred = election is Election.PREFERRED
    return control, PREFERRED_LEADER_NOT_AVAILABLE if preferred else ELIGIBLE_LEADERS_NOT_AVAILABLE


def set_min_isr(control: ReplicationControl, min_isr: int) -> ReplicationControl:
    """min.insync.replicas changes: with ELR on, every ELR is forgotten."""
    control = control._replace(min_isr=min_isr)
    if not control.profile.elr:
        return control
    return control._replace(partitions=Table((tp, clear_elr(p)) for tp, p in control.partitions.items()))

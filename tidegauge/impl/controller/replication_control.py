"""ReplicationControlManager: what the metadata log says of brokers and partitions, and how a partition changes.

Rules of this file

1. Every change of a partition is asked for here: who may lead now, how many must be in sync, what the topic allows.
2. Whatever a request has written already does not count before the next one: all its records are made from one state.
3. A broker that is fenced, shuts down, or comes back as another incarnation leaves every ISR. Coming back looks at every
   partition without a leader.
4. Source: org.apache.kafka.controller.ReplicationControlManager, ClusterControlManager, BrokersToIsrs.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from tidegauge.impl import rules
from tidegauge.impl.controller import partition_registration
from tidegauge.impl.controller.features import IBP_4_0_IV1, Features
from tidegauge.impl.controller.partition_change import Acceptable, ChangeRequest, Election, build_change
from tidegauge.impl.controller.partition_registration import (
    MIGRATING,
    UNASSIGNED,
    BrokersToElrs,
    PartitionRegistration,
    RecoveryState,
    directory_of,
    is_online,
    merge_change,
)
from tidegauge.impl.controller.records import BROKER, TOPIC, ConfigResource, ControllerResult, PartitionChangeRecord
from tidegauge.impl.errors import NOT_CONTROLLER, STALE_BROKER_EPOCH, IllegalArgumentError, IllegalStateError
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import AlterPartitionRequest, AlterPartitionResponse
from tidegauge.impl.profiles import FETCH_TRUNCATION, Profile
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.topic_partition import TopicPartition

MIN_IN_SYNC_REPLICAS = "min.insync.replicas"
UNCLEAN_LEADER_ELECTION = "unclean.leader.election.enable"
CLUSTER = ConfigResource(BROKER, "")

Configs = FrozenMap[str, str]


class BrokerRegistration(NamedTuple):
    """One incarnation of a broker. `directories` are the log directories it can read, `offset` where it registered."""

    epoch: int
    fenced: bool = False
    in_controlled_shutdown: bool = False
    directories: tuple[str, ...] = ()
    incarnation: int = 0
    offset: int = 0


class ReplicationControl(NamedTuple):
    """The state that the metadata log makes. `min_isr` and `unclean` are the controller's static configuration.

    `profile` is the generation with the features in force. `deleted_in` are directories in which a topic lay whose ISR
    was empty when it was deleted: Kafka's index keeps it there (finding F6).
    """

    brokers: FrozenMap[int, BrokerRegistration] = FrozenMap()
    partitions: FrozenMap[TopicPartition, PartitionRegistration] = FrozenMap()
    profile: Profile = FETCH_TRUNCATION
    min_isr: int = 1
    unclean: bool = False
    features: Features = Features()
    configs: FrozenMap[ConfigResource, Configs] = FrozenMap()
    brokers_to_elrs: BrokersToElrs = FrozenMap()
    deleted_in: frozenset[str] = frozenset()


# ---------------------------------------------------------------------------------------------------------------------
# Look-ups


def is_active(control: ReplicationControl, broker: int) -> bool:
    """Return whether a broker is registered, not fenced and not shutting down. ClusterControlManager#isActive."""
    registration = control.brokers.get(broker)
    return registration is not None and not registration.fenced and not registration.in_controlled_shutdown


def acceptable_for(
    control: ReplicationControl, tp: TopicPartition, active: Callable[[int], bool] | None = None
) -> Acceptable:
    """Return the test of who may lead `tp`: active, its directory online. ReplicationControlManager.LeaderAcceptor.

    It is for replicas only: another broker has no directory there.
    """
    partition = control.partitions[tp]

    def acceptable(broker: int) -> bool:
        """Return whether a replica may lead: its broker is active, and its directory online."""
        if not (is_active(control, broker) if active is None else active(broker)):
            return False
        if broker not in partition.replicas:
            raise IllegalArgumentError(f"{tp}: expected a replica, one of {partition.replicas}; seen {broker}")
        registration = control.brokers.get(broker)
        return registration is not None and is_online(directory_of(partition, broker), registration.directories)

    return acceptable


def default_directory(control: ReplicationControl, broker: int) -> str:
    """Return a broker's only directory; of several, the broker chooses later. ClusterControlManager#defaultDir."""
    registration = control.brokers.get(broker)
    directories = () if registration is None else registration.directories
    # A broker that registered without directories, from before JBOD in KRaft (KIP-858).
    if registration is not None and not directories:
        return MIGRATING
    return directories[0] if len(directories) == 1 else UNASSIGNED


def topic_config(control: ReplicationControl, topic: str, key: str, broker: int = UNDEFINED) -> str | None:
    """Return a topic's own value, else the cluster's; None where only the static configuration has one. #getTopicConfig.

    As a broker sees it, its own value comes before the cluster's (DynamicBrokerConfig).
    """
    own = () if broker == UNDEFINED else (ConfigResource(BROKER, str(broker)),)
    for resource in (ConfigResource(TOPIC, topic), *own, CLUSTER) if len(control.configs) else ():
        configs = control.configs.get(resource)
        value = None if configs is None else configs.get(key)
        if value is not None:
            return value
    return None


def min_isr(control: ReplicationControl, topic: str, broker: int = UNDEFINED) -> int:
    """Return the min.insync.replicas in force, for the controller or at a broker."""
    value = topic_config(control, topic, MIN_IN_SYNC_REPLICAS, broker)
    return control.min_isr if value is None else int(value)


def unclean_enabled(control: ReplicationControl, topic: str) -> bool:
    """Return unclean.leader.election.enable in force. #uncleanLeaderElectionEnabledForTopic."""
    # KRaft ignored the setting before 3.9 (KAFKA-12670).
    if not control.profile.unclean_by_config:
        return False
    value = topic_config(control, topic, UNCLEAN_LEADER_ELECTION)
    return control.unclean if value is None else value.lower() == "true"


def effective_min_isr(control: ReplicationControl, tp: TopicPartition) -> int:
    """Return min.insync.replicas, at most the number of replicas. #getTopicEffectiveMinIsr."""
    # Finding F4: Kafka counts the replicas of the topic's partition 0.
    first = control.partitions.get(tp._replace(partition=0)) if control.profile.min_isr_by_partition_zero else None
    return min(min_isr(control, tp.topic), len((first or control.partitions[tp]).replicas))


def keeps_elr(control: ReplicationControl) -> bool:
    """Return whether ELRs are maintained. Kafka stops when the feature is switched off, and members stay (finding F9)."""
    has_records = control.features.metadata_version >= IBP_4_0_IV1
    return control.profile.elr or (has_records and not control.profile.neglects_elr_when_off)


def has_topic(control: ReplicationControl, topic: str) -> bool:
    """Return whether a topic exists."""
    return any(tp.topic == topic for tp in control.partitions)


def with_broker_in_isr(control: ReplicationControl, broker: int) -> tuple[TopicPartition, ...]:
    """Return the partitions with a broker in the ISR. BrokersToIsrs#partitionsWithBrokerInIsr."""
    return tuple(tp for tp, partition in control.partitions.items() if broker in partition.isr)


def with_no_leader(control: ReplicationControl) -> tuple[TopicPartition, ...]:
    """Return the partitions without a leader. BrokersToIsrs#partitionsWithNoLeader."""
    return tuple(tp for tp, partition in control.partitions.items() if partition.leader == UNDEFINED)


def has_leaderships(control: ReplicationControl, broker: int) -> bool:
    """Return whether a broker leads; a leader outside its ISR does not count. BrokersToIsrs#hasLeaderships."""
    return any(broker == partition.leader and broker in partition.isr for partition in control.partitions.values())


# ---------------------------------------------------------------------------------------------------------------------
# Changes of partitions


def change_partition(
    control: ReplicationControl,
    tp: TopicPartition,
    request: ChangeRequest,
    active: Callable[[int], bool] | None = None,
    profile: Profile | None = None,
) -> tuple[PartitionChangeRecord, ...]:
    """Return the record of a request about one partition; none when nothing changes."""
    fields = build_change(
        profile or control.profile,
        control.partitions[tp],
        request,
        acceptable_for(control, tp, active),
        effective_min_isr(control, tp),
        (lambda broker: default_directory(control, broker)) if control.features.has_directories else None,
    )
    return () if fields is None else (PartitionChangeRecord(tp, fields),)


def election_by_config(control: ReplicationControl, topic: str) -> Election:
    """Return the election of a change that asks for none: unclean where the topic enables it."""
    return Election.UNCLEAN if unclean_enabled(control, topic) else Election.ONLINE


def generate_leader_and_isr_updates(
    control: ReplicationControl,
    tps: Iterable[TopicPartition],
    *,
    remove: int = UNDEFINED,
    add: int = UNDEFINED,
    unclean_shutdown: int = UNDEFINED,
) -> tuple[PartitionChangeRecord, ...]:
    """Change every partition that a broker's new state concerns. #generateLeaderAndIsrUpdates.

    `remove` leaves the ISR and may not lead; so does `unclean_shutdown`, and it leaves the ELR; `add` may lead although it
    is fenced still. A partition that is named twice gets two records made from the same registration.
    """
    gone = {remove, unclean_shutdown}

    def active(broker: int) -> bool:
        return broker not in gone and (broker == add or is_active(control, broker))

    lost = frozenset() if unclean_shutdown == UNDEFINED else frozenset({unclean_shutdown})
    records: list[PartitionChangeRecord] = []
    for tp in tps:
        # Kafka throws here, and the active controller resigns: its indexes still list a deleted topic.
        if tp.topic == partition_registration.DELETED or tp not in control.partitions:
            raise IllegalStateError(f"{tp}: expected a topic that is there, as the index says; seen none (finding F6)")
        isr = tuple(b for b in control.partitions[tp].isr if b not in gone)
        request = ChangeRequest(isr, election_by_config(control, tp.topic), unclean_shutdown=lost)
        records += change_partition(control, tp, request, active)
    return tuple(records)


# AlterPartition: the checks of a proposed ISR in Kafka's order, the first thing wrong decides, and what a good one makes.
#
# Rules of this part
#
# 1. The sender's broker epoch stands for the whole request, everything else for one partition.
# 2. Source: org.apache.kafka.controller.ReplicationControlManager#alterPartition, #validateAlterPartitionData.


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

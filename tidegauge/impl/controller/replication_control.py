"""ReplicationControlManager: what the metadata log says of brokers and partitions, and how a partition changes.

`ReplicationControl` is the state that the metadata log makes. Functions read it and return records that change it; nothing
is written here. ELR are the eligible leader replicas of a partition (KIP-966). An *active* broker is registered, not fenced,
and not in controlled shutdown. Names such as F4 are findings of docs/findings.md; a switch of the profile repairs each.

Rules of this file

1. Every change of a partition goes through `change_partition`: who may lead now, how many must be in sync, what the topic
   allows is looked up here; impl.controller.partition_change makes the record.
2. All records of a request are made from one state: what it has written already is seen by the next request only.
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
    """Return the function that says whether a replica of `tp` may lead. ReplicationControlManager.LeaderAcceptor.

    `active` takes the place of `is_active`, for a change that is about to change who is active.
    """
    partition = control.partitions[tp]

    def acceptable(broker: int) -> bool:
        """Return whether a replica may lead: its broker is active, and its directory online.

        Raises IllegalArgumentError for a broker that is no replica and so has no directory: a removed one in the ELR (F4).
        """
        if not (is_active(control, broker) if active is None else active(broker)):
            return False
        if broker not in partition.replicas:
            raise IllegalArgumentError(f"{tp}: expected a replica, one of {partition.replicas}; seen {broker}")
        registration = control.brokers.get(broker)
        return registration is not None and is_online(directory_of(partition, broker), registration.directories)

    return acceptable


def default_directory(control: ReplicationControl, broker: int) -> str:
    """Return the directory of a new replica on a broker: its only one; of several, the broker chooses later (UNASSIGNED).

    ClusterControlManager#defaultDir.
    """
    registration = control.brokers.get(broker)
    directories = () if registration is None else registration.directories
    # A broker that registered without directories, from before JBOD in KRaft (KIP-858).
    if registration is not None and not directories:
        return MIGRATING
    return directories[0] if len(directories) == 1 else UNASSIGNED


def topic_config(control: ReplicationControl, topic: str, key: str, broker: int = UNDEFINED) -> str | None:
    """Return the value of a configuration of a topic, else the cluster's default. #getTopicConfig.

    With a `broker`, as that broker sees it: its own value comes before the cluster's (DynamicBrokerConfig). None: the
    metadata log has no value, so that of the static configuration is in force.
    """
    of_broker = () if broker == UNDEFINED else (ConfigResource(BROKER, str(broker)),)
    # CLUSTER, the cluster's default, is the resource of a broker with an empty name.
    for resource in (ConfigResource(TOPIC, topic), *of_broker, CLUSTER) if len(control.configs) else ():
        configs = control.configs.get(resource)
        value = None if configs is None else configs.get(key)
        if value is not None:
            return value
    return None


def min_isr(control: ReplicationControl, topic: str, broker: int = UNDEFINED) -> int:
    """Return the min.insync.replicas of a topic that is in force for the controller (`broker` UNDEFINED) or at a broker."""
    value = topic_config(control, topic, MIN_IN_SYNC_REPLICAS, broker)
    return control.min_isr if value is None else int(value)


def unclean_enabled(control: ReplicationControl, topic: str) -> bool:
    """Return the unclean.leader.election.enable of a topic that is in force. #uncleanLeaderElectionEnabledForTopic."""
    # KRaft ignored the setting before 3.9 (KAFKA-12670).
    if not control.profile.unclean_by_config:
        return False
    value = topic_config(control, topic, UNCLEAN_LEADER_ELECTION)
    return control.unclean if value is None else value.lower() == "true"


def effective_min_isr(control: ReplicationControl, tp: TopicPartition) -> int:
    """Return a partition's min.insync.replicas, at most its number of replicas. #getTopicEffectiveMinIsr."""
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
    """Return the record that makes a requested change of one partition; () if nothing changes.

    `active` and `profile` take the place of `is_active` and of the state's profile.
    """
    place_replica = partial(default_directory, control) if control.features.has_directories else None
    fields = build_change(
        profile or control.profile,
        control.partitions[tp],
        request,
        acceptable_for(control, tp, active),
        effective_min_isr(control, tp),
        place_replica,
    )
    return () if fields is None else (PartitionChangeRecord(tp, fields),)


def election_by_config(control: ReplicationControl, topic: str) -> Election:
    """Return the kind of election for a change that does not name one: unclean where the topic enables it, else ONLINE."""
    return Election.UNCLEAN if unclean_enabled(control, topic) else Election.ONLINE


def generate_leader_and_isr_updates(
    control: ReplicationControl,
    tps: Iterable[TopicPartition],
    *,
    remove: int = UNDEFINED,
    add: int = UNDEFINED,
    unclean_shutdown: int = UNDEFINED,
) -> tuple[PartitionChangeRecord, ...]:
    """Return the records that change each partition in `tps` for a broker's new state. #generateLeaderAndIsrUpdates.

    The arguments are broker ids, UNDEFINED for none. `remove` leaves the ISR and may not lead; so does `unclean_shutdown`,
    and it leaves the ELR; `add` may lead although it is fenced still. A partition that is named twice gets two records made
    from the same registration.
    """
    leaving = {remove, unclean_shutdown}

    def active(broker: int) -> bool:
        """Return whether a broker will be active after the change."""
        return broker not in leaving and (broker == add or is_active(control, broker))

    shut_down_uncleanly = frozenset() if unclean_shutdown == UNDEFINED else frozenset({unclean_shutdown})
    records: list[PartitionChangeRecord] = []
    for tp in tps:
        # Kafka throws here, and the active controller resigns: its indexes still list a deleted topic.
        if tp.topic == partition_registration.DELETED or tp not in control.partitions:
            raise IllegalStateError(f"{tp}: expected a topic that is there, as the index says; seen none (finding F6)")
        isr = tuple(b for b in control.partitions[tp].isr if b not in leaving)
        request = ChangeRequest(isr, election_by_config(control, tp.topic), unclean_shutdown=shut_down_uncleanly)
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
    """Return the error code for an ISR that broker `sender` proposes, NONE if it may become that.

    ReplicationControlManager#validateAlterPartitionData. `eligible` says whether a broker may be in the ISR with the broker
    epoch that the proposal names; `recovery` is the recovery state that the leader reports.
    """
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
    """Handle AlterPartition of a leader: decide each proposal on its own. ReplicationControlManager#alterPartition."""
    sender = control.brokers.get(request.broker_id)
    if sender is None or sender.epoch != request.broker_epoch:
        return ControllerResult((), AlterPartitionResult(STALE_BROKER_EPOCH))
    results = [_decide_proposal(control, request.broker_id, proposal) for proposal in request.proposals]
    records = tuple(record for result in results for record in result.records)
    return ControllerResult(records, AlterPartitionResult(rules.NONE, tuple(result.response for result in results)))


def _decide_proposal(
    control: ReplicationControl, sender: int, proposal: Proposal
) -> ControllerResult[AlterPartitionResponse]:
    """Accept or refuse the ISR that the leader `sender` proposes for one partition; return the records and the response."""
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
    # A completed reassignment may have moved leadership away: the change is made all the same.
    if after.leader != sender:
        return _refused(rules.NEW_LEADER_ELECTED, records)
    response = AlterPartitionResponse(rules.NONE, after.leader_epoch, after.partition_epoch, after.isr)
    return ControllerResult(records, response)


def _refused(error: int, records: tuple[PartitionChangeRecord, ...] = ()) -> ControllerResult[AlterPartitionResponse]:
    """Return the result of a proposal that gets an error; `records` are written all the same."""
    return ControllerResult(records, AlterPartitionResponse(error))


def _is_eligible(control: ReplicationControl, broker: int, epoch: int) -> bool:
    """Return whether a broker may be in an ISR: not fenced or shutting down (KIP-841), and the named incarnation (KIP-903).

    `epoch` is the broker epoch that the leader names, UNDEFINED if it names none.
    """
    return is_active(control, broker) and epoch in {rules.UNDEFINED, control.brokers[broker].epoch}

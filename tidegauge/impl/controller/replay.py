"""Replay records of the metadata log on the controller's state, indexes included.

A function takes the state (`control`) and returns it after a record. One index is modelled: from brokers to the partitions
in whose ELR (eligible leader replicas) they are. Kafka does not always keep it right: findings F5 and F6 of
docs/findings.md, which the switch `indexes_go_stale` repairs.

Source: the `replay` methods of org.apache.kafka.controller.ReplicationControlManager, ClusterControlManager,
ConfigurationControlManager, FeatureControlManager.
"""

from collections.abc import Iterable

from tidegauge.impl.controller import partition_registration
from tidegauge.impl.controller import records as records_
from tidegauge.impl.controller.features import METADATA_VERSION, profile_in_force
from tidegauge.impl.controller.partition_registration import RESERVED, PartitionRegistration, clear_elr, merge_change
from tidegauge.impl.controller.replication_control import BrokerRegistration, ReplicationControl, effective_min_isr
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.topic_partition import TopicPartition


def replay_records(control: ReplicationControl, records: Iterable[records_.ControllerRecord]) -> ReplicationControl:
    """Return the state after a batch of records, whose offsets are counted from 0."""
    for offset, record in enumerate(records):
        control = replay_record(control, record, offset)
    return control


def replay_record(control: ReplicationControl, record: records_.ControllerRecord, offset: int = 0) -> ReplicationControl:
    """Return the state after one record; `offset` is where it stands in the log."""
    match record:
        case records_.PartitionChangeRecord(tp, fields):
            return _with_partition(control, tp, merge_change(control.partitions[tp], fields))
        case records_.PartitionRecord(tp, partition):
            return control._replace(partitions=control.partitions.put(tp, partition))
        case records_.RegisterBrokerRecord(broker, epoch, incarnation, fenced, shutting_down, directories):
            registration = BrokerRegistration(epoch, fenced, shutting_down, directories, incarnation, offset)
            return control._replace(brokers=control.brokers.put(broker, registration))
        case records_.BrokerRegistrationChangeRecord():
            return _with_registration_change(control, record)
        case records_.UnregisterBrokerRecord(broker):
            return control._replace(brokers=control.brokers.without(broker))
        case records_.TopicRecord():
            return control
        case records_.RemoveTopicRecord(topic):
            return _without_topic(control, topic)
        case records_.ConfigRecord():
            return _with_config(control, record)
        case records_.ClearElrRecord(topic):
            return _without_elrs(control, topic)
        case records_.FeatureLevelRecord(name, level):
            # The only other feature is ELR's.
            is_version = name == METADATA_VERSION
            features = control.features._replace(**{"metadata_version" if is_version else "elr": level})
            return control._replace(features=features, profile=profile_in_force(control.profile, features))


def _with_partition(control: ReplicationControl, tp: TopicPartition, after: PartitionRegistration) -> ReplicationControl:
    """Return the state with the registration `after` of a partition, and the index of ELRs updated. #updatePartitionInfo."""
    before = control.partitions[tp]
    control = control._replace(partitions=control.partitions.put(tp, after))
    if before.elr == after.elr:
        return control
    index = partition_registration.update_index(control.brokers_to_elrs, tp, before.elr, after.elr)
    return control._replace(brokers_to_elrs=index)


def _with_registration_change(
    control: ReplicationControl, record: records_.BrokerRegistrationChangeRecord
) -> ReplicationControl:
    """Return the state after a record that changes a broker's registration. #replayRegistrationChange.

    Unfencing does not end a controlled shutdown.
    """
    before = control.brokers[record.broker_id]
    registration = before._replace(
        fenced=before.fenced if record.fenced is None else record.fenced,
        in_controlled_shutdown=before.in_controlled_shutdown or bool(record.in_controlled_shutdown),
        # An empty list is not written, so the failure of the last directory never is.
        directories=record.directories or before.directories,
    )
    return control._replace(brokers=control.brokers.put(record.broker_id, registration))


def _without_topic(control: ReplicationControl, topic: str) -> ReplicationControl:
    """Return the state without a topic and its configuration. ReplicationControlManager#replay(RemoveTopicRecord)."""
    removed = {tp: partition for tp, partition in control.partitions.items() if tp.topic == topic}
    # Finding F6: Kafka removes the topic only from the entries of brokers that are in an ELR now, though the index may have
    # others.
    stale = control.profile.indexes_go_stale
    brokers = {b for p in removed.values() for b in p.elr} if stale else {b for b, _ in control.brokers_to_elrs}
    # Kafka visits the index of directories once per ISR member, so not at all where the ISR is empty (finding F6).
    left_in = {d for p in removed.values() if stale and not p.isr for d in p.directories} - RESERVED
    return control._replace(
        partitions=control.partitions.without(*removed),
        configs=control.configs.without(records_.ConfigResource(records_.TOPIC, topic)),
        brokers_to_elrs=partition_registration.remove_topic_from_index(control.brokers_to_elrs, topic, brokers),
        deleted_in=control.deleted_in | left_in,
    )


def _with_config(control: ReplicationControl, record: records_.ConfigRecord) -> ReplicationControl:
    """Return the state after a record that sets a configuration or, by None, deletes it.

    ConfigurationControlManager#replay. A resource without a configuration is left out.
    """
    before = control.configs.get(record.resource) or FrozenMap()
    after = before.without(record.key) if record.value is None else before.put(record.key, record.value)
    configs = control.configs.put(record.resource, after) if len(after) else control.configs.without(record.resource)
    return control._replace(configs=configs)


def _without_elrs(control: ReplicationControl, topic: str) -> ReplicationControl:
    """Return the state without the ELRs of a topic, or of all topics for "". #removeTopicElrs.

    Kafka leaves the index of ELRs as it was (findings F5, F6).
    """
    for tp, partition in control.partitions.items():
        if topic not in {"", tp.topic}:
            continue
        # KIP-966 removes an ELR only where the ISR satisfies the new min.insync.replicas: no other replica is needed
        # there.
        if not control.profile.min_isr_change_clears_elr and len(partition.isr) < effective_min_isr(control, tp):
            continue
        cleared = clear_elr(partition)
        # It had no ELR.
        if cleared is partition:
            continue
        if control.profile.indexes_go_stale:
            control = control._replace(partitions=control.partitions.put(tp, cleared))
        else:
            control = _with_partition(control, tp, cleared)
    return control

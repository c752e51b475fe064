"""Replay records of the metadata log on the controller's state, indexes included.

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
    """Replay a batch that begins the log."""
    for offset, record in enumerate(records):
        control = replay_record(control, record, offset)
    return control


def replay_record(control: ReplicationControl, record: records_.ControllerRecord, offset: int = 0) -> ReplicationControl:
    """Replay one record."""
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
            is_version = name == METADATA_VERSION
            features = control.features._replace(**{"metadata_version" if is_version else "elr": level})
            return control._replace(features=features, profile=profile_in_force(control.profile, features))


def _with_partition(control: ReplicationControl, tp: TopicPartition, after: PartitionRegistration) -> ReplicationControl:
    """Replace a partition and update the index of ELRs. ReplicationControlManager#updatePartitionInfo."""
    before = control.partitions[tp]
    control = control._replace(partitions=control.partitions.put(tp, after))
    if before.elr == after.elr:
        return control
    index = partition_registration.update_index(control.brokers_to_elrs, tp, before.elr, after.elr)
    return control._replace(brokers_to_elrs=index)


def _with_registration_change(
    control: ReplicationControl, record: records_.BrokerRegistrationChangeRecord
) -> ReplicationControl:
    """Change a registration; unfencing does not end a controlled shutdown. #replayRegistrationChange."""
    before = control.brokers[record.broker_id]
    registration = before._replace(
        fenced=before.fenced if record.fenced is None else record.fenced,
        in_controlled_shutdown=before.in_controlled_shutdown or bool(record.in_controlled_shutdown),
        # An empty list is not written, so the failure of the last directory never is.
        directories=record.directories or before.directories,
    )
    return control._replace(brokers=control.brokers.put(record.broker_id, registration))


def _without_topic(control: ReplicationControl, topic: str) -> ReplicationControl:
    """Remove a topic with its configuration. ReplicationControlManager#replay(RemoveTopicRecord)."""
    gone = {tp: partition for tp, partition in control.partitions.items() if tp.topic == topic}
    stale = control.profile.indexes_go_stale
    listed = {b for p in gone.values() for b in p.elr} if stale else {b for b, _ in control.brokers_to_elrs}
    # Kafka visits the index of directories once per ISR member, so not at all where the ISR is empty (finding F6).
    left_in = {d for p in gone.values() if stale and not p.isr for d in p.directories} - RESERVED
    return control._replace(
        partitions=control.partitions.without(*gone),
        configs=control.configs.without(records_.ConfigResource(records_.TOPIC, topic)),
        brokers_to_elrs=partition_registration.remove_topic_from_index(control.brokers_to_elrs, topic, listed),
        deleted_in=control.deleted_in | left_in,
    )


def _with_config(control: ReplicationControl, record: records_.ConfigRecord) -> ReplicationControl:
    """Set or, with None, delete a configuration; a resource without any is left out. ConfigurationControlManager#replay."""
    before = control.configs.get(record.resource) or FrozenMap()
    after = before.without(record.key) if record.value is None else before.put(record.key, record.value)
    configs = control.configs.put(record.resource, after) if len(after) else control.configs.without(record.resource)
    return control._replace(configs=configs)


def _without_elrs(control: ReplicationControl, topic: str) -> ReplicationControl:
    """Forget the ELRs of a topic, or all. #removeTopicElrs; Kafka leaves the index as it was (findings F5, F6)."""
    for tp, partition in control.partitions.items():
        if topic not in {"", tp.topic}:
            continue
        # KIP-966 removes an ELR only where the ISR satisfies the new min.insync.replicas: no other replica is needed
        # there.
        if not control.profile.min_isr_change_clears_elr and len(partition.isr) < effective_min_isr(control, tp):
            continue
        cleared = clear_elr(partition)
        if cleared is partition:
            continue
        if control.profile.indexes_go_stale:
            control = control._replace(partitions=control.partitions.put(tp, cleared))
        else:
            control = _with_partition(control, tp, cleared)
    return control

"""Configurations and features that change, and the further records that a change writes.

With eligible leader replicas (ELR) on, a changed min.insync.replicas empties the ELRs that it concerns, and brokers have no
min.insync.replicas of their own. Functions read the controller's state and return records of the metadata log; nothing is
written here. Names such as F11 are findings of docs/findings.md; a switch of the profile repairs each.

Source: org.apache.kafka.controller.ConfigurationControlManager.
"""

from typing import NamedTuple

from tidegauge.impl.controller import records as records_
from tidegauge.impl.controller.features import ELR_VERSION, FeatureUpdate, update_error
from tidegauge.impl.controller.partition_registration import ChangedFields
from tidegauge.impl.controller.replay import replay_records
from tidegauge.impl.controller.replication_control import (
    CLUSTER,
    MIN_IN_SYNC_REPLICAS,
    ReplicationControl,
    keeps_elr,
    min_isr,
)
from tidegauge.impl.errors import INVALID_CONFIG
from tidegauge.impl.rules import NONE, UNDEFINED


class ConfigChange(NamedTuple):
    """A key of an IncrementalAlterConfigs request; a value of None deletes it."""

    resource: records_.ConfigResource
    key: str
    value: str | None


def incremental_alter_configs(
    control: ReplicationControl, changes: tuple[ConfigChange, ...]
) -> records_.ControllerResult[int]:
    """Handle IncrementalAlterConfigs: return the records, and an error code. #incrementalAlterConfigs.

    One forbidden change refuses the whole request. An unchanged value of a topic writes nothing, a broker's is written.
    """
    records = tuple(records_.ConfigRecord(*c) for c in changes if c.resource.type == records_.BROKER or _differs(control, c))
    if any(_is_forbidden(control, record) for record in records):
        return records_.ControllerResult((), INVALID_CONFIG)
    return records_.ControllerResult(
        (*records, *renewed_epochs(control, records), *clear_elr_records(control, records)), NONE
    )


def _differs(control: ReplicationControl, change: ConfigChange) -> bool:
    """Return whether a change sets another value than the resource has, or deletes one that it has."""
    configs = control.configs.get(change.resource)
    return (None if configs is None else configs.get(change.key)) != change.value


def _is_forbidden(control: ReplicationControl, record: records_.ConfigRecord) -> bool:
    """Return whether ELR forbids a change: brokers have no min.insync.replicas of their own, the cluster always has one."""
    is_broker_min_isr = record.resource.type == records_.BROKER and record.key == MIN_IN_SYNC_REPLICAS
    # The cluster's default is a broker's resource, too, with an empty name: it may be changed, but not deleted.
    return control.profile.elr and is_broker_min_isr and (record.resource != CLUSTER or record.value is None)


def clear_elr_records(
    control: ReplicationControl, written: tuple[records_.ConfigRecord, ...]
) -> tuple[records_.ControllerRecord, ...]:
    """Return the records that empty ELRs, where the configurations `written` change min.insync.replicas.

    #createClearElrRecordsAsNeeded. That of a topic empties the topic's ELRs, that of a broker or the cluster all ("").
    """
    changed = (record.resource for record in written if record.key == MIN_IN_SYNC_REPLICAS)
    return tuple(records_.ClearElrRecord(r.name if r.type == records_.TOPIC else "") for r in changed if keeps_elr(control))


def renewed_epochs(
    control: ReplicationControl, written: tuple[records_.ControllerRecord, ...]
) -> tuple[records_.ControllerRecord, ...]:
    """Return records that start a new leader epoch where the records `written` raise min.insync.replicas for the leader.

    This is the repair of finding F11. The leader's proposals of the epoch before are refused then, and one that has read the
    new epoch has read the configuration, which is before it in the log. A value in a broker's own file is not known here.
    """
    if control.profile.raised_min_isr_keeps_epoch:
        return ()
    after = replay_records(control, written)
    leaders = ((tp, partition.leader) for tp, partition in control.partitions.items() if partition.leader != UNDEFINED)
    raised = ((tp, b) for tp, b in leaders if min_isr(after, tp.topic, b) > min_isr(control, tp.topic, b))
    # A change record that names the leader, be it the same one, starts a leader epoch (PartitionRegistration#merge).
    return tuple(records_.PartitionChangeRecord(tp, ChangedFields(leader=b)) for tp, b in raised)


def update_features(control: ReplicationControl, update: FeatureUpdate, latest: int) -> records_.ControllerResult[int]:
    """Handle UpdateFeatures for one feature: return the records, and an error code. #updateFeatures.

    `latest` is the highest metadata.version that controller and brokers know. Switching ELR on also writes what it requires
    of configurations.
    """
    error = update_error(control.features, update, latest)
    if error != NONE:
        return records_.ControllerResult((), error)
    level = records_.FeatureLevelRecord(update.name, update.level)
    # These may raise the min.insync.replicas of a leader, as any change of configurations may.
    safety = _elr_safety_records(control) if update.name == ELR_VERSION and update.level > 0 else ()
    return records_.ControllerResult((*safety, *renewed_epochs(control, safety), level), NONE)


def _elr_safety_records(control: ReplicationControl) -> tuple[records_.ControllerRecord, ...]:
    """Return the records that give the cluster a min.insync.replicas and delete those of brokers: ELR requires both.

    #maybeGenerateElrSafetyRecords. The cluster gets the controller's static value, unless it has one already. CLUSTER, the
    cluster's default, is the resource of type BROKER with an empty name.
    """
    cluster = control.configs.get(CLUSTER)
    has_value = cluster is not None and MIN_IN_SYNC_REPLICAS in cluster
    cluster_records = () if has_value else (records_.ConfigRecord(CLUSTER, MIN_IN_SYNC_REPLICAS, str(control.min_isr)),)
    brokers = sorted(
        resource
        for resource, configs in control.configs.items()
        if resource.type == records_.BROKER and resource != CLUSTER and MIN_IN_SYNC_REPLICAS in configs
    )
    return (*cluster_records, *(records_.ConfigRecord(resource, MIN_IN_SYNC_REPLICAS, None) for resource in brokers))

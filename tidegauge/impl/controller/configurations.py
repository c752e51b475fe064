"""Configurations and features that change, and what that writes besides: with ELR on, min.insync.replicas forgets ELRs.

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
    """Change configurations; an unchanged value of a topic writes nothing. #incrementalAlterConfigs."""
    records = tuple(records_.ConfigRecord(*c) for c in changes if c.resource.type == records_.BROKER or _differs(control, c))
    if any(_is_forbidden(control, record) for record in records):
        return records_.ControllerResult((), INVALID_CONFIG)
    return records_.ControllerResult(
        (*records, *renewed_epochs(control, records), *clear_elr_records(control, records)), NONE
    )


def _differs(control: ReplicationControl, change: ConfigChange) -> bool:
    configs = control.configs.get(change.resource)
    return (None if configs is None else configs.get(change.key)) != change.value


def _is_forbidden(control: ReplicationControl, record: records_.ConfigRecord) -> bool:
    """Return whether ELR forbids a change: brokers have no min.insync.replicas of their own, the cluster always has one."""
    is_brokers = record.resource.type == records_.BROKER and record.key == MIN_IN_SYNC_REPLICAS
    return control.profile.elr and is_brokers and (record.resource != CLUSTER or record.value is None)


def clear_elr_records(
    control: ReplicationControl, written: tuple[records_.ConfigRecord, ...]
) -> tuple[records_.ControllerRecord, ...]:
    """Return the records that forget ELRs with a changed min.insync.replicas. #createClearElrRecordsAsNeeded."""
    changed = (record.resource for record in written if record.key == MIN_IN_SYNC_REPLICAS)
    return tuple(records_.ClearElrRecord(r.name if r.type == records_.TOPIC else "") for r in changed if keeps_elr(control))


def renewed_epochs(
    control: ReplicationControl, written: tuple[records_.ControllerRecord, ...]
) -> tuple[records_.ControllerRecord, ...]:
    """Return records that start another leader epoch where min.insync.replicas is raised for the leader: the repair of F11.

    Proposals of the epoch before are refused then. A broker that has read the new epoch has read the configuration before
    it in the log. A value in a broker's own file is not known here.
    """
    if control.profile.raised_min_isr_keeps_epoch:
        return ()
    after = replay_records(control, written)
    led = ((tp, partition.leader) for tp, partition in control.partitions.items() if partition.leader != UNDEFINED)
    raised = ((tp, b) for tp, b in led if min_isr(after, tp.topic, b) > min_isr(control, tp.topic, b))
    return tuple(records_.PartitionChangeRecord(tp, ChangedFields(leader=b)) for tp, b in raised)


def update_features(control: ReplicationControl, update: FeatureUpdate, latest: int) -> records_.ControllerResult[int]:
    """Change a feature level. `latest`: the highest metadata.version that controller and brokers know. #updateFeatures."""
    error = update_error(control.features, update, latest)
    if error != NONE:
        return records_.ControllerResult((), error)
    level = records_.FeatureLevelRecord(update.name, update.level)
    safety = _elr_safety_records(control) if update.name == ELR_VERSION and update.level > 0 else ()
    return records_.ControllerResult((*safety, *renewed_epochs(control, safety), level), NONE)


def _elr_safety_records(control: ReplicationControl) -> tuple[records_.ControllerRecord, ...]:
    """Give the cluster a min.insync.replicas and remove those of brokers. #maybeGenerateElrSafetyRecords."""
    cluster = control.configs.get(CLUSTER)
    has_one = cluster is not None and MIN_IN_SYNC_REPLICAS in cluster
    own = () if has_one else (records_.ConfigRecord(CLUSTER, MIN_IN_SYNC_REPLICAS, str(control.min_isr)),)
    others = sorted(
        resource
        for resource, configs in control.configs.items()
        if resource.type == records_.BROKER and resource != CLUSTER and MIN_IN_SYNC_REPLICAS in configs
    )
    return (*own, *(records_.ConfigRecord(resource, MIN_IN_SYNC_REPLICAS, None) for resource in others))

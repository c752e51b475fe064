"""Topics that are created with an assignment, and deleted.

Source: ReplicationControlManager#createTopics, #deleteTopics.
"""

from collections.abc import Mapping

from tidegauge.impl.control.configurations import clear_elr_records
from tidegauge.impl.control.partition_registration import MIGRATING, PartitionRegistration
from tidegauge.impl.control.reassignments import assignment_error
from tidegauge.impl.control.records import (
    TOPIC,
    ConfigRecord,
    ConfigResource,
    ControllerResult,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tidegauge.impl.control.replication_control import ReplicationControl, default_directory, has_topic, is_active
from tidegauge.impl.error_codes import INVALID_REPLICA_ASSIGNMENT, TOPIC_ALREADY_EXISTS
from tidegauge.impl.rules import NONE, UNKNOWN_TOPIC_ID
from tidegauge.impl.topic_partition import TopicPartition


def create_topic(
    control: ReplicationControl, topic: str, assignment: tuple[tuple[int, ...], ...], configs: Mapping[str, str]
) -> ControllerResult[int]:
    """Create a topic: the active replicas are the ISR, the first of them leads. ReplicationControlManager#createTopic."""
    if has_topic(control, topic):
        return ControllerResult((), TOPIC_ALREADY_EXISTS)
    partitions: list[PartitionRecord] = []
    for number, replicas in enumerate(assignment):
        isr = tuple(b for b in replicas if is_active(control, b))
        if assignment_error(control, replicas) != NONE or not isr or len(replicas) != len(assignment[0]):
            return ControllerResult((), INVALID_REPLICA_ASSIGNMENT)
        named = tuple(default_directory(control, b) for b in replicas) if control.features.has_directories else ()
        directories = named if set(named) != {MIGRATING} else ()
        partition = PartitionRegistration(replicas, isr, isr[0], directories=directories)
        partitions.append(PartitionRecord(TopicPartition(topic, number), partition))
    own = tuple(ConfigRecord(ConfigResource(TOPIC, topic), key, value) for key, value in configs.items())
    return ControllerResult((TopicRecord(topic), *own, *clear_elr_records(control, own), *partitions), NONE)


def delete_topic(control: ReplicationControl, topic: str) -> ControllerResult[int]:
    """Delete a topic. ReplicationControlManager#deleteTopic."""
    if not has_topic(control, topic):
        return ControllerResult((), UNKNOWN_TOPIC_ID)
    return ControllerResult((RemoveTopicRecord(topic),), NONE)

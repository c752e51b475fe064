"""The state that the metadata log of a process makes of one path's cluster: its records, renamed and replayed.

Rules of this file

1. A path has broker ids and topics of its own (`Names`); records of others are passed over.
2. What a record makes of the state is stated once, in impl.controller.replay, and is held against Kafka's classes there.
3. Source: metadata/src/main/resources/common/metadata/*.json, PartitionRegistration#merge.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple
from uuid import UUID

from tidegauge.drive.wire.compiler import WireMessage
from tidegauge.impl.controller import records as records_
from tidegauge.impl.controller.features import ELR_VERSION, METADATA_VERSION
from tidegauge.impl.controller.partition_registration import (
    LOST,
    MIGRATING,
    UNASSIGNED,
    ChangedFields,
    PartitionRegistration,
    RecoveryState,
)
from tidegauge.impl.controller.replay import replay_record
from tidegauge.impl.controller.replication_control import BrokerRegistration, ReplicationControl
from tidegauge.impl.topic_partition import TopicPartition

SPREAD = 16
"""Members of an ELR come in the order of a Java hash set, which is that of the ids if those begin at a multiple of this."""

NO_CHANGE, NO_LEADER_CHANGE = -1, -2
RESERVED = {0: MIGRATING, 1: UNASSIGNED, 2: LOST}
"""org.apache.kafka.common.DirectoryId."""
DIRECTORIES_FROM = 1000

TYPES = {records_.TOPIC: 2, records_.BROKER: 4}
"""ConfigResource.Type."""


class LogRecord(NamedTuple):
    """A record of the metadata log: its offset, the name of its definition, its fields."""

    offset: int
    name: str
    body: WireMessage


class Names:
    """The brokers and topics of path number `lane` of a process; lanes count from 1."""

    def __init__(self, lane: int) -> None:
        self._lane, self.base = lane, SPREAD * lane

    def id_of(self, broker: int) -> int:
        """Return a broker's id in the process."""
        return self.base + broker

    def broker(self, broker_id: int) -> int | None:
        """Return which broker has an id; None for one of another path, -1 for none."""
        # -1 is "no broker" in Kafka's messages, and no id of a path.
        if broker_id < 0:
            return broker_id
        return broker_id - self.base if self.base < broker_id < self.base + SPREAD else None

    def brokers(self, broker_ids: Iterable[int]) -> tuple[int, ...]:
        """Return brokers of this path."""
        # A last known leader may be -1, none (apache/kafka#20629).
        return tuple(broker_id if broker_id < 0 else broker_id - self.base for broker_id in broker_ids)

    def full(self, topic: str) -> str:
        """Return a topic's name in the process."""
        return f"{topic}.{self._lane}"

    def topic(self, full: str) -> str | None:
        """Return the topic with a name in the process; None for one of another path."""
        name, _, lane = full.rpartition(".")
        return name if lane == str(self._lane) else None

    def directory_id(self, name: str) -> UUID:
        """Return the id of a directory of a broker of this path: of the broker's number, and a letter."""
        return UUID(int=DIRECTORIES_FROM + self.id_of(int(name[:-1])) << 64 | ord(name[-1]))

    def directory(self, directory_id: UUID) -> str:
        """Return the name of the directory with an id: the inverse of `directory_id`."""
        if directory_id.int in RESERVED:
            return RESERVED[directory_id.int]
        return f"{(directory_id.int >> 64) - DIRECTORIES_FROM - self.base}{chr(directory_id.int & 0x7F)}"

    def resource(self, kind: str, name: str) -> str:
        """Return the name of a configuration's resource in the process."""
        if kind == records_.TOPIC:
            return self.full(name)
        return str(self.id_of(int(name))) if name else ""


class Image:
    """The state that the log makes of a path's cluster, beginning with `control`."""

    def __init__(self, names: Names, control: ReplicationControl) -> None:
        """Begin with the state `control`. `names` tells which brokers and topics of the process are the path's."""
        self._names, self.control = names, control
        self.topic_ids: dict[str, UUID] = {}
        self._topics: dict[UUID, str] = {}
        self.changed_at: dict[int, int] = {}
        """By broker, where the last record of its registration is."""

    def read(self, records: Iterable[LogRecord]) -> None:
        """Replay those that are about this cluster."""
        for offset, name, body in records:
            record = self._record(name, body)
            if record is not None:
                self.control = replay_record(self.control, record, offset)
                if isinstance(record, records_.BrokerRegistrationChangeRecord | records_.RegisterBrokerRecord):
                    self.changed_at[record.broker_id] = offset

    def _record(self, name: str, body: WireMessage) -> records_.ControllerRecord | None:
        """Return a record with the path's names; None for a record of another path, or one that changes no report."""
        if name not in _READ:
            return None
        # A record of another path's broker or topic: several paths share the process.
        if "brokerId" in body and self._names.broker(body["brokerId"]) is None:
            return None
        if "topicId" in body and name != "TopicRecord" and body["topicId"] not in self._topics:
            return None
        return _READ[name](self, body)

    def _topic(self, body: WireMessage) -> records_.ControllerRecord | None:
        """Return the record of a topic of this path, whose id is noted; None for another path's."""
        topic = self._names.topic(body["name"])
        if topic is None:
            return None
        self.topic_ids[topic] = body["topicId"]
        self._topics[body["topicId"]] = topic
        return records_.TopicRecord(topic)

    def _remove_topic(self, body: WireMessage) -> records_.ControllerRecord:
        """Return the record that removes a topic, and forget its id."""
        topic = self._topics.pop(body["topicId"])
        del self.topic_ids[topic]
        return records_.RemoveTopicRecord(topic)

    def _tp(self, body: WireMessage) -> TopicPartition:
        return TopicPartition(self._topics[body["topicId"]], body["partitionId"])

    def _partition(self, body: WireMessage) -> records_.ControllerRecord:
        """Return the record of a new partition, brokers and directories by the path's names."""
        brokers = self._names.brokers
        directories = self._directories(body.get("directories") or ())
        registration = PartitionRegistration(
            brokers(body["replicas"]),
            brokers(body["isr"]),
            self._leader(body["leader"]),
            leader_epoch=body["leaderEpoch"],
            partition_epoch=body["partitionEpoch"],
            recovery=RecoveryState(body.get("leaderRecoveryState", 0)),
            elr=brokers(body.get("eligibleLeaderReplicas") or ()),
            last_known_elr=brokers(body.get("lastKnownElr") or ()),
            adding=brokers(body["addingReplicas"]),
            removing=brokers(body["removingReplicas"]),
            # A release without JBOD writes no directories, and Kafka reads that as MIGRATING everywhere.
            directories=() if set(directories) == {MIGRATING} else directories,
        )
        return records_.PartitionRecord(self._tp(body), registration)

    def _partition_change(self, body: WireMessage) -> records_.ControllerRecord:
        """Return the changed fields: one that the record leaves out, or has at its "no change" value, is None."""
        leader, recovery = body.get("leader", NO_LEADER_CHANGE), body.get("leaderRecoveryState", NO_CHANGE)
        directories = body.get("directories")
        fields = ChangedFields(
            self._some(body, "isr"),
            None if leader == NO_LEADER_CHANGE else self._leader(leader),
            None if recovery == NO_CHANGE else RecoveryState(recovery),
            elr=self._some(body, "eligibleLeaderReplicas"),
            last_known_elr=self._some(body, "lastKnownElr"),
            replicas=self._some(body, "replicas"),
            adding=self._some(body, "addingReplicas"),
            removing=self._some(body, "removingReplicas"),
            directories=None if directories is None else self._directories(directories),
        )
        return records_.PartitionChangeRecord(self._tp(body), fields)

    def _some(self, body: WireMessage, name: str) -> tuple[int, ...] | None:
        """Return the brokers in an optional field; None for a field that the record leaves as it was."""
        broker_ids = body.get(name)
        return None if broker_ids is None else self._names.brokers(broker_ids)

    def _leader(self, broker_id: int) -> int:
        return broker_id - self._names.base if broker_id >= 0 else broker_id

    def _directories(self, directory_ids: Iterable[UUID]) -> tuple[str, ...]:
        return tuple(map(self._names.directory, directory_ids))

    def _broker(self, body: WireMessage) -> int:
        return self._leader(body["brokerId"])

    def _register(self, body: WireMessage) -> records_.ControllerRecord:
        return records_.RegisterBrokerRecord(
            self._broker(body),
            body["brokerEpoch"],
            body["incarnationId"].int,
            body["fenced"],
            body.get("inControlledShutdown", False),
            self._directories(body.get("logDirs") or ()),
        )

    def _registration_change(self, body: WireMessage) -> records_.ControllerRecord:
        return records_.BrokerRegistrationChangeRecord(
            self._broker(body),
            body["brokerEpoch"],
            # BrokerRegistrationFencingChange and BrokerRegistrationInControlledShutdownChange: 0 is no change.
            {-1: False, 0: None, 1: True}[body["fenced"]],
            {0: None, 1: True}[body.get("inControlledShutdown", 0)],
            self._directories(body.get("logDirs") or ()),
        )

    def _unregister(self, body: WireMessage) -> records_.ControllerRecord:
        return records_.UnregisterBrokerRecord(self._broker(body), body["brokerEpoch"])

    def _config(self, body: WireMessage) -> records_.ControllerRecord | None:
        """Return a ConfigRecord in the names of this path, None if it is about a resource of another path."""
        kind = next((kind for kind, number in TYPES.items() if number == body["resourceType"]), None)
        name: str | None = body["resourceName"]
        # The broker named "" is the default of the cluster, which all paths share.
        if kind == records_.TOPIC:
            name = self._names.topic(str(name))
        elif name:
            broker = self._names.broker(int(name))
            name = None if broker is None else str(broker)
        if kind is None or name is None:
            return None
        return records_.ConfigRecord(records_.ConfigResource(kind, name), body["name"], body["value"])

    def _clear_elr(self, body: WireMessage) -> records_.ControllerRecord | None:
        topic = self._names.topic(body["topicName"]) if body["topicName"] else ""
        return None if topic is None else records_.ClearElrRecord(topic)

    def _feature(self, body: WireMessage) -> records_.ControllerRecord | None:
        is_read = body["name"] in {METADATA_VERSION, ELR_VERSION}
        return records_.FeatureLevelRecord(body["name"], body["featureLevel"]) if is_read else None


_READ: Mapping[str, Callable[[Image, Any], records_.ControllerRecord | None]] = {
    "TopicRecord": Image._topic,
    "RemoveTopicRecord": Image._remove_topic,
    "PartitionRecord": Image._partition,
    "PartitionChangeRecord": Image._partition_change,
    "RegisterBrokerRecord": Image._register,
    "BrokerRegistrationChangeRecord": Image._registration_change,
    "UnregisterBrokerRecord": Image._unregister,
    "ConfigRecord": Image._config,
    "ClearElrRecord": Image._clear_elr,
    "FeatureLevelRecord": Image._feature,
}


# A state of the controller as it is reported, whether it is the reference's or comes from the metadata log of a process.


class Incarnations:
    """Broker epochs as ordinals: offsets of the log differ from one log to the next."""

    def __init__(self) -> None:
        self._epochs: dict[int, list[int]] = {}

    def copy(self) -> "Incarnations":
        """Return the same numbers, to give out more."""
        copied = Incarnations()
        copied._epochs = {broker: [*epochs] for broker, epochs in self._epochs.items()}
        return copied

    def ordinal(self, broker: int, epoch: int) -> int:
        """Return which incarnation of a broker has this epoch, from 0 on."""
        epochs = self._epochs.setdefault(broker, [])
        if epoch not in epochs:
            epochs.append(epoch)
        return epochs.index(epoch)


def state_report(control: ReplicationControl, incarnations: Incarnations) -> dict[str, Any]:
    """Return registrations and features as they are reported."""
    return {
        "partitions": {str(tp): _partition(registration) for tp, registration in control.partitions.items()},
        "brokers": {
            str(broker): _broker(registration, incarnations.ordinal(broker, registration.epoch))
            for broker, registration in sorted(control.brokers.items())
        },
        "features": {"metadata.version": control.features.metadata_version, "elr": control.features.elr},
    }


def _partition(registration: PartitionRegistration) -> dict[str, Any]:
    lists = {
        "isr": registration.isr,
        "elr": registration.elr,
        "last_known_elr": registration.last_known_elr,
        "adding": registration.adding,
        "removing": registration.removing,
        "directories": registration.directories,
    }
    return {
        "replicas": list(registration.replicas),
        "leader": registration.leader,
        "leader_epoch": registration.leader_epoch,
        "partition_epoch": registration.partition_epoch,
        **{name: list(value) for name, value in lists.items()},
        "recovering": registration.recovery is RecoveryState.RECOVERING,
    }


def _broker(registration: BrokerRegistration, incarnation: int) -> dict[str, Any]:
    return {
        "incarnation": incarnation,
        "fenced": registration.fenced,
        "in_controlled_shutdown": registration.in_controlled_shutdown,
        "directories": list(registration.directories),
    }

"""The state that the metadata log of a process makes of one path's cluster: its records, renamed and replayed.

Several paths share a controller's process, one after the other. Each is a lane, a number: the ids of its brokers and the
names of its topics in the process are made from it (`Names`). A record from the log is a dict of its fields as Kafka names
them (`WireMessage`); here it becomes a record of impl.controller.records, with brokers and topics as the path names them.

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
"""In a PartitionChangeRecord: that leaderRecoveryState, or leader, is as it was (LeaderRecoveryState, LeaderConstants)."""
RESERVED = {0: MIGRATING, 1: UNASSIGNED, 2: LOST}
"""The ids that are no directories (org.apache.kafka.common.DirectoryId)."""
DIRECTORIES_FROM = 1000
"""Added to the broker's id in the id of a directory, far from the reserved ones."""

TYPES = {records_.TOPIC: 2, records_.BROKER: 4}
"""ConfigResource.Type."""


class LogRecord(NamedTuple):
    """A record of the metadata log: its offset, the name of its definition, its fields."""

    offset: int
    name: str
    body: WireMessage


class Names:
    """The brokers and topics of a path, as the path and as the process name them. `lane`: the number of the path."""

    def __init__(self, lane: int) -> None:
        self._lane, self.base = lane, SPREAD * lane

    def id_of(self, broker: int) -> int:
        """Return a broker's id in the process."""
        return self.base + broker

    def broker(self, broker_id: int) -> int | None:
        """Return the broker of the path that has an id in the process; None if it is another path's, -1 for -1."""
        # -1 is "no broker" in Kafka's messages, and no id of a path.
        if broker_id < 0:
            return broker_id
        return broker_id - self.base if self.base < broker_id < self.base + SPREAD else None

    def brokers(self, broker_ids: Iterable[int]) -> tuple[int, ...]:
        """Return the brokers of the path that have these ids in the process, which must be of this path, or -1."""
        # A last known leader may be -1, none (apache/kafka#20629).
        return tuple(broker_id if broker_id < 0 else broker_id - self.base for broker_id in broker_ids)

    def full(self, topic: str) -> str:
        """Return a topic's name in the process."""
        return f"{topic}.{self._lane}"

    def topic(self, full: str) -> str | None:
        """Return the path's name of a topic from its name in the process; None if it is another path's."""
        name, _, lane = full.rpartition(".")
        return name if lane == str(self._lane) else None

    def directory_id(self, name: str) -> UUID:
        """Return the id in the process of a directory, which the path calls by its broker's number and a letter: "2A"."""
        # The upper half of the id has the broker, the lower half the letter.
        return UUID(int=DIRECTORIES_FROM + self.id_of(int(name[:-1])) << 64 | ord(name[-1]))

    def directory(self, directory_id: UUID) -> str:
        """Return the path's name of the directory with an id: the inverse of `directory_id`."""
        if directory_id.int in RESERVED:
            return RESERVED[directory_id.int]
        return f"{(directory_id.int >> 64) - DIRECTORIES_FROM - self.base}{chr(directory_id.int & 0x7F)}"

    def resource(self, kind: str, name: str) -> str:
        """Return the name in the process of a topic or broker that is configured; "" is the cluster's default in both.

        `kind`: TOPIC or BROKER; `name`: that of a topic, or the number of a broker.
        """
        if kind == records_.TOPIC:
            return self.full(name)
        return str(self.id_of(int(name))) if name else ""


class Image:
    """The state that the metadata log makes of a path's cluster: `control`, which grows with the records that are read."""

    def __init__(self, names: Names, control: ReplicationControl) -> None:
        """Begin with the state `control`. `names` says which brokers and topics of the process are the path's."""
        self._names, self.control = names, control
        self.topic_ids: dict[str, UUID] = {}
        self._topics: dict[UUID, str] = {}
        self.changed_at: dict[int, int] = {}
        """By broker, the offset of the last record of its registration."""

    def read(self, records: Iterable[LogRecord]) -> None:
        """Replay those of the records that are about this path's cluster."""
        for offset, name, body in records:
            record = self._record(name, body)
            if record is not None:
                self.control = replay_record(self.control, record, offset)
                if isinstance(record, records_.BrokerRegistrationChangeRecord | records_.RegisterBrokerRecord):
                    self.changed_at[record.broker_id] = offset

    def _record(self, name: str, body: WireMessage) -> records_.ControllerRecord | None:
        """Return a record with the path's names; None for a record of another path, or one that changes no report.

        `name`: of the record's definition, such as "PartitionRecord".
        """
        if name not in _READERS:
            return None
        # A record of another path's broker or topic: several paths share the process.
        if "brokerId" in body and self._names.broker(body["brokerId"]) is None:
            return None
        # A TopicRecord is the one that makes the id of a topic known.
        if "topicId" in body and name != "TopicRecord" and body["topicId"] not in self._topics:
            return None
        return _READERS[name](self, body)

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
        """Return the partition that a record is about, by the path's names."""
        return TopicPartition(self._topics[body["topicId"]], body["partitionId"])

    def _partition(self, body: WireMessage) -> records_.ControllerRecord:
        """Return the record of a new partition, brokers and directories by the path's names."""
        brokers = self._names.brokers
        directories = self._directories(body.get("directories") or ())
        registration = PartitionRegistration(
            replicas=brokers(body["replicas"]),
            isr=brokers(body["isr"]),
            leader=self._leader(body["leader"]),
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
        """Return the record of a changed partition. A field that it leaves out, or has at its "no change" value, is None."""
        leader, recovery = body.get("leader", NO_LEADER_CHANGE), body.get("leaderRecoveryState", NO_CHANGE)
        directories = body.get("directories")
        fields = ChangedFields(
            isr=self._optional_brokers(body, "isr"),
            leader=None if leader == NO_LEADER_CHANGE else self._leader(leader),
            recovery=None if recovery == NO_CHANGE else RecoveryState(recovery),
            elr=self._optional_brokers(body, "eligibleLeaderReplicas"),
            last_known_elr=self._optional_brokers(body, "lastKnownElr"),
            replicas=self._optional_brokers(body, "replicas"),
            adding=self._optional_brokers(body, "addingReplicas"),
            removing=self._optional_brokers(body, "removingReplicas"),
            directories=None if directories is None else self._directories(directories),
        )
        return records_.PartitionChangeRecord(self._tp(body), fields)

    def _optional_brokers(self, body: WireMessage, field: str) -> tuple[int, ...] | None:
        """Return the brokers in an optional field of a record; None for a field that the record leaves as it was."""
        broker_ids = body.get(field)
        return None if broker_ids is None else self._names.brokers(broker_ids)

    def _leader(self, broker_id: int) -> int:
        """Return the path's number of a broker from its id in the process; a negative one, no broker, as it is."""
        return broker_id - self._names.base if broker_id >= 0 else broker_id

    def _directories(self, directory_ids: Iterable[UUID]) -> tuple[str, ...]:
        """Return the path's names of directories."""
        return tuple(map(self._names.directory, directory_ids))

    def _broker(self, body: WireMessage) -> int:
        """Return the broker that a record is about."""
        return self._leader(body["brokerId"])

    def _register(self, body: WireMessage) -> records_.ControllerRecord:
        """Return the record of a broker's registration."""
        return records_.RegisterBrokerRecord(
            self._broker(body),
            body["brokerEpoch"],
            body["incarnationId"].int,
            fenced=body["fenced"],
            in_controlled_shutdown=body.get("inControlledShutdown", False),
            directories=self._directories(body.get("logDirs") or ()),
        )

    def _registration_change(self, body: WireMessage) -> records_.ControllerRecord:
        """Return the record of a changed registration; None stands for what it leaves as it was."""
        return records_.BrokerRegistrationChangeRecord(
            self._broker(body),
            body["brokerEpoch"],
            # BrokerRegistrationFencingChange and BrokerRegistrationInControlledShutdownChange: 0 is no change.
            fenced={-1: False, 0: None, 1: True}[body["fenced"]],
            in_controlled_shutdown={0: None, 1: True}[body.get("inControlledShutdown", 0)],
            # None named: they are as they were.
            directories=self._directories(body.get("logDirs") or ()),
        )

    def _unregister(self, body: WireMessage) -> records_.ControllerRecord:
        """Return the record of a broker that is unregistered."""
        return records_.UnregisterBrokerRecord(self._broker(body), body["brokerEpoch"])

    def _config(self, body: WireMessage) -> records_.ControllerRecord | None:
        """Return a ConfigRecord in the names of this path, None if it is about a resource of another path."""
        kind = next((kind for kind, number in TYPES.items() if number == body["resourceType"]), None)
        # From here on the path's name; None: another path's resource. The broker named "" is the default of the cluster,
        # which all paths share, so it stays "".
        name: str | None = body["resourceName"]
        if kind == records_.TOPIC:
            name = self._names.topic(str(name))
        elif name:
            broker = self._names.broker(int(name))
            name = None if broker is None else str(broker)
        if kind is None or name is None:
            return None
        return records_.ConfigRecord(records_.ConfigResource(kind, name), body["name"], body["value"])

    def _clear_elr(self, body: WireMessage) -> records_.ControllerRecord | None:
        """Return the record that clears the ELR of a topic, or with no name of all topics; None for another path's topic."""
        topic = self._names.topic(body["topicName"]) if body["topicName"] else ""
        return None if topic is None else records_.ClearElrRecord(topic)

    def _feature(self, body: WireMessage) -> records_.ControllerRecord | None:
        """Return the record of a feature's new level; None for a feature that is not reported."""
        is_reported = body["name"] in {METADATA_VERSION, ELR_VERSION}
        return records_.FeatureLevelRecord(body["name"], body["featureLevel"]) if is_reported else None


_READERS: Mapping[str, Callable[[Image, Any], records_.ControllerRecord | None]] = {
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
"""By the name of a record's definition, what makes our record of it. Others change nothing that is reported."""


# A state of the controller as it is reported, whether it is the reference's or comes from the metadata log of a process.


class Incarnations:
    """The ordinals of broker epochs on a path. A broker epoch is an offset of the log, so it differs from log to log."""

    def __init__(self) -> None:
        self._epochs: dict[int, list[int]] = {}

    def copy(self) -> "Incarnations":
        """Return a copy, in which new ordinals can be given out without a change here."""
        copied = Incarnations()
        copied._epochs = {broker: [*epochs] for broker, epochs in self._epochs.items()}
        return copied

    def ordinal(self, broker: int, epoch: int) -> int:
        """Return the ordinal of a broker's epoch: 0 for the first one that was asked for, and so on."""
        epochs = self._epochs.setdefault(broker, [])
        if epoch not in epochs:
            epochs.append(epoch)
        return epochs.index(epoch)


def state_report(control: ReplicationControl, incarnations: Incarnations) -> dict[str, Any]:
    """Return all of a report but the result: partitions by name, brokers by number, features. `incarnations`: ordinals."""
    return {
        "partitions": {str(tp): _partition(registration) for tp, registration in control.partitions.items()},
        "brokers": {
            str(broker): _broker(registration, incarnations.ordinal(broker, registration.epoch))
            for broker, registration in sorted(control.brokers.items())
        },
        "features": {"metadata.version": control.features.metadata_version, "elr": control.features.elr},
    }


def _partition(registration: PartitionRegistration) -> dict[str, Any]:
    """Return a partition's registration as it is reported."""
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
    """Return a broker's registration as it is reported. `incarnation`: the ordinal of its broker epoch."""
    return {
        "incarnation": incarnation,
        "fenced": registration.fenced,
        "in_controlled_shutdown": registration.in_controlled_shutdown,
        "directories": list(registration.directories),
    }

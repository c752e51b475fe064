"""The records of the metadata log, as far as brokers and partitions need them, and what a request comes to.

Rules of this file

1. A request reads the state and gives records with a response; the records make the next state (impl.controller.replay).
2. Names and fields are those of Kafka's metadata records; a field that is None is not written.
3. Source: metadata/src/main/resources/common/metadata, org.apache.kafka.controller.ControllerResult.
"""

from typing import Generic, NamedTuple, TypeVar

from tidegauge.impl.controller.partition_registration import ChangedFields, PartitionRegistration
from tidegauge.impl.topic_partition import TopicPartition

R = TypeVar("R")

TOPIC = "TOPIC"
BROKER = "BROKER"


class ConfigResource(NamedTuple):
    """The topic or broker that a configuration belongs to; the name "" of a broker is the default of the cluster."""

    type: str
    name: str


class PartitionChangeRecord(NamedTuple):
    """The changed fields of one partition's registration."""

    tp: TopicPartition
    fields: ChangedFields


class RegisterBrokerRecord(NamedTuple):
    """An incarnation of a broker; `directories` are the log directories it can read."""

    broker_id: int
    epoch: int
    incarnation: int = 0
    fenced: bool = True
    in_controlled_shutdown: bool = False
    directories: tuple[str, ...] = ()


class BrokerRegistrationChangeRecord(NamedTuple):
    """The changed fields of a broker's registration. No directories: no change, so the last failure is never written."""

    broker_id: int
    epoch: int
    fenced: bool | None = None
    in_controlled_shutdown: bool | None = None
    directories: tuple[str, ...] = ()


class UnregisterBrokerRecord(NamedTuple):
    """A broker that is gone for good."""

    broker_id: int
    epoch: int


class TopicRecord(NamedTuple):
    """A topic, before its partitions."""

    topic: str


class PartitionRecord(NamedTuple):
    """A partition as it is created."""

    tp: TopicPartition
    partition: PartitionRegistration


class RemoveTopicRecord(NamedTuple):
    """A topic with its partitions and its configuration."""

    topic: str


class ConfigRecord(NamedTuple):
    """A value; None takes it away."""

    resource: ConfigResource
    key: str
    value: str | None


class ClearElrRecord(NamedTuple):
    """Forget the ELRs of a topic; "" is all of them."""

    topic: str


class FeatureLevelRecord(NamedTuple):
    """A feature at a level."""

    name: str
    level: int


ControllerRecord = (
    PartitionChangeRecord
    | RegisterBrokerRecord
    | BrokerRegistrationChangeRecord
    | UnregisterBrokerRecord
    | TopicRecord
    | PartitionRecord
    | RemoveTopicRecord
    | ConfigRecord
    | ClearElrRecord
    | FeatureLevelRecord
)


class ControllerResult(NamedTuple, Generic[R]):
    """The records that a request writes, and its response."""

    records: tuple[ControllerRecord, ...]
    response: R

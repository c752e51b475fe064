"""The registration of one partition at the controller, and the record that changes some of its fields.

The ELR of a partition are its eligible leader replicas (KIP-966). At the end is Kafka's index of them, BrokersToElrs: by
(broker, topic) the numbers of the partitions in whose ELR the broker is. Kafka does not always keep it right (finding F6):
it may have a number twice or too often, and entries of a deleted topic, which stand under the name DELETED here.

Rules of this file

1. Every change adds one to the partition epoch. The leader epoch grows if and only if the record says a leader: a new one,
   none, or the same on purpose (PartitionRegistration#merge).
2. A field of a record that is None is not written: the registration keeps what it had.
3. `directories` is parallel to the replicas; empty stands for MIGRATING in every place, which nothing has assigned yet.
4. Source: org.apache.kafka.metadata.PartitionRegistration, PartitionChangeRecord, org.apache.kafka.common.DirectoryId.
"""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple, TypeVar

from tidegauge.impl.errors import IllegalStateError
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.topic_partition import TopicPartition

T = TypeVar("T")

UNASSIGNED = "UNASSIGNED"
LOST = "LOST"
MIGRATING = "MIGRATING"
RESERVED = frozenset({UNASSIGNED, LOST, MIGRATING})


class RecoveryState(Enum):
    """LeaderRecoveryState: RECOVERING after an unclean election, until the leader says otherwise."""

    RECOVERED = 0
    RECOVERING = 1


class PartitionRegistration(NamedTuple):
    """The registration of one partition at the controller. `replicas` in order of preference."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    recovery: RecoveryState = RecoveryState.RECOVERED
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    directories: tuple[str, ...] = ()


class ChangedFields(NamedTuple):
    """The fields of a PartitionChangeRecord that are written."""

    isr: tuple[int, ...] | None = None
    leader: int | None = None
    recovery: RecoveryState | None = None
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    directories: tuple[str, ...] | None = None


NO_CHANGE = ChangedFields()


def merge_change(partition: PartitionRegistration, fields: ChangedFields) -> PartitionRegistration:
    """Return the registration after a change record. PartitionRegistration#merge: None leaves a field as it was."""
    directories = value_or(fields.directories, partition.directories)
    return PartitionRegistration(
        value_or(fields.replicas, partition.replicas),
        value_or(fields.isr, partition.isr),
        value_or(fields.leader, partition.leader),
        leader_epoch=partition.leader_epoch + (fields.leader is not None),
        partition_epoch=partition.partition_epoch + 1,
        recovery=value_or(fields.recovery, partition.recovery),
        elr=value_or(fields.elr, partition.elr),
        last_known_elr=value_or(fields.last_known_elr, partition.last_known_elr),
        adding=value_or(fields.adding, partition.adding),
        removing=value_or(fields.removing, partition.removing),
        directories=directories if set(directories) != {MIGRATING} else (),
    )


def value_or(value: T | None, otherwise: T) -> T:
    """Return the value, or `otherwise` where it is None."""
    return otherwise if value is None else value


def clear_elr(partition: PartitionRegistration) -> PartitionRegistration:
    """Return the registration without ELR and last known leader, in a new partition epoch. #removeTopicElrs (4.0).

    The same object is returned if it has neither.
    """
    if not partition.elr and not partition.last_known_elr:
        return partition
    return partition._replace(elr=(), last_known_elr=(), partition_epoch=partition.partition_epoch + 1)


def is_reassigning(partition: PartitionRegistration) -> bool:
    """Return whether a reassignment is in progress. PartitionReassignmentReplicas#isReassignmentInProgress."""
    return bool(partition.adding or partition.removing)


def directory_of(partition: PartitionRegistration, replica: int) -> str:
    """Return the directory of the replica on broker `replica`. PartitionRegistration#directory."""
    return partition.directories[partition.replicas.index(replica)] if partition.directories else MIGRATING


def is_online(name: str, online: tuple[str, ...]) -> bool:
    """Return whether a replica in the directory `name` can be read. DirectoryId#isOnline.

    `online` are the directories with which its broker is registered.
    """
    if name == LOST:
        return False
    # A broker that registered no directories has reported none as failed either.
    return name in {UNASSIGNED, MIGRATING} or not online or name in online


# ---------------------------------------------------------------------------------------------------------------------
# Which partitions a broker is eligible in: an index beside the registrations, and as Kafka keeps it, not always the same.
#
# Rules of this part
#
# 1. The index is kept by differences, as arrays that may hold a number twice or too many (finding F6): an entry that
#    nobody takes away is found again by the next registration of that broker.
# 2. A topic that is deleted is another one when it is created again: its entries are kept under DELETED.
# 3. Source: org.apache.kafka.controller.BrokersToElrs.


BrokersToElrs = FrozenMap[tuple[int, str], tuple[int, ...]]
"""(broker, topic) -> partitions, in the order they were added."""

DELETED = ""


def update_index(index: BrokersToElrs, tp: TopicPartition, before: tuple[int, ...], after: tuple[int, ...]) -> BrokersToElrs:
    """Return the index after the ELR of `tp` changed from `before` to `after`. BrokersToElrs#update."""
    for broker in sorted({*before, *after}):
        key = (broker, tp.topic)
        if broker not in before:
            index = index.put(key, (*(index.get(key) or ()), tp.partition))
        elif broker not in after:
            remaining = _without_number(index.get(key) or (), tp)
            index = index.put(key, remaining) if remaining else index.without(key)
    return index


def _without_number(partitions: tuple[int, ...], tp: TopicPartition) -> tuple[int, ...]:
    """Return the numbers of an entry of the index without that of `tp`. BrokersToElrs#remove.

    A number that is there twice leaves a 0, as in Kafka (finding F6). Raises IllegalStateError if it is not there.
    """
    if tp.partition not in partitions:
        raise IllegalStateError(f"brokers to ELRs: expected {tp} in the entry; seen {partitions}; the index is broken")
    remaining = tuple(p for p in partitions if p != tp.partition)
    # Kafka copies into an array that is one shorter, however many it removes: what is not filled stays 0.
    return remaining + (0,) * (len(partitions) - 1 - len(remaining))


def remove_topic_from_index(index: BrokersToElrs, topic: str, brokers: Iterable[int]) -> BrokersToElrs:
    """Return the index after a topic was deleted: `brokers` lose their entries of it. #removeTopicEntryForBroker.

    Entries of other brokers stay, under DELETED: a topic that is created under the same name is another one.
    """
    removed = set(brokers)
    for broker, name in index:
        if name == topic:
            partitions = index[broker, name]
            index = index.without((broker, name))
            index = index if broker in removed else index.put((broker, DELETED), partitions)
    return index


def partitions_with_broker_in_elr(index: BrokersToElrs, broker: int) -> tuple[TopicPartition, ...]:
    """Return the partitions that the index lists for a broker. BrokersToElrs#partitionsWithBrokerInElr."""
    return tuple(TopicPartition(topic, p) for (b, topic), partitions in index.items() if b == broker for p in partitions)

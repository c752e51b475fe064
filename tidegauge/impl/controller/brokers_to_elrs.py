"""Which partitions a broker is eligible in: an index beside the registrations, and as Kafka keeps it, not always the same.

Rules of this file

1. The index is kept by differences, as arrays that may hold a number twice or too many (finding F6): an entry that nobody
   takes away is found again by the next registration of that broker.
2. A topic that is deleted is another one when it is created again: its entries are kept under DELETED.
3. Source: org.apache.kafka.controller.BrokersToElrs.
"""

from collections.abc import Iterable

from tidegauge.impl.errors import IllegalStateError
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.topic_partition import TopicPartition

BrokersToElrs = FrozenMap[tuple[int, str], tuple[int, ...]]
"""(broker, topic) -> partitions, in the order they were added."""

DELETED = ""


def update_index(index: BrokersToElrs, tp: TopicPartition, before: tuple[int, ...], after: tuple[int, ...]) -> BrokersToElrs:
    """Update the index after an ELR changed. BrokersToElrs#update."""
    for broker in sorted({*before, *after}):
        key = (broker, tp.topic)
        if broker not in before:
            index = index.put(key, (*(index.get(key) or ()), tp.partition))
        elif broker not in after:
            left = _removed(index.get(key) or (), tp)
            index = index.put(key, left) if left else index.without(key)
    return index


def _removed(partitions: tuple[int, ...], tp: TopicPartition) -> tuple[int, ...]:
    """Remove a number as Kafka does, leaving a 0 where it was held twice (finding F6). BrokersToElrs#remove."""
    if tp.partition not in partitions:
        raise IllegalStateError(f"brokers to ELRs: expected {tp} in the entry; seen {partitions}; the index is broken")
    left = tuple(p for p in partitions if p != tp.partition)
    # Kafka copies into an array that is one shorter, whatever it found.
    return left + (0,) * (len(partitions) - 1 - len(left))


def remove_topic_from_index(index: BrokersToElrs, topic: str, brokers: Iterable[int]) -> BrokersToElrs:
    """Remove a deleted topic's entries of these brokers; those of others stay. #removeTopicEntryForBroker."""
    gone = set(brokers)
    for broker, name in index:
        if name == topic:
            stays = index[broker, name]
            index = index.without((broker, name))
            index = index if broker in gone else index.put((broker, DELETED), stays)
    return index


def partitions_with_broker_in_elr(index: BrokersToElrs, broker: int) -> tuple[TopicPartition, ...]:
    """Return the partitions that the index lists for a broker. BrokersToElrs#partitionsWithBrokerInElr."""
    return tuple(TopicPartition(topic, p) for (b, topic), partitions in index.items() if b == broker for p in partitions)

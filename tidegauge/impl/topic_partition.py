"""Names of partitions, and the arithmetic that spreads them over threads.

Rules of this file

1. Java's arithmetic: 32 bits, wrapping around. A text is hashed by its UTF-16 code units.
2. Source: java.lang.String#hashCode, org.apache.kafka.common.utils.Utils#abs, AbstractFetcherManager#getFetcherId.
"""

from typing import NamedTuple

MASK = 0xFFFF_FFFF
SIGN = 0x8000_0000


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def to_int32(value: int) -> int:
    """Return the Java int, from -2^31 to 2^31 - 1, that `value` becomes by overflow."""
    value &= MASK
    return value - (MASK + 1) if value & SIGN else value


def java_hash(text: str) -> int:
    """Return what Java's String#hashCode returns: a polynomial of the UTF-16 code units, in 32 bits."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & MASK
    return to_int32(value)


def java_abs(value: int) -> int:
    """Return what Kafka's Utils#abs returns: 0 for the smallest int, whose negation does not fit into an int."""
    return 0 if value == -SIGN else abs(value)


def fetcher_id(partition: TopicPartition, fetchers: int) -> int:
    """Return which of a broker's fetcher threads gets the partition. AbstractFetcherManager#getFetcherId."""
    return java_abs(to_int32(31 * java_hash(partition.topic) + partition.partition)) % fetchers

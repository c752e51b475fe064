"""Produce, fetch and DeleteRecords as a client or follower sends them, and what it gets back.

Values only; impl.server says what is done with them. Source: kafka.server.ReplicaManager, FetchParams, LogReadResult.
"""

from enum import Enum
from typing import NamedTuple

from tidegauge.impl.messages import FetchRequest, FetchResponse
from tidegauge.impl.records import Batch, Producer, Transaction
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.impl.table import Table
from tidegauge.impl.topic_partition import TopicPartition

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""org.apache.kafka.common.internals.Topic#INTERNAL_TOPICS: only coordinators write there."""


class ProducedBatch(NamedTuple):
    """One partition of a produce request; `corrupt`: its checksum does not match."""

    records: int
    corrupt: bool = False
    transaction: Transaction | None = None
    producer: Producer | None = None


class PartitionAppend(NamedTuple):
    """What a produce request is told about one partition."""

    error: int = NONE
    base_offset: int = UNDEFINED
    log_start: int = UNDEFINED


class ProduceResponse(NamedTuple):
    """With acks = 0 it is not `sent`; a failed one closes the connection, so the producer notices."""

    request: int
    responses: Table[TopicPartition, PartitionAppend]
    sent: bool = True
    closes_connection: bool = False


class PartitionDelete(NamedTuple):
    """What a DeleteRecords request is told about one partition."""

    error: int = NONE
    low_watermark: int = UNDEFINED


class DeleteRecordsResponse(NamedTuple):
    """Its response."""

    request: int
    responses: Table[TopicPartition, PartitionDelete]


class Isolation(Enum):
    """How far a fetch reads: to the log end, the high watermark, the last stable offset."""

    LOG_END = "LOG_END"
    HIGH_WATERMARK = "HIGH_WATERMARK"
    TXN_COMMITTED = "TXN_COMMITTED"


class OffsetSpec(Enum):
    """The timestamps of a ListOffsets request that name an offset. Records have no timestamps here."""

    LATEST = -1
    EARLIEST = -2
    EARLIEST_LOCAL = -4


class ListOffsetsPartition(NamedTuple):
    """One partition of a ListOffsets request."""

    spec: OffsetSpec
    current_leader_epoch: int = UNDEFINED


class ListedOffset(NamedTuple):
    """One partition of its response."""

    error: int = NONE
    offset: int = UNDEFINED
    leader_epoch: int = UNDEFINED


DEBUGGING_REPLICA = -2
FUTURE_LOCAL_REPLICA = -3


class FetchParams(NamedTuple):
    """What a fetch says once for all its partitions. `rack` is the client metadata of v11 and later, None without."""

    replica_id: int = UNDEFINED
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 50 << 20
    read_committed: bool = False
    rack: str | None = None

    @property
    def is_from_follower(self) -> bool:
        """FetchRequest#isValidBrokerId: 0 is a broker too (an article tests for > 0)."""
        return self.replica_id >= 0

    @property
    def isolation(self) -> Isolation:
        """FetchIsolation#of. Followers read to the log end, consumers do not (an article has it the other way round)."""
        if self.is_from_follower or self.replica_id == FUTURE_LOCAL_REPLICA:
            return Isolation.LOG_END
        return Isolation.TXN_COMMITTED if self.read_committed else Isolation.HIGH_WATERMARK

    @property
    def only_leader(self) -> bool:
        """FetchParams#fetchOnlyLeader: a consumer that says where it stands may read from a follower (KIP-392)."""
        return self.is_from_follower or self.rack is None


class PartitionFetch(NamedTuple):
    """One partition of a fetch."""

    request: FetchRequest
    max_bytes: int = 1 << 20
    topic_id: str | None = None


class PartitionRead(NamedTuple):
    """One partition of its response. The last two are for readers of committed transactions."""

    response: FetchResponse
    preferred_read_replica: int | None = None
    last_stable: int = UNDEFINED
    aborted: tuple[tuple[int, int, int], ...] = ()

    @property
    def records(self) -> tuple[Batch, ...]:
        """What was read."""
        return self.response.records


class FetchedPartitions(NamedTuple):
    """A response to a fetch."""

    request: int
    reads: Table[TopicPartition, PartitionRead]


ClientResponse = ProduceResponse | FetchedPartitions | DeleteRecordsResponse
"""What left the broker."""

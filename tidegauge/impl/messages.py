"""What travels between brokers, and what a broker believes about the others.

Rules of this file

1. Fields carry the names of Kafka's message schemas. UNDEFINED stands for an absent epoch, as on the wire.
2. Errors are the protocol's codes. Those in impl.rules are the ones a rule decides on; the rest stand here.
3. A fetch response travels with the offset and epoch of its request: Kafka keeps them in the fetch session.
4. The types of a message that may be in flight in the same place differ in their number of fields: tuples of the same
   numbers are equal, whatever their types.
"""

from enum import Enum
from typing import NamedTuple

from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.impl.topic_partition import TopicPartition

# Records, as far as the protocol looks at them: offsets, leader epochs, transactions.
#
# A batch is (base, last, epoch), both offsets inclusive, the transaction it belongs to, which only readers of committed
# transactions look at, and its idempotent producer, which only an append at a leader looks at. Contents do not matter to the
# protocol. Source: org.apache.kafka.common.record.RecordBatch.


class Marker(Enum):
    """ControlRecordType: how a transaction ended."""

    COMMIT = "COMMIT"
    ABORT = "ABORT"


class Transaction(NamedTuple):
    """The transaction a batch belongs to; with a marker, the batch is the one that ends it."""

    producer_id: int
    marker: Marker | None = None


class Producer(NamedTuple):
    """The producer of a batch, by which it is written once and in its order; sequence numbers are those of records."""

    producer_id: int
    epoch: int
    base_sequence: int


class Batch(NamedTuple):
    """Offsets of the first and last record, and the leader epoch stamped by the leader that wrote it."""

    base: int
    last: int
    epoch: int
    transaction: Transaction | None = None
    producer: Producer | None = None


class FetchRequest(NamedTuple):
    """One partition of a Fetch request; replica id UNDEFINED is a consumer's."""

    replica_id: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start: int = 0
    replica_epoch: int = UNDEFINED

    @property
    def is_from_follower(self) -> bool:
        """FetchRequest#isValidBrokerId."""
        return self.replica_id >= 0


class FetchResponse(NamedTuple):
    """One partition of a Fetch response. Diverging if and only if `diverging_epoch` is defined."""

    error: int
    hw: int = UNDEFINED
    log_start: int = UNDEFINED
    records: tuple[Batch, ...] = ()
    diverging_epoch: int = UNDEFINED
    diverging_end: int = UNDEFINED

    @property
    def is_diverging(self) -> bool:
        """FetchResponse#isDivergingEpoch."""
        return self.diverging_epoch >= 0


class ListOffsets(NamedTuple):
    """Responses to the two ListOffsets requests of an out-of-range reset, each with its error. They are no one snapshot."""

    earliest: int
    latest: int
    earliest_error: int = 0
    latest_error: int = 0

    def error(self, log_end: int) -> int:
        """Return the first error that a follower with this log end meets, 0 for none.

        AbstractFetcherThread#fetchOffsetAndTruncate asks for the latest offset first. A follower that is ahead of it
        truncates there and never asks for the earliest.
        """
        return self.latest_error or (0 if self.latest < log_end else self.earliest_error)


class FetchResponseInFlight(NamedTuple):
    """A response on its way, with what the follower needs to judge it."""

    request_epoch: int
    request_offset: int
    response: FetchResponse
    offsets: ListOffsets | None = None


class OffsetsForLeaderEpochRequest(NamedTuple):
    """One partition of an OffsetForLeaderEpoch request: where does `leader_epoch` end."""

    current_leader_epoch: int
    leader_epoch: int


class OffsetsForLeaderEpochResponse(NamedTuple):
    """A response without error to it on its way, with the epoch its request was made in."""

    request_epoch: int
    leader_epoch: int
    end_offset: int


FollowerRequest = FetchRequest | OffsetsForLeaderEpochRequest
LeaderResponse = FetchResponseInFlight | OffsetsForLeaderEpochResponse

Message = FollowerRequest | LeaderResponse | None
"""What is in flight between a follower and a leader; None is nothing."""


class AlterPartitionRequest(NamedTuple):
    """One partition of an AlterPartition request; `isr_epochs` are the members' broker epochs."""

    broker_id: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    isr_epochs: tuple[int, ...] = ()


class AlterPartitionResponse(NamedTuple):
    """One partition of its response."""

    error: int
    leader_epoch: int = UNDEFINED
    partition_epoch: int = UNDEFINED
    isr: tuple[int, ...] = ()


class BrokerState(NamedTuple):
    """A broker in the metadata cache; `epoch` None while no incarnation is alive (KRaft: also while fenced)."""

    broker_id: int
    fenced: bool = False
    shutting_down: bool = False
    epoch: int | None = UNDEFINED


BrokerStates = tuple[BrokerState, ...]
"""The metadata cache of one broker, as far as the ISR needs it."""


# Produce, fetch and DeleteRecords as a client or follower sends them, and what it gets back.
#
# Values only; impl.server says what is done with them. Source: kafka.server.ReplicaManager, FetchParams, LogReadResult.


INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""org.apache.kafka.common.internals.Topic#INTERNAL_TOPICS: only coordinators write there."""


class ProducedBatch(NamedTuple):
    """One partition of a produce request; `corrupt`: its checksum does not match."""

    records: int
    corrupt: bool = False
    transaction: Transaction | None = None
    producer: Producer | None = None


class PartitionAppend(NamedTuple):
    """The response to a produce request for one partition."""

    error: int = NONE
    base_offset: int = UNDEFINED
    log_start: int = UNDEFINED


class ProduceResponse(NamedTuple):
    """With acks = 0 it is not `sent`; a failed one closes the connection, so the producer notices."""

    request: int
    responses: FrozenMap[TopicPartition, PartitionAppend]
    sent: bool = True
    closes_connection: bool = False


class PartitionDelete(NamedTuple):
    """The response to a DeleteRecords request for one partition."""

    error: int = NONE
    low_watermark: int = UNDEFINED


class DeleteRecordsResponse(NamedTuple):
    """The response to a DeleteRecords request."""

    request: int
    responses: FrozenMap[TopicPartition, PartitionDelete]


class Isolation(Enum):
    """The end of what a fetch may read: the log end, the high watermark, the last stable offset."""

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
    """The fields of a fetch for all its partitions. `rack` is the client metadata of v11 and later, None without."""

    replica_id: int = UNDEFINED
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 50 << 20
    read_committed: bool = False
    rack: str | None = None

    @property
    def is_from_follower(self) -> bool:
        """Whether a broker sent it: -1 is a consumer. FetchRequest#isValidBrokerId; 0 is a broker, too."""
        return self.replica_id >= 0

    @property
    def isolation(self) -> Isolation:
        """Up to where the fetch may read. FetchIsolation#of: followers and the future replica of a move to the log end."""
        if self.is_from_follower or self.replica_id == FUTURE_LOCAL_REPLICA:
            return Isolation.LOG_END
        return Isolation.TXN_COMMITTED if self.read_committed else Isolation.HIGH_WATERMARK

    @property
    def only_leader(self) -> bool:
        """Whether only the leader serves it: a consumer that sends its rack may read from a follower (KIP-392)."""
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
    reads: FrozenMap[TopicPartition, PartitionRead]


ClientResponse = ProduceResponse | FetchedPartitions | DeleteRecordsResponse
"""What left the broker."""

"""What travels between brokers, and what a broker believes about the others.

Rules of this file

1. Fields carry the names of Kafka's message schemas. UNDEFINED stands for an absent epoch, as on the wire.
2. Errors are the protocol's codes. Those in impl.rules are the ones a rule decides on; the rest stand here.
3. A fetch response travels with the offset and epoch of its request: Kafka keeps them in the fetch session.
4. What may be in flight in the same place differs in length by kind: tuples that hold the same numbers are equal.
"""

from typing import NamedTuple

from tidegauge.impl.records import Batch
from tidegauge.impl.rules import UNDEFINED


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
        """Return the first error that a follower meets: one ahead of its leader does not ask for the earliest offset.

        AbstractFetcherThread#fetchOffsetAndTruncate: latest first.
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
    """What the metadata cache says about a broker; `epoch` None while no incarnation is alive (KRaft: also while fenced)."""

    broker_id: int
    fenced: bool = False
    shutting_down: bool = False
    epoch: int | None = UNDEFINED


Metadata = tuple[BrokerState, ...]
"""The metadata cache of one broker, as far as the ISR needs it."""

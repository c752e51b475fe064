"""Fetch sessions on the wire (KIP-227): what a request and its response say about the session they belong to.

Rules of this file

1. A full request has session epoch 0, or -1 when no session is wanted; every other epoch is an incremental request, which
   names only what changed.
2. Values only. The leader's end: impl.sessions.fetch_session. The follower's: impl.sessions.fetch_session_handler.
3. Source: org.apache.kafka.common.requests.FetchMetadata, FetchRequest, FetchResponse.
"""

from typing import NamedTuple

from tidegauge.impl.client_messages import PartitionFetch, PartitionRead
from tidegauge.impl.rules import NONE
from tidegauge.impl.table import Table
from tidegauge.impl.topic_partition import TopicPartition

INVALID_SESSION_ID = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
LARGEST_EPOCH = (1 << 31) - 1

Fetches = Table[TopicPartition, PartitionFetch]
Reads = Table[TopicPartition, PartitionRead]
Forgotten = tuple[TopicPartition, str | None]
"""A partition under the topic id it had."""


class FetchMetadata(NamedTuple):
    """Session id and session epoch. The defaults ask for a new session: FetchMetadata.INITIAL."""

    session_id: int = INVALID_SESSION_ID
    epoch: int = INITIAL_EPOCH

    @property
    def is_full(self) -> bool:
        """Whether the request names every partition."""
        return self.epoch in {INITIAL_EPOCH, FINAL_EPOCH}


INITIAL = FetchMetadata()
LEGACY = FetchMetadata(INVALID_SESSION_ID, FINAL_EPOCH)
"""What a client of Fetch version 6 or lower amounts to: no session, ever."""


def next_session_epoch(epoch: int) -> int:
    """Return the next session epoch: 0 is left out after an overflow; the final one stays. FetchMetadata#nextEpoch."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == LARGEST_EPOCH else epoch + 1


def new_incremental(session_id: int) -> FetchMetadata:
    """Return the metadata of the first request of a session that was just opened. FetchMetadata#newIncremental."""
    return FetchMetadata(session_id, next_session_epoch(INITIAL_EPOCH))


def next_incremental(metadata: FetchMetadata) -> FetchMetadata:
    """Return the metadata of the next incremental request. FetchMetadata#nextIncremental."""
    return metadata._replace(epoch=next_session_epoch(metadata.epoch))


def next_close_existing_attempt_new(metadata: FetchMetadata) -> FetchMetadata:
    """Close the session if it is still there, and ask for another. FetchMetadata#nextCloseExistingAttemptNew."""
    return metadata._replace(epoch=INITIAL_EPOCH)


class SessionFetch(NamedTuple):
    """A fetch request as it travels. `uses_topic_ids`: it is of version 13 or higher (KIP-516)."""

    metadata: FetchMetadata
    to_send: Fetches
    to_forget: tuple[Forgotten, ...] = ()
    uses_topic_ids: bool = True


class SessionResponse(NamedTuple):
    """A fetch response; an incremental one leaves out partitions without news."""

    error: int = NONE
    session_id: int = INVALID_SESSION_ID
    reads: Reads = Table()
    throttle_ms: int = 0

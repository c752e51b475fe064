"""The fetch sessions of peers at the reference (KIP-227): its one partition, and another one, in a session of each peer.

Rules of this file

1. What a session remembers and what its responses leave out is decided in impl.sessions. A read is that of a full fetch:
   nothing here knows what it does to the leader.
2. A peer has one session at most, whose id is the peer's. Nobody drives one out: the broker has room for all.
3. The request names the partition here also where it is what it was: to the broker both are the same
   (FetchSession.CachedPartition#updateRequestParams). Whoever asks a broker leaves it out then.
"""

from tidegauge.drive.held import Held, cache_of, led
from tidegauge.impl.client_messages import PartitionFetch, PartitionRead
from tidegauge.impl.cluster.broker import NOW
from tidegauge.impl.messages import FetchRequest, FetchResponse
from tidegauge.impl.replica import partition as partition_
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.impl.sessions.fetch_metadata import INITIAL_EPOCH, FetchMetadata, SessionFetch, next_epoch
from tidegauge.impl.sessions.fetch_session import new_context, respond
from tidegauge.impl.sessions.fetch_session_cache import CachedPartition, FetchSession, FetchSessionCache
from tidegauge.impl.table import Table
from tidegauge.impl.topic_partition import TopicPartition

TP, OTHER = TopicPartition("driven", 0), TopicPartition("other", 0)
NOTHING_NEW = PartitionRead(FetchResponse(NONE, 0, 0))
"""What there is to read of the other partition, every time."""


def fetched_in_session(
    held: Held, peer: int, session_epoch: int, request: FetchRequest | None, *, may_join: bool
) -> tuple[Held, FetchResponse | None]:
    """Handle a peer's fetch with a session epoch; without a `request` it is of the other partition alone.

    The response, or the error of the whole; None if it does not name the partition.
    """
    metadata = FetchMetadata(peer, session_epoch)
    fetches = Table(() if request is None else ((TP, PartitionFetch(request)),))
    if metadata.is_full:
        fetches = fetches.put(OTHER, PartitionFetch(FetchRequest(peer, UNDEFINED, 0, UNDEFINED)))
        held = held._replace(lost=tuple(one for one in held.lost if one != peer))
    forgets = ((TP, None),) if request is None and not metadata.is_full else ()
    cache = FetchSessionCache(sessions=held.sessions, next_id=peer)
    cache, context = new_context(cache, SessionFetch(metadata, fetches, forgets), NOW)
    reads: Table[TopicPartition, PartitionRead] = Table()
    for tp, fetch in context.fetches.items():
        held, read = _read(held, fetch.request, may_join=may_join) if tp == TP else (held, NOTHING_NEW)
        reads = reads.put(tp, read)
    cache, response = respond(cache, context, reads, NOW, is_follower=True)
    held = held._replace(sessions=cache.sessions)
    if response.error != NONE:
        return held, FetchResponse(response.error)
    named = response.reads.get(TP)
    return held, None if named is None else named.response


def _read(held: Held, request: FetchRequest, *, may_join: bool) -> tuple[Held, PartitionRead]:
    """What a full fetch of the partition reads, and does to the leader."""
    cache = cache_of(held, eligible=may_join)
    partition, response = partition_.fetch_records(held.setup, held.broker.partition, request, cache, NOW, max_records=1)
    return (led(held, partition) if response.error == NONE else held), PartitionRead(response)


def expected_epoch(held: Held, peer: int) -> int:
    """The session epoch that the peer's next incremental fetch has to have."""
    session = held.sessions.get(peer)
    return next_epoch(INITIAL_EPOCH) if session is None else session.epoch


def known_of(session: FetchSession | None) -> CachedPartition | None:
    """What a session remembers of the partition, if it has it."""
    return None if session is None else session.partitions.get(TP)

"""The fetch sessions of peers at the reference (KIP-227): its one partition, and another one, in a session of each peer.

Rules of this file

1. What a session remembers and what its responses leave out is decided in impl.sessions. A read is that of a full fetch:
   nothing here knows what it does to the leader.
2. A peer has one session at most, that of its last full fetch to be answered. Nobody drives one out: the broker has room
   for all. Ids only have to tell a session from the one that a fetch of this peer waits in: small ones come back.
3. A fetch that waits has been looked at; its response is made when it is answered (KafkaApis#handleFetchRequest).
4. The request names the partition here also where it is what it was: to the broker both are the same
   (FetchSession.CachedPartition#updateRequestParams). Whoever asks a broker leaves it out then.
"""

from collections.abc import Hashable
from itertools import count

from tidegauge.drive.broker.fetches import TP, fetched_at_once, fetched_or_waiting
from tidegauge.drive.broker.state import Fetched, Held
from tidegauge.impl.client_messages import PartitionFetch, PartitionRead
from tidegauge.impl.cluster.broker import NOW
from tidegauge.impl.messages import FetchRequest, FetchResponse
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.impl.sessions.fetch_metadata import (
    INITIAL_EPOCH,
    INVALID_SESSION_ID,
    FetchMetadata,
    SessionFetch,
    next_session_epoch,
)
from tidegauge.impl.sessions.fetch_session import (
    FetchContext,
    SessionKind,
    new_context,
    refresh_context,
    update_and_generate_response,
)
from tidegauge.impl.sessions.fetch_session_cache import CachedPartition, FetchSession, FetchSessionCache
from tidegauge.impl.table import Table
from tidegauge.impl.topic_partition import TopicPartition

OTHER = TopicPartition("other", 0)
NOTHING_NEW = FetchResponse(NONE, 0, 0)
"""What there is to say of the other partition, every time."""


def fetched_in_session(
    held: Held, peer: int, session_epoch: int, request: FetchRequest | None, *, may_join: bool, waits: bool = False
) -> tuple[Held, FetchResponse | None]:
    """Handle a peer's fetch with a session epoch; without a `request` it is of the other partition alone.

    The response, or the error of the whole; None if it does not name the partition, or if the fetch `waits`.
    """
    session = held.sessions.get(peer)
    metadata = FetchMetadata(INVALID_SESSION_ID if session is None else session.id, session_epoch)
    fetches = Table(() if request is None else ((TP, PartitionFetch(request)),))
    if metadata.is_full:
        fetches = fetches.put(OTHER, PartitionFetch(FetchRequest(peer, UNDEFINED, 0, UNDEFINED)))
        held = held._replace(lost=tuple(one for one in held.lost if one != peer))
    forgets = ((TP, None),) if request is None and not metadata.is_full else ()
    cache, context = new_context(_cache(session), SessionFetch(metadata, fetches, forgets), NOW)
    held = _kept(held, peer, cache)
    reads: Table[TopicPartition, PartitionRead] = Table()
    for tp, fetch in context.fetches.items():
        response: FetchResponse | None = NOTHING_NEW
        if tp == TP:
            held, response = (fetched_or_waiting if waits else fetched_at_once)(held, fetch.request, may_join=may_join)
        if response is None:
            return held._replace(contexts=held.contexts.put(peer, context)), None
        reads = reads.put(tp, PartitionRead(response))
    return _responded(held, peer, context, reads)


def answered_in_sessions(held: Held, fetched: Fetched) -> tuple[Held, Fetched]:
    """The responses to fetches that waited, those of fetches in a session as that makes them."""
    answered = dict(fetched)
    for peer, response in fetched.items():
        context = held.contexts.get(peer)
        if context is not None and response is not None:
            reads = Table((tp, PartitionRead(response if tp == TP else NOTHING_NEW)) for tp in context.fetches)
            held, answered[peer] = _responded(held._replace(contexts=held.contexts.without(peer)), peer, context, reads)
    return held, answered


def _responded(
    held: Held, peer: int, context: FetchContext, reads: Table[TopicPartition, PartitionRead]
) -> tuple[Held, FetchResponse | None]:
    # A full fetch opens its session now. One that was opened while it waited is asked for no more.
    session = None if context.kind is SessionKind.FULL else held.sessions.get(peer)
    in_use = [one.session.id for one in held.contexts.values() if one.session is not None]
    cache = _cache(session)._replace(next_id=next(one for one in count(1) if one not in in_use))
    cache, response = update_and_generate_response(cache, context, reads, NOW, is_follower=True)
    held = _kept(held, peer, cache)
    if response.error != NONE:
        return held, FetchResponse(response.error)
    named = response.reads.get(TP)
    return held, None if named is None else named.response


def _cache(session: FetchSession | None) -> FetchSessionCache:
    """As far as a peer is concerned, the broker has its session and no other."""
    return FetchSessionCache(sessions=Table(() if session is None else ((session.id, session),)))


def _kept(held: Held, peer: int, cache: FetchSessionCache) -> Held:
    """The peer's session is the one that is left."""
    sessions, contexts = held.sessions.without(peer), held.contexts
    for session in cache.sessions.values():
        sessions = sessions.put(peer, session)
    if peer in contexts:
        contexts = contexts.put(peer, refresh_context(cache, contexts[peer]))
    return held._replace(sessions=sessions, contexts=contexts)


def expected_epoch(held: Held, peer: int) -> int:
    """The session epoch that the peer's next incremental fetch has to have."""
    session = held.sessions.get(peer)
    return next_session_epoch(INITIAL_EPOCH) if session is None else session.epoch


def known_of(session: FetchSession | None) -> CachedPartition | None:
    """What a session remembers of the partition, if it has it."""
    return None if session is None else session.partitions.get(TP)


def waits_in(held: Held, peer: int) -> Hashable:
    """The session of a fetch that waits: none, one that is to be made, or its own, which may have gone on or away meanwhile.

    What it was told last is no part of it: who waited is told a record or an error.
    """
    context, session = held.contexts[peer], held.sessions.get(peer)
    if context.session is None:
        return context.kind
    stays = session is not None and session.id == context.session.id
    return stays, context.session.epoch != context.epoch

"""Fetch sessions of peers at the reference (KIP-227): its one partition, and another one, in a session of each peer.

What a session remembers, and what its responses leave out, is decided in impl.sessions. A peer has one session at most, that
of its last full fetch to be answered; none is evicted, because the broker has room for all.
"""

from collections.abc import Hashable
from itertools import count

from tidegauge.drive.broker.fetches import TP, fetched_at_once, fetched_or_waiting
from tidegauge.drive.broker.state import Fetched, ReferenceBroker
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
    state: ReferenceBroker,
    peer: int,
    session_epoch: int,
    request: FetchRequest | None,
    *,
    may_join: bool,
    waits: bool = False,
) -> tuple[ReferenceBroker, FetchResponse | None]:
    """Handle a peer's fetch with a session epoch; without a `request` it is of the other partition alone.

    Return the response, or the error of the whole; None if it does not name the partition, or if the fetch `waits`.
    """
    # The request names the partition also where a client would leave it out: to the broker both are the same
    # (FetchSession.CachedPartition#updateRequestParams).
    session = state.sessions.get(peer)
    metadata = FetchMetadata(INVALID_SESSION_ID if session is None else session.id, session_epoch)
    fetches = Table(() if request is None else ((TP, PartitionFetch(request)),))
    if metadata.is_full:
        fetches = fetches.put(OTHER, PartitionFetch(FetchRequest(peer, UNDEFINED, 0, UNDEFINED)))
        state = state._replace(lost=tuple(one for one in state.lost if one != peer))
    forgets = ((TP, None),) if request is None and not metadata.is_full else ()
    cache, context = new_context(_cache(session), SessionFetch(metadata, fetches, forgets), NOW)
    state = _kept(state, peer, cache)
    reads: Table[TopicPartition, PartitionRead] = Table()
    for tp, fetch in context.fetches.items():
        response: FetchResponse | None = NOTHING_NEW
        if tp == TP:
            state, response = (fetched_or_waiting if waits else fetched_at_once)(state, fetch.request, may_join=may_join)
        if response is None:
            return state._replace(contexts=state.contexts.put(peer, context)), None
        reads = reads.put(tp, PartitionRead(response))
    return _responded(state, peer, context, reads)


def answered_in_sessions(state: ReferenceBroker, fetched: Fetched) -> tuple[ReferenceBroker, Fetched]:
    """Return the responses to fetches that waited, those of fetches in a session as the session makes them."""
    # The response is made when it is sent, not when the fetch began to wait (KafkaApis#handleFetchRequest).
    answered = dict(fetched)
    for peer, response in fetched.items():
        context = state.contexts.get(peer)
        if context is not None and response is not None:
            reads = Table((tp, PartitionRead(response if tp == TP else NOTHING_NEW)) for tp in context.fetches)
            state, answered[peer] = _responded(state._replace(contexts=state.contexts.without(peer)), peer, context, reads)
    return state, answered


def _responded(
    state: ReferenceBroker, peer: int, context: FetchContext, reads: Table[TopicPartition, PartitionRead]
) -> tuple[ReferenceBroker, FetchResponse | None]:
    # A full fetch opens its session now. One that was opened while it waited is in no request any more.
    session = None if context.kind is SessionKind.FULL else state.sessions.get(peer)
    in_use = [one.session.id for one in state.contexts.values() if one.session is not None]
    # Ids have to tell a session from the one that a fetch of this peer waits in, no more: small ones come back, and states
    # that differ in nothing else are one.
    cache = _cache(session)._replace(next_id=next(one for one in count(1) if one not in in_use))
    cache, response = update_and_generate_response(cache, context, reads, NOW, is_follower=True)
    state = _kept(state, peer, cache)
    if response.error != NONE:
        return state, FetchResponse(response.error)
    named = response.reads.get(TP)
    return state, None if named is None else named.response


def _cache(session: FetchSession | None) -> FetchSessionCache:
    """Return a cache that has a peer's session and no other."""
    return FetchSessionCache(sessions=Table(() if session is None else ((session.id, session),)))


def _kept(state: ReferenceBroker, peer: int, cache: FetchSessionCache) -> ReferenceBroker:
    """Return the state in which the peer's session is the one that is left in the cache."""
    sessions, contexts = state.sessions.without(peer), state.contexts
    for session in cache.sessions.values():
        sessions = sessions.put(peer, session)
    if peer in contexts:
        contexts = contexts.put(peer, refresh_context(cache, contexts[peer]))
    return state._replace(sessions=sessions, contexts=contexts)


def expected_epoch(state: ReferenceBroker, peer: int) -> int:
    """Return the session epoch that the peer's next incremental fetch has to have."""
    session = state.sessions.get(peer)
    return next_session_epoch(INITIAL_EPOCH) if session is None else session.epoch


def known_of(session: FetchSession | None) -> CachedPartition | None:
    """Return what a session remembers of the partition, if it has it."""
    return None if session is None else session.partitions.get(TP)


def waits_in(state: ReferenceBroker, peer: int) -> Hashable:
    """Return the session of a fetch that waits: none, one that is to be made, or its own, which may have gone on or away
    meanwhile. Its last response is no part of it, because a fetch that waited gets a record or an error.
    """
    context, session = state.contexts[peer], state.sessions.get(peer)
    if context.session is None:
        return context.kind
    stays = session is not None and session.id == context.session.id
    return stays, context.session.epoch != context.epoch

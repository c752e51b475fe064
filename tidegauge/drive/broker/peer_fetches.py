"""Fetches of the broker's peers at the reference: those that wait, and those in fetch sessions."""

from collections.abc import Hashable
from itertools import count

from tidegauge.drive.broker.contract import BROKER
from tidegauge.drive.broker.state import NOTHING_FETCHED, Fetched, ReferenceBroker, metadata_cache, with_partition
from tidegauge.impl.cluster.broker import NOW
from tidegauge.impl.fetch import fetch_session as sessions_
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import (
    FetchedPartitions,
    FetchParams,
    FetchRequest,
    FetchResponse,
    PartitionFetch,
    PartitionRead,
)
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica import partition as partition_
from tidegauge.impl.replica.partition_state import Partition
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.impl.server import purgatory
from tidegauge.impl.server.client_requests import fetch_messages
from tidegauge.impl.server.replica_manager import Hosted, ReplicaManager
from tidegauge.impl.server.role_changes import restarts_fetcher
from tidegauge.impl.topic_partition import TopicPartition

# Fetches of peers at the reference, and those that wait: its one partition as a ReplicaManager has it.
#
# What a fetch waits for, and its response, is decided in impl.server (DelayedFetch#tryComplete, #onComplete). This module
# decides when a waiting fetch is checked. Its maxWait does not end: the contract has no time.


TP = TopicPartition("driven", 0)
ONE_BATCH = 1
"""minBytes, and maxBytes: one batch comes back however large (KIP-74)."""


def _manager(state: ReferenceBroker, *, may_join: bool) -> ReplicaManager:
    """Return the broker with its partition, and nothing that waits yet."""
    hosted = FrozenMap(((TP, Hosted(state.broker.partition)),))
    return ReplicaManager(BROKER, hosted=hosted, metadata=metadata_cache(state, eligible=may_join))


def fetched_at_once(
    state: ReferenceBroker, request: FetchRequest, *, may_join: bool
) -> tuple[ReferenceBroker, FetchResponse]:
    """Handle a peer's fetch that does not wait, of one record."""
    cache = metadata_cache(state, eligible=may_join)
    partition, response = partition_.fetch_records(state.setup, state.broker.partition, request, cache, NOW, max_records=1)
    # A refused fetch records nothing of the follower.
    return with_partition(state, partition) if response.error == NONE else state, response


def fetched_or_waiting(
    state: ReferenceBroker, request: FetchRequest, *, may_join: bool
) -> tuple[ReferenceBroker, FetchResponse | None]:
    """Handle a peer's fetch that may wait; the response is None if it waits."""
    peer = request.replica_id
    params = FetchParams(peer, min_bytes=ONE_BATCH, max_bytes=ONE_BATCH)
    fetches = FrozenMap(((TP, PartitionFetch(request, ONE_BATCH)),))
    manager = fetch_messages(state.setup, _manager(state, may_join=may_join), peer, params, fetches, NOW)
    state = with_partition(state, manager.hosted[TP].partition)
    return state._replace(fetches=FrozenMap((*state.fetches.items(), *manager.fetches.items()))), _responses(manager).get(
        peer
    )


def completed(before: Partition, state: ReferenceBroker) -> tuple[ReferenceBroker, Fetched]:
    """Return what still waits after a step, and what was answered. `before`: the partition before that step."""
    if not state.fetches or not _are_checked(state.setup, before, state.broker.partition):
        return state, NOTHING_FETCHED
    manager = _manager(state, may_join=False)._replace(fetches=state.fetches)
    manager = purgatory.check_fetches(state.setup, manager, TP, NOW)
    return with_partition(state, manager.hosted[TP].partition)._replace(fetches=manager.fetches), _responses(manager)


def _are_checked(setup: Setup, before: Partition, after: Partition) -> bool:
    """Return whether Kafka checks waiting fetches after a step."""
    # A leader that reads of a later leader epoch of its own has not lost it, and nothing is checked: a fetch that could be
    # completed waits on. ReplicaManager#applyLocalFollowersDelta.
    if before.is_leader and not after.is_leader:
        return restarts_fetcher(setup, before, after)
    # An append (ReplicaManager#addCompletePurgatoryAction), or a high watermark that was raised
    # (Partition#tryCompleteDelayedRequests).
    return after.log.end > before.log.end or purgatory.high_watermark_incremented(before, after)


def _responses(manager: ReplicaManager) -> Fetched:
    """Return the responses that left the broker, by peer."""
    answered = (fetched for fetched in manager.answered if isinstance(fetched, FetchedPartitions))
    return {fetched.request: fetched.reads[TP].response for fetched in answered}


# Fetch sessions of peers at the reference (KIP-227). The session of a peer contains the one partition and another one.
#
# What a session remembers, and what its responses leave out, is decided in impl.fetch. A peer has one session at most, that
# of its last full fetch to be answered; none is evicted, because the broker has room for all.


OTHER = TopicPartition("other", 0)
NOTHING_NEW = FetchResponse(NONE, 0, 0)
"""The response for the other partition, every time."""


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
    metadata = sessions_.FetchMetadata(sessions_.INVALID_SESSION_ID if session is None else session.id, session_epoch)
    fetches = FrozenMap(() if request is None else ((TP, PartitionFetch(request)),))
    # A full fetch names both partitions; what the peer's session lost with the broker's process no longer matters.
    if metadata.is_full:
        fetches = fetches.put(OTHER, PartitionFetch(FetchRequest(peer, UNDEFINED, 0, UNDEFINED)))
        state = state._replace(lost=tuple(other_peer for other_peer in state.lost if other_peer != peer))
    forgets = ((TP, None),) if request is None and not metadata.is_full else ()
    cache, context = sessions_.new_context(_cache(session), sessions_.SessionFetch(metadata, fetches, forgets), NOW)
    state = _with_sessions(state, peer, cache)
    reads: FrozenMap[TopicPartition, PartitionRead] = FrozenMap()
    for tp, fetch in context.fetches.items():
        response: FetchResponse | None = NOTHING_NEW
        # An incremental fetch reads what the session contains, also where the request does not name it.
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
            reads = FrozenMap((tp, PartitionRead(response if tp == TP else NOTHING_NEW)) for tp in context.fetches)
            state, answered[peer] = _responded(state._replace(contexts=state.contexts.without(peer)), peer, context, reads)
    return state, answered


def _responded(
    state: ReferenceBroker, peer: int, context: sessions_.FetchContext, reads: FrozenMap[TopicPartition, PartitionRead]
) -> tuple[ReferenceBroker, FetchResponse | None]:
    """Return the response to a fetch whose reads are done, and the state with what its session remembers of it."""
    # A full fetch opens its session now. One that was opened while it waited is in no request any more.
    session = None if context.kind is sessions_.SessionKind.FULL else state.sessions.get(peer)
    in_use = [waiting.session.id for waiting in state.contexts.values() if waiting.session is not None]
    # An id has to differ only from those of the sessions that fetches wait in. The smallest free one keeps states equal that
    # differ in nothing else.
    cache = _cache(session)._replace(next_id=next(free for free in count(1) if free not in in_use))
    cache, response = sessions_.update_and_generate_response(cache, context, reads, NOW, is_follower=True)
    state = _with_sessions(state, peer, cache)
    if response.error != NONE:
        return state, FetchResponse(response.error)
    named = response.reads.get(TP)
    return state, None if named is None else named.response


def _cache(session: sessions_.FetchSession | None) -> sessions_.FetchSessionCache:
    """Return a cache that has a peer's session and no other."""
    return sessions_.FetchSessionCache(sessions=FrozenMap(() if session is None else ((session.id, session),)))


def _with_sessions(state: ReferenceBroker, peer: int, cache: sessions_.FetchSessionCache) -> ReferenceBroker:
    """Return the state in which the peer's session is the one that is left in the cache."""
    sessions, contexts = state.sessions.without(peer), state.contexts
    for session in cache.sessions.values():
        sessions = sessions.put(peer, session)
    if peer in contexts:
        contexts = contexts.put(peer, sessions_.refresh_context(cache, contexts[peer]))
    return state._replace(sessions=sessions, contexts=contexts)


def expected_epoch(state: ReferenceBroker, peer: int) -> int:
    """Return the session epoch that the peer's next incremental fetch has to have."""
    session = state.sessions.get(peer)
    return sessions_.next_session_epoch(sessions_.INITIAL_EPOCH) if session is None else session.epoch


def known_of(session: sessions_.FetchSession | None) -> sessions_.CachedPartition | None:
    """Return what a session remembers of the partition, if it has it."""
    return None if session is None else session.partitions.get(TP)


def waits_in(state: ReferenceBroker, peer: int) -> Hashable:
    """Return what distinguishes the session of a fetch that waits: that there is none yet, or whether its own is still there
    and still at the epoch of the fetch.
    """
    # Its last response makes no difference, because a fetch that waited gets a record or an error.
    context, session = state.contexts[peer], state.sessions.get(peer)
    if context.session is None:
        return context.kind
    stays = session is not None and session.id == context.session.id
    return stays, context.session.epoch != context.epoch

"""Fetches of the broker's peers at the reference: those that wait, and those in fetch sessions.

The broker under test leads one partition (`TP`); its peers fetch from it. The code of `impl.server` and `impl.fetch`, which
is written after Kafka's classes, decides what happens; it works on a ReplicaManager and a cache of fetch sessions. This
module makes these from the reference's state, and puts what comes out back into it. `may_join`: whether the broker's
metadata cache says that the peer may join the ISR. A fetch session remembers the partitions that a peer fetches, with what
they were told last (KIP-227). A request with a session epoch has a *context*: the partitions to read, and its session; the
response is made from the context and what was read.
"""

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
    """Return a ReplicaManager that hosts the broker's partition, in which no request waits."""
    hosted = FrozenMap(((TP, Hosted(state.broker.partition)),))
    return ReplicaManager(BROKER, hosted=hosted, metadata=metadata_cache(state, eligible=may_join))


def fetched_at_once(
    state: ReferenceBroker, request: FetchRequest, *, may_join: bool
) -> tuple[ReferenceBroker, FetchResponse]:
    """Handle a peer's fetch of one record that does not wait; return the state after it, and the response."""
    cache = metadata_cache(state, eligible=may_join)
    partition, response = partition_.fetch_records(state.setup, state.broker.partition, request, cache, NOW, max_records=1)
    # A refused fetch records nothing of the follower.
    return with_partition(state, partition) if response.error == NONE else state, response


def fetched_or_waiting(
    state: ReferenceBroker, request: FetchRequest, *, may_join: bool
) -> tuple[ReferenceBroker, FetchResponse | None]:
    """Handle a peer's fetch that waits if there is nothing to read; the response is None if it waits."""
    # A ReplicaManager finds a response by the id of its request: here that is the peer, which has one fetch at a time.
    peer = request.replica_id
    params = FetchParams(peer, min_bytes=ONE_BATCH, max_bytes=ONE_BATCH)
    fetches = FrozenMap(((TP, PartitionFetch(request, ONE_BATCH)),))
    manager = fetch_messages(state.setup, _manager(state, may_join=may_join), peer, params, fetches, NOW)
    state = with_partition(state, manager.hosted[TP].partition)
    waiting = FrozenMap((*state.fetches.items(), *manager.fetches.items()))
    return state._replace(fetches=waiting), _responses(manager).get(peer)


def completed(before: Partition, state: ReferenceBroker) -> tuple[ReferenceBroker, Fetched]:
    """Complete the waiting fetches that a step lets complete; return the state without them, and their responses.

    `before`: the partition before that step; `state`: after it.
    """
    if not state.fetches or not _are_checked(state.setup, before, state.broker.partition):
        return state, NOTHING_FETCHED
    manager = _manager(state, may_join=False)._replace(fetches=state.fetches)
    manager = purgatory.check_fetches(state.setup, manager, TP, NOW)
    # `manager.fetches` are those that still wait.
    return with_partition(state, manager.hosted[TP].partition)._replace(fetches=manager.fetches), _responses(manager)


def _are_checked(setup: Setup, before: Partition, after: Partition) -> bool:
    """Return whether Kafka checks waiting fetches after a step that led from one partition state to the other."""
    # A leader that becomes follower completes what waits only if its fetcher is restarted. One that reads a later leader
    # epoch of its own is still leader, and nothing is checked: a fetch that could be completed waits on.
    # ReplicaManager#applyLocalFollowersDelta.
    if before.is_leader and not after.is_leader:
        return restarts_fetcher(setup, before, after)
    # An append (ReplicaManager#addCompletePurgatoryAction), or a high watermark that was raised
    # (Partition#tryCompleteDelayedRequests).
    return after.log.end > before.log.end or purgatory.high_watermark_incremented(before, after)


def _responses(manager: ReplicaManager) -> Fetched:
    """Return the responses to fetches that left the broker, by peer: a fetch has its peer as the id of the request."""
    responses = (response for response in manager.answered if isinstance(response, FetchedPartitions))
    return {response.request: response.reads[TP].response for response in responses}


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

    With `waits` it waits if there is nothing to read. Returns the state after it, and the response for the partition, with
    the error of the whole response if it has one; None if the response does not name the partition, or if the fetch waits.
    """
    # The request names the partition also where a client would leave it out: to the broker both are the same
    # (FetchSession.CachedPartition#updateRequestParams).
    session = state.sessions.get(peer)
    metadata = sessions_.FetchMetadata(sessions_.INVALID_SESSION_ID if session is None else session.id, session_epoch)
    fetches = FrozenMap(() if request is None else ((TP, PartitionFetch(request)),))
    # A full fetch names the other partition as well. After it the peer no longer needs a session that the broker's process
    # has lost.
    if metadata.is_full:
        fetches = fetches.put(OTHER, PartitionFetch(FetchRequest(peer, UNDEFINED, 0, UNDEFINED)))
        state = state._replace(lost=tuple(other_peer for other_peer in state.lost if other_peer != peer))
    # None in place of a topic id.
    to_forget = ((TP, None),) if request is None and not metadata.is_full else ()
    cache, context = sessions_.new_context(_cache(session), sessions_.SessionFetch(metadata, fetches, to_forget), NOW)
    state = _with_sessions(state, peer, cache)
    reads: FrozenMap[TopicPartition, PartitionRead] = FrozenMap()
    for tp, fetch in context.fetches.items():
        response: FetchResponse | None = NOTHING_NEW
        # An incremental fetch reads what the session contains, also where the request does not name it.
        if tp == TP:
            state, response = (fetched_or_waiting if waits else fetched_at_once)(state, fetch.request, may_join=may_join)
        # The fetch waits: `answered_in_sessions` makes the response from the context later.
        if response is None:
            return state._replace(contexts=state.contexts.put(peer, context)), None
        reads = reads.put(tp, PartitionRead(response))
    return _responded(state, peer, context, reads)


def answered_in_sessions(state: ReferenceBroker, fetched: Fetched) -> tuple[ReferenceBroker, Fetched]:
    """Turn the responses to fetches that waited in a session into what the session makes of them; leave others as they are.

    `fetched`: what `completed` has returned. The result has None for a response that does not name the partition.
    """
    # The response is made when it is sent, not when the fetch began to wait (KafkaApis#handleFetchRequest).
    responses = dict(fetched)
    for peer, response in fetched.items():
        context = state.contexts.get(peer)
        if context is not None and response is not None:
            reads = FrozenMap((tp, PartitionRead(response if tp == TP else NOTHING_NEW)) for tp in context.fetches)
            state, responses[peer] = _responded(state._replace(contexts=state.contexts.without(peer)), peer, context, reads)
    return state, responses


def _responded(
    state: ReferenceBroker, peer: int, context: sessions_.FetchContext, reads: FrozenMap[TopicPartition, PartitionRead]
) -> tuple[ReferenceBroker, FetchResponse | None]:
    """Return the state with what the session remembers of a fetch whose reads are done, and the response to that fetch.

    The response is that for the partition, None if it does not name it.
    """
    # A full fetch opens its session now, in place of any that was opened while it waited: no request names that any more. So
    # a new session begins in an empty cache.
    session = None if context.kind is sessions_.SessionKind.FULL else state.sessions.get(peer)
    in_use = [waiting.session.id for waiting in state.contexts.values() if waiting.session is not None]
    # `next_id` is the id of a new session. It has to differ only from those of the sessions that fetches wait in: no other
    # is in the cache. The smallest free one keeps states equal that differ in nothing else.
    cache = _cache(session)._replace(next_id=next(free for free in count(1) if free not in in_use))
    cache, response = sessions_.update_and_generate_response(cache, context, reads, NOW, is_follower=True)
    state = _with_sessions(state, peer, cache)
    if response.error != NONE:
        return state, FetchResponse(response.error)
    read = response.reads.get(TP)
    return state, None if read is None else read.response


def _cache(session: sessions_.FetchSession | None) -> sessions_.FetchSessionCache:
    """Return a cache that has a peer's session and no other; an empty one for None."""
    return sessions_.FetchSessionCache(sessions=FrozenMap(() if session is None else ((session.id, session),)))


def _with_sessions(state: ReferenceBroker, peer: int, cache: sessions_.FetchSessionCache) -> ReferenceBroker:
    """Return the state in which the peer's session is the one in the cache, which has one at most."""
    sessions, contexts = state.sessions.without(peer), state.contexts
    for session in cache.sessions.values():
        sessions = sessions.put(peer, session)
    # A fetch of the peer that waits is answered from the latest state of its session.
    if peer in contexts:
        contexts = contexts.put(peer, sessions_.refresh_context(cache, contexts[peer]))
    return state._replace(sessions=sessions, contexts=contexts)


def expected_epoch(state: ReferenceBroker, peer: int) -> int:
    """Return the session epoch that the peer's next incremental fetch has to have; without a session, the first of these."""
    session = state.sessions.get(peer)
    return sessions_.next_session_epoch(sessions_.INITIAL_EPOCH) if session is None else session.epoch


def known_of(session: sessions_.FetchSession | None) -> sessions_.CachedPartition | None:
    """Return what a session remembers of the partition, if it has it."""
    return None if session is None else session.partitions.get(TP)


def waits_in(state: ReferenceBroker, peer: int) -> Hashable:
    """Return what of a session makes a difference to the response to the peer's fetch that waits in it.

    For a fetch that opens a session or has none: its kind. For an incremental one: whether its session is still there, and
    whether that has gone on to another epoch. Two states with equal values respond alike.
    """
    # What the session has reported last makes no difference, because a fetch that waited gets a record or an error.
    context, session = state.contexts[peer], state.sessions.get(peer)
    if context.session is None:
        return context.kind
    still_there = session is not None and session.id == context.session.id
    # `context.session` is kept up to date: another epoch than the context's shows that another request has come.
    return still_there, context.session.epoch != context.epoch

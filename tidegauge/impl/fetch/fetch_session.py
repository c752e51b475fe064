"""Fetch sessions (KIP-227): on the wire, at both ends, and the cache that limits how many a leader keeps.

A *full* request names every partition and may open a session; it has session epoch 0, or -1 where no session is wanted. An
*incremental* one has the next session epoch, names only what changed, and gets only what changed. At the leader a request
becomes a `FetchContext` (which partitions to read, for which session), and the response is made from the context and what
was read (`reads`). A session is *privileged* if it is a follower's. `now` is the broker's clock in ms.
"""

from enum import Enum
from typing import NamedTuple

from tidegauge.impl.errors import FETCH_SESSION_ID_NOT_FOUND, FETCH_SESSION_TOPIC_ID_ERROR, INVALID_FETCH_SESSION_EPOCH
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import PartitionFetch, PartitionRead
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.impl.topic_partition import TopicPartition

# Fetch sessions on the wire (KIP-227): what a request and its response say about the session they belong to.
#
# Rules of this part
#
# 1. A full request has session epoch 0, or -1 when no session is wanted; every other epoch is an incremental request, which
#    names only what changed.
# 2. Values only. Both ends are below.
# 3. Source: org.apache.kafka.common.requests.FetchMetadata, FetchRequest, FetchResponse.


INVALID_SESSION_ID = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
LARGEST_EPOCH = (1 << 31) - 1

Fetches = FrozenMap[TopicPartition, PartitionFetch]
Reads = FrozenMap[TopicPartition, PartitionRead]
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
    """Return the session epoch after `epoch`; after the largest int comes 1, and -1 stays. FetchMetadata#nextEpoch."""
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
    """Return the metadata of a request that closes the session, if it is still there, and asks for another.

    FetchMetadata#nextCloseExistingAttemptNew.
    """
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
    reads: Reads = FrozenMap()
    throttle_ms: int = 0


# Which fetch sessions a broker keeps.
#
# Rules of this part
#
# 1. There are max.incremental.fetch.session.cache.slots slots. When they are taken, a new session drives out one that was
#    not used for two minutes; else the least of those it may drive out, if that is worse than itself.
# 2. A follower's session is better than a consumer's, then more partitions are better than fewer. A session is safe from its
#    equals until it is used more than two minutes after it was made; a consumer's is never safe from a follower's.
# 3. Kafka draws session ids at random; here they rise, so that none comes back.
# 4. Source: org.apache.kafka.server.FetchSession.FetchSessionCacheShard (one shard), kafka.server.FetchSessionCache.


EVICTION_MS = 120_000
"""KafkaServer.MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS."""


class CachedPartition(NamedTuple):
    """The last request for a partition, and the high watermark and log start that were reported last."""

    fetch: PartitionFetch
    hw: int = UNDEFINED
    log_start: int = UNDEFINED


class FetchSession(NamedTuple):
    """`privileged`: a follower's. `epoch` is the one the next request has to carry."""

    id: int
    privileged: bool
    partitions: FrozenMap[TopicPartition, CachedPartition]
    uses_topic_ids: bool
    created_ms: int
    last_used_ms: int
    epoch: int = next_session_epoch(INITIAL_EPOCH)


class FetchSessionCache(NamedTuple):
    """`evictions` counts what IncrementalFetchSessionEvictionsPerSec marks."""

    max_entries: int = 1000
    eviction_ms: int = EVICTION_MS
    sessions: FrozenMap[int, FetchSession] = FrozenMap()
    next_id: int = INVALID_SESSION_ID + 1
    evictions: int = 0


EvictableKey = tuple[bool, int, int]


def evictable_key(session: FetchSession) -> EvictableKey:
    """Return the key by which sessions are evicted, least first: consumers', then small ones. EvictableKey#compareTo."""
    return session.privileged, len(session.partitions), session.id


def remove_session(cache: FetchSessionCache, session_id: int) -> FetchSessionCache:
    """Close a session; an absent one does not matter. FetchSessionCacheShard#remove."""
    return cache._replace(sessions=cache.sessions.without(session_id))


def touch_session(cache: FetchSessionCache, session: FetchSession, now: int) -> FetchSessionCache:
    """Store a session in the cache, as used at `now`. FetchSessionCacheShard#touch."""
    return cache._replace(sessions=cache.sessions.put(session.id, session._replace(last_used_ms=now)))


def maybe_create_session(
    cache: FetchSessionCache,
    now: int,
    *,
    privileged: bool,
    uses_topic_ids: bool,
    partitions: FrozenMap[TopicPartition, CachedPartition],
) -> tuple[FetchSessionCache, int]:
    """Open a session if a slot is free, or one that is worth less can be evicted. FetchSessionCacheShard#maybeCreateSession.

    Return (cache, id of the session, INVALID_SESSION_ID for none).
    """
    if len(cache.sessions) >= cache.max_entries:
        evicted = _session_to_evict(cache, now, privileged, len(partitions))
        if evicted is None:
            return cache, INVALID_SESSION_ID
        cache = remove_session(cache, evicted)._replace(evictions=cache.evictions + 1)
    session = FetchSession(cache.next_id, privileged, partitions, uses_topic_ids, created_ms=now, last_used_ms=now)
    return touch_session(cache._replace(next_id=session.id + 1), session, now), session.id


def _session_to_evict(cache: FetchSessionCache, now: int, privileged: bool, size: int) -> int | None:
    """Return the id of the session to evict for a new one, None if none may be evicted. FetchSessionCacheShard#tryEvict.

    The new session has `size` partitions.
    """
    sessions = cache.sessions.values()
    oldest = min(sessions, key=lambda s: (s.last_used_ms, s.id), default=None)
    # The cache has no slots at all.
    if oldest is None:
        return None
    # A session that is not used any more goes first, whoever opened it.
    if now - oldest.last_used_ms > cache.eviction_ms:
        return oldest.id
    candidates = [s for s in sessions if _is_evictable(cache, s, privileged)]
    least = min(map(evictable_key, candidates), default=None)
    # A new session must be worth more than one that is in use: a follower's before a consumer's, then the larger one. Its
    # id is lower than any, so of equals the new one gives way.
    if least is None or (privileged, size, INVALID_SESSION_ID) < least:
        return None
    _, _, session_id = least
    return session_id


def _is_evictable(cache: FetchSessionCache, session: FetchSession, by_privileged: bool) -> bool:
    """Return whether a session that is in use may be evicted for a new one, which is a follower's if `by_privileged`.

    It may once it was used more than two minutes after it was made; a consumer's always, for a follower's. The time of its
    last use counts, not the present: Kafka sorts sessions when they are used (FetchSessionCacheShard#touch).
    """
    is_established = session.last_used_ms - session.created_ms > cache.eviction_ms
    return is_established or (by_privileged and not session.privileged)


# ---------------------------------------------------------------------------------------------------------------------
# Metrics


def num_incremental_fetch_sessions(cache: FetchSessionCache) -> int:
    """Return NumIncrementalFetchSessions."""
    return len(cache.sessions)


# The leader's end of a fetch session: what a request means, and what its response leaves out.
#
# Rules of this part
#
# 1. First the request is understood (`new_context`), then its partitions are read, then the response is made
#    (`update_and_generate_response`). Another request of the session may come in between: the session epoch shows it. The
#    context of a delayed request is refreshed as the session goes on (`refresh_context`).
# 2. A partition is left out of an incremental response when it has no records, no error, no divergence, no preferred
#    replica, and the high watermark and log start that were told last. So a follower that ignores the high watermark of a
#    diverging response is not told it again until it changes.
# 3. Source: org.apache.kafka.server.FetchManager, FetchContext, FetchSession; kafka.server.FetchSession before 4.2.


class SessionKind(Enum):
    """SessionErrorContext, SessionlessFetchContext, FullFetchContext, IncrementalFetchContext."""

    SESSION_ERROR = "SESSION_ERROR"
    SESSIONLESS = "SESSIONLESS"
    FULL = "FULL"
    INCREMENTAL = "INCREMENTAL"


class FetchContext(NamedTuple):
    """The meaning of a request: `fetches` are to be read in that order, named in the request or known from the session.

    `session` is its last known state; `epoch` is the epoch that it must still have when the response is made.
    """

    kind: SessionKind
    fetches: Fetches = FrozenMap()
    error: int = NONE
    uses_topic_ids: bool = True
    session: FetchSession | None = None
    epoch: int = UNDEFINED


# ---------------------------------------------------------------------------------------------------------------------
# Requests


def new_context(cache: FetchSessionCache, request: SessionFetch, now: int) -> tuple[FetchSessionCache, FetchContext]:
    """Return the context of a request: the partitions to read, and their session. FetchManager#newContext.

    An incremental request changes its session first; a full one closes the session it names, and may get one with its
    response.
    """
    metadata = request.metadata
    if metadata.is_full:
        kind = SessionKind.SESSIONLESS if metadata.epoch == FINAL_EPOCH else SessionKind.FULL
        context = FetchContext(kind, request.to_send, uses_topic_ids=request.uses_topic_ids)
        # A full request closes the session it names, or a follower that starts anew would leave one slot behind each time.
        return remove_session(cache, metadata.session_id), context
    session = cache.sessions.get(metadata.session_id)
    if session is None:
        return cache, FetchContext(SessionKind.SESSION_ERROR, error=FETCH_SESSION_ID_NOT_FOUND)
    # A request that came twice or late: applying it again would forget or add partitions of a later request.
    if session.epoch != metadata.epoch:
        return cache, FetchContext(SessionKind.SESSION_ERROR, error=INVALID_FETCH_SESSION_EPOCH)
    if session.uses_topic_ids is not request.uses_topic_ids:
        return cache, FetchContext(SessionKind.SESSION_ERROR, error=FETCH_SESSION_TOPIC_ID_ERROR)
    session = _with_changes(session, request.to_send, request.to_forget)
    # A session without partitions cannot have news: Kafka closes it and answers this request without one.
    if not session.partitions:
        return remove_session(cache, session.id), FetchContext(SessionKind.SESSIONLESS, request.to_send)
    session = session._replace(epoch=next_session_epoch(session.epoch))
    fetches = FrozenMap((tp, cached.fetch) for tp, cached in session.partitions.items())
    return touch_session(cache, session, now), FetchContext(
        SessionKind.INCREMENTAL, fetches, session=session, epoch=session.epoch
    )


def refresh_context(cache: FetchSessionCache, context: FetchContext) -> FetchContext:
    """Return the context of a request that has waited, with its session as the cache has it by now.

    The context of a session that was closed or evicted meanwhile stays as it was: only the next request misses the session.
    """
    session = None if context.session is None else cache.sessions.get(context.session.id)
    return context if session is None else context._replace(session=session)


def _with_changes(session: FetchSession, to_send: Fetches, to_forget: tuple[Forgotten, ...]) -> FetchSession:
    """Add or replace the partitions of a session that a request sends, and drop those it forgets. FetchSession#update."""
    partitions = session.partitions
    for tp, fetch in to_send.items():
        cached = partitions.get(tp)
        # A new partition; or another topic of the same name, so nothing that was reported of the old one counts.
        if cached is None or cached.fetch.topic_id != fetch.topic_id:
            partitions = partitions.put_at_end(tp, CachedPartition(fetch))
        else:
            partitions = partitions.put(tp, cached._replace(fetch=fetch))
    for tp, topic_id in to_forget:
        cached = partitions.get(tp)
        # The old topic of that name is forgotten, but not the new one that the same request sends.
        if cached is not None and cached.fetch.topic_id == topic_id:
            partitions = partitions.without(tp)
    return session._replace(partitions=partitions)


# ---------------------------------------------------------------------------------------------------------------------
# Answers


def update_and_generate_response(
    cache: FetchSessionCache, context: FetchContext, reads: Reads, now: int, *, is_follower: bool
) -> tuple[FetchSessionCache, SessionResponse]:
    """Build the response from what was read, and note in the session what it reports.

    FetchContext#updateAndGenerateResponseData. A full request gets a new session if the cache has room for one, which is a
    follower's if `is_follower`.
    """
    session = refresh_context(cache, context).session
    if session is not None:
        return _incremental_response(cache, context.epoch, session, reads)
    # A wrong session, or a request that wants none.
    if context.kind is not SessionKind.FULL:
        return cache, SessionResponse(context.error, reads=reads)
    partitions = FrozenMap(
        (tp, CachedPartition(context.fetches[tp], read.response.hw, read.response.log_start)) for tp, read in reads.items()
    )
    cache, session_id = maybe_create_session(
        cache, now, privileged=is_follower, uses_topic_ids=context.uses_topic_ids, partitions=partitions
    )
    return cache, SessionResponse(NONE, session_id, reads)


def _incremental_response(
    cache: FetchSessionCache, epoch: int, session: FetchSession, reads: Reads
) -> tuple[FetchSessionCache, SessionResponse]:
    """Build the response to an incremental request: the partitions with news. IncrementalFetchContext.

    `epoch` is the session epoch that the session must still have.
    """
    # Another request of the session came while this one was read or waited.
    if session.epoch != epoch:
        return cache, SessionResponse(INVALID_FETCH_SESSION_EPOCH, session.id)
    partitions, reported = session.partitions, []
    for tp, read in reads.items():
        cached, must_respond = maybe_update_response_data(partitions[tp], read)
        # What got records goes to the end of the session, so that others come first under the byte limit.
        partitions = partitions.put_at_end(tp, cached) if read.records else partitions.put(tp, cached)
        if must_respond:
            reported.append((tp, read))
    # A session that was closed meanwhile does not come back by its last response.
    if session.id in cache.sessions:
        cache = cache._replace(sessions=cache.sessions.put(session.id, session._replace(partitions=partitions)))
    return cache, SessionResponse(NONE, session.id, FrozenMap(reported))


def maybe_update_response_data(cached: CachedPartition, read: PartitionRead) -> tuple[CachedPartition, bool]:
    """Return a session's partition with the high watermark and log start of a read, and whether the read has news.

    Only a partition with news is in an incremental response. CachedPartition#maybeUpdateResponseData.
    """
    response = read.response
    # After an error the high watermark counts as unknown, so the partition is reported again once the error is gone.
    after = cached._replace(hw=response.hw if response.error == NONE else UNDEFINED, log_start=response.log_start)
    must_respond = (
        bool(read.records)
        or (response.hw, response.log_start) != (cached.hw, cached.log_start)
        or read.preferred_read_replica is not None
        or response.error != NONE
        or response.is_diverging
    )
    return after, must_respond


def throttled_response(cache: FetchSessionCache, context: FetchContext, throttle_ms: int) -> SessionResponse:
    """Build a response that only says how many ms to wait; the session stays. FetchContext#getThrottledResponse."""
    session = refresh_context(cache, context).session
    if session is None:
        return SessionResponse(NONE, INVALID_SESSION_ID, throttle_ms=throttle_ms)
    # Another request of the session has come meanwhile.
    error = NONE if session.epoch == context.epoch else INVALID_FETCH_SESSION_EPOCH
    return SessionResponse(error, session.id, throttle_ms=throttle_ms)


# ---------------------------------------------------------------------------------------------------------------------
# The follower's end of a fetch session.
#
# Rules of this part
#
# 1. The thread says what it wants; the handler says what has to be sent: everything in a full request, afterwards what
#    is new or changed, and what is forgotten.
# 2. Responses are judged by `partitions`, the whole session, not by what the last request named.
# 3. A session error is no reason to wait: the next request opens another session. Only FETCH_SESSION_TOPIC_ID_ERROR counts
#    as a failed request.
# 4. Source: org.apache.kafka.clients.FetchSessionHandler, kafka.server.RemoteLeaderEndPoint#fetch, #buildFetch.


class FetchSessionHandler(NamedTuple):
    """One source broker's, in one fetcher thread. `next_metadata` goes with the next request."""

    next_metadata: FetchMetadata = INITIAL
    partitions: Fetches = FrozenMap()


def build_session_fetch(
    handler: FetchSessionHandler, wanted: Fetches, *, uses_topic_ids: bool = True
) -> tuple[FetchSessionHandler, SessionFetch | None]:
    """Build the next request for the partitions `wanted`. FetchSessionHandler.Builder#build.

    It is None if the session has no partitions and nothing is to be forgotten. A full request names all of them. An
    incremental one names new partitions first, then those that changed, in the order they have in the session; and those to
    be forgotten. `handler.partitions` becomes the whole session.
    """
    metadata = handler.next_metadata
    if metadata.is_full:
        request = SessionFetch(metadata, wanted, uses_topic_ids=uses_topic_ids) if wanted else None
        return handler._replace(partitions=wanted), request
    in_session = handler.partitions
    still_wanted = [(tp, wanted[tp]) for tp in in_session if tp in wanted]
    added = [(tp, fetch) for tp, fetch in wanted.items() if tp not in in_session]
    changed = [(tp, fetch) for tp, fetch in still_wanted if fetch != in_session[tp]]
    partitions = FrozenMap((*still_wanted, *added))
    forgets: list[Forgotten] = [(tp, fetch.topic_id) for tp, fetch in in_session.items() if tp not in wanted]
    # A topic that was deleted and created again: its old id has to be forgotten, too.
    forgets += [
        (tp, in_session[tp].topic_id) for tp, fetch in changed if _is_replaced(in_session[tp].topic_id, fetch.topic_id)
    ]
    request = SessionFetch(metadata, FrozenMap((*added, *changed)), tuple(forgets), uses_topic_ids)
    return handler._replace(partitions=partitions), request if partitions or forgets else None


def _is_replaced(before: str | None, after: str | None) -> bool:
    """Return whether a topic id was replaced by another one; None is a partition without one, which replaces nothing."""
    return before != after and before is not None and after is not None


def handle_response(handler: FetchSessionHandler, response: SessionResponse) -> tuple[FetchSessionHandler, bool]:
    """Set the metadata of the next request by a response to the last one; also return whether the response is accepted.

    FetchSessionHandler#handleResponse. A response that names other partitions than it may is refused.
    """
    metadata = handler.next_metadata
    if response.error != NONE:
        # A session that is gone need not be closed; any other error may leave it open at the leader.
        lost = response.error == FETCH_SESSION_ID_NOT_FOUND
        return handler._replace(next_metadata=INITIAL if lost else next_close_existing_attempt_new(metadata)), False
    reported, in_session = set(response.reads), set(handler.partitions)
    if metadata.is_full and reported != in_session:
        # The response to a full request names all that was requested; an empty one that only throttles (KIP-219) has nothing
        # to process.
        return handler._replace(next_metadata=INITIAL), False
    if not reported <= in_session:
        return handler._replace(next_metadata=next_close_existing_attempt_new(metadata)), False
    if response.session_id == INVALID_SESSION_ID:
        return handler._replace(next_metadata=INITIAL), True
    following = new_incremental(response.session_id) if metadata.is_full else next_incremental(metadata)
    return handler._replace(next_metadata=following), True


def handle_error(handler: FetchSessionHandler) -> FetchSessionHandler:
    """Let the next request ask for a new session, since no response came. FetchSessionHandler#handleError."""
    return handler._replace(next_metadata=next_close_existing_attempt_new(handler.next_metadata))

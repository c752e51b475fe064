"""The leader's end of a fetch session: what a request means, and what its response leaves out.

Rules of this file

1. The request is looked at first (`new_context`), then its partitions are read, then the response is made (`answer`).
   Session epochs catch what comes twice or late: between the two another request of the session may have come. Whoever
   lets a request wait keeps its context as the session goes on (`kept`).
2. A partition is left out of an incremental response when it has no records, no error, no divergence, no preferred replica,
   and the high watermark and log start that were told last. So a follower that ignores the high watermark of a diverging
   response is not told it again until it changes.
3. Source: org.apache.kafka.server.FetchManager, FetchContext, FetchSession; kafka.server.FetchSession before 4.2.
"""

from enum import Enum
from typing import NamedTuple

from tidegauge.impl.client_messages import PartitionRead
from tidegauge.impl.error_codes import FETCH_SESSION_ID_NOT_FOUND, FETCH_SESSION_TOPIC_ID_ERROR, INVALID_FETCH_SESSION_EPOCH
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.impl.sessions.fetch_metadata import (
    FINAL_EPOCH,
    INVALID_SESSION_ID,
    Fetches,
    Forgotten,
    Reads,
    SessionFetch,
    SessionResponse,
    next_session_epoch,
)
from tidegauge.impl.sessions.fetch_session_cache import (
    CachedPartition,
    FetchSession,
    FetchSessionCache,
    maybe_create_session,
    remove_session,
    touch_session,
)
from tidegauge.impl.table import Table


class SessionKind(Enum):
    """SessionErrorContext, SessionlessFetchContext, FullFetchContext, IncrementalFetchContext."""

    SESSION_ERROR = "SESSION_ERROR"
    SESSIONLESS = "SESSIONLESS"
    FULL = "FULL"
    INCREMENTAL = "INCREMENTAL"


class FetchContext(NamedTuple):
    """What a request means: `fetches` is to be read, in that order, named in the request or known from the session.

    `session` is as it was last seen, `epoch` what its epoch has to be still when the response is made.
    """

    kind: SessionKind
    fetches: Fetches = Table()
    error: int = NONE
    uses_topic_ids: bool = True
    session: FetchSession | None = None
    epoch: int = UNDEFINED


# ---------------------------------------------------------------------------------------------------------------------
# Requests


def new_context(cache: FetchSessionCache, request: SessionFetch, now: int) -> tuple[FetchSessionCache, FetchContext]:
    """FetchManager#newContext. A full request closes the session it names."""
    metadata = request.metadata
    if metadata.is_full:
        kind = SessionKind.SESSIONLESS if metadata.epoch == FINAL_EPOCH else SessionKind.FULL
        context = FetchContext(kind, request.to_send, uses_topic_ids=request.uses_topic_ids)
        return remove_session(cache, metadata.session_id), context
    session = cache.sessions.get(metadata.session_id)
    if session is None:
        return cache, FetchContext(SessionKind.SESSION_ERROR, error=FETCH_SESSION_ID_NOT_FOUND)
    if session.epoch != metadata.epoch:
        return cache, FetchContext(SessionKind.SESSION_ERROR, error=INVALID_FETCH_SESSION_EPOCH)
    if session.uses_topic_ids is not request.uses_topic_ids:
        return cache, FetchContext(SessionKind.SESSION_ERROR, error=FETCH_SESSION_TOPIC_ID_ERROR)
    session = _updated(session, request.to_send, request.to_forget)
    if not session.partitions:
        return remove_session(cache, session.id), FetchContext(SessionKind.SESSIONLESS, request.to_send)
    session = session._replace(epoch=next_session_epoch(session.epoch))
    fetches = Table((tp, cached.fetch) for tp, cached in session.partitions.items())
    return touch_session(cache, session, now), FetchContext(
        SessionKind.INCREMENTAL, fetches, session=session, epoch=session.epoch
    )


def refresh_context(cache: FetchSessionCache, context: FetchContext) -> FetchContext:
    """The context of a request that waits, after whatever may have changed its session, or have closed it.

    A session that was driven out meanwhile still answers this request: only the next one misses it.
    """
    session = None if context.session is None else cache.sessions.get(context.session.id)
    return context if session is None else context._replace(session=session)


def _updated(session: FetchSession, to_send: Fetches, to_forget: tuple[Forgotten, ...]) -> FetchSession:
    """FetchSession#update. A partition under another topic id is another partition."""
    partitions = session.partitions
    for tp, fetch in to_send.items():
        cached = partitions.get(tp)
        if cached is None or cached.fetch.topic_id != fetch.topic_id:
            partitions = partitions.put_at_end(tp, CachedPartition(fetch))
        else:
            partitions = partitions.put(tp, cached._replace(fetch=fetch))
    for tp, topic_id in to_forget:
        cached = partitions.get(tp)
        if cached is not None and cached.fetch.topic_id == topic_id:
            partitions = partitions.without(tp)
    return session._replace(partitions=partitions)


# ---------------------------------------------------------------------------------------------------------------------
# Answers


def update_and_generate_response(
    cache: FetchSessionCache, context: FetchContext, reads: Reads, now: int, *, is_follower: bool
) -> tuple[FetchSessionCache, SessionResponse]:
    """FetchContext#updateAndGenerateResponseData: the session as it now is, and what is sent."""
    session = refresh_context(cache, context).session
    if session is not None:
        return _incremental(cache, context.epoch, session, reads)
    if context.kind is not SessionKind.FULL:
        return cache, SessionResponse(context.error, reads=reads)
    partitions = Table(
        (tp, CachedPartition(context.fetches[tp], read.response.hw, read.response.log_start)) for tp, read in reads.items()
    )
    cache, session_id = maybe_create_session(
        cache, now, privileged=is_follower, uses_topic_ids=context.uses_topic_ids, partitions=partitions
    )
    return cache, SessionResponse(NONE, session_id, reads)


def _incremental(
    cache: FetchSessionCache, epoch: int, session: FetchSession, reads: Reads
) -> tuple[FetchSessionCache, SessionResponse]:
    if session.epoch != epoch:
        return cache, SessionResponse(INVALID_FETCH_SESSION_EPOCH, session.id)
    partitions, reported = session.partitions, []
    for tp, read in reads.items():
        cached, must_respond = maybe_update_response_data(partitions[tp], read)
        # What got records goes to the end of the session, so that others come first under the byte limit
        partitions = partitions.put_at_end(tp, cached) if read.records else partitions.put(tp, cached)
        if must_respond:
            reported.append((tp, read))
    if session.id in cache.sessions:
        cache = cache._replace(sessions=cache.sessions.put(session.id, session._replace(partitions=partitions)))
    return cache, SessionResponse(NONE, session.id, Table(reported))


def maybe_update_response_data(cached: CachedPartition, read: PartitionRead) -> tuple[CachedPartition, bool]:
    """What is known to have been told now, and whether it must be. CachedPartition#maybeUpdateResponseData.

    An error makes the high watermark unknown, so that the partition is told again when the error goes away.
    """
    response = read.response
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
    """Nothing but a time to wait; a session goes on. FetchContext#getThrottledResponse."""
    session = refresh_context(cache, context).session
    if session is None:
        return SessionResponse(NONE, INVALID_SESSION_ID, throttle_ms=throttle_ms)
    error = NONE if session.epoch == context.epoch else INVALID_FETCH_SESSION_EPOCH
    return SessionResponse(error, session.id, throttle_ms=throttle_ms)

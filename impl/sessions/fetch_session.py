"""The leader's end of a fetch session: what a request means, and what its response leaves out.

Rules of this file

1. First the request is understood (`new_context`), then its partitions are read, then the response is made
   (`update_and_generate_response`). Another request of the session may come in between: the session epoch shows it. The
   context of a delayed request is refreshed as the session goes on (`refresh_context`).
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
    """The meaning of a request: `fetches` are to be read in that order, named in the request or known from the session.

    `session` is its last known state; `epoch` is the epoch that it must still have when the response is made.
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
    """Find or close the session that a request names. FetchManager#newContext."""
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
    session = _updated(session, request.to_send, request.to_forget)
    # A session without partitions cannot have news: Kafka closes it and answers this request without one.
    if not session.partitions:
        return remove_session(cache, session.id), FetchContext(SessionKind.SESSIONLESS, request.to_send)
    session = session._replace(epoch=next_session_epoch(session.epoch))
    fetches = Table((tp, cached.fetch) for tp, cached in session.partitions.items())
    return touch_session(cache, session, now), FetchContext(
        SessionKind.INCREMENTAL, fetches, session=session, epoch=session.epoch
    )


def refresh_context(cache: FetchSessionCache, context: FetchContext) -> FetchContext:
    """Return the context of a delayed request after whatever may have changed or closed its session.

    A session that was evicted meanwhile still answers this request: only the next one misses it.
    """
    session = None if context.session is None else cache.sessions.get(context.session.id)
    return context if session is None else context._replace(session=session)


def _updated(session: FetchSession, to_send: Fetches, to_forget: tuple[Forgotten, ...]) -> FetchSession:
    """Apply the changes that a request names. FetchSession#update."""
    partitions = session.partitions
    for tp, fetch in to_send.items():
        cached = partitions.get(tp)
        # Another topic id is another topic of the same name: nothing that was reported of the old one counts.
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
    """Build the response, and note in the session what it reports. FetchContext#updateAndGenerateResponseData."""
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
    """Note what is reported; also return whether it must be. CachedPartition#maybeUpdateResponseData."""
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
    """Build a response with nothing but a time to wait; the session goes on. FetchContext#getThrottledResponse."""
    session = refresh_context(cache, context).session
    if session is None:
        return SessionResponse(NONE, INVALID_SESSION_ID, throttle_ms=throttle_ms)
    error = NONE if session.epoch == context.epoch else INVALID_FETCH_SESSION_EPOCH
    return SessionResponse(error, session.id, throttle_ms=throttle_ms)

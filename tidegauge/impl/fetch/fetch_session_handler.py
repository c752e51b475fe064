"""The follower's end of a fetch session.

Rules of this file

1. The thread says what it wants; the handler says what has to be sent: everything in a full request, afterwards what is new
   or changed, and what is forgotten.
2. Answers are judged by `partitions`, the whole session, not by what the last request named (an article of Kafka 2.5 reads
   the epoch from the response: it is the one kept here).
3. A session error is no reason to wait: the next request opens another session. Only FETCH_SESSION_TOPIC_ID_ERROR counts as
   a failed request.
4. Source: org.apache.kafka.clients.FetchSessionHandler, kafka.server.RemoteLeaderEndPoint#fetch, #buildFetch.
"""

from typing import NamedTuple

from tidegauge.impl.errors import FETCH_SESSION_ID_NOT_FOUND
from tidegauge.impl.fetch import fetch_session as sessions
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.rules import NONE


class FetchSessionHandler(NamedTuple):
    """One source broker's, in one fetcher thread. `next_metadata` goes with the next request."""

    next_metadata: sessions.FetchMetadata = sessions.INITIAL
    partitions: sessions.Fetches = FrozenMap()


def build_session_fetch(
    handler: FetchSessionHandler, wanted: sessions.Fetches, *, uses_topic_ids: bool = True
) -> tuple[FetchSessionHandler, sessions.SessionFetch | None]:
    """Build the next request, None when it would be empty. FetchSessionHandler.Builder#build.

    New partitions come first in it, then those that changed, in the order they have in the session.
    """
    metadata = handler.next_metadata
    if metadata.is_full:
        request = sessions.SessionFetch(metadata, wanted, uses_topic_ids=uses_topic_ids) if wanted else None
        return handler._replace(partitions=wanted), request
    in_session = handler.partitions
    still_wanted = [(tp, wanted[tp]) for tp in in_session if tp in wanted]
    added = [(tp, fetch) for tp, fetch in wanted.items() if tp not in in_session]
    changed = [(tp, fetch) for tp, fetch in still_wanted if fetch != in_session[tp]]
    partitions = FrozenMap((*still_wanted, *added))
    forgets: list[sessions.Forgotten] = [(tp, fetch.topic_id) for tp, fetch in in_session.items() if tp not in wanted]
    # A topic that was deleted and created again: its old id has to be forgotten, too.
    forgets += [
        (tp, in_session[tp].topic_id) for tp, fetch in changed if _is_replaced(in_session[tp].topic_id, fetch.topic_id)
    ]
    request = sessions.SessionFetch(metadata, FrozenMap((*added, *changed)), tuple(forgets), uses_topic_ids)
    return handler._replace(partitions=partitions), request if partitions or forgets else None


def _is_replaced(before: str | None, after: str | None) -> bool:
    """Return whether a topic id was replaced by another one."""
    return before != after and before is not None and after is not None


def handle_response(handler: FetchSessionHandler, response: sessions.SessionResponse) -> tuple[FetchSessionHandler, bool]:
    """Decide the next metadata; also return whether this response is accepted. FetchSessionHandler#handleResponse."""
    metadata = handler.next_metadata
    if response.error != NONE:
        # A session that is gone need not be closed; any other error may leave it open at the leader.
        lost = response.error == FETCH_SESSION_ID_NOT_FOUND
        return handler._replace(
            next_metadata=sessions.INITIAL if lost else sessions.next_close_existing_attempt_new(metadata)
        ), False
    reported, in_session = set(response.reads), set(handler.partitions)
    if metadata.is_full and reported != in_session:
        # A response that throttles is empty (KIP-219); any other has to name what was asked
        return handler._replace(next_metadata=sessions.INITIAL), False
    if not reported <= in_session:
        return handler._replace(next_metadata=sessions.next_close_existing_attempt_new(metadata)), False
    if response.session_id == sessions.INVALID_SESSION_ID:
        return handler._replace(next_metadata=sessions.INITIAL), True
    following = sessions.new_incremental(response.session_id) if metadata.is_full else sessions.next_incremental(metadata)
    return handler._replace(next_metadata=following), True


def handle_error(handler: FetchSessionHandler) -> FetchSessionHandler:
    """Prepare for a new session: no response came. FetchSessionHandler#handleError."""
    return handler._replace(next_metadata=sessions.next_close_existing_attempt_new(handler.next_metadata))

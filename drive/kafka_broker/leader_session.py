"""The fetch session that a peer opens for the broker's fetcher thread (KIP-227), as a leader does.

Rules of this file

1. Whoever asks for a session gets one. What the session then has is decided in impl.sessions, and so is what the broker has
   to send: each request is held against the one of impl's FetchSessionHandler, to the partition.
2. A full response names every partition of its request and no other, or all of it is dropped; an incremental one those that
   are meant: also what a leader leaves out because it said it before, for what a leader says is the path's.
3. A response that has to get lost leaves everything out: a full one is dropped whole, an incremental one says nothing. In a
   session each third says that there is none, each third that its epoch is another: then the broker opens a new one.
"""

from collections.abc import Mapping
from itertools import cycle
from typing import Any
from uuid import UUID

from tidegauge.drive.wire.compiler import Message
from tidegauge.drive.wire.primitives import WireError
from tidegauge.impl.client_messages import PartitionFetch, PartitionRead
from tidegauge.impl.cluster.broker import NOW
from tidegauge.impl.error_codes import FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH
from tidegauge.impl.messages import FetchRequest, FetchResponse
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.impl.sessions.fetch_metadata import FetchMetadata, SessionFetch, SessionResponse
from tidegauge.impl.sessions.fetch_session import FetchContext, SessionKind, new_context, respond
from tidegauge.impl.sessions.fetch_session_cache import FetchSessionCache, remove
from tidegauge.impl.sessions.fetch_session_handler import FetchSessionHandler, build, handle_response
from tidegauge.impl.table import Table
from tidegauge.impl.topic_partition import TopicPartition

Named = Mapping[UUID, Message]
"""Partitions of a response, by topic id."""

NOTHING = PartitionRead(FetchResponse(NONE, UNDEFINED, UNDEFINED))


class LeaderSession:
    """That of one peer with one process of the broker: a request comes in, then its response is made."""

    def __init__(self, node: int) -> None:
        self._node = node
        self._cache, self._handler, self._context = (
            FetchSessionCache(),
            FetchSessionHandler(),
            FetchContext(SessionKind.FULL),
        )
        self._losses = cycle((NONE, FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH))

    def asked(self, body: Message) -> None:
        """Take a request. Raises WireError for one that is not what impl's FetchSessionHandler sends."""
        request = _request(body)
        self._cache, self._context = new_context(self._cache, request, NOW)
        self._handler, expected = build(self._handler, self._context.fetches)
        if self._context.error != NONE or expected is None or _unordered(request) != _unordered(expected):
            raise WireError(f"broker {self._node}: expected {expected}; seen {request}")

    def fetched(self, topic: UUID) -> FetchRequest | None:
        """What the request asks of a partition, in its own words or in those of one before."""
        found = self._context.fetches.get(_partition(topic))
        return None if found is None else found.request

    def response(self, named: Named, others: Message) -> Message:
        """Say this of some partitions, and `others` of what else has to be named."""
        full, known = self._context.kind is not SessionKind.INCREMENTAL, [UUID(tp.topic) for tp in self._context.fetches]
        found = {topic: named.get(topic, others) for topic in known if full or topic in named}
        self._cache, made = respond(self._cache, self._context, _reads(self._context.fetches), NOW, is_follower=True)
        return self._sent(SessionResponse(NONE, made.session_id, _reads(map(_partition, found))), found)

    def lost(self) -> Message:
        """A response that the broker makes nothing of."""
        session = self._context.session
        if session is None:
            return self._sent(SessionResponse(), {})
        error = next(self._losses)
        if error == FETCH_SESSION_ID_NOT_FOUND:
            self._cache = remove(self._cache, session.id)
        return self._sent(SessionResponse(error, session.id), {})

    def _sent(self, response: SessionResponse, named: Named) -> Message:
        self._handler, _ = handle_response(self._handler, response)
        partitions = [{"topicId": topic, "partitions": [one]} for topic, one in named.items()]
        return {"errorCode": response.error, "sessionId": response.session_id, "responses": partitions}


def _partition(topic: UUID) -> TopicPartition:
    return TopicPartition(str(topic), 0)


def _reads(partitions: Any) -> Table[TopicPartition, PartitionRead]:
    return Table((tp, NOTHING) for tp in partitions)


def _request(body: Message) -> SessionFetch:
    named = ((_partition(topic["topicId"]), _fetch(topic["partitions"][0])) for topic in body["topics"])
    forgotten = ((_partition(topic["topicId"]), None) for topic in body["forgottenTopicsData"])
    return SessionFetch(FetchMetadata(body["sessionId"], body["sessionEpoch"]), Table(named), tuple(forgotten))


def _fetch(one: Message) -> PartitionFetch:
    request = FetchRequest(
        UNDEFINED, one["currentLeaderEpoch"], one["fetchOffset"], one["lastFetchedEpoch"], one["logStartOffset"]
    )
    return PartitionFetch(request, one["partitionMaxBytes"])


def _unordered(request: SessionFetch) -> tuple[object, ...]:
    """What a request says. Its order is that in which the thread's partitions take turns, which nothing here depends on."""
    return request.metadata, dict(request.to_send.items()), set(request.to_forget)

"""Requests that may wait in the broker's purgatory, and the fetch sessions of the driver's peers.

Rules of this file

1. A request that may wait has a connection of its own, because a broker takes one request of a connection at a time
   (KafkaChannel#mute).
2. A peer's fetch session (KIP-227) contains the driven partition and another one. A full request names both; an incremental
   one names the partition only if the session does not have it, or has it with another offset or epoch, as a follower's
   FetchSessionHandler does.
3. What a session contains follows from the requests that were not refused, also while they wait. A request carries the id of
   the last session that was given, also when the process that gave it has ended.
"""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from tidegauge.drive.contract import Report
from tidegauge.drive.kafka_broker.clients import Topic
from tidegauge.drive.kafka_broker.state_reader import Reading
from tidegauge.drive.kafka_broker.worker_slot import WorkerSlot
from tidegauge.drive.wire.compiler import WireMessage
from tidegauge.drive.wire.frames import Connection, WireRequest
from tidegauge.impl.fetch.fetch_session import INVALID_SESSION_ID, FetchMetadata
from tidegauge.impl.rules import NONE, UNDEFINED

ACKS_OF_ALL = -1
ROUND_TRIPS = 4
"""Round trips on another connection after which it is certain whether a fetch waits:

    1 answered   the fetch has been read: it was sent before
    2 answered   the fetch has been handled: one thread handles requests, in their order
    3 answered   its response has been written, if it has one: one thread writes responses
    4 answered   this process has had a turn to read it
"""

ReadPartition = Callable[[WireMessage], WireMessage | None]
"""Takes the driven partition out of a response; None when the response does not have it."""


class WaitingFetch(NamedTuple):
    """A fetch without a response yet, and how its response is read."""

    connection: Connection
    response: "asyncio.Task[list[WireMessage]]"
    read: ReadPartition


class WaitingFetches:
    """The fetches of peers that wait, by peer."""

    def __init__(self, slot: WorkerSlot) -> None:
        self._slot = slot
        self._waiting: dict[int, WaitingFetch] = {}

    async def fetch(self, peer: int, request: WireRequest, read: ReadPartition) -> WireMessage | None:
        """Send a fetch; return the partition of its response, None if it waits."""
        connection = await self._slot.broker.connect()
        # Once a round trip is over the broker's network thread knows this connection: a request on it is read in its order
        # among those of other connections, which ROUND_TRIPS relies on.
        await connection.round_trip()
        self._waiting[peer] = WaitingFetch(connection, asyncio.create_task(connection.exchange([request])), read)
        await asyncio.sleep(0)  # the task runs as far as its first wait: the fetch is sent
        for _ in range(ROUND_TRIPS):
            await self._slot.connection.round_trip()
        return self.take_responses().get(peer)

    def take_responses(self) -> dict[int, WireMessage | None]:
        """Return the responses that have come since the last call, by peer: the partition of each."""
        done = {peer: waiting for peer, waiting in self._waiting.items() if waiting.response.done()}
        for peer, waiting in done.items():
            del self._waiting[peer]
            waiting.connection.close()
        return {peer: waiting.read(waiting.response.result()[0]) for peer, waiting in sorted(done.items())}

    def close(self) -> None:
        """Give up all that wait."""
        for waiting in self._waiting.values():
            waiting.response.cancel()
            waiting.connection.close()
        self._waiting = {}


class WaitingProducer(NamedTuple):
    """A producer without a response yet."""

    connection: Connection
    response: "asyncio.Task[list[WireMessage]]"


class Producers:
    """The producers of one partition, and those of them that wait."""

    def __init__(self, slot: WorkerSlot) -> None:
        self._slot, self._broker = slot, slot.broker
        self._waiting: list[WaitingProducer] = []

    async def append(self, topic: Topic, acks: int) -> Report | None:
        """Write one record and return the result. With acks=-1: None once it is appended, or the error of its refusal."""
        request = self._broker.requests.produce(topic, acks)
        if acks != ACKS_OF_ALL:
            return _produce_result((await self._slot.connection.exchange([request]))[0])
        end_before = await self._log_end(topic)
        connection = await self._broker.connect()
        waiting = WaitingProducer(connection, asyncio.create_task(connection.exchange([request])))
        # Before the followers have fetched, only the log end shows that the broker has appended. Each read of it is handled
        # after the requests before it, so this loop ends.
        while not waiting.response.done() and await self._log_end(topic) == end_before:
            pass
        if waiting.response.done():
            result = _produce_result(waiting.response.result()[0])
            # A refusal has no base offset. A response with one is of a record that was committed at once: it is reported in
            # `produced`, like that of every producer that waits.
            if result["base"] == UNDEFINED:
                connection.close()
                return result
        self._waiting.append(waiting)
        return None

    async def _log_end(self, topic: Topic) -> Reading:
        return await self._broker.state_reader.log_end(topic)

    def take_responses(self) -> list[list[int]]:
        """Return base offset and error of the responses that have come since the last call."""
        done = [waiting for waiting in self._waiting if waiting.response.done()]
        self._waiting = [waiting for waiting in self._waiting if not waiting.response.done()]
        responses = []
        for connection, response in done:
            result = _produce_result(response.result()[0])
            responses.append([result["base"], result["error"]])
            connection.close()
        return sorted(responses)

    def close(self) -> None:
        """Give up all that wait."""
        for connection, response in self._waiting:
            response.cancel()
            connection.close()
        self._waiting = []


def _produce_result(response: WireMessage) -> dict[str, int]:
    partition = response["responses"][0]["partitionResponses"][0]
    return {"error": partition["errorCode"], "base": partition["baseOffset"]}


FROM_THE_START: WireMessage = {"fetchOffset": 0, "currentLeaderEpoch": UNDEFINED, "lastFetchedEpoch": UNDEFINED}


class PeerSession(NamedTuple):
    """The fetch session of a peer. `partition`: as it was last named; None where the session does not have it."""

    id: int = INVALID_SESSION_ID
    partition: WireMessage | None = None


class PeerSessions:
    """The fetch sessions of the peers of one partition, `topic`; each also contains the partition of `other`."""

    def __init__(self, topic: Topic, other: Topic) -> None:
        self._topic, self._other = topic, other
        self._sessions: dict[int, PeerSession] = {}

    def fetch(self, peer: int, full: WireRequest, session_epoch: int, *, wanted: bool) -> tuple[WireRequest, ReadPartition]:
        """Turn a full fetch into one with a session epoch; return it and how its response is read.

        `wanted`: whether the peer fetches the driven partition, or only the other one. An error of the whole response counts
        as the partition's.
        """
        before = self._sessions.get(peer, PeerSession())
        (topic,) = full.body["topics"]
        partition = topic["partitions"][0] if wanted else None
        named, forgotten, opens = ([topic] if wanted else []), {}, FetchMetadata(before.id, session_epoch).is_full
        if opens:
            named.append({"topicId": self._other.id, "partitions": [topic["partitions"][0] | FROM_THE_START]})
        elif partition == before.partition:
            named = []  # an incremental request leaves out what has not changed
        elif not wanted:
            forgotten = {"forgottenTopicsData": [{"topicId": self._topic.id, "partitions": [0]}]}
        body = {**full.body, "sessionId": before.id, "sessionEpoch": session_epoch, "topics": named, **forgotten}
        after = self._sessions[peer] = PeerSession(before.id, partition)

        def read(response: WireMessage) -> WireMessage | None:
            if response["errorCode"] != NONE:
                # A refused request changes nothing in the session; but a later request of the peer may have.
                if self._sessions[peer] is after:
                    self._sessions[peer] = before
                return {"errorCode": response["errorCode"]}
            if opens and response["sessionId"] != INVALID_SESSION_ID:
                self._sessions[peer] = PeerSession(response["sessionId"], partition)
            topics: list[Any] = [part for part in response["responses"] if part["topicId"] == self._topic.id]
            return topics[0]["partitions"][0] if topics else None

        return full._replace(body=body), read

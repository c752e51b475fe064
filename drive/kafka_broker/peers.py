"""Brokers that are ours: the fetches of the broker under test to them are held until a step says what comes back.

Rules of this file

1. A peer has a listening port and a fetcher thread of the broker to itself. A partition that it always leads keeps that
   thread alive (ReplicaFetcherManager#shutdownIdleFetcherThreads), so a late response reaches a living thread.
2. The broker has one request to a peer at a time, for all its partitions there. The next one is the sign that the response
   to the one before was processed. What it asks is known from the session that the two have (leader_session).
3. Partitions that are not meant, but have to be named, get NOT_LEADER_OR_FOLLOWER, which only makes them wait for
   replica.fetch.backoff.ms.
"""

import asyncio
import time
from uuid import UUID, uuid4

from tidegauge.drive.kafka_broker.controller import Controller
from tidegauge.drive.kafka_broker.leader_session import LeaderSession
from tidegauge.drive.kafka_broker.metadata_log import MetadataRecord
from tidegauge.drive.wire.compiler import Message
from tidegauge.drive.wire.frames import Listener, Received
from tidegauge.drive.wire.messages import Messages
from tidegauge.drive.wire.primitives import WireError
from tidegauge.drive.wire.signs import Signs
from tidegauge.impl.messages import FetchRequest
from tidegauge.impl.rules import NONE, NOT_LEADER_OR_FOLLOWER, UNDEFINED
from tidegauge.traces.segments.record_batch import batch_of, encode

SERVES = ("Fetch", "ListOffsets", "OffsetForLeaderEpoch", "ApiVersions")
EARLIEST_TIMESTAMP = -2
BACK_OFF = 0.004
"""Longer than replica.fetch.backoff.ms, which is 1: a partition that had to wait is asked for again."""


class Peer:
    """A broker of ours, registered as `node`."""

    def __init__(self, messages: Messages, controller: Controller, signs: Signs, broker: int, node: int) -> None:
        self._controller, self._signs, self._broker, self.node = controller, signs, broker, node
        self._listener = Listener(messages, SERVES, self._handle, signs)
        self._keeps_alive = uuid4()
        self._session = LeaderSession(node)
        self._response: asyncio.Future[Message] | None = None
        self._offsets = (0, 0)
        self.broker_epoch, self.fenced = UNDEFINED, False

    async def start(self) -> None:
        """Register, and lead a partition for good."""
        port = await self._listener.start()
        self.broker_epoch = self._controller.register(self.node, port)
        topic = {"name": f"keeps-{self.node}-alive", "topicId": self._keeps_alive}
        self._controller.append(MetadataRecord("TopicRecord", topic))
        everybody = [self.node, self._broker]
        self._controller.partition(self._keeps_alive, everybody, everybody, self.node, 0, 0)

    def close(self) -> None:
        """Stop."""
        self._listener.close()

    async def asked(self) -> None:
        """Wait for the request that is in flight."""
        await self._signs.wait_for(lambda: self._response is not None, f"a fetch from broker {self.node}")

    def gone(self) -> None:
        """The broker's process has ended, and its request and its session with it."""
        self._session, self._response = LeaderSession(self.node), None

    def fetched(self, topic: UUID) -> FetchRequest | None:
        """What the request in flight asks of a partition."""
        return None if self._response is None else self._session.fetched(topic)

    async def respond(self, topic: UUID, response: Message, offsets: tuple[int, int] = (0, 0)) -> None:
        """Respond for one partition, and wait until that was processed. `offsets`: what ListOffsets requests then get."""
        self._offsets = offsets
        others = _fetched(NOT_LEADER_OR_FOLLOWER)
        await self._send(self._session.response({self._keeps_alive: _fetched(), topic: response}, others))
        if self.fetched(topic) is None:
            await self.ask_again()

    async def ask_again(self) -> None:
        """Have the broker make its request anew, from what it fetches now, after whatever back-off there was."""
        await asyncio.sleep(BACK_OFF)
        await self._send(self._session.lost())

    async def _send(self, body: Message) -> None:
        response, self._response = self._response, None
        if response is None:
            raise WireError(f"broker {self.node}: expected a fetch in flight to it; seen none")
        response.set_result(body)
        await self.asked()

    async def _handle(self, request: Received) -> Message:
        if request.name == "ListOffsets":
            return self._listed(request.body)
        if request.name != "Fetch":
            raise WireError(f"broker {self.node}: expected no {request.name} request; seen {request.body}")
        response: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._session.asked(request.body)
        self._response = response
        self._signs.changed()
        return await response

    def _listed(self, body: Message) -> Message:
        """The requests of an out-of-range reset, on the fetch's connection. AbstractFetcherThread#fetchOffsetAndTruncate."""
        topics = []
        for topic in body["topics"]:
            partitions = [
                {
                    "partitionIndex": one["partitionIndex"],
                    "errorCode": NONE,
                    "timestamp": UNDEFINED,
                    "offset": self._offsets[0 if one["timestamp"] == EARLIEST_TIMESTAMP else 1],
                    "leaderEpoch": 0,
                }
                for one in topic["partitions"]
            ]
            topics.append({"name": topic["name"], "partitions": partitions})
        return {"topics": topics}


def _fetched(error: int = NONE, hw: int = 0, log_start: int = 0) -> Message:
    """One partition of a fetch response without records."""
    known = error == NONE
    return {
        "partitionIndex": 0,
        "errorCode": error,
        "highWatermark": hw if known else UNDEFINED,
        "lastStableOffset": UNDEFINED,
        "logStartOffset": log_start if known else UNDEFINED,
        "abortedTransactions": None,
        "records": b"",
    }


def fetch_response(
    error: int,
    hw: int,
    log_start: int,
    records: tuple[tuple[int, int, int], ...],
    diverging: tuple[int, int] | None,
) -> Message:
    """One partition of a fetch response; `records` (base, last, leader epoch) are of now, or retention removes them."""
    now = int(time.time() * 1000)
    batches = (encode(batch_of(base, epoch, [b"x"] * (last - base + 1), now)) for base, last, epoch in records)
    found = {**_fetched(NONE, hw, log_start), "errorCode": error, "records": b"".join(batches)}
    if diverging is not None:
        found["divergingEpoch"] = {"epoch": diverging[0], "endOffset": diverging[1]}
    return found

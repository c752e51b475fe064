"""Brokers of the driver's own: each fetch of the broker under test to one of them is held until a step says the response.

The driver is this program; a peer is a broker that it plays, as far as the broker under test can see. A topic has one
partition and is named by its id. What is called a partition here is the entry of one partition in a request or response. A
session (`impl.fetch`) remembers what the broker fetches. A request has a context: its kind, and the partitions to read,
which it names or the session has. Tasks wait for `Conditions`, which are looked at again at each `notify`.

Rules of this file

1. A peer has a listening port and a fetcher thread of the broker to itself. It always leads one more partition, so that the
   thread never idles out (ReplicaFetcherManager#shutdownIdleFetcherThreads) and a late response reaches a living thread.
2. The broker has one request to a peer at a time, for all its partitions there. The next request shows that the response
   before it was processed. What the request fetches follows from the session that the two have (KIP-227).
3. A full response has every partition of its request and no other, or the broker drops all of it. An incremental one has the
   partitions that the step is about, also those that a real leader would leave out as unchanged.
4. Partitions that have to be in a response without being meant get NOT_LEADER_OR_FOLLOWER: that only makes them wait for
   replica.fetch.backoff.ms.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping
from itertools import cycle
from uuid import UUID, uuid4

from tidegauge.drive.kafka_broker.controller_stub import ControllerStub
from tidegauge.drive.wire.compiler import Messages, WireError, WireMessage
from tidegauge.drive.wire.frames import Conditions, Listener, ReceivedRequest
from tidegauge.impl.cluster.broker import NOW
from tidegauge.impl.errors import FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH
from tidegauge.impl.fetch import fetch_session as sessions
from tidegauge.impl.fetch.fetch_session import FetchSessionHandler, build_session_fetch, handle_response
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import FetchRequest, FetchResponse, PartitionFetch, PartitionRead
from tidegauge.impl.rules import NONE, NOT_LEADER_OR_FOLLOWER, UNDEFINED
from tidegauge.impl.topic_partition import TopicPartition
from tidegauge.traces.segments import batch_of, encode

PEER_SERVES = ("Fetch", "ListOffsets", "OffsetForLeaderEpoch", "ApiVersions")
EARLIEST_TIMESTAMP = -2
BACK_OFF = 0.004
"""Seconds; longer than replica.fetch.backoff.ms, which is 1 ms: after that a partition that had to wait is fetched again."""

PartitionsByTopic = Mapping[UUID, WireMessage]
"""Partitions of a fetch response, by topic id."""

NO_RECORDS = PartitionRead(FetchResponse(NONE, UNDEFINED, UNDEFINED))


class LeaderSession:
    """A peer's side, as leader, of the fetch session with one process of the broker. Requests and responses alternate.

    What the session contains is decided by `impl.fetch`, and so is what the broker has to send: each request is compared
    with that of impl's FetchSessionHandler, which is the follower's side.
    """

    def __init__(self, node: int) -> None:
        """Begin without a session. `node`: the peer's broker id, for messages."""
        self._node = node
        # The leader's side and the follower's, then the context of the last request: at first one that fetches nothing.
        self._cache, self._handler = sessions.FetchSessionCache(), FetchSessionHandler()
        self._context = sessions.FetchContext(sessions.SessionKind.FULL)
        self._losses = cycle((NONE, FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH))

    def receive(self, body: WireMessage) -> None:
        """Take the broker's next fetch. Raises WireError if impl's FetchSessionHandler would not send it."""
        request = _session_fetch(body)
        self._cache, self._context = sessions.new_context(self._cache, request, NOW)
        self._handler, expected = build_session_fetch(self._handler, self._context.fetches)
        if self._context.error != NONE or expected is None or _unordered(request) != _unordered(expected):
            raise WireError(f"broker {self._node}: expected {expected}; seen {request}")

    def request_of(self, topic: UUID) -> FetchRequest | None:
        """Return what the last request fetches of a topic's partition, named in it or in an earlier one; None if nothing."""
        fetch = self._context.fetches.get(_topic_partition(topic))
        return None if fetch is None else fetch.request

    def response(self, by_topic: PartitionsByTopic, others: WireMessage) -> WireMessage:
        """Return the body of the response to the last request.

        `by_topic`: the partitions that it is about; `others`: what stands for each partition that has to be in it besides
        (rule 3).
        """
        is_full = self._context.kind is not sessions.SessionKind.INCREMENTAL
        topics = [UUID(tp.topic) for tp in self._context.fetches]
        # An incremental response has only the partitions that it is about.
        partitions = {topic: by_topic.get(topic, others) for topic in topics if is_full or topic in by_topic}
        # The session only gives the id here; which partitions are in the response was decided above.
        self._cache, response = sessions.update_and_generate_response(
            self._cache, self._context, _reads(self._context.fetches), NOW, is_follower=True
        )
        reads = _reads(map(_topic_partition, partitions))
        return self._to_wire(sessions.SessionResponse(NONE, response.session_id, reads), partitions)

    def lost(self) -> WireMessage:
        """Return the body of a response of which the broker uses nothing, as if it had been lost."""
        session = self._context.session
        # A full response without its partitions is dropped (FetchSessionHandler#verifyFullFetchResponsePartitions).
        if session is None:
            return self._to_wire(sessions.SessionResponse(), {})
        # An empty incremental response says that nothing has changed. In turns with that the session is refused in both
        # ways a leader can, so that the broker's ways back into a session are driven as well.
        error = next(self._losses)
        if error == FETCH_SESSION_ID_NOT_FOUND:
            self._cache = sessions.remove_session(self._cache, session.id)
        return self._to_wire(sessions.SessionResponse(error, session.id), {})

    def _to_wire(self, response: sessions.SessionResponse, partitions: PartitionsByTopic) -> WireMessage:
        """Return the body of a response, and let impl's FetchSessionHandler, the follower's side, receive it."""
        self._handler, _ = handle_response(self._handler, response)
        topics = [{"topicId": topic, "partitions": [partition]} for topic, partition in partitions.items()]
        return {"errorCode": response.error, "sessionId": response.session_id, "responses": topics}


def _topic_partition(topic: UUID) -> TopicPartition:
    """Return partition 0 of a topic as `impl.fetch` names it: by the id as text."""
    return TopicPartition(str(topic), 0)


def _reads(partitions: Iterable[TopicPartition]) -> FrozenMap[TopicPartition, PartitionRead]:
    """Return reads without records of these partitions: a session does not look at more."""
    return FrozenMap((tp, NO_RECORDS) for tp in partitions)


def _session_fetch(body: WireMessage) -> sessions.SessionFetch:
    """Return the body of a fetch as `impl.fetch` has it: session id and epoch, partitions to fetch, partitions to forget."""
    named = ((_topic_partition(topic["topicId"]), _partition_fetch(topic["partitions"][0])) for topic in body["topics"])
    # None in place of a topic id: the topic is named by it already.
    forgotten = ((_topic_partition(topic["topicId"]), None) for topic in body["forgottenTopicsData"])
    return sessions.SessionFetch(
        sessions.FetchMetadata(body["sessionId"], body["sessionEpoch"]), FrozenMap(named), tuple(forgotten)
    )


def _partition_fetch(partition: WireMessage) -> PartitionFetch:
    """Return a partition of a fetch as `impl.fetch` has it, without the sender, which no session looks at."""
    request = FetchRequest(
        replica_id=UNDEFINED,
        current_leader_epoch=partition["currentLeaderEpoch"],
        fetch_offset=partition["fetchOffset"],
        last_fetched_epoch=partition["lastFetchedEpoch"],
        log_start=partition["logStartOffset"],
    )
    return PartitionFetch(request, partition["partitionMaxBytes"])


def _unordered(request: sessions.SessionFetch) -> tuple[object, ...]:
    """Return a fetch as a value that is equal for the same partitions in another order."""
    # The order is that in which the partitions of the fetcher thread take turns; nothing here depends on it.
    return request.metadata, dict(request.to_send.items()), set(request.to_forget)


class Peer:
    """A broker of the driver's, registered with the id `node`; `broker` is the id of the one under test.

    `broker_epoch`, `fenced`: of its registration in the metadata log.
    """

    def __init__(
        self, messages: Messages, controller: ControllerStub, conditions: Conditions, broker: int, node: int
    ) -> None:
        """Prepare a peer that answers the fetches of the broker with what a path gives it; `start` starts it."""
        self._controller, self._conditions, self._broker, self.node = controller, conditions, broker, node
        self._listener = Listener(messages, PEER_SERVES, self._handle, conditions)
        self._keep_alive_topic = uuid4()
        self._session = LeaderSession(node)
        self._pending_response: asyncio.Future[WireMessage] | None = None
        self._offsets = (0, 0)
        self.broker_epoch, self.fenced = UNDEFINED, False

    async def start(self) -> None:
        """Listen, and register the peer and the partition that it always leads (rule 1)."""
        self._port = await self._listener.start()
        self.register()
        self._controller.create_topic(f"keeps-{self.node}-alive", self._keep_alive_topic)
        replicas = [self.node, self._broker]
        self._controller.register_partition(self._keep_alive_topic, replicas, replicas, self.node, 0, 0)

    def register(self) -> int:
        """Register a new incarnation of the peer, unfenced; return the record's offset, which is the new broker epoch."""
        self.broker_epoch, self.fenced = self._controller.register_peer(self.node, self._port), False
        return self.broker_epoch

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()

    async def wait_for_fetch(self) -> None:
        """Wait until a fetch of the broker is in flight. Raises WireError."""
        await self._conditions.wait_for(lambda: self._pending_response is not None, f"a fetch from broker {self.node}")

    def forget_process(self) -> None:
        """Forget the fetch in flight and the session: the broker's process has ended."""
        self._session, self._pending_response = LeaderSession(self.node), None

    def request_in_flight(self, topic: UUID) -> FetchRequest | None:
        """Return what the fetch in flight to this peer fetches of a topic's partition; None if nothing, or none is."""
        return None if self._pending_response is None else self._session.request_of(topic)

    async def respond(self, topic: UUID, response: WireMessage, offsets: tuple[int, int] = (0, 0)) -> None:
        """Answer the fetch in flight with one partition, and wait until the broker has processed that.

        `response`: the partition's entry; `offsets`: log start and log end that ListOffsets requests get from now on.
        """
        self._offsets = offsets
        others = _partition_response(NOT_LEADER_OR_FOLLOWER)
        await self._send(self._session.response({self._keep_alive_topic: _partition_response(), topic: response}, others))
        # After an error the broker leaves the partition out until its back-off is over. After another response, which it
        # uses nothing of, it sends a fetch with the partition, if it still fetches that.
        if self.request_in_flight(topic) is None:
            await self.fetch_again()

    async def fetch_again(self) -> None:
        """Make the broker send a new fetch, of whatever it fetches now, by a response that it uses nothing of."""
        # A partition after an error is fetched again when its back-off is over.
        await asyncio.sleep(BACK_OFF)
        await self._send(self._session.lost())

    async def _send(self, body: WireMessage) -> None:
        """Answer the fetch in flight, and wait for the next one. Raises WireError if none is in flight."""
        pending, self._pending_response = self._pending_response, None
        if pending is None:
            raise WireError(f"broker {self.node}: expected a fetch in flight to it; seen none")
        pending.set_result(body)
        await self.wait_for_fetch()

    async def _handle(self, request: ReceivedRequest) -> WireMessage:
        """Return the response to a request of the broker. A fetch is held until `_send` answers it (`_pending_response`)."""
        if request.name == "ListOffsets":
            return self._list_offsets(request.body)
        if request.name != "Fetch":
            # OffsetForLeaderEpoch is offered, as by every leader, but no release since 2.8 has to ask.
            raise WireError(f"broker {self.node}: expected no {request.name} request; seen {request.body}")
        response: asyncio.Future[WireMessage] = asyncio.get_running_loop().create_future()
        self._session.receive(request.body)
        self._pending_response = response
        self._conditions.notify()
        return await response

    def _list_offsets(self, body: WireMessage) -> WireMessage:
        """Return a ListOffsets response with the earliest or latest offset that `respond` was given last."""
        # A follower that is out of range asks this within the handling of the fetch response, on the same connection
        # (AbstractFetcherThread#fetchOffsetAndTruncate): no step comes between, so the response is known beforehand.
        topics = []
        for topic in body["topics"]:
            partitions = [
                {
                    "partitionIndex": partition["partitionIndex"],
                    "errorCode": NONE,
                    "timestamp": UNDEFINED,
                    "offset": self._offsets[0 if partition["timestamp"] == EARLIEST_TIMESTAMP else 1],
                    "leaderEpoch": 0,
                }
                for partition in topic["partitions"]
            ]
            topics.append({"name": topic["name"], "partitions": partitions})
        return {"topics": topics}


def _partition_response(error: int = NONE, hw: int = 0, log_start: int = 0) -> WireMessage:
    """Return one partition of a fetch response, without records; with an error its offsets are undefined."""
    has_offsets = error == NONE
    return {
        "partitionIndex": 0,
        "errorCode": error,
        "highWatermark": hw if has_offsets else UNDEFINED,
        "lastStableOffset": UNDEFINED,
        "logStartOffset": log_start if has_offsets else UNDEFINED,
        "abortedTransactions": None,
        "records": b"",
    }


def fetch_response(
    error: int, hw: int, log_start: int, records: tuple[tuple[int, int, int], ...], diverging: tuple[int, int] | None
) -> WireMessage:
    """Return one partition of a fetch response.

    `records`: batches as (base offset, last offset, leader epoch); `diverging`: leader epoch and end offset of a diverging
    response, else None.
    """
    now = int(time.time() * 1000)  # retention would remove older records
    batches = (encode(batch_of(base, epoch, [b"x"] * (last - base + 1), now)) for base, last, epoch in records)
    # With an error too the offsets are those of the step.
    partition = {**_partition_response(NONE, hw, log_start), "errorCode": error, "records": b"".join(batches)}
    if diverging is not None:
        diverging_epoch, end_offset = diverging
        partition["divergingEpoch"] = {"epoch": diverging_epoch, "endOffset": end_offset}
    return partition

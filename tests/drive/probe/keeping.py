"""A broker whose fetch sessions are those of `impl.fetch`: what it does else is what Kafka did in a recording.

Rules of this file

1. It holds what the probe writes, as it passes by, and reads from that. A partition has one leader epoch, 0.
2. A fetch that neither asks for a session nor names one goes to the recording.
3. What a session means is decided by `contexts`, `answers` and `recalls`: a test puts something wrong there.
"""

from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID

from tests.drive.probe.recorded import FETCH, NOBODY_HAS, NUMBER, Recording, asked
from tidegauge.drive.probe.connection import Wire, shipped_messages
from tidegauge.drive.wire.compiler import WireMessage
from tidegauge.drive.wire.frames import WireRequest, read_response
from tidegauge.impl import errors
from tidegauge.impl.fetch import fetch_session
from tidegauge.impl.fetch.fetch_session import (
    FetchContext,
    FetchMetadata,
    FetchSessionCache,
    Reads,
    SessionFetch,
    SessionResponse,
)
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import Batch, FetchRequest, FetchResponse, PartitionFetch, PartitionRead
from tidegauge.impl.rules import DIVERGING, OUT_OF_RANGE, UNDEFINED, fetch_decision, fetch_error
from tidegauge.impl.topic_partition import TopicPartition
from tidegauge.traces.segments import header

BY_ID = 13
EPOCH = 0

Contexts = Callable[[FetchSessionCache, SessionFetch, int], tuple[FetchSessionCache, FetchContext]]
Responses = Callable[[FetchSessionCache, FetchContext, Reads], tuple[FetchSessionCache, SessionResponse]]


class _Log(NamedTuple):
    """Batches with the bytes of each, the last one's end, and the log start."""

    batches: tuple[tuple[Batch, bytes], ...] = ()
    start: int = 0

    @property
    def end(self) -> int:
        return self.batches[-1][0].last + 1 if self.batches else 0

    def append(self, data: bytes) -> "_Log":
        batch, _ = header(data, 0)
        placed = Batch(self.end, self.end + batch.last, EPOCH)
        return self._replace(batches=(*self.batches, (placed, self.end.to_bytes(8, "big") + data[8:])))


def answered(cache: FetchSessionCache, context: FetchContext, reads: Reads) -> tuple[FetchSessionCache, SessionResponse]:
    """As `impl` has it."""
    return fetch_session.update_and_generate_response(cache, context, reads, 0, is_follower=False)


class Keeping:
    """The broker. All connections are to it; a recording knows which of two was asked."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._logs: defaultdict[str, _Log] = defaultdict(_Log)
        self._names: dict[UUID, str] = {}
        self._cache = FetchSessionCache()
        self.contexts: Contexts = fetch_session.new_context
        self.respond: Responses = answered
        self.recalls: Callable[[FetchRequest], FetchRequest] = lambda request: request

    def dial(self, host: str, port: int) -> Wire:
        """A connection."""
        return _Connection(self, self._recording.dial(host, port))

    def notice(self, call: WireRequest, response: WireMessage) -> None:
        """What went to the recording and came back."""
        if call.name == "Metadata":
            self._names |= {topic["topicId"]: topic["name"] for topic in response["topics"]}
        if call.name == "Produce":
            (topic,), (reported,) = call.body["topicData"], response["responses"]
            if reported["partitionResponses"][0]["errorCode"] == errors.NONE:
                name = topic.get("name") or self._names[topic["topicId"]]
                self._logs[name] = self._logs[name].append(topic["partitionData"][0]["records"])
        if call.name == "DeleteRecords" and (reported := response["topics"][0])["partitions"][0]["errorCode"] == errors.NONE:
            start = reported["partitions"][0]["lowWatermark"]
            self._logs[reported["name"]] = self._logs[reported["name"]]._replace(start=start)

    def fetched(self, call: WireRequest) -> WireMessage:
        """The response to a fetch."""
        body, by_id = call.body, call.version >= BY_ID
        named = FrozenMap(
            (self._partition(topic, one["partition"]), self._fetch(topic, one))
            for topic in body["topics"]
            for one in topic["partitions"]
        )
        forgotten = tuple(
            (self._partition(topic, one), self._id(topic))
            for topic in body["forgottenTopicsData"]
            for one in topic["partitions"]
        )
        metadata = FetchMetadata(body["sessionId"], body["sessionEpoch"])
        self._cache, context = self.contexts(self._cache, SessionFetch(metadata, named, forgotten, by_id), 0)
        self._cache, response = self.respond(self._cache, context, self._read(context, body["maxBytes"]))
        topics = [self._reported(tp, read, by_id) for tp, read in response.reads.items()]
        return {"errorCode": response.error, "sessionId": response.session_id, "throttleTimeMs": 0, "responses": topics}

    def _partition(self, topic: WireMessage, index: int) -> TopicPartition:
        return TopicPartition(topic.get("topic") or self._names[topic["topicId"]], index)

    @staticmethod
    def _id(topic: WireMessage) -> str | None:
        return str(topic["topicId"]) if "topicId" in topic else None

    def _fetch(self, topic: WireMessage, one: WireMessage) -> PartitionFetch:
        request = FetchRequest(UNDEFINED, one["currentLeaderEpoch"], one["fetchOffset"], one["lastFetchedEpoch"])
        return PartitionFetch(request, topic_id=self._id(topic))

    def _read(self, context: FetchContext, room: int) -> Reads:
        found, given = [], 0
        for tp, fetch in context.fetches.items():
            request = fetch.request if context.session is None else self.recalls(fetch.request)
            response = self._decided(tp, request)
            taken = []
            for batch, data in self._from(tp, request.fetch_offset) if response.records else ():
                if given and given + len(data) > room:
                    break
                given += len(data)
                taken.append(batch)
            found.append((tp, PartitionRead(response._replace(records=tuple(taken)))))
        return FrozenMap(found)

    def _decided(self, tp: TopicPartition, request: FetchRequest) -> FetchResponse:
        """All records that there are; the room is not looked at."""
        if tp.partition:
            return FetchResponse(errors.UNKNOWN_TOPIC_OR_PARTITION)
        if error := fetch_error(request.current_leader_epoch, EPOCH, True, True, True):
            return FetchResponse(error)
        log, last = self._logs[tp.topic], request.last_fetched_epoch
        what, epoch, end = fetch_decision((EPOCH,), (0,), log.start, log.end, request.fetch_offset, last)
        if what == OUT_OF_RANGE:
            return FetchResponse(errors.OFFSET_OUT_OF_RANGE)
        if what == DIVERGING:
            return FetchResponse(errors.NONE, log.end, log.start, (), epoch, end)
        records = tuple(batch for batch, _ in self._from(tp, request.fetch_offset))
        return FetchResponse(errors.NONE, log.end, log.start, records)

    def _from(self, tp: TopicPartition, offset: int) -> list[tuple[Batch, bytes]]:
        return [one for one in self._logs[tp.topic].batches if one[0].last >= offset]

    def _reported(self, tp: TopicPartition, read: PartitionRead, by_id: bool) -> WireMessage:
        response = read.response
        known = dict(self._logs[tp.topic].batches)
        partition: dict[str, Any] = {
            "partitionIndex": tp.partition,
            "errorCode": response.error,
            "highWatermark": response.hw,
            "logStartOffset": response.log_start,
            "records": b"".join(known[batch] for batch in response.records),
        }
        if response.is_diverging:
            partition["divergingEpoch"] = {"epoch": response.diverging_epoch, "endOffset": response.diverging_end}
        ids = {name: topic_id for topic_id, name in self._names.items()}
        return {**({"topicId": ids[tp.topic]} if by_id else {"topic": tp.topic}), "partitions": [partition]}


class _Connection:
    """Fetches in sessions are answered by the broker, all else by the recording."""

    def __init__(self, broker: Keeping, wire: Wire) -> None:
        self._broker, self._wire, self.close = broker, wire, wire.close
        self._waiting: deque[tuple[WireRequest | None, bytes | None]] = deque()

    def send(self, frame: bytes) -> None:
        """One of both."""
        call = asked(frame) if frame[6:8] != NOBODY_HAS else None
        if call is not None and frame[4:6] == FETCH and is_in_a_session(call):
            data = shipped_messages().write("FetchResponse", call.version, self._broker.fetched(call))
            self._waiting.append((None, frame[NUMBER] + b"\0" + data))
        else:
            self._wire.send(frame)
            self._waiting.append((call, None))

    def receive(self) -> bytes:
        """In their order."""
        call, response = self._waiting.popleft()
        if response is not None:
            return response
        data = self._wire.receive()
        if call is not None:
            self._broker.notice(call, read_response(shipped_messages(), call, int.from_bytes(data[:4], "big"), data)[0])
        return data


def is_in_a_session(call: WireRequest) -> bool:
    """Or asks for one."""
    return bool((call.body.get("sessionId", 0), call.body.get("sessionEpoch", UNDEFINED)) != (0, UNDEFINED))

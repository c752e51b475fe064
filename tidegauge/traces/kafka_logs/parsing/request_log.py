"""Read the request log: one JSON document per finished request. Sessions make whole fetches of FETCH requests.

A request is *dequeued* when a handler thread takes it up, *handled* when that is done with it, *completed* when its response
has left. `body` and `response` are Kafka's JSON. All times are in microseconds.

Rules of this file

1. A line is written after the response was sent, so the request began totalTimeMs before it or earlier: a network thread
   that was held up (busy, or all of the process stood still) writes late. It did not begin before the line of the request
   before it on its connection, which is muted until that line is written (SocketServer.Processor#processCompletedSends);
   nor did it end before the line that its network thread wrote before. All times are of its node's clock.
2. remoteTimeMs is 0 exactly if the handler thread sent the response (RequestChannel#updateRequestMetrics); otherwise the
   request waited in a purgatory and was answered later.
3. Fetch requests of version 13 and later name topics by id only; sessions leave out what did not change, in both
   directions (KIP-227). `Sessions` adds what was left out.
4. Fetches of the metadata log are Raft's (KIP-595): they are skipped.
5. What a response leaves out is unknown (None), a field that its version lacks is -1; what is not JSON becomes a Problem.
6. A session counts its requests. After a missing one nothing is added: what it changed is unknown.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from tidegauge.traces.kafka_logs.parsing.lines import Line
from tidegauge.traces.kafka_logs.parsing.parsed_line import METADATA_LOG, PartitionRequest, number
from tidegauge.traces.problems import Problem, shown

NAMES: Mapping[int, str] = {
    0: "PRODUCE",
    1: "FETCH",
    2: "LIST_OFFSETS",
    23: "OFFSET_FOR_LEADER_EPOCH",
    56: "ALTER_PARTITION",
}


NOT_KAFKAS = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError)
"""What is raised for a document that is JSON but not of Kafka's shape."""

_METADATA_TOPIC = (METADATA_LOG.rpartition("-")[0], "AAAAAAAAAAAAAAAAAAAAAQ")
"""Name and id of the topic of the metadata log (Uuid#METADATA_TOPIC_ID)."""
_DECODER = json.JSONDecoder(parse_int=number)


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One finished request of the kind `name`, the `order`-th that its node logged; `client` is its client id.

    It was taken up at `dequeued`, or earlier if its line is late, but not before `since`. `at_once`: the handler thread sent
    the response, which did not wait in a purgatory (rule 2).
    """

    line: Line
    name: str
    client: str
    body: Mapping[str, Any]
    response: Mapping[str, Any]
    dequeued: int
    handled: int
    completed: int
    at_once: bool
    order: int = 0
    since: int = 0


LOGGED = "Completed request"
"""How the message of a request's line begins."""


def is_request(line: Line) -> bool:
    """Return whether a line is of the request log, in any file."""
    return line.logger == "logger" and line.message.startswith(LOGGED)


class RequestReader:
    """Reads the request lines of one node, in their order; its first line of any kind was written at `first`."""

    def __init__(self, first: int = 0) -> None:
        """Begin with no request read."""
        self._first = first
        self._lines_read = 0
        self._last_of_connection: dict[str, int] = {}
        self._last_of_thread: dict[str, int] = {}
        """By connection, and by network thread, the time of its last line."""

    def read(self, line: Line) -> LoggedRequest | Problem | None:
        """Parse the request of a line; None if it is of a kind that is not read, a Problem if it is not Kafka's JSON."""
        begin = line.message.find("{")
        self._lines_read += 1
        # Without thread names the lines before it may be another thread's.
        thread_before = self._last_of_thread.get(line.thread, self._first) if line.thread else self._first
        self._last_of_thread[line.thread] = line.time
        try:
            document, _ = _DECODER.raw_decode(line.message[begin:])
            connection = str(document.get("connection", ""))
            # A connection handles one request at a time: this one was taken up after the response to the one before.
            connection_before = self._last_of_connection.get(connection, self._first) if connection else self._first
            self._last_of_connection[connection] = line.time
            header = document["requestHeader"]
            name = NAMES.get(header["requestApiKey"])
            if name is None or (name == "FETCH" and of_metadata_log(document["request"])):
                return None
            request = _request(line, self._lines_read, name, str(header["clientId"]), document)
            # The network thread has written its line before this one: so this line is late by at most the time since then,
            # and the request was taken up at most that much before `dequeued`.
            since = max(connection_before, request.dequeued - (line.time - thread_before))
            return replace(request, since=min(since, request.dequeued))
        except NOT_KAFKAS as error:
            return Problem(
                line.file,
                line.number,
                "`Completed request:` and one JSON document with header, request, response and times",
                f"{shown(line.message)} ({type(error).__name__}: {error})",
                "the line is left out; if all lines look so, check the level of kafka.request.logger (DEBUG)",
                lost=1,
            )


def of_metadata_log(body: Mapping[str, Any]) -> bool:
    """Return whether the body of a fetch asks for the metadata log: a request of Raft (rule 4)."""
    topics = body["topics"]
    return bool(topics) and all(topic.get("topic", topic.get("topicId")) in _METADATA_TOPIC for topic in topics)


def _request(line: Line, order: int, name: str, client: str, document: Mapping[str, Any]) -> LoggedRequest:
    """Return the request in a document, with its times; the document has durations in milliseconds."""

    def micros(field_name: str) -> int:
        """Return a duration in microseconds. Raises ValueError for one that cannot be."""
        microseconds = round(float(document[field_name]) * 1000)
        if not 0 <= microseconds <= line.time:
            raise ValueError(f"{field_name} is {document[field_name]}")
        return microseconds

    # The line is written when the response was sent: the times lie before it.
    dequeued = line.time - micros("totalTimeMs") + micros("requestQueueTimeMs")
    handled = dequeued + micros("localTimeMs")
    completed = handled + micros("remoteTimeMs")
    at_once = micros("remoteTimeMs") == 0
    return LoggedRequest(
        line, name, client, document["request"], document["response"], dequeued, handled, completed, at_once, order
    )


class LoggedResponse(NamedTuple):
    """The response to a fetch for one partition; None is unknown: left out of the JSON and of the responses before.

    `div_epoch` and `div_end` are the diverging epoch, -1 for none; `size` is the bytes of the records, `stable` the last
    stable offset.
    """

    error: int
    hw: int | None
    log_start: int | None
    div_epoch: int = -1
    div_end: int = -1
    size: int = 0
    stable: int | None = None

    @property
    def diverging(self) -> bool:
        """Whether the response has a diverging epoch, which makes the follower truncate (KIP-595).

        FetchResponse#isDivergingEpoch asks for the epoch. An end without one is no response of Kafka's: the judge is to see
        it.
        """
        return self.div_end >= 0 or self.div_epoch >= 0


@dataclass(eq=False, slots=True)
class LoggedFetch:
    """A fetch of a replica (or of a consumer: replica -1) with everything that its session asks for.

    `requested` and `responses` are by partition. Each `fetcher` of a replica has a session and a connection of its own.

    It is not `whole` if the request before it in its session is not in the log. Then its session may ask for partitions that
    no later request names; the responses for those are `unasked`.
    """

    request: LoggedRequest
    replica: int
    broker_epoch: int | None
    session: int
    session_epoch: int
    requested: dict[str, PartitionRequest]
    responses: dict[str, LoggedResponse]
    fetcher: int = 0
    whole: bool = True
    unasked: Mapping[str, LoggedResponse] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """By partition, the id of its topic, where the request names topics so."""

    def keep(self, wanted: Callable[[str], bool]) -> None:
        """Leave out the partitions that are not wanted."""
        self.requested = {tp: partition for tp, partition in self.requested.items() if wanted(tp)}
        self.responses = {tp: response for tp, response in self.responses.items() if wanted(tp)}
        self.unasked = {tp: response for tp, response in self.unasked.items() if wanted(tp)}


@dataclass(eq=False, slots=True)
class _Session:
    """A fetch session after a request: its epoch, what it asks for, and what responses reported last, by partition."""

    epoch: int = 0
    requested: dict[str, PartitionRequest] = field(default_factory=dict)
    reported: dict[str, LoggedResponse] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)


class Sessions:
    """The fetch sessions of one leader, rebuilt request by request."""

    def __init__(self, topic_ids: Mapping[str, str]) -> None:
        """Begin with no session; `topic_ids` are topic names by id."""
        self._topic_ids = topic_ids
        self._sessions: dict[int, _Session] = {}

    def fetch(self, request: LoggedRequest) -> LoggedFetch:
        """Rebuild a FETCH request with what its session left out (KIP-227); call it in the order of the log."""
        body, response = request.body, request.response
        session_id, session_epoch = int(body.get("sessionId", 0)), int(body.get("sessionEpoch", -1))
        # Session epoch 0 is a full fetch, which opens a session, and -1 one without or the last one (KIP-227).
        # epoch=-1: none of its requests was read yet, not even number 0.
        before = _Session() if session_epoch <= 0 else self._sessions.get(session_id, _Session(epoch=-1))
        goes_on = session_epoch <= 0 or session_epoch == before.epoch + request.line.requests
        # What the missing request added or removed is unknown: only what this one names is certain.
        if not goes_on:
            before = _Session()
        topics = [(topic, self._partitions([topic])) for topic in body.get("topics", ())]
        named = {tp: _partition_request(part) for _, parts in topics for tp, part in parts}
        ids = {tp: str(topic["topicId"]) for topic, parts in topics for tp, _ in parts if "topicId" in topic}
        forgotten = {tp for tp, _ in self._partitions(body.get("forgottenTopicsData", ()))}
        session = _Session(
            max(0, session_epoch),
            {tp: partition for tp, partition in before.requested.items() if tp not in forgotten} | named,
            {tp: last for tp, last in before.reported.items() if tp not in forgotten},
            {tp: topic_id for tp, topic_id in before.topic_ids.items() if tp not in forgotten} | ids,
        )
        reported = {tp: _partition_response(part) for tp, part in self._partitions(response.get("responses", ()))}
        failed = int(response.get("errorCode", 0)) != 0
        responses: dict[str, LoggedResponse] = {}
        # An error of the whole response (a session that the leader has evicted) answers for no partition.
        for tp in () if failed else session.requested:
            last = session.reported.get(tp)
            if tp in reported:
                responses[tp] = reported[tp]
            elif last is not None and last.error == 0:
                # CachedPartition#maybeUpdateResponseData leaves out a partition of which nothing changed.
                responses[tp] = LoggedResponse(error=0, hw=last.hw, log_start=last.log_start)
            # Nothing changed since a response that is not in the log.
            elif session_epoch > 0:
                responses[tp] = LoggedResponse(error=0, hw=None, log_start=None)
        session.reported.update(responses)
        # 0: the leader keeps no session.
        response_session = int(response.get("sessionId", 0))
        if response_session:
            self._sessions[response_session] = session
        broker_epoch = (body.get("replicaState") or {}).get("replicaEpoch")
        return LoggedFetch(
            request,
            replica_of(body),
            None if broker_epoch is None else int(broker_epoch),
            session_id,
            session_epoch,
            dict(session.requested),
            responses,
            fetcher=_fetcher_of(request.client),
            whole=goes_on,
            unasked={tp: unasked for tp, unasked in reported.items() if tp not in session.requested},
            topic_ids=session.topic_ids,
        )

    def _partitions(self, topics: Any) -> list[tuple[str, Any]]:
        """Return (topic-partition, its part of the JSON) of every partition of `topics`, without topics of unknown name.

        In forgottenTopicsData the parts are numbers.
        """
        parts = []
        for topic in topics:
            name = topic.get("topic") or self._topic_ids.get(str(topic.get("topicId")))
            if name is not None:
                parts += [(f"{name}-{partition_of(part)}", part) for part in topic["partitions"]]
        return parts


def _fetcher_of(client: str) -> int:
    """Return the number of the fetcher with this client id (BrokerBlockingSender: `broker-2-fetcher-1`)."""
    _, _, number_of_fetcher = client.rpartition("-fetcher-")
    return int(number_of_fetcher) if number_of_fetcher.isdecimal() else 0


def replica_of(body: Mapping[str, Any]) -> int:
    """Return the replica that fetches, -1 for a consumer: up to version 14 a field, then part of the replica state."""
    return int((body.get("replicaState") or {}).get("replicaId", body.get("replicaId", -1)))


def partition_of(part: Any) -> Any:
    """Return the partition number of a part of a topic; each kind of request has another name for it."""
    if not isinstance(part, dict):
        return part
    return next((part[key] for key in ("partition", "partitionIndex", "index") if key in part), None)


def _partition_request(part: Mapping[str, Any]) -> PartitionRequest:
    """Return what the JSON of a fetch asks for one partition; -1 where a version has no such field."""
    return PartitionRequest(
        int(part["fetchOffset"]),
        int(part.get("currentLeaderEpoch", -1)),
        int(part.get("lastFetchedEpoch", -1)),
        int(part.get("logStartOffset", -1)),
    )


def _partition_response(part: Mapping[str, Any]) -> LoggedResponse:
    """Return what the JSON of a fetch response has of one partition: -1 where a version has no such field.

    Without a diverging epoch it is -1, too; a response without records has no size; versions below 4 have no last stable
    offset.
    """
    diverging = part.get("divergingEpoch") or {}
    return LoggedResponse(
        int(part["errorCode"]),
        int(part["highWatermark"]),
        int(part.get("logStartOffset", -1)),
        int(diverging.get("epoch", -1)),
        int(diverging.get("endOffset", -1)),
        int(part.get("recordsSizeInBytes") or 0),
        int(part["lastStableOffset"]) if "lastStableOffset" in part else None,
    )

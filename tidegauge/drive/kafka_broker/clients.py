"""Requests of clients and followers to the broker, about one partition, and the parts of their responses.

A request is a name, a version and a body: a dict of fields as Kafka's message definitions name them (`WireMessage`). What is
called a partition here is the entry of one partition in a response.

Rule of this file: every one is an ordinary request on a client's connection; nothing is installed in the broker.
"""

import time
from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from tidegauge.drive.wire.compiler import WireMessage
from tidegauge.drive.wire.frames import Connection, WireRequest
from tidegauge.impl.rules import NONE, OFFSET_OUT_OF_RANGE, UNDEFINED
from tidegauge.traces.segments import batch_of, encode, header

CONSUMER, DEBUGGING_CONSUMER = -1, -2
"""Replica ids of requests that are no follower's."""
LATEST_TIMESTAMP, EARLIEST_TIMESTAMP = -1, -2
"""What ListOffsets asks for, in place of a timestamp."""
ONE_BATCH, PLENTY = 1, 1 << 20
"""Bytes of a fetch at most: one batch comes back however large (KIP-74), or all that a path has."""
FOREVER_MS = (1 << 31) - 1
LONG_OVER_MS = -(1 << 31)
"""A timeout that is over before the request is handled."""
BY_NAME_UNTIL = {"Produce": 12}
"""The last version that names topics (KIP-516)."""


class Topic(NamedTuple):
    """A topic with one partition, 0."""

    id: UUID
    name: str


class PartitionRequests:
    """Makes requests about one partition, in the newest version that both sides have (`versions`, by request name)."""

    def __init__(self, versions: Mapping[str, range]) -> None:
        self._versions = versions

    def _version(self, name: str) -> int:
        """Return the newest version of a request that both sides have and that names topics as it is made here."""
        newest = self._versions[name].stop - 1
        return min(newest, BY_NAME_UNTIL.get(name, newest))

    def fetch(
        self,
        topic: Topic,
        offset: int,
        *,
        current_leader_epoch: int = UNDEFINED,
        last_fetched_epoch: int = UNDEFINED,
        replica: int = CONSUMER,
        broker_epoch: int = UNDEFINED,
        max_bytes: int = PLENTY,
        waits: bool = False,
    ) -> WireRequest:
        """Return a full fetch of a partition, outside any session.

        `replica`: the id of a follower, or CONSUMER; `broker_epoch`: the follower's; `waits`: for a byte, however long that
        takes, while the broker answers any other fetch at once.
        """
        version = self._version("Fetch")
        sender: WireMessage = {"replicaId": replica}
        # Since version 15 the sender has its broker epoch beside it (KIP-903).
        if version >= 15:
            sender = {"replicaState": {"replicaId": replica, "replicaEpoch": broker_epoch}}
        partition = {
            "partition": 0,
            "currentLeaderEpoch": current_leader_epoch,
            "fetchOffset": offset,
            "lastFetchedEpoch": last_fetched_epoch,
            "logStartOffset": UNDEFINED if replica < 0 else 0,
            "partitionMaxBytes": max_bytes,
        }
        topics = [{"topicId": topic.id, "partitions": [partition]}]
        wait = {"maxWaitMs": FOREVER_MS, "minBytes": 1} if waits else {"maxWaitMs": 0, "minBytes": 0}
        limits = {**wait, "maxBytes": max_bytes, "sessionId": 0, "sessionEpoch": UNDEFINED}
        return WireRequest("Fetch", version, {**sender, **limits, "topics": topics})

    def list_offsets(self, topic: Topic, timestamp: int, replica: int, current_leader_epoch: int = UNDEFINED) -> WireRequest:
        """Return a ListOffsets request for LATEST_TIMESTAMP or EARLIEST_TIMESTAMP."""
        partition = {"partitionIndex": 0, "currentLeaderEpoch": current_leader_epoch, "timestamp": timestamp}
        topics = [{"name": topic.name, "partitions": [partition]}]
        body = {"replicaId": replica, "topics": topics}
        return WireRequest("ListOffsets", min(7, self._version("ListOffsets")), body)

    def offsets_for_leader_epoch(
        self, topic: Topic, replica: int, current_leader_epoch: int, leader_epoch: int
    ) -> WireRequest:
        """Return an OffsetForLeaderEpoch request, which asks where `leader_epoch` ends."""
        partition = {"partition": 0, "currentLeaderEpoch": current_leader_epoch, "leaderEpoch": leader_epoch}
        topics = [{"topic": topic.name, "partitions": [partition]}]
        name = "OffsetForLeaderEpoch"
        return WireRequest(name, self._version(name), {"replicaId": replica, "topics": topics})

    def produce(self, topic: Topic, acks: int) -> WireRequest:
        """Return a Produce request with one record, which waits for its acks without end."""
        # The record has the present as its timestamp: retention would remove an old one.
        records = encode(batch_of(0, UNDEFINED, [b"x"], int(time.time() * 1000)))
        data = [{"name": topic.name, "partitionData": [{"index": 0, "records": records}]}]
        body = {"acks": acks, "timeoutMs": FOREVER_MS, "topicData": data}
        return WireRequest("Produce", self._version("Produce"), body)

    def delete_records(self, topic: Topic, offset: int) -> WireRequest:
        """Return a DeleteRecords request for the records before an offset, which does not wait for followers."""
        # The timeout lies far in the past on purpose. A deletion that waits is counted, and while that count changes, any
        # follower's fetch may find that a low watermark has risen and wake fetches that wait
        # (Partition#updateFollowerFetchState reads the count twice). With 0 ms it is counted until the timer's thread has
        # run; one that was over long ago is never counted (TimingWheel#add).
        partitions = [{"partitionIndex": 0, "offset": offset}]
        body = {"topics": [{"name": topic.name, "partitions": partitions}], "timeoutMs": LONG_OVER_MS}
        return WireRequest("DeleteRecords", self._version("DeleteRecords"), body)


def fetched_partition(response: WireMessage) -> WireMessage:
    """Return the one partition of a fetch response; an error of the whole response counts as the partition's."""
    if response["errorCode"]:
        return {"errorCode": response["errorCode"]}
    partition: WireMessage = response["responses"][0]["partitions"][0]
    return partition


def diverging_of(partition: WireMessage) -> tuple[int, int] | None:
    """Return the diverging epoch and its end offset in a partition of a fetch response, None when the logs agree."""
    diverging = partition.get("divergingEpoch") or {"epoch": UNDEFINED, "endOffset": UNDEFINED}
    return None if diverging["epoch"] == UNDEFINED else (diverging["epoch"], diverging["endOffset"])


def batches_of(partition: WireMessage) -> list[list[int]]:
    """Return base offset, last offset and leader epoch of each batch in a partition of a fetch response."""
    data, at, batches = partition["records"] or b"", 0, []
    while at < len(data):
        batch, at = header(data, at)
        batches.append([batch.base, batch.last, batch.epoch])
    return batches


# Reads the state of the broker's replicas by the requests of ordinary clients.
#
# Rules of this part
#
# 1. The log end is that of ListOffsets as replica -2, a debugging consumer, which followers serve as well.
# 2. The high watermark and the log start are those of a consumer's fetch at the log end (KIP-392 lets followers serve it).
# 3. The end of each epoch in the epoch cache is the diverging epoch of a consumer's fetch one offset further (KIP-595).


Reading = int | Mapping[str, int]
"""A value that was read, or the error of the response where the broker refused: `{"error": 56}`."""


class ReadReplicaState(NamedTuple):
    """The state of a replica. `ends`: for each leader epoch from 0 what its epoch cache returns: (epoch, end offset)."""

    leo: int
    hw: Reading
    log_start: Reading
    ends: tuple[tuple[int, int] | Mapping[str, int], ...]


class StateReader:
    """Reads the state of partitions from one process of the broker, as a consumer can see it."""

    def __init__(self, connection: Connection, requests: PartitionRequests) -> None:
        self._connection, self._requests = connection, requests

    async def read(self, topic: Topic, epochs: int) -> ReadReplicaState | Mapping[str, int]:
        """Read the broker's replica of a partition, and the ends of its leader epochs below `epochs`.

        No right broker refuses these requests. Where one does, its error stands in place of the value, and that of the log
        end is returned in place of all. Raises OSError and WireError.
        """
        leo = await self.log_end(topic)
        if not isinstance(leo, int):
            return leo
        requests = self._requests
        # Rules 2 and 3: a fetch at the log end, then for each epoch one beyond it, which diverges where the epoch ends.
        fetches = [
            requests.fetch(topic, leo),
            *(requests.fetch(topic, leo + 1, last_fetched_epoch=epoch) for epoch in range(epochs)),
        ]
        at_end, *beyond_end = map(fetched_partition, await self._connection.exchange(fetches))
        ends = tuple(map(_end_of, beyond_end))
        if at_end["errorCode"] != NONE:
            error = {"error": at_end["errorCode"]}
            return ReadReplicaState(leo, error, error, ends)
        return ReadReplicaState(leo, at_end["highWatermark"], at_end["logStartOffset"], ends)

    async def log_end(self, topic: Topic) -> Reading:
        """Read the log end offset, or the error of the response. Raises OSError and WireError."""
        list_offsets = self._requests.list_offsets(topic, LATEST_TIMESTAMP, DEBUGGING_CONSUMER)
        (response,) = await self._connection.exchange([list_offsets])
        latest: WireMessage = response["topics"][0]["partitions"][0]
        return latest["offset"] if latest["errorCode"] == NONE else {"error": latest["errorCode"]}


def _end_of(partition: WireMessage) -> tuple[int, int] | Mapping[str, int]:
    """Return (epoch, end offset) from the response to a fetch one offset beyond the log end (rule 3), or its error."""
    # An epoch after all that the cache knows is OFFSET_OUT_OF_RANGE one offset beyond the end: it has no end.
    if partition["errorCode"] not in {NONE, OFFSET_OUT_OF_RANGE}:
        return {"error": partition["errorCode"]}
    return diverging_of(partition) or (UNDEFINED, UNDEFINED)

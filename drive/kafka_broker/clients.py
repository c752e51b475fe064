"""What clients and followers ask a broker about one partition.

Rule of this file: everything here is an ordinary request on a client's connection; nothing is installed in the broker.
"""

import time
from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from tidegauge.drive.wire.compiler import Message
from tidegauge.drive.wire.frames import Call
from tidegauge.impl.rules import UNDEFINED
from tidegauge.traces.segments.record_batch import batch_of, encode, header

CONSUMER, DEBUGGING_CONSUMER = -1, -2
LATEST_TIMESTAMP, EARLIEST_TIMESTAMP = -1, -2
ONE_BATCH, PLENTY = 1, 1 << 20
FOREVER_MS = (1 << 31) - 1
LONG_OVER_MS = -(1 << 31)


class Topic(NamedTuple):
    """A topic with one partition, 0."""

    id: UUID
    name: str


class Versions:
    """Which version of each request is spoken with a broker: the newest that is stable on both sides."""

    def __init__(self, shared: Mapping[str, range]) -> None:
        self._shared = shared

    def __getitem__(self, name: str) -> int:
        highest = self._shared[name].stop - 1
        return min(highest, _NAMES_UNTIL.get(name, highest))


_NAMES_UNTIL = {"Produce": 12}
"""The last version that goes by topic name (KIP-516)."""


class Calls:
    """Requests about one partition, in the versions that are spoken."""

    def __init__(self, versions: Versions) -> None:
        self._versions = versions

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
    ) -> Call:
        """A full fetch that waits for nothing, or for a byte however long; a follower's if `replica` is a broker."""
        version = self._versions["Fetch"]
        who: Message = {"replicaId": replica}
        if version >= 15:
            who = {"replicaState": {"replicaId": replica, "replicaEpoch": broker_epoch}}
        partition = {
            "partition": 0,
            "currentLeaderEpoch": current_leader_epoch,
            "fetchOffset": offset,
            "lastFetchedEpoch": last_fetched_epoch,
            "logStartOffset": UNDEFINED if replica < 0 else 0,
            "partitionMaxBytes": max_bytes,
        }
        topics = [{"topicId": topic.id, "partitions": [partition]}]
        time_out = {"maxWaitMs": FOREVER_MS, "minBytes": 1} if waits else {"maxWaitMs": 0, "minBytes": 0}
        limits = {**time_out, "maxBytes": max_bytes, "sessionId": 0, "sessionEpoch": UNDEFINED}
        return Call("Fetch", version, {**who, **limits, "topics": topics})

    def list_offsets(self, topic: Topic, timestamp: int, replica: int, current_leader_epoch: int = UNDEFINED) -> Call:
        """The earliest or the latest offset."""
        partition = {"partitionIndex": 0, "currentLeaderEpoch": current_leader_epoch, "timestamp": timestamp}
        topics = [{"name": topic.name, "partitions": [partition]}]
        return Call("ListOffsets", min(7, self._versions["ListOffsets"]), {"replicaId": replica, "topics": topics})

    def offsets_for_leader_epoch(self, topic: Topic, replica: int, current_leader_epoch: int, leader_epoch: int) -> Call:
        """Where a leader epoch ends."""
        partition = {"partition": 0, "currentLeaderEpoch": current_leader_epoch, "leaderEpoch": leader_epoch}
        topics = [{"topic": topic.name, "partitions": [partition]}]
        version = self._versions["OffsetForLeaderEpoch"]
        return Call("OffsetForLeaderEpoch", version, {"replicaId": replica, "topics": topics})

    def produce(self, topic: Topic, acks: int) -> Call:
        """One record, of now: retention would remove one of long ago."""
        records = encode(batch_of(0, UNDEFINED, [b"x"], int(time.time() * 1000)))
        data = [{"name": topic.name, "partitionData": [{"index": 0, "records": records}]}]
        body = {"acks": acks, "timeoutMs": FOREVER_MS, "topicData": data}
        return Call("Produce", self._versions["Produce"], body)

    def delete_records(self, topic: Topic, offset: int) -> Call:
        """Delete what lies before an offset, and wait for no follower, nor be counted as one that waits.

        While the count of those changes, any follower's fetch may find that a low watermark has risen, and wake fetches that
        wait (Partition#updateFollowerFetchState reads it twice). One that waits for 0 ms is counted until the timer's thread
        has run; one whose time was over long ago never is (TimingWheel#add).
        """
        partitions = [{"partitionIndex": 0, "offset": offset}]
        body = {"topics": [{"name": topic.name, "partitions": partitions}], "timeoutMs": LONG_OVER_MS}
        return Call("DeleteRecords", self._versions["DeleteRecords"], body)


def fetched(response: Message) -> Message:
    """The one partition of a fetch response. An error of the whole stands for one of the partition."""
    if response["errorCode"]:
        return {"errorCode": response["errorCode"]}
    found: Message = response["responses"][0]["partitions"][0]
    return found


def diverging_of(found: Message) -> tuple[int, int] | None:
    """Where a fetch response says that the logs part."""
    diverging = found.get("divergingEpoch") or {"epoch": UNDEFINED, "endOffset": UNDEFINED}
    return None if diverging["epoch"] == UNDEFINED else (diverging["epoch"], diverging["endOffset"])


def batches_of(found: Message) -> list[list[int]]:
    """Base, last offset and leader epoch of each batch of a fetch response."""
    data, at, batches = found["records"] or b"", 0, []
    while at < len(data):
        batch, at = header(data, at)
        batches.append([batch.base, batch.last, batch.epoch])
    return batches

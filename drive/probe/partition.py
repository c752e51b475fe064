"""A partition of the probe's own: what was written to it, and requests about it.

Rules of this file

1. What its log must hold follows from what was written: a record per offset with the leader epoch of then. Expectations are
   computed from that by the rules of `impl`, not from what the broker says of itself.
2. A request is spoken in the newest version that both sides have, unless it says `at_most`. Fields that a version cannot
   carry are left out by the codec where Kafka's own does.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple
from uuid import UUID

from tidegauge.drive.probe.connection import Link
from tidegauge.drive.wire.compiler import WireMessage
from tidegauge.drive.wire.frames import WireRequest
from tidegauge.impl.rules import UNDEFINED, end_offset_for
from tidegauge.impl.sessions.fetch_metadata import FINAL_EPOCH, INVALID_SESSION_ID
from tidegauge.traces.segments.record_batch import RecordBatch, batch_of, encode

CONSUMER, DEBUGGING_CONSUMER = -1, -2
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
PLENTY = 1 << 20
BY_NAME = 12
"""The last version of Fetch and of Produce that goes by topic name (KIP-516)."""

WAIT = 200
"""How long a fetch may wait, in ms: with no bytes to wait for, Kafka waits for nothing (ReplicaManager#fetchMessages).
Others read until the time is over, and read nothing where there is none."""

BEGAN, TICK = 1_600_000_000_000, 1000
"""Timestamps of records, in ms: the same in every run. Topics keep records for ever."""


class NotOfferedError(Exception):
    """The broker does not offer what is needed: a request in that version, a fetch session."""


class Entries(NamedTuple):
    """An epoch cache: leader epochs and the offsets of their first records."""

    epochs: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()


class Partition:
    """Partition 0 of a topic. `epoch` is that of its leader by the metadata, `end` what its log end must be; `batches`
    are their base and last offsets, `epochs` their leader epochs."""

    def __init__(self, link: Link, name: str, topic_id: UUID, epoch: int) -> None:
        self.link, self.name, self.id, self.epoch = link, name, topic_id, epoch
        self.batches: list[tuple[int, int]] = []
        self.epochs: list[int] = []
        self.timestamps: list[int] = []
        self.start = 0

    @property
    def end(self) -> int:
        """The log end offset."""
        return self.batches[-1][1] + 1 if self.batches else 0

    @property
    def entries(self) -> Entries:
        """Its epoch cache: a leader notes its epoch when it begins, and a later one at the same offset replaces it."""
        found: dict[int, int] = {}
        for (base, _), epoch in zip(self.batches, self.epochs, strict=True):
            found.setdefault(epoch, base)
        found.setdefault(self.epoch, self.end)
        return Entries(tuple(found), tuple(found.values()))

    def end_offset(self, epoch: int) -> tuple[int, int]:
        """What OffsetsForLeaderEpoch must say about an epoch."""
        return end_offset_for(*self.entries, self.end, epoch)

    def appended(self, records: int = 1) -> None:
        """A batch was written."""
        first = self.end
        self.batches.append((first, first + records - 1))
        self.epochs.append(self.epoch)
        self.timestamps += [self.timestamp(first)] * records

    @staticmethod
    def timestamp(offset: int) -> int:
        """That of the batch which begins there."""
        return BEGAN + offset * TICK

    # -----------------------------------------------------------------------------------------------------------------
    # Requests

    def version(self, name: str, least: int = 0, at_most: int | None = None) -> int:
        """The newest version that both sides have. Raises NotOfferedError."""
        offered = self.link.versions.get(name, range(0))
        version = offered.stop - 1 if at_most is None else min(offered.stop - 1, at_most)
        if version not in offered or version < least:
            seen = f"versions {offered.start} to {offered.stop - 1}" if offered else "none"
            bound = f"version {least} or newer" if at_most is None else f"a version up to {at_most}"
            raise NotOfferedError(f"{name}: needs {bound}; ApiVersions offers {seen}")
        return version

    def fetch(
        self,
        offset: int,
        *,
        current: int = UNDEFINED,
        last: int = UNDEFINED,
        replica: int = CONSUMER,
        isolation: int = READ_UNCOMMITTED,
        max_bytes: int = PLENTY,
        max_wait: int = WAIT,
        index: int = 0,
        session: int = INVALID_SESSION_ID,
        epoch: int = FINAL_EPOCH,
        version: int | None = None,
    ) -> WireRequest:
        """A fetch that has no bytes to wait for. `current` and `last` are the leader epochs that it carries, `session` and
        `epoch` say which session it belongs to: to none."""
        version = self._fetch_version(version)
        who: WireMessage = {"replicaId": replica} if version < 15 else {"replicaState": {"replicaId": replica}}
        partition = {
            "partition": index,
            "currentLeaderEpoch": current,
            "fetchOffset": offset,
            "lastFetchedEpoch": last,
            "partitionMaxBytes": max_bytes,
        }
        topics = [{"topicId": self.id, "topic": self.name, "partitions": [partition]}]
        limits = {"maxWaitMs": max_wait, "minBytes": 0, "maxBytes": max_bytes, "isolationLevel": isolation}
        return WireRequest(
            "Fetch", version, {**who, **limits, "sessionId": session, "sessionEpoch": epoch, "topics": topics}
        )

    def place(self, version: int, index: int = 0) -> str:
        """What a fetch of this version calls the partition."""
        return f"{self.name if version <= BY_NAME else self.id}-{index}"

    def _fetch_version(self, version: int | None) -> int:
        """A broker that gives topics no ids is fetched from by name."""
        return self.version("Fetch", at_most=None if self.id.int else BY_NAME) if version is None else version

    def list_offsets(
        self,
        timestamp: int,
        *,
        current: int = UNDEFINED,
        replica: int = CONSUMER,
        isolation: int = READ_UNCOMMITTED,
        index: int = 0,
        version: int | None = None,
    ) -> WireRequest:
        """The offset of a timestamp, or of a place that has a negative one."""
        partition = {"partitionIndex": index, "currentLeaderEpoch": current, "timestamp": timestamp}
        topics = [{"name": self.name, "partitions": [partition]}]
        body = {"replicaId": replica, "isolationLevel": isolation, "topics": topics}
        return WireRequest("ListOffsets", self.version("ListOffsets") if version is None else version, body)

    def offsets_for_leader_epoch(
        self, epoch: int, *, current: int = UNDEFINED, index: int = 0, version: int | None = None
    ) -> WireRequest:
        """Where a leader epoch ends."""
        partition = {"partition": index, "currentLeaderEpoch": current, "leaderEpoch": epoch}
        body = {"replicaId": CONSUMER, "topics": [{"topic": self.name, "partitions": [partition]}]}
        name = "OffsetForLeaderEpoch"
        return WireRequest(name, self.version(name) if version is None else version, body)

    def produce(
        self,
        records: bytes,
        acks: int = -1,
        *,
        index: int = 0,
        timeout_ms: int = 5000,
        version: int | None = None,
    ) -> WireRequest:
        """Some bytes as records."""
        data = {"index": index, "records": records}
        topics = [{"topicId": self.id, "name": self.name, "partitionData": [data]}]
        body = {"acks": acks, "timeoutMs": timeout_ms, "topicData": topics}
        return WireRequest("Produce", self.version("Produce", at_most=BY_NAME) if version is None else version, body)

    def delete_records(self, offset: int, *, index: int = 0) -> WireRequest:
        """Delete what lies before an offset."""
        partitions = [{"partitionIndex": index, "offset": offset}]
        body = {"topics": [{"name": self.name, "partitions": partitions}], "timeoutMs": 5000}
        return WireRequest("DeleteRecords", self.version("DeleteRecords"), body)

    def elsewhere(self, name: str, topic_id: UUID) -> "Partition":
        """The same of a topic that is not there."""
        return Partition(self.link, name, topic_id, self.epoch)


def batch(partition: Partition, records: int = 1, change: Callable[[RecordBatch], RecordBatch] | None = None) -> bytes:
    """The next batch for a partition, as a producer sends it: offsets from 0, no leader epoch."""
    plain = batch_of(0, UNDEFINED, _values(partition.end, records), partition.timestamp(partition.end))
    return encode(change(plain) if change else plain)


def _values(first: int, records: int) -> Iterable[bytes]:
    return (b"%d" % (first + n) for n in range(records))

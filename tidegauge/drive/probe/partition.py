"""A partition of one of the probe's topics: what was written to it, and requests about it.

Rules of this file

1. What its log must contain follows from what was written: a record per offset, with the leader epoch of that time.
   Expectations are computed from that by the rules of `impl`, not from what the broker says of itself.
2. A request has the newest version that both sides have, unless the caller limits it (`at_most`). The codec leaves out
   fields that a version cannot carry where Kafka's own does.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple
from uuid import UUID

from tidegauge.drive.probe.connection import BrokerConnection
from tidegauge.drive.wire.compiler import WireMessage
from tidegauge.drive.wire.frames import WireRequest
from tidegauge.impl.fetch.fetch_session import FINAL_EPOCH, INITIAL_EPOCH, INVALID_SESSION_ID, next_session_epoch
from tidegauge.impl.rules import UNDEFINED, end_offset_for
from tidegauge.traces.segments import RecordBatch, batch_of, encode

CONSUMER, DEBUGGING_CONSUMER = -1, -2
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
PLENTY = 1 << 20
BY_NAME = 12
"""The last version of Fetch and of Produce that names topics (KIP-516)."""

WAIT = 200
"""Milliseconds that a fetch may wait. With no bytes to wait for, Kafka does not wait (ReplicaManager#fetchMessages). Other
brokers read until the time is over, and without any time read nothing."""

BEGAN, TICK = 1_600_000_000_000, 1000
"""Timestamps of records, in ms: the same in every run. The topics keep records for ever."""


class NotOfferedError(Exception):
    """The broker does not offer what a check needs: a request in that version, a fetch session."""


class ReportedEpochEntries(NamedTuple):
    """An epoch cache: leader epochs and the offsets of their first records."""

    epochs: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()


class ProbePartition:
    """Partition 0 of a topic, and what its log must contain.

    `epoch`: of its leader, from the metadata; `batches`: base and last offset of each batch; `epochs`: the leader epoch of
    each batch; `start`: the log start.
    """

    def __init__(self, connection: BrokerConnection, name: str, topic_id: UUID, epoch: int) -> None:
        """Take a partition whose log is empty; `epoch` is its leader epoch."""
        self.connection, self.name, self.id, self.epoch = connection, name, topic_id, epoch
        self.batches: list[tuple[int, int]] = []
        self.epochs: list[int] = []
        self.timestamps: list[int] = []
        self.start = 0

    @property
    def end(self) -> int:
        """The log end offset that it must have."""
        return self.batches[-1][1] + 1 if self.batches else 0

    @property
    def entries(self) -> ReportedEpochEntries:
        """The epoch cache that its leader must have."""
        starts: dict[int, int] = {}
        for (base, _), epoch in zip(self.batches, self.epochs, strict=True):
            starts.setdefault(epoch, base)
        # A leader notes its epoch when it begins, also without a record. An earlier epoch that got no record was at the same
        # offset and has been replaced (LeaderEpochFileCache#assign).
        starts.setdefault(self.epoch, self.end)
        return ReportedEpochEntries(tuple(starts), tuple(starts.values()))

    def end_offset(self, epoch: int) -> tuple[int, int]:
        """Return what OffsetsForLeaderEpoch must answer for an epoch."""
        return end_offset_for(*self.entries, self.end, epoch)

    def appended(self, records: int = 1) -> None:
        """Note that a batch was written."""
        first = self.end
        self.batches.append((first, first + records - 1))
        self.epochs.append(self.epoch)
        self.timestamps += [self.timestamp(first)] * records

    @staticmethod
    def timestamp(offset: int) -> int:
        """Return the timestamp of the batch that begins at an offset."""
        return BEGAN + offset * TICK

    # -----------------------------------------------------------------------------------------------------------------
    # Requests

    def version(self, name: str, least: int = 0, at_most: int | None = None) -> int:
        """Return the newest version of a request that both sides have. Raises NotOfferedError."""
        offered = self.connection.versions.get(name, range(0))
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
        """Make a fetch that has no bytes to wait for.

        `current`, `last`: the current leader epoch and the last fetched epoch that it carries. `session`, `epoch`: session
        id and session epoch, by default of no session. `index`: another partition of the topic.
        """
        if version is None:
            # A broker that gives topics no ids is fetched from by name.
            version = self.version("Fetch", at_most=None if self.id.int else BY_NAME)
        sender: WireMessage = {"replicaId": replica} if version < 15 else {"replicaState": {"replicaId": replica}}
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
            "Fetch", version, {**sender, **limits, "sessionId": session, "sessionEpoch": epoch, "topics": topics}
        )

    def place(self, version: int, index: int = 0) -> str:
        """Return what a response to a fetch of this version calls the partition."""
        return f"{self.name if version <= BY_NAME else self.id}-{index}"

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
        """Ask for the offset of a timestamp, or of one of the places with negative timestamps (LATEST and so on)."""
        partition = {"partitionIndex": index, "currentLeaderEpoch": current, "timestamp": timestamp}
        topics = [{"name": self.name, "partitions": [partition]}]
        body = {"replicaId": replica, "isolationLevel": isolation, "topics": topics}
        return WireRequest("ListOffsets", self.version("ListOffsets") if version is None else version, body)

    def offsets_for_leader_epoch(
        self, epoch: int, *, current: int = UNDEFINED, index: int = 0, version: int | None = None
    ) -> WireRequest:
        """Ask where a leader epoch ends."""
        partition = {"partition": index, "currentLeaderEpoch": current, "leaderEpoch": epoch}
        body = {"replicaId": CONSUMER, "topics": [{"topic": self.name, "partitions": [partition]}]}
        name = "OffsetForLeaderEpoch"
        return WireRequest(name, self.version(name) if version is None else version, body)

    def produce(
        self, records: bytes, acks: int = -1, *, index: int = 0, timeout_ms: int = 5000, version: int | None = None
    ) -> WireRequest:
        """Produce some bytes as records."""
        data = {"index": index, "records": records}
        topics = [{"topicId": self.id, "name": self.name, "partitionData": [data]}]
        body = {"acks": acks, "timeoutMs": timeout_ms, "topicData": topics}
        return WireRequest("Produce", self.version("Produce", at_most=BY_NAME) if version is None else version, body)

    def delete_records(self, offset: int, *, index: int = 0, version: int | None = None) -> WireRequest:
        """Delete the records before an offset."""
        partitions = [{"partitionIndex": index, "offset": offset}]
        body = {"topics": [{"name": self.name, "partitions": partitions}], "timeoutMs": 5000}
        return WireRequest("DeleteRecords", self.version("DeleteRecords") if version is None else version, body)

    def elsewhere(self, name: str, topic_id: UUID) -> "ProbePartition":
        """Return a partition of another topic, which does not exist, at the same broker."""
        return ProbePartition(self.connection, name, topic_id, self.epoch)


def next_batch(
    partition: ProbePartition, records: int = 1, change: Callable[[RecordBatch], RecordBatch] | None = None
) -> bytes:
    """Encode the next batch for a partition as a producer sends it: offsets from 0, no leader epoch.

    `change`: changes the batch before it is encoded.
    """
    values = (b"%d" % (partition.end + n) for n in range(records))
    plain = batch_of(0, UNDEFINED, values, partition.timestamp(partition.end))
    return encode(change(plain) if change else plain)


# A fetch session (KIP-227): the broker remembers a client's fetch, so that the next request names only what has changed.
#
# Rules of this part
#
# 1. A full fetch names every partition. Its session epoch is 0 to ask for a session, -1 to ask for none; either closes the
#    session that it names. An incremental fetch has the next session epoch.
# 2. Offsets, limits and leader epochs of a partition stay as they were last named.


class ProbeSession:
    """The client's side of a fetch session. `epoch`: of its next request; `is_open`: whether the broker may still have it.

    `opening`: the request that asked for it, whose limits all others have; `opened`: the response.
    """

    def __init__(self, connection: BrokerConnection, opening: WireRequest, opened: WireMessage) -> None:
        """Take the session that a response has opened: the next request has epoch 1."""
        self.connection, self.opening, self.opened = connection, opening, opened
        self.id: int = opened["sessionId"]
        self.epoch = next_session_epoch(INITIAL_EPOCH)
        self.is_open = True

    def next(self, *changed: WireRequest, forget: Iterable[ProbePartition] = ()) -> WireRequest:
        """Make the next incremental fetch: with these partitions changed, without those to forget."""
        call = self.at(self.epoch, *changed, forget=forget)
        self.epoch = next_session_epoch(self.epoch)
        return call

    def at(self, epoch: int, *changed: WireRequest, forget: Iterable[ProbePartition] = ()) -> WireRequest:
        """Make a fetch with any session epoch, and leave the session's as it is."""
        return session_fetch(self.opening, *changed, session=self.id, epoch=epoch, forget=forget)

    def closing(self) -> WireRequest:
        """Make a full fetch of nothing that closes the session and asks for no other."""
        self.is_open = False  # not closed a second time at the end
        return self.at(FINAL_EPOCH)

    def replaced(self) -> WireRequest:
        """Make a full fetch of the same that closes the session and asks for another."""
        self.is_open = False
        return self.opening._replace(body={**self.opening.body, "sessionId": self.id})


def opening_fetch(first: WireRequest, *others: WireRequest) -> WireRequest:
    """Make a full fetch of the partitions of some fetches, in their order, that asks for a session."""
    return session_fetch(first, first, *others, session=INVALID_SESSION_ID, epoch=INITIAL_EPOCH)


def session_fetch(
    like: WireRequest, *fetches: WireRequest, session: int, epoch: int, forget: Iterable[ProbePartition] = ()
) -> WireRequest:
    """Make a fetch of the partitions of `fetches`, with the version and the limits of `like`."""
    named = [topic for fetch in fetches for topic in fetch.body["topics"]]
    forgotten = [{"topicId": partition.id, "topic": partition.name, "partitions": [0]} for partition in forget]
    body = {**like.body, "sessionId": session, "sessionEpoch": epoch, "topics": named}
    return like._replace(body={**body, **({"forgottenTopicsData": forgotten} if forgotten else {})})

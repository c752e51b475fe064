"""A partition of one of the probe's topics: what was written to it, and requests about it; and fetch sessions.

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
"""Replica ids of clients that are no replicas; the second may read above the high watermark."""
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
"""Timestamps with a special meaning in ListOffsets."""
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
PLENTY = 1 << 20
"""Bytes that a fetch may return: more than the probe ever writes."""
BY_NAME = 12
"""The last version of Fetch and of Produce that names topics (KIP-516)."""

WAIT = 200
"""Milliseconds that a fetch may wait. With no bytes to wait for, Kafka does not wait (ReplicaManager#fetchMessages). Other
brokers read until the time is over, and without any time read nothing."""

BEGAN, TICK = 1_600_000_000_000, 1000
"""Timestamps of records, in ms: the same in every run. The topics keep records for ever."""


class NotOfferedError(Exception):
    """The broker does not offer what a check needs: a request in some version, or a fetch session."""


class ReportedEpochEntries(NamedTuple):
    """An epoch cache: leader epochs and the offsets of their first records."""

    epochs: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()


class ProbePartition:
    """Partition 0 of a topic, and what its log must contain.

    `connection`: to its leader; `name`, `id`: of its topic; `epoch`: of its leader, from the metadata; `batches`: base and
    last offset of each batch; `epochs`: leader epoch of each batch; `timestamps`: one per offset; `start`: the log start.
    """

    def __init__(self, connection: BrokerConnection, name: str, topic_id: UUID, epoch: int) -> None:
        """Take a partition whose log is empty; a topic without an id has UUID 0."""
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
        """The epoch cache that its leader must have: leader epochs, and the offset of the first record of each."""
        starts: dict[int, int] = {}
        for (base, _), epoch in zip(self.batches, self.epochs, strict=True):
            starts.setdefault(epoch, base)
        # A leader notes its epoch when it begins, also without a record. An earlier epoch that got no record was at the same
        # offset and has been replaced (LeaderEpochFileCache#assign).
        starts.setdefault(self.epoch, self.end)
        return ReportedEpochEntries(tuple(starts), tuple(starts.values()))

    def end_offset(self, epoch: int) -> tuple[int, int]:
        """Return what the response to OffsetsForLeaderEpoch must have for an epoch: (leader epoch, end offset)."""
        return end_offset_for(*self.entries, self.end, epoch)

    def appended(self, records: int = 1) -> None:
        """Note that the broker must have appended a batch of so many records at the log end."""
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
        """Return the newest version of a request that both sides have, within bounds. Raises NotOfferedError for none.

        `least`, `at_most`: the lowest and the highest version that the caller can use; None for no limit.
        """
        offered = self.connection.versions.get(name, range(0))
        # -1, which is in no range, where none is offered.
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
        """Make a fetch that has no bytes to wait for (min bytes 0).

        `current`, `last`: the current leader epoch and the last fetched epoch that it carries. `replica`: the replica id of
        the sender. `max_bytes`: of the partition and of the response. `max_wait`: in milliseconds. `session`, `epoch`:
        session id and session epoch, by default of no session. `index`: the number of the partition. `version`: by default
        the newest that can name the topic.
        """
        if version is None:
            # A broker that gives topics no ids is fetched from by name.
            version = self.version("Fetch", at_most=None if self.id.int else BY_NAME)
        # Since version 15 the replica id is in a struct of its own (KIP-903).
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
        """Return "topic-index" for the partition, as `session_response` names it after a fetch of this version.

        The topic is its name, or its id in the versions that have only ids.
        """
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
        """Make a ListOffsets request for a timestamp in ms, or for one of those with a special meaning (LATEST and so on).

        `current`: the current leader epoch that it carries; `replica`, `index`, `version`: as in `fetch`.
        """
        partition = {"partitionIndex": index, "currentLeaderEpoch": current, "timestamp": timestamp}
        topics = [{"name": self.name, "partitions": [partition]}]
        body = {"replicaId": replica, "isolationLevel": isolation, "topics": topics}
        return WireRequest("ListOffsets", self.version("ListOffsets") if version is None else version, body)

    def offsets_for_leader_epoch(
        self, epoch: int, *, current: int = UNDEFINED, index: int = 0, version: int | None = None
    ) -> WireRequest:
        """Make an OffsetsForLeaderEpoch request for the end of `epoch`; `current`: the current leader epoch it carries.

        `index`, `version`: as in `fetch`.
        """
        partition = {"partition": index, "currentLeaderEpoch": current, "leaderEpoch": epoch}
        body = {"replicaId": CONSUMER, "topics": [{"topic": self.name, "partitions": [partition]}]}
        name = "OffsetForLeaderEpoch"
        return WireRequest(name, self.version(name) if version is None else version, body)

    def produce(
        self, records: bytes, acks: int = -1, *, index: int = 0, timeout_ms: int = 5000, version: int | None = None
    ) -> WireRequest:
        """Make a Produce request with encoded batches, or with bytes that are none; acks -1 means all.

        `index`: the number of the partition; `version`: by default the newest that names the topic.
        """
        data = {"index": index, "records": records}
        topics = [{"topicId": self.id, "name": self.name, "partitionData": [data]}]
        body = {"acks": acks, "timeoutMs": timeout_ms, "topicData": topics}
        # Up to this version a request names the topic, which also works where topics have no ids.
        return WireRequest("Produce", self.version("Produce", at_most=BY_NAME) if version is None else version, body)

    def delete_records(self, offset: int, *, index: int = 0, version: int | None = None) -> WireRequest:
        """Make a DeleteRecords request: the log start shall become `offset`; -1 stands for the high watermark."""
        partitions = [{"partitionIndex": index, "offset": offset}]
        body = {"topics": [{"name": self.name, "partitions": partitions}], "timeoutMs": 5000}
        return WireRequest("DeleteRecords", self.version("DeleteRecords") if version is None else version, body)

    def elsewhere(self, name: str, topic_id: UUID) -> "ProbePartition":
        """Return a partition of a topic that does not exist, to send requests about it to the same broker."""
        return ProbePartition(self.connection, name, topic_id, self.epoch)


def next_batch(
    partition: ProbePartition, records: int = 1, change: Callable[[RecordBatch], RecordBatch] | None = None
) -> bytes:
    """Encode the next batch for a partition as a producer sends it: offsets from 0, no leader epoch.

    The value of each record is the offset that it gets. `change` returns the batch to encode in place of the usual one.
    """
    values = (b"%d" % (partition.end + n) for n in range(records))
    # (base offset, leader epoch, values, timestamp): the leader sets the first two.
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

    `opening`: the request that asked for it, whose version and limits all others have; `opened`: the response.
    """

    def __init__(self, connection: BrokerConnection, opening: WireRequest, opened: WireMessage) -> None:
        """Take the session that the response `opened` gave an id: the next request has epoch 1."""
        self.connection, self.opening, self.opened = connection, opening, opened
        self.id: int = opened["sessionId"]
        self.epoch = next_session_epoch(INITIAL_EPOCH)
        self.is_open = True

    def next(self, *changed: WireRequest, forget: Iterable[ProbePartition] = ()) -> WireRequest:
        """Make the next incremental fetch, and count the session epoch on.

        `changed`: fetches, whose partitions are added to the session or get other offsets and limits in it; `forget`:
        partitions that leave the session.
        """
        call = self.at(self.epoch, *changed, forget=forget)
        self.epoch = next_session_epoch(self.epoch)
        return call

    def at(self, epoch: int, *changed: WireRequest, forget: Iterable[ProbePartition] = ()) -> WireRequest:
        """Make an incremental fetch with the given session epoch, right or wrong, and leave that of the session as it is."""
        return session_fetch(self.opening, *changed, session=self.id, epoch=epoch, forget=forget)

    def closing(self) -> WireRequest:
        """Make a full fetch of no partitions that closes the session and asks for no other."""
        self.is_open = False  # else it would be closed a second time when the probe ends
        return self.at(FINAL_EPOCH)

    def replaced(self) -> WireRequest:
        """Make a full fetch of the same partitions that closes the session and asks for another."""
        self.is_open = False
        # The opening has session epoch 0, which asks for a session.
        return self.opening._replace(body={**self.opening.body, "sessionId": self.id})


def opening_fetch(first: WireRequest, *others: WireRequest) -> WireRequest:
    """Make a full fetch that asks for a session with the partitions of some fetches, in their order."""
    # `first` is one of the fetches, and also gives version and limits to the request.
    return session_fetch(first, first, *others, session=INVALID_SESSION_ID, epoch=INITIAL_EPOCH)


def session_fetch(
    like: WireRequest, *fetches: WireRequest, session: int, epoch: int, forget: Iterable[ProbePartition] = ()
) -> WireRequest:
    """Make a fetch that names the partitions of `fetches` and those to `forget`, with the version and limits of `like`.

    `session`, `epoch`: session id and session epoch.
    """
    topics = [topic for fetch in fetches for topic in fetch.body["topics"]]
    # A topic of the probe has one partition, 0.
    forgotten = [{"topicId": partition.id, "topic": partition.name, "partitions": [0]} for partition in forget]
    body = {**like.body, "sessionId": session, "sessionEpoch": epoch, "topics": topics}
    return like._replace(body={**body, **({"forgottenTopicsData": forgotten} if forgotten else {})})

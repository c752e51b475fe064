"""The metadata log of a controller as an observer of the quorum reads it: Fetch of __cluster_metadata with replica id -1.

Source: KIP-595 (observers, diverging and fenced epochs), KIP-631 (the frame of a metadata record, MetadataRecordSerde).
"""

from tidegauge.drive.controller.metadata_image import LogRecord
from tidegauge.drive.kafka_broker.controller_stub import TOPIC_ID
from tidegauge.drive.wire.compiler import Cursor, WireError, WireMessage, read_uvarint
from tidegauge.drive.wire.frames import Connection
from tidegauge.drive.wire.messages import Messages
from tidegauge.impl.rules import FENCED_LEADER_EPOCH, NONE, NOT_LEADER_OR_FOLLOWER, UNDEFINED, UNKNOWN_LEADER_EPOCH
from tidegauge.traces.segments.record_batch import decode, header

PLENTY = 1 << 24
NEWEST = 17
"""Later versions of Fetch add nothing that an observer reads."""

FIRST_EPOCH = 1
OTHER_EPOCH = frozenset({FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER})


class Observer:
    """Reads a log from its beginning on. `epoch` is the leader epoch of the quorum."""

    def __init__(self, messages: Messages, connection: Connection, version: int) -> None:
        self._messages, self._connection, self._version = messages, connection, min(NEWEST, version)
        self._names = {messages.api_key(name): name for name in messages.metadata_records()}
        self.epoch, self.at, self._last_epoch = FIRST_EPOCH, 0, UNDEFINED

    async def read(self) -> list[LogRecord]:
        """Read the committed records after those read before; none if the quorum turns out to have a newer leader epoch."""
        records: list[LogRecord] = []
        while True:
            response = await self._connection.request("Fetch", self._version, self._request())
            part = response["responses"][0]["partitions"][0] if not response["errorCode"] else response
            # The response names the leader epoch, with which the caller's next read succeeds.
            if part["errorCode"] in OTHER_EPOCH and "currentLeader" in part:
                self.epoch = max(self.epoch, part["currentLeader"]["leaderEpoch"])
                return records
            if part["errorCode"] != NONE:
                raise WireError(f"metadata log: expected to read from offset {self.at}; seen error {part['errorCode']}")
            new = self._records(part["records"] or b"", part["highWatermark"])
            records += [record for batch in new for record in batch]
            if not new or self.at >= part["highWatermark"]:
                return records

    def close(self) -> None:
        """Hang up."""
        self._connection.close()

    def _request(self) -> WireMessage:
        partition = {
            "partition": 0,
            "currentLeaderEpoch": self.epoch,
            "fetchOffset": self.at,
            "lastFetchedEpoch": max(self._last_epoch, 0),
            "logStartOffset": UNDEFINED,
            "partitionMaxBytes": PLENTY,
        }
        sender = {"replicaState": {"replicaId": UNDEFINED}} if self._version >= 15 else {"replicaId": UNDEFINED}
        limits = {"maxWaitMs": 0, "minBytes": 0, "maxBytes": PLENTY, "sessionId": 0, "sessionEpoch": UNDEFINED}
        return {**sender, **limits, "topics": [{"topicId": TOPIC_ID, "partitions": [partition]}]}

    def _records(self, data: bytes, high_watermark: int) -> list[list[LogRecord]]:
        """Decode the records of each whole batch below the high watermark."""
        batches, at = [], 0
        while at < len(data):
            batch, end = header(data, at)
            if batch.base >= high_watermark:
                break
            # A control batch (a new leader's, a snapshot's) is the quorum's own and changes nothing in the cluster.
            records = [] if batch.is_control else decode(data, at)[0].records
            batches.append([self._record(record.offset, record.value or b"") for record in records])
            self.at, self._last_epoch, at = batch.last + 1, batch.epoch, end
        return batches

    def _record(self, offset: int, value: bytes) -> LogRecord:
        cursor = Cursor(value)
        _, key, version = (read_uvarint(cursor) for _ in range(3))
        if key not in self._names:
            raise WireError(f"metadata log, offset {offset}: expected a record of this release; seen API key {key}")
        name = self._names[key]
        return LogRecord(offset, name, self._messages.read(name, version, value, cursor.at)[0])

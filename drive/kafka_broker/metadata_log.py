"""The cluster's metadata as a log: records in batches, each at an offset of its own, as a KRaft controller writes them.

Source: KIP-500, KIP-631; a record is a frame version, an API key, a version and a message (MetadataRecordSerde).
"""

import time
from bisect import bisect_left
from typing import NamedTuple
from uuid import UUID

from tidegauge.drive.wire.compiler import Message
from tidegauge.drive.wire.messages import Messages
from tidegauge.drive.wire.primitives import write_uvarint
from tidegauge.traces.segments.record_batch import batch_of, encode

FRAME_VERSION = 1
TOPIC_NAME, TOPIC_ID = "__cluster_metadata", UUID(int=1)


class MetadataRecord(NamedTuple):
    """A record by the name of its definition. `version` None: the newest that the release has."""

    name: str
    body: Message
    version: int | None = None


class MetadataLog:
    """Batches of records in one leader epoch of the quorum."""

    def __init__(self, messages: Messages, epoch: int) -> None:
        self._messages, self.epoch, self.end = messages, epoch, 0
        self._batches: list[bytes] = []
        self._bases: list[int] = []

    def append(self, *records: MetadataRecord) -> int:
        """Write some records as one batch; the offset of the last."""
        values = [self._value(*record) for record in records]
        self._batches.append(encode(batch_of(self.end, self.epoch, values, int(time.time() * 1000))))
        self._bases.append(self.end)
        self.end += len(values)
        return self.end - 1

    def read(self, offset: int) -> bytes:
        """Every batch from an offset on, where a batch begins."""
        return b"".join(self._batches[bisect_left(self._bases, offset) :])

    def newest(self, name: str) -> int:
        """The newest version of a record."""
        return self._messages.versions(name).stop - 1

    def _value(self, name: str, body: Message, version: int | None) -> bytes:
        version = self.newest(name) if version is None else version
        out = bytearray()
        for number in (FRAME_VERSION, self._messages.api_key(name), version):
            write_uvarint(out, number)
        return bytes(out) + self._messages.write(name, version, body)

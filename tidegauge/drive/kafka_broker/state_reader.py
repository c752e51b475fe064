"""Reads the state of the broker's replicas by the requests of ordinary clients.

Rules of this file

1. The log end is that of ListOffsets as replica -2, a debugging consumer, which followers serve as well.
2. The high watermark and the log start are those of a consumer's fetch at the log end (KIP-392 lets followers serve it).
3. The end of each epoch in the epoch cache is the diverging epoch of a consumer's fetch one offset further (KIP-595).
"""

from collections.abc import Mapping
from typing import NamedTuple

from tidegauge.drive.kafka_broker.clients import (
    DEBUGGING_CONSUMER,
    LATEST_TIMESTAMP,
    PartitionRequests,
    Topic,
    diverging_of,
    fetched_partition,
)
from tidegauge.drive.wire.compiler import WireMessage
from tidegauge.drive.wire.frames import Connection
from tidegauge.impl.rules import NONE, OFFSET_OUT_OF_RANGE, UNDEFINED

Reading = int | Mapping[str, int]
"""A value that was read, or the error with which the broker refused to name it: `{"error": 56}`."""


class ReadReplicaState(NamedTuple):
    """The state of a replica. `ends`: what its epoch cache answers for each leader epoch from 0, as (epoch, end offset)."""

    leo: int
    hw: Reading
    log_start: Reading
    ends: tuple[tuple[int, int] | Mapping[str, int], ...]


class StateReader:
    """Reads partitions of one process of the broker."""

    def __init__(self, connection: Connection, requests: PartitionRequests) -> None:
        self._connection, self._requests = connection, requests

    async def read(self, topic: Topic, epochs: int) -> ReadReplicaState | Mapping[str, int]:
        """Read the broker's replica of a partition and the ends of its first `epochs` leader epochs.

        A broker that refuses one of these requests has a replica that differs: its error stands in place of the value, that
        of the log end in place of all. Raises OSError and WireError.
        """
        leo = await self.log_end(topic)
        if not isinstance(leo, int):
            return leo
        requests = self._requests
        fetches = [
            requests.fetch(topic, leo),
            *(requests.fetch(topic, leo + 1, last_fetched_epoch=epoch) for epoch in range(epochs)),
        ]
        at_end, *beyond_end = map(fetched_partition, await self._connection.exchange(fetches))
        ends = tuple(map(_end_of, beyond_end))
        if at_end["errorCode"] != NONE:
            refused = {"error": at_end["errorCode"]}
            return ReadReplicaState(leo, refused, refused, ends)
        return ReadReplicaState(leo, at_end["highWatermark"], at_end["logStartOffset"], ends)

    async def log_end(self, topic: Topic) -> Reading:
        """Read the log end offset. Raises OSError and WireError."""
        list_offsets = self._requests.list_offsets(topic, LATEST_TIMESTAMP, DEBUGGING_CONSUMER)
        (listed,) = await self._connection.exchange([list_offsets])
        latest: WireMessage = listed["topics"][0]["partitions"][0]
        return latest["offset"] if latest["errorCode"] == NONE else {"error": latest["errorCode"]}


def _end_of(partition: WireMessage) -> tuple[int, int] | Mapping[str, int]:
    # An epoch after all that the cache knows is OFFSET_OUT_OF_RANGE one offset beyond the end: it has no end.
    if partition["errorCode"] not in {NONE, OFFSET_OUT_OF_RANGE}:
        return {"error": partition["errorCode"]}
    return diverging_of(partition) or (UNDEFINED, UNDEFINED)

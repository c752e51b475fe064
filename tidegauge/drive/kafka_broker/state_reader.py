"""Reads the state of the broker's replicas by the requests of ordinary clients.

Rules of this file

1. The log end is that of ListOffsets as replica -2, a debugging consumer, which followers serve as well.
2. The high watermark and the log start are those of a consumer's fetch at the log end (KIP-392 lets followers serve it).
3. The end of each epoch in the epoch cache is the diverging epoch of a consumer's fetch one offset further (KIP-595).
"""

from typing import Any, NamedTuple

from tidegauge.drive.kafka_broker.clients import (
    DEBUGGING_CONSUMER,
    LATEST_TIMESTAMP,
    PartitionRequests,
    Topic,
    diverging_of,
    fetched_partition,
)
from tidegauge.drive.wire.compiler import WireError
from tidegauge.drive.wire.frames import Connection
from tidegauge.impl.rules import NONE, OFFSET_OUT_OF_RANGE, UNDEFINED


class ReadReplicaState(NamedTuple):
    """The state of a replica. `ends`: what its epoch cache answers for each leader epoch from 0, as (epoch, end offset)."""

    leo: int
    hw: int
    log_start: int
    ends: tuple[tuple[int, int], ...]


class StateReader:
    """Reads partitions of one process of the broker."""

    def __init__(self, connection: Connection, requests: PartitionRequests) -> None:
        self._connection, self._requests = connection, requests

    async def read(self, topic: Topic, epochs: int) -> ReadReplicaState:
        """Read the broker's replica of a partition and the ends of its first `epochs` leader epochs.

        Raises WireError when the broker has none, and OSError.
        """
        requests = self._requests
        list_offsets = requests.list_offsets(topic, LATEST_TIMESTAMP, DEBUGGING_CONSUMER)
        (listed,) = await self._connection.exchange([list_offsets])
        latest = listed["topics"][0]["partitions"][0]
        if latest["errorCode"] != NONE:
            raise WireError(f"{topic.name}: expected the log end offset; seen error {latest['errorCode']}")
        leo: Any = latest["offset"]
        fetches = [
            requests.fetch(topic, leo),
            *(requests.fetch(topic, leo + 1, last_fetched_epoch=epoch) for epoch in range(epochs)),
        ]
        at_end, *beyond_end = map(fetched_partition, await self._connection.exchange(fetches))
        # An epoch after all that the cache knows is OFFSET_OUT_OF_RANGE one offset beyond the end: it has no end.
        if at_end["errorCode"] != NONE or any(
            partition["errorCode"] not in {NONE, OFFSET_OUT_OF_RANGE} for partition in beyond_end
        ):
            raise WireError(f"{topic.name}: expected its high watermark at offset {leo}; seen {at_end}, {beyond_end}")
        ends = tuple(diverging_of(partition) or (UNDEFINED, UNDEFINED) for partition in beyond_end)
        return ReadReplicaState(leo, at_end["highWatermark"], at_end["logStartOffset"], ends)

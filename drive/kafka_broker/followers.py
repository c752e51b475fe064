"""Fetches of peers that may wait in the broker's purgatory. Each has a connection of its own, for a broker takes one request
of a connection at a time (KafkaChannel#mute)."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from tidegauge.drive.kafka_broker.worker_slot import Lane
from tidegauge.drive.wire.compiler import Message
from tidegauge.drive.wire.frames import Call, Connection

ROUNDS = 4
"""Of requests of another connection, until it is known whether a fetch waits. When the first is answered the fetch has been
read, for it was there before; when the second is, it has been handled, for one thread handles requests; when the third is,
its response has been written. The last gives this process a turn to read it."""


Read = Callable[[Message], Message | None]
"""What a response says of the one partition; None for nothing."""


class Waiting(NamedTuple):
    """A fetch whose response is not there yet, and how it is read."""

    connection: Connection
    response: "asyncio.Task[list[Message]]"
    read: Read


class Followers:
    """The fetches that wait, by peer."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._waiting: dict[int, Waiting] = {}

    async def fetch(self, peer: int, call: Call, read: Read) -> Message | None:
        """Send a fetch; what its response says of the partition, None if it waits."""
        connection = await self._lane.broker.connect()
        await connection.round_trip()  # the broker serves this connection: what is sent now is read with what others send
        self._waiting[peer] = Waiting(connection, asyncio.create_task(connection.calls([call])), read)
        await asyncio.sleep(0)  # it is sent
        for _ in range(ROUNDS):
            await self._lane.connection.round_trip()
        return self.answered().get(peer)

    def answered(self) -> dict[int, Message | None]:
        """The responses that have come since this was last asked, by peer: what each says of the partition."""
        done = {peer: waiting for peer, waiting in self._waiting.items() if waiting.response.done()}
        for peer, waiting in done.items():
            del self._waiting[peer]
            waiting.connection.close()
        return {peer: waiting.read(waiting.response.result()[0]) for peer, waiting in sorted(done.items())}

    def close(self) -> None:
        """Nobody waits any more."""
        for waiting in self._waiting.values():
            waiting.response.cancel()
            waiting.connection.close()
        self._waiting = {}

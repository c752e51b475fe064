"""A lane: peers and a connection that one path at a time is played with. Brokers are named 1, 2, .. in steps; a lane has
broker ids of its own for all but the first."""

from collections.abc import Mapping
from uuid import uuid4

from tidegauge.drive.kafka.broker import KafkaBroker
from tidegauge.drive.kafka.clients import Topic
from tidegauge.drive.kafka.peers import Peer
from tidegauge.drive.wire.frames import Connection


class Lane:
    """Peers of its own, and a connection."""

    connection: Connection

    def __init__(self, broker: KafkaBroker, number: int) -> None:
        self.broker, self._number, self._opened = broker, number, 0
        self.peers: Mapping[int, Peer] = {name: broker.peer(100 + 10 * number + name) for name in (2, 3)}

    async def register(self) -> None:
        """Register the peers."""
        for peer in self.peers.values():
            await peer.start()

    async def up(self) -> None:
        """Connect to a process that has started, and wait for its first fetches."""
        self.connection = await self.broker.connect()
        for peer in self.peers.values():
            await peer.asked()

    def gone(self) -> None:
        """The process has ended."""
        self.connection.close()
        for peer in self.peers.values():
            peer.gone()

    def topic(self) -> Topic:
        """A new topic, which the broker has not heard of."""
        self._opened += 1
        return Topic(uuid4(), f"p{self._number}-{self._opened}")

    def close(self) -> None:
        """Stop the peers, and hang up."""
        if hasattr(self, "connection"):
            self.connection.close()
        for peer in self.peers.values():
            peer.close()

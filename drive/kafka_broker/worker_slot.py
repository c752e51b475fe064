"""A lane: peers and a connection that one path at a time is played with. Brokers are named 1, 2, .. in steps; a lane has
broker ids of its own for all but the first.

The peers are in sync on another partition, too, which the broker leads for good and nobody appends to: to fetch it is no
error, and there is nothing to be told, so it keeps a session alive and completes no fetch.
"""

from collections.abc import Mapping, Sequence
from uuid import uuid4

from tidegauge.drive.broker.contract import BROKER
from tidegauge.drive.kafka_broker.broker import KafkaBroker
from tidegauge.drive.kafka_broker.clients import Topic
from tidegauge.drive.kafka_broker.metadata_log import MetadataRecord
from tidegauge.drive.kafka_broker.peers import Peer
from tidegauge.drive.wire.frames import Connection

RESTS_AFTER = 400
"""Lag times; a request times out after some 1,800 (NEVER_MS)."""


class Lane:
    """Peers of its own, and a connection."""

    connection: Connection

    def __init__(self, broker: KafkaBroker, number: int) -> None:
        self.broker, self._number, self._opened, self._rested = broker, number, 0, 0
        self.peers: Mapping[int, Peer] = {name: broker.peer(100 + 10 * number + name) for name in (2, 3)}
        self.other = Topic(uuid4(), f"other-{number}")

    async def register(self) -> None:
        """Register the peers, and the other partition."""
        for peer in self.peers.values():
            await peer.start()
        controller, topic = self.broker.controller, self.other
        controller.append(MetadataRecord("TopicRecord", {"name": topic.name, "topicId": topic.id}))
        everybody = [BROKER, *(peer.node for peer in self.peers.values())]
        controller.partition(topic.id, everybody, everybody, BROKER, 0, 0)

    async def up(self) -> None:
        """Connect to a process that has started, and wait for its first fetches."""
        self.connection = await self.broker.connect()
        for peer in self.peers.values():
            await peer.asked()

    async def rest(self) -> None:
        """Between two paths: have the requests that the peers hold made anew, before they are too old by the time of day."""
        check = self.broker.lag_check
        if check is not None and check.passed - self._rested > RESTS_AFTER:
            self._rested = check.passed
            for peer in self.peers.values():
                await peer.ask_again()

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


async def start(lanes: Sequence[Lane]) -> None:
    """Have all of them ready to play on: what they register is applied together."""
    for lane in lanes:
        await lane.register()
    for lane in lanes:
        await lane.up()

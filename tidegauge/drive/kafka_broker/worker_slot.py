"""A worker slot: the peers and the connection with which one path at a time is played.

Many slots play side by side on one process of the broker under test. A peer is a broker that this program plays.

Rules of this file

1. A step names brokers 1, 2, ..; each slot has broker ids of its own for all but the first, which is the one under test.
2. The peers are in sync on one more partition, which the broker always leads and nobody appends to. A fetch of it is no
   error and never has records, so it keeps a fetch session alive and completes no fetch that waits.
"""

from collections.abc import Mapping, Sequence
from uuid import uuid4

from tidegauge.drive.broker.contract import BROKER
from tidegauge.drive.kafka_broker.broker import KafkaBroker
from tidegauge.drive.kafka_broker.clients import Topic
from tidegauge.drive.kafka_broker.peers import Peer
from tidegauge.drive.wire.frames import Connection

REST_AFTER = 400
"""Lag times after which the peers' fetches are renewed; a request times out after some 1,800 of them (NEVER_MS)."""


class WorkerSlot:
    """Peers and a connection for one path at a time."""

    connection: Connection

    def __init__(self, broker: KafkaBroker, number: int) -> None:
        """Make two peers of the broker, named 2 and 3 by steps, with ids that no other slot has. Nothing starts yet."""
        self.broker, self._number, self._topics, self._rested_at = broker, number, 0, 0
        self.peers: Mapping[int, Peer] = {name: broker.peer(100 + 10 * number + name) for name in (2, 3)}
        self.other = Topic(uuid4(), f"other-{number}")

    async def register(self) -> None:
        """Start and register the peers, and register the other partition (rule 2)."""
        for peer in self.peers.values():
            await peer.start()
        controller, topic = self.broker.controller, self.other
        controller.create_topic(topic.name, topic.id)
        replicas = [BROKER, *(peer.node for peer in self.peers.values())]
        controller.register_partition(topic.id, replicas, replicas, BROKER, 0, 0)

    async def connect(self) -> None:
        """Connect to a process that has started, and wait for its first fetches."""
        self.connection = await self.broker.connect()
        for peer in self.peers.values():
            await peer.wait_for_fetch()

    async def rest(self) -> None:
        """Let the broker send new fetches to the peers if those in flight could soon time out. Call it between two paths."""
        # The time of day runs ahead by a lag time before each step, and a held fetch ages with it.
        check = self.broker.lag_check
        if check is not None and check.lag_times_passed - self._rested_at > REST_AFTER:
            self._rested_at = check.lag_times_passed
            for peer in self.peers.values():
                await peer.fetch_again()

    def forget_process(self) -> None:
        """Forget what belonged to the broker's process, which has ended."""
        self.connection.close()
        for peer in self.peers.values():
            peer.forget_process()

    def new_topic(self) -> Topic:
        """Return the id and the name of a topic that the broker does not know; nothing is created."""
        self._topics += 1
        return Topic(uuid4(), f"p{self._number}-{self._topics}")

    def close(self) -> None:
        """Stop the peers and close the connection."""
        if hasattr(self, "connection"):
            self.connection.close()
        for peer in self.peers.values():
            peer.close()


async def start_slots(slots: Sequence[WorkerSlot]) -> None:
    """Register the slots with a broker that has started, and connect them."""
    # Register all first: the broker then applies all that metadata in one go.
    for slot in slots:
        await slot.register()
    for slot in slots:
        await slot.connect()

"""Two partitions of the driver's own, by which it knows how far the broker is.

Rules of this file

1. `AppliedMetadataBarrier`, for releases before 3.5, whose heartbeats carry only the offset that was read: a partition that
   the broker leads, in a new leader epoch each time. A fetch with the newest epoch succeeds once that epoch is applied.
2. `KeepAlive`: a partition with a proposal that is never answered, so that AlterPartition requests keep coming. The broker
   leads it, and a follower outside the ISR has fetched up to the log end: the broker proposes to let it in
   (Partition#maybeExpandIsr), and asks again as long as there is no response.
"""

import asyncio
from uuid import uuid4

from tidegauge.drive.broker.contract import BROKER
from tidegauge.drive.kafka_broker.clients import PartitionRequests, Topic, fetched_partition
from tidegauge.drive.kafka_broker.controller_stub import ControllerStub
from tidegauge.drive.wire.frames import Connection
from tidegauge.impl.rules import NONE, UNDEFINED

POLL_SECONDS = 0.002
KEEP_ALIVE_FOLLOWER = 99


class AppliedMetadataBarrier:
    """A partition that the broker leads, whose newest leader epoch is visible once the metadata is applied.

    Metadata that is read together is applied in any order (ReplicaManager#applyDelta), so the marker may be visible before
    the rest. Therefore it takes two:

        written    ... A ...  marker 1          marker 2
        seen                            marker 1          marker 2
                                        A is being applied; A is applied, for marker 2 was read after marker 1 was seen
    """

    def __init__(self, controller: ControllerStub) -> None:
        self._controller, self._topic, self._turn = controller, Topic(uuid4(), "applied-metadata"), asyncio.Lock()
        self._epoch = self._visible = self._applied = UNDEFINED

    async def wait_for(self, offset: int, connection: Connection, requests: PartitionRequests) -> None:
        """Wait until the metadata up to an offset is applied."""
        async with self._turn:
            while self._applied < offset:
                visible_before, written = self._visible, self._write_marker()
                fetch = requests.fetch(self._topic, 0, current_leader_epoch=self._epoch)
                while fetched_partition((await connection.exchange([fetch]))[0])["errorCode"] != NONE:
                    await asyncio.sleep(POLL_SECONDS)
                self._visible, self._applied = written, visible_before

    def _write_marker(self) -> int:
        """Write a record of the next leader epoch; return its offset."""
        if self._epoch == UNDEFINED:
            self._controller.create_topic(self._topic.name, self._topic.id)
        self._epoch += 1
        return self._controller.register_partition(self._topic.id, [BROKER], [BROKER], BROKER, self._epoch, self._epoch)


class KeepAlive:
    """A partition with a proposal that is never answered."""

    def __init__(self, controller: ControllerStub) -> None:
        self._controller, self.topic, self._broker_epoch = controller, Topic(uuid4(), "keep-alive"), UNDEFINED

    def register(self, port: int) -> int:
        """Write the partition and its follower into the metadata log; return the offset of the last record.

        `port`: of the controller. The broker sends nothing to the follower.
        """
        controller, topic = self._controller, self.topic
        self._broker_epoch = controller.register_peer(KEEP_ALIVE_FOLLOWER, port)
        controller.create_topic(topic.name, topic.id)
        return controller.register_partition(topic.id, [BROKER, KEEP_ALIVE_FOLLOWER], [BROKER], BROKER, 0, 0)

    async def start(self, connection: Connection, requests: PartitionRequests) -> None:
        """Let the follower fetch, once per process, and wait for the proposal."""
        node, epoch = KEEP_ALIVE_FOLLOWER, self._broker_epoch
        fetch = requests.fetch(self.topic, 0, current_leader_epoch=0, replica=node, broker_epoch=epoch)
        await connection.exchange([fetch])
        controller = self._controller
        await controller.conditions.wait_for(lambda: self.topic.id in controller.proposals.pending, "a proposal")

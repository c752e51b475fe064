"""A proposal that is never responded to: it keeps AlterPartition requests coming, and each of them is a sign.

The broker leads a partition of our own, and a follower outside its ISR has fetched up to its end: it proposes to let the
follower in (Partition#maybeExpandIsr), and asks again as long as there is no response to it.
"""

from uuid import uuid4

from tidegauge.drive.broker.contract import BROKER
from tidegauge.drive.kafka_broker.clients import Calls, Topic
from tidegauge.drive.kafka_broker.controller import Controller
from tidegauge.drive.kafka_broker.metadata_log import MetadataRecord
from tidegauge.drive.wire.frames import Connection
from tidegauge.impl.rules import UNDEFINED

FOLLOWER = 99


class Pulse:
    """The partition and its follower."""

    def __init__(self, controller: Controller) -> None:
        self._controller, self.topic, self._broker_epoch = controller, Topic(uuid4(), "pulse"), UNDEFINED

    def register(self, port: int) -> int:
        """Write both into the metadata log; nobody asks the follower for anything. The offset of it."""
        controller, topic = self._controller, self.topic
        self._broker_epoch = controller.register(FOLLOWER, port)
        controller.append(MetadataRecord("TopicRecord", {"name": topic.name, "topicId": topic.id}))
        return controller.partition(topic.id, [BROKER, FOLLOWER], [BROKER], BROKER, 0, 0)

    async def start(self, connection: Connection, calls: Calls) -> None:
        """Let the follower fetch, once in the life of a process."""
        call = calls.fetch(self.topic, 0, current_leader_epoch=0, replica=FOLLOWER, broker_epoch=self._broker_epoch)
        await connection.calls([call])
        await self._controller.signs.wait_for(lambda: self.topic.id in self._controller.proposals.waiting, "a proposal")

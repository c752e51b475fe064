"""Whether metadata was applied, seen on a partition: for releases whose heartbeats say only what was read.

Rule of this file: what is read together is applied in one go, in any order (ReplicaManager#applyDelta), and the canary may
be the first. When a second one sings that was written after the first had, all that the first was applied with is applied.
"""

import asyncio
from uuid import uuid4

from tidegauge.drive.broker.contract import BROKER
from tidegauge.drive.kafka_broker.clients import Calls, Topic, fetched
from tidegauge.drive.kafka_broker.controller import Controller
from tidegauge.drive.kafka_broker.metadata_log import MetadataRecord
from tidegauge.drive.wire.frames import Connection
from tidegauge.impl.rules import NONE, UNDEFINED

MOMENT = 0.002


class Canary:
    """A partition that the broker leads, in one leader epoch after the other."""

    def __init__(self, controller: Controller) -> None:
        self._controller, self._topic, self._turn = controller, Topic(uuid4(), "canary"), asyncio.Lock()
        self._epoch = self._begun = self._applied = UNDEFINED

    async def applied(self, offset: int, connection: Connection, calls: Calls) -> None:
        """Wait until the metadata up to an offset is applied."""
        async with self._turn:
            while self._applied < offset:
                known, written = self._begun, self._sing()
                call = calls.fetch(self._topic, 0, current_leader_epoch=self._epoch)
                while fetched((await connection.calls([call]))[0])["errorCode"] != NONE:
                    await asyncio.sleep(MOMENT)
                self._begun, self._applied = written, known

    def _sing(self) -> int:
        """A record of the next leader epoch; its offset."""
        controller = self._controller
        if self._epoch == UNDEFINED:
            controller.append(MetadataRecord("TopicRecord", {"name": self._topic.name, "topicId": self._topic.id}))
        self._epoch += 1
        return controller.partition(self._topic.id, [BROKER], [BROKER], BROKER, self._epoch, self._epoch)

"""Whether metadata was applied, seen on a partition: for releases whose heartbeats say only what was read.

Rules of this file

1. A later record of another partition is seen applied: a fetch in its new leader epoch is let in.
2. It is written when what it stands for was read already: what is read together is applied together, leaders first
   (ReplicaManager#applyDelta), and then the canary would sing too early.
"""

import asyncio
from uuid import uuid4

from tidegauge.drive.contract import BROKER
from tidegauge.drive.kafka.clients import Calls, Topic, fetched
from tidegauge.drive.kafka.controller import Controller
from tidegauge.drive.kafka.metadata_log import MetadataRecord
from tidegauge.drive.wire.frames import Connection
from tidegauge.impl.rules import FENCED_LEADER_EPOCH, NONE, UNDEFINED

MOMENT = 0.002


class Canary:
    """A partition that the broker leads, in one leader epoch after the other."""

    def __init__(self, controller: Controller) -> None:
        self._controller, self._topic = controller, Topic(uuid4(), "canary")
        self._epoch = self._stands_for = self._seen = UNDEFINED

    async def applied(self, offset: int, connection: Connection, calls: Calls) -> None:
        """Wait until the metadata up to an offset is applied."""
        if self._stands_for < offset:
            await self._controller.signs.wait_for(lambda: self._controller.read_offset > offset, "that metadata is read")
        if self._stands_for < offset:
            self._sing()
        epoch = self._epoch
        while self._seen < epoch:
            (response,) = await connection.calls([calls.fetch(self._topic, 0, current_leader_epoch=epoch)])
            if fetched(response)["errorCode"] in {NONE, FENCED_LEADER_EPOCH}:
                self._seen = max(self._seen, epoch)
            else:
                await asyncio.sleep(MOMENT)

    def _sing(self) -> None:
        controller = self._controller
        if self._epoch == UNDEFINED:
            controller.append(MetadataRecord("TopicRecord", {"name": self._topic.name, "topicId": self._topic.id}))
        self._epoch, self._stands_for = self._epoch + 1, controller.read_offset - 1
        controller.partition(self._topic.id, [BROKER], [BROKER], BROKER, self._epoch, self._epoch)

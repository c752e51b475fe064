"""What a broker proposes to its controller, and what the suite responds.

Rules of this file

1. AlterPartition requests come one at a time, with every proposal that waits. One that the suite has not responded to is
   left out of the response: the broker keeps it and sends it again (AlterPartitionManager#handleAlterPartitionResponse).
2. So a request that was made after a moment holds every proposal made before it, and shows that every response before it was
   handled. A proposal of a partition of our own (`Pulse`) is never responded to, and keeps the requests coming.
"""

import asyncio
from uuid import UUID

from tidegauge.drive.wire.compiler import Message
from tidegauge.drive.wire.signs import Signs
from tidegauge.impl.rules import NONE

PAUSE = 0.04
"""How long a request is held when nobody waits for the next one, in seconds."""

LINGER = 0.02
"""How long it is held when somebody does: others who wait by then share the next one, and look together afterwards."""


class Proposals:
    """The proposals of the last request, by topic id; every topic has one partition, 0."""

    def __init__(self, signs: Signs) -> None:
        self._signs = signs
        self._responses: dict[UUID, Message] = {}
        self._requests, self._held, self._hurry = 0, False, False
        self.waiting: dict[UUID, Message] = {}

    def respond(self, topic: UUID, response: Message) -> None:
        """Respond to a proposal, with the next response to a request."""
        self._responses[topic] = response

    async def exchanged(self) -> None:
        """Wait for a request that was made from now on, after every response given so far."""
        wanted = self._requests + (1 if self._held else 2)
        self._hurry = True
        self._signs.changed()
        await self._signs.wait_for(lambda: self._requests >= wanted, "another AlterPartition request")

    def clear(self) -> None:
        """The process that made them has ended."""
        self.waiting.clear()
        self._responses.clear()

    async def handle(self, body: Message) -> Message:
        """An AlterPartition request."""
        self.waiting = {topic["topicId"]: topic["partitions"][0] for topic in body["topics"]}
        self._requests, self._held = self._requests + 1, True
        self._signs.changed()
        if await self._signs.within(lambda: self._hurry, PAUSE):
            await asyncio.sleep(LINGER)
        self._hurry = False
        topics = [
            {"topicId": topic, "partitions": [{"partitionIndex": 0, **self._responses.pop(topic)}]}
            for topic in self.waiting
            if topic in self._responses
        ]
        self._held = False
        return {"errorCode": NONE, "topics": topics}

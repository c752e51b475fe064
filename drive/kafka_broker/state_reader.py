"""How a broker's replicas are seen from outside. Those that are looked at together share their requests.

Rules of this file

1. A replica's log end is what ListOffsets says to replica -2 (a debugging consumer, followers serve it, too); its high
   watermark and log start what a consumer's fetch at that offset says (KIP-392); the end of each epoch of its cache what
   such a fetch one offset further is told to diverge to (KIP-595).
2. Whoever is woken by the same sign looks with the same requests. A broker takes the partitions of a request one by one
   (KafkaApis#handleListOffsetRequest, ReplicaManager#readFromLog), so nobody sees more or less for it, and an error of one
   partition is of no other.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from tidegauge.drive.kafka_broker.clients import DEBUGGING_CONSUMER, LATEST_TIMESTAMP, Calls, Topic, diverging_of
from tidegauge.drive.wire.compiler import Message
from tidegauge.drive.wire.frames import Call, Connection
from tidegauge.drive.wire.primitives import WireError
from tidegauge.impl.rules import NONE, OFFSET_OUT_OF_RANGE, UNDEFINED


class Replica(NamedTuple):
    """A replica as it is seen from outside. `ends`: for each leader epoch from 0 what its epoch cache answers."""

    leo: int
    hw: int
    log_start: int
    ends: tuple[tuple[int, int], ...]


class Look(NamedTuple):
    """Somebody's, at a partition and the ends of that many leader epochs."""

    topic: Topic
    epochs: int
    seen: "asyncio.Future[Replica]"


class Looks:
    """Looks at the partitions of one process. Nobody looks at a partition that somebody else is looking at."""

    def __init__(self, connection: Connection, calls: Calls) -> None:
        self._connection, self._calls = connection, calls
        self._wanted: list[Look] = []
        self._under_way: set[asyncio.Task[None]] = set()

    async def replica_of(self, topic: Topic, epochs: int) -> Replica:
        """The broker's replica of a partition, with its answers for that many leader epochs. Raises WireError without one,
        and OSError.
        """
        look = Look(topic, epochs, asyncio.get_running_loop().create_future())
        self._wanted.append(look)
        if len(self._wanted) == 1:
            # A task begins when the loop goes round, and by then all who were woken with this one want to look, too.
            task = asyncio.create_task(self._together())
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)
        return await look.seen

    async def _together(self) -> None:
        looks, self._wanted = self._wanted, []
        seen: Sequence[Replica | Exception]
        try:
            seen = await self._seen(looks)
        except Exception as problem:  # whatever it is: who waits would not hear of it otherwise
            seen = [problem for _ in looks]
        for look, found in zip(looks, seen, strict=True):
            if look.seen.done():
                continue  # who wanted it was cancelled
            if isinstance(found, Exception):
                look.seen.set_exception(found)
            else:
                look.seen.set_result(found)

    async def _seen(self, looks: Sequence[Look]) -> list[Replica | Exception]:
        """What each is to see."""
        latest = (self._calls.list_offsets(look.topic, LATEST_TIMESTAMP, DEBUGGING_CONSUMER) for look in looks)
        (listed,) = await self._connection.calls([_as_one(latest)])
        ends = {topic["name"]: topic["partitions"][0] for topic in listed["topics"]}
        # One without a log end is asked about, too: what its fetches say is read by nobody.
        offsets = [(look, ends[look.topic.name]["offset"]) for look in looks]
        here = _as_one(self._calls.fetch(look.topic, offset) for look, offset in offsets)
        beyond = [
            _as_one(
                self._calls.fetch(look.topic, offset + 1, last_fetched_epoch=epoch)
                for look, offset in offsets
                if epoch < look.epochs
            )
            for epoch in range(max(look.epochs for look in looks))
        ]
        at, *after = map(_by_topic, await self._connection.calls([here, *beyond]))
        return [
            _replica(
                look.topic, ends[look.topic.name], at[look.topic.id], [one[look.topic.id] for one in after[: look.epochs]]
            )
            for look in looks
        ]


def _as_one(calls: Iterable[Call]) -> Call:
    """Calls that differ in their topics alone."""
    first, *others = calls
    topics = [topic for call in (first, *others) for topic in call.body["topics"]]
    return first._replace(body={**first.body, "topics": topics})


def _by_topic(response: Message) -> Mapping[UUID, Message]:
    """The one partition of each topic of a fetch response. Raises WireError for an error of the whole."""
    if response["errorCode"] != NONE:
        raise WireError(f"Fetch: expected no error of the whole; seen {response['errorCode']}")
    return {topic["topicId"]: topic["partitions"][0] for topic in response["responses"]}


def _replica(topic: Topic, end: Message, here: Message, beyond: Sequence[Message]) -> Replica | Exception:
    """What ListOffsets and the fetches say of a partition."""
    if end["errorCode"] != NONE:
        return WireError(f"{topic.name}: expected the log end offset; seen error {end['errorCode']}")
    leo: Any = end["offset"]
    if here["errorCode"] != NONE or any(one["errorCode"] not in {NONE, OFFSET_OUT_OF_RANGE} for one in beyond):
        return WireError(f"{topic.name}: expected its high watermark at offset {leo}; seen {here}, {beyond}")
    ends = tuple(diverging_of(one) or (UNDEFINED, UNDEFINED) for one in beyond)
    return Replica(leo, here["highWatermark"], here["logStartOffset"], ends)

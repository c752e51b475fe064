"""Looks at many partitions with the same requests: each sees what it would have seen alone."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from uuid import UUID, uuid4

import pytest

from tests.drive.test_frames import in_a_loop
from tidegauge.drive.kafka_broker.clients import DEBUGGING_CONSUMER, Calls, Topic, Versions
from tidegauge.drive.kafka_broker.state_reader import Looks, Replica
from tidegauge.drive.probe.definitions import shipped
from tidegauge.drive.wire.compiler import Message
from tidegauge.drive.wire.frames import Connection, Listener, Received
from tidegauge.drive.wire.primitives import WireError
from tidegauge.drive.wire.signs import Signs
from tidegauge.impl.rules import NONE, OFFSET_OUT_OF_RANGE

TOPICS = [Topic(uuid4(), f"p{number}") for number in range(4)]
LEO = {topic.id: 3 * number for number, topic in enumerate(TOPICS)}
"""Where each log ends; its high watermark is one before that, its start two, and leader epoch e ends e after it."""
BY_NAME = {topic.name: topic.id for topic in TOPICS}
NOT_LEADER, STORAGE_ERROR = 6, 56
BEYOND = "Fetch beyond"
"""A fetch that asks where an epoch ends."""


class Broker:
    """A broker of ours with these partitions. It answers from the last to the first, and remembers what it was asked.
    `errors`: partitions that have one, by request.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []
        self.errors: dict[tuple[str, UUID], int] = {}
        self.whole = NONE
        self.leaves_out: set[UUID] = set()
        self.there = asyncio.Event()
        self.there.set()
        self.listener = Listener(shipped(), ["ListOffsets", "Fetch"], self.handle, Signs())

    async def handle(self, request: Received) -> Message:
        await self.there.wait()
        topics = request.body["topics"][::-1]
        self.asked.append((request.name, len(topics)))
        if request.name == "ListOffsets":
            assert request.body["replicaId"] == DEBUGGING_CONSUMER, "followers serve nobody else"
            return {"topics": [{"name": one["name"], "partitions": [self._end(BY_NAME[one["name"]])]} for one in topics]}
        found = [
            {"topicId": one["topicId"], "partitions": [self._at(one["topicId"], one["partitions"][0])]}
            for one in topics
            if one["topicId"] not in self.leaves_out
        ]
        return {"errorCode": self.whole, "responses": [] if self.whole else found}

    def _end(self, topic: UUID) -> Message:
        error = self.errors.get(("ListOffsets", topic), NONE)
        return {"partitionIndex": 0, "errorCode": error, "offset": -1 if error else LEO[topic], "timestamp": -1}

    def _at(self, topic: UUID, asked: Message) -> Message:
        leo, epoch = LEO[topic], asked["lastFetchedEpoch"]
        seen = {"partitionIndex": 0, "errorCode": NONE, "highWatermark": leo - 1, "logStartOffset": leo - 2, "records": None}
        if (error := self.errors.get(("Fetch" if epoch < 0 else BEYOND, topic))) is not None:
            return {**seen, "errorCode": error}
        if asked["fetchOffset"] != leo + (epoch >= 0):
            return {**seen, "errorCode": OFFSET_OUT_OF_RANGE}
        return seen if epoch < 0 else {**seen, "divergingEpoch": {"epoch": epoch, "endOffset": leo + epoch}}


def seen_of(topic: Topic, epochs: int) -> Replica:
    leo = LEO[topic.id]
    return Replica(leo, leo - 1, leo - 2, tuple((epoch, leo + epoch) for epoch in range(epochs)))


def with_a_broker(work: Callable[[Broker, Looks], Awaitable[None]]) -> None:
    async def around() -> None:
        unheard: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))
        broker = Broker()
        connection = await Connection.open(shipped(), await broker.listener.start())
        await work(broker, Looks(connection, Calls(Versions(await connection.versions()))))
        connection.close()
        broker.listener.close()
        gc.collect()  # a task that failed says so when it is gone
        assert not unheard

    in_a_loop(around())


def test_who_looks_together_shares_the_requests_and_sees_its_own() -> None:
    """One request for the log ends, one for the high watermarks, and one for each leader epoch that anybody asks about."""

    async def work(broker: Broker, looks: Looks) -> None:
        found = await asyncio.gather(*(looks.replica_of(topic, number) for number, topic in enumerate(TOPICS)))
        assert found == [seen_of(topic, number) for number, topic in enumerate(TOPICS)]
        assert broker.asked == [("ListOffsets", 4), ("Fetch", 4), ("Fetch", 3), ("Fetch", 2), ("Fetch", 1)]

    with_a_broker(work)


def test_who_looks_later_asks_anew() -> None:
    async def work(broker: Broker, looks: Looks) -> None:
        broker.there.clear()
        first = asyncio.create_task(looks.replica_of(TOPICS[1], 0))
        await asyncio.sleep(0.05)
        second = asyncio.create_task(looks.replica_of(TOPICS[2], 0))
        await asyncio.sleep(0.05)
        broker.there.set()
        assert [await first, await second] == [seen_of(TOPICS[1], 0), seen_of(TOPICS[2], 0)]
        assert await looks.replica_of(TOPICS[1], 2) == seen_of(TOPICS[1], 2)
        assert {topics for _, topics in broker.asked} == {1}

    with_a_broker(work)


@pytest.mark.parametrize("request_name", ["ListOffsets", "Fetch", BEYOND])
def test_an_error_of_a_partition_is_of_no_other(request_name: str) -> None:
    async def work(broker: Broker, looks: Looks) -> None:
        broker.errors[request_name, TOPICS[1].id] = STORAGE_ERROR
        first, wrong, last = await asyncio.gather(
            *(looks.replica_of(topic, 1) for topic in TOPICS[:3]), return_exceptions=True
        )
        assert (first, last) == (seen_of(TOPICS[0], 1), seen_of(TOPICS[2], 1))
        assert isinstance(wrong, WireError)
        assert f"{TOPICS[1].name}: expected" in str(wrong)
        assert str(STORAGE_ERROR) in str(wrong)

    with_a_broker(work)


def test_an_epoch_that_the_cache_does_not_know_is_no_error() -> None:
    async def work(broker: Broker, looks: Looks) -> None:
        broker.errors[BEYOND, TOPICS[1].id] = OFFSET_OUT_OF_RANGE
        assert await looks.replica_of(TOPICS[1], 2) == seen_of(TOPICS[1], 0)._replace(ends=((-1, -1), (-1, -1)))

    with_a_broker(work)


def test_an_error_of_the_whole_or_a_broker_that_is_gone_is_everybodys() -> None:
    async def work(broker: Broker, looks: Looks) -> None:
        broker.whole = NOT_LEADER
        found = await asyncio.gather(*(looks.replica_of(topic, 1) for topic in TOPICS), return_exceptions=True)
        assert [str(one) for one in found] == [f"Fetch: expected no error of the whole; seen {NOT_LEADER}"] * len(TOPICS)
        broker.there.clear()
        looking = [asyncio.create_task(looks.replica_of(topic, 1)) for topic in TOPICS]
        await asyncio.sleep(0.05)
        broker.listener.close()
        assert all(isinstance(one, OSError) for one in await asyncio.gather(*looking, return_exceptions=True))

    with_a_broker(work)


def test_nobody_waits_for_a_partition_that_a_response_leaves_out() -> None:
    async def work(broker: Broker, looks: Looks) -> None:
        broker.leaves_out.add(TOPICS[1].id)
        found = await asyncio.gather(*(looks.replica_of(topic, 1) for topic in TOPICS), return_exceptions=True)
        assert [str(TOPICS[1].id) in str(one) for one in found] == [True] * len(TOPICS)

    with_a_broker(work)


def test_who_is_cancelled_takes_nothing_from_the_others() -> None:
    async def work(broker: Broker, looks: Looks) -> None:
        broker.there.clear()
        looking = [asyncio.create_task(looks.replica_of(topic, 1)) for topic in TOPICS]
        await asyncio.sleep(0.05)
        looking[1].cancel()
        await asyncio.sleep(0)
        broker.there.set()
        first, cancelled, *others = await asyncio.gather(*looking, return_exceptions=True)
        assert isinstance(cancelled, asyncio.CancelledError)
        assert [first, *others] == [seen_of(topic, 1) for topic in (TOPICS[0], *TOPICS[2:])]

    with_a_broker(work)

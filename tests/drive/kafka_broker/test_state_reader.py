"""The state of a replica, read by requests of ordinary clients."""

from collections.abc import Awaitable, Callable
from uuid import uuid4

import pytest

from tests.drive.wire.test_frames import in_a_loop
from tidegauge.drive.kafka_broker.clients import DEBUGGING_CONSUMER, PartitionRequests, ReadReplicaState, StateReader, Topic
from tidegauge.drive.probe.connection import shipped_messages
from tidegauge.drive.wire.compiler import WireMessage
from tidegauge.drive.wire.frames import Conditions, Connection, Listener, ReceivedRequest
from tidegauge.impl.rules import NONE, OFFSET_OUT_OF_RANGE

TOPIC = Topic(uuid4(), "p")
LEO, HW, LOG_START = 7, 6, 5
NOT_LEADER, STORAGE_ERROR = 6, 56
REFUSED = {"error": STORAGE_ERROR}
BEYOND = "Fetch beyond"
"""A fetch that asks where an epoch ends; leader epoch e ends e after the log end."""


class FakeBroker:
    """A broker with one partition. `errors`: by request; `whole`: the error of each fetch response."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.errors: dict[str, int] = {}
        self.whole = NONE
        self.listener = Listener(shipped_messages(), ["ListOffsets", "Fetch"], self.handle, Conditions())

    async def handle(self, request: ReceivedRequest) -> WireMessage:
        self.requests.append(request.name)
        (topic,) = request.body["topics"]
        if request.name == "ListOffsets":
            assert request.body["replicaId"] == DEBUGGING_CONSUMER, "followers serve no other consumer"
            error = self.errors.get("ListOffsets", NONE)
            end = {"partitionIndex": 0, "errorCode": error, "offset": -1 if error else LEO, "timestamp": -1}
            return {"topics": [{"name": topic["name"], "partitions": [end]}]}
        fetched = [{"topicId": topic["topicId"], "partitions": [self._fetched(topic["partitions"][0])]}]
        return {"errorCode": self.whole, "responses": [] if self.whole else fetched}

    def _fetched(self, fetch: WireMessage) -> WireMessage:
        epoch = fetch["lastFetchedEpoch"]
        partition = {
            "partitionIndex": 0,
            "errorCode": NONE,
            "highWatermark": HW,
            "logStartOffset": LOG_START,
            "records": None,
        }
        if (error := self.errors.get("Fetch" if epoch < 0 else BEYOND)) is not None:
            return {**partition, "errorCode": error}
        if fetch["fetchOffset"] != LEO + (epoch >= 0):
            return {**partition, "errorCode": OFFSET_OUT_OF_RANGE}
        return partition if epoch < 0 else {**partition, "divergingEpoch": {"epoch": epoch, "endOffset": LEO + epoch}}


def with_a_broker(work: Callable[[FakeBroker, StateReader], Awaitable[None]]) -> None:
    async def around() -> None:
        broker = FakeBroker()
        connection = await Connection.open(shipped_messages(), await broker.listener.start())
        await work(broker, StateReader(connection, PartitionRequests(await connection.versions())))
        connection.close()
        broker.listener.close()

    in_a_loop(around())


@pytest.mark.parametrize("epochs", [0, 1, 3])
def test_the_state_has_an_end_for_each_leader_epoch(epochs: int) -> None:
    """One request for the log end, one for the high watermark, and one for each leader epoch."""

    async def work(broker: FakeBroker, reader: StateReader) -> None:
        ends = tuple((epoch, LEO + epoch) for epoch in range(epochs))
        assert await reader.read(TOPIC, epochs) == ReadReplicaState(LEO, HW, LOG_START, ends)
        assert broker.requests == ["ListOffsets", "Fetch", *["Fetch"] * epochs]

    with_a_broker(work)


@pytest.mark.parametrize(
    ("request_name", "read"),
    [
        ("ListOffsets", REFUSED),
        ("Fetch", ReadReplicaState(LEO, REFUSED, REFUSED, ((0, LEO),))),
        (BEYOND, ReadReplicaState(LEO, HW, LOG_START, (REFUSED,))),
    ],
)
def test_an_error_stands_where_the_value_would_be(request_name: str, read: object) -> None:
    """What a broker refuses to name is a difference of the broker, and no fault of who asks."""

    async def work(broker: FakeBroker, reader: StateReader) -> None:
        broker.errors[request_name] = STORAGE_ERROR
        assert await reader.read(TOPIC, 1) == read

    with_a_broker(work)


def test_an_error_of_the_whole_response_is_that_of_all_it_would_have() -> None:
    async def work(broker: FakeBroker, reader: StateReader) -> None:
        broker.whole = NOT_LEADER
        refused = {"error": NOT_LEADER}
        assert await reader.read(TOPIC, 1) == ReadReplicaState(LEO, refused, refused, (refused,))

    with_a_broker(work)


def test_an_epoch_that_the_cache_does_not_know_has_no_end() -> None:
    async def work(broker: FakeBroker, reader: StateReader) -> None:
        broker.errors[BEYOND] = OFFSET_OUT_OF_RANGE
        state = await reader.read(TOPIC, 2)
        assert isinstance(state, ReadReplicaState)
        assert state.ends == ((-1, -1), (-1, -1))

    with_a_broker(work)

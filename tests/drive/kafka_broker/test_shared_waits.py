"""Slots share their waits: metadata that is written at about the same time is read together, and slots that wait for an
AlterPartition request at about the same time wait for one."""

import asyncio
from uuid import UUID

import pytest

from tests.drive.wire.test_frames import DEFINITIONS, in_a_loop
from tidegauge.drive.kafka_broker import controller_stub
from tidegauge.drive.kafka_broker.controller_stub import QUORUM_EPOCH, TOPIC_NAME, ControllerStub, MetadataRecord, Proposals
from tidegauge.drive.wire.compiler import Messages
from tidegauge.drive.wire.frames import Conditions, Connection
from tidegauge.traces.segments import header

LINGER, MEANWHILE, SOON = 0.5, 0.1, 3.0
RECORD = {
    "name": "RemoveTopicRecord",
    "type": "metadata",
    "apiKey": 9,
    "validVersions": "0",
    "flexibleVersions": "0+",
    "fields": [{"name": "TopicId", "type": "uuid", "versions": "0+"}],
}
MESSAGES = Messages([*DEFINITIONS, RECORD])
KEEP_ALIVE = {"topics": [{"topicId": UUID(int=1), "partitions": [{}]}]}


def removed(number: int) -> MetadataRecord:
    return MetadataRecord("RemoveTopicRecord", {"topicId": UUID(int=number)})


def bases(records: bytes) -> list[int]:
    found, at = [], 0
    while at < len(records):
        batch, at = header(records, at)
        found.append(batch.base)
    return found


def test_metadata_that_is_written_meanwhile_is_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_stub, "METADATA_LINGER", LINGER)

    async def work() -> None:
        written = ControllerStub(MESSAGES, 1, Conditions())
        connection = await Connection.open(MESSAGES, await written.start())
        partition = {"partition": 0, "currentLeaderEpoch": QUORUM_EPOCH, "fetchOffset": 0}
        topics = [{"topic": TOPIC_NAME, "partitions": [partition]}]
        asked = asyncio.create_task(connection.request("Fetch", 12, {"maxWaitMs": 5000, "topics": topics}))
        written.append(removed(1))
        await asyncio.sleep(MEANWHILE)
        written.append(removed(2))
        found = (await asked)["responses"][0]["partitions"][0]
        connection.close()
        written.close()
        assert (bases(found["records"]), found["highWatermark"]) == ([0, 1], 2)

    in_a_loop(work())


def test_who_waits_for_a_request_meanwhile_waits_for_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one after that which is held: it was made after both began to wait."""
    monkeypatch.setattr(controller_stub, "PROPOSAL_LINGER", LINGER)
    monkeypatch.setattr(controller_stub, "PROPOSAL_PAUSE", 5.0)

    async def work() -> None:
        made = Proposals(Conditions())
        held = asyncio.create_task(made.handle(KEEP_ALIVE))
        await asyncio.sleep(0)
        first = asyncio.create_task(made.exchanged())
        await asyncio.sleep(MEANWHILE)
        second = asyncio.create_task(made.exchanged())
        await held
        assert [first.done(), second.done()] == [False, False]
        following = asyncio.create_task(made.handle(KEEP_ALIVE))
        await asyncio.wait_for(asyncio.gather(first, second), SOON)
        following.cancel()

    in_a_loop(work())

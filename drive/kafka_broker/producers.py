"""Producers of one partition. One that waits for all replicas has a connection of its own, for a broker takes one request of
a connection at a time (KafkaChannel#mute)."""

import asyncio
from typing import NamedTuple

from tidegauge.drive.contract import Report
from tidegauge.drive.kafka_broker.clients import Topic
from tidegauge.drive.kafka_broker.worker_slot import Lane
from tidegauge.drive.wire.compiler import Message
from tidegauge.drive.wire.frames import Connection
from tidegauge.impl.rules import UNDEFINED

ALL = -1


class Waiting(NamedTuple):
    """A producer whose response is not there yet."""

    connection: Connection
    response: "asyncio.Task[list[Message]]"


class Producers:
    """Who writes to a partition, and who still waits."""

    def __init__(self, lane: Lane) -> None:
        self._lane, self._broker = lane, lane.broker
        self._waiting: list[Waiting] = []

    async def append(self, topic: Topic, acks: int) -> Report | None:
        """Write one record. With acks -1: None once it is appended, or the error with which it was refused."""
        call = self._broker.calls.produce(topic, acks)
        if acks != ALL:
            return _result((await self._lane.connection.calls([call]))[0])
        before = await self._log_end(topic)
        connection = await self._broker.connect()
        waiting = Waiting(connection, asyncio.create_task(connection.calls([call])))
        while not waiting.response.done() and await self._log_end(topic) == before:
            pass  # each look is a request that the broker handles after those before it
        if waiting.response.done():
            result = _result(waiting.response.result()[0])
            if result["base"] == UNDEFINED:
                connection.close()
                return result
        self._waiting.append(waiting)
        return None

    async def _log_end(self, topic: Topic) -> int:
        return (await self._broker.looks.replica_of(topic, 0)).leo

    def answered(self) -> list[list[int]]:
        """Base offset and error of those whose response has come since this was last asked."""
        done = [waiting for waiting in self._waiting if waiting.response.done()]
        self._waiting = [waiting for waiting in self._waiting if not waiting.response.done()]
        found = []
        for connection, response in done:
            result = _result(response.result()[0])
            found.append([result["base"], result["error"]])
            connection.close()
        return sorted(found)

    def close(self) -> None:
        """Nobody waits any more."""
        for connection, response in self._waiting:
            response.cancel()
            connection.close()
        self._waiting = []


def _result(response: Message) -> dict[str, int]:
    found = response["responses"][0]["partitionResponses"][0]
    return {"error": found["errorCode"], "base": found["baseOffset"]}

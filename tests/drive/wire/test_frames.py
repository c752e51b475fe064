"""Requests and responses between a connection and a listener of ours, in this process."""

import asyncio
import gc
import importlib
import socket
import struct
import warnings
from collections.abc import Coroutine
from typing import Any

import pytest

from tidegauge.drive.wire.compiler import Messages, WireError, WireMessage
from tidegauge.drive.wire.frames import HOST, Conditions, Connection, Listener, ReceivedRequest, WireRequest, end_tasks

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    for part in ("consumer", "metadata"):
        importlib.import_module(f"kafka.protocol.{part}")
    DEFINITIONS = [found.json for found in importlib.import_module("kafka.protocol.api_message").ApiMessage.__subclasses__()]

MESSAGES = Messages(DEFINITIONS)


def listed(offset: int) -> WireMessage:
    partition = {"partitionIndex": 0, "errorCode": 0, "timestamp": -1, "offset": offset, "leaderEpoch": 0}
    return {"topics": [{"name": "t", "partitions": [partition]}]}


def ask(timestamp: int) -> WireRequest:
    partition = {"partitionIndex": 0, "currentLeaderEpoch": -1, "timestamp": timestamp}
    return WireRequest("ListOffsets", 7, {"replicaId": -1, "topics": [{"name": "t", "partitions": [partition]}]})


def offset_of(response: WireMessage) -> int:
    offset: int = response["topics"][0]["partitions"][0]["offset"]
    return offset


async def echo(request: ReceivedRequest) -> WireMessage:
    """The offset that was asked for, later if it is odd."""
    timestamp = request.body["topics"][0]["partitions"][0]["timestamp"]
    await asyncio.sleep(0.01 * (timestamp % 2))
    return listed(timestamp)


def in_a_loop(work: Coroutine[Any, Any, None]) -> None:
    async def and_then_closed() -> None:
        await asyncio.wait_for(work, 10)
        await asyncio.sleep(0.01)  # what was closed is closed when the loop has gone round

    asyncio.run(and_then_closed())


@pytest.mark.parametrize("rounds", range(6))
def test_a_connection_that_was_accepted_a_moment_ago_is_closed_with_the_others(rounds: int) -> None:
    """A task of asyncio that has not begun would leave it open."""

    async def work() -> None:
        listener = Listener(MESSAGES, ["ListOffsets"], echo, Conditions())
        with socket.create_connection((HOST, await listener.start())):
            for _ in range(rounds):
                await asyncio.sleep(0)
            listener.close()
            await end_tasks()

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        asyncio.run(work())
        gc.collect()
    assert [str(warning.message) for warning in seen] == []


def test_responses_come_in_the_order_of_the_requests_also_to_many_who_share_a_connection() -> None:
    async def work() -> None:
        listener = Listener(MESSAGES, ["ListOffsets"], echo, Conditions())
        connection = await Connection.open(MESSAGES, await listener.start())
        found = await asyncio.gather(*(connection.exchange([ask(n), ask(n + 1)]) for n in range(20)))
        assert [[offset_of(one) for one in pair] for pair in found] == [[n, n + 1] for n in range(20)]
        connection.close()
        listener.close()

    in_a_loop(work())


@pytest.mark.parametrize("answered", [b"\0\0\0\2", b"\0"])
def test_a_round_trip_is_over_when_the_response_to_it_is_there(answered: bytes) -> None:
    """The first request of a connection has the number 1."""

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(struct.pack(">i", len(answered)) + answered)
        writer.close()

    async def work() -> None:
        listener = Listener(MESSAGES, ["ListOffsets"], echo, Conditions())
        connection = await Connection.open(MESSAGES, await listener.start())
        await connection.round_trip()
        await connection.round_trip()
        connection.close()
        listener.close()
        server = await asyncio.start_server(once, HOST, 0)
        wrong = await Connection.open(MESSAGES, server.sockets[0].getsockname()[1])
        with pytest.raises(WireError, match="ApiVersions: expected"):
            await wrong.round_trip()
        wrong.close()
        server.close()

    in_a_loop(work())


def test_both_sides_agree_on_versions() -> None:
    async def work() -> None:
        listener = Listener(MESSAGES, ["ListOffsets", "Fetch"], echo, Conditions())
        connection = await Connection.open(MESSAGES, await listener.start())
        versions = await connection.versions()
        assert versions == {name: MESSAGES.versions(f"{name}Request") for name in ("ListOffsets", "Fetch")}
        connection.close()
        listener.close()

    in_a_loop(work())


def test_a_version_of_api_versions_that_is_unknown_is_answered_in_version_0() -> None:
    """KIP-511: the client asks again in a version that it is told."""

    async def work() -> None:
        listener = Listener(MESSAGES, ["Fetch"], echo, Conditions())
        reader, writer = await asyncio.open_connection(HOST, await listener.start())
        request = struct.pack(">hhih", 18, 99, 5, -1)
        writer.write(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        data = await reader.readexactly(size)
        body, end = MESSAGES.read("ApiVersionsResponse", 0, data, 4)
        assert (data[:4], body["errorCode"], end) == (b"\0\0\0\5", 35, len(data))
        writer.close()
        listener.close()

    in_a_loop(work())


def test_what_breaks_a_handler_is_raised_where_somebody_waits() -> None:
    async def broken(_: ReceivedRequest) -> WireMessage:
        raise WireError("the broker: expected nothing")

    async def work() -> None:
        conditions = Conditions()
        listener = Listener(MESSAGES, ["ListOffsets"], broken, conditions)
        connection = await Connection.open(MESSAGES, await listener.start())
        asking = asyncio.create_task(connection.exchange([ask(1)]))
        with pytest.raises(WireError, match="expected nothing"):
            await conditions.wait_for(lambda: False, "a sign")
        with pytest.raises(ConnectionResetError):
            await asking
        connection.close()
        listener.close()

    in_a_loop(work())


def test_a_sign_wakes_who_waits_for_it_and_nobody_waits_for_ever() -> None:
    async def work() -> None:
        conditions, seen = Conditions(), [0]

        async def waits() -> None:
            await conditions.wait_for(lambda: seen == [2], "two")

        waiting = asyncio.create_task(waits())
        for seen[0] in (1, 2):
            await asyncio.sleep(0)
            assert not waiting.done()
            conditions.notify()
        await waiting
        assert await conditions.wait_up_to(0, lambda: True)
        assert not await conditions.wait_up_to(0.001, lambda: False)

    in_a_loop(work())


@pytest.mark.parametrize("size", [-1, 1 << 30])
def test_a_length_that_is_none_is_refused(size: int) -> None:
    async def work() -> None:
        async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(struct.pack(">i", size))
            writer.close()

        server = await asyncio.start_server(serve, HOST, 0)
        connection = await Connection.open(MESSAGES, server.sockets[0].getsockname()[1])
        with pytest.raises(WireError, match="expected a frame of at most"):
            await connection.exchange([ask(1)])
        connection.close()
        server.close()

    in_a_loop(work())

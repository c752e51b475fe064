"""Requests and responses on a connection: a length, a header, a message.

Rules of this file

1. One connection is used by one side at a time: responses come in the order of the requests (KAFKA-1764 has it so).
2. A handler returns the body of the response when it is ready. Until then the request is held, and the connection with it.
3. Source: org.apache.kafka.common.requests.RequestHeader, ResponseHeader. The response to ApiVersions never has a flexible
   header (ApiMessageType#responseHeaderVersion), and a version that is not known is answered in version 0 (KIP-511).
"""

import asyncio
import itertools
import struct
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import NamedTuple

from tidegauge.drive.wire.compiler import Message
from tidegauge.drive.wire.messages import Messages
from tidegauge.drive.wire.primitives import WireError
from tidegauge.drive.wire.signs import Signs
from tidegauge.impl.error_codes import UNSUPPORTED_VERSION

HOST = "127.0.0.1"
API_VERSIONS = "ApiVersions"
LARGEST_FRAME = 1 << 26

_HEADER = struct.Struct(">hhih")


async def _frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    if not 0 <= size <= LARGEST_FRAME:
        raise WireError(f"connection: expected a frame of at most {LARGEST_FRAME:,} bytes; seen a length of {size}")
    return await reader.readexactly(size)


def _framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


class Call(NamedTuple):
    """A request to be sent: its name without the word Request, its version, its body."""

    name: str
    version: int
    body: Message


def request_frame(messages: Messages, call: Call, number: int, client: bytes) -> bytes:
    """A request as it goes out, with its correlation id and the name of the client."""
    name = f"{call.name}Request"
    head = _HEADER.pack(messages.api_key(call.name), call.version, number, len(client)) + client
    tags = b"\0" if messages.is_flexible(name, call.version) else b""
    return _framed(head + tags + messages.write(name, call.version, call.body))


def check_number(call: Call, number: int, data: bytes) -> None:
    """Raises WireError unless a frame has the response to this request."""
    if len(data) < 4:
        raise WireError(f"{call.name}: expected a frame with a correlation id; seen one of {len(data)} bytes")
    (seen,) = struct.unpack_from(">i", data)
    if seen != number:
        raise WireError(f"{call.name}: expected the response to request {number}; seen one to {seen}")


def response_in(messages: Messages, call: Call, number: int, data: bytes) -> tuple[Message, int]:
    """The response to a request in a frame, and where it ends. Raises WireError for that to another request."""
    check_number(call, number, data)
    flexible = call.name != API_VERSIONS and messages.is_flexible(f"{call.name}Response", call.version)
    return messages.read(f"{call.name}Response", call.version, data, 4 + flexible)


def shared_versions(messages: Messages, found: Message) -> Mapping[str, range]:
    """What both sides can say, by name of the request, after a response to ApiVersions."""
    shared = {}
    for api in found["apiKeys"]:
        with suppress(WireError):
            name = messages.api_name(api["apiKey"])
            ours = messages.versions(f"{name}Request")
            shared[name] = range(max(api["minVersion"], ours.start), min(api["maxVersion"] + 1, ours.stop))
    return MappingProxyType({name: versions for name, versions in shared.items() if versions})


class Connection:
    """A client's connection to a broker."""

    def __init__(self, messages: Messages, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client: str) -> None:
        self._messages, self._reader, self._writer, self._client = messages, reader, writer, client.encode()
        self._numbers = itertools.count(1)
        self._turn = asyncio.Lock()

    @classmethod
    async def open(cls, messages: Messages, port: int, client: str = "tidegauge", host: str = HOST) -> "Connection":
        """Connect. Raises OSError."""
        return cls(messages, *await asyncio.open_connection(host, port), client)

    async def calls(self, calls: Sequence[Call]) -> list[Message]:
        """Send some requests at once; their responses, in the same order. Raises OSError or WireError."""
        sent = [next(self._numbers) for _ in calls]
        frames = await self._exchanged(calls, sent)
        return [response_in(self._messages, *one)[0] for one in zip(calls, sent, frames, strict=True)]

    async def round_trip(self) -> None:
        """A request and its response, of which only that it came matters. Raises OSError or WireError."""
        call, number = Call(API_VERSIONS, 0, {}), next(self._numbers)
        (frame,) = await self._exchanged([call], [number])
        check_number(call, number, frame)

    async def _exchanged(self, calls: Sequence[Call], sent: Sequence[int]) -> list[bytes]:
        self._writer.write(b"".join(self._request(call, number) for call, number in zip(calls, sent, strict=True)))
        try:
            async with self._turn:  # it is fair, so responses are read in the order of the requests
                return [await _frame(self._reader) for _ in calls]
        except asyncio.IncompleteReadError as problem:
            raise ConnectionResetError(f"the connection ended before the response to {calls[0].name}") from problem

    async def call(self, name: str, version: int, body: Message) -> Message:
        """One request and its response."""
        (response,) = await self.calls([Call(name, version, body)])
        return response

    def _request(self, call: Call, number: int) -> bytes:
        return request_frame(self._messages, call, number, self._client)

    async def versions(self) -> Mapping[str, range]:
        """What both sides can say, by name of the request. The oldest version that asks is understood by every broker."""
        found = await self.call(API_VERSIONS, 0, {})
        if found["errorCode"]:
            raise WireError(f"{API_VERSIONS}: expected no error; seen {found['errorCode']}")
        return shared_versions(self._messages, found)

    def close(self) -> None:
        """Close it; nothing is waited for."""
        self._writer.close()


class Received(NamedTuple):
    """A request that came in."""

    name: str
    version: int
    body: Message


Handler = Callable[[Received], Awaitable[Message]]


class Listener:
    """A listening port that serves some requests, each connection one request after the other."""

    def __init__(self, messages: Messages, serves: Iterable[str], handler: Handler, signs: Signs) -> None:
        self._messages, self._handler, self._signs = messages, handler, signs
        self._serves = {name: messages.versions(f"{name}Request") for name in serves if f"{name}Request" in messages}
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def start(self) -> int:
        """Listen on a free port of the loopback; which one."""
        self._server = await asyncio.start_server(self._accepted, HOST, 0)
        return int(self._server.sockets[0].getsockname()[1])

    def close(self) -> None:
        """Stop listening and end every connection."""
        if self._server is not None:
            self._server.close()
        for task in self._open:
            task.cancel()

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                writer.write(await self._answered(await _frame(reader)))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass  # the other side is gone, and asks again on a new connection
        except Exception as problem:
            self._signs.broken(problem)
            raise
        finally:
            writer.close()

    async def _answered(self, data: bytes) -> bytes:
        key, version, number, size = _HEADER.unpack_from(data)
        messages, name, at = self._messages, self._messages.api_name(key), _HEADER.size + max(size, 0)
        if name == API_VERSIONS:
            known = version in messages.versions(f"{name}Request")
            return self._response(name, version if known else 0, number, self._api_versions(known))
        if messages.is_flexible(f"{name}Request", version):
            at += 1  # no tagged field of a request header has ever been defined
        body, _ = messages.read(f"{name}Request", version, data, at)
        return self._response(name, version, number, await self._handler(Received(name, version, body)))

    def _api_versions(self, known: bool) -> Message:
        keys = [
            {"apiKey": self._messages.api_key(name), "minVersion": versions.start, "maxVersion": versions.stop - 1}
            for name, versions in self._serves.items()
        ]
        return {"errorCode": 0 if known else UNSUPPORTED_VERSION, "apiKeys": sorted(keys, key=lambda one: one["apiKey"])}

    def _response(self, name: str, version: int, number: int, body: Message) -> bytes:
        flexible = name != API_VERSIONS and self._messages.is_flexible(f"{name}Response", version)
        head = struct.pack(">i", number) + (b"\0" if flexible else b"")
        return _framed(head + self._messages.write(f"{name}Response", version, body))

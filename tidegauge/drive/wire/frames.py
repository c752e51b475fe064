"""Requests and responses on a connection: a length, a header, a message; and conditions that other connections bring about.

Rules of this file

1. Responses on a connection come in the order of its requests (KAFKA-1764), so the correlation id is only checked.
2. A handler returns the body of the response when it is ready. Until then the request is held, and so are those after it on
   the same connection.
3. Source: org.apache.kafka.common.requests.RequestHeader, ResponseHeader.
"""

import asyncio
import itertools
import struct
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import NamedTuple

from tidegauge.drive.wire.compiler import Messages, WireError, WireMessage
from tidegauge.impl.errors import UNSUPPORTED_VERSION

HOST = "127.0.0.1"
API_VERSIONS = "ApiVersions"
LARGEST_FRAME = 1 << 26
PATIENCE = 120.0
"""Seconds that the other side may take for anything; after that something is broken."""

_REQUEST_HEADER = struct.Struct(">hhih")
"""API key, version, correlation id, length of the client id."""


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    """Read one frame with its length before it; return it without the length.

    Raises WireError for a length out of bounds, asyncio.IncompleteReadError if the connection ends before.
    """
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    # Bytes that are no Kafka (an HTTP response, say) are read as a huge length: refuse it before waiting for so much.
    if not 0 <= size <= LARGEST_FRAME:
        raise WireError(f"connection: expected a frame of at most {LARGEST_FRAME:,} bytes; seen a length of {size}")
    return await reader.readexactly(size)


def _framed(data: bytes) -> bytes:
    """Return bytes as a frame, with their length before them."""
    return struct.pack(">i", len(data)) + data


class WireRequest(NamedTuple):
    """A request to be sent: its name without the word Request, its version, its body."""

    name: str
    version: int
    body: WireMessage


def request_frame(messages: Messages, request: WireRequest, correlation_id: int, client: bytes) -> bytes:
    """Encode a request with its length and header; `client` is the client id."""
    name = f"{request.name}Request"
    head = _REQUEST_HEADER.pack(messages.api_key(request.name), request.version, correlation_id, len(client)) + client
    # The header of a flexible version ends with its tagged fields: none.
    tags = b"\0" if messages.is_flexible(name, request.version) else b""
    return _framed(head + tags + messages.write(name, request.version, request.body))


def check_correlation_id(request: WireRequest, correlation_id: int, data: bytes) -> None:
    """Check that `data`, a frame, is the response to this request, by its correlation id. Raises WireError."""
    if len(data) < 4:
        raise WireError(f"{request.name}: expected a frame with a correlation id; seen one of {len(data)} bytes")
    (seen,) = struct.unpack_from(">i", data)
    if seen != correlation_id:
        raise WireError(f"{request.name}: expected the response to request {correlation_id}; seen one to {seen}")


def read_response(messages: Messages, request: WireRequest, correlation_id: int, data: bytes) -> tuple[WireMessage, int]:
    """Decode `data`, the frame of the response to a request; return the message, and the position in `data` where it ends.

    Raises WireError where it cannot be read, or is the response to another request.
    """
    check_correlation_id(request, correlation_id, data)
    # ApiVersions is read before the client knows the broker's versions, so its response header never has tagged fields
    # (ApiMessageType#responseHeaderVersion).
    flexible = request.name != API_VERSIONS and messages.is_flexible(f"{request.name}Response", request.version)
    # The header: four bytes of correlation id, and in flexible versions one that counts tagged fields.
    return messages.read(f"{request.name}Response", request.version, data, 4 + flexible)


def shared_versions(messages: Messages, api_versions: WireMessage) -> Mapping[str, range]:
    """Return, by request name, the versions that both `messages` and the broker (its response to ApiVersions) have."""
    # By request name, as ranges, which end before their `stop`; empty where no version is shared.
    shared = {}
    for api in api_versions["apiKeys"]:
        with suppress(WireError):  # a request that the definitions of this side do not have
            name = messages.api_name(api["apiKey"])
            own = messages.versions(f"{name}Request")
            shared[name] = range(max(api["minVersion"], own.start), min(api["maxVersion"] + 1, own.stop))
    return MappingProxyType({name: versions for name, versions in shared.items() if versions})


class Connection:
    """A client's connection to a broker, which many tasks may share."""

    def __init__(self, messages: Messages, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client: str) -> None:
        """Take an open connection; `client` is the client id of its requests."""
        self._messages, self._reader, self._writer, self._client = messages, reader, writer, client.encode()
        self._correlation_ids = itertools.count(1)
        self._reading = asyncio.Lock()

    @classmethod
    async def open(cls, messages: Messages, port: int, client: str = "tidegauge", host: str = HOST) -> "Connection":
        """Connect. Raises OSError."""
        return cls(messages, *await asyncio.open_connection(host, port), client)

    async def exchange(self, requests: Sequence[WireRequest]) -> list[WireMessage]:
        """Send requests before any response is read; return the responses in the same order. Raises OSError or WireError."""
        ids = [next(self._correlation_ids) for _ in requests]
        frames = await self._exchange_frames(requests, ids)
        return [
            read_response(self._messages, *request_and_frame)[0]
            for request_and_frame in zip(requests, ids, frames, strict=True)
        ]

    async def request(self, name: str, version: int, body: WireMessage) -> WireMessage:
        """Send one request and return its response. Raises OSError or WireError."""
        (response,) = await self.exchange([WireRequest(name, version, body)])
        return response

    async def round_trip(self) -> None:
        """Send a request and wait for its response, whose content is ignored. Raises OSError or WireError."""
        request, correlation_id = WireRequest(API_VERSIONS, 0, {}), next(self._correlation_ids)
        (frame,) = await self._exchange_frames([request], [correlation_id])
        check_correlation_id(request, correlation_id, frame)

    async def _exchange_frames(self, requests: Sequence[WireRequest], ids: Sequence[int]) -> list[bytes]:
        """Send requests together; return the frames of their responses, in order. Raises OSError or WireError.

        `ids`: the correlation ids of the requests.
        """
        frames = (
            request_frame(self._messages, *request_and_id, self._client)
            for request_and_id in zip(requests, ids, strict=True)
        )
        self._writer.write(b"".join(frames))
        try:
            # asyncio's lock is first come, first served: tasks read their responses in the order of their requests.
            async with self._reading:
                return [await _read_frame(self._reader) for _ in requests]
        except asyncio.IncompleteReadError as problem:
            raise ConnectionResetError(f"the connection ended before the response to {requests[0].name}") from problem

    async def versions(self) -> Mapping[str, range]:
        """Request the broker's versions; return those that both sides have, by request name. Raises OSError or WireError."""
        # Every broker understands version 0, whatever else it has.
        response = await self.request(API_VERSIONS, 0, {})
        if response["errorCode"]:
            raise WireError(f"{API_VERSIONS}: expected no error; seen {response['errorCode']}")
        return shared_versions(self._messages, response)

    def close(self) -> None:
        """Close the connection without waiting for anything."""
        self._writer.close()


class Conditions:
    """Conditions that tasks of one event loop wait for, each a function that returns whether it is met.

    They are tested when a task calls `notify` because something has changed.
    """

    def __init__(self) -> None:
        """Begin with no task that waits."""
        self._waiting: dict[asyncio.Future[bool], Callable[[], bool]] = {}
        """By the future that a task awaits, the condition that sets it."""
        self._problem: BaseException | None = None

    def notify(self) -> None:
        """Resume the tasks whose condition is met now."""
        for future, is_met in list(self._waiting.items()):
            if not future.done() and is_met():
                future.set_result(True)

    def fail(self, problem: BaseException) -> None:
        """Raise WireError in every task that waits, now or later: nothing more will change. The first problem is named."""
        self._problem = self._problem or problem
        for future in self._waiting:
            if not future.done():
                future.set_exception(WireError(str(problem)))

    async def wait_up_to(self, seconds: float, is_met: Callable[[], bool]) -> bool:
        """Wait for a condition, but no longer than some seconds; return whether it is met. Raises WireError after `fail`."""
        if self._problem is not None:
            raise WireError(str(self._problem)) from self._problem
        if is_met():
            return True
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()
        self._waiting[future] = is_met
        # Whichever comes first decides: `notify` sets True, the timer False, `fail` an exception.
        timer = loop.call_later(seconds, _expire, future)
        try:
            return await future
        finally:
            timer.cancel()
            del self._waiting[future]

    async def wait_for(self, is_met: Callable[[], bool], expected: str) -> None:
        """Wait for a condition, described by `expected` in messages. Raises WireError when it takes longer than PATIENCE."""
        if not await self.wait_up_to(PATIENCE, is_met):
            raise WireError(f"the broker: expected {expected} within {PATIENCE:g} s; seen nothing")


def _expire(future: "asyncio.Future[bool]") -> None:
    """Let a wait end without its condition, unless it has ended."""
    if not future.done():
        future.set_result(False)


class ReceivedRequest(NamedTuple):
    """A request that came in."""

    name: str
    version: int
    body: WireMessage


Handler = Callable[[ReceivedRequest], Awaitable[WireMessage]]
"""Returns the body of the response to a request, when it is ready."""


ROUNDS = 8
"""Rounds of the event loop after which a connection that was accepted is served, or one that was closed has no socket."""


async def end_tasks() -> None:
    """Cancel all other tasks, and wait until their sockets are closed."""
    # A task that is cancelled before it has begun closes nothing: asyncio's own, of a connection just accepted, is one.
    await _go_round()
    own_task = asyncio.current_task()
    for task in asyncio.all_tasks():
        if task is not own_task:
            task.cancel()
    await _go_round()


async def _go_round() -> None:
    """Let the event loop go round ROUNDS times, so that all other tasks run."""
    for _ in range(ROUNDS):
        await asyncio.sleep(0)


class Listener:
    """A listening port that serves the named requests; each connection is served one request after the other."""

    def __init__(self, messages: Messages, serves: Iterable[str], handler: Handler, conditions: Conditions) -> None:
        """Prepare a listener.

        `serves`: the names of the requests that ApiVersions offers; `handler` responds to them; `conditions` are made to
        fail with what a handler raises.
        """
        self._messages, self._handler, self._conditions = messages, handler, conditions
        self._serves = {name: messages.versions(f"{name}Request") for name in serves if f"{name}Request" in messages}
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._is_closed = False

    async def start(self) -> int:
        """Listen on a free port of the loopback and return the port."""
        self._server = await asyncio.start_server(self._accept, HOST, 0)
        return int(self._server.sockets[0].getsockname()[1])

    def close(self) -> None:
        """Stop listening and end every connection."""
        self._is_closed = True
        if self._server is not None:
            # Accept no more, but close the server one round of the loop later: else asyncio would lose a connection that was
            # accepted a moment ago.
            loop = self._server.get_loop()
            for listening in self._server.sockets:
                loop.remove_reader(listening.fileno())
            loop.call_soon(self._server.close)
        for task, writer in self._open.items():
            task.cancel()
            writer.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a new connection in a task of its own."""
        if self._is_closed:
            writer.close()
            return
        task = asyncio.create_task(self._serve(reader, writer))
        self._open[task] = writer  # the event loop itself keeps only weak references to tasks
        task.add_done_callback(self._open.pop)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Respond to the requests of a connection, one after the other, until it ends."""
        try:
            while True:
                writer.write(await self._respond(await _read_frame(reader)))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass  # the other side has gone; it will repeat its request on a new connection
        except Exception as problem:
            # The other side would repeat its request for ever: end the waiting tasks with the reason before they time out.
            self._conditions.fail(problem)
            raise
        finally:
            writer.close()

    async def _respond(self, data: bytes) -> bytes:
        """Return the frame of the response to a request, whose frame is `data`."""
        key, version, correlation_id, client_id_size = _REQUEST_HEADER.unpack_from(data)
        # The body is after the client id, which may be null: length -1.
        position = _REQUEST_HEADER.size + max(client_id_size, 0)
        messages, name = self._messages, self._messages.api_name(key)
        if name == API_VERSIONS:
            # A version that is not known is answered in version 0, so that the client can choose another (KIP-511).
            is_known = version in messages.versions(f"{name}Request")
            return self._encode(name, version if is_known else 0, correlation_id, self._api_versions(is_known))
        if messages.is_flexible(f"{name}Request", version):
            position += 1  # the count of tagged fields: no tagged field of a request header has ever been defined
        body, _ = messages.read(f"{name}Request", version, data, position)
        return self._encode(name, version, correlation_id, await self._handler(ReceivedRequest(name, version, body)))

    def _api_versions(self, is_known: bool) -> WireMessage:
        """Return the body of a response to ApiVersions; `is_known`: whether the request had a version that is known here."""
        api_keys = [
            {"apiKey": self._messages.api_key(name), "minVersion": versions.start, "maxVersion": versions.stop - 1}
            for name, versions in self._serves.items()
        ]
        return {
            "errorCode": 0 if is_known else UNSUPPORTED_VERSION,
            "apiKeys": sorted(api_keys, key=lambda api: api["apiKey"]),
        }

    def _encode(self, name: str, version: int, correlation_id: int, body: WireMessage) -> bytes:
        """Return a response as a frame; that of ApiVersions always has the oldest header (KIP-511)."""
        flexible = name != API_VERSIONS and self._messages.is_flexible(f"{name}Response", version)
        # The header of a flexible version ends with its tagged fields: none.
        head = struct.pack(">i", correlation_id) + (b"\0" if flexible else b"")
        return _framed(head + self._messages.write(f"{name}Response", version, body))

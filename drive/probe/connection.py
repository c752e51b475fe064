"""A client's connection to a broker, one request after the other; every exchange is kept as it went over the wire.

Rules of this file

1. The only place of a probe that knows sockets: everything above is given a `Dial`.
2. A response is read to its last byte. What is left over, or not there, is a broker that does not keep to its version.
   Where a setting is made, what is left over is noted and no more: else a byte behind Metadata would hide all the rest.
3. After a connection is lost the next request opens another.
"""

import itertools
import socket
import struct
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple, Protocol

from tidegauge.drive.wire.compiler import WireMessage
from tidegauge.drive.wire.frames import (
    API_VERSIONS,
    LARGEST_FRAME,
    WireRequest,
    read_response,
    request_frame,
    shared_versions,
)
from tidegauge.drive.wire.messages import Messages
from tidegauge.drive.wire.primitives import WireError

CLIENT = b"tidegauge-probe"
VERSION_AT = 6
"""Where the version stands in a frame: behind the length and the API key."""


class Wire(Protocol):
    """What carries bytes to a broker and back."""

    def send(self, frame: bytes) -> None:
        """A whole frame. Raises OSError."""

    def receive(self) -> bytes:
        """The next frame without its length. Raises OSError, EOFError for a connection that has ended, WireError."""

    def close(self) -> None:
        """Nothing is waited for."""


Dial = Callable[[str, int], Wire]
"""Opens a connection to a host and a port. Raises OSError."""


class SocketWire:
    """Bytes over TCP."""

    def __init__(self, host: str, port: int, seconds: float) -> None:
        self._socket = socket.create_connection((host, port), seconds)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, frame: bytes) -> None:
        """All of it."""
        self._socket.sendall(frame)

    def receive(self) -> bytes:
        """Whatever its length says, within bounds."""
        (size,) = struct.unpack(">i", self._take(4))
        if not 0 <= size <= LARGEST_FRAME:
            raise WireError(f"expected a frame of at most {LARGEST_FRAME:,} bytes; seen a length of {size}")
        return self._take(size)

    def close(self) -> None:
        """At once."""
        self._socket.close()

    def _take(self, size: int) -> bytes:
        taken = bytearray()
        while len(taken) < size:
            part = self._socket.recv(size - len(taken))
            if not part:
                raise EOFError
            taken += part
        return bytes(taken)


def tcp(seconds: float) -> Dial:
    """Connections over TCP that wait so long for anything."""
    return lambda host, port: SocketWire(host, port, seconds)


class Exchange(NamedTuple):
    """A request and what came back; `sent` has its length in front, `received` has not. `problem`: why
    there is no response, or what lies behind it."""

    to: str
    call: WireRequest
    sent: bytes
    received: bytes | None = None
    response: WireMessage | None = None
    problem: str = ""


class LinkError(WireError):
    """There is no response that could be read."""


class ClosedError(LinkError):
    """The broker has closed the connection."""


def only(message: WireMessage, *fields: str) -> WireMessage:
    """The one entry of a list in a response, of a list in that, and so on. Raises LinkError unless it is one."""
    for name in fields:
        if len(message[name]) != 1:
            raise LinkError(f"expected a response about one entry of {name}; seen {len(message[name])}")
        message = message[name][0]
    return message


class Link:
    """Requests to one broker. `keep` is given every exchange."""

    def __init__(self, messages: Messages, dial: Dial, host: str, port: int, keep: Callable[[Exchange], None]) -> None:
        self._messages, self._dial, self._keep = messages, dial, keep
        self._host, self._port, self.place = host, port, f"{host}:{port}"
        self._wire: Wire | None = None
        self._numbers = itertools.count(1)
        self._versions: Mapping[str, range] | None = None
        self.unanswered = False
        """Whether a request went out last and nothing came back."""

    @property
    def versions(self) -> Mapping[str, range]:
        """What both sides can say, by name of the request."""
        if self._versions is None:
            found = self.ask(WireRequest(API_VERSIONS, 0, {}))
            if found["errorCode"]:
                raise LinkError(f"{API_VERSIONS}: expected no error; seen {found['errorCode']}")
            self._versions = shared_versions(self._messages, found)
        return self._versions

    def ask(self, call: WireRequest) -> WireMessage:
        """One request and its response. Raises LinkError."""
        (response,) = self.together((call,))
        return response

    def arrange(self, call: WireRequest) -> WireMessage:
        """The same for a setting, where bytes behind the response are noted and no error. Raises LinkError."""
        return self._received(*self._sent(call), strict=False)

    def together(self, calls: Iterable[WireRequest]) -> list[WireMessage]:
        """Some requests, sent before any response is read."""
        pending = [self._sent(call) for call in calls]
        return [self._received(exchange, number) for exchange, number in pending]

    def send(self, call: WireRequest) -> None:
        """A request that has no response."""
        self._keep(self._sent(call)[0])

    def claim(self, call: WireRequest, version: int) -> WireMessage:
        """A request whose header claims a version that nobody has; the response must be in version 0 (KIP-511)."""
        frame = request_frame(self._messages, call, number := next(self._numbers), CLIENT)
        frame = frame[:VERSION_AT] + struct.pack(">h", version) + frame[VERSION_AT + 2 :]
        return self._received(self._out(call._replace(version=0), frame), number)

    def close(self) -> None:
        """Nothing is waited for."""
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def dial_anew(self, dial: Dial) -> None:
        """Close the connection, and open the next ones so."""
        self.close()
        self._dial = dial

    def _sent(self, call: WireRequest) -> tuple[Exchange, int]:
        number = next(self._numbers)
        return self._out(call, request_frame(self._messages, call, number, CLIENT)), number

    def _out(self, call: WireRequest, frame: bytes) -> Exchange:
        exchange, self.unanswered = Exchange(self.place, call, frame), False
        try:
            if self._wire is None:
                self._wire = self._dial(self._host, self._port)
            self._wire.send(frame)
            self.unanswered = True
        except OSError as problem:
            raise self._lost(exchange, f"no connection: {problem.strerror or problem}") from problem
        except (OverflowError, UnicodeError) as problem:  # what metadata says is no port or no host
            raise self._lost(exchange, f"no connection: {problem}") from problem
        return exchange

    def _received(self, exchange: Exchange, number: int, strict: bool = True) -> WireMessage:
        if self._wire is None:
            raise self._lost(exchange, "the connection was lost before")
        try:
            data = self._wire.receive()
        except (EOFError, ConnectionError) as problem:  # reset where the broker had not read everything
            raise ClosedError(str(self._lost(exchange, "the connection was closed"))) from problem
        except (OSError, WireError) as problem:
            raise self._lost(exchange, f"no response: {problem}") from problem
        exchange, self.unanswered = exchange._replace(received=data), False
        try:
            response, end = read_response(self._messages, exchange.call, number, data)
        except WireError as problem:
            raise self._lost(exchange, f"no response that can be read: {problem}") from problem
        behind = f"{len(data) - end} bytes behind the response, where it ends in this version" if end != len(data) else ""
        if behind and strict:
            raise self._lost(exchange, behind)
        self._keep(exchange._replace(response=response, problem=behind))
        return response

    def _lost(self, exchange: Exchange, why: str) -> LinkError:
        """What goes on after this is a new connection: on the old one nobody knows whose response comes next."""
        self._keep(exchange._replace(problem=why))
        with suppress(OSError):
            self.close()
        return LinkError(f"{exchange.call.name} to {self.place}: expected a response; seen {why}")

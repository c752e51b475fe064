"""A client's connection to a broker, one request after the other; every exchange is recorded as it went over the wire.

Terms: a `Wire` carries frames (a message with its length before it) over one connection; a `Dial` is a function that opens
one; a call is a request that has not been encoded (WireRequest); an exchange is a call, its response, and the bytes of both.

Rules of this file

1. Only this file of the probe knows sockets: all others get a `Dial`.
2. A response is read to its last byte. A byte too many or too few is a broker that does not keep to its version.
3. After a connection is lost, the next request opens another.
"""

import gzip
import itertools
import json
import socket
import ssl
import struct
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tidegauge.drive.kafka_process.builds import find_build
from tidegauge.drive.wire.compiler import Messages, WireError, WireMessage, definitions_in
from tidegauge.drive.wire.frames import (
    API_VERSIONS,
    LARGEST_FRAME,
    WireRequest,
    read_response,
    request_frame,
    shared_versions,
)

CLIENT = b"tidegauge-probe"
PART_BYTES, HEED_SECONDS = 1 << 20, 0.2
"""Bytes that are received at once, and seconds after which an interrupt is heeded while a response is waited for."""
TLS_ALERT = 0x1503
"""How a TLS alert begins (RFC 8446, 5.1)."""
VERSION_AT = 6
"""The position of the version in a frame: after the length and the API key."""


class Wire(Protocol):
    """Carries frames to a broker and back."""

    def send(self, frame: bytes) -> None:
        """Send a whole frame, which begins with its length. Raises OSError."""

    def receive(self) -> bytes:
        """Return the next frame without its length. Raises OSError, EOFError for a connection that has ended, WireError."""

    def close(self) -> None:
        """Close without waiting for anything."""


Dial = Callable[[str, int], Wire]
"""Opens a connection to a host and a port. Raises OSError."""


class SocketWire:
    """A wire over TCP, or over TLS if there is a context. `name`: the name of the host in its certificate."""

    def __init__(self, host: str, port: int, seconds: float, tls: ssl.SSLContext | None = None, name: str = "") -> None:
        """Connect, and with `tls` agree on the encryption; `seconds` limits each wait for the other side."""
        self._socket, self._seconds = socket.create_connection((host, port), seconds), seconds
        self.heed: Callable[[], None] | None = None
        """If set, it is called every HEED_SECONDS while a response is waited for, and may raise KeyboardInterrupt."""
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            # Python applies the timeout to the whole handshake, and closes the socket if that fails.
            self._socket = tls.wrap_socket(self._socket, server_hostname=name or host)

    def send(self, frame: bytes) -> None:
        """Send a whole frame."""
        self._socket.settimeout(self._seconds)
        self._socket.sendall(frame)

    def receive(self) -> bytes:
        """Return the next frame without its length, if that is within bounds and all of it comes in time."""
        deadline = time.monotonic() + self._seconds
        (size,) = struct.unpack(">i", self._take(4, deadline))
        # The first bytes of another protocol, such as a TLS alert, are read as a huge length.
        if not 0 <= size <= LARGEST_FRAME:
            why = "; this is how TLS refuses: the listener needs --command-config" if size >> 16 == TLS_ALERT else ""
            raise WireError(f"expected a frame of at most {LARGEST_FRAME:,} bytes; seen a length of {size}{why}")
        return self._take(size, deadline)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _take(self, size: int, deadline: float) -> bytes:
        """Receive exactly `size` bytes. Raises TimeoutError at the deadline, EOFError when the broker closes."""
        data = bytearray()
        while len(data) < size:
            # The time is that of the whole response: a broker that sends a byte a second must not hold the probe for ever.
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise TimeoutError("timed out")
            # Where there is somebody to heed, wait in short steps; the deadline alone decides when it is too late.
            self._socket.settimeout(remaining if self.heed is None else min(remaining, HEED_SECONDS))
            try:
                part = self._socket.recv(min(size - len(data), PART_BYTES))
            except TimeoutError:
                part = None
            if self.heed is not None:
                self.heed()
            # recv returns no bytes when the other side has closed the connection.
            if part == b"":
                raise EOFError
            data += part or b""
        return bytes(data)


def tcp(seconds: float) -> Dial:
    """Return a dial for connections over TCP that wait at most so many seconds for anything."""
    return lambda host, port: SocketWire(host, port, seconds)


class _InterruptibleWire:
    """A wire that calls `heed`, which may raise KeyboardInterrupt, before it sends and while it waits for a response."""

    def __init__(self, wire: Wire, heed: Callable[[], None]) -> None:
        """Wrap a wire; a SocketWire is made to call `heed` itself while it waits."""
        self._wire, self._heed = wire, heed
        if isinstance(wire, SocketWire):
            wire.heed = heed
        self.receive, self.close = wire.receive, wire.close

    def send(self, frame: bytes) -> None:
        """Send a frame, unless `heed` raises."""
        self._heed()
        self._wire.send(frame)


def heeding(dial: Dial, heed: Callable[[], None]) -> Dial:
    """Return a dial for connections that call `heed` before each request and while they wait for a response.

    `heed` raises KeyboardInterrupt if there was a Ctrl-C, which is deferred until then (util/interrupts.py).
    """
    # At these points it is known whether a request is unanswered: a topic whose creation is still under way can be waited
    # for and deleted.
    return lambda host, port: _InterruptibleWire(dial(host, port), heed)


class WireExchange(NamedTuple):
    """A request and its response. `to`: the broker as "host:port"; `call`: the request; `response`: the decoded response.

    `sent` and `received` are the frames, the first with its length before it, the second without. `received` and `response`
    are None where there is none. `problem`: why there is no response, or that bytes follow it; "" if all is well.
    """

    to: str
    call: WireRequest
    sent: bytes
    received: bytes | None = None
    response: WireMessage | None = None
    problem: str = ""


class NoResponseError(WireError):
    """There is no response that can be read."""


class UnreadableResponseError(NoResponseError):
    """There is a response, but it cannot be decoded in the version of the request."""


class NoConnectionError(NoResponseError):
    """No connection could be opened."""


class ConnectionClosedError(NoResponseError):
    """The broker has closed the connection."""


def single_entry(message: WireMessage, *fields: str) -> WireMessage:
    """Return the only entry of the list `fields[0]` of a message; or of the list `fields[1]` in that entry, and so on.

    Raises NoResponseError where a list has no entry or several.
    """
    for name in fields:
        if len(message[name]) != 1:
            raise NoResponseError(f"expected a response about one entry of {name}; seen {len(message[name])}")
        message = message[name][0]
    return message


def api_versions_call(version: int) -> WireRequest:
    """Make an ApiVersions request; those from version 3 on carry the client's name."""
    return WireRequest(API_VERSIONS, version, {"clientSoftwareName": "tidegauge", "clientSoftwareVersion": "0"})


class BrokerConnection:
    """A client's connection to one broker, opened when it is first needed. `place`: the broker as "host:port"."""

    def __init__(self, messages: Messages, dial: Dial, host: str, port: int, keep: Callable[[WireExchange], None]) -> None:
        """Prepare a connection, which the first request opens with `dial`. `keep` is called with every exchange."""
        self._messages, self._dial, self._keep = messages, dial, keep
        self._host, self._port, self.place = host, port, f"{host}:{port}"
        self._wire: Wire | None = None
        self._correlation_ids = itertools.count(1)
        self._versions: Mapping[str, range] | None = None
        self.own_version = 0
        """The version of ApiVersions whose response could be read."""
        self.unanswered = False
        """Whether the last request was sent and no response was received."""

    @property
    def versions(self) -> Mapping[str, range]:
        """The versions that both sides have, by request name; requested once. Raises NoResponseError."""
        if self._versions is None:
            response = self._api_versions()
            if response["errorCode"]:
                raise NoResponseError(f"{API_VERSIONS}: expected no error; seen {response['errorCode']}")
            self._versions = shared_versions(self._messages, response)
        return self._versions

    def _api_versions(self) -> WireMessage:
        """Return the response to ApiVersions in version 0, or else in the newest version whose response can be read.

        Raises NoResponseError if there is no such version.
        """
        try:
            return self.request(WireRequest(API_VERSIONS, 0, {}))
        except NoConnectionError:
            # A second attempt with a wrong password could lock the account.
            raise
        except NoResponseError:
            # Some brokers answer in one version whatever the version of the request, which clients of today do not notice.
            # Try all but version 0, the newest first.
            for version in reversed(self._messages.versions(f"{API_VERSIONS}Request")[1:]):
                with suppress(NoResponseError):
                    response = self.request(api_versions_call(version))
                    self.own_version = version
                    return response
            # None could be read: the error is that of version 0.
            raise

    def request(self, call: WireRequest) -> WireMessage:
        """Send a request and return its response. Raises NoResponseError."""
        (response,) = self.request_all((call,))
        return response

    def request_leniently(self, call: WireRequest) -> WireMessage:
        """Send a request and return its response, also if bytes follow it. Raises NoResponseError."""
        # For the requests that prepare a check: an extra byte after Metadata would otherwise keep all checks from running.
        return self._received(*self._send_call(call), strict=False)

    def request_all(self, calls: Iterable[WireRequest]) -> list[WireMessage]:
        """Send all requests before any response is read; return the responses. Raises NoResponseError."""
        pending = [self._send_call(call) for call in calls]
        return [self._received(exchange, correlation_id) for exchange, correlation_id in pending]

    def send(self, call: WireRequest) -> None:
        """Send a request that gets no response (Produce with acks=0)."""
        exchange, _ = self._send_call(call)
        self._keep(exchange)

    def request_claiming(self, call: WireRequest, version: int) -> WireMessage:
        """Send `call`, encoded in its own version, with another version in its header; return the response.

        The response is read in version 0, in which a broker answers an ApiVersions request of an unknown version (KIP-511).
        Raises NoResponseError.
        """
        correlation_id = next(self._correlation_ids)
        frame = request_frame(self._messages, call, correlation_id, CLIENT)
        frame = frame[:VERSION_AT] + struct.pack(">h", version) + frame[VERSION_AT + 2 :]
        return self._received(self._send_frame(call._replace(version=0), frame), correlation_id)

    def close(self) -> None:
        """Close the connection."""
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def dial_anew(self, dial: Dial) -> None:
        """Close the connection; the next request opens one with this dial."""
        self.close()
        self._dial = dial

    def _send_call(self, call: WireRequest) -> tuple[WireExchange, int]:
        """Send a request; return its exchange, as yet without a response, and its correlation id. Raises NoResponseError."""
        correlation_id = next(self._correlation_ids)
        return self._send_frame(call, request_frame(self._messages, call, correlation_id, CLIENT)), correlation_id

    def _send_frame(self, call: WireRequest, frame: bytes) -> WireExchange:
        """Send the frame of a request, and connect first if need be; return the exchange, as yet without a response.

        Raises NoConnectionError or NoResponseError.
        """
        exchange, self.unanswered = WireExchange(self.place, call, frame), False
        try:
            if self._wire is None:
                self._wire = self._dial(self._host, self._port)
        # Host and port may be from the broker's Metadata, and as wrong as it likes: the last two errors are about those.
        except (OSError, OverflowError, UnicodeError) as problem:
            why = f"no connection: {getattr(problem, 'strerror', None) or problem}"
            # The error that `_lost` returns is of the base class: its text goes into the one that says what happened.
            raise NoConnectionError(str(self._lost(exchange, why))) from problem
        try:
            self._wire.send(frame)
            self.unanswered = True
        except OSError as problem:
            raise self._lost(exchange, f"no connection: {problem.strerror or problem}") from problem
        return exchange

    def _received(self, exchange: WireExchange, correlation_id: int, strict: bool = True) -> WireMessage:
        """Receive the response to a request that was sent, and record the exchange. Raises NoResponseError.

        `strict`: bytes after the end of the response are an error; else they are only noted in the exchange.
        """
        # Of several requests that were sent together, an earlier one has ended the connection.
        if self._wire is None:
            raise self._lost(exchange, "the connection was lost before")
        try:
            data = self._wire.receive()
        except (EOFError, ConnectionError) as problem:
            # A broker that closes before it has read everything resets the connection. `_lost` returns the base class; its
            # text goes into the error that says what happened.
            raise ConnectionClosedError(str(self._lost(exchange, "the connection was closed"))) from problem
        except (OSError, WireError) as problem:
            raise self._lost(exchange, f"no response: {problem}") from problem
        exchange, self.unanswered = exchange._replace(received=data), False
        try:
            response, end = read_response(self._messages, exchange.call, correlation_id, data)
        except WireError as problem:
            raise UnreadableResponseError(str(self._lost(exchange, f"no response that can be read: {problem}"))) from problem
        extra = f"{len(data) - end} bytes after the end of the response in this version" if end != len(data) else ""
        if extra and strict:
            raise self._lost(exchange, extra)
        self._keep(exchange._replace(response=response, problem=extra))
        return response

    def _lost(self, exchange: WireExchange, why: str) -> NoResponseError:
        """Record a failed exchange, close the connection, and return the error that the caller is to raise.

        `why`: what was seen in place of the response.
        """
        # On the old connection nobody knows to which request the next response would belong.
        self._keep(exchange._replace(problem=why))
        with suppress(OSError):
            self.close()
        return NoResponseError(f"{exchange.call.name} to {self.place}: expected a response; seen {why}")


# The message definitions of the probe's requests: a user who probes a broker has its address, not its jars.
#
# They are those of one release of Kafka, packed beside this file without comments and explanations. Brokers of other
# releases get a version that both sides have. `python -m tidegauge.drive.probe.connection JARS` packs those of another
# release. Why they are shipped: docs/decisions/0008-a-probe-ships-its-definitions.md.


REQUESTS = (
    "AlterPartitionReassignments",
    "ApiVersions",
    "CreateTopics",
    "DeleteRecords",
    "DeleteTopics",
    "ElectLeaders",
    "Fetch",
    "InitProducerId",
    "ListOffsets",
    "Metadata",
    "OffsetForLeaderEpoch",
    "Produce",
    "SaslAuthenticate",
    "SaslHandshake",
)
PACKED = Path(__file__).with_name("definitions.json.gz")
LICENCE = "Apache License 2.0. Licensed to the Apache Software Foundation (ASF), see the NOTICE file of Apache Kafka."
EXPLANATIONS = frozenset({"about", "entityType"})


@cache
def shipped_messages() -> Messages:
    """Return the codec of REQUESTS and their responses, from the definitions beside this file."""
    return Messages(json.loads(gzip.decompress(PACKED.read_bytes()))["definitions"])


def pack_definitions(jars: Path) -> bytes:
    """Return the content of PACKED for the release with its jars in the folder `jars`; the same jars give the same bytes."""
    message_names = {f"{name}{side}" for name in REQUESTS for side in ("Request", "Response")}
    # In one order, and compressed without a time, so that the bytes depend on the jars alone.
    definitions = sorted(
        (
            definition
            for definition in definitions_in(jars.glob("kafka-clients-*.jar"))
            if definition["name"] in message_names
        ),
        key=itemgetter("name"),
    )
    origin = f"common/message/*.json in kafka-clients-{find_build(jars).version}.jar, without comments and explanations"
    text = json.dumps({"origin": origin, "licence": LICENCE, "definitions": _bare(definitions)}, separators=(",", ":"))
    return gzip.compress(text.encode(), mtime=0)


def _bare(value: Any) -> Any:
    """Return a definition, or a value in it, without the keys in EXPLANATIONS."""
    match value:
        case dict():
            return {key: _bare(inner) for key, inner in value.items() if key not in EXPLANATIONS}
        case list():
            return [_bare(inner) for inner in value]
        case _:
            return value


if __name__ == "__main__":
    PACKED.write_bytes(pack_definitions(Path(sys.argv[1])))

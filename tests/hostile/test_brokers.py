"""What a broker that is probed sends: bounded in bytes, in elements and in time, and it chooses no machine to connect to."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from tidegauge.drive.probe import connection
from tidegauge.drive.probe.connection import (
    BrokerConnection,
    NoResponseError,
    SocketWire,
    Wire,
    shipped_messages,
    tcp,
)
from tidegauge.drive.probe.security import METADATA_SERVICES, staying_with
from tidegauge.drive.wire.compiler import LONGEST_VARINT, Cursor, WireError, read_uvarint
from tidegauge.drive.wire.frames import API_VERSIONS, LARGEST_FRAME, WireRequest

HOST = "127.0.0.1"


@contextmanager
def broker(response: Callable[[socket.socket], object]) -> Iterator[int]:
    """Listen on a port, and answer the first request of one client."""
    with socket.create_server((HOST, 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                peer, _ = server.accept()
                with peer, suppress(OSError):
                    peer.recv(1 << 16)
                    response(peer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            # A client that never came is not waited for.
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            thread.join()


def refusal(frame: bytes, seconds: float = 60) -> str:
    """Ask a broker that sends these bytes for its versions; return why there is no response."""
    with broker(lambda peer: peer.sendall(frame)) as port:
        asked = BrokerConnection(shipped_messages(), tcp(seconds), HOST, port, lambda _: None)
        with pytest.raises(NoResponseError) as raised:
            asked.request(WireRequest(API_VERSIONS, 3, {"clientSoftwareName": "x", "clientSoftwareVersion": "1"}))
        asked.close()
    return str(raised.value)


def framed(body: bytes) -> bytes:
    """Put a length, and the correlation id of the first request, before the body of a response."""
    return struct.pack(">ii", len(body) + 4, 1) + body


@pytest.mark.parametrize("size", [-1, LARGEST_FRAME + 1, (1 << 31) - 1])
def test_a_frame_of_any_length_is_not_waited_for(size: int) -> None:
    assert f"seen a length of {size}" in refusal(struct.pack(">i", size))


def test_an_alert_of_tls_says_what_to_do() -> None:
    """A handshake failure, as a listener with TLS answers a client without."""
    assert "--command-config" in refusal(b"\x15\x03\x03\0\x02\x02\x28")


@pytest.mark.parametrize(
    "body",
    [
        b"\0\0" + b"\xff" * 4096 + b"\x01",  # the number of entries is a varint without end
        b"\0\0" + b"\xff\xff\xff\xff\x07",  # more entries than the bytes that follow
        b"\0\0\x01\0\0\0\0\xff\xff\xff\xff\x07",  # more tagged fields than that
        b"\0\0\x01\0\0\0\0\x01\x07\xff\xff\xff\xff\x07",  # a tagged field of 2 GB
    ],
    ids=["varint", "entries", "tags", "tag"],
)
def test_a_response_that_promises_more_than_it_has_is_refused(body: bytes) -> None:
    assert "no response that can be read" in refusal(framed(body))


def test_a_number_has_ten_bytes_at_most() -> None:
    assert read_uvarint(Cursor(b"\xff" * (LONGEST_VARINT - 1) + b"\x01")) == (1 << 64) - 1
    with pytest.raises(IndexError, match="more than 10 bytes"):
        read_uvarint(Cursor(b"\xff" * LONGEST_VARINT + b"\x01"))


def test_the_elements_of_all_arrays_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays in arrays: each is small."""
    entry = b"\0\x01\0\0\0\x01\0"  # an API key with two versions, no tagged fields
    body = b"\0\0\x04" + entry * 3 + b"\0\0\0\0" + b"\0"
    messages = shipped_messages()
    assert len(messages.read("ApiVersionsResponse", 3, body)[0]["apiKeys"]) == 3
    monkeypatch.setattr("tidegauge.drive.wire.compiler.MOST_ELEMENTS", 2)
    with pytest.raises(WireError):
        messages.read("ApiVersionsResponse", 3, body)


def test_the_time_is_that_of_the_whole_response(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that sends a byte whenever the client is about to give up: ten seconds pass between two bytes."""
    clock = iter(range(0, 10_000, 10))
    monkeypatch.setattr(connection.time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(connection, "PART_BYTES", 1)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        wire = SocketWire.__new__(SocketWire)
        wire._socket, wire._seconds, wire.heed = ours, 60.0, None
        theirs.sendall(framed(bytes(100)))
        with pytest.raises(TimeoutError):
            wire.receive()


def dialled(*, follow_metadata: bool, host: str = "broker.example") -> tuple[list[str], Callable[[str, int], Wire]]:
    """Return the hosts that were connected to, and the dial of a user who named a host."""
    hosts: list[str] = []

    def dial(named: str, _port: int, _name: str) -> Wire:
        hosts.append(named)
        raise ConnectionRefusedError

    return hosts, staying_with(host, dial, follow_metadata=follow_metadata)


def test_a_host_that_metadata_names_is_not_connected_to() -> None:
    hosts, dial = dialled(follow_metadata=False)
    for named in ("127.0.0.1", "169.254.169.254", "other\x1b[2J"):
        with pytest.raises(OSError, match="--follow-metadata goes there") as raised:
            dial(named, 9092)
        assert str(raised.value.strerror).isprintable()
    assert hosts == []
    with pytest.raises(ConnectionRefusedError):
        dial("Broker.Example", 9092)
    assert hosts == ["Broker.Example"]


@pytest.mark.parametrize(
    "named",
    [
        "169.254.169.254",
        "fe80::1",
        "::ffff:169.254.169.254",
        "::169.254.169.254",
        "::ffff:0:169.254.169.254",
        "64:ff9b::169.254.169.254",
        "64:ff9b:1::169.254.169.254",
        "64:ff9b:1:a9fe:a9:fe00::",
        "64:ff9b:1:a9:fe:a9fe::",
        "64:ff9b:1:0:a9:fea9:fe00:0",
        "2002:a9fe:a9fe::1",
        "2001:0:a9fe:a9fe::",
        "2001:0:c000:0201:0:0:5601:5601",
        "2001:db8::5efe:169.254.169.254",
        "2001:db8::200:5efe:a9fe:a9fe",
    ],
)
def test_no_link_local_address_is_connected_to_whoever_asks(named: str) -> None:
    """However it is written."""
    hosts, dial = dialled(follow_metadata=True)
    with pytest.raises(OSError, match="a link-local address"):
        dial(named, 80)
    assert hosts == []


@pytest.mark.parametrize("named", [*map(str, METADATA_SERVICES), "2002:a83f:8110::1"])
def test_nor_a_metadata_service_at_another_address(named: str) -> None:
    hosts, dial = dialled(follow_metadata=True)
    with pytest.raises(OSError, match="the metadata service of "):
        dial(named, 80)
    assert hosts == []


@pytest.mark.parametrize("named", ["127.0.0.1", "::1", "0.0.0.0", "::", "::ffff:127.9.9.9", "2002:7f00:1::", "localhost"])
def test_a_loopback_address_is_connected_to_if_the_named_host_has_one(named: str) -> None:
    hosts, dial = dialled(follow_metadata=True, host="192.0.2.1")
    with pytest.raises(OSError, match="a loopback address"):
        dial(named, 9092)
    assert hosts == []
    hosts, dial = dialled(follow_metadata=True, host="127.0.0.2")
    with pytest.raises(ConnectionRefusedError):
        dial(named, 9092)
    assert hosts


@pytest.mark.parametrize(
    "named", ["192.0.2.7", "10.1.2.3", "2001:db8::7", "2002:c000:207::1", "64:ff9b::c000:207", "64:ff9b:1::c000:207"]
)
def test_other_addresses_are_connected_to(named: str) -> None:
    hosts, dial = dialled(follow_metadata=True)
    with pytest.raises(ConnectionRefusedError):
        dial(named, 9092)
    assert hosts == [named]


def test_the_address_that_was_looked_at_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that leads elsewhere when it is asked again."""
    given = iter(("192.0.2.7", "169.254.169.254"))
    monkeypatch.setattr(connection.socket, "getaddrinfo", lambda *_, **__: [(socket.AF_INET, 1, 6, "", (next(given), 9092))])
    hosts, dial = dialled(follow_metadata=True)
    with pytest.raises(ConnectionRefusedError):
        dial("other.example", 9092)
    assert hosts == ["192.0.2.7"]
    with pytest.raises(OSError, match="a link-local address"):
        dial("other.example", 9092)


def test_every_address_of_a_host_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker may listen at one of them only."""
    given = [(socket.AF_INET6, 1, 6, "", ("2001:db8::7", 9092, 0, 0)), (socket.AF_INET, 1, 6, "", ("192.0.2.7", 9092))]
    monkeypatch.setattr(connection.socket, "getaddrinfo", lambda *_, **__: given)
    hosts, dial = dialled(follow_metadata=True)
    with pytest.raises(ConnectionRefusedError):
        dial("other.example", 9092)
    assert hosts == ["2001:db8::7", "192.0.2.7"]

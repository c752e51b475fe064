"""The types that Kafka's messages are made of: integers, strings, bytes, uuids, arrays, with compact lengths or without.

Source: org.apache.kafka.common.protocol.types.Type; KIP-482 for compact lengths, which count one more so that 0 is null.
"""

import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from tidegauge.impl.errors import TidegaugeError


class WireError(TidegaugeError):
    """Bytes or values that are no message of Kafka's protocol, or a peer that does not keep to it."""


class Cursor:
    """A place in some bytes."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def take(self, size: int) -> bytes:
        """The next bytes."""
        end = self.at + size
        if size < 0 or end > len(self.data):
            raise IndexError(f"{len(self.data) - self.at} bytes where {size} were promised")
        taken = self.data[self.at : end]
        self.at = end
        return taken


class Codec(NamedTuple):
    """How a value is written and read; its form in Python's struct, if it always has the same size."""

    write: Callable[[bytearray, Any], None]
    read: Callable[[Cursor], Any]
    form: str = ""


def write_uvarint(out: bytearray, number: int) -> None:
    """Seven bits a byte, the lowest first. ByteUtils#writeUnsignedVarint."""
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def read_uvarint(cursor: Cursor) -> int:
    """ByteUtils#readUnsignedVarint."""
    number = shift = 0
    while True:
        byte = cursor.data[cursor.at]
        cursor.at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number
        shift += 7


def _fixed(form: str) -> Codec:
    packed = struct.Struct(form)

    def write(out: bytearray, value: Any) -> None:
        out += packed.pack(value)

    def read(cursor: Cursor) -> Any:
        (value,) = packed.unpack_from(cursor.data, cursor.at)
        cursor.at += packed.size
        return value

    return Codec(write, read, form[1:])


def _length(flexible: bool, form: str) -> Codec:
    """A length, -1 for null."""
    if not flexible:
        return _fixed(form)
    return Codec(lambda out, size: write_uvarint(out, size + 1), lambda cursor: read_uvarint(cursor) - 1)


def _sized(form: str, pack: Callable[[Any], bytes], unpack: Callable[[bytes], Any]) -> Callable[[bool, bool], Codec]:
    def made(flexible: bool, nullable: bool) -> Codec:
        length = _length(flexible, form)

        def write(out: bytearray, value: Any) -> None:
            if value is None:
                _refuse_null(nullable)
                length.write(out, -1)
                return
            data = pack(value)
            length.write(out, len(data))
            out += data

        def read(cursor: Cursor) -> Any:
            size = length.read(cursor)
            return None if size < 0 else unpack(cursor.take(size))

        return Codec(write, read)

    return made


def _refuse_null(nullable: bool) -> None:
    if not nullable:
        raise WireError("message: expected a value, for the field cannot be null; seen None")


def array(element: Codec, flexible: bool, nullable: bool) -> Codec:
    """A list of values."""
    length = _length(flexible, ">i")

    def write(out: bytearray, values: Any) -> None:
        if values is None:
            _refuse_null(nullable)
            length.write(out, -1)
            return
        length.write(out, len(values))
        for value in values:
            element.write(out, value)

    def read(cursor: Cursor) -> Any:
        size = length.read(cursor)
        return None if size < 0 else [element.read(cursor) for _ in range(size)]

    return Codec(write, read)


def _uuid() -> Codec:
    def write(out: bytearray, value: UUID) -> None:
        out += value.bytes

    return Codec(write, lambda cursor: _uuid_of(cursor.take(16)))


@lru_cache(1 << 12)
def _uuid_of(data: bytes) -> UUID:
    """Of few topics there is much to say."""
    return UUID(bytes=data)


_FORMS = {
    "bool": ">?",
    "int8": ">b",
    "int16": ">h",
    "uint16": ">H",
    "int32": ">i",
    "uint32": ">I",
    "int64": ">q",
    "float64": ">d",
}


def _always(codec: Codec) -> Callable[[bool, bool], Codec]:
    return lambda _flexible, _nullable: codec


PRIMITIVES: Mapping[str, Callable[[bool, bool], Codec]] = {
    **{name: _always(_fixed(form)) for name, form in _FORMS.items()},
    "uuid": _always(_uuid()),
    "string": _sized(">h", str.encode, bytes.decode),
    "bytes": _sized(">i", bytes, bytes),
    "records": _sized(">i", bytes, bytes),
}
"""Name -> (flexible, nullable) -> codec."""

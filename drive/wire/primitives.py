"""The primitive types of Kafka's messages: integers, strings, bytes, uuids and arrays, with plain or compact lengths.

Source: org.apache.kafka.common.protocol.types.Type; KIP-482 for compact lengths.
"""

import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from tidegauge.impl.errors import TidegaugeError


class WireError(TidegaugeError):
    """Bytes or values that are no message of Kafka's protocol, or a peer that breaks the protocol."""


class Cursor:
    """A read position in some bytes."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes and step over them. Raises IndexError when there are fewer."""
        end = self.at + size
        # A slice of bytes is silently shorter at the end, and a negative size would step back.
        if size < 0 or end > len(self.data):
            raise IndexError(f"{len(self.data) - self.at} bytes where {size} were promised")
        data = self.data[self.at : end]
        self.at = end
        return data


class Codec(NamedTuple):
    """How a value is written and read. `form`: its format character in Python's struct if its size is fixed, else ""."""

    write: Callable[[bytearray, Any], None]
    read: Callable[[Cursor], Any]
    form: str = ""


def write_uvarint(out: bytearray, number: int) -> None:
    """Append a number, seven bits a byte, the lowest first. ByteUtils#writeUnsignedVarint."""
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def read_uvarint(cursor: Cursor) -> int:
    """Read a number that `write_uvarint` wrote. ByteUtils#readUnsignedVarint."""
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
    """Return the codec of a length, where -1 stands for null."""
    if not flexible:
        return _fixed(form)
    # A compact length counts one more, so that null is 0 and fits an unsigned number (KIP-482).
    return Codec(lambda out, size: write_uvarint(out, size + 1), lambda cursor: read_uvarint(cursor) - 1)


def _sized(form: str, pack: Callable[[Any], bytes], unpack: Callable[[bytes], Any]) -> Callable[[bool, bool], Codec]:
    """Return a maker of codecs, by (flexible, nullable), of values with a length before them."""

    def codec(flexible: bool, nullable: bool) -> Codec:
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

    return codec


def _refuse_null(nullable: bool) -> None:
    if not nullable:
        raise WireError("message: expected a value, for the field cannot be null; seen None")


def array(element: Codec, flexible: bool, nullable: bool) -> Codec:
    """Return the codec of a list of values."""
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


@lru_cache(1 << 12)
def _uuid_of(data: bytes) -> UUID:
    # Cached: few distinct topic ids occur, many times each.
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
    "uuid": _always(Codec(lambda out, value: out.extend(value.bytes), lambda cursor: _uuid_of(cursor.take(16)))),
    "string": _sized(">h", str.encode, bytes.decode),
    "bytes": _sized(">i", bytes, bytes),
    "records": _sized(">i", bytes, bytes),
}
"""Name -> (flexible, nullable) -> codec."""

"""Compiles a message definition: the fields of one version become two functions, one that writes and one that reads.

A definition is one of Kafka's JSON files, or a field in one, as a dict; a message is a plain dict by field name. A codec is
the pair of functions for one type, field or message: `write(out, value)` appends bytes to `out`, `read(cursor)` returns the
value at a position in some bytes and moves the position behind it. `flexible` says that a version has compact lengths and
tagged fields (KIP-482), `nullable` that a value may be None. Where bytes are no message, `read` raises IndexError,
struct.error or UnicodeDecodeError, which `Messages.read` makes a WireError.

Rule of this file: adjacent numbers are packed and unpacked by one `struct`, because most of a message is numbers.
Source: the README of clients/src/main/resources/common/message in apache/kafka; KIP-482 for tagged fields.
"""

import json
import re
import struct
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from tidegauge.util.errors import TidegaugeError

# The primitive types of Kafka's messages: integers, strings, bytes, uuids and arrays, with plain or compact lengths.
#
# Source: org.apache.kafka.common.protocol.types.Type; KIP-482 for compact lengths.


class WireError(TidegaugeError):
    """Bytes or values that are no message of Kafka's protocol, or a peer that breaks the protocol."""


MOST_ELEMENTS = 1_000_000
"""Elements of all arrays of a message; a cluster's metadata has some for each of its partitions, 200,000 at most."""
LONGEST_VARINT = 10
"""Bytes of a number of 64 bits, seven bits a byte."""


class Cursor:
    """A read position, `at`, in some bytes; `elements` counts those of all arrays that were read so far."""

    __slots__ = ("at", "data", "elements")

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at
        self.elements = 0

    def count(self, size: int) -> None:
        """Count the elements of an array of this size before they are read.

        Raises IndexError for more than MOST_ELEMENTS in a message, or for more than there are bytes left.
        """
        self.elements += size
        # An element takes a hundred times its bytes in memory, and a frame of the largest size could hold millions. It takes
        # at least one byte.
        if self.elements > MOST_ELEMENTS or size > len(self.data) - self.at:
            raise IndexError(f"an array of {size:,} elements")

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes and move behind them. Raises IndexError when there are fewer."""
        end = self.at + size
        # A slice of bytes is silently shorter at the end, and a negative size would step back.
        if size < 0 or end > len(self.data):
            raise IndexError(f"{len(self.data) - self.at} bytes where {size} were promised")
        data = self.data[self.at : end]
        self.at = end
        return data


class Codec(NamedTuple):
    """Functions that write and read a value. `form`: the type's format character in `struct`; "" if its size varies."""

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
    """Read a number that `write_uvarint` wrote. Raises IndexError. ByteUtils#readUnsignedVarint."""
    number = shift = 0
    for _ in range(LONGEST_VARINT):
        byte = cursor.data[cursor.at]
        cursor.at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number
        shift += 7
    raise IndexError(f"a number of more than {LONGEST_VARINT} bytes")


def _fixed(form: str) -> Codec:
    """Return the codec of a number of fixed size; `form` is its format in `struct`, such as ">i"."""
    packed = struct.Struct(form)

    def write(out: bytearray, value: Any) -> None:
        """Append the number. Raises struct.error when it does not fit."""
        out += packed.pack(value)

    def read(cursor: Cursor) -> Any:
        """Read the number. Raises struct.error when there are too few bytes."""
        (value,) = packed.unpack_from(cursor.data, cursor.at)
        cursor.at += packed.size
        return value

    # Without the sign for the byte order, so that `_numbers` can join several.
    return Codec(write, read, form[1:])


def _length(flexible: bool, form: str) -> Codec:
    """Return the codec of a length, where -1 stands for null; `form` is its format in versions that are not flexible."""
    if not flexible:
        return _fixed(form)
    # A compact length counts one more, so that null is 0 and fits an unsigned number (KIP-482).
    return Codec(lambda out, size: write_uvarint(out, size + 1), lambda cursor: read_uvarint(cursor) - 1)


def _sized(form: str, pack: Callable[[Any], bytes], unpack: Callable[[bytes], Any]) -> Callable[[bool, bool], Codec]:
    """Return a function that makes the codec, by (flexible, nullable), of a type of bytes with a length before them.

    `form`: the format of the length where it is not compact; `pack`, `unpack`: turn a value into bytes and back.
    """

    def codec(flexible: bool, nullable: bool) -> Codec:
        """Return the codec; null is length -1."""
        length = _length(flexible, form)

        def write(out: bytearray, value: Any) -> None:
            """Append the length and the bytes of a value, or -1 for null. Raises WireError for null where it cannot be."""
            if value is None:
                _refuse_null(nullable)
                length.write(out, -1)
                return
            data = pack(value)
            length.write(out, len(data))
            out += data

        def read(cursor: Cursor) -> Any:
            """Read the length, then so many bytes; a negative length is null."""
            size = length.read(cursor)
            if size < 0:
                _refuse_null(nullable)
                return None
            return unpack(cursor.take(size))

        return Codec(write, read)

    return codec


def _refuse_null(nullable: bool) -> None:
    """Raise WireError for a null where the field cannot be null."""
    if not nullable:
        raise WireError("message: expected a value, for the field cannot be null; seen None")


def array(element: Codec, flexible: bool, nullable: bool) -> Codec:
    """Return the codec of a list, whose values `element` writes and reads; null is length -1."""
    length = _length(flexible, ">i")

    def write(out: bytearray, values: Any) -> None:
        """Append the number of values, then each; or -1 for null."""
        if values is None:
            _refuse_null(nullable)
            length.write(out, -1)
            return
        length.write(out, len(values))
        for value in values:
            element.write(out, value)

    def read(cursor: Cursor) -> Any:
        """Read the number of values, then each; a negative number is null. Raises IndexError for too many."""
        size = length.read(cursor)
        if size < 0:
            _refuse_null(nullable)
            return None
        cursor.count(size)
        return [element.read(cursor) for _ in range(size)]

    return Codec(write, read)


@lru_cache(1 << 12)
def _uuid_of(data: bytes) -> UUID:
    """Return the uuid of 16 bytes. Cached: few distinct topic ids occur, many times each."""
    return UUID(bytes=data)


_FIXED_FORMS = {
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
    """Return a function that returns this codec for any (flexible, nullable)."""
    return lambda _flexible, _nullable: codec


PRIMITIVES: Mapping[str, Callable[[bool, bool], Codec]] = {
    **{name: _always(_fixed(form)) for name, form in _FIXED_FORMS.items()},
    "uuid": _always(Codec(lambda out, value: out.extend(value.bytes), lambda cursor: _uuid_of(cursor.take(16)))),
    "string": _sized(">h", str.encode, bytes.decode),
    "bytes": _sized(">i", bytes, bytes),
    "records": _sized(">i", bytes, bytes),
}
"""Name -> (flexible, nullable) -> codec."""


Definition = Mapping[str, Any]
WireMessage = dict[str, Any]


class Range(NamedTuple):
    """A range of versions; definitions write it "3", "0-4", "12+" or "none"."""

    lowest: int
    highest: float

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.lowest <= version <= self.highest


NEVER = Range(1, 0)
"""The range without versions."""


@cache
def versions_of(text: str | None) -> Range:
    """Parse the range of versions in a definition; None, for a definition without one, is no version."""
    if text is None or text == "none":
        return NEVER
    if text.endswith("+"):
        return Range(int(text[:-1]), float("inf"))
    lowest, _, highest = text.partition("-")
    return Range(int(lowest), int(highest or lowest))


class _Field(NamedTuple):
    """A field of a struct in one version. `default` returns its default; `tag`: its tag, None for a field without."""

    name: str
    codec: Codec
    default: Callable[[], Any]
    tag: int | None


class _Part(NamedTuple):
    """One or more adjacent fields of a struct: `write` takes them from a message, `read` sets them in one."""

    write: Callable[[bytearray, WireMessage], None]
    read: Callable[[Cursor, WireMessage], None]


class Compiler:
    """Makes codecs for one version of a message, which messages call `message`.

    `flexible`: whether the version is; `common`: the fields of the definition's common structs, by the struct's name.
    """

    def __init__(self, message: str, version: int, flexible: bool, common: Mapping[str, Any]) -> None:
        self._message, self._version, self._flexible, self._common = message, version, flexible, common

    def struct(self, definitions: Iterable[Definition]) -> Codec:
        """Return the codec of a struct with the fields in `definitions`, of which this version may have some only."""
        # `fields`: those that this version has. `absent`: those of other versions only, by name; None if such a value may be
        # dropped, else a function for the default.
        fields, absent = [], {}
        for definition in definitions:
            name, default = _name(definition), self._default(definition)
            if self._has(definition):
                tagged = self._version in versions_of(definition.get("taggedVersions"))
                fields.append(_Field(name, self._field(definition), default, int(definition["tag"]) if tagged else None))
            else:
                absent[name] = None if definition.get("ignorable", False) else default
        parts = _parts([field for field in fields if field.tag is None])
        tagged_fields = {field.tag: field for field in fields if field.tag is not None}
        # As bytes, since a tagged field is left out if it would be encoded as its default.
        defaults = {tag: _encode(field, field.default()) for tag, field in tagged_fields.items()}
        names = {field.name for field in fields}
        where, flexible = f"{self._message} version {self._version}", self._flexible

        def write(out: bytearray, value: WireMessage) -> None:
            """Append the fields of a struct; refuse others than this version has (`_check_absent`)."""
            if not value.keys() <= names:
                _check_absent(value.keys() - names, value, absent, where)
            for part in parts:
                part.write(out, value)
            if flexible:
                _write_tagged(out, tagged_fields, defaults, value)

        def read(cursor: Cursor) -> WireMessage:
            """Read the struct's fields in their order, the tagged ones last."""
            value: WireMessage = {}
            for part in parts:
                part.read(cursor, value)
            if flexible:
                # The sender leaves out a tagged field that has its default.
                for field in tagged_fields.values():
                    value[field.name] = field.default()
                _read_tagged(cursor, tagged_fields, value)
            return value

        return Codec(write, read)

    def _has(self, definition: Definition) -> bool:
        """Return whether this version has a field."""
        # A field that is tagged in each of its versions need not have "versions" as well: the replica state of a fetch
        # request in 3.5 has not (FieldSpec).
        return self._version in versions_of(definition.get("versions", definition.get("taggedVersions")))

    def _field(self, definition: Definition) -> Codec:
        """Return the codec of a field in this version: that of its type, which may be an array."""
        # A field may be left inflexible in a flexible version: the client id of a request header is.
        flexible = self._flexible and definition.get("flexibleVersions") != "none"
        nullable = self._version in versions_of(definition.get("nullableVersions"))
        type_name: str = definition["type"]
        # "[]string" is an array of strings.
        if type_name.startswith("[]"):
            # "nullableVersions" is about the array: its elements are never null.
            return array(self._type(type_name[2:], definition, flexible, nullable=False), flexible, nullable)
        return self._type(type_name, definition, flexible, nullable)

    def _type(self, type_name: str, definition: Definition, flexible: bool, nullable: bool) -> Codec:
        """Return the codec of a type: a primitive, or a struct that the field's definition or the message defines."""
        if type_name in PRIMITIVES:
            return PRIMITIVES[type_name](flexible, nullable)
        inner = self.struct(self._fields_of(definition, type_name))
        return _nullable(inner) if nullable else inner

    def _fields_of(self, definition: Definition, type_name: str) -> Any:
        """Return the definitions of the fields of a struct: its own, or those of the common struct with this name."""
        return definition.get("fields") or self._common.get(type_name, [])

    def _default(self, definition: Definition) -> Callable[[], Any]:
        """Return a function that returns a field's default: a new list or struct each time, for the reader may change it."""
        type_name, text = definition["type"], definition.get("default")
        if text == "null":
            return lambda: None
        if type_name.startswith("[]"):
            return list
        if type_name in PRIMITIVES:
            value = _constant(type_name, text)
            return lambda: value
        # The default of a struct has the defaults of its fields.
        fields = self._fields_of(definition, type_name)
        inner = [(_name(field), self._default(field)) for field in fields if self._has(field)]
        return lambda: {name: default() for name, default in inner}


def _parts(fields: Sequence[_Field]) -> list[_Part]:
    """Return parts for fields, in their order: one for adjacent numbers, one for each other field."""
    parts: list[_Part] = []
    # Only the codecs of numbers have a format character.
    for are_numbers, group in groupby(fields, lambda field: bool(field.codec.form)):
        adjacent = list(group)
        parts += [_numbers(adjacent)] if are_numbers and len(adjacent) > 1 else map(_single, adjacent)
    return parts


def _single(field: _Field) -> _Part:
    """Return the part for one field that is not packed with others."""
    name, codec, default, _ = field

    def write(out: bytearray, value: WireMessage) -> None:
        """Append the field's value, or its default where the message does not have it."""
        codec.write(out, value[name] if name in value else default())

    def read(cursor: Cursor, value: WireMessage) -> None:
        """Read the field and set it in the message."""
        value[name] = codec.read(cursor)

    return _Part(write, read)


def _numbers(fields: Sequence[_Field]) -> _Part:
    """Return the part for fields of fixed width that follow each other: all are packed at once."""
    names, packed = [field.name for field in fields], struct.Struct(">" + "".join(field.codec.form for field in fields))
    values_of = itemgetter(*names)

    def write(out: bytearray, value: WireMessage) -> None:
        """Append all of the numbers at once, with defaults in place of those that the message does not have."""
        try:
            values = values_of(value)
        except KeyError:  # some have their defaults
            values = [value[name] if name in value else default() for name, _, default, _ in fields]
        out += packed.pack(*values)

    def read(cursor: Cursor, value: WireMessage) -> None:
        """Read all of the numbers at once. Raises struct.error when there are too few bytes."""
        try:
            values = packed.unpack_from(cursor.data, cursor.at)
        except struct.error:
            # Read them one by one: the error then has the position of the first that is missing.
            for field in fields:
                field.codec.read(cursor)
            raise
        cursor.at += packed.size
        value.update(zip(names, values, strict=True))

    return _Part(write, read)


def _check_absent(
    names: Iterable[str], value: WireMessage, absent: Mapping[str, Callable[[], Any] | None], where: str
) -> None:
    """Check that the fields `names` of a message, which this version does not have, may be dropped. Raises WireError.

    `absent`: the fields that only other versions have: None if such a field is ignorable, else a function for its default.
    `where`: message and version.
    """
    for name in names:
        default = absent.get(name)
        # As in Kafka's own codec, an ignorable field is dropped, and so is one that has its default.
        if name not in absent or (default is not None and value[name] != default()):
            raise WireError(f"{where}: expected fields that it has; seen {name!r}")


def _write_tagged(
    out: bytearray, tagged: Mapping[int, _Field], defaults: Mapping[int, bytearray], value: WireMessage
) -> None:
    """Append the tagged fields of a message: their number, then each as tag, size and value; but none with its default.

    `tagged`: the fields by tag; `defaults`: their defaults as bytes.
    """
    present = []
    for tag, field in tagged.items():
        if field.name in value:
            data = _encode(field, value[field.name])
            if data != defaults[tag]:
                present.append((tag, data))
    write_uvarint(out, len(present))
    for tag, data in sorted(present):  # in ascending order: KIP-482
        write_uvarint(out, tag)
        write_uvarint(out, len(data))
        out += data


def _encode(field: _Field, value: Any) -> bytearray:
    """Return the bytes of a value of a field."""
    out = bytearray()
    field.codec.write(out, value)
    return out


def _read_tagged(cursor: Cursor, tagged: Mapping[int, _Field], value: WireMessage) -> None:
    """Read the tagged fields at the end of a struct into `value`. Raises IndexError."""
    tags = read_uvarint(cursor)
    cursor.count(tags)
    for _ in range(tags):
        tag, size = read_uvarint(cursor), read_uvarint(cursor)
        end = cursor.at + size
        if end > len(cursor.data):
            raise IndexError(f"a tagged field of {size:,} bytes where {len(cursor.data) - cursor.at} are left")
        # A tag that this definition does not have is of a later release, and is skipped.
        if tag in tagged:
            value[tagged[tag].name] = tagged[tag].codec.read(cursor)
        cursor.at = end


def _nullable(inner: Codec) -> Codec:
    """Return the codec of a struct that may be null: the byte before it is -1 for null, else 1."""

    def write(out: bytearray, value: Any) -> None:
        """Append the byte, and the struct unless it is null."""
        out += b"\xff" if value is None else b"\x01"
        if value is not None:
            inner.write(out, value)

    def read(cursor: Cursor) -> Any:
        """Read the byte, and the struct unless it is -1."""
        return None if cursor.take(1) == b"\xff" else inner.read(cursor)

    return Codec(write, read)


def _name(definition: Definition) -> str:
    """Return the name of a field in a message: that of the definition, which is in CamelCase, as camelCase."""
    name: str = definition["name"]
    return name[0].lower() + name[1:]


def _constant(type_name: str, text: Any) -> Any:
    """Parse the default of a primitive field; without one (`text` None) it is zero, empty or false, for records null.

    It is not "null" (`_default`); uuids, bytes and records have no other default in Kafka's definitions.
    """
    match type_name:
        case "bool":
            return str(text).lower() == "true"
        case "string":
            return text or ""
        case "uuid":
            return UUID(int=0)
        case "bytes":
            return b""
        case "records":
            return None
        case "float64":
            return float(text or 0)
        case _:
            return int(str(text or 0), 0)  # base 0: some are written in hex


# Kafka's messages as bytes, compiled from the message definitions that a release carries in its own jars.
#
# Rules of this part
#
# 1. A message is a plain dict with the protocol's own camelCase names. A missing field has its default; a field that the
#    definition does not have, or that this version cannot carry, is refused.
# 2. Each version of a definition is compiled once, when it is first used. Nothing here knows any message by name.
# 3. Source: the *.json in kafka-clients.jar and kafka-metadata.jar, and the README of
#    clients/src/main/resources/common/message in apache/kafka; KIP-482 for flexible versions and tagged fields.


_FOLDERS = ("common/message/", "common/metadata/")
_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)


def definitions_in(jars: Iterable[Path]) -> list[Definition]:
    """Return every message definition in some jars. Raises WireError when there is none."""
    definitions = []
    for jar in sorted(jars):
        with zipfile.ZipFile(jar) as packed:
            for name in packed.namelist():
                if name.startswith(_FOLDERS) and name.endswith(".json"):
                    # Kafka's generator reads these with Jackson: comments are allowed, text after the value is ignored.
                    text = _COMMENT.sub("", packed.read(name).decode()).strip()
                    definitions.append(json.JSONDecoder().raw_decode(text)[0])
    if not definitions:
        raise WireError(
            "jars: expected message definitions in kafka-clients and kafka-metadata; seen none; check the folder"
        )
    return definitions


class Messages:
    """The codecs of a release's messages. A message's name ends in Request or Response, or is that of a metadata record."""

    def __init__(self, definitions: Iterable[Definition]) -> None:
        """Index the definitions; a codec is compiled when its message and version are first used."""
        self._definitions = {definition["name"]: definition for definition in definitions}
        self._requests = {
            definition["apiKey"]: definition["name"].removesuffix("Request")
            for definition in self._definitions.values()
            if definition["type"] == "request"
        }
        self._compiled: dict[tuple[str, int], Codec] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._definitions

    def api_key(self, name: str) -> int:
        """Return the API key of a request, by its name without the word Request, or of a metadata record."""
        definition = self._definitions.get(f"{name}Request") or self._definition(name)
        return int(definition["apiKey"])

    def api_name(self, key: int) -> str:
        """Return the name of the request with this API key, without the word Request. Raises WireError."""
        if key not in self._requests:
            raise WireError(f"request: expected an API key of this release; seen {key}")
        return str(self._requests[key])

    def metadata_records(self) -> list[str]:
        """Return the names of the records that a metadata log (of KRaft) may hold."""
        return [name for name, definition in self._definitions.items() if definition["type"] == "metadata"]

    def versions(self, name: str) -> range:
        """Return the stable versions of a message. Raises WireError for an unknown name."""
        definition = self._definition(name)
        lowest, highest = versions_of(definition["validVersions"])
        # The latest version may still be unstable; it is left out then.
        return range(lowest, int(highest) + (not definition.get("latestVersionUnstable", False)))

    def is_flexible(self, name: str, version: int) -> bool:
        """Return whether this version has compact lengths and tagged fields."""
        return version in versions_of(self._definition(name).get("flexibleVersions"))

    def write(self, name: str, version: int, message: WireMessage) -> bytes:
        """Encode a message in a version. Raises WireError for an unknown version, or fields that it does not have."""
        out = bytearray()
        self._codec(name, version).write(out, message)
        return bytes(out)

    def read(self, name: str, version: int, data: bytes, at: int = 0) -> tuple[WireMessage, int]:
        """Decode the message at position `at`; return it and the position where it ends. Raises WireError."""
        cursor = Cursor(data, at)
        try:
            return self._codec(name, version).read(cursor), cursor.at
        except (struct.error, IndexError, OverflowError, MemoryError, UnicodeDecodeError) as problem:
            raise WireError(f"{name} version {version}: expected its fields; seen {problem} at byte {cursor.at}") from None

    def _definition(self, name: str) -> Definition:
        """Return the definition of a message. Raises WireError for an unknown name."""
        if name not in self._definitions:
            raise WireError(f"message: expected one that this release has; seen {name!r}")
        return self._definitions[name]

    def _codec(self, name: str, version: int) -> Codec:
        """Return the codec of a message in a version, compiled once. Raises WireError for an unknown version."""
        if (name, version) not in self._compiled:
            definition = self._definition(name)
            if version not in versions_of(definition["validVersions"]):
                raise WireError(f"{name}: expected a version of {definition['validVersions']}; seen {version}")
            common = {struct["name"]: struct["fields"] for struct in definition.get("commonStructs", [])}
            compiler = Compiler(name, version, self.is_flexible(name, version), common)
            self._compiled[name, version] = compiler.struct(definition["fields"])
        return self._compiled[name, version]

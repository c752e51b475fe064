"""A message definition as code: the fields of one version as two functions, one that writes and one that reads.

Rule of this file: numbers that stand side by side are packed and unpacked in one go; most of a message is numbers.
Source: the README of clients/src/main/resources/common/message in apache/kafka; KIP-482 for tagged fields.
"""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import UUID

from tidegauge.drive.wire.primitives import PRIMITIVES, Codec, Cursor, WireError, array, read_uvarint, write_uvarint

Definition = Mapping[str, Any]
Message = dict[str, Any]


class Range(NamedTuple):
    """Versions as definitions spell them: "3", "0-4", "12+", "none"."""

    lowest: int
    highest: float

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.lowest <= version <= self.highest


NEVER = Range(1, 0)


@cache
def versions_of(text: str | None) -> Range:
    """The range that a definition spells."""
    if text is None or text == "none":
        return NEVER
    if text.endswith("+"):
        return Range(int(text[:-1]), float("inf"))
    lowest, _, highest = text.partition("-")
    return Range(int(lowest), int(highest or lowest))


class _Field(NamedTuple):
    name: str
    codec: Codec
    default: Callable[[], Any]
    tag: int | None


class _Part(NamedTuple):
    """Fields that stand side by side: written from a message, read into one."""

    write: Callable[[bytearray, Message], None]
    read: Callable[[Cursor, Message], None]


class Compiler:
    """Turns the fields of one version of a message into a codec."""

    def __init__(self, message: str, version: int, flexible: bool, common: Mapping[str, Any]) -> None:
        self._message, self._version, self._flexible, self._common = message, version, flexible, common

    def struct(self, definitions: Iterable[Definition]) -> Codec:
        """The codec of some fields together."""
        fields, absent = [], {}
        for one in definitions:
            default = self._default(one)
            if self._has(one):
                tagged = self._version in versions_of(one.get("taggedVersions"))
                fields.append(_Field(_name(one), self._field(one), default, int(one["tag"]) if tagged else None))
            else:
                absent[_name(one)] = None if one.get("ignorable", False) else default
        parts = _parts([field for field in fields if field.tag is None])
        tagged_fields = {field.tag: field for field in fields if field.tag is not None}
        defaults = {tag: _written(field, field.default()) for tag, field in tagged_fields.items()}
        known = {field.name for field in fields}
        where, flexible = f"{self._message} version {self._version}", self._flexible

        def write(out: bytearray, value: Message) -> None:
            if not value.keys() <= known:
                _refuse(value.keys() - known, value, absent, where)
            for part in parts:
                part.write(out, value)
            if flexible:
                _write_tagged(out, tagged_fields, defaults, value)

        def read(cursor: Cursor) -> Message:
            value: Message = {}
            for part in parts:
                part.read(cursor, value)
            if flexible:
                for field in tagged_fields.values():
                    value[field.name] = field.default()
                _read_tagged(cursor, tagged_fields, value)
            return value

        return Codec(write, read)

    def _has(self, one: Definition) -> bool:
        """Whether this version has a field. One that is tagged in each of its versions need not say them twice, as the fetch
        request's state of a replica in 3.5 does not (FieldSpec)."""
        return self._version in versions_of(one.get("versions", one.get("taggedVersions")))

    def _field(self, one: Definition) -> Codec:
        flexible = self._flexible and one.get("flexibleVersions") != "none"
        nullable = self._version in versions_of(one.get("nullableVersions"))
        kind: str = one["type"]
        if kind.startswith("[]"):
            return array(self._type(kind[2:], one, flexible, nullable=False), flexible, nullable)
        return self._type(kind, one, flexible, nullable)

    def _type(self, kind: str, one: Definition, flexible: bool, nullable: bool) -> Codec:
        if kind in PRIMITIVES:
            return PRIMITIVES[kind](flexible, nullable)
        inner = self.struct(self._fields_of(one, kind))
        return _nullable(inner) if nullable else inner

    def _fields_of(self, one: Definition, kind: str) -> Any:
        return one.get("fields") or self._common.get(kind, [])

    def _default(self, one: Definition) -> Callable[[], Any]:
        kind, text = one["type"], one.get("default")
        if text == "null":
            return lambda: None
        if kind.startswith("[]"):
            return list
        if kind in PRIMITIVES:
            value = _constant(kind, text)
            return lambda: value
        fields = self._fields_of(one, kind)
        inner = [(_name(field), self._default(field)) for field in fields if self._has(field)]
        return lambda: {name: default() for name, default in inner}


def _parts(fields: Sequence[_Field]) -> list[_Part]:
    """The fields in their order, numbers that stand side by side as one part."""
    parts: list[_Part] = []
    for numbers, run in groupby(fields, lambda field: bool(field.codec.form)):
        found = list(run)
        parts += [_numbers(found)] if numbers and len(found) > 1 else map(_alone, found)
    return parts


def _alone(field: _Field) -> _Part:
    name, codec, default, _ = field

    def write(out: bytearray, value: Message) -> None:
        codec.write(out, value[name] if name in value else default())

    def read(cursor: Cursor, value: Message) -> None:
        value[name] = codec.read(cursor)

    return _Part(write, read)


def _numbers(fields: Sequence[_Field]) -> _Part:
    names, packed = [field.name for field in fields], struct.Struct(">" + "".join(field.codec.form for field in fields))
    values_of = itemgetter(*names)

    def write(out: bytearray, value: Message) -> None:
        try:
            values = values_of(value)
        except KeyError:
            values = [value[name] if name in value else default() for name, _, default, _ in fields]
        out += packed.pack(*values)

    def read(cursor: Cursor, value: Message) -> None:
        try:
            values = packed.unpack_from(cursor.data, cursor.at)
        except struct.error:
            for field in fields:  # the first that is not there says so
                field.codec.read(cursor)
            raise
        cursor.at += packed.size
        value.update(zip(names, values, strict=True))

    return _Part(write, read)


def _refuse(names: Iterable[str], value: Message, absent: Mapping[str, Callable[[], Any] | None], where: str) -> None:
    """A field that the version cannot carry is let pass if it is ignorable or has its default, as Kafka's own codec does."""
    for name in names:
        default = absent.get(name)
        if name not in absent or (default is not None and value[name] != default()):
            raise WireError(f"{where}: expected fields that it has; seen {name!r}")


def _write_tagged(out: bytearray, tagged: Mapping[int, _Field], defaults: Mapping[int, bytearray], value: Message) -> None:
    """What is its default is not written."""
    present = []
    for tag, field in tagged.items():
        if field.name in value:
            inner = _written(field, value[field.name])
            if inner != defaults[tag]:
                present.append((tag, inner))
    write_uvarint(out, len(present))
    for tag, inner in sorted(present):
        write_uvarint(out, tag)
        write_uvarint(out, len(inner))
        out += inner


def _written(field: _Field, value: Any) -> bytearray:
    out = bytearray()
    field.codec.write(out, value)
    return out


def _read_tagged(cursor: Cursor, tagged: Mapping[int, _Field], value: Message) -> None:
    for _ in range(read_uvarint(cursor)):
        tag, size = read_uvarint(cursor), read_uvarint(cursor)
        end = cursor.at + size
        if tag in tagged:
            value[tagged[tag].name] = tagged[tag].codec.read(cursor)
        cursor.at = end


def _nullable(inner: Codec) -> Codec:
    """A struct that may be null: one byte in front of it."""

    def write(out: bytearray, value: Any) -> None:
        out += b"\xff" if value is None else b"\x01"
        if value is not None:
            inner.write(out, value)

    def read(cursor: Cursor) -> Any:
        return None if cursor.take(1) == b"\xff" else inner.read(cursor)

    return Codec(write, read)


def _name(one: Definition) -> str:
    name: str = one["name"]
    return name[0].lower() + name[1:]


def _constant(kind: str, text: Any) -> Any:
    match kind:
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
            return int(str(text or 0), 0)

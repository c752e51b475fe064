"""What a Parquet file says of its row groups and pages, read from parquet.thrift's structs before Arrow acts on it.

Rules of this file

1. pyarrow is not asked for the metadata of a column: where they contradict the schema (a codec that does not exist, sizes of
   texts for a column of numbers, an encrypted column) it ends the process.
2. Only the header of a page says to how many bytes it unpacks: a file of 60 kB may have one that takes two gigabytes, and
   Arrow takes what a header says. What the footer says is not looked at: it need not be true.
3. Bytes that are no such struct raise ValueError. A field that has another type than parquet.thrift gives it does, too:
   Thrift would skip it, and Arrow would read something else than what was looked at here.
4. What bounds the time is the number of values: a byte may be one.

A *shape* says which fields of a struct are read, and of which types; all others are skipped. Fields of Thrift have numbers,
those of parquet.thrift. A *chunk* is a column of a row group.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, repeat
from types import MappingProxyType
from typing import IO, Any, NamedTuple, TypeAlias

MAGIC = b"PAR1"
LARGEST_FOOTER = 256 << 20
"""Bytes, which are read whole: a thousand row groups of a hundred columns take 20 MB."""
MOST_VALUES = 3_000_000
"""Fields and elements of lists that are read, in two seconds: a thousand row groups with every column have 1.7 million."""
LARGEST_HEADER = 1 << 16
"""Bytes of a page's header that are read: it may have statistics, the smallest and the largest text."""
MOST_PAGES = 1 << 16
"""Pages of a column in a row group: writers make them of a megabyte or of 20,000 rows."""
DEEPEST = 16
"""Structs and lists in each other; Kafka's and Spark's files have seven."""

TYPES = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
"""parquet.thrift, Type."""

# Types of Thrift's compact protocol.
_BOOLEANS, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = (1, 2), 3, 4, 5, 6, 7, 8, 9, 10, 12

Shape: TypeAlias = "int | Mapping[int, Shape] | list[Shape]"
"""What is read: an integer or bytes by its type, a struct as the shapes of its fields by number, a list as that of each."""

# PageHeader: uncompressed_page_size, compressed_page_size. Statistics: max_value, min_value. ColumnMetaData: type,
# path_in_schema, total_compressed_size, data_page_offset, dictionary_page_offset, statistics.
PAGE_HEADER: Mapping[int, Shape] = MappingProxyType({2: _I32, 3: _I32})
STATISTICS: Mapping[int, Shape] = MappingProxyType({5: _BINARY, 6: _BINARY})
COLUMN: Mapping[int, Shape] = MappingProxyType({1: _I32, 3: [_BINARY], 7: _I64, 9: _I64, 11: _I64, 12: STATISTICS})
FILE: Mapping[int, Shape] = MappingProxyType({4: [{1: [{3: COLUMN}], 3: _I64}]})
"""parquet.thrift: FileMetaData#row_groups, RowGroup#columns and #num_rows, ColumnChunk#meta_data."""


class PageSizes(NamedTuple):
    """The bytes of a page without its header: as stored, and unpacked."""

    packed: int
    unpacked: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """A column of a row group: where its pages are, and the least and the largest number if the file says them."""

    path: str
    """name of the column"""
    physical_type: str
    begin: int
    """where its first page begins in the file"""
    packed_bytes: int
    """of all pages with their headers"""
    least: int | None = None
    largest: int | None = None

    def pages(self, file: IO[bytes]) -> Iterator[PageSizes]:
        """Yield the sizes of the pages, read from their headers. Raises ValueError, OSError."""
        # Pages follow each other, each behind its header, which has fields 2 (size unpacked) and 3 (size as stored).
        at, end = self.begin, self.begin + self.packed_bytes
        while at < end:
            file.seek(at)
            header = _Thrift(file.read(min(LARGEST_HEADER, end - at)))
            fields = header.whole(PAGE_HEADER, "a page header")
            sizes = PageSizes(fields[3], fields[2])
            if min(sizes) < 0:
                raise ValueError(f"a page of {min(sizes)} bytes")
            yield sizes
            at += header.at + sizes.packed  # past the header, and past the page

    def unpacked_bytes(self, file: IO[bytes]) -> int:
        """Return the bytes of all pages when they are unpacked. Raises ValueError, OSError."""
        # One more than may be, to see that there are too many.
        sizes = list(islice(self.pages(file), MOST_PAGES + 1))
        if len(sizes) > MOST_PAGES:
            raise ValueError(f"more than {MOST_PAGES:,} pages of a column")
        return sum(size.unpacked for size in sizes)


class GroupMetadata(NamedTuple):
    """A row group: its rows, and its columns in order."""

    rows: int
    chunks: tuple[Chunk, ...]

    def chunk(self, path: str) -> Chunk | None:
        """Return a column by its name."""
        return next((chunk for chunk in self.chunks if chunk.path == path), None)


def read_footer(file: IO[bytes]) -> tuple[GroupMetadata, ...]:
    """Return the row groups of a file, in order. Raises ValueError, OSError."""
    # A file ends with the footer, its length in four bytes and the magic.
    size = file.seek(0, 2)
    if size < 8:
        raise ValueError(f"a file of {size} bytes")
    file.seek(size - 8)
    tail = file.read(8)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != MAGIC or length > min(size - 8, LARGEST_FOOTER):
        raise ValueError(f"a footer of {length:,} bytes" if tail[4:] == MAGIC else "a file without a footer")
    file.seek(size - 8 - length)
    # Fields of parquet.thrift: FileMetaData has its row_groups in 4, RowGroup its num_rows in 3 and its columns in 1, and
    # ColumnChunk its meta_data in 3.
    groups = _Thrift(file.read(length)).whole(FILE, "the metadata")[4]
    return tuple(
        GroupMetadata(_needed(group, 3), tuple(_chunk(_needed(at, 3)) for at in _needed(group, 1))) for group in groups
    )


def _chunk(column: dict[int, Any]) -> Chunk:
    """Return a chunk from its ColumnMetaData, a dict by the numbers of the fields (COLUMN)."""
    # The type, where the data pages begin, and where the dictionary page does.
    kind, begin, dictionary = _needed(column, 1), _needed(column, 9), column.get(11)
    # Statistics are read of INT32 and INT64 only, for struct.unpack; 5 and 6 are max_value and min_value.
    statistics, number_format = column.get(12, {}), {1: "<i", 2: "<q"}.get(kind)
    least = largest = None
    if number_format is not None and {len(statistics.get(at, b"")) for at in (5, 6)} == {struct.calcsize(number_format)}:
        ((largest,), (least,)) = (struct.unpack(number_format, statistics[at]) for at in (5, 6))
    # The path in the schema, part by part; field 7, below, is the size of all pages as stored.
    path = b".".join(_needed(column, 3)).decode("utf-8", "replace")
    # The dictionary page comes before the data, if there is one. As in Arrow, an offset of 0 is none.
    first = min(begin, dictionary) if dictionary else begin
    return Chunk(path, TYPES[kind] if 0 <= kind < len(TYPES) else "UNKNOWN", first, _needed(column, 7), least, largest)


def _needed(fields: dict[int, Any], number: int) -> Any:
    """Return the field of that number. Raises ValueError where it is missing."""
    if number not in fields:
        raise ValueError(f"metadata without field {number} of a row group or a column")
    return fields[number]


class _Thrift:
    """A reader of Thrift's compact protocol; `at` is the position behind what it has read.

    IndexError means that the bytes end too early. `depth` is how many more structs and lists may be nested.
    """

    def __init__(self, data: bytes) -> None:
        """Begin at the first byte; `_values` counts the fields and elements that were read (rule 4)."""
        self._data, self.at, self._values = data, 0, 0

    def whole(self, shape: Mapping[int, Shape], called: str) -> dict[int, Any]:
        """Read a struct that must have all fields of `shape`; return them by number. Raises ValueError."""
        # Bytes that end too early lack fields.
        try:
            fields = self._struct(shape, DEEPEST)
        except IndexError:
            fields = {}
        if not shape.keys() <= fields.keys():
            raise ValueError(f"expected {called}, whole")
        return fields

    def _struct(self, shape: Mapping[int, Shape], depth: int) -> dict[int, Any]:
        """Read a struct; return the fields of the shape that it has, by number. Others are skipped."""
        if not depth:
            raise ValueError(f"more than {DEEPEST} structs in each other")
        # A byte of 0 ends the struct.
        fields, field = {}, 0
        while head := self._byte():
            self._count(1)
            # The upper half of the byte is added to the number of the field before; 0: the number follows. The lower half is
            # the type.
            field = field + (head >> 4) if head >> 4 else self._integer()
            kind, field_shape = head & 0x0F, shape.get(field)
            if field_shape is not None:
                fields[field] = self._value(kind, field_shape, depth)
            elif kind not in _BOOLEANS:  # the type of a boolean is its value: nothing follows
                self._skip(kind, depth)
        return fields

    def _value(self, kind: int, shape: Shape, depth: int) -> Any:
        """Read a value of this shape; `kind` is the type that the file gives it. Raises ValueError if that is another."""
        # The type that the shape gives it: that of a number or text is the shape itself.
        if kind != (shape if isinstance(shape, int) else _LIST if isinstance(shape, list) else _STRUCT):
            raise ValueError(f"a field of type {kind}, which parquet.thrift does not give it")
        if isinstance(shape, list):
            return [self._value(kind, shape[0], depth - 1) for kind in self._elements()]
        if isinstance(shape, int):
            return self._integer() if shape in (_I32, _I64) else self._binary()
        return self._struct(shape, depth - 1)

    def _skip(self, kind: int, depth: int) -> None:
        """Skip a value of type `kind`. Raises ValueError if it is nested deeper than `depth`."""
        if kind in (_I16, _I32, _I64):
            self._varint()
        elif kind == _BYTE or kind in _BOOLEANS:  # a boolean here is an element of a list: a byte
            self._byte()
        elif kind == _DOUBLE:
            self.at += 8
        elif kind == _BINARY:
            self._binary()
        elif kind == _STRUCT:
            self._struct({}, depth - 1)
        elif kind in (_LIST, _SET) and depth:
            for element in self._elements():
                self._skip(element, depth - 1)
        else:
            raise ValueError(f"a field of type {kind}")

    def _elements(self) -> Iterable[int]:
        """Read the head of a list; return the type of each element."""
        head = self._byte()
        # The upper half of the byte is the length, or 15: then the length follows. The lower half is the type of the
        # elements.
        size = head >> 4 if head >> 4 < 15 else self._varint()
        self._count(size)
        return repeat(head & 0x0F, size)

    def _count(self, values: int) -> None:
        """Count fields or elements that are to be read. Raises ValueError when they are too many in all (rule 4)."""
        self._values += values
        if self._values > MOST_VALUES:
            raise ValueError(f"fields and elements of lists: more than {MOST_VALUES:,}")

    def _binary(self) -> bytes:
        """Read a text or bytes, with the length before it. Raises IndexError at the end of the data."""
        size = self._varint()
        content = self._data[self.at : self.at + size]
        self.at += size
        if len(content) < size:
            raise IndexError
        return content

    def _byte(self) -> int:
        """Read a byte. Raises IndexError at the end of the data."""
        self.at += 1
        return self._data[self.at - 1]

    def _varint(self) -> int:
        """Read an unsigned number, seven bits a byte, the lowest first. Raises ValueError."""
        # Most numbers are small: a byte.
        if (byte := self._byte()) < 0x80:
            return byte
        number, shift = byte & 0x7F, 7
        while True:
            byte = self._byte()
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number
            if shift > 63:
                raise ValueError("a number of more than ten bytes")

    def _integer(self) -> int:
        """Read a signed number, in zigzag encoding: the lowest bit is the sign."""
        number = self._varint()
        return (number >> 1) ^ -(number & 1)

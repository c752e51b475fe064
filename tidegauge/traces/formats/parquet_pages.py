"""How much memory the pages of a Parquet file take once they are unpacked, read from their headers before any is unpacked.

Rules of this file

1. Only the header of a page says to how many bytes it unpacks: a file of 60 kB may have one that takes two gigabytes, and
   Arrow takes what a header says. What the footer says is not looked at: it need not be true.
2. A header is a struct in Thrift's compact protocol (parquet.thrift, PageHeader), of which three numbers are read.
3. Bytes that are no header raise ValueError; Arrow would refuse them, too.
4. Uncompressed pages are measured too: pyarrow ends the process where it is asked for a codec that does not exist.
"""

from collections.abc import Iterator
from itertools import islice
from typing import IO, Any, NamedTuple

LARGEST_HEADER = 1 << 16
"""Bytes of a header that are read: it may have statistics, the smallest and the largest text."""
MOST_PAGES = 1 << 16
"""Pages of a column in a row group: writers make them of a megabyte or of 20,000 rows."""

UNPACKED_SIZE, PACKED_SIZE = 2, 3
"""Numbers of the fields PageHeader#uncompressed_page_size and #compressed_page_size."""

_BOOLEANS, _BYTE, _INTEGERS, _DOUBLE, _BINARY, _LISTS, _STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, (9, 10), 12
DEEPEST = 8


class PageSizes(NamedTuple):
    """The bytes of a page without its header: as stored, and unpacked."""

    packed: int
    unpacked: int


def pages_of(file: IO[bytes], chunk: Any) -> Iterator[PageSizes]:
    """Yield the sizes of the pages of a column chunk. Raises ValueError, OSError."""
    at = chunk.data_page_offset
    if chunk.dictionary_page_offset:
        at = min(at, chunk.dictionary_page_offset)
    end = at + chunk.total_compressed_size
    while at < end:
        file.seek(at)
        header = _Header(file.read(min(LARGEST_HEADER, end - at)))
        sizes = header.sizes()
        if sizes.packed < 0 or sizes.unpacked < 0:
            raise ValueError(f"a page of {min(sizes)} bytes")
        yield sizes
        at += header.at + sizes.packed


def unpacked_bytes(file: IO[bytes], chunk: Any) -> int:
    """Return the bytes of all pages of a column chunk when they are unpacked. Raises ValueError, OSError."""
    sizes = list(islice(pages_of(file, chunk), MOST_PAGES + 1))
    if len(sizes) > MOST_PAGES:
        raise ValueError(f"more than {MOST_PAGES:,} pages of a column")
    return sum(size.unpacked for size in sizes)


class _Header:
    """A page header; `at` is the position behind what was read of it."""

    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 0

    def sizes(self) -> PageSizes:
        try:
            numbers = self._struct(DEEPEST)
            return PageSizes(numbers[PACKED_SIZE], numbers[UNPACKED_SIZE])
        except (IndexError, KeyError):
            raise ValueError("a page without a header") from None

    def _struct(self, depth: int) -> dict[int, int]:
        """Read a struct; return its integers by their field's number."""
        if not depth:
            raise ValueError("a page header in a page header")
        numbers, field = {}, 0
        while kind := self._byte():
            # The upper half is what the number of the field adds to that of the one before; 0: it is written out.
            field = field + (kind >> 4) if kind >> 4 else self._integer()
            if (kind & 0x0F) in _INTEGERS:
                numbers[field] = self._integer()
            elif (kind & 0x0F) not in _BOOLEANS:  # whose value is their kind
                self._skip(kind & 0x0F, depth)
        return numbers

    def _skip(self, kind: int, depth: int) -> None:
        """Skip a value of Thrift's compact protocol; nested deeper than `depth` it is refused."""
        if kind in _INTEGERS:
            self._integer()
        elif kind == _BYTE or kind in _BOOLEANS:  # of a list: a byte each
            self._byte()
        elif kind == _DOUBLE:
            self.at += 8
        elif kind == _BINARY:
            size = self._varint()
            self.at += size
        elif kind == _STRUCT:
            self._struct(depth - 1)
        elif kind in _LISTS:
            head = self._byte()
            size = head >> 4 if head >> 4 < 15 else self._varint()
            if size > len(self._data):
                raise ValueError(f"a list of {size:,} elements in a page header")
            for _ in range(size):
                self._skip(head & 0x0F, depth - 1)
        else:
            raise ValueError(f"a field of kind {kind} in a page header")

    def _byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]

    def _varint(self) -> int:
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number
            if shift > 63:
                raise ValueError("a number of more than ten bytes in a page header")

    def _integer(self) -> int:
        # Zigzag: the lowest bit is the sign.
        number = self._varint()
        return (number >> 1) ^ -(number & 1)

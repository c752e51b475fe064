"""The compression codecs of record batches, as Kafka frames them.

Rules of this file

1. gzip comes from the standard library, the others from pyarrow, which is a dependency anyway.
2. Kafka's snappy is not one raw block: snappy-java writes a header and then blocks, each with its length. Data without such
   a header is read as one raw block, as snappy-java itself does.
3. Data that does not decompress, or to more than MOST_BYTES, is a CompressionError, whatever the library raised.
"""

import gzip
import struct
from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from tidegauge.util.bounds import UNPACKED_AT_ONCE, at_most, unpacked
from tidegauge.util.errors import TidegaugeError

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
"""CompressionType ids: the three lowest bits of a batch's attributes."""

NAMES = ("none", "gzip", "snappy", "lz4", "zstd")

XERIAL = struct.Struct(">8sii")
"""snappy-java's stream header: magic, version, lowest compatible version."""

XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_BLOCK = 32 * 1024
MOST_VARINT = 5
MOST_BYTES = 256 << 20
"""Bytes of the records of one batch: 256 times Kafka's default of the largest batch (message.max.bytes)."""


_END = pa.py_buffer(b"")


class CompressionError(TidegaugeError):
    """Data that its codec cannot decompress, or a codec that does not exist."""


def compress(codec: int, data: bytes) -> bytes:
    """Compress `data` in the framing of `codec`; the same data gives the same bytes."""
    match codec:
        case 0:
            return data
        case 1:
            return gzip.compress(data, mtime=0)  # no time, so that the same data gives the same bytes
        case 2:
            return XERIAL.pack(XERIAL_MAGIC, 1, 1) + b"".join(_snappy_blocks(data))
        case 3 | 4:
            sink = pa.BufferOutputStream()
            with pa.CompressedOutputStream(sink, NAMES[codec]) as stream:
                stream.write(data)
            return bytes(sink.getvalue().to_pybytes())
        case _:
            raise _unknown(codec)


def decompress(codec: int, data: bytes) -> bytes:
    """Decompress `data`."""
    if not 0 <= codec < len(NAMES):
        raise _unknown(codec)
    try:
        match codec:
            case 0:
                return data
            case 1:
                return b"".join(at_most(MOST_BYTES, unpacked([data])))
            case 2:
                return _from_snappy(data)
            case _:
                with pa.BufferReader(data) as source, pa.CompressedInputStream(source, NAMES[codec]) as stream:
                    # `read` leaks what it has allocated where the data is damaged: 4 MB of address space for each batch.
                    pieces = (piece.to_pybytes() for piece in iter(partial(stream.read_buffer, UNPACKED_AT_ONCE), _END))
                    return b"".join(at_most(MOST_BYTES, pieces))
    except (OSError, EOFError, ValueError, MemoryError, struct.error, pa.ArrowException) as error:
        raise CompressionError(
            f"records: expected {NAMES[codec]} data, seen {len(data)} bytes that are not ({error})"
        ) from error


def _unknown(codec: int) -> CompressionError:
    return CompressionError(f"compression type: expected 0 to {len(NAMES) - 1} ({', '.join(NAMES)}), seen {codec}")


def _snappy_blocks(data: bytes) -> Iterator[bytes]:
    raw = pa.Codec("snappy")
    # At least one block, even of no data: readers look for the header only in more bytes than it has.
    for start in range(0, max(1, len(data)), XERIAL_BLOCK):
        block = raw.compress(data[start : start + XERIAL_BLOCK], asbytes=True)
        yield struct.pack(">i", len(block)) + block


def _from_snappy(data: bytes) -> bytes:
    if not data.startswith(XERIAL_MAGIC):
        return _from_raw_snappy(data)
    out, at = [], XERIAL.size
    while at < len(data):
        (size,) = struct.unpack_from(">i", data, at)
        at += 4
        if size < 0 or at + size > len(data):
            raise ValueError(f"a block of {size} bytes at {at}")
        out.append(_from_raw_snappy(data[at : at + size]))
        at += size
    return b"".join(out)


def _from_raw_snappy(block: bytes) -> bytes:
    # A raw block begins with the length of its content, seven bits a byte.
    size = shift = 0
    for byte in block[:MOST_VARINT]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            # Three bytes repeat 64 at most (snappy, format_description.txt): a larger length is none.
            if size > min(MOST_BYTES, 64 * len(block)):
                raise ValueError(f"a length of {size:,} before a block of {len(block):,} bytes")
            return bytes(pa.Codec("snappy").decompress(block, size, asbytes=True))
    raise ValueError("no length before a block")

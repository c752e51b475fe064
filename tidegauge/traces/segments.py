"""Kafka's record batch v2 as bytes: the format of segment files, Produce requests and Fetch responses.

    0  base offset int64       17  crc uint32 (of all that follows)     43  producer id int64
    8  batch length int32      21  attributes int16                     51  producer epoch int16
    12 leader epoch int32      23  last offset delta int32              53  base sequence int32
    16 magic int8 = 2          27  base timestamp int64                 57  number of records int32
                               35  max timestamp int64                  61  records, compressed together

Rules of this file

1. The layout is ours; the checksum (CRC-32C) and the codecs come from libraries.
2. Decoding and encoding are inverse to each other on values, and on bytes where nothing is compressed.
3. Bytes that are no batch raise CorruptBatchError with the place, the expected and the seen value, and no other exception.
4. The leader epoch comes before the checksum: a leader sets it without computing the checksum again.
5. The checksum needs google-crc32c, the extra `segments`. Without it batches are read unchecked and cannot be written.
6. Source: org.apache.kafka.common.record.DefaultRecordBatch, DefaultRecord.

Below it come segment files, which are batches one after the other. A *place* or position is an offset in bytes; `at` is
where something is read. A *codec* is a compression type. A *varint* is a number in one to ten bytes, seven bits in each.
"""

import gzip
import os
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

import pyarrow as pa

from tidegauge.impl.rules import UNDEFINED
from tidegauge.traces.schema import LARGEST
from tidegauge.util.errors import TidegaugeError
from tidegauge.util.input_limits import UNPACKED_AT_ONCE, UnpackingError, at_most, unpacked

# The compression codecs of record batches, as Kafka frames them.
#
# Rules of this part
#
# 1. gzip comes from the standard library, the others from pyarrow, which is a dependency anyway.
# 2. Kafka's snappy is not one raw block: snappy-java writes a header and then blocks, each with its length. Data without
#    such a header is read as one raw block, as snappy-java itself does.
# 3. Data that does not decompress, or to more than MOST_BYTES, is a CompressionError, whatever the library raised.


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
"""What a stream returns at its end."""


class CompressionError(TidegaugeError):
    """Data that its codec cannot decompress, or a codec that does not exist."""


def compress(codec: int, data: bytes) -> bytes:
    """Compress `data` in the framing of `codec`; the same data gives the same bytes."""
    match codec:  # a pattern cannot be a bare constant's name: NONE, GZIP, SNAPPY, then LZ4 and ZSTD
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
    """Return what was compressed to `data` in the framing of `codec`, at most MOST_BYTES. Raises CompressionError.

    With codec NONE that is `data`, whatever its size.
    """
    if not 0 <= codec < len(NAMES):
        raise _unknown(codec)
    try:
        match codec:  # NONE, GZIP, SNAPPY, then LZ4 and ZSTD
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
    """Return the error for a codec that does not exist."""
    return CompressionError(f"compression type: expected 0 to {len(NAMES) - 1} ({', '.join(NAMES)}), seen {codec}")


def _snappy_blocks(data: bytes) -> Iterator[bytes]:
    """Yield data as Xerial's blocks: of at most XERIAL_BLOCK bytes each, compressed, with its length before it."""
    raw = pa.Codec("snappy")
    # At least one block, even of no data: readers look for the header only in more bytes than it has.
    for start in range(0, max(1, len(data)), XERIAL_BLOCK):
        block = raw.compress(data[start : start + XERIAL_BLOCK], asbytes=True)
        yield struct.pack(">i", len(block)) + block


def _from_snappy(data: bytes) -> bytes:
    """Unpack Xerial's header and blocks, each with its length before it, as Kafka's producers write; or one raw block."""
    if not data.startswith(XERIAL_MAGIC):
        return _from_raw_snappy(data)

    # Behind the header: blocks up to the end.
    def blocks() -> Iterator[bytes]:
        """Yield the content of each block."""
        at = XERIAL.size
        while at < len(data):
            (size,) = struct.unpack_from(">i", data, at)
            at += 4
            if size < 0 or at + size > len(data):
                raise ValueError(f"a block of {size} bytes at {at}")
            yield _from_raw_snappy(data[at : at + size])
            at += size

    return b"".join(at_most(MOST_BYTES, blocks()))


def _from_raw_snappy(block: bytes) -> bytes:
    """Unpack one block of snappy. Raises ValueError."""
    # A raw block begins with the length of its content, seven bits a byte, the lowest first; a byte below 0x80 is the last.
    size = shift = 0
    for byte in block[:MOST_VARINT]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            # Three bytes can stand for 64 at most (snappy, format_description.txt): a larger length is a lie, and would be
            # allocated.
            if size > min(MOST_BYTES, 64 * len(block)):
                raise ValueError(f"a length of {size:,} before a block of {len(block):,} bytes")
            return bytes(pa.Codec("snappy").decompress(block, size, asbytes=True))
    raise ValueError("no length before a block")


MAGIC = 2
HEADER = struct.Struct(">qiibIhiqqqhii")
"""All fields before the records."""

LENGTH_AT = 8
OVERHEAD = 12
"""The bytes that the length does not count: base offset and length."""

MAGIC_AT = 16
CHECKSUM_AT = 17
CHECKED_FROM = 21
COUNT_AT = 57

CODEC = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20

Header = tuple[str, bytes | None]
"""A header of a record: key and value."""
WINDOW = 1 << 20
"""Bytes that are read of a file at a time."""


class FileBytes:
    """The bytes of an open file, of which a slice is read when it is taken. Raises TornBatchError if the file became
    shorter.

    It is not mapped: a broker truncates its logs, and to look at a mapped page that is gone ends the process (SIGBUS).
    """

    def __init__(self, file: IO[bytes]) -> None:
        """Take an open file, of the length that it has now. A window of it, at `_at`, is kept."""
        self._file = file
        self._size = os.fstat(file.fileno()).st_size
        self._window, self._at = b"", 0

    def __len__(self) -> int:
        """Return the length that the file had when it was opened."""
        return self._size

    def __getitem__(self, part: slice) -> bytes:
        """Return the bytes between two positions, which are not negative; those behind the end are left out."""
        begin, end = part.start, min(part.stop, self._size)
        # The part of them that is in the window.
        content = self._window[begin - self._at : end - self._at] if begin >= self._at else b""
        # Not all of it is in the window: the next window begins here.
        if len(content) < end - begin:
            self._file.seek(begin)
            self._window, self._at = self._file.read(max(WINDOW, end - begin)), begin
            content = self._window[: end - begin]
            if len(content) < end - begin:
                raise TornBatchError(begin, f"{end - begin} bytes", "a file that has become shorter")
        return content


Bytes = bytes | FileBytes
"""A source of batches; a slice of either is bytes."""


def _checksum() -> Callable[[bytes], int] | None:
    """Return the function that computes CRC-32C; None where its library is not installed."""
    try:
        from google_crc32c import value  # noqa: PLC0415  an extra
    except ModuleNotFoundError:
        return None
    computed: Callable[[bytes], int] = value
    return computed


CHECKSUM = _checksum()
"""CRC-32C, or None where the package is not installed."""


class CorruptBatchError(TidegaugeError):
    """Bytes that are no batch, at `position` of the source."""

    def __init__(self, position: int, expected: str, seen: str) -> None:
        """Note where the fault is, what was expected and what was seen."""
        super().__init__(f"byte {position}: expected {expected}, seen {seen}")
        self.position = position
        self.expected = expected
        self.seen = seen


class TornBatchError(CorruptBatchError):
    """A batch that is longer than the bytes that are left."""


class Record(NamedTuple):
    """One record. `timestamp` is the producer's; under LOG_APPEND_TIME the batch's `max_timestamp` counts instead."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    attributes: int = 0


class RecordBatch(NamedTuple):
    """A batch of records with offsets in [base, last]; compaction may leave fewer than that, down to none.

    `epoch` is the leader epoch; producer fields are UNDEFINED without an idempotent producer. Times are in ms.
    """

    base: int
    last: int
    epoch: int
    records: tuple[Record, ...]
    attributes: int = 0
    base_timestamp: int = 0
    max_timestamp: int = 0
    producer_id: int = UNDEFINED
    producer_epoch: int = UNDEFINED
    base_sequence: int = UNDEFINED

    @property
    def codec(self) -> int:
        """The compression type."""
        return self.attributes & CODEC

    @property
    def is_control(self) -> bool:
        """Whether the batch has a transaction marker or another control record, and no data."""
        return bool(self.attributes & CONTROL)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is part of a transaction."""
        return bool(self.attributes & TRANSACTIONAL)


def batch_of(base: int, epoch: int, values: Iterable[bytes], timestamp: int = 0, codec: int = 0) -> RecordBatch:
    """Return a plain batch: one record per value, offsets from `base`, no keys."""
    records = tuple(Record(base + n, timestamp, None, value) for n, value in enumerate(values))
    return RecordBatch(base, base + len(records) - 1, epoch, records, codec, timestamp, timestamp)


# ---------------------------------------------------------------------------------------------------------------------
# Writing


def encode(batch: RecordBatch) -> bytes:
    """Return the bytes of a batch. DefaultRecordBatch#writeHeader, DefaultRecord#writeTo."""
    if CHECKSUM is None:
        raise ModuleNotFoundError("a batch is not written without its checksum", name="google_crc32c")
    _refuse_outside(batch)
    records = compress(batch.codec, b"".join(_record(batch, record) for record in batch.records))
    # Length and checksum come before what the checksum covers, so any will do here.
    checked = _packed(batch, length=0, crc=0)[CHECKED_FROM:] + records
    return _packed(batch, HEADER.size - OVERHEAD + len(records), CHECKSUM(checked)) + records


def _refuse_outside(batch: RecordBatch) -> None:
    """Raise CorruptBatchError for a record whose offset is not one of its batch."""
    for record in batch.records:
        if not batch.base <= record.offset <= batch.last:
            raise CorruptBatchError(0, f"records in [{batch.base}, {batch.last}]", f"offset {record.offset}")


def _packed(batch: RecordBatch, length: int, crc: int) -> bytes:
    """Return the header of a batch, with this length and checksum. Raises CorruptBatchError if a number does not fit."""
    try:
        return HEADER.pack(
            batch.base,
            length,
            batch.epoch,
            MAGIC,
            crc,
            batch.attributes,
            batch.last - batch.base,
            batch.base_timestamp,
            batch.max_timestamp,
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            len(batch.records),
        )
    except struct.error as error:
        raise CorruptBatchError(0, "header fields that fit their widths", str(error)) from error


def _record(batch: RecordBatch, record: Record) -> bytes:
    """Return the bytes of a record, with its length before them; time and offset are written as deltas from the batch's."""
    body = b"".join(
        (
            struct.pack(">b", record.attributes),
            varint(record.timestamp - batch.base_timestamp),
            varint(record.offset - batch.base),
            _sized(record.key),
            _sized(record.value),
            varint(len(record.headers)),
            *(_sized(name.encode()) + _sized(value) for name, value in record.headers),
        )
    )
    return varint(len(body)) + body


def _sized(data: bytes | None) -> bytes:
    """Return bytes with their length before them, a varint; None is length -1 alone."""
    return varint(-1) if data is None else varint(len(data)) + data


def varint(number: int) -> bytes:
    """Return a number in zigzag encoding, seven bits a byte, the lowest first. ByteUtils#writeVarint, #writeVarlong."""
    # Zigzag: the lowest bit is the sign. The highest bit of a byte says that another one follows.
    zigzag = number << 1 if number >= 0 else ((-number) << 1) - 1
    out = bytearray()
    while zigzag >= 0x80:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


# ---------------------------------------------------------------------------------------------------------------------
# Reading


def decode(data: Bytes, at: int = 0) -> tuple[RecordBatch, int]:
    """Return the batch that begins at byte `at`, and where the next one begins. Raises CorruptBatchError."""
    batch, end = header(data, at)
    # The number of records, the last field of the header, which `header` does not return.
    (count,) = struct.unpack(">i", data[at + COUNT_AT : at + COUNT_AT + 4])
    try:
        records = _Records(decompress(batch.codec, data[at + HEADER.size : end]), at).all(batch, count)
    except CompressionError as error:
        raise CorruptBatchError(at, "records in the codec the batch names", str(error)) from error
    return batch._replace(records=records), end


def header(data: Bytes, at: int = 0) -> tuple[RecordBatch, int]:
    """Return the batch that begins at `at`, without records, and where the next one begins. Raises CorruptBatchError."""
    left = len(data) - at
    if left < HEADER.size:
        raise TornBatchError(at, f"a batch of at least {HEADER.size} bytes", f"the last {left} bytes")
    # Only the records are compressed, so the header is read without decompressing anything.
    fields = HEADER.unpack(data[at : at + HEADER.size])
    # `producer` has three fields: id, epoch and base sequence; the last field is the number of records.
    base, length, epoch, magic, checksum, attributes, delta, base_timestamp, max_timestamp, *producer, _ = fields
    end = at + OVERHEAD + length
    _check(data, at, end, magic, checksum)
    if delta < 0:
        raise CorruptBatchError(at, "a last offset at or above the base", f"delta {delta}")
    return RecordBatch(base, base + delta, epoch, (), attributes, base_timestamp, max_timestamp, *producer), end


def _check(data: Bytes, at: int, end: int, magic: int, checksum: int) -> None:
    """Raise CorruptBatchError unless length, magic and checksum of the batch from `at` to `end` are right.

    FileLogInputStream, DefaultRecordBatch#ensureValid. `magic` and `checksum` are what the batch says.
    """
    # Not even room for the header.
    if end - at < HEADER.size:
        raise CorruptBatchError(at, f"a batch length of at least {HEADER.size - OVERHEAD}", str(end - at - OVERHEAD))
    if magic != MAGIC:
        raise CorruptBatchError(at, "magic 2 (message formats 0 and 1 ended with Kafka 4.0)", f"magic {magic}")
    if end > len(data):
        raise TornBatchError(at, f"a batch of {end - at} bytes", f"the last {len(data) - at} bytes")
    # Without the package for CRC-32C batches are read unchecked (rule 5). After the length: only all bytes give the
    # checksum.
    computed = checksum if CHECKSUM is None else CHECKSUM(data[at + CHECKED_FROM : end])
    if checksum != computed:
        raise CorruptBatchError(at, f"checksum {computed:08x}", f"{checksum:08x}")


class _Records:
    """Reads the decompressed records of one batch from front to back; its methods read something and go behind it."""

    def __init__(self, data: bytes, batch_at: int) -> None:
        """Begin at the first record; `batch_at` is where the batch begins in the file, for messages."""
        self.data = data
        self.at = 0
        self.batch_at = batch_at

    def all(self, batch: RecordBatch, count: int) -> tuple[Record, ...]:
        """Read exactly `count` records; nothing may follow them."""
        records = [self._record(batch) for _ in range(count)]
        if count < 0 or self.at != len(self.data):
            raise self._corrupt(f"{count} records and nothing else", f"{len(self.data) - self.at} bytes behind them")
        return tuple(records)

    def _record(self, batch: RecordBatch) -> Record:
        """Read one record of a batch. Raises CorruptBatchError."""
        length = self._varint()
        begin = self.at
        (attributes,) = struct.unpack(">b", self._take(1))
        timestamp = batch.base_timestamp + self._varint()
        offset = batch.base + self._varint()
        key, value = self._sized(), self._sized()
        headers = tuple(self._header() for _ in range(self._count()))
        # DefaultRecord#readFrom refuses a record whose parts do not fill its length, too.
        if self.at - begin != length:
            raise self._corrupt(f"a record of {length} bytes", f"{self.at - begin} bytes")
        if not batch.base <= offset <= batch.last:
            raise self._corrupt(f"offsets in [{batch.base}, {batch.last}]", f"offset {offset}")
        return Record(offset, timestamp, key, value, headers, attributes)

    def _header(self) -> Header:
        """Read a record header: its key and value. Raises CorruptBatchError."""
        key = self._sized()
        if key is None:
            raise self._corrupt("a header with a key", "none")
        try:
            return key.decode(), self._sized()
        except UnicodeDecodeError as error:
            raise self._corrupt("a header key in UTF-8", repr(key)) from error

    def _sized(self) -> bytes | None:
        """Read bytes with their length before them; None for length -1."""
        size = self._varint()
        return None if size == -1 else self._take(size)

    def _count(self) -> int:
        """Read the number of headers. Raises CorruptBatchError for a negative one."""
        count = self._varint()
        if count < 0:
            raise self._corrupt("a number of headers", str(count))
        return count

    def _take(self, size: int) -> bytes:
        """Return the next bytes. Raises CorruptBatchError where there are fewer."""
        if size < 0 or self.at + size > len(self.data):
            raise self._corrupt(f"{size} bytes", f"{len(self.data) - self.at} bytes")
        self.at += size
        return self.data[self.at - size : self.at]

    def _varint(self) -> int:
        """Read a number in zigzag encoding, the inverse of `varint`. Raises CorruptBatchError."""
        raw = shift = 0
        while True:
            (byte,) = self._take(1)
            raw |= (byte & 0x7F) << shift
            # The last byte lacks the highest bit. The lowest bit of the number is its sign.
            if byte < 0x80:
                return raw >> 1 ^ -(raw & 1)
            shift += 7
            # ByteUtils#readVarlong refuses more than ten bytes.
            if shift > 63:
                raise self._corrupt("a number of at most ten bytes", "more")

    def _corrupt(self, expected: str, seen: str) -> CorruptBatchError:
        """Return the error for the records at the present byte."""
        return CorruptBatchError(self.batch_at, f"{expected} at byte {self.at} of its records", seen)


# ---------------------------------------------------------------------------------------------------------------------
# Segment files: sequences of record batches, as a broker stores them.
#
# Rules of this part
#
# 1. Reading stops where a recovering broker would truncate: at the first batch that is incomplete, corrupt or out of
#    order. The batches before it are returned, and the fault with its place. LogSegment#recover.
# 2. A file's name is its base offset in twenty digits.


MOST_UNPACKED = 1 << 31
"""Bytes that a packed segment unpacks to: Kafka's segments have fewer (log.segment.bytes is an int)."""


@dataclass(frozen=True)
class SegmentProblem:
    """The place where reading stopped, and what should be there and is."""

    position: int
    expected: str
    seen: str
    torn: bool = False
    """The last batch is incomplete: the broker was killed, or is still writing."""


@dataclass(frozen=True)
class Segment:
    """The batches of a segment up to its end or first fault."""

    batches: tuple[RecordBatch, ...]
    valid_bytes: int
    """how many bytes the batches take"""
    fault: SegmentProblem | None = None
    positions: tuple[int, ...] = ()
    """the place where each batch begins"""

    @property
    def epochs(self) -> tuple[tuple[int, int], ...]:
        """The epoch cache that follows from these batches: an entry (epoch, start) where a higher epoch begins."""
        entries: list[tuple[int, int]] = []
        for batch in self.batches:
            if not entries or batch.epoch > entries[-1][0]:
                entries.append((batch.epoch, batch.base))
        return tuple(entries)


def file_name(base: int) -> str:
    """Return the name of the segment whose first offset is `base`. LogFileUtils#logFile."""
    return f"{base:020}.log"


def segment_bytes(batches: Iterable[RecordBatch]) -> bytes:
    """Return the content of a segment file."""
    return b"".join(map(encode, batches))


def parse(data: Bytes, records: bool = True, after: int | None = None) -> Segment:
    """Return the batches in `data`, all above offset `after`, up to the first that a recovery would truncate.

    `after` is the last offset of the segment before, None without one. Without `records` nothing is decompressed: offsets,
    epochs and checksums are read, the batches stay empty.
    """
    read_batch = decode if records else header
    batches: list[RecordBatch] = []
    positions: list[int] = []
    at, fault = 0, None
    while at < len(data):
        try:
            batch, end = read_batch(data, at)
        except CorruptBatchError as error:
            fault = SegmentProblem(at, error.expected, error.seen, isinstance(error, TornBatchError))
            break
        # Offsets rise from batch to batch: `after` is then the last offset of the batch before.
        if after is not None and batch.base <= after:
            fault = SegmentProblem(at, f"a base offset above {after}", str(batch.base))
            break
        # The checksum does not cover the base offset, so a damaged one passes it.
        if not 0 <= batch.base <= batch.last < LARGEST:
            fault = SegmentProblem(at, "offsets from 0 to 2^62", f"{batch.base} to {batch.last}")
            break
        batches.append(batch)
        positions.append(at)
        at, after = end, batch.last
    return Segment(tuple(batches), at, fault, tuple(positions))


def read(path: Path, records: bool = True, after: int | None = None) -> Segment:
    """Read the segment in a file, which may be gzipped; `records` and `after` as in `parse`.

    Raises OSError; a broken gzip file is a fault of the segment.
    """
    if path.suffix == ".gz":
        try:
            with tempfile.TemporaryFile() as out:
                _unpack(path, out)
                return parse(FileBytes(out), records, after)
        except UnpackingError as error:
            fault = SegmentProblem(position=0, expected="a complete gzip file", seen=str(error.strerror))
            return Segment(batches=(), valid_bytes=0, fault=fault)
    with path.open("rb") as file:
        return parse(FileBytes(file), records, after)


def _unpack(path: Path, out: IO[bytes]) -> None:
    """Unpack a segment that was packed with gzip into the open file `out`. Raises UnpackingError if it becomes too large."""
    size = 0
    with path.open("rb") as file:
        for piece in unpacked(iter(partial(file.read, UNPACKED_AT_ONCE), b"")):
            size += out.write(piece)
            if size > MOST_UNPACKED:
                raise UnpackingError(0, f"one that unpacks to more than {MOST_UNPACKED:,} bytes")
    out.flush()


def write(directory: Path, batches: Sequence[RecordBatch], base: int | None = None) -> Path:
    """Write a segment file into a directory, named after `base` or else the first batch; return its path."""
    first_offset = base if base is not None else batches[0].base if batches else 0
    path = directory / file_name(first_offset)
    path.write_bytes(segment_bytes(batches))
    return path

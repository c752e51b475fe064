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
"""

import os
import struct
from collections.abc import Callable, Iterable
from typing import IO, NamedTuple

from tidegauge.impl.messages import Batch
from tidegauge.impl.rules import UNDEFINED
from tidegauge.traces.segments.compression import CompressionError, compress, decompress
from tidegauge.util.errors import TidegaugeError

MAGIC = 2
HEADER = struct.Struct(">qiibIhiqqqhii")
"""All fields before the records."""

LENGTH_AT = 8
OVERHEAD = 12
"""The bytes that the length does not count: base offset and length."""

MAGIC_AT = 16
CHECKED_FROM = 21
COUNT_AT = 57

CODEC = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20

Header = tuple[str, bytes | None]
WINDOW = 1 << 20


class FileBytes:
    """The bytes of a file, read when they are asked for. Of one that becomes shorter meanwhile TornBatchError is raised.

    It is not mapped: a broker truncates its logs, and to look at a mapped page that is gone ends the process (SIGBUS).
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._size = os.fstat(file.fileno()).st_size
        self._window, self._at = b"", 0

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice) -> bytes:
        """Return the bytes between two positions from the beginning."""
        begin, end = part.start, min(part.stop, self._size)
        found = self._window[begin - self._at : end - self._at] if begin >= self._at else b""
        if len(found) < end - begin:
            self._file.seek(begin)
            self._window, self._at = self._file.read(max(WINDOW, end - begin)), begin
            found = self._window[: end - begin]
            if len(found) < end - begin:
                raise TornBatchError(begin, f"{end - begin} bytes", "a file that has become shorter")
        return found


Bytes = bytes | FileBytes
"""A source of batches; a slice of either is bytes."""


def _checksum() -> Callable[[bytes], int] | None:
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
    """A batch. Compaction may leave fewer records than [base, last] has offsets, down to none."""

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

    @property
    def as_log_batch(self) -> Batch:
        """The batch as `impl.storage.log` knows it."""
        return Batch(self.base, self.last, self.epoch)


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
    checked = _packed(batch, 0, 0)[CHECKED_FROM:] + records
    return _packed(batch, HEADER.size - OVERHEAD + len(records), CHECKSUM(checked)) + records


def _refuse_outside(batch: RecordBatch) -> None:
    for record in batch.records:
        if not batch.base <= record.offset <= batch.last:
            raise CorruptBatchError(0, f"records in [{batch.base}, {batch.last}]", f"offset {record.offset}")


def _packed(batch: RecordBatch, length: int, crc: int) -> bytes:
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
    """Return length and bytes; null is length -1."""
    return varint(-1) if data is None else varint(len(data)) + data


def varint(number: int) -> bytes:
    """Return a number in zigzag encoding, seven bits a byte, the lowest first. ByteUtils#writeVarint, #writeVarlong."""
    left = number << 1 if number >= 0 else ((-number) << 1) - 1
    out = bytearray()
    while left >= 0x80:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)


# ---------------------------------------------------------------------------------------------------------------------
# Reading


def decode(data: Bytes, at: int = 0) -> tuple[RecordBatch, int]:
    """Return the batch at `at`, and the place where the next one begins."""
    batch, end = header(data, at)
    (count,) = struct.unpack(">i", data[at + COUNT_AT : at + COUNT_AT + 4])
    try:
        records = _Records(decompress(batch.codec, data[at + HEADER.size : end]), at).all(batch, count)
    except CompressionError as error:
        raise CorruptBatchError(at, "records in the codec the batch names", str(error)) from error
    return batch._replace(records=records), end


def header(data: Bytes, at: int = 0) -> tuple[RecordBatch, int]:
    """Return the batch at `at` without its records, and the place where the next one begins."""
    left = len(data) - at
    if left < HEADER.size:
        raise TornBatchError(at, f"a batch of at least {HEADER.size} bytes", f"the last {left} bytes")
    # Only records are compressed: the header has offsets and epoch in plain bytes.
    fields = HEADER.unpack(data[at : at + HEADER.size])
    base, length, epoch, magic, checksum, attributes, delta, base_timestamp, max_timestamp, *producer, _ = fields
    end = at + OVERHEAD + length
    _check(data, at, end, magic, checksum)
    if delta < 0:
        raise CorruptBatchError(at, "a last offset at or above the base", f"delta {delta}")
    return RecordBatch(base, base + delta, epoch, (), attributes, base_timestamp, max_timestamp, *producer), end


def _check(data: Bytes, at: int, end: int, magic: int, checksum: int) -> None:
    """Check length, magic and checksum of the batch between two places. FileLogInputStream, #ensureValid."""
    if end - at < HEADER.size:
        raise CorruptBatchError(at, f"a batch length of at least {HEADER.size - OVERHEAD}", str(end - at - OVERHEAD))
    if magic != MAGIC:
        raise CorruptBatchError(at, "magic 2 (message formats 0 and 1 ended with Kafka 4.0)", f"magic {magic}")
    if end > len(data):
        raise TornBatchError(at, f"a batch of {end - at} bytes", f"the last {len(data) - at} bytes")
    # Without the package for CRC-32C batches are read unchecked (rule 5).
    computed = checksum if CHECKSUM is None else CHECKSUM(data[at + CHECKED_FROM : end])
    if checksum != computed:
        raise CorruptBatchError(at, f"checksum {computed:08x}", f"{checksum:08x}")


class _Records:
    """Reads the records of one batch from front to back."""

    def __init__(self, data: bytes, batch_at: int) -> None:
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
        name = self._sized()
        if name is None:
            raise self._corrupt("a header with a name", "none")
        try:
            return name.decode(), self._sized()
        except UnicodeDecodeError as error:
            raise self._corrupt("a header name in UTF-8", repr(name)) from error

    def _sized(self) -> bytes | None:
        size = self._varint()
        return None if size == -1 else self._take(size)

    def _count(self) -> int:
        count = self._varint()
        if count < 0:
            raise self._corrupt("a number of headers", str(count))
        return count

    def _take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            raise self._corrupt(f"{size} bytes", f"{len(self.data) - self.at} bytes")
        self.at += size
        return self.data[self.at - size : self.at]

    def _varint(self) -> int:
        raw = shift = 0
        while True:
            (byte,) = self._take(1)
            raw |= (byte & 0x7F) << shift
            if byte < 0x80:
                return raw >> 1 ^ -(raw & 1)
            shift += 7
            # ByteUtils#readVarlong refuses more than ten bytes.
            if shift > 63:
                raise self._corrupt("a number of at most ten bytes", "more")

    def _corrupt(self, expected: str, seen: str) -> CorruptBatchError:
        return CorruptBatchError(self.batch_at, f"{expected} at byte {self.at} of its records", seen)

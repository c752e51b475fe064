"""Segment files: sequences of record batches, as a broker stores them.

Rules of this file

1. Reading stops where a recovering broker would truncate: at the first batch that is incomplete, corrupt or out of order.
   The batches before it are returned, and the fault with its place. LogSegment#recover.
2. A file's name is its base offset in twenty digits.
"""

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from tidegauge.impl.messages import Batch
from tidegauge.traces.schema import LARGEST
from tidegauge.traces.segments.record_batch import (
    Bytes,
    CorruptBatchError,
    FileBytes,
    RecordBatch,
    TornBatchError,
    decode,
    encode,
    header,
)
from tidegauge.util.bounds import UNPACKED_AT_ONCE, UnpackingError, unpacked

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
    fault: SegmentProblem | None = None
    positions: tuple[int, ...] = ()
    """the place where each batch begins"""

    @property
    def log_batches(self) -> tuple[Batch, ...]:
        """The batches as `impl.storage.log` knows them."""
        return tuple(batch.as_log_batch for batch in self.batches)

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

    Without `records` nothing is decompressed: offsets, epochs and checksums are read, the batches stay empty.
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
        if after is not None and batch.base <= after:
            fault = SegmentProblem(at, f"a base offset above {after}", str(batch.base))
            break
        # The checksum does not cover the base offset: a damaged one would pass.
        if not 0 <= batch.base <= batch.last < LARGEST:
            fault = SegmentProblem(at, "offsets from 0 to 2^62", f"{batch.base} to {batch.last}")
            break
        batches.append(batch)
        positions.append(at)
        at, after = end, batch.last
    return Segment(tuple(batches), at, fault, tuple(positions))


def read(path: Path, records: bool = True, after: int | None = None) -> Segment:
    """Read the segment in a file, which may be gzipped. Raises OSError; a broken gzip file is a fault of the segment."""
    if path.suffix == ".gz":
        try:
            with tempfile.TemporaryFile() as out:
                _unpack(path, out)
                return parse(FileBytes(out), records, after)
        except UnpackingError as error:
            return Segment((), 0, SegmentProblem(0, "a complete gzip file", str(error.strerror)))
    with path.open("rb") as file:
        return parse(FileBytes(file), records, after)


def _unpack(path: Path, out: IO[bytes]) -> None:
    size = 0
    with path.open("rb") as file:
        for piece in unpacked(iter(partial(file.read, UNPACKED_AT_ONCE), b"")):
            size += out.write(piece)
            if size > MOST_UNPACKED:
                raise UnpackingError(0, f"one that unpacks to more than {MOST_UNPACKED:,} bytes")
    out.flush()


def write(directory: Path, batches: Sequence[RecordBatch], base: int | None = None) -> Path:
    """Write a segment file, named after `base` or the first batch; return its path."""
    first = base if base is not None else batches[0].base if batches else 0
    path = directory / file_name(first)
    path.write_bytes(segment_bytes(batches))
    return path

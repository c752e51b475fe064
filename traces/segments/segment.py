"""Segment files: record batches one after the other, as a broker keeps them.

Rules of this file

1. Reading stops where a recovering broker would truncate: at the first batch that is incomplete, corrupt or out of order.
   What stands before is returned, and the fault with its place. LogSegment#recover.
2. A file's name is its base offset in twenty digits.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tidegauge.impl.records import Batch
from tidegauge.traces.segments.record_batch import CorruptBatchError, RecordBatch, decode, encode


@dataclass(frozen=True)
class SegmentProblem:
    """Where reading stopped, what should have been there, what is."""

    position: int
    expected: str
    seen: str


@dataclass(frozen=True)
class Segment:
    """The batches of a segment up to its end or first fault."""

    batches: tuple[RecordBatch, ...]
    valid_bytes: int
    fault: SegmentProblem | None = None

    @property
    def log_batches(self) -> tuple[Batch, ...]:
        """The batches as `impl.storage.log` knows them."""
        return tuple(batch.as_log_batch for batch in self.batches)

    @property
    def epochs(self) -> tuple[tuple[int, int], ...]:
        """The epoch cache these batches imply: an entry (epoch, start) where a higher epoch begins."""
        entries: list[tuple[int, int]] = []
        for batch in self.batches:
            if not entries or batch.epoch > entries[-1][0]:
                entries.append((batch.epoch, batch.base))
        return tuple(entries)


def file_name(base: int) -> str:
    """The name of the segment whose first offset is `base`. LogFileUtils#logFile."""
    return f"{base:020}.log"


def segment_bytes(batches: Iterable[RecordBatch]) -> bytes:
    """The content of a segment file."""
    return b"".join(map(encode, batches))


def parse(data: bytes) -> Segment:
    """The batches in `data`, up to the first that a recovery would cut off."""
    batches: list[RecordBatch] = []
    at = 0
    while at < len(data):
        try:
            batch, end = decode(data, at)
        except CorruptBatchError as fault:
            return Segment(tuple(batches), at, SegmentProblem(at, fault.expected, fault.seen))
        if batches and batch.base <= batches[-1].last:
            return Segment(
                tuple(batches), at, SegmentProblem(at, f"a base offset above {batches[-1].last}", str(batch.base))
            )
        batches.append(batch)
        at = end
    return Segment(tuple(batches), at)


def read(path: Path) -> Segment:
    """The segment in a file."""
    return parse(path.read_bytes())


def write(directory: Path, batches: Sequence[RecordBatch], base: int | None = None) -> Path:
    """Write a segment file, named after `base` or the first batch; the path of it."""
    first = base if base is not None else batches[0].base if batches else 0
    path = directory / file_name(first)
    path.write_bytes(segment_bytes(batches))
    return path

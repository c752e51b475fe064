"""OffsetIndex: a sparse map from offsets to positions in a segment.

Rules of this file

1. An entry says: the batch whose last offset this is starts at that position. Offsets increase.
2. A look-up gives the largest entry at or below the target, the start of the segment for none: the rest is scanned.
3. An entry takes 8 bytes: the offset relative to the segment's base, and the position, both 32 bits.
4. Source: org.apache.kafka.storage.internals.log.OffsetIndex, AbstractIndex.
"""

from bisect import bisect_left, bisect_right
from typing import NamedTuple

from tidegauge.impl.errors import IllegalArgumentError, InvalidOffsetError

ENTRY_BYTES = 8
LARGEST_RELATIVE_OFFSET = (1 << 31) - 1


class OffsetPosition(NamedTuple):
    """An offset and where the scan for it begins."""

    offset: int
    position: int


class OffsetIndex(NamedTuple):
    """The index of the segment that begins at `base`."""

    base: int
    max_bytes: int = 10 << 20
    entries: tuple[OffsetPosition, ...] = ()

    @property
    def is_full(self) -> bool:
        """AbstractIndex#isFull: the segment rolls."""
        return len(self.entries) >= self.max_bytes // ENTRY_BYTES


def can_append_offset(index: OffsetIndex, offset: int) -> bool:
    """Return whether the offset fits in 32 bits above the base. AbstractIndex#canAppendOffset."""
    return 0 <= offset - index.base <= LARGEST_RELATIVE_OFFSET


def append_entry(index: OffsetIndex, offset: int, position: int) -> OffsetIndex:
    """Add an entry. OffsetIndex#append."""
    if index.is_full:
        raise IllegalArgumentError(f"offset index: expected room for one more entry; seen {len(index.entries)}, full")
    if not can_append_offset(index, offset):
        raise IllegalArgumentError(f"index offset: expected in 32 bits above {index.base}; seen {offset}")
    if index.entries and offset <= index.entries[-1].offset:
        raise InvalidOffsetError(f"index offset: expected > {index.entries[-1].offset}; seen {offset}")
    return index._replace(entries=(*index.entries, OffsetPosition(offset, position)))


def lookup(index: OffsetIndex, target: int) -> OffsetPosition:
    """Return where to begin scanning for `target`. OffsetIndex#lookup."""
    count = bisect_right(index.entries, target, key=lambda entry: entry.offset)
    return index.entries[count - 1] if count else OffsetPosition(index.base, 0)


def truncate_index(index: OffsetIndex, offset: int) -> OffsetIndex:
    """Drop entries at and above `offset`. OffsetIndex#truncateTo."""
    return index._replace(entries=index.entries[: bisect_left(index.entries, offset, key=lambda entry: entry.offset)])

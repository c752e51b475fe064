"""Rows of words of any length, each kept once.

Rule of this file: rows are compared whole, so no hash stands for them.
"""

from typing import NamedTuple

from tidegauge.conformance.kernel import state as s
from tidegauge.conformance.kernel.one_event import FREE, mixed


class Pool(NamedTuple):
    """Row i is `words[starts[i]:starts[i + 1]]`; a hash table of them, as large as a power of two."""

    words: s.Ints
    starts: s.Ints
    slots: s.Ints


def met(pool: Pool, row: int) -> int:
    """The number of the row that stands behind the last: that of the same row before, or its own."""
    words, starts = pool.words, pool.starts
    said = words[starts[row] : starts[row + 1]]
    h = 0
    for k in range(len(said)):
        h = mixed(h, int(said[k]))
    mask = len(pool.slots) - 1
    slot = h & mask
    while pool.slots[slot] != FREE:
        other = pool.slots[slot]
        if same(said, words[starts[other] : starts[other + 1]]):
            return int(other)
        slot = (slot + 1) & mask
    pool.slots[slot] = row
    return row


def same(one: s.Ints, two: s.Ints) -> bool:
    """Whether two rows say the same."""
    if len(one) != len(two):
        return False
    k = 0
    while k < len(one) and one[k] == two[k]:
        k += 1
    return k == len(one)


def met_again(pool: Pool, rows: int) -> None:
    """Fill a hash table that was made anew."""
    for row in range(rows):
        met(pool, row)


def has_room(pool: Pool, rows: int, most: int) -> bool:
    """Whether there is room for one more row of so many words."""
    return bool(rows + 1 < len(pool.starts) and pool.starts[rows] + most <= len(pool.words))

"""Pools of rows of words of any length, each distinct row stored once.

Rule of this file: equal hashes are not enough, rows are compared word by word.
"""

from typing import NamedTuple

from tidegauge.conformance.kernel import state as s
from tidegauge.conformance.kernel.one_event import FREE, mix


class Pool(NamedTuple):
    """Row i is `words[starts[i]:starts[i + 1]]`; a hash table of them, as large as a power of two."""

    words: s.Ints
    starts: s.Ints
    slots: s.Ints


def intern_row(pool: Pool, row: int) -> int:
    """Return the number of an earlier row equal to `row`, which was written after the last one; else `row`, now stored."""
    words, starts = pool.words, pool.starts
    new = words[starts[row] : starts[row + 1]]
    h = 0
    for k in range(len(new)):
        h = mix(h, int(new[k]))
    mask = len(pool.slots) - 1
    slot = h & mask
    while pool.slots[slot] != FREE:
        other = pool.slots[slot]
        if equal_rows(new, words[starts[other] : starts[other + 1]]):
            return int(other)
        slot = (slot + 1) & mask
    pool.slots[slot] = row
    return row


def equal_rows(one: s.Ints, two: s.Ints) -> bool:
    """Return whether two rows are equal."""
    if len(one) != len(two):
        return False
    k = 0
    while k < len(one) and one[k] == two[k]:
        k += 1
    return k == len(one)


def rehash_rows(pool: Pool, rows: int) -> None:
    """Fill a new hash table with the first rows."""
    for row in range(rows):
        intern_row(pool, row)


def has_room(pool: Pool, rows: int, most: int) -> bool:
    """Return whether there is room for one more row of at most so many words."""
    return bool(rows + 1 < len(pool.starts) and pool.starts[rows] + most <= len(pool.words))

"""Interleavings as random walks over a labelled graph, all walks of a chunk at once.

Rules of this file

1. A walk starts in the initial state. Every second walk is free: each outgoing edge is as likely as the others. The others
   are aimed: a shortest path leads to an edge, and free steps follow. The aims go round all edges of the graph, so as
   many aimed walks as edges take each of them; free walks alone stay near the initial state.
2. Chunk c of part p of seed s depends on (s, p, c) and on nothing else: same seed, same bytes, whoever computes it.
3. Two walks are the same interleaving when they take the same edges. A 64-bit hash of the edges stands for them: a chance
   of 1 in 30 million that one of a million walks is dropped wrongly, none that a duplicate is counted.
4. Of n = 2^m parts a walk belongs to the one whose number it spells, so parts never share a walk and need not be compared.
   Each of its first m steps out of states with more than one edge spells a bit, taken from the hash; what is left at the
   end the last hash spells. Free steps are drawn again until they spell part p, and a walk that does not is dropped: of 64
   parts one in four walks is kept, where it would be one in 64 if they were drawn without a look at the part.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tidegauge.impl.errors import UsageError
from tidegauge.traces.columns import Ints
from tidegauge.traces.files.parquet import DistinctWriter
from tidegauge.traces.model.edges import EdgeTable

CHUNK = 8192
"""Walks drawn at a time."""

WRITTEN = 16_384
"""Walks in a row group, at least: about half a million events with the default number of steps."""

STEPS = 24
"""Edges per walk: 20 to 30 events, about what it takes for two elections and a truncation."""

TAIL = 6
"""Free steps after an aimed edge, at least: enough to fetch once more and to let the effect show."""

REDRAWN = 16
"""How often a step that leads to another part is drawn again: then hardly an edge that leads to this one was missed."""

SPELT = np.uint64(32)
"""The lowest bit of a hash that spells."""

EXHAUSTED = 50
"""A generation ends when fewer than one in so many walks is new: the graph has no more of this length."""

POWERS = [2**bits for bits in range(17)]
"""How many parts there can be."""

Hashes = NDArray[np.uint64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Generated:
    """What a generation wrote. `edges_taken` of the graph's `edges` are in at least one of the walks."""

    path: str
    traces: int
    events: int
    duplicates: int
    edges_taken: int
    edges: int


@dataclass(frozen=True)
class Walks:
    """A chunk of walks: their edges one after the other, `lengths[w]` of walk w, and a hash each."""

    edges: Ints
    lengths: Ints
    hashes: Hashes

    def only(self, kept: Flags) -> "Walks":
        """The walks that `kept` marks."""
        return Walks(self.edges[np.repeat(kept, self.lengths)], self.lengths[kept], self.hashes[kept])


def generate(
    table: EdgeTable, path: str | Path, walks: int, *, steps: int = STEPS, seed: int = 0, part: int = 0, parts: int = 1
) -> Generated:
    """Write `walks` distinct interleavings to `path`, or as many as there are to be found. `parts` is a power of two."""
    spellable(parts)
    seen = Seen()
    taken = np.zeros(len(table.target) + 1, dtype=np.bool_)
    duplicates, drawn, new = 0, 0, 1
    waiting: list[Walks] = []
    found = 0
    with DistinctWriter(path, table.config, table.rows) as out:
        for own in _chunks(table, steps, seed, part, parts):
            if found >= walks or new * EXHAUSTED < max(drawn, 1):
                break
            fresh = seen.add(own.hashes)
            drawn, new = len(fresh), int(np.count_nonzero(fresh))
            duplicates += drawn - new
            waiting.append(own.only(fresh & (np.cumsum(fresh) <= walks - found)))
            found += len(waiting[-1].lengths)
            taken[waiting[-1].edges] = True
            if sum(len(own.lengths) for own in waiting) >= WRITTEN or found >= walks:
                _write(table, waiting, out)
        _write(table, waiting, out)
        traces, events = out.traces, out.rows
    return Generated(str(path), traces, events, duplicates, int(taken[:-1].sum()), len(table.target))


def spellable(parts: int) -> None:
    """Raise UsageError for a number of parts that cannot be spelt."""
    if parts not in POWERS:
        raise UsageError(f"parts: expected a power of two up to {POWERS[-1]:,}, seen {parts:,}; name one")


def _write(table: EdgeTable, waiting: list[Walks], out: DistinctWriter) -> None:
    """Write the walks that wait, so that row groups are full however few walks of a chunk are this part's."""
    if waiting:
        edges = np.concatenate([walks.edges for walks in waiting])
        found = table.distinct(edges, np.concatenate([walks.lengths for walks in waiting]))
        out.write(found.rows, found.table.trace_starts)
        waiting.clear()


def draw(
    table: EdgeTable, count: int, steps: int, rng: np.random.Generator, first_aim: int = 0, part: int = 0, parts: int = 1
) -> Walks:
    """Up to `count` random walks of a part, the initial pseudo edge in front; the aims go on from edge `first_aim`."""
    forced, lengths = _aims(table, count, steps, first_aim)
    width = forced.shape[1]
    taken = np.full((count, width + 1), -1, dtype=np.int64)
    taken[:, 0] = table.initial
    state = np.zeros(count, dtype=np.int64)
    going = np.ones(count, dtype=np.bool_)
    mine = np.ones(count, dtype=np.bool_)
    hashes = np.zeros(count, dtype=np.uint64)
    bits, spelt = parts.bit_length() - 1, np.zeros(count, dtype=np.int64)
    for step in range(width):
        degree = table.first_edge[state + 1] - table.first_edge[state]
        going &= (degree > 0) & (step < lengths)
        edge = np.where(going, np.where(forced[:, step] >= 0, forced[:, step], _free(table, state, rng)), -1)
        spells = going & (degree > 1) & (spelt < bits)
        if spells.any():
            bit = (part >> spelt) & 1
            for _ in range(REDRAWN):
                again = np.flatnonzero(spells & (forced[:, step] < 0) & (_spelling(_mixed(hashes, edge)) & 1 != bit))
                edge[again] = _free(table, state[again], rng)
            mine &= ~spells | (_spelling(_mixed(hashes, edge)) & 1 == bit)
            spelt += spells
        taken[:, step + 1] = edge
        state = np.where(going, table.target[edge], state)
        hashes = _mixed(hashes, edge)
    mine &= (_spelling(hashes) ^ (part >> spelt)) & ((1 << (bits - spelt)) - 1) == 0
    return Walks(taken[taken >= 0], np.count_nonzero(taken >= 0, axis=1).astype(np.int64), hashes).only(mine)


def _free(table: EdgeTable, state: Ints, rng: np.random.Generator) -> Ints:
    """An edge out of each state, each as likely as the others."""
    first = table.first_edge[state]
    degree = (table.first_edge[state + 1] - first).astype(np.uint64)
    number = rng.integers(0, 2**32, size=len(state), dtype=np.uint64)
    return first + ((number * degree) >> np.uint64(32)).astype(np.int64)


def _spelling(hashes: Hashes) -> Ints:
    """The bits of hashes that spell the number of a part."""
    return (hashes >> SPELT).astype(np.int64)


class Seen:
    """The hashes met so far, in sorted runs that are merged when two have grown alike: a lookup asks few runs."""

    def __init__(self) -> None:
        self._runs: list[Hashes] = []

    def add(self, hashes: Hashes) -> Flags:
        """Which of `hashes` are met for the first time, now and within themselves."""
        new = np.zeros(len(hashes), dtype=np.bool_)
        values, first = np.unique(hashes, return_index=True)
        new[first] = True
        for run in self._runs:
            place = np.searchsorted(run, values)
            known = run[np.minimum(place, len(run) - 1)] == values
            new[first[known]] = False
        added = np.sort(hashes[new])
        while len(added) and self._runs and len(self._runs[-1]) <= 2 * len(added):
            added = np.sort(np.concatenate((self._runs.pop(), added)))
        if len(added):
            self._runs.append(added)
        return new


def _chunks(table: EdgeTable, steps: int, seed: int, part: int, parts: int) -> Iterator[Walks]:
    chunk = 0
    while True:
        yield draw(table, CHUNK, steps, np.random.default_rng((seed, part, chunk)), chunk * CHUNK // 2, part, parts)
        chunk += 1


def _aims(table: EdgeTable, count: int, steps: int, first_aim: int) -> tuple[Ints, Ints]:
    """The edges that walks must take, -1 where they are free, and how many edges each takes at most."""
    walks = np.arange(1, count, 2)
    aims = (first_aim + np.arange(len(walks))) % len(table.target)
    state = table.source[aims]
    depth = table.depth[state]
    lengths = np.full(count, steps, dtype=np.int64)
    lengths[walks] = np.maximum(steps, depth + 1 + TAIL)
    forced = np.full((count, int(lengths.max())), -1, dtype=np.int64)
    forced[walks, depth] = aims
    while (depth > 0).any():
        left = depth > 0
        walks, state, depth = walks[left], state[left], depth[left] - 1
        forced[walks, depth] = table.parent[state]
        state = table.source[table.parent[state]]
    return forced, lengths


def _mixed(hashes: Hashes, edge: Ints) -> Hashes:
    """One round of splitmix64 with the edge added in."""
    mixed = (hashes + edge.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x632BE59BD9B4E019)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return mixed ^ (mixed >> np.uint64(32))

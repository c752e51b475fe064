"""A labelled state graph as arrays: the edges that leave a state, and the event rows of an edge.

Rules of this file

1. Edges are sorted by source: those of state s are `first_edge[s]` to `first_edge[s + 1]`, sorted by their labels. So walks
   do not depend on the order in which the graph was found.
2. Most edges share their events with others. `rows` holds each distinct event once; `row_of` gives, edge by edge, the
   rows of its events. A few thousand distinct rows stay in the processor's cache while millions are gathered.
3. `parent` is the last edge of a shortest path from the initial state, `depth` the length of that path: a walk can be aimed
   at any edge.
4. The last edge is a pseudo edge of the initial state: its rows are the initial events.

States, edges and labels are numbers, indexes of arrays; state 0 is the initial one. Below, walks are drawn at random over
such a graph: a *walk* is a sequence of edges from the initial state, an interleaving, whose events are a trace. Of several
*parts* each is a file with walks of its own; a *chunk* is the walks that are drawn at once.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tidegauge.traces.columns import Columns, Distinct, Ints, ranges, to_columns, with_starts
from tidegauge.traces.formats.parquet import DistinctWriter
from tidegauge.traces.from_model.behaviour import config_for, events_of_step, initial_events
from tidegauge.traces.from_model.views import Label, View
from tidegauge.traces.schema import Config, Event, Trace
from tidegauge.util.errors import UsageError


@dataclass(frozen=True)
class EdgeTable:
    """A graph ready to be walked, as arrays."""

    config: Config
    first_edge: Ints
    """state -> its first edge, and one entry more"""
    source: Ints
    target: Ints
    """edge -> state"""
    parent: Ints
    """state -> the last edge of a shortest path to it, -1 for the initial one"""
    depth: Ints
    """state -> the length of that path"""
    label_of: Ints
    """edge -> index of its label in `labels`"""
    labels: Sequence[Label]
    first_row: Ints
    """edge -> where its events begin in `row_of`, and one entry more"""
    row_of: Ints
    """event of an edge -> its row in `rows`"""
    rows: Columns

    @property
    def initial(self) -> int:
        """The pseudo edge of the initial state."""
        return len(self.target)

    def distinct(self, edges: Ints, lengths: Ints) -> Distinct:
        """Return the traces whose edges are concatenated in `edges`, `lengths[t]` of them in trace t."""
        # How many events each edge has, and how many come before it.
        counts = np.diff(self.first_row)[edges]
        events_before = np.concatenate(([0], np.cumsum(counts)))
        rows = self.row_of[ranges(self.first_row[edges], counts)]
        starts = events_before[np.concatenate(([0], np.cumsum(lengths)))]
        return Distinct(with_starts(self.rows, starts), rows)


def edge_table(
    states: Sequence[View],
    labels: Sequence[Label],
    edges: Iterable[tuple[int, int, int]],
    profile: str = "fetch-truncation",
    source: str = "",
) -> EdgeTable:
    """Return a state graph as arrays, with the events of each edge.

    `edges` are (source, index of the label, target); states[0] is initial. TLC's graph and the explorer's both fit.
    """
    # By label, not by its number: numbers depend on the order in which the graph was found (rule 1).
    rank = {label: place for place, label in enumerate(sorted(range(len(labels)), key=labels.__getitem__))}
    ordered = np.array(sorted(edges, key=lambda edge: (edge[0], rank[edge[1]], edge[2])), dtype=np.int64).reshape(-1, 3)
    # The distinct events, the row of each by its content, and the rows of each edge's events (EdgeTable).
    rows: dict[Hashable, int] = {}
    events: list[Event] = []
    first_row, row_of = [0], []

    def add(reported: Iterable[Event]) -> None:
        """Add the next edge, by the events that nodes report of it."""
        for event in reported:
            # An event that thousands of edges have is one row of the table.
            key = (event.node, event.event, tuple(event.fields.items()))
            row = rows.setdefault(key, len(events))
            # An event that was not met before has got the next row.
            if row == len(events):
                events.append(event)
            row_of.append(row)
        first_row.append(len(row_of))

    for src, label, dst in ordered.tolist():
        add(events_of_step(states[src], labels[label], states[dst], profile))
    # The pseudo edge, behind all others (rule 4).
    add(initial_events(states[0]))
    config = config_for(len(states[0][0]), profile, source)
    first_edge = np.searchsorted(ordered[:, 0], np.arange(len(states) + 1)).astype(np.int64)
    target = ordered[:, 2].copy()
    parent, depth = _shortest_paths(first_edge, target)
    return EdgeTable(
        config=config,
        first_edge=first_edge,
        source=ordered[:, 0].copy(),
        target=target,
        parent=parent,
        depth=depth,
        label_of=ordered[:, 1].copy(),
        labels=labels,
        first_row=np.array(first_row, dtype=np.int64),
        row_of=np.array(row_of, dtype=np.int64),
        rows=to_columns([Trace("", "", config, tuple(events))], config),  # as if they were one trace
    )


def _shortest_paths(first_edge: Ints, target: Ints) -> tuple[Ints, Ints]:
    """Return for each state the last edge of a shortest path to it (-1 for the initial state) and its length."""
    parent = np.full(len(first_edge) - 1, -1, dtype=np.int64)
    depth = np.full(len(first_edge) - 1, -1, dtype=np.int64)
    depth[0] = 0
    frontier = np.zeros(1, dtype=np.int64)
    while len(frontier):
        # All edges out of the frontier that lead to states not reached yet.
        edges = ranges(first_edge[frontier], first_edge[frontier + 1] - first_edge[frontier])
        edges = edges[depth[target[edges]] < 0]
        # Breadth first, a whole level at a time: the first edge that reaches a state ends a shortest path to it.
        reached, first = np.unique(target[edges], return_index=True)
        parent[reached] = edges[first]
        depth[reached] = depth[frontier[0]] + 1
        frontier = reached
    return parent, depth


# ---------------------------------------------------------------------------------------------------------------------
# Interleavings as random walks over a labelled graph, all walks of a chunk at once.
#
# Rules of this part
#
# 1. A walk starts in the initial state. Every second walk is free: each outgoing edge is as likely as the others. The
#    others are aimed: a shortest path leads to an edge, and free steps follow. The aims cycle through all edges of the
#    graph, so as many aimed walks as edges take each of them; free walks alone stay near the initial state.
# 2. Chunk c of part p of seed s depends on (s, p, c) and on nothing else: the same seed gives the same bytes in any
#    process.
# 3. Two walks are the same interleaving when they take the same edges. Walks are compared by a 64-bit hash of their edges:
#    with a chance of 1 in 30 million one of a million walks is dropped wrongly; a duplicate is never counted.
# 4. Of n = 2^m parts a walk belongs to the one whose number it spells, so parts never share a walk and need not be
#    compared. Each of its first m steps out of states with more than one edge spells a bit, taken from the hash; the last
#    hash spells the bits that are left. Free steps are drawn again until they spell part p, and a walk that does not is
#    dropped: of 64 parts one in four walks is kept, and not one in 64.


CHUNK = 8192
"""Walks drawn at a time."""

WRITTEN = 16_384
"""Walks in a row group, at least: about half a million events with the default number of steps."""

STEPS = 24
"""Edges per walk: 20 to 30 events, about what it takes for two elections and a truncation."""

TAIL = 6
"""Free steps after an aimed edge, at least: enough to fetch once more and to let the effect show."""

REDRAWN = 16
"""How often a step that spells another part is drawn again; hardly any edge that spells this one is missed then."""

SPELT = np.uint64(32)
"""The lowest of the bits of a hash that spell."""

EXHAUSTED = 50
"""A generation ends when fewer than one in so many walks is new: the graph has few more of this length."""

POWERS = [2**bits for bits in range(17)]
"""The possible numbers of parts."""

Hashes = NDArray[np.uint64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Generated:
    """The counts of a generation. `edges_taken` of the graph's `edges` are in at least one of the walks."""

    path: str
    traces: int
    events: int
    duplicates: int
    edges_taken: int
    edges: int


@dataclass(frozen=True)
class Walks:
    """A chunk of walks: their edges concatenated, `lengths[w]` of walk w, and a hash of each."""

    edges: Ints
    lengths: Ints
    hashes: Hashes

    def only(self, marks: Flags) -> "Walks":
        """Return the walks that `marks` marks."""
        return Walks(self.edges[np.repeat(marks, self.lengths)], self.lengths[marks], self.hashes[marks])


def generate(
    table: EdgeTable, path: str | Path, walks: int, *, steps: int = STEPS, seed: int = 0, part: int = 0, parts: int = 1
) -> Generated:
    """Write `walks` distinct interleavings of one part to the Parquet file `path`, or as many as can be found.

    A walk has `steps` edges; an aimed one may have more. `part` is a number below `parts`, a power of two.
    """
    spellable(parts)
    seen_hashes = SeenHashes()
    edges_taken = np.zeros(len(table.target) + 1, dtype=np.bool_)
    # Walks dropped so far; of the last chunk the walks drawn and the new ones. At first as if there were new ones.
    duplicates, drawn, new = 0, 0, 1
    # New walks that are not in a row group yet; `written` counts these too.
    waiting: list[Walks] = []
    written = 0
    with DistinctWriter(path, table.config, table.rows) as out:
        for chunk in _chunks(table, steps, seed, part, parts):
            # Few new walks in the last chunk: the graph is nearly used up at this length.
            if written >= walks or new * EXHAUSTED < max(drawn, 1):
                break
            is_new = seen_hashes.add(chunk.hashes)
            drawn, new = len(is_new), int(np.count_nonzero(is_new))
            duplicates += drawn - new
            # No more than are wanted.
            waiting.append(chunk.only(is_new & (np.cumsum(is_new) <= walks - written)))
            written += len(waiting[-1].lengths)
            edges_taken[waiting[-1].edges] = True
            # Enough for a row group, or all that are wanted.
            if sum(len(new_walks.lengths) for new_walks in waiting) >= WRITTEN or written >= walks:
                _write(table, waiting, out)
        _write(table, waiting, out)
        traces, events = out.traces, out.rows
    # Without the last edge, the pseudo edge that every walk takes.
    return Generated(str(path), traces, events, duplicates, int(edges_taken[:-1].sum()), len(table.target))


def spellable(parts: int) -> None:
    """Raise UsageError unless the number of parts is one of POWERS, so that walks can spell the number of a part."""
    if parts not in POWERS:
        raise UsageError(f"parts: expected a power of two up to {POWERS[-1]:,}, seen {parts:,}; name one")


def _write(table: EdgeTable, waiting: list[Walks], out: DistinctWriter) -> None:
    """Write the walks that wait as one row group, and clear the list.

    They wait for each other, because a chunk may have few walks of this part.
    """
    if waiting:
        edges = np.concatenate([walks.edges for walks in waiting])
        distinct = table.distinct(edges, np.concatenate([walks.lengths for walks in waiting]))
        out.write(distinct.rows, distinct.table.trace_starts)
        waiting.clear()


def draw(
    table: EdgeTable, count: int, steps: int, rng: np.random.Generator, first_aim: int = 0, part: int = 0, parts: int = 1
) -> Walks:
    """Draw `count` random walks, and return those that belong to a part; the aims of every second one begin at edge
    `first_aim`.

    All walks take a step at a time: each array has a value per walk. A walk begins with the initial pseudo edge.
    """
    forced, lengths = _aims(table, count, steps, first_aim)
    width = forced.shape[1]
    edges = np.full((count, width + 1), -1, dtype=np.int64)  # -1 behind the end of a walk
    edges[:, 0] = table.initial
    state = np.zeros(count, dtype=np.int64)
    going = np.ones(count, dtype=np.bool_)  # not over yet
    in_part = np.ones(count, dtype=np.bool_)  # has spelt only bits of the part's number
    hashes = np.zeros(count, dtype=np.uint64)
    bits, spelt = parts.bit_length() - 1, np.zeros(count, dtype=np.int64)  # to spell in all, spelt so far
    for step in range(width):
        degree = table.first_edge[state + 1] - table.first_edge[state]
        going &= (degree > 0) & (step < lengths)
        # An aimed walk takes the edges of its path first; where the path is over, its steps are free.
        # A walk that is over takes -1.
        edge = np.where(going, np.where(forced[:, step] >= 0, forced[:, step], _free(table, state, rng)), -1)
        # A state with one edge leaves no choice, so its step must not spell: else whole parts would be empty.
        spells = going & (degree > 1) & (spelt < bits)
        if spells.any():
            # The bit that each walk must spell next: the lowest of the part's number first.
            bit = (part >> spelt) & 1
            # Free steps that would spell the other bit are drawn again.
            for _ in range(REDRAWN):
                again = np.flatnonzero(spells & (forced[:, step] < 0) & (_spelling(_mixed(hashes, edge)) & 1 != bit))
                edge[again] = _free(table, state[again], rng)
            in_part &= ~spells | (_spelling(_mixed(hashes, edge)) & 1 == bit)
            spelt += spells
        edges[:, step + 1] = edge
        state = np.where(going, table.target[edge], state)
        hashes = _mixed(hashes, edge)
    # Bits that a short walk could not spell are those of its last hash.
    in_part &= (_spelling(hashes) ^ (part >> spelt)) & ((1 << (bits - spelt)) - 1) == 0
    return Walks(edges[edges >= 0], np.count_nonzero(edges >= 0, axis=1).astype(np.int64), hashes).only(in_part)


def _free(table: EdgeTable, state: Ints, rng: np.random.Generator) -> Ints:
    """Draw an edge out of each state, each as likely as the others."""
    first_edge = table.first_edge[state]
    degree = (table.first_edge[state + 1] - first_edge).astype(np.uint64)
    number = rng.integers(0, 2**32, size=len(state), dtype=np.uint64)
    # A random number below `degree`: the fraction number / 2**32 of it.
    return first_edge + ((number * degree) >> np.uint64(32)).astype(np.int64)


def _spelling(hashes: Hashes) -> Ints:
    """Return the upper bits of hashes, of which the lowest ones spell the number of a part (rule 4)."""
    return (hashes >> SPELT).astype(np.int64)


class SeenHashes:
    """The hashes met so far, in sorted runs; runs of similar length are merged, so a lookup searches few of them."""

    def __init__(self) -> None:
        """Begin with no hashes; the longest run comes first."""
        self._runs: list[Hashes] = []

    def add(self, hashes: Hashes) -> Flags:
        """Add `hashes`; return which of them are new, with only the first of equal ones."""
        new = np.zeros(len(hashes), dtype=np.bool_)
        # The distinct hashes, sorted, and where each occurs first.
        values, first = np.unique(hashes, return_index=True)
        new[first] = True
        for run in self._runs:
            # Where each value would be inserted: it is there already if it is in the run. Behind the end it is not.
            place = np.searchsorted(run, values)
            is_in_run = run[np.minimum(place, len(run) - 1)] == values
            new[first[is_in_run]] = False
        added = np.sort(hashes[new])
        # Merged like a binary counter: each hash is sorted again a logarithmic number of times.
        while len(added) and self._runs and len(self._runs[-1]) <= 2 * len(added):
            added = np.sort(np.concatenate((self._runs.pop(), added)))
        if len(added):
            self._runs.append(added)
        return new


def _chunks(table: EdgeTable, steps: int, seed: int, part: int, parts: int) -> Iterator[Walks]:
    """Yield chunks of walks of a part without an end; the aims go on from chunk to chunk."""
    chunk = 0
    while True:
        # Half the walks of a chunk are aimed, each at the next edge.
        rng, first_aim = np.random.default_rng((seed, part, chunk)), chunk * CHUNK // 2
        yield draw(table, CHUNK, steps, rng, first_aim, part, parts)
        chunk += 1


def _aims(table: EdgeTable, count: int, steps: int, first_aim: int) -> tuple[Ints, Ints]:
    """Return the edges that `count` walks must take, [walk, step], -1 where a step is free, and how many steps each may
    have.

    The walks of odd number are aimed, at the edges from `first_aim` on, one each.
    """
    walks = np.arange(1, count, 2)
    # The edge each is aimed at, and the length of a shortest path to where that begins.
    aims = (first_aim + np.arange(len(walks))) % len(table.target)
    state = table.source[aims]
    depth = table.depth[state]
    # An aimed walk is as long as its path, the edge and TAIL free steps, if that is longer.
    lengths = np.full(count, steps, dtype=np.int64)
    lengths[walks] = np.maximum(steps, depth + 1 + TAIL)
    forced = np.full((count, int(lengths.max())), -1, dtype=np.int64)
    forced[walks, depth] = aims
    # Backwards from each aim along the shortest path, one step of all walks at a time.
    while (depth > 0).any():
        left = depth > 0
        walks, state, depth = walks[left], state[left], depth[left] - 1
        forced[walks, depth] = table.parent[state]
        state = table.source[table.parent[state]]
    return forced, lengths


def _mixed(hashes: Hashes, edge: Ints) -> Hashes:
    """Mix an edge into each hash: one round of splitmix64."""
    mixed = (hashes + edge.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x632BE59BD9B4E019)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return mixed ^ (mixed >> np.uint64(32))

"""A labelled state graph as arrays: the edges that leave a state, and the event rows of an edge.

Rules of this file

1. Edges are sorted by source: those of state s are `first_edge[s]` to `first_edge[s + 1]`, sorted by their labels. So walks
   do not depend on the order in which the graph was found.
2. Most edges share their events with others. `rows` holds each distinct event once; `row_of` gives, edge by edge, the
   rows of its events. A few thousand distinct rows stay in the processor's cache while millions are gathered.
3. `parent` is the last edge of a shortest path from the initial state, `depth` the length of that path: a walk can be aimed
   at any edge.
4. The last edge is a pseudo edge of the initial state: its rows are the initial events.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegauge.traces.columns import Columns, Distinct, Ints, ranges, to_columns, with_starts
from tidegauge.traces.from_model.behaviour import config_for, events_of_step, initial_events
from tidegauge.traces.from_model.views import Label, View
from tidegauge.traces.schema import Config, Event, Trace


@dataclass(frozen=True)
class EdgeTable:
    """A graph ready to be walked. `label_of` and `labels` give the label of an edge."""

    config: Config
    first_edge: Ints
    source: Ints
    target: Ints
    parent: Ints
    depth: Ints
    label_of: Ints
    labels: Sequence[Label]
    first_row: Ints
    row_of: Ints
    rows: Columns

    @property
    def initial(self) -> int:
        """The pseudo edge of the initial state."""
        return len(self.target)

    def distinct(self, edges: Ints, lengths: Ints) -> Distinct:
        """Return the traces whose edges are concatenated in `edges`, `lengths[t]` of them in trace t."""
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
    """Compute the events of every edge once.

    `edges` are (source, index of the label, target); states[0] is initial. TLC's graph and the explorer's both fit.
    """
    # By label, not by its number: numbers depend on the order in which the graph was found (rule 1).
    rank = {label: place for place, label in enumerate(sorted(range(len(labels)), key=labels.__getitem__))}
    ordered = np.array(sorted(edges, key=lambda edge: (edge[0], rank[edge[1]], edge[2])), dtype=np.int64).reshape(-1, 3)
    rows: dict[Hashable, int] = {}
    events: list[Event] = []
    first_row, row_of = [0], []

    def add(reported: Iterable[Event]) -> None:
        for event in reported:
            # The same event is a step of thousands of edges, and one row of the table.
            key = (event.node, event.event, tuple(event.fields.items()))
            row = rows.setdefault(key, len(events))
            if row == len(events):
                events.append(event)
            row_of.append(row)
        first_row.append(len(row_of))

    for src, label, dst in ordered.tolist():
        add(events_of_step(states[src], labels[label], states[dst], profile))
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
        rows=to_columns([Trace("", "", config, tuple(events))], config),
    )


def _shortest_paths(first_edge: Ints, target: Ints) -> tuple[Ints, Ints]:
    """Return for each state the last edge of a shortest path to it (-1 for the initial state) and its length."""
    parent = np.full(len(first_edge) - 1, -1, dtype=np.int64)
    depth = np.full(len(first_edge) - 1, -1, dtype=np.int64)
    depth[0] = 0
    frontier = np.zeros(1, dtype=np.int64)
    while len(frontier):
        edges = ranges(first_edge[frontier], first_edge[frontier + 1] - first_edge[frontier])
        edges = edges[depth[target[edges]] < 0]
        # Breadth first, a whole level at a time: the first edge that reaches a state ends a shortest path to it.
        reached, first = np.unique(target[edges], return_index=True)
        parent[reached] = edges[first]
        depth[reached] = depth[frontier[0]] + 1
        frontier = reached
    return parent, depth


def path_of(table: EdgeTable, edges: Sequence[int]) -> list[Any]:
    """Return the labels of a walk, to replay it."""
    return [table.labels[table.label_of[edge]] for edge in edges if edge != table.initial]

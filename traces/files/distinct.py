"""Traces whose events recur, as one table of different events and the place of each event in it.

Interleavings of a model consist of a few hundred different events, however many millions they are. Then one number per
event says everything: it is read in a fraction of the time its columns take, and the table stays in the processor's cache
while a judge looks events up in it.

Rules of this file

1. `Distinct.table` is Columns with one row per different event. Only its trace_starts are not about itself: they count
   positions in `rows`, as the traces of the expanded columns do.
2. `expanded()` gives the plain Columns, equal in every value: whoever does not care need not know.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tidegauge.traces.columns import INT_FIELDS, Columns, Ints


@dataclass(frozen=True)
class Distinct:
    """Event i of the traces is row rows[i] of the table; `missing` as in Columns, event by event."""

    table: Columns
    rows: Ints
    missing: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.rows)

    def expanded(self) -> Columns:
        """One row per event."""
        table, rows = self.table, self.rows
        counts = np.diff(table.epochs_at)
        longer = rows[counts[rows] > 0]
        at = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(counts[rows], out=at[1:])
        return Columns(
            trace_starts=table.trace_starts,
            event=table.event[rows],
            node=table.node[rows],
            ints={name: column[rows] for name, column in table.ints.items()},
            epochs_reported=table.epochs_reported[rows],
            epochs_at=at,
            epochs=table.epochs.reshape(-1, 2)[ranges(table.epochs_at[longer], counts[longer])].ravel(),
            missing=self.missing,
        )


def table_of(given: Columns | Distinct) -> tuple[Columns, Ints | None]:
    """Where the events stand, and which row of it each of them is; None where they stand one after the other."""
    return (given.table, given.rows) if isinstance(given, Distinct) else (given, None)


def with_starts(table: Columns, starts: Ints) -> Columns:
    """The table as that of other traces."""
    return replace(table, trace_starts=starts)


def ranges(first: Ints, counts: Ints) -> Ints:
    """The numbers first[0], first[0]+1, ... (counts[0] of them), then those from first[1] on, and so forth."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    numbers: Ints = np.arange(total, dtype=np.int64) + np.repeat(first - (ends - counts), counts)
    return numbers


def table_as_json(table: Columns) -> dict[str, Any]:
    """The different events, column by column; `epochs` lists pairs, null where the event does not tell them."""
    pairs = table.epochs.reshape(-1, 2).tolist()
    at = table.epochs_at.tolist()
    epochs = [pairs[at[i] : at[i + 1]] if reported else None for i, reported in enumerate(table.epochs_reported.tolist())]
    ints = {name: column.tolist() for name, column in table.ints.items()}
    return {"event": table.event.tolist(), "node": table.node.tolist(), **ints, "epochs": epochs}


def table_from_json(said: Mapping[str, Any]) -> Columns:
    """The table in `said`. Raises ValueError, TypeError or KeyError when it holds none."""
    event, epochs = np.array(said["event"], dtype=np.int64), said["epochs"]
    ints = {name: np.array(said[name], dtype=np.int64) for name in INT_FIELDS if name in said}
    node = np.array(said["node"], dtype=np.int64)
    if event.ndim != 1 or any(column.shape != event.shape for column in (node, *ints.values())) or len(epochs) != len(event):
        raise ValueError("columns of different lengths")
    return Columns(
        trace_starts=np.zeros(1, dtype=np.int64),
        event=event,
        node=node,
        ints=ints,
        epochs_reported=np.array([pairs is not None for pairs in epochs], dtype=np.bool_),
        epochs_at=np.cumsum([0, *(len(pairs or ()) for pairs in epochs)], dtype=np.int64),
        epochs=np.array([pair for pairs in epochs for pair in pairs or ()], dtype=np.int64).reshape(-1, 2).ravel(),
    )

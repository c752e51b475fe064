"""Traces whose events recur, as one table of distinct events and the row of each event.

Millions of interleavings of a model consist of a few hundred distinct events. One number per event is read in a fraction of
the time of its columns, and the table stays in the processor's cache while the judge looks events up in it.

Rules of this file

1. `Distinct.table` is Columns with one row per distinct event, except for its trace_starts: they are positions in `rows`, as
   those of the expanded columns are.
2. `expanded()` gives the plain Columns, equal in every value.
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
        """Return columns with one row per event."""
        table, rows = self.table, self.rows
        counts = np.diff(table.epochs_at)
        # Most events have no epoch cache: pairs are gathered for those that have one.
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


def table_of(stored: Columns | Distinct) -> tuple[Columns, Ints | None]:
    """Return the table of the events, and the row of each event; None if row i is event i."""
    return (stored.table, stored.rows) if isinstance(stored, Distinct) else (stored, None)


def with_starts(table: Columns, starts: Ints) -> Columns:
    """Return the table with other starts of traces."""
    return replace(table, trace_starts=starts)


def ranges(first: Ints, counts: Ints) -> Ints:
    """Return the numbers first[0], first[0]+1, ... (counts[0] of them), then those from first[1] on, and so forth."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    numbers: Ints = np.arange(total, dtype=np.int64) + np.repeat(first - (ends - counts), counts)
    return numbers


def table_as_json(table: Columns) -> dict[str, Any]:
    """Return the distinct events, column by column; `epochs` lists pairs, null where the event has none."""
    pairs = table.epochs.reshape(-1, 2).tolist()
    at = table.epochs_at.tolist()
    epochs = [pairs[at[i] : at[i + 1]] if reported else None for i, reported in enumerate(table.epochs_reported.tolist())]
    ints = {name: column.tolist() for name, column in table.ints.items()}
    return {"event": table.event.tolist(), "node": table.node.tolist(), **ints, "epochs": epochs}


def table_from_json(value: Mapping[str, Any]) -> Columns:
    """Read a table. Raises ValueError, TypeError or KeyError when `value` is none."""
    event, epochs = np.array(value["event"], dtype=np.int64), value["epochs"]
    ints = {name: np.array(value[name], dtype=np.int64) for name in INT_FIELDS if name in value}
    node = np.array(value["node"], dtype=np.int64)
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

"""Runs of the reference for benchmarks: of any length, of as many brokers, as often as it takes.

Rules of this file

1. So few runs are as many steps together at every length. Making them takes longer than judging them, so they are repeated.
2. Logs hold LOG records at most: what the explorer's walker does with longer ones takes time that grows with their square.
   So a short run appends more, and a long one has more elections and restarts.
"""

import numpy as np

from tidegauge.impl.explorer.explore import Bounds
from tidegauge.traces.columns import Columns
from tidegauge.traces.from_model.impl_walks import impl_walks
from tidegauge.traces.schema import Config, Trace

STEPS = 2_500
"""Steps of all runs of a length together."""

LOG = 12
WITHOUT_END = 10**6
"""Leader epochs and crashes that a run may have."""

PROFILE = "repaired"
"""No rule fails in its runs."""


def runs_of(brokers: int, length: int, seed: int) -> tuple[list[Trace], Config]:
    """Runs of so many steps each."""
    bounds = Bounds(brokers, max_log=LOG, max_epoch=WITHOUT_END, max_crashes=WITHOUT_END, max_fetch=4)
    made = list(impl_walks(STEPS // length, bounds=bounds, profile=PROFILE, steps=length, seed=seed))
    return made, made[0].config


def repeated(columns: Columns, times: int) -> Columns:
    """The same traces so many times, one after the other."""
    rows, pairs = len(columns), int(columns.epochs_at[-1])
    return Columns(
        trace_starts=np.concatenate(([0], *(columns.trace_starts[1:] + rows * n for n in range(times)))),
        event=np.tile(columns.event, times),
        node=np.tile(columns.node, times),
        ints={name: np.tile(values, times) for name, values in columns.ints.items()},
        epochs_reported=np.tile(columns.epochs_reported, times),
        epochs_at=np.concatenate(([0], *(columns.epochs_at[1:] + pairs * n for n in range(times)))),
        epochs=np.tile(columns.epochs, times),
    )

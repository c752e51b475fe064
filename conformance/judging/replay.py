"""Replays a trace event by event, with what the judge knows after each: for explanations and for the HTML page.

Rules of this file

1. The kernel itself runs, one row at a time: a snapshot is what the verdict came from.
2. Snapshots are plain data; text and HTML are made from them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegauge.conformance.judging.judge import (
    FAILURES_KEPT,
    PAST,
    ROOM,
    execution,
    frozen,
    frozen_inputs,
    known,
    more_room,
)
from tidegauge.conformance.judging.options import options_of
from tidegauge.conformance.kernel.forks import fork_end, fork_start
from tidegauge.conformance.kernel.state import (
    C_EPOCH,
    C_ISR,
    C_LEADER,
    CACHED,
    EPOCH,
    HW,
    ISR,
    KIND,
    LEADER,
    LEO,
    LOG_START,
    OVERFLOW,
    PARTITION,
    PENDING,
    PIECEWISE,
    REPLICAS,
    ROLE,
    UP,
    State,
    allocate,
    entries,
    epochs_row,
    forget,
    pair,
    starts_row,
)
from tidegauge.traces.columns import Columns
from tidegauge.traces.schema import Config


@dataclass(frozen=True)
class ReplayedReplica:
    """What the judge knows of one replica; None where it does not."""

    up: bool | None
    role: int | None
    epoch: int | None
    leader: int | None
    leo: int | None
    hw: int | None
    log_start: int | None
    epochs: tuple[tuple[int, int], ...] | None
    isr: int | None
    proposed: int | None
    forked: tuple[int, int] = (0, 0)
    """The offsets of which `epochs` does not know the records: first, and one after the last (conformance.kernel.forks)."""

    def epoch_of(self, offset: int) -> int | None:
        """Return the epoch of the record at `offset`; None if the cache does not tell."""
        if self.epochs is None or self.forked[0] <= offset < self.forked[1]:
            return None
        return next((epoch for epoch, start in reversed(self.epochs) if start <= offset), None)

    def holds(self, offset: int, epoch: int | None) -> bool | None:
        """Return whether the record of `epoch` at `offset` is in this log; None if that cannot be known."""
        if self.leo is not None and self.leo <= offset:
            return False
        own = self.epoch_of(offset)
        if self.leo is None or own is None or epoch is None or (self.log_start or 0) > offset:
            return None
        return own == epoch


@dataclass(frozen=True)
class Snapshot:
    """What the judge knows after a row. `flying` are (follower, leader, what) in flight."""

    row: int
    replicas: tuple[ReplayedReplica, ...]
    leader: int | None
    leader_epoch: int | None
    isr: int | None
    flying: tuple[tuple[int, int, int], ...]


def replay(
    columns: Columns, config: Config, trace: int, until: int, keep: int, begun: State | None = None
) -> list[Snapshot]:
    """Return the snapshots after the last `keep` rows of a trace up to and including row `until`, and the one before them.

    `begun` is the judge's table before the first row, if the columns are not the beginning of their trace.
    """
    if begun is not None:
        return _replayed(columns, config, trace, until, keep, begun.copy())
    room, past = ROOM, PAST
    while True:
        options = options_of(columns, config)
        options[PIECEWISE] = 1
        st = allocate(options, room, FAILURES_KEPT, past)
        forget(st, trace)
        snapshots = _replayed(columns, config, trace, until, keep, st)
        if st[PARTITION, OVERFLOW] == 0:
            return snapshots
        room, past = more_room(st)


def _replayed(columns: Columns, config: Config, trace: int, until: int, keep: int, st: State) -> list[Snapshot]:
    first = int(columns.trace_starts[trace])
    inputs = frozen_inputs(columns, None, columns.missing)[:-1]
    nothing = np.zeros((0, 0, 0), np.int64), np.zeros((0, 0, 0, 0), np.int64)
    begin = max(first, until + 1 - keep)
    run: Any = execution(until + 1 - first)
    run(st, *inputs, frozen(np.array([first, begin])), *nothing)
    out = [_snapshot(st, begin - 1, len(config.nodes))]
    for row in range(begin, until + 1):
        run(st, *inputs, frozen(np.array([row, row + 1])), *nothing)
        out.append(_snapshot(st, row, len(config.nodes)))
    return out


def _snapshot(st: State, row: int, brokers: int) -> Snapshot:
    return Snapshot(
        row,
        tuple(replica_of(st, b) for b in range(brokers)),
        known(st[PARTITION, C_LEADER]),
        known(st[PARTITION, C_EPOCH]),
        known(st[PARTITION, C_ISR]),
        tuple(_flying(st, brokers)),
    )


def _flying(st: State, brokers: int) -> Iterator[tuple[int, int, int]]:
    for follower in range(brokers):
        for leader in range(brokers):
            kind = int(st[pair(st, follower, leader), KIND])
            if follower != leader and kind > 0:
                yield follower, leader, kind


def replica_of(st: State, b: int) -> ReplayedReplica:
    """Return what a table knows of replica b."""
    row = st[REPLICAS + b]
    up, cached = known(row[UP]), known(row[CACHED])
    epochs = None
    if cached is not None:
        epochs = tuple(
            (int(epoch), int(start))
            for epoch, start in zip(
                entries(st, epochs_row(st, b), cached), entries(st, starts_row(st, b), cached), strict=True
            )
        )
    return ReplayedReplica(
        up=None if up is None else up == 1,
        role=known(row[ROLE]),
        epoch=known(row[EPOCH]),
        leader=known(row[LEADER]),
        leo=known(row[LEO]),
        hw=known(row[HW]),
        log_start=known(row[LOG_START]),
        epochs=epochs,
        isr=known(row[ISR]),
        proposed=known(row[PENDING]),
        forked=(fork_start(st, b), fork_end(st, b)),
    )

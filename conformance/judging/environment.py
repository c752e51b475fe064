"""Disks that were lost: reported as such, since no broker did it and no rule is about it."""

from collections.abc import Iterable, Iterator

import numpy as np

from tidegauge.conformance.kernel.fields import LOSE_DISK
from tidegauge.traces.columns import Columns
from tidegauge.traces.files.distinct import Distinct, table_of
from tidegauge.traces.schema import Config, Trace

LostDisk = tuple[int, str]
"""The node that lost its disk, and where that was read."""


def lost_disks(
    stored: Columns | Distinct, config: Config, traces: tuple[Trace, ...] | None, source: str
) -> Iterator[LostDisk]:
    """Yield the node and the place of each LoseDisk event, one per replica."""
    events = None if traces is None else [event for trace in traces for event in trace.events]
    nodes = [*config.nodes, *([] if config.controller is None else [config.controller])]
    table, rows = table_of(stored)
    lost = table.event == LOSE_DISK
    if not lost.any():
        return
    for row in np.flatnonzero(lost if rows is None else lost[rows]).tolist():
        at = source if events is None else events[row].at
        yield nodes[int(table.node[row if rows is None else rows[row]])], at or source


def lost_disk_notes(lost: Iterable[LostDisk]) -> Iterator[str]:
    """Yield a note per node."""
    by_node: dict[int, list[str]] = {}
    for node, at in lost:
        by_node.setdefault(node, []).append(at)
    for node, places in sorted(by_node.items()):
        replicas = "1 replica" if len(places) == 1 else f"{len(places):,} replicas"
        yield f"node {node} lost its disk ({replicas}, {places[0]}): no rule is broken by that, only by what follows from it"

"""How much of what happened the logs of a capture cover: which nodes, which time, and what is missing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tidegauge.traces.kafka.lines.lines import clock
from tidegauge.traces.kafka.nodes.gaps import Gap
from tidegauge.traces.kafka.nodes.node import Node

GAPS_SHOWN = 3
"""Gaps of one logger at one node that are listed; the others are counted."""


@dataclass(frozen=True, slots=True)
class NodeCoverage:
    """The times of the first and last line of a node; `share` of the time between lies in no gap. 0: it is not judged."""

    node: int
    first: str
    last: str
    share: float

    def __str__(self) -> str:
        return f"node {self.node} {self.first[11:19]} to {self.last[11:19]}, {self.share:.0%}"


def node_coverage(nodes: Sequence[Node], gaps: Sequence[Gap]) -> tuple[NodeCoverage, ...]:
    """Return the coverage of each node that has lines."""
    found = []
    for node in nodes:
        if node.lines:
            first, last = min(line.time for line in node.lines), max(line.time for line in node.lines)
            inside = [_clipped(gap, first, last) for gap in gaps if gap.node == node.id]
            share = 0.0 if node.silenced else 1 - _union(inside) / max(1, last - first)
            found.append(NodeCoverage(node.id, clock(first), clock(last), share))
    return tuple(found)


def missing(nodes: Sequence[Node], controller: Node | None, gaps: Sequence[Gap], brokers: Iterable[int]) -> tuple[str, ...]:
    """List what would have to be added for a verdict on everything that happened; empty if the logs are complete."""
    said: list[str] = []
    logged = {node.id for node in nodes if node.broker.replicas and not node.silenced}
    silenced = {node.id for node in nodes if node.silenced}
    if controller is None:
        said.append("the log of the controller (org.apache.kafka.controller at DEBUG): who was elected, and from which ISR")
    elif controller.silenced_controller:
        said.append(f"changes of partitions in the log of the controller, node {controller.id}")
    absent = sorted(set(brokers) - logged - silenced)
    said += [f"the logs of node {node}: nothing it did is known" for node in absent]
    said += [f"loggers of node {node} were off (see the problems): it is not judged" for node in sorted(silenced)]
    by: dict[tuple[int, str], list[Gap]] = {}
    for gap in dict.fromkeys(gaps):
        by.setdefault((gap.node, gap.logger), []).append(gap)
    for of_logger in by.values():
        said += [str(gap) for gap in of_logger[:GAPS_SHOWN]]
        if len(of_logger) > GAPS_SHOWN:
            gap = of_logger[0]
            said.append(f"{gap.logger} of node {gap.node}: {len(of_logger) - GAPS_SHOWN:,} more gaps")
    return tuple(said)


def _clipped(gap: Gap, first: int, last: int) -> tuple[int, int]:
    begin, end = gap.times
    return (first if begin is None else max(first, begin), last if end is None else min(last, end))


def _union(spans: Iterable[tuple[int, int]]) -> int:
    total, at = 0, -1
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, at))
        at = max(at, end)
    return total

"""Several nodes in one order, by causality.

Rules of this file

1. Known order (happened before): the steps of one node in the order of its logs; a fetch is sent before it is handled, and
   answered before its response is handled; a registration is changed before a broker acts on it; a proposal is made before
   the controller judges it.
2. What this order leaves open is ordered by time and then by node, only so that the same logs always give the same trace:
   clocks of different nodes prove nothing.
3. If the known order contradicts itself (a request put at a wrong place by its node's clock), the tie that cannot be kept
   is dropped and counted.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from tidegauge.traces.kafka_logs.nodes.steps import LoggedStep

COMMITS = frozenset({"HandleFetch", "BecomeLeader", "LeaderAppend", "ProduceAck", "Read", "HandleAlterPartitionResponse"})
LOSSES = frozenset(
    {"BecomeLeader", "HandleDivergingResponse", "HandleOutOfRange", "TruncateToHighWatermark", "Start", "Crash"}
)


@dataclass(frozen=True)
class Merged:
    """The steps in one order. `ties` connect two nodes, `dropped` of them contradict the others.

    `concurrent` counts pairs of steps of two nodes in no known order, of which one commits and the other may lose records.
    """

    steps: tuple[LoggedStep, ...]
    ties: int
    dropped: int
    concurrent: int


def merge(steps: Sequence[LoggedStep]) -> Merged:
    """Put the steps of one topic-partition in one order."""
    chains: dict[int, list[LoggedStep]] = defaultdict(list)
    for step in sorted(steps, key=lambda one: one.place):
        chains[step.node].append(step)
    provides: dict[Hashable, list[LoggedStep]] = defaultdict(list)
    for chain in chains.values():
        for step in chain:
            for key in step.provides:
                provides[key].append(step)
    before: dict[int, list[LoggedStep]] = {}
    after: dict[int, list[LoggedStep]] = defaultdict(list)
    missing: dict[int, int] = {}
    ties = 0
    for chain in chains.values():
        for position, step in enumerate(chain):
            causes = [cause for key in step.depends_on for cause in provides[key] if cause is not step]
            ties += len(causes)
            # The order of one node is known: each step comes after the one before it in its logs.
            if position:
                causes.append(chain[position - 1])
            before[id(step)] = causes
            missing[id(step)] = len(causes)
            for cause in causes:
                after[id(cause)].append(step)
    order, dropped = _order(chains, before, after, missing)
    return Merged(tuple(order), ties, dropped, _concurrent(order, before, sorted(chains)))


def _order(
    chains: dict[int, list[LoggedStep]],
    before: dict[int, list[LoggedStep]],
    after: dict[int, list[LoggedStep]],
    missing: dict[int, int],
) -> tuple[list[LoggedStep], int]:
    """Sort topologically, the earliest step first; return the order, and how many cycles were broken."""
    rank = {id(step): (step.time, step.node, position) for chain in chains.values() for position, step in enumerate(chain)}
    heap = [(rank[id(step)], step) for chain in chains.values() for step in chain if missing[id(step)] == 0]
    heapq.heapify(heap)
    done: set[int] = set()
    order: list[LoggedStep] = []
    dropped = 0
    heads = dict.fromkeys(chains, 0)
    while len(order) < len(rank):
        if not heap:
            # A cycle: every step that is left waits for another. Release the earliest head of a node's chain, and forget
            # which causes it still waits for; the chains themselves stay in order.
            dropped += 1
            stuck = min(
                (chain[heads[node]] for node, chain in chains.items() if heads[node] < len(chain)), key=lambda s: rank[id(s)]
            )
            before[id(stuck)] = [cause for cause in before[id(stuck)] if id(cause) in done]
            heapq.heappush(heap, (rank[id(stuck)], stuck))
        _, step = heapq.heappop(heap)
        # A step that was released from a cycle is pushed once more when its last cause is done.
        if id(step) in done:
            continue
        done.add(id(step))
        order.append(step)
        heads[step.node] += 1
        for following in after[id(step)]:
            missing[id(following)] -= 1
            if missing[id(following)] == 0 and id(following) not in done:
                heapq.heappush(heap, (rank[id(following)], following))
    return order, dropped


def _concurrent(order: Sequence[LoggedStep], before: dict[int, list[LoggedStep]], nodes: Sequence[int]) -> int:
    """Count concurrent pairs by vector clocks: a happened before b iff b's clock has as much of a's node as a itself."""
    column = {node: index for index, node in enumerate(nodes)}
    seen: dict[int, list[int]] = {}
    counts = [0] * len(nodes)
    for step in order:
        clock = [0] * len(nodes)
        for cause in before[id(step)]:
            clock = [max(pair) for pair in zip(clock, seen[id(cause)], strict=True)]
        counts[column[step.node]] += 1
        clock[column[step.node]] = counts[column[step.node]]
        seen[id(step)] = clock
    commits: dict[int, list[list[int]]] = defaultdict(list)
    for step in order:
        # A client has seen the record: it is committed for good, whether or not the step raised a high watermark.
        reported = step.name in ("ProduceAck", "Read")
        if reported or (step.name in COMMITS and step.fields.get("hw") != step.fields.get("hw_before")):
            commits[step.node].append(seen[id(step)])
    concurrent = 0
    for step in order:
        if step.name in LOSSES:
            clock, own = seen[id(step)], column[step.node]
            for node, clocks in commits.items():
                if node != step.node:
                    # Along a node its own count and what it has seen of others only grow, so both ends are found by
                    # bisection: commits that this step has seen, and commits that have seen this step.
                    before_it = bisect_right(clocks, clock[column[node]], key=itemgetter(column[node]))
                    after_it = bisect_left(clocks, clock[own], key=itemgetter(own))
                    concurrent += max(0, after_it - before_it)
    return concurrent


# How far the clock of one node may be ahead of another's, bounded by their own lines.
#
# 1. No clock is trusted. A step of one node that is known to come before one of another (a fetch is sent before it is
#    handled) bounds how far the second clock may be ahead of the first: by the difference of their times.
# 2. Clocks drift: by 500 ppm while one is being adjusted (adjtime). So only the last WINDOW of each log is used, and SLACK
#    is larger than the drift in that time. A clock that is set by a jump in that time is not noticed.
# 3. Of two bounds that contradict each other (a request matched with the wrong line) the weaker one counts.


TIES = frozenset({"sent", "answered", "metadata", "proposal"})
"""The ties whose two steps have the times of their lines. The end of a process has not: it comes after all its steps."""
SLACK = 100_000
"""Microseconds: the line of a request is written while its response is on its way, or was handled already."""
WINDOW = 100_000_000
"""Microseconds before the last step of a node."""


def ahead(steps: Iterable[LoggedStep]) -> Mapping[tuple[int, int], int]:
    """Return, by two nodes, how many microseconds the clock of the second is ahead of the first's at most, where known."""
    provides: dict[Hashable, list[LoggedStep]] = {}
    depending: list[tuple[LoggedStep, Hashable]] = []
    for step in _latest(steps):
        for key in filter(_ties, step.provides):
            provides.setdefault(key, []).append(step)
        depending += [(step, key) for key in filter(_ties, step.depends_on)]
    bounds: dict[tuple[int, int], int] = {}
    for later, key in depending:
        for earlier in provides.get(key, ()):
            _add(bounds, (earlier.node, later.node), later.time - earlier.time)
    nodes = sorted({node for pair in bounds for node in pair})
    for between in nodes:  # bounds by way of a third node
        for first in nodes:
            for second in nodes:
                if (first, between) in bounds and (between, second) in bounds:
                    _add(bounds, (first, second), bounds[first, between] + bounds[between, second])
    return {
        (first, second): max(bound, -bounds[second, first]) + SLACK
        for (first, second), bound in bounds.items()
        if (second, first) in bounds
    }


def _latest(steps: Iterable[LoggedStep]) -> Iterator[LoggedStep]:
    """Return the steps in the last WINDOW of their node."""
    steps = list(steps)
    ends: dict[int, int] = {}
    for step in steps:
        ends[step.node] = max(step.time, ends.get(step.node, step.time))
    return (step for step in steps if step.time >= ends[step.node] - WINDOW)


def _ties(key: Hashable) -> bool:
    return isinstance(key, tuple) and key[0] in TIES


def _add(bounds: dict[tuple[int, int], int], pair: tuple[int, int], bound: int) -> None:
    if pair[0] != pair[1]:
        bounds[pair] = min(bound, bounds.get(pair, bound))

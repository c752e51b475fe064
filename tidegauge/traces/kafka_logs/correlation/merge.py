"""Put the steps of several nodes on one partition in one order, by causality (happened before).

A step has keys that it `provides` and keys that it `depends_on`: it comes after every step that provides one of those. Two
steps so connected are a *tie*; the one that comes first is the *cause* of the other.

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
from operator import attrgetter, itemgetter

from tidegauge.traces.kafka_logs.nodes.logged_broker import LoggedStep

COMMITS = frozenset({"HandleFetch", "BecomeLeader", "LeaderAppend", "ProduceAck", "Read", "HandleAlterPartitionResponse"})
OBSERVED_COMMITS = ("ProduceAck", "Read")
"""Steps that show a client that a record is committed."""
SOME = 64
"""Steps between two checks whether the rest of the order can be left out."""
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
    """Put the steps of all nodes on one topic-partition in one order, that of happened before (rules 1 to 3)."""
    # Steps are numbered node by node, each node's in the order of its logs: there each comes after the one before it.
    numbered = sorted(steps, key=attrgetter("node", "place"))
    provides: dict[Hashable, list[int]] = {key: [] for step in numbered for key in step.depends_on}
    for number, step in enumerate(numbered):
        for key in step.provides:
            if key in provides:
                provides[key].append(number)
    causes: dict[int, list[int]] = {}
    ties = 0
    for number, step in enumerate(numbered):
        if step.depends_on:
            providers = [provider for key in step.depends_on for provider in provides[key] if provider != number]
            if providers:
                # Of a node the last one comes after all others (the end of a process depends on all its requests).
                last_of_node = {numbered[provider].node: provider for provider in sorted(providers)}
                causes[number] = providers if len(providers) == 1 else [*last_of_node.values()]
                ties += len(providers)
    order, dropped = _topological_order(numbered, causes, provides)
    return Merged(tuple(map(numbered.__getitem__, order)), ties, dropped, _concurrent(numbered, order, causes))


def _topological_order(
    numbered: Sequence[LoggedStep], causes: dict[int, list[int]], provides: Mapping[Hashable, Sequence[int]]
) -> tuple[list[int], int]:
    """Sort topologically, the earliest of the steps that may come next first; return the order, and the number of cycles.

    `numbered` are the steps node by node, each node's in order. `causes` has, by number, the steps that must come before a
    step; of a step that was released from a cycle only those stay that do. `provides` has the numbers of the steps that
    provide a key.
    """
    # The numbers of a node's steps are begins[node] .. ends[node] - 1; nodes count from 0 here.
    begins = [at for at, step in enumerate(numbered) if not at or step.node != numbered[at - 1].node]
    ends = [*begins[1:], len(numbered)]
    node_of = [at for at, (begin, end) in enumerate(zip(begins, ends, strict=True)) for _ in range(begin, end)]
    # Only the heads of the nodes can be next. `waits` counts the causes of a step that are to come, `after` has who waits.
    waits = {number: len(own_causes) for number, own_causes in causes.items()}
    after: dict[int, list[int]] = {}
    for number, own_causes in causes.items():
        for cause in own_causes:
            after.setdefault(cause, []).append(number)
    heads = list(begins)
    heap = [(numbered[head].time, head) for head in heads if head not in waits]
    heapq.heapify(heap)
    order: list[int] = []
    done = bytearray(len(numbered))
    dropped = 0
    times = [step.time for step in numbered]
    while len(order) < len(numbered):
        if not heap:
            # A cycle: every step that is left waits for another. Release the earliest head, and forget which causes it still
            # waits for; the logs themselves stay in order.
            dropped += 1
            stuck = min((head for head, end in zip(heads, ends, strict=True) if head < end), key=times.__getitem__)
            causes[stuck] = [cause for key in numbered[stuck].depends_on for cause in provides[key] if done[cause]]
            waits.pop(stuck)
            heap.append((times[stuck], stuck))
        number = heap[0][1]
        done[number] = True
        order.append(number)
        at = node_of[number]
        heads[at] = following = number + 1
        if following < ends[at] and following not in waits:
            heapq.heapreplace(heap, (times[following], following))
        else:
            heapq.heappop(heap)
        if number in after:
            for waiting in after[number]:
                # Not in `waits`: it was released from a cycle.
                if waiting in waits:
                    waits[waiting] -= 1
                    if not waits[waiting]:
                        del waits[waiting]
                        if waiting in heads:
                            heapq.heappush(heap, (times[waiting], waiting))
    return order, dropped


def _concurrent(numbered: Sequence[LoggedStep], order: Sequence[int], causes: Mapping[int, Sequence[int]]) -> int:
    """Count pairs of a loss and a commit on different nodes that are concurrent: neither happened before the other.

    By vector clocks: a happened before b iff b's clock has as much of a's node as a itself. A commit is a step that raises
    the high watermark, or shows a client that a record is committed; a loss is one that may lose records. `order` has the
    numbers of the steps, `causes` by number those of the steps before each.
    """
    column = {node: index for index, node in enumerate(sorted({step.node for step in numbered}))}
    # By column, the vector clock of the node now; it is changed in place.
    clocks_now = [[0] * len(column) for _ in column]
    # The clock of each step that is a cause of another.
    all_causes = {cause for own_causes in causes.values() for cause in own_causes}
    clock_of: dict[int, tuple[int, ...]] = {}
    # The clocks of commits, by node; and each loss's node and clock.
    commits: dict[int, list[list[int]]] = defaultdict(list)
    losses: list[tuple[int, list[int]]] = []
    losses_to_come = sum(1 for step in numbered if step.name in LOSSES)
    committing = [
        clocks_now[own]
        for own in {column[step.node] for step in numbered if step.name in COMMITS or step.name in OBSERVED_COMMITS}
    ]
    for at, number in enumerate(order):
        # When every node that commits has seen all losses, whatever follows comes after them.
        if (
            not losses_to_come
            and at % SOME == 0
            and all(clock[column[node]] >= loss[column[node]] for node, loss in losses for clock in committing)
        ):
            break
        step = numbered[number]
        own = column[step.node]
        clock = clocks_now[own]
        if number in causes:
            for cause in causes[number]:
                clock[:] = map(max, clock, clock_of[cause])
        clock[own] += 1
        if number in all_causes:
            clock_of[number] = tuple(clock)
        # A client has seen the record: it is committed for good, whether or not the step raised a high watermark.
        if step.name in OBSERVED_COMMITS or (step.name in COMMITS and step.fields.get("hw") != step.fields.get("hw_before")):
            commits[step.node].append(list(clock))
        if step.name in LOSSES:
            losses.append((step.node, list(clock)))
            losses_to_come -= 1
    concurrent = 0
    for losing_node, clock in losses:
        for node, clocks in commits.items():
            if node != losing_node:
                # Along a node its own count and what it has seen of others only grow, so both ends are found by bisection:
                # how many commits the loss has seen, and how many have not seen the loss. Those between are concurrent.
                before_loss = bisect_right(clocks, clock[column[node]], key=itemgetter(column[node]))
                first_after_loss = bisect_left(clocks, clock[column[losing_node]], key=itemgetter(column[losing_node]))
                concurrent += max(0, first_after_loss - before_loss)
    return concurrent


# How far the clock of one node may be ahead of another's, bounded by their own lines.
#
# 1. No clock is trusted. A step of one node that is known to come before one of another (a fetch is sent before it is
#    handled) bounds how far the second clock may be ahead of the first: by the difference of their times.
# 2. Clocks drift: by 500 ppm while one is being adjusted (adjtime). So only the last WINDOW of each log is used, and
#    SLACK_MICROSECONDS is larger than the drift in that time. A clock that is set by a jump in that time is not noticed.
# 3. Of two bounds that contradict each other (a request matched with the wrong line) the weaker one counts.


TIMED_TIES = frozenset({"sent", "answered", "metadata", "proposal"})
"""The kinds of keys whose two steps have the times of their lines. The end of a process has not: it comes after all."""
SLACK_MICROSECONDS = 100_000
"""Microseconds: the line of a request is written while its response is on its way, or was handled already."""
WINDOW = 100_000_000
"""Microseconds before the last step of a node."""


def ahead(steps: Iterable[LoggedStep]) -> Mapping[tuple[int, int], int]:
    """Return, by two nodes, how many microseconds the clock of the second is ahead of the first's at most, where known.

    A message cannot arrive before it was sent: each bounds the difference from one side, and a message back from the other.
    A pair of nodes needs both.
    """
    provides: dict[Hashable, list[LoggedStep]] = {}
    depending: list[tuple[LoggedStep, Hashable]] = []
    for step in _in_last_window(steps):
        for key in filter(_is_timed, step.provides):
            provides.setdefault(key, []).append(step)
        depending += [(step, key) for key in filter(_is_timed, step.depends_on)]
    bounds: dict[tuple[int, int], int] = {}
    for later, key in depending:
        for earlier in provides.get(key, ()):
            _tighten(bounds, (earlier.node, later.node), later.time - earlier.time)
    nodes = sorted({node for pair in bounds for node in pair})
    for between in nodes:  # bounds by way of other nodes (Floyd-Warshall)
        for first in nodes:
            for second in nodes:
                if (first, between) in bounds and (between, second) in bounds:
                    _tighten(bounds, (first, second), bounds[first, between] + bounds[between, second])
    # Where clocks were set meanwhile the two bounds may contradict each other: the wider one counts.
    return {
        (first, second): max(bound, -bounds[second, first]) + SLACK_MICROSECONDS
        for (first, second), bound in bounds.items()
        if (second, first) in bounds
    }


def _in_last_window(steps: Iterable[LoggedStep]) -> Iterator[LoggedStep]:
    """Return the steps in the last WINDOW microseconds before the last step of their node."""
    steps = list(steps)
    last_time: dict[int, int] = {}
    for step in steps:
        last_time[step.node] = max(step.time, last_time.get(step.node, step.time))
    return (step for step in steps if step.time >= last_time[step.node] - WINDOW)


def _is_timed(key: Hashable) -> bool:
    """Return whether a key ties two steps that have the times of their lines."""
    return isinstance(key, tuple) and key[0] in TIMED_TIES


def _tighten(bounds: dict[tuple[int, int], int], pair: tuple[int, int], bound: int) -> None:
    """Lower the bound of a pair of nodes to `bound`, if that is lower; a node has none with itself."""
    if pair[0] != pair[1]:
        bounds[pair] = min(bound, bounds.get(pair, bound))

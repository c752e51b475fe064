"""Bound how far the clock of one node may be ahead of another's, by their own lines.

Rules of this file

1. No clock is trusted. A step of one node that is known to come before one of another (a fetch is sent before it is
   handled) bounds how far the second clock may be ahead of the first: by the difference of their times.
2. Clocks drift: by 500 ppm while one is being adjusted (adjtime). So only the last WINDOW of each log is used, and SLACK is
   larger than the drift in that time. A clock that is set by a jump in that time is not noticed.
3. Of two bounds that contradict each other (a request matched with the wrong line) the weaker one counts.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping

from tidegauge.traces.kafka.nodes.steps import LoggedStep

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

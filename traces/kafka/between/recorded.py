"""Find the line that records a fetch: `Recorded replica` names the replica and its log end, not the request.

Rules of this file

1. The n-th request of a replica at an offset belongs to the n-th line that records it, near the request's own times if there
   is one. If the request before it is missing, its line is still waiting, perhaps at the same offset: then the closest line.
2. A line that is not near is used only if no other request at that offset is nearer to it. Otherwise a request whose line is
   lost would get the line of the next request, and so on to the end of the log.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence

from tidegauge.traces.kafka.lines.phrases import PartitionRequest
from tidegauge.traces.kafka.lines.requests import Fetch
from tidegauge.traces.kafka.nodes.steps import LoggedStep
from tidegauge.traces.kafka.nodes.timeline import ProcessRun

SECOND = 1_000_000
NEAR = SECOND // 4
"""Half of replica.fetch.wait.max.ms: idle fetches of one replica, all of one offset, are further apart."""


class RecordedLines:
    """The lines of one node that belong to no request yet, as steps; `fetches` are all of its requests, in order of time."""

    def __init__(self, steps: Iterable[LoggedStep], fetches: Sequence[Fetch]) -> None:
        self._waiting: dict[tuple[int, str, object], list[LoggedStep]] = defaultdict(list)
        for step in steps:
            if step.name == "HandleFetch":
                self._waiting[step.place[0], step.tp, step.fields.get("peer")].append(step)
        self._windows: dict[tuple[str, int, int], list[tuple[int, int]]] = defaultdict(list)
        for fetch in fetches:
            for tp in fetch.responses:
                window = fetch.request.dequeued, fetch.request.handled
                self._windows[tp, fetch.replica, fetch.asked[tp].offset].append(window)

    def find(self, run: ProcessRun, fetch: Fetch, tp: str, asked: PartitionRequest) -> LoggedStep | None:
        """Return the line of a fetch; it and those before it wait no more."""
        waiting = self._waiting[run.number, tp, fetch.replica]
        window = fetch.request.dequeued, fetch.request.handled
        windows = self._windows[tp, fetch.replica, asked.offset]
        away = {
            position: distance
            for position, step in enumerate(waiting)
            if step.fields.get("remote_leo") == asked.offset
            and (distance := _away(window, step.time)) <= SECOND
            and (distance <= NEAR or distance <= _nearest(windows, step.time))
        }
        if not away:
            return None
        near = [position for position in away if away[position] <= NEAR]
        position = (near or list(away))[0] if fetch.whole else min(away, key=lambda one: away[one])
        step = waiting[position]
        del waiting[: position + 1]
        return step


def _away(window: tuple[int, int], time: int) -> int:
    begin, end = window
    return max(begin - time, time - end, 0)


def _nearest(windows: Sequence[tuple[int, int]], time: int) -> int:
    """Return the distance to the nearest of some windows, which are ordered by their beginnings."""
    at = bisect_right(windows, (time, time))
    return min((_away(window, time) for window in windows[max(0, at - 1) : at + 1]), default=SECOND)

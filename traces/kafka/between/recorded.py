"""Which line records which fetch: `Recorded replica` names the replica and its log end, not the request.

Rules of this file

1. The n-th request of a replica at an offset is the n-th line that records it, near the request's own times if there is one.
   Where the request before it is missing from the log, its line is still waiting, and may be of the same offset: there it is
   the closest one.
2. A line that is not near is taken only if no other request of that offset is nearer to it: of a request whose line is lost
   the next one's is not taken, and so on to the end of the log.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence

from tidegauge.traces.kafka.lines.phrases import Asked
from tidegauge.traces.kafka.lines.requests import Fetch
from tidegauge.traces.kafka.nodes.steps import LoggedStep
from tidegauge.traces.kafka.nodes.timeline import Run

SECOND = 1_000_000
NEAR = SECOND // 4
"""Half of replica.fetch.wait.max.ms: idle fetches of one replica, all of one offset, are further apart."""


class RecordedLines:
    """The lines of one node that no request has taken yet, as steps; `fetches` are all of its requests, by their times."""

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

    def find(self, run: Run, fetch: Fetch, tp: str, asked: Asked) -> LoggedStep | None:
        """The line of a fetch; it and those in front of it wait no more."""
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
    """How far the nearest of some windows is, which begin one after the other."""
    at = bisect_right(windows, (time, time))
    return min((_away(window, time) for window in windows[max(0, at - 1) : at + 1]), default=SECOND)

"""Place requests of the request log among the lines of their own node.

A request log has the times at which a request was taken up, handled and answered, on the clock of the node that wrote the
other lines, too. Within that window the place is free: if the response has a high watermark or leader epoch, a place is
chosen where it held, if there is one. That cannot hide a broken rule: a value that no place in the window explains stays
unexplained.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tidegauge.traces.kafka_logs.nodes.steps import LoggedStep, Place
from tidegauge.traces.kafka_logs.parsing.lines import Line

MILLISECOND = 1000
FENCED, UNKNOWN = 74, 75


@dataclass(frozen=True, slots=True)
class Mark:
    """What holds at a replica from line `index` on."""

    index: int
    hw: int | None
    leader_epoch: int | None
    leo: int | None = None


def explains(mark: Mark, asked_epoch: int, error: int) -> bool:
    """Return whether a fetch in `asked_epoch` gets this response at `mark`: errors compare epochs, others mean equality."""
    # A partition without a role is in epoch -1 (Partition#leaderEpoch).
    if mark.leader_epoch is None:
        return error not in (0, FENCED)
    if error == FENCED:
        return mark.leader_epoch > asked_epoch
    if error == UNKNOWN:
        return mark.leader_epoch < asked_epoch
    return error != 0 or asked_epoch in (-1, mark.leader_epoch)


class ProcessRun:
    """The lines of one process as a clock. `closed`: it logged until it had closed its logs."""

    def __init__(self, number: int, lines: Sequence[Line], closed: bool) -> None:
        self.number = number
        self.closed = closed
        self.first = lines[0].time
        # Log4j of 3.x prints milliseconds, the request log fractions of them: a time may lie within a tick of the other.
        self.slack = MILLISECOND if all(line.time % MILLISECOND == 0 for line in lines) else 0
        self._times: list[int] = []
        latest = self.first
        for line in lines:
            latest = max(latest, line.time)  # at most a few lines of other threads stand a little back
            self._times.append(latest)
        self.last = latest
        self._marks: dict[str, list[Mark]] = {}
        self._starts: dict[str, Place] = {}

    def index(self, time: int) -> int:
        """Return the last line written by `time`; -1 before the first."""
        return bisect_right(self._times, time) - 1

    def place(self, time: int) -> Place:
        """Return the place after the last line written by `time`."""
        return (self.number, self.index(time), 1, time)

    def mark(self, steps: Sequence[LoggedStep]) -> None:
        """Learn from the steps of the server log where high watermark, leader epoch and LEO of each replica change."""
        for step in sorted((step for step in steps if step.place[0] == self.number), key=lambda step: step.place):
            if step.name == "Start":
                self._starts[step.tp] = (step.place[0], step.place[1], 1, step.place[3])
            before = self._marks.setdefault(step.tp, [Mark(-1, None, None)])[-1]
            hw = step.fields.get("hw", before.hw)
            # A replica that starts has read no metadata, even if one of that name was there before.
            epoch = None if step.name == "Start" else step.fields.get("leader_epoch", before.leader_epoch)
            leo = step.fields.get("leo", before.leo)
            if (hw, epoch, leo) != (before.hw, before.leader_epoch, before.leo):
                self._marks[step.tp].append(Mark(step.place[1], _int(hw), _int(epoch), _int(leo)))

    def start(self, tp: str) -> Place:
        """Return the place after the line that loads the replica; before everything if there is none."""
        return self._starts.get(tp, (self.number, -1, 0, 0))

    def marks(self, tp: str, first: int, last: int) -> list[Mark]:
        """Return what held at line `first`, and every change up to line `last`."""
        marks = self._marks.get(tp, [Mark(-1, None, None)])
        at = bisect_right([mark.index for mark in marks], first) - 1
        return [replace(marks[at], index=max(first, marks[at].index))] + [
            mark for mark in marks[at + 1 :] if mark.index <= last
        ]

    def had(self, tp: str, place: Place, end: object) -> bool:
        """Return whether the log reached `end` at `place`; another thread may have appended just after it."""
        (mark, *_) = self.marks(tp, place[1], place[1])
        return not isinstance(end, int) or mark.leo is None or mark.leo >= end

    def choose(
        self, tp: str, window: tuple[int, int], time: int, fits: Callable[[Mark], bool], *, latest: bool
    ) -> Place | None:
        """Return the place in a window of times where `fits` holds, nearest to its end (`latest`) or to its beginning."""
        begin, end = window
        marks = self.marks(tp, self.index(begin - self.slack), self.index(end + self.slack))
        fitting = [mark for mark in marks if fits(mark)]
        if not fitting:
            return None
        mark = fitting[-1] if latest else fitting[0]
        return (self.number, mark.index, 1, time)


def _int(value: object) -> int | None:
    return value if isinstance(value, int) else None


def fetches_before_what_they_raised(steps: Sequence[LoggedStep]) -> int:
    """Put a fetch before the high watermark line of another thread that must have used it; return how many were moved.

        thread A   counts a fetch                                          prints its line
        thread B                   counts a fetch, raises over both   prints its line

    Only the next fetch of a replica is moved, only if its window (`since`) reaches back that far, and only if it has no
    later high watermark. Raises by a change of role stay as they are: a new leader must not have counted anybody.
    """
    moved = 0
    of_runs: dict[tuple[str, int], list[LoggedStep]] = defaultdict(list)
    for step in sorted(steps, key=lambda one: one.place):
        if step.name == "HandleFetch" and isinstance(step.fields.get("remote_leo"), int):
            of_runs[step.tp, step.place[0]].append(step)
    for fetches in of_runs.values():
        counted: dict[object, int] = {}
        for position, raising in enumerate(fetches):
            before, after = raising.fields.get("hw_before"), raising.fields.get("hw")
            if isinstance(after, int) and before != after:
                for step in _next_of_others(fetches, position):
                    # A replica that was counted beyond the new high watermark before did not hold it back.
                    if counted.get(step.fields.get("peer"), -1) < after and _used_by(step, raising, before, after):
                        step.place = (raising.place[0], raising.place[1], -1, raising.place[3])
                        step.fields.update(hw_before=before, hw=before)
                        moved += 1
            counted[raising.fields.get("peer")] = _leo(raising)
    return moved


def _next_of_others(fetches: Sequence[LoggedStep], position: int) -> list[LoggedStep]:
    """Return the next fetch of each other replica after the one at `position`."""
    first: dict[object, LoggedStep] = {}
    for step in fetches[position + 1 :]:
        first.setdefault(step.fields.get("peer"), step)
    first.pop(fetches[position].fields.get("peer"), None)
    return list(first.values())


def _used_by(step: LoggedStep, raising: LoggedStep, before: object, after: int) -> bool:
    unchanged = step.fields.get("hw") == step.fields.get("hw_before")
    return (
        step.since < raising.place[1] and unchanged and _leo(step) >= after and step.fields.get("res_hw", before) == before
    )


def _leo(step: LoggedStep) -> int:
    leo = step.fields.get("remote_leo")
    return leo if isinstance(leo, int) else -1

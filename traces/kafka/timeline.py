"""Where a request of the request log stands among the lines of its own node.

A request log says when a request was taken up, handled and answered, on the clock of the node that wrote the other lines
too. Within that window the place is free: where the request tells the high watermark or leader epoch it saw, a place is
chosen that explains it, if there is one. That cannot hide a rule that is broken: a value no place in the window explains
stays unexplained.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from traces.kafka.lines import Line
from traces.kafka.steps import Place, Step

MILLISECOND = 1000


@dataclass(frozen=True, slots=True)
class Mark:
    """What holds at a replica from line `index` on."""

    index: int
    hw: int | None
    leader_epoch: int | None


class Run:
    """The lines of one process of one node as a clock."""

    def __init__(self, number: int, lines: Sequence[Line]) -> None:
        self.number = number
        self.first = lines[0].time
        self.slack = MILLISECOND if all(line.time % MILLISECOND == 0 for line in lines) else 0
        self._times: list[int] = []
        latest = self.first
        for line in lines:
            latest = max(latest, line.time)  # at most a few lines of other threads stand a little back
            self._times.append(latest)
        self.last = latest
        self._marks: dict[str, list[Mark]] = {}

    def index(self, time: int) -> int:
        """The last line written by `time`; -1 before the first."""
        return bisect_right(self._times, time) - 1

    def place(self, time: int) -> Place:
        return (self.number, self.index(time), 1, time)

    def mark(self, steps: Sequence[Step]) -> None:
        """Learn from the steps of the server log where high watermark and leader epoch of each replica change."""
        for step in sorted((step for step in steps if step.place[0] == self.number), key=lambda step: step.place):
            before = self._marks.setdefault(step.tp, [Mark(-1, None, None)])[-1]
            hw = step.fields.get("hw", before.hw)
            epoch = step.fields.get("leader_epoch", before.leader_epoch)
            if (hw, epoch) != (before.hw, before.leader_epoch):
                self._marks[step.tp].append(Mark(step.place[1], _int(hw), _int(epoch)))

    def marks(self, tp: str, first: int, last: int) -> list[Mark]:
        """What held at line `first` and every change up to line `last`."""
        marks = self._marks.get(tp, [Mark(-1, None, None)])
        at = bisect_right([mark.index for mark in marks], first) - 1
        return [Mark(max(first, marks[at].index), marks[at].hw, marks[at].leader_epoch)] + [
            mark for mark in marks[at + 1 :] if mark.index <= last
        ]

    def choose(self, tp: str, begin: int, end: int, time: int, fits: Callable[[Mark], bool], latest: bool) -> Place | None:
        """A place in [begin, end] (times) where `fits` holds, the one nearest to its end or to its begin."""
        marks = self.marks(tp, self.index(begin - self.slack), self.index(end + self.slack))
        fitting = [mark for mark in marks if fits(mark)]
        if not fitting:
            return None
        mark = fitting[-1] if latest else fitting[0]
        return (self.number, mark.index, 1, time)


def _int(value: object) -> int | None:
    return value if isinstance(value, int) else None

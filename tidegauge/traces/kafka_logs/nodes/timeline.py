"""The lines of one process as a clock: which line it had written by a time."""

from bisect import bisect_right
from collections.abc import Sequence

from tidegauge.traces.kafka_logs.nodes.steps import LoggedStep, Place
from tidegauge.traces.kafka_logs.parsing.lines import Line
from tidegauge.traces.kafka_logs.parsing.timestamps import resolution


class ProcessRun:
    """The lines of one process as a clock.

    `closed`: it logged until it had closed its logs. `served_on`: it was told to stop, and ended its logging before its
    service (4.x); its loggers ended one after the other, so it has all lines only `logs_until` the signal.
    """

    def __init__(self, number: int, lines: Sequence[Line], stop_signal: int | None, closed: bool) -> None:
        self.number = number
        self.closed = closed
        self.served_on = stop_signal is not None and not closed
        self.first = lines[0].time
        # Log4j of 3.x prints milliseconds, the request log fractions of them: a time may lie within a tick of the other.
        unit = resolution(line.time for line in lines)
        self.slack = unit if unit > 1 else 0
        self._times: list[int] = []
        latest = self.first
        for line in lines:
            latest = max(latest, line.time)  # at most a few lines of other threads stand a little back
            self._times.append(latest)
        self.last = latest
        self.logs_until = latest if closed or stop_signal is None else stop_signal
        self._epochs: dict[str, list[tuple[int, int | None]]] = {}

    def index(self, time: int) -> int:
        """Return the last line written by `time`; -1 before the first."""
        return bisect_right(self._times, time) - 1

    def place(self, time: int) -> Place:
        """Return the place after the last line written by `time`."""
        return (self.number, self.index(time), 1, time)

    def mark(self, steps: Sequence[LoggedStep]) -> None:
        """Learn from the steps of the server log where the leader epoch of each replica changes."""
        for step in sorted((step for step in steps if step.place[0] == self.number), key=lambda step: step.place):
            before = self._epochs.setdefault(step.tp, [(-1, None)])[-1][1]
            # A replica that starts has read no metadata, even if one of that name was there before.
            epoch = None if step.name == "Start" else step.fields.get("leader_epoch", before)
            if epoch != before:
                self._epochs[step.tp].append((step.place[1], epoch if isinstance(epoch, int) else None))

    def leader_epoch(self, tp: str, index: int) -> int | None:
        """Return the leader epoch of a replica at a line, as far as it is known."""
        epochs = self._epochs.get(tp, [(-1, None)])
        return epochs[bisect_right([at for at, _ in epochs], index) - 1][1]

"""The judge's knowledge around each event of a stretch of a trace: holders of a record, leaders, high watermarks.

Rules of this file

1. Everything is read from the replay of the judge (conformance.explain.replay). What it does not know is None here.
2. Rows are those of the columns. A history is a stretch: nobody asks for a row before it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tidegauge.conformance.explain.replay import ReplayedReplica, Snapshot, replay
from tidegauge.conformance.judge.state import LEADING, State
from tidegauge.traces.columns import Columns, positions
from tidegauge.traces.schema import Config, Event

BEFORE = 5_000
"""Events before a failure, and (BEHIND) after it, that its history has; the others of a longer trace are left out."""
BEHIND = 1_000


@dataclass(frozen=True)
class History:
    """A stretch of a trace from row `first` on; `snapshots` has one entry more than `events`: the one before them."""

    config: Config
    first: int
    events: tuple[Event, ...]
    snapshots: tuple[Snapshot, ...]

    @property
    def rows(self) -> range:
        """The rows of the stretch."""
        return range(self.first, self.first + len(self.events))

    def event(self, row: int) -> Event:
        """Return the event in a row."""
        return self.events[row - self.first]

    def before(self, row: int, broker: int) -> ReplayedReplica:
        """Return a replica as it was known before an event."""
        return self.snapshots[row - self.first].replicas[broker]

    def after(self, row: int, broker: int) -> ReplayedReplica:
        """Return a replica as it was known after an event."""
        return self.snapshots[row - self.first + 1].replicas[broker]

    def broker(self, row: int) -> int | None:
        """Return the broker that reports an event, as a position in the config; None for the controller."""
        at = positions(self.config).get(self.event(row).node)
        return at if at is not None and at < len(self.config.nodes) else None

    def brokers(self) -> range:
        """All replicas, as positions in the config."""
        return range(len(self.config.nodes))

    def upto(self, row: int) -> range:
        """Return the rows up to and including `row`."""
        return range(self.first, row + 1)

    def leads(self, row: int, broker: int) -> bool:
        """Return whether a replica is leader after an event."""
        return self.after(row, broker).role == LEADING

    def elects(self, row: int, broker: int) -> bool:
        """Return whether a replica begins to lead an epoch here."""
        began = self.event(row).event == "BecomeLeader" and self.broker(row) == broker
        return began and self.before(row, broker).epoch != self.after(row, broker).epoch

    def goes_down(self, row: int, broker: int) -> bool:
        """Return whether a broker stops or crashes here."""
        return self.broker(row) == broker and self.event(row).event in ("Stop", "Crash")

    def last(self, rows: range, fits: Callable[[int], bool]) -> int | None:
        """Return the last of `rows` that fits."""
        return next((row for row in reversed(rows) if fits(row)), None)

    def holders(self, row: int, offset: int, epoch: int | None) -> dict[int, bool | None]:
        """Return for each broker whether it holds a record after an event; None where nobody knows."""
        return {broker: self.after(row, broker).holds(offset, epoch) for broker in self.brokers()}

    def losses(self, rows: range, offset: int, epoch: int | None) -> Iterator[tuple[int, int]]:
        """Yield each (row, broker) of `rows` at which a log loses a record that it held."""
        for row in rows:
            broker = self.broker(row)
            held_before = broker is not None and self.before(row, broker).holds(offset, epoch)
            # `is False`: a log of which the judge has lost track may hold the record still.
            if broker is not None and held_before and self.after(row, broker).holds(offset, epoch) is False:
                yield row, broker

    def shortens(self, row: int, broker: int) -> bool:
        """Return whether a log becomes shorter here."""
        before, after = self.before(row, broker).leo, self.after(row, broker).leo
        return self.broker(row) == broker and before is not None and after is not None and after < before

    def got(self, rows: range, broker: int, offset: int, epoch: int | None) -> int | None:
        """Return the last of `rows` at which a log came to hold a record."""
        return self.last(
            rows,
            lambda row: (
                bool(self.after(row, broker).holds(offset, epoch)) and not self.before(row, broker).holds(offset, epoch)
            ),
        )


HistoryCache = dict[tuple[int, int, int, int], "History"]
"""Histories by columns, trace, begin and end: the failures of one trace share theirs."""


def failure_history(
    columns: Columns,
    config: Config,
    trace: int,
    row: int,
    event_of: Callable[[int], Event],
    histories: HistoryCache | None = None,
    begun: State | None = None,
) -> History:
    """Return the history around `row` of a trace, from `histories` if it is there already; `begun` as in `replay`."""
    begin = max(int(columns.trace_starts[trace]), row - BEFORE)
    end = min(int(columns.trace_starts[trace + 1]), row + BEHIND)
    histories = {} if histories is None else histories
    # Replaying a stretch costs more than all that is read from it, and the failures of one event share theirs.
    key = id(columns), trace, begin, end
    if key not in histories:
        histories[key] = history_of_rows(columns, config, trace, begin, end, event_of, begun)
    return histories[key]


def history_of_rows(
    columns: Columns,
    config: Config,
    trace: int,
    begin: int,
    end: int,
    event_of: Callable[[int], Event],
    begun: State | None = None,
) -> History:
    """Return the rows from `begin` up to `end` of a trace; `begun` as in `replay`."""
    snapshots = replay(columns, config, trace, end - 1, end - begin, begun)
    return History(config, begin, tuple(event_of(row) for row in range(begin, end)), tuple(snapshots))

"""The history around a failure, and the causes of a failed high watermark or log rule, in sentences.

A broker is named by its position in the config's nodes, a set of brokers is a bit mask of positions, a record is its offset
and its epoch. `past` is the History: what the judge knew before and after each event, None where it did not know. Rows are
those of the columns. What it knew of a replica (replay.ReplayedReplica) has, while that leads, `isr` and `proposed`, its
committed ISR and the one that it has proposed; `holds(offset, epoch)` says whether a record is in its log, None if unknown.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tidegauge.conformance.engine.judge import Failure
from tidegauge.conformance.explain.replay import ReplayedReplica, Snapshot, replay
from tidegauge.conformance.judge.state import FOLLOWING, LEADING, NO_ROLE, State
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.traces.columns import Columns, positions
from tidegauge.traces.schema import Config, Event

# The judge's knowledge around each event of a stretch of a trace: holders of a record, leaders, high watermarks.
#
# Everything is read from the replay of the judge (conformance.explain.replay). Nobody asks for a row before the stretch.


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
        """Return whether a replica is leader after the event in a row."""
        return self.after(row, broker).role == LEADING

    def elects(self, row: int, broker: int) -> bool:
        """Return whether a replica begins to lead an epoch with the event in a row."""
        began = self.event(row).event == "BecomeLeader" and self.broker(row) == broker
        return began and self.before(row, broker).epoch != self.after(row, broker).epoch

    def goes_down(self, row: int, broker: int) -> bool:
        """Return whether a broker stops or crashes with the event in a row."""
        return self.broker(row) == broker and self.event(row).event in ("Stop", "Crash")

    def last(self, rows: range, fits: Callable[[int], bool]) -> int | None:
        """Return the last of `rows` for which `fits` is true; None if there is none."""
        return next((row for row in reversed(rows) if fits(row)), None)

    def holders(self, row: int, offset: int, epoch: int | None) -> dict[int, bool | None]:
        """Return by broker whether it holds a record after the event in a row; None where that is not known."""
        return {broker: self.after(row, broker).holds(offset, epoch) for broker in self.brokers()}

    def losses(self, rows: range, offset: int, epoch: int | None) -> Iterator[tuple[int, int]]:
        """Yield (row, broker) for each of `rows` with whose event a broker's log loses a record that it held."""
        for row in rows:
            broker = self.broker(row)
            held_before = broker is not None and self.before(row, broker).holds(offset, epoch)
            # `is False`: a log of which the judge has lost track may hold the record still.
            if broker is not None and held_before and self.after(row, broker).holds(offset, epoch) is False:
                yield row, broker

    def shortens(self, row: int, broker: int) -> bool:
        """Return whether a broker's log becomes shorter with the event in a row."""
        before, after = self.before(row, broker).leo, self.after(row, broker).leo
        return self.broker(row) == broker and before is not None and after is not None and after < before

    def got(self, rows: range, broker: int, offset: int, epoch: int | None) -> int | None:
        """Return the last of `rows` with whose event a log came to hold a record; None if there is none."""

        def gets(row: int) -> bool:
            """Return whether the log holds the record after the event in a row, and is not known to before."""
            held_before, holds = (r.holds(offset, epoch) for r in (self.before(row, broker), self.after(row, broker)))
            return bool(holds) and not held_before

        return self.last(rows, gets)


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
    """Return the history around `row` of a trace; take it from `histories` if it is there, else add it to these.

    `event_of` is called with a row and returns its event; `begun` as in `replay`.
    """
    # Of the trace, no more than BEFORE rows before `row` and BEHIND rows from it on.
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
    """Return the history of the rows from `begin` up to, without, `end` of a trace; the others as in `failure_history`."""
    snapshots = replay(columns, config, trace, end - 1, end - begin, begun)
    return History(config, begin, tuple(event_of(row) for row in range(begin, end)), tuple(snapshots))


# A failure in a sentence and its causes, and the phrases that they share.


TRUNCATES = ("HandleDivergingResponse", "HandleEpochResponse", "HandleOutOfRange", "TruncateToHighWatermark")
"""Events in which a follower truncates its log."""


@dataclass(frozen=True)
class CausalStep:
    """A step that led to a failure, in words, and the row at which it happened."""

    says: str
    row: int


@dataclass(frozen=True)
class RootCause:
    """What is broken, in a sentence, and the steps that led there in the order of the trace."""

    says: str
    causes: tuple[CausalStep, ...] = ()


EMPTIES = {"LoseDisk": "lost the disk with its log", "DeleteReplica": "deleted its log as a replica no more"}
"""Events after which a broker has no log: what it did, as the verb of a sentence."""


def root_cause(says: str, causes: list[CausalStep]) -> RootCause:
    """Return a sentence with its causes, sorted into the order of the trace."""
    return RootCause(says, tuple(sorted(causes, key=lambda cause: cause.row)))


def writes(past: History, row: int, broker: int, offset: int, epoch: int | None) -> str:
    """Return the sentence of how a log came to hold the record at `offset` with the event in `row`."""
    # Any other event (a start, an observed log) only shows that the record is there, not when it was written.
    verb = {"LeaderAppend": "appended", "HandleFetchResponse": "copied"}.get(_event(past, row), "has")
    return f"{name_of(past, broker)} {verb} offset {offset:,}" + ("." if epoch is None else f" in epoch {epoch}.")


def loses(past: History, row: int, broker: int, offset: int) -> str:
    """Return the sentence of how a log lost the record at `offset` with the event in `row`."""
    log_end = past.after(row, broker).leo
    if log_end is not None and log_end <= offset:
        return f"{shortens(past, row, broker)}: offset {offset:,} is gone there."
    # The log still reaches so far: another record has taken the place.
    return f"{name_of(past, broker)} has another record at offset {offset:,} than before ({_event(past, row)})."


def shortens(past: History, row: int, broker: int) -> str:
    """Return the clause of how a log became shorter with the event in `row`: truncated, lost, or found shorter."""
    old_end, new_end = past.before(row, broker).leo, past.after(row, broker).leo
    event = _event(past, row)
    if event in TRUNCATES:
        return f"{name_of(past, broker)} truncated its log from {grouped(old_end)} to {grouped(new_end)} ({event})"
    if event in EMPTIES:
        return f"{name_of(past, broker)} {EMPTIES[event]}, which ended at {grouped(old_end)}"
    verb = {"Start": "came back with", "Observe": "is found with"}.get(event, f"has with {event}")
    return f"{name_of(past, broker)} {verb} the log end {grouped(new_end)} instead of {grouped(old_end)}"


def whereabouts(past: History, row: int, offset: int, epoch: int | None) -> str:
    """Return the clause of which brokers held a record after the event in `row`, did not, or of which it is not known."""
    holders = past.holders(row, offset, epoch)
    groups = (
        f"{word} {', '.join(name_of(past, broker) for broker, holds in holders.items() if holds is value)}"
        for word, value in (("on", True), ("not on", False), ("unknown on", None))
        if value in holders.values()
    )
    return f"offset {offset:,} was then {'; '.join(groups)}"


def name_of(past: History, broker: int) -> str:
    """Return the name of a broker by its node id: n1."""
    return f"n{past.config.nodes[broker]}"


def broker_set(past: History, mask: int) -> str:
    """Return the names of the brokers of a bit mask: {n1, n2}."""
    return "{" + ", ".join(name_of(past, broker) for broker in past.brokers() if mask >> broker & 1) + "}"


def records(offset: int, end: int) -> str:
    """Return the subject of a sentence about the records from `offset` up to, without, `end`."""
    return f"The record at offset {offset:,}" if end - offset <= 1 else f"The records at offsets {offset:,} to {end - 1:,}"


def grouped(offset: int | None) -> str:
    """Return an offset as text, its digits in groups of three; None is unknown."""
    return "unknown" if offset is None else f"{offset:,}"


def _event(past: History, row: int) -> str:
    """Return the name of the event in a row."""
    return past.event(row).event


# LOG-01 and LOG-02: a log that is not what its events made it.


_VALUE_NAMES = {"leo": "log end", "leo_before": "log end", "hw": "high watermark", "log_start": "log start"}
"""By what the rule compared, the value of a replica in words."""


def explain_contradicted_log(past: History, failure: Failure, broker: int, expected: int, actual: int) -> RootCause | None:
    """Explain LOG-01 or LOG-02: a broker reports `actual`, where the events before made it `expected`.

    The cause is the last event that set the expected value. None if the rule did not compare a number.
    """
    value_name = _VALUE_NAMES.get(failure.compared)
    # An epoch cache, or a role, is not one number that an event could have set.
    if value_name is None:
        return None
    name = name_of(past, broker)

    def sets_expected(row: int) -> bool:
        """Return whether the event in a row changed the value to the expected one."""
        before, after = past.before(row, broker), past.after(row, broker)
        return _value(after, value_name) == expected != _value(before, value_name)

    at = past.last(past.upto(failure.row - 1), sets_expected)
    causes = () if at is None else (CausalStep(f"{name}'s {value_name} became {expected:,} ({_event(past, at)}).", at),)
    last_step = CausalStep(f"{name} has the {value_name} {actual:,} ({_event(past, failure.row)}).", failure.row)
    sentence = f"{name} has the {value_name} {actual:,}, where its events made it {expected:,}."
    return RootCause(sentence, (*causes, last_step))


def _value(replica: ReplayedReplica, value_name: str) -> int | None:
    """Return the value of a replica that _VALUE_NAMES names."""
    return {"log end": replica.leo, "high watermark": replica.hw, "log start": replica.log_start}[value_name]


# HW-01 to HW-10: a high watermark that is not where it must be. What its replica knew, and what the others held.


def explain_high_watermark(past: History, failure: Failure, broker: int, expected: int, actual: int) -> RootCause | None:
    """Explain a rule about the high watermark: it is `actual` at a broker, where the rule expects `expected`.

    The causes are the events that led to it. None if the rule compared something else.
    """
    if failure.compared not in ("hw", "hw_before"):
        return None
    after, row = past.after(failure.row, broker), failure.row
    # The sentence: the broker, its role and epoch if known, its high watermark, and the bound.
    epoch = "" if after.epoch is None or after.epoch < 0 else f" of epoch {after.epoch}"
    role = {LEADING: f", leader{epoch},", FOLLOWING: f", follower{epoch},"}.get(after.role or NO_ROLE, "")
    # The judge expects -1 where the leader has recorded no log end of a member of the ISR: no offset is committed then.
    if expected == UNDEFINED:
        bound = "and has no log end recorded for a replica that counts"
    else:
        bound = (
            f"where the rules allow {expected:,} at most" if actual > expected else f"where the rules ask for {expected:,}"
        )
    sentence = f"{name_of(past, broker)}{role} has the high watermark {actual:,} {bound}."
    # The causes. A leader's high watermark comes from its followers' fetches, a follower's from its leader's responses.
    causes = list(_fetches(past, row, broker, failure.rule) if past.leads(row, broker) else _hw_changes(past, row, broker))
    # `hw_before` is what it reported from before the event.
    took = f"{name_of(past, broker)} {'took' if failure.compared == 'hw' else 'had'} the high watermark {actual:,}"
    # A high watermark that is too low promises nothing; one that is too high promises its last record, so show its holders.
    if actual > expected and (after.leo is None or actual <= after.leo):
        causes.append(CausalStep(f"{took}: {whereabouts(past, row, actual - 1, after.epoch_of(actual - 1))}.", row))
    # There is no such record in its own log.
    elif actual > expected:
        causes.append(CausalStep(f"{took}; its log ends at {grouped(after.leo)}.", row))
    # HW-09 is about the size of the ISR.
    if failure.rule == "HW-09" and after.isr is not None:
        least = f"min.insync.replicas is {_min_isr(past, row, broker)}"
        causes.append(
            CausalStep(f"The ISR that {name_of(past, broker)} goes by is {broker_set(past, after.isr)}; {least}.", row)
        )
    # What came of one that is too high.
    if actual > expected:
        causes += _later_truncation(past, row, broker, actual)
    return root_cause(sentence, causes)


def _min_isr(past: History, row: int, broker: int) -> int:
    """Return the min.insync.replicas that a broker has read last up to `row`; that of the config if it has read none."""
    own_events = (past.event(at) for at in reversed(past.upto(row)) if past.broker(at) == broker)
    values = (int(e.fields["min_isr"]) for e in own_events if e.event == "ReadConfig" and "min_isr" in e.fields)
    return next(values, past.config.min_isr)


def _fetches(past: History, row: int, leader: int, rule: str) -> Iterator[CausalStep]:
    """Yield for each ISR member its last fetch that the leader counted, and what happened to its log from there to `row`.

    `rule` is the one that failed.
    """
    after = past.after(row, leader)
    # The maximal ISR, which a leader waits for: members, and those it has proposed (Partition#maximalIsr, KIP-497).
    counted = (after.isr or 0) | (after.proposed or 0)
    for broker in past.brokers():
        if broker == leader or not counted >> broker & 1:
            continue
        fetch = next((at for at in reversed(past.upto(row)) if _records_log_end(past, at, leader, broker)), None)
        if fetch is None:
            continue
        fields = past.event(fetch).fields
        epoch = fields.get("req_epoch")
        request = f"offset {fields['req_offset']:,}" + ("" if epoch is None else f" in leader epoch {epoch}")
        yield CausalStep(
            f"The last fetch of {name_of(past, broker)} that {name_of(past, leader)} counted was for {request}.", fetch
        )
        since = range(fetch + 1, row + 1)
        yield from (CausalStep(f"{shortens(past, at, broker)}.", at) for at in since if past.shortens(at, broker))
        # HW-08 asks whether another broker led since the log end was recorded.
        if rule == "HW-08":
            yield from _other_leaders(past, since, leader)


def _records_log_end(past: History, row: int, leader: int, follower: int) -> bool:
    """Return whether the leader records a log end with the event in `row`: a fetch of the follower that it serves."""
    event = past.event(row)
    fields = event.fields
    if event.event != "HandleFetch" or past.broker(row) != leader or fields.get("peer") != past.config.nodes[follower]:
        return False
    # Only a fetch that is served records a log end: Partition#updateFollowerFetchState comes after the checks whose outcome
    # is an error or a diverging epoch.
    served = fields.get("error", NONE) == NONE and fields.get("div_epoch") is None
    return served and fields.get("req_offset") is not None


def _other_leaders(past: History, rows: range, leader: int) -> Iterator[CausalStep]:
    """Yield a step for each broker other than `leader` that began to lead in `rows`."""
    for row in rows:
        broker = past.broker(row)
        if broker is not None and broker != leader and past.elects(row, broker):
            yield CausalStep(f"{name_of(past, broker)} became leader of epoch {past.after(row, broker).epoch}.", row)


def _hw_changes(past: History, row: int, broker: int) -> Iterator[CausalStep]:
    """Yield the causes of a follower's high watermark in `row`: its last change before, and the one in the response.

    The event in `row` has the latter, and the node that sent it, where it handles a response.
    """
    last_change = past.last(past.upto(row - 1), lambda at: past.before(at, broker).hw != past.after(at, broker).hw)
    if last_change is not None and past.after(last_change, broker).hw is not None:
        event = past.event(last_change).event
        yield CausalStep(
            f"{name_of(past, broker)}'s high watermark became {grouped(past.after(last_change, broker).hw)} ({event}).",
            last_change,
        )
    sent = past.event(row).fields.get("res_hw")
    peer = past.event(row).fields.get("peer")
    if sent is not None and peer is not None:
        yield CausalStep(f"The response of n{peer} carried the high watermark {grouped(sent)}.", row)


def _later_truncation(past: History, row: int, broker: int, high: int) -> Iterator[CausalStep]:
    """Yield what came of it: the next event after `row`, if any, that truncates records below the high watermark `high`."""
    for at in range(row + 1, past.rows.stop):
        end, before = past.after(at, broker).leo, past.before(at, broker).leo
        if past.shortens(at, broker) and end is not None and before is not None and end < high:
            gone = records(end, min(high, before))
            yield CausalStep(f"{shortens(past, at, broker)}. {gone} had been below the high watermark {grouped(high)}.", at)
            return

"""Explains why a rule failed: first as data, then as text.

Rules of this file

1. An Explanation holds the failure's meaning in a sentence, the steps that led there if they are known, the failing event,
   the expected and the actual value, the events before it at the replicas involved with what the judge knew after each, and
   the known bugs that look like it and whose own step the trace has (bug_steps).
2. `explanation_text` writes it; the HTML page draws the same data.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tidegauge.conformance.engine.judge import Failure
from tidegauge.conformance.explain.bug_steps import Before, happened
from tidegauge.conformance.explain.causes import HistoryCache, failure_history
from tidegauge.conformance.explain.replay import Snapshot, comparison_text, event_at, event_text, replay, snapshot_grid
from tidegauge.conformance.explain.root_cause import find_root_cause, has_root_cause
from tidegauge.conformance.judge.rulebook import Rule, looks_like, releases_of, rulebook
from tidegauge.conformance.judge.state import State
from tidegauge.traces.columns import Columns
from tidegauge.traces.schema import Config, Event, Trace
from tidegauge.util.foreign_text import visible

STEPS = 12
"""Events shown before the failing one."""
STATES = ("running", "role")
"""What a check compares of the replica itself: no field of the event."""


@dataclass(frozen=True)
class TraceRow:
    """A row of a trace of some columns; `traces` are the events that these were made from, where there are any.

    If the columns are not the beginning of their trace, `begun` is the judge's table after the `earlier` events.
    """

    columns: Columns
    config: Config
    trace: int
    row: int
    traces: Sequence[Trace] | None = None
    source: str = ""
    begun: State | None = None
    earlier: int = 0

    @property
    def rows(self) -> range:
        """All rows of the trace."""
        return range(int(self.columns.trace_starts[self.trace]), int(self.columns.trace_starts[self.trace + 1]))

    def number(self, row: int) -> int:
        """Return the number of an event in its trace, from 1."""
        return self.earlier + row - self.rows.start + 1

    @property
    def name(self) -> str:
        """The name of the trace."""
        return f"trace {self.trace}" if self.traces is None else self.traces[self.trace].name

    @property
    def tp(self) -> str:
        """The partition; empty where the source does not say."""
        return "" if self.traces is None else self.traces[self.trace].tp

    def event(self, row: int) -> Event:
        """Return the event in a row of the trace: as it was read, or else made from the columns."""
        at = row - self.rows.start
        if self.traces is not None:
            return self.traces[self.trace].events[at]
        return event_at(self.columns, row, self.config, f"{self.source}: trace {self.trace}, event {at + 1}")


@dataclass(frozen=True)
class ExplainedStep:
    """An event with what the judge knew after it."""

    number: int
    event: Event
    after: Snapshot


@dataclass(frozen=True)
class ExplainedCause:
    """A step that led to a failure: in words, the number of its event in the trace, and where that was read."""

    says: str
    number: int
    at: str


@dataclass(frozen=True)
class Explanation:
    """One failure with all that is needed to understand it. `means` is a sentence about what is broken."""

    rule: Rule
    means: str
    because: tuple[ExplainedCause, ...]
    trace: str
    tp: str
    place: TraceRow = field(repr=False, compare=False)
    config: Config
    at: str
    expected: str
    actual: str
    compared: str
    values: tuple[int | None, int | None]
    """What `expected` and `actual` say, as numbers."""
    before: Snapshot
    steps: tuple[ExplainedStep, ...]
    left_out: int
    bugs: tuple[tuple[str, str], ...]
    path: str = ""
    """The input that it was found in."""

    @property
    def event(self) -> Event:
        """The event at which the rule failed."""
        return self.steps[-1].event


def explain(
    columns: Columns,
    config: Config,
    failure: Failure,
    traces: Sequence[Trace] | None = None,
    source: str = "",
    histories: HistoryCache | None = None,
) -> Explanation:
    """Explain a failure. `traces` are the events that the columns were made from, if any; failures may share `histories`."""
    return explain_at(TraceRow(columns, config, failure.trace, failure.row, traces, source), failure, histories)


def explain_at(place: TraceRow, failure: Failure, histories: HistoryCache | None = None) -> Explanation:
    """Explain the failure in a row."""
    columns, config, first, begun = place.columns, place.config, place.rows.start, place.begun
    window = _involved(columns, config, failure.row, first, STEPS)
    back = failure.row + 1 - window[0]
    snapshots = {s.row: s for s in replay(columns, config, failure.trace, failure.row, back, begun)}
    shown = tuple(ExplainedStep(place.number(row), place.event(row), snapshots[row]) for row in window)
    rule = rulebook()[failure.rule]
    actual, expected = comparison_text(failure, config)
    last = shown[-1].event
    subject = "it" if failure.compared in STATES else failure.compared
    says = f"n{last.node} {last.event}: {subject} is {actual}, expected {expected}. {rule.means}"
    causes: tuple[ExplainedCause, ...] = ()
    if has_root_cause(rule.id):
        past = failure_history(columns, config, failure.trace, failure.row, place.event, histories, begun)
        root_cause = find_root_cause(past, failure, place.tp or "the partition")
        if root_cause is not None:
            # What a lost record means for users is in the sentence already; of a high watermark the rule says it.
            says = root_cause.says if rule.id.startswith("DATA-") else f"{root_cause.says} {rule.means}"
            causes = tuple(
                ExplainedCause(step.says, place.number(step.row), past.event(step.row).at) for step in root_cause.causes
            )
    return Explanation(
        rule=rule,
        means=says,
        because=causes,
        trace=place.name,
        tp=place.tp,
        place=place,
        config=config,
        at=shown[-1].event.at,
        expected=expected,
        actual=actual,
        compared=failure.compared,
        values=(failure.expected, failure.actual),
        before=snapshots[failure.row - 1],
        steps=shown,
        left_out=place.number(failure.row) - len(window),
        bugs=tuple((bug.name, bug.says) for bug in looks_like(rule, config) if _shows(place, failure.row, bug.name)),
    )


def _shows(place: TraceRow, row: int, bug: str) -> bool:
    """Return whether a bug's own step comes before a failure; without the beginning of the trace it may have."""
    return place.begun is not None or happened(bug, Before(place.columns, place.rows.start, row, place.event))


def _involved(columns: Columns, config: Config, row: int, first: int, steps: int) -> list[int]:
    """Return the failing row and up to `steps` before it, of its node and peer and of the controller."""
    peers = columns.ints.get("peer")
    nodes = {int(columns.node[row])}
    if peers is not None and peers[row] >= 0:
        nodes.add(int(peers[row]))
    # An event without a peer may be about any replica, such as a role or a start.
    if len(nodes) == 1:
        nodes.update(range(len(config.nodes)))
    chosen = [row]
    at = row - 1
    while at >= first and len(chosen) <= steps:
        node = int(columns.node[at])
        # Exchanges with a third broker are left out; what the controller did concerns everybody.
        peer = -1 if peers is None else int(peers[at])
        if node == len(config.nodes) or (node in nodes and (peer < 0 or peer in nodes)):
            chosen.append(at)
        at -= 1
    return chosen[::-1]


def explanation_text(explanation: Explanation) -> str:
    """Return the explanation as text for a terminal."""
    return "\n".join(map(visible, _lines(explanation)))


def what_failed(e: Explanation) -> Iterator[str]:
    """Yield lines with the trace, the event, the expected and the actual value."""
    yield f"  trace     {e.trace}{' (' + e.tp + ')' if e.tp else ''}"
    yield f"  at        {e.at or 'event ' + str(e.steps[-1].number)}"
    yield f"  event     {event_text(e.event)}"
    yield f"  expected  {e.compared} {e.expected}"
    yield f"  actual    {e.compared} {e.actual}"


def _lines(e: Explanation) -> Iterator[str]:
    """Yield the lines of an explanation: meaning, causes, rule, values, similar bugs, the state before, the events."""
    yield e.means
    if e.because:
        yield "  because"
        for cause in e.because:
            yield f"    {cause.number:>5}  {cause.says}" + (f"   [{cause.at}]" if cause.at else "")
    yield f"  {e.rule.id} {e.rule.level}: {e.rule.sentence}"
    yield from what_failed(e)
    yield f"  rule      {e.rule.impl}; Kafka: {e.rule.kafka}"
    yield from (f"  looks like {bug}: {says}" for bug, says in e.bugs)
    # Only where bugs of this rule are known at all: "no bug" would else claim that somebody had looked for one.
    if not e.bugs and e.rule.bugs and releases_of(e.config):
        yield f"  looks like no bug that is known of {', '.join(releases_of(e.config))}"
    yield "  before it, as far as the trace shows:"
    yield from (f"    {line}" for line in snapshot_grid(e.before, e.config))
    yield f"  what led there ({e.left_out:,} other events not shown):"
    for step in e.steps:
        mark = ">" if step is e.steps[-1] else " "
        where = f"   [{step.event.at}]" if step.event.at else ""
        yield f"  {mark} {step.number:>5}  {event_text(step.event)}{where}"

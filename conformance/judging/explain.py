"""Why a rule failed: data first, words second.

Rules of this file

1. An Explanation holds what the failure means in a sentence, the steps that led there where they are known, the failing
   event, what was expected and seen, the events before it at the replicas involved with what the judge knew after each, and
   the known bugs the failure looks like.
2. `text` writes it; the HTML page draws the same data.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidegauge.conformance.judging.because import because, has_causes
from tidegauge.conformance.judging.because.history import history
from tidegauge.conformance.judging.events import event_at, event_words, words
from tidegauge.conformance.judging.grid import grid
from tidegauge.conformance.judging.judge import Failure
from tidegauge.conformance.judging.replay import Snapshot, replay
from tidegauge.conformance.judging.rulebook import Rule, looks_like, releases_of, rulebook
from tidegauge.traces.columns import Columns
from tidegauge.traces.schema import Config, Event, Trace

STEPS = 12
"""Events shown before the failing one."""
STATES = ("running", "role")
"""What is compared of the replica itself, and is no field of the event."""


@dataclass(frozen=True)
class ExplainedStep:
    """An event, and what the judge knew after it."""

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
    """One failure with all that is needed to see it. `means` says in a sentence what is broken."""

    rule: Rule
    means: str
    because: tuple[ExplainedCause, ...]
    trace: str
    tp: str
    config: Config
    at: str
    expected: str
    actual: str
    compared: str
    before: Snapshot
    steps: tuple[ExplainedStep, ...]
    left_out: int
    bugs: tuple[tuple[str, str], ...]
    path: str = ""
    """the input it was found in"""

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
    steps: int = STEPS,
) -> Explanation:
    """Explain a failure. `traces` are the events the columns were made from, when there are any."""
    first = int(columns.trace_starts[failure.trace])

    def event_of(row: int) -> Event:
        return event_in(columns, config, row, failure.trace, traces, source)

    window = _involved(columns, config, failure.row, first, steps)
    snapshots = {s.row: s for s in replay(columns, config, failure.trace, failure.row, failure.row + 1 - window[0])}
    shown = tuple(ExplainedStep(row - first + 1, event_of(row), snapshots[row]) for row in window)
    rule = rulebook()[failure.rule]
    trace = None if traces is None else traces[failure.trace]
    tp = trace.tp if trace is not None else ""
    expected = words(failure.compared, failure.expected, config)
    actual = words(failure.compared, failure.actual, config)
    last = shown[-1].event
    subject = "it" if failure.compared in STATES else failure.compared
    says = f"n{last.node} {last.event}: {subject} is {actual}, expected {expected}. {rule.means}"
    causes: tuple[ExplainedCause, ...] = ()
    if has_causes(rule.id):
        past = history(columns, config, failure.trace, failure.row, event_of)
        found = because(past, failure, tp or "the partition")
        if found is not None:
            says = found.says if rule.id.startswith("DATA-") else f"{found.says} {rule.means}"
            causes = tuple(ExplainedCause(one.says, one.row - first + 1, past.event(one.row).at) for one in found.causes)
    return Explanation(
        rule=rule,
        means=says,
        because=causes,
        trace=trace.name if trace is not None else f"trace {failure.trace}",
        tp=tp,
        config=config,
        at=shown[-1].event.at,
        expected=expected,
        actual=actual,
        compared=failure.compared,
        before=snapshots[failure.row - 1],
        steps=shown,
        left_out=failure.row + 1 - first - len(window),
        bugs=tuple((bug.name, bug.says) for bug in looks_like(rule, config)),
    )


def _involved(columns: Columns, config: Config, row: int, first: int, steps: int) -> list[int]:
    """The failing row and up to `steps` before it: what its node and peer did between them, and the controller."""
    peers = columns.ints.get("peer")
    nodes = {int(columns.node[row])}
    if peers is not None and peers[row] >= 0:
        nodes.add(int(peers[row]))
    if len(nodes) == 1:
        nodes.update(range(len(config.nodes)))
    chosen = [row]
    at = row - 1
    while at >= first and len(chosen) <= steps:
        node = int(columns.node[at])
        peer = -1 if peers is None else int(peers[at])
        if node == len(config.nodes) or (node in nodes and (peer < 0 or peer in nodes)):
            chosen.append(at)
        at -= 1
    return chosen[::-1]


def event_in(columns: Columns, config: Config, row: int, trace: int, traces: Sequence[Trace] | None, source: str) -> Event:
    """The event in a row: as it was read where there is a line behind it."""
    at = row - int(columns.trace_starts[trace])
    if traces is not None:
        return traces[trace].events[at]
    return event_at(columns, row, config, f"{source}: trace {trace}, event {at + 1}")


def text(explanation: Explanation) -> str:
    """The explanation for a terminal."""
    return "\n".join(_lines(explanation))


def _lines(e: Explanation) -> Iterator[str]:
    yield e.means
    if e.because:
        yield "  because"
        for cause in e.because:
            yield f"    {cause.number:>5}  {cause.says}" + (f"   [{cause.at}]" if cause.at else "")
    yield f"  {e.rule.id} {e.rule.level}: {e.rule.sentence}"
    yield f"  trace     {e.trace}{' (' + e.tp + ')' if e.tp else ''}"
    yield f"  at        {e.at or 'event ' + str(e.steps[-1].number)}"
    yield f"  event     {event_words(e.event)}"
    yield f"  expected  {e.compared} {e.expected}"
    yield f"  actual    {e.compared} {e.actual}"
    yield f"  rule      {e.rule.impl}; Kafka: {e.rule.kafka}"
    yield from (f"  looks like {bug}: {says}" for bug, says in e.bugs)
    if not e.bugs and e.rule.bugs and releases_of(e.config):
        yield f"  looks like no bug that is known of {', '.join(releases_of(e.config))}"
    yield "  before it, as far as the trace tells:"
    yield from (f"    {line}" for line in grid(e.before, e.config))
    yield f"  what led there ({e.left_out:,} other events not shown):"
    for step in e.steps:
        mark = ">" if step is e.steps[-1] else " "
        where = f"   [{step.event.at}]" if step.event.at else ""
        yield f"  {mark} {step.number:>5}  {event_words(step.event)}{where}"

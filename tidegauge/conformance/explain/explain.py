"""Explain why a rule failed: first as data, then as text.

Rules of this file

1. An Explanation holds the failure's meaning in a sentence, the steps that led there if they are known, the failing event,
   the expected and the actual value, the events before it at the replicas involved with what the judge knew after each, and
   the known bugs that look like it and whose own step the trace has.
2. `explanation_text` writes it; the HTML page draws the same data.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from tidegauge.conformance.engine.judge import Failure
from tidegauge.conformance.explain.causes import HistoryCache, failure_history
from tidegauge.conformance.explain.replay import Snapshot, comparison_text, event_at, event_text, replay, snapshot_grid
from tidegauge.conformance.explain.root_cause import find_root_cause, has_root_cause
from tidegauge.conformance.judge.rulebook import Rule, looks_like, releases_of, rulebook
from tidegauge.conformance.judge.state import State
from tidegauge.impl.rules import NONE
from tidegauge.traces.columns import Columns
from tidegauge.traces.schema import EVENTS, Config, Event, Trace
from tidegauge.util.untrusted_text import visible

STEPS = 12
"""Events shown before the failing one."""
STATES = ("running", "role")
"""Names of compared values that are of the replica itself, and no field of the event."""


@dataclass(frozen=True)
class TraceRow:
    """A row of trace number `trace` of some columns; `traces` are the events that these were made from, if they are there.

    If the columns are not the beginning of their trace, `begun` is the judge's table after the events before them, whose
    number is `earlier`. `source` is what the events were read from.
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
    """An event, its number in the trace from 1, and what the judge knew after it."""

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
    """One failure with all that is needed to understand it.

    `means` is a sentence about what is broken, `because` are the steps that led there, empty if they are not known. `steps`
    are the events shown, the last of which fails, `before` what the judge knew before that; `left_out` events before it are
    not shown. `bugs` are known bugs that look like it, as (name, sentence).
    """

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
    """Return the explanation of a failure in columns; `traces` and `source` as in TraceRow, `histories` as in explain_at."""
    return explain_at(TraceRow(columns, config, failure.trace, failure.row, traces, source), failure, histories)


def explain_at(place: TraceRow, failure: Failure, histories: HistoryCache | None = None) -> Explanation:
    """Return the explanation of the failure in a row. Failures of one trace that share `histories` are explained faster."""
    columns, config, first, begun = place.columns, place.config, place.rows.start, place.begun
    # The rows that are shown, and what the judge knew after each row from the first of them on.
    window = _involved(columns, config, failure.row, first, STEPS)
    kept_rows = failure.row + 1 - window[0]
    replayed = replay(columns, config, failure.trace, failure.row, kept_rows, begun)
    snapshots = {snapshot.row: snapshot for snapshot in replayed}
    steps = tuple(ExplainedStep(place.number(row), place.event(row), snapshots[row]) for row in window)
    # What it means: at least what was compared, at best what it means for the data.
    rule = rulebook()[failure.rule]
    actual, expected = comparison_text(failure, config)
    failing = steps[-1].event
    subject = "it" if failure.compared in STATES else failure.compared
    means = f"n{failing.node} {failing.event}: {subject} is {actual}, expected {expected}. {rule.means}"
    causes: tuple[ExplainedCause, ...] = ()
    if has_root_cause(rule.id):
        past = failure_history(columns, config, failure.trace, failure.row, place.event, histories, begun)
        root_cause = find_root_cause(past, failure, place.tp or "the partition")
        if root_cause is not None:
            # What a lost record means for users is in the sentence already; of a high watermark the rule says it.
            means = root_cause.says if rule.id.startswith("DATA-") else f"{root_cause.says} {rule.means}"
            causes = tuple(
                ExplainedCause(step.says, place.number(step.row), past.event(step.row).at) for step in root_cause.causes
            )
    return Explanation(
        rule=rule,
        means=means,
        because=causes,
        trace=place.name,
        tp=place.tp,
        place=place,
        config=config,
        at=failing.at,
        expected=expected,
        actual=actual,
        compared=failure.compared,
        values=(failure.expected, failure.actual),
        before=snapshots[failure.row - 1],
        steps=steps,
        left_out=place.number(failure.row) - len(window),  # of the events up to the failing one
        bugs=tuple((bug.name, bug.says) for bug in looks_like(rule, config) if _shows(place, failure.row, bug.name)),
    )


def _shows(place: TraceRow, row: int, bug: str) -> bool:
    """Return whether a bug's own step comes before the failure in `row`, or may, as the beginning of the trace is gone.

    It is gone where `place.begun` stands for it.
    """
    return place.begun is not None or happened(bug, Before(place.columns, place.rows.start, row, place.event))


def _involved(columns: Columns, config: Config, row: int, first: int, steps: int) -> list[int]:
    """Return the failing row and up to `steps` before it that concern its node and peer: in order, the failing one last.

    These are events of the two brokers with each other, and those of the controller. `first` is the first row of the trace.
    """
    peers = columns.ints.get("peer")  # negative where an event has no peer; None where no event reports one
    nodes = {int(columns.node[row])}
    if peers is not None and peers[row] >= 0:
        nodes.add(int(peers[row]))
    # An event without a peer, such as a role or a start, may have its cause at any replica.
    if len(nodes) == 1:
        nodes.update(range(len(config.nodes)))
    chosen = [row]
    at = row - 1
    while at >= first and len(chosen) <= steps:
        node = int(columns.node[at])
        # Exchanges with a third broker are left out; what the controller did, the node after the brokers, concerns all.
        peer = -1 if peers is None else int(peers[at])
        if node == len(config.nodes) or (node in nodes and (peer < 0 or peer in nodes)):
            chosen.append(at)
        at -= 1
    return chosen[::-1]


def explanation_text(explanation: Explanation) -> str:
    """Return the explanation as text for a terminal."""
    return "\n".join(map(visible, _lines(explanation)))


def what_failed(e: Explanation) -> Iterator[str]:
    """Yield the lines that say where a rule failed: the trace, the event, the expected and the actual value."""
    yield f"  trace     {e.trace}{' (' + e.tp + ')' if e.tp else ''}"
    yield f"  at        {e.at or 'event ' + str(e.steps[-1].number)}"
    yield f"  event     {event_text(e.event)}"
    yield f"  expected  {e.compared} {e.expected}"
    yield f"  actual    {e.compared} {e.actual}"


def _lines(e: Explanation) -> Iterator[str]:
    """Yield the lines of an explanation: meaning, causes, rule, values, known bugs, the state before, the events."""
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


# The step by which a known bug goes wrong: a failure is said to look like a bug only if its trace has that step before it.
# A bug is named as in the catalogue: by its issue or KIP, or F2 to F4, the findings of this project.
#
# Rules of this part
#
# 1. The catalogue names bugs by the rule that they break (`bugs` of a rule). Where other causes break the rule as well,
#    races between the lines of a source among them, BUG_STEPS says what the bug alone does.
# 2. A bug that is not here is named by its rule alone: the event at which that fails is its step.
# 3. A field that no event reports cannot rule a step out. Nor can a trace whose beginning is not in memory.


PROPOSES = ("ExpandIsr", "ShrinkIsr")
"""Events in which a leader proposes an ISR to the controller."""
ENDS_A_ROLE = ("Start", "Stop", "Crash", "DeleteReplica")
"""Events after which a broker neither leads nor follows."""


@dataclass(frozen=True)
class Before:
    """The events of a trace, whose first row is `first`, up to and including the failing one, which is in `row`.

    `event_of` is called with a row and returns its event.
    """

    columns: Columns
    first: int
    row: int
    event_of: Callable[[int], Event]

    @property
    def failing(self) -> Event:
        """The failing event."""
        return self.event_of(self.row)

    def events(self, *names: str, least: Mapping[str, int] = MappingProxyType({})) -> list[Event]:
        """Return the events of these names; with `least` those whose fields are known and have at least these values.

        A least value of 0 leaves out -1, which is undefined.
        """
        rows = slice(self.first, self.row + 1)
        fits = np.isin(self.columns.event[rows], [EVENTS[name].code for name in names])
        for column, value in least.items():
            # No event reports the field.
            if column not in self.columns.ints:
                return []
            fits = fits & (self.columns.ints[column][rows] >= value)  # UNKNOWN is less than any value
        return [self.event_of(self.first + int(at)) for at in np.flatnonzero(fits)]

    def own(self, *names: str) -> list[Event]:
        """Return the events of these names at the node of the failing one."""
        return [event for event in self.events(*names) if event.node == self.failing.node]


def happened(bug: str, before: Before) -> bool:
    """Return whether the step of a bug comes before a failure; True if no step is known of the bug (rule 2)."""
    step = BUG_STEPS.get(bug)
    return step is None or step(before)


def _leads_again_after_another(before: Before) -> bool:
    """Look for a leader that is elected again without having followed, and missed a leader epoch in between (F2)."""
    epoch_led: dict[int, object] = {}  # by node, while it leads
    for event in before.events("BecomeLeader", "BecomeFollower", *ENDS_A_ROLE):
        if event.event != "BecomeLeader":
            epoch_led.pop(event.node, None)
            continue
        old_epoch, epoch = epoch_led.get(event.node), event.fields.get("leader_epoch")
        # Two epochs on or more: in one between another broker may have led.
        if isinstance(old_epoch, int) and isinstance(epoch, int) and epoch > old_epoch + 1:
            return True
        epoch_led[event.node] = epoch
    return False


def _erases_its_proposal(before: Before) -> bool:
    """Look for a leader that reads metadata that it already acts on while its ISR proposal is pending (F3).

    What it acts on is what it read last, or what the response to an accepted proposal said.
    """
    acts_on: dict[int, tuple[object, object]] = {}  # by node, the leader epoch and partition epoch that it has read
    proposed: set[int] = set()  # nodes with a pending proposal
    kinds = ("BecomeLeader", "BecomeFollower", "HandleAlterPartitionResponse", *PROPOSES, *ENDS_A_ROLE)
    for event in before.events(*kinds):
        node, (epoch, partition_epoch) = event.node, acts_on.get(event.node, (None, None))
        if event.event in PROPOSES:
            proposed.add(node)
        elif event.event == "HandleAlterPartitionResponse":
            proposed.discard(node)
            # An accepted proposal is a newer version of the partition.
            if event.fields.get("error") == NONE:
                acts_on[node] = epoch, event.fields.get("partition_epoch")
        elif event.event == "BecomeLeader":
            read_epoch, read_partition_epoch = event.fields.get("leader_epoch"), event.fields.get("partition_epoch")
            # The same metadata once more; an epoch that is not reported may be the same.
            if (
                node in proposed
                and read_epoch == epoch
                and (read_partition_epoch == partition_epoch or None in (read_partition_epoch, partition_epoch))
            ):
                return True
            proposed.discard(node)
            acts_on[node] = read_epoch, read_partition_epoch
        # A follower, or a process that ended, has no proposal.
        else:
            proposed.discard(node)
            acts_on.pop(node, None)
    return False


def _takes_a_role_in_between(before: Before) -> bool:
    """Look for a broker that takes a role between its proposal and the response to it (KAFKA-12686)."""
    proposed = set[int]()  # nodes that wait for the response to a proposal
    changed_role = set[int]()  # those that have taken a role since they proposed
    for event in before.events("BecomeLeader", "BecomeFollower", "HandleAlterPartitionResponse", *PROPOSES):
        if event.event in PROPOSES:
            # The response to the proposal before is not in the trace.
            if event.node in changed_role:
                return True
            proposed.add(event.node)
        elif event.event == "HandleAlterPartitionResponse":
            if event.node in changed_role:
                return True
            proposed.discard(event.node)
        elif event.node in proposed:
            changed_role.add(event.node)
    # The trace may end before the response, or leave it out.
    return bool(changed_role)


def _keeps_removed_eligible(before: Before) -> bool:
    """Look for a registration with an eligible replica that is none of its replicas (F4)."""
    old_replicas: object = None
    elr_reported = removed = False  # whether an ELR was reported at all; whether a replica was removed
    for event in before.events("ChangePartition"):
        new_replicas = event.fields.get("replicas", old_replicas)
        removed |= (
            isinstance(new_replicas, tuple)
            and isinstance(old_replicas, tuple)
            and not set(old_replicas) <= set(new_replicas)
        )
        elr, old_replicas = event.fields.get("elr"), new_replicas
        elr_reported |= elr is not None
        if isinstance(elr, tuple) and isinstance(new_replicas, tuple) and not set(elr) <= set(new_replicas):
            return True
    # Where no ELR is reported, a removed replica may have stayed in it.
    return removed and not elr_reported


def _cannot_join(before: Before) -> bool:
    """Look for a replica that may not join the ISR: its broker is fenced, or not among the live ones (KAFKA-15021)."""
    fenced: set[object] = set()  # or not live
    members: set[object] = set()  # all replicas so far
    for event in before.events("FenceBroker", "UnfenceBroker", "ChangePartition"):
        if event.event == "FenceBroker":
            fenced.add(event.fields.get("peer"))
        elif event.event == "UnfenceBroker":
            fenced.discard(event.fields.get("peer"))
        else:
            replicas, live = event.fields.get("replicas"), event.fields.get("live")
            members |= set(_nodes(replicas)) | set(_nodes(event.fields.get("isr")))
            # A trace need not report who is live.
            fenced |= members - set(_nodes(live)) if live is not None else set()
    return bool(fenced)


def _nodes(value: object) -> Iterable[object]:
    """Return the members of a field that is a set of nodes; none where it is not reported."""
    return value if isinstance(value, tuple | list | frozenset | set) else ()


def _raises_below_its_epoch(before: Before) -> bool:
    """Return whether a leader raises its high watermark before it has a record of its own epoch (KAFKA-12619).

    The high watermark is then no higher than where its epoch started; True where either is not reported.
    """
    # Without those that report that the epoch has no start; one that reports nothing about it counts, and shows nothing.
    elections = [event for event in before.own("BecomeLeader") if event.fields.get("epoch_start", 0) is not None]
    start = elections[-1].fields.get("epoch_start") if elections else None
    hw = before.failing.fields.get("hw")
    return not isinstance(start, int) or not isinstance(hw, int) or hw <= start


def _forgets_a_disk(before: Before) -> bool:
    """Look for a replica that comes back without a log that it had (KAFKA-14139)."""
    with_log: set[int] = set()  # nodes that started before, and whose replica was not deleted since
    for event in before.events("LoseDisk", "DeleteReplica", "Start"):
        starts_empty = event.event == "Start" and event.fields.get("leo") == 0
        # A log end of 0 at a start, of a broker that had a log before, is an empty disk, too.
        if event.event == "LoseDisk" or (starts_empty and event.node in with_log):
            return True
        if event.event == "DeleteReplica":
            with_log.discard(event.node)
        else:
            with_log.add(event.node)
    return False


def _takes_an_older_response(before: Before) -> bool:
    """Look for records that a follower takes from a response of another leader epoch than its own (KAFKA-18991)."""
    epochs: dict[int, object] = {}  # by node, the leader epoch in which it follows
    for event in before.events("BecomeFollower", "HandleFetchResponse"):
        if event.event == "BecomeFollower":
            epochs[event.node] = event.fields.get("leader_epoch")
        # A request without an epoch, or of a follower whose epoch is not known yet, shows nothing.
        elif "req_epoch" in event.fields and event.fields["req_epoch"] != epochs.get(event.node, event.fields["req_epoch"]):
            return True
    return False


BUG_STEPS: Mapping[str, Callable[[Before], bool]] = {
    "F2": _leads_again_after_another,
    "F3": _erases_its_proposal,
    "F4": _keeps_removed_eligible,
    "KAFKA-12619": _raises_below_its_epoch,
    "KAFKA-12686": _takes_a_role_in_between,
    "KAFKA-13091": lambda before: before.failing.event == "HandleAlterPartitionResponse",
    "KAFKA-13141": lambda before: bool(before.events("HandleFetch", least={"div_end": 0, "remote_leo": 0})),
    "KAFKA-14139": _forgets_a_disk,
    "KAFKA-15021": _cannot_join,
    "KAFKA-18991": _takes_an_older_response,
    "KAFKA-6361": lambda before: bool(before.events("HandleEpochResponse", "HandleEpochRequest")),
    "KAFKA-8400": lambda before: bool(before.events("HandleFetch", least={"error": 1, "remote_leo": -1})),
    "KIP-101": lambda before: bool(before.events("TruncateToHighWatermark")),
}
"""By name of a bug, a function that says whether its step comes before a failure. A bug without a row: rule 2.

Of two bugs the step is a fetch with a `remote_leo`, a log end that the leader recorded, though it was answered with a
divergence (`div_end` is defined) or an error (1 or more). After an error, KAFKA-8400, what is recorded is -1.
"""

"""Mutants of correct traces: one thing is changed, and the judge must reject the trace, unless it is still correct.

Rules of this file

1. A mutant differs from a trace the judge accepts by one line dropped, two neighbours swapped, one line repeated, one
   number one higher or lower, or one event twice under its number.
2. `seq` is renumbered in all but the last kind: a gap in the numbers would give every dropped line away, and the judge would
   decide nothing about it.
3. An accepted mutant is legal when it is a trace of the explored graph (validation.acceptance), or when it swaps
   events of two nodes that nothing connects: no judge may see a difference there.
4. A dropped line is also an observation the source did not make, and what is absent is free: without its number, an
   accepted one is counted as undecided. So is a mutant that leaves a check undecided which the trace decided.
5. What is none of these has survived. BY_DESIGN lists which may, and why.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tidegauge.conformance.checking.rules_outside_kernel import judge_sequence
from tidegauge.conformance.engine.judge import LOAD_FROM, judge
from tidegauge.traces.columns import to_columns
from tidegauge.traces.from_model.behaviour import numbered
from tidegauge.traces.schema import FIELDS, Config, Event, FieldKind, Trace
from validation.trace_language import Language

DROPPED, SWAPPED, REPEATED, CHANGED, ONE_NUMBER = (
    "line dropped",
    "lines swapped",
    "line repeated",
    "value changed",
    "two under one number",
)
KINDS = (DROPPED, SWAPPED, REPEATED, CHANGED, ONE_NUMBER)
REPORTED_TWICE = ("BecomeLeader", "BecomeFollower", "ChangePartition")
"""Metadata may reach a replica, and a log, twice."""
CLAIMS = ("clean",)
"""Fields that claim something instead of observing it: that nothing was lost, that an election was clean."""
RESPONSES = ("HandleFetchResponse", "HandleDivergingResponse", "HandleOutOfRange")
CAUSES = {("SendFetch", "HandleFetch"), ("SendFetch", "ExpandIsr"), *(("HandleFetch", response) for response in RESPONSES)}
"""Pairs of events at two brokers of which the first causes the second."""
OWN = ("LeaderAppend", "SendFetch", "HandleFetch", "Crash", "Start", *RESPONSES)
"""Events of brokers that no registration waits for, as far as a source can tell, and that wait for none."""

BY_DESIGN: Mapping[tuple[str, str], str] = {
    ("SendFetch", REPEATED): "a request may be lost on its way, and is sent again",
    ("HandleAlterPartitionResponse", REPEATED): "a response that commits nothing may be told twice",
    ("ExpandIsr", SWAPPED): "which of two lines of one step comes first is the source's choice",
    ("HandleFetch", SWAPPED): "a request that another overtook may be handled after it",
    ("SendFetch", SWAPPED): "a request that another overtook may be handled after it",
    ("ChangePartition", SWAPPED): "nothing in the trace says what the controller waited for",
    ("ChangePartition", CHANGED): "the last registration of a trace is believed as far as it agrees with the one before",
    ("HandleFetch", CHANGED): "a broker may refuse a request for a reason that is no part of the protocol",
    ("HandleAlterPartitionResponse", CHANGED): "the same",
    ("Start", CHANGED): "an unclean restart may lose any part of the tail",
}
"""What the judge lets pass although no path of the bounded model shows it, by event and kind, with the reason."""


@dataclass(frozen=True)
class TraceMutant:
    """A trace with one thing changed; `says` names the change."""

    kind: str
    says: str
    trace: Trace


@dataclass(frozen=True)
class MutantOutcome:
    """The outcome of a mutant: the rules that rejected it, whether it is legal, the rules it leaves less decided."""

    mutant: TraceMutant
    rules: tuple[str, ...]
    legal: bool
    open: tuple[str, ...]

    @property
    def survived(self) -> bool:
        """Whether it passed like the trace it was made from, and is no behaviour of the graph."""
        return not self.rules and not self.legal and not self.open

    @property
    def reason(self) -> str | None:
        """The known reason why it may pass all the same; None without one."""
        return BY_DESIGN.get((self.mutant.says.split()[1], self.mutant.kind))


@dataclass(frozen=True)
class Figures:
    """How many mutants of a kind were made, rejected, found to be legal behaviours, and left undecided."""

    kind: str
    made: int
    rejected: int
    legal: int
    undecided: int

    @property
    def survived(self) -> int:
        """Those that are none of these."""
        return self.made - self.rejected - self.legal - self.undecided


def mutants(trace: Trace) -> Iterator[TraceMutant]:
    """Yield every mutant of a trace."""
    events = trace.events
    for at, event in enumerate(events):
        what = f"{at + 1} {event.event}"
        yield _mutant(trace, DROPPED, what, (*events[:at], *events[at + 1 :]))
        if event.event not in REPORTED_TWICE:  # else it is a right trace
            yield _mutant(trace, REPEATED, what, (*events[: at + 1], event, *events[at + 1 :]))
        if at + 1 < len(events) and events[at + 1] != event:
            swapped = (*events[:at], events[at + 1], event, *events[at + 2 :])
            yield _mutant(trace, SWAPPED, f"{what} with {events[at + 1].event}", swapped)
        for name, value in event.fields.items():
            for other in others(name, value, trace.config):
                changed = replace(event, fields={**event.fields, name: other})
                yield _mutant(
                    trace, CHANGED, f"{what} {name} {value} to {other}", (*events[:at], changed, *events[at + 1 :])
                )
        yield TraceMutant(ONE_NUMBER, what, replace(trace, events=(*events[: at + 1], event, *events[at + 1 :])))


def _mutant(trace: Trace, kind: str, says: str, events: Sequence[Event]) -> TraceMutant:
    return TraceMutant(kind, says, replace(trace, events=numbered(events)))


def others(name: str, value: object, config: Config) -> Iterator[object]:
    """Yield the neighbours of a value: one lower, one higher.

    Another node, a set with a member more or less, the negation.
    """
    kind = FIELDS[name].kind
    if name in CLAIMS:
        return
    if kind is FieldKind.BOOL:
        yield not value
    elif kind is FieldKind.INT and isinstance(value, int):
        yield value + 1
        if value > 0:
            yield value - 1
    elif kind is FieldKind.NODE:
        yield from (node for node in (*config.nodes, None) if node != value)
    elif kind is FieldKind.NODES and isinstance(value, tuple | list):
        for node in config.nodes:
            yield tuple(n for n in config.nodes if (n in value) != (n == node))
    elif kind is FieldKind.EPOCHS and isinstance(value, tuple | list):
        for at, (epoch, start) in enumerate(value):
            yield (*value[:at], (epoch + 1, start), *value[at + 1 :])
            yield (*value[:at], (epoch, start + 1), *value[at + 1 :])


def run(traces: Iterable[Trace], language: Language) -> list[MutantOutcome]:
    """Judge all mutants of all traces."""
    out: list[MutantOutcome] = []
    for trace in traces:
        made = list(mutants(trace))
        mutated = [mutant.trace for mutant in made]
        columns = to_columns(mutated, trace.config)
        judgement = judge_sequence(judge(columns, trace.config, compile_from=LOAD_FROM * 10), mutated, columns)
        broken: dict[int, set[str]] = {}
        for failure in judgement.failures:
            broken.setdefault(failure.trace, set()).add(failure.rule)
        decided = _undecided(trace)
        for number, mutant in enumerate(made):
            rules = tuple(sorted(broken.get(number, ())))
            legal = not rules and (_unconnected(mutant, trace) or language.holds(mutant.trace.events))
            less: tuple[str, ...] = ()
            # In a real log its number would be missing, and SEQ-01 not decided; mutants are renumbered (rules 2 and 4).
            if mutant.kind == DROPPED and not rules and not legal:
                less = ("SEQ-01",)
            elif not rules and not legal:
                less = tuple(rule for rule, n in _undecided(mutant.trace).items() if n > decided[rule])
            out.append(MutantOutcome(mutant, rules, legal, less))
    return out


def _undecided(trace: Trace) -> dict[str, int]:
    """Count the checks of each rule that a trace leaves undecided."""
    judgement = judge(to_columns([trace], trace.config), trace.config)
    return {rule: tally.undecided for rule, tally in judgement.tallies.items()}


def _unconnected(mutant: TraceMutant, trace: Trace) -> bool:
    """Return whether two swapped events belong to different nodes and neither depends on the other."""
    if mutant.kind != SWAPPED:
        return False
    at = next(i for i, (old, new) in enumerate(zip(trace.events, mutant.trace.events, strict=True)) if _differ(old, new))
    one, two = trace.events[at], trace.events[at + 1]
    if one.node == two.node:
        return False
    # The controller acts on its own: only what a registration leads to must come after it.
    if trace.config.controller in (one.node, two.node):
        broker = two if one.node == trace.config.controller else one
        return broker.event in OWN
    return (one.event, two.event) not in CAUSES or one.fields.get("peer") != two.node or two.fields.get("peer") != one.node


def _differ(event: Event, other: Event) -> bool:
    return (event.node, event.event, event.fields) != (other.node, other.event, other.fields)


def figures(outcomes: Iterable[MutantOutcome]) -> list[Figures]:
    """Count the outcomes of each kind of mutant."""
    by_kind: dict[str, list[MutantOutcome]] = {kind: [] for kind in KINDS}
    for outcome in outcomes:
        by_kind[outcome.mutant.kind].append(outcome)
    return [
        Figures(
            kind, len(some), sum(bool(o.rules) for o in some), sum(o.legal for o in some), sum(bool(o.open) for o in some)
        )
        for kind, some in by_kind.items()
    ]

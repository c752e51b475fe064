"""Validate many traces against the spec in one run of TLC.

Rules of this file

1. A trace is a sequence of observations, one per step of the spec: the action, the broker, and the state of that broker
   afterwards. UNKNOWN leaves a value open; TLC looks for any behaviour that fits.
2. All traces go into one module and one run: a JVM for each would cost a second per trace.
3. The furthest matched observation of each trace is reported, so a rejected trace shows where.
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import NamedTuple

from tidegauge.spec.tlc.cfg import Cfg, named_brokers
from tidegauge.spec.tlc.graph import Label, View
from tidegauge.spec.tlc.models import Model
from tidegauge.spec.tlc.tlc import Limits, TlcOutcome, run_tlc
from tidegauge.util.errors import SpecError

UNKNOWN = -2
NONE = -1

_TLA = Path(__file__).parent / "tla"

_CONTROLLER = frozenset({"FenceBroker", "UnfenceBroker", "ElectPreferred", "AlterPartition"})
_RESPONSES = frozenset(
    {"HandleFetchResponse", "HandleDivergingResponse", "HandleOutOfRange", "HandleEpochResponse", "LoseResponse"}
)
_WITH_PEER = frozenset({"HandleFetch", "HandleEpochRequest"}) | _RESPONSES
_SENDS = frozenset({"SendFetch", "SendEpochRequest"})
_ROLES = frozenset({"BecomeLeader", "BecomeFollower", "TruncateToHighWatermark"})
_BROKER = frozenset({"LeaderAppend", "ShrinkIsr", "Crash", "Restart"}) | _ROLES | _SENDS
ACTIONS = _CONTROLLER | _WITH_PEER | _BROKER


@dataclass(frozen=True)
class StepObservation:
    """One step as far as it was observed; TraceReplication.tla defines the fields. Brokers are numbers from 0."""

    action: str
    node: int
    peer: int = UNKNOWN
    leo: int = UNKNOWN
    hw: int = UNKNOWN
    epoch: int = UNKNOWN
    leader: int = UNKNOWN
    role: int = UNKNOWN


class TlcVerdict(NamedTuple):
    """Whether the spec has a behaviour that shows the trace, and how many observations the best one matched."""

    accepted: bool
    matched: int


class Validation(NamedTuple):
    """A verdict per trace, in order, and what the run cost."""

    verdicts: tuple[TlcVerdict, ...]
    events: int
    seconds: float


def observe_behaviour(
    states: Sequence[View], labels: Sequence[Label], keep: Iterable[str] = ("leo", "hw", "epoch")
) -> list[StepObservation]:
    """Turn a path of views and labels into observations with the fields in `keep`, and node and peer always."""
    names = set(keep)
    unknown = names - {field.name for field in fields(StepObservation)}
    if unknown:
        raise SpecError(f"expected fields of an observation, seen {', '.join(sorted(unknown))}")
    seen: list[StepObservation] = []
    for label, (brokers, controller, _, _) in zip(labels, states[1:], strict=True):
        name, first, *rest = label
        if name in _CONTROLLER:
            reported = {"epoch": controller[1], "leader": controller[0]}
            # An action of the controller concerns one broker, which the spec has as the peer.
            node, peer = NONE, first
        else:
            log, hw, _, _, role, epoch, leader, *_ = brokers[first]
            reported = {"leo": len(log), "hw": hw, "epoch": epoch, "leader": leader, "role": role}
            node, peer = first, rest[0] if name in _WITH_PEER else UNKNOWN
        seen.append(
            StepObservation(name, node, peer, **{field: value for field, value in reported.items() if field in names})
        )
    return seen


def _written(traces: Sequence[Sequence[StepObservation]]) -> str:
    names = [field.name for field in fields(StepObservation)]

    def record(observation: StepObservation) -> str:
        if observation.action not in ACTIONS:
            raise SpecError(
                f"expected an action of Replication.tla, one of {', '.join(sorted(ACTIONS))}; seen {observation.action!r}"
            )
        pairs = zip(names, astuple(observation), strict=True)
        return "[" + ", ".join(f"{name} |-> {json.dumps(value)}" for name, value in pairs) + "]"

    body = ",\n".join("  <<" + ",\n    ".join(map(record, trace)) + ">>" for trace in traces)
    return f"---- MODULE Traces ----\nEXTENDS Integers\nTraces == <<\n{body}\n>>\n====\n"


def trace_config(model: Model, brokers: int, **constants: int) -> Cfg:
    """Return the cfg of `model` for traces of so many brokers, without its checks; other constants if given (MaxFetch=4)."""
    if not 1 <= brokers <= 3:
        raise SpecError(f"expected 1 to 3 brokers, as MCReplication.tla names three; seen {brokers}")
    config = model.config(**constants).without_properties().with_constants(Broker=named_brokers(brokers))
    return config._replace(specification="TraceSpec")


def _modules(root: str, written: str, text: str) -> dict[str, str]:
    """Return the modules that TLC reads beside those of the spec: the one that it runs, and the one with the traces."""
    return {f"{root}.tla": (_TLA / f"{root}.tla").read_text(encoding="utf-8"), f"{written}.tla": text}


def validate_traces(
    traces: Sequence[Sequence[StepObservation]], model: Model, *, brokers: int = 2, limits: Limits | None = None
) -> Validation:
    """Ask TLC which traces the spec allows under the profile of `model`. Raises SpecError when TLC has no verdict."""
    if not traces:
        raise SpecError("expected at least one trace to validate, seen none")
    furthest = [0] * len(traces)

    def take(line: str) -> None:
        # TLC prints each observation that it matches, in any order: the furthest counts.
        number, position = json.loads(line.strip('"').replace("<<", "[").replace(">>", "]"))
        furthest[number - 1] = max(furthest[number - 1], position)

    started = time.monotonic()
    result = run_tlc(
        "TraceReplication",
        trace_config(model, brokers).text(),
        extra_modules=_modules("TraceReplication", "Traces", _written(traces)),
        limits=limits,
        on_line=take,
    )
    if result.outcome is not TlcOutcome.SUCCESS:
        raise SpecError(f"expected TLC to try the traces, seen {result.outcome.value}: {result.message}")
    verdicts = tuple(TlcVerdict(reached == len(trace), reached) for reached, trace in zip(furthest, traces, strict=True))
    return Validation(verdicts, sum(map(len, traces)), time.monotonic() - started)


# Traces of schema v1 validated against the spec: TLC decides which of them the spec can produce. It is the oracle that the
# judge is compared with.
#
# 1. TraceEvents.tla defines the events of a step. Nothing here knows an action: an event is a node, a name and numbers.
# 2. All traces go into one prefix tree and one run: a common prefix is tried once, so a mutant of a trace costs no more than
# the events after the change.
# 3. The furthest event that was reached is reported, so a rejected trace shows where.


EventValue = int | tuple[tuple[int, int], ...]
"""A number, a bit mask, or the entries of an epoch cache."""


class Reported(NamedTuple):
    """An event as TraceEvents.tla reads it: the number of its node, its name, its fields."""

    node: int
    event: str
    fields: Mapping[str, EventValue]


class _Tree:
    """A prefix tree with nodes from 1; `paths` has, for each trace, the node that each of its events leads to."""

    def __init__(self, traces: Sequence[Sequence[Reported]]) -> None:
        self.events: dict[str, int] = {}
        self.children: list[dict[int, int]] = [{}]
        self.paths = [self._path(trace) for trace in traces]

    def _path(self, trace: Sequence[Reported]) -> list[int]:
        path: list[int] = []
        node = 1
        for reported in trace:
            # Equal events of all traces are one constant: TLC parses and compares them once.
            number = self.events.setdefault(_record(reported), len(self.events) + 1)
            following = self.children[node - 1].get(number)
            if following is None:
                self.children.append({})
                following = self.children[node - 1][number] = len(self.children)
            node = following
            path.append(node)
        return path

    def module(self, truncations: bool) -> str:
        events = ",\n".join(f"  {event}" for event in self.events)
        children = ",\n".join("  {" + ", ".join(f"<<{e}, {n}>>" for e, n in c.items()) + "}" for c in self.children)
        return (
            f"---- MODULE TraceTree ----\nEXTENDS Integers\nEvents == <<\n{events}\n>>\nChildren == <<\n{children}\n>>\n"
            f"TruncatesAtHighWatermark == {str(truncations).upper()}\n====\n"
        )


def _record(reported: Reported) -> str:
    fields = ", ".join(f"{name} |-> {_value(value)}" for name, value in sorted(reported.fields.items()))
    return f'[node |-> {reported.node}, event |-> "{reported.event}", fields |-> {f"[{fields}]" if fields else "<<>>"}]'


def _value(value: EventValue) -> str:
    if isinstance(value, tuple):
        return "<<" + ", ".join(f"<<{epoch}, {start}>>" for epoch, start in value) + ">>"
    return str(value)


def validate_events(
    traces: Sequence[Sequence[Reported]], model: Model, *, brokers: int, max_fetch: int = 1, limits: Limits | None = None
) -> Validation:
    """Ask TLC which traces the spec can produce under the profile of `model`. Raises SpecError when TLC has no verdict.

    `max_fetch`: records in one response, at most. `matched` in a verdict counts events.
    """
    if not traces or not all(traces):
        raise SpecError("expected traces with events to validate, seen none: leave empty ones out")
    tree = _Tree(traces)
    reached: set[int] = set()
    started = time.monotonic()
    result = run_tlc(
        "TraceEvents",
        trace_config(model, brokers, MaxFetch=max_fetch).text(),
        extra_modules=_modules(
            "TraceEvents", "TraceTree", tree.module("TruncateOnBecomeFollower" in model.config().substitutions)
        ),
        limits=limits,
        on_line=lambda line: reached.add(int(line.strip("<> "))),
    )
    if result.outcome is not TlcOutcome.SUCCESS:
        raise SpecError(f"expected TLC to try the traces, seen {result.outcome.value}: {result.message}")
    # A node of the tree is reached only by way of those before it, so the count is the length of the matched prefix.
    verdicts = tuple(TlcVerdict(path[-1] in reached, sum(node in reached for node in path)) for path in tree.paths)
    return Validation(verdicts, sum(map(len, traces)), time.monotonic() - started)

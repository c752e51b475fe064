"""The golden traces: short behaviours of the reference that between them take every action, and runs that break a rule.

Rules of this file

1. They are made, not written: each is a shortest path of the explored graph to a step worth showing, a shortest run of a
   faulty variant to a broken invariant, or a run of a finding at the controller, as Kafka is and repaired. traces/golden/
   holds them as NDJSON; a test makes them again and compares. `python -m validation.golden` writes them
   anew, or into the directory it is given.
2. A trace that must fail names the rules it breaks in its Config, under `breaks`.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from tidegauge.conformance.engine.judge import judge
from tidegauge.impl.cluster.cluster import Bounds
from tidegauge.impl.explorer import faults
from tidegauge.impl.explorer.explore import Graph, explore, find_violation
from tidegauge.impl.explorer.invariants import INVARIANTS
from tidegauge.impl.explorer.spec_view import view
from tidegauge.traces.columns import to_columns
from tidegauge.traces.formats import ndjson
from tidegauge.traces.from_model.behaviour import trace_of_path
from tidegauge.traces.from_model.views import LEADER, BrokerView, Label, View, broker, controller
from tidegauge.traces.from_model.walks import EdgeTable, edge_table
from tidegauge.traces.schema import Trace
from validation import controller_scenarios

DIRECTORY = Path(str(files("tidegauge.traces"))) / "golden"

SMALL = Bounds(brokers=2, max_log=2, max_epoch=1, max_crashes=1)
EPOCHS = Bounds(brokers=2, max_log=1, max_epoch=3, max_crashes=0)
RETURNS = Bounds(brokers=2, max_log=1, max_epoch=2, max_crashes=1)
ASKED = Bounds(brokers=2, max_log=1, max_epoch=1, max_crashes=0)
ELIGIBLE = Bounds(brokers=2, max_log=1, max_epoch=0, max_crashes=1, min_insync_replicas=2)


class StoryStep(NamedTuple):
    """A step of a path: the broker that acts, before and after, and the controller likewise."""

    src: View
    label: Label
    dst: View

    @property
    def before(self) -> BrokerView:
        """The broker named first in the label."""
        return broker(self.src, self.label[1])

    @property
    def after(self) -> BrokerView:
        """The same broker afterwards."""
        return broker(self.dst, self.label[1])

    @property
    def truncated(self) -> int:
        """How many records it lost."""
        return self.before.leo - self.after.leo


Shown = Callable[[StoryStep], bool]


def _requested_epoch(step: StoryStep) -> int:
    """Return the leader epoch in the request that is handled."""
    return int(broker(step.src, step.label[2]).slots[step.label[1]][1])


def _missed(step: StoryStep) -> bool:
    """Return whether a leader learns that it leads again without having seen the leader in between."""
    return step.before.role == LEADER and step.after.epoch > step.before.epoch + 1


@dataclass(frozen=True)
class Story:
    """A step worth showing: the action, and what must be true of it."""

    name: str
    action: str
    shown: Shown
    bounds: Bounds = SMALL
    profile: str = "fetch-truncation"


STORIES = (
    Story("commit", "HandleFetchResponse", lambda step: step.after.hw == 2),
    Story("send-after-refusal", "SendFetch", lambda step: step.before.epoch == 1),
    Story("fenced-fetch", "HandleFetch", lambda step: step.before.epoch > _requested_epoch(step)),
    Story("diverging-truncation", "HandleDivergingResponse", lambda step: step.truncated > 0),
    Story("truncation-to-nothing", "HandleDivergingResponse", lambda step: step.truncated == 2),
    Story("lost-response", "LoseResponse", lambda step: step.after.leo == 1),
    Story("isr-shrinks", "ShrinkIsr", lambda step: step.before.leo > 0),
    Story("isr-grows-again", "AlterPartition", lambda step: controller(step.dst).isr > controller(step.src).isr),
    Story("isr-growth-refused", "AlterPartition", lambda step: controller(step.src) == controller(step.dst)),
    Story("leaderless", "FenceBroker", lambda step: controller(step.dst).leader == -1),
    Story("leader-returns", "UnfenceBroker", lambda step: controller(step.src).leader == -1, RETURNS),
    Story("crash-with-old-checkpoint", "Restart", lambda step: step.before.leo == 2),
    Story("ex-leader-follows", "BecomeFollower", lambda step: step.before.role == LEADER),
    Story("preferred-leader", "ElectPreferred", lambda step: controller(step.src).epoch == 1, EPOCHS),
    Story("second-round", "HandleDivergingResponse", lambda step: step.truncated == 0 and step.before.mark >= 0, EPOCHS),
    Story("epoch-missed", "BecomeLeader", _missed, EPOCHS),
    Story("append", "LeaderAppend", lambda step: step.before.epoch == 1),
    Story("crash", "Crash", lambda step: step.before.role == LEADER),
    Story("out-of-range", "HandleOutOfRange", lambda step: step.truncated > 0, SMALL, "hw-only"),
    Story("epoch-response-truncation", "HandleEpochResponse", lambda step: step.truncated > 0, ASKED, "kip320"),
    Story("stop-in-order", "Register", lambda step: step.before.leo == 1, ELIGIBLE, "elr"),
)

WITNESSES = ("no-divergence-check", "response-of-any-epoch", "hw-is-own-log-end", "joins-at-epoch-start", "hw-not-clamped")
"""Faults whose shortest run to a broken invariant is kept."""


def golden_traces(
    stories: Sequence[Story] = STORIES, witnesses: Sequence[str] = WITNESSES, findings: Sequence[str] | None = None
) -> Iterator[Trace]:
    """Yield all golden traces in this order, or some; always the shortest loss of hw-only.

    `findings` are models of the controller whose runs are played (validation.controller_scenarios).
    """
    graphs: dict[tuple[Bounds, str], tuple[Graph, EdgeTable]] = {}
    for story in stories:
        key = (story.bounds, story.profile)
        if key not in graphs:
            graph = explore(*key)
            graphs[key] = graph, edge_table(graph.states, graph.labels, graph.edges, story.profile)
        yield named(_shortest(*graphs[key], story))
    yield named(_witness("hw-only-loses-committed", SMALL, "hw-only", None, ("LeaderCompleteness",)))
    for name in witnesses:
        fault = faults.FAULTS[name]
        yield named(_witness(name, fault.bounds, "fetch-truncation", fault.rules))
    for model, repaired in controller_scenarios.shown():
        if findings is None or model.name in findings:
            trace = _judged(controller_scenarios.trace_of(model, repaired=repaired))
            # finding_table finds the trace by either name, so the name must agree with the verdict.
            fails = "breaks" in trace.config.extra
            yield named(replace(trace, name=f"fails-{trace.name}") if fails else trace)


def _shortest(graph: Graph, table: EdgeTable, story: Story) -> Trace:
    """Return the shortest path that ends with a step of the story; of several the first in the graph's order."""
    best: int | None = None
    for edge, (source, target) in enumerate(zip(table.source.tolist(), table.target.tolist(), strict=True)):
        label = graph.labels[int(table.label_of[edge])]
        # Strictly nearer, so that the first of the shortest is kept: golden files must not change with a sort.
        nearer = best is None or table.depth[source] < table.depth[table.source[best]]
        if nearer and label[0] == story.action and story.shown(StoryStep(graph.states[source], label, graph.states[target])):
            best = edge
    if best is None:
        raise LookupError(f"expected a {story.action} that shows {story.name}, seen none in the graph; widen its bounds")
    # Back along the parents of the breadth-first search, which are on shortest paths.
    edges = [best]
    while table.source[edges[-1]] != 0:
        edges.append(int(table.parent[table.source[edges[-1]]]))
    edges.reverse()
    states = [graph.states[0], *(graph.states[int(table.target[edge])] for edge in edges)]
    labels = [graph.labels[int(table.label_of[edge])] for edge in edges]
    min_isr = story.bounds.min_insync_replicas
    return _judged(trace_of_path(states, labels, story.name, story.profile, "impl", min_isr=min_isr))


def _witness(name: str, bounds: Bounds, profile: str, rules: Any, invariants: Sequence[str] = tuple(INVARIANTS)) -> Trace:
    violation = find_violation(bounds, profile, rules, invariants)
    if violation is None:
        raise LookupError(f"expected {name} to break an invariant, seen none broken; widen its bounds")
    states = [view(cluster) for cluster in violation.states]
    return _judged(trace_of_path(states, violation.labels, f"fails-{name}", profile, "impl"))


def _judged(trace: Trace) -> Trace:
    """Return the trace with the rules that it breaks, if any, in its config."""
    broken = judge(to_columns([trace], trace.config), trace.config).failures
    if not broken:
        return trace
    extra = {**trace.config.extra, "breaks": sorted({failure.rule for failure in broken})}
    return replace(trace, config=replace(trace.config, extra=extra))


def named(trace: Trace) -> Trace:
    """Return the trace with its golden name."""
    return replace(trace, name=f"golden/{trace.name}")


def file_of(trace: Trace, directory: Path = DIRECTORY) -> Path:
    """Return where a golden trace is kept."""
    return directory / f"{trace.name.removeprefix('golden/')}.ndjson"


def main(argv: Sequence[str] = ()) -> int:
    """Make all golden traces again."""
    directory = Path(argv[0]) if argv else DIRECTORY
    directory.mkdir(parents=True, exist_ok=True)
    written = 0
    for trace in golden_traces():
        ndjson.write([trace], file_of(trace, directory))
        written += 1
    print(f"{directory}: {written} golden traces written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

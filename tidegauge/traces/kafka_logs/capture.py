"""A directory of broker logs -> one trace per topic-partition: the passes of `passes.py`, then one order per partition."""

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import NamedTuple

from tidegauge.impl.profiles import ELR, FETCH_TRUNCATION
from tidegauge.impl.releases import profile_of_release, release_of_version
from tidegauge.traces.kafka_logs.correlation.log_coverage import (
    CaptureGaps,
    NodeCoverage,
    missing,
    node_coverage,
    uncertain_intervals,
)
from tidegauge.traces.kafka_logs.correlation.merge import Merged, ahead, merge
from tidegauge.traces.kafka_logs.discovery.clusters import find_clusters
from tidegauge.traces.kafka_logs.discovery.files import FoundLogs
from tidegauge.traces.kafka_logs.discovery.selection import Selection
from tidegauge.traces.kafka_logs.disks.disk import read_disks, read_dumps
from tidegauge.traces.kafka_logs.nodes.gap_detection import AFTER_ALL_LINES, Gap
from tidegauge.traces.kafka_logs.nodes.logged_broker import OF_A_CONTROLLER, LoggedStep
from tidegauge.traces.kafka_logs.nodes.node import Node, node_of
from tidegauge.traces.kafka_logs.nodes.process import DEFAULT_MIN_ISR
from tidegauge.traces.kafka_logs.parsing.layout import DOCUMENTED, KAFKAS
from tidegauge.traces.kafka_logs.parsing.lines import clock
from tidegauge.traces.kafka_logs.passes import NO_CARRY_OVER, PASSES, CarryOver, Reading
from tidegauge.traces.problems import Problem, counted
from tidegauge.traces.schema import EVENTS, FIELDS, REASSIGNED, Config, Event, FieldKind, Trace
from tidegauge.util.errors import UsageError

UNREPORTED = frozenset({"SendEpochRequest", "HandleEpochResponse", "HwCheckpoint", "UnfenceBroker"})
REPORTED = [name for name in EVENTS if name not in UNREPORTED]
"""Events that logs report. A follower logs no OffsetsForLeaderEpoch request: the request log of its leader has it.

One line reports that a broker is unfenced; if it is lost, no other line shows it.
"""


_NAMES_NODES = {
    name: [one for one in (*event.fields, *event.carried) if FIELDS[one].kind in (FieldKind.NODE, FieldKind.NODES)]
    for name, event in EVENTS.items()
}
"""By event, the fields that name nodes."""

NAMED = 5
"""Files that a note names; the others are counted."""


# A topic that is deleted and created again under the same name is another topic: its partitions are separate traces.
#
# 1. Topics are distinguished by their ids (KIP-516), which brokers log as they create a partition and the controller as it
#    registers one. A line about a partition belongs to the topic id that its node named last; a request names its own.
# 2. Topics of one name are ordered as in the log of the node that names most of them.


class Generation(NamedTuple):
    """A partition of the `number`-th of `of` topics with the same name."""

    tp: str
    number: int
    of: int
    topic_id: str | None

    def __str__(self) -> str:
        return self.tp if self.of == 1 else f"{self.tp} (topic id {self.topic_id})"


def by_generation(nodes: Sequence[Node], tps: Iterable[str]) -> Mapping[Generation, list[LoggedStep]]:
    """Group the steps of all nodes by partition and topic id, in order; other partitions are skipped.

    A topic that is deleted and created again has another id: the partition of each is a generation of its own.
    """
    tps = frozenset(tps)
    ids = {topic: _in_order([_ids(node.broker.named, topic) for node in nodes]) for topic in map(topic_of, tps)}
    steps_by_generation: dict[Generation, list[LoggedStep]] = {}
    for tp in sorted(tps):
        topic_ids = ids[topic_of(tp)]
        for number in range(max(1, len(topic_ids))):
            steps_by_generation[
                Generation(tp, number, max(1, len(topic_ids)), topic_ids[number] if topic_ids else None)
            ] = []
    # Of most topics there is one: then every step of a partition is of it.
    only = {generation.tp: steps for generation, steps in steps_by_generation.items() if generation.of == 1}
    for node in nodes:
        for step in node.broker.steps:
            steps = only.get(step.tp)
            if steps is not None:
                steps.append(step)
                continue
            if step.tp not in tps:
                continue
            topic_ids = ids[topic_of(step.tp)]
            # Before its node names an id, a step belongs to the oldest topic.
            named = step.topic_id
            if named not in topic_ids:
                named = node.broker.topic_named(topic_of(step.tp), step.place)
            number = topic_ids.index(named) if named in topic_ids else 0
            steps_by_generation[
                Generation(step.tp, number, max(1, len(topic_ids)), topic_ids[number] if topic_ids else None)
            ].append(step)
    return {generation: steps for generation, steps in steps_by_generation.items() if steps}


def topic_of(tp: str) -> str:
    """Return the topic of a partition; topics may contain "-" themselves."""
    return tp.rpartition("-")[0]


def _in_order(by_node: Iterable[list[str]]) -> list[str]:
    """Return all ids of one topic, each once."""
    # The node that names most ids was there for every creation: its order is the order of the topics. An id that it does not
    # name is still another topic.
    return list(dict.fromkeys(topic_id for of_node in sorted(by_node, key=len, reverse=True) for topic_id in of_node))


def _ids(named: Mapping[str, Sequence[tuple[tuple[int, int], str]]], topic: str) -> list[str]:
    return list(dict.fromkeys(topic_id for _, topic_id in named.get(topic, ())))


@dataclass(frozen=True)
class Summary:
    """What was read, and how certain the order is.

    `unexplained` are responses whose high watermark no place in their time window explains. `concurrent` are pairs of a
    commit and a possible loss on two nodes that only clocks order. `checks` counts by rule the checks that hold in any order
    of a replica's lines (False), and those that depend on it (True). `unlogged` are appends of killed processes and failed
    directories that only the next load of their logs shows. `layouts` counts the files by layout, `passed_over`
    names the files that were not read.
    """

    nodes: tuple[int, ...]
    controller: int | None
    release: str
    lines: int = 0
    understood: int = 0
    requests: int = 0
    fetches_matched: int = 0
    fetches_unmatched: int = 0
    events: int = 0
    ties: int = 0
    ties_dropped: int = 0
    concurrent: int = 0
    moved: int = 0
    unexplained: int = 0
    checks: Mapping[tuple[str, bool], int] = field(default_factory=dict)
    unlogged: tuple[str, ...] = ()
    layouts: Mapping[str, int] = field(default_factory=dict)
    passed_over: tuple[str, ...] = ()

    def notes(self) -> Iterator[str]:
        """Yield notes on how files were read, except for the documented layouts."""
        for layout, files in sorted(self.layouts.items()):
            if layout not in (DOCUMENTED, KAFKAS):
                yield f"{counted(files, 'file')} written as {layout}"
        if KAFKAS in self.layouts:
            without = counted(self.layouts[KAFKAS], "file")
            yield f"{without} without the thread of each line: some rules cannot be decided"
        if self.unlogged:
            why = "by a process that was killed or a directory that failed; the log shows it when it is loaded"
            yield f"{counted(len(self.unlogged), 'append')} without a line, {why}: {_named(self.unlogged)}"
        if self.passed_over:
            yield f"{counted(len(self.passed_over), 'file')} passed over: {_named(self.passed_over)}"


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (", .." if len(names) > NAMED else "")


def _extent(step: LoggedStep) -> str:
    """Return which records a step appended, and behind which line."""
    return f"{step.tp} {step.fields['leo_before']} to {step.fields['leo']} (behind {step.at})"


@dataclass(frozen=True)
class Capture:
    """The traces of one cluster, with problems, gaps and coverage.

    `gaps` are where lines are missing; `uncertain`, by the name of a trace, between which of its events each gap lies.
    `coverage` and `missing` show how much of what happened the logs have.
    """

    traces: list[Trace]
    problems: list[Problem]
    summary: Summary
    gaps: tuple[Gap, ...] = ()
    coverage: tuple[NodeCoverage, ...] = ()
    missing: tuple[str, ...] = ()
    uncertain: Mapping[str, Sequence[tuple[tuple[int, int], Gap]]] = field(default_factory=dict)
    cluster: str = ""
    """The folder of its logs, if there are several clusters."""
    known: CarryOver = NO_CARRY_OVER
    """What the next window may use."""


def read_all(directory: str | Path, layout: str | None = None, selection: Selection | None = None) -> list[Capture]:
    """Read a capture for each cluster whose logs are under `directory` (or in one file).

    `layout` is a pattern of log4j2, `selection` the part of the logs that is read.
    """
    with _collecting_nothing():
        return _read_all(Path(directory), layout, selection)


@contextmanager
def _collecting_nothing() -> Iterator[None]:
    """Switch the collector of cycles off: it would look through all steps again and again (a quarter of the time)."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            # What was read is then old: a collection of what is young, which comes at once, does not look through it.
            gc.freeze()
            gc.enable()
            gc.unfreeze()


def _read_all(folder: Path, layout: str | None, selection: Selection | None) -> list[Capture]:
    """Read every cluster in a folder; without text logs, what its disks or dumps of segments show."""
    clusters = find_clusters(folder, layout, selection)
    if not any(cluster.nodes for cluster in clusters):
        # Log directories without text logs are a capture, too. Problems alone make one only where nothing else is to try.
        for read_replicas in (read_disks, read_dumps):
            replicas, of_disks = read_replicas(folder)
            if replicas or (of_disks and read_replicas is read_dumps):
                return [Capture(replicas, of_disks, _of_disks(replicas))]
    return [capture_of("/".join((folder.name, cluster.name)).rstrip("/"), cluster) for cluster in clusters]


def read(directory: str | Path, layout: str | None = None, selection: Selection | None = None) -> Capture:
    """Read the logs of the first cluster under `directory`."""
    return read_all(directory, layout, selection)[0]


def capture_of(name: str, logs: FoundLogs, before: CarryOver = NO_CARRY_OVER) -> Capture:
    """Make the capture of one cluster; `before` is what was known before these lines."""
    selection = logs.selection
    reading = Reading([node_of(files) for files in logs.nodes], logs.problems, selection=selection, before=before)
    for one_pass in PASSES:
        one_pass(reading)
    nodes, controller = reading.nodes, reading.controller
    tps = {step.tp for node in nodes for step in node.broker.steps}
    wanted = tps if selection is None else {tp for tp in tps if selection.wants(tp)}
    merged = {generation: merge(steps) for generation, steps in by_generation(nodes, wanted).items()}
    # In a combined process the controller has replicas of its own: it stays among the brokers.
    both_roles = controller is not None and any(node.id == controller.id and node.has_replicas for node in nodes)
    release = ", ".join(sorted({node.broker.version for node in nodes if node.broker.version}))
    cluster = Config(
        nodes=(),
        profile=_profile(nodes),
        min_isr=DEFAULT_MIN_ISR,
        lag_rule=True,
        controller=None if controller is None else controller.id,
        source=f"Kafka {release} broker logs".replace("  ", " "),
        extra={"release": release, "reports": REPORTED},
    )
    traces = [
        _trace(name, generation, one, reading, cluster, None if both_roles else cluster.controller)
        for generation, one in merged.items()
    ]
    brokers = {broker for trace in traces for broker in trace.config.nodes}
    # Only a gap that ends nowhere asks for clocks.
    endless = any(gap.end == AFTER_ALL_LINES for gap in reading.gaps)
    clocks = ahead(step for node in nodes for step in node.broker.steps) if endless else {}
    gaps = CaptureGaps(reading.gaps)
    uncertain = {
        trace.name: uncertain_intervals(gaps, one.steps, clocks, before.seen_until)
        for trace, one in zip(traces, merged.values(), strict=True)
    }
    # Consumers fetch as replica -1; no line of a broker sends their requests.
    followers = sum(1 for of_leader in reading.fetches.values() for fetch in of_leader if fetch.replica >= 0)
    captured = Capture(
        traces,
        reading.problems,
        Summary(
            nodes=tuple(node.id for node in nodes),
            controller=None if controller is None else controller.id,
            release=release,
            lines=sum(len(node.lines) for node in nodes),
            understood=sum(node.kinds.total() for node in nodes),
            requests=sum(len(node.requests) for node in nodes),
            fetches_matched=len(reading.matched),
            fetches_unmatched=followers - len(reading.matched),
            events=sum(len(trace.events) for trace in traces),
            ties=sum(one.ties for one in merged.values()),
            ties_dropped=sum(one.dropped for one in merged.values()),
            concurrent=sum(one.concurrent for one in merged.values()),
            moved=reading.moved,
            unexplained=reading.unexplained,
            checks=reading.checks,
            unlogged=tuple(_extent(step) for node in nodes for step in node.broker.unlogged),
            layouts=logs.layouts,
            passed_over=tuple(logs.passed_over),
        ),
        gaps=tuple(reading.gaps),
        coverage=node_coverage(nodes, reading.gaps),
        missing=(*missing(nodes, controller, reading.gaps, brokers, logs.nameless), *logs.not_judged),
        uncertain=uncertain,
        cluster=logs.name,
        known=before.and_(nodes, reading.names),
    )
    for node in nodes:
        # A fetch and its response refer to each other, and the collector, which would find that out, looks seldom.
        for step in node.broker.steps:
            step.response = None
        node.broker.steps.clear()
    return captured


def _of_disks(replicas: Sequence[Trace]) -> Summary:
    """Summarize replicas that were read from disks only."""
    nodes = sorted({node for trace in replicas for node in trace.config.nodes})
    events = sum(len(trace.events) for trace in replicas)
    return Summary(tuple(nodes), None, "", events=events)


def _profile(nodes: Sequence[Node]) -> str:
    """Choose the profile of today's Kafka; where brokers' logs name different releases, each broker has that of its own."""
    cluster, own = _profile_of_cluster(nodes), {}
    for node in nodes:
        release = release_of_version(node.broker.version).release if node.broker.version and node.has_replicas else ""
        # A release before the first that is known has no profile: its broker is judged as today's, as the others are.
        with suppress(UsageError):
            own[node.id] = profile_of_release(release).name
    # With one release, and of a broker that was upgraded meanwhile, the logs do not say how each event came about.
    if len(set(own.values())) > 1:
        own = {node.id: own[node.id] for node in nodes if node.id in own and not node.broker.upgraded}
        return ",".join([cluster, *(f"{node}={profile}" for node, profile in own.items())])
    return cluster


def _profile_of_cluster(nodes: Sequence[Node]) -> str:
    """Choose the profile: since 4.1 new clusters keep eligible leader replicas (KIP-966), and an ISR may be empty."""
    # The line that names the release may be lost; a change that names the ELR shows the same.
    if any(node.controller.keeps_elr for node in nodes):
        return ELR.name
    for node in nodes:
        with suppress(UsageError):
            if profile_of_release(node.broker.version).elr:
                return ELR.name
    return FETCH_TRUNCATION.name


def _trace(name: str, generation: Generation, merged: Merged, reading: Reading, cluster: Config, apart: int | None) -> Trace:
    """Return the trace of a partition: its config, from what all nodes logged, and its events with numbers by node.

    `cluster` is what all have in common, `apart` a controller that is no broker.
    """
    tp, controller, nodes = generation.tp, cluster.controller, reading.nodes
    # Another controller of the quorum may have judged a proposal: in a trace they are one.
    actors = [step.node if controller is None or step.name not in OF_A_CONTROLLER else controller for step in merged.steps]
    brokers = {*actors, *next((node.controller.replicas[tp] for node in nodes[::-1] if tp in node.controller.replicas), ())}
    # Many steps share their fields.
    different = {id(step.fields): step for step in merged.steps}.values()
    for value in {step.fields.get(name) for step in different for name in _NAMES_NODES[step.name]}:
        if isinstance(value, tuple):
            brokers.update(value)
        elif isinstance(value, int):
            brokers.add(value)
    brokers -= {apart}
    min_isr = next((node.broker.min_isr[tp] for node in nodes if tp in node.broker.min_isr), DEFAULT_MIN_ISR)
    assigned = [step.fields.get("replicas") for step in merged.steps if step.name == "ChangePartition"]
    # Only a trace in which every change names all brokers as replicas was surely not reassigned.
    stays = assigned and all(isinstance(replicas, tuple) and set(replicas) == brokers for replicas in assigned)
    topic_id = generation.topic_id or next(
        (named_id for named_id, topic in reading.names.items() if topic == topic_of(tp)), None
    )
    config = replace(
        cluster,
        nodes=tuple(sorted(brokers)),
        min_isr=min_isr,
        extra={
            **cluster.extra,
            **({} if stays else {REASSIGNED: True}),  # the lines may not show who was a replica when
            **({} if topic_id is None else {"topic_id": topic_id}),
        },
    )
    number = {actor: count().__next__ for actor in set(actors)}
    events = [
        Event(actor, step.name, step.fields, number[actor](), clock(step.time), None, step.at)
        for actor, step in zip(actors, merged.steps, strict=True)
    ]
    return Trace(f"{name}/{generation}", tp, config, tuple(events))


# The captures that come with the project.


FOLDER = Path(__file__).parent.parent / "captures"


def shipped() -> dict[str, Path]:
    """Every capture by name (`4.2.0/b-kill-leader`), sorted."""
    return {folder.relative_to(FOLDER).as_posix(): folder for folder in sorted(FOLDER.glob("*/*")) if folder.is_dir()}

"""Read a directory of broker logs as a Capture per cluster, with a trace (the events in one order) per topic-partition.

The passes of `passes.py` turn the lines of each node into LoggedSteps: events in the making, with their partition `tp` and
their place in the log of their node. correlation/merge.py puts the steps of all nodes on one partition in one order.

A *node* is a broker, a controller or both. A *gap* is a stretch of a node's log in which lines are missing: what is judged
there is undecided. Logs that grow are read in *windows* (growing_capture.py): CarryOver is what older windows showed.
"""

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
from tidegauge.traces.kafka_logs.nodes.logged_broker import OF_A_CONTROLLER, LoggedStep
from tidegauge.traces.kafka_logs.nodes.node import Node, node_of
from tidegauge.traces.kafka_logs.nodes.process import DEFAULT_MIN_ISR
from tidegauge.traces.kafka_logs.parsing.layout import DOCUMENTED, KAFKAS
from tidegauge.traces.kafka_logs.parsing.lines import AFTER_ALL_LINES, Gap, clock
from tidegauge.traces.kafka_logs.passes import NO_CARRY_OVER, PASSES, CarryOver, Reading
from tidegauge.traces.problems import Problem, counted
from tidegauge.traces.schema import EVENTS, FIELDS, REASSIGNED, TOPIC_ID, Config, Event, FieldKind, Trace
from tidegauge.util.errors import UsageError

UNREPORTED = frozenset({"SendEpochRequest", "HandleEpochResponse", "HwCheckpoint", "UnfenceBroker"})
REPORTED = [name for name in EVENTS if name not in UNREPORTED]
"""Events that did not happen if logs do not report them. A follower logs no OffsetsForLeaderEpoch request: the request log
of its leader has it. That a broker is unfenced is one line; if it is lost, no other line shows it."""


_NAMES_NODES = {
    name: [key for key in (*event.fields, *event.carried) if FIELDS[key].kind in (FieldKind.NODE, FieldKind.NODES)]
    for name, event in EVENTS.items()
}
"""By event, the fields whose value is a node id or a tuple of them."""

NAMES_SHOWN = 5
"""Names that a note lists; `..` stands for the others."""


# A topic that is deleted and created again under the same name is another topic: its partitions are separate traces.
#
# 1. Topics are distinguished by their ids (KIP-516), which brokers log as they create a partition and the controller as it
#    registers one. A line about a partition belongs to the topic id that its node named last; a request names its own.
# 2. Topics of one name are ordered as in the log of the node that names most of them.


class Generation(NamedTuple):
    """A partition of the `number`-th (from 0) of `topics` topics with one name; `topic_id` is None if no line names one."""

    tp: str
    number: int
    topics: int
    topic_id: str | None

    def __str__(self) -> str:
        return self.tp if self.topics == 1 else f"{self.tp} (topic id {self.topic_id})"


def by_generation(nodes: Sequence[Node], tps: Iterable[str]) -> Mapping[Generation, list[LoggedStep]]:
    """Group the steps of all nodes on the partitions `tps` by partition and topic id; leave out generations without steps.

    The steps of a generation stand node by node, each node's in its order.
    """
    tps = frozenset(tps)
    ids = {topic: _ids_in_order([_ids(node.broker.named, topic) for node in nodes]) for topic in map(topic_of, tps)}
    generations: dict[str, list[Generation]] = {}
    for tp in sorted(tps):
        topic_ids = ids[topic_of(tp)]
        generations[tp] = [Generation(tp, at, len(topic_ids), topic_id) for at, topic_id in enumerate(topic_ids)]
        # No line names an id: all topics of this name are taken for one.
        generations[tp] = generations[tp] or [Generation(tp, number=0, topics=1, topic_id=None)]
    steps_by_generation: dict[Generation, list[LoggedStep]] = {
        generation: [] for of_partition in generations.values() for generation in of_partition
    }
    # Of most names there is one topic: then every step of a partition is of that.
    of_only_topic = {generation.tp: steps for generation, steps in steps_by_generation.items() if generation.topics == 1}
    for node in nodes:
        for step in node.broker.steps:
            steps = of_only_topic.get(step.tp)
            if steps is not None:
                steps.append(step)
                continue
            if step.tp not in tps:
                continue
            topic_ids = ids[topic_of(step.tp)]
            topic_id = step.topic_id
            if topic_id not in topic_ids:
                topic_id = node.broker.topic_named(topic_of(step.tp), step.place)
            # Before its node names an id, a step belongs to the oldest topic.
            number = topic_ids.index(topic_id) if topic_id in topic_ids else 0
            steps_by_generation[generations[step.tp][number]].append(step)
    return {generation: steps for generation, steps in steps_by_generation.items() if steps}


def topic_of(tp: str) -> str:
    """Return the topic of a partition; topics may contain "-" themselves."""
    return tp.rpartition("-")[0]


def _ids_in_order(ids_by_node: Iterable[list[str]]) -> list[str]:
    """Return the ids of all topics of one name, each once, the oldest first; each node's are in the order of its log."""
    # The node that names most ids was there for every creation: its order is the order of the topics. An id that it does not
    # name is still another topic.
    most_first = sorted(ids_by_node, key=len, reverse=True)
    return list(dict.fromkeys(topic_id for ids in most_first for topic_id in ids))


def _ids(named: Mapping[str, Sequence[tuple[tuple[int, int], str]]], topic: str) -> list[str]:
    """Return the ids that one node named for a topic, each once, in the order of its log (LoggedBroker.named)."""
    return list(dict.fromkeys(topic_id for _, topic_id in named.get(topic, ())))


@dataclass(frozen=True)
class Summary:
    """What was read, and how certain the order is.

    `understood` counts the lines of a known kind, `fetches_matched` the followers' fetches in request logs for which the
    sender has a line. `ties` are messages that order steps of two nodes; those dropped contradict the others. `moved` are
    steps that do not stand where their time stamps put them.
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
        """Yield a sentence for each thing that a reader of the report should know about how the files were read."""
        for layout, files in sorted(self.layouts.items()):
            if layout not in (DOCUMENTED, KAFKAS):
                yield f"{counted(files, 'file')} written as {layout}"
        if KAFKAS in self.layouts:
            without = counted(self.layouts[KAFKAS], "file")
            yield f"{without} without the thread of each line: some rules cannot be decided"
        if self.unlogged:
            why = "by a process that was killed or a directory that failed; the log shows it when it is loaded"
            yield f"{counted(len(self.unlogged), 'append')} without a line, {why}: {_first_names(self.unlogged)}"
        if self.passed_over:
            yield f"{counted(len(self.passed_over), 'file')} passed over: {_first_names(self.passed_over)}"


def _first_names(names: Sequence[str]) -> str:
    """Join the first NAMES_SHOWN names for a note."""
    return ", ".join(names[:NAMES_SHOWN]) + (", .." if len(names) > NAMES_SHOWN else "")


def _append_without_line(step: LoggedStep) -> str:
    """Say for a note which offsets an append without a line has, and behind which line of its log it was made."""
    return f"{step.tp} {step.fields['leo_before']} to {step.fields['leo']} (behind {step.at})"


@dataclass(frozen=True)
class Capture:
    """The traces of one cluster, with problems, gaps and coverage.

    `gaps` are where lines are missing; `uncertain` has, by the name of a trace, each gap with the numbers of the first and
    the last event between which it lies. `coverage` and `missing` show how much of what happened the logs have.
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
    carry_over: CarryOver = NO_CARRY_OVER
    """What the next window of the same logs may use."""


def read_all(directory: str | Path, layout: str | None = None, selection: Selection | None = None) -> list[Capture]:
    """Read a capture for each cluster whose logs are under `directory` (or in one file).

    `layout` is a pattern of log4j2, `selection` the part of the logs that is read.
    """
    with _without_garbage_collection():
        return _read_all(Path(directory), layout, selection)


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Switch the collector of cycles off: it would look through all steps again and again (a quarter of the time)."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            # To freeze and to unfreeze makes what was read old: the collection of what is young, which comes as soon as the
            # collector is on, does not look through it.
            gc.freeze()
            gc.enable()
            gc.unfreeze()


def _read_all(folder: Path, layout: str | None, selection: Selection | None) -> list[Capture]:
    """Read every cluster in a folder; if it has no text logs, read its log directories, or dumps of segments, instead."""
    clusters = find_clusters(folder, layout, selection)
    if not any(cluster.nodes for cluster in clusters):
        # Log directories without text logs are a capture, too. Problems alone make one only where nothing else is to try.
        for read_replicas in (read_disks, read_dumps):
            replicas, problems = read_replicas(folder)
            if replicas or (problems and read_replicas is read_dumps):
                return [Capture(replicas, problems, _summary_of_disks(replicas))]
    return [capture_of("/".join((folder.name, cluster.name)).rstrip("/"), cluster) for cluster in clusters]


def read(directory: str | Path, layout: str | None = None, selection: Selection | None = None) -> Capture:
    """Read the logs of the first cluster under `directory`, as `read_all` does."""
    return read_all(directory, layout, selection)[0]


def capture_of(name: str, logs: FoundLogs, before: CarryOver = NO_CARRY_OVER) -> Capture:
    """Make the capture of one cluster; `name` begins the names of its traces, `before` is what older windows showed."""
    selection = logs.selection
    nodes = [node_of(files) for files in logs.nodes]
    reading = Reading(nodes, logs.problems, selection=selection, before=before, cluster=logs.name)
    for one_pass in PASSES:
        one_pass(reading)
    controller = reading.controller
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
        _trace(name, generation, in_one_order, reading, cluster, None if both_roles else cluster.controller)
        for generation, in_one_order in merged.items()
    ]
    brokers = {broker for trace in traces for broker in trace.config.nodes}
    # Clocks are compared only to tell which steps of other nodes come before a gap that reaches the end of the log.
    endless = any(gap.end == AFTER_ALL_LINES for gap in reading.gaps)
    clocks = ahead(step for node in nodes for step in node.broker.steps) if endless else {}
    gaps = CaptureGaps(reading.gaps)
    uncertain = {
        trace.name: uncertain_intervals(gaps, in_one_order.steps, clocks, before.seen_until)
        for trace, in_one_order in zip(traces, merged.values(), strict=True)
    }
    # Consumers fetch as replica -1; no line of a broker sends their requests.
    followers = sum(1 for of_leader in reading.fetches.values() for fetch in of_leader if fetch.replica >= 0)
    capture = Capture(
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
            ties=sum(in_one_order.ties for in_one_order in merged.values()),
            ties_dropped=sum(in_one_order.dropped for in_one_order in merged.values()),
            concurrent=sum(in_one_order.concurrent for in_one_order in merged.values()),
            moved=reading.moved,
            unexplained=reading.unexplained,
            checks=reading.checks,
            unlogged=tuple(_append_without_line(step) for node in nodes for step in node.broker.unlogged),
            layouts=logs.layouts,
            passed_over=tuple(logs.passed_over),
        ),
        gaps=tuple(reading.gaps),
        coverage=node_coverage(nodes, reading.gaps),
        missing=(*missing(nodes, controller, reading.gaps, brokers, logs.nameless, logs.invented), *logs.not_judged),
        uncertain=uncertain,
        cluster=logs.name,
        carry_over=before.and_(nodes, reading.names),
    )
    for node in nodes:
        # A fetch and its response refer to each other: left so, they would be freed only by the collector of cycles, which
        # is off while logs are read.
        for step in node.broker.steps:
            step.response = None
        node.broker.steps.clear()
    return capture


def _summary_of_disks(replicas: Sequence[Trace]) -> Summary:
    """Summarize replicas that were read from disks only."""
    nodes = sorted({node for trace in replicas for node in trace.config.nodes})
    events = sum(len(trace.events) for trace in replicas)
    return Summary(tuple(nodes), None, "", events=events)


def _profile(nodes: Sequence[Node]) -> str:
    """Return the profile (switches of a generation of the protocol) of a cluster: today's Kafka, with ELR or without.

    If the brokers' logs name releases of different profiles, "<profile>,<node>=<profile>,..": each broker has its own.
    """
    of_cluster, by_node = _profile_of_cluster(nodes), {}
    for node in nodes:
        release = release_of_version(node.broker.version).release if node.broker.version and node.has_replicas else ""
        # A release before the first that is known has no profile: its broker is judged as today's, as the others are.
        with suppress(UsageError):
            by_node[node.id] = profile_of_release(release).name
    if len(set(by_node.values())) > 1:
        # Of a broker that was upgraded meanwhile, the logs do not say by which release each event came about.
        by_node = {node.id: by_node[node.id] for node in nodes if node.id in by_node and not node.broker.upgraded}
        return ",".join([of_cluster, *(f"{node}={profile}" for node, profile in by_node.items())])
    return of_cluster


def _profile_of_cluster(nodes: Sequence[Node]) -> str:
    """Return the profile with eligible leader replicas (KIP-966) if any node shows them, else the one without.

    Since 4.1 new clusters keep them, and an ISR may be empty.
    """
    # The line that names the release may be lost; a change that names the ELR shows the same.
    if any(node.controller.keeps_elr for node in nodes):
        return ELR.name
    for node in nodes:
        release = release_of_version(node.broker.version).release if node.broker.version else ""
        # No line names its release, or it is before the first that is known.
        with suppress(UsageError):
            if profile_of_release(release).elr:
                return ELR.name
    return FETCH_TRUNCATION.name


def _trace(
    name: str, generation: Generation, merged: Merged, reading: Reading, cluster: Config, controller_only: int | None
) -> Trace:
    """Return the trace of a partition: its config, from what all nodes logged, and its events, which each node numbers.

    `name` begins the name of the trace. `cluster` is the config that all traces share; `controller_only` is a controller
    that is no broker, so none of the trace's nodes.
    """
    tp, controller, nodes = generation.tp, cluster.controller, reading.nodes
    # Another controller of the quorum may have judged a proposal: in a trace they are one.
    actors = [step.node if controller is None or step.name not in OF_A_CONTROLLER else controller for step in merged.steps]
    brokers = {*actors, *next((node.controller.replicas[tp] for node in nodes[::-1] if tp in node.controller.replicas), ())}
    # Many steps share their fields: each dict is looked at once.
    of_distinct_fields = {id(step.fields): step for step in merged.steps}.values()
    for value in {step.fields.get(key) for step in of_distinct_fields for key in _NAMES_NODES[step.name]}:
        if isinstance(value, tuple):
            brokers.update(value)
        elif isinstance(value, int):
            brokers.add(value)
    brokers -= {controller_only}
    min_isr = next((node.broker.min_isr[tp] for node in nodes if tp in node.broker.min_isr), DEFAULT_MIN_ISR)
    assigned = [step.fields.get("replicas") for step in merged.steps if step.name == "ChangePartition"]
    # Only a trace in which every change names all brokers as replicas was surely not reassigned.
    stays = assigned and all(isinstance(replicas, tuple) and set(replicas) == brokers for replicas in assigned)
    topic_id = generation.topic_id or next(
        (topic_id for topic_id, topic in reading.names.items() if topic == topic_of(tp)), None
    )
    config = replace(
        cluster,
        nodes=tuple(sorted(brokers)),
        min_isr=min_isr,
        extra={
            **cluster.extra,
            **({} if stays else {REASSIGNED: True}),  # the lines may not show who was a replica when
            **({} if topic_id is None else {TOPIC_ID: topic_id}),
        },
    )
    next_number = {actor: count().__next__ for actor in set(actors)}
    events = [
        Event(actor, step.name, step.fields, next_number[actor](), clock(step.time), at=step.at)
        for actor, step in zip(actors, merged.steps, strict=True)
    ]
    return Trace(f"{name}/{generation}", tp, config, tuple(events))


# The captures that come with the project.


FOLDER = Path(__file__).parent.parent / "captures"


def shipped() -> dict[str, Path]:
    """Return the folder of every capture in FOLDER by name (`4.2.0/b-kill-leader`), sorted."""
    return {folder.relative_to(FOLDER).as_posix(): folder for folder in sorted(FOLDER.glob("*/*")) if folder.is_dir()}

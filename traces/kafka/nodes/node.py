"""One node of a capture: its folder, its lines in order, its steps.

Rules of this file

1. Kafka's default layout spreads one process over several files (server.log, state-change.log, controller.log). They are
   woven by that node's own clock, each file in its own order (`weave.py`).
2. Requests are known by their lines, not by the name of their file: a console has them among the others.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tidegauge.traces.kafka.lines.copies import reported_once
from tidegauge.traces.kafka.lines.files import NodeFiles
from tidegauge.traces.kafka.lines.lines import Line, incarnations
from tidegauge.traces.kafka.lines.requests import NOT_KAFKAS, LoggedRequest, is_request, read_request
from tidegauge.traces.kafka.lines.said import Said, parse
from tidegauge.traces.kafka.lines.weave import weave
from tidegauge.traces.kafka.nodes import follower, leader, process
from tidegauge.traces.kafka.nodes.controller import LoggedController
from tidegauge.traces.kafka.nodes.gaps import Gap
from tidegauge.traces.kafka.nodes.steps import LoggedBroker
from tidegauge.traces.kafka.nodes.timeline import Run
from tidegauge.traces.kafka.nodes.watch import Watch
from tidegauge.traces.problems import Problem, shown

_OF_A_FETCH = frozenset({"high-watermark", "leader-high-watermark", "leader-high-watermark-kept", "expand-isr", "recorded"})

_OF_A_CONTROLLER = frozenset(
    {"ChangePartition", "AlterPartition", "RegisterBroker", "FenceBroker", "UnfenceBroker", "SetMinIsr"}
)

HANDLERS = {**process.HANDLERS, **leader.HANDLERS, **follower.HANDLERS}


@dataclass(eq=False)
class Node:
    """What the files of one folder tell."""

    id: int
    folder: Path
    label: str
    lines: list[Line]
    requests: list[LoggedRequest]
    problems: list[Problem]
    broker: LoggedBroker = field(init=False)
    controller: LoggedController = field(init=False)
    runs: list[Run] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    heard: Counter[str] = field(default_factory=Counter)
    stopped: bool = False
    silenced: bool = False
    silenced_controller: bool = False

    def __post_init__(self) -> None:
        self.broker = LoggedBroker(self.id)
        self.controller = LoggedController(self.broker)

    def read(self, with_controller: bool) -> None:
        """All lines, process by process, into steps."""
        runs = incarnations(self.lines)
        watch = Watch(self.broker)
        for number, lines in enumerate(runs):
            self.broker.run = number
            last = self._read_run(lines, with_controller, watch)
            next_start = _next_start(runs[number + 1 :])
            closed = self.broker.logs_closed
            clean = True if closed else next_start
            self.stopped = self.broker.stopping
            watch.ends(lines[-1], next_start, number + 1 < len(runs))
            leader.settle_all(self.broker)
            process.end_of_run(self.broker, last, number + 1 < len(runs), clean)
            self.runs.append(Run(number, lines, closed))
        for run in self.runs:
            run.mark(self.broker.steps)
        self.gaps += watch.gaps

    def silence(self) -> None:
        """Forget what this node's lines told of its replicas; what it told as a controller stays."""
        self.silenced = True
        self.broker.steps = [step for step in self.broker.steps if step.name in _OF_A_CONTROLLER]
        self.requests = [request for request in self.requests if request.name == "ALTER_PARTITION"]
        self.broker.sends.clear()
        self.broker.replicas.clear()

    def silence_controller(self) -> None:
        """Forget what this node told as a controller."""
        self.silenced_controller = True
        self.broker.steps = [step for step in self.broker.steps if step.name not in _OF_A_CONTROLLER]
        self.requests = [request for request in self.requests if request.name != "ALTER_PARTITION"]

    def _read_run(self, lines: Sequence[Line], with_controller: bool, watch: Watch) -> Said | None:
        said = None
        watch.begins(next((found for line in lines if (found := parse(line)) is not None), None), lines[0])
        for index, line in enumerate(lines):
            self.broker.index = index
            said = parse(line)
            if line.thread and (said is None or said.what not in _OF_A_FETCH):
                self.broker.busy[line.thread] = index
            if said is None:
                continue
            self.heard[said.what] += 1
            watch.see(said)
            handler = HANDLERS.get(said.what)
            try:
                if handler is not None:
                    handler(self.broker, said)
                elif with_controller and said.what in self.controller.handlers:
                    self.controller.handlers[said.what](said)
            except NOT_KAFKAS as error:
                self.problems.append(_unlike_kafka(line, error))
            if line.thread and said.what == "recorded":
                self.broker.busy[line.thread] = index
        return Said("end", lines[-1], {}) if lines else said


def _unlike_kafka(line: Line, error: Exception) -> Problem:
    """A line that begins like one of Kafka's and goes on otherwise."""
    expected = f"a line of {line.logger} as Kafka has them"
    do = "the line is left out; if it is unchanged, its Kafka release is not known to this reader"
    return Problem(line.file, line.number, expected, f"{shown(line.message)} ({error})", do, lost=1)


def _next_start(runs: Sequence[Sequence[Line]]) -> bool | None:
    """What the next process says about how this one ended."""
    for line in runs[0] if runs else ():
        said = parse(line)
        if said is not None and said.what in ("clean-start", "unclean-start"):
            return said.what == "clean-start"
    return None


def changes_reported(node: Node) -> int:
    """How many partition changes a node's lines tell: the controller of a capture is who tells most."""
    own = sum(1 for line in node.lines if line.logger == "ReplicationControlManager" and "partition" in line.message)
    return own + bool(node.heard["changed"] or node.heard["registered"])


def node_of(files: NodeFiles) -> Node:
    """The node whose logs these are: its lines, and its requests in the order they were logged."""
    lines: list[list[Line]] = []
    asked: list[list[Line]] = []
    streams, copies = reported_once(files.streams)
    for stream in streams:
        requests = [line for line in stream if is_request(line)]
        asked.append(requests)
        if len(requests) < len(stream):
            lines.append([line for line in stream if not is_request(line)] if requests else stream)
    problems = [*files.problems, *copies]
    read: list[LoggedRequest] = []
    for order, line in enumerate(weave([stream for stream in asked if stream])):
        request = read_request(line, order)
        if isinstance(request, Problem):
            problems.append(request)
        elif request is not None:
            read.append(request)
    read.sort(key=lambda request: request.handled)
    return Node(files.id, files.folder, files.label, weave([stream for stream in lines if stream]), read, problems)


def topic_ids(nodes: Sequence[Node]) -> Mapping[str, str]:
    """Topic names by id, from whatever node tells."""
    return {topic_id: name for node in nodes for topic_id, name in node.broker.topic_ids.items()}

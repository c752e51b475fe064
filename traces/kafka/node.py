"""One node of a capture: its folder, its lines in order, its steps.

Rules of this file

1. A folder is one node's if log files stand in it. Its id is what its lines say (`[Broker id=1]`); the folder's name
   (`n1`, `broker-1`, `1`) decides where they do not say.
2. Kafka's default layout spreads one process over several files (server.log, state-change.log, controller.log). They are
   woven by that node's own clock, each file in its own order.
3. Request logs are told by their content, not by name.
"""

import heapq
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tidegauge.traces.kafka import follower, leader, process
from tidegauge.traces.kafka.controller import LoggedController
from tidegauge.traces.kafka.lines import Line, incarnations, read_lines
from tidegauge.traces.kafka.requests import LoggedRequest, read_request
from tidegauge.traces.kafka.said import Said, parse
from tidegauge.traces.kafka.steps import LoggedBroker
from tidegauge.traces.kafka.timeline import Run
from tidegauge.traces.problems import Problem

_LOG_FILE = re.compile(r".*\.log(\.\d[\d\-.]*)?(\.gz)?")
_SEGMENT = re.compile(r".*\d{20}\.log(\.gz)?")
_FOLDER = re.compile(r"(?:n|node-?|broker-?|kafka-?|controller-?)?(\d+)")
_SAYS_ID = re.compile(
    r"^\[(?:Broker id=|BrokerServer id=|ReplicaFetcherManager on broker |QuorumController id=|ControllerServer id="
    r"|Controller )(\d+)"
)

_OF_A_FETCH = frozenset({"high-watermark", "leader-high-watermark", "leader-high-watermark-kept", "expand-isr", "recorded"})

_OF_A_CONTROLLER = frozenset({"ChangePartition", "AlterPartition"})

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
    heard: Counter[str] = field(default_factory=Counter)
    stopped: bool = False
    silenced: bool = False

    def __post_init__(self) -> None:
        self.broker = LoggedBroker(self.id)
        self.controller = LoggedController(self.broker)

    def read(self, with_controller: bool) -> None:
        """All lines, process by process, into steps."""
        runs = incarnations(self.lines)
        for number, lines in enumerate(runs):
            self.broker.run = number
            last = self._read_run(lines, with_controller)
            clean = True if self.broker.logs_closed else _next_start(runs[number + 1 :])
            self.stopped = self.broker.stopping
            leader.settle_all(self.broker)
            process.end_of_run(self.broker, last, number + 1 < len(runs), clean)
            self.runs.append(Run(number, lines))
        for run in self.runs:
            run.mark(self.broker.steps)

    def silence(self) -> None:
        """Forget what this node's lines told of its replicas; what it told as a controller stays."""
        self.silenced = True
        self.broker.steps = [step for step in self.broker.steps if step.name in _OF_A_CONTROLLER]
        self.requests = [request for request in self.requests if request.name == "ALTER_PARTITION"]
        self.broker.sends.clear()
        self.broker.replicas.clear()

    def silence_controller(self) -> None:
        """Forget what this node told as a controller."""
        self.broker.steps = [step for step in self.broker.steps if step.name not in _OF_A_CONTROLLER]
        self.requests = [request for request in self.requests if request.name != "ALTER_PARTITION"]

    def _read_run(self, lines: Sequence[Line], with_controller: bool) -> Said | None:
        said = None
        for index, line in enumerate(lines):
            self.broker.index = index
            said = parse(line)
            if line.thread and (said is None or said.what not in _OF_A_FETCH):
                self.broker.busy[line.thread] = index
            if said is None:
                continue
            self.heard[said.what] += 1
            handler = HANDLERS.get(said.what)
            if handler is not None:
                handler(self.broker, said)
            elif with_controller and said.what in self.controller.handlers:
                self.controller.handlers[said.what](said)
            if line.thread and said.what == "recorded":
                self.broker.busy[line.thread] = index
        return Said("end", lines[-1], {}) if lines else said


def _next_start(runs: Sequence[Sequence[Line]]) -> bool | None:
    """What the next process says about how this one ended."""
    for line in runs[0] if runs else ():
        said = parse(line)
        if said is not None and said.what in ("clean-start", "unclean-start"):
            return said.what == "clean-start"
    return None


def changes_reported(node: Node) -> int:
    """How many partition changes a node's lines tell: the controller of a capture is who tells most."""
    return sum(1 for line in node.lines if line.logger == "ReplicationControlManager" and "partition" in line.message)


def log_files(folder: Path) -> list[Path]:
    """Text logs directly in `folder`; record segments (twenty digits) are no text."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.is_file() and _LOG_FILE.fullmatch(path.name) and not _SEGMENT.fullmatch(path.name)
    )


def read_node(folder: Path, label: str, fallback_id: int) -> Node:
    """The node whose logs stand in `folder`; `label` goes before file names (`n1/`)."""
    files: list[list[Line]] = []
    requests: list[LoggedRequest] = []
    problems: list[Problem] = []
    for path in log_files(folder):
        lines, found = read_lines(path, f"{label}{path.name.removesuffix('.gz')}")
        problems += found
        if lines and lines[0].message.startswith("Completed request"):
            for line in lines:
                request = read_request(line)
                if isinstance(request, Problem):
                    problems.append(request)
                elif request is not None:
                    requests.append(request)
        else:
            files.append(lines)
    woven = list(heapq.merge(*(_monotone(lines) for lines in files), key=lambda pair: pair[0])) if len(files) > 1 else None
    lines = [line for _, line in woven] if woven is not None else (files[0] if files else [])
    requests.sort(key=lambda request: request.handled)
    return Node(node_id(folder, lines, fallback_id), folder, label, lines, requests, problems)


def _monotone(lines: Sequence[Line]) -> Iterator[tuple[int, Line]]:
    latest = 0
    for line in lines:
        latest = max(latest, line.time)
        yield latest, line


def node_id(folder: Path, lines: Sequence[Line], fallback: int) -> int:
    """What the lines say, else the name of the folder, else `fallback`."""
    for line in lines:
        found = _SAYS_ID.match(line.message)
        if found is not None:
            return int(found[1])
    named = _FOLDER.fullmatch(folder.name)
    return int(named[1]) if named else fallback


def topic_ids(nodes: Sequence[Node]) -> Mapping[str, str]:
    """Topic names by id, from whatever node tells."""
    return {topic_id: name for node in nodes for topic_id, name in node.broker.topic_ids.items()}

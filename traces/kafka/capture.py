"""A directory of broker logs -> one trace per topic-partition.

Rules of this file

1. Two layouts: a folder with one sub-folder per node, or the logs of one broker in the folder itself.
2. Reading never raises for what the files hold. What could not be read is a Problem; what was read is there.
3. One controller is read: the node whose lines tell most partition changes (each controller of a quorum prints them all).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tidegauge.impl.errors import UsageError
from tidegauge.impl.profiles import ELR, FETCH_TRUNCATION
from tidegauge.impl.releases import of_release
from tidegauge.traces.kafka.disks import left_unread, read_disk, read_disks
from tidegauge.traces.kafka.exchanges import EARLIEST, LATEST, Exchanges
from tidegauge.traces.kafka.levels import silent_controller, silent_loggers
from tidegauge.traces.kafka.lines import clock
from tidegauge.traces.kafka.match import match
from tidegauge.traces.kafka.merge import Merged, merge
from tidegauge.traces.kafka.node import Node, changes_reported, log_files, read_node, topic_ids
from tidegauge.traces.kafka.process import END
from tidegauge.traces.kafka.requests import Fetch, LoggedRequest, Sessions
from tidegauge.traces.kafka.steps import LoggedStep, Send
from tidegauge.traces.kafka.timeline import fetches_before_what_they_raised
from tidegauge.traces.kafka.unlogged import tie_unlogged
from tidegauge.traces.problems import Problem
from tidegauge.traces.schema import EVENTS, FIELDS, Config, Event, FieldKind, Trace

REPORTED = [name for name in EVENTS if name not in {"SendEpochRequest", "HandleEpochResponse", "HwCheckpoint"}]
"""What lines and requests tell. A follower logs no OffsetsForLeaderEpoch request; the request log of its leader has it."""


@dataclass(frozen=True)
class Summary:
    """What was read, and how sure the order is.

    `unexplained` are answers whose high watermark no place in their time window explains. `concurrent` are pairs of a
    commit and a possible loss on two nodes that nothing but clocks orders.
    """

    nodes: tuple[int, ...]
    controller: int | None
    release: str
    lines: int
    understood: int
    requests: int
    fetches_matched: int
    fetches_unmatched: int
    events: int
    ties: int
    ties_dropped: int
    concurrent: int
    moved: int
    unexplained: int


@dataclass(frozen=True)
class Capture:
    """Traces, what could not be read, and how the reading went."""

    traces: list[Trace]
    problems: list[Problem]
    summary: Summary


def read(directory: str | Path) -> Capture:
    """Every topic-partition the logs under `directory` tell about."""
    folder = Path(directory)
    nodes, problems = _nodes(folder)
    if not nodes:
        replicas, of_disks = read_disks(folder)
        if replicas:
            return Capture(replicas, of_disks, _of_disks(replicas))
    controller = max(nodes, key=lambda node: (changes_reported(node), -node.id), default=None)
    if controller is not None and changes_reported(controller) == 0:
        controller = None
    for node in nodes:
        node.read(node is controller)
    names = topic_ids(nodes)
    for node in nodes:
        node.broker.topic_ids = dict(names)
    fetches = {node.id: _fetches(node, names) for node in nodes}
    incomplete = silent_controller(controller, nodes) if controller is not None else None
    if controller is not None and incomplete is not None:
        controller.problems.append(incomplete)
        controller.silence_controller()
    for node in nodes:
        fetched = _was_fetched(node, nodes, fetches[node.id])
        silent = list(silent_loggers(node, fetched))
        node.problems += silent
        if silent:
            node.silence()
            fetches[node.id] = []
    sends = [send for node in nodes for send in node.broker.sends]
    matched = match(sends, fetches)
    moved, unexplained = _exchange(nodes, fetches, matched)
    tie_unlogged(nodes, fetches, sends, matched)
    moved += sum(fetches_before_what_they_raised(node.broker.steps) for node in nodes)
    for node in nodes:
        problems += node.problems + _observe(node)
    steps = [step for node in nodes for step in node.broker.steps]
    by_partition: dict[str, list[LoggedStep]] = defaultdict(list)
    for step in steps:
        by_partition[step.tp].append(step)
    merged = {tp: merge(of_partition) for tp, of_partition in sorted(by_partition.items())}
    known = {tp: replicas for node in nodes for tp, replicas in node.controller.replicas.items()}
    traces = [
        _trace(folder.name, tp, one, nodes=nodes, controller=controller, replicas=known.get(tp, ()), names=names)
        for tp, one in merged.items()
    ]
    followers = sum(1 for of_leader in fetches.values() for fetch in of_leader if fetch.replica >= 0)
    return Capture(
        traces,
        problems,
        Summary(
            nodes=tuple(node.id for node in nodes),
            controller=None if controller is None else controller.id,
            release=_release(nodes),
            lines=sum(len(node.lines) for node in nodes),
            understood=sum(node.heard.total() for node in nodes),
            requests=sum(len(node.requests) for node in nodes),
            fetches_matched=len(matched),
            fetches_unmatched=followers - len(matched),
            events=sum(len(trace.events) for trace in traces),
            ties=sum(one.ties for one in merged.values()),
            ties_dropped=sum(one.dropped for one in merged.values()),
            concurrent=sum(one.concurrent for one in merged.values()),
            moved=moved,
            unexplained=unexplained,
        ),
    )


def _nodes(folder: Path) -> tuple[list[Node], list[Problem]]:
    if not folder.is_dir():
        seen = "a file" if folder.exists() else "nothing"
        return [], [Problem(str(folder), None, "a directory with broker logs", seen, "name the directory the logs are in")]
    if log_files(folder):
        return [read_node(folder, "", 0)], []
    folders = sorted((sub for sub in folder.iterdir() if sub.is_dir() and log_files(sub)), key=lambda sub: sub.name)
    if not folders:
        return [], [
            Problem(
                str(folder),
                None,
                "*.log or *.log.gz files, or one folder with such files per node",
                f"{sum(1 for _ in folder.iterdir())} entries, no log among them",
                "copy each broker's server.log and request.log into n<id>/; see docs/kafka-logs.md",
            )
        ]
    nodes: list[Node] = []
    problems: list[Problem] = []
    for number, sub in enumerate(folders):
        node = read_node(sub, f"{sub.name}/", -1 - number)
        twin = next((other for other in nodes if other.id == node.id), None)
        if twin is None:
            nodes.append(node)
        else:
            problems += node.problems
            problems.append(
                Problem(
                    f"{sub.name}/",
                    None,
                    "one folder per node",
                    f"node {node.id} again, as in {twin.label}",
                    "put the logs of one node into one folder",
                )
            )
    return sorted(nodes, key=lambda node: node.id), problems


def _was_fetched(node: Node, nodes: Sequence[Node], fetches: Sequence[Fetch]) -> bool:
    """Whether a follower was answered: by the request log, or by followers that went on fetching."""
    answered = any(
        fetch.replica >= 0 and any(one.error == 0 and not one.diverging for one in fetch.responses.values())
        for fetch in fetches
    )
    return (
        answered or sum(1 for other in nodes for send in other.broker.sends if send.leader == node.id and not send.lost) > 2
    )


def _fetches(node: Node, names: Mapping[str, str]) -> list[Fetch]:
    sessions = Sessions(names)
    in_log_order = sorted((request for request in node.requests if request.name == "FETCH"), key=lambda one: one.line.number)
    fetches = []
    for request in in_log_order:
        with _as_problem(request, node.problems):
            fetches.append(sessions.fetch(request))
    return sorted(fetches, key=lambda fetch: fetch.request.dequeued)


@contextmanager
def _as_problem(request: LoggedRequest, problems: list[Problem]) -> Iterator[None]:
    """A document that is JSON but not of Kafka's shape is left out."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        problems.append(
            Problem(
                request.line.file,
                request.line.number,
                f"a {request.name} request and its response as Kafka's request log has them",
                f"{type(error).__name__}: {error}",
                "the line is left out; if it is unchanged, its Kafka release is not known to this reader",
                lost=1,
            )
        )


def _exchange(nodes: Sequence[Node], fetches: Mapping[int, list[Fetch]], matched: Mapping[int, Send]) -> tuple[int, int]:
    """Requests into steps; returns how many places were moved, and how many responses stay unexplained."""
    moved = unexplained = 0
    asked: dict[tuple[int, int, str], list[tuple[int, int]]] = defaultdict(list)
    taken = {
        (key, step.tp): step
        for node in nodes
        for step in node.broker.steps
        if step.name == "HandleFetchResponse"
        for key in step.awaits
    }
    for node in nodes:
        if not node.runs:
            continue
        exchanges = Exchanges(node.broker, node.runs, matched, taken)
        for fetch in fetches[node.id]:
            exchanges.fetch(fetch)
        handlers = {
            "PRODUCE": exchanges.produce,
            "OFFSET_FOR_LEADER_EPOCH": exchanges.offsets_request,
            "ALTER_PARTITION": exchanges.alter_partition,
        }
        for request in node.requests:
            with _as_problem(request, node.problems):
                if request.name in handlers:
                    handlers[request.name](request)
                elif request.name == "LIST_OFFSETS":
                    for replica, tp, which, offset in exchanges.list_offsets(request):
                        asked[replica, node.id, tp].append((which, offset))
        moved, unexplained = moved + exchanges.moved, unexplained + exchanges.unexplained
    for node in nodes:
        for step in node.broker.steps:
            if step.name == "HandleOutOfRange":
                _leader_range(step, asked[node.id, int(str(step.fields["peer"])), step.tp])
    return moved, unexplained


def _leader_range(step: LoggedStep, asked: list[tuple[int, int]]) -> None:
    """A fetcher that is out of range asks for the leader's end, and for its start if that did not settle it."""
    if asked and asked[0][0] == LATEST:
        step.fields.setdefault("leader_end", asked.pop(0)[1])
        if asked and asked[0][0] == EARLIEST:
            step.fields.setdefault("leader_start", asked.pop(0)[1])


def _observe(node: Node) -> list[Problem]:
    """What the disk of a node that stopped in order says at the end."""
    if not node.runs or not node.stopped:
        return left_unread(node.folder, node.label)
    found, problems = read_disk(node.folder, node.label, {tp: one.epochs for tp, one in node.broker.replicas.items()})
    run = node.runs[-1]
    place = (run.number, END, 1, run.last)
    for tp, observations in sorted(found.items()):
        if tp in node.broker.replicas:
            node.broker.steps += [
                LoggedStep(node.id, tp, "Observe", fields, at, run.last, place) for at, fields in observations
            ]
    return problems


def _of_disks(replicas: Sequence[Trace]) -> Summary:
    """No line was read: only what the disks hold."""
    nodes = sorted({node for trace in replicas for node in trace.config.nodes})
    events = sum(len(trace.events) for trace in replicas)
    return Summary(tuple(nodes), None, "", 0, 0, 0, 0, 0, events, 0, 0, 0, 0, 0)


def _release(nodes: Sequence[Node]) -> str:
    return ", ".join(sorted({node.broker.version for node in nodes if node.broker.version}))


def _profile(nodes: Sequence[Node]) -> str:
    """Since 4.1 clusters keep eligible leader replicas (KIP-966) unless they were upgraded: there an ISR may be empty."""
    for node in nodes:
        with suppress(UsageError):
            if of_release(node.broker.version).elr:
                return ELR.name
    return FETCH_TRUNCATION.name


def _trace(
    name: str,
    tp: str,
    merged: Merged,
    *,
    nodes: Sequence[Node],
    controller: Node | None,
    replicas: Sequence[int],
    names: Mapping[str, str],
) -> Trace:
    brokers = {step.node for step in merged.steps} | set(replicas)
    for step in merged.steps:
        for field_name, value in step.fields.items():
            kind = FIELDS[field_name].kind
            if kind is FieldKind.NODE and isinstance(value, int):
                brokers.add(value)
            elif kind is FieldKind.NODES and isinstance(value, tuple):
                brokers |= set(value)
    both_roles = controller is not None and any(node.id == controller.id and node.broker.replicas for node in nodes)
    if controller is not None and not both_roles:
        brokers.discard(controller.id)
    min_isr = next((node.broker.min_isr[tp] for node in nodes if tp in node.broker.min_isr), 1)
    topic_id = next((one for one, topic in names.items() if topic == tp.rpartition("-")[0]), None)
    config = Config(
        nodes=tuple(sorted(brokers)),
        profile=_profile(nodes),
        min_isr=min_isr,
        lag_rule=True,
        controller=None if controller is None else controller.id,
        source=f"Kafka {_release(nodes)} broker logs".replace("  ", " "),
        extra={"release": _release(nodes), "reports": REPORTED} | ({} if topic_id is None else {"topic_id": topic_id}),
    )
    counts: dict[int, int] = defaultdict(int)
    events = []
    for step in merged.steps:
        events.append(Event(step.node, step.name, step.fields, counts[step.node], clock(step.time), None, step.at))
        counts[step.node] += 1
    return Trace(f"{name}/{tp}", tp, config, tuple(events))

"""The passes that turn what nodes logged into steps, in their order.

Rules of this file

1. A pass is a function on `Reading`: it reads what the passes before it left there, and adds its own. `PASSES` is the
   order, and the reason for it is beside each.
2. No pass raises for what the files hold. What could not be read is a Problem; what was read is there.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tidegauge.traces.kafka.before import NOTHING, Before
from tidegauge.traces.kafka.between.exchanges import EARLIEST, LATEST, Exchanges
from tidegauge.traces.kafka.between.levels import silent_controller, silent_loggers
from tidegauge.traces.kafka.between.match import match, match_counted
from tidegauge.traces.kafka.between.observed import beyond_the_lines, observe
from tidegauge.traces.kafka.between.processes import unheard_processes
from tidegauge.traces.kafka.between.unlogged import tie_unlogged
from tidegauge.traces.kafka.between.unmatched import torn_lines, unmatched, without_send
from tidegauge.traces.kafka.lines.requests import NOT_KAFKAS, Fetch, LoggedRequest, Sessions
from tidegauge.traces.kafka.lines.selection import Selection
from tidegauge.traces.kafka.nodes.gaps import END as END_OF_LOG
from tidegauge.traces.kafka.nodes.gaps import Gap
from tidegauge.traces.kafka.nodes.node import Node, changes_reported, topic_ids
from tidegauge.traces.kafka.nodes.steps import TAKES_RESPONSES, LoggedStep, Send
from tidegauge.traces.kafka.nodes.timeline import fetches_before_what_they_raised
from tidegauge.traces.problems import Problem


@dataclass
class Reading:
    """What is known so far; `fetches` are by leader, `sends` and `matched` (by id of the fetch) by follower.

    `gaps` are where lines are missing. `counted` are fetches, by leader, that only count for their session (Line.counted).
    """

    nodes: list[Node]
    problems: list[Problem]
    controller: Node | None = None
    names: dict[str, str] = field(default_factory=dict)
    fetches: dict[int, list[Fetch]] = field(default_factory=dict)
    counted: dict[int, list[Fetch]] = field(default_factory=dict)
    sends: list[Send] = field(default_factory=list)
    matched: dict[int, Send] = field(default_factory=dict)
    gaps: list[Gap] = field(default_factory=list)
    moved: int = 0
    unexplained: int = 0
    selection: Selection | None = None
    before: Before = NOTHING


def know_what_was_before(reading: Reading) -> None:
    """Lines that were read before, and are held no longer, showed the same things."""
    for node in reading.nodes:
        node.broker.topic_ids.update(reading.before.names)
        node.heard.update(reading.before.heard.get(node.id, ()))
        node.broker.version = reading.before.versions.get(node.id, "")


def hear_what_is_left_out(reading: Reading) -> None:
    """Lines about partitions that are not read show how topics are called, which loggers were on, who the controller is."""
    if reading.selection is None:
        return
    for node in reading.nodes:
        node.broker.topic_ids.update(reading.selection.names)
        for file in reading.selection.heard:
            if file.startswith(node.label) if node.label else len(reading.nodes) == 1:
                node.heard.update(reading.selection.overheard(file))


def choose_controller(reading: Reading) -> None:
    """One controller is read: the node whose lines tell most partition changes (each of a quorum prints them all)."""
    best = max(reading.nodes, key=lambda node: (changes_reported(node), -node.id), default=None)
    reading.controller = best if best is not None and changes_reported(best) else None


def lines_into_steps(reading: Reading) -> None:
    """Each node's lines, process by process."""
    for node in reading.nodes:
        node.read(node is reading.controller)


def name_topics(reading: Reading) -> None:
    """Requests name topics by id; any node may have the name."""
    reading.names = dict(topic_ids(reading.nodes))
    for node in reading.nodes:
        node.broker.topic_ids = dict(reading.names)


def requests_into_fetches(reading: Reading) -> None:
    """What each fetch stands for, with what its session left out."""
    for node in reading.nodes:
        fetches = _fetches(node, reading.names)
        reading.fetches[node.id] = [fetch for fetch in fetches if not fetch.request.line.counted]
        reading.counted[node.id] = [fetch for fetch in fetches if fetch.request.line.counted]


def silence_controller(reading: Reading) -> None:
    """A controller that does not tell every change is not read."""
    if reading.controller is None:
        return
    incomplete = silent_controller(reading.controller, reading.nodes)
    if incomplete is not None:
        reading.controller.problems.append(incomplete)
        reading.controller.silence_controller()


def silence_nodes(reading: Reading) -> None:
    """A node of which a logger was off is not read."""
    silent = {  # of all before any: a node that is silenced no longer shows what another one did
        node.id: list(
            silent_loggers(
                node, _was_fetched(node, reading.nodes, reading.fetches[node.id]), _responded(node, reading.nodes)
            )
        )
        for node in reading.nodes
    }
    for node in reading.nodes:
        if silent[node.id]:
            node.problems += silent[node.id]
            node.silence()
            reading.fetches[node.id] = reading.counted[node.id] = []


def match_sends(reading: Reading) -> None:
    """Which request at a leader is which line of its sender."""
    reading.sends = [send for node in reading.nodes for send in node.broker.sends]
    reading.matched = match(reading.sends, reading.fetches)


def requests_into_steps(reading: Reading) -> None:
    """Requests beside the lines of the node that logged them."""
    moved, unexplained = _exchange(reading.nodes, reading.fetches, reading.matched)
    reading.moved += moved
    reading.unexplained += unexplained


def find_gaps(reading: Reading) -> None:
    """Where lines are missing: what each node's own lines show, what the logs show of each other, what is torn."""
    reading.gaps += [gap for node in reading.nodes for gap in node.gaps]
    every = {node.id: _as_handled([*reading.fetches[node.id], *reading.counted[node.id]]) for node in reading.nodes}
    counted = match_counted(reading.sends, reading.counted)
    sent = {**reading.matched, **counted.sent}
    reading.gaps += unmatched(reading.nodes, every, sent, counted.broken)
    reading.gaps += unheard_processes(reading.nodes, every, sent)
    problems = [*reading.problems, *(problem for node in reading.nodes for problem in node.problems)]
    reading.gaps += torn_lines(reading.nodes, problems)


def tie_what_one_side_logged(reading: Reading) -> None:
    """Requests of processes that ended before they could log them; what has no sender shows a gap."""
    gapped = {gap.node for gap in reading.gaps}
    without = tie_unlogged(reading.nodes, reading.fetches, reading.sends, reading.matched, gapped)
    reading.gaps += [without_send(node, step) for node, step in without]


def order_fetches(reading: Reading) -> None:
    """A fetch stands before the line of another thread that must have used it."""
    reading.moved += sum(fetches_before_what_they_raised(node.broker.steps) for node in reading.nodes)


def observe_disks(reading: Reading) -> None:
    """Checkpoint files of nodes that stopped in order, after all their steps.

    The disk is older than logs that go on, and younger than logs that end early.
    """
    ends_early = any(gap.end == END_OF_LOG for gap in reading.gaps)
    for node in reading.nodes:
        reading.problems += node.problems + observe(node, ends_early)
        reading.gaps += beyond_the_lines(node, reading.controller)


PASSES: tuple[Callable[[Reading], None], ...] = (
    know_what_was_before,  # first, with the next one
    hear_what_is_left_out,  # first: what was heard of a node is asked from here on
    choose_controller,  # before its lines are read: those of the others only repeat them
    lines_into_steps,
    name_topics,  # from the steps of all nodes
    requests_into_fetches,  # by topic name
    silence_controller,  # while the steps of every node are there to compare with
    silence_nodes,  # needs the fetches: who was fetched from should have said so
    match_sends,  # what was silenced is matched with nothing
    requests_into_steps,  # a request takes from its match what its records were
    find_gaps,  # when requests stand beside the lines: one that only one side logged shows
    tie_what_one_side_logged,  # what is left over when every request has had its match, and where no line is missing
    order_fetches,  # last of those that move steps: it compares what all of them tell
    observe_disks,
)


def _was_fetched(node: Node, nodes: Sequence[Node], fetches: Sequence[Fetch]) -> bool:
    """Whether a follower was answered: by the request log, or by followers that went on fetching."""
    answered = any(
        fetch.replica >= 0 and any(one.error == 0 and not one.diverging for one in fetch.responses.values())
        for fetch in fetches
    )
    sends = (send for other in nodes for send in other.broker.sends if send.leader == node.id and not send.lost)
    return answered or sum(send.requests for send in sends) > 2


def _responded(node: Node, nodes: Sequence[Node]) -> bool:
    """Whether a follower logged that it took a response of this node."""
    return any(
        step.name in TAKES_RESPONSES and step.fields.get("peer") == node.id
        for other in nodes
        if other is not node
        for step in other.broker.steps
    )


def _fetches(node: Node, names: Mapping[str, str]) -> list[Fetch]:
    sessions = Sessions(names)
    in_log_order = sorted((request for request in node.requests if request.name == "FETCH"), key=lambda one: one.order)
    fetches = []
    for request in in_log_order:
        with _as_problem(request, node.problems):
            fetches.append(sessions.fetch(request))
    return _as_handled(fetches)


def _as_handled(fetches: Sequence[Fetch]) -> list[Fetch]:
    return sorted(fetches, key=lambda fetch: fetch.request.dequeued)


@contextmanager
def _as_problem(request: LoggedRequest, problems: list[Problem]) -> Iterator[None]:
    """A document that is JSON but not of Kafka's shape is left out."""
    try:
        yield
    except NOT_KAFKAS as error:
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
        exchanges = Exchanges(node.broker, node.runs, matched, taken, fetches[node.id])
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

"""The passes that turn what the nodes of a cluster logged into LoggedSteps: events in the making, in the order of each node.

A *send* is a follower's `Sending fetch request` line, a *fetch* the request as the leader's request log has it; the two are
*matched*. A *summary* is a line that stands for several requests of a session which are left out (Line.summarizes).
A *gap* is a stretch of a node's log in which lines are missing: what is judged there is undecided.

Rules of this file

1. A pass is a function on `Reading`: it reads what the passes before it left there, and adds its own results. `PASSES` is
   the order, with the reason beside each.
2. No pass raises for the content of files. What cannot be read is a Problem; the rest is used.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tidegauge.traces.kafka_logs.correlation.exchanges import EARLIEST, LATEST, Exchanges, OffsetForTimestamp
from tidegauge.traces.kafka_logs.correlation.log_coverage import silent_controller, silent_loggers
from tidegauge.traces.kafka_logs.correlation.match import match, match_summaries
from tidegauge.traces.kafka_logs.correlation.order import BREAKS_VALUE, order_of_node
from tidegauge.traces.kafka_logs.correlation.unlogged import (
    add_fetches_in_flight,
    add_unlogged_proposals,
    tie_unlogged,
    unlogged_processes,
)
from tidegauge.traces.kafka_logs.correlation.unmatched import found_elsewhere, torn_lines, unmatched, without_send
from tidegauge.traces.kafka_logs.discovery.selection import Selection
from tidegauge.traces.kafka_logs.disks.disk import beyond_the_lines, observe
from tidegauge.traces.kafka_logs.nodes.gap_detection import EVERYTHING
from tidegauge.traces.kafka_logs.nodes.logged_broker import KEPT, TAKES_RESPONSES, LoggedStep, Send
from tidegauge.traces.kafka_logs.nodes.node import Node, changes_reported, topic_ids
from tidegauge.traces.kafka_logs.parsing.lines import AFTER_ALL_LINES as END_OF_LOG
from tidegauge.traces.kafka_logs.parsing.lines import BEFORE_ALL_LINES, Gap
from tidegauge.traces.kafka_logs.parsing.request_log import NOT_KAFKAS, LoggedFetch, LoggedRequest, Sessions
from tidegauge.traces.kafka_logs.parsing.timestamps import SECOND
from tidegauge.traces.problems import Problem


@dataclass(frozen=True)
class CarryOver:
    """What lines that are no longer in memory showed, if growing logs are read in windows (growing_capture.py).

    It is what a reader may know without the lines: topic names by id (`names`), and by node the `kinds` of its lines and its
    release (`versions`). What they showed of replicas is not kept: a window begins as a log does whose beginning is lost. It
    grows with topics and nodes, not with the logs. `seen_until[a, b]` is until when, on the clock of node a, node b was seen
    to go on logging: the log of b does not end before that.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[int, frozenset[str]] = field(default_factory=dict)
    versions: Mapping[int, str] = field(default_factory=dict)
    seen_until: Mapping[tuple[int, int], int] = field(default_factory=dict)

    def and_(self, nodes: Iterable[Node], names: Mapping[str, str]) -> "CarryOver":
        """Return this and what the lines of `nodes` showed; `names` are the topic names by id that all nodes know.

        What a node knows begins with what was carried over (carry_over), so it replaces that. `seen_until` stays:
        growing_capture.py puts its own in at each look.
        """
        nodes = list(nodes)
        return replace(
            self,
            names={**self.names, **names},
            kinds={**self.kinds, **{node.id: frozenset(node.kinds) for node in nodes}},
            versions={**self.versions, **{node.id: node.broker.version for node in nodes}},
        )


NO_CARRY_OVER = CarryOver()
"""For logs that are read from their beginning."""


@dataclass
class Reading:
    """A capture while it is read: `fetches` by leader, `sends` of followers, and `matched`, by id() of a fetch its send.

    `gaps` are where lines are missing. `summaries` are fetches, by leader, that only count for their session
    (Line.summarizes). `names` are topic names by id. `moved` and `unexplained` count the steps that are not where their
    stamps put them, and those whose values no order explains; `checks` are those of order.Placement. `selection` is the part
    of the logs that is read (None: all), `before` what older windows showed, `cluster` the folder of its logs if there are
    several clusters.
    """

    nodes: list[Node]
    problems: list[Problem]
    controller: Node | None = None
    names: dict[str, str] = field(default_factory=dict)
    fetches: dict[int, list[LoggedFetch]] = field(default_factory=dict)
    summaries: dict[int, list[LoggedFetch]] = field(default_factory=dict)
    sends: list[Send] = field(default_factory=list)
    matched: dict[int, Send] = field(default_factory=dict)
    gaps: list[Gap] = field(default_factory=list)
    moved: int = 0
    unexplained: int = 0
    checks: Counter[tuple[str, bool]] = field(default_factory=Counter)
    selection: Selection | None = None
    before: CarryOver = NO_CARRY_OVER
    cluster: str = ""


def carry_over(reading: Reading) -> None:
    """Begin each node with the topic names, kinds of lines and release that lines no longer in memory showed."""
    for node in reading.nodes:
        node.broker.topic_ids.update(reading.before.names)
        node.kinds.update(reading.before.kinds.get(node.id, ()))
        node.broker.version = reading.before.versions.get(node.id, "")


def learn_from_skipped_lines(reading: Reading) -> None:
    """Give each node what lines outside the selection show: topic names, and the kinds of lines that it logs.

    The kinds tell which loggers were on, and which node is the controller.
    """
    if reading.selection is None:
        return
    for node in reading.nodes:
        node.broker.topic_ids.update(reading.selection.names)
        for file in reading.selection.kinds:
            # Kinds are noted by file. A node with a folder of its own has a label, with which the names of its files begin.
            is_of_node = file.startswith(node.label) if node.label else len(reading.nodes) == 1
            if is_of_node:
                node.kinds.update(reading.selection.kinds_left_out(file))


def choose_controller(reading: Reading) -> None:
    """Choose the controller: the node whose lines have most partition changes, None if no node has any.

    All controllers of a quorum replay the same records, and print each change: two would report every change twice. Of those
    with as many changes it is the first by `changes_reported`, then the one with the lowest id.
    """
    keys = {node.id: changes_reported(node) for node in reading.nodes}
    best = max(reading.nodes, key=lambda node: (*keys[node.id], -node.id), default=None)
    number_of_changes = keys[best.id][0] if best is not None else 0
    reading.controller = best if number_of_changes else None


def lines_into_steps(reading: Reading) -> None:
    """Turn each node's lines into steps, process by process; only the chosen controller's lines about changes are used."""
    for node in reading.nodes:
        node.controller.chosen = node is reading.controller
        node.read(with_controller=reading.controller is not None)


def name_topics(reading: Reading) -> None:
    """Collect topic names by id from all nodes, because requests name topics by id only."""
    reading.names = dict(topic_ids(reading.nodes))
    for node in reading.nodes:
        node.broker.topic_ids = dict(reading.names)


def requests_into_fetches(reading: Reading) -> None:
    """Read the fetches of each request log, with the partitions that their session left out (KIP-227); summaries apart."""
    for node in reading.nodes:
        fetches = _fetches(node, reading.names)
        if reading.selection is not None:
            # When the line was selected, no line had named the topic id yet.
            for fetch in fetches:
                fetch.keep(reading.selection.wants)
        reading.fetches[node.id] = [fetch for fetch in fetches if not fetch.request.line.summarizes]
        reading.summaries[node.id] = [fetch for fetch in fetches if fetch.request.line.summarizes]


def silence_controller(reading: Reading) -> None:
    """Drop the steps of a controller that did not log every change, and report it."""
    if reading.controller is None:
        return
    incomplete = silent_controller(reading.controller, reading.nodes)
    if incomplete is not None:
        reading.controller.problems.append(incomplete)
        reading.controller.silence_controller()


def silence_nodes(reading: Reading) -> None:
    """Drop the steps and fetches of nodes of which a logger was off, and report each such logger."""
    # Find all before silencing any: the lines of a silenced node no longer show what another one did.
    silent = {
        node.id: list(
            silent_loggers(
                node,
                _was_fetched(node, reading.nodes, reading.fetches[node.id]),
                _responded(node, reading.nodes),
                _may_have_fetched(node, reading),
            )
        )
        for node in reading.nodes
    }
    for node in reading.nodes:
        if silent[node.id]:
            node.problems += silent[node.id]
            node.silence()
            reading.fetches[node.id] = reading.summaries[node.id] = []


def match_sends(reading: Reading) -> None:
    """Match the fetches in the request logs of leaders with the lines in which followers sent them."""
    reading.sends = [send for node in reading.nodes for send in node.broker.sends]
    reading.matched = match(reading.sends, reading.fetches, reading.summaries)


def requests_into_steps(reading: Reading) -> None:
    """Turn requests into steps beside the lines of their node; add fetches and proposals that a leader had no line for."""
    _add_request_steps(reading.nodes, reading.fetches, reading.matched)
    add_fetches_in_flight(reading.nodes)
    add_unlogged_proposals(reading.nodes)


def assign_topics(reading: Reading) -> None:
    """Note the topic id of each step whose topic was deleted and created again: the one that its node named last."""
    ids_of_topic: defaultdict[str, set[str]] = defaultdict(set)
    for node in reading.nodes:
        for topic, named in node.broker.named.items():
            ids_of_topic[topic].update(topic_id for _, topic_id in named)
    recreated = {topic for topic, ids in ids_of_topic.items() if len(ids) > 1}
    for node in reading.nodes if recreated else ():
        for step in node.broker.steps:
            topic = step.tp.rpartition("-")[0]
            # A step of a request has the id that the request names.
            if topic in recreated and not step.topic_id:
                step.topic_id = node.broker.topic_named(topic, step.place)


def _gap_at(node: Node, step: LoggedStep, logger: str, why: str) -> Gap:
    """Return a gap around the line of one step, which makes what it shows undecided, though no line is missing there.

    `logger` is what is doubted, `why` the sentence for the report.
    """
    begin, end = (step.run, step.line_index - 1), (step.run, step.line_index + 1)
    return Gap(node.id, logger, begin, end, (step.time, step.time), why)


def order_steps(reading: Reading) -> None:
    """Put the steps of each replica in an order that threads, locks and values allow."""
    for node in reading.nodes:
        placement = order_of_node(node.broker)
        reading.moved += placement.moved
        reading.checks += placement.checks
        # The search was cut off at these, so an order may exist that was not found: a gap makes what is judged undecided.
        for step in placement.at_limit:
            why = f"too many orders are possible ({step.at}), and the search was cut off"
            reading.gaps.append(_gap_at(node, step, "the order of the lines", why))
        for step, least in placement.low_reads:
            why = f"a consumer of {step.tp} was shown {step.shown_hw} ({step.at}) where the lines have {least} at least"
            reading.gaps.append(_gap_at(node, step, "the high watermark", why))
        reading.unexplained += sum(1 for step, broken in placement.stuck if broken == BREAKS_VALUE and step.name != KEPT)


def find_gaps(reading: Reading) -> None:
    """Find missing lines: by each node's own lines, between two logs, and where lines are torn."""
    reading.gaps += [gap for node in reading.nodes for gap in node.gaps]
    fetches = {
        node.id: _in_order_handled([*reading.fetches[node.id], *reading.summaries[node.id]]) for node in reading.nodes
    }
    summaries = match_summaries(reading.sends, reading.summaries)
    matched = {**reading.matched, **summaries.sent}
    reading.gaps += unmatched(reading.nodes, fetches, matched, summaries.broken)
    reading.gaps += unlogged_processes(reading.nodes, fetches, matched)
    problems = [*reading.problems, *(problem for node in reading.nodes for problem in node.problems)]
    reading.gaps += torn_lines(reading.nodes, problems)
    if reading.selection is not None:
        elsewhere = [gap for cluster, gap in reading.selection.gaps if cluster == reading.cluster]
        reading.gaps += found_elsewhere(reading.nodes, elsewhere, list(reading.gaps))
    reading.gaps += _in_whole_seconds(reading)


def _in_whole_seconds(reading: Reading) -> Iterator[Gap]:
    """Yield a gap over the whole of each log in whole seconds, if any lines are missing.

    Such a log does not show between which of its lines they are.
    """
    for node in reading.nodes if reading.gaps else ():
        if node.runs and all(run.slack >= SECOND for run in node.runs):
            why = "its times are whole seconds, which do not show where the lines are that are missing"
            yield Gap(node.id, EVERYTHING, BEFORE_ALL_LINES, END_OF_LOG, (None, None), why)


def tie_what_one_side_logged(reading: Reading) -> None:
    """Tie fetches that only one side logged, as the other had ended or had stopped logging; add a gap where that fails."""
    nodes_with_gaps = {gap.node for gap in reading.gaps}
    unsent = tie_unlogged(reading.nodes, reading.fetches, reading.sends, reading.matched, nodes_with_gaps)
    reading.gaps += [without_send(node, step) for node, step in unsent]


def observe_disks(reading: Reading) -> None:
    """Add what the log directories of nodes that stopped in order hold, after all their steps, and gaps that they show.

    A disk is older than a log that goes on, and younger than one that ends early: so no gap may reach the end of a log.
    """
    ends_early = any(gap.end == END_OF_LOG for gap in reading.gaps)
    for node in reading.nodes:
        reading.problems += node.problems + observe(node, ends_early)
        reading.gaps += beyond_the_lines(node, reading.controller)


PASSES: tuple[Callable[[Reading], None], ...] = (
    carry_over,  # first, like the next one
    learn_from_skipped_lines,  # first: the passes below ask which kinds of lines a node logged
    choose_controller,  # before its lines are read: those of other controllers repeat them
    lines_into_steps,
    name_topics,  # from the steps of all nodes
    requests_into_fetches,  # by topic name
    silence_controller,  # while the steps of every node are there for comparison
    silence_nodes,  # needs the fetches: a node that was fetched from should have logged it
    match_sends,  # after silencing: silenced fetches are not matched
    requests_into_steps,  # after matching: the follower knows the records of a response
    assign_topics,  # before an order puts a step in front of the line that names its topic
    order_steps,  # of all steps that lines and requests show, before anything asks where one is
    find_gaps,  # when requests are beside the lines: one that only one side logged shows
    tie_what_one_side_logged,  # for requests that are left over, where no line is missing
    observe_disks,
)


def _was_fetched(node: Node, nodes: Sequence[Node], fetches: Sequence[LoggedFetch]) -> bool:
    """Return whether a node served a follower's fetch as leader, so that it should have logged `Recorded replica`.

    `fetches` are those in its request log. They show it, or the lines of followers that went on fetching from it.
    """
    served = any(
        fetch.replica >= 0 and any(response.error == 0 and not response.diverging for response in fetch.responses.values())
        for fetch in fetches
    )
    sends = (send for other in nodes for send in other.broker.sends if send.leader == node.id and not send.lost)
    # Nothing is recorded of a fetch that was refused, because its topic was deleted, nor of one that diverges.
    unrecorded = sum(
        fetch.replica >= 0 and any(response.error or response.diverging for response in fetch.responses.values())
        for fetch in fetches
    )
    # Of two requests the first may have got a diverging epoch, and the last no response: a third shows that one was served.
    may_be_unserved = unrecorded + 2
    return served or sum(send.requests for send in sends if send.requested) > may_be_unserved


def _may_have_fetched(node: Node, reading: Reading) -> bool:
    """Return whether a node may have sent a fetch: a leader logged one, or one that it followed has no request log."""
    leaders = {step.fields.get("leader") for step in node.broker.steps if step.name == "BecomeFollower"} - {None, -1}
    with_request_log = {other.id for other in reading.nodes if other.requests}
    return not leaders <= with_request_log or any(
        fetch.replica == node.id
        for by_leader in (reading.fetches, reading.summaries)
        for of_leader in by_leader.values()
        for fetch in of_leader
    )


def _responded(node: Node, nodes: Sequence[Node]) -> bool:
    """Return whether another node logged that it handled a fetch response of this node."""
    return any(
        step.name in TAKES_RESPONSES and step.fields.get("peer") == node.id
        for other in nodes
        if other is not node
        for step in other.broker.steps
    )


def _fetches(node: Node, names: Mapping[str, str]) -> list[LoggedFetch]:
    """Return the fetches that a leader logged, in the order in which they were handled.

    Each has all partitions of its session, those included that the request left out. `names` are topic names by id.
    """
    sessions = Sessions(names)
    in_log_order = sorted(
        (request for request in node.requests if request.name == "FETCH"), key=lambda request: request.order
    )
    fetches = []
    for request in in_log_order:
        with _as_problem(request, node.problems):
            fetches.append(sessions.fetch(request))
    return _in_order_handled(fetches)


def _in_order_handled(fetches: Sequence[LoggedFetch]) -> list[LoggedFetch]:
    """Sort by the time when a handler thread took the request up: the log has them in the order of their responses."""
    return sorted(fetches, key=lambda fetch: fetch.request.dequeued)


@contextmanager
def _as_problem(request: LoggedRequest, problems: list[Problem]) -> Iterator[None]:
    """Append a problem if the body raises because a request's JSON is not of Kafka's shape; the line is then left out."""
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


def _add_request_steps(nodes: Sequence[Node], fetches: Mapping[int, list[LoggedFetch]], matched: Mapping[int, Send]) -> None:
    """Turn requests into steps of the node that handled them, ListOffsets into fields of the fetcher's HandleOutOfRange.

    `fetches` are by leader; `matched` has, by id() of a fetch, the line that sent it.
    """
    # By replica, leader and partition, the offsets that the leader sent, in order.
    listed: dict[tuple[int, int, str], list[OffsetForTimestamp]] = defaultdict(list)
    response_steps = {
        (key, step.tp): step
        for node in nodes
        for step in node.broker.steps
        if step.name == "HandleFetchResponse"
        for key in step.depends_on
    }
    for node in nodes:
        # A request log alone has no lines to put its requests beside.
        if not node.runs:
            continue
        exchanges = Exchanges(node.broker, node.runs, matched, response_steps)
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
                    for offset in exchanges.list_offsets(request):
                        listed[offset.replica, node.id, offset.tp].append(offset)
    for node in nodes:
        for step in node.broker.steps:
            if step.name == "HandleOutOfRange":
                _add_leader_range(step, listed[node.id, int(str(step.fields["peer"])), step.tp])


def _add_leader_range(step: LoggedStep, listed: list[OffsetForTimestamp]) -> None:
    """Add the leader's log end, and its log start if the fetcher asked for that, too, to a HandleOutOfRange step.

    They are taken off `listed`: the offsets that this leader sent this fetcher for the partition, the oldest first.
    """
    # A fetcher out of range asks its leader by ListOffsets: LATEST, and EARLIEST unless its own log ends beyond that
    # (AbstractFetcherThread#fetchOffsetAndTruncate).
    if listed and listed[0].timestamp == LATEST:
        step.fields.setdefault("leader_end", listed.pop(0).offset)
        if listed and listed[0].timestamp == EARLIEST:
            step.fields.setdefault("leader_start", listed.pop(0).offset)

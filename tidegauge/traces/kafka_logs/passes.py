"""The passes that turn what nodes logged into steps, in their order.

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
from tidegauge.traces.kafka_logs.correlation.unmatched import torn_lines, unmatched, without_send
from tidegauge.traces.kafka_logs.discovery.selection import Selection
from tidegauge.traces.kafka_logs.disks.disk import beyond_the_lines, observe
from tidegauge.traces.kafka_logs.nodes.gap_detection import AFTER_ALL_LINES as END_OF_LOG
from tidegauge.traces.kafka_logs.nodes.gap_detection import BEFORE_ALL_LINES, EVERYTHING, Gap
from tidegauge.traces.kafka_logs.nodes.logged_broker import KEPT, TAKES_RESPONSES, LoggedStep, Send
from tidegauge.traces.kafka_logs.nodes.node import Node, changes_reported, topic_ids
from tidegauge.traces.kafka_logs.parsing.request_log import NOT_KAFKAS, LoggedFetch, LoggedRequest, Sessions
from tidegauge.traces.kafka_logs.parsing.timestamps import SECOND
from tidegauge.traces.problems import Problem


@dataclass(frozen=True)
class CarryOver:
    """What lines that are no longer in memory showed, if growing logs are read in windows (growing_capture.py).

    It is what a reader may know without the lines: topics by id (`names`), the kinds of lines that a node logged, its
    release. What they showed of replicas is not kept: a window begins as a log does whose beginning is lost. It grows with
    topics and nodes, not with the logs. `seen_until`, by two nodes, is until when on the clock of the first the second was
    seen to go on logging: the log of the second does not end before that.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[int, frozenset[str]] = field(default_factory=dict)
    versions: Mapping[int, str] = field(default_factory=dict)
    seen_until: Mapping[tuple[int, int], int] = field(default_factory=dict)

    def and_(self, nodes: Iterable[Node], names: Mapping[str, str]) -> "CarryOver":
        """Add what the lines of these nodes showed."""
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
    """A capture while it is read: `fetches` by leader, `sends` of followers, and `matched`, by id of a fetch its send.

    `gaps` are where lines are missing. `summaries` are fetches, by leader, that only count for their session
    (Line.summarizes). `names` are topics by id. `moved` and `unexplained` count the steps that are not where their stamps
    put them, and those whose values no order explains; `checks` are those of order.Placement.
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


def carry_over(reading: Reading) -> None:
    """Use what lines showed that are no longer in memory."""
    for node in reading.nodes:
        node.broker.topic_ids.update(reading.before.names)
        node.kinds.update(reading.before.kinds.get(node.id, ()))
        node.broker.version = reading.before.versions.get(node.id, "")


def learn_from_skipped_lines(reading: Reading) -> None:
    """Use what skipped lines show: topic names, which loggers were on, which node is the controller."""
    if reading.selection is None:
        return
    for node in reading.nodes:
        node.broker.topic_ids.update(reading.selection.names)
        for file in reading.selection.kinds:
            # Kinds are noted by file, and a file in a folder of its own has the label of its node.
            if file.startswith(node.label) if node.label else len(reading.nodes) == 1:
                node.kinds.update(reading.selection.kinds_left_out(file))


def choose_controller(reading: Reading) -> None:
    """Choose the controller: the node whose lines have most partition changes. Each node of a quorum prints them all."""
    # All controllers of a quorum replay the same records: one of them is enough, and two would report every change twice.
    reported = {node.id: changes_reported(node) for node in reading.nodes}
    best = max(reading.nodes, key=lambda node: (*reported[node.id], -node.id), default=None)
    reading.controller = best if best is not None and reported[best.id][0] else None


def lines_into_steps(reading: Reading) -> None:
    """Turn each node's lines into steps, process by process."""
    for node in reading.nodes:
        node.controller.chosen = node is reading.controller
        node.read(with_controller=reading.controller is not None)


def name_topics(reading: Reading) -> None:
    """Collect topic names by id from all nodes, because requests name topics by id only."""
    reading.names = dict(topic_ids(reading.nodes))
    for node in reading.nodes:
        node.broker.topic_ids = dict(reading.names)


def requests_into_fetches(reading: Reading) -> None:
    """Rebuild each fetch with the partitions that its session left out."""
    for node in reading.nodes:
        fetches = _fetches(node, reading.names)
        reading.fetches[node.id] = [fetch for fetch in fetches if not fetch.request.line.summarizes]
        reading.summaries[node.id] = [fetch for fetch in fetches if fetch.request.line.summarizes]


def silence_controller(reading: Reading) -> None:
    """Do not read a controller that did not log every change."""
    if reading.controller is None:
        return
    incomplete = silent_controller(reading.controller, reading.nodes)
    if incomplete is not None:
        reading.controller.problems.append(incomplete)
        reading.controller.silence_controller()


def silence_nodes(reading: Reading) -> None:
    """Do not read nodes of which a logger was off."""
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
    """Match requests at leaders with lines of their senders."""
    reading.sends = [send for node in reading.nodes for send in node.broker.sends]
    reading.matched = match(reading.sends, reading.fetches, reading.summaries)


def requests_into_steps(reading: Reading) -> None:
    """Put requests beside the lines of the node that logged them; a leader that logs no more has proposals without."""
    _exchange(reading.nodes, reading.fetches, reading.matched)
    add_fetches_in_flight(reading.nodes)
    add_unlogged_proposals(reading.nodes)


def assign_topics(reading: Reading) -> None:
    """Note the topic of each step, by the id that its node named last, where topics of one name follow each other."""
    ids: defaultdict[str, set[str]] = defaultdict(set)
    for node in reading.nodes:
        for topic, named in node.broker.named.items():
            ids[topic].update(topic_id for _, topic_id in named)
    renewed = {topic for topic, of_topic in ids.items() if len(of_topic) > 1}
    for node in reading.nodes if renewed else ():
        for step in node.broker.steps:
            topic = step.tp.rpartition("-")[0]
            if topic in renewed and not step.topic_id:
                step.topic_id = node.broker.topic_named(topic, step.place)


def _gap_at(node: Node, step: LoggedStep, logger: str, why: str) -> Gap:
    """Return a gap of the line of a step alone."""
    begin, end = (step.run, step.line_index - 1), (step.run, step.line_index + 1)
    return Gap(node.id, logger, begin, end, (step.time, step.time), why)


def order_steps(reading: Reading) -> None:
    """Put the steps of each replica in an order that threads, locks and values allow."""
    for node in reading.nodes:
        placement = order_of_node(node.broker)
        reading.moved += placement.moved
        reading.checks += placement.checks
        # What is judged there is undecided: an order may be there that was not found.
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
    every = {node.id: _as_handled([*reading.fetches[node.id], *reading.summaries[node.id]]) for node in reading.nodes}
    summaries = match_summaries(reading.sends, reading.summaries)
    sent = {**reading.matched, **summaries.sent}
    reading.gaps += unmatched(reading.nodes, every, sent, summaries.broken)
    reading.gaps += unlogged_processes(reading.nodes, every, sent)
    problems = [*reading.problems, *(problem for node in reading.nodes for problem in node.problems)]
    reading.gaps += torn_lines(reading.nodes, problems)
    reading.gaps += _in_whole_seconds(reading)


def _in_whole_seconds(reading: Reading) -> Iterator[Gap]:
    """Yield a gap for each log in whole seconds if lines are missing: it does not show between which lines they are."""
    for node in reading.nodes if reading.gaps else ():
        if node.runs and all(run.slack >= SECOND for run in node.runs):
            why = "its times are whole seconds, which do not show where the lines are that are missing"
            yield Gap(node.id, EVERYTHING, BEFORE_ALL_LINES, END_OF_LOG, (None, None), why)


def tie_what_one_side_logged(reading: Reading) -> None:
    """Tie requests of processes that ended before they logged them; a fetch without a sender shows a gap."""
    gapped = {gap.node for gap in reading.gaps}
    without = tie_unlogged(reading.nodes, reading.fetches, reading.sends, reading.matched, gapped)
    reading.gaps += [without_send(node, step) for node, step in without]


def observe_disks(reading: Reading) -> None:
    """Observe the disks of nodes that stopped in order, after all their steps.

    A disk is older than a log that goes on, and younger than one that ends early.
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
    """Return whether a leader has served a fetch of a follower, of which it prints what it recorded.

    The request log shows that, or followers that went on fetching.
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
    return served or sum(send.requests for send in sends if send.requested) - unrecorded > 2


def _may_have_fetched(node: Node, reading: Reading) -> bool:
    """Return whether a leader logged a fetch of this node, or a leader that it had has no request log."""
    leaders = {step.fields.get("leader") for step in node.broker.steps if step.name == "BecomeFollower"} - {None, -1}
    logged = {other.id for other in reading.nodes if other.requests}
    return not leaders <= logged or any(
        fetch.replica == node.id
        for logs in (reading.fetches, reading.summaries)
        for of_leader in logs.values()
        for fetch in of_leader
    )


def _responded(node: Node, nodes: Sequence[Node]) -> bool:
    """Return whether a follower logged that it handled a response of this node."""
    return any(
        step.name in TAKES_RESPONSES and step.fields.get("peer") == node.id
        for other in nodes
        if other is not node
        for step in other.broker.steps
    )


def _fetches(node: Node, names: Mapping[str, str]) -> list[LoggedFetch]:
    """Return the fetches that a leader logged, whole again from their sessions, in the order in which they were handled."""
    sessions = Sessions(names)
    in_log_order = sorted(
        (request for request in node.requests if request.name == "FETCH"), key=lambda request: request.order
    )
    fetches = []
    for request in in_log_order:
        with _as_problem(request, node.problems):
            fetches.append(sessions.fetch(request))
    return _as_handled(fetches)


def _as_handled(fetches: Sequence[LoggedFetch]) -> list[LoggedFetch]:
    return sorted(fetches, key=lambda fetch: fetch.request.dequeued)


@contextmanager
def _as_problem(request: LoggedRequest, problems: list[Problem]) -> Iterator[None]:
    """Turn what a JSON document raises that is not of Kafka's shape into a problem; the line is left out."""
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


def _exchange(nodes: Sequence[Node], fetches: Mapping[int, list[LoggedFetch]], matched: Mapping[int, Send]) -> None:
    """Turn requests into steps."""
    # By replica, leader and partition, in the order in which they were told.
    listed: dict[tuple[int, int, str], list[OffsetForTimestamp]] = defaultdict(list)
    handled = {
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
        exchanges = Exchanges(node.broker, node.runs, matched, handled)
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
            # A fetcher out of range asks its leader by ListOffsets: LATEST, and EARLIEST unless its own log ends beyond that
            # (AbstractFetcherThread#fetchOffsetAndTruncate).
            if step.name == "HandleOutOfRange":
                _leader_range(step, listed[node.id, int(str(step.fields["peer"])), step.tp])


def _leader_range(step: LoggedStep, listed: list[OffsetForTimestamp]) -> None:
    """Add the leader's end, and its start if the fetcher asked for that, too, to the step of a fetcher out of range."""
    if listed and listed[0].timestamp == LATEST:
        step.fields.setdefault("leader_end", listed.pop(0).offset)
        if listed and listed[0].timestamp == EARLIEST:
            step.fields.setdefault("leader_start", listed.pop(0).offset)

"""How much of what happened the logs of a capture cover: which nodes, which time, and what is missing.

Three parts: the coverage of nodes for the report; problems for loggers that were off; and, for each trace, between which of
its events each gap lies. A *gap* is a stretch of a node's log in which lines are missing (gap_detection.py); a node is
*silenced* if a logger of it was off: its replicas are not judged. A *spot* is a place in a log: (process, index of a line).
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidegauge.traces.kafka_logs.nodes.gap_detection import EVERYTHING, REQUESTS
from tidegauge.traces.kafka_logs.nodes.logged_broker import TAKES_RESPONSES, LoggedStep
from tidegauge.traces.kafka_logs.nodes.node import Node
from tidegauge.traces.kafka_logs.parsing.lines import AFTER_ALL_LINES, Gap, Spot, clock
from tidegauge.traces.kafka_logs.parsing.request_log import NOT_KAFKAS
from tidegauge.traces.problems import Problem

GAPS_SHOWN = 3
"""Gaps of one logger at one node that are listed; the others are counted."""


@dataclass(frozen=True, slots=True)
class NodeCoverage:
    """The times of the first and last line of a node, and the `share` of the time between in no gap; 0: it is not judged."""

    node: int
    first: str
    last: str
    share: float

    def __str__(self) -> str:
        return f"node {self.node} {self.first[11:19]} to {self.last[11:19]}, {self.share:.0%}"


def node_coverage(nodes: Sequence[Node], gaps: Sequence[Gap]) -> tuple[NodeCoverage, ...]:
    """Return the coverage of each node that has lines."""
    coverage = []
    for node in nodes:
        if node.lines:
            first, last = min(line.time for line in node.lines), max(line.time for line in node.lines)
            inside = [_clipped(gap, first, last) for gap in gaps if gap.node == node.id]
            share = 0.0 if node.silenced else 1 - _union(inside) / max(1, last - first)
            coverage.append(NodeCoverage(node.id, clock(first), clock(last), share))
    return tuple(coverage)


def missing(
    nodes: Sequence[Node],
    controller: Node | None,
    gaps: Sequence[Gap],
    brokers: Iterable[int],
    nameless: bool = False,
    invented: Container[int] = (),
) -> tuple[str, ...]:
    """List, as phrases, what would have to be added for a verdict on everything that happened; empty if nothing is missing.

    `brokers` are all that the traces name. The one node of a `nameless` input was given an id that no line says: it is not
    called by that. `invented` are those of dumps, which have no processes: nothing is missing of them.
    """
    wanted: list[str] = []
    logged = {node.id for node in nodes if node.has_replicas and not node.silenced}
    silenced = {node.id for node in nodes if node.silenced}
    if controller is None:
        wanted.append(
            "the log of the controller (org.apache.kafka.controller at DEBUG): who was elected, and from which ISR"
        )
    elif controller.silenced_controller:
        wanted.append(f"changes of partitions in the log of the controller, node {controller.id}")
    absent = sorted(set(brokers) - logged - silenced)
    wanted += [f"the logs of node {node}: nothing it did is known" for node in absent]
    wanted += [f"loggers of node {node} were off (see the problems): it is not judged" for node in sorted(silenced)]
    by_logger: dict[tuple[int, str], list[Gap]] = {}
    # One break may show at several partitions of a node: it is listed once.
    for gap in dict.fromkeys(gap for gap in gaps if gap.node not in invented):
        by_logger.setdefault((gap.node, gap.logger), []).append(gap)
    for of_logger in by_logger.values():
        wanted += [str(gap) for gap in of_logger[:GAPS_SHOWN]]
        if len(of_logger) > GAPS_SHOWN:
            gap = of_logger[0]
            wanted.append(f"{gap.logger} of node {gap.node}: {len(of_logger) - GAPS_SHOWN:,} more gaps")
    if nameless:
        made_up = f" of node {nodes[0].id}" if nodes else ""
        wanted = [text.replace(made_up, " of the node, whose id no line says", 1) if made_up else text for text in wanted]
    return tuple(wanted)


def _clipped(gap: Gap, first: int, last: int) -> tuple[int, int]:
    """Return the times of a gap within those of the node's first and last line; None in `gap.times` is an open end."""
    begin, end = gap.times
    return (first if begin is None else max(first, begin), last if end is None else min(last, end))


def _union(spans: Iterable[tuple[int, int]]) -> int:
    """Return the total length of `spans` (begin, end) of times; what they share is counted once."""
    total, covered_until = 0, -1
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, covered_until))
        covered_until = max(covered_until, end)
    return total


# Loggers that were off.
#
# A log without the lines of a logger looks like a broker that never does what those lines report: it would be judged as
# broken. So a node whose log shows that a logger was off is not judged, and one Problem says what to switch on. Missing
# lines count only if something else in the logs shows that there should have been some.


_SEE = "switch it on and see docs/kafka-logs.md section 1; the replicas of this node are not judged"


def silent_loggers(node: Node, fetched: bool, responded: bool, fetches: bool) -> Iterator[Problem]:
    """Yield a problem per logger of a node that was off, as other lines show that it should have written some.

    `fetched`: followers went on fetching from this node. `responded`: a follower handled a response of it, of any kind; a
    leader for a moment may have sent one, and only its request log has the details. `fetches`: it may have fetched itself.
    """
    kinds = node.kinds
    # Nothing shows that this node had replicas: it may be a controller only.
    if not kinds["log-loaded"] and not fetched and not responded:
        return
    if kinds["log-loaded"] and not kinds["high-watermark"]:
        yield _off(node, "UnifiedLog at TRACE", "logs that are loaded, and no `Setting high watermark`")
    # A fetcher that is added sends its first fetch at once, unless its topic is deleted meanwhile.
    if kinds["fetcher-added"] and not kinds["sending"] and fetches:
        yield _off(node, "ReplicaFetcherThread at TRACE", "`Added fetcher`, and no `Sending fetch request`")
    # A new log has no epochs: the first append assigns one (LeaderEpochFileCache#assign).
    if kinds["log-created"] and kinds["appended"] and not kinds["epoch-entry"]:
        yield _off(node, "LeaderEpochFileCache at DEBUG", "appends to a new log, and no `Appended new epoch entry`")
    if (fetched or responded) and not node.requests:
        # Refused and diverging fetches, and those fenced while they waited, are logged nowhere else.
        yield _off(node, "kafka.request.logger at DEBUG", "fetches of followers, and no request")
    if fetched and not kinds["recorded"] and not kinds["leader-high-watermark"]:
        yield _off(node, "kafka.cluster.Partition at DEBUG", "fetches of followers, and no `Recorded replica`")


def silent_controller(controller: Node, nodes: Iterable[Node]) -> Problem | None:
    """Return a problem if a controller did not log every partition change; call before a node is silenced.

    A change without a line is known by its partition epoch: a broker acted on it, or it was the response to a proposal. Only
    partitions count of which the controller logged some change.
    """
    epochs_by_partition = controller.controller.epochs
    logged = {key for step in controller.broker.steps for key in step.provides}
    acted_on = {key for node in nodes for step in node.broker.steps for key in step.depends_on if key not in logged}
    responded = set(_changes_in_responses(controller)) - logged
    # Keys of changes are ("metadata", partition, partition epoch).
    unlogged = [
        key
        for key in acted_on | responded
        if isinstance(key, tuple) and key[0] == "metadata" and key[1] in epochs_by_partition
    ]
    if not unlogged and not controller.controller.gaps:
        return None
    return Problem(
        f"{controller.label or '.'}",
        None,
        "lines of org.apache.kafka.controller at DEBUG",
        "partition epochs without a `partition change`",
        "switch it on and see docs/kafka-logs.md section 1; elections and ISRs of the controller are not judged",
    )


def _changes_in_responses(controller: Node) -> Iterator[Hashable]:
    """Yield the keys of the changes that a controller's responses to proposals name."""
    for request in controller.requests:
        if request.name == "ALTER_PARTITION":
            # Malformed responses are reported by passes.py.
            with suppress(*NOT_KAFKAS):
                yield from _changes_in(controller, request.response)


def _changes_in(controller: Node, response: Mapping[str, Any]) -> Iterator[Hashable]:
    """Yield the key ("metadata", partition, partition epoch) of each change that an AlterPartition response names."""
    for topic in response.get("topics", ()):
        topic_id = str(topic.get("topicId") or topic.get("topicName"))
        for part in topic["partitions"]:
            if part["errorCode"] == 0 and "partitionEpoch" in part:
                tp = f"{controller.broker.topic_ids.get(topic_id, topic_id)}-{part['partitionIndex']}"
                yield "metadata", tp, int(part["partitionEpoch"])


def _off(node: Node, logger: str, seen: str) -> Problem:
    """Return the problem for a logger of a node that was off; `seen` says which lines there are, and which are not."""
    return Problem(f"{node.label or '.'}", None, f"lines of {logger}", seen, _SEE)


# Uncertain intervals: which steps of a partition lie in a gap. What is judged there is undecided
# (conformance/checking/verdicts.py).
#
# A gap lies between two steps of its own node. For a log that ends while its process runs that is too wide: a node logs
# nothing for days about a partition to which nothing happens, as a controller does while a leader stays. There the steps of
# other nodes that came before its last line, as far as that is known, do not lie in the gap either.


MANY_GAPS = 1_000
"""Gaps of a capture above which a trace lists one of each logger between the same steps: it may be one of 5,000 traces."""

BEHIND = AFTER_ALL_LINES[1] - 2
"""From this line index on a step comes after the last line of its process."""


class GapsOfNode(NamedTuple):
    """The gaps of a node by their numbers among all: those that end before the end of the log, and the `endless` ones.

    Of the former, in columns: where they begin and end (see `_numbers`), and the numbers of their loggers.
    """

    ended: Sequence[int]
    begins: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    loggers: npt.NDArray[np.int64]
    endless: Sequence[int]


class CaptureGaps:
    """All gaps of a capture, made ready to be looked for in each of thousands of partitions."""

    def __init__(self, gaps: Sequence[Gap]) -> None:
        """Sort the gaps by node: those that end in columns for bisection, those that reach the end of the log apart."""
        self.gaps = gaps
        self.by_node: dict[int, GapsOfNode] = {}
        self.of_requests: dict[int, int] = {}
        """By node, its first gap in which a response may lie."""
        logger_numbers = {logger: at for at, logger in enumerate(dict.fromkeys(gap.logger for gap in gaps))}
        ended: dict[int, list[int]] = defaultdict(list)
        endless: dict[int, list[int]] = defaultdict(list)
        for number, gap in enumerate(gaps):
            (endless if gap.end == AFTER_ALL_LINES else ended)[gap.node].append(number)
            if gap.logger in (REQUESTS, EVERYTHING):
                self.of_requests.setdefault(gap.node, number)
        for node in {**ended, **endless}:
            begins, ends = (_numbers(getattr(gaps[at], edge) for at in ended[node]) for edge in ("begin", "end"))
            loggers = np.array([logger_numbers[gaps[at].logger] for at in ended[node]], np.int64)
            self.by_node[node] = GapsOfNode(ended[node], begins, ends, loggers, endless[node])


def _numbers(spots: Iterable[Spot]) -> npt.NDArray[np.int64]:
    """Return each spot (process, index of a line) as one number, so that the numbers are ordered as the spots are."""
    # An index gets 41 bits. Those behind all lines, up to AFTER_ALL_LINES[1], are larger: they become the last such numbers.
    far = 1 << 40
    shift = 2 * far - 1 - AFTER_ALL_LINES[1]
    return np.array([(run << 41) + (index if index < far else shift + index) for run, index in spots], np.int64)


def uncertain_intervals(
    gaps: CaptureGaps,
    steps: Sequence[LoggedStep],
    ahead: Mapping[tuple[int, int], int] = {},
    seen_until: Mapping[tuple[int, int], int] = {},
) -> list[tuple[tuple[int, int], Gap]]:
    """Return each gap with the rows (numbers) of the first and the last of `steps` between which it lies.

    `steps` are those of one partition in the order of the trace. Gaps of nodes without a step there are left out. With more
    than MANY_GAPS in the capture, of those between the same steps only the first of each logger stays. `ahead` bounds the
    difference of clocks (merge.py); `seen_until` is until when a log was seen to go on (CarryOver).
    """
    if not gaps.gaps:
        return []
    # By node, its steps in the order of its lines, as (rows, spots): all, and those that have a line.
    every: dict[int, tuple[list[int], list[Spot]]] = {}
    logged: dict[int, tuple[list[int], list[Spot]]] = {}
    provided = {key for step in steps for key in step.provides}
    # By leader, the rows of steps that handle a response which no step gives.
    unanswered: dict[object, list[int]] = {}
    for row, step in enumerate(steps):
        # Steps that were added after every line of a process (its end, unlogged sends) do not show how far its log goes.
        for by_node in (every, logged) if step.line_index < BEHIND else (every,):
            rows, spots = by_node.setdefault(step.node, ([], []))
            rows.append(row)
            spots.append(step.spot)
        if step.name in TAKES_RESPONSES and not any(key in provided for key in step.depends_on if _is_response(key)):
            unanswered.setdefault(step.fields.get("peer"), []).append(row)
    # Gaps by number, with their rows.
    intervals: list[tuple[int, tuple[int, int]]] = []
    for node, of_node in gaps.by_node.items():
        if node not in every:
            continue
        (logged_rows, logged_spots), (all_rows, all_spots) = logged.get(node, ([], [])), every[node]
        # The last step with a line before a gap begins (else the first step of all), and the first step from its end on
        # (else the last of all).
        rows_before, rows_behind = np.array([0, *logged_rows]), np.array([*all_rows, len(steps) - 1])
        first = rows_before[np.searchsorted(_numbers(logged_spots), of_node.begins)]
        last = rows_behind[np.searchsorted(_numbers(all_spots), of_node.ends)]
        low, high = np.minimum(first, last), np.maximum(first, last)
        chosen = np.arange(len(low))
        if len(gaps.gaps) > MANY_GAPS:
            # One number for (low, high, logger).
            _, chosen = np.unique((low * len(steps) + high) * len(gaps.gaps) + of_node.loggers, return_index=True)
        rows_of_chosen = zip(low[chosen].tolist(), high[chosen].tolist(), strict=True)
        intervals += zip((of_node.ended[at] for at in chosen.tolist()), rows_of_chosen, strict=True)
        for number in of_node.endless:
            gap = gaps.gaps[number]
            at = bisect_left(logged_spots, gap.begin)
            # It begins behind the node's own last step before it, and behind what surely came before its last line.
            begin = max(int(rows_before[at]), _steps_before_gap(gap, steps, ahead, seen_until) - 1)
            intervals.append((number, (min(begin, len(steps) - 1), len(steps) - 1)))
    # A response that no step gives lies in the gap of its leader: only clocks order it against the leader's steps.
    for node, number in gaps.of_requests.items():
        intervals += [(number, (row, row)) for row in unanswered.get(node, ())]
    intervals.sort(key=itemgetter(0))
    return [(rows, gaps.gaps[number]) for number, rows in intervals]


def _is_response(key: object) -> bool:
    """Return whether a key ties the step that handles a response to the one that gives it: ("answered", request)."""
    return isinstance(key, tuple) and key[0] == "answered"


def _steps_before_gap(
    gap: Gap, steps: Sequence[LoggedStep], ahead: Mapping[tuple[int, int], int], seen_until: Mapping[tuple[int, int], int]
) -> int:
    """Return how many steps at the beginning of `steps` surely came before the line after which a gap begins.

    `ahead` and `seen_until` are those of `uncertain_intervals`.
    """
    begin = gap.times[0]
    if begin is None:
        return 0

    def before(step: LoggedStep) -> bool:
        """Return whether a step surely came before the line after which the gap begins."""
        if step.node == gap.node:
            return step.spot <= gap.begin
        # A log that was seen to go on after this step has no gap before it.
        if step.time <= seen_until.get((step.node, gap.node), step.time - 1):
            return True
        # Of two nodes only clocks say which came first, and only as far as messages bound their difference.
        bound = ahead.get((step.node, gap.node))
        return bound is not None and step.time + bound <= begin

    return sum(1 for _ in takewhile(before, steps))

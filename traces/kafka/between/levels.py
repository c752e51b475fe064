"""Which loggers were off.

A log without the lines of a logger looks like a broker that never does what those lines report: it would be judged as
broken. So a node whose log shows that a logger was off is not judged, and one Problem says what to switch on. Missing lines
count only if something else in the logs shows that there should have been some.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from tidegauge.traces.kafka.lines.requests import NOT_KAFKAS
from tidegauge.traces.kafka.nodes.node import Node
from tidegauge.traces.problems import Problem

_SEE = "switch it on and see docs/kafka-logs.md section 1; the replicas of this node are not judged"


def silent_loggers(node: Node, fetched: bool, responded: bool) -> Iterator[Problem]:
    """Yield a problem per logger that was off.

    `fetched`: followers went on fetching from this node. `responded`: a follower handled a response of it, of any kind; a
    leader for a moment may have sent one, and only its request log has the details.
    """
    kinds = node.kinds
    if not kinds["log-loaded"] and not fetched and not responded:
        return
    if kinds["log-loaded"] and not kinds["high-watermark"]:
        yield _off(node, "UnifiedLog at TRACE", "logs that are loaded, and no `Setting high watermark`")
    if kinds["fetcher-added"] and not kinds["sending"]:
        yield _off(node, "ReplicaFetcherThread at TRACE", "`Added fetcher`, and no `Sending fetch request`")
    if kinds["log-created"] and kinds["appended"] and not kinds["epoch-entry"]:
        yield _off(node, "LeaderEpochFileCache at DEBUG", "appends to a new log, and no `Appended new epoch entry`")
    if (fetched or responded) and not node.requests:
        # Refused and diverging fetches, and those fenced while they waited, are logged nowhere else.
        yield _off(node, "kafka.request.logger at DEBUG", "fetches of followers, and no request")
    if fetched and not kinds["recorded"] and not kinds["leader-high-watermark"]:
        yield _off(node, "kafka.cluster.Partition at DEBUG", "fetches of followers, and no `Recorded replica`")


def silent_controller(controller: Node, nodes: Iterable[Node]) -> Problem | None:
    """Return a problem if a controller did not log every change of its registrations; call before a node is silenced."""
    registered = controller.controller.epochs
    reported = {key for step in controller.broker.steps for key in step.provides}
    acted = {key for node in nodes for step in node.broker.steps for key in step.depends_on if key not in reported}
    accepted = set(_accepted(controller)) - reported
    unknown = [key for key in acted | accepted if isinstance(key, tuple) and key[0] == "metadata" and key[1] in registered]
    if not unknown and not controller.controller.gaps:
        return None
    return Problem(
        f"{controller.label or '.'}",
        None,
        "lines of org.apache.kafka.controller at DEBUG",
        "partition epochs without a `partition change`",
        "switch it on and see docs/kafka-logs.md section 1; elections and ISRs of the controller are not judged",
    )


def _accepted(controller: Node) -> Iterator[Hashable]:
    """Yield the changes that its responses to proposals name; malformed responses are reported by passes.py."""
    for request in controller.requests:
        if request.name == "ALTER_PARTITION":
            with suppress(*NOT_KAFKAS):
                yield from _made(controller, request.response)


def _made(controller: Node, response: Mapping[str, Any]) -> Iterator[Hashable]:
    for topic in response.get("topics", ()):
        topic_id = str(topic.get("topicId") or topic.get("topicName"))
        for part in topic["partitions"]:
            if part["errorCode"] == 0 and "partitionEpoch" in part:
                tp = f"{controller.broker.topic_ids.get(topic_id, topic_id)}-{part['partitionIndex']}"
                yield "metadata", tp, int(part["partitionEpoch"])


def _off(node: Node, logger: str, seen: str) -> Problem:
    return Problem(f"{node.label or '.'}", None, f"lines of {logger}", seen, _SEE)

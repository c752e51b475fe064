"""A check: the requests, the responses that they must get, the rule behind that, and Kafka's code for it.

Rules of this file

1. A check is a row of a table: a stable id, the rule of the catalog ("" where there is none), Kafka's class and method, a
   sentence, the requests. The requests are a generator, so that a later one may use the response to an earlier one.
2. Of a response only those fields are expected that the rule is about; a frozenset of values means any of them.
3. Nothing is expected of a broker that does not offer a request in the version of `needs`.
4. A fetch may return fewer batches than there are, but not none (KIP-74). The rest is fetched from after them, as a consumer
   does, and compared in the same way.
"""

from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple

from tidegauge.drive.probe.connection import BrokerConnection, ConnectionClosedError, NoResponseError, single_entry
from tidegauge.drive.probe.fixtures import Fixtures
from tidegauge.drive.wire.compiler import WireMessage
from tidegauge.drive.wire.frames import WireRequest
from tidegauge.impl.errors import error_text
from tidegauge.impl.rules import UNDEFINED
from tidegauge.traces.segments import CorruptBatchError, header

ExpectedFields = Mapping[str, Any]
CLOSED = {"connection": "closed"}
"""Expected where Kafka closes the connection."""
CLOSES = "connection: expected that it is closed; seen that it is not:"

BATCHES, EPOCHS = "batches", "epochs"
"""Of a fetch: base and last offset of each batch, and the leader epoch of each. Two fields, because a broker that stamps no
epochs has one thing wrong, not every check that reads."""

REPORTED = "told"
"""Of a fetch in a session: the partitions in its response. If it is a single one, the other fields are those of it."""


class Expectation(NamedTuple):
    """A request and the fields of the response that it must get; `expected` None: there must be no response.

    `claimed`: the version that the request's header claims in place of its own.
    """

    connection: BrokerConnection
    call: WireRequest
    expected: ExpectedFields | None
    claimed: int | None = None


Script = Generator[Expectation, WireMessage, None]


class Check(NamedTuple):
    """A row of the table of checks. `needs`: the least version of each request that it takes."""

    id: str
    rule: str
    source: str
    says: str
    script: Callable[[Fixtures], Script]
    needs: Mapping[str, int] = {}


def one_request(expectation: Callable[[Fixtures], Expectation]) -> Callable[[Fixtures], Script]:
    """Make the script of a check with a single request."""

    def script(fixtures: Fixtures) -> Script:
        yield expectation(fixtures)

    return script


class FailedError(Exception):
    """The response is not the expected one."""


def check_exchange(expectation: Expectation) -> WireMessage:
    """Send a request and compare the response with the expected one; return its fields. Raises FailedError."""
    # A request with acks=0: the broker sends no response.
    if expectation.expected is None:
        expectation.connection.send(expectation.call)
        return {}
    closes = expectation.expected == CLOSED
    try:
        response = (
            expectation.connection.request(expectation.call)
            if expectation.claimed is None
            else expectation.connection.request_claiming(expectation.call, expectation.claimed)
        )
    except ConnectionClosedError as problem:
        if closes:
            return {}
        raise FailedError(str(problem)) from problem
    except NoResponseError as problem:
        raise FailedError(f"{CLOSES} {problem}" if closes else str(problem)) from problem
    if closes:
        raise FailedError(f"{CLOSES} {expectation.call.name} is answered")
    seen = session_response(response) if REPORTED in expectation.expected else partition_in(expectation.call.name, response)
    for name, wanted in expectation.expected.items():
        if not _matches(seen.get(name), wanted) and not (name in (BATCHES, EPOCHS) and _is_part(seen[name], wanted)):
            raise FailedError(f"{name}: expected {_value_text(name, wanted)}; seen {_value_text(name, seen.get(name))}")
    return _fetch_rest(expectation, expectation.expected, seen)


def _is_part(seen: list[Any], wanted: list[Any]) -> bool:
    return 0 < len(seen) < len(wanted) and wanted[: len(seen)] == seen


def _fetch_rest(expectation: Expectation, expected: ExpectedFields, seen: WireMessage) -> WireMessage:
    """Fetch on until as many batches were read as are expected; return the fields with all of them."""
    parts = {name: expected[name][len(seen[name]) :] for name in (BATCHES, EPOCHS) if name in expected}
    if not any(parts.values()):
        return seen
    rest = check_exchange(expectation._replace(call=_next_fetch(expectation.call, seen), expected={**expected, **parts}))
    return {**rest, BATCHES: seen[BATCHES] + rest[BATCHES], EPOCHS: seen[EPOCHS] + rest[EPOCHS]}


def _next_fetch(call: WireRequest, seen: WireMessage) -> WireRequest:
    """Return the fetch that goes on after the last batch."""
    (topic,) = call.body["topics"]
    (fetched,) = topic["partitions"]
    # A fetch that carries the last fetched epoch, as a follower's does, now carries that of the last batch.
    epoch = UNDEFINED if fetched["lastFetchedEpoch"] == UNDEFINED else seen[EPOCHS][-1]
    partition = {**fetched, "fetchOffset": seen[BATCHES][-1][1] + 1, "lastFetchedEpoch": epoch}
    return call._replace(body={**call.body, "topics": [{**topic, "partitions": [partition]}]})


def partition_in(name: str, response: WireMessage) -> WireMessage:
    """Return the only partition of a response; an error of the whole response counts as its error. Raises FailedError."""
    try:
        return _single_partition(name, response)
    except NoResponseError as problem:
        raise FailedError(f"{name}: {problem}") from problem


def session_response(response: WireMessage) -> WireMessage:
    """Return the fields of a response to a fetch in a session, which may have no partition. Raises FailedError."""
    reported = tuple(
        sorted(_place(topic, partition) for topic in response["responses"] for partition in topic["partitions"])
    )
    partition = partition_in("Fetch", response) if len(reported) == 1 else {"errorCode": response["errorCode"]}
    return {"sessionId": response["sessionId"], REPORTED: reported, **partition}


def _place(topic: WireMessage, partition: WireMessage) -> str:
    """Name a partition by its topic, or by the topic id where the version has no names."""
    return f"{topic.get('topic') or topic['topicId']}-{partition['partitionIndex']}"


def _single_partition(name: str, response: WireMessage) -> WireMessage:
    """Return the fields of the only partition or topic in a response of this name."""
    match name:
        case "Fetch":
            return _fetched(response)
        case "Produce":
            return single_entry(response, "responses", "partitionResponses")
        case "ListOffsets" | "OffsetForLeaderEpoch" | "DeleteRecords":
            return single_entry(response, "topics", "partitions")
        case "Metadata" | "CreateTopics":
            return single_entry(response, "topics")
        case "DeleteTopics":
            return single_entry(response, "responses")
        case _:
            return response


def _fetched(response: WireMessage) -> WireMessage:
    """Return the partition of a fetch response, its batches and epochs as lists. Raises FailedError for corrupt records."""
    if response.get("errorCode"):
        return {"errorCode": response["errorCode"]}
    partition = dict(single_entry(response, "responses", "partitions"))
    try:
        batches = batches_in(partition.pop("records") or b"")
    except CorruptBatchError as problem:
        raise FailedError(f"records: {problem}") from problem
    partition[BATCHES] = [(base, last) for base, last, _ in batches]
    partition[EPOCHS] = [epoch for _, _, epoch in batches]
    # A response that does not diverge has both undefined, or leaves the field out.
    diverging = partition.get("divergingEpoch") or {"epoch": UNDEFINED, "endOffset": UNDEFINED}
    end_of_epoch = (diverging["epoch"], diverging["endOffset"])
    partition["divergingEpoch"] = None if end_of_epoch == (UNDEFINED, UNDEFINED) else end_of_epoch
    return partition


def batches_in(data: bytes) -> list[tuple[int, int, int]]:
    """Return base offset, last offset and leader epoch of each batch. Raises CorruptBatchError."""
    at, batches = 0, []
    while at < len(data):
        batch, at = header(data, at)
        batches.append((batch.base, batch.last, batch.epoch))
    return batches


def _matches(seen: Any, wanted: Any) -> bool:
    return seen in wanted if isinstance(wanted, frozenset) else bool(seen == wanted)


def _value_text(name: str, value: Any) -> str:
    """Return a value as a failure prints it: error codes by name, allowed values joined by `or`."""
    if isinstance(value, frozenset):
        return " or ".join(_value_text(name, choice) for choice in sorted(value))
    if name == "errorCode" and isinstance(value, int):
        return error_text(value)
    return "nothing" if value is None else str(value)

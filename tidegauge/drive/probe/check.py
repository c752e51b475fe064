"""A check: the requests, the responses that they must get, the rule behind that, and Kafka's code for it.

Rules of this file

1. A check is a row of a table: a stable id, the rule of the catalog ("" where there is none), Kafka's class and method, a
   sentence, the script. A script is a generator: it yields each request with what is expected (an Expectation) and is sent
   the fields of the response, so that a later request may use an earlier response. It ends when the check has passed.
2. Of a response only those fields are expected that the rule is about; a frozenset of values means any of them. The fields
   are those of the only partition (or topic) that the request names, without the lists around it. In place of the encoded
   records it has BATCHES, a (base offset, last offset) per batch, and EPOCHS, a leader epoch per batch; in a session also
   REPORTED, the names of the partitions in the response.
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
"""Fields that stand for the records of a fetch: a list of (base offset, last offset), one per batch; and a list of their
leader epochs. Two fields, because a broker that stamps no epochs has one thing wrong, not every check that reads."""

REPORTED = "told"
"""A field that stands for the partitions in the response to a fetch in a session: a sorted tuple of "topic-index" strings.
If the response has a single partition, the other fields are those of that partition."""


class Expectation(NamedTuple):
    """A request and the fields of the response that it must get.

    `connection`: where `call`, the request, is sent. `expected`: values by field name; CLOSED where the broker must close
    the connection; None where there must be no response. `claimed`: the version that the request's header claims in place of
    the version in which the request is encoded; None for no difference.
    """

    connection: BrokerConnection
    call: WireRequest
    expected: ExpectedFields | None
    claimed: int | None = None


Script = Generator[Expectation, WireMessage, None]


class Check(NamedTuple):
    """A row of the table of checks: rule 1 of this file.

    `source`: Kafka's class and method. `says`: the sentence about Kafka that the check tests. `needs`: request name -> the
    lowest version with which the check works; a request that is not named may have any version.
    """

    id: str
    rule: str
    source: str
    says: str
    script: Callable[[Fixtures], Script]
    needs: Mapping[str, int] = {}


def one_request(expectation: Callable[[Fixtures], Expectation]) -> Callable[[Fixtures], Script]:
    """Make the script of a check with a single request, which `expectation` returns when the check runs."""

    def script(fixtures: Fixtures) -> Script:
        """Make the only request, and pass if its response has the expected fields."""
        yield expectation(fixtures)

    return script


class FailedError(Exception):
    """The response is not the expected one."""


def check_exchange(expectation: Expectation) -> WireMessage:
    """Send a request and compare the response with the expected one; return its fields, none where there is no response.

    Raises FailedError, with what was expected and what was seen.
    """
    # A Produce request with acks=0: the broker sends no response.
    if expectation.expected is None:
        expectation.connection.send(expectation.call)
        return {}
    closes = expectation.expected == CLOSED
    try:
        # `claimed`: the header is to name another version than the one in which the request is encoded.
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
    # A fetch in a session may be answered with any number of partitions, all other requests with one.
    fields = (
        session_response(response) if REPORTED in expectation.expected else partition_in(expectation.call.name, response)
    )
    for name, value in expectation.expected.items():
        # Some of the batches are enough for now: `_fetch_remaining` compares the others (rule 4 of this file).
        if not _matches(fields.get(name), value) and not (name in (BATCHES, EPOCHS) and _is_prefix(fields[name], value)):
            raise FailedError(f"{name}: expected {_value_text(name, value)}; seen {_value_text(name, fields.get(name))}")
    return _fetch_remaining(expectation, expectation.expected, fields)


def _is_prefix(part: list[Any], whole: list[Any]) -> bool:
    """Return whether `part` is a beginning of `whole`, neither empty nor all of it."""
    return 0 < len(part) < len(whole) and whole[: len(part)] == part


def _fetch_remaining(expectation: Expectation, expected: ExpectedFields, fields: WireMessage) -> WireMessage:
    """Fetch on until as many batches were read as are expected; return the fields with all of them.

    `fields`: those of the response to `expectation`, which fit `expected` as far as they go. Raises FailedError.
    """
    # What is still to come, by field; a field that is not expected is not waited for.
    missing = {name: expected[name][len(fields[name]) :] for name in (BATCHES, EPOCHS) if name in expected}
    if not any(missing.values()):
        return fields
    next_fetch = expectation._replace(call=_next_fetch(expectation.call, fields), expected={**expected, **missing})
    remaining = check_exchange(next_fetch)
    return {**remaining, BATCHES: fields[BATCHES] + remaining[BATCHES], EPOCHS: fields[EPOCHS] + remaining[EPOCHS]}


def _next_fetch(call: WireRequest, fields: WireMessage) -> WireRequest:
    """Return the fetch that continues after the last batch in `fields`, the response to the fetch `call`."""
    (topic,) = call.body["topics"]
    (partition,) = topic["partitions"]
    # A fetch that carries the last fetched epoch, as a follower's does, now carries that of the last batch.
    last_fetched_epoch = UNDEFINED if partition["lastFetchedEpoch"] == UNDEFINED else fields[EPOCHS][-1]
    _, last_offset = fields[BATCHES][-1]
    partition = {**partition, "fetchOffset": last_offset + 1, "lastFetchedEpoch": last_fetched_epoch}
    return call._replace(body={**call.body, "topics": [{**topic, "partitions": [partition]}]})


def partition_in(name: str, response: WireMessage) -> WireMessage:
    """Return the fields of the only partition in a response; `name` is that of the request, such as "Fetch".

    The error code of a whole fetch response counts as that of its partition. Raises FailedError unless there is one.
    """
    try:
        return _single_partition(name, response)
    except NoResponseError as problem:
        raise FailedError(f"{name}: {problem}") from problem


def session_response(response: WireMessage) -> WireMessage:
    """Return the fields of a response to a fetch in a session, which may have no partition or several.

    They are the session id, the partitions (REPORTED), and those of the partition if it is the only one; else the error code
    of the response. Raises FailedError.
    """
    reported = tuple(
        sorted(_partition_name(topic, partition) for topic in response["responses"] for partition in topic["partitions"])
    )
    partition = partition_in("Fetch", response) if len(reported) == 1 else {"errorCode": response["errorCode"]}
    return {"sessionId": response["sessionId"], REPORTED: reported, **partition}


def _partition_name(topic: WireMessage, partition: WireMessage) -> str:
    """Return "topic-index" for a partition of a fetch response; the topic id where the version has no topic names."""
    return f"{topic.get('topic') or topic['topicId']}-{partition['partitionIndex']}"


def _single_partition(name: str, response: WireMessage) -> WireMessage:
    """Return the fields of the only partition or topic in a response to the request `name`; of others the whole response.

    Raises NoResponseError if there is not one partition, FailedError for corrupt records.
    """
    match name:
        case "Fetch":
            return _fetched_partition(response)
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


def _fetched_partition(response: WireMessage) -> WireMessage:
    """Return the fields of the partition in a fetch response, with BATCHES and EPOCHS in place of the encoded records.

    "divergingEpoch" becomes the pair (epoch, end offset), or None. Raises FailedError for corrupt records.
    """
    # An error of the whole response, such as a wrong session id: it has no partitions then.
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
    epoch_and_end = (diverging["epoch"], diverging["endOffset"])
    partition["divergingEpoch"] = None if epoch_and_end == (UNDEFINED, UNDEFINED) else epoch_and_end
    return partition


def batches_in(data: bytes) -> list[tuple[int, int, int]]:
    """Return (base offset, last offset, leader epoch) of each batch in encoded records. Raises CorruptBatchError."""
    position, batches = 0, []
    while position < len(data):
        batch, position = header(data, position)
        batches.append((batch.base, batch.last, batch.epoch))
    return batches


def _matches(value: Any, expected: Any) -> bool:
    """Return whether a field has the expected value, or one of a frozenset of expected values."""
    return value in expected if isinstance(expected, frozenset) else bool(value == expected)


def _value_text(name: str, value: Any) -> str:
    """Return a field's value as a failure prints it: error codes by their names, allowed values joined by `or`."""
    if isinstance(value, frozenset):
        return " or ".join(_value_text(name, choice) for choice in sorted(value))
    if name == "errorCode" and isinstance(value, int):
        return error_text(value)
    return "nothing" if value is None else str(value)

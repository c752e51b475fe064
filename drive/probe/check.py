"""A check: what is asked, what must come back, which rule that is, and where Kafka has it.

Rules of this file

1. A check is a row of a table: an id that stays, the rule of the catalog it is about ("" where none is), Kafka's class and
   method, a sentence, the requests. Its requests are a generator, so that a later one may use what an earlier one got.
2. Expected are fields of the response, as far as a rule speaks about them; a set of values means any of them.
3. Nothing is expected of a broker that does not offer a request in the version of `needs`.
4. A fetch may bring fewer batches than there are, but for none (KIP-74): the rest is asked for from behind them, as a
   consumer does, and held against what must be there in the same way.
"""

from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple

from tidegauge.drive.probe.connection import ClosedError, Link, LinkError, only
from tidegauge.drive.probe.fixtures import Scenes
from tidegauge.drive.wire.compiler import WireMessage
from tidegauge.drive.wire.frames import WireRequest
from tidegauge.impl.error_codes import error_text
from tidegauge.impl.rules import UNDEFINED
from tidegauge.traces.segments.record_batch import CorruptBatchError, header

Expected = Mapping[str, Any]
CLOSED = {"connection": "closed"}
"""Expected where Kafka closes the connection."""
CLOSES = "connection: expected that it is closed; seen that it is not:"

BATCHES, EPOCHS = "batches", "epochs"
"""Of a fetch: base and last offset of each batch, leader epoch of each. Who stamps no epochs has one thing wrong, not all
that reads."""

REPORTED = "told"
"""Of a fetch in a session: the partitions that its response is about. Fields are those of the one, where it is one."""


class Ask(NamedTuple):
    """A request and what must come back; without `expected` there must be no response."""

    link: Link
    call: WireRequest
    expected: Expected | None
    claimed: int | None = None


Asks = Generator[Ask, WireMessage, None]


class Check(NamedTuple):
    """A row."""

    id: str
    rule: str
    source: str
    says: str
    asks: Callable[[Scenes], Asks]
    needs: Mapping[str, int] = {}


def once(ask: Callable[[Scenes], Ask]) -> Callable[[Scenes], Asks]:
    """A check of one request."""

    def asks(scenes: Scenes) -> Asks:
        yield ask(scenes)

    return asks


class FailedError(Exception):
    """Something else came back than must."""


def exchanged(ask: Ask) -> WireMessage:
    """Send it and hold what comes back against what must. Raises FailedError."""
    if ask.expected is None:
        ask.link.send(ask.call)
        return {}
    closes = ask.expected == CLOSED
    try:
        response = ask.link.ask(ask.call) if ask.claimed is None else ask.link.claim(ask.call, ask.claimed)
    except ClosedError as problem:
        if closes:
            return {}
        raise FailedError(str(problem)) from problem
    except LinkError as problem:
        raise FailedError(f"{CLOSES} {problem}" if closes else str(problem)) from problem
    if closes:
        raise FailedError(f"{CLOSES} {ask.call.name} is answered")
    seen = in_session(response) if REPORTED in ask.expected else reading(ask.call.name, response)
    for name, wanted in ask.expected.items():
        if not _is(seen.get(name), wanted) and not (name in (BATCHES, EPOCHS) and _begins(seen[name], wanted)):
            raise FailedError(f"{name}: expected {_shown(name, wanted)}; seen {_shown(name, seen.get(name))}")
    return _whole(ask, ask.expected, seen)


def _begins(seen: list[Any], wanted: list[Any]) -> bool:
    return 0 < len(seen) < len(wanted) and wanted[: len(seen)] == seen


def _whole(ask: Ask, expected: Expected, seen: WireMessage) -> WireMessage:
    """What a fetch brought, and what comes behind it as far as it was expected."""
    parts = {name: expected[name][len(seen[name]) :] for name in (BATCHES, EPOCHS) if name in expected}
    if not any(parts.values()):
        return seen
    rest = exchanged(ask._replace(call=_behind(ask.call, seen), expected={**expected, **parts}))
    return {**rest, BATCHES: seen[BATCHES] + rest[BATCHES], EPOCHS: seen[EPOCHS] + rest[EPOCHS]}


def _behind(call: WireRequest, seen: WireMessage) -> WireRequest:
    """A fetch goes on behind the last batch; who says what it fetched last says the epoch of that."""
    (topic,) = call.body["topics"]
    (asked,) = topic["partitions"]
    epoch = UNDEFINED if asked["lastFetchedEpoch"] == UNDEFINED else seen[EPOCHS][-1]
    partition = {**asked, "fetchOffset": seen[BATCHES][-1][1] + 1, "lastFetchedEpoch": epoch}
    return call._replace(body={**call.body, "topics": [{**topic, "partitions": [partition]}]})


def reading(name: str, response: WireMessage) -> WireMessage:
    """The one partition of a response; an error of the whole stands for one of the partition. Raises FailedError."""
    try:
        return _partition_in(name, response)
    except LinkError as problem:
        raise FailedError(f"{name}: {problem}") from problem


def in_session(response: WireMessage) -> WireMessage:
    """A response to a fetch in a session, which may be about no partition. Raises FailedError."""
    reported = tuple(sorted(_place(topic, one) for topic in response["responses"] for one in topic["partitions"]))
    one = reading("Fetch", response) if len(reported) == 1 else {"errorCode": response["errorCode"]}
    return {"sessionId": response["sessionId"], REPORTED: reported, **one}


def _place(topic: WireMessage, partition: WireMessage) -> str:
    """A partition by name, by id where the version has no names."""
    return f"{topic.get('topic') or topic['topicId']}-{partition['partitionIndex']}"


def _partition_in(name: str, response: WireMessage) -> WireMessage:
    match name:
        case "Fetch":
            return _fetched(response)
        case "Produce":
            return only(response, "responses", "partitionResponses")
        case "ListOffsets" | "OffsetForLeaderEpoch" | "DeleteRecords":
            return only(response, "topics", "partitions")
        case _:
            return response


def _fetched(response: WireMessage) -> WireMessage:
    if response.get("errorCode"):
        return {"errorCode": response["errorCode"]}
    found = dict(only(response, "responses", "partitions"))
    try:
        batches = batches_in(found.pop("records") or b"")
    except CorruptBatchError as problem:
        raise FailedError(f"records: {problem}") from problem
    found[BATCHES], found[EPOCHS] = [one[:2] for one in batches], [one[2] for one in batches]
    diverging = found.get("divergingEpoch") or {"epoch": UNDEFINED, "endOffset": UNDEFINED}
    at = (diverging["epoch"], diverging["endOffset"])
    found["divergingEpoch"] = None if at == (UNDEFINED, UNDEFINED) else at
    return found


def batches_in(data: bytes) -> list[tuple[int, int, int]]:
    """Base, last offset and leader epoch of each batch. Raises CorruptBatchError."""
    at, found = 0, []
    while at < len(data):
        batch, at = header(data, at)
        found.append((batch.base, batch.last, batch.epoch))
    return found


def _is(seen: Any, wanted: Any) -> bool:
    return seen in wanted if isinstance(wanted, frozenset) else bool(seen == wanted)


def _shown(name: str, value: Any) -> str:
    if isinstance(value, frozenset):
        return " or ".join(_shown(name, one) for one in sorted(value))
    if name == "errorCode" and isinstance(value, int):
        return error_text(value)
    return "nothing" if value is None else str(value)

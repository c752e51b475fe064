"""Fetches of peers in sessions: when a response names the partition, what a cached offset does to the leader, and that a
broker with a session of its own making is found."""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any
from uuid import uuid4

import pytest

from tests.drive.broker.test_waiting_requests import (
    LEADS,
    LEADS_AGAIN,
    THREE_BROKERS,
    TWO_BROKERS,
    read_result,
    taken_through,
)
from tests.drive.wire.test_frames import in_a_loop
from tidegauge.drive.broker.contract import BrokerCase, Opening
from tidegauge.drive.broker.known_bugs import BUGS
from tidegauge.drive.broker.peer_fetches import TP, known_of
from tidegauge.drive.broker.reference import reference, reference_with, take_step, take_step_unread
from tidegauge.drive.broker.state import Outcome, ReferenceBroker, WrongStep, fetch_json, opened
from tidegauge.drive.broker.steps import EVERYTHING, IN_SESSION
from tidegauge.drive.broker.transcript import BROKER_FORMAT
from tidegauge.drive.contract import Capabilities, Path, Report, Step
from tidegauge.drive.kafka_broker.clients import PartitionRequests, Topic
from tidegauge.drive.kafka_broker.partition import PeerSessions
from tidegauge.drive.paths.graphs import GRAPHS, cover_of
from tidegauge.drive.paths.walks import walks
from tidegauge.drive.probe.connection import shipped_messages
from tidegauge.drive.runner.player import ReferenceNode, play
from tidegauge.drive.runner.report import story
from tidegauge.drive.runner.run import run, shrunk
from tidegauge.drive.runner.transcript import place_of, read
from tidegauge.drive.transports.lines import DrivenProgramError, parse_report
from tidegauge.drive.wire.compiler import WireMessage
from tidegauge.drive.wire.frames import Conditions, Connection, Listener, ReceivedRequest
from tidegauge.impl.errors import FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH
from tidegauge.impl.fetch.fetch_session import FINAL_EPOCH
from tidegauge.impl.messages import FetchResponse
from tidegauge.impl.profiles import FETCH_TRUNCATION

APPEND: Step = ("append", 1)
FENCED, NOT_LEADER, OUT_OF_RANGE = {"error": 74}, {"error": 6}, {"error": 1}
OF_SESSIONS = ("session_starts", "sessions")
NOT_FOUND, INVALID = {"error": FETCH_SESSION_ID_NOT_FOUND}, {"error": INVALID_FETCH_SESSION_EPOCH}


def fetch(session_epoch: int, offset: int = 0, last: int = -1, epoch: int = 0, peer: int = 2) -> Step:
    return "fetch_in_session", peer, epoch, offset, last, True, session_epoch


def others(session_epoch: int) -> Step:
    return "fetch_others", 2, session_epoch


def empty(hw: int, log_start: int = 0) -> Report:
    return {"error": 0, "hw": hw, "log_start": log_start, "records": [], "diverging": None}


def results_of(path: Path, opening: Opening = TWO_BROKERS) -> list[Any]:
    """What the fetches in sessions were answered with."""
    reports = zip(path, taken_through(path, opening), strict=True)
    return [one["result"] for taken, one in reports if taken[0] in IN_SESSION]


# ---------------------------------------------------------------------------------------------------------------------
# What a response names. Each of these paths is given to unmodified brokers, too: test_kafka_broker.

LET_IN: Path = (("metadata", 1, 0, 0, (1,)), APPEND, (*fetch(0, 1, 0)[:5], False, 0), fetch(1, 1, 0))
"""The peer says nothing new: it is the metadata cache that has come to let it in."""

NAMED: dict[str, tuple[Path, list[Report | None]]] = {
    "nothing new is not named, asked anew or not": (
        (*LEADS, fetch(0), fetch(1), fetch(2, 0, 0), fetch(3, 0, 0)),
        [empty(0), None, None, None],
    ),
    "records, as long as they are asked for": (
        (*LEADS, fetch(0), APPEND, fetch(1), fetch(2), fetch(3, 1, 0)),
        [empty(0), read_result(0, 0), read_result(0, 0), None],
    ),
    "a high watermark that moved, once": (
        (*LEADS, APPEND, fetch(0), fetch(1, 1, 0), fetch(2, 1, 0), fetch(3, 1, 0)),
        [read_result(0, 0), None, empty(1), None],
    ),
    "a log start that moved, once": (
        (*LEADS, APPEND, fetch(0), fetch(1, 1, 0), fetch(2, 1, 0), ("delete_records", 1), fetch(3, 1, 0), fetch(4, 1, 0)),
        [read_result(0, 0), None, empty(1), empty(1, 1), None],
    ),
    "an error each time, and what was known already after it": (
        (*LEADS, fetch(0), fetch(1, epoch=1), fetch(2, epoch=1), fetch(3), fetch(4)),
        [empty(0), {"error": 75}, {"error": 75}, empty(0), None],
    ),
    "a divergence each time": (
        (*LEADS, APPEND, LEADS_AGAIN, fetch(0, 2, 0, 1), fetch(1, 2, 0, 1), fetch(2, 2, 0, 1)),
        [{"error": 0, "hw": 0, "log_start": 0, "records": [], "diverging": [0, 1]}] * 3,
    ),
    "an offset that is out of range each time": ((*LEADS, fetch(0, 4), fetch(1, 4)), [OUT_OF_RANGE] * 2),
    "the cached leader epoch is fenced": ((*LEADS, fetch(0), LEADS_AGAIN, fetch(1), fetch(2)), [empty(0), FENCED, FENCED]),
    "who leads no more says so": (
        (*LEADS, fetch(0), ("metadata", 2, 1, 1, (1, 2)), fetch(1, epoch=1), fetch(2, epoch=1)),
        [empty(0), NOT_LEADER, NOT_LEADER],
    ),
    "what was forgotten is not named, and is when it is back": (
        (*LEADS, fetch(0), others(1), APPEND, others(2), fetch(3, 1, 0), fetch(4, 1, 0), fetch(5, 1, 0)),
        [empty(0), None, None, empty(0), empty(1), None],
    ),
    "a skipped epoch is refused, and the one that is due goes on": (
        (*LEADS, fetch(0), fetch(2), fetch(1), fetch(1), fetch(2)),
        [empty(0), INVALID, None, INVALID, None],
    ),
    "a session that was never opened, or was closed": (
        (*LEADS, fetch(1), fetch(0), fetch(FINAL_EPOCH), fetch(1)),
        [NOT_FOUND, empty(0), empty(0), NOT_FOUND],
    ),
    "a process that is up again has no session": (
        (*LEADS, fetch(0), ("stop",), LEADS_AGAIN, fetch(1, epoch=1), fetch(0, epoch=1), fetch(1, epoch=1)),
        [empty(0), NOT_FOUND, empty(0), None],
    ),
    "an offset that is cached counts: the peer is let in": (LET_IN, [empty(1), None]),
    "a new session is told everything anew": ((*LEADS, fetch(0), fetch(1), fetch(0)), [empty(0), None, empty(0)]),
    "a full fetch of the others opens a session without it": (
        (*LEADS, others(0), others(1), fetch(2), fetch(3)),
        [None, None, empty(0), None],
    ),
}


@pytest.mark.parametrize("name", NAMED)
def test_a_response_names_the_partition_when_there_is_something_to_say(name: str) -> None:
    path, results = NAMED[name]
    assert results_of(path) == results


def test_two_peers_have_two_sessions() -> None:
    led: Step = ("metadata", 1, 0, 0, (1, 2, 3))
    path = (led, fetch(0), fetch(0, peer=3), fetch(1), APPEND, fetch(1, peer=3), fetch(2, peer=3), fetch(2))
    assert results_of(path, THREE_BROKERS) == [empty(0), empty(0), None, *[read_result(0, 0)] * 3]


# ---------------------------------------------------------------------------------------------------------------------
# What a fetch in a session does to the leader


def alike(case: BrokerCase) -> Iterator[tuple[Report, Report]]:
    """What is reported after each step of a path, and after the full fetches in place of those in sessions."""
    state = full = opened(case.opening)
    for taken in case.path:
        state, said = take_step(state, taken)
        refused = said["result"] in (NOT_FOUND, INVALID)
        if taken[0] == "fetch_others" or (taken[0] == "fetch_in_session" and refused):
            full, same = take_step(full, ("list_offsets", 0, "latest"))  # nobody asks for the partition
        elif taken[0] == "fetch_in_session":
            full, same = take_step(full, ("fetch", *taken[1:6]))
        else:
            full, same = take_step(full, taken)
        says_nothing = taken[0] in IN_SESSION and (refused or said["result"] is None)
        yield said, {**same, "result": said["result"]} if says_nothing else same


@pytest.mark.parametrize("graph", OF_SESSIONS)
def test_a_fetch_in_a_session_does_to_the_leader_what_a_full_one_does(graph: str) -> None:
    """LEO, high watermark, proposals: on the whole cover; and where it says anything, it says the same."""
    for case in cover_of(graph, FETCH_TRUNCATION).cases:
        assert all(said == same for said, same in alike(case))


def test_a_cached_offset_lets_a_peer_into_the_isr() -> None:
    *_, before, after = taken_through(LET_IN)
    assert (before["proposal"], after["proposal"]["isr"]) == (None, [1, 2])


# ---------------------------------------------------------------------------------------------------------------------
# The covers, the walks


@pytest.mark.parametrize("graph", OF_SESSIONS)
def test_a_cover_of_sessions_takes_every_fetch_in_one(graph: str) -> None:
    made = cover_of(graph, FETCH_TRUNCATION)
    assert (made.steps_taken, made.unreached) == (made.local_steps, 0)
    assert all(any(taken[0] in IN_SESSION for taken in case.path) for case in made.cases)
    able = Capabilities("keeps none", EVERYTHING.can - IN_SESSION, EVERYTHING.reports)
    assert cover_of(graph, FETCH_TRUNCATION, able).cases == ()


def test_the_graphs_of_sessions_are_those_that_say_so() -> None:
    assert {name for name, graph in GRAPHS.items() if graph.sessions and not graph.waits} == set(OF_SESSIONS)


def test_walks_go_on_in_sessions_with_what_the_session_has_already() -> None:
    results: Counter[str] = Counter()
    for case in walks(1, 200, FETCH_TRUNCATION):
        state = opened(case.opening)
        for taken in case.path:
            before = state
            state, said = take_step(state, taken)
            if known(before, taken) is not None:
                kind = "left out" if said["result"] is None else "error" if said["result"]["error"] else "named"
                results[f"{kind}, {'as it was' if unchanged(before, taken) else 'changed'}"] += 1
    kinds = {f"{one}, {other}" for one in ("left out", "named", "error") for other in ("as it was", "changed")}
    assert set(results) == kinds
    assert min(results.values()) >= 10


def test_who_keeps_no_sessions_is_given_none_in_walks() -> None:
    able = Capabilities("keeps none", EVERYTHING.can - IN_SESSION, EVERYTHING.reports)
    assert all(taken[0] not in IN_SESSION for case in walks(1, 60, FETCH_TRUNCATION, able) for taken in case.path)


# ---------------------------------------------------------------------------------------------------------------------
# Brokers that are wrong


@cache
def some_of_the_covers() -> tuple[BrokerCase, ...]:
    return tuple(case for graph in OF_SESSIONS for case in cover_of(graph, FETCH_TRUNCATION).cases[::4])


def incremental(taken: Step) -> bool:
    return taken[0] == "fetch_in_session" and taken[6] > 0


def forgets_a_high_watermark(before: ReferenceBroker, taken: Step, after: ReferenceBroker, result: Report | None) -> Outcome:
    """Without a record a response is left out."""
    news = incremental(taken) and result is not None and not result["error"] and not result["records"]
    return after, None if news and not result["diverging"] and known(before, taken) else result  # type: ignore[index]


def names_too_often(before: ReferenceBroker, taken: Step, after: ReferenceBroker, result: Report | None) -> Outcome:
    """What is not new is named."""
    cached = known_of(after.sessions.get(taken[1])) if incremental(taken) else None
    if result is not None or cached is None:
        return after, result
    return after, fetch_json(FetchResponse(0, cached.hw, cached.log_start))


def loses_the_offset(before: ReferenceBroker, taken: Step, after: ReferenceBroker, result: Report | None) -> Outcome:
    """A partition that the request does not name is read from the start."""
    return given_instead(before, taken, after, result, 0) if unchanged(before, taken) else (after, result)


def keeps_the_old_offset(before: ReferenceBroker, taken: Step, after: ReferenceBroker, result: Report | None) -> Outcome:
    """A partition that the request names is read where it was read before."""
    cached = known(before, taken)
    if cached is None:
        return after, result
    return given_instead(before, taken, after, result, cached.fetch.request.fetch_offset)


def does_not_count(before: ReferenceBroker, taken: Step, after: ReferenceBroker, result: Report | None) -> Outcome:
    """A partition that the request does not name is read, and the follower's state stays as it was."""
    return (after._replace(broker=before.broker), result) if unchanged(before, taken) else (after, result)


def keeps_what_is_forgotten(before: ReferenceBroker, taken: Step, after: ReferenceBroker, result: Report | None) -> Outcome:
    """forgottenTopics is not looked at: it is in the session as it was, and named at once when it changes."""
    session = before.sessions.get(taken[1]) if taken[0] == "fetch_others" and taken[2] > 0 else None
    gone = after.sessions.get(taken[1]) if session is not None else None
    if session is None or gone is None or gone.epoch == session.epoch:
        return after, result
    return after._replace(sessions=after.sessions.put(taken[1], session._replace(epoch=gone.epoch))), result


def takes_any_epoch(before: ReferenceBroker, taken: Step, after: ReferenceBroker, result: Report | None) -> Outcome:
    """An epoch that is not due is served."""
    session = before.sessions.get(taken[1]) if incremental(taken) else None
    if session is None or result != INVALID:
        return after, result
    after, result, *_ = take_step_unread(before._replace(wrong_step=None), (*taken[:6], session.epoch))
    return after._replace(wrong_step=before.wrong_step), result


def survives_the_process(before: ReferenceBroker, taken: Step, after: ReferenceBroker, result: Report | None) -> Outcome:
    """A session is there after a crash."""
    return (after._replace(sessions=before.sessions) if taken[0] in {"stop", "crash"} else after), result


def does_not_forget_the_watermark_of_an_error(
    before: ReferenceBroker, taken: Step, after: ReferenceBroker, result: Report | None
) -> Outcome:
    """After an error the high watermark that was told before it is taken for known (maybeUpdateResponseData has -1)."""
    cached, session = known(before, taken), after.sessions.get(taken[1]) if incremental(taken) else None
    if cached is None or session is None or result is None or not result["error"]:
        return after, result
    stays = cached._replace(fetch=session.partitions[TP].fetch)
    session = session._replace(partitions=session.partitions.put(TP, stays))
    return after._replace(sessions=after.sessions.put(taken[1], session)), result


def known(before: ReferenceBroker, taken: Step) -> Any:
    """What the session has of the partition, if the fetch is served in it."""
    session = before.sessions.get(taken[1]) if incremental(taken) else None
    return known_of(session) if session is not None and session.epoch == taken[6] else None


def unchanged(before: ReferenceBroker, taken: Step) -> bool:
    """Whether the request does not name the partition."""
    cached = known(before, taken)
    return cached is not None and cached.fetch.request[1:4] == taken[2:5]


def given_instead(
    before: ReferenceBroker, taken: Step, after: ReferenceBroker, result: Report | None, offset: int
) -> Outcome:
    """What the right broker does with another offset; the session has the one that was asked for."""
    other, said, *_ = take_step_unread(before._replace(wrong_step=None), (*taken[:3], offset, *taken[4:]))
    return other._replace(wrong_step=before.wrong_step), said


WRONG: dict[WrongStep, set[str]] = {
    forgets_a_high_watermark: {"result"},
    names_too_often: {"result"},
    loses_the_offset: {"result", "hw", "proposal"},
    keeps_the_old_offset: {"result", "hw", "proposal"},
    does_not_count: {"hw", "proposal"},
    keeps_what_is_forgotten: {"result"},
    takes_any_epoch: {"result", "hw", "proposal"},
    survives_the_process: {"result", "hw", "proposal"},
    does_not_forget_the_watermark_of_an_error: {"result"},
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_a_broker_with_a_session_of_its_own_making_is_found_and_shrunk(wrong: WrongStep) -> None:
    node = ReferenceNode(reference(wrong_step=wrong))
    differences = play(node, some_of_the_covers(), reference()).differences
    assert differences
    assert {field for found in differences for field in found.fields} <= WRONG[wrong]
    shortest = shrunk(node, min(differences, key=lambda found: found.at), reference())
    assert shortest is not None
    assert shortest.at <= 6
    assert shortest.step is not None
    assert shortest.step[0] in IN_SESSION
    assert "HandleFetch" in story(shortest, reference(), (), EVERYTHING.reports)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_what_an_unmodified_broker_said_in_sessions_is_told_from_what_a_wrong_one_says(wrong: WrongStep) -> None:
    """So the step of the main job that rechecks transcripts can fail for each of these."""
    node = read(place_of("4.3.1"), BROKER_FORMAT)
    cases = [case for case in node.cases if any(taken[0] in IN_SESSION for taken in case.path)]
    assert len(cases) > 2000
    assert play(node, cases, reference()).differences == ()
    differences = play(node, cases[::4], reference(wrong_step=wrong)).differences
    assert differences
    assert {field for found in differences for field in found.fields} <= WRONG[wrong]


def test_a_session_that_withholds_a_divergence_is_found_and_named() -> None:
    cases = cover_of("sessions", FETCH_TRUNCATION).cases
    found = run(ReferenceNode(reference_with(BUGS["apache/kafka#9434"])), cases[::4], reference(FETCH_TRUNCATION))
    assert {failure.shown.fields for failure in found.failures} == {("result",)}
    assert all("same as   apache/kafka#9434" in failure.text for failure in found.failures)


def test_a_program_that_says_null_may_say_so_of_a_session_only() -> None:
    only = Capabilities("some", EVERYTHING.can, frozenset({"result"}))
    found = {"p": 1, "result": None}
    assert parse_report(found, fetch(1), only, b"", "") == parse_report(found, others(1), only, b"", "") == found
    with pytest.raises(DrivenProgramError, match='in "result" an object with an "error"'):
        parse_report(found, ("fetch", *fetch(1)[1:6]), only, b"", "on line 1")


# ---------------------------------------------------------------------------------------------------------------------
# On the wire

TOPIC, ELSE = Topic(uuid4(), "t"), Topic(uuid4(), "else")
SESSION = 77


def partition(hw: int) -> WireMessage:
    found = {"partitionIndex": 0, "errorCode": 0, "highWatermark": hw, "lastStableOffset": -1, "logStartOffset": 0}
    return {**found, "abortedTransactions": None, "records": b""}


def asked(body: WireMessage) -> tuple[Any, ...]:
    """Session, epoch, what a request names with its offset, what it forgets."""
    named = {topic["topicId"]: topic["partitions"][0]["fetchOffset"] for topic in body["topics"]}
    forgotten = [topic["topicId"] for topic in body["forgottenTopicsData"]]
    return body["sessionId"], body["sessionEpoch"], named, forgotten


def requests_of(*fetches: tuple[int, int | None, WireMessage]) -> tuple[list[tuple[Any, ...]], list[WireMessage | None]]:
    """Fetches of peer 2 with (session epoch, offset or None, response) on the wire: what was asked, and what came of it."""
    seen, found = [], []

    async def with_a_broker() -> None:
        responses = iter(fetches)

        async def answered(request: ReceivedRequest) -> WireMessage:
            seen.append(asked(request.body))
            return {"errorCode": 0, "sessionId": SESSION, "responses": [], **next(responses)[2]}

        listener = Listener(shipped_messages(), ["Fetch"], answered, Conditions())
        connection = await Connection.open(shipped_messages(), await listener.start())
        sessions = PeerSessions(TOPIC, ELSE)
        calls = PartitionRequests(await connection.versions())
        for session_epoch, offset, _ in fetches:
            full = calls.fetch(TOPIC, offset or 0, replica=2)
            call, read_result = sessions.fetch(2, full, session_epoch, wanted=offset is not None)
            found.append(read_result((await connection.exchange([call]))[0]))
        connection.close()
        listener.close()

    in_a_loop(with_a_broker())
    return seen, found


def test_a_request_names_what_the_session_does_not_have() -> None:
    seen, _ = requests_of((0, 5, {}), (1, 5, {}), (2, 6, {}), (3, None, {}), (4, None, {}), (5, 6, {}), (0, 6, {}))
    assert seen == [
        (0, 0, {TOPIC.id: 5, ELSE.id: 0}, []),
        (SESSION, 1, {}, []),
        (SESSION, 2, {TOPIC.id: 6}, []),
        (SESSION, 3, {}, [TOPIC.id]),
        (SESSION, 4, {}, []),
        (SESSION, 5, {TOPIC.id: 6}, []),
        (SESSION, 0, {TOPIC.id: 6, ELSE.id: 0}, []),
    ]


def test_what_a_refused_request_named_is_named_again() -> None:
    seen, found = requests_of((0, 5, {}), (3, 6, {"errorCode": 71, "sessionId": 0}), (1, 6, {}), (2, 6, {}))
    assert [named for _, _, named, _ in seen[1:]] == [{TOPIC.id: 6}, {TOPIC.id: 6}, {}]
    assert found[1] == {"errorCode": 71}
    assert [session for session, *_ in seen[1:]] == [SESSION] * 3


def test_what_a_response_says_of_others_is_nothing() -> None:
    here, elsewhere = ({"topicId": topic.id, "partitions": [partition(3)]} for topic in (TOPIC, ELSE))
    _, found = requests_of((0, 5, {"responses": [elsewhere, here]}), (1, 5, {"responses": [elsewhere]}))
    assert found[0] is not None
    assert (found[0]["highWatermark"], found[1]) == (3, None)

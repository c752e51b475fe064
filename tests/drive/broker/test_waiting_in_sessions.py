"""Fetches that wait in a session: what becomes of the session meanwhile, and that a broker that gets it wrong is found."""

from collections import Counter
from functools import cache
from types import ModuleType
from typing import Any

import pytest

from tests.drive.broker.test_fetches_in_sessions import (
    APPEND,
    ELSE,
    INVALID,
    NOT_FOUND,
    SESSION,
    TOPIC,
    asked,
    empty,
    fetch,
    partition,
)
from tests.drive.broker.test_waiting_requests import (
    ANOTHER_LEADS,
    LEADS,
    LEADS_AGAIN,
    read_result,
    recorded_node,
    taken_through,
)
from tidegauge.drive.broker import peer_fetches as sessions
from tidegauge.drive.broker import reference as reference_
from tidegauge.drive.broker import steps
from tidegauge.drive.broker.contract import BrokerCase
from tidegauge.drive.broker.reference import reference, take_step
from tidegauge.drive.broker.state import Fetched, ReferenceBroker, opened
from tidegauge.drive.broker.steps import EVERYTHING, IN_SESSION, MAY_WAIT
from tidegauge.drive.broker.transcript import BROKER_FORMAT
from tidegauge.drive.contract import Capabilities, Node, Path, Report, Step
from tidegauge.drive.kafka_broker.clients import PartitionRequests
from tidegauge.drive.kafka_broker.partition import PeerSessions
from tidegauge.drive.paths.graphs import GRAPHS, cover_of
from tidegauge.drive.paths.walks import walks
from tidegauge.drive.runner.player import ReferenceNode, play
from tidegauge.drive.runner.transcript import Recorder, place_of, read
from tidegauge.drive.wire.compiler import WireMessage
from tidegauge.impl.fetch.fetch_session import (
    FINAL_EPOCH,
    FetchContext,
    FetchSessionCache,
    SessionKind,
    update_and_generate_response,
)
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import PartitionRead
from tidegauge.impl.profiles import FETCH_TRUNCATION

IN_SESSION_AND_WAIT = "fetch_in_session_and_wait"
GRAPH = "session_waits"
FENCED = {"error": 74}


def waits(session_epoch: int, offset: int = 0, last: int = -1, epoch: int = 0, peer: int = 2) -> Step:
    return IN_SESSION_AND_WAIT, *fetch(session_epoch, offset, last, epoch, peer)[1:]


def later(response: Report) -> dict[str, Report]:
    return {"later": response}


def heard(path: Path) -> list[Any]:
    """What peer 2 was told, in its order: the results of its fetches in a session, and what it had waited for."""
    found: list[Any] = []
    for taken, said in zip(path, taken_through(path), strict=True):
        found += [said["result"]] if taken[0] in IN_SESSION else []
        found += map(later, said["fetched"].values())
    return found


# ---------------------------------------------------------------------------------------------------------------------
# What becomes of the session. Each of these paths is given to unmodified brokers, too: test_kafka_broker.

HEARD: dict[str, tuple[Path, list[Any]]] = {
    "a full fetch opens its session when it is answered": (
        (*LEADS, waits(0), fetch(1), APPEND, fetch(1, 1, 0)),
        [None, NOT_FOUND, later(read_result(0, 0)), None],
    ),
    "an incremental one is told a record, and its session goes on": (
        (*LEADS, fetch(0), waits(1), APPEND, fetch(2, 1, 0)),
        [empty(0), None, later(read_result(0, 0)), None],
    ),
    "what it was told is known: a high watermark is told once": (
        (*LEADS, APPEND, fetch(0), waits(1, 1, 0), APPEND, fetch(2, 2, 0), fetch(3, 2, 0)),
        [read_result(0, 0), None, later(read_result(1, 1)), None, empty(2)],
    ),
    "one that the request does not name waits, too": (
        (*LEADS, fetch(0), waits(1), APPEND, waits(2), waits(3, 1, 0), APPEND),
        [empty(0), None, later(read_result(0, 0)), read_result(0, 0), None, later(read_result(1, 1))],
    ),
    "it is refused when its session has gone on meanwhile": (
        (*LEADS, fetch(0), waits(1), fetch(2), APPEND, fetch(3)),
        [empty(0), None, None, later(INVALID), read_result(0, 0)],
    ),
    "a request that was refused has not moved its session": (
        (*LEADS, fetch(0), waits(1), fetch(4), APPEND),
        [empty(0), None, INVALID, later(read_result(0, 0))],
    ),
    "it is answered though its session was closed meanwhile": (
        (*LEADS, fetch(0), waits(1), fetch(0), APPEND, fetch(1)),
        [empty(0), None, empty(0), later(read_result(0, 0)), read_result(0, 0)],
    ),
    "it is refused when its session had gone on before it was closed": (
        (*LEADS, fetch(0), waits(1), fetch(2), fetch(FINAL_EPOCH), APPEND),
        [empty(0), None, None, empty(0), later(INVALID)],
    ),
    "a session of the same peer that went as far is another one": (
        (*LEADS, fetch(0), waits(1), fetch(0), fetch(1), APPEND, fetch(2)),
        [empty(0), None, empty(0), None, later(read_result(0, 0)), read_result(0, 0)],
    ),
    "the session that is opened last is the peer's": (
        (*LEADS, waits(0), fetch(0), fetch(1), APPEND, fetch(2), fetch(1)),
        [None, empty(0), None, later(read_result(0, 0)), INVALID, read_result(0, 0)],
    ),
    "without a session it waits all the same, and opens none": (
        (*LEADS, fetch(0), waits(FINAL_EPOCH), APPEND, fetch(1)),
        [empty(0), None, later(read_result(0, 0)), NOT_FOUND],
    ),
    "who leads no more says so": (
        (*LEADS, fetch(0), waits(1), ANOTHER_LEADS, fetch(2)),
        [empty(0), None, later(FENCED), FENCED],
    ),
    "an error does not wait, nor what is refused": (
        (*LEADS, fetch(0), waits(1, epoch=1), waits(3), LEADS_AGAIN, waits(2)),
        [empty(0), {"error": 75}, INVALID, FENCED],
    ),
    "nobody waits for a process that has ended": ((*LEADS, waits(0), ("stop",), LEADS_AGAIN, APPEND), [None]),
}


@pytest.mark.parametrize("name", HEARD)
def test_a_fetch_that_waits_in_a_session_is_told(name: str) -> None:
    path, expected = HEARD[name]
    assert heard(path) == expected


# ---------------------------------------------------------------------------------------------------------------------
# The cover, the walks


def test_a_cover_takes_every_fetch_that_waits_in_a_session() -> None:
    made = cover_of(GRAPH, FETCH_TRUNCATION)
    assert (made.steps_taken, made.unreached) == (made.local_steps, 0)
    assert all(any(taken[0] == IN_SESSION_AND_WAIT for taken in case.path) for case in made.cases)
    able = Capabilities("none wait there", EVERYTHING.can - {IN_SESSION_AND_WAIT}, EVERYTHING.reports)
    assert cover_of(GRAPH, FETCH_TRUNCATION, able).cases == ()
    assert {name for name, graph in GRAPHS.items() if graph.waits and graph.sessions} == {GRAPH}


def test_it_does_to_the_leader_what_one_without_a_session_does() -> None:
    """On the whole cover; and where it is told something else, its session is why."""
    differences: Counter[str] = Counter()
    for case in cover_of(GRAPH, FETCH_TRUNCATION).cases:
        state = full = opened(case.opening)
        for taken in case.path:
            state, said = take_step(state, taken)
            full, same = take_step(full, without_session(taken, said["result"]))
            for field in said:
                if said[field] != same[field]:
                    differences[f"{field}: {why(taken, said[field], field)}"] += 1
    assert set(differences) == {"result: not named", "result: refused", "fetched: refused"}
    assert min(differences.values()) > 50


def without_session(taken: Step, result: Report | None) -> Step:
    """The full fetch in place of one in a session; of one that is refused the leader does not hear."""
    if taken[0] not in IN_SESSION:
        return taken
    if taken[0] == "fetch_others" or result in (NOT_FOUND, INVALID):
        return "list_offsets", 0, "latest"
    return "fetch_and_wait" if taken[0] in MAY_WAIT else "fetch", *taken[1:6]


def why(taken: Step, said: Any, field: str) -> str:
    """What a session has to do with it."""
    if field == "fetched":
        return "refused" if said == {"2": INVALID} else str(said)
    if taken[0] in IN_SESSION and said is None:
        return "not named"
    return "refused" if taken[0] in IN_SESSION and said in (NOT_FOUND, INVALID) else str(said)


def test_walks_have_them_and_all_that_may_come_of_them() -> None:
    found: Counter[str] = Counter()
    for case in walks(1, 400, FETCH_TRUNCATION):
        state = opened(case.opening)
        for taken in case.path:
            waiting = state.contexts
            state, said = take_step(state, taken)
            found["waits"] += len(state.contexts) > len(waiting)
            answered = [one for peer, one in said["fetched"].items() if int(peer) in waiting]
            found["told"] += sum("records" in one for one in answered)
            found["refused"] += sum(one == INVALID for one in answered)
    assert min(found[kind] for kind in ("waits", "told", "refused")) >= 5


# ---------------------------------------------------------------------------------------------------------------------
# Brokers that are wrong: in which module, what stands there, and what a wrong one has there

Wrong = tuple[ModuleType, str, Any]


def responds_whatever_came() -> Wrong:
    """A session that has gone on meanwhile is no reason to refuse."""

    def wrong(cache: FetchSessionCache, context: FetchContext, *rest: Any, **named: Any) -> Any:
        session = None if context.session is None else cache.sessions.get(context.session.id) or context.session
        if session is not None and sessions.TP in session.partitions:
            context = context._replace(epoch=session.epoch)
        return update_and_generate_response(cache, context, *rest, **named)

    return sessions.sessions_, "update_and_generate_response", wrong


def forgets_that_a_closed_one_had_gone_on() -> Wrong:
    """A session that is closed is taken for what it was when the fetch began to wait. 4.3.1 told us that it is not."""
    return sessions.sessions_, "refresh_context", lambda _cache, context: context


def refuses_what_waits_in_a_closed_one() -> Wrong:
    """A session that is not there any more is one that has gone on."""

    def wrong(cache: FetchSessionCache, context: FetchContext, *rest: Any, **named: Any) -> Any:
        gone = context.session is not None and context.session.id not in cache.sessions
        return update_and_generate_response(cache, context._replace(epoch=-9) if gone else context, *rest, **named)

    return sessions.sessions_, "update_and_generate_response", wrong


def opens_at_once() -> Wrong:
    """A full fetch has its session before it is answered."""
    right = sessions.fetched_in_session

    def wrong(state: ReferenceBroker, peer: int, *rest: Any, **named: Any) -> Any:
        after, response = right(state, peer, *rest, **named)
        context = after.contexts.get(peer) if named.get("waits") and response is None else None
        if context is None or context.kind is not SessionKind.FULL:
            return after, response
        nothing = FrozenMap((tp, PartitionRead(sessions.NOTHING_NEW)) for tp in context.fetches)
        return sessions._responded(after, peer, context, nothing)[0], None

    return steps, "fetched_in_session", wrong


def keeps_the_session_it_had() -> Wrong:
    """A full fetch that waits has not closed the session it names."""
    right = sessions.fetched_in_session

    def wrong(state: ReferenceBroker, peer: int, *rest: Any, **named: Any) -> Any:
        after, response = right(state, peer, *rest, **named)
        if peer in after.contexts and peer not in after.sessions and peer in state.sessions:
            after = after._replace(sessions=state.sessions)
        return after, response

    return steps, "fetched_in_session", wrong


def is_not_answered() -> Wrong:
    """What waits in a session is completed, and nobody is told."""

    def wrong(state: ReferenceBroker, fetched: Fetched) -> tuple[ReferenceBroker, Fetched]:
        return state, {peer: one for peer, one in fetched.items() if peer not in state.contexts}

    return reference_, "answered_in_sessions", wrong


WRONG = (
    responds_whatever_came,
    forgets_that_a_closed_one_had_gone_on,
    refuses_what_waits_in_a_closed_one,
    opens_at_once,
    keeps_the_session_it_had,
    is_not_answered,
)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_a_broker_that_is_wrong_about_them_is_found(wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = cover_of(GRAPH, FETCH_TRUNCATION).cases[::4]
    recorder: Recorder[BrokerCase] = Recorder(cases)
    with monkeypatch.context() as patched:
        patched.setattr(*wrong())
        play(ReferenceNode(reference()), cases, reference(), recorder)
    differences = play(recorded_node(recorder), cases, reference()).differences
    assert differences
    assert {field for found in differences for field in found.fields} <= {"result", "fetched", "hw", "proposal"}


@cache
def unmodified() -> tuple[Node[BrokerCase], list[BrokerCase]]:
    """What 4.3.1 did, and where a fetch of its peers may have waited in a session."""
    node = read(place_of("4.3.1"), BROKER_FORMAT)
    return node, [case for case in node.cases if any(taken[0] == IN_SESSION_AND_WAIT for taken in case.path)]


def test_an_unmodified_broker_does_what_the_reference_does() -> None:
    node, cases = unmodified()
    assert len(cases) > 800
    assert play(node, cases, reference()).differences == ()


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_what_an_unmodified_broker_did_is_told_from_what_a_wrong_one_does(
    wrong: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the step of the main job that rechecks transcripts can fail for each of these."""
    node, cases = unmodified()
    monkeypatch.setattr(*wrong())
    assert play(node, cases[::4], reference()).differences


# ---------------------------------------------------------------------------------------------------------------------
# On the wire: the next request of a peer whose fetch waits

CALLS = PartitionRequests({"Fetch": range(4, 18)})


class OnTheWire:
    """Peer 2, whose requests are answered when a test says so."""

    def __init__(self) -> None:
        self._sessions = PeerSessions(TOPIC, ELSE)

    def asks(self, session_epoch: int, offset: int) -> tuple[tuple[Any, ...], Any]:
        """What it asks, and what reads the response."""
        full = CALLS.fetch(TOPIC, offset, replica=2, waits=True)
        call, reads = self._sessions.fetch(2, full, session_epoch, wanted=True)
        return asked({"forgottenTopicsData": [], **call.body}), reads

    def has(self, session_epoch: int, offset: int, session: int = SESSION) -> Any:
        """It asks and is answered at once, with that session."""
        request, reads = self.asks(session_epoch, offset)
        reads(response(session))
        return request


def response(session: int = SESSION, error: int = 0) -> WireMessage:
    named = [{"topicId": TOPIC.id, "partitions": [partition(3)]}]
    return {"errorCode": error, "sessionId": session, "responses": [] if error else named}


def test_what_a_request_that_waits_has_named_is_not_named_again() -> None:
    peer = OnTheWire()
    peer.has(0, 5)
    peer.asks(1, 6)
    assert peer.asks(2, 6)[0] == (SESSION, 2, {}, [])
    assert peer.asks(3, 5)[0] == (SESSION, 3, {TOPIC.id: 5}, [])


def test_what_one_that_was_refused_late_had_named_is_what_a_later_one_says() -> None:
    peer = OnTheWire()
    peer.has(0, 5)
    _, reads = peer.asks(1, 6)
    peer.has(2, 7)
    assert reads(response(error=71)) == {"errorCode": 71}
    assert peer.asks(3, 7)[0] == (SESSION, 3, {}, [])


def test_a_session_is_the_peers_when_it_is_given() -> None:
    peer = OnTheWire()
    peer.has(0, 5)
    _, reads = peer.asks(0, 6)
    assert peer.asks(1, 6)[0][0] == SESSION
    peer.has(0, 7, session=78)
    assert reads(response(session=79)) is not None
    assert peer.asks(1, 6)[0] == (79, 1, {}, [])


def test_who_waits_without_a_session_has_the_one_that_was_opened_meanwhile() -> None:
    peer = OnTheWire()
    _, reads = peer.asks(FINAL_EPOCH, 5)
    peer.has(0, 6)
    assert reads(response(session=0)) is not None
    assert peer.asks(1, 6)[0] == (SESSION, 1, {}, [])

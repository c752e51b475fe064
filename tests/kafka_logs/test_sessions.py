"""Fetch sessions are rebuilt on both sides, and the sides fit."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tidegauge.traces.kafka_logs import Capture
from tidegauge.traces.kafka_logs.capture import shipped
from tidegauge.traces.kafka_logs.correlation.match import RecordedLines, match
from tidegauge.traces.kafka_logs.nodes.logged_broker import LoggedStep, Send
from tidegauge.traces.kafka_logs.nodes.process import ProcessRun
from tidegauge.traces.kafka_logs.parsing.lines import Line
from tidegauge.traces.kafka_logs.parsing.parsed_line import PartitionRequest
from tidegauge.traces.kafka_logs.parsing.request_log import (
    LoggedFetch,
    LoggedRequest,
    LoggedResponse,
    RequestReader,
    Sessions,
)
from tidegauge.traces.problems import Problem
from tidegauge.traces.schema import Trace

TOPIC = "WnT8BA0cSVmm0n3_tu1iwg"


@pytest.mark.parametrize("name", sorted(shipped()))
def test_every_request_at_a_leader_is_one_its_follower_sent(name: str, capture: Callable[[str], Capture]) -> None:
    """By (replica, session, epoch), full fetches by order; 4.x brokers send one or two more after they stop logging."""
    summary = capture(name).summary
    assert summary.fetches_matched > 70
    assert summary.fetches_unmatched <= (2 if name.startswith("4.") else 0)


@pytest.mark.parametrize("name", sorted(shipped()))
def test_a_fetch_is_sent_handled_and_answered_in_that_order(name: str, capture: Callable[[str], Capture]) -> None:
    """Per follower and leader: what is handled was sent and asks what was sent; what is taken over was answered."""
    for trace in capture(name).traces:
        sent: dict[tuple[int, int], tuple[Any, Any]] = {}
        answered: dict[tuple[int, int], int] = {}
        for event in trace.events:
            peer = event.fields.get("peer")
            asks = (event.fields.get("req_offset"), event.fields.get("req_epoch"))
            if event.event == "SendFetch":
                sent[event.node, int(str(peer))] = asks
            elif event.event == "HandleFetch":
                assert sent[int(str(peer)), event.node][0] == asks[0], event.at
                if "req_epoch" in event.fields:
                    assert sent[int(str(peer)), event.node] == asks, event.at
            if event.event == "AnswerFetch" or (event.event == "HandleFetch" and "error" in event.fields):
                answered[event.node, int(str(peer))] = answered.get((event.node, int(str(peer))), 0) + 1
            elif event.event in ("HandleFetchResponse", "HandleDivergingResponse", "HandleFetchError"):
                assert answered.get((int(str(peer)), event.node), 0) > 0, event.at


def test_partitions_that_did_not_travel_are_sent_and_handled_all_the_same(trace: Callable[[str, str], Trace]) -> None:
    """An idle partition keeps being fetched with the request of its session."""
    events = trace("4.2.0/b-kill-leader", "beta-0").events
    idle = [e for e in events if e.event == "SendFetch" and e.node == 3 and e.fields["req_offset"] == 20]
    assert len(idle) > 5
    assert all(e.fields["req_epoch"] == 0 for e in idle)


def document(session: int, epoch: int, topics: Any, responses: Any, response_session: int, **more: Any) -> Line:
    body = {
        "replicaState": {"replicaId": 2, "replicaEpoch": more.get("broker_epoch", 14)},
        "sessionId": session,
        "sessionEpoch": epoch,
        "topics": topics,
    }
    text = {
        "requestHeader": {"requestApiKey": 1, "clientId": f"broker-2-fetcher-{more.get('fetcher', 0)}"},
        "request": body | {"forgottenTopicsData": more.get("forgotten", [])},
        "response": {"errorCode": more.get("error", 0), "sessionId": response_session, "responses": responses},
        "totalTimeMs": 5.0,
        "requestQueueTimeMs": 1.0,
        "localTimeMs": 2.0,
        "remoteTimeMs": more.get("remote", 0.0),
        "connection": more.get("connection", ""),
    }
    thread = more.get("thread", "t")
    return Line("n1/request.log", 1, more.get("time", 10_000), thread, f"Completed request:{json.dumps(text)}", "logger")


def asks(offset: int, epoch: int = 0, partition: int = 0) -> Any:
    part = {
        "partition": partition,
        "currentLeaderEpoch": epoch,
        "fetchOffset": offset,
        "lastFetchedEpoch": 0,
        "logStartOffset": 0,
    }
    return {"topicId": TOPIC, "partitions": [part]}


def reports(hw: int, error: int = 0, partition: int = 0, size: int = 0) -> Any:
    part = {
        "partitionIndex": partition,
        "errorCode": error,
        "highWatermark": hw,
        "logStartOffset": 0,
        "recordsSizeInBytes": size,
    }
    return {"topicId": TOPIC, "partitions": [part]}


def fetches(*lines: Line) -> list[LoggedFetch]:
    sessions = Sessions({TOPIC: "alpha"})
    reader = RequestReader()
    requests = [reader.read(line) for line in lines]
    return [sessions.fetch(request) for request in requests if isinstance(request, LoggedRequest)]


def test_what_an_incremental_request_leaves_out_is_what_was_asked_before() -> None:
    """Offset and epoch stay; the response that is left out has the high watermark last told and no records."""
    full, nothing, one = fetches(
        document(0, 0, [asks(5), asks(7, partition=1)], [reports(4, size=10), reports(7, partition=1)], 99),
        document(99, 1, [], [], 99),
        document(99, 2, [asks(6)], [reports(6)], 99),
    )
    assert full.responses["alpha-0"] == LoggedResponse(0, 4, 0, size=10)
    assert nothing.requested == {"alpha-0": PartitionRequest(5, 0, 0, 0), "alpha-1": PartitionRequest(7, 0, 0, 0)}
    assert nothing.responses == {"alpha-0": LoggedResponse(0, 4, 0), "alpha-1": LoggedResponse(0, 7, 0)}
    assert one.requested["alpha-0"].offset == 6
    assert one.responses == {"alpha-0": LoggedResponse(0, 6, 0), "alpha-1": LoggedResponse(0, 7, 0)}


def test_forgotten_partitions_leave_the_session() -> None:
    """KIP-227: forgottenTopicsData."""
    _, after = fetches(
        document(0, 0, [asks(5), asks(7, partition=1)], [reports(4), reports(7, partition=1)], 99),
        document(99, 1, [], [], 99, forgotten=[{"topicId": TOPIC, "partitions": [1]}]),
    )
    assert set(after.requested) == {"alpha-0"}


def test_a_session_error_handles_no_partition() -> None:
    """FETCH_SESSION_ID_NOT_FOUND is for the whole request."""
    (refused,) = fetches(document(77, 5, [asks(5)], [], 0, error=70))
    assert refused.responses == {}


def test_behind_a_gap_records_of_a_partition_nobody_names_any_more_are_not_nothing() -> None:
    """The session asked for it before the gap; what it asked, its sender says."""
    (late,) = fetches(document(99, 40, [asks(5)], [reports(5), reports(7, partition=1, size=108)], 99))
    asked = {"alpha-0": PartitionRequest(5, 0, 0, 0), "alpha-1": PartitionRequest(7, 0, 0, 0)}
    match([Send(2, 1, 99, 40, asked, time=0, run=0)], {1: [late]}, {})
    assert late.requested["alpha-1"] == PartitionRequest(7, 0, 0, 0)
    assert late.responses["alpha-1"].size == 108


def test_a_session_begun_before_the_log_is_known_as_far_as_it_is_told() -> None:
    """The first incremental request seen names one partition: the others stay unknown, and so does a response left out."""
    (late,) = fetches(document(99, 40, [asks(5)], [], 99))
    assert late.responses == {"alpha-0": LoggedResponse(0, None, None)}
    assert not late.whole


def test_times_of_a_request_are_counted_back_from_its_line() -> None:
    """The line is written when the response was sent; remote time 0 means it left in the handler thread."""
    request = RequestReader().read(document(0, 0, [], [], 0))
    waited = RequestReader().read(document(0, 0, [], [], 0, remote=1.5))
    assert isinstance(request, LoggedRequest)
    assert isinstance(waited, LoggedRequest)
    assert (request.dequeued, request.handled, request.completed, request.at_once) == (6_000, 8_000, 8_000, True)
    assert (waited.completed, waited.at_once) == (9_500, False)


@pytest.mark.parametrize(
    ("thread", "connection", "since"),
    [
        ("t", "c", 30_000),
        ("t", "d", 26_000),  # its thread wrote at 30 ms, and it began at most 4 ms before its end
        ("u", "c", 30_000),  # its connection was muted until 30 ms
        ("u", "d", 0),
        ("", "c", 30_000),  # without thread names
    ],
)
def test_a_request_whose_line_is_late_was_not_taken_up_before_the_line_before_it(
    thread: str, connection: str, since: int
) -> None:
    """A process may stand still for seconds (SIGSTOP, GC) between a response and its line."""
    reader = RequestReader()
    reader.read(document(0, 0, [], [], 99, time=30_000, connection="c"))
    late = reader.read(document(99, 1, [], [], 99, time=6_000_000, connection=connection, thread=thread))
    assert isinstance(late, LoggedRequest)
    assert (late.dequeued, late.since) == (5_996_000, since)


def test_a_line_that_is_no_json_is_a_problem_with_its_place() -> None:
    """Expected, seen, where, what to do."""
    problem = RequestReader().read(
        Line("n1/request.log", 7, 0, "t", 'Completed request:{"requestHeader":{"requestApiKey":1', "logger")
    )
    assert isinstance(problem, Problem)
    assert str(problem).startswith("n1/request.log:7: expected `Completed request:` and one JSON document")


def send(offset: int, lost: bool = False, fetcher: int = 0) -> Send:
    return Send(2, 1, 0, 0, {"alpha-0": PartitionRequest(offset, 0, 0, 0)}, 0, 0, lost, fetcher=fetcher)


def test_several_fetchers_of_a_replica_open_a_session_each_whose_requests_are_handled_in_any_order() -> None:
    """num.replica.fetchers: the thread that sends and the client id of the request say which is which."""
    sends = [send(5), send(5, fetcher=1), send(6, fetcher=1)]
    handled = fetches(
        document(0, 0, [asks(5)], [reports(4)], 98, fetcher=1),
        document(0, 0, [asks(6)], [reports(4)], 98, fetcher=1),
        document(0, 0, [asks(5)], [reports(4)], 99),
    )
    assert [match(sends, {1: handled}, {}).get(id(fetch)) for fetch in handled] == [sends[1], sends[2], sends[0]]


def test_full_fetches_match_by_order_and_what_the_sender_knows_to_be_lost_comes_last() -> None:
    """Three equal requests, the first two never answered: the one request the leader logged is the third."""
    sends = [send(5, lost=True), send(5, lost=True), send(5)]
    (handled,) = fetches(document(0, 0, [asks(5)], [reports(4)], 99))
    assert match(sends, {1: [handled]}, {}) == {id(handled): sends[2]}
    assert match(sends[:2], {1: [handled]}, {}) == {id(handled): sends[0]}
    assert match([send(6)], {1: [handled]}, {}) == {}


def test_a_full_fetch_of_a_process_that_logged_nothing_more_is_not_one_of_the_next_process() -> None:
    """A broker stops its logging before its fetchers (4.x): the next process asks the same, in its own broker epoch."""
    asked = {"alpha-0": PartitionRequest(5, 0, 0, 0)}
    before, after = Send(2, 1, 99, 1, asked, time=0, run=0), Send(2, 1, 0, 0, asked, time=9, run=1)
    first, unlogged, second = fetches(
        document(99, 1, [asks(5)], [], 99),
        document(0, 0, [asks(5)], [reports(4)], 98),
        document(0, 0, [asks(5)], [reports(4)], 97, broker_epoch=20),
    )
    assert match([before, after], {1: [first, unlogged, second]}, {}) == {id(first): before, id(second): after}


@pytest.mark.parametrize(("session_epoch", "whole", "taken"), [(7, True, 0), (7, False, 1), (0, True, 1)])
def test_a_fetch_takes_the_closest_line_unless_the_request_before_it_is_there(
    session_epoch: int, whole: bool, taken: int
) -> None:
    """The first request of a session does not tell whether that one is: its line, of an older epoch, may still wait."""
    run = ProcessRun(0, [Line("server.log", 1, 0, "main", "x", "KafkaServer")], None, False)
    fields = {"peer": 2, "remote_leo": 20}
    recorded = [LoggedStep(1, "a-0", "HandleFetch", dict(fields), "", time, (0, 0, 0, 0)) for time in (100, 900)]
    line = Line("request.log", 1, 905, "t", "Completed request", "logger")
    request = LoggedRequest(line, "FETCH", "broker-2-fetcher-0", {}, {}, 890, 902, 904, True)
    asked = PartitionRequest(20, 1, 0, 0)
    fetch = LoggedFetch(request, 2, None, 3, session_epoch, {"a-0": asked}, {}, whole=whole)
    assert RecordedLines(recorded).find(run, fetch, "a-0", asked) is recorded[taken]


def test_the_leader_epoch_of_a_replica_is_that_of_its_role() -> None:
    """An entry of its epoch cache has that of records, a change that of a controller, which it has not read yet."""
    lines = [Line("server.log", number, number, "main", "x", "logger") for number in range(6)]
    run = ProcessRun(0, lines, None, False)
    epochs = (("BecomeFollower", 5), ("EpochCacheEntry", 3), ("ChangePartition", 6), ("BecomeLeader", 7))
    run.mark(
        [
            LoggedStep(1, "a-0", name, {"leader_epoch": epoch}, "", at, (0, at, 0, 0))
            for at, (name, epoch) in enumerate(epochs, 1)
        ]
    )
    assert [run.leader_epoch("a-0", at) for at in range(5)] == [None, 5, 5, 5, 7]

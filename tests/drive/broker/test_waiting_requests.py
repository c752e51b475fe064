"""Fetches of peers that wait: what completes them, and that a broker that does so too early, too late or never is found."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from uuid import uuid4

import pytest

from tests.drive.wire.test_frames import in_a_loop
from tidegauge.drive.broker import peer_fetches as purgatory
from tidegauge.drive.broker.contract import REPORTED, BrokerCase, Opening
from tidegauge.drive.broker.known_bugs import BUGS
from tidegauge.drive.broker.reference import BrokerReference, is_possible, reference, reference_with, take_step
from tidegauge.drive.broker.state import Outcome, ReferenceBroker, WrongStep, opened
from tidegauge.drive.broker.steps import EVERYTHING, MAY_WAIT
from tidegauge.drive.broker.transcript import BROKER_FORMAT
from tidegauge.drive.contract import Capabilities, Node, Path, Report, Step, Watch
from tidegauge.drive.kafka_broker.clients import PartitionRequests, Topic, fetched_partition
from tidegauge.drive.kafka_broker.partition import WaitingFetches
from tidegauge.drive.paths.graphs import GRAPHS, cover_of
from tidegauge.drive.paths.walks import walks
from tidegauge.drive.probe.connection import shipped_messages
from tidegauge.drive.runner.differences import Difference
from tidegauge.drive.runner.player import ReferenceNode, play
from tidegauge.drive.runner.report import story
from tidegauge.drive.runner.run import run, shrunk
from tidegauge.drive.runner.transcript import Recorder, TranscriptNode, place_of, read
from tidegauge.drive.transports.lines import DrivenProgramError, parse_report
from tidegauge.drive.wire.compiler import WireMessage
from tidegauge.drive.wire.frames import Conditions, Connection, Listener, ReceivedRequest
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.profiles import FETCH_TRUNCATION

TWO_BROKERS, THREE_BROKERS = Opening(), Opening((2, 3))
LEADS: Path = (("metadata", 1, 0, 0, (1, 2)),)
ANOTHER_LEADS: Step = ("metadata", 2, 1, 1, (1, 2))
LEADS_AGAIN: Step = ("metadata", 1, 1, 1, (1, 2))
WAITS: Step = ("fetch_and_wait", 2, 0, 0, -1, True)
FENCED = 74


def read_result(base: int, hw: int, epoch: int = 0) -> Report:
    """One record that is the peer's."""
    return {"error": 0, "hw": hw, "log_start": 0, "records": [[base, base, epoch]], "diverging": None}


def taken_through(path: Path, opening: Opening = TWO_BROKERS, switches: dict[str, bool | str] | None = None) -> list[Report]:
    """What the reference reports after each step."""
    state, reports = opened(opening, FETCH_TRUNCATION.switched(switches or {})), []
    for taken in path:
        assert is_possible(state, taken), taken
        state, said = take_step(state, taken)
        reports.append(said)
    return reports


# ---------------------------------------------------------------------------------------------------------------------
# What completes one. Each of these steps was given to 4.1.1, too: they are of the covers of `waits` and `both`.


@pytest.mark.parametrize(
    ("then", "fetched"),
    [
        (("append", 1), {"2": read_result(0, 0)}),
        (ANOTHER_LEADS, {"2": {"error": FENCED}}),
        (("metadata", -1, 1, 1, (1,)), {"2": {"error": FENCED}}),
        (("metadata", 1, 0, 1, (1, 2)), {}),
        (LEADS_AGAIN, {}),
        (("fetch", 2, 0, 0, -1, True), {}),
        (("list_offsets", 0, "latest"), {}),
        (("stop",), {}),
    ],
)
def test_a_fetch_waits_for_a_record_or_the_end_of_the_leadership(then: Step, fetched: dict[str, Report]) -> None:
    *_, waits, after = taken_through((*LEADS, WAITS, then))
    assert (waits["result"], waits["fetched"]) == (None, {})
    assert after["fetched"] == fetched


def test_a_leader_that_leads_again_does_not_look_and_fences_at_the_next_append() -> None:
    """Partition#makeLeader looks only where the high watermark was raised. The peer's epoch is an earlier one by then."""
    *_, again, same, appended = taken_through((*LEADS, WAITS, LEADS_AGAIN, ("fetch", 2, 1, 0, -1, True), ("append", 1)))
    assert [one["fetched"] for one in (again, same, appended)] == [{}, {}, {"2": {"error": FENCED}}]


@pytest.mark.parametrize(("wakes", "fetched"), [(False, set()), (True, {"2"})])
def test_a_high_watermark_that_moves_completes_it_in_2_4_and_2_5_alone(wakes: bool, fetched: set[str]) -> None:
    """KAFKA-9952: the bound of a follower is the log end."""
    led: Path = (("metadata", 1, 0, 0, (1, 2, 3)), ("append", 1))
    path = (*led, ("fetch_and_wait", 2, 0, 1, 0, True), ("fetch", 3, 0, 1, 0, True))
    *_, waits, moved = taken_through(path, THREE_BROKERS, {"hw_wakes_followers": wakes})
    assert (waits["hw"], moved["hw"]) == (0, 1)
    assert set(moved["fetched"]) == fetched


def test_both_peers_may_wait_and_one_record_answers_both() -> None:
    path: Path = (("metadata", 1, 0, 0, (1, 2, 3)), WAITS, ("fetch_and_wait", 3, 0, 0, -1, True), ("append", 1))
    assert taken_through(path, THREE_BROKERS)[-1]["fetched"] == {"2": read_result(0, 0), "3": read_result(0, 0)}


def test_a_peer_has_one_that_waits_and_the_next_when_that_is_answered() -> None:
    state = opened(Opening())
    for taken, may_wait in ((LEADS[0], True), (WAITS, False), (("append", 1), True)):
        state, _ = take_step(state, taken)
        assert is_possible(state, WAITS) is may_wait


@pytest.mark.parametrize(
    ("before", "fetch", "result"),
    [
        ((("append", 1),), WAITS, read_result(0, 0)),
        ((), ("fetch_and_wait", 2, 1, 0, -1, True), {"error": 75}),
        ((), ("fetch_and_wait", 2, 0, 4, -1, True), {"error": 1}),
        ((ANOTHER_LEADS,), ("fetch_and_wait", 2, 1, 0, -1, True), {"error": 6}),
    ],
)
def test_one_that_has_something_to_say_does_not_wait(before: Path, fetch: Step, result: Report) -> None:
    after = taken_through((*LEADS, *before, fetch))[-1]
    assert (after["result"], after["fetched"]) == (result, {})


def test_a_divergence_does_not_wait() -> None:
    path: Path = (*LEADS, ("append", 1), LEADS_AGAIN, ("append", 1), ("fetch_and_wait", 2, 1, 2, 0, True))
    assert taken_through(path)[-1]["result"]["diverging"] == [0, 1]


# ---------------------------------------------------------------------------------------------------------------------
# The covers, the walks


@pytest.mark.parametrize("graph", ["waits", "both"])
def test_a_cover_of_waiting_fetches_takes_only_what_they_have_part_in(graph: str) -> None:
    made = cover_of(graph, FETCH_TRUNCATION)
    assert made.steps_taken == made.local_steps
    assert made.unreached == 0
    assert all(any(taken[0] == "fetch_and_wait" for taken in case.path) for case in made.cases)
    able = Capabilities("none wait", EVERYTHING.can - {"fetch_and_wait"}, EVERYTHING.reports)
    assert cover_of(graph, FETCH_TRUNCATION, able).cases == ()


def test_walks_are_the_same_but_for_what_waits() -> None:
    """What a broker that cannot be given such a fetch is given instead changes nothing else: in walks without sessions."""
    able = Capabilities("none wait", EVERYTHING.can - MAY_WAIT, EVERYTHING.reports)

    def plain(case: BrokerCase) -> Path:
        return tuple(("fetch", *taken[1:]) if taken[0] == "fetch_and_wait" else taken for taken in case.path)

    some, others = walks(1, 60, FETCH_TRUNCATION)[::2], walks(1, 60, FETCH_TRUNCATION, able)[::2]
    assert [plain(case) for case in some] == [case.path for case in others]
    assert some != others


# ---------------------------------------------------------------------------------------------------------------------
# Brokers that are wrong

COVER = cover_of("waits", FETCH_TRUNCATION).cases[::4]


def forgetting(name: str) -> WrongStep:
    """A broker that does not look at what waits at that step, and loses it."""

    def wrong(_before: ReferenceBroker, taken: Step, after: ReferenceBroker, result: Report | None) -> Outcome:
        return (after._replace(fetches=FrozenMap()) if taken[0] == name else after), result

    return wrong


def early() -> BrokerReference:
    """As 2.4 and 2.5 were."""
    return reference(FETCH_TRUNCATION.switched({"hw_wakes_followers": True}))


class Late:
    """A broker that answers a fetch that waited one step too late."""

    capabilities = EVERYTHING

    def play(self, cases: Sequence[BrokerCase], watch: Watch) -> None:
        """The right one, with what it has fetched held back."""
        back: dict[int, Report] = {}

        def later(number: int, at: int, seen: Report) -> bool:
            before = back.get(number, {}) if at else {}
            back[number] = seen["fetched"]
            return watch(number, at, {**seen, "fetched": before})

        ReferenceNode(reference()).play(cases, later)


@pytest.mark.parametrize("name", ["append", "metadata"])
def test_a_broker_that_never_completes_is_found_and_shrunk(name: str) -> None:
    """With the steps that say so: a wait, and what should have ended it."""
    found = shortest_of(ReferenceNode(reference(wrong_step=forgetting(name))))
    assert [taken[0] for taken in found.case.path] == ["metadata", "fetch_and_wait", name]
    assert found.fields == ("fetched",)
    assert "! fetched   to 2: error=" in story(found, reference(), (), EVERYTHING.reports)


def test_a_broker_that_completes_a_step_too_late_is_found() -> None:
    found = shortest_of(Late())
    assert (found.at, found.fields) == (3, ("fetched",))


def test_a_broker_that_withholds_a_divergence_is_found_and_named() -> None:
    found = run(ReferenceNode(reference_with(BUGS["apache/kafka#9434"])), COVER, reference(FETCH_TRUNCATION))
    assert {failure.shown.fields for failure in found.failures} == {("result",)}
    assert all("same as   apache/kafka#9434" in failure.text for failure in found.failures)


def test_a_broker_that_a_high_watermark_wakes_is_found_and_named() -> None:
    """Too early, as 2.4 and 2.5 were."""
    found = run(ReferenceNode(early()), COVER, reference(FETCH_TRUNCATION))
    assert found.exit_code == 1
    assert {failure.shown.fields for failure in found.failures} == {("fetched",)}
    assert all("same as   hw_wakes_followers=on" in failure.text for failure in found.failures)


def test_a_broker_that_looks_after_every_step_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too early: who leads again in a later epoch fences at once. What it did is recorded and held against the reference."""
    recorder: Recorder[BrokerCase] = Recorder(COVER)
    with monkeypatch.context() as eager:
        eager.setattr(purgatory, "_are_checked", lambda *_: True)
        play(ReferenceNode(reference()), COVER, reference(), recorder)
    node = recorded_node(recorder)
    differences = play(node, COVER, reference()).differences
    assert differences
    assert {(found.step[0], found.fields) for found in differences if found.step} == {("metadata", ("fetched",))}


def recorded_node(recorder: Recorder[BrokerCase]) -> TranscriptNode[BrokerCase]:
    """What was recorded as a broker."""
    node = TranscriptNode(BROKER_FORMAT, EVERYTHING, FETCH_TRUNCATION.name, tuple(REPORTED))
    for one in recorder.recorded():
        node.add(one)
    return node


def shortest_of(node: Node[BrokerCase]) -> Difference[BrokerCase]:
    """The first difference on the cover, shrunk."""
    found = min(play(node, COVER, reference()).differences, key=lambda difference: difference.at)
    shortest = shrunk(node, found, reference())
    assert shortest is not None
    return shortest


@pytest.mark.parametrize(
    "wrong", [early(), reference(wrong_step=forgetting("append")), reference(wrong_step=forgetting("metadata"))]
)
def test_what_an_unmodified_broker_completed_is_told_from_what_a_wrong_one_does(wrong: BrokerReference) -> None:
    """So the step of the main job that rechecks transcripts can fail for a fetch that waited."""
    node = read(place_of("4.3.1"), BROKER_FORMAT)
    cases = [case for case in node.cases if any(taken[0] == "fetch_and_wait" for taken in case.path)]
    assert len(cases) > 400
    assert play(node, cases, reference()).differences == ()
    differences = play(node, cases, wrong).differences
    assert differences
    assert {found.fields for found in differences} == {("fetched",)}


@pytest.mark.parametrize("fetched", ['{"2":[]}', '{"2":{}}', '{"x":{"error":6}}', "[]", '{"2":{"error":0,"hw":0}}'])
def test_a_program_that_reports_no_responses_is_blamed(fetched: str) -> None:
    line = f'{{"p":1,"fetched":{fetched}}}'
    only = Capabilities("some", EVERYTHING.can, frozenset({"fetched"}))
    with pytest.raises(DrivenProgramError, match='in "fetched" an object of responses to fetches by peer'):
        parse_report(json.loads(line), ("append", 1), only, line.encode(), "on line 1")
    right = {"p": 1, "fetched": {"2": {"error": 6}, "3": read_result(0, 0), "4": None}}
    assert parse_report(right, ("append", 1), only, b"", "") == right


# ---------------------------------------------------------------------------------------------------------------------
# On the wire

TOPIC = Topic(uuid4(), "t")


def response(hw: int) -> WireMessage:
    partition = {"partitionIndex": 0, "errorCode": 0, "highWatermark": hw, "lastStableOffset": -1, "logStartOffset": 0}
    partition = {**partition, "abortedTransactions": None, "records": b""}
    return {"errorCode": 0, "sessionId": 0, "responses": [{"topicId": TOPIC.id, "partitions": [partition]}]}


def on_the_wire(work: Callable[[WaitingFetches, PartitionRequests, asyncio.Event], Awaitable[None]]) -> None:
    """With a broker of ours that answers a fetch that may wait when it is told to, and any other at once."""

    async def with_a_broker() -> None:
        there = asyncio.Event()

        async def answered(request: ReceivedRequest) -> WireMessage:
            assert (request.body["minBytes"], request.body["sessionEpoch"]) == (1, -1)
            await there.wait()
            return response(request.body["topics"][0]["partitions"][0]["fetchOffset"])

        listener = Listener(shipped_messages(), ["Fetch"], answered, Conditions())
        port = await listener.start()

        async def connect() -> Connection:
            return await Connection.open(shipped_messages(), port)

        connection = await connect()
        followers = WaitingFetches(SimpleNamespace(connection=connection, broker=SimpleNamespace(connect=connect)))  # type: ignore[arg-type]
        await work(followers, PartitionRequests(await connection.versions()), there)
        followers.close()
        connection.close()
        listener.close()

    in_a_loop(with_a_broker())


def test_a_fetch_that_is_answered_at_once_does_not_wait_and_one_that_is_not_is_there_later() -> None:
    async def work(followers: WaitingFetches, calls: PartitionRequests, there: asyncio.Event) -> None:
        assert await followers.fetch(3, calls.fetch(TOPIC, 5, replica=3, waits=True), fetched_partition) is None
        assert await followers.fetch(2, calls.fetch(TOPIC, 4, replica=2, waits=True), fetched_partition) is None
        assert followers.take_responses() == {}
        there.set()
        await asyncio.sleep(0.05)
        responses = followers.take_responses()
        assert [(peer, found and found["highWatermark"]) for peer, found in responses.items()] == [(2, 4), (3, 5)]
        assert followers.take_responses() == {}
        found = await followers.fetch(2, calls.fetch(TOPIC, 7, replica=2, waits=True), fetched_partition)
        assert found is not None
        assert found["highWatermark"] == 7

    on_the_wire(work)


def test_a_response_that_another_peers_fetch_causes_is_kept() -> None:
    """A fetch raises the high watermark, and so ends one that waits with an older leader epoch."""

    async def work(followers: WaitingFetches, calls: PartitionRequests, there: asyncio.Event) -> None:
        assert await followers.fetch(3, calls.fetch(TOPIC, 5, replica=3, waits=True), fetched_partition) is None
        there.set()
        assert await followers.fetch(2, calls.fetch(TOPIC, 4, replica=2, waits=True), fetched_partition) is not None
        assert list(followers.take_responses()) == [3]

    on_the_wire(work)


def test_who_waits_when_nobody_asks_any_more_leaves_nothing_behind() -> None:
    async def work(followers: WaitingFetches, calls: PartitionRequests, _there: asyncio.Event) -> None:
        assert await followers.fetch(2, calls.fetch(TOPIC, 5, replica=2, waits=True), fetched_partition) is None
        followers.close()
        assert followers.take_responses() == {}

    on_the_wire(work)


def test_the_graphs_of_waiting_fetches_are_those_that_say_so() -> None:
    assert {name for name, graph in GRAPHS.items() if graph.waits and not graph.sessions} == {"waits", "both"}

"""Whoever is not meant keeps his session while time passes, with no more heartbeats than that takes."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drive.controller.test_abandoned_sessions import Hand
from tidegauge.drive.controller import path_cluster as lane_
from tidegauge.drive.controller.contract import ALL, ClusterOpening, empty
from tidegauge.drive.controller.metadata_image import LogRecord
from tidegauge.drive.controller.path_cluster import HOLDER, Lane
from tidegauge.drive.controller.process import ControllerProcess, LeftSessions
from tidegauge.drive.wire.compiler import WireMessage
from tidegauge.impl.releases import profile_named
from tidegauge.impl.rules import NONE, UNDEFINED

PROFILE = profile_named("release-4.3.1")
BROKERS = (1, 2, 3)


class Believes:
    """A controller that believes each heartbeat, and fences at each look whose session is over. A session is 100 s."""

    def __init__(self) -> None:
        self.clock = Hand()
        self.left_sessions = LeftSessions(self.clock)
        self.supported: list[WireMessage] = []
        self.observer = SimpleNamespace(at=0)
        self.is_read, self.reads = False, 0
        self.beats: list[tuple[int, int]] = []
        self.contact: dict[int, float] = {}
        self.blind = 0
        """How many looks find nothing yet."""
        self._log: list[LogRecord] = []
        self._registered: dict[int, WireMessage] = {}

    async def call(self, name: str, body: WireMessage) -> WireMessage:
        self.is_read, broker = False, body["brokerId"]
        if name == "BrokerRegistration":
            # The same incarnation keeps its broker epoch (ClusterControlManager#registerBroker, since 3.9).
            before = self._registered.get(broker)
            amends = before is not None and before["incarnationId"] == body["incarnationId"]
            epoch = before["brokerEpoch"] if before is not None and amends else len(self._log)
            self._registered[broker] = {**body, "brokerEpoch": epoch, "fenced": not amends}
            self._write("RegisterBrokerRecord", self._registered[broker])
            return {"errorCode": NONE, "brokerEpoch": epoch}
        assert name == "BrokerHeartbeat"
        self.beats.append((broker, body["currentMetadataOffset"]))
        if broker not in self.contact and not body["wantFence"]:
            self._change(broker, body["brokerEpoch"], -1)
        if not body["wantFence"]:
            self.contact[broker] = self.clock.now()
        return {"errorCode": NONE, "isCaughtUp": True, "isFenced": False, "shouldShutDown": False}

    async def read(self) -> list[LogRecord]:
        self.is_read, self.reads = True, self.reads + 1
        new, self.observer.at = self._log[self.observer.at :], len(self._log)
        return new

    async def wake(self) -> None:
        self.is_read, self.blind = False, self.blind - 1
        for broker in self.overdue() if self.blind < 0 else ():
            del self.contact[broker]
            self._change(broker, 0, 1)

    barrier = wake

    def overdue(self) -> list[int]:
        return [broker for broker, since in self.contact.items() if self.clock.now() - since > self.clock.session]

    def _change(self, broker: int, epoch: int, fenced: int) -> None:
        body = {"brokerId": broker, "brokerEpoch": epoch, "fenced": fenced}
        self._write("BrokerRegistrationChangeRecord", body)

    def _write(self, name: str, body: WireMessage) -> None:
        self._log.append(LogRecord(len(self._log), name, body))


def with_lane(work: Callable[[Believes, Lane], Awaitable[Any]]) -> None:
    """A path's lane whose brokers are all up, beside the holder."""

    async def run() -> None:
        process = Believes()
        made = cast("ControllerProcess", process)
        holder = Lane(made, 0, empty(ClusterOpening(30), PROFILE))
        await holder.hold()
        lane = Lane(made, 1, empty(ClusterOpening(30), PROFILE), holder)
        for broker in BROKERS:
            await lane.register(broker, new=True, previous=-1, directories=(f"{broker}A",))
            await lane.read()
            await lane.heartbeat(broker)
        await lane.read()
        await holder.heartbeat(HOLDER)
        process.beats.clear()
        await work(process, lane)

    asyncio.run(run())


def fenced(lane: Lane) -> set[int]:
    return {broker for broker, known in lane.image.control.brokers.items() if known.fenced}


@given(st.lists(st.tuples(st.sampled_from(["expires", "lapses", "beats"]), st.sampled_from(BROKERS)), max_size=12))
def test_only_the_session_that_is_meant_is_over(taken: list[tuple[str, int]]) -> None:
    async def work(process: Believes, lane: Lane) -> None:
        over: set[int] = set()
        for what, broker in taken:
            if what == "expires":
                await lane.session_expires(broker)
                over.add(broker)
            elif what == "lapses" and broker not in over:
                await lane.session_lapses(broker)
                assert process.overdue() == [lane.names.id_of(broker)]
            if what != "expires":
                await lane.heartbeat(broker)
                over.discard(broker)
            await process.wake()
            await lane.read()
            assert fenced(lane) == over
            assert HOLDER in process.contact

    with_lane(work)


def test_others_are_kept_while_looks_take_as_long_as_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """As they do in the machine's time, where it is slow."""
    monkeypatch.setattr(lane_, "NEXT_CHECK", 5.0)

    async def work(process: Believes, lane: Lane) -> None:
        process.blind = 20
        await lane.session_expires(1)
        assert fenced(lane) == {1}
        assert HOLDER in process.contact

    with_lane(work)


def test_who_was_heard_of_a_moment_ago_beats_once_in_a_session_that_passes() -> None:
    async def work(process: Believes, lane: Lane) -> None:
        await lane.session_expires(1)
        others = {HOLDER, *map(lane.names.id_of, (2, 3))}
        assert Counter(broker for broker, _ in process.beats) == dict.fromkeys(others, 1)

    with_lane(work)


def test_who_leaves_beats_while_the_holder_has_read_nothing() -> None:
    async def work(process: Believes, lane: Lane) -> None:
        await lane.heartbeat(2, 7, shut_down=True)
        process.beats.clear()
        await lane.session_expires(1)
        at = process.beats.index((lane.names.id_of(2), 7))
        assert [process.beats[at - 1], process.beats[at + 1]] == [(HOLDER, 0), (HOLDER, ALL)]

    with_lane(work)


def test_who_registers_again_in_the_same_incarnation_has_read_nothing_again() -> None:
    """Its registration makes the controller forget the offset (BrokerHeartbeatManager#register)."""

    async def work(process: Believes, lane: Lane) -> None:
        await lane.heartbeat(2)
        await lane.register(2, new=False, previous=-1, directories=("2A",))
        process.beats.clear()
        await lane.session_expires(1)
        assert [offset for broker, offset in process.beats if broker == lane.names.id_of(2)] == [UNDEFINED]

    with_lane(work)


def test_who_has_asked_for_nothing_reads_nothing() -> None:
    async def work(process: Believes, lane: Lane) -> None:
        await lane.read()
        before = process.reads
        await lane.read()
        assert process.reads == before
        await lane.heartbeat(1)
        await lane.read()
        assert process.reads == before + 1

    with_lane(work)

"""The check of the ISR on a process whose clocks are moved: it runs once for all that wait for it, when no other partition
is in the middle of a step; a partition that did not ask for it keeps its ISR."""

import asyncio
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tidegauge.drive.kafka_broker import lag_check
from tidegauge.drive.kafka_broker.lag_check import CHECKED_EVERY_MS, DUE_SECONDS, LAG_SECONDS, LagCheck
from tidegauge.drive.kafka_broker.node import KafkaNode
from tidegauge.drive.kafka_process import clock
from tidegauge.drive.kafka_process.builds import KafkaBuild
from tidegauge.drive.wire.compiler import WireError
from tidegauge.drive.wire.frames import Conditions
from tidegauge.impl.rules import INELIGIBLE_REPLICA

ONE, OTHER, THIRD = (UUID(int=number) for number in (1, 2, 3))


class Broker:
    """As its controller and its clocks see it: a check proposes for each partition in `lagging` that has nothing in flight,
    then the checkpoint is written."""

    def __init__(self, folder: Path, *lagging: UUID) -> None:
        self.file, self.lagging, self.checks, self.passed = folder / "checkpoint", lagging, 0, 0.0
        self.pending: dict[UUID, Any] = {}
        self.sent: dict[UUID, Any] = {}
        self.responses: list[tuple[UUID, Any]] = []
        self.proposals, self.conditions = self, Conditions()

    def advance(self, seconds: float) -> None:
        assert 0 < seconds * 1000 <= CHECKED_EVERY_MS
        self.checks += 1
        self.pending |= {topic: {} for topic in self.lagging if topic not in self.pending}
        beside = self.file.with_name("written")
        beside.write_text(str(self.checks), encoding="utf-8")
        beside.replace(self.file)

    def advance_date(self, seconds: float) -> None:
        self.passed += seconds

    def respond(self, topic: UUID, response: Any) -> None:
        self.responses.append((topic, response))
        del self.pending[topic]

    async def exchanged(self) -> None:
        await asyncio.sleep(0)
        self.pending |= self.sent
        self.sent = {}


def check_of(broker: Any) -> LagCheck:
    return LagCheck(broker, broker, broker.file)


def test_one_check_serves_all_slots_and_waits_for_those_that_play(tmp_path: Path) -> None:
    broker = Broker(tmp_path, ONE, OTHER)
    check, seen = check_of(broker), []

    async def lags(topic: UUID) -> None:
        await check.run(topic)
        seen.append((topic, broker.checks))

    async def plays(steps: int) -> None:
        for _ in range(steps):
            await asyncio.sleep(0)
            assert broker.checks == 0, "a check while another slot is in the middle of a step"

    async def all_slots() -> None:
        await asyncio.gather(check.play(lags(ONE)), check.play(plays(20)), check.play(lags(OTHER)))

    asyncio.run(all_slots())
    assert sorted(seen) == [(ONE, 1), (OTHER, 1)]
    assert broker.pending.keys() == {ONE, OTHER}
    assert broker.responses == []


def test_a_check_that_is_due_runs_between_two_steps_and_counts_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a loaded machine a process lives until the check would run by itself, in the middle of steps."""
    broker = Broker(tmp_path, ONE, OTHER)
    check = check_of(broker)

    async def steps() -> None:
        await check.run_before_it_is_due()
        await check.run_before_it_is_due()

    asyncio.run(check.play(steps()))
    assert broker.checks == 0
    later = time.monotonic() + DUE_SECONDS + 1
    monkeypatch.setattr(lag_check.time, "monotonic", lambda: later)
    asyncio.run(check.play(steps()))
    assert broker.checks == 1
    assert broker.responses == [(topic, {"errorCode": INELIGIBLE_REPLICA}) for topic in (ONE, OTHER)]


class FixedRate(Broker):
    """It checks at a fixed rate by its monotonic clock, from a little before it was noticed to have started."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.real, self.moved, self.noticed_after = 0.0, 0.0, 20.0

    def _runs(self) -> int:
        return int((self.real + self.moved + self.noticed_after) * 1000 / CHECKED_EVERY_MS)

    def advance(self, seconds: float) -> None:
        before, self.moved = self._runs(), self.moved + seconds
        assert self._runs() == before + 1
        super().advance(seconds)

    def wait(self, seconds: float) -> None:
        before, self.real = self._runs(), self.real + seconds
        assert self._runs() == before, "a check in the middle of steps"


def test_no_check_runs_by_itself_however_long_the_process_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unmodified broker seemed to propose an ISR that no step had led to."""
    broker = FixedRate(tmp_path)
    monkeypatch.setattr(lag_check.time, "monotonic", lambda: broker.real)
    check = check_of(broker)

    async def steps() -> None:
        for seconds in (1, DUE_SECONDS / 2, DUE_SECONDS - 1, DUE_SECONDS, 3, DUE_SECONDS + 30) * 10:
            broker.wait(seconds)
            await check.run_before_it_is_due()
            broker.wait(1)
            await check.run(ONE)

    asyncio.run(check.play(steps()))
    assert broker.checks > 60


@pytest.mark.parametrize("where", ["pending", "sent"])
def test_what_is_proposed_of_others_is_refused_and_what_was_proposed_before_stays(where: str, tmp_path: Path) -> None:
    """Also where nobody has looked since: what was proposed in a step that is known from another path comes with the next
    request.
    """
    broker = Broker(tmp_path, ONE, OTHER)
    getattr(broker, where)[THIRD] = {}
    check = check_of(broker)
    asyncio.run(check.play(check.run(ONE)))
    assert broker.responses == [(OTHER, {"errorCode": INELIGIBLE_REPLICA})]
    assert broker.pending.keys() == {ONE, THIRD}


def test_checks_follow_each_other_and_a_slot_that_failed_is_waited_for_by_nobody(tmp_path: Path) -> None:
    broker = Broker(tmp_path, ONE)
    check = check_of(broker)

    async def twice() -> None:
        await check.run(ONE)
        broker.pending.clear()
        await check.run(ONE)

    async def fails() -> None:
        raise ValueError

    async def slots() -> None:
        await asyncio.gather(check.play(fails()), return_exceptions=True)
        await check.play(twice())

    asyncio.run(slots())
    assert broker.checks == 2


def test_more_than_the_lag_time_passes_before_a_step(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    check = check_of(broker)
    check.pass_time()
    check.pass_time()
    assert check.lag_times_passed == 2
    assert broker.passed > 2 * LAG_SECONDS


class Stuck(Broker):
    """It checks nothing."""

    def advance(self, _seconds: float) -> None:
        self.checks += 1


def test_a_check_that_does_not_come_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag_check, "PATIENCE", 0.01)
    check = check_of(Stuck(tmp_path, ONE))
    with pytest.raises(WireError, match=r"expected a check of the ISR within 0\.01 s; seen the old checkpoint"):
        asyncio.run(check.play(check.run(ONE)))


def test_a_broker_that_ends_meanwhile_is_told_at_once(tmp_path: Path) -> None:
    broker = Stuck(tmp_path, ONE)
    broker.conditions.fail(WireError("the connection is closed"))
    check = check_of(broker)
    with pytest.raises(WireError, match="the connection is closed"):
        asyncio.run(check.play(check.run(ONE)))


def test_without_a_compiler_a_broker_is_given_no_lag_times(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_compiler() -> Path:
        raise clock.NoLibraryError("none")

    monkeypatch.setattr(clock, "build_library", no_compiler)
    with KafkaNode(KafkaBuild("4.1.1", "4.1.1", ())) as node:
        can = node.capabilities.can
    assert "lag" not in can
    assert can >= {"metadata", "fetch", "crash"}

"""The check of the ISR (ReplicaManager#maybeShrinkIsr), made to run when a step says so, by a process whose clocks are ours.

Rules of this file

1. The check comes every half of replica.lag.time.max.ms by the monotonic clock, which nobody else moves: by itself it comes
   once, when the process starts, for no process lives until the next. Who lags it finds by the time of day.
2. That passes the lag time before each step: a follower has caught up in time if it stands at the log end, and only then
   (Replica#isCaughtUp). It is what the reference has, and replica.lag.time.max.ms=-2 where nothing is moved.
3. A check looks at all partitions. So it runs when every lane that plays has come to such a step: nobody's is amid another.
   What it proposes for partitions that wait for their turn is refused, and they are as they were.
4. High watermarks are written as often, by the same thread and after it, as they were begun later
   (ReplicaManager#startHighWatermarkCheckPointThread): a new file is the sign that a check is over.
"""

import asyncio
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from tidegauge.drive.kafka_broker.controller import Controller
from tidegauge.drive.kafka_process.clock import MovedClock
from tidegauge.drive.wire.primitives import WireError
from tidegauge.drive.wire.signs import PATIENCE
from tidegauge.impl.rules import INELIGIBLE_REPLICA

T = TypeVar("T")

LAG_MS = 1_200_000
LAG = LAG_MS / 1000
CHECKED_EVERY_MS = LAG_MS // 2

PASSED = LAG + 1
"""What passes before a step, in seconds: more than the lag time."""

LOOKED_AFTER = 0.002
"""How often the file is looked at, in seconds."""


class LagCheck:
    """That of one broker; `passed` counts how often the lag time has."""

    def __init__(self, controller: Controller, clock: MovedClock, written: Path) -> None:
        self._controller, self._clock, self._written = controller, clock, written
        self._playing = 0
        self._here: dict[UUID, asyncio.Future[None]] = {}
        self.passed = 0

    def pass_time(self) -> None:
        """Nobody was there a moment ago."""
        self._clock.advance_date(PASSED)
        self.passed += 1

    def play(self, work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        """What a lane plays, which counts from now on: until it is done, no check runs but when it is in `run`."""
        self._playing += 1
        return self._played(work)

    async def _played(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            result = await work
        finally:
            self._playing -= 1
        await self._run_if_all_are_here()
        return result

    async def run(self, topic: UUID) -> None:
        """Have the check run, once for the partitions of all lanes, and wait until it is over."""
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._here[topic] = over
        await self._run_if_all_are_here()
        await over

    async def _run_if_all_are_here(self) -> None:
        if not self._here or len(self._here) < self._playing:
            return
        here, self._here = self._here, {}
        proposals, before = self._controller.proposals, self._file()
        await proposals.exchanged()  # not every step is looked at: what a leader proposed before is no doing of the check
        known = {*proposals.waiting, *here}
        self._clock.advance(CHECKED_EVERY_MS / 1000)
        await self._written_anew(before)
        await proposals.exchanged()
        for topic in proposals.waiting.keys() - known:
            proposals.respond(topic, {"errorCode": INELIGIBLE_REPLICA})
        await proposals.exchanged()
        for over in here.values():
            over.set_result(None)

    async def _written_anew(self, before: tuple[int, int] | None) -> None:
        """Nobody says that a file is new, so it is looked at. Raises WireError when that takes too long."""
        ends = time.monotonic() + PATIENCE
        while not await self._controller.signs.within(lambda: self._file() != before, LOOKED_AFTER):
            if time.monotonic() > ends:
                raise WireError(
                    f"the broker: expected a check of the ISR within {PATIENCE:g} s; seen the old {self._written.name}"
                )

    def _file(self) -> tuple[int, int] | None:
        try:
            found = self._written.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns

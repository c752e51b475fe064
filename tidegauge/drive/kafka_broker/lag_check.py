"""The check of the ISR (ReplicaManager#maybeShrinkIsr), run when a step says so, on a process whose clocks the driver moves.

Rules of this file

1. The check runs every half of replica.lag.time.max.ms by the monotonic clock, at a fixed rate (KafkaScheduler#schedule): by
   itself it runs once, when the process starts. A process that lives until the next one is near (a loaded machine) is given
   a check between two steps, of which nothing counts. The clock is moved by what is left of the period: moved by a whole
   one, a check would still run by itself whenever one has really passed. Which replica lags the check decides by the time
   of day.
2. The lag time passes before each step. So a follower is in time if it is at the log end, and only then
   (Replica#isCaughtUp). That is what the reference has, and replica.lag.time.max.ms=-2 where no clock can be moved.
3. One check covers all partitions. So it runs when every slot that plays has come to such a step, and no other partition is
   in the middle of one. What it proposes for partitions between two steps is refused, and they are as they were.
4. High watermarks are written as often, by the same thread, after the check, because that task was scheduled later
   (ReplicaManager#startHighWatermarkCheckPointThread): a new checkpoint file shows that the check is over.
"""

import asyncio
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID, uuid4

from tidegauge.drive.kafka_broker.controller_stub import ControllerStub
from tidegauge.drive.kafka_process.clock import MovedClock
from tidegauge.drive.wire.compiler import WireError
from tidegauge.drive.wire.frames import PATIENCE
from tidegauge.impl.rules import INELIGIBLE_REPLICA

T = TypeVar("T")

LAG_MS = 1_200_000
LAG_SECONDS = LAG_MS / 1000
CHECKED_EVERY_MS = LAG_MS // 2
PASSED_SECONDS = LAG_SECONDS + 1
"""What passes before a step: more than the lag time."""

DUE_SECONDS = CHECKED_EVERY_MS / 2000
"""How long a process may go without a check: half of the time after which one runs by itself."""

POLL_SECONDS = 0.002
"""Between two looks at the checkpoint file."""


class LagCheck:
    """The check of one broker. `checkpoint`: the file that shows its end; `lag_times_passed`: how often the lag time has."""

    def __init__(self, controller: ControllerStub, clock: MovedClock, checkpoint: Path) -> None:
        """Begin with no path that plays."""
        self._controller, self._clock, self._checkpoint = controller, clock, checkpoint
        self._playing = 0
        self._asked: dict[UUID, asyncio.Future[None]] = {}
        self.lag_times_passed = 0
        self._checked_at = time.monotonic()

    def started(self) -> None:
        """Take notice that the process has started, and both tasks were scheduled: the check has run."""
        self._checked_at = time.monotonic()

    async def run_before_it_is_due(self) -> None:
        """Run a check of which nothing counts if one would soon run by itself, in the middle of steps."""
        if time.monotonic() - self._checked_at > DUE_SECONDS:
            # No partition has this id: what the check proposes is refused.
            await self.run(uuid4())

    def pass_time(self) -> None:
        """Let the lag time pass on the time of day."""
        self._clock.advance_date(PASSED_SECONDS)
        self.lag_times_passed += 1

    def play(self, work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        """Wrap what a slot plays. Until it is done, no check runs except while it waits in `run`."""
        # Counted now, not when the task begins: else the check could run after one slot's step, before the others begin.
        self._playing += 1
        return self._play(work)

    async def _play(self, work: Coroutine[Any, Any, T]) -> T:
        """Play a path; at its end the others may be all that wait."""
        try:
            result = await work
        finally:
            self._playing -= 1
        # This may have been the last that the others waited for.
        await self._run_if_all_wait()
        return result

    async def run(self, topic: UUID) -> None:
        """Ask for a check for a partition, and wait until it is over. One check serves all that have asked by then."""
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asked[topic] = over
        await self._run_if_all_wait()
        await over

    async def _run_if_all_wait(self) -> None:
        """Run one check for all that have asked, if no slot is in the middle of a step: then end their waits.

        Proposals that the check makes for other partitions are refused, so that these keep their ISR.
        """
        if not self._asked or len(self._asked) < self._playing:
            return
        waiting, self._asked = self._asked, {}
        proposals, before = self._controller.proposals, self._file_identity()
        # Not every step reads the state: a proposal that a leader made before is taken in now, so that it does not look like
        # one of the check.
        await proposals.exchanged()
        expected = {*proposals.pending, *waiting}
        period, now = CHECKED_EVERY_MS / 1000, time.monotonic()
        self._clock.advance(period - (now - self._checked_at) % period)
        self._checked_at = now
        # The same thread writes the checkpoint of high watermarks after the check: a new file shows that it is over.
        await self._wait_for_new_file(before)
        await proposals.exchanged()
        for topic in proposals.pending.keys() - expected:
            proposals.respond(topic, {"errorCode": INELIGIBLE_REPLICA})
        await proposals.exchanged()
        for over in waiting.values():
            over.set_result(None)

    async def _wait_for_new_file(self, before: tuple[int, int] | None) -> None:
        """Poll until the checkpoint is another file than `before`. Raises WireError when that takes too long."""
        deadline = time.monotonic() + PATIENCE
        # Waiting on the conditions, not in a sleep, notices at once when the broker has gone.
        while not await self._controller.conditions.wait_up_to(POLL_SECONDS, lambda: self._file_identity() != before):
            if time.monotonic() > deadline:
                raise WireError(
                    f"the broker: expected a check of the ISR within {PATIENCE:g} s; seen the old {self._checkpoint.name}"
                )

    def _file_identity(self) -> tuple[int, int] | None:
        # A checkpoint is written beside its place and renamed (CheckpointFile#write): a new one is another inode.
        try:
            status = self._checkpoint.stat()
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns

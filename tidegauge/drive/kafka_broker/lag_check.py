"""The check of the ISR (ReplicaManager#maybeShrinkIsr), run when a step says so, on a process whose clocks the driver moves.

The driver is this program. A slot plays one path at a time on a partition of its own, and many slots play on one process.
The check proposes to take replicas that lag out of the ISR: an AlterPartition request, which the controller's `Proposals`
get. `pending` are those without a response, by topic id; `exchanged` waits for the broker's next request, which has every
proposal made until then, and shows that the broker has read the responses before it.

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
"""replica.lag.time.max.ms of the process."""
LAG_SECONDS = LAG_MS / 1000
CHECKED_EVERY_MS = LAG_MS // 2
"""The period of the check."""
PASSED_SECONDS = LAG_SECONDS + 1
"""What passes before a step: more than the lag time."""

DUE_SECONDS = CHECKED_EVERY_MS / 2000
"""How long a process may go without a check: half of the time after which one runs by itself."""

POLL_SECONDS = 0.002
"""Between two looks at the checkpoint file."""


class LagCheck:
    """The check of one broker.

    `checkpoint`: the file of high watermarks, which is written after each check; `lag_times_passed`: how often `pass_time`
    was called.
    """

    def __init__(self, controller: ControllerStub, clock: MovedClock, checkpoint: Path) -> None:
        """Begin with no path that plays."""
        self._controller, self._clock, self._checkpoint = controller, clock, checkpoint
        self._playing = 0
        """How many slots play, also those that wait in `run`."""
        self._waiting: dict[UUID, asyncio.Future[None]] = {}
        """By topic of a slot that waits in `run`, what ends its wait."""
        self.lag_times_passed = 0
        self._checked_at = time.monotonic()

    def started(self) -> None:
        """Note that the process has scheduled the check and the checkpoints, so that the check has just run once."""
        self._checked_at = time.monotonic()

    async def run_before_it_is_due(self) -> None:
        """Run a check now, refusing all that it proposes, if one could soon run by itself in the middle of steps."""
        if time.monotonic() - self._checked_at > DUE_SECONDS:
            # No partition has this id, so no proposal is let through.
            await self.run(uuid4())

    def pass_time(self) -> None:
        """Move the time of day of the process by more than the lag time."""
        self._clock.advance_date(PASSED_SECONDS)
        self.lag_times_passed += 1

    def play(self, work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        """Return a coroutine that awaits what a slot plays. Until it ends, a check runs only while it waits in `run`."""
        # Counted now, not when the task begins: else the check could run after one slot's step, before the others begin.
        self._playing += 1
        return self._play(work)

    async def _play(self, work: Coroutine[Any, Any, T]) -> T:
        """Await `work` and return its result; then run a check if all slots that still play wait for one."""
        try:
            result = await work
        finally:
            self._playing -= 1
        # This may have been the last that the others waited for.
        await self._run_if_all_wait()
        return result

    async def run(self, topic: UUID) -> None:
        """Wait until a check has run for the partition of a topic: as soon as all slots that play wait for one.

        The proposal that the check makes for this partition is pending then; those for partitions that do not wait are
        refused.
        """
        check_over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[topic] = check_over
        await self._run_if_all_wait()
        await check_over

    async def _run_if_all_wait(self) -> None:
        """Run one check if every slot that plays waits for it, and end their waits; else do nothing.

        Proposals that the check makes for other partitions are refused, so that these keep their ISR.
        """
        if not self._waiting or len(self._waiting) < self._playing:
            return
        waiting, self._waiting = self._waiting, {}
        proposals, file_before = self._controller.proposals, self._file_identity()
        # Not every step reads the state: a proposal that a leader made before is taken in now, so that it does not look like
        # one of the check.
        await proposals.exchanged()
        expected = {*proposals.pending, *waiting}
        # Rule 1: the clock is moved by what is left of the check's period.
        period, now = CHECKED_EVERY_MS / 1000, time.monotonic()
        self._clock.advance(period - (now - self._checked_at) % period)
        self._checked_at = now
        # The same thread writes the checkpoint of high watermarks after the check: a new file shows that it is over.
        await self._wait_for_new_file(file_before)
        # Twice: the first time brings the proposals of the check, the second shows that the broker has read the refusals.
        await proposals.exchanged()
        for topic in proposals.pending.keys() - expected:
            proposals.respond(topic, {"errorCode": INELIGIBLE_REPLICA})
        await proposals.exchanged()
        for check_over in waiting.values():
            check_over.set_result(None)

    async def _wait_for_new_file(self, before: tuple[int, int] | None) -> None:
        """Poll until the checkpoint is another file than the one that was `before`. Raises WireError after PATIENCE."""
        deadline = time.monotonic() + PATIENCE
        # Waiting on the conditions, not in a sleep, notices at once when the broker has gone.
        while not await self._controller.conditions.wait_up_to(POLL_SECONDS, lambda: self._file_identity() != before):
            if time.monotonic() > deadline:
                raise WireError(
                    f"the broker: expected a check of the ISR within {PATIENCE:g} s; seen the old {self._checkpoint.name}"
                )

    def _file_identity(self) -> tuple[int, int] | None:
        """Return what tells the checkpoint file from an earlier one: inode and time of change; None if there is none."""
        # A checkpoint is written beside its place and renamed (CheckpointFile#write): a new one is another inode.
        try:
            status = self._checkpoint.stat()
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns

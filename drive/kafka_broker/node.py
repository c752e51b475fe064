"""An unmodified Kafka broker behind the contract: `KafkaNode("4.1.1", folder)`.

Rules of this file

1. Lanes play paths side by side on one process. All sockets are served by one event loop, in a thread of its own: it goes
   on while nothing is played, or the broker would lose its controller.
2. Each path is played up to its next end of the process; when all are there, the process ends once, and they go on.
   `restarts` says which paths go together.
3. Paths of a cover begin alike, and a broker is the same each time. A beginning is looked at on the first path that has it;
   on the others only what its steps say by themselves is compared with that, and all but the last step may be such.
"""

import asyncio
import threading
from collections import defaultdict, deque
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from tidegauge.drive.broker.contract import ACKS_ALL, BATCHES, ENDS, REPORTED, STEPS, STOP, BrokerCase, Opening
from tidegauge.drive.broker.contract import LOG_STARTS as MOVING_STARTS
from tidegauge.drive.contract import Capabilities, Report, Step, Watch
from tidegauge.drive.kafka_broker.broker import KafkaBroker
from tidegauge.drive.kafka_broker.partition import UNREAD, Partition
from tidegauge.drive.kafka_broker.restarts import (
    HIGH_WATERMARKS,
    LOG_STARTS,
    begins_at,
    checkpointed,
    ends_of,
    in_one_row,
    write_checkpoint,
)
from tidegauge.drive.kafka_broker.worker_slot import Lane, start
from tidegauge.drive.kafka_process.clock import MovedClock, clock
from tidegauge.drive.prefix_tree import Beginning

T = TypeVar("T")

LANES = 64
"""So many that the process is busy while some linger, to share what they wait for."""

MOMENT = 0.01
"""What was closed is closed when the loop has gone round."""

LAG = frozenset({"lag"})
"""Where the clocks of the process are ours."""

NOT_GIVEN = LAG | {"retention", "offsets_for_leader_epoch_response"}
"""Retention is a clock's that nothing else looks at, and no release since 2.8 asks where an epoch ends."""

CAN = frozenset(STEPS) - NOT_GIVEN | {ACKS_ALL, BATCHES, MOVING_STARTS}
"""What is left of a log at a crash is the operating system's (`lose_tail`), and recovery reads what lies in a segment that
the log start has not left (`segments`): neither is promised."""


Known = Beginning[Report | None]
"""What was seen after some steps; None where nobody has looked yet."""


def unknown() -> Known:
    """Of paths that nobody has begun."""
    return Known(None, lambda *_: None)


class Run:
    """An order under way: the step that is next, its partition, and what is known of the steps so far."""

    def __init__(self, number: int, case: BrokerCase, partition: Partition, beginning: Known) -> None:
        self.number, self.case, self.partition, self.beginning, self.at = number, case, partition, beginning, 0
        self.log_start = 0

    def next(self) -> Step:
        """The step that is taken now."""
        step = self.case.path[self.at]
        self.at, self.beginning = self.at + 1, self.beginning.after(step)
        return step

    async def taken(self, step: Step) -> Report:
        """What is seen after it."""
        known = self.beginning.known if self.at < len(self.case.path) else None
        seen = self.beginning.known = await self.partition.given(step, known)
        self.log_start = seen["log_start"]
        return seen


def apart(paths: int, lanes: int) -> list[int]:
    """The numbers of paths, in an order in which those that lanes play at a time are far apart: what lies side by side
    begins alike, and one of them has to be looked at first.
    """
    stretch = -(-paths // lanes) or 1
    return [number for first in range(stretch) for number in range(first, paths, stretch)]


class KafkaNode:
    """One broker process with its controller and peers, started when it is first needed. `looks_always`: at each step of
    each path, also where what is seen is known from another one.
    """

    def __init__(self, release: str, jars: Path, lanes: int = LANES, *, looks_always: bool = False) -> None:
        found = clock()
        self._clock = found if isinstance(found, MovedClock) else None
        can = CAN if self._clock is None else CAN | LAG
        self.capabilities = Capabilities(f"Kafka {release}", can, frozenset(REPORTED))
        self._jars, self._count, self._looks_always = jars, lanes, looks_always
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._broker: KafkaBroker | None = None
        self._lanes: list[Lane] = []
        self._last: dict[BrokerCase, str] = {}

    def __enter__(self) -> "KafkaNode":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the process and everything around it."""
        if self._thread.is_alive():
            self._wait_for(self._closed())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def play(self, cases: Sequence[BrokerCase], watch: Watch) -> None:
        """Play the orders side by side."""
        self._wait_for(self._play(cases, watch))

    def log_lines(self, case: BrokerCase) -> list[str]:
        """What the broker has logged about the partition on which an order was played last."""
        name = self._last.get(case)
        return [] if name is None or self._broker is None else self._broker.process.lines_about(name)

    def _wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        finally:
            future.cancel()

    async def _started(self) -> KafkaBroker:
        if self._broker is None:
            self._broker = KafkaBroker(self._jars, self._clock)
            await self._broker.start()
            self._lanes = [Lane(self._broker, number) for number in range(self._count)]
            await start(self._lanes)
        return self._broker

    async def _closed(self) -> None:
        for lane in self._lanes:
            lane.close()
        if self._broker is not None:
            self._broker.close()
        if self._clock is not None:
            self._clock.close()
        mine = asyncio.current_task()
        for task in asyncio.all_tasks():
            if task is not mine:
                task.cancel()
        await asyncio.sleep(MOMENT)

    # -----------------------------------------------------------------------------------------------------------------
    # Playing

    async def _play(self, cases: Sequence[BrokerCase], watch: Watch) -> None:
        broker = await self._started()
        rows = [ends_of(case.path) for case in cases]
        row = in_one_row(rows)
        begin: defaultdict[int, deque[int]] = defaultdict(deque)
        for number in apart(len(rows), self._count):
            begin[begins_at(row, rows[number])].append(number)
        left: list[list[Run]] = [[] for _ in self._lanes]
        known: defaultdict[Opening, Known] = defaultdict(unknown)  # of this play: who plays again looks again
        for at in range(len(row) + 1):
            fresh = begin[at]
            again = await self._side_by_side([self._again(runs, watch) for runs in left])
            new = await self._side_by_side([self._fresh(lane, fresh, cases, known, watch) for lane in self._lanes])
            left = [[*some, *more] for some, more in zip(again, new, strict=True)]
            if any(left):
                await self._end_process(broker, [run for runs in left for run in runs])

    async def _side_by_side(self, work: Sequence[Coroutine[Any, Any, list[Run]]]) -> list[list[Run]]:
        check = self._broker.lag_check if self._broker is not None else None
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one if check is None else check.play(one)) for one in work]
        return [task.result() for task in tasks]

    async def _fresh(
        self, lane: Lane, waiting: deque[int], cases: Sequence[BrokerCase], known: Mapping[Opening, Known], watch: Watch
    ) -> list[Run]:
        """Play what waits, one after the other; those that have reached an end of the process are returned."""
        reached = []
        while waiting:
            number = waiting.popleft()
            await lane.rest()
            opening = cases[number].opening
            beginning = unknown() if self._looks_always else known[opening]
            run = Run(number, cases[number], Partition(lane, opening), beginning)
            self._last[run.case] = run.partition.topic.name
            if watch(number, 0, run.partition.opening()) and await self._played(run, watch):
                reached.append(run)
            else:
                await run.partition.close()
        return reached

    async def _again(self, runs: list[Run], watch: Watch) -> list[Run]:
        """Go on after an end of the process, with the metadata that is read first."""
        reached = []
        for run in runs:
            goes_on = True
            while goes_on and run.case.path[run.at][0] in ENDS:
                run.next()
                goes_on = watch(run.number, run.at, UNREAD)
            if goes_on:
                await run.partition.follows(run.next()[1])
                goes_on = watch(run.number, run.at, await run.partition.report()) and await self._played(run, watch)
            if goes_on:
                reached.append(run)
            else:
                await run.partition.close()
        return reached

    async def _played(self, run: Run, watch: Watch) -> bool:
        """Play up to the next end of the process; whether there is one."""
        while run.at < len(run.case.path):
            if run.case.path[run.at][0] in ENDS:
                return True
            seen = await run.taken(run.next())
            if not watch(run.number, run.at, seen):
                return False
        return False

    async def _end_process(self, broker: KafkaBroker, runs: Sequence[Run]) -> None:
        """End the process once, for all of them; what it reads first when it is up again is each one's next metadata."""
        await broker.end(in_order=runs[0].case.path[runs[0].at][0] == STOP)
        for lane in self._lanes:
            lane.gone()
        names = {run.partition.topic.name: run for run in runs}
        high = {name: hw for name, run in names.items() if (hw := checkpointed(run.case.path, run.at)) is not None}
        write_checkpoint(broker.process.data, HIGH_WATERMARKS, high)
        write_checkpoint(broker.process.data, LOG_STARTS, {name: run.log_start for name, run in names.items()})
        for run in runs:
            run.partition.forget_process()
            image = next((step for step in run.case.path[run.at :] if step[0] not in ENDS), None)
            if image is not None:
                run.partition.write(*image[1:])
        await broker.restarted()
        for lane in self._lanes:
            await lane.up()

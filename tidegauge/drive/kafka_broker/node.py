"""An unmodified Kafka broker behind the contract: `KafkaNode(build_of("4.1.1"))`.

A case is a path of steps on a partition of its own. An end of the process is a step in which the broker stops or crashes,
and starts again. `watch` gets the number of a case, the number of a step (0: the opening) and the report after it, and
returns whether the case goes on. The lag check is the broker's check of its ISR, which runs only when every slot that plays
waits for it (lag_check.py); it is there where the clock of the process can be moved.

Rules of this file

1. Worker slots play paths side by side on one process. One event loop, in a thread of its own, serves all sockets: it runs
   also while nothing is played, or the broker would lose its controller.
2. A process ends with all its partitions. So each path is played up to its next end of the process; when all are there, the
   process ends once, and they go on:

       ends of the process        c           s           c
       a path with "cs"      ...--|--...------|--...
       a path with "sc"                  ...--|--...------|--...
       a path without ends                                     ...----

   `common_sequence` says which ends come, and a path begins where the ends that come are its own.
3. Paths without an end are played last. While a path waits for an end, its proposal is sent again in each AlterPartition
   request, which costs those that play.
4. Paths of a cover begin alike, and a broker does the same each time. The state is read on the first path with a beginning;
   on the others, all but the last step may reuse that report if what the broker says by itself is equal.
"""

import asyncio
import threading
from collections import defaultdict, deque
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from tidegauge.drive.broker.contract import (
    ACKS_ALL,
    BATCHES,
    CONSUMERS,
    CRASH,
    INCARNATIONS,
    REPORTED,
    STOP,
    BrokerCase,
    Opening,
)
from tidegauge.drive.broker.contract import LOG_STARTS as MOVING_STARTS
from tidegauge.drive.broker.steps import ENDS, STEPS
from tidegauge.drive.contract import Capabilities, CaseError, Report, Step, Watch, errors_of_case
from tidegauge.drive.contract import Path as Steps
from tidegauge.drive.kafka_broker.broker import HIGH_WATERMARKS, LOG_STARTS, KafkaBroker
from tidegauge.drive.kafka_broker.partition import UNREAD, DrivenPartition
from tidegauge.drive.kafka_broker.worker_slot import WorkerSlot, start_slots
from tidegauge.drive.kafka_process.builds import KafkaBuild
from tidegauge.drive.kafka_process.clock import MovedClock, make_clock
from tidegauge.drive.runner.player import PrefixTree
from tidegauge.drive.wire.compiler import WireError
from tidegauge.drive.wire.frames import end_tasks
from tidegauge.impl.releases import parse_release
from tidegauge.util.errors import TidegaugeError

T = TypeVar("T")

SLOTS = 64
"""So many that the process is busy while some of them wait."""

LAG = frozenset({"lag"})
"""The step that needs a process whose clocks can be moved."""

NOT_OFFERED = LAG | {"retention", "offsets_for_leader_epoch_response"}
"""Retention goes by a clock that nothing shows, and no release since 2.8 asks where an epoch ends."""

CAN = frozenset(STEPS) - NOT_OFFERED | {ACKS_ALL, BATCHES, CONSUMERS, INCARNATIONS, MOVING_STARTS}
"""Not `lose_tail` and `segments`: the operating system decides what a crash leaves of a log, and recovery reads what is in a
segment that the log start has not left."""


SENT_INCARNATIONS = (3, 5)
"""The first release whose fetches say which incarnation sends them (KIP-903)."""


def _first_error(errors: BaseExceptionGroup[Any]) -> BaseException:
    """Return the first exception that is no group, in a group that may have groups in it."""
    first = errors.exceptions[0]
    return _first_error(first) if isinstance(first, BaseExceptionGroup) else first


KnownReports = PrefixTree[Report | None]
"""A tree of the paths of a play: at each node the report after these steps, None where the state was not read yet."""


def no_reports() -> KnownReports:
    """Return a tree of paths without any report."""
    return PrefixTree(None, lambda *_: None)


class PathRun:
    """A path that is being played on a partition.

    `at`: how many of its steps were begun; `beginning`: the node of the tree of known reports after these; `log_start`: as
    reported last, 0 if it is not known.
    """

    def __init__(self, number: int, case: BrokerCase, partition: DrivenPartition, beginning: KnownReports) -> None:
        self.number, self.case, self.partition, self.beginning, self.at = number, case, partition, beginning, 0
        self.log_start = 0

    def next_step(self) -> Step:
        """Return the step that is to be taken, and count it as begun."""
        step = self.case.path[self.at]
        self.at, self.beginning = self.at + 1, self.beginning.after(step)
        return step

    async def take(self, step: Step) -> Report:
        """Take the step that `next_step` has returned, and return the report, which may be one of another path (rule 4)."""
        # The last step is always read: it is what the path of a cover is for.
        known = self.beginning.value if self.at < len(self.case.path) else None
        report = self.beginning.value = await self.partition.take(step, known)
        # An error in place of the log start is a difference, with which the path ends.
        self.log_start = start if isinstance(start := report.get("log_start"), int) else 0
        return report

    def is_at_end_of_process(self) -> bool:
        """Return whether the next step is an end of the process."""
        return self.at < len(self.case.path) and self.case.path[self.at][0] in ENDS


def spread(paths: int, slots: int) -> list[int]:
    """Return the numbers from 0 to `paths` in an order in which those that are played at a time are far apart.

    Neighbours begin alike, and one of them has to be read before the others can reuse its reports.
    """
    # The number of rounds, rounded up: in each every slot plays one path.
    stride = -(-paths // slots) or 1
    return [number for first in range(stride) for number in range(first, paths, stride)]


class KafkaNode:
    """One broker process with its controller and peers, started when it is first needed."""

    def __init__(self, build: KafkaBuild, slots: int = SLOTS, *, always_read: bool = False) -> None:
        """Prepare a broker of a build; nothing starts yet.

        `slots`: how many paths play at a time; `always_read`: read the state after every step, and reuse no report.
        """
        clock = make_clock()
        self._clock = clock if isinstance(clock, MovedClock) else None
        can = CAN if self._clock is None else CAN | LAG
        if parse_release(build.release) < SENT_INCARNATIONS:
            can -= {INCARNATIONS}
        self.capabilities = Capabilities(f"Kafka {build.version}", can, frozenset(REPORTED))
        self._build, self._slot_count, self._always_read = build, slots, always_read
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._broker: KafkaBroker | None = None
        self._slots: list[WorkerSlot] = []
        self._logged: dict[BrokerCase, tuple[str, int]] = {}
        """By case, for the time it was played last: the name of its topic, and how long the log was after its last step."""

    def __enter__(self) -> "KafkaNode":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the process and everything around it."""
        if self._thread.is_alive():
            self._run(self._close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def play(self, cases: Sequence[BrokerCase], watch: Watch) -> None:
        """Play cases side by side, and call `watch` with each report (see Node)."""
        self._run(self._play(cases, watch))

    def log_lines(self, case: BrokerCase) -> list[str]:
        """Return the lines that the broker has logged about the partition of a case when it was played last.

        Those after its last step are left out. Returns [] if it was not played, or nothing runs.
        """
        if case not in self._logged or self._broker is None:
            return []
        topic, size = self._logged[case]
        return self._broker.process.lines_about([topic], size)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop of the other thread, wait for it and return its result."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        finally:
            future.cancel()  # Ctrl-C interrupts this thread, not the loop's

    async def _start(self) -> KafkaBroker:
        """Return the broker; start it and the slots, unless they run."""
        if self._broker is None:
            self._broker = KafkaBroker(self._build, self._clock)
            await self._broker.start()
            self._slots = [WorkerSlot(self._broker, number) for number in range(self._slot_count)]
            await start_slots(self._slots)
        return self._broker

    async def _close(self) -> None:
        """Close all connections and end the processes."""
        for slot in self._slots:
            slot.close()
        if self._broker is not None:
            self._broker.close()
        if self._clock is not None:
            self._clock.close()
        await end_tasks()

    # -----------------------------------------------------------------------------------------------------------------
    # Playing

    async def _play(self, cases: Sequence[BrokerCase], watch: Watch) -> None:
        """Play paths side by side in slots. All slots pause before each end of the process, which they share (rule 2)."""
        broker = await self._start()
        ends = [ends_of(case.path) for case in cases]
        sequence = common_sequence(ends)
        # By position in the sequence of ends: the numbers of the cases that begin before that end.
        to_begin: defaultdict[int, deque[int]] = defaultdict(deque)
        for number in spread(len(ends), self._slot_count):
            to_begin[begins_at(sequence, ends[number])].append(number)
        # By slot: the paths that have come to an end of the process.
        paused: list[list[PathRun]] = [[] for _ in self._slots]
        # Reports are reused within one play only: a caller that plays a path again wants to know whether it comes again.
        known_reports: defaultdict[Opening, KnownReports] = defaultdict(no_reports)
        # Once before each end of the process, and once after all.
        for at in range(len(sequence) + 1):
            waiting = to_begin[at]
            resumed = await self._side_by_side([self._resume(runs, watch) for runs in paused])
            # All slots take the next path from the same queue.
            begun = await self._side_by_side(
                [self._begin(slot, waiting, cases, known_reports, watch) for slot in self._slots]
            )
            paused = [[*slot_resumed, *slot_begun] for slot_resumed, slot_begun in zip(resumed, begun, strict=True)]
            if any(paused):
                await self._end_process(broker, [run for runs in paused for run in runs])

    async def _side_by_side(self, work: Sequence[Coroutine[Any, Any, list[PathRun]]]) -> list[list[PathRun]]:
        """Run one coroutine for each slot together; return their results, the paths of each that have paused.

        If some of them fail, raise the first error: a CaseError if it names a case, else a WireError.
        """
        check = self._broker.lag_check if self._broker is not None else None
        # With a lag check each coroutine is counted by it as a slot that plays.
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(path_work if check is None else check.play(path_work)) for path_work in work]
        except* (TidegaugeError, OSError) as errors:
            # One is enough to say what happened: the others follow from it, or are the same on other paths.
            first = _first_error(errors)
            message = f"{first}{self._last_words()}"
            error = CaseError(first.number, message) if isinstance(first, CaseError) else WireError(message)
            raise error from errors
        return [task.result() for task in tasks]

    def _last_words(self) -> str:
        """Return the last lines that the process has written, with a heading, for an error message; "" if there are none."""
        words = "" if self._broker is None else self._broker.process.last_words()
        return f"\nits last words:\n{words}" if words else ""

    async def _begin(
        self,
        slot: WorkerSlot,
        waiting: deque[int],
        cases: Sequence[BrokerCase],
        known_reports: Mapping[Opening, KnownReports],
        watch: Watch,
    ) -> list[PathRun]:
        """Play paths in a slot one after the other; return those that have come to an end of the process.

        `waiting`: the numbers of the cases that may begin now, a queue that all slots share.
        """
        paused = []
        while waiting:
            number = waiting.popleft()
            await slot.rest()
            opening = cases[number].opening
            beginning = no_reports() if self._always_read else known_reports[opening]
            run = PathRun(number, cases[number], DrivenPartition(slot, opening), beginning)
            with errors_of_case(number):
                if self._hand_on(run, run.partition.opening(), watch) and await self._play_on(run, watch):
                    paused.append(run)
                else:
                    await run.partition.close()
        return paused

    async def _resume(self, runs: list[PathRun], watch: Watch) -> list[PathRun]:
        """Go on with the paths of a slot after an end of the process; return those that have come to the next."""
        paused = []
        for run in runs:
            goes_on = True
            # All ends of the process up to the next metadata were one (`ends_of`): nothing shows between them.
            while goes_on and run.is_at_end_of_process():
                run.next_step()
                goes_on = self._hand_on(run, UNREAD, watch)
            with errors_of_case(run.number):
                if goes_on:
                    # The next step is the metadata that the process has read first: it was written before the restart.
                    _, leader, *_ = run.next_step()
                    await run.partition.wait_until_fetched_from(leader)
                    goes_on = self._hand_on(run, await run.partition.report(), watch) and await self._play_on(run, watch)
                if goes_on:
                    paused.append(run)
                else:
                    await run.partition.close()
        return paused

    async def _play_on(self, run: PathRun, watch: Watch) -> bool:
        """Play a path up to its next end of the process; return whether there is one."""
        while run.at < len(run.case.path):
            if run.is_at_end_of_process():
                return True
            report = await run.take(run.next_step())
            if not self._hand_on(run, report, watch):
                return False
        return False

    def _hand_on(self, run: PathRun, report: Report, watch: Watch) -> bool:
        """Call `watch` with a report, and return whether the path goes on."""
        # What is logged later is about the deletion of the topic.
        if self._broker is not None:
            self._logged[run.case] = run.partition.topic.name, self._broker.process.log_size()
        return watch(run.number, run.at, report)

    async def _end_process(self, broker: KafkaBroker, runs: Sequence[PathRun]) -> None:
        """End the process once for all these paths, which wait for it, and start it again with each path's next metadata."""
        # All of them wait for the same kind of end (`common_sequence`), which is their next step.
        end, *_ = runs[0].case.path[runs[0].at]
        await broker.end(in_order=end == STOP)
        for slot in self._slots:
            slot.forget_process()
        # The checkpoints decide what the process knows when it is up again: the high watermark that the crash of the path
        # names, and the log start, which the process would write only once a minute.
        by_topic = {run.partition.topic.name: run for run in runs}
        high_watermarks = {topic: crash_checkpoint(run.case.path, run.at) for topic, run in by_topic.items()}
        write_checkpoint(
            broker.process.data, HIGH_WATERMARKS, {topic: hw for topic, hw in high_watermarks.items() if hw is not None}
        )
        write_checkpoint(broker.process.data, LOG_STARTS, {topic: run.log_start for topic, run in by_topic.items()})
        for run in runs:
            run.partition.forget_process()
            # After an end of the process the contract allows nothing but metadata.
            metadata = next((step for step in run.case.path[run.at :] if step[0] not in ENDS), None)
            if metadata is not None:
                run.partition.write_registration(*metadata[1:])
        await broker.restart()
        for slot in self._slots:
            await slot.connect()


# ---------------------------------------------------------------------------------------------------------------------
# Ends of the process, in a letter each: c(rash), s(top)


def ends_of(path: Steps) -> str:
    """Return the kinds of the ends of the process in a path, a letter each; several in a row count as the first."""
    kinds, previous = "", ""
    for name, *_ in path:
        # A process that has read no metadata has changed nothing on disk: to end it again changes the checkpoint at most.
        if name in ENDS and previous not in ENDS:
            kinds += name[0]
        previous = name
    return kinds


def common_sequence(sequences: Iterable[str]) -> str:
    """Return a short string that contains each of these strings of `ends_of`, so that paths share the ends of one process.

    Greedy, as for a shortest common superstring: the two that overlap most are joined first.
    """
    remaining = [ends for ends in dict.fromkeys(sequences) if ends]
    # One that is contained in another needs no place of its own.
    remaining = [ends for ends in remaining if not any(ends in other for other in remaining if other != ends)]
    while len(remaining) > 1:
        size, first, second = max(
            ((_overlap(first, second), first, second) for first in remaining for second in remaining if first != second),
            key=lambda candidate: candidate[0],
        )
        joined = first + second[size:]
        remaining = [ends for ends in remaining if ends not in joined] + [joined]
    return remaining[0] if remaining else ""


def begins_at(sequence: str, ends: str) -> int:
    """Return at which position of the common sequence a path with these ends begins; without ends after the last one."""
    return sequence.find(ends) if ends else len(sequence)


def _overlap(first: str, second: str) -> int:
    """Return the length of the longest suffix of the first that is a prefix of the second."""
    return next(size for size in range(min(len(first), len(second)), -1, -1) if first.endswith(second[:size]))


def crash_checkpoint(path: Steps, at: int) -> int | None:
    """Return the checkpointed high watermark after the ends of the process that follow each other from step `at` on.

    That is what the last crash among them names. None if there is none: the process has written it itself, when it stopped.
    """
    high_watermark = None
    for name, *arguments in path[at:]:
        if name not in ENDS:
            break
        # The arguments of a crash are the high watermark and the log end.
        high_watermark = arguments[0] if name == CRASH else high_watermark
    return high_watermark


def write_checkpoint(data: Path, name: str, offsets: Mapping[str, int]) -> None:
    """Set the offsets of some topics in a checkpoint file, and leave those of others as they are.

    `data`: the log directory of the process; `name`: of the file; `offsets`: by topic, of its partition 0.
    """
    # OffsetCheckpointFile: a line with the version 0, one with the count, then a line "topic partition offset" for each.
    place = data / name
    lines = place.read_text(encoding="utf-8").splitlines()[2:] if place.is_file() else []
    entries = {topic: int(offset) for topic, partition, offset in map(str.split, lines) if partition == "0"}
    entries |= offsets
    body = "".join(f"{topic} 0 {offset}\n" for topic, offset in entries.items())
    place.write_text(f"0\n{len(entries)}\n{body}", encoding="utf-8")

"""An unmodified KRaft controller behind the contract: `ControllerNode(build_of("4.3.1"))`.

Rules of this file

1. Paths are played one after the other on one process, each with brokers and topics that nobody had before. What they share
   is put as the path's opening has it: the cluster's configuration, and whether ELR is on.
2. A process that cannot be put so, or that a path did not leave quiet, is ended, and another one is started.
3. Where the controller resigns (an exception in a request), the step ends when it leads again.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

from tidegauge.drive.contract import Report, Step, Watch
from tidegauge.drive.controller import requests
from tidegauge.drive.controller.contract import ClusterOpening, ControllerCase
from tidegauge.drive.controller.metadata_image import Incarnations, state_report
from tidegauge.drive.controller.path_cluster import Lane
from tidegauge.drive.controller.process import ControllerProcess
from tidegauge.drive.controller.reference import RESIGNS
from tidegauge.drive.controller.state import empty
from tidegauge.drive.controller.steps import FEATURES, controller_capabilities
from tidegauge.drive.kafka_process.builds import KafkaBuild
from tidegauge.drive.kafka_process.clock import RealClock
from tidegauge.impl.controller.features import ELR_VERSION, METADATA_VERSION
from tidegauge.impl.controller.records import BROKER
from tidegauge.impl.controller.replication_control import MIN_IN_SYNC_REPLICAS, UNCLEAN_LEADER_ELECTION
from tidegauge.impl.errors import UNKNOWN_SERVER_ERROR
from tidegauge.impl.releases import RELEASE, profile_named
from tidegauge.impl.rules import NONE


class ControllerNode:
    """One controller process, started when it is first needed. It plays one case after the other."""

    def __init__(self, build: KafkaBuild) -> None:
        self.capabilities = controller_capabilities(f"Kafka {build.version} (controller)")
        self._profile, self._build = profile_named(f"{RELEASE}{build.release}"), build
        self._runner = asyncio.Runner()
        self._process: ControllerProcess | None = None
        self._holder: Lane | None = None
        self._lanes = 0
        self._logged: dict[ControllerCase, tuple[tuple[str, ...], int]] = {}
        """The words of its own with which a case was played last, and how much was logged after the last step of it."""

    def __enter__(self) -> "ControllerNode":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._end()
        self._runner.close()

    def opening(self, elr: int = 1, min_insync_replicas: int = 1) -> ClusterOpening:
        """Return the opening at the metadata.version that this release begins with; no ELR where it has none."""
        process = self._runner.run(self._started())
        has_elr = any(feature["name"] == ELR_VERSION and feature["maxSupportedVersion"] > 0 for feature in process.supported)
        return ClusterOpening(process.levels[METADATA_VERSION], elr if has_elr else 0, min_insync_replicas)

    @property
    def time(self) -> str:
        """Which clock its process has."""
        return "ours" if self._has_moved_clock else "the machine's"

    @property
    def _has_moved_clock(self) -> bool:
        return self._process is not None and not isinstance(self._process.clock, RealClock)

    def possible(self, cases: Iterable[ControllerCase]) -> tuple[ControllerCase, ...]:
        """Return the cases that its process can be given."""
        # In the machine's time no session is over without being noticed (lane.py).
        return tuple(
            case for case in cases if self._has_moved_clock or all(name != "register_late" for name, *_ in case.path)
        )

    def play(self, cases: Sequence[ControllerCase], watch: Watch) -> None:
        """Play the cases, one after the other."""
        self._runner.run(self._play(cases, watch))

    def log_lines(self, case: ControllerCase) -> list[str]:
        """Return what the controller has logged about the topics with which a case was played last, up to its last step."""
        if case not in self._logged or self._process is None:
            return []
        return self._process.process.lines_about(*self._logged[case])

    async def _play(self, cases: Sequence[ControllerCase], watch: Watch) -> None:
        """Play paths one after the other, each on topics and brokers of its own (a lane)."""
        for number, case in enumerate(cases):
            lane = await self._opened(case.opening)
            # The number of the lane is in the names of its topics (`Names.full`), with one of these after it.
            words = (f".{self._lanes}-", f".{self._lanes} ", f".{self._lanes},")
            played = PlayedPath(lane)
            goes_on = watch(number, 0, await played.report(None))
            for at, step in enumerate(case.path, start=1):
                if not goes_on:
                    break
                seen = await played.given(step)
                # What is logged later is about the deletion of the topics.
                self._logged[case] = words, lane.process.process.log_size()
                goes_on = watch(number, at, seen)
            await lane.close()
            if not lane.is_quiet:
                self._end()

    async def _opened(self, opening: ClusterOpening) -> Lane:
        # Rule 2: first on the process that there is, then on a fresh one.
        for fresh in (False, True):
            if fresh:
                self._end()
            process = await self._started()
            self._lanes += 1
            lane = Lane(process, self._lanes, empty(opening, self._profile), self._holder)
            if await _put(process, opening):
                await process.read()
                return lane
        raise requests.refused(f"a cluster like {opening}", "another")

    async def _started(self) -> ControllerProcess:
        if self._process is None:
            self._process, self._lanes = ControllerProcess(self._build), 0
            await self._process.start()
            opening = ClusterOpening(self._process.levels[METADATA_VERSION], 0)
            self._holder = Lane(self._process, 0, empty(opening, self._profile))
            await self._holder.hold()
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process, self._holder = None, None


async def _put(process: ControllerProcess, opening: ClusterOpening) -> bool:
    """Give the cluster's configuration and ELR the values of an opening; return whether the controller did."""
    if process.levels[METADATA_VERSION] != opening.metadata_version:
        return False
    cluster = {MIN_IN_SYNC_REPLICAS: str(opening.min_insync_replicas), UNCLEAN_LEADER_ELECTION: None}
    responses = [await process.call(*requests.configure(BROKER, "", key, value)) for key, value in cluster.items()]
    if process.levels.get(ELR_VERSION, 0) != opening.elr:
        responses.append(await process.call(*requests.update_feature(ELR_VERSION, opening.elr, upgrade=opening.elr > 0)))
    process.levels[ELR_VERSION] = opening.elr
    return all(requests.error_of(response) == NONE for response in responses)


class PlayedPath:
    """A path under way on a lane."""

    def __init__(self, lane: Lane) -> None:
        self._lane, self._numbers = lane, Incarnations()

    async def report(self, result: Mapping[str, Any] | None) -> Report:
        """Return what is seen after a step."""
        await self._lane.read()
        return {"result": result, **state_report(self._lane.image.control, self._numbers)}

    async def given(self, step: Step) -> Report:
        """Take one step, and return what is seen then."""
        lane, (name, *arguments) = self._lane, step
        epoch = lane.process.observer.epoch
        result: dict[str, Any] | None = await requests.STEPS[name](lane, self._numbers, *arguments)
        error = None if result is None else result["error"]
        if name == "update_feature" and error == NONE:
            lane.process.levels[FEATURES[arguments[0]]] = arguments[1]
        if error not in {None, NONE, UNKNOWN_SERVER_ERROR}:
            await lane.process.barrier()
        if name in RESIGNS and error == UNKNOWN_SERVER_ERROR:
            await lane.process.leads_again(epoch)
            await lane.read()
            lane.resigned()
        return await self.report(result)

"""An unmodified KRaft controller behind the contract: `ControllerNode(build_of("4.3.1"))`.

The controller is a process of Kafka; the brokers and clients of a path are played here. Each path has a lane: a cluster of
its own in the process, with broker ids and names of topics that no other path has (path_cluster.py). A function of a step
gets the lane, the ordinals of broker epochs and the step's arguments; it sends the step's request, and returns the response
as it is reported. A `lag` makes a request carry a broker epoch that is so much lower than the broker's own. `lane.names` has
the names in the process for brokers and topics as the path names them, `lane.epoch` a broker's epoch there, `lane.image` the
state that the metadata log makes; `lane.process.call` sends a request and returns the body of its response.

Rules of this file

1. Paths are played one after the other on one process, each with brokers and topics that nobody had before. What they share
   is put as the path's opening has it: the cluster's configuration, and whether ELR is on.
2. A process that cannot be put so, or that a path did not leave quiet, is ended, and another one is started.
3. Where the controller resigns (an exception in a request), the step ends when it leads again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any
from uuid import UUID, uuid4

from tidegauge.drive.contract import Report, Step, Watch, errors_of_case
from tidegauge.drive.controller.contract import ClusterOpening, ControllerCase, directory, empty
from tidegauge.drive.controller.metadata_image import TYPES, Incarnations, state_report
from tidegauge.drive.controller.path_cluster import Lane
from tidegauge.drive.controller.process import ControllerProcess
from tidegauge.drive.controller.reference import RESIGNS
from tidegauge.drive.controller.steps import FEATURES, controller_capabilities
from tidegauge.drive.kafka_process.builds import KafkaBuild
from tidegauge.drive.kafka_process.clock import RealClock
from tidegauge.drive.wire.compiler import WireError, WireMessage
from tidegauge.impl.controller.features import ELR_VERSION, METADATA_VERSION
from tidegauge.impl.controller.records import BROKER
from tidegauge.impl.controller.replication_control import MIN_IN_SYNC_REPLICAS, UNCLEAN_LEADER_ELECTION
from tidegauge.impl.errors import UNKNOWN_SERVER_ERROR
from tidegauge.impl.releases import RELEASE, profile_named
from tidegauge.impl.rules import NONE, UNDEFINED


class ControllerNode:
    """One controller process, started when it is first needed. It plays one case after the other."""

    def __init__(self, build: KafkaBuild) -> None:
        """Prepare a controller of a build; nothing starts yet."""
        self.capabilities = controller_capabilities(f"Kafka {build.version} (controller)")
        self._profile, self._build = profile_named(f"{RELEASE}{build.release}"), build
        self._runner = asyncio.Runner()
        self._process: ControllerProcess | None = None
        self._holder: Lane | None = None
        self._lanes = 0
        self._logged: dict[ControllerCase, tuple[tuple[str, ...], int]] = {}
        """By case, for the time it was played last: words that only lines about its topics have, and how long the log was
        after its last step."""

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
        """Whose the clock of its process is, in words: "ours", which the suite moves, or "the machine's"."""
        return "ours" if self._has_moved_clock else "the machine's"

    @property
    def _has_moved_clock(self) -> bool:
        """Whether the process has started with a clock that the suite moves."""
        return self._process is not None and not isinstance(self._process.clock, RealClock)

    def possible(self, cases: Iterable[ControllerCase]) -> tuple[ControllerCase, ...]:
        """Return the cases that its process can be given: with the machine's clock those without "register_late"."""
        # In the machine's time no session is over without being noticed (path_cluster.Lane).
        return tuple(
            case for case in cases if self._has_moved_clock or all(name != "register_late" for name, *_ in case.path)
        )

    def play(self, cases: Sequence[ControllerCase], watch: Watch) -> None:
        """Play the cases, one after the other."""
        self._runner.run(self._play(cases, watch))

    def log_lines(self, case: ControllerCase) -> list[str]:
        """Return the lines that the controller has logged about the topics of a case when it was played last.

        Those after its last step are left out. Returns [] if it was not played on a process that still runs.
        """
        if case not in self._logged or self._process is None:
            return []
        return self._process.process.lines_about(*self._logged[case])

    async def _play(self, cases: Sequence[ControllerCase], watch: Watch) -> None:
        """Play cases one after the other; an error names the case by its number."""
        for number, case in enumerate(cases):
            with errors_of_case(number):
                await self._play_one(number, case, watch)

    async def _play_one(self, number: int, case: ControllerCase, watch: Watch) -> None:
        """Play a case on a lane of its own until `watch`, which gets the report after each step, returns False."""
        lane = await self._open_lane(case.opening)
        # The number of the lane is in the names of its topics (`Names.full`), with one of these after it.
        words = (f".{self._lanes}-", f".{self._lanes} ", f".{self._lanes},")
        played = PlayedPath(lane)
        goes_on = watch(number, 0, await played.report(None))
        for at, step in enumerate(case.path, start=1):
            if not goes_on:
                break
            report = await played.take(step)
            # What is logged later is about the deletion of the topics.
            self._logged[case] = words, lane.process.process.log_size()
            goes_on = watch(number, at, report)
        await lane.close()
        # Rule 2: a broker or a topic that acts on would disturb the next path.
        if not lane.is_quiet:
            self._end()

    async def _open_lane(self, opening: ClusterOpening) -> Lane:
        """Return a lane without brokers, on a process that is set up as an opening says. Raises WireError."""
        # Rule 2: first on the process that there is (or the first one, if there is none), then on a fresh one.
        for needs_fresh_process in (False, True):
            if needs_fresh_process:
                self._end()
            process = await self._started()
            self._lanes += 1
            lane = Lane(process, self._lanes, empty(opening, self._profile), self._holder)
            if await _set_up(process, opening):
                # What this has written into the metadata log is not read by the lane: it begins with that state.
                await process.read()
                return lane
        raise refused(f"a cluster like {opening}", "another")

    async def _started(self) -> ControllerProcess:
        """Return the controller's process; start it if there is none, and register the holder (path_cluster.py) on it."""
        if self._process is None:
            self._process, self._lanes = ControllerProcess(self._build), 0
            await self._process.start()
            # The holder has no topics, so that ELR makes no difference to it.
            opening = ClusterOpening(self._process.levels[METADATA_VERSION], elr=0)
            self._holder = Lane(self._process, 0, empty(opening, self._profile))
            await self._holder.hold()
        return self._process

    def _end(self) -> None:
        """End the process, if there is one; the next case starts another."""
        if self._process is not None:
            self._process.close()
            self._process, self._holder = None, None


async def _set_up(process: ControllerProcess, opening: ClusterOpening) -> bool:
    """Set the cluster's configuration and ELR to those of an opening; return whether the process then is as it says."""
    # An earlier path has changed the metadata.version: another process is needed (rule 2).
    if process.levels[METADATA_VERSION] != opening.metadata_version:
        return False
    # None deletes what an earlier path may have set.
    config = {MIN_IN_SYNC_REPLICAS: str(opening.min_insync_replicas), UNCLEAN_LEADER_ELECTION: None}
    responses = [await process.call(*configure(BROKER, "", key, value)) for key, value in config.items()]
    if process.levels.get(ELR_VERSION, 0) != opening.elr:
        responses.append(await process.call(*update_feature(ELR_VERSION, opening.elr, upgrade=opening.elr > 0)))
    process.levels[ELR_VERSION] = opening.elr
    return all(error_of(response) == NONE for response in responses)


class PlayedPath:
    """A path under way on a lane, with the ordinals that its broker epochs were given in reports."""

    def __init__(self, lane: Lane) -> None:
        self._lane, self._numbers = lane, Incarnations()

    async def report(self, result: Mapping[str, Any] | None) -> Report:
        """Return the report after a step: the response to its request, and the registrations that the metadata log has."""
        await self._lane.read()
        return {"result": result, **state_report(self._lane.image.control, self._numbers)}

    async def take(self, step: Step) -> Report:
        """Take one step, wait until all that it has done is in the metadata log, and return the report."""
        lane, (name, *arguments) = self._lane, step
        # The leader epoch of the controller's quorum before the step.
        epoch = lane.process.observer.epoch
        result: dict[str, Any] | None = await STEPS[name](lane, self._numbers, *arguments)
        # None: the step is no request.
        error = None if result is None else result["error"]
        # `_set_up` of the next path has to know the level.
        if name == "update_feature" and error == NONE:
            feature, level, _upgrade = arguments
            lane.process.levels[FEATURES[feature]] = level
        # A refusal writes no record. What else was due may not be committed yet: the barrier waits for that.
        if error not in {None, NONE, UNKNOWN_SERVER_ERROR}:
            await lane.process.barrier()
        # A request of RESIGNS at which the controller throws: it has resigned, and leads again in another epoch.
        if name in RESIGNS and error == UNKNOWN_SERVER_ERROR:
            await lane.process.leads_again(epoch)
            await lane.read()
            lane.resigned()
        return await self.report(result)


# Each step of the contract as a request to a controller, and what of its response is reported.


Result = dict[str, Any]
"""A response as it is reported: its error, and in some steps more fields."""
TIMEOUT_MS = 9000
SET, DELETE = 0, 1
UPGRADE, SAFE_DOWNGRADE = 1, 2
"""FeatureUpdate.UpgradeType."""


def configure(kind: str, name: str, key: str, value: str | None) -> tuple[str, WireMessage]:
    """Return name and body of an IncrementalAlterConfigs request of one key.

    `name`: that of the topic or broker in the process; a `value` of None deletes the key.
    """
    config = {"name": key, "configOperation": DELETE if value is None else SET, "value": value}
    resource = {"resourceType": TYPES[kind], "resourceName": name, "configs": [config]}
    return "IncrementalAlterConfigs", {"resources": [resource], "validateOnly": False}


def update_feature(name: str, level: int, *, upgrade: bool) -> tuple[str, WireMessage]:
    """Return name and body of an UpdateFeatures request that brings one feature to a level."""
    update = {"feature": name, "maxVersionLevel": level, "upgradeType": UPGRADE if upgrade else SAFE_DOWNGRADE}
    return "UpdateFeatures", {"timeoutMs": TIMEOUT_MS, "featureUpdates": [update]}


def error_of(response: WireMessage) -> int:
    """Return the error code of a response: its own, or that of the one part that was requested, however deep it lies."""
    if response.get("errorCode", NONE) != NONE:
        return int(response["errorCode"])
    # Every request here is about one topic, partition, resource or feature, so each list of parts has one.
    part = next((parts[0] for parts in response.values() if _are_parts(parts)), None)
    return NONE if part is None else error_of(part)


def _are_parts(value: Any) -> bool:
    """Return whether a field of a response is a list of parts (topics, partitions) that have error codes."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and _has_error_code(value[0])


def _has_error_code(part: WireMessage) -> bool:
    """Return whether a part of a response, or a part inside it, has an error code."""
    return "errorCode" in part or any(_are_parts(value) for value in part.values())


def refused(expected: str, seen: str) -> WireError:
    """Return the error for a controller that does not do what every controller does."""
    return WireError(f"the controller: expected {expected}; seen {seen}")


async def _register(lane: Lane, numbers: Incarnations, broker: int, new: bool, clean: bool, letters: str) -> Result:
    """Register a broker: as a `new` incarnation or the same, after a `clean` shutdown or not, with these directories."""
    directories = tuple(directory(broker, letter) for letter in letters)
    previous = lane.epoch(broker) if clean else UNDEFINED
    response = await lane.register(broker, new=new, previous=previous, directories=directories)
    result: Result = {"error": response["errorCode"]}
    return result if result["error"] else {**result, "incarnation": numbers.ordinal(broker, response["brokerEpoch"])}


async def _register_late(lane: Lane, numbers: Incarnations, broker: int, new: bool, clean: bool, letters: str) -> Result:
    """Register a broker once its session is over, and the controller has not noticed that."""
    await lane.session_lapses(broker)
    return await _register(lane, numbers, broker, new, clean, letters)


async def _heartbeat(
    lane: Lane, _: Incarnations, broker: int, lag: int, offset: int, fence: bool, shut_down: bool, offline: str
) -> Result:
    """Send a heartbeat. `offset`: of the metadata that the broker has read; `offline`: the letters of failed directories."""
    failed = tuple(directory(broker, letter) for letter in offline)
    response = await lane.heartbeat(broker, offset, lag=lag, fence=fence, shut_down=shut_down, offline=failed)
    return {
        "error": response["errorCode"],
        "caught_up": response["isCaughtUp"],
        "fenced": response["isFenced"],
        "should_shut_down": response["shouldShutDown"],
    }


async def _session_expires(lane: Lane, _: Incarnations, broker: int) -> None:
    """Let time pass until the broker's session is over, and the controller has fenced it for that. No request."""
    await lane.session_expires(broker)


async def _unregister(lane: Lane, _: Incarnations, broker: int) -> Result:
    """Unregister a broker."""
    response = await lane.process.call("UnregisterBroker", {"brokerId": lane.names.id_of(broker)})
    return {"error": response["errorCode"]}


async def _alter_partition(
    lane: Lane,
    _: Incarnations,
    broker: int,
    lag: int,
    topic: str,
    partition: int,
    leader_epoch: int,
    partition_epoch: int,
    isr: tuple[int, ...],
    recovering: bool,
) -> Result:
    """Send the proposal of an ISR by a broker. `recovering`: it recovers from an unclean election."""
    names = lane.names
    # Each member in its incarnation of now (KIP-903).
    members = [{"brokerId": names.id_of(member), "brokerEpoch": lane.epoch(member)} for member in isr]
    proposal = {
        "partitionIndex": partition,
        "leaderEpoch": leader_epoch,
        "partitionEpoch": partition_epoch,
        "leaderRecoveryState": int(recovering),
        "newIsrWithEpochs": members,
    }
    topics = [{"topicId": _topic_id(lane, topic), "partitions": [proposal]}]
    body = {"brokerId": names.id_of(broker), "brokerEpoch": lane.epoch(broker, lag), "topics": topics}
    response = await lane.process.call("AlterPartition", body)
    error = error_of(response)
    if error != NONE:
        return {"error": error}
    part = response["topics"][0]["partitions"][0]
    reported = {
        "leader": names.broker(part["leaderId"]),
        "leader_epoch": part["leaderEpoch"],
        "partition_epoch": part["partitionEpoch"],
        "isr": list(names.brokers(part["isr"])),
        "recovering": part["leaderRecoveryState"] == 1,
    }
    return {"error": error, "partition": reported}


async def _elect_leaders(lane: Lane, _: Incarnations, unclean: bool, topic: str, partition: int) -> Result:
    """Request the election of the preferred replica, or an unclean one."""
    topics = [{"topic": lane.names.full(topic), "partitions": [partition]}]
    # ElectionType: 0 is PREFERRED, 1 is UNCLEAN.
    body = {"electionType": int(unclean), "topicPartitions": topics, "timeoutMs": TIMEOUT_MS}
    return await _call_for_error(lane, "ElectLeaders", body)


async def _reassign(lane: Lane, _: Incarnations, topic: str, partition: int, replicas: tuple[int, ...] | None) -> Result:
    """Reassign a partition to these replicas; None cancels a reassignment."""
    ids = None if replicas is None else [lane.names.id_of(broker) for broker in replicas]
    topics = [{"name": lane.names.full(topic), "partitions": [{"partitionIndex": partition, "replicas": ids}]}]
    return await _call_for_error(lane, "AlterPartitionReassignments", {"timeoutMs": TIMEOUT_MS, "topics": topics})


async def _assign_directory(
    lane: Lane, _: Incarnations, broker: int, lag: int, topic: str, partition: int, letter: str
) -> Result:
    """Assign the broker's replica of a partition to one of its directories."""
    topics = [{"topicId": _topic_id(lane, topic), "partitions": [{"partitionIndex": partition}]}]
    directories = [{"id": lane.names.directory_id(directory(broker, letter)), "topics": topics}]
    body = {"brokerId": lane.names.id_of(broker), "brokerEpoch": lane.epoch(broker, lag), "directories": directories}
    return await _call_for_error(lane, "AssignReplicasToDirs", body)


async def _create_topic(
    lane: Lane, _: Incarnations, topic: str, assignment: tuple[tuple[int, ...], ...], configs: tuple[tuple[str, str], ...]
) -> Result:
    """Create a topic. `assignment`: the replicas of each of its partitions; `configs`: pairs of a key and a value."""
    creatable_topic = {
        "name": lane.names.full(topic),
        # -1: both follow from the assignments.
        "numPartitions": UNDEFINED,
        "replicationFactor": UNDEFINED,
        "assignments": [
            {"partitionIndex": number, "brokerIds": [lane.names.id_of(broker) for broker in replicas]}
            for number, replicas in enumerate(assignment)
        ],
        "configs": [{"name": key, "value": value} for key, value in configs],
    }
    return await _call_for_error(lane, "CreateTopics", {"topics": [creatable_topic], "timeoutMs": TIMEOUT_MS})


async def _delete_topic(lane: Lane, _: Incarnations, topic: str) -> Result:
    """Delete a topic by its id; if it does not exist, by an id that no topic has."""
    topic_id = {"name": None, "topicId": _topic_id(lane, topic)}
    return await _call_for_error(lane, "DeleteTopics", {"topics": [topic_id], "timeoutMs": TIMEOUT_MS})


async def _configure(lane: Lane, _: Incarnations, kind: str, name: str, key: str, value: str | None) -> Result:
    """Set one key of a topic or broker (`kind`) or, with a `value` of None, delete it; the broker "" is the cluster."""
    return await _call_for_error(lane, *configure(kind, lane.names.resource(kind, name), key, value))


async def _update_feature(lane: Lane, _: Incarnations, name: str, level: int, upgrade: bool) -> Result:
    """Upgrade a feature (`name`: one of FEATURES) to a level, or downgrade it safely."""
    return await _call_for_error(lane, *update_feature(FEATURES[name], level, upgrade=upgrade))


async def _call_for_error(lane: Lane, name: str, body: WireMessage) -> Result:
    """Send a request of which nothing but the error is reported."""
    return {"error": error_of(await lane.process.call(name, body))}


def _topic_id(lane: Lane, topic: str) -> UUID:
    """Return the id of a topic; for one that does not exist an id that no topic has."""
    return lane.image.topic_ids.get(topic) or uuid4()


STEPS: Mapping[str, Callable[..., Awaitable[Result | None]]] = {
    "register": _register,
    "register_late": _register_late,
    "heartbeat": _heartbeat,
    "session_expires": _session_expires,
    "unregister": _unregister,
    "alter_partition": _alter_partition,
    "elect_leaders": _elect_leaders,
    "reassign": _reassign,
    "assign_directory": _assign_directory,
    "create_topic": _create_topic,
    "delete_topic": _delete_topic,
    "configure": _configure,
    "update_feature": _update_feature,
}

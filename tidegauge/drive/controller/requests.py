"""Each step of the contract as a request to a controller, and what of its response is reported."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from uuid import UUID, uuid4

from tidegauge.drive.controller.contract import directory
from tidegauge.drive.controller.metadata_image import TYPES, Incarnations
from tidegauge.drive.controller.path_cluster import Lane
from tidegauge.drive.controller.steps import FEATURES
from tidegauge.drive.wire.compiler import WireError, WireMessage
from tidegauge.impl.rules import NONE, UNDEFINED

Result = dict[str, Any]
TIMEOUT_MS = 9000
SET, DELETE = 0, 1
UPGRADE, SAFE_DOWNGRADE = 1, 2
"""FeatureUpdate.UpgradeType."""


def configure(kind: str, name: str, key: str, value: str | None) -> tuple[str, WireMessage]:
    """Make an IncrementalAlterConfigs request of one key. `name`: the resource's in the process; value None deletes."""
    config = {"name": key, "configOperation": DELETE if value is None else SET, "value": value}
    resource = {"resourceType": TYPES[kind], "resourceName": name, "configs": [config]}
    return "IncrementalAlterConfigs", {"resources": [resource], "validateOnly": False}


def update_feature(name: str, level: int, *, upgrade: bool) -> tuple[str, WireMessage]:
    """Make an UpdateFeatures request of one feature."""
    update = {"feature": name, "maxVersionLevel": level, "upgradeType": UPGRADE if upgrade else SAFE_DOWNGRADE}
    return "UpdateFeatures", {"timeoutMs": TIMEOUT_MS, "featureUpdates": [update]}


def error_of(response: WireMessage) -> int:
    """Return the error of a response: of the whole, or of the one part that was requested, however deep it lies."""
    if response.get("errorCode", NONE) != NONE:
        return int(response["errorCode"])
    # Every request here is about one topic, partition, resource or feature, so each list of parts has one.
    inner = next((parts[0] for parts in response.values() if _are_parts(parts)), None)
    return NONE if inner is None else error_of(inner)


def _are_parts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and _has_error(value[0])


def _has_error(part: WireMessage) -> bool:
    return "errorCode" in part or any(_are_parts(value) for value in part.values())


def refused(expected: str, seen: str) -> WireError:
    """Make the error for a controller that does not do what every controller does."""
    return WireError(f"the controller: expected {expected}; seen {seen}")


async def _register(lane: Lane, numbers: Incarnations, broker: int, new: bool, clean: bool, letters: str) -> Result:
    directories = tuple(directory(broker, letter) for letter in letters)
    previous = lane.epoch(broker) if clean else UNDEFINED
    response = await lane.register(broker, new=new, previous=previous, directories=directories)
    result: Result = {"error": response["errorCode"]}
    return result if result["error"] else {**result, "incarnation": numbers.ordinal(broker, response["brokerEpoch"])}


async def _register_late(lane: Lane, numbers: Incarnations, broker: int, new: bool, clean: bool, letters: str) -> Result:
    await lane.session_lapses(broker)
    return await _register(lane, numbers, broker, new, clean, letters)


async def _heartbeat(
    lane: Lane, _: Incarnations, broker: int, lag: int, offset: int, fence: bool, shut_down: bool, offline: str
) -> Result:
    failed = tuple(directory(broker, letter) for letter in offline)
    response = await lane.heartbeat(broker, offset, lag=lag, fence=fence, shut_down=shut_down, offline=failed)
    return {
        "error": response["errorCode"],
        "caught_up": response["isCaughtUp"],
        "fenced": response["isFenced"],
        "should_shut_down": response["shouldShutDown"],
    }


async def _session_expires(lane: Lane, _: Incarnations, broker: int) -> None:
    await lane.session_expires(broker)


async def _unregister(lane: Lane, _: Incarnations, broker: int) -> Result:
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
    """Send the proposal of an ISR. `lag`: its broker epoch is so much too low."""
    names = lane.names
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
    topics = [{"topic": lane.names.full(topic), "partitions": [partition]}]
    return await _by_error(
        lane, "ElectLeaders", {"electionType": int(unclean), "topicPartitions": topics, "timeoutMs": TIMEOUT_MS}
    )


async def _reassign(lane: Lane, _: Incarnations, topic: str, partition: int, replicas: tuple[int, ...] | None) -> Result:
    ids = None if replicas is None else [lane.names.id_of(broker) for broker in replicas]
    topics = [{"name": lane.names.full(topic), "partitions": [{"partitionIndex": partition, "replicas": ids}]}]
    return await _by_error(lane, "AlterPartitionReassignments", {"timeoutMs": TIMEOUT_MS, "topics": topics})


async def _assign_directory(
    lane: Lane, _: Incarnations, broker: int, lag: int, topic: str, partition: int, letter: str
) -> Result:
    topics = [{"topicId": _topic_id(lane, topic), "partitions": [{"partitionIndex": partition}]}]
    assigned = [{"id": lane.names.directory_id(directory(broker, letter)), "topics": topics}]
    body = {"brokerId": lane.names.id_of(broker), "brokerEpoch": lane.epoch(broker, lag), "directories": assigned}
    return await _by_error(lane, "AssignReplicasToDirs", body)


async def _create_topic(
    lane: Lane,
    _: Incarnations,
    topic: str,
    assignment: tuple[tuple[int, ...], ...],
    configs: tuple[tuple[str, str], ...],
) -> Result:
    creatable_topic = {
        "name": lane.names.full(topic),
        "numPartitions": UNDEFINED,
        "replicationFactor": UNDEFINED,
        "assignments": [
            {"partitionIndex": number, "brokerIds": [lane.names.id_of(broker) for broker in replicas]}
            for number, replicas in enumerate(assignment)
        ],
        "configs": [{"name": key, "value": value} for key, value in configs],
    }
    return await _by_error(lane, "CreateTopics", {"topics": [creatable_topic], "timeoutMs": TIMEOUT_MS})


async def _delete_topic(lane: Lane, _: Incarnations, topic: str) -> Result:
    topic_id = {"name": None, "topicId": _topic_id(lane, topic)}
    return await _by_error(lane, "DeleteTopics", {"topics": [topic_id], "timeoutMs": TIMEOUT_MS})


async def _configure(lane: Lane, _: Incarnations, kind: str, name: str, key: str, value: str | None) -> Result:
    return await _by_error(lane, *configure(kind, lane.names.resource(kind, name), key, value))


async def _update_feature(lane: Lane, _: Incarnations, name: str, level: int, upgrade: bool) -> Result:
    return await _by_error(lane, *update_feature(FEATURES[name], level, upgrade=upgrade))


async def _by_error(lane: Lane, name: str, body: WireMessage) -> Result:
    return {"error": error_of(await lane.process.call(name, body))}


def _topic_id(lane: Lane, topic: str) -> UUID:
    """Return the id of a topic."""
    # A request may name a topic that does not exist: it gets an id that no topic has.
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

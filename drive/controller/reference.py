"""The reference controller behind the contract: `impl.control`, and what its brokers know.

Rules of this file

1. A value: a step makes a new one.
2. Where Kafka's controller throws it gives up its leadership, and leads again (QuorumController#handleEventException):
   sessions start anew, in 4.0 those of fenced brokers as well (ClusterControlManager#activate).
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tidegauge.drive.contract import Report, Step
from tidegauge.drive.controller.contract import ClusterOpening, directory
from tidegauge.drive.controller.report import Incarnations, state_report
from tidegauge.impl.control import configurations, elections, quorum_controller, reassignments, topics
from tidegauge.impl.control import heartbeats as heartbeats_
from tidegauge.impl.control.alter_partition import AlterPartition, Proposal, alter_partition
from tidegauge.impl.control.configurations import ConfigChange
from tidegauge.impl.control.features import ELR_VERSION, METADATA_VERSION, Features, FeatureUpdate, profile_in_force
from tidegauge.impl.control.heartbeats import BrokerHeartbeat, Heartbeats
from tidegauge.impl.control.partition_change import Election
from tidegauge.impl.control.partition_registration import RecoveryState
from tidegauge.impl.control.quorum_controller import QuorumController
from tidegauge.impl.control.reassignments import DirectoryAssignment, Reassignment
from tidegauge.impl.control.records import ConfigResource, ControllerRecord, RegisterBrokerRecord
from tidegauge.impl.control.replication_control import CLUSTER, MIN_IN_SYNC_REPLICAS, ReplicationControl
from tidegauge.impl.error_codes import UNKNOWN_SERVER_ERROR
from tidegauge.impl.messages import AlterPartitionRequest
from tidegauge.impl.profiles import Profile
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.impl.table import Table
from tidegauge.impl.topic_partition import TopicPartition

FEATURES: Mapping[str, str] = {"metadata.version": METADATA_VERSION, "elr": ELR_VERSION}
RESIGNS = frozenset({"register", "register_late", "unregister", "heartbeat"})
"""Requests in which an exception is not caught: the controller resigns."""


class Held(NamedTuple):
    """The controller, the highest metadata.version it knows, and the incarnation each broker has last registered."""

    controller: QuorumController
    latest: int
    incarnations: Table[int, int] = Table()

    @property
    def control(self) -> ReplicationControl:
        """The state that the metadata log makes."""
        return self.controller.control


class _Given(NamedTuple):
    """What a request gave."""

    controller: QuorumController
    result: dict[str, Any] | None


def opened(opening: ClusterOpening, profile: Profile) -> Held:
    """A cluster without brokers."""
    return Held(QuorumController(empty(opening, profile), end=0), opening.metadata_version)


def empty(opening: ClusterOpening, profile: Profile) -> ReplicationControl:
    """The state that the metadata log makes of it."""
    features = Features(opening.metadata_version, opening.elr)
    own = Table([(MIN_IN_SYNC_REPLICAS, str(opening.min_insync_replicas))])
    return ReplicationControl(
        profile=profile_in_force(profile, features), features=features, configs=Table([(CLUSTER, own)])
    )


def report(held: Held, numbers: Incarnations, result: Mapping[str, Any] | None = None) -> Report:
    """What is seen of it."""
    return {"result": None if result is None else dict(result), **state_report(held.control, numbers)}


def step(held: Held, taken: Step, numbers: Incarnations) -> tuple[Held, Report]:
    """One step, and what is seen then."""
    name, *arguments = taken
    if name in {"register", "register_late"}:
        held = _lapsed(held, arguments[0]) if name == "register_late" else held
        held, result = _register(held, *arguments, numbers=numbers)
    else:
        given = _OF[name](held, *arguments)
        held, result = held._replace(controller=given.controller), given.result
    if name in RESIGNS and result is not None and result["error"] == UNKNOWN_SERVER_ERROR:
        held = held._replace(controller=resigned(held.controller))
    return held, report(held, numbers, result)


def resigned(controller: QuorumController) -> QuorumController:
    """It leads again: what it alone knew is gone."""
    fresh, sessions = Heartbeats(), set()
    for broker, registration in controller.control.brokers.items():
        fresh = heartbeats_.track_registration(fresh, broker, fenced=registration.fenced)
        if controller.control.profile.failover_renews_fenced or not registration.fenced:
            sessions.add((broker, registration.epoch))
    return controller._replace(heartbeats=fresh._replace(sessions=frozenset(sessions)))


def epoch_of(held: Held, broker: int, lag: int = 0) -> int:
    """The broker epoch that a broker has; UNDEFINED if it is not registered."""
    known = held.control.brokers.get(broker)
    return UNDEFINED if known is None else known.epoch - lag


def _lapsed(held: Held, broker: int) -> Held:
    """The session of a broker is over."""
    heartbeats = heartbeats_.expire_session(held.controller.heartbeats, (broker, epoch_of(held, broker)))
    return held._replace(controller=held.controller._replace(heartbeats=heartbeats))


def _register(
    held: Held, broker: int, new: bool, clean: bool, letters: str, *, numbers: Incarnations
) -> tuple[Held, dict[str, Any] | None]:
    before = held.incarnations.get(broker)
    incarnation = before if before is not None and not new else held.controller.end + 1
    directories = tuple(directory(broker, letter) for letter in letters)
    asked = RegisterBrokerRecord(broker, 0, incarnation, directories=directories)
    previous = epoch_of(held, broker) if clean else UNDEFINED
    controller, (_, error) = quorum_controller.register_broker(held.controller, asked, previous)
    held = held._replace(controller=controller)
    if error != NONE:
        return held, {"error": error}
    held = held._replace(incarnations=held.incarnations.put(broker, incarnation))
    return held, {"error": error, "incarnation": numbers.ordinal(broker, epoch_of(held, broker))}


def _heartbeat(
    held: Held, broker: int, lag: int, offset: int, want_fence: bool, want_shut_down: bool, offline: str
) -> _Given:
    failed = tuple(directory(broker, letter) for letter in offline)
    request = BrokerHeartbeat(broker, epoch_of(held, broker, lag), offset, want_fence, want_shut_down, failed)
    controller, (_, found) = quorum_controller.process_broker_heartbeat(held.controller, request)
    result = {
        "error": found.error,
        "caught_up": found.caught_up,
        "fenced": found.fenced,
        "should_shut_down": found.should_shut_down,
    }
    return _Given(controller, result)


def _session_expires(held: Held, broker: int) -> _Given:
    controller, _ = quorum_controller.fence_stale_broker(_lapsed(held, broker).controller, (broker, epoch_of(held, broker)))
    return _Given(controller, None)


def _unregister(held: Held, broker: int) -> _Given:
    controller, (_, error) = quorum_controller.unregister_broker(held.controller, broker)
    return _Given(controller, {"error": error})


def _alter_partition(
    held: Held,
    broker: int,
    lag: int,
    topic: str,
    partition: int,
    leader_epoch: int,
    partition_epoch: int,
    isr: tuple[int, ...],
    recovering: bool,
) -> _Given:
    tp = TopicPartition(topic, partition)
    epochs = tuple(epoch_of(held, member) for member in isr)
    recovery = RecoveryState(int(recovering))
    proposal = Proposal(tp, AlterPartitionRequest(broker, leader_epoch, partition_epoch, isr, epochs), recovery)
    records, altered = alter_partition(held.control, AlterPartition(broker, epoch_of(held, broker, lag), (proposal,)))
    if altered.error != NONE:
        return _written(held, records, altered.error)
    (response,) = altered.responses
    if response.error != NONE:
        return _written(held, records, response.error)
    said = {
        "leader": broker,
        "leader_epoch": response.leader_epoch,
        "partition_epoch": response.partition_epoch,
        "isr": list(response.isr),
        "recovering": recovering,
    }
    return _written(held, records, NONE, partition=said)


def _elect_leaders(held: Held, unclean: bool, topic: str, partition: int) -> _Given:
    election = Election.UNCLEAN if unclean else Election.PREFERRED
    return _written(held, *elections.elect_leader(held.control, TopicPartition(topic, partition), election))


def _reassign(held: Held, topic: str, partition: int, replicas: tuple[int, ...] | None) -> _Given:
    asked = Reassignment(TopicPartition(topic, partition), replicas)
    records, errors = reassignments.alter_partition_reassignments(held.control, (asked,))
    return _written(held, records, errors[0][1])


def _assign_directory(held: Held, broker: int, lag: int, topic: str, partition: int, letter: str) -> _Given:
    asked = DirectoryAssignment(
        broker, epoch_of(held, broker, lag), directory(broker, letter), TopicPartition(topic, partition)
    )
    return _written(held, *reassignments.assign_replicas_to_dirs(held.control, asked))


def _create_topic(
    held: Held, topic: str, assignment: tuple[tuple[int, ...], ...], configs: tuple[tuple[str, str], ...]
) -> _Given:
    return _written(held, *topics.create_topic(held.control, topic, assignment, dict(configs)))


def _delete_topic(held: Held, topic: str) -> _Given:
    return _written(held, *topics.delete_topic(held.control, topic))


def _configure(held: Held, kind: str, name: str, key: str, value: str | None) -> _Given:
    change = ConfigChange(ConfigResource(kind, name), key, value)
    controller, (_, error) = quorum_controller.incremental_alter_configs(held.controller, (change,))
    return _Given(controller, {"error": error})


def _update_feature(held: Held, name: str, level: int, upgrade: bool) -> _Given:
    update = FeatureUpdate(FEATURES[name], level, upgrade)
    return _written(held, *configurations.update_features(held.control, update, held.latest))


def _written(held: Held, records: tuple[ControllerRecord, ...], error: int, **more: Any) -> _Given:
    return _Given(quorum_controller.write_records(held.controller, records), {"error": error, **more})


_OF: Mapping[str, Callable[..., _Given]] = {
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

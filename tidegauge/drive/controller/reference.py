"""The reference of a controller's contract: `impl.controller`, and what its brokers know."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

from tidegauge.drive.contract import Report, Step
from tidegauge.drive.controller.contract import (
    REPORTED,
    STEPS,
    ClusterOpening,
    ControllerCase,
    controller_capabilities,
    directory,
    fields_that_differ,
    step_line,
)
from tidegauge.drive.controller.finding_paths import SHOWN_BY
from tidegauge.drive.controller.findings import FINDINGS, controller_findings
from tidegauge.drive.controller.metadata_image import Incarnations, state_report
from tidegauge.drive.runner.differences import Difference
from tidegauge.drive.runner.player import ReferenceNode, play
from tidegauge.drive.runner.reference import Finding, Reference, Suspect
from tidegauge.drive.runner.report import value_text
from tidegauge.impl.controller import brokers as heartbeats_
from tidegauge.impl.controller import configurations, quorum_controller, requests
from tidegauge.impl.controller.alter_partition import AlterPartition, Proposal, alter_partition
from tidegauge.impl.controller.brokers import BrokerHeartbeat, Heartbeats
from tidegauge.impl.controller.configurations import ConfigChange
from tidegauge.impl.controller.features import ELR_VERSION, METADATA_VERSION, Features, FeatureUpdate, profile_in_force
from tidegauge.impl.controller.partition_change import Election
from tidegauge.impl.controller.partition_registration import RecoveryState
from tidegauge.impl.controller.quorum_controller import QuorumController
from tidegauge.impl.controller.records import ConfigResource, ControllerRecord, RegisterBrokerRecord
from tidegauge.impl.controller.replication_control import CLUSTER, MIN_IN_SYNC_REPLICAS, ReplicationControl
from tidegauge.impl.controller.requests import DirectoryAssignment, Reassignment
from tidegauge.impl.errors import UNKNOWN_SERVER_ERROR
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import AlterPartitionRequest
from tidegauge.impl.profiles import Profile
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.impl.topic_partition import TopicPartition

FEATURES: Mapping[str, str] = {"metadata.version": METADATA_VERSION, "elr": ELR_VERSION}
RESIGNS = frozenset({"register", "register_late", "unregister", "heartbeat"})
"""Requests in which an exception is not caught: the controller resigns."""


class ReferenceController(NamedTuple):
    """The controller, the highest metadata.version it knows, and the incarnation each broker has last registered."""

    controller: QuorumController
    latest: int
    incarnations: FrozenMap[int, int] = FrozenMap()

    @property
    def control(self) -> ReplicationControl:
        """The state that the metadata log makes."""
        return self.controller.control


class _RequestOutcome(NamedTuple):
    """The controller after a request, and the response; None for a step that is no request."""

    controller: QuorumController
    result: dict[str, Any] | None


def opened(opening: ClusterOpening, profile: Profile) -> ReferenceController:
    """Return a cluster without brokers."""
    return ReferenceController(QuorumController(empty(opening, profile), end=0), opening.metadata_version)


def empty(opening: ClusterOpening, profile: Profile) -> ReplicationControl:
    """Return the state that the metadata log makes of it."""
    features = Features(opening.metadata_version, opening.elr)
    own = FrozenMap([(MIN_IN_SYNC_REPLICAS, str(opening.min_insync_replicas))])
    return ReplicationControl(
        profile=profile_in_force(profile, features), features=features, configs=FrozenMap([(CLUSTER, own)])
    )


def report(state: ReferenceController, numbers: Incarnations, result: Mapping[str, Any] | None = None) -> Report:
    """Return what is reported of it."""
    return {"result": None if result is None else dict(result), **state_report(state.control, numbers)}


def take_step(state: ReferenceController, step: Step, numbers: Incarnations) -> tuple[ReferenceController, Report]:
    """Take one step, and return what is reported after it."""
    name, *arguments = step
    if name in {"register", "register_late"}:
        state = _lapsed(state, arguments[0]) if name == "register_late" else state
        state, result = _register(state, *arguments, numbers=numbers)
    else:
        outcome = _REQUESTS[name](state, *arguments)
        state, result = state._replace(controller=outcome.controller), outcome.result
    # Where Kafka's controller throws it gives up its leadership, and leads again (QuorumController#handleEventException).
    if name in RESIGNS and result is not None and result["error"] == UNKNOWN_SERVER_ERROR:
        state = state._replace(controller=resigned(state.controller))
    return state, report(state, numbers, result)


def resigned(controller: QuorumController) -> QuorumController:
    """Return the controller that leads again: what it alone knew is gone."""
    fresh, sessions = Heartbeats(), set()
    for broker, registration in controller.control.brokers.items():
        fresh = heartbeats_.track_registration(fresh, broker, fenced=registration.fenced)
        # Sessions start anew, in 4.0 those of fenced brokers as well (ClusterControlManager#activate).
        if controller.control.profile.failover_renews_fenced or not registration.fenced:
            sessions.add((broker, registration.epoch))
    return controller._replace(heartbeats=fresh._replace(sessions=frozenset(sessions)))


def epoch_of(state: ReferenceController, broker: int, lag: int = 0) -> int:
    """Return the broker epoch that a broker has; UNDEFINED if it is not registered."""
    registration = state.control.brokers.get(broker)
    return UNDEFINED if registration is None else registration.epoch - lag


def _lapsed(state: ReferenceController, broker: int) -> ReferenceController:
    """Return the state in which the session of a broker is over, and nobody has noticed."""
    heartbeats = heartbeats_.expire_session(state.controller.heartbeats, (broker, epoch_of(state, broker)))
    return state._replace(controller=state.controller._replace(heartbeats=heartbeats))


def _register(
    state: ReferenceController, broker: int, new: bool, clean: bool, letters: str, *, numbers: Incarnations
) -> tuple[ReferenceController, dict[str, Any] | None]:
    # An incarnation id is a random uuid; the offset that the record will have is as unique, and the same in each run.
    before = state.incarnations.get(broker)
    incarnation = before if before is not None and not new else state.controller.end + 1
    directories = tuple(directory(broker, letter) for letter in letters)
    record = RegisterBrokerRecord(broker, 0, incarnation, directories=directories)
    previous = epoch_of(state, broker) if clean else UNDEFINED
    controller, (_, error) = quorum_controller.register_broker(state.controller, record, previous)
    state = state._replace(controller=controller)
    if error != NONE:
        return state, {"error": error}
    state = state._replace(incarnations=state.incarnations.put(broker, incarnation))
    return state, {"error": error, "incarnation": numbers.ordinal(broker, epoch_of(state, broker))}


def _heartbeat(
    state: ReferenceController, broker: int, lag: int, offset: int, want_fence: bool, want_shut_down: bool, offline: str
) -> _RequestOutcome:
    failed = tuple(directory(broker, letter) for letter in offline)
    request = BrokerHeartbeat(broker, epoch_of(state, broker, lag), offset, want_fence, want_shut_down, failed)
    controller, (_, reply) = quorum_controller.process_broker_heartbeat(state.controller, request)
    result = {
        "error": reply.error,
        "caught_up": reply.caught_up,
        "fenced": reply.fenced,
        "should_shut_down": reply.should_shut_down,
    }
    return _RequestOutcome(controller, result)


def _session_expires(state: ReferenceController, broker: int) -> _RequestOutcome:
    controller, _ = quorum_controller.fence_stale_broker(
        _lapsed(state, broker).controller, (broker, epoch_of(state, broker))
    )
    return _RequestOutcome(controller, None)


def _unregister(state: ReferenceController, broker: int) -> _RequestOutcome:
    controller, (_, error) = quorum_controller.unregister_broker(state.controller, broker)
    return _RequestOutcome(controller, {"error": error})


def _alter_partition(
    state: ReferenceController,
    broker: int,
    lag: int,
    topic: str,
    partition: int,
    leader_epoch: int,
    partition_epoch: int,
    isr: tuple[int, ...],
    recovering: bool,
) -> _RequestOutcome:
    tp = TopicPartition(topic, partition)
    epochs = tuple(epoch_of(state, member) for member in isr)
    recovery = RecoveryState(int(recovering))
    proposal = Proposal(tp, AlterPartitionRequest(broker, leader_epoch, partition_epoch, isr, epochs), recovery)
    records, altered = alter_partition(state.control, AlterPartition(broker, epoch_of(state, broker, lag), (proposal,)))
    # A request may be refused as a whole, for its broker epoch; else each partition has its own error.
    if altered.error != NONE:
        return _written(state, records, altered.error)
    (response,) = altered.responses
    if response.error != NONE:
        return _written(state, records, response.error)
    reported = {
        "leader": broker,
        "leader_epoch": response.leader_epoch,
        "partition_epoch": response.partition_epoch,
        "isr": list(response.isr),
        "recovering": recovering,
    }
    return _written(state, records, NONE, partition=reported)


def _elect_leaders(state: ReferenceController, unclean: bool, topic: str, partition: int) -> _RequestOutcome:
    election = Election.UNCLEAN if unclean else Election.PREFERRED
    return _written(state, *requests.elect_leader(state.control, TopicPartition(topic, partition), election))


def _reassign(state: ReferenceController, topic: str, partition: int, replicas: tuple[int, ...] | None) -> _RequestOutcome:
    reassignment = Reassignment(TopicPartition(topic, partition), replicas)
    records, errors = requests.alter_partition_reassignments(state.control, (reassignment,))
    return _written(state, records, errors[0][1])


def _assign_directory(
    state: ReferenceController, broker: int, lag: int, topic: str, partition: int, letter: str
) -> _RequestOutcome:
    assignment = DirectoryAssignment(
        broker, epoch_of(state, broker, lag), directory(broker, letter), TopicPartition(topic, partition)
    )
    return _written(state, *requests.assign_replicas_to_dirs(state.control, assignment))


def _create_topic(
    state: ReferenceController, topic: str, assignment: tuple[tuple[int, ...], ...], configs: tuple[tuple[str, str], ...]
) -> _RequestOutcome:
    return _written(state, *requests.create_topic(state.control, topic, assignment, dict(configs)))


def _delete_topic(state: ReferenceController, topic: str) -> _RequestOutcome:
    return _written(state, *requests.delete_topic(state.control, topic))


def _configure(state: ReferenceController, kind: str, name: str, key: str, value: str | None) -> _RequestOutcome:
    change = ConfigChange(ConfigResource(kind, name), key, value)
    controller, (_, error) = quorum_controller.incremental_alter_configs(state.controller, (change,))
    return _RequestOutcome(controller, {"error": error})


def _update_feature(state: ReferenceController, name: str, level: int, upgrade: bool) -> _RequestOutcome:
    update = FeatureUpdate(FEATURES[name], level, upgrade)
    return _written(state, *configurations.update_features(state.control, update, state.latest))


def _written(state: ReferenceController, records: tuple[ControllerRecord, ...], error: int, **more: Any) -> _RequestOutcome:
    """Write what a manager has decided into the metadata log; `more`: fields of the result besides the error."""
    return _RequestOutcome(quorum_controller.write_records(state.controller, records), {"error": error, **more})


_REQUESTS: Mapping[str, Callable[..., _RequestOutcome]] = {
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


# ---------------------------------------------------------------------------------------------------------------------
# For the runner

ControllerState = tuple[ReferenceController, Incarnations]


@dataclass(frozen=True)
class ControllerReference(Reference[ControllerCase, ControllerState]):
    """The expected behaviour of a controller of a generation."""

    everything, called, unexplained = controller_capabilities("reference"), "controller", "no known switch"
    tries_pairs, plays_one_at_a_time = True, True

    profile: Profile

    def opened(self, opening: ClusterOpening) -> ControllerState:
        """See Reference."""
        return opened(opening, self.profile), Incarnations()

    def report(self, state: ControllerState) -> Report:
        """See Reference."""
        return report(*state)

    def take(self, state: ControllerState, step: Step) -> tuple[ControllerState, Report]:
        """See Reference."""
        controller, incarnations = state
        # Paths that begin alike share a state, and numbers that are given out on one of them are not the other's.
        incarnations = incarnations.copy()
        controller, seen = take_step(controller, step, incarnations)
        return (controller, incarnations), seen

    def differences(self, expected: Report, seen: Report, reported: frozenset[str]) -> tuple[str, ...]:
        """See Reference."""
        del reported
        return fields_that_differ(expected, seen)

    def suspects(self) -> Iterator[Suspect]:
        """See Reference: the switches of the profile that a controller reads, each with its other value."""
        for switch, finding in FINDINGS.items():
            value = not getattr(self.profile, switch)
            yield Suspect(finding, f"{switch}={'on' if value else 'off'}", {switch: value})

    def with_bugs(self, suspects: Iterable[Suspect]) -> Self:
        """See Reference."""
        return replace(
            self,
            profile=self.profile.switched({name: value for suspect in suspects for name, value in suspect.switches.items()}),
        )

    def findings(self) -> Sequence[Finding]:
        """See Reference."""
        return [*controller_findings().values()]

    def is_same_kind(self, difference: Difference[ControllerCase], again: Difference[ControllerCase]) -> bool:
        """See Reference."""
        return (difference.after, difference.fields) == (again.after, again.fields)

    def suspect_label(self, suspect: Suspect) -> str:
        """See Reference: a finding may have several switches."""
        return str(suspect)

    def opening_text(self, opening: ClusterOpening) -> str:
        """See Reference."""
        return (
            f"metadata.version {opening.metadata_version}, ELR {'on' if opening.elr else 'off'}, "
            f"min.insync.replicas {opening.min_insync_replicas}"
        )

    def step_text(self, step: Step) -> str:
        """See Reference."""
        return step_line(step)

    def step_sentence(self, step: Step) -> str | None:
        """See Reference."""
        return f"{step[0]}: {STEPS[step[0]].says}"

    def side_by_side(
        self, difference: Difference[ControllerCase], reported: frozenset[str], names: tuple[str, str]
    ) -> Iterator[str]:
        """See Reference: the innermost values that differ, for a report has whole registrations."""
        del reported
        rows = [
            (name, value_text(expected), value_text(seen))
            for field in REPORTED
            if field in difference.fields
            for name, expected, seen in _apart(field, difference.expected.get(field), difference.seen.get(field))
        ]
        name_width = max((len(name) for name, _, _ in rows), default=0)
        width = max(map(len, (names[0], *(expected for _, expected, _ in rows))))
        yield f"      {'':<{name_width}}  {names[0]:<{width}}  {names[1]}"
        for name, expected, seen in rows:
            yield f"    ! {name:<{name_width}}  {expected:<{width}}  {seen}"

    def notes(self, cases: Sequence[ControllerCase], differences: Sequence[Difference[ControllerCase]]) -> list[str]:
        """See Reference: the findings whose scenario was played as this profile has it."""
        differ = {difference.case for difference in differences}
        shown = [case.name for case in cases if case not in differ and shows_finding(case, self.profile)]
        return [f"shown: {', '.join(shown)}"] if shown else []


def reference(profile: Profile) -> ControllerReference:
    """Return what a controller of this generation is expected to do."""
    return ControllerReference(profile)


def shows_finding(case: ControllerCase, profile: Profile) -> bool:
    """Return whether a finding's path shows it with this profile: without its switch the reference does something else."""
    switch = SHOWN_BY.get(case.name)
    if switch is None or not getattr(profile, switch):
        return False
    repaired = reference(profile.switched({switch: False}))
    return bool(play(ReferenceNode(reference(profile)), [case], repaired).differences)


def _apart(name: str, expected: Any, seen: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the innermost values that differ, each with its place."""
    if expected == seen:
        return
    if not (isinstance(expected, Mapping) and isinstance(seen, Mapping)):
        yield name, expected, seen
        return
    for key in sorted({*expected, *seen}, key=str):
        yield from _apart(f"{name} {key}", expected.get(key), seen.get(key))

"""The contract of one KRaft controller under test: what its brokers and clients ask of it, step by step, and what is seen
of it after each step.

Rules of this file

1. One active controller; every broker and every client is the suite's. Brokers are named 1 to 8, in order of their ids.
2. A step is (name, arguments in the order of steps.STEPS). A broker epoch is never spelled: a broker names the one it has,
   or with `lag` an earlier one, which is not its own.
3. A metadata offset is ALL, beyond the end of the log, or UNDEFINED: nothing read. What lies between depends on what else is
   in the log.
4. A report is a JSON object; broker epochs are ordinals: 0 is the first incarnation that registered.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from tidegauge.drive.contract import DriveCase, Report
from tidegauge.drive.controller.metadata_image import Incarnations, state_report
from tidegauge.impl.controller import brokers as heartbeats_
from tidegauge.impl.controller.brokers import Heartbeats
from tidegauge.impl.controller.features import Features, profile_in_force
from tidegauge.impl.controller.quorum_controller import QuorumController
from tidegauge.impl.controller.replication_control import CLUSTER, MIN_IN_SYNC_REPLICAS, ReplicationControl
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.profiles import Profile
from tidegauge.impl.rules import UNDEFINED

VERSION = 1

ALL = 1 << 40
"""A metadata offset beyond the end of any log."""

BROKERS = 8
"""How many brokers a path may name."""


REPORTED: Mapping[str, str] = MappingProxyType(
    {
        "result": "the response to the request; null for a step that is no request",
        "partitions": "by name, what the metadata log makes of each partition's registration",
        "brokers": "by number, what it makes of each broker's registration",
        "features": "the finalized levels",
    }
)


class ClusterOpening(NamedTuple):
    """The cluster before the first step: its metadata.version, whether ELR is on, the cluster's min.insync.replicas."""

    metadata_version: int
    elr: int = 1
    min_insync_replicas: int = 1


ControllerCase = DriveCase[ClusterOpening]
"""A path to be played on a cluster of its own: steps from a cluster that has no broker yet."""


def directory(broker: int, letter: str) -> str:
    """Return the name of a log directory of a broker."""
    return f"{broker}{letter}"


def fields_that_differ(expected: Report, seen: Report) -> tuple[str, ...]:
    """Return the fields of the contract in which two reports differ, in its order."""
    return tuple(field for field in REPORTED if _comparable(expected, field) != _comparable(seen, field))


def _comparable(report: Report, field: str) -> Any:
    """Return what of a report's field is compared: all of it, but only the error of a refused request."""
    value = report.get(field)
    # A refused request has nothing but its error: what else a response of it contains is not compared.
    if field == "result" and isinstance(value, Mapping) and value.get("error"):
        return value["error"]
    return value


# ---------------------------------------------------------------------------------------------------------------------
# The cluster of the reference: its controller, and what the brokers of a path know.


class ReferenceController(NamedTuple):
    """The controller, the highest metadata.version that it knows, and by broker the incarnation that it registered last as.

    An incarnation is a number that stands for the random id of a broker's process.
    """

    controller: QuorumController
    latest: int
    incarnations: FrozenMap[int, int] = FrozenMap()

    @property
    def control(self) -> ReplicationControl:
        """The state that the metadata log makes."""
        return self.controller.control


def opened(opening: ClusterOpening, profile: Profile) -> ReferenceController:
    """Return a cluster without brokers, as an opening sets it up."""
    return ReferenceController(QuorumController(empty(opening, profile), end=0), opening.metadata_version)


def empty(opening: ClusterOpening, profile: Profile) -> ReplicationControl:
    """Return the state of the metadata log of a cluster without brokers: its features, and its configuration."""
    features = Features(opening.metadata_version, opening.elr)
    cluster_config = FrozenMap([(MIN_IN_SYNC_REPLICAS, str(opening.min_insync_replicas))])
    return ReplicationControl(
        profile=profile_in_force(profile, features), features=features, configs=FrozenMap([(CLUSTER, cluster_config)])
    )


def report(state: ReferenceController, numbers: Incarnations, result: Mapping[str, Any] | None = None) -> Report:
    """Return the report of a cluster after a step.

    `numbers` gives broker epochs their ordinals; `result` is the response to the step's request, None if it is none.
    """
    return {"result": None if result is None else dict(result), **state_report(state.control, numbers)}


def resigned(controller: QuorumController) -> QuorumController:
    """Return a controller that has resigned and leads again: what it knew beside the metadata log begins anew."""
    heartbeats, sessions = Heartbeats(), set()
    for broker, registration in controller.control.brokers.items():
        heartbeats = heartbeats_.track_registration(heartbeats, broker, fenced=registration.fenced)
        # Sessions start anew, in 4.0 those of fenced brokers as well (ClusterControlManager#activate).
        if controller.control.profile.failover_renews_fenced or not registration.fenced:
            sessions.add((broker, registration.epoch))
    return controller._replace(heartbeats=heartbeats._replace(sessions=frozenset(sessions)))


def epoch_of(state: ReferenceController, broker: int, lag: int = 0) -> int:
    """Return the broker epoch of a broker less `lag`; UNDEFINED if it is not registered."""
    registration = state.control.brokers.get(broker)
    return UNDEFINED if registration is None else registration.epoch - lag


def lapsed(state: ReferenceController, broker: int) -> ReferenceController:
    """Return the state after so much time that a broker's session is over, and the controller has not noticed it."""
    # `heartbeats.sessions` are valid, `heartbeats.expired` are over and not noticed; a session is (broker, broker epoch).
    heartbeats, session = state.controller.heartbeats, (broker, epoch_of(state, broker))
    # If the broker has a session, time has to pass, and the suite sends heartbeats of all other brokers meanwhile
    # (path_cluster.py). A session of another broker may be over unnoticed, too: its heartbeat begins it anew.
    has_one = broker in state.control.brokers and session in heartbeats.sessions | heartbeats.expired
    if has_one and heartbeats_.may_have_session(heartbeats, broker, state.control.profile):
        for other_broker, other_epoch in heartbeats.expired - {session}:
            # A session of an earlier registration of that broker stays over.
            if epoch_of(state, other_broker) == other_epoch:
                heartbeats = heartbeats_.contact(heartbeats, (other_broker, other_epoch))
    heartbeats = heartbeats_.expire_session(heartbeats, session)
    return state._replace(controller=state.controller._replace(heartbeats=heartbeats))

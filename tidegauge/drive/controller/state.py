"""The cluster of the reference: its controller, and what the brokers of a path know."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tidegauge.drive.contract import Report
from tidegauge.drive.controller.contract import ClusterOpening
from tidegauge.drive.controller.metadata_image import Incarnations, state_report
from tidegauge.impl.controller import brokers as heartbeats_
from tidegauge.impl.controller.brokers import Heartbeats
from tidegauge.impl.controller.features import Features, profile_in_force
from tidegauge.impl.controller.quorum_controller import QuorumController
from tidegauge.impl.controller.replication_control import CLUSTER, MIN_IN_SYNC_REPLICAS, ReplicationControl
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.profiles import Profile
from tidegauge.impl.rules import UNDEFINED


class ReferenceController(NamedTuple):
    """The controller, the highest metadata.version it knows, and the incarnation each broker has last registered."""

    controller: QuorumController
    latest: int
    incarnations: FrozenMap[int, int] = FrozenMap()

    @property
    def control(self) -> ReplicationControl:
        """The state that the metadata log makes."""
        return self.controller.control


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


def lapsed(state: ReferenceController, broker: int) -> ReferenceController:
    """Return the state in which the session of a broker is over, and nobody has noticed."""
    heartbeats, session = state.controller.heartbeats, (broker, epoch_of(state, broker))
    # Time passes for it, and the suite keeps all others alive meanwhile (path_cluster.py). Of those one may have been over
    # unnoticed as well: its heartbeat begins it anew.
    has_one = broker in state.control.brokers and session in heartbeats.sessions | heartbeats.expired
    if has_one and heartbeats_.may_have_session(heartbeats, broker, state.control.profile):
        for other in heartbeats.expired - {session}:
            if epoch_of(state, other[0]) == other[1]:
                heartbeats = heartbeats_.contact(heartbeats, other)
    heartbeats = heartbeats_.expire_session(heartbeats, session)
    return state._replace(controller=state.controller._replace(heartbeats=heartbeats))

"""QuorumController: the active controller, one request after the other, each with its records applied as one batch.

A function that handles a request returns the controller after it, and a `ControllerResult`: the records that were written to
the metadata log, and the response, an error code unless it says otherwise. A *session* is (broker id, broker epoch): it
belongs to one incarnation of a broker.

Rules of this file

1. Beside the state of the log (`control`) stands what the active controller alone knows: heartbeats, and the offset of the
   last record (`end`).
2. What Kafka throws where nothing should be thrown is UNKNOWN_SERVER_ERROR here: nothing is written, and the real process
   resigns (finding F6).
3. Source: org.apache.kafka.controller.QuorumController.
"""

from typing import NamedTuple

from tidegauge.impl.controller import brokers, configurations
from tidegauge.impl.controller.brokers import BrokerControlState, BrokerHeartbeat, BrokerIdAndEpoch, Heartbeats
from tidegauge.impl.controller.configurations import ConfigChange
from tidegauge.impl.controller.records import (
    BROKER,
    TOPIC,
    BrokerRegistrationChangeRecord,
    ControllerRecord,
    ControllerResult,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from tidegauge.impl.controller.replay import replay_record, replay_records
from tidegauge.impl.controller.replication_control import ReplicationControl, has_leaderships, has_topic
from tidegauge.impl.errors import (
    BROKER_ID_NOT_REGISTERED,
    DUPLICATE_BROKER_REGISTRATION,
    STALE_BROKER_EPOCH,
    UNKNOWN_SERVER_ERROR,
    IllegalStateError,
)
from tidegauge.impl.rules import NONE, UNDEFINED, UNKNOWN_TOPIC_OR_PARTITION


class QuorumController(NamedTuple):
    """The state of the log up to `end`, the offset of its last record, and the soft state."""

    control: ReplicationControl
    heartbeats: Heartbeats = Heartbeats()
    end: int = UNDEFINED


class HeartbeatResponse(NamedTuple):
    """BrokerHeartbeatReply."""

    error: int
    caught_up: bool = False
    fenced: bool = True
    in_controlled_shutdown: bool = False
    should_shut_down: bool = False


def write_records(controller: QuorumController, records: tuple[ControllerRecord, ...]) -> QuorumController:
    """Return the controller after it has written and replayed a batch of records. QuorumController#appendWriteEvent."""
    for record in records:
        control = replay_record(controller.control, record, controller.end + 1)
        heartbeats = _replay_on_heartbeats(controller.heartbeats, control, record)
        controller = QuorumController(control, heartbeats, controller.end + 1)
    return controller


def _replay_on_heartbeats(heartbeats: Heartbeats, control: ReplicationControl, record: ControllerRecord) -> Heartbeats:
    """Return the heartbeat manager after a record about a broker. ClusterControlManager#replay.

    `control` is the state after the record.
    """
    match record:
        case RegisterBrokerRecord(broker, epoch):
            fenced = control.brokers[broker].fenced
            # Up to 3.9 BrokerHeartbeatManager#touch, which the replay calls, also renews the session.
            if not (fenced or control.profile.fenced_has_session):
                heartbeats = brokers.contact(heartbeats, (broker, epoch))
            return brokers.track_registration(brokers.forget_broker(heartbeats, broker), broker, fenced=fenced)
        case BrokerRegistrationChangeRecord(broker):
            return brokers.track_registration(heartbeats, broker, fenced=control.brokers[broker].fenced)
        case UnregisterBrokerRecord(broker):
            return brokers.forget_broker(heartbeats, broker)
        case _:
            return heartbeats


Handled = tuple[QuorumController, ControllerResult[int]]
"""The controller after a request, and the records and error code of the request."""


def register_broker(controller: QuorumController, record: RegisterBrokerRecord, previous_epoch: int = UNDEFINED) -> Handled:
    """Register a broker; its broker epoch is the next offset. QuorumController#registerBroker.

    `previous_epoch`: the broker epoch in which it says that it was stopped in order, UNDEFINED if it names none.
    """
    control, broker = controller.control, record.broker_id
    registered = control.brokers.get(broker)
    is_new = registered is None or registered.incarnation != record.incarnation  # another process than the one before
    # Two processes with one broker id: the one whose session is valid stays.
    if registered is not None and is_new and _has_valid_session(controller, (broker, registered.epoch)):
        return controller, ControllerResult((), DUPLICATE_BROKER_REGISTRATION)
    record = record._replace(
        epoch=controller.end + 1, directories=record.directories if control.features.has_directories else ()
    )
    try:
        records = brokers.broker_registered(control, record, previous_epoch)
    # The controller fails on its own index of ELRs (finding F6).
    except IllegalStateError:
        return controller, ControllerResult((), UNKNOWN_SERVER_ERROR)
    return write_records(controller, records), ControllerResult(records, NONE)


def _has_valid_session(controller: QuorumController, session: BrokerIdAndEpoch) -> bool:
    """Return whether an incarnation's session is valid. BrokerHeartbeatTracker#hasValidSession."""
    broker, _ = session
    may_have_one = brokers.may_have_session(controller.heartbeats, broker, controller.control.profile)
    return may_have_one and session in controller.heartbeats.sessions


def unregister_broker(controller: QuorumController, broker: int) -> Handled:
    """Unregister a broker: it is removed for good, out of every ISR and ELR. QuorumController#unregisterBroker."""
    if broker not in controller.control.brokers:
        return controller, ControllerResult((), BROKER_ID_NOT_REGISTERED)
    try:
        records = brokers.broker_unregistered(controller.control, broker)
    # The controller fails on its own index of ELRs (finding F6).
    except IllegalStateError:
        return controller, ControllerResult((), UNKNOWN_SERVER_ERROR)
    return write_records(controller, records), ControllerResult(records, NONE)


def incremental_alter_configs(controller: QuorumController, changes: tuple[ConfigChange, ...]) -> Handled:
    """Change configurations, if every topic and broker that they are for exists. QuorumController#incrementalAlterConfigs.

    ConfigResourceExistenceChecker. One that does not exist refuses the whole request.
    """
    for resource in (change.resource for change in changes):
        if resource.type == TOPIC and not has_topic(controller.control, resource.name):
            return controller, ControllerResult((), UNKNOWN_TOPIC_OR_PARTITION)
        # The name of a broker is its id; the empty name is the default of the cluster.
        if resource.type == BROKER and resource.name and int(resource.name) not in controller.control.brokers:
            return controller, ControllerResult((), BROKER_ID_NOT_REGISTERED)
    records, error = configurations.incremental_alter_configs(controller.control, changes)
    return write_records(controller, records), ControllerResult(records, error)


def process_broker_heartbeat(
    controller: QuorumController, request: BrokerHeartbeat
) -> tuple[QuorumController, ControllerResult[HeartbeatResponse]]:
    """Handle a broker's heartbeat: renew its session, and fence, unfence or shut it down, as it wants and may.

    QuorumController#processBrokerHeartbeat.
    """
    control, broker = controller.control, request.broker_id
    contacted = brokers.contact(controller.heartbeats, (broker, request.broker_epoch))
    controller = controller._replace(heartbeats=contacted)
    registration = control.brokers.get(broker)
    if registration is None or registration.epoch != request.broker_epoch:
        return controller, ControllerResult((), HeartbeatResponse(STALE_BROKER_EPOCH))
    leads = has_leaderships(control, broker)
    state_before = contacted.brokers[broker].current
    state_after = brokers.next_state(contacted, request, registration.offset, leads=leads)
    recorded = brokers.record_heartbeat(contacted, broker, fenced=state_after.fenced, offset=request.metadata_offset)
    in_one_pass = control.profile.heartbeat_in_one_pass
    try:
        # Finding F8: Kafka decides on the unfencing before it looks at the failed directories of the same heartbeat. The
        # repair looks at the directories first, and decides on the state that they leave.
        failed_first = () if in_one_pass else _directory_records(control, request)
        changed = (
            _state_records(replay_records(control, failed_first), broker, state_after)
            if state_after is not state_before
            else ()
        )
        controller = controller._replace(heartbeats=recorded)
        failed_last = _directory_records(control, request) if in_one_pass else ()
    # A fault of the controller itself: it resigns, and the broker learns no more than that.
    except IllegalStateError:
        return controller, ControllerResult((), HeartbeatResponse(UNKNOWN_SERVER_ERROR))
    records = (*failed_first, *changed, *failed_last)
    controller = write_records(controller, records)
    in_shutdown = state_after is BrokerControlState.CONTROLLED_SHUTDOWN
    # Every active broker has to read up to here before the broker may stop.
    if in_shutdown:
        heartbeats = brokers.begin_shutdown(controller.heartbeats, broker, controller.end)
        controller = controller._replace(heartbeats=heartbeats)
    should_shut_down = state_after is BrokerControlState.SHUTDOWN_NOW
    caught_up = request.metadata_offset >= registration.offset
    response = HeartbeatResponse(NONE, caught_up, state_after.fenced, in_shutdown, should_shut_down)
    return controller, ControllerResult(records, response)


def _state_records(control: ReplicationControl, broker: int, after: BrokerControlState) -> tuple[ControllerRecord, ...]:
    """Return the records by which a broker changes its state to `after`."""
    match after:
        case BrokerControlState.UNFENCED:
            return brokers.broker_unfenced(control, broker)
        case BrokerControlState.CONTROLLED_SHUTDOWN:
            return brokers.broker_in_controlled_shutdown(control, broker)
        # FENCED, or SHUTDOWN_NOW: a broker that may stop is fenced.
        case _:
            return brokers.broker_fenced(control, broker)


def _directory_records(control: ReplicationControl, request: BrokerHeartbeat) -> tuple[ControllerRecord, ...]:
    """Return the records for the failed log directories that a heartbeat reports."""
    if not control.features.has_directories:
        return ()
    return brokers.directories_offline(control, request.broker_id, request.offline)


def fence_stale_broker(
    controller: QuorumController, session: BrokerIdAndEpoch
) -> tuple[QuorumController, ControllerResult[bool]]:
    """Fence the broker of a session that is over, if it is still the registered incarnation. #maybeFenceOneStaleBroker.

    The response of the result says whether there was such a session to handle; it is not looked at again.
    """
    broker, epoch = session
    is_expired = session in controller.heartbeats.expired
    heartbeats = controller.heartbeats._replace(expired=controller.heartbeats.expired - {session})
    controller = controller._replace(heartbeats=heartbeats)
    registration = controller.control.brokers.get(broker)
    if not is_expired or registration is None or registration.epoch != epoch:
        return controller, ControllerResult((), is_expired)
    if not brokers.may_have_session(heartbeats, broker, controller.control.profile):
        return controller, ControllerResult((), response=False)
    records = brokers.broker_fenced(controller.control, broker)
    fenced = controller._replace(heartbeats=brokers.mark_fenced(heartbeats, broker))
    return write_records(fenced, records), ControllerResult(records, response=True)

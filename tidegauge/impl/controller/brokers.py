"""Brokers at the controller: registration, fencing, controlled shutdown, heartbeats.

`Heartbeats` is what only the active controller knows: per broker its last report, and the *sessions*, each of an incarnation
(broker id, broker epoch), that are valid or over. `ReplicationControl` is the state that the metadata log makes. The second
half returns, for each thing that happens to a broker, the records to be written: they say who leaves which ISR, and which
leaders are elected. There is no clock: which sessions are over is handed in.
"""

from enum import Enum
from typing import NamedTuple

from tidegauge.impl.controller.partition_registration import partitions_with_broker_in_elr
from tidegauge.impl.controller.records import (
    BrokerRegistrationChangeRecord,
    ControllerRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from tidegauge.impl.controller.replication_control import (
    ReplicationControl,
    generate_leader_and_isr_updates,
    keeps_elr,
    with_broker_in_isr,
    with_no_leader,
)
from tidegauge.impl.errors import IllegalStateError
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.profiles import Profile
from tidegauge.impl.rules import UNDEFINED

# BrokerHeartbeatManager: what only the active controller knows of brokers, and what a heartbeat makes of one.
#
# Rules of this part
#
# 1. No clock: which sessions are over is handed in. A session belongs to an incarnation: broker and broker epoch.
# 2. A registration that is replayed forgets what the broker last reported.
# 3. Source: org.apache.kafka.controller.BrokerHeartbeatManager, BrokerHeartbeatTracker.


BrokerIdAndEpoch = tuple[int, int]
"""BrokerIdAndEpoch."""


class BrokerControlState(Enum):
    """org.apache.kafka.controller.BrokerControlState."""

    FENCED = "FENCED"
    UNFENCED = "UNFENCED"
    CONTROLLED_SHUTDOWN = "CONTROLLED_SHUTDOWN"
    SHUTDOWN_NOW = "SHUTDOWN_NOW"

    @property
    def fenced(self) -> bool:
        """Whether a broker in this state is fenced."""
        return self in {BrokerControlState.FENCED, BrokerControlState.SHUTDOWN_NOW}


class BrokerHeartbeatState(NamedTuple):
    """The last report of a broker; the offset at which its controlled shutdown ends, if it is in one."""

    fenced: bool
    metadata_offset: int = UNDEFINED
    shutdown_offset: int = UNDEFINED

    @property
    def current(self) -> BrokerControlState:
        """The state that the last heartbeat has left it in. BrokerHeartbeatManager#currentBrokerState."""
        if self.shutdown_offset >= 0:
            return BrokerControlState.CONTROLLED_SHUTDOWN
        return BrokerControlState.FENCED if self.fenced else BrokerControlState.UNFENCED


class Heartbeats(NamedTuple):
    """Brokers, sessions that are valid, and sessions that are over and were not looked at yet."""

    brokers: FrozenMap[int, BrokerHeartbeatState] = FrozenMap()
    sessions: frozenset[BrokerIdAndEpoch] = frozenset()
    expired: frozenset[BrokerIdAndEpoch] = frozenset()


class BrokerHeartbeat(NamedTuple):
    """A BrokerHeartbeat request. `offline` are its failed log directories."""

    broker_id: int
    broker_epoch: int
    metadata_offset: int
    want_fence: bool = False
    want_shut_down: bool = False
    offline: tuple[str, ...] = ()


def contact(heartbeats: Heartbeats, session: BrokerIdAndEpoch) -> Heartbeats:
    """Renew the session of an incarnation, or begin it. BrokerHeartbeatTracker#updateContactTime."""
    return heartbeats._replace(sessions=heartbeats.sessions | {session}, expired=heartbeats.expired - {session})


def may_have_session(heartbeats: Heartbeats, broker: int, profile: Profile) -> bool:
    """Return whether a broker can have a session: up to 3.9 not while it is fenced (KAFKA-17793)."""
    return profile.fenced_has_session or not heartbeats.brokers[broker].fenced


def expire_session(heartbeats: Heartbeats, session: BrokerIdAndEpoch) -> Heartbeats:
    """Let the session of an incarnation run out, if it has a valid one. BrokerHeartbeatTracker#isExpired."""
    valid = heartbeats.sessions & {session}
    return heartbeats._replace(sessions=heartbeats.sessions - valid, expired=heartbeats.expired | valid)


def track_registration(heartbeats: Heartbeats, broker: int, *, fenced: bool) -> Heartbeats:
    """Note that a broker's registration was replayed, with the fencing that it has now. BrokerHeartbeatManager#register."""
    # Kafka keeps the reported offset only where the fencing changed: otherwise a new incarnation would inherit it.
    tracked = heartbeats.brokers.get(broker)
    keeps_offset = tracked is not None and tracked.fenced != fenced
    offset = tracked.metadata_offset if tracked is not None and keeps_offset else UNDEFINED
    return record_heartbeat(heartbeats, broker, fenced=fenced, offset=offset)


def forget_broker(heartbeats: Heartbeats, broker: int) -> Heartbeats:
    """Forget a broker. BrokerHeartbeatManager#remove."""
    return heartbeats._replace(brokers=heartbeats.brokers.without(broker))


def mark_fenced(heartbeats: Heartbeats, broker: int) -> Heartbeats:
    """Mark a broker as fenced. BrokerHeartbeatManager#fence."""
    return heartbeats._replace(brokers=heartbeats.brokers.put(broker, heartbeats.brokers[broker]._replace(fenced=True)))


def record_heartbeat(heartbeats: Heartbeats, broker: int, *, fenced: bool, offset: int) -> Heartbeats:
    """Record that a broker has read the metadata log up to `offset`, and whether it is fenced. BrokerHeartbeatManager#touch.

    A fenced broker is in no controlled shutdown any more.
    """
    tracked = heartbeats.brokers.get(broker) or BrokerHeartbeatState(fenced)
    state = BrokerHeartbeatState(fenced, offset, UNDEFINED if fenced else tracked.shutdown_offset)
    return heartbeats._replace(brokers=heartbeats.brokers.put(broker, state))


def begin_shutdown(heartbeats: Heartbeats, broker: int, offset: int) -> Heartbeats:
    """Note at which offset of the metadata log a broker's controlled shutdown may end. #maybeUpdateControlledShutdownOffset.

    Every active broker has to have read up to there. Only the first heartbeat of a shutdown sets it.
    """
    tracked = heartbeats.brokers[broker]
    if tracked.shutdown_offset >= 0:
        return heartbeats
    return heartbeats._replace(brokers=heartbeats.brokers.put(broker, tracked._replace(shutdown_offset=offset)))


def next_state(heartbeats: Heartbeats, request: BrokerHeartbeat, registered_at: int, *, leads: bool) -> BrokerControlState:
    """Return the state in which a heartbeat leaves its broker. BrokerHeartbeatManager#calculateNextBrokerState.

    `registered_at` is the offset of the broker's registration: it is unfenced once it has read that. `leads`: it leads some
    partition. A controlled shutdown is over when it leads none and every active broker has read the metadata that says so.
    """
    tracked = heartbeats.brokers[request.broker_id]
    match tracked.current:
        case BrokerControlState.FENCED:
            if request.want_shut_down:
                return BrokerControlState.SHUTDOWN_NOW
            catches_up = not request.want_fence and request.metadata_offset >= registered_at
            return BrokerControlState.UNFENCED if catches_up else BrokerControlState.FENCED
        case BrokerControlState.UNFENCED:
            if not request.want_shut_down:
                return BrokerControlState.FENCED if request.want_fence else BrokerControlState.UNFENCED
            waits = leads and not request.want_fence
            return BrokerControlState.CONTROLLED_SHUTDOWN if waits else BrokerControlState.SHUTDOWN_NOW
        case _:
            active = (b.metadata_offset for b in heartbeats.brokers.values() if b.current is BrokerControlState.UNFENCED)
            seen_by_all = all(tracked.shutdown_offset <= offset for offset in active)
            over = not leads and seen_by_all
            return BrokerControlState.SHUTDOWN_NOW if over else BrokerControlState.CONTROLLED_SHUTDOWN


# Brokers that register, are fenced and unfenced, shut down, lose a directory, or are gone: the records of each.
#
# Rules of this part
#
# 1. A broker that is fenced leaves the ISRs before that is written; one that is unfenced may be elected after it is.
# 2. Since 4.0 another incarnation leaves every ISR before its registration is written, so an old proposal can not bring it
#    back (KAFKA-18106). With ELR on, one that did not stop cleanly leaves the ELRs as well: clean if and only if it names
#    the epoch it was stopped in.
# 3. Source: ReplicationControlManager#handleBrokerFenced and its neighbours, ClusterControlManager#registerBroker.


ControllerRecords = tuple[ControllerRecord, ...]


def broker_fenced(control: ReplicationControl, broker: int) -> ControllerRecords:
    """Return the records by which a broker leaves every ISR and then is fenced. #handleBrokerFenced."""
    changes = generate_leader_and_isr_updates(control, with_broker_in_isr(control, broker), remove=broker)
    return (*changes, BrokerRegistrationChangeRecord(broker, control.brokers[broker].epoch, fenced=True))


def broker_unfenced(control: ReplicationControl, broker: int) -> ControllerRecords:
    """Return the records that unfence a broker, then those by which partitions without a leader get one, if they can.

    ReplicationControlManager#handleBrokerUnfenced.
    """
    changes = generate_leader_and_isr_updates(control, with_no_leader(control), add=broker)
    return (BrokerRegistrationChangeRecord(broker, control.brokers[broker].epoch, fenced=False), *changes)


def broker_in_controlled_shutdown(control: ReplicationControl, broker: int) -> ControllerRecords:
    """Return the records by which a broker that wants to shut down is marked, leaves every ISR, and leads no more.

    ReplicationControlManager#handleBrokerInControlledShutdown.
    """
    changes = generate_leader_and_isr_updates(control, with_broker_in_isr(control, broker), remove=broker)
    registration = control.brokers[broker]
    # Each heartbeat of a shutdown tries again to move what it still leads, but the mark is written once.
    if registration.in_controlled_shutdown:
        return changes
    return (BrokerRegistrationChangeRecord(broker, registration.epoch, in_controlled_shutdown=True), *changes)


def broker_unregistered(control: ReplicationControl, broker: int) -> ControllerRecords:
    """Return the records that remove a broker for good, out of ISRs and ELRs first. #handleBrokerUnregistered."""
    in_isr, in_elr = with_broker_in_isr(control, broker), partitions_with_broker_in_elr(control.brokers_to_elrs, broker)
    changes = generate_leader_and_isr_updates(control, (*in_isr, *in_elr), remove=broker)
    return (*changes, UnregisterBrokerRecord(broker, control.brokers[broker].epoch))


def broker_shut_down(control: ReplicationControl, broker: int, *, clean: bool) -> tuple[PartitionChangeRecord, ...]:
    """Return the records that end an incarnation of a broker, as another one registers. #handleBrokerShutdown.

    `clean`: it was stopped in order. Otherwise it may have lost records, and leaves the ELRs, too.
    """
    in_isr = with_broker_in_isr(control, broker)
    # After a clean stop everything was flushed, so the broker stays eligible: it leaves the ISR only.
    if clean or not keeps_elr(control):
        return generate_leader_and_isr_updates(control, in_isr, remove=broker)
    in_elr = partitions_with_broker_in_elr(control.brokers_to_elrs, broker)
    return generate_leader_and_isr_updates(control, (*in_isr, *in_elr), unclean_shutdown=broker)


def directories_offline(control: ReplicationControl, broker: int, failed: tuple[str, ...]) -> ControllerRecords:
    """Return the records for log directories of a broker that have failed: its replicas there leave the ISRs.

    ReplicationControlManager#handleDirectoriesOffline. Raises IllegalStateError where Kafka's index of directories still has
    a topic that was deleted (finding F6).
    """
    registration = control.brokers[broker]
    # A broker repeats its failed directories in every heartbeat; only those that were online are news.
    newly_failed = tuple(d for d in registration.directories if d in failed)
    if not newly_failed:
        return ()
    changes: list[ControllerRecord] = []
    for name in newly_failed:
        if name in control.deleted_in:
            raise IllegalStateError(
                f"directory {name}: expected topics that are there; seen one that is deleted (finding F6)"
            )
        tps = (tp for tp, p in control.partitions.items() if name in p.directories)
        changes += generate_leader_and_isr_updates(control, tps, remove=broker)
    online = tuple(d for d in registration.directories if d not in failed)
    return (*changes, BrokerRegistrationChangeRecord(broker, registration.epoch, directories=online))


def broker_registered(
    control: ReplicationControl, registration: RegisterBrokerRecord, previous_epoch: int = UNDEFINED
) -> ControllerRecords:
    """Return the records that register an incarnation, or amend its registration. ClusterControlManager#registerBroker.

    `previous_epoch` is the broker epoch in which, as it says, it was stopped in order; UNDEFINED if it cannot name one.
    """
    before = control.brokers.get(registration.broker_id)
    if before is not None and before.incarnation == registration.incarnation:
        epoch = before.epoch if control.profile.amends_registration else registration.epoch
        amended = registration._replace(
            epoch=epoch, fenced=before.fenced, in_controlled_shutdown=before.in_controlled_shutdown
        )
        return (amended,)
    # KAFKA-18106 (4.0): without the change a proposal of before the restart could keep the new incarnation in the ISR.
    if not control.profile.registration_leaves_isr:
        return (registration,)
    clean = before is not None and previous_epoch == before.epoch
    return (*broker_shut_down(control, registration.broker_id, clean=clean), registration)

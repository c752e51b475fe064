"""Brokers that register, are fenced and unfenced, shut down, lose a directory, or are gone: the records of each.

Rules of this file

1. A broker that is fenced leaves the ISRs before that is written; one that is unfenced may be elected after it is.
2. Since 4.0 another incarnation leaves every ISR before its registration is written, so an old proposal can not bring it
   back (KAFKA-18106). With ELR on, one that did not stop cleanly leaves the ELRs as well: clean if and only if it names
   the epoch it was stopped in.
3. Source: ReplicationControlManager#handleBrokerFenced and its neighbours, ClusterControlManager#registerBroker.
"""

from tidegauge.impl.control.brokers_to_elrs import partitions_with_broker_in_elr
from tidegauge.impl.control.records import (
    BrokerRegistrationChangeRecord,
    ControllerRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from tidegauge.impl.control.replication_control import (
    ReplicationControl,
    generate_leader_and_isr_updates,
    keeps_elr,
    with_broker_in_isr,
    with_no_leader,
)
from tidegauge.impl.errors import IllegalStateError
from tidegauge.impl.rules import UNDEFINED

ControllerRecords = tuple[ControllerRecord, ...]


def broker_fenced(control: ReplicationControl, broker: int) -> ControllerRecords:
    """Fence a broker after it has left every ISR. ReplicationControlManager#handleBrokerFenced."""
    changes = generate_leader_and_isr_updates(control, with_broker_in_isr(control, broker), remove=broker)
    return (*changes, BrokerRegistrationChangeRecord(broker, control.brokers[broker].epoch, fenced=True))


def broker_unfenced(control: ReplicationControl, broker: int) -> ControllerRecords:
    """Unfence a broker; any partition without a leader may get one. ReplicationControlManager#handleBrokerUnfenced."""
    changes = generate_leader_and_isr_updates(control, with_no_leader(control), add=broker)
    return (BrokerRegistrationChangeRecord(broker, control.brokers[broker].epoch, fenced=False), *changes)


def broker_in_controlled_shutdown(control: ReplicationControl, broker: int) -> ControllerRecords:
    """Move leadership away and mark the shutdown. ReplicationControlManager#handleBrokerInControlledShutdown."""
    changes = generate_leader_and_isr_updates(control, with_broker_in_isr(control, broker), remove=broker)
    registration = control.brokers[broker]
    # Each heartbeat of a shutdown tries again to move what it still leads, but the mark is written once.
    if registration.in_controlled_shutdown:
        return changes
    return (BrokerRegistrationChangeRecord(broker, registration.epoch, in_controlled_shutdown=True), *changes)


def broker_unregistered(control: ReplicationControl, broker: int) -> ControllerRecords:
    """Remove a broker for good. ReplicationControlManager#handleBrokerUnregistered."""
    in_isr, in_elr = with_broker_in_isr(control, broker), partitions_with_broker_in_elr(control.brokers_to_elrs, broker)
    changes = generate_leader_and_isr_updates(control, (*in_isr, *in_elr), remove=broker)
    return (*changes, UnregisterBrokerRecord(broker, control.brokers[broker].epoch))


def broker_shut_down(control: ReplicationControl, broker: int, *, clean: bool) -> tuple[PartitionChangeRecord, ...]:
    """End an incarnation. ReplicationControlManager#handleBrokerShutdown."""
    in_isr = with_broker_in_isr(control, broker)
    # After a clean stop everything was flushed, so the broker stays eligible: it leaves the ISR only.
    if clean or not keeps_elr(control):
        return generate_leader_and_isr_updates(control, in_isr, remove=broker)
    in_elr = partitions_with_broker_in_elr(control.brokers_to_elrs, broker)
    return generate_leader_and_isr_updates(control, (*in_isr, *in_elr), unclean_shutdown=broker)


def directories_offline(control: ReplicationControl, broker: int, failed: tuple[str, ...]) -> ControllerRecords:
    """Take the replicas in failed directories out of the ISRs. ReplicationControlManager#handleDirectoriesOffline."""
    registration = control.brokers[broker]
    # A broker repeats its failed directories in every heartbeat; only those that were online are news.
    newly = tuple(d for d in registration.directories if d in failed)
    if not newly:
        return ()
    changes: list[ControllerRecord] = []
    for name in newly:
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
    """Register an incarnation, or amend the registration of a known one. ClusterControlManager#registerBroker.

    `previous_epoch` is UNDEFINED for a request that cannot name the epoch in which it was stopped.
    """
    known = control.brokers.get(registration.broker_id)
    if known is not None and known.incarnation == registration.incarnation:
        epoch = known.epoch if control.profile.amends_registration else registration.epoch
        kept = registration._replace(epoch=epoch, fenced=known.fenced, in_controlled_shutdown=known.in_controlled_shutdown)
        return (kept,)
    # KAFKA-18106 (4.0): without the change a proposal of before the restart could keep the new incarnation in the ISR.
    if not control.profile.registration_leaves_isr:
        return (registration,)
    clean = known is not None and previous_epoch == known.epoch
    return (*broker_shut_down(control, registration.broker_id, clean=clean), registration)

"""What happens to a controller in tests, each in one call: the state after it."""

from tidegauge.impl.control import broker_states, elections
from tidegauge.impl.control.partition_change import Election
from tidegauge.impl.control.records import ClearElrRecord, RegisterBrokerRecord
from tidegauge.impl.control.replay import replayed
from tidegauge.impl.control.replication_control import ReplicationControl
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.topic_partition import TopicPartition


def fence_broker(control: ReplicationControl, broker: int) -> ReplicationControl:
    """Its session ran out."""
    return replayed(control, broker_states.broker_fenced(control, broker))


def unfence_broker(control: ReplicationControl, broker: int) -> ReplicationControl:
    """It caught up with the metadata."""
    return replayed(control, broker_states.broker_unfenced(control, broker))


def begin_controlled_shutdown(control: ReplicationControl, broker: int) -> ReplicationControl:
    """It asks to leave."""
    return replayed(control, broker_states.broker_in_controlled_shutdown(control, broker))


def register_broker(
    control: ReplicationControl, broker: int, epoch: int, *, previous_epoch: int = UNDEFINED
) -> ReplicationControl:
    """Another incarnation, whose broker epoch names it."""
    registration = RegisterBrokerRecord(broker, epoch, incarnation=epoch)
    return replayed(control, broker_states.broker_registered(control, registration, previous_epoch))


def elect_leader(control: ReplicationControl, tp: TopicPartition, election: Election) -> tuple[ReplicationControl, int]:
    """The state after it, and its error."""
    records, error = elections.elect_leader(control, tp, election)
    return replayed(control, records), error


def set_min_isr(control: ReplicationControl, min_isr: int) -> ReplicationControl:
    """The static configuration is another one, and ELRs are forgotten where they are kept."""
    control = control._replace(min_isr=min_isr)
    return replayed(control, (ClearElrRecord(""),)) if control.profile.elr else control

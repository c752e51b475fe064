"""What a state of the controller is in a report, be it the reference's own or what the metadata log of a process makes."""

from typing import Any

from tidegauge.impl.control.partition_registration import PartitionRegistration, RecoveryState
from tidegauge.impl.control.replication_control import BrokerRegistration, ReplicationControl


class Incarnations:
    """Broker epochs as ordinals: offsets of the log differ from one log to the next."""

    def __init__(self) -> None:
        self._epochs: dict[int, list[int]] = {}

    def copy(self) -> "Incarnations":
        """Return the same numbers, to give out more."""
        copied = Incarnations()
        copied._epochs = {broker: [*epochs] for broker, epochs in self._epochs.items()}
        return copied

    def ordinal(self, broker: int, epoch: int) -> int:
        """Return which incarnation of a broker has this epoch, from 0 on."""
        epochs = self._epochs.setdefault(broker, [])
        if epoch not in epochs:
            epochs.append(epoch)
        return epochs.index(epoch)


def state_report(control: ReplicationControl, incarnations: Incarnations) -> dict[str, Any]:
    """Return registrations and features as they are reported."""
    return {
        "partitions": {str(tp): _partition(registration) for tp, registration in control.partitions.items()},
        "brokers": {
            str(broker): _broker(registration, incarnations.ordinal(broker, registration.epoch))
            for broker, registration in sorted(control.brokers.items())
        },
        "features": {"metadata.version": control.features.metadata_version, "elr": control.features.elr},
    }


def _partition(found: PartitionRegistration) -> dict[str, Any]:
    lists = {
        "isr": found.isr,
        "elr": found.elr,
        "last_known_elr": found.last_known_elr,
        "adding": found.adding,
        "removing": found.removing,
        "directories": found.directories,
    }
    return {
        "replicas": list(found.replicas),
        "leader": found.leader,
        "leader_epoch": found.leader_epoch,
        "partition_epoch": found.partition_epoch,
        **{name: list(value) for name, value in lists.items()},
        "recovering": found.recovery is RecoveryState.RECOVERING,
    }


def _broker(found: BrokerRegistration, incarnation: int) -> dict[str, Any]:
    return {
        "incarnation": incarnation,
        "fenced": found.fenced,
        "in_controlled_shutdown": found.in_controlled_shutdown,
        "directories": list(found.directories),
    }

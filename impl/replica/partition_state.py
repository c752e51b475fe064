"""What a broker knows of one partition: its log, its role, the ISR, the other replicas.

Rules of this file

1. The committed ISR is what the controller committed last. A proposal makes the state pending; while it is pending the
   maximal ISR decides: an expansion counts at once, a shrink counts late.
2. Source: kafka.cluster.Partition, org.apache.kafka.server.partition.PartitionState.
"""

from typing import NamedTuple

from tidegauge.impl.replica.replica import Replica
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.storage.log import Log


class PartitionState(NamedTuple):
    """CommittedPartitionState, PendingExpandIsr (`adding`), PendingShrinkIsr (`removing`).

    `outdated`: who of the proposed ISR has registered again since: its broker epoch in the proposal is an earlier one.
    """

    isr: tuple[int, ...] = ()
    adding: int = UNDEFINED
    removing: tuple[int, ...] = ()
    outdated: tuple[int, ...] = ()

    @property
    def is_inflight(self) -> bool:
        """A proposal waits for the controller."""
        return self.adding != UNDEFINED or bool(self.removing)

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """Every replica that may be in the ISR as far as this leader knows."""
        return self.isr if self.adding == UNDEFINED else (*self.isr, self.adding)

    @property
    def proposed_isr(self) -> tuple[int, ...]:
        """What the controller is asked for, in order of broker id."""
        return tuple(sorted(b for b in self.maximal_isr if b not in self.removing))


class Partition(NamedTuple):
    """The defaults are those of a partition object that has seen no metadata and whose log was loaded or created.

    Without a log (`has_log` off, Partition#log is None) `log` has no meaning, and no request is served:
    Partition#getLocalLog.
    """

    broker_id: int
    log: Log = Log()
    leader_id: int = UNDEFINED
    leader_epoch: int = UNDEFINED
    partition_epoch: int = 0
    epoch_start: int = UNDEFINED
    state: PartitionState = PartitionState()
    remotes: tuple[Replica, ...] = ()
    has_log: bool = True

    @property
    def is_leader(self) -> bool:
        """Partition#isLeader."""
        return self.leader_id == self.broker_id


def remote(partition: Partition, broker_id: int) -> Replica | None:
    """Return the entry of another replica, None when it is not assigned."""
    return next((r for r in partition.remotes if r.broker_id == broker_id), None)

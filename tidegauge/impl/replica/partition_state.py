"""The state that a broker has of one partition, and what its leader remembers of each other replica.

The *committed* ISR is the one that the controller registered last, as far as this leader has read. A leader *proposes*
another one with AlterPartition; until the response the proposal is pending, and the *maximal* ISR (the committed members
and the one that is to be added) decides what is committed. `now` is the leader's clock in ms.
"""

from typing import NamedTuple

from tidegauge.impl.profiles import Setup
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.storage.log import Log

# Replica: what a leader remembers of one other replica.
#
# Rules of this part
#
# 1. `log_end` is the fetch offset of the replica's last accepted fetch, or the base of its batch (KAFKA-17803): it may fall,
#    nothing keeps it monotonic.
# 2. Times are ms on the leader's clock, handed in by the caller.
# 3. Source: org.apache.kafka.server.replica.Replica, ReplicaState.


class Replica(NamedTuple):
    """Replica with its ReplicaState. The defaults are ReplicaState.EMPTY."""

    broker_id: int
    log_end: int = UNDEFINED
    log_start: int = UNDEFINED
    last_fetch_leader_end: int = 0
    last_fetch_time: int = 0
    last_caught_up_time: int = 0
    broker_epoch: int | None = None


def reset_replica_state(replica: Replica, now: int, leader_end: int, *, forgets: bool, in_isr: bool) -> Replica:
    """Reset what a leader remembers of a replica, as it starts a new leader epoch. Replica#resetReplicaState.

    `forgets`: it also forgets the recorded log end (rules.forgets_log_ends). `leader_end` is the leader's log end.
    """
    # ISR members get a full lag interval from the election on, or a new leader would shrink its ISR at once.
    caught_up = now if in_isr else 0
    if forgets:
        return Replica(replica.broker_id, last_fetch_leader_end=UNDEFINED, last_caught_up_time=caught_up)
    return replica._replace(
        last_fetch_leader_end=leader_end, last_fetch_time=now if in_isr else 0, last_caught_up_time=caught_up
    )


def update_fetch_state(
    setup: Setup, replica: Replica, fetch_offset: int, log_start: int, now: int, leader_end: int, broker_epoch: int
) -> Replica:
    """Record an accepted fetch of a replica. Replica#updateFetchStateOrThrow.

    `fetch_offset`, `log_start` and `broker_epoch` are the follower's, from its request; `leader_end` is the leader's log
    end.
    """
    return Replica(
        replica.broker_id,
        log_end=fetch_offset,
        log_start=log_start,
        last_fetch_leader_end=max(leader_end, replica.last_fetch_leader_end),
        last_fetch_time=now,
        last_caught_up_time=setup.rules.last_caught_up_time(
            replica.last_caught_up_time,
            fetch_offset,
            now,
            leader_end,
            replica.last_fetch_leader_end,
            replica.last_fetch_time,
        ),
        broker_epoch=broker_epoch,
    )


def is_caught_up(setup: Setup, replica: Replica, leader_end: int, now: int) -> bool:
    """Return whether a replica has fetched up to the leader's log end within replica.lag.time.max.ms. Replica#isCaughtUp."""
    return setup.rules.is_caught_up(
        replica.log_end, leader_end, now, replica.last_caught_up_time, setup.replica_lag_time_max_ms
    )


# Partition: the state of one partition at a broker, that is its log, its role, the ISR, the other replicas.
#
# Rules of this part
#
# 1. The committed ISR is what the controller committed last. A proposal makes the state pending; while it is pending the
#    maximal ISR decides: an expansion counts at once, a shrink counts late.
# 2. Source: kafka.cluster.Partition, org.apache.kafka.server.partition.PartitionState.


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
        """Whether this broker leads it, as far as it has read the metadata. Partition#isLeader."""
        return self.leader_id == self.broker_id


def remote(partition: Partition, broker_id: int) -> Replica | None:
    """Return what the leader remembers of the replica on `broker_id`, None if the partition has none there."""
    return next((r for r in partition.remotes if r.broker_id == broker_id), None)

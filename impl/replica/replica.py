"""Replica: what a leader remembers of one other replica.

Rules of this file

1. `log_end` is the fetch offset of the replica's last accepted fetch: it may fall, nothing keeps it monotonic.
2. Times are ms on the leader's clock, handed in by the caller.
3. Source: org.apache.kafka.server.replica.Replica, ReplicaState.
"""

from typing import NamedTuple

from tidegauge.impl.profiles import Setup
from tidegauge.impl.rules import UNDEFINED


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
    """Reset the entry for a new leader epoch. Replica#resetReplicaState; `forgets` is rules.forgets_log_ends."""
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
    """Record an accepted fetch. Replica#updateFetchStateOrThrow."""
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
    """Return whether it has fetched up to the log end within replica.lag.time.max.ms. Replica#isCaughtUp."""
    return setup.rules.is_caught_up(
        replica.log_end, leader_end, now, replica.last_caught_up_time, setup.replica_lag_time_max_ms
    )

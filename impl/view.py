"""From the implementation's state to the variables of the specification.

Rules of this file

1. The view is nested tuples of ints, exactly what TLC prints for a state of spec/Replication.tla.
2. What the specification derives is asserted here, not trusted: the epoch cache is exactly what the records and one
   trailing entry (`mark`) imply, and a fetcher entry stands at the log end with the latest cached epoch.
3. Two different states of one model never have the same view.
"""

from typing import Any

from impl import log as log_
from impl.broker import Broker
from impl.cluster import Cluster, Row, mask, record_epochs
from impl.controller import Controller
from impl.errors import IllegalStateError
from impl.messages import FetchAnswer, FetchRequest, Message
from impl.profiles import Setup
from impl.rules import UNDEFINED

View = tuple[Any, ...]

NO_ROLE, LEADER, FOLLOWER = 0, 1, 2


def view(cluster: Cluster) -> View:
    """(brokers, controller, committed, crashes)."""
    brokers = tuple(
        broker_view(cluster.model.setup, broker, row) for broker, row in zip(cluster.brokers, cluster.network, strict=True)
    )
    return brokers, controller_view(cluster.controller), cluster.committed, cluster.crashes


def broker_view(setup: Setup, broker: Broker, row: Row) -> View:
    """(log, hw, mark, up, role, epoch, leader, isr, pending, remote, slots)."""
    partition = broker.partition
    _assert_entry_implied(setup, broker)
    return (
        record_epochs(broker),
        partition.log.hw,
        mark_of(setup, broker),
        int(broker.up),
        _role(broker),
        partition.leader_epoch,
        partition.leader_id,
        mask(partition.state.isr),
        mask(partition.state.proposed_isr) if partition.state.is_inflight else 0,
        _remote(broker, len(row)),
        tuple(message_view(message) for message in row),
    )


def controller_view(controller: Controller) -> View:
    """(leader, epoch, isr, live)."""
    return controller.leader, controller.leader_epoch, mask(controller.isr), mask(controller.live)


def message_view(message: Message) -> View:
    """() nothing, (1, ..) request, (2, ..) data, (3, ..) diverging, (4, ..) out of range."""
    if message is None:
        return ()
    if isinstance(message, FetchRequest):
        return 1, message.current_leader_epoch, message.fetch_offset, message.last_fetched_epoch
    response = message.response
    if message.offsets is not None:
        return 4, message.request_epoch, message.request_offset, message.offsets.earliest, message.offsets.latest
    if response.is_diverging:
        return 3, message.request_epoch, message.request_offset, response.diverging_epoch, response.diverging_end
    return 2, message.request_epoch, message.request_offset, response.hw, _answered_epochs(message)


def _answered_epochs(answer: FetchAnswer) -> tuple[int, ...]:
    return tuple(b.epoch for b in answer.response.records for _ in range(max(b.base, answer.request_offset), b.last + 1))


def _role(broker: Broker) -> int:
    if broker.partition.leader_epoch == UNDEFINED:
        return NO_ROLE
    return LEADER if broker.partition.is_leader else FOLLOWER


def _remote(broker: Broker, brokers: int) -> tuple[int, ...]:
    known = {r.broker_id: r.log_end for r in broker.partition.remotes}
    return tuple(known.get(b, UNDEFINED) for b in range(brokers))


def mark_of(setup: Setup, broker: Broker) -> int:
    """Epoch of a trailing cache entry that has no record yet, after comparing the whole cache with the records.

    Before truncation on fetch nobody reads the cache, and logs that forked under hw-only have no well-formed one.
    """
    log, cache = broker.partition.log, broker.partition.log.cache
    trailing = len(cache.starts) > 0 and cache.starts[-1] >= log.end
    found = cache.epochs[-1] if trailing else UNDEFINED
    if setup.profile.truncation_on_fetch:
        implied = implied_cache(record_epochs(broker))
        if trailing:
            implied = (*implied, (found, log.end))
        if cache.memory.pairs() != implied:
            raise IllegalStateError(f"epoch cache: expected {implied}, implied by the records; seen {cache.memory.pairs()}")
    return found


def implied_cache(epochs: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """The cache entries that record epochs alone imply: one per change."""
    return tuple((e, offset) for offset, e in enumerate(epochs) if offset == 0 or epochs[offset - 1] != e)


def _assert_entry_implied(setup: Setup, broker: Broker) -> None:
    entry, log = broker.entry, broker.partition.log
    if entry is None:
        return
    seen = (entry.fetch_offset, entry.last_fetched_epoch, entry.current_leader_epoch)
    implied = (log.end, log_.latest_epoch(setup, log), broker.partition.leader_epoch)
    if seen != implied:
        raise IllegalStateError(f"fetcher entry (offset, last epoch, epoch): expected {implied}; seen {seen}")

"""From the implementation's state to the variables of the specification.

A *view* is a state as nested tuples of ints, the same from TLC and from here. A set of brokers is a bit mask, a log the
leader epoch of each record. `mark` is the epoch of a cache entry without records: a leader's epoch in which nothing was
written yet. A *row* is what is in flight between a follower and each leader, one message or None.

Rules of this file

1. The view is nested tuples of ints, exactly what TLC prints for a state of spec/Replication.tla. Where log starts move
   (spec/LogStartMovement.tla) a record that was deleted is -1 in its log; a log start in a response, and the highest one
   that was asked for, stand at the end of what they belong to, unless they are 0.
2. What the specification derives is asserted here, not trusted: the epoch cache is exactly what the records and one
   trailing entry (`mark`) imply, and a fetching entry stands at the log end with the latest cached epoch.
3. Two different states of one model have different views, but for the offset of a truncating entry: it says where to
   truncate when the leader knows no end, and after a first round, when it is no longer the high watermark, the leader knows
   one.
"""

from itertools import pairwise

from tidegauge.impl.cluster import broker as broker_
from tidegauge.impl.cluster.broker import Broker
from tidegauge.impl.cluster.cluster import BoundedModel, Cluster, NetworkRow, mask, record_epochs
from tidegauge.impl.cluster.controller import Controller
from tidegauge.impl.errors import IllegalStateError
from tidegauge.impl.explorer.search import View
from tidegauge.impl.messages import (
    FetchRequest,
    FetchResponseInFlight,
    Message,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from tidegauge.impl.profiles import Setup
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.storage import log as log_
from tidegauge.impl.storage.epoch_cache import implied_cache

NO_ROLE, LEADER, FOLLOWER, TRUNCATING = 0, 1, 2, 3


def view(cluster: Cluster) -> View:
    """Return (brokers, controller, committed, crashes[, deleted][, waiting, acked][, copies]), the view of a state.

    With ELR the controller's part has more elements (spec/models/MCELR). Clients are shown where there are any
    (spec/models/MCAcks), and requests that nobody waits for (spec/models/MCKeeping).
    """
    brokers = tuple(
        broker_view(cluster.model, broker, row) for broker, row in zip(cluster.brokers, cluster.network, strict=True)
    )
    return view_of_parts(brokers, controller_view(cluster.controller), cluster)


def view_of_parts(brokers: tuple[View, ...], controller: View, cluster: Cluster) -> View:
    """Combine the views of brokers and controller with the rest of the state.

    The order is that of MCReplication!View; what a model does not have (ELR, deletions, clients, abandoned requests) is left
    out of its views.
    """
    if cluster.model.setup.profile.elr:
        controller = (*controller, *_eligible_view(cluster))
    deleted = (cluster.deleted,) if cluster.deleted else ()
    clients = (cluster.waiting, cluster.acked) if cluster.waiting else ()
    copies = (
        (tuple(tuple(message_view(copy) for copy in row) for row in cluster.copies),)
        if cluster.model.bounds.max_abandoned
        else ()
    )
    return brokers, controller, cluster.committed, cluster.crashes, *deleted, *clients, *copies


def broker_view(model: BoundedModel, broker: Broker, row: NetworkRow) -> View:
    """Return (log, hw, mark, up, role, epoch, leader, isr, pending, remote, slots), the view of one broker.

    `row` is what is in flight for it as a follower: the slots. `pending` is the proposed ISR, 0 for none; `remote` are the
    log ends that it has recorded of the others.
    """
    partition = broker.partition
    setup = model.setup_of(partition.broker_id)
    _assert_entry_implied(setup, broker)
    return (
        record_epochs(broker),
        partition.log.hw,
        mark_of(setup, broker),
        int(broker.up),
        _role(setup, broker, alone=model.bounds.thread_truncates),
        partition.leader_epoch,
        partition.leader_id,
        mask(partition.state.isr),
        mask(partition.state.proposed_isr) if partition.state.is_inflight else 0,
        _remote(broker, len(row)),
        tuple(message_view(message) for message in row),
    )


def controller_view(controller: Controller) -> View:
    """Return (leader, leader epoch, isr, live), the view of the controller without ELR; the last two are bit masks."""
    return controller.leader, controller.leader_epoch, mask(controller.isr), mask(controller.live)


def _eligible_view(cluster: Cluster) -> View:
    """Return the part of the controller's view that a model with ELR adds.

    (ELR, last known leader, brokers that are down after a clean stop, by broker the members of its proposed ISR that have
    registered again since); sets are bit masks.
    """
    image = cluster.controller
    last = image.last_known_elr[0] if image.last_known_elr else UNDEFINED
    clean = mask(b for b, broker in enumerate(cluster.brokers) if broker.stopped_cleanly)
    return mask(image.elr), last, clean, tuple(mask(broker.partition.state.outdated) for broker in cluster.brokers)


def message_view(message: Message) -> View:
    """Return the view of a message: its kind, then what it says.

    () is nothing, 1 a fetch request, 2 data, 3 a diverging response, 4 an out-of-range one, 5 an OffsetsForLeaderEpoch
    request, 6 its response.
    """
    if message is None:
        return ()
    if isinstance(message, FetchRequest):
        return 1, message.current_leader_epoch, message.fetch_offset, message.last_fetched_epoch
    if isinstance(message, OffsetsForLeaderEpochRequest):
        return 5, message.current_leader_epoch, message.leader_epoch
    if isinstance(message, OffsetsForLeaderEpochResponse):
        return 6, message.request_epoch, message.leader_epoch, message.end_offset
    response = message.response
    if message.offsets is not None:
        return 4, message.request_epoch, message.request_offset, message.offsets.earliest, message.offsets.latest
    if response.is_diverging:
        return 3, message.request_epoch, message.request_offset, response.diverging_epoch, response.diverging_end
    start = (response.log_start,) if response.log_start else ()
    return 2, message.request_epoch, message.request_offset, response.hw, _answered_epochs(message), *start


def _answered_epochs(response: FetchResponseInFlight) -> tuple[int, ...]:
    """Return the epoch of each record in a response, from the requested offset on: batches may begin before it."""
    return tuple(b.epoch for b in response.response.records for _ in range(max(b.base, response.request_offset), b.last + 1))


def _role(setup: Setup, broker: Broker, *, alone: bool) -> int:
    """Return a broker's role as the specification has it: NO_ROLE, LEADER, FOLLOWER or TRUNCATING.

    `alone`: a follower that truncates without asking its leader is TRUNCATING, too.
    """
    if broker.partition.leader_epoch == UNDEFINED:
        return NO_ROLE
    if broker.partition.is_leader:
        return LEADER
    return TRUNCATING if broker_.is_truncating(setup, broker, alone=alone) else FOLLOWER


def _remote(broker: Broker, brokers: int) -> tuple[int, ...]:
    """Return the log end that a leader has recorded of each of the brokers, UNDEFINED where it has none."""
    log_ends = {r.broker_id: r.log_end for r in broker.partition.remotes}
    return tuple(log_ends.get(b, UNDEFINED) for b in range(brokers))


def mark_of(setup: Setup, broker: Broker) -> int:
    """Return the epoch of a trailing cache entry without records, UNDEFINED without one: `mark` of the specification.

    Raises IllegalStateError where the rest of the cache is not what the records imply, for a view leaves it out.
    """
    log, cache = broker.partition.log, broker.partition.log.cache
    trailing = len(cache.starts) > 0 and cache.starts[-1] >= log.end
    mark = cache.epochs[-1] if trailing else UNDEFINED
    records = record_epochs(broker)
    # A cache that nothing reads need not be well-formed, nor one of a log whose epochs fall: logs fork so under hw-only,
    # kip101 and kip279, and EpochsMonotone is violated then.
    if setup.profile.offsets_for_leader_epoch and all(a <= b for a, b in pairwise(records)):
        implied = implied_cache(records)
        if trailing:
            implied = (*implied, (mark, log.end))
        if cache.memory.pairs() != implied:
            raise IllegalStateError(f"epoch cache: expected {implied}, implied by the records; seen {cache.memory.pairs()}")
    return mark


def _assert_entry_implied(setup: Setup, broker: Broker) -> None:
    """Raise IllegalStateError unless the fetcher's entry is what epoch and log imply, for a view leaves it out.

    Only the offset of an entry that truncates is not implied (rule 3).
    """
    entry, log = broker.entry, broker.partition.log
    if entry is None:
        return
    seen: tuple[int, ...] = (entry.current_leader_epoch,)
    implied: tuple[int, ...] = (broker.partition.leader_epoch,)
    if not entry.truncating:
        seen = (*seen, entry.fetch_offset, entry.last_fetched_epoch)
        implied = (*implied, log.end, log_.latest_epoch(setup, log))
    if seen != implied:
        raise IllegalStateError(f"fetcher entry (epoch, offset, last epoch): expected {implied}; seen {seen}")

"""One broker as a value: its partition, the fetcher entry that feeds it, and whether the process is up.

The broker is one of the explored cluster, which has one partition. Its *entry* is the PartitionFetchState that a fetcher
thread has of the partition while it follows; `image` is the controller's registration, as the broker reads it; `metadata`
is the broker's metadata cache. impl.replica decides what a step does to partition and log.

Rules of this file

1. A step of a broker reads this broker and one input: a message, or the controller's registration. It returns the broker
   after it and what it sends. Nothing here sees another broker.
2. There is no clock: back-off, lag times and the scheduler's delays have no length. What only feeds a clock's decision is
   forgotten after each step (`settle`), so equal behaviour means equal values. So is what lies before the log start, as
   if each record had a segment of its own, and what only the response to DeleteRecords waits for.
3. Source: kafka.server.ReplicaManager#applyDelta for the order of a role change.
"""

from typing import NamedTuple

from tidegauge.impl.cluster.controller import Controller
from tidegauge.impl.messages import (
    AlterPartitionResponse,
    BrokerStates,
    FetchRequest,
    FetchResponse,
    FetchResponseInFlight,
    FollowerRequest,
    ListOffsets,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica import fetcher as fetcher_
from tidegauge.impl.replica import partition as partition_
from tidegauge.impl.replica.fetcher import Fetcher, PartitionFetchState
from tidegauge.impl.replica.partition_state import Partition, Replica
from tidegauge.impl.rules import NONE, OFFSET_OUT_OF_RANGE, UNDEFINED
from tidegauge.impl.storage import log as log_

NOW = 0
"""The model has no clock: every step happens at this time."""

REGISTERED, EARLIER = 1, 0
"""Broker epochs, where they count. They are compared and nothing else, so there are two: the one a broker is registered
with, whenever that was, and any before it. So states that behave the same are the same value. A leader's proposal is the
only place that can hold an earlier one: requests do not outlive the process that sent them, and a fetch brings a new one."""


class Broker(NamedTuple):
    """`source` is the broker whose fetcher thread holds the entry; `incarnation` its broker epoch, where that counts.

    `stopped_cleanly`: what is on disk holds the broker epoch of its last process (.kafka_cleanshutdown).
    """

    partition: Partition
    up: bool = True
    source: int = UNDEFINED
    entry: PartitionFetchState | None = None
    incarnation: int = UNDEFINED
    stopped_cleanly: bool = False

    @property
    def leads(self) -> bool:
        """Whether it is up and believes that it is the leader."""
        return self.up and self.partition.is_leader


def settle(broker: Broker) -> Broker:
    """Return the broker without what only a clock, the disk or a waiting client would read (rule 2 of this file).

    Every step ends with it, so that states that behave alike are the same state.
    """
    partition = broker.partition
    # A fetch's broker epoch is forgotten: only proposals send it again, and `PartitionState.outdated` covers those. None is
    # kept, for it says that there was no fetch in this leader epoch.
    remotes = tuple(
        Replica(r.broker_id, r.log_end, broker_epoch=None if r.broker_epoch is None else UNDEFINED)
        for r in partition.remotes
    )
    log = log_.flush_cache(partition.log)._replace(recovery_point=0, hw_segment=UNDEFINED)
    # Records below the log start are out of everybody's reach: whether they are still on disk makes no difference.
    if log.start > log.segments[0]:
        log = log._replace(segments=(log.start,), batches=tuple(b for b in log.batches if b.last >= log.start))
    # An epoch start below the log start decides nothing: the high watermark, which is compared as well, is not below it.
    epoch_start = max(partition.epoch_start, log.start) if partition.is_leader else partition.epoch_start
    entry = None if broker.entry is None else broker.entry._replace(delayed=False)
    return broker._replace(partition=partition._replace(log=log, epoch_start=epoch_start, remotes=remotes), entry=entry)


def _with_fetcher(setup: Setup, broker: Broker, fetcher: Fetcher) -> Broker:
    """Return the broker with the log and the entry as its fetcher thread has left them."""
    entry = fetcher.entry
    if entry is not None:
        # The lag itself is for a clock. Whether it is known matters only to releases that forget the last epoch after an
        # empty response: they do so while it is not (KAFKA-15510, AbstractFetcherThread#processFetchRequest).
        lag_is_known = entry.lag is not None and not setup.profile.keeps_last_epoch
        entry = entry._replace(lag=0 if lag_is_known else None)
    return settle(broker._replace(partition=broker.partition._replace(log=fetcher.log), entry=entry))


# ---------------------------------------------------------------------------------------------------------------------
# Roles


def become_leader(setup: Setup, broker: Broker, image: Controller, metadata: BrokerStates) -> Broker:
    """Become leader: fetchers stop first, then Partition#makeLeader. ReplicaManager#applyLocalLeadersDelta."""
    partition, _ = partition_.make_leader(
        setup, broker.partition, image.leader_epoch, image.partition_epoch, image.isr, image.assignment, metadata, NOW
    )
    # A new value without a fetcher entry: no thread fetches for a leader.
    return settle(Broker(partition, incarnation=broker.incarnation))


def become_follower(setup: Setup, broker: Broker, image: Controller, *, truncates: bool = True) -> Broker:
    """Become follower, and restart the fetcher if the leader epoch grew. ReplicaManager#applyLocalFollowersDelta.

    `truncates`: a truncation that needs no response (an empty cache, or hw-only) is done in the same step. Otherwise the
    entry is Truncating until the fetcher thread's next loop (`truncate_alone`), and takes no response until then.
    """
    partition, restart = partition_.make_follower(broker.partition, image.leader, image.leader_epoch, image.partition_epoch)
    if not restart:
        return settle(broker._replace(partition=partition))
    fetcher = fetcher_.add_partition(
        setup, Fetcher(partition.log), image.leader_epoch, fetcher_.initial_fetch_offset(setup, partition.log)
    )
    # Without a leader no thread gets the partition, so only makeFollowers (hw-only) truncates then.
    if truncates and (image.leader != UNDEFINED or not setup.profile.truncates_in_thread):
        fetcher = fetcher_.maybe_truncate_alone(setup, fetcher)
    entry = fetcher.entry if image.leader != UNDEFINED else None
    source = image.leader if entry is not None else UNDEFINED
    follower = Broker(partition, source=source, incarnation=broker.incarnation)
    return _with_fetcher(setup, follower, fetcher._replace(entry=entry))


# ---------------------------------------------------------------------------------------------------------------------
# Leader


def append_record(setup: Setup, broker: Broker, metadata: BrokerStates, acks: int = 1) -> Broker:
    """Append a producer's batch of one record; with acks=all (-1) it is refused below min.insync.replicas."""
    partition, _, _ = partition_.append_records_to_leader(setup, broker.partition, 1, acks=acks, metadata=metadata, now=NOW)
    return settle(broker._replace(partition=partition))


def serve_fetch(
    setup: Setup, broker: Broker, request: FetchRequest, metadata: BrokerStates, max_records: int
) -> tuple[Broker, FetchResponseInFlight | None]:
    """Handle a fetch of a follower, of `max_records` records; also return the response, None if there is none.

    Then the request was refused (a wrong epoch or role) or the broker is down, and the follower will fetch again.
    """
    if not broker.up:
        return broker, None
    partition, response = partition_.fetch_records(setup, broker.partition, request, metadata, NOW, max_records)
    offsets = None
    if response.error == OFFSET_OUT_OF_RANGE:
        # The ListOffsets requests of an out-of-range reset are answered in the same step.
        offsets = ListOffsets(partition.log.start, partition.log.end)
    elif response.error != NONE:
        return broker, None
    # A response keeps only what its reader uses, so that equal behaviour is one state.
    elif response.is_diverging:
        response = FetchResponse(NONE, diverging_epoch=response.diverging_epoch, diverging_end=response.diverging_end)
    in_flight = FetchResponseInFlight(request.current_leader_epoch, request.fetch_offset, response, offsets)
    return settle(broker._replace(partition=partition)), in_flight


def serve_epoch(setup: Setup, broker: Broker, request: OffsetsForLeaderEpochRequest) -> OffsetsForLeaderEpochResponse | None:
    """Return the response to an OffsetForLeaderEpoch request, None if there is none.

    Then the request was refused (a wrong epoch or role) or the broker is down, and the follower will send another.
    """
    if not broker.up:
        return None
    error, epoch, end = partition_.last_offset_for_leader_epoch(
        setup, broker.partition, request.current_leader_epoch, request.leader_epoch
    )
    return OffsetsForLeaderEpochResponse(request.current_leader_epoch, epoch, end) if error == NONE else None


def lagging_members(setup: Setup, broker: Broker) -> tuple[int, ...]:
    """Return the ISR members whose lag time may have run out: all that are behind; () if it is down or does not lead."""
    return partition_.out_of_sync_replicas(setup, broker.partition, NOW) if broker.up else ()


def shrink_isr(broker: Broker, out_of_sync: tuple[int, ...]) -> Broker:
    """Propose an ISR without `out_of_sync`."""
    return settle(broker._replace(partition=partition_.prepare_isr_shrink(broker.partition, out_of_sync)))


def handle_alter_partition_response(
    setup: Setup, broker: Broker, response: AlterPartitionResponse, metadata: BrokerStates
) -> Broker:
    """Handle the controller's response to the pending proposal."""
    partition, _ = partition_.handle_alter_partition_response(
        setup, broker.partition, broker.partition.state, response, metadata, NOW
    )
    return settle(broker._replace(partition=partition))


# ---------------------------------------------------------------------------------------------------------------------
# Follower


def next_request(setup: Setup, broker: Broker) -> FollowerRequest | None:
    """Return what the fetcher thread would send now, None for nothing.

    An entry that has to truncate asks with OffsetsForLeaderEpoch where its last epoch ends; any other one fetches.
    """
    if not broker.up or broker.entry is None:
        return None
    fetcher = Fetcher(broker.partition.log, broker.entry)
    epoch = fetcher_.epoch_to_ask(setup, fetcher)
    if epoch != UNDEFINED:
        return OffsetsForLeaderEpochRequest(broker.entry.current_leader_epoch, epoch)
    request = fetcher_.build_fetch(broker.partition.broker_id, fetcher)
    # The model does not look at the follower's log start: 0 keeps equal behaviour one value.
    return None if request is None else request._replace(replica_epoch=broker.incarnation, log_start=0)


def is_truncating(setup: Setup, broker: Broker, *, alone: bool) -> bool:
    """Return whether a follower has to truncate before it fetches; if it has no leader, whether it will have to.

    That is, by asking its leader with OffsetsForLeaderEpoch; with `alone`, also by itself, without a request.
    """
    if broker.entry is not None:
        return broker.entry.truncating
    # No thread has the partition while there is no leader: look at the entry that it would get, at any offset.
    added = fetcher_.add_partition(setup, Fetcher(broker.partition.log), broker.partition.leader_epoch, initial_offset=0)
    asks = fetcher_.epoch_to_ask(setup, added) != UNDEFINED
    return asks or (alone and added.entry is not None and added.entry.truncating)


def truncate_alone(setup: Setup, broker: Broker) -> Broker:
    """Make the truncation that needs no response, if the fetcher thread's next loop has one. #maybeTruncate."""
    fetcher = fetcher_.maybe_truncate_alone(setup, Fetcher(broker.partition.log, broker.entry))
    return _with_fetcher(setup, broker, fetcher)


def handle_fetch_response(setup: Setup, broker: Broker, leader: int, in_flight: FetchResponseInFlight) -> Broker:
    """Handle a fetch response of `leader`; it is dropped unless that leader's fetcher thread still has the partition."""
    if not broker.up or broker.source != leader:
        return broker
    fetcher = fetcher_.process_fetch_response(setup, Fetcher(broker.partition.log, broker.entry), in_flight)
    return _with_fetcher(setup, broker, fetcher)


def handle_offsets_for_leader_epoch_response(
    setup: Setup, broker: Broker, leader: int, in_flight: OffsetsForLeaderEpochResponse, error: int = NONE
) -> Broker:
    """Handle an OffsetsForLeaderEpoch response of `leader`: truncate where it says, or back off for an error.

    It is dropped unless that leader's fetcher thread still has the partition, and has to truncate it.
    """
    entry = broker.entry
    if not broker.up or broker.source != leader or entry is None or not entry.truncating:
        return broker
    fetcher = fetcher_.truncate_to_epoch_end_offset(
        setup,
        Fetcher(broker.partition.log, entry),
        in_flight.request_epoch,
        error,
        in_flight.leader_epoch,
        in_flight.end_offset,
    )
    return _with_fetcher(setup, broker, fetcher)


# ---------------------------------------------------------------------------------------------------------------------
# Any replica


def delete_records(setup: Setup, broker: Broker, start: int) -> Broker:
    """Delete records below `start`: by DeleteRecords at a leader, by retention at any other replica.

    Raises OffsetOutOfRangeError if `start` is above the high watermark of a replica that does not lead.
    """
    if broker.leads:
        partition, _, _ = partition_.delete_records(setup, broker.partition, start)
        return settle(broker._replace(partition=partition))
    log, _ = log_.maybe_increment_log_start(setup, broker.partition.log, start)
    return settle(broker._replace(partition=broker.partition._replace(log=log)))


# ---------------------------------------------------------------------------------------------------------------------
# Process


def crash(setup: Setup, broker: Broker, checkpointed_hw: int, log_end: int) -> Broker:
    """Kill the process; records below `log_end` were flushed, `checkpointed_hw` is the high watermark on disk.

    The returned broker is down, and has what a restart loads from disk.
    """
    return with_checkpoint(setup, kill(setup, broker, log_end), checkpointed_hw)


def kill(setup: Setup, broker: Broker, log_end: int) -> Broker:
    """Kill the process; only records below `log_end` were flushed. The returned broker has what a restart loads from disk.

    Its high watermark is that of a log without a checkpoint: `with_checkpoint` adds one. So the log is loaded once, whatever
    high watermarks it is combined with.
    """
    log = log_.load(setup, log_.lose_tail(broker.partition.log, log_end), log_start=broker.partition.log.start)
    return Broker(Partition(broker.partition.broker_id, log), up=False, incarnation=broker.incarnation)


def with_checkpoint(setup: Setup, dead: Broker, checkpointed_hw: int) -> Broker:
    """Return a broker that died, with the high watermark that was checkpointed last."""
    log = log_.apply_checkpoint(setup, dead.partition.log, checkpointed_hw)
    return settle(dead._replace(partition=dead.partition._replace(log=log)))


def stop(setup: Setup, broker: Broker) -> Broker:
    """Stop the process in order: all is flushed, the high watermark is checkpointed. BrokerServer#shutdown."""
    start = broker.partition.log.start
    log = log_.load(setup, broker.partition.log, log_start=start, clean=True)
    log = log_.apply_checkpoint(setup, log, broker.partition.log.hw)
    stopped = Broker(Partition(broker.partition.broker_id, log), up=False, incarnation=broker.incarnation)
    return settle(stopped._replace(stopped_cleanly=True))


def lose_disk(broker: Broker) -> Broker:
    """Return a broker that is down, with an empty disk."""
    return Broker(Partition(broker.partition.broker_id), up=False, incarnation=broker.incarnation)


def restart(broker: Broker) -> Broker:
    """Start the process again; it knows no metadata yet."""
    return broker._replace(up=True, stopped_cleanly=False)


def outdate_proposal(broker: Broker, other: int) -> Broker:
    """Mark broker `other` as outdated in a pending proposal of `broker`, for `other` has registered again.

    The broker epoch that the proposal names for it is an earlier one from now on.
    """
    state = broker.partition.state
    if not state.is_inflight or other not in state.proposed_isr or other in state.outdated:
        return broker
    outdated = state._replace(outdated=tuple(sorted((*state.outdated, other))))
    return broker._replace(partition=broker.partition._replace(state=outdated))

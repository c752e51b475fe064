"""The follower's side of a fetch, for one partition: AbstractFetcherThread, ReplicaFetcherThread, PartitionFetchState.

A `Fetcher` is one partition in one fetcher thread: its log, its *entry* (PartitionFetchState; None: the thread does not have
the partition), whether it is marked failed, and the truncations that the thread asked the log for. Functions take a
fetcher and return the changed one. An entry is Truncating (it has to find out where the logs diverge) or Fetching, and may
be delayed: a back-off, whose end the caller decides. A failed partition has no entry until new metadata adds it again.
The leader's responses are arguments. `setup` has the rules and the switches of a release: a branch on `setup.profile` is
where releases differ. *Truncation on fetch* (2.8): the leader finds a divergence from the fetch itself; before, the follower
asks with OffsetsForLeaderEpoch (KIP-101), and earlier still it truncates at its own high watermark.
"""

from typing import NamedTuple

from tidegauge.impl.errors import (
    CorruptRecordError,
    FatalExitError,
    IllegalStateError,
    KafkaError,
    RemoteStorageError,
    UnexpectedAppendOffsetError,
)
from tidegauge.impl.messages import Batch, FetchRequest, FetchResponse, FetchResponseInFlight, ListOffsets
from tidegauge.impl.profiles import Setup
from tidegauge.impl.rules import (
    FENCED_LEADER_EPOCH,
    NONE,
    OFFSET_OUT_OF_RANGE,
    RESET_TO_LEADER_END,
    RESET_TO_LEADER_START,
    UNDEFINED,
)
from tidegauge.impl.storage import epoch_cache
from tidegauge.impl.storage import log as log_
from tidegauge.impl.storage.log import AppendInfo, Log

# PartitionFetchState: one partition in one fetcher thread, and what makes it wait, fail or leave.
#
# Source: org.apache.kafka.server.PartitionFetchState, kafka.server.AbstractFetcherThread.


class PartitionFetchState(NamedTuple):
    """One entry of a fetcher thread. `lag` None: not known yet."""

    fetch_offset: int
    current_leader_epoch: int
    last_fetched_epoch: int = UNDEFINED
    truncating: bool = False
    delayed: bool = False
    lag: int | None = None

    @property
    def ready_for_fetch(self) -> bool:
        """Fetching and not delayed."""
        return not self.truncating and not self.delayed


class TruncationCall(NamedTuple):
    """A truncation that the thread asked the log for; `completed` is None for a full one."""

    offset: int
    completed: bool | None


class Fetcher(NamedTuple):
    """One partition in one fetcher thread."""

    log: Log
    entry: PartitionFetchState | None = None
    failed: bool = False
    calls: tuple[TruncationCall, ...] = ()


def remove_partition(fetcher: Fetcher) -> Fetcher:
    """Take the partition out of the thread; it is not marked failed any more. AbstractFetcherThread#removePartitions."""
    return fetcher._replace(entry=None, failed=False)


def mark_failed(fetcher: Fetcher) -> Fetcher:
    """Drop the entry until new metadata adds it again. AbstractFetcherThread#markPartitionFailed (KIP-461)."""
    return fetcher._replace(entry=None, failed=True)


def delay(fetcher: Fetcher) -> Fetcher:
    """Delay the entry, if there is one, by replica.fetch.backoff.ms. AbstractFetcherThread#delayPartitions."""
    if fetcher.entry is None:
        return fetcher
    return fetcher._replace(entry=fetcher.entry._replace(delayed=True))


def expire_delay(fetcher: Fetcher) -> Fetcher:
    """End the back-off of the entry, if there is one; the caller decides when."""
    if fetcher.entry is None:
        return fetcher
    return fetcher._replace(entry=fetcher.entry._replace(delayed=False))


def mark_for_truncation(fetcher: Fetcher, offset: int) -> Fetcher:
    """Set the entry, if there is one, back to Truncating, at `offset` or lower.

    AbstractFetcherThread#markPartitionsForTruncation: the log that a future replica copies from was truncated there.
    """
    entry = fetcher.entry
    if entry is None:
        return fetcher
    return fetcher._replace(
        entry=entry._replace(fetch_offset=min(offset, entry.fetch_offset), truncating=True, last_fetched_epoch=UNDEFINED)
    )


def on_partition_fenced(setup: Setup, fetcher: Fetcher, request_epoch: int) -> tuple[Fetcher, bool]:
    """Handle the error FENCED_LEADER_EPOCH for a request made in `request_epoch`. AbstractFetcherThread#onPartitionFenced.

    Also return whether the request may be made again. A partition fenced in its current epoch is marked failed: only new
    metadata can help.
    """
    if fetcher.entry is None:
        return fetcher, False
    # Another epoch in the entry means that new metadata arrived while the request was under way (told apart since 2.5).
    if request_epoch == fetcher.entry.current_leader_epoch or not setup.profile.fences_by_epoch:
        return mark_failed(fetcher), False
    return fetcher, True


# ---------------------------------------------------------------------------------------------------------------------
# Entries


def initial_fetch_offset(setup: Setup, log: Log) -> int:
    """Return the offset with which a new follower's partition is added to a fetcher. ReplicaManager#initialFetchOffset."""
    if setup.profile.initial_offset == "log-end":
        return log.end
    # Before truncation on fetch (2.8) the leader is asked first, so everything above the high watermark is in doubt.
    if setup.profile.initial_offset == "hw":
        return log.hw
    # With an epoch in the cache the leader finds a divergence from the fetch itself, so nothing has to be truncated
    # beforehand.
    return setup.rules.initial_fetch_offset(log.cache.epochs, log.end, log.hw)


def add_partition(
    setup: Setup, fetcher: Fetcher, leader_epoch: int, initial_offset: int, offsets: ListOffsets | None = None
) -> Fetcher:
    """Put the partition into the thread, Fetching or Truncating. AbstractFetcherThread#addPartitions, #partitionFetchState.

    `initial_offset` is where it begins; if it is negative, the leader is asked, and `offsets` are its answers to
    ListOffsets. Raises IllegalStateError if these are missing or an error.
    """
    fetcher = fetcher._replace(failed=False)
    # The same leader epoch again changes nothing, or a fetch under way would be lost.
    if fetcher.entry is not None and fetcher.entry.current_leader_epoch == leader_epoch:
        return fetcher
    if initial_offset < 0:
        if offsets is None or offsets.error(fetcher.log.end) != NONE:
            raise IllegalStateError(
                "initial offset: expected >= 0, or a response to ListOffsets with it; seen neither", left_behind=fetcher
            )
        return fetch_offset_and_truncate(setup, fetcher, leader_epoch, offsets)
    latest = log_.latest_epoch(setup, fetcher.log)
    # Without a cached epoch the fetch cannot carry lastFetchedEpoch, and the leader could not find a divergence.
    if setup.profile.truncation_on_fetch and latest != UNDEFINED:
        return fetcher._replace(entry=PartitionFetchState(initial_offset, leader_epoch, latest))
    return fetcher._replace(entry=PartitionFetchState(initial_offset, leader_epoch, truncating=True))


# ---------------------------------------------------------------------------------------------------------------------
# Truncation


def _truncate(setup: Setup, fetcher: Fetcher, entry: PartitionFetchState, offset: int, completed: bool) -> Fetcher:
    """Truncate the log at `offset`, from where the entry goes on; record the call.

    AbstractFetcherThread#doTruncate, #updateFetchOffsetAndMaybeMarkTruncationComplete. `completed`: no further
    OffsetsForLeaderEpoch round is needed, so the entry is Fetching then. If the log refuses, the partition is failed.
    """
    fetcher = fetcher._replace(calls=(*fetcher.calls, TruncationCall(offset, completed)))
    try:
        log, _ = log_.truncate_to(setup, fetcher.log, offset)
    except KafkaError:
        if not setup.profile.fails_partitions:
            raise
        # KIP-461 (2.3) fails this partition only; before that the exception ended the thread.
        return mark_failed(fetcher)
    return fetcher._replace(
        log=log,
        entry=entry._replace(
            fetch_offset=offset,
            last_fetched_epoch=log_.latest_epoch(setup, log),
            truncating=not completed and not setup.profile.truncation_on_fetch,
        ),
    )


def truncate_to_high_watermark(setup: Setup, fetcher: Fetcher) -> Fetcher:
    """Truncate at the high watermark of when the entry was made. AbstractFetcherThread#truncateToHighWatermark.

    That is the entry's fetch offset, with which it was added.
    """
    if fetcher.entry is None:
        return fetcher
    # In 0.11 and 1.0 an entry is added at the log end, so its offset is not the high watermark.
    added_at_log_end = setup.profile.initial_offset == "log-end"
    offset = fetcher.log.hw if added_at_log_end else fetcher.entry.fetch_offset
    return _truncate(setup, fetcher, fetcher.entry, offset, completed=True)


def epoch_to_ask(setup: Setup, fetcher: Fetcher) -> int:
    """Return the leader epoch whose end a Truncating entry asks the leader for with OffsetsForLeaderEpoch.

    It is the latest one in the cache. UNDEFINED: the entry truncates without a request (an empty cache, or a release before
    KIP-101), or has nothing to truncate, or is delayed. AbstractFetcherThread#fetchTruncatingPartitions.
    """
    entry = fetcher.entry
    if entry is None or not entry.truncating or entry.delayed or not setup.profile.offsets_for_leader_epoch:
        return UNDEFINED
    return log_.latest_epoch(setup, fetcher.log)


def maybe_truncate_alone(setup: Setup, fetcher: Fetcher) -> Fetcher:
    """Truncate at the high watermark if the entry is Truncating and has no epoch to ask the leader about.

    AbstractFetcherThread#maybeTruncate. Otherwise the fetcher is returned unchanged.
    """
    entry = fetcher.entry
    if entry is None or not entry.truncating or entry.delayed or epoch_to_ask(setup, fetcher) != UNDEFINED:
        return fetcher
    return truncate_to_high_watermark(setup, fetcher)


def truncate_to_epoch_end_offset(
    setup: Setup, fetcher: Fetcher, request_epoch: int, error: int, leader_epoch: int, leader_end: int
) -> Fetcher:
    """Handle an OffsetsForLeaderEpoch response to a request that was made in `request_epoch`: truncate, or back off.

    The response is `error`, or the epoch `leader_epoch` and where it ends. AbstractFetcherThread#truncateToEpochEndOffsets
    drops it if the entry is in another epoch by now (KAFKA-7786).
    """
    entry = fetcher.entry
    # True: it waits for such a response, for only a Truncating entry has asked.
    if entry is None or not setup.rules.accepts_epoch_response(
        entry.current_leader_epoch, True, request_epoch, setup.profile.epoch_responses_checked
    ):
        return fetcher
    if error == FENCED_LEADER_EPOCH:
        fetcher, may_retry = on_partition_fenced(setup, fetcher, request_epoch)
        return delay(fetcher) if may_retry else fetcher
    if error != NONE:
        return delay(fetcher)
    return _truncate_by_response(setup, fetcher, entry, leader_epoch, leader_end)


def _truncate_by_response(
    setup: Setup, fetcher: Fetcher, entry: PartitionFetchState, leader_epoch: int, leader_end: int
) -> Fetcher:
    """Truncate where the leader's response says that the logs diverge. AbstractFetcherThread#getOffsetTruncationState.

    `leader_epoch` ends at `leader_end` in the leader's log; UNDEFINED where the leader has no answer.
    """
    log, cache = fetcher.log, fetcher.log.cache
    # Where the leader has no answer: the high watermark that the log had when the entry was made. In 0.11 and 1.0 an entry
    # is added at the log end, so its offset is not that.
    fallback = log.hw if setup.profile.initial_offset == "log-end" else entry.fetch_offset
    # An epoch for which our own cache has no answer is as if the cache were empty: 2.0.0 had none below the first entry.
    has_epoch = log_.end_offset_for_epoch(setup, log, leader_epoch) != (UNDEFINED, UNDEFINED)
    epochs, starts = (cache.epochs, cache.starts) if has_epoch else ((), ())
    _, offset, completed = setup.rules.truncation_target(epochs, starts, log.end, fallback, leader_epoch, leader_end)
    return _truncate(setup, fetcher, entry, offset, completed)


# ---------------------------------------------------------------------------------------------------------------------
# Fetch


def build_fetch(broker_id: int, fetcher: Fetcher) -> FetchRequest | None:
    """Build the partition's part of the next fetch, None if the entry is not ready for one. RemoteLeaderEndPoint#buildFetch.

    `broker_id` is the follower's own.
    """
    entry = fetcher.entry
    if entry is None or not entry.ready_for_fetch:
        return None
    return FetchRequest(
        broker_id, entry.current_leader_epoch, entry.fetch_offset, entry.last_fetched_epoch, fetcher.log.start
    )


def accepts(setup: Setup, entry: PartitionFetchState | None, in_flight: FetchResponseInFlight) -> bool:
    """Return whether the entry takes the response, being where it was when it sent the request; else it is dropped."""
    return entry is not None and setup.rules.accepts_fetch_response(
        entry.fetch_offset,
        entry.current_leader_epoch,
        entry.ready_for_fetch,
        in_flight.request_offset,
        in_flight.request_epoch,
        setup.profile.response_epoch_checked,
    )


def process_fetch_response(
    setup: Setup, fetcher: Fetcher, in_flight: FetchResponseInFlight, corrupt: bool = False
) -> Fetcher:
    """Process one partition of a fetch response. AbstractFetcherThread#processFetchRequest, #truncateOnFetchResponse.

    `in_flight` is the response with the offset and epoch of its request. A diverging response only truncates: its records,
    high watermark and log start are ignored (KAFKA-14704). `corrupt`: the checksum of the last batch does not match.
    """
    entry, response = fetcher.entry, in_flight.response
    if entry is None or not accepts(setup, entry, in_flight):
        return fetcher
    if response.error == NONE:
        if setup.profile.truncation_on_fetch and response.is_diverging:
            # Up to 3.4.0 the high watermark of a diverging response was taken over before the truncation (KAFKA-14704).
            if setup.profile.applies_diverging:
                fetcher = _process_data(setup, fetcher, entry, response, corrupt)
                if fetcher.entry is None:
                    return fetcher
            return _truncate_by_response(setup, fetcher, entry, response.diverging_epoch, response.diverging_end)
        return _process_data(setup, fetcher, entry, response, corrupt)
    # ListOffsets decides where to go on; every error but this one and a fenced epoch is transient and retried after the
    # back-off.
    if response.error == OFFSET_OUT_OF_RANGE:
        return _handle_out_of_range(setup, fetcher, entry, in_flight)
    if response.error == FENCED_LEADER_EPOCH:
        fetcher, may_retry = on_partition_fenced(setup, fetcher, in_flight.request_epoch)
        return delay(fetcher) if may_retry else fetcher
    return delay(fetcher)


def _process_data(
    setup: Setup, fetcher: Fetcher, entry: PartitionFetchState, response: FetchResponse, corrupt: bool
) -> Fetcher:
    """Append the records of a response, then take over its high watermark and log start; move the entry on.

    ReplicaFetcherThread#processPartitionData. Order matters: the high watermark is clamped to the log end that the append
    has moved. `corrupt`: the checksum of the last batch does not match.
    """
    log = fetcher.log
    try:
        log, info = _append(setup, log, entry, response, corrupt)
        log = log_.update_high_watermark(setup, log, response.hw)
        log, _ = log_.maybe_increment_log_start(setup, log, response.log_start)
    # A bad checksum may come from the network: fetch the same offset again (AbstractFetcherThread#processFetchRequest).
    except CorruptRecordError:
        return delay(fetcher)
    except KafkaError as thrown:
        if not setup.profile.fails_partitions:
            raise
        # Kafka writes the epoch cache before the records, so a failed append can leave cache entries: the error carries
        # them.
        return mark_failed(fetcher._replace(log=log if thrown.left_behind is None else thrown.left_behind))
    if info.batches:
        next_offset, last_epoch = info.last + 1, info.last_epoch
    # 3.5.1 to 3.6 forgot the last fetched epoch with an empty response (KAFKA-15510).
    else:
        next_offset = entry.fetch_offset
        last_epoch = entry.last_fetched_epoch if setup.profile.keeps_last_epoch else UNDEFINED
    # An empty response changes the entry only while its lag is unknown.
    if info.batches or entry.lag is None:
        entry = PartitionFetchState(
            next_offset, entry.current_leader_epoch, last_epoch, lag=max(0, response.hw - next_offset)
        )
    return fetcher._replace(log=log, entry=entry)


def _append(
    setup: Setup, log: Log, entry: PartitionFetchState, response: FetchResponse, corrupt: bool
) -> tuple[Log, AppendInfo]:
    """Append the records of a response to the log, which must end where the entry fetched.

    ReplicaFetcherThread#processPartitionData. Raises IllegalStateError otherwise.
    """
    if entry.fetch_offset != log.end:
        raise IllegalStateError(f"fetch offset: expected the log end {log.end}; seen {entry.fetch_offset}")
    return append_records_to_follower(setup, log, response.records, entry.current_leader_epoch, last_is_corrupt=corrupt)


def append_records_to_follower(
    setup: Setup, log: Log, batches: tuple[Batch, ...], leader_epoch: int, *, last_is_corrupt: bool = False
) -> tuple[Log, AppendInfo]:
    """Append fetched batches. Partition#appendRecordsToFollowerOrFutureReplica.

    An empty log whose start lies inside what was fetched starts again at the first batch's base (KAFKA-6975).
    `last_is_corrupt`: the checksum of the last batch does not match.
    """
    try:
        return log_.append_as_follower(setup, log, batches, leader_epoch, last_is_corrupt=last_is_corrupt)
    except UnexpectedAppendOffsetError:
        accepted = log_.without_later_epochs(setup, batches, leader_epoch)
        first, last = accepted[0].base, accepted[-1].last
        # After DeleteRecords or a reset the start may be inside a batch, which the leader sends whole. Only an empty log
        # (start and end are equal) can begin there.
        if log.end != log.start or not first < log.end <= last:
            raise
        return log_.append_as_follower(setup, log_.truncate_fully_and_start_at(log, first), batches, leader_epoch)


# ---------------------------------------------------------------------------------------------------------------------
# Out of range


def fetch_offset_and_truncate(setup: Setup, fetcher: Fetcher, leader_epoch: int, offsets: ListOffsets) -> Fetcher:
    """Go on at an offset that the leader has, after an out-of-range fetch. AbstractFetcherThread#fetchOffsetAndTruncate.

    `offsets` are the leader's earliest and latest offset (ListOffsets). Raises FatalExitError where a release up to 2.0.0
    would halt rather than lose records.
    """
    case, offset = setup.rules.out_of_range_reset(offsets.earliest, offsets.latest, fetcher.log.end)
    # The follower is ahead of its leader. With unclean election off that must not happen, so the broker stopped (up to
    # 2.0.0).
    if case == RESET_TO_LEADER_END and setup.profile.exits_out_of_range and not setup.unclean_leader_election_enable:
        raise FatalExitError(
            f"leader's log end: expected >= own log end {fetcher.log.end}; seen {offsets.latest}; the broker exits, "
            "because unclean.leader.election.enable is false"
        )
    log, calls, lag = fetcher.log, fetcher.calls, offsets.latest - offset
    # In the third case, RESET_TO_LOG_END, the log stays as it is.
    if case == RESET_TO_LEADER_END:
        calls = (*calls, TruncationCall(offset, completed=True))
        log, _ = log_.truncate_to(setup, log, offset)
    # The leader has deleted everything that the follower holds: no record is shared, so the whole log goes.
    elif case == RESET_TO_LEADER_START:
        calls = (*calls, TruncationCall(offset, completed=None))
        log = log_.truncate_fully_and_start_at(log, offset)
    entry = PartitionFetchState(offset, leader_epoch, log_.latest_epoch(setup, log), lag=lag)
    return fetcher._replace(log=log, entry=entry, calls=calls)


def _handle_out_of_range(
    setup: Setup, fetcher: Fetcher, entry: PartitionFetchState, in_flight: FetchResponseInFlight
) -> Fetcher:
    """Handle the error OFFSET_OUT_OF_RANGE: reset the entry, or back off. AbstractFetcherThread#handleOutOfRangeError."""
    # The leader did not answer the ListOffsets requests that the follower then sends.
    if in_flight.offsets is None:
        return delay(fetcher)
    error = in_flight.offsets.error(fetcher.log.end)
    if error == FENCED_LEADER_EPOCH:
        fetcher, may_retry = on_partition_fenced(setup, fetcher, in_flight.request_epoch)
        # A fenced ListOffsets of an older epoch is retried without delay: the entry already has the new epoch.
        return fetcher if may_retry else delay(fetcher)
    if error != NONE:
        return delay(fetcher)
    try:
        return fetch_offset_and_truncate(setup, fetcher, entry.current_leader_epoch, in_flight.offsets)
    except KafkaError:
        return delay(fetcher)


# ---------------------------------------------------------------------------------------------------------------------
# Offsets that are only in remote storage: the leader's response and the follower's restart behind it.
#
# Rules of this part
#
# 1. A log whose start lies below its first local segment keeps the older part in remote storage. What is there is handed
#    in: impl has no storage.
# 2. A follower begins after the remote segment that holds the offset below the leader's first local one, with that
#    segment's epochs: nothing is copied.
# 3. Source: kafka.server.ReplicaManager#handleOffsetOutOfRangeError, kafka.server.TierStateMachine (KIP-405).


class RemoteSegment(NamedTuple):
    """A remote segment, last offset inclusive, and (epoch, start offset) of the log's leader epochs up to its end."""

    base: int
    last: int
    epochs: tuple[tuple[int, int], ...]


class LeaderOffsets(NamedTuple):
    """The leader's responses: its log start, its first local offset with the epoch of that, its log end.

    `previous` is its OffsetsForLeaderEpoch response for the epoch before, (epoch, end).
    """

    log_start: int
    earliest_local: int
    earliest_local_epoch: int
    log_end: int
    previous: tuple[int, int] = (UNDEFINED, UNDEFINED)


def is_in_remote_storage(log: Log, offset: int) -> bool:
    """Return whether an offset is in remote storage only: not below the log start, but below the first local segment."""
    return log.start <= offset < log.segments[0]


def target_epoch(leader: LeaderOffsets) -> int:
    """Return the epoch of the offset just below the leader's first local one. TierStateMachine#buildRemoteLogAuxState."""
    # There is no epoch before 0.
    if leader.earliest_local_epoch == 0:
        return 0
    epoch, end = leader.previous
    # The offset belongs to the previous epoch if that one reaches it; otherwise the first local epoch began before it.
    return epoch if end > leader.earliest_local - 1 else leader.earliest_local_epoch


def start_after_remote_storage(
    setup: Setup,
    fetcher: Fetcher,
    leader_epoch: int,
    leader: LeaderOffsets,
    segments: tuple[RemoteSegment, ...],
    *,
    enabled: bool = True,
) -> Fetcher:
    """Begin behind what the leader has in remote storage only, copying nothing. TierStateMachine#start (KIP-405).

    The log begins anew after the remote segment that holds the offset below the leader's first local one, with that
    segment's epochs. `segments` are those in remote storage; `enabled`: this broker uses it, too. Raises RemoteStorageError
    otherwise, or if there is no such segment; the caller then delays the partition.
    """
    if not enabled:
        raise RemoteStorageError("remote storage: expected to be enabled here as at the leader; seen disabled")
    epoch, last_remote = target_epoch(leader), leader.earliest_local - 1
    # Segments of a deposed leader may hold the same offset in another epoch.
    segment = next(
        (
            candidate
            for candidate in segments
            if candidate.base <= last_remote <= candidate.last and _epoch_at(setup, candidate, last_remote) == epoch
        ),
        None,
    )
    if segment is None:
        raise RemoteStorageError(f"remote segment: expected one with offset {last_remote} in epoch {epoch}; seen none")
    next_offset = segment.last + 1
    log = log_.truncate_fully_and_start_at(fetcher.log, next_offset, leader.log_start)
    cache = epoch_cache.assign_all(
        setup, log.cache, tuple((entry_epoch, start) for entry_epoch, start in segment.epochs if start < next_offset)
    )
    log = log._replace(cache=epoch_cache.truncate_from_start(setup, cache, leader.log_start))
    entry = PartitionFetchState(next_offset, leader_epoch, log_.latest_epoch(setup, log), lag=leader.log_end - next_offset)
    return fetcher._replace(log=log, entry=entry)


def _epoch_at(setup: Setup, segment: RemoteSegment, offset: int) -> int:
    """Return the leader epoch that a remote segment's epochs give for an offset."""
    epochs, starts = [epoch for epoch, _ in segment.epochs], [start for _, start in segment.epochs]
    return setup.rules.epoch_for_offset(epochs, starts, offset)

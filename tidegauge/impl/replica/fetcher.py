"""The follower's side of a fetch, for one partition: AbstractFetcherThread, ReplicaFetcherThread, PartitionFetchState."""

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
# Rules of this part
#
# 1. An entry is Truncating or Fetching, and delayed or not. A failed partition has none: only new metadata adds it again.
# 2. A delay has no length here: the caller decides when back-off is over (`expire_delay`, impl.fetch.fetcher_thread).
# 3. Source: org.apache.kafka.server.PartitionFetchState, kafka.server.AbstractFetcherThread.


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
    """Take the partition out of the thread. AbstractFetcherThread#removePartitions."""
    return fetcher._replace(entry=None, failed=False)


def mark_failed(fetcher: Fetcher) -> Fetcher:
    """Drop the entry until new metadata adds it again. AbstractFetcherThread#markPartitionFailed (KIP-461)."""
    return fetcher._replace(entry=None, failed=True)


def delay(fetcher: Fetcher) -> Fetcher:
    """Back off for replica.fetch.backoff.ms. AbstractFetcherThread#delayPartitions."""
    if fetcher.entry is None:
        return fetcher
    return fetcher._replace(entry=fetcher.entry._replace(delayed=True))


def expire_delay(fetcher: Fetcher) -> Fetcher:
    """End the back-off; the caller decides when."""
    if fetcher.entry is None:
        return fetcher
    return fetcher._replace(entry=fetcher.entry._replace(delayed=False))


def mark_for_truncation(fetcher: Fetcher, offset: int) -> Fetcher:
    """Go back to Truncating, at most at `offset`. AbstractFetcherThread#markPartitionsForTruncation."""
    entry = fetcher.entry
    if entry is None:
        return fetcher
    return fetcher._replace(
        entry=entry._replace(fetch_offset=min(offset, entry.fetch_offset), truncating=True, last_fetched_epoch=UNDEFINED)
    )


def on_partition_fenced(setup: Setup, fetcher: Fetcher, request_epoch: int) -> tuple[Fetcher, bool]:
    """Handle FENCED_LEADER_EPOCH; also return whether the entry is in another epoch by now. #onPartitionFenced.

    A partition fenced in its current epoch is failed: only new metadata can help.
    """
    if fetcher.entry is None:
        return fetcher, False
    # A later epoch in the entry means that new metadata arrived while the request was under way: it may be retried (since
    # 2.5).
    if request_epoch == fetcher.entry.current_leader_epoch or not setup.profile.fences_by_epoch:
        return mark_failed(fetcher), False
    return fetcher, True


# The follower's side of a fetch: AbstractFetcherThread and ReplicaFetcherThread, for one partition.
#
# Rules of this part
#
# 1. A fetcher value is the log, the thread's entry for it (None: not in this thread) and whether it is marked failed.
#    Functions take one and return the changed one; `calls` lists what the thread asked of the log, in order.
# 2. The leader's responses are arguments: fetched records, ListOffsets results, error codes.
# 3. Source: kafka.server.AbstractFetcherThread, ReplicaFetcherThread.


# ---------------------------------------------------------------------------------------------------------------------
# Entries


def initial_fetch_offset(setup: Setup, log: Log) -> int:
    """Return where a new follower starts to fetch. ReplicaManager#initialFetchOffset."""
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
    """Put the partition into the thread. AbstractFetcherThread#addPartitions, #partitionFetchState.

    An entry of the same epoch is left alone; a negative offset asks the leader; otherwise truncation on fetch decides
    whether fetching can start at once. An error of the leader, or no response, leaves the thread's caller with it.
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
    """Truncate the log and move the entry. #doTruncate, #updateFetchOffsetAndMaybeMarkTruncationComplete.

    `completed`: no further OffsetsForLeaderEpoch round is needed.
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
    """Truncate at the entry's offset, the high watermark when it was made. AbstractFetcherThread#truncateToHighWatermark."""
    if fetcher.entry is None:
        return fetcher
    # 0.11 and 1.0 start at the log end, so there the entry's offset is not the high watermark.
    at_hw = setup.profile.initial_offset == "log-end"
    return _truncate(setup, fetcher, fetcher.entry, fetcher.log.hw if at_hw else fetcher.entry.fetch_offset, True)


def epoch_to_ask(setup: Setup, fetcher: Fetcher) -> int:
    """Return the epoch a truncating entry asks the leader about, UNDEFINED when it truncates by itself or not at all.

    AbstractFetcherThread#fetchTruncatingPartitions.
    """
    entry = fetcher.entry
    if entry is None or not entry.truncating or entry.delayed or not setup.profile.offsets_for_leader_epoch:
        return UNDEFINED
    return log_.latest_epoch(setup, fetcher.log)


def maybe_truncate_alone(setup: Setup, fetcher: Fetcher) -> Fetcher:
    """Truncate without a response where none is needed. AbstractFetcherThread#maybeTruncate."""
    entry = fetcher.entry
    if entry is None or not entry.truncating or entry.delayed or epoch_to_ask(setup, fetcher) != UNDEFINED:
        return fetcher
    return truncate_to_high_watermark(setup, fetcher)


def truncate_to_epoch_end_offset(
    setup: Setup, fetcher: Fetcher, asked_in: int, error: int, leader_epoch: int, leader_end: int
) -> Fetcher:
    """Handle an OffsetsForLeaderEpoch response to a request made in epoch `asked_in`.

    AbstractFetcherThread#truncateToEpochEndOffsets drops it when the entry's epoch has changed (KAFKA-7786).
    """
    entry = fetcher.entry
    if entry is None or not setup.rules.accepts_epoch_response(
        entry.current_leader_epoch, True, asked_in, setup.profile.epoch_responses_checked
    ):
        return fetcher
    if error == FENCED_LEADER_EPOCH:
        fetcher, moved_on = on_partition_fenced(setup, fetcher, asked_in)
        return delay(fetcher) if moved_on else fetcher
    if error != NONE:
        return delay(fetcher)
    return _truncate_by_response(setup, fetcher, entry, leader_epoch, leader_end)


def _truncate_by_response(
    setup: Setup, fetcher: Fetcher, entry: PartitionFetchState, leader_epoch: int, leader_end: int
) -> Fetcher:
    """Truncate where the logs of leader and follower diverge. AbstractFetcherThread#getOffsetTruncationState."""
    log, cache = fetcher.log, fetcher.log.cache
    fallback = log.hw if setup.profile.initial_offset == "log-end" else entry.fetch_offset
    # An epoch for which our own cache has no answer is as if the cache were empty: 2.0.0 had none below the first entry.
    has_epoch = log_.end_offset_for_epoch(setup, log, leader_epoch) != (UNDEFINED, UNDEFINED)
    epochs, starts = (cache.epochs, cache.starts) if has_epoch else ((), ())
    _, offset, completed = setup.rules.truncation_target(epochs, starts, log.end, fallback, leader_epoch, leader_end)
    return _truncate(setup, fetcher, entry, offset, completed)


# ---------------------------------------------------------------------------------------------------------------------
# Fetch


def build_fetch(broker_id: int, fetcher: Fetcher) -> FetchRequest | None:
    """Build the next request, None when the entry is not ready. RemoteLeaderEndPoint#buildFetch."""
    entry = fetcher.entry
    if entry is None or not entry.ready_for_fetch:
        return None
    return FetchRequest(
        broker_id, entry.current_leader_epoch, entry.fetch_offset, entry.last_fetched_epoch, fetcher.log.start
    )


def accepts(setup: Setup, entry: PartitionFetchState | None, in_flight: FetchResponseInFlight) -> bool:
    """Return whether the entry takes the response; otherwise it is dropped silently."""
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

    A diverging response only truncates: its records, high watermark and log start are ignored (KAFKA-14704). `corrupt`: the
    checksum of the last batch does not match.
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
        fetcher, moved_on = on_partition_fenced(setup, fetcher, in_flight.request_epoch)
        return delay(fetcher) if moved_on else fetcher
    return delay(fetcher)


def _process_data(
    setup: Setup, fetcher: Fetcher, entry: PartitionFetchState, response: FetchResponse, corrupt: bool
) -> Fetcher:
    """Append the records, then take over high watermark and log start. ReplicaFetcherThread#processPartitionData.

    Order matters: the high watermark is clamped to the log end that the append has moved.
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
    next_offset = info.last + 1 if info.batches else entry.fetch_offset
    last_epoch = entry.last_fetched_epoch if setup.profile.keeps_last_epoch else UNDEFINED
    last_epoch = info.last_epoch if info.batches else last_epoch
    # An empty response changes the entry only while its lag is unknown; 3.5.1 to 3.6 forgot the last epoch there
    # (KAFKA-15510).
    if info.batches or entry.lag is None:
        entry = PartitionFetchState(
            next_offset, entry.current_leader_epoch, last_epoch, lag=max(0, response.hw - next_offset)
        )
    return fetcher._replace(log=log, entry=entry)


def _append(
    setup: Setup, log: Log, entry: PartitionFetchState, response: FetchResponse, corrupt: bool
) -> tuple[Log, AppendInfo]:
    """Append fetched records, which have to begin at the log end. ReplicaFetcherThread#processPartitionData."""
    if entry.fetch_offset != log.end:
        raise IllegalStateError(f"fetch offset: expected the log end {log.end}; seen {entry.fetch_offset}")
    return append_records_to_follower(setup, log, response.records, entry.current_leader_epoch, last_is_corrupt=corrupt)


def append_records_to_follower(
    setup: Setup, log: Log, batches: tuple[Batch, ...], leader_epoch: int, *, last_is_corrupt: bool = False
) -> tuple[Log, AppendInfo]:
    """Append fetched batches. Partition#appendRecordsToFollowerOrFutureReplica.

    An empty log whose start lies inside what was fetched starts again at the first batch's base (KAFKA-6975).
    """
    try:
        return log_.append_as_follower(setup, log, batches, leader_epoch, last_is_corrupt=last_is_corrupt)
    except UnexpectedAppendOffsetError:
        accepted = log_.without_later_epochs(setup, batches, leader_epoch)
        first, last = accepted[0].base, accepted[-1].last
        # After DeleteRecords or a reset the start may be inside a batch, which the leader sends whole. Only an empty log
        # can begin there.
        if log.end != log.start or not first < log.end <= last:
            raise
        return log_.append_as_follower(setup, log_.truncate_fully_and_start_at(log, first), batches, leader_epoch)


# ---------------------------------------------------------------------------------------------------------------------
# Out of range


def fetch_offset_and_truncate(setup: Setup, fetcher: Fetcher, leader_epoch: int, offsets: ListOffsets) -> Fetcher:
    """Reset the fetch offset to the leader's offsets. AbstractFetcherThread#fetchOffsetAndTruncate.

    Raises FatalExitError where a release up to 2.0.0 would halt rather than lose records.
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
    if case == RESET_TO_LEADER_END:
        calls = (*calls, TruncationCall(offset, True))
        log, _ = log_.truncate_to(setup, log, offset)
    # The leader has deleted everything that the follower holds: no record is shared, so the whole log goes.
    elif case == RESET_TO_LEADER_START:
        calls = (*calls, TruncationCall(offset, None))
        log = log_.truncate_fully_and_start_at(log, offset)
    entry = PartitionFetchState(offset, leader_epoch, log_.latest_epoch(setup, log), lag=lag)
    return fetcher._replace(log=log, entry=entry, calls=calls)


def _handle_out_of_range(
    setup: Setup, fetcher: Fetcher, entry: PartitionFetchState, in_flight: FetchResponseInFlight
) -> Fetcher:
    """Handle OFFSET_OUT_OF_RANGE. AbstractFetcherThread#handleOutOfRangeError."""
    if in_flight.offsets is None:
        return delay(fetcher)
    error = in_flight.offsets.error(fetcher.log.end)
    if error == FENCED_LEADER_EPOCH:
        fetcher, moved_on = on_partition_fenced(setup, fetcher, in_flight.request_epoch)
        # A fenced ListOffsets of an older epoch is retried without delay: the entry already has the new epoch.
        return fetcher if moved_on else delay(fetcher)
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
    """A remote segment, last offset inclusive, and the epochs of the log up to its end."""

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
    """Return whether an offset is below the first local segment and not below the log start."""
    return log.start <= offset < log.segments[0]


def target_epoch(leader: LeaderOffsets) -> int:
    """Return the epoch of the last offset that is not local at the leader. TierStateMachine#buildRemoteLogAuxState."""
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
    """Begin after remote storage. TierStateMachine#start; the caller delays the partition when this raises."""
    if not enabled:
        raise RemoteStorageError("remote storage: expected to be enabled here as at the leader; seen disabled")
    epoch, wanted = target_epoch(leader), leader.earliest_local - 1
    segment = next(
        (
            candidate
            for candidate in segments
            if candidate.base <= wanted <= candidate.last and _epoch_at(setup, candidate, wanted) == epoch
        ),
        None,
    )
    if segment is None:
        raise RemoteStorageError(f"remote segment: expected one with offset {wanted} in epoch {epoch}; seen none")
    next_offset = segment.last + 1
    log = log_.truncate_fully_and_start_at(fetcher.log, next_offset, leader.log_start)
    cache = epoch_cache.assign_all(
        setup, log.cache, tuple((entry_epoch, start) for entry_epoch, start in segment.epochs if start < next_offset)
    )
    log = log._replace(cache=epoch_cache.truncate_from_start(setup, cache, leader.log_start))
    entry = PartitionFetchState(next_offset, leader_epoch, log_.latest_epoch(setup, log), lag=leader.log_end - next_offset)
    return fetcher._replace(log=log, entry=entry)


def _epoch_at(setup: Setup, segment: RemoteSegment, offset: int) -> int:
    epochs, starts = [e for e, _ in segment.epochs], [s for _, s in segment.epochs]
    return setup.rules.epoch_for_offset(epochs, starts, offset)

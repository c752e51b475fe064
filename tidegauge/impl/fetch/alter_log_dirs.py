"""Moving a replica to another log directory: the future replica and the thread that fills it.

Rules of this file

1. It is the follower's fetch loop against the broker's own log, which may be that of a follower: leadership is not needed,
   the leader epoch is still compared. Truncation is always by OffsetsForLeaderEpoch, never on fetch.
2. It starts at the future log's high watermark. When both logs end at the same offset the future one takes the place of the
   current one.
3. One partition at a time is filled, the first by name; it goes on until it is done or has to wait.
4. A truncation of the current log sends the future replica back to truncating
   (impl.replica.fetcher:mark_for_truncation).
5. Source: kafka.server.ReplicaAlterLogDirsThread, LocalLeaderEndPoint; Partition#maybeReplaceCurrentWithFutureReplica.
"""

from collections.abc import Mapping

from tidegauge.impl.messages import FUTURE_LOCAL_REPLICA, FetchResponseInFlight, ListOffsets
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica import fetcher as fetcher_
from tidegauge.impl.replica import partition as partition_
from tidegauge.impl.replica.fetcher import Fetcher, PartitionFetchState, remove_partition
from tidegauge.impl.replica.partition_state import Partition
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.storage.log import Log
from tidegauge.impl.topic_partition import TopicPartition


def _by_offsets_for_leader_epoch(setup: Setup) -> Setup:
    """Switch truncation on fetch off: LocalLeaderEndPoint#isTruncationOnFetchSupported is false in every release."""
    return setup._replace(profile=setup.profile._replace(truncation_on_fetch=False, offsets_for_leader_epoch=True))


def start_future_replica(setup: Setup, current: Partition, future: Log) -> Fetcher:
    """Begin, or go on after a restart, where the future log's high watermark is. ReplicaManager#alterReplicaLogDirs."""
    return fetcher_.add_partition(_by_offsets_for_leader_epoch(setup), Fetcher(future), current.leader_epoch, future.hw)


def maybe_truncate_future(setup: Setup, future: Fetcher, current: Partition) -> Fetcher:
    """Truncate by the current log's response where the future log has an epoch, else at the entry's offset."""
    setup = _by_offsets_for_leader_epoch(setup)
    requested_epoch = fetcher_.epoch_to_ask(setup, future)
    entry = future.entry
    if requested_epoch == UNDEFINED or entry is None:
        return fetcher_.maybe_truncate_alone(setup, future)
    epoch = entry.current_leader_epoch
    error, response_epoch, end = partition_.last_offset_for_leader_epoch(
        setup, current, epoch, requested_epoch, only_leader=False
    )
    return fetcher_.truncate_to_epoch_end_offset(setup, future, epoch, error, response_epoch, end)


def fetch_future(setup: Setup, future: Fetcher, current: Partition, now: int, max_records: int) -> Fetcher:
    """Read the current log up to its end and append. ReplicaAlterLogDirsThread#processPartitionData."""
    setup = _by_offsets_for_leader_epoch(setup)
    request = fetcher_.build_fetch(FUTURE_LOCAL_REPLICA, future)
    if request is None:
        return future
    _, response = partition_.fetch_records(setup, current, request, (), now, max_records, only_leader=False)
    offsets = ListOffsets(current.log.start, current.log.end)
    in_flight = FetchResponseInFlight(request.current_leader_epoch, request.fetch_offset, response, offsets)
    return fetcher_.process_fetch_response(setup, future, in_flight)


def maybe_replace_current(future: Fetcher, current: Partition) -> tuple[Fetcher, Partition, bool]:
    """Take over when both logs end at the same offset; the thread then drops the partition.

    Partition#maybeReplaceCurrentWithFutureReplica.
    """
    # Equal ends are enough: the future log was truncated to the current one and only copies from it.
    if future.entry is None or future.entry.truncating or future.log.end != current.log.end:
        return future, current, False
    return remove_partition(future), current._replace(log=future.log), True


def select_partition_to_fetch(
    entries: Mapping[TopicPartition, PartitionFetchState], in_progress: TopicPartition | None
) -> TopicPartition | None:
    """Return the partition that is being filled, or the next one. ReplicaAlterLogDirsThread#selectPartitionToFetch."""
    ready = sorted(tp for tp, entry in entries.items() if entry.ready_for_fetch)
    # One partition at a time, to the end: filling several at once would only delay the first replacement.
    if in_progress in ready:
        return in_progress
    return ready[0] if ready else None

"""Fetch requests: read, answer at once or wait.

Rules of this file

1. Six conditions answer at once: no wait allowed, nothing asked, enough bytes, an error, a divergence, a preferred replica.
   "Nothing was read" is none of them (an article of Kafka 2.5 lists four, that among them).
2. What the read of a partition did to its ISR and high watermark wakes what waits before the next partition is read.
3. Source: kafka.server.ReplicaManager#fetchMessages, KafkaApis#handleFetchRequest.
"""

from tidegauge.impl.fetch.fetch_session import Fetches
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import FetchedPartitions, FetchParams
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica.partition_state import Partition
from tidegauge.impl.rules import NONE
from tidegauge.impl.server import purgatory
from tidegauge.impl.server.read_from_log import FetchProgress, LogReadResult, read_next
from tidegauge.impl.server.replica_manager import DelayedFetch, ReplicaManager, online_partition
from tidegauge.impl.topic_partition import TopicPartition


def fetch_messages(
    setup: Setup, manager: ReplicaManager, request: int, params: FetchParams, fetches: Fetches, now: int
) -> ReplicaManager:
    """Handle a fetch; the response is in `answered`, now or later. ReplicaManager#fetchMessages."""
    reading = FetchProgress(params.max_bytes)
    for tp, fetch in fetches.items():
        before = online_partition(manager, tp)
        manager, reading = read_next(setup, manager, params, reading, tp, fetch, now)
        manager = _woken(setup, before, manager, tp, now)
    if is_immediate(params, reading.reads):
        done = FetchedPartitions(request, FrozenMap((tp, read.partition) for tp, read in reading.reads.items()))
        return purgatory.send_response(manager, done)
    statuses = FrozenMap((tp, read.status) for tp, read in reading.reads.items())
    return purgatory.watch_fetch(setup, manager, DelayedFetch(request, now + params.max_wait_ms, params, statuses), now)


def is_immediate(params: FetchParams, reads: FrozenMap[TopicPartition, LogReadResult]) -> bool:
    """Return whether the fetch is answered at once."""
    partitions = [read.partition for read in reads.values()]
    readable = sum(read.size for read in reads.values())
    return (
        params.max_wait_ms <= 0
        or not reads
        or readable >= params.min_bytes
        or any(p.response.error != NONE for p in partitions)
        or any(p.response.is_diverging for p in partitions)
        or any(p.preferred_read_replica is not None for p in partitions)
    )


def _woken(setup: Setup, before: Partition | None, manager: ReplicaManager, tp: TopicPartition, now: int) -> ReplicaManager:
    """Wake what waits when a follower's fetch raised the high or low watermark. Partition#updateFollowerFetchState."""
    after = online_partition(manager, tp)
    if before is None or after is None:
        return manager
    if purgatory.high_watermark_incremented(before, after) or purgatory.low_watermark_incremented(manager, before, after):
        return purgatory.check_all(setup, manager, tp, now)
    return manager

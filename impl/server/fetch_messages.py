"""Fetch requests: read, answer at once or wait.

Rules of this file

1. Six conditions answer at once: no wait allowed, nothing asked, enough bytes, an error, a divergence, a preferred replica.
   "Nothing was read" is none of them (an article of Kafka 2.5 lists four, that among them).
2. What the first read did to the ISR and the high watermark happens before the fetch waits.
3. Source: kafka.server.ReplicaManager#fetchMessages, KafkaApis#handleFetchRequest.
"""

from tidegauge.impl.client_messages import FetchedPartitions, FetchParams
from tidegauge.impl.profiles import Setup
from tidegauge.impl.rules import NONE
from tidegauge.impl.server import purgatory
from tidegauge.impl.server.delayed_fetch import is_satisfied
from tidegauge.impl.server.read_from_log import Fetches, Read, read_from_log
from tidegauge.impl.server.replica_manager import ReplicaManager, online, size_in_bytes
from tidegauge.impl.server.waiting import DelayedFetch
from tidegauge.impl.table import Table
from tidegauge.impl.topic_partition import TopicPartition


def fetch_messages(
    setup: Setup, manager: ReplicaManager, request: int, params: FetchParams, fetches: Fetches, now: int
) -> ReplicaManager:
    """ReplicaManager#fetchMessages. The response is in `answered`, now or later."""
    before = manager
    manager, reads = read_from_log(setup, manager, params, fetches, now)
    manager = _completed(setup, before, manager, fetches, now)
    if is_immediate(manager, params, reads):
        done = FetchedPartitions(request, Table((tp, read.partition) for tp, read in reads.items()))
        manager = purgatory.respond(manager, done)
    else:
        statuses = Table((tp, read.status) for tp, read in reads.items())
        waiting = DelayedFetch(request, now + params.max_wait_ms, params, statuses)
        manager = manager._replace(fetches=manager.fetches.put(request, waiting))
        manager, satisfied = is_satisfied(setup, manager, waiting)
        if satisfied:
            manager = purgatory.check_fetches(setup, manager, next(iter(statuses)), now)
    return manager


def is_immediate(manager: ReplicaManager, params: FetchParams, reads: Table[TopicPartition, Read]) -> bool:
    """Whether the fetch is answered at once."""
    partitions = [read.partition for read in reads.values()]
    readable = sum(size_in_bytes(manager, p.records) for p in partitions)
    return (
        params.max_wait_ms <= 0
        or not reads
        or readable >= params.min_bytes
        or any(p.response.error != NONE for p in partitions)
        or any(p.response.is_diverging for p in partitions)
        or any(p.preferred_read_replica is not None for p in partitions)
    )


def _completed(setup: Setup, before: ReplicaManager, manager: ReplicaManager, fetches: Fetches, now: int) -> ReplicaManager:
    """A follower's fetch that raised the high or the low watermark wakes what waits. Partition#updateFollowerFetchState."""
    for tp in fetches:
        old, new = online(before, tp), online(manager, tp)
        if old is None or new is None:
            continue
        if purgatory.high_watermark_incremented(old, new) or purgatory.low_watermark_incremented(manager, old, new):
            manager = purgatory.check_all(setup, manager, tp, now)
    return manager

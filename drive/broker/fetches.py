"""The fetches of peers at the reference, and those that wait: its one partition as a ReplicaManager has it.

Rules of this file

1. What a fetch waits for, and what it is answered with, is decided in impl.server (DelayedFetch#tryComplete, #onComplete).
   Here stands only what lets it be looked at; where nothing does, one that could be completed waits on.
2. A peer has one waiting fetch at most: a broker takes one request of a connection at a time (KafkaChannel#mute).
3. Its maxWait does not end: time is nobody's here.
"""

from tidegauge.drive.broker.contract import BROKER
from tidegauge.drive.broker.state import NOTHING_FETCHED, Fetched, Held, cache_of, led
from tidegauge.impl.client_messages import FetchedPartitions, FetchParams, PartitionFetch
from tidegauge.impl.cluster.broker import NOW
from tidegauge.impl.messages import FetchRequest, FetchResponse
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica import partition as partition_
from tidegauge.impl.replica.partition_state import Partition
from tidegauge.impl.rules import NONE
from tidegauge.impl.server import purgatory
from tidegauge.impl.server.fetch_messages import fetch_messages
from tidegauge.impl.server.replica_manager import Hosted, ReplicaManager
from tidegauge.impl.server.role_changes import restarts_fetcher
from tidegauge.impl.table import Table
from tidegauge.impl.topic_partition import TopicPartition

TP = TopicPartition("driven", 0)
ONE_BATCH = 1
"""minBytes, and maxBytes: one batch comes back however large (KIP-74)."""


def _manager(held: Held, *, may_join: bool) -> ReplicaManager:
    """The broker with its partition, and nothing that waits yet."""
    hosted = Table(((TP, Hosted(held.broker.partition)),))
    return ReplicaManager(BROKER, hosted=hosted, metadata=cache_of(held, eligible=may_join))


def fetched_at_once(held: Held, request: FetchRequest, *, may_join: bool) -> tuple[Held, FetchResponse]:
    """Handle a peer's fetch that does not wait, of one record."""
    cache = cache_of(held, eligible=may_join)
    partition, response = partition_.fetch_records(held.setup, held.broker.partition, request, cache, NOW, max_records=1)
    return led(held, partition) if response.error == NONE else held, response


def fetched_or_waiting(held: Held, request: FetchRequest, *, may_join: bool) -> tuple[Held, FetchResponse | None]:
    """Handle a peer's fetch that may wait: the response, None if it waits."""
    peer = request.replica_id
    params = FetchParams(peer, min_bytes=ONE_BATCH, max_bytes=ONE_BATCH)
    fetches = Table(((TP, PartitionFetch(request, ONE_BATCH)),))
    manager = fetch_messages(held.setup, _manager(held, may_join=may_join), peer, params, fetches, NOW)
    held = led(held, manager.hosted[TP].partition)
    return held._replace(fetches=Table((*held.fetches.items(), *manager.fetches.items()))), _responses(manager).get(peer)


def completed(before: Partition, held: Held) -> tuple[Held, Fetched]:
    """After a step: what still waits, and what was answered. `before`: the partition before that step."""
    if not held.fetches or not _are_looked_at(held.setup, before, held.broker.partition):
        return held, NOTHING_FETCHED
    manager = _manager(held, may_join=False)._replace(fetches=held.fetches)
    manager = purgatory.check_fetches(held.setup, manager, TP, NOW)
    return led(held, manager.hosted[TP].partition)._replace(fetches=manager.fetches), _responses(manager)


def _are_looked_at(setup: Setup, before: Partition, after: Partition) -> bool:
    """An append (ReplicaManager#addCompletePurgatoryAction), a high watermark that was raised
    (Partition#tryCompleteDelayedRequests), a leadership that ended (ReplicaManager#applyLocalFollowersDelta).

    A leader that reads of a later leader epoch of its own has not lost it: what waits is not looked at.
    """
    if before.is_leader and not after.is_leader:
        return restarts_fetcher(setup, before, after)
    return after.log.end > before.log.end or purgatory.high_watermark_incremented(before, after)


def _responses(manager: ReplicaManager) -> Fetched:
    """What left the broker, by peer."""
    done = (one for one in manager.answered if isinstance(one, FetchedPartitions))
    return {one.request: one.reads[TP].response for one in done}

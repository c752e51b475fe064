"""Fetches of peers at the reference, and those that wait: its one partition as a ReplicaManager has it.

What a fetch waits for, and its response, is decided in impl.server (DelayedFetch#tryComplete, #onComplete). This module
decides when a waiting fetch is checked. Its maxWait does not end: the contract has no time.
"""

from tidegauge.drive.broker.contract import BROKER
from tidegauge.drive.broker.state import NOTHING_FETCHED, Fetched, ReferenceBroker, metadata_cache, with_partition
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


def _manager(state: ReferenceBroker, *, may_join: bool) -> ReplicaManager:
    """Return the broker with its partition, and nothing that waits yet."""
    hosted = Table(((TP, Hosted(state.broker.partition)),))
    return ReplicaManager(BROKER, hosted=hosted, metadata=metadata_cache(state, eligible=may_join))


def fetched_at_once(
    state: ReferenceBroker, request: FetchRequest, *, may_join: bool
) -> tuple[ReferenceBroker, FetchResponse]:
    """Handle a peer's fetch that does not wait, of one record."""
    cache = metadata_cache(state, eligible=may_join)
    partition, response = partition_.fetch_records(state.setup, state.broker.partition, request, cache, NOW, max_records=1)
    return with_partition(state, partition) if response.error == NONE else state, response


def fetched_or_waiting(
    state: ReferenceBroker, request: FetchRequest, *, may_join: bool
) -> tuple[ReferenceBroker, FetchResponse | None]:
    """Handle a peer's fetch that may wait; the response is None if it waits."""
    peer = request.replica_id
    params = FetchParams(peer, min_bytes=ONE_BATCH, max_bytes=ONE_BATCH)
    fetches = Table(((TP, PartitionFetch(request, ONE_BATCH)),))
    manager = fetch_messages(state.setup, _manager(state, may_join=may_join), peer, params, fetches, NOW)
    state = with_partition(state, manager.hosted[TP].partition)
    return state._replace(fetches=Table((*state.fetches.items(), *manager.fetches.items()))), _responses(manager).get(peer)


def completed(before: Partition, state: ReferenceBroker) -> tuple[ReferenceBroker, Fetched]:
    """Return what still waits after a step, and what was answered. `before`: the partition before that step."""
    if not state.fetches or not _are_checked(state.setup, before, state.broker.partition):
        return state, NOTHING_FETCHED
    manager = _manager(state, may_join=False)._replace(fetches=state.fetches)
    manager = purgatory.check_fetches(state.setup, manager, TP, NOW)
    return with_partition(state, manager.hosted[TP].partition)._replace(fetches=manager.fetches), _responses(manager)


def _are_checked(setup: Setup, before: Partition, after: Partition) -> bool:
    """Return whether Kafka checks waiting fetches after a step."""
    # A leader that reads of a later leader epoch of its own has not lost it, and nothing is checked: a fetch that could be
    # completed waits on. ReplicaManager#applyLocalFollowersDelta.
    if before.is_leader and not after.is_leader:
        return restarts_fetcher(setup, before, after)
    # An append (ReplicaManager#addCompletePurgatoryAction), or a high watermark that was raised
    # (Partition#tryCompleteDelayedRequests).
    return after.log.end > before.log.end or purgatory.high_watermark_incremented(before, after)


def _responses(manager: ReplicaManager) -> Fetched:
    """Return the responses that left the broker, by peer."""
    done = (one for one in manager.answered if isinstance(one, FetchedPartitions))
    return {one.request: one.reads[TP].response for one in done}

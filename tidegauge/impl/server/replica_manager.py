"""ReplicaManager: every partition of a broker, its fetchers, and the requests that wait.

Functions take the manager and return the changed one, or something about it. A partition is *hosted* if the broker has, or
shall have, a replica of it.

Rules of this file

1. A hosted partition is online, or offline because its log directory failed. Online it may be without a log
   (impl.server.role_changes). One that is not hosted may still be known to the metadata cache: the error says which.
2. `answered` collects the responses that were sent, until the caller removes them (`take_responses`).
3. The effect of metadata is in impl.server.role_changes, requests in impl.server.client_requests.
4. Source: kafka.server.ReplicaManager, kafka.server.HostedPartition.
"""

from typing import NamedTuple

from tidegauge.impl import messages
from tidegauge.impl.errors import KAFKA_STORAGE_ERROR
from tidegauge.impl.fetch.fetcher_manager import FetcherManager, remove_fetcher_for_partitions
from tidegauge.impl.fetch.fetcher_thread import BrokerEndPoint, Logs
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica import partition as partition_
from tidegauge.impl.replica.partition_state import Partition
from tidegauge.impl.replica_settings import DEFAULTS, ReplicaSettings
from tidegauge.impl.rules import NONE, NOT_LEADER_OR_FOLLOWER, UNDEFINED, UNKNOWN_TOPIC_OR_PARTITION
from tidegauge.impl.storage.log import RECORD_BYTES, bytes_of
from tidegauge.impl.topic_partition import TopicPartition

# Requests that wait in a purgatory, and what each of their partitions waits for.
#
# A deadline is a time on the broker's clock in ms. Source: kafka.server.DelayedProduce, DelayedFetch, DelayedDeleteRecords;
# ProducePartitionStatus, FetchPartitionStatus.


class ProduceStatus(NamedTuple):
    """One partition of a waiting produce: `required` is the offset the high watermark has to reach."""

    required: int
    response: messages.PartitionAppend
    acks_pending: bool


class DelayedProduce(NamedTuple):
    """A produce with acks = -1 that waits for the in-sync replicas."""

    request: int
    deadline: int
    statuses: FrozenMap[TopicPartition, ProduceStatus]


class DeleteRecordsStatus(NamedTuple):
    """One partition of a DeleteRecords that waits: `required` is the offset the low watermark has to reach."""

    required: int
    response: messages.PartitionDelete
    acks_pending: bool


class DelayedDeleteRecords(NamedTuple):
    """A DeleteRecords that waits for the replicas that are alive."""

    request: int
    deadline: int
    statuses: FrozenMap[TopicPartition, DeleteRecordsStatus]


class FetchStatus(NamedTuple):
    """One partition of a waiting fetch: the offset and segment it stood at when it was read, and the high watermark then."""

    fetch: messages.PartitionFetch
    offset: int
    segment: int
    hw: int = UNDEFINED


class DelayedFetch(NamedTuple):
    """A fetch that waits for minBytes or maxWait."""

    request: int
    deadline: int
    params: messages.FetchParams
    statuses: FrozenMap[TopicPartition, FetchStatus]


# BrokerTopicStats: what clients and followers ask of a broker, per topic and in all, as counts.
#
# Rules of this part
#
# 1. Kafka keeps each as a meter with rates of one, five and fifteen minutes. Nothing in the protocol asks for a rate, and a
#    count and a clock give any: what is kept is Meter#count.
# 2. What a follower appends counts in none of them. A fetch counts once for each of its partitions each time it is read,
#    whoever asks.
# 3. Source: org.apache.kafka.storage.log.metrics.BrokerTopicStats, BrokerTopicMetrics.


class TopicStats(NamedTuple):
    """TotalProduceRequestsPerSec, FailedProduceRequestsPerSec, BytesInPerSec, MessagesInPerSec, BytesRejectedPerSec,
    TotalFetchRequestsPerSec.
    """

    total_produce_requests: int = 0
    failed_produce_requests: int = 0
    bytes_in: int = 0
    messages_in: int = 0
    bytes_rejected: int = 0
    total_fetch_requests: int = 0


class BrokerTopicStats(NamedTuple):
    """The counts of all topics together, and of each."""

    all_topics: TopicStats = TopicStats()
    topics: FrozenMap[str, TopicStats] = FrozenMap()


def mark_events(stats: BrokerTopicStats, topic: str, **events: int) -> BrokerTopicStats:
    """Count events of a topic, for the topic and for all topics; `events` are numbers by field of TopicStats."""
    topic_stats = stats.topics.get(topic) or TopicStats()
    return BrokerTopicStats(_added(stats.all_topics, events), stats.topics.put(topic, _added(topic_stats, events)))


def _added(stats: TopicStats, events: dict[str, int]) -> TopicStats:
    """Return the counts with these numbers added, by field."""
    return stats._replace(**{name: getattr(stats, name) + number for name, number in events.items()})


class Hosted(NamedTuple):
    """HostedPartition. Offline: its log cannot be used until the broker starts again.

    `registered` is the partition epoch of its last registration in the metadata image, None without one.
    """

    partition: Partition
    topic_id: str | None = None
    offline: bool = False
    registered: int | None = None


def count_events(manager: "ReplicaManager", tp: TopicPartition, **events: int) -> "ReplicaManager":
    """Count events of a partition for its topic and for all topics; `events` are numbers by field of TopicStats."""
    return manager._replace(stats=mark_events(manager.stats, tp.topic, **events))


class IsrUpdates(NamedTuple):
    """IsrExpandsPerSec, IsrShrinksPerSec, FailedIsrUpdatesPerSec, as counts."""

    expands: int = 0
    shrinks: int = 0
    failed: int = 0


class ReplicaManager(NamedTuple):
    """One broker. `live` is who the metadata cache lists as alive, `known` the partitions it lists, hosted here or not.

    `online_dirs` and `offline_dirs`: its log directories by name, none where there is but one.
    `broken`: partitions whose log directory fails at its next use. `throttled`: partitions the leader's quota holds back.
    `tiered`: partitions whose older segments lie in remote storage.
    `min_insync_replicas`: of the topics that have one of their own.
    `racks` are the brokers' racks. `checkpointing`: the thread that writes high watermarks to disk was started.
    """

    broker_id: int
    settings: ReplicaSettings = DEFAULTS
    broker_epoch: int = UNDEFINED
    controller_epoch: int = 0
    hosted: FrozenMap[TopicPartition, Hosted] = FrozenMap()
    fetchers: FetcherManager = FetcherManager()
    metadata: messages.BrokerStates = ()
    live: FrozenMap[int, BrokerEndPoint] = FrozenMap()
    racks: FrozenMap[int, str] = FrozenMap()
    known: frozenset[TopicPartition] = frozenset()
    online_dirs: frozenset[str] = frozenset()
    offline_dirs: frozenset[str] = frozenset()
    broken: frozenset[TopicPartition] = frozenset()
    throttled: frozenset[TopicPartition] = frozenset()
    tiered: frozenset[TopicPartition] = frozenset()
    min_insync_replicas: FrozenMap[str, int] = FrozenMap()
    shutting_down: bool = False
    checkpointing: bool = False
    produces: FrozenMap[int, DelayedProduce] = FrozenMap()
    fetches: FrozenMap[int, DelayedFetch] = FrozenMap()
    deletes: FrozenMap[int, DelayedDeleteRecords] = FrozenMap()
    record_bytes: int = RECORD_BYTES
    stats: BrokerTopicStats = BrokerTopicStats()
    isr_updates: IsrUpdates = IsrUpdates()
    answered: tuple[messages.ClientResponse, ...] = ()


def size_in_bytes(manager: ReplicaManager, batches: tuple[messages.Batch, ...]) -> int:
    """Return the bytes that batches take on disk, where every record takes the manager's `record_bytes`."""
    return bytes_of(batches, manager.record_bytes)


def online_partition(manager: ReplicaManager, tp: TopicPartition) -> Partition | None:
    """Return the partition if it is hosted and online, else None. ReplicaManager#onlinePartition."""
    hosted = manager.hosted.get(tp)
    return None if hosted is None or hosted.offline else hosted.partition


def partition_error(manager: ReplicaManager, tp: TopicPartition) -> int:
    """Return the error of a request for a partition that is not here or is offline, NONE if it is online here.

    ReplicaManager#getPartitionOrError.
    """
    hosted = manager.hosted.get(tp)
    if hosted is not None:
        return KAFKA_STORAGE_ERROR if hosted.offline else NONE
    # A partition of another broker: the client has old metadata, which NOT_LEADER_OR_FOLLOWER makes it refresh.
    return NOT_LEADER_OR_FOLLOWER if tp in manager.known else UNKNOWN_TOPIC_OR_PARTITION


def with_partition(manager: ReplicaManager, tp: TopicPartition, partition: Partition) -> ReplicaManager:
    """Store a partition in place of the one with that name; it is hosted from now on if it was not."""
    hosted = manager.hosted.get(tp) or Hosted(partition)
    return manager._replace(hosted=manager.hosted.put(tp, hosted._replace(partition=partition)))


def topic_setup(setup: Setup, manager: ReplicaManager, tp: TopicPartition) -> Setup:
    """Return the setup with the topic's own min.insync.replicas, if it has one: LogConfig of its log."""
    own = manager.min_insync_replicas.get(tp.topic)
    return setup if own is None else setup._replace(min_insync_replicas=own)


def mark_offline(manager: ReplicaManager, tp: TopicPartition) -> ReplicaManager:
    """Take a partition offline because its log directory failed, and out of its fetcher thread.

    ReplicaManager#handleLogDirFailure, #markPartitionOffline. The partition keeps its epochs and nothing else:
    Partition#markOffline.
    """
    hosted = manager.hosted.get(tp) or Hosted(without_log(manager))
    cleared = without_log(manager)._replace(
        leader_epoch=hosted.partition.leader_epoch, partition_epoch=hosted.partition.partition_epoch
    )
    fetchers, _ = remove_fetcher_for_partitions(manager.fetchers, frozenset({tp}))
    hosted = hosted._replace(partition=cleared, offline=True)
    return manager._replace(hosted=manager.hosted.put(tp, hosted), fetchers=fetchers)


def without_log(manager: ReplicaManager) -> Partition:
    """Return a new partition of this broker, without a log: that comes with its first role."""
    return Partition(manager.broker_id, has_log=False)


def online_logs(manager: ReplicaManager) -> Logs:
    """Return the logs of the partitions that are online and have one, for the fetchers."""
    partitions = ((tp, online_partition(manager, tp)) for tp in manager.hosted)
    return FrozenMap((tp, partition.log) for tp, partition in partitions if partition is not None and partition.has_log)


def with_logs(manager: ReplicaManager, changed: Logs) -> ReplicaManager:
    """Store the logs that the fetchers changed in their partitions, if these are still online."""
    for tp, log in changed.items():
        partition = online_partition(manager, tp)
        if partition is not None and partition.log != log:
            manager = with_partition(manager, tp, partition._replace(log=log))
    return manager


def follower_params(manager: ReplicaManager) -> messages.FetchParams:
    """Return the parameters of this broker's own fetches as a follower, by its settings. RemoteLeaderEndPoint."""
    number = manager.settings.number
    return messages.FetchParams(
        manager.broker_id,
        max_wait_ms=number("replica.fetch.wait.max.ms"),
        min_bytes=number("replica.fetch.min.bytes"),
        max_bytes=number("replica.fetch.response.max.bytes"),
    )


def follower_fetch(
    manager: ReplicaManager, requests: FrozenMap[TopicPartition, messages.FetchRequest]
) -> FrozenMap[TopicPartition, messages.PartitionFetch]:
    """Return the fetch of a fetcher thread as it is sent: each partition with its topic id and replica.fetch.max.bytes.

    RemoteLeaderEndPoint#buildFetch.
    """
    size = manager.settings.number("replica.fetch.max.bytes")
    return FrozenMap(
        (tp, messages.PartitionFetch(request, size, manager.hosted[tp].topic_id)) for tp, request in requests.items()
    )


def take_responses(manager: ReplicaManager) -> tuple[ReplicaManager, tuple[messages.ClientResponse, ...]]:
    """Remove and return the responses that were sent since the last call."""
    return manager._replace(answered=()), manager.answered


# ---------------------------------------------------------------------------------------------------------------------
# Metrics and checkpoints


def high_watermarks(manager: ReplicaManager) -> FrozenMap[TopicPartition, int]:
    """Return what the checkpoint thread writes: the high watermark of each online partition with a log, by name.

    ReplicaManager#checkpointHighWatermarks.
    """
    return FrozenMap((tp, log.hw) for tp, log in sorted(online_logs(manager).items()))


def leader_count(manager: ReplicaManager) -> int:
    """Return the metric LeaderCount: the online partitions that this broker leads."""
    return len(_led(manager))


def partition_count(manager: ReplicaManager) -> int:
    """Return PartitionCount, which includes partitions that are offline."""
    return len(manager.hosted)


def offline_replica_count(manager: ReplicaManager) -> int:
    """Return OfflineReplicaCount."""
    return sum(h.offline for h in manager.hosted.values())


def under_replicated_partitions(manager: ReplicaManager) -> int:
    """Return UnderReplicatedPartitions: led here, ISR smaller than the assignment. Partition#isUnderReplicated."""
    return sum(len(p.state.isr) < len(p.remotes) + 1 for _, p in _led(manager))


def under_min_isr_partition_count(setup: Setup, manager: ReplicaManager) -> int:
    """Return UnderMinIsrPartitionCount."""
    return sum(partition_.is_under_min_isr(topic_setup(setup, manager, tp), p) for tp, p in _led(manager))


def at_min_isr_partition_count(setup: Setup, manager: ReplicaManager) -> int:
    """Return AtMinIsrPartitionCount (KIP-351)."""
    return sum(partition_.is_at_min_isr(topic_setup(setup, manager, tp), p) for tp, p in _led(manager))


def _led(manager: ReplicaManager) -> tuple[tuple[TopicPartition, Partition], ...]:
    """Return the online partitions that this broker leads, with their names."""
    online = ((tp, hosted.partition) for tp, hosted in manager.hosted.items() if not hosted.offline)
    return tuple((tp, partition) for tp, partition in online if partition.is_leader)

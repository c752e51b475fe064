"""A broker for the tests: three live brokers, one partition led or followed by broker 1."""

from tidegauge.impl.fetch.fetcher_thread import BrokerEndPoint
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import Batch, BrokerState, ClientResponse, FetchParams, FetchRequest, PartitionFetch
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica.partition_state import Partition
from tidegauge.impl.replica_settings import settings
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.server.replica_manager import Hosted, ReplicaManager, take_responses
from tidegauge.impl.server.role_changes import PartitionChange, make_leaders
from tidegauge.impl.storage.log import Log, append_as_follower
from tidegauge.impl.topic_partition import TopicPartition

SETUP = Setup()
TP = TopicPartition("t", 0)
OTHER = TopicPartition("u", 0)
ALL = (1, 2, 3)
NOW = 1_000_000
LOG, _ = append_as_follower(SETUP, Log(), (Batch(0, 4, 0), Batch(5, 9, 1)), 9)
BATCH_OF_ONE = 71
"""Bytes of a batch with one record."""


def broker(*tps: TopicPartition, **given: object) -> ReplicaManager:
    return ReplicaManager(
        1,
        settings(given),
        broker_epoch=11,
        hosted=FrozenMap((tp, Hosted(Partition(1, LOG), f"id-{tp.topic}")) for tp in tps),
        metadata=tuple(BrokerState(b, epoch=10 + b) for b in ALL),
        live=FrozenMap((b, BrokerEndPoint(b, f"host{b}", 9092)) for b in ALL),
        racks=FrozenMap([(1, "a"), (2, "b"), (3, "b")]),
    )


def change(leader: int, epoch: int, isr: tuple[int, ...] = ALL, partition_epoch: int = 1) -> PartitionChange:
    return PartitionChange(leader, epoch, isr, partition_epoch, ALL)


def leading(*tps: TopicPartition, isr: tuple[int, ...] = ALL, setup: Setup = SETUP, **given: object) -> ReplicaManager:
    """Broker 1 leads them in epoch 2, from offset 10."""
    manager = broker(*(tps or (TP,)), **given)
    return make_leaders(setup, manager, FrozenMap((tp, change(1, 2, isr)) for tp in tps or (TP,)), NOW).manager


def asked(replica: int, offset: int, *, epoch: int = 2, last: int = UNDEFINED, max_bytes: int = 1 << 20) -> PartitionFetch:
    return PartitionFetch(
        FetchRequest(replica, epoch, offset, last, 0, 10 + replica if replica > 0 else UNDEFINED), max_bytes
    )


def follower(replica: int, wait: int = 500, min_bytes: int = 1) -> FetchParams:
    return FetchParams(replica, max_wait_ms=wait, min_bytes=min_bytes)


def responses(manager: ReplicaManager) -> tuple[ClientResponse, ...]:
    return take_responses(manager)[1]

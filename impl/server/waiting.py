"""Requests that wait in a purgatory, and what each of their partitions waits for.

A deadline is a time on the broker's clock in ms. Source: kafka.server.DelayedProduce, DelayedFetch, DelayedDeleteRecords;
ProducePartitionStatus, FetchPartitionStatus.
"""

from typing import NamedTuple

from tidegauge.impl.client_messages import FetchParams, PartitionAppend, PartitionDelete, PartitionFetch
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.table import Table
from tidegauge.impl.topic_partition import TopicPartition


class ProduceStatus(NamedTuple):
    """One partition of a waiting produce: `required` is the offset the high watermark has to reach."""

    required: int
    response: PartitionAppend
    acks_pending: bool


class DelayedProduce(NamedTuple):
    """A produce with acks = -1 that waits for the in-sync replicas."""

    request: int
    deadline: int
    statuses: Table[TopicPartition, ProduceStatus]


class DeleteRecordsStatus(NamedTuple):
    """One partition of one that waits: `required` is the offset the low watermark has to reach."""

    required: int
    response: PartitionDelete
    acks_pending: bool


class DelayedDeleteRecords(NamedTuple):
    """A DeleteRecords that waits for the replicas that are alive."""

    request: int
    deadline: int
    statuses: Table[TopicPartition, DeleteRecordsStatus]


class FetchStatus(NamedTuple):
    """One partition of a waiting fetch: the offset and segment it stood at when it was read, and the high watermark then."""

    fetch: PartitionFetch
    offset: int
    segment: int
    hw: int = UNDEFINED


class DelayedFetch(NamedTuple):
    """A fetch that waits for minBytes or maxWait."""

    request: int
    deadline: int
    params: FetchParams
    statuses: Table[TopicPartition, FetchStatus]

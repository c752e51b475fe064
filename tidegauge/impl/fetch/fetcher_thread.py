"""A fetcher thread as a value: many partitions of one leader, served round robin.

An *entry* is the thread's state for one partition: its PartitionFetchState (impl.replica.fetcher), and its back-off. One
*pass* of the thread handles a response: it takes thread and logs, and returns them with the partitions that failed. Within
a pass, an entry and its log are wrapped into a `Fetcher`, the value for one partition that impl.replica.fetcher changes.

Rules of this file

1. What happens to one partition is decided in impl.replica.fetcher. Here stand the order of the entries, back-off with its
   clock, throttling, and which entries a pass touches.
2. An entry goes to the end when it received data, was reset, delayed or added. An empty response and a truncation leave it
   where it is; Kafka rebuilds its map on a truncation, so there the order after one is that of a hash map.
3. A delay stays on its entry after it ran out; a truncation since 4.0 starts it again (PartitionFetchState's constructor).
4. `now` is the broker's clock in ms, `backoff_ms` is replica.fetch.backoff.ms. Logs are handed in and handed back.
5. Source: kafka.server.AbstractFetcherThread, kafka.server.RemoteLeaderEndPoint#buildFetch.
"""

from collections.abc import Mapping
from typing import NamedTuple

from tidegauge.impl.errors import KafkaError
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import Batch, FetchRequest, FetchResponse, FetchResponseInFlight, ListOffsets
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica import fetcher as fetcher_
from tidegauge.impl.replica.fetcher import Fetcher, PartitionFetchState
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.storage.log import RECORD_BYTES, Log, bytes_of
from tidegauge.impl.topic_partition import TopicPartition

Logs = FrozenMap[TopicPartition, Log]
"""The logs of a broker."""


class BrokerEndPoint(NamedTuple):
    """Where a leader listens."""

    broker_id: int
    host: str = ""
    port: int = 0


class InitialFetchState(NamedTuple):
    """The leader and the position with which a partition is added to a thread."""

    leader: BrokerEndPoint
    leader_epoch: int
    offset: int
    topic_id: str | None = None


class FetcherEntry(NamedTuple):
    """One partition of a thread: its state, and the back-off with the time it ends."""

    state: PartitionFetchState
    topic_id: str | None = None
    delay_ms: int = 0
    due_ms: int = 0

    def at(self, now: int) -> PartitionFetchState:
        """Return the entry's state at time `now`: delayed while the back-off has not run out."""
        return self.state._replace(delayed=self.delay_ms > 0 and now < self.due_ms)


class FetcherThread(NamedTuple):
    """One thread. `dead`: an exception that belongs to no partition ended it (DeadThreadCount).

    `requests`, `bytes`: what FetcherStats' RequestsPerSec and BytesPerSec have counted; a record takes `record_bytes`.
    """

    leader: BrokerEndPoint
    fetcher_id: int
    entries: FrozenMap[TopicPartition, FetcherEntry] = FrozenMap()
    dead: bool = False
    requests: int = 0
    bytes: int = 0
    record_bytes: int = RECORD_BYTES

    @property
    def name(self) -> str:
        """The name of Kafka's thread. ReplicaFetcherManager#createFetcherThread."""
        return f"ReplicaFetcherThread-{self.fetcher_id}-{self.leader.broker_id}"


class PartitionResponse(NamedTuple):
    """One partition of a response, with the ListOffsets responses of an out-of-range reset."""

    response: FetchResponse
    offsets: ListOffsets | None = None
    corrupt: bool = False


class EpochEndOffset(NamedTuple):
    """One partition of an OffsetsForLeaderEpoch response."""

    error: int
    leader_epoch: int = UNDEFINED
    end_offset: int = UNDEFINED


class Pass(NamedTuple):
    """The outcome of one pass: the thread, the logs, the partitions that failed."""

    thread: FetcherThread
    logs: Logs
    failed: frozenset[TopicPartition] = frozenset()


# ---------------------------------------------------------------------------------------------------------------------
# Entries


def add_partitions(
    setup: Setup,
    thread: FetcherThread,
    logs: Logs,
    added: Mapping[TopicPartition, InitialFetchState],
    offsets: Mapping[TopicPartition, ListOffsets],
) -> Pass:
    """Add partitions to the thread, at the end. AbstractFetcherThread#addPartitions.

    A partition whose entry is in the same leader epoch already keeps its state and back-off. `offsets` are the leader's
    answers to ListOffsets, for partitions that are added with a negative offset.
    """
    entries = thread.entries
    for tp, initial in added.items():
        old = entries.get(tp)
        before = Fetcher(logs[tp], old.state if old else None)
        after = fetcher_.add_partition(setup, before, initial.leader_epoch, initial.offset, offsets.get(tp))
        assert after.entry is not None  # add_partition makes an entry or raises
        logs = logs.put(tp, after.log)
        # The same leader epoch again has left the state as it was: keep the back-off, too.
        entry = old if old is not None and after.entry == old.state else FetcherEntry(after.entry, initial.topic_id)
        entries = entries.put_at_end(tp, entry)
    return Pass(thread._replace(entries=entries), logs)


def remove_partitions(thread: FetcherThread, removed: frozenset[TopicPartition]) -> FetcherThread:
    """Take partitions out of the thread. AbstractFetcherThread#removePartitions."""
    return thread._replace(entries=thread.entries.without(*removed))


def delay_partitions(
    thread: FetcherThread, partitions: tuple[TopicPartition, ...], now: int, backoff_ms: int
) -> FetcherThread:
    """Delay entries by `backoff_ms`, and put them at the end; one that is delayed already keeps its time.

    AbstractFetcherThread#delayPartitions.
    """
    entries = thread.entries
    for tp in partitions:
        entry = entries.get(tp)
        if entry is not None and not entry.at(now).delayed:
            entries = entries.put_at_end(tp, entry._replace(delay_ms=backoff_ms, due_ms=now + backoff_ms))
    return thread._replace(entries=entries)


def request_failed(thread: FetcherThread, now: int, backoff_ms: int) -> FetcherThread:
    """Delay every entry, since a whole fetch request got no response. AbstractFetcherThread#processFetchRequest."""
    thread = thread._replace(requests=thread.requests + 1)
    return delay_partitions(thread, tuple(thread.entries), now, backoff_ms)


def update_topic_ids(thread: FetcherThread, topic_ids: Mapping[str, str | None]) -> FetcherThread:
    """Change the topic ids of the entries of some topics; `topic_ids` is by topic name. #maybeUpdateTopicIds."""
    entries = thread.entries
    for tp, entry in entries.items():
        if tp.topic in topic_ids:
            entries = entries.put(tp, entry._replace(topic_id=topic_ids[tp.topic]))
    return thread._replace(entries=entries)


# ---------------------------------------------------------------------------------------------------------------------
# Fetch


def is_in_sync(entry: FetcherEntry) -> bool:
    """Return whether the follower has no known lag. PartitionFetchState#isReplicaInSync: it is never throttled then."""
    return entry.state.lag is not None and entry.state.lag <= 0


def build_fetch(
    thread: FetcherThread,
    logs: Logs,
    broker_id: int,
    now: int,
    *,
    throttled: frozenset[TopicPartition] = frozenset(),
    quota_exceeded: bool = False,
    broker_epoch: int = UNDEFINED,
) -> FrozenMap[TopicPartition, FetchRequest]:
    """Build the next fetch: the entries that are ready, in order, without throttled ones. RemoteLeaderEndPoint#buildFetch.

    `broker_id` and `broker_epoch` are the follower's own. `throttled` partitions are left out while `quota_exceeded`. An
    empty fetch is not sent: the thread waits for at most replica.fetch.backoff.ms.
    """
    fetch: FrozenMap[TopicPartition, FetchRequest] = FrozenMap()
    for tp, entry in thread.entries.items():
        # An in-sync follower is never throttled: it would leave the ISR and block acks=all.
        if quota_exceeded and tp in throttled and not is_in_sync(entry):
            continue
        request = fetcher_.build_fetch(broker_id, Fetcher(logs[tp], entry.at(now)))
        if request is not None:
            fetch = fetch.put(tp, request._replace(replica_epoch=broker_epoch))
    return fetch


def process_fetch_response(
    setup: Setup,
    thread: FetcherThread,
    logs: Logs,
    fetch: FrozenMap[TopicPartition, FetchRequest],
    responses: FrozenMap[TopicPartition, PartitionResponse],
    now: int,
    backoff_ms: int,
) -> Pass:
    """Process a fetch response: data first, in its order, then truncations, then delays.

    AbstractFetcherThread#processFetchRequest. `fetch` has what was requested of each partition (the whole fetch session); a
    partition that is not in it is dropped.
    """
    # FetcherStats, RequestsPerSec. Without partitions no request was sent.
    if fetch:
        thread = thread._replace(requests=thread.requests + 1)
    done, delayed = Pass(thread, logs), []
    # Kafka collects diverging partitions and truncates them after the loop, in one call (#truncateOnFetchResponse).
    order = sorted(responses.items(), key=lambda item: item[1].response.is_diverging)
    for tp, response in order:
        entry, request = done.thread.entries.get(tp), fetch.get(tp)
        if entry is None or request is None:
            continue
        before = Fetcher(done.logs[tp], entry.at(now))
        received = FetchResponseInFlight(
            request.current_leader_epoch, request.fetch_offset, response.response, response.offsets
        )
        try:
            after = fetcher_.process_fetch_response(setup, before, received, response.corrupt)
        # An error that is not caught for the partition ends the thread (before KIP-461, 2.3).
        except KafkaError:
            return done._replace(thread=done.thread._replace(dead=True))
        # Delays are collected as well: #handlePartitionsWithErrors delays all of them at once after the loop.
        if after.entry is not None and after.entry.delayed and before.entry != after.entry:
            delayed.append(tp)
        elif after != before:
            truncated, restarts = response.response.is_diverging, setup.profile.delay_restarts
            done = _store_outcome(done, tp, entry, after, now, truncated=truncated, restarts=restarts)
            if response.response.records and after.log.end > before.log.end:
                done = done._replace(thread=_count_bytes(done.thread, response.response.records))
    return done._replace(thread=delay_partitions(done.thread, tuple(delayed), now, backoff_ms))


def _count_bytes(thread: FetcherThread, records: tuple[Batch, ...]) -> FetcherThread:
    """Add the size of fetched records to the thread's count of bytes (FetcherStats, BytesPerSec)."""
    return thread._replace(bytes=thread.bytes + bytes_of(records, thread.record_bytes))


def _store_outcome(
    done: Pass, tp: TopicPartition, entry: FetcherEntry, after: Fetcher, now: int, *, truncated: bool, restarts: bool
) -> Pass:
    """Store the outcome `after` of one partition, whose entry was `entry`, in the outcome `done` of the pass.

    A truncation (`truncated`) keeps the entry's place and delay; with `restarts` the delay begins again. Data and a reset
    end the delay, and put the entry at the end.
    """
    entries, failed = done.thread.entries, done.failed
    # The partition has left the thread: it failed, or was removed.
    if after.entry is None:
        entries = entries.without(tp)
        failed |= {tp} if after.failed else frozenset()
    elif truncated:
        # Since 4.0 the new PartitionFetchState gets the old delay, and its constructor starts the clock again.
        due_ms = now + entry.delay_ms if restarts else entry.due_ms
        entries = entries.put(tp, entry._replace(state=after.entry, due_ms=due_ms))
    elif after.entry != entry.at(now):
        entries = entries.put_at_end(tp, FetcherEntry(after.entry, entry.topic_id))
    return Pass(done.thread._replace(entries=entries), done.logs.put(tp, after.log), failed)


# ---------------------------------------------------------------------------------------------------------------------
# Truncation


def epochs_to_ask(setup: Setup, thread: FetcherThread, logs: Logs, now: int) -> FrozenMap[TopicPartition, tuple[int, int]]:
    """Return the next OffsetsForLeaderEpoch request: (current leader epoch, epoch whose end is asked for) by partition.

    It has the Truncating entries that need the leader's answer. AbstractFetcherThread#fetchTruncatingPartitions.
    """
    requests: FrozenMap[TopicPartition, tuple[int, int]] = FrozenMap()
    for tp, entry in thread.entries.items():
        epoch = fetcher_.epoch_to_ask(setup, Fetcher(logs[tp], entry.at(now)))
        if epoch != UNDEFINED:
            requests = requests.put(tp, (entry.state.current_leader_epoch, epoch))
    return requests


def maybe_truncate(
    setup: Setup,
    thread: FetcherThread,
    logs: Logs,
    requests: FrozenMap[TopicPartition, tuple[int, int]],
    responses: FrozenMap[TopicPartition, EpochEndOffset],
    now: int,
    backoff_ms: int,
) -> Pass:
    """Truncate by the responses to `requests`, then the entries that truncate without a request.

    AbstractFetcherThread#maybeTruncate. `requests` is what `epochs_to_ask` returned.
    """
    # A response that was not requested is an IllegalStateException outside any partition, which ends the thread.
    if any(tp not in requests for tp in responses):
        return Pass(thread._replace(dead=True), logs)
    done, delayed = Pass(thread, logs), []
    for tp, response in responses.items():
        entry = done.thread.entries.get(tp)
        # Its fetcher was removed while the request was under way.
        if entry is None:
            continue
        before = Fetcher(done.logs[tp], entry.at(now))
        request_epoch, _ = requests[tp]
        after = fetcher_.truncate_to_epoch_end_offset(
            setup, before, request_epoch, response.error, response.leader_epoch, response.end_offset
        )
        # Kafka delays the partitions with errors together, after all others.
        if after.entry is not None and after.entry.delayed and not entry.at(now).delayed:
            delayed.append(tp)
        elif after != before:
            done = _store_outcome(done, tp, entry, after, now, truncated=True, restarts=setup.profile.delay_restarts)
    done = done._replace(thread=delay_partitions(done.thread, tuple(delayed), now, backoff_ms))
    for tp, entry in done.thread.entries.items():
        before = Fetcher(done.logs[tp], entry.at(now))
        after = fetcher_.maybe_truncate_alone(setup, before)
        if after != before:
            done = _store_outcome(done, tp, entry, after, now, truncated=True, restarts=setup.profile.delay_restarts)
    return done

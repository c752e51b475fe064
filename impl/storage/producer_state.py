"""How far a reader of committed transactions may read.

Rules of this file

1. A transaction begins with a producer's first batch and ends with a marker, which is a record, too. Until the marker is
   below the high watermark, nobody who reads committed passes the transaction's first offset: that is the last stable one.
2. Everything follows from the batches, as when the producer state is built from the log. So a truncation takes a marker
   back, and a follower knows what its records say. What went with deleted segments is forgotten here; Kafka keeps it in a
   snapshot.
3. An aborted transaction's records are read all the same: the response lists it, and the consumer leaves them out.
4. Source: org.apache.kafka.storage.internals.log.ProducerStateManager, TransactionIndex; UnifiedLog#lastStableOffset.
"""

from typing import NamedTuple

from tidegauge.impl.client_messages import Isolation
from tidegauge.impl.records import Batch, Marker
from tidegauge.impl.storage.log import Log


class AbortedTransaction(NamedTuple):
    """AbortedTxn: first offset, and that of the marker."""

    producer_id: int
    first: int
    last: int


class Transactions(NamedTuple):
    """First offsets of what is open, (first, marker) of what has ended, and what was aborted, by marker."""

    open: tuple[int, ...]
    ended: tuple[tuple[int, int], ...]
    aborted: tuple[AbortedTransaction, ...]


def transactions(batches: tuple[Batch, ...]) -> Transactions:
    """Return the transactions that a log's batches imply. ProducerAppendInfo#append."""
    begun: dict[int, int] = {}
    ended: list[tuple[int, int]] = []
    aborted: list[AbortedTransaction] = []
    for batch in batches:
        if batch.transaction is None:
            continue
        producer_id, marker = batch.transaction
        if marker is None:
            begun.setdefault(producer_id, batch.base)
        # A marker without a transaction ends nothing: coordinators write such markers after a timeout.
        elif producer_id in begun:
            first = begun.pop(producer_id)
            ended.append((first, batch.last))
            if marker is Marker.ABORT:
                aborted.append(AbortedTransaction(producer_id, first, batch.last))
    return Transactions(tuple(begun.values()), tuple(ended), tuple(aborted))


def first_unstable_offset(log: Log) -> int | None:
    """Return where the first open or uncommitted transaction begins. UnifiedLog#firstUnstableOffset."""
    found = transactions(log.batches)
    unstable = [*found.open, *(first for first, marker in found.ended if marker >= log.hw)]
    return max(min(unstable), log.start) if unstable else None


def last_stable_offset(log: Log) -> int:
    """Return the last stable offset, which is never above the high watermark. UnifiedLog#lastStableOffset."""
    unstable = first_unstable_offset(log)
    return log.hw if unstable is None else min(unstable, log.hw)


def read_bound(log: Log, isolation: Isolation) -> int:
    """Return where a read of this isolation ends. LogOffsetSnapshot, FetchIsolation."""
    if isolation is Isolation.LOG_END:
        return log.end
    return log.hw if isolation is Isolation.HIGH_WATERMARK else last_stable_offset(log)


def aborted_transactions(log: Log, read: tuple[Batch, ...]) -> tuple[AbortedTransaction, ...]:
    """Return the aborted transactions that have a record in what was read. UnifiedLog#collectAbortedTransactions.

    Kafka finds the upper end in the offset index, so it may list a few more.
    """
    if not read:
        return ()
    aborted = transactions(log.batches).aborted
    return tuple(a for a in aborted if a.last >= read[0].base and a.first <= read[-1].last)

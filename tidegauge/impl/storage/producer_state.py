"""Producers as a log knows them: idempotent ones, whose batches it takes or refuses, and open transactions.

All of it is derived from the log's batches, each of which has its producer (id, epoch, base sequence) and transaction; a
transaction ends with a *marker*, a batch of its own. The last stable offset is where the first transaction begins that is
open, or whose marker is not below the high watermark yet: a reader of committed transactions reads up to there.
"""

from typing import NamedTuple

from tidegauge.impl.errors import (
    DUPLICATE_SEQUENCE_NUMBER,
    INVALID_PRODUCER_EPOCH,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    UNKNOWN_PRODUCER_ID,
)
from tidegauge.impl.messages import Batch, Isolation, Marker, Producer
from tidegauge.impl.profiles import Setup
from tidegauge.impl.rules import NONE
from tidegauge.impl.storage.log import Log

# Whether a leader takes an idempotent producer's batch: its epoch and its sequence numbers.
#
# Rules of this part
#
# 1. A producer's state is its latest epoch and its last five batches in that epoch. It follows from the log's batches, so a
#    follower that becomes leader knows it. What went with deleted segments is forgotten here; Kafka keeps it in a snapshot.
# 2. A batch that is one of the five is not appended again: the response names where it stands. Any other has to continue the
#    sequence, begin it at 0 in a new epoch, or come from a producer that nothing is known of (KIP-360).
# 3. Only an append at a leader asks: what a leader took, a follower takes.
# 4. Source: org.apache.kafka.storage.internals.log.ProducerAppendInfo, ProducerStateEntry;
#    UnifiedLog#analyzeAndValidateProducerState.


RETAINED = 5
"""ProducerStateEntry.NUM_BATCHES_TO_RETAIN: as many requests as an idempotent producer may have in flight."""

SEQUENCES = 1 << 31
"""Sequence numbers are Java ints that start again at 0 (DefaultRecordBatch#incrementSequence)."""


class ProducerEntry(NamedTuple):
    """ProducerStateEntry: the latest epoch, and its last batches as (base sequence, batch)."""

    epoch: int
    batches: tuple[tuple[int, Batch], ...]

    @property
    def last_sequence(self) -> int:
        """Of the last record that was taken."""
        base, batch = self.batches[-1]
        return last_sequence(base, batch.last - batch.base + 1)


def last_sequence(base_sequence: int, records: int) -> int:
    """Return the sequence number of the last record of a batch with `records` records."""
    return (base_sequence + records - 1) % SEQUENCES


def producer_entry(batches: tuple[Batch, ...], producer_id: int) -> ProducerEntry | None:
    """Return a producer's latest epoch and its last batches there; None: no batch. ProducerStateManager#lastEntry."""
    entry: ProducerEntry | None = None
    for batch in batches:
        if batch.producer is None or batch.producer.producer_id != producer_id:
            continue
        _, epoch, base_sequence = batch.producer
        # The first batch in a new epoch makes the producer's state forget those of the epoch before.
        earlier = entry.batches if entry is not None and entry.epoch == epoch else ()
        entry = ProducerEntry(epoch, (*earlier, (base_sequence, batch))[-RETAINED:])
    return entry


def check_sequence(setup: Setup, batches: tuple[Batch, ...], producer: Producer, records: int) -> tuple[int, Batch | None]:
    """Decide whether a leader takes a batch of `records` records from an idempotent producer; return (error, duplicate).

    ProducerAppendInfo#maybeValidateDataBatch. `batches` are those of the log. `duplicate` is the batch among the producer's
    last ones that was sent again: it is not appended, and its offsets are the response. None: the batch is new, or refused.
    """
    entry = producer_entry(batches, producer.producer_id)
    if entry is None:
        return _check_unknown(setup, producer), None
    if producer.epoch < entry.epoch:
        return INVALID_PRODUCER_EPOCH, None
    # A new epoch starts its sequence at 0: anything else means that an earlier batch of it was lost.
    if producer.epoch > entry.epoch:
        return OUT_OF_ORDER_SEQUENCE_NUMBER if producer.base_sequence != 0 else NONE, None
    last = last_sequence(producer.base_sequence, records)
    # The same first and last sequence number: the batch was sent again.
    for base_sequence, batch in entry.batches:
        retained = base_sequence, last_sequence(base_sequence, batch.last - batch.base + 1)
        if retained == (producer.base_sequence, last):
            return NONE, batch
    # 1.0.0 and 1.0.1 took every sequence below the remembered ones for a duplicate, also one that was never written, unless
    # it ends at 0.
    if setup.profile.old_batch_is_duplicate and last != 0 and last < entry.batches[0][0]:
        return DUPLICATE_SEQUENCE_NUMBER, None
    in_sequence = producer.base_sequence == (entry.last_sequence + 1) % SEQUENCES
    return NONE if in_sequence else OUT_OF_ORDER_SEQUENCE_NUMBER, None


def _check_unknown(setup: Setup, producer: Producer) -> int:
    """Return the error for a batch of a producer without a batch in the log, NONE if it may begin.

    It may begin at 0, and since KIP-360 (2.5) at any sequence: its earlier batches may have been deleted.
    """
    if producer.base_sequence == 0 or setup.profile.unknown_producer == "taken":
        return NONE
    return UNKNOWN_PRODUCER_ID if setup.profile.unknown_producer == "unknown" else OUT_OF_ORDER_SEQUENCE_NUMBER


# How far a reader of committed transactions may read.
#
# Rules of this part
#
# 1. A transaction begins with a producer's first batch and ends with a marker, which is a record, too. Until the marker is
#    below the high watermark, nobody who reads committed passes the transaction's first offset: that is the last stable one.
# 2. Everything follows from the batches, as when the producer state is built from the log. So a truncation takes a marker
#    back, and a follower knows what its records say. What went with deleted segments is forgotten here; Kafka keeps it in a
#    snapshot.
# 3. An aborted transaction's records are read all the same: the response lists it, and the consumer leaves them out.
# 4. Source: org.apache.kafka.storage.internals.log.ProducerStateManager, TransactionIndex; UnifiedLog#lastStableOffset.


class AbortedTransaction(NamedTuple):
    """AbortedTxn: first offset, and that of the marker."""

    producer_id: int
    first: int
    last: int


class Transactions(NamedTuple):
    """First offsets of the open ones, (first offset, offset of the marker) of the ended ones, the aborted among these."""

    open: tuple[int, ...]
    ended: tuple[tuple[int, int], ...]
    aborted: tuple[AbortedTransaction, ...]


def transactions(batches: tuple[Batch, ...]) -> Transactions:
    """Return the transactions that the batches of a log imply, open and ended. ProducerAppendInfo#append.

    A producer's transaction begins with its first batch after the last marker, and ends with the next marker.
    """
    begun: dict[int, int] = {}  # producer id -> first offset
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
    """Return where the first transaction begins that is open or whose marker is not committed; None if there is none.

    UnifiedLog#firstUnstableOffset: not below the log start.
    """
    in_log = transactions(log.batches)
    unstable = [*in_log.open, *(first for first, marker in in_log.ended if marker >= log.hw)]
    return max(min(unstable), log.start) if unstable else None


def last_stable_offset(log: Log) -> int:
    """Return the last stable offset, which is never above the high watermark. UnifiedLog#lastStableOffset."""
    unstable = first_unstable_offset(log)
    return log.hw if unstable is None else min(unstable, log.hw)


def read_bound(log: Log, isolation: Isolation) -> int:
    """Return the offset at which a read of this isolation ends, exclusive. LogOffsetSnapshot, FetchIsolation."""
    if isolation is Isolation.LOG_END:
        return log.end
    return log.hw if isolation is Isolation.HIGH_WATERMARK else last_stable_offset(log)


def aborted_transactions(log: Log, read: tuple[Batch, ...]) -> tuple[AbortedTransaction, ...]:
    """Return the aborted transactions that overlap the batches that were read. UnifiedLog#collectAbortedTransactions.

    The consumer needs them to leave out their records. Kafka finds the upper end in the offset index, so it may list a few
    more.
    """
    if not read:
        return ()
    aborted = transactions(log.batches).aborted
    return tuple(
        transaction for transaction in aborted if transaction.last >= read[0].base and transaction.first <= read[-1].last
    )

"""Records, as far as the protocol looks at them: offsets, leader epochs, transactions.

A batch is (base, last, epoch), both offsets inclusive, the transaction it belongs to, which only readers of committed
transactions look at, and its idempotent producer, which only an append at a leader looks at. Contents do not matter to the
protocol. Source: org.apache.kafka.common.record.RecordBatch.
"""

from enum import Enum
from typing import NamedTuple


class Marker(Enum):
    """ControlRecordType: how a transaction ended."""

    COMMIT = "COMMIT"
    ABORT = "ABORT"


class Transaction(NamedTuple):
    """The transaction a batch belongs to; with a marker, the batch is the one that ends it."""

    producer_id: int
    marker: Marker | None = None


class Producer(NamedTuple):
    """Who wrote a batch, so that it is written once and in its order; sequence numbers are those of records."""

    producer_id: int
    epoch: int
    base_sequence: int


class Batch(NamedTuple):
    """Offsets of the first and last record, and the leader epoch stamped by the leader that wrote it."""

    base: int
    last: int
    epoch: int
    transaction: Transaction | None = None
    producer: Producer | None = None

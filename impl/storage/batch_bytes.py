"""What batches take on disk and on the wire, all records alike: sizes decide what fits, contents decide nothing here."""

from tidegauge.impl.records import Batch

BATCH_OVERHEAD = 61
"""Bytes of an empty record batch v2 (DefaultRecordBatch.RECORD_BATCH_OVERHEAD)."""

RECORD_BYTES = 10
"""Bytes of a record, unless a test or a broker has another size."""


def bytes_of(batches: tuple[Batch, ...], record_bytes: int) -> int:
    """Return the bytes that these batches take on disk."""
    return sum(BATCH_OVERHEAD + record_bytes * (batch.last - batch.base + 1) for batch in batches)

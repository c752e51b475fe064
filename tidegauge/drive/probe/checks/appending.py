"""Checks of Produce: what a leader makes of a batch, and what it refuses to append.

A function of this file makes the requests of one check, whose sentence stands in the table at the end: as a script, which
yields Expectations (a request and the fields that its response must have) and is sent the fields of each response, or as a
single Expectation. `fixtures.fresh()` is an empty partition for the running check alone, `absent()` one of a topic that does
not exist.

A ProbePartition knows what its log must have: `end` (the log end), `batches`, `epochs` (one per batch), `epoch` (today's
leader's); `appended` counts a record as written. `next_batch` encodes its next batch, after `change` has altered it.
"""

from collections.abc import Callable

from tidegauge.drive.probe.check import Check, Expectation, Script, one_request
from tidegauge.drive.probe.checks.acks import PRODUCE, expect_log
from tidegauge.drive.probe.fixtures import Fixtures, append_batch
from tidegauge.drive.probe.partition import BY_NAME, ProbePartition, next_batch
from tidegauge.drive.probe.topics import UndecidedError
from tidegauge.impl import errors
from tidegauge.impl.rules import UNDEFINED
from tidegauge.traces.segments import CONTROL, MAGIC_AT, RecordBatch

APPEND, VALIDATE = "UnifiedLog#appendAsLeader", "LogValidator#validateBatch"
EPOCH_AT, CRC_AT = 12, MAGIC_AT + 1
"""Positions of the leader epoch and of the checksum in an encoded batch."""

BatchMaker = Callable[[ProbePartition], bytes]
"""Makes the records of a Produce request for a partition: here, records that must be refused."""


def _epoch_is_the_leaders(fixtures: Fixtures) -> Script:
    """Expect that a leader writes its own epoch into a batch, whatever the producer wrote there."""
    # The checksum of a batch does not cover the leader epoch, so a producer can send any.
    partition = fixtures.fresh()
    # None, as a producer sends it, and one that is not the leader's.
    for epoch in (UNDEFINED, partition.epoch + 5):
        records = bytearray(next_batch(partition))
        records[EPOCH_AT : EPOCH_AT + 4] = epoch.to_bytes(4, "big", signed=True)
        expected = {"errorCode": errors.NONE, "baseOffset": partition.end}
        call = partition.produce(bytes(records))
        partition.appended()
        yield Expectation(partition.connection, call, expected)
    yield _stamped(partition)


def _epochs_of_leaders(fixtures: Fixtures) -> Script:
    """Expect the epochs of all leaders in a log that several leaders have written."""
    partition = fixtures.epochs()
    yield _stamped(partition)


def _stamped(partition: ProbePartition) -> Expectation:
    """Expect that the log has what was written to it, each batch with the epoch of the leader at that time."""
    fields = {"errorCode": errors.NONE, "batches": partition.batches, "epochs": partition.epochs}
    return Expectation(partition.connection, partition.fetch(0), fields)


def _refused(make_batch: BatchMaker, *codes: int, **config: str) -> Callable[[Fixtures], Script]:
    """Make the script of a batch that is refused with one of the error codes, and of which nothing is in the log.

    `config`: settings of the topic, with underscores for dots.
    """
    allowed_codes = frozenset(codes)

    def script(fixtures: Fixtures) -> Script:
        """Send the batch, and expect one of the errors and a log without it."""
        partition = fixtures.fresh(**config)
        # A topic with other settings might refuse this record as well: its log stays empty.
        if not config:
            append_batch(partition)
        yield Expectation(partition.connection, partition.produce(make_batch(partition)), {"errorCode": allowed_codes})
        yield expect_log(partition)

    return script


def _flip_bit(position: int) -> BatchMaker:
    """Return a maker of batches with a wrong bit in the byte at a position; a negative one counts from the end."""

    def make_batch(partition: ProbePartition) -> bytes:
        """Return the next batch with one bit changed."""
        records = bytearray(next_batch(partition))
        records[position] ^= 0x01
        return bytes(records)

    return make_batch


def _control_batch(partition: ProbePartition) -> bytes:
    """Return the next batch, marked as a control batch, which no client may send."""
    return next_batch(partition, change=lambda batch: batch._replace(attributes=CONTROL))


def _wrong_base_offset(partition: ProbePartition) -> bytes:
    """Return the next batch with base offset 1000, which its first eight bytes hold and its checksum does not cover."""
    return (1000).to_bytes(8, "big") + next_batch(partition)[8:]


def _too_many_offsets(partition: ProbePartition) -> bytes:
    """Return a batch with one record, and a header that claims offsets for three."""
    return next_batch(partition, change=lambda batch: batch._replace(last=batch.last + 2))


def _two_batches(partition: ProbePartition) -> bytes:
    """Return the next batch twice: a request may have one batch only."""
    return next_batch(partition) * 2


def _torn(partition: ProbePartition) -> bytes:
    """Return the next batch without its last bytes."""
    return next_batch(partition, 3)[:-5]


def _large(partition: ProbePartition) -> bytes:
    """Return a batch with a record of 4,000 bytes, more than its topic allows (max.message.bytes)."""

    def filled(batch: RecordBatch) -> RecordBatch:
        """Return the batch with a large value in its only record."""
        return batch._replace(records=(batch.records[0]._replace(value=bytes(4000)),))

    return next_batch(partition, change=filled)


def _unknown_topic(fixtures: Fixtures) -> Expectation:
    """Expect that a topic name that no topic has is refused."""
    absent = fixtures.absent()
    return Expectation(
        absent.connection, absent.produce(next_batch(absent)), {"errorCode": errors.UNKNOWN_TOPIC_OR_PARTITION}
    )


def _unknown_id(fixtures: Fixtures) -> Expectation:
    """Expect that a topic id that no topic has is refused."""
    absent = fixtures.absent()
    # From the version after BY_NAME on a request names topics by id alone.
    call = absent.produce(next_batch(absent), version=absent.version("Produce", least=BY_NAME + 1))
    return Expectation(absent.connection, call, {"errorCode": errors.UNKNOWN_TOPIC_ID})


def _unknown_partition(fixtures: Fixtures) -> Expectation:
    """Expect that a partition that the topic does not have is refused."""
    partition = fixtures.log()
    call = partition.produce(next_batch(partition), index=7)
    return Expectation(partition.connection, call, {"errorCode": errors.UNKNOWN_TOPIC_OR_PARTITION})


def _no_offset(fixtures: Fixtures) -> Script:
    """Expect that the refusal of a batch for a partition that the topic does not have has base offset -1."""
    partition = fixtures.log()
    call = partition.produce(next_batch(partition), index=7)
    fields = yield Expectation(partition.connection, call, {})
    # That the batch is not refused is the failure of another check.
    if fields["errorCode"] == errors.NONE:
        raise UndecidedError("a batch for a partition that is not there is not refused: there is no refusal to look at")
    # The error itself may be any.
    yield Expectation(partition.connection, call, {"baseOffset": UNDEFINED})


APPEND_CHECKS = (
    Check(
        "append.leader-epoch",
        "APPEND-01",
        APPEND,
        "A leader stamps a batch with its own epoch, whatever the producer wrote there.",
        _epoch_is_the_leaders,
        PRODUCE,
    ),
    Check(
        "append.leader-epochs-after-elections",
        "APPEND-01",
        APPEND,
        "Batches keep the epoch of the leader that appended them.",
        _epochs_of_leaders,
        PRODUCE,
    ),
    Check(
        "append.base-offset",
        "",
        VALIDATE,
        "A producer numbers its records from 0: a batch with another base offset is refused with INVALID_RECORD.",
        _refused(_wrong_base_offset, errors.INVALID_RECORD),
        PRODUCE,
    ),
    Check(
        "append.checksum",
        "",
        "UnifiedLog#analyzeAndValidateRecords",
        "A batch whose checksum does not match is refused with CORRUPT_MESSAGE.",
        _refused(_flip_bit(CRC_AT), errors.CORRUPT_MESSAGE),
        PRODUCE,
    ),
    Check(
        "append.content",
        "",
        "UnifiedLog#analyzeAndValidateRecords",
        "A batch of which a bit has changed is refused with CORRUPT_MESSAGE.",
        _refused(_flip_bit(-2), errors.CORRUPT_MESSAGE),
        PRODUCE,
    ),
    Check(
        "append.torn",
        "",
        "ProduceRequest#validateRecords",
        "Half a batch is refused with CORRUPT_MESSAGE or INVALID_RECORD.",
        _refused(_torn, errors.CORRUPT_MESSAGE, errors.INVALID_RECORD),
        PRODUCE,
    ),
    Check(
        "append.two-batches",
        "",
        "ProduceRequest#validateRecords",
        "A request has one batch per partition: two are refused with INVALID_RECORD.",
        _refused(_two_batches, errors.INVALID_RECORD),
        PRODUCE,
    ),
    Check(
        "append.control-batch",
        "",
        VALIDATE,
        "A control batch of a client is refused with INVALID_RECORD.",
        _refused(_control_batch, errors.INVALID_RECORD),
        PRODUCE,
    ),
    Check(
        "append.offsets-without-records",
        "",
        VALIDATE,
        "A batch with more offsets than records is refused with INVALID_RECORD.",
        _refused(_too_many_offsets, errors.INVALID_RECORD),
        PRODUCE,
    ),
    Check(
        "append.without-key-to-a-compacted-topic",
        "",
        "LogValidator#validateKey",
        "A record without a key is refused by a compacted topic with INVALID_RECORD.",
        _refused(next_batch, errors.INVALID_RECORD, cleanup_policy="compact"),
        PRODUCE,
    ),
    Check(
        "append.too-large",
        "",
        "UnifiedLog#analyzeAndValidateRecords",
        "A batch above max.message.bytes is refused with MESSAGE_TOO_LARGE.",
        _refused(_large, errors.MESSAGE_TOO_LARGE, max_message_bytes="1000"),
        PRODUCE,
    ),
    Check(
        "append.offset-of-a-refusal",
        "",
        "ProduceResponse#INVALID_OFFSET",
        "A refusal has no base offset: -1.",
        _no_offset,
        PRODUCE,
    ),
    Check(
        "append.unknown-topic",
        "",
        "KafkaApis#handleProduceRequest",
        "An unknown topic name is refused with UNKNOWN_TOPIC_OR_PARTITION.",
        one_request(_unknown_topic),
        PRODUCE,
    ),
    Check(
        "append.unknown-topic-id",
        "",
        "KafkaApis#handleProduceRequest",
        "An unknown topic id is refused with UNKNOWN_TOPIC_ID (KIP-516).",
        one_request(_unknown_id),
        {"Produce": 13},
    ),
    Check(
        "append.unknown-partition",
        "",
        "KafkaApis#handleProduceRequest",
        "An unknown partition is refused with UNKNOWN_TOPIC_OR_PARTITION.",
        one_request(_unknown_partition),
        PRODUCE,
    ),
)

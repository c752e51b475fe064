"""Checks of Produce: what a leader makes of a batch, and what it refuses to append."""

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

Spoiled = Callable[[ProbePartition], bytes]


def _epoch_is_the_leaders(fixtures: Fixtures) -> Script:
    """Expect that a leader writes its own epoch into a batch, whatever the producer wrote there."""
    # The checksum of a batch does not cover the leader epoch, so a producer can send any.
    partition = fixtures.fresh()
    for epoch in (UNDEFINED, partition.epoch + 5):
        records = bytearray(next_batch(partition))
        records[EPOCH_AT : EPOCH_AT + 4] = epoch.to_bytes(4, "big", signed=True)
        expected = {"errorCode": errors.NONE, "baseOffset": partition.end}
        call = partition.produce(bytes(records))
        partition.appended()
        yield Expectation(partition.connection, call, expected)
    yield _stamped(partition)


def _epochs_of_leaders(fixtures: Fixtures) -> Script:
    partition = fixtures.epochs()
    yield _stamped(partition)


def _stamped(partition: ProbePartition) -> Expectation:
    seen = {"errorCode": errors.NONE, "batches": partition.batches, "epochs": partition.epochs}
    return Expectation(partition.connection, partition.fetch(0), seen)


def _refused(spoiled: Spoiled, *codes: int, **config: str) -> Callable[[Fixtures], Script]:
    """Make the script of a spoiled batch that is refused, and of which nothing is in the log. `config`: of the topic."""
    wanted = frozenset(codes)

    def script(fixtures: Fixtures) -> Script:
        """Send the batch, and expect one of the errors and a log without it."""
        partition = fixtures.fresh(**config)
        if not config:
            append_batch(partition)
        yield Expectation(partition.connection, partition.produce(spoiled(partition)), {"errorCode": wanted})
        yield expect_log(partition)

    return script


def _flipped(at: int) -> Spoiled:
    """Spoil a batch: flip a bit of the byte at `at`."""

    def spoiled(partition: ProbePartition) -> bytes:
        """Return the next batch with one bit changed."""
        records = bytearray(next_batch(partition))
        records[at] ^= 0x01
        return bytes(records)

    return spoiled


def _control(partition: ProbePartition) -> bytes:
    return next_batch(partition, change=lambda batch: batch._replace(attributes=CONTROL))


def _based(partition: ProbePartition) -> bytes:
    return (1000).to_bytes(8, "big") + next_batch(partition)[8:]


def _counts(partition: ProbePartition) -> bytes:
    # One record, and a header that claims offsets for three.

    return next_batch(partition, change=lambda batch: batch._replace(last=batch.last + 2))


def _two_batches(partition: ProbePartition) -> bytes:
    return next_batch(partition) * 2


def _torn(partition: ProbePartition) -> bytes:
    return next_batch(partition, 3)[:-5]


def _large(partition: ProbePartition) -> bytes:
    """Make a batch with a record of 4,000 bytes."""

    def filled(batch: RecordBatch) -> RecordBatch:
        return batch._replace(records=(batch.records[0]._replace(value=bytes(4000)),))

    return next_batch(partition, change=filled)


def _nowhere(fixtures: Fixtures) -> Expectation:
    absent = fixtures.absent()
    return Expectation(
        absent.connection, absent.produce(next_batch(absent)), {"errorCode": errors.UNKNOWN_TOPIC_OR_PARTITION}
    )


def _nowhere_by_id(fixtures: Fixtures) -> Expectation:
    """Expect that a topic id that no topic has is refused."""
    absent = fixtures.absent()
    call = absent.produce(next_batch(absent), version=absent.version("Produce", BY_NAME + 1))
    return Expectation(absent.connection, call, {"errorCode": errors.UNKNOWN_TOPIC_ID})


def _no_partition(fixtures: Fixtures) -> Expectation:
    """Expect that a partition that the topic does not have is refused."""
    partition = fixtures.log()
    call = partition.produce(next_batch(partition), index=7)
    return Expectation(partition.connection, call, {"errorCode": errors.UNKNOWN_TOPIC_OR_PARTITION})


def _no_offset(fixtures: Fixtures) -> Script:
    """Expect that a refusal has no base offset."""
    partition = fixtures.log()
    call = partition.produce(next_batch(partition), index=7)
    seen = yield Expectation(partition.connection, call, {})
    if seen["errorCode"] == errors.NONE:
        raise UndecidedError("a batch for a partition that is not there is not refused: there is no refusal to look at")
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
        _refused(_based, errors.INVALID_RECORD),
        PRODUCE,
    ),
    Check(
        "append.checksum",
        "",
        "UnifiedLog#analyzeAndValidateRecords",
        "A batch whose checksum does not match is refused with CORRUPT_MESSAGE.",
        _refused(_flipped(CRC_AT), errors.CORRUPT_MESSAGE),
        PRODUCE,
    ),
    Check(
        "append.content",
        "",
        "UnifiedLog#analyzeAndValidateRecords",
        "A batch of which a bit has changed is refused with CORRUPT_MESSAGE.",
        _refused(_flipped(-2), errors.CORRUPT_MESSAGE),
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
        _refused(_control, errors.INVALID_RECORD),
        PRODUCE,
    ),
    Check(
        "append.offsets-without-records",
        "",
        VALIDATE,
        "A batch with more offsets than records is refused with INVALID_RECORD.",
        _refused(_counts, errors.INVALID_RECORD),
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
        one_request(_nowhere),
        PRODUCE,
    ),
    Check(
        "append.unknown-topic-id",
        "",
        "KafkaApis#handleProduceRequest",
        "An unknown topic id is refused with UNKNOWN_TOPIC_ID (KIP-516).",
        one_request(_nowhere_by_id),
        {"Produce": 13},
    ),
    Check(
        "append.unknown-partition",
        "",
        "KafkaApis#handleProduceRequest",
        "An unknown partition is refused with UNKNOWN_TOPIC_OR_PARTITION.",
        one_request(_no_partition),
        PRODUCE,
    ),
)

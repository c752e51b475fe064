"""Checks of idempotent producers (KIP-98): a batch is appended once and in its order.

A script yields Expectations, each a request and the fields that its response must have. A ProducerScript is the part of it
that one producer sends to one empty partition; after it, the log must have exactly the batches that were appended. Numbers
are sequence numbers: that of a batch is the number of its first record, and each record counts one. A ProbePartition knows
what its log must have: `end` is its log end, and `appended` counts a batch as written. Of a producer `appended` and
`refused` return a batch with what is expected of it; `sent_before` sends one that only prepares the next.
"""

from collections.abc import Callable

from tidegauge.drive.probe.check import Check, Expectation, ExpectedFields, Script, partition_in
from tidegauge.drive.probe.checks.acks import expect_log
from tidegauge.drive.probe.fixtures import Fixtures, append_batch
from tidegauge.drive.probe.partition import ProbePartition, next_batch
from tidegauge.drive.probe.topics import UndecidedError
from tidegauge.impl import errors
from tidegauge.impl.errors import error_text
from tidegauge.impl.storage.producer_state import SEQUENCES
from tidegauge.traces.segments import RecordBatch

SEQUENCE, EPOCH = "ProducerAppendInfo#checkSequence", "ProducerAppendInfo#checkProducerEpoch"
NEEDS = {"Produce": 3, "InitProducerId": 0}
REMEMBERED = 5
"""ProducerStateEntry.NUM_BATCHES_TO_RETAIN: how many batches a producer may have in flight."""


class _Producer:
    """An idempotent producer that writes to one partition.

    In its methods, `sequence` is the base sequence of a batch and `records` the number of its records; `epoch` is the
    producer epoch, counted from the first one that the producer has (`self.epoch`).
    """

    def __init__(self, partition: ProbePartition, producer_id: int, epoch: int) -> None:
        self.partition, self._id, self.epoch = partition, producer_id, epoch

    def appended(self, sequence: int, records: int = 1, epoch: int = 0) -> Expectation:
        """Expect that a batch is appended at the log end."""
        base = self.partition.end
        expectation = self.sent(sequence, {"errorCode": errors.NONE, "baseOffset": base}, records, epoch)
        self.partition.appended(records)
        return expectation

    def refused(self, sequence: int, *codes: int, records: int = 1, epoch: int = 0) -> Expectation:
        """Expect that a batch is refused with one of the error codes."""
        return self.sent(sequence, {"errorCode": frozenset(codes)}, records, epoch)

    def sent_before(self, sequence: int, records: int = 1, epoch: int = 0) -> None:
        """Send a batch that prepares the next one. Raises UndecidedError where it is refused: it is not what is checked."""
        expectation = self.appended(sequence, records, epoch)
        result = partition_in(expectation.call.name, expectation.connection.request(expectation.call))
        if result["errorCode"] != errors.NONE:
            what = f"sequence number {sequence} and producer epoch {self.epoch + epoch}"
            raise UndecidedError(f"a batch with {what} is refused: {error_text(result['errorCode'])}")

    def sent(self, sequence: int, expected: ExpectedFields, records: int = 1, epoch: int = 0) -> Expectation:
        """Expect that a batch gets a response with the fields `expected`."""

        def numbered(batch: RecordBatch) -> RecordBatch:
            """Return a batch with the id, the epoch and the sequence number of this producer."""
            return batch._replace(producer_id=self._id, producer_epoch=self.epoch + epoch, base_sequence=sequence)

        data = next_batch(self.partition, records, numbered)
        return Expectation(self.partition.connection, self.partition.produce(data), expected)


ProducerScript = Callable[[_Producer], Script]


def _sends(producer_script: ProducerScript) -> Callable[[Fixtures], Script]:
    """Make the script of a check from the batches that a producer sends to an empty partition.

    `producer_script` is called with that producer, whose id and first epoch all checks share.
    """

    def script(fixtures: Fixtures) -> Script:
        """Send the batches of the producer, then expect in the log those that were appended and no others."""
        partition = fixtures.fresh()
        yield from producer_script(_Producer(partition, *fixtures.producer()))
        yield expect_log(partition)

    return script


def _in_order(producer: _Producer) -> Script:
    """Expect that batches of one and more records are appended if each continues the numbers of the one before."""
    for sequence, records in ((0, 1), (1, 3), (4, 2)):
        yield producer.appended(sequence, records)


def _again(producer: _Producer) -> Script:
    """Expect that each of the last five batches, sent again, gets its base offset again and is not appended again."""
    for sequence in range(REMEMBERED):
        yield producer.appended(sequence)
    # Each batch has one record, so its base offset is its sequence number.
    for sequence in range(REMEMBERED):
        yield producer.sent(sequence, {"errorCode": errors.NONE, "baseOffset": sequence})


def _hole(producer: _Producer) -> Script:
    """Expect that numbers that leave a hole are refused, and the next number is appended."""
    yield producer.appended(0)
    for sequence in (2, 7):
        yield producer.refused(sequence, errors.OUT_OF_ORDER_SEQUENCE_NUMBER)
    yield producer.appended(1)


def _other_size(producer: _Producer) -> Script:
    """Expect that a used number is refused if the batch has another size: it is no repetition then."""
    yield producer.appended(0)
    yield producer.appended(1)
    yield producer.refused(0, errors.OUT_OF_ORDER_SEQUENCE_NUMBER, errors.DUPLICATE_SEQUENCE_NUMBER, records=2)


def _older_epoch(producer: _Producer) -> Script:
    """Expect that a batch of an older producer epoch is refused."""
    # A producer may bump its epoch by itself (KIP-360). The checks after this one keep to the bumped epoch: Kafka tracks a
    # producer per partition, but another broker may track it as a whole.
    producer.sent_before(0, epoch=1)
    yield producer.refused(1, errors.INVALID_PRODUCER_EPOCH, epoch=0)
    yield producer.appended(1, epoch=1)


def _newer_epoch(producer: _Producer) -> Script:
    """Expect that a newer producer epoch must begin at sequence number 0."""
    producer.sent_before(0, epoch=1)
    yield producer.refused(1, errors.OUT_OF_ORDER_SEQUENCE_NUMBER, epoch=2)
    yield producer.appended(0, epoch=2)


def _wraps(producer: _Producer) -> Script:
    """Expect that the number after the greatest Java int is 0."""
    # A producer whose earlier batches are gone may begin with any sequence number (KIP-360), but not on a log that never had
    # a record (KAFKA-15591).
    append_batch(producer.partition)
    # A batch with the two greatest numbers; in the epoch that the check before this one has bumped to.
    producer.sent_before(SEQUENCES - 2, records=2, epoch=2)
    yield producer.appended(0, epoch=2)


PRODUCER_CHECKS = (
    Check(
        "producers.in-order",
        "",
        SEQUENCE,
        "Batches with consecutive sequence numbers are appended.",
        _sends(_in_order),
        NEEDS,
    ),
    Check(
        "producers.sent-again",
        "",
        "ProducerStateEntry#findDuplicateBatch",
        "A batch that is sent again is answered with its base offset, and appended once: each of the last five.",
        _sends(_again),
        NEEDS,
    ),
    Check(
        "producers.hole",
        "",
        SEQUENCE,
        "A sequence number that is not the next one is refused with OUT_OF_ORDER_SEQUENCE_NUMBER.",
        _sends(_hole),
        NEEDS,
    ),
    Check(
        "producers.sent-again-with-more-records",
        "",
        "ProducerStateEntry#findDuplicateBatch",
        "The same number with more records is another batch, and refused.",
        _sends(_other_size),
        NEEDS,
    ),
    Check(
        "producers.older-epoch",
        "",
        EPOCH,
        "A batch of an older producer epoch is refused with INVALID_PRODUCER_EPOCH.",
        _sends(_older_epoch),
        NEEDS,
    ),
    Check(
        "producers.newer-epoch",
        "",
        SEQUENCE,
        "A newer producer epoch begins at sequence number 0.",
        _sends(_newer_epoch),
        NEEDS,
    ),
    Check(
        "producers.numbers-begin-again",
        "",
        "DefaultRecordBatch#incrementSequence",
        "After the greatest Java int the next sequence number is 0.",
        _sends(_wraps),
        NEEDS,
    ),
)

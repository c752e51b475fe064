"""Checks of what an append waits for: acks, and min.insync.replicas.

A function of this file makes the requests of one check, whose sentence stands in the table at the end: as a script, which
yields Expectations (a request and the fields that its response must have) and is sent the fields of each response.
`fixtures.fresh()` is an empty partition of one replica, `replicated()` one of two replicas.

A ProbePartition knows what its log must have: `end` (the log end), `batches` (a pair of base and last offset each). Its
methods make requests; `appended` counts a batch as written. `next_batch` encodes its next batch.
"""

from collections.abc import Callable

from tidegauge.drive.probe.check import Check, Expectation, FailedError, Script
from tidegauge.drive.probe.fixtures import Fixtures
from tidegauge.drive.probe.partition import LATEST, ProbePartition, next_batch
from tidegauge.impl import errors

REPLICAS = "Partition#appendRecordsToLeader"
PRODUCE = {"Produce": 3}
ROUNDS = 10
"""How often a record is written and the high watermark read: a late high watermark is not late each time."""


def expect_append(partition: ProbePartition, records: int = 1, acks: int = -1) -> Expectation:
    """Expect that a batch of so many records is appended at the log end, and count it as written; acks -1 means all."""
    expected = {"errorCode": errors.NONE, "baseOffset": partition.end}
    call = partition.produce(next_batch(partition, records), acks)
    partition.appended(records)
    return Expectation(partition.connection, call, expected)


def expect_log(partition: ProbePartition) -> Expectation:
    """Expect that the log contains what was appended, and nothing else."""
    fields = {"errorCode": errors.NONE, "batches": partition.batches, "highWatermark": partition.end}
    return Expectation(partition.connection, partition.fetch(0), fields)


def _acknowledged(acks: int) -> Callable[[Fixtures], Script]:
    """Make the script of appends with these acks, which are acknowledged and are in the log then."""

    def script(fixtures: Fixtures) -> Script:
        """Append batches of one and more records, and expect all of them in the log."""
        partition = fixtures.fresh()
        for records in (1, 3, 1):
            yield expect_append(partition, records, acks)
        yield expect_log(partition)

    return script


def _silent(fixtures: Fixtures) -> Script:
    """Expect no response to batches with acks=0, and both in the log all the same."""
    # A response to one of them would be read as the response to the fetch, and fail the check.
    partition = fixtures.fresh()
    for _ in range(2):
        yield expect_append(partition, acks=0)._replace(expected=None)
    yield expect_log(partition)


def _invalid_acks(fixtures: Fixtures) -> Script:
    """Expect that acks other than 0, 1 and -1 are refused, and nothing is appended."""
    partition = fixtures.fresh()
    for acks in (2, -2, 7):
        call = partition.produce(next_batch(partition), acks)
        yield Expectation(partition.connection, call, {"errorCode": errors.INVALID_REQUIRED_ACKS})
    yield expect_log(partition)


def _all_is_committed(fixtures: Fixtures) -> Script:
    """Expect that a record is below the high watermark as soon as acks=all has acknowledged it."""
    # Without a pause between the two: the high watermark must have moved before the response was sent.
    partition = fixtures.replicated()
    for _ in range(ROUNDS):
        offset = partition.end
        yield expect_append(partition)
        # For a consumer the latest offset is the high watermark.
        fields = yield Expectation(partition.connection, partition.list_offsets(LATEST), {"errorCode": errors.NONE})
        if fields["offset"] <= offset:
            raise FailedError(f"offset: expected a high watermark above the acknowledged {offset}; seen {fields['offset']}")


def _too_few(fixtures: Fixtures) -> Script:
    """Expect that acks=all is refused where min.insync.replicas exceeds the replicas, or is limited to their number."""
    # Since 3.7 no more in-sync replicas are required than there are replicas (KAFKA-15583).
    partition = fixtures.fresh(min_insync_replicas="2")
    call = partition.produce(next_batch(partition))
    allowed_codes = frozenset({errors.NONE, errors.NOT_ENOUGH_REPLICAS})
    fields = yield Expectation(partition.connection, call, {"errorCode": allowed_codes})
    if fields["errorCode"] == errors.NONE:
        partition.appended()
    yield Expectation(partition.connection, partition.fetch(0), {"errorCode": errors.NONE, "batches": partition.batches})


def _without_acks_all(fixtures: Fixtures) -> Script:
    """Expect that acks=1 is acknowledged however many in-sync replicas are required."""
    partition = fixtures.fresh(min_insync_replicas="2")
    yield expect_append(partition, acks=1)
    batches = {"errorCode": errors.NONE, "batches": partition.batches}
    yield Expectation(partition.connection, partition.fetch(0), batches)


ACKS_CHECKS = (
    Check(
        "acks.one", "APPEND-01", REPLICAS, "With acks=1 a batch is answered with its base offset.", _acknowledged(1), PRODUCE
    ),
    Check(
        "acks.all", "ACK-01", REPLICAS, "With acks=all a batch is answered with its base offset.", _acknowledged(-1), PRODUCE
    ),
    Check(
        "acks.zero",
        "",
        "KafkaApis#handleProduceRequest",
        "With acks=0 there is no response, and the batch is appended.",
        _silent,
        PRODUCE,
    ),
    Check(
        "acks.invalid",
        "",
        "ReplicaManager#isValidRequiredAcks",
        "Other acks than 0, 1 and -1 are refused with INVALID_REQUIRED_ACKS, and nothing is appended.",
        _invalid_acks,
        PRODUCE,
    ),
    Check(
        "acks.all-is-committed",
        "ACK-01",
        "Partition#checkEnoughReplicasReachOffset",
        "A record acknowledged with acks=all is below the high watermark, as the next request shows.",
        _all_is_committed,
        PRODUCE,
    ),
    Check(
        "min-isr.more-than-replicas",
        "APPEND-03",
        REPLICAS,
        "With acks=all and more min.insync.replicas than replicas, a batch is refused with NOT_ENOUGH_REPLICAS and not "
        "appended; or they are no more than the replicas, and it is (3.7).",
        _too_few,
        PRODUCE,
    ),
    Check(
        "min-isr.acks-one", "APPEND-03", REPLICAS, "min.insync.replicas concerns acks=all only.", _without_acks_all, PRODUCE
    ),
)

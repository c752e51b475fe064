"""Checks of what a consumer gets: from its offset on, up to the high watermark, never above.

A function of this file makes the requests of one check, whose sentence stands in the table at the end: as a script, which
yields Expectations (a request and the fields that its response must have) and is sent the fields of each response, or as a
single Expectation. `fixtures.log()` is a partition with ten records, one per batch; `fresh()` is an empty one, `moved()` one
whose log start has moved, `replicated()` an empty one of two replicas, `absent()` one of a topic that does not exist.

A ProbePartition knows what its log must have: `start`, `end` (the log end), `batches` (a pair of base and last offset each),
`epoch` (its leader's). Its methods make requests about it; `appended` counts a record as written. `map(partition_in, ..)`
takes the fields of the partition out of responses. The fields `expected` of an Expectation may be None, where there must be
no response: never here, so `or {}` changes nothing.
"""

from tidegauge.drive.probe.check import Check, Expectation, FailedError, Script, one_request, partition_in
from tidegauge.drive.probe.fixtures import Fixtures, append_batch
from tidegauge.drive.probe.partition import BY_NAME, DEBUGGING_CONSUMER, LATEST, READ_COMMITTED, ProbePartition, next_batch
from tidegauge.drive.probe.topics import UndecidedError
from tidegauge.impl import errors
from tidegauge.impl.rules import UNDEFINED, fetch_error

READ, OUT = "UnifiedLog#read", {"errorCode": errors.OFFSET_OUT_OF_RANGE, "batches": []}
UNUSED_ID = 2_000_000_011
"""A broker id that no broker has."""

NAMES = ("Produce", "ListOffsets", "Fetch")
ROUNDS = 200
"""How often a produce, a read of the log end and a fetch are sent together at most, until the fetch is served before the
follower's."""


def _read_from(partition: ProbePartition, offset: int, **arguments: int) -> Expectation:
    """Expect the batches that end at or after an offset, the high watermark and the log start.

    `arguments`: more arguments of `ProbePartition.fetch`.
    """
    batches = [(base, last) for base, last in partition.batches if last >= offset]
    fields = {"highWatermark": partition.end, "logStartOffset": partition.start, "batches": batches}
    return Expectation(partition.connection, partition.fetch(offset, **arguments), {"errorCode": errors.NONE, **fields})


def _every_offset(fixtures: Fixtures) -> Script:
    """Fetch from each offset, also from the log end, where there is nothing to read."""
    partition = fixtures.log()
    for offset in range(partition.end + 1):
        yield _read_from(partition, offset)


def _empty(fixtures: Fixtures) -> Script:
    """Fetch from the empty log of a new partition."""
    partition = fixtures.fresh()
    yield _read_from(partition, 0)


def _inside(fixtures: Fixtures) -> Script:
    """Fetch from inside batches: a response begins with the batch that has the offset."""
    partition = fixtures.fresh()
    append_batch(partition, 3)
    append_batch(partition, 2)
    for offset in range(partition.end):
        yield _read_from(partition, offset)


def _one_byte(fixtures: Fixtures) -> Expectation:
    """Expect the batch at the fetch offset alone, where max bytes, 1, has room for none."""
    partition = fixtures.log()
    offset = 2  # each batch has one record
    expected = {"errorCode": errors.NONE, "batches": partition.batches[offset : offset + 1]}
    return Expectation(partition.connection, partition.fetch(offset, max_bytes=1), expected)


def _without_waiting(fixtures: Fixtures) -> Script:
    """Fetch with max wait 0 where there is something to read, and where there is nothing."""
    partition = fixtures.log()
    for offset in (0, partition.end):
        yield _read_from(partition, offset, max_wait=0)


def _out_of_range(fixtures: Fixtures, *offsets: int) -> Script:
    """Expect that a fetch at each of these offsets is out of range."""
    partition = fixtures.log()
    for offset in offsets:
        yield Expectation(partition.connection, partition.fetch(offset), OUT)


def _beyond(fixtures: Fixtures) -> Script:
    """Expect that offsets beyond the log end are out of range, whether near or far."""
    end = fixtures.log().end
    yield from _out_of_range(fixtures, end + 1, end + 1000, 1 << 40)


def _below(fixtures: Fixtures) -> Script:
    """Expect that each offset below the log start is out of range, and that the log start is read."""
    partition = fixtures.moved()
    for offset in range(partition.start):
        yield Expectation(partition.connection, partition.fetch(offset), OUT)
    yield _read_from(partition, partition.start)


def _unassigned(fixtures: Fixtures, *, has_epoch: bool) -> Expectation:
    """Fetch as a replica that is not assigned, with the leader's epoch as the current one or without any."""
    partition = fixtures.log()
    epoch = partition.epoch if has_epoch else UNDEFINED
    # The replica leads (`serves`), and compares leader epochs (`fences`, KIP-320).
    error = fetch_error(epoch, partition.epoch, serves=True, assigned=False, fences=True)
    return Expectation(partition.connection, partition.fetch(0, current=epoch, replica=UNUSED_ID), {"errorCode": error})


def _unknown_name(fixtures: Fixtures) -> Expectation:
    """Expect that a topic name that no topic has is refused."""
    absent = fixtures.absent()
    # The newest versions name topics by id.
    version = absent.version("Fetch", at_most=BY_NAME)
    return Expectation(absent.connection, absent.fetch(0, version=version), {"errorCode": errors.UNKNOWN_TOPIC_OR_PARTITION})


def _unknown_id(fixtures: Fixtures) -> Expectation:
    """Expect that a topic id that no topic has is refused."""
    absent = fixtures.absent()
    # The newest version, which a fetch has by default, names topics by id alone: from 13 on, which the check needs.
    return Expectation(absent.connection, absent.fetch(0), {"errorCode": errors.UNKNOWN_TOPIC_ID})


def _unknown_partition(fixtures: Fixtures) -> Expectation:
    """Expect that a partition that the topic does not have is refused."""
    partition = fixtures.log()
    return Expectation(partition.connection, partition.fetch(0, index=7), {"errorCode": errors.UNKNOWN_TOPIC_OR_PARTITION})


def _committed(fixtures: Fixtures) -> Script:
    """Fetch as a read_committed consumer: without transactions it gets what others get."""
    partition = fixtures.log()
    for offset in (0, partition.end):
        expectation = _read_from(partition, offset, isolation=READ_COMMITTED)
        fields = yield expectation._replace(expected={**(expectation.expected or {}), "lastStableOffset": partition.end})
        # A null list and an empty one both mean that no transaction was aborted.
        if fields["abortedTransactions"]:
            raise FailedError(f"abortedTransactions: expected none; seen {fields['abortedTransactions']}")


def _below_the_high_watermark(fixtures: Fixtures) -> Script:
    """Read a record that lies above the high watermark, as its follower has not fetched it yet: it must not be returned.

    Tries again until the fetch was served before the follower's; undecided if it never was.
    """
    # An Expectation holds one request, and these are sent together: the script itself sends them and yields nothing.
    yield from ()
    partition = fixtures.replicated()
    for _ in range(ROUNDS):
        # All three are sent at once: when the fetch is handled, the follower has not fetched the record yet.
        calls = (
            partition.produce(next_batch(partition), acks=1),
            # For this consumer the latest offset is the log end, not the high watermark.
            partition.list_offsets(LATEST, replica=DEBUGGING_CONSUMER),
            partition.fetch(partition.end),
        )
        partition.appended()
        produced, end, read = map(partition_in, NAMES, partition.connection.request_all(calls))
        if any(response["errorCode"] != errors.NONE for response in (produced, end, read)):
            raise UndecidedError(f"a record was not written, or its place not shown: {produced}, {end}")
        high_watermark = read["highWatermark"]
        if above := [(base, last) for base, last in read["batches"] if last >= high_watermark]:
            raise FailedError(f"batches: expected none at or above the high watermark {high_watermark}; seen {above}")
        # There was a record above the high watermark, and it was not returned.
        if high_watermark < end["offset"]:
            return
    raise UndecidedError(f"the follower was as fast as the probe, {ROUNDS} times: nothing lay above the high watermark")


FETCH_CHECKS = (
    Check("fetch.every-offset", "FETCH-06", READ, "A fetch returns the records from its offset on.", _every_offset),
    Check("fetch.empty-log", "HW-01", READ, "An empty log has high watermark and log start 0, and nothing to read.", _empty),
    Check("fetch.inside-a-batch", "FETCH-06", READ, "A fetch inside a batch returns the whole batch.", _inside),
    Check(
        "fetch.without-waiting",
        "FETCH-06",
        "ReplicaManager#fetchMessages",
        "A fetch that must not wait returns what there is.",
        _without_waiting,
    ),
    Check(
        "fetch.first-batch-exceeds-max-bytes",
        "",
        "ReplicaManager#readFromLog",
        "The first batch is returned even if it is larger than max bytes (KIP-74).",
        one_request(_one_byte),
    ),
    Check(
        "fetch.beyond-the-end",
        "FETCH-05",
        "Partition#readRecords",
        "A fetch beyond the log end is refused with OFFSET_OUT_OF_RANGE.",
        _beyond,
    ),
    Check(
        "fetch.negative-offset",
        "FETCH-05",
        "Partition#readRecords",
        "A fetch at a negative offset is refused with OFFSET_OUT_OF_RANGE.",
        lambda fixtures: _out_of_range(fixtures, -1, -7),
    ),
    Check(
        "fetch.below-the-log-start",
        "FETCH-05",
        "Partition#readRecords",
        "A fetch below the log start is refused with OFFSET_OUT_OF_RANGE; one at the log start reads.",
        _below,
        {"DeleteRecords": 0},
    ),
    Check(
        "fetch.foreign-replica-in-the-leaders-epoch",
        "FENCE-01",
        "Partition#followerReplicaOrThrow",
        "A follower that is not assigned, in the leader's epoch, knows of an assignment the leader has not read: "
        "UNKNOWN_LEADER_EPOCH.",
        one_request(lambda fixtures: _unassigned(fixtures, has_epoch=True)),
        {"Fetch": 9},
    ),
    Check(
        "fetch.foreign-replica-without-an-epoch",
        "FENCE-02",
        "Partition#followerReplicaOrThrow",
        "A follower that is not assigned is refused with NOT_LEADER_OR_FOLLOWER.",
        one_request(lambda fixtures: _unassigned(fixtures, has_epoch=False)),
    ),
    Check(
        "fetch.unknown-topic",
        "",
        "ReplicaManager#getPartitionOrError",
        "An unknown topic name is refused with UNKNOWN_TOPIC_OR_PARTITION.",
        one_request(_unknown_name),
    ),
    Check(
        "fetch.unknown-topic-id",
        "",
        "KafkaApis#handleFetchRequest",
        "An unknown topic id is refused with UNKNOWN_TOPIC_ID (KIP-516).",
        one_request(_unknown_id),
        {"Fetch": 13},
    ),
    Check(
        "fetch.unknown-partition",
        "",
        "ReplicaManager#getPartitionOrError",
        "An unknown partition is refused with UNKNOWN_TOPIC_OR_PARTITION.",
        one_request(_unknown_partition),
    ),
    Check(
        "isolation.read-committed",
        "READ-01",
        "UnifiedLog#fetchLastStableOffsetMetadata",
        "Without transactions the last stable offset is the high watermark, and a read_committed consumer gets the same.",
        _committed,
    ),
    Check(
        "isolation.nothing-above-the-high-watermark",
        "READ-01",
        "UnifiedLog#read",
        "A consumer gets nothing that the follower has not fetched yet.",
        _below_the_high_watermark,
    ),
)

"""Checks of ListOffsets: the offset for a timestamp, or for one of the negative timestamps that have a meaning (LATEST..).

A function of this file makes the requests of one check, whose sentence stands in the table at the end: as a script, which
yields Expectations (a request and the fields that its response must have), or as a single Expectation. `Fixtures.log` is a
partition with ten records, one per batch, with growing timestamps; `fresh` is an empty one, `absent` one of a topic that
does not exist. A ProbePartition knows what its log must have: `start`, `end` (the log end), `epoch` (its leader's),
`timestamps` (one per offset), `entries` (the epoch cache: epochs, start offsets). The fields `expected` of an Expectation
may be None, where there must be no response: never here, so `or {}` changes nothing.
"""

from collections.abc import Callable, Iterable

from tidegauge.drive.probe.check import Check, Expectation, Script, one_request
from tidegauge.drive.probe.fixtures import Fixtures
from tidegauge.drive.probe.partition import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    READ_COMMITTED,
    TICK,
    ProbePartition,
)
from tidegauge.impl import errors
from tidegauge.impl.rules import UNDEFINED, epoch_for_offset

FETCH_OFFSET, BY_TIMESTAMP = "Partition#fetchOffsetForTimestamp", "UnifiedLog#fetchOffsetByTimestamp"
LIST = {"ListOffsets": 4}
"""The first version that carries leader epochs (KIP-320)."""


def _listed(partition: ProbePartition, timestamp: int, offset: int, epoch: int, **arguments: int) -> Expectation:
    """Expect that ListOffsets for a timestamp gets this offset and leader epoch.

    `arguments`: more arguments of `ProbePartition.list_offsets`.
    """
    expected = {"errorCode": errors.NONE, "offset": offset, "leaderEpoch": epoch}
    return Expectation(partition.connection, partition.list_offsets(timestamp, **arguments), expected)


def _latest(choose: Callable[[Fixtures], ProbePartition], **arguments: int) -> Callable[[Fixtures], Script]:
    """Make the script that lists the latest offset of the partition that `choose` returns.

    `arguments`: more arguments of `ProbePartition.list_offsets`.
    """

    def expectation(fixtures: Fixtures) -> Expectation:
        """Expect the log end, up to which all is committed, and the epoch of today's leader."""
        partition = choose(fixtures)
        return _listed(partition, LATEST, partition.end, partition.epoch, **arguments)

    return one_request(expectation)


def _earliest(choose: Callable[[Fixtures], ProbePartition], timestamp: int = EARLIEST) -> Callable[[Fixtures], Script]:
    """Make the script that lists the earliest offset of the partition that `choose` returns.

    `timestamp`: EARLIEST, or EARLIEST_LOCAL, which is the same without remote storage.
    """

    def expectation(fixtures: Fixtures) -> Expectation:
        """Expect the log start, and the leader epoch of the record there."""
        partition = choose(fixtures)
        return _listed(partition, timestamp, partition.start, epoch_for_offset(*partition.entries, partition.start))

    return one_request(expectation)


def _by_timestamp(choose: Callable[[ProbePartition], Iterable[int]]) -> Callable[[Fixtures], Script]:
    """Make a script that lists the offset for each of the timestamps that `choose` returns.

    Expects the first record with that timestamp or a later one, with its own timestamp and its epoch; or UNDEFINED for all
    three.
    """

    def script(fixtures: Fixtures) -> Script:
        """Expect for each timestamp the first record of the shared log that is not older."""
        partition = fixtures.log()
        for timestamp in choose(partition):
            # The log starts at 0: the index of a timestamp is the offset of its record.
            offset = next((index for index, own in enumerate(partition.timestamps) if own >= timestamp), UNDEFINED)
            own_timestamp = partition.timestamps[offset] if offset != UNDEFINED else UNDEFINED
            epoch = epoch_for_offset(*partition.entries, offset) if offset != UNDEFINED else UNDEFINED
            expectation = _listed(partition, timestamp, offset, epoch)
            yield expectation._replace(expected={**(expectation.expected or {}), "timestamp": own_timestamp})

    return script


def _greatest_timestamp(fixtures: Fixtures) -> Expectation:
    """Expect the record with the greatest timestamp, which is the last one here."""
    partition = fixtures.log()
    last = partition.end - 1
    expectation = _listed(partition, MAX_TIMESTAMP, last, partition.epoch)
    return expectation._replace(expected={**(expectation.expected or {}), "timestamp": partition.timestamps[last]})


def _greatest_of_empty_log(fixtures: Fixtures) -> Expectation:
    """Expect no offset for the greatest timestamp of an empty log."""
    partition = fixtures.fresh()
    return _listed(partition, MAX_TIMESTAMP, UNDEFINED, UNDEFINED)


def _tiered(fixtures: Fixtures) -> Expectation:
    """Expect no latest tiered offset: the probe's topics have no remote storage."""
    partition = fixtures.log()
    return _listed(partition, LATEST_TIERED, UNDEFINED, UNDEFINED)


def _unknown_topic(fixtures: Fixtures) -> Expectation:
    """Expect that a topic name that no topic has is refused."""
    absent = fixtures.absent()
    return Expectation(absent.connection, absent.list_offsets(LATEST), {"errorCode": errors.UNKNOWN_TOPIC_OR_PARTITION})


def _unknown_partition(fixtures: Fixtures) -> Expectation:
    """Expect that a partition that the topic does not have is refused."""
    partition = fixtures.log()
    return Expectation(
        partition.connection, partition.list_offsets(LATEST, index=7), {"errorCode": errors.UNKNOWN_TOPIC_OR_PARTITION}
    )


OFFSET_CHECKS = (
    Check(
        "offsets.latest",
        "READ-01",
        FETCH_OFFSET,
        "The latest offset is the high watermark, with the leader's epoch.",
        _latest(Fixtures.log),
        LIST,
    ),
    Check(
        "offsets.latest-committed",
        "READ-01",
        FETCH_OFFSET,
        "The latest committed offset is the last stable one.",
        _latest(Fixtures.log, isolation=READ_COMMITTED),
        LIST,
    ),
    Check(
        "offsets.latest-of-an-empty-log",
        "HW-01",
        FETCH_OFFSET,
        "The latest offset of an empty log is 0, in the leader's epoch.",
        _latest(Fixtures.fresh),
        LIST,
    ),
    Check(
        "offsets.latest-after-elections",
        "READ-01",
        FETCH_OFFSET,
        "The latest offset has the epoch of today's leader.",
        _latest(Fixtures.epochs),
        LIST,
    ),
    Check(
        "offsets.earliest",
        "LOG-01",
        FETCH_OFFSET,
        "The earliest offset is the log start, with the epoch of its record.",
        _earliest(Fixtures.log),
        LIST,
    ),
    Check(
        "offsets.earliest-after-delete-records",
        "LOG-01",
        FETCH_OFFSET,
        "The earliest offset follows the log start.",
        _earliest(Fixtures.moved),
        LIST | {"DeleteRecords": 0},
    ),
    Check(
        "offsets.earliest-after-elections",
        "LOG-01",
        FETCH_OFFSET,
        "The earliest offset has the epoch of its record, not of today's leader.",
        _earliest(Fixtures.epochs),
        LIST,
    ),
    Check(
        "offsets.earliest-local",
        "LOG-01",
        FETCH_OFFSET,
        "Without remote storage the earliest local offset is the log start (KIP-405).",
        _earliest(Fixtures.moved, EARLIEST_LOCAL),
        {"ListOffsets": 8, "DeleteRecords": 0},
    ),
    Check(
        "offsets.latest-tiered",
        "",
        FETCH_OFFSET,
        "Without remote storage nothing is tiered: offset -1 (KIP-1005).",
        one_request(_tiered),
        {"ListOffsets": 9},
    ),
    Check(
        "offsets.timestamp-of-a-record",
        "",
        BY_TIMESTAMP,
        "A record's own timestamp finds that record.",
        _by_timestamp(lambda p: p.timestamps),
        LIST,
    ),
    Check(
        "offsets.timestamp-between-records",
        "",
        BY_TIMESTAMP,
        "A timestamp between two records finds the later one.",
        _by_timestamp(lambda p: [timestamp - TICK // 2 for timestamp in p.timestamps]),
        LIST,
    ),
    Check(
        "offsets.timestamp-before-all-records",
        "",
        BY_TIMESTAMP,
        "A timestamp before all records finds the first one.",
        _by_timestamp(lambda p: (0, p.timestamps[0] - 1)),
        LIST,
    ),
    Check(
        "offsets.timestamp-behind-all-records",
        "",
        BY_TIMESTAMP,
        "A timestamp after all records finds nothing: offset -1.",
        _by_timestamp(lambda p: (p.timestamps[-1] + 1,)),
        LIST,
    ),
    Check(
        "offsets.greatest-timestamp",
        "",
        BY_TIMESTAMP,
        "The record with the greatest timestamp is found with its offset (KIP-734).",
        one_request(_greatest_timestamp),
        {"ListOffsets": 7},
    ),
    Check(
        "offsets.greatest-timestamp-of-an-empty-log",
        "",
        BY_TIMESTAMP,
        "An empty log has no greatest timestamp: offset -1.",
        one_request(_greatest_of_empty_log),
        {"ListOffsets": 7},
    ),
    Check(
        "offsets.unknown-topic",
        "",
        "ReplicaManager#fetchOffset",
        "An unknown topic is refused with UNKNOWN_TOPIC_OR_PARTITION.",
        one_request(_unknown_topic),
        {"ListOffsets": 1},
    ),
    Check(
        "offsets.unknown-partition",
        "",
        "ReplicaManager#fetchOffset",
        "An unknown partition is refused with UNKNOWN_TOPIC_OR_PARTITION.",
        one_request(_unknown_partition),
        {"ListOffsets": 1},
    ),
)

"""Checks of DeleteRecords: the log start moves up to an offset, no further than the high watermark.

A function of this file makes the requests of one check, whose sentence stands in the table at the end: as a script, which
yields Expectations (a request and the fields that its response must have) and is sent the fields of each response, or as a
single Expectation. The low watermark in a response is the log start after the deletion. A ProbePartition knows what its log
must have (`start`, `end`: the log end, `batches`), and makes requests about it; a script sets `start` after a deletion.
"""

from collections.abc import Callable

from tidegauge.drive.probe.check import Check, Expectation, Script, one_request
from tidegauge.drive.probe.fixtures import RECORDS, Fixtures, append_batch
from tidegauge.drive.probe.partition import ProbePartition
from tidegauge.drive.probe.topics import UndecidedError
from tidegauge.impl import errors
from tidegauge.impl.rules import UNDEFINED

DELETE, NEEDS = "Partition#deleteRecordsOnLeader", {"DeleteRecords": 0}
HIGH_WATERMARK = -1
"""DeleteRecordsRequest.HIGH_WATERMARK."""


def _deleted(partition: ProbePartition, offset: int, log_start: int) -> Expectation:
    """Expect that a deletion up to an offset is granted, and that the log starts at `log_start` then."""
    return Expectation(
        partition.connection, partition.delete_records(offset), {"errorCode": errors.NONE, "lowWatermark": log_start}
    )


def _starts(partition: ProbePartition) -> Expectation:
    """Expect that a fetch shows the log start that the partition must have, and the high watermark unchanged."""
    expected = {"errorCode": errors.NONE, "logStartOffset": partition.start, "highWatermark": partition.end}
    return Expectation(partition.connection, partition.fetch(partition.end), expected)


def _written(fixtures: Fixtures) -> ProbePartition:
    """Return a new partition with RECORDS records, for the running check alone."""
    partition = fixtures.fresh()
    for _ in range(RECORDS):
        append_batch(partition)
    return partition


def _started_at(*steps: tuple[int, int]) -> Callable[[Fixtures], Script]:
    """Make a script of deletions, one per step: the offset to delete up to, and the log start after it."""

    def script(fixtures: Fixtures) -> Script:
        """Delete up to each offset in turn, and expect the log start in the response, then in that of a fetch."""
        partition = _written(fixtures)
        for offset, log_start in steps:
            yield _deleted(partition, offset, log_start)
            partition.start = log_start
            yield _starts(partition)

    return script


def _refused(*offsets: int) -> Callable[[Fixtures], Script]:
    """Make the script of deletions up to these offsets, which are out of range and change nothing."""

    def script(fixtures: Fixtures) -> Script:
        """Expect that a deletion up to each of the offsets is refused, and that the log start has not moved in the end."""
        partition = _written(fixtures)
        for offset in offsets:
            yield Expectation(
                partition.connection, partition.delete_records(offset), {"errorCode": errors.OFFSET_OUT_OF_RANGE}
            )
        yield _starts(partition)

    return script


def _unknown_topic(fixtures: Fixtures) -> Expectation:
    """Expect that a topic name that no topic has is refused."""
    absent = fixtures.absent()
    return Expectation(absent.connection, absent.delete_records(0), {"errorCode": errors.UNKNOWN_TOPIC_OR_PARTITION})


def _no_low_watermark(fixtures: Fixtures) -> Script:
    """Expect that the refusal of a deletion in an unknown topic has low watermark -1."""
    absent = fixtures.absent()
    fields = yield Expectation(absent.connection, absent.delete_records(0), {})
    # That the deletion is not refused is the failure of another check.
    if fields["errorCode"] == errors.NONE:
        raise UndecidedError("records of a topic that is not there are not refused: there is no refusal to look at")
    yield Expectation(absent.connection, absent.delete_records(0), {"lowWatermark": UNDEFINED})


def _append_after(fixtures: Fixtures) -> Script:
    """Delete all records, append one, and expect it at the log end: the offsets of deleted records are not used again."""
    partition = _written(fixtures)
    yield _deleted(partition, HIGH_WATERMARK, RECORDS)
    append_batch(partition)
    expected = {"errorCode": errors.NONE, "batches": partition.batches[-1:], "logStartOffset": RECORDS}
    yield Expectation(partition.connection, partition.fetch(RECORDS), expected)


DELETE_CHECKS = (
    Check(
        "delete.up-to-an-offset", "LOG-01", DELETE, "The log start moves to the offset.", _started_at((4, 4), (7, 7)), NEEDS
    ),
    Check(
        "delete.below-the-log-start",
        "LOG-01",
        DELETE,
        "The log start never goes down: an offset below it changes nothing.",
        _started_at((4, 4), (2, 4), (0, 4)),
        NEEDS,
    ),
    Check(
        "delete.up-to-the-high-watermark",
        "HW-10",
        DELETE,
        "Offset -1 means the high watermark.",
        _started_at((HIGH_WATERMARK, RECORDS)),
        NEEDS,
    ),
    Check(
        "delete.beyond-the-high-watermark",
        "HW-01",
        DELETE,
        "Beyond the high watermark nothing is deleted: OFFSET_OUT_OF_RANGE.",
        _refused(RECORDS + 1, RECORDS + 1000),
        NEEDS,
    ),
    Check(
        "delete.negative-offset",
        "",
        DELETE,
        "Other negative offsets than -1 are refused with OFFSET_OUT_OF_RANGE.",
        _refused(-2),
        NEEDS,
    ),
    Check(
        "delete.then-append",
        "LOG-01",
        DELETE,
        "A log that was deleted completely continues at its end.",
        _append_after,
        NEEDS,
    ),
    Check(
        "delete.unknown-topic",
        "",
        "KafkaApis#handleDeleteRecordsRequest",
        "An unknown topic is refused with UNKNOWN_TOPIC_OR_PARTITION.",
        one_request(_unknown_topic),
        NEEDS,
    ),
    Check(
        "delete.low-watermark-of-a-refusal",
        "",
        "DeleteRecordsResponse#INVALID_LOW_WATERMARK",
        "A refusal has no low watermark: -1.",
        _no_low_watermark,
        NEEDS,
    ),
)

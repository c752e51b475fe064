"""Checks of DeleteRecords: the log start moves up to an offset, no further than the high watermark."""

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


def _deleted(partition: ProbePartition, offset: int, low: int) -> Expectation:
    return Expectation(
        partition.connection, partition.delete_records(offset), {"errorCode": errors.NONE, "lowWatermark": low}
    )


def _starts(partition: ProbePartition) -> Expectation:
    expected = {"errorCode": errors.NONE, "logStartOffset": partition.start, "highWatermark": partition.end}
    return Expectation(partition.connection, partition.fetch(partition.end), expected)


def _written(fixtures: Fixtures) -> ProbePartition:
    """Return a new partition with RECORDS records."""
    partition = fixtures.fresh()
    for _ in range(RECORDS):
        append_batch(partition)
    return partition


def _started_at(*steps: tuple[int, int]) -> Callable[[Fixtures], Script]:
    """Make a script of deletions: the offset to delete up to, and the log start after it."""

    def script(fixtures: Fixtures) -> Script:
        partition = _written(fixtures)
        for offset, low in steps:
            yield _deleted(partition, offset, low)
            partition.start = low
            yield _starts(partition)

    return script


def _refused(*offsets: int) -> Callable[[Fixtures], Script]:
    """Make the check that deletions at these offsets are out of range and change nothing."""

    def script(fixtures: Fixtures) -> Script:
        """Expect that each offset is refused, and the log start stays."""
        partition = _written(fixtures)
        for offset in offsets:
            yield Expectation(
                partition.connection, partition.delete_records(offset), {"errorCode": errors.OFFSET_OUT_OF_RANGE}
            )
        yield _starts(partition)

    return script


def _unknown(fixtures: Fixtures) -> Expectation:
    absent = fixtures.absent()
    return Expectation(absent.connection, absent.delete_records(0), {"errorCode": errors.UNKNOWN_TOPIC_OR_PARTITION})


def _no_low_watermark(fixtures: Fixtures) -> Script:
    """Expect that a refusal has no low watermark."""
    absent = fixtures.absent()
    seen = yield Expectation(absent.connection, absent.delete_records(0), {})
    if seen["errorCode"] == errors.NONE:
        raise UndecidedError("records of a topic that is not there are not refused: there is no refusal to look at")
    yield Expectation(absent.connection, absent.delete_records(0), {"lowWatermark": UNDEFINED})


def _goes_on(fixtures: Fixtures) -> Script:
    """Offsets are not used again."""
    partition = _written(fixtures)
    yield _deleted(partition, HIGH_WATERMARK, RECORDS)
    append_batch(partition)
    batches = {"errorCode": errors.NONE, "batches": partition.batches[-1:], "logStartOffset": RECORDS}
    yield Expectation(partition.connection, partition.fetch(RECORDS), batches)


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
        "delete.then-append", "LOG-01", DELETE, "A log that was deleted completely continues at its end.", _goes_on, NEEDS
    ),
    Check(
        "delete.unknown-topic",
        "",
        "KafkaApis#handleDeleteRecordsRequest",
        "An unknown topic is refused with UNKNOWN_TOPIC_OR_PARTITION.",
        one_request(_unknown),
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

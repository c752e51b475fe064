"""A replica that is moved to another directory: two logs of one name."""
# ruff: noqa: E501

from pathlib import Path

import pytest

from tests.kafka_logs.hand import FETCHER, FOLLOWS, LOADED, LOG, RF, STARTED, broker, sends
from tidegauge.traces.kafka_logs import Capture

MOVER, ASKED = "ReplicaAlterLogDirsThread-1", "data-plane-kafka-request-handler-0"
FUTURE = LOG.replace("/d", "/e")
OPENS = (
    (
        ASKED,
        "LogManager",
        "Created log for partition alpha-0 in /e/alpha-0.77e8-future with properties {min.insync.replicas=2}",
    ),
    (ASKED, "UnifiedLog", f"{FUTURE}Setting high watermark (offset=0, segment=[0:0])"),
    (ASKED, "Partition", "[Partition alpha-0 broker=1] Log loaded for partition alpha-0 with initial high watermark 0"),
)
FILLS = (
    (MOVER, "UnifiedLog", f"{FUTURE}Truncating to 0 has no effect as the largest offset in the log is -1"),
    (
        MOVER,
        "LeaderEpochFileCache",
        "[LeaderEpochCache alpha-0] Appended new epoch entry EpochEntry[epoch=2, startOffset=0]. Cache now contains 1 entries.",
    ),
    (MOVER, "UnifiedLog", f"{FUTURE}Appended message set with last offset: 39, first offset: 0, next offset: 40, x"),
    (MOVER, "UnifiedLog", f"{FUTURE}Setting high watermark (offset=40, segment=[0:0])"),
)
REPLACES = (
    (
        MOVER,
        "LogManager",
        "Attempting to replace current log Log(dir=/d/alpha-0, logEndOffset=40) with Log(dir=/e/alpha-0.77e8-future, logEndOffset=40) for alpha-0",
    ),
    (MOVER, "LogManager", "The current replica is successfully replaced with the future replica for alpha-0"),
)


def received(end: int, size: int, hw: int) -> tuple[str, str, str]:
    return (
        FETCHER,
        "ReplicaFetcherThread",
        f"{RF}Follower has replica log end offset {end} for partition alpha-0. Received {size} bytes of messages and leader hw {hw}",
    )


def handled(end: int, hw: str, log: str = LOG) -> tuple[tuple[str, str, str], ...]:
    """One record; `hw` is what the follower says of its high watermark."""
    return (
        (
            FETCHER,
            "UnifiedLog",
            f"{FUTURE if log is FUTURE else LOG}Appended message set with last offset: 40, first offset: 40, next offset: 41, x",
        ),
        (
            FETCHER,
            "ReplicaFetcherThread",
            f"{RF}Follower has replica log end offset {end} after appending 9 bytes of messages for partition alpha-0",
        ),
        (
            FETCHER,
            "ReplicaFetcherThread",
            f"{RF}Follower received high watermark 41 from the leader {hw} for partition alpha-0",
        ),
    )


def shown(capture: Capture) -> tuple[list[tuple[str, object, object]], list[str]]:
    """What the replica did, with its log end and high watermark, and the gaps in its own lines."""
    (trace,) = capture.traces
    kinds = ("Start", "LeaderAppend", "HandleFetchResponse", "EpochCacheEntry", "DeleteReplica", "LoseDisk")
    did = [(event.event, event.fields.get("leo"), event.fields.get("hw")) for event in trace.events if event.event in kinds]
    return did, [str(gap) for gap in capture.gaps if "log ends while" not in str(gap)]


KEPT = "but did not update replica high watermark"
ROSE = "and updated replica high watermark to 41"
BEGUN = (STARTED, *LOADED, FOLLOWS)


def test_a_log_that_is_filled_beside_the_replicas_is_another_one(tmp_path: Path) -> None:
    """What a thread of its own does in another directory is no step; then the fetcher writes there."""
    own = (sends(40), received(40, 9, 40), *handled(41, KEPT))
    did, gaps = shown(
        broker(
            tmp_path / "moved", *BEGUN, *OPENS, *FILLS, *REPLACES, sends(40), received(40, 9, 40), *handled(41, KEPT, FUTURE)
        )
    )
    assert (did, gaps) == shown(broker(tmp_path / "stays", *BEGUN, *own))
    assert did == [("Start", 40, 40), ("HandleFetchResponse", 41, 40)]


def test_a_move_that_is_given_up_deletes_no_replica(tmp_path: Path) -> None:
    """LogManager#asyncDelete of the future log."""
    deleted = (
        "meta",
        "LogManager",
        "Log for partition alpha-0 is renamed to /e/alpha-0.77e8-delete and is scheduled for deletion",
    )
    did, gaps = shown(broker(tmp_path, *BEGUN, *OPENS, *FILLS, deleted))
    assert (did, gaps) == ([("Start", 40, 40)], [])


@pytest.mark.parametrize("late", [False, True])
def test_a_fetcher_that_looked_the_log_up_before_says_what_the_old_one_has(late: bool, tmp_path: Path) -> None:
    """The record is in the new log; the high watermark that rose was the old log's, so the replica's shows later."""
    response = received(40, 9, 41)
    did, gaps = shown(
        broker(
            tmp_path,
            *BEGUN,
            *OPENS,
            *FILLS,
            sends(40),
            *((*REPLACES, response) if late else (response, *REPLACES)),
            *handled(40, ROSE, FUTURE),
            sends(41, session=1),
        )
    )
    assert (did, gaps) == ([("Start", 40, 40), ("HandleFetchResponse", 41, None)], [])


def test_an_old_directory_shows_that_a_response_without_records_was_handled_by_the_old_log(tmp_path: Path) -> None:
    """Its log end is that of both logs; the high watermark that it sets is the old one's."""
    kept, rose = (
        (FETCHER, "UnifiedLog", f"{log}Setting high watermark (offset=41, segment=[0:9])") for log in (FUTURE, LOG)
    )
    empty = (received(40, 0, 41), *handled(40, ROSE, FUTURE)[1:])
    for name, line, hw in (("new", kept, 41), ("old", rose, None)):
        did, gaps = shown(
            broker(tmp_path / name, *BEGUN, *OPENS, *FILLS, sends(40), *REPLACES, *empty[:2], line, *empty[2:], sends(40))
        )
        assert (did, gaps) == ([("Start", 40, 40), ("HandleFetchResponse", 40, hw)], [])


def test_a_broker_that_starts_in_the_middle_of_a_move_has_two_logs(tmp_path: Path) -> None:
    """Both are loaded; the replica's is the one whose directory has its name."""
    future = (
        "meta",
        "LogManager",
        "Completed load of Log(dir=/e/alpha-0.77e8-future, topicId=T, topic=alpha, partition=0, highWatermark=0, lastStableOffset=0, logStartOffset=0, logEndOffset=7) with 1 segments",
    )
    opened = tuple(("meta", logger, message) for _, logger, message in OPENS[1:])
    did, gaps = shown(broker(tmp_path, STARTED, future, *LOADED, FOLLOWS, *opened))
    assert (did, gaps) == ([("Start", 40, 40)], [])


@pytest.mark.parametrize("mover", [MOVER, ""], ids=["thread", "no-thread"])
def test_a_log_that_begins_after_the_move_did(mover: str, tmp_path: Path) -> None:
    """The thread, or the directory, tells the other log's lines; no line says that there is one."""
    own = (sends(40), received(40, 9, 40), *handled(41, KEPT))
    fills = tuple((mover, logger, message) for _, logger, message in FILLS if logger == "UnifiedLog")
    assert shown(broker(tmp_path / "moves", *BEGUN, *fills, *own)) == shown(broker(tmp_path / "stays", *BEGUN, *own))

"""Known bugs are named by what lines look like, only where the release can have them."""

import pytest

from tests.story.conftest import Telling, dated
from tidegauge.story.bug_faces import ROWS


def log(*messages: str, release: str | None = None) -> str:
    """Lines a second apart."""
    said = [f"Kafka version: {release} (org.apache.kafka.common.utils.AppInfoParser)"] if release else []
    return dated(*(f"WARN {message}" for message in [*said, *messages]))


FETCHER = "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0]"
REFUSED = "Partition [x,0] on broker 1: Cached zkVersion [54] not equal to that in zookeeper, skip updating ISR"
INDEX = "Attempt to append an offset (15) to position 11 no larger than the last offset appended (15) to /d/x-0/00.index."
NOT_ALLOWED = (
    f"{FETCHER} Exiting because log truncation is not allowed for partition x-0, current leader's latest offset 2051 is "
    "less than replica's latest offset 2391"
)
LOOP = f"{FETCHER} Reset fetch offset for partition x-0 from 120 to the current local replica's end offset 120"
MISMATCH = "Offset mismatch for partition x-0: fetched offset = 31727, log end offset = 31728."
FOLLOWS = (
    "[Broker id=1] Follower x-0 starts at leader epoch 8 from offset 52012 with partition epoch 19 and high watermark 52000"
    ". Current leader is 2. Previous leader Some(1) and previous leader epoch was 7."
)
DIVERGED = (
    f"{FETCHER} Truncating partition x-0 with TruncationState(offset=52000, completed=true) due to leader epoch and offset "
    "EpochEndOffset(errorCode=0, partition=0, leaderEpoch=7, endOffset=52000)"
)
MOVED = (FOLLOWS, DIVERGED)
"""A leader that lived on and follows now: what only it had is gone."""
STALE = f"{FETCHER} Unexpected offset in append to x-0. First offset 10 is less than the next offset 12."

BEHIND = (
    f"{FETCHER} Error processing data for partition x-0 offset 617 org.apache.kafka.common.errors.OffsetOutOfRange"
    "Exception: Cannot increment the log start offset to 753 of partition x-0 since it is larger than the high watermark 619"
)

EMPTIED = (
    "Replica 2 for partition [x,0] reset its fetch offset from 5 to current leader 4's start offset 5",
    "[ReplicaFetcherThread-3-4], Current offset 378 for partition [x,0] out of range; reset offset to 5 (kafka.server)",
)

OLD_SESSION = (
    "[ZooKeeperClient] Session expired. (kafka.zookeeper.ZooKeeperClient)",
    "Error while creating ephemeral at /brokers/ids/1, node already exists and owner '7' does not match current session '8'",
)
WITHOUT_TOPIC_ID = (
    "Encountered fatal fault: Error starting LogManager (org.apache.kafka.server.fault.ProcessTerminatingFaultHandler)\n"
    "java.lang.RuntimeException: The log dir Log(dir=/d/x-0, topic=x, partition=0, highWatermark=0, logEndOffset=0) does "
    "not have a topic ID, which is not allowed when running in KRaft mode."
)

PAUSED = (
    "[ReplicaFetcherThread-1-2], Error getting offset for partition [x,0] to broker 2 (kafka.server.ReplicaFetcherThread)\n"
    "java.lang.IllegalStateException: Compaction for partition [x,0] cannot be aborted and paused since it is in "
    "LogCleaningPaused state."
)

UNKNOWN_PRODUCER = (
    "[ReplicaManager broker=1] Error processing append operation on partition x-0 (kafka.server.ReplicaManager)\n"
    "org.apache.kafka.common.errors.UnknownProducerIdException: Found no record of producerId=0 on the broker at offset 5"
)
NEGATIVE = (
    "[ReplicaFetcherThread-1-2], Error getting offset for partition [x,0] to broker 2 (kafka.server.ReplicaFetcherThread)\n"
    "java.lang.IllegalArgumentException: Cannot truncate to a negative offset (-1)."
)

FACES = [
    ("KAFKA-3123", (NEGATIVE,), "0.10.2.0", "0.11.0.0"),
    ("KAFKA-7190", (UNKNOWN_PRODUCER,), "2.3.0", "2.4.0"),
    ("KAFKA-2477", EMPTIED, "0.8.2", "0.9.0.0"),
    ("KAFKA-2729", (REFUSED, REFUSED, REFUSED), "0.10.2", "1.1.0"),
    ("KAFKA-3919", (INDEX,), "0.10.0", "0.11.0"),
    ("KAFKA-7104", (BEHIND,), "1.0.1", "1.0.2"),
    ("KAFKA-7104", (BEHIND,), "1.1.0", "1.1.1"),
    ("KAFKA-7104", (BEHIND,), "1.1.0", "2.1.0"),
    ("KAFKA-3123", (PAUSED,), "0.9.0.0", "0.11.0.0"),
    ("KAFKA-7165", OLD_SESSION, "1.1.0", "2.2.0"),
    ("KAFKA-7165", OLD_SESSION, "2.1.0", "1.0.2"),
    ("KAFKA-7414", (NOT_ALLOWED,), "1.0.0", "2.0.1"),
    ("KAFKA-15608", (LOOP, LOOP, LOOP), "3.5.1", "2.6.0"),
    ("KAFKA-13266", (STALE,), "2.8.0", "3.0.0"),
    ("KAFKA-13266", (MISMATCH,), "2.8.0", "3.0.0"),
    ("KAFKA-16814", (WITHOUT_TOPIC_ID,), "3.6.1", "3.7.1"),
    ("KAFKA-16814", (WITHOUT_TOPIC_ID,), "3.7.0", "3.8.0"),
    ("KAFKA-20554", MOVED, "4.1.0", None),
]


@pytest.mark.parametrize(
    ("bug", "messages", "having", "lacking"), FACES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_bug_is_named_where_the_release_can_have_it(
    bug: str, messages: tuple[str, ...], having: str, lacking: str | None, telling: Telling
) -> None:
    assert [one.bug for one in telling(log(*messages, release=having)).bugs] == [bug]
    assert [one.bug for one in telling(log(*messages)).bugs] == [bug]
    assert lacking is None or telling(log(*messages, release=lacking)).bugs == []


def test_a_leader_that_died_before_is_no_planned_change(telling: Telling) -> None:
    assert telling(log(*(line.replace("Some(1)", "None") for line in MOVED))).bugs == []


def test_one_refusal_or_one_reset_is_no_bug(telling: Telling) -> None:
    assert telling(log(REFUSED, release="0.10.2")).bugs == []
    assert telling(log(LOOP, LOOP, release="3.5.1")).bugs == []


def test_a_broker_that_cannot_register_as_it_starts_met_no_session_of_its_own(telling: Telling) -> None:
    assert telling(log(OLD_SESSION[1], release="1.1.0")).bugs == []


def test_every_bug_says_what_to_do_and_where_it_was_seen(telling: Telling) -> None:
    assert all(row.says and row.do for row in ROWS)
    bug = telling(log(NOT_ALLOWED, release="1.0.0")).bugs[0]
    assert bug.sources == ["server.log:2"]
    assert bug.fixed_in == "2.0.1"

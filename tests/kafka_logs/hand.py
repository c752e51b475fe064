"""Logs of one broker written by hand, a few lines each, and what is read from them.

The lines are Kafka's, shortened where nothing is read; they stand unbroken, so that they can be found.
"""
# ruff: noqa: E501, ISC004

import json
from pathlib import Path
from typing import Any

from tidegauge.traces.kafka_logs import Capture, read
from tidegauge.traces.schema import Event

LOADED = (
    ("meta", "LogManager", "Completed load of Log(dir=/d/alpha-0, topicId=T, topic=alpha, partition=0, highWatermark=0, "
     "lastStableOffset=0, logStartOffset=0, logEndOffset=40) with 1 segments"),
    ("meta", "UnifiedLog", "[UnifiedLog partition=alpha-0, dir=/d] Setting high watermark (offset=40, segment=[0:0])"),
    ("meta", "Partition", "[Partition alpha-0 broker=1] Log loaded for partition alpha-0 with initial high watermark 40"),
)  # fmt: skip
FOLLOWS = (
    "meta",
    "logger",
    "[Broker id=1] Follower alpha-0 starts at leader epoch 3 from offset 40 with partition epoch 6 and high watermark 40. "
    "Current leader is 2. Previous leader None and previous leader epoch was -1.",
)
LEADS = (
    "meta",
    "logger",
    "[Broker id=1] Leader alpha-0 with topic id Some(T) starts at leader epoch 3 from offset 40 with partition epoch 6, "
    "high watermark 40, ISR [{}], adding replicas [] and removing replicas [] . Previous leader None and previous leader epoch was -1.",
)
REQUEST_HANDLER = "data-plane-kafka-request-handler-0"
FETCHER = "ReplicaFetcherThread-0-2"
RF = "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] "
LOG = "[UnifiedLog partition=alpha-0, dir=/d] "
PART = "[Partition alpha-0 broker=1] "


def sends(offset: int, last: str = "[2]", session: int = 0) -> tuple[str, str, str]:
    return (
        FETCHER,
        "ReplicaFetcherThread",
        f"{RF}Sending fetch request (type=FetchRequest, replicaId=1, fetchData={{alpha-0=PartitionData(topicId=T, fetchOffset={offset}, "
        f"logStartOffset=0, maxBytes=1048576, currentLeaderEpoch=Optional[3], lastFetchedEpoch=Optional{last})}}, "
        f"removed=, replaced=, metadata=(sessionId=77, epoch={session}), rackId=)",
    )


def broker(folder: Path, *lines: tuple[str, str, str], requests: tuple[dict[str, Any], ...] = ()) -> Capture:
    """The logs of one broker, a line a millisecond."""
    folder.mkdir(parents=True, exist_ok=True)
    text = [
        f"[2026-11-21 08:00:00,{number:06d}] DEBUG [{thread}] {message} (x.{logger})"
        for number, (thread, logger, message) in enumerate(lines, 1000)
    ]
    (folder / "server.log").write_text("\n".join(text) + "\n")
    documents = [
        f"[2026-11-21 08:00:00,{number:06d}] DEBUG [net] Completed request:{json.dumps(one)} (kafka.request.logger)"
        for number, one in enumerate(requests, 900_000)
    ]
    if documents:
        (folder / "request.log").write_text("\n".join(documents) + "\n")
    return read(folder)


def request(key: int, body: Any, response: Any) -> dict[str, Any]:
    times = dict.fromkeys(("totalTimeMs", "requestQueueTimeMs", "localTimeMs", "remoteTimeMs"), 0.0)
    return {"requestHeader": {"requestApiKey": key, "clientId": "x"}, "request": body, "response": response} | times


def events(capture: Capture, *names: str) -> list[Event]:
    assert [str(problem) for problem in capture.problems if problem.lost] == []
    return [event for trace in capture.traces for event in trace.events if event.event in names]


def truncates(target: int, completed: bool, epoch: int, end: int) -> tuple[str, str, str]:
    state = f"TruncationState(offset={target}, completed={str(completed).lower()})"
    why = f"EpochEndOffset(errorCode=0, partition=0, leaderEpoch={epoch}, endOffset={end})"
    return (
        FETCHER,
        "ReplicaFetcherThread",
        f"{RF}Truncating partition alpha-0 with {state} due to leader epoch and offset {why}",
    )


def appended(offset: int) -> tuple[str, str, str]:
    return (
        REQUEST_HANDLER,
        "UnifiedLog",
        f"{LOG}Appended message set with last offset: {offset}, first offset: {offset}, next offset: {offset + 1}, x",
    )


def raised(to: int) -> tuple[str, str, str]:
    return (
        REQUEST_HANDLER,
        "Partition",
        f"{PART}High watermark updated from (offset={to - 1}, segment=[0:0]) to (offset={to}, segment=[0:0])",
    )


def recorded(peer: int, offset: int) -> tuple[str, str, str]:
    return (
        REQUEST_HANDLER,
        "Partition",
        f"{PART}Recorded replica {peer} log end offset (LEO) position {offset} and log start offset 0.",
    )


FETCHED = request(
    1,
    {"replicaState": {"replicaId": 2}, "sessionId": 0, "sessionEpoch": 0, "topics": [{"topicId": "T", "partitions": [
        {"partition": 0, "currentLeaderEpoch": 3, "fetchOffset": 41, "lastFetchedEpoch": 3, "logStartOffset": 0}]}]},
    {"errorCode": 0, "sessionId": 5, "responses": []},
)  # fmt: skip


CREATED = (
    ("meta", "LogManager", "Created log for partition alpha-0 in /d/alpha-0 with properties {min.insync.replicas=2}"),
    ("meta", "UnifiedLog", "[UnifiedLog partition=alpha-0, dir=/d] Setting high watermark (offset=0, segment=[0:0])"),
    ("meta", "Partition", "[Partition alpha-0 broker=1] Log loaded for partition alpha-0 with initial high watermark 0"),
)
STARTED = ("main", "LoggingSignalHandler", "Registered signal handlers for TERM, INT, HUP")
DELETED = (
    "meta",
    "LogManager",
    "Log for partition alpha-0 is renamed to /d/alpha-0.5ab7-delete and is scheduled for deletion",
)

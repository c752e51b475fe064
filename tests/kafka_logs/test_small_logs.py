"""Stories no shipped capture tells, as a few lines of one broker each.

The lines are Kafka's, shortened where nothing is read; they stand unbroken, so that they can be found.
"""
# ruff: noqa: E501, ISC004

import gc
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.kafka_logs.hand import (
    FETCHED,
    FETCHER,
    FOLLOWS,
    LEADS,
    LOADED,
    LOG,
    PART,
    REQUEST_HANDLER,
    RF,
    appended,
    broker,
    events,
    raised,
    recorded,
    request,
    sends,
    truncates,
)
from tidegauge.traces.kafka_logs import read
from tidegauge.traces.kafka_logs.capture import shipped


@pytest.mark.parametrize(
    ("reset", "log"),
    [
        ("Truncate fully and reset fetch offset for partition alpha-0 from 40 to the current leader's start offset 128 because the "
         "local replica's end offset is smaller than the current leader's start offsets.", ", logStartOffset: 128"),
        ("Reset fetch offset for partition alpha-0 from 40 to current leader's start offset 128", ""),
    ],
    ids=["since 3.6", "to 3.5"],
)  # fmt: skip
def test_an_out_of_range_response_drops_the_log(tmp_path: Path, reset: str, log: str) -> None:
    """The fetcher's words, what the log did, `Current offset`: one event, with what was asked."""
    capture = broker(
        tmp_path,
        *LOADED,
        FOLLOWS,
        sends(40),
        (FETCHER, "ReplicaFetcherThread", f"{RF}{reset}"),
        (FETCHER, "UnifiedLog", f"{LOG}Truncate and start at offset 128{log}"),
        (FETCHER, "UnifiedLog", f"{LOG}Setting high watermark (offset=128, segment=[128:0])"),
        (FETCHER, "ReplicaFetcherThread", f"{RF}Current offset 40 for partition alpha-0 is out of range, which typically implies a "
         "leader change. Reset fetch offset to 128"),
        sends(128, ".empty", 1),
    )  # fmt: skip
    (event,) = events(capture, "HandleOutOfRange")
    assert dict(event.fields) == {
        "peer": 2,
        "req_epoch": 3,
        "req_offset": 40,
        "req_last_epoch": 2,
        "req_log_start": 0,
        "leader_start": 128,
        "target": 128,
        "leo_before": 40,
        "leo": 128,
        "hw_before": 40,
        "hw": 128,
        "log_start": 128,
    }


def test_to_3_5_a_log_that_reaches_the_leaders_start_is_kept_in_the_same_words(tmp_path: Path) -> None:
    """AbstractFetcherThread#fetchOffsetAndTruncate then had one warning for both; the line of the reset says which it was."""
    capture = broker(
        tmp_path,
        *LOADED,
        FOLLOWS,
        sends(40),
        (FETCHER, "ReplicaFetcherThread", f"{RF}Reset fetch offset for partition alpha-0 from 40 to current leader's start offset 7"),
        (FETCHER, "ReplicaFetcherThread", f"{RF}Current offset 40 for partition alpha-0 is out of range, which typically implies a "
         "leader change. Reset fetch offset to 40"),
    )  # fmt: skip
    (event,) = events(capture, "HandleOutOfRange")
    assert [event.fields[name] for name in ("leader_start", "target", "leo_before", "leo")] == [7, 40, 40, 40]


def test_an_out_of_range_response_truncates_at_the_leaders_end(tmp_path: Path) -> None:
    """An unclean leader is shorter."""
    capture = broker(
        tmp_path,
        *LOADED,
        FOLLOWS,
        sends(40),
        (FETCHER, "ReplicaFetcherThread", f"{RF}Reset fetch offset for partition alpha-0 from 40 to current leader's latest offset 30"),
        (FETCHER, "UnifiedLog", f"{LOG}Truncating to offset 30"),
        (FETCHER, "UnifiedLog", f"{LOG}Setting high watermark (offset=30, segment=[0:0])"),
        (FETCHER, "ReplicaFetcherThread", f"{RF}Current offset 40 for partition alpha-0 is out of range, which typically implies a "
         "leader change. Reset fetch offset to 30"),
    )  # fmt: skip
    (reset,) = events(capture, "HandleOutOfRange")
    assert (reset.fields["leader_end"], reset.fields["leo"], reset.fields["hw"], reset.fields["target"]) == (30, 30, 30, 30)


def test_two_rounds_of_truncation_are_two_events(tmp_path: Path) -> None:
    """Interleaved lineages: the leader answers an epoch the follower never had; more rounds follow."""
    capture = broker(
        tmp_path,
        *LOADED,
        FOLLOWS,
        sends(40),
        truncates(37, False, 2, 38),
        (FETCHER, "UnifiedLog", f"{LOG}Truncating to offset 37"),
        sends(37, "[1]", 1),
        truncates(35, True, 0, 35),
        (FETCHER, "UnifiedLog", f"{LOG}Truncating to offset 35"),
    )
    first, second = events(capture, "HandleDivergingResponse")
    assert (first.fields["completed"], first.fields["leo"], first.fields["div_epoch"], first.fields["req_last_epoch"]) == (
        False,
        37,
        2,
        2,
    )
    assert (second.fields["completed"], second.fields["leo_before"], second.fields["leo"], second.fields["req_offset"]) == (
        True,
        37,
        35,
        37,
    )


def test_a_shrink_is_proposed_answered_and_raises_the_high_watermark(tmp_path: Path) -> None:
    """`Shrinking ISR` and `Submitting` are one event; `High watermark updated` belongs to the response of its thread."""
    sent = "sentLeaderAndIsr=LeaderAndIsr(leader=1, leaderEpoch=3, isr=List(1, 2), leaderRecoveryState=RECOVERED, partitionEpoch=6)"
    capture = broker(
        tmp_path,
        *LOADED,
        (*LEADS[:2], LEADS[2].format("1,2,3")),
        appended(40),
        ("sched", "Partition", f"{PART}Shrinking ISR from 1,2,3 to 1,2. Leader: (highWatermark: 40, endOffset: 41). Out of sync replicas: x."),
        ("sched", "Partition", f"{PART}Submitting ISR state change PendingShrinkIsr(outOfSyncReplicaIds=Set(3), {sent}, x)"),
        ("alter", "DefaultAlterPartitionManager", "Controller successfully handled AlterPartition request for alpha-0: "
         "PartitionData(partitionIndex=0, errorCode=0, leaderId=1, leaderEpoch=3, isr=[1, 2], leaderRecoveryState=0, partitionEpoch=7)"),
        ("alter", "Partition", f"{PART}ISR updated to 1,2 and version updated to 7"),
        ("alter", "Partition", f"{PART}High watermark updated from (offset=40, segment=[0:0]) to (offset=41, segment=[0:0])"),
    )  # fmt: skip
    (shrink,) = events(capture, "ShrinkIsr")
    assert dict(shrink.fields) == {"isr": (1, 2), "leo": 41, "hw": 40, "partition_epoch": 6}
    (response,) = events(capture, "HandleAlterPartitionResponse")
    assert dict(response.fields) == {"error": 0, "isr": (1, 2), "partition_epoch": 7, "hw_before": 40, "hw": 41}


def test_a_leader_alone_in_the_isr_raises_the_high_watermark_as_it_appends(tmp_path: Path) -> None:
    """Between the append and a fetch of the same thread the line is the append's."""
    capture = broker(
        tmp_path, *LOADED, (*LEADS[:2], LEADS[2].format("1")), appended(40), raised(41), recorded(2, 41), requests=(FETCHED,)
    )
    (append,) = events(capture, "LeaderAppend")
    (fetch,) = events(capture, "HandleFetch")
    assert (append.fields["hw_before"], append.fields["hw"]) == (40, 41)
    assert (fetch.fields["hw_before"], fetch.fields["hw"]) == (41, 41)


def test_who_was_alone_as_it_appended_raised_it_itself(tmp_path: Path) -> None:
    """The thread counts its next fetch when another replica has joined, and others have appended meanwhile."""
    joined = "[Broker id=1] Skipped the become-leader state change for alpha-0 with topic id Some(T) and partition state LeaderAndIsrPartitionState(topicName='alpha', partitionIndex=0, controllerEpoch=-1, leader=1, leaderEpoch=3, isr=[1, 2], partitionEpoch=7, replicas=[1, 2], addingReplicas=[], removingReplicas=[], isNew=false, leaderRecoveryState=0) since it is already the leader with leader epoch 3. Current high watermark 41, ISR [1,2], adding replicas [] and removing replicas []."
    capture = broker(
        tmp_path, *LOADED, (*LEADS[:2], LEADS[2].format("1")), appended(40), raised(41), ("meta", "logger", joined), recorded(2, 41),
        requests=(FETCHED,),
    )  # fmt: skip
    (append,) = events(capture, "LeaderAppend")
    (fetch,) = events(capture, "HandleFetch")
    assert (append.fields["hw_before"], append.fields["hw"]) == (40, 41)
    assert (fetch.fields["hw_before"], fetch.fields["hw"]) == (41, 41)


def test_the_metadata_log_is_passed_over(tmp_path: Path) -> None:
    """It is replicated by Raft: neither its lines nor its fetches are of this protocol, and none of them is missing."""
    raft = request(
        1,
        {"replicaState": {"replicaId": 2}, "sessionId": 0, "sessionEpoch": -1, "topics": [{"topicId": "AAAAAAAAAAAAAAAAAAAAAQ", "partitions": [
            {"partition": 0, "currentLeaderEpoch": 1, "fetchOffset": 7, "lastFetchedEpoch": 1, "logStartOffset": -1}]}]},
        {"errorCode": 0, "sessionId": 0, "responses": []},
    )  # fmt: skip
    metadata = ("raft", "UnifiedLog", f"{LOG}Appended message set with last offset: 7, first offset: 7, next offset: 8, x")
    lines = (*LOADED, (*LEADS[:2], LEADS[2].format("1")), appended(40), raised(41))
    without = broker(tmp_path / "a", *lines)
    capture = broker(
        tmp_path / "b", *lines, (*metadata[:2], metadata[2].replace("alpha-0", "__cluster_metadata-0")), requests=(raft,)
    )
    assert [trace.tp for trace in capture.traces] == ["alpha-0"]
    assert [event.event for event in capture.traces[0].events] == [event.event for event in without.traces[0].events]
    assert len(capture.gaps) == len(without.gaps)


def test_with_others_in_the_isr_a_fetch_raises_it(tmp_path: Path) -> None:
    """The same lines, another ISR: nobody else could have had the record when it was appended."""
    capture = broker(
        tmp_path,
        *LOADED,
        (*LEADS[:2], LEADS[2].format("1,2")),
        appended(40),
        raised(41),
        recorded(2, 41),
        requests=(FETCHED,),
    )
    (append,) = events(capture, "LeaderAppend")
    (fetch,) = events(capture, "HandleFetch")
    assert (append.fields["hw_before"], append.fields["hw"]) == (40, 40)
    assert (fetch.fields["hw_before"], fetch.fields["hw"]) == (40, 41)


def test_the_log_start_moves_on_its_own_or_with_a_response(tmp_path: Path) -> None:
    """DeleteRecords at a leader, `leader offset increment` at a follower."""
    moved = f"{LOG}Incremented log start offset to 10 due to client delete records request"
    alone = broker(tmp_path / "a", *LOADED, (REQUEST_HANDLER, "UnifiedLog", moved))
    (event,) = events(alone, "LogStartMoved")
    assert dict(event.fields) == {"log_start": 10, "hw": 40}
    with_response = broker(
        tmp_path / "b",
        *LOADED,
        FOLLOWS,
        sends(40),
        (FETCHER, "ReplicaFetcherThread", f"{RF}Follower has replica log end offset 40 for partition alpha-0. Received 0 bytes of messages and leader hw 40"),
        (FETCHER, "UnifiedLog", f"{LOG}Incremented log start offset to 10 due to leader offset increment"),
        (FETCHER, "ReplicaFetcherThread", f"{RF}Follower received high watermark 40 from the leader but did not update replica high "
         "watermark for partition alpha-0"),
    )  # fmt: skip
    (response,) = events(with_response, "HandleFetchResponse")
    assert (response.fields["log_start"], response.fields["hw"], response.fields["rec_end"]) == (10, 40, 40)
    assert events(with_response, "LogStartMoved") == []


def test_a_log_start_that_only_a_response_names(tmp_path: Path) -> None:
    """The line that moves it is missing: what the log deletes, a retention thread says, and its lines may be filtered."""
    deleted = {
        "partitionIndex": 0,
        "errorCode": 0,
        "highWatermark": 41,
        "logStartOffset": 10,
        "recordsSizeInBytes": 0,
    }
    response = {"errorCode": 0, "sessionId": 5, "responses": [{"topicId": "T", "partitions": [deleted]}]}
    moved = ("cleaner", "UnifiedLog", f"{LOG}Incremented log start offset to 10 due to segment deletion")
    lines = (*LOADED, (*LEADS[:2], LEADS[2].format("1")), appended(40), raised(41))
    for missing, names in (((), True), ((moved,), False)):
        capture = broker(
            tmp_path / str(names), *lines, *missing, recorded(2, 41), requests=({**FETCHED, "response": response},)
        )
        assert any("names log start 10" in gap.why for gap in capture.gaps) is names


def test_what_clients_and_old_followers_ask_is_in_the_request_log(tmp_path: Path) -> None:
    """A consumer sees up to the high watermark, or the last stable offset; OffsetForLeaderEpoch has its own event."""

    def consumed(isolation: int) -> dict[str, Any]:
        part = {"partition": 0, "currentLeaderEpoch": 3, "fetchOffset": 7, "lastFetchedEpoch": -1, "logStartOffset": -1}
        reported = {"partitionIndex": 0, "errorCode": 0, "highWatermark": 40, "lastStableOffset": 35, "logStartOffset": 0}
        return request(
            1,
            {
                "isolationLevel": isolation,
                "sessionId": 0,
                "sessionEpoch": -1,
                "topics": [{"topicId": "T", "partitions": [part]}],
            },
            {"errorCode": 0, "sessionId": 0, "responses": [{"topicId": "T", "partitions": [reported]}]},
        )

    asked = {"partition": 0, "currentLeaderEpoch": 3, "leaderEpoch": 2}
    answered = {"partition": 0, "errorCode": 0, "leaderEpoch": 1, "endOffset": 12}
    epoch = request(
        23,
        {"replicaId": 2, "topics": [{"topic": "alpha", "partitions": [asked]}]},
        {"topics": [{"topic": "alpha", "partitions": [answered]}]},
    )
    capture = broker(tmp_path, *LOADED, (*LEADS[:2], LEADS[2].format("1")), requests=(consumed(0), consumed(1), epoch))
    assert [dict(event.fields) for event in events(capture, "Read")] == [
        {"bound": 40, "rec_base": 7},
        {"bound": 35, "rec_base": 7},
    ]
    (end,) = events(capture, "HandleEpochRequest")
    assert dict(end.fields) == {"peer": 2, "req_epoch": 3, "req_last_epoch": 2, "error": 0, "div_epoch": 1, "div_end": 12}


def test_what_was_read_is_freed_without_a_collector() -> None:
    """The collector is off while logs are read, and looks seldom later: cycles of steps would fill the memory of a worker."""
    folder = shipped()["3.9.1/m-lost-disk"]
    gc.disable()
    try:
        # The first time fills caches.
        events = read(folder).summary.events
        before = sys.getallocatedblocks()
        read(folder)
        assert sys.getallocatedblocks() - before < events
    finally:
        gc.enable()

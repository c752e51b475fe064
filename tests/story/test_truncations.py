"""What is told of logs: truncations, retention, deleted segments, and the dumps of kafka-dump-log."""

from pathlib import Path

import pytest

from tests.story.conftest import Telling, dated, log, only
from tidegauge.story.sentences import headline
from tidegauge.story.story import story_of
from tidegauge.traces.kafka_logs.discovery.selection import Selection


def test_what_a_controller_is_sent_says_nothing_of_how_a_broker_truncates(telling: Telling) -> None:
    received = (
        "Broker 1 cached leader info (LeaderAndIsrInfo:(Leader:2,ISR:2,LeaderEpoch:9,ControllerEpoch:1)) for partition x-0"
    )
    role = "[ReplicaFetcherManager on broker 1] Removed fetcher for partitions x-0 (kafka.server.ReplicaFetcherManager)"
    truncated = "Truncating log x-0 to offset 70. (kafka.log.Log)"
    assert (
        only(telling(log(received, role, truncated)), "truncated")["reason"]
        == "to its own high watermark, as it did before KIP-101"
    )


BATCH = (
    "baseOffset: {} lastOffset: {} count: 10 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 "
    "partitionLeaderEpoch: {} isTransactional: false isControl: false position: {} CreateTime: 1700000000000 size: 100 "
    "magic: 2 compresscodec: none crc: 1 isvalid: {}"
)
DUMPED = "Dumping /data/x-0/00000000000000000000.log\nStarting offset: 0\n"


def test_a_dump_whose_batches_do_not_follow_on_each_other_is_told(telling: Telling) -> None:
    def dump(*batches: tuple[int, int, int, str], left_out: int = -1) -> str:
        rows = [BATCH.format(first, last, epoch, 100 * at, valid) for at, (first, last, epoch, valid) in enumerate(batches)]
        return DUMPED + "\n".join(row for at, row in enumerate(rows) if at != left_out) + "\n"

    batches = ((0, 9, 0, "true"), (25, 29, 2, "true"), (30, 35, 2, "true"))
    story = telling({"dump.txt": dump(*batches)})
    assert (only(story, "gap")["partition"], only(story, "gap")["first"], only(story, "gap")["end"]) == ("x-0", 10, 25)
    assert "whether x is compacted" in headline(story)[0]
    damaged = telling({"dump.txt": dump((0, 9, 2, "true"), (8, 12, 1, "true"), (13, 20, 1, "false"))})
    assert [(entry.kind, entry.fields.get("offset")) for entry in damaged.entries] == [
        ("corrupt", 8),
        ("epochs_conflict", None),
        ("corrupt", 13),
    ]
    # Of two segments, or of an excerpt, what lies between may be elsewhere.
    two = dump((0, 9, 0, "true")) + dump((90, 95, 0, "true")).replace("00.log", "90.log")
    assert {entry.kind for entry in telling({"dump.txt": two}).entries} == {"segment_dumped"}
    assert telling({"dump.txt": dump((0, 9, 0, "true"), (10, 24, 0, "true"), (25, 29, 2, "true"), left_out=1)}).entries == []
    assert telling({"dump.txt": dump(*batches).replace("x-0", "__cluster_metadata-0")}).entries == []


def test_a_line_that_a_shipper_sent_again_is_no_second_log(telling: Telling) -> None:
    first = "INFO Registered signal handlers for TERM, INT, HUP (org.apache.kafka.common.utils.LoggingSignalHandler)"
    made = "INFO Created log for partition x-0 in /d/x-0 with properties {} (kafka.log.LogManager)"
    again = dated(first, first, made)
    assert [one.kind for one in telling(again).entries] == ["start", "start"]
    assert [one.kind for one in telling(again + again.splitlines(keepends=True)[-1]).entries] == ["start", "start"]
    later = made.replace("INFO", "INFO ")
    assert [one.kind for one in telling(dated(first, first, made, later)).entries] == ["start", "start", "replica_lost"]


SHORT_BATCH = (
    "baseOffset: {} lastOffset: {} count: 1 partitionLeaderEpoch: 0 position: {} CreateTime: 1 isvalid: {} size: 100 "
    "magic: 2\n"
)


def test_a_dump_in_which_nothing_is_odd_is_told_as_sound(telling: Telling) -> None:
    dump = "Dumping /d/x-0/00000000000000000007.log\nStarting offset: 7\n"
    sound = "".join(SHORT_BATCH.format(offset, offset, (offset - 7) * 100, "true") for offset in range(7, 12))
    entry = only(telling(dump + sound), "segment_dumped")
    assert (entry["segment"], entry["first"], entry["last"], entry["batches"]) == (7, 7, 11, 5)
    broken = sound + SHORT_BATCH.format(12, 12, 500, "false")
    assert {entry.kind for entry in telling(dump + broken).entries} == {"corrupt"}
    assert {entry.kind for entry in telling(dump + sound + SHORT_BATCH.format(20, 20, 500, "true")).entries} == {"gap"}


def test_a_dump_of_a_partition_that_is_not_selected_is_passed_over(tmp_path: Path) -> None:
    dumps = [
        f"Dumping /d/{topic}-0/00000000000000000007.log\n"
        + "".join(SHORT_BATCH.format(offset, offset, (offset - 7) * 100, "true") for offset in range(7, 10))
        for topic in ("x", "y", "x")
    ]
    (tmp_path / "dump.txt").write_text("".join(dumps), encoding="utf-8")
    story = story_of([tmp_path], selection=Selection(frozenset({"y"})))
    assert [(entry.partition, entry.fields["batches"]) for entry in story.entries] == [("y-0", 3)]


@pytest.mark.parametrize("is_first", [True, False])
def test_retention_is_told_with_the_limit_that_it_goes_by(telling: Telling, is_first: bool) -> None:
    moved = "INFO [UnifiedLog partition=x-0, dir=/d] Incremented log start offset to 3000 due to segment deletion (kafka)"
    because = "INFO [UnifiedLog partition=x-0, dir=/d] Deleting segment LogSegment(a=0) due to log retention {} breach (k)"
    for limit, words in (("time 15000ms", "retention.ms, 15,000"), ("size 4096", "retention.bytes, 4,096")):
        lines = (because.format(limit), moved) if is_first else (moved, because.format(limit))
        assert any(words in line for line in headline(telling(dated(*lines))))


def test_a_truncation_that_a_fetcher_calls_one_to_its_high_watermark_is_told_so(telling: Telling) -> None:
    truncating = "INFO [UnifiedLog partition=x-0, dir=/d] Truncating to offset 10042 (kafka.log.UnifiedLog)"
    why = (
        "INFO [ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] Truncating partition x-0 to local high watermark 10042 "
        "(kafka.server.ReplicaFetcherThread)"
    )
    assert any(
        "broker 2 truncated to 10042, its own high watermark" in line for line in headline(telling(dated(truncating, why)))
    )


def test_to_2_5_a_log_start_moves_by_retention_where_a_line_before_says_so(telling: Telling) -> None:
    moved = "INFO [Log partition=x-0, dir=/d] Incrementing log start offset to 470 (kafka.log.Log)"
    because = (
        "INFO [Log partition=x-0, dir=/d] Found deletable segments with base offsets [0] due to retention time 604800000ms "
        "breach (kafka.log.Log)"
    )
    assert only(telling(dated(because, moved)), "retention")["to"] == 470
    assert telling(dated(moved)).entries == []
    # A client's deletion prints the same: a line of retention that is long ago says nothing of it.
    assert telling(dated(because, *["INFO x (kafka)"] * 12, moved)).entries == []


VOTERS = """\
Dumping try_KAFKA-19069/00000000000000000000.log
Log starting offset: 0
baseOffset: 0 lastOffset: 2 count: 3 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 \
partitionLeaderEpoch: 1 isTransactional: false isControl: true \
position: 0 CreateTime: 1747299887693 size: 174 magic: 2 crc: 3714449884 isvalid: true
| offset: 0 CreateTime: 1747299887693 keySize: 4 valueSize: 19 sequence:
-1 headerKeys: [] controlType: LEADER_CHANGE(2)
| offset: 1 CreateTime: 1747299887693 keySize: 4 valueSize: 5 sequence:
-1 headerKeys: [] KRaftVersion {"version":0,"kRaftVersion":1}
| offset: 2 CreateTime: 1747299887693 keySize: 4 valueSize: 55 sequence:
-1 headerKeys: [] KRaftVoters
{"version":0,"voters":[{"voterId":1,"voterDirectoryId":"tpx8pd1IQDqJwMfGzXj6GA","endpoints":[]}]}
"""


def test_a_dump_with_voters_is_of_the_metadata_log_whatever_its_folder_is_called(telling: Telling) -> None:
    story = telling(VOTERS)
    assert story.of_partitions() == {}
    dumped = only(story, "metadata_dumped")
    assert (dumped["kraft_version"], dumped["voters"]) == (1, [1])


def test_a_snapshot_is_told_with_the_offset_that_it_goes_to(telling: Telling) -> None:
    story = telling("Dumping /d/00000000000000000007-0000000002.checkpoint\nSnapshot end offset: 7, epoch: 2\n")
    assert any("a snapshot of the metadata: what all records below offset 7" in line for line in headline(story))


def test_the_replicas_of_the_quorum_are_told_by_their_table(telling: Telling) -> None:
    ends = "{}     \tknuNd8k4S9u-8YMnEOdofw\t1595        \t{}  \t4 ms ago          \t5 ms ago             \t{}\t\n"
    table = "NodeId\tDirectoryId           \tLogEndOffset\tLag\tLastFetchTimestamp\tLastCaughtUpTimestamp\tStatus  \t\n"
    rows = (ends.format(0, 0, "Leader  "), ends.format(1, 3, "Follower"), ends.format(2, 0, "Follower"))
    status = only(telling(table + "".join(rows)), "quorum_status")
    assert (status["leader"], status["followers"], status["lag"]) == (0, [1, 2], 3)


def test_a_topic_of_which_a_grep_left_only_its_creation_is_told_with_its_offset(telling: Telling) -> None:
    record = (
        "| offset: 111 CreateTime: 1790509878206 keySize: -1 valueSize: 27 sequence: -1 headerKeys: [] payload: {"
        '"type":"TOPIC_RECORD","version":0,"data":{"name":"orders","topicId":"ywkgJzfISRGP0UN2q1Y88A"}}\n'
    )
    story = telling(record)
    assert (only(story, "topic_created")["topic"], only(story, "topic_created")["offset"]) == ("orders", 111)
    assert any("give the whole dump" in line for line in headline(story))


def test_segments_that_were_deleted_are_told_once_each(telling: Telling) -> None:
    old = ("INFO Scheduling log segment 0 for log x-0 for deletion. (kafka.log.Log)",)
    old += tuple(f"INFO Deleting segment {base} from log x-0. (kafka.log.Log)" for base in (0, 18, 9))
    assert only(telling(dated(*old)), "segments_deleted")["segments"] == [0, 9, 18]
    assert any("the segments that begin at 0, 9, 18" in line for line in headline(telling(dated(*old))))
    new = "INFO [Log partition=x-0, dir=/d] Deleting segment 7 (kafka.log.Log)"
    assert only(telling(dated(new)), "segments_deleted")["segments"] == [7]

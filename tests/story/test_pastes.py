"""Pastes of mailing lists, issue threads and answers: wrapped without a date, mixed, of clients, of tools, packed."""

import io
import tarfile
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.story.test_failures import dated, only
from tests.story.test_losses import log
from tidegauge.bundle.reading import opened
from tidegauge.bundle.writing import write_bundle
from tidegauge.story.sentences import headline, story_text
from tidegauge.story.story import Story, happened, story_of
from tidegauge.traces.kafka_logs.discovery.identify import CONTROLLER_LOG, of_text
from tidegauge.traces.kafka_logs.discovery.selection import Selection

Telling = Callable[..., Story]

NOT_INCREASING = (
    "kafka.common.InvalidOffsetException: Attempt to append an offset (1506) to position 35728 no larger than the last "
    "offset appended (1603) to /data3/kafka/payments_of_the_day-20/00000000000000001400.index."
)
NOT_ALLOWED = (
    "Exiting because log truncation is not allowed for partition payments_of_the_day-20, current leader 1's latest offset "
    "460 is less than replica 2's latest offset 463 (kafka.server.ReplicaFetcherThread)"
)
NOT_ALLOWED_IN_0_8 = (
    "log truncation is not allowed for topic test, Current leader 1's latest offset 0 is less than replica 2's latest "
    "offset 151 (kafka.server.ReplicaFetcherThread)"
)
REGISTERED = (
    "ERROR Error while creating ephemeral at /brokers/ids/4, node already exists and owner '7205' does not match current "
    "session '7206' (kafka.zk.KafkaZkClient$CheckedEphemeral)"
)
STARTING = "ERROR [KafkaServer id=4] Fatal error during KafkaServer startup. Prepare to shutdown (kafka.server.KafkaServer)"
NOT_LEADER = (
    "WARN [KafkaApi-1] Produce request with correlation id {} from client c on partition [x,0] failed due to Leader not "
    "local for partition [x,0] on broker 1 (kafka.server.KafkaApis)"
)
BATCH = (
    "baseOffset: {} lastOffset: {} count: 10 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 "
    "partitionLeaderEpoch: {} isTransactional: false isControl: false position: {} CreateTime: 1700000000000 size: 100 "
    "magic: 2 compresscodec: none crc: 1 isvalid: {}"
)
DUMPED = "Dumping /data/x-0/00000000000000000000.log\nStarting offset: 0\n"


@pytest.mark.parametrize("quote", ["", "> ", ">> ", "        "])
@pytest.mark.parametrize("width", [60, 78, 100])
def test_a_line_without_a_date_that_mail_wrapped_is_read_as_it_was(telling: Telling, width: int, quote: str) -> None:
    def wrapped(text: str) -> str:
        return "".join(f"{quote}{part}\n" for part in textwrap.wrap(text, width, break_long_words=False))

    mail = (
        f"{quote}When power was back some brokers did not start:\n{wrapped(NOT_INCREASING)}"
        f"{quote}\tat kafka.log.OffsetIndex.append(OffsetIndex.scala:197)\n"
    )
    story = telling(mail)
    assert [bug.bug for bug in story.bugs] == ["KAFKA-3919"]
    assert (only(story, "corrupt")["partition"], only(story, "corrupt")["offset"]) == ("payments_of_the_day-20", 1506)
    failed = only(telling(f"{quote}It says:\n{quote}\n{wrapped(NOT_ALLOWED)}"), "process_failed")
    assert (failed["partition"], failed["error"].rpartition(": ")[2]) == (
        "payments_of_the_day-20",
        "the leader's log ends at 460, this replica's at 463, so the leader lacks 460 to 462",
    )


@pytest.mark.parametrize(
    "behind", ["", "[2026-01-01 00:00:09,000] INFO x", "\tat kafka.log.Log.load(Log.scala:7)", "Caused by: a.b.CException"]
)
def test_a_line_does_not_go_on_in_what_begins_anew(telling: Telling, behind: str) -> None:
    first = "Exiting because log truncation is not allowed for partition x-0,"
    rest = "current leader 1's latest offset 460 is less than replica 2's latest offset 463"
    assert only(telling(f"{first}\n{rest}\n"), "process_failed")["partition"] == "x-0"
    assert only(telling(f"{first}\n{behind}\n{rest}\n"), "process_failed")["partition"] is None


def test_lines_without_date_and_logger_stay_lines_of_their_own(telling: Telling) -> None:
    story = telling("[Partition x-0 broker=1] Shrinking ISR from 1,2 to 1\n[KafkaServer id=1] started\n")
    assert [entry.kind for entry in story.entries] == ["isr_changed", "start"]


@pytest.mark.parametrize("date", ["", "03.14.1592 ", "20260101T000000,000 "])
def test_a_line_that_names_no_broker_is_not_of_the_one_whose_line_stands_before_it(telling: Telling, date: str) -> None:
    """Whatever its date is like: only a line of an exception is of who printed the line before."""
    fetchers = "INFO [ReplicaFetcherManager on broker {}] Removed fetcher for partitions x-0"
    lines = (fetchers.format(1), fetchers.format(2), "INFO Truncating log x-0 to offset 7. (kafka.log.Log)")
    truncated = only(telling("".join(f"{date}{line}\n" for line in lines)), "truncated")
    assert truncated["node"] is None
    assert truncated["time"] == (date.strip() if "T" in date else "")


def test_a_partition_whose_number_somebody_left_out_is_named_as_it_is(telling: Telling) -> None:
    text = (
        "kafka.common.KafkaException: Error processing data for partition X-N offset 617\n"
        "Caused by: org.apache.kafka.common.errors.OffsetOutOfRangeException: Cannot increment the log start offset to 753 "
        "of partition X-N since it is larger than the high watermark 619\n"
    )
    failed = only(telling(text), "fetcher_failed")
    assert (failed["partition"], failed["offset"]) == ("X-N", 617)
    assert "larger than the high watermark 619" in failed["error"]


def test_a_broker_that_zookeeper_does_not_register_lost_no_directory(telling: Telling) -> None:
    story = telling(dated(REGISTERED))
    assert [(entry.kind, entry.node) for entry in story.entries] == [("not_registered", 4)]
    assert any("restart this broker if this goes on" in line for line in headline(story))
    # Where it ends by it, that is what happened.
    error = "org.apache.zookeeper.KeeperException$NodeExistsException: KeeperErrorCode = NodeExists"
    ended = telling(dated(REGISTERED, STARTING, error))
    assert [entry.kind for entry in ended.entries] == ["process_failed"]
    assert any("no other broker has this id" in line for line in headline(ended))
    older = telling("java.lang.RuntimeException: A broker is already registered on the path /brokers/ids/4. This probably\n")
    assert (only(older, "process_failed")["node"], only(older, "process_failed")["error"]) == (
        4,
        "/brokers/ids/4 is already registered in ZooKeeper",
    )


OTHER_ID = (
    "kafka.common.InconsistentBrokerIdException: Configured broker.id 1 doesn't match stored broker.id 0 in "
    "meta.properties. If you moved your data, make sure your configured broker.id matches."
)
OTHER_NODE = (
    "kafka.common.InconsistentNodeIdException: Configured node.id `1` doesn't match stored node.id `7' in meta.properties."
)
FOREIGN_FOLDER = (
    "org.apache.kafka.common.KafkaException: Found directory /d/lost+found, 'lost+found' is not in the form of "
    "topic-partition or topic-partition.uniqueId-delete (if marked for deletion)."
)
CORRUPT_INDEX = (
    "java.lang.IllegalArgumentException: requirement failed: Corrupt index found, index file (/d/x-0/06.index) has non-zero "
    "size but the last offset is 6 and the base offset is 6"
)


@pytest.mark.parametrize(
    ("error", "step"),
    [
        (OTHER_ID, "broker.id=0"),
        (FOREIGN_FOLDER, "move /d/lost+found away"),
        (CORRUPT_INDEX, "keep the .log file"),
        ("java.nio.file.FileSystemException: /d/meta.properties.tmp: Input/output error", "errors of the disk"),
        (OTHER_NODE, "node.id=7"),
        ("java.lang.RuntimeException: No readable meta.properties files found.", "is mounted at log.dirs"),
        ("kafka.common.KafkaException: Failed to acquire lock on file .lock in /d. A Kafka instance", "no other process"),
    ],
)
def test_a_start_that_failed_names_what_to_do_where_its_error_says_why(telling: Telling, error: str, step: str) -> None:
    assert any(step in line for line in headline(telling(dated(STARTING, error))))


@pytest.mark.parametrize(
    ("failed", "error", "step"),
    [
        (
            "Error while deleting segments for x-0 in dir /tmp/k",
            "nio.file.NoSuchFileException: /tmp/k/x-0/1.log",
            "not clean",
        ),
        ("Disk error while locking directory /d", "io.IOException: Not supported", "a file system that has locks"),
    ],
)
def test_a_directory_that_failed_names_what_to_do(telling: Telling, failed: str, error: str, step: str) -> None:
    lines = headline(telling(dated(f"ERROR {failed} (kafka.server.LogDirFailureChannel)", f"java.{error}")))
    assert any(line.startswith("  Do: ") and step in line for line in lines)


def test_a_file_that_the_system_could_not_write_is_told_of_its_directory_once(telling: Telling) -> None:
    error = "java.nio.file.FileSystemException: /d/{}: Input/output error"
    assert only(telling(error.format("meta.properties.tmp")), "directory_failed")["directory"] == "/d"
    assert only(telling(error.format("x-0/leader-epoch-checkpoint")), "directory_failed")["directory"] == "/d"
    checkpoint = (
        "ERROR Error while writing to checkpoint file /d/x-0/leader-epoch-checkpoint (kafka.server.LogDirFailureChannel)"
    )
    assert only(telling(dated(checkpoint, error.format("x-0/leader-epoch-checkpoint"))), "directory_failed")["error"]
    # It may be another program's.
    assert telling(error.format("version-2/log.1")).entries == []


def test_a_broker_that_is_asked_for_what_it_does_not_lead_is_ordinary_for_a_moment(telling: Telling) -> None:
    once = telling(dated(NOT_LEADER.format(7)))
    assert only(once, "not_leader") == {"node": 1, "partition": "x-0", "times": 1, "time": "2026-01-01 00:00:00,000"}
    assert "broker 1 was asked as the leader" in headline(once)[1]
    often = telling(dated(*(NOT_LEADER.format(number) for number in range(5))))
    assert [(entry.fields["times"], happened(entry)) for entry in often.entries] == [(5, True)]


def test_an_offset_that_a_log_has_not_is_told_with_what_it_has(telling: Telling) -> None:
    asked = "ERROR [KafkaApi-8] Error when processing fetch request for partition [x,5] offset 747 from consumer (kafka)"
    has = "a.b.OffsetOutOfRangeException: Request for offset {} but we only have log segments in the range 801 to 1022."
    story = telling(dated(asked, has.format(747)))
    assert (only(story, "out_of_range")["partition"], only(story, "out_of_range")["node"]) == ("x-5", 8)
    assert any("which its log has no more: it has 801 to 1021" in line for line in headline(story))
    # Whose it is, nothing says.
    assert telling(dated(asked, has.format(748))).entries == []
    later = (
        "org.apache.kafka.common.errors.OffsetOutOfRangeException: Received request for offset 30 for partition x-0, but we "
        "only have log segments in the range 20 to {}."
    )
    assert any("which its log has not yet: it has 20 to 24" in line for line in headline(telling(later.format(25))))
    assert any("its log is empty at 20" in line for line in headline(telling(later.format(20))))


def test_what_a_consumer_found_is_not_said_of_a_broker(telling: Telling) -> None:
    found = (
        "org.apache.kafka.common.KafkaException: Record for partition x-0 at offset 88 is invalid, cause: Record is corrupt"
    )
    story = telling(f"{found} (stored crc = 358, computed crc = 170)\n")
    assert any("a consumer found invalid records at offset 88" in line for line in headline(story))


INFORMATION = {
    "0.10": "(LeaderAndIsrInfo:(Leader:{},ISR:6,LeaderEpoch:9,ControllerEpoch:12),ReplicationFactor:2),AllReplicas:5,6)",
    "1.1": "PartitionState(controllerEpoch=1, leader={}, leaderEpoch=9, isr=[6], zkVersion=7, replicas=[5, 6])",
    "2.8": "UpdateMetadataPartitionState(topicName='x', partitionIndex=0, controllerEpoch=1, leader={}, leaderEpoch=9, "
    "isr=[6], zkVersion=7, replicas=[5, 6], offlineReplicas=[])",
}


@pytest.mark.parametrize("release", INFORMATION)
def test_a_broker_that_was_told_who_leads_tells_it(telling: Telling, release: str) -> None:
    def cached(leader: int) -> Story:
        sent = INFORMATION[release].format(leader)
        return telling(log(f"[Broker id=1] Cached leader info {sent} for partition x-0 in response to UpdateMetadata"))

    assert (only(cached(6), "elected")["leader"], only(cached(6), "elected")["leader_epoch"]) == (6, 9)
    assert not any(map(happened, cached(6).entries))
    assert any("start broker 6 again" in line for line in headline(cached(-1)))
    # The topic is being deleted.
    assert cached(-2).entries == []


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


def test_a_controller_that_gives_up_is_told_also_where_nothing_else_is(telling: Telling) -> None:
    failed = (
        "[Controller 3] maybeFenceReplicas: failed with unknown server exception NotLeaderException at epoch 26 in 19 us. "
        "Renouncing leadership and reverting to the last committed offset 998. (org.apache.kafka.QuorumController)"
    )
    story = telling(log(failed))
    assert (only(story, "controller")["node"], only(story, "controller")["active"]) == (3, False)
    assert "ceased to be the active controller" in headline(story)[1]


def test_a_controller_whose_directory_the_voters_do_not_know_says_both_ids(telling: Telling) -> None:
    ids = "Wq0bWhQGQv2yQmNfPZ6N5g", "l3SdLrlLQkGDoyxnhVQJHQ"
    vote = (
        f"[RaftManager id=0] Candidate sent a voter key (Optional[ReplicaKey(id=0, directoryId=Optional[{ids[0]}])]) in "
        f"the VOTE request that doesn't match the local key (OptionalInt[0], {ids[1]}); rejecting the vote (org.apache)"
    )
    story = telling(log(vote, vote))
    mismatch = only(story, "voter_mismatch")
    assert (mismatch["node"], mismatch["voter"], mismatch["own"], mismatch["times"]) == (0, *ids, 2)
    assert any(f"takes out directory {ids[0]}" in line for line in headline(story))


def test_the_error_behind_a_prefix_of_syslog_is_read(telling: Telling) -> None:
    before = "Apr 10 07:23:12 localhost kafka[1303]: "
    fatal = "[2025-04-10 04:23:12,167] ERROR Encountered fatal fault: Error loading metadata log record from offset 993 (x)"
    error = "java.lang.IllegalStateException: Tried to change broker 3, but the given epoch did not match"
    assert only(telling(f"{before}{fatal}\n{before}{error}\n"), "process_failed")["cause"] == error


def test_the_redacted_bundle_of_a_paste_tells_what_the_paste_does(telling: Telling, tmp_path: Path) -> None:
    mail = "".join(f"> {part}\n" for part in textwrap.wrap(NOT_INCREASING, 78))
    whole = telling({"mail.txt": mail, "broker-4/server.log": dated(REGISTERED)})
    write_bundle([tmp_path / "mail.txt", tmp_path / "broker-4"], tmp_path / "bundle.tar.gz", redact=True)
    with opened([str(tmp_path / "bundle.tar.gz")]) as (paths, _):
        kept = story_of(paths)
    assert [(one.kind, one.node) for one in kept.entries] == [(one.kind, one.node) for one in whole.entries]
    assert len(whole.entries) == 2


def test_ids_and_offsets_of_an_error_are_told_though_they_stand_in_its_second_sentence(telling: Telling) -> None:
    fatal = "ERROR Encountered fatal fault: Unable to apply TopicRecord record (org.apache.kafka.server.fault.Handler)"
    error = "java.lang.RuntimeException: Found duplicate TopicRecord for x. Previous ID was {}. {}"
    short = telling(dated(fatal, error.format("HhPpDbsLQCqkVYGkSVHmWA", "This is not expected.")))
    assert any(line.endswith("for x. Previous ID was HhPpDbsLQCqkVYGkSVHmWA.") for line in headline(short))
    long = telling(dated(fatal, error.format(", ".join(map(str, range(100, 300))), "")))
    assert any(line.endswith("for x.") for line in headline(long))


def test_a_fetcher_is_not_said_to_be_of_whoever_else_writes_in_the_file(telling: Telling) -> None:
    error = (
        "[ReplicaFetcherThread-0-1], Error for partition [x,0] to broker 1:org.apache.kafka.common.errors.NotLeaderFor"
        "PartitionException: This server is not the leader for that topic-partition. (kafka.server.ReplicaFetcherThread)"
    )
    others = (
        "Partition [y,0] on broker 1: Shrinking ISR for partition [y,0] from 1,5 to 1 (kafka.cluster.Partition)",
        "[SessionExpirationListener on 3], ZK expired; shut down all controller components and try to re-elect (kafka)",
    )
    assert only(telling(log(error, *others)), "fetch_refused")["node"] is None
    assert only(telling(log(error, others[1])), "fetch_refused")["node"] == 3


def test_the_id_that_one_container_says_is_not_that_of_another(telling: Telling) -> None:
    recovering = "[Log partition=x-0, dir=/d] Recovering unflushed segment 0 (kafka.log.Log)"
    text = (
        f"kc2  | [2026-01-01 00:00:00,000] INFO {recovering}\n"
        "kc1  | [2026-01-01 00:00:01,000] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n"
    )
    assert [entry.node for entry in telling(text).entries] == [1]
    assert only(telling(text.replace("kc2", "kc1")), "start")["node"] == 1
    # What stands before the date is no writer where it is the level.
    levels = "INFO [main] 2026-01-01 00:00:00,000 [KafkaServer id=1] started\nWARN [x] 2026-01-01 00:00:01,000 {}\n"
    assert {
        entry.node for entry in telling(levels.format("[Log partition=x-0, dir=/d] Truncating to offset 5")).entries
    } == {1}


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


@pytest.mark.parametrize("name", ["logs.tar.gz", "logs.tar"])
def test_an_archive_alone_is_the_first_thing_that_is_said(name: str, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / name, "w:gz" if name.endswith("gz") else "w") as packed:
        content = log("[KafkaServer id=1] started").encode()
        member = tarfile.TarInfo("server.log")
        member.size = len(content)
        packed.addfile(member, io.BytesIO(content))
    first = story_text(story_of([tmp_path / name])).splitlines()[0]
    assert first == "logs.tar is an archive (tar): unpack it; it is not read. Give the folder of what was in it."


def test_the_error_of_a_line_that_was_wrapped_inside_is_found_behind_all_of_it(telling: Telling) -> None:
    fetch = (
        "[2026-01-01 00:00:00,000] WARN [ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Error in fetch to broker 2, "
    )
    parts = [f"x-{at}=(offset={at}, logStartOffset=0), y-{at}=(offset=0," for at in range(5)]
    error = "java.io.IOException: Connection to 2 was disconnected before the response was read"
    wrapped = "\n".join([f"{fetch}request (type=FetchRequest, fetchData={{", *parts, "maxBytes=1)}) (kafka", ".server.X)"])
    assert only(telling(f"{wrapped}\n{error}\n"), "fetch_refused")["error"] == error
    # Not the error of a line between them.
    other = "[2026-01-01 00:00:01,000] ERROR something else (x)"
    assert only(telling(f"{wrapped}\n{other}\n{error}\n"), "fetch_refused")["error"] == "an error"


@pytest.mark.parametrize(
    "prefix", ["INFO|5652/0|Service kafka|22-01-19 10:44:46|", "INFO   | jvm 1    | 2026/01/01 00:00:00 | "]
)
def test_the_error_behind_the_prefix_of_a_service_of_windows_is_read(telling: Telling, prefix: str) -> None:
    failed = (
        "[2026-01-01 00:00:00,000] ERROR Failed to clean up log for x-0 in dir C:\\kafka\\logs due to IOException "
        "(kafka.server.LogDirFailureChannel)"
    )
    error = (
        "java.nio.file.FileSystemException: C:\\kafka\\logs\\x-0\\00000000000000000000.log.cleaned: The process cannot "
        "access the file because it is being used by another process."
    )
    story = telling(f"{prefix}{failed}\n{prefix}{error}\n")
    directory = only(story, "directory_failed")
    assert (directory["directory"], directory["error"]) == ("C:\\kafka\\logs", f"cleaning the log of x-0: {error}")
    assert [bug.bug for bug in story.bugs] == ["KAFKA-1194"]


def test_a_fetch_of_0_9_that_failed_says_why(telling: Telling) -> None:
    fetch = (
        "WARN [ReplicaFetcherThread-0-2], Error in fetch Name: FetchRequest; Version: 0; CorrelationId: {}; ClientId: "
        "ReplicaFetcherThread-0-2; ReplicaId: 1; MaxWait: 500 ms; MinBytes: 1 bytes; RequestInfo: [x,0] -> X(9,1). Possible "
        "cause: java.nio.channels.ClosedChannelException (kafka.server.ReplicaFetcherThread)"
    )
    refused = only(telling(dated(fetch.format(1), fetch.format(2))), "fetch_refused")
    assert (refused["node"], refused["leader"], refused["times"]) == (1, 2, 2)
    assert refused["error"] == "java.nio.channels.ClosedChannelException"


def test_epochs_that_are_refused_for_a_moment_are_said_to_be_ordinary(telling: Telling) -> None:
    refused = (
        "INFO [ReplicaFetcher replicaId=2, leaderId=0, fetcherId=0] Retrying leaderEpoch request for partition x-{} as the "
        "leader reported an error: UNKNOWN_LEADER_EPOCH (kafka.server.ReplicaFetcherThread)"
    )
    first = headline(telling(dated(refused.format(0), refused.format(1))))[1]
    assert "broker 2 was refused with UNKNOWN_LEADER_EPOCH by broker 0; and 1 more such. That passes while" in first


def test_a_start_that_was_cut_short_says_what_to_do(telling: Telling) -> None:
    stopping = "ERROR [KafkaServer id=0] Fatal error during KafkaServer shutdown. (kafka.server.KafkaServer)"
    error = "java.lang.IllegalStateException: Kafka server is still starting up, cannot shut down!"
    assert any("give it more time to start" in line for line in headline(telling(dated(stopping, error))))
    shared = "ERROR [SharedServer id=3] Got exception while starting SharedServer (kafka.server.SharedServer)"
    unread = "java.io.IOException: Could not read file /d/__cluster_metadata-0/00000000000000000009-0000000001.checkpoint"
    failed = only(telling(dated(shared, unread)), "process_failed")
    assert (failed["node"], failed["cause"]) == (3, unread)


def test_a_broker_that_zookeeper_refuses_is_told_so_once_and_is_not_said_to_have_got_what_it_asked_for(
    telling: Telling,
) -> None:
    shrink = "Partition [x,{0}] on broker 1: Shrinking ISR for partition [x,{0}] from 1,0,2 to 1 (kafka.cluster.Partition)"
    refused = "Partition [x,{}] on broker 1: Cached zkVersion [0] not equal to that in zookeeper, skip updating ISR (x)"
    lines = headline(telling(log(shrink.format(1), refused.format(1), refused.format(2), shrink.format(3))))
    assert "x-1: 2026-01-01 00:00:00,000 broker 1 was refused the ISR [1], for ZooKeeper has another version of it." in lines
    assert any("x-3" in line and "wanted the ISR [1] instead of [1, 0, 2], and no line says" in line for line in lines)
    assert sum("restart broker 1 if this goes on" in line for line in lines) == 1


def test_a_description_of_a_topic_says_which_replicas_are_not_in_sync(telling: Telling) -> None:
    row = "\tTopic: x\tPartition: {}\tLeader: 3\tReplicas: 3,1\tIsr: {}\n"
    whole = telling(row.format(0, "3,1") + row.format(1, "1,3"))
    assert headline(whole) == ["Every partition that is described has a leader, and all of its replicas in sync."]
    lines = headline(telling(row.format(0, "3,1") + row.format(1, "3")))
    assert "x-1: broker 3 leads, ISR [3] of the replicas [3, 1]: 1 is not in sync." in lines
    assert any("`Shrinking ISR` says since when" in line for line in lines)


def test_the_output_of_a_reassignment_and_of_a_quorum_is_told(telling: Telling) -> None:
    verify = "Reassignment of partition x-0 is completed.\nReassignment of partition x-1 is still in progress.\n"
    assert headline(telling(verify))[1:] == ["x-1: its reassignment is still in progress."]
    status = "ClusterId:       a\nLeaderId:        {}\nLeaderEpoch:     2\nHighWatermark:   10\nMaxFollowerLag:  7\n"
    said = "node 3002 led the KRaft quorum in epoch 2, and the follower farthest behind lacked 7 records."
    assert headline(telling(status.format(3002)))[1] == said
    assert any("the KRaft quorum had no leader" in line for line in headline(telling(status.format(-1))))


def test_a_node_that_waits_for_the_quorum_is_told_where_it_goes_on(telling: Telling) -> None:
    behind = (
        "[MetadataLoader id=8] initializeNewPublishers: the loader is still catching up because we still don't know the {}"
    )
    waits = f"{behind.format('high water mark yet.')} (org.apache.kafka.image.loader.MetadataLoader)"
    known = "[MetadataLoader id=8] maybePublish: The loader finished catching up to the current high water mark of 7 (x)"
    short = telling(dated(waits, waits))
    assert (only(short, "metadata_behind")["times"], headline(short)[0][:7]) == (2, "Nothing")
    assert "it is a fault where it goes on" in headline(short)[1]
    assert not any("waited for" in line for line in headline(telling(dated(waits, waits, known))))
    late = f"[2026-01-01 00:05:00,000] INFO {waits}\n"
    assert any("see that most of the controllers run" in line for line in headline(telling(dated(waits) + late)))


def test_a_candidacy_that_was_attempted_and_completed_is_one(telling: Telling) -> None:
    state = (
        "[RaftManager id=8] {} transition to CandidateState(localId=8, localDirectoryId=Y78tb7TTA1SpQ7LNQmCpYw,epoch=4, "
        "retries=1, voteStates={{}}, highWatermark=Optional.empty) from Unattached(epoch=3, voters=[6, 7, 8])"
    )
    attempt, done = state.format("Attempting durable"), state.format("Completed")
    for lines in ((attempt,), (done,), (attempt, done)):
        assert only(telling(log(*lines)), "quorum")["elections"] == 1
    assert only(telling(log(attempt, done, attempt, done)), "quorum")["elections"] == 2


def test_a_session_of_whatever_client_of_zookeeper_is_not_said_to_be_a_brokers(telling: Telling) -> None:
    expired = "Unable to reconnect to ZooKeeper service, session 0x1 has expired (org.apache.zookeeper.ClientCnxn)"
    alone = telling(log("[KafkaServer id=1] started", expired))
    assert only(alone, "session_expired")["node"] is None
    assert any("a client of ZooKeeper lost its session" in line for line in headline(alone))
    brokers = telling(log("[KafkaServer id=1] started", "[ZooKeeperClient Kafka server] Session expired.", expired))
    assert only(brokers, "session_expired")["node"] == 1


def test_a_leader_that_cannot_move_says_whether_the_isr_has_somebody_else(telling: Telling) -> None:
    error = "No other replicas in ISR {} for [x,9] besides shutting down brokers 0"
    choosing = "ERROR Controller 0 epoch 3 encountered error while electing leader for partition [x,9] due to: {}. (state)"
    stopped = telling(
        dated(choosing.format(error.format("0,2")), f"kafka.common.StateChangeFailedException: {error.format('0,2')}")
    )
    assert only(stopped, "no_other_leader")["times"] == 1
    assert any("no other replica of the ISR [0, 2] is alive" in line for line in headline(stopped))
    assert any("no other replica is in sync, ISR [0]" in line for line in headline(telling(error.format("0"))))


@pytest.mark.parametrize(("end", "bugs"), [("-future", ["KAFKA-15391"]), ("-delete", ["KAFKA-15391"]), ("", [])])
def test_a_folder_that_was_renamed_while_it_was_flushed_is_no_fault_of_the_disk(
    telling: Telling, end: str, bugs: list[str]
) -> None:
    flush = (
        "ERROR Error while flushing log for x-1 in dir /d with offset 39 (exclusive) and recovery point 39 (kafka.server.L)"
    )
    folder = f"/d/x-1.{'a' * 32}{end}" if end else "/d/x-1"
    story = telling(dated(flush, f"java.nio.file.NoSuchFileException: {folder}"))
    assert [bug.bug for bug in story.bugs] == bugs
    assert any("the disk itself is not at fault" in line for line in headline(story)) is bool(bugs)


def test_files_of_a_deleted_topic_that_stay_are_of_no_partition(telling: Telling) -> None:
    deleting = "ERROR Exception in kafka-delete-logs thread{} (kafka.log.LogManager)"
    for lines in (
        (deleting.format(".: java.lang.NullPointerException"),),
        (deleting.format("."), "java.lang.NullPointerException: x"),
    ):
        story = telling(dated(*lines))
        assert only(story, "not_deleted")["error"].startswith("java.lang.NullPointerException")
        assert [entry.partition for entry in story.entries] == [None]
        assert any("the folders that end in -delete stay" in line for line in headline(story))


def test_a_sentence_with_a_comma_is_no_head_of_a_table(telling: Telling) -> None:
    error = (
        "org.apache.kafka.common.errors.OutOfOrderSequenceException: Out of order sequence number for producer 1 at offset "
        "111 in partition x-0: 0 (incoming seq. number), 29 (current end sequence number)\n"
    )
    refused = (
        "[2026-01-01 00:00:0{},000] ERROR [ReplicaManager broker=2] Error processing append operation on partition x-0 (k)\n"
    )
    story = telling(error + "".join(refused.format(at) + error for at in range(2)))
    assert (only(story, "produce_refused")["node"], only(story, "produce_refused")["times"]) == (2, 2)


def test_why_a_fetch_was_lost_stands_in_the_line_before_where_its_own_was_cut(telling: Telling) -> None:
    fetcher = "[ReplicaFetcher replicaId=4, leaderId=0, fetcherId=0]"
    sent = f"{fetcher} Error sending fetch request (sessionId=5, epoch=INITIAL) to node 0: java.io.IOException: gone. (x)"
    torn = (
        f"{fetcher} Error in response for fetch request (type=FetchRequest, replicaId=4, maxWait=500, fetchData={{x-0=(off"
    )
    assert only(telling(log(sent, torn)), "fetch_refused")["error"] == "java.io.IOException: gone"
    assert telling(log(sent)).entries == []


def test_a_request_that_failed_is_told_where_the_broker_is_at_fault(telling: Telling) -> None:
    failed = "ERROR [KafkaApi-0] Error when handling request {controller_id=0} (kafka.server.KafkaApis)"
    full = telling(dated(failed, "java.io.IOException: Map failed"))
    assert any("raise vm.max_map_count" in line for line in headline(full))
    assert telling(dated(failed, "java.lang.IllegalArgumentException: of a client")).entries == []


def test_lines_of_redpanda_are_said_to_be(telling: Telling) -> None:
    line = "INFO  2023-06-14 08:26:43,694 [shard 0] raft - [group_id:6, {kafka/x/1}] vote_stm.cc:279 - became the leader\n"
    assert "There are lines of Redpanda" in story_text(telling(line))


def test_a_stop_and_a_migration_that_wait_say_for_whom(telling: Telling) -> None:
    stop = "[Kafka Server 2], Error during controlled shutdown, possibly as it took long: Connection to Node(2, a, 9) failed"
    assert only(telling(log(f"{stop} (kafka.server.KafkaServer)")), "leaders_not_moved")["error"].endswith(
        "(2, a, 9) failed"
    )
    waits = "[KRaftMigrationDriver id=8] No brokers are known to KRaft, waiting for brokers to register. (org)"
    assert any("node 8 waited for brokers to register" in line for line in headline(telling(log(waits, waits))))


@pytest.mark.parametrize("few", [True, False])
def test_an_isr_of_too_few_members_is_told_as_such(telling: Telling, few: bool) -> None:
    """Partition#handleAlterIsrUpdate prints two spaces where there are enough."""
    shrinks = "INFO [Partition x-0 broker=1] Shrinking ISR from 1,2,3 to 1. Leader: (highWatermark: 9, endOffset: 12)."
    marked = "(under-min-isr)" if few else ""
    updated = f"INFO [Partition x-0 broker=1] ISR updated to 1 {marked} and version updated to 42"
    text = story_text(
        telling("".join(f"[2024-03-01 12:00:01,123] {line} (kafka.cluster.Partition)\n" for line in (shrinks, updated)))
    )
    assert ("the ISR went from [1, 2, 3] to [1], fewer than min.insync.replicas" in text) == few


def test_a_line_that_a_shipper_sent_again_is_no_second_log(telling: Telling) -> None:
    first = "INFO Registered signal handlers for TERM, INT, HUP (org.apache.kafka.common.utils.LoggingSignalHandler)"
    made = "INFO Created log for partition x-0 in /d/x-0 with properties {} (kafka.log.LogManager)"
    again = dated(first, first, made)
    assert [one.kind for one in telling(again).entries] == ["start", "start"]
    assert [one.kind for one in telling(again + again.splitlines(keepends=True)[-1]).entries] == ["start", "start"]
    later = made.replace("INFO", "INFO ")
    assert [one.kind for one in telling(dated(first, first, made, later)).entries] == ["start", "start", "replica_lost"]


def test_a_connect_worker_beside_a_broker_is_no_start_of_the_broker(telling: Telling) -> None:
    signals = "INFO Registered signal handlers for TERM, INT, HUP (org.apache.kafka.common.utils.LoggingSignalHandler)"
    expands = "INFO [Partition x-0 broker=4] Expanding ISR from 4 to 4,5 (kafka.cluster.Partition)"
    worker = "INFO [Worker clientId=c, groupId=g] Started (org.apache.kafka.connect.runtime.Worker)"
    story = telling({"server.log": dated(signals, expands), "connect.log": dated(worker, signals)})
    assert [one.node for one in story.entries if one.kind == "start"].count(4) == 1


OLD_RESET = (
    "[ReplicaFetcherThread-3-4], Replica 2 for partition [x,0] reset its fetch offset {}to current leader 4's {} offset {}"
)
OLD_HANDLED = (
    "ERROR [ReplicaFetcherThread-3-4], Current offset {} for partition [x,0] out of range; reset offset to {} (kafka)"
)


@pytest.mark.parametrize("printed", ["", "from 350 "])
def test_where_a_replica_of_0_8_was_before_it_began_anew_is_in_the_second_of_its_lines(
    telling: Telling, printed: str
) -> None:
    warning = OLD_RESET.format(printed, "start", 350)
    reset = only(telling(dated(f"WARN {warning}", OLD_HANDLED.format(378, 350))), "reset")
    assert (reset["from"], reset["to"], reset["times"]) == (378, 350, 1)
    assert only(telling(dated(f"WARN {warning}")), "reset")["from"] is None


def test_a_replica_whose_log_goes_on_where_its_leaders_begins_before_stays_where_it_is(telling: Telling) -> None:
    fetcher = "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0]"
    story = telling(
        dated(
            f"WARN {fetcher} Reset fetch offset for partition x-0 from 120 to current leader's start offset 50 (kafka)",
            f"ERROR {fetcher} Current offset 120 for partition x-0 is out of range, which typically implies a leader "
            "change. Reset fetch offset to 120 (kafka)",
        )
    )
    assert (only(story, "reset")["from"], only(story, "reset")["to"]) == (120, 120)


def test_a_replica_that_went_back_leaves_open_what_it_lost_unless_the_truncation_is_told(telling: Telling) -> None:
    back = OLD_HANDLED.format(378, 350)
    assert headline(telling(dated(back)))[0].startswith("Whether data was lost, these lines do not tell: x-0: ")
    forth = OLD_HANDLED.format(350, 378)
    assert headline(telling(dated(forth)))[0] == "No loss of data is told by these logs."
    whole = telling(
        dated(f"WARN {OLD_RESET.format('from 378 ', 'latest', 350)}", "INFO Truncating log x-0 to offset 350.", back)
    )
    assert [loss.records for loss in whole.losses] == [28]


@pytest.mark.parametrize(
    "text",
    [
        "ERROR [ConsumerFetcherThread-g_h-14-0-2], Current offset 112 for partition [x,0] out of range; reset offset to 103",
        "WARN [Consumer clientId=c, groupId=g] Fetch offset 112 is out of range for partition x-0, resetting offset",
        "aiokafka - INFO - Fetch offset 112 is out of range for partition TopicPartition(topic='x', partition=0), resetting",
    ],
)
def test_a_consumer_that_is_out_of_range_is_not_called_a_broker(telling: Telling, text: str) -> None:
    story = telling(dated(text, text))
    reset = only(story, "reset")
    assert (reset["by"], reset["node"], reset["from"], reset["times"]) == ("a consumer", None, 112, 2)
    assert any("a consumer was out of range at 112" in line for line in headline(story))
    assert any("kafka-get-offsets" in line for line in headline(story))


def test_what_a_consumer_fetched_is_not_what_a_broker_did(telling: Telling) -> None:
    text = (
        "ERROR [ConsumerFetcherThread-g_host-1496-0-2], Error for partition [x,0] to broker 2:class kafka.common.X (kafka)"
    )
    assert telling(dated(text)).entries == []


def test_a_consumer_that_found_a_truncation_leaves_open_what_was_lost(telling: Telling) -> None:
    position = (
        "FetchPosition{{offset={}, offsetEpoch=Optional[3], currentLeader=LeaderAndEpoch{{leader=Optional[h], epoch=4}}}}"
    )
    detected = "WARN [Consumer clientId=c, groupId=g] Truncation detected for partition x-0 at offset " + position.format(
        112
    )
    reset = telling(dated(f"{detected}, resetting offset to the first offset known to diverge {position.format(103)}"))
    assert (only(reset, "reset")["from"], only(reset, "reset")["to"]) == (112, 103)
    assert headline(reset)[0].startswith("Whether data was lost, these lines do not tell: x-0: ")
    assert only(telling(dated(f"{detected} (the end offset from the broker is 103), but no reset policy is set")), "reset")


def test_a_replica_of_0_8_that_may_not_truncate_names_itself_and_no_partition(telling: Telling) -> None:
    failed = only(
        telling(dated(f"FATAL [ReplicaFetcherThread-0-1], Halting because {NOT_ALLOWED_IN_0_8}")), "process_failed"
    )
    assert (failed["node"], failed["partition"]) == (2, None)
    assert failed["error"].endswith("the leader's log ends at 0, this replica's at 151, so the leader lacks 0 to 150")


@pytest.mark.parametrize(
    "between",
    [
        "\nand kafka-1 says:\n",
        "```\n\nOn broker 1:\n\n```\n",
        "$ docker logs kafka-1 | grep -i truncat\n",
        "\nOn the other one\n\n",
    ],
)
@pytest.mark.parametrize("before", ["", "Controller says:\n\n"])
def test_lines_of_a_report_with_words_between_them_may_be_of_two_brokers(
    telling: Telling, between: str, before: str
) -> None:
    identity = "INFO [Controller id=3] New broker startup callback for 1 (kafka.controller)"
    log_line = "INFO [Log partition=x-0, dir=/d] Truncating to offset 132 (kafka.log.Log)"
    assert only(telling(dated(identity, log_line)), "truncated")["node"] == 3
    story = telling(before + dated(identity) + between + dated(log_line))
    assert only(story, "truncated")["node"] is None


@pytest.mark.parametrize(
    "between",
    [
        "===> User\nuid=1000(appuser) gid=1000(appuser) groups=1000(appuser)\n===> Configuring ...\n",
        "> \tat kafka.log.Log.append(Log.scala:1)\n> java.io.IOException: no\n",
        "kafka.server.ReplicaFetcherThread$FetchRequest@1f8\n",
        "\nCaused by: java.io.IOException: no\n\n",
        "\tlog.dirs = /d\n\tbroker.id = 3\n\n",
    ],
)
def test_what_a_broker_prints_without_a_date_divides_no_lines(telling: Telling, between: str) -> None:
    identity = "INFO [Controller id=3] New broker startup callback for 1 (kafka.controller)"
    log_line = "INFO [Log partition=x-0, dir=/d] Truncating to offset 132 (kafka.log.Log)"
    assert only(telling(dated(identity) + between + dated(log_line)), "truncated")["node"] == 3


def test_a_line_without_a_node_is_of_no_broker_that_the_described_topic_lacks(telling: Telling) -> None:
    identity = "INFO [Controller 3] Unfenced broker: 2 (org.apache.kafka.controller.ClusterControlManager)"
    log_line = "INFO [UnifiedLog partition=x-0, dir=/d] Truncating to offset 132 (kafka.log.UnifiedLog)"
    for replicas, node in (("1,2", None), ("1,3", 3)):
        described = f"Topic: x\tPartition: 0\tLeader: 1\tReplicas: {replicas}\tIsr: 1\n"
        assert only(telling(described + dated(identity, log_line)), "truncated")["node"] == node


def test_pasted_lines_without_a_date_begin_with_what_kafka_puts_before_a_message(telling: Telling) -> None:
    story = telling(
        "[QuorumController id=1] UNCLEAN partition change for drill.m19.unclean-0: isr: [1] -> [2], leader: 1 -> 2, "
        "leaderRecoveryState: RECOVERED -> RECOVERING, leaderEpoch: 2 -> 3, partitionEpoch: 5 -> 6\n"
        "[Broker id=1] Follower drill.m19.unclean-0 starts at leader epoch 3 from offset 58000 with partition epoch 6 and "
        "high watermark 58000. Current leader is 2.\n"
        "WARN [UnifiedLog partition=drill.m19.unclean-0, dir=/x] Truncating drill.m19.unclean-0 to offset 31000 below high "
        "watermark 58000\n"
    )
    assert [(entry.kind, entry.sources[0]) for entry in story.entries] == [
        ("elected", "server.log:1"),
        ("follower", "server.log:2"),
        ("truncated", "server.log:3"),
    ]


def test_what_stands_between_fences_was_wrapped_for_itself(telling: Telling) -> None:
    story = telling(
        '```bash\ndocker logs kafka | grep -c "does not match the topic ID for partition __consumer_offsets" | sort -u\n'
        "```\n\nThe full line reads:\n\n```\n"
        "ERROR [Broker id=1] Topic ID in memory: pIUNPJZ6RpuVqnKV-ceZuQ does not match\n"
        "the topic ID for partition __consumer_offsets-27 received: tDXAqjQCRx6vY13YGKdeUg\n```\n"
    )
    assert only(story, "topic_id_mismatch")["partition"] == "__consumer_offsets-27"


def test_lines_of_librdkafka_behind_prose_with_a_date_are_lines(telling: Telling) -> None:
    reset = (
        "%4|1646810899.0{0}|OFFSET|rdkafka#consumer-2| [thrd:main]: x [{0}]: offset reset (at offset 51{0}) to END: fetch "
    )
    reset += "failed due to requested offset not available on the broker: Broker: Offset out of range\n"
    story = telling("client logs(2022-03-09 15:28:18):\n" + "".join(reset.format(at) for at in (21, 22, 23)))
    assert [entry.partition for entry in story.entries] == ["x-21", "x-22", "x-23"]


def test_a_follower_that_is_ahead_has_what_its_leader_lacks(telling: Telling) -> None:
    halted = (
        "FATAL [ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] Exiting because log truncation is not allowed for "
        "partition x-0, current leader's latest offset 2051 is less than replica's latest offset 2391 (kafka.server)"
    )
    first, bug, *_ = headline(telling(dated(halted)))
    assert first.startswith("Whether data was lost, these lines do not tell: x-0: ")
    assert "so the leader lacks 2051 to 2390" in first
    assert "copy the partition's folder" in bug


def test_partitions_without_a_leader_are_named_together(telling: Telling) -> None:
    describe = "".join(f"\tTopic: x\tPartition: {at}\tLeader: none\tReplicas: 5,1,2\tIsr: 5\n" for at in range(9))
    lines = headline(telling(describe))
    assert lines[1].startswith("x-0, x-1, x-2, x-3, x-4, x-5 and 3 more: no leader was left")
    assert sum("start broker 5 again" in line for line in lines) == 1


def test_a_topic_that_cannot_have_its_replicas_is_told_with_the_brokers_that_there_are(telling: Telling) -> None:
    handling = (
        "ERROR [KafkaApi-0] error when handling request Name: TopicMetadataRequest; Topics: x (kafka.server.KafkaApis)"
    )
    story = telling(
        dated(handling) + "kafka.admin.AdminOperationException: replication factor: 3 larger than available brokers: 1\n"
    )
    assert any("it was to have 3 replicas, and 1 broker was registered" in line for line in headline(story))


def test_a_metadata_log_that_is_empty_is_new_or_lost(telling: Telling) -> None:
    activation = (
        "WARN [QuorumController id=0] Performing controller activation. The metadata log appears to be empty. Appending"
    )
    lines = headline(telling(dated(activation)))
    assert lines[0].startswith("Nothing out of the ordinary is told")
    assert "see that the right volume is mounted" in lines[1]


def test_a_broker_that_serves_is_ordinary_and_told_once(telling: Telling) -> None:
    unfenced = (
        "INFO [BrokerLifecycleManager id=1] The broker has been unfenced. Transitioning from RECOVERY to RUNNING. (kafka)",
        "INFO [Controller 3] Unfenced broker: UnfenceBrokerRecord(id=1, epoch=1) (org.apache.kafka.controller)",
    )
    assert only(telling(dated(*unfenced)), "broker_unfenced")["node"] == 1


def test_a_null_pointer_as_a_controller_renounces_is_a_known_bug_until_it_is_fixed(telling: Telling) -> None:
    fault = "ERROR Encountered fatal fault: exception while renouncing leadership (org.apache.kafka.server.fault.X)"
    version = "INFO Kafka version: {} (org.apache.kafka.common.utils.AppInfoParser)"
    for release, known in (("3.3.1", True), ("3.4.0", True), ("3.4.1", False)):
        story = telling(dated(version.format(release), fault) + "java.lang.NullPointerException\n\tat kafka.X.y(X.java:1)\n")
        assert ("KAFKA-14946" in [bug.bug for bug in story.bugs]) == known


def test_an_election_that_the_other_voters_refused_sends_to_their_logs(telling: Telling) -> None:
    rejected = (
        "INFO [RaftManager id=0] Insufficient remaining votes to become leader (rejected by [1, 2]). We will backoff (kafka)"
    )
    assert any("look into the logs of nodes 1, 2: they answered" in line for line in headline(telling(dated(rejected))))


def test_an_error_to_the_first_request_of_a_connection_sends_to_the_other_nodes_log(telling: Telling) -> None:
    line = (
        "WARN [RaftManager id=3001] Received error UNKNOWN_SERVER_ERROR from node 3002 when making an ApiVersionsRequest "
        "with correlation id 4. Disconnecting. (org.apache.kafka.clients.NetworkClient)"
    )
    lines = only(telling(dated(line)), "api_versions_failed")
    assert (lines["node"], lines["peer"], lines["error"]) == (3001, 3002, "UNKNOWN_SERVER_ERROR")
    assert telling(dated(line.replace("RaftManager id=3001", "Consumer clientId=c"))).entries == []


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


def test_an_exception_that_was_broken_behind_a_bracket_goes_on(telling: Telling) -> None:
    story = telling(
        "org.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR Set(11, 14)\n"
        "is insufficient to satisfy the min.isr requirement of 3 for partition x-0\n"
    )
    assert "2 of the 3 replicas of min.insync.replicas in sync, [11, 14]" in only(story, "produce_refused")["error"]


def test_a_change_of_the_isr_that_zookeeper_did_not_take_is_refused(telling: Telling) -> None:
    shrinking = "INFO [Partition t-3 broker=1] Shrinking ISR from 1,3,4,2 to 1,4,2 (kafka.cluster.Partition)"
    task = "ERROR Uncaught exception in scheduled task 'isr-expiration' (kafka.utils.KafkaScheduler)"
    error = "org.apache.zookeeper.KeeperException$SessionExpiredException: KeeperErrorCode = Session expired for "
    story = telling(dated(shrinking, task) + f"{error}/brokers/topics/t/partitions/3/state\n")
    assert only(story, "isr_changed")["accepted"] is False
    other = telling(dated(shrinking, task) + f"{error}/brokers/topics/t/partitions/4/state\n")
    assert only(other, "isr_changed")["accepted"] is None


def test_a_client_of_librdkafka_names_the_broker_that_did_not_lead(telling: Telling) -> None:
    line = "%7|1588299512.086|BROKERUA|rdkafka#p-1| [thrd:kafka-3:9092/2]: x [0]: broker unavailable: produce: Broker: "
    story = telling(f"{line}Not leader for partition\n")
    assert only(story, "not_leader")["node"] == 2
    assert any("asks again" in line for line in headline(story))


def test_a_replica_that_left_the_isr_is_told_with_where_its_log_ended(telling: Telling) -> None:
    shrinking = (
        "INFO [Partition x-0 broker=1] Shrinking ISR from 1,2,3 to 1. Leader: (highWatermark: 132, endOffset: 150). Out of "
        "sync replicas: (brokerId: 2, endOffset: 132, lastCaughtUpTimeMs: 1719658927112) (brokerId: 3, endOffset: 140). (k)"
    )
    lines = headline(telling(dated(shrinking)))
    assert any(
        "the log of broker 2 ended at 132; the log of broker 3 ended at 140, the leader's at 150" in line for line in lines
    )


def test_what_came_invalid_from_several_leaders_is_no_leaders_fault(telling: Telling) -> None:
    invalid = (
        "ERROR [ReplicaFetcher replicaId=2, leaderId={}, fetcherId=0] Found invalid messages during fetch for partition {} "
        "offset 7 (kafka.server.ReplicaFetcherThread)"
    )
    one = headline(telling(dated(invalid.format(6, "x-0"), invalid.format(6, "y-0"))))
    assert any("look into the segment of the leader" in line for line in one)
    two = headline(telling(dated(invalid.format(6, "x-0"), invalid.format(8, "y-0"))))
    assert any(
        "look into the memory and the network of broker 2: what it fetched from brokers 6 and 8" in line for line in two
    )


@pytest.mark.parametrize("is_first", [True, False])
def test_retention_is_told_with_the_limit_that_it_goes_by(telling: Telling, is_first: bool) -> None:
    moved = "INFO [UnifiedLog partition=x-0, dir=/d] Incremented log start offset to 3000 due to segment deletion (kafka)"
    because = "INFO [UnifiedLog partition=x-0, dir=/d] Deleting segment LogSegment(a=0) due to log retention {} breach (k)"
    for limit, words in (("time 15000ms", "retention.ms, 15,000"), ("size 4096", "retention.bytes, 4,096")):
        lines = (because.format(limit), moved) if is_first else (moved, because.format(limit))
        assert any(words in line for line in headline(telling(dated(*lines))))


def test_a_fetch_of_one_partition_that_fails_for_want_of_memory_names_it(telling: Telling) -> None:
    failed = (
        "WARN [ReplicaFetcherThread-2-1], Error in fetch Name: FetchRequest; Version: 0; CorrelationId: 4; ClientId: c; "
        "ReplicaId: 0; MaxWait: 500 ms; MinBytes: 1 bytes; RequestInfo: {}. Possible cause: java.lang.OutOfMemoryError: "
        "Direct buffer memory (kafka.server.ReplicaFetcherThread)"
    )
    one = "[x,0] -> PartitionFetchInfo(257984707,1048576)"
    story = telling(dated(failed.format(one)))
    assert only(story, "fetch_refused")["partition"] == "x-0"
    assert any("raise -XX:MaxDirectMemorySize" in line for line in headline(story))
    assert (
        only(telling(dated(failed.format(f"{one},[y,0] -> PartitionFetchInfo(7,7)"))), "fetch_refused")["partition"] is None
    )


def test_a_truncation_that_a_fetcher_calls_one_to_its_high_watermark_is_told_so(telling: Telling) -> None:
    truncating = "INFO [UnifiedLog partition=x-0, dir=/d] Truncating to offset 10042 (kafka.log.UnifiedLog)"
    why = (
        "INFO [ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] Truncating partition x-0 to local high watermark 10042 "
        "(kafka.server.ReplicaFetcherThread)"
    )
    assert any(
        "broker 2 truncated to 10042, its own high watermark" in line for line in headline(telling(dated(truncating, why)))
    )


def test_a_broker_that_the_controller_does_not_name_is_to_be_found_by_its_own_line(telling: Telling) -> None:
    refused = (
        "INFO [QuorumController id=0] processBrokerHeartbeat: event failed with StaleBrokerEpochException in 25 us. "
        "Exception message: Expected broker epoch 38558457, but got broker epoch 2293103 (org.apache.kafka.controller)"
    )
    lines = headline(telling(dated(refused)))
    assert any("find the broker first: its own log has `received error STALE_BROKER_EPOCH`" in line for line in lines)


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


def test_a_number_of_replicas_in_sync_is_no_replica(telling: Telling) -> None:
    refused = (
        "org.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR : 1 is insufficient to "
        "satisfy the min.isr requirement of 2 for partition x-0\n"
    )
    append = (
        "ERROR [ReplicaManager broker=1] Error processing append operation on partition x-0 (kafka.server.ReplicaManager)"
    )
    lines = headline(telling(refused))
    assert any("1 of the 2 replicas of min.insync.replicas in sync" in line for line in lines)
    assert any("a lower min.insync.replicas" in line for line in lines)
    assert only(telling(dated(append) + refused), "produce_refused")["node"] == 1


def test_a_replica_that_a_description_lacks_is_named_in_what_to_do(telling: Telling) -> None:
    described = "Topic: x\tPartition: 0\tLeader: 147\tReplicas: 147,103\tIsr: 147\n"
    assert any("see that broker 103 runs; else look" in line for line in headline(telling(described)))


def test_metadata_that_does_not_load_is_copied_before_anything_is_formatted(telling: Telling) -> None:
    fault = (
        "ERROR Encountered fatal fault: Error loading metadata log record from offset 99 (org.apache.kafka.server.fault.X)"
    )
    story = telling(dated(fault) + "java.lang.IllegalStateException: Tried to change broker 3, but the given epoch is old\n")
    assert any("copy the metadata directory of this node" in line for line in headline(story))


def test_a_leader_of_0_11_names_its_partition_twice(telling: Telling) -> None:
    line = (
        "INFO Partition [x,1] on broker 1: x-1 starts at Leader Epoch 1 from offset 0. Previous Leader Epoch was: 0 (kafka)"
    )
    leader = only(telling(dated(line)), "leader")
    assert (leader["partition"], leader["node"], leader["leader_epoch"]) == ("x-1", 1, 1)


FAILED_START = """\
[2024-02-22 01:21:14,395] ERROR [BrokerServer id=0] Received a fatal error while waiting for the controller to acknowledge \
that we are caught up (kafka.server.BrokerServer)
java.util.concurrent.CancellationException
\tat kafka.server.BrokerLifecycleManager$ShutdownEvent.run(BrokerLifecycleManager.scala:506)
[2024-02-22 01:21:14,396] INFO [BrokerServer id=0] Transition from STARTING to STARTED (kafka.server.BrokerServer)
[2024-02-22 01:21:14,398] ERROR [BrokerServer id=0] Fatal error during broker startup. Prepare to shutdown (kafka.server.X)
[2024-02-22 01:21:14,399] INFO [BrokerServer id=0] shut down completed (kafka.server.BrokerServer)
[2024-02-22 01:21:14,399] ERROR Exiting Kafka due to fatal exception during startup. (kafka.Kafka$)
"""


def test_a_start_that_fails_is_told_neither_as_a_start_nor_as_a_clean_stop(telling: Telling) -> None:
    story = telling(FAILED_START)
    assert [entry.kind for entry in story.entries] == ["process_failed", "stop"]
    assert only(story, "stop")["clean"] is None
    assert "shut down, as its start had failed" in story_text(story)
    assert any("look at the minute before in this log" in line for line in headline(story))


def test_a_stop_printed_before_the_failure_of_its_start_is_part_of_it(telling: Telling) -> None:
    lines = FAILED_START.splitlines(keepends=True)
    text = story_text(telling("".join(lines[-2:])))
    assert "broker 0 shut down, as its start had failed" in text
    assert "failed: Exiting Kafka due to fatal exception during startup" in text


def test_a_process_that_began_to_start_is_not_told_to_have_started(telling: Telling) -> None:
    handlers = "INFO Registered signal handlers for TERM, INT, HUP (org.apache.kafka.common.utils.LoggingSignalHandler)"
    started = "INFO [BrokerServer id=0] Transition from STARTING to STARTED (kafka.server.BrokerServer)"
    sure = "INFO [KafkaRaftServer nodeId=0] Kafka Server started (kafka.server.KafkaRaftServer)"
    assert "broker 0 began to start [" in story_text(telling(dated(handlers, started)))
    assert "broker 0 started [" in story_text(telling(dated(handlers, started, sure)))


def test_a_file_that_a_broker_may_not_read_is_not_to_be_deleted(telling: Telling) -> None:
    failed = "ERROR [SharedServer id=0] Got exception while starting SharedServer (kafka.server.SharedServer)"
    unread = "java.io.IOException: Could not read file /d/__cluster_metadata-0/00000000000006012624-0000000019.checkpoint\n"
    assert any("the right to read that file" in line for line in headline(telling(dated(failed) + unread)))


def test_a_node_that_knows_no_voters_is_to_be_given_some(telling: Telling) -> None:
    state = (
        "INFO [RaftManager id=0] Completed transition to UnattachedState(epoch=2, leaderId=OptionalInt.empty, "
        "votedKey=Optional.empty, voters=[], electionTimeoutMs=1893, highWatermark=Optional.empty) from null (org.apache.X)"
    )
    lines = headline(telling(dated(state)))
    assert any("give it controller.quorum.voters" in line for line in lines)
    assert not any("most of the voters run" in line for line in lines)


def test_metadata_of_a_newer_release_want_that_release_back(telling: Telling) -> None:
    fault = (
        "ERROR Encountered fatal fault: Unable to apply FeatureLevelRecord record at offset 1609 on standby controller, "
        "from the batch with baseOffset 1609 (org.apache.kafka.server.fault.ProcessTerminatingFaultHandler) "
        "[quorum-controller-0-event-handler]"
    )
    error = (
        "java.lang.RuntimeException: Tried to apply FeatureLevelRecord FeatureLevelRecord(name='metadata.version', "
        "featureLevel={}), but this controller only supports versions 1-19\n"
    )
    story = telling(dated(fault) + error.format(20))
    assert only(story, "process_failed")["node"] == 0
    assert any("start Kafka 3.8, or a newer one, on this node again" in line for line in headline(story))
    assert any("start a release after" in line for line in headline(telling(dated(fault) + error.format(999))))


def test_an_error_of_the_raft_thread_is_looked_for_in_the_metadata_log(telling: Telling) -> None:
    fault = "ERROR Encountered fatal fault: Unexpected error in raft IO thread (org.apache.kafka.server.fault.X)"
    error = "java.lang.IllegalArgumentException: Got an unexpected empty key in the record\n"
    assert any("look at the last batches in it" in line for line in headline(telling(dated(fault) + error)))


def test_a_bootstrap_controller_has_an_address_and_no_id(telling: Telling) -> None:
    line = (
        "WARN [RaftManager id=1] Connection to node -2 (controller-0.example/10.104.4.14:9093) could not be established. "
        "Node may not be available. (org.apache.kafka.clients.NetworkClient)"
    )
    state = (
        "INFO [RaftManager id=1] Completed transition to CandidateState(localId=1, epoch=2, retries=1, voteStates={}, "
        "highWatermark=Optional.empty) from null (org.apache.kafka.raft.QuorumState)"
    )
    story = telling(dated(line, state))
    assert only(story, "unreachable")["address"] == "controller-0.example:9093"
    assert only(story, "quorum")["unreachable"] == []
    assert "could not reach the controller at controller-0.example:9093" in story_text(story)


def test_a_leader_that_the_same_line_makes_a_replica_is_none_of_apache_kafka(telling: Telling) -> None:
    change = (
        "INFO [Controller 0] UNCLEAN partition change for x-0 with topic ID HhPpDbsLQCqkVYGkSVHmWA: replicas: [1] -> [{}], "
        "isr: [1] -> [0], leader: 1 -> 0, leaderEpoch: 85 -> 86, partitionEpoch: 85 -> 86 (org.apache.kafka.controller.X)"
    )
    lines = headline(telling(dated(change.format("0"))))
    assert any("its replicas went from [1] to [0] in the same line" in line for line in lines)
    assert any("a build with shared storage" in line for line in lines)


def test_a_batch_out_of_sequence_leaves_open_where_the_ones_before_it_are(telling: Telling) -> None:
    refused = "ERROR [ReplicaManager broker=0] Error processing append operation on partition x-0 (kafka.server.X)"
    error = (
        "org.apache.kafka.common.errors.OutOfOrderSequenceException: Out of order sequence number for producer 12 at offset "
        "2383068 in partition x-0: {} (incoming seq. number), 589542 (current end sequence number)\n"
    )
    lines = headline(telling(dated(refused) + error.format(589545)))
    assert lines[0].startswith("Whether data was lost, these lines do not tell")
    assert "its log has not the 2 records with sequence number 589543 to 589544" in lines[0]
    assert any("ended with offset 2383068" in line for line in lines)
    assert headline(telling(dated(refused) + error.format(589500)))[0].startswith("No loss")


def test_a_follower_that_goes_on_to_follow_says_who_leads(telling: Telling) -> None:
    skipped = (
        "INFO [Broker id=8] Skipped the become-follower state change for x-215 with topic id Some(yO4CQayIRbyESrHHVPdOrQ) "
        "and partition state LeaderAndIsrPartitionState(topicName='x', partitionIndex=215, controllerEpoch=-1, leader=4, "
        "leaderEpoch=54, isr=[4, 8], partitionEpoch=102, replica"
    )
    story = telling(dated(skipped))
    kept = only(story, "role_kept")
    assert (kept["partition"], kept["node"], kept["leader"], kept["leader_epoch"]) == ("x-215", 8, 4, 54)
    assert any("went on to follow broker 4 in epoch 54, ISR [4, 8]" in line for line in headline(story))


def test_a_controller_with_too_much_to_do_is_told_by_a_line_that_was_cut(telling: Telling) -> None:
    line = "ERROR [QuorumController id=1001] processExpiredBrokerHeartbeat: control"
    lines = headline(telling(dated(line)))
    assert any("node 1001, the active controller, had too much to do" in line for line in lines)


def test_a_follower_that_misses_segments_in_remote_storage_is_told_from_which_offset(telling: Telling) -> None:
    failed = "ERROR [ReplicaFetcher replicaId=7, leaderId=6, fetcherId=2] Error building remote log auxiliary state for x-24"
    error = (
        "org.apache.kafka.server.log.remote.storage.RemoteStorageException: Couldn't build the state from remote store for "
        "partition: x-24, currentLeaderEpoch: 8, leaderLocalLogStartOffset: 209, leaderLogStartOffset: 0, epoch: 0 as the "
        "previous remote log segment metadata was not found\n"
    )
    story = telling(dated(failed) + error)
    assert (only(story, "remote_read_failed")["leader"], only(story, "remote_read_failed")["offset"]) == (6, 209)
    assert any("look for the segments below 209" in line for line in headline(story))


def test_segments_that_cannot_be_copied_to_remote_storage_are_not_lost(telling: Telling) -> None:
    failed = (
        "ERROR [RemoteLogManager=202 partition=bR3L1DLqSLKRvSn6UPV6sg:x-0] Error occurred while copying log segments of "
        "partition: bR3L1DLqSLKRvSn6UPV6sg:x-0 (kafka.log.remote.RemoteLogManager$RLMCopyTask)"
    )
    error = 'java.lang.NullPointerException: Cannot invoke "java.io.File.toPath()" because "x" is null\n'
    story = telling(dated(failed) + error)
    assert (only(story, "remote_copy_failed")["partition"], only(story, "remote_copy_failed")["node"]) == ("x-0", 202)
    assert any("watch the disk of this broker" in line for line in headline(story))


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


def test_a_broker_that_a_record_fences_left_until_one_unfences_it(telling: Telling) -> None:
    record = (
        '| offset: 629 CreateTime: 1730803001463 keySize: -1 valueSize: 19 sequence: -1 headerKeys: [] payload: {"type":'
        '"BROKER_REGISTRATION_CHANGE_RECORD","version":0,"data":{"brokerId":8,"brokerEpoch":26,"fenced":FENCED}}\n'
    )
    fenced, unfenced = record.replace("FENCED", "1"), record.replace("FENCED", "-1")
    lines = headline(telling(fenced))
    assert any("broker 8 left: its registration was fenced" in line for line in lines)
    assert any("start broker 8 again if it is to run" in line for line in lines)
    assert not any(happened(entry) for entry in telling(fenced + unfenced).entries)


def test_a_topic_of_which_a_grep_left_only_its_creation_is_told_with_its_offset(telling: Telling) -> None:
    record = (
        "| offset: 111 CreateTime: 1790509878206 keySize: -1 valueSize: 27 sequence: -1 headerKeys: [] payload: {"
        '"type":"TOPIC_RECORD","version":0,"data":{"name":"orders","topicId":"ywkgJzfISRGP0UN2q1Y88A"}}\n'
    )
    story = telling(record)
    assert (only(story, "topic_created")["topic"], only(story, "topic_created")["offset"]) == ("orders", 111)
    assert any("give the whole dump" in line for line in headline(story))


def test_a_process_without_voters_in_its_configuration_is_told_what_to_set(telling: Telling) -> None:
    error = (
        'Exception in thread "main" org.apache.kafka.common.config.ConfigException: If using process.roles, either '
        "controller.quorum.bootstrap.servers must contain the set of bootstrap controllers or controller.quorum.voters must"
    )
    lines = headline(telling(error + "\n"))
    assert any(
        "a node failed: controller.quorum.voters is not set, nor is controller.quorum.bootstrap.servers" in line
        for line in lines
    )
    assert any("KAFKA_CONTROLLER_QUORUM_VOTERS" in line for line in lines)


def test_lines_of_automq_are_told_to_be_its_own(telling: Telling) -> None:
    line = "ERROR [ElasticLogManager] Failed to create elastic log for x-1 (kafka.log.streamaspect.ElasticLogManager)"
    assert "There are lines of AutoMQ" in story_text(telling(dated(line)))


def test_a_lost_connection_counts_while_a_node_knows_no_leader(telling: Telling) -> None:
    waits = (
        "INFO [MetadataLoader id=0] initializeNewPublishers: the loader is still catching up because we still don't know "
        "the high water mark yet. (org.apache.kafka.image.loader.MetadataLoader)"
    )
    lost = "INFO [RaftManager id=0] Node {} disconnected. (org.apache.kafka.clients.NetworkClient)"
    unreached = (
        "WARN [RaftManager id=0] Connection to node 2 (localhost/127.0.0.1:24038) could not be established. Broker may not "
        "be available. (org.apache.kafka.clients.NetworkClient)"
    )
    assert telling(dated(lost.format(1))).entries == []
    story = telling(dated(waits, lost.format(1), lost.format(2), unreached))
    assert [entry.fields["peer"] for entry in story.entries if "peer" in entry.fields] == [1, 2]
    assert any("node 0 lost its connection to node 1" in line for line in headline(story))


FOLLOWER_REFUSED = (
    "ERROR [ReplicaFetcherThread-0-4], Error for partition [x,30] to broker 4:org.apache.kafka.common.errors.NotLeader"
    "ForPartitionException: This server is not the leader for that topic-partition. (kafka.server.ReplicaFetcherThread)"
)


@pytest.mark.parametrize("between", [(), ("INFO x (kafka)",) * 8])
@pytest.mark.parametrize(
    "refused", [FOLLOWER_REFUSED, "ERROR [ReplicaFetcherThread-0-4], Error for partition x-30 at offset 7 (kafka.server.R)"]
)
@pytest.mark.parametrize(
    "other", ["[KafkaApi-0] Error while responding to offset request", "Processor got uncaught exception"]
)
def test_an_exception_behind_another_message_is_of_that(
    telling: Telling, refused: str, between: tuple[str, ...], other: str
) -> None:
    text = dated(refused, *between, f"ERROR {other} (kafka.x)", "java.lang.NullPointerException")
    assert "NullPointer" not in only(telling(text), "fetch_refused")["error"]


def test_an_error_that_names_its_exception_takes_no_other_one(telling: Telling) -> None:
    text = dated(FOLLOWER_REFUSED, "java.lang.NullPointerException")
    assert "NotLeader" in only(telling(text), "fetch_refused")["error"]


def test_items_of_a_list_are_of_different_brokers(telling: Telling) -> None:
    first, second = dated(
        FOLLOWER_REFUSED, "ERROR [KafkaApi-0] Error while responding to offset request (kafka)"
    ).splitlines()
    assert only(telling(f"1. {first}\n\n2. {second}\njava.lang.NullPointerException\n"), "fetch_refused")["node"] is None


def test_a_broker_that_stops_was_the_controller_only_if_a_line_says_so(telling: Telling) -> None:
    resigned = "INFO [Controller id=3] Resigned (kafka.controller)"
    assert telling(dated(resigned)).entries == []
    moved = (
        "INFO [Controller id=1] Shutting down broker 3 (kafka.controller.KafkaController)",
        "DEBUG [ControlledShutdownLeaderSelector]: Partition x-0 : current leader = 3, new leader = 2 (kafka.controller.C)",
        (
            "DEBUG [PartitionStateMachine controllerId=1] After leader election, leader cache for x-0 is updated to "
            "(Leader:2,ISR:2,1,LeaderEpoch:1,ControllerEpoch:1) (kafka.controller.PartitionStateMachine)"
        ),
    )
    text = story_text(telling(dated(*moved, resigned)))
    assert "broker 3 began to stop" in text
    assert "broker 2 was elected cleanly for epoch 1, as broker 3 was to stop" in text
    assert "ceased" not in text


def test_a_new_partition_without_a_leader_has_nothing_that_was_committed(telling: Telling) -> None:
    failed = (
        "ERROR [Controller id=1001 epoch=1] Controller 1001 epoch 1 failed to change state for partition x-2 from "
        "NewPartition to OnlinePartition (state.change.logger)"
    )
    why = (
        "kafka.common.StateChangeFailedException: Controller 1001 epoch 1 encountered error during state change of "
        "partition x-2 from New to Online, assigned replicas are [{}], live brokers are [Set(1001)]. No assigned replica"
    )
    lines = headline(telling(dated(failed, why.format(""))))
    assert any(
        "it is new and got no leader, as no broker that it was assigned to ran; those that ran: [1001]" in x for x in lines
    )
    assert any("it is new, and has no records" in line for line in lines)
    assert not any("committed" in line for line in lines)
    assert any("as of the brokers [7] that" in line for line in headline(telling(dated(failed, why.format("7")))))


def test_a_deletion_that_began_leaves_no_partition_to_be_started(telling: Telling) -> None:
    story = telling(
        "INFO [Controller id=100] Starting topic deletion for topics x (kafka.controller.KafkaController)\n"
        'INFO [Controller id=100] New leader and ISR for partition x-0 is {"leader":-1,"leader_epoch":1,"isr":[100]}\n'
        "INFO [ReplicaFetcherManager on broker 100] Removed fetcher for partitions x-0 (kafka.server)\n"
        f"INFO Log for partition x-0 is renamed to /d/x-0.{'a' * 32}-delete and is scheduled for deletion\n"
    )
    text = story_text(story)
    assert "the deletion of the topic x began" in text
    assert "no leader was left for epoch 1, as its topic was deleted" in text
    assert "broker 100 deleted its log" in text
    assert "Do:" not in text
    done = "INFO [TopicDeletionManager 1] Deletion of topic x successfully completed (kafka.controller.TopicDeletionManager)"
    began = "INFO [Controller id=1] Starting topic deletion for topics x (kafka.controller)"
    assert only(telling(dated(began, done)), "topic_deleted")["completed"] is True


def test_a_reset_of_0_8_that_a_text_quotes_twice_is_one(telling: Telling) -> None:
    warned = (
        "[2015-03-25 11:11:08,975] WARN [ReplicaFetcherThread-0-21], Replica 30 for partition [x,11] reset its fetch offset "
        "from {} to current leader 21's start offset 49322124 (kafka.server.ReplicaFetcherThread)\n"
        "[2015-03-25 11:11:08,976] ERROR [ReplicaFetcherThread-0-21], Current offset 54369274 for partition [x,11] out of "
        "range; reset offset to 49322124 (kafka.server.ReplicaFetcherThread)\n"
    )
    for text in (warned.format(49322124), warned.format(54369274), warned.format(49322124) + warned.format(54369274)):
        story = telling(text)
        reset = only(story, "reset")
        assert (reset["from"], reset["to"], reset["times"]) == (54369274, 49322124, 1)
        assert [bug.bug for bug in story.bugs] == ["KAFKA-2477"]


DESCRIBED = "\tTopic: x\tPartition: 0\tLeader: {}\tReplicas: {}\tIsr: {}\n"


def test_of_several_descriptions_the_last_one_is_how_it_is(telling: Telling) -> None:
    back = DESCRIBED.format(0, "2,0,1", "0,2,1")
    lines = headline(telling(DESCRIBED.format(0, "2,0,1", "0") + back))
    assert lines[1].endswith("by its last description; what follows was before.")
    assert "broker 0 led, ISR [0] of the replicas [2, 0, 1]: 2, 1 were not in sync." in lines[2]
    assert not any("Do:" in line for line in lines)
    # An empty ISR in between: whoever led next may have lacked records.
    lost = headline(telling(DESCRIBED.format(-1, "2,0,1", "") + back))
    assert lost[0].startswith(
        "Whether data was lost, these lines do not tell: x-0: no leader was left, and its ISR was empty"
    )
    # It was so last.
    lines = headline(telling(back + DESCRIBED.format(-1, "2,0,1", "")))
    assert any("start brokers 2, 0 and 1 again, the one first that stopped last" in line for line in lines)


def test_a_description_before_lines_of_a_broker_that_runs_again_is_past(telling: Telling) -> None:
    described = DESCRIBED.format(2, "2,3,1", "2,1")
    later = dated("INFO [Partition y-1 broker=1] ISR updated to 2,1,3  and version updated to 18 (kafka.cluster.Partition)")
    lines = headline(telling(described + later))
    assert any(
        "broker 2 led, ISR [2, 1] of the replicas [2, 3, 1]: 3 was not in sync; later lines show that 3 runs" in x
        for x in lines
    )
    assert not any("Do:" in line for line in lines)
    assert any("see that broker 3 runs" in line for line in headline(telling(f"{later}\n{described}")))


def test_partitions_without_a_leader_come_first(telling: Telling) -> None:
    text = "".join(
        f"\tTopic: x\tPartition: {number}\tLeader: {leader}\tReplicas: {replicas}\tIsr: {isr}\n"
        for number, leader, replicas, isr in ((0, 8, "8,2", "8"), (1, -1, "2,3", ""), (2, -1, "3,4", ""))
    )
    assert headline(telling(text))[1] == "Nobody leads 2 partitions: x 1, 2."


LOST = (
    "WARN [ReplicaFetcherThread-0-0], Error in fetch kafka.server.ReplicaFetcherThread$FetchRequest@6a3b53b1 (kafka.server)",
    "java.io.IOException: Connection to 0 was disconnected before the response was read",
)


def test_a_leader_that_several_brokers_lost_is_to_be_looked_at(telling: Telling) -> None:
    parts = [f"## Broker {node}\n```\n{dated(*LOST)}```\n" for node in (1, 2)]
    one, two = headline(telling(parts[0])), headline(telling("".join(parts)))
    assert "That passes while" in one[1]
    assert "2 brokers got no records from broker 0" in two[1]
    assert "if it runs and its own log is silent, it hangs" in two[2]
    # It passed: a role behind it is of another leader, or of this one again.
    led = dated(
        *["INFO x (kafka)"] * 5,
        "INFO [Partition x-0 broker=1] x-0 starts at Leader Epoch 3 from offset 9. Previous Leader Epoch was: 2 (kafka)",
    )
    assert not any("hangs" in line for line in headline(telling("".join(parts) + led)))
    # Whose log is then the only one.
    lines = headline(telling("".join(parts) + DESCRIBED.format(0, "0,1,2", "0")))
    assert any("delete nothing on broker 0" in line for line in lines)
    assert not any("see that brokers 1 and 2 run" in line for line in lines)


def test_a_broker_that_vanished_is_told_with_what_the_controller_says_of_it(telling: Telling) -> None:
    left = "INFO [Controller 3]: Broker failure callback for 1 (kafka.controller)"
    listed = "INFO [Controller 3]: Removed ArrayBuffer({}) from list of shutting down brokers. (kafka.controller)"
    led = "INFO [Partition state machine on Controller 3]: Invoking state change to OfflinePartition for partitions  (k)"
    came = (
        "INFO [BrokerChangeListener on Controller 3]: Newly added brokers: 1, deleted brokers: , all live brokers: 0,1 (k)"
    )

    def at(number: int, *lines: str) -> str:
        return "".join(f"[2026-01-01 00:00:{number:02},000] {line}\n" for line in lines)

    lines = headline(telling(at(0, left, listed.format(""), led) + at(55, came)))
    assert lines[1].endswith("broker 1 left without a controlled shutdown, and led no partition; it was back after 55 s.")
    assert "look into the log of broker 1" in lines[2]
    assert not any(map(happened, telling(at(0, left, listed.format("1"))).entries))


def test_partitions_that_a_new_controller_finds_offline_are_told(telling: Telling) -> None:
    line = (
        "DEBUG [PartitionStateMachine controllerId=100] Started partition state machine with initial state -> Map("
        "x-49 -> OfflinePartition, y-0 -> OnlinePartition, z-0 -> OfflinePartition, w-0 -> Off"
    )
    assert [entry.partition for entry in telling(dated(line)).entries] == ["x-49", "z-0"]


def test_prose_with_a_comma_is_no_table(telling: Telling) -> None:
    text = (
        "As long as the leader is not available, the topic stays.\n\nWith logging, you should see the following:\n\n"
        "INFO [Controller id=1] Starting topic deletion for topics x (kafka.controller.KafkaController)\n"
    )
    assert only(telling(text), "topic_deleted")["topic"] == "x"


def test_a_line_of_the_replica_state_machine_is_kafkas_in_any_layout() -> None:
    line = (
        "2016-08-02 05:38:13 INFO  ReplicaStateMachine:68 - [Replica state machine on controller 0]: Invoking state change "
        "to OnlineReplica for replicas [Topic=x,Partition=25,Replica=0]\n"
    )
    assert of_text("a.txt", line).kind == CONTROLLER_LOG


def test_a_leader_that_cannot_read_its_own_log_is_told_with_the_offset(telling: Telling) -> None:
    failed = (
        "ERROR [ReplicaManager broker=2] Error processing fetch with max size 1048576 from consumer on partition {}: "
        "{}(fetchOffset=10380908, logStartOffset=-1, maxBytes=1048576) (kafka.server.ReplicaManager)"
    )
    ended = (
        "org.apache.kafka.common.KafkaException: java.io.EOFException: Failed to read `log header` from file channel `x`. "
        "Expected to read 17 bytes, but reached end of file after reading 0 bytes. Started read from position 95236164."
    )
    damaged = "org.apache.kafka.common.errors.CorruptRecordException: Found record size -1554710528 smaller than minimum"
    for name, says in (("x-0", "x-0"), ("<TOPIC>-0", "TOPIC-0"), ("", None)):
        story = telling(dated(failed.format(name, "PartitionData"), ended))
        read = only(story, "read_failed")
        assert (read["partition"], read["node"], read["offset"]) == (says, 2, 10380908)
        assert any("KAFKA-7282" in line for line in headline(story))
    lines = headline(telling(dated(failed.format("x-0", ""), damaged)))
    assert any("a record at or behind it is damaged here" in line for line in lines)


def test_a_quota_that_is_full_as_a_log_is_recovered_is_told(telling: Telling) -> None:
    text = dated("WARN Disk quota exceeded (kafka.utils.CoreUtils$)", "java.io.IOException: Disk quota exceeded")
    story = telling(f"{text}\tat kafka.log.LogSegment.recover(LogSegment.scala:380)\n")
    assert only(story, "request_failed")["task"] == "of recovering a log as it starts"
    assert any("make room" in line for line in headline(story))


def test_segments_that_were_deleted_are_told_once_each(telling: Telling) -> None:
    old = ("INFO Scheduling log segment 0 for log x-0 for deletion. (kafka.log.Log)",)
    old += tuple(f"INFO Deleting segment {base} from log x-0. (kafka.log.Log)" for base in (0, 18, 9))
    assert only(telling(dated(*old)), "segments_deleted")["segments"] == [0, 9, 18]
    assert any("the segments that begin at 0, 9, 18" in line for line in headline(telling(dated(*old))))
    new = "INFO [Log partition=x-0, dir=/d] Deleting segment 7 (kafka.log.Log)"
    assert only(telling(dated(new)), "segments_deleted")["segments"] == [7]


def test_a_broker_that_waits_for_the_controllers_node_is_to_be_restarted(telling: Telling) -> None:
    data = '{{ "brokerid":{}, "timestamp":"1377587945206", "version":1 }}'
    conflict = f"INFO conflict in /controller data: {data.format(3)} stored data: {data.format(2)} (kafka.utils.ZkUtils$)"
    waits = (
        f"INFO I wrote this conflicted ephemeral node [{data.format(3)}] at /controller a while back (kafka.utils.ZkUtils$)"
    )
    assert not any(map(happened, telling(dated(conflict)).entries))
    story = telling(dated(conflict, waits))
    assert [bug.bug for bug in story.bugs] == ["KAFKA-1029"]
    assert any("broker 3 tried to become the controller, which broker 2 is" in line for line in headline(story))


def test_a_leader_line_without_brackets_around_the_isr_is_read(telling: Telling) -> None:
    line = "INFO [Broker id=0] Leader x-1 starts at leader epoch 1 from offset 0 with high watermark 0 ISR {} adding (k)"
    for isr in ("0,1", "[0,1]", "[0, 1]"):
        assert only(telling(dated(line.format(isr))), "leader")["isr"] == [0, 1]
    # Trimmed: the last id may lack digits.
    assert telling(dated(line.format("[0,1"))).entries == []


def test_a_session_that_a_long_collection_cost_is_the_brokers(telling: Telling) -> None:
    expired = "WARN Unable to reconnect to ZooKeeper service, session 0x167772767ad92fd has expired (org.apache.zookeeper.C)"
    client = "INFO Initiating client connection, connectString=z:2181 sessionTimeout=6000 watcher=w (org.apache.zookeeper.Z)"
    epoch = (
        "INFO Updated PartitionLeaderEpoch. New: {epoch:78, offset:1070147099}, Current: {epoch:77, offset1041132585} for "
        "Partition: x-11. Cache now contains 1 entries. (kafka.server.epoch.LeaderEpochFileCache)"
    )
    collection = (
        "2026-01-01T00:00:{}.422+0000: 2.560: [Full GC (Allocation Failure)  8071M->4285M(8192M), 10.3987109 secs]\n"
    )
    assert "a client of ZooKeeper lost" in headline(telling(dated(expired, client)))[1]
    for lines in ((epoch, expired, client), (expired, epoch, client)):
        assert "collection" not in headline(telling(dated(*lines) + collection.replace("00:00:{}", "09:00:00")))[1]
        story = telling(dated(*lines) + collection.format("04"))
        assert only(story, "epoch_began")["offset"] == 1070147099
        said = headline(story)
        assert "a broker lost its session with ZooKeeper; near that a full garbage collection took 10,399 ms" in said[1]
        assert "why its heap is full" in said[2]


def test_records_that_a_consumer_cannot_read_are_to_be_compared(telling: Telling) -> None:
    record = (
        "org.apache.kafka.common.KafkaException: Record for partition x-49 at offset 88 is invalid, cause: Record is corrupt"
    )
    assert any("look at the segment with offset 88 on each replica" in line for line in headline(telling(f"{record}\n")))


def test_a_file_system_that_maps_no_files_is_named(telling: Telling) -> None:
    failed = "ERROR Error while creating log for x-0 in dir /var/lib/kafka/data (kafka.server.LogDirFailureChannel)"
    assert any("can map files" in x for x in headline(telling(dated(failed, "java.io.IOException: Invalid argument"))))


TOPIC_ID = "HhPpDbsLQCqkVYGkSVHmWA"
CHANGED = f"INFO [QuorumController id={{}}] partition change for x-0 with topic ID {TOPIC_ID}: {{}} (org.apache.X)"
REPLACED = (
    "replicas: [1] -> [0], isr: [1] -> [0], leader: 1 -> 0, leaderEpoch: 85 -> 86, partitionEpoch: 85 -> 86",
    "isr: [0] -> [2], leader: 0 -> 2, leaderEpoch: 86 -> 87, partitionEpoch: 86 -> 87",
)
EMPTIED = "replicas: [1, 2] -> [2, 1], isr: [1] -> [], leader: 1 -> -1, leaderEpoch: 85 -> 86, partitionEpoch: 6 -> 7"
ELECTED = (
    "INFO [PartitionStateMachine controllerId=1] After leader election, leader cache for x-0 is updated to "
    "(Leader:{},ISR:2,3,LeaderEpoch:{},ControllerEpoch:1) (kafka.controller.PartitionStateMachine)"
)
MOVED = "DEBUG [ControlledShutdownLeaderSelector]: Partition x-0 : current leader = 3, new leader = 2 (kafka.controller.C)"
GONE = "INFO [Controller 3]: Broker failure callback for {} (kafka.controller)"
ANNOUNCED = "INFO [Controller 3]: Removed ArrayBuffer({}) from list of shutting down brokers. (kafka.controller)"
NEW_FAILED = (
    "ERROR [Controller id=1 epoch=1] Controller 1 epoch 1 failed to change state for partition x-0 from NewPartition to "
    "OnlinePartition (state.change.logger)"
)
TRUNCATED = (
    "INFO [Log partition=x-0, dir=/d] Truncating to offset 50 (kafka.log.Log)",
    "INFO [Log partition=x-0, dir=/d] Scheduling log segment [baseOffset 100, size 10] for deletion. (kafka.log.Log)",
)


@pytest.mark.parametrize(
    ("lines", "expected", "absent"),
    [
        # What one line says of an election is of that one, however many more lines of others come behind.
        ((CHANGED.format(1, REPLACED[0]), CHANGED.format(1, REPLACED[1]), CHANGED.format(3, REPLACED[0])),
         "epoch 86; its replicas went from [1] to [0]", "epoch 87; its"),
        ((ELECTED.format(2, 4), ELECTED.format(3, 5), MOVED, ELECTED.format(2, 6)),
         "cleanly for epoch 6, as broker 3 was to stop", "epoch 5, as"),
        # An empty ISR of KRaft is no sign of unclean elections.
        ((CHANGED.format(1, EMPTIED),), "no leader was left for epoch 86", "unclean election is allowed"),
        # A partition whose first election failed may have failed for any reason.
        ((NEW_FAILED,), "see the error behind that line", "it is new"),
        # What a truncation deletes is no retention.
        (TRUNCATED, "truncated to 50", "retention"),
    ],
)  # fmt: skip
def test_a_line_says_no_more_than_it_does(telling: Telling, lines: tuple[str, ...], expected: str, absent: str) -> None:
    text = "\n".join(headline(telling(dated(*lines)))) + story_text(telling(dated(*lines)))
    assert expected in text
    assert absent not in text


def test_of_two_brokers_that_left_one_after_the_other_only_the_second_had_not_asked(telling: Telling) -> None:
    lines = (GONE.format(1), ANNOUNCED.format(1), GONE.format(2), ANNOUNCED.format(""))
    text = story_text(telling("".join(f"[2026-01-01 00:00:00,00{at}] {line}\n" for at, line in enumerate(lines))))
    assert "broker 2 left without a controlled shutdown" in text
    assert "broker 1 left without" not in text


def test_a_topic_without_a_leader_is_not_told_to_be_in_sync(telling: Telling) -> None:
    row = "\tTopic: x\tPartition: {}\tLeader: {}\tReplicas: 1,2\tIsr: {}\n"
    before = row.format(0, 1, "1,2") + row.format(1, 2, "2")
    text = "\n".join(headline(telling(before + "\n" + row.format(0, "none", "1") + row.format(1, 2, "2,1"))))
    assert "x-0: no leader was left" in text
    assert "all of its replicas in sync" not in text


def test_a_level_of_another_feature_is_no_release(telling: Telling) -> None:
    fault = "ERROR Encountered fatal fault: Unable to apply FeatureLevelRecord record at offset 9 (org.apache.kafka.X)"
    error = "java.lang.RuntimeException: Tried to apply FeatureLevelRecord FeatureLevelRecord(name='group.version', "
    error += "featureLevel=1), but this controller only supports versions 0-0\n"
    lines = headline(telling(dated(fault) + error))
    assert not any("start Kafka" in line for line in lines)


def test_a_start_that_failed_days_ago_is_not_what_stops_now(telling: Telling) -> None:
    failed, stopped = FAILED_START.splitlines(keepends=True)[-3:-1]
    assert "its start had failed" not in story_text(telling(failed + stopped.replace("2024-02-22", "2024-02-24")))

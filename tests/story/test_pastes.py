"""How people paste lines: wrapped by mail, without a date, between words, of several nodes, packed."""

import io
import tarfile
import textwrap
from pathlib import Path

import pytest

from tests.story.conftest import Telling, dated, log, only
from tests.story.test_processes import REGISTERED
from tidegauge.bundle.reading import opened
from tidegauge.bundle.writing import write_bundle
from tidegauge.story.sentences import story_text
from tidegauge.story.story import story_of
from tidegauge.traces.kafka_logs.discovery.identify import CONTROLLER_LOG, of_text

NOT_INCREASING = (
    "kafka.common.InvalidOffsetException: Attempt to append an offset (1506) to position 35728 no larger than the last "
    "offset appended (1603) to /data3/kafka/payments_of_the_day-20/00000000000000001400.index."
)
NOT_ALLOWED = (
    "Exiting because log truncation is not allowed for partition payments_of_the_day-20, current leader 1's latest offset "
    "460 is less than replica 2's latest offset 463 (kafka.server.ReplicaFetcherThread)"
)


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


def test_lines_of_redpanda_are_said_to_be(telling: Telling) -> None:
    line = "INFO  2023-06-14 08:26:43,694 [shard 0] raft - [group_id:6, {kafka/x/1}] vote_stm.cc:279 - became the leader\n"
    assert "There are lines of Redpanda" in story_text(telling(line))


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


def test_an_exception_that_was_broken_behind_a_bracket_goes_on(telling: Telling) -> None:
    story = telling(
        "org.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR Set(11, 14)\n"
        "is insufficient to satisfy the min.isr requirement of 3 for partition x-0\n"
    )
    assert "2 of the 3 replicas of min.insync.replicas in sync, [11, 14]" in only(story, "produce_refused")["error"]


def test_lines_of_automq_are_told_to_be_its_own(telling: Telling) -> None:
    line = "ERROR [ElasticLogManager] Failed to create elastic log for x-1 (kafka.log.streamaspect.ElasticLogManager)"
    assert "There are lines of AutoMQ" in story_text(telling(dated(line)))


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

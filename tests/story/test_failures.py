"""What Kafka says beside the protocol when a disk, a session or a leader fails, in the forms in which people paste it."""

import pytest

from tests.story.conftest import Telling, dated, log, only
from tidegauge.story.sentences import headline, story_text
from tidegauge.story.story import happened

FETCHER = "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0]"
LOADING = "ERROR [KafkaServer id=2] Fatal error during KafkaServer startup. Prepare to shutdown (kafka.server.KafkaServer)"
STORAGE = "org.apache.kafka.common.errors.KafkaStorageException: Error while writing to checkpoint file"
RENAMING = "ERROR Error while renaming dir for x-0 in log dir {} (kafka.server.LogDirFailureChannel)"
LOG = "[Log partition=x-0, dir=/d]"
UNKNOWN = "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not host this topic-partition."
FULL = (
    "ERROR Error while writing to checkpoint file {} (kafka.server.LogDirFailureChannel)\n"
    "java.io.IOException: No space left on device\n\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)\n"
)
CLUSTERS = "HhPpDbsLQCqkVYGkSVHmWA", "l3SdLrlLQkGDoyxnhVQJHQ"
NOT_ITS_CLUSTER = (
    f"kafka.common.InconsistentClusterIdException: The Cluster ID {CLUSTERS[0]} doesn't match stored clusterId "
    f"Some({CLUSTERS[1]}) in meta.properties. The broker is trying to join the wrong cluster."
)


@pytest.mark.parametrize(
    ("file", "directory"),
    [
        ("/data/1/x-0/leader-epoch-checkpoint", "/data/1"),
        ("/data/1/replication-offset-checkpoint", "/data/1"),
        ("C:\\data\\1\\x-0\\leader-epoch-checkpoint", "C:\\data\\1"),
    ],
)
def test_a_directory_that_is_full_failed_because_of_it_and_what_follows_is_the_same_entry(
    telling: Telling, file: str, directory: str
) -> None:
    stopping = (
        f"[2026-01-01 00:00:01,000] WARN [ReplicaManager broker=1] Stopping serving replicas in dir {directory} (kafka)\n"
    )
    story = telling("[2026-01-01 00:00:00,000] " + FULL.format(file) + stopping)
    failed = only(story, "directory_failed")
    assert (failed["directory"], failed["node"]) == (directory, 1)
    assert failed["error"] == "writing to checkpoint file: java.io.IOException: No space left on device"
    assert any("make room below" in line for line in headline(story))
    assert [one["partition"] for one in story.as_json()["do"]] == [None]


def test_a_directory_that_failed_for_no_known_reason_names_the_line_that_has_it(telling: Telling) -> None:
    story = telling(log("[ReplicaManager broker=1] Stopping serving replicas in dir /data/1 (kafka.server.ReplicaManager)"))
    assert any("look for the first line `Error while ..`" in line for line in headline(story))


def test_a_topic_that_is_deleted_on_windows_is_a_known_bug(telling: Telling) -> None:
    error = "java.nio.file.AccessDeniedException: C:\\data\\x-0 -> C:\\data\\x-0.4485e9949a8b4981bd351f83f52d59fd-delete"
    story = telling(dated(RENAMING.format("C:\\data"), error))
    assert [bug.bug for bug in story.bugs] == ["KAFKA-1194"]
    linux = telling(dated(RENAMING.format("/data"), error.replace("C:\\data\\", "/data/")))
    assert linux.bugs == []


def test_nothing_but_a_deleted_topic_is_said_to_be_removed_where_retention_failed_on_windows(telling: Telling) -> None:
    deleting = "ERROR Error while deleting segments for x-0 in dir C:\\data (kafka.server.LogDirFailureChannel)"
    error = (
        "java.nio.file.FileSystemException: C:\\data\\x-0\\0.timeindex -> C:\\data\\x-0\\0.timeindex.deleted: The process "
        "cannot access the file because it is being used by another process"
    )
    (bug,) = telling(dated(deleting, error)).bugs
    assert bug.bug == "KAFKA-1194"
    assert bug.do.endswith(
        "remove the folder of a topic that was to be deleted while the broker is stopped, and nothing else"
    )


def test_the_last_cause_of_an_exception_is_told_wherever_its_trace_ends(telling: Telling) -> None:
    trace = [f"\tat kafka.log.Log.load(Log.scala:{number})" for number in range(40)]
    lines = [
        f"[2026-01-01 00:00:00,000] {LOADING}",
        f"{STORAGE} /d/x-0/leader-epoch-checkpoint",
        *trace,
        "Caused by: java.io.IOException: No space left on device",
    ]
    story = telling("\n".join(lines))
    assert only(story, "process_failed")["cause"].endswith("; caused by java.io.IOException: No space left on device")
    assert only(story, "directory_failed")["error"].endswith("No space left on device")
    # The exception of a line that is not read is no cause of another.
    other = telling("\n".join([*lines[:-1], "java.io.IOException: Broken pipe", "Caused by: java.io.IOException: Reset"]))
    assert "caused by" not in only(other, "process_failed")["cause"]


@pytest.mark.parametrize("before", ["", "kafka-1  | ", "2026-01-01 03:00:00 "])
def test_a_broker_that_was_given_the_disk_of_another_cluster_is_told_with_both(telling: Telling, before: str) -> None:
    started = (
        f"{before}[2026-01-01 00:00:00,000] ERROR Fatal error during KafkaServer startup. Prepare to shutdown (kafka)\n"
    )
    story = telling(f"{started}{before}{NOT_ITS_CLUSTER}\n")
    failed = only(story, "process_failed")
    assert failed["time"].endswith("2026-01-01 00:00:00,000")
    assert failed["cause"] == f"its log directories are of the cluster {CLUSTERS[1]}, and it was to join {CLUSTERS[0]}"
    assert any("delete nothing before" in line for line in headline(story))


def test_a_cluster_id_that_is_pasted_alone_is_told(telling: Telling) -> None:
    assert CLUSTERS[1] in only(telling(f"`{NOT_ITS_CLUSTER}`\n"), "process_failed")["error"]
    raft = f"Invalid cluster.id in: /d/meta.properties. Expected {CLUSTERS[0]}, but read {CLUSTERS[1]}"
    assert CLUSTERS[1] in only(telling(f"java.lang.RuntimeException: {raft}\n"), "process_failed")["error"]


def test_index_files_that_are_made_anew_are_part_of_an_unclean_start_and_no_loss(telling: Telling) -> None:
    story = telling(
        log(
            f"{LOG} Found a corrupted index file corresponding to log file /d/x-0/0.log due to Corrupt index",
            f"{LOG} Recovering unflushed segment 0 (kafka.log.Log)",
            f"{LOG} Completed load of log with 1 segments, log start offset 0 and log end offset 9 in 3 ms",
        )
    )
    assert (only(story, "start")["clean"], only(story, "start")["indexes_rebuilt"]) == (False, True)
    assert any(
        "made index files anew, by which nothing is lost. No line says that records were cut" in one
        for one in headline(story)
    )


def test_a_controller_that_finds_no_leader_tells_it_once_with_who_has_everything(telling: Telling) -> None:
    unanswered = (
        "Controller 1 epoch 3 initiated state change for partition [x,0] from OfflinePartition to OnlinePartition failed"
    )
    alive = (
        "kafka.common.NoReplicaOnlineException: No replica in ISR for partition [x,0] is alive. Live brokers are: [Set(1)], "
    )
    story = telling(dated(*[f"ERROR {unanswered}", f"{alive}ISR brokers are: [2,3]"] * 3))
    elected = only(story, "elected")
    assert (elected["leader"], elected["isr"], elected["partition"]) == (-1, [2, 3], "x-0")
    assert any("start brokers 2 and 3 again" in line for line in headline(story))
    later = telling(
        log("Controller 1 epoch 3 failed to change state for partition x-0 from OfflinePartition to OnlinePartition")
    )
    assert any("kafka-topics --describe --topic x" in line for line in headline(later))


def test_a_preferred_leader_that_cannot_be_elected_leaves_the_leader_that_is(telling: Telling) -> None:
    failed = "Controller 1 epoch 3 failed to change state for partition x-0 from OnlinePartition to OnlinePartition"
    assert telling(log(failed)).entries == []


def test_a_change_record_that_leaves_the_isr_as_it_is_has_the_isr_of_before(telling: Telling) -> None:
    change = (
        "[QuorumController id=9] handleBrokerFenced: changing partition(s): x-0 : PartitionChangeRecord(partitionId=0, "
        "isr={}, leader={}, leaderRecoveryState=-1)"
    )
    story = telling(
        log(
            change.format("[1]", 1),
            "[QuorumController id=9] Fencing broker 1 at epoch 11 because its session has timed out. (kafka)",
            change.format("null", -1),
        )
    )
    assert [entry.fields["isr"] for entry in story.entries if entry.kind == "elected"] == [[1], [1]]
    assert only(story, "broker_left")["broker"] == 1
    assert any("start broker 1 again" in line for line in headline(story))


def test_what_a_leader_answers_for_a_moment_is_ordinary_and_is_not_where_it_goes_on(telling: Telling) -> None:
    once = telling(
        dated(f"ERROR {FETCHER} Error for partition x-0 at offset 7 (kafka.server.ReplicaFetcherThread)", UNKNOWN)
    )
    refused = only(once, "fetch_refused")
    assert (refused["node"], refused["leader"], refused["error"]) == (1, 2, UNKNOWN)
    assert "That passes while" in headline(once)[1]
    assert "broker 1 got no records from broker 2" in headline(once)[1]
    often = telling(dated(*[f"ERROR {FETCHER} Error for partition x-0 at offset 7 (kafka)", UNKNOWN] * 5))
    assert [happened(entry) for entry in often.entries] == [True]


def test_nobody_fetches_from_himself(telling: Telling) -> None:
    error = (
        f"[ReplicaFetcherThread-0-2], Error for partition [x,0] to broker 2:{UNKNOWN} (kafka.server.ReplicaFetcherThread)"
    )
    refused = only(
        telling(log("[Controller 2]: Broker 2 is ready to serve as the new controller with epoch 7", error)), "fetch_refused"
    )
    assert (refused["node"], refused["leader"]) == (None, 2)


def test_records_that_a_leader_did_not_take_are_one_entry_for_one_error(telling: Telling) -> None:
    append = (
        "ERROR [ReplicaManager broker=2] Error processing append operation on partition x-0 (kafka.server.ReplicaManager)"
    )
    error = "org.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR Set({}) is insufficient"
    story = telling(dated(append, error.format(1), append, error.format(2), append))
    refused = only(story, "produce_refused")
    assert (refused["node"], refused["times"], refused["error"]) == (2, 3, error.format(1))
    assert any("smaller than min.insync.replicas" in line for line in headline(story))


def test_an_exception_in_the_line_of_its_statement_is_read_as_if_it_were_below(telling: Telling) -> None:
    text = (
        f"ERROR {FETCHER} Unexpected error occurred while processing data for partition x-0 at offset 9 (kafka.server."
        "ReplicaFetcherThread)java.lang.IllegalStateException: Offset mismatch for partition x-0: fetched offset = 9, "
        "log end offset = 8. at kafka.server.ReplicaFetcherThread.processPartitionData(Replica.scala:194) at s.Set"
    )
    story = telling(dated(text))
    assert only(story, "fetcher_failed")["error"].endswith("log end offset = 8.")
    assert [bug.bug for bug in story.bugs] == ["KAFKA-13266"]


def test_a_leader_that_cannot_be_moved_and_a_session_that_is_lost_are_told(telling: Telling) -> None:
    story = telling(
        log(
            "[SessionExpirationListener on 4], ZK expired; shut down all controller components and try to re-elect (kafka)",
            "kafka.common.StateChangeFailedException: No other replicas in ISR 4 for [x,0] besides shutting down brokers 4",
        )
    )
    assert only(story, "session_expired")["node"] == 4
    assert only(story, "no_other_leader")["isr"] == [4]
    assert all(map(happened, story.entries))


def test_a_high_watermark_that_falls_where_nothing_is_cut_leaves_open_what_only_the_leader_tells(telling: Telling) -> None:
    lines = (
        f"{LOG} Truncating to 617 has no effect as the largest offset in the log is 616 (kafka.log.Log)",
        f"{LOG} Non-monotonic update of high watermark from (offset=617 segment=[0:1]) to (offset=614 segment=[-1:-1])",
    )
    node = (
        "[Broker id=1] Follower x-0 starts at leader epoch 8 from offset 617 with high watermark 617. Previous leader epoch"
    )
    assert headline(telling(log(node, *lines)))[0].startswith("Whether data was lost, these lines do not tell")
    leads = "[Broker id=2] Leader x-0 starts at leader epoch 8 from offset 617 with high watermark 614 ISR [1,2] adding"
    both = telling({"a/server.log": log(node, *lines), "b/server.log": log(leads)})
    assert headline(both)[0] == "No loss of data is told by these logs."


def test_a_partition_that_the_description_of_a_topic_shows_without_a_leader_is_told(telling: Telling) -> None:
    story = telling(
        "Topic: x\tTopicId: HhPpDbsLQCqkVYGkSVHmWA\tPartitionCount: 3\tReplicationFactor: 2\tConfigs: \n"
        "\tTopic: x\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1\n"
        "\tTopic: x\tPartition: 1\tLeader: none\tReplicas: 3,2\tIsr: 3\tElr: \tLastKnownElr: \n"
        "\tTopic: x\tTopicId: HhPpDbsLQCqkVYGkSVHmWA\tPartition: 2\tLeader: -1\tReplicas: 4,2\tIsr: \n"
    )
    assert [(entry.partition, entry.fields["leader"], entry.fields["isr"]) for entry in story.entries] == [
        ("x-0", 1, [1]),
        ("x-1", -1, [3]),
        ("x-2", -1, []),
    ]
    assert any("of the replicas [1, 2]: 2 is not in sync" in line for line in headline(story))
    assert any("start broker 3 again" in line for line in headline(story))


def test_a_description_whose_leader_is_not_in_its_isr_says_so(telling: Telling) -> None:
    lines = headline(telling("Topic: x\tPartition: 0\tLeader: 3\tReplicas: 1,3\tIsr: 1\n"))
    assert any("3 is not in sync; the leader is not in the ISR" in line for line in lines)


def test_a_step_does_not_ask_for_a_line_that_is_there(telling: Telling) -> None:
    described = "Topic: x\tPartition: 0\tLeader: 1\tReplicas: 1,3\tIsr: 1\n"
    shrunk = log("[Partition x-0 broker=1] Shrinking ISR from 1,3 to 1. Leader: (highWatermark: 5, endOffset: 5)")
    assert any("`Shrinking ISR` says since when" in line for line in headline(telling(described)))
    assert not any("`Shrinking ISR` says since when" in line for line in headline(telling(described + shrunk)))


def test_a_recovering_partition_that_is_elected_again_is_not_called_clean(telling: Telling) -> None:
    change = "[QuorumController id=9] UNCLEAN partition change for x-0: isr: [2] -> [3], leader: 2 -> 3, leaderEpoch: 8 -> 9"
    assert only(telling(log(f"{change}, partitionEpoch: 20 -> 21")), "elected")["clean"] is None


def test_what_is_written_in_chinese_around_a_line_is_text(telling: Telling) -> None:
    prose = "其他节点的日志也出奇的类似,首先被踢出了集群,然后更新的时候报错。" * 3
    story = telling(f"{prose}\n{prose}:Shrinking ISR for partition [x,1] from 3,1,2 to 3,2\n{prose}\n")
    assert only(story, "isr_changed")["to"] == [3, 2]


def test_digits_of_a_path_are_no_time(telling: Telling) -> None:
    failed = "Shutdown broker because all log dirs in /k5845553986696747582 have failed"
    text = f"17:27:02.820 [x] ERROR kafka.log.LogManager - {failed}"
    assert only(telling(f"{text}\n"), "process_failed")["time"] == "17:27:02.820"


def test_a_frame_that_a_terminal_draws_is_no_part_of_an_exception(telling: Telling) -> None:
    exception = "java.lang.IllegalStateException: it is still starting up"
    text = f"[2026-01-01 00:00:00,000] {LOADING}    │\n│ {exception}      │\n"
    assert only(telling(text), "process_failed")["cause"] == exception


def test_a_broker_that_the_controller_does_not_know_and_a_controller_that_is_not_the_active_one(telling: Telling) -> None:
    heartbeat = "[BrokerLifecycleManager id=2] Broker 2 sent a heartbeat request but received error STALE_BROKER_EPOCH."
    refused = only(telling(dated(f"WARN {heartbeat}", f"WARN {heartbeat}")), "not_registered")
    assert (refused["node"], refused["error"], refused["times"]) == (2, "STALE_BROKER_EPOCH", 2)
    failed = "INFO [QuorumController id=1] processBrokerHeartbeat: event failed with StaleBrokerEpochException in 45 us."
    unknown = only(
        telling(dated(f"{failed} Exception message: No broker registration found for broker id 3")), "not_registered"
    )
    assert unknown["node"] == 3
    assert only(telling(dated(failed)), "not_registered")["node"] is None
    unable = "INFO [BrokerLifecycleManager id=4] Unable to register broker 4 because the controller returned error {}"
    assert only(telling(dated(unable.format("DUPLICATE_BROKER_REGISTRATION"))), "not_registered")["node"] == 4
    passing = telling(dated(unable.format("NOT_CONTROLLER")))
    assert only(passing, "not_controller")["active"] is None
    assert not any(happened(entry) for entry in passing.entries)
    exception = "org.apache.kafka.common.errors.NotControllerException: {}\n"
    asked = telling(exception.format("The active controller appears to be node 3."))
    assert "node 3 is" in story_text(asked)
    assert "none is" in story_text(telling(exception.format("No controller appears to be active.")))


def test_a_disk_that_was_full_as_a_file_was_closed_is_told_with_or_without_its_exception(telling: Telling) -> None:
    full = "WARN No space left on device (kafka.utils.CoreUtils$)"
    assert only(telling(dated(full)), "request_failed")["error"] == "No space left on device"
    with_cause = telling(dated(full, "java.io.IOException: No space left on device"))
    assert only(with_cause, "request_failed")["error"] == "java.io.IOException: No space left on device"
    assert telling(dated("WARN Stream closed (kafka.utils.CoreUtils$)")).entries == []


def test_a_directory_ends_where_the_json_around_its_line_does(telling: Telling) -> None:
    line = '{"level": "WARN", "message": "Stopping serving logs in dir /data/1", "loggerName": "kafka.log.LogManager"}\n'
    assert only(telling(line), "directory_failed")["directory"] == "/data/1"


def test_a_directory_that_is_gone_while_its_broker_runs(telling: Telling) -> None:
    file = "/tmp/d/replication-offset-checkpoint"
    written = f"ERROR Error while writing to checkpoint file {file} (kafka.server.LogDirFailureChannel)"
    gone = f"java.io.FileNotFoundException: {file}.tmp (No such file or directory)"
    assert "deleted or unmounted while the broker ran" in "\n".join(headline(telling(dated(written, gone))))


def test_a_heartbeat_without_an_answer_names_the_controller_that_gave_none(telling: Telling) -> None:
    lost = (
        "INFO [NodeToControllerChannelManager id=1 name=heartbeat] Cancelled in-flight {} request with correlation id 7 due "
        "to node 8 being disconnected (elapsed time since creation: 4510ms, elapsed time since send: 4505ms)"
    )
    unreachable = only(telling(dated(lost.format("BROKER_HEARTBEAT"))), "unreachable")
    assert (unreachable["node"], unreachable["peer"]) == (1, 8)
    assert telling(dated(lost.format("BROKER_REGISTRATION"))).entries == []


def test_a_session_that_a_client_of_zookeeper_lost_is_the_brokers_if_the_broker_says_so_next(telling: Telling) -> None:
    client = "WARN Unable to reconnect to ZooKeeper service, session 0x17 has expired (org.apache.zookeeper.ClientCnxn)"
    own = "INFO [SessionExpirationListener on 1], ZK expired; shut down all controller components and try to re-elect"
    in_a_folder = {"broker-1/server.log": dated(client, own)}
    assert only(telling(in_a_folder), "session_expired")["node"] == 1
    assert "broker 1 lost its session" in story_text(telling(in_a_folder))


OUT_OF_MEMORY = "java.lang.OutOfMemoryError: Java heap space"


@pytest.mark.parametrize(
    ("thread", "error", "step"),
    [
        ("[ReplicaFetcherThread-0-2],", "kafka.common.KafkaException: x", "nothing that this thread fetched is replicated"),
        ("[kafka-log-cleaner-thread-0]:", "java.lang.IllegalStateException: x", "until then no topic is compacted"),
        ("[ExpirationReaper-1-Fetch]:", OUT_OF_MEMORY, "more heap"),
    ],
)
def test_a_thread_that_died_says_what_is_not_done_any_more(telling: Telling, thread: str, error: str, step: str) -> None:
    story = telling(dated(f"ERROR {thread} Error due to  (kafka.server.X)", error))
    died = only(story, "thread_died")
    assert (died["thread"], died["error"]) == (thread[1:-2], error)
    assert any(step in line for line in headline(story))
    assert telling(dated("ERROR [ConsumerFetcherThread-g-0-2], Error due to  (kafka)", error)).entries == []


def test_a_file_that_no_broker_made_stops_the_loading_of_the_logs(telling: Telling) -> None:
    error = 'java.lang.NumberFormatException: For input string: "hs_err_pid32300"'
    loading = f"ERROR There was an error in one of the threads during logs loading: {error} (kafka.log.LogManager)"
    recovering = "INFO [Log partition=x-0, dir=/d] Recovering unflushed segment 0 (kafka.log.Log)"
    story = telling(dated(loading, recovering, LOADING, error))
    failed = only(story, "process_failed")
    assert (failed["node"], failed["error"]) == (2, f"loading its logs: {error}")
    assert any("find the file, .log or .index" in line for line in headline(story))
    nameless = loading.replace(error, "java.lang.StringIndexOutOfBoundsException: String index out of range: -1")
    assert any("not named as a partition is" in line for line in headline(telling(dated(nameless))))


def test_a_task_that_found_no_file_names_it_and_one_of_a_failed_directory_does_not(telling: Telling) -> None:
    task = "ERROR Uncaught exception in scheduled task 'kafka-log-retention' (kafka.utils.KafkaScheduler)"
    error = "java.io.FileNotFoundException: /tmp/x-0/00000000000000000000.index (No such file or directory)"
    story = telling(dated(task, error))
    assert only(story, "request_failed")["task"] == "kafka-log-retention"
    assert any("deleted or unmounted while the broker ran" in line for line in headline(story))
    failed = "ERROR Error while deleting segments for x-0 in dir /tmp (kafka.server.LogDirFailureChannel)"
    assert {entry.kind for entry in telling(dated(failed, error, task, error)).entries} == {"directory_failed"}


def test_the_error_of_a_request_is_read_behind_the_request_itself(telling: Telling) -> None:
    text = f"ERROR [KafkaApi-1] Error when handling request ; (kafka.server.KafkaApis) {{replica_id=-1}} {OUT_OF_MEMORY}"
    for line in (f"```{text}```It says that.\n", dated(text)):
        assert only(telling(line), "request_failed")["error"] == OUT_OF_MEMORY


def test_a_number_in_an_exception_is_no_date(telling: Telling) -> None:
    error = (
        "org.apache.kafka.common.errors.OffsetOutOfRangeException: Cannot go to 1646810899013 of x-0, larger than 1646810"
    )
    failed = only(
        telling(dated(f"ERROR {FETCHER} Error processing data for partition x-0 offset 7 (kafka.server.X)", error)),
        "fetcher_failed",
    )
    assert failed["error"] == error


def test_a_replica_that_cannot_begin_anew_and_one_that_its_leader_does_not_count_are_told(telling: Telling) -> None:
    error = "java.lang.IllegalStateException: Compaction for partition [x,0] cannot be aborted and paused: LogCleaningPaused"
    getting = "ERROR [ReplicaFetcherThread-1-2], Error getting offset for partition [x,0] to broker 2 (kafka.server.X)"
    refused = telling(dated(getting, error))
    assert (only(refused, "fetch_refused")["leader"], only(refused, "fetch_refused")["error"]) == (2, error)
    assert all(map(happened, refused.entries))
    counted_out = (
        "WARN [ReplicaManager broker=2] Leader 2 failed to record follower 6's position 88 since the replica is not "
        "recognized to be one of the assigned replicas 3,4,2 for partition x-0. Empty records will be returned."
    )
    once, often = telling(dated(counted_out)), telling(dated(*[counted_out] * 5))
    assert (only(once, "not_assigned")["replica"], only(once, "not_assigned")["replicas"]) == (6, [3, 4, 2])
    assert [any(map(happened, story.entries)) for story in (once, often)] == [False, True]


def test_records_that_a_follower_could_not_read_are_asked_for_again(telling: Telling) -> None:
    story = telling(dated(f"ERROR {FETCHER} Found invalid messages during fetch for partition x-0 offset 88 (kafka)"))
    assert any("a follower asks its leader again" in line for line in headline(story))


def test_an_error_that_no_line_says_is_said_to_be_in_the_line_behind(telling: Telling) -> None:
    story = telling(dated(f"ERROR {FETCHER} Error for partition x-0 at offset 7 (kafka.server.ReplicaFetcherThread)"))
    assert any("an error, and the line behind it says which" in line for line in headline(story))


def test_a_log_that_is_compacted_no_more_says_why(telling: Telling) -> None:
    warning = "WARN [kafka-log-cleaner-thread-0]: Unexpected exception thrown when cleaning log Log(dir=/d/x-0, topic=x). "
    error = "org.apache.kafka.common.errors.CorruptRecordException: Record size 0 is less than the minimum record overhead"
    story = telling(dated(f"{warning}Marking its partition (x-0) as uncleanable (kafka.log.LogCleaner)", error))
    assert only(story, "uncleanable")["error"] == error
    assert any("kafka-dump-log" in line for line in headline(story))


UNKNOWN_ERROR = (
    "ERROR [KafkaApi-1] Number of alive brokers '0' does not meet the required replication factor '1' for the offsets topic "
    "(kafka.server.KafkaApis)"
)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (
            ["INFO [KafkaServer id=1] started (kafka.server.KafkaServer)"],
            "Not known here: 1 error of a node; the first: ERROR [KafkaApi-1] ",
        ),
        (
            ["ERROR [Broker id=1] Alas (state.change.logger)"],
            "Not known here: 2 errors of a node; the first: ERROR [Broker",
        ),
        ([], "Not known here: 1 error of a node"),
        (
            ["ERROR [KafkaApi-1] alas (kafka.server.KafkaApis)", "kafka.admin.OfTooFew: replication factor: 1"],
            "the first: ERROR [KafkaApi-1] alas",
        ),
        (
            ["ERROR [KafkaApi-1] alas (kafka.server.KafkaApis)", "kafka.admin.OfTooFewException: replication factor: 1"],
            "the first: kafka.admin.OfTooFewException: replication factor: 1, behind: ERROR [KafkaApi-1] alas",
        ),
    ],
)
def test_an_error_that_nothing_is_known_of_is_named(telling: Telling, lines: list[str], says: str) -> None:
    assert any(says in line for line in story_text(telling(dated(*lines, UNKNOWN_ERROR))).splitlines()[:3])


@pytest.mark.parametrize(
    "line",
    [
        "ERROR [Consumer clientId=c, groupId=g] Offset commit failed (org.apache.kafka.clients.consumer.internals.Fetcher)",
        "ERROR checkout failed (com.example.Shop)",
        "INFO an ERROR was seen by kafka.server.KafkaApis",
        "WARN [KafkaApi-1] Number of alive brokers (kafka.server.KafkaApis)",
    ],
)
def test_what_no_node_prints_as_an_error_is_not_named(telling: Telling, line: str) -> None:
    assert "Not known here" not in story_text(telling(dated(line)))


@pytest.mark.parametrize(
    "header", ["", "ERROR [ReplicaManager broker=1] Error processing append operation on partition x-0 (kafka)"]
)
def test_too_few_replicas_in_sync_are_told_by_the_exception_alone(telling: Telling, header: str) -> None:
    exception = (
        "org.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR Set(11, 14) is insufficient "
        "to satisfy the min.isr requirement of 3 for partition x-0"
    )
    story = telling(dated(*filter(None, (header, exception))))
    refused = only(story, "produce_refused")
    assert (refused["partition"], refused["times"]) == ("x-0", 1)
    assert any("bring back the replicas" in line for line in headline(story))


def test_a_fetch_that_lacks_memory_does_not_pass(telling: Telling) -> None:
    fetch = (
        "WARN [ReplicaFetcherThread-2-1], Error in fetch Name: FetchRequest; Version: 0; ReplicaId: 0; RequestInfo: [x,0] "
        "-> PartitionFetchInfo(25,1048576). Possible cause: java.lang.OutOfMemoryError: Direct buffer memory (kafka.server)"
    )
    lines = headline(telling(dated(fetch)))
    assert not any("That passes" in line for line in lines)
    assert any("MaxDirectMemorySize" in line for line in lines)


def test_another_controller_that_writes_to_zookeeper_is_a_known_bug_of_the_migration(telling: Telling) -> None:
    """KRaftMigrationDriver reads /migration again as it becomes the controller: in 3.6.2 and 3.7.0, not up to 3.6.1."""
    failed = (
        "java.lang.RuntimeException: Check op on KRaft Migration ZNode failed. {} zkVersion = 507823. This indicates "
        "that another KRaft controller is making writes to ZooKeeper."
    )
    assert [bug.bug for bug in telling(dated(failed.format("Expected"))).bugs] == ["KAFKA-16171"]
    release = "INFO Kafka version: {} (org.apache.kafka.common.utils.AppInfoParser)"
    assert [bug.bug for bug in telling(dated(release.format("3.5.2"), failed.format("Expected"))).bugs] == ["KAFKA-16171"]
    later = telling(dated(release.format("3.9.1"), failed.format("Sent")))
    assert later.bugs == []
    assert "another zkVersion than 507823" in only(later, "request_failed")["error"]


def test_a_session_that_a_broker_lost_has_a_step_and_that_of_any_client_has_none(telling: Telling) -> None:
    own = "INFO [ZooKeeperClient Kafka server] Session expired. (kafka.zookeeper.ZooKeeperClient)"
    of_any_client = (
        "INFO Unable to reconnect to ZooKeeper service, session 0x2 has expired (org.apache.zookeeper.ClientCnxn)"
    )
    assert any("look for a pause of this broker" in line for line in headline(telling(dated(own))))
    assert not any("  Do:" in line for line in headline(telling(dated(of_any_client))))


def test_an_index_that_refused_an_offset_is_known_without_the_path_that_was_lost(telling: Telling) -> None:
    story = telling(
        "        Fatal error during KafkaServerStartable startup. Prepare to shutdown\n"
        "        kafka.common.InvalidOffsetException: Attempt to append an offset \n(1239742691) to position 35728 no "
        "larger than the last offset appended \n(1239742822) to \n"
        "        at kafka.log.OffsetIndex.append(OffsetIndex.scala:197)\n"
    )
    assert [bug.bug for bug in story.bugs] == ["KAFKA-3919"]

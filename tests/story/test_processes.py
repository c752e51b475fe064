"""What a node tells of itself: starts and stops, disks, sessions, the quorum, the controller; and what to do then."""

import pytest

from tests.story.conftest import Telling, dated, log, only
from tidegauge.story.sentences import headline, story_text
from tidegauge.story.story import happened

REGISTERED = (
    "ERROR Error while creating ephemeral at /brokers/ids/4, node already exists and owner '7205' does not match current "
    "session '7206' (kafka.zk.KafkaZkClient$CheckedEphemeral)"
)
STARTING = "ERROR [KafkaServer id=4] Fatal error during KafkaServer startup. Prepare to shutdown (kafka.server.KafkaServer)"


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


DIRECTORY_FAILED = "ERROR {} (kafka.server.LogDirFailureChannel)"
UNREAD = "java.io.IOException: Could not read file /d/__cluster_metadata-0/00000000000006012624-0000000019.checkpoint"
FAULT = "ERROR Encountered fatal fault: {} (org.apache.kafka.server.fault.X)"


@pytest.mark.parametrize(
    ("failed", "error", "step"),
    [
        (STARTING, OTHER_ID, "broker.id=0"),
        (STARTING, FOREIGN_FOLDER, "move /d/lost+found away"),
        (STARTING, CORRUPT_INDEX, "keep the .log file"),
        (STARTING, "java.nio.file.FileSystemException: /d/meta.properties.tmp: Input/output error", "errors of the disk"),
        (STARTING, OTHER_NODE, "node.id=7"),
        (STARTING, "java.lang.RuntimeException: No readable meta.properties files found.", "is mounted at log.dirs"),
        (STARTING, "kafka.common.KafkaException: Failed to acquire lock on file .lock in /d. A Kafka", "no other process"),
        (
            DIRECTORY_FAILED.format("Error while deleting segments for x-0 in dir /tmp/k"),
            "java.nio.file.NoSuchFileException: /tmp/k/x-0/1.log",
            "not clean",
        ),
        (
            DIRECTORY_FAILED.format("Disk error while locking directory /d"),
            "java.io.IOException: Not supported",
            "a file system that has locks",
        ),
        (
            DIRECTORY_FAILED.format("Error while creating log for x-0 in dir /var/lib/kafka/data"),
            "java.io.IOException: Invalid argument",
            "can map files",
        ),
        # The file may be whole: it is not to be deleted.
        (
            "ERROR [SharedServer id=0] Got exception while starting SharedServer (kafka.server.SharedServer)",
            UNREAD,
            "the right to read that file",
        ),
        # The metadata log is copied, and looked at, before anything is formatted.
        (
            FAULT.format("Error loading metadata log record from offset 99"),
            "java.lang.IllegalStateException: Tried to change broker 3, but the given epoch is old",
            "copy the metadata directory of this node",
        ),
        (
            FAULT.format("Unexpected error in raft IO thread"),
            "java.lang.IllegalArgumentException: Got an unexpected empty key in the record",
            "look at the last batches in it",
        ),
    ],
)
def test_a_failure_names_what_to_do_where_its_error_says_why(telling: Telling, failed: str, error: str, step: str) -> None:
    lines = headline(telling(dated(failed, error)))
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


def test_ids_and_offsets_of_an_error_are_told_though_they_stand_in_its_second_sentence(telling: Telling) -> None:
    fatal = "ERROR Encountered fatal fault: Unable to apply TopicRecord record (org.apache.kafka.server.fault.Handler)"
    error = "java.lang.RuntimeException: Found duplicate TopicRecord for x. Previous ID was {}. {}"
    short = telling(dated(fatal, error.format("HhPpDbsLQCqkVYGkSVHmWA", "This is not expected.")))
    assert any(line.endswith("for x. Previous ID was HhPpDbsLQCqkVYGkSVHmWA.") for line in headline(short))
    long = telling(dated(fatal, error.format(", ".join(map(str, range(100, 300))), "")))
    assert any(line.endswith("for x.") for line in headline(long))


def test_a_start_that_was_cut_short_says_what_to_do(telling: Telling) -> None:
    stopping = "ERROR [KafkaServer id=0] Fatal error during KafkaServer shutdown. (kafka.server.KafkaServer)"
    error = "java.lang.IllegalStateException: Kafka server is still starting up, cannot shut down!"
    assert any("give it more time to start" in line for line in headline(telling(dated(stopping, error))))
    shared = "ERROR [SharedServer id=3] Got exception while starting SharedServer (kafka.server.SharedServer)"
    unread = "java.io.IOException: Could not read file /d/__cluster_metadata-0/00000000000000000009-0000000001.checkpoint"
    failed = only(telling(dated(shared, unread)), "process_failed")
    assert (failed["node"], failed["cause"]) == (3, unread)


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


def test_a_request_that_failed_is_told_where_the_broker_is_at_fault(telling: Telling) -> None:
    failed = "ERROR [KafkaApi-0] Error when handling request {controller_id=0} (kafka.server.KafkaApis)"
    full = telling(dated(failed, "java.io.IOException: Map failed"))
    assert any("raise vm.max_map_count" in line for line in headline(full))
    assert telling(dated(failed, "java.lang.IllegalArgumentException: of a client")).entries == []


def test_a_stop_and_a_migration_that_wait_say_for_whom(telling: Telling) -> None:
    stop = "[Kafka Server 2], Error during controlled shutdown, possibly as it took long: Connection to Node(2, a, 9) failed"
    assert only(telling(log(f"{stop} (kafka.server.KafkaServer)")), "leaders_not_moved")["error"].endswith(
        "(2, a, 9) failed"
    )
    waits = "[KRaftMigrationDriver id=8] No brokers are known to KRaft, waiting for brokers to register. (org)"
    assert any("node 8 waited for brokers to register" in line for line in headline(telling(log(waits, waits))))


def test_a_connect_worker_beside_a_broker_is_no_start_of_the_broker(telling: Telling) -> None:
    signals = "INFO Registered signal handlers for TERM, INT, HUP (org.apache.kafka.common.utils.LoggingSignalHandler)"
    expands = "INFO [Partition x-0 broker=4] Expanding ISR from 4 to 4,5 (kafka.cluster.Partition)"
    worker = "INFO [Worker clientId=c, groupId=g] Started (org.apache.kafka.connect.runtime.Worker)"
    story = telling({"server.log": dated(signals, expands), "connect.log": dated(worker, signals)})
    assert [one.node for one in story.entries if one.kind == "start"].count(4) == 1


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


def test_a_broker_that_the_controller_does_not_name_is_to_be_found_by_its_own_line(telling: Telling) -> None:
    refused = (
        "INFO [QuorumController id=0] processBrokerHeartbeat: event failed with StaleBrokerEpochException in 25 us. "
        "Exception message: Expected broker epoch 38558457, but got broker epoch 2293103 (org.apache.kafka.controller)"
    )
    lines = headline(telling(dated(refused)))
    assert any("find the broker first: its own log has `received error STALE_BROKER_EPOCH`" in line for line in lines)


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


def test_a_controller_with_too_much_to_do_is_told_by_a_line_that_was_cut(telling: Telling) -> None:
    line = "ERROR [QuorumController id=1001] processExpiredBrokerHeartbeat: control"
    lines = headline(telling(dated(line)))
    assert any("node 1001, the active controller, had too much to do" in line for line in lines)


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


def test_a_quota_that_is_full_as_a_log_is_recovered_is_told(telling: Telling) -> None:
    text = dated("WARN Disk quota exceeded (kafka.utils.CoreUtils$)", "java.io.IOException: Disk quota exceeded")
    story = telling(f"{text}\tat kafka.log.LogSegment.recover(LogSegment.scala:380)\n")
    assert only(story, "request_failed")["task"] == "of recovering a log as it starts"
    assert any("make room" in line for line in headline(story))


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


GONE = "INFO [Controller 3]: Broker failure callback for {} (kafka.controller)"
ANNOUNCED = "INFO [Controller 3]: Removed ArrayBuffer({}) from list of shutting down brokers. (kafka.controller)"


def test_of_two_brokers_that_left_one_after_the_other_only_the_second_had_not_asked(telling: Telling) -> None:
    lines = (GONE.format(1), ANNOUNCED.format(1), GONE.format(2), ANNOUNCED.format(""))
    text = story_text(telling("".join(f"[2026-01-01 00:00:00,00{at}] {line}\n" for at, line in enumerate(lines))))
    assert "broker 2 left without a controlled shutdown" in text
    assert "broker 1 left without" not in text


def test_a_level_of_another_feature_is_no_release(telling: Telling) -> None:
    fault = "ERROR Encountered fatal fault: Unable to apply FeatureLevelRecord record at offset 9 (org.apache.kafka.X)"
    error = "java.lang.RuntimeException: Tried to apply FeatureLevelRecord FeatureLevelRecord(name='group.version', "
    error += "featureLevel=1), but this controller only supports versions 0-0\n"
    lines = headline(telling(dated(fault) + error))
    assert not any("start Kafka" in line for line in lines)


def test_a_start_that_failed_days_ago_is_not_what_stops_now(telling: Telling) -> None:
    failed, stopped = FAILED_START.splitlines(keepends=True)[-3:-1]
    assert "its start had failed" not in story_text(telling(failed + stopped.replace("2024-02-22", "2024-02-24")))

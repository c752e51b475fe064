"""What followers, consumers and producers got from a leader: refusals, resets, invalid records."""

import pytest

from tests.story.conftest import Telling, dated, log, only
from tidegauge.story.sentences import headline
from tidegauge.story.story import happened

NOT_LEADER = (
    "WARN [KafkaApi-1] Produce request with correlation id {} from client c on partition [x,0] failed due to Leader not "
    "local for partition [x,0] on broker 1 (kafka.server.KafkaApis)"
)


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


def test_why_a_fetch_was_lost_stands_in_the_line_before_where_its_own_was_cut(telling: Telling) -> None:
    fetcher = "[ReplicaFetcher replicaId=4, leaderId=0, fetcherId=0]"
    sent = f"{fetcher} Error sending fetch request (sessionId=5, epoch=INITIAL) to node 0: java.io.IOException: gone. (x)"
    torn = (
        f"{fetcher} Error in response for fetch request (type=FetchRequest, replicaId=4, maxWait=500, fetchData={{x-0=(off"
    )
    assert only(telling(log(sent, torn)), "fetch_refused")["error"] == "java.io.IOException: gone"
    assert telling(log(sent)).entries == []


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


NOT_ALLOWED_IN_0_8 = (
    "log truncation is not allowed for topic test, Current leader 1's latest offset 0 is less than replica 2's latest "
    "offset 151 (kafka.server.ReplicaFetcherThread)"
)


def test_a_replica_of_0_8_that_may_not_truncate_names_itself_and_no_partition(telling: Telling) -> None:
    failed = only(
        telling(dated(f"FATAL [ReplicaFetcherThread-0-1], Halting because {NOT_ALLOWED_IN_0_8}")), "process_failed"
    )
    assert (failed["node"], failed["partition"]) == (2, None)
    assert failed["error"].endswith("the leader's log ends at 0, this replica's at 151, so the leader lacks 0 to 150")


def test_a_follower_that_is_ahead_has_what_its_leader_lacks(telling: Telling) -> None:
    halted = (
        "FATAL [ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] Exiting because log truncation is not allowed for "
        "partition x-0, current leader's latest offset 2051 is less than replica's latest offset 2391 (kafka.server)"
    )
    first, bug, *_ = headline(telling(dated(halted)))
    assert first.startswith("Whether data was lost, these lines do not tell: x-0: ")
    assert "so the leader lacks 2051 to 2390" in first
    assert "copy the partition's folder" in bug


def test_a_client_of_librdkafka_names_the_broker_that_did_not_lead(telling: Telling) -> None:
    line = "%7|1588299512.086|BROKERUA|rdkafka#p-1| [thrd:kafka-3:9092/2]: x [0]: broker unavailable: produce: Broker: "
    story = telling(f"{line}Not leader for partition\n")
    assert only(story, "not_leader")["node"] == 2
    assert any("asks again" in line for line in headline(story))


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


def test_records_that_a_consumer_cannot_read_are_to_be_compared(telling: Telling) -> None:
    record = (
        "org.apache.kafka.common.KafkaException: Record for partition x-49 at offset 88 is invalid, cause: Record is corrupt"
    )
    assert any("look at the segment with offset 88 on each replica" in line for line in headline(telling(f"{record}\n")))

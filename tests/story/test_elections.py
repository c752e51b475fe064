"""Who leads and follows and is in sync, as brokers, controllers and the tool's descriptions tell it."""

import pytest

from tests.story.conftest import Telling, dated, log, only
from tidegauge.story.sentences import headline, story_text
from tidegauge.story.story import Story, happened

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


def test_a_leader_that_cannot_move_says_whether_the_isr_has_somebody_else(telling: Telling) -> None:
    error = "No other replicas in ISR {} for [x,9] besides shutting down brokers 0"
    choosing = "ERROR Controller 0 epoch 3 encountered error while electing leader for partition [x,9] due to: {}. (state)"
    stopped = telling(
        dated(choosing.format(error.format("0,2")), f"kafka.common.StateChangeFailedException: {error.format('0,2')}")
    )
    assert only(stopped, "no_other_leader")["times"] == 1
    assert any("no other replica of the ISR [0, 2] is alive" in line for line in headline(stopped))
    assert any("no other replica is in sync, ISR [0]" in line for line in headline(telling(error.format("0"))))


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


def test_partitions_without_a_leader_are_named_together(telling: Telling) -> None:
    describe = "".join(f"\tTopic: x\tPartition: {at}\tLeader: none\tReplicas: 5,1,2\tIsr: 5\n" for at in range(9))
    lines = headline(telling(describe))
    assert lines[1].startswith("x-0, x-1, x-2, x-3, x-4, x-5 and 3 more: no leader was left")
    assert sum("start broker 5 again" in line for line in lines) == 1


def test_a_change_of_the_isr_that_zookeeper_did_not_take_is_refused(telling: Telling) -> None:
    shrinking = "INFO [Partition t-3 broker=1] Shrinking ISR from 1,3,4,2 to 1,4,2 (kafka.cluster.Partition)"
    task = "ERROR Uncaught exception in scheduled task 'isr-expiration' (kafka.utils.KafkaScheduler)"
    error = "org.apache.zookeeper.KeeperException$SessionExpiredException: KeeperErrorCode = Session expired for "
    story = telling(dated(shrinking, task) + f"{error}/brokers/topics/t/partitions/3/state\n")
    assert only(story, "isr_changed")["accepted"] is False
    other = telling(dated(shrinking, task) + f"{error}/brokers/topics/t/partitions/4/state\n")
    assert only(other, "isr_changed")["accepted"] is None


def test_a_replica_that_left_the_isr_is_told_with_where_its_log_ended(telling: Telling) -> None:
    shrinking = (
        "INFO [Partition x-0 broker=1] Shrinking ISR from 1,2,3 to 1. Leader: (highWatermark: 132, endOffset: 150). Out of "
        "sync replicas: (brokerId: 2, endOffset: 132, lastCaughtUpTimeMs: 1719658927112) (brokerId: 3, endOffset: 140). (k)"
    )
    lines = headline(telling(dated(shrinking)))
    assert any(
        "the log of broker 2 ended at 132; the log of broker 3 ended at 140, the leader's at 150" in line for line in lines
    )


def test_a_replica_that_a_description_lacks_is_named_in_what_to_do(telling: Telling) -> None:
    described = "Topic: x\tPartition: 0\tLeader: 147\tReplicas: 147,103\tIsr: 147\n"
    assert any("see that broker 103 runs; else look" in line for line in headline(telling(described)))


def test_a_leader_of_0_11_names_its_partition_twice(telling: Telling) -> None:
    line = (
        "INFO Partition [x,1] on broker 1: x-1 starts at Leader Epoch 1 from offset 0. Previous Leader Epoch was: 0 (kafka)"
    )
    leader = only(telling(dated(line)), "leader")
    assert (leader["partition"], leader["node"], leader["leader_epoch"]) == ("x-1", 1, 1)


def test_a_leader_that_the_same_line_makes_a_replica_is_none_of_apache_kafka(telling: Telling) -> None:
    change = (
        "INFO [Controller 0] UNCLEAN partition change for x-0 with topic ID HhPpDbsLQCqkVYGkSVHmWA: replicas: [1] -> [{}], "
        "isr: [1] -> [0], leader: 1 -> 0, leaderEpoch: 85 -> 86, partitionEpoch: 85 -> 86 (org.apache.kafka.controller.X)"
    )
    lines = headline(telling(dated(change.format("0"))))
    assert any("its replicas went from [1] to [0] in the same line" in line for line in lines)
    assert any("a build with shared storage" in line for line in lines)


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


def test_partitions_that_a_new_controller_finds_offline_are_told(telling: Telling) -> None:
    line = (
        "DEBUG [PartitionStateMachine controllerId=100] Started partition state machine with initial state -> Map("
        "x-49 -> OfflinePartition, y-0 -> OnlinePartition, z-0 -> OfflinePartition, w-0 -> Off"
    )
    assert [entry.partition for entry in telling(dated(line)).entries] == ["x-49", "z-0"]


def test_a_leader_line_without_brackets_around_the_isr_is_read(telling: Telling) -> None:
    line = "INFO [Broker id=0] Leader x-1 starts at leader epoch 1 from offset 0 with high watermark 0 ISR {} adding (k)"
    for isr in ("0,1", "[0,1]", "[0, 1]"):
        assert only(telling(dated(line.format(isr))), "leader")["isr"] == [0, 1]
    # Trimmed: the last id may lack digits.
    assert telling(dated(line.format("[0,1"))).entries == []


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


def test_a_topic_without_a_leader_is_not_told_to_be_in_sync(telling: Telling) -> None:
    row = "\tTopic: x\tPartition: {}\tLeader: {}\tReplicas: 1,2\tIsr: {}\n"
    before = row.format(0, 1, "1,2") + row.format(1, 2, "2")
    text = "\n".join(headline(telling(before + "\n" + row.format(0, "none", "1") + row.format(1, 2, "2,1"))))
    assert "x-0: no leader was left" in text
    assert "all of its replicas in sync" not in text
